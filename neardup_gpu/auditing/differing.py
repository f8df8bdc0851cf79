"""Whether another threshold, or another definition of a shingle, explains what a result lost and missed.

A threshold x explains a result if each removed document resembles a kept one at x, and no two kept documents resemble
each other at x. So x is above the highest missed pair, and at most the lowest nearest kept document of a removed one. A
definition explains a result if by it nothing is lost and nothing is missed at the threshold of the audit. Both are
checked by the exact join over all documents, not only over those that are lost or missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..documents import open_documents
from ..recipe import Recipe
from ..records import dataclass
from .clusters import measuring
from .joins import Jobs, KeptPairs, NearestKept, kept_pairs
from .split import READING, write_subset

SIZES = (1, 2, 3, 4, 7, 8, 10, 13)
"""Numbers of words of a shingle that are tried, besides 5, the number of most tools."""

TRIED = 200
"""Lost documents, and missed pairs, by which a definition is tried before it is checked on all."""


@dataclass
class Discrepancy:
    """The explanations of a result.

    Parameters
    ----------
    threshold : (float, float) or None
        The thresholds that explain it: above the first one, up to the second one.
    shingle_size : int or None
        The number of words of a shingle that explains it, at the threshold of the audit.
    tried : tuple of int
        The numbers that were tried.
    """

    threshold: tuple[float, float] | None = None
    shingle_size: int | None = None
    tried: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {"threshold": self.threshold, "shingle_size": self.shingle_size, "tried": list(self.tried)}

    def sentence(self) -> str:
        """Say what explains the result, in one sentence."""
        size = self.shingle_size
        words = "one word" if size == 1 else f"{size} words"
        if self.threshold is not None:
            also = f"; so do shingles of {words}" if size is not None else ""
            return f"Another threshold explains all of it: {between(*self.threshold)}{also}."
        if size is not None:
            return f"Another definition explains all of it: by shingles of {words} nothing is lost and nothing missed."
        if self.tried:
            sizes = ", ".join(map(str, self.tried))
            return f"Neither another threshold nor shingles of {sizes} words explain it."
        return "Another threshold does not explain it."


def between(above: float, up_to: float) -> str:
    """Return a range of thresholds in words, the shortest number inside it first."""
    for digits in range(1, 7):
        inside = np.floor(up_to * 10**digits + 1e-9) / 10**digits
        if above < inside <= up_to:
            return f"{inside:.{digits}f} (any above {above:.4f}, up to {up_to:.4f})"
    return f"above {above:.6f}, up to {up_to:.6f}"


def explaining_threshold(
    jobs: Jobs, kept: Sequence[Path], found: NearestKept, pairs: KeptPairs
) -> tuple[float, float] | None:
    """Return the thresholds that explain a result: above the first one, up to the second one. None if none does."""
    threshold = jobs.recipe.threshold
    assert threshold is not None
    nearest = found.resemblance[~found.wordless]
    if np.isnan(nearest).any():  # no kept document is near
        return None
    lowest = float(nearest.min()) if len(nearest) else 1.0
    missed = pairs.resemblance
    if lowest < threshold:
        if pairs.number(threshold):
            return None
        missed = kept_pairs(jobs, kept, lowest).resemblance
        if len(missed):
            return None
        return 0.0, lowest
    highest = float(missed.max()) if len(missed) else 0.0
    return (highest, lowest) if highest < lowest else None


def explaining_size(
    jobs: Jobs, removed: Path, kept: Sequence[Path], found: NearestKept, pairs: KeptPairs
) -> tuple[int | None, tuple[int, ...]]:
    """Return the number of words of a shingle that explains a result, and the numbers that were tried.

    A number is first tried by some missed pairs and some lost documents, and checked by all documents if it clears
    them. Missed pairs of the same words are pairs by any definition, so no number explains them.
    """
    recipe = jobs.recipe
    threshold = recipe.threshold
    assert threshold is not None
    lost = found.rows[found.lost(threshold)][:TRIED]
    some = jobs.folder / "tried.parquet"
    write_subset(some, removed, lost)
    sizes = tuple(size for size in SIZES if size != recipe.shingles.size)
    missed = np.flatnonzero(pairs.resemblance >= threshold)
    if (pairs.kinds[missed] != "near").any():
        return None, sizes
    for size in sizes:
        tried = recipe.with_(shingle_size=size)
        if _any_missed(jobs, kept[0], pairs.left[missed[:TRIED]], pairs.right[missed[:TRIED]], tried):
            continue
        changes: dict[str, Any] = {"shingle_size": size, "threshold": threshold}
        if len(lost) and _num_lost(jobs, f"tried-{size}", some, kept, changes):
            continue
        if _num_lost(jobs, f"lost-{size}", removed, kept, changes) > int(found.wordless.sum()):
            continue
        if jobs.run(f"missed-{size}", kept, max_partners=1, **changes).pairs.num_rows == 0:
            return size, sizes
    return None, sizes


def _any_missed(jobs: Jobs, kept: Path, left: np.ndarray, right: np.ndarray, recipe: Recipe) -> bool:
    """Whether any of some pairs of kept documents is at the threshold by another definition."""
    if len(left) == 0:
        return False
    rows = np.unique(np.concatenate([left, right]))
    some = jobs.folder / "pairs.parquet"
    write_subset(some, kept, rows)
    documents = open_documents(str(some), reading=READING)
    with measuring(documents, np.ones(len(rows), bool), recipe, jobs.folder) as spool:
        worth = spool.measured(np.searchsorted(rows, left), np.searchsorted(rows, right))
    return bool((worth >= recipe.threshold).any())


def _num_lost(jobs: Jobs, name: str, removed: Path, kept: Sequence[Path], changes: dict[str, Any]) -> int:
    """Return how many removed documents have no kept one, those without words among them."""
    documents = jobs.run(name, removed, kept, only_against=True, **changes).documents
    return documents["near_reference"].null_count
