"""Who is kept, from verified pairs of ranks, as a stream, with a bit of memory for each document.

Greedily, pairs come by their right rank and each is looked at once: `decide_greedily`. Connected components take two
sweeps over ranges of ranks; the first one contracts: `decide_by_components`. What is found in one range and concerns
another waits in a temporary file until that one's turn (time-forward processing: Chiang and others 1995, section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from neardup_gpu.kernels import components, greedy_stream
from neardup_gpu.kernels._sort import in_order

from ..data import Ragged, look_up, run_begins
from ..store.spool import Spool

RankPairs = Iterable[tuple[np.ndarray, np.ndarray]]
"""Chunks of pairs of ranks, (left, right): arrays of int64, left < right."""

LABELS = "labels"
"""The file of labels: two little-endian int64 for each removed rank, itself and its label, ascending."""

PAIR_BYTES = 200
"""Memory for a pair, a message or a rank with pairs, while they are sorted and joined."""

MOST_PAIRS = 1 << 29
"""Maximum number of pairs that are joined at once. Together with a range they have less than 2**32 ranks."""

FAN = 64
"""Maximum number of ranges among which messages are divided at a time. More ranges are divided by sections first."""


def decide_greedily(pairs: RankPairs, num_rows: int, num_known: int) -> np.ndarray:
    """Decide which ranks are removed: those that have a pair with an earlier one that is kept, but pinned ones.

    Parameters
    ----------
    pairs : iterable of (left, right)
        All verified pairs, ascending by right rank, also from chunk to chunk. A chunk's memory is not counted.
    num_rows : int
        Ranks are below it.
    num_known : int
        Ranks below this one are pinned: they are always kept.

    Returns
    -------
    array of uint64, shape (words,)
        A bit for each rank, 64 a word, the lowest bit first; 1 for a rank that is removed.
    """
    bits = np.zeros(-(-num_rows // 64), np.uint64)
    for left, right in pairs:
        greedy_stream.update(bits, left, right, num_known)
    return bits


def decide_by_components(
    pairs: RankPairs, num_rows: int, num_known: int, most_bytes: int, folder: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Decide which ranks are removed: those that are not the first of their connected component, but pinned ones.

    The first sweep takes ranges from the last to the first. Pairs wait in the range of their right rank. The pairs of a
    range are joined, and each rank of the range gets a parent, the first rank that it is joined with so far. Where the
    range joins several earlier ranks, each is paired with the first one, for an earlier range. So the number of pairs
    never grows, and no pair is left at the end. The second sweep takes ranges from the first to the last. All labels of
    a range are known in its turn, and are those of the ranks whose parents they are.

    Parameters
    ----------
    pairs : iterable of (left, right)
        All verified pairs, in any order. A chunk's memory is not counted.
    num_rows, num_known : int
        As for `decide_greedily`.
    most_bytes : int
        Memory to take besides the bits, about; at least a few kB.
    folder : path
        Where the file `LABELS` is made; temporary files go there, too.

    Returns
    -------
    removed : array of uint64, shape (words,)
        As `decide_greedily` gives it.
    labels : array of int64, shape (removed ranks, 2)
        The file, mapped: each removed rank and the first rank of its component, ascending.

    Raises
    ------
    OutputError
        If a temporary file cannot be written, or the disk has no room for it.
    """
    most = min(max(1, most_bytes // PAIR_BYTES), MOST_PAIRS)
    begun, held = [], 0
    pieces = _pieces(pairs, most)
    while held <= most and (piece := next(pieces, None)) is not None:
        begun.append(piece)
        held += len(piece[0])
    if held <= most:  # one range, of which all that have pairs are held together
        width, most = max(1, num_rows), held + 1
    else:
        width = most = max(1, most // 2)
    return _decide_by_components(_and_then(begun, pieces), num_rows, num_known, width, most, folder)


def _decide_by_components(
    pairs: RankPairs, num_rows: int, num_known: int, width: int, most: int, folder: Path
) -> tuple[np.ndarray, np.ndarray]:
    """As `decide_by_components`, with ranges of `width` ranks, and `most` pairs and messages in memory."""
    firsts, bits = range(0, num_rows, width), np.zeros(-(-num_rows // 64), np.uint64)
    new = partial(mail, num_rows, width, most, folder, 2)
    with new() as requests, new() as answers:
        with new() as joined:
            for left, right in _pieces(pairs, most):
                joined.send(right, left)
            for first in reversed(firsts):
                rows, parents = _contract(joined, first, first // width)
                inside = parents >= first
                answers.send(rows[inside], parents[inside])
                requests.send(parents[~inside], rows[~inside])
        with open(folder / LABELS, "wb") as file:
            for first in firsts:
                rows, labels = _join_messages(answers.take(first // width))
                for parents, children in requests.take(first // width):
                    answers.send(children, _look_up(parents, rows, labels))
                removed = (rows >= num_known) & (rows != labels)
                greedy_stream.mark(bits, rows[removed])
                file.write(np.column_stack([rows[removed], labels[removed]]).astype("<i8", copy=False).data)
    if not (folder / LABELS).stat().st_size:
        return bits, np.empty((0, 2), np.int64)
    return bits, np.memmap(folder / LABELS, "<i8", "r").reshape(-1, 2)


def _contract(joined: Mail | SectionedMail, first: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(ranks, parents) of a range that begins with `first`; what it joins of earlier ranks is sent on."""
    rows = parents = np.empty(0, np.int64)
    for right, left in joined.take(number):
        ends, places = renumbered(np.concatenate([parents, left, rows, right]))
        half = len(places) // 2
        label = ends[components.cpu(len(ends), places[:half], places[half:])]
        inside = np.searchsorted(ends, first)
        rows, parents = ends[inside:], label[inside:]
        apart = np.flatnonzero(label[:inside] != ends[:inside])
        joined.send(ends[apart], label[apart])
    return rows, parents


def renumbered(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct ranks, the number of each rank among them): like NumPy's `unique`, which sorts more slowly."""
    words, order = in_order(ranks.view(np.uint64))
    begins = run_begins(words)
    numbers = np.cumsum(begins)
    numbers -= 1
    places = np.empty_like(numbers)
    places[order] = numbers
    return words[begins].view(np.int64), places


def _join_messages(pieces: Iterator[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return all messages (rank, value), ascending by rank."""
    none = np.empty(0, np.int64)
    ranks, values = (np.concatenate(column) for column in zip((none, none), *pieces, strict=True))
    order = np.argsort(ranks)
    return ranks[order], values[order]


def _look_up(ranks: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the value of each rank; a rank that is not among the rows is its own value."""
    found, (place, there) = ranks.copy(), look_up(rows, ranks)
    found[there] = values[place[there]]
    return found


def _pieces(pairs: RankPairs, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs, at most `most` at a time, without empty parts."""
    for left, right in pairs:
        for first in range(0, len(left), most):
            yield left[first : first + most], right[first : first + most]


def _and_then(begun: list[tuple[np.ndarray, np.ndarray]], rest: Iterator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the items that were taken from an iterator, and then its rest; a yielded item is no longer held."""
    begun.reverse()
    while begun:
        yield begun.pop()
    yield from rest


# ------------------------------------------------------------------------------------------------ what waits in a file


class Mail:
    """Messages to ranges of ranks, in memory and beyond that in a temporary file.

    Parameters
    ----------
    width : int
        Ranks of a range; range `i` has those from `i * width` on.
    most : int
        Messages to hold in memory.
    folder : path
    columns : int
        Values per message. The first value is the rank to which the message is sent.
    """

    def __init__(self, width: int, most: int, folder: Path, columns: int) -> None:
        self._width, self._most, self._columns = width, most, columns
        self._spool = Spool(folder)
        self._written: list[tuple[int, int, int]] = []  # (row of the spool, its range, the range of the last row)
        self._held: list[np.ndarray] = []
        self._num_held = 0

    def __enter__(self) -> Mail:
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.__exit__(*error)

    def send(self, *columns: np.ndarray) -> None:
        """Send messages: arrays of int64. The first array has the ranks to which they are sent."""
        if len(columns[0]):
            self._held.append(np.column_stack(columns))
            self._num_held += len(columns[0])
        if self._num_held >= self._most:
            self._write()

    def take(self, number: int) -> Iterator[tuple[np.ndarray, ...]]:
        """The messages to a range, a part at a time, as columns. Meanwhile messages can be sent to other ranges."""
        held = self._all_held()
        mine = held[:, 0] // self._width == number
        self._held, self._num_held = [held[~mine]], int(len(mine) - mine.sum())
        held = held[mine]
        if len(held):
            yield tuple(held.T)
        del held, mine
        for row, first, last in self._written.copy():
            if first <= number <= last:
                part = self._spool.gather(np.array([row + number - first])).values
                if len(part):
                    yield tuple(part.view(np.int64).reshape(-1, self._columns).T)

    def _all_held(self) -> np.ndarray:
        return np.concatenate([np.empty((0, self._columns), np.int64), *self._held])

    def _write(self) -> None:
        """Write all messages that are held: a row of the spool for each range from the first to the last of theirs."""
        held = self._all_held()
        self._held, self._num_held = [], 0
        number = held[:, 0] // self._width
        order = np.argsort(number, kind="stable")
        first, last = int(number[order[0]]), int(number[order[-1]])
        cuts = np.searchsorted(number[order], np.arange(first, last + 2))
        self._written.append((len(self._spool.offsets) - 1, first, last))
        self._spool.append(Ragged(held[order].reshape(-1).view(np.uint64), self._columns * cuts))


class SectionedMail:
    """Like `Mail`, for many ranges. The ranges of a section are separated when the section's turn comes.

    Ranges are taken in ascending or in descending order.
    """

    def __init__(self, num_rows: int, width: int, most: int, folder: Path, columns: int) -> None:
        self._make = partial(Mail, width, most, folder, columns)
        self._width, self._section, self._inner = width * FAN, -1, self._make()
        self._outer = mail(num_rows, self._width, most, folder, columns)

    def __enter__(self) -> SectionedMail:
        return self

    def __exit__(self, *error: object) -> None:
        self._inner.__exit__(*error)
        self._outer.__exit__(*error)

    def send(self, *columns: np.ndarray) -> None:
        """As `Mail` does."""
        inside = columns[0] // self._width == self._section
        self._inner.send(*(column[inside] for column in columns))
        self._outer.send(*(column[~inside] for column in columns))

    def take(self, number: int) -> Iterator[tuple[np.ndarray, ...]]:
        """As `Mail` does."""
        if number // FAN != self._section:
            self._section = number // FAN
            self._inner.__exit__()
            self._inner = self._make()
            for columns in self._outer.take(self._section):
                self._inner.send(*columns)
        yield from self._inner.take(number)


def mail(num_rows: int, width: int, most: int, folder: Path, columns: int) -> Mail | SectionedMail:
    """Mail for ranks below `num_rows`, in ranges of `width`; other parameters as those of `Mail`."""
    if num_rows <= FAN * width:
        return Mail(width, most, folder, columns)
    return SectionedMail(num_rows, width, most, folder, columns)


def are_set(words: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Whether the bits of some ranks are set: an array of bool."""
    return (np.asarray(words[ranks >> 6]) >> (ranks & 63).astype(np.uint64) & np.uint64(1)).astype(bool)


def set_within(words: np.ndarray, first: int, stop: int) -> np.ndarray:
    """The ranks from `first` on and before `stop` whose bits are set: int64, ascending."""
    base = first // 64 * 64
    some = np.asarray(words[base // 64 : -(-stop // 64)], "<u8").view(np.uint8)
    ranks = base + np.flatnonzero(np.unpackbits(some, bitorder="little"))
    return ranks[(ranks >= first) & (ranks < stop)]
