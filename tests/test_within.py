"""Documents compared only within equal values: what comes out is what the runs for each value give together."""

from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from neardup_gpu import Reading, Recipe, Result, Shingles, Workers, dedup
from neardup_gpu.documents import open_documents
from neardup_gpu.errors import InputError, ParameterError, RecipeMismatchError
from neardup_gpu.methods import METHODS
from neardup_gpu.sketches import clusters, pairs, sketch
from neardup_gpu.stages.conditions import group_words

READING = Reading(id_column="id", text_columns="text")


def recipe_of(method: str, **changes: Any) -> Recipe:
    """A recipe for short texts, in which no pair is left out of the list."""
    threshold = {"simhash": None, "identical": 1.0}.get(method, 0.5)
    shingles = Shingles() if method == "identical" else Shingles(2)
    return Recipe(shingles=shingles, method=method, threshold=threshold, max_partners=None, **changes)


def rows(*tables: pa.Table) -> Counter[str]:
    return Counter(repr(row) for table in tables for row in table.to_pylist())


def groups_of(table: pa.Table, *columns: str) -> list[pa.Table]:
    """The rows of each value, and each row without a value by itself."""
    found: dict[Any, list[int]] = {}
    for row, values in enumerate(zip(*(table[name].to_pylist() for name in columns), strict=True)):
        found.setdefault(row if None in values else values, []).append(row)
    return [table.take(each) for each in found.values()]


def expected(table: pa.Table, recipe: Recipe, against: pa.Table | None = None) -> list[Result]:
    """A run for each value; what is in the reference set and without a value is compared with nothing."""
    apart = recipe.with_(within=())
    found = []
    for part in groups_of(table, *recipe.within):
        reference = None
        if against is not None:
            same = [
                all(there[name] == part[name][0].as_py() is not None for name in recipe.within)
                for there in against.to_pylist()
            ]
            reference = against.filter(pa.array(same))
        found.append(dedup(part, against=reference, reading=READING, recipe=apart))
    return found


words = st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join)
tables = st.lists(st.tuples(words, st.sampled_from(["x", "y", "", None])), min_size=1, max_size=30).map(
    lambda drawn: pa.table(
        {
            "id": [f"d{number}" for number in range(len(drawn))],
            "text": [text for text, _ in drawn],
            "site": pa.array([site for _, site in drawn], pa.string()),
        }
    )
)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None)
@given(table=tables)
def test_rows_are_those_of_the_runs_for_each_value(method: str, table: pa.Table) -> None:
    recipe = recipe_of(method, within="site")
    found, parts = dedup(table, reading=READING, recipe=recipe), expected(table, recipe)
    assert rows(found.documents) == rows(*(part.documents for part in parts))
    assert rows(found.pairs) == rows(*(part.pairs for part in parts))
    assert found.report["counts"]["without_value"] == table["site"].null_count


@pytest.mark.corpus
def test_five_releases_of_a_manual_are_five_jobs(corpora: Path) -> None:
    table = pq.read_table(corpora / "django_docs.parquet", columns=["id", "text", "version"])
    recipe = Recipe(within="version")
    found, parts = dedup(table, reading=READING, recipe=recipe), expected(table, recipe)
    assert len(parts) == 5 and len(found.removed) > 0
    assert rows(found.documents) == rows(*(part.documents for part in parts))
    assert rows(found.pairs) == rows(*(part.pairs for part in parts))


@settings(max_examples=12, deadline=None)
@given(table=tables, reference=tables, keep=st.sampled_from(["first", "longest", "site:desc"]))
def test_a_reference_set_has_the_column_too(table: pa.Table, reference: pa.Table, keep: str) -> None:
    recipe = recipe_of("exact", within="site", keep=keep)
    found = dedup(table, against=reference, reading=READING, recipe=recipe)
    assert rows(found.documents) == rows(*(part.documents for part in expected(table, recipe, reference)))


TEXTS = ["one two three four five six", "one two three four five seven", "eight nine ten eleven twelve"] * 4


def test_values_of_several_columns_are_equal_together() -> None:
    table = pa.table(
        {
            "id": range(12),
            "text": TEXTS,
            "year": pa.array([2001, 2002, None] * 4, pa.int32()),
            "site": ["a"] * 6 + ["b"] * 6,
        }
    )
    recipe = recipe_of("exact", within=["year", "site"])
    found = dedup(table, reading=READING, recipe=recipe)
    assert rows(found.documents) == rows(*(part.documents for part in expected(table, recipe)))
    assert found.report["recipe"]["within"] == "year,site"
    assert Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 1, None]),
        pa.array([0.5, 0.5, float("nan")]),
        pa.array([True, True, None]),
        pa.array([b"\xff", b"\xff", None]),
        pa.array(["a", "a", None]).dictionary_encode(),
        pa.array([1, 1, None], pa.timestamp("s")),
        pa.array(["a", "a", None], pa.string_view()),
    ],
    ids=lambda values: str(values.type),
)
def test_any_plain_value_can_be_equal(values: pa.Array) -> None:
    documents = open_documents(pa.table({"text": ["", "", ""], "value": values}), text_columns="text")
    (batch,) = documents.batches(["value"])
    found, missing = group_words([batch.columns["value"]], 0, 0)
    assert missing == 1 and found[0] == found[1] and len(np.unique(found)) == 2


