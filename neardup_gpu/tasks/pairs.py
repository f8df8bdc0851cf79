"""From candidates to verified pairs.

    pairs     of a range of right ranks: its pairs, each once; the sets of their documents are requested
    sets      of a slice: the requested sets of its documents, or their keys, for each range that requested them
    verify    of a range: its pairs that reach the threshold, or, where nothing is verified, how alike they are

Nothing is read at random: all requests to a slice come at once, and a slice is read from beginning to end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import gather
from neardup_gpu.kernels._sort import in_order

from ..data import Pairs, Ragged, look_up, numpy_of, runs_of
from ..documents.slices import Slice
from ..engine.arrays import concat_and_clear
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..methods.measures import Measure
from ..stages.conditions import alike_in_length
from ..stages.joining import SpooledRows
from ..stages.verification import Verified, in_host_memory, verify_apart, verify_spooled
from ..store.exchange import num_rows, read_arrays, read_partition
from .columns import lists_of, load, ragged_of, rows_of, schema_of
from .deciding import renumbered
from .dividing import divided, join_rows
from .layout import Layout
from .sizes import Counts, Exchange, Shape
from .sketching import ROWS, places_of_units, shingles_of
from .work import WAITING_BESIDE, Files, file_name

PAIRS = pa.schema([("left", pa.int64()), ("right", pa.int64())])
WANTED = pa.schema([("row", pa.int64()), ("rank", pa.int64())])
SETS = pa.schema([("rank", pa.int64()), ("shingles", pa.large_list(pa.uint64()))])
VERIFIED = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("resemblance", pa.float64())])

TOGETHER = 1 << 22
"""Pairs that are verified together, at most."""

TOGETHER_BYTES = 192
"""Memory of a pair while it is verified, without the sets of its documents; up to a quarter of the task's memory."""

ASKED_AT_ONCE = 1 << 17
"""Number of documents that are requested at once."""

