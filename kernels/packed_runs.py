"""Decode integers that are stored as runs: a run is one integer repeated, or integers of a fixed width in bits.

    run = header, integer in ceil(width / 8) bytes        repeated header >> 1 times, where header is even
    run = header, (header >> 1) * width bytes             (header >> 1) * 8 integers of `width` bits, where it is odd

A header has 7 bits in each byte, the lowest first, and all bytes but the last have the bit 128 set. Packed integers
begin at the lowest bit of a byte.

Source: the encoding RLE of Apache Parquet (Encodings.md of apache/parquet-format), of levels and of places in a
dictionary.
Cost: one load and one shift for each packed integer.
"""

import numpy as np

from ._cpu import jit

ENDED = "runs that end before their last integer"


def reference(data, width, state, count):
    """Decode the next integers, straight from the definition.

    Parameters
    ----------
    data : array of uint8
        The last run may have more integers than `count`.
    width : int
        Bits of an integer, 0 to 32.
    state : array of int64, shape (2,)
        Where the header of a run begins, and how many of its integers have been taken: zeros at first.
    count : int

    Returns
    -------
    integers : array of uint32, shape (count,)
    state : array of int64, shape (2,)
        The state for the call that returns the integers after these.

    Raises
    ------
    ValueError
        If the data end before the last integer.
    """
    given, found = data.tobytes(), []
    place, taken = state.tolist()
    while len(found) < count:
        start, header, shift = place, 0, 0
        while True:
            if start >= len(given) or shift > 28:
                raise ValueError(ENDED)
            header, shift, start = header | (given[start] & 127) << shift, shift + 7, start + 1
            if given[start - 1] < 128:
                break
        is_packed = header & 1
        size = (header >> 1) * width if is_packed else -(-width // 8)
        length = (header >> 1) * 8 if is_packed else header >> 1
        if start + size > len(given):
            raise ValueError(ENDED)
        bits = int.from_bytes(given[start : start + size], "little")
        more = range(taken, min(length, taken + count - len(found)))
        found += [bits >> width * i & (1 << width) - 1 if is_packed else bits for i in more]
        taken += len(more)
        if taken == length:
            place, taken = start + size, 0
    return np.array(found, np.uint32), np.array([place, taken])


@jit("uint8[::1], int64, int64[::1], uint32[::1]")
def _fill(data, width, state, integers):
    """Fill the integers and bring the state up to date; return whether the data hold them."""
    place, taken, found = state[0], state[1], 0
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while found < len(integers):
        start, header, shift = place, 0, 0
        while True:
            if start >= len(data) or shift > 28:
                return False
            byte = np.int64(data[start])
            header |= (byte & 127) << shift
            shift += 7
            start += 1
            if byte < 128:
                break
        is_packed = header & 1
        size = (header >> 1) * width if is_packed else (width + 7) >> 3
        length = (header >> 1) << 3 if is_packed else header >> 1
        if start + size > len(data):
            return False
        more = min(length - taken, len(integers) - found)
        if is_packed:
            for i in range(more):
                bit = (taken + i) * width
                at, word = start + (bit >> 3), np.uint64(0)
                for j in range(((bit & 7) + width + 7) >> 3):
                    word |= np.uint64(data[at + j]) << np.uint64(8 * j)
                integers[found + i] = (word >> np.uint64(bit & 7)) & mask
        else:
            word = np.uint64(0)
            for j in range(size):
                word |= np.uint64(data[start + j]) << np.uint64(8 * j)
            for i in range(more):
                integers[found + i] = word
        found += more
        taken += more
        if taken == length:
            place, taken = start + size, 0
    state[0], state[1] = place, taken
    return True


def cpu(data, width, state, count):
    """As `reference`."""
    integers, state = np.empty(count, np.uint32), state.copy()
    if not _fill(data, width, state, integers):
        raise ValueError(ENDED)
    return integers, state
