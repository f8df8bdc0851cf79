"""Collisions of sketching methods, cut into tasks: `exchanged` of keys of a slice, `TableCollisions` of a partition.

A method says what its tables hold of each row (`Entries`) and what makes a bucket of them (`Buckets`). The entries of a
table go to partitions by their buckets: partition `table * per_table + part`, where `part` is the upper bits of the
bucket's word. So a partition holds whole buckets of one table, and all partitions together find what `collide` finds in
memory: the same pairs, the same crowded rows, the same counts.

An entry takes 14 bytes in files: a word of 8 and a rank of 6. A simhash of 128 bits takes 8 more, and 2 more hold
the number of entries that a pair has to share, if that is more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup_gpu.kernels import hamming, hamming_table
from neardup_gpu.kernels._bits import in_columns, permuted_words, plan
from neardup_gpu.kernels._buckets import limited
from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels._launch import check_rows
from neardup_gpu.kernels._sort import in_order

from ..engine.choice import kernel, to_host
from ..engine.pieces import runs_within
from ..errors import ResourceError
from ..report import count, size as bytes_of
from .columns import SLOT_BITS, parts_that_fit

if TYPE_CHECKING:
    from ..methods.contract import Buckets, Entries, Sketch

MOST_BYTES = 64 << 20
"""Default number of bytes of a partition's pairs that are held at a time."""

PAIR_BYTES = 192
"""Most that a compared pair takes while it is found: two entries, the pair, and what it takes to sort both."""

ENTRY_BYTES = 48
"""Most that an entry takes while its partition is put in order; 8 more for 128 bits. See `TableCollisions`."""

Columns = dict[str, np.ndarray]
"""Columns of an exchange file, by name; all of one length."""

Block = tuple[np.ndarray, np.ndarray, "np.ndarray | None"]
"""(values, ranks, needed) of some entries of a table."""


class FoundPairs(NamedTuple):
    """Some of what a partition finds; pairs of ranks, the better one left, in any order.

    left, right : arrays of int64, shape (pairs,)
    needed : array of uint16, shape (pairs,), or None
        How often each pair has to be found, in all partitions together, to be a candidate; once, if None.
    crowded : array of int64, shape (rows,)
        Ranks of some rows of large buckets.
    large_buckets, uncompared_pairs : int
        As in `Candidates`: the sum over all parts and partitions counts.
    looks : array of int64, shape (4,)
        As in `joining.Met`.
    """

    left: np.ndarray
    right: np.ndarray
    needed: np.ndarray | None
    crowded: np.ndarray
    large_buckets: int = 0
    uncompared_pairs: int = 0
    looks: np.ndarray = np.zeros(4, np.int64)


# ---------------------------------------------------------------------------------------------------------- to files


def exchanged(
    method: Sketch, keys: Any, ranks: np.ndarray, num_rows: int, per_table: int, seed: int
) -> Iterator[tuple[np.ndarray, Columns]]:
    """Yield the entries of a slice for the partitions.

    Parameters
    ----------
    method : Sketch
    keys : array of uint64
        Of the slice's representatives, a row for each.
    ranks : array of int64, shape (rows,)
        Their ranks, below 2**48.
    num_rows : int
        Representatives of the whole job, on which the tables of a method may depend.
    per_table : int
        Partitions of each table, up to 2**31.
    seed : int
        The recipe's.

    Yields
    ------
    partition : array of int64, shape (entries,)
    columns : Columns
        Of one table or a part of one. Memory: about 60 bytes per entry.
    """
    masks = method.buckets(num_rows).masks
    for entries in method.entries(keys, num_rows, seed=seed):
        part = parts(entries.values, masks[entries.table], per_table)
        yield entries.table * per_table + part, to_columns(entries, ranks)


def joined(blocks: Iterable[Block]) -> Block:
    """Join the entries of at least one block into one block."""
    values, ranks, needed = zip(*blocks, strict=True)
    return np.concatenate(values), np.concatenate(ranks), None if needed[0] is None else np.concatenate(needed)


