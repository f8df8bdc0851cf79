"""Damage a small file of every format, and compare what is read of it with an oracle: `python damaging.py --help`.

A mutation is a cut, a changed byte, or the first part of a file joined with the last part of it. What can be read of
each is compared with what pyarrow, json, csv or warcio read. Every mutation is read with both settings of `on_error`.
It ends in documents or in a NeardupError of one line.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import json
import random
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from flat import flat

from neardup_gpu.documents import open_documents
from neardup_gpu.errors import NeardupError

ROWS = 24
TEXTS = [f"text {i} of some words{' and more' * (i % 3)}" for i in range(ROWS)]
TABLE = pa.table({"id": list(range(ROWS)), "text": TEXTS})


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink, row_group_size=6, compression="none", use_dictionary=False)
    return sink.getvalue().to_pybytes()


def arrow(opener: Callable) -> bytes:
    sink = pa.BufferOutputStream()
    with opener(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=6)
    return sink.getvalue().to_pybytes()


def comma_separated() -> bytes:
    lines = [f'{i},"{text}"\n' if i % 3 else f"{i},{text}\n" for i, text in enumerate(TEXTS)]
    lines[7] = '7,"a ""quote"" and\na second line"\n'
    return ("id,text\n" + "".join(lines)).encode()


def json_lines() -> bytes:
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS)).encode()


def warc(packed: bool) -> bytes:
    records = []
    for i, text in enumerate(TEXTS[:8]):
        header = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:x:{i}>\r\nContent-Type: text/plain\r\n"
        record = f"{header}Content-Length: {len(text)}\r\n\r\n{text}\r\n\r\n".encode()
        records.append(gzip.compress(record, mtime=0) if packed else record)
    return b"".join(records)


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


# ------------------------------------------------------------------------------------------------------------ oracles


def unpacked(data: bytes, name: str) -> bytes:
    """The bytes of a file, of a packed one as far as it can be unpacked; of zstd nothing unless all can be."""
    if name.endswith(".gz"):
        found = b""
        while data.lstrip(b"\0"):
            inflate = zlib.decompressobj(31)
            for place in range(len(data)):
                try:
                    found += inflate.decompress(data[place : place + 1])
                except zlib.error:
                    return found
                if inflate.eof:
                    data = data[place + 1 :]
                    break
            else:
                return found
        return found
    if name.endswith(".zst"):
        with contextlib.suppress(OSError), pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return stream.read()
        return b""
    return data


def texts_of_json(data: bytes) -> list[bytes]:
    """The texts of lines that json reads."""
    found = []
    for line in data.split(b"\n"):
        try:
            pairs = json.loads(line.decode("utf-8", "surrogateescape"), strict=False, object_pairs_hook=tuple)
        except ValueError:
            continue
        if not isinstance(pairs, tuple):
            continue
        texts = [value for name, value in pairs if name == "text"] or [None]
        if len(texts) == 1 and (texts[0] is None or isinstance(texts[0], str)):
            found.append((texts[0] or "").encode("utf-8", "surrogateescape"))
    return found


def texts_of_csv(data: bytes) -> list[bytes]:
    """The texts of rows that csv reads in strict mode, up to the first that it does not read."""
    found, names = [], None
    with contextlib.suppress(csv.Error):
        text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
        for row in csv.reader(text, strict=True):
            if not row:
                continue
            if names is None:
                names = row
            elif len(row) == len(names) and names.count("text") == 1:
                found.append(row[names.index("text")].encode("utf-8", "surrogateescape"))
    return found


def texts_of_parquet(data: bytes) -> list[bytes]:
    """The texts of row groups of which pyarrow reads all columns."""
    found: list[bytes] = []
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    except (OSError, pa.ArrowException):
        return []
    for group in range(file.num_row_groups):
        with contextlib.suppress(OSError, pa.ArrowException, UnicodeDecodeError):
            found += texts_in(file.read_row_group(group))
    return found


def texts_of_arrow(data: bytes) -> list[bytes]:
    """The texts of record batches that pyarrow reads and finds valid."""
    found: list[bytes] = []
    with contextlib.suppress(OSError, pa.ArrowException, UnicodeDecodeError, StopIteration):
        if data.startswith(b"ARROW1"):
            file = pa.ipc.open_file(pa.BufferReader(data))
            numbers, read = range(file.num_record_batches), file.get_batch
        else:
            stream = pa.ipc.open_stream(pa.BufferReader(data))
            numbers, read = range(ROWS), lambda _: stream.read_next_batch()
        for number in numbers:
            try:
                batch = read(number)
                batch.validate()
                for column in batch.columns:
                    (column.view(pa.binary()) if column.type == pa.string() else column).validate(full=True)
                found += texts_in(pa.table(batch))
            except (pa.ArrowException, OSError):
                if not data.startswith(b"ARROW1"):
                    break
    return found


def texts_in(table: pa.Table) -> list[bytes]:
    if table.schema.names.count("text") != 1:  # its name was changed
        return []
    return [value or b"" for value in table["text"].cast(pa.binary()).to_pylist()]


def texts_of_warc(data: bytes) -> list[bytes]:
    """An entry for each record that warcio reads whole; a changed header makes it another kind of record."""
    from warcio.archiveiterator import ArchiveIterator

    found = []
    with contextlib.suppress(Exception):  # warcio raises several of its own
        for record in ArchiveIterator(io.BytesIO(data), no_record_parse=True):
            length = int(record.rec_headers.get_header("Content-Length", "-1"))
            if len(record.content_stream().read()) != length:
                break
            found.append(b"record")
    return found


FORMATS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], list[bytes]]]] = {
    "x.parquet": (parquet, texts_of_parquet),
    "x.arrow": (lambda: arrow(pa.ipc.new_file), texts_of_arrow),
    "x.arrows": (lambda: arrow(pa.ipc.new_stream), texts_of_arrow),
    "x.csv": (comma_separated, texts_of_csv),
    "x.jsonl": (json_lines, texts_of_json),
    "x.csv.gz": (lambda: gz(comma_separated()), texts_of_csv),
    "x.jsonl.gz": (lambda: gz(json_lines()), texts_of_json),
    "x.csv.zst": (lambda: zstd(comma_separated()), texts_of_csv),
    "x.jsonl.zst": (lambda: zstd(json_lines()), texts_of_json),
    "x.warc": (lambda: warc(False), texts_of_warc),
    "x.warc.gz": (lambda: warc(True), texts_of_warc),
    "texts/x.txt": (lambda: "\n".join(TEXTS).encode(), lambda data: [data.removeprefix(b"\xef\xbb\xbf")]),
}


# ---------------------------------------------------------------------------------------------------------- mutations


def mutation(good: bytes, number: int, draw: random.Random) -> tuple[str, bytes]:
    """The kind of a mutation and its bytes: the first ones cut or change every byte in turn."""
    how = ("cut", "flip", "joined")[number % 3]
    at = number // 3 % len(good) if number // 3 < len(good) else draw.randrange(len(good))
    if how == "cut":
        return how, good[:at]
    if how == "flip":
        return how, good[:at] + bytes([good[at] ^ 1 << draw.randrange(8)]) + good[at + 1 :]
    return how, good[:at] + good[draw.randrange(len(good)) :]


def outcome(folder: Path, name: str, data: bytes, on_error: str) -> tuple[list[bytes], list[dict], str | None]:
    """The texts that are read, what is skipped, and the message of the error, if there is one."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    source = path.parent if name.startswith("texts/") else path
    options = {} if name.startswith("texts/") or ".warc" in name else {"text_columns": "text"}
    try:
        documents = flat(open_documents, source, on_error=on_error, **options)
        # Where rows are skipped, all columns are read, as kept rows have all of them.
        batches = documents.batches(["id"] if name in ("x.parquet", "x.arrow", "x.arrows") else [])
        texts = [batch.text[i].tobytes() for batch in batches for i in range(batch.num_rows)]
        if ".warc" in name:
            texts = [b"record"] * (len(texts) + sum(documents.left_out_records.values()))
    except NeardupError as error:
        assert "\n" not in str(error)
        return [], [], str(error)
    return texts, documents.skipped.to_pylist() if on_error == "skip" else [], None


