"""Queries: which live documents resemble some texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from .. import checks
from ..data import Ragged, arrow
from ..documents.html import read_page
from ..documents.stream import Batch
from ..documents.units import Units, divided, units_in
from ..errors import InputError, ParameterError
from ..methods.contract import RowEstimates
from ..methods.finding.contract import WITHOUT_END, EntryRange, SketchedEntries
from ..printable import readable_id
from ..stages.conditions import group_words, of_like_lengths
from .columns import with_columns
from .comparing import compared, estimated
from .manifest import Manifest
from .opened import Opened
from .sketches import EntryTools, sketched
from .snapshot import Snapshot
from .uncommon import UncommonEntries

if TYPE_CHECKING:
    from ..documents import Documents
    from ..methods.finding.contract import Finder
    from ..recipe import Recipe


AT_ONCE = 1 << 23
"""Bytes of query text that are searched at once: of a thousand long documents, which look into each table in one
pass."""


class QueryLimits(NamedTuple):
    """The documents to find.

    least : float or None
        Least resemblance; None where the distance decides.
    radius : int or None
        Bits in which simhashes may differ; the index's if None.
    nearest : int or None
        The most documents for each query.
    """

    least: float | None
    radius: int | None
    nearest: int | None


class Queries(NamedTuple):
    """Texts that are looked up, which are documents or parts of documents.

    ids : pyarrow.Array
        The id of the document of each text.
    text : Ragged of uint8
    columns : dict of str to array
        Where the texts are, if they are parts of documents: query_unit, query_begin and query_end.
    words : array of uint64, or None
        The words of their groups, if documents of equal values are compared.
    """

    ids: pa.Array
    text: Ragged
    columns: dict[str, np.ndarray]
    words: np.ndarray | None = None

    @classmethod
    def of(cls, units: Units, words: np.ndarray | None = None) -> Queries:
        """The units of some documents; `words` are those of the documents."""
        columns = {f"query_{name}": values for name, values in units.columns.items()}
        words = words if words is None or units.places is None else words[units.places.owner]
        return cls(units.ids, units.text, columns, words)


Note = dict[str, Any]
"""A remark about the answer: `note` in words, and the `query_id` or the `ids` of documents that it is about."""

NOTES = b"notes"
"""The entry of an answer's metadata that holds its notes, as JSON."""

Answer = Callable[..., tuple[pa.Table, list[Note]]]
"""A function that answers queries: `near_documents` or `containing_documents`, with its limits."""


def limits_of(
    recipe: Recipe, finder: Finder, threshold: float | None, radius: int | None, nearest: int | None
) -> QueryLimits:
    """Return the limits of a query of an index.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the index cannot answer such a query.
    """
    if threshold is not None and not recipe.verifies:
        raise ParameterError(
            f"threshold {threshold}: the index verifies nothing, and finds all within its radius; ask for a radius"
        )
    if radius is not None:
        if finder.radius is None:
            raise ParameterError(f"radius {radius}: the index finds by {recipe.method.name}; ask for a threshold")
        if checks.integer("radius", radius) > finder.radius:
            raise ParameterError(
                f"radius {radius}: the index was made with radius {finder.radius} and finds no farther; ask for "
                "that or less, or make an index of the larger radius"
            )
    least: Any = recipe.threshold if threshold is None else checks.fraction("threshold", threshold, zero=False)
    if finder.least is not None and least < finder.least:
        raise ParameterError(
            f"threshold {least}: this index finds pairs at {finder.least} or above; ask for no less, or create one "
            "with a lower threshold"
        )
    return QueryLimits(least, radius, checks.optional(checks.integer, "nearest", nearest, 1))


