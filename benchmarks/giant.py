"""Crowds as large as the corpus, by the default method and by min-hash: the part `giant`."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa

import neardup_gpu

from .measure import SHUFFLE_SEED, SLOW_ROUNDS, THRESHOLD, Bench, figure

GIANT = (25_000, 50_000, 100_000)
TEMPLATE_WORDS, TEMPLATE_EDITS = 300, 3
METHODS = ("exact", "minhash")


def part(bench: Bench) -> list[dict]:
    """Crowds as large as the corpus: identical pages, and pages of one template."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    words = [f"w{i}" for i in rng.integers(0, 20_000, TEMPLATE_WORDS)]
    pages = []
    sizes = [bench.sized(size) for size in GIANT]
    for page in range(max(sizes)):
        edited = words.copy()
        for edit, place in enumerate(rng.integers(0, TEMPLATE_WORDS, TEMPLATE_EDITS)):
            edited[place] = f"edit{page}x{edit}"
        pages.append(" ".join(edited))
    inputs = {"identical pages": [" ".join(words)] * max(sizes)}
    inputs |= {f"pages of one template, {TEMPLATE_EDITS} edits of {TEMPLATE_WORDS} words": pages}
    runs: dict[tuple[str, int, str], list[tuple[float, dict]]] = {}
    for method in METHODS:
        neardup_gpu.dedup(pa.table({"text": pages[:1000]}), method=method, threshold=THRESHOLD)
    for _ in range(min(bench.repeat, SLOW_ROUNDS)):
        for name, texts in inputs.items():
            for size in (max(sizes),) if name == "identical pages" else sizes:
                table = pa.table({"text": pa.array(texts[:size], pa.large_string())})
                for method in METHODS:
                    start = time.perf_counter()
                    result = neardup_gpu.dedup(table, method=method, threshold=THRESHOLD)
                    runs.setdefault((name, size, method), []).append((time.perf_counter() - start, result.report))
    figures, medians = [], {}
    for (name, size, method), done in runs.items():
        seconds, report = [run[0] for run in done], done[0][1]
        known = {key: report["counts"][key] for key in ("kept", "candidate_pairs", "verified_pairs")}
        known |= {key: report["limits"][key] for key in ("unlisted_pairs", "all_counted")}
        context = {"method": method, "documents": size, **known, "stages": report["timings"]}
        figures.append(figure(f"{size:,} {name}, {method}", seconds, "s", **context))
        medians[method, size] = statistics.median(seconds)
    for method in METHODS:
        growth = np.log(medians[method, sizes[-1]] / medians[method, sizes[0]]) / np.log(sizes[-1] / sizes[0])
        what = f"pages of one template, {method}: time grows as documents to the power"
        figures.append(figure(what, [float(growth)], "exponent"))
    return figures
