"""Whole jobs of others beside ours, on the same made documents and processors: the part `beside` of run.py.

Documents are of 40 words of letters alone, 1% of them like another but for a word. Others read the file, decide, and
write the rows that they keep, without verification; ours verifies. Recall and `unfounded` are counted with all pairs of
resemblance 0.5 and more, by the exact method, whose pairs tests compare with all pairs by brute force.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe, dedup

from . import peers
from .exact import short_texts
from .measure import THRESHOLD, Bench, Skip, figure, ratio
from .scale import METHODS, ROWS, Jobs, Run, of_runs, rounds, seconds_of

DOCUMENTS, MOST_SECONDS = 100_000, 300


def part(bench: Bench) -> list[dict]:
    """Ours, in memory and as tasks of two processes, and others by turns."""
    if not bench.peers:
        raise Skip("peers were not asked for; add --peers")
    jobs = Jobs(bench)
    source = bench.scratch / "scale" / "beside.parquet"
    letters = str.maketrans("0123456789", "abcdefghij")
    texts = [text.translate(letters) for part in short_texts(bench.sized(DOCUMENTS)) for text in part]
    ids = pa.array(np.arange(len(texts))).cast(pa.string())
    pq.write_table(pa.table({"id": ids, "text": pa.array(texts, pa.large_string())}), source, row_group_size=ROWS)
    all_pairs = dedup(source, recipe=Recipe(threshold=0.5, max_partners=None)).pairs.select(
        ["id_a", "id_b", "resemblance"]
    )
    gold = source.with_name(f"{source.stem}.gold.parquet")
    pq.write_table(all_pairs.rename_columns(["id_a", "id_b", "jaccard"]), gold)

    theirs: dict[str, list[dict]] = {name: [] for name in peers.JOBS}
    ours: dict[str, list[Run]] = {f"{method}, {runner}": [] for method in METHODS for runner in ("memory", "local")}
    for name in ours:
        jobs.run(source, *name.split(", "))
    for _ in range(rounds(bench)):
        for name, runs in ours.items():
            runs.append(jobs.run(source, *name.split(", ")))
        for name, answers in theirs.items():
            if all("failed" not in answer for answer in answers):
                answers.append(
                    peers.run_peer(name, source, cache=bench.cache, threshold=THRESHOLD, most_seconds=MOST_SECONDS)
                )
    figures = [of_runs(name, runs) for name, runs in ours.items()]
    for name, answers in theirs.items():
        if "failed" in answers[-1]:
            bench.skipped.append(f"beside: {name}: {answers[-1]['failed']}")
            continue
        known = {key: answers[0][key] for key in ("version", "threads", "kept", "recall", "unfounded", "peak_rss_mb")}
        seconds = [answer["seconds"] for answer in answers]
        figures.append(figure(f"{name}, unverified", seconds, "s", **known))
        for method, runs in ours.items():
            faster = ratio(f"{name} over {method}, verified", seconds, seconds_of(runs))
            figures.append(faster)
            if name in ("text-dedup", "datatrove") and method.endswith("local"):
                bench.target(f"{method}, as tasks, times {name}", faster["median"], 10, least=True)
    return figures
