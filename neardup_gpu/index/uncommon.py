"""The stored sets of an index, and the same without common shingles.

In an index with `ignore_common`, a shingle is common if more live documents have it than the bound allows, copies
included, as `dedup` of the live documents counts them. Every document that is added or removed can change that. So
nothing is decided when documents are added: a decision or a query counts the documents of each shingle first. Sets are
stored whole, and common shingles are left out when sets are read.

A query needs candidates, too: the stored postings are those of whole sets, by which a pair may be missed that is near
without common shingles. Postings of the remaining shingles are made in memory, once for each snapshot.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from ..data import Ragged
from ..engine.pieces import Span
from ..errors import ParameterError
from ..methods.finding.contract import SketchedEntries
from ..methods.frequencies import Frequencies
from ..stages.common_shingles import CommonShingles, common_shingles, without_common
from .segments import Segment
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..engine.contract import Rows, Runtime
    from ..recipe import Recipe
    from .sketches import EntryTools


class StoredSets:
    """The shingles of some entries, as `partners_of` asks for them.

    Parameters
    ----------
    snapshot : Snapshot
    entries : array of int64
        Row i is the set of the i-th entry.
    folder : path
        Where temporary files go.
    """

    table = None
    """Shingles are not counted as they are stored."""

    def __init__(self, snapshot: Snapshot, entries: np.ndarray, folder: Path) -> None:
        self.folder, self.snapshot, self.entries = folder, snapshot, entries
        self._common: np.ndarray | None = None
        self._take_sizes(snapshot.set_sizes(entries))

    def _take_sizes(self, sizes: np.ndarray) -> None:
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self.num_values = int(self.offsets[-1])

    def leave_out(self, common: Frequencies, runtime: Runtime) -> None:
        """Leave common shingles out of the sets from now on."""

        def sizes(part: Span) -> np.ndarray:
            return without_common(self.gather(everyone[part.rows]), common.tokens).sizes

        everyone = np.arange(len(self.entries))
        spans = Span.divided(8 * np.diff(self.offsets), runtime.shares.sorted, "documents")
        parts = list(runtime.map(sizes, spans))
        self._take_sizes(np.concatenate([np.empty(0, np.int64), *parts]))
        self._common = common.tokens

    def gather(self, rows: np.ndarray) -> Ragged:
        """The sets of some rows, in the given order."""
        sets = self.snapshot.sets_of(self.entries[np.asarray(rows)])
        return sets if self._common is None else without_common(sets, self._common)

    def __enter__(self) -> StoredSets:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def count_common(snapshot: Snapshot, recipe: Recipe, folder: Path, runtime: Runtime) -> CommonShingles:
    """Find the shingles that more live documents have than the recipe allows."""
    found = [each["entry"][each.live_documents != 0] for each in snapshot.segments]
    entries = np.sort(np.concatenate([np.empty(0, np.int64), *found]))
    return common_shingles(cast("Rows", StoredSets(snapshot, entries, folder)), recipe, runtime)


class UncommonEntries:
    """The live entries of a snapshot without common shingles, in memory: 8 bytes per shingle, and its postings.

    Parameters
    ----------
    snapshot : Snapshot
    tools : EntryTools
    """

    def __init__(self, snapshot: Snapshot, tools: EntryTools) -> None:
        self.common = count_common(snapshot, tools.recipe, Path(), tools.runtime).frequencies
        live = [each["founders"][each.live_entries != 0] for each in snapshot.segments]
        entries = np.concatenate([np.empty(0, np.int64), *live])
        sets, tokens = without_common(snapshot.sets_of(entries), self.common.tokens), snapshot.tokens(entries)
        finder, nothing = tools.finder, np.empty((len(entries), 0), np.uint64)
        made, order = finder.prepared(SketchedEntries(nothing, tokens, nothing, sets), None)
        arrays = {"sequence": entries, "entry": entries, "founders": entries, "tokens": tokens}
        arrays |= {"set_offsets": sets.offsets, "set_values": sets.values, **finder.arrays(made)}
        self.snapshot = Snapshot([Segment.in_memory(arrays, "integer", order)], snapshot.backend)

    def of_queries(self, sketches: SketchedEntries) -> SketchedEntries:
        """Return queries without the common shingles of the index."""
        return sketches._replace(sets=without_common(sketches.sets, self.common.tokens))


def check_decides(recipe: Recipe, name: str) -> None:
    """Raise ParameterError if the index does not decide about documents when they are added."""
    if recipe.ignore_common is not None:
        raise ParameterError(
            f"{name}: with ignore_common nothing is decided when documents are added, as later ones change which "
            "shingles are common; call decide"
        )
