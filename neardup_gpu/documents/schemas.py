"""The columns of a source: which of them hold the text and the ids, and the one type each has in all files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from ..errors import InputError
from ..log import log
from ..report import shorten
from . import nested
from .columns import (
    artefact_kind,
    default_text_column,
    is_integers,
    is_key,
    is_string,
    is_text,
    listed,
    plain_type,
    refuse_artefact,
)
from .compared import Values
from .contract import Reader, infers_types
from .files import folder_columns
from .memory import Memory, unfit_column
from .nested import EACH, is_list, is_listed, steps_of
from .reading_options import Reading


class Columns:
    """The columns of the readers of one source.

    Parameters
    ----------
    readers : list of Reader
    reading : Reading
        Names the columns that hold the text and the ids; else they are chosen. Rows that cannot be read may be skipped,
        so that a column may hold some values of another type.
    others : iterable of str
        Columns that hold something else than text.

    Attributes
    ----------
    text : list of str
        Columns that hold the text.
    key : str or None
        Column that names the documents; None if row numbers do.
    are_own : bool
        Whether the reader made the columns, as that of text files does; else the data have them.
    mixes_ids : bool
        Whether ids are integers in some files and strings in others, so that all are strings.
    lacking : dict of str to list of str
        For each column that was checked, the files that do not have it.

    Raises
    ------
    InputError
        If a column is missing, or holds something else than text or ids.
    """

    def __init__(self, readers: list[Reader], reading: Reading, others: Iterable[str]) -> None:
        self._readers, self._skips, self.others = readers, reading.skips, list(others)
        text, ids, integers = reading.text_columns, reading.id_column, reading.integers
        self.lacking: dict[str, list[str]] = {}
        self.mixes_ids = False
        self.key = readers[0].own_ids or ids or readers[0].usual_ids
        self.are_own = readers[0].own_ids is not None
        if self.are_own:
            self.text: list[str] = ["text"]
            if integers:
                raise InputError(
                    f"{readers[0].name}: files of text hold no lists of integers; give a table with a column of them."
                )
            return
        first = readers[0]
        if text is None and infers_types(first) and not any(map(is_string, first.schema.types)):
            first.look_for("text", typed=False, key=False)
        # A file that types are inferred from says nothing about its columns if it has no rows.
        schemas = [each.schema for each in readers if not each.infers_types or len(each.schema)]
        if text is None:
            default = self._default_integers if integers else self._default_text
            text = [default(schemas, [*self.others, *([ids] if ids else [])])]
        self.text = list(text)  # `Reading` has made it a sequence that is not empty
        if schemas:
            for name in self.text:
                fits, what = (is_integers, "lists of integers") if integers else (is_text, "text")
                self.check(name, fits, what, "text_columns")
            if integers and len(self.text) > 1:
                raise InputError(f"{first.name}: several columns of integers cannot be joined; name one.")
            if ids is not None:
                self.check(ids, is_key, "integers or strings", "id_column")
                self.type_of(ids)

    def _default_text(self, schemas: list[pa.Schema], others: list[str]) -> str:
        """The column of text where none was named: the same whatever the order of the files."""
        for reader in self._readers:
            kind = artefact_kind(reader.schema)
            if kind is not None:
                refuse_artefact(reader.name, kind)
            unreadable = reader.unreadable if isinstance(reader, Memory) else {}
            if "text" in unreadable or (unreadable and "text" not in reader.schema.names):
                name = "text" if "text" in unreadable else next(iter(unreadable))  # which may be the text
                raise unfit_column(name, unreadable[name])
        if not schemas or ("text" not in others and any("text" in schema.names for schema in schemas)):
            return "text"
        first = self._readers[0]
        paths = (path for name in schemas[0].names if name not in others for path in texts_within(first, name))
        doubtful = next((each for each in self._readers if infers_types(each) and each.doubtful_header), None)
        try:
            column = default_text_column(first.name, _with_text(schemas), others, paths)
        except InputError as error:
            raise error if doubtful is None else InputError(f"{error}{_NO_HEADER}") from None
        if doubtful is not None:
            log.warning(
                "%s: the first row is taken for the header, but %r looks like data; if it is data, use --no-header "
                "(header=False)",
                doubtful.name,
                shorten(doubtful.doubtful_header or "", 60),
                extra={"once": True},
            )
        log.info("%s: the text is column %r", first.name, column)
        return column

    def _default_integers(self, schemas: list[pa.Schema], others: list[str]) -> str:
        """Return the column named input_ids, else the only column of lists of integers."""
        names = [each.name for each in (schemas or [pa.schema([])])[0] if is_integers(each.type)]
        names = [name for name in names if name not in others]
        if "input_ids" in names or len(names) == 1:
            return "input_ids" if "input_ids" in names else names[0]
        found = f"several columns of lists of integers, {listed(names)}" if names else "no column of lists of integers"
        raise InputError(f"{self._readers[0].name}: {found}; name one with text_columns=...")

    def check_values(self, name: str, parameter: str = "keep", advice: str | None = None) -> None:
        """Raise InputError unless some file has this column, and each that has it holds values that can be compared.

        `parameter` is what names the column, `advice` what to do instead of naming another one there.
        """
        # What arrays and objects in JSON hold is not known.
        inferred = any(map(infers_types, self._readers))

        def fits(kind: pa.DataType) -> bool:
            return not (inferred and pa.types.is_nested(kind))

        self.check(name, fits, "a value", parameter, advice, everywhere=False)

    def check(
        self,
        name: str,
        fits: Callable[[pa.DataType], bool],
        what: str,
        parameter: str,
        advice: str | None = None,
        everywhere: bool = True,
    ) -> None:
        """Raise InputError unless the files have the column, once, and of a fitting type.

        Parameters
        ----------
        name : str
        fits : callable
            Whether a type is fitting.
        what : str
            What the column should hold, as the message says it.
        parameter : str
            The parameter that names the column.
        advice : str, default None
            What to do; to name another column, unless given.
        everywhere : bool, default True
            Whether every file has to have the column, or one of them.
        """
        advice = advice or f"Name one with {parameter}=..."
        lacking: list[Reader] = []
        for reader in self._readers:
            if infers_types(reader) and len(reader.schema):
                reader.look_for(name, typed=name not in self.text, key=name == self.key)
                if self._skips and name in self.text and reader.holds_text(name):
                    continue
            schema = reader.schema
            if reader.infers_types and len(schema) == 0:
                continue
            count = nested.count(schema, name)
            if count == 0 and (name in columns_of_folders(reader) or not everywhere):
                if name not in columns_of_folders(reader):
                    lacking.append(reader)
                continue
            if count != 1:
                if what == "text" and (path := _with_lists(reader, name)):
                    advice = f"Try {parameter}={path!r}."
                if infers_types(reader) and reader.doubtful_header:
                    advice = f"{advice}{_NO_HEADER}"
                raise _no_column(reader, name, count, advice)
            kind = nested.field(schema, name).type
            if name in self.text and is_listed(name) and is_list(kind):
                kind = kind.value_type
            if not fits(kind) and not (name in self.text and self._may_be_all_null(name, kind)):
                where, holds = reader.name, _in_words(kind)
                if infers_types(reader):
                    where, holds = reader.in_words(name, kind)
                if what == "text" and (path := nested.likeliest(texts_within(reader, name))):
                    advice = f"Try {parameter}={path!r}."
                raise InputError(f"{where}: column {name!r} holds {holds}, not {what}. {advice}")
        if lacking and len(lacking) == len(self._readers):
            raise _no_column(lacking[0], name, 0, advice)
        self.lacking[name] = [reader.name for reader in lacking]

    def _may_be_all_null(self, name: str, kind: pa.DataType) -> bool:
        """Return whether a column of floats may be a column of text without any value, as other files have text.

        So pandas writes a column of strings in which all are missing. Reading the column finds out.
        """
        schemas = (reader.schema for reader in self._readers)
        others = (nested.field(schema, name).type for schema in schemas if nested.count(schema, name) == 1)
        return pa.types.is_floating(kind) and any(is_text(each) and not pa.types.is_null(each) for each in others)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type that the column is given in: one for all files.

        Raises
        ------
        InputError
            If there is no such type.
        """
        inferred, is_key = any(map(infers_types, self._readers)), name == self.key
        kinds: dict[pa.DataType, str] = {}
        for reader in self._readers:
            if nested.count(reader.schema, name):
                kind = plain_type(nested.field(reader.schema, name).type)
                if pa.types.is_null(kind) and infers_types(reader) and reader.as_strings:
                    continue
                kinds.setdefault(kind, reader.name)
        kinds |= self._types_of_folders(name, is_key)
        if len(kinds) > 1 or inferred:
            kinds = {kind: file for kind, file in kinds.items() if not pa.types.is_null(kind)}
        if all(infers_types(reader) and reader.as_strings for reader in self._readers):
            return self._type_of_strings(name, set(kinds))
        if inferred and not is_key and any(map(_is_number, kinds)):
            if not all(_is_number(kind) or is_string(kind) for kind in kinds):
                raise _unlike_types(name, kinds)
            return pa.string() if any(map(is_string, kinds)) else self._one_number_type(name, kinds)
        if len(kinds) <= 1:
            return next(iter(kinds), pa.string())
        if all(is_text(kind) for kind in kinds):
            return pa.large_string() if all(is_string(kind) for kind in kinds) else pa.large_binary()
        if all(pa.types.is_integer(kind) for kind in kinds):
            unsigned = all(pa.types.is_unsigned_integer(kind) for kind in kinds)
            return pa.uint64() if unsigned or inferred else pa.int64()
        if all(map(_is_number, kinds)) and not is_key:
            return pa.float64()
        if is_key and all(pa.types.is_integer(kind) or is_string(kind) for kind in kinds):
            self.mixes_ids = True
            return pa.large_string() if not inferred else pa.string()
        raise _unlike_types(name, kinds)

    def _types_of_folders(self, name: str, is_key: bool) -> dict[pa.DataType, str]:
        """Return the type of the values that folders hold in place of a column of their files, and a file of them."""
        values, first = [], ""
        for reader in self._readers:
            of_folders = columns_of_folders(reader)
            if name in of_folders and not nested.count(reader.schema, name):
                values.append(of_folders[name])
                first = first or reader.name
        if not first:
            return {}  # before `pa.array`, which imports pandas
        found = Values()
        found.add(pa.array([value for value in values if value is not None], pa.string()))
        return {pa.string() if is_key and pa.types.is_floating(found.type) else found.type: first}

    def _type_of_strings(self, name: str, kinds: set[pa.DataType]) -> pa.DataType:
        """The type of a column whose values are strings as they stand: one that holds all its numbers, if they are."""
        if pa.string() in kinds or not kinds:
            return pa.string()
        kind = self._one_number_type(name, kinds)
        return pa.string() if name == self.key and pa.types.is_floating(kind) else kind

    def _one_number_type(self, name: str, kinds: Collection[pa.DataType]) -> pa.DataType:
        """Return the type that holds all numbers of a column in all files; strings if it holds other texts too."""
        found: set[str] = set().union(*(reader.numbers(name) for reader in self._readers if infers_types(reader)))
        if not all(map(infers_types, self._readers)) and pa.uint64() in kinds:
            found |= {"wide"} if len({*kinds}) == 1 else {"wide", "negative"}
        if "text" in found:
            return pa.string()
        if "float" in found or {"negative", "wide"} <= found or any(map(pa.types.is_floating, kinds)):
            return pa.float64()
        return pa.uint64() if "wide" in found else pa.int64()


