"""Sampled unions: what two sketches say together of the union of their sets.

    u(A, B) = the s smallest elements up to `most` of the union of two rows

Where the rows are sketches by the s smallest elements, or by a bound that is `most` or higher, u is the sketch of the
union of the two sets: a sample of it, whose elements each row holds if the set does. So the share of u that both hold
estimates resemblance, and the share of what A holds of it that B holds too estimates the containment of A in B.

Source: Broder 1997, section 3, theorem 1.
Cost: |A| + |B| steps a pair.
"""

import numpy as np

from ._cpu import jit, parallel
from ._launch import Device, cuda, kernel, namespace, on_device


def reference(values, offsets, left, right, most, s):
    """How many elements of u each row holds, from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Each row ascending and without repeats up to its `most`; what is above does not count.
    offsets : array of int64, shape (rows + 1,)
    left, right : arrays of int64, shape (pairs,)
        Row numbers, in any order.
    most : array of uint64, shape (pairs,)
    s : int
        At least 1.

    Returns
    -------
    in_both, in_left, in_right : arrays of int64, shape (pairs,)
    """
    counts = []
    for a, b, bound in zip(left.tolist(), right.tolist(), most.tolist(), strict=True):
        one, other = (set(values[offsets[row] : offsets[row + 1]].tolist()) for row in (a, b))
        u = set(sorted(y for y in one | other if y <= bound)[:s])
        counts.append((len(u & one & other), len(u & one), len(u & other)))
    found = np.array(counts, np.int64).reshape(-1, 3).T
    return found[0].copy(), found[1].copy(), found[2].copy()


def _merge(values, a, a_end, b, b_end, most, s):
    """(in both, in the first, in the second) of the union's first elements: a merge of two ascending rows.

    While both last, its only branches are its ends.
    """
    first, second, size = a, b, np.int64(0)
    while size < s and a < a_end and b < b_end:
        x, y = values[a], values[b]
        if x > most and y > most:
            break
        a += np.int64(x <= y)
        b += np.int64(y <= x)
        size += np.int64(1)
    while size < s and a < a_end and values[a] <= most:
        a += np.int64(1)
        size += np.int64(1)
    while size < s and b < b_end and values[b] <= most:
        b += np.int64(1)
        size += np.int64(1)
    return a - first + b - second - size, a - first, b - second


_merge_on_host, _merge_on_device = jit()(_merge), Device(_merge)


@parallel("uint64[::1], int64[::1], int64[::1], int64[::1], uint64[::1], int64, int64[::1], int64[::1], int64[::1]")
def _counts(begin, end, values, offsets, left, right, most, s, both, one, other):
    for p in range(begin, end):
        a, b = left[p], right[p]
        both[p], one[p], other[p] = _merge_on_host(
            values, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], most[p], s
        )


def cpu(values, offsets, left, right, most, s):
    """As `reference`, pairs in parallel, each by one merge."""
    both, one, other = (np.empty(len(left), np.int64) for _ in range(3))
    _counts(len(left), values, offsets, left, right, most, s, both, one, other)
    return both, one, other


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1], uint64[::1], int64, int64[::1], int64[::1], int64[::1])")
def _write_counts(values, offsets, left, right, most, s, both, one, other):
    """One thread a pair."""
    p = cuda.grid(1)
    if p < len(left):
        a, b = left[p], right[p]
        both[p], one[p], other[p] = _merge_on_device(
            values, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], most[p], s
        )


def gpu(values, offsets, left, right, most, s):
    """As `cpu`, a thread a pair."""
    xp = namespace()
    values, offsets, left, right, most = map(on_device, (values, offsets, left, right, most))
    both, one, other = (xp.empty(len(left), np.int64) for _ in range(3))
    _write_counts.threads(len(left), values, offsets, left, right, most, s, both, one, other)
    return both, one, other
