"""Run jobs on shapes of data that once were far slower than others, and print how time and memory grow.

    python -m benchmarks.cliffs --output benchmarks/results/NAME-cliffs.json

Each shape has a generator and a line in `SHAPES`. Its job runs on n, 2n, 4n and 8n documents, each in a process of its
own, and what is printed is how often time beyond that of a tiny job, memory, candidates and pairs become larger each
time that the documents double. `steps` runs a shape within this process and returns what the job counted; the tests
hold these counts against `Shape.growth`, as they are the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .measure import SHUFFLE_SEED, launch

PART = 50_000  # documents that are made at a time
TINY = 20  # documents of the job whose time is that of starting up

MODES: dict[str, Callable[[Path], list[Any]]] = {
    "in memory": lambda folder: [],
    "bounded": lambda folder: ["--memory", "1GB"],
    "tasks": lambda folder: ["--work-dir", folder / "work"],
}
"""The ways to run a job, by the flags that they take."""


def dedup(*options: str) -> Callable[[Path, Path, list[Any]], list[list[Any]]]:
    """Return the commands of a shape whose job is one `neardup dedup` with these options."""

    def commands(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
        return [["dedup", source, "--output", folder / "output", "--overwrite", "--quiet", *options, *flags]]

    return commands


@dataclass(frozen=True)
class Shape:
    """A shape of data, and the job that it was hard for.

    Parameters
    ----------
    what : str
        What the documents are like, and what happened to the job.
    size : int
        The number of documents of the first job, n.
    texts : callable
        Yields the texts of so many documents, some at a time.
    commands : callable
        Returns the `neardup` commands that are timed together, from the file of documents (column text), a folder for
        results and the flags of the mode. The last one leaves a report in `output` in that folder.
    growth : float
        How many times as many comparisons there may be when the documents double.
    candidates : float
        How many candidates there may be for each pair and document.
    small : int
        The number of documents of the first job where only steps are counted; 0 if the shape needs a corpus.
    """

    what: str
    size: int
    texts: Callable[[int], Iterator[list[str]]]
    commands: Callable[[Path, Path, list[Any]], list[list[Any]]]
    growth: float
    candidates: float
    small: int

    def write(self, path: Path, size: int) -> None:
        """Write the documents of a job, in row groups of `PART`."""
        schema = pa.schema({"text": pa.large_string()})
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for texts in self.texts(size):
                writer.write_table(pa.table({"text": pa.array(texts, pa.large_string())}))


# ---------------------------------------------------------------------------------------------------------- generators


def _in_parts(size: int, make: Callable[[np.random.Generator, int], list[str]]) -> Iterator[list[str]]:
    random = np.random.default_rng(SHUFFLE_SEED)
    for first in range(0, size, PART):
        yield make(random, min(PART, size - first))


def sections(size: int) -> Iterator[list[str]]:
    """Documents of 40 sections, each in one of 3 variants of 25 words: contracts, licences, generated pages."""
    variants = [[" ".join(f"s{i}v{j}w{k}" for k in range(25)) for j in range(3)] for i in range(40)]

    def make(random: np.random.Generator, number: int) -> list[str]:
        drawn = random.integers(0, 3, (number, 40))
        return [" ".join(variants[i][j] for i, j in enumerate(row)) for row in drawn.tolist()]

    return _in_parts(size, make)


def sentences(size: int) -> Iterator[list[str]]:
    """Sentences of 4 to 40 words, whose frequencies are those of a natural language (Zipf's law)."""

    def make(random: np.random.Generator, number: int) -> list[str]:
        lengths = random.integers(4, 41, number)
        words = np.minimum(random.zipf(1.3, int(lengths.sum())), 20_000).astype(str).tolist()
        ends = np.cumsum(lengths).tolist()
        return [" ".join(words[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]

    return _in_parts(size, make)


def man_page_sentences(size: int) -> Iterator[list[str]]:
    """Sentences of the corpus manpages, which the variable NEARDUP_CORPORA leads to."""
    table = pq.read_table(Path(os.environ.get("NEARDUP_CORPORA", "corpora"), "manpages.parquet"), columns=["text"])
    texts = [each for text in table["text"].to_pylist() for each in re.split(r"(?<=[.!?])\s+", text)]
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(texts))[:size].tolist()
    for first in range(0, len(order), PART):
        yield [texts[row] for row in order[first : first + PART]]


def few_words(size: int) -> Iterator[list[str]]:
    """Texts of 1 to 3 words out of 3,000: names, titles, keys of records."""

    def make(random: np.random.Generator, number: int) -> list[str]:
        lengths = random.integers(1, 4, number).tolist()
        drawn = random.integers(0, 3_000, (number, 3)).tolist()
        return [" ".join(f"w{word}" for word in row[:length]) for row, length in zip(drawn, lengths, strict=True)]

    return _in_parts(size, make)


def windows(size: int, length: int = 2_000) -> Iterator[list[str]]:
    """Windows of so many words of one text, each a word further on."""
    words = [f"w{i}" for i in range(size + length)]
    for first in range(0, size, 1_000):
        yield [" ".join(words[i : i + length]) for i in range(first, min(size, first + 1_000))]


WORDS = ("--shingle-size", "1")

SHAPES: dict[str, Shape] = {
    "sections": Shape("sections that most pairs share some of", 2_000, sections, dedup(), 4.5, 0.1, 200),
    "sentences": Shape(
        "sentences as sets of words, at .5", 12_500, sentences, dedup(*WORDS, "--threshold", "0.5"), 4.5, 4, 1_000
    ),
    "man pages": Shape(
        "sentences of man pages as sets of words, at .5",
        25_000,
        man_page_sentences,
        dedup(*WORDS, "--threshold", "0.5"),
        4.5,
        2,
        0,
    ),
    "few words": Shape("texts of 1 to 3 words", 125_000, few_words, dedup(*WORDS), 4.5, 1, 2_000),
    "windows": Shape("windows of 2,000 words of one text", 1_000, windows, dedup(), 2.5, 6, 0),
    "short windows": Shape("windows of 100 words", 10_000, partial(windows, length=100), dedup(), 2.5, 2, 1_000),
}


# --------------------------------------------------------------------------------------------------------------- runs


def counted(folder: Path) -> dict[str, Any]:
    """Return what the report of a job counts."""
    report = json.loads((folder / "output" / "report.json").read_text())
    names = "documents", "comparisons", "candidate_pairs", "verified_pairs"
    counts = {name: report["counts"][name] for name in names if name in report["counts"]}
    return counts | {f"filtered_by_{name}": number for name, number in report.get("filtered", {}).items()}


def steps(name: str, size: int, folder: Path, mode: str = "in memory") -> dict[str, Any]:
    """Run a shape's job on some documents in this process, and return what it counted."""
    from neardup_gpu.cli.app import run

    shape, source = SHAPES[name], folder / "source.parquet"
    folder.mkdir(exist_ok=True)
    shape.write(source, size)
    for command in shape.commands(source, folder, MODES[mode](folder)):
        run([str(word) for word in command])
    return counted(folder)


def measured(name: str, size: int, folder: Path, mode: str) -> dict[str, Any]:
    """Run a shape's job on some documents in processes of their own; return its seconds, memory and counts."""
    shape, source = SHAPES[name], folder / "source.parquet"
    shape.write(source, size)
    seconds, peak = 0.0, 0.0
    for command in shape.commands(source, folder, MODES[mode](folder)):
        done = launch([sys.executable, "-m", "neardup_gpu", *command])
        seconds, peak = seconds + done["seconds"], max(peak, done["peak_mb"])
    stages = json.loads((folder / "output" / "report.json").read_text())["timings"]
    return {"seconds": round(seconds, 3), "peak_mb": round(peak), **counted(folder), "stages": stages}


def rows_of(name: str, times: tuple[int, ...], mode: str) -> list[dict[str, Any]]:
    """Measure a shape at some multiples of its size; print and return a row for each."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        measured(name, TINY, folder, mode)  # compiles and reads what is cold
        start_up = measured(name, TINY, folder, mode)["seconds"]
        rows: list[dict[str, Any]] = []
        for factor in times:
            row = measured(name, factor * SHAPES[name].size, folder, mode)
            row["beyond_start_up"] = round(max(row["seconds"] - start_up, 0.001), 3)
            row["growth"] = _growth(rows[-1], row) if rows else {}
            rows.append(row)
            print(f"{name} ({mode}): {json.dumps(row)}", flush=True)
    return rows


def _growth(before: dict[str, Any], now: dict[str, Any]) -> dict[str, float]:
    names = "documents", "beyond_start_up", "peak_mb", "candidate_pairs", "verified_pairs"
    return {name: round(now[name] / before[name], 2) for name in names if before.get(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SHAPES), help=f"shapes divided by commas: {', '.join(SHAPES)}")
    parser.add_argument("--times", default="1,2,4,8", help="multiples of each shape's number of documents")
    parser.add_argument("--mode", default="in memory", help=f"how jobs run: {', '.join(MODES)}; several by commas")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    given = parser.parse_args()
    from .run import machine

    times = tuple(int(factor) for factor in given.times.split(","))
    found = {
        f"{name} ({mode})": rows_of(name, times, mode)
        for name in given.only.split(",")
        for mode in given.mode.split(",")
    }
    if given.output:
        given.output.write_text(json.dumps({"machine": machine(), "shapes": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
