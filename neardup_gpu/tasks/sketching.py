"""The stage "sketch": a slice of the input through the first stages, and what is kept of it in files.

NUMBER-rows      num_tokens, and size: how many shingles wait of each document
NUMBER-units     where each unit is, if units are parts of documents: all files but those of ids have a row per unit
NUMBER-ids       id, and where the document lies, if it is of files: file and row
    NUMBER-named     a hash of the id and the row, by its upper bits, if ids are of a column
    NUMBER-order     a word of each document that puts them in random order, if recall is checked
NUMBER-skipped   rows that could not be read, if they are to be skipped
NUMBER-column    the column that says which document of a group stays, if one does
NUMBER-within    the word of each document's group, if only documents of equal values are compared
NUMBER-keys      keys, if the method sketches
    NUMBER-counters, NUMBER-beyond    the table in which shingles are counted, if the method compares these alone
    NUMBER-slots     the number of the counter of each shingle in their place, by ranges, where that is less
NUMBER-shingles  what waits for verification, if it waits in files
NUMBER-alike     words and text: the hash of each document's words, and that of its text
NUMBER-hashes    of documents that are not blank: a hash of what groups them and the row, by the upper bits of the hash;
                 the hash of the words, or the keys where nothing is verified
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._cpu import num_threads
from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels.rarity import SHARED_BITS

from ..data import Ragged, arrow
from ..documents.slices import Slice, extent_of
from ..documents.sources import Sources
from ..documents.units import NO_PLACES, Places, per_document, units_in
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.pieces import Span
from ..errors import InputError
from ..keep_rule import keep_columns
from ..methods.contract import Join, Sketch
from ..results.nothing_removed import sizes_of
from ..results.tables import SKETCH_COUNTS, as_json
from ..stages.common_shingles import without_common
from ..stages.conditions import WITHIN
from ..stages.recall import random_order
from ..stages.reread import chosen_text, waiting_of
from ..stages.sketching import Sketched, Sketcher, batch_bytes, can_repeat, is_compared, text_of
from ..store.exchange import ExchangeWriter, num_rows, read_partition
from ..store.spool import host
from .columns import (
    lists_of,
    load,
    partition_of,
    ragged_of,
    ranges_of,
    save,
    save_by_ranges,
    save_tables,
    storable,
    words_of,
)
from .joining import Counter, slots
from .sizes import Counts, Exchange, Shape
from .work import Files, file_name

ROWS = pa.schema([("num_tokens", pa.int64()), ("size", pa.int64())])
UNITS = pa.schema([(name, pa.from_numpy_dtype(values.dtype)) for name, values in NO_PLACES._asdict().items()])
ALIKE = pa.schema([("words", pa.list_(pa.uint64(), 2)), ("text", pa.uint64())])
GROUPS = pa.schema([(WITHIN, pa.uint64())])
ORDER = pa.schema([("order", pa.uint64())])
HASHES = pa.schema([("high", pa.uint64()), ("low", pa.uint64()), ("row", pa.int64())])
SLOTS = pa.schema([("slots", pa.uint32())])
SHINGLES = pa.schema([("shingles", pa.large_list(pa.uint64()))])
COUNTED = {"counters": pa.schema([("counters", pa.uint8())]), "beyond": pa.schema([("beyond", pa.uint32())])}
"""A table of counters: its two files."""


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stage writes."""
    n, slices = c.documents, shape.slices
    found = [
        Exchange.of("sketch rows", ROWS, n, slices),
        Exchange("sketch", "ids", c.owners or n, c.place_bytes, 3, slices),
        Exchange.of("sketch alike", ALIKE, n, slices),
        Exchange.of("sketch hashes", HASHES, c.present, slices, shape.partitions),
    ]
    if shape.keys:
        found.append(Exchange("sketch", "keys", n, 8 * shape.keys * n, 1, slices))
    if shape.spool:
        found.append(Exchange.of("sketch shingles", SHINGLES, n, slices, more=8 * c.shingles))
    if shape.checked:
        found.append(Exchange.of("sketch order", ORDER, n, slices))
    if shape.divides:
        found.append(Exchange.of("sketch units", UNITS, n, slices))
    if shape.counts_in_table(c):
        found += written_tables("sketch", slices * c.counters, slices, ranges_of(shape.partitions))
    elif shape.posts:
        found.append(Exchange.of("sketch slots", SLOTS, c.shingles, slices, ranges_of(shape.partitions)))
    return found


