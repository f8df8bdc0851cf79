"""The commands `neardup hamming build`, `query`, `join` and `pairs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from ..engine.settings import Engine
from ..fingerprint_options import (
    FingerprintColumns,
    Near,
    NearQueries,
    Query,
    QueryColumns,
    Radius,
    Reach,
    TableOptions,
)
from ..printable import printable, readable_id, shell_path
from ..records import dataclass
from ..report import count, size
from ..settings import setting
from .console import padded_lines, say, say_json, say_written, shown_progress, widths_of
from .options import (
    FINGERPRINTS,
    MATCHING,
    OUTPUT,
    TABLES,
    EngineFlags,
    Given,
    MatchesFile,
    Output,
    PairsFile,
    PairsFlags,
    argument,
    flags,
    given,
)

if TYPE_CHECKING:
    import pyarrow as pa


app = App(
    name="hamming",
    help="Find fingerprints that differ in few bits: an index to query, joins of large sets, pairs of one.",
    version_flags=(),
)

FILES = "Files that `neardup sketch --method simhash` wrote, other Parquet or Arrow IPC, .npy of uint64, or a folder."
FINGERPRINT_FILES = argument("FINGERPRINTS", FILES)


@dataclass(frozen=True, kw_only=True)
class IndexFile(Output):
    """The index file to write."""

    output: str = setting("index.hamming", "File to write the index to.", metavar="FILE", flag="--output -o")


ColumnsFlags: Any = flags(FINGERPRINTS, FingerprintColumns)
DesignFlags: Any = flags(TABLES, TableOptions)
IndexFlags: Any = flags(OUTPUT, IndexFile)
QueryFlags: Any = flags(FINGERPRINTS, QueryColumns)
RadiusFlags: Any = flags(MATCHING, Radius)
NearFlags: Any = flags(MATCHING, Near)
NearQueriesFlags: Any = flags(MATCHING, NearQueries)
ReachFlags: Any = flags(MATCHING, Reach)
MatchesFlags: Any = flags(OUTPUT, MatchesFile)


def _run(job: Callable[..., dict[str, Any]], *files: Any, shown: Output, engine: Given | None, **options: Any) -> Any:
    """Run a job of `hamming.jobs` while its progress is shown."""
    with shown_progress(shown) as progress:
        return job(
            *files,
            shown.output,
            engine=Engine(**given(engine)),
            overwrite=shown.overwrite,
            progress=progress,
            **options,
        )


@app.command
def build(
    *fingerprints: Annotated[str, FINGERPRINT_FILES],
    columns: ColumnsFlags = None,
    radius: RadiusFlags = None,
    design: DesignFlags = None,
    written: IndexFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Build an index of fingerprints, for `neardup hamming query`."""
    from ..hamming import jobs

    shown = IndexFile(**given(written))
    options: dict[str, Any] = {"columns": FingerprintColumns(**given(columns)), **given(radius)}
    tables = TableOptions(**given(design))
    found = _run(jobs.build, list(fingerprints), shown=shown, engine=engine, tables=tables, **options)
    words = found["words_met"]
    met = f"{words:,.1f} fingerprints" if words >= 0.05 else "next to none"
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("tables", f"{_tables(found)}, radius {found['radius']}"),
        ("a query", f"compares {met}, if they are random"),
        ("file", size(found["file_bytes"])),
    ]
    if given(design).get("compress"):
        least = f"no code takes fewer than {found['least_bits_a_word']:.1f} if they are random"
        rows.append(("compressed", f"{found['bits_a_word']:.1f} of 64 bits per word of a table; {least}"))
    following = f"neardup hamming query {shell_path(shown.output)} --fingerprint {found['example'] or 'HEX'}"
    say_written(found, [*rows, *_left_out(found)], shown, following)


