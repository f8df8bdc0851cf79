"""Kept rows in another format than that of the input, or in files of another size.

Each file of the input becomes a file of the same name with another extension. With a size, the rows of all files follow
one another in ``part-00000`` and so on; each part ends once it has that size. Lines of JSON keep their bytes if they
become lines of JSON again without a new column. Where a text is cut, only its string changes.
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow_versions import bytes_of
from ..data import Ragged, arrow, arrow_bytes, numpy_of, rows_of
from ..errors import InputError, ParameterError
from ..report import shorten
from .ahead import Step, ahead, closing, in_order
from .batches import ragged, spans_of
from .columns import (
    MARK_COLUMNS,
    SEAMS,
    decoded,
    holds_floats,
    is_binary,
    is_integers,
    is_string,
    is_utf8,
    is_view,
    nulls_as_strings,
    plain_type,
)
from .contract import Reader, infers_types
from .edits import Cuts, EditQueue, Edits, StoredRows, inside, kept_rows
from .formats import format_of
from .joined_text import BETWEEN_COLUMNS, COLUMN_END, as_bytes
from .json_blocks import Block
from .json_cuts import cut_lines, with_members
from .jsonlines import JsonLines
from .kept import check_parquet, each_in_order, in_groups, parquet_columns, parquet_schema, united, writing
from .memory import bounded
from .nested import is_list
from .packed import COMPRESSIONS
from .passes import over_readers
from .reading import reading
from .row_groups import ROW_GROUP_BYTES, RowGroupWriter, encoded_in_order
from .seams import moved, new_seams, seams_as_text, seams_of
from .stream import Documents
from .textfiles import TextFiles
from .writing_options import OUTPUT_FORMATS, Writing, format_for

Piece: TypeAlias = pa.RecordBatch | bytes
"""Rows to write; bytes are whole lines of JSON."""


def write_kept(
    documents: Documents,
    folder: Path,
    edits: Edits,
    writing: Writing,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> None:
    """Write the kept rows; `options` are those of `write_rewritten`, which cuts."""
    if not writing.rewrites:
        documents.write_kept(folder, edits.keep, progress)
        return
    write_rewritten(documents, folder, edits, writing, progress=progress, **options)


def write_rewritten(
    documents: Documents,
    folder: Path,
    edits: Edits,
    how: Writing,
    *,
    schema: pa.Schema | None = None,
    names: list[str] | None = None,
    prefix: str = "part",
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the kept rows, with all their columns, as `how` says, and cut the spans of `edits` out of their texts.

    Parameters
    ----------
    documents : Documents
        They have been read. If there are cuts, they have one column of text.
    folder : Path
        Created if it does not exist.
    edits : Edits
        One per document.
    how : Writing
        One that `rewrites`.
    schema : pyarrow.Schema, optional
        The columns of all files; found by `schema_of` unless given.
    names : list of str, optional
        The file for each reader, by `new_names` unless given.
    prefix : str
        What names of files begin with that are cut by size.
    progress : callable, optional
        Called with how many rows were read again, and of how many.

    Raises
    ------
    InputError
        If a column cannot be written in this format, or the documents have changed.
    OutputError
        If the folder cannot be written.
    """
    kind, readers = format_for(how, documents), documents._readers
    schema = schema_of(documents, how) if schema is None else schema
    queue, parts = documents._queued(edits, progress)
    extracts = edits.cuts is not None and documents.extracts_text
    added = [pa.field(EXTRACTED, pa.large_string())] if extracts else []
    added += [] if edits.marks is None else [pa.field(edits.marks, MARKS)]
    added += [pa.field(name, values.type) for name, values in edits.columns.items()]
    if schema is not None:
        schema = with_fields(schema, added)

    has_lines = kind.startswith("jsonl") and not extracts and (edits.cuts is None or not documents._policy.integers)

    def as_lines(block: Block, part: Edits) -> Iterator[bytes]:
        lines, cuts, members = block.select(part.keep), part.cuts_of_kept(), part.columns_of_kept()
        if edits.marks is not None and cuts is not None:
            members[edits.marks] = as_marks(cuts)
        else:
            moved = partial(with_moved_places, encoding=None)
            lines = cut_lines(lines, cuts, documents.text_columns[0], moved)
        return with_members(lines, members).in_pieces(files.step)

    def cut(reader: Reader, batch: pa.RecordBatch, cuts: Cuts) -> pa.RecordBatch:
        column, encoding = documents.text_columns[0], documents._policy.encoding
        if extracts:
            text = _readable(documents._text(batch, reader)[0], reader.name)
            batch, column, encoding = batch.append_column(EXTRACTED, text), EXTRACTED, None
        if edits.marks is not None:
            return with_column(batch, edits.marks, as_marks(cuts))
        if not extracts:
            anew = SEAMS in edits.columns
            batch = with_moved_marks(batch, cuts) if anew else with_moved_places(batch, cuts, column, encoding)
        return with_cuts(batch, cuts, column, encoding)

    @cache
    def own_schema(reader: Reader) -> pa.Schema:
        return with_fields(reader.kept_schema(), added) if schema is None else schema

    with writing(folder, folder):
        folder.mkdir(parents=True, exist_ok=True)
    files = _OutputFiles(folder, kind, how.most_bytes)
    pieces_of = partial(_pieces, kind=kind, lines=as_lines if has_lines else None, cut=cut)
    if how.most_bytes is not None:
        with closing(over_readers(readers, lambda i: pieces_of(readers[i], parts[i], own_schema), _size_of)) as pieces:
            made = (f"{prefix}-{i:05}{OUTPUT_FORMATS[kind]}" for i in itertools.count())
            files.write(made, schema, (piece for _, piece in pieces))
    else:

        def write(reader: Reader, part: EditQueue, name: str) -> None:
            own = None if kind.startswith("jsonl") else own_schema(reader)
            with closing(in_order(pieces_of(reader, part, own_schema), _size_of)) as pieces:
                files.write(iter([name]), own, pieces)

        each_in_order(write, readers, parts, names or new_names(documents._kept_names, kind))
    queue.finish()


