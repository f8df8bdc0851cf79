"""Kernels compiled for the wheel: all of them, by the route that a device takes, and used only beside their sources."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import archive
import compiled
import kernel_list
import stub_device
from agreement import assert_same, on_host
from fixed_cases import CASES, each_way, expected, resident
from grids import some
from numba import types
from numba.core import sigutils

from neardup_gpu.installation.kernel_inputs import kernel_modules
from neardup_gpu.kernels import _ahead, _compiled
from neardup_gpu.kernels._launch import Kernel, on_device

KERNELS = kernel_list.all_kernels()
NAMED = ("gather._copy_values", "bbit_equal._count", "minhash._signature_kernel(32, 1)")
"""Kernels that a test below takes."""


def kinds_of_arguments():
    """Return the first kernel that has each kind of argument: a type of scalars, or a number of dimensions."""
    found = {}
    for name, kernel in KERNELS.items():
        for kind in sigutils.normalize_signature(kernel.signature)[0]:
            found.setdefault(kind.ndim if isinstance(kind, types.Array) else kind, name)
    return found.values()


PACKED = {name: KERNELS[name] for name in some(KERNELS, sorted({*NAMED, *kinds_of_arguments()}))}
"""Kernels that are compiled, because each takes its time; all of them once a week and before a release."""
CHIPS = some(archive.CHIPS, ["sm_90"])


@pytest.fixture(scope="module")
def content():
    return archive.packed(PACKED, CHIPS)


@pytest.fixture(scope="module")
def found(content):
    return _compiled.Archive(content)


def test_every_kernel_is_there_under_a_key_of_its_own(found):
    assert len(set(map(_compiled.key, KERNELS.values()))) == len(KERNELS)
    assert len(found.kernels) == len(PACKED)
    assert found.chips == sorted(archive.CHIPS[chip] for chip in CHIPS)
    assert {name for name in found.made_by if "nvjitlink" in name}
    for kernel in PACKED.values():
        assert [folder for folder, _, _ in found.images(kernel, (9, 0))] == ["sm_90", "compute_80"]


def test_a_kernel_that_is_not_in_the_list_is_not_there(found):
    known = KERNELS["minhash._signature_kernel(32, 1)"]
    other = Kernel(known.function, known.signature.replace("int64", "int32"), known.block)
    assert list(found.images(other, (9, 0))) == []


@pytest.mark.parametrize(
    ("capability", "folders"),
    [
        ((8, 0), ["sm_80", "compute_80"]),
        ((8, 9), ["sm_80", "compute_80"]),
        ((9, 0), ["sm_90", "compute_80"]),
        ((10, 3), ["sm_100", "compute_80"]),
        ((12, 1), ["sm_120", "compute_80"]),
        ((11, 0), ["compute_80"]),
        ((13, 0), ["compute_80"]),
    ],
)
def test_code_is_for_the_same_generation_and_no_later_chip(capability, folders):
    """Of machine code: what was compiled for x.y runs on x.z from z = y on, and nowhere else."""
    name = "gather._copy_values"
    images = _compiled.Archive(archive.packed([name], archive.CHIPS)).images(KERNELS[name], capability)
    assert [folder for folder, _, _ in images] == folders


def told(tool, options, code):
    """What one of NVIDIA's tools says of machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        words = [compiled.tools() / tool, *options, file.name]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", PACKED)
def test_machine_code_takes_no_stack(found, name, chip):
    """Spilled registers would lie there."""
    (_, code, entry), (_, ptx, _) = found.images(KERNELS[name], archive.CHIPS[chip])
    said = told("cuobjdump", ["-res-usage"], code)
    used = re.search(rf"Function {re.escape(entry)}:\s+REG:\d+ STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", said)
    assert used, f"its entry point is not in the machine code: {said}"
    assert (int(used[1]), int(used[2])) == (0, 0)
    assert f".visible .entry {entry}(".encode() in ptx


