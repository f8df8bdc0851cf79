"""Several keys decide which document is kept, in their order, and the report says how often each one decided."""

from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from neardup_gpu import Index, Recipe, Result, Shingles, Workers, Writing, dedup
from neardup_gpu.cli.process import main
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.keep_rule import keep_columns, keys_of
from neardup_gpu.repeated_passages.substrings import substrings

RULES = (
    "score:desc,longest,first",
    "longest,score",
    "day,score:desc",
    "score",
    "longest",
    "score:asc,day:desc,longest",
)

rows = st.tuples(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(" ".join),
    st.sampled_from([None, float("nan"), 0.5, 1.0]),
    st.sampled_from([None, "2024-01-01", "2025-02-03"]),
)
tables = st.lists(rows, min_size=1, max_size=25).map(
    lambda drawn: pa.table(
        {
            "id": [f"d{number}" for number in range(len(drawn))],
            "text": [text for text, *_ in drawn],
            "score": pa.array([score for _, score, _ in drawn], pa.float64()),
            "day": pa.array([day for *_, day in drawn], pa.string()),
        }
    )
)


def sort_key(rule: str, row: dict[str, Any], number: int) -> list[Any]:
    """Return what Python sorts by: for each key, missing values last, and then the values."""
    found: list[Any] = []
    for word in rule.split(","):
        name, _, direction = word.partition(":")
        if word == "longest":
            found.append((0, -len(row["text"].split())))
        elif word != "first":
            value = row[name]
            if value is None or value != value:
                found.append((1, 0))
            elif isinstance(value, str):
                number_of_day = int(value.replace("-", ""))
                found.append((0, -number_of_day if direction == "desc" else number_of_day))
            else:
                found.append((0, -value if direction == "desc" else value))
    return [*found, (0, number)]


def names_of(rule: str) -> list[str]:
    return [word for word in rule.split(",") if word != "first"] + ["first"]


def shingles_of(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + 2]) for i in range(max(1, len(words) - 1))}


def expected(table: pa.Table, rule: str, threshold: float) -> tuple[dict[str, bool], list[list[Any]]]:
    """Return which documents are kept by greedy choice in the order of the rule, and the sort keys of all rows."""
    documents = table.to_pylist()
    keys = [sort_key(rule, row, number) for number, row in enumerate(documents)]
    kept: list[int] = []
    for number in sorted(range(len(documents)), key=keys.__getitem__):
        mine = shingles_of(documents[number]["text"])
        for other in kept:
            theirs = shingles_of(documents[other]["text"])
            if len(mine & theirs) / len(mine | theirs) >= threshold:
                break
        else:
            kept.append(number)
    return {row["id"]: number in kept for number, row in enumerate(documents)}, keys


def check(found: Result, table: pa.Table, rule: str) -> None:
    decided, keys = expected(table, rule, 0.5)
    documents = found.documents.to_pylist()
    assert {row["id"]: row["kept"] for row in documents} == decided
    counts: Counter[str] = Counter()
    for row in documents:
        if not row["kept"]:
            mine, theirs = (keys[int(row[name][1:])] for name in ("id", "duplicate_of"))
            first = next(place for place, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one != other)
            counts[names_of(rule)[first] if theirs < mine else "another"] += 1
    assert found.report["decided_by"] == {name: counts[name] for name in [*names_of(rule), "another"]}


def recipe_of(rule: str) -> Recipe:
    return Recipe(shingles=Shingles(2), threshold=0.5, keep=rule, max_partners=None)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=15, deadline=None)
@given(table=tables)
def test_keys_decide_in_their_order(rule: str, table: pa.Table) -> None:
    check(dedup(table, id_column="id", text_columns="text", recipe=recipe_of(rule)), table, rule)


def fixed_table(number: int = 120) -> pa.Table:
    """Groups of documents that differ in one key or another."""
    rows = range(number)
    return pa.table(
        {
            "id": [f"d{row}" for row in rows],
            "text": [" ".join(f"w{row // 6}-{word}" for word in range(5 + row % 2)) for row in rows],
            "score": pa.array([None if row % 7 == 0 else float(row % 3) for row in rows], pa.float64()),
            "day": [f"2024-01-0{1 + row % 4}" for row in rows],
        }
    )


@pytest.mark.parametrize("rule", RULES)
def test_tasks_and_a_bound_of_memory_decide_alike(rule: str, tmp_path: Path) -> None:
    table = fixed_table()
    source = tmp_path / "in"
    source.mkdir()
    pq.write_table(table.slice(0, 50), source / "a.parquet")
    pq.write_table(table.slice(50), source / "b.parquet")
    given: dict[str, Any] = {"id_column": "id", "text_columns": "text", "recipe": recipe_of(rule)}
    here = dedup(source, **given)
    check(here, table, rule)
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=3, slice_bytes=600)
    tasks = dedup(source, output=tmp_path / "out", workers=workers, **given)
    bounded = dedup(source, output=tmp_path / "bounded", memory="500MB", **given)
    for found in (tasks, bounded):
        assert found.documents.to_pylist() == here.documents.to_pylist()
        assert found.report["decided_by"] == here.report["decided_by"]


