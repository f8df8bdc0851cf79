"""Greedy clusters of streams: against resemblances of plain sets, and what depends on the order."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu.kernels import bottomk, cluster_stream

EMPTY = 2**64 - 1


def rows(sets, s):
    """Sets of small integers as sketches, of which the integers are the elements."""
    table = np.full((len(sets), s), EMPTY, np.uint64)
    for row, elements in zip(table, sets, strict=True):
        row[: len(elements)] = sorted(elements)
    return table


def clusters_of(s, **settings):
    return nd.sketches.Clusters(nd.Recipe(method=nd.BottomK(s=s, leading=1)), **settings)


def jaccard(a, b):
    return Fraction(len(a & b), len(a | b))


class TestFirstMembers:
    @settings(deadline=None, max_examples=fewer(60))
    @given(
        sets=st.lists(st.sets(st.integers(0, 25), max_size=9), max_size=40),
        percent=st.sampled_from([1, 25, 50, 75, 100]),
        cuts=st.lists(st.integers(0, 40), max_size=4),
    )
    @example(sets=[{1, 2}, {2, 3}, {1, 2, 3}, {1, 2, 3}], percent=50, cuts=[1, 1])
    def test_all_representatives_compared(self, sets, percent, cuts):
        """Documents of at most s shingles are known exactly, so the sets themselves say what happens."""
        founders, expected = [], []
        for mine in sets:
            near = [(jaccard(mine, sets[f]), -number) for number, f in enumerate(founders) if mine]
            best, number = max(near, default=(Fraction(0), 0))
            if not mine:
                expected.append((-1, None))
            elif 100 * best >= percent:
                expected.append((-number, float(best)))
            else:
                expected.append((len(founders), 1.0))
                founders.append(len(expected) - 1)
        found, table = clusters_of(50, threshold=percent / 100), rows(sets, 50)
        bounds = sorted({0, len(sets), *(min(cut, len(sets)) for cut in cuts)})
        parts = [found.add(table[a:b]) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        joined = [
            (c, None if np.isnan(e) else e) for p in parts for c, e in zip(p.cluster.tolist(), p.estimate, strict=True)
        ]
        assert joined == expected
        assert found.founders.tolist() == founders
        assert [i for i, new in enumerate(n for p in parts for n in p.founded) if new] == founders
        assert found.sizes.tolist() == [sum(c == number for c, _ in expected) for number in range(len(founders))]
        np.testing.assert_array_equal(found.representatives, table[founders])

    def test_order_decides(self):
        """B is near A and C, which are not near one another: it depends on who comes first who is with whom."""
        a, b, c = {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}

        def joined(*order):
            return clusters_of(9, threshold=0.5).add(rows(order, 9)).cluster.tolist()

        assert joined(a, b, c) == [0, 0, 1]
        assert joined(b, a, c) == [0, 0, 0]
        assert joined(a, c, b) == joined(c, a, b) == [0, 1, 0]  # equally near both: the earlier

    def test_the_nearest_not_the_first(self):
        found = clusters_of(9, threshold=0.25).add(rows([{1, 2, 3, 4}, {4, 5, 6, 7}, {3, 4, 5, 6, 7}], 9))
        assert found.cluster.tolist() == [0, 1, 1]
        assert found.estimate.tolist() == [1, 1, 0.8]

    def test_estimates_are_those_of_the_method(self):
        """Of documents of more than s shingles, by the estimator of pairs."""
        draw = np.random.default_rng(3)
        base = draw.integers(0, 2**63, 900, np.uint64)
        recipe = nd.Recipe(method=nd.BottomK(s=64), threshold=0.3)
        shingles = [np.append(base[k:], draw.integers(0, 2**63, k, np.uint64)) for k in (0, 50, 100, 300)]
        sketches = recipe.method.sketch(nd.stages.Ragged.from_rows(shingles, np.uint64))
        found = nd.sketches.Clusters(recipe).add(sketches)
        assert found.cluster.tolist() == [0, 0, 0, 0]
        zeros, others = np.zeros(3, np.int64), np.arange(1, 4)
        np.testing.assert_array_equal(recipe.method.estimate_rows(sketches, zeros, others).estimate, found.estimate[1:])

    def test_one_at_a_time_through_all_growth(self):
        """The index grows many times over on the way; each of 3,000 sketches alone, as all of them at once."""
        draw = np.random.default_rng(9)
        centres = draw.integers(0, 2**60, (400, 20), np.uint64)
        table = centres[draw.integers(0, 400, 3000)]
        table[:, :3] = draw.integers(0, 2**60, (3000, 3), np.uint64)
        table.sort(axis=1)
        for representative in ("first", "commonest"):
            at_once, one_by_one = (clusters_of(20, threshold=0.6, representative=representative) for _ in range(2))
            expected = at_once.add(table)
            found = [one_by_one.add(table[i : i + 1]) for i in range(len(table))]
            np.testing.assert_array_equal(np.concatenate([each.cluster for each in found]), expected.cluster)
            np.testing.assert_array_equal(np.concatenate([each.estimate for each in found]), expected.estimate)
            np.testing.assert_array_equal(one_by_one.representatives, at_once.representatives)
            np.testing.assert_array_equal(one_by_one.founders, at_once.founders)
            assert 350 < len(at_once) < 3000


class TestCommonest:
    def test_by_hand(self):
        """Of s = 3: after {1,2,3} and {2,3,4}, 2 and 3 are twice there, and 1 goes before 4; then 4 is as common."""
        found = clusters_of(3, threshold=0.3, representative="commonest")
        found.add(rows([{1, 2, 3}, {2, 3, 4}], 3))
        assert found.representatives.tolist() == [[1, 2, 3]]
        found.add(rows([{3, 4, 5}], 3))  # of the 3 smallest of {1, ..., 5}, only 3 is in both
        assert found.representatives.tolist() == [[2, 3, 4]]
        assert found.sizes.tolist() == [3]

    def test_it_follows_what_the_cluster_has_become(self):
        """By first members the last is too far from the founder; the commonest have moved on."""
        stream = [set(range(k, k + 8)) for k in (0, 2, 2, 4, 4, 4)]
        by = {kind: clusters_of(20, threshold=0.5, representative=kind) for kind in ("first", "commonest")}
        joined = {kind: each.add(rows(stream, 20)).cluster.tolist() for kind, each in by.items()}
        assert joined["first"] == [0, 0, 0, 1, 1, 1]
        assert joined["commonest"] == [0, 0, 0, 0, 0, 0]

    @settings(deadline=None, max_examples=fewer(40))
    @given(
        stream=st.lists(st.sets(st.integers(0, 12), max_size=4), max_size=30),
        cut=st.integers(0, 30),
        threshold=st.sampled_from([0.2, 0.5, 1.0]),
    )
    def test_counted_from_the_members(self, stream, cut, threshold):
        """Each representative has the commonest elements of its members, as many as their lower median."""
        found = clusters_of(4, threshold=threshold, representative="commonest")
        cluster = np.concatenate([found.add(rows(part, 4)).cluster for part in (stream[:cut], stream[cut:])])
        for number, mine in enumerate(found.representatives.tolist()):
            members = [one for c, one in zip(cluster, stream, strict=True) if c == number]
            counts = Counter(element for one in members for element in one)
            commonest = sorted(counts, key=lambda e: (-counts[e], e))[: statistics.median_low(map(len, members))]
            assert [e for e in mine if e != EMPTY] == sorted(commonest)

    def test_elements_of_single_members_fill_no_representative(self):
        """Short documents leave room in a representative; each has one element that no other document has."""
        table = rows([{*range(90), 1000 + number} for number in range(500)], 200)
        for representative in ("first", "commonest"):
            found = clusters_of(200, threshold=0.9, representative=representative)
            assert found.add(table).cluster.tolist() == [0] * 500
            assert found.representatives[0].tolist() == table[0].tolist()

    def test_the_representative_grows_with_the_median(self):
        found = clusters_of(5, threshold=0.2, representative="commonest")
        found.add(rows([{1}, {1, 2, 3, 4}], 5))
        assert found.representatives.tolist() == [[1, *[EMPTY] * 4]]
        found.add(rows([{1, 3, 4, 5}], 5))
        assert found.representatives.tolist() == [[1, 2, 3, 4, EMPTY]]


def test_documents_without_shingles_are_in_no_cluster():
    found = clusters_of(5).add(rows([set(), {1}, set(), {1}], 5))
    assert found.cluster.tolist() == [-1, 0, -1, 0]
    assert np.isnan(found.estimate[[0, 2]]).all() and not found.founded[[0, 2]].any()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: nd.sketches.Clusters(nd.Recipe(method="minhash")),
            "recipe: method minhash makes no clusters; choose bottomk",
        ),
        (lambda: nd.sketches.Clusters(nd.Recipe(method="exact")), "recipe: method exact makes no clusters"),
        (lambda: clusters_of(3, threshold=0), "threshold must be > 0 and <= 1"),
        (lambda: clusters_of(3, representative="last"), "representative 'last' is not one of first, commonest"),
        (lambda: clusters_of(3).add(np.zeros((1, 4), np.uint64)), "sketches: uint64 of shape"),
        (lambda: clusters_of(3).add(np.zeros((1, 3), np.int64)), "sketches: int64 of shape"),
        (lambda: clusters_of(3).add(np.array([[1, 2, 3], [1, 1, 2]], np.uint64)), r"sketches\[1\]: not ascending"),
        (lambda: clusters_of(3).add(np.array([[1, EMPTY, 3]], np.uint64)), r"sketches\[0\]: not ascending"),
    ],
)
def test_bad_input(make, says):
    with pytest.raises(nd.errors.ParameterError, match=says):
        make()


def test_more_than_the_index_can_number(monkeypatch):
    """What is refused changes nothing."""
    found = clusters_of(3)
    found.add(rows([{1, 2, 3}], 3))

    def refuse(count, what):
        raise nd.errors.ResourceError(f"{what}: {count:,}")

    monkeypatch.setattr(cluster_stream, "check_rows", refuse)
    with pytest.raises(nd.errors.ResourceError, match="elements of clusters: 7"):
        found.add(rows([{4, 5, 6}], 3))
    assert len(found) == 1 and found.sizes.tolist() == [1]


# ------------------------------------------------------------------------------------------------------------- files

TEXTS = [f"one two three four five six seven eight nine ten eleven{end}" for end in ("", " twelve", "")]
TEXTS += ["", "quite another text that nobody has seen before today", TEXTS[0]]


def test_files(tmp_path):
    """Two files are one stream, by their paths; ids of founders; null for what has no shingles."""
    for name, some in (("b", slice(3, 6)), ("a", slice(0, 3))):
        nd.sketches.sketch(
            {"text": TEXTS[some]},
            output=tmp_path / f"{name}.parquet",
            recipe=nd.Recipe(method="bottomk", threshold=0.5),
        )
        table = pq.read_table(tmp_path / f"{name}.parquet")
        ids = [f"{name}{i}" for i in range(3)]
        pq.write_table(table.set_column(0, "id", [ids]), tmp_path / f"{name}.parquet")
    files = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    found = nd.sketches.clusters(files, tmp_path / "c.parquet", threshold=0.8)
    assert found.to_pylist() == [
        {"id": "a0", "cluster": 0, "estimate": 1.0, "founder": "a0"},
        {"id": "a1", "cluster": 0, "estimate": 7 / 8, "founder": "a0"},
        {"id": "a2", "cluster": 0, "estimate": 1.0, "founder": "a0"},
        {"id": "b0", "cluster": None, "estimate": None, "founder": None},
        {"id": "b1", "cluster": 1, "estimate": 1.0, "founder": "b1"},
        {"id": "b2", "cluster": 0, "estimate": 1.0, "founder": "a0"},
    ]
    written = pq.read_table(tmp_path / "c.parquet")
    assert written.equals(found)
    about = json.loads(written.schema.metadata[b"neardup_gpu"])
    assert (about["method"], about["threshold"], about["representative"]) == ("bottomk", 0.8, "first")
    with pytest.raises(nd.errors.OutputError, match="exists already"):
        nd.sketches.clusters(files, tmp_path / "c.parquet")
    assert nd.sketches.clusters(files, tmp_path / "c.parquet", overwrite=True).num_rows == 6
    with pytest.raises(nd.errors.InputError, match="holds clusters, not text"):
        nd.dedup(tmp_path / "c.parquet")


def test_files_may_differ_in_what_clusters_do_not_use(tmp_path):
    methods = [nd.BottomK(recall=0.9), nd.BottomK(recall=0.99, bucket_limit=3), nd.BottomK(candidates="groups")]
    files = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, (file, method) in enumerate(zip(files, methods, strict=True)):
        table = pa.table({"id": [3 * i, 3 * i + 1], "text": TEXTS[2 * i : 2 * i + 2]})
        nd.sketches.sketch(table, file, id_column="id", method=method)
    nd.sketches.sketch({"text": TEXTS}, method="bottomk", output=tmp_path / "all.parquet")
    whole = nd.sketches.clusters(tmp_path / "all.parquet").select(["cluster", "estimate"])
    assert nd.sketches.clusters(files).select(["cluster", "estimate"]).equals(whole)


def test_files_of_two_thresholds_need_one(tmp_path):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for first, file, threshold in ((0, files[0], 0.8), (9, files[1], 0.5)):
        table = pa.table({"id": range(first, first + 2), "text": TEXTS[:2]})
        nd.sketches.sketch(
            table, file, id_column="id", recipe=nd.Recipe(method=nd.BottomK(leading=3), threshold=threshold)
        )
    with pytest.raises(nd.errors.RecipeMismatchError) as error:
        nd.sketches.clusters(files)
    assert str(error.value) == f"{files[1]}: made with threshold = 0.5, {files[0]} with 0.8; give a threshold"
    assert nd.sketches.clusters(files, threshold=0.5).num_rows == 4


def test_sketches_that_are_not_bottom_k(tmp_path):
    nd.sketches.sketch({"text": TEXTS}, method="modm", output=tmp_path / "m.parquet")
    with pytest.raises(nd.errors.ParameterError) as error:
        nd.sketches.clusters(tmp_path / "m.parquet")
    assert str(error.value) == f"{tmp_path}/m.parquet: method modm makes no clusters; choose bottomk"


def test_no_documents(tmp_path):
    nd.sketches.sketch({"text": TEXTS}, method="bottomk", output=tmp_path / "s.parquet")
    pq.write_table(pq.read_table(tmp_path / "s.parquet").slice(0, 0), tmp_path / "s.parquet")
    found = nd.sketches.clusters(tmp_path / "s.parquet")
    assert found.num_rows == 0 and found.column_names == ["id", "cluster", "estimate", "founder"]


def test_command(tmp_path):
    nd.sketches.sketch({"text": TEXTS}, method="bottomk", output=tmp_path / "s.parquet")
    nd.sketches.sketch({"text": TEXTS}, output=tmp_path / "m.parquet")
    run = [sys.executable, "-m", "neardup_gpu", "clusters"]
    done = subprocess.run([*run, "s.parquet", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    counts = {"documents": 6, "empty": 1, "clusters": 2, "of_one": 1, "largest": 4}
    assert json.loads(done.stdout) == {"status": "done", **counts, "output": "clusters.parquet"}
    assert pq.read_table(tmp_path / "clusters.parquet")["cluster"].to_pylist() == [0, 0, 0, None, 1, 0]
    for arguments, says in (
        (["m.parquet", "-o", "other.parquet"], "method minhash makes no clusters; choose bottomk"),
        (["s.parquet"], "exists already; name another output or pass --overwrite"),
        (["s.parquet", "--representative", "last"], "--representative 'last' is not one of first, commonest"),
        (["s.parquet", "--threshold", "0"], "--threshold must be > 0"),
    ):
        done = subprocess.run([*run, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("popular", [False, True])
def test_bills(corpora, popular):
    """Real sketches, also full ones, whose clusters share much: the index finds what comparing all finds."""
    recipe = nd.Recipe(method=nd.BottomK(s=40))
    table = pq.read_table(corpora / "bills_116_small.parquet", columns=["text"])["text"].slice(0, 700)
    shingles = nd.stages.shingle(nd.stages.tokenize(table, recipe), recipe)
    sketches = bottomk.cpu(shingles.values, shingles.offsets, np.uint64(5), 40)
    expected, found = (run(sketches, 0.5, popular) for run in (cluster_stream.reference, cluster_stream.cpu))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert 100 < len(found[3]) < 650
