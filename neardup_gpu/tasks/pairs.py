"""From candidates to verified pairs.

    pairs     of a range of right ranks: its pairs, each once; what is needed of their documents is asked for
    sets      of a slice: what is needed of its documents, for each who asked: what waits of them, or their keys
    verify    of a range: its pairs that reach the threshold, or, where nothing is verified, how alike they are

Nobody reads at random: what is asked of a slice is asked all at once, and a slice is read from beginning to end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import gather

from ..data import Pairs, Ragged, numpy_of
from ..engine.clock import Clock
from ..stages import Verified
from ..store.exchange import read_arrays, read_partition
from ..verification import in_host_memory, verify_spooled
from .columns import lists_of, load, ragged_of, save, schema_of
from .layout import Layout
from .sketching import shingles_of
from .work import Files, file_name

if TYPE_CHECKING:
    from ..documents.slices import Slice
    from ..engine.contract import Runtime

PAIRS = pa.schema([("left", pa.int64()), ("right", pa.int64())])
WANTED = pa.schema([("row", pa.int64()), ("rank", pa.int64())])
SETS = pa.schema([("rank", pa.int64()), ("shingles", pa.large_list(pa.uint64()))])
VERIFIED = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("resemblance", pa.float64())])

TOGETHER = 1 << 22
"""Pairs that are verified together."""


def pairs(files: Files, names: list[str], layout: Layout) -> dict[str, Any]:
    """Save the pairs of a range of right ranks that were found as often as they need, and ask for their documents.

    Memory: 48 bytes a pair.
    """
    begin, number = int(layout.bounds[files.number]), np.uint64(layout.num_rows)
    packed, times, needed = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint16)
    waiting: list[np.ndarray] = []
    waiting_needed: list[np.ndarray] = []

    def settle() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        new = np.concatenate([packed, *waiting])
        found, first, at = np.unique(new, return_index=True, return_inverse=True)
        counts = np.bincount(at[len(packed) :], minlength=len(found))
        counts[at[: len(packed)]] += times
        return found, counts, np.concatenate([needed, *waiting_needed])[first]

    for batch in read_partition(files.place, names, files.number):
        left, right, least = (numpy_of(batch.column(name)) for name in ("left", "right", "needed"))
        new = right >= layout.num_known  # two documents of a reference set are no pair
        waiting.append((right[new] - begin).astype(np.uint64) * number + left[new].astype(np.uint64))
        waiting_needed.append(least[new])
        if sum(map(len, waiting)) > max(len(packed), TOGETHER):
            packed, times, needed = settle()
            waiting, waiting_needed = [], []
    packed, times, needed = settle()
    packed = packed[times >= needed]
    left, right = (packed % number).astype(np.int64), (packed // number).astype(np.int64) + begin
    order = np.argsort(left, kind="stable")
    left, right = left[order], right[order]
    save(files, "pairs", {"left": left, "right": right})
    ask(files, np.unique(np.concatenate([left, right])), layout)
    return {"pairs": len(packed)}


def ask(files: Files, ranks: np.ndarray, layout: Layout) -> None:
    """Ask for documents, by their slices."""
    with files.exchange("wanted", WANTED, layout.num_slices) as writer:
        slices, rows = layout.slice_of(layout.numbers_of(files, ranks))
        writer.add(slices, {"row": rows, "rank": ranks})


def asked(files: Files, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, rank, number of who asks) of what is asked of a slice, in the order of rows."""
    found = [read_arrays(files.place, [name], files.number, WANTED) for name in names]
    who = np.repeat(np.arange(len(found)), [len(each["row"]) for each in found])
    rows, ranks = (np.concatenate([np.empty(0, np.int64), *(each[name] for each in found)]) for name in ("row", "rank"))
    order = np.argsort(rows, kind="stable")
    return rows[order], ranks[order], who[order]


