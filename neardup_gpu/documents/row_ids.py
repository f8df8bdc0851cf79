"""The ids of documents: none is null, none names two documents, and one integer type holds them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, large_enough
from ..errors import InputError
from ..report import shorten
from .columns import check_ids, mixed_integers
from .kept import filtered
from .passes import Pass


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
            reading.skipped.add(error, name, int(rows[i]))
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
