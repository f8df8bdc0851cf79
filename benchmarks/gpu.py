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

Without a device it says why and ends with status 2; gpu_model.py then gives a prediction. In the simulator
(NUMBA_ENABLE_CUDASIM=1, with --megabytes 0.003) it shows that it runs, and no figure of it means anything.
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
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import neardup_gpu
from neardup_gpu import selftest
from neardup_gpu.data import Ragged
from neardup_gpu.engine.backend import resolve
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.hamming.index import BUCKET_LIMIT, BUCKET_PROBE, TableDesign
from neardup_gpu.kernel_inputs import INPUTS, Draw, kernel_modules
from neardup_gpu.kernels import (
    components,
    counts,
    greedy,
    hamming,
    hamming_probe,
    hamming_table,
    huffman_decode,
    huffman_encode,
    huffman_probe,
    identical,
    log_weights,
    lookup,
    minhash,
    occurrences,
    overlap,
    pairtables,
    resemblance,
    sequences,
    sets,
    shingles,
    simhash,
    supershingles,
    tokens,
)
from neardup_gpu.kernels._launch import namespace, simulated, to_host
from neardup_gpu.recipe import Recipe, SimhashRecipe, material

from .kernels import ALTAVISTA, WIDTH, figure, load, num_bytes, shuffled

AGREEMENT_VALUES = 1 << 18  # of the self-test's inputs, on which every kernel is compared first
SAMPLED_DOCUMENTS = 200  # whose overlap with all others is counted
PREFIXES = (16, 25)  # bits: few tables, and many


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


class Timed(NamedTuple):
    """A call to time, and what it should return."""

    run: Callable[..., Any]
    arguments: tuple
    expected: Callable[[], Any] | None = None
    context: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    text: bool = True  # whether it is of the text, and not of something else of another size


def either(on_device: Callable[[], Any], on_host: Callable[[], Any]) -> Any:
    """What the first gives, or else the second: inputs that take the CPU long."""
    try:
        return on_device()
    except Exception:
        return on_host()


class Inputs:
    """What each kernel is given, computed when it is first asked for: by `cpu`, so that no kernel needs another one.

    Parameters
    ----------
    text : Ragged of uint8
    random_rows : int
        Rows of the pair tables that have no pairs.
    num_fingerprints, num_queries : int
        Random fingerprints, and how many their tables are asked; half of them for what they hold.
    """

    def __init__(self, text: Ragged, random_rows: int, num_fingerprints: int, num_queries: int) -> None:
        self.text, self.random_rows = text, random_rows
        self.num_fingerprints, self.num_queries = num_fingerprints, num_queries
        self.recipe, self.drawn = Recipe(ALTAVISTA), material(1, 84, 32)
        self.limits = self.recipe.bucket_limit, self.recipe.bucket_probe

    @property
    def text_bytes(self) -> int:
        return num_bytes([self.text])

    @cached_property
    def tokens(self) -> tuple:
        return tokens.cpu(self.text.values, self.text.offsets, self.drawn.tokens)

    @cached_property
    def shingles(self) -> tuple:
        values, offsets, _ = self.tokens
        return shingles.cpu(values, offsets, WIDTH, "set", self.drawn.shingles, self.drawn.bags)

    @cached_property
    def signature(self) -> np.ndarray:
        return minhash.cpu(*self.shingles, self.drawn.a, self.drawn.b)

    @cached_property
    def features(self) -> np.ndarray:
        return supershingles.cpu(self.signature, ALTAVISTA.k, ALTAVISTA.s, 64, self.drawn.supershingles)

    @cached_property
    def sets(self) -> tuple:
        return sets.cpu(*self.shingles)

    def of_tables(self, features: np.ndarray) -> tuple:
        """Arguments of `pairtables`."""
        return features, np.ones(len(features), bool), ALTAVISTA.r, self.drawn.keys, *self.limits

    @cached_property
    def pairs(self) -> tuple:
        return pairtables.cpu(*self.of_tables(self.features))

    @cached_property
    def shared(self) -> tuple:
        return resemblance.cpu(*self.sets, *self.pairs[:2])

    @cached_property
    def counts(self) -> tuple:
        return counts.cpu(*self.tokens[:2])

    @cached_property
    def held(self) -> tuple:
        return occurrences.cpu(self.counts[0])

    @cached_property
    def inverse(self) -> np.ndarray:
        return log_weights.inverse(self.held[1], len(self.text))

    @cached_property
    def found(self) -> np.ndarray:
        return lookup.cpu(self.counts[0], self.held[0], self.inverse, 256)

    @cached_property
    def fingerprints(self) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 2**64, self.num_fingerprints, np.uint64)

    @cached_property
    def queries(self) -> np.ndarray:
        half = self.num_queries // 2
        return np.concatenate([self.fingerprints[:half], np.random.default_rng(1).integers(0, 2**64, half, np.uint64)])

    @cached_property
    def _tables(self) -> dict[int, tuple]:
        return {}

    def tables(self, prefix: int) -> tuple[Any, Any, np.ndarray]:
        """(words, rows, masks) of the tables of that many leading bits; only one prefix's are kept."""
        if prefix not in self._tables:
            self._tables.clear()
            masks = TableDesign(64, 3, prefix).array

            def built(table: Callable[..., tuple]) -> tuple:
                parts = [[to_host(part) for part in table(self.fingerprints, mask, True)] for mask in masks]
                return *(np.stack(part) for part in zip(*parts, strict=True)), masks

            self._tables[prefix] = either(partial(built, hamming_table.gpu), partial(built, hamming_table.cpu))
        return self._tables[prefix]

    def coded(self, prefix: int) -> Any:
        """The same tables, compressed."""
        words = self.tables(prefix)[0]
        return either(lambda: huffman_encode.gpu(words), lambda: huffman_encode.cpu(words))


