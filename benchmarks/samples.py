"""Min-hash samples: drawn fast or by permutations, compared whole or by a bit of each: the part `samples` of run.py.

    python -m benchmarks.samples

All in one process and on one thread, by its processor time; what is compared takes turns. rensa draws its samples from
the same ready hashes where it is installed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu import MinHash
from neardup_gpu.kernels import bbit, bbit_equal
from neardup_gpu.kernels._cpu import jit, num_threads, set_num_threads
from neardup_gpu.stages import Ragged

from .measure import Bench, figure, ratio

SAMPLES = 140
SIZES = (10, 100, 300, 500, 1000, 2000, 10_000, 100_000)
SHINGLES = 400_000  # of all documents of a size, which stay in the second-level cache or the third
PAIRS, DOCUMENTS = 1_000_000, 20_000
REPEAT = 7


def part(bench: Bench) -> list[dict]:
    """Samples drawn and compared."""
    threads = num_threads()
    set_num_threads(1)
    try:
        figures = drawing(bench.sized(SHINGLES), bench.repeat) + comparing(bench.sized(PAIRS), bench.repeat)
    finally:
        set_num_threads(threads)
    by_name = {each["what"]: each["median"] for each in figures}
    for size, wanted in ((1000, 1.4), (10_000, 3)):
        value = by_name[f"fast over permutations, {size:,} shingles"]
        bench.target(f"samples of {size:,} shingles, times permutations", value, wanted, least=True)
    value = by_name["estimates by one bit over whole samples"]
    bench.target("estimates by one bit, times whole samples", value, 10, least=True)
    return figures


def by_turns(repeat: int, calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Processor seconds of each call, in turns, after one that is dropped."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return {name: each[1:] for name, each in seconds.items()}


def drawing(shingles: int, repeat: int) -> list[dict]:
    """Nanoseconds a shingle of 140 samples, by the size of documents."""
    figures = []
    for size in SIZES:
        documents = max(1, shingles // size)
        values = np.random.default_rng(size).integers(0, 2**64, documents * size, np.uint64)
        rows = Ragged(values, np.arange(documents + 1) * size)
        methods = {name: MinHash(k=20, s=7, sampler=name) for name in ("permutations", "fast")}
        calls: dict[str, Callable[[], Any]] = {
            name: lambda method=method, rows=rows: method.sketch(rows, backend="cpu")  # type: ignore[misc]
            for name, method in methods.items()
        }
        if (rensa := from_hashes()) is not None:
            calls["rensa"] = lambda run=rensa, rows=rows: run(rows.values, rows.offsets)  # type: ignore[misc]
        seconds = by_turns(repeat, calls)
        about: dict[str, Any] = {"samples": SAMPLES, "documents": documents, "threads": 1}
        for name, each in seconds.items():
            nanoseconds = [value / len(values) * 1e9 for value in each]
            figures.append(figure(f"{name}, {size:,} shingles", nanoseconds, "ns/shingle", **about))
            if name != "fast":
                figures.append(ratio(f"fast over {name}, {size:,} shingles", each, seconds["fast"]))
    return figures


def from_hashes() -> Callable[[np.ndarray, np.ndarray], Any] | None:
    """How rensa draws as many samples of ready hashes; None where it is not installed."""
    try:
        from rensa import RMinHash  # type: ignore[import-not-found]
    except ImportError:
        return None

    def run(values: np.ndarray, offsets: np.ndarray) -> Any:
        return RMinHash.digest_matrix_from_flat_token_hashes(values, offsets.astype(np.uint64), SAMPLES, 1)

    return run


@jit()
def count_equal(signatures: np.ndarray, left: np.ndarray, right: np.ndarray, equal: np.ndarray) -> None:
    """Equal samples of pairs of signatures, compiled."""
    for p in range(len(left)):
        a, b = signatures[left[p]], signatures[right[p]]
        count = np.int32(0)
        for i in range(len(a)):
            count += np.int32(a[i] == b[i])
        equal[p] = count


def comparing(pairs: int, repeat: int) -> list[dict]:
    """Pairs a second: estimates of whole samples and of one bit of each, and the loops alone, both compiled."""
    draw = np.random.default_rng(1)
    signatures = draw.integers(0, 2**32, (DOCUMENTS, SAMPLES), np.uint32)
    left, right = draw.integers(0, DOCUMENTS, (2, pairs))
    whole, one = MinHash(k=20, s=7), MinHash(k=20, s=7, sample_bits=1)
    packed, equal = one.stored(signatures, backend="cpu"), np.empty(pairs, np.int32)
    assert packed.shape[1] == bbit.num_words(SAMPLES, 1)
    seconds = by_turns(
        repeat,
        {
            "estimates by whole samples": lambda: whole.estimate_rows(signatures, left, right),
            "estimates by one bit": lambda: one.estimate_rows(packed, left, right),
            "compiled, whole samples": lambda: count_equal(signatures, left, right, equal),
            "compiled, one bit": lambda: bbit_equal.cpu(packed, left, right, 1, SAMPLES),
        },
    )
    about: dict[str, Any] = {"samples": SAMPLES, "documents": DOCUMENTS, "threads": 1}
    figures = [
        figure(name, [pairs / each / 1e6 for each in some], "M pairs/s", **about) for name, some in seconds.items()
    ]
    for what in ("estimates by", "compiled,"):
        names = f"{what} whole samples", f"{what} one bit"
        figures.append(ratio(f"{names[1]} over whole samples", *(seconds[name] for name in names)))
    return figures


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=part.__doc__)
    parser.add_argument("--repeat", type=int, default=REPEAT, help="rounds, after one that is dropped")
    folder = Path()
    bench = Bench(folder, parser.parse_args().repeat, False, folder, folder)
    print(json.dumps({"figures": part(bench), "targets": bench.targets}, indent=1))


if __name__ == "__main__":
    main()
