"""Methods: a method a file, under the contracts of `contract.py`. A new one is a new file and a line here."""

from __future__ import annotations

from typing import Any, Literal

from ..checks import instance, one_of
from ..errors import ParameterError
from .bottomk import BottomK
from .containment import Containment
from .contract import Join, Sketch
from .exact import Exact
from .identical import Identical
from .minhash import MinHash
from .modm import ModM
from .simhash import SimHash

MethodName = Literal["exact", "containment", "identical", "minhash", "bottomk", "modm", "simhash"]
METHODS: dict[str, Any] = {kind.name: kind for kind in (Exact, Containment, Identical, MinHash, BottomK, ModM, SimHash)}
"""All methods, by name. A method of your own is read back from recipes once it is here."""


def names_with(ability: str) -> list[str]:
    """Return the names of the methods that have an ability: a member of `Sketch` that they override."""
    return [name for name, kind in METHODS.items() if has(kind, ability)]


def has(kind: type, ability: str) -> bool:
    """Return whether a class of methods overrides a member of `Sketch`."""
    return getattr(kind, ability, None) not in (None, getattr(Sketch, ability))


def check_able(method: Join | Sketch, ability: str, lacks: str, where: str = "") -> None:
    """Raise ParameterError if a method lacks an ability, and name the methods that have it.

    Parameters
    ----------
    method : Join or Sketch
    ability : str
        A member of `Sketch` that only some methods override.
    lacks : str
        What the method cannot do, in words.
    where : str, default ""
        Names the file whose recipe has the method, for messages.
    """
    if not has(type(method), ability):
        *others, last = names_with(ability)
        choice = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"{where}method {method.name} {lacks}; choose {choice}")


def check_sketches(method: Join | Sketch) -> None:
    """Raise ParameterError if a method keeps no sketches."""
    check_able(method, "sketch", "keeps no sketches")


def as_method(value: str | Join | Sketch) -> Join | Sketch:
    """Return a method, which may be given by its name.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is neither.
    """
    if isinstance(value, str):
        return METHODS[one_of("method", value, tuple(METHODS))]()
    found: Any = instance("method", value, (Join, Sketch), "Exact() is one, and 'exact' names it")
    return found
