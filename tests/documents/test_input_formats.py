"""The format of files whose names do not say it: `--format`, first bytes, and standard input."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.documents import open_described, standard_input
from neardup_gpu.documents.reading_options import INPUT_FORMATS

TABLE = pa.table({"id": [1, 2, 3], "text": ["to be or not to be", "whether it is nobler", "to be or not to be"]})
IDS = {"id_column": "id"}


def parquet():
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    return sink.getvalue().to_pybytes()


def arrow(opener):
    sink = pa.BufferOutputStream()
    with opener(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue().to_pybytes()


LINES = "".join(f'{{"id": {row["id"]}, "text": "{row["text"]}"}}\n' for row in TABLE.to_pylist()).encode()
RECORD = (
    b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:x:%d>\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%s\r\n\r\n"
)
WARC = b"".join(RECORD % (row["id"], len(row["text"]), row["text"].encode()) for row in TABLE.to_pylist())
CSV = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in TABLE.to_pylist())

TOLD_BY_BYTES = {
    "parquet": parquet(),
    "arrow file": arrow(pa.ipc.new_file),
    "arrow stream": arrow(pa.ipc.new_stream),
    "json lines": LINES,
    "json lines with a mark": b"\xef\xbb\xbf\n" + LINES,
}
AS = {
    "parquet": parquet(),
    "jsonl": LINES,
    "json": LINES,
    "csv": CSV.encode(),
    "tsv": CSV.replace(",", "\t").encode(),
    "arrow": arrow(pa.ipc.new_stream),
}


def ids_of(source, **options):
    return [id for batch in flat(nd.open_documents, source, **options).batches() for id in batch.ids.to_pylist()]


@pytest.mark.quick
@pytest.mark.parametrize("case", TOLD_BY_BYTES)
@pytest.mark.parametrize("name", ["part-00000", "data"])
def test_a_file_without_an_extension_is_read_by_its_first_bytes(name, case, tmp_path):
    (tmp_path / name).write_bytes(TOLD_BY_BYTES[case])
    (tmp_path / "_SUCCESS").write_bytes(b"")
    for source in (tmp_path / name, tmp_path, f"{tmp_path}/*a*"):
        assert ids_of(source, **IDS) == [1, 2, 3]
    flat(nd.dedup, tmp_path, **IDS, output=tmp_path / "out", shingle_size=2)
    assert ids_of(tmp_path / "out", **IDS) == [1, 2]


def test_warc_without_an_extension(tmp_path):
    pytest.importorskip("fastwarc")
    (tmp_path / "part-00000").write_bytes(WARC)
    assert ids_of(tmp_path) == ["<urn:x:1>", "<urn:x:2>", "<urn:x:3>"]


def test_parts_as_spark_writes_them(tmp_path):
    """Empty parts and checksums beside, and another extension where they are compressed."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, data in enumerate([b"", LINES, LINES.replace(b'"id": ', b'"id": 1')]):
        (parts / f"part-{number:05}.gz").write_bytes(gzip.compress(data))
        (parts / f".part-{number:05}.gz.crc").write_bytes(b"crc")
    (parts / "_SUCCESS").write_bytes(b"")
    assert ids_of(parts, **IDS) == [1, 2, 3, 11, 12, 13]
    result = flat(nd.dedup, parts, **IDS, output=tmp_path / "out", shingle_size=2)
    assert result.removed["id"].to_pylist() == [3, 11, 12, 13]
    assert sorted(os.listdir(tmp_path / "out" / "kept")) == ["part-00000.gz", "part-00001.gz", "part-00002.gz"]
    assert ids_of(tmp_path / "out", **IDS) == [1, 2]
    flat(nd.dedup, parts, **IDS, output=tmp_path / "again", shingle_size=2, output_format="parquet")
    assert ids_of(tmp_path / "again", **IDS) == [1, 2]
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    recipe = nd.Recipe(shingles=nd.Shingles(size=2))
    flat(nd.dedup, parts, **IDS, recipe=recipe, output=tmp_path / "tasks", workers=workers)
    assert ids_of(tmp_path / "tasks", **IDS) == [1, 2]


