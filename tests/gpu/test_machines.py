"""Machines with two GPUs, a slice of one, none that is visible, or a driver that is too old.

Each is a process in which CuPy itself asks `stub_cuda.c` instead of CUDA: what is refused, and which device is used.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import stub_device

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not stub_device.POSSIBLE, reason="the stub of a device is for x86-64")

BEGIN = """
import ctypes
import stub_device
stub = stub_device.start(fill=1)
number = lambda name, *value: stub_device.number(stub, name, *value)
kept = ctypes.c_uint64.in_dll(stub, "stub_free")
import cupy
from neardup_gpu import Engine
from neardup_gpu.engine import choice
from neardup_gpu.errors import NeardupError
from neardup_gpu.kernels import _compiled, _launch
choice._comes_compiled = lambda: True
_compiled.archive = lambda: (object(), "")

def refused(**options):
    choice._problem.cache_clear()
    try:
        with Engine(backend="gpu", **options).start():
            raise AssertionError("it was started")
    except NeardupError as error:
        assert len(str(error).splitlines()) == 1, error
        return str(error)
"""

MACHINES = {
    "two GPUs": """
number("stub_devices", 2)
with Engine(backend="gpu", device=1).start() as runtime:
    assert cupy.cuda.runtime.getDevice() == _launch.current_device() == runtime.describe()["number"] == 1
assert cupy.cuda.runtime.getDevice() == 0
assert "device 2: there are 2 GPUs, counted from 0 (CUDA_VISIBLE_DEVICES=0,1)" in refused(device=2)
""",
    "a slice of a GPU": """
kept.value = 9 * 10**9
ctypes.c_char_p.in_dll(stub, "stub_name").value = b"NVIDIA A100-SXM4-40GB MIG 3g.20gb"
with Engine(backend="gpu").start() as runtime:
    assert runtime.describe()["name"] == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert _launch.memory_pool().get_limit() <= 0.8 * 9 * 10**9
assert refused(gpu_memory="12GB") == "memory 12.0 GB: 9.0 GB of 18.0 GB are free on device 0; ask for less"
assert "device 1: there is 1 GPU" in refused(device=1)
""",
    "no GPU that is visible": """
number("stub_devices", 0)
number("stub_failure", 100)
assert "there is a driver, but no GPU that CUDA_VISIBLE_DEVICES= shows; see nvidia-smi" in refused()
assert choice.resolve(None) == "cpu"
""",
    "a driver that is too old": """
number("stub_failure", 35)
number("stub_version", 12040)
said = refused()
assert "the driver is too old: it supports CUDA 12.4, this CuPy is for CUDA " in said, said
assert said.endswith("update the driver or install 'neardup-gpu[cuda12]'; or use backend='cpu'"), said
""",
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_used_or_refused_in_one_line(name):
    paths = [str(HERE / "harness"), *sys.path]
    visible = {"two GPUs": "0,1", "no GPU that is visible": ""}.get(name, "MIG-1b2c")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CUDA_VISIBLE_DEVICES": visible}
    words = [sys.executable, "-c", BEGIN + MACHINES[name] + "print('done')"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("done\n"), done.stderr
