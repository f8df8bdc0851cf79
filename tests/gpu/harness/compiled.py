"""What NVIDIA's compiler makes of each kernel: registers, memory, spills and occupancy, chip by chip.

    python tests/gpu/harness/compiled.py            print the table
    python tests/gpu/harness/compiled.py --write    and keep it as compiled.json, with which test_compiled.py compares

Needs the compiler wheels of requirements.txt, and no GPU.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("compiled.json")
REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
COMPILER = ("numba", "numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm")
"""What the table depends on, beside the kernels."""


@dataclass(frozen=True)
class Chip:
    """What a multiprocessor holds at a time.

    Source: NVIDIA, CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per
    Compute Capability"; that registers go to warps in units of 256 and that each block takes 1 kB of shared memory more
    is from the occupancy calculator of Nsight Compute and from "Shared Memory" of compute capability 8.x, 9.0 and 10.0.
    """

    capability: tuple[int, int]
    shared: int  # bytes
    warps: int = 64
    blocks: int = 32
    registers: int = 65536
    register_unit: int = 256
    shared_reserved: int = 1024


CHIPS = {
    "sm_80": Chip((8, 0), 164 * 1024),  # A100
    "sm_90": Chip((9, 0), 228 * 1024),  # H100, H200
    "sm_100": Chip((10, 0), 228 * 1024),  # B100, B200
}


@dataclass(frozen=True)
class Usage:
    """What a kernel needs on a chip."""

    block: int
    registers: int
    shared: int
    stack: int
    spilled: int
    occupancy: float


def occupancy(chip: Chip, block: int, registers: int, shared: int) -> float:
    """The share of a multiprocessor's warps that it can hold of a kernel at a time.

    >>> occupancy(CHIPS["sm_90"], 256, 33, 0), occupancy(CHIPS["sm_90"], 256, 128, 0)
    (0.75, 0.25)
    """
    warps = block // 32
    registers_per_warp = -(-registers * 32 // chip.register_unit) * chip.register_unit
    blocks = min(
        chip.blocks,
        chip.warps // warps,
        chip.registers // registers_per_warp // warps,
        chip.shared // (shared + chip.shared_reserved),
    )
    return blocks * warps / chip.warps


@cache
def tools() -> Path:
    """The folder of ptxas and nvdisasm, from the wheels."""
    import nvidia.cu13

    return Path(next(iter(nvidia.cu13.__path__))) / "bin"


def ptx(kernel, chip: str) -> str:
    """The kernel's PTX. On a device numba-cuda links LTO-IR with nvJitLink instead, which may take other registers."""
    from hostir import code_library

    return code_library(kernel).get_asm_str(cc=CHIPS[chip].capability)


def assemble(code: str, chip: str) -> tuple[bytes, str]:
    """(machine code, what ptxas says of it)"""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(code)
        done = subprocess.run(
            [tools() / "ptxas", "-v", f"-arch={chip}", source, "-o", target], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"ptxas: {done.stdout}{done.stderr}")
        return target.read_bytes(), done.stdout + done.stderr


def usage(kernel, chip: str, said: str) -> Usage:
    """What ptxas said of a kernel, read."""

    def number(pattern: str) -> int:
        found = [int(n) for n in re.findall(pattern, said)]
        return max(found, default=0)

    registers, shared = number(r"Used (\d+) registers"), number(r"(\d+) bytes smem")
    return Usage(
        kernel.block,
        registers,
        shared,
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        occupancy(CHIPS[chip], kernel.block, registers, shared),
    )


def imported(source: Path) -> set[Path]:
    """Return the sources in kernels/ that a source there imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            within = (node.module or "").removeprefix("neardup_gpu.kernels").lstrip(".")
            names |= {within} if within else {name.name for name in node.names}
    return {path for name in names if (path := source.with_name(f"{name}.py")).exists()}


@cache
def made_of(module: str) -> str:
    """Return the hash of all that the machine code of a module's kernels depends on: sources and compilers."""
    from neardup_gpu.kernels import _ahead

    first = Path(_ahead.__file__).with_name(f"{module}.py")
    seen, waiting = {first}, [first]
    while waiting:
        new = {path for path in imported(waiting.pop()) - seen if path.name not in _ahead.UNRELATED}
        seen |= new
        waiting += new
    sources = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(seen)}
    made = json.dumps([sources, [_version(name) for name in COMPILER], list(CHIPS)])
    return hashlib.sha256(made.encode()).hexdigest()[:16]


