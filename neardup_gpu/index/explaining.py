"""Look documents up by their ids: the decisions about them, and their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..data import arrow, numpy_of
from ..errors import ParameterError
from .columns import with_columns
from .opened import Opened
from .removing import checked_array
from .uncommon import check_decides
from .writer import checked_ids, decided, kind_of, table_of


def holds(opened: Opened, id: Any) -> bool:
    """Return whether a live document has an id.

    Raises
    ------
    ParameterError, InputError
        If it is not an id of the index's type.
    """
    given = checked_array([id])
    with opened.alone() as runtime:
        manifest, snapshot = opened.snapshot(runtime)
        wanted = checked_ids(given, manifest)
        return len(snapshot.with_ids(wanted, kind_of(wanted))[0]) > 0


def explain(opened: Opened, ids: Any) -> pa.Table:
    """Return the decisions about the live documents of some ids, in order of the ids, with all columns of the index.

    Raises
    ------
    ParameterError, InputError
        If the ids are not an array or a list of them, or one is null.
    """
    if opened.recipe.unit.divides:
        raise ParameterError(
            f"unit '{opened.recipe.unit}': the index decides about parts of documents, so that a document has no "
            "decision to explain; call decide"
        )
    check_decides(opened.recipe, "explain")
    given = checked_array(ids)
    with opened.alone() as runtime:
        manifest, snapshot = opened.snapshot(runtime)
        if not len(given):
            given = pa.nulls(0, manifest.id_type)
        wanted = checked_ids(given, manifest).unique()
        query, number, place = snapshot.with_ids(wanted, kind_of(wanted))
        order = np.argsort(query, kind="stable")
        query, number, place = query[order], number[order], place[order]
        sequence, entry = np.empty(len(query), np.int64), np.empty(len(query), np.int64)
        for at in np.unique(number).tolist():
            some = np.flatnonzero(number == at)
            segment = snapshot.segments[at]
            sequence[some], entry[some] = (segment.some(name, place[some]) for name in ("sequence", "entry"))
        found, names = decided(snapshot, sequence, entry), wanted.take(arrow(query)).cast(manifest.id_type)
        own = numpy_of(pc.equal(snapshot.names_of(found.keeper, names.type)[0], names))
        kept = own & snapshot.kept(entry)  # of what its founder left, the first one is kept now
        table = table_of(names, found._replace(kept=kept), {}, snapshot, opened.recipe)
        lost = arrow(own & ~kept)  # what it was removed for is gone
        for name in ("duplicate_of", "resemblance"):
            column = pc.if_else(lost, pa.scalar(None, table[name].type), table[name])
            table = table.set_column(table.column_names.index(name), name, column)
        table = table.append_column("awaits", arrow(snapshot.awaits(entry)))
        return with_columns(table, manifest, snapshot, [*manifest.columns])
