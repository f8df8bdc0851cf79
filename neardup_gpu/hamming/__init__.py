"""Which fingerprints differ from one another in at most k bits: table designs, an index, batches, joins and pairs.

    index = HammingIndex(simhashes, radius=3, ids=urls)
    index.query(0x8F3A0C51D2E4B697)          # the ids within 3 bits, and their distances
    found = pairs(simhashes, radius=3)       # all pairs of a set

Fingerprints have 64 bits, an array of uint64 of shape (rows,), or 128, of shape (rows, 2), the higher word first. What
pyarrow, pandas and polars hold as uint64 is taken as well, and so are lists of integers. A `TableDesign` may be of any
number of bits up to 512.

    design      table designs: how many tables, which bits lead, what they cost, the cheapest for a load
    values      the forms in which fingerprints may be given
    near_pairs  all pairs of a set; `sorted_runs` has those that are more than memory holds
    joins       a large set, chunk by chunk, with a smaller one
    index       an index to query; made of `tables` and `members`, stored by `storage`
    files, jobs, recipes    fingerprints in files: reading them, what the commands do with them, which may be compared

Source: Manku, Jain and Das Sarma 2007, section 3.
"""

from __future__ import annotations

from ..methods.table_design import ALL_WITH_ALL, TableDesign, blocks, choose, cost, num_tables
from .index import HammingIndex
from .joins import Matches, join, read_chunks, scan
from .near_pairs import BUCKET_LIMIT, BUCKET_PROBE, NearPairs, pairs
from .values import Fingerprints

__all__ = [
    "ALL_WITH_ALL",
    "BUCKET_LIMIT",
    "BUCKET_PROBE",
    "Fingerprints",
    "HammingIndex",
    "Matches",
    "NearPairs",
    "TableDesign",
    "blocks",
    "choose",
    "cost",
    "join",
    "num_tables",
    "pairs",
    "read_chunks",
    "scan",
]


def __dir__() -> list[str]:
    return __all__
