"""Compiles kernels of the processor ahead of time, into the extension modules that `_ahead.py` loads.

    python -m neardup_gpu.kernels._pycc FOLDER [all | usual]

Every signature that a kernel declares is compiled, by several processes at once. `usual` is for this machine: it leaves
out those that are `Rare`, and compiles each function for one level, the newest that this processor has. A C compiler is
needed, for the small part of Numba's runtime that each module contains.

This is the only file that uses Numba's ahead-of-time compiler, numba.pycc. Numba has deprecated it, and has not yet
released its replacement (the PIXIE project). A replacement has to make modules whose functions take NumPy arrays and
release the interpreter's lock.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import _ahead
from ._cpu import Function, Rare, linked
from ._processor import HASWELL, ICE_LAKE, features, is_x86

LEVELS = {"icelake-server": ICE_LAKE, "haswell": HASWELL} if is_x86() else {"generic": frozenset()}
"""Processors that code is made for, the newest first, and their features. LLVM knows them by these names. See
`_chosen` for the functions that each level has."""


def declared() -> dict[str, Function]:
    """Return all functions that declare signatures, by name."""
    found: dict[str, Function] = {}
    for file in sorted(_ahead.FOLDER.glob("*.py")):
        name = file.stem
        if file.name in _ahead.UNRELATED or name == "__init__":
            continue
        for value in vars(importlib.import_module(f"{__package__}.{name}")).values():
            if isinstance(value, Function) and value.signatures and value.__module__.endswith(f".{name}"):
                found[value.name] = value
    return found


def build(folder: Path, which: str = "all", processes: int | None = None) -> list[str]:
    """Write the modules and their index into a folder; return the names of the files.

    Parameters
    ----------
    folder : Path
    which : "all" or "usual", default "all"
        What to compile: "usual" leaves out signatures that are `Rare`, and levels that this processor does not use.
    processes : int, optional
        How many processes compile a module each of the functions for the last level, while one more process for each
        other level compiles its module. Default: one per processor, at most four. There are never more than files with
        kernels.

    Raises
    ------
    subprocess.CalledProcessError
        If a process fails, which then has printed the reason.
    """
    processes = min(processes or min(4, os.cpu_count() or 1), len({each.__module__ for each in declared().values()}))
    *newer, oldest = _chosen(which)
    shares = [(level, 0, 1) for level in newer] + [(oldest, number, processes) for number in range(processes)]
    with tempfile.TemporaryDirectory() as scratch:
        commands = [
            [sys.executable, "-m", __spec__.name, os.fspath(folder), which, *map(str, share)] for share in shares
        ]
        environment = {**os.environ, "NEARDUP_CACHE_DIR": scratch, "NUMBA_CPU_FEATURES": ""}
        environment["PYTHONHASHSEED"] = "0"  # Numba goes through sets, and equal sources give equal modules
        running = [
            subprocess.Popen(
                command,
                env={**environment, "NUMBA_CPU_NAME": level, "NEARDUP_CLMUL": "" if level in newer else "128"},
                stdout=subprocess.PIPE,
            )
            for command, (level, _, _) in zip(commands, shares, strict=True)
        ]
        printed = [each.communicate()[0] for each in running]
    for command, each in zip(commands, running, strict=True):
        if each.returncode:
            raise subprocess.CalledProcessError(each.returncode, command)
    import numba
    import numpy

    functions: dict[str, dict[str, dict[str, list[str]]]] = {level: {} for level in LEVELS}
    modules = {}
    for (level, _, _), text in zip(shares, printed, strict=True):
        file, names = json.loads(text)
        modules[file] = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for function, signature, name in names:
            functions[level].setdefault(function, {})[signature] = [file, name]
    content = {
        "sources": _ahead.sources(),
        "suffix": _ahead.suffix(),
        "modules": modules,
        "levels": [{"features": sorted(LEVELS[level]), "functions": functions[level]} for level in (*newer, oldest)],
        "made_by": {"numba": numba.__version__, "numpy": numpy.__version__},
    }
    (folder / _ahead.INDEX).write_text(json.dumps(content, indent=1, sort_keys=True))
    return [_ahead.INDEX, *modules]


def _build_share(
    folder: Path, which: str, level: str, number: int, processes: int
) -> tuple[str, list[tuple[str, str, str]]]:
    """Compile one of several shares of a level's signatures into a module; return its file, and what it holds."""
    import numba.pycc.compiler as of_numba
    from numba.core.compiler import Flags
    from numba.pycc.cc import CC

    from . import _calls
    from ._numba import argument_types

    def flags() -> Any:
        made = Flags()
        made.release_gil = True
        return made

    of_numba.Flags = flags  # the compiler has no option for this
    gc.freeze()  # what Numba's passes make is nearly all kept, and is looked through again and again
    gc.set_threshold(100_000, 50, 1000)
    _calls.change()
    _leave_out_what_no_module_needs()
    name = "_".join(["_ahead", *re.findall("[a-z0-9]+", level), str(number)])
    cc = CC(name, sys.modules[__name__])
    cc.output_dir = os.fspath(folder)
    cc.output_file = f"{name}{_ahead.suffix()}"
    cc.target_cpu = level
    cc._extra_cflags = {"posix": ["-O1", "-g0"]}  # kernels call only a few short functions of the runtime in C
    cc._mixin_sources = ["modulemixin.c"]  # without its lists, sets and dictionaries
    names = []
    for at, (function, signature) in enumerate(_shares(_chosen(which)[level], which, processes)[number]):
        name = f"f{at}"
        cc.export(name, argument_types(signature))(linked(function.py_func))
        names.append((function.name, signature, name))
    cc.export(_calls.use_turn.__name__, "none(int64)")(linked(_calls.use_turn))
    cc.compile()
    return cc.output_file, names


