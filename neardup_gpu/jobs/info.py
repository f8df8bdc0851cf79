"""Describe an artefact, and check whether it is as it was written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..definitions import METADATA_KEY, TELLING, stored_settings
from ..errors import DamagedError, InputError
from ..printable import shell_path
from ..store.artefacts import (
    CERTIFICATE,
    DOCUMENTS,
    KEPT,
    KEPT_IDS,
    MOST_REPORT,
    PAIRS,
    REPORT,
    REPORTS,
    SKETCHES,
    TAKE_DOWN,
    check_regular,
    index_around,
    read_report,
    report_is_as_written,
    report_name,
    shards_of,
    using_report,
)
from ..store.checksums import changed, checksum_of_file, verify
from ..store.folder import Folder, open_named, read_all


def describe(path: Path) -> dict[str, Any]:
    """Return the kind of an artefact, its recipe and counts.

    Raises
    ------
    InputError
        If it is not an artefact.
    DamagedError
        If it is not as it was written, as far as is read here.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if (index := index_around(path)) is not None:
        what = "is an index that grows" if index == path else "is part of an index that grows"
        raise InputError(f"{path}: {what}; try neardup index info {shell_path(str(index))}")
    if path.is_dir() or path.name in (REPORT, JOB, *REPORTS):
        folder = path if path.is_dir() else path.parent
        if (own := report_name(folder)) != REPORT:
            report = read_report(folder, own)
            facts = {"counts": report["counts"], "recipe": report["recipe"]}
            return {"kind": own.removesuffix(".json"), "folder": str(folder), **facts}
        if (folder / JOB).exists() and path.name != REPORT:
            return _describe_work(folder)
        if (folder / REPORT).exists() or not _around(path):
            report = read_report(folder)
            with using_report(folder):
                shards = shards_of(folder, report.get("files", ()))
            if shards:
                return _describe_tables(shards)
            return {"kind": "result", "folder": str(folder), "report": report}
    for folder, what in _around(path):
        if path.is_dir() or what != "a table of the result":
            raise InputError(f"{path}: {what}; try neardup info {folder}")
    from ..hamming.storage import INDEX

    if INDEX.matches(path):
        return _describe_index(path)
    if path.suffix == ".json":
        return _json(path, _describe_statement) or _describe_plan(path)
    return _describe_tables([path])


def _describe_tables(paths: list[Path]) -> dict[str, Any]:
    """Describe one table of Parquet, which is in one file or in several."""
    from ..store.parquet import opened

    rows = 0
    for path in reversed(paths):  # the first one is described
        try:
            with opened(path) as file:
                schema, rows = file.schema_arrow, rows + file.metadata.num_rows
        except DamagedError:
            raise
        except InputError:
            raise InputError(f"{path}: not an artefact of neardup: neither Parquet, a {REPORT} nor a plan") from None
    stored = (schema.metadata or {}).get(METADATA_KEY)
    if stored is None:
        raise InputError(f"{path}: holds no recipe; it was not written by neardup")
    counts = {"rows": rows, "file_bytes": sum(each.stat().st_size for each in paths)}
    return {
        "kind": next((kind for kind, column in TELLING.items() if column in schema.names), "artefact"),
        "columns": schema.names,
        "counts": counts | ({"files": len(paths)} if len(paths) > 1 else {}),
        "recipe": stored_settings(stored, str(path)),
    }


JOB = "job.json"
"""Files that make a folder a work folder; see `tasks.work`."""


def _around(path: Path) -> list[tuple[Path, str]]:
    """The folder that a path is part of, and as what; empty if it is part of none."""
    for folder in path.parents:
        first = path.relative_to(folder).parts[0]
        if (folder / REPORT).exists() and first == KEPT:
            return [(folder, "kept rows, in the input's own format")]
        if (folder / REPORT).exists() and first in (DOCUMENTS, PAIRS, KEPT_IDS, SKETCHES):
            return [(folder, "a table of the result")]
        if (folder / JOB).exists():
            return [(folder, "a file that tasks exchange")]
    return []


def _describe_work(folder: Path) -> dict[str, Any]:
    """Return what tasks have done in a work folder so far."""
    stages: dict[str, dict[str, Any]] = {}
    for place, record in _records(folder):
        stage = stages.setdefault(place.parent.name, {"tasks": 0, "seconds": 0.0, "file_bytes": 0})
        stage["tasks"] += 1
        stage["seconds"] = round(stage["seconds"] + record.seconds, 3)
        stage["file_bytes"] += sum(num_bytes for num_bytes, _ in record.files.values())
    counts = {name: sum(stage[name] for stage in stages.values()) for name in ("tasks", "seconds", "file_bytes")}
    told = _json(folder / JOB, lambda job: {**job, "version": str(job["version"])})
    return {"kind": "work", "folder": str(folder), "counts": counts, "stages": stages, "recipe": told}


