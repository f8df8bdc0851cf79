"""The index of shingles that pairs are found in: which documents have a rare shingle among their rarest ones.

It is made of the shingles in a spool in two passes: one counts them, one takes the prefix of each document. See
kernels/rarity.py, prefixes.py, runs.py and setjoin.py. Where postings take more memory than they may, the index has
several parts, each of a range of shingles, in temporary files that are mapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import Ragged
from ..engine.arrays import concat_and_clear, same_device
from ..engine.choice import kernel
from ..engine.large_arrays import MappedArrays
from ..engine.pieces import Span
from ..kernels import bitmaps, containers, prefixes, rarity, runs as runs_kernel, setjoin
from ..kernels._bounds import least_shares_of
from ..kernels._launch import array_module
from ..kernels._ragged import sums_before
from ..kernels.bitmaps import num_words
from ..kernels.prefixes import LONG, PLACE_BITS
from ..kernels.setjoin import SCAN, WIDTH_BITS
from ..store.postings import Postings

if TYPE_CHECKING:
    from ..engine.clock import Clock
    from ..engine.contract import Rows, Runtime
    from ..methods.measures import JoinMeasure

MOST_TABLE_BITS = 30
"""A table of counters takes at most 1.06 GiB."""

MOST_MARK_BITS = 28
"""A table of marks, of a byte for each counter, takes at most 256 MiB."""


def rows_of_entries(entries: Any) -> Any:
    """Return the row of each entry of an index."""
    return ((entries >> np.uint64(PLACE_BITS)) & np.uint64(2**32 - 1)).astype(np.int64)


class KnownSets(NamedTuple):
    """Sizes and bitmaps of all rows' sets; see kernels/setjoin.py for the arrays."""

    sizes: Any
    folds: Any
    bitmaps: Any
    words: Any


class PostingsIndex(NamedTuple):
    """Runs of postings of some range of shingles, or of all; see kernels/runs.py and setjoin.py for the arrays.

    Rows are representatives, by priority. Arrays are where the backend wants them, or in mapped files.
    """

    entries: Any
    starts: Any
    splits: Any
    places: Any
    offsets: Any
    sizes: Any
    folds: Any
    bitmaps: Any
    words: Any
    held: Any
    needed: Any
    both_sizes: int

    @classmethod
    def of(cls, made: Sequence[Any], sets: KnownSets, needed: Any, both_sizes: int) -> PostingsIndex:
        """Return the index of what `runs` made."""
        entries, starts, splits, places, offsets = made
        held = array_module(entries).zeros(len(sets.sizes), np.uint8)
        held[rows_of_entries(entries)] = 1
        return cls(entries, starts, splits, places, offsets, *sets, held, needed, both_sizes)

    @property
    def sets(self) -> KnownSets:
        """Sizes and bitmaps of all rows' sets."""
        return KnownSets(self.sizes, self.folds, self.bitmaps, self.words)

    def put(self, runtime: Runtime) -> PostingsIndex:
        """Return the index with its arrays where the backend wants them."""
        return PostingsIndex._make([*map(runtime.put, self[:-1]), self.both_sizes])

    def of_short_prefixes(self) -> PostingsIndex:
        """The same without the places of elements that are in no short prefix: rows meet all entries as the smaller."""
        xp = array_module(self.entries)
        short = self.sizes - self.needed[(1 + self.both_sizes) * self.sizes] + 1
        row = xp.searchsorted(self.offsets, xp.arange(len(self.places)), side="right") - 1
        kept = (self.places & np.uint64((1 << PLACE_BITS) - 1)).astype(np.int64) < short[row]
        return self._replace(places=self.places[kept], offsets=sums_before(kept)[self.offsets])

    def only(self, rows: Any) -> PostingsIndex:
        """The same with the entries of some rows alone, given as a bool for each; places stay as they are."""
        kept = rows[rows_of_entries(self.entries)]
        before = sums_before(kept)
        starts, splits = before[self.starts], before[self.splits]
        return self._replace(entries=self.entries[kept], starts=starts, splits=splits, held=self.held * rows)


