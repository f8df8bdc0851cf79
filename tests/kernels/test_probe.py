"""Test probing beyond agreement: earlier rows, several tables at once, and tables with unverified blocks."""

import contextlib

import numpy as np
import pytest

from neardup_gpu.index.probing import find_earlier_rows, find_earlier_runs, find_segments, list_tables
from neardup_gpu.kernels import _probing, bloom, probe
from neardup_gpu.kernels._cpu import alone

MIX = np.uint64(0x9E3779B97F4A7C15)


def tables(rows: int, values: int, seed: int = 0):
    """Keys of rows, of which many are equal, and their tables."""
    keys = np.random.default_rng(seed).integers(0, values, (rows, 6)).astype(np.uint64) * MIX
    orders = np.argsort(keys, axis=0, kind="stable")
    ordered = np.ascontiguousarray(np.take_along_axis(keys, orders, 0).T)
    return keys, ordered, np.ascontiguousarray(orders.T.astype(np.uint32))


@pytest.mark.parametrize(("rows", "values"), [(300, 40), (500, 9), (400, 10**9), (1, 3), (0, 1), (9000, 3000)])
def test_tables_are_sorted_stably(rows, values):
    keys, ordered, places = tables(rows, values)
    found = _probing.sort_queries(keys)
    assert (found[0] == ordered).all() and (found[1] == places).all()


