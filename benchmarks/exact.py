"""Every pair by the prefix filter, beside min-hash, an earlier version and SetSimilaritySearch: the part `exact`.

NEARDUP_BEFORE names a checkout of an earlier version, whose min-hash then takes its turns.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .measure import PROGRAMS, SHUFFLE_SEED, SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, ratio
from .peers import ensure_venv, requirement

SHORT = (100_000, 1_000_000, 10_000_000)
CROWD = 100_000
FROM_SHINGLES = ("index", "join", "verify")
PART = 200_000  # documents that are made at a time


def part(bench: Bench) -> list[dict]:
    """exact and min-hash take turns, each in a process of its own, after a job that is not timed."""
    return [*_real(bench), *_short(bench), *_crowds(bench), *_peer(bench)]


def _jobs(bench: Bench, source: Path, variants: dict[str, tuple[str, float]], rounds: int) -> dict[str, list[dict]]:
    """Runs of each variant (method and threshold), in turns; of the earlier version too, if there is one."""
    done: dict[str, list[dict]] = {}
    before = os.environ.get("NEARDUP_BEFORE")
    for _ in range(rounds):
        for name, (method, threshold) in variants.items():
            done.setdefault(name, []).append(job(source, method, threshold, Path(__file__).parents[1]))
        if before:
            done.setdefault("before", []).append(job(source, "minhash", THRESHOLD, Path(before)))
    return done


def job(source: Path, method: str, threshold: float, tree: Path) -> dict[str, Any]:
    command = ["env", f"PYTHONPATH={tree}", sys.executable, PROGRAMS / "one_job.py", source, method, threshold]
    watched = launch(command)
    return {**json.loads(watched["stdout"]), "peak_mb": watched["peak_mb"]}


def _figures(what: str, done: dict[str, list[dict]], bench: Bench) -> list[dict]:
    """Time, memory and counts of each variant, and what exact takes over each of the others."""
    figures = []
    for name, runs in done.items():
        known = {key: runs[0][key] for key in ("documents", "kept", "candidate_pairs", "verified_pairs")}
        known["peak_mb"] = round(statistics.median(run["peak_mb"] for run in runs))
        known["cpu_seconds"] = round(statistics.median(run["cpu_seconds"] for run in runs), 3)
        stages = runs[len(runs) // 2]["stages"]
        figures.append(figure(f"{what}: {name}", _seconds(runs), "s", **known, stages=stages))
    for name in done:
        if name != "exact":
            figures.append(ratio(f"{what}: exact over {name}", _seconds(done["exact"]), _seconds(done[name])))
    return figures


def _seconds(runs: list[dict]) -> list[float]:
    return [run["seconds"] for run in runs]


def _over(done: dict[str, list[dict]], other: str) -> float:
    return statistics.median(a / b for a, b in zip(_seconds(done["exact"]), _seconds(done[other]), strict=True))


def _real(bench: Bench) -> list[dict]:
    figures = []
    for name in ("bills_116", "openjdk_html", "manpages"):
        variants = {"exact": ("exact", THRESHOLD), "min-hash": ("minhash", THRESHOLD), "exact at 0.5": ("exact", 0.5)}
        done = _jobs(bench, bench.corpus(name), variants, bench.repeat)
        figures += _figures(name, done, bench)
        if name == "bills_116":
            bench.target("bills_116: exact over min-hash with its check", _over(done, "min-hash"), 1.0, least=False)
            at_half = statistics.median(
                a / b for a, b in zip(_seconds(done["exact at 0.5"]), _seconds(done["exact"]), strict=True)
            )
            bench.target("bills_116: exact at 0.5 over 0.8", at_half, 1.5, least=False)
    return figures


def _short(bench: Bench) -> list[dict]:
    """Documents of 40 words, 1% of which have a near-duplicate."""
    figures, medians, sizes = [], {}, [bench.sized(size) for size in SHORT]
    for size in sizes:
        source = bench.scratch / "short.parquet"
        write_texts(source, short_texts(size))
        variants = {"exact": ("exact", THRESHOLD), "min-hash": ("minhash", THRESHOLD)}
        done = _jobs(bench, source, variants, 1 if size > 5_000_000 else min(bench.repeat, SLOW_ROUNDS))
        figures += _figures(f"{size:,} documents of 40 words", done, bench)
        medians[size] = statistics.median(_seconds(done["exact"]))
        if size >= 1_000_000:
            bench.target(f"{size:,} short documents: exact over min-hash", _over(done, "min-hash"), 0.6, least=False)
        source.unlink()
    growth = float(np.log(medians[sizes[-1]] / medians[sizes[1]]) / np.log(sizes[-1] / sizes[1]))
    figures.append(figure(f"exact, {sizes[1]:,} to {sizes[-1]:,} short documents: time grows as", [growth], "exponent"))
    bench.target("short documents: exponent of time", growth, 1.05, least=False)
    return figures


def short_texts(size: int) -> Iterator[list[str]]:
    """Documents of 40 words, some at a time; 1% of them are like another but for a word."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    for first in range(0, size, PART):
        words = rng.integers(0, 200_000, (min(PART, size - first), 40))
        again = np.flatnonzero(rng.random(len(words)) < 0.01)
        words[again] = words[rng.integers(0, len(words), len(again))]
        words[again, rng.integers(0, 40, len(again))] = 200_000
        yield [" ".join(row) for row in words.astype(str).tolist()]


