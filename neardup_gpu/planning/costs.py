"""The costs of stages: the bytes that they read and hold, and their time, by rates that `benchmarks/rates.py`
measured."""

from __future__ import annotations

import json
from importlib.resources import files as package_files
from typing import Any, NamedTuple

from ..stages.joining import MOST_MARK_BITS
from ..tasks.colliding import ENTRY_BYTES
from ..tasks.columns import ranges_of
from ..tasks.copies import ROW_BYTES
from ..tasks.deciding import PAIR_BYTES
from ..tasks.joining import SLOT_BYTES
from ..tasks.naming import KEEPER_BYTES, SORTED_BYTES
from ..tasks.pairs import FOUND_BYTES, TOGETHER, TOGETHER_BYTES
from ..tasks.ranking import SAMPLED
from ..tasks.sizes import Counts, Exchange, Shape, row_bytes
from ..tasks.sketching import UNITS as PLACES
from ..tasks.work import WAITING, WAITING_BESIDE
from .files import exchanges
from .settings import Machines


class StageCost(NamedTuple):
    """The costs of a stage.

    Parameters
    ----------
    name : str
    tasks : int
    core_seconds : float
        Predicted.
    read, exchanged, written : float
        Bytes: all that is read, with indexes; payload put into the work folder; the result.
    memory : float
        Bytes of a task, about, without the interpreter and its libraries.
    files : int
    block_bytes : float or None
        Bytes of a partition of a file, on average, of the smallest kind of files that are divided.
    seconds : float
        Predicted.
    bound : "cores", "tasks", "disk" or "network"
        What takes that long; "tasks" where there are fewer of them than cores.
    opens : float
        How often a file of the work folder is opened.
    """

    name: str
    tasks: int
    core_seconds: float
    read: float
    exchanged: float
    written: float
    memory: float
    files: int
    block_bytes: float | None
    seconds: float
    bound: str
    opens: float


READS = {
    "copies": {"sketch hashes": 3},
    "keys": {"sketch rows": 1, "sketch keys": 1, "copies slices": 1},
    "merge": {"sketch counters": 1, "sketch beyond": 1, "sketch slots": 1},
    "postings": {"sketch rows": 1, "rows ranks": 1, "copies slices": 1, "sketch shingles": 1},
    "marks": {"postings marks": 1},
    "containers": {"sketch rows": 1, "rows ranks": 1, "copies slices": 1, "sketch shingles": 1},
    "collide": {"keys entries": 1, "postings postings": 1, "containers postings": 1},
    "pairs": {"collide found": 1, "rank numbers": 1},
    "sets": {"pairs wanted": 1, "sketch shingles": 1},
    "verify": {"pairs pairs": 1, "sets sets": 1, "sets keys": 1},
    "decide": {"verify right": 2},
    "name": {"verify left": 1, "verify right": 1, "copies ranges": 1},
    "listed": {"name listed": 1, "copies ranges": 1, "name grouped": 1},
    "fates": {"name fates": 1, "sketch units": 1},
    "ids": {"listed wanted": 1, "fates wanted": 1, "fates claims": 1, "sketch ids": 1, "sketch alike": 1},
    "tables": {"listed pairs": 1, "ids ids": 1},
    "write": {"name fates": 1, "ids ids": 1, "sketch ids": 2, "sketch rows": 1, "sketch alike": 1, "sketch units": 1},
    "sample": {"sketch rows": 1},
    "choose": {"sample sample": 1},
    "spread": {"sketch rows": 1, "choose cuts": 1},
    "order": {"spread parts": 1},
    "rows": {"order slices": 1},
    "rank": {"order ranges": 1},
    "draw": {"sketch rows": 1, "sketch order": 1, "copies slices": 1},
    "drawn": {"draw drawn": 1},
    "drawn-sets": {"drawn wanted": 1, "sketch shingles": 1},
    "sampled": {"drawn drawn": 1, "drawn-sets sets": 1},
    "near": {"sketch rows": 1, "sketch order": 1, "copies slices": 1, "sketch shingles": 1},
    "nearest": {"near near": 1},
    "near-sets": {"nearest wanted": 1, "sketch shingles": 1},
    "near-keys": {"nearest wanted": 1, "sketch keys": 1},
    "check": {"nearest pairs": 1, "near-sets sets": 1, "near-keys keys": 1, "listed pairs": 1},
}
"""The files that a stage reads, and how often it opens each block of them, if these are small; it reads the rows
once."""

