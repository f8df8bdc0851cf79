"""The stages that make the result: tables with the users' ids, kept rows, and what the report adds up.

    listed    of a range: its pairs in order, groups by size, and requests for ids
    fates     of a slice: the decisions about its documents, and requests for ids
    ids       of a slice: answers
    tables    of a range: its part of pairs/
    columns   of a slice: all its columns, where types are inferred and kept rows are written in another format
    write     of a slice: its part of documents/, of units/ if units are parts of them, and of kept/ or kept_ids/

Files of the result appear whole or not at all, in a folder that becomes the output when all are there.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..data import arrow, numpy_of, run_begins
from ..documents.edits import Edits
from ..documents.references import NamedSets
from ..documents.rewritten import holds_strings, united_of, write_kept
from ..documents.slices import Extent, Offset, Slice
from ..documents.writing_options import Writing
from ..methods.contract import Sketch
from ..recipe import Recipe
from ..records import dataclass
from ..results.by_value import counts_of_files
from ..results.saving import ids_of_kept
from ..results.tables import (
    NO_GROUPS,
    STANDS_FOR,
    DocumentColumns,
    PairColumns,
    as_json,
    counts_of_kinds,
    cut_documents,
    documents_table,
    kinds_of_groups,
    num_shared,
    pairs_table,
    units_table,
)
from ..stages.decisions import IS_NEAR, kinds_of, resemblance_of_equal
from ..stages.priority import count_deciding, key_words, tells_deciding
from ..store.artefacts import ASCENDING, DOCUMENTS, KEPT, KEPT_IDS, PAIRS, UNITS, part_name
from ..store.exchange import read_arrays, read_partition
from ..store.parquet import write_table
from . import unit_results
from .columns import load, load_column, save, schema_of, storable
from .copies import BY_RANGE
from .layout import Layout
from .naming import COPY, FATES, GROUPED, NEAR, OF_KEEPER
from .pairs import VERIFIED, WANTED, ask, load_keys, read_requests
from .ranking import deciding_columns
from .sizes import Counts, Exchange, Shape, row_bytes
from .sketching import ALIKE, ROWS, places_of_units
from .work import Files, file_name

COUNTED = pa.schema([(name, pa.int64()) for name in ("row", *STANDS_FOR)])
"""The documents that were removed for a kept one, by its row in its slice."""

DISTINCT = pa.schema([("distinct", pa.int64())])

LARGEST = 5
"""Groups that a report names."""


def written(c: Counts, shape: Shape) -> list[Exchange]:
    """Return the sizes of the files that the stages write for other tasks."""
    slices, ranges = shape.slices, shape.partitions
    told = row_bytes(ALIKE) + (0 if shape.verifies else 8 * shape.keys)
    if shape.divides:
        told += 4 * 8  # the number, begin, end and copies of a part
    return [
        Exchange.of("listed pairs", VERIFIED, c.listed_pairs, ranges),
        Exchange.of("listed wanted", WANTED, c.wanted_ids - c.kept_ids, ranges, slices),
        Exchange.of("fates wanted", WANTED, c.kept_ids, slices, slices),
        Exchange("ids", "ids", c.wanted_ids, (8 + c.id_bytes + told) * c.wanted_ids, 5, slices, ranges + slices),
    ]


def listed(
    files: Files, names: list[str], copies: list[str], grouped: list[str], counted: bool, layout: Layout
) -> dict[str, Any]:
    """Save the listed pairs of a range of left ranks, with those of exact duplicates, and ask for their ids.

    If `counted`, also write for the slices of kept documents how many documents were removed for each.
    """
    part = files.number
    found = read_arrays(files.place, names, part, VERIFIED)
    exact = read_arrays(files.place, copies, part, BY_RANGE)
    divides = files.shared.recipe.unit.divides  # then the table of units lists copies, and there are no groups
    mine = (exact["rank"] >= layout.num_known) & (not divides)
    if files.shared.recipe.only_against:
        mine &= exact["representative"] < layout.num_known
    left = np.concatenate([found["left"], exact["representative"][mine]])
    right = np.concatenate([found["right"], exact["rank"][mine]])
    resemblance = np.concatenate([found["resemblance"], np.ones(int(mine.sum()))])
    order = np.lexsort((right, left))
    left, right, resemblance = left[order], right[order], resemblance[order]
    new = run_begins(left, right)
    left, right = left[new], right[new]
    save(files, "pairs", {"left": left, "right": right, "resemblance": resemblance[new]})
    removed = read_arrays(files.place, [] if divides else grouped, part, GROUPED)
    each, sizes = np.unique(removed["keeper"], return_counts=True)
    same_words = np.bincount(np.searchsorted(each, removed["keeper"][removed["copy"] & COPY != 0]), minlength=len(each))
    group_kinds = kinds_of_groups(same_words, sizes)
    if counted:
        of_keeper = removed["keeper"][removed["copy"] & OF_KEEPER != 0]
        copies_of = np.bincount(np.searchsorted(each, of_keeper), minlength=len(each))
        with files.exchange("counts", COUNTED, layout.num_slices) as writer:
            slices, rows = layout.slice_of(layout.numbers_of(files, each))
            writer.add(slices, {"row": rows, "copies": copies_of, "near": sizes - copies_of})
    sizes += 1  # the kept document
    largest = np.lexsort((each, -sizes))[:LARGEST]
    kinds, counts = np.unique(sizes, return_counts=True)
    ask(files, np.unique(np.concatenate([left, right, each[largest]])), layout)
    return {
        "listed": len(left) - int(mine.sum()),
        "groups": len(each),
        "group_sizes": [kinds.tolist(), counts.tolist()],
        "group_kinds": group_kinds,
        "largest": [each[largest].tolist(), sizes[largest].tolist()],
    }


@dataclass(frozen=True)
class Written:
    """How the kept rows of a slice are written.

    Parameters
    ----------
    writing : Writing
    names : tuple of str
        The files of its parts, where they are written in another format.
    schema : pyarrow.Schema or None
        The columns of all slices; None where each file has its own.
    """

    writing: Writing
    names: tuple[str, ...] = ()
    schema: pa.Schema | None = None


def columns(files: Files, slice: Slice) -> dict[str, Any]:
    """Find all columns of a slice and their types, where these are inferred."""
    readers = slice.open()._readers
    return {"schema": united_of(readers, slice.covers), "as_strings": holds_strings(readers[0])}


def fates(files: Files, names: list[str], near: list[str], layout: Layout) -> None:
    """Ask for the ids of the documents that stand for others of a slice, and of their partners in a reference set."""
    fate = read_arrays(files.place, names, files.number, FATES)
    found = [fate["keeper"]]
    if files.shared.recipe.unit.divides:
        unit_results.claim(files, fate, layout)
    elif near:
        found.append(read_arrays(files.place, near, files.number, NEAR)["partner"])
    ask(files, np.unique(np.concatenate(found)), layout)


def ids(
    files: Files, slice: Slice, offset: Offset, names: list[str], claims: list[str], kind: pa.DataType, layout: Layout
) -> None:
    """Answer the requests for ids of a slice, with hashes of words and texts, and with keys if tables show them.

    Parameters
    ----------
    names : list of str
        The files of the requests.
    claims : list of str
        The files of what units tell their sources, if they are parts of documents.
    kind : pyarrow.DataType
        The type of ids.
    """
    rows, ranks, who = read_requests(files, names)
    own, told, owner = ids_of(files, files.number, slice, offset, kind), told_of(files, files.number, layout), rows
    if files.shared.recipe.unit.divides:
        told |= unit_results.count(files, claims, len(own), layout)
        owner = places_of_units(files, files.number).owner[rows]
    columns = {"rank": ranks, "id": storable(own.take(arrow(owner)))}
    for name, values in told.items():
        columns[name] = values[rows]
    with files.exchange("ids", schema_of(columns), len(names)) as writer:
        writer.add(who, columns)


def ids_of(files: Files, number: int, slice: Slice, offset: Offset, kind: pa.DataType) -> pa.Array:
    """The ids of all documents of a slice."""
    names = [file_name("sketch", number, "ids")]
    own = pa.int64() if slice.ids_are_rows else kind
    return offset.ids(load_column(files.place, names, 0, "id", own), slice).cast(kind)


def told_of(files: Files, number: int, layout: Layout) -> dict[str, np.ndarray]:
    """Load what tables tell of the documents of a slice besides their ids: arrays with a row for each."""
    recipe, told = files.shared.recipe, load(files.place, file_name("sketch", number, "alike"), ALIKE)
    if _tells_keys(recipe):
        told["keys"] = load_keys(files, number)
    if files.shared.sized:
        told |= load(files.place, file_name("sketch", number, "distinct"), DISTINCT)
    if tells_deciding(recipe.keep) and not recipe.unit.divides:
        rows = load(files.place, file_name("sketch", number, "rows"), ROWS)
        sizes = rows["size"] if recipe.method.measure.directed else None
        first, stop = layout.starts[number : number + 2]
        columns = deciding_columns(files, number) if stop > max(first, layout.num_known) else {}
        told["deciding"] = key_words(recipe.keep, rows["num_tokens"], columns, sizes)
    return told


def _tells_keys(recipe: Recipe) -> bool:
    """Return whether tables tell something of keys."""
    return isinstance(recipe.method, Sketch) and (recipe.method.tells_pairs or not recipe.verifies)


class _Answers:
    """The answers about some ranks, to be looked up."""

    def __init__(self, files: Files, names: Sequence[str], asker: int) -> None:
        batches = list(read_partition(files.place, names, asker))
        table = pa.Table.from_batches(batches) if batches else None
        self.ranks = np.empty(0, np.int64) if table is None else numpy_of(table["rank"])
        self._table, self._order = table, np.argsort(self.ranks)
        self.ranks = self.ranks[self._order]

    def ids(self, ranks: np.ndarray, kind: pa.DataType, null: np.ndarray | None = None) -> pa.Array:
        """The ids of some ranks; null where `null`."""
        if self._table is None:
            return pa.nulls(len(ranks), kind)
        return pa.concat_arrays(self._table["id"].chunks).cast(kind).take(arrow(self._places(ranks, null), null))

    def told(self, name: str, ranks: np.ndarray) -> np.ndarray:
        """A column of numbers, of some ranks."""
        assert self._table is not None
        return numpy_of(pa.concat_arrays(self._table[name].chunks))[self._places(ranks, None)]

    def alike(self, ranks: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of `ALIKE`, of some ranks."""
        if len(ranks) == 0:
            return {"words": np.empty((0, 2), np.uint64), "text": np.empty(0, np.uint64)}
        return {name: self.told(name, ranks) for name in ALIKE.names}

    def _places(self, ranks: np.ndarray, null: np.ndarray | None) -> np.ndarray:
        places = np.searchsorted(self.ranks, ranks)
        if null is not None:
            places[null] = 0
        return self._order[places]


