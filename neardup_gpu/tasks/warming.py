"""Prepare a worker for its first task, while the driver divides the input: import and load what tasks need.

This file is instant to import, and so is a driver that names `warm_up`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..recipe import Recipe


def warm_up(recipe: Recipe | None) -> None:
    """Sketch one document, so that the kernels of the first stage are loaded; the exact method's for None."""
    from dataclasses import replace

    from .. import recipe as recipes
    from ..data import strings
    from ..documents import open_documents
    from ..documents.sources import Sources
    from ..engine.clock import Clock
    from ..engine.settings import Engine
    from ..stages.sketching import Sketcher
    from . import candidates, copies, naming, pairs, results, sketching  # noqa: F401 (of tasks to come)

    recipe = recipe or recipes.Recipe()
    if recipe.method.needs_statistics:
        return
    recipe = replace(recipe, within=())  # for which the one document has no columns
    documents = open_documents({"text": strings(["to be or not to be"])})
    with Engine(backend="cpu").start() as runtime:
        Sketcher(recipe, runtime, Clock(None)).sketch_part(Sources(documents))
