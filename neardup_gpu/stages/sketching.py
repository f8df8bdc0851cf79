"""Documents of any size, streamed through tokens, shingles and a method's sketch; what stays of each in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ..data import Ragged
from ..documents.skipped import check_skipped
from ..documents.sources import Sources, ids_of
from ..documents.units import Places, Units, joined_places, units_in
from ..engine.arrays import Fetching, Stack, apart, fetched, same_device
from ..engine.choice import kernel
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.pieces import OfBatch, Span
from ..kernels import distinct, sequences, texts
from ..kernels._gf2 import mix64_all
from ..kernels._launch import array_module, check_rows, know, known
from ..log import log
from ..methods.contract import FirstPass, Sketch
from ..methods.frequencies import Frequencies
from ..recipe import EQUAL, Recipe
from ..records import dataclass
from ..report import size
from ..store.disk import room
from ..store.spool import DiskFullError, another_disk, disk_full
from ..text.raw_text import to_readable, to_string
from ..text.token_changes import TokenCounts, begin_tokens
from . import count_shingles, count_tokens
from .common_shingles import common_shingles, without_common
from .conditions import SOURCE_BITS, WITHIN, group_words, key_hashes
from .equal_units import EqualUnits

WORDLESS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Second word of `document_hashes` where a document has text and no words; the first word is its text's fingerprint."""

ALONE = np.uint64(0xFFFFFFFFFFFFFFFE)
"""Second word of `document_hashes` of a document of common shingles alone; the first one is of its row."""

BLANK = np.uint64(0)
"""Value of `text_hashes` of a document that is empty or nothing but white space, which is nobody's duplicate."""


@dataclass
class Sketches:
    """The data that stays in memory: of each document that has been read, its id, and of each unit, a few numbers.

    Keys and hashes may lie on a GPU, everything else in host memory. Each list holds an array a batch; keys, hashes and
    numbers of tokens are of the reference set, too, if there is one.
    """

    ids: list[pa.Array] = field(default_factory=list)
    keys: Stack = field(default_factory=Stack)
    document_hashes: Stack = field(default_factory=Stack)
    text_hashes: Stack = field(default_factory=Stack)
    num_tokens: Stack = field(default_factory=Stack)
    set_sizes: Stack = field(default_factory=Stack)
    words: Stack = field(default_factory=Stack)
    columns: dict[str, list[pa.Array]] = field(default_factory=dict)
    documents: int = 0
    units: int = 0
    text_bytes: int = 0
    tokens: int = 0
    shingles: int = 0
    without_spots: int = 0
    without_value: int = 0
    without_key: int = 0
    common_shingles: int = 0
    only_common: int = 0
    only_dropped_words: int = 0
    places: list[Places] = field(default_factory=list)
    document_tokens: list[np.ndarray] = field(default_factory=list)
    null_text: int = 0
    invalid_utf8: int = 0
    stripped_pages: int = 0
    replaced_text: int = 0
    garbled_text: int = 0
    left_out_records: dict[str, int] = field(default_factory=dict)


class Waiting(Protocol):
    """A place in which shingles wait for verification, such as a spool."""

    folder: Any

    def append(self, rows: Ragged) -> None:
        """Add rows after those already there."""


class SketchStore(Protocol):
    """A place that takes sketches while documents are still being sketched; see `SketchWriter`."""

    @property
    def full(self) -> bool:
        """Whether enough rows are gathered to be written."""

    def add(self, **columns: Any) -> None:
        """Add rows to some columns."""

    def write(self, recipe: Recipe) -> None:
        """Write the rows whose sketches are there."""


