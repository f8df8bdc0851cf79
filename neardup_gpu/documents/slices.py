"""Slices: runs of an input's rows, which tasks in other processes and on other machines open by themselves.

Readers divide their rows into parts (`contract.Reader.parts`); a slice is some consecutive parts. What the whole input
decided travels with it: columns, types, names. A slice counts from zero what nobody has counted before it is read: its
row numbers, and the lines of a range of bytes. Once the slices before it have been read, too, `offsets` says by how
much each of them is out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from .. import checks
from ..data import arrow, numpy_of
from ..records import dataclass
from ..store.uris import file_system, masked
from .compared import SeenStrings
from .contract import Part, Reader
from .files import File, Seen, State
from .formats import reader_of
from .json_values import COMPARED
from .local_names import local_system
from .memory import Memory, StoredTable
from .passes import Pass
from .reading import reading
from .reading_options import Reading, of_columns
from .row_ids import IdsGiven, IntegerRange, RepeatedIds, say_repeated
from .schemas import DecidedColumns
from .skipped import Entry, Skipped
from .stream import Documents, PartOfWhole
from .textfiles import TextFiles


@dataclass(frozen=True)
class Source:
    """The data that all slices of an input share.

    Parameters
    ----------
    format : str
        A name of `formats.FORMATS`, `reading_options.SEVERAL`, or "memory" for tables that `stored.stored` wrote.
    text_columns : list of str
        Columns that hold the text.
    key : str or None
        Column that names the documents; None if row numbers do.
    types : pyarrow.Schema
        Types, in the whole input, of the column of ids and of the other columns that may be read.
    policy : Reading
    root : str
        What messages call all text files together; else nothing.
    """

    format: str
    text_columns: list[str]
    key: str | None
    types: pa.Schema
    policy: Reading
    root: str


@dataclass(frozen=True)
class SlicedFile:
    """A file that a slice reads, or reads a part of.

    Parameters
    ----------
    path : str
        As the file system names it.
    name : str
        As messages name it.
    below : str
        Its path below the folder that all files of the input share; of documents in memory the split, if any.
    uri : str
        A URI that names the file system; none if it is that of this machine.
    state : State or None
        Of the file when the input was divided; None where it could not be found.
    digest : str
        Of the bytes, where `stored.stored` wrote them.
    kind : str
        The format, a name of `formats.FORMATS`; none where `stored.stored` wrote the file.
    """

    path: str
    name: str
    below: str
    uri: str
    state: State | None
    digest: str = ""
    kind: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields without the secrets of the URI, so that other credentials make no other job."""
        return {**vars(self), "uri": masked(self.uri)}


@dataclass(frozen=True)
class Extent:
    """The findings of one reading of a slice: small, and enough to number the rows of all slices.

    Parameters
    ----------
    num_documents : tuple of int
        Documents of each part.
    num_places : tuple of int
        Rows of each part or, in JSON lines, lines.
    left_out : tuple of tuples of (int, int)
        For each part, the rows that were skipped: the first of a run, from 0, and their number.
    num_skipped : int
        Entries of `Documents.skipped` about the first part.
    integers : tuple of (str, str)
        "negative" or "wide" for integer ids that no other such type holds, and the file that has one.
    are_strings : bool, default True
        Whether all files of text are UTF-8.
    """

    num_documents: tuple[int, ...]
    num_places: tuple[int, ...]
    left_out: tuple[tuple[tuple[int, int], ...], ...]
    num_skipped: int
    integers: tuple[tuple[str, str], ...]
    are_strings: bool = True

    @property
    def num_rows(self) -> int:
        """Number of rows, also those that were skipped."""
        return sum(self.num_documents) + sum(rows for part in self.left_out for _, rows in part)


