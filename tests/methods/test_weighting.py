"""Min-hash with weights: whole jobs against all pairs by hand, tables of frequencies, sketch files, refusals."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu import MinHash, NeardupError, Recipe, Shingles, SimHash, Writing, dedup, papers, theory
from neardup_gpu.errors import ArgumentTypeError, ParameterError, RecipeMismatchError
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import Frequencies, pairs, sketch
from neardup_gpu.stages import Ragged

WEIGHTINGS = ("tf", "log", "tfidf")
WEIGHTED = pytest.mark.parametrize("weighting", WEIGHTINGS)


def corpus(seed=1, num_pages=60):
    """Texts in groups: a page that repeats some of its parts, and copies that repeat them more or less often."""
    draw, texts = random.Random(seed), []
    for page in range(num_pages):
        parts = [[f"w{page}x{draw.randrange(400)}" for _ in range(draw.randrange(6, 16))] for _ in range(8)]
        times = [draw.choice([1, 1, 1, 2, 3, 8]) for _ in parts]
        for _ in range(3):
            texts.append(" ".join(" ".join(part * n) for part, n in zip(parts, times, strict=True)))
            changed = draw.randrange(len(parts))
            times[changed] = max(1, times[changed] + draw.choice([-1, 1, 2]))
            parts[draw.randrange(len(parts))][0] = "other"
    return texts


def logarithm(n):
    """floor(256 log2 n)."""
    return (n**256).bit_length() - 1


def weighed(texts, weighting, size=5):
    """Each text as {shingle: weight}, from the definitions."""
    rows = []
    for text in texts:
        words = text.split()
        rows.append(Counter(tuple(words[i : i + size]) for i in range(max(1, len(words) - size + 1)) if words))
    held = Counter(shingle for row in rows for shingle in row)
    number = sum(bool(row) for row in rows)

    def weight(shingle, count):
        if weighting == "tf":
            return 256 * count
        log = 256 + logarithm(count)
        if weighting == "log":
            return log
        return log * (256 + logarithm(number + 1) - logarithm(held[shingle] + 1)) // 256

    return [{shingle: weight(shingle, count) for shingle, count in row.items()} for row in rows]


def resemblance(a, b):
    shared = a.keys() & b.keys()
    low = sum(min(a[f], b[f]) for f in shared)
    return Fraction(low, sum(a.values()) + sum(b.values()) - low)


def true_pairs(rows, threshold):
    """{(a, b): resemblance} of all pairs at the threshold, by brute force."""
    found = {}
    for a, b in itertools.combinations(range(len(rows)), 2):
        if rows[a].keys() & rows[b].keys():
            worth = resemblance(rows[a], rows[b])
            if worth.numerator / worth.denominator >= threshold:
                found[a, b] = worth.numerator / worth.denominator
    return found


def listed(found):
    return {(pair["id_a"], pair["id_b"]): pair["resemblance"] for pair in found.pairs.to_pylist()}


def missed_at_most(chances, failure=1e-9):
    """The least m such that more than m of independent pairs are missed with a probability below `failure`."""
    law = np.ones(1)
    for missed in chances:
        law = np.convolve(law, [1 - missed, missed])
    tail = 1 - np.cumsum(law)
    return int(np.flatnonzero(tail < failure)[0])


class TestJobs:
    @WEIGHTED
    def test_pairs_are_true_and_as_many_as_theory_says(self, weighting):
        """All pairs by brute force. Those of different groups share no shingle, so they are found independently.

        One pair of each group is counted: more are missed than allowed with a probability below 1e-9.
        """
        texts, threshold = corpus(), 0.7
        true = true_pairs(weighed(texts, weighting), threshold)
        method = MinHash(weighting=weighting, filter="6,5,1")  # so that some are missed
        found = dedup({"text": texts}, method=method, threshold=threshold)
        seen = listed(found)
        assert seen.items() <= true.items()
        first = {pair[0] // 3: pair for pair in reversed(true)}.values()
        assert len(first) > 40
        chances = [theory.miss_probability(true[pair], 6, 5, 1) for pair in first]
        allowed = missed_at_most(chances)
        assert allowed < 20
        assert sum(pair not in seen for pair in first) <= allowed
        assert found.report["counts"]["removed"] > 40
        plain = listed(dedup({"text": texts}, method=MinHash(filter="6,5,1"), threshold=threshold))
        assert plain != seen  # repeats count here

    @WEIGHTED
    def test_all_are_found_by_a_generous_filter(self, weighting):
        """Of pairs at 0.7, 40,2,1 misses one in 5e11."""
        texts = corpus(2, 20)
        found = dedup(
            {"text": texts},
            method=MinHash(weighting=weighting, filter="40,2,1"),
            threshold=0.7,
            writing=Writing(check=60),
        )
        assert listed(found) == true_pairs(weighed(texts, weighting), 0.7)
        sampled = found.report["recall"]["sampled"]
        assert sampled["recall"] == 1
        assert sampled["pairs"] == len(listed(found))  # of all documents: the check misses none, whatever they weigh

    @WEIGHTED
    def test_backends_decide_the_same(self, weighting):
        texts = corpus(3, 4)
        method = MinHash(weighting=weighting, k=5, s=2)
        found = [dedup({"text": texts}, method=method, threshold=0.6, engine=name) for name in ("cpu", "reference")]
        assert found[0].pairs.equals(found[1].pairs)
        assert found[0].documents.equals(found[1].documents)
        assert found[0].report["recall"] == found[1].report["recall"]

    def test_repeats_alone_can_part_documents(self):
        """As sets the two are the same; by weights one is mostly the part that it repeats."""
        one, two = " ".join(f"a{i}" for i in range(30)), " ".join(f"b{i}" for i in range(30))
        texts = [f"{one} {two}", " ".join([one] * 20 + [two])]
        plain = dedup({"text": texts}, method="minhash", threshold=0.8)
        by_tf = dedup({"text": texts}, method=MinHash(weighting="tf"), threshold=0.8)
        assert plain.report["counts"]["removed"] == 1
        assert by_tf.report["counts"]["removed"] == 0

    def test_a_reference_set(self):
        texts = corpus(4, 6)
        found = dedup({"text": texts[1::3]}, method=MinHash(weighting="log"), against=pa.table({"text": texts[::3]}))
        assert found.documents["in_reference"].to_pylist().count(True) == found.report["counts"]["removed"] > 0

    @WEIGHTED
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_crowds_follow_the_rule_of_buckets(self, weighting, cluster):
        """They are not joined: what the limit leaves out is counted, and the check of recall counts it as missed."""
        page = " ".join(f"t{i}" for i in range(100))
        texts = [f"{page} {page} page{i}" for i in range(40)]
        method = MinHash(weighting=weighting, k=1, s=1, bucket_limit=4, bucket_probe=2)
        found = dedup(
            {"text": texts}, recipe=Recipe(method=method, cluster=cluster, max_partners=None), writing=Writing(check=40)
        )
        limits, counts = found.report["limits"], found.report["counts"]
        assert counts["comparisons"] == 0
        assert limits["large_buckets"] == 1 and limits["bucket_limit"] == 4 and limits["bucket_probe"] == 2
        true = true_pairs(weighed(texts, weighting), 0.8)
        assert len(true) == 780
        assert listed(found).items() < true.items()
        assert limits["uncompared_pairs"] == 780 - len(listed(found)) > 0
        sampled = found.report["recall"]["sampled"]
        assert sampled["pairs"] == 780 and sampled["recall"] < 0.5
        assert sampled["one_removed"]["share"] == 1
        lines = nd.report.facts(found.report)
        assert ("limits", f"{limits['uncompared_pairs']} pairs in 1 large bucket not compared") in lines

    @WEIGHTED
    def test_explain(self, weighting, tmp_path):
        texts = corpus(5, 5)
        rows = weighed(texts, weighting)
        source = tmp_path / "in.parquet"
        pq.write_table(pa.table({"text": texts}), source)
        found = dedup(source, method=MinHash(weighting=weighting), threshold=0.6, output=tmp_path / "out")
        removed = [row for row in found.documents.to_pylist() if not row["kept"]]
        assert removed
        for row in removed:
            a, b = rows[row["id"]], rows[row["duplicate_of"]]
            for told in (found.explain(row["id"]), explain(tmp_path / "out", row["id"])):
                assert Fraction(told.shared, told.united) == resemblance(a, b)
                assert (told.resemblance, told.weighting) == (row["resemblance"], weighting)
        pq.write_table(pa.table({"text": [f"{text} {text}" for text in texts]}), source)
        with pytest.raises(NeardupError, match="changed"):
            explain(tmp_path / "out", removed[0]["id"])

    def test_nothing_changes_without_weights(self):
        assert "weighting" not in Recipe(method="minhash").describe()
        assert Recipe(method="minhash") == Recipe(method=MinHash(weighting="none"))

    @WEIGHTED
    def test_a_recipe_is_stored_whole(self, weighting):
        recipe = Recipe(method=MinHash(weighting=weighting), threshold=0.7)
        assert Recipe.from_json(recipe.to_json()) == recipe
        assert recipe.describe()["weighting"] == weighting
        assert set(recipe.method.sketching()) <= set(recipe.method.describe()) | {"k", "s"}


class TestFrequencies:
    def test_of_a_job(self, tmp_path):
        """Counted in the job, named in its recipe, written beside its results, and taken by another job."""
        texts = corpus(6, 8)
        found = dedup({"text": texts}, method=MinHash(weighting="tfidf"), output=tmp_path / "out")
        rows = weighed(texts, "log")
        held = Counter(shingle for row in rows for shingle in row)
        assert sorted(found.frequencies.counts.tolist()) == sorted(held.values())
        assert (found.frequencies.num_documents, found.frequencies.elements) == (24, "set shingles of 5 tokens")
        assert found.recipe.method.frequencies == found.frequencies.digest
        stored = tmp_path / "out" / "frequencies.parquet"
        assert Frequencies.load(stored).digest == found.frequencies.digest
        for given in (stored, str(stored), found.frequencies):
            again = dedup({"text": texts}, recipe=found.recipe.with_(frequencies=given))
            assert again.pairs.equals(found.pairs)
            assert again.recipe == found.recipe
        few = dedup({"text": texts[:6]}, method=MinHash(weighting="tfidf", frequencies=stored))
        assert few.recipe == found.recipe
        some = {pair: worth for pair, worth in listed(found).items() if max(pair) < 6}
        assert listed(few) == some  # by the weights of all documents

    def test_others_are_refused(self, tmp_path):
        texts = corpus(7, 4)
        found = dedup({"text": texts}, method=MinHash(weighting="tfidf"))
        tokens = dedup({"text": texts}, method=SimHash(weighting="tfidf")).frequencies
        threes = dedup(
            {"text": texts}, recipe=Recipe(shingles=Shingles(3), method=MinHash(weighting="tfidf"))
        ).frequencies
        circular = dedup(
            {"text": texts}, recipe=Recipe(shingles=Shingles(kind="circular"), method=MinHash(weighting="tfidf"))
        ).frequencies
        seeded = dedup({"text": texts}, recipe=Recipe(method=MinHash(weighting="tfidf"), seed=2)).frequencies
        tfidf = MinHash(weighting="tfidf")
        cases = [
            ({"recipe": found.recipe}, "give them by"),
            ({"method": tfidf, "frequencies": tokens}, "counts tokens, but set shingles of 5 tokens are needed"),
            ({"method": tfidf, "frequencies": threes}, "counts set shingles of 3 tokens"),
            ({"method": tfidf, "frequencies": circular}, "counts circular shingles"),
            ({"method": tfidf, "frequencies": seeded}, "seed = 2"),
            ({"method": SimHash(weighting="tfidf"), "frequencies": threes}, "but tokens are needed"),
            ({"method": "minhash", "frequencies": found.frequencies}, "weighting 'none' takes no document frequencies"),
            ({"method": MinHash(weighting="log"), "frequencies": found.frequencies}, "weighting 'log' takes no"),
            ({"method": tfidf, "frequencies": tmp_path / "none.parquet"}, "none.parquet"),
        ]
        for given, words in cases:
            with pytest.raises(NeardupError) as error:
                flat(dedup, texts=texts, **given)
            assert words in str(error.value) and "\n" not in str(error.value)

    def test_what_was_counted_is_in_the_digest(self):
        same = [Frequencies([5], [1], 1, 1, elements) for elements in ("tokens", "set shingles of 5 tokens")]
        assert same[0].digest != same[1].digest


class TestSketchFiles:
    @WEIGHTED
    @pytest.mark.parametrize("bits", [32, 64])
    def test_estimates(self, weighting, bits, tmp_path):
        """Estimates lie in their intervals, each of 99%; of 60 independent pairs more than 10 do not with 1e-9."""
        texts = corpus(8)
        rows = weighed(texts, weighting)
        method = MinHash(weighting=weighting, bits=bits, filter="20,5,1")
        told = sketch({"text": texts}, method=method, output=tmp_path / "s.parquet")
        assert told["recipe"]["weighting"] == weighting
        assert ("frequencies" in told) == (weighting == "tfidf")
        found = pairs(tmp_path / "s.parquet").to_pylist()
        groups = {pair["id_a"] // 3: pair for pair in found if pair["id_a"] // 3 == pair["id_b"] // 3}
        tail = sum(math.comb(60, n) * 0.01**n for n in range(11, 61))
        assert tail < 1e-9
        outside = 0
        for pair in groups.values():
            worth = float(resemblance(rows[pair["id_a"]], rows[pair["id_b"]]))
            outside += not pair["low"] <= worth <= pair["high"]
        assert len(groups) > 50
        assert outside <= 10

    def test_sketches_of_other_weights_do_not_meet(self, tmp_path):
        texts = corpus(9, 3)
        methods = {name: MinHash(weighting=name, filter="5,4,1") for name in ("none", *WEIGHTINGS)}
        for name, method in methods.items():
            sketch({"text": texts}, method=method, output=tmp_path / f"{name}.parquet")
        again = tmp_path / "again.parquet"
        counted = tmp_path / "tfidf.frequencies.parquet"
        more = pa.table({"text": texts[:2], "id": [100, 101]})
        weighed = MinHash(weighting="tfidf", filter="5,4,1", frequencies=counted)
        sketch(more, again, method=weighed, id_column="id")
        assert len(pairs([tmp_path / "tfidf.parquet", again])) > 0
        for one, other in itertools.permutations(methods, 2):
            with pytest.raises(RecipeMismatchError, match="weighting"):
                pairs([tmp_path / f"{one}.parquet", tmp_path / f"{other}.parquet"])
        sketch(more, again, id_column="id", method=methods["tfidf"], overwrite=True)
        with pytest.raises(RecipeMismatchError, match="frequencies"):
            pairs([tmp_path / "tfidf.parquet", again])


class TestGivenWeights:
    def test_counts_are_weights(self):
        elements = Ragged.from_rows([[7, 7, 9], [], [9]], np.uint64)
        method = MinHash(k=10, s=5, weighting="tf")
        features = Ragged.from_rows([[9, 7], [], [9]], np.uint64)
        assert np.array_equal(method.sketch(elements), method.sketch_weights(features, [256, 512, 256]))
        assert (method.sketch(elements)[1] == 2**32 - 1).all()
        longer = MinHash(k=10, s=5, weighting="tf", bits=64).sketch(elements)
        assert np.array_equal(longer >> np.uint64(32), method.sketch(elements))

    def test_counts_are_weights_of_simhashes(self):
        elements = Ragged.from_rows([[7, 7, 9], [], [9, 5, 5, 5]], np.uint64)
        features = Ragged.from_rows([[9, 7], [], [5, 9]], np.uint64)
        method = SimHash(bits=128, weighting="tf")
        assert np.array_equal(method.sketch(elements), method.sketch_weights(features, [1, 2, 3, 1]))
        with pytest.raises(ParameterError, match="one for each feature"):
            method.sketch_weights(features, [1])

    @pytest.mark.parametrize(
        ("weights", "kind", "words"),
        [
            ([1, -1], ParameterError, "at least 0"),
            ([2**48 + 1, 0], ParameterError, "at most 2**48"),
            ([2**48, 1], ParameterError, "document 0 are more than 2**48 together"),
            ([1], ParameterError, "one for each feature"),
            ([0.5, 1], NeardupError, "weights"),
            ("ab", ArgumentTypeError, "weights"),
        ],
    )
    def test_impossible_ones(self, weights, kind, words):
        features = Ragged.from_rows([[1, 2]], np.uint64)
        with pytest.raises(kind) as error:
            MinHash(k=2, s=2, weighting="tf").sketch_weights(features, weights)
        assert words in str(error.value) and "\n" not in str(error.value)

    def test_the_greatest(self):
        features = Ragged.from_rows([[1, 2], [3]], np.uint64)
        found = MinHash(k=2, s=2, weighting="tf").sketch_weights(features, [2**48 - 1, 1, 2**48])
        assert (found != 2**32 - 1).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MinHash(weighting="idf"), "not one of none, tf, log, tfidf"),
        (lambda: MinHash(weighting=None), "weighting"),
        (lambda: MinHash(weighting="tf", frequencies="ab"), "takes no document frequencies"),
        (lambda: SimHash(weighting="none"), "not one of tf, log, tfidf"),
        (lambda: Recipe(method=MinHash(weighting="tf"), shingles=Shingles(5, "bag")), "numbers repeats already"),
        (
            lambda: dedup(
                {"text": ["a"]}, recipe=Recipe(shingles=Shingles(kind="bag"), method=MinHash(weighting="log"))
            ),
            "numbers repeats already",
        ),
        (lambda: Recipe(method=MinHash(weighting="tf")).with_(shingling="bag"), "numbers repeats already"),
        (lambda: MinHash(k=1, s=1, weighting="tfidf").sketch(Ragged.from_rows([[1]], np.uint64)), "needs them"),
        (lambda: papers.l1(1.5, 1, 1), "resemblance"),
        (lambda: papers.l1(0.5, -1, 1), "a must be"),
        (lambda: papers.l1(0.5, 1, "b"), "b must be"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(NeardupError) as error:
        make()
    assert words in str(error.value) and "\n" not in str(error.value)


def test_l1_is_exact():
    """The identity holds of integers; in float64 it rounds to the same."""
    for seed in range(200):
        draw = random.Random(seed)
        a, b = ({f: draw.randrange(1, 10**6) for f in range(20) if draw.random() < 0.7} for _ in range(2))
        distance = sum(abs(a.get(f, 0) - b.get(f, 0)) for f in range(20))
        worth, norms = resemblance(a, b), (sum(a.values()), sum(b.values()))
        assert (1 - worth) / (1 + worth) * sum(norms) == distance
        assert round(papers.l1(float(worth), *norms)) == distance