def schema_of(documents: Documents, how: Writing) -> pa.Schema | None:
    """The columns of all files that are written, where these have to have the same: where types are inferred, and where
    the rows of several files come together. Inferred types are found by reading all files once more.

    Raises
    ------
    InputError
        If a column holds what no one type holds.
    """
    readers, lines = documents._readers, format_for(how, documents).startswith("jsonl")
    if infers_columns(documents, how):
        return nulls_as_strings(united_of(readers, readers[0].name))
    return united_of(readers, readers[0].name) if how.most_bytes is not None and not lines else None


def united_of(readers: list[Reader], name: str) -> pa.Schema:
    """The columns of some readers; `name` is the source, for messages."""
    schemas = [reader.kept_schema() for reader in readers]
    for reader, own in zip(readers, schemas, strict=True):
        _check_names(own, reader.name)
    schema = united(schemas, name, holds_strings(readers[0]))
    for reader in readers:
        if isinstance(reader, JsonLines):
            reader.refuse_rounded(schema)
    return schema


def holds_strings(reader: Reader) -> bool:
    """Whether every value is a string as it stands; see `InferringReader`."""
    return infers_types(reader) and reader.as_strings


def infers_columns(documents: Documents, how: Writing) -> bool:
    """Whether types have to be inferred; not where lines of JSON stay as they are."""
    (first, *_), lines = documents._readers, format_for(how, documents).startswith("jsonl")
    return first.infers_types and not (lines and isinstance(first, JsonLines))


def check_writing(documents: Documents, how: Writing) -> None:
    """Refuse, before all work, rows that cannot be written in this way.

    Raises
    ------
    InputError
        For columns that this format cannot hold, as far as types are known by then. Text files that are not UTF-8 are
        refused as they are read if they were to become lines of JSON.
    ParameterError
        If rows of several splits, or of folders that stand for values of a column, would come together in a file.
    """
    if not how.rewrites:
        return
    kind = format_for(how, documents)
    if how.most_bytes is not None and (apart := _kept_apart(documents)) is not None:
        raise ParameterError(
            f"shard_bytes: would put the rows of {apart} together, and no column tells them apart; leave it out, or "
            "run on each of them"
        )
    for reader in documents._readers:
        if isinstance(reader, TextFiles):
            reader.needs_strings = kind.startswith("jsonl")
        if not reader.infers_types:
            _check(reader.kept_schema(), kind, reader.name)
    if not documents._readers[0].infers_types:
        schema_of(documents, how)


