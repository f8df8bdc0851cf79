"""The exact join by tasks: shingles are counted slice by slice of the documents, and meet range by range of shingles.

    Counter     makes a table of counters for each slice; `merged` is that of all slices
    slots       stand for the table of a slice that would be mostly empty; `with_slots` counts them
    postings    the postings of the documents of a slice, to be divided into ranges by their shingles; for containment
                once more, when `merged_marks` says which shingles are in a prefix of some document
    collide     of all postings of a range, the pairs that meet, and the ranks of documents that are *crowded*

A run, the postings of one shingle, may be as long as the corpus: its pairs are too many to be listed. So in a range
only short runs are looked through. Documents of the others are crowded; in the end all crowded documents are joined
with one another as in memory, by `neardup_gpu.stages.joining.build_index` with them for `members`, and
`partners.find_partners`, which find of a crowd only the pairs that matter.

**No pair at the threshold is lost**: it is listed by a range, or both of its documents are crowded.

Proof. Let two documents reach the threshold, and x be the first shingle that both have, in the order by (count,
shingle). There is one order for all slices, as all use the merged table; and no count in it is too low (`merged`), so
both documents have a posting of x by the lemma of `neardup_gpu.theory.prefix_filter`: one of them in its short prefix,
or by containment the worse one in its prefix and the better one wherever it has x. A range has all postings of its
shingles, so it has the run of x with both entries.

1. The run is long, or in a part of the range that is not sorted at all: all its documents are crowded, both of them.
2. The run is short. Then the worse document, unless it is one of the reference set, as then both are and there is no
   pair, asks for all better ones in its short runs. What else the kernel knows of a pair is the sizes of both sets and
   both places of x, whole numbers that hold for all runs, and by the lemma they leave room for a pair at the threshold
   (`kernels/setjoin.py`), as do the bitmaps. Where a document of the reference set is to be contained in one of the
   input, the first one has x in its prefix and asks for the other one, in the same way. The kernel keeps no count of
   common shingles from one run to the next, so other runs, missing or not, have no part in it. The pair is found, and
   listed unless both documents are crowded.

So each shingle stands for itself, and how they are divided into ranges, and these into parts, changes only how often a
pair is listed and who is crowded. A pair is listed once by a part, but may be listed by several ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import bitmaps, rarity, runs as runs_kernel
from neardup_gpu.kernels._sort import in_order
from neardup_gpu.kernels.bitmaps import num_words
from neardup_gpu.kernels.prefixes import LONG, PLACE_BITS
from neardup_gpu.kernels.setjoin import WIDTH_BITS

from ..data import Ragged, run_begins, runs_of
from ..engine.arrays import concat_and_clear
from ..engine.choice import kernel
from ..engine.pieces import Span
from ..stages.joining import (
    LISTED,
    Joiner,
    KnownSets,
    PostingsIndex,
    meet,
    meetings,
    postings_of,
    rows_of_entries,
)
from ..stages.partners import MOST_ASKED
from .colliding import FoundPairs
from .columns import SLOT_BITS, partition_of, parts_that_fit
from .deciding import renumbered

if TYPE_CHECKING:
    from ..engine.contract import Runtime

LONG_RUN = 128
"""A run is long if each of its entries meets more than 128 others on average. Half of them are better: 64, the default
of `max_partners`. So a short run lists few more pairs than the result does."""

POSTING_BYTES = 128
"""Memory that a posting takes at most while the runs of a range are made."""

BITMAP_BYTES = 64
"""Memory that a posting takes while the bitmaps of a range that does not fit are put together. Then they take half."""

LISTED_BYTES = 64
"""Memory that a place in a list of candidates takes, and a candidate until it is handed on; see `joining.LISTED`."""

SLOT_BYTES = 4
"""Memory of a shingle while the number of its counter waits to be counted."""

BLOCK = 1 << 16
"""Counters that are added at a time, in a core's cache."""

Table = tuple[Any, Any]
"""(counters, beyond) of `kernels/rarity.py`."""


