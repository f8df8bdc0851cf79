"""Text in memory to signatures, beside rensa and datasketch: the part `peers` of run.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from neardup_gpu import MinHash, Recipe
from neardup_gpu.kernels._cpu import num_threads
from neardup_gpu.stages import Ragged, shingle, tokenize

from . import peers
from .measure import Bench, Skip, figure, load, num_bytes, ratio, signatures_seconds

PASSES = 3  # over a corpus for one figure


def part(bench: Bench) -> list[dict]:
    """Text to signatures beside rensa and datasketch."""
    if not bench.peers:
        raise Skip("peers were not asked for; add --peers")
    figures = signature_rates(bench, bench.shuffled("bills_116_small"), bench.repeat, ("rensa", "datasketch"))
    by_name = {f["what"]: f for f in figures}
    for name, wanted in (("rensa", 20), ("datasketch", 80)):
        value = by_name[f"neardup_gpu with 84 samples over {name}"]["median"]
        bench.target(f"text to signatures, times {name}", value, wanted, least=True)
    return figures


def signature_rates(bench: Bench, path: Path, rounds: int, names: tuple[str, ...]) -> list[dict]:
    """Text in memory -> signatures, MB/s: ours and the peers' by turns, and ours over theirs."""
    corpus = path.stem
    table = pq.read_table(path, columns=["id", "text"])
    batches = load(table)
    size = num_bytes(batches)
    gold = peers.gold_pairs(path.with_name(f"{path.stem}.gold.parquet"), table["id"].to_pylist())
    ours: dict[int, list[float]] = {84: [], 128: []}
    theirs: dict[str, list[dict]] = {name: [] for name in names}
    for samples in ours:
        signatures_seconds(batches, samples)
    for _ in range(rounds):
        for name in names:
            for samples, rates in ours.items():
                rates.append(size / sum(signatures_seconds(batches, samples) for _ in range(PASSES)) * PASSES / 1e6)
            answer = peers.run_peer(name, path, cache=bench.cache)
            if "failed" in answer:
                raise Skip(f"{name} did not run: {answer['failed']}")
            theirs[name].append(answer)
    threads = num_threads()
    figures = []
    for samples, rates in ours.items():
        known = {
            "corpus": corpus,
            "threads": threads,
            "text_bytes": size,
            "error": estimate_error(batches, samples, gold),
        }
        figures.append(figure(f"neardup_gpu, {samples} samples", rates, "MB/s", **known))
    for place, name in enumerate(names):
        answers = theirs[name]
        rates = [answer["mb_per_second"] for answer in answers]
        known = {key: answers[0][key] for key in ("threads", "version", "error", "peak_rss_mb") if key in answers[0]}
        figures.append(figure(f"{name}, {peers.SAMPLES} samples", rates, "MB/s", corpus=corpus, **known))
        for samples, own in ours.items():  # of each round the run just before the peer's
            what = f"neardup_gpu with {samples} samples over {name}"
            figures.append(ratio(what, own[place :: len(names)], rates, corpus=corpus))
    return figures


def estimate_error(batches: list[Ragged], samples: int, gold: list[tuple[int, int, float]]) -> float | None:
    """Mean absolute error of the resemblance that signatures estimate, on the gold pairs that peers are checked on."""
    if not gold:
        return None
    recipe = Recipe(method=MinHash(k=samples, s=1))
    rows = [recipe.method.sketch(shingle(tokenize(batch, recipe), recipe), seed=recipe.seed) for batch in batches]
    signatures, some = np.concatenate(rows), gold[:: max(1, len(gold) // peers.ERROR_PAIRS)]
    left, right, true = (np.array(column) for column in zip(*some, strict=True))
    return round(float(np.abs((signatures[left] == signatures[right]).mean(axis=1) - true).mean()), 5)
