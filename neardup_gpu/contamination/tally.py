"""Count, for each target, its longest run, the share that runs cover, and the documents."""

from __future__ import annotations

import numpy as np

from ..data import ranges
from ..records import dataclass
from .cutting import united

LONG = 13
"""The tokens of the n-grams of GPT-3, whose documents are counted."""

SHORT = 8
"""The tokens of the n-grams of Llama 3 and Tulu 3."""


@dataclass
class Tally:
    """Hold the counts of each target.

    Tokens of all targets are numbered one after another; target i begins at `offsets[i]`. A target shorter than an
    n-gram has one n-gram, all of it.

    Parameters
    ----------
    offsets : array of int64, shape (targets + 1,)
    shorts, longs : arrays of int64, shape (targets,)
        The tokens of an n-gram of either kind, at most the size of the target.
    longest, documents, most : arrays of int64, shape (targets,)
        The tokens of the longest run, the documents with a run, and the most tokens that runs of `shorts` tokens or
        more cover in one document.
    covered : array of bool
        Whether each token lies in a run of at least `shorts` tokens.
    changes : array of int32
        The documents with the n-gram of `longs` tokens that begins at each token, less those of the token before.
    """

    offsets: np.ndarray
    shorts: np.ndarray
    longs: np.ndarray
    longest: np.ndarray
    documents: np.ndarray
    most: np.ndarray
    covered: np.ndarray
    changes: np.ndarray

    @classmethod
    def of(cls, sizes: np.ndarray) -> Tally:
        """Return the tally before any run is added; `sizes` has the tokens of each target."""
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        longest, documents, most = (np.zeros(len(sizes), np.int64) for _ in range(3))
        covered, changes = np.zeros(offsets[-1], bool), np.zeros(offsets[-1] + 1, np.int32)
        return cls(
            offsets, np.minimum(sizes, SHORT), np.minimum(sizes, LONG), longest, documents, most, covered, changes
        )

    def add(self, document: np.ndarray, target: np.ndarray, place: np.ndarray, length: np.ndarray) -> None:
        """Add all runs of some documents."""
        np.maximum.at(self.longest, target, length)
        number = len(self.documents)
        pairs = np.sort(document * number + target)
        new = np.append(True, pairs[1:] > pairs[:-1])[: len(pairs)]
        self.documents += np.bincount(pairs[new] % number, minlength=number)
        runs = length >= self.shorts[target]
        owner, pair, begin, end = _united(document[runs], target[runs], place[runs], (place + length)[runs])
        self.covered[ranges(self.offsets[owner] + begin, end - begin)] = True
        if len(pair):
            tokens = np.bincount(pair, end - begin).astype(np.int64)
            np.maximum.at(self.most, owner[np.searchsorted(pair, np.arange(len(tokens)))], tokens)
        runs = length >= self.longs[target]
        last = (place + length - self.longs[target] + 1)[runs]
        owner, _, begin, end = _united(document[runs], target[runs], place[runs], last)
        np.add.at(self.changes, self.offsets[owner] + begin, 1)
        np.add.at(self.changes, self.offsets[owner] + end, -1)

    def rarest(self) -> np.ndarray:
        """Return how many documents have the rarest of each target's long n-grams that any document has; 0 if none."""
        frequency = np.cumsum(self.changes[:-1], dtype=np.int32)
        frequency[frequency == 0] = np.iinfo(np.int32).max
        found = _reduced(np.minimum, frequency, self.offsets, np.iinfo(np.int32).max)
        found[found == np.iinfo(np.int32).max] = 0
        return found.astype(np.int64)

    def covered_short(self) -> np.ndarray:
        """Return the tokens of each target in runs of at least `shorts` tokens, whatever the documents."""
        return _reduced(np.add, self.covered.astype(np.int32), self.offsets, 0).astype(np.int64)

    def covered_long(self) -> np.ndarray:
        """Return the tokens of each target in runs of at least `longs` tokens, whatever the documents."""
        begins = np.flatnonzero(np.cumsum(self.changes[:-1], dtype=np.int32))
        target = np.searchsorted(self.offsets, begins, side="right") - 1
        owner, _, begin, end = _united(np.zeros_like(target), target, begins, begins + self.longs[target])
        return np.bincount(owner, end - begin, len(self.longs)).astype(np.int64)


def _reduced(function: np.ufunc, values: np.ndarray, offsets: np.ndarray, empty: int) -> np.ndarray:
    """Reduce each row of ragged values; `empty` is the result of a row without any."""
    found = np.full(len(offsets) - 1, empty, values.dtype)
    full = np.flatnonzero(np.diff(offsets))
    if len(full):
        found[full] = function.reduceat(values, offsets[full])
    return found


def _united(document: np.ndarray, target: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """Unite the intervals of each document and target that overlap or touch.

    Returns
    -------
    target, pair, begin, end : arrays of int64
        The target of each united interval, the number of its document and target, ascending, and the interval.
    """
    beyond, number = int(end.max(initial=0)) + 1, int(target.max(initial=0)) + 1
    keys, pair = np.unique(document * number + target, return_inverse=True)
    shift = pair * beyond  # so that a pair ends before the next one begins
    pair, begin, end = united(pair, begin + shift, end + shift)
    return keys[pair] % number, pair, begin - pair * beyond, end - pair * beyond
