"""Kernels compiled for the wheel: all of them, by the route that a device takes, and launched only beside their sources."""

import io
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
from numba import types
from numba.core import sigutils

from neardup_gpu.kernels import _compiled
from neardup_gpu.kernels._launch import Kernel

KERNELS = kernel_list.all_kernels()


@pytest.fixture(scope="module")
def content():
    return archive.packed(KERNELS, ["sm_90"])


@pytest.fixture(scope="module")
def found(content):
    return _compiled.Archive(content)


def test_every_kernel_is_there_under_a_key_of_its_own(found):
    assert len(found.kernels) == len(KERNELS)
    assert found.chips == [(9, 0)]
    assert {name for name in found.made_by if "nvjitlink" in name}
    for kernel in KERNELS.values():
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
def test_code_is_for_the_same_generation_and_no_later_chip(content, capability, folders):
    """Of machine code: what was compiled for x.y runs on x.z from z = y on, and nowhere else."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(target, "w") as other:
        for name in whole.namelist():
            for chip in archive.CHIPS if name.startswith("sm_90") else [name.partition("/")[0]]:
                other.writestr(name.replace("sm_90", chip), whole.read(name))
    images = _compiled.Archive(target.getvalue()).images(next(iter(KERNELS.values())), capability)
    assert [folder for folder, _, _ in images] == folders


def told(tool, options, code):
    """What one of NVIDIA's tools says of machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        words = [compiled.tools() / tool, *options, file.name]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", KERNELS)
def test_machine_code_takes_no_stack_and_the_parameters_of_a_launch(found, name):
    """Spilled registers would lie on the stack. Parameters: what `Kernel.slots` gives, 8 bytes for all but scalars."""
    kernel = KERNELS[name]
    (_, code, entry), (_, ptx, _) = found.images(kernel, (9, 0))
    used = re.search(rf"Function {re.escape(entry)}:\s+REG:(\d+) STACK:(\d+)", told("cuobjdump", ["-res-usage"], code))
    assert used, "its entry point is not in the machine code"
    assert int(used[2]) == 0
    assert f".visible .entry {entry}(".encode() in ptx
    sizes = []
    for kind in sigutils.normalize_signature(kernel.signature)[0]:
        is_array = isinstance(kind, types.Array)
        sizes += [8] * (5 + 2 * kind.ndim) if is_array else [1 if kind is types.boolean else kind.bitwidth // 8]
    listed = re.findall(r"Ordinal\s*:\s*0x(\w+)\s+Offset\s*:\s*0x(\w+)\s+Size\s*:\s*0x(\w+)", told("cuobjdump", ["-elf"], code))
    in_order = {int(ordinal, 16): int(size, 16) for ordinal, _, size in listed}
    assert [in_order[number] for number in range(len(sizes))] == sizes
    assert len(in_order) == len(sizes)


@pytest.fixture
def installed(content, monkeypatch, tmp_path):
    """A folder in the place of kernels/, with its sources and the archive."""
    here = Path(_compiled.__file__).parent
    for source in (*here.glob("*.py"), *here.glob("*.npz")):
        shutil.copy(source, tmp_path)
    (tmp_path / _compiled.FILE).write_bytes(content)
    monkeypatch.setattr(_compiled, "files", lambda package: tmp_path)

    def forget():
        _compiled.sources.cache_clear()
        _compiled.archive.cache_clear()

    forget()
    yield tmp_path
    forget()


def test_beside_its_sources_it_is_taken(installed):
    found, reason = _compiled.archive()
    assert found is not None and reason == ""
    assert len(found.kernels) == len(KERNELS)


@pytest.mark.parametrize("name", ["_gf2.py", "_launch.py", "_unicode_table.npz"])
def test_beside_other_sources_it_is_not(installed, name):
    with open(installed / name, "ab") as file:
        file.write(b"\n")
    assert _compiled.archive() == (None, "_compiled.zip was made of other sources than these")


def test_without_it_kernels_are_compiled(installed):
    (installed / _compiled.FILE).unlink()
    assert _compiled.archive() == (None, "this installation came without compiled kernels for GPUs")


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