class Posted(NamedTuple):
    """Postings, in host memory: arrays of one length, 32 bytes for each posting.

    Parameters
    ----------
    shingle : array of uint64
    rank : array of int64
        Whose it is.
    place : array of uint32
        Place of the shingle in the order of the document's, from 0; 2**31 more if it is in the long prefix alone.
    size : array of int32
        Distinct shingles of the document.
    bits : array of uint64
        A word of the document's bitmap, which is folded to as many words as the document has postings in the range, or
        fewer: the postings of a document in a range have its words in turn. So bitmaps take no bytes of their own, and
        a document that meets many others has a long one. Postings of containers have a bitmap of their own.
    """

    shingle: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    size: np.ndarray
    bits: np.ndarray

    def where(self, chosen: Any) -> Posted:
        """Some of them: a bool for each, their numbers, or a slice."""
        return Posted(*(array[chosen] for array in self))


POSTED_TYPES = (np.uint64, np.int64, np.uint32, np.int32, np.uint64)
"""The types of the arrays of `Posted`."""


NO_RANKS = np.empty(0, np.int64)


class Counter:
    """Counts the shingles of a slice as they come.

    Parameters
    ----------
    bits : int
        As `joining.table_bits` says, from the number of all shingles: one number for all slices.
    runtime : Runtime
    """

    def __init__(self, bits: int, runtime: Runtime) -> None:
        self._bits, self._runtime, self._rarity = bits, runtime, kernel(rarity, runtime.backend)
        self._table = self._rarity(np.empty(0, np.uint64), bits)

    def add(self, shingles: Ragged) -> None:
        """Count the shingles of some documents, in any order and with repeats.

        To count documents that are not joined in the end costs time, never a pair.
        """
        for part in _parts(shingles, self._runtime):  # counts that are too large, if called again, cost time alone
            values = _values(_rows(shingles, part))
            self._table = self._runtime.run(self._rarity, values, self._bits, self._table)

    @property
    def table(self) -> Table:
        """Counters, uint8 of shape (2**bits,), and beyond, uint32 of shape (2**(bits - 6),), in host memory.

        See `kernels/rarity.py`.
        """
        return self._runtime.fetch(self._table[0]), self._runtime.fetch(self._table[1])


def in_table(num_shingles: int, bits: int) -> bool:
    """Return whether the counters of a slice take less memory than the numbers of the counters of its shingles."""
    return SLOT_BYTES * num_shingles > 1 << bits


def slots(shingles: Ragged, bits: int) -> np.ndarray:
    """The number of the counter of each shingle, in host memory and with repeats: uint32."""
    return (_values(shingles) >> np.uint64(64 - bits)).astype(np.uint32)


def no_counters(width: int) -> Table:
    """Return an empty table, or a part of a table, with `width` counters."""
    return np.zeros(width, np.uint8), np.zeros(width >> rarity.SHARED_BITS, np.uint32)


def with_slots(table: Table, slots: Iterable[np.ndarray], backend: str) -> Table:
    """Count further shingles in a table or a part of it, and return the table. The given one may be overwritten.

    Parameters
    ----------
    table : (counters, beyond)
    slots : iterable of arrays of uint32
        Numbers of counters, from 0 for the first one of the part.
    backend : "cpu" or "reference"
    """
    width = len(table[0])
    bits = max(width.bit_length() - 1, rarity.FEWEST_BITS)
    counters, beyond = table
    if width < 1 << bits:
        counters, beyond = no_counters(1 << bits)
        counters[:width], beyond[: width >> rarity.SHARED_BITS] = table
    for some in slots:
        values = some.astype(np.uint64) << np.uint64(64 - bits)
        counters, beyond = kernel(rarity, backend)(values, bits, (counters, beyond))
    return counters[:width], beyond[: width >> rarity.SHARED_BITS]


def merged(tables: Iterable[Table]) -> Table:
    """The table of all slices: what `Counter` makes of all their shingles together, bit for bit.

    A counter that is not full, 255, has all of its count in itself. So the sum of two slices' counters, up to 255, and
    what is above it added to what either has beyond, are what counting on would have made of them; only where what is
    beyond passes 2**32 - 1 does it stop there. A count is never too low by it.

    Parameters
    ----------
    tables : iterable of (counters, beyond)
        At least one; of the same length each, a multiple of 64. They may be the same part of all tables. Two are held
        at a time.
    """
    remaining = iter(tables)
    counters, beyond = (np.array(array) for array in next(remaining))
    for more, more_beyond in remaining:
        _cap_sum(beyond, more_beyond)
        for first in range(0, len(counters), BLOCK):
            some, others = counters[first : first + BLOCK], more[first : first + BLOCK]
            some += others
            if (some < others).any():
                _carry(some, others, beyond[first >> rarity.SHARED_BITS :])
    return counters, beyond


