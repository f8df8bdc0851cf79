"""Common shingles are left out: by a dictionary of document frequencies, and on a corpus of pages from one template."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from grids import fewer, some
from hypothesis import given, settings
from rule import Pair, all_pairs, check, contained, jaccard, shingles_of, stated, words_or_text
from witnesses import token_strings

from neardup_gpu import Recipe, Shingles, Workers, dedup
from neardup_gpu.cli.app import app
from neardup_gpu.errors import ArgumentTypeError, ParameterError
from neardup_gpu.planning import forecast
from neardup_gpu.planning.choices import plan
from neardup_gpu.planning.settings import Workload
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import Frequencies

INPUT: Any = {"id_column": "id", "text_columns": "text"}

texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join), min_size=1, max_size=25)


def common_of(sets: list[set], most: int) -> set:
    """The shingles of more than so many documents."""
    found = Counter(shingle for each in sets for shingle in each)
    return {shingle for shingle, documents in found.items() if documents > most}


@settings(max_examples=fewer(80), deadline=None)
@given(
    drawn=texts,
    known=texts,
    bound=st.sampled_from([1, 2, 3, 5, 0.1, 0.5]),
    method=st.sampled_from(["exact", "containment"]),
    kind=st.sampled_from(["set", "bag"]),
)
def test_results_are_those_of_sets_without_common_shingles(
    drawn: list[str], known: list[str], bound: float, method: str, kind: str
) -> None:
    recipe = Recipe(shingles=Shingles(1, kind), method=method, threshold=0.5, ignore_common=bound, max_partners=2)
    ids = [f"d{i}" for i in range(len(drawn))]
    reference = {"id": [f"r{i}" for i in range(len(known))], "text": known}
    result = dedup({"id": ids, "text": drawn}, against=reference, recipe=recipe, **INPUT)
    both = [*zip(reference["id"], known, strict=True), *zip(ids, drawn, strict=True)]
    tokens = [token_strings(text) for _, text in both]
    sets = [shingles_of(each, 1, kind) if each else set() for each in tokens]
    most = bound if isinstance(bound, int) else max(1, int(bound * len(both)))
    common = common_of(sets, most)
    rows = [*range(len(known)), *range(len(known), len(both))]
    if method == "containment":
        rows[len(known) :] = sorted(rows[len(known) :], key=lambda row: -len(sets[row] - common))
    # What has common shingles alone is nobody's duplicate, like a document without words.
    said = [words_or_text(tokens[row], both[row][1]) if sets[row] - common or not tokens[row] else "" for row in rows]

    def find(ranks: list[int]) -> dict[Pair, float]:
        left = [sets[rows[rank]] - common for rank in ranks]
        pinned = [rank < len(known) for rank in ranks]
        return all_pairs(left, pinned, 0.5, contained if method == "containment" else jaccard)

    expected = stated([both[row][0] for row in rows], said, len(known), recipe, find)
    check(result, expected)
    counts = result.report["counts"]
    assert counts["common_shingles"] == len(common) == len(result.frequencies)
    alone = [row for row in rows[len(known) :] if sets[row] and not sets[row] - common]
    assert counts["only_common"] == len(alone)
    assert result.recipe.ignore_common == most and result.recipe.ignored == result.frequencies.digest


HEAD = "All rights reserved by the county council of the old river towns"
PAGES = [f"{HEAD} {body}" for body in ["the bridge was closed", "the bridge was closed again", "a new mill opened", ""]]


def test_a_template_no_longer_makes_pages_alike(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b", "c", "d", "e"], "text": [*PAGES, HEAD]})
    plain = Recipe(shingles=Shingles(2), threshold=0.5)
    assert dedup(table, **INPUT, recipe=plain).removed["id"].to_pylist() == ["b", "c", "d", "e"]
    out = tmp_path / "out"
    result = dedup(table, **INPUT, recipe=plain.with_(ignore_common=3), output=out)
    assert result.removed.select(["id", "duplicate_of", "resemblance"]).to_pylist() == [
        {"id": "b", "duplicate_of": "a", "resemblance": 0.8}
    ]
    stored = Frequencies.load(out / "frequencies.parquet")
    assert stored.digest == result.recipe.ignored and set(stored.counts.tolist()) == {5}
    assert Recipe.from_json(result.recipe.to_json()) == result.recipe
    for explained in (result.explain("b"), explain(out, "b", source=table)):
        assert explained.resemblance == 0.8 and (explained.shared, explained.united) == (4, 5)
    assert result.at(0.9).removed.num_rows == 0


def test_the_command_says_what_was_left_out(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate([*PAGES, HEAD]):
        (tmp_path / "in" / f"{number}.txt").write_text(text)
    words = ["dedup", str(tmp_path / "in"), "--shingle-size", "2", "--ignore-common", "0.6", "--dry-run"]
    app(words, result_action="return_value")
    said = " ".join(capsys.readouterr().out.split())
    assert "common 11 shingles of more than 3 documents left out; 2 documents without any other, kept" in said


@pytest.mark.parametrize("bound", [0, -1, 1.5, 0.0, float("nan"), True, "10", 2.0])
def test_a_bound_is_a_number_or_a_share(bound: Any) -> None:
    with pytest.raises((ParameterError, ArgumentTypeError), match="ignore_common"):
        Recipe(ignore_common=bound)


def test_what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    for changes in ({"method": "minhash"}, {"unit": "line"}, {"ignore_common": 0.1, "within": "site"}):
        with pytest.raises(ParameterError, match="ignore_common"):
            Recipe(**{"ignore_common": 10, **changes})
    with pytest.raises(ParameterError, match="not planned"):
        plan(Workload(documents=1e6, text_bytes=10**9), Recipe(ignore_common=10))
    with pytest.raises(ParameterError, match="units must be given for unit"):
        plan(Workload(documents=1e6, text_bytes=10**9), Recipe(unit="line"))


def table_of(number: int, name: str, seed: int) -> pa.Table:
    """Short texts of eight words, with a site that may be null."""
    random = np.random.default_rng(seed)
    words = [random.choice(list("abcdefgh"), random.integers(0, 9)) for _ in range(number)]
    sites = random.choice(["x", "y", None], number)
    ids = [f"{name}{row}" for row in range(number)]
    return pa.table({"id": ids, "text": [" ".join(each) for each in words], "site": pa.array(sites, pa.string())})


@pytest.mark.parametrize(
    ("method", "kind", "within", "spool"),
    [  # each two values of two parameters in one case or more
        ("exact", "bag", (), True),
        ("exact", "bag", "site", False),
        ("containment", "set", (), False),
        ("containment", "set", "site", True),
    ],
)
def test_tasks_decide_as_in_memory(tmp_path: Path, method: str, kind: str, within: Any, spool: bool) -> None:
    for name, number in (("mine", 200), ("known", 60)):
        pq.write_table(table_of(number, name, number), tmp_path / f"{name}.parquet", row_group_size=20)
    size = 2 if kind == "set" else 1
    recipe = Recipe(shingles=Shingles(size, kind), method=method, threshold=0.5, max_partners=None)
    recipe = recipe.with_(ignore_common=10, within=within)
    options: Any = {"against": tmp_path / "known.parquet", "recipe": recipe, **INPUT}
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=400, partitions=3, spool=spool)
    memory = dedup(tmp_path / "mine.parquet", **options, output=tmp_path / "memory")
    tasks = dedup(tmp_path / "mine.parquet", **options, output=tmp_path / "tasks", workers=workers)
    assert tasks.report["tasks"]["slices"] > 5 and len(memory.removed) > 20
    for name in ("documents", "pairs"):
        one, other = (getattr(result, name) for result in (memory, tasks))
        order = [(column, "ascending") for column in one.column_names if column.startswith("id")]
        assert one.sort_by(order).equals(other.sort_by(order))
    assert tasks.recipe == memory.recipe and tasks.frequencies.digest == memory.recipe.ignored
    counts = [result.report["counts"] for result in (memory, tasks)]
    for name in ("common_shingles", "only_common", "verified_pairs", "shingles"):
        assert counts[0][name] == counts[1][name]
    assert counts[0]["common_shingles"] > 0
    near = memory.removed.filter(pc.equal(memory.removed["kind"], "near"))["id"][-1].as_py()
    assert memory.explain(near) == tasks.explain(near) == explain(tmp_path / "tasks", near)


def test_within_counts_the_documents_of_each_value() -> None:
    table = table_of(120, "d", 1)
    recipe = Recipe(shingles=Shingles(1), threshold=0.5, ignore_common=20, max_partners=None)
    whole = dedup(table, recipe=recipe.with_(within="site"), **INPUT)
    parts = [dedup(table.filter(pc.equal(table["site"], site)), recipe=recipe, **INPUT) for site in ("x", "y")]
    for name in ("removed", "pairs"):
        rows = [Counter(map(str, getattr(result, name).to_pylist())) for result in (whole, *parts)]
        assert rows[0] == rows[1] + rows[2] and rows[0]
    counts = [result.report["counts"] for result in (whole, *parts)]
    assert counts[0]["common_shingles"] == counts[1]["common_shingles"] + counts[2]["common_shingles"] > 0


def test_a_bound_of_memory_does_not_change_what_is_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "at_most", lambda *arguments: 1 << 62)
    monkeypatch.setattr(forecast, "in_memory", lambda *arguments: SimpleNamespace(memory=1 << 62))
    pq.write_table(table_of(200, "d", 2), tmp_path / "in.parquet")
    recipe = Recipe(shingles=Shingles(2), threshold=0.5, ignore_common=0.02)
    bounded = dedup(tmp_path / "in.parquet", recipe=recipe, memory="2GB", **INPUT)
    usual = dedup(tmp_path / "in.parquet", recipe=recipe, **INPUT)
    assert "tasks" in bounded.report and bounded.recipe == usual.recipe
    assert bounded.documents.equals(usual.documents) and 0 < len(usual.removed) < 200


WINPS = {
    None: (0, [145_845, 20_300, 3_805, 1_790, 18_230]),
    5_000: (306, [10_696, 3_514, 1_498, 2_089, 17_331]),
    1_413: (550, [7_899, 2_869, 1_341, 1_773, 17_607]),
    0.01: (4_224, [1_578, 687, 748, 1_272, 18_015]),
    50: (11_101, [765, 507, 669, 1_339, 18_006]),
}
"""Common shingles of winps_docs, and pairs of all documents by bands of resemblance from 0.5 to 1, by brute force."""


@pytest.mark.corpus
@pytest.mark.parametrize("bound", some(WINPS, [1_413]))
def test_pages_of_one_template(bound: Any, corpora: Path) -> None:
    recipe = Recipe(threshold=0.5, max_partners=None, ignore_common=bound)
    result = dedup(corpora / "winps_docs.parquet", **INPUT, recipe=recipe)
    representative = {row["id_b"]: row["id_a"] for row in result.pairs.to_pylist() if row["kind"] != "near"}
    copies = Counter(representative.get(id, id) for id in result.documents["id"].to_pylist())
    bands = np.zeros(5, np.int64)
    for row in result.pairs.to_pylist():
        if row["kind"] == "near":
            bands[min(4, int(10 * row["resemblance"]) - 5)] += copies[row["id_a"]] * copies[row["id_b"]]
    bands[4] += sum(number * (number - 1) // 2 for number in copies.values())
    assert (result.report["counts"].get("common_shingles", 0), bands.tolist()) == WINPS[bound]
