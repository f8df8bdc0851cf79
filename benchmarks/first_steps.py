"""One step of first_contact.py, as a process of its own that may crash, hang or lose the device.

    python -m benchmarks.first_steps STEP --out FOLDER [--only JSON] [--done JSON] [--profiled] [--cpu] [--scale SHARE]

On standard output it writes a line of JSON at once for each thing that happens: {"items": [...]}, what will be found
out; {"begin": NAME}; and a record with `item` and `verdict`. {"no_device": REASON} means that nothing can be. All else
that is printed goes to standard error. Exit status 75: the device takes no more calls of this process, and another one
should go on after what is done.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import glob
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from .findings import LOST, Items, NotRun, Settings, brief, said_by

TESTS = Path(__file__).resolve().parent.parent / "tests"

# -------------------------------------------------------------------------------------------------------- environment

PACKAGES = [
    "neardup_gpu",
    "numba",
    "numba-cuda",
    "llvmlite",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
    "cuda-toolkit",
    "nvidia-nvvm",
    "nvidia-nvjitlink",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cuda-nvcc",
    "nvidia-cuda-nvcc-cu12",
    "nvidia-nvjitlink-cu12",
    "nvidia-cuda-nvrtc-cu12",
    "numpy",
    "pyarrow",
    "pytest",
]
VARIABLES = ("CUDA", "NUMBA", "CUPY", "NVIDIA", "NEARDUP", "LD_LIBRARY_PATH", "CONDA_PREFIX", "OMP_", "VIRTUAL_ENV")
SMI = [
    "name",
    "driver_version",
    "pci.bus_id",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "memory.total",
    "memory.used",
    "ecc.mode.current",
    "mig.mode.current",
    "persistence_mode",
    "compute_mode",
    "power.limit",
    "clocks.max.sm",
    "clocks.max.memory",
    "temperature.gpu",
]
LIBRARIES = ("nvvm", "nvJitLink", "nvrtc", "cudart")
PLACES = (
    "/usr/local/cuda*/nvvm/lib64",
    "/usr/local/cuda*/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/opt/cuda*/lib64",
)


def environment(settings: Settings) -> Items:
    """What this machine has, and where its libraries are."""
    return {
        "machine": _machine,
        "packages": _packages,
        "variables": _variables,
        "driver": _driver,
        "nvidia-smi": partial(_smi, settings.out),
        "libraries": _libraries,
        "usable": _usable,
    }


def _machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    memory = None
    with contextlib.suppress(ValueError, OSError, AttributeError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {"system": platform.platform(), "processor": model, "cores": cores, "memory_bytes": memory}
    python = platform.python_version()
    size = f", {memory / 1e9:.0f} GB" if memory else ""
    return {**found, "python": python, "says": f"Python {python}, {cores} cores of {model}{size}"}


def _packages() -> dict[str, Any]:
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    known = ("numba", "numba-cuda", "cupy-cuda12x", "cupy-cuda13x")
    says = [f"{name} {versions.get(name, 'missing')}" for name in known[:2]]
    says += [f"{name} {versions[name]}" for name in known[2:] if name in versions] or ["cupy missing"]
    return {"versions": versions, "says": ", ".join(says)}


def _variables() -> dict[str, Any]:
    secret = re.compile("KEY|TOKEN|SECRET|PASS")
    found = {
        name: "(not shown)" if secret.search(name) else value
        for name, value in sorted(os.environ.items())
        if name.startswith(VARIABLES)
    }
    return {"variables": found, "says": ", ".join(found) or "none"}


def _driver() -> dict[str, Any]:
    version, devices = ctypes.c_int(0), ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        library.cuDriverGetVersion(ctypes.byref(version))
        if library.cuInit(0) == 0:
            library.cuDeviceGetCount(ctypes.byref(devices))
    found = {"cuda": version.value, "devices": devices.value}
    if not version.value:
        raise NotRun("there is no NVIDIA driver (no libcuda)")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "libcuda.so" in line:
                return {**found, "library": line.split()[-1], "says": f"CUDA {version.value}"}
    return {**found, "says": f"CUDA {version.value}, devices {devices.value}"}


def _smi(out: Path) -> dict[str, Any]:
    for name, words in {"nvidia-smi": [], "nvidia-smi-q": ["-q"], "nvidia-smi-topo": ["topo", "-m"]}.items():
        with contextlib.suppress(NotRun):
            (out / f"{name}.txt").write_text(said_by(["nvidia-smi", *words]))
    try:
        fields, text = SMI, said_by(["nvidia-smi", f"--query-gpu={','.join(SMI)}", "--format=csv,noheader"])
    except NotRun:
        fields = SMI[:2]  # an older one may not know them all
        text = said_by(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"])
    gpus = [dict(zip(fields, map(str.strip, line.split(",")), strict=False)) for line in text.splitlines()]
    says = [
        f"{gpu['name']}, driver {gpu['driver_version']}, PCIe {gpu.get('pcie.link.gen.max')} x"
        f"{gpu.get('pcie.link.width.max')} (now {gpu.get('pcie.link.gen.current')} x"
        f"{gpu.get('pcie.link.width.current')})"
        for gpu in gpus
    ]
    return {"gpus": gpus, "says": "; ".join(says)}


def _libraries() -> dict[str, Any]:
    """Where the compiler's libraries are, and everywhere that they were looked for."""
    looked = {place: sorted(glob.glob(f"{place}/lib*nvvm*") + glob.glob(f"{place}/lib*[jJ]it*")) for place in PLACES}
    found: dict[str, Any] = {"looked": looked, "loaded": {}}
    try:
        from cuda import pathfinder
    except ImportError as error:
        found["pathfinder"] = brief(error)
    else:
        for name in LIBRARIES:
            try:
                library = pathfinder.load_nvidia_dynamic_lib(name)
                found["loaded"][name] = [library.abs_path, getattr(library, "found_via", None)]
            except Exception as error:  # its message lists where it looked
                found["loaded"][name] = [None, " ".join(str(error).split())[:2000]]
    try:
        from numba.cuda.cuda_paths import get_cuda_paths
        from numba.cuda.cudadrv import libs

        found["numba"] = {name: [place.by, str(place.info)] for name, place in get_cuda_paths().items()}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(Exception):
            libs.test()
        found["numba_search"] = printed.getvalue().splitlines()
    except Exception as error:
        found["numba"] = brief(error)
    missing = [name for name in LIBRARIES if not (found["loaded"].get(name) or [None])[0]]
    if missing:
        return {**found, "verdict": "not run", "reason": f"not found: {', '.join(missing)}"}
    return {**found, "says": ", ".join(f"{name} via {via}" for name, (_, via) in found["loaded"].items())}


