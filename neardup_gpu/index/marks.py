"""Marks: which keys the tables of an index may have, so that documents that are added are not looked up in vain.

Most features of most new documents are in no table. One Bloom filter for all segments shows that at once, whereas a
look into each segment waits for memory that no cache holds. The process that adds documents keeps the filter, and marks
what it adds. Older segments are marked one after another, the last first, as more queries come: to mark a key takes a
fraction of a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neardup_gpu.kernels import bloom

from .segments import Segment, SortedQueries

BITS = 16
"""Bits per key, at least: see `kernels/bloom.py`."""

MOST_KEYS = 1 << 27
"""The largest number of keys that are marked for the tables of one name: they take 256 to 512 MB."""

MOST_GROWTH = 8
"""If more keys are expected, room is made for at most this many times the keys that are marked."""

WORTH = 16
"""Entries of a segment that are marked for each document that was looked up."""


@dataclass
class _Marked:
    """The marks of the tables of one name, for segments of neighbouring sequence numbers."""

    since: int
    upto: int
    words: np.ndarray
    keys: int = 0  # of each table
    worth: int = 0


@dataclass
class Marks:
    """The marks of an index that documents are added to; empty at first.

    Parameters
    ----------
    expected : int
        The largest known number of keys per table that will have to be marked.
    """

    expected: int = 0
    _of: dict[str, _Marked] = field(default_factory=dict)

    def look(self, name: str, queries: SortedQueries, segments: Sequence[Segment]) -> tuple[SortedQueries, int]:
        """Leave out the keys that none of the last segments has in its tables of a name.

        Parameters
        ----------
        name : str
        queries : SortedQueries
        segments : sequence of Segment
            All segments of the index. Documents that were added since the last look are in the last segments.

        Returns
        -------
        queries : SortedQueries
            The queries that are left.
        number : int
            The first segment for which these queries are enough; earlier segments need all queries.
        """
        if not segments:
            return queries, 0
        tables, number = len(queries.keys), len(segments)
        marked = self._of.get(name)
        if marked is None:
            end = segments[-1].stop
            marked = self._of[name] = _Marked(end, end, np.zeros((tables, 2), np.uint64))
        if not len(marked.words):  # there are too many keys
            return queries, number
        marked.worth += WORTH * queries.keys.shape[1]
        fresh = [each for each in segments if each.first >= marked.since and each.stop > marked.upto]
        while number and segments[number - 1].first >= marked.since:
            number -= 1
        while number and segments[number - 1].num_entries <= marked.worth:
            number -= 1
            marked.worth -= segments[number].num_entries
            fresh.append(segments[number])
        marked.upto = segments[-1].stop
        if number < len(segments):
            marked.since = segments[number].first
        self._mark(name, marked, fresh, segments[number:])
        if not len(marked.words):
            return queries, len(segments)
        nothing = np.empty((tables, 0), np.uint64)
        return SortedQueries(*bloom.cpu(marked.words, nothing, *queries)[1:]), number

    def _mark(self, name: str, marked: _Marked, fresh: list[Segment], everything: Sequence[Segment]) -> None:
        """Mark the keys of new segments, or of all segments where there is too little room."""
        tables = len(marked.words)
        marked.keys += sum(each.keys(name).shape[1] for each in fresh)
        if BITS * marked.keys > 64 * marked.words.shape[1]:
            fresh, marked.keys = list(everything), sum(each.keys(name).shape[1] for each in everything)
            if tables * marked.keys > MOST_KEYS:
                marked.words = marked.words[:0]
                return
            expected = min(max(marked.keys, self.expected), MOST_GROWTH * marked.keys, MOST_KEYS // tables)
            words = 1 << max(1, (BITS * expected - 1).bit_length() - 6)
            marked.words = np.zeros((tables, words), np.uint64)
        nothing = np.empty((tables, 0), np.uint64), np.empty((tables, 0), np.uint32), np.zeros(tables, np.int64)
        for each in fresh:
            bloom.cpu(marked.words, each.keys(name), *nothing)