class AnsweredIds(NamedTuple):
    """The answers to the requests for ids.

    names : list of str
        Their files.
    kind : pyarrow.DataType
        The type of ids.
    against : NamedSets or None
        The reference sets, by the numbers of their units; None if there are none.
    """

    names: list[str]
    kind: pa.DataType
    against: NamedSets | None


def tables(files: Files, answered: AnsweredIds, largest: list[int], layout: Layout) -> dict[str, Any]:
    """Write a range's part of pairs/.

    Parameters
    ----------
    answered : AnsweredIds
    largest : list of int
        The ranks of the keepers of the range's largest groups.

    Returns
    -------
    dict
        `files`, the names of the files; `largest`, the ids of the largest groups.
    """
    recipe, part = files.shared.recipe, files.number
    names, kind, against = answered
    found = load(files.place, file_name("listed", part, "pairs"), VERIFIED)
    a, b, resemblance = found["left"], found["right"], found["resemblance"]
    answers = _Answers(files, names, part)
    kinds = _alike(answers.alike(a), answers.alike(b))
    if not recipe.verifies:
        resemblance = resemblance_of_equal(kinds, recipe)
    shared = None
    if files.shared.sized:
        left, right = (answers.told("distinct", ranks) if len(ranks) else ranks for ranks in (a, b))
        shared = num_shared(resemblance, left, right, a < layout.num_known, recipe)
    found_pairs = PairColumns(
        id_a=answers.ids(a, kind),
        id_b=answers.ids(b, kind),
        kinds=kinds,
        resemblance=resemblance,
        told=_pair_columns(answers, recipe, a, b),
        a_in_reference=None if against is None else a < layout.num_known,
        reference=None if against is None else against.column(a, a >= layout.num_known),
        places={
            f"{name}_{side}": answers.told(name, ranks) if len(ranks) else ranks
            for side, ranks in (("a", a), ("b", b))
            for name in recipe.unit.columns
        },
        shared=shared,
    )
    written = _write_part(files, PAIRS, pairs_table(found_pairs, recipe))
    largest = answers.ids(np.array(largest, np.int64), kind)
    return {"files": [written], "largest": [as_json(id) for id in largest]}


