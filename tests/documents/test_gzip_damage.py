"""Damaged gzip files: all rows before the damage are read, and what follows them is counted in bytes."""

import gzip
import logging
import zlib

import numpy as np
import pytest

from neardup_gpu import Reading, open_documents
from neardup_gpu.errors import InputError

RANDOM = np.random.default_rng(5)
ROWS = [f"text {i} {RANDOM.bytes(8).hex()}" for i in range(500)]
PLAIN = {
    "jsonl": "".join(f'{{"text": "{row}"}}\n' for row in ROWS).encode(),
    "csv": ("text\n" + "".join(f'"{row}"\n' for row in ROWS)).encode(),
}


def rescued(packed):
    """What zlib unpacks of some bytes, one after another."""
    inflate, found = zlib.decompressobj(31), b""
    for byte in packed:
        try:
            found += inflate.decompress(bytes([byte]))
        except zlib.error:
            break
    return found


def read(path, on_error="skip"):
    documents = open_documents(path, reading=Reading(on_error=on_error))
    texts = [batch.text[i].tobytes().decode() for batch in documents.batches() for i in range(batch.num_rows)]
    return texts, documents.skipped.to_pylist() if on_error == "skip" else []


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("place", [20, 60, 1000, 5000, -9, -5, -1])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_rows_before_the_damage(kind, place, damage, tmp_path):
    packed = bytearray(gzip.compress(PLAIN[kind]))
    if damage == "cut":
        del packed[place:]
    else:
        packed[place] ^= 0x55
    path = tmp_path / f"d.{kind}.gz"
    path.write_bytes(packed)
    expected = rescued(packed).splitlines(keepends=True)[kind == "csv" :]
    whole = sum(line.endswith(b"\n") for line in expected)
    texts, skipped = read(path)
    assert len(texts) + sum(row["rows"] or 0 for row in skipped) == whole
    if damage == "cut":
        assert texts == ROWS[:whole]
    (last,) = [row for row in skipped if row["rows"] is None]
    assert last["row"] == whole + 1
    assert 0 <= last["bytes"] <= len(packed) + 100
    with pytest.raises(InputError, match="gzip stream" if damage == "cut" or place < 0 else r"\.gz"):
        read(path, "stop")  # a changed byte may also change rows before unpacking fails


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("zeros", [1, 512, 200_000])
def test_zeros_at_the_end(kind, zeros, tmp_path, caplog):
    path = tmp_path / f"d{zeros}.{kind}.gz"
    path.write_bytes(gzip.compress(PLAIN[kind]) + bytes(zeros))
    with caplog.at_level(logging.WARNING, "neardup_gpu"):
        assert read(path, "stop") == (ROWS, [])
    (said,) = caplog.messages
    assert f"d{zeros}.{kind}.gz: ends in {zeros:,} zero" in said
    path.write_bytes(gzip.compress(PLAIN[kind]) + bytes(zeros) + gzip.compress(PLAIN[kind]))
    with pytest.raises(InputError, match="between members of the gzip stream"):
        read(path, "stop")
    texts, skipped = read(path)
    assert texts == ROWS
    assert [row["rows"] for row in skipped] == [None]


def test_bytes_that_are_no_gzip_after_a_member(tmp_path):
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(PLAIN["jsonl"]) + b"more bytes that are no gzip")
    with pytest.raises(InputError, match=r"the gzip stream is damaged: incorrect header check"):
        read(path, "stop")
    texts, skipped = read(path)
    assert texts == ROWS
    assert [(row["rows"], row["bytes"]) for row in skipped] == [(None, 27)]
