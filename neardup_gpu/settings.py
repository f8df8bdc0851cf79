"""Settings: fields of frozen dataclasses that the library takes as arguments and the command line as flags.

A field says by itself what it means; the command line makes its flag from it, so both have the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any


def setting(
    default: Any, help: str, *, metavar: str | None = None, flag: str | None = None, shown: str | None = None
) -> Any:
    """A field of a dataclass of settings.

    Parameters
    ----------
    default : object
        The value where none is given.
    help : str
        One sentence, which the command line shows beside the flag.
    metavar : str, optional
        What stands for the value in the help, such as "N".
    flag : str, optional
        The flag, where it is not the field's name with hyphens; a space divides it from a short one: "--output -o". ""
        for a field that has none.
    shown : str, optional
        What the help calls the default, where the value says too little: "80% of the free memory" for None.
    """
    return field(default=default, metadata={"help": help, "metavar": metavar, "flag": flag, "shown": shown})


def arguments_for(settings: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function that are fields of a dataclass of settings.

    Parameters
    ----------
    settings : type
        The dataclass.
    arguments : mapping of str to object
        The function's `locals()`.

    Examples
    --------
    >>> from neardup_gpu.documents.reading_options import Reading
    >>> arguments_for(Reading, {"source": "a.csv", "html": True})
    {'html': True}
    """
    return {each.name: arguments[each.name] for each in fields(settings) if each.name in arguments}
