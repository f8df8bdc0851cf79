"""Read texts of some documents again."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import numpy_of
from ..errors import InputError
from ..text.raw_text import to_readable
from .ahead import closing
from .references import ReferenceSets
from .stream import Batch, Documents


def name_of(documents: Documents) -> str:
    """Return the name of the documents in messages."""
    return (documents.describe()["paths"] or ["the table"])[0]


def text_of(documents: Documents, id: pa.Scalar, row: int | None) -> str:
    """Return the text of the document in a row, or of the document with the id if `row` is None; see `texts_of`."""
    ids = pa.chunked_array([pa.array([id.as_py()], id.type)])
    (text,) = texts_of(documents, ids, None if row is None else [row])
    assert text is not None
    return text


def raw_texts(documents: Documents | ReferenceSets, ids: Collection[Any]) -> dict[Any, bytes]:
    """Return the texts of documents by their ids, as they are compared; those that are no longer there are left out."""
    found: dict[Any, bytes] = {}
    as_text = any(isinstance(id, str) for id in ids)  # integers are text if those of another input are
    with closing(documents.batches()) as batches:
        for batch in batches:
            own = batch.ids.cast(pa.large_string()) if as_text else batch.ids
            wanted = pa.array(_fitting(ids, own.type), own.type)
            for row in np.flatnonzero(numpy_of(pc.is_in(own, wanted))).tolist():
                found[own[row].as_py()] = batch.text[row].tobytes()
            if len(found) == len(ids):
                break
    return found


def _fitting(ids: Iterable[Any], kind: pa.DataType) -> list[Any]:
    """Return the ids that a type can hold: batches of one input may have ids of int64 and of uint64."""
    if not pa.types.is_integer(kind):
        return list(ids)
    span = np.iinfo(kind.to_pandas_dtype())
    return [id for id in ids if span.min <= id <= span.max]


def texts_of(
    documents: Documents,
    ids: pa.ChunkedArray,
    rows: Sequence[int] | None,
    *,
    longest: float = math.inf,
    at_most: float = math.inf,
) -> list[str | None]:
    """Return the texts of some documents as strings; see `Documents._to_string`.

    Parameters
    ----------
    documents : Documents
    ids : pyarrow.ChunkedArray
    rows : sequence of int, or None
        Rows of the documents, ascending; None if only the ids are known.
    longest, at_most : float, default infinity
        Bytes of a text, and of all texts. Texts beyond them are None.

    Raises
    ------
    InputError
        If a document is no longer where it was.
    """
    wanted = ids.combine_chunks()
    if documents.describe()["on_error"] == "skip":  # a row may be skipped for a column that is not read here
        rows = None
    found: dict[int, str | None] = {}
    num_bytes = 0
    with closing(documents.batches()) as batches:
        for batch in batches:
            ids_there = _as(batch.ids, wanted.type)
            for number, place in _places(batch, wanted, rows):
                if number in found or ids_there[place].as_py() != wanted[number].as_py():
                    continue
                text = batch.text[place]
                num_bytes += len(text) if len(text) <= longest else 0
                fits = len(text) <= longest and num_bytes <= at_most
                found[number] = documents._to_string(text.tobytes()) if fits else None
            if len(found) == len(wanted):
                break
    for number in range(len(wanted)):
        if number not in found:
            raise InputError(
                f"{name_of(documents)}: no longer holds document {wanted[number].as_py()!r} where it was; run neardup "
                "dedup again"
            )
    return [found[number] for number in range(len(wanted))]


def columns_of(
    documents: Documents, ids: pa.ChunkedArray, rows: Sequence[int], columns: Sequence[str]
) -> list[pa.Array]:
    """Return the values of some documents in some columns; see `texts_of`, which says whether the documents changed."""
    wanted, skips = ids.combine_chunks(), documents.describe()["on_error"] == "skip"
    numbers: list[int] = []
    found: list[list[pa.Array]] = []
    with closing(documents.batches(columns)) as batches:
        for batch in batches:
            places = list(_places(batch, wanted, None if skips else rows))
            if places:
                numbers += [number for number, _ in places]
                at = pa.array([place for _, place in places])
                found.append([batch.columns[name].take(at) for name in columns])
    order = pa.array(np.argsort(numbers, kind="stable"))
    return [pa.concat_arrays(parts).take(order) for parts in zip(*found, strict=True)]


def _places(batch: Batch, wanted: pa.Array, rows: Sequence[int] | None) -> Iterable[tuple[int, int]]:
    """Return (number of a wanted document, its place in the batch) for those that the batch holds."""
    if rows is not None:
        first, last = np.searchsorted(rows, [batch.first_row, batch.first_row + batch.num_rows]).tolist()
        return [(number, rows[number] - batch.first_row) for number in range(first, last)]
    numbers = pc.index_in(_as(batch.ids, wanted.type), wanted)
    places = np.flatnonzero(numpy_of(numbers.is_valid()))
    return zip(numbers.take(pa.array(places)).to_pylist(), places.tolist(), strict=True)


def _as(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return ids in the type of others: integers are text if those of another input are, and null if they cannot be."""
    try:
        return ids.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(ids), kind)


def first_texts(documents: Documents, number: int, max_bytes: int) -> list[str]:
    """Return the first texts that are not blank, with their tags, in batches of `max_bytes`; none of a stream."""
    if not documents.rewindable:
        return []
    again = copy.copy(documents)  # whose notes of the last reading stay as they are
    again.html = False
    with closing(again.batches(max_bytes=max_bytes)) as batches:
        texts = (
            to_readable(documents._to_string(batch.text[row].tobytes())).strip()
            for batch in batches
            for row in range(batch.num_rows)
        )
        return [text for text in islice(texts, number) if text]
