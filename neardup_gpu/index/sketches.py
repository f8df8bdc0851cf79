"""Make what an index keeps of documents, from their text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import sequences

from ..data import Ragged
from ..engine.arrays import apart
from ..engine.choice import kernel, to_host
from ..engine.pieces import Span
from ..methods.contract import Sketch
from ..methods.finding.by_segment import sorted_table
from ..methods.finding.contract import SketchedEntries
from ..methods.modm import ModM
from ..recipe import token_recipe
from ..stages import count_shingles, count_tokens
from ..stages.conditions import WITHIN
from ..stages.sketching import WORDLESS, mark_wordless, text_hashes_of, text_of
from .keeps import KEPT_TEXTS

if TYPE_CHECKING:
    from ..engine.contract import Backend, Runtime
    from ..methods.finding.contract import Finder
    from ..methods.finding.keeps import Keeps
    from ..recipe import Recipe
    from .segments import Segment


class EntryTools(NamedTuple):
    """The means by which entries are sketched, found and compared.

    recipe : Recipe
    keeps : Keeps
        The parts of documents that the index keeps.
    runtime : Runtime
    """

    recipe: Recipe
    keeps: Keeps
    runtime: Runtime

    @property
    def finder(self) -> Finder:
        """The finder of candidates, by the method of the recipe."""
        return self.recipe.method.finder(self.recipe, self.keeps)


def sketched(
    text: Ragged, ids: pa.Array, tools: EntryTools, *, features: bool = True, words: np.ndarray | None = None
) -> SketchedEntries:
    """Sketch documents of UTF-8 text; without features their sets and hashes alone are made."""
    make = partial(sketched_span, text, tools, features=features, words=words)
    return joined(list(tools.runtime.map(make, [Span.of_documents(text.offsets, ids)])))


def stored(segments: list[Segment], rows: list[np.ndarray]) -> SketchedEntries:
    """Return what segments store of some of their entries: words, sets and sketches; there are no hashes and no keys.

    Parameters
    ----------
    segments : list of Segment
    rows : list of arrays of int64
        Rows of entries, ascending, for each segment.
    """
    return joined([_stored_in(segment, some) for segment, some in zip(segments, rows, strict=True)])


def _stored_in(segment: Segment, rows: np.ndarray) -> SketchedEntries:
    """Return what a segment stores of some of its entries; see `stored`."""
    sets = Ragged(np.empty(0, np.uint64), np.zeros(len(rows) + 1, np.int64))
    sets = segment.sets_of(rows) if "set_values" in segment.arrays else sets
    sketch = segment.sketches_of(rows) if "sketch" in segment.arrays else None
    nothing, words = np.empty((len(rows), 0), np.uint64), segment[WITHIN][rows] if WITHIN in segment.arrays else None
    return SketchedEntries(nothing, segment["tokens"][rows].astype(np.int64), nothing, sets, sketch, words)


def joined(parts: list[SketchedEntries]) -> SketchedEntries:
    """Several as one, at least one."""
    if len(parts) == 1:
        return parts[0]
    sketches = [part.sketch for part in parts if part.sketch is not None]
    words = [part.words for part in parts if part.words is not None]
    written = [part.are_written for part in parts if part.are_written is not None]
    return SketchedEntries(
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([part.keys for part in parts]),
        Ragged._joined([part.sets for part in parts]),
        np.concatenate(sketches) if sketches else None,
        np.concatenate(words) if words else None,
        sum(part.only_dropped_words for part in parts),
        np.concatenate(written) if written else None,
    )


def sketched_span(
    text: Ragged, tools: EntryTools, span: Span, *, features: bool = True, words: np.ndarray | None = None
) -> SketchedEntries:
    """Sketch some units of a batch, which has `words`."""
    recipe, keeps, backend = tools.recipe, tools.keeps, tools.runtime.backend
    part = text_of(text, span.first, span.last)
    words = None if words is None else words[span.first : span.last]
    tokens, counts = count_tokens(part, recipe, backend, span.ids[span.first : span.last])
    method: Any = recipe.method
    how: Any = {"seed": recipe.seed, "backend": backend}
    by_tokens = method.elements == "tokens"
    shingles: Any = None if by_tokens and not keeps.sets else count_shingles(tokens, recipe, backend)[0]
    made, keys = None, np.empty((len(tokens), 0), np.uint64)
    if features and isinstance(method, Sketch):
        made = method.sketch(tokens if by_tokens else shingles, **how)
        keys = to_host(method.keys(made, **how))
        keys = keys if words is None else method.keys_apart(keys, words)
    hashes = to_host(kernel(sequences, backend)(tokens.values, tokens.offsets, recipe.material.documents))
    sizes = to_host(tokens.sizes)
    wordless = np.flatnonzero(sizes == 0)
    if len(wordless) and not recipe.unit.divides:
        mark_wordless(hashes, to_host(text_hashes_of(part, recipe, backend)), part, wordless)
    compared = sizes >= recipe.unit.min_words
    written = compared if recipe.unit.divides else compared | (hashes[:, 1] == WORDLESS)
    if words is not None:
        hashes[:, 0] ^= words
        shingles = shingles if shingles is None else apart(shingles, words)
    sets = Ragged(np.empty(0, np.uint64), np.zeros(len(tokens) + 1, np.int64))
    if keeps.sets:
        found: Any = to_host(method.measure.prepared(shingles, backend))
        sets = Ragged(found.values, np.array(found.offsets))
        if recipe.unit.min_words > 1:
            sets = _without(sets, ~compared)
    sketch = to_host(method.stored(made, **how)) if features and keeps.sketches(recipe) else None
    if method.tells_pairs and sketch is not None:  # of the keys themselves
        sketch = keys
    return SketchedEntries(hashes, sizes, keys, sets, sketch, words, counts.only_dropped_words, written)


def _without(sets: Ragged, rows: np.ndarray) -> Ragged:
    """Empty the sets at which `rows`, bool, is true."""
    sizes = np.where(rows, 0, sets.sizes)
    values = sets.values[np.repeat(~rows, sets.sizes)]
    return Ragged(values, np.append(0, np.cumsum(sizes)))


def elements_of(sets: Ragged, modulus: int, recipe: Recipe, backend: Backend) -> Ragged:
    """The elements of some sets: uint64, ascending."""
    return ModM(m=modulus).sketch(sets, seed=recipe.seed, backend=backend)


def element_tables(sets: Ragged, modulus: int, recipe: Recipe, backend: Backend) -> dict[str, np.ndarray]:
    """The arrays that a segment keeps, of the sets of its entries."""
    elements = elements_of(sets, modulus, recipe, backend)
    rows = np.repeat(np.arange(len(elements), dtype=np.uint32), elements.sizes)
    keys, rows = sorted_table(elements.values, rows)
    return {"contained_keys": keys, "contained_rows": rows}


class KeptTexts(NamedTuple):
    """The texts and tokens of some documents, which an index keeps if it is to find shared passages.

    The tokens say which documents can share a passage with a query. Their texts, which are read as those of the query
    are, say what they share. So an answer does not depend on halves of fingerprints.

    Parameters
    ----------
    text : Ragged of uint8
        The text of each document as it was read, without markup: `text_offsets` and `text_values` of a segment.
    word : Ragged of uint32
        The lower half of the fingerprint of each token: `word_offsets` and `word_values`.
    """

    text: Ragged
    word: Ragged

    @classmethod
    def of(cls, text: Ragged, first: int, last: int, tokens: str, backend: str) -> KeptTexts:
        """Return those of the documents `first` to `last` of a batch; `tokens` is their kind."""
        own = text_of(text, first, last)
        found = to_host(count_tokens(own, token_recipe(tokens), backend)[0])
        return cls(own, Ragged._trusted(lower_halves(found.values), found.offsets))

    @property
    def num_bytes(self) -> int:
        """The bytes of the values of both."""
        return self.text.values.nbytes + self.word.values.nbytes


def lower_halves(tokens: np.ndarray) -> np.ndarray:
    """Return the lower halves of fingerprints, as the index keeps them."""
    return tokens.astype(np.uint32)


def arrays_of_texts(parts: list[KeptTexts]) -> dict[str, np.ndarray]:
    """Return the arrays of a segment for the documents of consecutive parts, at least one."""
    arrays: dict[str, np.ndarray] = {}
    for name in KEPT_TEXTS:
        rows = Ragged._joined([getattr(part, name) for part in parts])
        arrays |= {f"{name}_offsets": rows.offsets, f"{name}_values": rows.values}
    return arrays