def _kept_apart(documents: Documents) -> str | None:
    """Name what only the names of files say about documents: splits, or ``key=value`` folders; None if nothing."""
    if len(documents.splits) > 1:
        return f"the splits {', '.join(documents.splits)}"
    folders = {PurePosixPath(name).parent for name in documents._kept_names}
    keys = sorted({part.partition("=")[0] for folder in folders for part in folder.parts if "=" in part})
    return f"different {keys[0]}=" if keys and len(folders) > 1 else None


def new_names(names: list[str], kind: str) -> list[str]:
    """Return names with the extension of a format in place of their own, or after it if two would be the same."""
    stems = [_stem(name) for name in names]
    number = Counter(stems)
    new = [
        f"{stem if number[stem] == 1 else name}{OUTPUT_FORMATS[kind]}" for stem, name in zip(stems, names, strict=True)
    ]
    return new if len(set(new)) == len(new) else [f"{name}{OUTPUT_FORMATS[kind]}" for name in names]


def _stem(name: str) -> str:
    """A name without the extensions of its format and compression; text files are written together."""
    if format_of(name) in (None, "text"):
        return "part-00000"
    path = PurePosixPath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    path = path.with_suffix("")
    return str(path.with_suffix("") if path.suffix.lower() == ".warc" else path)


# ------------------------------------------------------------------------------------------------------------- pieces


def _pieces(
    reader: Reader,
    queue: EditQueue,
    schema_for: Callable[[Reader], pa.Schema],
    kind: str,
    lines: Callable[..., Iterator[bytes]] | None,
    cut: Callable[..., pa.RecordBatch],
) -> Iterator[Step[Piece]]:
    """Return the kept rows of a reader; those of lines of JSON as `lines` returns them, if it is given."""
    if lines is not None and isinstance(reader, JsonLines):
        return kept_rows(reader, queue, lines)
    own = schema_for(reader)
    _check(own, kind, reader.name)
    new = queue.edits.columns.keys() - {SEAMS}  # these are strings, also where they replace others
    unread = new if EXTRACTED in reader.schema.names else {*new, EXTRACTED}
    stored = [field for field in own if field.name not in unread]
    if infers_types(reader) and new:  # the reader needs the types of replaced columns as well
        stored += [field for field in reader.kept_schema() if field.name in new]
    read = pa.schema(stored)

    def edited(piece: StoredRows, edits: Edits) -> Iterator[pa.RecordBatch]:
        """Yield the kept rows of a piece in the columns of `own`, without the spans that are cut."""
        cuts, columns, first = edits.cuts_of_kept(), edits.columns_of_kept(), 0
        with closing(reader.batches(piece.select(edits.keep), read)) as batches:
            for batch in batches:
                if cuts is not None:
                    batch = cut(reader, batch, cuts.of(first, first + batch.num_rows))
                for name, values in columns.items():
                    batch = with_column(batch, name, values.slice(first, batch.num_rows))
                first += batch.num_rows
                with reading(reader.name, "a column cannot be converted"):
                    yield _conformed(batch, own, kind, reader.name)

    return kept_rows(reader, queue, edited)


EXTRACTED = "extracted_text"
"""The column for texts that are cut and are not the value of one column: of HTML, and of joined columns."""


def with_fields(schema: pa.Schema, added: list[pa.Field]) -> pa.Schema:
    """Return a schema with more fields; a field that has the name of a new one is replaced."""
    names = {field.name for field in added}
    return pa.schema([*(field for field in schema if field.name not in names), *added], schema.metadata)


