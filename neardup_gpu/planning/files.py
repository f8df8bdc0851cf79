"""The files by which tasks exchange what they found, by formulas."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..methods.contract import Sketch
from ..recipe import Recipe
from ..records import dataclass
from ..stages.joining import MOST_MARK_BITS
from ..tasks import cutting
from ..tasks.colliding import to_columns
from ..tasks.columns import ranges_of
from ..tasks.joining import SLOT_BYTES
from ..tasks.ranking import SAMPLED
from ..tasks.work import WAITING, WAITING_BESIDE
from .counts import Counts

TABLE_BYTES = 2048
"""Most bytes of a table in a file, as a stream of Arrow, in addition to its values."""

PLACE_BYTES = 33
"""Bytes of the place of a part of a document: see `documents.units.Places`."""

TAIL_BYTES = 1 << 16
"""Bytes at the end of an exchange file that a reader reads at least."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a job is divided, and what a task may hold.

    Parameters
    ----------
    method : str
    slices, partitions : int
        Slices are those of a reference set, too.
    task_memory : int
    spool : bool
    tables : int
        Tables of keys; 0 by methods that keep no sketches.
    keys : int
        Of a document, 8 bytes each; 0 by methods that keep no sketches.
    entries : int
        What a table holds of a document at most; 0 without tables.
    entry_bytes, entry_columns : int
        Of an entry of a table, in files.
    verifies : bool, default True
    directed : bool, default False
        Whether the measure is, as containment is; then documents are ranked, the larger ones first.
    known : int, default 0
        Slices of a reference set.
    checked : bool, default False
        Whether the recall is checked.
    only_equal : bool, default False
        Whether only equal documents are found, which are compared by their hashes alone.
    divides : bool, default False
        Whether parts of documents are compared, which counts then call documents.
    inside, spares : bool, default False
        Whether parts of one document are compared with each other, and whether several copies of a part are kept.
    overlap : float, default 1
        The parts that each byte of text belongs to.
    """

    method: str
    slices: int
    partitions: int
    task_memory: int
    spool: bool
    tables: int = 0
    keys: int = 0
    entries: int = 0
    entry_bytes: int = 0
    entry_columns: int = 0
    verifies: bool = True
    directed: bool = False
    known: int = 0
    checked: bool = False
    only_equal: bool = False
    divides: bool = False
    inside: bool = False
    spares: bool = False
    overlap: float = 1.0

    @property
    def posts(self) -> bool:
        """Whether shingles are counted, and rare ones posted."""
        return not self.tables and not self.only_equal

    def table_parts(self, counts: Counts) -> cutting.TableParts:
        """How tables of keys are divided."""
        return cutting.table_parts(self.tables, counts.representatives, self.partitions, self.task_memory)

    def collide_tasks(self, counts: Counts) -> int:
        """Tasks that look for candidates."""
        return self.table_parts(counts).tasks if self.tables else self.partitions

    def posting_tasks(self, counts: Counts) -> int:
        """Tasks that make postings; none by methods that sketch."""
        if not self.posts:
            return 0
        bits = counts.counters.bit_length() - 1
        return cutting.posting_tasks(self.slices, counts.text_bytes, bits, self.partitions)

    def counts_in_table(self, counts: Counts) -> bool:
        """Whether slices of one size count their shingles in tables."""
        bits = counts.counters.bit_length() - 1
        return self.posts and cutting.counts_in_table(counts.text_bytes // self.slices, bits)


def shape_of(
    recipe: Recipe,
    representatives: int,
    *,
    slices: int,
    partitions: int,
    task_memory: int,
    spool: bool = False,
    known: int = 0,
    checked: bool = False,
) -> Shape:
    """How a job is divided, as its method says.

    Parameters
    ----------
    recipe : Recipe
    representatives : int
        Documents that are compared, on which the number of tables may depend.
    slices, partitions, task_memory, spool, known, checked
        As in `Shape`.

    Examples
    --------
    >>> from neardup_gpu import Recipe
    >>> shape_of(Recipe(method="minhash"), 1000, slices=2, partitions=2, task_memory=10**9).entry_bytes
    14
    """
    method, of_keys = recipe.method, {}
    if isinstance(method, Sketch):
        keys = np.empty((0, method.key_columns) if method.key_columns else 0, np.uint64)
        entries = list(method.entries(keys, representatives, seed=recipe.seed))
        columns = to_columns(entries[0], np.empty(0, np.int64))
        tables = len(method.buckets(representatives).masks)
        of_keys = {
            "tables": tables,
            "keys": max(1, method.key_columns),
            "entries": len(entries) // tables,
            "entry_bytes": sum(column.itemsize for column in columns.values()),
            "entry_columns": len(columns),
        }
    size, step = recipe.unit.grouped
    return Shape(
        method=method.name,
        slices=slices,
        partitions=partitions,
        task_memory=task_memory,
        spool=spool and recipe.verifies,
        verifies=recipe.verifies,
        directed=method.measure.directed,
        known=known,
        checked=checked and recipe.verifies,
        only_equal=recipe.only_equal,
        divides=recipe.unit.divides,
        inside=recipe.unit.inside,
        spares=recipe.unit.keep_copies > 1 and not recipe.unit.overlaps,
        overlap=size / step,
        **of_keys,
    )


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
    tables : int
        If rows are written as whole tables, the largest number of tables; then rows and payload are bounds,
        too, and a table takes up to `TABLE_BYTES` more.
    """

    stage: str
    what: str
    rows: int
    payload: int
    columns: int
    files: int
    partitions: int = 1
    share: int = WAITING
    tables: int = 0

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
        return self.tables * TABLE_BYTES + self.files * a_file + self.blocks(task_memory) * a_block

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
    c, slices, ranges, k = counts, shape.slices, shape.partitions, shape.keys
    n, told = c.documents, 24 + (0 if shape.verifies else 8 * k)  # hashes of words and text, and keys
    made = [
        Exchange("sketch", "rows", n, 16 * n, 2, slices),
        Exchange("sketch", "ids", c.owners or n, c.place_bytes, 3, slices),
        Exchange("sketch", "alike", n, 24 * n, 2, slices),
        Exchange("sketch", "hashes", c.present, 24 * c.present, 3, slices, ranges),
        Exchange("copies", "slices", c.copies, 16 * c.copies, 2, ranges, slices, WAITING_BESIDE),
        Exchange("copies", "ranges", c.copies, 16 * c.copies, 2, ranges, ranges, WAITING_BESIDE),
    ]
    if k:
        made.append(Exchange("sketch", "keys", n, 8 * k * n, 1, slices))
    if shape.spool:
        made.append(Exchange("sketch", "shingles", n, 8 * n + 8 * c.shingles, 1, slices))
    if shape.checked:
        made.append(Exchange("sketch", "order", n, 8 * n, 1, slices))
    if shape.directed:
        made += _ranking(n, c.known_documents, shape)
    if shape.divides:
        told += 4 * 8  # of each part its number, where it begins and ends, and how many copies it has
        made.append(Exchange("sketch", "units", n, PLACE_BYTES * n, 6, slices))
    if k:
        parts = shape.tables * shape.table_parts(c).per_table
        given = c.entries, shape.entry_bytes * c.entries, shape.entry_columns, slices, parts
        made.append(Exchange("keys", "entries", *given))
    elif shape.posts:
        number, parts = c.counters, ranges_of(ranges)
        made += [
            *_counting(c, shape),
            Exchange("merge", "counters", number, number, 1, parts),
            Exchange("merge", "beyond", number // 64, number // 16, 1, parts),
            Exchange(
                "postings", "postings", c.postings, 32 * c.postings, 5, shape.posting_tasks(c), ranges, WAITING_BESIDE
            ),
        ]
    if shape.directed and shape.posts:
        marks, tasks, more = min(c.counters, 1 << MOST_MARK_BITS), shape.posting_tasks(c), c.containers
        made += [
            Exchange("postings", "marks", tasks * marks, tasks * marks, 1, tasks, parts),
            Exchange("marks", "marks", marks, marks, 1, parts),
            Exchange("containers", "postings", more, 32 * more, 5, tasks, ranges, WAITING_BESIDE),
        ]
    if not shape.only_equal:
        made += _candidates(c, shape)
    num_requests = c.wanted_ids - c.kept_ids
    return [
        *made,
        Exchange("verify", "left", c.verified, 24 * c.verified, 3, ranges, ranges, WAITING_BESIDE),
        Exchange("verify", "right", c.verified, 24 * c.verified, 3, ranges, share=WAITING_BESIDE),
        Exchange("decide", "removed", -(-n // 64), 8 * -(-n // 64), 1, 1),
        Exchange("decide", "labels", 0, 0, 2, 1, ranges),
        Exchange("name", "listed", c.listed, 24 * c.listed, 3, ranges, ranges, WAITING_BESIDE),
        Exchange("name", "fates", c.removed, 24 * c.removed, 3, ranges, slices),
        *([Exchange("name", "near", c.near_known, 24 * c.near_known, 3, ranges, slices)] if shape.known else ()),
        Exchange("name", "grouped", c.removed, 9 * c.removed, 2, ranges, ranges),
        Exchange("listed", "pairs", c.listed_pairs, 24 * c.listed_pairs, 3, ranges),
        Exchange("listed", "wanted", num_requests, 16 * num_requests, 2, ranges, slices),
        Exchange("fates", "wanted", c.kept_ids, 16 * c.kept_ids, 2, slices, slices),
        Exchange("ids", "ids", c.wanted_ids, (8 + c.id_bytes + told) * c.wanted_ids, 5, slices, ranges + slices),
        *(_claims(c, shape) if shape.divides else ()),
        *(_checking(c, shape) if shape.checked else ()),
    ]


def _candidates(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the files of candidate pairs, and of what verifies them."""
    finders, ranges = shape.collide_tasks(c), shape.partitions
    return [
        Exchange("collide", "found", c.found, 18 * c.found, 3, finders, ranges, WAITING_BESIDE),
        Exchange("collide", "crowded", c.crowded, 8 * c.crowded, 1, finders, share=WAITING_BESIDE),
        Exchange("pairs", "pairs", c.pairs, 16 * c.pairs, 2, ranges, share=WAITING_BESIDE),
        Exchange("pairs", "wanted", c.wanted, 16 * c.wanted, 2, ranges, shape.slices),
        _answered("sets", c.wanted, c.wanted_shingles if shape.verifies else None, shape, ranges),
    ]


def _claims(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the files by which parts of documents tell their sources that they repeat them."""
    n, slices = c.documents, shape.slices
    return [
        Exchange("fates", "claims", c.removed, 32 * c.removed, 4, slices, slices),
        Exchange("fates", "repeats", n, n, 1, slices),
        Exchange("ids", "copies", n, 8 * n, 1, slices),
        Exchange("ids", "named", c.owners, c.owners, 1, slices),
        Exchange("ids", "spared", c.spared, 8 * c.spared, 1, slices, slices),
    ]


def _ranking(all_of: int, known: int, shape: Shape) -> list[Exchange]:
    """Return the files that rank the documents of the input by their priority."""
    slices, ranges, mine = shape.slices, shape.partitions, shape.slices - shape.known
    number = all_of - known
    sampled = min(number, SAMPLED + mine)
    return [
        Exchange("sample", "sample", sampled, 24 * sampled, 1, mine, tables=mine),
        Exchange("choose", "cuts", ranges, 24 * ranges, 1, 1, tables=1),
        Exchange("spread", "parts", number, 24 * number, 1, mine, ranges, tables=mine * ranges),
        Exchange("order", "slices", number, 16 * number, 2, ranges, slices),
        Exchange("order", "ranges", number, 16 * number, 2, ranges, ranges),
        Exchange("rows", "ranks", all_of, 8 * all_of, 1, slices),
        Exchange("rank", "numbers", all_of, 8 * all_of, 1, ranges),
    ]


def _answered(stage: str, wanted: int, shingles: int | None, shape: Shape, askers: int) -> Exchange:
    """Return the files of documents that other slices need: what waits of them, or their keys if that is None."""
    more = 8 * (shape.divides and not shape.inside)  # which document a part is of
    if shingles is None:
        return Exchange(stage, "keys", wanted, (8 + 8 * shape.keys + more) * wanted, 2, shape.slices, askers)
    return Exchange(stage, "sets", wanted, (16 + more) * wanted + 8 * shingles, 2, shape.slices, askers)


def _checking(counts: Counts, shape: Shape) -> list[Exchange]:
    """Return the files that check the recall."""
    c, slices = counts.checked, shape.slices
    found = [
        Exchange("draw", "drawn", c.drawn_of_slices, 16 * c.drawn_of_slices, 2, slices - shape.known),
        Exchange("drawn", "drawn", c.drawn, 16 * c.drawn, 2, 1),
        Exchange("drawn", "wanted", c.drawn, 16 * c.drawn, 2, 1, slices),
        _answered("drawn-sets", c.drawn, c.drawn_shingles, shape, 1),
        Exchange("sampled", "sample", c.sampled, 24 * c.sampled, 3, 1),
        Exchange("sampled", "sets", c.sampled_shingles, 8 * c.sampled_shingles, 1, 1),
        Exchange("near", "near", c.near, 24 * c.near, 3, slices),
        Exchange("nearest", "pairs", c.nearest, 16 * c.nearest, 2, 1),
        Exchange("nearest", "wanted", c.wanted, 16 * c.wanted, 2, 1, slices),
        _answered("near-sets", c.wanted, c.wanted_shingles, shape, 1),
    ]
    return [*found, _answered("near-keys", c.wanted, None, shape, 1)] if shape.tables else found


def _counting(counts: Counts, shape: Shape) -> list[Exchange]:
    """Return the files of slices for the table of counters."""
    number, slices, parts = counts.counters, shape.slices, ranges_of(shape.partitions)
    if not shape.counts_in_table(counts):
        return [Exchange("sketch", "slots", counts.shingles, SLOT_BYTES * counts.shingles, 1, slices, parts)]
    return [
        Exchange("sketch", "counters", slices * number, slices * number, 1, slices, parts),
        Exchange("sketch", "beyond", slices * number // 64, slices * number // 16, 1, slices, parts),
    ]
