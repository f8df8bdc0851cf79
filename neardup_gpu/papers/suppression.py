"""Hide near-duplicates among search results: rows in rank order are compared by their features alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .. import checks
from ..arrow_versions import restored_lists
from ..errors import ParameterError
from ..methods.minhash import FEATURES, MinHash
from ..recipe import Recipe
from ..results.sketch_files import array_of


def suppress(features: Any, recipe: Recipe, *, present: Any = None) -> np.ndarray:
    """Decide which ranked rows are shown: a row is hidden if it shares r features with a shown row above it.

    Parameters
    ----------
    features : array of uint8, uint16 or uint64, shape (rows, k), or Arrow array of lists of k of them
        Supershingles in rank order, the best first, as `MinHash.keys` and the column `supershingles` of a sketch file
        have them; null lists are rows without shingles. Features of 16 bits may have either type: by
        "bing" a row takes 12 bytes.
    recipe : Recipe
        Its method is min-hash. The filter [k, s, r] says how many features have to agree, place by place.
    present : array of bool, shape (rows,), default None
        False for rows without shingles, which are shown and hide no other row. Unless given, all rows are present.

    Returns
    -------
    array of int64, shape (rows,)
        For each row itself if it shows, else the first row above that hides it. A hidden row hides none.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Notes
    -----
    Nothing is verified. Two rows of resemblance x are found alike with `theory.pass_probability(x, k, s, r)`; by
    "bing" 0.866 at 0.95 and 0.031 at 0.75, and by accident, of features of 16 bits, in one pair of 1.2e18.
    Cost: k comparisons for each row and each row above it.
    Source: Manasse 6.1.

    Examples
    --------
    >>> recipe = Recipe(method=MinHash(filter=(3, 5, 2), supershingle_bits=16))
    >>> suppress([[1, 2, 3], [4, 5, 6], [1, 2, 9], [7, 2, 9]], recipe)  # the last two agree, but the third is hidden
    array([0, 1, 0, 3])
    """
    checks.instance("recipe", recipe, Recipe)
    method = checks.instance("recipe.method", recipe.method, MinHash, "other methods have no features")
    kind = np.dtype(FEATURES[method.supershingle_bits or 64])
    shape, hint = (None, method.filter.k), "as MinHash.keys gives"
    features, there = _of_arrow(features, method.filter.k)
    features = checks.array("features", features, kind, shape, convert=kind.itemsize < 8, hint=hint)
    if present is None:
        present = np.ones(len(features), bool)
    present = checks.array("present", present, bool, (len(features),), hint="one for each row")
    if there is not None:
        present = present & there
    shown_by, shown = np.arange(len(features)), np.zeros(len(features), bool)
    for row in np.flatnonzero(present):
        agreeing = np.sum(features[:row] == features[row], axis=1) >= method.filter.r
        hiding = np.flatnonzero(agreeing & shown[:row])
        shown[row] = len(hiding) == 0
        if len(hiding):
            shown_by[row] = hiding[0]
    return shown_by


def _of_arrow(features: Any, width: int) -> tuple[Any, np.ndarray | None]:
    """(a column of lists of one length as an array, which of them are not null); anything else as it is, and None."""
    if isinstance(features, pa.Array):
        features = pa.chunked_array([features])
    if isinstance(features, pa.ChunkedArray):
        try:
            features = restored_lists(features, width)
        except pa.ArrowInvalid:
            raise ParameterError(f"features: not all lists have {width} values; give what MinHash.keys gives") from None
    if not isinstance(features, pa.ChunkedArray) or not pa.types.is_fixed_size_list(features.type):
        return features, None
    if any(chunk.flatten().null_count for chunk in features.chunks):
        raise ParameterError("features: lists with a null in them; give what MinHash.keys gives")
    return array_of(features), features.is_valid().to_numpy()
