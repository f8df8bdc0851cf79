"""Time every kernel and the whole job on a GPU, after checking that they give the bits of the CPU.

    python -m benchmarks.gpu --corpus corpora/bills_116.parquet --output benchmarks/results/NAME.json

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
from neardup_gpu import selftest
from neardup_gpu.backend import resolve
from neardup_gpu.data import Ragged
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.hamming import BUCKET_LIMIT, BUCKET_PROBE, TableDesign
from neardup_gpu.kernels import (
    components,
    compression,
    hamming,
    minhash,
    overlap,
    pairtables,
    resemblance,
    sequences,
    shingles,
    simhash,
    supershingles,
    tokens,
    weights,
)
from neardup_gpu.kernels.launch import namespace, simulated, to_host
from neardup_gpu.recipe import Recipe, SimhashRecipe, material

from .kernels import ALTAVISTA, WIDTH, check_agreement, figure, load, num_bytes, shuffled

AGREEMENT_BYTES = 1 << 20  # of text on which both are compared first
AGREEMENT_VALUES = 1 << 18  # of the self-test's inputs for simhashes and their tables
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

    def __call__(self, name: str, run: Callable[..., Any], *arguments: Any, text: bool = True, **context: Any) -> Any:
        """Time a call; `text` says whether it is of the text, and not of something else of another size."""
        xp = namespace()
        held = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        times, result = self.milliseconds(lambda: run(*held))
        arrays = [
            a for a in [*held, *(result if isinstance(result, tuple) else (result,))] if isinstance(a, xp.ndarray)
        ]
        rate = sum(a.nbytes for a in arrays) / statistics.median(times) / 1e6
        if text:
            context["text_gb_per_s"] = round(self.text_bytes / statistics.median(times) / 1e6, 3)
        self.figures.append(figure(name, times, "ms", gb_per_s=round(rate, 3), **context))
        return result


def check_simhashes(size: int) -> int:
    """Compare the kernels of simhashes, their weights and tables on inputs of the self-test; return how many.

    Raises
    ------
    AssertionError
        If any output differs in any bit.
    """
    wanted = [name for name in selftest.GENERATORS if name.startswith(("simhash", "weights", "hamming", "compression"))]
    for name in wanted:
        module, prefix = selftest.definitions()[name]
        for seed in range(3):
            arguments = selftest.GENERATORS[name](np.random.default_rng(seed), size)
            expected, found = (getattr(module, prefix + backend)(*arguments) for backend in ("cpu", "gpu"))
            assert selftest.same(expected, found), f"{name} of gpu and cpu differ"
    return len(wanted)


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
    time_simhash(values, offsets, watch)
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


def time_simhash(values: Any, offsets: Any, watch: Watch) -> None:
    """Simhashes of tokens, unweighted and by TF-IDF."""
    items = {"tokens": len(values)}
    watch("simhash tf, 64 bits", simhash.gpu, values, offsets, None, 64, **items)
    watch("simhash tf, 128 bits", simhash.gpu, values, offsets, None, 128, **items)
    distinct, rows, times = watch("weights: counts", weights.counts_gpu, values, offsets, **items)
    table, held = watch("weights: documents of each token", weights.occurrences_gpu, distinct, distinct=len(distinct))
    inverse = weights.inverse(to_host(held), len(rows) - 1)
    items["distinct"] = len(distinct)
    found = watch("weights: look-up", weights.look_up_gpu, distinct, table, inverse, 256, table=len(table), **items)
    watch("weights: logarithms", weights.logarithmic_gpu, times, **items)
    watch("simhash weighted, 64 bits", simhash.gpu, distinct, rows, times * found, 64, **items)


def time_hamming(watch: Watch, num_rows: int, num_queries: int) -> None:
    """All pairs of random fingerprints, by few tables and by many; an index of them, raw and compressed, and queries,
    half of them of what it holds."""
    random = np.random.default_rng(0)
    values = random.integers(0, 2**64, num_rows, np.uint64)
    queries = np.concatenate([values[: num_queries // 2], random.integers(0, 2**64, num_queries // 2, np.uint64)])
    limits = BUCKET_LIMIT, BUCKET_PROBE
    rows = {"rows": num_rows}
    watch("hamming: first of equal ones", hamming.first_gpu, values, text=False, **rows)
    for prefix in (16, 25):
        masks = TableDesign(64, 3, prefix).array
        context = {**rows, "tables": len(masks), "text": False}
        name = f"{num_rows:,} rows, {len(masks)} tables"
        watch(f"hamming: pairs, {name}", hamming.gpu, values, masks, 3, *limits, **context)
        table = watch(f"hamming: a table, {name}", hamming.table_gpu, values, masks[0], True, **context)
        built = [hamming.table_gpu(values, mask, True) for mask in masks]
        words, order = (namespace().stack([table[part] for table in built]) for part in (0, 1))
        context["queries"] = len(queries)
        watch(f"hamming: probe, {name}", hamming.probe_gpu, words, order, masks, queries, 3, *limits, None, **context)
        coded = watch(f"compression: encode, {name}", compression.encode_gpu, words, **context)
        context["bits_a_word"] = round(
            (coded.blocks.nbytes + coded.keys.nbytes + coded.firsts.nbytes) * 8 / words.size, 2
        )
        numbers = np.arange(len(coded.blocks))
        blocks = coded.lengths, coded.offsets, coded.blocks, coded.firsts, numbers
        watch(f"compression: decode, {name}", compression.decode_gpu, *blocks, **context)
        asked = *coded, order, masks, queries, 3, *limits, None
        watch(f"compression: probe, {name}", compression.probe_gpu, *asked, **context)
        del table, built, words, order, coded, blocks, asked


def time_job(corpus: Path, repeat: int, name: str, **options: Any) -> list[dict[str, Any]]:
    """Seconds of `dedup` of a file, without writing, on the GPU and on the CPU in turn."""
    seconds: dict[str, list[float]] = {"gpu": [], "cpu": []}
    results = {}
    for _ in range(repeat + 1):
        for backend, times in seconds.items():
            start = time.perf_counter()
            results[backend] = neardup_gpu.dedup(corpus, text_columns="text", backend=backend, **options)
            times.append(time.perf_counter() - start)
    assert results["gpu"].documents == results["cpu"].documents, "decisions of gpu and cpu differ"
    assert results["gpu"].pairs == results["cpu"].pairs, "pairs of gpu and cpu differ"
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
        print(f"{error}\nbenchmarks/gpu_model.py predicts what a device would do", file=sys.stderr)
        return 2
    batches = load(shuffled(args.corpus, ["id", "text"]))
    text, recipe = repeated(batches, int(args.megabytes * 1e6)), Recipe(ALTAVISTA)
    watch = Watch(args.repeat, num_bytes([text]))
    agreed = check_agreement(text, "cpu", "gpu", AGREEMENT_BYTES)
    kernels = check_simhashes(100 if simulated() else AGREEMENT_VALUES)
    print(f"agreed with the CPU on {agreed} documents, and {kernels} kernels on random inputs")
    copy, pcie = bandwidths(watch, min(1 << 30, 2 * watch.text_bytes))
    time_kernels(text, recipe, watch, args.random_rows)
    time_hamming(watch, args.fingerprints, args.queries)
    for line in watch.figures:
        line["of_copy"] = round(line["gb_per_s"] / copy, 4)
        if "text_gb_per_s" in line:
            line["of_pcie"] = round(line["text_gb_per_s"] / pcie, 3)
    jobs = {
        f"by min-hash, filter {args.filter}": {"filter": args.filter},
        "by simhash, tf": {"recipe": SimhashRecipe(weighting="tf")},
        "by simhash, log": {"recipe": SimhashRecipe(weighting="log")},
        "by simhash, tfidf": {"recipe": SimhashRecipe(weighting="tfidf")},
        "by simhash, verified": {"recipe": SimhashRecipe(radius=8, threshold=0.8)},
    }
    jobs, repeat = {} if simulated() else jobs, min(3, args.repeat)
    figures = [
        figure("copy within the device", [copy], "GB/s"),
        figure("copy of pinned memory to the device", [pcie], "GB/s"),
        *watch.figures,
        *(found for name, options in jobs.items() for found in time_job(args.corpus, repeat, name, **options)),
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
