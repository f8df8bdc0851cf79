"""The command `neardup curve`."""

from __future__ import annotations

from collections.abc import Callable
from math import log10, nextafter
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from .console import Terminal, notes, say, say_json, stdout
from .options import MATCHING, OUTPUT, Json, flags, given

DRAWN_BY = "neardup curve"
"""Stored in pictures, so that a later run recognises its own files."""

Shape = tuple[int, int, int]
"""A filter: k, s, r."""


@dataclass(frozen=True, kw_only=True)
class ShownFilter:
    """The filter to show."""

    filter: str | None = setting(
        None,
        "R of K supershingles of S samples must agree. Also altavista, bands, bing or files.",
        metavar="K,S,R",
        shown="chosen for --threshold",
    )
    threshold: float | None = setting(
        None, "Choose a filter for this resemblance, or mark it on the curve of --filter.", metavar="X", shown="0.8"
    )
    recall: float | None = setting(None, "Share of the pairs at the threshold to find.", metavar="X", shown="0.99")


@dataclass(frozen=True, kw_only=True)
class Drawing(Json):
    """The picture to write."""

    output: str | None = setting(
        None, "Draw the curve to a file that ends in .svg, .png or .pdf.", metavar="FILE", flag="--output -o"
    )
    log: bool = setting(False, "Draw probabilities on a logarithmic scale, down to 1e-12.")
    overwrite: bool = setting(False, "Replace an existing output.")


FilterFlags: Any = flags(MATCHING, ShownFilter)
DrawingFlags: Any = flags(OUTPUT, Drawing)


def curve(*, settings: FilterFlags = None, written: DrawingFlags = None) -> None:
    """Show how likely a filter makes two documents candidates, by their resemblance, compared with method exact."""
    from .. import theory

    shape, threshold = _chosen(ShownFilter(**given(settings)))
    shown = Drawing(**given(written))
    if shown.output is not None:
        _draw(shown.output, shape, threshold, shown.overwrite, shown.log)
    levels = sorted({*(i / 20 for i in range(1, 21)), 0.975, 0.99, *([] if threshold is None else [threshold])})
    passing = [(x, theory.pass_probability(x, *shape), theory.miss_probability(x, *shape)) for x in levels]
    if not shown.json:
        say(*_page(shape, threshold, passing, shown))
        return
    points = [
        {"resemblance": x, "pass": p, "miss": m, "exact": None if threshold is None else _exact(x, threshold)}
        for x, p, m in passing
    ]
    k, s, _ = shape
    facts = {"samples": k * s, "threshold": threshold, "half_point": theory.half_point(*shape), "points": points}
    say_json({"filter": ",".join(map(str, shape)), **facts, "output": shown.output})


def _chosen(settings: ShownFilter) -> tuple[Shape, float | None]:
    """The filter that was named or chosen, and the threshold to mark."""
    from .. import checks, theory

    if settings.filter is not None and settings.recall is not None:
        raise ParameterError("filter and recall: the filter decides the recall; leave one of them out")
    threshold = settings.threshold
    if settings.filter is not None and threshold is None:
        return theory.parse_filter(settings.filter), None
    threshold = 0.8 if threshold is None else threshold
    checks.fraction("threshold", threshold, zero=False)
    if settings.filter is not None:
        return theory.parse_filter(settings.filter), threshold
    return theory.choose_filter(threshold, 0.99 if settings.recall is None else settings.recall), threshold


def _exact(resemblance: float, threshold: float) -> float:
    """Return the share of pairs of a resemblance that `exact` lists: all from the threshold on, none below it."""
    return float(resemblance >= threshold)