class Sketched(NamedTuple):
    """The data that stays in memory of all documents, the reference set before the input.

    num_known, num_known_documents : int
        Units and documents of the reference set.
    ids : pyarrow.Array
        Of documents.
    places : Places or None
        Where the units are; None if each document is a unit.
    num_tokens : array of int64, shape (units,)
    columns : dict of str to pyarrow.ChunkedArray
        Of the input: the columns that decide who is kept.
    categories : dict of str to list of str
        The order of the values of each column that has ordered categories.
    keys, document_hashes, text_hashes : arrays, a row for each unit
        On a GPU, if all of them are there; empty if they were handed over to a store. See `WORDLESS` and `BLANK`.
    counts : Sketches
        Counts of the input.
    words : array of uint64, shape (units,)
        The word of each unit's group, see `conditions.py`; empty without groups, or if it was handed over to a store.
    set_sizes : array of int64, shape (units,), or None
        The number of distinct shingles of each unit, if the sketcher keeps it.
    """

    num_known: int
    num_known_documents: int
    ids: pa.Array
    places: Places | None
    num_tokens: np.ndarray
    columns: dict[str, pa.ChunkedArray]
    categories: dict[str, list[str]]
    keys: Any
    document_hashes: Any
    text_hashes: Any
    counts: Sketches
    words: np.ndarray
    set_sizes: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class _UnitPiece(OfBatch):
    """Some units of a batch, whose text lies where the backend wants it.

    `words` are the group words of all units of the batch, and `missing` counts its documents without a value. Without
    groups, they are None and 0. `keys` are the fingerprints of the keys of its documents, and `keyless` counts those
    without a key, if keys make documents equal.
    """

    text: Ragged
    words: np.ndarray | None
    missing: int
    keys: np.ndarray | None
    keyless: int


class _UnitSummary(NamedTuple):
    """Results of the first stages for some units; None for results that are not needed yet or at all.

    `ended` has the units of the batch if these are its last ones, and `stored` what is on its way to host memory.
    """

    ended: Units | None
    measured: Any
    num_shingles: int
    waiting: Ragged | None
    sketch: Any
    keys: Any
    document_hash: Any
    text_hash: Any
    num_tokens: np.ndarray
    set_sizes: Any
    words: np.ndarray | None
    counts: TokenCounts
    without_spots: int
    missing: int
    only_common: int
    keyless: int
    stored: Fetching | None = None


