"""Kernels' own device code, run on the CPU.

numba-cuda compiles a kernel to NVVM IR, which NVIDIA's compiler would then make into code for a GPU. Here LLVM makes it
into code for this processor instead, and `fibers.c` runs its threads: so what is tested is what the GPU's compiler
sees, with its integer types and wrap-around, and not a Python imitation. What this adds:

- Threads take turns in lane, reversed or random order. In random order a thread also stops before some of its stores,
  so that a read, a change and a write that should have been one atomic operation lose updates. A result that depends
  on the order is a race.
- Every load and store is checked to lie in an array of the launch, in shared memory or on the thread's stack.
- Every block finds its shared memory full of 0xA5, so that nothing can rest on what an earlier block left there.
- A barrier that a thread of the block missed, or that threads reached at different places in the source, is an error.

It says nothing of the GPU's memory model, its speed, or whether the kernel can be launched there at all. What no kernel
uses is not there: shuffles, votes, dynamic shared memory, floating-point mathematics, grids of two dimensions.

numba-cuda offers no public way to the IR: `_compile_pyfunc_with_fixup` is private, and the version pinned.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cupy
import llvmlite.binding as llvm
import numpy as np
from cupy_calls import Namespace, on_host
from kernel_list import modules, name_of
from numba import types
from numba.core import sigutils

from neardup_gpu.kernels import _constants, _launch as launch

FIBERS = Path(__file__).with_name("fibers.c")
ORDERS = ("lane", "random", "reversed")
ACCESSES = 2**33  # loads and stores after which a launch is taken to run for ever

RENAMED = {
    **{f"read.ptx.sreg.{register}.x": f"cuda_{register}" for register in ("tid", "ctaid", "ntid", "nctaid")},
    **{f"read.ptx.sreg.{register}.{axis}": "cuda_zero" for register in ("tid", "ctaid") for axis in "yz"},
    **{f"read.ptx.sreg.{register}.{axis}": "cuda_one" for register in ("ntid", "nctaid") for axis in "yz"},
    "read.ptx.sreg.laneid": "cuda_laneid",
    "read.ptx.sreg.warpsize": "cuda_warpsize",
    "membar.cta": "cuda_fence",
    "membar.gl": "cuda_fence",
    "membar.sys": "cuda_fence",
}
"""Intrinsics (after "llvm.nvvm.") and the functions of `fibers.c` that stand for them."""

BARRIERS = {
    "barrier0": "cuda_barrier",
    "barrier0.popc": "cuda_barrier_count",
    "barrier0.and": "cuda_barrier_and",
    "barrier0.or": "cuda_barrier_or",
}
"""The same for barriers, which also tell where in the source they stand."""


class DeviceCodeError(AssertionError):
    """The kernel did what a GPU would punish, or leave undefined."""


# ------------------------------------------------------------------------------------------------ from Numba to LLVM


@contextmanager
def compute_capability(major: int, minor: int) -> Iterator[None]:
    """numba-cuda asks the current device what to compile device functions for; here this answers."""
    from numba.cuda import dispatcher

    device = SimpleNamespace(compute_capability=(major, minor))
    with mock.patch.object(dispatcher, "get_current_device", lambda: device):
        yield


@cache
def code_library(kernel: launch.Kernel) -> Any:
    """numba-cuda's compiled form of a kernel: its IR, and PTX for any compute capability."""
    from numba.cuda import compiler

    with compute_capability(9, 0):
        library, _ = compiler._compile_pyfunc_with_fixup(
            launch._linked(kernel.function), kernel.signature, device=False, cc=(9, 0), abi="numba"
        )
    return library


DECLARATIONS = """
declare i32 @cuda_zero()
declare i32 @cuda_one()
declare void @cuda_barrier(i32) convergent
declare i32 @cuda_barrier_count(i32, i32) convergent
declare i32 @cuda_barrier_and(i32, i32) convergent
declare i32 @cuda_barrier_or(i32, i32) convergent
"""