@dataclass(frozen=True)
class Slice:
    """A run of an input's rows. It can be pickled.

    Parameters
    ----------
    number : int
        From 0, in input order.
    source : Source
    files : tuple of SlicedFile
        The file of each part or, for text, all files of the only part.
    parts : tuple of Part
        In input order. Only the first can begin within its file.
    kept_names : tuple of str
        Under which name the kept rows of each part are written.
    first_row : int or None
        Rows of the input before the slice; None where nobody has counted them.
    unreadable : tuple of Entry
        Entries of `Documents.skipped` about whole files that cannot be read; those of the input are the first slice's.
    repeats : tuple of tuple of (int, str or None)
        For each part, the rows whose id an earlier document of the input has, and their new ids; None for a row that is
        left out. Empty if `on_duplicate_id` is "stop".
    """

    number: int
    source: Source
    files: tuple[SlicedFile, ...]
    parts: tuple[Part, ...]
    kept_names: tuple[str, ...]
    first_row: int | None
    unreadable: tuple[Entry, ...] = ()
    repeats: tuple[tuple[tuple[int, str | None], ...], ...] = ()

    @property
    def ids_are_rows(self) -> bool:
        """Whether the ids are row numbers. They count from 0 in each slice: `Offset.ids` gives those of the input."""
        return self.source.key is None

    @property
    def num_rows(self) -> int | None:
        """Number of rows; None where it is unknown before they are read."""
        known = [part.num_rows for part in self.parts if part.num_rows is not None]
        return sum(known) if len(known) == len(self.parts) else None

    @property
    def num_bytes(self) -> int:
        """About the bytes of the text."""
        return sum(part.num_bytes for part in self.parts)

    @property
    def covers(self) -> str:
        """The files, as messages name them.

        A part of a file is called as its kept rows are.
        """
        if self.source.format == "memory":
            return f"part {self.number + 1} of the input"
        names = [file.name for file in self.files]
        if self.source.format != "text":
            for i, (file, kept) in enumerate(zip(self.files, self.kept_names, strict=True)):
                names[i] += "" if kept == file.below else f" ({PurePosixPath(kept).name})"
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"

    def open(self, extent: Extent | None = None) -> Documents:
        """The documents of the slice.

        They have the texts, ids and types that they have in the whole input; where ids are row numbers, these count
        from 0. In `places` and `skipped`, row numbers count from the beginning of the file where
        `parts[0].first_place` is known, else from that of the part. Columns that can be read are `other_columns`
        of the whole input.

        Parameters
        ----------
        extent : Extent, optional
            Of an earlier reading: with it, kept rows can be written before the documents are read.

        Raises
        ------
        InputError
            If a file has changed since the input was divided, or cannot be opened.
        """
        files = self._opened_files()
        readers = self._readers(files)
        for sliced, file in zip(self.files, files, strict=True):
            if sliced.state is not None:
                with reading(file.name):
                    Seen(file).check_since(sliced.state, file)
        source, are_own = self.source, self.source.format == "text"
        passes = []
        if extent is not None:
            skips = source.policy.skips
            for reader, num, ranges in zip(readers, extent.num_documents, extent.left_out, strict=True):
                passes.append(Pass(reader, Skipped(skips, ranges=list(ranges)), num))
        names = [file.below for file in self.files]
        columns = DecidedColumns(source.text_columns, source.key, are_own, source.types)
        return Documents(
            readers,
            source.format,
            of_columns(source.policy, *((None, None) if are_own else (source.key, source.text_columns))),
            sources=[file.name for file in self.files],
            unreadable=self.unreadable,
            part=PartOfWhole(
                columns, names, list(self.kept_names), passes, [dict(some) for some in self.repeats] or None
            ),
        )

    def _opened_files(self) -> list[File]:
        systems: dict[str, fs.FileSystem] = {}
        files = []
        for file in self.files:
            if file.uri and file.uri not in systems:
                systems[file.uri] = file_system(file.uri)[0]
            system = systems[file.uri] if file.uri else local_system(file.path)
            files.append(File(system, file.path, file.name, self.source.root, uri=file.uri, kind=file.kind))
        return files

    def _readers(self, files: list[File]) -> list[Reader]:
        source = self.source
        if source.format == "memory":
            return [
                Memory(StoredTable(file), part, each.below)
                for file, part, each in zip(files, self.parts, self.files, strict=True)
            ]
        if source.format == "text":
            ids = [file.below for file in self.files]
            return [TextFiles(files, source.policy, ids, self.parts[0])]
        return [reader_of(file.kind)(file, source.policy, part) for file, part in zip(files, self.parts, strict=True)]