def _usable() -> dict[str, Any]:
    reason = why_no_device()
    if reason is not None:
        raise NotRun(reason)
    from neardup_gpu.engine.gpu import describe_device
    from neardup_gpu.kernels._launch import simulated

    if simulated():
        return {"says": "Numba's simulator"}
    device = describe_device()
    return {"device": device, "says": f"{device['name']}, compute capability {device['compute_capability']}"}


def why_no_device() -> str | None:
    """Why backend 'gpu' cannot run here; None if it can."""
    try:
        from neardup_gpu.engine.choice import resolve

        resolve("gpu")
    except ImportError as error:
        return brief(error)
    except Exception as error:
        return str(error).splitlines()[0] if str(error) else brief(error)
    return None


# ----------------------------------------------------------------------------------------------------------- profilers

PROFILED = {
    "tokens": "count_in_ascii|count_decoded|_fingerprint_tokens",
    "shingles": "_fingerprint",
    "minhash 84 L=32": "_signature",
    "sequences": "_accumulate",
    "simhash tf, 64 bits": "_add",
    "hamming: pairs, 16 bits": "_near_counts",
}
"""Eight kernels, by what of the step `scale` launches them."""

METRICS = {
    "gpu__time_duration.sum": "duration",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "threads an instruction",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy %",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessors %",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory %",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM %",
    "smsp__inst_executed.sum": "warp instructions",
    "l1tex__data_bank_conflicts_pipe_lsu.sum": "bank conflicts",
    "launch__registers_per_thread": "registers",
}
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def profiler(settings: Settings) -> Items:
    """ncu on eight kernels, nsys on a job, and the sanitizers on every kernel: what of these is installed."""
    items: Items = {f"ncu: {name}": partial(_ncu, name, settings.out) for name in PROFILED}
    items["compute-sanitizer: memcheck"] = partial(_sanitizer, "memcheck", settings.out)
    items["nsys: dedup by min-hash"] = partial(_nsys, settings.out)
    return items | {f"compute-sanitizer: {tool}": partial(_sanitizer, tool, settings.out) for tool in SANITIZERS[1:]}


