"""Many short documents, and a few long ones: how many processors are busy, how time and memory grow: the part `short`.

Documents are of 40 words, 1% of them like another but for a word. Times are of jobs in memory, in a process of its own
after a small job for which kernels are compiled; memory is the peak of the process beyond that at the fewest documents.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from .exact import job, short_texts, write_texts
from .measure import SLOW_ROUNDS, THRESHOLD, Bench, Skip, figure, neardup

SIZES = (100_000, 1_000_000, 10_000_000)
METHODS = ("exact", "minhash", "simhash")
WHOLE = 1_000_000
BUSY, EXPONENT, BYTES, SECONDS = 1.8, 1.05, 300, 5.0

Runs = dict[tuple[str, int], list[dict]]


def part(bench: Bench) -> list[dict]:
    """Methods take turns at each size."""
    runs: Runs = {}
    figures: list[dict] = []
    for size in SIZES:
        source = bench.scratch / "short.parquet"
        write_texts(source, short_texts(bench.sized(size)))
        _take_turns(bench, source, size, runs)
        if size == WHOLE:
            figures += _whole(bench, source)
        source.unlink()
    for method in METHODS:
        figures += _of_method(bench, method, runs)
    try:
        source = bench.corpus("bills_116")
    except Skip:
        return figures
    _take_turns(bench, source, 0, runs)
    for method in METHODS:
        figures += _of_size(bench, f"bills_116: {method}", runs[method, 0])
    return figures


def _take_turns(bench: Bench, source: Path, size: int, runs: Runs) -> None:
    for _ in range(1 if size > WHOLE else min(bench.repeat, SLOW_ROUNDS)):
        for method in METHODS:
            done = job(source, method, THRESHOLD, Path(__file__).parents[1])
            runs.setdefault((method, size), []).append(done)


def _of_method(bench: Bench, method: str, runs: Runs) -> list[dict]:
    """Time, processors and memory at each size, and how they grow."""
    figures = []
    for size in SIZES:
        figures += _of_size(bench, f"{size:,} documents of 40 words: {method}", runs[method, size])
    first, last = runs[method, SIZES[0]], runs[method, SIZES[-1]]
    exponent = math.log(_median(last, "seconds") / _median(first, "seconds")) / math.log(SIZES[-1] / SIZES[0])
    what = f"{SIZES[0]:,} to {SIZES[-1]:,} documents of 40 words: {method}"
    figures.append(figure(f"{what}, time grows as", [exponent], "exponent"))
    bench.target(f"{what}: exponent of time", exponent, EXPONENT, least=False)
    for size in SIZES[1:]:
        more = 1e6 * (_median(runs[method, size], "peak_mb") - _median(first, "peak_mb"))
        held = more / bench.sized(size - SIZES[0])
        what = f"{size:,} documents of 40 words: {method}, memory beyond the peak of {SIZES[0]:,}"
        figures.append(figure(what, [held], "bytes a document"))
        bench.target(what, held, BYTES, least=False)
    return figures


def _of_size(bench: Bench, what: str, runs: list[dict]) -> list[dict]:
    """Time and memory of some runs, and how many processors were busy."""
    known = {key: runs[0][key] for key in ("documents", "kept", "verified_pairs")}
    known["peak_mb"] = round(_median(runs, "peak_mb"))
    busy = [run["cpu_seconds"] / run["seconds"] for run in runs]
    bench.target(f"{what}: processors busy", statistics.median(busy), BUSY, least=True)
    seconds = [run["seconds"] for run in runs]
    return [
        figure(what, seconds, "s", **known, stages=runs[len(runs) // 2]["stages"]),
        figure(f"{what}, processor time over time", busy, "processors"),
    ]


def _whole(bench: Bench, source: Path) -> list[dict]:
    """The whole command, which writes its results."""
    runs = [neardup(source, bench.scratch / "short") for _ in range(min(bench.repeat, SLOW_ROUNDS) + 1)][1:]
    what = f"{WHOLE:,} documents of 40 words: neardup dedup, the whole process"
    seconds = [run["seconds"] for run in runs]
    bench.target(what, statistics.median(seconds), SECONDS, least=False)
    return [figure(what, seconds, "s", cpu_seconds=_median(runs, "cpu_seconds"), peak_mb=_median(runs, "peak_mb"))]


def _median(runs: list[dict], name: str) -> float:
    return statistics.median(run[name] for run in runs)
