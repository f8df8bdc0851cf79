"""Options of commands from a file: `--config FILE.toml`, which each command takes.

The file has a table per command, such as [dedup] or [index.add], whose keys are flags without their hyphens. A flag on
the command line takes the place of its entry in the file. The key `input` has the inputs, unless words name some.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import MissingArgumentError

from ..errors import InputError, ParameterError
from .options import Given

if TYPE_CHECKING:
    from cyclopts import App

CONFIG = "--config"
NOT_REPEATED = ("output", "overwrite", "json", "quiet", "log_json", "verbose", "dry_run")
"""Options that say where a result goes and what is printed: a repeated run has its own."""
INPUT = "input"
"""The key that has the inputs of a command."""


def parsed(app: App, words: Sequence[str]) -> tuple[Any, Any]:
    """Return the command that words name, and its arguments: those of the words, then those of a file.

    Raises
    ------
    CycloptsError
        If they are not arguments of a command.
    InputError, ParameterError
        If the file cannot be read, or has something else than tables of options.
    """
    words, path = _without_config(words)
    if path is None:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        return command, bound
    from cyclopts.config import Dict

    options, chain = _options_in(path), list(app.parse_commands(words)[0])
    inputs = _inputs_of(options, chain, path)
    app.config = (Dict(options, source=path),)
    try:
        try:
            command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        except MissingArgumentError:
            if not inputs:
                raise
            again = [*chain, *inputs, *words[len(chain) :]]
            command, bound, _ = app.parse_args(again, exit_on_error=False, print_error=False)
    finally:
        app.config = ()
    return command, bound


def described(app: App, words: Sequence[str], bound: Any) -> str:
    """Return the options of a command as a file that `--config` reads; credentials in URIs are masked.

    A name that is not UTF-8 is written with escapes, which TOML does not have, so that `--config` refuses the file.
    """
    options: dict[str, Any] = {INPUT: [_plain(each) for each in bound.args if isinstance(each, str)]}
    for each in bound.kwargs.values():
        if isinstance(each, Given):
            given = {name: value for name, value in vars(each).items() if value is not None}
            options |= {
                each.FLAGS[name].removeprefix("--"): _plain(value)
                for name, value in given.items()
                if name not in NOT_REPEATED
            }
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in options.items() if value != []]
    chain = app.parse_commands(_without_config(words)[0])[0]
    return "\n".join([f"[{'.'.join(chain)}]", *lines, ""])


def _plain(value: Any) -> Any:
    """Return a value of an option as TOML has it."""
    from ..store.uris import is_uri, masked

    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return masked(value) if isinstance(value, str) and is_uri(value) else value


def _without_config(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the words without `--config` and its value, and that value; the last one counts."""
    rest: list[str] = []
    path, place = None, 0
    while place < len(words):
        word = words[place]
        if word == "--":
            rest += words[place:]
            break
        if word == CONFIG:
            if place + 1 == len(words):
                raise ParameterError(f"{CONFIG} needs a value: a file of options, such as job.toml")
            path, place = words[place + 1], place + 1
        elif word.startswith(f"{CONFIG}="):
            path = word.partition("=")[2]
        else:
            rest.append(word)
        place += 1
    return rest, path


def _options_in(path: str) -> dict[str, Any]:
    import tomllib

    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a file of options with {CONFIG}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: is not TOML ({error}); it has tables such as [dedup]") from None
    for name, value in found.items():
        if not isinstance(value, dict):
            raise ParameterError(f"{path}: {name} is in no table; write it below the command's name, as in [dedup]")
    return found


def _inputs_of(options: dict[str, Any], chain: Sequence[str], path: str) -> list[str]:
    """Take the inputs out of the table of a command."""
    table = options
    for name in chain:
        table = table.get(name, {})
        if not isinstance(table, dict):
            return []
    found = table.pop(INPUT, [])
    several = [found] if isinstance(found, str) else found
    if not isinstance(several, list) or not all(isinstance(each, str) for each in several):
        raise ParameterError(f"{path}: {INPUT} is {found!r}; give a path or a list of paths")
    return several
