"""Describe this machine for when something goes wrong: versions, processor, memory, caches, GPU, disks.

Nothing here fails. If a fact cannot be found, the output says so, with the error, since this is made for machines with
defects. So everything is imported where it is needed: a package may be broken.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..report import in_one_line, size

Facts = dict[str, Any]

PACKAGE = Path(__file__).parents[1]
"""The folder of the package."""

UNKNOWN = "unknown"
"""Key and first word of what could not be found out."""

TOLD = ("NEARDUP_", "NUMBA_", "OMP_", "CUDA_", "CUPY_", "RAY_ADDRESS", "TMPDIR", "XDG_CACHE_HOME")
"""Environment variables that change where and how something runs, by their beginnings. Others are nobody's business."""

TELLING = ("sse4.2", "popcnt", "pclmul", "avx", "avx2", "bmi2", "avx512f", "vpclmulqdq", "neon", "sve", "aes")
"""Features of processors that are named on a screen, which has no room for all."""


def examine() -> dict[str, Facts]:
    """All that is found out, in sections; one that could not be has the key "unknown", with the reason.

    Returns
    -------
    dict of str to dict
        Plain values, sizes in bytes: "neardup", "python", "system", "packages", "optional", "processor", "threads",
        "memory", "kernels", "gpu", "disk" and "environment".
    """
    environment = _tried(_environment)  # before Numba is imported, which comes with settings of ours
    return {name: _tried(section) for name, section in _SECTIONS.items()} | {"environment": environment}


def _tried(section: Callable[[], Facts]) -> Facts:
    try:
        return section()
    except Exception as error:  # also what a broken package raises when it is imported
        return {UNKNOWN: in_one_line(error)}


# ------------------------------------------------------------------------------------------------------------ software


def _neardup() -> Facts:
    from .. import __version__
    from ..definitions import DEFINITIONS

    return {"version": __version__, "definitions": DEFINITIONS, "folder": str(PACKAGE)}


def _python() -> Facts:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "executable": sys.executable,
        "encoding": getattr(sys.stdout, "encoding", None),
    }


def _system() -> Facts:
    name = None
    with contextlib.suppress(OSError):
        name = platform.freedesktop_os_release().get("PRETTY_NAME")
    return {"platform": platform.platform(), "name": name, "machine": platform.machine()}


def _packages() -> Facts:
    """Versions of the packages that are always needed. Each is imported, to see whether it can be."""
    import importlib

    found = {name: _version(name) for name in _needed()}
    for name in found:
        try:
            importlib.import_module(name.replace("-", "_"))
        except Exception as error:
            found[name] = f"{found[name]}, which cannot be imported ({in_one_line(error)})"
    return found


def _optional() -> Facts:
    names = _required(lambda marker: "extra" in marker and not re.search(r"""extra == ["'](docs|test)["']""", marker))
    return {name: _version(name) for name in names if name not in _needed()}


def _needed() -> list[str]:
    return ["llvmlite", *_required(lambda marker: "extra" not in marker)]


def _required(wanted: Callable[[str], bool]) -> list[str]:
    """Names of the packages with the wanted markers, among those that neardup_gpu needs."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("neardup_gpu") or []
    except PackageNotFoundError:
        lines = list(_of_checkout())
    parts = [line.partition(";") for line in lines]
    names = [re.match(r"[\w.-]+", name.strip()) for name, _, marker in parts if wanted(marker)]
    return sorted({found[0].lower() for found in names if found})


def _of_checkout() -> Iterator[str]:
    """The requirements in pyproject.toml, in the form of an installation's metadata."""
    import tomllib

    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    yield from project["dependencies"]
    for extra, lines in project["optional-dependencies"].items():
        yield from (f'{line}; extra == "{extra}"' for line in lines)


def _version(name: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _environment() -> Facts:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(TOLD)}


# ------------------------------------------------------------------------------------------------------------ hardware


def _processor() -> Facts:
    from numba.core.registry import cpu_target

    # What kernels are compiled for: NUMBA_CPU_NAME and NUMBA_CPU_FEATURES have been heard.
    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    usable = sorted(each[1:] for each in features.split(",") if each.startswith("+"))
    return {"model": _model(), "compiled_for": name, "triple": triple, "features": usable}


def _model() -> str | None:
    """The name of the processor."""
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    if sys.platform == "darwin":
        import subprocess

        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return platform.processor() or None


def _threads() -> Facts:
    from ..engine.threads import most_threads

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processors": os.cpu_count(), "usable": usable, "used": most_threads()}


def _memory() -> Facts:
    from ..engine.memory import machine_memory

    return machine_memory()._asdict()


def _gpu() -> Facts:
    from ..engine.choice import why_no_gpu

    problem = why_no_gpu()
    if problem is not None:
        return {"usable": False, "reason": problem}
    from ..kernels._launch import simulated

    if simulated():
        return {"usable": True, "name": "Numba's simulator, on the CPU"}
    import cupy

    device = cupy.cuda.Device()
    free, total = device.mem_info
    return {
        "usable": True,
        "name": cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode(),
        "number": cupy.cuda.runtime.getDeviceCount(),
        "compute_capability": device.compute_capability,
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "memory": total,
        "free": free,
    }