def _page(
    shape: Shape, threshold: float | None, passing: list[tuple[float, float, float]], shown: Drawing
) -> list[Any]:
    """Return the lines to print: the meaning of the filter, its curve, and a table of the curve."""
    from .. import theory
    from ..report import beside, count, heading, percent, row

    k, s, r = shape
    meaning = f": {r} of {k} supershingles agree, each of {count(s, 'sample')}; half at {theory.half_point(*shape):.4f}"
    parts: list[Any] = [beside((f"filter {k},{s},{r}", "bold"), meaning)]
    if threshold is not None:
        parts.append(f"recall at resemblance {threshold}: {percent(theory.pass_probability(threshold, *shape))}")
        parts.append(f"exact lists every pair from {threshold} on, and none below")
    parts += ["", *_picture(lambda x: theory.pass_probability(x, *shape), threshold, stdout(), shown.log), ""]
    beside_it = "" if threshold is None else f"  {'exact':>7}"
    parts.append(heading(f"{'resemblance':>11}  {'candidates':>12}  {'missed':>12}{beside_it}"))
    for x, p, m in passing:
        almost = nextafter(1, 0)  # where one of the two is above 0, the other is no more than this
        candidates, missed = percent(min(p, almost) if m else p), percent(min(m, almost) if p else m)
        beside_it = "" if threshold is None else f"  {percent(_exact(x, threshold)):>7}"
        line = f"{x:>11}  {candidates:>12}  {missed:>12}{beside_it}"
        parts.append(heading(line) if x == threshold else line)
    parts.append("short or noisy texts need other shingles: docs/how_to/choose.md")
    return parts if shown.output is None else [*parts, "", row("written", shown.output)]


DECADES = 12
"""Number of decades on a logarithmic scale, from 1 down. On a terminal each takes a line."""


def _picture(height_at: Callable[[float], float], threshold: float | None, place: Terminal, log: bool) -> list[Any]:
    """The curve over 0 to 1, drawn with characters, and the step of `exact` at the threshold."""
    from rich.text import Text

    rows, columns = 12, min(64, place.width - 8)
    heights = [height_at((i + 0.5) / columns) for i in range(columns)]
    labels = {rows - 1: "100%", rows // 2 - 1: "50%", 0: "0%"}
    if log:
        heights = [1 + log10(height) / DECADES if height else 0.0 for height in heights]
        labels = {rows - 1: "1", rows * 2 // 3 - 1: "1e-4", rows // 3 - 1: "1e-8", 0: "1e-12"}
    threshold_column = -1 if threshold is None else min(columns - 1, int(threshold * columns))
    blocks, mark, corner, top = (" ▁▂▃▄▅▆▇█", "│", "┌", "─") if place.blocks else ("    #####", "|", "+", "-")
    lines: list[Any] = []
    if threshold is not None:
        step = " " * threshold_column + corner + top * (columns - threshold_column - 1)
        lines.append(Text.assemble(f"{'exact':>5} ", (step, "yellow")))
    for level in reversed(range(rows)):
        line = Text(f"{labels.get(level, ''):>5} ")
        for i, height in enumerate(heights):
            cell = blocks[min(8, max(0, round((height * rows - level) * 8)))]
            line.append(
                mark if i == threshold_column and cell == " " else cell, "yellow" if i == threshold_column else "cyan"
            )
        lines.append(line)
    axis = [" "] * (columns + 4)
    for tenth in range(0, 11, 2):
        at = round(tenth / 10 * columns)
        axis[at : at + 3] = f"{tenth / 10:.1f}"
    return [*lines, f"{'':5} {''.join(axis)}"]


def _draw(output: str, shape: Shape, threshold: float | None, overwrite: bool, log: bool) -> None:
    path = Path(output)
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ParameterError(f"{path}: name a picture that ends in .svg, .png or .pdf")
    from .. import plot
    from ..methods.exact import Exact
    from ..store.outputs import new_file

    plot.matplotlib_of(f"{path}: drawing")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4), dpi=150, layout="constrained")
    beside = () if threshold is None else (Exact(),)
    plot.filter_curve(shape, *beside, threshold=threshold, log=log, ax=figure.add_subplot())
    key = "Software" if path.suffix.lower() == ".png" else "Creator"
    with notes(), new_file(output, overwrite, is_ours=_is_drawn) as file:
        figure.savefig(file, metadata={key: DRAWN_BY})


def _is_drawn(path: Path) -> bool:
    """Whether a picture was drawn by `neardup curve`."""
    return path.stat().st_size < 1 << 20 and DRAWN_BY.encode() in path.read_bytes()
