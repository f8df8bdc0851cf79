"""How many parts a job is cut into: arithmetic that the driver does, and that plans repeat before there is a job."""

from __future__ import annotations

from typing import NamedTuple

from ..stages.joining import table_bits
from .colliding import ENTRY_BYTES
from .joining import in_table

BYTES_A_WORD = 6
"""Approximate bytes of text per word. A table of counters has about one counter per word."""

PARTITION_BYTES = 1 << 27
"""Text of the documents of a partition at least, unless workers would have too few of them."""


def usual_partitions(slices: int, text_bytes: int, workers: int) -> int:
    """Return the default number of partitions: the number of slices, or less if slices are small.

    The number of files grows with the square of it. Each worker has at least one partition, and two if there are enough
    slices.
    """
    return max(workers, min(slices, max(2 * workers, -(-text_bytes // PARTITION_BYTES))))


def counter_bits(text_bytes: int, task_memory: int) -> int:
    """Return the bits of the table that counts the shingles of all documents. A task holds two tables."""
    return table_bits(max(1, text_bytes // BYTES_A_WORD), task_memory // 4)


def counts_in_table(slice_bytes: int, bits: int) -> bool:
    """Whether the shingles of a slice of so much text are counted where it is sketched."""
    return in_table(slice_bytes // BYTES_A_WORD, bits)


def posting_tasks(slices: int, text_bytes: int, bits: int, partitions: int) -> int:
    """How many tasks make the postings of all slices.

    Each reads the whole table of counters. So there are no more than read as much text, or than there are partitions.
    """
    return min(slices, max(-(-text_bytes >> bits), partitions))


class TableParts(NamedTuple):
    """How the tables of a method that sketches are divided.

    per_table : int
        Parts of each table.
    tasks : int
        Tasks that look for candidates in the parts of all tables.
    """

    per_table: int
    tasks: int


def table_parts(tables: int, representatives: int, partitions: int, task_memory: int) -> TableParts:
    """Parts of tables that fit a task, and no fewer than there are partitions; small ones are put together."""
    fits = max(1, task_memory // (4 * ENTRY_BYTES))
    per_table = max(-(-partitions // tables), -(-representatives // fits))
    parts = tables * per_table
    return TableParts(per_table, min(parts, max(partitions, -(-parts * representatives // (tables * fits)))))
