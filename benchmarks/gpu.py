"""Time every kernel and the whole job on a GPU, after checking that they give the bits of the CPU.

    python benchmarks/gpu.py --corpus corpora/bills_116.parquet --output benchmarks/results/NAME.json

The text, repeated or cut to `--megabytes`, lies on the device before a kernel is timed; transfers are lines of their
own. Times are of CUDA events, after one run that is dropped (it compiles). For each kernel:

    ms           median of the runs, and their extremes
    gb_per_s     bytes of the arrays that go in and come out, over the time
    of_copy      that, as a share of what a copy within the device reaches in the same run (bytes read and written)
    of_pcie      speed in text, as a share of what a copy of pinned memory to the device reaches in the same run: below
                 1 the kernel would hold up text that arrives at full speed

Without a device it says why and ends with status 2; gpu_model.py then gives a prediction. In the simulator
(NUMBA_ENABLE_CUDASIM=1, with --megabytes 0.003) it shows that it runs, and no figure of it means anything.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import neardup_gpu
from kernels import ALTAVISTA, WIDTH, check_agreement, figure, load, num_bytes, shuffled
from neardup_gpu.backend import resolve
from neardup_gpu.data import Ragged
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.kernels import (
    components,
    minhash,
    overlap,
    pairtables,
    resemblance,
    sequences,
    shingles,
    supershingles,
    tokens,
)
from neardup_gpu.kernels.launch import namespace, simulated, to_host
from neardup_gpu.recipe import Recipe, material

AGREEMENT_BYTES = 1 << 20  # of text on which both are compared first
SAMPLED_DOCUMENTS = 200  # whose overlap with all others is counted


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


class Watch:
    """Milliseconds of a call on the device, and the bytes of its arrays."""

    def __init__(self, repeat: int, text_bytes: int) -> None:
        self.repeat, self.text_bytes, self.figures = repeat, text_bytes, []  # type: ignore[var-annotated]

    def milliseconds(self, call: Callable[[], Any]) -> tuple[list[float], Any]:
        """Times of `repeat` calls after one that is dropped, and what the last one returned."""
        times = []
        for _ in range(self.repeat + 1):
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

    def __call__(self, name: str, run: Callable[..., Any], *arguments: Any, **context: Any) -> Any:
        xp = namespace()
        held = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        times, result = self.milliseconds(lambda: run(*held))
        arrays = [
            a for a in [*held, *(result if isinstance(result, tuple) else (result,))] if isinstance(a, xp.ndarray)
        ]
        rate = sum(a.nbytes for a in arrays) / statistics.median(times) / 1e6
        text_rate = self.text_bytes / statistics.median(times) / 1e6
        self.figures.append(
            figure(name, times, "ms", gb_per_s=round(rate, 3), text_gb_per_s=round(text_rate, 3), **context)
        )
        return result


def bandwidths(watch: Watch, size: int) -> tuple[float, float]:
    """GB/s of a copy within the device, bytes read and written, and of one of pinned memory to it."""
    xp = namespace()
    source, target = xp.zeros(size, np.uint8), xp.empty(size, np.uint8)
    inside, _ = watch.milliseconds(lambda: xp.copyto(target, source))
    if simulated():
        host = np.zeros(size, np.uint8)
        across, _ = watch.milliseconds(lambda: np.copyto(target, host))
    else:
        import cupyx

        host = cupyx.zeros_pinned(size, np.uint8)
        across, _ = watch.milliseconds(lambda: target.set(host))
    return 2 * size / statistics.median(inside) / 1e6, size / statistics.median(across) / 1e6


def time_kernels(text: Ragged, recipe: Recipe, watch: Watch, random_rows: int) -> None:
    """Each kernel on what the one before it gave."""
    drawn, longer, wide = material(1, 84, 32), material(1, 140, 32), material(1, 84, 64)
    k, s, r = ALTAVISTA
    values, offsets, _ = watch("tokens", tokens.gpu, text.values, text.offsets, drawn.tokens)
    items = {"tokens": len(values)}
    watch("sequences", sequences.gpu, values, offsets, drawn.documents, **items)
    values, offsets = watch(
        "shingles", shingles.gpu, values, offsets, WIDTH, "set", drawn.shingles, drawn.bags, **items
    )
    items = {"shingles": len(values)}
    signature = watch("minhash 84 L=32", minhash.gpu, values, offsets, drawn.a, drawn.b, **items)
    watch("minhash 140 L=32", minhash.gpu, values, offsets, longer.a, longer.b, **items)
    watch("minhash 84 L=64", minhash.gpu, values, offsets, wide.a, wide.b, **items)
    features = watch("supershingles 6 of 14", supershingles.gpu, signature, k, s, 64, drawn.supershingles)
    values, offsets = watch("unique", resemblance.unique_gpu, values, offsets, **items)
    limits = recipe.bucket_limit, recipe.bucket_probe
    present = np.ones(len(features), bool)
    left, right, *_ = watch("pair tables 6,14,2", pairtables.gpu, features, present, r, drawn.keys, *limits)
    pairs = {"pairs": len(left)}
    common, union = watch("intersections", resemblance.gpu, values, offsets, left, right, **pairs)
    weight = resemblance.resemblance(common, union)
    watch("greedy", components.greedy_gpu, len(features), left, right, weight, np.zeros(len(features), bool), **pairs)
    watch("connected", components.connected_gpu, len(features), left, right, **pairs)
    few = min(SAMPLED_DOCUMENTS, len(features))
    inverted = overlap.invert(to_host(values), to_host(offsets)[: few + 1])
    watch("overlap", overlap.gpu, values, offsets, *inverted, few, **items)
    random = np.random.default_rng(0).integers(0, 2**64, (random_rows, k), np.uint64)
    present = np.ones(random_rows, bool)
    name = f"pair tables 6,14,2, {random_rows:,} random rows"
    watch(name, pairtables.gpu, random, present, r, drawn.keys, *limits, rows=random_rows, tables=ALTAVISTA.tables)


def time_job(corpus: Path, repeat: int, filter: str) -> list[dict[str, Any]]:
    """Seconds of `dedup` of a file, without writing, on the GPU and on the CPU in turn."""
    seconds: dict[str, list[float]] = {"gpu": [], "cpu": []}
    results = {}
    for _ in range(repeat + 1):
        for backend, times in seconds.items():
            start = time.perf_counter()
            results[backend] = neardup_gpu.dedup(corpus, text_columns="text", filter=filter, backend=backend)
            times.append(time.perf_counter() - start)
    assert results["gpu"].documents == results["cpu"].documents, "decisions of gpu and cpu differ"
    assert results["gpu"].pairs == results["cpu"].pairs, "pairs of gpu and cpu differ"
    report = results["gpu"].report
    size = report["counts"]["text_bytes"]
    return [
        figure(
            f"dedup, {backend}",
            times[1:],
            "s",
            filter=filter,
            text_gb_per_s=round(size / statistics.median(times[1:]) / 1e9, 3),
            recall_sampled=report["recall"]["sampled"]["recall"],
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
    parser.add_argument("--repeat", type=int, default=7, help="runs, after one that is dropped")
    parser.add_argument("--filter", default="20,7,1", help="of the whole job")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    try:
        resolve("gpu")
    except BackendUnavailableError as error:
        print(f"{error}\nbenchmarks/gpu_model.py predicts what a device would do", file=sys.stderr)
        return 2
    batches = load(shuffled(args.corpus, ["id", "text"]))
    text, recipe = repeated(batches, int(args.megabytes * 1e6)), Recipe(ALTAVISTA)
    watch = Watch(args.repeat, num_bytes([text]))
    agreed = check_agreement(text, "cpu", "gpu", AGREEMENT_BYTES)
    print(f"agreed with the CPU on {agreed} documents")
    copy, pcie = bandwidths(watch, min(1 << 30, 2 * watch.text_bytes))
    time_kernels(text, recipe, watch, args.random_rows)
    for line in watch.figures:
        line["of_copy"] = round(line["gb_per_s"] / copy, 4)
        if "text_gb_per_s" in line:
            line["of_pcie"] = round(line["text_gb_per_s"] / pcie, 3)
    figures = [
        figure("copy within the device", [copy], "GB/s"),
        figure("copy of pinned memory to the device", [pcie], "GB/s"),
        *watch.figures,
        *(time_job(args.corpus, min(3, args.repeat), args.filter) if not simulated() else []),
    ]
    for line in figures:
        rates = "".join(f"  {name} {line[name]}" for name in ("gb_per_s", "of_copy", "of_pcie") if name in line)
        print(f"{line['what']:45} {line['median']:>10} {line['unit']}{rates}")
    if args.output and not simulated():
        context = {"corpus": args.corpus.stem, "text_bytes": watch.text_bytes, "agreed_on_documents": agreed}
        args.output.write_text(json.dumps({"machine": machine(), **context, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
