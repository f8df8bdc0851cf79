"""Errors as one line, with the library's parameters by the names of their flags."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, get_args

from cyclopts import CycloptsError, MissingArgumentError, UnknownOptionError
from cyclopts.exceptions import CoercionError, UnknownCommandError, UnusedCliTokensError

from .options import NEGATION, EngineFlags, flags_of

# -------------------------------------------------------------------------------------------------- what does not parse


def usage_message(error: CycloptsError) -> str:
    """One line for arguments that no command takes."""
    says = _usage(error)
    end = "" if says.endswith("?") else "."
    return f"{says.rstrip('.')}{end} See {' '.join(['neardup', *(error.command_chain or [])])} --help."


def _usage(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError):
        word = (error.unused_tokens or [""])[0]
        commands = [] if error.app is None else [name for name in error.app if not name.startswith("-")]
        if word.startswith("-"):
            return f"there is no option {word} before a command"
        return f"there is no command {word!r}{_near(word, commands)}"
    if isinstance(error, UnknownOptionError):
        word = (error.token.keyword or error.token.value).partition("=")[0]
        flags = [name for each in error.argument_collection for name in each.names if name.startswith("-")]
        return f"there is no option {word}{_near(word, flags)}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.keyword or error.argument.name
        return f"{name} needs a value" if name.startswith("-") else f"{name} is missing"
    if isinstance(error, UnusedCliTokensError):
        return f"{(error.unused_tokens or [''])[0]!r} is one argument too many"
    if isinstance(error, CoercionError) and error.token is not None:
        flag, value = error.token.keyword, error.token.value
        return f"{flag}: {error.msg}" if error.msg else f"{flag}={value}: leave out the value, or say true or false"
    return str(error)


def _near(word: str, words: Iterable[str]) -> str:
    """A question that proposes the most similar one of the words, if there is one."""
    similar = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


# -------------------------------------------------------------------------------------------------- what does not work


ENGINE: dict[str, str] = get_args(EngineFlags)[0].FLAGS
"""The flags that say where to run."""


def names_of(command: Callable[..., Any]) -> dict[str, str]:
    """Return the flags of a command, by the names of the library's parameters."""
    names: dict[str, str] = {}
    for kind in flags_of(command):
        names = kind.FLAGS | names  # the first one that has a name
    return names


def in_flags(message: str, flags: dict[str, str]) -> str:
    """Return a message of the library with its parameters' names replaced by flags.

    A message names parameters at its beginning (``threads 0: ...``, ``filter and recall: ...``), with a value
    (``backend='cpu'``, ``overwrite=True``, ``threads=...``), or anywhere if the name has an underscore (``temp_dir``).
    Words in quotes and parts of paths are not taken for parameters.

    Parameters
    ----------
    message : str
    flags : dict
        By the names of parameters; see `names_of`.
    """
    if not flags:
        return message
    name = "|".join(sorted(flags, key=len, reverse=True))
    long = "|".join(sorted((each for each in flags if "_" in each), key=len, reverse=True))

    def flag(found: re.Match[str]) -> str:
        return flags[found[0]]

    def with_value(found: re.Match[str]) -> str:
        value = found["value"]
        if value in ("True", "...") or (value == "False" and flags[found["name"]].startswith(NEGATION)):
            return flags[found["name"]]
        plain = re.fullmatch(r"'([\w.:/+-]+)'", value)
        return f"{flags[found['name']]} {plain[1] if plain else value}"

    beginning = re.match(rf"(?:{name})(?:(?:, and|,| and| or) (?:{name}))*(?=[ ,;]|:(?!//)|$)", message)
    if beginning:
        first = re.sub(rf"\b(?:{name})\b", flag, beginning[0])
        message = first + message[beginning.end() :]
    valued = re.compile(rf"(?<![\w./-])(?P<name>{name})=(?P<value>'[^']*'|\.\.\.|[\w.+-]*\w)")
    bare = re.compile(rf"(?<![\w./=-])(?:{long or name})(?![\w/=-]|\.\w)")
    # Text in quotes is a part of its own, unless it is a value; a quote within a word is an apostrophe.
    parts = re.findall(r"(?:(?<=\w)='[^']*'|(?<=\w)'|[^'])+|'[^']*'|'", message)
    for place, part in enumerate(parts):
        if not part.startswith("'"):
            part = valued.sub(with_value, part)
            parts[place] = bare.sub(flag, part) if long else part
    return "".join(parts)
