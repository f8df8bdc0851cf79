"""Documents of one source: their batches in input order, their ids and places, and the kept rows written back.

Input order is (sorted path, row). Text flows through in batches bounded in bytes; threads in the background decode the
next ones while the caller works on this one (`ahead`). Text leaves here as bytes, exactly as it was stored: nobody
checks UTF-8 before the token kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from .. import checks
from ..data import Ragged, added_up, arrow, strings
from ..errors import ArgumentTypeError, InputError
from ..log import log
from ..records import dataclass
from ..report import count
from ..text.raw_text import TO_STRING, to_readable
from . import nested
from .ahead import Step, ahead, closing
from .batches import PIECE_BYTES, ReadRows, TextParts, coalesce, one_integer_type, ragged, size_of, sliced
from .columns import check_ids, copied, decoded, is_string, outside_int64, plain_type, validated_column
from .compared import Looks, SeenStrings, categories_of, compared, is_ordered, one_order, remark
from .contract import Reader, infers_types
from .edits import EditQueue, Edits, as_stored, kept_rows
from .files import names_below, relative_names
from .joined_text import OutsideError, as_bytes, count_replaced, integers_as_bytes, joined, joined_lists, visible
from .json_values import COMPARED
from .kept import each_in_order, writing
from .memory import Memory
from .nested import is_list, is_listed
from .passes import Pass, located, over_readers, place
from .reading import reading
from .reading_options import Reading, described, of_columns
from .row_ids import (
    IdsGiven,
    IntegerRange,
    RepeatedIds,
    Repeats,
    check_suffix,
    repeated,
    say_repeated,
    stands_for_several,
    with_ids,
)
from .schemas import Columns, DecidedColumns, columns_of_folders
from .skipped import Entry, Problem, Skipped, table_of


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive documents of a source.

    Parameters
    ----------
    first_row : int
        Number of the first document, in input order.
    ids : pyarrow.Array, length n
        The id column (dictionaries decoded, views as large strings); relative paths for text files; else int64 row
        numbers. Rows that cannot be read and are skipped have numbers too. Integers of JSON lines are uint64 in batches
        that hold one from 2**63 on.
    text : Ragged of uint8, n rows
        The documents' bytes; nulls are empty. Several text columns are joined, with the bytes ``ED B0 80 0A`` between
        them: a border, which is a token of its own, and a line break.
    num_null : int
        Documents whose text is null.
    columns : dict of str to pyarrow.Array, each of length n
        The extra columns that the caller named, dictionaries decoded. Like the ids, they do not hold on to the text's
        memory.
    """

    first_row: int
    ids: pa.Array
    text: Ragged
    num_null: int
    columns: dict[str, pa.Array]

    @property
    def num_rows(self) -> int:
        """Number of documents."""
        return len(self.text)


@dataclass(frozen=True, eq=False)
class PartOfWhole:
    """The properties of a whole source that `Documents` of a part of it take over.

    Parameters
    ----------
    columns : Columns or DecidedColumns
    names : list of str
        Each file's path below the folder that all files of the whole share.
    kept_names : list of str
        Under which names the readers write their kept rows.
    passes : list of Pass
        What an earlier reading found; none where there was none.
    repeats : list of Repeats, default None
        For each reader, the rows whose id an earlier document of the whole has; None if nobody knows them.
    """

    columns: Columns | DecidedColumns
    names: list[str]
    kept_names: list[str]
    passes: list[Pass]
    repeats: list[Repeats] | None = None


