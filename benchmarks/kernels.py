"""Time every kernel on one corpus, after checking on a small sample that `cpu` gives the bits of `reference`.

    python -m benchmarks.kernels --corpus corpora/bills_116.parquet --repeat 5

Rows are shuffled and cut into batches of 8 MB, which stay in memory: reading is left out, and so is compilation. One
run passes all batches through the whole chain, each kernel timed by itself. Prints a JSON list of figures; benchmarks/
run.py calls this in a process of its own, once as it is and once with NEARDUP_CLMUL=0.

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

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu.data import Ragged
from neardup_gpu.documents import open_documents
from neardup_gpu.kernels import (
    components,
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
from neardup_gpu.kernels._launch import CARRYLESS_WIDTH, to_host
from neardup_gpu.recipe import Filter, Recipe, material

BATCH_BYTES = 8 << 20
SHUFFLE_SEED = 0
SAMPLE_BYTES = 6000  # text on which `reference` is run
RANDOM_ROWS = 1_000_000  # rows of the pair tables that have no pairs
WIDTH = 5
ALTAVISTA = Filter(6, 14, 2)


def figure(what: str, values: list[float], unit: str, **context: Any) -> dict[str, Any]:
    """One measured quantity: smallest, median and greatest of its runs, four digits each, and what it was taken on."""
    low, middle, high = (float(f"{x:.4g}") for x in (min(values), statistics.median(values), max(values)))
    spread = {"min": low, "median": middle, "max": high, "runs": len(values)}
    return {"what": what, "unit": unit, **spread, **{key: value for key, value in context.items() if value is not None}}


def shuffled(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet file in a random order, the same each time."""
    table = pq.read_table(path, columns=columns)
    return table.take(pa.array(np.random.default_rng(SHUFFLE_SEED).permutation(len(table))))


def load(table: pa.Table) -> list[Ragged]:
    """Column `text` in batches of `BATCH_BYTES`."""
    return [batch.text for batch in open_documents(table.select(["text"])).batches(max_bytes=BATCH_BYTES)]


def num_bytes(batches: list[Ragged]) -> int:
    """Bytes of text."""
    return sum(int(batch.offsets[-1] - batch.offsets[0]) for batch in batches)


