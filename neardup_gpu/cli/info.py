"""The command `neardup info`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ..settings import setting
from .console import say, say_json, stdout
from .options import OUTPUT, Json, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class Described(Json):
    """What to do besides."""

    check: bool = setting(False, "Compare every byte with the checksums that were written with it.")


DescribedFlags: Any = flags(OUTPUT, Described)


def info(
    path: Annotated[str, argument("FILE", "Any file that neardup wrote, or a result folder.")],
    /,
    *,
    written: DescribedFlags = None,
) -> None:
    """Show the recipe and the counts of any artefact."""
    from .. import info as artefact

    shown = Described(**given(written))
    found = artefact.describe(Path(path))
    if shown.check:
        found["checked"] = artefact.check(Path(path))
    if shown.json:
        say_json(found)
    else:
        say(*_lines(found, path, stdout().width))


def _lines(found: dict[str, Any], path: str, width: int) -> list[Any]:
    from ..report import beside, heading, recipe_lines, shorten, summary
    from ..store.artefacts import PAGE, using_report

    parts: list[Any] = [beside((found["kind"], "bold"), f"  {shorten(path, width - len(found['kind']) - 2)}")]
    if "report" in found:
        with using_report(found["folder"]):
            page = PAGE in found["report"]["files"]
            parts += ["", *summary(found["report"], width, output=found["folder"], verbose=True, page=page)]
    else:
        parts += [f"  {name.replace('_', ' '):14} {value:,}" for name, value in found["counts"].items()]
        if "columns" in found:
            parts.append(beside(f"  {'columns':14} {', '.join(found['columns'])}"))
        if found["recipe"]:
            parts += ["", heading("recipe"), *recipe_lines(found["recipe"])]
    if "checked" in found:
        parts += ["", f"checked: {found['checked']} are as written"]
    return parts
