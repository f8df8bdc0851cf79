"""Documents from which parts were cut, as a page shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow
from ..documents.rereading import texts_of
from ..errors import InputError
from ..printable import printable, readable_id
from ..results.diff import struck
from ..text.raw_text import to_bytes
from .run import Run
from .texts import HELD, LONGEST, beginning

LISTED = 40
"""Documents that are shown."""


def parted(run: Run, units: pa.Table, text: bool) -> dict[str, Any]:
    """Return the documents that lost the most parts, with their text, in which the cut parts are marked.

    Parameters
    ----------
    run : Run
    units : pyarrow.Table
        As `Result.units`.
    text : bool
        Whether texts are shown, for which the input is read once more.
    """
    documents = run.documents
    lost = documents["units_cut"].to_numpy()
    order = np.argsort(-lost, kind="stable")[:LISTED]
    chosen = np.sort(order[lost[order] > 0])
    ids = documents["id"].take(arrow(chosen))
    found: dict[str, Any] = {"number": int((lost > 0).sum()), "why_not": None, "documents": []}
    texts: list[str | None] = [None] * len(chosen)
    if text and len(chosen):
        try:
            texts = texts_of(run.source(), ids, chosen.tolist(), longest=LONGEST, at_most=HELD)
        except InputError as error:
            found["why_not"] = f"No texts are shown: {error}"
    own = units.filter(pc.is_in(units["id"], ids.combine_chunks().cast(units["id"].type)))
    for row, shown in zip(chosen.tolist(), texts, strict=True):
        document = documents.slice(row, 1).to_pylist()[0]
        rows = own.filter(pc.equal(own["id"], documents["id"][row].cast(own["id"].type))).to_pylist()
        words: list[tuple[str, str]] = []
        if shown is not None and (not rows or rows[-1]["end"] <= len(to_bytes(shown))):
            words, _ = beginning(struck(rows, shown, full=False)[0])
        found["documents"].append(
            {
                "id": printable(readable_id(document["id"])),
                "units": document["units"],
                "cut": document["units_cut"],
                "kept": document["kept"],
                "words": words,
            }
        )
    found["documents"].sort(key=lambda document: -document["cut"])
    return found