class Joiner(NamedTuple):
    """A join of sets: by which measure, at which threshold, and where it is computed.

    measure : JoinMeasure
    threshold : float
    runtime : Runtime
    """

    measure: JoinMeasure
    threshold: float
    runtime: Runtime


class SpooledRows(NamedTuple):
    """Rows whose shingles wait in a spool.

    spool : Rows
    places : array of int64, shape (rows,)
        The row of the spool that holds the shingles of each.
    """

    spool: Rows
    places: np.ndarray

    def gather(self, rows: np.ndarray) -> Ragged:
        """Return the shingles of some rows."""
        return self.spool.gather(self.places[rows])

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of shingles that wait of some rows."""
        places = self.places[rows]
        return self.spool.offsets[places + 1] - self.spool.offsets[places]

    def in_order(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows in the order in which they lie in the spool."""
        return rows[np.argsort(self.places[rows], kind="stable")]

    def parts(self, rows: np.ndarray, most: int, kind: str = "documents") -> list[Span]:
        """Divide some rows into parts of about `most` bytes, or of one row."""
        return Span.divided(8 * self.sizes(rows), most, kind)


def build_index(
    spooled: SpooledRows, members: np.ndarray, sets: Rows, join: Joiner, clock: Clock
) -> list[PostingsIndex]:
    """Index the prefixes of some documents.

    By a directed measure each row is only compared with better ones, and its short prefix meets all of them. The better
    rows need those of their further elements that are in some short prefix, and no places for them.

    Parameters
    ----------
    spooled : SpooledRows
        All documents; by a directed measure, sets wait.
    members : array of int64
        Rows to index; the others have no places.
    sets : Rows
        An empty spool, which may be written over that of `spooled`: the set of a document is never larger than its
        shingles. There the set of each member that has postings is kept for verification, in the order of the spool;
        other members have an empty row. It stays empty by a directed measure.
    join : Joiner
    clock : Clock

    Returns
    -------
    list of Index
        Its parts; one, where postings fit in memory.
    """
    measure, threshold, runtime = join
    folder, wanted = spooled.spool.folder, _IndexedRows(spooled, spooled.in_order(members), join)
    with Postings(folder, runtime.shares.postings) as postings:
        known = wanted.add_postings(postings, sets, clock)
        needed = measure.needed(int(known.sizes.max(initial=0)), threshold)
        ends = KnownSets(*map(runtime.put, known)), runtime.put(needed), measure.both_sizes
        made = (
            PostingsIndex.of(runtime.run(_runs, *part, len(spooled.places), runtime), *ends)
            for part in postings.parts()
        )
        if measure.directed:
            made = (runtime.run(part.of_short_prefixes) for part in made)
        return stored(made, 2 if postings.divided else 1, folder, runtime)


class SetCollector:
    """Collects what the join knows of each row's set, in host memory.

    Parameters
    ----------
    num_rows : int
    threshold : float
    flip : int
        See kernels/bitmaps.py.
    """

    def __init__(self, num_rows: int, threshold: float, flip: int) -> None:
        self._threshold, self._flip = threshold, flip
        self._sizes, self._bitmaps = np.zeros(num_rows, np.int32), np.zeros(num_rows, np.int64)
        self._folds = np.zeros(num_rows, np.uint64)
        self._words: list[np.ndarray] = []
        self._end = 0

    def add(self, rows: np.ndarray, sets: Ragged, runtime: Runtime) -> None:
        """Add the sizes and the bitmaps of the sets of some rows; a row without elements is in no pair."""
        offsets = runtime.fetch(sets.offsets)
        sizes = np.diff(offsets)
        present = np.flatnonzero(sizes)  # few, where documents are unlike
        sizes, rows, offsets = sizes[present], rows[present], np.append(offsets[present], offsets[-1])
        number = num_words(sizes, self._threshold, self._flip)
        make = kernel(bitmaps, runtime.backend)
        made = runtime.run(make, sets.values, offsets, number, self._flip)
        words, begins = runtime.fetch(made), np.cumsum(number) - number
        fold = np.bitwise_xor if self._flip else np.bitwise_or
        self._sizes[rows] = sizes
        self._folds[rows] = fold.reduceat(words, begins) if len(begins) else words
        self._bitmaps[rows] = self._end + begins << WIDTH_BITS | np.log2(number).astype(np.int64)
        self._words.append(words)
        self._end += len(words)

    def known(self) -> KnownSets:
        """Return what was collected."""
        return KnownSets(self._sizes, self._folds, self._bitmaps, concat_and_clear(self._words, dtype=np.uint64))


