"""The tokens of all documents, in memory, and the places where earlier cuts divide them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._cpu import held, joined
from neardup_gpu.kernels._launch import check_rows

from ..data import Ragged, large_enough
from ..documents.seams import SeamedPiece, columns_of_seams, find_seams, joined_seams
from ..documents.skipped import check_skipped
from ..documents.sources import Sources, ids_of, one_type_of_ids
from ..documents.stream import Batch, Documents
from ..engine.choice import kernel, to_host
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.heap import give_back
from ..engine.settings import Engine
from ..errors import InputError
from ..recipe import Recipe
from ..results.by_value import FILE, as_text, check_by
from ..stages import count_tokens
from ..stages.conditions import group_words
from ..stages.sketching import text_of
from ..text.token_changes import begin_tokens


class _Tokenized(NamedTuple):
    """The tokens of some documents of a batch; `last` says whether they are the last ones of it.

    `bars` are the tokens before which a seam lies, `seams` those of the whole batch.
    """

    batch: Batch
    last: bool
    tokens: Ragged
    invalid: int
    bars: np.ndarray
    seams: Ragged | None


class TokenReader(NamedTuple):
    """The means by which documents are read as tokens.

    recipe : Recipe
        Says what a token is.
    runtime : Runtime
    max_bytes : int
        Bytes of text that are read at once.
    clock : Clock
    """

    recipe: Recipe
    runtime: Runtime
    max_bytes: int
    clock: Clock

    @classmethod
    def of(cls, recipe: Recipe, engine: Engine, runtime: Runtime, clock: Clock) -> TokenReader:
        """Return a reader that reads as much text at once as the engine says, or as the runtime takes."""
        return cls(recipe, runtime, engine.batch_bytes or runtime.batch_bytes("set", 0), clock)


class CorpusColumns(NamedTuple):
    """The columns to read besides the text.

    order : tuple of str
        The columns that documents are ordered by.
    within : tuple of str
        Only documents of equal values are compared.
    by : str or None
        The column, or "file", that a report counts by.
    """

    order: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    by: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns of the input among them."""
        return [*self.within, *self.order, *([] if self.by is None or self.by == FILE else [self.by])]

    def check(self, sources: Sources, date: str | None = None) -> None:
        """Look for seams in the inputs of a search, and refuse inputs that it cannot read.

        Raises
        ------
        InputError
            If an input cannot be read twice, lacks a column, or has one whose values cannot be compared.
        """
        for documents in sources.in_order:
            if not documents.rewindable:
                raise InputError(
                    "an input is a stream and passages are placed by a second reading; pass a table or files"
                )
            for name in self.within:
                documents._check_plain(name, "within")
            if date is not None:
                documents._check_plain(date, "date")
            if self.by is not None:
                check_by(self.by, documents)
            find_seams(documents)


class Stretches(NamedTuple):
    """Place the tokens of a corpus that has only some of the tokens of its documents.

    sizes : array of int64, shape (documents,)
        The number of tokens of each document.
    firsts : array of int64, shape (bars,)
        The place in its document of the token that follows each bar. Tokens between two bars follow one another.
    """

    sizes: np.ndarray
    firsts: np.ndarray