def extent_of(documents: Documents) -> Extent:
    """The findings of the last reading of a slice's documents, after all batches."""
    passes = documents._passes
    return Extent(
        tuple(each.num_documents for each in passes),
        tuple(each.reader.num_places(each.num_documents + each.skipped.num_rows) for each in passes),
        tuple(tuple(each.skipped.ranges) for each in passes),
        len(documents._entries(0)),
        tuple(documents._integers.found.items()),
        all(each.reader.are_strings for each in passes if isinstance(each.reader, TextFiles)),
    )


@dataclass(frozen=True)
class Offset:
    """By how much the numbers that a slice counts from zero are out.

    Parameters
    ----------
    first_row : int
        Rows of the input before the slice.
    first_place : int
        Places of the file before the first part; 0 where the slice counts them from the beginning of the file.
    """

    first_row: int
    first_place: int

    def places(self, places: dict[str, pa.Array], extent: Extent) -> dict[str, pa.Array]:
        """Return the places of the slice from `Documents.places`, with row numbers of the file."""
        if not self.first_place:
            return places
        rows = np.array(places["row"])
        rows[: extent.num_documents[0]] += self.first_place
        return {**places, "row": arrow(rows)}

    def ids(self, ids: pa.Array, slice: Slice) -> pa.Array:
        """The ids of a slice, those that are row numbers with the rows of the input."""
        return arrow(numpy_of(ids) + self.first_row) if slice.ids_are_rows else ids

    def strings(self, seen: SeenStrings, extent: Extent) -> SeenStrings:
        """Return what `Documents._strings` gives for the slice, with the rows of the file."""

        def placed(value: tuple[int, str, str, str, int] | None) -> tuple[int, str, str, str, int] | None:
            if value is None or value[0] >= extent.num_documents[0]:
                return value
            return (*value[:4], value[4] + self.first_place)

        return SeenStrings(placed(seen.like), placed(seen.other), seen.width)

    def skipped(self, skipped: pa.Table, extent: Extent) -> pa.Table:
        """Return the skipped rows of the slice from `Documents.skipped`, with row numbers of the file."""
        if not self.first_place:
            return skipped
        more = np.zeros(len(skipped), np.int64)
        more[: extent.num_skipped] = self.first_place
        return skipped.set_column(skipped.schema.get_field_index("row"), "row", pc.add(skipped["row"], arrow(more)))


def offsets(slices: Sequence[Slice], extents: Sequence[Extent]) -> list[Offset]:
    """The offset of each slice.

    Parameters
    ----------
    slices : sequence of Slice
        All slices of an input, in order.
    extents : sequence of Extent
        What reading them found.

    Raises
    ------
    InputError
        If the slices together hold integer ids that no one type holds.
    """
    found: list[Offset] = []
    integers = IntegerRange(slices[0].source.key)
    row = place = 0  # places of the last part's file, up to its end
    for each, extent in zip(slices, extents, strict=True):
        for kind, name in extent.integers:
            integers.note(kind, name)
        continues = each.parts[0].first_place is None
        found.append(Offset(row, place if continues else 0))
        row += extent.num_rows
        place = extent.num_places[-1] + (place if continues and len(each.parts) == 1 else 0)
    return found


def slices_of(documents: Documents, slice_bytes: int) -> list[Slice]:
    """Divide an input of files into slices.

    Large files are divided where their format allows it: Parquet between row groups, Arrow files between record
    batches, plain JSON lines between lines. Compressed JSON lines, CSV and Arrow streams are not divided. Small files
    come together.

    Parameters
    ----------
    documents : Documents
        Of files; `other_columns` name the columns that slices will read.
    slice_bytes : int
        About the bytes of text of a slice. A row, row group, record batch or compressed file that has more is a slice
        of its own.

    Returns
    -------
    list of Slice
        At least one. All rows, in input order.

    Raises
    ------
    InputError
        If the documents are in memory (`stored.stored` writes them to files) or a stream.
    ParameterError, ArgumentTypeError
        If `slice_bytes` is not a whole number from 1 on.

    Notes
    -----
    Cost: the headers of Arrow files are read again, and the sizes of text files. Where one of `other_columns`
    holds integers in JSON lines, whole files are read to find its type, as they are without slices.
    """
    slice_bytes = checks.integer("slice_bytes", slice_bytes, 1)
    source = source_of(documents)
    found: list[Slice] = []
    first_row: int | None = 0
    parts = _parts(documents, slice_bytes)
    for start, stop in _packed([part for _, part, _ in parts], slice_bytes):
        groups, own, names = zip(*parts[start:stop], strict=True)
        unreadable = () if found else tuple(documents._unreadable)
        each = Slice(len(found), source, tuple(chain(*groups)), own, names, first_row, unreadable)
        found.append(each)
        first_row = None if first_row is None or each.num_rows is None else first_row + each.num_rows
    return found