def write_texts(path: Path, parts: Iterator[list[str]]) -> None:
    """Write column `text`, a row group for each list."""
    schema = pa.schema({"text": pa.large_string()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for texts in parts:
            writer.write_table(pa.table({"text": pa.array(texts, pa.large_string())}))


def _crowds(bench: Bench) -> list[dict]:
    """Groups as large as the corpus, true and false."""
    size, rng, figures = bench.sized(CROWD), np.random.default_rng(SHUFFLE_SEED), []
    words = [f"w{i}" for i in rng.integers(0, 20_000, 300)]

    def edited(page: int, base: list[str], edits: int) -> str:
        words = base.copy()
        for number, place in enumerate(rng.integers(0, len(base), edits)):
            words[place] = f"edit{page}x{number}"
        return " ".join(words)

    families = [[f"f{family}w{i}" for i in range(300)] for family in range(30)]
    sentences = [" ".join(f"s{i}w{j}" for j in range(10)) for i in range(60)]
    crowds = {
        "pages of one template": lambda: [edited(page, words, 3) for page in range(size)],
        "pages whose template stays below the threshold": lambda: [
            " ".join([*words[:240], *(f"own{page}x{i}" for i in range(rng.integers(30, 61)))]) for page in range(size)
        ],
        "identical pages": lambda: [" ".join(words)] * size,
        "pages of 30 families below the threshold": lambda: [
            edited(page, families[page % 30], 11) for page in range(3 * size // 10)
        ],
        "pages of 30 sentences of 60": lambda: [
            " ".join(sentences[i] for i in rng.permutation(60)[:30]) for _ in range(8 * size // 100)
        ],
    }
    limits = {"pages of one template": 2.5, "pages of 30 sentences of 60": None}
    for name, make in crowds.items():
        source = bench.scratch / "crowd.parquet"
        write_texts(source, iter([make()]))
        variants = {"exact": ("exact", THRESHOLD), "min-hash": ("minhash", THRESHOLD)}
        done = _jobs(bench, source, variants, min(bench.repeat, SLOW_ROUNDS))
        figures += _figures(name, done, bench)
        limit = limits.get(name, 1.5)
        if "before" in done and limit is not None:
            bench.target(f"{name}: exact over min-hash before", _over(done, "before"), limit, least=False)
    return figures


def _peer(bench: Bench) -> list[dict]:
    """All pairs by SetSimilaritySearch, from sets on; ours from shingles on, and beside it from the file on."""
    if not bench.peers:
        return []
    python = ensure_venv(
        "SetSimilaritySearch", [requirement("SetSimilaritySearch"), requirement("pyarrow")], bench.cache
    )
    short = bench.scratch / "short.parquet"
    write_texts(short, short_texts(bench.sized(100_000)))
    figures = []
    for name, source in {"django_docs": bench.corpus("django_docs"), "100,000 short documents": short}.items():
        ours, theirs = [], []
        for _ in range(min(bench.repeat, SLOW_ROUNDS)):
            ours.append(job(source, "exact", THRESHOLD, Path(__file__).parents[1]))
            command = [python, PROGRAMS / "set_similarity_search.py", source, THRESHOLD]
            theirs.append(json.loads(launch(command)["stdout"]))
        stages = [sum(run["stages"].get(stage, 0.0) for stage in FROM_SHINGLES) for run in ours]
        figures.append(figure(f"{name}: exact, from the file on", _seconds(ours), "s", pairs=ours[0]["verified_pairs"]))
        figures.append(figure(f"{name}: exact, from shingles on", stages, "s"))
        figures.append(figure(f"{name}: SetSimilaritySearch", _seconds(theirs), "s", pairs=theirs[0]["pairs"]))
        times = ratio(f"{name}: SetSimilaritySearch over exact, from shingles on", _seconds(theirs), stages)
        bench.target(times["what"], times["median"], 50, least=True)
        figures += [times, ratio(f"{name}: SetSimilaritySearch over exact, all", _seconds(theirs), _seconds(ours))]
    return figures
