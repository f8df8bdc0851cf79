"""The ids of documents: none is null, none names two documents, and one integer type holds them all.

`Reading.on_duplicate_id` may leave documents out whose id an earlier document has, or give them other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, large_enough
from ..errors import InputError
from ..log import log
from ..report import count, shorten
from .columns import check_ids, is_string, mixed_integers
from .contract import Reader
from .kept import filtered
from .passes import Pass
from .skipped import Entry, Loss, Problem


def with_ids(
    batch: pa.RecordBatch, rows: np.ndarray, ids: pa.Array, key: str, reading: Pass
) -> tuple[pa.RecordBatch, np.ndarray, pa.Array]:
    """The documents of a batch that have an id; the others raise InputError or are skipped."""
    name = reading.reader.name
    try:
        if len(rows):
            check_ids(ids, key, name, int(rows[0]))
        return batch, rows, ids
    except InputError:
        before = reading.reader.rows_before()
        if not reading.skipped.skips:
            check_ids(ids, key, name, before + int(rows[0]))
    good = np.ones(len(rows), bool)
    for i in range(len(rows)):
        try:
            check_ids(ids.slice(i, 1), key, name, before + int(rows[i]))
        except InputError as error:
            reading.skipped.note(Problem([Loss(name, int(rows[i]), None, 1, None, str(error))]))
            good[i] = False
    return filtered(batch, good), rows[good], ids.filter(arrow(good))


class IntegerRange:
    """Integer ids of all files, where some are int64 and others uint64: refuses a negative id together with one from
    2**63 on.

    Parameters
    ----------
    column : str or None
        Name of the id column.
    """

    def __init__(self, column: str | None) -> None:
        self.column = column
        self.found: dict[str, str] = {}  # "negative" and "wide", and the file that holds such an id

    def check(self, ids: pa.Array, name: str) -> None:
        """Take note of the ids of a batch of the file `name`; raise InputError if no integer type holds all ids."""
        if pa.types.is_int64(ids.type) and (pc.min(ids).as_py() or 0) < 0:
            self.note("negative", name)
        elif pa.types.is_uint64(ids.type) and (pc.max(ids).as_py() or 0) >= 2**63:
            self.note("wide", name)

    def note(self, kind: str, name: str) -> None:
        """Take note of an id of the file `name` that is "negative" or "wide"; raise InputError as `check` does."""
        self.found.setdefault(kind, name)
        if len(self.found) == 2:
            other = next(file for word, file in self.found.items() if word != kind)
            raise mixed_integers(name, self.column or "", other)


def repeated(ids: pa.Array | pa.ChunkedArray) -> tuple[object, int, int, int] | None:
    """An id that stands for several documents, their number, and the first two; None if every id is unique."""
    (ids,) = large_enough(ids)
    if len(pc.unique(ids)) == len(ids):
        return None
    counts = pc.value_counts(ids)
    entry = counts.filter(pc.greater(counts.field("counts"), 1))[0]
    first = pc.index(ids, entry["values"]).as_py()
    second = pc.index(ids.slice(first + 1), entry["values"]).as_py() + first + 1
    return entry["values"].as_py(), entry["counts"].as_py(), first, second


def stands_for_several(what: str, value: object, number: int, places: Sequence[str]) -> InputError:
    """The error for an id of several documents; `places` says where the first two lie."""
    where = f"{', '.join(places)}{', ...' if number > 2 else ''}"
    return InputError(
        f"{what}: id {shorten(repr(value), 60)} stands for {number:,} documents ({where}); name a column of unique "
        "ids with id_column=..., or leave it out to use row numbers"
    )


Repeats: TypeAlias = dict[int, str | None]
"""The rows of a reader whose id an earlier document has, and the new id of each; None for a row that is left out."""


class IdsGiven:
    """The ids of all documents before the next one, in input order.

    Memory per document, measured with a million ids: 99 bytes for integers, 133 for strings of 12 characters, 169 for
    strings of 36.

    Parameters
    ----------
    rule : "first" or "suffix"
        As in `Reading.on_duplicate_id`.
    known : callable, default None
        Returns two arrays of bool for an array of ids: whether a document of an earlier input has the id, and whether
        an earlier reading of this input, which was interrupted, has done the document with the id.

    Attributes
    ----------
    num_done : int
        Documents that were left out because an earlier reading has done them.
    """

    def __init__(self, rule: str, known: Callable[[pa.Array], tuple[np.ndarray, np.ndarray]] | None = None) -> None:
        self.num_done = 0
        self._suffixes, self._known = rule == "suffix", known
        self._given: set[object] = set()
        self._numbers: dict[object, int] = {}  # the last number that an id got as its suffix

    def repeats(self, rows: np.ndarray, ids: pa.Array) -> tuple[Repeats, set[int]]:
        """Return which of the next documents have the id of an earlier one, and which an earlier reading has done."""
        found: Repeats = {}
        done: set[int] = set()
        known, is_done = np.zeros((2, len(rows)), bool) if self._known is None else self._known(ids)
        each = zip(rows.tolist(), ids.to_pylist(), known.tolist(), is_done.tolist(), strict=True)
        for row, id, of_earlier_input, of_earlier_reading in each:
            if of_earlier_input or id in self._given:
                found[row] = self._with_suffix(id) if self._suffixes else None
                continue
            self._given.add(id)
            if of_earlier_reading:
                done.add(row)
        self.num_done += len(done)
        return found, done

    def _with_suffix(self, id: str) -> str:
        """Return the id with the first number from 2 on that makes it an id which no earlier document has."""
        number = self._numbers.get(id, 1) + 1
        while (name := f"{id}-{number}") in self._given:
            number += 1
        self._numbers[id] = number
        self._given.add(name)
        return name


class RepeatedIds:
    """The repeated ids of one reading of the documents.

    Parameters
    ----------
    num_readers : int
    given : IdsGiven or sequence of Repeats
        The ids of earlier documents; or what an earlier reading found, for each reader.

    Attributes
    ----------
    found : list of Repeats
        For each reader, what was found so far.
    """

    def __init__(self, num_readers: int, given: IdsGiven | Sequence[Repeats]) -> None:
        self._given = given
        self.found: list[Repeats] = [{} for _ in range(num_readers)]
        self._why: list[dict[int, str]] = [{} for _ in range(num_readers)]

    @property
    def number(self) -> int:
        """Number of documents whose id an earlier one has."""
        return sum(map(len, self.found))

    def resolved(
        self, batch: pa.RecordBatch, rows: np.ndarray, ids: pa.Array, number: int, reading: Pass
    ) -> tuple[pa.RecordBatch, np.ndarray, pa.Array]:
        """Return the documents of a batch of the reader `number`, each with an id of its own."""
        done: set[int] = set()
        if isinstance(self._given, IdsGiven):
            found, done = self._given.repeats(rows, ids)
        else:
            known = self._given[number]
            found = {row: known[row] for row in rows.tolist() if row in known} if known else {}
        if not found and not done:
            return batch, rows, ids
        self.found[number] |= found
        if not done and None not in found.values():
            names = [found.get(row, id) for row, id in zip(rows.tolist(), ids.to_pylist(), strict=True)]
            return batch, rows, pa.array(names, ids.type)
        again = np.isin(rows, [*found, *done])
        for row, id in zip(rows[again].tolist(), ids.filter(arrow(again)).to_pylist(), strict=True):
            if row not in done:
                self._why[number][row] = f"its id {shorten(repr(id), 60)} is that of an earlier document"
            reading.skipped.leave_out(row, 1)
        return filtered(batch, ~again), rows[~again], ids.filter(arrow(~again))

    def entries(self, number: int, reading: Pass) -> list[Entry]:
        """Return the rows of a reader that were left out, as entries of `Documents.skipped`, once they all are read."""
        why = self._why[number] if self._why else {}
        places = reading.reader.places(np.array(list(why), np.int64)).tolist() if why else []
        return [(reading.reader.name, place, 1, None, each) for place, each in zip(places, why.values(), strict=True)]


def check_suffix(kind: pa.DataType, column: str, name: str) -> None:
    """Raise InputError unless ids of this type can get a suffix."""
    if not is_string(kind):
        raise InputError(
            f"{name}: column {column!r} holds {kind}, which takes no suffix; give on_duplicate_id='first', or name a "
            "column of strings with id_column=..."
        )


def say_repeated(number: int, rule: str, readers: Sequence[Reader]) -> None:
    """Log how many documents have the id of an earlier one, if any have."""
    if number:
        name = readers[0].name if len(readers) == 1 else count(len(readers), "file")
        done = "is left out" if rule == "first" else "got a number after its id"
        found = count(number, "document")
        log.warning("%s: each document whose id an earlier one has %s: %s", name, done, found, extra={"once": True})
