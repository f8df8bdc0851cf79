"""Lost documents and missed pairs, by jobs of `dedup` over the kept and the removed documents.

A removed document is lost if no kept document resembles it at the threshold. A pair of kept documents is missed if the
two resemble each other at the threshold. Both are found by the exact join, so they are counts and not estimates.

1. Removed documents against kept ones at t - `CLOSE`, by which each has its nearest kept document.
2. Those without any, against kept ones from `nearest_from` on. The cost is that of an index of the kept documents at
   this lower threshold, and of one look-up per lost document.
3. Kept documents with each other at t - `CLOSE`, all pairs listed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..data import look_up, numpy_of
from ..documents.writing_options import Writing
from ..jobs.dedup import dedup
from ..log import log
from ..recipe import Recipe
from ..records import dataclass
from ..results.result import Result
from ..results.tables import KIND
from ..stages import count_tokens, utf8
from .settings import CLOSE
from .split import READING, ROW, TEXT, write_subset

RESULTS = "results"
"""The folder of the jobs' results inside the work folder."""


@dataclass
class Jobs:
    """Runs the jobs of an audit, each with the same engine and bounds.

    Parameters
    ----------
    folder : Path
        Where the files of split.py are.
    recipe : Recipe
        The definition of a near-duplicate, and the threshold.
    options : dict
        `engine`, `memory` and `progress` of `dedup`.
    workers : Workers or None
        If given, each job runs as tasks in a folder of its own inside the work folder.
    """

    folder: Path
    recipe: Recipe
    options: dict[str, Any]
    workers: Any = None

    def run(self, name: str, source: Path | Sequence[Path], against: Sequence[Path] = (), **changes: Any) -> Result:
        """Run a job and return its result; `name` is that of its work folder, and `changes` are of the recipe."""
        tasks: dict[str, Any] = {}
        if self.workers is not None and self.workers.work_dir is not None:
            work = Path(self.workers.work_dir)
            tasks["workers"] = replace(self.workers, work_dir=str(work / name))
            tasks["output"] = work / RESULTS / name
            tasks["writing"] = Writing(ids_only=True, overwrite=True)
        paths = [source] if isinstance(source, Path) else source
        with _without_reasons():
            return dedup(
                [str(path) for path in paths],
                against=[str(path) for path in against] or None,
                reading=READING,
                recipe=self.recipe.with_(keep="first", **changes),
                **tasks,
                **self.options,
            )


@contextlib.contextmanager
def _without_reasons() -> Iterator[None]:
    """Keep the reasons why a job removed nothing out of the log: they are about settings that no user gave."""

    def is_shown(record: logging.LogRecord) -> bool:
        return record.module != "nothing_removed"

    log.addFilter(is_shown)
    try:
        yield
    finally:
        log.removeFilter(is_shown)


class NearestKept(NamedTuple):
    """The nearest kept document of each removed one.

    Parameters
    ----------
    rows : array of int64, ascending
        The removed documents that were joined, as rows of the corpus.
    nearest : array of int64
        The row of the nearest kept document, -1 if none was found.
    resemblance : array of float64
        Their resemblance; NaN if none was found.
    wordless : array of bool
        Which documents have no words and no kept document of the same text.
    """

    rows: np.ndarray
    nearest: np.ndarray
    resemblance: np.ndarray
    wordless: np.ndarray

    def lost(self, threshold: float) -> np.ndarray:
        """Return which documents are lost at a threshold; documents without words are not."""
        return ~(self.resemblance >= threshold) & ~self.wordless


def nearest_kept(jobs: Jobs, removed: Path, kept: Sequence[Path], nearest_from: float) -> NearestKept:
    """Find the nearest kept document of each removed one, exactly, down to a resemblance of `nearest_from`."""
    rows = pq.read_table(removed, columns=[ROW])[ROW].to_numpy()
    found = NearestKept(rows, np.full(len(rows), -1), np.full(len(rows), np.nan), np.zeros(len(rows), bool))
    threshold = jobs.recipe.threshold
    assert threshold is not None
    if len(rows) == 0:
        return found
    lower = close_below(threshold)
    if any(pq.read_metadata(path).num_rows for path in kept):
        _add_nearest(found, jobs.run("lost", removed, kept, threshold=lower, only_against=True))
    far = jobs.folder / "far.parquet"
    write_subset(far, removed, rows[found.nearest < 0])
    _mark_wordless(found, far, jobs.recipe)
    if nearest_from < lower and (found.nearest < 0).any() and any(pq.read_metadata(path).num_rows for path in kept):
        _add_nearest(found, jobs.run("far", far, kept, threshold=nearest_from, only_against=True))
    return found


