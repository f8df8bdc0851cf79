"""GPU kernels that came compiled with the package, launched without NVIDIA's compiler and without waiting for it.

`_compiled.zip` holds every kernel's machine code for some chips, and PTX, which the driver compiles for those that are
later. tests/gpu/harness/archive.py makes it from the sources when a wheel is built; the repository has none. It holds a
hash of its sources, and is not used with other sources. A kernel that is not found in it is compiled by numba-cuda when
it is first launched.

    index.json       "sources": the hash; "made_by": versions of packages; "kernels": {key: [file, entry point]}
    sm_90/FILE       machine code for a chip: it also runs on chips of the same major capability that are not older
    compute_80/FILE  PTX
"""

from __future__ import annotations

import io
import json
import logging
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ._ahead import sources

if TYPE_CHECKING:
    from ._launch import Kernel

OUT_OF_MEMORY = 2
"""CUDA's number of the error."""

taken: set[str] = set()
"""Names of the kernels whose code this process took from the archive."""

refused: dict[str, str] = {}
"""Names of the kernels that have to be compiled by numba-cuda, and why."""

log = logging.getLogger("neardup_gpu")

FILE = "_compiled.zip"
INDEX = "index.json"
PTX = "compute_80"
"""The folder of PTX: of the oldest chip that is supported, so that every later one takes it."""


def key(kernel: Kernel) -> str:
    """Return the key of a kernel: its function, the constants that a factory gave it, and its signature."""
    function = kernel.function
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    names = zip(function.__code__.co_freevars, values, strict=True)
    constants = ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in names)
    return f"{function.__module__}.{function.__qualname__}[{constants}] {kernel.signature}"


class Archive:
    """The compiled kernels of a zip.

    Parameters
    ----------
    content : bytes

    Raises
    ------
    ValueError, KeyError, zipfile.BadZipFile
        If it is not such a zip.
    """

    def __init__(self, content: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        index = json.loads(self._zip.read(INDEX))
        self.sources: str = index["sources"]
        self.made_by: dict[str, str] = index["made_by"]
        self.kernels: dict[str, tuple[str, str]] = {name: tuple(place) for name, place in index["kernels"].items()}
        folders = {name.partition("/")[0] for name in self._zip.namelist() if "/" in name}
        self.chips = sorted((int(f[3:-1]), int(f[-1])) for f in folders if f.startswith("sm_"))

    def images(self, kernel: Kernel, capability: tuple[int, int]) -> Iterator[tuple[str, bytes, str]]:
        """Yield the codes that can be loaded on a device of this compute capability, the best first.

        Yields
        ------
        str, bytes, str
            What it was compiled for, the code, and the name of its entry point. Nothing if the kernel is not there.
        """
        if (k := key(kernel)) not in self.kernels:
            return
        file, entry = self.kernels[k]
        major, minor = capability
        folders = [f"sm_{x}{y}" for x, y in reversed(self.chips) if x == major and y <= minor]
        for folder in (*folders, PTX):
            yield folder, self._zip.read(f"{folder}/{file}"), entry


@cache
def archive() -> tuple[Archive | None, str]:
    """Return the compiled kernels of the package, if they were made from its sources; otherwise None and the reason."""
    place = files(__package__) / FILE
    if not place.is_file():
        return None, "none came with this installation"
    try:
        found = Archive(place.read_bytes())
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        return None, f"{FILE} cannot be read ({error})"
    if found.sources != sources():
        return None, f"{FILE} was made of other sources than these"
    return found, ""


def load(kernel: Kernel) -> int | None:
    """The driver's handle of a kernel's code from the archive, on CuPy's current device; None if it has to be compiled.

    Modules stay loaded, as kernels do, until the process ends.
    """
    from cupy.cuda import Device, driver

    found, reason = archive()
    if found is None:
        refused[kernel.__name__] = reason
        _announce(reason)
        return None
    capability = Device().compute_capability
    reason = f"{FILE} lacks {key(kernel)}"
    for folder, image, entry in found.images(kernel, (int(capability[:-1]), int(capability[-1]))):
        try:
            handle = int(driver.moduleGetFunction(driver.moduleLoadData(image), entry))
            taken.add(kernel.__name__)
            return handle
        except driver.CUDADriverError as error:
            if error.status == OUT_OF_MEMORY:
                raise
            reason = f"the driver refuses {kernel.__name__} for {folder}: {error}"
            log.info("%s", reason)
    refused[kernel.__name__] = reason
    _announce(reason)
    return None


@cache
def _announce(reason: str) -> None:
    """Say, once for each reason, that kernels are compiled."""
    log.info("GPU kernels are compiled, if they are not kept from an earlier run (about a minute for all): %s", reason)