def sets(files: Files, names: list[str], slice: Slice) -> None:
    """Answer who asked for documents of a slice with what waits of them."""
    rows, ranks, who = asked(files, names)
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(files.exchange("sets", SETS, len(names)))
        if len(rows) == 0:
            return
        runtime = stack.enter_context(files.shared.engine.start())
        for shingles, wanted in shingles_of(files, files.number, slice, np.unique(rows), runtime):
            begin, end = np.searchsorted(rows, [wanted[0], wanted[-1] + 1])
            values, offsets = runtime.fetch(shingles.values), runtime.fetch(shingles.offsets)
            found = Ragged(*gather.cpu(values, offsets, np.searchsorted(wanted, rows[begin:end])))
            writer.add(who[begin:end], {"rank": ranks[begin:end], "shingles": lists_of(found)})


def keys(files: Files, names: list[str]) -> None:
    """Answer who asked for documents of a slice with their keys."""
    rows, ranks, who = asked(files, names)
    of_slice = load_keys(files, files.number)
    with files.exchange("keys", keys_schema(files), len(names)) as writer:
        writer.add(who, {"rank": ranks, "keys": of_slice[rows]})


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

    Memory: what verification holds, 48 bytes for each pair that is verified at once, 16 for each document that was
    asked for; what waits of these goes to a temporary file.
    """
    found = load(files.place, file_name("pairs", files.number, "pairs"), PAIRS)
    left, right, total = found["left"], found["right"], 0
    with contextlib.ExitStack() as stack:
        by_left = stack.enter_context(files.exchange("left", VERIFIED, layout.partitions))
        own = stack.enter_context(files.exchange("right", VERIFIED, 1))
        if len(left) == 0:
            return {"verified": 0}
        ranks, compare = stack.enter_context(comparing(files, names, files.number))
        for begin in range(0, len(left), TOGETHER):
            some = (np.searchsorted(ranks, each[begin : begin + TOGETHER]) for each in (left, right))
            verified = compare(Pairs(*some))
            a, b = ranks[verified.pairs.left], ranks[verified.pairs.right]
            columns = {"left": a, "right": b, "resemblance": verified.resemblance}
            by_left.add(layout.range_of(a), columns)
            own.add_to(0, columns)
            total += len(a)
    return {"verified": total}


@contextlib.contextmanager
def comparing(
    files: Files, names: Sequence[str], asker: int
) -> Iterator[tuple[np.ndarray, Callable[[Pairs], Verified]]]:
    """The ranks that were asked for, ascending, and what compares pairs of their places, in host memory."""
    shared = files.shared
    recipe, statistics = shared.settled()
    if not recipe.verifies:
        ranks, of = answered_keys(files, names, asker)
        yield ranks, lambda pairs: Verified(pairs, recipe.method.likeness(of, pairs.left, pairs.right))
        return
    with shared.engine.start() as runtime, runtime.spool(shared.temporary) as spool:
        ranks, rows = answered_sets(files, names, asker, spool, runtime)
        measure, clock = recipe.method.measure.knowing(statistics), Clock(None)
        yield (
            ranks,
            lambda pairs: in_host_memory(
                runtime.run(verify_spooled, spool, rows, pairs, measure, recipe.threshold, clock, runtime), runtime
            ),
        )


def answered_sets(
    files: Files, names: Sequence[str], asker: int, spool: Any, runtime: Runtime
) -> tuple[np.ndarray, np.ndarray]:
    """Put what was answered into a spool; returns the ranks, ascending, and the row of the spool of each."""
    parts = [np.empty(0, np.int64)]
    for batch in read_partition(files.place, names, asker):
        parts.append(numpy_of(batch.column("rank")))
        rows = ragged_of(batch)
        spool.append(Ragged(runtime.put(rows.values), runtime.put(rows.offsets)))
    ranks = np.concatenate(parts)
    order = np.argsort(ranks)
    return ranks[order], order


def answered_keys(files: Files, names: Sequence[str], asker: int) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of what was answered, ascending, and their keys."""
    found = read_arrays(files.place, names, asker, keys_schema(files))
    order = np.argsort(found["rank"])
    return found["rank"][order], found["keys"][order]
