"""Pair tables find what they promise, and count what a limit leaves out."""

import os
import sys
from itertools import combinations
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from agreement import assert_same, on_host
from grids import fewer, some
from hypothesis import given, settings, strategies as st

from neardup_gpu.data import Ragged
from neardup_gpu.kernels import _buckets, _launch as launch, pairtables, shared
from neardup_gpu.kernels._matches import DistinctPairs

POLY = np.uint64(0xD800000000000000)  # x**64 + x**4 + x**3 + x + 1
BACKENDS = [pairtables.reference, pairtables.cpu, pytest.param(pairtables.gpu, marks=pytest.mark.launches)]
IDS = ["reference", "cpu", "gpu"]


def shared_features(features):
    """{(a, b): number of equal features} for all pairs of rows, by brute force."""
    rows = range(len(features))
    return {(a, b): int((features[a] == features[b]).sum()) for a, b in combinations(rows, 2)}


def pairs_of(left, right):
    return list(zip(left.tolist(), right.tolist(), strict=True))


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
@pytest.mark.parametrize(("k", "r"), some([(6, 1), (6, 2), (6, 4), (6, 6), (14, 1)], [(6, 2), (6, 6), (14, 1)]))
def test_a_pair_collides_exactly_when_it_shares_r_features(find, k, r):
    generator = np.random.default_rng(k * r)
    features = generator.choice(generator.integers(0, 2**64, 12, np.uint64), (80, k))
    present = generator.random(80) < 0.9
    left, right, num_large, num_uncompared, crowded = find(features, present, r, POLY, 1000, 10)
    shared = shared_features(features)
    expected = [pair for pair, n in shared.items() if n >= r and present[list(pair)].all()]
    assert pairs_of(left, right) == sorted(expected)
    assert (num_large, num_uncompared) == (0, 0)
    assert crowded.shape == (80,) and crowded.dtype == bool and not crowded.any()


def test_a_feature_in_another_position_is_another_feature():
    features = np.array([[1, 2], [2, 1]], np.uint64)
    left, *_ = pairtables.cpu(features, np.ones(2, bool), 1, POLY, 1000, 10)
    assert len(left) == 0


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
def test_later_rows_of_a_large_bucket_are_compared_with_its_first(find):
    features = np.array([[5], [6], [5], [5], [5], [6], [5]], np.uint64)
    left, right, num_large, num_uncompared, crowded = find(features, np.ones(7, bool), 1, POLY, 4, 2)
    expected = [(0, 2), (0, 3), (0, 4), (0, 6), (1, 5), (2, 3), (2, 4), (2, 6), (3, 4)]
    assert pairs_of(left, right) == expected
    assert (num_large, num_uncompared) == (1, comb(5, 2) - 8)
    assert np.flatnonzero(launch.to_host(crowded)).tolist() == [0, 2, 3, 4, 6]


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
@pytest.mark.parametrize(("rows", "pairs"), [(64, 2016), (65, 2032), (100, 2592)])
def test_a_bucket_grows_by_its_probe(find, rows, pairs):
    features, present = np.full((rows, 1), 5, np.uint64), np.ones(rows, bool)
    left, _, num_large, num_uncompared, crowded = find(features, present, 1, POLY, 64, 16)
    assert (len(left), num_large, num_uncompared) == (pairs, rows > 64, comb(rows, 2) - pairs)
    assert (launch.to_host(crowded) == (rows > 64)).all()


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
@settings(max_examples=fewer(25), deadline=None, derandomize="CI" in os.environ)
@given(
    values=st.lists(st.integers(0, 2), max_size=24),
    more=st.lists(st.integers(0, 2), min_size=1, max_size=12),
    limit=st.integers(0, 12),
    probe=st.integers(0, 12),
)
def test_rows_added_behind_never_undo_a_pair(find, values, more, limit, probe):
    """Nor do they add one before them."""
    found = []
    for rows in (values, values + more):
        features = np.array(rows, np.uint64).reshape(-1, 1)
        found.append(on_host(find(features, np.ones(len(rows), bool), 1, POLY, limit, probe)))
    before, after = found
    earlier = after[1] < len(values)
    assert pairs_of(*before[:2]) == pairs_of(after[0][earlier], after[1][earlier])
    assert not (before[4] & ~after[4][: len(values)]).any()


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
def test_a_bucket_at_its_limit_is_compared_whole(find):
    features = np.full((4, 1), 5, np.uint64)
    assert find(features, np.ones(4, bool), 1, POLY, 4, 1)[2:4] == (0, 0)
    assert find(features, np.ones(4, bool), 1, POLY, 3, 1)[2:4] == (1, 2)


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
def test_a_later_table_finds_what_a_large_bucket_left_out(find):
    features = np.array([[5, 1], [5, 2], [5, 3], [5, 3]], np.uint64)
    left, right, num_large, num_uncompared, crowded = find(features, np.ones(4, bool), 1, POLY, 2, 1)
    assert pairs_of(left, right) == [(0, 1), (0, 2), (0, 3), (2, 3)]
    assert (num_large, num_uncompared) == (1, 3) and crowded.all()


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
def test_keys_that_collide_by_accident_lose_no_pair(find):
    """Modulo x**64 + x**63 + 1 they do: such a pair need not be in the earlier tables that hold what it shares."""
    high, words = 2**63, [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2]
    features = np.random.default_rng(7).choice(np.array(words, np.uint64), (60, 4))
    arguments = features, np.ones(60, bool), 2, np.uint64(high | 1), 1000, 1
    expected = pairtables.reference(*arguments)
    sharing = (features[expected[0]] == features[expected[1]]).sum(axis=1)
    assert (sharing < 2).any(), "no keys collide by accident"
    check(find(*arguments), expected)


