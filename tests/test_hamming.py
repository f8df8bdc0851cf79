"""The Hamming-distance problem: table designs of the paper, answers against brute force, the index and its file."""

import itertools
import math
import sys
from functools import partial

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from strategies import fingerprints, inputs

from neardup_gpu import Recipe, SimhashRecipe
from neardup_gpu.errors import (
    InputError,
    NeardupError,
    OutputError,
    ParameterError,
    RecipeMismatchError,
    ResourceError,
)
from neardup_gpu.hamming import index as hamming
from neardup_gpu.hamming.index import HammingIndex, TableDesign
from neardup_gpu.kernels import _matches, hamming as kernel, hamming_probe, hamming_table, huffman_encode
from neardup_gpu.kernels._bits import count_bits, moves, plan
from neardup_gpu.kernels._launch import to_host
from neardup_gpu.kernels._search import interpolation_search
from neardup_gpu.store import arrays as index_file, outputs
from neardup_gpu.store.arrays import IndexFile

# ------------------------------------------------------------------------------------------------------ table designs


def runs(mask, bits=64):
    """The bits of a mask as (first, last) places of its runs, counted from the highest bit."""
    text = f"{mask:0{bits}b}"
    return [
        (group[0], group[-1])
        for bit, places in itertools.groupby(range(bits), key=lambda place: text[place])
        if bit == "1"
        for group in [list(places)]
    ]


def mask_of(*ranges):
    """A mask of some ranges [start, stop) of places, counted from the highest bit."""
    return sum(1 << 63 - place for start, stop in ranges for place in range(start, stop))


def chosen_blocks(sizes, number):
    """A mask for each choice of `number` of the blocks."""
    ends = np.cumsum([0, *sizes]).tolist()
    each = list(zip(ends[:-1], ends[1:], strict=True))
    return [mask_of(*choice) for choice in itertools.combinations(each, number)]


def test_the_20_tables_of_example_3_1():
    design = TableDesign(64, 3, 31)
    assert list(design.masks) == chosen_blocks([11, 11, 11, 11, 10, 10], 3)
    assert {mask.bit_count() for mask in design.masks} == {31, 32, 33}
    assert design.num_tables == 20


