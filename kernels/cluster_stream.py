"""Greedy clusters of a stream of sketches: each joins the cluster whose representative it resembles most.

A sketch is the s smallest elements of a document. Sketches are taken in turn. For a sketch M and a representative R let
u be the s smallest of M u R; their resemblance is |u n M n R| / |u|. M joins the cluster of the greatest resemblance
that is at least the threshold; among equal clusters it joins the earliest. If there is none, M founds a cluster. An
empty sketch is in no cluster. The order of the sketches is part of the definition.

A representative is the founder's sketch. If it is `popular`, it is instead the m elements that most members' sketches
have, and the smaller elements first where equally many have them. m is the median number of elements of the members'
sketches, the lower one of two. Without this bound, elements of single members would fill a representative up to s, and
no member of a cluster of short documents would resemble it.

The s smallest of a union of sketches are MIN_s of the union of documents, so the resemblance to a founder's sketch is
unbiased. A popular representative is MIN_s of no document, and no theorem holds for the resemblance to it.

Two filters find the clusters that a sketch of n elements may join. Let c be the least number of elements that it must
share with the representative.

- Rarest elements: M shares one of any n - c + 1 of its elements with R, so it looks up the rarest ones in an inverted
  index of representatives.
- Bits: each element flips one bit of a bitmap, so the bitmaps of M and R differ in at most |M ^ R| bits, and
  |M n R| = (|M| + |R| - |M ^ R|) / 2 is at most (|M| + |R| - differing bits) / 2.

If the lists of the rarest elements have more entries than there are clusters, they are not read: the bitmaps of all
clusters are compared.

Source: Broder 1997, section 4.4; bitmaps after Sandes, Teodoro and Melo 2017, "Bitmap filter".
Cost: for each sketch at most one step per cluster, of some nanoseconds, and 2 s steps for each cluster that passes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ._bits import FACTOR, count_bits
from ._bounds import least_shared
from ._cpu import Rare, jit
from ._launch import check_rows
from .groups import EMPTY

_FIRST = 1 << 10  # places in a table that is still empty
_ROWS = 1 << 10  # sketches for which there is room before they are looked at
_CLUSTERS, _NODES, _ELEMENTS, _COUNTED, _STEPS = range(5)  # places of the numbers that change


def reference(sketches, threshold, popular):
    """Clusters, by comparing all representatives.

    Parameters
    ----------
    sketches : array of uint64, shape (rows, s)
        Each row ascending, filled up with `EMPTY`.
    threshold : float
        Least resemblance of a member to the representative, in (0, 1].
    popular : bool
        Whether representatives are the commonest elements, or the founders' sketches.

    Returns
    -------
    cluster : array of int64, shape (rows,)
        Numbers in the order of founding; -1 for empty sketches.
    shared, size : arrays of int64, shape (rows,)
        The resemblance to the representative at joining is shared / size; both are a founder's number of elements.
    representatives : array of uint64, shape (clusters, s)
        As they are in the end: each ascending, filled up with `EMPTY`.
    """
    s = sketches.shape[1]
    found, representatives, counts, lengths = [], [], [], []
    for row in sketches.tolist():
        mine = {element for element in row if element != int(EMPTY)}
        best, shared, size = -1, len(mine), len(mine)
        for number, theirs in enumerate(representatives):
            union = sorted(mine | theirs)[:s]
            common = len(mine & theirs & set(union))
            if mine and common / len(union) >= threshold and (best < 0 or common * size > shared * len(union)):
                best, shared, size = number, common, len(union)
        if mine and best < 0:
            best = len(representatives)
            representatives.append(mine)
            counts.append(Counter())
            lengths.append([])
        if mine and popular:
            each = counts[best]
            each.update(mine)
            lengths[best].append(len(mine))
            median = sorted(lengths[best])[(len(lengths[best]) - 1) // 2]
            representatives[best] = set(sorted(each, key=lambda element: (-each[element], element))[:median])
        found.append((best, shared, size))
    columns = np.array(found, np.int64).reshape(-1, 3)
    table = np.full((len(representatives), s), EMPTY)
    for number, elements in enumerate(representatives):
        table[number, : len(elements)] = sorted(elements)
    return *(columns[:, column].copy() for column in range(3)), table


def cpu(sketches, threshold, popular):
    """As `reference`, one sketch after another by one thread: only clusters that a sketch may join are compared."""
    stream = Stream(sketches.shape[1], threshold, popular)
    return *stream.add(sketches), stream.representatives.copy()


class Stream:
    """Clusters so far, and an inverted index from elements to clusters.

    The index is a table of elements, each with a list of the clusters whose representatives have the element, or once
    had it.

    Parameters
    ----------
    s : int
        Elements of a sketch.
    threshold : float
        In (0, 1].
    popular : bool
        Whether representatives are the commonest elements, or the founders' sketches.
    """

    def __init__(self, s, threshold, popular):
        self.s, self.popular = s, popular
        self._numbers = np.zeros(_STEPS + 1, np.int64)
        self._least = np.array([0, *(least_shared(size, threshold) for size in range(1, s + 1))], np.int64)
        self._elements, self._heads, self._lengths = np.full(_FIRST, EMPTY), *np.zeros((2, _FIRST), np.uint32)
        self._nodes = np.zeros((0, 2), np.uint32)  # cluster, and the node after it in the list, 0 for none
        self._representatives = np.zeros((0, s), np.uint64)
        self._bits = np.zeros((0, max(1, 1 << (s - 1).bit_length() >> 6)), np.uint64)
        self._sizes, self._hits, self._touched = np.zeros(0, np.int64), *np.zeros((2, 0), np.int32)
        self._num_elements = np.zeros(0, np.int32)  # of each representative
        # Of popular representatives: the s commonest elements, their counts, and how many members have each length
        self._pool, self._counts, self._members = np.zeros((0, s), np.uint64), *np.zeros((2, 0, s), np.uint32)
        self._counted = _empty_counts(_FIRST)

    @property
    def num_clusters(self):
        """Number of clusters so far."""
        return int(self._numbers[_CLUSTERS])

    @property
    def num_steps(self):
        """Entries of lists and bitmaps that were looked at so far, and elements that were compared."""
        return int(self._numbers[_STEPS])

    @property
    def representatives(self):
        """Elements of each representative, ascending, filled up with `EMPTY`: uint64, shape (clusters, s)."""
        return self._representatives[: self.num_clusters]

    @property
    def sizes(self):
        """Members of each cluster: int64, shape (clusters,)."""
        return self._sizes[: self.num_clusters]

    def add(self, sketches):
        """Put more sketches into clusters: cluster, shared and size of each, as `reference` says."""
        check_rows(max(self._numbers[_NODES], self._numbers[_COUNTED]) + sketches.size + 1, "elements of clusters")
        found = np.empty((len(sketches), 3), np.int64)
        for first in range(0, len(sketches), _ROWS):
            self._add(sketches[first : first + _ROWS], found[first : first + _ROWS])
        return tuple(found[:, column].copy() for column in range(3))

    def _add(self, sketches, found):
        more, clusters = sketches.size, self.num_clusters + len(sketches)
        self._nodes = _with_room(self._nodes, int(self._numbers[_NODES]) + more + 1)
        self._representatives, self._bits, self._num_elements = (
            _with_room(array, clusters) for array in (self._representatives, self._bits, self._num_elements)
        )
        self._sizes, self._hits, self._touched = (
            _with_room(array, clusters) for array in (self._sizes, self._hits, self._touched)
        )
        length = _table_length(self._numbers[_ELEMENTS] + more, len(self._elements))
        if length > len(self._elements):
            tables = np.full(length, EMPTY), *np.zeros((2, length), np.uint32)
            _move(self._elements, self._heads, self._lengths, *tables)
            self._elements, self._heads, self._lengths = tables
        if self.popular:
            self._pool, self._counts, self._members = (
                _with_room(array, clusters) for array in (self._pool, self._counts, self._members)
            )
            length = _table_length(self._numbers[_COUNTED] + more, len(self._counted[0]))
            if length > len(self._counted[0]):
                counted = _empty_counts(length)
                _move_counts(self._counted, counted)
                self._counted = counted
        _cluster(
            np.ascontiguousarray(sketches),
            self._least,
            self.popular,
            self._numbers,
            (self._elements, self._heads, self._lengths),
            self._nodes,
            (self._representatives, self._bits, self._num_elements),
            (self._pool, self._counts, self._members),
            self._counted,
            self._sizes,
            (self._hits, self._touched),
            found,
        )


def _with_room(array, rows):
    """The array if it has that many rows, or a copy with twice as many."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _table_length(number, length):
    """Places for a table of at most `number` keys, at least half of them free."""
    return max(length, 1 << (2 * int(number) - 1).bit_length())


