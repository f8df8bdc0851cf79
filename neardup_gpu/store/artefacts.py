"""Write the files of a result, each with its recipe, and tell them from files of other programs."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..definitions import METADATA_KEY
from ..errors import DamagedError, NeardupError, OutputError
from .checksums import checksum, checksum_of_file, verify
from .disk import SYNCED_ONE_BY_ONE, sync_file
from .folder import OF_AN_INDEX, Folder
from .job_options import JOB, job_options

REPORT, KEPT = "report.json", "kept"

AUDIT = "audit.json"
"""The report of an audit, which lists the files of its folder as a result's report does."""

CERTIFICATE = "certificate.json"
"""The report of a check for contamination, which lists the files of its folder in the same way."""

SUBSTRINGS = "substrings.json"
"""The report of a search for repeated passages, which lists the files of its folder in the same way."""

PASSAGES = "passages.json"
"""The report of a search for shared passages, which lists the files of its folder in the same way."""

REPORTS = {
    AUDIT: "lost.parquet",
    CERTIFICATE: "evals.parquet",
    SUBSTRINGS: "spans.parquet",
    PASSAGES: "passages.parquet",
}
"""The reports of folders that hold no result of dedup, and a table of each."""

TAKE_DOWN = "take-down"
"""The entry `kind` of the statement of a take-down."""

MOST_REPORT = 1 << 28
"""Bytes of a report, at most; almost all of a large one are the names of files of kept/."""

PAGE = "report.html"
"""The report as a page, if the user wants one."""

DOCUMENTS, PAIRS, UNITS, KEPT_IDS = "documents", "pairs", "units", "kept_ids"
"""The tables of a result: a file each, or a folder of parts where tasks wrote them. `KEPT_IDS` is written where no rows
are."""

ASCENDING = ("unit", "begin", "end", "source_unit")
"""Columns of the table of units whose values are written as differences of neighbours."""

SKETCHES = "sketches"
"""The folder of sketches that are written into several files."""

BY_ITSELF = b"neardup_by_itself"
"""Among the metadata of a table that belongs to no result, though it has the columns of one's."""

MEASURED = {"resemblance", "containment"}
"""Columns of the measures: a table of pairs has one of them."""

LITTER = (".DS_Store",)
"""Files that file managers put into every folder that they show."""

CLOCK_SECONDS = 2
"""Steps in which the coarsest file systems count time."""


def is_table(path: Path) -> bool:
    """Whether a file is a table that this package wrote by itself, and nobody since: sketches, pairs and so on.

    Another program that writes it anew leaves its checksums out. Tables of a result belong to their folder.
    """
    try:
        schema, sealed = pq.read_schema(path), verify(path)
    except MemoryError:
        raise
    except (DamagedError, OSError, pa.ArrowException):
        return False
    names, about = set(schema.names), schema.metadata or {}
    of_a_result = MEASURED & names and "low" not in names  # pairs of sketches have bounds
    return sealed and METADATA_KEY in about and (BY_ITSELF in about or not of_a_result)


def index_around(path: Path) -> Path | None:
    """The folder of the index that a path is, or lies in; None if there is none."""
    for folder in (path, *path.parents):
        if (folder / "segments").is_dir() and is_index(folder):
            return folder
    return None


def is_index(folder: Path) -> bool:
    """Whether there is a manifest of an index in a folder."""
    with contextlib.suppress(OSError):
        return any(OF_AN_INDEX.fullmatch(name) for name in os.listdir(folder))
    return False


def foreign_files(folder: Path) -> list[str] | None:
    """Files in a result's folder that its run did not write or that have changed since; None if it is not a result.

    A file is as it was if it has the size that the report lists, and is not younger than the report, which is written
    last.
    """
    try:
        name = report_name(folder)
        report, written = read_report(folder, name), (folder / name).stat().st_mtime
        files = report["files"]
        if name == REPORT:
            first, *_ = shards_of(folder, files) or parts_of(folder, files, DOCUMENTS)
        else:
            first = folder / REPORTS[name]
        if METADATA_KEY not in (pq.read_schema(first).metadata or {}):
            return None
        sizes = {**files, name: (folder / name).stat().st_size}
    except MemoryError:
        raise
    except (KeyError, OSError, OutputError, TypeError, pa.ArrowException):
        return None
    folders = {str(parent) for name in sizes for parent in Path(name).parents} | {KEPT}
    foreign = []
    for place, inner, names in os.walk(folder):
        here = Path(place).relative_to(folder)
        for name in inner:
            if str(here / name) not in folders or os.path.islink(Path(place, name)):
                foreign.append(f"{here / name}/")
        for name in names:
            found = os.lstat(Path(place, name))
            as_written = stat.S_ISREG(found.st_mode) and found.st_size == sizes.get((here / name).as_posix())
            if name not in LITTER and not (as_written and found.st_mtime <= written + CLOCK_SECONDS):
                foreign.append(str(here / name))
    return sorted(foreign)


def part_name(table: str, number: int) -> str:
    """The file of a part of a table, below the folder of the result."""
    return f"{table}/part-{number:05}.parquet"


