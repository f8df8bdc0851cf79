"""What a job of tasks exchanges, by formulas, and what it costs, by rates that `benchmarks/rates.py` measured.

Every file of the stages in `neardup_gpu/tasks` is an `Exchange` here. Its payload, the bytes of its values, is exact
for given counts; what the format of exchanges adds is bounded by `overhead`. Nothing else is certain: `expected` makes
counts from a few assumptions, and seconds are predictions.

Planned are jobs without a reference set, an id column and a check of the recall, that keep the first document of a
group by greedy clustering; documents that are crowded are not planned.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.resources import files as package_files
from typing import Any, NamedTuple

from . import checks
from .errors import ParameterError
from .joining import table_bits
from .prefix_filter import prefix_lengths
from .recipe import Recipe
from .tasks.colliding import ENTRY_BYTES
from .tasks.columns import ranges_of
from .tasks.copies import ROW_BYTES
from .tasks.driver import BYTES_A_WORD, posting_tasks
from .tasks.joining import SLOT_BYTES, in_table
from .tasks.layout import usual_partitions
from .tasks.naming import KEEPER_BYTES, SORTED_BYTES
from .tasks.pairs import FOUND_BYTES, TOGETHER, TOGETHER_BYTES
from .tasks.work import WAITING, WAITING_BESIDE

METHODS = ("exact", "minhash")
"""The methods that can be planned."""

SMALL_BLOCK = 100_000
"""Bytes of a file's partition below which reading it costs more than its bytes."""

FEW_BLOCKS = 1000
"""Blocks for each core that do no harm, whatever their size."""

TAIL_BYTES = 1 << 16
"""Bytes at the end of an exchange file that a reader reads at least."""