def close_below(threshold: float) -> float:
    """Return the threshold at which pairs are joined, so that those close to the threshold are found as well."""
    return threshold - CLOSE if threshold > CLOSE else threshold


def _add_nearest(found: NearestKept, result: Result) -> None:
    documents = result.documents
    there = documents.filter(pc.is_valid(documents["near_reference"]))
    places = np.searchsorted(found.rows, there["id"].to_numpy())
    found.nearest[places] = there["near_reference"].to_numpy()
    found.resemblance[places] = there[f"reference_{result.recipe.method.measure.name}"].to_numpy()


def _mark_wordless(found: NearestKept, far: Path, recipe: Recipe) -> None:
    with pq.ParquetFile(far) as file:
        for batch in file.iter_batches(batch_size=4096):
            tokens, _ = count_tokens(utf8(batch.column(TEXT).to_pylist()), recipe, "cpu")
            places = np.searchsorted(found.rows, batch.column(ROW).to_numpy())
            found.wordless[places] = tokens.sizes == 0


class KeptPairs(NamedTuple):
    """The pairs of kept documents from close below the threshold on, as rows of the corpus.

    Parameters
    ----------
    left, right : array of int64
    kinds : array of str
    resemblance : array of float64
    times : array of int64
        The number of pairs of documents that each pair stands for: documents of the same words have one representative.
        It is 0 for a pair of a representative and its copy, which `copies` counts.
    copies : int
        The number of pairs of documents with the same words.
    wordless : int
        The number of kept documents without words.
    """

    left: np.ndarray
    right: np.ndarray
    kinds: np.ndarray
    resemblance: np.ndarray
    times: np.ndarray
    copies: int
    wordless: int

    def number(self, low: float, high: float = np.inf) -> int:
        """Return the number of pairs of documents with a resemblance from `low` on and below `high`."""
        there = (self.resemblance >= low) & (self.resemblance < high)
        return int(self.times[there].sum()) + (self.copies if low <= 1 < high else 0)

    def documents(self, threshold: float) -> np.ndarray:
        """Return the rows of documents that are in a pair at the threshold, ascending, without the copies of others."""
        there = self.resemblance >= threshold
        return np.unique(np.concatenate([self.left[there], self.right[there]]))


def kept_pairs(jobs: Jobs, kept: Sequence[Path], threshold: float) -> KeptPairs:
    """Find all pairs of kept documents from the threshold on."""
    if not any(pq.read_metadata(path).num_rows for path in kept):
        return no_pairs(0)
    result = jobs.run("missed", kept, threshold=threshold, max_partners=None)
    return pairs_of(result.pairs, result.recipe.method.measure.name, result.report["counts"]["empty"])


def pairs_of(table: pa.Table, measure: str, wordless: int) -> KeptPairs:
    """Return the pairs of a result as arrays."""
    if table.num_rows == 0:
        return no_pairs(wordless)
    left, right = table["id_a"].to_numpy(), table["id_b"].to_numpy()
    kinds = np.asarray(table[KIND].cast(pa.string()).to_pylist())
    copied = kinds != "near"
    representatives, number = np.unique(left[copied], return_counts=True)
    sizes = number + 1
    times = np.where(copied, 0, _size_of(left, representatives, sizes) * _size_of(right, representatives, sizes))
    copies = int((sizes * (sizes - 1) // 2).sum())
    return KeptPairs(left, right, kinds, numpy_of(table[measure]), times, copies, wordless)


def _size_of(rows: np.ndarray, representatives: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return how many documents have the words of each row."""
    found, (places, there) = np.ones(len(rows), np.int64), look_up(representatives, rows)
    found[there] = sizes[places[there]]
    return found


def no_pairs(wordless: int) -> KeptPairs:
    """Return no pairs."""
    none = np.empty(0, np.int64)
    return KeptPairs(none, none, np.empty(0, "U9"), np.empty(0), none, 0, wordless)


def sampled_pairs(jobs: Jobs, sampled: Path, others: Path, threshold: float) -> np.ndarray:
    """Return whether each document of a sample resembles another one of it, or one of the other kept documents."""
    rows = pq.read_table(sampled, columns=[ROW])[ROW].to_numpy()
    against = [others] if pq.read_metadata(others).num_rows else []
    result = jobs.run("missed", sampled, against, threshold=threshold, max_partners=None)
    pairs, documents = result.pairs, result.documents
    partnered = set(pairs["id_a"].to_pylist()) | set(pairs["id_b"].to_pylist())
    if against:
        partnered |= set(documents.filter(pc.is_valid(documents["near_reference"]))["id"].to_pylist())
    return np.isin(rows, np.array(sorted(partnered), np.int64))
