"""How well simhashes find near-duplicates among real documents, and how fast they are made: figures as a JSON list.

    python -m benchmarks.simhash --corpora CORPORA

Truth is the gold beside each corpus: the pairs of exact resemblance (of sets of five words) at or above a level, 0.8
unless said. Documents with equal tokens count once, as `neardup dedup` settles them before it looks at sketches; what
is still at distance 0 has the same weights in another order. All pairs are compared, so that precision and recall are
counted, not estimated.

    precision and recall    of all pairs within k bits, k = 0, 1, ...: true base rates
    equal sampling          the paper's figure 1: as many pairs at each distance from 1 to 10, whatever their number in
                            the corpus; precision of those within k, recall of the true ones in the sample. `exact` is
                            what a sample of any size tends to, `sampled` one sample with its intervals
    best F1                 the greatest harmonic mean of precision and recall over all k, or over all filters
    verified                exact resemblance decides among the candidates: what differs then is recall, and the number
                            of candidates that it takes

Sources: Manku, Jain and Das Sarma 2007, 4.1 and 4.2; Henzinger 2006 (Finding near-duplicate web pages), who compared
384 bits of simhash with six supershingles of 64 bits.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow.parquet as pq

from neardup_gpu import MinHash, Recipe, SimHash, hamming, theory
from neardup_gpu.data import Pairs
from neardup_gpu.definitions import polynomial
from neardup_gpu.kernels import sequences, supershingles
from neardup_gpu.methods.frequencies import FrequencyCounter, counted, occurrences
from neardup_gpu.methods.minhash import Filter
from neardup_gpu.sketches import Frequencies
from neardup_gpu.stages import Ragged, shingle, tokenize, verify

from .measure import Bench, figure, figures_of, load, num_bytes, shuffled, signatures_seconds

CORPORA = ("bills_116", "django_docs", "manpages")
SPEED_CORPUS = "bills_116"
LEVELS = (0.5, 0.8, 0.9)
LEVEL = 0.8
RADII = range(1, 11)  # the paper's
SAMPLED = 400  # pairs at each distance, at most
FAILURE = 0.05  # of an interval
TOKENS = Recipe(method=SimHash(weighting="tf"))
SHINGLES = TOKENS.with_(elements="shingles")
SCHEMES = {
    "tokens, tf": TOKENS,
    "tokens, log": TOKENS.with_(weighting="log"),
    "tokens, tfidf": TOKENS.with_(weighting="tfidf"),
    "shingles, tf": SHINGLES,
    "shingles, log": SHINGLES.with_(weighting="log"),
}
BUCKETS = 128  # figure 2b
DEFAULT, ALTAVISTA = Recipe(method="minhash", threshold=LEVEL).method.filter, Filter(6, 14, 2)
SHAPES = {8: [(4, 16)], 16: [(8, 16)], 48: [(24, 16), (6, 64)]}  # bytes of a sketch: (supershingles, bits of each)
MOST_SAMPLES = 20  # in a supershingle
HENZINGER = 12, 384  # her radius and bits
RECALLS = (0.95, 0.99)  # at which the candidates of a radius are counted


# ----------------------------------------------------------------------------------------------------- text -> sketches


def elements_of(text: Ragged, recipe: Recipe) -> Ragged:
    """Fingerprints of a batch's tokens or shingles, as the method takes them."""
    tokens = tokenize(text, recipe)
    return shingle(tokens, recipe) if recipe.method.elements == "shingles" else tokens


def frequencies(batches: list[Ragged]) -> Frequencies:
    """In how many documents each token occurs."""
    return frequencies_of([counted(elements_of(batch, TOKENS), None)[0] for batch in batches])


def frequencies_of(batches: list[Ragged]) -> Frequencies:
    """Document frequencies of batches of distinct tokens."""
    counter = FrequencyCounter()
    for distinct in batches:
        counter.add(occurrences(distinct, None), int((distinct.sizes > 0).sum()))
    return counter.result(TOKENS.seed)


def counted_simhashes(batches: list[Ragged], recipe: Recipe) -> np.ndarray:
    """As `simhashes` weighted by TF-IDF, document frequencies counted first, as the whole job does it."""
    waiting = [counted(elements_of(batch, recipe), None) for batch in batches]
    table = frequencies_of([distinct for distinct, _ in waiting])
    return np.concatenate([recipe.method.sketch_counted(*batch, table, backend=None) for batch in waiting])


