"""Shingles that wait nowhere: what is wanted of documents is made again from their text, which is read again.

On a GPU the shingles of all documents soon outgrow its memory. Then their way to a file and back takes longer than
reading and tokenizing the text again; see `store.spool.DeviceSpool` for the rule.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.kernels import rarity
from neardup_gpu.kernels._launch import array_module, fetch_offsets, know

from ..data import Ragged, arrow
from ..documents.batches import some_rows
from ..documents.sources import Sources
from ..documents.units import Units, units_in
from ..engine.arrays import apart, take_rows
from ..engine.choice import kernel
from ..engine.contract import Runtime
from ..errors import InputError
from ..methods.contract import Join
from ..recipe import Recipe
from ..store.spool import GrowingRows
from . import count_shingles, count_tokens
from .joining import table_bits
from .sketching import GroupWords, batch_bytes

TEXT_OF_SHINGLE = 6
"""Bytes of text for each shingle, about."""


def waiting_of(text: Ragged, names: Any, words: np.ndarray | None, recipe: Recipe, backend: str) -> Ragged:
    """Return what waits of some documents for verification, as `Sketcher` makes it.

    Parameters
    ----------
    text : Ragged of uint8
    names : array or sequence
        What the documents are called.
    words : array of uint64, shape (documents,), or None
        The words of their groups, if only documents of equal values are compared.
    """
    tokens, _ = count_tokens(text, recipe, backend, names)
    shingles, _ = count_shingles(tokens, recipe, backend)
    return recipe.method.measure.waiting(shingles if words is None else apart(shingles, words), backend)


def chosen_text(batch: Ragged, rows: np.ndarray) -> Ragged:
    """Return the texts of some rows, ascending; the batch itself if these are all."""
    return batch if len(rows) == len(batch) else some_rows(batch, rows)


class TextRows(GrowingRows):
    """Rows of a spool that takes no room: `gather` reads the documents again, up to the last one that it wants.

    The reading goes on where the last call of `gather` ended, so calls for ascending rows read the text once together.
    A call for an earlier row begins anew.

    Parameters
    ----------
    opened : callable
        Opens the documents once more, in the same order.
    recipe : Recipe
        Without shingles that are left out for being common: these are not known here.
    runtime : Runtime
    max_bytes : int or None
        Text read at a time; chosen by the runtime's memory if None.
    folder : path or None
        Where other temporary files of the job go; the system's temporary folder if None.
    text_bytes : callable
        Returns about the size of all text, or None, by which the table of counters is sized.
    """

    def __init__(
        self,
        opened: Callable[[], Sources],
        recipe: Recipe,
        runtime: Runtime,
        max_bytes: int | None,
        folder: Path | str | None,
        text_bytes: Callable[[], int | None],
    ) -> None:
        self.folder = Path(folder or tempfile.gettempdir())
        self._opened, self._recipe, self._runtime = opened, recipe, runtime
        self._most = max_bytes or batch_bytes(recipe, runtime)
        super().__init__()
        self.counts = isinstance(recipe.method, Join)
        self.table: Any = None
        self._text_bytes = text_bytes
        self._place = threading.Lock()  # of the only reading
        self._reading: Iterator[tuple[Units, np.ndarray | None]] | None = None
        self._first = 0  # the row of the first of `_units`
        self._units: Units | None = None
        self._words: np.ndarray | None = None

    def __exit__(self, *_: object) -> None:
        self._units = self.table = None
        if self._reading is not None:
            self._reading.close()  # type: ignore[attr-defined]

    def append(self, rows: Ragged) -> None:
        """Note the sizes of rows, and count their shingles if the method compares these alone."""
        ends = fetch_offsets(rows.offsets)
        self.note(ends - ends[0])
        self.count(rows.values[int(ends[0]) : int(ends[-1])])

    def count(self, shingles: Any) -> None:
        """Count shingles in the table, if the method compares these alone."""
        if not self.counts:
            return
        if self.table is None:
            size = self._text_bytes()
            bits = table_bits(2**62 if size is None else size // TEXT_OF_SHINGLE)
            self.table = self._runtime.run(rarity.new_table, array_module(shingles), bits)
        count = kernel(rarity, self._runtime.backend)
        self.table = self._runtime.run(count, shingles, len(self.table[0]).bit_length() - 1, self.table)

    def spill(self) -> None:
        """Nothing is held; see `DeviceSpool`."""

    def gather(self, rows: np.ndarray) -> Ragged:
        """Make some rows again, where the backend wants them, in the given order (ascending is fastest).

        Several threads may call it.

        Raises
        ------
        InputError
            If the documents are no longer what they were.
        """
        wanted, back = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        sizes = np.diff(self.offsets)[wanted]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        with self._place:
            parts = list(self._made(wanted))
        made = np.concatenate([np.diff(fetch_offsets(part.offsets)) for part in parts]) if parts else sizes
        if not np.array_equal(made, sizes):
            raise self._changed()
        values = [part.values for part in parts] or [self._runtime.put(np.empty(0, np.uint64))]
        on_device = self._runtime.put(offsets)
        know(on_device, offsets)
        joined = values[0] if len(values) == 1 else array_module(values[0]).concatenate(values)
        found = Ragged._trusted(joined, on_device)
        return found if np.array_equal(back, np.arange(len(wanted))) else take_rows(found, back)

    def _made(self, wanted: np.ndarray) -> Iterator[Ragged]:
        """Yield what waits of some ascending rows, batch by batch."""
        if len(wanted) and (self._reading is None or wanted[0] < self._first):
            self._reading, self._first, self._units = self._batches(), 0, None
        at = 0
        while at < len(wanted):
            if self._units is None or wanted[at] >= self._first + len(self._units.text):
                self._first += 0 if self._units is None else len(self._units.text)
                assert self._reading is not None
                found = next(self._reading, None)
                if found is None:
                    raise self._changed()
                self._units, self._words = found
                continue
            stop = int(np.searchsorted(wanted, self._first + len(self._units.text)))
            yield self._make(self._units, wanted[at:stop] - self._first)
            at = stop

    def _batches(self) -> Iterator[tuple[Units, np.ndarray | None]]:
        """Yield the units of all batches, in the order of the first reading, and the words of their groups."""
        groups = GroupWords(self._recipe, alone=True)
        for number, documents in enumerate(self._opened().in_order):
            for units in units_in(documents, self._recipe, self._recipe.within, self._most):
                yield units, groups.of(units, number)[0]

    def _make(self, units: Units, rows: np.ndarray) -> Ragged:
        """Return what waits of some units of a batch."""
        text, put = chosen_text(units.text, rows), self._runtime.put
        words = None if self._words is None else self._words[rows]
        names = units.ids.take(arrow(rows))
        return waiting_of(put(text), names, words, self._recipe, self._runtime.backend)

    def _changed(self) -> InputError:
        return InputError("the input: it changed while it was read; run again when nothing writes to it")