def _records(folder: Path) -> Iterator[tuple[Path, Any]]:
    """The records of the tasks that are done, by stage."""
    from ..tasks.work import Record

    for path in sorted(folder.glob("*/*.json"), key=lambda path: (path.parent.stat().st_mtime, path)):
        try:
            yield path, Record.from_json(Folder.holding(path).read(path.name, MOST_REPORT).decode())
        except (AttributeError, KeyError, OSError, TypeError, ValueError):
            raise DamagedError(
                f"{path}: is not as its task wrote it; the job that goes on here does that task again"
            ) from None


def _describe_plan(path: Path) -> dict[str, Any]:
    """A plan that was kept: what `neardup plan --json` prints."""

    def plan(found: dict[str, Any]) -> dict[str, Any]:
        shown = ("tasks", "core_seconds", "read", "exchanged", "written", "memory", "files", "seconds")
        stages = {str(stage["name"]): {name: stage[name] + 0 for name in shown} for stage in found["stages"]}
        counts = {name: value for name, value in found["counts"].items() if isinstance(value, int)}
        shape = {name: found[name] for name in ("method", "slices", "slice_bytes", "partitions", "task_memory")}
        return {"kind": "plan", "counts": counts, "stages": stages, "recipe": shape}

    return _json(path, plan)


def _describe_statement(facts: dict[str, Any]) -> dict[str, Any]:
    """Describe the statement of a take-down; empty if it is another file."""
    if facts.get("kind") != TAKE_DOWN:
        return {}
    return {name: facts[name] for name in ("kind", "time", "index", "promise", "counts", "recipe")}


def _json(path: Path, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return a function's result for a JSON file of this package's."""
    try:
        with open_named(path) as file:
            return read(json.loads(read_all(file, MOST_REPORT)))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise InputError(f"{path}: not an artefact of neardup: neither a report, a plan nor a work folder's") from None


def _describe_index(path: Path) -> dict[str, Any]:
    from ..hamming import HammingIndex

    index = HammingIndex.load(path)
    counts = {
        "fingerprints": len(index),
        "bits": index.design.bits,
        "radius": index.radius,
        "tables": index.design.num_tables,
        "leading_bits": index.design.prefix,
        "file_bytes": path.stat().st_size,
    }
    return {"kind": "index", "counts": counts, "recipe": index.recipe}


def check(path: Path, hits_only: bool = False) -> str:
    """Compare all of an artefact, which `describe` has found to be one, with its checksums.

    A certificate of a check for contamination is also compared with another scan; of the documents that have hits, if
    `hits_only`.

    Returns
    -------
    str
        The parts that were compared.

    Raises
    ------
    DamagedError
        If a byte of it is not as it was written, or a file of a result is missing.
    InputError
        If it carries no checksums, or `hits_only` is given for something else than a certificate.
    """
    from ..hamming.storage import INDEX
    from ..store.arrays import ArraysFile

    folder = path if path.is_dir() else path.parent
    is_result = path.is_dir() or path.name in (REPORT, *REPORTS)
    is_certificate = is_result and not (folder / JOB).exists() and report_name(folder) == CERTIFICATE
    if hits_only and not is_certificate:
        raise InputError(f"{path}: not a certificate of a check for contamination; leave out hits_only")
    if (folder / JOB).exists() and (path.is_dir() or path.name == JOB):
        number = sum(_check_task(folder, record) for _, record in _records(folder))
        return f"sizes and seals of all {number:,} files that tasks exchange in {folder}"
    if is_result:
        number = sum(1 for _ in _check_result(folder))
        again = ""
        if is_certificate:
            from ..contamination.checking import check_again

            again = check_again(folder, hits_only)
        return f"all {number:,} files of {folder}{again}"
    if path.suffix == ".json" and _json(path, _describe_statement):
        from ..index.taking_down import prove

        return prove(path)
    if INDEX.matches(path):
        ArraysFile(path, INDEX).verify_all()
        return f"all {os.path.getsize(path):,} bytes of {path}"
    try:
        sealed = verify(path, whole=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if not sealed:
        raise InputError(f"{path}: carries no checksums; another program wrote it, or an earlier version")
    return f"all {os.path.getsize(path):,} bytes of {path}"


def _check_task(folder: Path, record: Any) -> int:
    """How many files of a task's were compared with its record."""
    from ..store.exchange import sealed
    from ..store.places import Place

    for name, recorded in record.files.items():
        if sealed(Place.of(folder), name) != recorded:
            raise changed(folder / name)
    return len(record.files)


def _check_result(folder: Path) -> Iterator[str]:
    """The files of a result, each once it was compared."""
    own = report_name(folder)
    report = read_report(folder, own)
    stored = report.get("checksums")
    if not isinstance(stored, dict) or not report_is_as_written(folder, own):
        if stored is None:
            raise InputError(f"{folder}: its report lists no checksums; an earlier version wrote it")
        raise changed(folder / own)
    yield own
    for name, checksum in stored.items():
        path = folder / name
        check_regular(folder, name)
        try:
            found = checksum_of_file(path)
        except FileNotFoundError:
            raise DamagedError(f"{path}: is missing, {own} lists it; make the folder again") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        if found != checksum:
            raise changed(path)
        yield name
