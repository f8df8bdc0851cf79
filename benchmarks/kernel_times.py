"""Time every kernel on one corpus, after checking on a small sample that `cpu` gives the bits of `reference`.

    python -m benchmarks.kernel_times --corpus corpora/bills_116.parquet --repeat 5

Rows are shuffled and cut into batches of 8 MB, which stay in memory: reading is left out, and so is compilation. One
run passes all batches through the whole chain, each kernel timed by itself. Prints a JSON list of figures; the part
`kernels` of run.py is this in a process of its own, once as it is and once with NEARDUP_CLMUL=0.

    ns/token     time over the tokens of the text, whatever the kernel's own items are; others are named in the unit
    gb_per_s     bytes of the arrays that go in and come out, over the time
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from neardup_gpu.data import Ragged
from neardup_gpu.definitions import material, polynomial
from neardup_gpu.kernels import (
    below,
    bottomk,
    components,
    distinct,
    greedy,
    minhash,
    overlap,
    pairtables,
    resemblance,
    sequences,
    sets,
    shingles,
    supershingles,
    tokens,
)
from neardup_gpu.kernels._cpu import num_threads, set_num_threads
from neardup_gpu.kernels._launch import to_host
from neardup_gpu.kernels._processor import carryless_products
from neardup_gpu.methods.minhash import MinHash, permutations

from .measure import ALTAVISTA, SEED, WIDTH, Bench, figure, figures_of, load, num_bytes, shuffled, timed

SAMPLE_BYTES = 6000  # text on which `reference` is run
RANDOM_ROWS = 1_000_000  # rows of the pair tables that have no pairs
MODULUS, SMALLEST = 16, 84  # of sketches by one permutation, beside 84 min-hash samples
CHAINED = "minhash 84 L=32", "minhash 140 L=32", "minhash 84 L=64"


def part(bench: Bench) -> list[dict]:
    """Each kernel by itself: 1 thread and all, with and without carry-less multiplication."""
    corpus, figures = bench.corpus("bills_116"), []
    options = ["--corpus", corpus, "--repeat", bench.repeat, "--random-rows", bench.sized(RANDOM_ROWS)]
    for setting in ({}, {"NEARDUP_CLMUL": "0"}):
        figures += figures_of("kernel_times", *options, **setting)
    best = [f for f in figures if f["what"] == f"text to signatures, {CHAINED[0]}" and f["carryless_product"]]
    if best:
        rate = max(best, key=lambda f: f["threads"])
        bench.target("text to signatures of bills_116, 84 samples, L = 32, MB/s", rate["median"], 500, least=True)
    return figures


def check_agreement(batch: Ragged, slow: str = "reference", fast: str = "cpu", size: int = SAMPLE_BYTES) -> int:
    """Compare each kernel's two versions on the first short documents of a batch; return how many documents.

    Raises
    ------
    AssertionError
        If any output differs in any bit, or there is nothing to compare.
    """
    short = np.flatnonzero(np.cumsum(np.where(batch.sizes < size // 3, batch.sizes, 0)) < size)
    rows = [batch[int(row)] for row in short if batch.sizes[row] < size // 3]
    assert rows, "no document is short enough to compare"
    sample, drawn, (k, s, r) = Ragged.from_rows(rows, np.uint8), material(SEED), ALTAVISTA
    narrow, wide = (permutations(SEED, ALTAVISTA.samples, bits) for bits in (32, 64))

    def agree(kernel: Any, *args: Any) -> Any:
        expected, found = getattr(kernel, slow)(*args), getattr(kernel, fast)(*args)
        several = isinstance(expected, tuple)
        for one, other in zip(expected, found, strict=True) if several else [(expected, found)]:
            other = to_host(other) if isinstance(one, np.ndarray) else other
            assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype, kernel.__name__
        return expected

    values, offsets, _ = agree(tokens, sample.values, sample.offsets, drawn.tokens)
    agree(sequences, values, offsets, drawn.documents)
    values, offsets = agree(shingles, values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
    agree(minhash, values, offsets, *wide)
    signatures = agree(minhash, values, offsets, *narrow)
    for kernel, *settings in of_one_permutation(len(offsets) - 1):
        agree(kernel, values, offsets, *settings)
    keys = agree(supershingles, signatures, k, s, 64, polynomial(SEED, "supershingles"))
    twice = np.concatenate([keys, keys])
    left, right, *_ = agree(pairtables, twice, np.ones(len(twice), bool), r, polynomial(SEED, "pair keys"), 64, 16)
    weight, pinned = np.ones(len(left)), np.zeros(len(twice), bool)
    agree(greedy, len(twice), left, right, weight, pinned)
    agree(components, len(twice), left, right)
    values, offsets = agree(sets, values, offsets)
    left, right = np.triu_indices(len(offsets) - 1, 1)
    agree(resemblance, values, offsets, left, right, np.zeros(len(left), np.int64))
    few = min(10, len(sample))
    bounds = np.ones(few, np.int64), np.ones(len(offsets) - 1, np.int64)
    agree(overlap, values, offsets, *overlap.invert(values, offsets[: few + 1]), *bounds)
    return len(sample)


def of_one_permutation(rows: int) -> list[tuple[Any, ...]]:
    """The kernels of sketches by one permutation, each with its settings for so many rows."""
    salt = np.uint64(SEED)
    most = np.full(rows, (2**64 - 1) // MODULUS, np.uint64)
    return [(below, salt, most), (bottomk, salt, SMALLEST), (distinct,)]


class Stopwatch:
    """Seconds of each kernel in each run, and the bytes of its arrays."""

    def __init__(self) -> None:
        self.runs: dict[str, list[float]] = {}
        self.bytes: dict[str, int] = {}

    def begin(self) -> None:
        """Start a run."""
        self.bytes.clear()
        for seconds in self.runs.values():
            seconds.append(0.0)

    def __call__(self, name: str, kernel: Callable[..., Any], *args: Any) -> Any:
        start = time.perf_counter()
        result = kernel(*args)
        seconds = time.perf_counter() - start
        self.runs.setdefault(name, [0.0])[-1] += seconds
        arrays = [*args, *(result if isinstance(result, tuple) else (result,))]
        self.bytes[name] = self.bytes.get(name, 0) + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))
        return result


def chain(batches: list[Ragged], watch: Stopwatch) -> Iterator[tuple[int, Ragged, Ragged]]:
    """Pass each batch through all kernels; gives number of tokens, shingle sets, and supershingles as rows of k."""
    drawn, modulus, (k, s, _) = material(SEED), polynomial(SEED, "supershingles"), ALTAVISTA
    permuted = [permutations(SEED, samples, bits) for samples, bits in ((84, 32), (140, 32), (84, 64))]
    for batch in batches:
        first, last = batch.offsets[0], batch.offsets[-1]
        text, places = batch.values[first:last], batch.offsets - first
        values, offsets, _ = watch("tokens", tokens.cpu, text, places, drawn.tokens)
        num_tokens = len(values)
        watch("sequences", sequences.cpu, values, offsets, drawn.documents)
        values, offsets = watch("shingles", shingles.cpu, values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
        signatures = [
            watch(name, minhash.cpu, values, offsets, *each) for name, each in zip(CHAINED, permuted, strict=True)
        ]
        for kernel, *settings in of_one_permutation(len(offsets) - 1):
            what = {below: f"below, m = {MODULUS}", bottomk: f"bottom-k, s = {SMALLEST}", distinct: "distinct"}[kernel]
            watch(what, kernel.cpu, values, offsets, *settings)
        keys = watch("supershingles 6 of 14", supershingles.cpu, signatures[0], k, s, 64, modulus)
        values, offsets = watch("unique", sets.cpu, values, offsets)
        yield num_tokens, Ragged(values, offsets), keys


def time_chain(batches: list[Ragged], repeat: int, context: dict[str, Any]) -> tuple[list[dict], Ragged, np.ndarray]:
    """Figures of the kernels that see every token, and the sets and supershingles they gave."""
    watch = Stopwatch()
    for run in range(repeat + 1):  # the first run compiles, and is dropped
        watch.begin()
        counts, made, keys = zip(*chain(batches, watch), strict=True)
        if run == 0:
            watch.runs.clear()
    num_tokens, text_bytes = sum(counts), num_bytes(batches)
    figures = []
    for name, seconds in watch.runs.items():
        rate = round(watch.bytes[name] / statistics.median(seconds) / 1e9, 3)
        figures.append(figure(name, [t / num_tokens * 1e9 for t in seconds], "ns/token", gb_per_s=rate, **context))
    for last in CHAINED:
        steps = zip(*(watch.runs[name] for name in ("tokens", "shingles", last)), strict=True)
        rates = [text_bytes / sum(step) / 1e6 for step in steps]
        figures.append(figure(f"text to signatures, {last}", rates, "MB/s", text_bytes=text_bytes, **context))
    ends = np.cumsum([0, *(part.offsets[-1] for part in made)])
    offsets = np.concatenate([[0], *(part.offsets[1:] + end for part, end in zip(made, ends[:-1], strict=True))])
    return figures, Ragged(np.concatenate([part.values for part in made]), offsets), np.concatenate(keys)


def time_pairs(
    documents: Ragged, keys: np.ndarray, pairs: np.ndarray, random_rows: int, repeat: int, context: dict[str, Any]
) -> list[dict]:
    """Figures of the kernels that see rows or pairs."""
    limits, modulus = MinHash(filter=ALTAVISTA), polynomial(SEED, "pair keys")
    random = np.random.default_rng(0).integers(0, 2**64, (random_rows, ALTAVISTA.k), np.uint64)
    figures = []
    for name, rows in (("pair tables 6,14,2", keys), (f"pair tables 6,14,2, {random_rows:,} random rows", random)):
        args = (rows, np.ones(len(rows), bool), ALTAVISTA.r, modulus, limits.bucket_limit, limits.bucket_probe)
        seconds, steps = timed(repeat, pairtables.cpu, *args), len(rows) * ALTAVISTA.tables
        values = [t / steps * 1e9 for t in seconds]
        figures.append(figure(name, values, "ns/row and table", rows=len(rows), **context))
    if len(pairs):
        left, right = pairs.T.copy()
        elements = int(documents.sizes[left].sum() + documents.sizes[right].sum())
        none = np.zeros(len(left), np.int64)
        seconds = timed(repeat, resemblance.cpu, documents.values, documents.offsets, left, right, none)
        rate = round(8 * elements / statistics.median(seconds) / 1e9, 3)
        values = [t / elements * 1e9 for t in seconds]
        figures.append(figure("merge of two sets", values, "ns/element", gb_per_s=rate, pairs=len(left), **context))
    return figures


def main() -> None:
    """Read the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--repeat", type=int, default=5, help="runs, after one that is dropped")
    parser.add_argument("--random-rows", type=int, default=RANDOM_ROWS, help="rows of pair tables without pairs")
    args = parser.parse_args()
    table = shuffled(args.corpus, ["id", "text"])
    batches = load(table)
    context = {
        "corpus": args.corpus.stem,
        "carryless_product": carryless_products(),
        "agreed_on_documents": check_agreement(batches[0]),
    }
    gold, pairs = args.corpus.with_name(f"{args.corpus.stem}.gold.parquet"), np.empty((0, 2), np.int64)
    if gold.exists():
        row = {name: i for i, name in enumerate(table["id"].to_pylist())}
        ends = pq.read_table(gold, columns=["id_a", "id_b"]).to_pydict().values()
        pairs = np.sort([[row[a], row[b]] for a, b in zip(*ends, strict=True)], axis=1)
    figures = []
    for threads in sorted({1, num_threads()}):
        set_num_threads(threads)
        known = context | {"threads": threads}
        here, documents, keys = time_chain(batches, args.repeat, known)
        figures += here + time_pairs(documents, keys, pairs, args.random_rows, args.repeat, known)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
