"""The stages "unique" and "known": whether each id stands for one document, of the input and of the reference set.

Their files are those of the stage "copies", of ids in place of documents: numbers within either set in place of ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import numpy_of
from ..documents.formats import reader_of
from ..documents.passes import place
from ..documents.row_ids import stands_for_several
from ..store.exchange import read_partition
from . import copies
from .columns import load_column, type_named
from .layout import Layout
from .results import places_of
from .sketching import has_names
from .work import Stage, file_name

if TYPE_CHECKING:
    from ..documents.slices import Extent, Offset
    from ..store.places import Place
    from .driver import Job


def check(job: Job, sketched: Stage, extents: Sequence[Extent], offsets: Sequence[Offset]) -> None:
    """Raise InputError, as in memory, if an id stands for several documents of the input or of the reference set."""
    parts = [("unique", "input", job.num_known, len(job.slices))]
    for number, own in enumerate(job.of_sets[:-1]):
        name = f" {list(job.sets)[number]}" if job.sets else ""
        parts.append(("known" if number == 0 else f"known-{number}", f"reference set{name}", own.start, own.stop))
    for stage, what, first, stop in parts:
        if first == stop or not has_names(job.slices[first]):
            continue
        documents = [facts["documents"] for facts in sketched.facts[first:stop]]
        starts = tuple(itertools.accumulate(documents, initial=0))
        layout = Layout(starts, 0, len(job.partitions), ordered=True)
        arguments = [(sketched.names("named")[first:stop], layout)] * len(job.partitions)
        found = job.work.stage(stage, copies.copies, arguments, after=[sketched])
        if found.total("copies") == 0:
            continue
        number, *two = _first_repeated(job.work.place, found.names("ranges"), layout)
        slices, rows = (each.tolist() for each in layout.slice_of(np.array(two)))
        where = []
        for slice, row in zip(slices, rows, strict=True):
            where.append(_where(job, first + slice, row, extents[first + slice], offsets[first + slice]))
        own = type_named(sketched.facts[first + slices[0]]["id_type"])
        ids = load_column(job.work.place, [file_name("sketch", first + slices[0], "ids")], 0, "id", own)
        raise stands_for_several(what, ids[rows[0]].as_py(), number, where)


def _first_repeated(place: Place, names: list[str], layout: Layout) -> tuple[int, int, int]:
    """How many documents have the first id that comes again, and the numbers of the first two."""
    first, second, number = layout.num_rows, layout.num_rows, 0
    for part in range(layout.partitions):
        for batch in read_partition(place, names, part):
            numbers, representatives = (numpy_of(batch.column(name)) for name in ("rank", "representative"))
            if (least := int(representatives.min())) < first:
                first, second, number = least, layout.num_rows, 1
            if least == first:
                same = numbers[representatives == first]
                second, number = min(second, int(same.min())), number + len(same)
        if number:
            break
    return number, first, second


def _where(job: Job, number: int, row: int, extent: Extent, offset: Offset) -> str:
    """File and row of a document of a slice, in words."""
    slice = job.slices[number]
    if slice.source.format == "memory":
        return place(slice.open(extent)._passes, row)
    found = offset.places(places_of(job.work.shared.files("unique", 0), number, slice), extent)
    file = found["file"][row].as_py()
    sliced = next(each for each in slice.files if each.below == file)
    reader: Any = reader_of(sliced.kind)
    return f"{sliced.name} {reader.row_word} {found['row'][row].as_py()}"
