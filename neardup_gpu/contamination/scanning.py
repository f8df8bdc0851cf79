"""The training text, streamed: the runs of tokens that it shares with items, and where they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import common_runs
from neardup_gpu.kernels._launch import check_rows

from ..data import Ragged, Tokens, arrow, numpy_of, ranges
from ..documents.batches import some_rows
from ..documents.columns import CONTAMINATED, SEAMS
from ..documents.edits import Cuts, Edits
from ..documents.seams import SeamedPiece, columns_of_seams, joined_seams, new_seams, seams_as_text
from ..documents.stream import Batch, Documents
from ..engine.arrays import apart
from ..engine.choice import kernel, to_host
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..recipe import Recipe
from ..records import dataclass
from ..results.by_value import FILE, as_text
from ..stages import count_tokens, placed_text
from ..stages.conditions import group_words
from ..stages.sketching import text_hashes_of, text_of
from ..text.raw_text import UNIT_BYTES
from ..text.token_changes import begin_tokens
from .cutting import cut_spans, united
from .items import EvaluationItems, Wanted


class Hits(NamedTuple):
    """Runs that documents share with targets; arrays have a value per run.

    document : array of int64
        The number of the document in the batch, or in the input.
    target : array of int64
    place : array of int64
        The token of the target with which the run begins.
    length : array of int64
        Tokens.
    begin, end : arrays of int64
        The bytes of the text of the document.
    """

    document: np.ndarray
    target: np.ndarray
    place: np.ndarray
    length: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class Passage(NamedTuple):
    """A passage that a document shares with an item.

    set, item : int
    share : float
        The share of the item's tokens, with all its fields.
    run : int
        Tokens.
    id : int or str
        The document's.
    before, hit, after : bytes
        The text of the passage, and some text around it.
    """

    set: int
    item: int
    share: float
    run: int
    id: Any
    before: bytes
    hit: bytes
    after: bytes


SHOWN = 3
"""Items of each set that are shown with a passage."""

_AROUND, _LONGEST = 200, 2000
"""Bytes of a document that are shown before and after a passage, and of a passage."""


def best_passages(passages: Iterable[Passage]) -> list[Passage]:
    """Return, for each set, the items with the largest shares, each with its first passage of that share."""
    best: dict[tuple[int, int], Passage] = {}
    for each in passages:
        before = best.get((each.set, each.item))
        if before is None or each.share > before.share:
            best[each.set, each.item] = each
    chosen: dict[int, list[Passage]] = {}
    for each in sorted(best.values(), key=lambda each: (each.set, -each.share, each.item)):
        chosen.setdefault(each.set, []).append(each)
    return [each for some in chosen.values() for each in some[:SHOWN]]


class BatchHits(NamedTuple):
    """The hits of a batch, and the id of the document of each."""

    hits: Hits
    ids: pa.Array


COUNTS = (
    *("documents", "documents_hit", "tokens", "text_bytes", "invalid_utf8", "null_text", "emptied", "across_seams"),
    "without_value",
)
"""The counts of a scan: `emptied` are documents that cuts leave without tokens, `across_seams` runs that cuts make."""


@dataclass
class Findings:
    """Hold what a scan found in consecutive documents, which are numbered from 0.

    Parameters
    ----------
    counts : Counter
        The numbers that `COUNTS` names.
    listed : list of BatchHits
        By ascending document.
    spans : list of (documents, begins, ends)
        The bytes to cut or to mark, by ascending document.
    emptied : list of arrays
        Documents that cuts leave without tokens.
    seams : list of Ragged
        The bytes at which earlier runs cut each text; empty if the training text has no column of seams.
    passages : list of Passage
        The passages to show, by `best_passages`.
    values : list of pyarrow.Array
        The value of each document in the column that hits are counted by, as strings.
    """

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(COUNTS, 0)))
    listed: list[BatchHits] = field(default_factory=list)
    spans: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    emptied: list[np.ndarray] = field(default_factory=list)
    seams: list[Ragged] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    values: list[pa.Array] = field(default_factory=list)

    def add(self, more: Findings) -> None:
        """Add what was found in the documents that follow."""
        self.counts.update(more.counts)
        self.listed += more.listed
        self.spans += more.spans
        self.emptied += more.emptied
        self.seams += more.seams
        self.passages = best_passages([*self.passages, *more.passages])
        self.values += more.values

    def edits(self, action: str) -> Edits:
        """Return what becomes of each document. If no document was hit, `kept/` gets no column of seams."""
        keep = np.ones(self.counts["documents"], bool)
        for rows in self.emptied if action != "drop" else (each.hits.document for each in self.listed):
            keep[rows] = False
        if action == "drop":
            return Edits(keep)
        owner, begins, ends = (np.concatenate(arrays) for arrays in zip(NO_SPANS, *self.spans, strict=True))
        kept = keep[owner]
        cuts = Cuts(np.searchsorted(owner[kept], np.arange(len(keep) + 1)), begins[kept], ends[kept])
        if action == "mark":
            return Edits(keep, cuts, CONTAMINATED)
        if not self.counts["documents_hit"]:
            return Edits(keep, cuts)
        seams = seams_as_text(new_seams(cuts, joined_seams(self.seams, len(keep))))
        return Edits(keep, cuts, columns={SEAMS: seams})


@dataclass
class Scan:
    """The scan of a training text.

    Parameters
    ----------
    items : EvaluationItems
    wanted : Wanted
    recipe : Recipe
    action : str
        See `contaminated`.
    runtime : Runtime
    clock : Clock
    by : str, default None
        The column, or "file", that hits are counted by.
    within : sequence of str, default ()
        Columns. Documents are compared with items of equal values only.

    Attributes
    ----------
    listed : Listed
        The rows to look for, as the kernel takes them.
    """

    items: EvaluationItems
    wanted: Wanted
    recipe: Recipe
    action: str
    runtime: Runtime
    clock: Clock
    by: str | None = None
    within: Sequence[str] = ()
    listed: common_runs.Listed = field(init=False)

    def __post_init__(self) -> None:
        wanted = self.wanted
        listed = common_runs.prepare(wanted.tokens, wanted.offsets, wanted.widths[wanted.target_of])
        self.listed = listed.on_device() if self.runtime.backend == "gpu" else listed

    def run(
        self,
        documents: Documents,
        max_bytes: int | None,
        texts: Callable[[Any], object],
        only: pa.Array | None = None,
    ) -> Findings:
        """Look through all documents, or only those with some ids.

        Parameters
        ----------
        documents : Documents
        max_bytes : int or None
            Bytes of text that are read at once.
        texts : callable
            Called with the fingerprints of consecutive texts, in their order: arrays of uint64.
        only : pyarrow.Array, default None
            The ids of the documents to look through; None for all.
        """
        findings = Findings()
        most = self.runtime.batch_bytes("set", 0) if max_bytes is None else max_bytes
        begin = lambda piece: begin_tokens(piece.text, self.recipe)  # noqa: E731
        for found, fingerprints in self.runtime.map(self._search, self._pieces(documents, most, only), begin):
            texts(fingerprints)
            findings.add(found)
            check_rows(findings.counts["documents"], "documents")
            self.clock.report("search", findings.counts["documents"], documents.num_rows)
        if self.by == FILE:
            findings.values = [as_text(documents.places()[FILE], FILE)]
        return findings

    @property
    def _counted(self) -> list[str]:
        """The column that hits are counted by, if there is one."""
        return [] if self.by in (None, FILE) else [self.by]

    def _pieces(self, documents: Documents, most: int, only: pa.Array | None) -> Iterator[SeamedPiece]:
        names = [*dict.fromkeys([*self._counted, *self.within, *columns_of_seams(documents)])]
        batches = documents.batches(names, max_bytes=most)
        for batch, text in self.runtime.staged(batches if only is None else _some(batches, only)):
            yield SeamedPiece.of(batch, text, self.recipe)

    def _search(self, piece: SeamedPiece) -> tuple[Findings, np.ndarray]:
        """Look through some documents; has no effect on the scan. Return the fingerprints of their texts, too."""
        batch, first, last = piece.batch, piece.span.first, piece.span.last
        backend = "cpu" if self.runtime.backend == "gpu" else self.runtime.backend
        names = piece.span.ids[first:last]
        own = text_of(piece.text, first, last)
        tokens, counts = count_tokens(own, self.recipe, self.runtime.backend, names)
        bars = piece.bars(tokens, self.recipe, self.runtime.backend)
        words, missing = self._words(piece)
        if len(words):
            apart(tokens, words)
        runs, texts = self._runs(tokens, bars), to_host(text_hashes_of(own, self.recipe, self.runtime.backend))
        tokens, found = to_host(tokens), Findings()
        found.counts.update(tokens=len(tokens.values), invalid_utf8=counts.invalid, without_value=missing)
        if last == len(batch.text):  # these are the last documents of the batch
            size = int(batch.text.offsets[-1] - batch.text.offsets[0])
            found.counts.update(documents=batch.num_rows, text_bytes=size, null_text=batch.num_null)
            found.seams += [] if piece.seams is None else [piece.seams]
            found.values += [as_text(batch.columns[name], name) for name in self._counted]
        if len(runs[0]) == 0:
            return found, texts
        document = np.searchsorted(tokens.offsets, runs[0], side="right") - 1
        having, which = np.unique(document, return_inverse=True)
        text = some_rows(batch.text, having + first)
        text, placed = placed_text(text, self.recipe, backend, names.take(arrow(having)))
        begin = placed.offsets[which] + runs[0] - tokens.offsets[document]
        hits = self._hits(having[which] + first, runs, begin, text, placed)
        owner = np.searchsorted(tokens.offsets, bars, side="right") - 1  # the document of each bar
        bars, owner = (each[np.isin(owner, having)] for each in (bars, owner))  # those of the placed documents
        bars = placed.offsets[np.searchsorted(having, owner)] + bars - tokens.offsets[owner]
        words = words[having] if len(words) else words
        spans, emptied, across = self._edits(having + first, text, placed, bars, (which, begin, begin + runs[2]), words)
        found.counts.update(documents_hit=len(having), emptied=len(emptied), across_seams=across)
        numbered = hits._replace(document=hits.document + batch.first_row)
        found.listed.append(BatchHits(numbered, batch.ids.take(arrow(hits.document))))
        found.passages = self._passages(hits, batch)
        found.spans.append((spans[0] + batch.first_row, *spans[1:]))
        found.emptied.append(emptied + batch.first_row)
        return found, texts

    def _words(self, piece: SeamedPiece) -> tuple[np.ndarray, int]:
        """Return the group word of each document of a piece, if `within` divides them, and how many have no value."""
        if not self.within:
            return np.empty(0, np.uint64), 0
        first, last = piece.span.first, piece.span.last
        columns = [piece.batch.columns[name].slice(first, last - first) for name in self.within]
        return group_words(columns, 0, piece.batch.first_row + first)

    def _runs(self, tokens: Ragged, bars: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the runs that documents share with the rows to look for; see kernels/common_runs.py.

        No run crosses a bar: for the kernel, documents are several there.
        """
        offsets = np.union1d(to_host(tokens.offsets), bars) if len(bars) else tokens.offsets
        found = kernel(common_runs, self.runtime.backend)(tokens.values, offsets, self.listed)
        return tuple(map(to_host, found))

    def _hits(
        self,
        document: np.ndarray,
        runs: tuple[np.ndarray, ...],
        begin: np.ndarray,
        text: Ragged,
        placed: Tokens,
    ) -> Hits:
        """Return the hits of runs in rows, and in the fields of items that these are parts of.

        `begin` says which of the placed tokens each run begins with.
        """
        _, position, length = runs
        rows = np.searchsorted(self.wanted.offsets, position, side="right") - 1
        target, place = self.wanted.target_of[rows], position - self.wanted.offsets[rows]
        shift = np.zeros(len(rows), np.int64)
        run = np.arange(len(rows))
        targets, items = self.items.targets, self.items
        item = targets.item[target]
        is_whole = target == items.first_target[item]
        number = np.where(is_whole, items.first_target[item + 1] - items.first_target[item] - 1, 0)
        inner, of = ranges(target + 1, number), np.repeat(run, number)  # the fields of items, where the item was found
        offset = targets.begin[inner] - targets.begin[target[of]]
        low = np.maximum(place[of], offset)
        high = np.minimum(place[of] + length[of], offset + targets.size[inner])
        long = (high - low >= self.wanted.widths[inner]) & (targets.size[inner] >= self.recipe.shingles.size)
        inner, of, offset, low, high = (each[long] for each in (inner, of, offset, low, high))
        run = np.concatenate([run, of])
        shift = np.concatenate([shift, low - place[of]])
        target = np.concatenate([target, inner])
        place = np.concatenate([place, low - offset])
        length = np.concatenate([length, high - low])
        start = begin[run] + shift
        before = text.offsets[np.searchsorted(placed.offsets, start, side="right") - 1]
        found = Hits(
            document[run],
            target,
            place,
            length,
            placed.begins[start] - before,
            placed.ends[start + length - 1] - before,
        )
        order = np.lexsort((found.end, found.target, found.begin, found.document))
        return Hits(*(each[order] for each in found))

    def _passages(self, hits: Hits, batch: Batch) -> list[Passage]:
        """Return the passages to show among hits in items with all their fields."""
        targets = self.items.targets
        whole = np.flatnonzero(hits.target == self.items.first_target[targets.item[hits.target]])
        item = targets.item[hits.target[whole]]
        share = hits.length[whole] / targets.size[hits.target[whole]]
        order = np.lexsort((whole, -share, item))
        order = order[np.append(True, np.diff(item[order]) > 0)[: len(order)]]  # the best one of each item
        of = self.items.set_of[item[order]]
        order = order[np.lexsort((item[order], -share[order], of))]
        of = np.sort(of)
        chosen = order[np.arange(len(of)) - np.searchsorted(of, of) < SHOWN]
        return [self._passage(hits, batch, int(whole[place]), float(share[place])) for place in chosen.tolist()]

    def _passage(self, hits: Hits, batch: Batch, hit: int, share: float) -> Passage:
        row, begin, end = (int(each[hit]) for each in (hits.document, hits.begin, hits.end))
        item, text = int(self.items.targets.item[hits.target[hit]]), batch.text[row]
        unit = UNIT_BYTES[self.recipe.shingles.token_kind.holds]

        def part(begin: int, end: int) -> bytes:
            return text[unit * begin : unit * end].tobytes()

        return Passage(
            set=int(self.items.set_of[item]),
            item=item,
            share=share,
            run=int(hits.length[hit]),
            id=batch.ids[row].as_py(),
            before=part(max(0, begin - _AROUND), begin),
            hit=part(begin, min(end, begin + _LONGEST)),
            after=part(end, end + _AROUND),
        )

    def _edits(
        self,
        rows: np.ndarray,
        text: Ragged,
        placed: Tokens,
        bars: np.ndarray,
        found: tuple[np.ndarray, ...],
        words: np.ndarray,
    ) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, int]:
        """Return the bytes to cut or to mark, the documents that cuts leave without tokens, and the runs across seams.

        All runs in the tokens that are left lie across new seams, because every other run was cut.

        Parameters
        ----------
        rows : array of int64
            The documents in the batch.
        text : Ragged of uint8, or of int64
        placed : Tokens
        bars : array of int64
            The tokens before which an earlier seam lies.
        found : documents, begins, ends
            The runs, by their tokens.
        words : array of uint64
            The group word of each document, if `within` divides them.
        """
        if self.action not in ("cut", "mark"):
            return NO_SPANS, _NOTHING, 0
        owner, begin, end = united(*found)
        if self.action == "cut":
            owner, low, high, stays = cut_spans(text, placed, self.recipe, (owner, begin, end))
            before = np.append(0, np.cumsum(stays))
            left = Ragged._trusted(placed.values[stays], before[placed.offsets])
            if len(words):
                apart(left, words)
            return (rows[owner], low, high), rows[left.sizes == 0], len(self._runs(left, before[bars])[0])
        before = text.offsets[owner]
        return (rows[owner], placed.begins[begin] - before, placed.ends[end - 1] - before), _NOTHING, 0


_NOTHING = np.empty(0, np.int64)
NO_SPANS = _NOTHING, _NOTHING, _NOTHING
NO_HITS = Hits(*[_NOTHING] * 6)


def _some(batches: Iterator[Batch], ids: pa.Array) -> Iterator[Batch]:
    """Yield the documents with some ids; batches without any of them are left out."""
    for batch in batches:
        rows = np.flatnonzero(numpy_of(pc.is_in(batch.ids, ids.cast(batch.ids.type))))
        if len(rows):
            columns = {name: column.take(arrow(rows)) for name, column in batch.columns.items()}
            yield replace(batch, ids=batch.ids.take(arrow(rows)), text=some_rows(batch.text, rows), columns=columns)