@pytest.mark.parametrize(("rows", "values", "r"), [(300, 40, 1), (500, 9, 3), (400, 10**9, 2), (1, 3, 1)])
def test_rows_before_themselves(rows, values, r):
    keys, ordered, places = tables(rows, values)
    random = np.random.default_rng(1)
    asked = np.sort(random.choice(rows, (rows + 1) // 2, replace=False))
    first, most = random.integers(0, rows, len(asked)), random.integers(0, 9, len(asked))
    allowed = (random.random(rows) < 0.8).astype(np.uint8)
    found = find_earlier_rows(places, find_earlier_runs(ordered, places, rows), asked, r, first, most, allowed)
    expected = probe.reference(ordered, places, keys[asked], r, first, asked, most, allowed)
    for one, other in zip(found, expected, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("few", [True, False])
def test_blocks_that_decide_are_wanted(few):
    """Whatever else is changed, what is found stays; and what lies in a wanted block is found without harm."""
    rows = 20_000
    keys, ordered, places = tables(rows, 1 << 40)
    queries = np.concatenate([keys[:100:7], np.random.default_rng(2).integers(0, 2**64, (100, 6), np.uint64)])
    bounds = [np.full(len(queries), value) for value in (0, 2**62, 2**62)]
    asked, allowed = _probing.sort_queries(queries), np.ones(rows, np.uint8)
    sound = tuple(np.zeros(-(-array.nbytes // (8 * _probing.BLOCK_WORDS)), np.uint8) for array in (ordered, places))

    def run(ordered, places):
        if not few:
            return _probing.find_rows((ordered, places), asked, 1, *bounds, allowed, sound)
        with alone():
            return _probing.find_rows((ordered, places), asked, 1, *bounds, allowed, sound)

    found, offsets, wanted = run(ordered, places)
    assert found.tolist() == list(range(0, 100, 7)) and offsets[-1] == len(found)
    assert all(0 < some[:-1].sum() < len(some) and some[-1] for some in wanted)
    blocks = [
        np.repeat(some[:-1] != 0, 8 * _probing.BLOCK_WORDS // array.itemsize)[: array.size].reshape(array.shape)
        for array, some in zip((ordered, places), wanted, strict=True)
    ]
    assert run(ordered, np.where(blocks[1], places, np.uint32(2**31)))[0].tolist() == found.tolist()
    run(np.where(blocks[0], np.uint64(2**32 - 7), ordered), np.where(blocks[1], np.uint32(2**32 - 7), places))
    sound = tuple(np.ones_like(some) for some in sound)
    assert not any(some.any() for some in run(ordered, places)[2])


@pytest.mark.parametrize("few", [True, False])
def test_what_is_not_marked_is_in_no_table(few):
    """Of what is asked for all that tables have is left; and what is found of that is the same as before."""
    rows, random = 3000, np.random.default_rng(3)
    keys, ordered, places = tables(rows, 1 << 40)
    queries = np.concatenate([keys[::5], random.integers(0, 2**64, (3000, 6), np.uint64)])
    queries[::7, :3] = keys[0, :3]  # of several queries
    marks = np.zeros((6, 1 << 10), np.uint64)
    nothing = np.empty((6, 0), np.uint64)
    for half in (ordered[:, :1500], ordered[:, 1500:]):
        bloom.cpu(marks, half.copy(), nothing, nothing.astype(np.uint32), np.zeros(6, np.int64))
    asked = _probing.sort_queries(queries)
    with alone() if few else contextlib.nullcontext():
        left = bloom.cpu(marks, nothing, *asked)[1:]
        bounds = [np.full(len(queries), value) for value in (0, 2**62, 2**62)]
        found = [
            _probing.find_rows((ordered, places), some, 1, *bounds, np.ones(rows, np.uint8)) for some in (asked, left)
        ]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    for table in range(6):
        some = set(left[0][table, : left[2][table]].tolist())
        assert set(ordered[table].tolist()) & set(queries[:, table].tolist()) <= some
    assert left[2].sum() < 0.5 * queries.size


def test_few_others_are_marked():
    """A key that is nowhere is marked with a probability that the marks tell: it falls into any word, and takes three
    bits of it, each of 64. At 16 bits a key that is at most 1.2%, as computed here; how many of 200,000 are found
    differs from it by more than 0.4% of them with probability below 2 exp(-2 * 0.004**2 * 200,000) = 0.4% (Hoeffding),
    and then by chance alone: the numbers are the same in each run."""
    random = np.random.default_rng(4)
    keys = np.sort(random.integers(0, 2**64, (1, 1 << 16), np.uint64))
    marks = np.zeros((1, keys.size * 16 // 64), np.uint64)
    bloom.cpu(marks, keys, *_probing.sort_queries(np.empty((0, 1), np.uint64)))
    expected = float(((np.bitwise_count(marks) / 64) ** 3).mean())
    assert 0.004 < expected < 0.012
    others = random.integers(0, 2**64, (200_000, 1), np.uint64)
    left = bloom.cpu(marks, np.empty((1, 0), np.uint64), *_probing.sort_queries(others))[1:]
    assert abs(left[2][0] / 200_000 - expected) < 0.004


def _files(sizes, values):
    """Tables of several files, of rows that share keys now and then."""
    return [tables(size, values, seed)[1] for seed, size in enumerate(sizes)]


@pytest.mark.parametrize("r", [1, 2, 6])
@pytest.mark.parametrize("values", [5, 60, 1 << 40])
def test_files_that_share_keys_with_a_query(r, values):
    """As many tables have a key of the query as `reference` finds, asked for rows of any table by itself."""
    files, seen = _files((300, 0, 1, 4000, 17), values), set()
    asked = list_tables([(keys, np.empty(0, np.uint8)) for keys in files])
    queries = [keys[:, place].copy() for keys in files for place in range(0, keys.shape[1], 61)]
    queries += [tables(40, values, 9)[0][place] for place in range(40)]
    for query in queries:
        shared, unread = find_segments(asked, query, r)
        expected = [sum(key in table for key, table in zip(query, keys, strict=True)) >= r for keys in files]
        assert shared.tolist() == expected and not len(unread)
        seen |= set(expected)
    assert seen == {True, False} or values == 5


def test_blocks_that_decide_which_files_share_are_named():
    """Whatever is in all others, the answer stays; and what is in those that are named is read without harm."""
    files = _files((9000, 5000, 3), 1 << 40)
    sound = [np.zeros(-(-keys.nbytes // (8 * _probing.BLOCK_WORDS)), np.uint8) for keys in files]
    query = files[0][:, 77].copy()
    query[3:] = files[1][3:, 4000]

    def asked(tables):
        return find_segments(list_tables(list(zip(tables, sound, strict=True))), query, 3)

    shared, unread = asked(files)
    assert shared.tolist() == [True, True, False]
    named = [np.unique(unread[unread[:, 0] == number, 1]) for number in range(3)]
    assert 0 < len(named[0]) < len(sound[0]) and named[2].tolist() == [0]
    other, damaged = [], []
    for keys, blocks in zip(files, named, strict=True):
        stays = np.isin(np.arange(keys.size) // _probing.BLOCK_WORDS, blocks).reshape(keys.shape)
        other.append(np.where(stays, keys, np.uint64(2**63)))
        damaged.append(np.where(stays, np.uint64(2**64 - 1), keys))
    assert asked(other)[0].tolist() == shared.tolist()
    asked(damaged)
    for some in sound:
        some[:] = 1
    assert not len(asked(files)[1])


def test_files_that_are_asked_at_once_lie_in_one_piece():
    with pytest.raises(ValueError, match="contiguous"):
        list_tables([(np.zeros((4, 6), np.uint64).T, np.empty(0, np.uint8))])
