"""Sources that several threads decode: the rows, errors and kept files are those of one thread, in order."""

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Reading
from neardup_gpu.documents import ahead, csv as csv_reader, jsonlines, open_documents, parquet as parquet_reader, passes
from neardup_gpu.engine.processors import with_threads
from neardup_gpu.errors import InputError

ROWS = 400
TEXTS = [f"text {i} " + "word " * (i * 37 % 90) for i in range(ROWS)]
IDS = [f"id {i:03}" for i in range(ROWS)]
KEEP = np.random.default_rng(5).random(ROWS) < 0.6
KINDS = ["parquet", "jsonl", "jsonl.gz", "jsonl.zst", "csv", "csv.gz", "arrow", "parquet files", "jsonl files", "texts"]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch, tmp_path):
    """Bounds so small that this little text is many steps; afterwards no thread is left, and no file is open."""
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(parquet_reader, "PIECE_BYTES", 3000)
    monkeypatch.setattr(passes, "SMALL_BYTES", 600)
    monkeypatch.setattr(passes, "TOGETHER_BYTES", 300)
    yield
    assert "neardup-ahead" not in [thread.name for thread in threading.enumerate()]
    assert open_files(tmp_path) == []


def open_files(folder):
    """Files below a folder that this process has open."""
    here = Path("/proc/self/fd")
    links = [os.readlink(each) for each in here.iterdir() if os.path.lexists(each)] if here.is_dir() else []
    return [link for link in links if link.startswith(str(folder))]


def made(folder, kind):
    """The documents in files of a kind: a path."""
    path, table = folder / f"source.{kind}", pa.table({"id": IDS, "text": TEXTS})
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in zip(IDS, TEXTS, strict=True)]
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=13, compression="none", write_page_checksum=True)
    elif kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=13)
    elif kind.startswith("jsonl") and " " not in kind:
        packed(path, "".join(lines).encode())
    elif kind.startswith("csv"):
        rows = ["id,text\n"] + [f'{name},"{text}"\n' for name, text in zip(IDS, TEXTS, strict=True)]
        packed(path, "".join(rows).encode())
    else:
        path = folder / kind
        path.mkdir()
        for start in range(0, ROWS, 1 if kind == "texts" else 9):
            name = path / f"{start:03}"
            if kind == "texts":
                name.with_suffix(".txt").write_text(TEXTS[start])
            elif kind == "jsonl files":
                name.with_suffix(".jsonl").write_text("".join(lines[start : start + 9]))
            else:
                pq.write_table(table.slice(start, 9), name.with_suffix(".parquet"))
    return path


def packed(path, data):
    with pa.output_stream(str(path), compression={".gz": "gzip", ".zst": "zstd"}.get(path.suffix)) as stream:
        stream.write(data)


def read(documents, **options):
    ids, texts = [], []
    for batch in documents.batches(**options):
        ids += batch.ids.to_pylist()
        texts += [batch.text[i].tobytes().decode() for i in range(batch.num_rows)]
    return ids, texts


def files_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same(tmp_path, kind):
    path = made(tmp_path, kind)
    seen = []
    for threads in (1, 5):
        with with_threads(threads):
            documents = open_documents(path, id_column=None if kind == "texts" else "id")
            ids, texts = read(documents, max_bytes=1500)
            assert texts == TEXTS
            assert len(ids) == ROWS if kind == "texts" else ids == IDS
            places = {name: column.to_pylist() for name, column in documents.places().items()}
            documents.write_kept(tmp_path / f"kept{threads}", KEEP)
            seen.append((ids, places, files_below(tmp_path / f"kept{threads}")))
    assert seen[0] == seen[1]
    kept = open_documents(tmp_path / "kept5", id_column=None if kind == "texts" else "id")
    assert read(kept)[1] == [text for text, stays in zip(TEXTS, KEEP, strict=True) if stays]