def _empty_counts(length):
    """A table from (element, cluster) to the number of members with the element, and whether the index has it."""
    return np.full(length, EMPTY), *np.zeros((2, length), np.uint32), np.zeros(length, np.uint8)


@jit()
def _place(elements, element):
    """Return where a table has an element, or would have it. Low bits decide, as sketches have small elements."""
    mask = np.uint64(len(elements) - 1)
    at = element & mask
    while elements[at] != element and elements[at] != EMPTY:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@jit()
def _move(elements, heads, lengths, new_elements, new_heads, new_lengths):
    """Put all of a table into a larger one."""
    for at in range(len(elements)):
        if elements[at] != EMPTY:
            to = _place(new_elements, elements[at])
            new_elements[to], new_heads[to], new_lengths[to] = elements[at], heads[at], lengths[at]


@jit()
def _place_of_count(elements, clusters, element, cluster):
    """Return where a table has the count of an element in a cluster, or would have it."""
    mask = np.uint64(len(elements) - 1)
    mixed = (np.uint64(element) + np.uint64(cluster) * FACTOR) * FACTOR
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while elements[at] != EMPTY and (elements[at] != element or np.int64(clusters[at]) != cluster):
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@jit(Rare("(uint64[::1], uint32[::1], uint32[::1], uint8[::1]), (uint64[::1], uint32[::1], uint32[::1], uint8[::1])"))
def _move_counts(old, new):
    """Put all counts into a larger table."""
    elements, clusters, counts, listed = old
    new_elements, new_clusters, new_counts, new_listed = new
    for at in range(len(elements)):
        if elements[at] != EMPTY:
            to = _place_of_count(new_elements, new_clusters, elements[at], np.int64(clusters[at]))
            new_elements[to], new_clusters[to] = elements[at], clusters[at]
            new_counts[to], new_listed[to] = counts[at], listed[at]