def stored(parts: Iterable[PostingsIndex], number: int, folder: Path, runtime: Runtime) -> list[PostingsIndex]:
    """Parts of an index: where the backend has them, if there is one; else in mapped files."""
    if number <= 1:
        return list(parts)
    files = MappedArrays(0, folder)
    return [PostingsIndex._make([*(files.held(runtime.fetch(each)) for each in part[:5]), *part[5:]]) for part in parts]


class _IndexedRows(NamedTuple):
    """Hold the rows to index, `in_file`, in the order of the spool that holds their shingles, and their join."""

    spooled: SpooledRows
    in_file: np.ndarray
    join: Joiner

    def table(self) -> Any:
        """Return the table that counts the shingles of the rows to index."""
        return rarity_table(self.spooled, self.in_file, self.join.runtime)

    def parts(self) -> list[Span]:
        """Divide the rows into parts whose sets can be made at once."""
        return self.spooled.parts(self.in_file, self.join.runtime.shares.sorted)

    def of(self, part: Span) -> tuple[np.ndarray, Ragged]:
        """Return some rows and their shingles."""
        rows = self.in_file[part.rows]
        return rows, self.spooled.gather(rows)

    def add_postings(self, postings: Postings, sets: Rows, clock: Clock) -> KnownSets:
        """Add the postings of all rows, in the order of the spool; return what is known of each row's set."""
        measure, threshold, runtime = self.join
        parts, table = self.parts(), self.table()
        marks = no_marks(table[0]) if measure.directed else None
        passes = (None,) if marks is None else (None, marks)
        done, known = 0, SetCollector(len(self.spooled.places), threshold, measure.both_sizes)
        for by in passes:
            for rows, shingles, entries, sets_of_part in runtime.map(partial(self.taken, table, by), parts):
                postings.add(shingles, entries)
                if by is passes[-1]:
                    known.add(rows, sets_of_part, runtime)
                else:
                    runtime.run(mark, marks, shingles)
                if marks is None:
                    sets.append(sets_of_part)
                done += len(rows)
                clock.report("index", done // len(passes), len(self.in_file))
        return known.known()

    def taken(self, table: Any, marks: Any, part: Span) -> tuple[np.ndarray, Any, Any, Ragged]:
        """Return (rows, and what `postings_of` returns) of some documents."""
        rows, shingles = self.of(part)
        return rows, *postings_of(shingles, self.join.runtime.put(rows), table, marks, self.join)


def postings_of(shingles: Ragged, rows: Any, table: Any, marks: Any, join: Joiner) -> tuple[Any, Any, Ragged]:
    """Return the shingles and the entries of the postings of documents, and the sets of documents with postings.

    By a directed measure, a document has postings as a contained one; and, once the marks of all such postings are
    given, further postings as a container. Its shingles are a set then.
    """
    measure, threshold, runtime = join
    if marks is not None:
        contain = kernel(containers, runtime.backend)
        return *contain(shingles.values, shingles.offsets, rows, *table, marks, threshold), shingles
    take = kernel(prefixes, runtime.backend)
    found, entries, sizes, elements = take(
        shingles.values, shingles.offsets, rows, *table, threshold, measure.both_sizes
    )
    if measure.directed:  # what is the long prefix for resemblance is the prefix of what is contained
        entries &= ~LONG
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(runtime.fetch(sizes), dtype=np.int64)])
    return found, entries, Ragged(elements, ends)


