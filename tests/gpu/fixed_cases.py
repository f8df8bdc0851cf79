"""One large fixed case or more for each kernel, and the answer.

The answer is `reference`'s where that takes a second or less, else `cpu`'s, which agrees with `reference` in
tests/test_agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import kernel_list
import numpy as np
from strategies import CHARACTERS
from test_agreement import DEFINITIONS

from neardup_gpu.kernels import compression
from neardup_gpu.kernels.hamming import table_cpu
from neardup_gpu.kernels.overlap import invert
from neardup_gpu.kernels.resemblance import unique_cpu

MODULI = np.array([0xD800000000000000, 0x9C6A5B8D2F1E4371, 0x83B1E57A9D04C2F5], np.uint64)
BY_REFERENCE = {"components.greedy", "components.connected"}


def generator(*key: int) -> np.random.Generator:
    return np.random.default_rng([20, *key])


def ragged(num_rows: int, mean: int, giant: int = 0, alphabet: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(values, offsets): rows of 0 to 2 `mean` values, one of `giant`; only `alphabet` different ones, if not 0."""
    random = generator(num_rows, mean, giant, alphabet)
    sizes = random.integers(0, 2 * mean + 1, num_rows)
    if giant:
        sizes[num_rows // 2] = giant
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    values = random.integers(0, 2**64, offsets[-1], np.uint64)
    if alphabet:
        values = values[random.integers(0, alphabet, len(values))]
    return values, offsets


def tokens():
    random = generator(1)
    characters = [character.encode() for character in CHARACTERS]
    words = [bytes(random.choice([*b"abcdefghijklmnopqrstuvwxyz"], n)) for n in random.integers(1, 12, 300)]
    texts = []
    for _ in range(2000):
        pieces = [words[i] + b" " for i in random.integers(0, len(words), random.integers(0, 20))]
        pieces += [characters[i] for i in random.integers(0, len(characters), random.integers(0, 15))]
        random.shuffle(pieces)
        texts.append(b"".join(pieces))
    texts[700] = b"".join(texts[:300])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(text) for text in texts])])
    return np.frombuffer(b"".join(texts), np.uint8), offsets, MODULI[0]


def shingles(mode):
    return *ragged(5000, 15, giant=20_000, alphabet=40_000), 5, mode, MODULI[0], MODULI[1]


def sequences():
    return *ragged(10_000, 15, giant=100_000), MODULI[:2]


def minhash(dtype, samples):
    values, offsets = ragged(10_000, 20, giant=20_000)
    a, b = generator(2, samples).integers(0, np.iinfo(dtype).max, (2, samples), dtype, endpoint=True)
    return values, offsets, a | dtype(1), b


def supershingles(dtype, bits):
    signatures = generator(3).integers(0, np.iinfo(dtype).max, (10_000, 84), dtype, endpoint=True)
    return signatures, 6, 14, bits, MODULI[1]


def pairtables(k, r, limit):
    random = generator(4, k)
    features = random.integers(0, 2**64, (3000, k), np.uint64)
    copies = random.integers(0, 3000, 6000)
    features = np.concatenate([features, features[copies]])
    changed = random.random(features.shape) < 0.2
    features[changed] = random.integers(0, 50, np.count_nonzero(changed), np.uint64)
    return features, random.random(len(features)) < 0.95, r, MODULI[2], limit, 3


def resemblance():
    values, offsets = unique_cpu(*ragged(1000, 50, giant=5000, alphabet=3000))
    left, right = generator(5).integers(0, 1000, (2, 3000))
    return values, offsets, left, right


def simhash(weighted, bits):
    values, offsets = ragged(5000, 20, giant=30_000, alphabet=50_000)
    weights = generator(9).integers(0, 2**47, len(values)) if weighted else None
    return values, offsets, weights, bits


def look_up(size):
    values = ragged(1000, 20)[0]
    table = np.unique(values[::2])[:size]
    return values, table, generator(10).integers(0, 2**40, len(table)), 256


def pairs(num_rows, num_pairs):
    left, right = np.sort(generator(6).integers(0, num_rows, (2, num_pairs)), axis=0)
    distinct = np.unique(np.stack([left, right])[:, left < right], axis=1)
    return num_rows, *distinct.copy()


def greedy():
    num_rows, left, right = pairs(20_000, 40_000)
    weight = generator(7).choice([0.8, 0.85, 0.9, 1.0], len(left))
    return num_rows, left, right, weight, generator(8).random(num_rows) < 0.01


def path():
    """Each row has a pair with the next: what takes most rounds."""
    rows = np.arange(999)
    return 1000, rows, rows + 1, np.ones(999), np.zeros(1000, bool)


def overlap():
    values, offsets = ragged(2000, 50, alphabet=20_000)
    keys, key_offsets = unique_cpu(values[: offsets[200]], offsets[:201])
    return values, offsets, *invert(keys, key_offsets), 200


