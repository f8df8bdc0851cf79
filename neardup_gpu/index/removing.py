"""Removing documents: by their ids, by a column, or by texts that they resemble; and erasing what is stored of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import checks
from ..documents.columns import decoded, plain_type
from ..errors import InputError, ParameterError
from ..log import log
from ..report import count
from .columns import kept_of, with_value
from .manifest import Progress, numbers
from .merging import Merge, merge_now
from .opened import Opened
from .writer import TOO_LARGE, buried, checked_ids, ids_there, kind_of


class Removed(NamedTuple):
    """Describe what `Index.remove` or `Index.take_down` did.

    Parameters
    ----------
    documents : int
        Documents that were removed.
    unknown : list
        The given ids that no document has, in the given order.
    erased : bool
        Whether no file of the index holds anything of removed documents any more. False without `erase`, and as long
        as a reader still uses an older file.

    Examples
    --------
    >>> Removed(documents=1, unknown=["b"], erased=False).unknown
    ['b']
    """

    documents: int
    unknown: list[Any]
    erased: bool


def remove(opened: Opened, ids: Any, missing: str, dry_run: bool, erases: bool) -> Removed:
    """Take the documents of some ids away, unless it is a dry run.

    Raises
    ------
    ParameterError
        If the ids are not an array or a list of them.
    InputError
        If an id is null, or is not there and `missing` is "error".
    OutputError
        If the index cannot be written.
    """
    given = checked_array(ids)
    with opened.running() as runtime:
        if not dry_run:
            opened.write()
        manifest, snapshot = opened.snapshot(runtime)
        sequence, unknown = np.empty(0, np.int64), list[Any]()
        if len(given):
            wanted = checked_ids(given, manifest).unique()
            found, sequence = ids_there(snapshot, wanted, kind_of(wanted))
            unknown = wanted.take(pa.array(np.setdiff1d(np.arange(len(wanted)), found))).to_pylist()
        if unknown and missing == "error":
            more = f", nor {count(len(unknown) - 1, 'other id')}" if len(unknown) > 1 else ""
            raise InputError(f"id {unknown[0]!r} is not in the index{more}; nothing was removed")
        erased = not dry_run and take_away(opened, sequence, erases, given.to_pylist() if erases else ())
        return Removed(len(sequence), unknown, erased)


def remove_by_column(opened: Opened, column: str, parameter: str, value: Any, dry_run: bool, erases: bool) -> Removed:
    """Take the documents away whose column has a value, or is before it, unless it is a dry run.

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
        sequence = with_value(snapshot, column, manifest.column_types[column], parameter, value)
        return Removed(len(sequence), [], not dry_run and take_away(opened, sequence, erases))


def take_away(opened: Opened, sequence: np.ndarray, erases: bool, ids: Sequence[Any] = ()) -> bool:
    """Take documents away, and erase what is stored of them if `erases`; return whether nothing of it is left.

    `ids` are names of documents that may have been removed earlier; they are erased from the list of inputs, too.

    Raises
    ------
    OutputError
        If the index cannot be written.
    """
    writer = opened.write()
    if len(sequence):
        writer.change(death=buried(writer.segments, sequence))
        opened.committed(writer)
    return erases and _erased(opened, ids)


def _erased(opened: Opened, ids: Sequence[Any]) -> bool:
    """Write again each segment in which something is dead, without it; return whether no older file is left.

    A request that was interrupted is completed by the next one, which finds the same dead rows.
    """
    writer = opened.write()
    inputs = _without_names(writer.manifest.inputs, ids)
    if inputs != writer.manifest.inputs:
        writer.change(inputs=inputs)
    opened.committed(writer)  # removes what an earlier request had to leave
    while any(has_dead := [each.deleted is not None for each in writer.manifest.segments]):
        number = has_dead.index(True)
        segment = writer.segments[number]
        names = segment.ids.arrow(np.flatnonzero(segment.live_documents == 0)).to_pylist()
        merge = Merge(writer, number, number + 1)
        merge_now(merge, inputs=_without_names(writer.manifest.inputs, names))
        opened.committed(writer)
    older = [number for number in numbers(opened.folder) if number < writer.manifest.number]
    if older:
        log.warning(
            "%s: a reader still uses %s with removed documents; repeat the request after the reader has refreshed or "
            "ended",
            opened.folder,
            count(len(older), "older state"),
        )
    return not older


def _without_names(inputs: list[Progress], ids: Sequence[Any]) -> list[Progress]:
    """Return inputs without the files that documents are named by: the ids of text files are paths."""
    names = {id for id in ids if isinstance(id, str)}
    found = []
    for each in inputs:
        files = [file for file in each.files if not _is_named(file[0], names)]
        if len(files) == len(each.files):
            found.append(each)
        elif files:
            found.append(replace(each, name=files[0][0], files=files))
    return found


def _is_named(path: str, ids: set[str]) -> bool:
    """Return whether the end of a path, from the beginning of a name on, is one of some ids."""
    parts = path.replace(os.sep, "/").split("/")
    return any("/".join(parts[place:]) in ids for place in range(len(parts)))


def checked_array(ids: Any) -> pa.Array:
    """Return ids as an array.

    Raises
    ------
    ParameterError, InputError
        If they are not an array or a list of ids, or one is null.
    """
    if isinstance(ids, str | bytes):
        raise ParameterError(f"ids: one {type(ids).__name__} given; put it into a list")
    try:
        given = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
        given = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    except OverflowError:
        raise InputError(TOO_LARGE) from None
    except (pa.ArrowException, TypeError, ValueError):
        raise ParameterError(
            f"ids: expected integers, strings or bytes, all of one type, got {checks.shown(ids)}"
        ) from None
    if given.null_count:
        raise InputError("ids: an id is null; nothing was done")
    return decoded(given, plain_type(given.type))
