"""The sampled check of recall: what it estimates is what a comparison of all pairs of texts gives."""

import itertools

import pyarrow as pa
import pytest
from versions import corpus, decisions
from witnesses import jaccard, shingle_set, token_strings

from neardup_gpu import MinHash, dedup, report


@pytest.fixture(scope="module")
def table():
    return corpus()


@pytest.fixture(scope="module")
def result(table):
    return dedup(table, id_column="id")


class TestCheckOfRecall:
    def test_a_filter_that_finds_all(self, table):
        run = dedup(table, id_column="id", threshold=0.8, check=10_000, method=MinHash(filter="64,1,1"))
        sampled = run.report["recall"]["sampled"]
        verified = run.report["counts"]["verified_pairs"]
        assert sampled["documents"] == run.report["counts"]["representatives"]
        assert (sampled["recall"], sampled["pairs"]) == (1.0, verified)

    def test_a_filter_that_finds_little(self, table):
        """Over all documents the check is no sample: it counts the share of each one's pairs that were found."""
        run = dedup(table, id_column="id", check=10_000, method=MinHash(filter="1,20,1"))
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
        listed = sampled["listed"]
        assert 0 < len(found) < len(true)
        assert sampled["pairs"] == len(true)
        assert sampled["with_duplicates"] == len(shares)
        assert listed["recall"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)  # one sum in another order
        assert listed["low"] <= listed["recall"] <= listed["high"]
        kept = set(run.documents.filter(run.documents["kept"])["id"].to_pylist())
        shares = [
            sum(not {*pair} <= kept for pair in mine) / len(mine) for i in sets if (mine := [p for p in true if i in p])
        ]
        assert listed["recall"] <= sampled["recall"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)

    def test_what_the_limit_lost_is_not_called_found(self):
        """1,000 pairs of pages that share 354 words of a template: true pairs resemble each other by exactly 0.8, all
        others by 0.76, so one bucket holds nearly all of them and the limit decides what is compared."""
        texts = []
        template = [f"t{i}" for i in range(354)]
        for pair in range(1000):  # 350 common shingles, 10 of the pair, 45 of the page
            for side in "ab":
                texts.append(
                    " ".join(
                        [*template, *(f"p{pair}w{i}" for i in range(10)), *(f"{side}{pair}w{i}" for i in range(45))]
                    )
                )
        run = dedup(pa.table({"text": texts}), threshold=0.8, check=400)
        kept = run.documents["kept"].to_numpy()
        lost = float((kept[0::2] & kept[1::2]).mean())
        sampled = run.report["recall"]["sampled"]
        assert lost > 0.1
        # Every document has one near-duplicate: the share of pairs lost is what the sample estimates.
        assert sampled["low"] <= 1 - lost <= sampled["high"] < 1
        assert sampled["filter"]["recall"] > 0.95
        assert sampled["left_out_by_limit"] > 0
        (shown,) = [text for label, text in report.facts(run.report) if label == "recall"]
        assert not shown.startswith(("99", "100"))

    def test_none(self, table, result):
        run = dedup(table, id_column="id", check=0)
        assert run.report["recall"]["sampled"] is None
        assert decisions(run) == decisions(result)
