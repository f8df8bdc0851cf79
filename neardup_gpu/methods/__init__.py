"""Methods: a method a file, under the contract of `contract.py`. A new one is a new file and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks import instance, one_of
from ..errors import ParameterError
from .bottomk import BottomK
from .containment import Containment
from .exact import Exact
from .minhash import MinHash
from .simhash import SimHash

if TYPE_CHECKING:
    from .contract import Method

METHODS: dict[str, Any] = {
    "exact": Exact,
    "containment": Containment,
    "minhash": MinHash,
    "bottomk": BottomK,
    "simhash": SimHash,
}
"""All methods, by name."""

SKETCHING = tuple(name for name, kind in METHODS.items() if kind.sketches)
"""The names of those that keep sketches."""


def as_method(value: str | Method) -> Method:
    """A method, which may be given by its name.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is neither.
    """
    if isinstance(value, str):
        return METHODS[one_of("method", value, tuple(METHODS))]()
    return instance("method", value, tuple(METHODS.values()))


def check_sketches(method: Method) -> None:
    """Check that a method keeps sketches.

    Raises
    ------
    ParameterError
        If it does not.
    """
    if not method.sketches:
        *others, last = SKETCHING
        raise ParameterError(f"method {method.name} keeps no sketches; choose {', '.join(others)} or {last}")