FOUND_BYTES = 64
"""Memory that a pair takes each time that it is found, while those of a range are made distinct."""


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write."""
    ranges, found = shape.partitions, []
    if not shape.only_equal:
        found += [
            Exchange.of("pairs pairs", PAIRS, c.pairs, ranges, share=WAITING_BESIDE),
            Exchange.of("pairs wanted", WANTED, c.wanted, ranges, shape.slices),
            written_answers("sets", c.wanted, c.wanted_shingles if shape.verifies else None, shape, ranges),
        ]
    return [
        *found,
        Exchange.of("verify left", VERIFIED, c.verified, ranges, ranges, WAITING_BESIDE),
        Exchange.of("verify right", VERIFIED, c.verified, ranges, share=WAITING_BESIDE),
    ]


def written_answers(stage: str, wanted: int, shingles: int | None, shape: Shape, askers: int) -> Exchange:
    """Return the size of the files of documents that others ask for: their shingles, or keys if `shingles` is None."""
    given = wanted, shape.slices, askers
    more = 8 * (shape.divides and not shape.inside) * wanted  # which document a part is of
    if shingles is None:
        return Exchange(stage, "keys", wanted, (8 + 8 * shape.keys) * wanted + more, 2, *given[1:])
    return Exchange.of(f"{stage} sets", SETS, *given, more=8 * shingles + more)


def pairs(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Save the pairs of a range of right ranks that were found as often as they need, and ask for their documents.

    Where what was found does not fit, it is divided by the pairs, those of one rank too, and waits in a temporary file
    for its part.

    Memory: 64 bytes for each time that a pair is found, up to a quarter of the task's memory, and 24 bytes per
    requested document.
    """
    begin, stop = layout.bounds[files.number : files.number + 2].tolist()
    wanted, number = np.empty(0, np.int64), layout.num_rows
    most = max(1, files.shared.task_memory // (4 * FOUND_BYTES))

    def read() -> Iterator[list[np.ndarray]]:
        for right, left, needed in rows_of(files.place, names, files.number, ("right", "left", "needed")):
            new = right >= layout.num_known  # two documents of a reference set are no pair
            if files.shared.recipe.only_against:
                new &= left < layout.num_known
            yield [(right[new] - begin) * number + left[new], needed[new].astype(np.int64)]

    found = num_rows(files.place, names, files.number)
    with files.exchange("pairs", PAIRS, 1, WAITING_BESIDE) as writer:
        for part in divided(read, found, 2, 0, (stop - begin) * number, most, files.shared.temporary):
            left, right = _often_enough(join_rows(part.rows, (np.int64, np.int64)), begin, number)
            writer.add_to(0, {"left": left, "right": right})
            wanted = _with(wanted, np.concatenate([left, right]))
            del left, right
    ask(files, wanted, layout)
    return {"pairs": writer.close().num_rows}


def _often_enough(found: list[np.ndarray], begin: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(left, right) of the pairs that are there as often as they need, in order, each once; of (pair, needed), which
    are let go of. A pair is its right rank, less `begin`, times `number`, and its left rank."""
    pairs, needed = found
    found.clear()
    packed, order = in_order(pairs.view(np.uint64))
    del pairs
    begins, times = runs_of(packed)
    packed = packed[begins[times >= needed[order[begins]]]]
    del order, begins, times, needed
    right, left = (each.astype(np.int64) for each in np.divmod(packed, np.uint64(number)))
    by_left = np.argsort(left, kind="stable")
    return left[by_left], right[by_left] + begin


def _with(ranks: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return distinct ascending ranks, with more ranks added. These may be present already, and repeated."""
    more = np.unique(more)
    found = np.concatenate([ranks, more[~look_up(ranks, more)[1]]])
    found.sort(kind="stable")
    return found


def ask(files: Files, ranks: np.ndarray, layout: Layout) -> None:
    """Ask for documents, by their slices."""
    with files.exchange("wanted", WANTED, layout.num_slices) as writer:
        for first in range(0, len(ranks), ASKED_AT_ONCE):
            some = ranks[first : first + ASKED_AT_ONCE]
            slices, rows = layout.slice_of(layout.numbers_of(files, some))
            writer.add(slices, {"row": rows, "rank": some})


def read_requests(files: Files, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, rank, number of the file of requests) of what is requested of a slice, in the order of rows."""
    found = [read_arrays(files.place, [name], files.number, WANTED) for name in names]
    who = np.repeat(np.arange(len(found)), [len(each["row"]) for each in found])
    rows, ranks = (np.concatenate([np.empty(0, np.int64), *(each[name] for each in found)]) for name in ("row", "rank"))
    order = np.argsort(rows, kind="stable")
    return rows[order], ranks[order], who[order]


def sets(files: Files, names: list[str], slice: Slice) -> None:
    """Answer requests for documents of a slice with their sets."""
    rows, ranks, who = read_requests(files, names)
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(files.exchange("sets", _with_facts(files, SETS), len(names)))
        if len(rows) == 0:
            return
        runtime = stack.enter_context(files.shared.start())
        for shingles, wanted in shingles_of(files, files.number, slice, np.unique(rows), runtime):
            begin, end = np.searchsorted(rows, [wanted[0], wanted[-1] + 1])
            values, offsets = runtime.fetch(shingles.values), runtime.fetch(shingles.offsets)
            found = Ragged(*gather.cpu(values, offsets, np.searchsorted(wanted, rows[begin:end])))
            columns = {"rank": ranks[begin:end], "shingles": lists_of(found)}
            writer.add(who[begin:end], columns | _facts_of(files, rows[begin:end]))


def keys(files: Files, names: list[str]) -> None:
    """Answer requests for documents of a slice with their keys."""
    rows, ranks, who = read_requests(files, names)
    of_slice = load_keys(files, files.number)
    with files.exchange("keys", _with_facts(files, keys_schema(files)), len(names)) as writer:
        writer.add(who, {"rank": ranks, "keys": of_slice[rows]} | _facts_of(files, rows))


def _facts_schema(files: Files) -> pa.Schema:
    """Return the schema of the facts that decide which documents are compared: numbers of tokens, and owners of units.

    Owners are numbers that no two documents have in common.
    """
    recipe = files.shared.recipe
    names = [] if recipe.length_ratio is None else ["num_tokens"]
    names += ["owner"] if recipe.unit.divides and not recipe.unit.inside else []
    return pa.schema([(name, pa.int64()) for name in names])


def _with_facts(files: Files, schema: pa.Schema) -> pa.Schema:
    """Return the schema of answers, with the facts that decide which documents are compared."""
    return pa.schema([*schema, *_facts_schema(files)])


def _facts_of(files: Files, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of `_facts_schema` of some rows of a slice."""
    found, names = {}, _facts_schema(files).names
    if "num_tokens" in names:
        found["num_tokens"] = load(files.place, file_name("sketch", files.number, "rows"), ROWS)["num_tokens"][rows]
    if "owner" in names:
        found["owner"] = (files.number << 40) + places_of_units(files, files.number).owner[rows]
    return found


def answered_facts(files: Files, names: Sequence[str], asker: int) -> dict[str, np.ndarray]:
    """Return the columns of `_facts_schema` of what was answered, by ascending rank."""
    schema = _facts_schema(files)
    if len(schema) == 0:
        return {}
    found = read_arrays(files.place, names, asker, schema.append(WANTED.field("rank")))
    order = np.argsort(found.pop("rank"))
    return {name: column[order] for name, column in found.items()}


def load_keys(files: Files, number: int) -> np.ndarray:
    """The keys of all documents of a slice."""
    schema = pa.schema([keys_schema(files).field("keys")])
    return load(files.place, file_name("sketch", number, "keys"), schema)["keys"]


def keys_schema(files: Files) -> pa.Schema:
    """The schema of ranks and keys."""
    return schema_of({"rank": np.empty(0, np.int64), "keys": no_keys(files)})


def no_keys(files: Files) -> np.ndarray:
    """The keys of no documents."""
    columns = files.shared.recipe.method.key_columns
    return np.empty((0, columns) if columns else 0, np.uint64)


def verify(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Verify the pairs of a range; `names` are the files of what was answered.

    Memory: that of verification; 192 bytes for each pair that is verified at once, up to a quarter of the task's
    memory; and 40 bytes per requested document. The sets of the documents are held in a temporary file.
    """
    name = file_name("pairs", files.number, "pairs")
    most = min(TOGETHER, max(1, files.shared.task_memory // (4 * TOGETHER_BYTES)))
    with contextlib.ExitStack() as stack:
        by_left = stack.enter_context(files.exchange("left", VERIFIED, layout.partitions, WAITING_BESIDE))
        own = stack.enter_context(files.exchange("right", VERIFIED, 1, WAITING_BESIDE))
        if num_rows(files.place, [name], 0) == 0:
            return {"verified": 0}
        ranks, compare = stack.enter_context(comparing(files, names, files.number, layout))
        for left, right in _at_once(rows_of(files.place, [name], 0, PAIRS.names), most):
            verified = compare(Pairs.from_unsorted(np.searchsorted(ranks, left), np.searchsorted(ranks, right)))
            a, b = ranks[verified.pairs.left], ranks[verified.pairs.right]
            columns = {"left": a, "right": b, "resemblance": verified.resemblance}
            by_left.add(layout.range_of(a), columns)
            own.add_to(0, columns)
    return {"verified": own.close().num_rows}


def no_pairs(files: Files, layout: Layout) -> dict[str, Any]:
    """Write no pairs, in place of `verify` and of what comes before it."""
    for what, partitions in (("left", layout.partitions), ("right", 1)):
        with files.exchange(what, VERIFIED, partitions):
            pass
    counted = ("found", "crowded", "large_buckets", "uncompared_pairs", "pairs", "verified")
    return {"looks": [0] * 4, **dict.fromkeys(counted, 0)}


def _at_once(pieces: Iterable[list[np.ndarray]], most: int) -> Iterator[list[np.ndarray]]:
    """Yield the same columns, `most` rows at a time, and the rest at the end."""
    held: list[list[np.ndarray]] = []
    number = 0
    for piece in pieces:
        while number + len(piece[0]) >= most:
            held.append([column[: most - number] for column in piece])
            piece = [column[most - number :] for column in piece]
            yield [np.concatenate(arrays) for arrays in zip(*held, strict=True)]
            held, number = [], 0
        held.append(piece)
        number += len(piece[0])
    if number:
        yield [np.concatenate(arrays) for arrays in zip(*held, strict=True)]


@contextlib.contextmanager
def comparing(
    files: Files, names: Sequence[str], asker: int, layout: Layout
) -> Iterator[tuple[np.ndarray, Callable[[Pairs], Verified]]]:
    """Provide the requested ranks, ascending, and a function that compares pairs of their places, in host memory."""
    shared = files.shared
    recipe, statistics = shared.settled()
    facts, ratio = answered_facts(files, names, asker), recipe.length_ratio

    def compared(pairs: Pairs) -> Pairs:
        if "owner" in facts:
            pairs = pairs.where(facts["owner"][pairs.left] != facts["owner"][pairs.right])
        if ratio is not None:
            pairs = pairs.where(alike_in_length(facts["num_tokens"], pairs.left, pairs.right, ratio))
        return pairs

    if not recipe.verifies:
        ranks, of = answered_keys(files, names, asker)

        def likeness(pairs: Pairs) -> Verified:
            pairs = compared(pairs)
            return Verified(pairs, recipe.method.likeness(of, pairs.left, pairs.right))

        yield ranks, likeness
        return
    with shared.start() as runtime, runtime.spool(shared.temporary) as spool:
        ranks, rows = answered_sets(files, names, asker, spool, runtime)
        measure, clock = recipe.method.measure.knowing(statistics), Clock(None)

        def compare_by(pairs: Pairs, measure: Measure) -> Verified:
            places, at = renumbered(np.concatenate([pairs.left, pairs.right]))  # of all places, few are of these pairs
            some = Pairs(at[: len(pairs)], at[len(pairs) :])
            own = SpooledRows(spool, rows[places])
            found = runtime.run(verify_spooled, own, some, measure, recipe.threshold, clock, runtime)
            found = in_host_memory(found, runtime)
            return Verified(Pairs(places[found.pairs.left], places[found.pairs.right]), found.resemblance)

        num_known = int(np.searchsorted(ranks, layout.num_known))
        yield ranks, lambda pairs: verify_apart(compare_by, compared(pairs), num_known, measure)


def answered_sets(
    files: Files, names: Sequence[str], asker: int, spool: Any, runtime: Runtime
) -> tuple[np.ndarray, np.ndarray]:
    """Put what was answered into a spool; returns the ranks, ascending, and the row of the spool of each."""
    parts = [np.empty(0, np.int64)]
    for batch in read_partition(files.place, names, asker):
        parts.append(numpy_of(batch.column("rank")).copy())  # what is not copied would keep the whole batch
        rows = ragged_of(batch)
        spool.append(Ragged(runtime.put(rows.values), runtime.put(rows.offsets)))
        del batch, rows
    ranks = concat_and_clear(parts, dtype=np.int64)
    order = np.argsort(ranks)
    return ranks[order], order


def answered_keys(files: Files, names: Sequence[str], asker: int) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of what was answered, ascending, and their keys."""
    found = read_arrays(files.place, names, asker, keys_schema(files))
    order = np.argsort(found["rank"])
    return found["rank"][order], found["keys"][order]