class TokenCorpus(NamedTuple):
    """The tokens of all documents, in input order.

    tokens : Ragged of uint64
    bars : array of int64
        Tokens before which an earlier cut lies, ascending: no window crosses it.
    seams : Ragged of int64
        The bytes of each document at which an earlier run cut its text.
    ids : pyarrow.Array
    columns : dict of str to pyarrow.ChunkedArray
        The columns by which documents are ordered; empty if there is no document.
    categories : dict of str to list of str
        The order of the values of each column that has ordered categories.
    words : array of uint64 or None
        The group word of each document, if only documents of equal values are compared.
    values : list of pyarrow.Array
        The values that a report counts by, as strings; empty without such a column.
    counts : dict of str to int
    num_known : int, default 0
        The documents of a reference set, which come first.
    stretches : Stretches, default None
        None if there are all tokens of each document.
    """

    tokens: Ragged
    bars: np.ndarray
    seams: Ragged
    ids: pa.Array
    columns: dict[str, pa.ChunkedArray]
    categories: dict[str, list[str]]
    words: np.ndarray | None
    values: list[pa.Array]
    counts: dict[str, int]
    num_known: int = 0
    stretches: Stretches | None = None

    @property
    def sizes(self) -> np.ndarray:
        """The number of tokens of each document."""
        return self.tokens.sizes if self.stretches is None else self.stretches.sizes

    def without_tokens(self) -> TokenCorpus:
        """Return the corpus with the sizes of its documents, and without their tokens."""
        return self._replace(tokens=Ragged._trusted(np.empty(0, np.uint64), self.tokens.offsets))

    def in_order(self, order: np.ndarray, backend: str) -> TokenCorpus:
        """Return the tokens, bars and stretches of documents in another order, a permutation of their numbers."""
        inside = self.bars < self.tokens.offsets[-1]
        bars, stretches = self.bars[inside], self.stretches
        owner = np.searchsorted(self.tokens.offsets, bars, side="right") - 1
        inner = bars - self.tokens.offsets[owner]
        values, offsets = kernel(gather, backend)(self.tokens.values, self.tokens.offsets, order)
        tokens = Ragged._trusted(values, to_host(offsets))
        bars = tokens.offsets[np.argsort(order)[owner]] + inner
        if stretches is not None:
            by_place = np.argsort(bars, kind="stable")
            bars, firsts = bars[by_place], stretches.firsts[inside][by_place]
            stretches = Stretches(stretches.sizes[order], firsts)
        return self._replace(tokens=tokens, bars=bars, stretches=stretches)

    def whole_places(self, places: np.ndarray) -> np.ndarray:
        """Return the places of some tokens among all tokens of the documents."""
        if self.stretches is None:
            return places
        document = np.searchsorted(self.tokens.offsets, places, side="right") - 1
        bar = np.searchsorted(self.bars, places, side="right") - 1
        before = np.append(0, np.cumsum(self.stretches.sizes))
        return before[document] + self.stretches.firsts[bar] + places - self.bars[bar]


def joined_tokens(parts: list[TokenCorpus]) -> TokenCorpus:
    """Return the first of some corpora with the tokens, bars, seams, values and stretches of all, one after another."""
    before = np.cumsum([0, *(len(part.tokens.values) for part in parts)]).tolist()
    stretches = [part.stretches for part in parts if part.stretches is not None]
    return parts[0]._replace(
        tokens=Ragged._trusted(
            joined([part.tokens.values for part in parts], give_back),
            np.append(0, np.cumsum(np.concatenate([part.tokens.sizes for part in parts]))),
        ),
        bars=np.concatenate([part.bars + start for part, start in zip(parts, before, strict=False)]),
        seams=Ragged._joined([part.seams for part in parts]),
        values=[chunk for part in parts for chunk in part.values],
        stretches=Stretches(*map(np.concatenate, zip(*stretches, strict=True))) if stretches else None,
    )


def joined_inputs(corpora: list[TokenCorpus]) -> TokenCorpus:
    """Return the documents of an input, or of a reference set and an input, as one corpus.

    Raises
    ------
    InputError
        If one has ids of bytes, and the other has not.
    """
    if len(corpora) == 1:
        return corpora[0]
    known, own = corpora
    ids, known_ids = one_type_of_ids(own.ids, known.ids)
    return joined_tokens(corpora)._replace(
        ids=pa.concat_arrays([known_ids, ids]),
        columns=own.columns,
        categories=own.categories,
        words=None if known.words is None or own.words is None else np.concatenate([known.words, own.words]),
        counts={**own.counts, **{f"reference_{name}": known.counts[name] for name in ("documents", "tokens")}},
        num_known=len(known_ids),
    )