def test_the_16_tables_of_example_3_1():
    design = TableDesign(64, 3, 28)
    expected = []
    for block in range(4):
        rest = [place for place in range(64) if place // 16 != block]
        for second in range(4):
            leading = [*range(16 * block, 16 * block + 16), *rest[12 * second : 12 * second + 12]]
            expected.append(sum(1 << 63 - place for place in leading))
    assert list(design.masks) == expected
    assert {mask.bit_count() for mask in design.masks} == {28}


def test_the_10_tables_of_example_3_1():
    design = TableDesign(64, 3, 25)
    assert list(design.masks) == chosen_blocks([13, 13, 13, 13, 12], 2)
    assert {mask.bit_count() for mask in design.masks} == {25, 26}


def test_the_4_tables_of_example_3_1():
    design = TableDesign(64, 3, 16)
    assert list(design.masks) == chosen_blocks([16] * 4, 1)
    assert [f"{mask:016x}" for mask in design.masks] == [
        "ffff000000000000", "0000ffff00000000", "00000000ffff0000", "000000000000ffff",
    ]  # fmt: skip


def test_the_recurrence_gives_the_numbers_of_tables_of_example_3_1():
    steps = [hamming.num_tables(64, 3, prefix) for prefix in range(1, 32)]
    assert steps == [4] * 16 + [10] * 9 + [16] * 3 + [20] * 3
    assert hamming.num_tables(64, 3, 0) == 1


def test_designs_with_as_many_tables_are_one_design():
    assert TableDesign(64, 3, 1) == TableDesign(64, 3, 16)
    assert TableDesign(64, 3, 17).prefix == 25
    assert TableDesign(64, 0, 1).masks == (2**64 - 1,)
    assert TableDesign(64, 3, 0).masks == (0,) and TableDesign(64, 3, 0).prefix == 0


@pytest.mark.parametrize("bits", [1, 2, 5, 9, 12])
def test_whatever_bits_differ_some_table_has_none_of_them(bits):
    for radius in range(min(bits, 5)):
        for prefix in range(bits - radius + 1):
            design = TableDesign(bits, radius, prefix)
            assert len(design.masks) == design.num_tables
            assert min(mask.bit_count() for mask in design.masks) == design.prefix >= prefix
            for places in itertools.combinations(range(bits), radius):
                differ = sum(1 << place for place in places)
                assert any(differ & mask == 0 for mask in design.masks)


@pytest.mark.parametrize("radius", range(9))
def test_random_differences_of_64_and_128_bits_miss_some_table(radius):
    generator = np.random.default_rng(radius)
    for bits in (64, 128):
        for prefix in range(0, bits // 4 if radius < 5 else 15, 5):
            masks = TableDesign(bits, radius, prefix).masks
            for _ in range(200):
                differ = sum(1 << int(place) for place in generator.choice(bits, radius, replace=False))
                assert any(differ & mask == 0 for mask in masks)


def test_a_design_takes_no_more_tables_than_any_split_into_blocks():
    for radius in range(6):
        for number in range(radius + 1, 14):
            sizes = hamming.blocks(64, number)
            prefix = sum(sizes[radius:])
            assert hamming.num_tables(64, radius, prefix) <= math.comb(number, radius)


@pytest.mark.parametrize("wrong", [(64, -1, 0), (64, 64, 0), (64, 3, 62), (64, 3, -1), (0, 0, 0)])
def test_impossible_designs(wrong):
    with pytest.raises(ParameterError, match=r"no tables of|bits 0 is outside"):
        TableDesign(*wrong)


def test_more_fingerprints_or_queries_take_longer_prefixes_and_less_memory_fewer_tables():
    chosen = [hamming.choose(n, 3, num_queries=10 * n).prefix for n in (10, 10**4, 10**7, 10**8, 10**9, 2**34)]
    assert chosen == sorted(chosen) and chosen[0] == 0 and chosen[-1] >= 25
    assert hamming.choose(2**34, 3, num_queries=1).prefix < chosen[-1]
    small = hamming.choose(2**34, 3, num_queries=10**12, memory=5 * 12 * 2**34)
    assert small.num_tables <= 5 and small.memory(2**34) <= 5 * 12 * 2**34


def test_the_choice_is_the_cheapest():
    for n, queries in ((10**6, 10**5), (10**9, 10**10)):
        best = hamming.cost(hamming.choose(n, 3, num_queries=queries), n, queries)
        assert all(best <= hamming.cost(TableDesign(64, 3, prefix), n, queries) for prefix in range(40))


def test_buckets_of_random_fingerprints_stay_below_the_limit():
    design = hamming.choose(10**7, 3, num_queries=0, bucket_limit=100)
    assert 10**7 / 2**design.prefix < 100
    with pytest.raises(ParameterError, match="of 1,000 fingerprints with 100 bytes of memory; take a smaller radius"):
        hamming.choose(1000, 3, num_queries=1, memory=100)
    with pytest.raises(ParameterError, match="of 300,000 fingerprints with buckets of at most 512"):
        hamming.pairs(np.arange(300_000, dtype=np.uint64), 32)


# --------------------------------------------------------------------------------------- every radius, brute force


def of_integers(values, num_words):
    """Integers as fingerprints of so many words, the higher one first."""
    if num_words == 1:
        return np.array(values, np.uint64)
    return np.array([(value >> 64, value & 2**64 - 1) for value in values], np.uint64).reshape(-1, 2)


def random_words(generator, number, num_words):
    values = generator.integers(0, 2**64, (number, num_words), np.uint64)
    return values if num_words == 2 else values[:, 0].copy()


def planted(generator, radius, num_words=1, number=250):
    """Random fingerprints; near each of some of them one at every distance from 0 to beyond the radius."""
    values = [int.from_bytes(generator.bytes(8 * num_words)) for _ in range(number)]
    for centre in values[:12]:
        for distance in range(radius + 3):
            places = generator.choice(64 * num_words, distance, replace=False)
            values.append(centre ^ sum(1 << int(place) for place in places))
    return of_integers(values, num_words)


def adversarial(generator, radius, num_words=1):
    """Fingerprints that differ in one block only, all ones and zeros and what is next to them, and repeats."""
    bits = 64 * num_words
    block = int(generator.integers(0, bits // 16)) * 16
    values = [int(value) << block for value in generator.integers(0, 2**16, 120)]
    values += [0, 2**bits - 1, 1, 2 ** (bits - 1), 2**bits - 2, 2 ** (bits - 1) - 1]
    values += [2**distance - 1 for distance in range(radius + 2)]
    values += [(2**distance - 1) << bits - distance for distance in range(radius + 2)]
    return of_integers(values + [0] * 5 + [2**bits - 1] * 5, num_words)


def one_word_alike(generator, radius, num_words):
    """Crowds that one word divides and the other does not; of one word, one that half of the bits divide."""
    words = random_words(generator, 60, 2) & np.uint64(2**64 - 1 if num_words == 2 else 2**32 - 1)
    words[::2, 0], words[1::3, 1] = words[0, 0], words[1, 1]
    return words if num_words == 2 else words[:, 0] << np.uint64(32) | words[:, 1]


CASES = {
    "random": lambda generator, radius, num_words: random_words(generator, 200, num_words),
    "planted": planted,
    "adversarial": adversarial,
    "one word alike": one_word_alike,
    "all equal": lambda generator, radius, num_words: np.repeat(random_words(generator, 1, num_words), 50, axis=0),
    "all but equal": lambda generator, radius, num_words: of_integers(
        [1 << at for at in range(64 * num_words)], num_words
    ),
    "none": lambda generator, radius, num_words: random_words(generator, 0, num_words),
    "one": lambda generator, radius, num_words: of_integers([2 ** (64 * num_words) - 1], num_words),
}


def brute(left, right, radius):
    """Every (row of left, row of right, distance) within the radius, in order."""
    distance = np.bitwise_count(left[:, None] ^ right[None, :])
    if left.ndim == 2:
        distance = distance.sum(axis=2, dtype=np.uint8)
    rows = np.argwhere(distance <= radius)
    return [(a, b, int(distance[a, b])) for a, b in rows.tolist()]


def brute_pairs(values, radius):
    """Every (row, later row, distance) within the radius, in order."""
    return [pair for pair in brute(values, values, radius) if pair[0] < pair[1]]


def rows_of(found):
    """All (left, right, distance) of a `NearPairs`, or (row, query, distance) of `Matches`."""
    return list(zip(found[0].tolist(), found[1].tolist(), found[2].tolist(), strict=True))


@pytest.mark.parametrize("num_words", [1, 2])
def test_few_fingerprints_are_compared_all_with_all_where_tables_cost_more(num_words):
    """From a quarter of the bits on; whatever the limit, as nothing is left out then."""
    values = planted(np.random.default_rng(12), 20, num_words)
    radius = 16 * num_words
    found = hamming.pairs(values, radius, bucket_limit=10, bucket_probe=2, collapse=False)
    assert (found.design.num_tables, found.num_large) == (1, 0)
    assert rows_of(found) == brute_pairs(values, radius)
    assert hamming.pairs(values, radius - 1, bucket_limit=10).design.num_tables > 1


@pytest.mark.parametrize("num_words", [1, 2])
def test_what_tables_find_again_is_not_held_again(num_words, monkeypatch):
    """With large buckets each of 66 tables finds the pairs of one crowd; at most three times as many are held."""
    generator = np.random.default_rng(13)
    crowd = [1 << int(place) for place in generator.integers(0, 40, 300)]  # two bits from one another at most
    values = of_integers(crowd + [int.from_bytes(generator.bytes(8 * num_words)) for _ in range(100)], num_words)
    design = TableDesign(64 * num_words, 10, 12)
    most, drop_repeats = [], _matches.Matches._drop_repeats

    def noted(matches):
        most.append(matches.num_held)
        drop_repeats(matches)

    monkeypatch.setattr(kernel, "Matches", partial(_matches.Matches, at_least=0))
    monkeypatch.setattr(_matches.Matches, "_drop_repeats", noted)
    found = hamming.pairs(values, 10, design=design, bucket_limit=299, collapse=False)
    expected = kernel.reference(values, design.array, 10, 299, hamming.BUCKET_PROBE)
    assert rows_of(found) == rows_of(expected) and found.num_large == expected[3] > 2
    assert len(most) > 3 and max(most) <= 3 * len(found.left)


def expanded(found):
    """All pairs of rows that a `NearPairs` of collapsed fingerprints stands for."""
    members = {}
    for row, first in enumerate(found.first.tolist()):
        members.setdefault(first, []).append(row)
    every = {pair: 0 for rows in members.values() for pair in itertools.combinations(rows, 2)}
    for a, b, distance in rows_of(found):
        if distance:
            for pair in itertools.product(members[a], members[b]):
                every[tuple(sorted(pair))] = distance
    return [(a, b, every[a, b]) for a, b in sorted(every)]


def as_integers(values):
    return values.tolist() if values.ndim == 1 else [high << 64 | low for high, low in values.tolist()]


def answers(index, queries, radius):
    """(row, query, distance) of what an index answers to queries together, which are as one by one."""
    ids, distances = index.query(queries, radius)
    every = max(1, len(queries) // 20)
    for number, query in list(enumerate(as_integers(queries)))[::every]:
        one_ids, one_distances = index.query(query, radius)
        np.testing.assert_array_equal(one_ids, ids[number])
        np.testing.assert_array_equal(one_distances, distances[number])
    found = []
    for query in range(len(queries)):
        assert (np.diff(distances[query].astype(int)) >= 0).all()
        columns = zip(ids[query].tolist(), distances[query].tolist(), strict=True)
        found += [(row, query, distance) for row, distance in columns]
    return sorted(found)


def designs(radius, bits=64):
    """Those of few enough tables, shortest prefix first."""
    found, prefix = [], 0
    while prefix <= min(64, bits - radius) and hamming.num_tables(bits, radius, prefix) <= 100:
        found.append(TableDesign(bits, radius, prefix))
        prefix = found[-1].prefix + 1
    return found


@pytest.fixture
def one_thread():
    """For many small inputs: to wake the others takes longer than the work. `test_agreement` has them all."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.mark.parametrize("radius", range(9))
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bits", [64, 128])
def test_every_design_finds_what_brute_force_finds(radius, case, bits, one_thread):
    generator = np.random.default_rng([radius, list(CASES).index(case), bits])
    values = CASES[case](generator, radius, bits // 64)
    queries = np.concatenate([values[::3], of_integers([0, 2**bits - 1], bits // 64)])
    expected, expected_of_set = brute(values, queries, radius), brute_pairs(values, radius)
    for design in designs(radius, bits):
        options = {"design": design, "bucket_limit": 10**6}
        assert expanded(hamming.pairs(values, radius, **options)) == expected_of_set
        assert rows_of(hamming.pairs(values, radius, collapse=False, **options)) == expected_of_set
        assert rows_of(hamming.join(values, queries, radius, **options)) == expected
        assert answers(HammingIndex(values, radius, design=design), queries, radius) == expected


@pytest.mark.parametrize(("bits", "radius"), [(4, 0), (5, 1), (8, 2), (7, 3), (9, 4), (9, 5), (8, 6), (9, 7), (10, 8)])
def test_every_design_of_few_bits_finds_all_pairs_of_all_fingerprints(bits, radius, one_thread):
    values = np.arange(2**bits, dtype=np.uint64)
    expected = brute_pairs(values, radius)
    for prefix in range(bits - radius + 1):
        masks = np.array(TableDesign(bits, radius, prefix).masks, np.uint64)
        assert rows_of(kernel.cpu(values, masks, radius, kernel.NO_LIMIT, 0)) == expected
        scattered = values << np.uint64(64 - bits), masks << np.uint64(64 - bits)
        assert rows_of(kernel.cpu(*scattered, radius, kernel.NO_LIMIT, 0)) == expected


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_backends_find_the_same(backend, bits):
    values = planted(np.random.default_rng(1), 3, bits // 64, 60)
    some = values[:40]
    assert expanded(hamming.pairs(values, 3, backend=backend)) == brute_pairs(values, 3)
    assert answers(HammingIndex(values, 3, backend=backend), some, 3) == brute(values, some, 3)
    assert rows_of(hamming.join(values, some, 3, backend=backend)) == brute(values, some, 3)


@pytest.mark.parametrize("num_words", [1, 2])
@settings(max_examples=40, deadline=None)
@given(data=st.data(), radius=st.integers(0, 8))
def test_batch_equals_online_equals_join_equals_brute_force(num_words, data, radius):
    values, queries = data.draw(fingerprints(num_words)), data.draw(fingerprints(num_words))
    expected = brute(values, queries, radius)
    index = HammingIndex(values, radius)
    assert answers(index, queries, radius) == expected
    joined = hamming.join(values, queries, radius, bucket_limit=1000)
    assert rows_of(joined) == expected and joined.num_large == joined.num_uncompared == 0
    in_one_set = hamming.pairs(values, radius, bucket_limit=1000, collapse=False)
    assert rows_of(in_one_set) == brute_pairs(values, radius)
    if radius:
        assert answers(index, queries, radius - 1) == [match for match in expected if match[2] < radius]


@settings(max_examples=40, deadline=None)
@given(arguments=inputs("hamming_probe"))
def test_few_queries_are_answered_as_many(arguments):
    few, found = hamming_probe._FEW, []
    try:
        for hamming_probe._FEW in (0, 2**40):
            found.append(hamming_probe.cpu(*arguments))
    finally:
        hamming_probe._FEW = few
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_interpolation_search_finds_the_place_in_any_order_of_sizes():
    generator = np.random.default_rng(5)
    for values in (
        generator.integers(0, 2**64, 50_000, np.uint64),
        np.uint64(2) ** generator.integers(0, 64, 5000, np.uint64),
        np.concatenate([np.zeros(4000, np.uint64), generator.integers(2**64 - 5000, 2**64, 4000, np.uint64)]),
        np.full(3000, 2**64 - 1, np.uint64),
    ):
        values.sort()
        extremes = np.array([0, 2**64 - 1], np.uint64)
        for key in np.concatenate([values[::97], generator.integers(0, 2**64, 200, np.uint64), extremes]):
            assert interpolation_search(values, key, 0, len(values)) == np.searchsorted(values, key)


# ------------------------------------------------------------------------------------------------------------- batches


def test_repeats_are_pairs_with_their_first_alone():
    values = np.array([5, 9, 5, 4, 5, 9, 2**64 - 1], np.uint64)
    found = hamming.pairs(values, 1)
    assert list(zip(found.left, found.right, found.distance, strict=True)) == [
        (0, 2, 0), (0, 3, 1), (0, 4, 0), (1, 5, 0),
    ]  # fmt: skip
    assert found.first.tolist() == [0, 1, 0, 3, 0, 1, 6]
    assert (found.left.dtype, found.right.dtype, found.distance.dtype) == (np.int64, np.int64, np.uint8)


def test_a_million_empty_pages_are_a_million_pairs():
    values = np.zeros(10**6, np.uint64)
    found = hamming.pairs(values, 3)
    assert len(found.left) == 10**6 - 1 and not found.left.any() and found.num_large == 0


def test_identical_fingerprints_that_do_not_collapse_are_rows_like_others():
    values = np.array([5, 9, 5, 4, 5], np.uint64)
    found = hamming.pairs(values, 1, collapse=False)
    assert rows_of(found) == [(0, 2, 0), (0, 3, 1), (0, 4, 0), (2, 3, 1), (2, 4, 0), (3, 4, 1)]
    assert found.first.tolist() == [0, 1, 2, 3, 4]
    crowd = hamming.pairs(np.zeros(1000, np.uint64), 3, collapse=False, design=TableDesign(64, 3, 16))
    assert rows_of(crowd) == [(a, b, 0) for a in range(32) for b in range(a + 1, 1000)]
    assert (crowd.num_large, crowd.num_uncompared) == (4, 4 * (968 * 967 // 2))


@pytest.mark.parametrize("num_words", [1, 2])
def test_crowded_buckets_are_compared_with_their_first_alone_and_counted(num_words):
    """2**16 fingerprints that differ in one block only: they are one bucket of every table but one."""
    values = of_integers([value << 16 for value in range(2**16)], num_words)
    design = TableDesign(64 * num_words, 3, 16 * num_words)
    crowded = sum(mask & 0xFFFF << 16 == 0 for mask in design.masks)
    assert (design.num_tables, crowded) == (4, 3)
    options = {"design": design, "bucket_limit": 512, "bucket_probe": 32}
    found, rest = hamming.pairs(values, 3, **options), 2**16 - 32
    assert found.num_large == 3 and found.num_uncompared == 3 * rest * (rest - 1) // 2
    expected = [pair for pair in brute(values[:32], values, 3) if pair[0] < pair[1]]
    assert rows_of(found) == expected
    joined = hamming.join(values[:100], values, 3, **options)
    assert joined.num_large == 300 and joined.num_uncompared == 300 * rest
    near_first = [match for match in brute(values[:100], values, 3) if match[1] < 32 or match[0] == match[1]]
    assert rows_of(joined) == near_first


def test_of_very_many_identical_queries_the_first_are_named_and_the_others_counted():
    queries = np.array([7] * 10 + [8] + [6] * 9 + [2**40], np.uint64)
    options = {"bucket_limit": 9, "bucket_probe": 4}
    found = hamming.join(np.array([7, 2**50, 6, 7], np.uint64), queries, 1, **options)
    sevens, sixes = list(range(4)), list(range(11, 20))
    expected = [(row, query, 0) for row in (0, 3) for query in sevens]
    expected += [(row, query, 1) for row in (0, 3) for query in sixes]
    expected += [(2, query, 1) for query in sevens] + [(2, query, 0) for query in sixes]
    assert rows_of(found) == sorted(expected)
    assert (found.num_large, found.num_uncompared) == (3, 3 * 6)
    whole = hamming.join(np.zeros(5000, np.uint64), np.zeros(700, np.uint64), 3)
    assert len(whole.row) == 5000 * 32 and whole.query.max() == 31
    assert (whole.num_large, whole.num_uncompared) == (5000, 5000 * 668)


@pytest.mark.parametrize("num_words", [1, 2])
def test_chunks_of_a_file_are_scanned_one_after_another(tmp_path, num_words):
    generator = np.random.default_rng(2)
    values, queries = planted(generator, 3, num_words), planted(generator, 3, num_words)
    values = np.concatenate([values, queries[-40:], values[:9]])
    queries = np.concatenate([queries, queries[:5]])
    np.save(tmp_path / "existing.npy", values)
    chunks = list(hamming.read_chunks(tmp_path / "existing.npy", chunk_bytes=8 * num_words * 100 + 7))
    assert [len(chunk) for chunk in chunks] == [100] * (len(values) // 100) + [len(values) % 100]
    assert np.array_equal(np.concatenate(chunks), values)
    found = list(hamming.scan(chunks, queries, 3))
    assert len(found) == len(chunks)
    assert [match for part in found for match in rows_of(part)] == brute(values, queries, 3)
    assert list(hamming.scan([], queries, 3)) == []


def test_files_that_hold_no_fingerprints(tmp_path):
    path = tmp_path / "x.npy"
    with pytest.raises(InputError, match="no such file"):
        list(hamming.read_chunks(path))
    path.write_text("text")
    with pytest.raises(InputError, match="cannot be read as"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros(5))
    with pytest.raises(InputError, match="holds float64"):
        list(hamming.read_chunks(path))
    for shape in ((4, 3), (2, 2, 2), ()):
        np.save(path, np.zeros(shape, np.uint64))
        with pytest.raises(InputError, match=r"fingerprints are uint64 of shape \(rows,\) or \(rows, 2\)"):
            list(hamming.read_chunks(path))
    np.save(path, np.zeros((4, 2), np.uint64, order="F"))
    with pytest.raises(InputError, match="column by column"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros((50, 2), np.uint64))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="ends 3 fingerprints early"):
        list(hamming.read_chunks(path))
    np.save(path, np.zeros(500, np.uint64))
    path.write_bytes(path.read_bytes()[:-80])
    with pytest.raises(InputError, match="ends 10 fingerprints early"):
        list(hamming.read_chunks(path))
    np.save(path, np.arange(5, dtype=">u8"))
    assert [chunk.tolist() for chunk in hamming.read_chunks(path)] == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3), np.zeros(3, np.int64), np.zeros((2, 3), np.uint64), np.zeros((2, 2, 2), np.uint64), 7, [1, -1],
        [2**64], ["a"], [1.0], [(1, 2, 3)], [(1, -2)], [(1, 2), 3], pa.array([1, None], pa.uint64()), pa.array([1, 2]),
        pa.array([[1, 2], None], pa.list_(pa.uint64(), 2)), pa.array([[1, None]], pa.list_(pa.uint64(), 2)),
    ],
)  # fmt: skip
def test_what_is_no_set_of_fingerprints(wrong):
    for call in (lambda: hamming.pairs(wrong, 3), lambda: hamming.join(wrong, [1], 3), lambda: HammingIndex(wrong, 3)):
        with pytest.raises(NeardupError, match="fingerprints:"):
            call()


def test_lists_of_integers_are_fingerprints():
    assert hamming.pairs([0, 2**64 - 1, 1], 1).right.tolist() == [2]
    assert len(hamming.pairs([], 1).left) == 0
    assert hamming.pairs([(1, 0), (5, 2**64 - 1), (1, 2**63)], 1).right.tolist() == [2]


@pytest.mark.parametrize("chunked", [False, True])
def test_what_notebooks_hold_is_fingerprints(chunked):
    values = [0, 2**64 - 1, 1]
    wide = [[7, 0], [0, 2**64 - 1], [7, 1]]
    one, two = pa.array(values, pa.uint64()), pa.array(wide, pa.list_(pa.uint64(), 2))
    if chunked:
        one, two = (pa.chunked_array([array[:2], array[2:]]) for array in (one, two))
    for held in (one, np.array(values, object), tuple(values)):
        assert hamming.pairs(held, 1).right.tolist() == [2]
        assert HammingIndex(held, 1).query(2**64 - 1)[0].tolist() == [1]
    objects = np.empty(3, object)
    objects[:] = [np.array(pair, np.uint64) for pair in wide]
    for held in (two, two.slice(0), objects):
        assert hamming.pairs(held, 1).right.tolist() == [2]
        assert HammingIndex(held, 1).query(7 << 64)[0].tolist() == [0, 2]
    assert hamming.pairs(two.slice(1), 63).right.tolist() == []
    assert hamming.pairs(one.slice(1), 63).right.tolist() == [1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_are_fingerprints(library):
    frames = pytest.importorskip(library)
    series = frames.Series(np.array([0, 2**64 - 1, 1], np.uint64))
    assert hamming.pairs(series, 1).right.tolist() == [2]
    assert HammingIndex(series, 1, ids=series).query(2**64 - 1)[0].tolist() == [2**64 - 1]
    wide = pa.array([[7, 0], [0, 2**64 - 1], [7, 1]], pa.list_(pa.uint64(), 2))
    table = pa.table({"simhash": wide})
    series = (table.to_pandas() if library == "pandas" else frames.from_arrow(table))["simhash"]
    assert hamming.pairs(series, 1).right.tolist() == [2]
    with pytest.raises(ParameterError, match="fingerprints:"):
        hamming.pairs(frames.Series([1, None]), 1)


@pytest.mark.parametrize("radius", [-1, 64, 100, 2.5])
def test_impossible_radius(radius):
    for call in (hamming.pairs, lambda values, radius: hamming.join(values, [1], radius), HammingIndex):
        with pytest.raises(NeardupError, match=f"radius:? {radius} is (outside 0 to 63|no whole number)"):
            call([1, 2], radius)


def test_a_design_for_a_smaller_radius_is_refused():
    for call in (hamming.pairs, HammingIndex):
        with pytest.raises(ParameterError, match="a design for radius 2 misses"):
            call([1, 2], 3, design=TableDesign(64, 2, 5))
    for call in (hamming.pairs, HammingIndex):
        for bits in (12, 128):
            with pytest.raises(ParameterError, match=f"a design of {bits} bits: fingerprints have 64"):
                call([1, 2], 3, design=TableDesign(bits, 3, 5))
    with pytest.raises(ParameterError, match="a design of 64 bits: fingerprints have 128"):
        hamming.pairs([(1, 2)], 3, design=TableDesign(64, 3, 5))


def test_fingerprints_of_two_lengths_do_not_meet():
    narrow, wide = np.zeros(3, np.uint64), np.zeros((3, 2), np.uint64)
    with pytest.raises(ParameterError, match="a chunk: of 64 bits, where 128 are asked for"):
        hamming.join(narrow, wide, 3)
    with pytest.raises(ParameterError, match="a chunk: of 128 bits, where 64 are asked for"):
        hamming.join(wide, narrow, 3)
    with pytest.raises(ParameterError, match="fingerprints: of 128 bits, where 64 are asked for"):
        HammingIndex(narrow, 3).query(wide)
    with pytest.raises(ParameterError, match="fingerprints: of 64 bits, where 128 are asked for"):
        HammingIndex(wide, 3).query(narrow)


def test_designs_of_128_bits_lead_with_64_at_most():
    assert TableDesign(128, 0, 1).masks == (2**64 - 1 << 64,)
    assert TableDesign(128, 3, 62).prefix == 63
    assert max(mask.bit_count() for prefix in range(0, 65, 4) for mask in TableDesign(128, 2, prefix).masks) == 64
    with pytest.raises(ParameterError, match="65 leading bits: a table has room for 64"):
        TableDesign(128, 3, 65)
    chosen = [hamming.choose(n, 3, bits=128, num_queries=n) for n in (10, 10**6, 10**9)]
    assert [(design.bits, design.prefix) for design in chosen] == [(128, 0), (128, 32), (128, 32)]
    assert chosen[1].memory(10**6) == (12 * chosen[1].num_tables + 16) * 10**6


# --------------------------------------------------------------------------------------------------------------- index


@pytest.mark.parametrize("ids", [["a", "bb", "ccc"], [2**63, 1, 2], np.array([b"x", b"y", b"z"]), None])
def test_answers_are_the_callers_ids(ids, tmp_path):
    index = HammingIndex([7, 8, 2**63], 1, ids)
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        found, distance = each.query(5)
        assert found.tolist() == [0 if ids is None else ids[0]] and distance.tolist() == [1]
        found, distance = each.query([2**63 + 1, 3, 100])
        assert [len(row) for row in (found[0], found[1], found[2])] == [1, 1, 0]
        assert found[0].tolist() == [2 if ids is None else ids[2]]


def test_integers_ask_an_index_of_128_bits(tmp_path):
    index = HammingIndex([(1, 5), (2**63, 1), (1, 4)], 1, ["a", "b", "c"])
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        ids, distances = each.query((1 << 64) + 5)
        assert ids.tolist() == ["a", "c"] and distances.tolist() == [0, 1]
        ids, distances = each.query([1 << 127, 5])
        assert [ids[0].tolist(), ids[1].tolist()] == [["b"], ["a"]] and distances[1].tolist() == [1]
        with pytest.raises(ParameterError, match="outside 0 to 2\\*\\*128"):
            each.query(2**128)


def test_nearest():
    index = HammingIndex([0, 1, 3, 7, 0], 3)
    ids, distances = index.nearest(0, 3)
    assert ids.tolist() == [0, 4, 1] and distances.tolist() == [0, 0, 1]
    ids, distances = index.nearest(np.array([7, 2**60, 2**64 - 1], np.uint64), 2)
    assert [ids[i].tolist() for i in range(3)] == [[3, 2], [0, 4], []]
    assert [distances[i].tolist() for i in range(3)] == [[0, 1], [1, 1], []]
    with pytest.raises(ParameterError, match="count 0"):
        index.nearest(0, 0)


def test_a_query_has_at_most_the_radius_of_the_index():
    index = HammingIndex([0, 1, 3, 7], 2)
    assert index.query(0, 1)[0].tolist() == [0, 1]
    with pytest.raises(ParameterError, match="radius 3 is outside 0 to 2"):
        index.query(0, 3)
    for wrong in (-1, 2**64):
        with pytest.raises(ParameterError, match="outside 0 to 2"):
            index.query(wrong)


def test_ids_that_do_not_fit():
    with pytest.raises(ParameterError, match="ids: 2 for 3"):
        HammingIndex([1, 2, 3], 1, ids=["a", "b"])
    for wrong in ([1.5, 2, 3], [None, "a", "b"], np.array([1.0, 2.0, 3.0]), [2**64, 1, 2], np.zeros((3, 2), int)):
        with pytest.raises(ParameterError, match="one integer or string"):
            HammingIndex([1, 2, 3], 1, ids=wrong)
    for wrong, says in (
        (["a", "b", b"c"], "both strings and bytes"),
        (["a", "b", 3], "one integer or string"),
        (pa.array(["a", None, "b"]), "with nulls"),
        (pa.array([1.0, 2.0, 3.0]), "double"),
        (pa.array([[b"a"]] * 3), "list<"),
        (["a", "b", "\ud800"], "no Unicode text"),
    ):
        with pytest.raises(ParameterError, match=f"ids: .*{says}"):
            HammingIndex([1, 2, 3], 1, ids=wrong)


EXACT = ["", "a\0", "a", "\0\0", "ü€", "x" * 4000, "a\0\0"]


@pytest.mark.parametrize(
    "ids",
    [
        EXACT,
        np.array(EXACT, object),
        [text.encode() for text in EXACT],
        pa.array(EXACT),
        pa.array(EXACT, pa.large_string()),
        pa.array(EXACT, pa.string_view()),
        pa.array(EXACT).dictionary_encode(),
        pa.array(["more", *EXACT, "more"]).slice(1, len(EXACT)),
        pa.chunked_array([EXACT[:3], EXACT[3:]]),
        pa.array([b"a\0", b"b\0", b"\0\0", b"cc", b"dd", b"ee", b"ff"], pa.binary(2)),
        pa.array([text.encode() for text in EXACT]),
        pa.array([text.encode() for text in EXACT], pa.binary_view()),
        np.array([-5, 3, 2, 7, 100, -128, 0], np.int8),
        np.array([-5, 3, 2, 7, 100, -128, 0], ">i4"),
        pa.array([9, 8, 7, 6, 5, 4, 2**64 - 1], pa.uint64()).slice(0, 7),
    ],
    ids=lambda ids: str(getattr(ids, "type", getattr(ids, "dtype", type(ids[0]).__name__)))[:20],
)
def test_ids_stay_what_they_are(ids, tmp_path):
    wanted = ids if isinstance(ids, list) else (ids.to_pylist() if hasattr(ids, "to_pylist") else ids.tolist())
    values = np.uint64(1) << np.arange(0, 63, 9, dtype=np.uint64)
    index = HammingIndex(values, 0, ids)
    index.save(tmp_path / "index")
    integers = isinstance(wanted[0], int)
    for each in (index, HammingIndex.load(tmp_path / "index")):
        found = [each.query(int(value))[0] for value in values]
        assert [one.tolist() for one in found] == [[id] for id in wanted]
        assert [type(one[0]) for one in each.query(values)[0]] == [type(one[0]) for one in found]
        rows = np.array([5, 0, 5])
        assert each.ids.arrow(rows).to_pylist() == [wanted[row] for row in rows]
        if integers:
            assert found[0].dtype == np.dtype(getattr(ids, "dtype", np.uint64)).newbyteorder("=")
        else:
            size = sum(len(id.encode() if isinstance(id, str) else id) for id in wanted)
            assert sum(array.nbytes for array in each.ids.arrays.values()) == 8 * (len(wanted) + 1) + size


def test_damaged_ids_are_not_answered(tmp_path):
    values = np.array([0, 2**32 - 1, 2**63], np.uint64)
    for name, new in (
        ("id_offsets", np.array([0, 2**40, 4, 6], np.int64)),
        ("id_offsets", np.array([-9, 2, 4, 6], np.int64)),
        ("id_offsets", np.array([5, 2, 4, 6], np.int64)),
        ("id_values", np.full(6, 255, np.uint8)),
    ):
        index, path = HammingIndex(values, 1, ["ab", "cd", "ef"]), tmp_path / "index"
        index.save(path, overwrite=True)
        forged(path, **{name: new})
        broken = HammingIndex.load(path)
        for ask in (broken.query, lambda row, broken=broken: broken.ids.arrow(np.array([row]))):
            with pytest.raises(InputError, match="the index is damaged"):
                ask(0)


# -------------------------------------------------------------------------------------------------------------- crowds


def crowded(num_words):
    """A few fingerprints within 2 bits of one another, each many times, in turn and at random; and others."""
    generator = np.random.default_rng(11)
    near = of_integers([0, 1, 2, 3, 1 << 40], num_words)
    return np.concatenate([near, near[generator.integers(0, 5, 300)], planted(generator, 2, num_words, 40), near[:2]])


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("part", [1, 100, 1000, 2**22])
@pytest.mark.parametrize("compress", [False, True])
def test_crowds_are_answered_in_parts_as_by_brute_force(num_words, part, compress, tmp_path, monkeypatch):
    monkeypatch.setattr(hamming, "PART", part)
    values = crowded(num_words)
    queries = np.concatenate([values[:8], values[[0, 0, 3]], values[-20:]])
    expected = [(query, distance, row) for row, query, distance in brute(values, queries, 2)]
    index = HammingIndex(values, 2, compress=compress)
    assert len(index) == len(values) > len(index.tables) + 300
    index.save(tmp_path / "index")
    for each in (index, HammingIndex.load(tmp_path / "index")):
        assert len(each) == len(values)
        for count in (None, 1, 2, 30, 1000):
            wanted = [
                match
                for query in range(len(queries))
                for match in sorted(match for match in expected if match[0] == query)[:count]
            ]
            parts = list(each.parts(queries, count=count))
            assert [m for q, r, d in parts for m in zip(q.tolist(), d.tolist(), r.tolist(), strict=True)] == wanted
            assert all(len(q) <= part or len(set(q)) == 1 for q, _, _ in parts)
            ids, distances = each.query(queries) if count is None else each.nearest(queries, count)
            asking = np.repeat(np.arange(len(queries)), ids.sizes).tolist()
            assert list(zip(asking, distances.values.tolist(), ids.values.tolist(), strict=True)) == wanted


def test_the_nearest_of_a_crowd_are_taken_before_it_is_expanded(monkeypatch):
    sizes_of, expand = [], hamming._Members.expand

    def watched(members, numbers, sizes):
        sizes_of.append(int(sizes.sum()))
        return expand(members, numbers, sizes)

    monkeypatch.setattr(hamming._Members, "expand", watched)
    index = HammingIndex(np.full(30_000, 7, np.uint64), 3, np.arange(30_000, dtype=np.int16))
    ids, _ = index.nearest(np.full(500, 5, np.uint64), 1)
    assert ids.values.tolist() == [0] * 500 and ids.values.dtype == np.int16 and sum(sizes_of) == 500
    assert index.num_bytes < 30_000 * 7


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("part", [1, 100, 2**22])
def test_crowds_of_queries_are_scanned_in_parts(num_words, part, monkeypatch):
    queries = crowded(num_words)
    values = np.concatenate([queries[:7], queries[-30:], queries[:3]])
    chunks = [values[:10], values[:0], values[10:]]
    options = {"bucket_limit": 50, "bucket_probe": 20}
    whole = list(hamming.scan(chunks, queries, 2, **options))
    assert len(whole) == 3
    monkeypatch.setattr(hamming, "PART", part)
    parts = list(hamming.scan(chunks, queries, 2, **options))
    assert (len(parts) > 20) == (part == 1) and (len(parts) > 3) == (part < 2**22)
    assert all(len(found.row) <= part or len(set(found.row)) == 1 for found in parts)
    assert [match for found in parts for match in rows_of(found)] == [m for found in whole for m in rows_of(found)]
    for field in ("num_large", "num_uncompared"):
        assert sum(getattr(each, field) for each in parts) == sum(getattr(each, field) for each in whole) > 0
    assert rows_of(hamming.join(values, queries, 2, bucket_limit=1000)) == brute(values, queries, 2)


@pytest.mark.parametrize("name", ["member_offsets", "members"])
def test_damaged_members_are_not_answered(tmp_path, name):
    index, path = saved(tmp_path)
    old = getattr(index.members, {"member_offsets": "offsets", "members": "rows"}[name])
    for new in (np.full_like(old, np.iinfo(old.dtype).max), np.zeros_like(old) if name == "member_offsets" else None):
        if new is not None:
            index.save(path, overwrite=True)
            forged(path, **{name: new})
            with pytest.raises(InputError, match="names rows that it lacks"):
                HammingIndex.load(path).query(planted(np.random.default_rng(3), 3))


@pytest.mark.parametrize("recipe", [Recipe.choose(0.8), {"weights": {1}}, 5, "tf"])
def test_recipes_of_no_simhashes(recipe, tmp_path):
    with pytest.raises(NeardupError, match=r"recipe: .* is (of no simhashes|no JSON)"):
        HammingIndex([1, 2], 1, recipe=recipe)
    _, path = saved(tmp_path)
    with pytest.raises(NeardupError, match=r"recipe: .* is (of no simhashes|no JSON)"):
        HammingIndex.load(path, recipe)


def test_fewer_queries_than_none():
    with pytest.raises(ParameterError, match="num_queries -5"):
        HammingIndex([1, 2], 1, num_queries=-5)


def test_it_says_what_it_is():
    index = HammingIndex([1, 2, 3], 1, recipe={"weights": "<tf>"})
    assert "3 fingerprints" in repr(index)
    shown = index._repr_html_()
    assert "&lt;tf&gt;" in shown and "radius" in shown and len(index) == 3


def saved(folder, recipe=None, num_words=1, compress=False):
    index = HammingIndex(planted(np.random.default_rng(3), 3, num_words), 3, recipe=recipe, compress=compress)
    index.save(folder / "index")
    return index, folder / "index"


@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index_comes_back_from_its_file(tmp_path, num_words):
    index, path = saved(tmp_path, {"tokens": 5}, num_words)
    again = HammingIndex.load(path, {"tokens": 5})
    assert (again.design, again.radius, again.recipe) == (index.design, 3, {"tokens": 5})
    before, after = index.tables.arrays, again.tables.arrays
    assert list(after) == list(before) == ["words", "rows", *["fingerprints"] * (num_words - 1)]
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    header = IndexFile(path).header
    assert list(header["arrays"]) == [*before, "member_offsets", "members"] and header["ids"] is None
    distinct = len(index.tables)
    assert index.num_bytes == again.num_bytes
    assert index.num_bytes == index.design.memory(distinct) + 8 * (distinct + 1) + 4 * len(index)
    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o644 or sys.platform == "win32"
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("compress", [False, True])
def test_an_index_without_fingerprints_comes_back(tmp_path, compress):
    HammingIndex([], 3, compress=compress).save(tmp_path / "index")
    index = HammingIndex.load(tmp_path / "index")
    assert len(index) == 0 and index.query(5)[0].tolist() == []


@pytest.mark.parametrize("num_words", [1, 2])
@pytest.mark.parametrize("prefix", [16, 25, 28, 31])
def test_a_compressed_index_answers_as_another(tmp_path, prefix, num_words):
    """Queries one by one, a few and many, from memory and from its file, and the tables of each design."""
    values = planted(np.random.default_rng(8), 3, num_words)
    design = TableDesign(64 * num_words, 3, prefix)
    plain = HammingIndex(values, 3, design=design)
    HammingIndex(values, 3, design=design, compress=True).save(tmp_path / "index")
    for index in (HammingIndex(values, 3, design=design, compress=True), HammingIndex.load(tmp_path / "index")):
        assert index.tables.compressed and not plain.tables.compressed
        for queries in (values, values[:3], values[:0]):
            for found, expected in zip(index.query(queries), plain.query(queries), strict=True):
                np.testing.assert_array_equal(found.values, expected.values)
                np.testing.assert_array_equal(found.offsets, expected.offsets)
        for value in values[:20]:
            one = int(value) if num_words == 1 else int(value[0]) << 64 | int(value[1])
            for found, expected in zip(index.query(one), plain.query(one), strict=True):
                assert found.tolist() == expected.tolist()
    assert "bits a word" in index._repr_html_()


def test_tables_compressed_one_by_one_are_those_compressed_together():
    values = np.random.default_rng(9).integers(0, 2**64, 1 << 14, np.uint64)
    plain, small = (HammingIndex(values, 3, design=TableDesign(64, 3, 16), compress=c) for c in (False, True))
    for name, array in huffman_encode.cpu(plain.tables.arrays["words"])._asdict().items():
        np.testing.assert_array_equal(small.tables.arrays[name], array)
    assert plain.tables.bits_a_word == 64 > small.tables.bits_a_word
    assert plain.members is None  # what is saved of who has which fingerprint is saved where there are repeats
    assert plain.num_bytes - small.num_bytes == round(4 * (1 << 14) * (64 - small.tables.bits_a_word) / 8)


def test_a_damaged_compressed_index_says_so(tmp_path):
    index, path = saved(tmp_path, compress=True)
    blocks = index.tables.arrays["blocks"].copy()
    blocks[0, 1:].view(np.uint8)[:] = ord("U")
    forged(path, blocks=blocks)
    broken = HammingIndex.load(path)
    with pytest.raises(InputError, match="index is damaged"):
        broken.query(planted(np.random.default_rng(3), 3, 1))


@pytest.mark.parametrize("num_words", [1, 2])
def test_rows_that_an_index_lacks_are_not_answered(tmp_path, num_words):
    index, path = saved(tmp_path, num_words=num_words)
    forged(path, rows=np.full_like(index.tables.arrays["rows"], 2**32 - 1))
    with pytest.raises(InputError, match="names rows that it lacks"):
        HammingIndex.load(path).query(planted(np.random.default_rng(3), 3, num_words))


def test_an_index_replaces_an_index_only(tmp_path):
    index, path = saved(tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        index.save(path)
    index.save(path, overwrite=True)
    path.write_text("dear diary")
    with pytest.raises(OutputError, match="was not written by neardup"):
        index.save(path, overwrite=True)
    assert path.read_text() == "dear diary"


def test_nothing_is_left_of_an_index_that_could_not_be_written(tmp_path, monkeypatch):
    index, path = saved(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(outputs, "sync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OutputError, match="nothing was written"):
        index.save(path, overwrite=True)
    assert path.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["index"]


def test_foreign_recipes_are_refused(tmp_path):
    _, path = saved(tmp_path, {"weights": "tf", "w": 5})
    with pytest.raises(RecipeMismatchError, match="made with weights = 'tf', asked for 'log'"):
        HammingIndex.load(path, {"weights": "log", "w": 5})
    with pytest.raises(RecipeMismatchError, match="made with w = 5, asked for None"):
        HammingIndex.load(path, {"weights": "tf"})


def test_simhashes_of_a_foreign_recipe_are_refused(tmp_path):
    """The radius and who is kept are not what simhashes depend on; the weighting is."""
    recipe = SimhashRecipe(weighting="log", radius=3)
    _, path = saved(tmp_path, recipe)
    again = HammingIndex.load(path, recipe.with_(radius=5, keep="longest", w=7))
    assert again.recipe == recipe.describe() and len(again) > 0
    with pytest.raises(RecipeMismatchError, match="made with weighting = 'log', asked for 'tf'"):
        HammingIndex.load(path, SimhashRecipe(weighting="tf"))


def forged(path, **arrays):
    """Replace some arrays of an index; the checksums are right."""
    file = IndexFile(path)
    arrays = {name: array.copy() for name, array in (file.arrays | arrays).items()}  # which the file may not be
    index_file.write(path, file.header, arrays)


def test_tables_of_another_design_are_refused(tmp_path):
    _, path = saved(tmp_path)
    file = IndexFile(path)
    first, *others = file.header["masks"]
    for masks in ([first[::-1].replace("0", "1"), *others], [first, first, *others], []):
        index_file.write(path, {**file.header, "masks": masks}, {name: a.copy() for name, a in file.arrays.items()})
        with pytest.raises(RecipeMismatchError, match="another design"):
            HammingIndex.load(path)


# ------------------------------------------------------------------------------------------------------------- kernels


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_host(one) if isinstance(other, np.ndarray) else one, other)


@pytest.mark.launches
@pytest.mark.parametrize("max_rows", [3, 10, 39, 1000])
@pytest.mark.parametrize("limit", [0, 4, 1000])
@pytest.mark.parametrize("num_words", [1, 2])
def test_passes_change_nothing_on_a_gpu(max_rows, limit, num_words, monkeypatch):
    """Masks of 64, 4, 1 and no leading bits: of the last there is one pass, whatever its size."""
    monkeypatch.setattr(kernel, "_SLICE", 23)
    generator = np.random.default_rng(max_rows)
    values = generator.choice(planted(generator, 2, num_words, 12), 60)
    masks = of_integers([2**64 - 1, 0xF << 30, 1 << 64 * (num_words - 1), 0], num_words)
    expected = kernel.reference(values, masks, 2, limit, 3)
    same(kernel.gpu(values, masks, 2, limit, 3, max_rows=max_rows), expected)


@pytest.mark.launches
@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index_on_a_gpu_keeps_its_tables_there_if_they_fit(num_words, monkeypatch):
    values = planted(np.random.default_rng(6), 2, num_words, 20)
    for room in (0, 2**30):
        monkeypatch.setattr(hamming, "most_rows", lambda row_bytes, room=room: max(1, room))
        index = HammingIndex(values, 2, backend="gpu")
        assert answers(index, values[:20], 2) == brute(values, values[:20], 2)
        assert (index.tables._resident is None) == (room == 0)
        assert rows_of(hamming.join(values, values[:20], 2, backend="gpu")) == brute(values, values[:20], 2)


def test_masks_of_more_than_a_word_are_refused():
    with pytest.raises(ValueError, match="a mask of more than 64 bits"):
        plan(np.array([[1, 2**64 - 1]], np.uint64))


def test_a_table_keeps_every_bit():
    values = np.random.default_rng(1).integers(0, 2**64, 50, np.uint64)
    for mask in (0, 1, 2**63, 0xFF00FF00FF00FF00, 2**64 - 1, 0x8000000000000001):
        parts = moves(mask)
        assert np.bitwise_or.reduce(parts[:, 0]) == 2**64 - 1
        words, rows = hamming_table.cpu(values, np.uint64(mask), True)
        assert (np.diff(words.astype(object)) >= 0).all()
        np.testing.assert_array_equal(np.bitwise_count(words), np.bitwise_count(values[rows]))


def test_a_word_of_two_rows_has_room_for_both():
    with pytest.raises(ResourceError, match="4,294,967,295 rows"):
        kernel.cpu(np.broadcast_to(np.uint64(0), 2**32 - 1), np.array([0], np.uint64), 3, 5, 5)


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x5555555555555555, 0x0123456789ABCDEF])
def test_bits_are_counted(word):
    assert count_bits(np.uint64(word)) == word.bit_count()
