"""Every CUDA kernel of neardup_gpu.kernels, by name.

Kernels that are attributes of a module, or values of a dict that is one, are found by themselves. Those that a cached
factory makes are listed here, argument by argument. `name_of` refuses a kernel that is in neither way known, and every
launch of the tests asks it, so none can be left out.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path
from types import ModuleType

from neardup_gpu import kernels
from neardup_gpu.kernels import minhash
from neardup_gpu.kernels._launch import Kernel

FACTORIES = {
    "minhash._signature_kernel": [(bits, n) for bits, most in minhash._MOST.items() for n in range(1, most + 1)],
}
"""The arguments with which each factory of kernels is called."""


@cache
def modules() -> dict[str, ModuleType]:
    names = sorted(path.stem for path in Path(kernels.__path__[0]).glob("*.py") if path.stem != "__init__")
    return {name: importlib.import_module(f"neardup_gpu.kernels.{name}") for name in names}


def factories() -> set[str]:
    """Names of the cached functions that return a `Kernel`."""
    return {
        f"{module}.{name}"
        for module, content in modules().items()
        for name, value in vars(content).items()
        if hasattr(value, "cache_info") and inspect.signature(value).return_annotation in (Kernel, "Kernel")
    }


@cache
def all_kernels() -> dict[str, Kernel]:
    """{name: kernel}, such as "minhash._signature_kernel(32, 3)" or "sequences._accumulate"."""
    found: dict[str, Kernel] = {}
    for module, content in modules().items():
        for name, value in vars(content).items():
            if isinstance(value, Kernel) and value.function.__module__ == content.__name__:
                found[f"{module}.{name}"] = value
            elif isinstance(value, dict):
                for key, member in value.items():
                    if isinstance(member, Kernel):
                        found[f"{module}.{name}[{key}]"] = member
    for factory, calls in FACTORIES.items():
        module, name = factory.split(".")
        for arguments in calls:
            found[f"{factory}({', '.join(map(str, arguments))})"] = getattr(modules()[module], name)(*arguments)
    return found


@cache
def name_of(kernel: Kernel) -> str:
    """The kernel's name; LookupError if it is not in the list."""
    for name, listed in all_kernels().items():
        if listed is kernel:
            return name
    raise LookupError(f"{kernel.__name__}{kernel.signature[4:]} was launched, but kernel_list.py lacks it")
