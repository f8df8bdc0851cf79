"""The files by which tasks exchange what they found, by formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..tasks import cutting
from ..tasks.columns import ranges_of
from ..tasks.joining import SLOT_BYTES
from ..tasks.work import WAITING, WAITING_BESIDE

if TYPE_CHECKING:
    from .counts import Counts

TAIL_BYTES = 1 << 16
"""Bytes at the end of an exchange file that a reader reads at least."""


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

    def table_parts(self, counts: Counts) -> cutting.TableParts:
        """How tables of keys are divided."""
        return cutting.table_parts(self.tables, counts.representatives, self.partitions, self.task_memory)

    def collide_tasks(self, counts: Counts) -> int:
        """Tasks that look for candidates."""
        return self.table_parts(counts).tasks if self.tables else self.partitions

    def posting_tasks(self, counts: Counts) -> int:
        """Tasks that make postings."""
        bits = counts.counters.bit_length() - 1
        return cutting.posting_tasks(self.slices, counts.text_bytes, bits, self.partitions)

    def counts_in_table(self, counts: Counts) -> bool:
        """Whether slices of one size count their shingles in tables."""
        bits = counts.counters.bit_length() - 1
        return not self.tables and cutting.counts_in_table(counts.text_bytes // self.slices, bits)


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
        parts = shape.tables * shape.table_parts(c).per_table
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
    finders = shape.collide_tasks(c)
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


def _counting(counts: Counts, shape: Shape) -> list[Exchange]:
    """What slices write for the table of counters."""
    number, slices, parts = counts.counters, shape.slices, ranges_of(shape.partitions)
    if not shape.counts_in_table(counts):
        return [Exchange("sketch", "slots", counts.shingles, SLOT_BYTES * counts.shingles, 1, slices, parts)]
    return [
        Exchange("sketch", "counters", slices * number, slices * number, 1, slices, parts),
        Exchange("sketch", "beyond", slices * number // 64, slices * number // 16, 1, slices, parts),
    ]