TWICE = {"copies": "sketch hashes"}
"""Rows that are read twice."""

TEXT = ("sketch", "write")
"""Stages that read the text; others do where shingles do not wait in files."""

TEXT_UNLESS_SPOOLED = ("postings", "containers", "sets", "near", "drawn-sets", "near-sets")

LIKE = {
    "marks": ("merge",),
    "containers": ("postings",),
    "near": ("postings", "sets"),
    "drawn-sets": ("sets",),
    "near-sets": ("sets",),
    **dict.fromkeys(("sample", "choose", "spread", "order", "rows", "rank"), ("copies",)),
    **dict.fromkeys(("near-keys", "draw", "drawn", "sampled", "nearest", "check"), ("fates",)),
}
"""Stages whose rates were not measured, and similar stages for each; the first one with a known rate counts."""


UNITS, EQUAL_UNITS = "units", "equal units"
"""The ends of the names of rates that jobs on parts of documents have."""


def measured_as(method: str, sketches: bool, rates: dict[str, Any]) -> str:
    """Return the method whose rates are taken: a method itself, or of its kind the one that was measured."""
    return method if method in rates["methods"] else "minhash" if sketches else "exact"


def of_units(measured: str, divides: bool, only_equal: bool, rates: dict[str, Any]) -> str:
    """Return the name of the rates of a measured method, those of parts of documents if there are such rates."""
    name = f"{measured}, {EQUAL_UNITS if only_equal else UNITS}"
    return name if divides and name in rates["methods"] else measured


def items(stage: str, counts: Counts, shape: Shape) -> float:
    """The quantity that the seconds of a stage are proportional to.

    Parameters
    ----------
    stage : str
    counts : Counts
    shape : Shape
    """
    c = counts
    if stage in (*TEXT, *TEXT_UNLESS_SPOOLED):
        return c.text_bytes * _share_of_slices(stage, c, shape) if shape.verifies or stage != "sets" else c.wanted
    checked = c.checked
    return {
        "copies": c.present,
        "keys": c.entries,
        "marks": shape.posting_tasks(c) * min(c.counters, 1 << MOST_MARK_BITS),
        **dict.fromkeys(("sample", "choose", "spread", "order", "rows", "rank", "draw"), c.documents),
        "drawn": checked.drawn_of_slices,
        "sampled": checked.drawn,
        "nearest": checked.near,
        "near-keys": checked.wanted,
        "check": checked.nearest + c.listed_pairs,
        "merge": shape.slices * c.counters if shape.counts_in_table(c) else SLOT_BYTES * c.shingles,
        "collide": c.entries or c.postings + c.containers,
        "pairs": c.found,
        "verify": c.pairs,
        "decide": c.documents,
        "name": c.documents,
        "listed": c.documents,
        "fates": c.documents,
        "ids": c.documents,
        "tables": c.listed_pairs,
    }[stage]


def tasks_of(stage: str, counts: Counts, shape: Shape) -> int:
    """How many tasks a stage has."""
    if stage in ("postings", "containers"):
        return shape.posting_tasks(counts)
    if stage in ("sketch", "keys", "sets", "fates", "ids", "near", "drawn-sets", "near-sets", "near-keys", "rows"):
        return shape.slices
    if stage in ("write", "draw", "sample", "spread"):
        return shape.slices - shape.known
    special = {"merge": ranges_of(shape.partitions), "marks": ranges_of(shape.partitions)}
    special |= dict.fromkeys(("decide", "drawn", "sampled", "nearest", "check", "choose"), 1)
    if stage == "collide":
        return shape.collide_tasks(counts)
    return special.get(stage, shape.partitions)


def stage_names(shape: Shape) -> list[str]:
    """The stages of a job, in their order."""
    found = ["sketch"]
    if shape.directed:
        found += ["sample", "choose", "spread", "order", "rows", "rank"]
    found += ["copies"] if shape.only_equal else ["copies", "keys"] if shape.tables else ["copies", "merge", "postings"]
    found += ["marks", "containers"] if shape.directed and shape.posts else []
    found += [] if shape.only_equal else ["collide", "pairs", "sets"]
    found += ["verify", "decide", "name", "listed", "fates", "ids", "tables", "write"]
    if shape.checked:
        found += ["draw", "drawn", "drawn-sets", "sampled", "near", "nearest", "near-sets"]
        found += ["near-keys", "check"] if shape.tables else ["check"]
    return found