@dataclass
class Sketcher:
    """Streams documents through the first stages.

    Parameters
    ----------
    recipe : Recipe
    runtime : Runtime
    clock : Clock
    statistics : Frequencies, optional
        What the method weighs by, or the common shingles that are left out, if they are known.
    first_pass : FirstPass, optional
        What it is counted in, if it is not.
    spool : optional
        Where shingles wait for verification.
    store : SketchStore, optional
        What takes the sketches and all else that a file of sketches has of each document.
    hashed : bool
        Fingerprint whole token sequences, by which documents of the same words are found; and, unless sketches are to
        be stored, whole texts, by which identical ones are found.
    max_bytes : int, optional
        Text read at a time.
    number : int
        A number that no other sketcher of the job has.
    spare : optional
        An empty spool, if common shingles are left out. It takes the other ones, and the place of `spool`.
    alone : bool
        Whether no other sketcher works on documents of the job. Then the words of groups are counted from that of the
        first document: it is 0, and mixing it in changes nothing, so that documents of one value cost no more.
    equal : EqualUnits, optional
        What takes hashes and places of units, if equal ones alone are looked for.
    sized : bool
        Whether the number of distinct shingles of each unit is kept.
    """

    recipe: Recipe
    runtime: Runtime
    clock: Clock
    statistics: Frequencies | None = None
    first_pass: FirstPass | None = None
    spool: Waiting | None = None
    store: SketchStore | None = None
    hashed: bool = True
    max_bytes: int | None = None
    number: int = 0
    spare: Waiting | None = None
    equal: EqualUnits | None = None
    alone: bool = False
    sized: bool = False
    told: bool = field(default=False, init=False)
    _group_words: GroupWords = field(init=False)
    _keys_leave: bool = field(default=False, init=False)  # for host memory, as soon as they are made

    def __post_init__(self) -> None:
        self._group_words = GroupWords(self.recipe, self.alone)

    def sketch_all(self, sources: Sources, *, columns: Sequence[str] = ()) -> Sketched:
        """Sketch all documents, the reference set before the input; keep some columns of the input.

        A method that needs statistics of all has its recipe changed here: it names them from then on.

        Raises
        ------
        InputError
            If no document can be read, or their ids are not right.
        """
        with self.clock.stage("sketch"):
            known, sketches = self._sketch_each(sources, columns)
            if sketches.documents == 0:
                check_skipped(sources.documents.skipped)
            ids = sources.joined_ids(known.ids, sketches.ids)
        if self.first_pass is not None:
            with self.clock.stage("weigh"):
                self._weigh(sketches)  # of the reference set too, whose keys come first
        sketched = self._joined(known, sketches, ids, sources)
        if self.spare is not None:
            with self.clock.stage("weigh"):
                self._leave_out_common(sketched)
        return sketched

    def sketch_part(self, part: Sources, *, columns: Sequence[str] = ()) -> Sketched:
        """Sketch a part of the documents, which may be none; ids are those of the part, and are not compared."""
        known, sketches = self._sketch_each(part, columns)
        return self._joined(known, sketches, ids_of(part.documents, sketches.ids), part)

    def _sketch_each(self, sources: Sources, columns: Sequence[str]) -> tuple[Sketches, Sketches]:
        """Sketch the reference set, if there is one, and the input; keep some columns of the input."""
        most = batch_bytes(self.recipe, self.runtime) if self.max_bytes is None else self.max_bytes
        known = sketches = Sketches()
        for number, documents in enumerate(sources.in_order, self.number):
            check_rows(sketches.documents + (documents.num_rows or 0), "documents")  # which files say, or nobody yet
            own = columns if documents is sources.documents else ()
            wanted = [*own, *self.recipe.compared_columns]
            units = units_in(
                documents,
                self.recipe,
                wanted,
                most,
                at_least_one=self.store is not None,
                with_gaps=self._takes_gaps,
            )
            staged = (self._piece(some, text, number) for some, text in self.runtime.staged(units))
            if self.equal is not None:
                self.equal.end_reference()
            known, sketches = sketches, self._sketch(staged, sketches, lambda: sources.num_rows, own)
            for name in ("stripped_pages", "replaced_text", "garbled_text", "left_out_records"):
                setattr(sketches, name, getattr(documents, name))
        return known, sketches

    @property
    def _takes_gaps(self) -> bool:
        """Whether bytes without words may follow a unit in its row; see `divided`."""
        recipe = self.recipe
        by_words = recipe.shingles.tokens == "words" and recipe.shingles.fold is None
        return self.equal is not None and by_words and not recipe.method.equal_by and self.runtime.backend != "gpu"

    def _sketch(
        self, pieces: Iterator[_UnitPiece], known: Sketches, total: Callable[[], int | None], columns: Sequence[str]
    ) -> Sketches:
        """Sketch units, after those of another source, and keep some columns.

        `total` returns the expected number of all documents.
        """
        before, units_before = known.documents, self._num_units(known)
        kept = Sketches(
            keys=known.keys,
            document_hashes=known.document_hashes,
            text_hashes=known.text_hashes,
            num_tokens=known.num_tokens,
            set_sizes=known.set_sizes,
            words=known.words,
            columns={name: [] for name in columns},
        )
        for part in self.runtime.map(self._summarise, pieces, lambda piece: begin_tokens(piece.text, self.recipe)):
            try:
                self._add(kept, part, self._expected(kept, part, total()))
            except DiskFullError as error:
                done = self._num_units(kept) - before + len(part.num_tokens)
                share = kept.shingles + part.num_shingles
                more = _more_shingles(share, done, before, total())
                if more is None:
                    raise
                folder, needed, why = error.told
                raise disk_full(folder, needed + 8 * more, why, about=True) from None
            ended = part.ended
            del part  # the next one needs the room
            if ended is None:
                continue
            batch = ended.batch
            if ended.places is not None and self.equal is not None:
                kept.document_tokens.append(self.equal.end_batch(ended.places, batch.num_rows))
            elif ended.places is not None:
                kept.places.append(ended.places._replace(owner=ended.places.owner + before + kept.documents))
                check_rows(len(kept.num_tokens), "units")
            for name, values in kept.columns.items():
                values.append(batch.columns[name])
            kept.ids.append(batch.ids)
            kept.documents += batch.num_rows
            if self.store is not None:
                self.store.add(ids=ended.ids, **ended.columns)
                if self.store.full:
                    self.store.write(self.recipe)
            check_rows(before + kept.documents, "documents")
            kept.text_bytes += int(batch.text.offsets[-1] - batch.text.offsets[0])
            kept.null_text += batch.num_null
            self.clock.report("sketch", before + kept.documents, total())
            self._look_ahead(kept, before, total())
        kept.units = self._num_units(kept) - units_before
        return kept

    def _num_units(self, kept: Sketches) -> int:
        """Return how many units have been added."""
        return len(kept.num_tokens) if self.equal is None else self.equal.num_units

    def _expected(self, kept: Sketches, part: _UnitSummary, total: int | None) -> int | None:
        """Return about how many units there will be in all, if the documents are as those read so far."""
        if total is None or not self.recipe.unit.divides or part.ended is None:
            return total
        documents = kept.documents + part.ended.batch.num_rows
        return total * (self._num_units(kept) + len(part.num_tokens)) // max(1, documents)

    def _piece(self, units: Units, text: Ragged, number: int) -> _UnitPiece:
        """Return all units of a batch of source `number`, with the words of their groups."""
        span, keys, keyless = Span.of_documents(units.text.offsets, units.names), None, 0
        if self.recipe.method.equal_by:
            columns = [units.batch.columns[name] for name in self.recipe.method.equal_by]
            keys, keyless = key_hashes(columns, self.recipe.material, number, units.batch.first_row)
        return _UnitPiece(units, span, text, *self._group_words.of(units, number), keys, keyless)

    def _look_ahead(self, kept: Sketches, before: int, total: int | None) -> None:
        """Say in one line, once, that the temporary disk will hardly do; the job goes on until it does not."""
        more = _more_shingles(kept.shingles, kept.documents, before, total)
        if self.spool is None or self.runtime.backend == "gpu" or self.told or not more:
            return
        left = room(self.spool.folder)
        if left is not None and 8 * more > left:
            self.told = True
            shown, way = another_disk(self.spool.folder)
            log.warning(
                "%s: temporary files will take about %s more, and %s are free; %s",
                shown,
                size(8 * more),
                size(left),
                way.replace("temp_dir=...", "--temp-dir"),
            )

    def _weigh(self, sketches: Sketches) -> None:
        """Sketch the documents that waited for statistics of all documents."""
        assert self.first_pass is not None
        report = partial(self.clock.report, "weigh")
        self.statistics, parts = self.first_pass.finish(self.recipe, report)
        self.recipe, _ = self.recipe.with_statistics(self.statistics)
        method, seed = self.recipe.method, self.recipe.seed
        words = sketches.words.take(np.uint64)
        sketches.words.append(words)
        for found in parts:
            keys = method.keys(found, seed=seed, backend=self.runtime.backend)
            if self.store is None:
                begin = len(sketches.keys)
                if len(words):
                    keys = method.keys_apart(keys, *same_device(keys, words[begin : begin + len(keys)]))
                sketches.keys.append(keys)
                continue
            kept = method.stored(found, seed=seed, backend=self.runtime.backend)
            keys, kept = fetched([keys, kept])
            self.store.add(keys=keys, sketches=kept)
            if self.store.full:
                self.store.write(self.recipe)
        self.first_pass.close()

    def _leave_out_common(self, sketched: Sketched) -> None:
        """Leave common shingles out of what waits. Documents that have no others are made unlike all documents."""
        spool: Any = self.spool
        found = common_shingles(spool, self.recipe, self.runtime)
        found.leave_out(spool, self.spare, self.runtime)
        self.spool, self.statistics, self.recipe = self.spare, found.frequencies, found.settled(self.recipe)
        alone = np.flatnonzero((np.diff(found.offsets) == 0) & (sketched.num_tokens > 0))
        _set_alone(sketched.document_hashes, alone, alone)
        sketched.counts.common_shingles = len(found.frequencies)
        sketched.counts.only_common = int(np.count_nonzero(alone >= sketched.num_known))

    def _summarise(self, piece: _UnitPiece) -> _UnitSummary:
        """Run the first stages for some documents; has no effect on the sketcher."""
        recipe, method, backend = self.recipe, self.recipe.method, self.runtime.backend
        text = text_of(piece.text, piece.span.first, piece.span.last)
        names = piece.span.ids[piece.span.first : piece.span.last]
        words = None if piece.words is None else piece.words[piece.span.first : piece.span.last]
        tokens, counts = count_tokens(text, recipe, backend, names)
        shingles, elements, num_shingles, without_spots = None, tokens, 0, 0
        if self.spool is not None or (isinstance(method, Sketch) and method.elements == "shingles"):
            shingles, without_spots = count_shingles(tokens, recipe, backend)
            elements, num_shingles = tokens if method.elements == "tokens" else shingles, len(shingles.values)
        measured = sketch = keys = hashes = of_texts = None
        common: Any = None if recipe.ignore_common is None else self.statistics
        only_common = 0
        if self.first_pass is not None:
            measured = self.first_pass.measure(elements, backend)
        elif isinstance(method, Sketch):
            sketch = method.sketch(elements, seed=recipe.seed, statistics=self.statistics, backend=backend)
            keys = method.keys(sketch, seed=recipe.seed, backend=backend)
            if self.store is not None:  # which takes the words as well
                sketch = method.stored(sketch, seed=recipe.seed, backend=backend)
            elif words is not None:
                keys = method.keys_apart(keys, *same_device(keys, words))
        waiting = None
        if self.spool is not None and shingles is not None:
            waiting = method.measure.waiting(shingles if words is None else apart(shingles, words), backend)
            if common is not None:
                waiting = without_common(waiting, common.tokens)
        if self.hashed and method.equal_by is None:
            hashes = kernel(sequences, backend)(tokens.values, tokens.offsets, recipe.material.documents)
        elif self.hashed:
            hashes = whole_text_hashes(text, recipe, backend)
        num_tokens, set_sizes = np.diff(self.runtime.fetch(tokens.offsets)), None
        if self.hashed and self.store is None:
            ends = piece.batch.ends
            if ends is not None:
                ends = ends[piece.span.first : piece.span.last] - piece.batch.text.offsets[piece.span.first]
            of_texts = text_hashes_of(text, recipe, backend, ends)
            if not num_tokens.all() and piece.batch.places is None:  # a part without words is never cut
                mark_wordless(hashes, of_texts, piece.batch.text, np.flatnonzero(num_tokens == 0), piece.span.first)
                if recipe.empty == EQUAL and hashes is not None:
                    (blank,) = same_device(hashes, np.flatnonzero(self.runtime.fetch(of_texts) == BLANK))
                    hashes[blank, 0], hashes[blank, 1] = BLANK, WORDLESS
        if piece.keys is not None and hashes is not None:
            (hashes,) = same_device(hashes, piece.keys[piece.span.first : piece.span.last])
        if words is not None and hashes is not None:
            hashes[:, 0] ^= same_device(hashes, words)[0]
        if common is not None and waiting is not None:
            alone = np.flatnonzero((np.diff(self.runtime.fetch(waiting.offsets)) == 0) & (num_tokens > 0))
            first = (self.number << SOURCE_BITS) + piece.batch.batch.first_row + piece.span.first
            _set_alone(hashes, alone, first + alone)
            only_common = len(alone)
        if shingles is not None and (self.sized or (self.store is not None and method.elements == "shingles")):
            set_sizes = kernel(distinct, backend)(shingles.values, shingles.offsets)
        found = measured, num_shingles, waiting, sketch, keys, hashes, of_texts, num_tokens, set_sizes, words
        ended = piece.batch if piece.span.last == len(piece.batch.text) else None
        missing, keyless = (0, 0) if ended is None else (piece.missing, piece.keyless)
        summary = _UnitSummary(ended, *found, counts, without_spots, missing, only_common, keyless)
        if self.store is None and self.equal is None and not self._keys_leave:
            return summary
        return summary._replace(stored=Fetching(list(self._columns_of(summary).values())))

    def _columns_of(self, part: _UnitSummary) -> dict[str | int, Any]:
        """Return what is kept of some documents where they are computed; what was counted has numbers."""
        columns = {"keys": part.keys, "document_hash": part.document_hash}
        if self.store is None:
            columns["text_hash"] = part.text_hash
            return {name: array for name, array in columns.items() if array is not None}
        columns["sketches"] = part.sketch
        columns |= {"num_shingles": part.set_sizes, WITHIN: part.words}
        counted = [] if self.first_pass is None else self.first_pass.on_host(part.measured)
        given: dict[str | int, Any] = {name: array for name, array in columns.items() if array is not None}
        return given | dict(enumerate(counted))

    def _add(self, kept: Sketches, part: _UnitSummary, total: int | None) -> None:
        """Keep the results for some documents, of about `total`."""
        if self.equal is not None:
            assert part.stored is not None
            found = dict(zip(self._columns_of(part), part.stored.get(), strict=True))
            self.equal.add(found["document_hash"], found["text_hash"], part.num_tokens)
        elif self.store is None:
            columns = self._columns_of(part)
            if part.stored is None and not self.runtime.keeps(sum(array.nbytes for array in columns.values())):
                self._keys_leave = True
                part = part._replace(stored=Fetching(list(columns.values())))
            arrays = list(columns.values()) if part.stored is None else part.stored.get()
            stacks: dict[Any, Stack] = {
                "keys": kept.keys,
                "document_hash": kept.document_hashes,
                "text_hash": kept.text_hashes,
            }
            for name, array in zip(columns, arrays, strict=True):
                stacks[name].append(array, total)
            if part.words is not None:
                kept.words.append(part.words, total)
        else:
            assert part.stored is not None
            found = dict(zip(self._columns_of(part), part.stored.get(), strict=True))  # `known` from now on
            self.store.add(num_tokens=part.num_tokens, **{str(n): found[n] for n in found if isinstance(n, str)})
        if self.first_pass is not None:
            self.first_pass.add(part.measured)
        if self.spool is not None and part.waiting is not None:
            self.spool.append(part.waiting)
        kept.shingles += part.num_shingles
        if self.equal is None:
            kept.num_tokens.append(part.num_tokens, total)
            if self.sized:
                kept.set_sizes.append(self.runtime.fetch(part.set_sizes), total)
        kept.tokens += int(part.num_tokens.sum())
        kept.invalid_utf8 += part.counts.invalid
        kept.only_dropped_words += part.counts.only_dropped_words
        kept.without_spots += part.without_spots
        kept.without_value += part.missing
        kept.without_key += part.keyless
        kept.only_common += part.only_common

    def _joined(self, known: Sketches, sketches: Sketches, ids: pa.Array, sources: Sources) -> Sketched:
        """Join the data of all documents, the reference set before the input."""
        return Sketched(
            num_known=known.units,
            num_known_documents=known.documents,
            ids=ids,
            places=joined_places(known.places + sketches.places, self.recipe.unit),
            num_tokens=sketches.num_tokens.take(np.int64),
            columns={name: pa.chunked_array(values) for name, values in sketches.columns.items() if values},
            categories=sources.documents._orders_of(sketches.columns),
            keys=sketches.keys.take(np.uint64, self.recipe.method.key_columns),
            document_hashes=sketches.document_hashes.take(np.uint64, 2),
            text_hashes=sketches.text_hashes.take(np.uint64),
            counts=sketches,
            words=sketches.words.take(np.uint64),
            set_sizes=sketches.set_sizes.take(np.int64) if self.sized else None,
        )


