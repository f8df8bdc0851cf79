"""`exact` against everything that knows the answer: brute force, gold, another program, and the worst of inputs."""

import os
import random
import subprocess
import sys

import pyarrow as pa
import pytest
from flat import flat
from gold import DIFFERING, Corpus, words
from grids import fewer, pairs_of, some
from hypothesis import given, settings, strategies as st
from rule import check, expected, shingles_of, told
from versions import corpus
from witnesses import token_strings

from neardup_gpu import MinHash, Recipe, Shingles, dedup
from neardup_gpu.errors import NeardupError, ParameterError, ResourceError

OPTIONS = {"id_column": "id", "text_columns": "text", "engine": "cpu"}


def table(texts):
    return pa.table({"id": [f"d{i}" for i in range(len(texts))], "text": texts})


def compare(texts, recipe=None, **options):
    """Run the job and hold it against brute force; returns the result."""
    recipe = recipe or Recipe()
    result = flat(dedup, table(texts), recipe=recipe, **OPTIONS, **options)
    check(result, expected([(f"d{i}", text) for i, text in enumerate(texts)], recipe))
    return result


# ------------------------------------------------------------------------------------------------------------ corpora

SMALL = ("django_docs", "bills_116_small")
LARGE = ()
BY_BRUTE_FORCE = ("edinburgh_2500",)
if os.environ.get("NEARDUP_GOLD") == "all":  # a quarter of an hour more, most of it for brute force
    LARGE = ("winps_docs", "manpages", "installguide_html", "openjdk_html", "bills_116", "bills_big")
    BY_BRUTE_FORCE += ("django_docs", "bills_116_small")  # of the former SetSimilaritySearch has all pairs, below


@pytest.fixture(scope="module", params=[*some(SMALL, SMALL[1:]), *LARGE])
def known(corpora, request):
    found = Corpus(corpora, request.param)
    assert len(found.every) > 1000
    if request.param in DIFFERING:
        assert found.differs.sum() == DIFFERING[request.param]
    return found


@pytest.mark.corpus
class TestGold:
    """No pair is missed and none is false; by default, exactly what the rule selects of them is listed."""

    @pytest.mark.parametrize("threshold", some([0.5, 0.8, 0.95], [0.5]))
    def test_all_pairs(self, known, threshold):
        recipe = Recipe(threshold=threshold, max_partners=None)
        result = flat(dedup, known.path, recipe=recipe, **OPTIONS)
        stated = known.expected(recipe)
        check(result, stated)
        # Gold's own pairs, exact copies among them, by way of their representatives.
        _, pairs = told(result)
        for (a, b), resemblance in known.gold().items():
            if resemblance >= threshold and not known.differs[a] and not known.differs[b]:
                a, b = sorted((known.representative[a], known.representative[b]))
                assert a == b or pairs[known.ids[a], known.ids[b]] == resemblance

    @pytest.mark.parametrize(("threshold", "cluster"), pairs_of([0.5, 0.8, 0.95], ["greedy", "components"]))
    def test_what_is_listed_by_default(self, known, threshold, cluster):
        recipe = Recipe(threshold=threshold, cluster=cluster)
        check(flat(dedup, known.path, recipe=recipe, **OPTIONS), known.expected(recipe))


@pytest.mark.corpus
@pytest.mark.parametrize("name", BY_BRUTE_FORCE)
def test_brute_force_over_a_corpus(corpora, name):
    """All documents against all, without gold."""
    known = Corpus(corpora, name, by_gold=False)
    for threshold, most, cluster in ((0.5, 64, "greedy"), (0.8, None, "greedy"), (0.5, 3, "components")):
        recipe = Recipe(threshold=threshold, max_partners=most, cluster=cluster)
        check(flat(dedup, known.path, recipe=recipe, **OPTIONS), known.expected(recipe))


