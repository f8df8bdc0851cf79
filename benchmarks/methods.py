"""The methods side by side on three corpora: bytes a document, recall, precision before verification, speed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from .measure import SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, neardup
from .whole_job import quality

CORPORA = ("bills_116", "django_docs", "manpages")

BESIDE = {"id", "num_tokens", "num_shingles", "document_hash"}
"""Columns of a sketch file that are no sketch: all methods have them, or could."""


class Row(NamedTuple):
    """A method as the table has it.

    Parameters
    ----------
    options : sequence of str
        Flags that choose it, of `neardup dedup` and of `neardup sketch`.
    sketches : bool, default True
        Whether it keeps sketches.
    by_gold : bool, default True
        Whether what it finds is resemblance of sets of shingles, which is what the gold knows.
    """

    options: Sequence[str]
    sketches: bool = True
    by_gold: bool = True


METHODS = {
    "exact": Row(("--method", "exact"), sketches=False),
    "containment": Row(("--method", "containment"), sketches=False, by_gold=False),
    "min-hash": Row(("--method", "minhash")),
    "min-hash, one bit a sample": Row(("--method", "minhash", "--sample-bits", "1")),
    "min-hash, segments of one-bit samples": Row(
        ("--method", "minhash", "--sample-bits", "1", "--candidates", "segments")
    ),
    "min-hash, fast sampler": Row(("--method", "minhash", "--sampler", "fast")),
    "min-hash, log weights": Row(("--method", "minhash", "--weighting", "log"), by_gold=False),
    "bottom-k": Row(("--method", "bottomk")),
    "mod-m": Row(("--method", "modm")),
    "simhash": Row(("--method", "simhash")),
}
"""The rows of the table; to add a method, add a line."""


def sketch(source: Path, output: Path, options: Sequence[str]) -> dict[str, Any]:
    """Run `neardup sketch` as a process."""
    command = [sys.executable, "-m", "neardup_gpu", "sketch", source, "--output", output, "--overwrite", "--json"]
    return launch([*command, *options])


def sketch_bytes(path: Path) -> float:
    """Bytes of sketches in a sketch file for a document, as they are in memory."""
    table = pq.read_table(path)
    columns = [name for name in table.column_names if name not in BESIDE]
    return table.select(columns).nbytes / len(table)


def part(bench: Bench) -> list[dict]:
    """A row a method and corpus, by whole jobs without the check of recall, and by sketching alone."""
    return [row for name in CORPORA for row in of_corpus(bench, bench.corpus(name))]


def of_corpus(bench: Bench, corpus: Path, methods: dict[str, Row] = METHODS) -> list[dict]:
    """The rows of one corpus; the methods take turns."""
    deciding = ("--threshold", str(THRESHOLD), "--check", "0", "--max-partners", "all", "--text-column", "text")
    outputs = {name: bench.scratch / f"methods{place}" for place, name in enumerate(methods)}
    jobs: dict[str, list[dict]] = {name: [] for name in methods}
    made: dict[str, list[dict]] = {name: [] for name in methods}
    for round_ in range(1 + min(bench.repeat, SLOW_ROUNDS)):  # the first is dropped
        for name, row in methods.items():
            job = neardup(corpus, outputs[name], "--id-column", "id", *deciding, *row.options)
            reading = ("--id-column", "id", "--text-column", "text", *row.options)
            alone = sketch(corpus, sketch_file(outputs[name]), reading) if row.sketches else None
            if round_:
                jobs[name].append(job)
                made[name] += [] if alone is None else [alone]
    return [_figure(name, row, corpus, outputs[name], jobs[name], made[name]) for name, row in methods.items()]


def sketch_file(output: Path) -> Path:
    """Where a method's sketches go, beside its result."""
    return output.with_suffix(".sketches.parquet")


def _figure(name: str, row: Row, corpus: Path, output: Path, jobs: list[dict], made: list[dict]) -> dict[str, Any]:
    """One row: documents a second of whole jobs, and what belongs to it."""
    counts = json.loads((output / "report.json").read_text())["counts"]
    documents, megabytes = counts["documents"], counts["text_bytes"] / 1e6
    candidates = counts["candidate_pairs"]
    seconds = figure("", [job["seconds"] for job in jobs], "s")["median"]
    cpu = figure("", [job["cpu_seconds"] for job in jobs], "s")["median"]
    known: dict[str, Any] = {"mb_per_s": _short(megabytes / seconds), "cpu_seconds": cpu, "candidates": candidates}
    known["precision"] = _short(counts["verified_pairs"] / candidates) if candidates else None
    if row.by_gold:
        known |= {key: value for key, value in quality(output, corpus).items() if key in ("recall", "settled")}
    if made:
        sketching = [json.loads(each["stdout"])["timings"]["sketch"] for each in made]
        known["bytes_a_document"] = round(sketch_bytes(sketch_file(output)), 1)
        known["sketching_mb_per_s"] = _short(megabytes / figure("", sketching, "s")["median"])
        known["sketching_cpu_seconds"] = figure("", [each["cpu_seconds"] for each in made], "s")["median"]
    known["peak_mb"] = round(max(job["peak_mb"] for job in jobs), 1)
    rates = [documents / job["seconds"] for job in jobs]
    return figure(f"neardup dedup, {name}", rates, "documents/s", corpus=corpus.stem, **known)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
