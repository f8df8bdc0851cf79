"""The recipe that bare fingerprints record, and the rules for which fingerprints may be compared.

All that this package knows of recipes is here.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import checks
from ..definitions import METADATA_KEY
from ..errors import ArgumentTypeError, ParameterError, RecipeMismatchError
from ..methods.simhash import SimHash
from ..recipe import Recipe
from ..records import dataclass
from ..results.sketch_files import check_columns

StoredRecipe = Recipe | dict[str, Any]
"""The recipe that an index takes and stores."""

# ------------------------------------------------------------------------------------------------------- of an index


def described(recipe: Any) -> dict[str, Any]:
    """The values of a recipe, as JSON holds them; the recipe is a Recipe by simhash or a dict.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is neither.
    """
    if recipe is None:
        return {}
    if isinstance(recipe, Recipe):
        if not _is_by_simhash(recipe):
            raise ParameterError(_refused(f"one of method {recipe.method.name}"))
        return recipe.describe()
    if not isinstance(recipe, dict):
        raise ArgumentTypeError(_refused(checks.shown(recipe)))
    try:
        return json.loads(json.dumps(recipe))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(_refused(f"a dict that JSON cannot hold ({error})")) from None


def _is_by_simhash(recipe: Recipe | None) -> bool:
    return recipe is not None and recipe.method.name == SimHash.name


def _refused(found: str) -> str:
    return f"recipe must be a Recipe of method simhash or a JSON-serialisable dict, got {found}"


def check_stored(stored: dict[str, Any], recipe: StoredRecipe, path: str | Path) -> None:
    """Refuse the index at `path` if its recipe is not the given one.

    Raises
    ------
    RecipeMismatchError
        If they differ in a value that simhashes depend on; of a dict, in any value.
    """
    wanted = described(recipe)
    wanted = recipe.sketching() if isinstance(recipe, Recipe) else {**dict.fromkeys(stored), **wanted}
    for key, value in wanted.items():
        if stored.get(key) != value:
            raise RecipeMismatchError(
                f"{path}: its fingerprints were made with {key} = {stored.get(key)!r}, but {value!r} is needed; "
                "build the index again"
            )


def check_queries(stored: dict[str, Any], name: str, recipe: Recipe | None, query_name: str) -> None:
    """Refuse queries in a file for an index that stores another recipe, or where only one of the two has a recipe.

    Raises
    ------
    RecipeMismatchError
    """
    sketching = {} if recipe is None else recipe.sketching()
    if bool(stored) != bool(sketching):
        raise _only_one_records(*((name, query_name) if stored else (query_name, name)))
    for key, value in sketching.items():
        if stored.get(key) != value:
            raise RecipeMismatchError(
                f"{query_name}: made with {key} = {value}, the fingerprints of {name} with {stored.get(key)}; "
                "make them alike, or build another index"
            )


# ---------------------------------------------------------------------------------------------------------- of files


def recipe_in(schema: pa.Schema, path: Path) -> Recipe | None:
    """Read the recipe that a file of fingerprints records, or None; its columns have to fit the recipe."""
    stored = (schema.metadata or {}).get(METADATA_KEY)
    if stored is None:
        return None
    recipe = Recipe.from_json(stored, str(path))
    check_columns(schema, recipe, path)
    return recipe


def is_other_artefact(schema: pa.Schema, column: str) -> bool:
    """Whether neardup wrote the file, but without the column of fingerprints."""
    return METADATA_KEY in (schema.metadata or {}) and column not in schema.names


def check_recipes(recipe: Recipe | None, name: str, other: Recipe | None, other_name: str) -> None:
    """Refuse fingerprints that cannot be compared.

    Raises
    ------
    RecipeMismatchError
        If they were made by different recipes, or only one of them records a recipe.
    """
    if recipe is not None and other is not None:
        recipe.check_sketches(other, other_name)
    elif recipe is not None or other is not None:
        raise _only_one_records(*((name, other_name) if other is None else (other_name, name)))


def _only_one_records(name: str, without: str) -> RecipeMismatchError:
    return RecipeMismatchError(f"{name} records a recipe and {without} does not, so they may not be comparable")


# ----------------------------------------------------------------------------------------------------------- of a job


@dataclass(frozen=True)
class MatchSettings:
    """Radius and limits of a job: given by the caller, else by the recipe, else the defaults of a recipe."""

    radius: int
    bucket_limit: int
    bucket_probe: int

    @classmethod
    def of(cls, recipe: Recipe | None, bits: int, given: dict[str, int | None]) -> MatchSettings:
        """Return the settings for fingerprints of `bits` bits. In `given`, None stands for the default.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If one is impossible.
        """
        default: Any = recipe.method if recipe is not None and _is_by_simhash(recipe) else SimHash()
        settings = cls(**{name: getattr(default, name) if value is None else value for name, value in given.items()})
        checks.integer("radius", settings.radius, 0, bits - 1, hint="3 is usual")
        checks.integer("bucket_limit", settings.bucket_limit, 2)
        checks.integer("bucket_probe", settings.bucket_probe, 1)
        return settings

    def described(self, recipe: Recipe | None, bits: int) -> dict[str, Any]:
        """The recipe of a result: the fingerprints' own with these settings, or these settings alone."""
        values = asdict(self)
        if recipe is not None:
            return (recipe.with_(**values) if _is_by_simhash(recipe) else recipe).describe()
        return {"method": "hamming", "bits": bits, **values}


def schema_with(columns: list[tuple[str, pa.DataType]], recipe: dict[str, Any]) -> pa.Schema:
    """The schema of a result that records a recipe."""
    return pa.schema(columns, {METADATA_KEY: json.dumps(recipe).encode()})
