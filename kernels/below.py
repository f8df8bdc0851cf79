"""Sketches by a modulus: the elements of each row whose image under one permutation is small.

    y(f) = mix64(f ^ salt)                 a permutation of the 64-bit integers
    L(A) = {y(f) : f in A, y(f) <= most}   ascending; for modulus m, most = (2**64 - 1) // m

So an element is in the sketch with probability 1 / m, whatever set it is of, and a sketch by a coarser modulus is the
beginning of one by a finer modulus. Broder takes the images that are 0 modulo m; which m-th of all images counts is
free (his theorem 1), and of the smallest ones L_m is in L_m' for every m >= m'. 2**64 / m itself does not fit in 64
bits for m = 1.

Source: Broder 1997, section 3: MOD_m(I). The text there names elements of W and a permutation of {0..2**l};
it means I, the fingerprints, and {0..2**l - 1}.
Cost: a mixing per value, and a sort of the values that are kept.
"""

import math
from itertools import pairwise

import numpy as np

from ._cpu import parallel, shares
from ._elements import BLOCK, keep_small, zeros_above
from ._gf2 import mix64, mixed
from ._launch import cuda, fetch_offsets, kernel, know, known, namespace, on_device, row_of, to_host
from ._ragged import longest_row, of_rows, sums_before
from ._sort import keep, keep_in_order, order_of
from .gather import copied
from .sets import distinct


def reference(values, offsets, salt, most):
    """Sketches, straight from the definition.

    Parameters
    ----------
    values : array of uint64, shape (n,)
        Elements of each row, in any order, repeats allowed.
    offsets : array of int64, shape (rows + 1,)
    salt : uint64
    most : array of uint64, shape (rows,)
        Greatest image of each row that counts.

    Returns
    -------
    values : array of uint64, shape (m,)
        Each row ascending and without repeats.
    offsets : array of int64, shape (rows + 1,)
        From 0 to m. Rows may be empty.
    """
    rows = []
    for row, (start, stop) in enumerate(pairwise(offsets)):
        images = {mixed(int(value) ^ int(salt)) for value in values[start:stop]}
        rows.append(sorted(image for image in images if image <= int(most[row])))
    return of_rows(rows, np.uint64)


@parallel("uint64[::1], int64[::1], uint64, uint64[::1], int64[::1], uint64[::1], int64[::1]")
def _sketch_rows(begin, end, values, offsets, salt, most, bounds, out, sizes):
    """Write the sketches of each run of rows one after another to where the run begins in `out`."""
    base = offsets[0]
    for p in range(begin, end):
        longest = longest_row(offsets, bounds[p], bounds[p + 1])
        kept, ends = np.empty(longest + 1, np.uint64), np.empty(2 * longest + 1, np.uint32)
        block = np.empty(BLOCK, np.uint64)
        at = offsets[bounds[p]] - base
        for d in range(bounds[p], bounds[p + 1]):
            shift = zeros_above(most[d])  # fills the words, whose highest bits say where about each belongs
            size = keep_small(values[offsets[d] : offsets[d + 1]], salt, most[d], shift, block, kept)
            found = distinct(kept[:size], out[at : at + size], ends)
            for i in range(len(found)):
                found[i] >>= shift
            sizes[d] = len(found)
            at += len(found)


def cpu(values, offsets, salt, most):
    """As `reference`: rows in parallel; what is small is gathered first, so that little is sorted."""
    bounds = shares(offsets)
    out, sizes = np.empty(offsets[-1] - offsets[0], np.uint64), np.empty(len(offsets) - 1, np.int64)
    _sketch_rows(len(bounds) - 1, values, offsets, salt, most, bounds, out, sizes)
    new_offsets = sums_before(sizes)
    packed, _ = copied(out, offsets[bounds[:-1]] - offsets[0], new_offsets[bounds])  # in a share there are no gaps
    return packed, new_offsets


@kernel("void(uint64[::1], int64[::1], uint64, uint64[::1], uint64[::1], boolean[::1])")
def _write_images(values, offsets, salt, most, images, small):
    """One thread a value: its image, and whether it counts."""
    at = cuda.grid(1)
    if at < len(images):
        image = np.uint64(mix64(values[offsets[0] + at] ^ salt))
        images[at] = image
        small[at] = image <= most[row_of(offsets, offsets[0] + at)]


def _room(sizes, most):
    """Places for small images, about: what is expected of values that are all different, and rarely too few."""
    expected = float((sizes * (most.astype(np.float64) / 2.0**64)).sum())
    return min(int(sizes.sum()), math.ceil(expected + 8 * math.sqrt(expected) + 64))


def gpu(values, offsets, salt, most):
    """As `reference`: images side by side; what is small is gathered, and all rows are put in order together.

    There is room for as many small images as `most` leads to expect. So the host waits once, for what was found, or
    twice where repeats take more room; and once more if `most` is not in host memory. Where rows begin is `known` then.
    """
    xp, on_host = namespace(), fetch_offsets(offsets)
    bound = known(most)
    first, last = int(on_host[0]), int(on_host[-1])
    values, offsets, most = (on_device(each) for each in (values, offsets, most))
    images, small = xp.empty(last - first, np.uint64), xp.empty(last - first, bool)
    _write_images.threads(len(images), values, offsets, np.uint64(salt), most, images, small)
    before = sums_before(small)
    found = int(before[-1]) if bound is None else -1
    room = found if bound is None else _room(np.diff(on_host), bound)
    ends = before[offsets - first]
    while True:
        some = xp.zeros(room, np.uint64)  # what is not written is a row of its own, after all others
        keep.threads(len(images), images, before, some)
        rows = xp.append(xp.minimum(ends, room), xp.full(1, room, np.int64))
        order, begins = order_of(some, offsets=rows)
        distinct_before = sums_before(begins)
        new_offsets = distinct_before[rows[:-1]]
        fetched = to_host(xp.append(new_offsets, before[-1:]))
        if fetched[-1] <= room:
            break
        room = int(fetched[-1])
    know(new_offsets, fetched[:-1])
    kept = xp.empty(int(fetched[-2]), np.uint64)
    keep_in_order.threads(len(order), some, order, distinct_before, kept)
    return kept, new_offsets
