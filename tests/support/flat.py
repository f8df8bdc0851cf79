"""Call a function of the library with settings that are given one by one, as tests with many cases write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from neardup_gpu import Engine, Reading, Recipe, Shingles, Writing
from neardup_gpu.methods import as_method
from neardup_gpu.text.unit_options import UNIT_SETTINGS, Unit

USUAL = {"dedup": "exact", "sketch": "minhash", "create": "minhash"}
OF_METHOD = ("bucket_limit", "direction", "frequencies")
SHINGLES = {"shingle_size": "size", "shingling": "kind", "stop_words": "stop_words"}


def flat(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call `dedup`, `sketch`, `open_documents` or a method of `Index`, with settings in their classes.

    >>> from neardup_gpu import dedup
    >>> flat(dedup, {"text": ["to be", "to be"]}, on_error="skip", shingle_size=2, check=0).removed.num_rows
    1
    """

    def taken(kind: type, besides: tuple[str, ...] = ()) -> dict[str, Any]:
        names = [each.name for each in fields(kind) if each.name in settings and each.name not in besides]
        return {name: settings.pop(name) for name in names}

    name = getattr(function, "func", function).__name__
    if "texts" in settings:
        arguments = ({"text": settings.pop("texts")}, *arguments[1:])
    if reading := taken(Reading, ("text_columns", "id_column")):
        settings["reading"] = Reading(**reading)
    if name == "dedup" and (writing := taken(Writing)):
        settings["writing"] = Writing(**writing)
    if engine := taken(Engine):
        place = settings.get("engine", "auto")
        place = place if isinstance(place, Engine) else Engine(backend=None if place == "auto" else place)
        settings["engine"] = replace(place, **engine)
    of_method = {each: settings.pop(each) for each in OF_METHOD if name in USUAL and each in settings}
    if "recipe" in settings and of_method:
        settings["recipe"] = settings["recipe"].with_(**of_method)
    if name in USUAL and "recipe" not in settings:
        shingles = {SHINGLES[each]: settings.pop(each) for each in SHINGLES if each in settings}
        recipe = taken(Recipe, ("shingles",))
        if any(each in settings for each in UNIT_SETTINGS):
            recipe["unit"] = Unit(recipe.pop("unit"), **taken(Unit))
        if recipe or shingles or of_method:
            method = as_method(recipe.get("method", USUAL[name]))
            made = Recipe(**recipe | {"method": method}, shingles=Shingles(**shingles))
            settings["recipe"] = made.with_(**of_method)
    return function(*arguments, **settings)
