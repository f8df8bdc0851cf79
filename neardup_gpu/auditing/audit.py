"""Audit the result of a deduplication tool: match, split, join, measure, explain, write."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import __version__, checks
from ..data import numpy_of, taken
from ..definitions import METADATA_KEY
from ..documents import Documents, open_documents
from ..documents.reading_options import Reading, chosen_reading
from ..documents.skipped import count_skipped
from ..documents.sources import Sources
from ..documents.writing_options import DECISIONS, ROWS, Writing, chosen_writing
from ..engine.clock import Clock, with_bars
from ..engine.settings import Engine, as_engine
from ..errors import ArgumentTypeError, InputError, OutputError, ParameterError
from ..jobs.bounded import temporary_folder
from ..log import log
from ..methods.contract import Join
from ..recipe import Recipe, choose_recipe
from ..records import dataclass
from ..report import count
from ..results.by_value import Grouping
from ..store.artefacts import AUDIT, write_report
from ..store.outputs import new_folder
from ..store.parquet import write_tables
from ..store.places import Place
from ..store.uris import is_uri
from ..tasks.job import work_folder
from ..tasks.running import check_apart
from ..tasks.workers import Workers
from .claims import ClaimReader, TwoColumns
from .clusters import ClusterFacts, measure_clusters, measuring
from .differing import Discrepancy, explaining_size, explaining_threshold
from .intervals import exact_binomial
from .joins import RESULTS, Jobs, KeptPairs, NearestKept, close_below, kept_pairs, nearest_kept, no_pairs, sampled_pairs
from .matching import Corpus, Matched, check_texts, match_ids, match_texts, open_with_texts, rows_of
from .page import PAGE, write_audit_page
from .settings import CLOSE, AuditSettings
from .split import OURS, write_once, write_parts
from .verdict import TABLES, Audit

CONFIDENCE = 0.95
"""The confidence of the intervals of a sample."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Everything that `audit` takes besides the files of the tool, as it was given."""

    settings: AuditSettings
    recipe: Recipe
    reading: Reading
    writing: Writing
    workers: Workers | None
    job: dict[str, Any]

    @classmethod
    def of(cls, recipe: Recipe | None, given: dict[str, Any]) -> AuditOptions:
        """Check and sort the keywords.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If a keyword is unknown, or its value is impossible or of another type.
        """
        given = dict(given)
        own = {each.name: given.pop(each.name) for each in fields(AuditSettings) if each.name in given}
        chosen = {name: given.pop(name) for name in ("method", "threshold") if name in given}
        columns = {name: given.pop(name, None) for name in ("id_column", "text_columns")}
        reading, writing = chosen_reading(given.pop("reading", None), **columns), given.pop("writing", None)
        workers = given.pop("workers", None)
        engine = as_engine(given.pop("engine", "auto"))
        job = {name: given.pop(name, None) for name in ("memory", "progress")}
        if given:
            known = ", ".join([*(each.name for each in fields(AuditSettings)), *KEYWORDS])
            raise ArgumentTypeError(f"{next(iter(given))}: audit takes no such keyword; it takes {known}")
        found = choose_recipe(recipe, "exact", **chosen)
        if not isinstance(found.method, Join):
            raise ParameterError(f"method {found.method.name!r} may miss pairs; an audit takes exact or containment")
        if found.within:
            raise ParameterError(
                f"within {', '.join(found.within)}: an audit compares all documents; audit those of one value at a time"
            )
        if found.ignore_common is not None:
            raise ParameterError(
                "ignore_common: an audit joins some documents, and would count those alone; leave it out"
            )
        if found.shingles.token_kind.of_integers:
            raise ParameterError("tokens 'ids': an audit compares texts, and no integers; give it the texts")
        return cls(
            settings=AuditSettings(**own),
            recipe=found.with_(keep="first", cluster="greedy", only_against=False),
            reading=reading,
            writing=chosen_writing(writing, "audit", (*DECISIONS, *ROWS, "by")),
            workers=None if workers is None else checks.instance("workers", workers, Workers),
            job={"engine": engine, **job},
        )

    @contextlib.contextmanager
    def folder(self, output: str | None, documents: Documents) -> Iterator[Path]:
        """Give a folder for the split corpus: in the work folder of tasks, if there is one, else a temporary one."""
        if self.workers is None:
            engine: Engine = self.job["engine"]
            with temporary_folder(output, engine.temp_dir) as folder:
                yield Path(folder)
            return
        work = work_folder(self.workers, self.job["memory"])
        if is_uri(work):
            raise ParameterError(
                "work_dir: an audit writes the split corpus there; name a folder that all workers mount"
            )
        place = Path(work, "split")
        check_apart(Place.of(work), output, Sources(documents))
        try:
            others = [] if (place / OURS).exists() or not os.path.exists(work) else sorted(os.listdir(work))
            if not others:
                place.mkdir(parents=True, exist_ok=True)
                (place / OURS).touch()
        except OSError as error:
            raise OutputError(f"{work}: {error.strerror}; name another folder with work_dir=...") from None
        if others:
            raise OutputError(
                f"{work}: holds {others[0]}, which no audit wrote; name a new or empty folder with work_dir=..."
            )
        yield place
        if not self.workers.keep_work:
            shutil.rmtree(place)
            shutil.rmtree(place.with_name(RESULTS), ignore_errors=True)  # there is none if nothing was joined