def for_this_processor(module: str, machine: llvm.TargetMachine, sites: Iterator[int]) -> str:
    """A module of NVVM IR whose intrinsics are functions of `fibers.c`; `sites` numbers its barriers."""
    for intrinsic, function in RENAMED.items():
        module = re.sub(rf'@"?llvm\.nvvm\.{re.escape(intrinsic)}"?(?=\()', f"@{function}", module)
    module = re.sub(r"^declare i32 @cuda_(zero|one)\(\)\n", "", module, flags=re.M)
    for intrinsic, function in BARRIERS.items():
        name = rf'@"?llvm\.nvvm\.{re.escape(intrinsic)}"?'
        module = re.sub(rf"^declare \w+ {name}\(.*\n", "", module, flags=re.M)

        def numbered(match: re.Match, function: str = function) -> str:
            return f"@{function}(i32 {next(sites)}{', ' if match[1] else ''}{match[1]})"

        module = re.sub(rf"{name}\(([^()]*)\)", numbered, module)
    if left := set(re.findall(r'@"?(llvm\.nvvm\.[\w.]+)', module)) | set(re.findall(r"call .* asm .*", module)):
        raise NotImplementedError(f"hostir.py does not know {', '.join(sorted(left))}")
    module = re.sub(r"^target .*\n", "", module, flags=re.M)
    module = re.sub(r'^@"?llvm\.used"?.*\n|^!nvvm.*\n', "", module, flags=re.M)
    module = re.sub(r" ?addrspace\(\d+\)", "", module).replace("addrspacecast", "bitcast")
    target = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    return target + DECLARATIONS + module


LOAD = re.compile(r"^  \S+ = load (?:atomic )?(?:volatile )?(?P<type>.+?), ptr (?P<at>.+?), align ")
STORE = re.compile(
    r"^  store (?:atomic )?(?:volatile )?(?P<type>\w+|<.+?>|\{.+?\}|\[.+?\]) .*, ptr (?P<at>.+?), align "
)
ATOMIC = re.compile(
    r"^  \S+ = (?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?(?:volatile )?) ?ptr (?P<at>.+?), (?P<type>i\d+) "
)
FILL = re.compile(r"call void @llvm\.mem(?:set|cpy|move)\S*\((?P<arguments>.*)\)")


def check(pointer: str, size: str, stores: bool) -> str:
    return f"  call void @cuda_access(ptr {pointer}, i64 {size}, i32 {int(stores)})"


def size_of(kind: str) -> str:
    """The size of an LLVM type, as LLVM would have it asked."""
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"


def with_checks(module: str) -> str:
    """The module with a call of `cuda_access` before each load, store and atomic operation."""
    lines = []
    for line in module.splitlines():
        if match := LOAD.match(line):
            lines.append(check(match["at"], size_of(match["type"]), False))
        elif match := STORE.match(line) or ATOMIC.match(line):
            lines.append(check(match["at"], size_of(match["type"]), True))
        elif match := FILL.search(line):
            pointers = re.findall(r"ptr (?:\w+(?:\([^)]*\))? )*([%@]\S+?),", match["arguments"])
            length = re.findall(r"i64 (\S+?),", match["arguments"])[-1]
            lines += [check(pointer, length, i == 0) for i, pointer in enumerate(pointers)]
        elif re.match(r"  (\S+ = )?(load|store|atomicrmw|cmpxchg) ", line):
            raise NotImplementedError(f"hostir.py does not know how to check {line}")
        lines.append(line)
    return "\n".join(lines)


def optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Inline, unroll and put variables into registers; no vectors, as the GPU's compiler makes none."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


# ------------------------------------------------------------------------------------------------------- running it


class Region(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_uint64))


