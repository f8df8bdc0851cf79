"""Decide about documents that are divided into units, in the stages of `results`.

fates    Each unit that has a source tells it who it is: `claim`.
ids      Sources count their copies, and say which copies are kept: `count`.
write    Documents are decided about: `decided`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..documents.references import NamedSets
from ..documents.units import Fates, UnitDecisions, are_repeats, fates_of, spared_copies
from ..results.tables import UnitColumns
from ..stages.decisions import kinds_of
from ..store.exchange import read_arrays
from .columns import load, rows_of, save
from .layout import Layout
from .sizes import Counts, Exchange, Shape
from .sketching import ALIKE, ROWS, places_of_units
from .work import Files, file_name

CLAIMS = pa.schema([(name, pa.int64()) for name in ("source", "row", "rank", "holder")])
"""A unit tells its source, which is a row of the slice that reads this, its own row and rank, and its holder: see
`spared_copies`. The holder is -1 if the unit does not repeat its source."""

REPEATS = pa.schema([("repeats", pa.uint8())])
SPARED = pa.schema([("row", pa.int64())])
COPIES = pa.schema([("copies", pa.int64())])
NAMED = pa.schema([("named", pa.uint8())])


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files by which parts of documents tell their sources that they repeat them."""
    n, slices = c.documents, shape.slices
    return [
        Exchange.of("fates claims", CLAIMS, c.removed, slices, slices),
        Exchange.of("fates repeats", REPEATS, n, slices),
        Exchange.of("ids copies", COPIES, n, slices),
        Exchange.of("ids named", NAMED, c.owners, slices),
        Exchange.of("ids spared", SPARED, c.spared, slices, slices),
    ]


def claim(files: Files, fate: dict[str, np.ndarray], layout: Layout) -> None:
    """Write what the units of a slice tell their sources, and save which units repeat their source.

    `fate` has the columns of `naming.FATES`.
    """
    number, unit = files.number, files.shared.recipe.unit
    row, owner, ranks = fate["row"], places_of_units(files, number).owner, layout.ranks_of(files, number)
    alike = load(files.place, file_name("sketch", number, "alike"), ALIKE)
    slices, source = layout.slice_of(layout.numbers_of(files, fate["keeper"]))
    both = np.flatnonzero(slices == number)  # units of one document are of one slice
    both = both[owner[row[both]] == owner[source[both]]]
    one, other = row[both], source[both]
    same_document, kind = np.zeros(len(row), bool), np.zeros(len(row), np.int8)
    same_document[both] = True
    same_words = (alike["words"][one] == alike["words"][other]).all(axis=1)
    kind[both] = kinds_of(same_words, alike["text"][one] == alike["text"][other])
    repeats = are_repeats(unit, np.ones(len(row), bool), kind, same_document)
    holder = layout.starts[number] + (row if unit.inside else np.searchsorted(owner, owner[row]))
    columns = {"source": source, "row": row, "rank": ranks[row], "holder": np.where(repeats, holder, -1)}
    with files.exchange("claims", CLAIMS, layout.num_slices) as writer:
        writer.add(slices, columns)
    all_repeats = np.zeros(len(owner), np.uint8)
    all_repeats[row[repeats]] = 1
    save(files, "repeats", {"repeats": all_repeats})


def count(files: Files, names: list[str], num_documents: int, layout: Layout) -> dict[str, np.ndarray]:
    """Count the copies of the units of a slice, say which copies are kept, and return the columns that others ask for.

    Memory: 32 bytes for each copy, if several are kept; else some copies at a time.

    Parameters
    ----------
    names : list of str
        The files of what units tell, by slices.
    num_documents : int
        Documents of the slice.
    """
    number, unit = files.number, files.shared.recipe.unit
    places = places_of_units(files, number)
    copies, named = np.ones(len(places.owner), np.int64), np.zeros(num_documents, np.uint8)
    for source, holder in rows_of(files.place, names, number, ("source", "holder")):
        copies += np.bincount(source, minlength=len(copies))
        named[places.owner[source[holder >= 0]]] = 1
    save(files, "copies", {"copies": copies})
    save(files, "named", {"named": named})
    with files.exchange("spared", SPARED, layout.num_slices) as writer:
        if unit.keep_copies > 1 and not unit.overlaps:
            told = [read_arrays(files.place, [name], number, CLAIMS) for name in names]
            slices = np.repeat(np.arange(len(told)), [len(each["row"]) for each in told])
            source, row, rank, holder = (np.concatenate([each[name] for each in told]) for name in CLAIMS.names)
            again = np.flatnonzero(holder >= 0)
            spared = again[spared_copies(source[again], holder[again], rank[again], unit)]
            writer.add(slices[spared], {"row": row[spared]})
    return {**places.columns, "copies": copies}


def decided(
    files: Files, number: int, ids: pa.Array, found: Any, against: NamedSets | None, layout: Layout
) -> tuple[UnitColumns, Fates]:
    """Decide about the documents of a slice.

    Parameters
    ----------
    number : int
        The slice's, among those of the input and of the reference set.
    ids : pyarrow.Array
        The ids of its documents.
    found : results.RowFates
    """
    place, places, removed = files.place, places_of_units(files, number), found.removed
    repeats = load(place, file_name("fates", number, "repeats"), REPEATS)["repeats"].astype(bool)
    copies = load(place, file_name("ids", number, "copies"), COPIES)["copies"].copy()
    source_units = np.zeros(len(copies), np.int64)
    if len(removed):
        keeper = found.keeper[removed]
        source_units[removed], copies[removed] = (found.answers.told(name, keeper) for name in ("unit", "copies"))
    answered = [file_name("ids", slice, "spared") for slice in range(layout.num_slices)]
    decisions = UnitDecisions(
        repeats=repeats,
        kind=found.kinds,
        num_tokens=load(place, file_name("sketch", number, "rows"), ROWS)["num_tokens"],
        spared=read_arrays(place, answered, number, SPARED)["row"],
        named=load(place, file_name("ids", number, "named"), NAMED)["named"].astype(bool),
    )
    columns = UnitColumns(
        ids=ids,
        places=places,
        repeats=repeats,
        source_ids=found.answers.ids(found.keeper, ids.type, ~repeats),
        source_units=source_units,
        resemblance=found.resemblance,
        copies=copies,
        in_reference=None if against is None else found.keeper < layout.num_known,
        reference=None if against is None else against.column(found.keeper, found.keeper >= layout.num_known),
    )
    return columns, fates_of(places, decisions, files.shared.recipe)
