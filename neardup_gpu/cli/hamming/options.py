"""Parts that the commands of fingerprints share: flags, and the words of their summaries."""

from __future__ import annotations

from typing import Any

from ...fingerprint_options import FingerprintColumns, Near, NearQueries, Radius
from ...report import count
from ..options import FINGERPRINTS, MATCHING, argument, flags

FILES = "Files that `neardup sketch --method simhash` wrote, other Parquet or Arrow IPC, .npy of uint64, or a folder."
FINGERPRINT_FILES = argument("FINGERPRINTS", FILES)


ColumnsFlags: Any = flags(FINGERPRINTS, FingerprintColumns)
RadiusFlags: Any = flags(MATCHING, Radius)
NearFlags: Any = flags(MATCHING, Near)
NearQueriesFlags: Any = flags(MATCHING, NearQueries)


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