def batch_bytes(recipe: Recipe, runtime: Runtime) -> int:
    """Return how much text of documents is read at a time."""
    kind = "bag" if recipe.method.sorts_elements else recipe.shingles.kind
    return runtime.batch_bytes(kind, recipe.method.device_bytes) // recipe.shingles.token_kind.density


class GroupWords:
    """Make the words of the groups of units, batch by batch, from the first batch of a job on.

    Parameters
    ----------
    recipe : Recipe
    alone : bool
        As that of `Sketcher`.
    """

    def __init__(self, recipe: Recipe, alone: bool) -> None:
        self._columns, self._alone = recipe.within, alone
        self._base: np.uint64 | None = None

    def of(self, units: Units, number: int) -> tuple[np.ndarray | None, int]:
        """Return the words of a batch of source `number`, and how many documents have no value; None without groups."""
        if not self._columns:
            return None, 0
        columns = [units.batch.columns[name] for name in self._columns]
        words, missing = group_words(columns, number, units.batch.first_row)
        if self._alone and len(words):
            if self._base is None:
                self._base = words[0]
            words ^= self._base
        return words if units.places is None else words[units.places.owner], missing


def _set_alone(hashes: Any, rows: np.ndarray, numbers: np.ndarray) -> None:
    """Make some documents unlike all others: each number is that of one document of the job."""
    places, words = same_device(hashes, rows, mix64_all(numbers.astype(np.uint64)))
    hashes[places, 0], hashes[places, 1] = words, ALONE