@app.command
def query(
    index: Annotated[str, argument("INDEX", "The file that `neardup hamming build` wrote.")],
    /,
    *fingerprints: Annotated[str, argument("FINGERPRINTS", FILES, required=False)],
    query_flags: QueryFlags = None,
    near: ReachFlags = None,
    written: MatchesFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find what an index holds near some queries: query_id, id, distance; the nearest first."""
    from ..hamming import jobs

    shown, wanted = MatchesFile(**given(written)), Query(**given(query_flags, near))
    show = None if shown.output is not None else _print_lines if shown.json else _MatchTable()
    found = _run(jobs.query, index, list(fingerprints), shown=shown, engine=engine, query=wanted, show=show)
    near_some = f"{found['matches']:,} within {count(found['radius'], 'bit')}"
    matches = f"{near_some}, of {found['answered']:,} of {count(found['queries'], 'query')}"
    if shown.output is not None:
        rows = [("matches", matches), *_left_out(found)]
        say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")
    elif not shown.json and not shown.quiet:
        say(("\n" if found["matches"] else "") + matches)


@app.command
def join(
    existing: Annotated[str, argument("EXISTING", f"The large set. {FILES}")],
    queries: Annotated[str, argument("QUERIES", "The smaller set, which is held in memory.")],
    /,
    *,
    columns: ColumnsFlags = None,
    near: NearQueriesFlags = None,
    written: PairsFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find the fingerprints of a large set that are near some queries: id_a (existing), id_b (query), distance."""
    from ..hamming import jobs

    shown = PairsFile(**given(written))
    options = {"near": NearQueries(**given(near)), "columns": FingerprintColumns(**given(columns))}
    found = _run(jobs.join, existing, queries, shown=shown, engine=engine, **options)
    rows = [
        ("existing", f"{found['existing']:,}"),
        ("queries", f"{found['queries']:,}, {found['matched']:,} of them near some"),
        ("pairs", f"{found['pairs']:,} within {count(found['radius'], 'bit')}"),
        *_left_out(found),
    ]
    say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")


@app.command
def pairs(
    *fingerprints: Annotated[str, FINGERPRINT_FILES],
    columns: ColumnsFlags = None,
    near: NearFlags = None,
    written: PairsFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find all pairs of a set that differ in few bits: id_a, id_b, distance."""
    from ..hamming import jobs

    shown = PairsFile(**given(written))
    options = {"near": Near(**given(near)), "columns": FingerprintColumns(**given(columns))}
    found = _run(jobs.pairs, list(fingerprints), shown=shown, engine=engine, **options)
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("identical", f"{found['identical']:,} to an earlier one, each one pair with the first"),
        ("tables", _tables(found)),
        ("pairs", f"{found['pairs']:,} within {count(found['radius'], 'bit')}"),
        *_left_out(found),
    ]
    say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")


def _tables(found: dict[str, Any]) -> str:
    """Return how many tables there are, and of how many leading bits."""
    if found["leading_bits"] == 0:
        return "1, compared whole"
    return f"{found['tables']} of {found['leading_bits']} leading bits or more"


def _left_out(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of a summary about what was not compared."""
    rows = []
    if found.get("large_buckets"):
        buckets = count(found["large_buckets"], "large bucket")
        uncompared = f"{count(found['uncompared_pairs'], 'pair')} in {buckets}, over all tables"
        rows.append(("uncompared", f"{uncompared}; --bucket-limit raises the limit"))
    if found["null"]:
        rows.append(("left out", f"{count(found['null'], 'row')} whose fingerprint is null"))
    return rows


def _print_lines(matches: pa.Table) -> None:
    for match in matches.to_pylist():
        say_json(match)


class _MatchTable:
    """Prints matches as columns, wide enough for the first matches."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def __call__(self, matches: pa.Table) -> None:
        rows = [[_shown(value) for value in match.values()] for match in matches.to_pylist()]
        if not self._widths:
            rows.insert(0, matches.column_names)
            self._widths = widths_of(rows)
        say(padded_lines([[*ids, distance.rjust(self._widths[-1])] for *ids, distance in rows], self._widths))


def _shown(value: Any) -> str:
    return printable(readable_id(value))
