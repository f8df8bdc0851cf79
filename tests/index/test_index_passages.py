"""Passages that texts share with documents of an index: the answer of `passages`, whatever became of the index."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.cli.process import main
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.index.sketches import lower_halves

WORDS = [f"Word{number}," for number in range(60)]


def documents(name: str, number: int, seed: int) -> pa.Table:
    """Documents that are put together from a few passages, with some words between them, and one that has none."""
    passages = [random.Random(each).choices(WORDS, k=9) for each in range(12)]
    draw = random.Random(seed)
    texts = []
    for _ in range(number):
        parts = [[*draw.choice(passages), *draw.choices(WORDS, k=draw.randrange(9))] for _ in range(draw.randrange(5))]
        texts.append("\n\n".join(" ".join(part) for part in parts))
    days = [draw.choice(["2026-01-10", "2026-03-02", None]) for _ in texts]
    kinds = [draw.randrange(3) for _ in texts]
    ids = [f"{name}{each}" for each in range(number)]
    return pa.table({"id": ids, "text": texts, "day": days, "kind": pa.array(kinds, pa.int32())})


OPTIONS: list[dict[str, Any]] = [
    {"length": 6},
    {"length": 4, "gap": 0, "max_partners": 3, "ignore_common": 0.4},
    {"length": 5, "gap": 3, "date": "day", "within": "kind"},
]


def assert_as_passages(index: nd.Index, queries: pa.Table, known: pa.Table) -> None:
    """Compare the answers of an index with those of `passages` for the documents that the index has."""
    for options in OPTIONS:
        wanted = nd.passages(queries, known, id_column="id", text_columns="text", engine="cpu", **options)
        found = index.passages(queries, id_column="id", text_columns="text", **options)
        ids = [found.passages.column_names.index(name) for name in ("id", "source_id")]
        assert len(wanted.passages) and found.passages.schema.types[ids[0]] == wanted.passages.schema.types[ids[0]]
        assert found.passages.to_pylist() == wanted.passages.to_pylist()
        assert found.documents.to_pylist() == wanted.documents.to_pylist()
        assert wanted.sources is not None and found.sources is not None
        assert found.sources.to_pylist() == [row for row in wanted.sources.to_pylist() if row["takers"]]
        names = [name for name in wanted.counts if "windows" not in name and "source_" not in name]
        names = [name for name in names if name not in ("tokens_common", "without_value")]  # of all sources, too
        names += ["source_documents", "source_tokens", "source_text_bytes"]
        assert {name: found.counts[name] for name in names} == {name: wanted.counts[name] for name in names}


@pytest.mark.parametrize("unit", ["document", "paragraph"])
def test_the_answer_is_that_of_passages(unit: str, tmp_path: Path) -> None:
    """After adding, removing, replacing, copying, merging and rebuilding."""
    known, more, queries = documents("d", 30, 1), documents("e", 9, 2), documents("q", 5, 3)
    recipe = nd.Recipe(threshold=0.5, unit=nd.Unit(unit), method="exact")
    columns = ["day", "kind"]
    with nd.Index.create(tmp_path / "x", recipe=recipe, columns=columns, keep_tokens=True, engine="cpu") as index:
        index.add(known, id_column="id", text_columns="text", commit_every=11)
        assert_as_passages(index, queries, known)
        index.remove(["d3", "d29"])
        renewed = more.slice(0, 1).set_column(0, "id", [["d5"]])
        index.add(pa.concat_tables([renewed, more]), id_column="id", text_columns="text", replace=True)
        live = known.filter(pa.array([id not in ("d3", "d29", "d5") for id in known["id"].to_pylist()]))
        live = pa.concat_tables([live, renewed, more])
        assert_as_passages(index, queries, live)
        index.copy(tmp_path / "copy")
        index.compact(rebuild=True)
        index.check(all=True)
        assert_as_passages(index, queries, live)
    with nd.Index.open(tmp_path / "copy", engine="cpu") as copy:
        copy.compact()
        assert_as_passages(copy, queries, live)


def test_nothing_of_erased_texts_and_tokens_is_left(tmp_path: Path) -> None:
    texts = ["a secret that nobody else may know", "all the rest is silence and will stay so"]
    tokens = nd.stages.tokenize(nd.stages.utf8(texts), nd.Recipe())
    words = [lower_halves(tokens[row]).tobytes() for row in range(2)]

    def left() -> list[list[bool]]:
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        return [[any(some in file for file in files) for some in (texts[row].encode(), words[row])] for row in range(2)]

    with nd.Index.create(tmp_path / "x", keep_tokens=True) as index:
        index.add({"id": ["s", "r"], "text": texts}, id_column="id")
        assert left() == [[True, True], [True, True]]
        index.remove(["s"], erase=True)
        assert left() == [[False, False], [True, True]]
        assert len(index.passages(texts[0], length=3).passages) == 0


def test_constant_text_takes_no_longer_than_its_length(tmp_path: Path) -> None:
    """Each window is looked for once, however often a text has it."""
    text = "la " * 20_000
    with nd.Index.create(tmp_path / "x", keep_tokens=True) as index:
        index.add({"text": [text, ""]})
        found = index.passages(text, length=100)
        assert found.counts["tokens_common"] and len(found.passages) == 0


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": ["a"], "html": ["<p>He said: <b>to be, or not</b> to be!"]}), "d.parquet")
    for command in ("create x --keep-tokens -q", "add x d.parquet --id-column id --html -q", "create y -q"):
        assert run(["index", *command.split()]) == 0
    query = ["index", "query", "x", "--text", "To be or not to be, that is", "--passages", "--length", "4"]
    assert run([*query, "--json"]) == 0
    passage, done = map(json.loads, capsys.readouterr().out.splitlines())
    assert (passage["source_id"], passage["begin"], passage["end"], passage["share"]) == ("a", 0, 18, 0.75)
    assert done["counts"]["passages"] == 1 and done["sources"] == {"index": "x"}
    assert run([*query, "-o", "p.parquet"]) == run(query) == 0
    assert pq.read_table("p.parquet").to_pylist() == [passage]
    said = capsys.readouterr().out.splitlines()
    assert "looked     runs of 4 tokens or more that 1 document of 8 tokens shares with 1 source of 8 tokens" in said
    assert "written    p.parquet" in said
    for wrong, says in (
        (["query", "y", "--text", "a", "--passages"], "y: keeps no tokens to find passages by"),
        (["query", "x", "--text", "a", "--length", "4"], "--length: is for passages; give --passages, too"),
        (["query", "x", "--text", "a", "--passages", "--threshold", "0.5"], "--passages and --threshold"),
        (["query", "x", "--text", "a", "--passages", "--date", "day"], "the index keeps no column 'day'"),
        (["create", "z", "--tokens", "letters", "--keep-tokens"], "--keep-tokens: passages are runs of words"),
    ):
        assert main(["index", *wrong]) == 2
        error = capsys.readouterr().err.splitlines()
        assert len(error) == 1 and says in error[0]
    assert not Path("z").exists()


def test_mistakes(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "x", keep_tokens=True) as index:
        with pytest.raises(ParameterError, match="tokens: those that the index keeps are words"):
            index.passages("a", tokens="code")
        with pytest.raises(ParameterError, match="encoding: one text is given"):
            index.passages("a", reading=nd.Reading(encoding="latin1"))
        with pytest.raises(InputError, match="a stream"):
            index.passages(pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), []))


def test_queries_without_words_change_no_other_answer(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "x", keep_tokens=True, engine="cpu") as index:
        index.add({"text": ["to be or not to be"]})
        for texts in (["", "to be or not"], ["to be or not", ""], ["", ""]):
            found = index.passages({"text": texts}, length=4).passages
            assert found["id"].to_pylist() == [row for row, text in enumerate(texts) if text]