def _tool(name: str) -> str:
    """Path of one of NVIDIA's tools."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
        raise NotRun("simulator")
    places = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*", "/opt/nvidia/nsight-systems/*/bin")
    found = [path for place in places for path in sorted(glob.glob(f"{place}/{name}"), reverse=True)]
    path = shutil.which(name) or next(iter(found), None)
    if path is None:
        raise NotRun(f"{name} is not installed")
    return path


def _step(step: str, out: Path, *only: str) -> list[str]:
    words = [sys.executable, "-m", "benchmarks.first_steps", step, "--out", str(out), "--profiled"]
    return [*words, "--only", json.dumps(only)] if only else words


def _watched(words: list[str], log: Path, seconds: float) -> tuple[int, str]:
    """(exit status, all that was printed), which is also kept."""
    try:
        with open(log, "wb") as file:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotRun(f"{Path(words[0]).name} took more than {seconds:.0f} s; see {log.name}") from None
    return done.returncode, log.read_text(errors="replace")


def _ncu(name: str, out: Path) -> dict[str, Any]:
    path, log = _tool("ncu"), out / f"ncu {re.sub(r'[^a-z0-9]+', '-', name.lower())}.csv"
    words = [path, "--target-processes", "all", "--clock-control", "none", "--csv", "--page", "raw"]
    words += ["--kernel-name-base", "mangled", "--kernel-name", f"regex:({PROFILED[name]})"]
    words += ["--launch-count", str(2 * (1 + PROFILED[name].count("|"))), "--metrics", ",".join(METRICS)]
    status, text = _watched([*words, *_step("scale", out, name)], log, 90)
    if "ERR_NVGPUCTRPERM" in text:
        raise NotRun("ncu may not read the device's counters here (ERR_NVGPUCTRPERM)")
    kernels = counters(text)
    if not kernels:
        last = [line for line in text.splitlines() if line.strip() and not line.startswith("{")]
        raise NotRun(f"ncu named no kernel (exit status {status}): {last[-1] if last else 'it printed nothing'}")
    says = "; ".join(", ".join(f"{key} {value}" for key, value in kernel.items()) for kernel in kernels[-1:])
    return {"kernels": kernels, "log": log.name, "says": says}


def counters(text: str) -> list[dict[str, str]]:
    """The kernels of ncu's raw CSV, each with its name and the metrics that were asked for, with their units."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    names, units, *rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=False))
        kernel = {"kernel": values.get("Kernel Name", "")}
        for metric, title in METRICS.items():
            if metric in values:
                unit = units[names.index(metric)]
                kernel[title] = f"{values[metric]} {unit}".strip()
        found.append(kernel)
    return found


def _nsys(out: Path) -> dict[str, Any]:
    path, log = _tool("nsys"), out / "nsys.txt"
    words = [path, "profile", "--trace=cuda", "--stats=true", "--force-overwrite=true", "-o", str(out / "nsys-job")]
    status, text = _watched([*words, *_step("job", out, "dedup by min-hash")], log, 90)
    if status:
        raise NotRun(f"nsys ended with status {status}; see {log.name}")
    return {"log": log.name, "says": f"{len(text.splitlines())} lines of statistics in {log.name}"}


def _sanitizer(tool: str, out: Path) -> dict[str, Any]:
    path, log = _tool("compute-sanitizer"), out / f"sanitizer-{tool}.txt"
    words = [path, "--tool", tool, "--target-processes", "all", "--print-limit", "20"]
    words += ["--report-api-errors", "no"] if tool == "memcheck" else []  # libraries ask for what may not be there
    status, text = _watched([*words, *_step("kernels", out)], log, 90)
    found = sanitizer_errors(text)
    if found is None:
        raise NotRun(f"compute-sanitizer --tool {tool} gave no summary (exit status {status}); see {log.name}")
    errors, of_libraries = found
    result = {"errors": errors, "of_libraries": of_libraries, "log": log.name, "says": f"{errors} errors"}
    if of_libraries:
        result["says"] = f"{errors} errors, but hazards in {', '.join(of_libraries)}, which CuPy brings"
    return {**result, "verdict": "wrong", "reason": f"{errors} errors; see {log.name}"} if errors else result


def sanitizer_errors(text: str) -> tuple[int, list[str]] | None:
    """(errors, kernels of CuPy in which only races were reported); None where the text has no summary."""
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
    if not summaries:
        return None
    races = re.findall(r"Race reported between \w+ access at ([^+\s]+)", text)
    libraries = [name for name in races if name.startswith("cupy_")]
    return sum(map(int, summaries)) - len(libraries), sorted(set(libraries))


# --------------------------------------------------------------------------------------------------------------- tests


def tests(settings: Settings) -> Items:
    """`pytest -m gpu`, a process for each file; a record for each test."""
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if "mark.gpu" in path.read_text(encoding="utf-8")]
    return {str(path.relative_to(TESTS)): partial(_tested, path) for path in files}


