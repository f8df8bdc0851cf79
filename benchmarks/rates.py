"""Rates of the stages of a job of tasks, for `neardup plan`: from the records of real jobs on made documents.

    python -m benchmarks.rates --write neardup_gpu/rates.json
    python -m benchmarks.rates --check

Documents have 34 to 46 random words of 50,000; a hundredth are the document before with a word changed, another are
copies of it. Jobs of two sizes with as many slices give two times of a task, and so what a task takes
at least and what each item adds. As tasks are alike, the fastest of a stage stands for all: it neither loaded compiled
kernels, as the first of a process do, nor was it disturbed by other work. A small job runs before, to compile them.

Jobs in memory, of short documents and of long ones with the same words, give what a document and what a byte takes.

`--check` runs jobs of three other sizes and prints predicted beside measured core seconds, and their ratio.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe, Writing, __version__, dedup
from neardup_gpu.planning.choices import COMPARED
from neardup_gpu.planning.costs import EQUAL_UNITS, UNITS, items, load_rates, stage_names, stages
from neardup_gpu.planning.files import shape_of
from neardup_gpu.planning.settings import Machines
from neardup_gpu.store.exchange import num_rows, read_partition
from neardup_gpu.store.places import Place
from neardup_gpu.tasks.cutting import table_parts
from neardup_gpu.tasks.sizes import Checked, Counts, Shape
from neardup_gpu.tasks.workers import Workers

if TYPE_CHECKING:
    from neardup_gpu.methods.contract import Method

SIZES = (50_000, 200_000)
"""Documents of the jobs that rates are taken from."""

CHECKED = (60_000, 150_000, 400_000)
"""Documents of those that are predicted."""

FILES = 8
TASK_MEMORY = 2 * 10**9
WITHIN = 0.25
"""How far a prediction may be off."""

Record = dict[str, Any]


def write_documents(folder: Path, documents: int, files: int = FILES, line: int | None = None) -> int:
    """Write made documents to Parquet files of one size each; returns the bytes of their text.

    Their lines have `line` words; unless it is given, a document is a line.
    """
    random, total = np.random.default_rng(1), 0
    words = np.array([f"w{number}" for number in range(50_000)])
    folder.mkdir(parents=True)
    for file in range(files):
        rows = documents // files
        lengths = random.integers(34, 47, rows)
        ends = np.cumsum(lengths)
        found = np.split(words[random.integers(0, len(words), ends[-1])], ends[:-1])
        for row in random.integers(1, rows, rows // 100).tolist():
            found[row] = found[row - 1].copy()
            found[row][random.integers(0, len(found[row]))] = "changed"
        for row in random.integers(1, rows, rows // 100).tolist():
            found[row] = found[row - 1]
        texts = [_text_of(row, line or len(row)) for row in found]
        total += sum(map(len, texts))
        pq.write_table(pa.table({"text": texts}), folder / f"{file}.parquet")
    return total


def _in_turn(values: Sequence[str], size: int) -> list[Sequence[str]]:
    return [values[place : place + size] for place in range(0, len(values), size)]


def _text_of(words: Sequence[str], line: int) -> str:
    return "\n".join(map(" ".join, _in_turn(words, line)))


def run_tasks(
    folder: Path,
    work: Path,
    *,
    method: str | Method,
    slices: int,
    partitions: int,
    spool: bool = False,
    check: int = 0,
    against: Path | None = None,
    workers: int = 2,
    **compared: Any,
) -> Shape:
    """Run a job of tasks whose work folder stays; returns its shape, as planned. `compared` is more of its recipe."""
    recipe = Recipe(method=method, **compared)
    num_bytes = sum(file.stat().st_size for file in folder.iterdir())
    settings = Workers(
        work_dir=str(work),
        number=workers,
        slice_bytes=max(1, 2 * num_bytes // slices),
        partitions=partitions,
        task_memory=TASK_MEMORY,
        spool=spool,
        keep_work=True,
    )
    output = work.with_name(f"{work.name}-output")
    report = dedup(
        folder,
        output=output,
        against=against,
        workers=settings,
        engine="cpu",
        recipe=recipe,
        writing=Writing(check=check),
    ).report
    return shape_of(
        recipe,
        report["counts"]["representatives"],
        slices=report["tasks"]["slices"],
        partitions=partitions,
        task_memory=TASK_MEMORY,
        spool=spool,
        known=report["tasks"]["slices"] - len(records(work, "write")),
        checked=check > 0,
    )


def records(work: Path, stage: str) -> list[Record]:
    """The records of a stage, in the order of its tasks."""
    return [json.loads(path.read_text()) for path in sorted((work / stage).glob("*.json"))]


def counted(work: Path, shape: Shape) -> Counts:
    """What a job counted, from its records and the numbers of rows in its files."""
    place, slices, ranges = Place.of(str(work)), shape.slices, shape.partitions

    def total(stage: str, fact: str) -> int:
        return sum(record["facts"][fact] for record in records(work, stage))

    def rows(stage: str, what: str, partitions: Sequence[int]) -> int:
        names = sorted(f"{stage}/{path.name}" for path in (work / stage).glob(f"*-{what}"))
        return sum(num_rows(place, names, partition) for partition in partitions)

    place_bytes = 0
    for number in range(slices):
        for batch in read_partition(place, [f"sketch/{number:06}-ids"], 0):
            place_bytes += sum(map(bytes_of, batch))
    kept_ids = rows("fates", "wanted", range(slices))
    copies = total("copies", "copies")
    checked = Checked()
    if shape.checked:
        checked = Checked(
            drawn_of_slices=rows("draw", "drawn", [0]),
            drawn=rows("drawn", "drawn", [0]),
            drawn_shingles=_shingles(place, work, "drawn-sets", 1),
            sampled=rows("sampled", "sample", [0]),
            sampled_shingles=rows("sampled", "sets", [0]),
            near=rows("near", "near", [0]),
            nearest=rows("nearest", "pairs", [0]),
            wanted=rows("nearest", "wanted", range(slices)),
            wanted_shingles=_shingles(place, work, "near-sets", 1),
        )
    parts = 0
    if shape.tables:
        number = total("sketch", "present") - copies
        parts = shape.tables * table_parts(shape.tables, number, ranges, shape.task_memory).per_table
    return Counts(
        documents=total("sketch", "units"),
        owners=total("sketch", "documents") if shape.divides else 0,
        spared=rows("ids", "spared", range(slices)) if shape.divides else 0,
        known_documents=sum(record["facts"]["units"] for record in records(work, "sketch")[: shape.known]),
        text_bytes=total("sketch", "text_bytes"),
        shingles=total("sketch", "waiting"),
        present=total("sketch", "present"),
        place_bytes=place_bytes,
        id_bytes=8,
        copies=copies,
        entries=rows("keys", "entries", range(parts)),
        counters=rows("merge", "counters", [0]) if shape.posts else 0,
        postings=total("postings", "postings") if shape.posts else 0,
        containers=total("containers", "postings"),
        found=total("collide", "found"),
        pairs=total("pairs", "pairs"),
        wanted=rows("pairs", "wanted", range(slices)),
        wanted_shingles=_shingles(place, work, "sets", ranges),
        verified=total("verify", "verified"),
        listed=rows("name", "listed", range(ranges)),
        listed_pairs=rows("listed", "pairs", [0]),
        removed=rows("name", "fates", range(slices)),
        wanted_ids=rows("listed", "wanted", range(slices)) + kept_ids,
        kept_ids=kept_ids,
        crowded=total("collide", "crowded"),
        near_known=rows("name", "near", range(slices)) if shape.known else 0,
        checked=checked,
    )


def _shingles(place: Place, work: Path, stage: str, partitions: int) -> int:
    """Shingles in the answers of a stage to all who asked."""
    names = sorted(f"{stage}/{path.name}" for path in (work / stage).glob("*-sets"))
    return sum(
        len(batch.column("shingles").flatten())
        for part in range(partitions)
        for batch in read_partition(place, names, part, ["shingles"])
    )


def bytes_of(column: pa.Array) -> int:
    """Bytes of the values of a column in a file, with 8 for each text or list."""
    if pa.types.is_large_list(column.type):
        return 8 * len(column) + bytes_of(column.flatten())
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        return 8 * len(column) + sum(len(text.as_buffer()) for text in column)
    if pa.types.is_fixed_size_list(column.type):
        return bytes_of(column.flatten())
    return len(column) * column.type.bit_width // 8


LINE = 8
"""Words of a line, where parts of documents are compared."""

PARTS: dict[str, dict[str, Any]] = {
    UNITS: {"unit": "line", "threshold": 0.8},
    EQUAL_UNITS: {"unit": "line", "threshold": 1.0},
}
"""The settings of recipes by which the rates of parts of documents are measured, all by the method exact."""


class Kind(NamedTuple):
    """A kind of job that has rates of its own."""

    method: str
    spool: bool = False
    parts: str = ""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.method, self.parts, "spool" if self.spool else "")))

    @property
    def compared(self) -> dict[str, Any]:
        return PARTS.get(self.parts, {})

    @property
    def recipe(self) -> Recipe:
        return Recipe(method=self.method, **self.compared)

    @property
    def folder(self) -> str:
        """The end of the name of the folder of its documents."""
        return "-lines" if self.parts else ""


KINDS = [
    *(Kind(method, spool) for method in COMPARED for spool in (False, True)),
    *(Kind("exact", parts=parts) for parts in PARTS),
]


def measured(folder: Path, work: Path, kind: Kind) -> tuple[Shape, Counts, dict[str, list[float]]]:
    """The shape and the counts of a job, and the seconds of the tasks of each stage."""
    made = {"slices": FILES, "partitions": FILES, "spool": kind.spool, **kind.compared}
    shape = run_tasks(folder, work, method=kind.method, **made)
    seconds = {name: [record["seconds"] for record in records(work, name)] for name in stage_names(shape)}
    return shape, counted(work, shape), seconds


def rates(folder: Path, kinds: Sequence[Kind] = KINDS) -> dict[str, Any]:
    """Measure all rates; of parts of documents only those of stages that have items, as others are like documents."""
    methods: dict[str, Any] = {}
    for documents in SIZES:
        write_documents(folder / str(documents), documents)
        write_documents(folder / f"{documents}-lines", documents, line=LINE)
    for kind in kinds:
        points: dict[str, list[tuple[float, float]]] = {}
        for number, documents in enumerate((SIZES[0], *SIZES)):  # the first job compiles
            work = folder / f"{number}-{kind.name}"
            shape, counts, seconds = measured(folder / f"{documents}{kind.folder}", work, kind)
            if number:
                for stage, of_tasks in seconds.items():
                    share = items(stage, counts, shape) / len(of_tasks)
                    points.setdefault(stage, []).append((share, min(of_tasks)))
        own = {stage: found for stage, found in points.items() if found[-1][0] or not kind.parts}
        methods[kind.name] = {stage: _line(*found) for stage, found in own.items()}
    return methods


def _line(small: tuple[float, float], large: tuple[float, float]) -> dict[str, float]:
    """What a task takes at least, and what its items add: a tenth of the time at least."""
    (few, short), (many, long) = small, large
    item = max(0.0, (long - short) / (many - few)) if many > few else 0.0
    task = min(max(0.0, long - item * many), short, 0.9 * long)
    return {"task_seconds": float(f"{task:.3g}"), "item_seconds": float(f"{max(0.0, long - task) / many:.3g}")}


TOGETHER = 20
"""The number of short documents whose texts one long document has. A job on short documents and one on long documents
tell the time that a document takes from the time that a byte takes."""


def in_memory(folder: Path) -> dict[str, Any]:
    """Seconds of `dedup` in memory: to start the command, and for each document or unit and each byte of text."""
    short, long, lines = folder / "short", folder / "long", folder / "of-lines"
    num_bytes, least, number = write_documents(short, SIZES[-1]), SIZES[-1] // TOGETHER, {short: SIZES[-1], lines: 0}
    for each in (long, lines):
        each.mkdir()
    for file in short.iterdir():
        words = [" ".join(texts).split() for texts in _in_turn(pq.read_table(file)["text"].to_pylist(), TOGETHER)]
        for each, line in ((long, None), (lines, LINE)):
            texts = [_text_of(row, line or len(row)) for row in words]
            pq.write_table(pa.table({"text": texts}), each / file.name)
        number[lines] += sum(text.count("\n") + 1 for text in texts)
    methods = {}
    for kind in (each for each in KINDS if not each.spool):
        most = lines if kind.parts else short
        dedup(most, engine="cpu", recipe=kind.recipe)  # compiles
        few, many = (
            min(_seconds(each, kind.recipe, folder / f"{each.name}-{kind.name}-{turn}") for turn in range(5))
            for each in (long, most)
        )
        a_document = max(0.0, (many - few) / (number[most] - least))
        a_byte = max(0.0, few - a_document * least) / num_bytes
        methods[kind.name] = {"document_seconds": float(f"{a_document:.3g}"), "byte_seconds": float(f"{a_byte:.3g}")}
    begin = time.perf_counter()
    pq.write_table(pa.table({"text": ["to be", "or not to be"]}), folder / "two.parquet")
    command = [sys.executable, "-m", "neardup_gpu", "dedup", str(folder / "two.parquet"), "--dry-run", "--quiet"]
    subprocess.run(command, check=True)
    return {"seconds": float(f"{time.perf_counter() - begin:.2g}"), "methods": methods}


def _seconds(source: Path, recipe: Recipe, output: Path) -> float:
    return dedup(source, engine="cpu", output=output, recipe=recipe).report["seconds"]


def check(folder: Path) -> list[dict[str, Any]]:
    """Predicted and measured core seconds of jobs, the latter by the fastest task of each stage, as rates are."""
    known, found = load_rates(), []
    machines = Machines(nodes=1, cores=2, open_seconds=0)
    for documents in CHECKED:
        write_documents(folder / str(documents), documents)
        write_documents(folder / f"{documents}-lines", documents, line=LINE)
        for kind in KINDS:
            work = folder / f"{documents}-{kind.name}"
            shape, counts, seconds = measured(folder / f"{documents}{kind.folder}", work, kind)
            planned = sum(stage.core_seconds for stage in stages(counts, shape, machines, known))
            took = sum(len(of_tasks) * min(of_tasks) for of_tasks in seconds.values())
            row = {"documents": documents, "method": kind.name, "predicted": planned, "measured": took}
            found.append(row)
            print(
                f"{documents:9,}  {row['method']:18} {planned:8.2f} s {took:8.2f} s  {planned / took:.2f}", flush=True
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", help="measure, and write the rates to this file")
    parser.add_argument("--note", default="", help="what to know of the machine, such as who shared it")
    parser.add_argument("--check", action="store_true", help="compare predictions with jobs of three sizes")
    arguments = parser.parse_args()
    if not arguments.write and not arguments.check:
        parser.error("give --write FILE or --check")
    status = 0
    with tempfile.TemporaryDirectory(prefix="neardup-rates-") as folder:
        if arguments.write:
            made = {
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "date": datetime.date.today().isoformat(),
                "version": __version__,
                "note": arguments.note,
                "documents": list(SIZES),
                "in memory": in_memory(Path(folder)),
                "methods": rates(Path(folder)),
            }
            Path(arguments.write).write_text(json.dumps(made, indent=1) + "\n")
        if arguments.check:
            off = [row for row in check(Path(folder)) if abs(row["predicted"] / row["measured"] - 1) > WITHIN]
            status = int(bool(off))
    return status


if __name__ == "__main__":
    sys.exit(main())
