"""Kernels that decode values of Parquet's pages: examples by hand, and data that end too soon."""

import numpy as np
import pytest

from neardup_gpu.kernels import length_prefixed, packed_runs

START = np.zeros(2, np.int64)
values = pytest.mark.parametrize("values", [length_prefixed.reference, length_prefixed.cpu])
integers = pytest.mark.parametrize("integers", [packed_runs.reference, packed_runs.cpu])


def array(data):
    return np.frombuffer(data, np.uint8)


@values
def test_values_are_found_after_their_lengths(values):
    data = array(b"??\3\0\0\0one\0\0\0\0\5\0\0\0three")
    assert values(data, 2, 3).tolist() == [2, 9, 13, 22]
    assert values(data, 2, 0).tolist() == [2]


@values
@pytest.mark.parametrize(
    "data",
    [b"", b"\1\0\0", b"\2\0\0\0a", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7fabc", b"\0\0\0\0", b"\0\0\0\0\1\0\0\0"],
)
def test_a_value_beyond_its_data(values, data):
    with pytest.raises(ValueError, match=length_prefixed.BEYOND):
        values(array(data), 0, 2)


@integers
def test_runs_by_hand(integers):
    """The example of Encodings.md: 0 to 7 in three bits each; then 300 times 5."""
    data = array(b"\3\x88\xc6\xfa\xd8\4\5")
    found, state = integers(data, 3, START, 3)
    assert (found.tolist(), state.tolist()) == ([0, 1, 2], [0, 3])
    found, state = integers(data, 3, state, 304)
    assert found.tolist() == [3, 4, 5, 6, 7, *[5] * 299] and state.tolist() == [4, 299]


@integers
@pytest.mark.parametrize(
    ("width", "data"),
    [
        (1, b""),
        (1, b"\x80"),
        (1, b"\xff\xff\xff\xff\xff\xff\1"),
        (8, b"\2"),
        (17, b"\2\1\1"),
        (3, b"\3\1\1"),
        (32, b"\xff\xff\xff\x7f\1"),
        (1, b"\2\1"),
        (0, b"\0\0\0"),
    ],
)
def test_runs_that_end_too_soon(integers, width, data):
    with pytest.raises(ValueError, match=packed_runs.ENDED):
        integers(array(data), width, START, 2)