def query_text(opened: Opened, text: str, html: bool | str, answer: Answer, columns: list[str]) -> pa.Table:
    """The answer to one text, on one thread; `html` says how its markup is read, if it has any."""
    if opened.recipe.within:
        names = ", ".join(opened.recipe.within)
        raise ParameterError(f"within {names}: one text has no value there; give documents that have the column")
    with opened.alone() as runtime:
        if html:
            text = read_page(text, tree=html == "tree").text
        data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
        offsets = np.array([0, len(data)], np.int64)
        offsets.flags.writeable = False
        manifest, snapshot = opened.snapshot(runtime)
        batch, recipe = Batch(0, arrow(np.zeros(1, np.int64)), Ragged(data, offsets), 0, {}), opened.recipe
        queries = Queries.of(divided(batch, recipe) if recipe.unit.divides else Units(batch.text, batch))
        found, notes = answer(manifest, snapshot, queries, EntryTools(recipe, manifest.keeps, runtime))
        return _answer_of(with_columns(found, manifest, snapshot, columns), notes, manifest)


def query_documents(opened: Opened, documents: Documents, answer: Answer, columns: list[str]) -> pa.Table:
    """The answers to many documents.

    Raises
    ------
    InputError
        If they cannot be read, or there are none.
    """
    with opened.running() as runtime:
        manifest, snapshot = opened.snapshot(runtime)
        recipe, tables, notes = opened.recipe, list[pa.Table](), list[Note]()
        tools = EntryTools(recipe, manifest.keeps, runtime)
        for queries in queries_in(documents, recipe):
            found, of_batch = answer(manifest, snapshot, queries, tools)
            tables.append(found)
            notes += of_batch
        if not tables:
            raise InputError("the input holds no documents; there is nothing to ask")
        together = pa.concat_tables(tables, promote_options="permissive")
        return _answer_of(with_columns(together, manifest, snapshot, columns), notes, manifest)


def queries_in(documents: Documents, recipe: Recipe) -> Iterator[Queries]:
    """Yield the texts of documents, or their parts, some at a time."""
    for name in recipe.within:
        documents._check_plain(name, "within")
    for units in units_in(documents, recipe, recipe.within, AT_ONCE):
        words = None
        if recipe.within:
            words, _ = group_words([*units.batch.columns.values()], 1, units.batch.first_row)
        yield Queries.of(units, words)


def _answer_of(found: pa.Table, notes: list[Note], manifest: Manifest) -> pa.Table:
    """Return matches with their notes; after a removal, also with a note about what `kept` says then."""
    if manifest.disturbed:
        awaiting = found["id"].filter(found["awaits"]).unique()
        documents = "no document of this answer awaits" if not len(awaiting) else "`ids` await"
        text = f"documents were removed since the last decision, which `kept` is of; {documents} the next one"
        notes = [*notes, {"note": text, "ids": list(map(as_json, awaiting.to_pylist()))}]
    return found.replace_schema_metadata({NOTES: json.dumps(notes).encode()})


def as_json(id: Any) -> Any:
    """Return an id as JSON can hold it."""
    return readable_id(id) if isinstance(id, bytes) else id


def notes_of(answer: pa.Table) -> list[Note]:
    """Return the notes of an answer of `Index.query`.

    Parameters
    ----------
    answer : pyarrow.Table
        What `Index.query` returned, or the table of the file that `neardup index query --output` wrote.

    Returns
    -------
    list of dict
        Each has `note`, in words, and either `query_id`, `num_elements` and `num_not_followed`, or `ids`: the documents
        of the answer that the next decision may keep.

    Examples
    --------
    >>> import tempfile
    >>> from neardup_gpu.index import Index
    >>> with Index.create(tempfile.mkdtemp() + "/news", containment=16) as index:
    ...     answer = index.query("to be", containment=0.9)
    >>> [each["note"] for each in notes_of(answer)]
    ['too short for modulus 16']
    """
    return json.loads((answer.schema.metadata or {}).get(NOTES, b"[]"))


