"""The command `neardup index remove`."""

from __future__ import annotations

from typing import Any

from ...documents.reading_options import Reading
from ...errors import InputError, ParameterError
from ...printable import printable, readable_id, shell_path
from ...records import dataclass
from ...report import count
from ...settings import setting
from ..console import say, say_json, say_written, shown_progress
from ..options import DOCUMENTS, OUTPUT, flags, given
from .options import IndexFolder, Said


@dataclass(frozen=True, kw_only=True)
class Which:
    """The documents to remove."""

    ids: str | None = setting(
        None, "Their ids: a text file with one a line, or Parquet with a column id.", metavar="FILE"
    )
    column: str | None = setting(None, "Instead of ids: one of the columns that the index keeps.", metavar="NAME")
    before: str | None = setting(
        None, "Remove documents whose --column is before this date, time, number or string.", metavar="VALUE"
    )
    equals: str | None = setting(None, "Remove documents whose --column has this value.", metavar="VALUE")
    missing: str = setting(
        "return", "Ids that no document has: return (remove the others and print them) or error.", metavar="WHAT"
    )


@dataclass(frozen=True, kw_only=True)
class TakenDown:
    """Texts that are taken down with all that resembles or contains them."""

    texts: str | None = setting(
        None, "Texts to take down: remove the documents that resemble or contain one.", metavar="FILE"
    )
    threshold: float | None = setting(None, "With --texts: minimum resemblance.", metavar="X", shown="the index's")
    containment: float | None = setting(
        None, "With --texts: minimum share of a text's shingles, in an index made with --containment.", shown="0.9"
    )
    direction: str | None = setting(
        None,
        "With --texts: remove documents that contain a text (in), documents that a text contains (of), or either.",
        metavar="WAY",
        shown="in",
    )
    statement: str | None = setting(
        None, "With --texts: JSON file to write, which `neardup info --check` proves again.", metavar="FILE"
    )


@dataclass(frozen=True, kw_only=True)
class RemovalOutput(Said):
    """The way to print what was removed."""

    overwrite: bool = setting(False, "Replace an existing statement.")
    erase: bool = setting(False, "Write files again, so that none holds anything of removed documents.")
    dry_run: bool = setting(False, "Remove nothing, but print the number of documents to remove.")


WhichFlags: Any = flags(DOCUMENTS, Which)
TakeDownFlags: Any = flags(
    DOCUMENTS, TakenDown, Reading, without=("on_error", "on_duplicate_id", "max_document_bytes", "null_values")
)
RemovedFlags: Any = flags(OUTPUT, RemovalOutput)


def remove(
    index: IndexFolder,
    /,
    *,
    which: WhichFlags = None,
    taken: TakeDownFlags = None,
    written: RemovedFlags = None,
) -> None:
    """Take documents out of an index: by ids, by a column, or all that resemble or contain some texts."""
    from ...index import Index

    shown, how = RemovalOutput(output=index, **given(written)), given(which)
    texts, reading = given(taken, of=TakenDown), given(taken, of=Reading)
    if sum(name in {**how, **texts} for name in ("ids", "before", "equals", "texts")) != 1:
        raise ParameterError(
            "--ids, --before, --equals and --texts: give one of them: a file with ids, a value that their --column is "
            "before, a value that it has, or a file of texts"
        )
    if "texts" not in texts and (texts or reading):
        raise ParameterError("--texts: the options of texts and statements belong to it; leave them out")
    with shown_progress(shown), Index.open(index) as opened:
        run: dict[str, Any] = {"erase": shown.erase, "dry_run": shown.dry_run}
        if texts:
            if how:
                raise ParameterError("--texts: finds documents by texts; leave out --column and --missing")
            source = texts.pop("texts")
            found = opened.take_down(source, **texts, **run, overwrite=shown.overwrite, reading=Reading(**reading))
        else:
            if "ids" in how:
                how["ids"] = _read(how["ids"], opened.info()["ids"])
            found = opened.remove(**how, **run)
        left = len(opened)
    counts = {"removed": found.documents, "documents": left, "unknown": found.unknown}
    counts |= {"erased": found.erased} if shown.erase else {}
    if shown.dry_run:
        if shown.json:
            say_json({"status": "done", "output": None, **counts})
        elif not shown.quiet:
            say(f"{count(found.documents, 'document')} of {left:,} would be removed")
        return
    rows = [("removed", f"{found.documents:,}"), ("documents", f"{left:,}")]
    if found.unknown:
        named = ", ".join(printable(readable_id(id)) for id in found.unknown[:5])
        rows.append(("unknown ids", f"{len(found.unknown):,}: {named}{', ...' if len(found.unknown) > 5 else ''}"))
    if shown.erase:
        rows.append(("erased", "yes" if found.erased else "not yet: a reader uses older files"))
    if "statement" in texts:
        rows.append(("statement", texts["statement"]))
    say_written(counts, rows, shown, f"neardup index decide {shell_path(index)} --output OUT")


def _read(path: str, kind: str | None) -> Any:
    """The ids in a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[:4] == b"PAR1":
            table = pq.read_table(path)
            if "id" not in table.column_names:
                raise InputError(f"{path}: no column 'id'; it has {', '.join(table.column_names)}")
            return table["id"].combine_chunks()
        lines = [line.rstrip("\r") for line in data.decode().split("\n")]
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8; write one id per line, or Parquet with a column id") from None
    lines = [line for line in lines if line]
    if kind != "integer":
        return pa.array(lines, pa.large_binary() if kind == "binary" else pa.large_string())
    numbers = []
    for line in lines:
        try:
            numbers.append(pa.scalar(int(line), pa.int64()).as_py())
        except (ValueError, OverflowError, pa.ArrowException):
            raise InputError(f"{path}: {line!r} is not an id of this index, whose ids are integers") from None
    return pa.array(numbers, pa.int64())