def _with_text(schemas: list[pa.Schema]) -> pa.Schema:
    """Return the first schema, with the types of other files where they have text and the first has only nulls."""
    fields = []
    for each in schemas[0]:
        others = (schema.field(each.name) for schema in schemas if schema.names.count(each.name) == 1)
        has_none = pa.types.is_null(each.type) or pa.types.is_floating(each.type)
        found = (other for other in others if is_text(other.type) and not pa.types.is_null(other.type))
        fields.append(next(found, each) if has_none else each)
    return pa.schema(fields)


class DecidedColumns:
    """The columns of a part of a source, as `Columns` decided them for the whole.

    Parameters
    ----------
    text : list of str
        Columns that hold the text.
    key : str or None
        Column that names the documents.
    are_own : bool
        Whether the reader made the columns.
    types : pyarrow.Schema
        The type of the column of ids and of each other column that may be read.
    """

    def __init__(self, text: list[str], key: str | None, are_own: bool, types: pa.Schema) -> None:
        self.text, self.key, self.are_own, self.others = text, key, are_own, types.names
        self.lacking: dict[str, list[str]] = {}
        self.mixes_ids = key in types.names and types.field(key).metadata is not None
        self._types = types

    def check_values(self, name: str, parameter: str = "keep", advice: str | None = None) -> None:
        """Raise InputError unless the column's type was decided for the whole."""
        if name not in self._types.names:
            raise InputError(f"column {name!r} was not named when the input was divided; name it in {parameter}.")

    def type_of(self, name: str) -> pa.DataType:
        """The type that the column is given in."""
        return self._types.field(name).type


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def columns_of_folders(reader: Reader) -> dict[str, str | None]:
    """Return the columns that the ``key=value`` folders of a reader's file stand for."""
    return folder_columns(reader.files[0].path) if len(reader.files) == 1 else {}