# --------------------------------------------------------------------------------------------------------------- disks


def _kernels() -> Facts:
    from ..kernels._numba import CACHE, WHY_NOT_KEPT

    shipped = {"for_processor": _tried(_ahead_of_time), "for_gpus": _tried(_shipped)}
    if CACHE is None:
        return {"folder": None, "reason": WHY_NOT_KEPT, **shipped}
    compiled, num_bytes = _content(CACHE)
    others = [_content(each)[1] for each in CACHE.parent.iterdir() if each.is_dir() and each != CACHE]
    return {
        "folder": str(CACHE),
        "compiled": compiled,
        "bytes": num_bytes,
        "other_versions": len(others),
        "other_bytes": sum(others),
        **shipped,
    }


def _ahead_of_time() -> Facts:
    """Return whether kernels for the processor came compiled with this installation, and why they are not used."""
    from ..kernels._ahead import index

    found, reason = index()
    if not found:
        return {"usable": False, "reason": reason}
    return {"usable": True, "functions": len(found["levels"][-1]), "made_by": found["made_by"]}


def _shipped() -> Facts:
    """The compiled kernels for GPUs that came with this installation."""
    from ..kernels._compiled import archive

    found, reason = archive()
    if found is None:
        return {"usable": False, "reason": reason, "numba_cuda": find_spec("numba_cuda") is not None}
    chips = [f"{major}.{minor}" for major, minor in found.chips]
    return {"usable": True, "kernels": len(found.kernels), "capabilities": chips, "made_by": found.made_by}


def _content(folder: Path) -> tuple[int, int]:
    """Number of files in a folder, and their bytes."""
    sizes = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # it has just been replaced
            sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes)


def _disk() -> Facts:
    return {
        "temporary files": _tried(lambda: _free(tempfile.gettempdir())),
        "compiled kernels": _tried(lambda: _free(_home_of_kernels())),
        "here": _tried(lambda: _free(os.getcwd())),
    }


def _home_of_kernels() -> str:
    """The folder of compiled kernels, or the one in which it would be made."""
    from ..kernels._cache import home

    folder = home()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _free(folder: str) -> Facts:
    import shutil

    total, _, free = shutil.disk_usage(folder)
    return {"folder": folder, "free": free, "total": total, "writable": os.access(folder, os.W_OK)}


_SECTIONS: dict[str, Callable[[], Facts]] = {
    "neardup": _neardup,
    "python": _python,
    "system": _system,
    "packages": _packages,
    "optional": _optional,
    "processor": _processor,
    "threads": _threads,
    "memory": _memory,
    "kernels": _kernels,
    "gpu": _gpu,
    "disk": _disk,
}

# ----------------------------------------------------------------------------------------------------------- compiling


def compile_kernels(method: str = "exact") -> Facts:
    """Load, or compile and keep, the kernels of the processor that common work by a method needs.

    Some generated documents are deduplicated, compared, sketched if the method keeps sketches, and added to an index if
    it can have one.

    Parameters
    ----------
    method : str, default "exact"
        One of `METHODS`.

    Returns
    -------
    dict
        "method"; numbers of functions: "came_compiled" with the installation, "loaded" from the folder of compiled
        kernels, compiled and "kept" there, compiled and "not_kept"; and "seconds".

    Raises
    ------
    ParameterError
        If there is no such method.
    """
    import time

    from ..kernels import _ahead
    from ..methods import as_method

    began = time.perf_counter()
    _work_by(as_method(method))
    cache = sys.modules.get("neardup_gpu.kernels._cache")  # imported, with Numba, once something did not come compiled
    counts = cache.counts if cache is not None else {}
    return {
        "method": method,
        "came_compiled": len(_ahead.taken),
        "loaded": counts.get("loaded", 0),
        "kept": counts.get("kept", 0),
        "not_kept": counts.get("not kept", 0),
        "seconds": round(time.perf_counter() - began, 3),
    }


def _work_by(method: Any) -> None:
    import numpy as np

    from ..index import Index
    from ..jobs.comparison import compare
    from ..jobs.dedup import dedup
    from ..jobs.one_text import sketch_text
    from ..methods import has
    from ..methods.contract import Sketch
    from ..recipe import Recipe
    from .selftest import documents

    table = documents(np.random.default_rng(1), 300)
    first, second, *_ = table["text"].to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        dedup(table, text_columns="text", method=method, output=Path(folder, "out"), engine="cpu")
        compare(first, second)
        if isinstance(method, Sketch):
            sketch_text(first, Recipe(method=method))
        if has(type(method), "finder"):
            with Index.create(Path(folder, "index"), method=method, engine="cpu") as index:
                index.add(table, text_columns="text")
                index.query({"text": [first, second]})


# ------------------------------------------------------------------------------------------------------------ in words


