"""Methods: a method a file, under the contract of `contract.py`. A new one is a new file and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks import instance, one_of
from .bottomk import BottomK
from .exact import Exact
from .minhash import MinHash
from .simhash import SimHash

if TYPE_CHECKING:
    from .contract import Method

METHODS: dict[str, Any] = {"exact": Exact, "minhash": MinHash, "bottomk": BottomK, "simhash": SimHash}
"""All methods, by name."""


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
