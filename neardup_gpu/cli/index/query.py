"""The command `neardup index query`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

from ...documents.reading_options import Reading
from ...engine.settings import Engine
from ...errors import ParameterError
from ...printable import printable, readable_id, shell_path
from ...records import dataclass
from ...report import count, row
from ...settings import setting
from ...shared_passages.settings import PassageSettings
from ..console import note, padded_lines, say, say_json, say_written, shown_progress
from ..options import DOCUMENTS, MATCHING, OUTPUT, EngineFlags, MatchesFile, argument, flags, given
from ..passages import PASSAGES
from ..verbs import one_or_all
from .options import IndexFolder, names_in

PASSAGE_COLUMNS = [
    *("id", "begin", "end", "source_id", "source_begin", "source_end"),
    *("tokens_equal", "longest_run", "share"),
]
"""The columns of passages that are printed."""

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


@dataclass(frozen=True, kw_only=True)
class PassagesAsked:
    """Whether passages are looked for."""

    passages: bool = setting(
        False, "Find the passages that the query shares with documents, in an index made with --keep-tokens."
    )


PassagesFlags: Any = flags(PASSAGES, PassagesAsked, PassageSettings, without=("tokens",))
QueryFlags: Any = flags(
    DOCUMENTS, Reading, without=("on_error", "on_duplicate_id", "max_document_bytes", "null_values")
)
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
    sought: PassagesFlags = None,
    written: MatchesFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find the documents of an index that resemble a text, or each of many, or that contain it: the best first."""
    from ...data import rows_of
    from ...definitions import METADATA_KEY
    from ...index import Index, notes_of

    output = given(written)
    columns = names_in(output.pop("columns", []))
    shown, text = MatchesFile(**output), given(query_flags).get("text")
    if (text is None) == (not inputs):
        raise ParameterError("--text and INPUT: give one of them, a text or files of documents")
    how = given(reading)
    if text is not None and how:
        raise ParameterError("--text: is not a file; leave out the options for reading files")
    source: Any = text if text is not None else [one_or_all(inputs)] if len(inputs) == 1 else list(inputs)
    passages = given(sought)
    if passages.pop("passages", False):
        for name in [*given(near), *(["columns"] if columns else [])]:
            raise ParameterError(f"--passages and --{name}: an answer has one of them; leave the other one out")
        return _passages(index, source, passages, how, Engine(**given(engine)), shown)
    for name in passages:
        raise ParameterError(f"--{name.replace('_', '-')}: is for passages; give --passages, too, or leave it out")
    with shown_progress(shown), Index.open(index, engine=Engine(**given(engine))) as opened:
        found = opened.query(source, **given(near), columns=columns, reading=Reading(**how))
        about = {METADATA_KEY: opened.recipe.to_json().encode(), **(found.schema.metadata or {})}
    notes = notes_of(found)
    if notes and not shown.quiet:
        _say_notes(notes)
    if shown.output is None:
        if shown.json:
            for match in rows_of(found):
                say_json(match)
            say_json({"status": "done", "output": None, "matches": len(found), "notes": notes})
        elif not shown.quiet:
            _say_table(found, columns)
            unit = "document" if "unit" not in found.column_names else "part"
            say(("\n" if len(found) else "") + count(len(found), unit))
        return
    from ...store.outputs import new_file
    from ...store.parquet import write_table

    with new_file(shown.output, shown.overwrite) as file:
        write_table(found.replace_schema_metadata(about), file)
    say_written({"matches": len(found), "notes": notes}, None, shown, f"neardup index info {shell_path(index)}")


def _passages(
    index: str, source: Any, settings: dict[str, Any], reading: dict[str, Any], engine: Engine, shown: MatchesFile
) -> None:
    """Find, print and write passages."""
    from ...index import Index
    from ...shared_passages.result import summary
    from ...store.outputs import new_file
    from ...store.parquet import write_table

    with contextlib.ExitStack() as stack:
        file = None if shown.output is None else stack.enter_context(new_file(shown.output, shown.overwrite))
        stack.enter_context(shown_progress(shown))
        opened = stack.enter_context(Index.open(index, engine=engine))
        found = opened.passages(source, **settings, reading=Reading(**reading))
        if file is not None:
            write_table(found.passages, file)
    if shown.json:
        for passage in found.passages.to_pylist() if file is None else []:
            say_json(passage)
        say_json({"status": "done", "output": shown.output, **found.report})
    elif not shown.quiet:
        if file is None and len(found.passages):
            _say_rows(found.passages, PASSAGE_COLUMNS)
            say("")
        say(*summary(found, None, []), *([] if shown.output is None else [row("written", shown.output)]))


def _say_notes(notes: list[dict[str, Any]]) -> None:
    """Print a line on stderr with the first note of each kind."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for each in notes:
        kind = "removal" if "ids" in each else "short" if each["num_elements"] == 0 else "not followed"
        kinds.setdefault(kind, []).append(each)
    said = []
    for first, *more in kinds.values():
        others = f" and {count(len(more), 'other')}" if more else ""
        listed = ", ".join(map(_shown, first.get("ids", [])[:5]))
        about = f"query {_shown(first['query_id'])}{others}: " if "query_id" in first else ""
        said.append(about + first["note"] + (f": {listed}" if listed else ""))
    note("; ".join(said), "warning")


def _say_table(found: pa.Table, columns: list[str]) -> None:
    """Print matches as columns."""
    if not len(found):
        return
    value = next(name for name in ("resemblance", "cosine", "containment") if name in found.column_names)
    distance = ["distance"] if "distance" in found.column_names else []
    parts = [name for name in ("query_unit", "unit", "begin", "end") if name in found.column_names]
    _say_rows(found, ["query_id", *parts[:1], "id", *parts[1:], value, "kept", *distance, *columns])


def _say_rows(found: pa.Table, names: list[str]) -> None:
    """Print some columns of a table."""
    from ...data import rows_of

    rows = rows_of(found.select(names))
    say(padded_lines([names, *([_shown(row[name]) for name in names] for row in rows)]))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return printable(readable_id(value))