def beginnings_of(table: str) -> tuple[str, str]:
    """The files in which a table of a result may begin, below its folder: all of it, or its first part."""
    return f"{table}.parquet", part_name(table, 0)


def parts_of(folder: str | Path, files: Iterable[str], table: str) -> list[Path]:
    """The files that hold a table of a result, in order: one, or several of a job of tasks.

    Parameters
    ----------
    folder : path
    files : iterable of str
        The files that the report lists.
    table : str
        `DOCUMENTS` or `PAIRS`.
    """
    found = (re.fullmatch(rf"{table}/part-(\d+)\.parquet", name) for name in files)
    numbers = sorted(int(match[1]) for match in found if match)
    return _regular(folder, [part_name(table, number) for number in numbers] or [f"{table}.parquet"])


def shards_of(folder: str | Path, files: Iterable[str]) -> list[Path]:
    """Return the files of sketches among those that the report in a folder lists."""
    return _regular(folder, sorted(name for name in files if name.startswith(f"{SKETCHES}/")))


def _regular(folder: str | Path, names: list[str]) -> list[Path]:
    """Return the paths of files of a result, after a check of each file; see `check_regular`."""
    for name in names:
        check_regular(folder, name)
    return [Path(folder, name) for name in names]


def check_regular(folder: str | Path, name: str) -> None:
    """Check that a file of a result is a regular file, which no link leads to.

    Parameters
    ----------
    folder : path
        Of the result.
    name : str
        Its path below the folder, of any number of parts.

    Raises
    ------
    DamagedError
        If it is anything else, or the name leads out of the folder.
    """
    inner, _, last = name.rpartition("/")
    parts = inner.split("/") if inner else []
    try:
        if name.startswith("/") or not {"", ".", ".."}.isdisjoint([*parts, last]):
            raise OSError(errno.EINVAL, "is not the name of a file of a result")
        above = Path(folder, *parts[:-1])
        for number in range(len(parts)):
            Folder(Path(folder, *parts[:number]), parts[number]).names()
        Folder(above, parts[-1] if parts else "").size(last)
    except FileNotFoundError:  # what opens it says so
        return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DamagedError(f"{Path(folder, name)}: {why}; run neardup dedup again") from None


def files_in(folder: Path) -> dict[str, Path]:
    """All files below a folder, by their paths from there."""
    files = sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder).as_posix(): path for path in files}


def write_report(folder: Path, report: dict[str, Any], name: str = REPORT) -> None:
    """Write the report of a folder, by which it is finished: it lists all other files and their checksums.

    While a command runs, also write its options to `JOB`.
    """
    if (options := job_options.get()) is not None:
        (folder / JOB).write_text(options, encoding="utf-8", errors="backslashreplace")  # names may be no UTF-8
    names = files_in(folder)
    sizes = {name: path.stat().st_size for name, path in names.items()}
    with ThreadPoolExecutor(8) as pool:
        for path in names.values() if len(names) <= SYNCED_ONE_BY_ONE else ():
            pool.submit(sync_file, path)  # the disk writes while checksums are computed; errors come back in `sync`
        checksums = {name: checksum_of_file(path) for name, path in names.items()}
    text = json.dumps({**report, "files": sizes, "checksums": checksums}, indent=1, default=str)
    (folder / name).write_bytes(with_checksum(text.encode()))


def with_checksum(text: bytes) -> bytes:
    """Return a JSON object, indented by one space, with one more entry: the checksum of the text before it."""
    before = text.removesuffix(b"\n}")
    return before + f',\n "checksum": "{checksum(before):016x}"\n}}\n'.encode()


def report_is_as_written(folder: Path, name: str = REPORT) -> bool:
    """Whether no byte of a report was changed."""
    text = Folder(folder).read(name, MOST_REPORT)
    before, comma, _ = text.rpartition(b',\n "checksum": ')
    return bool(comma) and with_checksum(before + b"\n}") == text


@contextlib.contextmanager
def using_report(folder: str | Path) -> Iterator[None]:
    """For code that relies on the entries of a report: if they are not as expected, the report is damaged.

    Raises
    ------
    DamagedError
        Instead of the error that a wrong entry leads to.
    """
    try:
        yield
    except NeardupError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedError(
            f"{Path(folder) / REPORT}: has changed since it was written ({type(error).__name__} in an entry); "
            "run neardup dedup again"
        ) from error


def report_name(folder: str | Path) -> str:
    """Return the name of the report in a folder: one of `REPORTS` if it is there, else that of a result."""
    return next((name for name in REPORTS if Path(folder, name).exists()), REPORT)


def read_report(folder: str | Path, name: str = REPORT) -> dict[str, Any]:
    """Return the report of a finished run.

    Raises
    ------
    OutputError
        If the folder is not a finished result, or that of another command.
    """
    try:
        report = json.loads(Folder(Path(folder)).read(name, MOST_REPORT))
        if isinstance(report, dict):
            return report
    except (OSError, ValueError, RecursionError):
        pass
    other = report_name(folder)
    if other not in (name, REPORT):
        raise OutputError(f"{folder}: a result of another command, which wrote {other}; a result with {name} is needed")
    raise OutputError(f"{folder}: not a finished result, there is no readable {name}")
