"""Read texts of some documents again."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import numpy_of
from ..errors import InputError
from ..raw_text import to_readable, to_string
from .ahead import closing
from .stream import Batch, Documents


def name_of(documents: Documents) -> str:
    """Return the name of the documents in messages."""
    return (documents.describe()["paths"] or ["the table"])[0]


def text_of(documents: Documents, id: pa.Scalar, row: int | None) -> str:
    """Return the text of the document in a row of the input, or of the document with the id if `row` is None.

    It is a string of `raw_text`, which keeps invalid bytes and borders between columns.

    Raises
    ------
    InputError
        If there is no such document there any more.
    """
    if documents.describe()["on_error"] == "skip":  # a row may be skipped for a column that is not read here
        row = None
    for batch in documents.batches():
        if row is None:
            place = -1
            with contextlib.suppress(pa.ArrowInvalid):  # not an integer that these ids could be
                place = pc.index(batch.ids, id.cast(batch.ids.type)).as_py()
        else:
            place = row - batch.first_row if row < batch.first_row + batch.num_rows else -1
        if place >= 0:
            if batch.ids[place].as_py() != id.as_py():
                break
            return to_string(batch.text[place].tobytes())
    raise InputError(
        f"{name_of(documents)}: no longer holds document {id.as_py()!r} where it was; run neardup dedup again"
    )


def texts_of(
    documents: Documents, ids: pa.ChunkedArray, rows: Sequence[int] | None, *, longest: int, at_most: int
) -> list[str | None]:
    """Return the texts of the documents with some ids.

    Parameters
    ----------
    documents : Documents
    ids : pyarrow.ChunkedArray
    rows : sequence of int, or None
        Rows of the documents, ascending; None if only the ids are known.
    longest, at_most : int
        Bytes of a text, and of all texts. Texts beyond them are None.

    Raises
    ------
    InputError
        If the documents have changed.
    """
    wanted = ids.combine_chunks()
    if documents.describe()["on_error"] == "skip":  # a row may be skipped for a column that is not read here
        rows = None
    found: dict[int, str | None] = {}
    num_bytes = 0
    with closing(documents.batches()) as batches:
        for batch in batches:
            for number, place in _places(batch, wanted, rows):
                if number in found:
                    continue
                if batch.ids[place].as_py() != wanted[number].as_py():
                    raise InputError("its input has changed since the result was made")
                text = batch.text[place]
                num_bytes += len(text) if len(text) <= longest else 0
                fits = len(text) <= longest and num_bytes <= at_most
                found[number] = to_string(text.tobytes()) if fits else None
            if len(found) == len(wanted):
                break
    if len(found) < len(wanted):
        raise InputError("its input no longer holds all documents")
    return [found[number] for number in range(len(wanted))]


def _places(batch: Batch, wanted: pa.Array, rows: Sequence[int] | None) -> Iterable[tuple[int, int]]:
    """Return (number of a wanted document, its place in the batch) for those that the batch holds."""
    if rows is not None:
        first, last = np.searchsorted(rows, [batch.first_row, batch.first_row + batch.num_rows]).tolist()
        return [(number, rows[number] - batch.first_row) for number in range(first, last)]
    try:
        ids = batch.ids.cast(wanted.type)
    except pa.ArrowInvalid:  # integers that these ids cannot be
        return []
    numbers = pc.index_in(ids, wanted)
    places = np.flatnonzero(numpy_of(numbers.is_valid()))
    return zip(numbers.take(pa.array(places)).to_pylist(), places.tolist(), strict=True)


def first_texts(documents: Documents, number: int, max_bytes: int) -> list[str]:
    """Return the first texts that are not blank, with their tags, in batches of `max_bytes`; none of a stream."""
    if not documents.rewindable:
        return []
    again = copy.copy(documents)  # whose notes of the last reading stay as they are
    again.html = False
    with closing(again.batches(max_bytes=max_bytes)) as batches:
        texts = (
            to_readable(to_string(batch.text[row].tobytes())).strip()
            for batch in batches
            for row in range(batch.num_rows)
        )
        return [text for text in islice(texts, number) if text]
