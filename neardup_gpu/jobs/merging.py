"""Sketches of unions, from those of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import checks
from ..errors import ParameterError
from ..methods import check_able
from ..recipe import Recipe


def merge(sketches: Sequence[Any], recipe: Recipe) -> Any:
    """Sketch unions of shingle sets, row by row, from sketches of their parts, if the method has `merge`.

    The result is, bit for bit, the sketch of the union. If the parts are those of one text, the union lacks the
    shingles across each seam, w - 1 of w tokens each, so the sketch of the whole text may differ a little. Of bags, the
    union holds each shingle as often as the part that has it most often.

    Parameters
    ----------
    sketches : list of arrays, or of Ragged
        What the method of the recipe gives by `sketch`: of each part of the unions, all with the same number of rows.
    recipe : Recipe
        What they were made by.

    Returns
    -------
    array or Ragged
        A sketch for each row, in host memory. Cost: a sort of what it is made of.
        Source: Broder 1997, section 3: u = MIN_s(M(A) u M(B)).

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above, or the method cannot merge sketches with these settings.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu.stages import Ragged
    >>> recipe = Recipe(method="modm")
    >>> parts = [Ragged.from_rows([row], np.uint64) for row in (range(1000), range(500, 1500), range(1500))]
    >>> one, other, both = (recipe.method.sketch(part, seed=recipe.seed) for part in parts)
    >>> bool((merge([one, other], recipe).values == both.values).all())
    True
    """
    check_able(checks.instance("recipe", recipe, Recipe).method, "merge", "cannot merge sketches")
    if not isinstance(sketches, (list, tuple)):
        sketches = [sketches]
    if not sketches:
        raise ParameterError("sketches: none given; give those of each part of the unions")
    parts = [each if hasattr(each, "offsets") else checks.as_array("sketches", each)[0] for each in sketches]
    lengths = {len(part) for part in parts if getattr(part, "ndim", 1)}
    if len(lengths) > 1:
        raise ParameterError(
            f"sketches: of {min(lengths):,} and of {max(lengths):,} rows; give the same number of each part"
        )
    return recipe.method.merge(parts)
