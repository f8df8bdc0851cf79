"""The index of prefixes, and what is met in it: no pair at the threshold is lost, however the asking is divided."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from rule import all_pairs, contained
from witnesses import jaccard

from neardup_gpu import Engine
from neardup_gpu.data import Ragged
from neardup_gpu.engine.clock import Clock
from neardup_gpu.kernels.prefixes import PLACE_BITS
from neardup_gpu.kernels.rarity import FEWEST_BITS
from neardup_gpu.methods.measures import CONTAINMENT, RESEMBLANCE
from neardup_gpu.stages import joining

SHINGLES = st.integers(0, 12).map(lambda i: i * 0x9E3779B97F4A7C15 % 2**64) | st.sampled_from([0, 2**64 - 1, 1, 2])
SETS = st.lists(st.lists(SHINGLES, max_size=15), min_size=1, max_size=25)
MEASURED = [(RESEMBLANCE, jaccard), (CONTAINMENT, contained)]
THRESHOLDS = st.sampled_from([1e-9, 0.07, 0.3, 0.5, 0.6, 2 / 3, 0.8, 28 / 35, 0.9, 1.0])


def indexed(runtime, spool, sets, threshold, order=None, members=None, measure=RESEMBLANCE):
    """The parts of the index of sets that lie in a spool in some order, repeats and all."""
    order = np.arange(len(sets)) if order is None else np.array(order)
    if measure.directed:  # which wait as sets
        sets = [sorted(set(each)) for each in sets]
    values = np.array([shingle for row in order for shingle in sets[row]], np.uint64)
    spool.append(Ragged(values, np.cumsum([0, *(len(sets[row]) for row in order)])))
    spooled = joining.SpooledRows(spool, np.argsort(order))
    members = np.arange(len(sets)) if members is None else members
    with runtime.spool(None) as kept:
        index = joining.build_index(spooled, members, kept, joining.Joiner(measure, threshold, runtime), Clock(None))
        waiting = rows_of(kept, runtime)
    in_file = [row for row in order if row in set(members.tolist())]
    assert len(waiting) == (0 if measure.directed else len(in_file))
    for row, found in zip(in_file, waiting, strict=False):
        assert found in ([], sorted(set(sets[row])))
        assert found or not any(part.offsets[row] < part.offsets[row + 1] for part in index)
    return index


def rows_of(spool, runtime):
    """All rows of a spool, as lists."""
    found = spool.gather(np.arange(len(spool.offsets) - 1))
    values, offsets = runtime.fetch(found.values).tolist(), runtime.fetch(found.offsets)
    return [values[first:last] for first, last in itertools.pairwise(offsets)]


def met_by(index, rows, most, runtime, first=None, stop=None):
    """{row: candidates} by asking once."""
    first = np.zeros(len(index[0].offsets) - 1, np.int64) if first is None else first
    stop = np.arange(len(index[0].offsets) - 1) if stop is None else stop
    found = {}
    for met in joining.meet(index, rows, first[rows], stop[rows], most, runtime):
        ends = np.cumsum(met.counts)
        for row, begin, end in zip(met.rows.tolist(), ends - met.counts, ends, strict=True):
            found[row] = met.candidates[begin:end].tolist()
    return found


def pairs_of(found):
    return {(other, row) for row, others in found.items() for other in others}


def lemma(sets, threshold, worth=jaccard):
    """V by brute force; sets without elements are in no pair."""
    rows = [row for row, each in enumerate(sets) if each]
    pairs = all_pairs([set(sets[row]) for row in rows], [False] * len(rows), threshold, worth)
    return {(rows[a], rows[b]) for a, b in pairs}


@pytest.mark.parametrize("backend", ["cpu", "reference"])
class TestMeet:
    @settings(deadline=None, max_examples=fewer(100))
    @given(SETS, THRESHOLDS, st.data())
    @example([[1, 2, 3], [1, 2, 3], []], 1.0, None)
    def test_no_pair_is_lost(self, backend, sets, threshold, data):
        """Wherever the documents lie, and if they are counted and taken a few bytes at a time; by either measure.

        By containment a better row is met whether it is the larger or not.
        """
        measure, worth = data.draw(st.sampled_from(MEASURED)) if data else MEASURED[0]
        order = data.draw(st.permutations(range(len(sets)))) if data else None
        with Engine(backend=backend).start() as runtime, runtime.spool(None) as spool:
            if data and data.draw(st.booleans()):
                runtime.shares = replace(runtime.shares, sorted=40, postings=data.draw(st.sampled_from([1 << 30, 99])))
            index = indexed(runtime, spool, sets, threshold, order, measure=measure)
            rows = np.arange(len(sets))
            found = met_by(index, rows, len(sets), runtime)
            assert lemma(sets, threshold, worth) <= pairs_of(found)
            for row, others in found.items():
                assert others == sorted(set(others)) and all(other < row for other in others)
            # Asked for some at a time, from after the last one: all of V again. Which other candidates there are
            # depends on whether a row's runs are looked at, or the rows that they lie among.
            most = data.draw(st.integers(1, 3)) if data else 1
            first, again = np.zeros(len(sets), np.int64), {row: [] for row in range(len(sets))}
            while len(rows):
                some = met_by(index, rows, most, runtime, first)
                for row, others in some.items():
                    again[row] += others
                    first[row] = others[-1] + 1 if others else 0
                rows = np.array([row for row, others in some.items() if len(others) == most], np.int64)
            assert lemma(sets, threshold, worth) <= pairs_of(again)
            assert all(others == sorted(set(others)) for others in again.values())

    @settings(deadline=None, max_examples=fewer(50))
    @given(SETS, THRESHOLDS, st.integers(0, 2**32))
    def test_ranges_and_parts_of_the_rows(self, backend, sets, threshold, seed):
        """`first`, `stop`, `Index.only` and `members` leave out what they say, and nothing else."""
        generator = np.random.default_rng(seed)
        everyone, num = np.arange(len(sets)), len(sets)
        first, stop = np.sort(generator.integers(0, num + 1, (2, num)), axis=0)
        some = generator.random(num) < 0.5
        with Engine(backend=backend).start() as runtime, runtime.spool(None) as spool:
            index = indexed(runtime, spool, sets, threshold)
            both = met_by(index, everyone, num, runtime, stop=np.full(num, num))
            found = met_by(index, everyone, num, runtime, first, stop)
            kept = met_by([part.only(some) for part in index], everyone, num, runtime, stop=np.full(num, num))
        pairs = lemma(sets, threshold)
        pairs |= {(b, a) for a, b in pairs}
        assert pairs <= pairs_of(both)
        for row in range(num):
            theirs = {other for other, each in pairs if each == row}
            within = set(range(first[row], stop[row]))
            assert theirs & within <= set(found[row]) <= within
            assert {other for other in theirs if some[other]} <= set(kept[row]) <= set(np.flatnonzero(some).tolist())
        with Engine(backend=backend).start() as runtime, runtime.spool(None) as spool:
            index = indexed(runtime, spool, sets, threshold, members=np.flatnonzero(some))
            among = pairs_of(met_by(index, everyone, num, runtime))
        assert {(a, b) for a, b in pairs if a < b and some[[a, b]].all()} <= among
        assert all(some[list(pair)].all() for pair in among)


def test_backends_make_one_index():
    generator = random.Random(5)
    words = [generator.getrandbits(64) for _ in range(90)]
    sets = [generator.choices(words, k=generator.choice([0, 1, 5, 30])) for _ in range(80)]
    made = []
    for backend in ("cpu", "reference"):
        with Engine(backend=backend).start() as runtime, runtime.spool(None) as spool:
            made += indexed(runtime, spool, sets, 0.6)
    for one, other in zip(*made, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)
    assert len(made[0].entries) > 100


def test_what_is_rare_has_no_posting():
    """Shingles of one document alone are in no run; of a crowd with few common ones, prefixes are short."""
    sets = [[(row << 32 | i) * 0x9E3779B97F4A7C15 % 2**64 for i in range(50)] for row in range(100)]
    with Engine(backend="cpu").start() as runtime, runtime.spool(None) as spool:
        (index,) = indexed(runtime, spool, sets, 0.8)
        assert len(index.entries) < 50 * 100 / 10  # but those that share a counter with another's
    common = [i * 0x9E3779B97F4A7C15 % 2**64 for i in range(40)]
    with Engine(backend="cpu").start() as runtime, runtime.spool(None) as spool:
        (index,) = indexed(runtime, spool, [common + own[:5] for own in sets], 0.8)
        rows = (index.entries >> np.uint64(PLACE_BITS)) & np.uint64(2**32 - 1)
        assert np.bincount(rows.astype(np.int64)).max() <= 45 - 36 + 1  # the long prefix of 45


@pytest.mark.parametrize("sets", [[], [[]], [[], [], []], [[7]], [[7], [8]]])
def test_nothing_to_meet(sets):
    with Engine(backend="cpu").start() as runtime, runtime.spool(None) as spool:
        index = indexed(runtime, spool, sets, 0.5)
        assert pairs_of(met_by(index, np.arange(len(sets)), 4, runtime)) == set()


def test_shingles_that_share_a_counter():
    """All counted in one counter: a count that is too large loses no pair."""
    generator = random.Random(7)
    words = [generator.getrandbits(64 - FEWEST_BITS) for _ in range(60)]
    base = generator.sample(words, 20)
    sets = [[*generator.sample(base, 18), *generator.sample(words, 3)] for _ in range(60)]
    with Engine(backend="cpu").start() as runtime, runtime.spool(None) as spool:
        index = indexed(runtime, spool, sets, 0.7)
        found = pairs_of(met_by(index, np.arange(60), 60, runtime))
    expected = lemma(sets, 0.7)
    assert expected <= found <= set(itertools.combinations(range(60), 2)) and len(expected) > 100
