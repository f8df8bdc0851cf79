"""Evaluation sets, read as items with fields of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from ..data import ranges
from ..documents.columns import is_binary, is_integers, is_key, is_text, listed, plain_type
from ..documents.contract import WHOLE, Reader
from ..documents.files import File
from ..documents.find import find_files
from ..documents.formats import TABLES, format_of, reader_of
from ..documents.memory import Memory, as_tables
from ..documents.nested import EACH, steps_of
from ..documents.reading_options import Reading, chosen_reading
from ..documents.schemas import texts_within
from ..documents.standard_input import NAME as STDIN
from ..documents.stream import Documents
from ..engine.arrays import apart
from ..errors import InputError
from ..printable import readable_id
from ..recipe import Recipe
from ..report import some
from ..stages import count_tokens
from ..stages.conditions import group_words
from ..text.token_kinds import KINDS
from .settings import ContaminationSettings

ID = "id"
"""The column that names items, if an evaluation set has it; else their numbers name them."""


class EvaluationSet(NamedTuple):
    """An evaluation set that is open.

    name : str
    reader : Reader
    kind : str
        The format.
    file : File or None
    reference : Documents, default None
        The documents of a reference set: each document is an item of one field. `reader` is the first reader.
    """

    name: str
    reader: Reader
    kind: str
    file: File | None
    reference: Documents | None = None

    @property
    def files(self) -> list[File]:
        """All files of the set."""
        if self.reference is not None:
            return [file for reader in self.reference._readers for file in reader.files]
        return [] if self.file is None else [self.file]

    def documents(self, field: str, key: str | None, holds: str, within: Sequence[str] = ()) -> Documents:
        """Return the items as documents whose text is a field; other columns are those of `within`."""
        if self.reference is not None:
            return self.reference
        reading = chosen_reading(Reading(text_columns=field, id_column=key), holds=holds)
        return Documents([self.reader], self.kind, reading, sources=[self.name], other_columns=within)


class Targets(NamedTuple):
    """Hold the targets of the search: each item as a whole, and each of its fields if it has several.

    Arrays have a value per target. Targets ascend by item; the whole item comes before its fields.

    item : array of int64
    field : array of int32
        The number of the field; -1 for all fields together.
    begin, size : arrays of int64
        The tokens of the target, among those of all items.
    """

    item: np.ndarray
    field: np.ndarray
    begin: np.ndarray
    size: np.ndarray


class EvaluationItems(NamedTuple):
    """The items of all evaluation sets.

    sets : list of str
    set_of : array of int32, shape (items,)
    ids : pyarrow.ChunkedArray of strings
    fields : list of str
    tokens : array of uint64
    targets : Targets
    first_target : array of int64, shape (items + 1,)
    described : list of dict
        Of each set, its name, the number of its items and a digest of their tokens.
    """

    sets: list[str]
    set_of: np.ndarray
    ids: pa.ChunkedArray
    fields: list[str]
    tokens: np.ndarray
    targets: Targets
    first_target: np.ndarray
    described: list[dict[str, Any]]


def reference_set(name: str, documents: Documents) -> EvaluationSet:
    """Return the documents of a reference set as an evaluation set."""
    return EvaluationSet(name, documents._readers[0], documents.format, None, documents)


def opened_sets(evals: Any) -> list[EvaluationSet]:
    """Open evaluation sets; each file, table or split is one.

    Raises
    ------
    InputError
        If there is none, or one cannot be read.
    """
    tables = None
    if isinstance(evals, Mapping):
        tables = {str(name): table for name, source in evals.items() for table in (as_tables(source) or {}).values()}
        if len(tables) != len(evals):
            raise InputError("evals: give paths, or tables by the names of their evaluation sets", parameter="evals")
    elif not isinstance(evals, (str, list, tuple)) and not hasattr(evals, "__fspath__"):
        tables = {name or "evals": table for name, table in (as_tables(evals) or {}).items()}
    if tables is not None:
        return [EvaluationSet(name, Memory(table, split=name), "memory", None) for name, table in tables.items()]
    names = [str(name) for name in (evals if isinstance(evals, (list, tuple)) else [evals])]
    if STDIN in names:
        raise InputError("evals: evaluation sets are read several times, so they cannot come from standard input")
    files = find_files(names, None).files
    shown = _names(files)
    return [_opened(file, name) for file, name in zip(files, shown, strict=True)]


def _names(files: list[File]) -> list[str]:
    """Return the names of sets: paths below the folder that the user named, without extensions if they differ then."""
    paths = [PurePosixPath(file.path).relative_to(file.root or "/") for file in files]
    bare = [str(path.with_name(path.name.partition(".")[0] or path.name)) for path in paths]
    if len(set(bare)) == len(bare):
        return bare
    whole = [str(path) for path in paths]
    return whole if len(set(whole)) == len(whole) else [file.name for file in files]


def _opened(file: File, name: str) -> EvaluationSet:
    kind = file.kind or format_of(file.path) or "text"
    if kind not in TABLES:
        raise InputError(f"{file.name}: an evaluation set is JSON lines, Parquet, CSV or Arrow, with a row per item")
    return EvaluationSet(name, reader_of(kind)(file, Reading(), WHOLE), kind, file)


def read_items(
    sets: Iterable[EvaluationSet], fields: Sequence[str] | None, recipe: Recipe, within: Sequence[str] = ()
) -> EvaluationItems:
    """Read all items and divide their fields into tokens. Items of different values of `within` share no token.

    Raises
    ------
    InputError
        If a set has none of the fields, or no set has one of them, or there are no items.
    """
    names: dict[str, int] = {}
    parts, ids, set_of, described = [], [], [], []
    missing = set(fields or ())
    for number, each in enumerate(sets):
        holds = recipe.shingles.token_kind.holds
        paths = _fields_of(each, fields, missing, holds, within)
        key = ID if ID in each.reader.schema.names and is_key(each.reader.schema.field(ID).type) else None
        digest = xxhash.xxh3_128()
        read = [_read(each.documents(path, key, holds, within), recipe, digest, within, number + 1) for path in paths]
        numbers = [names.setdefault(path.replace(EACH, ""), len(names)) for path in paths]
        parts.append(_together([rows for rows, _ in read], numbers))
        ids.append(read[0][1])
        set_of.append(np.full(len(read[0][1]), number, np.int32))
        described.append({"name": each.name, "items": len(read[0][1]), "digest": digest.hexdigest()})
    if missing:
        raise InputError(f"fields: no evaluation set has {some(sorted(missing))}", parameter="fields")
    if not sum(map(len, ids)):
        raise InputError("evals: the evaluation sets hold no items", parameter="evals")
    return _joined(parts, set_of, ids, list(names), described)


def _fields_of(
    each: EvaluationSet, fields: Sequence[str] | None, missing: set[str], holds: str, within: Sequence[str] = ()
) -> list[str]:
    """Return the paths to the wanted texts of a set; strike the fields that it has from `missing`.

    `holds` says what documents are: the wanted fields are texts, or lists of integers. Unless they are named, columns
    of `within` are not among them.
    """
    if each.reference is not None:
        return [",".join(each.reference.text_columns)]
    paths: list[str] = []
    for column in each.reader.schema:
        if fields is None and column.name in within:
            continue
        if holds == "integers":
            paths += [column.name] if is_integers(column.type) else []
        elif is_text(column.type) and not is_binary(plain_type(column.type)):
            paths += [column.name] if column.name != ID or fields else []
        else:
            paths += dict.fromkeys(texts_within(each.reader, column.name))
    if fields is not None:
        chosen: dict[str, None] = {}
        for field in fields:
            steps = steps_of(field)
            found = [path for path in paths if [step for step in steps_of(path) if step != EACH][: len(steps)] == steps]
            chosen |= dict.fromkeys(found)
            if found or field in each.reader.schema.names:  # a number, such as that of the right answer, is left out
                missing.discard(field)
        paths = list(chosen)
    if not paths:
        what = "lists of integers" if holds == "integers" else "text"
        wanted = f"no field of {what}" if fields is None else f"none of the fields {', '.join(fields)} with {what}"
        raise InputError(f"{each.name}: {wanted}; it has {listed(each.reader.schema.names)}", parameter="fields")
    return paths


def _read(
    documents: Documents, recipe: Recipe, digest: Any, within: Sequence[str], source: int
) -> tuple[tuple[np.ndarray, ...], pa.Array]:
    """Return the tokens of a field, the number of tokens of each item, and the ids of items; add to the digest."""
    values, sizes, ids = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [pa.array([], pa.string())]
    for batch in documents.batches(within):
        tokens, _ = count_tokens(batch.text, recipe, "cpu", batch.ids)
        sizes.append(np.diff(tokens.offsets))
        digest.update(tokens.values)
        digest.update(sizes[-1])
        if within:
            apart(tokens, group_words([batch.columns[name] for name in within], source, batch.first_row)[0])
        values.append(tokens.values)
        ids.append(_as_text(batch.ids))
    return (np.concatenate(values), np.concatenate(sizes)), pa.concat_arrays(ids)


def _as_text(ids: pa.Array) -> pa.Array:
    try:
        return ids.cast(pa.string())
    except pa.ArrowInvalid:  # bytes that are not UTF-8
        return pa.array(map(readable_id, ids.to_pylist()), pa.string())


def _together(fields: list[tuple[np.ndarray, ...]], numbers: list[int]) -> tuple[np.ndarray, Targets]:
    """Put the fields of each item one after another; the targets are numbered from this set's first item on."""
    sizes = np.stack([size for _, size in fields], axis=1)  # items x fields
    begins = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    tokens = np.empty(int(sizes.sum()), np.uint64)
    for column, (values, size) in enumerate(fields):
        tokens[ranges(begins[:, column], size)] = values
    whole = sizes.sum(axis=1)
    several = (sizes > 0) & (len(numbers) > 1)
    item, field = np.nonzero(np.concatenate([np.ones((len(sizes), 1), bool), several], axis=1))
    named = np.array([-1, *numbers], np.int32)[field]
    first = np.cumsum(whole) - whole
    begin = np.concatenate([first[:, None], begins], axis=1)[item, field]
    size = np.concatenate([whole[:, None], sizes], axis=1)[item, field]
    return tokens, Targets(item, named, begin, size)