def write(
    files: Files,
    number: int,
    slice: Slice,
    extent: Extent,
    offset: Offset,
    answered: AnsweredIds,
    layout: Layout,
    how: Written,
) -> dict[str, Any]:
    """Write a slice's part of documents/, and of units/ if there are any, and its kept rows, or their ids.

    Parameters
    ----------
    number : int
        The slice's, among those of the input and of the reference set.
    """
    recipe, (names, kind, against) = files.shared.recipe, answered
    found, own = RowFates.load(files, number, names, layout), ids_of(files, number, slice, offset, kind)
    places = offset.places(places_of(files, number, slice), extent)
    written = []
    if recipe.unit.divides:
        units, fates = unit_results.decided(files, number, own, found, against, layout)
        columns, edits = cut_documents(units, fates, recipe, places), fates.edits
        counts = {**NO_GROUPS, "unverified": 0, "near_reference": 0, **fates.counts(recipe.unit)}
        parts = units_table(units, fates.reason, fates.unit_kept, recipe)
        written.append(_write_part(files, UNITS, parts, ASCENDING))
    else:
        columns, counts = _documents_of(files, number, found, own, places, against, layout)
        if how.writing.counts:
            columns = columns._replace(units=_stands_for(files, number, len(own), layout))
        edits = Edits(columns.kept)
    table = documents_table(columns, recipe)
    written.append(_write_part(files, DOCUMENTS, table))
    if how.writing.ids_only:
        written.append(_write_part(files, KEPT_IDS, ids_of_kept(table)))
    else:
        if how.writing.counts:
            edits = Edits(columns.kept, columns={name: table[name].combine_chunks() for name in STANDS_FOR})
        written += write_kept_rows(files, slice, extent, edits, how)
    by_file = counts_of_files(places["file"], columns.kept) if places else {}
    return {"files": written, "by_file": by_file, **counts}