@pytest.mark.parametrize("name", PACKED)
def test_machine_code_takes_the_parameters_of_a_launch(found, name):
    """What `Kernel.slots` gives: 8 bytes for each part of an array, and scalars by their types."""
    kernel = KERNELS[name]
    _, code, _ = next(found.images(kernel, (9, 0)))
    sizes = []
    for kind in sigutils.normalize_signature(kernel.signature)[0]:
        is_array = isinstance(kind, types.Array)
        sizes += [8] * (5 + 2 * kind.ndim) if is_array else [1 if kind is types.boolean else kind.bitwidth // 8]
    listed = re.findall(r"Ordinal\s*:\s*0x(\w+)\s+Offset.*?Size\s*:\s*0x(\w+)", told("cuobjdump", ["-elf"], code))
    in_order = {int(ordinal, 16): int(size, 16) for ordinal, size in listed}
    assert [in_order[number] for number in range(len(sizes))] == sizes
    assert len(in_order) == len(sizes)


@pytest.fixture
def installed(content, monkeypatch, tmp_path):
    """A folder in the place of kernels/, with its sources and the archive."""
    here = Path(_compiled.__file__).parent
    for source in (*here.glob("*.py"), *here.glob("*.npz")):
        shutil.copy(source, tmp_path)
    (tmp_path / _compiled.FILE).write_bytes(content)
    monkeypatch.setattr(_ahead, "FOLDER", tmp_path)
    monkeypatch.setattr(_compiled, "files", lambda package: tmp_path)

    def forget():
        _ahead.sources.cache_clear()
        _compiled.archive.cache_clear()

    forget()
    yield tmp_path
    forget()


def test_beside_its_sources_it_is_taken(installed):
    found, reason = _compiled.archive()
    assert found is not None and reason == ""
    assert len(found.kernels) == len(PACKED)


@pytest.mark.parametrize("name", ["_gf2.py", "_launch.py", "_unicode_table.npz"])
def test_beside_other_sources_it_is_not(installed, name):
    with open(installed / name, "ab") as file:
        file.write(b"\n")
    assert _compiled.archive() == (None, "_compiled.zip was made of other sources than these")


def test_without_it_kernels_are_compiled(installed):
    (installed / _compiled.FILE).unlink()
    assert _compiled.archive() == (None, "none came with this installation")


@pytest.mark.parametrize("damage", [b"", b"no zip", 1000])
def test_a_damaged_one_is_not_taken(installed, content, damage):
    (installed / _compiled.FILE).write_bytes(content[:damage] if isinstance(damage, int) else damage)
    found, reason = _compiled.archive()
    assert found is None
    assert reason.startswith("_compiled.zip cannot be read (")


def test_one_without_an_index_is_not_taken(installed):
    with zipfile.ZipFile(installed / _compiled.FILE, "w") as other:
        other.writestr(_compiled.INDEX, json.dumps({"sources": _compiled.sources()}))
    assert _compiled.archive()[0] is None


LAUNCHED = """
import logging, sys
import stub_device
stub = stub_device.start(capability=90)
import cupy, numpy as np
import kernel_list
from pathlib import Path
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.kernels import _compiled, _launch

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
_compiled.log.addHandler(handler)
_compiled.log.setLevel(logging.INFO)
archive = _compiled.Archive(Path(sys.argv[1]).read_bytes())
_compiled.archive = lambda: (archive, "")
number = lambda name, *value: stub_device.number(stub, name, *value)

# A launch gives the driver what `slots` says, and the machine code is loaded once.
kernel = kernel_list.all_kernels()["gather._copy_values"]
arrays = [cupy.asarray(np.arange(n, dtype=t)) for n, t in ((9, "uint64"), (3, "int64"), (4, "int64"), (7, "uint64"))]
slots = kernel.slots(arrays)
number("stub_slots", len(slots))
for _ in range(2):
    kernel.threads(300, *arrays)
assert list(stub_device.array(stub, "stub_parameters", len(slots))) == slots
assert stub_device.shape(stub) == (2, kernel.block)
assert stub_device.function(stub) == archive.kernels[_compiled.key(kernel)][1]
assert number("stub_modules") == 1 and number("stub_launches") == 2 and said == []

# A kernel whose machine code the driver refuses is loaded as PTX; if that is refused too, it is compiled.
scalars = kernel_list.all_kernels()["bbit_equal._count"]
number("stub_refusals", 1)
assert _compiled.load(scalars) and number("stub_modules") == 2
assert len(said) == 1 and "for sm_90: CUDA_ERROR_OF_THE_STUB" in said[0], said
number("stub_refusals", 2)
assert _compiled.load(scalars) is None and number("stub_modules") == 2
assert said[-1].startswith("GPU kernels are compiled, ") and "compute_80" in said[-1], said

# A driver that is older than both, without a compiler: refused in one line, which names what the driver said.
find_spec, _launch.find_spec = _launch.find_spec, lambda name: None
number("stub_refusals", 2)
number("stub_refusal", 222)  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION
try:
    scalars.handle()
except BackendUnavailableError as error:
    assert "the driver refuses _count for compute_80" in str(error) and len(str(error).splitlines()) == 1, error
else:
    raise AssertionError("there is nothing to launch")
_launch.find_spec = find_spec
number("stub_refusals", 1)
number("stub_refusal", 2)  # too little memory is no reason to compile
try:
    _compiled.load(scalars)
except cupy.cuda.driver.CUDADriverError as error:
    assert _launch.out_of_memory(error)
else:
    raise AssertionError("the driver's error was lost")

# What the driver says of a kernel's registers, without numba-cuda.
from benchmarks.tracing import expected_usage, usage
found = usage(kernel, 0.0, expected_usage("sm_90"))
assert (found["kernel"], found["came_compiled"], found["most_threads"]) == ("gather._copy_values", True, 1024), found
assert found["expected_registers"] > 0 and found["local_bytes"] == 0

# Nothing to take: compiled, if numba-cuda is there.
_compiled.archive = lambda: (None, "none came with this installation")
assert _compiled.load(scalars) is None
assert said[-1].endswith("none came with this installation")
_launch.find_spec = lambda name: None
try:
    scalars._compiled_here()
except BackendUnavailableError as error:
    assert "numba-cuda is not installed" in str(error) and "none came with this installation" in str(error)
    assert "install 'neardup-gpu[cuda13-clone]'" in str(error)
else:
    raise AssertionError("numba-cuda is missing")
print("done")
"""


@pytest.mark.skipif(not stub_device.POSSIBLE, reason="the stub of a device is for x86-64")
def test_a_launch_takes_it_from_there(content, tmp_path):
    """By CuPy's own calls of the driver, whose place a stub takes; in a process of its own."""
    (tmp_path / "archive.zip").write_bytes(content)
    words = [sys.executable, "-c", LAUNCHED, str(tmp_path / "archive.zip")]
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("made_for", ["the device", "PTX"])
def test_on_a_device_it_gives_the_bits_of_the_cpu(made_for, monkeypatch):
    """All kernels, none of them compiled here: as machine code, and as PTX that the driver compiles."""
    import cupy

    found = cupy.cuda.Device().compute_capability
    capability = int(found[:-1]), int(found[-1])
    fitting = [chip for chip, (x, y) in archive.CHIPS.items() if x == capability[0] and y <= capability[1]]
    chips = fitting if made_for == "the device" else []
    made = _compiled.Archive(archive.packed(KERNELS, chips))
    images = [folder for folder, _, _ in made.images(KERNELS["gather._copy_values"], capability)]
    assert images == [*reversed(chips), _compiled.PTX]
    loaded = []

    def load(kernel):
        loaded.append(kernel)
        return load_one(kernel)

    def not_here(kernel):
        raise AssertionError(f"{kernel.__name__} was not taken from the archive")

    load_one = _compiled.load
    monkeypatch.setattr(_compiled, "archive", lambda: (made, ""))
    monkeypatch.setattr(_compiled, "load", load)
    monkeypatch.setattr(Kernel, "_compiled_here", not_here)
    for kernel in KERNELS.values():
        monkeypatch.setattr(kernel, "_handles", {})
    for name, number in CASES:
        for arguments in each_way(name, number):
            given = resident(name, arguments, on_device)
            assert_same(expected(name, number), on_host(kernel_modules()[name].gpu(*given)))
    assert {name for name, kernel in KERNELS.items() if kernel not in loaded} == set()
