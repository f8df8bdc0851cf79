"""The stages of the sampled check of recall: some documents are compared with all others, as `recall` says.

    draw       of a slice: its first documents in random order
    drawn      one task: the first of all slices; their shingles are requested
    sampled    one task: the sample, of as many of them as it may have
    near       of a slice: possible partners of the sample
    nearest    one task: the first partners of all; the sets of both ends are requested
    check      one task: the pairs that reach the threshold, and which of them were found

What is held grows with the sample, which `recall.LONGEST` and `recall.PARTNERS` bound, and not with the documents.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import overlap

from ..data import Pairs, Ragged
from ..documents.slices import Slice
from ..stages.joining import SpooledRows
from ..stages.recall import (
    Sample,
    SampledPartners,
    SampledSearch,
    draw as draw_first,
    found_of,
    listed_of,
    sample_of,
    shares_of,
)
from .candidates import CROWDED, representatives
from .columns import load, rows_of, save
from .deciding import are_set
from .layout import RANKS, Layout
from .naming import REMOVED
from .pairs import PAIRS, WANTED, answered_keys, answered_sets, ask, comparing, written_answers
from .sizes import Counts, Exchange, Shape
from .sketching import ORDER, ROWS, shingles_of
from .work import Files, file_name

DRAWN = pa.schema([("rank", pa.int64()), ("order", pa.uint64())])
SAMPLE = pa.schema([("rank", pa.int64()), ("size", pa.int64()), ("need", pa.int64())])
SETS = pa.schema([("shingle", pa.uint64())])
NEAR = pa.schema([("sampled", pa.int64()), ("rank", pa.int64()), ("order", pa.uint64())])


def written(counts: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write."""
    c, slices = counts.checked, shape.slices
    found = [
        Exchange.of("draw drawn", DRAWN, c.drawn_of_slices, slices - shape.known),
        Exchange.of("drawn drawn", DRAWN, c.drawn, 1),
        Exchange.of("drawn wanted", WANTED, c.drawn, 1, slices),
        written_answers("drawn-sets", c.drawn, c.drawn_shingles, shape, 1),
        Exchange.of("sampled sample", SAMPLE, c.sampled, 1),
        Exchange.of("sampled sets", SETS, c.sampled_shingles, 1),
        Exchange.of("near near", NEAR, c.near, slices),
        Exchange.of("nearest pairs", PAIRS, c.nearest, 1),
        Exchange.of("nearest wanted", WANTED, c.wanted, 1, slices),
        written_answers("near-sets", c.wanted, c.wanted_shingles, shape, 1),
    ]
    return [*found, written_answers("near-keys", c.wanted, None, shape, 1)] if shape.tables else found


def draw(files: Files, number: int, copies: list[str], layout: Layout, num_sampled: int) -> None:
    """Save the first `num_sampled` documents of a slice in random order."""
    rows = representatives(files, number, copies)
    sizes, order = load(files.place, file_name("sketch", number, "rows"), ROWS)["size"][rows], _order(files, number)
    ranks = layout.ranks_of(files, number)
    save(files, "drawn", _first(ranks[rows], sizes, order[rows], num_sampled))


def drawn(files: Files, names: list[str], layout: Layout, num_sampled: int) -> None:
    """Save the first documents of all slices, and ask for what waits of them."""
    found = {name: np.empty(0, kind) for name, kind in (("rank", np.int64), ("order", np.uint64))}
    for name in names:
        both = {column: np.append(found[column], new) for column, new in load(files.place, name, DRAWN).items()}
        found = _first(both["rank"], np.zeros_like(both["rank"]), both["order"], num_sampled)
    save(files, "drawn", found)
    ask(files, np.sort(found["rank"]), layout)


def _first(ranks: np.ndarray, sizes: np.ndarray, order: np.ndarray, number: int) -> dict[str, np.ndarray]:
    """The columns of what is drawn of some documents."""
    by_rank = np.argsort(ranks)
    first = by_rank[draw_first(np.arange(len(ranks)), sizes[by_rank], order[by_rank], number)]
    return {"rank": ranks[first], "order": order[first]}


def _order(files: Files, number: int) -> np.ndarray:
    """Words that put the documents of a slice in random order."""
    return load(files.place, file_name("sketch", number, "order"), ORDER)["order"]


def sampled(files: Files, names: list[str]) -> None:
    """Save the sample: its ranks in random order, and its sets; `names` are the files of what was answered."""
    shared = files.shared
    recipe, statistics = shared.settled()
    assert recipe.threshold is not None
    measure = recipe.method.measure.knowing(statistics)
    wanted = load(files.place, file_name("drawn", 0, "drawn"), RANKS)["rank"]
    with shared.start() as runtime, runtime.spool(shared.temporary) as spool:
        ranks, spool_rows = answered_sets(files, names, 0, spool, runtime)
        rows = np.searchsorted(ranks, wanted)
        sample = sample_of(rows, SpooledRows(spool, spool_rows), measure, recipe.threshold, runtime)
    need = np.zeros(len(sample.rows), np.int64) if sample.need is None else sample.need
    save(files, "sample", {"rank": ranks[sample.rows], "size": sample.sets.sizes, "need": need})
    save(files, "sets", {"shingle": sample.sets.values})