def parts(values: np.ndarray, mask: np.ndarray, per_table: int) -> np.ndarray:
    """The part of a table that the bucket of each value is in: int64, shape (entries,).

    Buckets spread evenly, whatever their bits. Part p of n is the parts k p to k p + k - 1 of k n.
    """
    masked = values & mask
    words = mix64_all(masked if masked.ndim == 1 else mix64_all(masked[:, 0]) ^ masked[:, 1])
    return ((words >> np.uint64(32)) * np.uint64(per_table) >> np.uint64(32)).astype(np.int64)


def to_columns(entries: Entries, ranks: np.ndarray) -> Columns:
    """Entries as files hold them: a word or two, the rank in 6 bytes, and what a pair needs if that is not 1."""
    words = in_columns(entries.values).T
    columns = {f"word_{number}": np.ascontiguousarray(word) for number, word in enumerate(words)}
    columns["rank_low"], columns["rank_high"] = halves(ranks[entries.rows])
    return columns if entries.needed is None else {**columns, "needed": entries.needed}


def from_columns(columns: Columns) -> Block:
    """(values, ranks, needed) of what `to_columns` gave."""
    words = [columns[name] for name in ("word_0", "word_1") if name in columns]
    values = words[0] if len(words) == 1 else np.column_stack(words)
    return values, whole(columns["rank_low"], columns["rank_high"]), columns.get("needed")


