"""Time every kernel and the whole job on a GPU, and compare each with the CPU.

    python -m benchmarks.gpu --corpus corpora/bills_116.parquet --output benchmarks/results/NAME.json

The text, repeated or cut to `--megabytes`, lies on the device before a kernel is timed; transfers are lines of their
own. Each kernel gets what `cpu` makes of the text, so that none depends on another one's success. Times are of CUDA
events, after one run that is dropped (it compiles). For each kernel:

    ms           median of the runs, and their extremes
    gb_per_s     bytes of the arrays that go in and come out, over the time
    of_copy      that, as a share of what a copy within the device reaches in the same run (bytes read and written)
    of_pcie      speed in text, as a share of what a copy of pinned memory to the device reaches in the same run: below
                 1 the kernel would hold up text that arrives at full speed
    agrees       whether it gave the bits of the CPU

A line is printed, and the JSON file written anew, as soon as a figure is known. What differs or fails has a `problem`
in place of figures, the rest goes on, and the exit status is 1; after an illegal access, when the device takes no more
calls of this process, the rest is not run. (benchmarks/first_contact.py goes on then, in another process.)

Without a device it says why and ends with status 2. In the simulator (NUMBA_ENABLE_CUDASIM=1, with --megabytes 0.003)
it shows that it runs, and no figure of it means anything.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import neardup_gpu
from neardup_gpu import MinHash, SimHash
from neardup_gpu.engine.choice import resolve
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.installation import selftest
from neardup_gpu.installation.kernel_inputs import INPUTS, Draw, kernel_modules
from neardup_gpu.kernels._launch import namespace, simulated
from neardup_gpu.stages import Ragged

from .findings import brief
from .gpu_inputs import Inputs, Timed, timed_kernels
from .measure import figure, load, shuffled

AGREEMENT_VALUES = 1 << 18  # of the self-test's inputs, on which every kernel is compared first


def repeated(batches: list[Ragged], size: int) -> Ragged:
    """Documents of the batches, over and over, up to `size` bytes of text."""
    rows, held = [], 0
    while held < size:
        for batch in batches:
            for row in range(len(batch)):
                if held + len(batch[row]) > size:
                    return Ragged.from_rows(rows or [batch[row][:size]], np.uint8)
                rows.append(batch[row])
                held += len(batch[row])
    return Ragged.from_rows(rows, np.uint8)


# ------------------------------------------------------------------------------------------------------------- timing


def milliseconds(call: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    """Times of `repeat` calls on the device after one that is dropped, and what the last one returned."""
    times, result = [], None
    for _ in range(repeat + 1):
        result = None  # the next one needs the room
        if simulated():
            start = time.perf_counter()
            result = call()
            times.append((time.perf_counter() - start) * 1e3)
            continue
        xp = namespace()
        begin, end = xp.cuda.Event(), xp.cuda.Event()
        begin.record()
        result = call()
        end.record()
        end.synchronize()
        times.append(xp.cuda.get_elapsed_time(begin, end))
    return times[1:], result


def on_device(arguments: tuple) -> list[Any]:
    """Arguments, the arrays among them on the device; all but constants, which functions take from the host."""
    xp = namespace()
    return [xp.asarray(a) if isinstance(a, np.ndarray) and a.nbytes > 4096 else a for a in arguments]


def nbytes(values: Any) -> int:
    """Bytes of all arrays among some values."""
    return sum(nbytes(v) if isinstance(v, tuple | list) else int(getattr(v, "nbytes", 0)) for v in values)


def measure(name: str, timed: Timed, repeat: int, text_bytes: int) -> dict[str, Any]:
    """A kernel's figure; a `problem` if it does not give what it should."""
    held = on_device(timed.arguments)
    times, result = milliseconds(lambda: timed.run(*held), repeat)
    middle, context = statistics.median(times), dict(timed.context)
    context["gb_per_s"] = round(nbytes([*held, result]) / middle / 1e6, 3)
    if timed.text:
        context["text_gb_per_s"] = round(text_bytes / middle / 1e6, 3)
    if timed.expected is not None:
        context["agrees"] = selftest.same(timed.expected(), result)
        context["problem"] = None if context["agrees"] else "differs from cpu"
    return figure(name, times, "ms", **context)