def _tested(path: Path) -> dict[str, Any]:
    from neardup_gpu.kernels._launch import simulated

    if simulated():
        raise NotRun("simulator")
    with contextlib.suppress(metadata.PackageNotFoundError):
        metadata.version("pytest")
        words = [sys.executable, "-m", "pytest", "-m", "gpu", "-o", "addopts=", "-v", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            [*words, str(path)], cwd=TESTS.parent, env=environment, stdout=subprocess.PIPE, text=True, errors="replace"
        )
        assert process.stdout is not None
        verdicts = [record["verdict"] for record in outcomes(process.stdout) if not tell(record)]
        status = process.wait()
        bad = len(verdicts) - verdicts.count("ok") - verdicts.count("not run")
        found = {"tests": len(verdicts), "passed": verdicts.count("ok"), "exit_status": status}
        if status not in (0, 5) or bad:
            return {**found, "verdict": "failed", "reason": f"{bad} of {len(verdicts)} tests; pytest's status {status}"}
        return {**found, "says": f"{verdicts.count('ok')} of {len(verdicts)} passed"}
    raise NotRun("pytest is not installed")


def outcomes(lines: Iterator[str] | Any) -> Iterator[dict[str, Any]]:
    """A record for each test that pytest's lines tell of; the lines go to standard error, to be kept."""
    words = {"PASSED": "ok", "XFAIL": "ok", "SKIPPED": "not run", "FAILED": "failed", "ERROR": "failed"}
    for line in lines:
        print(line, end="", file=sys.stderr, flush=True)
        match = re.match(rf"(\S+?::.+?) ({'|'.join(words)})\b(?: \((.*)\))?.*\[ *\d+%\]", line)
        if match:
            name = match[1].rpartition("/")[2]
            record = {"item": name, "verdict": words[match[2]]}
            if record["verdict"] != "ok":
                record["reason"] = match[3] or "see the step's log"
            yield record


# ------------------------------------------------------------------------------------------------------------- process


def steps(name: str, settings: Settings) -> Items:
    """What a step finds out."""
    here = {"environment": environment, "profiler": profiler, "tests": tests}
    if name in here:
        return here[name](settings)
    from . import first_device, first_jobs, first_pages

    return (first_device.STEPS | first_jobs.STEPS | first_pages.STEPS)[name](settings)


def tell(record: dict[str, Any]) -> None:
    """Write a line to whoever started this process."""
    _CHANNEL.write(json.dumps(record, default=_plain) + "\n")
    _CHANNEL.flush()


_CHANNEL: Any = sys.stdout


def _plain(value: Any) -> Any:
    """What JSON lacks: NumPy's numbers and arrays, paths."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def find_out(name: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The record of an item."""
    start = time.perf_counter()
    try:
        found = {"verdict": "ok", **run()}
    except NotRun as reason:
        found = {"verdict": "not run", "reason": str(reason)}
    except Exception as error:
        import traceback

        traceback.print_exc()
        found = {"verdict": "failed", "reason": brief(error)}
    return {"item": name, "seconds": round(time.perf_counter() - start, 3), **found}


def why_lost() -> str | None:
    """Why the device takes no more calls of this process; None if it does, or if none was made."""
    if "cupy" not in sys.modules:
        return None
    import cupy

    try:
        cupy.cuda.runtime.deviceSynchronize()
    except Exception as error:
        return brief(error)
    return None


def perform(step: str, settings: Settings, done: list[str]) -> int:
    """Do what is not done yet; the exit status."""
    items = {name: run for name, run in steps(step, settings).items() if not settings.only or name in settings.only}
    tell({"items": list(items)})
    for name, run in items.items():
        if name in done:
            continue
        tell({"begin": name})
        record = find_out(name, run)
        lost = why_lost() if record["verdict"] == "failed" else None
        if lost is not None:
            record["lost"] = lost
        tell(record)
        if lost is not None:
            return LOST
    return 0


def main() -> None:
    """Read the command line, do the step, and end the process."""
    global _CHANNEL
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", type=json.loads, default=[])
    parser.add_argument("--done", type=json.loads, default=[])
    parser.add_argument("--profiled", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()
    _CHANNEL = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    settings = Settings(args.out, tuple(args.only), args.profiled, args.cpu, args.scale)
    on_cpu = args.step in ("environment", "warm") or (args.cpu and args.step in ("layouts", "pages", "jobs"))
    reason = None if on_cpu else why_no_device()
    if reason is not None:
        tell({"no_device": reason})
        status = 0
    elif args.step in ("environment", "warm", "profiler", "tests", "layouts", "pages", "jobs"):
        status = perform(args.step, settings, args.done)
    else:
        from neardup_gpu import Engine

        with Engine(backend="gpu").start():
            status = perform(args.step, settings, args.done)
            if status == LOST or not args.profiled:
                leave(status)
    leave(status) if not args.profiled else sys.exit(status)  # profilers write when a process ends as usual


def leave(status: int) -> None:
    """End at once: to close a device that is lost raises exceptions, and may hang."""
    _CHANNEL.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
