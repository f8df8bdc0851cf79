"""Compile every kernel as numba-cuda does on a device (LTO-IR, linked by nvJitLink), for each chip, into one file.

    python tests/gpu/harness/archive.py                              print what each chip's code takes
    python tests/gpu/harness/archive.py kernels/_compiled.zip        and keep it where a wheel takes it along

Needs no GPU. A wheel's is made with CUDA 12.9, in the environment of requirements-cuda12.txt: a driver takes machine
code that was made by a CUDA of its own major version or of an earlier one, so those of CUDA 12 and 13 take that.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from pathlib import Path

import hostir
import kernel_list

from neardup_gpu.kernels import _compiled

CHIPS = {"sm_80": (8, 0), "sm_90": (9, 0), "sm_100": (10, 0), "sm_120": (12, 0)}
"""A100 and what is of its generation, H100, B200, and RTX 50 and RTX PRO."""

MADE_BY = (
    *("numba-cuda", "llvmlite"),
    *("nvidia-nvvm", "nvidia-nvjitlink"),  # CUDA 13
    *("nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"),
)


def made_by() -> dict[str, str]:
    """Versions of the packages that make code, which are called otherwise for CUDA 12 and 13."""
    found = {}
    for name in MADE_BY:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def linked(name: str, chip: str) -> tuple[bytes, str]:
    """(machine code of a kernel for a chip, what nvJitLink says of it)"""
    from numba.cuda.cudadrv.driver import _Linker

    library = hostir.code_library(kernel_list.all_kernels()[name])
    linker = _Linker(cc=CHIPS[chip], lto=True)
    linker.add_ltoir(library.get_ltoir(cc=CHIPS[chip]))
    code = linker.complete().code
    return bytes(code), f"{linker.info_log}{linker.error_log}"


@cache
def ptx(name: str) -> bytes:
    """A kernel's PTX for the oldest chip; every later one's driver takes it."""
    code = hostir.code_library(kernel_list.all_kernels()[name]).get_asm_str(cc=CHIPS["sm_80"])
    return code.encode() + b"\0"


def entry(name: str) -> str:
    """What the kernel's function is called in its code."""
    return hostir.code_library(kernel_list.all_kernels()[name])._entry_name


def packed(names: Iterable[str], chips: Iterable[str]) -> bytes:
    """The archive of these kernels for these chips, and of their PTX.

    It is kept in the folder of compiled test code, by the sources and packages that it is made of.
    """
    names, chips = list(names), list(chips)
    listed = kernel_list.all_kernels()
    keys = {name: _compiled.key(listed[name]) for name in names}
    assert len(set(keys.values())) == len(names), "two kernels have one key"
    made = json.dumps([_compiled.sources(), made_by(), names, chips])
    kept = hostir.cache_folder() / f"archive-{hashlib.sha256(made.encode()).hexdigest()[:16]}.zip"
    if kept.exists():
        return kept.read_bytes()
    with ThreadPoolExecutor(2) as pool:  # NVIDIA's compiler runs beside Python
        for name in names:
            hostir.code_library(listed[name])
            pool.submit(ptx, name)
            for chip in chips:
                pool.submit(linked, name, chip)
    files = {name: f"{number:02}" for number, name in enumerate(names)}
    index = {
        "sources": _compiled.sources(),
        "made_by": made_by(),
        "kernels": {keys[name]: [files[name], entry(name)] for name in names},
    }
    content = {_compiled.INDEX: json.dumps(index, indent=1).encode()}
    content |= {f"{_compiled.PTX}/{files[name]}": ptx(name) for name in names}
    content |= {f"{chip}/{files[name]}": linked(name, chip)[0] for chip in chips for name in names}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for place, code in content.items():
            archive.writestr(zipfile.ZipInfo(place), code, zipfile.ZIP_DEFLATED, 9)
    partial = kept.with_name(f"{kept.name}.{os.getpid()}")
    partial.write_bytes(target.getvalue())
    partial.replace(kept)
    return target.getvalue()


def main() -> None:
    begun = time.perf_counter()
    content = packed(kernel_list.all_kernels(), CHIPS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for folder in (*CHIPS, _compiled.PTX):
            members = [member for member in archive.infolist() if member.filename.startswith(f"{folder}/")]
            sizes = [sum(sizes) for sizes in zip(*((m.file_size, m.compress_size) for m in members), strict=True)]
            print(f"{folder:12}{len(members):4} kernels {sizes[0]:9,} bytes, {sizes[1]:9,} in the archive")
    print(f"{len(content):,} bytes in {time.perf_counter() - begun:.1f} s, made by {made_by()}")
    for target in sys.argv[1:]:
        Path(target).write_bytes(content)
        print(target)


if __name__ == "__main__":
    main()
