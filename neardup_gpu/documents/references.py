"""Reference sets: documents that an input is compared with, each read in its own way, and all of them as one source."""

from __future__ import annotations

import contextlib
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from glob import iglob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import checks
from ..data import added_up, arrow, one_array, strings
from ..errors import InputError, ParameterError
from ..records import dataclass
from .batches import one_integer_type
from .columns import is_binary, is_string
from .reading_options import Reading, reading_of
from .source import open_described, paths_described
from .stream import Batch, Documents

NAMED = re.compile(r"([A-Za-z0-9_.-]+)=(.+)", re.DOTALL)
"""A name before a path, as in ``wiki=dumps/wiki.parquet``."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference set that is read in its own way, or one of several.

    Parameters
    ----------
    source : documents
        What `open_documents` takes: paths, a table, an array of texts, ``{"text": texts}``.
    name : str, default None
        The name of the set in the column `reference` of a result. If None, and there are several sets, it is the name
        of the file or folder without its extension, or the number of the set, from 1.
    reading : Reading, default None
        How the set is read. If None, it is read like the input.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of range or has another type.

    Examples
    --------
    >>> from neardup_gpu import Reference, dedup
    >>> known = Reference(source={"body": ["to be or not to be"]}, name="plays", reading=Reading(text_columns="body"))
    >>> found = dedup({"text": ["To be, or not to be", "the question"]}, against=known)
    >>> found.removed["reference"].to_pylist()
    ['plays']
    """

    source: Any
    name: str | None = None
    reading: Reading | None = None

    def __post_init__(self) -> None:
        name = checks.optional(checks.text, "name", self.name, "give a name such as wiki")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "reading", checks.optional(checks.instance, "reading", self.reading, Reading))


def references_of(against: Any) -> list[Reference]:
    """Return the reference sets of the argument `against`: none, one, or a list of `Reference`.

    Raises
    ------
    ParameterError
        If a list holds something else besides `Reference`, or two sets have the same name.
    """
    if against is None:
        return []
    if isinstance(against, Reference):
        return [against]
    several = isinstance(against, (list, tuple)) and any(isinstance(each, Reference) for each in against)
    if not several:
        return [Reference(source=against)]
    if not all(isinstance(each, Reference) for each in against):
        raise ParameterError("against: a list with a Reference holds something else; make each set a Reference")
    if len(against) == 1:
        return list(against)
    found = [replace(each, name=each.name or _usual_name(each.source, place)) for place, each in enumerate(against, 1)]
    again = [name for name, number in Counter(each.name for each in found).items() if number > 1]
    if again:
        raise ParameterError(f"against: two reference sets are called {again[0]}; give each a name of its own")
    return found


def _usual_name(source: Any, place: int) -> str:
    if isinstance(source, (str, os.PathLike)):
        name = Path(os.fspath(source)).name  # type: ignore[arg-type]
        return name.partition(".")[0] or str(place)
    return str(place)


def named_reference(word: str, reading: Reading | None = None) -> Reference:
    """Return the reference set that a command names: a path, or a name and a path with "=" between them.

    What exists, or is a pattern of something that exists, is a path, as ``lang=de/*.parquet`` may be.
    """
    found = None if any(iglob(word, recursive=True)) else NAMED.fullmatch(word)
    name, source = (None, word) if found is None else found.groups()
    return Reference(source=source, name=name, reading=reading)


class NamedSets(NamedTuple):
    """The reference sets of a job, by the numbers of their rows.

    Parameters
    ----------
    names : tuple of str
        None if there is one set without a name, which no column names.
    stops : tuple of int
        The number of rows up to the end of each set.
    """

    names: tuple[str, ...] = ()
    stops: tuple[int, ...] = ()

    def column(self, rows: np.ndarray, null: np.ndarray) -> pa.DictionaryArray | None:
        """Return the names of the sets that have some rows; null where `null`. None if no set has a name."""
        if not self.names:
            return None
        numbers = np.searchsorted(np.array(self.stops), np.where(null, 0, rows), side="right")
        numbers = np.minimum(numbers, len(self.names) - 1).astype(np.int32)
        return pa.DictionaryArray.from_arrays(arrow(numbers, null), strings(list(self.names)).cast(pa.string()))


class DocumentsInOrder(ABC):
    """Documents of several sources, one source after another."""

    @property
    @abstractmethod
    def in_order(self) -> list[Any]:
        """The sources, in the order of their rows."""

    @property
    def rewindable(self) -> bool:
        """Whether all documents can be read more than once."""
        return all(each.rewindable for each in self.in_order)

    @property
    def num_rows(self) -> int | None:
        """Number of documents, which may be estimated; None if it is not known."""
        numbers = [each.num_rows for each in self.in_order]
        return None if None in numbers else sum(numbers)

    @property
    def local_files(self) -> list[str]:
        """Paths of all files on this machine that are read."""
        return [path for each in self.in_order for path in each.local_files]


