"""Documents of any size, streamed through tokens, shingles and a method's sketch; what stays of each in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import sequences
from neardup_gpu.kernels._launch import check_rows

from .data import Ragged
from .documents import Documents
from .engine.arrays import concat_and_clear
from .engine.choice import kernel, to_host
from .engine.pieces import Span
from .errors import InputError
from .recipe import Recipe
from .stages import count_tokens, shingle

if TYPE_CHECKING:
    from .documents import Batch
    from .engine.clock import Clock
    from .engine.contract import Rows, Runtime
    from .methods.contract import FirstPass, Statistics


@dataclass
class Sketches:
    """What stays in memory of documents that went by: a few hundred bytes each.

    Keys and document hashes may lie on a GPU, everything else in host memory. Each list holds an array a batch.
    """

    ids: list[pa.Array] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    sketches: list[np.ndarray] = field(default_factory=list)
    document_hashes: list[Any] = field(default_factory=list)
    num_tokens: list[np.ndarray] = field(default_factory=list)
    column: list[pa.Array] = field(default_factory=list)
    documents: int = 0
    text_bytes: int = 0
    tokens: int = 0
    shingles: int = 0
    null_text: int = 0
    invalid_utf8: int = 0
    stripped_pages: int = 0


class _Summary(NamedTuple):
    """What the first stages make of some documents; None for what is not wanted, or has to wait."""

    measured: Any
    shingles: Ragged | None
    sketch: Any
    keys: Any
    document_hash: Any
    num_tokens: np.ndarray
    invalid: int


@dataclass
class Sketcher:
    """Streams documents through the first stages.

    Parameters
    ----------
    recipe : Recipe
    runtime : Runtime
    clock : Clock
    statistics : Statistics, optional
        What the method weighs by, if it is known.
    first_pass : FirstPass, optional
        What it is counted in, if it is not.
    spool : optional
        Where shingles wait for verification.
    stored : bool
        Keep the sketches, and not only their keys.
    hashed : bool
        Fingerprint whole token sequences, by which exact duplicates are found.
    max_bytes : int, optional
        Text read at a time.
    """

    recipe: Recipe
    runtime: Runtime
    clock: Clock
    statistics: Statistics | None = None
    first_pass: FirstPass | None = None
    spool: Rows | None = None
    stored: bool = False
    hashed: bool = True
    max_bytes: int | None = None

    def sketch(
        self, documents: Documents, *, column: str | None = None, before: int = 0, total: Any = lambda: None
    ) -> Sketches:
        """What stays of documents, of which `before` came earlier; `total()` says how many are expected together."""
        kept = Sketches()
        check_rows(before + (documents.num_rows or 0), "documents")  # which files say, or nobody yet
        for batch, text in self.runtime.staged(self._batches(documents, column)):
            for part in self.runtime.map(
                partial(self._summarise, text), [Span.of_documents(batch.text.offsets, batch.ids)]
            ):
                self._add(kept, part)
                del part  # the next one needs the room
            if column is not None:
                kept.column.append(batch.columns[column])
            kept.ids.append(batch.ids)
            kept.documents += batch.num_rows
            check_rows(before + kept.documents, "documents")
            kept.text_bytes += int(batch.text.offsets[-1] - batch.text.offsets[0])
            kept.null_text += batch.num_null
            self.clock.report("sketch", before + kept.documents, total())
        kept.stripped_pages = documents.stripped_pages
        return kept

    def finish(self, sketches: Sketches) -> None:
        """Sketch what waited for statistics of all documents, which the recipe names from then on."""
        if self.first_pass is None:
            return
        with self.clock.stage("weigh"):
            report = partial(self.clock.report, "weigh")
            self.statistics, found = self.first_pass.finish(self.recipe.method, self.recipe.seed, report)
            self.recipe = self.recipe.with_(frequencies=self.statistics.digest)
            self.first_pass.close()
            sketches.keys.append(self.recipe.method.keys(found, seed=self.recipe.seed, backend=self.runtime.backend))
            if self.stored:
                sketches.sketches.append(found)

    def _batches(self, documents: Documents, column: str | None) -> Iterator[Batch]:
        """Batches of a size that the runtime can hold."""
        method, most = self.recipe.method, self.max_bytes
        if most is None:
            kind = "bag" if method.sorts_elements else self.recipe.shingles.kind
            most = self.runtime.batch_bytes(kind, method.device_bytes)
        options = {} if most is None else {"max_bytes": most}
        return documents.batches(columns=() if column is None else (column,), **options)

    def _summarise(self, text: Ragged, span: Span) -> _Summary:
        """The first stages of a span of documents; it has no effect."""
        recipe, method, backend = self.recipe, self.recipe.method, self.runtime.backend
        tokens, invalid = count_tokens(_rows(text, span.first, span.last), recipe, backend)
        shingles = shingle(tokens, recipe, backend=backend) if recipe.needs_shingles else None
        elements = tokens if shingles is None or method.elements == "tokens" else shingles
        measured = sketch = keys = hashes = None
        if self.first_pass is not None:
            measured = self.first_pass.measure(elements, backend)
        else:
            sketch = method.sketch(elements, seed=recipe.seed, statistics=self.statistics, backend=backend)
            keys = method.keys(sketch, seed=recipe.seed, backend=backend)
        if self.hashed:
            hashes = kernel(sequences, backend)(tokens.values, tokens.offsets, recipe.material.documents)
        return _Summary(measured, shingles, sketch, keys, hashes, to_host(tokens.sizes), invalid)

    def _add(self, kept: Sketches, part: _Summary) -> None:
        """Keep what was made of a span."""
        made = [(part.keys, kept.keys), (part.document_hash, kept.document_hashes)]
        made = [(array, arrays) for array, arrays in made if array is not None]
        stays = not self.stored and self.runtime.keeps(sum(array.nbytes for array, _ in made))
        for array, arrays in made:
            arrays.append(array if stays else to_host(array))
        if self.stored and part.sketch is not None:
            kept.sketches.append(to_host(part.sketch))
        if self.first_pass is not None:
            self.first_pass.add(part.measured)
        if part.shingles is not None:
            if self.spool is not None:
                self.spool.append(part.shingles)
            kept.shingles += len(part.shingles.values)
        kept.num_tokens.append(part.num_tokens)
        kept.tokens += int(part.num_tokens.sum())
        kept.invalid_utf8 += part.invalid


def _rows(text: Ragged, first: int, last: int) -> Ragged:
    """Rows `first` to `last`; in host memory, from which they may have to be copied, no more values than theirs."""
    offsets = text.offsets[first : last + 1]
    if not isinstance(offsets, np.ndarray) or (offsets[0] == 0 and offsets[-1] == len(text.values)):
        return Ragged(text.values, offsets)
    values, offsets = text.values[offsets[0] : offsets[-1]], offsets - offsets[0]
    offsets.flags.writeable = False  # as those of a whole batch are: kernels are compiled for one kind of array
    return Ragged(values, offsets)


def num_rows(sources: list[Documents]) -> int | None:
    """Documents of all sources, as far as it is known."""
    numbers = [source.num_rows for source in sources]
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def joined_keys(recipe: Recipe, *parts: Sketches) -> Any:
    """Keys of all documents; they are forgotten where they were."""
    return concat_and_clear(_emptied([part.keys for part in parts]), np.uint64, recipe.method.key_columns)


def joined_hashes(*parts: Sketches) -> Any:
    """Hashes of all documents' token sequences: uint64, shape (documents, 2); they are forgotten where they were."""
    return concat_and_clear(_emptied([part.document_hashes for part in parts]), np.uint64, 2)


def joined_num_tokens(*parts: Sketches) -> np.ndarray:
    """Tokens of each document: int64, shape (documents,)."""
    return np.concatenate([np.empty(0, np.int64), *(array for part in parts for array in part.num_tokens)])


def _emptied(lists: list[list[Any]]) -> list[Any]:
    """The items of several lists as one, and the lists emptied."""
    together = [item for each in lists for item in each]
    for each in lists:
        each.clear()
    return together


def num_skipped(skipped: pa.Table) -> int:
    """How many rows were skipped at least: where that cannot be known, one."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.fill_null(skipped["rows"], 1)).as_py() or 0)


def no_documents(documents: Documents) -> InputError:
    """The error for an input without documents."""
    skipped = documents.skipped
    if skipped is None or len(skipped) == 0:
        return InputError("the input holds no documents; nothing was written")
    first = skipped.slice(0, 1).to_pylist()[0]
    return InputError(
        f"the input holds no documents that can be read: {num_skipped(skipped):,} rows were skipped, the first in "
        f"{first['file']} ({first['reason']})"
    )