def _cap_sum(beyond: np.ndarray, more: Any) -> None:
    """Add counts of uint32 in place; what would pass 2**32 - 1 stops there."""
    beyond += more
    beyond[beyond < more] = np.uint32(2**32 - 1)


def _carry(sums: np.ndarray, others: np.ndarray, beyond: np.ndarray) -> None:
    """Let sums of counters that passed 255 stop there, and add what is above it to `beyond`."""
    passed = np.flatnonzero(sums < others)
    above = (sums[passed] + 1).astype(np.uint32)  # a sum that wrapped is 256 too small
    words, starts = np.unique(passed >> rarity.SHARED_BITS, return_index=True)
    sums[passed] = rarity.MOST
    of_words = beyond[words]
    _cap_sum(of_words, np.add.reduceat(above, starts))
    beyond[words] = of_words


def merged_marks(marks: Iterable[np.ndarray]) -> np.ndarray:
    """Merge the marks of at least one slice, of parts of slices, or of packed bits."""
    remaining = iter(marks)
    found = np.array(next(remaining))
    for more in remaining:
        found |= more
    return found


def postings(
    shingles: Ragged, ranks: np.ndarray, table: Table, join: Joiner, ranges: int, marks: Any = None
) -> tuple[np.ndarray, Posted]:
    """Return the postings of some documents, and the range of each, of `ranges` ranges; see `postings_of`.

    Parameters
    ----------
    shingles : Ragged of uint64
        Shingles of each document, in any order and with repeats; by a directed measure as sets, ascending.
    ranks : array of int64, shape (documents,)
        The rank of each.
    table : (counters, beyond)
        The merged table, in which all these shingles are counted.
    join : Joiner
    ranges : int
    marks : array of uint8, optional
        The merged marks of all postings that are given without marks.

    Returns
    -------
    array of int64, and Posted
        Document by document.
    """
    runtime = join.runtime
    table, marks = (runtime.put(table[0]), runtime.put(table[1])), None if marks is None else runtime.put(marks)

    def take_part(part: Span) -> tuple[np.ndarray, Posted]:
        some = _rows(shingles, part)
        found, entries, sets = postings_of(some, runtime.put(np.arange(len(some))), table, marks, join)
        return _posted(found, entries, ranks[part.rows], sets, join, ranges)

    return _all_by_range(runtime.map(take_part, _parts(shingles, runtime)))


def _parts(shingles: Ragged, runtime: Runtime) -> list[Span]:
    """Documents in parts whose sets can be made at once."""
    return Span.divided(8 * runtime.fetch(shingles.sizes), runtime.shares.sorted, "documents")


def _rows(shingles: Ragged, part: Span) -> Ragged:
    return Ragged(shingles.values, shingles.offsets[part.first : part.last + 1])


def _values(shingles: Ragged) -> Any:
    return shingles.values[int(shingles.offsets[0]) : int(shingles.offsets[-1])]


def _posted(
    shingles: Any, entries: Any, ranks: np.ndarray, sets: Ragged, join: Joiner, ranges: int
) -> tuple[np.ndarray, Posted]:
    """Return postings whose entries name documents by their number among those that have these ranks and sets."""
    runtime, flip = join.runtime, join.measure.both_sizes
    found, words = runtime.fetch(shingles), runtime.fetch(entries)
    row = ((words & ~LONG) >> np.uint64(PLACE_BITS)).astype(np.int64)
    place = words & np.uint64((1 << PLACE_BITS) - 1) | words >> np.uint64(63) << np.uint64(PLACE_BITS)
    sizes, number = runtime.fetch(sets.sizes), np.zeros(len(ranks), np.int64)
    present = np.unique(row)
    number[present] = num_words(sizes[present], join.threshold, flip)
    make = kernel(bitmaps, runtime.backend)
    made = runtime.fetch(runtime.run(make, sets.values, sets.offsets, number, flip))
    range_of = partition_of(found, ranges)
    bits = _dealt(made, number, row, range_of, np.bitwise_xor if flip else np.bitwise_or)
    return range_of, Posted(found, ranks[row], place.astype(np.uint32), sizes[row].astype(np.int32), bits)


