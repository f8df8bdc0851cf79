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
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import cliff_shapes as data
from .measure import launch

TINY = 20  # documents of the job whose time is that of starting up

MODES: dict[str, Callable[[Path], list[Any]]] = {
    "in memory": lambda folder: [],
    "bounded": lambda folder: ["--memory", "1GB"],
    "tasks": lambda folder: ["--work-dir", folder / "work"],
}
"""The ways to run a job, by the flags that `neardup dedup` takes. Other commands run in memory alone."""

ADD_EACH = """
import sys
from pathlib import Path
from neardup_gpu.cli.app import run
for file in sorted(Path(sys.argv[2]).iterdir()):
    run(["index", "add", sys.argv[1], str(file), "--quiet"])
"""
"""A program that adds each file of a folder to an index, one after another."""


Commands = Callable[[Path, Path, list[Any]], list[list[Any]]]


def dedup(*options: str) -> Commands:
    """Return the commands of a shape whose job is one `neardup dedup` with these options."""

    def commands(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
        return [["dedup", source, "--output", folder / "output", "--quiet", *options, *flags]]

    return commands


def in_tasks(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
    """Return the commands of a shape whose job is cut into tasks in every mode."""
    return dedup("--work-dir", str(folder / "work"))(source, folder, [])


def index(method: str) -> Commands:
    """Return the commands of a shape whose documents are added to an index at once."""

    def commands(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
        name = folder / "output"
        return [["index", "create", name, "--quiet", "--method", method], ["index", "add", name, source, "--quiet"]]

    return commands


def removals(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
    """Return the commands that add all documents to an index, remove all but one, and add half as many new ones."""
    texts = pq.read_table(source)["text"].to_pylist()
    ids = [f"old{row}" for row in range(len(texts))]
    old, new, removed, name = folder / "old.parquet", folder / "new.parquet", folder / "ids.txt", folder / "output"
    pq.write_table(pa.table({"id": ids, "text": texts}), old)
    again = data.crowd(len(texts) // 2, first=len(texts))
    pq.write_table(pa.table({"id": [f"new{row}" for row in range(len(again))], "text": again}), new)
    removed.write_text("".join(f"{each}\n" for each in ids[1:]))
    add = "index", "add", name, "--quiet", "--id-column", "id"
    remove = ["index", "remove", name, "--quiet", "--ids", removed]
    return [["index", "create", name, "--quiet"], [*add, old], remove, [*add, new]]


def files_of(source: Path, folder: Path) -> Path:
    """Write each document into a file of its own, and return their folder."""
    files = folder / "files"
    files.mkdir()
    for row, text in enumerate(pq.read_table(source)["text"].to_pylist()):
        (files / f"{row:06}.txt").write_text(text)
    return files


def small_adds(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
    """Return the commands of a shape whose documents are added to an index one by one."""
    name = folder / "output"
    return [["index", "create", name, "--quiet"], ["add each", name, files_of(source, folder)]]


def many_files(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
    """Return the commands of a shape whose documents are files of one folder."""
    return dedup()(files_of(source, folder), folder, flags)


def clusters(representative: str) -> Commands:
    """Return the commands of a shape whose documents are sketched and put into clusters."""

    def commands(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
        sketches, found = folder / "sketches.parquet", folder / "clusters.parquet"
        return [
            ["sketch", source, "--output", sketches, "--quiet", "--method", "bottomk"],
            ["clusters", sketches, "--output", found, "--quiet", "--representative", representative],
        ]

    return commands


def near_pairs(source: Path, folder: Path, flags: list[Any]) -> list[list[Any]]:
    """Return the commands of a shape whose fingerprints are compared with one another."""
    found = folder / "pairs.parquet"
    return [["hamming", "pairs", source, "--column", "text", "--output", found, "--quiet", "--radius", "8"]]


@dataclass(frozen=True)
class Shape:
    """A shape of data, and the job that it was hard for.

    Parameters
    ----------
    what : str
        What the documents are like.
    size : int
        The number of documents of the first job, n.
    texts : callable
        Takes the number of documents; yields lists of their texts, or arrays of their fingerprints.
    commands : callable
        Returns the `neardup` commands that are timed together, from the file of documents (column text), an empty
        folder for results and the flags of the mode.
    growth : float, default 0
        How many times as many comparisons there may be when the documents double.
    candidates : float, default 0
        How many candidates there may be for each pair and document.
    small : int, default 0
        The number of documents of the first job where only comparisons and candidates are counted, as tests do; 0 if
        the shape needs a corpus, or its job counts neither. Then other tests count its steps.
    one_mode : bool, default False
        Whether the job runs alike in all modes.
    """

    what: str
    size: int
    texts: Callable[[int], Iterator[Any]]
    commands: Commands
    growth: float = 0
    candidates: float = 0
    small: int = 0
    one_mode: bool = False

    def write(self, path: Path, size: int) -> None:
        """Write the documents of a job, in row groups of `data.PART`."""
        parts = (pa.table({"text": pa.array(texts)}) for texts in self.texts(size))
        first = next(parts)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            for table in chain([first], parts):
                writer.write_table(table)


def at_once(make: Callable[[int], Any]) -> Callable[[int], Iterator[Any]]:
    """Return a generator that yields all that `make` returns at once."""
    return lambda size: iter([make(size)])


WORDS = ("--shingle-size", "1")
HALF = dedup(*WORDS, "--threshold", "0.5")
CONTAINED = dedup("--method", "containment", "--threshold", "0.3")
ALL_PARTNERS = dedup("--max-partners", "1000000")

SHAPES: dict[str, Shape] = {
    "sections": Shape("sections that most pairs share some of", 2_000, data.sections, dedup(), 4.5, 0.1, 200),
    "sentences": Shape("sentences as sets of words, at .5", 12_500, data.sentences, HALF, 4.5, 4, 1_000),
    "man pages": Shape("sentences of man pages as sets of words, at .5", 25_000, data.man_page_sentences, HALF),
    "few words": Shape("texts of 1 to 3 words", 125_000, data.few_words, dedup(*WORDS), 4.5, 1, 2_000),
    "windows": Shape("windows of 2,000 words of one text", 1_000, data.windows, dedup()),
    "short windows": Shape("windows of 100 words", 10_000, partial(data.windows, length=100), dedup(), 2.5, 2, 1_000),
    "crowd": Shape("near-duplicates of one text", 10_000, at_once(data.crowd), dedup()),
    "indexed crowd": Shape("the same, added to an index", 10_000, at_once(data.crowd), index("exact"), one_mode=True),
    "indexed crowd by min-hash": Shape(
        "the same by min-hash", 5_000, at_once(data.crowd), index("minhash"), one_mode=True
    ),
    "chain": Shape(
        "versions of a text, the first of them a crowd", 2_500, at_once(data.chain), in_tasks, one_mode=True
    ),
    "clustered crowd": Shape(
        "clusters of a crowd, by the first", 6_250, at_once(data.crowd), clusters("first"), one_mode=True
    ),
    "clustered crowd by the commonest": Shape(
        "the same, by the commonest", 6_250, at_once(data.crowd), clusters("commonest"), one_mode=True
    ),
    "clustered sections": Shape("clusters of sections", 1_000, data.sections, clusters("first"), one_mode=True),
    "fingerprints": Shape(
        "fingerprints that are all alike", 25_000, at_once(data.near_fingerprints), near_pairs, one_mode=True
    ),
    "removals": Shape(
        "a crowd in an index, removed, and half of it anew", 12_500, at_once(data.crowd), removals, one_mode=True
    ),
    "small adds": Shape("short texts, added to an index one by one", 125, data.short_texts, small_adds, one_mode=True),
    "files": Shape("short texts, each in a file of one folder", 12_500, data.short_texts, many_files),
    "growing files": Shape("states of files that grow, containment at .3", 1_000, data.growing_files, CONTAINED),
    "all partners": Shape("a crowd of which all pairs are listed", 500, at_once(data.crowd), ALL_PARTNERS),
    "tags": Shape("nested tags with long equal beginnings", 4, at_once(data.nested_pages), dedup("--html", "tree")),
}


# --------------------------------------------------------------------------------------------------------------- runs


def counted(folder: Path) -> dict[str, Any]:
    """Return what the report of a job counts, or the rows of what it wrote."""
    if (folder / "output" / "report.json").exists():
        report = json.loads((folder / "output" / "report.json").read_text())
        names = "documents", "comparisons", "candidate_pairs", "verified_pairs"
        counts = {name: report["counts"][name] for name in names if name in report["counts"]}
        filtered = {f"filtered_by_{name}": number for name, number in report.get("filtered", {}).items()}
        return counts | filtered | {"stages": report["timings"]}
    if (folder / "pairs.parquet").exists():
        return {"verified_pairs": pq.read_metadata(folder / "pairs.parquet").num_rows}
    if (folder / "clusters.parquet").exists():
        return {"clusters": len(pq.read_table(folder / "clusters.parquet")["cluster"].unique())}
    return {}


def steps(name: str, size: int, folder: Path, mode: str = "in memory") -> dict[str, Any]:
    """Run a shape's job on some documents in this process, and return what it counted."""
    from neardup_gpu.cli.app import run

    shape, source = SHAPES[name], folder / "source.parquet"
    folder.mkdir(exist_ok=True)
    shape.write(source, size)
    for command in shape.commands(source, folder, MODES[mode](folder)):
        run([str(word) for word in command])
    return {name: number for name, number in counted(folder).items() if name != "stages"}


def measured(name: str, size: int, scratch: Path, mode: str) -> dict[str, Any]:
    """Run a shape's job on some documents in processes of their own; return its seconds, memory and counts."""
    shape, seconds, peak = SHAPES[name], 0.0, 0.0
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        source = Path(folder, "source.parquet")
        shape.write(source, size)
        for command in shape.commands(source, Path(folder), MODES[mode](Path(folder))):
            program = ["-c", ADD_EACH, *command[1:]] if command[0] == "add each" else ["-m", "neardup_gpu", *command]
            done = launch([sys.executable, *program])
            seconds, peak = seconds + done["seconds"], max(peak, done["peak_mb"])
        return {"documents": size, "seconds": round(seconds, 3), "peak_mb": round(peak), **counted(Path(folder))}


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
        if mode == "in memory" or not SHAPES[name].one_mode
    }
    if given.output:
        given.output.write_text(json.dumps({"machine": machine(), "shapes": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
