"""Arrays that may lie in host memory or on a GPU: brought together, taken from, joined."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._launch import Sent, array_module, know, known, out_of_memory

from ..data import Ragged
from .choice import to_host

MOVED = 1 << 16
"""Rows that are moved at a time."""

_AT_ONCE = 1 << 15
"""Elements that words are mixed into at once."""

_LONG = 256
"""Elements of one word from which it is mixed into them by itself."""


def same_device(array: Any, *others: Any) -> tuple[Any, ...]:
    """Other arrays where the first one is: in host memory, or on the GPU."""
    if isinstance(array, np.ndarray):
        return tuple(to_host(other) for other in others)
    return tuple(array_module(array).asarray(other) for other in others)


def fetched(arrays: list[Any]) -> list[Any]:
    """Return arrays or Ragged in host memory. The host waits only once for everything that lies on a GPU.

    All of it is `known` from then on, so nobody may write to it any more.
    """
    return Fetching(arrays).get()


class Fetching:
    """Arrays or Ragged on their way to host memory, together; see `fetched`."""

    def __init__(self, arrays: list[Any]) -> None:
        self._arrays = arrays
        parts = ([each.values, each.offsets] if isinstance(each, Ragged) else [each] for each in arrays)
        self._flat = flat = list(itertools.chain.from_iterable(parts))
        self._on_host = {place: found for place, part in enumerate(flat) if (found := known(part)) is not None}
        # The longest words come first, so that all begin at a multiple of their length.
        self._others = sorted(set(range(len(flat))) - self._on_host.keys(), key=lambda i: -flat[i].dtype.itemsize)
        xp = array_module(flat[self._others[0]]) if self._others else np
        together = [xp.ascontiguousarray(flat[place]).ravel().view(np.uint8) for place in self._others]
        self._sent = Sent(together[0] if len(together) == 1 else xp.concatenate(together)) if together else None

    def get(self) -> list[Any]:
        """Wait for the arrays."""
        begin, found = 0, self._on_host
        together = None if self._sent is None else self._sent.get()
        for place in self._others:
            part = self._flat[place]
            assert together is not None
            found[place] = together[begin : begin + part.nbytes].view(part.dtype).reshape(part.shape)
            begin += part.nbytes
            know(part, found[place])
        rest = iter(range(len(self._flat)))
        return [
            Ragged._trusted(found[next(rest)], found[next(rest)]) if isinstance(each, Ragged) else found[next(rest)]
            for each in self._arrays
        ]


def take_rows(array: Any, rows: np.ndarray) -> Any:
    """Some rows of an array or of a Ragged, where it is."""
    if isinstance(array, Ragged):
        run = gather.cpu if isinstance(array.values, np.ndarray) else gather.gpu
        return Ragged._trusted(*run(array.values, array.offsets, rows))
    return array[same_device(array, rows)[0]]


def some_rows(array: np.ndarray, rows: np.ndarray, *, last: bool = False) -> np.ndarray:
    """Some rows of an array in host memory; itself if these are all, in order.

    What is the `last` that is wanted of it is moved together where it lies, if the rows ascend.
    """
    if len(rows) > len(array) or not (rows[1:] > rows[:-1]).all() or not (last or len(rows) == len(array)):
        return array[rows]
    if len(rows) < len(array):
        for first in range(0, len(rows), MOVED):
            moved = array[rows[first : first + MOVED]]  # which lie there or behind it
            array[first : first + len(moved)] = moved
    return array[: len(rows)]


def joined(parts: list[Any]) -> Any:
    """The rows of several arrays, or of several Ragged, as one; all in host memory, and at least one."""
    if not isinstance(parts[0], Ragged):
        return np.concatenate(parts)
    values = [part.values[part.offsets[0] : part.offsets[-1]] for part in parts]
    ends = np.cumsum(np.concatenate([part.sizes for part in parts]))
    return Ragged(np.concatenate(values), np.append(np.zeros(1, np.int64), ends))


def concat_and_clear(*lists: list[Any], dtype: Any, width: int = 0) -> Any:
    """Concatenate the arrays of several lists and clear the lists; on the GPU if all arrays and the room are there.

    `width` is the number of columns where there are no arrays; 0 for one dimension.
    """
    arrays = [array for each in lists for array in each]
    for each in lists:
        each.clear()
    if not arrays:
        return np.empty((0, width) if width else 0, dtype)
    if any(isinstance(array, np.ndarray) for array in arrays):
        arrays[:] = map(to_host, arrays)
    try:
        return array_module(arrays[0]).concatenate(arrays)
    except Exception as error:
        if not out_of_memory(error):
            raise
    return np.concatenate(list(map(to_host, arrays)))


class Stack:
    """Rows put one after another as they come; in host memory into one array, which grows where it lies.

    So nothing is copied twice, and rows take memory when they come: what is expected is only reserved. Rows that lie on
    a GPU stay there, and come before all others.
    """

    def __init__(self) -> None:
        self._on_gpu: list[Any] = []
        self._rows: np.ndarray | None = None
        self._num_on_gpu = self._num_rows = 0

    def __len__(self) -> int:
        return self._num_on_gpu + self._num_rows

    def append(self, rows: Any, expected: int | None = None) -> None:
        """Add rows; there will be about as many in all as are expected, if that is known."""
        if self._rows is not None:
            rows = to_host(rows)
        if not isinstance(rows, np.ndarray):
            self._on_gpu.append(rows)
            self._num_on_gpu += len(rows)
            return
        end = self._num_rows + len(rows)
        if self._rows is None:
            with contextlib.suppress(MemoryError):  # of an estimate that is far too high
                self._rows = np.empty((max(end, (expected or 0) - self._num_on_gpu), *rows.shape[1:]), rows.dtype)
        if self._rows is None:
            self._rows = np.empty_like(rows)
        elif end > len(self._rows):
            self._rows.resize((max(end, len(self._rows) * 9 // 8), *rows.shape[1:]), refcheck=False)
        self._rows[self._num_rows : end] = rows
        self._num_rows = end

    def take(self, dtype: Any, width: int = 0) -> Any:
        """All rows; the stack is empty afterwards. Without rows, the array has this dtype and width (0: one
        dimension)."""
        on_host, self._rows = self._rows, None
        if on_host is not None:
            on_host.resize((self._num_rows, *on_host.shape[1:]), refcheck=False)
        self._num_on_gpu = self._num_rows = 0
        if on_host is not None and not self._on_gpu:
            return on_host
        return concat_and_clear(self._on_gpu, [] if on_host is None else [on_host], dtype=dtype, width=width)


def apart(elements: Ragged, words: Any) -> Ragged:
    """Mix the group word of each document into its elements, which are written over.

    Elements of equal values stay as equal as they were. Words that stand for many elements are mixed in run by run,
    others a block of documents at a time. Words of one value are all 0 (see `Sketcher.alone`), and change nothing.
    """
    if isinstance(words, np.ndarray) and not words.any():
        return elements
    values, offsets = elements.values, elements.offsets
    xp = array_module(values)
    (words,) = same_device(values, words)
    if xp is not np:
        values ^= words[xp.searchsorted(offsets[1:], xp.arange(len(values)), side="right")]
        return elements
    runs = np.flatnonzero(np.append(True, words[1:] != words[:-1])) if len(words) else np.empty(0, np.int64)
    if len(values) > _LONG * len(runs):
        ends = np.append(offsets[runs], offsets[-1]).tolist()
        for word, (begin, end) in zip(words[runs], itertools.pairwise(ends), strict=True):
            if word:
                values[begin:end] ^= word
        return elements
    cuts = np.unique(np.append(np.searchsorted(offsets, np.arange(0, len(values), _AT_ONCE)), len(words)))
    for first, last in itertools.pairwise(cuts.tolist()):  # in a core's cache
        values[offsets[first] : offsets[last]] ^= np.repeat(words[first:last], np.diff(offsets[first : last + 1]))
    return elements