def _dealt(words: np.ndarray, number: np.ndarray, row: np.ndarray, range_of: np.ndarray, fold: np.ufunc) -> np.ndarray:
    """Return the word that each posting has of its document's bitmap; see `Posted`.

    Parameters
    ----------
    words, number : arrays of uint64 and int64
        The bitmaps of all documents, one after another, and how many words each has.
    row, range_of : arrays of int64, shape (postings,)
        The document and the range of each posting.
    fold : ufunc
        Joins the words of a bitmap when it is folded.
    """
    order = np.lexsort((range_of, row))
    starts, counts = runs_of(row[order] * (range_of.max(initial=0) + 1) + range_of[order])
    place = np.arange(len(order)) - np.repeat(starts, counts)
    most, begin = number[row[order]], (np.cumsum(number) - number)[row[order]]
    width = np.minimum(most, np.repeat(_power_below(counts), counts))
    at = place % width
    found = words[begin + at]
    at += width
    left = np.flatnonzero(at < most)
    while len(left):
        found[left] = fold(found[left], words[(begin + at)[left]])
        at[left] += width[left]
        left = left[at[left] < most[left]]
    bits = np.empty_like(found)
    bits[order] = found
    return bits


def _power_below(counts: np.ndarray) -> np.ndarray:
    """Return the largest power of two that is at most each count."""
    return 1 << np.log2(counts).astype(np.int64)


def _all(parts: Iterable[Posted]) -> Posted:
    """Postings of several parts as one."""
    found: tuple[list[np.ndarray], ...] = ([], [], [], [], [])
    for part in parts:
        for arrays, array in zip(found, part, strict=True):
            arrays.append(array)
    return Posted(*(concat_and_clear(arrays, dtype=dtype) for arrays, dtype in zip(found, POSTED_TYPES, strict=True)))


def _all_by_range(parts: Iterable[tuple[np.ndarray, Posted]]) -> tuple[np.ndarray, Posted]:
    """Postings of several parts as one, and their ranges."""
    made = list(parts)
    return concat_and_clear([of for of, _ in made], dtype=np.int64), _all(posted for _, posted in made)


class Bitmaps(NamedTuple):
    """The bitmaps of the documents of a range, which lie one after another in `words`.

    Parameters
    ----------
    ranks : array of int64
        Ascending.
    places : array of int64
        Where the bitmap of each is; see kernels/setjoin.py.
    folds, words : arrays of uint64
    """

    ranks: np.ndarray
    places: np.ndarray
    folds: np.ndarray
    words: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[Posted], join: Joiner) -> Bitmaps:
        """Return the bitmaps that all postings of a range have, in the order in which they were made."""
        columns = [(posted.rank, posted.place >> np.uint32(PLACE_BITS), posted.size, posted.bits) for posted in parts]
        if not columns:
            return cls(NO_RANKS, NO_RANKS, *(np.empty(0, np.uint64),) * 2)
        measure, threshold, _ = join
        rank, is_long, size, bits = map(np.concatenate, zip(*columns, strict=True))
        names = rank.astype(np.uint64) << np.uint64(1)
        if measure.directed:
            names |= is_long.astype(np.uint64)
        names, order = in_order(names)
        starts, counts = runs_of(names)
        width = np.minimum(num_words(size[order[starts]], threshold, measure.both_sizes), _power_below(counts))
        ranks = (names[starts] >> np.uint64(1)).astype(np.int64)
        longest = np.lexsort((-width, ranks))
        longest = longest[run_begins(ranks[longest])]
        starts, width = starts[longest], width[longest]
        begins = np.cumsum(width) - width
        words = bits[order[np.repeat(starts - begins, width) + np.arange(int(width.sum()))]]
        fold = np.bitwise_xor if measure.both_sizes else np.bitwise_or
        places = begins << WIDTH_BITS | np.log2(width).astype(np.int64)
        return cls(ranks[longest], places, fold.reduceat(words, begins), words)

    def known(self, ranks: np.ndarray, sizes: np.ndarray) -> KnownSets:
        """Return what the join knows of the sets of some of the documents."""
        at = np.searchsorted(self.ranks, ranks)
        return KnownSets(sizes, self.folds[at], self.places[at], self.words)


