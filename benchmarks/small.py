"""What is small: two documents, where starting up is all, and one text: the parts `start_up` and `one_text` of run.py.

python -m benchmarks.small
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu import BottomK, MinHash, ModM, Recipe, SimHash, open_documents
from neardup_gpu.documents.sources import Sources
from neardup_gpu.engine.clock import Clock
from neardup_gpu.engine.settings import Engine
from neardup_gpu.engine.threads import on_threads
from neardup_gpu.kernels._cpu import num_threads
from neardup_gpu.sketches import sketch_text
from neardup_gpu.stages import shingle, tokenize
from neardup_gpu.stages.sketching import Sketcher

from .measure import SEED, Bench, figure, launch, neardup, ratio

WORDS, VOCABULARY = 1000, 20_000
BATCH = 1000
CALLS = 200
"""Of one text in a row, of which each round counts the median."""

METHODS = {"min-hash": MinHash(), "bottom-k": BottomK(), "mod-m": ModM(), "simhash": SimHash()}
IMPORTS = "import numba, pyarrow"


def start_up(bench: Bench) -> list[dict]:
    """The whole process of two documents beside one that imports Numba and pyarrow alone, by turns."""
    source = bench.scratch / "two.jsonl"
    words = [f"w{i}" for i in range(40)]
    source.write_text("".join(json.dumps({"text": " ".join(words[:-more])}) + "\n" for more in (1, 2)))
    commands: dict[str, Callable[[], dict]] = {
        "neardup dedup": lambda: neardup(source, bench.scratch / "two"),
        IMPORTS: lambda: launch([sys.executable, "-c", IMPORTS]),
        "neardup --version": lambda: launch([sys.executable, "-m", "neardup_gpu", "--version"]),
    }
    runs: dict[str, list[dict]] = {name: [] for name in commands}
    for _ in range(bench.repeat + 1):  # the first is dropped
        for name, command in commands.items():
            runs[name].append(command())
    figures = []
    for name, all_runs in runs.items():
        for key, what in (("cpu_seconds", "processor time"), ("seconds", "wall time")):
            values = [run[key] for run in all_runs[1:]]
            figures.append(figure(f"{name}, {what}", values, "s", documents=2 if name == "neardup dedup" else None))
    whole, bare = ([run["cpu_seconds"] for run in runs[name][1:]] for name in ("neardup dedup", IMPORTS))
    beyond = [one - other for one, other in zip(whole, bare, strict=True)]
    figures.append(figure("two documents, processor time beyond these imports", beyond, "s"))
    figures.append(ratio("two documents over these imports, processor time", whole, bare))
    bench.target("two documents beyond imports, s", figures[-2]["median"], 0.4, least=False)
    return figures


def one_text(bench: Bench) -> list[dict]:
    """Microseconds of a text of 1,000 words by each method, on one thread; 1,000 of them beside the streaming rate."""
    texts = made(BATCH)
    figures = []
    for name, method in METHODS.items():
        recipe = Recipe(method=method)
        seconds = [of_one(texts, recipe) for _ in range(bench.repeat + 1)][1:]
        found = figure(f"sketch_text, {name}", [1e6 * each for each in seconds], "us", words=WORDS, threads=1)
        figures.append(found)
        bench.target(f"one text of 1,000 words by {name}, us", found["median"], 100, least=False)
    recipe = Recipe(method=METHODS["min-hash"])
    ways: dict[str, Callable[[list[str], Recipe], Any]] = {"stages on a list of str": staged, "streamed": streamed}
    seconds_of: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(bench.repeat + 1):
        for way, run in ways.items():
            start = time.perf_counter()
            run(texts, recipe)
            seconds_of[way].append(time.perf_counter() - start)
    for way, taken in seconds_of.items():
        rates = [sum(map(len, texts)) / 1e6 / each for each in taken[1:]]
        figures.append(figure(f"{BATCH:,} texts, min-hash, {way}", rates, "MB/s", threads=num_threads()))
    lists, stream = (seconds_of[way][1:] for way in ways)
    figures.append(ratio(f"{BATCH:,} texts: rate of stages over that of streaming", stream, lists))
    bench.target(f"{BATCH:,} texts, share of the streaming rate", figures[-1]["median"], 0.8, least=True)
    return figures


def made(number: int) -> list[str]:
    """Texts of random words of letters."""
    random = np.random.default_rng(SEED)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(random.choice(letters, random.integers(2, 10))) for _ in range(VOCABULARY)])
    return [" ".join(words[random.integers(0, VOCABULARY, WORDS)]) for _ in range(number)]


def of_one(texts: list[str], recipe: Recipe) -> float:
    """Median seconds of a call."""
    seconds = []
    for text in texts[:CALLS]:
        start = time.perf_counter()
        sketch_text(text, recipe)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def staged(texts: list[str], recipe: Recipe) -> Any:
    """Keys of texts by the public stages."""
    shingles = shingle(tokenize(texts, recipe), recipe)
    return recipe.method.keys(recipe.method.sketch(shingles, seed=recipe.seed), seed=recipe.seed)


def streamed(texts: list[str], recipe: Recipe) -> Any:
    """Keys of the same texts as `dedup` makes them of a table, which is given."""
    engine = Engine(backend="cpu")
    with on_threads(None), engine.start() as runtime:
        sketcher = Sketcher(recipe, runtime, Clock(None), hashed=False)
        return sketcher.sketch_part(Sources(open_documents(pa.table({"text": texts})))).keys


def main() -> None:
    """Print the figures of both parts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch), args.repeat, False, Path(scratch), Path(scratch))
        print(
            json.dumps({"start_up": start_up(bench), "one_text": one_text(bench), "targets": bench.targets}, indent=1)
        )


if __name__ == "__main__":
    main()