def judged(folder: Path, name: str, good: bytes, how: str, data: bytes) -> str:
    """What came of a mutation: "whole", "refused", "skipped", or "WRONG: ..."."""
    oracle = FORMATS[name][1]
    expected = oracle(unpacked(data, name))
    try:
        stopped, _, error = outcome(folder, name, data, "stop")
        texts, skipped, unread = outcome(folder, name, data, "skip")
    except Exception as unexpected:
        return f"WRONG: {unexpected!r}"
    if error is None and (skipped or stopped != texts):
        return "WRONG: read whole, and skipped"
    if unread is not None:
        return "refused" if error is not None else "WRONG: refused only when rows may be skipped"
    at_least = any(row["rows"] is None for row in skipped)
    if error is not None and not skipped:
        return "WRONG: an error, and nothing is skipped"
    if any(row["rows"] is None and row["bytes"] is None and ".warc" not in name for row in skipped):
        return "WRONG: bytes are not counted"
    missing = Counter(expected) - Counter(texts)
    if missing and not skipped:
        return f"WRONG: lost without a word: {next(iter(missing))[:60]!r}"
    lost = sum(row["rows"] or 1 for row in skipped)
    if sum(missing.values()) > lost and not at_least:
        return f"WRONG: {sum(missing.values())} lost, {lost} counted"
    surplus = Counter(texts) - Counter(expected)
    # Where halves were joined within a header, warcio may end at a blank line of another kind.
    if surplus and not skipped and not (".warc" in name and how == "joined"):
        return f"WRONG: read, and no oracle reads it: {next(iter(surplus))[:60]!r}"
    return "skipped" if skipped else "whole"


def run(count: int, seed: int, names: list[str], show: bool = False) -> dict[str, dict[str, int]]:
    """How often each outcome came, of about `count` mutations, by format."""
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            good, draw, found = FORMATS[name][0](), random.Random(f"{name} {seed}"), counts.setdefault(name, Counter())
            for number in range(max(3, count // len(names))):
                number = number if count // len(names) >= 3 * len(good) else draw.randrange(6 * len(good))
                how, data = mutation(good, number, draw)
                said = judged(Path(folder), name, good, how, data)
                found[said.partition(":")[0]] += 1
                if said.startswith("WRONG"):
                    found[f"{said} ({how})"] += 1
                    if show:
                        kept = Path(tempfile.gettempdir(), f"damaged-{number}-{Path(name).name}")
                        kept.write_bytes(data)
                        print(name, how, number, said, kept, flush=True)
    return {name: dict(found) for name, found in counts.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    begun = time.perf_counter()
    counts = run(options.mutations, options.seed, options.formats, show=True)
    print(json.dumps(counts, indent=1), round(time.perf_counter() - begun, 1), "s")
    if options.output is not None:
        from benchmarks.run import machine

        command = f"python tests/support/damaging.py --mutations {options.mutations} --seed {options.seed}"
        total = Counter()
        for found in counts.values():
            total.update(found)
        number = sum(sum(n for said, n in found.items() if "(" not in said) for found in counts.values())
        result = {"machine": machine(), "command": command, "mutations": number, "total": total, "counts": counts}
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    return any("WRONG" in found for found in counts.values())


if __name__ == "__main__":
    sys.exit(main())
