"""Inputs that are added, and how far: so that what is repeated after a crash goes on, and adds nothing twice.

An input is a file, or all files of text and HTML that were named together. A manifest knows it by the paths, sizes and
times of its files, and how many of its rows are in the index. Tables, texts and data on other machines are not known as
files: adding them again is refused by their ids.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ..documents import Documents
from ..errors import InputError
from .manifest import Manifest, Progress


def inputs_of(
    documents: Documents, check: Callable[[Documents], None]
) -> Iterator[tuple[Documents, list[list[Any]] | None]]:
    """(documents, their files as `Progress` has them) of each input; None where it is not known by its files.

    `check` is called with all of them together, before the first.
    """
    check(documents)
    paths = documents.local_files
    if not documents.rewindable or not paths or len(paths) != documents.num_files:
        yield documents, None
        return
    if len(paths) == 1 or documents.format == "text":
        yield documents, _described(paths)
        return
    for each in documents._each_file():
        yield each, _described(each.local_files)


def _described(paths: list[str]) -> list[list[Any]]:
    found = [(os.path.abspath(path), os.stat(path)) for path in sorted(paths)]
    return [[path, stat.st_size, stat.st_mtime_ns] for path, stat in found]


def rows_done(manifest: Manifest, files: list[list[Any]] | None) -> tuple[int, bool]:
    """How many rows of an input are in the index, and whether these are all.

    Raises
    ------
    InputError
        If a file has changed since it was half added.
    """
    if files is None:
        return 0, False
    for earlier in manifest.inputs:
        if earlier.files == files:
            return earlier.rows, earlier.whole
        if not earlier.whole and earlier.name == files[0][0]:
            changed = next(
                (now[0] for then, now in zip(earlier.files, files, strict=False) if then != now), earlier.name
            )
            raise InputError(
                f"{changed}: has changed since it was added as far as document {earlier.rows:,}; remove what was added "
                "of it, or put back the file as it was"
            )
    return 0, False


def first_of(manifest: Manifest, files: list[list[Any]] | None) -> int:
    """Return the sequence number from which on documents of an input are in the index, or will be."""
    found = next((each.first for each in manifest.inputs if each.files == files), None)
    return manifest.next_sequence if found is None else found


def with_progress(manifest: Manifest, files: list[list[Any]] | None, rows: int, whole: bool) -> list[Progress]:
    """The inputs of a manifest, after one has made progress."""
    if files is None:
        return manifest.inputs
    others = [each for each in manifest.inputs if each.files != files]
    return [*others, Progress(files[0][0], files, rows, whole, first_of(manifest, files))]
