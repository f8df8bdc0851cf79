"""The texts and tokens of documents, which an index keeps if it is to find shared passages: ragged arrays of a segment.

    text_offsets, text_values   uint8: the text of each document as it was read, without markup
    word_offsets, word_values   uint32: the lower half of the fingerprint of each token

The tokens say which documents can share a passage with a query. Their texts, which are read as those of the query are,
say what they share. So an answer does not depend on halves of fingerprints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import Ragged
from ..engine.choice import to_host
from ..recipe import token_recipe
from ..stages import count_tokens
from ..stages.sketching import text_of
from .keeps import KEPT_TEXTS


class KeptTexts(NamedTuple):
    """The texts and tokens of some documents.

    text : Ragged of uint8
    word : Ragged of uint32
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


def arrays_of(parts: list[KeptTexts]) -> dict[str, np.ndarray]:
    """Return the arrays of a segment for the documents of consecutive parts, at least one."""
    arrays: dict[str, np.ndarray] = {}
    for name in KEPT_TEXTS:
        rows = Ragged._joined([getattr(part, name) for part in parts])
        arrays |= {f"{name}_offsets": rows.offsets, f"{name}_values": rows.values}
    return arrays
