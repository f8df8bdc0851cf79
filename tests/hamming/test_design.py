"""Table designs: those of the paper, and that whatever bits differ some table has none of them."""

import itertools
import math

import numpy as np
import pytest

from neardup_gpu import hamming
from neardup_gpu.errors import ParameterError
from neardup_gpu.hamming import TableDesign


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
    with pytest.raises(ParameterError, match=r"no tables of|bits must be between 1 and 512, got 0"):
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
    with pytest.raises(ParameterError, match="of 300,000 fingerprints with a bucket_limit of 512"):
        hamming.pairs(np.arange(300_000, dtype=np.uint64), 32)


def test_designs_of_128_bits_lead_with_64_at_most():
    assert TableDesign(128, 0, 1).masks == (2**64 - 1 << 64,)
    assert TableDesign(128, 3, 62).prefix == 63
    assert max(mask.bit_count() for prefix in range(0, 65, 4) for mask in TableDesign(128, 2, prefix).masks) == 64
    with pytest.raises(ParameterError, match=r"prefix must be <= 64, .* got 65"):
        TableDesign(128, 3, 65)
    chosen = [hamming.choose(n, 3, bits=128, num_queries=n) for n in (10, 10**6, 10**9)]
    assert [(design.bits, design.prefix) for design in chosen] == [(128, 0), (128, 32), (128, 32)]
    assert chosen[1].memory(10**6) == (12 * chosen[1].num_tables + 16) * 10**6