def with_repeats(slices: list[Slice], documents: Documents) -> list[Slice]:
    """Return slices that know which of their documents have the id of an earlier one.

    Unless `Reading.on_duplicate_id` is "stop", the slices are read one after another. Afterwards `documents`, the whole
    input, count the repeated ids as if they had been read.
    """
    if not documents._finds_repeats:
        return slices
    rule = slices[0].source.policy.on_duplicate_id
    given, found, all_found = IdsGiven(rule), [], RepeatedIds(0, ())
    for each in slices:
        part = each.open()
        part._ids_given = given
        for _ in part.batches():
            pass
        found.append(replace(each, repeats=tuple(tuple(some.items()) for some in part._repeated.found)))
        all_found.found += part._repeated.found
    documents._repeated = all_found
    say_repeated(all_found.number, rule, documents._readers)
    return found


def text_bytes_of(documents: Documents) -> int:
    """About the bytes of text of an input of files, as its slices have them; no rows are read."""
    return sum(part.num_bytes for reader in documents._readers for part in reader.parts(1 << 62))


def source_of(documents: Documents) -> Source:
    """The data that all slices of the documents share."""
    columns = documents._columns
    others = [name for name in columns.others if name != columns.key]
    for name in others:
        columns.check_values(name)
    typed = others if columns.key is None else [columns.key, *others]
    fields = [pa.field(name, columns.type_of(name)) for name in dict.fromkeys(typed)]
    if columns.mixes_ids:
        fields[0] = fields[0].with_metadata({COMPARED: b""})
    root = documents._readers[0].files[0].root if columns.are_own else ""
    return Source(
        documents.format,
        columns.text,
        columns.key,
        pa.schema(fields),
        of_columns(documents._policy, None, None),  # which are said above
        root,
    )


def _parts(documents: Documents, slice_bytes: int) -> list[tuple[tuple[SlicedFile, ...], Part, str]]:
    """All parts, with the files of each and the name for its kept rows."""
    if documents.format == "text":
        (reader,) = documents._readers
        parts = reader.parts(slice_bytes)
        files = _sliced_files(reader, documents._names)
        return [(tuple(files[part.start : part.stop]), part, "") for part in parts]
    found = []
    taken = set(documents._names)
    taken |= {str(folder) for name in documents._names for folder in PurePosixPath(name).parents}
    for reader, below in zip(documents._readers, documents._names, strict=True):
        parts = reader.parts(slice_bytes)
        files = _sliced_files(reader, [below])
        names = [below] if len(parts) == 1 else _names_of_parts(below, len(parts), taken)
        found += [(tuple(files), part, name) for part, name in zip(parts, names, strict=True)]
    return found


def _sliced_files(reader: Reader, names: list[str]) -> list[SlicedFile]:
    """The reader's files; `names` are their paths below the folder that all files share."""
    return [
        SlicedFile(file.path, file.name, below, file.uri, state, kind=file.kind)
        for file, below, state in zip(reader.files, names, reader.states(), strict=True)
    ]


def _names_of_parts(name: str, number: int, taken: set[str]) -> list[str]:
    """Names for the kept rows of a file's parts, which no file of the input has."""
    path, mark = PurePosixPath(name), "part"
    while True:
        names = [str(path.with_name(f"{path.stem}.{mark}-{i:05}{path.suffix}")) for i in range(number)]
        if not taken.intersection(names):
            taken.update(names)
            return names
        mark += "-part"


def _packed(parts: list[Part], most_bytes: int) -> Iterator[tuple[int, int]]:
    """Which consecutive parts are a slice: about `most_bytes`, and only the first begins within its file."""
    start = total = 0
    for i, part in enumerate(parts):
        if i > start and (part.start or total + part.num_bytes > most_bytes):
            yield start, i
            start, total = i, 0
        total += part.num_bytes
    yield start, len(parts)