def test_identical_rows_cost_the_probe_and_not_the_square():
    rows, probe = 100_000, 8
    features = np.tile(np.arange(6, dtype=np.uint64), (rows, 1))
    present, limit = np.ones(rows, bool), 100
    left, right, num_large, num_uncompared, crowded = pairtables.cpu(features, present, 2, POLY, limit, probe)
    assert len(left) == comb(limit, 2) + probe * (rows - limit)
    assert (left < right).all() and left[right >= limit].max() == probe - 1
    assert crowded.all()
    assert num_large == comb(6, 2)
    assert num_uncompared == comb(6, 2) * (comb(rows, 2) - len(left))


def test_repeats_across_tables_are_dropped_as_they_grow():
    """More candidates, by far, than are kept before repeats go: 91 tables of 200 buckets, half of them large."""
    features = np.repeat(np.arange(200, dtype=np.uint64), 100)[:, None] + np.zeros(14, np.uint64)
    sizes = np.where(np.arange(200) % 2, 50, 100)
    present = (np.arange(100) < sizes[:, None]).ravel()
    left, right, num_large, _, crowded = pairtables.cpu(features, present, 2, POLY, 60, 3)
    expected = [
        (100 * bucket + a, 100 * bucket + b)
        for bucket, m in enumerate(sizes)
        for a in range(m)
        for b in range(a + 1, m if a < 3 else min(m, 60))
    ]
    assert pairs_of(left, right) == expected
    assert num_large == 91 * 100
    np.testing.assert_array_equal(crowded, np.repeat(sizes > 60, 100))


