"""Names of Numba that kernels use although Numba is imported later, if at all."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from ._cached import cached_property


class Replaced:
    """An object that compiled code must not see: `original` is what Numba knows in its place."""

    original: Any


class StandIn(Replaced):
    """A module of Numba or LLVM that kernels name, or an attribute of one, imported when it is first used.

    Parameters
    ----------
    module : str
    name : str, default ""
        An attribute of the module; empty for the module itself.
    """

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    @cached_property
    def original(self) -> Any:
        """The module or the attribute."""
        module = importlib.import_module(self._module)
        return getattr(module, self._name) if self._name else module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


types: Any = StandIn("numba.core.types")


ir: Any = StandIn("llvmlite.ir")


carray: Any = StandIn("numba", "carray")


class intrinsic(Replaced):
    """Decorator for functions whose LLVM code is written by hand: `numba.extending.intrinsic`, imported later."""

    def __init__(self, function: Callable) -> None:
        self.function = function

    @cached_property
    def original(self) -> Any:
        """Numba's intrinsic."""
        from numba.extending import intrinsic as of_numba

        return of_numba(linked(self.function))

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.function.__name__} is for compiled functions, and Python cannot call it")


def linked(function: Callable, **names: Any) -> FunctionType:
    """Return a copy of the function for Numba.

    Its globals and its closure hold Numba's objects instead of ours. `names` are further globals, which win.
    """
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if name not in names and isinstance(value, Replaced):
            names[name] = value.original
    return FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        _linked_closure(function),
    )


def _linked_closure(function: Callable) -> tuple[CellType, ...]:
    return tuple(
        CellType(cell.cell_contents.original) if isinstance(cell.cell_contents, Replaced) else cell
        for cell in function.__closure__ or ()
    )


listeners: list[Callable[[bool], None]] = []
"""Functions that Numba's compiler calls: with True when a thread begins to compile, and with False at the end."""
