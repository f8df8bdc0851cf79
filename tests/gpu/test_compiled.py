"""What NVIDIA's compiler makes of every kernel is as the committed table says, and good enough.

A kernel that changed: look at the difference, then `python tests/gpu/harness/compiled.py --write`. A kernel whose
sources and compilers are those of the table is compiled again once a week and before a release.
"""

import json
import re
from dataclasses import asdict

import pytest

pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import compiled
import hostir
import kernel_list
from grids import ALL

KERNELS = list(kernel_list.all_kernels())
EXPECTED = json.loads(compiled.TABLE.read_text())
KNOWN = compiled.known()
LOOPS = [
    ("sm_90", f"minhash._signature_kernel(32, {n})")
    for bits, n in kernel_list.FACTORIES["minhash._signature_kernel"]
    if bits == 32
]
NEAR = [(chip, name) for chip in compiled.CHIPS for name in KERNELS if name.startswith("_near._near")]
COMPILED = [
    (chip, name)
    for chip in compiled.CHIPS
    for name in KERNELS
    if ALL or name not in KNOWN[chip] or (chip, name) in LOOPS + NEAR
]

pytestmark = pytest.mark.skipif(
    bool(compiled.other_versions()), reason=f"the table is of other compilers: {compiled.other_versions()}"
)


def test_the_table_is_of_today():
    assert {chip: set(EXPECTED[chip]) for chip in compiled.CHIPS} == {chip: set(KERNELS) for chip in compiled.CHIPS}
    both = {key: (EXPECTED[key[0]][key[1]], asdict(compiled.compiled(*key[::-1])[2])) for key in COMPILED}
    assert not {key: (table, now) for key, (table, now) in both.items() if table != now}, "(table, now)"


@pytest.mark.parametrize("chip", compiled.CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_spills_and_half_of_the_warps_fit(kernel, chip):
    """By the table, which is of today."""
    usage = EXPECTED[chip][kernel]
    assert (usage["stack"], usage["spilled"]) == (0, 0)
    assert usage["occupancy"] >= 0.5


@pytest.mark.parametrize("kernel", KERNELS)
def test_integers_only(kernel):
    """Integers of different types become float64 without being asked, and lose their lowest bits."""
    library = hostir.code_library(kernel_list.all_kernels()[kernel])
    ir = "\n".join(library.llvm_strs)
    assert not re.search(r"\b(double|float|half)\b", re.sub(r'"[^"]*"', "", ir))
    for chip in (chip for chip, name in COMPILED if name == kernel):
        code = compiled.compiled(kernel, chip)[0]
        assert not re.search(r"\.(f16|f32|f64)\b", re.sub(r"^\s*//.*", "", code, flags=re.M))


@pytest.mark.parametrize("per_lane", range(1, len(LOOPS) + 1))
def test_inner_loop_of_minhash(per_lane):
    """On H100 at most 2.5 instructions for each shingle and sample: one IMAD, half of a VIMNMX3, and what they share.

    With one sample a lane its load is not shared: one more.
    """
    loop = compiled.inner_loop(f"minhash._signature_kernel(32, {per_lane})", "sm_90")
    taken = compiled.minima(loop)
    assert taken % (8 * per_lane) == 0, "the loop is not the one of eight shingles or more"
    assert len(loop) / taken <= (2.5 if per_lane > 1 else 3.5)


@pytest.mark.parametrize(("chip", "kernel"), NEAR)
def test_bits_are_counted_by_one_instruction(kernel, chip):
    """POPC takes 32 bits: two for each word compared, and nothing in place of it."""
    names, loops = compiled.innermost_loops(compiled.disassembly(compiled.compiled(kernel, chip)[1]))
    if kernel == "_near._near_whole":
        assert names.count("POPC") == 4
        return
    assert names.count("POPC") % 2 == 0
    comparing = [loop for loop in (names[start:stop] for start, stop in loops) if "POPC" in loop]
    assert comparing
    if kernel == "_near._near_counts":  # without earlier masks, four words at a time, then one by one
        words = [sum(name.startswith("LDG") for name in loop) for loop in comparing]
        assert [loop.count("POPC") for loop in comparing] == [2 * n for n in words]
        assert min(len(loop) / n for loop, n in zip(comparing, words, strict=True)) <= 12


@pytest.mark.parametrize(
    ("chip", "block", "registers", "shared", "share"),
    [
        ("sm_90", 256, 32, 0, 1.0),
        ("sm_90", 256, 33, 0, 0.75),  # 40 are given
        ("sm_90", 256, 64, 0, 0.5),
        ("sm_90", 256, 128, 16384, 0.25),
        ("sm_80", 256, 32, 26624, 0.75),  # 164 kB hold six of 27 kB
        ("sm_90", 32, 16, 0, 0.5),  # 32 blocks
        ("sm_90", 1024, 33, 0, 0.5),
    ],
)
def test_occupancy(chip, block, registers, shared, share):
    assert compiled.occupancy(compiled.CHIPS[chip], block, registers, shared) == share
