"""A small corpus with known near-duplicates, for `neardup demo`; NOTICE.md says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

OUTPUT = "neardup-demo"
"""The folder that the demonstration writes, where it is run."""

FILES = tuple(str(Path(__file__).parent / f"{name}.parquet") for name in ("library", "mirror", "scans"))
"""The collections: passages of a novel, and variants of them."""

AUDITED = str(Path(__file__).parent / "audited.json")
"""The ids of the documents of `FILES` that other tools removed, in one run of each, with their versions and settings.

The benchmark audited.py makes it, and the notebook 06_who_is_right reads it.
"""


def is_demo(report: dict[str, Any]) -> bool:
    """Whether a report is that of a demonstration, by this installation or by another one."""
    source = report.get("input")
    paths = source.get("paths") if isinstance(source, dict) else None
    named = [Path(path).parts[-3:] for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return named == [Path(path).parts[-3:] for path in FILES]


def compare(documents: pa.Table, threshold: float) -> str:
    """One sentence on the decisions of a run: do they agree with what is known of each document?

    A variant has to go if it resembles its passage by the threshold, and to name that passage as the kept one. All
    others have to stay.

    Parameters
    ----------
    documents : Table
        As `Result.documents`.
    threshold : float
        That of the run.
    """
    import pyarrow.parquet as pq

    truth: dict[str, str | None] = {}
    weaker = 0
    for path in FILES:
        for row in pq.ParquetFile(path).read(["id", "made_from", "resemblance"]).to_pylist():
            is_near = row["made_from"] is not None and row["resemblance"] >= threshold
            weaker += row["made_from"] is not None and not is_near
            truth[row["id"]] = row["made_from"] if is_near else None
    decided = dict(zip(documents["id"].to_pylist(), documents["duplicate_of"].to_pylist(), strict=True))
    made = [id for id, made_from in truth.items() if made_from is not None]
    wrong = [id for id in truth if decided[id] != truth[id]]
    if wrong:
        found = sum(decided[id] == truth[id] for id in made)
        return f"{found} of {len(made)} known near-duplicates found; {len(wrong)} decided otherwise, such as {wrong[0]}"
    return f"all {len(made)} known near-duplicates found; {weaker} variants below {threshold:g} and all originals kept"
