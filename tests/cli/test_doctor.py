"""`neardup doctor`: one screen, and an answer on every machine, also on those that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import neardup_gpu
from neardup_gpu.installation import doctor

SECTIONS = {
    *("neardup", "python", "system", "packages", "optional", "processor", "threads", "memory"),
    *("kernels", "gpu", "disk", "environment"),
}


def run(*arguments: str, before: Path | None = None, status: int = 0, **environment: str) -> str:
    """What the command prints in a process of its own; modules in the folder `before` come first."""
    path = [str(each) for each in (before, Path(neardup_gpu.__file__).parent.parent) if each is not None]
    done = subprocess.run(
        [sys.executable, "-m", "neardup_gpu", "doctor", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stderr
    assert not done.stderr or status or "--compile" in arguments
    return done.stdout or done.stderr


def test_one_screen() -> None:
    said = run()
    lines = said.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 or " " not in line[12:].strip() for line in lines)
    assert {line[:12].strip() for line in lines} - {""} == SECTIONS
    assert doctor.UNKNOWN not in said
    assert neardup_gpu.__version__ in said and numba.__version__ in said


def test_json_says_the_same() -> None:
    found = json.loads(run("--json", NEARDUP_BACKEND="cpu", SECRET_TOKEN="hidden"))
    assert set(found) == SECTIONS
    assert not [name for name, facts in found.items() if doctor.UNKNOWN in facts]
    assert found["packages"]["numba"] == numba.__version__
    assert found["environment"]["NEARDUP_BACKEND"] == "cpu"
    assert "hidden" not in json.dumps(found)
    assert found["threads"]["used"] >= 1 and found["memory"]["total"] > 0
    assert found["processor"]["features"] == sorted(found["processor"]["features"]) != []
    assert all(0 <= place["free"] <= place["total"] for place in found["disk"].values())


def test_what_kernels_are_compiled_for_can_be_chosen() -> None:
    assert "compiled for generic" in run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")


@pytest.mark.parametrize("name", ["numba", "numpy", "pyarrow", "rich"])
def test_a_broken_package_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("raise ImportError('libgone.so is missing\\nand more')")
    said = " ".join(run(before=tmp_path).split())
    assert "which cannot be imported (ImportError: libgone.so is missing)" in said
    assert "memory" in said and "disk" in said


def test_a_cache_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = " ".join(run(NEARDUP_CACHE_DIR=str(tmp_path / "file" / "cache")).split())
    assert "compiled anew in each process, not kept" in said
    new = json.loads(run("--json", NEARDUP_CACHE_DIR=str(tmp_path / "new")))["kernels"]
    assert new["compiled"] == new["bytes"] == 0 and Path(new["folder"]).parent == tmp_path / "new"


def test_caches_are_counted(tmp_path: Path) -> None:
    home = tmp_path / "cache"
    here = Path(json.loads(run("--json", NEARDUP_CACHE_DIR=str(home)))["kernels"]["folder"])
    (here / "kernel").write_bytes(b"x" * 1000)
    (home / "older").mkdir(mode=0o700)
    (home / "older" / "kernel").write_bytes(b"x" * 70)
    found = json.loads(run("--json", NEARDUP_CACHE_DIR=str(home)))["kernels"]
    assert [found[name] for name in ("compiled", "bytes", "other_versions", "other_bytes")] == [1, 1000, 1, 70]


def test_a_section_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> dict[str, object]:
        raise OSError(5, "Input/output error", "/proc/gone")

    monkeypatch.setitem(doctor._SECTIONS, "memory", fails)
    found = doctor.examine()
    assert dict(doctor.in_words(found))["memory"].startswith("unknown (OSError: [Errno 5] Input/output error")
    assert "total" in found["disk"]["here"]


def test_there_is_nothing_left_to_compile_a_second_time() -> None:
    """Wherever the first call found the kernels: in the installation, in a folder, or by compiling them."""
    first, second = (json.loads(run("--compile", "--json")) for _ in range(2))
    assert first["method"] == second["method"] == "exact"
    assert second["kept"] == first["not_kept"] == second["not_kept"] == 0
    assert second["came_compiled"] == first["came_compiled"]
    assert second["came_compiled"] + second["loaded"] > 0


def test_method_is_for_compile() -> None:
    assert "--method is for --compile; give both" in run("--method", "exact", status=2)
    said = run("--compile", "--method", "best", status=2)
    assert said.strip() == f"neardup: --method 'best' is not one of {', '.join(neardup_gpu.stages.METHODS)}"


ONE_KERNEL = """
import sys
import numpy as np
from neardup_gpu import cli
from neardup_gpu.installation import doctor
from neardup_gpu.kernels import _gf2
doctor._work_by = lambda method: _gf2.mix64(np.uint64(1))
sys.exit(cli.main(["doctor", "--compile", "--json"]))
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_kernels_that_cannot_be_kept(tmp_path: Path) -> None:
    """One function stands for all that a method needs; NEARDUP_CLMUL=0 makes the modules unfit."""
    (tmp_path / "file").write_text("")
    added = {"NEARDUP_CLMUL": "0", "NEARDUP_CACHE_DIR": str(tmp_path / "file" / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", ONE_KERNEL], env={**os.environ, **added}, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["not_kept"] > 0 and found["came_compiled"] == found["loaded"] == found["kept"] == 0


@pytest.mark.gpu
def test_a_gpu_is_named() -> None:
    found = doctor.examine()["gpu"]
    assert found["usable"] and found["name"] and found["free"] <= found["memory"]
    assert any(label == "gpu" and found["name"] in words for label, words in doctor.in_words({"gpu": found}))
