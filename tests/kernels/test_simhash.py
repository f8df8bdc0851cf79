"""Simhashes and weights against plain Python, published numbers and exact probabilities.

Features are random 64-bit integers and mix64 is a permutation, so that all bits of their hashes are independent and
even, and each bit of each pair of documents is one trial: bounds are Hoeffding's, exceeded with probability 1e-9.
"""

import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
from grids import some

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import counts, log_weights, lookup, occurrences, simhash as kernel

FAILURE = 1e-9
ALL = 2**64 - 1
FUNCTIONS = [kernel.reference, kernel.cpu]


def hoeffding(trials, failure=FAILURE):
    """Deviation of a mean of `trials` independent values in [0, 1] exceeded with probability at most `failure`."""
    return math.sqrt(math.log(2 / failure) / (2 * trials))


def feature_of(hashed):
    """The feature whose mix64 is `hashed`: each step undone."""

    def unshift(z, by):
        found = z
        for _ in range(64 // by):
            found = z ^ found >> by
        return found

    z = unshift(hashed, 31)
    z = unshift(z * pow(0x94D049BB133111EB, -1, 2**64) & ALL, 27)
    return unshift(z * pow(0xBF58476D1CE4E5B9, -1, 2**64) & ALL, 30)


def simhash(rows, weights=None, bits=64, function=kernel.cpu):
    """Simhashes of lists of features, as a list."""
    ragged = Ragged.from_rows(rows, np.uint64)
    if weights is not None:
        weights = np.array([weight for row in weights for weight in row], np.int64)
    return function(ragged.values, ragged.offsets, weights, bits).tolist()


def mixed(z):
    """SplitMix64's finaliser, of a Python integer modulo 2**64."""
    z &= ALL
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & ALL
    z = (z ^ z >> 27) * 0x94D049BB133111EB & ALL
    return z ^ z >> 31


def tie_of(hashes):
    """The word that decides the tied bits of a document with features of these hashes."""
    return mixed(min(mixed(h + 0x9E3779B97F4A7C15) for h in hashes))


def majority(hashes, weights):
    """The definition, of hashes as they are: character by character."""
    columns = zip(*(f"{h:064b}" for h in hashes), strict=True)
    votes = (sum(w if bit == "1" else -w for bit, w in zip(column, weights, strict=True)) for column in columns)
    ties = f"{tie_of(hashes):064b}"
    bits = (tie if vote == 0 else "1" if vote > 0 else "0" for vote, tie in zip(votes, ties, strict=True))
    return int("".join(bits), 2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_published_hashes(function):
    """One feature: its hash. Of 128 bits, SplitMix64's outputs from the seed 1234567, as Rosetta Code prints them."""
    step = 0x9E3779B97F4A7C15
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    for i in range(3):
        feature = (1234567 + (i + 1) * step) % 2**64
        assert simhash([[feature], [feature] * 5], bits=128, function=function) == [published[i : i + 2]] * 2
        assert simhash([[feature]], function=function) == [published[i]]
        assert feature_of(published[i]) == feature


@pytest.mark.parametrize("function", FUNCTIONS)
def test_by_hand(function):
    """Hashes 0011, 0101 and 1001 in every 4 bits: all have the last, each other one belongs to one of them."""
    hashes = [int(16 * digit, 16) for digit in "359"]
    row = [feature_of(h) for h in hashes]
    digits = {(1, 1, 1): "1", (3, 1, 1): "3", (1, 3, 1): "5", (1, 1, 3): "9", (4, 2, 1): "3", (1, 2, 4): "9"}
    for given, digit in digits.items():
        assert simhash([row], [given], function=function) == [int(16 * digit, 16)]
    assert simhash([row, row[:1] * 3 + row[1:]], function=function) == [int(16 * digit, 16) for digit in "13"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_plain_python(function):
    """Random features with repeats, weighted and not, in rows of 0 to 30."""
    generator = np.random.default_rng(1)
    hashes = [[int(h) for h in generator.integers(0, 2**64, n, np.uint64)] for n in range(31)]
    hashes = [row + row[: len(row) // 2] for row in hashes]
    rows = [[feature_of(h) for h in row] for row in hashes]
    given = [[int(w) for w in generator.integers(0, 4, len(row))] for row in rows]
    expected = [majority(row, w) if row else 0 for row, w in zip(hashes, given, strict=True)]
    assert simhash(rows, given, function=function) == expected
    expected = [majority(row, [1] * len(row)) if row else 0 for row in hashes]
    assert simhash(rows, function=function) == expected


def test_long_documents():
    """Around the blocks of 120 and the chunks of 1,920 that `cpu` works in; counted by NumPy."""
    generator = np.random.default_rng(2)
    sizes = [119, 120, 121, 239, 1919, 1920, 1921, 1920 + 120, 3 * 1920, 100_000]
    hashes = [generator.integers(0, 2**64, size, np.uint64) for size in sizes]
    hashes[-1][1:] |= np.uint64(2**32)  # one bit in all but one, which 8 or 16 bits would not count
    expected = []
    for row in hashes:
        ones = np.array([np.count_nonzero(row >> np.uint64(i) & np.uint64(1)) for i in range(64)])
        tied = sum(1 << i for i in range(64) if 2 * ones[i] == len(row))
        expected.append(sum(1 << i for i in range(64) if 2 * ones[i] > len(row)) | tied & tie_of(row.tolist()))
    rows = [[feature_of(h) for h in row.tolist()] for row in hashes]
    assert simhash(rows) == expected
    assert simhash(rows, [[7] * len(row) for row in rows]) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
def test_ties_are_decided_by_one_feature(function):
    """A hash and its complement: every counter is 0. A third feature then decides all bits."""
    h = 0x0123456789ABCDEF
    tie = tie_of([h, h ^ ALL])
    row = [feature_of(h), feature_of(h ^ ALL)]
    assert simhash([row, row * 2, row[::-1]], function=function) == [tie] * 3
    assert simhash([row] * 3, [(5, 5), (6, 5), (5, 6)], function=function) == [tie, h, h ^ ALL]
    assert simhash([[*row, feature_of(ALL)]], function=function) == [ALL]
    assert simhash([row], [(0, 0)], function=function) == [tie]
    half = [feature_of(h), feature_of(h ^ 0xFFFFFFFF)]  # ties in the lower bits only
    tie = tie_of([h, h ^ 0xFFFFFFFF])
    assert simhash([half], function=function) == [h >> 32 << 32 | tie & 0xFFFFFFFF]


NUM_WORDS = [1, 2, 4, 20]
WEIGHTINGS = ["none", "equal", "tfidf"]


def random_documents(num_words, number, weighting, bits):
    """Simhashes of documents of random words that share no word, as rows of bits: bool, shape (number, bits)."""
    generator = np.random.default_rng(8)
    features = generator.integers(0, 2**64, (number, num_words), np.uint64)
    weights = None
    if weighting == "equal":
        weights = np.full(features.size, 256)
    elif weighting == "tfidf":  # inverse document frequencies of a few values, as in corpora: sums tie, too
        weights = log_weights.inverse(generator.integers(0, 4, features.size), 3)
    offsets = np.arange(number + 1) * num_words
    found = kernel.cpu(features.ravel(), offsets, weights, bits).reshape(number, -1)
    return np.unpackbits(found.view(np.uint8), axis=1, bitorder="little").astype(bool)


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("num_words", NUM_WORDS)
def test_each_bit_is_one_with_probability_one_half(num_words, weighting, bits):
    """Each bit of 20,000 documents is a mean of independent even trials: off by 0.025 with probability 1e-9 / bits."""
    number = 20_000
    shares = random_documents(num_words, number, weighting, bits).mean(axis=0)
    assert np.abs(shares - 0.5).max() <= hoeffding(number, FAILURE / bits)


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("num_words", NUM_WORDS)
def test_unrelated_documents_differ_in_half_of_the_bits(num_words, weighting, bits):
    """10,000 pairs that share no document. The bits of a pair are even and independent, so that its distance is a sum
    of trials: by Hoeffding's bound the mean distance is off by 0.26 of 64 bits with probability 1e-9."""
    pairs = random_documents(num_words, 20_000, weighting, bits).reshape(-1, 2, bits)
    distances = (pairs[:, 0] != pairs[:, 1]).sum(axis=1)
    assert abs(distances.mean() - bits / 2) <= bits * hoeffding(10_000 * bits)


def test_two_words_that_share_one_are_apart():
    """Documents (a, b) and (a, c) differ in a third of their bits, by the angle of 60 degrees between them.

    A tied bit that repeated the hash of a word would put a third of these pairs at distance 0. Bits of a pair differ
    with probability 1/4 if one word decides the ties of both documents, and 3/8 otherwise. So a distance of at most 3
    has probability below 2e-5, and more than 12 of 10,000 pairs have it with probability below 1e-9.
    """
    number = 10_000
    generator = np.random.default_rng(9)
    a, b, c = generator.integers(0, 2**64, (3, number), np.uint64)
    rows = np.stack([a, b, a, c], axis=1).ravel()
    found = kernel.cpu(rows, np.arange(2 * number + 1) * 2, None, 64)
    distances = np.bitwise_count(found[::2] ^ found[1::2])
    assert (distances <= 3).sum() <= 12
    assert abs(distances.mean() / 64 - 1 / 3) <= hoeffding(number)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_weights_at_the_bound(function):
    """All that a document may weigh, 2**63 - 1, on one feature or divided: no counter overflows."""
    h, other = 0x0123456789ABCDEF, ALL
    row = [feature_of(h), feature_of(h ^ ALL), feature_of(other)]
    greatest = 2**63 - 1
    tie = tie_of([h, h ^ ALL, ALL])
    expected = {
        (greatest, 0, 0): h,
        (0, greatest, 0): h ^ ALL,
        (0, 0, greatest): ALL,
        (2**62, 2**62 - 1, 0): h,
        (2**62 - 1, 2**62, 0): h ^ ALL,
        (2**62 - 1, 2**62 - 1, 1): ALL,
        (2**62 - 1, 2**62 - 1, 0): tie,
    }
    for given, simhashed in expected.items():
        assert simhash([row], [given], function=function) == [simhashed]


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_documents_without_features(function, bits):
    empty = 0 if bits == 64 else [0, 0]
    assert simhash([], bits=bits, function=function) == []
    rows = [[], [1, 2], [], [0], []]
    found = simhash(rows, bits=bits, function=function)
    assert [found[d] for d in (0, 2, 4)] == [empty] * 3 and found[1] != empty
    assert simhash(rows, [[1] * len(row) for row in rows], bits, function) == found
    assert simhash([[0]], function=function) == [0]  # not null: mix64(0) = 0


@pytest.mark.parametrize("bits", [64, 128])
def test_neither_order_nor_batches_matter(bits):
    generator = np.random.default_rng(3)
    rows = [generator.integers(0, 2**64, n, np.uint64) for n in generator.integers(0, 300, 50)]
    given = [generator.integers(0, 2**40, len(row)) for row in rows]
    found = simhash(rows, given, bits)
    orders = [generator.permutation(len(row)) for row in rows]
    shuffled = [[array[order] for array, order in zip(arrays, orders, strict=True)] for arrays in (rows, given)]
    assert simhash(*shuffled, bits) == found
    batches = (simhash(rows[i : i + 7], given[i : i + 7], bits) for i in range(0, 50, 7))
    assert [one for batch in batches for one in batch] == found
    ragged, flat = Ragged.from_rows(rows, np.uint64), np.concatenate(given)
    assert kernel.cpu(ragged.values, ragged.offsets[20:31], flat, bits).tolist() == found[20:30]  # a slice


def test_no_weights_are_term_frequencies():
    generator = np.random.default_rng(4)
    alphabet = generator.integers(0, 2**64, 50, np.uint64)
    ragged = Ragged.from_rows([generator.choice(alphabet, n) for n in range(100)], np.uint64)
    found = kernel.cpu(ragged.values, ragged.offsets, None, 64)
    assert found.tolist() == kernel.cpu(*counts.cpu(ragged.values, ragged.offsets), 64).tolist()


def differing(pairs):
    """Return the exact probability that two documents differ in a bit, and the probability that both are tied in it.

    `pairs` are pairs of weights, one for each feature of either document. A bit that is tied in one document is even.
    A bit that is tied in both differs with probability 1/2 if different features decide: the least of all features is
    shared with the probability of resemblance.
    """
    states = Counter({(0, 0): 1})
    for a, b in pairs:
        following = Counter()
        for (x, y), ways in states.items():
            following[x + a, y + b] += ways
            following[x - a, y - b] += ways
        states = following
    ways_of = {state: ways / 2 ** len(pairs) for state, ways in states.items()}
    apart = sum(ways for (x, y), ways in ways_of.items() if x * y < 0)
    one_tied = sum(ways for (x, y), ways in ways_of.items() if (x == 0) != (y == 0))
    both_tied = ways_of.get((0, 0), 0.0)
    resemblance = sum(1 for pair in pairs if min(pair) > 0) / len(pairs)
    return apart + one_tied / 2 + both_tied * (1 - resemblance) / 2, both_tied


def angle(pairs):
    """Of the two vectors of weights."""
    lengths = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return math.acos(min(1, sum(a * b for a, b in pairs) / lengths))


SHARED_AND_OWN = {
    "the same": [(1, 1)] * 9,
    "alike": [(1, 1)] * 90 + [(1, 0), (0, 1)] * 10,
    "half": [(1, 1)] * 50 + [(1, 0), (0, 1)] * 50,
    "disjoint": [(1, 0), (0, 1)] * 51,
    "term frequencies": [(5, 4), (3, 3), (1, 0), (2, 3), (0, 2), (7, 7), (1, 1), (1, 2), (4, 1)],
    "one heavy feature": [(100, 100)] + [(1, 0), (0, 1)] * 20,
    "even, with ties": [(1, 1)] * 3 + [(1, 0), (0, 1)],
}


@pytest.mark.parametrize("structured", [False, True], ids=["random", "consecutive"])
@pytest.mark.parametrize("case", SHARED_AND_OWN)
def test_bits_differ_with_the_exact_probability(case, structured):
    """64,000 trials: the bound is 0.013. Consecutive features are as good as random: they are mixed first.

    Whether one feature decides the ties of both documents is one trial per pair, which counts in bits tied in both.
    """
    pairs, trials = SHARED_AND_OWN[case], 1000
    generator = np.random.default_rng(5)
    rows, given = [], []
    for _ in range(trials):
        features = generator.integers(0, 2**64, len(pairs), np.uint64)
        if structured:
            features = features[0] // np.uint64(2) + np.arange(len(pairs), dtype=np.uint64)
        for weight in zip(*pairs, strict=True):
            rows.append([f for f, w in zip(features, weight, strict=True) if w])
            given.append([w for w in weight if w])
    found = np.array(simhash(rows, given), np.uint64)
    share = np.bitwise_count(found[::2] ^ found[1::2]).sum() / (64 * trials)
    expected, both_tied = differing(pairs)
    assert abs(share - expected) <= hoeffding(64 * trials, FAILURE / 2) + both_tied / 2 * hoeffding(trials, FAILURE / 2)
    if expected == 0:
        assert share == 0


@pytest.mark.parametrize("shared", some([0.8, 0.9], [0.9]))
def test_the_angle_is_the_limit(shared):
    """What coordinates of +1 and -1 give tends to Charikar's a / pi for random projections: with four times as many
    features it is at most half as far from it. Exact, no sampling."""
    far = []
    for n in (25, 101):
        common = round(shared * n)
        pairs = [(1, 1)] * common + [(1, 0), (0, 1)] * (n - common)
        far.append(abs(differing(pairs)[0] - angle(pairs) / math.pi))
    assert far[0] > 2 * far[1] > 0


class TestWeights:
    def test_logarithms_by_decimals(self):
        """floor(256 log2 n) by 60 digits: around every 256th, and at random."""
        generator = np.random.default_rng(6)
        with localcontext() as context:
            context.prec = 60
            two = Decimal(2).ln()
            roots = [int((two * k / 256).exp()) for k in range(0, 256 * 40, 7)]
            counts = {1, 2, 3, 2**40 - 1, *range(1, 2000), *generator.integers(1, 2**40, 500).tolist()}
            counts |= {n + step for n in roots for step in (0, 1) if n + step < 2**40}
            powers = [1 << i for i in range(40)]  # whose logarithms are no fractions
            counts = sorted(counts - set(powers))
            expected = [256 + int(256 * Decimal(n).ln() / two) for n in counts]
        assert log_weights.cpu(np.array(counts)).tolist() == expected
        assert log_weights.cpu(np.array(powers)).tolist() == [256 * (1 + i) for i in range(40)]

    def test_inverse_frequencies(self):
        found = log_weights.inverse(np.array([0, 1, 3, 6, 7]), 7)  # 1 + log2(8 / (df + 1))
        assert found.tolist() == [4 * 256, 3 * 256, 2 * 256, 4 * 256 - (256 * 2 + 206), 256]  # log2(7) = 2.8073
        falling = log_weights.inverse(np.arange(1001), 1000)
        assert (np.diff(falling) <= 0).all() and falling[-1] == 256
        assert log_weights.inverse(np.array([0]), 2**40 - 2)[0] <= 41 * 256
        assert 41 * 256 * 2**48 < 2**63
        assert log_weights.inverse(np.array([0]), 0).tolist() == [256]

    def test_frequencies_of_batches_merge(self):
        generator = np.random.default_rng(7)
        alphabet = generator.integers(0, 2**64, 300, np.uint64)
        rows = [generator.choice(alphabet, n) for n in generator.integers(0, 60, 200)]
        plain = Counter(f for row in rows for f in set(row.tolist()))

        def table(part):
            ragged = Ragged.from_rows(part, np.uint64)
            return occurrences.cpu(counts.cpu(ragged.values, ragged.offsets)[0])

        whole = table(rows)
        assert dict(zip(*(array.tolist() for array in whole), strict=True)) == plain
        for size in (1, 30, 200):
            merged = occurrences.merge([table(rows[i : i + size]) for i in range(0, 200, size)])
            for one, other in zip(merged, whole, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
        assert [len(array) for array in occurrences.merge([table([]), table([[]])])] == [0, 0]

    def test_rare_words_weigh_more(self):
        """TF-IDF by hand: "the" in all of three documents, "cat" in one; unknown words weigh most."""
        the, cat, dog, sat = (feature_of(h) for h in (0xFF00, 0x00FF, 0x0F0F, 0xF0F0))
        documents = Ragged.from_rows([[the, cat], [the, the, sat], [the, sat]], np.uint64)
        table, frequencies = occurrences.cpu(counts.cpu(documents.values, documents.offsets)[0])
        inverse = log_weights.inverse(frequencies, 3)
        absent = int(log_weights.inverse(np.array([0]), 3)[0])
        tokens = np.array([the, cat, the, sat, dog], np.uint64)
        given = lookup.cpu(tokens, table, inverse, absent)
        assert given.tolist() == [256, 512, 256, 256 + 512 - 405, 768]  # log2(3) = 1.585
        assert simhash([[the, cat]], [given[:2]]) == [0x00FF]
