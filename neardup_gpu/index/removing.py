"""Removing documents by their ids, or by a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .. import checks
from ..errors import InputError, ParameterError
from ..report import count
from .columns import earlier, kept_of
from .opened import Opened
from .writer import TOO_LARGE, buried, checked_ids, ids_there, kind_of


def remove(opened: Opened, ids: Any, dry_run: bool) -> int:
    """Take the documents of some ids away, all or none, unless it is a dry run; returns how many.

    Raises
    ------
    ParameterError
        If the ids are not an array or a list of them.
    InputError
        If an id is not there, or is null.
    OutputError
        If the index cannot be written.
    """
    given = _as_array(ids)
    if len(given) == 0:
        return 0
    if given.null_count:
        raise InputError("ids: an id is null; nothing was removed")
    with opened.running() as runtime:
        if not dry_run:
            opened.write()
        manifest, snapshot = opened.snapshot(runtime)
        wanted = checked_ids(given, manifest).unique()
        found, sequence = ids_there(snapshot, wanted, kind_of(wanted))
        missing = np.setdiff1d(np.arange(len(wanted)), found)
        if len(missing):
            more = f", nor {count(len(missing) - 1, 'other id')}" if len(missing) > 1 else ""
            raise InputError(f"id {wanted[int(missing[0])].as_py()!r} is not in the index{more}; nothing was removed")
        if not dry_run:
            _take_away(opened, sequence)
    return len(sequence)


def remove_before(opened: Opened, column: str, before: Any, dry_run: bool) -> int:
    """Take the documents away whose column is less than a value, unless it is a dry run; returns how many.

    Raises
    ------
    ParameterError
        If the index does not keep the column, or the value is not what it holds.
    OutputError
        If the index cannot be written.
    """
    kept_of([column], opened.manifest.column_types, "column")
    with opened.running() as runtime:
        if not dry_run:
            opened.write()
        manifest, snapshot = opened.snapshot(runtime)
        sequence = earlier(snapshot, column, manifest.column_types[column], before)
        if len(sequence) and not dry_run:
            _take_away(opened, sequence)
    return len(sequence)


def _take_away(opened: Opened, sequence: np.ndarray) -> None:
    writer = opened.write()
    writer.change(death=buried(writer.segments, sequence))
    opened.committed(writer)


def _as_array(ids: Any) -> pa.Array:
    if isinstance(ids, str | bytes):
        raise ParameterError(f"ids: one {type(ids).__name__} given; put it into a list")
    try:
        given = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
        return given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    except OverflowError:
        raise InputError(TOO_LARGE) from None
    except (pa.ArrowException, TypeError, ValueError):
        raise ParameterError(
            f"ids: expected integers, strings or bytes, all of one type, got {checks.shown(ids)}"
        ) from None
