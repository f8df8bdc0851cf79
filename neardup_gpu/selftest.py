"""`neardup selftest`: every kernel against its definition on this machine, with fresh random inputs; then its speed.

Kernels are found by themselves, as functions named `reference` or `*_reference` in the files of kernels/. Each has a
generator of inputs here: a function of a random generator and a size, which is about the number of values (tokens:
bytes; pair tables and components: rows; tables of fingerprints: words) that go in.
"""

from __future__ import annotations

import importlib
import pkgutil
import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup_gpu import kernels
from neardup_gpu.kernels._launch import simulated
from neardup_gpu.kernels.compression import encode_cpu
from neardup_gpu.kernels.hamming import table_cpu
from neardup_gpu.kernels.overlap import invert
from neardup_gpu.kernels.resemblance import unique_cpu
from neardup_gpu.kernels.weights import logarithmic_cpu

from .engine.choice import to_host as home
from .engine.contract import Runtime as Job
from .engine.settings import Engine
from .errors import ParameterError
from .hamming.index import TableDesign, choose
from .job import dedup
from .methods.minhash import MinHash
from .recipe import Recipe
from .report import beside, count, heading, shorten, size

if TYPE_CHECKING:
    from rich.text import Text

SMALL = (0, 1, 30, 300, 2000)
"""Sizes of the inputs on which a backend is compared with the reference, which is slow."""

LARGE = 1 << 23
"""Size of the input on which "gpu" is compared with "cpu", and either is timed: 64 MB, for most kernels."""

REPEATS = 3
"""Timings, of which the best counts."""

WHOLE = "dedup"
"""Name of the last row: the whole job, on generated documents."""

AGREES, DIFFERS, FAILED, NOT_RUN = "agrees", "differs", "failed", "not run"
"""Verdicts: the same bits; other bits; an exception; nothing known, because a kernel before it broke the device."""


# -------------------------------------------------------------------------------------------------- random inputs


def _modulus(random: np.random.Generator) -> np.uint64:
    return random.integers(1 << 63, 2**64, dtype=np.uint64, endpoint=False)