def _readable(text: pa.Array, name: str) -> pa.Array:
    """Return extracted texts as strings of the same size in bytes, with line breaks between columns."""
    with contextlib.suppress(pa.ArrowInvalid):
        return pc.replace_substring(text, COLUMN_END, BETWEEN_COLUMNS).cast(pa.large_string())
    raise InputError(f"{name}: holds text that is not UTF-8, which {EXTRACTED} cannot hold; name its encoding.")


def _outside(values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the bytes outside some spans, which ascend and do not overlap."""
    first, stop = np.append(0, ends), np.append(begins, len(values))
    kept = np.flatnonzero(first < stop)
    return spans_of(values, first[kept], stop[kept]).values


def with_moved_places(batch: pa.RecordBatch, cuts: Cuts, column: str, encoding: str | None) -> pa.RecordBatch:
    """Return rows whose columns of seams and of marks have the places in the text that cuts leave of a column."""
    batch = with_moved_marks(batch, cuts)
    place = batch.schema.get_field_index(SEAMS)
    if len(cuts.begins) == 0 or place < 0 or not is_string(batch.schema.field(place).type):
        return batch
    sizes = pc.binary_length(as_bytes(batch.column(batch.schema.get_field_index(column)), encoding)).fill_null(0)
    try:
        seams = seams_of(batch.column(place), sizes.to_numpy().astype(np.int64))
    except InputError:  # a column of that name which another program wrote
        return batch
    field = batch.schema.field(place)
    return batch.set_column(place, field, seams_as_text(new_seams(cuts, seams)).cast(field.type))


def with_cuts(batch: pa.RecordBatch, cuts: Cuts, column: str, encoding: str | None) -> pa.RecordBatch:
    """Return rows without some spans of the text, or of the list of integers, in a column.

    The text becomes large strings, or large binary if it was bytes; bytes in another encoding become UTF-8.
    """
    if len(cuts.begins) == 0:
        return batch
    place = batch.schema.get_field_index(column)
    if is_integers(batch.schema.field(place).type):
        return batch.set_column(place, column, _without_integers(decoded(batch.column(place), None), cuts))
    texts = as_bytes(batch.column(place), encoding)
    given = ragged(texts.fill_null(b"") if texts.null_count else texts)
    offsets, values = given.offsets - given.offsets[0], given.values[given.offsets[0] : given.offsets[-1]]
    number = np.diff(cuts.offsets)
    starts, stops = np.repeat(offsets[:-1], number), np.repeat(offsets[1:], number)
    ends = np.maximum.accumulate(np.minimum(starts + cuts.ends, stops))  # a text may have changed since
    begins = np.minimum(np.maximum(starts + cuts.begins, np.append(0, ends[:-1])), ends)
    offsets = offsets - np.append(0, np.cumsum(ends - begins))[cuts.offsets]
    kind = pa.large_binary() if is_binary(plain_type(batch.schema.field(place).type)) else pa.large_string()
    edited = arrow_bytes(_outside(values, begins, ends), offsets, kind)
    if texts.null_count:
        edited = pc.if_else(texts.is_valid(), edited, pa.scalar(None, kind))
    return batch.set_column(place, pa.field(column, kind), edited)


def _without_integers(lists: pa.Array, cuts: Cuts) -> pa.Array:
    """Return lists without some spans of each."""
    sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    start = np.append(0, np.cumsum(sizes))
    first = np.repeat(start[:-1], np.diff(cuts.offsets))
    gone = inside(first + cuts.begins, first + cuts.ends, int(start[-1]))
    offsets = np.append(0, np.cumsum(~gone))[start]
    return pa.LargeListArray.from_arrays(
        arrow(offsets), pc.list_flatten(lists).filter(arrow(~gone)), mask=pc.is_null(lists)
    )


MARKS = pa.list_(pa.struct([("begin", pa.int64()), ("end", pa.int64())]))
"""The type of a column of spans."""


def with_moved_marks(batch: pa.RecordBatch, cuts: Cuts) -> pa.RecordBatch:
    """Return rows whose columns of marks, which earlier runs wrote, have the places in the texts that cuts leave.

    A span without any text left vanishes.
    """
    for name in MARK_COLUMNS if len(cuts.begins) else ():
        place = batch.schema.get_field_index(name)
        if place < 0 or not _are_marks(batch.schema.field(place).type):
            continue
        lists = batch.column(place)
        sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
        spans, offsets = pc.list_flatten(lists), np.append(0, np.cumsum(sizes))
        begins, ends = (moved(cuts, Ragged._trusted(numpy_of(spans.field(each)), offsets)) for each in ("begin", "end"))
        left = begins < ends
        offsets = np.append(0, np.cumsum(left))[offsets]
        marks = as_marks(Cuts(offsets, begins[left], ends[left]), pc.is_null(lists))
        batch = batch.set_column(place, name, marks.cast(lists.type))
    return batch


def _are_marks(kind: pa.DataType) -> bool:
    """Return whether a column of this type can hold spans."""
    spans = kind.value_type if is_list(kind) else kind
    return pa.types.is_struct(spans) and {field.name: field.type for field in spans} == {
        field.name: field.type for field in MARKS.value_type
    }


def as_marks(spans: Cuts, null: pa.Array | None = None) -> pa.Array:
    """Return the spans of each text, in bytes, as the values of a column; none where `null` is true."""
    values = pa.StructArray.from_arrays([arrow(spans.begins), arrow(spans.ends)], fields=list(MARKS.value_type))
    return pa.ListArray.from_arrays(arrow(spans.offsets.astype(np.int32)), values, mask=null).cast(MARKS)


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return rows with a new last column, in place of one of the same name."""
    names = [other for other in batch.schema.names if other != name]
    return batch.select(names).append_column(name, values)


def _size_of(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else bytes_of(piece)


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, kind: str, name: str) -> pa.RecordBatch:
    """The batch with the columns of a schema; what it lacks is null."""
    arrays, lines, stored = [], kind.startswith("jsonl"), _stored(schema, kind)
    if kind == "parquet":
        batch = parquet_columns(batch, parquet_schema(batch.schema))
    for field in stored:
        place = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows, field.type) if place < 0 else batch.column(place)
        if lines and is_binary(plain_type(column.type)):
            column = decoded(column, pa.large_binary()).view(pa.large_string())
        if column.type != field.type:
            column = decoded(column, field.type)
        if lines and not is_utf8(column):
            raise _not_for_json(column, field.name, name)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=stored)