def stages(counts: Counts, shape: Shape, machines: Machines, rates: dict[str, Any]) -> list[StageCost]:
    """Return the costs of each stage.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    machines : Machines
    rates : dict
        Of `load_rates`.
    """
    made = {f"{each.stage} {each.what}": each for each in exchanges(counts, shape)}
    measured = measured_as(shape.method, shape.tables > 0, rates)
    of_method = rates["methods"][f"{measured}, spool" if shape.spool else measured]
    if (of_parts := of_units(measured, shape.divides, shape.only_equal, rates)) != measured:
        of_method = of_method | rates["methods"][of_parts]
    found = []
    for name in stage_names(shape):
        tasks = tasks_of(name, counts, shape)
        text = counts.text_bytes * _share_of_slices(name, counts, shape) if _reads_text(name, shape) else 0.0
        read = text
        opens = 0.0
        for file, times in READS.get(name, {}).items():
            if file in made:
                rows, indexes, opened = _reading(made[file], name, times, shape)
                read += rows + indexes
                opens += opened
        if name == "name":
            read += tasks * made["decide removed"].payload  # each task reads all bits
        if name in ("postings", "containers"):  # each task reads the table
            read += tasks * (made["merge counters"].payload + made["merge beyond"].payload)
        if name == "containers":
            read += tasks * made["marks marks"].payload
        own = [each for each in made.values() if each.stage == name]
        rate = _rate(of_method, name)
        work = tasks * rate["task_seconds"] + items(name, counts, shape) * rate["item_seconds"]
        core_seconds = work + opens * machines.open_seconds
        exchanged, written = sum(each.payload for each in own), _written(name, counts)
        at_once = min(tasks, machines.nodes * machines.cores)
        nodes = min(tasks, machines.nodes)
        across = 0 if machines.nodes == 1 else read - text
        seconds = {
            "cores" if at_once == machines.nodes * machines.cores else "tasks": core_seconds / at_once,
            "disk": (read + exchanged + written) / (nodes * machines.disk),
            "network": across / (nodes * machines.network),
        }
        bound = max(seconds, key=lambda each: seconds[each])
        blocks = [each.block_bytes for each in own if each.partitions > 1 and each.payload]
        found.append(
            StageCost(
                name,
                tasks,
                core_seconds,
                read,
                exchanged,
                written,
                memory_of(name, counts, shape),
                sum(each.files for each in own),
                min(blocks, default=None),
                seconds[bound],
                bound,
                opens,
            )
        )
    return found


def _rate(rates: dict[str, Any], stage: str) -> dict[str, float]:
    """The rate of a stage, or of one that does about the same."""
    return next(rates[name] for name in (stage, *LIKE.get(stage, ())) if name in rates)


def _share_of_slices(stage: str, counts: Counts, shape: Shape) -> float:
    """Share of the slices whose text a stage reads, if it needs few documents."""
    slices_read = {"drawn-sets": counts.checked.drawn, "near-sets": counts.checked.wanted}
    return min(1.0, slices_read.get(stage, shape.slices) / shape.slices)


def _reads_text(name: str, shape: Shape) -> bool:
    return name in TEXT or (name in TEXT_UNLESS_SPOOLED and shape.verifies and not shape.spool)


def _reading(file: Exchange, stage: str, times: int, shape: Shape) -> tuple[float, float, float]:
    """Bytes of rows and of indexes that a stage reads of files, and how often it opens one."""
    payload, partitions, readers = float(file.payload), file.partitions, file.partitions
    if file.what == "ids" and file.stage == "ids":
        readers = shape.partitions if stage == "tables" else shape.slices
        payload = payload * readers / partitions
    if partitions == 1:
        return payload, 0.0, times * file.files
    rows = payload * (2 if TWICE.get(stage) == f"{file.stage} {file.what}" else 1)
    return rows, times * readers * file.index_bytes(shape.task_memory), times * readers * file.files


def _written(stage: str, counts: Counts) -> float:
    """Bytes of the result: kept texts as long as they are, and tables without compression."""
    if stage == "tables":
        return (2 * counts.id_bytes + 8) * counts.listed_pairs
    if stage == "write":
        own = counts.documents - counts.known_documents
        share = own / counts.documents
        rows = own * (2 * counts.id_bytes + 50) if counts.owners else 17 * own  # of units or documents
        return share * (counts.place_bytes + counts.text_bytes * (1 - counts.removed / own)) + rows
    return 0


