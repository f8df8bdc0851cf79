"""Marks: which keys the tables of an index may have, so that documents that are added are not looked up in vain.

Most features of most new documents are in no table. A filter of Bloom's for all segments together tells that at once,
where each segment would be a look into memory that no cache holds. Whoever adds keeps it: all that is added is marked
as it comes. Segments that were there before are marked one after another, the last first, as more is asked: to mark a
key takes a fraction of a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neardup_gpu.kernels import probe

from .segments import Asked, Segment

BITS = 16
"""For each key, at least, see `probe.mark`."""

MOST_KEYS = 1 << 27
"""Keys that are marked, of the tables of a name: in 256 to 512 MB."""

MOST_GROWTH = 8
"""Keys that room is made for, at most, for each that is marked, where more are expected."""

WORTH = 16
"""Entries of a segment that are marked for each document that was looked up."""


@dataclass
class _Marked:
    """The marks of the tables of a name, for the segments of a run of sequence numbers."""

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
        Keys of each table that will have to be marked, at most, as far as that is known.
    """

    expected: int = 0
    _of: dict[str, _Marked] = field(default_factory=dict)

    def look(self, name: str, asked: Asked, segments: Sequence[Segment]) -> tuple[Asked, int]:
        """What is asked of the tables of a name but those keys that are in none of the last segments.

        Parameters
        ----------
        name : str
        asked :
            What `kernels/probe.py` makes of keys.
        segments : sequence of Segment
            All of the index. Documents that were added since the last look are the last, in segments of their own or in
            merged ones.

        Returns
        -------
        asked
            What is left.
        number : int
            Of the first segment that it is enough to ask for that.
        """
        if not segments:
            return asked, 0
        tables, number = len(asked[0]), len(segments)
        marked = self._of.get(name)
        if marked is None:
            end = segments[-1].stop
            marked = self._of[name] = _Marked(end, end, np.zeros((tables, 2), np.uint64))
        if not len(marked.words):  # there are too many keys
            return asked, number
        marked.worth += WORTH * asked[0].shape[1]
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
            return asked, len(segments)
        return probe.marked(asked, marked.words), number

    def _mark(self, name: str, marked: _Marked, fresh: list[Segment], everything: Sequence[Segment]) -> None:
        """Mark the keys of new segments, or of all of them where there is too little room."""
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
        for each in fresh:
            probe.mark(each.keys(name), marked.words)
