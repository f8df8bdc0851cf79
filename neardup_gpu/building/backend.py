"""Builds the package: setuptools, with kernels compiled ahead of time in wheels where there are a C and a C++ compiler.

Without them the wheel is for every system, and kernels are compiled when they are first used. Kernels that few jobs
need are left out, too, unless NEARDUP_ALL_KERNELS is set, as it is for a release. Editable installations compile
nothing, because their sources may change.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import build_meta, dist
from setuptools.build_meta import *  # noqa: F403 (the hooks that are the same)
from setuptools.command import build_py

COMPILERS = ["llvmlite==0.50.0", "numba==0.68.1", "numpy==2.4.6"]
"""Packages that compile kernels ahead of time. They are pinned, so that equal sources give equal code. All have
wheels for Python 3.11 to 3.14."""

ROOT = Path(__file__).resolve().parent.parent.parent


def _has_compiler() -> bool:
    """Return whether there are a C and a C++ compiler, for the small part of Numba's runtime that modules contain."""
    commands = [os.environ.get(name) or sysconfig.get_config_var(name) or "" for name in ("CC", "CXX")]
    return sys.platform != "win32" and all(shutil.which((shlex.split(each) or [""])[0]) for each in commands)


def get_requires_for_build_wheel(config_settings=None):
    """Return what a wheel needs besides setuptools: Numba, if there are compilers that it can use."""
    return COMPILERS if _has_compiler() else []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel, with compiled kernels if they can be compiled here. The source tree stays as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        compiled = _compile(Path(scratch, "compiled"))
        if compiled:
            dist.Distribution.has_ext_modules = lambda self: True  # the wheel is for this Python and system alone
            build_py.build_py = _adding(compiled)
        # A folder build/ in the source tree would bring files of earlier versions into the wheel.
        configuration = Path(scratch, "setup.cfg")
        configuration.write_text(f"[build]\nbuild_base={scratch}/build\n[egg_info]\negg_base={scratch}\n")
        os.environ["DIST_EXTRA_CONFIG"] = os.fspath(configuration)
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def _adding(compiled: list[Path]) -> type:
    """Return the command that copies the sources of the package, and then what was compiled."""

    class BuildPy(build_py.build_py):
        def run(self) -> None:
            super().run()
            for file in compiled:
                self.copy_file(os.fspath(file), os.path.join(self.build_lib, "neardup_gpu", "kernels", file.name))

    return BuildPy


def _compile(folder: Path) -> list[Path]:
    """Compile all kernels into a new folder; return the files, none if they cannot be compiled."""
    if not _has_compiler():
        print("There is no C or C++ compiler: kernels will be compiled when they are first used.", file=sys.stderr)
        return []
    folder.mkdir()
    # Laid out as installed: in a checkout, the kernels of another editable installation could be found first.
    package = folder.parent / "source" / "neardup_gpu"
    shutil.copytree(ROOT / "neardup_gpu", package, ignore=shutil.ignore_patterns("kernels", "__pycache__"))
    shutil.copytree(ROOT / "kernels", package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join(filter(None, [os.fspath(package.parent), os.environ.get("PYTHONPATH")]))
    which = "all" if os.environ.get("NEARDUP_ALL_KERNELS") else "usual"
    command = [sys.executable, "-m", "neardup_gpu.kernels._pycc", os.fspath(folder), which]
    if subprocess.run(command, cwd=package.parent, env={**os.environ, "PYTHONPATH": path}).returncode:
        print("Kernels could not be compiled: they will be when they are first used.", file=sys.stderr)
        return []
    return sorted(folder.iterdir())
