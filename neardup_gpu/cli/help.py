"""The help of a command, as wide as the terminal."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import Field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .. import checks
from .console import help_width, say
from .options import default_of, flags_of

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument

HELP, VERSION = ("-h, --help", "Show this help."), ("--version", "Print the version.")
CONFIG = ("--config FILE", "Read options from a TOML file, in the command's table. Flags take their place.")
COMPLETION = ("--install-completion", "Install the completion of commands and flags for your shell.")
STRIPPED = "Python strips the descriptions of commands with -OO; start it without -OO to see them."


def say_help(root: App, words: Sequence[str]) -> None:
    """Print the help of the command that these words name."""
    chain, apps, _ = root.parse_commands(list(words))
    app, width = apps[-1], help_width()
    commands = [(name, app[name].help) for name in app if not name.startswith("-")]
    arguments = list(app.assemble_argument_collection()) if app.default_command else []
    positional = [each for each in arguments if each.show and each.index is not None]
    usage = ["Usage: neardup", *chain, "COMMAND" if commands else "[OPTIONS]", *map(_in_usage, positional)]
    about = app.help if sys.flags.optimize < 2 else f"{app.help} {STRIPPED}"
    parts: list[Any] = [*_wrapped(" ".join(usage), width, 7), "", *_wrapped(about, width)]
    panels: dict[str, list[tuple[str, str]]] = {}
    of_method, others = _of_method(app.default_command, words)
    for each in arguments:
        if each.show and each.parameter.help and (entry := _entry(each, of_method)):
            panels.setdefault(_heading(each), []).append(entry)
    if commands:
        panels["Commands"] = commands
    panels.setdefault("Help", []).extend(
        ([HELP] if commands else [CONFIG, HELP]) if chain else [HELP, VERSION, COMPLETION]
    )
    column = min(max(len(label) for panel in panels.values() for label, _ in panel), width // 3)
    for title, entries in sorted(panels.items(), key=lambda panel: _place(arguments, panel[0])):
        parts += ["", _bold(title)]
        for label, words_of_it in entries:
            parts += _row(label, words_of_it, column, width)
    if others:
        command = " ".join(["neardup", *chain])
        parts += ["", *_wrapped(f"{command} --method NAME --help shows the options of {', '.join(others)}.", width)]
    say(*parts)


def _bold(title: str) -> Any:
    from ..report import heading

    return heading(title)


def _group(argument: Argument) -> Any:
    groups: Any = argument.parameter.group
    return groups[0]


def _heading(argument: Argument) -> str:
    return _group(argument).name


def _place(arguments: list[Argument], title: str) -> float:
    """Arguments come first, help last, and between them what options.py has, in its order."""
    if title == "Arguments":
        return -1
    keys = [_group(each).sort_key for each in arguments if _heading(each) == title]
    return keys[0] if keys else float("inf")


def _in_usage(argument: Argument) -> str:
    several = "..." if argument.field_info.kind is argument.field_info.VAR_POSITIONAL else ""
    return f"{argument.name}{several}" if argument.required else f"[{argument.name}{several}]"


def _of_method(command: Any, words: Sequence[str]) -> tuple[dict[str, Field[Any] | None], list[str]]:
    """Return the settings of the method that the words name, or of the default one, and the names of other methods.

    The settings are by flag. The flag of a setting that only other methods have has None.
    """
    kind = next((each for each in flags_of(command) if each.METHODS), None) if command else None
    if kind is None:
        return {}, []
    named = [word.partition("=")[2] for word in words if word.startswith("--method=")]
    named += [word for before, word in pairwise(words) if before == "--method"]
    chosen = checks.one_of("--method", named[-1], kind.METHODS) if named else next(iter(kind.METHODS))
    found: dict[str, Field[Any] | None] = dict.fromkeys(kind.FLAGS.values())
    for settings in kind.METHODS[chosen]:
        for field in fields(settings):
            if field.name in kind.FLAGS and field.metadata["flag"] != "":
                found[kind.FLAGS[field.name]] = field
    return found, [name for name in kind.METHODS if name != chosen]


def _entry(argument: Argument, of_method: dict[str, Field[Any] | None]) -> tuple[str, str] | None:
    """Return names and value of an argument, and what it means; None if the method does not have it."""
    parameter = argument.parameter
    label = ", ".join(sorted(argument.names, key=len)) + (f" {parameter.metavar}" if parameter.metavar else "")
    meaning, default = parameter.help, parameter.show_default
    flag = next((name for name in argument.names if name in of_method), None)
    if flag is not None:
        field = of_method[flag]
        if field is None:
            return None
        meaning, default = field.metadata["help"], default_of(field)
    return label, f"{meaning} [default: {default}]" if isinstance(default, str) and default else f"{meaning}"


def _row(label: str, meaning: str, column: int, width: int) -> list[str]:
    """Return the lines of a label with its meaning to the right, or below it where there is no room."""
    beside = 4 + column
    if width - beside < 24:
        return [f"  {label}", *(f"      {line}" for line in _wrapped(meaning, max(20, width - 6)))]
    lines = _wrapped(meaning, width - beside)
    if len(label) > column:
        return [f"  {label}", *(" " * beside + line for line in lines)]
    return [f"  {label:{column}}  {lines[0]}", *(" " * beside + line for line in lines[1:])]


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    text = " ".join(text.split())
    lines = textwrap.wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return lines or [""]
