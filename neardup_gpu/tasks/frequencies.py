"""The stages that count document frequencies: TF-IDF weighs by them, and they say which shingles are common.

    count        of a slice: in how many of its documents each token or shingle occurs, by ranges of tokens or shingles
    sum          of a range: in how many documents of all slices; where common shingles are left out, only those
    frequencies  one task: the file of the result that holds them

Tasks that weigh, or leave out shingles, read the files of "sum", whose ranges are in order (`Shared.settled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from ..data import Ragged
from ..documents.slices import Slice
from ..documents.sources import Sources
from ..engine.choice import to_host
from ..engine.clock import Clock
from ..errors import ResourceError
from ..methods.contract import FirstPass
from ..methods.frequencies import FrequencyCounter, counted, occurrences as occurrences_of
from ..report import count as count_of, size
from ..stages.sketching import Sketcher
from ..store.exchange import ExchangeWriter, num_rows
from .columns import partition_of, rows_of
from .dividing import divided
from .results import placed
from .work import COUNTS, WAITING_BESIDE, Files, Shared, counted_frequencies

COUNTED_BYTES = 96
"""Memory that an element takes each time that it is counted or summed, up to a quarter of the task's."""

WEIGHED_BYTES = 32
"""Memory that an element takes in each task that weighs by frequencies, up to half of the task's."""

FILE = "frequencies.parquet"

_KEY_BITS = 62  # of the keys by which a range is divided: int64, and a width of parts more than all of them


class _Counting:
    """Counts the documents of a slice, as `FrequencyPass` does, and keeps nothing of each.

    What does not fit is written, and such elements come again. It takes the place of a first pass, or that of a spool,
    whose shingles it counts.
    """

    def __init__(self, writer: ExchangeWriter, most: int, shared: Shared) -> None:
        self._writer, self._most, self._counter = writer, most, FrequencyCounter()
        self.folder, self._backend = shared.temporary, shared.engine.backend
        self.num_documents = 0

    def measure(self, elements: Ragged, backend: str | None) -> Any:
        distinct, _ = counted(elements, backend)
        held, documents = occurrences_of(distinct, backend)
        return to_host(held), to_host(documents), int((distinct.sizes > 0).sum())

    def add(self, measured: Any) -> None:
        *held, number = measured
        self._counter.add(tuple(held), number)
        self.num_documents += number
        if self._counter.num_held > self._most:
            self.write()

    def append(self, rows: Ragged) -> None:
        """Count the shingles of documents that wait."""
        self.add(self.measure(rows, self._backend))

    def write(self) -> None:
        elements, documents = self._counter.take()
        partition = partition_of(elements, self._writer.num_partitions)
        self._writer.add(partition, {"element": elements, "documents": documents})


def count(files: Files, slice: Slice) -> dict[str, Any]:
    """Count the documents of a slice that hold each element.

    Memory: a batch; 96 bytes for each element that is counted, each time, up to a quarter of the task's.
    """
    shared = files.shared
    with files.exchange("counts", COUNTS, shared.partitions, WAITING_BESIDE) as writer, shared.start() as runtime:
        counting = _Counting(writer, max(1, shared.task_memory // (4 * COUNTED_BYTES)), shared)
        weighs = shared.recipe.method.needs_statistics
        first_pass, spool = (cast("FirstPass", counting), None) if weighs else (None, counting)
        sketcher = Sketcher(
            shared.recipe, runtime, Clock(None), None, first_pass, spool, hashed=False, number=files.number
        )
        sketched = sketcher.sketch_part(Sources(slice.open()))
        counting.write()
    return {"documents": counting.num_documents if weighs else len(sketched.num_tokens)}


def add_up(files: Files, names: list[str], above: int) -> dict[str, Any]:
    """Add up what all slices counted of a range of elements; where it does not fit, the range is divided.

    Only elements of more than `above` documents are written.
    """
    shared, part = files.shared, files.number
    first, stop = (-(-(each << 32) // shared.partitions) << _KEY_BITS - 32 for each in (part, part + 1))
    most = max(1, shared.task_memory // (4 * COUNTED_BYTES))

    def read() -> Iterator[list[np.ndarray]]:
        for elements, documents in rows_of(files.place, names, part, COUNTS.names):
            yield [(elements >> np.uint64(64 - _KEY_BITS)).astype(np.int64), elements, documents]

    with files.exchange("sums", COUNTS, 1, WAITING_BESIDE) as writer:
        rows = num_rows(files.place, names, part)
        for some in divided(read, rows, 3, first, stop, most, shared.temporary):
            counter = FrequencyCounter()
            for _, elements, documents in some.rows:
                counter.add((elements.view(np.uint64), documents.view(np.int64)), 0)
            elements, documents = counter.take()
            wanted = documents > above
            writer.add_to(0, {"element": elements[wanted], "documents": documents[wanted]})
    return {"elements": writer.close().num_rows}


def frequencies(files: Files, num_documents: int, num_elements: int) -> dict[str, Any]:
    """Write the frequencies as a file of the result.

    Raises
    ------
    ResourceError
        If those who weigh by them cannot hold them.
    """
    shared = files.shared
    needed = WEIGHED_BYTES * num_elements
    if needed > shared.task_memory // 2:
        what = count_of(num_elements, f"distinct {shared.recipe.method.elements.removesuffix('s')}")
        raise ResourceError(
            f"task_memory {size(shared.task_memory)}: the documents have {what}, whose frequencies take "
            f"{size(needed)}, more than half of what a task may hold; pass a larger task_memory, or frequencies that "
            "were counted in fewer documents"
        )
    found = counted_frequencies(shared, num_documents)
    with placed(files, FILE) as path:
        found.write(path)
    return {"files": [FILE], "documents": num_documents, "elements": num_elements, "digest": found.digest}
