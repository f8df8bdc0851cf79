"""What benchmarks/gpu.py times: each kernel, and inputs for it that do not depend on another kernel's success."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from neardup_gpu import MinHash
from neardup_gpu.definitions import material, polynomial
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.hamming import BUCKET_LIMIT, BUCKET_PROBE, TableDesign
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
    prefixes,
    rarity,
    resemblance,
    runs,
    sequences,
    setjoin,
    sets,
    shingles,
    simhash,
    supershingles,
    tokens,
)
from neardup_gpu.kernels._bounds import least_overlaps
from neardup_gpu.kernels._launch import to_host
from neardup_gpu.methods.minhash import permutations
from neardup_gpu.stages import Ragged
from neardup_gpu.stages.joining import PostingsIndex, SetCollector

from .measure import ALTAVISTA, SEED, WIDTH, num_bytes

SAMPLED_DOCUMENTS = 200  # whose overlap with all others is counted
PREFIXES = (16, 25)  # bits: few tables, and many
THRESHOLD, ASKED = 0.8, 64  # of the exact method: least resemblance, and candidates that are asked for at a time


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
        self.drawn, method = material(SEED), MinHash(filter=ALTAVISTA)
        self.limits = method.bucket_limit, method.bucket_probe

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
        return minhash.cpu(*self.shingles, *permutations(SEED, 84, 32))

    @cached_property
    def keys(self) -> np.ndarray:
        return supershingles.cpu(self.signature, *self.of_supershingles)

    @property
    def of_supershingles(self) -> tuple:
        """Arguments of `supershingles` beside the signatures."""
        return ALTAVISTA.k, ALTAVISTA.s, 64, polynomial(SEED, "supershingles")

    @cached_property
    def sets(self) -> tuple:
        return sets.cpu(*self.shingles)

    def of_tables(self, keys: np.ndarray) -> tuple:
        """Arguments of `pairtables`."""
        return keys, np.ones(len(keys), bool), ALTAVISTA.r, polynomial(SEED, "pair keys"), *self.limits

    @cached_property
    def pairs(self) -> tuple:
        return pairtables.cpu(*self.of_tables(self.keys))

    @property
    def of_resemblance(self) -> tuple:
        """Arguments of `resemblance`."""
        left, right = self.pairs[:2]
        return *self.sets, left, right, np.zeros(len(left), np.int64)

    @cached_property
    def shared(self) -> np.ndarray:
        return resemblance.cpu(*self.of_resemblance)

    @property
    def of_rarity(self) -> tuple:
        """Arguments of `rarity`."""
        values = self.shingles[0]
        return values, max(rarity.FEWEST_BITS, (len(values) - 1).bit_length())

    @cached_property
    def table(self) -> tuple:
        return rarity.cpu(*self.of_rarity)

    @property
    def of_prefixes(self) -> tuple:
        """Arguments of `prefixes`."""
        return *self.shingles, np.arange(len(self.text)), *self.table, THRESHOLD, 1

    @cached_property
    def postings(self) -> tuple:
        return prefixes.cpu(*self.of_prefixes)

    @property
    def of_runs(self) -> tuple:
        """Arguments of `runs`."""
        return *self.postings[:2], len(self.text)

    @cached_property
    def runs(self) -> tuple:
        return runs.cpu(*self.of_runs)

    @property
    def of_setjoin(self) -> tuple:
        """Arguments of `setjoin`: each document is asked for better ones."""
        _, _, sizes, elements = self.postings
        rows, sets = np.arange(len(self.text)), SetCollector(len(self.text), THRESHOLD, 1)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        sets.add(rows, Ragged(elements, ends), HostRuntime("cpu"))
        needed = least_overlaps(2 * int(sizes.max(initial=0)), THRESHOLD)
        index = PostingsIndex.of(self.runs, sets.known(), needed, 1)
        return *index, rows, np.zeros(len(rows), np.int64), rows, ASKED

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
    return of_text(inputs) | of_exact(inputs) | of_simhash(inputs) | of_pairs(inputs) | of_hamming(inputs)


def of_text(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """From text to supershingles."""
    drawn = inputs.drawn

    def sketched(samples: int, bits: int) -> Timed:
        arguments = *inputs.shingles, *permutations(SEED, samples, bits)
        usual = (samples, bits) == (84, 32)
        expected = (lambda: inputs.signature) if usual else (lambda: minhash.cpu(*arguments))
        return Timed(minhash.gpu, arguments, expected, {"shingles": len(inputs.shingles[0])})

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
        "minhash 84 L=32": lambda: sketched(84, 32),
        "supershingles 6 of 14": lambda: Timed(
            supershingles.gpu,
            (inputs.signature, *inputs.of_supershingles),
            lambda: inputs.keys,
        ),
        "sequences": lambda: Timed(
            sequences.gpu,
            (*inputs.tokens[:2], drawn.documents),
            lambda: sequences.cpu(*inputs.tokens[:2], drawn.documents),
            {"tokens": len(inputs.tokens[0])},
        ),
        "minhash 140 L=32": lambda: sketched(140, 32),
        "minhash 84 L=64": lambda: sketched(84, 64),
    }


def of_exact(inputs: Inputs) -> dict[str, Callable[[], Timed]]:
    """From shingles to candidates of the exact method."""

    def postings() -> Timed:
        context = {"shingles": len(inputs.shingles[0]), "posting": len(inputs.postings[0])}
        return Timed(prefixes.gpu, inputs.of_prefixes, lambda: inputs.postings, context)

    def candidates() -> Timed:
        expected = setjoin.cpu(*inputs.of_setjoin)
        context = {"candidates": len(expected[0]), "entry": int(expected[2][:, 0].sum())}
        return Timed(setjoin.gpu, inputs.of_setjoin, lambda: expected, context)

    return {
        "exact: counts": lambda: Timed(
            rarity.gpu, inputs.of_rarity, lambda: inputs.table, {"shingles": len(inputs.shingles[0])}
        ),
        "exact: prefixes": postings,
        "exact: runs": lambda: Timed(
            runs.gpu, inputs.of_runs, lambda: inputs.runs, {"posting": len(inputs.postings[0])}
        ),
        "exact: candidates": candidates,
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
    """From supershingles to decisions."""

    def random_tables() -> Timed:
        random = np.random.default_rng(0).integers(0, 2**64, (inputs.random_rows, ALTAVISTA.k), np.uint64)
        context = {"rows": inputs.random_rows, "tables": ALTAVISTA.tables}
        return Timed(pairtables.gpu, inputs.of_tables(random), None, context, text=False)

    def decided(name: str) -> Timed:
        rows, (left, right, *_) = len(inputs.keys), inputs.pairs
        arguments: tuple = rows, left, right
        if name == "greedy":
            sizes = np.diff(inputs.sets[1])
            found = resemblance.resemblance(inputs.shared, sizes[left] + sizes[right] - inputs.shared)
            arguments = *arguments, found, np.zeros(rows, bool)
        module = greedy if name == "greedy" else components
        return Timed(module.gpu, arguments, lambda: module.cpu(*arguments), {"pairs": len(left)})

    def overlaps() -> Timed:
        few = min(SAMPLED_DOCUMENTS, len(inputs.keys))
        values, offsets = inputs.sets
        sizes = np.diff(offsets)
        arguments = values, offsets, *overlap.invert(values, offsets[: few + 1]), sizes[:few] // 2, sizes
        return Timed(overlap.gpu, arguments, lambda: overlap.cpu(*arguments), {"shingles": len(values)})

    return {
        "unique": lambda: Timed(sets.gpu, inputs.shingles, lambda: inputs.sets, {"shingles": len(inputs.shingles[0])}),
        "pair tables 6,14,2": lambda: Timed(
            pairtables.gpu, inputs.of_tables(inputs.keys), lambda: inputs.pairs, {"rows": len(inputs.keys)}
        ),
        "intersections": lambda: Timed(
            resemblance.gpu, inputs.of_resemblance, lambda: inputs.shared, {"pairs": len(inputs.pairs[0])}
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
