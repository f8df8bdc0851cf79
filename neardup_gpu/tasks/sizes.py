"""The sizes of the files that tasks exchange, by formulas. Each stage states its own next to the code that writes them.

A size follows from the counts of a job (`Counts`) and from how the job is divided (`Shape`).
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import NamedTuple

import pyarrow as pa

from ..records import dataclass
from . import cutting
from .work import WAITING

TABLE_BYTES = 2048
"""Most bytes of a table in a file, as a stream of Arrow, in addition to its values."""

TAIL_BYTES = 1 << 16
"""Bytes at the end of an exchange file that a reader reads at least."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many things of each kind a job has.

    Parameters
    ----------
    known_documents : int, default 0
        Documents of a reference set.
    documents, text_bytes, shingles : int
        Of all documents; shingles are those of their sets. If parts of documents are compared, these are counted as
        documents, here and below.
    owners : int, default 0
        Documents that are divided into parts; 0 if they are not divided.
    spared : int, default 0
        Repeated parts that are kept, as several copies of a part are.
    present : int
        Documents with tokens.
    place_bytes : int
        Of all ids and, where documents come from files, of the name of the file and the row of each document.
    id_bytes : int
        Of one id.
    copies : int
        Documents with tokens for which a document of equal tokens stands.
    entries : int, default 0
        Of the tables of keys.
    counters : int
        Of shingles, in a table; 0 by methods that sketch, as there are postings.
    postings : int
    containers : int, default 0
        Further postings by a directed measure: those of documents as containing ones.
    found : int
        Candidate pairs, each as often as it is found.
    pairs : int
        Distinct candidate pairs.
    wanted, wanted_shingles : int
        Documents of the pairs, each once for each range of ranks, and their shingles.
    verified : int
    listed : int
        Verified pairs that are listed.
    listed_pairs : int
        The same with those of copies of the input.
    removed : int
    wanted_ids : int
        Ids that ranges and slices ask for.
    kept_ids : int
        Those of them that slices ask for.
    crowded : int, default 0
    near_known : int, default 0
        Documents of the input that resemble one of a reference set.
    checked : Checked
        What is counted in the check of the recall, if there is one.
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
    listed_pairs: int
    removed: int
    wanted_ids: int
    kept_ids: int
    crowded: int = 0
    near_known: int = 0
    known_documents: int = 0
    entries: int = 0
    containers: int = 0
    owners: int = 0
    spared: int = 0
    checked: Checked = field(default_factory=lambda: Checked())

    @property
    def representatives(self) -> int:
        return self.present - self.copies


@dataclass(frozen=True, kw_only=True)
class Checked:
    """How many things of each kind a check of the recall has.

    Parameters
    ----------
    drawn_of_slices, drawn : int
        Documents that slices draw, and that all of them draw together.
    drawn_shingles : int
    sampled, sampled_shingles : int
    near, nearest : int
        Possible partners that slices find, and pairs of all of them.
    wanted, wanted_shingles : int
        Documents of the pairs, and their shingles that wait.
    """

    drawn_of_slices: int = 0
    drawn: int = 0
    drawn_shingles: int = 0
    sampled: int = 0
    sampled_shingles: int = 0
    near: int = 0
    nearest: int = 0
    wanted: int = 0
    wanted_shingles: int = 0


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
    components : bool, default False
        Whether one document of each connected component is kept.
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
    components: bool = False
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

    @classmethod
    def of(
        cls,
        file: str,
        schema: pa.Schema,
        rows: int,
        files: int,
        partitions: int = 1,
        share: int = WAITING,
        more: int = 0,
    ) -> Exchange:
        """Return the files of a schema.

        Parameters
        ----------
        file : str
            The stage and what it writes, with a blank between them.
        schema : pyarrow.Schema
        rows, files, partitions, share
            As in the class.
        more : int, default 0
            Bytes of the values of all lists that have any length.
        """
        stage, what = file.split()
        return cls(stage, what, rows, rows * row_bytes(schema) + more, len(schema), files, partitions, share)

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
        a_file, a_block = 512 + 256 * self.columns, 64 + 256 + 96 * self.columns
        return self.tables * TABLE_BYTES + self.files * a_file + self.blocks(task_memory) * a_block

    def index_bytes(self, task_memory: int) -> float:
        """Bytes that one reader of a partition reads of all files before it reads the partition."""
        blocks = self.blocks(task_memory) / self.files
        end, runs = 552 + 24 * min(self.partitions, blocks), 40 * blocks
        return self.files * min(max(TAIL_BYTES, end) + runs / self.partitions, self.payload / self.files + end + runs)


def row_bytes(schema: pa.Schema) -> int:
    """Return the bytes of a row's values. A list of variable length counts as its offset."""

    def width(kind: pa.DataType) -> int:
        if pa.types.is_fixed_size_list(kind):
            return kind.list_size * width(kind.value_type)
        return 8 if pa.types.is_large_list(kind) else kind.bit_width // 8

    return sum(map(width, schema.types))
