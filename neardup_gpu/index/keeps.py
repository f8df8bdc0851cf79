"""The parts of documents that an index keeps, in addition to its recipe: chosen when it is made, and never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..errors import ParameterError
from ..methods.finding.keeps import Keeps, KeptTables

if TYPE_CHECKING:
    from ..recipe import Recipe


TOKENS = ("words", "code")
"""The kinds of tokens whose runs are passages of an index."""

KEPT_TEXTS = {"text": np.uint8, "word": np.uint32}
"""Ragged arrays that have a row for each document, if passages are to be found, and the dtypes of their values."""


def chosen(recipe: Recipe, given: KeptTables) -> Keeps:
    """Return the parts that an index of a recipe keeps.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If its method cannot do with that.
    """
    modulus = checks.optional(checks.integer, "containment", given.containment, 1, 1 << 32, "16 is usual")
    expected = checks.optional(checks.integer, "expected", given.expected, 1, 2**40)
    sets = recipe.verifies if given.sets is None else checks.flag("sets", given.sets)
    if sets and not recipe.verifies:
        raise ParameterError(
            "sets: without a threshold nothing is compared by them; give a threshold, or leave sets out"
        )
    if not sets and recipe.verifies and recipe.method.estimates != "resemblance":
        raise ParameterError(
            f"sets: without them method {recipe.method.name} tells no resemblance, and the threshold needs it; keep "
            "sets, or give no threshold"
        )
    if modulus is not None and not sets:
        raise ParameterError("containment: is verified by sets, and none are kept; keep them, or leave containment out")
    kind = recipe.shingles.tokens if checks.flag("keep_tokens", given.keep_tokens) else None
    if kind not in (None, *TOKENS):
        raise ParameterError(f"keep_tokens: passages are runs of words or of code, not of {kind}; leave it out")
    keeps = recipe.method.finder(recipe, Keeps(sets, expected, containment=modulus, tokens=kind)).keeps
    if expected is not None and keeps.leading is None:
        raise ParameterError("expected: chooses tables of simhashes; leave it out, or take method simhash")
    return keeps
