"""The command `neardup index remove`."""

from __future__ import annotations

from typing import Any

from ...errors import InputError, ParameterError
from ...printable import shell_path
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
    before: str | None = setting(
        None, "Or those whose --column is before this date, time, number or string.", metavar="VALUE"
    )
    column: str | None = setting(None, "One of the columns that the index keeps.", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class Removed(Said):
    """The way to print what was removed."""

    dry_run: bool = setting(False, "Remove nothing, but print the number of documents to remove.")


WhichFlags: Any = flags(DOCUMENTS, Which)
RemovedFlags: Any = flags(OUTPUT, Removed)


def remove(index: IndexFolder, /, *, which: WhichFlags = None, written: RemovedFlags = None) -> None:
    """Take documents out of an index."""
    from ...index import Index

    shown, how = Removed(output=index, **given(written)), given(which)
    if not how.keys() & {"ids", "before"}:
        raise ParameterError("--ids and --before: name a file with ids of documents, or what their --column is before")
    with shown_progress(shown), Index.open(index) as opened:
        if "ids" in how:
            how["ids"] = _read(how["ids"], opened.info()["ids"])
        removed = opened.remove(**how, dry_run=shown.dry_run)
        left = len(opened)
    if not shown.dry_run:
        following = f"neardup index decide {shell_path(index)} --output OUT"
        say_written({"removed": removed, "documents": left}, None, shown, following)
    elif shown.json:
        say_json({"status": "done", "output": None, "removed": removed, "documents": left})
    elif not shown.quiet:
        say(f"{count(removed, 'document')} of {left:,} would be removed")


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
