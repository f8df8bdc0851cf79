"""Parts that the commands of fingerprints share: flags, and the words of their summaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...report import count
from ...settings import setting
from ..options import FINGERPRINTS, MATCHING, OUTPUT, Output, argument, flags

FILES = "Files that `neardup sketch --method simhash` wrote, other Parquet or Arrow IPC, .npy of uint64, or a folder."
FINGERPRINT_FILES = argument("FINGERPRINTS", FILES)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """How files of fingerprints are read."""

    column: str = setting("simhash", "Column of uint64, or of lists of two for 128 bits.", metavar="NAME")
    id_column: str | None = setting(None, "Column of ids.", metavar="NAME", shown="id, else row numbers")


@dataclass(frozen=True, kw_only=True)
class Radius:
    """Which fingerprints are near."""

    radius: int | None = setting(
        None, "Bits in which two fingerprints may differ.", metavar="K", shown="the recipe's, else 3"
    )


@dataclass(frozen=True, kw_only=True)
class Near(Radius):
    """Which fingerprints of a set are near, and which are compared."""

    bucket_limit: int | None = setting(
        None, "Compare the first N fingerprints of a bucket all with all.", metavar="N", shown="the recipe's, else 512"
    )
    bucket_probe: int | None = setting(
        None, "Compare later ones with the first N of their bucket.", metavar="N", shown="the recipe's, else 32"
    )


@dataclass(frozen=True, kw_only=True)
class NearQueries(Radius):
    """Which fingerprints are near some queries, and with which queries they are compared."""

    bucket_limit: int | None = setting(
        None, "Compare with all queries in buckets of up to N.", metavar="N", shown="the recipe's, else 512"
    )
    bucket_probe: int | None = setting(
        None, "In larger buckets, compare with the first N queries.", metavar="N", shown="the recipe's, else 32"
    )


@dataclass(frozen=True, kw_only=True)
class Pairs(Output):
    """The file of pairs to write."""

    output: str = setting("pairs.parquet", "File to write the pairs to.", metavar="FILE", flag="--output -o")


ColumnsFlags: Any = flags(FINGERPRINTS, Columns)
RadiusFlags: Any = flags(MATCHING, Radius)
NearFlags: Any = flags(MATCHING, Near)
NearQueriesFlags: Any = flags(MATCHING, NearQueries)
PairsFlags: Any = flags(OUTPUT, Pairs)


def bits(number: int) -> str:
    """A number of bits, in words."""
    return count(number, "bit")


def tables(found: dict[str, Any]) -> str:
    """The design of the tables, in words."""
    if found["leading_bits"] == 0:
        return "1, compared whole"
    return f"{found['tables']} of {found['leading_bits']} leading bits or more"


def left_out(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows of a summary for what was not compared, if anything was not."""
    rows = []
    if found.get("large_buckets"):
        buckets = count(found["large_buckets"], "large bucket")
        pairs = f"{count(found['uncompared_pairs'], 'pair')} in {buckets}, over all tables"
        rows.append(("uncompared", f"{pairs}; --bucket-limit raises the limit"))
    if found["null"]:
        rows.append(("left out", f"{count(found['null'], 'row')} whose fingerprint is null"))
    return rows