def _no_column(reader: Reader, name: str, count: int, advice: str) -> InputError:
    """Make the error for a column that a reader does not have, or has several times."""
    if isinstance(reader, Memory) and name in reader.unreadable:
        return unfit_column(name, reader.unreadable[name])
    problem = "no column" if count == 0 else f"{count} columns named"
    return InputError(f"{reader.name}: {problem} {name!r}; {_what_is_there(reader, name)}. {advice}")


_NO_HEADER = "; if the first row is data, give header=False."


def _what_is_there(reader: Reader, name: str) -> str:
    """The columns that could have been meant, in words: those of the struct that a path leads into, if any."""
    holder_name, names = nested.nearest(reader.schema, name)
    if infers_types(reader):
        holder_name = name.rpartition(".")[0]
        while holder_name and not (names := reader.members(holder_name)):
            holder_name = holder_name.rpartition(".")[0]
    whose = f"{holder_name!r}" if holder_name else "it"
    extent = f" in {reader.sample}" if infers_types(reader) else ""
    return f"{whose} has {listed(names if holder_name else reader.schema.names)}{extent}"


def texts_within(reader: Reader, name: str) -> Iterator[str]:
    """Yield the paths that lead from a column to strings."""
    if infers_types(reader):
        return reader.texts_within(name)
    kind = nested.field(reader.schema, name).type
    return nested.texts_within(name, kind.value_type if is_listed(name) and is_list(kind) else kind)


def _with_lists(reader: Reader, name: str) -> str | None:
    """Return the path to text that has the steps of the given one, and more lists on the way; None if there is none."""
    steps = [step for step in steps_of(name) if step != EACH]
    if reader.schema.names.count(steps[0]) != 1:
        return None
    paths = texts_within(reader, steps[0])
    return next((path for path in paths if [step for step in steps_of(path) if step != EACH] == steps), None)


def _in_words(kind: pa.DataType) -> str:
    """Return what a column of this type holds: lists and structs without all that is in them."""
    if is_list(kind):
        return f"lists of {_in_words(kind.value_type)}"
    return "structs" if pa.types.is_struct(kind) else str(kind)


def _unlike_types(name: str, kinds: dict[pa.DataType, str]) -> InputError:
    (kind_a, file_a), (kind_b, file_b) = list(kinds.items())[:2]
    return InputError(f"{file_b}: column {name!r} holds {kind_b}, but {kind_a} in {file_a}. Make them the same type.")