@pytest.mark.parametrize("distinct", [1, 2, 1000, 2**63])
@pytest.mark.parametrize("shift", [0, 32])
def test_a_table_is_sorted_by_key_then_row(distinct, shift):
    """Crowded upper bits too, which fingerprints do not have unless they repeat."""
    keys = np.random.default_rng(0).integers(0, distinct, 20_000, np.uint64) >> np.uint64(shift)
    rows = np.arange(len(keys), dtype=np.uint32)
    sorted_keys, sorted_rows, bounds = _buckets.sort_by_key(keys, rows)
    np.testing.assert_array_equal(sorted_rows, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(sorted_keys, np.sort(keys))
    inner = bounds[(bounds > 0) & (bounds < len(keys))]
    assert bounds[0] == 0 and bounds[-1] == len(keys) and (sorted_keys[inner - 1] != sorted_keys[inner]).all()


@pytest.mark.parametrize("find", BACKENDS, ids=IDS)
def test_no_rows(find):
    for rows, present in ((0, True), (3, False)):
        left, right, *counts, crowded = find(np.zeros((rows, 3), np.uint64), np.full(rows, present), 2, POLY, 10, 2)
        assert left.shape == right.shape == (0,) and left.dtype == right.dtype == np.int64 and counts == [0, 0]
        assert crowded.shape == (rows,) and not crowded.any()


def check_on_device(features, present, *arguments, **options):
    """`gpu`, with features in device memory, gives the reference's answer."""
    found = pairtables.gpu(launch.namespace().asarray(features), present, *arguments, **options)
    check(found, pairtables.reference(features, present, *arguments))


def check(found, expected):
    assert_same(expected, on_host(found))


def some_features(rows, k, distinct):
    generator = np.random.default_rng(rows)
    features = generator.choice(generator.integers(0, 2**64, distinct, np.uint64), (rows, k))
    return features, generator.random(rows) < 0.9


@pytest.mark.launches
@pytest.mark.parametrize(("max_rows", "distinct"), some([(7, 1), (7, 15), (39, 15), (40, 1)], [(7, 1), (39, 15)]))
def test_passes_over_parts_of_the_keys_change_nothing(max_rows, distinct):
    """With one distinct feature all keys of a table are equal: one pass has them all, the others none."""
    features, present = some_features(40, 3, distinct)
    check_on_device(features, present, 2, POLY, 20, 3, max_rows=max_rows)


@pytest.mark.launches
@pytest.mark.parametrize(("together", "limit"), [(1, 5), (250, 0), (250, 1000), (1 << 22, 5)])
def test_tables_that_are_sorted_together_change_nothing(monkeypatch, together, limit):
    """One of the six tables of 60 rows at a time, four and then two, or all; and the same for a range of tables."""
    monkeypatch.setattr(pairtables, "_TOGETHER", together)
    features, present = some_features(60, 4, 12)
    check_on_device(features, present, 2, POLY, limit, 3)
    check_on_device(features, present, 2, POLY, limit, 3, range(1, 6, 2))


@pytest.mark.launches
def test_each_pass_sorts_its_share_of_the_rows(monkeypatch):
    sizes = []
    sort = pairtables._table

    def table(xp, *arguments):
        *buckets, number = sort(xp, *arguments)
        sizes.append(number)
        return *buckets, number

    monkeypatch.setattr(pairtables, "_table", table)
    features = np.random.default_rng(0).integers(0, 2**64, (400, 1), np.uint64)
    pairtables.gpu(features, np.ones(400, bool), 1, POLY, 64, 16, max_rows=120)
    assert len(sizes) == 4 and sum(sizes) == 400
    deviation = np.sqrt(400 * np.log(2 * 4 / 1e-9) / 2)  # Hoeffding, four shares, failure 1e-9
    assert all(abs(size - 100) < deviation for size in sizes)


@pytest.mark.launches
def test_features_in_host_memory_go_to_the_device_in_slices(monkeypatch):
    """None of the arrays is the device's, as if its module were not NumPy in the simulator."""
    uploaded, xp = [], launch.namespace()

    def upload(array):
        uploaded.append(len(array))
        return launch.on_device(array)

    device = SimpleNamespace(**{**vars(xp), "ndarray": ()})
    monkeypatch.setattr(pairtables, "namespace", lambda: device)
    monkeypatch.setattr(pairtables, "on_device", upload)
    monkeypatch.setattr(pairtables, "_SLICE", 30 * 8 * 3)
    features, present = some_features(100, 3, 8)
    expected = pairtables.reference(features, present, 1, POLY, 1000, 3)
    check(pairtables.gpu(features, present, 1, POLY, 1000, 3), expected)
    assert uploaded.count(30) == 3 * 3 and uploaded.count(10) == 3


@pytest.mark.launches
def test_a_thread_takes_rows_in_strides(monkeypatch):
    monkeypatch.setattr(pairtables, "_THREADS", 32)
    features, present = some_features(100, 2, 20)
    check_on_device(features, present, 2, POLY, 1000, 3)


@pytest.mark.launches
@pytest.mark.parametrize("limit", [5, 1000])
def test_pairs_are_written_and_merged_in_chunks(monkeypatch, limit):
    merges = []
    drop_repeats = DistinctPairs._drop_repeats
    for module in (_buckets, pairtables):
        monkeypatch.setattr(module, "PAIRS_AT_ONCE", 37)
    monkeypatch.setattr(DistinctPairs, "_drop_repeats", lambda found: merges.append(found) or drop_repeats(found))
    features, present = some_features(60, 4, 3)
    check_on_device(features, present, 1, POLY, limit, 3)
    assert len(merges) > 2


@pytest.mark.launches
@pytest.mark.parametrize("least", [1, 2])
def test_pairs_of_shared_elements_are_counted_in_chunks(monkeypatch, least):
    for module in (_buckets, shared):
        monkeypatch.setattr(module, "PAIRS_AT_ONCE", 37)
    random = np.random.default_rng(least)
    rows = Ragged.from_rows([np.unique(random.integers(0, 9, 3, np.uint64)) for _ in range(30)], np.uint64)
    arguments = rows.values, rows.offsets, least, 20, 3
    check(shared.gpu(*map(launch.on_device, arguments[:2]), *arguments[2:]), shared.reference(*arguments))


def test_pairs_of_a_bucket_are_numbered_in_lexicographic_order():
    for m in (2, 3, 7, 50):
        for number, (a, b) in enumerate(combinations(range(m), 2)):
            assert _buckets.first_of(number, m) == a
            assert a + 1 + number - _buckets.pairs_before(a, m) == b
    m = 2**32 - 1
    last = m * (m - 1) // 2 - 1
    assert _buckets.first_of(last, m) == m - 2
    assert _buckets.first_of(last - 1, m) == _buckets.first_of(last - 2, m) == m - 3


def test_half_a_billion_documents_are_sorted_in_one_pass(monkeypatch):
    """On a card of 80 GB, of which 24 GB are features and 0.5 GB say which rows are present."""
    pool = SimpleNamespace(free_bytes=lambda: 10**9, used_bytes=lambda: 24_500_000_000, get_limit=lambda: 0)
    runtime = SimpleNamespace(memGetInfo=lambda: (54_500_000_000, 80_000_000_000))
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(launch, "simulated", lambda: False)
    assert launch.most_rows(pairtables._ROW_BYTES) > 500_000_000
    pool.get_limit = lambda: 40_000_000_000
    assert launch.most_rows(pairtables._ROW_BYTES) == 15_500_000_000 // 2 // 36
