"""Pairs, joins and the index find what brute force finds, by every design, at every radius, on every backend."""

import numpy as np
import pytest
from grids import fewer, pairs_of, some
from hypothesis import given, settings, strategies as st
from near import CASES, answers, brute, brute_pairs, expanded, of_integers, planted, rows_of
from strategies import fingerprints

from neardup_gpu import hamming
from neardup_gpu.hamming import HammingIndex, TableDesign
from neardup_gpu.kernels import hamming as kernel
from neardup_gpu.kernels._cpu import alone

FEW_BITS = [(4, 0), (5, 1), (8, 2), (7, 3), (9, 4), (9, 5), (8, 6), (9, 7), (10, 8)]


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
    with alone():
        yield


@pytest.mark.parametrize(("radius", "case"), pairs_of(range(9), CASES))
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


@pytest.mark.parametrize(("bits", "radius"), some(FEW_BITS, FEW_BITS[::3]))
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
@settings(max_examples=fewer(20), deadline=None)
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
