"""Files of sketches: in which order they are read, and whether their columns are what their recipe makes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow_versions import may_be_kept_as
from ..data import Ragged, large_enough
from ..engine.arrays import take_rows
from ..errors import DamagedError, InputError, RecipeMismatchError
from ..kernels._launch import check_rows
from ..recipe import Recipe
from ..report import shorten
from ..stages.conditions import WITHIN
from ..store.artefacts import REPORT, read_report, shards_of, using_report
from ..store.parquet import opened, read_table

NUM_SHINGLES = "num_shingles"
"""The number of distinct shingles, which files of earlier versions lack."""


def distinct_files(paths: Iterable[str | Path]) -> list[Path]:
    """Sort files by absolute path, so that the order of their names does not matter; keep each file once.

    A folder stands for the files of sketches in it.

    Raises
    ------
    InputError
        If a file is missing, or a folder holds no sketches.
    """
    found: dict[tuple[int, int], Path] = {}
    files = [file for path in paths for file in _files_in(Path(path))]
    for path in sorted(files, key=os.path.abspath):
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            why = "no such file" if missing else getattr(error, "strerror", None) or str(error)
            raise InputError(f"{path}: {why}") from None
        found.setdefault((status.st_dev, status.st_ino), path)
    return list(found.values())


def _files_in(path: Path) -> list[Path]:
    """Return the path itself or, for a folder, the files that `sketch` wrote there: all Parquet files without a report.

    With a report, these are the files that it lists, so that a missing one is noticed.
    """
    if not path.is_dir():
        return [path]
    if (path / REPORT).exists():
        with using_report(path):
            files = shards_of(path, read_report(path)["files"])
    else:
        files = [each for each in path.glob("*.parquet") if not each.name.startswith((".", "_"))]
    if not files:
        raise InputError(f"{path}: this folder holds no sketches; name files or folders that `neardup sketch` wrote")
    return files


def columns_of(recipe: Recipe) -> dict[str, pa.DataType]:
    """Return the columns that `sketch` writes besides ids."""
    sizes = {NUM_SHINGLES: pa.int64()} if recipe.method.elements == "shingles" else {}
    words = {WITHIN: pa.uint64()} if recipe.within else {}
    return {
        **dict.fromkeys(recipe.unit.columns, pa.int64()),
        "num_tokens": pa.int64(),
        **sizes,
        **words,
        **recipe.method.schema(),
    }


def check_columns(schema: pa.Schema, recipe: Recipe, path: str | Path) -> None:
    """Compare the types of a file's columns with the recipe's; columns that the file lacks are not compared.

    Raises
    ------
    DamagedError
        If one differs.
    """
    for name, wanted in columns_of(recipe).items():
        for number in schema.get_all_field_indices(name):
            kind = schema.field(number).type
            same = kind == wanted
            if pa.types.is_fixed_size_list(wanted):
                same = may_be_kept_as(wanted, kind)
            elif pa.types.is_large_list(wanted) and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                same = kind.value_type == wanted.value_type
            if not same:
                raise DamagedError(f"{path}: column {name!r} is {kind}, its recipe makes {wanted}; sketch it again")


def read_sketches(
    paths: Sequence[str | Path], r: int | None = None, *, sized: bool = False, settings: Sequence[str] | None = None
) -> tuple[pa.Table, Recipe]:
    """Read the sketches of several files as one table, with their common recipe.

    The column `num_shingles` is null for files of earlier versions, which lack it.

    Parameters
    ----------
    paths : list of paths
        In any order; a file that is named twice is read once.
    r : int, default None
        Supershingles that must agree, as in `pairs`. If it is given, the files' filters may differ in r.
    sized : bool, default False
        Whether the number of shingles is needed.
    settings : list of str, default None
        Settings in which the files' recipes have to agree, in addition to all on which sketches depend. By default
        these are the method's settings. All other settings are taken from the first file.

    Raises
    ------
    InputError, DamagedError
        If a file cannot be read, holds something else, or an id is there twice.
    RecipeMismatchError
        If it was made by another recipe than the first.
    ResourceError
        If there are too many rows.
    """
    if not paths:
        raise InputError("no sketches given; name the Parquet files that `neardup sketch` wrote")
    files = distinct_files(paths)
    recipe, id_type, num_rows = None, None, 0
    for path in files:  # what their ends say, before anything is read
        with opened(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        num_rows += rows
        stored, ids = _inspect(schema, path)
        if sized and stored.method.elements == "shingles" and NUM_SHINGLES not in schema.names:
            raise InputError(f"{path}: no column {NUM_SHINGLES!r}, which containment needs; sketch it again")
        if recipe is None or id_type is None:
            recipe, id_type = stored, ids
        check_alike(recipe, files[0], stored, path, settings, {"filter"} if r is not None else set())
        if ids != id_type:
            raise InputError(f"{path}: ids are {ids}, ids of {files[0]} {id_type}; make them one type")
    assert recipe is not None and id_type is not None
    check_rows(num_rows, "sketches")
    schema = pa.schema([("id", id_type), *columns_of(recipe).items()])
    tables = list(_checked(files, schema, recipe))
    joined = pa.concat_tables(tables)
    first = joined.filter(pc.equal(joined["unit"], 0)) if recipe.unit.divides else joined  # one row per document
    (ids,) = large_enough(first["id"])
    if len(pc.unique(ids)) < len(ids):
        counts = pc.value_counts(ids)
        repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
        holders = [
            str(path) for path, table in zip(files, tables, strict=True) if pc.index(table["id"], repeated).as_py() >= 0
        ]
        raise InputError(
            f"{' and '.join(holders[:2])}: id {shorten(repr(repeated.as_py()), 60)} is there more than once; "
            "sketch with id_column=..., a column of ids that are unique over all files"
        )
    return joined, recipe


def check_alike(
    one: Recipe, path: Path, other: Recipe, other_path: Path, settings: Sequence[str] | None, left_out: set[str]
) -> None:
    """Compare the recipes of two files, in what sketches depend on and in some settings or all of the method."""
    first, second = one.sketching(), other.sketching()
    names = [*first, *second]  # of other methods or elements, too
    names += [*one.method.describe(), *other.method.describe()] if settings is None else settings
    here, there = {**one.describe(), **first}, {**other.describe(), **second}
    differ = [name for name in names if here.get(name) != there.get(name) and name not in left_out]
    if differ:
        name = min(differ, key=lambda name: here.get(name) is None or there.get(name) is None)
        way = "give a threshold" if name == "threshold" and settings is not None else "sketch them alike"
        raise RecipeMismatchError(
            f"{other_path}: made with {name} = {there.get(name)}, {path} with {here.get(name)}; {way}"
        )


def arrays_of(table: pa.Table, recipe: Recipe, paths: Sequence[str | Path]) -> tuple[np.ndarray, Any, Any, Any]:
    """Take the arrays out of the table that `read_sketches` read.

    Returns
    -------
    rows, sketches, keys, columns
        Rows with tokens, at least `min_words` of the unit; their sketches, their keys, and the arrays of all of the
        method's columns and, if there is one, of `WITHIN`. Its words are mixed into the keys.

    Raises
    ------
    DamagedError
        If a file holds no sketches of its recipe; it names the first such file.
    """
    rows = np.flatnonzero(table["num_tokens"].to_numpy() >= recipe.unit.min_words)
    # Nulls of a fixed-size list are in its values too, so rows without tokens stay in place until here.
    columns = {name: take_rows(array_of(table[name]), rows) for name in recipe.method.schema()}
    try:
        sketches, keys = recipe.method.from_columns(columns)
    except DamagedError as error:
        files = distinct_files(paths)
        if len(files) > 1:
            for path in files:
                arrays_of(read_sketches([path])[0], recipe, [path])
        raise DamagedError(f"{files[0]}: {error}") from None
    if recipe.within:
        columns[WITHIN] = array_of(table[WITHIN])[rows]
        keys = recipe.method.keys_apart(keys, columns[WITHIN])
    return rows, sketches, keys, columns


def array_of(column: pa.ChunkedArray) -> Any:
    """A column of numbers, of lists of them of one length as a two-dimensional array, or of any length as a Ragged.

    Nulls become zeros, or empty lists.
    """
    joined, width = column.combine_chunks(), None
    if pa.types.is_large_list(joined.type):
        offsets = np.append(np.zeros(1, np.int64), np.cumsum(pc.fill_null(pc.list_value_length(joined), 0).to_numpy()))
        return Ragged(np.array(pc.list_flatten(joined).to_numpy()), offsets)
    if pa.types.is_fixed_size_list(joined.type):
        width = joined.type.list_size
        joined = joined.values.slice(joined.offset * width, len(joined) * width)
    if joined.null_count:  # Parquet gives a null list null values, which NumPy would turn into floats
        joined = pc.fill_null(joined, 0)
    values = joined.to_numpy(zero_copy_only=False)
    return values if width is None else values.reshape(-1, width)


def _inspect(schema: pa.Schema, path: Path) -> tuple[Recipe, pa.DataType]:
    """Check that a file's columns fit its recipe; return the recipe and the type of the ids."""
    if not {"id", "num_tokens"} <= set(schema.names):
        lacking = min({"id", "num_tokens"} - set(schema.names))
        raise InputError(f"{path}: no column {lacking!r}; it was not written by `neardup sketch`")
    recipe = Recipe.of(schema, str(path))
    for name in ("id", *columns_of(recipe)):
        if schema.names.count(name) != 1 and (name != NUM_SHINGLES or name in schema.names):
            number = "more than one" if name in schema.names else "no"
            raise InputError(f"{path}: {number} column {name!r}; it was not written by `neardup sketch`")
    check_columns(schema, recipe, path)
    ids = schema.field("id").type
    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if not any(check(ids) for check in (*checks, pa.types.is_large_binary, pa.types.is_fixed_size_binary)):
        raise DamagedError(f"{path}: ids are {ids}, neither integers nor text; sketch it again")
    return recipe, ids


