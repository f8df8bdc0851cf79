"""Buckets as large as the corpus: the part `giant`."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa

import neardup_gpu

from .measure import SHUFFLE_SEED, SLOW_ROUNDS, THRESHOLD, Bench, figure

GIANT = (25_000, 50_000, 100_000)
TEMPLATE_WORDS, TEMPLATE_EDITS = 300, 3


def part(bench: Bench) -> list[dict]:
    """Buckets as large as the corpus: identical pages, and pages of one template."""
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
    runs: dict[tuple[str, int], list[tuple[float, dict]]] = {}
    neardup_gpu.dedup(pa.table({"text": pages[:1000]}), threshold=THRESHOLD)
    for _ in range(min(bench.repeat, SLOW_ROUNDS)):
        for name, texts in inputs.items():
            for size in (max(sizes),) if name == "identical pages" else sizes:
                table = pa.table({"text": pa.array(texts[:size], pa.large_string())})
                start = time.perf_counter()
                result = neardup_gpu.dedup(table, threshold=THRESHOLD)
                runs.setdefault((name, size), []).append((time.perf_counter() - start, result.report))
    figures, medians = [], {}
    for (name, size), done in runs.items():
        seconds, report = [run[0] for run in done], done[0][1]
        known = {key: report["counts"][key] for key in ("kept", "candidate_pairs", "verified_pairs")}
        known["uncompared_pairs"] = report["limits"]["uncompared_pairs"]
        figures.append(figure(f"{size:,} {name}", seconds, "s", documents=size, **known, stages=report["timings"]))
        medians[size] = statistics.median(seconds)
    growth = np.log(medians[sizes[-1]] / medians[sizes[0]]) / np.log(sizes[-1] / sizes[0])
    figures.append(figure("pages of one template: time grows as documents to the power", [float(growth)], "exponent"))
    return figures