SHINGLE_SIZE = 5
"""Tokens in a shingle."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many things of each kind a job has.

    Parameters
    ----------
    documents, text_bytes, shingles : int
        Of all documents; shingles are those of their sets.
    present : int
        Documents with tokens.
    place_bytes : int
        Of all ids and, where documents come from files, of the name of the file and the row of each document.
    id_bytes : int
        Of one id.
    copies : int
        Documents with tokens for which an equal one stands.
    counters : int
        Of shingles, in a table; 0 by methods that sketch, as there are postings.
    postings : int
    found : int
        Candidate pairs, each as often as it is found.
    pairs : int
        Distinct candidate pairs.
    wanted, wanted_shingles : int
        Documents of these pairs, each once for each range of ranks, and their shingles.
    verified : int
    listed : int
        Verified pairs that are listed.
    removed : int
    wanted_ids : int
        Ids that ranges and slices ask for.
    kept_ids : int
        Those of them that slices ask for.
    crowded : int, default 0
    """

    documents: int
    text_bytes: int
    shingles: int
    present: int
    place_bytes: int
    id_bytes: int
    copies: int
    counters: int
    postings: int
    found: int
    pairs: int
    wanted: int
    wanted_shingles: int
    verified: int
    listed: int
    removed: int
    wanted_ids: int
    kept_ids: int
    crowded: int = 0

    @property
    def representatives(self) -> int:
        return self.present - self.copies


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a job is divided, and what a task may hold.

    Parameters
    ----------
    method : "exact" or "minhash"
    slices, partitions : int
    task_memory : int
    spool : bool
    key_columns : int
        Keys of a document; 0 by exact.
    tables : int
        Tables of keys; 0 by exact.
    """

    method: str
    slices: int
    partitions: int
    task_memory: int
    spool: bool
    key_columns: int
    tables: int

    def per_table(self, representatives: int) -> int:
        """Parts of each table of keys, as the driver divides it."""
        return max(-(-self.partitions // self.tables), -(-representatives // self._fits))

    def collide_tasks(self, representatives: int) -> int:
        """Tasks that look for candidates."""
        if not self.tables:
            return self.partitions
        parts = self.tables * self.per_table(representatives)
        return min(parts, max(self.partitions, -(-parts * representatives // (self.tables * self._fits))))

    def posting_tasks(self, counts: Counts) -> int:
        """Tasks that make postings, as the driver divides slices among them."""
        return posting_tasks(self.slices, counts.text_bytes, counts.counters.bit_length() - 1, self.partitions)

    @property
    def _fits(self) -> int:
        return max(1, self.task_memory // (4 * ENTRY_BYTES))


class Exchange(NamedTuple):
    """The files of one kind that the tasks of a stage write for other tasks.

    Parameters
    ----------
    stage, what : str
    rows : int
        Of all files.
    payload : int
        Bytes of the values in all files.
    columns : int
    files : int
    partitions : int
        Of each file; each is read by one task.
    share : int
        Rows wait in a `share`-th of a task's memory until they are written.
    """

    stage: str
    what: str
    rows: int
    payload: int
    columns: int
    files: int
    partitions: int = 1
    share: int = WAITING

    @property
    def block_bytes(self) -> float:
        """Bytes of a partition of a file, on average."""
        return self.payload / (self.files * self.partitions)

    def blocks(self, task_memory: int) -> int:
        """Record batches in all files, at most."""
        flushes = math.ceil(self.payload / self.files / (task_memory / self.share)) + 1
        return min(self.rows, self.files * self.partitions * flushes + self.payload // (8 << 20))

    def overhead(self, task_memory: int) -> int:
        """Most bytes that the format adds to the payload: an index, the schema twice, and the metadata of batches."""
        a_file, a_block = 512 + 256 * self.columns, 40 + 256 + 96 * self.columns
        return self.files * a_file + self.blocks(task_memory) * a_block

    def index_bytes(self, task_memory: int) -> float:
        """Bytes that one reader of a partition reads of all files before it reads the partition."""
        index = 552 + 40 * self.blocks(task_memory) / self.files
        return self.files * min(max(TAIL_BYTES, index), self.payload / self.files + index)


def exchanges(counts: Counts, shape: Shape) -> list[Exchange]:
    """All files of the work folder, by stage.

    Parameters
    ----------
    counts : Counts
    shape : Shape

    Returns
    -------
    list of Exchange
        In the order of the stages.
    """
    c, slices, ranges, k = counts, shape.slices, shape.partitions, shape.key_columns
    n, stands = c.documents, c.copies
    made = [
        Exchange("sketch", "rows", n, 16 * n, 2, slices),
        Exchange("sketch", "ids", n, c.place_bytes, 3, slices),
        Exchange("sketch", "hashes", c.present, 24 * c.present, 3, slices, ranges),
    ]
    if k:
        made.append(Exchange("sketch", "keys", n, 8 * k * n, 1, slices))
    if shape.spool:
        made.append(Exchange("sketch", "shingles", n, 8 * n + 8 * c.shingles, 1, slices))
    made += [
        Exchange("copies", "slices", stands, 16 * stands, 2, ranges, slices, WAITING_BESIDE),
        Exchange("copies", "ranges", stands, 16 * stands, 2, ranges, ranges, WAITING_BESIDE),
    ]
    if k:
        entries = shape.tables * c.representatives
        parts = shape.tables * shape.per_table(c.representatives)
        made.append(Exchange("keys", "entries", entries, 14 * entries, 3, slices, parts))
    else:
        number, parts = c.counters, ranges_of(ranges)
        made += [
            *_counting(c, shape),
            Exchange("merge", "counters", number, number, 1, parts),
            Exchange("merge", "beyond", number // 64, number // 16, 1, parts),
            Exchange(
                "postings", "postings", c.postings, 24 * c.postings, 4, shape.posting_tasks(c), ranges, WAITING_BESIDE
            ),
        ]
    finders = shape.collide_tasks(c.representatives)
    asked = c.wanted_ids - c.kept_ids
    return [
        *made,
        Exchange("collide", "found", c.found, 18 * c.found, 3, finders, ranges, WAITING_BESIDE),
        Exchange("collide", "crowded", c.crowded, 8 * c.crowded, 1, finders, share=WAITING_BESIDE),
        Exchange("pairs", "pairs", c.pairs, 16 * c.pairs, 2, ranges, share=WAITING_BESIDE),
        Exchange("pairs", "wanted", c.wanted, 16 * c.wanted, 2, ranges, slices),
        Exchange("sets", "sets", c.wanted, 16 * c.wanted + 8 * c.wanted_shingles, 2, slices, ranges),
        Exchange("verify", "left", c.verified, 24 * c.verified, 3, ranges, ranges, WAITING_BESIDE),
        Exchange("verify", "right", c.verified, 24 * c.verified, 3, ranges, share=WAITING_BESIDE),
        Exchange("decide", "removed", -(-n // 64), 8 * -(-n // 64), 1, 1),
        Exchange("decide", "labels", 0, 0, 2, 1, ranges),
        Exchange("name", "listed", c.listed, 24 * c.listed, 3, ranges, ranges, WAITING_BESIDE),
        Exchange("name", "fates", c.removed, 24 * c.removed, 3, ranges, slices),
        Exchange("name", "grouped", c.removed, 8 * c.removed, 1, ranges, ranges),
        Exchange("listed", "pairs", c.listed + stands, 24 * (c.listed + stands), 3, ranges),
        Exchange("listed", "wanted", asked, 16 * asked, 2, ranges, slices),
        Exchange("fates", "wanted", c.kept_ids, 16 * c.kept_ids, 2, slices, slices),
        Exchange("ids", "ids", c.wanted_ids, (8 + c.id_bytes) * c.wanted_ids, 2, slices, ranges + slices),
    ]


def _in_table(counts: Counts, shape: Shape) -> bool:
    """Whether slices of one size count their shingles, as the driver decides it."""
    words = counts.text_bytes // shape.slices // BYTES_A_WORD
    return not shape.tables and in_table(words, counts.counters.bit_length() - 1)


def _counting(counts: Counts, shape: Shape) -> list[Exchange]:
    """What slices write for the table of counters."""
    number, slices, parts = counts.counters, shape.slices, ranges_of(shape.partitions)
    if not _in_table(counts, shape):
        return [Exchange("sketch", "slots", counts.shingles, SLOT_BYTES * counts.shingles, 1, slices, parts)]
    return [
        Exchange("sketch", "counters", slices * number, slices * number, 1, slices, parts),
        Exchange("sketch", "beyond", slices * number // 64, slices * number // 16, 1, slices, parts),
    ]


# ----------------------------------------------------------------------------------------------------- what is expected


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The documents of a job, and what is assumed of them.

    Parameters
    ----------
    documents : float
        A whole number, at least 1.
    text_bytes : int
    copies : float, default 0.2
        Share of the documents that are exact copies of others.
    pairs : float, optional
        Pairs of near-duplicates that are no copies; a tenth of the documents unless given.
    token_bytes : float, default 6
        Of text for each token.
    id_bytes : int, default 8
    place_bytes : int, default 48
        What ids, names of files and rows take of each document.
    """

    documents: float
    text_bytes: int
    copies: float = 0.2
    pairs: float | None = None
    token_bytes: float = 6.0
    id_bytes: int = 8
    place_bytes: int = 48

    def __post_init__(self) -> None:
        most = 2.0**48
        if checks.number("documents", self.documents, 1, most) != int(self.documents):
            raise ParameterError(f"documents must be a whole number, got {self.documents}")
        checks.integer("text", self.text_bytes, 1)
        checks.fraction("copies", self.copies, one=False, hint="0.2 is a fifth")
        checks.optional(checks.number, "pairs", self.pairs, 0, most)
        checks.number("token_bytes", self.token_bytes, 1, 1000)
        checks.integer("id_bytes", self.id_bytes, 1, 1000)
        checks.integer("place_bytes", self.place_bytes, 1, 10_000)


