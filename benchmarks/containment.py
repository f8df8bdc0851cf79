"""Documents that others contain, beside the time of exact and datasketch's LSH Ensemble: the part `containment`.

What is compared is processor time, as both jobs read and write alike; each job has a process of its own.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pyarrow.parquet as pq

import neardup_gpu

from .exact import job
from .measure import PROGRAMS, SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, ratio
from .peers import ensure_venv, requirement

CONTAINED = 0.9
CORPORA = ("bills_116_small", "bills_116", "django_docs", "manpages", "openjdk_html")
TREE = Path(__file__).parents[1]


def part(bench: Bench) -> list[dict]:
    """Containment and exact take turns."""
    figures = []
    for name in CORPORA:
        source = bench.corpus(name)
        ours, exact = [], []
        for _ in range(bench.repeat):
            ours.append(job(source, "containment", CONTAINED, TREE))
            exact.append(job(source, "exact", THRESHOLD, TREE))
        for what, runs in ((f"containment at {CONTAINED}", ours), (f"exact at {THRESHOLD}", exact)):
            known = {key: runs[0][key] for key in ("documents", "kept", "candidate_pairs", "verified_pairs")}
            known["peak_mb"] = round(statistics.median(run["peak_mb"] for run in runs))
            stages = runs[len(runs) // 2]["stages"]
            figures.append(figure(f"{name}: {what}", _busy(runs), "s of processors", **known, stages=stages))
        figures.append(ratio(f"{name}: containment over exact, processors", _busy(ours), _busy(exact)))
        bench.target(figures[-1]["what"], figures[-1]["median"], 2, least=False)
    return [*figures, *_peer(bench)]


def _busy(runs: list[dict]) -> list[float]:
    return [run["cpu_seconds"] for run in runs]


def _peer(bench: Bench) -> list[dict]:
    """LSH Ensemble finds candidates alone, from sets on; what it finds of all pairs, and how many it proposes."""
    if not bench.peers:
        return []
    python = ensure_venv("datasketch", [requirement("datasketch"), requirement("pyarrow")], bench.cache)
    figures = []
    for name in ("bills_116_small", "django_docs"):
        source, listed = bench.corpus(name), bench.scratch / "contained.parquet"
        found = neardup_gpu.dedup(
            source,
            id_column="id",
            recipe=neardup_gpu.Recipe(method="containment", threshold=CONTAINED, max_partners=None),
        )
        pq.write_table(found.pairs, listed)
        command = [python, PROGRAMS / "lsh_ensemble.py", source, CONTAINED, listed]
        theirs = [json.loads(launch(command)["stdout"]) for _ in range(min(bench.repeat, SLOW_ROUNDS))]
        known = {key: theirs[0][key] for key in ("documents", "candidates", "recall")}
        seconds = [run["seconds"] for run in theirs]
        figures.append(figure(f"{name}: LSH Ensemble, from sets on", seconds, "s", **known))
        figures.append(figure(f"{name}: LSH Ensemble, from sketches on", [run["from_sketches"] for run in theirs], "s"))
        counts = {key: found.report["counts"][key] for key in ("candidate_pairs", "verified_pairs")}
        ours = [job(source, "containment", CONTAINED, TREE)["seconds"] for _ in range(len(theirs))]
        figures.append(figure(f"{name}: containment, from the file on", ours, "s", **counts, recall=1.0))
    return figures
