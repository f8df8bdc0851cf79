"""A Hypothesis strategy for each kernel: the arguments on which its backends must agree.

They hold what breaks ragged code: no documents, empty first and last ones, one giant document, repeated and extreme
fingerprints, slices that begin after 0. A kernel's name is its file's, then a dot and the prefix of `*_reference`, if
it has one.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from neardup_gpu.kernels import compression
from neardup_gpu.kernels.hamming import table_reference
from neardup_gpu.kernels.overlap import invert

EXTREMES = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
WORDS = st.one_of(st.sampled_from(EXTREMES), st.integers(0, 3), st.integers(0, 2**64 - 1))
SEEDS = st.integers(0, 2**32 - 1)
MODULI = st.integers(0, 2**64 - 1).map(lambda q: np.uint64(q | 1 << 63))

# Characters that fold, decompose, reorder, join, vanish or stand alone; and the longest ASCII runs between them.
CHARACTERS = (
    "aZ09_ -.'\n\0\x7f"
    "ßſİıŉΣςΐǰﬁﬃ½²ªµÅÅ"  # case folding and compatibility
    "éé̂̀\u0301\u0300\u0323\u0327\u0345\u0315\u05b0\u05bc\u0651\u064b"  # marks, in and out of canonical order
    "각힣\u1100\u1161\u11a8ㄱﾡ"  # Hangul: syllables, letters, compatibility letters
    "漢字仮名かなカナｶﾞ々〆㍿豈"  # Han, Hiragana, Katakana
    "ไทยที่กำລາວຳខ្មែរမြန်မာ"  # Thai, Lao, Khmer, Myanmar
    "हिन्दीالعَرَبِيَّةﷺעִבְרִית"
    "\u00ad\u200b\u200c\u200d\u2060\ufeff\U000e0041"  # format characters
    "😀👩‍👩‍👧🇫🇷\ufe0f\U0001d400\U00010400\U0002f800\ufffd\uffff\U0010ffff"
)
PIECES = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=12).map(str.encode),
    st.text(max_size=8).map(str.encode),
    st.text(st.sampled_from("abcXYZ019_ ,"), max_size=150).map(str.encode),
    st.text(st.sampled_from("\u0301\u0323\u0345\u05b0"), max_size=80).map(str.encode),
    st.binary(max_size=6),
    st.sampled_from(
        [b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80"]
    ),
)
DOCUMENTS = st.lists(PIECES, max_size=5).map(b"".join)


def ragged(draw, rows, dtype=np.uint64):
    """(values, offsets) of a list of arrays; other values may come before the first and after the last."""
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    sizes = np.array([before, *map(len, rows)], np.int64)
    pieces = [np.full(before, 7, dtype), *(np.asarray(row, dtype) for row in rows), np.full(after, 9, dtype)]
    return np.concatenate(pieces), np.cumsum(sizes)


def with_empty_ends(draw, rows, empty):
    """`rows`, with an empty row at each end half of the time."""
    return [empty, *rows, empty] if draw(st.booleans()) else rows


@st.composite
def giant(draw):
    """A long row, some of whose values repeat or share their upper or their lower bits."""
    generator = np.random.default_rng(draw(SEEDS))
    row = generator.integers(0, 2**64, draw(st.integers(1, 400)), np.uint64)
    crowded = generator.random(len(row)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    row[crowded] &= np.uint64(draw(st.sampled_from([7, 2**32 - 1, 15 << 60])))
    return row.tolist()


@st.composite
def rows_of_words(draw):
    """Some short rows and perhaps a giant one."""
    rows = draw(st.lists(st.lists(WORDS, max_size=10), max_size=5))
    if draw(st.booleans()):
        rows.insert(draw(st.integers(0, len(rows))), draw(giant()))
    return with_empty_ends(draw, rows, [])


@st.composite
def ragged_words(draw):
    return ragged(draw, draw(rows_of_words()))


@st.composite
def tokens(draw):
    documents = draw(st.lists(DOCUMENTS, max_size=4))
    if draw(st.booleans()):
        documents.append(draw(PIECES) * draw(st.integers(1, 60)))
    documents = with_empty_ends(draw, documents, b"")
    text, offsets = ragged(draw, [np.frombuffer(document, np.uint8) for document in documents], np.uint8)
    return text, offsets, draw(MODULI)


@st.composite
def shingles(draw):
    values, offsets = draw(ragged_words())
    w = draw(st.sampled_from([1, 2, 5, 17]))
    return values, offsets, w, draw(st.sampled_from(["set", "bag", "circular"])), draw(MODULI), draw(MODULI)


@st.composite
def sequences(draw):
    values, offsets = draw(ragged_words())
    return values, offsets, np.array([draw(MODULI), draw(MODULI)])


@st.composite
def minhash(draw):
    values, offsets = draw(ragged_words())
    dtype = draw(st.sampled_from([np.uint32, np.uint64]))
    samples = draw(st.sampled_from([1, 2, 15, 16, 17, 48, 64, 84, 130]))
    a, b = np.random.default_rng(draw(SEEDS)).integers(0, np.iinfo(dtype).max, (2, samples), dtype, endpoint=True)
    return values, offsets, a | dtype(1), b


@st.composite
def supershingles(draw):
    k, s, spare = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(0, 2))
    dtype = draw(st.sampled_from([np.uint32, np.uint64]))
    shape = (draw(st.integers(0, 6)), k * s + spare)
    high = draw(st.sampled_from([1, np.iinfo(dtype).max]))
    signatures = np.random.default_rng(draw(SEEDS)).integers(0, high, shape, dtype, endpoint=True)
    return signatures, k, s, draw(st.sampled_from([64, 16])), draw(MODULI)


@st.composite
def pairtables(draw):
    k, r = draw(st.sampled_from([(1, 1), (3, 1), (3, 3), (4, 2), (5, 3), (6, 5), (64, 1)]))
    rows = draw(st.integers(0, 60))
    generator = np.random.default_rng(draw(SEEDS))
    alphabet = generator.integers(0, 2**64, draw(st.integers(1, 40)), np.uint64)
    alphabet[: len(EXTREMES)] = np.array(EXTREMES, np.uint64)[: len(alphabet)]
    features = generator.choice(alphabet, (rows, k))
    present = generator.random(rows) < draw(st.sampled_from([0.0, 0.9, 1.0]))
    limit = draw(st.sampled_from([0, 1, 2, 5, 10, 1000]))
    return features, present, r, draw(MODULI), limit, draw(st.integers(0, 6))


@st.composite
def resemblance(draw):
    rows = [sorted(set(row)) for row in draw(rows_of_words())]
    rows += [row[::2] for row in rows]  # so that intersections are not all empty
    values, offsets = ragged(draw, rows)
    pairs = draw(st.lists(st.tuples(*[st.integers(0, len(rows) - 1)] * 2), max_size=12)) if rows else []
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    return values, offsets, left, right


@st.composite
def sorted_pairs(draw):
    """(rows, left, right) as in `Pairs`: left < right, in lexicographic order, each once."""
    rows = draw(st.integers(0, 25))
    row = st.integers(0, rows - 1)
    pairs = draw(st.sets(st.tuples(row, row).filter(lambda p: p[0] < p[1]), max_size=40)) if rows > 1 else set()
    left, right = np.array(sorted(pairs), np.int64).reshape(-1, 2).T.copy()
    return rows, left, right


@st.composite
def greedy(draw):
    rows, left, right = draw(sorted_pairs())
    generator = np.random.default_rng(draw(SEEDS))
    weight = generator.choice([0.8, 0.9, 1.0], len(left))  # few values: ties
    return rows, left, right, weight, generator.random(rows) < draw(st.sampled_from([0.0, 0.3]))


@st.composite
def overlap(draw):
    rows = draw(rows_of_words())
    sampled = draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else []
    sampled += draw(st.lists(st.lists(WORDS, max_size=6), max_size=2))
    values, offsets = ragged(draw, rows)
    sample_values, sample_offsets = ragged(draw, [sorted(set(row)) for row in sampled])
    return values, offsets, *invert(sample_values, sample_offsets), len(sampled)


@st.composite
def gather(draw):
    values, offsets = draw(ragged_words())
    row = st.integers(0, max(0, len(offsets) - 2))
    rows = draw(st.lists(row, max_size=12)) if len(offsets) > 1 else []
    return values, offsets, np.array(rows, np.int64)


@st.composite
def weighted_words(draw):
    """Features with weights, the greatest of which are all that a counter holds; or without."""
    values, offsets = draw(ragged_words())
    random = np.random.default_rng(draw(SEEDS))
    most = draw(st.sampled_from([1, 3, 2**32, (2**63 - 1) // max(1, len(values))]))  # few values: ties
    weights = random.integers(0, most, len(values), endpoint=True)
    if len(values) and draw(st.booleans()):
        weights[:] = 0
        weights[draw(st.integers(0, len(values) - 1))] = 2**63 - 1
    return values, offsets, draw(st.sampled_from([None, weights])), draw(st.sampled_from([64, 128]))


@st.composite
def look_up(draw):
    values, _ = draw(ragged_words())
    table = np.array(sorted(draw(st.sets(st.one_of(WORDS, st.sampled_from([*values.tolist(), 7]))))), np.uint64)
    weights = np.random.default_rng(draw(SEEDS)).integers(0, 2**63, len(table))
    return values, table, weights, draw(st.sampled_from([0, 256, 2**63 - 1]))


# Counts on both sides of where a logarithm's 256th begins, and any others.
COUNTS = st.one_of(
    st.integers(1, 2**40 - 1),
    st.integers(1, 300),
    st.tuples(st.integers(0, 40 * 256 - 1), st.integers(-1, 1)).map(
        lambda at: min(max(int(2 ** (at[0] / 256)) + at[1], 1), 2**40 - 1)
    ),
)


@st.composite
def fingerprints(draw, num_words=1):
    """Near one another in many ways: a few centres, some of their bits, anywhere or in one block, flipped."""
    generator = np.random.default_rng(draw(SEEDS))
    centres = np.array(draw(st.lists(st.tuples(*[WORDS] * num_words), min_size=1, max_size=6)), np.uint64)
    values = generator.choice(centres, draw(st.sampled_from([0, 1, 2, 30, 120])))
    places = np.uint64(1) << generator.integers(0, draw(st.sampled_from([3, 16, 64])), (5, len(values)), np.uint64)
    columns = generator.integers(0, num_words, (5, len(values)))
    for flipped, column in zip(places[: draw(st.integers(0, 5))], columns, strict=False):
        values[np.arange(len(values)), column] ^= np.where(generator.random(len(values)) < 0.5, flipped, np.uint64(0))
    return values if num_words == 2 else values[:, 0].copy()


NUM_WORDS = st.sampled_from([1, 2])  # of a fingerprint
MASKS = st.one_of(WORDS, st.sampled_from([4, 8, 16, 40]).map(lambda p: (1 << p) - 1 << 64 - p)).map(np.uint64)
LIMITS = st.tuples(st.sampled_from([0, 1, 2, 5, 10, 1000]), st.integers(0, 6))


@st.composite
def wide_masks(draw):
    """Masks of at most 64 of 128 bits."""
    mask, lower = draw(MASKS), draw(st.one_of(st.sampled_from([0, 2**64 - 1]), WORDS).map(np.uint64))
    return np.array([mask & ~lower, mask & lower], np.uint64)


def masks(num_words):
    return MASKS if num_words == 1 else wide_masks()


@st.composite
def hamming_first(draw):
    return (draw(fingerprints(draw(NUM_WORDS))),)


@st.composite
def hamming_table(draw):
    num_words = draw(NUM_WORDS)
    return draw(fingerprints(num_words)), draw(masks(num_words)), draw(st.booleans())


@st.composite
def hamming(draw):
    num_words = draw(NUM_WORDS)
    some = np.array(draw(st.lists(masks(num_words), max_size=4)), np.uint64)
    if num_words == 2:
        some = some.reshape(-1, 2)
    return draw(fingerprints(num_words)), some, draw(st.integers(0, 8)), *draw(LIMITS)


@st.composite
def hamming_probe(draw):
    values, some, radius, *limits = draw(hamming())
    whole = draw(st.booleans())
    tables = [table_reference(values, mask, whole) for mask in some]
    words = np.array([words for words, _ in tables], np.uint64).reshape(len(some), len(values))
    rows = np.array([rows for _, rows in tables], np.uint32).reshape(len(some), len(values))
    queries = np.concatenate([values[: draw(st.integers(0, 20))], draw(fingerprints(values.ndim))])
    return words, rows, some, queries, radius, *limits, None if values.ndim == 1 else values


@st.composite
def sorted_tables(draw):
    """Tables of as many sorted words: random ones that fill several blocks, crowded ones, equal ones."""
    shape = draw(st.sampled_from([0, 1, 2])), draw(st.sampled_from([0, 1, 2, 40, 300, 600]))
    generator = np.random.default_rng(draw(SEEDS))
    words = generator.integers(0, 2**64, shape, np.uint64) >> np.uint64(draw(st.sampled_from([0, 40, 56, 63])))
    words[:, ::2] = np.uint64(draw(WORDS)) if draw(st.booleans()) else words[:, ::2]
    return np.sort(words, axis=1)


@st.composite
def some_blocks(draw):
    """Of compressed tables, in any order, with repeats."""
    tables = compression.encode_reference(draw(sorted_tables()))
    number = st.integers(0, max(0, len(tables.blocks) - 1))
    numbers = draw(st.lists(number, max_size=8)) if len(tables.blocks) else []
    return tables.lengths, tables.offsets, tables.blocks, tables.firsts, np.array(numbers, np.int64)


@st.composite
def compressed_probe(draw):
    """The arguments of `hamming_probe`, compressed; or tables of several blocks, and queries near their words."""
    words, rows, some, queries, *rest = draw(hamming_probe())
    if some.ndim == 1 and draw(st.booleans()):
        values = np.repeat(np.random.default_rng(draw(SEEDS)).integers(0, 2**64, 250, np.uint64), 2)
        values[: draw(st.sampled_from([0, 300]))] &= np.uint64(2**63 + 7)
        tables = [table_reference(values, mask, True) for mask in some]
        words = np.array([words for words, _ in tables], np.uint64).reshape(len(some), len(values))
        rows = np.array([rows for _, rows in tables], np.uint32).reshape(len(some), len(values))
        queries = np.concatenate([values[: draw(st.integers(0, 60))] ^ np.uint64(1), queries])
    return *compression.encode_reference(words), rows, some, queries, *rest


STRATEGIES = {
    "compression.encode": st.tuples(sorted_tables()),
    "compression.decode": some_blocks(),
    "compression.probe": compressed_probe(),
    "hamming": hamming(),
    "hamming.first": hamming_first(),
    "hamming.table": hamming_table(),
    "hamming.probe": hamming_probe(),
    "tokens": tokens(),
    "shingles": shingles(),
    "sequences": sequences(),
    "minhash": minhash(),
    "gather": gather(),
    "overlap": overlap(),
    "simhash": weighted_words(),
    "weights.counts": ragged_words(),
    "weights.occurrences": st.tuples(ragged_words().map(lambda rows: rows[0])),
    "weights.logarithmic": st.tuples(st.lists(COUNTS, max_size=20).map(lambda n: np.array(n, np.int64))),
    "weights.look_up": look_up(),
    "supershingles": supershingles(),
    "pairtables": pairtables(),
    "resemblance": resemblance(),
    "resemblance.unique": ragged_words(),
    "components.greedy": greedy(),
    "components.connected": sorted_pairs(),
}