KEYWORDS = (
    *("id_column", "text_columns", "method", "threshold", "reading", "writing"),
    *("engine", "memory", "progress", "workers"),
)
"""The keywords of `audit` that are also those of `dedup`."""


@with_bars
def audit(
    source: Any,
    *,
    kept: Any = None,
    removed: Any = None,
    clusters: Any = None,
    pairs: Any = None,
    output: str | Path | None = None,
    recipe: Recipe | None = None,
    **rest: Any,
) -> Audit:
    """Judge the result of any deduplication tool: what it lost, what it missed, and which of its reasons hold.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        The corpus that the tool read. It is read several times.
    kept : path, list of paths, a table, or a Result, default None
        What the tool kept: rows, ids, or a column that says which rows were kept. A text file has an id per line.
    removed : path, list of paths, or a table, default None
        What the tool removed, in the same forms. At least one of `kept` and `removed` is needed.
    clusters : path, list of paths, or a table, default None
        The cluster of each document, if the tool writes it.
    pairs : path, list of paths, or a table, default None
        Stated reasons, if the tool writes them: pairs of ids. One document of a pair stands for the other one.
    output : path, default None
        A folder to write: lost.parquet, missed.parquet, audit.json, audit.html; clusters.parquet and reasons.parquet
        if they were given; skipped.parquet if rows may be skipped. It appears when it is complete.
    recipe : Recipe, default None
        The definition of a near-duplicate, instead of `method` and `threshold`.
    **rest : keywords
        The fields of `AuditSettings`: kept_id_column, by_text, tool, cluster_column, by, sample, ignore_unknown,
        nearest_from, definitions. Other keywords are those of `dedup`: id_column, text_columns, method ("exact" or
        "containment"), threshold, reading, writing (only its `overwrite` counts), engine, memory, progress and workers.

    Returns
    -------
    Audit
        Tables of lost documents, missed pairs, clusters and reasons, and the report.

    Raises
    ------
    InputError
        If the files of the tool do not belong to the corpus, or contradict each other.
    NeardupError
        If something cannot be read or written, or settings are impossible; see `errors`.

    Notes
    -----
    Lost documents and missed pairs are counted by the exact join; see `auditing/joins.py`. The texts of the corpus are
    written once more, into a temporary folder, as kept and removed documents. Memory: that of `dedup` for the kept
    documents and for either side, the ids of the corpus, and the listed pairs. `memory` bounds each job of `dedup`.
    With `sample`, that number of documents of either side is joined, and the shares are estimates with exact binomial
    intervals of 95% confidence.

    Examples
    --------
    >>> texts = ["to be or not to be that is the question", "to be or not to be that is the question", "nobler in mind"]
    >>> audit({"id": [1, 2, 3], "text": texts}, kept={"id": [1, 2]}, id_column="id")
    Audit(3 documents: 2 kept, 1 removed; 1 lost, 1 missed)
    """
    chosen = AuditOptions.of(recipe, rest)
    output = checks.optional(checks.path, "output", output)
    if kept is None and removed is None:
        raise ParameterError("kept: say what the tool kept with kept=..., or what it removed with removed=...")
    settings = chosen.settings
    if settings.by_text and (kept is None or removed is not None):
        raise ParameterError("by_text: texts are matched with kept rows; give kept=... alone")
    if settings.cluster_column is not None and clusters is None:
        raise ParameterError("cluster_column: names a column of clusters=...; give that as well, or leave it out")
    if settings.kept_id_column is not None and settings.by_text and clusters is None and pairs is None:
        raise ParameterError("kept_id_column and by_text: texts are matched, not ids; leave one of them out")
    documents = open_documents(source, reading=chosen.reading, other_columns=[settings.by] if settings.by else [])
    if settings.by is not None:
        documents._check_plain(settings.by, "by")
    if not documents.rewindable:
        raise InputError("the corpus is a stream, and an audit reads it several times; pass a table or files")
    with contextlib.ExitStack() as stack:
        place, split = None, stack.enter_context(chosen.folder(output, documents))
        if output is not None:
            place = stack.enter_context(new_folder(output, chosen.writing.overwrite, documents.local_files))
        work = _AuditRun(chosen, documents, split, Clock(None))
        found = work.audited(kept, removed, clusters, pairs)
        if place is not None:
            _write(place, found)
    return found


