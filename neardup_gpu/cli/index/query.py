"""The command `neardup index query`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ...documents.reading_options import Reading
from ...engine.settings import Engine
from ...errors import ParameterError
from ...printable import printable, readable_id, shell_path
from ...records import dataclass
from ...report import count
from ...settings import setting
from ..console import note, padded_lines, say, say_json, say_written, shown_progress
from ..options import DOCUMENTS, MATCHING, OUTPUT, EngineFlags, MatchesFile, argument, flags, given, one_or_all
from .options import IndexFolder, names_in

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A query instead of files."""

    text: str | None = setting(None, "Text of the query, instead of files.", metavar="TEXT")


@dataclass(frozen=True, kw_only=True)
class MatchLimits:
    """Which matches to find."""

    threshold: float | None = setting(None, "Minimum resemblance.", metavar="X", shown="the index's")
    radius: int | None = setting(
        None, "Maximum number of bits in which simhashes differ.", metavar="K", shown="the index's"
    )
    nearest: int | None = setting(None, "Maximum number of documents per query.", metavar="N", shown="all")
    containment: float | None = setting(
        None, "Find documents that contain the share X of the query's shingles, not ones that resemble it.", metavar="X"
    )
    direction: str | None = setting(
        None,
        "Find documents that contain the query (in), documents that the query contains (of), or either.",
        metavar="WAY",
        shown="in",
    )
    common: int | None = setting(
        None, "For containment: do not follow shingles of more than N documents.", metavar="N", shown="10000"
    )


@dataclass(frozen=True, kw_only=True)
class ShownColumns:
    """Columns to show with each match."""

    columns: list[str] | None = setting(
        None, "Columns of the index to show with each match, such as date,source.", metavar="NAMES", shown="none"
    )


QueryFlags: Any = flags(DOCUMENTS, Reading, without=("on_error", "max_document_bytes", "null_values"))
AskedFlags: Any = flags(DOCUMENTS, Asked)
NearFlags: Any = flags(MATCHING, MatchLimits)
MatchesFlags: Any = flags(OUTPUT, MatchesFile, ShownColumns)


def query(
    index: IndexFolder,
    /,
    *inputs: Annotated[
        str, argument("INPUT", "Documents to ask for, as `neardup index add` reads them.", required=False)
    ],
    query_flags: AskedFlags = None,
    reading: QueryFlags = None,
    near: NearFlags = None,
    written: MatchesFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find the documents of an index that resemble a text, or each of many, or that contain it: the best first."""
    from ...definitions import METADATA_KEY
    from ...index import Index

    output = given(written)
    columns = names_in(output.pop("columns", []))
    shown, text = MatchesFile(**output), given(query_flags).get("text")
    if (text is None) == (not inputs):
        raise ParameterError("--text and INPUT: give one of them, a text or files of documents")
    how = given(reading)
    if text is not None and how:
        raise ParameterError("--text: is not a file; leave out the options for reading files")
    with shown_progress(shown), Index.open(index, engine=Engine(**given(engine))) as opened:
        source: Any = text if text is not None else [one_or_all(inputs)] if len(inputs) == 1 else list(inputs)
        found = opened.query(source, **given(near), columns=columns, reading=Reading(**how))
        about = {METADATA_KEY: opened.recipe.to_json().encode()}
    matches = found.filter(found["id"].is_valid())
    remarks = _remarks(found) if "note" in found.column_names else {}
    if any(remarks.values()) and not shown.quiet:
        _say_remarks(remarks)
    if shown.output is None:
        if shown.json:
            for match in found.to_pylist():
                say_json(match)
        elif not shown.quiet:
            _say_table(matches, columns)
            unit = "document" if "unit" not in matches.column_names else "part"
            say(("\n" if len(matches) else "") + count(len(matches), unit))
        return
    from ...store.outputs import new_file
    from ...store.parquet import write_table

    with new_file(shown.output, shown.overwrite) as file:
        write_table(found.replace_schema_metadata(about), file)
    counts = {"matches": len(matches), **{name: len(rows) for name, rows in remarks.items()}}
    say_written(counts, None, shown, f"neardup index info {shell_path(index)}")


def _remarks(found: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return one row per query that was too short to be looked up, or that has elements that were not followed."""
    noted = found.filter(found["note"].is_valid()).to_pylist()
    of_each = {str(row["query_id"]): row for row in reversed(noted)}
    rows = list(reversed(of_each.values()))
    return {
        "too_short": [row for row in rows if row["num_elements"] == 0],
        "not_followed": [row for row in rows if row["num_not_followed"]],
    }


def _say_remarks(remarks: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line on stderr that names the queries that may have more matches, and the reason."""
    said = []
    for rows in filter(None, remarks.values()):
        others = f" and {count(len(rows) - 1, 'other')}" if len(rows) > 1 else ""
        said.append(f"query {_shown(rows[0]['query_id'])}{others}: {rows[0]['note']}")
    note("; ".join(said), "warning")


def _say_table(found: pa.Table, columns: list[str]) -> None:
    """Print matches as columns."""
    if not len(found):
        return
    value = next(name for name in ("resemblance", "cosine", "containment") if name in found.column_names)
    distance = ["distance"] if "distance" in found.column_names else []
    parts = [name for name in ("query_unit", "unit", "begin", "end") if name in found.column_names]
    names = ["query_id", *parts[:1], "id", *parts[1:], value, "kept", *distance, *columns]
    say(padded_lines([list(names), *([_shown(match[name]) for name in names] for match in found.to_pylist())]))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(readable_id(value))
