"""Pairs that are found block by block decide and list what all pairs do: by brute force, with blocks of few rows."""

import random
from functools import partial
from itertools import product

import pytest
from flat import flat
from grids import some
from hypothesis import given
from test_partners import DRAWN, compare, hypothesis_settings, rounds, run_against_the_rule, table

from neardup_gpu import MinHash, Recipe, Shingles, dedup
from neardup_gpu.jobs import dedup as job
from neardup_gpu.stages.partner_blocks import BlockSearch
from neardup_gpu.stages.partners import Known, Partners, partners_of, selected
from neardup_gpu.stages.verification import nearest_pairs


def in_blocks(most_pairs):
    """What takes the place of `partners_of` in jobs, and puts together again what is handed on."""

    def find(search, explicit, cluster):
        search.known.add(explicit)
        every = Known()
        every.add(before := search.known.all())
        blocks = BlockSearch(most_pairs, every.add)
        numbers = blocks(search, before, cluster)
        found = every.all()
        assert len(found.pairs) - len(before.pairs) >= numbers.num_unlisted
        if numbers.counted:
            assert len(found.pairs) - len(before.pairs) == numbers.num_unlisted == blocks.handed_on
        most, directed = search.recipe.max_partners, search.recipe.method.measure.directed
        listed, deciding = selected(found, search.pinned, cluster, most, directed)
        unlisted = len(found.pairs) - len(listed.pairs)
        near = nearest_pairs(search.num_known, search.num_rows, found)
        return Partners(listed, deciding, near, numbers.num_candidates, unlisted, numbers.counted, numbers.looks)

    def partners_in_blocks(*given):
        *others, limits = given
        return partners_of(*others, limits._replace(verified_at_once=50), find)

    return partners_in_blocks


@pytest.fixture
def by_blocks(monkeypatch):
    """Jobs in memory find partners in blocks of which so many pairs are held."""

    def patch(most_pairs):
        monkeypatch.setattr(job, "partners_of", in_blocks(most_pairs))

    return patch


@hypothesis_settings(60)
@given(*DRAWN)
def test_against_brute_force(monkeypatch, by_blocks, texts, recipe, share, keep, asked):
    by_blocks(asked * (1 + len(texts) % 9))
    run_against_the_rule(monkeypatch, texts, recipe, share, keep, asked)


SMALL_BUCKETS = MinHash(k=4, s=1, bucket_limit=2, bucket_probe=1)
CROWDS = list(product(["exact", "containment", SMALL_BUCKETS], ["greedy", "components"], [2, None]))


@pytest.mark.parametrize(("method", "cluster", "most"), some(CROWDS, CROWDS[::5] + CROWDS[1::5]))
def test_a_crowd_in_which_not_all_meet(monkeypatch, by_blocks, method, cluster, most):
    """Rows that look for more than their first partners; by min-hash with pairs that were known before."""
    rounds(monkeypatch, *((8, 16) if most is None else (1, 2)))
    generator = random.Random(3)
    base = [f"w{i}" for i in range(12)]
    texts = []
    for _ in range(90):
        text = list(base)
        for place in generator.sample(range(12), generator.choice([1, 2, 3, 4])):
            text[place] = f"x{generator.randrange(5)}"
        texts.append(" ".join(text))
    recipe = Recipe(method=method, shingles=Shingles(1), threshold=0.6, max_partners=most, cluster=cluster)
    run = compare
    if isinstance(method, MinHash):  # whose oracle is the job in memory: `rule.py` knows all pairs, not those proposed
        run = partial(_as_at_once, monkeypatch)
    for most_pairs in (1, 40) if most else (40,):
        by_blocks(most_pairs)
        result = run(texts[10:], recipe, texts[:10])
        assert result.report["limits"]["all_counted"] == (most is None)


def _as_at_once(monkeypatch, texts, recipe, known):
    run = partial(flat, dedup, table(texts), recipe=recipe, against=table(known, "k"), engine="cpu", check=0)
    found = run()
    with monkeypatch.context() as patch:
        patch.setattr(job, "partners_of", partners_of)
        expected = run()
    assert found.documents.equals(expected.documents) and found.pairs.equals(expected.pairs)
    return found
