"""The exact join by slices and ranges: every pair of V is met in a range, or both its documents are crowded."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from rule import all_pairs, contained, decided
from witnesses import jaccard

from neardup_gpu import Engine
from neardup_gpu.data import Pairs, Ragged
from neardup_gpu.engine.clock import Clock
from neardup_gpu.kernels import bitmaps, prefixes, rarity
from neardup_gpu.kernels.rarity import FEWEST_BITS
from neardup_gpu.methods.measures import CONTAINMENT, RESEMBLANCE
from neardup_gpu.recipe import Recipe
from neardup_gpu.stages import JOINS
from neardup_gpu.stages.joining import Joiner, SpooledRows, build_index, mark, no_marks, table_bits
from neardup_gpu.stages.partners import JoinLimits, Search, find_partners
from neardup_gpu.stages.verification import verify_spooled
from neardup_gpu.tasks import joining

SHINGLES = st.integers(0, 12).map(lambda i: i * 0x9E3779B97F4A7C15 % 2**64) | st.sampled_from([0, 2**64 - 1, 1, 2])
SETS = st.lists(st.lists(SHINGLES, max_size=15), min_size=1, max_size=25)
MEASURED = {"resemblance": (RESEMBLANCE, jaccard), "containment": (CONTAINMENT, contained)}
THRESHOLDS = st.sampled_from([1e-9, 0.07, 0.3, 0.5, 0.6, 2 / 3, 0.8, 28 / 35, 0.9, 1.0])
MUCH = 1 << 30


def table_of(parts, bits, runtime):
    counter = joining.Counter(bits, runtime)
    for part in parts:
        counter.add(part)
    return counter.table


def ragged(sets):
    return Ragged(np.array([x for each in sets for x in each], np.uint64), np.cumsum([0, *map(len, sets)]))


def sliced(rows, number):
    """Rows in so many slices, some of them empty where there are few rows."""
    ends = np.linspace(0, len(rows), number + 1).astype(int)
    return [rows[first:last] for first, last in zip(ends[:-1], ends[1:], strict=True)]


def posted_by(sets, ranks, measure, threshold, runtime, ranges, slices=1, bits=FEWEST_BITS):
    """All postings, by ranges, made slice by slice as tasks do; sets are ascending for a directed measure."""
    parts = list(zip(map(ragged, sliced(sets, slices)), sliced(ranks, slices), strict=True))
    table = joining.merged(table_of([part], bits, runtime) for part, _ in parts)
    join = Joiner(measure, threshold, runtime)
    made = [joining.postings(*part, table, join, ranges) for part in parts]
    if measure.directed:
        of_parts = [no_marks(table[0]) for _ in made]
        for marks, (_, posted) in zip(of_parts, made, strict=True):
            mark(marks, posted.shingle)
        made += [joining.postings(*part, table, join, ranges, joining.merged_marks(of_parts)) for part in parts]
    return [[posted.where(of == place) for of, posted in made] for place in range(ranges)]


def found_by(parts, measure, threshold, num_known, runtime, most_bytes=MUCH, long_run=joining.LONG_RUN):
    """(pairs as a list, crowded ranks, looks) of one range."""
    pairs, crowded, looks = [], [], 0
    join, sides = Joiner(measure, threshold, runtime), joining.Sides(num_known)
    for found in joining.collide_range(lambda: iter(parts), join, sides, most_bytes, long_run):
        pairs += zip(found.left.tolist(), found.right.tolist(), strict=True)
        crowded += found.crowded.tolist()
        looks += int(found.looks[0])
    return pairs, crowded, looks


def truth(sets, num_known, threshold, worth):
    """V by brute force, by numbers of sets; sets without elements are in no pair."""
    rows = [row for row, each in enumerate(sets) if each]
    pairs = all_pairs([set(sets[row]) for row in rows], [row < num_known for row in rows], threshold, worth)
    return {(rows[a], rows[b]) for a, b in pairs}


def as_given(sets, measure):
    return [sorted(set(each)) for each in sets] if measure.directed else sets


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@settings(deadline=None, max_examples=fewer(60))
@given(
    sets=SETS,
    threshold=THRESHOLDS,
    measured=st.sampled_from(list(MEASURED)),
    slices=st.sampled_from([1, 3, 7]),
    ranges=st.sampled_from([1, 3, 16]),
    long_run=st.sampled_from([0, 1, 2, 8, 128]),
    most=st.sampled_from([1, 20, 10**6, 10**6]),
    pinned=st.integers(0, 30),
    seed=st.integers(0, 2**32),
)
@example([[1, 2, 3], [1, 2, 3], []], 1.0, "resemblance", 7, 1, 128, 10**6, 0, 0)
@example([[1, 2], [1]] * 12, 0.5, "containment", 1, 1, 2, 10**6, 3, 0)
def test_no_pair_is_lost(backend, sets, threshold, measured, slices, ranges, long_run, most, pinned, seed):
    """However documents and shingles are divided, whatever is called long, whether a range fits in memory or not."""
    measure, worth = MEASURED[measured]
    ranks = np.cumsum(np.random.default_rng(seed).integers(1, 2**34, len(sets)))
    num_known = int(ranks[pinned]) if pinned < len(ranks) else int(ranks[-1]) + 1
    row = {rank: number for number, rank in enumerate(ranks.tolist())}
    listed, crowded = set(), set()
    with Engine(backend=backend).start() as runtime:
        runtime.shares = replace(runtime.shares, sorted=seed % 3 * 40 + 8)
        for parts in posted_by(as_given(sets, measure), ranks, measure, threshold, runtime, ranges, slices):
            pairs, many, _ = found_by(
                parts, measure, threshold, num_known, runtime, most * joining.POSTING_BYTES, long_run
            )
            if most == 10**6:
                assert len(pairs) == len(set(pairs)) and many == sorted(set(many))
                assert not {(a, b) for a, b in pairs if a in many and b in many}
                assert long_run < 128 or not many
            listed |= {(row[a], row[b]) for a, b in pairs}
            crowded |= {row[rank] for rank in many}
    assert all(a < b and b >= pinned and set(sets[a]) & set(sets[b]) for a, b in listed)
    expected = truth(sets, pinned, threshold, worth)
    assert {pair for pair in expected - listed if not crowded.issuperset(pair)} == set()


def planted(seed, num=240):
    """Pages of a few templates with other dates, excerpts, containers of many, copies, tiny sets and singles."""
    generator = random.Random(seed)
    words = [generator.getrandbits(64) for _ in range(400)]
    common = words[:60]
    templates = [generator.sample(words, 30) for _ in range(4)]
    sets = []
    for number in range(num):
        kind = number % 8
        if kind < 3:
            own = [generator.getrandbits(64) for _ in range(generator.choice([0, 1, 3]))]
            sets.append(templates[number % 4][: 30 - generator.choice([0, 1, 2])] + own)
        elif kind == 3:
            sets.append(generator.sample(common, generator.randint(20, 40)))
        elif kind == 4:
            sets.append(generator.sample(words, 150))
        elif kind == 5:
            sets.append(generator.sample(templates[number % 4], generator.choice([1, 2, 15, 20])))
        elif kind == 6:
            sets.append([generator.getrandbits(64) for _ in range(20)])
        else:
            sets.append(list(generator.choice(sets)))
    generator.shuffle(sets)
    return sets


@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("threshold", [0.4, 2 / 3, 0.8, 0.95])
def test_planted_pairs(measured, threshold):
    """Each way to divide them loses nothing; the fewer runs are long, the fewer documents are crowded."""
    measure, worth = MEASURED[measured]
    sets, pinned = planted(3), 20
    expected = truth(sets, pinned, threshold, worth)
    assert len(expected) > 100
    ranks = np.arange(len(sets)) * 2**33
    with Engine(backend="cpu").start() as runtime:
        made = posted_by(as_given(sets, measure), ranks, measure, threshold, runtime, 3, 3, bits=16)
        before = len(sets)
        for long_run in (2, 8, 128, 1000):
            listed, crowded = set(), set()
            for parts in made:
                pairs, many, looks = found_by(parts, measure, threshold, pinned * 2**33, runtime, MUCH, long_run)
                assert looks <= sum(len(posted.shingle) for posted in parts) * long_run / 2 + len(sets)
                listed |= {(a >> 33, b >> 33) for a, b in pairs}
                crowded |= {rank >> 33 for rank in many}
            assert all(pair in listed or crowded.issuperset(pair) for pair in expected)
            assert len(crowded) <= before
            before = len(crowded)
        assert not crowded and expected <= listed


class Waiting:
    """Sets that wait somewhere, with no more than a join in memory needs of a spool."""

    table = None

    def __init__(self, folder, sets):
        self.folder, self._sets = folder, ragged(sets)
        self.offsets, self.num_values = self._sets.offsets, len(self._sets.values)

    def gather(self, rows):
        return ragged([self._sets[row].tolist() for row in rows])


@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("most", [3, None])
@pytest.mark.parametrize("long_run", [2, 24])
def test_what_ranges_list_and_the_crowd_decide_alike(measured, most, long_run, tmp_path):
    """Listed pairs are verified, crowded documents joined as in memory: decisions and lists are those of all of V."""
    (measure, worth), threshold, pinned = MEASURED[measured], 0.6, 20
    sets = as_given(planted(4), measure)
    if measure.directed:
        sets = [*sets[:pinned], *sorted(sets[pinned:], key=lambda each: -len(each))]
    every = all_pairs(list(map(set, sets)), [row < pinned for row in range(len(sets))], threshold, worth)
    rows, is_pinned = np.arange(len(sets)), np.arange(len(sets)) < pinned
    spooled, clock = SpooledRows(Waiting(tmp_path, sets), rows), Clock(None)
    with Engine(backend="cpu").start() as runtime:
        listed, crowded = set(), set()
        for parts in posted_by(sets, rows, measure, threshold, runtime, 4, 2):
            pairs, many, _ = found_by(parts, measure, threshold, pinned, runtime, MUCH, long_run)
            listed |= set(pairs)
            crowded |= set(many)
        assert 10 < len(crowded) < len(sets) and len(listed) < len(sets) ** 2 / 4

        def verify(pairs):
            return verify_spooled(spooled, pairs, measure, threshold, clock, runtime)

        explicit = verify(Pairs.from_unsorted(*np.array(sorted(listed)).T))
        assert len(explicit.pairs) < len(every)  # so that the crowd has something to find
        with runtime.spool(tmp_path) as kept:
            index = build_index(spooled, np.array(sorted(crowded)), kept, Joiner(measure, threshold, runtime), clock)
        accepts = lambda left, right: np.ones(len(left), bool)  # noqa: E731
        for cluster in ("greedy", "components"):
            recipe = Recipe(method=JOINS[measured], threshold=threshold, max_partners=most)
            how = recipe, JoinLimits(), tmp_path, clock, runtime
            search = Search(index, is_pinned, accepts, verify, *how)
            found = find_partners(search, explicit, cluster)
            expected = decided(is_pinned.tolist(), every, cluster, most, measure.directed)
            assert set(zip(found.listed.pairs.left, found.listed.pairs.right, strict=True)) == expected.listed


def test_merged_tables_are_the_table_of_all():
    """Bit for bit, also where counters are full in one slice, in another, or only in the sum."""
    generator = np.random.default_rng(3)
    values = generator.integers(0, 2**64, 40, np.uint64) >> np.uint64(4) | np.uint64(3 << 60)
    counted = np.repeat(values, generator.choice([1, 2, 100, 254, 255, 256, 700], len(values)))
    generator.shuffle(counted)
    whole = rarity.reference(counted, FEWEST_BITS)
    assert whole[0].max() == 255 and whole[1].max() > 255
    with Engine(backend="cpu").start() as runtime:
        for slices in (1, 2, 3, 7):
            parts = [Ragged(part, [0, len(part) // 2, len(part)]) for part in np.array_split(counted, slices)]
            found = joining.merged(table_of([part], FEWEST_BITS, runtime) for part in parts)
            again = table_of(parts, FEWEST_BITS, runtime)
            for one, other, expected in zip(found, again, whole, strict=True):
                assert one.dtype == other.dtype == expected.dtype
                np.testing.assert_array_equal(one, expected)
                np.testing.assert_array_equal(other, expected)
    part = joining.merged([tuple(array[len(array) // 2 :] for array in whole)] * 2)  # the same part of two tables
    np.testing.assert_array_equal(part[1], rarity.reference(np.tile(counted, 2), FEWEST_BITS)[1][len(whole[1]) // 2 :])


def test_counts_beyond_do_not_wrap():
    full = np.full(128, 255, np.uint8), np.array([2**32 - 100, 5], np.uint32)
    counters, beyond = joining.merged([full, full])
    assert (counters == 255).all() and beyond.tolist() == [2**32 - 1, 64 * 255 + 10]
    assert full[1].tolist() == [2**32 - 100, 5]  # what was given is not written over


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("parts", [1, 4, 64])
def test_numbers_of_counters_are_counted_as_the_shingles_are(backend, parts):
    """By ranges, on top of a table or of nothing, where counters are full and where a range has few of them."""
    generator = np.random.default_rng(4)
    values = generator.integers(0, 2**64, 60, np.uint64)
    counted = np.repeat(values, generator.choice([1, 2, 3, 254, 255, 256, 300], len(values)))
    generator.shuffle(counted)
    whole = rarity.reference(counted, FEWEST_BITS)
    width = len(whole[0]) // parts
    for first in (0, 1000):  # so many are counted in a table
        table = rarity.reference(counted[:first], FEWEST_BITS)
        numbers = joining.slots(Ragged(counted, [first, len(counted)]), FEWEST_BITS)
        assert numbers.dtype == np.uint32 and len(numbers) == len(counted) - first
        found = []
        for part in range(parts):
            some = numbers[numbers // width == part] - np.uint32(part * width)
            begun = joining.no_counters(width)
            if first:
                begun = tuple(array[len(array) * part // parts : len(array) * (part + 1) // parts] for array in table)
            found.append(joining.with_slots(begun, np.array_split(some, 3), backend))
        for one, expected in zip(zip(*found, strict=True), whole, strict=True):
            assert one[0].dtype == expected.dtype
            np.testing.assert_array_equal(np.concatenate(one), expected)


def test_slices_count_in_tables_where_these_are_smaller():
    assert joining.in_table(2**12 + 1, 14) and not joining.in_table(2**12, 14)


def test_merged_tables_longer_than_a_block(monkeypatch):
    tables = [rarity.reference(np.arange(s, 2**64, 2**48, np.uint64) // 3, 15) for s in (0, 5)]
    expected = joining.merged(tables)
    monkeypatch.setattr(joining, "BLOCK", 1 << 7)
    for one, other in zip(joining.merged(tables), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_size_of_a_table():
    assert table_bits(0) == table_bits(10) == FEWEST_BITS and table_bits(10**6) == 20 and table_bits(10**12) == 30
    assert table_bits(10**12, 17 << 20) == 24 and table_bits(10**12, (17 << 20) - 1) == 23
    assert table_bits(10**12, 0) == FEWEST_BITS


@pytest.mark.parametrize("measured", MEASURED)
def test_postings_of_a_range_have_the_bitmaps_of_documents(measured):
    """Each bitmap is that of the document, folded to as many words as it has postings in the range, or fewer."""
    (measure, _), ranks = MEASURED[measured], np.arange(240) * 2**40
    rows = ragged(as_given(planted(6), measure))
    words = bitmaps.num_words(np.diff(rows.offsets), 0.3, measure.both_sizes)
    whole = bitmaps.reference(np.array(rows.values), rows.offsets, words, measure.both_sizes)
    ends, join = np.cumsum(words), np.bitwise_xor if measure.both_sizes else np.bitwise_or
    widths = []
    with Engine(backend="cpu").start() as runtime:
        for parts in posted_by(as_given(planted(6), measure), ranks, measure, 0.3, runtime, 4, 3):
            found = joining.Bitmaps.of(parts, Joiner(measure, 0.3, runtime))
            assert found.ranks.tolist() == sorted({rank for posted in parts for rank in posted.rank.tolist()})
            for rank, place, fold in zip(found.ranks.tolist(), found.places.tolist(), found.folds, strict=True):
                row, begin, width = rank >> 40, place >> 4, 1 << place % 16
                expected = join.reduce(whole[ends[row] - words[row] : ends[row]].reshape(-1, width), axis=0)
                assert found.words[begin : begin + width].tolist() == expected.tolist()
                assert fold == join.reduce(expected)
                widths.append(width)
    assert max(widths) > 1


def test_postings_are_the_prefixes():
    """Each entry unpacked, with ranks of more than 32 bits and sizes, in parts of a few documents."""
    sets, ranks = planted(5, 60), np.arange(60)[::-1] * 2**40
    table = rarity.reference(ragged(sets).values, FEWEST_BITS)
    rows = ragged(sets)
    shingles, entries, sizes, _ = prefixes.reference(rows.values, rows.offsets, np.arange(60), *table, 0.7, 1)
    owner = [entry % 2**63 // 2**31 for entry in entries.tolist()]
    with Engine(backend="cpu").start() as runtime:
        runtime.shares = replace(runtime.shares, sorted=500)
        join = Joiner(RESEMBLANCE, 0.7, runtime)
        _, found = joining.postings(rows, ranks, table, join, 1)
        _, none = joining.postings(ragged([]), ranks[:0], table, join, 1)
    assert found.shingle.tolist() == shingles.tolist() and found.rank.tolist() == [ranks[row] for row in owner]
    assert found.place.tolist() == [e % 2**31 + (e >> 63 << 31) for e in entries.tolist()]
    assert (found.place >= 2**31).any() and (found.place < 2**31).any()
    assert found.size.tolist() == [len(set(sets[row])) for row in owner] == sizes[owner].tolist()
    assert [array.dtype for array in none] == [array.dtype for array in found]


def crowd_of(num):
    """Documents of one frequent shingle each, and one of their own, so that one run holds all of them."""
    return [[7 << 40, (number + 1) * 0x9E3779B97F4A7C15 % 2**64] for number in range(num)]


@pytest.mark.parametrize("most_bytes", [MUCH, 4000 * joining.POSTING_BYTES])
def test_a_giant_run_is_not_looked_through(most_bytes, monkeypatch):
    """Whether it fits in memory or not, and then it is not held; twins elsewhere are met still."""
    index, held = joining._indexed, []

    def indexed(parts, *rest):
        held.append(sum(len(posted.shingle) for posted in parts))
        return index(parts, *rest)

    monkeypatch.setattr(joining, "_indexed", indexed)
    sets = [*crowd_of(20_000), [1 << 50, 2 << 50], [1 << 50, 2 << 50]]
    with Engine(backend="cpu").start() as runtime:
        (parts,) = posted_by(sets, np.arange(len(sets)), RESEMBLANCE, 0.3, runtime, 1, 5, 20)
        pairs, crowded, looks = found_by(parts, RESEMBLANCE, 0.3, 0, runtime, most_bytes)
    assert (20_000, 20_001) in pairs
    assert Counter(crowded).keys() >= set(range(20_000)) and not {20_000, 20_001} & set(crowded)
    assert looks < 2 * len(sets) and max(held) <= most_bytes // joining.POSTING_BYTES


def test_runs_of_the_reference_set_alone_crowd_nobody():
    sets = crowd_of(600)
    with Engine(backend="cpu").start() as runtime:
        (parts,) = posted_by(sets, np.arange(600), RESEMBLANCE, 0.3, runtime, 1, bits=20)
        pairs, crowded, looks = found_by(parts, RESEMBLANCE, 0.3, 600, runtime, long_run=8)
        assert not pairs and not crowded and not looks
        pairs, crowded, _ = found_by(parts, RESEMBLANCE, 0.3, 599, runtime, long_run=8)
        assert {pair for pair in pairs if pair[1] == 599} >= {(row, 599) for row in range(599)} and not crowded
        _, crowded, _ = found_by(parts, RESEMBLANCE, 0.3, 590, runtime, long_run=8)
        assert len(crowded) == 600


def test_a_full_list_is_gone_on_with():
    """Of a document with more candidates than are asked for at a time, all come, each once."""
    sets = crowd_of(1500)
    with Engine(backend="cpu").start() as runtime:
        (parts,) = posted_by(sets, np.arange(1500), RESEMBLANCE, 0.3, runtime, 1, bits=20)
        pairs, crowded, _ = found_by(parts, RESEMBLANCE, 0.3, 0, runtime, long_run=1500)
    assert not crowded and len(pairs) == len(set(pairs)) == 1500 * 1499 // 2
