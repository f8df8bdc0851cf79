"""What a release consists of: one version, a source distribution with the whole tree, and a wheel."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import neardup_gpu
from neardup_gpu import demo
from neardup_gpu.kernels import _compiled

yaml = pytest.importorskip("yaml")

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def run(*command: object, cwd: Path = REPOSITORY, **environment: str) -> str:
    """Output of a command, which has to succeed."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tree() -> list[str]:
    """The files of the working tree, without those that git ignores."""
    if (REPOSITORY / ".git").exists():
        told = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        return sorted(name for name in told if name and (REPOSITORY / name).is_file())
    ignored = (REPOSITORY / ".gitignore").read_text().split()
    found = []
    for place, folders, names in os.walk(REPOSITORY):
        here = Path(place).relative_to(REPOSITORY)
        folders[:] = [name for name in folders if not _is_ignored(here / name, ignored)]
        found += [(here / name).as_posix() for name in names]
    return sorted(found)


def _is_ignored(folder: Path, ignored: list[str]) -> bool:
    for pattern in ignored:
        whole = pattern.rstrip("/")
        if fnmatch.fnmatch(folder.as_posix() if "/" in whole else folder.name, whole):
            return True
    return False


# ------------------------------------------------------------------------------------------------- what it is called


def test_the_version_has_one_home() -> None:
    assert PROJECT["dynamic"] == ["version"]
    (newest, *_) = re.findall(r"^## \[([^\]]+)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == neardup_gpu.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", newest)


def test_the_citation_is_valid_and_says_the_same() -> None:
    path = REPOSITORY / "CITATION.cff"
    run("check-jsonschema", "--builtin-schema", "vendor.citation-file-format", path, PATH=_path())
    said = yaml.safe_load(path.read_text())
    assert said["version"] == neardup_gpu.__version__
    assert said["license"] == PROJECT["license"]
    assert said["title"] == PROJECT["name"]
    assert said["keywords"] == PROJECT["keywords"]


