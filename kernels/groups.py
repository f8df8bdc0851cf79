"""Groups cut by content: runs of the elements of a sketch, each fingerprinted.

The elements of a sketch in ascending order are cut after each whose second hash, mix64(y ^ salt), is 0 modulo 10; what
is left at the end is a group, too. A group's fingerprint chains its elements: g = mix64(g ^ y), from the salt on.

Where a group ends depends on its elements alone, so one element more or less in a document changes the group that it
falls into and leaves the others as they are. Groups have 10 elements on average, whatever the size of the document.

Source: Manasse 2012, section 3.1.
Cost: two mixings an element.
"""

import numpy as np

from ._cpu import jit, parallel
from ._elements import EMPTY
from ._gf2 import mix64, mixed
from ._launch import Device, cuda, kernel, namespace, on_device

ONE_IN = 10


def reference(sketches, salt, width):
    """Fingerprints of groups, straight from the definition.

    Parameters
    ----------
    sketches : array of uint64, shape (rows, s)
        Each row ascending; `EMPTY` stands for no element.
    salt : uint64
    width : int
        Most groups of a row; further ones are left out.

    Returns
    -------
    array of uint64, shape (rows, width)
        In the order of elements, and `EMPTY` after them.
    """
    groups = np.full((len(sketches), width), EMPTY)
    for row, sketch in enumerate(sketches.tolist()):
        found, group = [], int(salt)
        elements = [y for y in sketch if y != EMPTY]
        for number, y in enumerate(elements):
            group = mixed(group ^ y)
            if mixed(y ^ int(salt)) % ONE_IN == 0 or number == len(elements) - 1:
                found.append(group)
                group = int(salt)
        groups[row, : len(found)] = found[:width]
    return groups


def _cut(sketches, row, salt, groups):
    """Write the groups of a row, whose places hold `EMPTY`."""
    none, zero = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)
    group, at, i = salt, zero, zero
    width, s, is_open = np.uint64(groups.shape[1]), np.uint64(sketches.shape[1]), False
    while i < s and sketches[row, i] != none and at < width:
        y = sketches[row, i]
        group, is_open = np.uint64(mix64(group ^ y)), True
        if np.uint64(mix64(y ^ salt)) % np.uint64(10) == zero:
            groups[row, at] = group
            group, at, is_open = salt, at + np.uint64(1), False
        i += np.uint64(1)
    if is_open:
        groups[row, at] = group


_cut_on_host, _cut_on_device = jit()(_cut), Device(_cut)


@parallel("uint64[:, ::1], uint64, uint64[:, ::1]")
def _cut_rows(begin, end, sketches, salt, groups):
    for row in range(begin, end):
        _cut_on_host(sketches, row, salt, groups)


def cpu(sketches, salt, width):
    """As `reference`, rows in parallel."""
    groups = np.full((len(sketches), width), EMPTY)
    _cut_rows(len(sketches), sketches, np.uint64(salt), groups)
    return groups


@kernel("void(uint64[:,::1], uint64, uint64[:,::1])")
def _write_groups(sketches, salt, groups):
    """One thread a row."""
    row = cuda.grid(1)
    if row < len(sketches):
        _cut_on_device(sketches, row, salt, groups)


def gpu(sketches, salt, width):
    """As `cpu`, a thread a row."""
    xp = namespace()
    sketches, groups = on_device(sketches), xp.full((len(sketches), width), EMPTY)
    _write_groups.threads(len(sketches), sketches, np.uint64(salt), groups)
    return groups