@jit()
def _compared(mine, size, theirs):
    """(|u n M n R|, |u|): two ascending rows, merged up to their s smallest elements."""
    shared, union, i, j = 0, 0, 0, 0
    s = len(mine)
    while union < s and (i < size or (j < s and theirs[j] != EMPTY)):
        a = mine[i] if i < size else EMPTY
        b = theirs[j] if j < s else EMPTY
        shared += a == b
        i += a <= b
        j += b <= a
        union += 1
    return shared, union


@jit()
def _length(elements):
    """Number of elements of a row that is filled up with `EMPTY`."""
    s = len(elements)
    return s if elements[s - 1] != EMPTY else np.searchsorted(elements, EMPTY)


@jit()
def _flip(elements, size, bits):
    """Make the bitmap of some elements: each flips the bit that its low bits name."""
    bits[:] = np.uint64(0)
    for k in range(size):
        bit = elements[k] & np.uint64(64 * len(bits) - 1)
        bits[bit >> np.uint64(6)] ^= np.uint64(1) << (bit & np.uint64(63))


@jit()
def _most_shared(mine, n, theirs, length):
    """Elements that two sketches of n and `length` elements have in common at most, by their bitmaps."""
    differing = np.uint64(0)
    for word in range(len(mine)):
        differing += count_bits(mine[word] ^ theirs[word])
    return min(n, length, (n + length - np.int64(differing)) >> 1)


@jit()
def _keep_commonest(elements, counts, number, room, kept, kept_counts):
    """Write the `room` commonest of some ascending elements, the smaller of two equally common ones; return their
    number."""
    least, left = np.uint32(0), np.int64(room)  # larger counts are kept, and the first `left` elements with this one
    if number > room:
        least = np.sort(counts[:number])[number - room]
        for k in range(number):
            left -= counts[k] > least
    size = 0
    for k in range(number):
        if counts[k] > least or (counts[k] == least and left > 0):
            left -= counts[k] == least
            kept[size], kept_counts[size] = elements[k], counts[k]
            size += 1
    return size


@jit()
def _update_pool(elements, counts, size, pool, pool_counts):
    """Bring the s commonest elements of a cluster up to date after a member came; return how many there are.

    No other element can be among them: its count is as it was, and s others came before it whose counts are no less.
    """
    s = len(pool)
    every, tally = np.empty(2 * s, np.uint64), np.empty(2 * s, np.uint32)
    union, i, j = 0, 0, 0
    while i < size or (j < s and pool[j] != EMPTY):
        a = elements[i] if i < size else EMPTY
        b = pool[j] if j < s else EMPTY
        every[union], tally[union] = min(a, b), counts[i] if a <= b else pool_counts[j]
        i += a <= b
        j += b <= a
        union += 1
    kept = _keep_commonest(every, tally, union, s, pool, pool_counts)
    pool[kept:] = EMPTY
    return kept


@jit()
def _lower_median(members, number):
    """The lower median of `number` lengths; members[i] of them are i + 1."""
    length, below = 0, np.int64(members[0])
    while 2 * below < number:
        length += 1
        below += np.int64(members[length])
    return length + 1


@jit()
def _list(numbers, table, nodes, element, cluster):
    """Put a cluster into the list of an element."""
    elements, heads, lengths = table
    at = _place(elements, element)
    if elements[at] == EMPTY:
        elements[at] = element
        numbers[_ELEMENTS] += 1
    numbers[_NODES] += 1
    node = np.uint32(numbers[_NODES])
    nodes[node, 0], nodes[node, 1] = cluster, heads[at]
    heads[at] = node
    lengths[at] += 1


