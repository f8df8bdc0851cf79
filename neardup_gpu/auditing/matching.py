"""The documents of a corpus that the claims of a tool mean: by ids, or by digests of their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import Ragged, bools, numpy_of
from ..documents import Documents
from ..documents.reading_options import Reading
from ..documents.source import opened_leniently
from ..documents.stream import Batch
from ..errors import InputError
from ..recipe import Recipe
from ..records import dataclass
from ..report import count
from ..results.by_value import as_text
from ..stages import count_tokens
from .claims import ClaimReader, check_type, first_few, ids_file
from .columns import WrittenColumns

DIGEST = pa.binary(16)


@dataclass
class Corpus:
    """The ids of all documents of the corpus, and what else one reading gives.

    Parameters
    ----------
    documents : Documents
    ids : pyarrow.ChunkedArray
    by : pyarrow.ChunkedArray or None
        The column by which everything is counted.
    digests : pyarrow.ChunkedArray or None
        A digest of each text, if texts are matched.
    """

    documents: Documents
    ids: pa.ChunkedArray
    by: pa.ChunkedArray | None
    digests: pa.ChunkedArray | None

    @classmethod
    def read(cls, documents: Documents, by: str | None, digested: bool) -> Corpus:
        """Read the ids of all documents, a column, and digests of their texts if they are needed."""
        ids: list[pa.Array] = []
        values: list[pa.Array] = []
        digests: list[pa.Array] = []
        for batch in documents.batches([] if by is None else [by]):
            ids.append(batch.ids)
            values += [as_text(column, name) for name, column in batch.columns.items()]
            if digested:
                digests.append(digests_of(batch.text))
        if not ids:
            raise InputError("the corpus has no documents; there is nothing to audit")
        found = pa.chunked_array(ids)
        documents.check_unique(found)
        columns = None if by is None else pa.chunked_array(values, pa.large_string())
        return cls(documents, found, columns, pa.chunked_array(digests, DIGEST) if digested else None)

    def __len__(self) -> int:
        return len(self.ids)


def words_of(batch: Batch, recipe: Recipe) -> pa.Array:
    """Return a digest of the words of each text."""
    tokens, _ = count_tokens(batch.text, recipe, "cpu")
    return digests_of(tokens)


def digests_of(rows: Ragged) -> pa.Array:
    """Return a digest of 16 bytes for each row."""
    texts = (rows[row].tobytes() for row in range(len(rows)))
    return pa.array([hashlib.blake2b(text, digest_size=16).digest() for text in texts], DIGEST)


@dataclass
class Matched:
    """The documents that a tool kept.

    Parameters
    ----------
    kept : array of bool, shape (documents,)
    counts : dict
        What was matched, and what was not.
    """

    kept: np.ndarray
    counts: dict[str, Any] = field(default_factory=dict)


def rows_of(ids: pa.ChunkedArray, corpus: Corpus, what: str, ignore: bool, counts: dict[str, Any]) -> np.ndarray:
    """Return the row of each id in the corpus, -1 for unknown ids, which are counted and named in `counts`.

    Raises
    ------
    InputError
        If no id is known, or any is unknown that may not be ignored.
    """
    wanted = check_type(ids, corpus.ids.type, what)
    rows = numpy_of(pc.fill_null(pc.index_in(wanted, corpus.ids.combine_chunks()), -1)).astype(np.int64)
    unknown = wanted.filter(pa.array(rows < 0))
    if len(unknown):
        if len(unknown) == len(wanted):
            raise InputError(
                f"{what}: none of its {count(len(wanted), 'id')} is in the corpus ({first_few(unknown)}); this is the "
                "result of another corpus, or its ids are in another column (kept_id_column=...)"
            )
        if not ignore:
            raise InputError(
                f"{what}: {count(len(unknown), 'id')} of {len(wanted):,} not in the corpus ({first_few(unknown)}); "
                "give the corpus that the tool read, or pass ignore_unknown=True"
            )
        counts["unknown"] = counts.get("unknown", 0) + len(unknown)
        counts.setdefault("first_unknown", [])
        counts["first_unknown"] = [*counts["first_unknown"], *unknown[:10].to_pylist()][:10]
    return rows


def match_ids(corpus: Corpus, reader: ClaimReader, kept: Any, removed: Any, ignore: bool) -> Matched:
    """Match documents by their ids.

    Raises
    ------
    InputError
        If ids are unknown, or the kept and the removed ones contradict each other.
    """
    counts: dict[str, Any] = {"by": "id"}
    marks = {}
    for what, source in (("kept", kept), ("removed", removed)):
        if source is None:
            continue
        rows = rows_of(reader.ids(source, what), corpus, what, ignore, counts)
        times = np.bincount(rows[rows >= 0], minlength=len(corpus))
        counts[f"{what}_rows"] = len(rows)
        counts["repeated"] = counts.get("repeated", 0) + int(np.maximum(times - 1, 0).sum())
        marks[what] = times > 0
    if len(marks) == 2:
        for wrong, where in (
            ("both kept and removed", marks["kept"] & marks["removed"]),
            ("neither kept nor removed", ~marks["kept"] & ~marks["removed"]),
        ):
            if where.any():
                named = corpus.ids.filter(pa.array(where))
                raise InputError(
                    f"kept and removed contradict each other: {count(len(named), 'document')} {wrong} "
                    f"({first_few(named)}); give one of them"
                )
    return Matched(marks["kept"] if "kept" in marks else ~marks["removed"], counts)


def match_texts(corpus: Corpus, kept: Any, reading: Reading, recipe: Recipe, ignore: bool) -> Matched:
    """Match kept rows by digests of their texts and, where these are unknown, by digests of their words.

    If a text occurs several times in the corpus and fewer times among the kept rows, the first ones count as kept.

    Raises
    ------
    InputError
        If texts are unknown that may not be ignored.
    """
    assert corpus.digests is not None
    written = opened_leniently(kept, replace(reading, id_column=None))
    theirs = pa.chunked_array([digests_of(batch.text) for batch in written.batches()], DIGEST)
    found, extra, left = _first_copies(corpus.digests, theirs, np.zeros(len(corpus), bool))
    counts: dict[str, Any] = {"by": "text", "kept_rows": len(theirs), "repeated": extra, "by_words": 0}
    if len(left):
        ours = pa.chunked_array([words_of(batch, recipe) for batch in corpus.documents.batches()], DIGEST)
        words = _of_rows(written, left, recipe)
        found, extra, unknown = _first_copies(ours, words, found)
        counts["repeated"] += extra
        counts["by_words"] = len(left) - len(unknown) - extra
        if len(unknown):
            if not found.any():
                raise InputError(
                    f"kept: none of its {count(len(theirs), 'text')} is in the corpus, nor are their words; this is "
                    "the result of another corpus, or its text is in another column"
                )
            if not ignore:
                raise InputError(
                    f"kept: {count(len(unknown), 'text')} of {len(theirs):,} not in the corpus, nor are their words "
                    f"(the first is row {int(left[unknown[0]]) + 1:,}); pass ignore_unknown=True to go on without them"
                )
            counts["unknown"] = len(unknown)
            counts["first_unknown"] = [f"row {row + 1}" for row in left[unknown[:10]].tolist()]
    counts["copies"] = len(corpus) - len(pc.unique(corpus.digests))
    return Matched(found, counts)


def _of_rows(documents: Documents, rows: np.ndarray, recipe: Recipe) -> pa.ChunkedArray:
    """Return digests of the words of some rows, ascending."""
    chunks = []
    for batch in documents.batches():
        first, last = np.searchsorted(rows, [batch.first_row, batch.first_row + batch.num_rows])
        if first < last:
            chunks.append(words_of(batch, recipe).take(pa.array(rows[first:last] - batch.first_row)))
    return pa.chunked_array(chunks, DIGEST)


def _first_copies(
    ours: pa.ChunkedArray, theirs: pa.ChunkedArray, found: np.ndarray
) -> tuple[np.ndarray, int, np.ndarray]:
    """Find their digests among ours.

    Returns
    -------
    found : array of bool, one per digest of ours
        With the first digests of ours that equal one of theirs, as often as theirs hold it, besides those found before.
    extra : int
        The number of digests of theirs that occur more often than among ours.
    left : array of int64
        The digests of theirs that ours do not have.
    """
    values = pc.unique(ours)
    codes = numpy_of(pc.index_in(ours, values)).astype(np.int64)
    places = pc.index_in(theirs, values)
    known = bools(pc.is_valid(places).combine_chunks())
    times = np.bincount(numpy_of(places.filter(pa.array(known))).astype(np.int64), minlength=len(values))
    free = np.flatnonzero(~found)
    order = free[np.argsort(codes[free], kind="stable")]
    begins = np.searchsorted(codes[order], codes[order])
    taken = order[np.arange(len(order)) - begins < times[codes[order]]]
    found = found.copy()
    found[taken] = True
    return found, int(known.sum()) - len(taken), np.flatnonzero(~known)


def open_with_texts(kept: Any, names: Sequence[str], text_columns: Sequence[str], reading: Reading) -> Documents | None:
    """Open the kept rows, if they carry ids and texts in columns that are called as those of the corpus; else None."""
    if kept is None or isinstance(getattr(kept, "documents", None), pa.Table):
        return None
    written = WrittenColumns(ids_file(kept), "kept")
    ids = None if written.is_lines else written.first_of(names)
    if ids is None or any(written.first_of([name]) is None for name in text_columns):
        return None
    return opened_leniently(kept, replace(reading, id_column=ids, text_columns=list(text_columns)))


def check_texts(corpus: Corpus, written: Documents, recipe: Recipe, ignore: bool, counts: dict[str, Any]) -> None:
    """Check that kept rows have the texts of the corpus, or at least their words; count those that differ.

    Raises
    ------
    InputError
        If the words of a kept row differ from those of the corpus, which then changed since the tool read it.
    """
    assert corpus.digests is not None
    ids, ours = corpus.ids.combine_chunks(), corpus.digests.combine_chunks()
    doubtful: dict[int, bytes] = {}
    for batch in written.batches():
        rows = pc.index_in(check_type(pa.chunked_array([batch.ids]), ids.type, "kept"), ids).combine_chunks()
        differs = bools(pc.fill_null(pc.not_equal(digests_of(batch.text), ours.take(rows)), False))
        if differs.any():
            words = words_of(batch, recipe)
            doubtful |= {rows[place].as_py(): words[place].as_py() for place in np.flatnonzero(differs).tolist()}
    changed: list[int] = []
    places = np.array(sorted(doubtful), np.int64)
    if len(places):
        words = _of_rows(corpus.documents, places, recipe)
        changed = [row for row, own in zip(places.tolist(), words.to_pylist(), strict=True) if own != doubtful[row]]
    counts["other_spaces"] = len(places) - len(changed)
    counts["changed"] = len(changed)
    if changed and not ignore:
        raise InputError(
            f"kept: {count(len(changed), 'row')} with other words than in the corpus "
            f"({first_few(ids.take(pa.array(changed)))}); the corpus changed since, or the tool edits texts; pass "
            "ignore_unknown=True to judge the texts of the corpus"
        )
