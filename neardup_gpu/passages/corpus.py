"""The tokens of all documents, in memory, and the places where earlier cuts divide them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels._launch import check_rows

from ..conditions import group_words
from ..data import Ragged, arrow, large_enough, one_array
from ..documents.columns import SEAMS
from ..documents.skipped import check_skipped
from ..documents.sources import ids_of
from ..documents.stream import Batch, Documents
from ..engine.choice import to_host
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.pieces import OfBatch, Span
from ..errors import InputError
from ..priority import keep_column
from ..recipe import Recipe
from ..records import dataclass
from ..sketching import text_of
from ..stages import count_tokens, place_tokens
from .places import some_rows
from .settings import NOTHING, SubstringSettings


@dataclass(frozen=True, eq=False)
class _DocumentPiece(OfBatch):
    """Some documents of a batch, whose text lies where the backend wants it."""

    text: Ragged


class _Tokenized(NamedTuple):
    """The tokens of some documents of a batch; `last` says whether they are the last ones of it."""

    batch: Batch
    last: bool
    tokens: Ragged
    invalid: int


class TokenCorpus(NamedTuple):
    """The tokens of all documents, in input order.

    tokens : Ragged of uint64
    bars : array of int64
        Tokens before which an earlier cut lies, ascending: no window crosses it.
    seams : Ragged of int64
        The bytes of each document at which an earlier run cut its text.
    ids : pyarrow.Array
    column : pyarrow.Array or None
        The column by which documents are kept.
    categories : list of str or None
        The order of its values, if these are ordered categories.
    words : array of uint64 or None
        The group word of each document, if only documents of equal values are compared.
    counts : dict of str to int
    """

    tokens: Ragged
    bars: np.ndarray
    seams: Ragged
    ids: pa.Array
    column: Any
    categories: list[str] | None
    words: np.ndarray | None
    counts: dict[str, int]


def read_corpus(
    documents: Documents, recipe: Recipe, settings: SubstringSettings, runtime: Runtime, max_bytes: int, clock: Clock
) -> TokenCorpus:
    """Read all documents.

    Raises
    ------
    InputError
        If no document can be read, ids repeat, or the column of seams holds something else.
    """
    kept_by = None if settings.keep == NOTHING else keep_column(settings.keep)[0]
    marked = any(SEAMS in reader.schema.names for reader in documents._readers)
    if marked and documents.extracts_text:
        raise InputError(
            f"the input has a column {SEAMS!r}, which belongs to text that was cut; name that text, usually "
            "extracted_text, with text_columns"
        )
    names = [*settings.within, *([] if kept_by is None else [kept_by]), *([SEAMS] if marked else [])]
    values: list[np.ndarray] = []
    sizes, seams, bars, words = ([np.empty(0, kind)] for kind in (np.int64, np.int64, np.int64, np.uint64))
    seam_sizes, ids, column = [np.empty(0, np.int64)], [], []
    counts = dict.fromkeys(("documents", "tokens", "text_bytes", "invalid_utf8", "null_text", "without_value"), 0)

    def tokenize(piece: _DocumentPiece) -> _Tokenized:
        first, last = piece.span.first, piece.span.last
        text = text_of(piece.text, first, last)
        tokens, found = count_tokens(text, recipe, runtime.backend, piece.span.ids[first:last])
        return _Tokenized(piece.batch, last == len(piece.batch.text), to_host(tokens), found.invalid)

    def add(batch: Batch) -> None:
        """Take over what is known of a batch besides its tokens."""
        ids.append(batch.ids)
        if kept_by is not None:
            column.append(batch.columns[kept_by])
        if settings.within:
            own, missing = group_words([batch.columns[name] for name in settings.within], 0, counts["documents"])
            words.append(own)
            counts["without_value"] += missing
        if marked:
            own_seams = seams_of(batch.columns[SEAMS])
            seams.append(own_seams.values)
            seam_sizes.append(own_seams.sizes)
            bars.append(_bars(batch, own_seams, recipe, runtime.backend) + counts["before"])
        else:
            seam_sizes.append(np.zeros(batch.num_rows, np.int64))
        counts["documents"] += batch.num_rows
        counts["text_bytes"] += int(batch.text.offsets[-1] - batch.text.offsets[0])
        counts["null_text"] += batch.num_null
        counts["before"] = counts["tokens"]

    counts["before"] = 0
    with clock.stage("read"):
        batches = runtime.staged(documents.batches(columns=names, max_bytes=max_bytes))
        pieces = (
            _DocumentPiece(batch, Span.of_documents(batch.text.offsets, batch.ids), text) for batch, text in batches
        )
        for found in runtime.map(tokenize, pieces):
            values.append(found.tokens.values)
            sizes.append(found.tokens.sizes)
            counts["tokens"] += len(found.tokens.values)
            counts["invalid_utf8"] += found.invalid
            if found.last:
                add(found.batch)
                check_rows(counts["documents"], "documents")
                clock.report("read", counts["documents"], documents.num_rows)
    del counts["before"]
    if counts["documents"] == 0:
        check_skipped(documents.skipped)
    all_ids = ids_of(documents, ids)
    documents.check_unique(all_ids)
    return TokenCorpus(
        tokens=Ragged._trusted(_joined(values), _offsets(np.concatenate(sizes))),
        bars=np.concatenate(bars).astype(np.int64),
        seams=Ragged._trusted(np.concatenate(seams), _offsets(np.concatenate(seam_sizes))),
        ids=all_ids,
        column=one_array(pa.chunked_array(large_enough(*column))) if column else None,
        categories=None if kept_by is None else documents._categories(kept_by),
        words=np.concatenate(words) if settings.within else None,
        counts=counts,
    )


def _joined(values: list[np.ndarray]) -> np.ndarray:
    """Join arrays of tokens, and empty the list."""
    found = np.empty(sum(map(len, values)), np.uint64)
    end = len(found)
    while values:
        last = values.pop()
        found[end - len(last) : end] = last
        end -= len(last)
    return found


def _offsets(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def seams_of(column: pa.Array) -> Ragged:
    """Return the places in a column of seams, which is text: numbers with spaces between them.

    Raises
    ------
    InputError
        If it holds something else.
    """
    texts = pc.fill_null(column.cast(pa.large_string()), "")
    if not pc.all(pc.match_substring_regex(texts, r"^([0-9]{1,18}( [0-9]{1,18})*)?$")).as_py() and len(texts):
        raise InputError(f"column {SEAMS!r}: holds something else than the bytes at which neardup cut text; rename it")
    parts = pc.split_pattern(pc.filter(texts, pc.not_equal(texts, "")), " ")
    sizes = np.zeros(len(texts), np.int64)
    sizes[np.flatnonzero(pc.not_equal(texts, "").to_numpy(zero_copy_only=False))] = pc.list_value_length(parts)
    return Ragged._trusted(pc.list_flatten(parts).cast(pa.int64()).to_numpy(), _offsets(sizes))


def _bars(batch: Batch, seams: Ragged, recipe: Recipe, backend: str) -> np.ndarray:
    """Return the tokens of a batch before which a seam lies."""
    rows = np.flatnonzero(seams.sizes)
    if len(rows) == 0:
        return np.empty(0, np.int64)
    sizes = count_tokens(batch.text, recipe, "cpu", batch.ids)[0].offsets
    text = some_rows(batch.text, rows)
    tokens = place_tokens(text, recipe, "cpu" if backend == "gpu" else backend, batch.ids.take(arrow(rows)))
    number = seams.sizes[rows]
    places = seams.values + np.repeat(text.offsets[:-1], number)
    before = np.searchsorted(tokens.begins, places)  # begins ascend from document to document
    inner = np.clip(before, np.repeat(tokens.offsets[:-1], number), np.repeat(tokens.offsets[1:], number))
    return inner + np.repeat(sizes[rows] - tokens.offsets[:-1], number)