def signatures_seconds(batches: list[Ragged], samples: int, bits: int = 32) -> float:
    """Seconds from text to signatures."""
    drawn = material(1, samples, bits)
    start = time.perf_counter()
    for batch in batches:
        values, offsets, _ = tokens.cpu(batch.values, batch.offsets, drawn.tokens)
        values, offsets = shingles.cpu(values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
        minhash.cpu(values, offsets, drawn.a, drawn.b)
    return time.perf_counter() - start


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
    sample, drawn, (k, s, r) = Ragged.from_rows(rows, np.uint8), material(1, ALTAVISTA.samples, 32), ALTAVISTA

    def agree(kernel: Any, *args: Any, prefix: str = "") -> Any:
        expected, found = getattr(kernel, prefix + slow)(*args), getattr(kernel, prefix + fast)(*args)
        several = isinstance(expected, tuple)
        for one, other in zip(expected, found, strict=True) if several else [(expected, found)]:
            other = to_host(other) if isinstance(one, np.ndarray) else other
            assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype, kernel.__name__
        return expected

    values, offsets, _ = agree(tokens, sample.values, sample.offsets, drawn.tokens)
    agree(sequences, values, offsets, drawn.documents)
    values, offsets = agree(shingles, values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
    wide = material(1, ALTAVISTA.samples, 64)
    agree(minhash, values, offsets, wide.a, wide.b)
    features = agree(supershingles, agree(minhash, values, offsets, drawn.a, drawn.b), k, s, 64, drawn.supershingles)
    twice = np.concatenate([features, features])
    left, right, *_ = agree(pairtables, twice, np.ones(len(twice), bool), r, drawn.keys, 64, 16)
    weight, pinned = np.ones(len(left)), np.zeros(len(twice), bool)
    agree(components, len(twice), left, right, weight, pinned, prefix="greedy_")
    agree(components, len(twice), left, right, prefix="connected_")
    values, offsets = agree(resemblance, values, offsets, prefix="unique_")
    left, right = np.triu_indices(len(offsets) - 1, 1)
    agree(resemblance, values, offsets, left, right)
    few = min(10, len(sample))
    agree(overlap, values, offsets, *overlap.invert(values, offsets[: few + 1]), few)
    return len(sample)


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
    """Pass each batch through all kernels; gives number of tokens, shingle sets, and features as rows of k."""
    drawn, longer, wide = material(1, 84, 32), material(1, 140, 32), material(1, 84, 64)
    k, s, _ = ALTAVISTA
    for batch in batches:
        first, last = batch.offsets[0], batch.offsets[-1]
        text, places = batch.values[first:last], batch.offsets - first
        values, offsets, _ = watch("tokens", tokens.cpu, text, places, drawn.tokens)
        num_tokens = len(values)
        watch("sequences", sequences.cpu, values, offsets, drawn.documents)
        values, offsets = watch("shingles", shingles.cpu, values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
        signature = watch("minhash 84 L=32", minhash.cpu, values, offsets, drawn.a, drawn.b)
        watch("minhash 140 L=32", minhash.cpu, values, offsets, longer.a, longer.b)
        watch("minhash 84 L=64", minhash.cpu, values, offsets, wide.a, wide.b)
        features = watch("supershingles 6 of 14", supershingles.cpu, signature, k, s, 64, drawn.supershingles)
        values, offsets = watch("unique", sets.cpu, values, offsets)
        yield num_tokens, Ragged(values, offsets), features


def time_chain(batches: list[Ragged], repeat: int, context: dict[str, Any]) -> tuple[list[dict], Ragged, np.ndarray]:
    """Figures of the kernels that see every token, and the sets and features they gave."""
    watch = Stopwatch()
    for run in range(repeat + 1):  # the first run compiles, and is dropped
        watch.begin()
        counts, sets, features = zip(*chain(batches, watch), strict=True)
        if run == 0:
            watch.runs.clear()
    num_tokens, text_bytes = sum(counts), num_bytes(batches)
    figures = []
    for name, seconds in watch.runs.items():
        rate = round(watch.bytes[name] / statistics.median(seconds) / 1e9, 3)
        figures.append(figure(name, [t / num_tokens * 1e9 for t in seconds], "ns/token", gb_per_s=rate, **context))
    for last in ("minhash 84 L=32", "minhash 140 L=32", "minhash 84 L=64"):
        steps = zip(*(watch.runs[name] for name in ("tokens", "shingles", last)), strict=True)
        rates = [text_bytes / sum(step) / 1e6 for step in steps]
        figures.append(figure(f"text to signatures, {last}", rates, "MB/s", text_bytes=text_bytes, **context))
    ends = np.cumsum([0, *(part.offsets[-1] for part in sets)])
    offsets = np.concatenate([[0], *(part.offsets[1:] + end for part, end in zip(sets, ends[:-1], strict=True))])
    return figures, Ragged(np.concatenate([part.values for part in sets]), offsets), np.concatenate(features)


def timed(repeat: int, kernel: Callable[..., Any], *args: Any) -> list[float]:
    """Seconds of some calls, after one that is dropped."""
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        kernel(*args)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def time_pairs(
    sets: Ragged, features: np.ndarray, pairs: np.ndarray, repeat: int, context: dict[str, Any]
) -> list[dict]:
    """Figures of the kernels that see rows or pairs."""
    recipe, drawn = Recipe(ALTAVISTA), material(1, 84, 32)
    random = np.random.default_rng(0).integers(0, 2**64, (RANDOM_ROWS, ALTAVISTA.k), np.uint64)
    figures = []
    for name, rows in (("pair tables 6,14,2", features), (f"pair tables 6,14,2, {RANDOM_ROWS:,} random rows", random)):
        args = (rows, np.ones(len(rows), bool), ALTAVISTA.r, drawn.keys, recipe.bucket_limit, recipe.bucket_probe)
        seconds, steps = timed(repeat, pairtables.cpu, *args), len(rows) * ALTAVISTA.tables
        values = [t / steps * 1e9 for t in seconds]
        figures.append(figure(name, values, "ns/row and table", rows=len(rows), **context))
    if len(pairs):
        left, right = pairs.T.copy()
        elements = int(sets.sizes[left].sum() + sets.sizes[right].sum())
        seconds = timed(repeat, resemblance.cpu, sets.values, sets.offsets, left, right)
        rate = round(8 * elements / statistics.median(seconds) / 1e9, 3)
        values = [t / elements * 1e9 for t in seconds]
        figures.append(figure("merge of two sets", values, "ns/element", gb_per_s=rate, pairs=len(left), **context))
    return figures


def main() -> None:
    """Read the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--repeat", type=int, default=5, help="runs, after one that is dropped")
    args = parser.parse_args()
    table = shuffled(args.corpus, ["id", "text"])
    batches = load(table)
    context = {
        "corpus": args.corpus.stem,
        "clmul_bits": CARRYLESS_WIDTH,
        "agreed_on_documents": check_agreement(batches[0]),
    }
    gold, pairs = args.corpus.with_name(f"{args.corpus.stem}.gold.parquet"), np.empty((0, 2), np.int64)
    if gold.exists():
        row = {name: i for i, name in enumerate(table["id"].to_pylist())}
        ends = pq.read_table(gold, columns=["id_a", "id_b"]).to_pydict().values()
        pairs = np.sort([[row[a], row[b]] for a, b in zip(*ends, strict=True)], axis=1)
    figures = []
    for threads in sorted({1, numba.get_num_threads()}):
        numba.set_num_threads(threads)
        here, sets, features = time_chain(batches, args.repeat, context | {"threads": threads})
        figures += here + time_pairs(sets, features, pairs, args.repeat, context | {"threads": threads})
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
