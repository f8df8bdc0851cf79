"""The steps of first_contact.py that need a device or the simulator: each is a dict of what is found out, by name.

Each entry is a function that returns a dict of what it found: `verdict` "wrong" where bits differ, `says` for a person,
and figures. It raises `NotRun` with the reason where it cannot be found out here.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neardup_gpu as nd
from neardup_gpu.data import Ragged
from neardup_gpu.engine.gpu import describe_device
from neardup_gpu.installation import selftest
from neardup_gpu.installation.kernel_inputs import INPUTS, Draw, kernel_modules
from neardup_gpu.kernels import _compiled, gather
from neardup_gpu.kernels._launch import PARTS, namespace, simulated, to_host
from neardup_gpu.report import count

from .findings import Items, NotRun, Settings
from .gpu import measure, milliseconds, on_device
from .gpu_inputs import Inputs, Timed, timed_kernels
from .tracing import Timeline, all_kernels, by_name, compiling, expected_usage, tracing, usage, wait

TEXT_BYTES = 256_000_000
DOCUMENT_TOKENS, TOKEN_BYTES = 965, 6.7  # as bills have
SLAB = 1 << 28


def real(what: str = "simulator") -> None:
    """Raise `NotRun` in the simulator."""
    if simulated():
        raise NotRun(what)


def seconds_of(call: Callable[[], Any], repeat: int = 5) -> float:
    """The median of a call's seconds by the clock, after one that is dropped."""
    times = []
    for _ in range(repeat + 1):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def generated(size: int, document_tokens: int = DOCUMENT_TOKENS, seed: int = 1) -> Ragged:
    """Documents like bills: words of a Zipf distribution, some not ASCII; one document in ten is an edited copy.

    A first part is drawn; the rest repeats it with other letters for each letter, so that only words within a part are
    alike.
    """
    random = np.random.default_rng(seed)
    tokens = max(8, min(size, 16 << 20) * 10 // 67)
    lengths = 1 + random.poisson(TOKEN_BYTES - 2, 50_000)
    vocabulary = [random.integers(97, 123, length, np.uint8).tobytes() + b" " for length in lengths]
    vocabulary[7::200] = [word[:-1] + "é ".encode() for word in vocabulary[7::200]]
    starts = np.cumsum([0, *map(len, vocabulary)])
    chances = np.cumsum(1 / (np.arange(len(vocabulary)) + 2.7))
    words = np.searchsorted(chances, random.random(tokens) * chances[-1])
    drawn = random.lognormal(np.log(document_tokens) - 0.32, 0.8, 13 + 2 * tokens // document_tokens)
    drawn[9::10] = drawn[8::10][: len(drawn[9::10])]
    ends = np.cumsum(1 + drawn.astype(np.int64))
    bounds = np.concatenate([[0], ends[ends < tokens], [tokens]])
    for row in range(8, len(bounds) - 3, 10):
        first, middle, last = bounds[row : row + 3]
        copied = words[first:middle].copy()
        edited = random.random(len(copied)) < 0.005
        copied[edited] = random.integers(0, len(vocabulary), int(edited.sum()))
        words[middle:last] = copied
    sizes = np.diff(starts)[words]
    ends = np.cumsum(sizes)
    text = np.frombuffer(b"".join(vocabulary), np.uint8)[
        np.arange(ends[-1]) - np.repeat(ends - sizes - starts[:-1][words], sizes)
    ]
    offsets = np.concatenate([[0], ends])[bounds]
    parts = []
    for _ in range(max(1, round(size / len(text)))):
        letters = np.arange(256, dtype=np.uint8)
        letters[97:123] = 97 + random.permutation(26)
        parts.append(letters[text])
    all_offsets = [offsets[:1], *(offsets[1:] + number * len(text) for number in range(len(parts)))]
    return Ragged(np.concatenate(parts), np.concatenate(all_offsets).astype(np.int64))


def texts(settings: Settings) -> Ragged:
    """The text of the larger steps: next to nothing in the simulator."""
    if simulated():
        return generated(400, document_tokens=20)
    return generated(TEXT_BYTES // (4 if settings.profiled else 1))


def table_of(text: Ragged) -> pa.Table:
    """The documents as a table."""
    buffers = [None, pa.py_buffer(text.offsets), pa.py_buffer(text.values)]
    return pa.table({"text": pa.Array.from_buffers(pa.large_string(), len(text), buffers)})


# ------------------------------------------------------------------------------------------------------------- launch


def launching(settings: Settings) -> Items:
    """One launch through each library, and what launches and waiting cost."""
    return {"kernel": _by_the_project, "cupy": _by_cupy, "came compiled": _came_compiled, "costs": _costs}


def _by_the_project() -> dict[str, Any]:
    values, offsets, rows = np.arange(1000, dtype=np.uint64), np.array([0, 300, 1000]), np.array([1, 0])
    with compiling() as seconds:
        found = gather.gpu(values, offsets, rows)
    right = selftest.same(gather.cpu(values, offsets, rows), found)
    copying = next(kernel for kernel in seconds if kernel.__name__ == "_copy_values")
    compiled = usage(copying, seconds[copying], {})
    says = f"a kernel on CuPy's arrays and stream, loaded or compiled in {compiled['compile_s']:.2f} s"
    return {"verdict": "ok" if right else "wrong", "says": says, **compiled}


def _by_cupy() -> dict[str, Any]:
    xp, host = namespace(), np.random.default_rng(1).integers(0, 2**64, 1 << 16, np.uint64)
    start = time.perf_counter()
    array = xp.asarray(host)
    order = xp.argsort(array, kind="stable")
    right = np.array_equal(to_host(order), np.argsort(host, kind="stable"))
    right &= np.array_equal(to_host(xp.cumsum(array >> np.uint64(32))), np.cumsum(host >> np.uint64(32)))
    right &= np.array_equal(to_host(xp.searchsorted(array[order], array[:9])), np.searchsorted(np.sort(host), host[:9]))
    seconds = time.perf_counter() - start
    return {"verdict": "ok" if right else "wrong", "seconds_with_compilation": round(seconds, 3)}


def _came_compiled() -> dict[str, Any]:
    """Whether the kernels that came compiled with this installation can be loaded, and how long that takes."""
    real()
    found, reason = _compiled.archive()
    if found is None:
        raise NotRun(reason)
    refused, start = [], time.perf_counter()
    listed = all_kernels()
    for name, each in listed.items():
        if _compiled.load(each) is None:
            refused.append(name)
    ms = 1e3 * (time.perf_counter() - start)
    facts = {"kernels": len(listed), "load_ms": round(ms, 2), "refused": refused, "made_by": found.made_by}
    if refused:
        return {**facts, "verdict": "failed", "reason": f"not taken: {', '.join(refused)}"}
    return {**facts, "says": f"{count(len(listed), 'kernel')} loaded in {ms:.1f} ms"}


def _costs() -> dict[str, Any]:
    """Microseconds a launch, of many in a row: as the host gives them out, and until the device has done them."""
    real()
    import cupy

    values, offsets = cupy.zeros(256, np.uint64), cupy.zeros(2, np.int64)
    with compiling() as seconds:
        gather.gpu(values, np.array([0, 256]), np.array([0]))
    copying = next(kernel for kernel in seconds if kernel.__name__ == "_copy_values")
    raw = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    event = cupy.cuda.Event()
    calls: dict[str, Callable[[], Any]] = {
        "kernel of the project": lambda: copying.blocks(1, values, offsets, offsets, values),
        "kernel of CuPy": lambda: raw((1,), (256,), ()),
        "elementwise operation of CuPy": lambda: cupy.add(values, values, out=values),
        "event": event.record,
        "wait for a number": lambda: int(values[0]),
    }
    found = {}
    for name, call in calls.items():
        for _ in range(10):
            call()
        wait()
        start = time.perf_counter()
        for _ in range(1000):
            call()
        given = time.perf_counter()
        wait()
        done = time.perf_counter()
        found[name] = {"given_us": round(1e3 * (given - start), 2), "done_us": round(1e3 * (done - start), 2)}
    says = ", ".join(f"{name} {row['done_us']} us" for name, row in found.items())
    return {"says": says, "costs": found}


# ------------------------------------------------------------------------------------------------------------ kernels


def kernels(settings: Settings) -> Items:
    """Every kernel on small inputs against `cpu`, and what the device's compiler made of it."""
    if not simulated() and not settings.profiled and not settings.only:
        # On another processor, from the other end: what `cpu` needs is compiled while the device's code is.
        words = [sys.executable, "-m", "benchmarks.first_steps", "warm", "--out", str(settings.out)]
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {name: partial(_compared, name, settings) for name in kernel_modules("gpu")}


def warm(settings: Settings) -> Items:
    """Compile what `cpu` runs, from the last kernel to the first."""

    def compiled(name: str) -> dict[str, Any]:
        kernel_modules()[name].cpu(*INPUTS[name](Draw(np.random.default_rng(1)), 30))
        return {}

    return {name: partial(compiled, name) for name in reversed(kernel_modules("gpu"))}


def _compared(name: str, settings: Settings) -> dict[str, Any]:
    module = kernel_modules()[name]
    sizes = (30, 200) if simulated() else (0, 30, 300) if settings.profiled else (*selftest.SMALL, 20_000)
    wrong = []
    with compiling() as seconds:
        for number, size in enumerate(sizes):
            arguments = INPUTS[name](Draw(np.random.default_rng([20, number])), size)
            expected = module.cpu(*arguments)
            if not selftest.same(expected, module.gpu(*arguments)):
                wrong.append(number)
            wait()
    chip = "" if simulated() else f"sm_{describe_device()['compute_capability'].replace('.', '')}"
    used = [usage(each, taken, expected_usage(chip)) for each, taken in seconds.items()]
    found: dict[str, Any] = {"inputs": len(sizes), "sizes": sizes, "kernels": used}
    if wrong:
        return {**found, "verdict": "wrong", "reason": f"differs from cpu on inputs {wrong} of sizes {sizes}"}
    registers = [row["registers"] for row in used if "registers" in row]
    spilled = [f"{row['kernel']} {row['local_bytes']}" for row in used if row.get("local_bytes")]
    says = [f"{len(sizes)} inputs"] + ([] if simulated() else [f"compiled in {sum(seconds.values()):.1f} s"])
    says += [f"{max(registers)} registers"] if registers else []
    says += [f"local bytes: {', '.join(spilled)}"] if spilled else []
    return {**found, "says": ", ".join(says)}


# ----------------------------------------------------------------------------------------------------------- ceilings


def ceilings(settings: Settings) -> Items:
    """What nothing can be faster than here."""
    threads = {f"filling a slab, {count(n, 'thread')}": partial(_filling, n) for n in (1, 2, 4, 8, 16)}
    return {
        "copy on the device": _copy_inside,
        "pinned to the device": partial(_across, "to", True),
        "pinned from the device": partial(_across, "from", True),
        "both ways at once": _both_ways,
        "not pinned, to the device": partial(_across, "to", False),
        "the bus while it copies": _bus,
        **threads,
        "page-locking": _page_locking,
        "device memory": _allocation,
    }


def _rate(num_bytes: float, ms: float) -> dict[str, Any]:
    rate = round(num_bytes / ms / 1e6, 2)
    return {"ms": round(ms, 4), "gb_per_s": rate, "says": f"{rate} GB/s"}


def _copy_inside() -> dict[str, Any]:
    real()
    xp = namespace()
    found = {}
    for size in (1 << 28, 1 << 31):
        source, target = xp.ones(size, np.uint8), xp.empty(size, np.uint8)
        times, _ = milliseconds(partial(xp.copyto, target, source), 9)
        found[size] = _rate(2 * size, statistics.median(times))
        del source, target
    return {**found[1 << 31], "by_bytes": {str(size): row["gb_per_s"] for size, row in found.items()}}


def _slab(pinned: bool) -> np.ndarray:
    import cupyx

    slab = cupyx.empty_pinned(SLAB, np.uint8) if pinned else np.empty(SLAB, np.uint8)
    slab[:] = np.resize(np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8), SLAB)
    return slab


def _across(way: str, pinned: bool) -> dict[str, Any]:
    real()
    host, there = _slab(pinned), namespace().empty(SLAB, np.uint8)
    copy = partial(there.set, host) if way == "to" else partial(there.get, out=host)
    return _rate(SLAB, 1e3 * seconds_of(copy))


def _both_ways() -> dict[str, Any]:
    real()
    xp = namespace()
    one, other = _slab(True), _slab(True)
    there, back = xp.empty(SLAB, np.uint8), xp.ones(SLAB, np.uint8)
    streams = [xp.cuda.Stream(non_blocking=True) for _ in range(2)]

    def copies() -> None:
        there.data.copy_from_host_async(one.ctypes.data, SLAB, streams[0])
        back.data.copy_to_host_async(other.ctypes.data, SLAB, streams[1])

    return _rate(2 * SLAB, 1e3 * seconds_of(copies))


def _bus() -> dict[str, Any]:
    """PCIe's generation and width under load: an idle bus steps down."""
    real()
    host, there = _slab(True), namespace().empty(SLAB, np.uint8)
    fields = "pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,clocks.sm,clocks.mem"
    try:
        asked = subprocess.Popen(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise NotRun(f"nvidia-smi: {error.strerror}") from None
    stop = time.monotonic() + 20
    while asked.poll() is None and time.monotonic() < stop:
        there.set(host)
        wait()
    asked.kill()
    answers = (asked.stdout.read() if asked.stdout else "").splitlines()
    if not answers:
        raise NotRun("nvidia-smi gave no answer")
    found = dict(zip(fields.split(","), (value.strip() for value in answers[0].split(",")), strict=False))
    return {"says": ", ".join(f"{name} {value}" for name, value in found.items()), "bus": found}


def _filling(threads: int) -> dict[str, Any]:
    """A slab filled from ordinary memory, as `Staging` does by 8 threads."""
    size = 1 << 16 if simulated() else SLAB
    source = np.ones(size, np.uint8)
    target = np.empty(size, np.uint8) if simulated() else _slab(True)
    bounds = np.linspace(0, size, threads + 1).astype(np.int64).tolist()
    parts = [slice(first, last) for first, last in pairwise(bounds)]
    with ThreadPoolExecutor(threads) as pool:

        def fill() -> None:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))

        return _rate(size, 1e3 * seconds_of(fill)) | {"as_the_project": threads == PARTS}


def _page_locking() -> dict[str, Any]:
    real()
    import cupy
    import cupyx

    pool, taken = cupy.get_default_pinned_memory_pool(), []
    for _ in range(3):
        pool.free_all_blocks()
        start = time.perf_counter()
        slab = cupyx.empty_pinned(SLAB, np.uint8)
        locked = time.perf_counter()
        del slab
        pool.free_all_blocks()
        taken.append((locked - start, time.perf_counter() - locked))
    lock, free = (1e3 * statistics.median(column) for column in zip(*taken, strict=True))
    found = {"lock_ms": round(lock, 2), "free_ms": round(free, 2), "bytes": SLAB}
    return {**found, "says": f"{SLAB >> 20} MiB locked in {lock:.1f} ms, freed in {free:.1f} ms"}


def _allocation() -> dict[str, Any]:
    real()
    import cupy

    pool, taken = cupy.get_default_memory_pool(), []
    for _ in range(5):
        pool.free_all_blocks()
        start = time.perf_counter()
        array = cupy.empty(1 << 30, np.uint8)
        taken.append(1e3 * (time.perf_counter() - start))
        del array
    ms = statistics.median(taken)
    return {"allocate_ms": round(ms, 3), "says": f"1 GiB in {ms:.2f} ms"}


# -------------------------------------------------------------------------------------------------------------- scale


def scale(settings: Settings) -> Items:
    """Every kernel and every call of CuPy on 256 MB of text."""
    text = texts(settings)
    sizes = (10, 20, 10) if simulated() else (10_000_000, 10_000_000, 1_000_000)
    inputs = Inputs(text, *sizes)
    return {name: partial(_measured, name, make, inputs, settings) for name, make in timed_kernels(inputs).items()}


def _measured(name: str, make: Callable[[], Timed], inputs: Inputs, settings: Settings) -> dict[str, Any]:
    timed = make()
    found = measure(name, timed, 1 if simulated() or settings.profiled else 5, inputs.text_bytes)
    if settings.profiled:
        return found
    held = on_device(timed.arguments)
    with tracing() as spans:
        timed.run(*held)
    rows = by_name(spans)
    found |= {"traced": rows, "says": f"{found['median']} ms: {slowest(rows)}"}
    if found.get("problem"):
        found |= {"verdict": "wrong", "reason": found["problem"]}
    return found


def slowest(rows: list[dict[str, Any]], number: int = 3) -> str:
    """The kernels and calls of CuPy that took longest, with their milliseconds."""
    ordered = sorted(rows, key=lambda row: -row["ms"])[:number]
    return ", ".join(f"{row['name']} {row['ms']:.2f}" for row in ordered)


# ---------------------------------------------------------------------------------------------------------------- job


def job(settings: Settings) -> Items:
    """Whole jobs with a timeline, and whether their decisions are the CPU's."""
    path = settings.out / "generated.parquet"
    if not path.exists() or simulated():
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        pq.write_table(table_of(texts(settings)), beside)
        os.replace(beside, path)
    recipes: dict[str, dict[str, Any]] = {
        "dedup by exact": {},
        "dedup by min-hash": {"method": nd.MinHash(filter="altavista")},
        "dedup by simhash": {"method": "simhash"},
    }
    return {name: partial(_whole, path, settings, options) for name, options in recipes.items()}


def _whole(path: Path, settings: Settings, options: dict[str, Any]) -> dict[str, Any]:
    options = {**options, "writing": nd.Writing(check=0)} if simulated() else options
    if not simulated():
        nd.dedup(path, text_columns="text", engine="gpu", **options)  # compiles, of the CPU's kernels too what it needs
    timeline = Timeline()
    start = time.perf_counter()
    with timeline.recording():
        found = nd.dedup(path, text_columns="text", engine="gpu", **options)
    seconds = time.perf_counter() - start
    described = timeline.described() | {"timings": found.report["timings"], "gpu_s": round(seconds, 4)}
    described["device"] = found.report["device"]
    size = found.report["counts"]["text_bytes"]
    described["says"] = (
        f"{size / 1e6:.0f} MB in {seconds:.2f} s, {described['computing_ms'] / 1e3:.2f} s of it computing, "
        f"{described['copying_ms'] / 1e3:.2f} s copying"
    )
    if settings.profiled:
        return described
    if not simulated():
        nd.dedup(path, text_columns="text", engine="cpu", **options)
    start = time.perf_counter()
    expected = nd.dedup(path, text_columns="text", engine="cpu", **options)
    described["cpu_s"] = round(time.perf_counter() - start, 4)
    described["says"] += f"; cpu {described['cpu_s']:.2f} s"
    if found.documents != expected.documents or found.pairs != expected.pairs:
        described |= {"verdict": "wrong", "reason": "decisions of gpu and cpu differ"}
    return described


# ------------------------------------------------------------------------------------------------------------ batches


def batches(settings: Settings) -> Items:
    """From text in host memory to supershingles, on the GPU and on the CPU, by size."""
    sizes = (300, 900) if simulated() else (10_000, 100_000, 1_000_000, 8_000_000, 64_000_000, 256_000_000)
    return {f"{size:,} bytes": partial(_batch, size) for size in sizes}


def _batch(size: int) -> dict[str, Any]:
    recipe = nd.Recipe(method=nd.MinHash(filter="altavista"))
    text = generated(size, document_tokens=min(DOCUMENT_TOKENS, max(10, size // 40)))

    def keys(backend: str) -> Any:
        shingles = nd.stages.shingle(nd.stages.tokenize(text, recipe, backend=backend), recipe, backend=backend)
        signatures = recipe.method.sketch(shingles, seed=recipe.seed, backend=backend)
        return recipe.method.keys(signatures, seed=recipe.seed, backend=backend)

    repeat = 1 if simulated() else 3
    taken = {backend: 1e3 * seconds_of(partial(keys, backend), repeat) for backend in ("gpu", "cpu")}
    found: dict[str, Any] = {f"{backend}_ms": round(ms, 4) for backend, ms in taken.items()}
    found["cpu_over_gpu"] = round(taken["cpu"] / taken["gpu"], 3)
    if not selftest.same(to_host(keys("cpu")), keys("gpu")):
        found |= {"verdict": "wrong", "reason": "supershingles of gpu and cpu differ"}
    says = f"gpu {taken['gpu']:.2f} ms, cpu {taken['cpu']:.2f} ms: cpu over gpu {found['cpu_over_gpu']}"
    return {**found, "says": says}


STEPS: dict[str, Callable[[Settings], Items]] = {
    "launch": launching,
    "kernels": kernels,
    "warm": warm,
    "ceilings": ceilings,
    "scale": scale,
    "job": job,
    "batches": batches,
}
