"""Reading takes time in proportion to the rows, good and bad: counted in calls of functions, not in seconds."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Reading, open_documents
from neardup_gpu.documents import warc_records
from neardup_gpu.documents.csv import _CsvBlock
from neardup_gpu.documents.json_blocks import Block
from neardup_gpu.engine.processors import with_threads


def lines_of_csv(bad):
    return lambda n: b"id,text\n" + b"".join(bad if i % 2 else b"%d,some text\n" % i for i in range(2 * n))


def lines_of_json(bad):
    good = b'{"id": 7, "text": "some text"}\n'
    return lambda n: b"".join(bad if i % 2 else good for i in range(2 * n))


def records(header):
    def written(n):
        text = b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:x:%d>\r\nContent-Type: text/plain\r\n"
        good = text + b"Content-Length: 9\r\n\r\nsome text\r\n\r\n"
        bad = text + header + b"\r\n\r\nsome text\r\n\r\n"
        return b"".join((bad if i % 2 else good) % i for i in range(2 * n))

    return written


def damaged(data, before):
    """A file of which every second occurrence of some bytes is changed."""
    parts = data.split(before)
    return (
        b"".join(part + (before if i % 2 else b"\xff" * len(before)) for i, part in enumerate(parts[:-1])) + parts[-1]
    )


def groups_of_parquet(n):
    sink = pa.BufferOutputStream()
    table = pa.table({"text": ["a text that is the same in all row groups"] * (2 * n)})
    pq.write_table(table, sink, row_group_size=1, compression="none", use_dictionary=False, write_statistics=False)
    return damaged(sink.getvalue().to_pybytes(), b"*\0\0\0a text")


def batches_of_arrow(n):
    sink = pa.BufferOutputStream()
    table = pa.table({"text": ["a text that is the same in all batches..."] * (2 * n)})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return damaged(sink.getvalue().to_pybytes(), b"\0\0\0\0\x29\0\0\0")


INPUTS = {
    "few fields.csv": lines_of_csv(b"1\n"),
    "quotes.csv": lines_of_csv(b'1,"a"b\n'),
    "latin.csv": lines_of_csv(b"1,\xff\n"),
    "cut.jsonl": lines_of_json(b'{"text": \n'),
    "surrogate.jsonl": lines_of_json(b'{"text": "\\ud800"}\n'),
    "type.jsonl": lines_of_json(b'{"text": 7}\n'),
    "twice.jsonl": lines_of_json(b'{"text": "a", "text": "b"}\n'),
    "two.jsonl": lines_of_json(b'{"text": "a"} {"text": "b"}\n'),
    "short.warc": records(b"Content-Length: 3"),
    "beyond the end.warc": records(b"Content-Length: 999999999"),
    "long.warc": records(b"Content-Length: 4000"),
    "no length.warc": records(b"Content-Size: 9"),
    "groups.parquet": groups_of_parquet,
    "batches.arrow": batches_of_arrow,
}


def calls(path):
    """Calls of functions, of Python and C, that one reading makes; the rows that it reads, and those that it skips."""
    documents = open_documents(path, text_columns="text", reading=Reading(on_error="skip"))
    number = 0

    def count(_frame, event, _arg):
        nonlocal number
        number += event in ("call", "c_call")

    with with_threads(1):
        sys.setprofile(count)
        try:
            rows = sum(batch.num_rows for batch, _ in documents._pieces({}, 1 << 24))
        finally:
            sys.setprofile(None)
    return number, rows, len(documents.skipped)


@pytest.mark.parametrize("name", INPUTS)
def test_calls_grow_with_the_rows(name, tmp_path, monkeypatch):
    monkeypatch.setattr(warc_records, "CHUNK", 512)
    numbers, size = [], 40 if name.endswith(("parquet", "arrow")) else 600
    for n in (size, 4 * size):
        path = tmp_path / f"{n} {name}"
        path.write_bytes(INPUTS[name](n))
        number, rows, skipped = calls(path)
        assert rows + skipped >= 2 * n * 0.99
        numbers.append(number)
    assert numbers[1] <= 5 * numbers[0]


@pytest.mark.parametrize(
    "name, kind, what", [("type.jsonl", Block, "lengths"), ("few fields.csv", _CsvBlock, "lines_of")]
)
def test_what_takes_a_whole_block_is_done_once_for_it(name, kind, what, tmp_path, monkeypatch):
    """What would be quadratic if it were done for every row."""
    path, number = tmp_path / name, 0
    path.write_bytes(INPUTS[name](1000))
    function = kind.__dict__[what]
    inner = function.func if what == "lengths" else function

    def counted(*values):
        nonlocal number
        number += 1
        return inner(*values)

    monkeypatch.setattr(*((function, "func") if what == "lengths" else (kind, what)), counted)
    assert calls(path)[2] == 1000
    assert 1 <= number <= 40