def read_corpus(documents: Documents, columns: CorpusColumns, reader: TokenReader, source: int) -> TokenCorpus:
    """Read all documents. Two inputs whose documents are compared with each other are of different `source`.

    Raises
    ------
    InputError
        If no document can be read, ids repeat, or the column of seams holds something else.
    """
    found = corpus_of(documents, columns, reader, source)
    if found.counts["documents"] == 0:
        check_skipped(documents.skipped)
    documents.check_unique(found.ids)
    return found


def corpus_of(documents: Documents, columns: CorpusColumns, reader: TokenReader, source: int) -> TokenCorpus:
    """Read the documents of an input, or of a slice, whose column of seams is known. Ids may repeat.

    Raises
    ------
    InputError
        If the column of seams holds something else.
    """
    recipe, runtime, max_bytes, clock = reader
    names = [*dict.fromkeys(columns.names), *columns_of_seams(documents)]
    seams: list[Ragged] = []
    values, sizes, bars, words = ([np.empty(0, kind)] for kind in (np.uint64, np.int64, np.int64, np.uint64))
    ids: list[pa.Array] = []
    by: list[pa.Array] = []
    ordering: dict[str, list[pa.Array]] = {name: [] for name in columns.order}
    counts = dict.fromkeys(("documents", "tokens", "text_bytes", "invalid_utf8", "null_text", "without_value"), 0)

    def tokenize(piece: SeamedPiece) -> _Tokenized:
        first, last = piece.span.first, piece.span.last
        text = text_of(piece.text, first, last)
        tokens, found = count_tokens(text, recipe, runtime.backend, piece.span.ids[first:last])
        tokens = to_host(tokens)
        bars = piece.bars(tokens, recipe, runtime.backend)
        return _Tokenized(piece.batch, last == len(piece.batch.text), tokens, found.invalid, bars, piece.seams)

    def add(batch: Batch) -> None:
        """Take over what is known of a batch besides its tokens."""
        ids.append(batch.ids)
        for name, values in ordering.items():
            values.append(batch.columns[name])
        if columns.by is not None and columns.by != FILE:
            by.append(as_text(batch.columns[columns.by], columns.by))
        if columns.within:
            own, missing = group_words([batch.columns[name] for name in columns.within], source, counts["documents"])
            words.append(own)
            counts["without_value"] += missing
        counts["documents"] += batch.num_rows
        counts["text_bytes"] += int(batch.text.offsets[-1] - batch.text.offsets[0])
        counts["null_text"] += batch.num_null

    with clock.stage("read"):
        batches = runtime.staged(documents.batches(columns=names, max_bytes=max_bytes))
        pieces = (SeamedPiece.of(batch, text, recipe) for batch, text in batches)
        for found in runtime.map(tokenize, pieces, lambda piece: begin_tokens(piece.text, recipe)):
            bars.append(found.bars + counts["tokens"])
            values.append(held(found.tokens.values))
            sizes.append(found.tokens.sizes)
            counts["tokens"] += len(found.tokens.values)
            counts["invalid_utf8"] += found.invalid
            if found.last:
                add(found.batch)
                seams += [] if found.seams is None else [found.seams]
                check_rows(counts["documents"], "documents")
                clock.report("read", counts["documents"], documents.num_rows)
    return TokenCorpus(
        tokens=Ragged._trusted(joined(values, give_back), np.append(0, np.cumsum(np.concatenate(sizes)))),
        bars=np.concatenate(bars),
        seams=joined_seams(seams, counts["documents"]),
        ids=ids_of(documents, ids),
        columns={name: pa.chunked_array(large_enough(*values)) for name, values in ordering.items() if values},
        categories=documents._orders_of(ordering),
        words=np.concatenate(words) if columns.within else None,
        values=[as_text(documents.places()[FILE], FILE)] if columns.by == FILE else by,
        counts=counts,
    )
