"""Common shingles, those of more documents than a bound, which `--ignore-common` leaves out.

Document frequencies are exact, and only those of possibly common shingles are counted. A table of counters
(`kernels/rarity.py`) never counts too little, so a shingle whose counter stays within the bound is not common. The
others are few, and each is counted once per document.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from ..data import Ragged
from ..engine.arrays import same_device
from ..engine.choice import to_host
from ..engine.contract import Rows, Runtime
from ..engine.pieces import Span
from ..kernels import rarity
from ..kernels._launch import array_module
from ..kernels._ragged import sums_before
from ..methods.frequencies import Frequencies, FrequencyCounter, occurrences
from ..methods.measures import shingle_sets
from ..recipe import Recipe
from ..records import dataclass
from .joining import SpooledRows, rarity_table

_FEWEST_BITS, _MOST_BITS = 16, 22
"""Bits of a shingle by which `without_common` tells most others from common ones."""


@dataclass
class CommonShingles:
    """The common shingles of all documents.

    Parameters
    ----------
    frequencies : Frequencies
        The common shingles, and the number of documents of each.
    most : int
        Shingles of more documents are common.
    offsets : array of int64, shape (documents + 1,)
        Where the shingles of each document begin that `leave_out` has kept.
    """

    frequencies: Frequencies
    most: int
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))

    def settled(self, recipe: Recipe) -> Recipe:
        """Return the recipe that states the bound as a number of documents, and the digest of the common shingles."""
        return replace(recipe, ignore_common=self.most, ignored=self.frequencies.digest)

    def leave_out(self, spool: Rows, target: Any, runtime: Runtime) -> None:
        """Copy all rows of a spool to another one, without common shingles."""
        for rows in runtime.map(partial(self._others, spool), _all_parts(spool, runtime)):
            target.append(rows)
        self.offsets = target.offsets

    def _others(self, spool: Rows, part: Span) -> Ragged:
        return without_common(_rows_of(spool, part), self.frequencies.tokens)


def common_shingles(spool: Rows, recipe: Recipe, runtime: Runtime) -> CommonShingles:
    """Find the shingles that more documents of a spool have than the recipe allows."""
    number = len(spool.offsets) - 1
    most = most_documents(recipe, number)
    everyone, parts = np.arange(number), _all_parts(spool, runtime)
    suspects = _suspects(rarity_table(SpooledRows(spool, everyone), everyone, runtime), most)
    counter, table = FrequencyCounter(), partial(_suspected, suspects)
    for held, documents, present in runtime.map(partial(_counted, spool, table, runtime.backend), parts):
        counter.add((held, documents), present)
    tokens, counts = counter.take()
    common = counts > most
    found = Frequencies(tokens[common], counts[common], number, recipe.seed, recipe.elements)
    return CommonShingles(found, most)


def most_documents(recipe: Recipe, number: int) -> int:
    """Return how many of `number` documents may have a shingle that is not common."""
    bound = recipe.ignore_common
    assert bound is not None
    return bound if isinstance(bound, int) else max(1, int(bound * number))


def without_common(rows: Ragged, common: np.ndarray) -> Ragged:
    """Return rows of shingles without the common ones, which are ascending.

    A table of upper bits rules out most other shingles before the search.
    """
    if not len(common):
        return rows
    xp = array_module(rows.values)
    bits = min(max(_FEWEST_BITS, (16 * len(common)).bit_length()), _MOST_BITS)
    shift = np.uint64(64 - bits)
    (known,) = same_device(rows.values, common)
    marked = xp.zeros(1 << bits, bool)
    marked[(known >> shift).astype(np.int64)] = True
    places = xp.flatnonzero(marked[(rows.values >> shift).astype(np.int64)])
    values = rows.values[places]
    at = xp.minimum(xp.searchsorted(known, values), len(known) - 1)
    stays = xp.ones(len(rows.values), bool)
    stays[places[known[at] == values]] = False
    return _chosen(rows, stays)


def _all_parts(spool: Rows, runtime: Runtime) -> list[Span]:
    return Span.divided(8 * np.diff(spool.offsets), runtime.shares.sorted, "documents")


def _rows_of(spool: Rows, part: Span) -> Ragged:
    return spool.gather(np.arange(len(spool.offsets) - 1)[part.rows])


def _suspects(table: Any, most: int) -> Any:
    """Return for each counter of a table whether it is above a bound."""
    counters, beyond = table
    if most < rarity.MOST:
        return counters > most
    xp = array_module(counters)
    words = xp.repeat(beyond.astype(np.int64) + rarity.MOST > most, 1 << rarity.SHARED_BITS)
    return (counters == rarity.MOST) & words


def _suspected(suspects: Any, shingles: Any) -> Any:
    return suspects[(shingles >> rarity.shift_of(suspects)).astype(np.int64)]


def _counted(spool: Rows, suspected: Any, backend: str, part: Span) -> tuple[np.ndarray, np.ndarray, int]:
    """Count the documents of each suspected shingle in a part of the rows; also count the rows."""
    rows = _rows_of(spool, part)
    held, documents = occurrences(shingle_sets(_chosen(rows, suspected(rows.values)), backend), backend)
    return to_host(held), to_host(documents), len(rows)


def _chosen(rows: Ragged, chosen: Any) -> Ragged:
    """Return the values of rows for which `chosen` is true."""
    return Ragged._trusted(rows.values[chosen], sums_before(chosen)[rows.offsets])
