"""Builds the package: setuptools, with kernels compiled ahead of time in wheels where there is a C compiler.

Without one the wheel is for every system, and kernels are compiled when they are first used. Editable installations
compile nothing: their sources may change.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import build_meta, dist
from setuptools.build_meta import *  # noqa: F403 (the hooks that are the same)

COMPILERS = ["numba==0.68.1", "numpy==2.4.*"]
"""What compiles kernels ahead of time: pinned, so that a source always gives the same code."""

ROOT = Path(__file__).resolve().parent.parent.parent


def _has_compiler() -> bool:
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return sys.platform != "win32" and shutil.which(shlex.split(command)[0]) is not None


def get_requires_for_build_wheel(config_settings=None):
    """Return what a wheel needs beside setuptools: Numba, where it can be used."""
    compilers = COMPILERS if _has_compiler() else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compilers]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel, with compiled kernels if they can be compiled here."""
    kernels = ROOT / "kernels"
    built = []
    try:
        if _has_compiler():
            built = _compile(kernels)
        else:
            print("There is no C compiler: kernels will be compiled when they are first used.", file=sys.stderr)
        if built:
            dist.Distribution.has_ext_modules = lambda self: True  # the wheel is for this Python and system alone
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        for file in built:
            file.unlink(missing_ok=True)


def _compile(kernels: Path) -> list[Path]:
    """Compile all kernels into their folder; return the files, none if that failed."""
    command = [sys.executable, "-m", "neardup_gpu.kernels._pycc", os.fspath(kernels)]
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT)}
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        print("Kernels could not be compiled; they will be when they are first used.", file=sys.stderr)
        return []
    return [kernels / name for name in done.stdout.split()]