def _write_part(files: Files, name: str, table: pa.Table, ascending: tuple[str, ...] = ()) -> str:
    """Write this task's part of a table of the result; return its name."""
    part = part_name(name, files.number)
    with placed(files, part) as path:
        write_table(table, path, ascending)
    return part


def _stands_for(files: Files, number: int, num_documents: int, layout: Layout) -> dict[str, np.ndarray]:
    """Return how many documents were removed for each document of a slice: copies, and others."""
    names = [file_name("listed", part, "counts") for part in range(layout.partitions)]
    found = read_arrays(files.place, names, number, COUNTED)
    counts = {name: np.zeros(num_documents, np.int64) for name in STANDS_FOR}
    for name, values in counts.items():
        values[found["row"]] = found[name]
    return counts


class RowFates(NamedTuple):
    """The decisions about the rows of a slice.

    Parameters
    ----------
    ranks, keeper : array of int64
        The rank of each row, and that of the row that is kept in its place.
    removed : array of int64
        The rows that are not kept.
    resemblance : array of float64
        To the keeper; NaN where it is not known.
    kinds : array of int8
        How a row is like its keeper: a place in `decisions.KINDS`.
    answers : _Answers
    told : dict of str to array
        As `told_of` loaded it.
    """

    ranks: np.ndarray
    keeper: np.ndarray
    removed: np.ndarray
    resemblance: np.ndarray
    kinds: np.ndarray
    answers: _Answers
    told: dict[str, np.ndarray]

    @classmethod
    def load(cls, files: Files, number: int, names: list[str], layout: Layout) -> RowFates:
        """Load what became of the rows of slice `number`; `names` are the files of what was answered."""
        ranks = layout.ranks_of(files, number)
        parts = [file_name("name", part, "fates") for part in range(layout.partitions)]
        fate = read_arrays(files.place, parts, number, FATES)
        keeper, resemblance = ranks.copy(), np.ones(len(ranks))
        keeper[fate["row"]], resemblance[fate["row"]] = fate["keeper"], fate["resemblance"]
        answers = _Answers(files, names, layout.partitions + number)
        told, removed = told_of(files, number, layout), np.flatnonzero(keeper != ranks)
        of_removed = _alike(_rows_alike(told, removed), answers.alike(keeper[removed]))
        if not files.shared.recipe.verifies:
            resemblance[removed] = resemblance_of_equal(of_removed, files.shared.recipe)
        kinds = np.zeros(len(ranks), np.int8)
        kinds[removed] = of_removed
        return cls(ranks, keeper, removed, resemblance, kinds, answers, told)


