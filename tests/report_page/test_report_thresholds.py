"""What a page says of other thresholds is what runs at these thresholds decide, or bounds of it."""

import random

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from in_parts import in_tasks

from neardup_gpu import Recipe, Shingles, SimHash, Writing, dedup
from neardup_gpu.report_page.run import run_of_folder, run_of_tables
from neardup_gpu.report_page.thresholds import curve, grid
from neardup_gpu.store.artefacts import read_report

OPTIONS = {"id_column": "id", "engine": "cpu", "check": 0}


def pages(seed=3):
    """Pages with copies of which up to six words are others, and exact copies."""
    draw = random.Random(seed)
    texts = []
    for _ in range(40):
        page = draw.choices([f"w{i}" for i in range(900)], k=60)
        for changes in range(draw.randrange(1, 7)):
            copy = list(page)
            for _ in range(changes):
                copy[draw.randrange(60)] = draw.choice("xyz")
            texts += [" ".join(copy)] * draw.choice([1, 1, 2])
    draw.shuffle(texts)
    return pa.table({"id": [f"d{i}" for i in range(len(texts))], "text": texts})


def crowd(seed, num=60):
    """Pages of twelve words of which up to four are others: all resemble one another, more or less."""
    draw = random.Random(seed)
    texts = []
    for _ in range(num):
        page = [f"w{i}" for i in range(12)]
        for place in draw.sample(range(12), draw.choice([1, 2, 3, 4])):
            page[place] = f"x{draw.randrange(6)}"
        texts.append(" ".join(page))
    return pa.table({"id": [f"m{i}" for i in range(num)], "text": texts})


@pytest.mark.parametrize("cluster", ["greedy", "components"])
@pytest.mark.parametrize("against", [False, True])
@pytest.mark.parametrize("settings", [{}, {"keep": "longest"}, {"method": "containment"}, {"method": "minhash"}])
def test_numbers_are_those_of_runs(settings, against, cluster):
    whole = pages()
    known, mine = (whole.slice(0, 30), whole.slice(30)) if against else (None, whole)
    result = flat(dedup, mine, against=known, threshold=0.4, cluster=cluster, **settings, **OPTIONS)
    steps = curve(result._run())
    assert steps[0][:3] == (0.4, result.removed.num_rows, result.removed.num_rows)
    assert len({step.least for step in steps}) > 5
    for step in steps[::3]:
        at = result.at(step.threshold)
        assert (step.least, step.most) == (at.removed.num_rows,) * 2
        assert step.pairs == at.pairs.num_rows


def test_of_a_job_in_tasks(tmp_path):
    whole = pages()
    result = flat(dedup, whole, threshold=0.4, **OPTIONS)
    in_tasks(tmp_path / "out", whole, slice_bytes=20_000, partitions=3, recipe=result.recipe, id_column="id", check=0)
    report = read_report(tmp_path / "out")
    assert "documents/part-00001.parquet" in report["files"]
    assert curve(run_of_folder(tmp_path / "out", report, "out")) == curve(result._run())


@pytest.mark.parametrize("cluster", ["greedy", "components"])
@pytest.mark.parametrize("max_partners", [1, 5, 20])
def test_bounds_hold_where_lists_were_cut(max_partners, cluster):
    narrow = 0
    for seed in range(3):
        recipe = Recipe(shingles=Shingles(1), threshold=0.3, cluster=cluster, max_partners=None)
        every = flat(dedup, crowd(seed), recipe=recipe, **OPTIONS)
        cut = flat(dedup, crowd(seed), recipe=recipe.with_(max_partners=max_partners), **OPTIONS)
        assert cut.report["limits"]["unlisted_pairs"]
        for step in curve(cut._run()):
            assert step.least <= every.at(step.threshold).removed.num_rows <= step.most
            narrow += step.least < step.most
        assert all(step.least == step.most for step in curve(every._run()))
    assert narrow


def test_a_near_duplicate_that_looks_like_a_copy():
    """b and copy have the one pair with a, which c removes up to 0.85: a copy goes with a, b stays."""
    recipe = Recipe(threshold=0.8)
    documents = pa.table({"id": ["c", "a", "b", "copy"], "kept": [True, False, True, False]})
    rows = [("c", "a", 0.85), ("a", "b", 1.0), ("a", "copy", 1.0)]
    pairs = pa.table(dict(zip(("id_a", "id_b", "resemblance"), zip(*rows, strict=True), strict=True)))
    one_copy, both_copies = (pairs.append_column("kind", [["near", b, "identical"]]) for b in ("near", "same_words"))
    limits = {"max_partners": 64, "unlisted_pairs": 0, "all_counted": True}
    report = {"counts": {"removed": 2}, "limits": limits}
    steps = curve(run_of_tables(documents, one_copy, report, recipe, None, None))
    assert [step[1:3] for step in steps] == [(2, 2), *[(2, 2)] * 10, *[(2, 2)] * 30]
    steps = curve(run_of_tables(documents, both_copies, report, recipe, None, None))
    assert [step[1:3] for step in steps] == [(2, 2), *[(3, 3)] * 10, *[(2, 2)] * 30]


def test_nothing_verified_and_nothing_above():
    unverified = flat(dedup, pages(), recipe=Recipe(method=SimHash()), **OPTIONS)
    assert curve(unverified._run()) is None
    (step,) = curve(flat(dedup, pages(), threshold=1.0, **OPTIONS)._run())
    assert step.threshold == 1


def test_no_pairs():
    steps = curve(dedup({"text": ["one two three", "four five six"]}, writing=Writing(check=0))._run())
    assert {step[1:] for step in steps} == {(0, 0, 0)}


@pytest.mark.parametrize("threshold", [0.001, 0.05, 0.3, 0.5, 0.8, 0.83, 0.8123456, 0.99, 0.9999, 1.0])
def test_grid(threshold):
    found = grid(threshold)
    assert found[0] == threshold and found[-1] == 1
    assert len(found) <= 42 and (np.diff(found) > 0).all()
