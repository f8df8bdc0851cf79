"""A result of equal units. Its table of units is made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from ..data import whole_in_pandas
from ..kernels._cached import cached_property
from ..recipe import Recipe
from .result import Result


class EqualResult(Result):
    """A result whose units are kept as in `stages.equal_units`: a few bytes each.

    Parameters
    ----------
    documents, pairs : pyarrow.Table
    report : dict
    recipe : Recipe
    parts : callable
        Yields the table of units, part by part.
    **others
        Further fields of `Result`.
    """

    _parts: Callable[[], Iterator[pa.Table]]

    def __init__(
        self,
        documents: pa.Table,
        pairs: pa.Table,
        report: dict[str, Any],
        recipe: Recipe,
        *,
        parts: Callable[[], Iterator[pa.Table]],
        **others: Any,
    ) -> None:
        tables = {"documents": whole_in_pandas(documents), "pairs": whole_in_pandas(pairs)}
        self.__dict__.update(tables, report=report, recipe=recipe, _parts=parts, **others)

    @cached_property
    def units(self) -> pa.Table | None:  # type: ignore[override]
        first, *parts = self._parts()
        return whole_in_pandas(pa.concat_tables([first, *(part.cast(first.schema) for part in parts)]))

    def _unit_parts(self) -> Iterator[pa.Table]:
        return self._parts()
