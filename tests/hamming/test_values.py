"""What is taken as fingerprints, and what is not; fingerprints as text."""

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu import hamming
from neardup_gpu.errors import NeardupError, ParameterError
from neardup_gpu.hamming import HammingIndex
from neardup_gpu.hamming.values import hexadecimal, parse_fingerprint


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3), np.zeros(3, np.int64), np.zeros((2, 3), np.uint64), np.zeros((2, 2, 2), np.uint64), 7, [1, -1],
        [2**64], ["a"], [1.0], [(1, 2, 3)], [(1, -2)], [(1, 2), 3], pa.array([1, None], pa.uint64()), pa.array([1, 2]),
        pa.array([[1, 2], None], pa.list_(pa.uint64(), 2)), pa.array([[1, None]], pa.list_(pa.uint64(), 2)),
    ],
)  # fmt: skip
def test_what_is_no_set_of_fingerprints(wrong):
    for call in (lambda: hamming.pairs(wrong, 3), lambda: hamming.join(wrong, [1], 3), lambda: HammingIndex(wrong, 3)):
        with pytest.raises(NeardupError, match="fingerprints:"):
            call()


def test_lists_of_integers_are_fingerprints():
    assert hamming.pairs([0, 2**64 - 1, 1], 1).right.tolist() == [2]
    assert len(hamming.pairs([], 1).left) == 0
    assert hamming.pairs([(1, 0), (5, 2**64 - 1), (1, 2**63)], 1).right.tolist() == [2]


@pytest.mark.parametrize("chunked", [False, True])
def test_what_notebooks_hold_is_fingerprints(chunked):
    values = [0, 2**64 - 1, 1]
    wide = [[7, 0], [0, 2**64 - 1], [7, 1]]
    one, two = pa.array(values, pa.uint64()), pa.array(wide, pa.list_(pa.uint64(), 2))
    if chunked:
        one, two = (pa.chunked_array([array[:2], array[2:]]) for array in (one, two))
    for held in (one, np.array(values, object), tuple(values)):
        assert hamming.pairs(held, 1).right.tolist() == [2]
        assert HammingIndex(held, 1).query(2**64 - 1)[0].tolist() == [1]
    objects = np.empty(3, object)
    objects[:] = [np.array(pair, np.uint64) for pair in wide]
    for held in (two, two.slice(0), objects):
        assert hamming.pairs(held, 1).right.tolist() == [2]
        assert HammingIndex(held, 1).query(7 << 64)[0].tolist() == [0, 2]
    assert hamming.pairs(two.slice(1), 63).right.tolist() == []
    assert hamming.pairs(one.slice(1), 63).right.tolist() == [1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_are_fingerprints(library):
    frames = pytest.importorskip(library)
    series = frames.Series(np.array([0, 2**64 - 1, 1], np.uint64))
    assert hamming.pairs(series, 1).right.tolist() == [2]
    assert HammingIndex(series, 1, ids=series).query(2**64 - 1)[0].tolist() == [2**64 - 1]
    wide = pa.array([[7, 0], [0, 2**64 - 1], [7, 1]], pa.list_(pa.uint64(), 2))
    table = pa.table({"simhash": wide})
    series = (table.to_pandas() if library == "pandas" else frames.from_arrow(table))["simhash"]
    assert hamming.pairs(series, 1).right.tolist() == [2]
    with pytest.raises(ParameterError, match="fingerprints:"):
        hamming.pairs(frames.Series([1, None]), 1)


def test_fingerprints_of_two_lengths_do_not_meet():
    narrow, wide = np.zeros(3, np.uint64), np.zeros((3, 2), np.uint64)
    with pytest.raises(ParameterError, match="a chunk must have 128 bits, got 64"):
        hamming.join(narrow, wide, 3)
    with pytest.raises(ParameterError, match="a chunk must have 64 bits, got 128"):
        hamming.join(wide, narrow, 3)
    with pytest.raises(ParameterError, match="fingerprints must have 64 bits, got 128"):
        HammingIndex(narrow, 3).query(wide)
    with pytest.raises(ParameterError, match="fingerprints must have 128 bits, got 64"):
        HammingIndex(wide, 3).query(narrow)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x0", 0),
        ("0X1f", 31),
        ("0xFFFFFFFFFFFFFFFF", 2**64 - 1),
        ("1234567890123456", 0x1234567890123456),
        ("8f3A0c51d2e4b697", 0x8F3A0C51D2E4B697),
    ],
)
def test_hexadecimal_of_64_bits(text, value):
    assert parse_fingerprint(text, 64) == value
    assert parse_fingerprint(hexadecimal(np.uint64(value)), 64) == value


def test_hexadecimal_of_128_bits():
    assert parse_fingerprint("0x1f", 128) == (0, 31)
    assert parse_fingerprint("000000000000000100000000000000ff", 128) == (1, 255)
    pair = np.array([2**63, 7], np.uint64)
    assert parse_fingerprint(hexadecimal(pair), 128) == (2**63, 7)


@pytest.mark.parametrize(
    "text", ["", "0x", "31", "1f", "0x1g", "-0x1", "0x" + "f" * 17, "f" * 17, "f" * 15, "0x1_f", "²"]
)
def test_what_is_no_fingerprint(text):
    with pytest.raises(ParameterError, match="16 hexadecimal digits"):
        parse_fingerprint(text, 64)
    with pytest.raises(ParameterError, match="32 hexadecimal digits"):
        parse_fingerprint(text if text.startswith("0x") and len(text) < 18 else "f" * 16, 128)