def _no_bitmaps(ranks: np.ndarray) -> Bitmaps:
    """Return bitmaps without a one, by which no pair is rejected."""
    nothing = np.zeros(max(1, len(ranks)), np.uint64)
    return Bitmaps(ranks, np.zeros(len(ranks), np.int64), nothing[: len(ranks)], nothing)


class Sides(NamedTuple):
    """Which pairs of ranks are candidates.

    Parameters
    ----------
    num_known : int
        Ranks below it belong to the reference set, and are not compared with one another.
    direction : "in", "of" or "either", default "in"
        Which ranks look for pairs with the reference set: those of the input, those of the reference set, or both.
    only_known : bool, default False
        Whether documents of the input are only compared with the reference set.
    """

    num_known: int
    direction: str = "in"
    only_known: bool = False


def collide_range(
    read: Callable[[], Iterable[Posted]], join: Joiner, sides: Sides, most_bytes: int, long_run: int = LONG_RUN
) -> Iterator[FoundPairs]:
    """Find the candidates of a range of shingles, and its crowded documents; see the head of this file.

    Parameters
    ----------
    read : callable
        Gives all postings of the range in parts that are small compared with the task's memory. The postings
        of a document come in the order in which `postings` made them: first without marks, then with them.
        It is called once if all of them fit in memory; if not, up to three times more, and once for each part of the
        range.
    join : Joiner
    sides : Sides
    most_bytes : int
        Memory for postings. Lists of candidates take half as much besides, up to 256 MiB.
    long_run : int
        A run is not searched if each of its entries meets more than `long_run` others on average.

    Yields
    ------
    FoundPairs
        At most `joining.LISTED` pairs at a time, or fewer for little memory. A pair comes once, or once from each part
        of the range if it does not fit; a crowded document at least once.

    Notes
    -----
    At most long_run / 2 pairs are looked at for each posting of a short run. Where a single slot of a range that does
    not fit has more postings than half of what does, it is not sorted: all its documents are crowded.
    """
    most = max(1, most_bytes // POSTING_BYTES)
    listed = max(MOST_ASKED, min(LISTED, most_bytes // (2 * LISTED_BYTES)))
    held = _held(read(), most)
    how = join, sides, long_run, listed
    if held is not None:
        yield from _collided(held, Bitmaps.of(held, join), *how)
        return
    counts = np.zeros(1 << SLOT_BITS, np.int64)
    for posted in read():
        counts += np.bincount(_slots(posted), minlength=len(counts))
    fits = int(counts.sum()) <= most_bytes // BITMAP_BYTES
    bitmaps_of_all = Bitmaps.of(read(), join) if fits else None
    part = parts_that_fit(counts, most // 2 if fits else most)
    for posted in read():
        crowded = np.unique(posted.rank[part[_slots(posted)] < 0])
        if len(crowded):
            yield FoundPairs(NO_RANKS, NO_RANKS, None, crowded)
    for number in np.unique(part[counts > 0]).tolist():
        if number >= 0:
            some = [posted.where(part[_slots(posted)] == number) for posted in read()]
            yield from _collided(some, bitmaps_of_all, *how)


def _held(parts: Iterable[Posted], most: int) -> list[Posted] | None:
    """Return all postings, or None if there are more than `most`."""
    held, number = [], 0
    for posted in parts:
        held.append(posted)
        number += len(posted.shingle)
        if number > most:
            return None
    return held


def _slots(posted: Posted) -> np.ndarray:
    """The slot of each shingle, by highest bits of a product, as those of shingles are alike in a range."""
    return (posted.shingle * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - SLOT_BITS)).astype(np.int64)


def _collided(
    parts: list[Posted], made: Bitmaps | None, join: Joiner, sides: Sides, long_run: int, listed: int
) -> Iterator[FoundPairs]:
    """Yield what all postings of some shingles find, about `listed` candidates at a time; the list is cleared."""
    num_known, direction, only_known = sides
    runtime = join.runtime
    ranks, index = _indexed(parts, made, join)
    pinned = ranks < num_known
    index, crowded = _without_long_runs(index, pinned, long_run, only_known)
    index = index.put(runtime)
    if join.measure.directed:
        index = runtime.run(index.of_short_prefixes)
    if crowded.any():
        yield FoundPairs(NO_RANKS, NO_RANKS, None, ranks[crowded])
    known, placed = int(pinned.sum()), np.diff(runtime.fetch(index.offsets)) > 0
    everyone = np.arange(len(ranks))
    first, stop = np.zeros(len(ranks), np.int64), np.minimum(everyone, known) if only_known else everyone
    if direction == "of":
        first[~pinned] = known
    if direction != "in":  # rows of the reference set look for all others
        first[pinned], stop = known, np.where(pinned, len(ranks), stop)
    rows = np.flatnonzero(placed & (first < stop) & (~pinned | (direction != "in")))
    while len(rows):
        full = []
        for met in meet([index], rows, first[rows], stop[rows], MOST_ASKED, runtime, listed):
            going_on = met.counts == MOST_ASKED
            first[met.rows[going_on]] = met.candidates[np.cumsum(met.counts)[going_on] - 1] + 1
            full.append(met.rows[going_on])
            others = np.repeat(met.rows, met.counts)
            left, right = np.minimum(met.candidates, others), np.maximum(met.candidates, others)
            apart = ~(crowded[left] & crowded[right])
            yield FoundPairs(ranks[left[apart]], ranks[right[apart]], None, NO_RANKS, looks=met.looks)
        rows = np.concatenate(full)


def _indexed(parts: list[Posted], made: Bitmaps | None, join: Joiner) -> tuple[np.ndarray, PostingsIndex]:
    """(ranks of all documents, ascending; the index of their postings, in host memory, by their numbers)."""
    measure, threshold, runtime = join
    posted = _all(parts)
    parts.clear()
    ranks, row = renumbered(posted.rank)
    sizes = np.zeros(len(ranks), np.int32)
    sizes[row] = posted.size
    words = row.astype(np.uint64) << np.uint64(PLACE_BITS)
    words |= posted.place & np.uint64((1 << PLACE_BITS) - 1)
    words |= posted.place.astype(np.uint64) >> np.uint64(PLACE_BITS) << np.uint64(63)
    del row
    find = kernel(runs_kernel, runtime.backend)
    runs = runtime.run(lambda: find(runtime.put(posted.shingle), runtime.put(words), len(ranks)))
    needed = measure.needed(int(sizes.max(initial=0)), threshold)
    sets = (made or _no_bitmaps(ranks)).known(ranks, sizes)
    return ranks, PostingsIndex.of([runtime.fetch(array) for array in runs], sets, needed, measure.both_sizes)


def _without_long_runs(
    index: PostingsIndex, pinned: np.ndarray, long_run: int, only_known: bool = False
) -> tuple[PostingsIndex, np.ndarray]:
    """The index without the runs that are long, and whether each row was in one of them; in host memory.

    Entries of two pinned rows do not meet, nor by `only_known` those of two others.
    """
    lengths = np.diff(index.starts)
    row = rows_of_entries(index.entries)
    known = _before(pinned[row])
    ends = known[index.starts[1:]]
    meeting = meetings(lengths, index.starts[1:] - index.splits)
    of_known = ends - known[index.starts[:-1]], ends - known[index.splits]
    meeting -= meetings(*of_known)
    if only_known:
        meeting -= meetings(lengths - of_known[0], index.starts[1:] - index.splits - of_known[1])
    long = 2 * meeting > long_run * lengths
    in_long = np.repeat(long, lengths)
    crowded = np.zeros(len(pinned), bool)
    crowded[row[in_long]] = True
    starts = np.append(np.zeros(1, np.int64), np.cumsum(lengths[~long]))
    splits = starts[:-1] + (index.splits - index.starts[:-1])[~long]
    run = (index.places >> np.uint64(PLACE_BITS)).astype(np.int64)
    kept = ~long[run]
    number = (np.cumsum(~long) - 1)[run[kept]].astype(np.uint64)
    places = number << np.uint64(PLACE_BITS) | index.places[kept] & np.uint64((1 << PLACE_BITS) - 1)
    return index._replace(
        entries=index.entries[~in_long],
        starts=starts,
        splits=splits,
        places=places,
        offsets=_before(kept)[index.offsets],
    ), crowded


def _before(chosen: np.ndarray) -> np.ndarray:
    """How many of some are chosen before each, and before the end."""
    return np.append(np.zeros(1, np.int64), np.cumsum(chosen))