def gather():
    return *ragged(10_000, 20, giant=20_000), generator(9).integers(0, 10_000, 8000)


def near(num_rows, num_words=1):
    """Random fingerprints, twice as many near them, and a crowd of repeats and of those that differ in one block."""
    random = generator(9)
    values = random.integers(0, 2**64, (num_rows, num_words), np.uint64)
    values = np.concatenate([values, values[random.integers(0, num_rows, 2 * num_rows)]])
    for flipped in np.uint64(1) << random.integers(0, 64, (4, *values.shape), np.uint64):
        values ^= np.where(random.random(values.shape) < 0.4 / num_words, flipped, np.uint64(0))
    crowd = random.integers(0, 1000, (num_rows // 4, num_words), np.uint64) << np.uint64(20)
    values = random.permutation(np.concatenate([values, crowd]))
    return values if num_words == 2 else values[:, 0].copy()


QUARTERS = {
    1: np.uint64(0xFFFF << 48) >> np.arange(0, 64, 16, dtype=np.uint64),
    2: np.array([[0xFFFFFFFF << 32, 0], [0xFFFFFFFF, 0], [0, 0xFFFFFFFF << 32], [0, 0xFFFFFFFF]], np.uint64),
}
"""Masks of a quarter of the bits each, of fingerprints of one word and two."""


def hamming(num_words, limit):
    return near(2000, num_words), QUARTERS[num_words], 3, limit, 8


def hamming_table(num_words, whole):
    return near(3000, num_words), QUARTERS[num_words][1], whole


def hamming_probe(num_words, limit):
    values = near(2000, num_words)
    tables = [table_cpu(values, mask, True) for mask in QUARTERS[num_words]]
    words, rows = (np.stack([table[part] for table in tables]) for part in (0, 1))
    queries = near(1000, num_words)
    return words, rows, QUARTERS[num_words], queries, 3, limit, 8, None if num_words == 1 else values


def sorted_tables():
    """A crowded table, a random one, and one of equal words, which fill their blocks to the bit."""
    words = np.sort(np.stack([near(9000), generator(12).integers(0, 2**64, 29_250, np.uint64)]), axis=1)
    return np.concatenate([words, np.full((1, words.shape[1]), 2**64 - 1, np.uint64)])


def some_blocks():
    tables = compression.encode_cpu(sorted_tables())
    return *tables[:3], tables.firsts, generator(13).permutation(len(tables.blocks))[:100]


def compressed_probe(num_words, limit):
    words, *rest = hamming_probe(num_words, limit)
    return *compression.encode_cpu(words), *rest


FIXED: dict[str, list[Callable[[], tuple]]] = {
    "tokens": [tokens],
    "shingles": [partial(shingles, mode) for mode in ("set", "bag", "circular")],
    "sequences": [sequences],
    "minhash": [
        partial(minhash, np.dtype(f"uint{bits}").type, 32 * per_lane - 12)
        for bits, per_lane in kernel_list.FACTORIES["minhash._signature_kernel"]
    ],
    "supershingles": [partial(supershingles, dtype, bits) for dtype, bits in ((np.uint32, 64), (np.uint64, 16))],
    "pairtables": [partial(pairtables, 6, 2, 50), partial(pairtables, 5, 4, 10_000)],
    "resemblance.unique": [partial(ragged, 10_000, 20, giant=20_000, alphabet=50_000)],
    "resemblance": [resemblance],
    "hamming": [partial(hamming, words, limit) for words in (1, 2) for limit in (100, 10**6)],
    "hamming.first": [partial(lambda words: (near(3000, words),), words) for words in (1, 2)],
    "hamming.table": [partial(hamming_table, words, whole) for words in (1, 2) for whole in (False, True)],
    "hamming.probe": [partial(hamming_probe, words, limit) for words in (1, 2) for limit in (100, 10**6)],
    "compression.encode": [lambda: (sorted_tables(),)],
    "compression.decode": [some_blocks],
    "compression.probe": [partial(compressed_probe, words, limit) for words in (1, 2) for limit in (100, 10**6)],
    "components.greedy": [greedy, path],
    "components.connected": [partial(pairs, 20_000, 15_000)],
    "gather": [gather],
    "overlap": [overlap],
    "simhash": [partial(simhash, False, 64), partial(simhash, True, 128)],
    "weights.counts": [partial(ragged, 5000, 20, giant=20_000, alphabet=2000)],
    "weights.occurrences": [lambda: ragged(5000, 20, alphabet=2000)[:1]],
    "weights.logarithmic": [lambda: (generator(11).integers(1, 2**40, 1000),)],
    "weights.look_up": [partial(look_up, None), partial(look_up, 0)],
}
"""The fixed cases of each definition."""


@cache
def expected(kernel: str, number: int) -> Any:
    """The answer to a fixed case."""
    module, prefix = DEFINITIONS[kernel]
    function = getattr(module, prefix + ("reference" if kernel in BY_REFERENCE else "cpu"))
    return function(*FIXED[kernel][number]())
