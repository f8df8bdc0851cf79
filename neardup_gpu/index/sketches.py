"""What an index keeps of documents, from their text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import sequences

from ..data import Ragged
from ..engine.choice import kernel, to_host
from ..engine.pieces import Span
from ..sketching import text_of
from ..stages import count_shingles, count_tokens

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..recipe import Recipe


class Sketched(NamedTuple):
    """Some documents, in host memory.

    hashes : array of uint64, shape (documents, 2)
        The 128 bits of the word sequence of each.
    tokens : array of int64, shape (documents,)
    keys : array of uint64, shape (documents, k)
        k is 0 for methods that do not sketch; a finder may put something else there, see `finding/contract.py`.
    sets : Ragged of uint64
        Distinct shingles, ascending.
    """

    hashes: np.ndarray
    tokens: np.ndarray
    keys: Any
    sets: Ragged

    def take(self, rows: np.ndarray) -> Sketched:
        """Some of them."""
        from neardup_gpu.kernels import gather

        if np.array_equal(rows, np.arange(len(self.tokens))):
            return self
        sets = Ragged(*gather.cpu(self.sets.values, self.sets.offsets, rows))
        return Sketched(self.hashes[rows], self.tokens[rows], self.keys[rows], sets)


def sketched(text: Ragged, recipe: Recipe, runtime: Runtime) -> Sketched:
    """Sketch documents of UTF-8 text."""
    ids = pa.nulls(len(text))
    parts = list(runtime.map(partial(_sketched, text, recipe, runtime.backend), [Span.of_documents(text.offsets, ids)]))
    return joined(parts, recipe)


def joined(parts: list[Sketched], recipe: Recipe) -> Sketched:
    """Several as one."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([np.empty(0, np.uint64), *(part.sets.values for part in parts)])
    sizes = np.concatenate([np.empty(0, np.int64), *(part.sets.sizes for part in parts)])
    return Sketched(
        np.concatenate([np.empty((0, 2), np.uint64), *(part.hashes for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.tokens for part in parts)]),
        np.concatenate([np.empty((0, recipe.method.key_columns), np.uint64), *(part.keys for part in parts)]),
        Ragged(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])),
    )


def _sketched(text: Ragged, recipe: Recipe, backend: str, span: Span) -> Sketched:
    tokens, _ = count_tokens(text_of(text, span.first, span.last), recipe, backend)
    shingles, _ = count_shingles(tokens, recipe, backend)
    method, seed = recipe.method, recipe.seed
    keys: Any = np.empty((len(shingles), 0), np.uint64)
    if method.sketches:
        keys = method.keys(method.sketch(shingles, seed=seed, backend=backend), seed=seed, backend=backend)
    hashes = kernel(sequences, backend)(tokens.values, tokens.offsets, recipe.material.documents)
    sets: Any = to_host(method.measure.prepared(shingles, backend))
    offsets = np.array(sets.offsets)
    return Sketched(to_host(hashes), to_host(tokens.sizes), to_host(keys), Ragged(sets.values, offsets))
