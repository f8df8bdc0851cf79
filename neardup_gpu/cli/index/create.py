"""The command `neardup index create`."""

from __future__ import annotations

from typing import Any

from ...methods import names_with
from ...methods.finding.keeps import KeptTables
from ...printable import shell_path
from ...records import dataclass
from ...settings import setting
from ...text.unit_options import Unit
from ..console import say_written
from ..methods import DECIDING as DECIDING_BY, Conditions, Listing, ShingleSettings, chosen_recipe, listed
from ..options import DECIDING, DOCUMENTS, MATCHING, flags, given, method_flags
from .options import NewIndex, Said, SaidFlags, names_in

METHODS: dict[str, tuple[type, ...]] = {
    name: DECIDING_BY[name] for name in sorted(names_with("finder"), key="minhash".__ne__)
}
"""The settings that the command takes, by method. The first method is the default."""


@dataclass(frozen=True, kw_only=True)
class IndexMethod:
    """How candidates are found, and which are near-duplicates."""

    method: str = setting("minhash", f"How near-duplicates are found: {', '.join(METHODS)}.", metavar="NAME")
    threshold: float | None = setting(
        None, "Minimum resemblance, above 0 and up to 1.", metavar="X", shown="0.8, by simhash none"
    )


@dataclass(frozen=True, kw_only=True)
class StoredColumns:
    """Columns of the documents that the index keeps."""

    columns: list[str] | None = setting(
        None,
        "Columns to keep of each document, such as date,source: for removals, decisions and answers.",
        metavar="NAMES",
        shown="none",
    )


StoredFlags: Any = flags(DOCUMENTS, StoredColumns)
ChoiceFlags: Any = flags(MATCHING, IndexMethod, ShingleSettings, Conditions)
MethodFlags: Any = method_flags(MATCHING, METHODS, without=("frequencies",))
UnitFlags: Any = flags(MATCHING, Unit)
KeptFlags: Any = flags(MATCHING, KeptTables)
ListingFlags: Any = flags(DECIDING, Listing)


def create(
    index: NewIndex,
    /,
    *,
    stored: StoredFlags = None,
    choice: ChoiceFlags = None,
    unit: UnitFlags = None,
    method: MethodFlags = None,
    kept: KeptFlags = None,
    listing: ListingFlags = None,
    written: SaidFlags = None,
) -> None:
    """Make an empty index."""
    from ...index import Index

    recipe = chosen_recipe(METHODS, method, **given(choice), **listed(listing), unit=Unit(**given(unit)))
    columns = names_in(given(stored).get("columns", []))
    with Index.create(index, recipe=recipe, columns=columns, **given(kept)) as made:
        found = {"documents": len(made)}
    say_written(found, None, Said(output=index, **given(written)), f"neardup index add {shell_path(index)} FILES")
