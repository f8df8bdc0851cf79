"""Define settings: fields of frozen dataclasses that the library takes as arguments and the command line as flags.

Each field has its own help text. The command line makes its flag from the field, so both have the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any, TypeVar

from .errors import ArgumentTypeError, ParameterError

T = TypeVar("T")


def setting(
    default: Any, help: str, *, metavar: str | None = None, flag: str | None = None, shown: str | None = None
) -> Any:
    """Return a field for a dataclass of settings.

    Parameters
    ----------
    default : object
        The default value.
    help : str
        One sentence, which the command line shows next to the flag.
    metavar : str, optional
        Placeholder for the value in the help, such as "N".
    flag : str, optional
        The flag, if it is not the field's name with hyphens. A space separates a short flag: "--output -o". An empty
        string means that the field has no flag.
    shown : str, optional
        The default as the help shows it, if the value itself says too little: "80% of the free memory" for None.
    """
    return field(default=default, metadata={"help": help, "metavar": metavar, "flag": flag, "shown": shown})


def settings_of(kind: type[T], function: str, given: dict[str, Any]) -> T:
    """Return the settings that the keywords of a function name.

    Raises
    ------
    ArgumentTypeError
        If a keyword is unknown.
    """
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    if unknown := [name for name in given if name not in known]:
        raise ArgumentTypeError(f"{unknown[0]}: {function} takes no such keyword; it takes {', '.join(known)}")
    return kind(**given)


def refuse_unused(settings: Any, function: str, unused: Iterable[str]) -> None:
    """Raise ParameterError if a field that a function does not use has another value than its default."""
    usual = {each.name: each.default for each in fields(settings)}
    for name in unused:
        if getattr(settings, name) != usual[name]:
            raise ParameterError(f"{name}: {function} does not use it; leave it out")
