"""Files of sketches: in which order they are read, and whether their columns are what their recipe makes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels._launch import check_rows

from ..errors import DamagedError, InputError, RecipeMismatchError
from ..recipe import AnyRecipe, Recipe, recipe_of
from ..report import shorten
from .parquet import opened, read_table


def distinct_files(paths: Iterable[str | Path]) -> list[Path]:
    """Files in the order of their absolute paths, so that none depends on the order in which they are named; each once,
    under the first of its names.

    Raises
    ------
    InputError
        If one is missing.
    """
    found: dict[tuple[int, int], Path] = {}
    for path in sorted(map(Path, paths), key=os.path.abspath):
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            why = "no such file" if missing else getattr(error, "strerror", None) or str(error)
            raise InputError(f"{path}: {why}") from None
        found.setdefault((status.st_dev, status.st_ino), path)
    return list(found.values())


def columns_of(recipe: AnyRecipe) -> dict[str, pa.DataType]:
    """What `sketch` writes beside ids."""
    word = pa.uint64()
    if isinstance(recipe, Recipe):
        sample = pa.uint32() if recipe.bits == 32 else word
        return {
            "num_tokens": pa.int64(),
            "fingerprint": pa.list_(word, 2),
            "signature": pa.list_(sample, recipe.filter.samples),
            "features": pa.list_(word, recipe.filter.k),
        }
    return {"num_tokens": pa.int64(), "simhash": word if recipe.bits == 64 else pa.list_(word, 2)}


def check_columns(schema: pa.Schema, recipe: AnyRecipe, path: str | Path) -> None:
    """Compare the types of a file's columns with what its recipe makes; columns that it lacks are not looked at.

    Raises
    ------
    DamagedError
        If one differs.
    """
    for name, wanted in columns_of(recipe).items():
        for number in schema.get_all_field_indices(name):
            kind = schema.field(number).type
            same = kind == wanted
            if pa.types.is_fixed_size_list(wanted) and pa.types.is_fixed_size_list(kind):  # whatever the values' name
                same = (kind.list_size, kind.value_type) == (wanted.list_size, wanted.value_type)
            if not same:
                raise DamagedError(f"{path}: column {name!r} is {kind}, its recipe makes {wanted}; sketch it again")


def read_sketches(paths: Sequence[str | Path], r: int | None = None) -> tuple[pa.Table, Recipe]:
    """Sketches of several files as one table, and their common recipe.

    Parameters
    ----------
    paths : list of paths
        In any order, the same file once or often.
    r : int, optional
        As in `find_pairs`: filters may differ in theirs then.

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
        if recipe is None or id_type is None:
            recipe, id_type = stored, ids
        recipe.check_sketches(stored, str(path))
        for name in ("bucket_limit", "bucket_probe", *(["filter"] if r is None else [])):
            if getattr(stored, name) != getattr(recipe, name):
                raise RecipeMismatchError(
                    f"{path}: made with {name} = {getattr(stored, name)}, {files[0]} with {getattr(recipe, name)}; "
                    "sketch them alike"
                )
        if ids != id_type:
            raise InputError(f"{path}: ids are {ids}, those of {files[0]} {id_type}; make them one type")
    assert recipe is not None and id_type is not None
    check_rows(num_rows, "sketches")
    schema = pa.schema([("id", id_type), *columns_of(recipe).items()])
    tables = list(_checked(files, schema, recipe))
    joined = pa.concat_tables(tables)
    if len(pc.unique(joined["id"])) < len(joined):
        counts = pc.value_counts(joined["id"])
        repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
        holders = [
            str(path) for path, table in zip(files, tables, strict=True) if pc.index(table["id"], repeated).as_py() >= 0
        ]
        raise InputError(
            f"{' and '.join(holders[:2])}: id {shorten(repr(repeated.as_py()), 60)} is there more than once; "
            "sketch with --id-column, ids unique over all files"
        )
    return joined, recipe


def _inspect(schema: pa.Schema, path: Path) -> tuple[Recipe, pa.DataType]:
    """The recipe of a file of sketches, whose columns fit it, and the type of its ids."""
    if "simhash" in schema.names:
        raise InputError(f"{path}: holds simhashes; find pairs of those with `neardup hamming pairs`")
    for name in ("id", "num_tokens", "fingerprint", "signature", "features"):
        if schema.names.count(name) != 1:
            number = "more than one" if name in schema.names else "no"
            raise InputError(f"{path}: {number} column {name!r}; it was not written by `neardup sketch`")
    recipe = recipe_of(schema, str(path))
    if not isinstance(recipe, Recipe):
        raise RecipeMismatchError(f"{path}: a recipe of method {recipe.method}, not minhash; make it again")
    check_columns(schema, recipe, path)
    ids = schema.field("id").type
    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    if not any(check(ids) for check in (*checks, pa.types.is_large_binary, pa.types.is_fixed_size_binary)):
        raise DamagedError(f"{path}: ids are {ids}, neither integers nor text; sketch it again")
    return recipe, ids


def _checked(files: list[Path], schema: pa.Schema, recipe: Recipe) -> Iterator[pa.Table]:
    """The tables of some files, as `schema` says, their values as the recipe makes them."""
    for path in files:
        table = read_table(path).select(schema.names).replace_schema_metadata(None).cast(schema)
        for name in ("id", "num_tokens", "fingerprint"):
            if table[name].null_count:
                raise DamagedError(f"{path}: column {name!r} has nulls, where its recipe makes none; sketch it again")
        empty = pc.equal(table["num_tokens"], 0)
        if pc.any(pc.less(table["num_tokens"], 0)).as_py():
            raise DamagedError(f"{path}: column 'num_tokens' has numbers below 0; sketch it again")
        for name in ("fingerprint", "signature", "features"):
            if name != "fingerprint" and not pc.is_null(table[name]).equals(empty):
                raise DamagedError(
                    f"{path}: column {name!r} has to be null where there are no tokens, and there only; sketch it again"
                )
            if any(chunk.flatten().null_count for chunk in table[name].chunks):
                raise DamagedError(f"{path}: column {name!r} has lists with a null in them; sketch it again")
        if recipe.feature_bits < 64:
            features = (chunk.flatten() for chunk in table["features"].chunks)
            if any((pc.max(each).as_py() or 0) >> recipe.feature_bits for each in features):
                raise DamagedError(
                    f"{path}: column 'features' has more than the {recipe.feature_bits} bits of its recipe; "
                    "sketch it again"
                )
        yield table