def halves(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks below 2**48 in 6 bytes: their lower 32 bits, uint32, and the upper 16, uint16."""
    return ranks.astype(np.uint32), (ranks >> 32).astype(np.uint16)


def whole(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The ranks of `halves`: int64."""
    return high.astype(np.int64) << 32 | low


# -------------------------------------------------------------------------------------------------------- candidates


class TableCollisions(NamedTuple):
    """The collisions in whole buckets of one table.

    Parameters
    ----------
    buckets : Buckets
        The method's, for the rows of the whole job.
    table : int
    num_known : int, default 0
        Ranks below it are of the reference set, whose documents make no pairs with one another.
    most_bytes : int, default 64 MiB
        What the pairs that are found at a time may take.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.
    most_entries : int, default None
        Entries to hold at a time, `ENTRY_BYTES` each; all, unless given.
    """

    buckets: Buckets
    table: int
    num_known: int = 0
    most_bytes: int = MOST_BYTES
    backend: str | None = None
    most_entries: int | None = None

    def found(self, read: Callable[[], Iterable[Block]], num_entries: int) -> Iterator[FoundPairs]:
        """Find the candidates among the entries of a partition of any size.

        Where they do not fit, they are read again for each part that does, as the next bits of their buckets divide
        them. A bucket that does not fit is looked through block by block: a row of it is compared with none but its
        first ones.

        Parameters
        ----------
        read : callable
            Gives all entries in any order, and in the same order at each call. Its blocks are much smaller than
            `most_entries`.
        num_entries : int
            How many there are.

        Yields
        ------
        FoundPairs
            What large buckets left out, then pairs, of one part after another; no pair is found twice by one bucket.
            Memory: 16 bytes per entry that is held, 28 more while they are sorted, or for the bounds of buckets and the
            order of the largest one, 8 more for 128 bits, and `most_bytes`. Cost: a radix sort, and for pairs that of
            the kernel `hamming`.

        Raises
        ------
        ResourceError
            If all rows of a bucket have to be compared with one another, and do not fit; or if 2**32 - 1 entries or
            more fit.
        """
        if self.most_entries is None or num_entries <= self.most_entries:
            if blocks := list(read()):
                yield from self._of_part(joined(blocks))
            return
        yield from self._divided(read, 64 - SLOT_BITS, self.most_entries)

    def _of_part(self, block: Block) -> Iterator[FoundPairs]:
        """Yield the pairs of entries that fit in memory."""
        values, ranks, _ = block
        check_rows(len(values), "entries of a partition")
        order, starts, stops = _in_buckets(values, self.buckets.masks[self.table], self.backend)
        limits = self.buckets.bucket_limit, self.buckets.bucket_probe
        compared, large, left_out = limited(np, (stops - starts).astype(np.uint64), *limits)
        yield from _crowded(order, starts[large], stops[large], ranks, int(left_out), max(1, self.most_bytes // 16))
        most = self._most_pairs
        before = np.zeros(len(compared) + 1, np.int64)
        np.cumsum(compared.astype(np.int64), out=before[1:])
        for first, last in runs_within(before, most):
            if last == first + 1 and compared[first] > most:
                yield from self._of_large(block, order[starts[first] : stops[first]])
            else:
                yield self._among(block, _by_rank(order, starts[first:last], stops[first:last], ranks), *limits)

    def _divided(self, read: Callable[[], Iterable[Block]], shift: int, most_entries: int) -> Iterator[FoundPairs]:
        """Yield the pairs of entries whose words agree in all bits from `shift` + `SLOT_BITS` on."""
        counts = np.zeros(1 << SLOT_BITS, np.int64)
        least, greatest = np.full(len(counts), 2**64 - 1, np.uint64), np.zeros(len(counts), np.uint64)
        for values, _, _ in read():
            words = self._words(values)
            slots = _slots(words, shift)
            counts += np.bincount(slots, minlength=len(counts))
            np.minimum.at(least, slots, words)
            np.maximum.at(greatest, slots, words)
        part = parts_that_fit(counts, most_entries)
        for number in np.unique(part[counts > 0]).tolist():
            if number >= 0:
                yield from self._of_part(joined(self._chosen(read, shift, part == number)))
        for slot in np.flatnonzero(part < 0).tolist():
            of_slot = partial(self._chosen, read, shift, np.arange(len(counts)) == slot)
            if least[slot] == greatest[slot]:
                yield from self._of_bucket(of_slot, int(counts[slot]), most_entries)
            else:
                yield from self._divided(of_slot, shift - SLOT_BITS, most_entries)

    def _of_bucket(self, read: Callable[[], Iterable[Block]], size: int, most_entries: int) -> Iterator[FoundPairs]:
        """Yield the pairs of one bucket. Its rows are read twice, at first those that the others are compared with."""
        limit, probe = self.buckets.bucket_limit, self.buckets.bucket_probe
        among_all, with_all = min(size, max(limit, probe)), min(size, probe)
        if among_all > most_entries:
            raise ResourceError(
                f"bucket_limit {limit}, bucket_probe {probe}: a bucket has {count(size, 'document')}, and "
                f"comparing them with one another takes {bytes_of(2 * ENTRY_BYTES * among_all)} of memory "
                "in a task; pass smaller limits, or a larger task_memory"
            )
        held: Block | None = None
        for block in read():
            held = block if held is None else joined([held, block])
            held = _where(held, np.argsort(held[1])[:among_all])
        assert held is not None
        yield from self._of_large(held, np.arange(among_all))
        _, (is_large,), left_out = limited(np, np.array([size], np.uint64), limit, probe)
        told, none = (int(is_large), int(left_out)), np.empty(0, np.int64)
        first = _where(held, slice(0, with_all))
        for block in read():
            if is_large:
                yield FoundPairs(none, none, None, block[1], *told)
                told = 0, 0
            later = _where(block, block[1] > held[1][-1])
            numbers = np.arange(with_all + len(later[1]))
            yield from self._between(joined([first, later]), numbers[:with_all], numbers[with_all:])

    @property
    def _most_pairs(self) -> int:
        return max(1, self.most_bytes // PAIR_BYTES)

    def _among(self, block: Block, rows: np.ndarray, limit: int, probe: int, skipped: int = 0) -> FoundPairs:
        """The candidates among some entries, those of a bucket by rank; none whose right one is among the first ones
        that are skipped."""
        (values, ranks, needed), masks = block, self.buckets.masks[self.table : self.table + 1]
        run = kernel(hamming, self.backend)
        left, right = map(to_host, run(values[rows], masks, self.buckets.radius, limit, probe)[:2])
        new = (right >= skipped) & (ranks[rows[right]] >= self.num_known)
        left, right = rows[left[new]], rows[right[new]]
        needed = None if needed is None else np.minimum(needed[left], needed[right])
        return FoundPairs(ranks[left], ranks[right], needed, np.empty(0, np.int64))

    def _of_large(self, block: Block, rows: np.ndarray) -> Iterator[FoundPairs]:
        """Yield the candidates of one bucket, at most about `_most_pairs` compared pairs at a time.

        The rows that are compared with later ones are taken block by block.
        """
        rows = rows[in_order(block[1][rows].astype(np.uint64))[1]]
        among_all = min(len(rows), max(self.buckets.bucket_limit, self.buckets.bucket_probe))
        with_all = min(len(rows), self.buckets.bucket_probe)
        begins = [*range(0, with_all, side := isqrt(self._most_pairs)), *range(with_all, among_all, side), among_all]
        for first, last in zip(begins[:-1], begins[1:], strict=True):
            yield self._among(block, rows[first:last], last - first, last - first)
            stop = len(rows) if first < with_all else among_all
            yield from self._between(block, rows[first:last], rows[last:stop])

    def _between(self, block: Block, first: np.ndarray, later: np.ndarray) -> Iterator[FoundPairs]:
        """Yield candidates of some rows of a bucket and later ones, about `_most_pairs` compared pairs at a time."""
        for begin in range(0, len(first), side := isqrt(self._most_pairs)):
            some = first[begin : begin + side]
            for at in range(0, len(later), per_block := max(1, self._most_pairs // len(some))):
                rows = np.concatenate([some, later[at : at + per_block]])
                yield self._among(block, rows, len(some), len(some), skipped=len(some))

    def _words(self, values: np.ndarray) -> np.ndarray:
        """A word of the bucket of each value, with uniform bits; one bucket has one word, and another has another."""
        mask = self.buckets.masks[self.table : self.table + 1]
        prepared = plan(mask)
        words = permuted_words(np.ascontiguousarray(in_columns(values)), prepared.moves[0])
        return mix64_all(words & prepared.tops[0])

    def _chosen(self, read: Callable[[], Iterable[Block]], shift: int, wanted: np.ndarray) -> Iterator[Block]:
        """The entries of some slots."""
        for block in read():
            yield _where(block, wanted[_slots(self._words(block[0]), shift)])


def _where(block: Block, chosen: Any) -> Block:
    """Some entries of a block: a bool for each, their numbers, or a slice."""
    values, ranks, needed = block
    return values[chosen], ranks[chosen], None if needed is None else needed[chosen]


def _slots(words: np.ndarray, shift: int) -> np.ndarray:
    return (words >> np.uint64(shift)).astype(np.int64) & ((1 << SLOT_BITS) - 1)


def _in_buckets(values: np.ndarray, mask: np.ndarray, backend: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(entries in the order of their buckets, where each bucket of two or more begins in it, where it ends)"""
    words, order = map(to_host, kernel(hamming_table, backend)(values, mask, False))
    num_leading = sum(word.bit_count() for word in np.atleast_1d(mask).tolist())
    words &= np.uint64(~(2**64 - 1 >> num_leading) & 2**64 - 1)
    joined = np.zeros(len(words) + 1, bool)  # to the entry before
    joined[1 : len(words)] = words[1:] == words[:-1]
    del words
    starts = np.flatnonzero(joined[1:] & ~joined[:-1])
    return order, starts, np.flatnonzero(joined[:-1] & ~joined[1:]) + 1


def _crowded(
    order: np.ndarray, starts: np.ndarray, stops: np.ndarray, ranks: np.ndarray, left_out: int, most: int
) -> Iterator[FoundPairs]:
    """Yield the ranks of large buckets, a limited number at a time; the first part has the counts."""
    none, counts = np.empty(0, np.int64), (len(starts), left_out)
    covered = np.zeros(len(order) + 1, np.int8)
    covered[starts] = 1
    covered[stops] -= 1
    np.cumsum(covered, out=covered)
    for first in range(0, len(order) if len(starts) else 0, most):
        rows = order[first : first + most][covered[first : min(first + most, len(order))] == 1]
        if len(rows):
            yield FoundPairs(none, none, None, ranks[rows], *counts)
            counts = 0, 0


def _by_rank(order: np.ndarray, starts: np.ndarray, stops: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The entries of some buckets, one bucket after another, each in the order of ranks."""
    sizes = stops - starts
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    rows = order[np.arange(len(bucket)) + (starts - np.cumsum(sizes) + sizes)[bucket]]
    found = ranks[rows]
    if ((found[1:] > found[:-1]) | (bucket[1:] > bucket[:-1])).all():
        return rows
    _, by_rank = in_order(found.astype(np.uint64))
    _, by_bucket = in_order(bucket[by_rank].astype(np.uint64))
    return rows[by_rank[by_bucket]]
