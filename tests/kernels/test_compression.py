"""Compressed tables: a block worked by hand, round trips, size against theory, answers against raw tables, damage."""

import heapq
import itertools
import math

import numpy as np
import pytest

from neardup_gpu.hamming import TableDesign
from neardup_gpu.kernels import _huffman, hamming_probe, hamming_table, huffman_decode, huffman_encode, huffman_probe
from neardup_gpu.kernels._huffman import BLOCK_BITS, LONGEST, SYMBOLS, HuffmanTables, code_lengths
from neardup_gpu.kernels.hamming import NO_LIMIT
from neardup_gpu.papers import compressed_tables

TOP = 2**64 - 1


def decoded(tables, numbers=None):
    numbers = np.arange(len(tables.blocks)) if numbers is None else np.asarray(numbers, np.int64)
    return huffman_decode.cpu(tables.lengths, tables.offsets, tables.blocks, tables.firsts, numbers)


def num_bits(tables):
    """What grows with the words."""
    return 8 * (tables.blocks.nbytes + tables.keys.nbytes + tables.firsts.nbytes)


def test_a_table_worked_by_hand():
    # The xors are 2, 0, 0 and 8: symbols 2, 0, 0 and 4, of which 0 gets the code 0, 2 gets 10 and 4 gets 11. After the
    # codes come 0 for the bit below the highest of 2, and 000 for those below the highest of 8.
    tables = huffman_encode.cpu(np.array([[1, 3, 3, 3, 11]], np.uint64))
    assert {symbol: int(bits) for symbol, bits in enumerate(tables.lengths[0]) if bits} == {0: 1, 2: 2, 4: 2}
    assert tables.blocks[0, :3].tolist() == [1, int("1000011000", 2) << 54, 0]
    assert tables.blocks.shape == (1, 128) and not tables.blocks[0, 2:].any()
    assert (tables.keys.tolist(), tables.offsets.tolist(), tables.firsts.tolist()) == ([11], [0, 1], [0, 5])


# ------------------------------------------------------------------------------------------------------ code lengths


def huffman_cost(counts):
    """Bits that the shortest code takes, whatever its lengths."""
    heap, cost = sorted(counts), 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        heapq.heappush(heap, both)
        cost += both
    return cost


def limited_cost(counts):
    """The same of codes of at most 12 bits: by all ways to share out 4096 places."""
    best = np.full(4097, np.inf)
    best[0] = 0
    for count in counts:
        after = np.full(4097, np.inf)
        for length in range(1, LONGEST + 1):
            places = 1 << LONGEST - length
            after[places:] = np.minimum(after[places:], best[:-places] + count * length)
        best = after
    return best.min()


FIBONACCI = [1, 1]
while len(FIBONACCI) < 40:
    FIBONACCI.append(FIBONACCI[-1] + FIBONACCI[-2])


@pytest.mark.parametrize("size", [2, 3, 13, 14, 20, 40])
def test_code_lengths_are_the_best_of_at_most_12_bits(size):
    generator = np.random.default_rng(size)
    for counts in (generator.integers(1, 10**6, size).tolist(), [7] * size, FIBONACCI[:size]):
        lengths = code_lengths(counts).astype(int)
        assert sum(2.0**-lengths) == 1 and lengths.max() <= LONGEST
        cost = sum(count * length for count, length in zip(counts, lengths.tolist(), strict=True))
        assert cost == limited_cost(counts) >= huffman_cost(counts)
    assert (cost == huffman_cost(FIBONACCI[:size])) == (size <= 13)  # which gives the rarest size - 1 bits


def test_code_lengths_of_few_symbols():
    assert code_lengths([0] * SYMBOLS).tolist() == [0] * SYMBOLS
    assert code_lengths([0, 0, 5]).tolist() == [0, 0, 1]
    assert code_lengths([1] * SYMBOLS).max() == 7


# --------------------------------------------------------------------------------------------------------- round trip