def test_values_that_have_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="within holds month_day_nano_interval"):
        group_words([pa.array([(1, 2, 3)], pa.month_day_nano_interval())], 0, 0)


def test_a_document_without_a_value_is_no_copy_of_another() -> None:
    table = pa.table({"text": ["to be or not to be"] * 3, "site": pa.nulls(3, pa.string())})
    found = dedup(table, against=table, text_columns="text", recipe=Recipe(within="site"))
    assert len(found.removed) == 0 and len(found.pairs) == 0
    assert found.warnings[0] == "within site: none of 3 documents has a value, so none is compared"


def test_lines_are_compared_within_values() -> None:
    table = pa.table({"text": ["a line\nmine", "a line\nyours", "a line\ntheirs"], "site": ["x", "x", "y"]})
    found = dedup(table, text_columns="text", recipe=Recipe(unit="line", within="site"))
    assert found.documents["units_cut"].to_pylist() == [0, 1, 0]


@pytest.mark.parametrize("spool", [True, False])
@pytest.mark.parametrize("method", ["exact", "containment", "minhash", "bottomk", "simhash"])
def test_tasks_decide_as_memory_does(method: str, spool: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(list("abcdef"), 9)) for _ in range(20)] * 6
    sites = [None if site == 3 else f"s{site}" for site in rng.integers(0, 4, len(texts)).tolist()]
    table = pa.table({"id": np.arange(len(texts)), "text": texts, "site": sites})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=40)
    recipe = recipe_of(method, within="site")
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=1500, partitions=3, spool=spool)
    inputs: Any = {"source": tmp_path / "a.parquet", "against": table.slice(0, 30), "reading": READING}
    found = dedup(**inputs, output=tmp_path / "out", recipe=recipe, workers=workers)
    here = dedup(**inputs, recipe=recipe)
    assert rows(found.documents) == rows(here.documents) and rows(found.pairs) == rows(here.pairs)
    assert found.report["counts"]["without_value"] == here.report["counts"]["without_value"] > 0


@pytest.mark.parametrize("method", ["minhash", "bottomk", "modm", "simhash"])
def test_sketches_keep_the_groups(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(list("abcdef"), 12)) for _ in range(8)] * 5
    sites = [None if site == 2 else f"s{site}" for site in rng.integers(0, 3, len(texts)).tolist()]
    table = pa.table({"id": np.arange(len(texts)), "text": texts, "site": pa.array(sites, pa.string())})
    recipe = recipe_of(method, within="site")
    sketch(table, tmp_path / "whole.parquet", reading=READING, recipe=recipe)
    apart, clustered = [], []
    for number, part in enumerate(groups_of(table, "site")):
        path = tmp_path / f"{number}.parquet"
        sketch(part, path, reading=READING, recipe=recipe.with_(within=()))
        apart.append(pairs(path))
        if method == "bottomk":
            clustered.append(clusters(path).drop(["cluster"]))
    assert rows(pairs(tmp_path / "whole.parquet")) == rows(*apart)
    if method == "bottomk":
        found = clusters(tmp_path / "whole.parquet")
        assert rows(found.drop(["cluster"])) == rows(*clustered)
        assert len(pc.unique(found["cluster"])) == len(pc.unique(found["founder"]))
    if method == "modm":
        parts = [pairs(tmp_path / f"{number}.parquet", containment=0.5) for number in range(len(apart))]
        assert rows(pairs(tmp_path / "whole.parquet", containment=0.5)) == rows(*parts)
    with pytest.raises(RecipeMismatchError, match="within"):
        pairs([tmp_path / "whole.parquet", tmp_path / "0.parquet"])


def test_sketches_count_documents_without_a_value(tmp_path: Path, caplog: Any) -> None:
    table = pa.table({"text": TEXTS, "site": pa.nulls(12, pa.string())})
    recipe = recipe_of("bottomk", within="site")
    report = sketch(table, tmp_path / "s.parquet", text_columns="text", recipe=recipe)
    assert report["without_value"] == 12 and "none of 12 documents has a value" in caplog.text
    assert len(pairs(tmp_path / "s.parquet")) == 0


def test_sketches_of_tasks_make_the_same_pairs(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(12), "text": TEXTS, "site": ["a", "b", None] * 4})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    recipe, here = recipe_of("minhash", within="site"), tmp_path / "here.parquet"
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=100)
    sketch(tmp_path / "a.parquet", here, reading=READING, recipe=recipe)
    sketch(tmp_path / "a.parquet", tmp_path / "there.parquet", reading=READING, recipe=recipe, workers=workers)
    assert rows(pairs(here)) == rows(pairs(tmp_path / "there.parquet"))


def test_what_cannot_be_compared_is_refused() -> None:
    table = pa.table({"text": ["to be"], "tags": [["a"]], "site": ["x"]})
    for within, why in (("host", "no column 'host'"), ("tags", "column 'tags' holds list<.*needs strings")):
        with pytest.raises(InputError, match=why):
            dedup(table, text_columns="text", recipe=Recipe(within=within))
    with pytest.raises(InputError, match=r"no column 'site'.*within"):
        dedup(table, against={"text": ["to be"]}, text_columns="text", recipe=Recipe(within="site"))
    with pytest.raises(ParameterError, match="within and weighting 'tfidf'"):
        Recipe(method=METHODS["minhash"](weighting="tfidf"), within="site")
