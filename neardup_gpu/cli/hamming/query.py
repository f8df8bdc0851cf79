"""The command `neardup hamming query`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ...engine.settings import Engine
from ...fingerprint_options import Query, QueryColumns, Reach
from ...printable import printable, readable_id, shell_path
from ...report import count
from ..console import padded_lines, say, say_json, say_written, shown_progress, widths_of
from ..options import FINGERPRINTS, MATCHING, OUTPUT, EngineFlags, MatchesFile, argument, flags, given
from .options import FILES, bits, left_out

if TYPE_CHECKING:
    import pyarrow as pa


AskedFlags: Any = flags(FINGERPRINTS, QueryColumns)
NearFlags: Any = flags(MATCHING, Reach)
MatchesFlags: Any = flags(OUTPUT, MatchesFile)


def query(
    index: Annotated[str, argument("INDEX", "The file that `neardup hamming build` wrote.")],
    /,
    *fingerprints: Annotated[str, argument("FINGERPRINTS", FILES, required=False)],
    query_flags: AskedFlags = None,
    near: NearFlags = None,
    written: MatchesFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find what an index holds near some queries: query_id, id, distance; the nearest first."""
    from ...hamming import jobs

    shown = MatchesFile(**given(written))
    show = None if shown.output is not None else _print_lines if shown.json else _MatchTable()
    with shown_progress(shown) as progress:
        found = jobs.query(
            index,
            list(fingerprints),
            shown.output,
            query=Query(**given(query_flags, near)),
            engine=Engine(**given(engine)),
            overwrite=shown.overwrite,
            progress=progress,
            show=show,
        )
    near_some = f"{found['matches']:,} within {bits(found['radius'])}"
    matches = f"{near_some}, of {found['answered']:,} of {count(found['queries'], 'query')}"
    if shown.output is not None:
        rows = [("matches", matches), *left_out(found)]
        say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")
    elif not shown.json and not shown.quiet:
        say(("\n" if found["matches"] else "") + matches)


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