@jit(
    Rare(
        "uint64[:, ::1], int64[::1], boolean, int64[::1], (uint64[::1], uint32[::1], uint32[::1]), uint32[:, ::1], "
        "(uint64[:, ::1], uint64[:, ::1], int32[::1]), (uint64[:, ::1], uint32[:, ::1], uint32[:, ::1]), "
        "(uint64[::1], uint32[::1], uint32[::1], uint8[::1]), int64[::1], (int32[::1], int32[::1]), int64[:, ::1]"
    )
)
def _cluster(
    sketches, least, popular, numbers, table, nodes, representatives, pools, counted, sizes, marks, found
):  # fmt: skip
    """Put sketches into clusters; there is room for what they add, and `numbers` are brought up to date."""
    elements, heads, lengths = table
    representatives, bits, num_elements = representatives
    hits, touched = marks  # hits are all 0 between sketches
    s = sketches.shape[1]
    places, rarity, counts = np.empty(s, np.int64), np.empty(s, np.uint32), np.empty(s, np.uint32)
    my_bits, before = np.empty(bits.shape[1], np.uint64), np.empty(s, np.uint64)
    for row in range(len(sketches)):
        mine, n = sketches[row], _length(sketches[row])
        best, shared, size = -1, n, n
        if n == 0:
            found[row, 0], found[row, 1], found[row, 2] = best, shared, size
            continue
        for k in range(n):
            places[k] = _place(elements, mine[k])
            rarity[k] = lengths[places[k]]
        _flip(mine, n, my_bits)
        needed, num_entries = least[n], 0
        order = np.argsort(rarity[:n])[: n - needed + 1]
        for k in order:
            num_entries += np.int64(rarity[k])
        by_lists = num_entries <= numbers[_CLUSTERS]
        num_candidates = 0 if by_lists else numbers[_CLUSTERS]
        for k in order[: len(order) if by_lists else 0]:
            node = heads[places[k]]
            while node:
                cluster = np.int64(nodes[node, 0])
                if hits[cluster] == 0:
                    touched[num_candidates] = cluster
                    num_candidates += 1
                hits[cluster] += 1
                node = nodes[node, 1]
        numbers[_STEPS] += num_candidates + (num_entries if by_lists else 0)
        for k in range(num_candidates):
            cluster = np.int64(touched[k]) if by_lists else k
            length = np.int64(num_elements[cluster])
            most = _most_shared(my_bits, n, bits[cluster], length)  # in common; more make the union smaller
            if by_lists:
                most = min(most, hits[cluster] + needed - 1)
                hits[cluster] = 0
            union = min(np.int64(s), max(n + length - most, n, length))
            if most < least[union] or (best >= 0 and most * size < shared * union):
                continue
            common, union = _compared(mine, n, representatives[cluster])
            numbers[_STEPS] += union
            if common >= least[union]:
                mine_first = common * size > shared * union
                if best < 0 or mine_first or (common * size == shared * union and cluster < best):
                    best, shared, size = cluster, common, union
        founds = best < 0
        if founds:
            best = numbers[_CLUSTERS]
            numbers[_CLUSTERS] += 1
        found[row, 0], found[row, 1], found[row, 2] = best, shared, size
        sizes[best] += 1
        if popular:
            count_elements, count_clusters, count_of, listed = counted
            pool, pool_counts, members = pools
            for k in range(n):
                at = _place_of_count(count_elements, count_clusters, mine[k], best)
                if count_elements[at] == EMPTY:
                    count_elements[at], count_clusters[at] = mine[k], best
                    numbers[_COUNTED] += 1
                count_of[at] += 1
                counts[k] = count_of[at]
            if founds:
                pool[best] = EMPTY
                representatives[best] = EMPTY
            members[best, n - 1] += 1
            kept = _update_pool(mine, counts, n, pool[best], pool_counts[best])
            theirs = representatives[best]
            before[:] = theirs
            median = _lower_median(members[best], sizes[best])
            length = _keep_commonest(pool[best], pool_counts[best], kept, median, theirs, counts)
            theirs[length:] = EMPTY
            earlier = 0
            for k in range(length):
                while earlier < s and before[earlier] < theirs[k]:
                    earlier += 1
                if earlier == s or before[earlier] != theirs[k]:
                    at = _place_of_count(count_elements, count_clusters, theirs[k], best)
                    if listed[at] == 0:
                        listed[at] = 1
                        _list(numbers, table, nodes, theirs[k], best)
            num_elements[best] = length
            _flip(theirs, length, bits[best])
        elif founds:
            representatives[best], bits[best], num_elements[best] = mine, my_bits, n
            for k in range(n):
                _list(numbers, table, nodes, mine[k], best)
