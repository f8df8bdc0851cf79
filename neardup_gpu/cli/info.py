"""The command `neardup info`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from .console import padded_lines, say, say_json, stdout, widths_of
from .options import OUTPUT, Json, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class Described(Json):
    """Further checks of a file."""

    check: bool = setting(
        False, "Check every byte against the checksums in the file. Of a certificate, also repeat the whole scan."
    )
    hits_only: bool = setting(
        False, "With --check: of a certificate, look again only through the documents that have hits."
    )


DescribedFlags: Any = flags(OUTPUT, Described)


def info(
    path: Annotated[str, argument("FILE", "Any file that neardup wrote, a result folder, or a work folder.")],
    /,
    *,
    written: DescribedFlags = None,
) -> None:
    """Show the kind, recipe and counts of any file or folder that neardup wrote, or the stages of a work folder."""
    from ..jobs import info as artefact

    shown = Described(**given(written))
    if shown.hits_only and not shown.check:
        raise ParameterError("hits_only: belongs to --check; give that as well, or leave it out")
    found = artefact.describe(Path(path))
    if shown.check:
        found["checked"] = artefact.check(Path(path), shown.hits_only)
    if shown.json:
        say_json(found)
    else:
        say(*_lines(found, path, stdout().width))


def _number(value: float) -> str:
    """With commas; whole unless it is small."""
    return f"{value:,.2f}" if isinstance(value, float) and value < 100 else f"{value:,.0f}"


def _table(stages: dict[str, dict[str, Any]]) -> list[Any]:
    """Stages as lines, what is counted of each in columns."""
    from ..report import beside, heading

    names = list(next(iter(stages.values()), {}))
    rows = [[stage, *(_number(counts[name]) for name in names)] for stage, counts in stages.items()]
    lines = [["stage", *(name.replace("_", " ") for name in names)], *rows]
    widths = widths_of(lines)
    right = [[stage, *map(str.rjust, cells, widths[1:])] for stage, *cells in lines]
    first, *others = padded_lines(right, widths).splitlines()
    return [heading(f"  {first}"), *(beside(f"  {line}") for line in others)]


def _lines(found: dict[str, Any], path: str, width: int) -> list[Any]:
    from ..report import beside, heading, recipe_lines, shorten, summary
    from ..store.artefacts import PAGE, using_report

    parts: list[Any] = [beside((found["kind"], "bold"), f"  {shorten(path, width - len(found['kind']) - 2)}")]
    if "report" in found:
        with using_report(found["folder"]):
            page = PAGE in found["report"]["files"]
            parts += ["", *summary(found["report"], width, output=found["folder"], verbose=True, page=page)]
    else:
        parts += [f"  {name.replace('_', ' '):14} {_number(value)}" for name, value in found["counts"].items()]
        if "stages" in found:
            parts += ["", *_table(found["stages"])]
        if "columns" in found:
            parts.append(beside(f"  {'columns':14} {', '.join(found['columns'])}"))
        if found["recipe"]:
            parts += ["", heading("recipe"), *recipe_lines(found["recipe"])]
    if "checked" in found:
        parts += ["", f"checked: {found['checked']} are as written"]
    return parts