def is_compared(recipe: Recipe, num_tokens: np.ndarray) -> np.ndarray:
    """Return which units are compared: those of enough words, or all if keys make them equal."""
    return np.ones(len(num_tokens), bool) if recipe.method.equal_by else num_tokens >= recipe.unit.min_words


def can_repeat(recipe: Recipe, num_tokens: np.ndarray, text_hashes: np.ndarray, divided: bool) -> np.ndarray:
    """Return which units may count as copies of others: bool, a value per unit.

    Parameters
    ----------
    recipe : Recipe
    num_tokens, text_hashes : arrays, a value per unit
    divided : bool
        Whether units are parts of documents. Those of too few words are nobody's copies, and blank documents neither.
    """
    if divided:
        return num_tokens >= recipe.unit.min_words
    if recipe.method.equal_by or recipe.empty == EQUAL:
        return np.ones(len(num_tokens), bool)
    return (num_tokens > 0) | (text_hashes != BLANK)


def text_hashes_of(text: Ragged, recipe: Recipe, backend: str | None, ends: np.ndarray | None = None) -> Any:
    """Fingerprint whole texts: uint64, on the backend's device; see `kernels/texts.py`.

    `ends` are those of `Units`, for the rows of `text`.
    """
    run, polynomial = kernel(texts, backend), recipe.material.documents[0]
    if ends is None:
        return run(text.values, text.offsets, polynomial)
    bounds = np.empty(2 * len(ends) + 1, np.int64)  # units, and what is between
    bounds[::2], bounds[1::2] = text.offsets, ends
    return run(text.values, bounds, polynomial)[::2].copy()


