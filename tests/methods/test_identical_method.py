"""Identical: what dictionaries of bytes, or of the values of key columns, find in plain Python."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings

from neardup_gpu import Index, Recipe, Result, Shingles, Workers, dedup
from neardup_gpu.cli.process import main
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.methods import METHODS
from neardup_gpu.methods.identical import Identical
from neardup_gpu.report_page.page import sentences

texts = st.sampled_from(["x + 1", "x - 1", "X + 1", "x+1", "", " ", "\n", "...", "!!!", "a\x00", "a", None])
keys = st.sampled_from([None, "", "u", "v", "u,v"])
rows = st.lists(st.tuples(texts, keys, st.sampled_from([None, float("nan"), 0.5, 1.5])), min_size=1, max_size=30)
tables = rows.map(
    lambda drawn: pa.table(
        {
            "id": [f"d{number}" for number in range(len(drawn))],
            "text": pa.array([text for text, *_ in drawn], pa.string()),
            "url": pa.array([url for _, url, _ in drawn], pa.string()),
            "score": pa.array([score for *_, score in drawn], pa.float64()),
        }
    )
)


def missing(value: Any) -> bool:
    return value is None or value != value


def by_bytes(row: dict[str, Any]) -> Hashable | None:
    return row["text"] if (row["text"] or "").strip() else None


def by_columns(*names: str) -> Callable[[dict[str, Any]], Hashable | None]:
    def key(row: dict[str, Any]) -> Hashable | None:
        values = tuple(row[name] for name in names)
        return None if any(map(missing, values)) else values

    return key


WAYS: list[tuple[Any, Callable[[dict[str, Any]], Hashable | None]]] = [
    (None, by_bytes),
    ("url", by_columns("url")),
    ("url,score", by_columns("url", "score")),
    (["score", "url"], by_columns("score", "url")),
]


def expected(documents: list[dict[str, Any]], key: Callable[[dict[str, Any]], Hashable | None]) -> list[str | None]:
    """Return, for each document, the first one with the same key; None if it is the first or has no key."""
    first: dict[Hashable, str] = {}
    found: list[str | None] = []
    for row in documents:
        value = key(row)
        known = None if value is None else first.setdefault(value, row["id"])
        found.append(None if known == row["id"] else known)
    return found


def check(found: Result, table: pa.Table, key: Callable[[dict[str, Any]], Hashable | None], by_key: bool) -> None:
    rows = table.to_pylist()
    of = {row["id"]: row for row in rows}
    wanted = expected(rows, key)
    documents = found.documents.to_pylist()
    assert [row["duplicate_of"] for row in documents] == wanted
    assert [row["kept"] for row in documents] == [each is None for each in wanted]
    for row in (each for each in documents if not each["kept"]):
        mine, theirs = (of[row[name]]["text"] or "" for name in ("id", "duplicate_of"))
        same = mine == theirs or (not mine.strip() and not theirs.strip())
        assert (row["kind"], row["resemblance"]) == (("identical", 1.0) if same else ("same_key", None))
    counts, removed = found.report["counts"], sum(each is not None for each in wanted)
    other = "removed_same_key" if by_key else "removed_same_words"
    assert counts["removed"] == removed == counts["removed_identical"] + counts[other]
    assert counts["removed_near"] == counts["removed_unverified"] == 0


@pytest.mark.parametrize(("columns", "key"), WAYS, ids=lambda each: str(each) if not callable(each) else "")
@settings(max_examples=fewer(25), deadline=None)
@given(table=tables)
def test_what_a_dictionary_finds(columns: Any, key: Callable[..., Any], table: pa.Table) -> None:
    method = Identical(key=columns)
    found = dedup(table, id_column="id", text_columns="text", method=method)
    check(found, table, key, columns is not None)
    if columns is not None:
        assert found.report["counts"]["without_key"] == sum(key(row) is None for row in table.to_pylist())


def fixed_table(number: int = 60) -> pa.Table:
    rows = range(number)
    return pa.table(
        {
            "id": [f"d{row}" for row in rows],
            "text": [["", "x + 1", "x - 1", "  ", "...", "X + 1", "?"][row % 7] for row in rows],
            "url": pa.array([None if row % 11 == 0 else f"u{row % 13}" for row in rows]),
            "score": pa.array([float(row % 2) for row in rows]),
        }
    )


@pytest.mark.parametrize(("columns", "key"), WAYS, ids=lambda each: str(each) if not callable(each) else "")
def test_tasks_and_a_bound_of_memory_find_the_same(columns: Any, key: Callable[..., Any], tmp_path: Path) -> None:
    table, source = fixed_table(), tmp_path / "in"
    source.mkdir()
    pq.write_table(table.slice(0, 20), source / "a.parquet")
    pq.write_table(table.slice(20), source / "b.parquet")
    given: dict[str, Any] = {"id_column": "id", "text_columns": "text", "method": Identical(key=columns)}
    here = dedup(source, **given)
    check(here, table, key, columns is not None)
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=3, slice_bytes=50)
    tasks = dedup(source, output=tmp_path / "out", workers=workers, **given)
    bounded = dedup(source, output=tmp_path / "bounded", memory="500MB", **given)
    for found in (tasks, bounded):
        assert found.documents.to_pylist() == here.documents.to_pylist()
        assert found.pairs.to_pylist() == here.pairs.to_pylist()
        for name, number in here.report["counts"].items():
            assert found.report["counts"][name] == number, name
        assert pq.read_table(tmp_path / "out/kept").num_rows == here.report["counts"]["kept"]


def test_the_priority_decides_which_copy_is_kept() -> None:
    table = pa.table({"text": ["a b", "a b c", "a"], "url": ["u", "u", "u"], "score": [1, 1, 2]})
    for keep, row in (("first", 0), ("longest", 1), ("score:desc", 2), ("score,longest", 1)):
        found = dedup(table, text_columns="text", method=Identical(key="url"), keep=keep)
        assert found.documents["kept"].to_pylist() == [place == row for place in range(3)]


def test_a_reference_set_has_keys_too() -> None:
    table = pa.table({"text": ["a", "b", "c", "d"], "url": ["u", "v", None, "w"]})
    reference = pa.table({"text": ["other"], "url": ["v"]})
    found = dedup(table, against=reference, text_columns="text", method=Identical(key="url"))
    assert found.documents["kept"].to_pylist() == [True, False, True, True]
    assert found.documents["near_reference"].to_pylist() == [None, 0, None, None]
    assert found.documents["reference_resemblance"].to_pylist() == [None] * 4


def test_values_of_within_are_apart() -> None:
    table = pa.table({"text": ["a", "a", "a"], "site": ["x", "y", "x"]})
    recipe = Recipe(method="identical", within="site")
    assert dedup(table, text_columns="text", recipe=recipe).documents["kept"].to_pylist() == [True, True, False]


def test_equal_lines_are_cut_if_their_bytes_are_equal() -> None:
    texts = ["x + 1\nsame line here", "x - 1\nsame line here", "x - 1\nSAME line here"]
    recipe = Recipe(method="identical", unit="line")
    found = dedup({"text": texts}, recipe=recipe)
    assert found.units is not None
    assert found.units["kept"].to_pylist() == [True, True, True, False, False, True]


def test_a_recipe_is_read_back() -> None:
    for key in (None, "url", "domain,title"):
        recipe = Recipe(method=Identical(key=key))
        assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.describe()["key"] == "domain,title"
    assert METHODS["identical"] is Identical


@pytest.mark.parametrize(
    ("settings_", "why"),
    [
        ({"threshold": 0.8}, "threshold 0.8: method identical takes none"),
        ({"shingles": "x"}, "shingles"),
        ({"cluster": "components"}, "method identical and cluster: only equal documents are found"),
        ({"length_ratio": 0.5}, "method identical and length_ratio"),
        ({"ignore_common": 3}, "method identical and ignore_common"),
        ({"shingles": Shingles(fold="digits")}, "method identical and fold"),
        ({"shingles": Shingles(drop_words="en")}, "method identical and drop_words"),
        ({"method": Identical(key="u"), "empty": "equal"}, "key and empty: documents are compared by it"),
        ({"method": Identical(key="u"), "unit": "line"}, "parts of documents have no key"),
    ],
)
def test_settings_without_effect_are_refused(settings_: dict[str, Any], why: str) -> None:
    with pytest.raises((ParameterError, TypeError), match=why):
        Recipe(**{"method": "identical", **settings_})


@pytest.mark.parametrize("key", ["", "u,", "u,u", []])
def test_keys_that_name_no_columns_are_refused(key: Any) -> None:
    with pytest.raises(ParameterError, match="key"):
        Identical(key=key)


def test_columns_that_cannot_be_equal_are_refused() -> None:
    table = pa.table({"text": ["a"], "tags": [["x"]]})
    with pytest.raises(InputError, match="column 'tags' holds list"):
        dedup(table, text_columns="text", method=Identical(key="tags"))
    with pytest.raises(InputError, match="no column 'none'"):
        dedup(table, text_columns="text", method=Identical(key="none"))


def test_an_index_refuses_the_method(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="method identical cannot find candidates in an index"):
        Index.create(tmp_path / "index", method="identical")


def test_no_document_with_a_key_is_worth_a_warning() -> None:
    table = pa.table({"text": ["a", "a"], "url": pa.nulls(2, pa.string())})
    found = dedup(table, text_columns="text", method=Identical(key="url"))
    assert found.warnings[0] == "key url: none of 2 documents has a value, so none is compared"


@pytest.mark.parametrize("method", METHODS)
def test_empty_documents_are_kept_or_equal(method: str) -> None:
    texts = {"text": ["", "a b c d e f", " ", None, "...", "...", "\n"]}
    kept = dedup(texts, recipe=Recipe(method=method)).documents["kept"].to_pylist()
    equal = dedup(texts, recipe=Recipe(method=method, empty="equal")).documents.to_pylist()
    assert kept == [True, True, True, True, True, False, True]
    assert [row["duplicate_of"] for row in equal] == [None, None, 0, 0, None, 4, 0]
    assert {row["kind"] for row in equal} == {None, "identical"}
    recipe = Recipe(method=method, empty="equal")
    assert Recipe.from_json(recipe.to_json()) == recipe and "empty" not in Recipe(method=method).describe()


def test_empty_documents_are_equal_in_tasks(tmp_path: Path) -> None:
    table = pa.table({"id": list("abcd"), "text": ["", "a b c", " ", "\n"]})
    pq.write_table(table, tmp_path / "in.parquet")
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=2, slice_bytes=10)
    given: dict[str, Any] = {"id_column": "id", "recipe": Recipe(empty="equal")}
    found = dedup(tmp_path / "in.parquet", output=tmp_path / "out", workers=workers, **given)
    assert found.documents["duplicate_of"].to_pylist() == [None, None, "a", "a"]
    here = dedup(tmp_path / "in.parquet", **given)
    assert found.report["counts"]["representatives"] == here.report["counts"]["representatives"] == 1


def test_the_command_line_and_explain(tmp_path: Path, capsys: Any) -> None:
    table = pa.table({"id": ["a", "b", "c"], "text": ["one text", "another text", "one text"], "url": ["u", "u", "v"]})
    pq.write_table(table, tmp_path / "in.parquet")
    out = str(tmp_path / "out")
    words = ["dedup", str(tmp_path / "in.parquet"), "--id-column", "id", "--text-column", "text", "--output", out]
    assert main([*words, "--method", "identical", "--key", "url"]) == 0
    printed = capsys.readouterr().out
    assert "0 identical, 1 same key, 0 near" in printed and "equal values of url" in printed
    assert main(["explain", out, "b"]) == 0
    assert "another one, under the same key" in capsys.readouterr().out
    assert main(["plan", "--documents", "1000000", "--text", "1GB", "--method", "identical"]) == 0
    capsys.readouterr()
    assert main([*words, "--key", "url", "--overwrite"]) == 2
    assert "--key is for --method identical" in capsys.readouterr().err


def test_the_page_says_what_was_equal() -> None:
    table = pa.table({"text": ["a", "b", "a"], "url": ["u", "u", "v"]})
    for method, what in ((Identical(), "bytes"), (Identical(key="url"), "values of url")):
        run = dedup(table, text_columns="text", method=method)._run(None)
        assert f"A document is removed when a kept one has the same {what}." in sentences(run, 1)
