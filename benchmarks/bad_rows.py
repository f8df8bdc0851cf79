"""Measure the cost of rows that cannot be read: n good and n bad rows against 2n good ones, and 4n against n.

`python -m benchmarks.bad_rows --rows 20000 --output FILE` runs the whole job of each input, with `on_error="skip"`, and
takes the processor's time, least of several runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import neardup_gpu as nd

from .run import machine

WORDS = " of the words that a document of usual length has, one after another," * 12


def csv_rows(bad: bytes) -> Callable[[int, int], bytes]:
    def made(num_good: int, num_bad: int) -> bytes:
        return b"id,text\n" + interleaved(lambda i: f'{i},"text {i}{WORDS}"\n'.encode(), bad, num_good, num_bad)

    return made


def json_rows(bad: bytes) -> Callable[[int, int], bytes]:
    def made(num_good: int, num_bad: int) -> bytes:
        return interleaved(
            lambda i: json.dumps({"id": i, "text": f"text {i}{WORDS}"}).encode() + b"\n", bad, num_good, num_bad
        )

    return made


def records(num_good: int, num_bad: int) -> bytes:
    header = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:x:{}>\r\nContent-Type: text/plain\r\n"
    header += "Content-Length: "

    def good(i: int) -> bytes:
        text = f"text {i}{WORDS}"
        return f"{header.format(i)}{len(text)}\r\n\r\n{text}\r\n\r\n".encode()

    bad = f"{header.format('bad')}99999999999\r\n\r\ntext\r\n\r\n".encode()
    return interleaved(good, bad, num_good, num_bad)


def batches(num_good: int, num_bad: int) -> bytes:
    """A record batch for each row; in a bad one, an offset leads outside."""
    sink = pa.BufferOutputStream()
    texts = [f"text {i:08}{WORDS}" for i in range(num_good + num_bad)]
    with pa.ipc.new_file(sink, pa.schema([("text", pa.string())])) as writer:
        for text in texts:
            writer.write_batch(pa.record_batch({"text": [text]}))
    data, offset = sink.getvalue().to_pybytes(), bytes(4) + len(texts[0]).to_bytes(4, "little")
    if num_bad == 0:
        return data
    parts = data.split(offset)
    each = (len(parts) - 1) // len(texts)  # how often it stands in a batch
    ends = [b"\xff" * 8 if i // each % 2 else offset for i in range(len(parts) - 1)]
    return b"".join(map(bytes.__add__, parts, [*ends, b""]))


def interleaved(good: Callable[[int], bytes], bad: bytes, num_good: int, num_bad: int) -> bytes:
    if num_bad == 0:
        return b"".join(map(good, range(num_good)))
    return b"".join(good(i) + bad for i in range(num_good))


INPUTS: dict[str, tuple[str, Callable[[int, int], bytes]]] = {
    "CSV, too few fields": ("x.csv", csv_rows(b"1\n")),
    "CSV, text after a closing quote": ("x.csv", csv_rows(b'1,"a"b\n')),
    "JSON lines, cut off": ("x.jsonl", json_rows(b'{"text": \n')),
    "JSON lines, a number for a text": ("x.jsonl", json_rows(b'{"text": 7}\n')),
    "WARC, a length beyond the end": ("x.warc", records),
    "Arrow, damaged batches": ("x.arrow", batches),
}


def seconds(folder: Path, name: str, data: bytes, runs: int) -> float:
    (folder / name).write_bytes(data)
    least = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        nd.dedup(
            folder / name,
            text_columns=None if name.endswith(".warc") else "text",
            reading=nd.Reading(on_error="skip"),
            writing=nd.Writing(check=0),
        )
        least = min(least, time.process_time() - begun)
    return round(least, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    n, rows = options.rows, []
    with tempfile.TemporaryDirectory() as folder:
        for what, (name, made) in INPUTS.items():
            n = options.rows if name != "x.arrow" else options.rows // 10
            all_good, half, small = (
                seconds(Path(folder), name, made(*numbers), options.runs)
                for numbers in ((2 * n, 0), (n, n), (n // 4, n // 4))
            )
            row = {"what": what, "n": n, "seconds_2n_good": all_good, "seconds_n_good_n_bad": half}
            row |= {
                "seconds_quarter": small,
                "to_good": round(half / all_good, 2),
                "to_quarter": round(half / small, 2),
            }
            rows.append(row)
            print(row, flush=True)
    if options.output is not None:
        command = f"python -m benchmarks.bad_rows --rows {options.rows} --runs {options.runs}"
        options.output.write_text(json.dumps({"machine": machine(), "command": command, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