def whole_text_hashes(text: Ragged, recipe: Recipe, backend: str | None) -> Any:
    """Fingerprint whole texts by two words: uint64, shape (rows, 2), on the backend's device."""
    run, polynomials = kernel(texts, backend), recipe.material.documents
    words = [run(text.values, text.offsets, polynomial) for polynomial in polynomials]
    return array_module(words[0]).stack(words, axis=1)


def mark_wordless(document_hashes: Any, text_hashes: Any, text: Ragged, rows: np.ndarray, first: int = 0) -> None:
    """Write what documents without words count as into both arrays of hashes: see `WORDLESS` and `BLANK`.

    Parameters
    ----------
    document_hashes, text_hashes : arrays, a row for each document
    text : Ragged of uint8
        In host memory. Document i is ``text[first + i]``.
    rows : array of int64
        The documents that have no words.
    """
    blank = np.fromiter((is_blank(text[first + row].tobytes()) for row in rows.tolist()), bool, len(rows))
    blank_rows, others = same_device(text_hashes, rows[blank], rows[~blank])
    text_hashes[blank_rows] = BLANK
    document_hashes[others, 0] = text_hashes[others]
    document_hashes[others, 1] = WORDLESS


def is_blank(text: bytes) -> bool:
    """Tell whether a text is empty or nothing but white space and borders between columns."""
    return not to_readable(to_string(text)).strip()


def text_of(text: Ragged, first: int, last: int) -> Ragged:
    """Take rows `first` to `last`; in host memory, without the values of other rows, as they may have to be copied."""
    if not isinstance(text.offsets, np.ndarray):
        if first == 0 and last == len(text):
            return text
        offsets, on_host = text.offsets[first : last + 1], known(text.offsets)
        if on_host is not None:
            know(offsets, on_host[first : last + 1])
        return Ragged._trusted(text.values, offsets)
    offsets = text.offsets[first : last + 1]
    if offsets[0] == 0 and offsets[-1] == len(text.values):
        return Ragged._trusted(text.values, offsets)
    values, offsets = text.values[offsets[0] : offsets[-1]], offsets - offsets[0]
    offsets.flags.writeable = False  # like the offsets of a whole batch: kernels are compiled for one kind of array
    return Ragged._trusted(values, offsets)


def _more_shingles(shingles: int, documents: int, before: int, total: int | None) -> int | None:
    """About how many shingles are to come, by those of the documents that were read after `before` earlier ones."""
    if total is None or documents == 0:
        return None
    return round(shingles / documents * max(0, total - before - documents))