def _joined(
    parts: list[tuple[np.ndarray, Targets]],
    set_of: list[np.ndarray],
    ids: list[pa.Array],
    fields: list[str],
    described: list[dict[str, Any]],
) -> EvaluationItems:
    """Join the items of all sets."""
    before_items = np.cumsum([0, *map(len, ids)])
    before_tokens = np.cumsum([0, *(len(tokens) for tokens, _ in parts)])
    targets = Targets(
        np.concatenate([each.item + before_items[i] for i, (_, each) in enumerate(parts)]),
        np.concatenate([each.field for _, each in parts]),
        np.concatenate([each.begin + before_tokens[i] for i, (_, each) in enumerate(parts)]),
        np.concatenate([each.size for _, each in parts]),
    )
    first = np.searchsorted(targets.item, np.arange(before_items[-1] + 1))
    tokens = np.concatenate([tokens for tokens, _ in parts])
    sets = [str(each["name"]) for each in described]
    return EvaluationItems(
        sets, np.concatenate(set_of), pa.chunked_array(ids, pa.string()), fields, tokens, targets, first, described
    )


def texts_of_items(
    sets: list[EvaluationSet], items: EvaluationItems, settings: ContaminationSettings, numbers: Iterable[int]
) -> dict[int, dict[str, str]]:
    """Return the texts of some items by their fields; the sets are read again."""
    found: dict[int, dict[str, str]] = {number: {} for number in numbers}
    begins = np.searchsorted(items.set_of, np.arange(len(sets) + 1)).tolist()
    holds, within = KINDS[settings.tokens].holds, settings.within
    for each, begin, end in zip(sets, begins, begins[1:], strict=False):
        wanted = [number for number in found if begin <= number < end]
        if not (wanted and each.reader.rewindable):
            continue
        for path in _fields_of(each, settings.fields, set(), holds, within):
            documents = each.documents(path, None, holds)
            for row, text in documents.texts([number - begin for number in wanted]).items():
                found[begin + row][path.replace(EACH, "")] = text
    return found


