"""A search as a job of tasks: slices of the inputs are read, and their passages placed.

read     of a slice: the tokens of its documents, and what else is known of them; the rows that were skipped
locate   of a slice: the bytes of passages in its documents, and the words that differ

The driver holds the tokens of all documents and searches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..data import arrow, numpy_of
from ..documents.slices import Slice
from ..records import dataclass
from ..repeated_passages.corpora_in_tasks import CorporaInTasks, reader_of
from ..tasks.begin import hand_on
from ..tasks.columns import save_tables, tables_of
from ..tasks.work import Files, Stage, file_name
from .placing import PlacedSpans, TokenSpans, place_spans

SPANS = "spans"
"""The folder of the file of intervals to place, a partition per slice."""


@dataclass(eq=False)
class ReadInTasks(CorporaInTasks):
    """The reading of the inputs of a search, and the placing of its passages, by tasks."""

    def place(self, number: int, spans: TokenSpans, from_text: int, sizes: np.ndarray) -> PlacedSpans:
        """Place intervals of tokens of one input; see `place_spans`."""
        job, work = self.job, self.job.work
        mine = self.slices_of(number)
        bounds = np.cumsum([0, *(self.lengths[each] for each in mine)]).tolist()
        chosen: list[np.ndarray] = []
        parts: list[list[pa.Table]] = [[] for _ in job.slices]
        for each, begin, end in zip(mine, bounds, bounds[1:], strict=False):
            rows = np.flatnonzero((spans.document >= begin) & (spans.document < end))
            chosen.append(rows)
            table = pa.table(
                {
                    "document": arrow(spans.document[rows] - begin),
                    "first": arrow(spans.first[rows]),
                    "last": arrow(spans.last[rows]),
                    "has_text": arrow(rows >= from_text),
                }
            )
            parts[each] = [table, pa.table({"size": arrow(sizes[begin:end])})]
        digest = hand_on(work, SPANS, number, parts)
        calls: list[Any] = [(job.slices[each], number, each, digest) for each in mine]
        with work.told_as("locate"):
            stage = work.stage(f"locate-{number}", locate, calls)
            return work.repairing(lambda: self._placed(stage, chosen, len(spans.first)))

    def _placed(self, stage: Stage, chosen: list[np.ndarray], number: int) -> PlacedSpans:
        """Join the places of all slices of an input."""
        found = PlacedSpans(np.empty(number, np.int64), np.empty(number, np.int64), {})
        for name, rows in zip(stage.names("placed"), chosen, strict=True):
            places, texts = tables_of(self.job.work.place, [name], 0)
            found.begin[rows], found.end[rows] = numpy_of(places["begin"]), numpy_of(places["end"])
            at = rows[numpy_of(texts["span"])].tolist()
            found.text.update(zip(at, texts["text"].to_pylist(), strict=True))
        return found


def locate(files: Files, slice: Slice, number: int, partition: int, digest: str) -> dict[str, Any]:
    """Place the intervals of a slice. Memory: a batch, and the intervals of the slice.

    Parameters
    ----------
    slice : Slice
    number : int
        The input.
    partition : int
        The number of the slice.
    digest : str
        A digest of all intervals.
    """
    spans, sizes = tables_of(files.place, [file_name(SPANS, number, SPANS)], partition)
    has_text = numpy_of(spans["has_text"])
    from_text = int(np.argmax(has_text)) if has_text.any() else len(has_text)  # intervals with a text come last
    given = TokenSpans(*(numpy_of(spans[name]) for name in TokenSpans._fields))
    with files.shared.start() as runtime:
        placed = place_spans(slice.open(), given, from_text, numpy_of(sizes["size"]), reader_of(files, runtime))
    rows = sorted(placed.text)
    texts = pa.array([placed.text[row] for row in rows], pa.large_string())
    spans = pa.table({"span": pa.array(rows, pa.int64()), "text": texts})
    save_tables(files, "placed", [pa.table({"begin": arrow(placed.begin), "end": arrow(placed.end)}), spans])
    return {}