def expected(work: Workload, shape: Shape, threshold: float) -> Counts:
    """Counts to plan with, from assumptions.

    Documents are of one size. A pair is found by half of the tables, or by half of the shingles of a prefix; half of
    the candidates reach the threshold; a pair asks for two documents. By exact, only documents of candidates have
    shingles in common; but where counters are fewer than shingles, others seem to have: a document then has a posting
    for each shingle of its prefix beyond those whose counter is theirs alone.

    Parameters
    ----------
    work : Workload
    shape : Shape
    threshold : float
    """
    n = int(work.documents)
    size = max(1, round(work.text_bytes / work.token_bytes / n) - SHINGLE_SIZE + 1)
    copies = int(work.copies * n)
    verified = int(0.1 * n if work.pairs is None else work.pairs)
    pairs, representatives = 2 * verified, n - copies
    wanted, removed = 2 * pairs, copies + min(verified, representatives // 2)
    prefix = prefix_lengths(size, threshold).long
    counters = postings = 0
    if not shape.tables:
        counters = 1 << table_bits(max(1, work.text_bytes // BYTES_A_WORD), shape.task_memory // 4)
        alone = math.exp(-n * size / counters)
        related = min(wanted, representatives)
        others = max(0.0, prefix - alone * size)
        postings = int(related * prefix + (representatives - related) * others)
    kept_ids = removed
    return Counts(
        documents=n,
        text_bytes=work.text_bytes,
        shingles=n * size,
        present=n,
        place_bytes=work.place_bytes * n,
        id_bytes=work.id_bytes,
        copies=copies,
        counters=counters,
        postings=postings,
        found=pairs * -(-(shape.tables or prefix) // 2),
        pairs=pairs,
        wanted=wanted,
        wanted_shingles=wanted * size,
        verified=verified,
        listed=verified,
        removed=removed,
        wanted_ids=2 * (verified + copies) + kept_ids,
        kept_ids=kept_ids,
    )


# -------------------------------------------------------------------------------------------------------------- stages


@dataclass(frozen=True, kw_only=True)
class Machines:
    """What the tasks run on.

    Parameters
    ----------
    nodes, cores : int
        Machines, and cores of each; a core runs a task.
    disk, network : int
        Bytes a second of each machine, reading and writing together.
    open_seconds : float
        To open a file and to find a partition in it.
    """

    nodes: int = 1
    cores: int = 2
    disk: int = 10**9
    network: int = 10**9
    open_seconds: float = 0.001

    def __post_init__(self) -> None:
        checks.integer("nodes", self.nodes, 1, 10**6)
        checks.integer("cores", self.cores, 1, 10**4)
        checks.integer("disk", self.disk, 1)
        checks.integer("network", self.network, 1)
        checks.number("open_seconds", self.open_seconds, 0, 1000)


class Stage(NamedTuple):
    """What a stage costs.

    Parameters
    ----------
    name : str
    tasks : int
    core_seconds : float
        Predicted.
    read, exchanged, written : float
        Bytes: all that is read, with indexes; payload put into the work folder; the result.
    memory : float
        Of a task, about, beside the interpreter and its libraries: bytes.
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
    "postings": {"sketch rows": 1, "copies slices": 1, "sketch shingles": 1},
    "collide": {"keys entries": 1, "postings postings": 1},
    "pairs": {"collide found": 1},
    "sets": {"pairs wanted": 1, "sketch shingles": 1},
    "verify": {"pairs pairs": 1, "sets sets": 1},
    "decide": {"verify left": 1},
    "name": {"verify left": 1, "verify right": 1, "copies ranges": 1},
    "listed": {"name listed": 1, "copies ranges": 1, "name grouped": 1},
    "fates": {"name fates": 1},
    "ids": {"listed wanted": 1, "fates wanted": 1, "sketch ids": 1},
    "tables": {"listed pairs": 1, "ids ids": 1},
    "write": {"name fates": 1, "ids ids": 1, "sketch ids": 2, "sketch rows": 1},
}
"""The files that a stage reads, and how often it opens each block of them, if these are small; it reads the rows
once."""

TWICE = {"copies": "sketch hashes"}
"""Rows that are read twice."""

TEXT = ("sketch", "write")
"""Stages that read the text; others do where shingles do not wait in files."""

TEXT_UNLESS_SPOOLED = ("postings", "sets")


def items(stage: str, counts: Counts, shape: Shape) -> float:
    """What the seconds of a stage are in proportion to.

    Parameters
    ----------
    stage : str
    counts : Counts
    shape : Shape
    """
    c = counts
    if stage in (*TEXT, *TEXT_UNLESS_SPOOLED):
        return c.text_bytes
    return {
        "copies": c.present,
        "keys": shape.tables * c.representatives,
        "merge": shape.slices * c.counters if _in_table(c, shape) else SLOT_BYTES * c.shingles,
        "collide": c.postings or shape.tables * c.representatives,
        "pairs": c.found,
        "verify": c.pairs,
        "decide": c.documents,
        "name": c.documents,
        "listed": c.documents,
        "fates": c.documents,
        "ids": c.documents,
        "tables": c.listed + c.copies,
    }[stage]


def tasks_of(stage: str, counts: Counts, shape: Shape) -> int:
    """How many tasks a stage has."""
    if stage == "postings":
        return shape.posting_tasks(counts)
    if stage in ("sketch", "keys", "sets", "fates", "ids", "write"):
        return shape.slices
    special = {"merge": ranges_of(shape.partitions), "decide": 1}
    if stage == "collide":
        return shape.collide_tasks(counts.representatives)
    return special.get(stage, shape.partitions)


def stage_names(shape: Shape) -> list[str]:
    """The stages of a job, in their order."""
    find = ("keys",) if shape.tables else ("merge", "postings")
    after = ("collide", "pairs", "sets", "verify", "decide", "name", "listed", "fates", "ids", "tables", "write")
    return ["sketch", "copies", *find, *after]


def stages(counts: Counts, shape: Shape, machines: Machines, rates: dict[str, Any]) -> list[Stage]:
    """What each stage costs.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    machines : Machines
    rates : dict
        Of `load_rates`.
    """
    made = {f"{each.stage} {each.what}": each for each in exchanges(counts, shape)}
    of_method = rates["methods"][f"{shape.method}, spool" if shape.spool else shape.method]
    found = []
    for name in stage_names(shape):
        tasks = tasks_of(name, counts, shape)
        read = float(counts.text_bytes) if _reads_text(name, shape) else 0.0
        opens = 0.0
        for file, times in READS.get(name, {}).items():
            if file in made:
                rows, indexes, opened = _reading(made[file], name, times, shape)
                read += rows + indexes
                opens += opened
        if name == "name":
            read += tasks * made["decide removed"].payload  # each task reads all bits
        if name == "postings":  # each task reads the table
            read += tasks * (made["merge counters"].payload + made["merge beyond"].payload)
        own = [each for each in made.values() if each.stage == name]
        rate = of_method[name]
        work = tasks * rate["task_seconds"] + items(name, counts, shape) * rate["item_seconds"]
        core_seconds = work + opens * machines.open_seconds
        exchanged, written = sum(each.payload for each in own), _written(name, counts)
        at_once = min(tasks, machines.nodes * machines.cores)
        nodes = min(tasks, machines.nodes)
        across = 0 if machines.nodes == 1 else read - (counts.text_bytes if _reads_text(name, shape) else 0)
        seconds = {
            "cores" if at_once == machines.nodes * machines.cores else "tasks": core_seconds / at_once,
            "disk": (read + exchanged + written) / (nodes * machines.disk),
            "network": across / (nodes * machines.network),
        }
        bound = max(seconds, key=lambda each: seconds[each])
        blocks = [each.block_bytes for each in own if each.partitions > 1 and each.payload]
        found.append(
            Stage(
                name,
                tasks,
                core_seconds,
                read,
                exchanged,
                written,
                _memory(name, counts, shape),
                sum(each.files for each in own),
                min(blocks, default=None),
                seconds[bound],
                bound,
                opens,
            )
        )
    return found


def _reads_text(name: str, shape: Shape) -> bool:
    return name in TEXT or (name in TEXT_UNLESS_SPOOLED and not shape.spool)


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
        return (2 * counts.id_bytes + 8) * (counts.listed + counts.copies)
    if stage == "write":
        return counts.place_bytes + 17 * counts.documents + counts.text_bytes * (1 - counts.removed / counts.documents)
    return 0


def _memory(stage: str, counts: Counts, shape: Shape) -> float:
    """Memory of a task, about."""
    c, most, ranges = counts, shape.task_memory, shape.partitions
    rows = c.documents / shape.slices
    table = c.counters * 17 / 16
    counting = table if _in_table(c, shape) else min(most / WAITING, SLOT_BYTES * c.shingles / shape.slices)
    a_slice = rows * slice_row_bytes(shape, c.place_bytes / c.documents)
    of_slice = {
        "sketch": a_slice + counting + min(most / WAITING, 24 * rows) + min(most / 8, 4 * c.text_bytes / shape.slices),
        "keys": rows * (16 + 8 * shape.key_columns) + min(most / WAITING, 14 * shape.tables * rows) + 60 * rows,
        "sets": min(most / WAITING, (16 * c.wanted + 8 * c.wanted_shingles) / shape.slices)
        + 32 * c.wanted / shape.slices,
        "fates": 24 * c.removed / shape.slices,
        "ids": rows * c.id_bytes + 64 * c.wanted_ids / shape.slices,
        "write": a_slice + 64 * rows,
    }
    parts = shape.tables * shape.per_table(c.representatives) if shape.tables else 1
    of_range = {
        "copies": min(most / 8 * 3, ROW_BYTES * c.present / ranges),
        "merge": 2 * table / ranges_of(ranges),
        "postings": table + min(most / WAITING_BESIDE, 24 * c.postings / shape.posting_tasks(c))
        if not shape.tables
        else 0.0,
        "collide": min(most / 2, ENTRY_BYTES * shape.tables * c.representatives / parts) + most / 8
        if shape.tables
        else most / 8 * 3,
        "pairs": min(most / 4, FOUND_BYTES * c.found / ranges) + 24 * c.wanted / ranges,
        "verify": 40 * c.wanted / ranges + min(most / 4, TOGETHER_BYTES * min(TOGETHER, c.pairs / ranges)),
        "decide": min(most / 2, c.documents / 4) + min(most / 8, SORTED_BYTES * c.verified / ranges),
        "name": c.documents / 8
        + min(most / 4, KEEPER_BYTES * c.verified / ranges)
        + 72 * c.removed / ranges
        + 16 * c.documents / ranges,
        "listed": 96 * (c.listed + c.copies) / ranges,
        "tables": (24 + 4 * (8 + c.id_bytes)) * (c.listed + c.copies) / ranges,
    }
    return {**of_slice, **of_range}[stage]


def slice_row_bytes(shape: Shape, place_bytes: float) -> float:
    """What a row of a slice takes while it is sketched."""
    return 8 * shape.key_columns + 32 + place_bytes


# ------------------------------------------------------------------------------------------------------------- choosing


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job as it is planned.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    slice_bytes : int
    stages : list of Stage
    exchanged_by : list of Exchange
    notes : list of str
        What was chosen, and what may go wrong.
    """

    counts: Counts
    shape: Shape
    slice_bytes: int
    stages: list[Stage]
    exchanged_by: list[Exchange]
    notes: list[str]

    @cached_property
    def totals(self) -> dict[str, float]:
        """Sums over all stages, and the memory of the largest task."""
        names = ("tasks", "core_seconds", "read", "exchanged", "written", "files", "seconds")
        sums = {name: sum(getattr(each, name) for each in self.stages) for name in names}
        return {**sums, "memory": max(each.memory for each in self.stages)}

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; bytes and seconds."""
        exchanged = []
        for each in self.exchanged_by:
            sizes = {"block_bytes": round(each.block_bytes), "overhead_at_most": each.overhead(self.shape.task_memory)}
            exchanged.append({**each._asdict(), **sizes})
        return {
            "method": self.shape.method,
            "slices": self.shape.slices,
            "slice_bytes": self.slice_bytes,
            "partitions": self.shape.partitions,
            "task_memory": self.shape.task_memory,
            "spool": self.shape.spool,
            "counts": asdict(self.counts),
            "stages": [each._asdict() for each in self.stages],
            "exchanged": exchanged,
            "totals": self.totals,
            "notes": self.notes,
        }


def plan(
    work: Workload,
    *,
    method: str = "exact",
    threshold: float = 0.8,
    machines: Machines | None = None,
    slice_bytes: int | None = None,
    partitions: int | None = None,
    task_memory: int = 2 * 10**9,
    spool: bool = False,
    rates: dict[str, Any] | None = None,
) -> Plan:
    """Plan a job of tasks.

    Parameters
    ----------
    work : Workload
    method : "exact" or "minhash", default "exact"
    threshold : float, default 0.8
    machines : Machines, optional
    slice_bytes : int, optional
        Text of a slice. Unless given it is 1 GB, or more where blocks of files would be small.
    partitions : int, optional
        Unless given as a job has them, or fewer where blocks would be small.
    task_memory : int, default 2 GB
    spool : bool, default False
    rates : dict, optional
        Those of this package unless given.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> made = plan(Workload(documents=1e6, text_bytes=10**9), method="minhash")
    >>> [each.payload // each.rows for each in made.exchanged_by if each.what in ("entries", "hashes")]
    [24, 14]
    """
    checks.one_of("method", method, METHODS)
    checks.optional(checks.integer, "slice_bytes", slice_bytes, 1)
    checks.optional(checks.integer, "partitions", partitions, 1, 1 << 16)
    checks.integer("task_memory", task_memory, 16 << 20)
    checks.flag("spool", spool)
    machines = Machines() if machines is None else machines
    recipe = Recipe(method=method, threshold=threshold)
    cores = machines.nodes * machines.cores
    given = slice_bytes is not None, partitions is not None
    usual_bytes = slice_bytes or 10**9
    slices = -(-work.text_bytes // usual_bytes)
    if slices > work.documents:
        each = work.text_bytes / work.documents
        raise ParameterError(f"slice_bytes {usual_bytes}: a document has {each:,.0f} bytes of text; give more")
    usual = min(1 << 16, partitions or usual_partitions(slices, work.text_bytes, cores))
    sketches = recipe.method.sketches
    shape = Shape(
        method=method,
        slices=slices,
        partitions=usual,
        task_memory=task_memory,
        spool=spool,
        key_columns=recipe.method.key_columns if sketches else 0,
        tables=len(recipe.method.buckets(int(work.documents)).masks) if sketches else 0,
    )
    first = shape
    while (small := small_blocks(expected(work, shape, threshold), shape, cores)) is not None:
        smaller = _fewer(work, shape, threshold, small, cores, given)
        if smaller is None:
            break
        shape = smaller
    counts = expected(work, shape, threshold)
    found = stages(counts, shape, machines, load_rates() if rates is None else rates)
    used = -(-work.text_bytes // shape.slices) if shape.slices != slices else usual_bytes
    notes = [*_chosen(first, shape, used, usual_bytes), *_warnings(shape, small, found, machines)]
    return Plan(
        counts=counts,
        shape=shape,
        slice_bytes=used,
        stages=found,
        exchanged_by=exchanges(counts, shape),
        notes=notes,
    )


def small_blocks(counts: Counts, shape: Shape, cores: int) -> Exchange | None:
    """The files with the smallest blocks, if these are small, many, and hold a hundredth of all bytes; None if not.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    cores : int
        Of all machines.
    """
    made = exchanges(counts, shape)
    total = sum(each.payload for each in made)
    small = [
        each
        for each in made
        if each.block_bytes < SMALL_BLOCK
        and each.files * each.partitions > FEW_BLOCKS * cores
        and 100 * each.payload >= total
    ]
    return min(small, key=lambda each: each.block_bytes, default=None)


def _fewer(
    work: Workload, shape: Shape, threshold: float, small: Exchange, cores: int, given: tuple[bool, bool]
) -> Shape | None:
    """The same job with fewer slices or partitions, by the larger number of both; None if neither can be."""
    slices, partitions = (max(cores, -(-number * 4 // 5)) for number in (shape.slices, shape.partitions))
    by_memory = small.stage == "keys" and shape.partitions <= small.partitions * 4 // 5
    choices = []
    if not given[0] and slices < shape.slices:
        choices.append((shape.slices, replace(shape, slices=slices)))
    if not given[1] and not by_memory and partitions < shape.partitions:
        choices.append((shape.partitions, replace(shape, partitions=partitions)))
    most = max(shape.task_memory, _largest(work, shape, threshold))
    fits = [each for each in choices if _largest(work, each[1], threshold) <= most]
    return max(fits, key=lambda each: each[0], default=(0, None))[1]


def _largest(work: Workload, shape: Shape, threshold: float) -> float:
    """Memory of the largest task, about."""
    counts = expected(work, shape, threshold)
    return max(_memory(name, counts, shape) for name in stage_names(shape))


def _chosen(first: Shape, shape: Shape, used: int, usual: int) -> list[str]:
    """What was chosen in place of what is usual."""
    from .report import size

    said = []
    if shape.slices != first.slices:
        said.append(f"slices of {size(used)} in place of {size(usual)}: {shape.slices:,} in place of {first.slices:,}")
    if shape.partitions != first.partitions:
        said.append(f"{shape.partitions:,} partitions in place of {first.partitions:,}")
    return [f"chosen for larger blocks: {', and '.join(said)}"] if said else []


def _warnings(shape: Shape, small: Exchange | None, found: list[Stage], machines: Machines) -> list[str]:
    """What may go wrong."""
    from .report import count, duration, size

    said = []
    if small is not None:
        blocks = count(small.files * small.partitions, "block")
        advice = "larger slices, fewer partitions"
        if shape.tables and small.stage in ("keys", "collide"):  # what fits a task divides tables, too
            advice += f" or a larger task_memory than {size(shape.task_memory)}"
        said.append(
            f"small blocks: {small.stage} writes {blocks} of {size(small.block_bytes)}, below {size(SMALL_BLOCK)}; "
            f"give {advice}"
        )
    worst = max(found, key=lambda each: each.memory)
    if worst.memory > shape.task_memory:
        said.append(
            f"memory: a task of {worst.name} takes about {size(worst.memory)}, more than {size(shape.task_memory)}; "
            "give more partitions, smaller slices or a larger task_memory"
        )
    for each in found:
        opening = each.opens * machines.open_seconds / min(each.tasks, machines.nodes * machines.cores)
        if 2 * opening > each.seconds and 4 * opening > sum(stage.seconds for stage in found):
            said.append(
                f"opening: files are opened {each.opens:,.0f} times by {each.name}, in {duration(opening)} of its "
                f"{duration(each.seconds)}; give fewer partitions"
            )
    return said


def load_rates() -> dict[str, Any]:
    """The rates of this package, in rates.json.

    Returns
    -------
    dict
        `machine`, `date` and `note`; and of each of `methods`, of each stage, `task_seconds` for each task and
        `item_seconds` for each of the items that `items` counts.
    """
    return json.loads(package_files(__package__).joinpath("rates.json").read_text())
