"""Counts by the values of a column: those of plain Python, in memory and in tasks, and no decision changes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings

from neardup_gpu import Recipe, Result, Shingles, Unit, Workers, Writing, dedup
from neardup_gpu.cli.app import app
from neardup_gpu.errors import InputError
from neardup_gpu.results.by_value import Grouping

RECIPE = Recipe(shingles=Shingles(1), threshold=0.5)
INPUT: Any = {"id_column": "id", "text_columns": "text", "recipe": RECIPE}

documents = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), max_size=5).map(" ".join),
        st.sampled_from(["x", "(none)", "", None, "documents"]),
    ),
    min_size=1,
    max_size=30,
)


def table_of(drawn: list[tuple[str, Any]], column: str = "kept") -> pa.Table:
    """Documents, of which a column has the name of a count."""
    texts, values = zip(*drawn, strict=True)
    return pa.table({"id": range(len(drawn)), "text": texts, column: pa.array(values, pa.string())})


def counted(result: Result, table: pa.Table, column: str) -> tuple[list[Any], Counter[Any]]:
    """The rows of each value, and the listed pairs of two values, in any order."""
    rows = table.to_pylist()
    kept = dict(zip(result.documents["id"].to_pylist(), result.documents["kept"].to_pylist(), strict=True))
    found: dict[Any, list[int]] = {}
    for row in rows:
        numbers = found.setdefault(row[column], [0, 0, 0, 0])
        for place, number in enumerate((1, kept[row["id"]], not kept[row["id"]], len(row["text"].split()))):
            numbers[place] += number
    of = {row["id"]: row[column] for row in rows}
    pairs = Counter(frozenset([of[pair["id_a"]], of[pair["id_b"]]]) for pair in result.pairs.to_pylist())
    return sorted([[value, *numbers] for value, numbers in found.items()], key=repr), pairs


@settings(max_examples=fewer(50), deadline=None)
@given(drawn=documents, column=st.sampled_from(["kept", "documents", "value", "words"]))
def test_counts_are_those_of_python(drawn: list[tuple[str, Any]], column: str) -> None:
    table = table_of(drawn, column)
    result = dedup(table, **INPUT, writing=Writing(by=column))
    rows, pairs = counted(result, table, column)
    found = result.by(column)
    assert sorted(([*row.values()] for row in found.values.to_pylist()), key=repr) == rows
    assert {frozenset(row[:2]): row[2] for row in map(list, map(dict.values, found.pairs.to_pylist()))} == pairs
    report = result.report["by"]
    assert report["values"] == found.values.to_pylist() and report["pairs"] == found.pairs.to_pylist()
    plain = dedup(table, **INPUT)
    assert plain.documents.equals(result.documents) and plain.pairs.equals(result.pairs)


def shards(folder: Path) -> Path:
    """Two files; the second one has most documents of the first one, and a note of its own."""
    (folder / "in").mkdir()
    for name, first in (("a", 0), ("b", 100)):
        texts = [f"number {number} of the first file and its words" for number in range(30)] + [f"note {name}"]
        split = ["train" if number % 3 else "test" for number in range(31)]
        rows = pa.table({"id": range(first, first + 31), "text": texts, "split": split})
        pq.write_table(rows, folder / "in" / f"{name}.parquet", row_group_size=10)
    return folder / "in"


def test_tasks_count_as_memory_does(tmp_path: Path) -> None:
    source = shards(tmp_path)
    here = dedup(source, id_column="id", writing=Writing(by="split"))
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=600, partitions=2)
    there = dedup(source, id_column="id", writing=Writing(by="split"), output=tmp_path / "out", workers=workers)
    assert there.report["by"] == here.report["by"]
    assert there.report["lost_most"] == here.report["lost_most"]
    assert there.by("split").values.equals(here.by("split").values)
    assert there.by("file").values.equals(here.by("file").values)
    assert here.by("file").values.to_pylist() == [
        {"value": "a.parquet", "documents": 31, "kept": 31, "removed": 0, "words": 272},
        {"value": "b.parquet", "documents": 31, "kept": 1, "removed": 30, "words": 272},
    ]
    assert here.at(1.0).report.get("by") is None and here.at(1.0).report["lost_most"] == here.report["lost_most"]


def test_files_without_documents_are_counted_nowhere(tmp_path: Path) -> None:
    """Jobs in memory keep the names of all files, and tasks only those of files that have documents."""
    source = shards(tmp_path)
    for name in ("0", "aa", "z"):
        pq.write_table(pq.read_table(source / "a.parquet").slice(0, 0), source / f"{name}.parquet")
    here = dedup(source, id_column="id", writing=Writing(by="file"))
    workers = Workers(work_dir=tmp_path / "work", number=1)
    there = dedup(source, id_column="id", writing=Writing(by="file"), output=tmp_path / "out", workers=workers)
    assert [row["value"] for row in here.report["by"]["values"]] == ["a.parquet", "b.parquet"]
    assert there.report["by"] == here.report["by"] and there.by("file").values.equals(here.by("file").values)


def test_what_lost_most_is_in_the_summary(tmp_path: Path, capsys: Any) -> None:
    source = shards(tmp_path)
    app(
        [*("dedup", str(source), "--id-column", "id", "--by", "split", "--output", str(tmp_path / "out"))],
        result_action="return_value",
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "lost most b.parquet lost 30 of 31 documents" in said
    assert "by split documents kept removed words train 40 20 20 360 test 22 12 10 184" in said
    assert "pairs between values of split 20 train and train" in said
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["lost_most"] == {
        "by": "file",
        "number": 1,
        "values": [{"value": "b.parquet", "documents": 31, "removed": 30}],
    }


def test_text_files_are_counted_by_folder(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for number in range(21):
            (tmp_path / name / f"{number}.txt").write_text(f"number {number} of the folder and its words")
    workers = Workers(work_dir=tmp_path / ".work", number=1, slice_bytes=300, partitions=2)
    here = dedup(tmp_path).report["lost_most"]
    assert here == {"by": "folder", "number": 1, "values": [{"value": "second", "documents": 21, "removed": 21}]}
    assert dedup(tmp_path, output=tmp_path / ".out", workers=workers).report["lost_most"] == here


def test_values_that_lost_most_are_named() -> None:
    table = table_of([(f"page{number} word{number}", site) for site in "xy" for number in range(20)], "site")
    report = dedup(table, writing=Writing(by="site"), **INPUT | {"id_column": "id"}).report
    lost = {"value": "y", "documents": 20, "removed": 20}
    assert report["lost_most"] == {"by": "site", "number": 1, "values": [lost]}


@pytest.mark.parametrize("threshold", [1, 0.5])
def test_copies_of_lines_are_pairs_with_their_sources(tmp_path: Path, threshold: float) -> None:
    """Copies of equal words are in no table of pairs. One line of the last document is in the reference set."""
    first, second, known = "this line is in a and in b", "that line is in a, and twice in b", "a known line of words"
    texts = [f"{first}\n{second}", f"{first}\n{second}\n{second}!", f"only here there are these words\n{known}"]
    pq.write_table(
        pa.table({"id": range(3), "text": texts, "site": ["a", "b", "b"]}), tmp_path / "in.parquet", row_group_size=1
    )
    lines = Recipe(threshold=threshold, unit=Unit("line", keep_copies=1))
    options = {
        "id_column": "id",
        "text_columns": "text",
        "recipe": lines,
        "against": pa.table({"id": [9], "text": [known]}),
    }
    found = dedup(tmp_path / "in.parquet", **options, writing=Writing(by="site"))
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=60, partitions=2)
    tasks = dedup(
        tmp_path / "in.parquet", **options, writing=Writing(by="site"), workers=workers, output=tmp_path / "out"
    )
    pairs = found.by("site").pairs.to_pylist()
    assert pairs == [{"value_a": "a", "value_b": "b", "pairs": 3}]
    assert found.report["by"]["pairs"] == tasks.report["by"]["pairs"] == tasks.by("site").pairs.to_pylist() == pairs
    for result in (found, tasks):
        page = result.write_report(tmp_path / "page.html", by="site", overwrite=True).html
        assert '<bdi>a</bdi></th><td><bdi>b</bdi></td><td class="number">3</td>' in page


def test_pairs_with_the_reference_set_are_left_out() -> None:
    table = table_of([("to be or not", "x"), ("to be or not", "y")])
    result = dedup(table, against={"id": ["r"], "text": ["to be or not"]}, **INPUT | {"id_column": "id"})
    assert result.by("kept").pairs.num_rows == 0 and result.by("kept").values["removed"].to_pylist() == [1, 1]


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("site", "no column 'site'.*Name one with by="),
        ("tags", r"'tags' holds list<.*by needs"),
        ("file", "have no files"),
        ("raw", "'raw' holds binary that is not text"),
    ],
)
def test_columns_that_cannot_be_counted_by_are_refused_early(by: str, why: str, tmp_path: Path) -> None:
    table = pa.table({"text": ["to be"], "tags": [["a"]], "raw": [b"\xff"]})
    with pytest.raises(InputError, match=why):
        dedup(table, text_columns="text", writing=Writing(by=by), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=why):
        dedup(table, text_columns="text").by(by)


def test_a_stream_cannot_be_counted_by_a_column() -> None:
    table = table_of([("to be", "x")])
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(InputError, match="by: a stream"):
        dedup(stream, **INPUT, writing=Writing(by="kept"))


def test_values_of_several_batches_that_lack_some() -> None:
    """Batches have dictionaries of their own, and a missing value is a group in all of them."""
    values = [pa.array(some, pa.large_string()) for some in (["x", None], [], [None, "y", "x"])]
    groups = Grouping.of("site", pa.chunked_array(values))
    assert groups.names == ["x", None, "y"] and groups.codes.tolist() == [0, 1, 1, 2, 0]


def test_groups_are_in_the_order_of_their_first_documents_whatever_a_dictionary_names() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([3, 1, 3], pa.int32()), pa.array(["a", "b", "c", "d"]))
    groups = Grouping.of("file", values)
    assert groups.names == ["d", "b"] and groups.codes.tolist() == [0, 1, 0]