def timed_kernels(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """{name: what to time}, of which nothing is computed yet."""
    return of_text(inputs) | of_simhash(inputs) | of_pairs(inputs) | of_hamming(inputs)


def of_text(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """From text to features."""
    drawn, longer, wide = inputs.drawn, material(1, 140, 32), material(1, 84, 64)

    def sketched(run: Any, prepared: Any, expected: Callable[[], Any]) -> Timed:
        return Timed(run, (*inputs.shingles, prepared.a, prepared.b), expected, {"shingles": len(inputs.shingles[0])})

    return {
        "tokens": lambda: Timed(
            tokens.gpu, (inputs.text.values, inputs.text.offsets, drawn.tokens), lambda: inputs.tokens
        ),
        "shingles": lambda: Timed(
            shingles.gpu,
            (*inputs.tokens[:2], WIDTH, "set", drawn.shingles, drawn.bags),
            lambda: inputs.shingles,
            {"tokens": len(inputs.tokens[0])},
        ),
        "minhash 84 L=32": lambda: sketched(minhash.gpu, drawn, lambda: inputs.signature),
        "supershingles 6 of 14": lambda: Timed(
            supershingles.gpu,
            (inputs.signature, ALTAVISTA.k, ALTAVISTA.s, 64, drawn.supershingles),
            lambda: inputs.features,
        ),
        "sequences": lambda: Timed(
            sequences.gpu,
            (*inputs.tokens[:2], drawn.documents),
            lambda: sequences.cpu(*inputs.tokens[:2], drawn.documents),
            {"tokens": len(inputs.tokens[0])},
        ),
        "minhash 140 L=32": lambda: sketched(
            minhash.gpu, longer, lambda: minhash.cpu(*inputs.shingles, longer.a, longer.b)
        ),
        "minhash 84 L=64": lambda: sketched(minhash.gpu, wide, lambda: minhash.cpu(*inputs.shingles, wide.a, wide.b)),
    }


def of_simhash(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """Simhashes of tokens, unweighted and by TF-IDF."""

    def plain(bits: int) -> Timed:
        arguments = *inputs.tokens[:2], None, bits
        return Timed(simhash.gpu, arguments, lambda: simhash.cpu(*arguments), {"tokens": len(inputs.tokens[0])})

    def weighted() -> Timed:
        distinct, rows, times = inputs.counts
        arguments = distinct, rows, times * inputs.found, 64
        return Timed(simhash.gpu, arguments, lambda: simhash.cpu(*arguments), {"distinct": len(distinct)})

    def look_up() -> Timed:
        arguments = inputs.counts[0], inputs.held[0], inputs.inverse, 256
        context = {"table": len(inputs.held[0]), "distinct": len(inputs.counts[0])}
        return Timed(lookup.gpu, arguments, lambda: inputs.found, context)

    return {
        "simhash tf, 64 bits": lambda: plain(64),
        "simhash tf, 128 bits": lambda: plain(128),
        "weights: counts": lambda: Timed(
            counts.gpu, inputs.tokens[:2], lambda: inputs.counts, {"tokens": len(inputs.tokens[0])}
        ),
        "weights: documents of each token": lambda: Timed(
            occurrences.gpu, inputs.counts[:1], lambda: inputs.held, {"distinct": len(inputs.counts[0])}
        ),
        "weights: look-up": look_up,
        "weights: logarithms": lambda: Timed(
            log_weights.gpu, inputs.counts[2:], lambda: log_weights.cpu(inputs.counts[2])
        ),
        "simhash weighted, 64 bits": weighted,
    }


def of_pairs(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """From features to decisions."""

    def random_tables() -> Timed:
        random = np.random.default_rng(0).integers(0, 2**64, (inputs.random_rows, ALTAVISTA.k), np.uint64)
        context = {"rows": inputs.random_rows, "tables": ALTAVISTA.tables}
        return Timed(pairtables.gpu, inputs.of_tables(random), None, context, text=False)

    def decided(name: str) -> Timed:
        rows, (left, right, *_) = len(inputs.features), inputs.pairs
        arguments: tuple = rows, left, right
        if name == "greedy":
            arguments = *arguments, resemblance.resemblance(*inputs.shared), np.zeros(rows, bool)
        module = greedy if name == "greedy" else components
        return Timed(module.gpu, arguments, lambda: module.cpu(*arguments), {"pairs": len(left)})

    def overlaps() -> Timed:
        few = min(SAMPLED_DOCUMENTS, len(inputs.features))
        values, offsets = inputs.sets
        arguments = values, offsets, *overlap.invert(values, offsets[: few + 1]), few
        return Timed(overlap.gpu, arguments, lambda: overlap.cpu(*arguments), {"shingles": len(values)})

    return {
        "unique": lambda: Timed(sets.gpu, inputs.shingles, lambda: inputs.sets, {"shingles": len(inputs.shingles[0])}),
        "pair tables 6,14,2": lambda: Timed(
            pairtables.gpu, inputs.of_tables(inputs.features), lambda: inputs.pairs, {"rows": len(inputs.features)}
        ),
        "intersections": lambda: Timed(
            resemblance.gpu, (*inputs.sets, *inputs.pairs[:2]), lambda: inputs.shared, {"pairs": len(inputs.pairs[0])}
        ),
        "greedy": lambda: decided("greedy"),
        "connected": lambda: decided("connected"),
        "overlap": overlaps,
        "pair tables 6,14,2, random rows": random_tables,
    }


def of_hamming(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """All pairs of random fingerprints, by few tables and by many; an index of them, raw and compressed; queries."""
    limits, rows = (BUCKET_LIMIT, BUCKET_PROBE), {"rows": inputs.num_fingerprints}

    def timed(kind: str, prefix: int) -> Timed:
        masks = TableDesign(64, 3, prefix).array
        context = {**rows, "tables": len(masks)}
        if kind == "pairs":
            return Timed(hamming.gpu, (inputs.fingerprints, masks, 3, *limits), None, context, text=False)
        if kind == "a table":
            return Timed(hamming_table.gpu, (inputs.fingerprints, masks[0], True), None, context, text=False)
        words, order, _ = inputs.tables(prefix)
        asked = order, masks, inputs.queries, 3, *limits, None
        context["queries"] = len(inputs.queries)
        if kind == "probe":
            return Timed(hamming_probe.gpu, (words, *asked), None, context, text=False)
        if kind == "encode":
            return Timed(huffman_encode.gpu, (words,), None, context, text=False)
        coded = inputs.coded(prefix)
        bits = (coded.blocks.nbytes + coded.keys.nbytes + coded.firsts.nbytes) * 8
        context["bits_a_word"] = round(bits / max(1, words.size), 2)
        if kind == "decode":
            blocks = coded.lengths, coded.offsets, coded.blocks, coded.firsts, np.arange(len(coded.blocks))
            return Timed(huffman_decode.gpu, blocks, None, context, text=False)
        return Timed(huffman_probe.gpu, (*coded, *asked), None, context, text=False)

    first = {
        "hamming: first of equal ones": lambda: Timed(
            identical.gpu, (inputs.fingerprints,), None, rows.copy(), text=False
        )
    }
    kinds = {
        f"{module}: {kind}, {prefix} bits": partial(timed, kind, prefix)
        for prefix in PREFIXES
        for module, kind in (
            ("hamming", "pairs"),
            ("hamming", "a table"),
            ("hamming", "probe"),
            ("compression", "encode"),
            ("compression", "decode"),
            ("compression", "probe"),
        )
    }
    return first | kinds


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


def brief(error: BaseException) -> str:
    """An exception as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__


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
            results[backend] = neardup_gpu.dedup(corpus, text_columns="text", backend=backend, **options)
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
        print(f"{error}\nbenchmarks/gpu_model.py predicts what a device would do", file=sys.stderr)
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
    calls |= {f"agreement: {name}": partial(agreement, name, size) for name in kernel_modules()}

    def timing(name: str, make: Callable[[], Timed]) -> list[dict[str, Any]]:
        return [measure(name, make(), args.repeat, inputs.text_bytes)]

    calls |= {name: partial(timing, name, make) for name, make in timed_kernels(inputs).items()}
    jobs: dict[str, dict[str, Any]] = {
        f"by min-hash, filter {args.filter}": {"filter": args.filter},
        "by simhash, tf": {"recipe": SimhashRecipe(weighting="tf")},
        "by simhash, log": {"recipe": SimhashRecipe(weighting="log")},
        "by simhash, tfidf": {"recipe": SimhashRecipe(weighting="tfidf")},
        "by simhash, verified": {"recipe": SimhashRecipe(radius=8, threshold=0.8)},
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