class Report(ctypes.Structure):
    _fields_ = (
        ("failure", ctypes.c_int),
        ("block", ctypes.c_int32),
        ("thread", ctypes.c_int32),
        ("other", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


FAILURES = (
    None,
    "no memory for so many threads",
    "thread {thread} of block {block} waits at another barrier than thread {other}",
    "thread {thread} of block {block} ended, while others wait for it at a barrier",
    "thread {thread} of block {block} reads {size} bytes outside the arrays, at {address:#x}",
    "thread {thread} of block {block} writes {size} bytes outside the arrays, at {address:#x}",
    "thread {thread} of block {block} still runs after very many loads and stores",
)
"""What the codes of `fibers.c` mean."""


def cache_folder() -> Path:
    """Where compiled test code is kept: NEARDUP_TEST_CACHE, else a folder in the temporary one."""
    folder = Path(os.environ.get("NEARDUP_TEST_CACHE") or Path(tempfile.gettempdir()) / f"neardup_gpu-{os.getuid()}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def fibers() -> ctypes.CDLL:
    """`fibers.c`, compiled by gcc when it has changed; its functions are made known to LLVM."""
    source = FIBERS.read_bytes()
    library = cache_folder() / f"fibers-{hashlib.sha256(source).hexdigest()[:16]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            made = Path(scratch) / "fibers.so"
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", made, FIBERS], check=True)
            made.rename(library)
    loaded = ctypes.CDLL(str(library))
    for function in {*RENAMED.values(), *BARRIERS.values(), "cuda_access"}:
        llvm.add_symbol(function, ctypes.cast(getattr(loaded, function), ctypes.c_void_p).value)
    return loaded


class HostKernel:
    """A kernel's device code, compiled for this processor."""

    def __init__(self, kernel: launch.Kernel) -> None:
        self.name, self.slots = kernel.__name__, kernel.slots
        self.parameters, _ = sigutils.normalize_signature(kernel.signature)
        self.fibers = fibers()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
        sites = count(1)
        first, *others = (
            llvm.parse_assembly(for_this_processor(module, machine, sites)) for module in code_library(kernel).llvm_strs
        )
        for other in others:
            first.link_in(other)
        optimise(first, machine)
        entry = next(f for f in first.functions if not f.is_declaration and "linkonce" not in str(f.linkage))
        arguments = [str(argument.type) for argument in entry.arguments]
        self.num_words = len(arguments)
        caller = ["declare void @cuda_access(ptr, i64, i32)", "define void @entry(ptr %words) {"]
        for i, kind in enumerate(arguments):
            caller += [
                f"  %p{i} = getelementptr i64, ptr %words, i64 {i}",
                f"  %v{i} = load {kind}, ptr %p{i}, align 8",
            ]
        passed = ", ".join(f"{kind} %v{i}" for i, kind in enumerate(arguments))
        caller += [f'  call void @"{entry.name}"({passed})', "  ret void", "}"]
        module = llvm.parse_assembly("\n".join([with_checks(str(first)), *caller]))
        module.verify()
        optimise(module, machine)
        globals_ = [
            (variable.name, machine.target_data.get_abi_size(variable.global_value_type))
            for variable in module.global_variables
            if not variable.is_declaration
        ]
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        self.entry = self.engine.get_function_address("entry")
        located = [(name, self.engine.get_global_value_address(name), size) for name, size in globals_]
        self.shared = [(start, size) for name, start, size in located if "_smem_" in name]
        self.constant = [(start, size) for name, start, size in located if "_smem_" not in name]

    def __call__(self, num_blocks: int, block: int, *arguments: Any, order: str = "lane", seed: int = 0) -> None:
        """Run `num_blocks` blocks of `block` threads on NumPy arrays and scalars of the kernel's types."""
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arguments, not {len(arguments)}")
        arrays = []
        for i, (argument, kind) in enumerate(zip(arguments, self.parameters, strict=True)):
            if isinstance(kind, types.Array):
                self._check_array(i, argument, kind)
                arrays.append((argument.ctypes.data, argument.nbytes))
            else:
                self._check_scalar(i, argument, kind)
        words = self.slots(arguments, attrgetter("ctypes.data"))
        assert len(words) == self.num_words, "numba-cuda passes arguments in another way than this was written for"
        regions = [*self.shared, *self.constant, *arrays]
        report = Report()
        self.fibers.run_grid(
            ctypes.c_void_p(self.entry),
            (ctypes.c_uint64 * len(words))(*words),
            ctypes.c_int32(num_blocks),
            ctypes.c_int32(block),
            ctypes.c_int32(ORDERS.index(order)),
            ctypes.c_uint64(seed),
            ctypes.c_uint64(ACCESSES),
            (Region * len(regions))(*regions),
            ctypes.c_int32(len(regions)),
            ctypes.c_int32(len(self.shared)),
            ctypes.byref(report),
        )
        if report.failure:
            found = {name: getattr(report, name) for name, _ in Report._fields_}
            raise DeviceCodeError(f"{self.name}: {FAILURES[report.failure].format(**found)}")

    def _check_array(self, i: int, argument: Any, kind: types.Array) -> None:
        wanted = f"argument {i} of {self.name} is to be {kind.dtype}, {kind.ndim} dimensions, {kind.layout}-contiguous"
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{wanted}, not {type(argument).__name__}")
        if argument.dtype.name != str(kind.dtype).replace("boolean", "bool") or argument.ndim != kind.ndim:
            raise TypeError(f"{wanted}, not {argument.dtype}, {argument.ndim} dimensions")
        if kind.layout == "C" and not argument.flags.c_contiguous:
            raise TypeError(f"{wanted}; its strides are {argument.strides}")

    def _check_scalar(self, i: int, argument: Any, kind: Any) -> None:
        if isinstance(argument, np.ndarray) or not isinstance(argument, (int, np.integer, np.bool_)):
            raise TypeError(f"argument {i} of {self.name} is to be a scalar {kind}, not {type(argument).__name__}")
        value = int(argument)
        if isinstance(kind, types.Integer):
            if not kind.minval <= value <= kind.maxval:
                raise OverflowError(f"argument {i} of {self.name} is {value}, which is no {kind}")
        elif not isinstance(kind, types.Boolean):
            raise NotImplementedError(f"{self.name} takes a {kind}")


host_kernel = cache(HostKernel)


# ------------------------------------------------------------------------------------------- whole `gpu` functions


def values_of(argument: Any) -> Any:
    """A device array's values; anything else as it is, but a NumPy array is an error, as a launch would copy it."""
    if isinstance(argument, np.ndarray):
        raise TypeError("a NumPy array was given to a kernel; copy it to the device by namespace().asarray")
    return on_host(argument)


@contextmanager
def device(order: str = "lane", seed: int = 0) -> Iterator[set[str]]:
    """While it lasts, `gpu` functions run here: kernels by their device code, CuPy by what stands for it.

    Yields
    ------
    set of str
        Names of the kernels launched so far, as in kernel_list.py.
    """
    launched: set[str] = set()

    def run(kernel: launch.Kernel, num_blocks: int, *arguments: Any) -> None:
        launched.add(name_of(kernel))
        host_kernel(kernel)(num_blocks, kernel.block, *map(values_of, arguments), order=order, seed=seed)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(launch.Kernel, "_launch", run))
        for module in modules().values():
            if hasattr(module, "namespace"):
                stack.enter_context(mock.patch.object(module, "namespace", Namespace))
        stack.enter_context(
            mock.patch.object(_constants, "resident", lambda arrays: tuple(map(Namespace().asarray, arrays)))
        )
        for module in (launch, _constants):
            stack.enter_context(mock.patch.object(module, "current_device", lambda: 0))
        stack.enter_context(mock.patch.object(cupy.cuda.runtime, "memGetInfo", lambda: (2**33, 2**34)))
        stack.enter_context(mock.patch.object(cupy, "get_default_memory_pool", EmptyPool))
        yield launched


class EmptyPool:
    """Stands for CuPy's memory pool."""

    def free_bytes(self) -> int:
        return 0

    def used_bytes(self) -> int:
        return 0

    def get_limit(self) -> int:
        return 0