def no_marks(counters: Any) -> Any:
    """Return a table of marks, one per counter, without any mark set."""
    return array_module(counters).zeros(min(len(counters), 1 << MOST_MARK_BITS), np.uint8)


def mark(marks: Any, shingles: Any) -> None:
    """Mark some shingles; `marks` is written over."""
    marks[(shingles >> rarity.shift_of(marks)).astype(np.int64)] = 1


def table_bits(num_shingles: int, most_bytes: int | None = None) -> int:
    """Return the bits of a table with about one counter per shingle, in at most `most_bytes` if possible."""
    bits = min(max(rarity.FEWEST_BITS, (num_shingles - 1).bit_length()), MOST_TABLE_BITS)
    while most_bytes is not None and bits > rarity.FEWEST_BITS and 17 * 2**bits > 16 * most_bytes:
        bits -= 1
    return bits


COUNTED = 1 << 5
"""Shingles are counted in parts of this share of the memory for postings, if that is more than what is sorted at once.

There are no postings yet. A part meets most of the table, so that the table is read and written once for each part.
"""


def rarity_table(spooled: SpooledRows, rows: np.ndarray, runtime: Runtime) -> Any:
    """Return the table that counts the shingles of some rows.

    It has about as many counters as there are shingles, or fewer in little memory. If shingles were counted as they
    came, it counts those of all documents.
    """
    if spooled.spool.table is not None:
        return spooled.spool.table
    most = None if runtime.backend == "gpu" else runtime.shares.postings * 17 // 16  # by default the largest table
    bits = table_bits(int(spooled.sizes(rows).sum()), most)
    run = kernel(rarity, runtime.backend)

    def gathered(part: Span) -> Any:
        return spooled.gather(rows[part.rows]).values

    def count(shingles: Any, table: Any) -> Any:  # counts that are too large, if called again, cost time alone
        return run(shingles, bits, table)

    parts = spooled.parts(rows, max(runtime.shares.sorted, runtime.shares.postings // COUNTED))
    return runtime.fold(gathered, count, runtime.run(run, np.empty(0, np.uint64), bits), parts)


def _runs(shingles: list[Any], entries: list[Any], num_rows: int, runtime: Runtime) -> Any:
    """Return the result of `runs` on lists of postings. Each list holds one array afterwards; a retry is safe."""
    for arrays in (shingles, entries):
        if len(arrays) != 1:
            arrays.append(concat_and_clear(arrays, dtype=np.uint64))
    return kernel(runs_kernel, runtime.backend)(runtime.put(shingles[0]), runtime.put(entries[0]), num_rows)


def raised(part: PostingsIndex, asking: np.ndarray, pinned: np.ndarray, join: Joiner) -> PostingsIndex:
    """Make the index by which some rows find those of a reference set at a higher threshold.

    Elements beyond the prefixes of that threshold are left out, and so are runs in which no two such rows meet. By a
    directed measure the asking rows are the contained ones: their prefixes become shorter, and containers keep all
    entries.

    Parameters
    ----------
    part : PostingsIndex
    asking : array of int64
        The rows that will ask.
    pinned : array of bool, shape (rows,)
        The rows of the reference set.
    join : Joiner
        By the measure of the index, at a threshold that is at least that of the index.
    """
    measure, threshold, runtime = join
    sizes = runtime.fetch(part.sizes)
    needed = measure.needed(int(sizes.max(initial=0)), threshold)
    if measure.directed:
        part = part.put(runtime)._replace(needed=runtime.put(needed))
        return runtime.run(lambda: part.of_short_prefixes().only(runtime.put(pinned)))
    entries, starts = runtime.fetch(part.entries), runtime.fetch(part.starts)
    row = rows_of_entries(entries)
    place = (entries & np.uint64((1 << PLACE_BITS) - 1)).astype(np.int64)
    size = sizes[row].astype(np.int64)
    asks = np.zeros(len(pinned), bool)
    asks[asking] = True
    there = (asks | pinned)[row] & (place <= size - least_shares_of(size, threshold))
    run = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    of_asking, of_known = (np.bincount(run[there & of[row]], minlength=len(starts) - 1) for of in (asks, pinned))
    there &= ((of_asking > 0) & (of_known > 0))[run]
    long = np.where(place > size - needed[2 * size], LONG, np.uint64(0))
    made = named_runs(run[there], (entries & ~LONG | long)[there], len(pinned), len(starts), runtime)
    index = PostingsIndex.of(made, part.sets, runtime.put(needed), part.both_sizes)
    return index.put(runtime).only(runtime.put(pinned))


def named_runs(run: np.ndarray, entries: np.ndarray, num_rows: int, num_runs: int, runtime: Runtime) -> Any:
    """Make runs of entries, given the number of each entry's run, which becomes the highest bits of a word."""
    names = run.astype(np.uint64) << np.uint64(64 - max(1, num_runs.bit_length()))
    return kernel(runs_kernel, runtime.backend)(runtime.put(names), runtime.put(entries), num_rows)


LOOKS = 1 << 24
"""Approximate number of entries between two reports of progress; a long run counts as `LONG_RUN` entries."""

LONG_RUN = 1 << 12

LISTED = 1 << 22
"""Places in lists of candidates at a time: 32 MB."""


FILTERS = ("size", "place", "bits")
"""The filters that an entry or row may fail, in the order of the columns that count it; see `Met.looks`."""


class Met(NamedTuple):
    """The first candidates of some rows, in host memory.

    rows : array of int64, shape (asked,)
    candidates : array of int64
        Ordered by the rows that they are candidates of.
    counts : array of int64, shape (asked,)
        How many candidates each has.
    looks : array of int64, shape (4,)
        Entries or rows that were looked at, and how many of them failed by each of `FILTERS`.
    """

    rows: np.ndarray
    candidates: np.ndarray
    counts: np.ndarray
    looks: np.ndarray


def meet(
    parts: list[PostingsIndex],
    rows: np.ndarray,
    first: np.ndarray,
    stop: np.ndarray,
    most: int,
    runtime: Runtime,
    listed: int = LISTED,
    expected: int | None = None,
) -> Iterator[Met]:
    """Yield the first `most` candidates of some rows, from rows `first` on and before `stop`; about `listed` at a time.

    If all rows look at `expected` entries together and these are few, the entries of each row are not counted.
    """
    weights = np.ones(len(rows), np.int64)
    for part in parts if expected is None or expected > LOOKS else []:
        weights += np.minimum(runtime.fetch(runtime.run(_entries_met, part, rows)), SCAN * np.maximum(stop - first, 1))
    parts_of_rows = Span.divided(np.maximum(weights, LOOKS * most // listed), LOOKS, "documents")

    def probe(span: Span) -> Met:
        asked = rows[span.rows]
        given = [runtime.put(array) for array in (asked, first[span.rows], stop[span.rows])]
        found = [kernel(setjoin, runtime.backend)(*part.put(runtime), *given, most) for part in parts]
        fetched = [tuple(map(runtime.fetch, each)) for each in found]
        looks = sum(each[2].sum(axis=0) for each in fetched)
        candidates, counts = _first_of([(each[0], np.diff(each[1])) for each in fetched], most)
        return Met(asked, candidates, counts, looks)

    return runtime.map(probe, parts_of_rows)


def _entries_met(part: PostingsIndex, rows: np.ndarray) -> Any:
    """Entries in the runs of each of some rows, where a run counts as `LONG_RUN` at most; where the index is."""
    xp, (asked,) = array_module(part.starts), same_device(part.starts, rows)
    sizes = xp.minimum(xp.diff(part.starts), LONG_RUN)
    before = sums_before(sizes[(part.places >> np.uint64(PLACE_BITS)).astype(np.int64)])
    return before[part.offsets[asked + 1]] - before[part.offsets[asked]]


def _first_of(lists: list[tuple[np.ndarray, np.ndarray]], most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `most` of what several parts found for the same rows: (candidates, how many each has)."""
    if len(lists) == 1:
        return lists[0]
    asked = len(lists[0][1])
    packed = np.unique(
        np.concatenate([np.repeat(np.arange(asked), counts) << 32 | candidates for candidates, counts in lists])
    )
    which, candidates = packed >> 32, packed & (2**32 - 1)
    counts = np.bincount(which, minlength=asked)
    place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return candidates[place < most], np.minimum(counts, most)


def expected_comparisons(index: list[PostingsIndex], runtime: Runtime) -> int:
    """Return about how many entries or rows are looked at where each row looks once for all its better partners.

    Two entries of a run meet unless both are of long prefixes alone. If these are many times the pairs of rows, rows
    are scanned instead. There will be fewer where rows have partners enough, and some more where the list of a row's
    candidates fills up and it has to go on.
    """
    return sum(_expected(part, runtime) for part in index)


def _expected(part: PostingsIndex, runtime: Runtime) -> int:
    entries, rows = int(_comparisons(part, runtime).sum()), int(part.held.sum())
    pairs = rows * (rows - 1) // 2
    return pairs if entries > SCAN * pairs else entries


def _comparisons(part: PostingsIndex, runtime: Runtime) -> np.ndarray:
    """Pairs of entries that meet in each run of a part: float64, as they may be many."""
    starts, splits = runtime.fetch(part.starts), runtime.fetch(part.splits)
    return meetings(starts[1:] - starts[:-1], starts[1:] - splits)


def meetings(entries: np.ndarray, long: np.ndarray) -> np.ndarray:
    """Return the number of pairs that meet in a run as float64. Entries of long prefixes do not meet one another."""
    entries, long = entries.astype(np.float64), long.astype(np.float64)
    return (entries * (entries - 1) - long * (long - 1)) / 2


class Common(NamedTuple):
    """A shingle that many documents have among their rarest, or, by a directed measure, that many documents have.

    shingle : int
    num_documents : int
    row : int
        One of them.
    """

    shingle: int
    num_documents: int
    row: int


def commonest(
    index: list[PostingsIndex], spooled: SpooledRows, members: np.ndarray, join: Joiner, most: int
) -> list[Common]:
    """The shingles for which most entries meet, from the first on.

    An index knows places, not shingles: so these are counted once more, which costs a pass over the spool.

    Parameters
    ----------
    index : list of PostingsIndex
        As `build_index` made it of the other arguments.
    most : int
        How many, at most.
    """
    runtime = join.runtime
    meeting = [_comparisons(part, runtime) for part in index]
    largest = [np.argsort(-each, kind="stable")[:most].tolist() for each in meeting]
    best = [(-float(meeting[part][run]), part, run) for part, runs in enumerate(largest) for run in runs]
    indexed = _IndexedRows(spooled, spooled.in_order(members), join)
    table = indexed.table()
    found = []
    for _, number, run in sorted(best)[:most]:
        begin, end = runtime.fetch(index[number].starts[run : run + 2]).tolist()
        word = runtime.fetch(index[number].entries[begin : begin + 1])[0] & ~LONG
        row = np.array([word >> np.uint64(PLACE_BITS)], np.int64)
        one = indexed._replace(in_file=row)
        (part,) = one.parts()
        _, shingles, theirs, *_ = one.taken(table, None, part)
        there = (runtime.fetch(theirs) & ~LONG) == word
        found += [Common(shingle, end - begin, int(row[0])) for shingle in runtime.fetch(shingles)[there].tolist()]
    return found
