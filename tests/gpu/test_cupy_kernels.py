"""NVRTC compiles every kernel that CuPy writes for a job, whatever the version of CUDA that is installed here."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import cupy_kernels
import hostir
import stub_device

import neardup_gpu
from neardup_gpu import kernels

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not stub_device.POSSIBLE, reason="the stub of a device is for x86-64")


@pytest.fixture(scope="module")
def calls():
    """What all jobs ask of CuPy; kept for other environments, as it depends on this project's files alone."""
    digest = hashlib.sha256()
    folders = (*neardup_gpu.__path__, *kernels.__path__, HERE, HERE.parent / "support")
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.py")):
        digest.update(path.read_bytes())
    kept = hostir.cache_folder() / f"cupy-{digest.hexdigest()[:16]}.pickle"
    if not kept.exists():
        made = kept.with_suffix(f".{os.getpid()}")
        cupy_kernels.record(made)
        made.replace(kept)
    return kept


def test_recorded_are_functions_methods_and_operators(calls):
    names = {name for name, _, _ in pickle.loads(calls.read_bytes())}
    assert {"cumsum", "searchsorted", "ndarray.astype", "ndarray.__getitem__", "ndarray.__add__"} <= names


def replayed(calls, folder):
    """What came of asking CuPy itself, in a process of its own."""
    words = [sys.executable, HERE / "harness" / "cupy_kernels.py", "replay", calls]
    environment = {**os.environ, "CUPY_CACHE_DIR": str(folder)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_all_of_them_compile(calls):
    """Or are found compiled, from another run; each is loaded, which is not done to what failed."""
    found = replayed(calls, hostir.cache_folder() / "cupy")
    assert not found["failed"]
    assert found["calls"] > 300
    assert found["loaded"] > 120


def test_what_cannot_be_compiled_is_told(tmp_path):
    """The test before can fail: CuPy's own words come back."""
    twice = cupy_kernels.Given(bytes(16), 0, (2,), (8,), "<u8")
    (tmp_path / "calls").write_bytes(
        pickle.dumps([("no_such_function", (twice,), {}), ("sqrt", (twice, twice, 1), {})])
    )
    failed = replayed(tmp_path / "calls", tmp_path / "cupy")["failed"]
    assert [said.partition(":")[0] for said in failed.values()] == ["AttributeError", "TypeError"]