def simhashes(batches: list[Ragged], recipe: Recipe, table: Frequencies | None) -> np.ndarray:
    """Text -> simhashes: uint64, shape (documents, bits / 64)."""
    statistics = table if recipe.method.needs_statistics else None
    found = [
        recipe.method.sketch(elements_of(batch, recipe), seed=recipe.seed, statistics=statistics) for batch in batches
    ]
    return np.concatenate(found).reshape(-1, recipe.method.bits // 64)


def signatures(batches: list[Ragged], samples: int) -> np.ndarray:
    """Text -> min-hash samples: uint32, shape (documents, samples)."""
    method = MinHash(k=samples, s=1)
    return np.concatenate([method.sketch(elements_of(batch, SHINGLES), seed=SHINGLES.seed) for batch in batches])


@numba.njit
def count_bits(x: np.uint64) -> np.uint64:
    """Ones of a word."""
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


# ------------------------------------------------------------------------------------------------------ all pairs


@numba.njit(parallel=True, cache=False)
def all_distances(words: np.ndarray) -> np.ndarray:
    """How many pairs of rows are at each distance, in bits; `words` are uint64, shape (rows, n)."""
    n, num_words = words.shape
    counts = np.zeros((numba.get_num_threads(), 64 * num_words + 1), np.int64)
    for part in numba.prange(len(counts)):
        for i in range(part, n, len(counts)):
            for j in range(i + 1, n):
                distance = np.int64(0)
                for w in range(num_words):
                    distance += np.int64(count_bits(words[i, w] ^ words[j, w]))
                counts[part, distance] += 1
    return counts.sum(axis=0)


@numba.njit(parallel=True, cache=False)
def all_agreements(keys: np.ndarray) -> np.ndarray:
    """How many pairs of rows agree in each number of their k supershingles; shape (k + 1,)."""
    n, k = keys.shape
    counts = np.zeros((numba.get_num_threads(), k + 1), np.int64)
    for part in numba.prange(len(counts)):
        for i in range(part, n, len(counts)):
            for j in range(i + 1, n):
                agree = 0
                for column in range(k):
                    agree += keys[i, column] == keys[j, column]
                counts[part, agree] += 1
    return counts.sum(axis=0)


def within(words: np.ndarray, radius: int) -> Pairs:
    """All pairs of rows within a radius, by comparing all."""
    right = [
        np.flatnonzero(np.bitwise_count(words[i] ^ words[i + 1 :]).sum(axis=1, dtype=np.int64) <= radius) + i + 1
        for i in range(len(words))
    ]
    return Pairs(np.repeat(np.arange(len(words)), [len(row) for row in right]), np.concatenate(right))


# ------------------------------------------------------------------------------------------------------ a corpus


class Corpus(NamedTuple):
    """Documents of different token sequences, and the gold pairs among them.

    batches : list of Ragged
        All of the text.
    rows : array of int64
        The first document of each token sequence.
    left, right, resemblance : arrays
        Gold pairs, as places in `rows`.
    """

    name: str
    batches: list[Ragged]
    rows: np.ndarray
    left: np.ndarray
    right: np.ndarray
    resemblance: np.ndarray

    def is_true(self, level: float) -> np.ndarray:
        return self.resemblance >= level


def read(path: Path) -> Corpus:
    """A corpus and its gold."""
    table = pq.read_table(path, columns=["id", "text"])
    batches = load(table)
    found = [elements_of(batch, TOKENS) for batch in batches]
    marks = np.concatenate([sequences.cpu(part.values, part.offsets, TOKENS.material.documents) for part in found])
    first = np.sort(np.unique(marks, axis=0, return_index=True)[1])
    rows = first[np.concatenate([part.sizes for part in found])[first] > 0]
    place = {name: i for i, name in enumerate(table["id"].take(rows).to_pylist())}
    gold = pq.read_table(path.with_name(f"{path.stem}.gold.parquet")).to_pydict()
    known = [
        (place[a], place[b], r)
        for a, b, r in zip(gold["id_a"], gold["id_b"], gold["jaccard"], strict=True)
        if a in place and b in place
    ]
    left, right, resemblance = (np.array(column) for column in zip(*known, strict=True))
    return Corpus(path.stem, batches, rows, left, right, resemblance)


class Curve(NamedTuple):
    """How many pairs, and how many true ones, a rule finds at each of its settings, the strictest first."""

    pairs: np.ndarray
    true: np.ndarray
    all_true: int

    @property
    def precision(self) -> np.ndarray:
        return self.true / np.maximum(self.pairs, 1)

    @property
    def recall(self) -> np.ndarray:
        return self.true / self.all_true

    @property
    def f1(self) -> np.ndarray:
        return 2 * self.true / (self.pairs + self.all_true)


def distance_curves(words: np.ndarray, corpus: Corpus) -> dict[float, Curve]:
    """The curve of all radii from 0 on, for each level of truth."""
    every = np.cumsum(all_distances(words))
    gold = np.bitwise_count(words[corpus.left] ^ words[corpus.right]).sum(axis=1, dtype=np.int64)
    return {level: _curve(every, gold, corpus.is_true(level)) for level in LEVELS}


def agreement_curve(keys: np.ndarray, corpus: Corpus, level: float = LEVEL) -> Curve:
    """The curve of r = k, k - 1, ..., 1."""
    k = keys.shape[1]
    every = np.cumsum(all_agreements(keys)[::-1])[:-1]
    missed = k - (keys[corpus.left] == keys[corpus.right]).sum(axis=1)
    return _curve(every, missed, corpus.is_true(level))


def _curve(every: np.ndarray, gold: np.ndarray, is_true: np.ndarray) -> Curve:
    true = np.cumsum(np.bincount(gold[is_true], minlength=len(every)))[: len(every)]
    return Curve(every, true, int(is_true.sum()))


def _each(candidates: int, true: int) -> float:
    return round(float(candidates) / true, 2)


def rounded(values: Any) -> list[float]:
    """Four digits, for the JSON."""
    return [float(f"{value:.4g}") for value in values]


def share(what: str, value: float, **context: Any) -> dict[str, Any]:
    """A figure that was counted once."""
    return figure(what, [float(value)], "share", **context)


# ------------------------------------------------------------------------------------------------------ figure 1


def equal_sampling(curve: Curve, rng: np.random.Generator) -> dict[str, Any]:
    """The paper's figure 1: as many pairs at each distance from 1 to 10.

    Drawing m of the N pairs at a distance, T of them true, is drawing from a hypergeometric distribution: no pair need
    be looked at. The intervals hold each by themselves, with probability 1 - FAILURE (`theory.mean_interval`, which
    allows for strata of different means, without replacement); recall's joins one for what is within k and one for what
    is beyond, FAILURE / 2 each.
    """
    pairs, true = np.diff(curve.pairs)[: len(RADII)], np.diff(curve.true)[: len(RADII)]
    size = int(min(SAMPLED, pairs.min()))
    exact = true / np.maximum(pairs, 1)
    drawn = rng.hypergeometric(true, pairs - true, size) if size else np.zeros(len(RADII), np.int64)
    k, found = np.array(RADII), np.cumsum(drawn)
    result: dict[str, Any] = {
        "k": list(RADII),
        "pairs_at_each_distance": size,
        "exact_precision": rounded(np.cumsum(exact) / k),
        "exact_recall": rounded(np.cumsum(exact) / exact.sum()),
    }
    if size and found[-1]:
        last = len(RADII)
        precision = [
            theory.mean_interval(hits / (size * i), size * i, FAILURE) for i, hits in zip(k, found, strict=True)
        ]
        recall = []
        for i, hits in zip(k, found, strict=True):
            inside = theory.mean_interval(hits / (size * i), size * i, FAILURE / 2)
            rest = size * (last - i)
            beyond = theory.mean_interval((found[-1] - hits) / rest if rest else 0.0, rest, FAILURE / 2)
            low, high = (i * inside[0], (last - i) * beyond[1]), (i * inside[1], (last - i) * beyond[0])
            recall.append((low[0] / sum(low) if sum(low) else 0.0, high[0] / sum(high)))
        result |= {
            "sampled_precision": rounded(found / (size * k)),
            "sampled_recall": rounded(found / found[-1]),
            "precision_intervals": [rounded(interval) for interval in precision],
            "recall_intervals": [rounded(interval) for interval in recall],
        }
    return result


def curve_figures(corpus: Corpus, name: str, bits: int, curves: dict[float, Curve]) -> list[dict]:
    """True base rates against k, the best k, and the paper's way of counting."""
    figures, context = [], {"corpus": corpus.name, "documents": len(corpus.rows)}
    step = bits // 64 if bits <= 128 else 4  # proportional radii
    shown = np.arange(0, 10 * step + 1, step)
    for level, curve in curves.items():
        best = int(np.argmax(curve.f1))
        known = {
            **context,
            "truth": level,
            "true_pairs": curve.all_true,
            "k": shown.tolist(),
            "pairs": curve.pairs[shown].tolist(),
            "precision": rounded(curve.precision[shown]),
            "recall": rounded(curve.recall[shown]),
        }
        for recall in RECALLS:
            k = int(np.searchsorted(curve.recall, recall))
            known[f"recall_{recall}"] = {"k": k, "candidates_for_each_true_pair": _each(curve.pairs[k], curve.all_true)}
        figures.append(share(f"best F1, {name}", curve.f1[best], best_k=best, **known))
    return figures


# ---------------------------------------------------------------------------------------------------- figures 2a and 2b


def expected_positions(n: int) -> np.ndarray:
    """Of n random words, sorted: the expected number of neighbours whose xor has its leading 1 at each bit, 63 first.

    They part at bit 63 - j exactly where a prefix of j bits has words in both of its halves: for each of 2**j prefixes
    with probability 1 - 2 (1 - h)**n + (1 - 2 h)**n, h = 2**-(j + 1), computed without cancellation as
    (1 - (1 - h)**n)**2 - (1 - h)**(2 n) (1 - (1 - (h / (1 - h))**2)**n).
    """
    h = 0.5 ** np.arange(1, 65)
    with np.errstate(divide="ignore"):
        neither = np.exp(2 * n * np.log1p(-h)) * -np.expm1(n * np.log1p(-((h / (1 - h)) ** 2)))
    return 2.0 ** np.arange(64) * (np.expm1(n * np.log1p(-h)) ** 2 - neither)


def distribution(corpus: Corpus, words: np.ndarray, name: str) -> list[dict]:
    """Figures 2a and 2b of one set of simhashes, repeats dropped for the first."""
    context = {"corpus": corpus.name, "fingerprints": len(words)}
    ordered = np.unique(words)
    differ = ordered[1:] ^ ordered[:-1]
    positions = np.frexp(differ.astype(np.float64))[1] - 1
    positions -= differ < np.uint64(1) << positions.astype(np.uint64)  # a float may have been rounded up
    counts = np.bincount(positions, minlength=64)[::-1]
    expected = expected_positions(len(ordered))
    bit = 63 - int(np.searchsorted(np.cumsum(expected), 0.999 * expected.sum()))
    below = counts[64 - bit :].sum() / counts.sum()
    buckets = np.bincount((words >> np.uint64(57)).astype(np.int64), minlength=BUCKETS)
    mean = len(words) / BUCKETS
    spread = float(((buckets - mean) ** 2 / mean).sum() / (BUCKETS - 1))
    positions_known = {
        "positions_63_to_0": rounded(counts / counts.sum()),
        "random": rounded(expected / expected.sum()),
    }
    return [
        share(
            f"figure 2a: xors of neighbours that lead so low as 0.001 of random ones do, {name}",
            below,
            below_bit=bit,
            distinct=len(ordered),
            **context,
            **positions_known,
        ),
        figure(
            f"figure 2b: variance of {BUCKETS} buckets over that of random ones, {name}",
            [spread],
            "ratio",
            fullest=int(buckets.max()),
            emptiest=int(buckets.min()),
            mean=round(mean, 1),
            fractions=rounded(buckets / len(words)),
            **context,
        ),
    ]


# ------------------------------------------------------------------------------------------------------ supershingles


def keys_of(minima: np.ndarray, k: int, s: int, bits: int) -> np.ndarray:
    """Supershingles of the first k * s samples."""
    modulus = polynomial(TOKENS.seed, "supershingles")
    return supershingles.cpu(np.ascontiguousarray(minima[:, : k * s]), k, s, bits, modulus)


def best_filters(corpus: Corpus, minima: np.ndarray) -> list[dict]:
    """For each number of bytes, the filter of the best F1: every s and r of the shapes that fit, unverified."""
    found = []
    for size, shapes in SHAPES.items():
        best = (-1.0, None, None)
        for (k, bits), s in itertools.product(shapes, range(1, MOST_SAMPLES + 1)):
            curve = agreement_curve(keys_of(minima, k, s, bits), corpus)
            at = int(np.argmax(curve.f1))
            if curve.f1[at] > best[0]:
                best = (float(curve.f1[at]), (k, s, k - at, bits), (curve.precision[at], curve.recall[at]))
        value, shape, rates = best
        k, s, r, bits = shape
        found.append(
            share(
                f"best F1, supershingles of {size} bytes",
                value,
                corpus=corpus.name,
                truth=LEVEL,
                filter=f"{k},{s},{r}",
                supershingle_bits=bits,
                precision=rounded(rates)[0],
                recall=rounded(rates)[1],
            )
        )
    return found


def candidates_of(minima: np.ndarray, filter_: Filter) -> Pairs:
    """Candidate pairs of a filter, nothing left out."""
    method = MinHash(filter=filter_, bucket_limit=2**31 - 1)
    return method.collide(keys_of(minima, *filter_[:2], 64), seed=TOKENS.seed).pairs


def verified(corpus: Corpus, sets: Ragged, found: dict[str, Pairs]) -> list[dict]:
    """Both kinds of candidates before and after their exact resemblance is computed."""
    n, figures = len(corpus.rows), []
    is_true = corpus.is_true(LEVEL)
    wanted = np.minimum(corpus.left, corpus.right)[is_true] * n + np.maximum(corpus.left, corpus.right)[is_true]
    for name, pairs in found.items():
        context = {"corpus": corpus.name, "truth": LEVEL, "candidates": len(pairs.left)}
        context["candidates_for_each_true_pair"] = _each(len(pairs.left), len(wanted))
        passed = verify(sets, pairs, LEVEL).pairs
        for stage, ends in (("unverified", pairs), ("verified", passed)):
            hits = np.isin(wanted, ends.left * n + ends.right).sum()
            rates = {
                "precision": rounded([hits / max(1, len(ends.left))])[0],
                "recall": rounded([hits / len(wanted)])[0],
            }
            figures.append(share(f"F1, {name}, {stage}", 2 * hits / (len(ends.left) + len(wanted)), **rates, **context))
    return figures


# ------------------------------------------------------------------------------------------------------ the parts


def quality(path: Path) -> list[dict]:
    """All figures of precision and recall of one corpus."""
    corpus = read(path)
    figures = [
        figure(
            "documents with tokens of their own",
            [len(corpus.rows)],
            "documents",
            corpus=corpus.name,
            of=sum(map(len, corpus.batches)),
            true_pairs={str(level): int(corpus.is_true(level).sum()) for level in LEVELS},
        )
    ]
    rng, table = np.random.default_rng(TOKENS.seed), frequencies(corpus.batches)
    candidates: dict[str, Pairs] = {}
    for scheme, recipe in SCHEMES.items():
        for bits in (64, 128):
            name = f"simhash of {scheme}, {bits} bits"
            words = simhashes(corpus.batches, recipe.with_(bits=bits), table)[corpus.rows]
            curves = distance_curves(words, corpus)
            figures += curve_figures(corpus, name, bits, curves)
            if bits == 64:
                for level, curve in curves.items():
                    sample = equal_sampling(curve, rng)
                    precision = sample["exact_precision"][2]
                    figures.append(
                        share(
                            f"figure 1, equal sampling: precision at k = 3, {name}",
                            precision,
                            corpus=corpus.name,
                            truth=level,
                            **sample,
                        )
                    )
                figures += distribution(corpus, words[:, 0], name)
                candidates[f"{name}, k = 3"] = check(words, 3)
    recipes = [TOKENS.with_(bits=128, seed=seed) for seed in (1, 2, 3)]
    wide = np.concatenate([simhashes(corpus.batches, recipe, None) for recipe in recipes], axis=1)
    curves = distance_curves(wide[corpus.rows], corpus)
    figures += curve_figures(corpus, "simhash of tokens, tf, 384 bits", 384, curves)
    radius, bits = HENZINGER
    candidates[f"simhash of tokens, tf, {bits} bits, k = {radius}"] = within(wide[corpus.rows], radius)
    minima = signatures(corpus.batches, max(max(k for k, _ in s) for s in SHAPES.values()) * MOST_SAMPLES)[corpus.rows]
    figures += best_filters(corpus, minima)
    for filter_ in (DEFAULT, ALTAVISTA):
        candidates[f"supershingles {filter_}"] = candidates_of(minima, filter_)
    every = [part[i] for batch in corpus.batches for part in [elements_of(batch, SHINGLES)] for i in range(len(part))]
    return figures + verified(corpus, Ragged.from_rows([every[row] for row in corpus.rows], np.uint64), candidates)


def check(words: np.ndarray, radius: int) -> Pairs:
    """All pairs within a radius, by comparing all; the tables have to find the same."""
    every = within(words, radius)
    found = hamming.pairs(words[:, 0], radius, bucket_limit=2**31 - 1, collapse=False)
    assert np.array_equal(every.left, found.left) and np.array_equal(every.right, found.right), "tables"
    return every


def speed(path: Path, repeat: int) -> list[dict]:
    """Text in memory -> simhashes, beside text -> signatures of the default filter, by turns."""
    batches = load(shuffled(path))
    size, table = num_bytes(batches), frequencies(batches)
    recipes = {
        f"simhashes, {scheme}, {bits} bits": r.with_(bits=bits) for scheme, r in SCHEMES.items() for bits in (64, 128)
    }
    runs: dict[str, Callable[[], Any]] = {
        name: lambda recipe=recipe: simhashes(batches, recipe, table) for name, recipe in recipes.items()
    }
    tfidf = SCHEMES["tokens, tfidf"]
    runs["simhashes, tokens, tfidf, 64 bits, document frequencies counted too"] = lambda: counted_simhashes(
        batches, tfidf
    )
    context = {"corpus": path.stem, "text_bytes": size, "threads": numba.get_num_threads()}
    runs = {f"signatures, {DEFAULT.samples} samples": lambda: signatures_seconds(batches, DEFAULT.samples), **runs}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(repeat + 1):  # the first is dropped
        for name, run in runs.items():
            start, busy = time.perf_counter(), time.process_time()
            run()
            taken[name].append((time.perf_counter() - start, time.process_time() - busy))
    figures, theirs = [], next(iter(taken.values()))[1:]
    for name, seconds in ((name, all_seconds[1:]) for name, all_seconds in taken.items()):
        cpu = round(size / statistics.median(busy for _, busy in seconds) / 1e6, 1)
        rates = [size / wall / 1e6 for wall, _ in seconds]
        figures.append(figure(f"text to {name}", rates, "MB/s", mb_a_cpu_second=cpu, **context))
        if seconds != theirs:
            ratios, of_cpu = ([a[i] / b[i] for a, b in zip(theirs, seconds, strict=True)] for i in (0, 1))
            known = {"of_cpu_seconds": float(f"{statistics.median(of_cpu):.4g}"), **context}
            figures.append(figure(f"speed over that of signatures, {name}", ratios, "ratio", **known))
    return figures


def part(bench: Bench) -> list[dict]:
    """Precision and recall of simhashes on real documents, beside supershingles; text to simhashes."""
    for name in CORPORA:
        bench.corpus(name)
    figures = figures_of("simhash", "--corpora", bench.corpora, "--repeat", bench.repeat)
    for row in figures:
        if row["what"].startswith("speed over that of signatures") and "64 bits" in row["what"]:
            bench.target(f"simhash, {row['what']}", row["median"], 0.5, least=True)
    return figures


def main() -> None:
    """Read the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpora",
        type=Path,
        default=Path(os.environ.get("NEARDUP_CORPORA", "corpora")),
        help="folder of NAME.parquet and NAME.gold.parquet; NEARDUP_CORPORA unless given",
    )
    parser.add_argument("--names", default=",".join(CORPORA), help="corpora divided by commas")
    parser.add_argument("--speed", default=SPEED_CORPUS, help="the corpus that is timed")
    parser.add_argument("--repeat", type=int, default=5, help="runs of what is timed, after one that is dropped")
    args = parser.parse_args()
    figures = []
    for name in args.names.split(","):
        figures += quality(args.corpora / f"{name}.parquet")
    figures += speed(args.corpora / f"{args.speed}.parquet", args.repeat)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
