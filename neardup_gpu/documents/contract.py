"""Define what a reader has to do. A format is a file with a class of this form, and a line in `formats.FORMATS`."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from ..records import dataclass
from .ahead import Step
from .batches import ReadRows
from .edits import StoredRows
from .files import File, Seen, State
from .packed import PACKING, compression_of
from .reading import reading
from .reading_options import Reading
from .skipped import Problem


@dataclass(frozen=True)
class Part:
    """A run of a reader's rows.

    Parameters
    ----------
    start, stop : int
        Where it begins and ends, in the units of the reader: row groups, record batches, bytes, files. `stop` is None
        for the end, however far that is.
    num_rows : int or None
        Number of rows; None where that is unknown before they are read.
    num_bytes : int
        About the bytes of their text.
    first_place : int or None
        Places of the file before the part: rows, or lines of JSON lines; None where nobody has counted them.
    """

    start: int
    stop: int | None
    num_rows: int | None
    num_bytes: int
    first_place: int | None


WHOLE = Part(0, None, None, 0, 0)
"""All rows of a reader."""


def even_runs(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield where runs of consecutive sizes begin and end that add up to about the same, and to about `most` at most.

    A size belongs to the run in which its middle lies. There is one run of nothing if there are no sizes.
    """
    total = sum(sizes)
    number = max(1, -(-total // most))
    start = stop = before = 0
    run = 0
    for size in sizes:
        own = min(number - 1, (2 * before + size) * number // (2 * total)) if total else 0
        if own != run and stop > start:
            yield start, stop
            start = stop
        run, stop, before = own, stop + 1, before + size
    yield start, stop


def runs(sizes: Iterable[int], most: int) -> Iterator[tuple[int, int]]:
    """Return where runs of consecutive sizes begin and end. No run adds up to more than `most` unless it is one size.

    There is one run of nothing if there are no sizes.
    """
    start = stop = total = 0
    for size in sizes:
        if stop > start and total + size > most:
            yield start, stop
            start, total = stop, 0
        stop, total = stop + 1, total + size
    yield start, stop


class Reader(ABC):
    """Documents of one file, of one table in memory, or of all text files together.

    Attributes
    ----------
    name : str
        The file or table as messages name it.
    files : list of File
        The files that the reader reads; empty for documents in memory.
    schema : pyarrow.Schema
        All columns.
    num_rows : int or None
        Number of rows; None where the file does not say it.
    num_bytes : int
        Size of the file; 0 where it is not needed because `num_rows` is known.
    share : float
        Share of `num_bytes` that has been read so far; 0 if it is not known.
    rewindable : bool
        Whether the rows can be read more than once.
    spent : bool
        Whether the rows have been read and cannot be read again.
    reads_columns_alone : bool
        Whether one column can be read at much less cost than all of them.
    infers_types : bool
        Whether the schema is inferred from the first rows; the reader is an `InferringReader` then.
    own_ids : str or None
        The column of the reader's own making that names each document, as text files have in their paths.
    usual_ids : str or None
        The column that names each document unless the user names another one; None if the format has none.
    reads_html : bool
        Whether the reader takes the visible text of HTML by itself.
    row_word : str
        What a row is called: "row", "line" or "record".
    part : Part
        Which of the rows the reader gives: `WHOLE`, or what it was made with.
    stripped_pages : int
        HTML pages of the last reading that were not parsed, because a parser would have needed too long.
    left_out : dict of str to int
        Number of records in the last reading that are not documents, such as requests in a crawl, by their kind.
    seen : Seen or list of (Seen or None)
        The file, or each file, as it was when it was first opened.
    """

    name: str
    files: list[File]
    schema: pa.Schema
    num_rows: int | None = None
    num_bytes: int = 0
    share: float = 0.0
    rewindable: bool = True
    spent: bool = False
    reads_columns_alone: bool = False
    infers_types: bool = False
    own_ids: str | None = None
    usual_ids: str | None = None
    reads_html: bool = False
    row_word: str = "row"
    part: Part
    stripped_pages: int = 0
    left_out: Mapping[str, int] = MappingProxyType({})
    seen: Any

    @abstractmethod
    def parts(self, most_bytes: int) -> list[Part]:
        """All rows in parts of about `most_bytes` of text, in order; at least one. What cannot be divided is a part of
        its own, however large. Readers of files are made again with a part, to read that alone."""

    def states(self) -> list[State | None]:
        """Return the state of each file when it was first opened; None for a file that could not be opened."""
        return [self.seen.state]

    def rows_before(self) -> int:
        """Rows of the file before the part. They may have to be counted, so messages alone name them."""
        return self.part.first_place or 0

    def num_places(self, num_rows: int) -> int:
        """Places that the last reading, of this many rows, passed: rows, or lines with blank ones."""
        return num_rows

    @abstractmethod
    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """The reading of all rows, in steps that any thread may make: batches of the columns of `schema`, of about
        `max_bytes`, and rows that cannot be read, which raise an error unless they may be skipped.

        Steps are taken in order, one after another; telling them apart is the only work between them. An error that a
        step raises, or that is raised between two steps, belongs to that place.
        """

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Return the places of some rows of the last reading in their file, counted from 1: rows, or lines.

        They are counted from the beginning of the part if `part.first_place` is unknown.
        """
        return rows + 1 + (self.part.first_place or 0)

    @abstractmethod
    def stored(self) -> Iterator[StoredRows]:
        """Yield all rows as they are stored, in pieces: blocks of lines, record batches, files or records."""

    def batches(self, rows: Any, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        """Return rows of `stored` with all their columns. Any thread may read them.

        `schema` gives the columns of all files if types are inferred.
        """
        return rows.batches()

    def kept_schema(self) -> pa.Schema:
        """Return the columns of `batches`; reads the whole file if types are inferred."""
        return self.schema

    @abstractmethod
    def write(self, folder: Path, name: str, kept: Iterator[Step[Any]]) -> None:
        """Write rows, as pieces of `stored` give them raw, in the input's own format, as `folder / name`."""


class FileReader(Reader):
    """A reader of one file, or of a part of it."""

    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        self.file, self.files, self.name, self.policy, self.part = file, [file], file.name, policy, part
        self.compression = compression_of(file.path)
        with reading(self.name):
            self.seen = Seen(file)

    def parts(self, most_bytes: int) -> list[Part]:
        """Return the whole file as one part; if it is compressed, the size of its text is guessed.

        Only who has read what comes before it knows where a record of WARC begins, and whether a line ending of CSV is
        within quotes. So these files are not divided.
        """
        return [Part(0, None, None, self.seen.size * (1 if self.compression is None else PACKING), 0)]

    @contextlib.contextmanager
    def opened(self, problem: str = "cannot be read") -> Iterator[Any]:
        """Open the file, which has to be as it was when it was first opened."""
        with (
            self.seen.unchanged(self.file),
            reading(self.name, problem),
            self.file.system.open_input_file(self.file.path) as file,
        ):
            yield file

    def too_long(self) -> str:
        """Say that a row is longer than it may be, and the remedy."""
        most = self.policy.max_document_bytes
        return f"longer than {most:,} bytes; shorten it, or allow more with max_document_bytes=..."


class InferringReader(FileReader):
    """A reader whose file has no schema, so that columns and types are inferred from its first rows.

    Attributes
    ----------
    sample : str
        What the schema was inferred from, as messages name it: "the first 100 lines".
    as_strings : bool
        Whether every value is a string as it stands, and of another type only if all values of its column are.
    doubtful_header : str or None
        The first name in the header that looks like data, so that the first row may be none; None without a header.
    """

    sample: str
    as_strings: bool = False
    doubtful_header: str | None = None
    infers_types = True

    @abstractmethod
    def look_for(self, name: str, typed: bool, key: bool) -> None:
        """Add a column to the schema, however far down it first appears; `typed`: with a value that is not null;
        `key`: it names the documents."""

    def members(self, name: str) -> list[str]:
        """Names of the columns within a column of objects, as far as the sample shows them; none without objects."""
        return []

    def texts_within(self, name: str) -> Iterator[str]:
        """Yield the paths that lead from a column to strings within it, as far as the sample shows them."""
        return iter(())

    @abstractmethod
    def holds_text(self, name: str) -> bool:
        """Whether the column holds a string anywhere."""

    @abstractmethod
    def numbers(self, name: str) -> set[str]:
        """Return which numbers a column holds: "negative", "wide" (integers from 2**63 on) and "float".

        "text" is among them if the file can hold both, and holds strings other than markers of missing values.
        """

    @abstractmethod
    def in_words(self, name: str, kind: pa.DataType) -> tuple[str, str]:
        """Return the place that decided a column's type, and what a column of this type holds, as messages name them:
        "x.jsonl line 3", "an array"."""


def infers_types(reader: Reader) -> TypeGuard[InferringReader]:
    """Whether the reader is an `InferringReader`."""
    return reader.infers_types
