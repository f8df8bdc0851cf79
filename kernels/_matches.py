"""Pairs packed in words, without repeats. Several tables find them, and each table finds some of them again.

A pair is one uint64, the first row's number above the second's. Whenever as much has been added as was distinct before,
all is sorted and repeats go, so that never more than about twice the distinct pairs are held, and sorting costs only
twice the last time.
"""

import numpy as np

from ._launch import most_rows, to_host
from ._sort import radix_sort, sort_unique

HALF = 32
"""Default number of bits of a row number."""

SOME = 1 << 22
"""Default number of pairs from which sorting is worth its time: 32 MB."""

_FEW = 1 << 12  # pairs that NumPy sorts faster than a parallel radix sort of six passes

_SORTED_BYTES = 50  # a pair on the device while all are sorted: its word and distance, joined, and the sort's buffers


class DistinctPairs:
    """Distinct pairs, and their distances if they have any.

    Parameters
    ----------
    xp : module, optional
        CuPy for pairs on the device (NumPy under the simulator), as `namespace` gives it, as long as half of its free
        memory can sort them; pairs are in host memory and sorted by all threads from then on, and unless given.
    bits : int
        Bits of a row number.
    with_distances : bool
        Whether each pair has a distance, uint8. Repeats of a pair have the same.
    at_least : int
        Pairs to wait for before repeats are dropped.
    in_runs : bool
        Whether what is added is in order each time: on the CPU it is merged then, which takes less time than a sort.
    """

    def __init__(self, xp=None, bits=HALF, with_distances=True, at_least=SOME, in_runs=False):
        self._on_host, self._xp = xp is None, np if xp is None else xp
        self._bits, self._at_least, self._in_runs = bits, at_least, in_runs
        self._packed, self._distance = [], [] if with_distances else None
        self.num_held = self.num_distinct = 0

    def add(self, packed, distance=None):
        """Add pairs, first << bits | second, and their distances; both arrays may be written over."""
        self._packed.append(to_host(packed) if self._on_host else packed)
        if self._distance is not None:
            self._distance.append(to_host(distance) if self._on_host else distance)
        self.num_held += len(packed)
        if not self._on_host and most_rows(_SORTED_BYTES) < self.num_held:
            self._leave_device()
        if self.num_held - self.num_distinct > max(self.num_distinct, self._at_least):
            self._drop_repeats()

    def _leave_device(self):
        self._on_host, self._xp = True, np
        for arrays in filter(None, (self._packed, self._distance)):
            arrays[:] = map(to_host, arrays)

    def _drop_repeats(self):
        xp, packed = self._xp, self._joined(self._packed, np.uint64)
        if self._distance is None:
            packed = self._distinct(packed)
        else:
            packed, order = self._in_order(packed)
            begins = xp.flatnonzero(self._begins(packed))
            distance = self._joined(self._distance, np.uint8)
            packed, self._distance = packed[begins], [distance[order[begins]]]
        self._packed = [packed]
        self.num_held = self.num_distinct = len(packed)

    def _joined(self, arrays, dtype):
        """One array of several, which are forgotten: the sort needs the room."""
        xp = self._xp
        joined = arrays[0] if len(arrays) == 1 else xp.concatenate(arrays) if arrays else xp.empty(0, dtype)
        arrays.clear()
        return joined

    def _distinct(self, packed):
        """The distinct words, in order."""
        if self._on_host:
            return sort_unique(packed, 2 * self._bits)
        packed.sort()
        return packed[self._begins(packed)]

    def _in_order(self, packed):
        """(words in order, where each was before)"""
        if self._on_host and not self._in_runs and len(packed) > _FEW:
            return radix_sort(packed, 64)
        xp = self._xp
        order = xp.argsort(packed, kind="stable")
        return packed[order], order

    def _begins(self, packed):
        """Return which sorted words differ from the word before."""
        xp = self._xp
        begins = xp.ones(len(packed), bool)
        begins[1:] = packed[1:] != packed[:-1]
        return begins

    def result(self):
        """(first rows, second rows, distances if there are any), in lexicographic order, each pair once; int64.

        In host memory, where the device had too little.
        """
        self._drop_repeats()
        rows = halves(self._packed.pop(), self._bits)
        return rows if self._distance is None else (*rows, self._distance[0])


def halves(packed, bits=HALF):
    """(first, second) row of each packed word, as int64; `packed` is written over."""
    first = packed >> np.uint64(bits)
    packed &= np.uint64((1 << bits) - 1)
    return first.view(np.int64), packed.view(np.int64)
