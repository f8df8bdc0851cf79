"""Marks: which keys the tables of an index may have, so that documents that are added are not looked up in vain.

Most features of most new documents are in no table. One Bloom filter for all segments shows that at once, whereas a
look into each segment waits for memory that no cache holds. The process that adds documents keeps the filter, and marks
what it adds. Older segments are marked one after another, the last first, as more queries come: to mark a key takes a
fraction of a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from neardup_gpu.kernels import bloom

from ..methods.finding.contract import SortedQueries
from ..records import dataclass
from .segments import Segment

BITS = 16
"""Bits per key, at least: see `kernels/bloom.py`."""

MOST_KEYS = 1 << 27
"""The largest number of keys that are marked for the tables of one name: they take 256 to 512 MB."""

MOST_GROWTH = 8
"""If more keys are expected, room is made for at most this many times the keys that are marked."""

WORTH = 16
"""Entries of a segment that are marked for each document that was looked up."""


@dataclass
class _BloomFilter:
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
    _of: dict[str, _BloomFilter] = field(default_factory=dict)

    def drop_absent(self, name: str, queries: SortedQueries, segments: Sequence[Segment]) -> tuple[SortedQueries, int]:
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
        bloom_filter = self._of.get(name)
        if bloom_filter is None:
            end = segments[-1].stop
            bloom_filter = self._of[name] = _BloomFilter(end, end, np.zeros((tables, 2), np.uint64))
        if not len(bloom_filter.words):  # there are too many keys
            return queries, number
        bloom_filter.worth += WORTH * queries.keys.shape[1]
        fresh = [each for each in segments if each.first >= bloom_filter.since and each.stop > bloom_filter.upto]
        while number and segments[number - 1].first >= bloom_filter.since:
            number -= 1
        while number and segments[number - 1].num_entries <= bloom_filter.worth:
            number -= 1
            bloom_filter.worth -= segments[number].num_entries
            fresh.append(segments[number])
        bloom_filter.upto = segments[-1].stop
        if number < len(segments):
            bloom_filter.since = segments[number].first
        self._mark(name, bloom_filter, fresh, segments[number:])
        if not len(bloom_filter.words):
            return queries, len(segments)
        nothing = np.empty((tables, 0), np.uint64)
        return SortedQueries(*bloom.cpu(bloom_filter.words, nothing, *queries)[1:]), number

    def _mark(self, name: str, bloom_filter: _BloomFilter, fresh: list[Segment], everything: Sequence[Segment]) -> None:
        """Mark the keys of new segments, or of all segments where there is too little room."""
        tables = len(bloom_filter.words)
        bloom_filter.keys += sum(each.keys(name).shape[1] for each in fresh)
        if BITS * bloom_filter.keys > 64 * bloom_filter.words.shape[1]:
            fresh, bloom_filter.keys = list(everything), sum(each.keys(name).shape[1] for each in everything)
            if tables * bloom_filter.keys > MOST_KEYS:
                bloom_filter.words = bloom_filter.words[:0]
                return
            expected = min(max(bloom_filter.keys, self.expected), MOST_GROWTH * bloom_filter.keys, MOST_KEYS // tables)
            words = 1 << max(1, (BITS * expected - 1).bit_length() - 6)
            bloom_filter.words = np.zeros((tables, words), np.uint64)
        nothing = np.empty((tables, 0), np.uint64), np.empty((tables, 0), np.uint32), np.zeros(tables, np.int64)
        for each in fresh:
            bloom.cpu(bloom_filter.words, each.keys(name), *nothing)
