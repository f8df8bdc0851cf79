"""The command `neardup doctor`."""

from __future__ import annotations

from typing import Any

from ..errors import ParameterError
from ..methods import METHODS
from ..records import dataclass
from ..settings import setting
from .console import help_width, notes, say, say_json
from .options import RUNNING, Json, JsonFlags, flags, given


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """The options of a run that prepares this machine for jobs."""

    compile: bool = setting(
        False,
        "Load the kernels that a method needs, or compile and keep them. Exit status 1 if they cannot be kept.",
    )
    method: str = setting("exact", f"With --compile, the method: {', '.join(METHODS)}.", metavar="NAME")


PreparationFlags: Any = flags(RUNNING, Preparation)


def doctor(*, preparation: PreparationFlags = None, written: JsonFlags = None) -> int:
    """Show the facts about this machine that matter to neardup, on one screen to paste into a bug report.

    It never fails: it names the facts that it cannot find out. With --compile, prepare this machine for jobs instead.
    """
    chosen, as_json = given(preparation), Json(**given(written)).json
    if chosen.pop("compile", False):
        return _compile(as_json, **chosen)
    if chosen:
        raise ParameterError("method is for --compile; give both", parameter="method")
    _show(as_json)
    return 0


def _compile(as_json: bool, method: str = "exact") -> int:
    from ..installation.doctor import compile_kernels
    from ..report import count, duration

    with notes(stages=False):
        found = compile_kernels(method)
    if as_json:
        say_json(found)
    else:
        compiled = found["kept"] + found["not_kept"]
        kept = f" ({found['not_kept']} cannot be kept)" if found["not_kept"] else ""
        came = count(found["came_compiled"], "function")
        say(
            f"{method}: {came} came compiled, {found['loaded']} loaded from an earlier compilation, "
            f"{compiled} compiled now{kept}; {duration(found['seconds'])}"
        )
    return 1 if found["not_kept"] else 0


def _show(as_json: bool) -> None:
    import textwrap

    from ..installation.doctor import examine, in_words

    found = examine()
    if as_json:
        say_json(found)
        return
    lines = []
    for label, words in in_words(found):
        shown = textwrap.wrap(words, max(40, help_width() - 12), break_long_words=False, break_on_hyphens=False)
        lines += [f"{label if i == 0 else '':12}{line}" for i, line in enumerate(shown or [""])]
    say(*lines)
