"""Compiles kernels of the processor with Numba, when they are called and no module has their code.

Each compiled signature is kept in a folder whose name is a hash of all kernel sources. Numba's own check looks at one
file at a time, so it would go on using a kernel whose callee in another file has changed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core import event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types.containers import BaseTuple

from ._ahead import sources
from ._cache import FORMAT, KernelCache, private_folder
from ._processor import carryless_products
from ._stand_ins import linked, listeners

if TYPE_CHECKING:
    from ._cpu import Function


def _key() -> str:
    versions = numba.__version__, np.__version__, sys.version_info[:2]
    digest = hashlib.sha256(f"{sources()} {versions} {carryless_products()} {FORMAT}".encode())
    return digest.hexdigest()[:16]


CACHE, WHY_NOT_KEPT = private_folder(_key())
"""This version's folder of compiled kernels, None if there is none; and why nothing can be kept there, empty if it can
be."""


def function(declared: Function) -> Any:
    """Return Numba's function for a declared one, which releases the GIL and keeps its machine code in `CACHE`."""
    with global_compiler_lock:  # so that two threads get the same one, and it is compiled once
        return _function(declared)


@cache
def _function(declared: Function) -> Any:
    # Numba would count each array that a function is given at each call: for each word of a text, in `tokens`.
    uncounted = not declared.signatures and not declared.makes_arrays
    compiles = numba.njit(nogil=True, **({"_nrt": False} if uncounted else {}))(linked(declared.py_func))
    compiles._cache = KernelCache(compiles.py_func, CACHE, WHY_NOT_KEPT)  # where ``cache=True`` puts Numba's own
    compiles._compilation_chain_init_hook = _no_extensions
    return compiles


def _no_extensions() -> None:
    """Replace Numba's search for extensions among all installed packages: kernels use none."""


def argument_types(signature: str) -> tuple[Any, ...]:
    """Return Numba's types of a declared signature."""

    def typed(kind: Any) -> Any:
        return BaseTuple.from_types(tuple(map(typed, kind))) if isinstance(kind, tuple) else kind

    return tuple(map(typed, eval(f"({signature},)", vars(types))))


def compiled(compiles: Any, signature: str) -> Callable:
    """Return the code for a declared signature, loaded from `CACHE` or compiled now.

    This is the code itself, without Numba's choice by the types of arguments: the caller makes sure that they fit.
    """
    arguments = argument_types(signature)
    compiles.compile(arguments)
    return compiles.overloads[arguments].entry_point


class _Forwarding(event.Listener):
    """Calls the listeners when Numba begins and ends to compile."""

    def on_start(self, event: Any) -> None:
        for listener in tuple(listeners):
            listener(True)

    def on_end(self, event: Any) -> None:
        for listener in tuple(listeners):
            listener(False)


event.register("numba:compile", _Forwarding())

# No other thread may be compiling while a process is forked: the new one would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