def _leave_out_what_no_module_needs() -> None:
    """Make Numba do less for a module: more than a third of the time goes to what no module needs.

    - Functions of a module are called by Python, so they need no entry for C.
    - Functions that only kernels call need no machine code in this process, and are not kept for another. They are
      optimised once, in the module, and not before.
    - LLVM's full optimisation of a module includes what Numba has it do for each function before, and again.
    - Where slices of different shapes are assigned, Numba compiles its formatting of strings to name both shapes. A
      module's error names neither.
    - Nobody listens to Numba's events for each call of LLVM.
    - After each function of a module, Numba lists the names in all functions that it calls: they are listed once.
    - Numba compares its settings at each call that it types, and looks each of them up.
    """
    import llvmlite.binding as llvm
    from llvmlite.binding.module import ModuleRef
    from numba.core.caching import NullCache
    from numba.core.codegen import AOTCodeLibrary, CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
    from numba.core.cpu import CPUContext
    from numba.core.registry import cpu_target
    from numba.core.runtime.nrt import rtsys
    from numba.core.targetconfig import TargetConfig
    from numba.extending import overload
    from numba.np import arrayobj

    from . import _numba

    def raise_shapes(source: Any, target: Any) -> None:
        """Raise an error because two shapes differ."""

    @overload(raise_shapes)
    def _(source: Any, target: Any) -> Any:
        def raises(source: Any, target: Any) -> None:
            raise ValueError("the slices have different shapes")

        return raises

    arrayobj.raise_with_shape_context = raise_shapes
    CPUContext.create_cfunc_wrapper = lambda *_, **__: None
    CPUContext.get_executable = lambda *_: [].append  # another function of C each time, by which Numba knows the kernel
    rtsys.initialize(cpu_target.target_context)  # its functions are called
    JITCodeLibrary._finalize_specific = lambda _: None
    _numba.KernelCache = lambda *_: NullCache()  # type: ignore[misc, assignment]
    llvm.ffi.lib._lock._cblist.clear()
    JITCPUCodegen._add_module = lambda *_: None
    every = ModuleRef.global_variables.fget

    def variables(module: ModuleRef) -> list[Any]:
        if not hasattr(module, "_names"):
            module._names = [SimpleNamespace(name=each.name) for each in every(module)]
        return module._names

    ModuleRef.global_variables = property(variables)
    CPUCodeLibrary._optimize_functions = _set_layout
    JITCodeLibrary._optimize_final_module = lambda _: None
    AOTCodeLibrary._optimize_final_module = _optimize_fully
    TargetConfig.values = lambda self: {**_defaults(self.__class__), **self._values}


def _set_layout(library: Any, module: Any) -> None:
    module.data_layout = library._codegen._data_layout


def _optimize_fully(library: Any) -> None:
    passes, builder = library._codegen._module_pass_manager()
    passes.run(library._final_module, builder)


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    """Return the default of each of Numba's settings of a kind."""
    return {name: option.default for name, option in kind.options.items()}


def _chosen(which: str) -> dict[str, list[Function]]:
    """Return the functions to compile for each level.

    The last level has all functions, and the others have those that `is_wide` marks. A "usual" build has only the
    newest level that this processor has, and the last one without the functions of that level.
    """
    functions = [*declared().values()]
    wide = [each for each in functions if each.is_wide]
    *newer, last = LEVELS
    if which == "usual":
        newer = [level for level in newer if LEVELS[level] <= features()][:1]
    chosen = {level: wide for level in newer if wide}
    return {**chosen, last: [each for each in functions if not (each.is_wide and chosen and which == "usual")]}


def _shares(functions: list[Function], which: str, processes: int) -> list[list[tuple[Function, str]]]:
    """Divide the functions' signatures among processes: those of a file together, as they call the same functions."""
    loads: list[tuple[int, int, list[tuple[Function, str]]]] = [(0, number, []) for number in range(processes)]
    by_file: dict[str, list[tuple[Function, str]]] = {}
    for function in functions:
        some = [(function, each) for each in function.signatures if which == "all" or not isinstance(each, Rare)]
        if some:
            by_file.setdefault(function.__module__, []).extend(some)
    for some in sorted(by_file.values(), key=_size, reverse=True):
        load, number, share = min(loads)
        loads[number] = (load + _size(some), number, share + some)
        loads.sort(key=lambda each: each[1])
    return [share for _, _, share in loads]


def _size(some: list[tuple[Function, str]]) -> int:
    return sum(len(function.py_func.__code__.co_code) for function, _ in some)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print(*build(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else "all"))
    else:
        logging.getLogger("neardup_gpu").setLevel("ERROR")  # nothing is kept here for jobs
        said, sys.stdout = sys.stdout, sys.stderr  # distutils prints the compiler's commands
        folder, which, level, number, processes = sys.argv[1:]
        print(json.dumps(_build_share(Path(folder), which, level, int(number), int(processes))), file=said, flush=True)
