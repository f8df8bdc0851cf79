"""Count steps on shapes of data on which cost once grew faster than the data and the pairs found."""

import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu.fingerprint_options import Near
from neardup_gpu.hamming import jobs, near_pairs, sorted_runs
from neardup_gpu.kernels import _markup, _probing, bucket_probe, cluster_stream, hamming, prefix_probe

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks import cliff_shapes as shapes


def sketches_of(texts, s=100):
    recipe = nd.Recipe(method=nd.BottomK(s=s))
    return recipe.method.sketch(nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe))


class TestClusters:
    @staticmethod
    def stream(texts, popular=False):
        stream = cluster_stream.Stream(100, 0.8, popular)
        stream.add(sketches_of(texts))
        return stream

    @pytest.mark.parametrize("popular", [False, True])
    def test_a_crowd_takes_steps_as_it_has_documents(self, popular):
        few, many = (self.stream(shapes.crowd(number), popular) for number in (500, 2000))
        assert few.num_clusters == many.num_clusters == 1
        assert many.num_steps < 4.2 * few.num_steps

    def test_documents_of_shared_sections_take_fewer_than_two_steps_per_pair(self):
        number = 800
        found = self.stream(list(chain.from_iterable(shapes.sections(number))))
        assert found.num_clusters == number
        assert found.num_steps < 2 * number * (number - 1) / 2


class Steps:
    """Counts the entries of runs that are merged when an index is asked."""

    def __init__(self, monkeypatch):
        self.number = 0
        self._wrap(monkeypatch, _probing, "_merge_all", self._of_features)
        self._wrap(monkeypatch, prefix_probe, "_merge_all", self._of_prefixes)
        self._wrap(monkeypatch, bucket_probe, "_scan_all", self._of_buckets)

    @staticmethod
    def _wrap(monkeypatch, module, name, count):
        run = getattr(module, name)

        def counted(*arguments):
            count(*arguments)
            return run(*arguments)

        monkeypatch.setattr(module, name, counted)

    def _add(self, rows, most, allowed):
        """Add the entries of a run that are looked at until `most` allowed ones were found."""
        found = np.flatnonzero(allowed[rows])
        self.number += len(rows) if len(found) < most else int(found[most - 1]) + 1 if most > 0 else 0

    def _of_features(self, number, rows, runs, ends, r, most, allowed, *_):
        queries = np.repeat(np.arange(number), np.diff(ends, prepend=0))
        for query, (table, start, stop) in zip(queries.tolist(), runs.tolist(), strict=True):
            self._add(rows[table, start:stop], int(most[query]), allowed)

    def _of_prefixes(self, _, rows, ends, elements, places, offsets, sizes, threshold, most, allowed, *more):
        starts, stops = more[:2]
        queries = np.repeat(np.arange(len(sizes)), np.diff(offsets))
        for query, *bounds in zip(queries.tolist(), starts.tolist(), stops.tolist(), strict=True):
            for start, stop in zip(*bounds, strict=True):
                self._add(rows[0, start:stop], int(most[query]), allowed)

    def _of_buckets(self, number, rows, starts, ends, simhashes, queries, masks, radius, most, allowed, *_):
        for query in range(number):
            for table, (start, stop) in enumerate(zip(starts[query].tolist(), ends[query].tolist(), strict=True)):
                self._add(rows[table, start:stop], int(most[query]), allowed)


@pytest.mark.parametrize("method", ["exact", "minhash", "simhash"])
def test_an_index_asks_a_crowd_for_what_is_kept(method, tmp_path, monkeypatch):
    """Entries that were removed are passed over once, not for each document."""
    steps = {}
    for number in (1000, 4000):
        count = Steps(monkeypatch)
        with nd.Index.create(tmp_path / f"{number}", recipe=nd.Recipe(method=method)) as index:
            assert index.add({"text": shapes.crowd(number)}, commit_every=number // 2).kept < 30
        monkeypatch.undo()
        steps[number] = count.number
    assert steps[4000] < 4.5 * steps[1000], steps


@pytest.mark.parametrize(("number", "words", "engine"), [(1500, 2, "cpu"), (300, 1, "reference")])
def test_pairs_of_a_dense_cluster_are_not_held(number, words, engine, tmp_path, monkeypatch):
    """Whatever their number, at most 3,000 wait at a time, and 2,000 are written at a time, or those of one row."""
    values = shapes.near_fingerprints(number)
    values[::7] = values[0]
    if words == 2:
        values = np.stack([values, np.roll(values, 1)], axis=1)
    np.save(tmp_path / "values.npy", values)
    monkeypatch.setattr(sorted_runs, "HELD", 3000)
    monkeypatch.setattr(sorted_runs, "BLOCK", 100)
    monkeypatch.setattr(hamming, "_PIECE", 2000)
    held, add = [], sorted_runs.SortedRuns.add

    def noted(runs, packed, distance=None):
        held.append(runs._held + len(packed))
        add(runs, packed, distance)

    monkeypatch.setattr(sorted_runs.SortedRuns, "add", noted)
    report = jobs.pairs(tmp_path / "values.npy", tmp_path / "pairs.parquet", near=Near(radius=8), engine=engine)
    assert engine == "reference" or max(held) <= 3000 + max(2000, number)
    expected = near_pairs.pairs(values, 8, backend="cpu")
    found = pq.read_table(tmp_path / "pairs.parquet")
    assert report["pairs"] == len(expected.left) > 3 * 3000
    for name, column in zip(("id_a", "id_b", "distance"), expected, strict=False):
        assert found[name].to_numpy().tolist() == column.tolist()


def test_tags_with_equal_beginnings_are_not_compared_as_text(monkeypatch):
    """Each of 200 open tags is new: it is compared with those of its hash, of which there are none."""
    compared, same = [], _markup._same

    def noted(page, a, length_a, b, length_b):
        compared.append(length_a)
        return same(page, a, length_a, b, length_b)

    monkeypatch.setattr(_markup, "_same", noted)
    monkeypatch.setattr(_markup, "_place", _markup._place.py_func)
    page = np.frombuffer(shapes.nested_tags(0, depth=200).encode(), np.uint8)
    assert _markup._is_tame.py_func(page, _markup.NAMES, _markup.KINDS)
    assert sum(compared) == 200  # the name of each end tag
