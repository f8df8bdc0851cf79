"""Weights of a document's elements: integers in 256ths, by how often it has them and how many documents have them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from neardup_gpu.kernels import log_weights
from neardup_gpu.kernels._launch import array_module

from .. import checks
from ..data import Ragged
from ..engine.choice import kernel, to_host
from ..errors import ParameterError, RecipeMismatchError
from .frequencies import Frequencies, counted

if TYPE_CHECKING:
    M = TypeVar("M", bound=Any)

HEAVIEST = 2**48
"""All weights of a document together."""


def is_digest(value: Any) -> bool:
    """Return whether this is the digest of document frequencies."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def with_frequencies(method: M, given: Any, seed: int) -> tuple[M, Frequencies | None]:
    """Return the method that weighs by document frequencies, and the frequencies.

    They are those that are given, as an object or a path, else those that the method itself holds.

    Raises
    ------
    ParameterError, RecipeMismatchError
        If the weighting takes no frequencies, or the method names other frequencies, or some that nothing holds.
    """
    if given is None:
        if method.frequencies is None:
            return method, None
        if is_digest(method.frequencies):
            raise ParameterError(
                f"frequencies: this recipe was made with the document frequencies {method.frequencies}; give them by "
                "recipe.with_(frequencies=...)"
            )
        given, method = method.frequencies, replace(method, frequencies=None)
    name = "frequencies" if isinstance(given, Frequencies) else checks.path("frequencies", given)
    if method.weighting != "tfidf":
        raise ParameterError("frequencies: only the weighting 'tfidf' takes them; leave them out")
    found = given if isinstance(given, Frequencies) else Frequencies.load(name)
    if found.seed != seed:
        raise RecipeMismatchError(f"{name}: made with seed = {found.seed}, but {seed} is needed; make it again")
    if method.frequencies not in (None, found.digest):
        raise RecipeMismatchError(
            f"{name}: these frequencies have digest {found.digest}, the recipe was made with {method.frequencies}"
        )
    return replace(method, frequencies=found.digest), found


def weights_of(weighting: str, distinct: Ragged, counts: Any, frequencies: Frequencies | None, backend: Any) -> Any:
    """Return the weight of each element of documents, by its count: int64, in 256ths. No weight is less than 1.

    The formulas are those of `MinHash`.
    """
    if weighting == "tf":
        return 256 * counts
    found = kernel(log_weights, backend)(counts)
    if weighting == "log":
        return found
    if frequencies is None:
        raise ParameterError("frequencies: the weighting 'tfidf' needs them; see Frequencies")
    return found * frequencies.weigh(distinct.values, backend=backend) >> 8


def weighted_sets(weighting: str, elements: Ragged, frequencies: Frequencies | None, backend: str | None) -> Ragged:
    """Documents as weighted sets: a row has its distinct elements, ascending, and then the weight of each."""
    import numpy as np

    distinct, counts = counted(elements, backend)
    weights = weights_of(weighting, distinct, counts, frequencies, backend)
    xp = array_module(distinct.values)
    offsets, places = distinct.offsets, xp.arange(len(distinct.values))
    row = xp.searchsorted(offsets[1:], places, side="right")
    order = xp.argsort(distinct.values, kind="stable")
    order = order[xp.argsort(row[order], kind="stable")]
    joined = xp.empty(2 * len(places), np.uint64)
    joined[places + offsets[row]] = distinct.values[order]
    joined[places + offsets[row + 1]] = weights[order].view(np.uint64)
    return Ragged._trusted(joined, 2 * offsets)


def checked_weights(weights: Any, features: Ragged) -> Any:
    """Weights that a user gave of the features of documents.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If they are not one integer for each feature, below 0, or of a document more than 2**48 together.
    """
    import numpy as np

    what = "one for each feature, at least 0"
    weights = checks.array("weights", weights, np.int64, (len(features.values),), convert=True, hint=what)
    checks.numbers_between(
        "weights", weights, 0, HEAVIEST, "weights are at least 0 and of a document at most 2**48 together"
    )
    host, offsets = to_host(weights), to_host(features.offsets)
    number = np.concatenate([np.zeros(1, np.int64), np.cumsum(host >> 24)])  # 2**24 each: no sum can overflow
    low = np.concatenate([np.zeros(1, np.int64), np.cumsum(host & (2**24 - 1))])
    high, low = (np.diff(sums[offsets]) for sums in (number, low))
    heavy = (high + (low >> 24) > 2**24) | ((high + (low >> 24) == 2**24) & (low & (2**24 - 1) > 0))
    if heavy.any():
        raise ParameterError(
            f"weights: those of document {int(heavy.argmax())} are more than 2**48 together; scale them"
        )
    return weights
