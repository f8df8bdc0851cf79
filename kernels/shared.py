"""Shared elements: which rows have elements in common, and how many.

All (element, row) are put in order, so that the rows of an element, its bucket, lie together; the pairs of each bucket
are written down, put in order, and runs of the same pair are counted.

A bucket of many rows has too many pairs. Its rows are compared by the rule of `pairtables`: with its rows numbered from
0 by priority, row j is compared with row i < j exactly when i < bucket_probe or j < bucket_limit. A bucket of more than
`bucket_limit` rows is large; its rows are crowded, and the pairs that it leaves out are counted.

Source: Broder 2000, section 2: the second and third of four phases, there by sorting and merging files.
Cost: a sort of one (element, row) table, 24 bytes per element, and of the pairs of all buckets, 8 bytes each.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np

from ._buckets import PAIRS_AT_ONCE, bucket_pairs, buckets_of, compare_buckets, pairs_of_buckets, sort_by_key
from ._constants import constant
from ._cpu import jit
from ._launch import bounds_of, check_rows, namespace, on_device
from ._matches import halves


def reference(values, offsets, least, bucket_limit, bucket_probe):
    """Pairs of rows, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Elements of each row, each once, in any order; rows in priority order, the best first.
    offsets : array of int64, shape (rows + 1,)
    least : int
        Shared elements that a pair needs, 1 or more; or all of a row, if it has fewer.
    bucket_limit, bucket_probe : int
        The first `bucket_limit` rows of a bucket are compared all with all, each later row with the first
        `bucket_probe`.

    Returns
    -------
    left, right : arrays of int64, shape (pairs,)
        left < right, in lexicographic order, each pair once.
    counts : array of int64, shape (pairs,)
        In how many buckets each pair was compared: elements shared, but for those whose bucket left the pair out.
    num_large : int
        Buckets above the limit.
    num_uncompared : int
        Pairs of rows of such a bucket that it did not compare, over all buckets.
    crowded : array of bool, shape (rows,)
        Whether each row is in such a bucket.
    """
    table: dict[int, list[int]] = {}
    for row, (start, stop) in enumerate(pairwise(offsets.tolist())):
        for value in values[start:stop].tolist():
            table.setdefault(value, []).append(row)
    pairs, *left_out = pairs_of_buckets(table.values(), bucket_limit, bucket_probe, len(offsets) - 1)
    sizes = np.diff(offsets).tolist()
    found = sorted((a, b, count) for (a, b), count in Counter(pairs).items() if count >= min(least, sizes[a], sizes[b]))
    return *np.array(found, np.int64).reshape(-1, 3).T.copy(), *left_out


@jit("int64[::1]")
def _row_numbers(offsets):
    rows = np.empty(offsets[-1] - offsets[0], np.uint32)
    for row in range(len(offsets) - 1):
        rows[offsets[row] - offsets[0] : offsets[row + 1] - offsets[0]] = np.uint32(row)
    return rows


def _row_bits(num_rows, num_elements):
    """Bits of a row number, so that a pair is one word."""
    check_rows(num_rows, "documents")
    check_rows(num_elements, "elements")
    return max(1, num_rows.bit_length())


def _needed(xp, sizes, least, bits, packed):
    """How many elements each packed pair has to share, by the `sizes` of rows."""
    left, right = packed >> np.uint64(bits), packed & np.uint64((1 << bits) - 1)
    return xp.minimum(xp.minimum(sizes[left.astype(np.int64)], sizes[right.astype(np.int64)]), least)


def _ends(xp, packed):
    """Return whether each of some packed pairs in order is the last of its run."""
    ends = xp.ones(len(packed), bool)
    ends[:-1] = packed[1:] != packed[:-1]
    return ends


def _counted(xp, packed, needed=None):
    """Return the distinct ones of some packed pairs, in order, and how often each is there.

    Given `needed`, a function of packed pairs, only those that are there as often. On a device the host waits once.
    """
    packed.sort()
    ends = _ends(xp, packed)
    if needed is None:
        ends = xp.flatnonzero(ends)
        counts = xp.zeros(len(ends) + 1, np.int64)
        counts[1:] = ends + 1
        return packed[ends], xp.diff(counts)
    firsts = xp.arange(1, len(packed) + 1) - needed(packed)
    ends = xp.flatnonzero(ends & (firsts >= 0) & (packed[xp.maximum(firsts, 0)] == packed))
    packed, found = packed[ends], packed
    return packed, ends + 1 - xp.searchsorted(found, packed)


_CHUNK = 1 << 22  # elements whose pairs are counted at a time


def _sum_up(xp, parts):
    """The pairs of all parts, counted together."""
    packed, counts = (xp.concatenate(list(each)) for each in zip(*parts, strict=True))
    parts.clear()
    order = xp.argsort(packed, kind="stable")
    packed, counts = packed[order], counts[order]
    ends = xp.flatnonzero(_ends(xp, packed))
    sums = xp.zeros(len(ends) + 1, np.int64)
    sums[1:] = xp.cumsum(counts)[ends]
    return packed[ends], xp.diff(sums)


def _merge_later(xp, parts):
    """Count the parts together whenever the last are as large as the first, so that repeats take no room."""
    while len(parts) > 1 and len(parts[-1][0]) >= len(parts[-2][0]):
        last = [parts.pop(), parts.pop()]
        parts.append(_sum_up(xp, last[::-1]))


def _of_parts(xp, parts, needed):
    """The pairs of all parts, counted together: those that are there as often as is `needed`, unless it is None."""
    packed, counts = _sum_up(xp, parts)
    if needed is None:
        return packed, counts
    enough = xp.flatnonzero(counts >= needed(packed))
    return packed[enough], counts[enough]


def cpu(values, offsets, least, bucket_limit, bucket_probe):
    """As `reference`: buckets as equal neighbours of the sorted table, some million elements at a time.

    Raises
    ------
    ResourceError
        If there are 2**32 - 1 rows or elements, or more.
    """
    values, crowded = values[offsets[0] : offsets[-1]], np.zeros(len(offsets) - 1, bool)
    bits = _row_bits(len(crowded), len(values))
    shift = np.uint64(64 - max(1, int(values.max(initial=0)).bit_length()))  # small images fill the words then
    keys, rows, runs = sort_by_key(values << shift, _row_numbers(offsets))
    parts = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
    num_large = num_uncompared = first = 0
    while first < len(runs) - 1:
        last = max(first + 1, int(np.searchsorted(runs, runs[first] + _CHUNK, side="right")) - 1)
        packed, large, uncompared = bucket_pairs(
            keys, rows, runs[first : last + 1], bits, bucket_limit, bucket_probe, crowded
        )
        num_large += large
        num_uncompared += uncompared
        parts.append(_counted(np, packed))
        _merge_later(np, parts)
        first = last
    needed = partial(_needed, np, np.diff(offsets), least, bits) if least > 1 else None
    packed, counts = _of_parts(np, parts, needed)
    return *halves(packed, bits), counts, num_large, num_uncompared, crowded


def gpu(values, offsets, least, bucket_limit, bucket_probe):
    """As `cpu`; the pairs of all buckets are written side by side, a thread a pair.

    The host waits for the number of buckets, of their pairs, and of distinct pairs. Pairs beyond `PAIRS_AT_ONCE` are
    counted in parts, with a wait for each.

    Raises
    ------
    ResourceError
        As `cpu`.
    """
    xp = namespace()
    (first, last), offsets = bounds_of(offsets), on_device(offsets)
    values, crowded = on_device(values)[first:last], xp.zeros(len(offsets) - 1, bool)
    bits = _row_bits(len(crowded), len(values))
    if len(values):  # small images fill the words, as in `cpu`
        lengths = xp.searchsorted(constant(_POWERS), values.max().reshape(1), side="right")
        values = values << (63 - lengths).astype(np.uint64)
    places, starts, sizes = buckets_of(xp, values)
    rows = xp.searchsorted(offsets[1:], places + offsets[0], side="right").astype(np.uint32)
    del places
    num_large, num_uncompared, num_pairs, written = compare_buckets(
        xp, rows, starts, sizes, bits, bucket_limit, bucket_probe, crowded
    )
    if bucket_limit < 1:  # which a row alone exceeds
        num_large += len(values) - len(rows)
        crowded |= offsets[1:] > offsets[:-1]
    needed, parts = partial(_needed, xp, xp.diff(offsets), least, bits) if least > 1 else None, []
    if num_pairs <= PAIRS_AT_ONCE:
        packed, counts = _counted(xp, next(written, xp.empty(0, np.uint64)), needed)
    else:
        for packed in written:
            parts.append(_counted(xp, packed))
            _merge_later(xp, parts)
        packed, counts = _of_parts(xp, parts, needed)
    return *halves(packed, bits), counts, num_large, num_uncompared, crowded


_POWERS = 2 ** np.arange(1, 64, dtype=np.uint64)