def words_of(kind, generator):
    random = generator.integers(0, 2**64, 3000, np.uint64)
    return {
        "none": random[:0],
        "one": random[:1],
        "random": random,
        "equal, more than a block": np.full(20_000, TOP, np.uint64),
        "clusters": np.repeat(random[:5], [1, 9000, 2, 400, 8130]),
        "consecutive": np.arange(50_000, dtype=np.uint64),
        "extremes": np.array([0, 0, 1, 2**63 - 1, 2**63, TOP - 1, TOP, TOP], np.uint64),
        "powers": np.uint64(1) << np.arange(64, dtype=np.uint64),
    }[kind]


KINDS = ("none", "one", "random", "equal, more than a block", "clusters", "consecutive", "extremes", "powers")


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind):
    words = np.sort(words_of(kind, np.random.default_rng(1)))
    tables = huffman_encode.cpu(np.stack([words, words[::-1]]))
    assert decoded(tables).tolist() == [*words.tolist(), *words[::-1].tolist()]
    assert tables.firsts[0] == 0 and tables.firsts[-1] == 2 * len(words)
    whole = decoded(tables)
    for number, (start, stop) in enumerate(itertools.pairwise(tables.firsts.tolist())):
        assert tables.blocks[number, 0] == whole[start] and tables.keys[number] == whole[stop - 1]
        assert decoded(tables, [number]).tolist() == whole[start:stop].tolist()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_block_ends_where_the_next_word_no_longer_fits(kind):
    words = np.sort(words_of(kind, np.random.default_rng(2)))
    tables = huffman_encode.cpu(words[None])
    symbols = [(int(a) ^ int(b)).bit_length() for a, b in itertools.pairwise(words)]
    taken = [0] + [int(tables.lengths[0, symbol]) + max(symbol - 1, 0) for symbol in symbols]
    for start, stop in itertools.pairwise(tables.firsts.tolist()):
        used = 64 + sum(taken[start + 1 : stop])
        assert used <= BLOCK_BITS
        assert stop == len(words) or used + taken[stop] > BLOCK_BITS


@pytest.mark.parametrize(("flipped", "words_of_a_block"), [(0, 8129), (1, 8129), (2, 4065), (2**63, 128)])
def test_blocks_full_to_the_bit(flipped, words_of_a_block):
    # One symbol: a code of 1 bit and the h bits below it, in 8,128 bits.
    words = np.zeros(2 * words_of_a_block + 1, np.uint64)
    words[1::2] = flipped
    tables = huffman_encode.cpu(words[None])
    assert np.diff(tables.firsts).tolist() == [words_of_a_block, words_of_a_block, 1]
    assert decoded(tables).tolist() == words.tolist()


# --------------------------------------------------------------------------------------------------------------- size


@pytest.mark.parametrize("kind", ["random", "clusters", "consecutive"])
def test_size_is_near_the_entropy(kind):
    words = np.sort(words_of(kind, np.random.default_rng(3)))
    tables = huffman_encode.cpu(words[None])
    symbols = np.array([(int(a) ^ int(b)).bit_length() for a, b in itertools.pairwise(words)])
    counts = np.bincount(symbols, minlength=SYMBOLS)
    share = counts[counts > 0] / len(symbols)
    entropy = -(share * np.log2(share)).sum()
    below = np.maximum(symbols - 1, 0).sum()
    coded = int((counts * tables.lengths[0]).sum())
    # lengths ceil(-log2((1 - e) p + e / 65)), e = 65 / 4096, are a code of at most 12 bits
    assert len(symbols) * entropy <= coded + 1e-6 and coded < len(symbols) * (entropy + 1 - math.log2(1 - 65 / 4096))
    # a block that another follows leaves less unused than a word takes, at most 75 bits
    assert len(tables.blocks) <= 1 + (coded + below) / (BLOCK_BITS - 64 - 74)