def _path() -> str:
    """Where this environment's programs are, before those of the system."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


# ------------------------------------------------------------------------------------------------- what it consists of


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build the source distribution of a clean copy of the tree, and from it a wheel without compiled kernels.

    `test_packaging.py` tests compiled kernels.
    """
    folder = tmp_path_factory.mktemp("release")
    for name in tree():
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / "tree" / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=folder / "tree", CC="none")
    (source,), (wheel,) = (list((folder / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    return source, wheel


def test_the_source_distribution_has_the_whole_tree(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    made = {name for name in names if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    assert names - made == set(tree())


def test_both_are_fit_for_an_index(built: tuple[Path, Path]) -> None:
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built)
    assert said.count("PASSED") == 2
    assert all(f"neardup_gpu-{neardup_gpu.__version__}" in path.name for path in built)


def test_the_wheel_has_the_texts_with_their_notice(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = archive.namelist()
        notice = archive.read("neardup_gpu/demo/NOTICE.md")
    licences = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "neardup_gpu/demo/NOTICE.md"}
    assert notice == (Path(demo.FILES[0]).parent / "NOTICE.md").read_bytes()
    assert {f"neardup_gpu/demo/{Path(path).name}" for path in (*demo.FILES, demo.AUDITED)} <= set(names)


# --------------------------------------------------------------------------------------------- what it is installed by


def test_each_extra_resolves() -> None:
    """With all others but the other CUDA, on Linux, where all of them are: what suits all suits each.

    It asks the package index, and installs nothing.
    """
    if not (os.environ.get("UV_INDEX_URL") or os.environ.get("PIP_INDEX_URL")):
        try:
            socket.create_connection(("pypi.org", 443), timeout=10).close()
        except OSError as error:
            pytest.skip(f"pypi.org cannot be reached: {error}")
    platform = ["--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.11"]

    def resolved(extras: list[str]) -> str:
        asked = [word for extra in extras for word in ("--extra", extra)]
        return run("uv", "pip", "compile", "-q", REPOSITORY / "pyproject.toml", *asked, *platform, PATH=_path())

    extras = PROJECT["optional-dependencies"]
    both = [[extra for extra in extras if not extra.startswith(other)] for other in ("cuda12", "cuda13")]
    with ThreadPoolExecutor(2) as threads:
        for some, said in zip(both, threads.map(resolved, both), strict=True):
            lines = [line for extra in some for line in extras[extra] if not line.startswith(PROJECT["name"])]
            named = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in lines}  # type: ignore[index]
            assert {"numba", *named} <= {line.partition("==")[0] for line in said.splitlines()}


def test_each_extra_is_explained() -> None:
    page = (REPOSITORY / "docs" / "how_to" / "install.md").read_text()
    table = "".join(re.findall(r"^\|([^|]*)\|", page, re.MULTILINE))
    assert set(re.findall(r"`([\w-]+)`", table)) == set(PROJECT["optional-dependencies"])


# ---------------------------------------------------------------------------------------------------- what it runs in


def test_the_images_are_linted() -> None:
    if shutil.which("hadolint", path=_path()) is None:
        pytest.skip("hadolint is not installed")
    run("hadolint", "--failure-threshold", "info", REPOSITORY / "Dockerfile", PATH=_path())


def test_the_images_are_built_from_what_a_wheel_needs() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    needed = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "neardup_gpu", "kernels"}
    assert {name.partition("/")[0] for name in needed} <= sent
    assert all((REPOSITORY / name).exists() for name in sent)
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    extras = {extra for found in re.findall(r"\[([\w,-]+)\]' ';'", dockerfile) for extra in found.split(",")}
    assert {"cuda13-clone"} <= extras <= set(PROJECT["optional-dependencies"])
    assert re.findall(r"^FROM \S+ AS (\w+)$", dockerfile, re.MULTILINE) == ["wheel", "base", "cuda13", "cpu", "serve"]


def workflow(name: str) -> dict[str, Any]:
    """A workflow of GitHub, once it is known to be valid."""
    path = REPOSITORY / ".github" / "workflows" / name
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", path, PATH=_path())
    if shutil.which("actionlint", path=_path()):
        run("actionlint", path, PATH=_path())
    return yaml.safe_load(path.read_text())


def test_ci_runs_what_this_repository_runs() -> None:
    job = workflow("ci.yml")["jobs"]["run"]
    assert job["steps"][-1]["run"] == ".ci/run" and os.access(REPOSITORY / ".ci" / "run", os.X_OK)
    machines = job["strategy"]["matrix"]["machine"]
    assert [name.partition("-")[0] for name in machines] == ["ubuntu", "ubuntu", "macos"]
    assert [name.endswith("-arm") for name in machines] == [False, True, False]


def test_a_release_has_a_wheel_for_each_python_and_machine_that_ci_tests() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert jobs["wheels"]["strategy"]["matrix"] == workflow("ci.yml")["jobs"]["run"]["strategy"]["matrix"]
    asked = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers"]
    linux = run(*asked, "--platform", "linux", "--archs", "x86_64,aarch64").split()
    macos = run(*asked, "--platform", "macos", "--archs", "arm64").split()
    systems = ("manylinux_x86_64", "manylinux_aarch64", "macosx_arm64")
    assert sorted(linux + macos) == sorted(f"cp3{minor}-{system}" for minor in range(11, 15) for system in systems)
    commands = "".join(step.get("run", "") for step in jobs["publish"]["steps"])
    assert f"-eq {len(linux + macos)}" in commands


def test_only_a_tag_is_published_by_the_one_job_that_the_index_trusts() -> None:
    whole = workflow("release.yml")
    jobs = whole["jobs"]
    assert whole["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job or "environment" in job] == ["publish"]
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"]["name"] == "pypi"
    assert publish["if"] == "github.ref_type == 'tag'" and set(publish["needs"]) == {"tests", "wheels", "source"}
    assert publish["steps"][-1] == {"uses": "pypa/gh-action-pypi-publish@release/v1"}


def test_a_release_brings_the_archive_of_gpu_kernels() -> None:
    """One job makes it, the jobs of Linux lay it beside the kernels, and nothing is published without it."""
    jobs = workflow("release.yml")["jobs"]
    (made,) = [step["with"] for step in jobs["gpu"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert made["path"] == f"kernels/{_compiled.FILE}"
    assert any(made["path"] in step.get("run", "") for step in jobs["gpu"]["steps"])
    (laid,) = [step for step in jobs["wheels"]["steps"] if "download-artifact" in step.get("uses", "")]
    assert laid["with"] == {"name": made["name"], "path": "kernels"} and laid["if"] == "runner.os == 'Linux'"
    assert f"neardup_gpu/kernels/{_compiled.FILE}" in "".join(step.get("run", "") for step in jobs["publish"]["steps"])