@pytest.mark.corpus
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_min_hash_finds_a_part_of_it(corpora, threshold):
    """What it finds resembles alike, and is listed by `exact` too."""
    path = corpora / "django_docs.parquet"
    exact, hashed = (
        told(flat(dedup, path, threshold=threshold, method=method, max_partners=None, check=0, **OPTIONS))[1]
        for method in ("exact", "minhash")
    )
    assert hashed.items() <= exact.items()
    assert len(hashed) > 0.9 * len(exact)


def test_min_hash_finds_a_part_of_families_of_texts():
    for seed in range(5):
        for method in (MinHash(k=1, s=1, r=1), MinHash(k=20, s=7, r=1)):
            options = {"threshold": 0.5, "max_partners": None, "check": 0, **OPTIONS}
            hashed, exact = (flat(dedup, corpus(seed=seed), method=each, **options) for each in (method, "exact"))
            assert told(hashed)[1].items() <= told(exact)[1].items()


# ----------------------------------------------------------------------------------------------- SetSimilaritySearch


def theirs(sets, threshold):
    """{(row, later row): resemblance} by SetSimilaritySearch."""
    search = pytest.importorskip("SetSimilaritySearch")
    found = search.all_pairs([sorted(each) for each in sets], "jaccard", threshold)
    return {(int(b), int(a)): float(resemblance) for a, b, resemblance in found}


class TestSetSimilaritySearch:
    """The same lemma in Python, release 1.0.1.

    It takes int(t |A|) for the least overlap with a larger set where `exact` takes the least c with c / |A| >= t: its
    prefixes are longer by one where t |A| is no whole number. As it compares with the same float64 division and bounds
    places by one too, ties come out alike: no pair differs.
    """

    @pytest.mark.corpus
    @pytest.mark.parametrize("threshold", [0.5])
    def test_django_docs(self, corpora, threshold):
        import pyarrow.parquet as pq

        documents = pq.read_table(corpora / "django_docs.parquet", columns=["id", "text"]).slice(0, 900)
        first = {}
        for id_, text in zip(*(documents[column].to_pylist() for column in ("id", "text")), strict=True):
            first.setdefault(tuple(words(text)), id_)
        first.pop((), None)
        ids = list(first.values())
        pairs = theirs([map(hash, shingles_of(list(tokens))) for tokens in first], threshold)
        result = flat(dedup, documents, threshold=threshold, max_partners=None, **OPTIONS)
        representatives = set(ids)
        mine = {pair: value for pair, value in told(result)[1].items() if pair[1] in representatives}
        assert mine == {(ids[a], ids[b]): resemblance for (a, b), resemblance in pairs.items()}
        assert len(mine) > 50

    @settings(deadline=None, max_examples=fewer(60))
    @given(
        st.lists(st.frozensets(st.integers(0, 8), min_size=1), min_size=2, max_size=25, unique=True),
        st.sampled_from([0.07, 0.28, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 6 / 7, 1.0]),
    )
    def test_ties(self, sets, threshold):
        texts = [" ".join(f"w{i}" for i in sorted(each)) for each in sets]
        recipe = Recipe(shingles=Shingles(1), threshold=threshold, max_partners=None)
        mine = told(flat(dedup, table(texts), recipe=recipe, **OPTIONS))[1]
        found = theirs(sets, threshold)
        assert mine == {(f"d{a}", f"d{b}"): resemblance for (a, b), resemblance in found.items()}


# --------------------------------------------------------------------------------------------------------- bad inputs


def of_few_sentences(num, seed=1, sentences=60, drawn=30):
    """Documents of 30 sentences out of 60, of which every shingle is frequent but those across two sentences."""
    generator = random.Random(seed)
    pool = [" ".join(f"s{i}w{j}" for j in range(8)) for i in range(sentences)]
    return [" ".join(generator.sample(pool, drawn)) for _ in range(num)]


def of_frequent_words(num, seed=1, vocabulary=60, drawn=30):
    """Documents of 30 words out of 60, each of which is in half of them."""
    generator = random.Random(seed)
    return [" ".join(generator.sample([f"w{i}" for i in range(vocabulary)], drawn)) for _ in range(num)]


