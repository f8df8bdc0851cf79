"""Equal units in memory: with a threshold of 1, only hashes of units, their owners and their places are needed.

Units of the same words are a group, and the one of best priority is the source of the others. So nothing is compared,
and a further copy of a unit takes 16 bytes until it is decided about: the number of its group, its place in the
narrowest integers that hold it, and whether its text is that of its source, which is a fingerprint of 8 bytes unless
the first document has the best priority. Afterwards it takes 22 bytes, with the span that is cut. Everything else is
computed block by block, where a block is the units of one batch of documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from ..documents.edits import Cuts, Edits
from ..documents.units import (
    NO_REASON,
    Fates,
    Places,
    UnitDecisions,
    are_repeats,
    fates_of,
    keep_apart,
    spared_copies,
)
from ..engine.processors import own_threads
from ..kernels import identical
from ..recipe import Recipe
from ..records import dataclass
from ..text.unit_options import Unit

AT_ONCE = 1 << 20
"""Units whose hashes wait until they are put into groups, at least."""

_NUMBER = np.int64(2**32 - 1)
"""The number of a unit in its document is in these bits of the word that gives its priority."""


def _narrow(values: np.ndarray, *kinds: type) -> np.ndarray:
    """Return integers that are not negative in the first type that holds them all; as they are, if none does."""
    most = int(values.max()) if len(values) else 0
    kind = next((kind for kind in kinds if most <= np.iinfo(kind).max), None)
    return values if kind is None else values.astype(kind)


@dataclass
class UnitBlock:
    """The units of consecutive documents.

    first : int
        The number of the first document.
    first_unit : array of int32 or int64, shape (documents + 1,)
        Where the units of each document begin in the block.
    places : tuple of arrays
        The fields of `Places` but the owner; only begin and end once the block is decided about.
    groups : array of int32
    texts : array of uint64, or None
        A fingerprint of the text of each unit; None once `same_text` is known.
    same_text : array of bool, or None
        Whether each unit has the text of its source.
    repeats : array of bool, or None
        Which units repeat their source; of a block of the input that is decided about.
    reason, kept : arrays of int8 and bool, or None
        See `documents.units.Fates`; None until the block is decided about.
    """

    first: int
    first_unit: np.ndarray
    places: tuple[np.ndarray, ...]
    groups: np.ndarray
    texts: np.ndarray | None
    same_text: np.ndarray | None = None
    repeats: np.ndarray | None = None
    reason: np.ndarray | None = None
    kept: np.ndarray | None = None

    @property
    def num_documents(self) -> int:
        return len(self.first_unit) - 1

    @property
    def owner(self) -> np.ndarray:
        """The document of each unit, by its number in the block: int64."""
        return np.repeat(np.arange(self.num_documents), np.diff(self.first_unit))

    def compare_texts(self, texts: np.ndarray) -> None:
        """Note which units have the text of their source; `texts` has the fingerprint of each source."""
        if self.texts is not None:
            self.same_text, self.texts = self.texts == texts[self.groups], None

    def all_places(self) -> Places:
        """Return where the units are, as other stages take it; without what divides units, if that was dropped."""
        begin, end, *rest = self.places
        before, after, marks = rest or (np.zeros(len(begin), np.uint8) for _ in range(3))
        return Places(
            owner=self.owner,
            begin=begin.astype(np.int64),
            end=end.astype(np.int64),
            before=before.astype(np.int32),
            after=after.astype(np.int32),
            marks=marks,
        )


class EqualFates(NamedTuple):
    """The decisions about documents that are divided into units, and about equal units.

    documents : Fates
        Those of the documents of the input. The arrays of units have a value for each unit that is listed and kept,
        so that they can be counted, and `first` is -1.
    first_source : array of int64
        The document that has the source of the first cut unit of each document that is dropped, else -1.
    """

    documents: Fates
    first_source: np.ndarray


class EqualUnits:
    """The units of all documents, those of a reference set first.

    Units are added batch by batch, then documents are decided about, and then tables are made.

    Parameters
    ----------
    in_order : bool
        Whether documents have the best priority in the order in which they are added.
    """

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._texts = np.empty(0, np.uint64)
        self.blocks: list[UnitBlock] = []
        self.num_units = self.num_documents = self.num_known = 0
        self.tokens = np.empty(0, np.int64)
        self._known = np.empty((0, 2), np.uint64)
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._waiting: list[tuple[UnitBlock, np.ndarray, np.ndarray]] = []
        self._num_waiting = 0
        self._best = self._sizes = np.empty(0, np.int64)
        self._order, self._is_twice = np.empty(0, np.int64), False

    # ------------------------------------------------------------------------------------------------- units are added

    def add(self, hashes: np.ndarray, texts: np.ndarray, num_tokens: np.ndarray) -> None:
        """Add some units of a batch: hashes of their words, shape (units, 2), and of their texts; and their tokens."""
        self._parts.append((hashes, texts, num_tokens))
        self.num_units += len(num_tokens)

    def end_batch(self, places: Places, num_documents: int) -> np.ndarray:
        """End a batch, whose units have been added; returns the number of tokens of each document."""
        if len(self._parts) == 1:
            ((hashes, texts, tokens),) = self._parts
            texts = texts if texts.base is None else texts.copy()  # which may keep hashes in memory
        else:
            nothing = np.empty((0, 2), np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64)
            hashes, texts, tokens = (np.concatenate(each) for each in zip(nothing, *self._parts, strict=True))
        self._parts = []
        first_unit = np.searchsorted(places.owner, np.arange(num_documents + 1))
        bytes_of = (_narrow(each, np.int32) for each in (places.begin, places.end))
        between = (_narrow(each, np.uint8, np.uint16) for each in (places.before, places.after))
        block = UnitBlock(
            self.num_documents,
            _narrow(first_unit, np.int32),
            (*bytes_of, *between, places.marks),
            np.empty(0, np.int32),
            texts,
        )
        self.blocks.append(block)
        self.num_documents += num_documents
        self._waiting.append((block, hashes, tokens))
        self._num_waiting += len(tokens)
        if self._num_waiting >= max(AT_ONCE, len(self._known)):
            self._settle()
        return np.bincount(places.owner, tokens, num_documents).astype(np.int64)

    def end_reference(self) -> None:
        """Note that all documents so far are of the reference set."""
        self.num_known = self.num_documents

    def _settle(self) -> None:
        """Put the units that wait into groups."""
        hashes = np.concatenate([self._known, *(each for _, each, _ in self._waiting)])
        first = identical.cpu(hashes)
        is_first = np.zeros(len(hashes), bool)
        is_first[first] = True
        groups = np.cumsum(is_first, dtype=np.int32)[first]
        groups -= 1
        start = number = len(self._known)
        new = np.flatnonzero(is_first[number:])
        tokens = np.concatenate([each for *_, each in self._waiting] or [self.tokens])
        if self._in_order:
            texts = [block.texts for block, *_ in self._waiting if block.texts is not None]
            self._texts = np.concatenate([self._texts, np.concatenate([self._texts[:0], *texts])[new]])
        for block, mine, _ in self._waiting:
            block.groups = groups[start : start + len(mine)].copy()
            start += len(mine)
            if self._in_order:
                block.compare_texts(self._texts)
        self.tokens = np.concatenate([self.tokens, tokens[new]])
        self._known = hashes[np.flatnonzero(is_first)]
        self._waiting, self._num_waiting = [], 0

    # ------------------------------------------------------------------------------------------------- they are decided

    def decide(self, order: np.ndarray, recipe: Recipe) -> EqualFates:
        """Decide about all units and documents.

        Parameters
        ----------
        order : array of int64
            All documents, from the best priority to the worst; those of the reference set come first. Documents of the
            input may be there twice, as in `priority.documents_by_priority`.
        recipe : Recipe
        """
        if self._waiting:
            self._settle()
        self._known = np.empty((0, 2), np.uint64)
        unit, number, known = recipe.unit, len(self.tokens), self.num_known
        self._is_twice = len(order) > self.num_documents
        self._order = np.where(order < self.num_documents, order, order - (self.num_documents - known))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        self._best, self._sizes = np.full(number, np.iinfo(np.int64).max), np.zeros(number, np.int64)
        for block in self.blocks:
            np.minimum.at(self._best, block.groups, self._words(block, rank))
            if block.first >= self.num_known:
                np.add.at(self._sizes, block.groups, 1)
        texts, is_named = np.zeros(number, np.uint64), np.zeros(number, bool)
        again: list[tuple[np.ndarray, ...]] = []
        for block in self.blocks:
            words, best = self._words(block, rank), self._best[block.groups]
            is_source = words == best
            if block.texts is not None:
                texts[block.groups[is_source]] = block.texts[is_source]
            if block.first < known:
                block.texts, block.places = None, block.places[:2]
                continue
            repeats = block.repeats = self._repeats(block, words, best, recipe)
            is_named[block.groups[repeats]] = True
            if unit.keep_copies > 1 and not unit.overlaps:
                holder = words[repeats] if unit.inside else self._holders(words[repeats])
                again.append((best[repeats], holder, words[repeats]))
        named = np.zeros(self.num_documents, bool)
        named[self._order[self._best[is_named] >> 32]] = True
        sizes = [0 if block.repeats is None else int(block.repeats.sum()) for block in self.of_input]
        parts = np.split(_spared(again, unit), np.cumsum(sizes)[:-1]) if again else [None] * len(sizes)
        kind = np.result_type(np.int32, *(block.places[1] for block in self.of_input))
        fates, first, listed, cuts = [], [np.empty(0, np.int64)], 0, _JoinedCuts(sum(sizes), kind)
        with ThreadPoolExecutor(own_threads(), "neardup-units") as threads:
            for found, sources, number in threads.map(partial(self._fates, texts, named, recipe), self.of_input, parts):
                assert found.edits.cuts is not None
                cuts.add(found.edits.cuts)
                fates.append(found._replace(edits=Edits(found.kept)))
                first.append(sources)
                listed += number
                del found
        return EqualFates(_joined(fates, cuts.joined(), listed), np.concatenate(first))

    def _fates(
        self, texts: np.ndarray, named: np.ndarray, recipe: Recipe, block: UnitBlock, spared: np.ndarray | None
    ) -> tuple[Fates, np.ndarray, int]:
        """Decide about the documents of a block: return `Fates`, `first_source` and the number of listed units."""
        block.compare_texts(texts)
        assert block.repeats is not None and block.same_text is not None
        kind = np.where(block.same_text, 0, 1).astype(np.int8)
        mine = np.empty(0, np.int64) if spared is None else np.flatnonzero(block.repeats)[spared]
        of_block = named[block.first : block.first + block.num_documents]
        decided = UnitDecisions(block.repeats, kind, self.tokens[block.groups], mine, of_block)
        found = fates_of(block.all_places(), decided, recipe)
        block.reason, block.kept, block.same_text = found.reason, found.unit_kept, None
        block.places = block.places[:2]
        there, first = found.first >= 0, np.full(block.num_documents, -1)
        first[there] = self._order[self._best[block.groups[found.first[there]]] >> 32]
        listed = int(np.count_nonzero((found.reason != NO_REASON) & found.unit_kept))
        assert found.edits.cuts is not None
        offsets, *spans = found.edits.cuts
        cuts = Cuts(offsets, *(_narrow(each, np.int32) for each in spans))
        nothing = found._replace(reason=found.reason[:0].copy(), unit_kept=found.unit_kept[:0].copy())
        return nothing._replace(edits=Edits(found.kept, cuts)), first, listed

    def num_compared(self, min_words: int) -> int:
        """Return the number of groups of units with enough tokens."""
        return int(np.count_nonzero(self.tokens >= min_words))

    @property
    def of_input(self) -> list[UnitBlock]:
        """The blocks of the input."""
        return [block for block in self.blocks if block.first >= self.num_known]

    def _words(self, block: UnitBlock, rank: np.ndarray) -> np.ndarray:
        """Return a word for each unit that gives its priority: the rank of its document, and its number there."""
        documents = np.arange(block.first, block.first + block.num_documents)
        words = np.repeat((rank[documents] << 32) - block.first_unit[:-1], np.diff(block.first_unit))
        words += np.arange(len(words))
        if self._is_twice and block.first >= self.num_known:
            places = block.all_places()
            apart = np.flatnonzero(keep_apart(places))
            mine = documents[places.owner[apart]]
            words[apart] += (rank[mine + (self.num_documents - self.num_known)] - rank[mine]) << 32
        return words

    def _holders(self, words: np.ndarray) -> np.ndarray:
        """Return a number for the document of each word that `_words` returns."""
        return self._order[words >> 32] if self._is_twice else words >> 32

    def _repeats(self, block: UnitBlock, words: np.ndarray, best: np.ndarray, recipe: Recipe) -> np.ndarray:
        """Return which units of the input repeat their source; both are given by the words of their priority."""
        has_source = (words != best) & (self.tokens[block.groups] >= recipe.unit.min_words)
        if recipe.only_against:
            has_source &= best >> 32 < self.num_known
        is_same = self._holders(words) == self._holders(best)
        return are_repeats(recipe.unit, has_source, np.zeros(len(words), np.int8), is_same)

    # ------------------------------------------------------------------------------------------------ tables are made

    def decided_blocks(self, recipe: Recipe) -> Iterator[tuple[UnitBlock, DecidedUnits]]:
        """Yield the blocks of the input, and what their units repeat."""
        for block in self.of_input:
            best = self._best[block.groups]
            alone = self.tokens[block.groups] < recipe.unit.min_words
            is_known = (best >> 32 < self.num_known) & ~alone
            copies = self._sizes[block.groups] + is_known
            copies[alone | (~is_known & recipe.only_against)] = 1
            assert block.repeats is not None
            yield block, DecidedUnits(block.repeats, self._order[best >> 32], best & _NUMBER, copies, is_known)


class DecidedUnits(NamedTuple):
    """The sources of the units of a block: arrays with a value per unit.

    repeats : array of bool
    document, number : arrays of int64
        The document of the source, and the number of the source there.
    copies : array of int64
        The number of units that have the same source, and the source.
    is_known : array of bool
        Whether the source is of the reference set.
    """

    repeats: np.ndarray
    document: np.ndarray
    number: np.ndarray
    copies: np.ndarray
    is_known: np.ndarray


def _spared(again: list[tuple[np.ndarray, ...]], unit: Unit) -> np.ndarray:
    """Return which repeats are kept as copies: bool, for the repeats of all blocks; empty if none is."""
    if not again:
        return np.empty(0, bool)
    source, holder, words = (np.concatenate(each) for each in zip(*again, strict=True))
    spared = np.zeros(len(source), bool)
    spared[spared_copies(source, holder, words, unit)] = True
    return spared


class _JoinedCuts:
    """The cuts of all blocks, which are added one after another, so that none is held twice.

    Parameters
    ----------
    most : int
        Maximum number of spans. Memory is taken for those that are added.
    kind : dtype
        The type of the places.
    """

    def __init__(self, most: int, kind: np.dtype) -> None:
        self._offsets, self._number = [np.zeros(1, np.int64)], 0
        self._spans = np.empty(most, kind), np.empty(most, kind)

    def add(self, cuts: Cuts) -> None:
        """Add the cuts of the next documents."""
        self._offsets.append(cuts.offsets[1:] + self._number)
        stop = self._number + len(cuts.begins)
        for joined, spans in zip(self._spans, (cuts.begins, cuts.ends), strict=True):
            joined[self._number : stop] = spans
        self._number = stop

    def joined(self) -> Cuts:
        """Return the cuts of all documents."""
        return Cuts(np.concatenate(self._offsets), *(spans[: self._number] for spans in self._spans))


def _joined(fates: list[Fates], cuts: Cuts, listed: int) -> Fates:
    """Return the decisions about the documents of all blocks as one, with the cuts of all blocks; `listed` is the
    length of the arrays of units."""

    def all_of(name: str, kind: type) -> np.ndarray:
        return np.concatenate([np.empty(0, kind), *(getattr(each, name) for each in fates)])

    kept = all_of("kept", bool)
    return Fates(
        num_units=all_of("num_units", np.int64),
        num_cut=all_of("num_cut", np.int64),
        num_tokens=all_of("num_tokens", np.int64),
        num_left=all_of("num_left", np.int64),
        kept=kept,
        is_source=all_of("is_source", bool),
        first=np.full(len(kept), -1),
        edits=Edits(kept, cuts),
        reason=np.broadcast_to(np.int8(0), listed),
        unit_kept=np.broadcast_to(np.True_, listed),
    )