def written_tables(stage: str, counters: int, files: int, partitions: int = 1) -> list[Exchange]:
    """Return the sizes of files of tables of counters; `counters` is their number in all tables."""
    rows = {"counters": counters, "beyond": counters >> SHARED_BITS}
    return [Exchange.of(f"{stage} {what}", schema, rows[what], files, partitions) for what, schema in COUNTED.items()]


class _WaitingShingles:
    """Hold the shingles of one pass that later stages need: sizes of rows, and values in a file if these are counted.

    Shingles are counted in a table, or the numbers of their counters are written.
    """

    def __init__(
        self,
        folder: Path,
        writer: ExchangeWriter | None,
        counter: Counter | None,
        slots: ExchangeWriter | None,
        bits: int,
    ) -> None:
        self.folder, self._writer, self._counter, self._slots, self._bits = folder, writer, counter, slots, bits
        self._sizes: list[np.ndarray] = [np.empty(0, np.int64)]

    @property
    def sizes(self) -> np.ndarray:
        return np.concatenate(self._sizes)

    def append(self, rows: Ragged) -> None:
        if self._counter is not None:
            self._counter.add(rows)
        rows = Ragged(host(rows.values), host(rows.offsets))
        self._sizes.append(np.diff(rows.offsets))
        if self._writer is not None:
            self._writer.add_to(0, {"shingles": lists_of(rows)})
        if self._slots is not None:
            found = slots(rows, self._bits)
            width = (1 << self._bits) // self._slots.num_partitions
            self._slots.add(found // np.uint32(width), {"slots": found})


def sketch(files: Files, slice: Slice, of_input: bool, bits: int, in_table: bool, checked: bool) -> dict[str, Any]:
    """Sketch the documents of a slice. Memory: a batch, the slice's keys and ids, and rows that wait to be written.

    Parameters
    ----------
    slice : Slice
    of_input : bool
        Whether it is of the input, and not of a reference set.
    bits : int
        Of the table in which shingles are counted, if the method compares these alone.
    in_table : bool
        Whether they are counted here, and not only the numbers of their counters written.
    checked : bool
        Whether the recall is checked.

    Returns
    -------
    dict
        Counts of the slice; `sizes`, its documents by their number of words; `extent`, what its reading found;
        `id_type`, unless it is empty, and `id_span`, the least and the greatest, if they are integers; `waiting`, the
        number of shingles that wait; of columns that decide, `categories`, and what their `strings` look like.
    """
    shared = files.shared
    recipe, statistics = shared.settled()
    columns = keep_columns(recipe.keep) if of_input else []
    documents = slice.open()
    with contextlib.ExitStack() as stack:
        runtime = stack.enter_context(shared.start())
        waiting = None
        if recipe.verifies:
            writer = stack.enter_context(files.exchange("shingles", SHINGLES, 1)) if shared.spool else None
            counter = by_slots = None
            if isinstance(recipe.method, Join) and in_table:
                counter = Counter(bits, runtime)
            elif isinstance(recipe.method, Join):
                by_slots = stack.enter_context(files.exchange("slots", SLOTS, ranges_of(shared.partitions)))
            waiting = _WaitingShingles(shared.temporary, writer, counter, by_slots, bits)
        given = (recipe, runtime, Clock(None), statistics, None, waiting)
        sketcher = Sketcher(*given, number=files.number, sized=shared.sized)
        sketched = sketcher.sketch_part(Sources(documents), columns=columns)
        keys, hashes = runtime.fetch(sketched.keys), runtime.fetch(sketched.document_hashes)
        check_sizes(slice, sketched, shared.task_memory)
        if waiting is not None and counter is not None:
            for what, table in zip(("counters", "beyond"), counter.table, strict=True):
                save_by_ranges(files, what, table)
    sizes = np.zeros(len(hashes), np.int64) if waiting is None else waiting.sizes
    save(files, "rows", {"num_tokens": sketched.num_tokens, "size": sizes})
    if sketched.set_sizes is not None:
        save(files, "distinct", {"distinct": sketched.set_sizes})
    facts = save_documents(files, slice, documents, sketched)
    if columns:
        strings = {name: list(documents._strings(name)) for name in columns}
        facts |= {"strings": strings, "categories": sketched.categories}
    if sketched.columns:
        save_tables(files, "columns", [pa.table(sketched.columns)])
    if isinstance(recipe.method, Sketch):
        save(files, "keys", {"keys": keys})
    if recipe.within:
        save(files, WITHIN, {WITHIN: sketched.words})
    if checked:
        save(files, "order", {"order": random_order(hashes)})
    texts = runtime.fetch(sketched.text_hashes)
    save(files, "alike", {"words": hashes, "text": texts})
    present = is_compared(recipe, sketched.num_tokens)
    written = np.flatnonzero(can_repeat(recipe, sketched.num_tokens, texts, sketched.places is not None))
    _save_hashes(files, "hashes", hashes[written], written)
    present_rows = {"present": int(present.sum()), "waiting": int(sizes.sum()), "threads": num_threads()}
    return {**facts, "sizes": sizes_of(sketched.num_tokens), **present_rows}


def save_documents(files: Files, slice: Slice, documents: Any, sketched: Sketched) -> dict[str, Any]:
    """Write the ids of a slice and the rows that were skipped; return what is known of the slice once it was read.

    The files are those that end in "ids", "named", "skipped" and "units". The facts are counts, the number of units,
    the extent, and the type and the span of the ids.
    """
    if sketched.places is not None:
        save(files, "units", sketched.places._asdict())
    places = {name: storable(column) for name, column in documents.places().items()}
    save(files, "ids", {"id": storable(sketched.ids), **places})
    if has_names(slice):
        _save_hashes(files, "named", words_of(sketched.ids), np.arange(len(sketched.ids)))
    if documents.skipped is not None:
        save_tables(files, "skipped", [documents.skipped])
    facts: dict[str, Any] = {"id_type": sketched.ids.type} if len(sketched.ids) else {}
    if facts and pa.types.is_integer(sketched.ids.type):
        facts["id_span"] = list(pc.min_max(sketched.ids).as_py().values())
    facts |= {name: getattr(sketched.counts, name) for name in (*SKETCH_COUNTS, "left_out_records")}
    return {**facts, "units": len(sketched.num_tokens), "extent": extent_of(documents)}


def places_of_units(files: Files, number: int) -> Places:
    """Load the places of the units of a slice."""
    return Places(**load(files.place, file_name("sketch", number, "units"), UNITS))


def tokens_of_documents(files: Files, number: int) -> np.ndarray:
    """Load the number of tokens of each document of a slice, whatever units it has."""
    num_tokens = load(files.place, file_name("sketch", number, "rows"), ROWS)["num_tokens"]
    if not files.shared.recipe.unit.divides:
        return num_tokens
    documents = num_rows(files.place, [file_name("sketch", number, "ids")], 0)
    return per_document(places_of_units(files, number), num_tokens, documents)


def check_sizes(slice: Slice, sketched: Sketched, task_memory: int) -> None:
    """Refuse a document whose words alone, at 8 bytes each, are more than a task may hold."""
    ids = sketched.ids
    num_tokens = per_document(sketched.places, sketched.num_tokens, len(ids))
    if 8 * int(num_tokens.max(initial=0)) > task_memory:
        row = int(num_tokens.argmax())
        which = f"row {row} of it" if slice.ids_are_rows else f"document {as_json(ids[row])!r}"
        raise InputError(
            f"{slice.covers}: {which} has {num_tokens[row]:,} words, for which a task of task_memory="
            f"{task_memory / 1e6:,.0f}MB is too small; allow more, or leave that document out"
        )


def has_names(slice: Slice) -> bool:
    """Whether documents have ids of a column, which may come again; row numbers and paths do not."""
    return slice.source.key is not None and slice.source.format != "text"


def _save_hashes(files: Files, what: str, words: np.ndarray, rows: np.ndarray) -> None:
    """Write one or two words of each row, in the partition that the upper bits of the mixed first word name."""
    low = words[:, 1] if words.shape[1] > 1 else np.zeros(len(words), np.uint64)
    with files.exchange(what, HASHES, files.shared.partitions) as writer:
        partition = partition_of(mix64_all(words[:, 0]), files.shared.partitions)
        writer.add(partition, {"high": words[:, 0], "low": low, "row": rows})


def shingles_of(
    files: Files, number: int, slice: Slice, rows: np.ndarray, runtime: Runtime
) -> Iterator[tuple[Ragged, np.ndarray]]:
    """(what waits of them, their rows) of some rows of a slice, ascending: from its file, or again from the text."""
    if files.shared.spool:
        made = _from_file(files, number, rows, runtime)
    else:
        made = _from_text(files, number, slice, rows, runtime)
    first = 0
    for shingles in made:
        yield shingles, rows[first : first + len(shingles)]
        first += len(shingles)


def _from_file(files: Files, number: int, rows: np.ndarray, runtime: Runtime) -> Iterator[Ragged]:
    first = 0
    for batch in read_partition(files.place, [file_name("sketch", number, "shingles")], 0):
        found = _chosen(ragged_of(batch), first, rows)
        first += batch.num_rows
        if len(found):
            yield Ragged(runtime.put(found.values), runtime.put(found.offsets))


def _from_text(files: Files, number: int, slice: Slice, rows: np.ndarray, runtime: Runtime) -> Iterator[Ragged]:
    recipe, backend = files.shared.recipe, runtime.backend
    common = files.shared.settled()[1] if recipe.ignored else None
    words = load(files.place, file_name("sketch", number, WITHIN), GROUPS)[WITHIN] if recipe.within else None

    def made(text: Ragged, own: np.ndarray, span: Span) -> Ragged:
        some = None if words is None else words[own[span.first : span.last]]
        names = span.ids[span.first : span.last]
        waiting = waiting_of(text_of(text, span.first, span.last), names, some, recipe, backend)
        return waiting if common is None else without_common(waiting, common.tokens)

    first = 0
    for units in units_in(slice.open(), recipe, (), batch_bytes(recipe, runtime)):
        stop = first + len(units.text)
        begin, end = np.searchsorted(rows, [first, stop])
        found = chosen_text(units.text, rows[begin:end] - first)
        if len(found):
            text = Ragged(runtime.put(found.values), runtime.put(found.offsets))
            ids = units.ids.take(arrow(rows[begin:end] - first))
            span = Span.of_documents(found.offsets, ids)
            yield from runtime.map(partial(made, text, rows[begin:end]), [span])
        first = stop


def _chosen(batch: Ragged, first: int, rows: np.ndarray) -> Ragged:
    """Return the wanted rows of a batch that begins with row `first` of a slice."""
    begin, end = np.searchsorted(rows, [first, first + len(batch)])
    if end - begin == len(batch):
        return batch
    return Ragged(*gather.cpu(batch.values, batch.offsets, rows[begin:end] - first))