class Documents:
    """Documents of one source: see `open_documents`, which makes them.

    Examples
    --------
    >>> from neardup_gpu import open_documents
    >>> documents = open_documents({"text": ["to be", "or not to be"]})
    >>> documents.format, documents.num_files, documents.rewindable
    ('memory', 0, True)
    """

    def __init__(
        self,
        readers: list[Reader],
        kind: str,
        reading: Reading,
        *,
        sources: list[str],
        other_columns: Iterable[str] = (),
        left_out: dict[str, dict[str, Any]] | None = None,
        unreadable: Sequence[Entry] = (),
        part: PartOfWhole | None = None,
    ) -> None:
        self._readers, self._sources, self._policy, self._unreadable = readers, sources, reading, unreadable
        self._read = (0, 0.0)  # documents and bytes of files that have been read
        self._stripped = 0
        self._replaced = np.zeros(2, np.int64)  # of the last pass: see `count_replaced`
        self._left_out = left_out or {}
        self._passes: list[Pass] = []  # of the last reading, one for each reader
        self._integers = IntegerRange(None)  # of the last reading
        self._skipped: tuple[list[Pass], pa.Table] | None = None  # of a reading, once it has been asked for
        self._unique = False
        self._ids_given: IdsGiven | None = None  # if readings of several documents go on with one another's ids
        self._repeats = None if part is None else part.repeats
        self._repeated = RepeatedIds(0, [])  # of the last reading
        self._looks: dict[str, Looks] = {}  # of columns that are compared, in the last reading
        self._orders: dict[str, set[tuple[str, ...]]] = {}  # of ordered categories
        self.in_effect: list[str] = []  # options that only some sources need, and that this one needs
        self.without_effect: dict[str, str] = {}  # those that change nothing here, and why
        self.format = kind
        self.splits = [reader.split for reader in readers if isinstance(reader, Memory) and reader.split]
        self.html = reading.html
        self.id_column = reading.id_column or readers[0].usual_ids
        self._columns: Columns | DecidedColumns
        if part is None:
            self._columns = Columns(readers, reading, other_columns)
            if reading.on_duplicate_id == "suffix" and self._finds_repeats:
                check_suffix(self._id_type, self._columns.key or "", readers[0].name)
            files = [file for reader in readers for file in reader.files]
            named = relative_names if self._columns.are_own else names_below
            self._kept_names = [f"{split}.parquet" for split in self.splits] or ["part-00000.parquet"]
            self._names = self.splits or self._kept_names
            if files:
                self._names = named(files)
                self._kept_names = self._names[: len(readers)]
            if reading.encoding is not None and self._holds_strings():
                log.warning("%s: its text is strings, which are UTF-8; encoding changes nothing here", readers[0].name)
        else:
            self._columns, self._names, self._kept_names = part.columns, part.names, part.kept_names
            self._passes = part.passes
        self.text_columns = self._columns.text

    def _holds_strings(self) -> bool:
        """Return whether all text comes as strings, from whatever Arrow has decoded."""
        if self.reads_html or any(map(infers_types, self._readers)):
            return False
        kinds = [nested.field(self._readers[0].schema, name).type for name in self._columns.text]
        return all(is_string(plain_type(kind.value_type if is_list(kind) else kind)) for kind in kinds)

    @property
    def rewindable(self) -> bool:
        """Whether the documents can be read more than once."""
        return all(reader.rewindable for reader in self._readers)

    @property
    def reads_html(self) -> bool:
        """Whether the format itself says which documents are pages, as that of a crawl does."""
        return self._readers[0].reads_html

    @property
    def num_columns(self) -> int:
        """Number of columns of the first file or table."""
        return len(self._readers[0].schema)

    @property
    def _leaves_ids_unread(self) -> bool:
        """Whether ids are row numbers, although the first file has a column `id`."""
        first = self._readers[0]
        return self._columns.key is None and bool(first.files) and "id" in first.schema.names

    @property
    def _id_type(self) -> pa.DataType:
        """The type of ids."""
        return pa.int64() if self._columns.key is None else self._columns.type_of(self._columns.key)

    @property
    def _finds_repeats(self) -> bool:
        """Whether documents may have the id of an earlier one, and that does not end the reading."""
        return self._policy.on_duplicate_id != "stop" and self._columns.key is not None and not self._columns.are_own

    @property
    def _repeated_counts(self) -> dict[str, int]:
        """The number of documents of the last pass whose id an earlier one has, as reports count it."""
        return {"repeated_ids": self._repeated.number} if self._finds_repeats else {}

    @property
    def extracts_text(self) -> bool:
        """Whether the text of a document is made from its columns: of HTML, or of several columns."""
        return not self._columns.are_own and (len(self.text_columns) > 1 or (bool(self.html) and not self.reads_html))

    @property
    def num_files(self) -> int:
        """Number of input files; 0 for documents in memory."""
        return sum(len(reader.files) for reader in self._readers)

    @property
    def num_rows(self) -> int | None:
        """Number of documents. Where files do not say it, it is estimated from the share of their bytes that has been
        read; None before that, and for streams."""
        numbers = [reader.num_rows for reader in self._readers]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            return sum(known)
        rows, num_bytes = self._read
        whole = sum(reader.num_bytes for reader in self._readers)
        return max(rows, round(rows * whole / num_bytes)) if rows and num_bytes and whole else None

    @property
    def stripped_pages(self) -> int:
        """Pages of HTML of the last pass that would have taken a parser too long: their tags were taken out."""
        return self._stripped + sum(reader.stripped_pages for reader in self._readers)

    @property
    def replaced_text(self) -> int:
        """Documents of the last pass whose text holds U+FFFD, such as pages that name a wrong encoding."""
        return int(self._replaced[0])

    @property
    def garbled_text(self) -> int:
        """Documents of the last pass of whose characters more than 5% are U+FFFD."""
        return int(self._replaced[1])

    @property
    def packing(self) -> str | None:
        """The extension of the compression of the first file, where it has one."""
        suffix = Path(self._names[0]).suffix.lower()
        return suffix if suffix in (".gz", ".zst") else None

    @property
    def left_out(self) -> dict[str, dict[str, Any]]:
        """Files and folders that were found but are not read, by reason: ``files`` and ``folders`` are their numbers,
        ``first`` are the first ten names, and ``suggested_glob`` is a pattern that reads many files of other kinds, if
        most files of the folder are of other kinds."""
        return self._left_out

    @property
    def left_out_records(self) -> dict[str, int]:
        """Number of records in the last pass that are not documents, such as requests in a crawl, by their kind."""
        return dict(sorted(added_up(reader.left_out for reader in self._readers).items()))

    @property
    def local_files(self) -> list[str]:
        """Paths of the input files that are on this machine, without that of standard input."""
        files = [file for reader in self._readers for file in reader.files if file.how != "stream"]
        return [file.path for file in files if isinstance(file.system, fs.LocalFileSystem)]

    def describe(self) -> dict[str, Any]:
        """Return what `open_described` needs to open the same documents, ready for JSON.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> open_documents({"text": ["to be"]}).describe()["format"]
        'memory'
        """
        return {
            "paths": self._sources,
            "glob": self._policy.glob,
            "format": self.format,
            "text_columns": None if self._columns.are_own else self.text_columns,
            "id_column": self.id_column,
            **({"unread_ids": "id"} if self._leaves_ids_unread else {}),
            "html": self.html,
            "num_files": self.num_files,
            "left_out": self._left_out,
            **self._repeated_counts,
            **described(self._policy),
        }

    @property
    def skipped(self) -> pa.Table | None:
        """Rows that the last reading left out, in input order: file, row, rows, bytes, reason. None unless rows that
        cannot be read, or whose id an earlier one has, are to be left out.

        `row` counts from 1, in JSON lines the lines of the file; it is null where the whole file cannot be read. `rows`
        is the number of rows from there on: null where it is unknown, as after damage in a compressed file. Where it is
        null, `bytes` is the number of bytes of the file that were passed over, null where that is unknown, too.
        """
        if not self._policy.leaves_out:
            return None
        found = [self._unreadable, *map(self._entries, range(len(self._passes)))]
        number = sum(map(len, found))
        if self._skipped is None or self._skipped[0] is not self._passes or len(self._skipped[1]) != number:
            self._skipped = self._passes, table_of([entry for entries in found for entry in entries])
        return self._skipped[1]

    def _entries(self, number: int) -> list[Entry]:
        """Return the entries of `skipped` about the reader of this number."""
        current = self._passes[number]
        again = self._repeated.entries(number, current) if self._policy.on_duplicate_id == "first" else []
        return sorted([*current.skipped.entries, *again], key=lambda entry: entry[1] or 0)

    def batches(self, columns: Iterable[str] = (), max_bytes: int = 16 << 20) -> Iterator[Batch]:
        """Stream all documents, in input order.

        Parameters
        ----------
        columns : iterable of str, default ()
            Extra columns to bring along.
        max_bytes : int, default 16 MiB
            Bound on the text of a batch, each row counted with 128 bytes more. A longer document is a batch of its own.

        Returns
        -------
        iterator of Batch
            The same documents for any `max_bytes`; nothing for an empty source.

        Raises
        ------
        InputError
            At once for a missing column or a spent stream; while reading for broken data and null ids.
        ParameterError, ArgumentTypeError
            If `columns` are not names of columns, or `max_bytes` is not a whole number.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> documents = open_documents({"text": ["to be", "or not"], "year": [1599, 1603]})
        >>> [batch.columns["year"].to_pylist() for batch in documents.batches(["year"])]
        [[1599, 1603]]
        """
        names = list(dict.fromkeys(checks.columns("columns", columns, none=True)))
        max_bytes = checks.integer("max_bytes", max_bytes)
        for name in names:
            self._columns.check_values(name)
        types = {name: self._columns.type_of(name) for name in names}
        self._looks |= {name: Looks() for name in names}
        self._orders |= {name: set() for name in names}
        if not self.rewindable and self._readers[0].spent:
            raise InputError("the stream has been read and gives its documents only once; pass a table instead.")
        return self._batches(types, max(1, max_bytes))

    def _batches(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[Batch]:
        first_row = self._stripped = 0
        self._replaced[:] = 0
        with closing(ahead(coalesce(self._pieces(types, max_bytes), max_bytes))) as pieces:
            for texts, others, num_null in pieces:
                ids, *columns = others.columns
                extra = dict(zip(types, columns, strict=True))
                for name, column in extra.items():
                    self._looks[name].add(column, first_row)
                text = ragged(texts[0]) if len(texts) == 1 else TextParts(texts)
                yield Batch(first_row, ids, text, num_null, extra)
                first_row += others.num_rows

    def _pieces(self, types: dict[str, pa.DataType], max_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """(text as large_binary without nulls, id, extra columns) and the number of nulls there were."""
        key = self._columns.key
        key_type = None if key is None else self._columns.type_of(key)
        kind = pa.int64() if self._policy.integers else pa.string()
        listed = {name: self._policy.integers or is_listed(name) for name in self.text_columns}
        wanted = {name: pa.field(name, pa.list_(kind) if several else kind) for name, several in listed.items()}
        wanted |= {name: pa.field(name, kind, metadata={COMPARED: b""}) for name, kind in types.items()}
        if key is not None and key_type is not None:
            mark = {COMPARED: b""} if self._columns.mixes_ids else None
            wanted[key] = pa.field(key, key_type, nullable=pa.types.is_null(key_type), metadata=mark)
        schemas = [_columns_there(reader, wanted) for reader in self._readers]
        self._integers = integers = IntegerRange(key)
        given = self._ids_given or self._repeats or IdsGiven(self._policy.on_duplicate_id)
        self._repeated = repeated = RepeatedIds(len(self._readers), given)
        self._passes = passes = self._new_passes()
        first = num_documents = at = 0  # first row of the file, among the rows of all files, and documents so far
        num_bytes = 0.0

        def steps(number: int) -> Iterator[Step[_ReadPiece | Problem]]:
            with closing(self._readers[number].steps(schemas[number], max_bytes)) as several:
                for step in several:
                    make = partial(self._prepared, step, self._readers[number], key_type, types)
                    yield Step(make, step.num_bytes)

        with closing(over_readers(self._readers, steps, size_of)) as pieces:
            for number, piece in pieces:
                while at < number:
                    first += passes[at].num_documents + passes[at].skipped.num_rows
                    num_bytes += self._readers[at].num_bytes
                    at += 1
                current, reader = passes[number], self._readers[number]
                if isinstance(piece, Problem):
                    current.skipped.note(piece)
                    continue
                if key is None:
                    ids = arrow(piece.rows + first)
                else:
                    batch, rows, ids = with_ids(piece.batch, piece.rows, piece.ids, key, current)
                    if self._finds_repeats:
                        batch, rows, ids = repeated.resolved(batch, rows, ids, number, current)
                    if len(rows) < len(piece.rows):
                        piece = self._piece(batch, rows, ids, piece.share, reader, types)
                    integers.check(ids, reader.name)
                self._stripped += piece.num_stripped
                self._replaced += piece.replaced
                arrays = [piece.text, ids, *piece.extra]
                num_documents += len(piece.rows)
                self._read = num_documents, num_bytes + piece.share * reader.num_bytes
                yield pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))]), piece.num_null
                current.num_documents += len(piece.rows)
        if self._ids_given is None and self._repeats is None:
            say_repeated(repeated.number, self._policy.on_duplicate_id, self._readers)

    def _new_passes(self) -> list[Pass]:
        return [
            Pass(reader, Skipped(self._policy.skips, first_row=reader.part.first_place or 0))
            for reader in self._readers
        ]

    def _prepared(
        self,
        step: Step[ReadRows | Problem],
        reader: Reader,
        key_type: pa.DataType | None,
        types: dict[str, pa.DataType],
    ) -> Iterator[_ReadPiece | Problem]:
        """Yield the results of a step, with ids, text and the extra columns of `types`."""
        key = self._columns.key
        with closing(step.make()) as items:
            for found in items:
                if isinstance(found, Problem):
                    yield found
                    continue
                start = 0
                for batch in sliced(found.batch, self.text_columns, self.html):
                    rows, ids = found.rows[start : start + batch.num_rows], None
                    if key is not None:
                        with reading(reader.name):
                            ids = _ids(validated_column(_column_of(batch, key, reader)), key_type, reader)
                    yield self._piece(batch, rows, ids, found.share, reader, types)
                    start += batch.num_rows

    def _piece(
        self,
        batch: pa.RecordBatch,
        rows: np.ndarray,
        ids: pa.Array | None,
        share: float,
        reader: Reader,
        types: dict[str, pa.DataType],
    ) -> _ReadPiece:
        with reading(reader.name):
            try:
                text, num_null, num_stripped = self._text(batch, reader)
            except OutsideError as error:
                row = rows[error.row] + reader.rows_before() + 1
                which = "" if ids is None else f" of document {ids[error.row].as_py()!r}"
                what = f"column {self.text_columns[0]!r}{which} holds {outside_int64(error.value)}"
                raise InputError(f"{reader.name}: row {row:,}: {what}") from None
            extra = [self._compared(batch, name, kind, reader) for name, kind in types.items()]
        replaced = count_replaced(text) if self._policy.holds == "text" else (0, 0)
        return _ReadPiece(batch, rows, ids, text, num_null, num_stripped, replaced, extra, share)

    def _compared(self, batch: pa.RecordBatch, name: str, kind: pa.DataType, reader: Reader) -> pa.Array:
        """Return an extra column in the type that it has in all files; note the order of its categories."""
        column = _column_of(batch, name, reader)
        if is_ordered(column.type):
            self._orders[name].add(categories_of(column.dictionary))
        return compared(column, kind, self._policy.markers if reader.infers_types else ())

    def _text(self, batch: pa.RecordBatch, reader: Reader) -> tuple[pa.Array, int, int]:
        """The text of each document, without nulls; how many of them are null; and pages that were not parsed."""
        columns, num_stripped = [], 0
        if self._policy.integers:
            (name,) = self.text_columns
            return *joined([integers_as_bytes(batch.column(name))]), 0
        for name in self.text_columns:
            column = _without_nan(batch.column(name), name, reader)
            if is_list(column.type) and not pa.types.is_large_list(column.type):  # its own name looks like a path
                column = nested.follow(column, [nested.EACH])
            values = column.flatten() if is_list(column.type) else column
            if self.reads_html:  # whose readers have decoded the text
                texts = decoded(values, pa.large_binary())
            elif self.html:
                texts, number = visible(values, self._policy.tree, self._policy.encoding)
                num_stripped += number
            else:
                texts = as_bytes(values, self._policy.encoding)
            columns.append(texts if values is column else joined_lists(column, texts))
        return *joined(columns), num_stripped

    def _to_string(self, text: bytes) -> str:
        """Return a document as a string: of `raw_text`, integers with spaces between them, or hexadecimal digits."""
        return TO_STRING[self._policy.holds](text)

    def places(self) -> dict[str, pa.Array]:
        """Return the places of the documents of the last reading, as columns `file` and `row`.

        `file` is the path below the folder that all files share, and `row` counts from 1 (in JSON lines, the line). For
        a DatasetDict, `file` is the split. Other documents in memory have no places.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> open_documents({"text": ["to be"]}).places()
        {}
        """
        if self._columns.are_own:
            (current,) = self._passes
            numbers = np.flatnonzero(current.read_rows())
            rows = np.ones(current.num_documents, np.int64)
        elif self.num_files or self.splits:
            numbers = np.repeat(np.arange(len(self._passes)), [each.num_documents for each in self._passes])
            parts = [each.places(np.arange(each.num_documents)) for each in self._passes]
            rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
        else:
            return {}
        file = pa.DictionaryArray.from_arrays(arrow(numbers.astype(np.int32)), strings(self._names).cast(pa.string()))
        return {"file": file, "row": arrow(rows)}

    def _orders_of(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the order of the categories of each column of the last reading that has ordered categories.

        Raises
        ------
        InputError
            If files have the categories of a column in different orders.
        """
        return {name: one_order(orders, name) for name in names if (orders := self._orders.get(name))}

    def _strings(self, name: str) -> SeenStrings:
        """Return what the values of a column that is compared looked like in the last reading."""
        return self._looks.get(name, Looks()).seen(lambda document: located(self._passes, document))

    def _remarks(self, ordered: Iterable[str]) -> list[str]:
        """Return a sentence for each column that files do not have, or whose values were ordered as text."""
        texts = [remark(name, [self._strings(name)]) for name in ordered if not self._orders.get(name)]
        return [*self._columns_lacking(), *(text for text in texts if text is not None)]

    def _columns_lacking(self) -> list[str]:
        """Return a sentence for each column that is needed and that some files do not have."""
        found = []
        for name, (first, *others) in ((name, files) for name, files in self._columns.lacking.items() if files):
            which = f"{first} and {count(len(others), 'other file')} have" if others else f"{first} has"
            found.append(f"{which} no column {name!r}, so that its rows have no value there")
        return found

    def _each_file(self) -> list[Documents]:
        """Return the documents of each file, in the columns and types that they have in all files."""
        found = []
        for reader, name, kept in zip(self._readers, self._names, self._kept_names, strict=True):
            part = PartOfWhole(self._columns, [name], [kept], [])
            names = of_columns(self._policy, self.id_column, self.text_columns)
            files = [file.name for file in reader.files]
            found.append(Documents([reader], self.format, names, sources=files, part=part))
        return found

    def check_unique(self, ids: pa.Array | pa.ChunkedArray, what: str = "input") -> None:
        """Raise InputError if two documents of the last reading have the same id.

        Parameters
        ----------
        ids : pyarrow.Array or ChunkedArray
            Of all documents, in input order.
        what : str, default "input"
            What messages call the documents.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> open_documents({"text": ["to be", "or not"]}).check_unique(pa.array([0, 1]))
        """
        again = None if self._unique else repeated(ids)
        if again is None:
            return
        value, number, first, second = again
        raise stands_for_several(what, value, number, [place(self._passes, each) for each in (first, second)])

    def check_ids_early(self, what: str = "input") -> None:
        """Raise InputError for null and repeated ids, where the ids can be read without the text: before all work.

        Nothing is done where rows are skipped, as some of the repeated ids may be among those, or where
        `on_duplicate_id` allows repeated ids.

        Parameters
        ----------
        what : str, default "input"
            What messages call the documents.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> open_documents({"text": ["to be", "or not"]}).check_ids_early()
        """
        if self.id_column is None or self._policy.skips or self._finds_repeats:
            return
        if not all(reader.reads_columns_alone for reader in self._readers):
            return
        if not all(nested.count(reader.schema, self.id_column) for reader in self._readers):  # folders hold it
            return
        kind = self._columns.type_of(self.id_column)
        schema = pa.schema([pa.field(self.id_column, kind)])
        chunks: list[pa.Array] = []
        self._passes = passes = self._new_passes()
        integers = IntegerRange(self.id_column)
        with closing(
            over_readers(self._readers, lambda i: self._readers[i].steps(schema, PIECE_BYTES), size_of)
        ) as found:
            for number, item in found:
                current, name = passes[number], self._readers[number].name
                if isinstance(item, Problem):
                    current.skipped.note(item)
                    continue
                with reading(name):
                    ids = _ids(validated_column(item.batch.column(0)), kind, self._readers[number])
                integers.check(ids, name)
                check_ids(ids, self.id_column, name, int(item.rows[0]) if len(item.rows) else 0)
                chunks.append(copied(ids))
                current.num_documents += len(ids)
        if chunks:
            self.check_unique(pa.chunked_array(one_integer_type(chunks)), what)
        self._unique = True  # unless a file changes, which is noticed

    def write_kept(self, folder: Path, keep: np.ndarray, progress: Callable[[int, int], None] | None = None) -> None:
        """Write the rows to keep, all their columns, in the input's format.

        One file for each data file, even if no row of it is kept, and the text files that are kept, each under its path
        below the folder that all of them share. ``key=value`` folders, which hold a column's value where data is
        partitioned, stay even if all files share them. Documents in memory become ``part-00000.parquet``, or a file
        for each split, such as ``train.parquet``. The caller renames the folder around `folder` once all is written.

        Parameters
        ----------
        folder : Path
            Made if it does not exist.
        keep : array of bool, shape (documents,)
            In input order.
        progress : callable, default None
            Called with how many rows were read again, and of how many: one call at a time, from any of the threads that
            write.

        Raises
        ------
        InputError
            If the source is a stream, which gives its rows only once, or no longer holds the same number of documents,
            or is in memory and has a column of a type that Parquet lacks.
        OutputError
            If the folder cannot be written. Files are named from `folder` on: the folder around it is temporary.
        ParameterError, ArgumentTypeError
            If `folder` is not a path, or `keep` is not an array as described.

        Examples
        --------
        >>> import tempfile
        >>> from neardup_gpu import open_documents
        >>> documents = open_documents({"text": ["to be", "or not"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     documents.write_kept(Path(folder, "kept"), np.array([True, False]))
        ...     open_documents(f"{folder}/kept").num_rows
        1
        """
        if not self.rewindable:
            raise InputError("a stream cannot be read again to write the kept rows; pass a table instead.")
        folder, keep = Path(checks.path("folder", folder)), checks.array("keep", keep, bool)
        checks.optional(checks.function, "progress", progress, "how many rows were read again, and of how many")
        queue, parts = self._queued(Edits(keep), progress)
        with writing(folder, folder):
            folder.mkdir(parents=True, exist_ok=True)

        def write(reader: Reader, name: str, part: EditQueue) -> None:
            reader.write(folder, name, kept_rows(reader, part, as_stored))

        each_in_order(write, self._readers, self._kept_names, parts)
        queue.finish()

    def _check_plain(self, name: str, parameter: str) -> None:
        """Raise InputError unless there is a column of this name, and its values can be equal, as lists cannot."""
        self._columns.check_values(name, parameter)
        kind = self._columns.type_of(name)
        if pa.types.is_nested(kind):
            where = self._readers[0].name
            raise InputError(f"{where}: column {name!r} holds {kind}; {parameter} needs strings, numbers or dates")

    def _check_kept(self) -> None:
        """Raise InputError, before all work, if rows cannot be written with all their columns."""
        for reader in self._readers:
            if isinstance(reader, Memory):
                reader.check_kept()

    def _queued(
        self, edits: Edits, progress: Callable[[int, int], None] | None = None
    ) -> tuple[EditQueue, list[EditQueue]]:
        """Return the edits of all rows, among them those that were skipped, and the part of each reader."""
        depends = len(self._readers) > 1 or self._policy.leaves_out  # where documents are, on what was read
        if depends and sum(each.num_documents for each in self._passes) != len(edits):
            for _ in self.batches():  # the last reading ended early, or there was none
                pass
        queue = EditQueue(edits.over_all_rows(self._passes), progress)
        if len(self._readers) == 1:
            return queue, [queue]
        return queue, queue.divided([each.num_documents + each.skipped.num_rows for each in self._passes])

    def texts(self, rows: Iterable[int]) -> dict[int, str]:
        """Text of a few documents, by row number; reads the source up to the last of them.

        Invalid bytes read as U+FFFD. Several text columns are joined by line breaks.

        Parameters
        ----------
        rows : iterable of int
            Numbers of rows, from 0.

        Raises
        ------
        InputError
            If there is no such row.
        ParameterError, ArgumentTypeError
            If `rows` are not numbers of rows.

        Examples
        --------
        >>> from neardup_gpu import open_documents
        >>> open_documents({"text": ["to be", "or not", "to be"]}).texts([1])
        {1: 'or not'}
        """
        if isinstance(rows, str) or not hasattr(rows, "__iter__"):
            raise ArgumentTypeError(f"rows: {checks.shown(rows)}; give a list of row numbers")
        wanted = sorted({checks.integer("rows", row) for row in rows})
        found: dict[int, str] = {}
        with closing(self.batches()) as batches:
            for batch in batches:
                last = batch.first_row + batch.num_rows
                for row in wanted:
                    if batch.first_row <= row < last:
                        found[row] = to_readable(self._to_string(batch.text[row - batch.first_row].tobytes()))
                if not wanted or wanted[-1] < last:
                    break
        for row in wanted:
            if row not in found:
                raise InputError(f"{self._readers[0].name}: no document in row {row}.")
        return found


class _ReadPiece(NamedTuple):
    """Some rows of a reader as batches need them."""

    batch: pa.RecordBatch
    rows: np.ndarray
    ids: pa.Array | None
    text: pa.Array
    num_null: int
    num_stripped: int
    replaced: tuple[int, int]
    extra: list[pa.Array]
    share: float


def _ids(column: pa.Array, kind: pa.DataType | None, reader: Reader) -> pa.Array:
    """Return ids in their type; integers whose type was inferred, or that do not fit it, stay as wide as they are."""
    if pa.types.is_integer(column.type) and (kind is None or pa.types.is_integer(kind)):
        if reader.infers_types:
            return column
        if pa.types.is_uint64(column.type) and (pc.max(column).as_py() or 0) >= 2**63:
            return column
    return decoded(column, kind)


def _columns_there(reader: Reader, wanted: dict[str, pa.Field]) -> pa.Schema:
    """Return the fields of the columns that the file of a reader has.

    Nobody knows all columns of a file of JSON lines; it gives null for those that it does not have. Values of CSV that
    are compared are read as the strings that they are.
    """
    if infers_types(reader) and not reader.as_strings:
        folders = columns_of_folders(reader)
        return pa.schema([each.with_nullable(each.nullable or name in folders) for name, each in wanted.items()])
    fields = [each for name, each in wanted.items() if nested.count(reader.schema, name)]
    if infers_types(reader):
        fields = [each.with_type(pa.string()) if each.metadata else each for each in fields]
    return pa.schema(fields)


def _column_of(batch: pa.RecordBatch, name: str, reader: Reader) -> pa.Array:
    """Return a column of a batch or, where its file does not have it, the value that a folder holds of it, or null."""
    found = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)
    if found.null_count < len(found):
        return found
    value = columns_of_folders(reader).get(name)
    return found if value is None else pa.repeat(pa.scalar(value), batch.num_rows)


def _without_nan(column: pa.Array, name: str, reader: Reader) -> pa.Array:
    """Return a column of text. A column of floats, if other files have text in it, must hold missing values alone."""
    if not pa.types.is_floating(column.type):
        return column
    if pc.all(pc.is_null(column, nan_is_null=True)).as_py() is False:
        raise InputError(
            f"{reader.name}: column {name!r} holds {column.type}, not text. Name one with text_columns=..."
        )
    return pa.nulls(len(column))