class Wanted(NamedTuple):
    """The rows that are looked for in documents.

    tokens, offsets : arrays of uint64 and int64
        A row per item, and then a row for each short field of an item with several fields.
    target_of : array of int64, shape (rows,)
        The target that each row has the tokens of.
    widths : array of int64, shape (targets,)
        The least length of a run of each target; 0 if it is too short to tell.
    grams : int
        The number of n-grams of all rows.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    target_of: np.ndarray
    widths: np.ndarray
    grams: int


def wanted_of(items: EvaluationItems, length: int, least: int) -> Wanted:
    """Return the rows to look for, of at least `least` tokens.

    A run in a field of at least `length` tokens is found as a part of its item's.
    """
    targets = items.targets
    widths = np.where(targets.size >= least, np.minimum(targets.size, length), 0)
    is_field = np.ones(len(widths), bool)
    is_field[items.first_target[:-1]] = False
    short = np.flatnonzero(is_field & (widths > 0) & (targets.size < length))
    target_of = np.concatenate([items.first_target[:-1], short])
    tokens = items.tokens
    if len(short):
        tokens = np.concatenate([tokens, tokens[ranges(targets.begin[short], targets.size[short])]])
    sizes = targets.size[target_of]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    grams = int((sizes - widths[target_of] + 1)[widths[target_of] > 0].sum())
    return Wanted(tokens, offsets, target_of, widths, grams)


def identities(files: Iterable[File]) -> Iterator[tuple[str, str]]:
    """Yield what tells files apart, however they are named."""
    for file in files:
        yield file.system.type_name, file.real or file.path