def test_files_without_an_extension_beside_others(tmp_path):
    """Beside texts, a file of settings is not read; beside lines, a part is."""
    (tmp_path / "a.txt").write_text("to be")
    (tmp_path / "settings").write_text('{"a": 1}')
    documents = nd.open_documents(tmp_path)
    assert documents.format == "text" and documents.left_out["other_kinds"]["first"] == [str(tmp_path / "settings")]
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(LINES)
    (folder / "part-1").write_bytes(LINES.replace(b'"id": ', b'"id": 1'))
    assert ids_of(folder, **IDS) == [1, 2, 3, 11, 12, 13]


def test_a_named_text_without_an_extension_is_one_text(tmp_path):
    (tmp_path / "Makefile").write_text("all: {this} [and] that")
    assert nd.open_documents(tmp_path / "Makefile").format == "text"


@pytest.mark.quick
@pytest.mark.parametrize("name", AS)
@pytest.mark.parametrize("file", ["part-00000", "part-00000.gz", "d.data", "d.txt"])
def test_a_given_format_holds_whatever_the_name(file, name, tmp_path):
    if file.endswith(".gz") and name in ("parquet", "arrow"):
        pytest.skip("these are not compressed as a whole")
    path = tmp_path / file
    path.write_bytes(gzip.compress(AS[name]) if file.endswith(".gz") else AS[name])
    options = {**IDS, "input_format": name}
    assert ids_of(path, **options) == ids_of(f"{tmp_path}/d*" if file[0] == "d" else tmp_path, **options) == [1, 2, 3]
    flat(nd.dedup, path, **options, output=tmp_path / "out", shingle_size=2)
    assert ids_of(tmp_path / "out", **options, glob="*") == [1, 2]
    assert cli.main(["explain", str(tmp_path / "out"), "3"]) == 0


def test_texts_and_pages_of_any_name(tmp_path):
    (tmp_path / "a.log").write_text("<p>to be<script>or not")
    for name, words in (("text", ["<p>to", "be<script>or", "not"]), ("html", ["to", "be"])):
        (batch,) = nd.open_documents(tmp_path / "a.log", reading=nd.Reading(input_format=name)).batches()
        assert batch.text[0].tobytes().decode().split() == words


def test_a_folder_gives_what_fits_the_format(tmp_path):
    for name in ("a.csv", "part-1", "b.txt", "c.data"):
        (tmp_path / name).write_text(CSV)
    documents = nd.open_documents(tmp_path, reading=nd.Reading(input_format="csv"))
    assert documents.num_files == 2
    assert [Path(name).name for name in documents.left_out["other_kinds"]["first"]] == ["b.txt", "c.data"]
    assert nd.open_documents(tmp_path, reading=nd.Reading(input_format="csv", glob="*")).num_files == 4