def damaged(folder, kind):
    """A path whose documents are wrong from about row 250 on, and again in row 300."""
    path = made(folder, kind)
    if kind == "parquet":
        data = bytearray(path.read_bytes())
        for row in (250, 300):
            place = data.index(f"text {row} word".encode())
            data[place] ^= 1
        path.write_bytes(data)
    elif kind in ("jsonl", "csv"):
        lines = path.read_bytes().split(b"\n")
        for row in (250, 300):
            lines[row + (kind == "csv")] = b'{"id": "x", "text": 7}' if kind == "jsonl" else b"a,b,c"
        path.write_bytes(b"\n".join(lines))
    elif kind == "jsonl.gz":
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 2 // 3])
    elif kind == "parquet files":
        (path / "252.parquet").write_bytes((path / "252.parquet").read_bytes()[:-200] + b"PAR1")
    else:
        with open(path / "252.jsonl", "a") as file:
            file.write('{"id": "x", "text": 7}\n')
    return path


DAMAGED = ["parquet", "jsonl", "csv", "jsonl.gz", "jsonl files"]


@pytest.mark.parametrize("kind", DAMAGED)
def test_errors_come_in_their_place(tmp_path, kind):
    path, seen = damaged(tmp_path, kind), []
    for threads in (1, 2, 5):
        texts = []
        with with_threads(threads):
            documents = open_documents(path, id_column="id")
            with pytest.raises(InputError) as error:
                for batch in documents.batches(max_bytes=1):
                    texts += [batch.text[i].tobytes().decode() for i in range(batch.num_rows)]
        seen.append((str(error.value), texts))
        assert 200 < len(texts) <= 261 or kind == "jsonl.gz"
        assert texts == TEXTS[: len(texts)]
    assert seen[0] == seen[1] == seen[2]
    assert {
        "parquet": "checksum",
        "jsonl": "line 251",
        "csv": "row 251",
        "jsonl.gz": "",
        "jsonl files": "252.jsonl line 10",
    }[kind] in seen[0][0]


@pytest.mark.parametrize("kind", [*DAMAGED, "parquet files"])
def test_what_cannot_be_read_is_left_out_in_order(tmp_path, kind):
    path, seen = damaged(tmp_path, kind), []
    for threads in (1, 2, 5):
        with with_threads(threads):
            documents = open_documents(path, id_column="id", reading=Reading(on_error="skip"))
            ids, _ = read(documents, max_bytes=1000)
            documents.write_kept(tmp_path / f"kept{threads}", np.ones(len(ids), bool))
            rewritten = files_below(tmp_path / f"kept{threads}")
            seen.append((ids, documents.skipped.to_pylist(), documents.places()["row"].to_pylist(), rewritten))
        assert len(ids) == ROWS if kind == "jsonl files" else 200 < len(ids) < ROWS
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][1]) == {"parquet": 2, "jsonl": 2, "csv": 2}.get(kind, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_early_leaves_nothing_behind(tmp_path, kind):
    documents = open_documents(made(tmp_path, kind))
    with with_threads(4):
        batches = documents.batches(max_bytes=1)
        next(batches)
        batches.close()
    assert read(documents)[1] == TEXTS


def test_an_output_that_cannot_be_written_ends_all_threads(tmp_path):
    documents = open_documents(made(tmp_path, "parquet"))
    read(documents)

    def full(done, total):
        if done > 200:
            raise OSError(28, "No space left on device")

    with with_threads(4), pytest.raises(Exception, match="No space left"):
        documents.write_kept(tmp_path / "kept", KEEP, full)


def test_a_slow_reader_bounds_what_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_reader, "PIECE_BYTES", 1 << 20)
    monkeypatch.setattr(ahead, "AHEAD_BYTES", 2 << 20)
    random = np.random.default_rng(1)
    texts = [random.integers(97, 123, 1 << 20, np.uint8).tobytes().decode() for _ in range(60)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "x.parquet", row_group_size=1, use_dictionary=False)
    del texts
    documents, most = open_documents(tmp_path / "x.parquet"), 0
    before = pa.total_allocated_bytes()
    with with_threads(3):
        for number, _ in enumerate(documents.batches(max_bytes=1 << 20)):
            if number % 20 == 3:
                time.sleep(0.1)
                most = max(most, pa.total_allocated_bytes() - before)
    # 6 MiB wait; each of three threads holds a result, its pages before and after decompression, and what it has from
    # the file; then there are the batches that are being joined, given, and used.
    assert most < 30 << 20
    assert number == 59