def in_words(found: dict[str, Facts]) -> list[tuple[str, str]]:
    """Return the facts of `examine` as (label, sentence)."""
    rows = []
    for name, facts in found.items():
        words = _IN_WORDS.get(name, _listed)
        told = [f"{UNKNOWN} ({facts[UNKNOWN]})"] if UNKNOWN in facts else words(facts)
        rows += [("" if i else name, line) for i, line in enumerate(told)]
    return rows


def _size(num_bytes: int | None) -> str:
    return UNKNOWN if num_bytes is None else size(num_bytes)


def _listed(facts: Facts) -> list[str]:
    return [", ".join(f"{name}={value}" for name, value in facts.items()) or "none"]


def _packages_in_words(facts: Facts) -> list[str]:
    there = [f"{name} {version}" for name, version in facts.items() if version is not None]
    missing = [name for name, version in facts.items() if version is None]
    lines = [", ".join(there)] if there else []
    return lines + ([f"not installed: {', '.join(missing)}"] if missing else [])


def _processor_in_words(facts: Facts) -> list[str]:
    telling = " ".join(name for name in TELLING if name in facts["features"])
    number = len(facts["features"])
    return [
        facts["model"] or "of unknown model",
        f"compiled for {facts['compiled_for']} with {number} features, among them {telling or 'none that tell much'}",
    ]


def _memory_in_words(facts: Facts) -> list[str]:
    limit = "" if facts["limit"] is None else f"; this container may use {_size(facts['limit'])}"
    return [f"{_size(facts['total'])}, free {_size(facts['free'])}{limit}"]


def _kernels_in_words(facts: Facts) -> list[str]:
    shipped = [_ahead_in_words(facts["for_processor"]), _shipped_in_words(facts["for_gpus"])]
    if facts["folder"] is None:
        return [f"compiled anew in each process, not kept: {facts['reason']}", *shipped]
    kept = f"{facts['compiled']} compiled ({_size(facts['bytes'])})" if facts["compiled"] else "none compiled yet"
    others = ""
    if facts["other_versions"]:
        others = f"; folders of other versions: {facts['other_versions']} ({_size(facts['other_bytes'])})"
    return [f"{kept} in {facts['folder']}{others}", *shipped]


def _ahead_in_words(facts: Facts) -> str:
    if UNKNOWN in facts:
        return f"for the processor: {UNKNOWN} ({facts[UNKNOWN]})"
    if not facts["usable"]:
        return f"for the processor, compiled when first used: {facts['reason']}"
    return f"for the processor, {facts['functions']} functions came compiled"


def _shipped_in_words(facts: Facts) -> str:
    if UNKNOWN in facts:
        return f"for GPUs: {UNKNOWN} ({facts[UNKNOWN]})"
    if not facts["usable"]:
        how = "compiled by numba-cuda when first launched"
        if not facts["numba_cuda"]:
            how = "to be compiled by numba-cuda, which is not installed"
        return f"for GPUs, {how}: {facts['reason']}"
    chips = ", ".join(facts["capabilities"])
    return f"for GPUs, {facts['kernels']} came compiled, for compute capability {chips} and as PTX"


def _gpu_in_words(facts: Facts) -> list[str]:
    if not facts["usable"]:
        return [f"none usable: {facts['reason']}"]
    if "driver" not in facts:
        return [facts["name"]]
    versions = [f"{name} {facts[name] // 1000}.{facts[name] % 1000 // 10}" for name in ("driver", "runtime")]
    return [
        f"{facts['number']} x {facts['name']}, compute capability {facts['compute_capability']}",
        f"CUDA of the {' and of the '.join(versions)}; {_size(facts['memory'])}, free {_size(facts['free'])}",
    ]


def _disk_in_words(facts: Facts) -> list[str]:
    lines = []
    for purpose, place in facts.items():
        if UNKNOWN in place:
            lines.append(f"{purpose}: {UNKNOWN} ({place[UNKNOWN]})")
        else:
            how = "" if place["writable"] else ", which cannot be written"
            lines.append(f"{purpose}: {_size(place['free'])} free of {_size(place['total'])} at {place['folder']}{how}")
    return lines


_IN_WORDS: dict[str, Callable[[Facts], list[str]]] = {
    "neardup": lambda facts: [f"{facts['version']}, definitions {facts['definitions']}, in {facts['folder']}"],
    "python": lambda facts: [
        f"{facts['implementation']} {facts['version']}, {facts['bits']} bits, {facts['executable']}, "
        f"prints {facts['encoding']}"
    ],
    "system": lambda facts: [", ".join(filter(None, (facts["name"], facts["platform"])))],
    "packages": _packages_in_words,
    "optional": _packages_in_words,
    "processor": _processor_in_words,
    "threads": lambda facts: [f"{facts['used']} used, of {facts['usable']} usable and {facts['processors']} there are"],
    "memory": _memory_in_words,
    "kernels": _kernels_in_words,
    "gpu": _gpu_in_words,
    "disk": _disk_in_words,
}