def _checked(files: list[Path], schema: pa.Schema, recipe: Recipe) -> Iterator[pa.Table]:
    """Read the tables of some files with the columns of `schema`, and check their values."""
    for path in files:
        table = read_table(path)
        sized = NUM_SHINGLES in table.column_names and NUM_SHINGLES in schema.names
        if NUM_SHINGLES in schema.names and not sized:
            table = table.append_column(NUM_SHINGLES, pa.nulls(len(table), pa.int64()))
        try:
            table = table.select(schema.names).replace_schema_metadata(None).cast(schema)
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{path}: is not as its recipe makes it ({error}); sketch it again") from None
        needed = ("id", *recipe.unit.columns, "num_tokens", "document_hash", WITHIN)
        present = [name for name in needed if name in table.column_names]
        present += [NUM_SHINGLES] if sized else []
        for name in present:
            if table[name].null_count:
                raise DamagedError(f"{path}: column {name!r} has nulls, where its recipe makes none; sketch it again")
        empty = pc.equal(table["num_tokens"], 0)
        if pc.any(pc.less(table["num_tokens"], 0)).as_py():
            raise DamagedError(f"{path}: column 'num_tokens' has numbers below 0; sketch it again")
        for name in recipe.method.schema():
            if name not in present and not pc.is_null(table[name]).equals(empty):
                raise DamagedError(
                    f"{path}: column {name!r} has to be null where there are no tokens, and there only; sketch it again"
                )
            lists = pa.types.is_fixed_size_list(table[name].type) or pa.types.is_large_list(table[name].type)
            if lists and any(chunk.flatten().null_count for chunk in table[name].chunks):
                raise DamagedError(f"{path}: column {name!r} has lists with a null in them; sketch it again")
        if sized and not pc.all(pc.equal(pc.less_equal(table[NUM_SHINGLES], 0), empty), min_count=0).as_py():
            raise DamagedError(
                f"{path}: column {NUM_SHINGLES!r} has to be 0 where there are no tokens and only there; sketch it again"
            )
        yield table