def _documents_of(
    files: Files,
    number: int,
    found: RowFates,
    own: pa.Array,
    places: dict[str, pa.Array],
    against: NamedSets | None,
    layout: Layout,
) -> tuple[DocumentColumns, dict[str, Any]]:
    """Return the columns and the counts of the documents of a slice, whose ids are `own`."""
    recipe, place = files.shared.recipe, files.place
    ranks, keeper, removed, resemblance, kinds, answers, told = found
    kept = keeper == ranks
    told_columns = {}
    if _tells_keys(recipe):
        both = np.concatenate(
            [told["keys"], answers.told("keys", keeper[removed]) if len(removed) else told["keys"][:0]]
        )
        other = np.arange(len(ranks))
        other[removed] = len(ranks) + np.arange(len(removed))
        told_columns = recipe.method.pair_columns(both, np.arange(len(ranks)), other)
    partner, near = np.full(len(ranks), -1, np.int64), np.full(len(ranks), np.nan)
    if layout.num_known:
        given = [file_name("name", part, "near") for part in range(layout.partitions)]
        of = read_arrays(place, given, number, NEAR)
        partner[of["row"]], near[of["row"]] = of["partner"], of["resemblance"]
    if against is not None and not recipe.verifies:
        leaks = np.flatnonzero(partner >= 0)
        near[leaks] = resemblance_of_equal(_alike(_rows_alike(told, leaks), answers.alike(partner[leaks])), recipe)
    duplicate_of = answers.ids(keeper, own.type, kept)
    places_of_groups = np.where(kept, 0, len(own)) + np.arange(len(own))
    columns = DocumentColumns(
        ids=own,
        kept=kept,
        duplicate_of=duplicate_of,
        group=pa.concat_arrays([own, duplicate_of]).take(arrow(places_of_groups)),
        kinds=kinds,
        resemblance=resemblance,
        places=places,
        told=told_columns,
        in_reference=None if against is None else keeper < layout.num_known,
        reference=None if against is None else against.column(partner, partner < 0),
        near_reference=None if against is None else answers.ids(partner, own.type, partner < 0),
        near=None if against is None else near,
    )
    num_tokens = load(place, file_name("sketch", number, "rows"), ROWS)["num_tokens"]
    counts: dict[str, Any] = {
        "kept": int(kept.sum()),
        "empty": int((num_tokens == 0).sum()),
        "near_reference": int((partner >= 0).sum()),
        "unverified": int((np.isnan(resemblance[removed]) & (kinds[removed] == IS_NEAR)).sum()),
        **counts_of_kinds(kinds[removed]),
    }
    if tells_deciding(recipe.keep):
        mine = removed[keeper[removed] >= layout.num_known]
        own_words = told["deciding"][mine]
        kept_words = answers.told("deciding", keeper[mine]) if len(mine) else own_words
        is_better, directed = keeper[mine] < ranks[mine], recipe.method.measure.directed
        counts["decided_by"] = count_deciding(recipe.keep, directed, kept_words, own_words, is_better)
    return columns, counts