def known() -> dict[str, dict[str, dict]]:
    """Return the committed table, but only its kernels that compilation today would give the same code."""
    table = json.loads(TABLE.read_text())
    same = {module for module, made in table.pop("made_of", {}).items() if made == made_of(module)}
    return {
        chip: {name: usage for name, usage in kernels.items() if name.split(".")[0] in same}
        for chip, kernels in table.items()
    }


@cache
def compiled(name: str, chip: str) -> tuple[str, bytes, Usage]:
    """(PTX, machine code, usage) of a kernel for a chip."""
    from kernel_list import all_kernels

    kernel = all_kernels()[name]
    code = ptx(kernel, chip)
    machine_code, said = assemble(code, chip)
    return code, machine_code, usage(kernel, chip, said)


def disassembly(machine_code: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine_code)
        file.flush()
        return subprocess.run(
            [tools() / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True
        ).stdout


def other_versions() -> str:
    """Which of the compiler's parts are not of the versions that requirements.txt names."""
    pinned = (line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    found = ((name.partition("[")[0], wanted, _version(name.partition("[")[0])) for name, wanted in pinned)
    return ", ".join(f"{name} {has}, not {wanted}" for name, wanted, has in found if name in COMPILER and has != wanted)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def all_loops(assembly: str) -> tuple[list[str], list[tuple[int, int]]]:
    """(names of the instructions, where each loop begins and ends)

    A loop is what lies from a label to a jump back to it; the jump to itself after the end of a kernel is none.
    """
    begins: dict[str, int] = {}
    names: list[str] = []
    jumps: list[tuple[int, int]] = []
    for line in assembly.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            begins[label[1]] = len(names)
        elif match := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line):
            names.append(match[1])
            target = re.search(r"`\((\.L_x_\d+)\)", match[2])
            if match[1].startswith("BRA") and target and begins.get(target[1], len(names)) < len(names) - 1:
                jumps.append((begins[target[1]], len(names)))
    return names, jumps


def innermost_loops(assembly: str) -> tuple[list[str], list[tuple[int, int]]]:
    """As `all_loops`, of those loops that hold no other one."""
    names, jumps = all_loops(assembly)
    return names, [(a, b) for a, b in jumps if not any((a, b) != (c, d) and a <= c and d <= b for c, d in jumps)]


def minima(loop: list[str]) -> int:
    """How often the smaller of two integers is taken; VIMNMX3 takes the smallest of three, so it counts twice."""
    return sum(2 if name.startswith("VIMNMX3") else name.startswith(("VIMNMX", "IMNMX")) for name in loop)


def inner_loop(name: str, chip: str) -> list[str]:
    """The instructions of the loop of a min-hash kernel that takes most minima."""
    names, loops = innermost_loops(disassembly(compiled(name, chip)[1]))
    return max((names[start:stop] for start, stop in loops), key=minima)


def table() -> dict[str, dict[str, dict]]:
    """{chip: {kernel: usage}} of all kernels."""
    from kernel_list import all_kernels

    return {chip: {name: asdict(compiled(name, chip)[2]) for name in all_kernels()} for chip in CHIPS}


def as_json(found: dict[str, dict[str, dict]]) -> str:
    """The table, a line a kernel and chip; and what each module's kernels were made of."""
    modules = sorted({name.split(".")[0] for kernels in found.values() for name in kernels})
    made: dict[str, Any] = {**found, "made_of": {module: made_of(module) for module in modules}}
    chips = (
        f'"{chip}": {{\n' + ",\n".join(f"  {json.dumps(name)}: {json.dumps(u)}" for name, u in kernels.items()) + "\n}"
        for chip, kernels in made.items()
    )
    return "{\n" + ",\n".join(chips) + "\n}\n"


def main() -> None:
    from kernel_list import FACTORIES

    found = table()
    print(f"{'':38}" + "".join(f"{chip:>30}" for chip in found))
    print(f"{'kernel':38}" + " registers shared spills  warps" * len(found))
    for name in found["sm_90"]:
        row = "".join(
            f"{u['registers']:10}{u['shared']:7}{u['spilled']:7}{u['occupancy']:6.0%}"
            for u in (kernels[name] for kernels in found.values())
        )
        print(f"{name:38}{row}")
    print("instructions of min-hash's inner loop for each shingle and sample, L = 32")
    for per_lane in (n for bits, n in FACTORIES["minhash._signature_kernel"] if bits == 32):
        row = ""
        for chip in found:
            loop = inner_loop(f"minhash._signature_kernel(32, {per_lane})", chip)
            row += f"{len(loop):20} /{minima(loop):3} ={len(loop) / minima(loop):5.2f}"
        print(f"{per_lane:3} samples a lane{'':19}{row}")
    if "--write" in sys.argv:
        TABLE.write_text(as_json(found))


if __name__ == "__main__":
    main()