def test_options_without_effect_are_refused(tmp_path):
    """A pattern needs a folder, and a delimiter and a header need CSV, in the input or in the reference set.

    Markers of missing values need a compared column without a type, and a bound of documents needs lines or texts.
    """
    for name, folder in (("a.jsonl", tmp_path), ("b.csv", tmp_path / "in")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(AS[name.partition(".")[2]])
    for option in ({"glob": "*"}, {"delimiter": ","}, {"header": False}, {"null_values": "-"}):
        with pytest.raises(nd.errors.ParameterError, match=f"^{next(iter(option))}: no .* is read; leave it out"):
            nd.dedup(tmp_path / "a.jsonl", reading=nd.Reading(**option))
        with pytest.raises(nd.errors.ParameterError, match="is read; leave it out"):
            nd.open_documents(tmp_path / "a.jsonl", reading=nd.Reading(**option))
    for kind in ("parquet", "arrow"):
        (tmp_path / f"a.{kind}").write_bytes(AS[kind])
    table = pq.read_table(tmp_path / "a.parquet")
    for option in ({"glob": "*"}, {"delimiter": ","}, {"header": False}):
        with pytest.raises(nd.errors.ParameterError, match=f"^{next(iter(option))}: no .* is read; leave it out"):
            nd.dedup(table, reading=nd.Reading(**option))
    for option in ({"null_values": "-"}, {"max_document_bytes": 9}):
        for source in (tmp_path / "a.parquet", tmp_path / "a.arrow", table):
            with pytest.raises(nd.errors.ParameterError, match=f"^{next(iter(option))}: no .* is read; leave it out"):
                nd.dedup(source, keep="id", reading=nd.Reading(**option))
    nd.dedup(tmp_path / "a.jsonl", keep="id", reading=nd.Reading(null_values="-", max_document_bytes=99))
    options = nd.Reading(glob="*", delimiter=",", id_column="id", text_columns="text")
    assert nd.dedup(tmp_path / "a.jsonl", against=tmp_path / "in", reading=options).kept.num_rows == 0


def test_no_such_format():
    with pytest.raises(nd.errors.ParameterError, match=r"^input_format 'xls' is not one of parquet, jsonl"):
        nd.open_documents("x", reading=nd.Reading(input_format="xls"))


class Stream:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def piped(monkeypatch):
    def pipe(data):
        monkeypatch.setattr(sys, "stdin", Stream(data))

    yield pipe
    standard_input.remove()


@pytest.mark.quick
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize("case", TOLD_BY_BYTES)
def test_standard_input(case, pack, piped, tmp_path):
    if pack is not bytes and "json" not in case:
        pytest.skip("these are not compressed as a whole")
    piped(pack(TOLD_BY_BYTES[case]))
    assert ids_of("-", **IDS) == [1, 2, 3]
    assert ids_of("-", **IDS) == [1, 2, 3]  # in one process it can be read again
    flat(nd.dedup, "-", **IDS, output=tmp_path / "out", shingle_size=2)
    (kept,) = os.listdir(tmp_path / "out" / "kept")
    assert kept.startswith("stdin.") and kept.endswith(".gz") == (pack is not bytes)
    assert ids_of(tmp_path / "out", **IDS) == [1, 2]


@pytest.mark.parametrize("name", AS)
def test_standard_input_of_a_given_format(name, piped):
    piped(AS[name])
    assert ids_of("-", **IDS, input_format=name) == [1, 2, 3]


def test_standard_input_whose_format_nobody_says(piped):
    for data in (CSV.encode(), b"", b"to be or not"):
        piped(data)
        with pytest.raises(nd.errors.InputError, match=r"^standard input: .* name it with input_format=") as caught:
            ids_of("-")
        assert all(name in str(caught.value) for name in INPUT_FORMATS)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(nd.errors.InputError, match="standard input: there is none"):
        nd.dedup("-")


def test_jobs_take_standard_input_alike(piped, tmp_path):
    piped(LINES)
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    report = flat(nd.dedup, "-", **IDS, output=tmp_path / "tasks", workers=workers).report
    assert report["counts"]["documents"] == 3 and report["input"]["paths"] == ["-"]
    assert flat(nd.dedup, TABLE, **IDS, against="-", only_against=True, shingle_size=2).removed.num_rows == 3
    with nd.Index.create(tmp_path / "index") as index:
        assert flat(index.add, "-", **IDS).documents == 3
        assert flat(index.query, ["-"], **IDS)["id"].to_pylist()[:2] == [1, 3]
    with pytest.raises(nd.errors.InputError, match="came from standard input"):
        open_described(report["input"])


@pytest.mark.quick
def test_the_command_reads_a_pipe_and_leaves_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "neardup_gpu", "dedup", "-", "--dry-run", "--id-column", "id", "--json"]
    done = subprocess.run(command, input=LINES, env=environment, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0 and b'"documents": 3' in done.stdout
    done = subprocess.run(command, input=CSV.encode(), env=environment, capture_output=True, cwd=tmp_path)
    assert done.returncode == 2 and b"name it with --format" in done.stderr
    done = subprocess.run([*command, "--format", "csv"], input=CSV.encode(), env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / "tmp") == []