class TestBadInput:
    @pytest.mark.parametrize("threshold", [0, 0.0, -0.5, 1.1, float("nan")])
    def test_thresholds_that_cannot_be(self, threshold):
        with pytest.raises(ParameterError, match="threshold") as caught:
            dedup({"text": ["a", "b"]}, threshold=threshold)
        assert "\n" not in str(caught.value)

    def test_no_threshold_of_the_method_itself(self):
        assert Recipe(method="exact").threshold == 0.8
        with pytest.raises(ParameterError, match="method exact needs one"):
            Recipe().method.settled(None)

    @pytest.mark.parametrize("threshold", [1e-9, 5e-324])
    def test_the_least_thresholds(self, threshold):
        """Every two documents with a word in common."""
        texts = corpus(seed=3)["text"].to_pylist()[:60]
        compare(texts, Recipe(shingles=Shingles(1), threshold=threshold, max_partners=None))
        compare(texts, Recipe(shingles=Shingles(1), threshold=threshold, max_partners=2))

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_a_threshold_of_1(self, cluster):
        """Equal sets alone: of other orders, repeats and marks."""
        texts = ["a b c", "c b a", "a b c a", "a b d", "a b", "b a", "A, b!", "x"]
        result = compare(texts, Recipe(shingles=Shingles(1), threshold=1.0, cluster=cluster))
        assert [row["kept"] for row in result.documents.to_pylist()] == [i in (0, 3, 4, 7) for i in range(8)]

    def test_documents_of_one_shingle(self):
        generator = random.Random(2)
        texts = [" ".join(generator.choices("abc", k=generator.randrange(1, 6))) for _ in range(300)]
        result = compare(texts)
        assert result.report["counts"]["representatives"] > 100
        # Of 5 words or fewer two texts have the same shingle or none in common.
        assert result.report["counts"]["removed_near"] == result.report["counts"]["candidate_pairs"] == 0
        compare(texts, Recipe(shingles=Shingles(1)))
        compare(texts, Recipe(shingles=Shingles(1), max_partners=1, cluster="components"))

    def test_one_document_and_no_words(self):
        for texts in (["a b c"], ["", ""], ["", "a"], ["..."]):
            result = compare(texts)
            assert result.report["counts"]["removed"] == 0

    def test_all_documents_alike(self):
        """Of the same words, but none a copy: every set is the same, and every pair has resemblance 1."""
        words = [f"w{i}" for i in range(12)]
        texts = [" ".join(words[i % 12 :] + words[: i % 12] + [words[i % 7]] * (i // 12)) for i in range(300)]
        for most, cluster in ((64, "greedy"), (2, "components"), (None, "greedy")):
            result = compare(texts, Recipe(shingles=Shingles(1), cluster=cluster, max_partners=most))
            assert result.report["counts"]["kept"] == 1

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_every_shingle_is_frequent(self, cluster):
        """Many pairs meet, and none is missed; bitmaps reject nearly all of those that are below the threshold."""
        texts, counts = of_frequent_words(400), []
        for threshold in (0.8, 0.5, 0.4):
            recipe = Recipe(shingles=Shingles(1), threshold=threshold, cluster=cluster, max_partners=8)
            counts.append(compare(texts, recipe).report["counts"])
        assert [each["verified_pairs"] > 0 for each in counts] == [False, True, True]
        assert all(each["comparisons"] > 10_000 for each in counts)
        assert counts[0]["candidate_pairs"] < 100

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_texts_of_few_sentences(self, cluster):
        texts = of_few_sentences(100)
        for threshold, most in ((0.8, 64), (0.2, 4), (0.15, None)):
            result = compare(texts, Recipe(threshold=threshold, cluster=cluster, max_partners=most))
            assert (result.report["counts"]["verified_pairs"] > 0) == (threshold < 0.5)

    def test_2000_documents_of_frequent_words(self):
        """The numbers of comparisons are kept, and a limit to them ends the job."""
        texts = of_frequent_words(2000)
        recipe = Recipe(shingles=Shingles(1), threshold=0.8)
        result = flat(dedup, table(texts), recipe=recipe, **OPTIONS)
        sets = [set(text.split()) for text in texts[:500]]
        assert max(len(a & b) / len(a | b) for i, a in enumerate(sets) for b in sets[:i]) < 0.8
        assert result.report["counts"]["candidate_pairs"] < 100 < 10**6 < result.report["filtered"]["bits"]
        assert result.report["counts"]["kept"] == 2000 - result.report["counts"]["removed"]
        with pytest.raises(ResourceError, match="comparisons"):
            flat(dedup, table(texts), recipe=recipe, max_comparisons=10**6, **OPTIONS)

    def test_the_error_of_too_many_comparisons(self):
        with pytest.raises(NeardupError, match="more than 1,000 comparisons") as caught:
            flat(
                dedup,
                table(of_frequent_words(400)),
                recipe=Recipe(shingles=Shingles(1)),
                max_comparisons=1000,
                **OPTIONS,
            )
        assert "\n" not in str(caught.value)

    def test_one_giant_beside_small_ones(self):
        """2 million words in one document and in a second one, ten of them others; and pages, some of them parts."""
        program = """
import random, sys
import pyarrow as pa
from neardup_gpu import dedup
generator = random.Random(1)
giant = [f"g{generator.getrandbits(40):x}" for _ in range(int(sys.argv[1]))]
pages = [" ".join(f"p{i // 2}w{j}" for j in range(60)) + f" end{i % 2}" for i in range(1000)]
near = list(giant)
for i in range(10):
    near[i * len(near) // 10] = "other"
texts = [*pages, " ".join(giant), *(" ".join(giant[i : i + 80]) for i in range(0, 4000, 40)), " ".join(near)]
found = dedup({"text": texts}, engine="cpu")
print(found.report["counts"]["removed"], found.documents["duplicate_of"].to_pylist()[-1])
assert not any(found.documents["duplicate_of"].to_pylist()[1000:-1])
"""
        small, large = (self.peak_of(program, size) for size in (1000, 2_000_000))
        assert small[1] == large[1] == "501 1000"
        # Text, tokens and shingles of two documents of 2 million words, and what a sort of them takes: 150 bytes a word
        # each would be 0.6 GB.
        assert large[0] - small[0] < 1.2e9, f"{(large[0] - small[0]) / 1e9:.2f} GB more"
        print(f"peak memory: {small[0] / 1e9:.2f} GB with small documents, {large[0] / 1e9:.2f} GB with a giant")

    @staticmethod
    def peak_of(program, size):
        """(peak memory in bytes, output) of a program in a process of its own."""
        program += "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
        run = subprocess.run([sys.executable, "-c", program, str(size)], capture_output=True, text=True, check=True)
        said, peak = run.stdout.strip().splitlines()
        return int(peak), said


def test_engines_agree():
    """The definition, from `reference` kernels alone, and the CPU's."""
    for seed, most, cluster in ((1, 2, "greedy"), (2, 1, "components")):
        recipe = Recipe(shingles=Shingles(2), threshold=0.5, max_partners=most, cluster=cluster)
        found = [
            flat(dedup, corpus(seed=seed), recipe=recipe, **OPTIONS | {"engine": engine})
            for engine in ("reference", "cpu")
        ]
        assert found[0].documents.equals(found[1].documents) and found[0].pairs.equals(found[1].pairs)
        assert found[0].report["limits"] == found[1].report["limits"]


@pytest.mark.parametrize("text", ["été 漢字", "", "a"])
def test_words_of_gold_are_tokens(text):
    """The fast way in which corpora are divided is that of `token_strings`."""
    for each in (text, *corpus()["text"].to_pylist()[:40]):
        assert words(each) == token_strings(each)
