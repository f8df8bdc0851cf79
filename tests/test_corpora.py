"""Real corpora against their exact answers, at the default settings: recall, precision, resemblance, decisions.

Gold was made with another rule for tokens: `\\w+` of the lower-cased text. The two rules coincide on ASCII; where a
document has a word on which they do not, its resemblances may differ, and it is counted here instead of compared.
"""

import hashlib

import pyarrow.parquet as pq
import pytest
from gold import DIFFERING, differing
from grids import some
from witnesses import greedy

from neardup_gpu import Recipe, Writing, dedup
from neardup_gpu.stages import tokenize

pytestmark = pytest.mark.corpus

DOCUMENTS = {"django_docs": 2823, "bills_116_small": 5424, "winps_docs": 14134, "manpages": 11037, "bills_116": 20418}


class Run:
    """A corpus, its gold and what the default settings make of it, in row numbers."""

    def __init__(self, folder, name):
        path = folder / f"{name}.parquet"
        self.result = dedup(path, id_column="id")
        table = pq.read_table(path, columns=["id", "text"])
        self.ids, self.texts = table["id"].to_pylist(), table["text"].to_pylist()
        self.pairs = self.rows(self.result.pairs, "resemblance")
        recipe, self.sequence = Recipe(), []
        for first in range(0, len(self.texts), 500):
            tokens = tokenize(table["text"].slice(first, 500), recipe)
            self.sequence += [hashlib.sha256(tokens[i].tobytes()).digest() for i in range(len(tokens))]
        self.empty = hashlib.sha256(b"").digest()
        self.representative, seen = {}, {}
        for row, sequence in enumerate(self.sequence):
            self.representative[row] = row if sequence == self.empty else seen.setdefault(sequence, row)

    def rows(self, table, value):
        """{(row, row): value}, ascending, of a table of pairs."""
        order = {id_: row for row, id_ in enumerate(self.ids)}
        columns = (table[column].to_pylist() for column in ("id_a", "id_b", value))
        return {tuple(sorted((order[a], order[b]))): x for a, b, x in zip(*columns, strict=True)}

    def between(self, a, b):
        """Reported resemblance of two documents, by way of their representatives; None if they are no pair."""
        a, b = sorted((self.representative[a], self.representative[b]))
        return 1.0 if a == b else self.pairs.get((a, b))


@pytest.fixture(scope="module", params=some(DOCUMENTS, ["winps_docs"]))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(corpora, name):
    return Run(corpora, name)


@pytest.fixture(scope="module")
def gold(corpora, name, run):
    return run.rows(pq.read_table(corpora / f"{name}.gold.parquet"), "jaccard")


class TestGold:
    def test_recall(self, run, gold):
        """Of all pairs at or above 0.8, whatever the rule for tokens: at least 0.99 are found."""
        true = [pair for pair, resemblance in gold.items() if resemblance >= 0.8]
        assert len(true) > 1900
        found = sum(run.between(*pair) is not None for pair in true)
        assert found >= 0.99 * len(true), f"{found} of {len(true)}"

    def test_resemblance_and_precision(self, run, gold, name):
        """Where the rules coincide every reported pair is gold's, with gold's resemblance to the last bit."""
        assert len(run.ids) == DOCUMENTS[name]
        differ = differing(run.texts)
        assert differ.sum() == DIFFERING[name]
        compared = 0
        for (a, b), resemblance in run.pairs.items():
            assert resemblance >= 0.8
            if not differ[a] and not differ[b]:
                compared += 1
                assert resemblance == gold.get((a, b)), (run.ids[a], run.ids[b])
        assert compared > 0.9 * len(run.pairs)
        for (a, b), resemblance in gold.items():  # exact copies too, by way of their representatives
            mine = run.between(a, b)
            if mine is not None and not differ[a] and not differ[b]:
                assert mine == resemblance >= 0.8

    def test_who_is_kept(self, run):
        """The kept set is the one that brute force over the verified pairs gives; every removal names its reason."""
        representatives = [
            r for r in range(len(run.ids)) if run.representative[r] == r and run.sequence[r] != run.empty
        ]
        rank = {row: number for number, row in enumerate(representatives)}
        verified = [(rank[a], rank[b]) for a, b in run.pairs if b in rank]
        copies = {b: a for a, b in run.pairs if b not in rank}
        assert copies == {row: first for row, first in run.representative.items() if row != first}
        stay = dict(zip(representatives, greedy(len(representatives), verified), strict=True))
        order = {id_: row for row, id_ in enumerate(run.ids)}
        for row, decided in enumerate(run.result.documents.to_pylist()):
            assert decided["kept"] == (run.representative[row] == row and stay.get(row, True)), run.ids[row]
            if not decided["kept"]:
                keeper = order[decided["duplicate_of"]]
                assert run.result.documents["kept"][keeper].as_py()
                assert decided["resemblance"] == run.between(row, keeper) >= 0.8


@pytest.mark.parametrize("threshold", [0.3, 0.8, 0.95])
def test_edinburgh_s_published_pairs_and_no_other(corpora, threshold):
    """The 20 pairs resemble each other by 0.9598 or more, no other two documents by 0.3: any threshold between does."""
    result = dedup(corpora / "edinburgh_2500.parquet", threshold=threshold, id_column="id", writing=Writing(check=2500))
    truth = pq.read_table(corpora / "edinburgh_2500.truth.parquet")
    found, published = (
        {tuple(sorted(pair)) for pair in zip(t["id_a"].to_pylist(), t["id_b"].to_pylist(), strict=True)}
        for t in (result.pairs, truth)
    )
    assert len(published) == 20
    assert found == published
    assert result.report["counts"]["removed"] == 20
    # All documents against all others, without a filter: there are no more.
    sampled = result.report["recall"]["sampled"]
    assert (sampled["documents"], sampled["pairs"], sampled["recall"]) == (2500, 20, 1.0)
