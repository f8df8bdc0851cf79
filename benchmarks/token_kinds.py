"""Kinds of tokens: letters, lines, code and ids beside words, in MB of text per processor second and tokens per MB.

Words, letters and lines are those of bills and of a news corpus; code is the source of this package, by the names of
its files; ids are numbered words. Each kind agrees with `reference` on the first texts before it is timed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import neardup_gpu
from neardup_gpu import Recipe, Shingles
from neardup_gpu.documents.batches import ragged
from neardup_gpu.documents.joined_text import as_bytes
from neardup_gpu.kernels._cpu import num_threads, set_num_threads
from neardup_gpu.stages import Ragged, count_shingles, count_tokens, utf8
from neardup_gpu.stages.sketching import text_of

from .measure import Bench, figure
from .samples import by_turns

CORPORA = ("bills_116_small", "edinburgh_2500")
CHECKED = 2
"""Texts that are compared with `reference`."""


def part(bench: Bench) -> list[dict]:
    """Tokens, and tokens with their shingles, of each kind in turns, on one thread."""
    threads = num_threads()
    set_num_threads(1)
    try:
        return [each for name in CORPORA for each in _rates(bench, name)] + _of_code(bench)
    finally:
        set_num_threads(threads)


def _rates(bench: Bench, name: str) -> list[dict]:
    """Return the figures of words, letters, lines and ids of a corpus."""
    column = pq.read_table(bench.corpus(name), columns=["text"])["text"].combine_chunks()
    text = ragged(as_bytes(column, None).fill_null(b""))
    words = count_tokens(text, Recipe(), "cpu")[0]
    numbers = np.unique(words.values, return_inverse=True)[1].astype(np.int64)
    texts = dict.fromkeys(("words", "letters", "lines"), text)
    return _timed(bench, {**texts, "ids": Ragged(numbers.view(np.uint8), 8 * words.offsets)}, None, name)


def _of_code(bench: Bench) -> list[dict]:
    """Return the figures of words and code of the sources of this package."""
    files = sorted(Path(next(iter(neardup_gpu.__path__))).rglob("*.py"))
    text = utf8([path.read_bytes() for path in files])
    return _timed(bench, {"words": text, "code": text}, [path.name for path in files], "the source of neardup_gpu")


def _timed(bench: Bench, texts: dict[str, Ragged], names: list[str] | None, corpus: str) -> list[dict]:
    """Return MB per second of each kind of token, and with shingles of its usual size."""
    recipes = {kind: Recipe(shingles=Shingles(tokens=kind)) for kind in texts}
    calls, sizes = {}, {}
    for kind, text in texts.items():
        few, recipe = text_of(text, 0, CHECKED), recipes[kind]
        one, other = (count_tokens(few, recipe, backend, names)[0] for backend in ("reference", "cpu"))
        assert np.array_equal(one.values, other.values), kind
        tokens = count_tokens(text, recipe, "cpu", names)[0]
        sizes[kind] = int(text.offsets[-1] - text.offsets[0]) / 1e6, len(tokens.values)
        calls[kind] = lambda text=text, recipe=recipe: count_tokens(text, recipe, "cpu", names)
        calls[f"{kind} and shingles"] = lambda text=text, recipe=recipe: count_shingles(
            count_tokens(text, recipe, "cpu", names)[0], recipe, "cpu"
        )
    seconds = by_turns(bench.repeat, calls)  # type: ignore[arg-type]
    figures = []
    for what, each in seconds.items():
        kind = what.partition(" ")[0]
        size, number = sizes[kind]
        context = {
            "corpus": corpus,
            "megabytes": round(size, 1),
            "tokens": number,
            "width": recipes[kind].shingles.size,
        }
        figures.append(figure(what, [size / second for second in each], "MB/s of a core", **context))
    return figures