def near_documents(
    manifest: Manifest, snapshot: Snapshot, queries: Queries, tools: EntryTools, *, limits: QueryLimits
) -> tuple[pa.Table, list[Note]]:
    """Answer queries, the best first, ties by sequence number.

    The columns are query_id, id, resemblance (or cosine, if simhashes are all that is known), low, high, exact, kept,
    awaits, and the method's own columns of pairs; if parts of documents are compared, also where the two parts are.
    There are no notes.
    """
    recipe, stored = tools.recipe, snapshot
    sketches = sketched(queries.text, queries.ids, tools, words=queries.words)
    if recipe.ignore_common is not None:
        if snapshot.uncommon is None:
            snapshot.uncommon = UncommonEntries(snapshot, tools)
        stored, sketches = snapshot.uncommon.snapshot, snapshot.uncommon.of_queries(sketches)
    present = np.flatnonzero(sketches.tokens >= recipe.unit.min_words)
    never, ever = np.zeros(len(present), np.int64), np.full(len(present), WITHOUT_END)
    found = tools.finder.first(stored, sketches.take(present), EntryRange(never, ever, int(WITHOUT_END)))
    query, entry = present[found.queries], found.entries  # copies too, which share all features
    if recipe.length_ratio is not None:
        near = of_like_lengths(sketches.tokens[query], snapshot.tokens(entry), recipe.length_ratio)
        query, entry = query[near], entry[near]
    told = _other_measures(snapshot, sketches, query, entry, recipe)
    if limits.radius is not None:
        near = told["distance"] <= limits.radius
        query, entry, told = query[near], entry[near], {name: each[near] for name, each in told.items()}
    exact = tools.keeps.sets or recipe.only_equal
    if recipe.only_equal:
        like = RowEstimates(*(np.ones(len(query)) for _ in RowEstimates._fields))
    elif exact:
        value = compared(stored, sketches, query, entry, recipe.method.measure, limits.least, tools.runtime)
        like = RowEstimates(value, value, value)
    else:
        like = estimated(snapshot, sketches, query, entry, recipe)
    name = "resemblance" if exact else recipe.method.estimates
    columns = {name: like.estimate, "low": like.low, "high": like.high, "exact": np.full(len(query), exact)}
    if limits.least is not None:
        enough = like.estimate >= limits.least
        query, entry, told = query[enough], entry[enough], {name: each[enough] for name, each in told.items()}
        columns = {name: each[enough] for name, each in columns.items()}
    matches = matches_of(snapshot, queries, query, entry, columns, told, manifest.id_type, limits.nearest)
    if recipe.ignore_common is not None:  # nothing is decided before `decide`
        matches = matches.set_column(matches.column_names.index("kept"), "kept", pa.nulls(len(matches), pa.bool_()))
    return matches, []


def _other_measures(
    snapshot: Snapshot, sketches: SketchedEntries, query: np.ndarray, entry: np.ndarray, recipe: Recipe
) -> dict[str, np.ndarray]:
    """Return the method's values for texts and entries other than resemblance, by column."""
    if not recipe.method.tells_pairs:
        return {}
    texts, left = np.unique(query, return_inverse=True)
    entries, right = np.unique(entry, return_inverse=True)
    mine = sketches.keys[texts]
    both = np.concatenate([mine, snapshot.sketches_of(entries)]) if len(entries) else mine
    return recipe.method.pair_columns(both, left, right + len(texts))


def matches_of(
    snapshot: Snapshot,
    queries: Queries,
    query: np.ndarray,
    entry: np.ndarray,
    columns: dict[str, np.ndarray],
    told: dict[str, np.ndarray],
    kind: pa.DataType,
    nearest: int | None,
) -> pa.Table:
    """Return the live units of entries, the greatest first by the first of the columns, which are of entries."""
    by = next(iter(columns))
    kept, awaits = snapshot.kept(entry), snapshot.awaits(entry)
    row, number, ids, where = snapshot.members(entry, kind)
    first = np.diff(row, prepend=-1) != 0
    of_units = [name.removeprefix("query_") for name in queries.columns]
    order = np.lexsort((number, -columns[by][row], query[row]))
    if nearest is not None:
        sorted_query = query[row[order]]
        order = order[np.arange(len(order)) - np.searchsorted(sorted_query, sorted_query) < nearest]
    row, stays = row[order], kept[row[order]] & first[order]
    return pa.table(
        {
            "query_id": queries.ids.take(arrow(query[row])),
            **{name: arrow(values[query[row]]) for name, values in queries.columns.items()},
            "id": ids.take(arrow(order)),
            **{name: arrow(where.get(name, order)[order]) for name in of_units},
            **{name: arrow(each[row]) for name, each in columns.items()},
            "kept": arrow(stays),
            "awaits": arrow(awaits[row]),
            **{name: arrow(each[row]) for name, each in told.items()},
        }
    )
