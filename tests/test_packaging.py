"""The package works from a wheel, an editable install, a checkout and a zip, beside a foreign package named kernels."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from neardup_gpu.kernels._ahead import INDEX

pytestmark = pytest.mark.thorough

REPOSITORY = Path(__file__).parent.parent

HEAVY = ("numpy", "numba", "pyarrow")

# Runs a kernel that reads the Unicode table, by its definition, and a compiled function; prints where they came from.
USE = """
import numpy as np
import neardup_gpu
from neardup_gpu import Recipe, tokenize
from neardup_gpu.kernels import _gf2, tokens
words = tokenize(["Straße 1", "STRASSE １"], Recipe(), backend="reference")
assert (words[0] == words[1]).all() and len(words[0]) == 2, words
assert _gf2.mix64(np.uint64(0)) == 0
print(tokens.__file__)
"""


def python(executable: Path | str, code: str, cwd: Path, path: Path | None = None, **environment: str) -> str:
    """Output of a new interpreter that sees nothing of this one's environment but PYTHONPATH=path."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    if path is not None:
        clean["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [str(executable), "-c", code],
        cwd=cwd,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packaged, so that building leaves nothing in the working tree."""
    folder = tmp_path_factory.mktemp("checkout") / "repository"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for name in ("neardup_gpu", "kernels"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*pip, str(checkout)], check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of links to this environment's packages, without neardup_gpu."""
    folder = tmp_path_factory.mktemp("dependencies")
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(place).iterdir():
            if "neardup_gpu" not in entry.name and entry.suffix != ".pth":
                (folder / entry.name).symlink_to(entry)
    return folder


def fresh_environment(folder: Path, dependencies: Path, source: Path, *options: str) -> Path:
    """The interpreter of a new virtual environment into which `source` is installed."""
    venv.create(folder, symlinks=os.name != "nt")
    scheme = {"base": str(folder), "platbase": str(folder), "installed_base": sys.base_prefix}
    packages = Path(sysconfig.get_path("purelib", "venv", scheme))
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    executable = Path(sysconfig.get_path("scripts", "venv", scheme)) / Path(sys.executable).name
    if not executable.exists():
        executable = executable.with_name("python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(executable),
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, *options, str(source)], check=True, timeout=300)
    return executable


@pytest.fixture(scope="module", params=["wheel", "editable"])
def installed(
    request: pytest.FixtureRequest,
    wheel: Path,
    checkout: Path,
    dependencies: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param) / "environment"
    source, options = (wheel, []) if request.param == "wheel" else (checkout, ["--editable"])
    return request.param, fresh_environment(folder, dependencies, source, *options)


def test_installed(installed: tuple[str, Path], checkout: Path, tmp_path: Path) -> None:
    kind, executable = installed
    found = Path(python(executable, USE, tmp_path))
    if kind == "editable":
        assert found == checkout / "kernels" / "tokens.py"
    else:
        assert found.parent.name == "kernels" and found.parent.parent.name == "neardup_gpu"


def test_installed_command(installed: tuple[str, Path], tmp_path: Path) -> None:
    _, executable = installed
    command = executable.with_name("neardup.exe" if os.name == "nt" else "neardup")
    done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("neardup ")


def test_foreign_kernels_stays_importable(installed: tuple[str, Path], tmp_path: Path) -> None:
    _, executable = installed
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").write_text("FOREIGN = True\n")
    for first, second in (("kernels", "neardup_gpu.kernels"), ("neardup_gpu.kernels", "kernels")):
        code = f"import {first}, {second}; print(kernels.FOREIGN, neardup_gpu.kernels.__name__)"
        assert python(executable, code, tmp_path) == "True neardup_gpu.kernels"


def test_bare_checkout(checkout: Path, dependencies: Path) -> None:
    base = sys._base_executable  # type: ignore[attr-defined]  # the interpreter without this environment's packages
    assert python(base, USE, checkout, dependencies) == str(checkout / "kernels" / "tokens.py")


def test_kernels_has_one_name(checkout: Path, dependencies: Path) -> None:
    code = "try:\n import kernels\nexcept ImportError as error:\n print(error)"
    base = sys._base_executable  # type: ignore[attr-defined]
    assert "neardup_gpu.kernels" in python(base, code, checkout, dependencies)


@pytest.mark.parametrize("suffix", [".zip", ".whl"])
def test_zip(wheel: Path, dependencies: Path, tmp_path: Path, suffix: str) -> None:
    """Numba keeps compiled code only for source files, so from a zip it is compiled anew, but it runs."""
    archive = tmp_path / f"package{suffix}"
    shutil.copy(wheel, archive)
    base = sys._base_executable  # type: ignore[attr-defined]
    code = f"import sys; sys.path.insert(0, {str(archive)!r})\n{USE}"
    assert python(base, code, tmp_path, dependencies) == str(archive / "neardup_gpu" / "kernels" / "tokens.py")


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    compiled = {name for name in names if name.startswith("neardup_gpu/kernels/_ahead") and not name.endswith(".py")}
    files = [path for path in (REPOSITORY / "neardup_gpu").rglob("*") if path.is_file()]
    left_out = {"__pycache__", "building"}
    package = {path.relative_to(REPOSITORY).as_posix() for path in files if not left_out & set(path.parts)}
    kernels = {f"neardup_gpu/kernels/{path.name}" for path in (REPOSITORY / "kernels").iterdir() if path.is_file()}
    assert names - compiled == (package | kernels) - compiled
    assert not compiled or f"neardup_gpu/kernels/{INDEX}" in compiled
    assert len(licences) == 1


def test_import_is_light() -> None:
    code = f"import sys, neardup_gpu; print([name for name in {HEAVY} if name in sys.modules], dir(neardup_gpu) != [])"
    assert python(sys.executable, code, REPOSITORY) == "[] True"