def _sample(files: Files) -> Sample:
    """The sample, whose rows are ranks."""
    columns = load(files.place, file_name("sampled", 0, "sample"), SAMPLE)
    values = load(files.place, file_name("sampled", 0, "sets"), SETS)["shingle"]
    sets = Ragged(values, np.append(0, np.cumsum(columns["size"])))
    need = columns["need"] if files.shared.recipe.method.measure.weighted else None
    return Sample(columns["rank"], sets, overlap.invert(sets.values, sets.offsets), need)


def near(files: Files, slice: Slice, copies: list[str], layout: Layout) -> None:
    """Save the first possible partners that the documents of a slice are of each sampled one."""
    recipe, sample = files.shared.recipe, _sample(files)
    assert recipe.threshold is not None
    rows = representatives(files, files.number, copies)
    ranks, order = layout.ranks_of(files, files.number), _order(files, files.number)
    with files.shared.start() as runtime:
        search = SampledSearch.of(sample, recipe.method.measure, recipe.threshold, runtime)
        for shingles, mine in shingles_of(files, files.number, slice, rows, runtime):
            search.look(runtime.fetch(shingles.sizes), partial(_run, shingles, ranks[mine], order[mine]))
    found = search.nearest
    save(files, "near", {"sampled": found.sampled, "rank": found.rows, "order": found.order})


def _run(
    shingles: Ragged, ranks: np.ndarray, order: np.ndarray, first: int, last: int
) -> tuple[Ragged, np.ndarray, np.ndarray]:
    """A run of some rows, with their ranks and their words."""
    return Ragged(shingles.values, shingles.offsets[first : last + 1]), ranks[first:last], order[first:last]


def nearest(files: Files, names: list[str], layout: Layout) -> None:
    """Save the pairs of the sample and the first partners of all slices, and ask for what is needed of both."""
    ranks = load(files.place, file_name("sampled", 0, "sample"), SAMPLE)["rank"]
    found = SampledPartners(len(ranks))
    for name in names:
        some = load(files.place, name, NEAR)
        found.add(some["sampled"], some["rank"], some["order"])
    pairs = Pairs.from_unsorted(ranks[found.sampled], found.rows)
    if files.shared.recipe.only_against:
        pairs = pairs.where(pairs.left < layout.num_known)
    save(files, "pairs", {"left": pairs.left, "right": pairs.right})
    ask(files, np.unique(np.concatenate([pairs.left, pairs.right])), layout)


def check(
    files: Files, sets: list[str], keys: list[str], crowded: list[str], listed: list[str], layout: Layout
) -> dict[str, Any]:
    """Verify the pairs, and see which of them were found.

    Parameters
    ----------
    sets, keys : lists of str
        Files of what was answered; no keys of a method that does not sketch.
    crowded : list of str
        Crowded documents, where crowds are not joined.
    listed : list of str
        All listed pairs.

    Returns
    -------
    dict
        `sampled`, what `recall.shares_of` says.
    """
    shared, place = files.shared, files.place
    recipe = shared.recipe
    possible = load(place, file_name("nearest", 0, "pairs"), PAIRS)
    with comparing(files, sets, 0, layout) as (ranks, compare):
        left, right = (np.searchsorted(ranks, possible[name]) for name in PAIRS.names)
        true = compare(Pairs(left, right)).pairs
    in_ranks = Pairs(ranks[true.left], ranks[true.right])

    def are_listed() -> np.ndarray:
        return listed_of(rows_of(files.place, listed, 0, PAIRS.names), in_ranks, recipe.max_partners)

    of_keys = answered_keys(files, keys, 0)[1] if keys else None
    is_crowded = np.zeros(len(ranks), bool)
    for (some,) in rows_of(files.place, crowded, 0, CROWDED.names):
        is_crowded |= np.isin(ranks, some)
    both_crowded = is_crowded[true.left] & is_crowded[true.right]
    with shared.start() as runtime:
        found = found_of(true, of_keys, both_crowded, are_listed, recipe, runtime)
    removed = _are_removed(files, ranks)
    sample = load(place, file_name("sampled", 0, "sample"), SAMPLE)["rank"]
    return {"sampled": shares_of(in_ranks, found, removed[true.left] | removed[true.right], sample)}


def _are_removed(files: Files, ranks: np.ndarray) -> np.ndarray:
    """Which documents were removed; ranks ascend, and few of the bits of all are held at a time."""
    found, first = np.zeros(len(ranks), bool), 0
    for (words,) in rows_of(files.place, [file_name("decide", 0, "removed")], 0, REMOVED.names):
        begin, end = np.searchsorted(ranks, [64 * first, 64 * (first + len(words))])
        found[begin:end] = are_set(words, ranks[begin:end] - 64 * first)
        first += len(words)
    return found