@pytest.mark.parametrize("rule", RULES)
def test_an_index_decides_alike(rule: str, tmp_path: Path) -> None:
    table, recipe = fixed_table(), Recipe(shingles=Shingles(2), threshold=0.5, max_partners=None)
    with Index.create(tmp_path / "index", recipe=recipe, columns=["score", "day"]) as index:
        for start in (0, 40):
            index.add(table.slice(start, 40 if start == 0 else None), id_column="id", text_columns="text")
        check(index.decide(keep=rule), table, rule)


def test_a_larger_document_comes_before_all_keys_by_containment() -> None:
    table = pa.table({"text": ["a b c d e", "b c d", "a b c d e"], "score": [1, 9, 2]})
    found = dedup(
        table, text_columns="text", recipe=Recipe(shingles=Shingles(2), method="containment", keep="score:desc")
    )
    assert found.documents["kept"].to_pylist() == [False, False, True]
    assert found.report["decided_by"] == {"shingles": 1, "score:desc": 1, "first": 0, "another": 0}


def test_documents_of_a_reference_set_are_no_matter_of_a_key() -> None:
    table = pa.table({"text": ["a b c d e"] * 3, "score": [1, 3, 2]})
    found = dedup(table, against={"text": ["a b c d e"]}, text_columns="text", keep="score:desc,first")
    assert found.report["decided_by"] == {"score:desc": 0, "first": 0, "another": 0} and len(found.removed) == 3


def test_a_second_threshold_counts_anew() -> None:
    texts = ["to be or not to be", "to be or not", "to be or not to be"]
    found = dedup(
        pa.table({"text": texts, "score": [1, 1, 2]}),
        text_columns="text",
        recipe=Recipe(shingles=Shingles(2), threshold=0.5, keep="score:desc,longest"),
    )
    assert found.report["decided_by"] == {"score:desc": 2, "longest": 0, "first": 0, "another": 0}
    assert found.at(0.9).report["decided_by"] == {"score:desc": 1, "longest": 0, "first": 0, "another": 0}


def test_a_passage_is_kept_by_several_keys() -> None:
    passage = " ".join(f"w{i}" for i in range(30))
    table = pa.table({"text": [passage + " x", passage + " y", passage + " z"], "score": [1, 2, 2], "day": [5, 6, 4]})
    found = substrings(table, text_columns="text", length=20, keep="score:desc,day", action="list")
    assert set(found.spans["source_id"].to_pylist()) == {2}


def test_keys_are_read_from_a_rule() -> None:
    assert [key[1:] for key in keys_of("score:desc, longest,day:asc,first")] == [
        ("score", True),
        (None, False),
        ("day", False),
        (None, False),
    ]
    assert keep_columns("score:desc,longest,first") == ["score"]
    assert Recipe(keep="score:desc, longest").keep == "score:desc,longest"
    assert Recipe.from_json(Recipe(keep="a,b:desc").to_json()).keep == "a,b:desc"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("first,longest", "nothing is left to decide after first; put first last"),
        ("score,,first", "a key is empty"),
        (":desc", "a key is empty"),
        ("score,score:desc", "score is named twice"),
        ("longest,longest", "longest is named twice"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: str, why: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(ParameterError, match=why):
        Recipe(keep=rule)
    pq.write_table(fixed_table(), tmp_path / "in.parquet")
    assert main(["dedup", str(tmp_path / "in.parquet"), "--dry-run", "--keep", rule]) == 2
    assert why in capsys.readouterr().err


def test_a_column_without_order_is_named() -> None:
    table = pa.table({"text": ["a b", "a b"], "score": [1, 1], "tags": [["x"], ["y"]]})
    with pytest.raises(InputError, match="tags"):
        dedup(table, text_columns="text", keep="score,tags")


def test_the_command_line_says_how_often_each_key_decided(tmp_path: Path, capsys: Any) -> None:
    pq.write_table(fixed_table(), tmp_path / "in.parquet")
    words = ["dedup", str(tmp_path / "in.parquet"), "--output", str(tmp_path / "out"), "--shingle-size", "2"]
    words += ["--id-column", "id", "--keep", "score:desc,longest,first", "--threshold", "0.5"]
    assert main(words) == 0
    found = dedup(
        tmp_path / "in.parquet",
        id_column="id",
        recipe=Recipe(shingles=Shingles(2), threshold=0.5, keep="score:desc,longest,first"),
        text_columns="text",
        writing=Writing(ids_only=True),
        output=tmp_path / "again",
    )
    told = ", ".join(f"{number} by {key}" for key, number in found.report["decided_by"].items() if key != "another")
    assert f"decided    {told}" in capsys.readouterr().out
