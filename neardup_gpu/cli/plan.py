"""The command `neardup plan`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cyclopts import Group

from ..errors import ParameterError
from ..planning.settings import Machines, Workload
from ..records import dataclass
from ..settings import setting
from ..text.unit_options import Unit
from .console import say, say_json
from .methods import DECIDING, Choice, chosen_recipe
from .options import DOCUMENTS, MATCHING, RUNNING, JsonFlags, flags, given, method_flags


@dataclass(frozen=True, kw_only=True)
class PlannedTasks:
    """How the job is cut into tasks, as for `neardup dedup`."""

    slice_bytes: str | None = setting(
        None, "Amount of text that one task sketches.", metavar="SIZE", shown="1GB, or more for larger blocks"
    )
    partitions: int | None = setting(
        None,
        "Number of parts into which intermediate results are divided.",
        metavar="N",
        shown="the number of slices, or fewer for larger blocks",
    )
    task_memory: str = setting("2GB", "Maximum memory per task.", metavar="SIZE")
    spool: bool = setting(False, "Keep shingles in files, 8 bytes each, instead of making them again from the text.")


TASKS = Group("Tasks", sort_key=RUNNING.sort_key)

WorkFlags: Any = flags(DOCUMENTS, Workload)
ChoiceFlags: Any = flags(MATCHING, Choice, Unit)
MethodFlags: Any = method_flags(MATCHING, DECIDING, without=("frequencies",))
MachineryFlags: Any = flags(RUNNING, Machines)
DivisionFlags: Any = flags(TASKS, PlannedTasks)


def plan(
    *,
    work: WorkFlags = None,
    choice: ChoiceFlags = None,
    method: MethodFlags = None,
    machinery: MachineryFlags = None,
    division: DivisionFlags = None,
    written: JsonFlags = None,
) -> None:
    """Say what a job of tasks over files would exchange, hold and cost, stage by stage, before it is run."""
    from ..engine.memory import parse_size
    from ..planning import choices
    from ..planning.costs import load_rates
    from ..recipe import Recipe

    load, cluster, rates_of = Workload(**given(work)), Machines(**given(machinery)), load_rates()
    cut = given(division)
    for name in ("slice_bytes", "task_memory"):
        if name in cut:
            cut[name] = parse_size(cut[name], name)
    unit = Unit(**given(choice, of=Unit))
    recipe = chosen_recipe(DECIDING, method, **given(choice, of=Choice), unit=unit)
    division_of: dict[str, Any] = {"machines": cluster, "rates": rates_of, **cut}
    made = choices.plan(load, recipe, **division_of)
    if load.containers is not None and not made.shape.directed:
        raise ParameterError(
            f"containers {load.containers:,.0f}: only containment has any; plan that, or leave them out"
        )
    threshold = given(choice).get("threshold")
    plans: dict[str, Any] = {}
    for name in () if unit.divides and recipe.only_equal else choices.COMPARED:
        same = name == made.shape.method
        plans[name] = (
            made if same else choices.plan(load, Recipe(method=name, threshold=threshold, unit=unit), **division_of)
        )
    plans.setdefault(made.shape.method, made)
    rates = {name: rates_of[name] for name in ("machine", "date", "note")}
    if given(written).get("json"):
        costs = {name: {**each.totals, "notes": each.notes} for name, each in plans.items()}
        plain = {field.name: getattr(cluster, field.name) for field in fields(cluster)}
        say_json({**made.to_json(), "machines": plain, "methods": costs, "rates": rates})
        return
    say(*_page(made, plans, cluster, rates))


def _page(made: Any, plans: dict[str, Any], machines: Any, rates: dict[str, str]) -> list[Any]:
    """A table of stages, what this method and others cost, and what was chosen."""
    from ..report import count, heading, row, size

    shape, totals = made.shape, made.totals
    wide = 12
    job = f"{count(shape.slices, 'slice')} of {size(made.slice_bytes)}, {count(shape.partitions, 'partition')}"
    cluster = f"{count(machines.nodes, 'node')} of {count(machines.cores, 'core')}"
    speed = f"each {size(machines.disk)}/s by disk and {size(machines.network)}/s by network"
    number = count(made.counts.owners or made.counts.documents, "document")
    number += f" in {count(made.counts.documents, 'part')}" if shape.divides else ""
    parts: list[Any] = [
        row("documents", f"{number}, {size(made.counts.text_bytes)} of text", wide),
        row("method", f"{shape.method}{', shingles in files' if shape.spool else ''}", wide),
        *_wrapped("tasks", f"{job}, {size(shape.task_memory)} of memory a task", wide),
        *_wrapped("machines", f"{cluster}; {speed}", wide),
        "",
        heading(_line("stage", "core h", "read", "exchanged", "written", "memory", "files", "block", "time", "bound")),
    ]
    for each in made.stages:
        block = "-" if each.block_bytes is None else _size(each.block_bytes)
        sizes = (_size(each.read), _size(each.exchanged), _size(each.written), _size(each.memory))
        ends = (_short(each.files), block, _time(each.seconds), each.bound)
        parts.append(_line(each.name, _hours(each.core_seconds), *sizes, *ends))
    sums = tuple(_size(totals[name]) for name in ("read", "exchanged", "written", "memory"))
    ends = (_short(totals["files"]), "", _time(totals["seconds"]), "")
    parts += [heading(_line("all", _hours(totals["core_seconds"]), *sums, *ends)), ""]
    for name, each in plans.items():
        cost = f"{_hours(each.totals['core_seconds'])} core hours, {_size(each.totals['exchanged'])} exchanged"
        parts.append(row(name, f"{cost}, {_time(each.totals['seconds'])}", wide))
    counts = made.counts
    near = f"{count(counts.verified, 'pair')} of near-duplicates, {count(counts.copies, 'copy')}"
    if counts.shingles:
        near += f", {counts.shingles / counts.documents:,.0f} shingles in each document"
    parts.append("")
    for note in made.notes:
        what, _, says = note.partition(": ")
        chosen = what.startswith("chosen")
        parts += _wrapped("chosen" if chosen else "warning", f"{says}, for larger blocks" if chosen else note, wide)
    parts += _wrapped("assumed", f"{near}: what is exchanged follows from these", wide)
    parts += _wrapped("predicted", f"times, from rates measured {rates['date']} on {rates['machine']}", wide)
    return parts


def _wrapped(label: str, text: str, wide: int) -> list[Any]:
    """A label and its value, in as many lines as it takes."""
    import textwrap

    from ..report import row

    lines = textwrap.wrap(text, 79 - wide)
    return [row(label if number == 0 else "", line, wide) for number, line in enumerate(lines)]


def _line(*cells: str) -> str:
    widths = (-10, 6, 7, 9, 7, 7, 5, 7, 6, -7)
    padded = (cell.rjust(width) if width > 0 else cell.ljust(-width) for cell, width in zip(cells, widths, strict=True))
    return " ".join(padded).rstrip()


def _size(num_bytes: float) -> str:
    """Bytes with three digits: "1.23 TB"."""
    return _short(num_bytes, " ") + "B" if num_bytes >= 1 else "0"


def _short(number: float, gap: str = "") -> str:
    """A number of at most three digits and a letter for a power of a thousand."""
    value, power = float(number), 0
    while value >= 999.5 and power < 6:
        value, power = value / 1000, power + 1
    digits = 0 if power == 0 or value >= 99.95 else 1
    return f"{value:.{digits}f}{gap}{['', 'k', 'M', 'G', 'T', 'P', 'E'][power]}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    if hours >= 100:
        return f"{hours:,.0f}"
    return f"{hours:.2f}" if hours >= 0.005 else f"{hours:.1g}"


def _time(seconds: float) -> str:
    """ "12 s", "3 min", "1.5 h"."""
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
