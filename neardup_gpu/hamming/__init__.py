"""Which fingerprints differ from one another in at most k bits: table designs, an index, batches, joins and pairs.

    >>> index = HammingIndex(simhashes, radius=3, ids=urls)
    >>> index.query(0x8F3A0C51D2E4B697)          # the ids within 3 bits, and their distances
    >>> found = pairs(simhashes, radius=3)       # all pairs of a set

Fingerprints have 64 bits, an array of uint64 of shape (rows,), or 128, of shape (rows, 2), the higher word first. What
pyarrow, pandas and polars hold of uint64 is taken as well, and so are lists of integers. A `TableDesign` may be of any
number of bits up to 512.

Source: Manku, Jain and Das Sarma 2007, section 3.
"""

from __future__ import annotations

from .index import (
    ALL_WITH_ALL,
    BUCKET_LIMIT,
    BUCKET_PROBE,
    Fingerprints,
    HammingIndex,
    Matches,
    NearPairs,
    TableDesign,
    blocks,
    choose,
    cost,
    join,
    num_tables,
    pairs,
    read_chunks,
    scan,
)

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
