"""The sampled check of recall: what it estimates is what a comparison of all pairs of texts gives."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from versions import corpus, decisions
from witnesses import jaccard, shingle_set, token_strings

from neardup_gpu import MinHash, Recipe, Writing, dedup, report
from neardup_gpu.stages import Pairs, recall


@pytest.fixture(scope="module")
def table():
    return corpus()


@pytest.fixture(scope="module")
def result(table):
    return dedup(table, id_column="id", method="minhash")


class TestCheckOfRecall:
    def test_a_filter_that_finds_all(self, table):
        run = dedup(
            table, method=MinHash(filter="64,1,1"), threshold=0.8, id_column="id", writing=Writing(check=10_000)
        )
        sampled = run.report["recall"]["sampled"]
        verified = run.report["counts"]["verified_pairs"]
        assert sampled["documents"] == run.report["counts"]["representatives"]
        assert (sampled["recall"], sampled["pairs"]) == (1.0, verified)

    def test_a_filter_that_finds_little(self, table):
        """Over all documents the check is no sample: it counts the share of each one's pairs that were found."""
        run = dedup(table, method=MinHash(filter="1,20,1"), id_column="id", writing=Writing(check=10_000))
        texts = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        first = {}
        for i, text in texts.items():
            first.setdefault(tuple(token_strings(text)), i)
        sets = {i: shingle_set(texts[i]) for tokens, i in first.items() if tokens}
        true = {(a, b) for a, b in itertools.combinations(sets, 2) if jaccard(sets[a], sets[b]) >= 0.8}
        found = {(p["id_a"], p["id_b"]) for p in run.pairs.to_pylist()} & true
        shares = []
        for i in sets:
            mine = {pair for pair in true if i in pair}
            shares += [len(mine & found) / len(mine)] if mine else []
        sampled = run.report["recall"]["sampled"]
        assert 0 < len(found) < len(true)
        assert sampled["pairs"] == len(true)
        assert sampled["with_duplicates"] == len(shares)
        assert sampled["recall"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)  # one sum in another order
        assert sampled["low"] <= sampled["recall"] <= sampled["high"]
        kept = set(run.documents.filter(run.documents["kept"])["id"].to_pylist())
        shares = [
            sum(not {*pair} <= kept for pair in mine) / len(mine) for i in sets if (mine := [p for p in true if i in p])
        ]
        removed = sampled["one_removed"]
        assert sampled["recall"] <= removed["share"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)
        assert removed["low"] <= removed["share"] <= removed["high"]
        assert (f"{report.percent(removed['share'])} of the pairs lost a document, found or not") in [
            text for _, text in report.facts(run.report)
        ]

    def test_a_template_that_most_pages_share(self):
        """1,000 pairs of pages that share 354 words of a template: true pairs resemble each other by exactly 0.8, all
        others by 0.76."""
        texts = []
        template = [f"t{i}" for i in range(354)]
        for pair in range(1000):  # 350 common shingles, 10 of the pair, 45 of the page
            for side in "ab":
                texts.append(
                    " ".join(
                        [*template, *(f"p{pair}w{i}" for i in range(10)), *(f"{side}{pair}w{i}" for i in range(45))]
                    )
                )
        table = pa.table({"text": texts})
        run = dedup(table, writing=Writing(check=400))
        assert run.kept.num_rows == 1000
        sampled = run.report["recall"]["sampled"]
        assert sampled["recall"] == sampled["one_removed"]["share"] == 1
        sampled = dedup(table, method="minhash", writing=Writing(check=400)).report["recall"]["sampled"]
        assert sampled["low"] <= 0.99 <= sampled["high"]

    def test_a_crowd_of_which_few_pairs_are_listed(self):
        """What the rule leaves out of the list counts as found, what is missing otherwise does not."""
        texts = [" ".join([*(f"t{i}" for i in range(100)), f"page{i}"]) for i in range(40)]
        run = dedup({"text": texts}, recipe=Recipe(max_partners=2), writing=Writing(check=40))
        sampled = run.report["recall"]["sampled"]
        assert (sampled["pairs"], sampled["recall"]) == (780, 1.0)
        assert run.pairs.num_rows < 200
        short = run.facts.decisions.verified.pairs
        missing = Pairs(short.left[1:], short.right[1:])  # of document 1, the pair with 0
        there = Pairs(np.array([0, 0, 0, 5]), np.array([1, 2, 39, 39]))
        for parts in ([slice(None)], [slice(0, 7), slice(7, 7), slice(7, None)]):
            found = recall.listed_of(((missing.left[some], missing.right[some]) for some in parts), there, 2)
            assert found.tolist() == [False, True, True, True]
        whole = recall.listed_of([(missing.left, missing.right)], there, None)
        assert whole.tolist() == [False, True, True, False]

    def test_the_exact_method_is_not_checked_unless_asked(self, table):
        assert dedup(table, id_column="id").report["recall"] == {"expected": 1.0, "sampled": None}

    def test_none(self, table, result):
        run = dedup(table, method="minhash", id_column="id", writing=Writing(check=0))
        assert run.report["recall"]["sampled"] is None
        assert decisions(run) == decisions(result)
