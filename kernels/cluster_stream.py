"""Greedy clusters of a stream of sketches: each joins the cluster whose representative it resembles most.

A sketch is the s smallest elements of a document. Sketches are taken in turn. For a sketch M and a representative R let
u be the s smallest of M u R; their resemblance is |u n M n R| / |u|. M joins the cluster of the greatest resemblance
that is at least the threshold, of equal ones the earliest, or founds a cluster where there is none. The representative
is the founder's sketch; or, of `popular` ones, the s elements that most members' sketches have, of equally many the
smaller. An empty sketch is in no cluster. The order of the sketches is part of the definition.

The s smallest of a union of sketches are MIN_s of the union of documents, so the resemblance to a founder's sketch is
unbiased. A popular representative is MIN_s of no document, and no theorem holds for the resemblance to it.

Source: Broder 1997, section 4.4.
Cost: of each sketch, the clusters that hold one of its rarest elements are compared, 2 s steps each. A sketch of n
elements that reaches the threshold has at least c of them in common with the representative, so one of any n - c + 1.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ._bounds import least_shared
from ._cpu import Rare, jit
from ._launch import check_rows
from .groups import EMPTY

_FIRST = 1 << 10  # places in a table that is still empty
_ROWS = 1 << 10  # sketches for which there is room before they are looked at


def reference(sketches, threshold, popular):
    """Clusters, by comparing all representatives.

    Parameters
    ----------
    sketches : array of uint64, shape (rows, s)
        Each row ascending, filled up with `EMPTY`.
    threshold : float
        Least resemblance of a member to the representative, in (0, 1].
    popular : bool
        Whether representatives are the commonest elements, or the first members.

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
    found, representatives, counts = [], [], []
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
        if mine:
            counts[best].update(mine)
        if mine and popular:
            each = counts[best]
            representatives[best] = set(sorted(each, key=lambda element: (-each[element], element))[:s])
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

    The index is a table of elements, each with a list of nodes: a cluster, and how many of its members' sketches have
    the element. Of the clusters of first members only the founders' elements are in it.

    Parameters
    ----------
    s : int
        Elements of a sketch.
    threshold : float
        In (0, 1].
    popular : bool
        Whether representatives are the commonest elements, or the first members.
    """

    def __init__(self, s, threshold, popular):
        self.s, self.popular, self.num_clusters, self.num_nodes, self.num_elements = s, popular, 0, 0, 0
        self._least = np.array([0, *(least_shared(size, threshold) for size in range(1, s + 1))], np.int64)
        self._elements, self._heads, self._lengths = np.full(_FIRST, EMPTY), *np.zeros((2, _FIRST), np.uint32)
        self._nodes = np.zeros((0, 3), np.uint32)  # cluster, count, and the node after it in the list, 0 for none
        self._representatives, self._counts = np.zeros((0, s), np.uint64), np.zeros((0, s), np.uint32)
        self._sizes, self._hits, self._touched = np.zeros(0, np.int64), *np.zeros((2, 0), np.int32)

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
        check_rows(self.num_nodes + sketches.size + 1, "elements of clusters")
        found = np.empty((len(sketches), 3), np.int64)
        for first in range(0, len(sketches), _ROWS):
            self._add(sketches[first : first + _ROWS], found[first : first + _ROWS])
        return tuple(found[:, column].copy() for column in range(3))

    def _add(self, sketches, found):
        more = sketches.size
        self._nodes = _with_room(self._nodes, self.num_nodes + more + 1)
        clusters = self.num_clusters + len(sketches)
        self._representatives, self._counts = (
            _with_room(array, clusters) for array in (self._representatives, self._counts)
        )
        self._sizes, self._hits, self._touched = (
            _with_room(array, clusters) for array in (self._sizes, self._hits, self._touched)
        )
        if 2 * (self.num_elements + more) > len(self._elements):
            length = 1 << (2 * (self.num_elements + more) - 1).bit_length()
            tables = np.full(length, EMPTY), *np.zeros((2, length), np.uint32)
            _move(self._elements, self._heads, self._lengths, *tables)
            self._elements, self._heads, self._lengths = tables
        self.num_clusters, self.num_nodes, self.num_elements = _cluster(
            np.ascontiguousarray(sketches),
            self._least,
            self.popular,
            (self.num_clusters, self.num_nodes, self.num_elements),
            (self._elements, self._heads, self._lengths),
            self._nodes,
            self._representatives,
            self._counts,
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


@jit()
def _place(elements, element):
    """Where a table has an element, or would have it. Sketches have small elements, so their low bits say."""
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
def _commonest(elements, counts, size, theirs, their_counts):
    """Put the s commonest of a representative's elements and a member's into the representative's row.

    No other element can be among them: its count is as it was, and it was behind s others whose counts are no less.
    """
    s = len(theirs)
    every, tally = np.empty(2 * s, np.uint64), np.empty(2 * s, np.uint32)
    union, i, j = 0, 0, 0
    while i < size or (j < s and theirs[j] != EMPTY):
        a = elements[i] if i < size else EMPTY
        b = theirs[j] if j < s else EMPTY
        every[union], tally[union] = min(a, b), counts[i] if a <= b else their_counts[j]
        i += a <= b
        j += b <= a
        union += 1
    least = np.uint32(0)  # all commoner ones stay, and of those as common the first `room`
    room = s
    if union > s:
        least = np.partition(tally[:union], union - s)[union - s]
        for k in range(union):
            room -= tally[k] > least
    kept = 0
    for k in range(union):
        if tally[k] > least or (tally[k] == least and room > 0):
            room -= tally[k] == least
            theirs[kept], their_counts[kept] = every[k], tally[k]
            kept += 1
    theirs[kept:] = EMPTY


@jit(
    Rare(
        "uint64[:, ::1], int64[::1], boolean, (int64, int64, int64), (uint64[::1], uint32[::1], uint32[::1]), "
        "uint32[:, ::1], uint64[:, ::1], uint32[:, ::1], int64[::1], (int32[::1], int32[::1]), int64[:, ::1]"
    )
)
def _cluster(sketches, least, popular, numbers, table, nodes, representatives, counts, sizes, marks, found):
    """Put sketches into clusters; there is room for what they add. The numbers of clusters, nodes and elements then."""
    num_clusters, num_nodes, num_elements = numbers
    elements, heads, lengths = table
    hits, touched = marks  # hits are all 0 between sketches
    s = sketches.shape[1]
    places, rarity, new_counts = np.empty(s, np.int64), np.empty(s, np.uint32), np.empty(s, np.uint32)
    for row in range(len(sketches)):
        mine, n = sketches[row], 0
        while n < s and mine[n] != EMPTY:
            places[n] = _place(elements, mine[n])
            rarity[n] = lengths[places[n]]
            n += 1
        best, shared, size = -1, n, n
        if n == 0:
            found[row, 0], found[row, 1], found[row, 2] = best, shared, size
            continue
        needed, num_touched = least[n], 0
        order = np.argsort(rarity[:n])
        for k in range(n - needed + 1):
            node = heads[places[order[k]]]
            while node:
                cluster = np.int64(nodes[node, 0])
                if hits[cluster] == 0:
                    touched[num_touched] = cluster
                    num_touched += 1
                hits[cluster] += 1
                node = nodes[node, 2]
        for k in range(num_touched):
            cluster = np.int64(touched[k])
            most = min(np.int64(n), hits[cluster] + needed - 1)  # elements in common; more make the union smaller
            hits[cluster] = 0
            theirs = representatives[cluster]
            length = s if theirs[s - 1] != EMPTY else np.searchsorted(theirs, EMPTY)
            union = min(np.int64(s), max(n + length - most, np.int64(n), length))
            if most < least[union] or (best >= 0 and most * size < shared * union):
                continue
            common, union = _compared(mine, n, theirs)
            if common >= least[union]:
                mine_first = common * size > shared * union
                if best < 0 or mine_first or (common * size == shared * union and cluster < best):
                    best, shared, size = cluster, common, union
        founds = best < 0
        if founds:
            best = num_clusters
            num_clusters += 1
            representatives[best] = mine
            sizes[best] = 0
            counts[best] = 1
        sizes[best] += 1
        found[row, 0], found[row, 1], found[row, 2] = best, shared, size
        if not founds and not popular:
            continue
        for k in range(n):
            at = places[k]
            if elements[at] != mine[k]:  # new when it was looked for
                at = _place(elements, mine[k])
            if elements[at] == EMPTY:
                elements[at] = mine[k]
                num_elements += 1
            node = np.uint32(0) if founds else heads[at]
            while node and nodes[node, 0] != best:
                node = nodes[node, 2]
            if node == 0:
                num_nodes += 1
                node = np.uint32(num_nodes)
                nodes[node, 0], nodes[node, 1], nodes[node, 2] = best, 0, heads[at]
                heads[at] = node
                lengths[at] += 1
            nodes[node, 1] += 1
            new_counts[k] = nodes[node, 1]
        if not founds:
            _commonest(mine, new_counts, n, representatives[best], counts[best])
    return num_clusters, num_nodes, num_elements
