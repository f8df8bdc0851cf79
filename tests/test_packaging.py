"""The package works from a wheel, an editable install, a checkout and a zip, beside a foreign package named kernels."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from neardup_gpu.kernels import _ahead

REPOSITORY = Path(__file__).parent.parent

HEAVY = ("numpy", "numba", "pyarrow")

# Runs a kernel that reads the Unicode table, by its definition, and a compiled function; prints where they came from.
USE = """
import numpy as np
import neardup_gpu
from neardup_gpu import Recipe
from neardup_gpu.stages import tokenize
from neardup_gpu.kernels import _gf2, tokens
words = tokenize(["Straße 1", "STRASSE １"], Recipe(), backend="reference")
assert (words[0] == words[1]).all() and len(words[0]) == 2, words
assert _gf2.mix64(np.uint64(0)) == 0
print(tokens.__file__)
"""


def python(executable: Path | str, code: str, cwd: Path, path: Path | None = None, **environment: str) -> str:
    """Output of a new interpreter that sees nothing of this one's environment but PYTHONPATH=path."""
    clean = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
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
    left_out = shutil.ignore_patterns("__pycache__", "_ahead.json", "_ahead_*.so", "*.egg-info")
    for name in ("neardup_gpu", "kernels"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=left_out)
    return folder


def build(source: Path, folder: Path, **environment: str) -> tuple[Path, str]:
    """The wheel of a source tree, which stays as it is; and what pip prints."""
    before = content(source)
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    done = subprocess.run(
        [*pip, str(source)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    assert content(source) == before
    (built,) = folder.glob("*.whl")
    return built, done.stdout


def content(folder: Path) -> dict[str, bytes]:
    """Return all files, but for the bytecode that Python leaves beside what it imports."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return build(checkout, tmp_path_factory.mktemp("wheel"), CC="/nonexistent/cc")


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, str]) -> Path:
    """A wheel that was built without a compiler."""
    return built[0]


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


@pytest.fixture(scope="module")
def compiled(checkout: Path, dependencies: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment whose package was built with a compiler.

    It is this one if the package that runs these tests is of that kind: building another one takes minutes.
    """
    folder = Path(_ahead.__file__).parent
    if _ahead.index()[0] and "site-packages" in folder.parts:
        kernels = [path for path in (checkout / "kernels").iterdir() if path.is_file()]
        assert all((folder / path.name).read_bytes() == path.read_bytes() for path in kernels)
        return Path(sys.executable)
    wheel, _ = build(checkout, tmp_path_factory.mktemp("compiled"))
    return fresh_environment(tmp_path_factory.mktemp("with_modules") / "environment", dependencies, wheel)


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


def test_without_a_compiler_the_wheel_is_for_every_system(built: tuple[Path, str]) -> None:
    wheel, said = built
    assert wheel.name.endswith("-py3-none-any.whl")
    assert said.count("There is no C or C++ compiler: kernels will be compiled when they are first used.") == 1


def test_windows_compiles_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is a compiler: the build asks for no Numba and compiles nothing."""
    specification = importlib.util.spec_from_file_location("backend", REPOSITORY / "neardup_gpu/building/backend.py")
    assert specification is not None and specification.loader is not None
    backend = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(backend)
    monkeypatch.setattr(shutil, "which", lambda command: command)
    assert backend.get_requires_for_build_wheel() == backend.COMPILERS
    monkeypatch.setattr(sys, "platform", "win32")
    assert backend.get_requires_for_build_wheel() == []


def test_a_compiler_that_fails(checkout: Path, tmp_path: Path) -> None:
    """The wheel is built all the same: here no kernel is translated, as Numba cannot be imported."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "numba.py").write_text("raise ImportError('numba is broken')")
    (tmp_path / "wheels").mkdir()
    wheel, said = build(
        checkout, tmp_path / "wheels", CC=sys.executable, CXX=sys.executable, PYTHONPATH=str(tmp_path / "broken")
    )
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "numba is broken" in said
    assert said.count("Kernels could not be compiled: they will be when they are first used.") == 1


DAYS_WORK = """
import os
import sys
import neardup_gpu as nd
from neardup_gpu.jobs.comparison import compare
texts = ["to be or not to be that is the question", "to be or not to be that is the question whether", "a rose"]
for method in nd.stages.METHODS:
    assert nd.dedup({"text": texts}, method=method, engine="cpu", output=f"out-{method}").documents.num_rows == 3
for method in ("minhash", "exact", "simhash"):
    with nd.Index.create(f"index-{method}", method=method, engine="cpu") as index:
        index.add({"text": texts})
        index.query({"text": texts[:1]})
assert compare(*texts[:2]).resemblance > 0.5
nd.sketches.sketch_text(texts[0], nd.Recipe(method="minhash"))
nd.sketches.sketch({"text": texts}, "sketches.parquet", engine="cpu")
heavy = [name for name in ("numba", "llvmlite") if name in sys.modules]
os.environ["NEARDUP_CACHE_DIR"] = "further"  # for Numba, which is imported by what lists all kernels
from neardup_gpu.kernels import _ahead, _cpu, _pycc
rare = {(each.name, signature) for each in _pycc.declared().values() for signature in each.signatures
        if isinstance(signature, _cpu.Rare)}
print(heavy, sorted(rare & _ahead.taken))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kernels are compiled on demand")
def test_kernels_come_compiled(compiled: Path, tmp_path: Path) -> None:
    """Nothing that is done every day compiles, imports what compiles, or needs a kernel that few jobs need."""
    cache = tmp_path / "cache"
    assert python(compiled, DAYS_WORK, tmp_path, NEARDUP_CACHE_DIR=str(cache)) == "[] []"
    assert not cache.exists()
    code = "import importlib.metadata as m; print(m.distribution('neardup_gpu').read_text('WHEEL'))"
    said = python(compiled, code, tmp_path)
    assert "Root-Is-Purelib: false" in said and f"Tag: cp3{sys.version_info.minor}-" in said


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


def test_wheel_holds_the_package_and_nothing_else(wheel: Path, checkout: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    files = {name for name in content(checkout) if name.startswith(("neardup_gpu/", "kernels/"))}
    expected = {name.replace("kernels/", "neardup_gpu/kernels/", 1) for name in files}
    assert names == {name for name in expected if "neardup_gpu/building/" not in name and ".egg-info/" not in name}
    assert len(licences) == 1


def test_import_is_light() -> None:
    code = f"import sys, neardup_gpu; print([name for name in {HEAVY} if name in sys.modules], dir(neardup_gpu) != [])"
    assert python(sys.executable, code, REPOSITORY) == "[] True"
