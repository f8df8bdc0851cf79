"""Loads kernels of the processor that were compiled when the package was built.

Extension modules hold the code for every declared signature (`_cpu.py`). `_pycc.py` makes them when a wheel is built;
a repository and an editable installation have none. `_ahead.json` describes them:

    "sources"    hash of the kernels they were made from; if the present hash differs, they are not used
    "suffix"     the Python, system and processor that they are for, as in the names of extension modules
    "modules"    {file: SHA-256}, checked before a module is loaded
    "levels"     for each kind of processor, the newest first: the "features" that it must have, and its "functions",
                 {function: {signature: [file, name in it]}}; each function is taken from the first level that has it
    "made_by"    versions of packages

A function that is not found there is compiled when it is first called.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from ._processor import carryless_products, features, is_x86
from ._turn import turn

log = logging.getLogger("neardup_gpu")

FOLDER = Path(__file__).parent
"""The folder of the kernels and the modules, unless they are in a zip file. To import `importlib.resources` takes as
long as to read all files."""

INDEX = "_ahead.json"

UNRELATED = {"_ahead.py", "_cache.py", "_cached.py", "_compiled.py", "_pycc.py"}
"""Files on which no compiled code depends."""

taken: set[tuple[str, str]] = set()
"""Functions and signatures whose code this process has taken from the modules."""

_loading = threading.RLock()  # a generator that is forgotten meanwhile may end in the thread that has it

if hasattr(os, "register_at_fork"):  # else a process forked while a thread loads a module would wait for that thread
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


@cache
def sources() -> str:
    """Return the hash of all files in `kernels/` on which compiled code may depend."""
    digest = hashlib.sha256()
    zipped = {}
    if not FOLDER.is_dir():
        from importlib.resources import files

        zipped = {each.name: each for each in files(__package__).iterdir()}
    for name in sorted(zipped or os.listdir(FOLDER)):
        if name.endswith((".py", ".npz")) and name not in UNRELATED:
            with zipped[name].open("rb") if zipped else open(f"{FOLDER}/{name}", "rb", buffering=0) as source:
                content = source.read()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def suffix() -> str:
    """Return the suffix of extension modules of this Python alone, such as .cpython-311-x86_64-linux-gnu.so."""
    return EXTENSION_SUFFIXES[0]


@cache
def index() -> tuple[dict[str, Any], str]:
    """Return the index of the modules, with the functions of the levels that this processor has, and an empty reason.

    If no module is used, return an empty index and the reason.
    """
    try:
        found = json.loads((FOLDER / INDEX).read_bytes())
        made_of, for_python = found["sources"], found["suffix"]
        dict(found["modules"])
        levels = [(set(level["features"]) - features(), dict(level["functions"])) for level in found["levels"]]
        lacking = sorted(levels[-1][0])
    except FileNotFoundError:
        return {}, "none came with this installation"
    except NotADirectoryError:
        return {}, "extension modules cannot be loaded from a zip file"
    except (OSError, ValueError, LookupError, TypeError) as error:
        return {}, f"{INDEX} cannot be read ({type(error).__name__}: {error})"
    if for_python != suffix():
        return {}, f"they are for {for_python}, and this Python takes {suffix()}"
    if made_of != sources():
        return {}, "they were made of other sources than these"
    if lacking:
        return {}, f"this processor lacks {', '.join(lacking)}"
    if is_x86() and not carryless_products():
        return {}, "NEARDUP_CLMUL=0 asks for kernels without the carry-less product"
    return {**found, "levels": [functions for lacks, functions in levels if not lacks]}, ""


def entry(function: str, signature: str) -> Callable | None:
    """Return a function's code for a declared signature; None if it has to be compiled."""
    with _loading:  # other threads wait, because they need the same modules
        found, reason = index()
        for functions in found.get("levels", ()):
            file, name = functions.get(function, {}).get(signature, ("", ""))
            if file:
                module, reason = _module(file)
                if module is not None:
                    code: Callable = getattr(module, name)
                    taken.add((function, signature))
                    return code
    _say(reason or f"{function} was left out of them")
    return None


@cache
def _module(file: str) -> tuple[ModuleType | None, str]:
    """Load a module if its hash is in the index; return it, or None and the reason why it cannot be used."""
    path = FOLDER / file
    try:
        if hashlib.sha256(path.read_bytes()).hexdigest() != index()[0]["modules"][file]:
            return None, f"{file} is damaged"
        loader = ExtensionFileLoader(f"{__package__}.{file.partition('.')[0]}", str(path))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        module.use_turn(turn.buffer_info()[0])
    except (OSError, ImportError) as error:  # such as a file system without programs (noexec)
        return None, f"{file} cannot be loaded ({error})"
    return module, ""


@cache
def _say(reason: str) -> None:
    """Log, once for each reason, why kernels are not taken from the modules."""
    log.debug("kernels are compiled when they are first used, and kept where they can be: %s", reason)