@pytest.mark.parametrize(("n", "bits"), [(1, 3), (2, 3), (3, 3), (4, 2), (5, 1), (2, 6)])
def test_expected_counts_are_those_of_all_tables(n, bits):
    counts = np.zeros(bits + 1)
    for words in itertools.product(range(2**bits), repeat=n):
        for a, b in itertools.pairwise(sorted(words)):
            counts[(a ^ b).bit_length()] += 1
    np.testing.assert_allclose(
        compressed_tables.expected_counts(n, bits), counts / 2 ** (bits * n), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 6000])
def test_information_bits_count_the_sets(n):
    assert _huffman.information_bits(n, 16) == pytest.approx(math.log2(math.comb(2**16, n)), abs=1e-3)


@pytest.mark.parametrize("n", [2**11, 2**16])
def test_random_words_take_what_is_expected(n):
    words = np.sort(np.random.default_rng(n).integers(0, 2**64, n, np.uint64))
    tables = huffman_encode.cpu(words[None])
    # In another place a word changes what is coded by at most 75 bits, once where it goes and once where it comes, with
    # signs that differ; so (McDiarmid) the sum exceeds its mean by this much with probability below 1e-9. Blocks: their
    # ends add less than a block's first word and 75 bits each, of which `expected_bits` has a part.
    margin = 75 * math.sqrt(n * math.log(1e9) / 2)
    expected = compressed_tables.expected_bits(n)
    blocks = expected / BLOCK_BITS
    assert _huffman.information_bits(n) < num_bits(tables)
    assert num_bits(tables) <= expected + margin * 1.02 + 75 * blocks + BLOCK_BITS


def test_eight_billion_take_about_half():
    n = 8_000_000_000
    assert _huffman.information_bits(n) / n == pytest.approx(64 - math.log2(n) + math.log2(math.e), abs=1e-6)
    share = compressed_tables.expected_bits(n) / n / 64
    assert _huffman.information_bits(n) / n / 64 < share
    assert round(64 * share, 1) == 35.3  # 55%, as docs/concepts/simhash.md says
    assert compressed_tables.expected_bits(1) == compressed_tables.expected_bits(50) == BLOCK_BITS + 128 + 64


# ------------------------------------------------------------------------------------------------------------ probing