def _not_for_json(column: pa.Array, column_name: str, name: str) -> InputError:
    """Return the error for a column whose strings are not UTF-8, for which JSON has no form."""
    row = next(row for row in range(len(column)) if not is_utf8(column.slice(row, 1)))
    shown = ""
    if is_string(column.type):
        shown = f" ({shorten(repr(column.cast(pa.large_binary())[row].as_py()), 40)})"
    return InputError(
        f"{name}: column {column_name!r} holds bytes that are not UTF-8{shown}, which JSON lines cannot hold; write "
        "Parquet with output_format='parquet'."
    )


def _stored(schema: pa.Schema, kind: str) -> pa.Schema:
    """Return the types in which columns are written.

    Arrow files hold one dictionary per column, no file holds a view, and JSON has strings in place of bytes.
    """
    fields, lines = [], kind.startswith("jsonl")
    for field in parquet_schema(schema) if kind == "parquet" else schema:
        plain = (pa.types.is_dictionary(field.type) and kind != "parquet") or is_view(field.type)
        stored = plain_type(field.type) if plain else field.type
        fields.append(field.with_type(pa.large_string() if lines and is_binary(stored) else stored))
    return pa.schema(fields, schema.metadata)


def _check(schema: pa.Schema, kind: str, name: str) -> None:
    """Raise InputError for a column that a format cannot hold."""
    _check_names(schema, name)
    if kind == "parquet":
        check_parquet(schema, name)
    elif kind.startswith("jsonl"):
        for field in schema:
            if not _is_json(field.type):
                raise InputError(
                    f"{name}: column {field.name!r} of type {field.type} cannot be written as JSON lines; cast it or "
                    "leave it out, or write Parquet with output_format='parquet'."
                )


