"""Shingle sets on disk: written once as documents stream by, read again for the few that become candidates.

For a GPU there is a spool whose rows lie in its memory as far as they fit there.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import threading
import time
from bisect import bisect_right
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from neardup_gpu.kernels import _launch, gather

from ..data import Ragged
from ..errors import OutputError, raise_want
from ..report import size
from .disk import Room, room


class DiskFullError(OutputError):
    """A disk is too small for temporary files; `told` has the folder, the bytes to come, and the system's message."""

    told: tuple[Path, int, str]


def disk_full(
    folder: Path, needed: int, why: str = "", *, about: bool = False, parameter: str = "temp_dir"
) -> DiskFullError:
    """Make the error for a temporary disk that is too small.

    Parameters
    ----------
    folder : path
    needed : int
        Bytes that are still to be written to it.
    why : str
        The system's message, or nothing if it was not tried.
    about : bool
        Whether `needed` is an estimate for the whole job.
    parameter : str
        What names the folder.
    """
    left, most = room(folder), "about " if about else "at least "
    missing = f"{most}{size(needed)} are to come"
    if left is not None and left < needed:
        missing = f"{most}{size(needed - left)} are missing ({size(left)} can be used, {size(needed)} are to come)"
    shown, way = another_disk(folder, parameter)
    error = DiskFullError(
        f"{shown}: {why or 'the disk is too small'}; for temporary files {missing}; {way}",
        parameter=parameter,
        path=str(shown),
    )
    error.told = folder, needed, why
    return error


def another_disk(folder: Path, parameter: str = "temp_dir") -> tuple[Path, str]:
    """Return the folder to name where temporary files cannot be written, and what to do.

    Folders that a run removes are not named. Temporary files may be next to the output, in a folder whose name ends in
    ``.partial``. Then the disk of the output may be too small as well, and another disk for temporary files alone
    would not do.
    """
    of_run = next((each for each in (folder, *folder.parents) if _OF_RUN.fullmatch(each.name)), None)
    if of_run is None:
        return folder, f"name a larger disk with {parameter}=..."
    if not of_run.name.endswith(".partial"):  # in the folder for temporary files, as a job within a bound of memory
        return of_run.parent, "name a larger disk with temp_dir=..."
    return of_run.parent, "name an output on a larger disk, or another disk for temporary files with temp_dir=..."


_OF_RUN = re.compile(r"\..+\.partial|\.neardup-.+")
"""Names of folders that a run makes for itself."""


def unwritable(folder: Path, why: str | None, parameter: str = "temp_dir") -> OutputError:
    """Make the error for a folder of temporary files that cannot be written or read, by the words of the system."""
    shown, way = another_disk(folder, parameter)
    return OutputError(f"{shown}: {why}; {way}", parameter=parameter, path=str(shown))


def write_all(file: Any, data: memoryview, folder: Path, disk: Room | None, *, parameter: str = "temp_dir") -> None:
    """Write bytes to a file without a buffer, on the disk of a folder that `disk` watches, if it is given.

    Raises
    ------
    DiskFullError
        If there is no room for them; `parameter` names the folder.
    OSError
        If they cannot be written.
    """
    if disk is not None and disk.lacks(len(data)):
        raise disk_full(folder, len(data), parameter=parameter)
    try:
        while data:
            data = data[file.write(data) :]
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(folder, len(data), os.strerror(error.errno), parameter=parameter) from None
        raise


def temporary_file(folder: Path) -> Any:
    """Open a file that vanishes when it is closed.

    Raises
    ------
    OutputError
        If the folder cannot be written.
    """
    try:
        return tempfile.TemporaryFile(dir=folder, prefix="neardup-", buffering=0)
    except OSError as error:
        raise_want(error)
        message = f"{folder}: {error.strerror}; name another folder with temp_dir=..."
        raise OutputError(message, parameter="temp_dir", path=str(folder)) from None


