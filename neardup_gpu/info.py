"""What an artefact is, and whether it is as it was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .definitions import METADATA_KEY, TELLING, stored_settings
from .errors import DamagedError, InputError
from .store.artefacts import REPORT, read_report, report_is_as_written
from .store.checksums import changed, checksum_of_file, verify_pages


def describe(path: Path) -> dict[str, Any]:
    """What an artefact is, its recipe and counts.

    Raises
    ------
    InputError
        If it is none.
    DamagedError
        If it is not as it was written, as far as is read here.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_dir() or path.name == REPORT:
        folder = path if path.is_dir() else path.parent
        return {"kind": "result", "folder": str(folder), "report": read_report(folder)}
    for kept in path.parents:
        if kept.name == "kept" and (kept.parent / REPORT).exists():
            raise InputError(f"{path}: kept rows, which are no artefact; try neardup info {kept.parent}")
    from .hamming.storage import INDEX
    from .store.parquet import opened

    if INDEX.matches(path):
        return _describe_index(path)
    try:
        with opened(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except DamagedError:
        raise
    except InputError:
        raise InputError(f"{path}: not an artefact of neardup: neither Parquet nor a {REPORT}") from None
    stored = (schema.metadata or {}).get(METADATA_KEY)
    if stored is None:
        raise InputError(f"{path}: holds no recipe; it was not written by neardup")
    return {
        "kind": next((kind for kind, column in TELLING.items() if column in schema.names), "artefact"),
        "columns": schema.names,
        "counts": {"rows": rows, "file_bytes": path.stat().st_size},
        "recipe": stored_settings(stored, str(path)),
    }


def _describe_index(path: Path) -> dict[str, Any]:
    from .hamming import HammingIndex

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


def check(path: Path) -> str:
    """Compare all of an artefact, which `describe` has found to be one, with its checksums.

    Returns
    -------
    str
        The parts that were compared.

    Raises
    ------
    DamagedError
        If a byte of it is not as it was written, or a file of a result is missing.
    InputError
        If it carries no checksums.
    """
    from .hamming.storage import INDEX
    from .store.arrays import ArraysFile

    if path.is_dir() or path.name == REPORT:
        folder = path if path.is_dir() else path.parent
        number = sum(1 for _ in _check_result(folder))
        return f"all {number:,} files of {folder}"
    if INDEX.matches(path):
        ArraysFile(path, INDEX).verify_all()
    elif not verify_pages(path):
        raise InputError(f"{path}: carries no checksums; another program wrote it, or an earlier version")
    return f"all {os.path.getsize(path):,} bytes of {path}"


def _check_result(folder: Path) -> Iterator[str]:
    """The files of a result, each once it was compared."""
    report = read_report(folder)
    stored = report.get("checksums")
    if not isinstance(stored, dict) or not report_is_as_written(folder):
        if stored is None:
            raise InputError(f"{folder}: its report lists no checksums; an earlier version wrote it")
        raise changed(folder / REPORT)
    yield REPORT
    for name, checksum in stored.items():
        path = folder / name
        try:
            found = checksum_of_file(path)
        except FileNotFoundError:
            raise DamagedError(f"{path}: is missing, {REPORT} lists it; run neardup dedup again") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        if found != checksum:
            raise changed(path)
        yield name