def _check_names(schema: pa.Schema, name: str) -> None:
    """Raise InputError if several columns of the file `name` are called the same."""
    again = next((each for each in schema.names if schema.names.count(each) > 1), None)
    if again is not None:
        raise InputError(f"{name}: several columns are called {again!r}; rename them, or leave output_format out.")


def _is_json(kind: pa.DataType, is_nested: bool = False) -> bool:
    """Return whether values of a type are numbers, strings, bools or times, or lists and structs of them.

    Bytes can be strings in a column of their own, whose values are checked as they are written; `is_nested` lists and
    structs they are usually images or sounds.
    """
    types = pa.types
    if types.is_dictionary(kind):
        return _is_json(kind.value_type, is_nested)
    if types.is_struct(kind):
        return all(_is_json(field.type, is_nested=True) for field in kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_json(kind.value_type, is_nested=True)
    simple = (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp, types.is_date, types.is_time)
    is_value = is_string(kind) or types.is_null(kind) or any(check(kind) for check in simple)
    return is_value or (is_binary(kind) and not is_nested)


# -------------------------------------------------------------------------------------------------------------- files


class _OutputFiles:
    """Files of one format in a folder; one ends once it has `most` bytes, if that is given."""

    def __init__(self, folder: Path, kind: str, most: int | None) -> None:
        self.folder, self.kind, self.most = folder, kind, most
        self.step = ROW_GROUP_BYTES if most is None else max(1, min(ROW_GROUP_BYTES, most // 8))

    def write(self, names: Iterator[str], schema: pa.Schema | None, pieces: Iterable[Piece]) -> None:
        """Write all pieces; at least one file, which may have no rows."""
        stored = None if schema is None else _stored(schema, self.kind)
        parts: Iterator[Any] = self._parts(pieces)
        if stored is not None and self.kind == "parquet":
            parts = encoded_in_order(stored, in_groups(parts, stored, self.step))
        elif self.kind.startswith("jsonl"):
            parts = ahead(parts, self.step, len)  # a thread of its own, as another one compresses
        with closing(parts) as following:
            step = next(following, None)
            while True:
                with self._opened(self.folder / next(names), stored) as (write, size):
                    while step is not None:
                        write(step)
                        step = next(following, None)
                        if self.most is not None and size() >= self.most:
                            break
                if step is None:
                    return

    def _parts(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the pieces in parts between which a file can end, as lines where these are written."""
        with closing(pieces):
            for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece
                elif piece.num_rows:
                    parts = bounded(piece, self.step)
                    yield from map(_as_lines, parts) if self.kind.startswith("jsonl") else parts

    @contextlib.contextmanager
    def _opened(
        self, path: Path, schema: pa.Schema | None
    ) -> Iterator[tuple[Callable[[Any], object], Callable[[], int]]]:
        """Yield a function that writes a piece, and one that returns the bytes of the file so far."""
        with writing(path, self.folder), open(path, "wb") as file:
            if self.kind == "parquet":
                assert schema is not None
                writer = RowGroupWriter(file, schema)
                yield writer.add, file.tell
                writer.finish()
            elif self.kind == "arrow":
                assert schema is not None
                with pa.ipc.new_file(file, schema) as batches:
                    yield batches.write_batch, file.tell
            else:
                with _packed(file, self.kind) as stream:
                    yield stream.write, file.tell


def _packed(file: Any, kind: str) -> Any:
    """A stream that compresses what is written to it, gzip at its usual level."""
    if kind == "jsonl.gz":
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return pa.CompressedOutputStream(file, "zstd") if kind == "jsonl.zst" else contextlib.nullcontext(file)


def _as_lines(piece: pa.RecordBatch) -> bytes:
    """Return rows as lines of JSON."""
    dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
    rows: Iterable[Any] = rows_of(piece)
    if any(map(holds_floats, piece.schema.types)):
        rows = map(_finite, rows)
    return "".join(f"{dumps(row)}\n" for row in rows).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):  # and their subclass datetime
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _finite(value: Any) -> Any:
    """The value with null for each NaN and infinity, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list) else value