def _offsets(random: np.random.Generator, num_values: int, mean: int) -> np.ndarray:
    """Rows of about `mean` values: some empty, one of a tenth of all; other values before the first row and after the
    last."""
    cuts = random.integers(0, num_values + 1, max(1, num_values // mean))
    tenth = random.integers(0, num_values - num_values // 10 + 1)
    cuts = np.sort(cuts[(cuts <= tenth) | (cuts >= tenth + num_values // 10)])
    return np.concatenate([cuts[:1], cuts, cuts[-1:]]).astype(np.int64) if len(cuts) else np.zeros(1, np.int64)


def _values(random: np.random.Generator, num_values: int) -> np.ndarray:
    """Fingerprints, a third of them more than once, some extreme."""
    values = random.integers(0, 2**64, num_values, np.uint64)
    again = random.random(num_values) < 1 / 3
    values[again] = values[random.integers(0, max(1, num_values), int(again.sum()))]
    extremes = np.array([0, 1, 2**32, 2**63, 2**64 - 1], np.uint64)
    some = random.integers(0, max(1, num_values), min(num_values, 5))
    values[some] = extremes[: len(some)]
    return values


def _ragged(random: np.random.Generator, num_values: int, mean: int = 100) -> tuple[np.ndarray, np.ndarray]:
    return _values(random, num_values), _offsets(random, num_values, mean)


def _sets(random: np.random.Generator, num_values: int) -> tuple[np.ndarray, np.ndarray]:
    return unique_cpu(*_ragged(random, num_values))


PIECES = (
    "Straße ΣΊΣΥΦΟΣ été ﬁn ½ x² e\u0301 o\u0323\u0302 漢字かなカナ ไทย हिन्दी العَرَبِيَّة 한국어 ﷺ \u00ad \u200b 😀 a_b "
).encode() + b"\xc3 \xed\xa0\x80 \xf0\x9f "


def _text(random: np.random.Generator, num_bytes: int) -> np.ndarray:
    """UTF-8, and a little that is not: mostly words of ASCII."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_", np.uint8)
    text = letters[random.integers(0, len(letters), min(num_bytes, 1 << 20))]
    text[random.random(len(text)) < 0.17] = ord(" ")
    odd = np.frombuffer(PIECES, np.uint8)
    for at in random.integers(0, max(1, len(text) - len(odd)), len(text) // 1000 + 1).tolist():
        text[at : at + len(odd)] = odd[: len(text) - at]
    return np.resize(text, num_bytes)


def tokens(random: np.random.Generator, size: int) -> tuple:
    """A batch of text."""
    return _text(random, size), _offsets(random, size, 2000), _modulus(random)


def shingles(random: np.random.Generator, size: int) -> tuple:
    """Tokens, and one of the kinds of shingling."""
    kind = str(random.choice(["set", "bag", "circular"]))
    return *_ragged(random, size), int(random.integers(1, 8)), kind, _modulus(random), _modulus(random)


def sequences(random: np.random.Generator, size: int) -> tuple:
    """Tokens."""
    return *_ragged(random, size), np.array([_modulus(random), _modulus(random)])


def minhash(random: np.random.Generator, size: int) -> tuple:
    """Shingles, and some permutations of 32 or 64 bits."""
    kind = (np.uint32, np.uint64)[random.integers(2)]
    a, b = random.integers(0, np.iinfo(kind).max, (2, int(random.choice([31, 84, 130]))), kind, endpoint=True)
    return *_ragged(random, size), a | kind(1), b


def supershingles(random: np.random.Generator, size: int) -> tuple:
    """Signatures of 84 samples."""
    kind = (np.uint32, np.uint64)[random.integers(2)]
    signatures = random.integers(0, np.iinfo(kind).max, (size // 84 + 1, 84), kind, endpoint=True)
    return signatures, 6, 14, int(random.choice([64, 16])), _modulus(random)


def pairtables(random: np.random.Generator, size: int) -> tuple:
    """Features of an eighth as many rows, half of which share some, and a bucket of many."""
    features = random.integers(0, 2**64, (size // 8 + 2, 6), np.uint64)
    copied = random.random(features.shape) < 0.3
    features[copied] = np.roll(features, 1, axis=0)[copied]
    features[: len(features) // 50, 0] = 7
    return features, random.random(len(features)) < 0.95, 2, _modulus(random), 64, 16


def resemblance(random: np.random.Generator, size: int) -> tuple:
    """Pairs of sets, some of one set with itself."""
    values, offsets = _sets(random, size)
    pairs = random.integers(0, max(1, len(offsets) - 1), (2, size // 100 if len(offsets) > 1 else 0))
    pairs[1, ::3] = pairs[0, ::3]
    return values, offsets, pairs[0].copy(), pairs[1].copy()


def unique(random: np.random.Generator, size: int) -> tuple:
    """Shingles with repeats."""
    return _ragged(random, size)


def _pairs(random: np.random.Generator, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two pairs for three rows, most of near neighbours: left < right, sorted, each once."""
    if num_rows < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    left = random.integers(0, num_rows - 1, 2 * num_rows // 3)
    right = np.minimum(num_rows - 1, left + random.geometric(0.2, len(left)))
    packed = np.unique(left[left < right] * num_rows + right[left < right])
    return packed // num_rows, packed % num_rows


def greedy(random: np.random.Generator, size: int) -> tuple:
    """Verified pairs, many of equal weight, and some rows that stay."""
    left, right = _pairs(random, size)
    return size, left, right, random.choice([0.8, 0.9, 1.0], len(left)), random.random(size) < 0.05


def connected(random: np.random.Generator, size: int) -> tuple:
    """Pairs."""
    return size, *_pairs(random, size)


def overlap(random: np.random.Generator, size: int) -> tuple:
    """Shingles, and up to 200 of the documents as a sample."""
    values, offsets = _ragged(random, size)
    rows = np.flatnonzero(np.diff(offsets) < 1000)[:200]
    sets = unique_cpu(*gather_cpu(values, offsets, rows))
    return values, offsets, *invert(*sets), len(rows)


def gather(random: np.random.Generator, size: int) -> tuple:
    """Half of the rows, in any order."""
    values, offsets = _ragged(random, size)
    return values, offsets, random.permutation(len(offsets) - 1)[: len(offsets) // 2]


def gather_cpu(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    """Some rows."""
    from neardup_gpu.kernels import gather as module

    return module.cpu(*arguments)


def _words(random: np.random.Generator, num_values: int) -> np.ndarray:
    """Fingerprints of words, a few of which are most of a text: the n-th as often as 1 / n, of 100,000 different."""
    numbers = np.exp(random.random(num_values) * np.log(100_000)).astype(np.uint64)
    return numbers * np.uint64(0x9E3779B97F4A7C15)


def simhash(random: np.random.Generator, size: int) -> tuple:
    """Tokens, half of the time with weights."""
    values, offsets = _words(random, size), _offsets(random, size, 500)
    weights = logarithmic_cpu(random.geometric(0.3, size)) if random.random() < 0.5 else None
    return values, offsets, weights, int(random.choice([64, 128]))


def counts(random: np.random.Generator, size: int) -> tuple:
    """Tokens with repeats."""
    return _words(random, size), _offsets(random, size, 500)


def occurrences(random: np.random.Generator, size: int) -> tuple:
    """Tokens with repeats, of no rows."""
    return (_words(random, size),)


def logarithmic(random: np.random.Generator, size: int) -> tuple:
    """Counts, most of them small."""
    return (np.exp2(40 * random.random(size) ** 4).astype(np.int64),)


def look_up(random: np.random.Generator, size: int) -> tuple:
    """Tokens, and a table that lacks some."""
    values = _words(random, size)
    table = np.unique(values)
    table = table[random.random(len(table)) < 0.9]
    return values, table, logarithmic_cpu(random.geometric(0.01, len(table))), 256


def _near(random: np.random.Generator, num_rows: int, num_words: int) -> np.ndarray:
    """Fingerprints: a third within 8 bits of another, some repeats, a hundredth that differ in one block only."""
    values = random.integers(0, 2**64, (num_rows, num_words), np.uint64)
    copied = random.random(num_rows) < 1 / 3
    values[copied] = values[random.integers(0, max(1, num_rows), int(copied.sum()))]
    for _ in range(8):
        flipped = copied & (random.random(num_rows) < 0.3)
        column = random.integers(0, num_words, int(flipped.sum()))
        values[flipped, column] ^= np.uint64(1) << random.integers(0, 64, len(column), np.uint64)
    crowd = random.integers(0, max(1, num_rows), num_rows // 100)
    values[crowd] = random.integers(0, 1 << 16, (len(crowd), num_words), np.uint64)
    return values if num_words == 2 else values[:, 0].copy()


def hamming(random: np.random.Generator, size: int) -> tuple:
    """Fingerprints of 64 or 128 bits, and the masks of the cheapest design for all their pairs within 3 bits."""
    num_words = int(random.integers(1, 3))
    design = choose(size, 3, num_queries=size / 2, probe=0, bits=64 * num_words)
    return _near(random, size // num_words, num_words), design.array, 3, 64, 16


def first(random: np.random.Generator, size: int) -> tuple:
    """Fingerprints of 64 or 128 bits."""
    num_words = int(random.integers(1, 3))
    return (_near(random, size // num_words, num_words),)


def table(random: np.random.Generator, size: int) -> tuple:
    """Fingerprints of 64 or 128 bits, and a mask."""
    num_words = int(random.integers(1, 3))
    masks = TableDesign(64 * num_words, 3, 16).array
    return _near(random, size // num_words, num_words), masks[random.integers(len(masks))], bool(random.integers(2))


def probe(random: np.random.Generator, size: int) -> tuple:
    """Tables of a quarter of the bits each, and queries, half of them for what is in the tables."""
    num_words = int(random.integers(1, 3))
    masks = TableDesign(64 * num_words, 3, 16).array
    values = _near(random, size // 8, num_words)
    words, rows = zip(*(table_cpu(values, mask, True) for mask in masks), strict=True)
    queries = np.concatenate([values, _near(random, size // 8, num_words)])
    return np.stack(words), np.stack(rows), masks, queries, 3, 64, 16, None if num_words == 1 else values


def encode(random: np.random.Generator, size: int) -> tuple:
    """Two tables, one of them of random words."""
    return (np.sort(np.stack([_near(random, size // 2, 1), random.integers(0, 2**64, size // 2, np.uint64)]), axis=1),)


def decode(random: np.random.Generator, size: int) -> tuple:
    """All blocks of two tables, in any order."""
    tables = encode_cpu(*encode(random, size))
    return tables.lengths, tables.offsets, tables.blocks, tables.firsts, random.permutation(len(tables.blocks))


def compressed_probe(random: np.random.Generator, size: int) -> tuple:
    """As `probe`, the tables compressed."""
    words, *rest = probe(random, size)
    return *encode_cpu(words), *rest


GENERATORS: dict[str, Callable[[np.random.Generator, int], tuple]] = {
    "tokens": tokens,
    "shingles": shingles,
    "sequences": sequences,
    "minhash": minhash,
    "supershingles": supershingles,
    "pairtables": pairtables,
    "resemblance": resemblance,
    "resemblance.unique": unique,
    "components.greedy": greedy,
    "components.connected": connected,
    "overlap": overlap,
    "gather": gather,
    "simhash": simhash,
    "weights.counts": counts,
    "weights.occurrences": occurrences,
    "weights.logarithmic": logarithmic,
    "weights.look_up": look_up,
    "hamming": hamming,
    "hamming.first": first,
    "hamming.table": table,
    "hamming.probe": probe,
    "compression.encode": encode,
    "compression.decode": decode,
    "compression.probe": compressed_probe,
}
"""The inputs of each kernel."""


def documents(random: np.random.Generator, num_documents: int) -> pa.Table:
    """Texts of 5 to 200 words; half of them are an earlier one, of whose words one in fifty is another."""
    words = [bytes(w).decode() for w in random.integers(97, 123, (3000, 6), np.uint8)] + PIECES.decode(
        errors="ignore"
    ).split()
    texts: list[list[str]] = []
    for number in range(num_documents):
        if number % 2 and texts:
            text = list(texts[random.integers(0, len(texts))])
            for at in np.flatnonzero(random.random(len(text)) < 0.02).tolist():
                text[at] = words[random.integers(0, len(words))]
        else:
            text = [words[i] for i in random.integers(0, len(words), random.integers(5, 200))]
        texts.append(text)
    return pa.table({"text": [" ".join(text) for text in texts]})


# ------------------------------------------------------------------------------------------------------ comparison


def definitions() -> dict[str, tuple[ModuleType, str]]:
    """{kernel: (module, prefix of its functions)}: "minhash", and "resemblance.unique" for `unique_reference`."""
    found = {}
    for info in pkgutil.iter_modules(kernels.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"neardup_gpu.kernels.{info.name}")
            for function in vars(module):
                if function == "reference":
                    found[info.name] = (module, "")
                elif function.endswith("_reference"):
                    prefix = function.removesuffix("reference")
                    found[f"{info.name}.{prefix[:-1]}"] = (module, prefix)
    return found


def same(expected: Any, actual: Any) -> bool:
    """Whether two results agree to the last bit, in type and in shape."""
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, np.ndarray):
        actual = home(actual)
        return expected.dtype == actual.dtype and np.array_equal(expected, actual)
    return type(expected) is type(actual) and expected == actual


def _num_bytes(*values: Any) -> int:
    """Bytes of all arrays among some values."""
    return sum(_num_bytes(*v) if isinstance(v, tuple) else int(getattr(v, "nbytes", 0)) for v in values)


def _timed(run: Callable[[], Any], job: Job) -> tuple[float, Any]:
    """The least of some times in milliseconds, after a first call that compiles; and what was returned."""
    times = []
    for _ in range(REPEATS + 1):
        result = None  # the next one needs the room
        job.wait()
        start = time.perf_counter()
        result = run()
        job.wait()
        times.append(1000 * (time.perf_counter() - start))
    return min(times[1:]), result


def _without(row: dict[str, Any], verdict: str, problem: str) -> dict[str, Any]:
    """The row of a kernel that does not agree."""
    return {**row, "verdict": verdict, "agrees": False, "problem": problem}


def _kernel_row(name: str, definition: tuple[ModuleType, str], seed: int, job: Job) -> dict[str, Any]:
    """What the table says of a kernel."""
    module, prefix = definition
    run = getattr(module, prefix + job.backend)
    row: dict[str, Any] = {"kernel": name, "verdict": AGREES, "agrees": True, "inputs": 0}
    for number, small in enumerate(SMALL[:-1] if simulated() and job.on_gpu else SMALL):
        arguments = GENERATORS[name](np.random.default_rng([seed, number]), small)
        row["inputs"] += 1
        if not same(getattr(module, f"{prefix}reference")(*arguments), run(*arguments)):
            return _without(row, DIFFERS, f"differs from the reference on input {number}")
    if simulated() and job.on_gpu:
        return row
    arguments = GENERATORS[name](np.random.default_rng([seed, len(SMALL)]), 8 * LARGE if name == "tokens" else LARGE)
    placed = [job.put(a) if isinstance(a, np.ndarray) and a.nbytes > 4096 else a for a in arguments]
    milliseconds, result = _timed(partial(run, *placed), job)
    row["inputs"] += job.on_gpu
    if job.on_gpu and not same(getattr(module, f"{prefix}cpu")(*arguments), result):
        return _without(row, DIFFERS, "differs from cpu on the large input")
    moved = _num_bytes(*arguments, result)
    return {
        **row,
        "input_bytes": _num_bytes(*arguments),
        "milliseconds": round(milliseconds, 3),
        "gb_per_s": round(moved / milliseconds / 1e6, 2),
    }


def _whole_row(seed: int, job: Job, options: dict[str, Any]) -> dict[str, Any]:
    """The same of the whole job: a few documents by reference, then more by cpu."""
    on_simulator = simulated() and job.on_gpu
    row: dict[str, Any] = {"kernel": WHOLE, "verdict": AGREES, "agrees": True, "inputs": 1}
    recipe = Recipe(method=MinHash(filter="altavista"))

    def decisions(result: Any) -> tuple:
        return result.documents, result.pairs, result.report["counts"], result.report["limits"]

    few = documents(np.random.default_rng([seed, 0]), 8 if on_simulator else 60)
    expected = dedup(few, recipe=recipe, backend="reference", check=5)
    if decisions(expected) != decisions(dedup(few, recipe=recipe, check=5, **options)):
        return _without(row, DIFFERS, "differs from the reference on a few documents")
    if on_simulator:
        return row
    many = documents(np.random.default_rng([seed, 1]), max(100, LARGE // 400))
    milliseconds, result = _timed(partial(dedup, many, recipe=recipe, **options), job)
    row["inputs"] += job.on_gpu
    if job.on_gpu and decisions(dedup(many, recipe=recipe, backend="cpu")) != decisions(result):
        return _without(row, DIFFERS, "differs from cpu on many documents")
    text = result.report["counts"]["text_bytes"]
    return {
        **row,
        "input_bytes": text,
        "milliseconds": round(milliseconds, 3),
        "gb_per_s": round(text / milliseconds / 1e6, 2),
    }


def run(
    backend: str | None = None,
    *,
    device: int | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Check and time every kernel of a backend, and the whole job.

    A kernel that gives other bits or raises an exception is found and the rest are tested all the same; only those
    after one that left a GPU unusable are not run.

    Parameters
    ----------
    backend : "cpu" or "gpu", optional
        As in `dedup`.
    device : int, optional
        As in `dedup`.
    seed : int, optional
        Of the random inputs; drawn unless given.
    progress : callable, optional
        Called with a kernel's name before it is checked.
    report : callable, optional
        Called with each entry of `kernels` as soon as it is known.

    Returns
    -------
    dict
        backend, device, seed, agrees (whether all do); kernels: a list of dicts of kernel, verdict ("agrees",
        "differs", "failed" or "not run"), agrees, inputs (how many were compared), problem (where it does not agree),
        and, of one large input, input_bytes, milliseconds and gb_per_s (bytes of the arrays that go in and come out; of
        the whole job bytes of text). The large one is left out in the simulator.

    Raises
    ------
    NeardupError
        If the backend is not usable, or is the reference itself.
    """
    seed = secrets.randbits(32) if seed is None else seed
    if seed < 0:
        raise ParameterError(f"seed {seed} is negative")
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"backend": backend, "device": None, "seed": seed, "agrees": False, "kernels": rows}

    def known(row: dict[str, Any]) -> None:
        rows.append(row)
        if report is not None:
            report(row)

    try:
        with Engine(backend=backend, device=device).start() as job:
            if job.backend == "reference":
                raise ParameterError("backend 'reference' is what others are compared with; test cpu or gpu")
            found |= {"backend": job.backend, "device": job.describe()}
            for row in _rows(seed, job, {"backend": job.backend, "device": device}, progress):
                known(row)
    except Exception:
        if all(row["agrees"] for row in rows):
            raise  # else what was found matters more than that the device could not be closed
    found["agrees"] = all(row["agrees"] for row in rows)
    return found


def _rows(
    seed: int, job: Job, options: dict[str, Any], progress: Callable[[str], None] | None
) -> Iterator[dict[str, Any]]:
    """What the table says of each kernel, and of the whole job."""
    broken = None
    for number, (name, definition) in enumerate([*definitions().items(), (WHOLE, None)]):
        if broken is not None:
            yield _without({"kernel": name}, NOT_RUN, broken)
            continue
        if progress is not None:
            progress(name)
        own = seed * 1000 + number
        try:
            yield _whole_row(own, job, options) if definition is None else _kernel_row(name, definition, own, job)
        except Exception as error:  # a kernel that does not run is what is looked for
            yield _without({"kernel": name}, FAILED, _line(error))
        broken = _broken(job, name)


def _broken(job: Job, name: str) -> str | None:
    """Why no more kernels can be run after one, None if they can: after an illegal access a GPU refuses every call of
    the process."""
    try:
        job.wait()
        job.release()
    except Exception as error:
        return f"the GPU takes no more calls since {name} ({_line(error)}); test it in a new process"
    return None


def _line(error: Exception) -> str:
    """An exception as one line."""
    first = str(error).strip().split("\n")[0]
    return shorten(f"{type(error).__name__}: {first}" if first else type(error).__name__, 160)


def header() -> Text:
    """The line above those of `render_row`."""
    return heading(f"{'kernel':22} {'agrees':8} {'input':>10} {'ms':>10} {'GB/s':>8}")


def render_row(row: dict[str, Any]) -> Text:
    """What was found of a kernel, as a line."""
    word = {AGREES: "yes", DIFFERS: "NO", FAILED: "failed", NOT_RUN: "not run"}[row["verdict"]]
    colour = {AGREES: "green", NOT_RUN: "yellow"}.get(row["verdict"], "red")
    rest = row.get("problem", "")
    if "milliseconds" in row:
        rest = f"{size(row['input_bytes']):>10} {row['milliseconds']:>10,.2f} {row['gb_per_s']:>8.2f}"
    return beside(f"{row['kernel']:22} ", (f"{word:8}", colour), f" {rest}".rstrip())


def conclusion(found: dict[str, Any]) -> str:
    """What `run` found, in words."""
    where = "this machine's processors"
    if found["device"] is not None:
        where = found["device"]["name"]
        if "number" in found["device"]:
            where += f", device {found['device']['number']}"
    names: dict[str, list[str]] = {}
    for row in found["kernels"]:
        names.setdefault(row["verdict"], []).append(row["kernel"])
    seed, of_backend = f"(seed {found['seed']})", f"of backend {found['backend']}"
    sentences = []
    if DIFFERS in names:
        sentences.append(
            f"{', '.join(names[DIFFERS])} {of_backend} gave other answers than the reference on {where} {seed}."
        )
    if FAILED in names:
        sentences.append(f"{', '.join(names[FAILED])} {of_backend} failed on {where} {seed}.")
    if sentences:
        sentences.append("Do not trust its results here, and report this.")
        if NOT_RUN in names:
            sentences.append(f"{', '.join(names[NOT_RUN])}: not run, so nothing is known of them.")
        return " ".join(sentences)
    kernels_only = [row for row in found["kernels"] if row["kernel"] != WHOLE]
    checked = sum(row["inputs"] for row in found["kernels"])
    return (
        f"All {len(kernels_only)} kernels {of_backend} and a whole run gave the reference's bits "
        f"on {count(checked, 'random input')} {seed} on {where}."
    )


def render(found: dict[str, Any]) -> Text:
    """What `run` found as a table, and in words, as rich draws it on a terminal."""
    from rich.text import Text

    rows = [render_row(row) for row in found["kernels"]]
    return Text("\n").join([header(), *rows, Text(), beside(conclusion(found))])