def memory_of(stage: str, counts: Counts, shape: Shape) -> float:
    """Memory of a task, about."""
    c, most, ranges = counts, shape.task_memory, shape.partitions
    rows = c.documents / shape.slices
    table = c.counters * 17 / 16
    counting = table if shape.counts_in_table(c) else min(most / WAITING, SLOT_BYTES * c.shingles / shape.slices)
    a_slice = rows * slice_row_bytes(shape, c.place_bytes / c.documents + row_bytes(PLACES) * shape.divides)
    of_slice = {
        "sketch": a_slice + counting + min(most / WAITING, 24 * rows) + min(most / 8, 4 * c.text_bytes / shape.slices),
        "keys": rows * (76 + 8 * shape.keys) + min(most / WAITING, shape.entry_bytes * c.entries / shape.slices),
        "sets": min(most / WAITING, (16 * c.wanted + 8 * c.wanted_shingles) / shape.slices)
        + 32 * c.wanted / shape.slices,
        "fates": 24 * (c.removed + c.near_known) / shape.slices,
        "ids": rows * c.id_bytes + 64 * c.wanted_ids / shape.slices,
        "write": a_slice + 64 * rows,
        **dict.fromkeys(("draw", "sample", "spread", "rows"), 56 * rows),
        "near": 24 * rows + 8 * c.checked.sampled_shingles + 24 * c.checked.near,
    }
    answers = {"drawn": c.checked.drawn_shingles, "near": c.checked.wanted_shingles}
    checks = dict.fromkeys(("near-sets", "near-keys", "nearest", "check"), 16 * answers["near"])
    checks |= dict.fromkeys(("drawn", "drawn-sets", "sampled"), 16 * answers["drawn"])
    parts = shape.tables * shape.table_parts(c).per_table if shape.tables else 1
    of_all = undivided(c)
    of_range = {
        "copies": min(most / 8 * 3, ROW_BYTES * c.present / ranges),
        "choose": 120 * min(c.documents, SAMPLED + shape.slices),
        "order": 120 * c.documents / ranges,
        "rank": 32 * c.documents / ranges,
        "marks": 2 * min(c.counters, 1 << MOST_MARK_BITS) / ranges_of(ranges),
        "merge": 2 * table / ranges_of(ranges),
        "postings": table + min(most / WAITING_BESIDE, 32 * c.postings / shape.posting_tasks(c))
        if shape.posts
        else 0.0,
        "containers": table + min(c.counters, 1 << MOST_MARK_BITS) + most / WAITING_BESIDE,
        "collide": min(most / 2, ENTRY_BYTES * c.entries / parts) + most / 8 if shape.tables else most / 8 * 3,
        "pairs": min(most / 4, FOUND_BYTES * c.found / ranges) + 24 * c.wanted / ranges,
        "verify": 40 * c.wanted / ranges + min(most / 4, TOGETHER_BYTES * min(TOGETHER, c.pairs / ranges)),
        "decide": of_all["decide"]
        + min(most / 8, SORTED_BYTES * c.verified / ranges)
        + shape.components * min(most / 2, PAIR_BYTES * c.verified),
        "name": of_all["name"]
        + min(most / 4, KEEPER_BYTES * c.verified / ranges)
        + 72 * c.removed / ranges
        + (40 if shape.known else 16) * c.documents / ranges,
        "listed": 96 * c.listed_pairs / ranges,
        "tables": (24 + 4 * (8 + c.id_bytes)) * c.listed_pairs / ranges,
    }
    return {**of_slice, **of_range, **checks}[stage]


def undivided(counts: Counts) -> dict[str, float]:
    """Return the memory that a task of a stage takes for all documents, into however many tasks a job is divided."""
    return dict.fromkeys(("decide", "name"), counts.documents / 8)


def slice_row_bytes(shape: Shape, place_bytes: float) -> float:
    """Bytes of a slice's row while it is sketched."""
    return 8 * shape.keys + 32 + place_bytes


def load_rates() -> dict[str, Any]:
    """The rates of this package, in rates.json.

    Returns
    -------
    dict
        `machine`, `date` and `note`; and of each of `methods`, of each stage, `task_seconds` for each task and
        `item_seconds` for each of the items that `items` counts.
    """
    return json.loads(package_files("neardup_gpu").joinpath("rates.json").read_text())
