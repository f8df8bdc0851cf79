"""The parts of an index, and their places in a file of named arrays."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecipeMismatchError
from ..methods.table_design import LEADING, TableDesign, num_tables
from ..store import ids
from ..store.arrays import ArraysFile, ArraysFormat, Limits
from ..store.ids import Ids
from .members import Members
from .tables import HammingTables

INDEX = ArraysFormat(
    magic=b"NEARDUPH",
    version=3,
    name="an index of fingerprints",
    advice="build one with `neardup hamming build`",
    again="build the index again",
)


class IndexParts:
    """The parts of an index.

    Parameters
    ----------
    design : TableDesign
    radius : int
        The largest distance that queries may ask for.
    tables : HammingTables
        Of the distinct fingerprints.
    members : Members or None
        Which rows have each distinct fingerprint; None if all are distinct.
    ids : Ids or None
        Names of the rows; None if the rows are named by their numbers.
    recipe : dict
        How the fingerprints were made; empty where that is not known.
    file : ArraysFile, optional
        The file that the arrays are mapped from.
    """

    def __init__(
        self,
        design: TableDesign,
        radius: int,
        tables: HammingTables,
        members: Members | None,
        ids: Ids | None,
        recipe: dict[str, Any],
        file: ArraysFile | None = None,
    ) -> None:
        self.design, self.radius, self.tables = design, radius, tables
        self.members, self.ids, self.recipe, self.file = members, ids, recipe, file

    def __len__(self) -> int:
        """Number of fingerprints, repeats counted."""
        return len(self.tables if self.members is None else self.members.rows)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by their names in a file."""
        members = {} if self.members is None else self.members.arrays
        return self.tables.arrays | members | ({} if self.ids is None else self.ids.arrays)


def write_index(path: Path, parts: IndexParts) -> None:
    """Write an index to a file that does not exist yet.

    Raises
    ------
    DamagedError
        If the index is mapped from a file that is not as it was written.
    """
    if parts.file is not None:  # or damaged bytes would be written with new checksums
        parts.file.verify_all()
    header = {
        "design": asdict(parts.design),
        "masks": _hexadecimal_masks(parts.design),
        "radius": parts.radius,
        "num_fingerprints": len(parts),
        "ids": None if parts.ids is None else parts.ids.kind,
        "recipe": parts.recipe,
    }
    INDEX.write(path, header, parts.arrays)


def read_index(path: str | Path, *, check: bool) -> IndexParts:
    """Map the parts of an index from its file.

    Parameters
    ----------
    check : bool
        Compare the whole file with its checksums now.

    Raises
    ------
    InputError, DamagedError, RecipeMismatchError
        As in `HammingIndex.load`.
    """
    file = ArraysFile(path, INDEX, limits=_limits_of)
    if check:
        file.verify_all()
    header = file.header
    try:
        design = _read_design(header, path)
        n, radius, recipe, kind = (header[key] for key in ("num_fingerprints", "radius", "recipe", "ids"))
        sound = all(type(number) is int for number in (n, radius)) and 0 <= radius <= design.radius
        sound &= isinstance(recipe, dict) and kind in (None, *ids.KINDS)
    except RecipeMismatchError:
        raise
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise INDEX.unreadable(path)
    parts = _assemble(file, design, radius, kind, recipe)
    if parts is None or not _fit(parts, n):
        raise INDEX.unreadable(path)
    return parts


def _limits_of(arrays: dict[str, np.ndarray]) -> dict[str, Limits]:
    """Return the limits of what probes go to: rows, members, and where blocks and members begin."""
    limits = {}
    if "rows" in arrays and arrays["rows"].ndim == 2:
        limits["rows"] = Limits(0, arrays["rows"].shape[1] - 1)
        limits["firsts"] = Limits(0, arrays["rows"].size, 1 << 62, strictly=True, whole=True)
    if "words" in arrays and arrays["words"].ndim == 2:
        limits["words"] = Limits(0, 2**64 - 1, arrays["words"].shape[1])
    if "blocks" in arrays:
        limits["offsets"] = Limits(0, len(arrays["blocks"]), 1 << 62, whole=True)
    offsets, rows = Members.NAMES
    if offsets in arrays and rows in arrays:
        limits[offsets] = Limits(0, len(arrays[rows]), 1 << 62, strictly=True, whole=True)
        limits[rows] = Limits(0, len(arrays[rows]) - 1)
    if "id_values" in arrays:
        limits["id_offsets"] = Limits(0, arrays["id_values"].size, 1 << 62, whole=True)
    return limits


def _assemble(
    file: ArraysFile, design: TableDesign, radius: int, kind: str | None, recipe: dict[str, Any]
) -> IndexParts | None:
    """Make the parts from a file's arrays; None if the file has an array that no part expects."""
    arrays = dict(file.arrays)
    belonging = {name: arrays.pop(name) for name in Members.NAMES if name in arrays}
    named = {name: arrays.pop(name) for name in ids.NAMES if name in arrays}
    if len(belonging) not in (0, len(Members.NAMES)) or (named and kind is None):
        return None
    offsets, rows = Members.NAMES
    members = Members(belonging[offsets], belonging[rows], file) if belonging else None
    identified = None if kind is None else Ids(kind, named, file)
    return IndexParts(design, radius, HammingTables(arrays, file), members, identified, recipe, file)


def _fit(parts: IndexParts, num_fingerprints: int) -> bool:
    """Whether the arrays of each part have the dtypes and shapes for this number of fingerprints."""
    distinct = num_fingerprints
    if parts.members is not None:
        if not parts.members.fit(num_fingerprints):
            return False
        distinct = len(parts.members.offsets) - 1
    return parts.tables.fit(parts.design, distinct) and (parts.ids is None or parts.ids.fit(num_fingerprints))


def _hexadecimal_masks(design: TableDesign) -> list[str]:
    """The masks as strings, for a header."""
    return [f"{mask:0{design.bits // 4}x}" for mask in design.masks]


def _read_design(header: dict[str, Any], path: str | Path) -> TableDesign:
    """Read the design of a stored index; KeyError, TypeError or ValueError if the header does not describe one.

    Raises
    ------
    RecipeMismatchError
        If its tables are not those that this version designs.
    """
    found, masks = header["design"], header["masks"]
    bits, radius, prefix = (found[name] for name in ("bits", "radius", "prefix"))
    if not all(type(number) is int for number in (bits, radius, prefix)) or bits not in (64, 128):
        raise ValueError
    if not (0 <= radius < bits and 0 <= prefix <= min(LEADING, bits - radius)):
        raise ValueError
    # The number of tables is compared first: there may be more masks than memory holds.
    if len(masks) == num_tables(bits, radius, prefix):
        design = TableDesign(bits, radius, prefix)
        if masks == _hexadecimal_masks(design):
            return design
    raise RecipeMismatchError(f"{path}: its tables are of another design than this version's; build it again")