def why_lost() -> str | None:
    """Why the device takes no more calls of this process; None if it does."""
    if simulated():
        return None
    try:
        namespace().cuda.runtime.deviceSynchronize()
        namespace().get_default_memory_pool().free_all_blocks()
    except Exception as error:
        return brief(error)
    return None


def guarded(calls: dict[str, Callable[[], list[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """The lines that each call gives; a `problem` for one that fails, and for all after it if the device is lost."""
    lost = None
    for name, call in calls.items():
        if lost is not None:
            yield {"what": name, "problem": f"not run: {lost}"}
            continue
        try:
            yield from call()
        except Exception as error:  # what else fails is to be seen, too
            yield {"what": name, "problem": brief(error)}
            cause = why_lost()
            lost = None if cause is None else f"the device takes no more calls since {name} ({cause})"


def agreement(name: str, size: int) -> list[dict[str, Any]]:
    """Compare a kernel with `cpu` on inputs of the self-test."""
    module = kernel_modules()[name]
    for seed in range(3):
        arguments = INPUTS[name](Draw(np.random.default_rng(seed)), size)
        expected, found = module.cpu(*arguments), module.gpu(*arguments)
        if not selftest.same(expected, found):
            return [{"what": f"agreement: {name}", "agrees": False, "problem": f"differs from cpu on input {seed}"}]
    return [{"what": f"agreement: {name}", "agrees": True}]


def bandwidths(size: int, repeat: int) -> list[dict[str, Any]]:
    """GB/s of a copy within the device, bytes read and written, and of one of pinned memory to it."""
    xp = namespace()
    source, target = xp.zeros(size, np.uint8), xp.empty(size, np.uint8)
    inside, _ = milliseconds(lambda: xp.copyto(target, source), repeat)
    if simulated():
        host = np.zeros(size, np.uint8)
        across, _ = milliseconds(lambda: np.copyto(target, host), repeat)
    else:
        import cupyx

        host = cupyx.zeros_pinned(size, np.uint8)
        across, _ = milliseconds(lambda: target.set(host), repeat)
    return [
        figure(COPY, [2 * size / ms / 1e6 for ms in inside], "GB/s"),
        figure(PCIE, [size / ms / 1e6 for ms in across], "GB/s"),
    ]


COPY, PCIE = "copy within the device", "copy of pinned memory to the device"


def time_job(corpus: Path, repeat: int, name: str, **options: Any) -> list[dict[str, Any]]:
    """Seconds of `dedup` of a file, without writing, on the GPU and on the CPU in turn."""
    seconds: dict[str, list[float]] = {"gpu": [], "cpu": []}
    results = {}
    for _ in range(repeat + 1):
        for backend, times in seconds.items():
            start = time.perf_counter()
            results[backend] = neardup_gpu.dedup(corpus, text_columns="text", engine=backend, **options)
            times.append(time.perf_counter() - start)
    one, other = results["gpu"], results["cpu"]
    if one.documents != other.documents or one.pairs != other.pairs:
        return [{"what": f"dedup {name}", "agrees": False, "problem": "decisions of gpu and cpu differ"}]
    report = results["gpu"].report
    size, sampled = report["counts"]["text_bytes"], report["recall"]["sampled"]
    return [
        figure(
            f"dedup {name}, {backend}",
            times[1:],
            "s",
            text_gb_per_s=round(size / statistics.median(times[1:]) / 1e9, 3),
            **({} if sampled is None else {"recall_sampled": sampled["recall"]}),
        )
        for backend, times in seconds.items()
    ]


def machine() -> dict[str, Any]:
    """What the figures were taken on."""

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    packages = ("numba", "numba-cuda", "cupy-cuda12x", "cupy-cuda13x", "numpy", "pyarrow")
    described = {
        "python": platform.python_version(),
        "versions": {package: found for package in packages if (found := installed(package))},
        "neardup_gpu": neardup_gpu.__version__,
    }
    if simulated():
        return described | {"device": "Numba's simulator: no figure here is a measurement"}
    runtime = namespace().cuda.runtime
    properties = runtime.getDeviceProperties(namespace().cuda.Device().id)
    return described | {
        "device": properties["name"].decode(),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": properties["totalGlobalMem"],
        "driver": runtime.driverGetVersion(),
        "cuda_runtime": runtime.runtimeGetVersion(),
    }


def main() -> int:
    """Read the command line; print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--megabytes", type=float, default=512, help="text that lies on the device")
    parser.add_argument("--random-rows", type=int, default=10_000_000, help="rows of the pair tables without pairs")
    parser.add_argument("--fingerprints", type=int, default=10_000_000, help="random ones, of which pairs are found")
    parser.add_argument("--queries", type=int, default=1_000_000, help="that these are asked")
    parser.add_argument("--repeat", type=int, default=7, help="runs, after one that is dropped")
    parser.add_argument("--filter", default="20,7,1", help="of the whole job")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    try:
        resolve("gpu")
    except BackendUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    batches = load(shuffled(args.corpus, ["id", "text"]))
    text = repeated(batches, int(args.megabytes * 1e6))
    inputs = Inputs(text, args.random_rows, args.fingerprints, args.queries)
    document = {"machine": machine(), "corpus": args.corpus.stem, "text_bytes": inputs.text_bytes, "figures": []}
    output = args.output if writes() else None
    for line in lines(inputs, args):
        document["figures"].append(shares(line, document["figures"]))
        show(line)
        if output:
            beside = output.with_name(f"{output.name}.new")
            beside.write_text(json.dumps(document, indent=1) + "\n")
            os.replace(beside, output)
    wrong = [line["what"] for line in document["figures"] if line.get("problem")]
    if wrong:
        print(f"{len(wrong)} of {len(document['figures'])} lines have a problem: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def writes() -> bool:
    """Whether figures are worth keeping: the simulator's are not."""
    return not simulated()


def lines(inputs: Inputs, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Everything that is found, as soon as it is."""
    size = 100 if simulated() else AGREEMENT_VALUES
    calls: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "bandwidths": partial(bandwidths, min(1 << 30, 2 * inputs.text_bytes), args.repeat)
    }
    calls |= {f"agreement: {name}": partial(agreement, name, size) for name in kernel_modules("gpu")}

    def timing(name: str, make: Callable[[], Timed]) -> list[dict[str, Any]]:
        return [measure(name, make(), args.repeat, inputs.text_bytes)]

    calls |= {name: partial(timing, name, make) for name, make in timed_kernels(inputs).items()}
    jobs: dict[str, dict[str, Any]] = {
        "by exact": {},
        f"by min-hash, filter {args.filter}": {"method": MinHash(filter=args.filter)},
        "by simhash, tf": {"method": SimHash(weighting="tf")},
        "by simhash, log": {"method": SimHash(weighting="log")},
        "by simhash, tfidf": {"method": SimHash(weighting="tfidf")},
        "by simhash, verified": {"method": SimHash(radius=8), "threshold": 0.8},
    }
    for name, options in {} if simulated() else jobs.items():
        calls[f"dedup {name}"] = partial(time_job, args.corpus, min(3, args.repeat), name, **options)
    yield from guarded(calls)


def shares(line: dict[str, Any], before: list[dict[str, Any]]) -> dict[str, Any]:
    """The line, with its speed as shares of those of copies, which are among the lines before it."""
    rates = {other["what"]: other["median"] for other in before if other["what"] in (COPY, PCIE)}
    for share, rate, ceiling in (("of_copy", "gb_per_s", COPY), ("of_pcie", "text_gb_per_s", PCIE)):
        if line.get("unit") == "ms" and rate in line and rates.get(ceiling):
            line[share] = round(line[rate] / rates[ceiling], 4)
    return line


def show(line: dict[str, Any]) -> None:
    """Print a line at once."""
    said = f"{line['what']:45}"
    if "median" in line:
        said += f" {line['median']:>10} {line['unit']}"
    elif line.get("agrees"):
        said += f" {'agrees':>10}"
    said += "".join(f"  {name} {line[name]}" for name in ("gb_per_s", "of_copy", "of_pcie") if name in line)
    print(said + (f"  PROBLEM: {line['problem']}" if line.get("problem") else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
