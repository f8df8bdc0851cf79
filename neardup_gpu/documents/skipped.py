"""Rows that cannot be read: the first one ends the reading, or each is noted and left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..printable import printable
from ..records import dataclass
from ..report import skipped_in_words

SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("row", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("reason", pa.string()),
    ]
)
"""Columns of skipped.parquet. `row` counts from 1 and is null for a whole file; in JSON lines it is the line's number.
`rows` is the number of rows from there on that cannot be read, null where that is unknown. There `bytes` is the number
of bytes of the file that were passed over, null where that is unknown, too."""


Entry: TypeAlias = tuple[str, int | None, int | None, int | None, str]
"""A row of a table of `SCHEMA`."""


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """Return the table of `SCHEMA` with these rows. Reasons do not repeat the file and the line."""
    files, places, rows, num_bytes, messages = zip(*entries, strict=True) if entries else ([],) * 5
    reasons = map(_reason, files, places, messages)
    return pa.table([list(files), list(places), list(rows), list(num_bytes), list(reasons)], schema=SCHEMA)


def _reason(file: str, place: int | None, message: str) -> str:
    shown = message if message.isprintable() else printable(message)
    return shown.removeprefix(f"{file} line {place}: ").removeprefix(f"{file}: ")


def summary_of(skipped: pa.Table) -> dict[str, Any]:
    """Return what a table of `SCHEMA` lists in total, ready for JSON.

    `rows` is the number of rows. Where it is unknown how many follow damage, that counts as one row, `at_least` is
    true, `bytes` is the number of bytes that were passed over, and `files` names the first ten files in which they are.
    """
    unknown = skipped.filter(pc.is_null(skipped["rows"]))
    return {
        "rows": (pc.sum(skipped["rows"]).as_py() or 0) + len(unknown),
        "at_least": len(unknown) > 0,
        "bytes": pc.sum(unknown["bytes"]).as_py() or 0,
        "files": unknown["file"].unique().to_pylist()[:10],
    }


def count_skipped(skipped: pa.Table | None) -> dict[str, int]:
    """Return the entry `skipped` of the counts of a report: the number of rows; no entry if none may be skipped."""
    return {} if skipped is None else {"skipped": summary_of(skipped)["rows"]}


class Loss(NamedTuple):
    """Rows that cannot be read.

    Parameters
    ----------
    file : str
        As messages name it.
    row : int
        The first of the rows, from 0.
    line : int or None
        Its line, from 1, in JSON lines; its record, in WARC.
    rows : int or None
        Their number; None for all rows that follow, if nobody knows their number.
    num_bytes : int or None
        Bytes of the file that were passed over, if the number of rows is unknown.
    message : str
        Why they cannot be read.
    """

    file: str
    row: int
    line: int | None
    rows: int | None
    num_bytes: int | None
    message: str


@dataclass(frozen=True)
class Problem:
    """Losses that follow one another; a reader gives them together, as every row may be one."""

    losses: list[Loss]


class Noted:
    """Take losses where rows are read ahead of their turn; `drain` gives them when that has come.

    Parameters
    ----------
    skips : bool
        Whether rows may be left out; else `add` raises at once.
    """

    def __init__(self, skips: bool) -> None:
        self.skips = skips
        self._losses: list[Loss] = []

    def add(
        self,
        error: InputError | str,
        file: str,
        row: int,
        *,
        line: int | None = None,
        rows: int | None = 1,
        num_bytes: int | None = None,
    ) -> None:
        """Note rows that cannot be read; the parameters are those of `Loss`, and `error` is or has the message."""
        if not self.skips:
            raise _placed(error, file, row, line, rows)
        self._losses.append(Loss(file, row, line, rows, num_bytes, str(error)))

    def drain(self) -> Iterator[Problem]:
        """Yield what was added since the last call, if anything was."""
        losses, self._losses = self._losses, []
        if losses:
            yield Problem(losses)


@dataclass
class Skipped:
    """The rows that one reading of a file (or of all text files together) left out."""

    skips: bool
    entries: list[Entry] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)  # (first row from 0, rows)
    first_row: int = 0  # rows of the file before those that are read

    def note(self, problem: Problem) -> None:
        """Note losses that were found ahead."""
        for file, row, line, rows, num_bytes, message in problem.losses:
            place = self.first_row + row + 1 if line is None else line
            self.entries.append((file, place, rows, num_bytes, message))
            if rows:
                self.leave_out(row, rows)

    def leave_out(self, row: int, rows: int) -> None:
        """Count rows, from `row` on, as left out."""
        first, before = self.ranges[-1] if self.ranges else (0, 0)
        if before and first + before == row:
            self.ranges[-1] = (first, before + rows)
        else:
            self.ranges.append((row, rows))

    @property
    def num_rows(self) -> int:
        """Number of rows that are known to have been left out."""
        return sum(rows for _, rows in self.ranges)

    def read(self, num_documents: int) -> np.ndarray:
        """Which of all rows were read: bool, shape (documents and rows left out,)."""
        mask = np.ones(num_documents + self.num_rows, bool)
        for first, rows in self.ranges:
            mask[first : first + rows] = False
        return mask


def _placed(error: InputError | str, file: str, row: int, line: int | None, rows: int | None) -> InputError:
    """Return the error with the file and the row, which is unknown if both `line` and `rows` are."""
    if isinstance(error, str):
        error = InputError(error, path=file)
    error.path = error.path or file
    error.row = error.row or (None if (rows, line) == (None, None) else line or row + 1)
    return error


def check_skipped(skipped: pa.Table | None) -> None:
    """Raise InputError if no row of an input could be read; `skipped` lists the rows that could not."""
    if skipped is None or len(skipped) == 0:
        return
    first = skipped.slice(0, 1).to_pylist()[0]
    raise InputError(
        f"the input holds no documents that can be read: {skipped_in_words(summary_of(skipped))} left out, the first "
        f"in {first['file']} ({first['reason']})"
    )