class _AuditRun:
    """An audit from end to end."""

    def __init__(self, chosen: AuditOptions, documents: Documents, folder: Path, clock: Clock) -> None:
        self._chosen, self._documents, self._folder, self._clock = chosen, documents, folder, clock
        self._settings, self._recipe = chosen.settings, chosen.recipe
        assert chosen.recipe.threshold is not None
        self._threshold = chosen.recipe.threshold
        self._reader = ClaimReader(chosen.settings, documents.id_column)
        self._jobs = Jobs(folder, chosen.recipe, chosen.job, chosen.workers)

    def audited(self, kept: Any, removed: Any, clusters: Any, pairs: Any) -> Audit:
        """Run all stages."""
        with self._clock.stage("matching"):
            corpus, matched = self._matched(kept, removed)
            stated = None if clusters is None else self._reader.clusters(clusters)
            reasons = None if pairs is None else self._reader.reasons(pairs)
        sample = self._settings.sample
        if sample is None:
            found = self._judged(corpus, matched)
        else:
            found = self._sampled(corpus, matched, sample)
        if stated is not None or reasons is not None:
            with self._clock.stage("measuring"):
                found = self._measured(found, corpus, matched, stated, reasons)
        found.report["tables"] = [name for name in TABLES if getattr(found, name) is not None]
        found.report["timings"] = self._clock.seconds
        found.report["seconds"] = self._clock.elapsed
        return found

    def _matched(self, kept: Any, removed: Any) -> tuple[Corpus, Matched]:
        settings, documents = self._settings, self._documents
        written = None
        if not settings.by_text:
            written = open_with_texts(kept, self._reader.id_names, documents.text_columns, self._chosen.reading)
        corpus = Corpus.read(documents, settings.by, settings.by_text or written is not None)
        if settings.by_text:
            matched = match_texts(corpus, kept, self._chosen.reading, self._recipe, settings.ignore_unknown)
        else:
            matched = match_ids(corpus, self._reader, kept, removed, settings.ignore_unknown)
            if written is not None:
                check_texts(corpus, written, self._recipe, settings.ignore_unknown, matched.counts)
        corpus.digests = None
        return corpus, matched

    def _write_parts(self, corpus: Corpus, parts: dict[str, np.ndarray]) -> dict[str, Path]:
        """Write the parts of the corpus, unless an interrupted audit with this work folder has written them."""
        paths = {name: self._folder / f"{name}.parquet" for name in parts}
        state = hashlib.blake2b(b"".join(np.packbits(mask).tobytes() for mask in parts.values()))
        state.update(json.dumps([self._documents.describe(), self._states()], default=str).encode())
        masks = {paths[name]: mask for name, mask in parts.items()}
        write = partial(write_parts, self._documents, len(corpus), masks)
        write_once(self._folder / "split.state", state.hexdigest(), write)
        return paths

    def _states(self) -> list[Any]:
        return [reader.states() for reader in self._documents._readers]

    # --------------------------------------------------------------------------------------------------- all of it

    def _judged(self, corpus: Corpus, matched: Matched) -> Audit:
        with self._clock.stage("splitting"):
            paths = self._write_parts(corpus, {"kept": matched.kept, "removed": ~matched.kept})
        kept = [paths["kept"]]
        with self._clock.stage("lost"):
            nearest = nearest_kept(self._jobs, paths["removed"], kept, self._settings.nearest_from)
        with self._clock.stage("missed"):
            close = kept_pairs(self._jobs, kept, close_below(self._threshold))
        lost, missed = nearest.lost(self._threshold), close.documents(self._threshold)
        kept_number, pairs = int(matched.kept.sum()), close.number(self._threshold)
        counts = self._counts(matched, nearest, close, judged_kept=kept_number, missed=pairs, in_missed=len(missed))
        report = self._report(matched, counts)
        there = nearest.resemblance[lost & (nearest.nearest >= 0)]
        report["highest_lost"] = float(there.max()) if len(there) else None
        report["difference"] = self._difference(paths["removed"], kept, nearest, close, counts)
        if corpus.by is not None:
            assert self._settings.by is not None
            groups = Grouping.of(self._settings.by, corpus.by)
            report["by"] = groups.rows(
                kept=groups.count(matched.kept),
                removed=groups.count(~matched.kept),
                lost=groups.count(nearest.rows[lost]),
                in_missed_pairs=groups.count(missed),
            )
        return self._audit(corpus, nearest, lost, close, report)

    def _difference(
        self, removed: Path, kept: list[Path], nearest: NearestKept, close: KeptPairs, counts: dict[str, int]
    ) -> dict[str, Any]:
        if not counts["lost"] and not counts["missed"]:
            return {
                **Discrepancy().to_dict(),
                "sentence": "The result agrees with the exact join; nothing is to explain.",
            }
        with self._clock.stage("explaining"):
            found = Discrepancy(explaining_threshold(self._jobs, kept, nearest, close))
            if self._settings.definitions and self._recipe.shingles.kind != "spots":
                found.shingle_size, found.tried = explaining_size(self._jobs, removed, kept, nearest, close)
        return {**found.to_dict(), "sentence": found.sentence()}

    # ---------------------------------------------------------------------------------------------------- a sample

    def _sampled(self, corpus: Corpus, matched: Matched, sample: int) -> Audit:
        drawn = np.random.default_rng(self._recipe.seed)
        some = {}
        for name, mask in (("removed", ~matched.kept), ("kept", matched.kept)):
            rows = np.flatnonzero(mask)
            some[name] = np.zeros(len(corpus), bool)
            some[name][drawn.permutation(rows)[:sample]] = True
        with self._clock.stage("splitting"):
            parts = {"removed": some["removed"], "sampled": some["kept"], "others": matched.kept & ~some["kept"]}
            paths = self._write_parts(corpus, parts)
        with self._clock.stage("lost"):
            kept = [paths["sampled"], paths["others"]]
            nearest = nearest_kept(self._jobs, paths["removed"], kept, self._settings.nearest_from)
        with self._clock.stage("missed"):
            found = sampled_pairs(self._jobs, paths["sampled"], paths["others"], self._threshold)
        lost = nearest.lost(self._threshold)
        none = no_pairs(0)
        missed = int(found.sum())
        counts = self._counts(matched, nearest, none, judged_kept=len(found), missed=missed, in_missed=missed)
        report = self._report(matched, counts)
        intervals = {
            "lost": exact_binomial(counts["lost"], len(nearest.rows), CONFIDENCE),
            "missed": exact_binomial(counts["missed_documents"], len(found), CONFIDENCE),
        }
        report["sample"] = {
            "documents": sample,
            "confidence": CONFIDENCE,
            **{name: {"low": each.low, "high": each.high} for name, each in intervals.items()},
        }
        report["highest_lost"] = None
        sentence = "The shares are estimates from a sample; without --sample they are counts."
        report["difference"] = {**Discrepancy().to_dict(), "sentence": sentence}
        return self._audit(corpus, nearest, lost, none, report)

    # ------------------------------------------------------------------------------------------ clusters and reasons

    def _measured(
        self, found: Audit, corpus: Corpus, matched: Matched, clusters: TwoColumns | None, pairs: TwoColumns | None
    ) -> Audit:
        """Measure clusters, as `ClaimReader.clusters` returns them, and reasons, as `ClaimReader.reasons` does."""
        ignore, wanted = self._settings.ignore_unknown, np.zeros(len(corpus), bool)
        labels = rows = mine = others = np.empty(0, np.int64)
        names = None
        if clusters is not None:
            rows = rows_of(clusters[0], corpus, "clusters", ignore, matched.counts)
            coded = clusters[1].combine_chunks().dictionary_encode()
            names, labels = coded.dictionary, numpy_of(coded.indices).astype(np.int64)
            members = np.unique(labels[rows >= 0] * len(corpus) + rows[rows >= 0])  # each once
            labels, rows = np.divmod(members, len(corpus))
            if several := int((np.bincount(rows) > 1).sum()):
                log.warning("clusters: %s in several clusters; each cluster counts", count(several, "document"))
            wanted[rows] = True
        if pairs is not None:
            mine, others = (rows_of(ids, corpus, "pairs", ignore, matched.counts) for ids in pairs)
            there = (mine >= 0) & (others >= 0) & (mine != others)
            mine, others = mine[there], others[there]
            wanted[mine] = wanted[others] = True
        with measuring(self._documents, wanted, self._recipe, self._folder) as spool:
            measured = measure_clusters(labels, rows, matched.kept, spool, self._threshold)
            worth = spool.measured(mine, others)
        tables: dict[str, pa.Table] = {}
        counts = found.report["counts"]
        if names is not None:
            tables["clusters"] = self._with_recipe(
                _clusters_table(measured, names, corpus, matched.kept, self._threshold)
            )
            below = [facts for facts in measured if facts.lowest < self._threshold]
            counts["clusters"], counts["clusters_below"] = len(measured), len(below)
            counts["clusters_without_kept"] = sum(not matched.kept[facts.members].any() for facts in measured)
            counts["cluster_reasons"] = sum(facts.reasons for facts in measured)
            counts["cluster_reasons_holding"] = sum(facts.holding for facts in measured)
        if pairs is not None:
            holds = worth >= self._threshold
            columns = {
                "id": taken(corpus.ids, pa.array(mine)),
                "other": taken(corpus.ids, pa.array(others)),
                self._recipe.method.measure.name: pa.array(worth),
                "holds": pa.array(holds),
            }
            tables["reasons"] = self._with_recipe(pa.table(columns))
            counts["reasons"], counts["reasons_holding"] = len(holds), int(holds.sum())
        return replace(found, **tables)

    # ------------------------------------------------------------------------------------------------------ results

    def _counts(
        self, matched: Matched, nearest: NearestKept, close: KeptPairs, *, judged_kept: int, missed: int, in_missed: int
    ) -> dict[str, int]:
        """Return the counts of a report.

        Parameters
        ----------
        judged_kept : int
            The number of kept documents that were compared.
        missed, in_missed : int
            The number of missed pairs, and of the kept documents in them.
        """
        kept, lost = int(matched.kept.sum()), nearest.lost(self._threshold)
        return {
            "documents": len(matched.kept),
            "kept": kept,
            "removed": len(matched.kept) - kept,
            "judged_removed": len(nearest.rows),
            "judged_kept": judged_kept,
            "lost": int(lost.sum()),
            "lost_with_nearest": int((nearest.nearest[lost] >= 0).sum()),
            "missed": missed,
            "missed_documents": in_missed,
            **_close(nearest, close, self._threshold),
            "without_words_kept": close.wordless,
            "without_words_removed": int(nearest.wordless.sum()),
            **count_skipped(self._documents.skipped),
        }

    def _report(self, matched: Matched, counts: dict[str, int]) -> dict[str, Any]:
        return {
            "version": __version__,
            "kind": "audit",
            "recipe": self._recipe.describe(),
            "measure": self._recipe.method.measure.name,
            "settings": {**asdict(self._settings), "close": CLOSE},
            "input": self._documents.describe(),
            "matching": matched.counts,
            "counts": counts,
        }

    def _audit(
        self, corpus: Corpus, nearest: NearestKept, lost: np.ndarray, close: KeptPairs, report: dict[str, Any]
    ) -> Audit:
        measure = report["measure"]
        order = np.flatnonzero(lost)
        near = nearest.nearest[order]
        lost_table = pa.table(
            {
                "id": taken(corpus.ids, pa.array(nearest.rows[order])),
                "nearest": taken(corpus.ids, pa.array(near, mask=near < 0)),
                measure: pa.array(nearest.resemblance[order], mask=near < 0),
            }
        )
        there = close.resemblance >= self._threshold
        missed_table = pa.table(
            {
                "id_a": taken(corpus.ids, pa.array(close.left[there])),
                "id_b": taken(corpus.ids, pa.array(close.right[there])),
                "kind": pa.array(close.kinds[there].tolist(), pa.string()),
                measure: pa.array(close.resemblance[there]),
            }
        )
        lost_table, missed_table = self._with_recipe(lost_table), self._with_recipe(missed_table)
        return Audit(lost_table, missed_table, None, None, report, self._recipe, self._documents)

    def _with_recipe(self, table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata({METADATA_KEY: self._recipe.to_json().encode()})


def _close(nearest: NearestKept, close: KeptPairs, threshold: float) -> dict[str, int]:
    """Count the removed documents and the pairs of kept ones that are close to the threshold."""
    low, high = close_below(threshold), min(1.0, threshold + CLOSE)
    there = (nearest.resemblance >= low) & (nearest.resemblance < high)
    return {"close_removed": int(there.sum()), "close_kept": close.number(low, high)}


def _clusters_table(
    measured: list[ClusterFacts], names: pa.Array, corpus: Corpus, kept: np.ndarray, threshold: float
) -> pa.Table:
    """Return the facts of clusters as a table, those of the lowest resemblance first."""
    order = np.argsort([facts.lowest for facts in measured], kind="stable")
    found = [measured[place] for place in order.tolist()]
    ids = corpus.ids.combine_chunks()
    joined = [facts.pair is None or facts.lowest >= threshold for facts in found]
    chains = [() if whole else facts.chain for facts, whole in zip(found, joined, strict=True)]
    links = [None if whole else facts.links for facts, whole in zip(found, joined, strict=True)]

    def ids_of(rows: list[int | None]) -> pa.Array:
        return pc.take(ids, pa.array(rows, pa.int64()))

    offsets = pa.array(np.concatenate([[0], np.cumsum([len(chain) for chain in chains])]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, ids_of([row for chain in chains for row in chain]))
    lowest = np.array([facts.lowest for facts in found], np.float64)
    return pa.table(
        {
            "cluster": pc.take(names, pa.array([facts.label for facts in found], pa.int64())),
            "members": pa.array([len(facts.members) for facts in found], pa.int64()),
            "kept": pa.array([int(kept[facts.members].sum()) for facts in found], pa.int64()),
            "lowest": pa.array(lowest, mask=np.isnan(lowest)),
            "id_a": ids_of([None if facts.pair is None else facts.pair[0] for facts in found]),
            "id_b": ids_of([None if facts.pair is None else facts.pair[1] for facts in found]),
            "chain": pc.if_else(pa.array(joined, pa.bool_()), pa.scalar(None, lists.type), lists),
            "links": pa.array(links, pa.list_(pa.float64())),
            "reasons": pa.array([facts.reasons for facts in found], pa.int64()),
            "holding": pa.array([facts.holding for facts in found], pa.int64()),
        }
    )


def _write(folder: Path, found: Audit) -> None:
    """Write the tables and the page, and audit.json last."""
    tables = {name: getattr(found, name) for name in found.report["tables"]}
    write_tables(folder, tables, found.documents.skipped)
    write_audit_page(found, folder / PAGE)
    write_report(folder, found.report, AUDIT)
