"""Pages of HTML: bytes a second of one thread, by the automaton and from a parser's tree; the whole command by each.

Pages are chosen at random, the same each time. Before anything is timed their tokens are compared: `same` is the share
of pages of which both ways give the same ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu.definitions import material
from neardup_gpu.documents.batches import ragged
from neardup_gpu.documents.joined_text import joined, visible
from neardup_gpu.kernels import tokens
from neardup_gpu.kernels._cpu import num_threads, set_num_threads

from .measure import SEED, SHUFFLE_SEED, Bench, figure, neardup, ratio
from .samples import by_turns

CORPORA = ("openjdk_html", "installguide_html")
PAGES = 2000
WAYS = {"automaton": False, "tree": True}


def part(bench: Bench) -> list[dict]:
    """Text of pages by both ways, and `neardup dedup` with `--html` and `--html tree`, in turns."""
    figures = []
    for name in CORPORA:
        path = bench.corpus(name)
        figures += rates(bench, name, path) + whole(bench, name, path)
    return figures


def rates(bench: Bench, name: str, path: Path) -> list[dict]:
    """MB of pages a second of one processor."""
    column = pq.read_table(path, columns=["html"])["html"]
    chosen = np.random.default_rng(SHUFFLE_SEED).permutation(len(column))[: max(10, bench.sized(PAGES))]
    pages = pa.concat_arrays(column.take(pa.array(chosen)).chunks)
    size, context = pages.nbytes / 1e6, {"corpus": name, "pages": len(pages)}
    threads = num_threads()
    set_num_threads(1)
    try:
        same = _share_alike(pages)
        seconds = by_turns(bench.repeat, {way: lambda tree=tree: visible(pages, tree) for way, tree in WAYS.items()})  # type: ignore[misc]
    finally:
        set_num_threads(threads)
    figures = [
        figure(f"text of pages, {way}", [size / each for each in seconds[way]], "MB/s of a core", same=same, **context)
        for way in WAYS
    ]
    times = ratio("text of pages, automaton, times tree", seconds["tree"], seconds["automaton"], **context)
    bench.target(f"text of {name}, times that from trees", times["median"], 10, least=True)
    bench.target(f"pages of {name} with the same tokens, share", same, 0.999, least=True)
    return [*figures, times]


def _share_alike(pages: pa.Array) -> float:
    """The share of pages of which both ways give the same tokens."""
    found = []
    for tree in WAYS.values():
        text = ragged(joined([visible(pages, tree)[0]])[0])
        values, offsets, _ = tokens.cpu(text.values, text.offsets, material(SEED).tokens)
        found.append([values[start:stop].tobytes() for start, stop in zip(offsets[:-1], offsets[1:], strict=True)])
    return round(float(np.mean([a == b for a, b in zip(*found, strict=True)])), 5)


def whole(bench: Bench, name: str, path: Path) -> list[dict]:
    """Seconds of `neardup dedup` on the pages, start-up included."""
    ways = {"automaton": ["--html"], "tree": ["--html", "tree"]}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(bench.repeat + 1):
        for way, flags in ways.items():
            run = neardup(path, bench.scratch / f"html-{way}", "--text-column", "html", *flags)
            seconds[way].append(run["seconds"])
    seconds = {way: each[1:] for way, each in seconds.items()}
    figures = [figure(f"neardup dedup --html, {way}", each, "s", corpus=name) for way, each in seconds.items()]
    times = ratio("neardup dedup --html, tree over automaton", seconds["tree"], seconds["automaton"], corpus=name)
    if name == CORPORA[0]:
        bench.target(f"dedup --html of {name}, times as fast as from trees", times["median"], 4, least=True)
    return [*figures, times]