def near_tables(generator, masks, n=4000):
    """Random fingerprints, neighbours of some, and a crowd that fills buckets over several blocks."""
    values = generator.integers(0, 2**64, n, np.uint64)
    values[: n // 4] = values[n // 4 : 2 * (n // 4)] ^ np.uint64(1) << generator.integers(0, 64, n // 4, np.uint64)
    values[-n // 4 :] = generator.integers(0, 2**44, n // 4, np.uint64)
    made = [hamming_table.cpu(values, mask, True) for mask in masks]
    words, rows = (np.stack([table[part] for table in made]) for part in (0, 1))
    some = generator.choice(values, 150) ^ np.uint64(1) << generator.integers(0, 64, 150, np.uint64)
    queries = np.concatenate([some, np.array([0, TOP, 2**44], np.uint64), values[-3:]])
    return words, rows, huffman_encode.cpu(words), queries


def assert_same(expected, found):
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("radius", range(9))
def test_compressed_answers_are_raw_answers(radius):
    generator = np.random.default_rng(radius)
    for prefix in (0, 3, 12):
        masks = np.array(TableDesign(64, radius, prefix).masks[:4], np.uint64)
        words, rows, tables, queries = near_tables(generator, masks)
        for limit, first in ((NO_LIMIT, 1), (300, 20), (300, 700), (0, 0)):
            found = huffman_probe.cpu(*tables, rows, masks, queries, radius, limit, first)
            assert_same(hamming_probe.cpu(words, rows, masks, queries, radius, limit, first), found)
            assert limit != NO_LIMIT or len(found[0]) >= 3
            for some in (queries[:30], queries[-6:], queries[:0]):  # few enough to decode as they go
                expected = hamming_probe.cpu(words, rows, masks, some, radius, limit, first)
                assert_same(expected, huffman_probe.cpu(*tables, rows, masks, some, radius, limit, first))


def test_words_at_the_ends_of_blocks_are_found():
    words = np.sort(np.random.default_rng(6).integers(0, 2**64, (1, 2000), np.uint64))
    words[0, -1] = TOP
    tables, rows = huffman_encode.cpu(words), np.arange(2000, dtype=np.uint32)[None]
    firsts, lasts = (tables.blocks[:, 0], tables.firsts[:-1]), (tables.keys, tables.firsts[1:] - 1)
    for (queries, found), times in itertools.product((firsts, lasts), (1, 4)):  # each by itself, and block by block
        asked = np.array([TOP], np.uint64), np.repeat(queries, times), 0, 10, 10
        query, row, *_ = huffman_probe.cpu(*tables, rows, *asked)
        assert query.tolist() == list(range(times * len(queries)))
        assert row.tolist() == np.repeat(found, times).tolist()


def test_many_queries_decode_each_block_once(monkeypatch):
    masks = np.array(TableDesign(64, 3, 16).masks, np.uint64)
    _, rows, tables, queries = near_tables(np.random.default_rng(5), masks)
    asked = []

    def decode(*arguments):
        asked.append(arguments[-1])
        return huffman_decode.reference(*arguments)

    monkeypatch.setattr(huffman_decode, "cpu", decode)
    huffman_probe.cpu(*tables, rows, masks, np.repeat(queries, 5), 3, NO_LIMIT, 1)
    numbers = np.concatenate(asked)
    assert len(np.unique(numbers)) == len(numbers) <= len(tables.blocks)


# ------------------------------------------------------------------------------------------------------------- damage


@pytest.fixture
def checked_bounds(monkeypatch):
    """The loops that read blocks as Python runs them, on arrays that refuse an index beyond their end."""
    loops = {
        _huffman: ("bits_ahead", "next_word"),
        huffman_decode: ("next_word", "_decode_block"),
        huffman_probe: ("next_word", "_compare_block", "_last_of_bucket", "_search"),
    }
    scalars = {_huffman: ("ahead_of", "differ_of", "bits_below"), huffman_probe: ("permuted_word", "count_bits")}
    for module, name in [(module, name) for module, names in loops.items() for name in names]:
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    for module, name in [(module, name) for module, names in scalars.items() for name in names]:
        compiled = getattr(module, name)  # as integers of Python's are too large
        monkeypatch.setattr(module, name, lambda *words, of=compiled: np.uint64(of(*map(np.uint64, words))))

    def decode_blocks(count, blocks, books, tables, numbers, places, words, good):
        for i, number in enumerate(numbers[:count]):
            row = words[places[i] : places[i + 1]]
            good[i] = huffman_decode._decode_block(blocks[number], books[tables[i]], row)

    monkeypatch.setattr(huffman_decode, "_decode_blocks", decode_blocks)


def damaged(generator, tables, kind):
    """A copy in which something is not as it was."""
    changed = [array.copy() for array in tables]
    lengths, _, blocks, keys, firsts = changed
    number = generator.integers(0, len(blocks))
    if kind == "a bit of a block":
        blocks[number, generator.integers(0, 128)] ^= np.uint64(1) << np.uint64(generator.integers(0, 64))
    elif kind == "a block of ones":
        blocks[number] = TOP
    elif kind == "a truncated block":
        blocks[number, generator.integers(1, 128) :] = 0
    elif kind == "random blocks":
        blocks[:] = generator.integers(0, 2**64, blocks.shape, np.uint64)
    elif kind == "keys":
        keys[:] = generator.integers(0, 2**64, len(keys), np.uint64)
    elif kind == "keys of ones":
        keys[:] = TOP
    elif kind == "code lengths":
        lengths[0, generator.integers(0, SYMBOLS)] = generator.integers(0, 256)
    elif kind == "shifted firsts":
        firsts[:-1] += generator.choice([-1300, 10**6])
    else:
        firsts[generator.integers(0, len(firsts))] = generator.choice([-1, 0, 3, 2**40, -(2**63)])
    return HuffmanTables(*changed)


UNSEEN = {"a bit of a block", "a truncated block", "keys", "keys of ones"}  # or not always
DAMAGES = (*sorted(UNSEEN), "a block of ones", "random blocks", "code lengths", "firsts", "shifted firsts")


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_ends_in_an_error_or_wrong_words(kind, checked_bounds):
    generator = np.random.default_rng(7)
    masks = np.array(TableDesign(64, 3, 16).masks[:2], np.uint64)
    _, rows, tables, queries = near_tables(generator, masks, 1200)
    refused = 0
    with np.errstate(over="ignore"):
        for _ in range(4):
            wrong = damaged(generator, tables, kind)
            try:
                assert len(decoded(wrong)) == rows.size
            except ValueError:
                refused += 1
            for some in (queries[:6], queries[-6:], queries):
                try:
                    huffman_probe.cpu(*wrong, rows, masks, some, 3, 50, 5)
                except ValueError:
                    refused += 1
    assert refused or kind in UNSEEN


def test_what_is_refused():
    tables = huffman_encode.cpu(np.sort(np.random.default_rng(8).integers(0, 2**64, (1, 500), np.uint64)))
    lengths, offsets, blocks, keys, firsts = tables
    rows, masks, queries = np.zeros((1, 500), np.uint32), np.array([TOP], np.uint64), blocks[:, 0].copy()
    for numbers in ([-1], [len(blocks)], [0, 2**40]):
        with pytest.raises(ValueError, match="blocks, and some of the given"):
            decoded(tables, numbers)
    with pytest.raises(ValueError, match="not of the same compressed tables"):
        huffman_decode.cpu(lengths, offsets, blocks[:-1], firsts, np.arange(1))
    with pytest.raises(ValueError, match="not of the same compressed tables"):
        huffman_probe.cpu(lengths, offsets, blocks, keys, firsts, rows[:, 1:], masks, queries, 3, 10, 10)
    with pytest.raises(ValueError, match="not of the same compressed tables"):
        huffman_decode.cpu(lengths, np.array([1, len(blocks)]), blocks, firsts, np.arange(1))
    over = lengths.copy()
    over[0, :5] = 1
    with pytest.raises(ValueError, match="no prefix code"):
        huffman_decode.cpu(over, offsets, blocks, firsts, np.arange(1))
    with pytest.raises(ValueError, match="no prefix code"):
        huffman_decode.reference(over, offsets, blocks, firsts, np.arange(1))
    more = firsts.copy()
    more[1:] += 5000  # words, for which the first block has no bits
    for decode in (huffman_decode.cpu, huffman_decode.reference):
        with pytest.raises(ValueError, match="block 0 does not hold the words"):
            decode(lengths, offsets, blocks, more, np.arange(1))
    with pytest.raises(ValueError, match="fewer words than 1 or more than 8,129"):
        huffman_decode.cpu(lengths, offsets, blocks, 9000 * np.arange(len(firsts)), np.arange(1))
    for shift in (-1, 10**6):  # all but the last, so that the number of words is as it was
        moved = np.append(firsts[:-1] + shift, firsts[-1])
        with pytest.raises(ValueError, match="not among the 500"):
            huffman_decode.cpu(lengths, offsets, blocks, moved, np.arange(1))
    lacking = np.zeros_like(lengths)
    lacking[0, 64] = 12
    with pytest.raises(ValueError, match="does not hold the words"):
        huffman_probe.cpu(lacking, offsets, blocks, keys, firsts, rows, masks, keys[:1], 3, 10, 10)
