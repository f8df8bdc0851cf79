"""Who is kept of a thousand million documents, from a stream of as many pairs: the part `deciding` of run.py.

    python -m benchmarks.deciding --documents 100_000_000

Each document but the last has a pair with a worse one, any with equal probability, which is hard on caches. Times are
processor time, as one thread decides; making the pairs is left out. Each run is a process of its own, which checks
first on a few documents that the decisions are those of the kernel for pairs in memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator

import numpy as np

from neardup_gpu.kernels import greedy
from neardup_gpu.tasks.deciding import decide_greedily, set_within

from .measure import SLOW_ROUNDS, Bench, figure, launch

DOCUMENTS = (100_000_000, 1_000_000_000)
FEW = 20_000
CHUNK = 1 << 17
"""Pairs of a chunk."""

Pieces = Iterator[tuple[np.ndarray, np.ndarray]]


def part(bench: Bench) -> list[dict]:
    """Greedy decisions, by one pass with a bit per document in memory."""
    figures, rounds = [], min(bench.repeat, SLOW_ROUNDS)
    few = launch([*COMMAND, "--documents", FEW])["peak_mb"]
    for documents in map(bench.sized, DOCUMENTS):
        runs = [launch([*COMMAND, "--documents", documents]) for _ in range(rounds)]
        found = [json.loads(run["stdout"]) for run in runs]
        what = f"greedy decisions, {documents:,} pairs of as many documents"
        nanoseconds = [each["seconds"] / documents * 1e9 for each in found]
        figures.append(figure(what, nanoseconds, "ns/pair", removed=found[0]["removed"]))
        more = [run["peak_mb"] - few for run in runs]
        figures.append(figure(f"{what}: peak memory above that of {FEW:,}", more, "MB", few_mb=round(few, 1)))
    bench.target("deciding 10^9 documents, ns a pair", figures[-2]["median"], 60, least=False)
    bench.target("deciding 10^9 documents, MB", figures[-1]["median"], 150, least=False)
    return figures


COMMAND = [sys.executable, "-m", "benchmarks.deciding"]


def pairs(documents: int, spent: list[float]) -> Pieces:
    """A pair of each document but the last with a worse one; `spent` gets the processor seconds of making them."""
    random = np.random.default_rng(0)
    for first in range(0, documents - 1, CHUNK):
        start = time.process_time()
        left = np.arange(first, min(first + CHUNK, documents - 1))
        right = random.random(len(left))
        right *= documents - 1 - left
        right = right.astype(np.int64)
        right += left + 1
        spent.append(time.process_time() - start)
        yield left, right


def decide(documents: int) -> dict[str, float]:
    """Processor seconds of decisions, those of making pairs left out, and how many documents were removed."""
    spent: list[float] = []
    start = time.process_time()
    bits = decide_greedily(pairs(documents, spent), documents, 0)
    seconds = time.process_time() - start - sum(spent)
    removed = sum(len(set_within(bits, first, min(first + CHUNK, documents))) for first in range(0, documents, CHUNK))
    return {"seconds": seconds, "removed": removed}


def check_agreement() -> None:
    """Decide on few documents as the kernel for pairs in memory does.

    Raises
    ------
    AssertionError
        If a decision differs.
    """
    left, right = (np.concatenate(column) for column in zip(*pairs(FEW, []), strict=True))
    keeper = greedy.cpu(FEW, left, right, np.ones(len(left)), np.zeros(FEW, bool))
    removed = int(np.count_nonzero(keeper != np.arange(FEW)))
    assert decide(FEW)["removed"] == removed


def main() -> None:
    """Print what a run found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=DOCUMENTS[0])
    args = parser.parse_args()
    check_agreement()
    print(json.dumps(decide(args.documents)))


if __name__ == "__main__":
    main()
