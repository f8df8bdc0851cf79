"""Rows that cannot be read: the first one ends the reading, or each is noted and left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from .. import checks
from ..errors import InputError, ParameterError
from .encodings import check_encoding
from .reading_options import INPUT_FORMATS, MAX_DOCUMENT_BYTES, NULL_VALUES

SCHEMA = pa.schema([("file", pa.string()), ("row", pa.int64()), ("rows", pa.int64()), ("reason", pa.string())])
"""Columns of skipped.parquet. `row` counts from 1 and is null for a whole file; in JSON lines it is the line's number.
`rows` is the number of rows from there on that cannot be read, null where that is unknown."""


@dataclass(frozen=True)
class Policy:
    """How an input is read: every reader receives one, whatever its format.

    All options of reading travel in this object, and in no other way. To add an option:

    1. Add a field to `reading_options.Reading`. It becomes a flag of `dedup`, `sketch`, `index add` and `index query`.
    2. Add a parameter of the same name to `open_documents`, `dedup`, `dedup_in_tasks`, `sketch`, `Index.add` and
       `Index.query`, and document it. `settings.arguments_for` passes it on to `open_documents`.
    3. Add a field of the same name here, of a type that JSON has, and check its value in `__post_init__`. Readers use
       it as `self.policy.name`. Slices for tasks, reports, and inputs that are opened again from a report have it too.

    Parameters
    ----------
    on_error : "stop" or "skip"
    max_document_bytes : int
    null_values : tuple of str, optional
        What marks a missing value in a column of CSV or JSON lines that is compared.
    input_format : str or None
        A name of `INPUT_FORMATS`.
    delimiter : str or None
        A character, or "auto".
    header : bool
    tree : bool
        Whether the text of HTML is taken from a parser's tree.
    encoding : str or None
        A label of the Encoding Standard, which becomes the name of its encoding: of text that is not UTF-8.
    """

    on_error: str = "stop"
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    null_values: Sequence[str] | None = None
    input_format: str | None = None
    delimiter: str | None = None
    header: bool = True
    tree: bool = False
    encoding: str | None = None

    def __post_init__(self) -> None:
        most = checks.integer("max_document_bytes", self.max_document_bytes, 1)
        object.__setattr__(self, "on_error", checks.one_of("on_error", self.on_error, ("stop", "skip")))
        object.__setattr__(self, "max_document_bytes", most)
        object.__setattr__(self, "null_values", checks.optional(checks.strings, "null_values", self.null_values))
        given = checks.optional(checks.one_of, "input_format", self.input_format, tuple(INPUT_FORMATS))
        object.__setattr__(self, "input_format", given)
        label = checks.optional(checks.text, "encoding", self.encoding, "give a label such as windows-1251")
        object.__setattr__(self, "encoding", check_encoding(label))
        object.__setattr__(self, "delimiter", checks.optional(_delimiter, "delimiter", self.delimiter))
        object.__setattr__(self, "header", checks.flag("header", self.header))

    @property
    def markers(self) -> Sequence[str]:
        """What marks a missing value in a column that is compared."""
        return NULL_VALUES if self.null_values is None else self.null_values

    @property
    def skips(self) -> bool:
        """Whether rows that cannot be read are left out."""
        return self.on_error == "skip"

    def to_json(self) -> dict[str, Any]:
        """Return the options by their names, as parameters of `open_documents`; `html` says whether there is a tree."""
        return {name: value for name, value in asdict(self).items() if name != "tree"}


def _delimiter(name: str, value: Any) -> str:
    """Return the character that divides the fields of CSV, or "auto"."""
    given = checks.text(name, value, 'give a character such as ";", or "tab" or "auto"')
    found = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if found != "auto" and (len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\r\n'):
        raise ParameterError(
            f'{name}: {checks.shown(value)} divides no fields; give one ASCII character such as ";", or "tab" or "auto"'
        )
    return found


@dataclass(frozen=True)
class Problem:
    """Rows that cannot be read, as `Skipped.add` is told of them."""

    error: InputError
    file: str
    row: int
    line: int | None
    rows: int | None


class Noted:
    """Takes what `Skipped.add` takes where rows are read ahead of their turn; `drain` gives it when that has come.

    Parameters
    ----------
    skips : bool
        Whether rows may be left out; else `add` raises at once.
    """

    def __init__(self, skips: bool) -> None:
        self.skips = skips
        self._found: list[Problem] = []

    def add(self, error: InputError, file: str, row: int, *, line: int | None = None, rows: int | None = 1) -> None:
        """See `Skipped.add`."""
        if not self.skips:
            error.path = error.path or file
            error.row = error.row or (None if (rows, line) == (None, None) else line or row + 1)
            raise error
        self._found.append(Problem(error, file, row, line, rows))

    def drain(self) -> Iterator[Problem]:
        """What was added since the last call, in order."""
        found, self._found = self._found, []
        yield from found


@dataclass
class Skipped:
    """What one reading of a file (or of all text files together) left out."""

    skips: bool
    entries: list[dict[str, object]] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)  # (first row from 0, rows)
    first_row: int = 0  # rows of the file before those that are read

    def add(self, error: InputError, file: str, row: int, *, line: int | None = None, rows: int | None = 1) -> None:
        """Note a row, or several, that cannot be read.

        Parameters
        ----------
        error : InputError
            Raised at once if nothing is to be skipped.
        file : str
            As messages name it.
        row : int
            The first of the rows, from 0.
        line : int, optional
            Its line, from 1, in JSON lines.
        rows : int, optional
            Their number; None for all rows that follow, if nobody knows their number.
        """
        place = self.first_row + row + 1 if line is None else line
        error.path, error.row = error.path or file, error.row or (None if (rows, line) == (None, None) else place)
        if not self.skips:
            raise error
        where = file if line is None else f"{file} line {line}"
        reason = str(error).removeprefix(f"{where}: ").removeprefix(f"{file}: ")
        self.entries.append({"file": file, "row": place, "rows": rows, "reason": reason})
        if rows:
            self.ranges.append((row, rows))

    def note(self, problem: Problem) -> None:
        """Do as `add` does with a problem that was found ahead."""
        self.add(problem.error, problem.file, problem.row, line=problem.line, rows=problem.rows)

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
