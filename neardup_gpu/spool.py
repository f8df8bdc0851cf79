"""Shingle sets on disk: written once as documents stream by, read again for the few that become candidates."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from .data import Ragged
from .errors import OutputError


class Spool:
    """An append-only temporary file of ragged uint64 rows, 8 bytes a value; the file vanishes with the object.

    Parameters
    ----------
    folder : path, optional
        Where the file goes; the system's temporary folder unless given.

    Raises
    ------
    OutputError
        If the folder cannot be written, or when the disk is full.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder or tempfile.gettempdir())
        try:
            self._file = tempfile.TemporaryFile(dir=self.folder, prefix="neardup-", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise OutputError(f"{self.folder}: {error.strerror}; name another folder with --temp-dir") from None
        self._starts = [np.zeros(1, np.int64)]
        self.num_values = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: Ragged) -> None:
        """Add rows after those already there."""
        first, last = rows.offsets[0], rows.offsets[-1]
        view = memoryview(np.ascontiguousarray(rows.values[first:last]).data).cast("B")
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise OutputError(f"{self.folder}: {error.strerror}; name a larger disk with --temp-dir") from None
        self._starts.append(rows.offsets[1:] - first + self.num_values)
        self.num_values += int(last - first)

    @property
    def offsets(self) -> np.ndarray:
        """Where each row begins, in values: int64, shape (rows + 1,)."""
        if len(self._starts) > 1:
            self._starts = [np.concatenate(self._starts)]
        return self._starts[0]

    def gather(self, rows: np.ndarray) -> Ragged:
        """Read some rows, in the order asked for (ascending is fastest); neighbours in the file are read at once."""
        starts, stops = self.offsets[rows], self.offsets[np.asarray(rows) + 1]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        values = np.empty(offsets[-1], np.uint64)
        view = memoryview(values.data).cast("B")
        breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
        for first, last in zip(np.append(0, breaks), np.append(breaks, len(rows)), strict=True):
            if first < last:
                self._read(view[8 * offsets[first] : 8 * offsets[last]], 8 * int(starts[first]))
        return Ragged(values, offsets)

    def _read(self, view: memoryview, position: int) -> None:
        self._file.seek(position)
        while view:
            count = self._file.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise OutputError(f"{self.folder}: the temporary file of shingles ended early; was it cut?")
            view = view[count:]
        self._file.seek(0, os.SEEK_END)