class ReferenceSets(DocumentsInOrder):
    """Several reference sets, or one that has a name, as one source of documents: one set after another.

    Parameters
    ----------
    sets : dict of str to Documents
        The sets by their names.
    """

    def __init__(self, sets: dict[str, Documents]) -> None:
        self.sets = sets
        self._numbers = dict.fromkeys(sets, 0)  # documents of the last reading

    @property
    def in_order(self) -> list[Documents]:
        """The documents of each set."""
        return list(self.sets.values())

    def named(self, name: str | None) -> Documents:
        """Return the documents of a set."""
        if name not in self.sets:
            raise InputError(f"reference set {name!r}: is not among {', '.join(self.sets)}; run dedup again")
        return self.sets[name]

    def at(self, row: int) -> tuple[Documents, int]:
        """Return the documents of the set that has a row of the last reading, and the number of the row there."""
        for name, documents in self.sets.items():
            if row < self._numbers[name]:
                return documents, row
            row -= self._numbers[name]
        raise IndexError(row)

    def known_sets(self) -> NamedSets:
        """Return the names and the ends of the sets, as the last reading found them."""
        return NamedSets(tuple(self.sets), tuple(np.cumsum(list(self._numbers.values())).tolist()))

    @property
    def num_files(self) -> int:
        """Number of files of all sets."""
        return sum(each.num_files for each in self.in_order)

    @property
    def skipped(self) -> pa.Table | None:
        """Rows that were skipped; None if rows were not to be skipped."""
        tables = [table for each in self.in_order if (table := each.skipped) is not None]
        return pa.concat_tables(tables) if tables else None

    @property
    def text_columns(self) -> list[str]:
        """The text columns of the set that has most of them."""
        return max((each.text_columns for each in self.in_order), key=len)

    @property
    def _id_type(self) -> pa.DataType:
        return self.in_order[0]._id_type

    def __getattr__(self, name: str) -> Any:
        if name in ("stripped_pages", "replaced_text", "garbled_text"):
            return sum(getattr(each, name) for each in self.in_order)
        raise AttributeError(name)

    @property
    def left_out_records(self) -> dict[str, int]:
        """Number of records in the last pass that are not documents, by their kind."""
        return dict(sorted(added_up(each.left_out_records for each in self.in_order).items()))

    def batches(self, columns: Iterable[str] = (), max_bytes: int = 16 << 20) -> Iterator[Batch]:
        """Stream the documents of all sets; the rows of each set are counted after those before it."""
        names, first = list(columns), 0
        for name, documents in self.sets.items():
            number = 0
            for batch in documents.batches(names, max_bytes):
                number += batch.num_rows
                yield replace(batch, first_row=first + batch.first_row)
            self._numbers[name] = number
            first += number

    def describe(self) -> dict[str, Any]:
        """Return what `open_described` needs of each set, ready for JSON."""
        return {"format": "several", "sets": {name: each.describe() for name, each in self.sets.items()}}

    def joined_ids(self, ids: list[pa.Array], what: str) -> pa.Array:
        """Join the ids of the batches of all sets, which are unique within each; empty the list.

        Raises
        ------
        InputError
            If two documents of a set have the same id, or the ids of two sets have different types.
        """
        found, begin = [], 0
        for name, documents in self.sets.items():
            mine, rest = [], self._numbers[name]
            while rest > 0:
                rest -= len(ids[begin])
                mine.append(ids[begin])
                begin += 1
            own = ids_of(documents, mine)
            documents.check_unique(own, f"{what} {name}")
            found.append(own)
        ids.clear()
        return one_type_of_sets(found)

    def check_ids_early(self, what: str) -> None:
        """Raise InputError for null and repeated ids of a set, where ids can be read without the text."""
        for name, each in self.sets.items():
            each.check_ids_early(f"{what} {name}")

    def _check_plain(self, name: str, parameter: str) -> None:
        for each in self.in_order:
            each._check_plain(name, parameter)


def ids_of(documents: Documents, ids: list[pa.Array]) -> pa.Array:
    """Join the ids of the batches of documents into one array, and empty the list."""
    if not any(map(len, ids)):
        return pa.nulls(0, documents._id_type)
    chunks = pa.chunked_array(one_integer_type(ids))
    ids.clear()
    return one_array(chunks)


def one_type_of_sets(ids: Sequence[pa.Array]) -> pa.Array:
    """Return the ids of several sets as one array: strings if those of some are strings, and others are integers.

    Raises
    ------
    InputError
        If no type holds all of them.
    """
    some = [each for each in ids if len(each)] or list(ids[:1])
    kinds = {each.type for each in some}
    if len(kinds) > 1:
        found = [pa.uint64()] if kinds == {pa.int64(), pa.uint64()} else types_for_all(kinds)
        some = in_first_type(some, found, f"the reference sets are {' and '.join(sorted(map(str, kinds)))}")
    return pa.concat_arrays(some)


def types_for_all(kinds: set[pa.DataType]) -> list[pa.DataType]:
    """Return the types that may hold ids of several types, the best first; none for bytes and something else."""
    if all(map(pa.types.is_integer, kinds)):
        return [pa.int64(), pa.uint64()]
    if all(map(is_binary, kinds)):
        return [pa.large_binary()]
    return [pa.large_string()] if all(pa.types.is_integer(kind) or is_string(kind) for kind in kinds) else []


def in_first_type(ids: Sequence[pa.Array], kinds: Sequence[pa.DataType], named: str) -> list[pa.Array]:
    """Return ids in the first of some types that holds them all.

    Raises
    ------
    InputError
        If no type does; `named` has the owners of the ids, and their types.
    """
    for kind in kinds:
        with contextlib.suppress(pa.ArrowInvalid):  # a value that it cannot hold
            return [each.cast(kind) for each in ids]
    raise InputError(f"ids of {named}; make them one type")


def open_reference(description: dict[str, Any]) -> Any:
    """Open again what `Documents.describe` or `ReferenceSets.describe` described.

    Raises
    ------
    InputError
        If documents were given in memory, or the number of files is another.
    """
    if "sets" not in description:
        return open_described(description)
    return ReferenceSets({name: open_described(each) for name, each in description["sets"].items()})


def described_again(description: dict[str, Any] | None) -> list[Reference]:
    """Return what `Documents.describe` or `ReferenceSets.describe` described, to be given to a job once more.

    Raises
    ------
    InputError
        If documents were given in memory.
    """
    sets = {} if description is None else description.get("sets", {None: description})
    return [Reference(source=paths_described(each), name=name, reading=reading_of(each)) for name, each in sets.items()]
