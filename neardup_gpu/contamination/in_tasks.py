"""A check as a job of tasks: slices of the training text are searched, and their kept rows written.

search   of a slice: its hits, what is cut or marked, the passages to show; the rows that were skipped
write    of a slice: its part of kept/, if there is one

The driver reads the items and hands them on in one file, which each task loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from ..data import Ragged, arrow, numpy_of
from ..documents.batches import one_integer_type
from ..documents.seams import joined_seams
from ..documents.skipped import check_skipped
from ..documents.slices import Extent, Slice, extent_of
from ..engine.clock import Clock
from ..errors import ParameterError
from ..store.exchange import read_partition
from ..store.places import Place
from ..tasks.begin import hand_on
from ..tasks.columns import save_tables, tables_of, type_of_text
from ..tasks.driver import Job, extents_in, how_written, offsets_in, skipped_rows
from ..tasks.results import Written, write_kept_rows
from ..tasks.running import move_files
from ..tasks.work import Files, Stage, Work, file_name
from .finding import Check, Scanned
from .items import EvaluationItems, Targets, Wanted
from .scanning import NO_HITS, NO_SPANS, BatchHits, Findings, Hits, Passage, Scan, best_passages

ITEMS = "items"
"""The folder of the file of items."""

TEXTS = pa.schema([("text", pa.uint64())])

ITEM_BYTES = 45
"""Bytes that a task holds for each token of the items, at most."""


def scan_in_tasks(check: Check, job: Job, place: Path) -> Scanned:
    """Search by tasks, and write kept/ into the folder of the output.

    Raises
    ------
    NeardupError
        As raised by `run_in_tasks`.
    """
    work, slices, action = job.work, job.slices, check.settings.action
    with work.told_as("search"):
        digest = _hand_on(work, check)
        calls: list[Any] = [(slice, digest, action, check.by, check.settings.within) for slice in slices]
        searched = work.stage("search", search, calls, on_device=True)
        scanned = work.repairing(lambda: _scanned(job, searched))
    if action != "list":
        with work.told_as("write"):
            extents = extents_in(job, searched)
            hit = scanned.findings.counts["documents_hit"]
            calls = [(*each, action, hit) for each in zip(slices, extents, how_written(job, extents), strict=True)]
            written = work.stage("write", write, calls, after=[searched])
        move_files([written], Path(work.shared.result), place)
    return scanned


def search(
    files: Files, slice: Slice, items: str, action: str, by: str | None, within: Sequence[str]
) -> dict[str, Any]:
    """Search a slice. Memory: a batch, the items and the slice's hits.

    Parameters
    ----------
    slice : Slice
    items : str
        A digest of the items, which the driver handed on.
    action : str
        See `contaminated`.
    by : str or None
        The column, or "file", that hits are counted by.
    within : sequence of str
        See `contaminated`.
    """
    shared, documents = files.shared, slice.open()
    with shared.start() as runtime, files.exchange("texts", TEXTS, 1) as texts:
        scan = Scan(*_handed_on(files), shared.recipe, action, runtime, Clock(None), by, within)
        findings = scan.run(documents, shared.engine.batch_bytes, lambda some: texts.add_to(0, {"text": some}))
    save_tables(files, "found", _tables(findings))
    if documents.skipped is not None:
        save_tables(files, "skipped", [documents.skipped])
    return {"counts": findings.counts, "id_type": documents._id_type, "extent": extent_of(documents)}


def write(files: Files, slice: Slice, extent: Extent, how: Written, action: str, documents_hit: int) -> dict[str, Any]:
    """Write the kept rows of a slice; `documents_hit` is the count of all slices, whose files have equal columns."""
    findings = _findings(files.place, file_name("search", files.number, "found"))
    findings.counts.update(documents=sum(extent.num_documents), documents_hit=documents_hit)
    return {"files": write_kept_rows(files, slice, extent, findings.edits(action), how)}


def _hand_on(work: Work, check: Check) -> str:
    """Write the arrays of the items that a scan takes; return a digest of them.

    Raises
    ------
    ParameterError
        If they take more memory than a task may.
    """
    items, wanted, most = check.items, check.wanted, work.shared.task_memory
    if (need := ITEM_BYTES * len(wanted.tokens)) > most:
        raise ParameterError(
            f"task_memory {most / 1e6:,.0f}MB: each task holds the items of all evaluation sets, which take up to "
            f"{need / 1e6:,.0f}MB; allow more than that"
        )
    arrays = {**items.targets._asdict(), **wanted._asdict(), "set_of": items.set_of, "first_target": items.first_target}
    return hand_on(work, ITEMS, 0, [[pa.table({name: arrow(arrays[name])}) for name in ARRAYS]])


ARRAYS = (*Targets._fields, "set_of", "first_target", "tokens", "offsets", "target_of", "widths")
"""The arrays of items and of the rows to look for that a scan takes."""


def _handed_on(files: Files) -> tuple[EvaluationItems, Wanted]:
    """Read what `_hand_on` wrote: items without names and texts, and the rows to look for."""
    tables = tables_of(files.place, [file_name(ITEMS, 0, ITEMS)], 0)
    found = {name: numpy_of(table[name]).copy() for name, table in zip(ARRAYS, tables, strict=True)}
    targets = Targets(*(found.pop(name) for name in Targets._fields))
    of_items, nothing = (found.pop("set_of"), found.pop("first_target")), np.empty(0, np.uint64)
    items = EvaluationItems([], of_items[0], pa.chunked_array([], pa.string()), [], nothing, targets, of_items[1], [])
    return items, Wanted(**found, grams=0)


def _tables(findings: Findings) -> list[pa.Table]:
    """Return all findings but the counts as tables: hits, spans, emptied documents, passages, values, seams."""
    hits = [np.concatenate(arrays) for arrays in zip(NO_HITS, *(each.hits for each in findings.listed), strict=True)]
    ids = one_integer_type([each.ids for each in findings.listed])
    named = {"id": pa.chunked_array(ids) if ids else pa.nulls(0, pa.int64())}
    kinds = {"id": named["id"].type}  # of numbers from 2**63 on, Arrow does not find out the type
    passages = {
        name: pa.array([getattr(each, name) for each in findings.passages], kinds.get(name)) for name in Passage._fields
    }
    spans = [np.concatenate(arrays) for arrays in zip(NO_SPANS, *findings.spans, strict=True)]
    emptied, seams = np.concatenate([NO_SPANS[0], *findings.emptied]), joined_seams(findings.seams, 0)
    return [
        pa.table({**{name: arrow(each) for name, each in zip(Hits._fields, hits, strict=True)}, **named}),
        pa.table({str(number): arrow(each) for number, each in enumerate(spans)}),
        pa.table({"document": arrow(emptied)}),
        pa.table(passages),
        pa.table({"value": pa.chunked_array(findings.values, pa.large_string())}),
        pa.table({"place": arrow(seams.values)}),
        pa.table({"end": arrow(seams.offsets[1:])}),
    ]


def _findings(place: Place, name: str) -> Findings:
    """Return the findings of a slice without their counts."""
    hits, spans, emptied, passages, values, places, seams = tables_of(place, [name], 0)
    found = Findings()
    if len(hits):
        arrays = Hits(*(numpy_of(hits[each]) for each in Hits._fields))
        found.listed.append(BatchHits(arrays, hits["id"].combine_chunks()))
    owner, begins, ends = map(numpy_of, spans.columns)
    found.spans.append((owner, begins, ends))
    found.emptied.append(numpy_of(emptied["document"]))
    found.passages += [Passage(**row) for row in passages.to_pylist()]
    found.values += values["value"].chunks
    if len(seams):
        found.seams.append(Ragged._trusted(numpy_of(places["place"]), np.append(0, numpy_of(seams["end"]))))
    return found


def _scanned(job: Job, searched: Stage) -> Scanned:
    """Join the findings of all slices.

    Raises
    ------
    InputError
        If no document can be read.
    """
    place, texts, joined = job.work.place, xxhash.xxh3_128(), Findings()
    extents = extents_in(job, searched)
    names = zip(searched.names("found"), searched.names("texts"), strict=True)
    for (found, fingerprints), facts, slice, offset in zip(
        names, searched.facts, job.slices, offsets_in(job, extents), strict=True
    ):
        first, part = joined.counts["documents"], _findings(place, found)
        joined.counts.update(facts["counts"])
        for hits, ids in part.listed:
            hits = hits._replace(document=hits.document + first)
            joined.listed.append(BatchHits(hits, offset.ids(ids, slice)))
        more = offset.first_row if slice.ids_are_rows else 0
        joined.passages += [each._replace(id=each.id + more) if more else each for each in part.passages]
        joined.values += part.values
        for batch in read_partition(place, [fingerprints], 0):
            texts.update(numpy_of(batch.column("text")).tobytes())
    joined.passages = best_passages(joined.passages)
    skipped = skipped_rows(job, searched)
    if joined.counts["documents"] == 0:
        check_skipped(skipped)
    wide = any("wide" in dict(extent.integers) for extent in extents)
    id_type = pa.uint64() if wide else type_of_text(searched.facts[0]["id_type"])
    return Scanned(joined, texts.hexdigest(), skipped, id_type, job.about)