GAP, AT_ONCE = 1 << 11, 1 << 18
"""Values between two rows that are read and dropped, as that takes less time than another call; and values between the
places in a file at which such calls end, about, so that they take little memory."""

RUN = 1 << 14
"""Values between two gaps, on average, from which they are read to their places, and not copied from what is read."""

MOST_GAPS = 500
"""Gaps in one call that reads to places: the system takes 1,024 parts."""


class GrowingRows:
    """Rows that are added in parts: how many there are, and where each begins."""

    def __init__(self) -> None:
        self._starts = [np.zeros(1, np.int64)]
        self.num_values = self.num_rows = 0

    def __enter__(self) -> Self:
        return self

    def note(self, ends: np.ndarray) -> None:
        """Note the sizes of rows: `ends` is where each begins, from 0 on, and where the last ends."""
        self._starts.append(ends[1:] + self.num_values)
        self.num_values += int(ends[-1])
        self.num_rows += len(ends) - 1

    @property
    def offsets(self) -> np.ndarray:
        """The first place of each row, in values: int64, in host memory, shape (rows + 1,)."""
        if len(self._starts) > 1:
            self._starts = [np.concatenate(self._starts)]
        return self._starts[0]


class Spool(GrowingRows):
    """An append-only temporary file of ragged uint64 rows, 8 bytes a value; the file vanishes with the object.

    Parameters
    ----------
    folder : path, optional
        Where the file goes; the system's temporary folder unless given.
    over : Spool, optional
        A spool whose file is written over from its beginning. No row of it may be read once a row begins there. Where
        the system holds a file in memory, writing over it takes no further page.

    Raises
    ------
    OutputError
        If the folder cannot be written, or when the disk has no room: before anything else on it is short of room.
    """

    table = None
    """Shingles are not counted as they come."""

    def __init__(self, folder: Path | str | None = None, over: Spool | None = None) -> None:
        self.folder = Path(folder or tempfile.gettempdir())
        self._file: Any = temporary_file(self.folder) if over is None else over._file
        self._file.seek(0)
        self._disk = Room(self.folder) if over is None else None
        self._place: Any = threading.Lock() if over is None else over._place  # for the file's only position
        super().__init__()

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: Ragged) -> None:
        """Add rows after those already there."""
        first, last = rows.offsets[0], rows.offsets[-1]
        self.write(rows.values[first:last])
        self.note(rows.offsets - first)

    def write(self, values: np.ndarray) -> None:
        """Write the values of rows, which are noted apart."""
        view = memoryview(np.ascontiguousarray(values).data).cast("B")
        try:
            with self._place:
                write_all(self._file, view, self.folder, self._disk)
        except DiskFullError:
            raise
        except OSError as error:
            raise unwritable(self.folder, error.strerror) from None

    def spill(self) -> None:
        """Everything is in the file already; see `DeviceSpool`."""

    def gather(self, rows: np.ndarray) -> Ragged:
        """Read some rows, in the given order (ascending is fastest); near neighbours in the file are read at once.

        Several threads may call it.
        """
        rows = np.asarray(rows, np.int64)
        starts, stops = self.offsets[rows], self.offsets[rows + 1]
        offsets = np.append(0, np.cumsum(stops - starts))
        values = np.empty(offsets[-1], np.uint64)
        far = (starts[1:] - stops[:-1] > GAP) | (np.diff(starts // AT_ONCE) != 0)
        breaks = np.flatnonzero(far | (np.diff(rows) <= 0)) + 1
        for first, last in zip(np.append(0, breaks), np.append(breaks, len(rows)), strict=True):
            if first == last:
                continue
            begin, size = int(starts[first]), int(stops[last - 1] - starts[first])
            some, wanted = values[offsets[first] : offsets[last]], int(offsets[last] - offsets[first])
            gaps = first + np.flatnonzero(starts[first + 1 : last] > stops[first : last - 1])
            if len(gaps) <= min(MOST_GAPS, wanted // RUN):
                dropped, arrays, done = np.empty(size - wanted, np.uint64), [], 0
                for gap in gaps.tolist():
                    end = int(offsets[gap + 1] - offsets[first])
                    arrays += [some[done:end], dropped[: starts[gap + 1] - stops[gap]]]
                    done = end
                self._read([*arrays, some[done:]], 8 * begin)
                continue
            read = np.empty(size, np.uint64)
            self._read([read], 8 * begin)
            of_all = self.offsets[rows[first] : rows[last - 1] + 2] - begin
            some[:] = gather.cpu(read, of_all, rows[first:last] - rows[first])[0]
        return Ragged(values, offsets)

    def _read_some(self, views: list[memoryview], position: int) -> int:
        """Fill views, or the first of them, as far as one call does."""
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), views, position)
        with self._place:
            end = self._file.tell()
            self._file.seek(position)
            count: int = self._file.readinto(views[0])
            self._file.seek(end)
            return count

    def _read(self, arrays: list[np.ndarray], position: int) -> None:
        """Fill arrays with what follows a position, one after another."""
        views = [view for array in arrays if len(view := memoryview(array.data).cast("B"))]
        try:
            while views:
                count = self._read_some(views, position)
                if not count:
                    raise OutputError(f"{self.folder}: the temporary file ended early: it was truncated; run again")
                position += count
                while views and count >= len(views[0]):
                    count -= len(views.pop(0))
                if count:
                    views[0] = views[0][count:]
        except OutputError:
            raise
        except OSError as error:
            raise unwritable(self.folder, error.strerror) from None


SPOOL_RATE = 1_600_000_000
"""Bytes of shingles a second that go to a file from a GPU, about: 1.2 GB/s of text. Documents that are read, tokenized
and divided into shingles faster than that are read again instead."""


WRITING = 2
"""Parts that are on their way from a GPU to the file at once, each in page-locked memory of its own."""


class DeviceSpool(GrowingRows):
    """A `Spool` for a GPU: rows stay in its memory up to a bound. Those after that go to the file or are made again.

    A thread writes to the file what has come to the host, while the job goes on; it waits where `WRITING` parts are on
    their way. What goes wrong there is raised by the next call.

    They are made again from the text where that is possible, and where the rows before them came faster than they could
    have been written, by `SPOOL_RATE`. This is decided once, when the first row does not fit.

    Parameters
    ----------
    folder : path or None
        As for `Spool`.
    num_bytes : int
        Most GPU memory to hold.
    again : optional
        Makes rows again, see `stages.reread.TextRows`; None if the documents cannot be read twice.
    """

    def __init__(self, folder: Path | str | None, num_bytes: int, again: Any = None) -> None:
        self._file = Spool(folder)
        self.folder = self._file.folder
        self._room = num_bytes // 8
        self._again, self._is_decided, self._began = again, again is None, time.monotonic()
        super().__init__()
        # For each call of `append`: its first row, its values on the GPU or None, and the number of its first row in
        # the file, or in the text, if it is there.
        self._first_rows: list[int] = []
        self._held: list[Any] = []
        self._first_there: list[int] = []
        self._writer = ThreadPoolExecutor(1, "neardup-spool")
        self._writing: deque[Future[None]] = deque()

    def __exit__(self, *_: object) -> None:
        self._held = []
        self._writer.shutdown(cancel_futures=True)
        self._file.__exit__()
        if self._again is not None:
            self._again.__exit__()

    def append(self, rows: Ragged) -> None:
        """Add rows, on the GPU, after those already there."""
        offsets = host(rows.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        values, offsets = rows.values[first:last], offsets - first
        self._first_rows.append(self.num_rows)
        self.note(offsets)
        if self._again is not None:
            self._again.note(offsets)
        if last - first <= self._room:
            self._room -= last - first
            self._held.append(values)
            self._first_there.append(-1)
            return
        self._held.append(None)
        if self._reads_again():
            self._first_there.append(self._first_rows[-1])
            self._again.count(values)
        else:
            self._first_there.append(self._write(values, offsets))

    def _write(self, values: Any, offsets: np.ndarray) -> int:
        """Send rows to the file, and return the number of the first of them there."""
        first = self._file.num_rows
        self._finish_writing(WRITING - 1)
        if len(values):
            self._writing.append(self._writer.submit(_write_sent, self._file, _launch.Sent(values)))
        self._file.note(offsets)
        return first

    def _finish_writing(self, left: int = 0) -> None:
        """Wait until at most `left` parts are on their way."""
        while len(self._writing) > left:
            self._writing.popleft().result()

    def _reads_again(self, *, counts: bool = True) -> bool:
        """Decide, once, where rows are that do not fit: in the text, or in the file.

        If they are in the text, all rows so far are counted, as those to come will be, unless there is no room for it.
        """
        if not self._is_decided:
            self._is_decided = True
            if 8 * self.num_values < SPOOL_RATE * (time.monotonic() - self._began):
                self._again = None
            else:
                self._room = 0
                self._again.counts &= counts
                for values in self._held:
                    if values is not None:
                        self._again.count(values)
        return self._again is not None

    @property
    def table(self) -> Any:
        """The counters of all shingles, if they were counted as they came; else None."""
        return self._again.table if self._is_decided and self._again is not None else None

    def spill(self) -> None:
        """Move all rows that are on the GPU to the file, or forget them if they can be made again."""
        self._room = 0
        if self._reads_again(counts=False):
            self._held, self._first_there = [None] * len(self._held), list(self._first_rows)
            return
        bounds = [*self._first_rows, len(self.offsets) - 1]
        for part, values in enumerate(self._held):
            if values is not None:
                offsets = self.offsets[bounds[part] : bounds[part + 1] + 1]
                self._first_there[part] = self._write(values, offsets - offsets[0])
                self._held[part] = values = None
        self._finish_writing()

    def gather(self, rows: np.ndarray) -> Ragged:
        """Some rows, on the GPU, in the given order (ascending is fastest)."""
        xp = _launch.namespace()
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        low = high = 0  # only parts between the first and the last row are looked at
        if len(rows):
            low, high = (bisect_right(self._first_rows, row) for row in ascending[[0, -1]].tolist())
        begins = self._first_rows[max(0, low - 1) : high]
        cuts = [*np.searchsorted(ascending, begins).tolist(), len(rows)]
        found = [xp.empty(0, np.uint64)]
        for part, (begin, (first, last)) in enumerate(zip(begins, pairwise(cuts), strict=True), low - 1):
            if first == last:
                continue
            here, held = ascending[first:last] - begin, self._held[part]
            if held is None:
                self._finish_writing()
                there = self._file if self._again is None else self._again
                found.append(xp.asarray(there.gather(self._first_there[part] + here).values))
                continue
            offsets = self.offsets[begin : begin + here[-1] + 2] - self.offsets[begin]
            if len(here) == 1 + here[-1] - here[0] and (np.diff(here) == 1).all():  # neighbours, as they lie there
                found.append(held[int(offsets[here[0]]) : int(offsets[here[-1] + 1])])
            else:
                found.append(gather.gpu(held, offsets, here)[0])
        values = found[-1] if len(found) <= 2 else xp.concatenate(found)
        offsets = np.append(0, np.cumsum(self.offsets[ascending + 1] - self.offsets[ascending]))
        if np.array_equal(order, np.arange(len(order))):
            on_device = xp.asarray(offsets)
            _launch.know(on_device, offsets)
            return Ragged._trusted(values, on_device)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return Ragged._trusted(*gather.gpu(values, offsets, back))


def _write_sent(file: Spool, sent: _launch.Sent) -> None:
    file.write(sent.look())


def host(array: Any) -> np.ndarray:
    """An array in host memory, wherever it was."""
    return _launch.to_host(array)