def _pair_columns(answers: _Answers, recipe: Any, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """The method's own columns for pairs of ranks."""
    if not _tells_keys(recipe):
        return {}
    if len(a) == 0:
        columns = recipe.method.key_columns
        none = np.empty((0, columns) if columns else 0, np.uint64)
        return recipe.method.pair_columns(none, a, b)
    keys = np.concatenate([answers.told("keys", a), answers.told("keys", b)])
    return recipe.method.pair_columns(keys, np.arange(len(a)), len(a) + np.arange(len(b)))


def _rows_alike(told: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Take the columns of `ALIKE` of some rows of a slice from what `told_of` loaded."""
    return {name: told[name][rows] for name in ALIKE.names}


def _alike(some: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> np.ndarray:
    """Return how the documents of pairs are alike, as places in `KINDS`.

    Parameters
    ----------
    some, others : dict of str to array
        The columns of `ALIKE`, of one document of each pair and of the other one.
    """
    same_words = (some["words"] == others["words"]).all(axis=1)
    return kinds_of(same_words, some["text"] == others["text"])


def places_of(files: Files, number: int, slice: Slice) -> dict[str, pa.Array]:
    """Return where the documents of a slice lie, as its reading found them.

    There is nothing for documents in memory that are not splits.
    """
    if not any(file.below for file in slice.files):
        return {}
    names = [file_name("sketch", number, "ids")]
    file = load_column(files.place, names, 0, "file", pa.string()).dictionary_encode()
    return {"file": file, "row": load_column(files.place, names, 0, "row", pa.int64())}


def write_kept_rows(files: Files, slice: Slice, extent: Extent, edits: Edits, how: Written) -> list[str]:
    """Write the kept rows of a slice; return the names of the files."""
    target = Path(files.shared.result)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".kept-") as folder:
        options: dict[str, Any] = {}
        if how.writing.rewrites:
            options = {"schema": how.schema, "names": list(how.names), "prefix": f"part-{files.number:05}"}
        write_kept(slice.open(extent), Path(folder, KEPT), edits, how.writing, **options)
        found = sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names)
        names = [path.relative_to(folder).as_posix() for path in found]
        for path, name in zip(found, names, strict=True):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target / name)
    return names


@contextlib.contextmanager
def placed(files: Files, name: str) -> Iterator[Path]:
    """A file of the result, which appears whole or not at all."""
    target = Path(files.shared.result, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".part-") as folder:
        yield Path(folder, "part")
        os.replace(Path(folder, "part"), target)
