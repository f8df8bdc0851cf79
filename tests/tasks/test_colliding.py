"""Collisions by ranges of buckets, in any number of slices and parts, find what `collide` finds in memory."""

import numpy as np
import pytest
from grids import some

from neardup_gpu import BottomK, MinHash, ModM, Recipe, SimHash
from neardup_gpu.data import Pairs
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.errors import ResourceError
from neardup_gpu.stages.decisions import found_by
from neardup_gpu.tasks.colliding import (
    TableCollisions,
    exchanged,
    from_columns,
    halves,
    parts,
    whole,
)

NONE = np.uint64(2**64 - 1)


def often_enough(left: np.ndarray, right: np.ndarray, needed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The candidates among all findings of some pairs: in lexicographic order, each once. Cost: a sort."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    begins = np.ones(len(left), bool)
    begins[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    begins = np.flatnonzero(begins)
    if needed is not None:
        times = np.diff(np.append(begins, len(left)))
        begins = begins[times >= needed[order[begins]]]
    return left[begins], right[begins]


def simhashes(method, draw, rows):
    """Random ones, and crowds of near ones: some equal, some that differ in up to 8 bits."""
    width = method.bits // 64
    centres = draw.integers(0, 2**64, (5, width), np.uint64)
    found = centres[draw.integers(0, 5, rows)]
    for _ in range(8):
        bit = np.uint64(1) << draw.integers(0, 64, (rows, width), np.uint64)
        found ^= np.where(draw.random((rows, width)) < 0.15, bit, np.uint64(0))
    lone = draw.random(rows) < 0.3
    found[lone] = draw.integers(0, 2**64, (int(lone.sum()), width), np.uint64)
    return found[:, 0].copy() if width == 1 else found


def features(method, draw, rows):
    """Few values of each column, so that there are buckets of all sizes, and rows that are the same."""
    columns = method.key_columns
    kinds = 2 ** draw.integers(1, 12, columns).astype(np.uint64)
    keys = draw.integers(0, kinds, (rows, columns), np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys[draw.random(rows) < 0.2] = keys[:1]
    if method.name in ("bottomk", "modm"):
        keys[draw.random(keys.shape) < 0.2] = NONE
        keys.sort(axis=1)
    elif method.describe()["supershingle_bits"] == 16:
        keys >>= np.uint64(48)
    return keys


def keys_of(method, rows, seed=3):
    draw = np.random.default_rng(seed)
    return (simhashes if method.name == "simhash" else features)(method, draw, rows)


def in_parts(method, keys, num_slices, per_table, num_known=0, seed=1, most_entries=None, **options):
    """What `proposed` gives, by way of slices of shuffled rows and partitions of each table; with `most_entries`, as a
    stream of blocks of rows."""
    ranks = np.random.default_rng(11).permutation(len(keys))
    shuffled, partitions = keys[ranks], {}
    for number in range(num_slices):
        some = slice(number * len(keys) // num_slices, (number + 1) * len(keys) // num_slices)
        for partition, columns in exchanged(method, shuffled[some], ranks[some], len(keys), per_table, seed):
            for each in np.unique(partition).tolist():
                there = {name: column[partition == each] for name, column in columns.items()}
                partitions.setdefault(each, []).append(there)
    buckets, found = method.buckets(len(keys)), []
    for partition, blocks in partitions.items():
        columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        table = partition // per_table
        rows = len(columns["rank_low"])
        cuts = [{name: column[at : at + 40] for name, column in columns.items()} for at in range(0, rows, 40)]
        collisions = TableCollisions(buckets, table, num_known, most_entries=most_entries, **options)
        found += collisions.found(lambda cuts=cuts: map(from_columns, cuts), rows)
    nothing = np.empty(0, np.int64)
    left, right = (np.concatenate([nothing, *(getattr(each, side) for each in found)]) for side in ("left", "right"))
    needed = None
    if found and any(each.needed is not None for each in found):
        needed = np.concatenate([each.needed for each in found if len(each.left)] or [nothing])
    crowded = np.zeros(len(keys), bool)
    for each in found:
        crowded[each.crowded] = True
    counts = sum(each.large_buckets for each in found), sum(each.uncompared_pairs for each in found)
    return Pairs(*often_enough(left, right, needed)), *counts, crowded, found


def same(method, keys, num_slices=3, per_table=3, num_known=0, **options):
    recipe = Recipe(method=method, threshold=None if method.name == "simhash" else 0.8)
    expected = found_by(keys, recipe, HostRuntime("cpu"))
    pairs = expected.pairs.where(expected.pairs.right >= num_known)
    got, large, uncompared, crowded, found = in_parts(method, keys, num_slices, per_table, num_known, **options)
    np.testing.assert_array_equal(got.left, pairs.left)
    np.testing.assert_array_equal(got.right, pairs.right)
    assert (large, uncompared) == (expected.large_buckets, expected.uncompared_pairs)
    np.testing.assert_array_equal(crowded, expected.crowded)
    assert method.accidents(len(keys)) == expected.accidents
    return expected, found


METHODS = [
    MinHash(k=5, s=3),
    MinHash(k=4, s=3, r=2, bucket_limit=7, bucket_probe=3),
    MinHash(k=4, s=3, r=3, bucket_limit=2, bucket_probe=5),
    MinHash(filter="bing", bucket_limit=20, bucket_probe=1),
    MinHash(k=6, s=10, r=2, sample_bits=1, candidates="segments"),
    BottomK(s=20, leading=3, bucket_limit=9, bucket_probe=4),
    BottomK(s=20, candidates="groups", shared_groups=1),
    BottomK(s=20, candidates="groups", shared_groups=2, bucket_limit=9, bucket_probe=4),
    BottomK(s=20, candidates="groups", shared_groups=4, bucket_limit=300),
    ModM(m=4, leading=3),
    ModM(leading=2, adaptive=True, bucket_limit=5, bucket_probe=2),
    ModM(m=4, s=9, leading=4, bucket_limit=2, bucket_probe=11),
    *(SimHash(radius=radius, bits=bits) for radius in (0, 3, 6) for bits in (64, 128)),
    SimHash(radius=1, bucket_limit=8, bucket_probe=2),
    SimHash(radius=4, bits=128, bucket_limit=8, bucket_probe=30),
    SimHash(radius=16),
]
"""Of each kind, with the usual limits and with ones that many buckets exceed, also a probe above the limit."""


def named(method):
    told = {k: v for k, v in method.describe().items() if k in ("filter", "radius", "bits", "leading", "shared_groups")}
    return " ".join([method.name, *map(str, told.values()), f"{method.bucket_limit}/{method.bucket_probe}"])


@pytest.mark.parametrize("method", some(METHODS, METHODS[::3]), ids=named)
@pytest.mark.parametrize(
    ("num_slices", "per_table", "most_bytes"),
    some([(1, 1, 64 << 20), (3, 3, 20_000), (7, 16, 4_000), (2, 2, 1)], [(3, 3, 20_000)]),
)
def test_ranges_find_what_memory_does(method, num_slices, per_table, most_bytes):
    rows = 80 if most_bytes == 1 else 500
    expected, found = same(method, keys_of(method, rows), num_slices, per_table, most_bytes=most_bytes)
    assert len(expected.pairs) > 0
    compared = max(1, most_bytes // 192)
    assert all(len(each.left) <= 2 * compared for each in found)  # of a block, and of what it is compared with
    assert all(len(each.crowded) <= max(1, most_bytes // 16) for each in found)


@pytest.mark.parametrize("method", [MinHash(k=4, s=3, r=2), ModM(m=1, leading=3), SimHash(radius=3)], ids=named)
def test_pairs_of_the_reference_set_are_left_out(method):
    expected, _ = same(method, keys_of(method, 500), num_known=200, most_bytes=4_000)
    assert (expected.pairs.right < 200).any()


@pytest.mark.parametrize("method", [MinHash(k=2, s=3), BottomK(s=9, leading=2), SimHash(radius=2)], ids=named)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(method, rows):
    same(method, keys_of(method, rows))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_backends(backend):
    for method in METHODS[1], METHODS[7], METHODS[-2]:
        same(method, keys_of(method, 150), most_bytes=4_000, backend=backend)


@pytest.mark.parametrize(
    "method",
    [MinHash(k=1, s=3), MinHash(k=1, s=3, bucket_limit=2000, bucket_probe=500), SimHash(radius=0), SimHash(radius=2)],
    ids=named,
)
def test_one_bucket_of_all_rows(method):
    """Far above the limits: it is taken in blocks, and what is held stays small."""
    rows = 6_000
    keys = np.full((rows, 1) if method.key_columns else rows, 77, np.uint64)
    expected, found = same(method, keys, most_bytes=1_000_000)
    assert expected.large_buckets == len(method.buckets(rows).masks)
    assert expected.crowded.all()
    assert max(len(each.left) for each in found) <= 2 * 1_000_000 // 192


@pytest.mark.parametrize("method", some(METHODS, METHODS[::3]), ids=named)
def test_streams_find_what_memory_does(method):
    """However little is held: buckets that do not fit are looked through block by block."""
    keys = keys_of(method, 500)
    limits = method.buckets(len(keys))
    least = max(limits.bucket_limit, limits.bucket_probe)
    for most_entries in sorted({least, least + 30, 10**6}):
        expected, found = same(method, keys, per_table=1, num_known=50, most_bytes=20_000, most_entries=most_entries)
        assert len(expected.pairs) > 0
        assert all(len(each.left) <= 2 * 20_000 // 192 for each in found)


@pytest.mark.parametrize(
    "method", [MinHash(k=1, s=3, bucket_limit=70), SimHash(radius=0, bucket_limit=70), ModM(m=1, leading=1)], ids=named
)
def test_a_stream_of_one_bucket(method):
    rows = 3_000
    keys = np.full((rows, max(1, method.key_columns)), 77, np.uint64)
    expected, found = same(method, keys if method.key_columns else keys[:, 0], per_table=1, most_entries=100)
    assert expected.large_buckets == len(method.buckets(rows).masks)
    assert expected.crowded.all()
    assert max(len(each.crowded) for each in found) <= 40


def test_a_bucket_of_which_too_many_are_compared_is_refused():
    method = MinHash(k=1, s=3, bucket_limit=500)
    keys = np.full((3_000, 1), 77, np.uint64)
    with pytest.raises(ResourceError, match=r"^bucket_limit 500, bucket_probe 16: a bucket has 3,000 documents, .*"):
        in_parts(method, keys, 1, 1, most_entries=499)
    assert in_parts(method, keys, 1, 1, most_entries=500)[1] == 1


def test_parts_hold_whole_buckets_and_can_be_split():
    draw = np.random.default_rng(2)
    values = draw.integers(0, 2**64, (5000, 2), np.uint64)
    mask = np.array([0xFFFF, 0xFF << 56], np.uint64)
    words = values[:, 0] & mask[0] | (values[:, 1] & mask[1]) >> np.uint64(1)
    for these, its_mask in ((values, mask), (values[:, 0], mask[0])):
        coarse = parts(these, its_mask, 7)
        assert np.array_equal(parts(these, its_mask, 7 * 5) // 5, coarse)
        assert np.bincount(coarse, minlength=7).min() > 500  # of 714: evenly, though few bits decide
        bucket = words if these is values else these & its_mask
        _, first, number = np.unique(bucket, return_index=True, return_inverse=True)
        assert np.array_equal(coarse[first][number], coarse)
    assert (parts(values, mask, 1) == 0).all()


def test_ranks_in_six_bytes():
    ranks = np.array([0, 1, 2**32 - 1, 2**32, 2**48 - 1])
    low, high = halves(ranks)
    assert (low.itemsize, high.itemsize) == (4, 2)
    assert np.array_equal(whole(low, high), ranks)


def test_an_entry_takes_fourteen_bytes():
    """So a document of 20 features takes 280."""
    for method, bytes_a_document in (
        (MinHash(k=20, s=7), 280),
        (SimHash(radius=3), 4 * 14),
        (SimHash(radius=3, bits=128), 4 * 22),
        (ModM(m=1, leading=3), 3 * 14),
    ):
        keys = np.random.default_rng(1).integers(0, 2**63, (10, max(1, method.key_columns)), np.uint64)
        keys = keys if method.key_columns else keys[:, 0]
        ranks, total = np.arange(10), 0
        for _, columns in exchanged(method, keys, ranks, 100_000, 2, 1):
            total += sum(column.nbytes for column in columns.values())
        assert total == 10 * bytes_a_document
