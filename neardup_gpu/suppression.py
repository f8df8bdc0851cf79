"""Near-duplicates hidden among search results: rows in rank order, compared by their features alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import checks
from .arrow_versions import restored_lists
from .engine.choice import kernel
from .errors import ParameterError
from .methods.minhash import MinHash
from .recipe import Recipe


def suppress(features: Any, recipe: Recipe, *, present: Any = None, backend: str | None = None) -> np.ndarray:
    """Decide which of some ranked rows show: a row is hidden when it shares r features with one above that shows.

    Parameters
    ----------
    features : array of uint16 or uint64, shape (rows, k), or Arrow array of lists of k of them
        Supershingles in rank order, the best first, as `MinHash.keys` and the column `supershingles` of a sketch file
        have them; null lists are rows without shingles. Of a recipe whose features have 16 bits they may be of either
        type: 12 bytes a row by "bing".
    recipe : Recipe
        By min-hash. Its filter [k, s, r] says how many features have to agree, place by place.
    present : array of bool, shape (rows,), default None
        False for rows without shingles, which show and hide none. All are present, unless given.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

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
    Cost: k comparisons for each row and each one above that shows: of "bing", 2 microseconds in the kernel for ten
    rows and 0.2 milliseconds for a thousand, on one core.
    Source: Manasse 6.1.

    Examples
    --------
    >>> recipe = Recipe(method=MinHash(filter=(3, 5, 2), supershingle_bits=16))
    >>> suppress([[1, 2, 3], [4, 5, 6], [1, 2, 9], [7, 2, 9]], recipe)  # the last two agree, but the third is hidden
    array([0, 1, 0, 3])
    """
    from neardup_gpu.kernels import suppress as suppress_kernel

    checks.instance("recipe", recipe, Recipe)
    method = checks.instance("recipe.method", recipe.method, MinHash, "other methods have no features")
    short = method.supershingle_bits == 16
    shape, hint = (None, method.filter.k), "as MinHash.keys gives"
    features, there = _of_arrow(features, method.filter.k)
    features = checks.array("features", features, np.uint16 if short else np.uint64, shape, convert=short, hint=hint)
    if present is None:
        present = np.ones(len(features), bool)
    present = checks.array("present", present, bool, (len(features),), hint="one for each row")
    if there is not None:
        present = present & there
    return kernel(suppress_kernel, backend)(features, present, method.filter.r)


def _of_arrow(features: Any, width: int) -> tuple[Any, np.ndarray | None]:
    """(a column of lists of one length as an array, which of them are not null); anything else as it is, and None."""
    import pyarrow as pa

    from .sketch_files import array_of

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
