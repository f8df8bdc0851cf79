"""`counts`: how many documents each kept one stands for, in the tables, in kept/, in tasks and in an index."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Index, Recipe, Shingles, Workers, Writing, dedup, open_documents
from neardup_gpu.cli.process import main
from neardup_gpu.errors import ParameterError

RECIPE = Recipe(shingles=Shingles(2), threshold=0.5)


def table(number: int = 90) -> pa.Table:
    """Groups of equal, of nearly equal and of other texts."""
    words = [f"w{row // 9}-{word}" for row in range(number) for word in range(6)]
    texts = [" ".join(words[6 * row : 6 * row + (6 if row % 3 else 5)]) for row in range(number)]
    return pa.table({"id": [f"d{row}" for row in range(number)], "text": texts, "copies": ["of the user"] * number})


def expected(documents: list[dict[str, Any]], texts: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Count, for each kept document, those removed for it that have its words, and the others."""
    copies: Counter[str] = Counter()
    near: Counter[str] = Counter()
    for row in documents:
        if not row["kept"]:
            same = texts[row["id"]].split() == texts[row["duplicate_of"]].split()
            (copies if same else near)[row["duplicate_of"]] += 1
    return {row["id"]: (copies[row["id"]], near[row["id"]]) for row in documents if row["kept"]}


def counted(documents: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    assert all(row["copies"] is row["near"] is None for row in documents if not row["kept"])
    return {row["id"]: (row["copies"], row["near"]) for row in documents if row["kept"]}


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv", "memory"])
@pytest.mark.parametrize("by_tasks", [False, True])
def test_kept_rows_and_tables_have_the_counts(form: str, by_tasks: bool, tmp_path: Path) -> None:
    rows, source = table(), tmp_path / f"in.{form}"
    texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
    if form == "parquet":
        pq.write_table(rows, source)
    elif form == "jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    elif form == "csv":
        source.write_text("\n".join(["id,text,copies", *(",".join(row.values()) for row in rows.to_pylist())]))
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=3, slice_bytes=900) if by_tasks else None
    found = dedup(
        rows if form == "memory" else source,
        id_column="id",
        text_columns="text",
        recipe=RECIPE,
        writing=Writing(counts=True),
        output=tmp_path / "out",
        workers=workers,
    )
    documents = found.documents.to_pylist()
    wanted = expected(documents, texts)
    assert counted(documents) == wanted
    assert sum(copies for copies, _ in wanted.values()) > 0 < sum(near for _, near in wanted.values())
    kept = open_documents(tmp_path / "out/kept", id_column="id", text_columns="text")
    read = {}
    for batch in kept.batches(["copies", "near"]):
        both = zip(batch.columns["copies"].to_pylist(), batch.columns["near"].to_pylist(), strict=True)
        read |= dict(zip(batch.ids.to_pylist(), both, strict=True))
    assert read == wanted


def test_an_index_counts_over_all_that_was_added(tmp_path: Path) -> None:
    rows = table()
    texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
    with Index.create(tmp_path / "index", recipe=RECIPE) as index:
        for start in (0, 40):
            index.add(rows.slice(start, 40 if start == 0 else None), id_column="id", text_columns="text")
        documents = index.decide(counts=True).documents.to_pylist()
        assert counted(documents) == expected(documents, texts)
        assert "copies" not in index.decide().documents.column_names
    words = ["index", "decide", str(tmp_path / "index"), "--counts", "--output", str(tmp_path / "out"), "--quiet"]
    assert main(words) == 0
    assert counted(pq.read_table(tmp_path / "out/documents.parquet").to_pylist()) == counted(documents)


def test_reference_documents_a_second_threshold_and_units() -> None:
    texts = {"text": ["a b c d", "a b c d", "a b c d e", "x y z"]}
    given: dict[str, Any] = {"recipe": RECIPE, "writing": Writing(counts=True)}
    found = dedup(texts, **given)
    assert found.documents["copies"].to_pylist() == [1, None, None, 0]
    assert found.documents["near"].to_pylist() == [1, None, None, 0]
    assert found.at(0.9).documents["near"].to_pylist() == [0, None, 0, 0]
    against = dedup(texts, against={"text": ["a b c d"]}, **given)
    assert against.documents["copies"].to_pylist() == [None, None, None, 0]
    with pytest.raises(ParameterError, match="counts and unit 'line': parts are counted in units"):
        dedup(texts, recipe=Recipe(unit="line"), writing=Writing(counts=True))
    assert "copies" not in dedup(texts, recipe=RECIPE).documents.column_names


def test_skipped_rows_have_no_counts(tmp_path: Path) -> None:
    lines = ['{"id": "a", "text": "one two three"}', "{broken", '{"id": "b", "text": "one two three"}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    words = ["dedup", str(tmp_path / "in.jsonl"), "--id-column", "id", "--text-column", "text", "--on-error", "skip"]
    assert main([*words, "--counts", "--output", str(tmp_path / "out"), "--quiet"]) == 0
    (row,) = [json.loads(line) for line in (tmp_path / "out/kept/in.jsonl").read_text().splitlines()]
    assert row == {"id": "a", "text": "one two three", "copies": 1, "near": 0}
