"""Which pairs decide and which are listed: by brute force over all pairs, on sets of all kinds.

`rule.py` is the reference; here rounds are made small, so that each of them has something to do.
"""

import itertools
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from grids import fewer
from hypothesis import HealthCheck, example, given, settings, strategies as st
from rule import all_pairs, check, decided, expected, told
from versions import WORDS, corpus

from neardup_gpu import Recipe, Shingles, dedup
from neardup_gpu.data import Pairs
from neardup_gpu.errors import NeardupError, ParameterError, ResourceError
from neardup_gpu.stages import Verified, partners

ROUNDS = ("first_partners", "_settle", "_kept_partners", "connect")
TIES = (1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 28 / 35, 1.0)


def table(texts, name="m"):
    return pa.table({"id": [f"{name}{i}" for i in range(len(texts))], "text": pa.array(texts, pa.string())})


def named(texts, name="m"):
    return [(f"{name}{i}", text) for i, text in enumerate(texts)]


def compare(texts, recipe, known=None, order=None, columns=None, **options):
    """Run the job on the CPU and hold it against the rule; `order` is rows by priority. Returns the result."""
    mine = table(texts)
    for column, values in (columns or {}).items():
        mine = mine.append_column(column, pa.array(values))
    against = None if known is None else table(known, "k")
    options = {"engine": "cpu", "check": 0, "text_columns": "text", "id_column": "id"} | options
    result = flat(dedup, mine, recipe=recipe, against=against, **options)
    documents = named(texts)
    ranked = documents if order is None else [documents[row] for row in order]
    check(result, expected(ranked, recipe, named(known or [], "k")))
    return result


def rounds(monkeypatch, asked=1, most_asked=2):
    """Make the rounds as small as can be; returns a count of those that were entered."""
    entered = Counter()

    def counting(name, function):
        def wrapped(*arguments):
            entered[name] += 1
            return function(*arguments)

        return wrapped

    monkeypatch.setattr(partners, "ASKED", asked)
    monkeypatch.setattr(partners, "MOST_ASKED", most_asked)
    for name in ROUNDS:
        monkeypatch.setattr(partners, name, counting(name, getattr(partners, name)))
    return entered


@st.composite
def small_sets(draw):
    """Texts of few words out of few: pairs at exactly the threshold, sizes 1 and 2, equal sets, all words frequent."""
    words = [f"w{i}" for i in range(draw(st.sampled_from([2, 4, 7, 12])))]
    text = st.lists(st.sampled_from(words), max_size=12).map(" ".join)
    return draw(st.lists(text, min_size=1, max_size=25))


@st.composite
def crowds(draw):
    """Texts that are few words off one of a few: crowds with many pairs, in one of which not all meet."""
    generator = random.Random(draw(st.integers(0, 2**32)))
    words = [f"w{i}" for i in range(draw(st.sampled_from([8, 30, 200])))]
    lengths = draw(st.sampled_from([(3,), (6,), (20,), (1, 2, 9)]))
    bases = [generator.choices(words, k=generator.choice(lengths)) for _ in range(draw(st.integers(1, 4)))]
    texts = []
    for _ in range(draw(st.sampled_from([5, 30, 90]))):
        text = list(generator.choice(bases))
        for _ in range(generator.choice([0, 1, 2, 4])):
            text[generator.randrange(len(text))] = generator.choice([*words, f"x{generator.randrange(1000)}"])
        texts.append(" ".join(text))
    return texts


TEXTS = small_sets() | crowds()
SHINGLES = st.builds(Shingles, st.sampled_from([1, 1, 2, 3]), st.sampled_from(["set", "set", "bag", "circular"]))


@st.composite
def recipes(draw):
    return Recipe(
        shingles=draw(SHINGLES),
        threshold=draw(st.sampled_from(TIES) | st.integers(1, 1000).map(lambda i: i / 1000)),
        max_partners=draw(st.sampled_from([1, 2, 3, 64, None])),
        cluster=draw(st.sampled_from(["greedy", "components"])),
    )


def hypothesis_settings(examples):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(deadline=None, max_examples=examples, suppress_health_check=checks)


def run_against_the_rule(monkeypatch, texts, recipe, share, keep, asked):
    """One draw: a share of the texts as the reference set, priorities by input order, length or a column."""
    with monkeypatch.context() as patch:
        rounds(patch, asked, max(asked, 2))
        cut = min(int(share * len(texts)), len(texts) - 1)
        known, mine = (texts[:cut], texts[cut:]) if share else (None, texts)
        order, columns = None, None
        if keep == "longest":  # all are of words without marks
            order = sorted(range(len(mine)), key=lambda row: -len(mine[row].split()))
        elif keep == "date:desc":
            dates = [None if i % 7 == 3 else i * 5 % 11 for i in range(len(mine))]
            order = sorted(range(len(mine)), key=lambda row: (dates[row] is None, -(dates[row] or 0)))
            columns = {"date": dates}
        recipe = recipe.with_(keep=keep)
        return compare(mine, recipe, known, order, columns)


DRAWN = (
    TEXTS,
    recipes(),
    st.sampled_from([0, 0, 0.3, 0.6]),
    st.sampled_from(["first", "first", "longest", "date:desc"]),
    st.sampled_from([1, 2, 64]),
)


class TestRule:
    @hypothesis_settings(150)
    @given(*DRAWN)
    @example(["a", "a", "a b", "a b"], Recipe(shingles=Shingles(1), threshold=0.5), 0, "first", 1)
    @example(["", "", "a"], Recipe(shingles=Shingles(1)), 0.6, "first", 1)
    def test_against_brute_force(self, monkeypatch, texts, recipe, share, keep, asked):
        run_against_the_rule(monkeypatch, texts, recipe, share, keep, asked)

    @pytest.mark.parametrize("shingling", ["set", "bag", "circular"])
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_families_of_texts(self, shingling, cluster):
        """Texts in several scripts, of 1 to 400 words, in families of edits."""
        whole = corpus()
        texts = whole["text"].to_pylist()
        for threshold, most in ((0.5, 2), (0.8, None)):
            recipe = Recipe(shingles=Shingles(3, shingling), threshold=threshold, max_partners=most, cluster=cluster)
            result = compare(texts, recipe)
            assert result.report["counts"]["verified_pairs"] > 30
        compare(texts[60:], recipe, known=texts[:60])

    @pytest.mark.parametrize("against", [False, True])
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_all_rounds_are_entered(self, monkeypatch, cluster, against):
        """A crowd in which not all meet, one partner asked for at a time."""
        entered = rounds(monkeypatch)
        generator = random.Random(3)
        base = [f"w{i}" for i in range(12)]
        texts = []
        for _ in range(90):
            text = list(base)
            for place in generator.sample(range(12), generator.choice([1, 2, 3, 4])):
                text[place] = f"x{generator.randrange(5)}"
            texts.append(" ".join(text))
        recipe = Recipe(shingles=Shingles(1), threshold=0.6, max_partners=2, cluster=cluster)
        result = compare(texts[10:], recipe, texts[:10]) if against else compare(texts, recipe)
        assert not result.report["limits"]["all_counted"]
        assert entered["first_partners"] == entered["_kept_partners"] == 1
        assert entered["_settle"] == (cluster == "greedy") and entered["connect"] == (cluster == "components")
        # Nothing is left to settle where all pairs are asked for.
        entered.clear()
        result = compare(texts, recipe.with_(max_partners=None))
        assert result.report["limits"] == {"max_partners": None, "unlisted_pairs": 0, "all_counted": True}
        assert entered == {"first_partners": 1}

    @pytest.mark.parametrize("tenths", range(1, 11))
    def test_ties(self, tenths):
        """Sets of 10 words and some of them: a pair at exactly the threshold is in V, and above it none is."""
        texts = [" ".join(WORDS[:10]), " ".join(WORDS[:tenths]) + (f" {WORDS[0]}" if tenths == 10 else "")]
        for threshold, num_pairs in ((tenths / 10, 1), (float(np.nextafter(tenths / 10, 2)), 0)):
            if threshold <= 1:
                recipe = Recipe(shingles=Shingles(1), threshold=threshold)
                assert compare(texts, recipe).report["counts"]["verified_pairs"] == num_pairs


@pytest.mark.parametrize("cluster", ["greedy", "components"])
class TestCrowds:
    @pytest.mark.parametrize("most", [1, 3, 64, None])
    def test_two_cliques_with_one_edge(self, cluster, most):
        """Of 100 members each, that take turns by priority; only the last of the one and the last of the other meet.

        Members share 40 words of their 41: 40/42. A last member has 34 of those words, 34/68 with the others of its
        clique, and 27 of the other clique's: 27/75 with its members, but 54/68 with the last one.
        """
        ours, theirs = ([f"{side}{i}" for i in range(40)] for side in "ab")
        sets = [{*words, f"own{i}{words[0]}"} for i in range(99) for words in (ours, theirs)]
        sets += [{*ours[:34], *theirs[:27]}, {*theirs[:34], *ours[:27]}]
        pairs = all_pairs(sets, [False] * 200, 0.5)
        assert [(i, j) for i, j in pairs if i % 2 != j % 2] == [(198, 199)] and pairs[198, 199] == 54 / 68
        assert len(pairs) == 2 * (100 * 99 // 2) + 1
        recipe = Recipe(shingles=Shingles(1), threshold=0.5, cluster=cluster, max_partners=most)
        documents, listed = told(compare([" ".join(sorted(words)) for words in sets], recipe))
        kept = [id_ for id_, (stays, *_) in documents.items() if stays]
        assert kept == (["m0"] if cluster == "components" else ["m0", "m1"])
        assert (("m198", "m199") in listed) == (most is None)

    def test_one_template_against_one_template(self, cluster):
        """3,000 pages against 3,000: every page of the reference set meets every page of the input."""
        template, num = WORDS[:60], 3000
        pages = [" ".join([*template, f"page{i}"]) for i in range(2 * num)]
        recipe = Recipe(threshold=0.9, cluster=cluster, max_partners=5)
        options = {"recipe": recipe, "id_column": "id", "check": 0, "max_comparisons": 10**7}
        result = flat(dedup, table(pages[num:]), against=table(pages[:num], "k"), **options)
        documents, listed = told(result)
        # All resemble one another alike, so the first page of the reference set stands for each.
        assert documents == {f"m{i}": (False, "k0", 56 / 58, "k0") for i in range(num)}
        assert listed == {(f"k{i}", f"m{j}"): 56 / 58 for j in range(num) for i in range(5)}
        assert result.report["counts"]["candidate_pairs"] < 300 * num

    def test_two_templates_one_of_the_reference_set_alone(self, cluster):
        """3,000 pages of the reference set are none of one another's business, and no page of the input meets them."""
        num = 3000
        known = [" ".join([*WORDS[:60], f"page{i}"]) for i in range(num)]
        mine = [" ".join([*WORDS[60:120], f"page{i}"]) for i in range(num)]
        options = {"recipe": Recipe(threshold=0.9, cluster=cluster, max_partners=5), "max_comparisons": 5 * 10**6}
        result = flat(dedup, table(mine), against=table(known, "k"), id_column="id", check=0, **options)
        assert told(result)[0] == {
            f"m{i}": (i == 0, "m0" if i else None, 56 / 58 if i else None, "m0") for i in range(num)
        }

    def test_many_pages_against_as_many(self, cluster):
        template, num = WORDS[:80], 20_000 if cluster == "greedy" else 10_000
        pages = [" ".join([*template, f"page{i}"]) for i in range(2 * num)]
        options = {"threshold": 0.9, "cluster": cluster, "id_column": "id", "max_comparisons": 1000 * num}
        result = flat(dedup, table(pages[num:]), against=table(pages[:num], "k"), **options)
        assert result.documents["duplicate_of"].unique().to_pylist() == ["k0"]
        assert len(result.pairs) == result.report["counts"]["verified_pairs"] == 64 * num
        assert set(result.pairs["id_a"].unique().to_pylist()) == {f"k{i}" for i in range(64)}


OPTIONS = {"id_column": "id", "text_columns": "text", "engine": "cpu"}


@pytest.fixture(scope="module")
def crowd():
    """A table of crowds, families and copies with a column that ranks them all."""
    generator = random.Random(4)
    base = generator.choices(WORDS, k=40)
    texts = corpus(seed=2)["text"].to_pylist()
    for _ in range(150):
        text = list(base)
        for place in generator.sample(range(40), generator.choice([0, 1, 2, 4])):
            text[place] = generator.choice(WORDS)
        texts.append(" ".join(text))
    generator.shuffle(texts)
    return table(texts).append_column("rank", pa.array(generator.sample(range(len(texts)), len(texts))))


@pytest.mark.parametrize("cluster", ["greedy", "components"])
@pytest.mark.parametrize("most", [2, 64])
class TestPromises:
    def recipe(self, cluster, most):
        return Recipe(shingles=Shingles(2), threshold=0.5, keep="rank", cluster=cluster, max_partners=most)

    def test_order_and_batches_change_nothing(self, crowd, cluster, most):
        recipe = self.recipe(cluster, most)
        result = flat(dedup, crowd, recipe=recipe, **OPTIONS)
        assert result.report["counts"]["verified_pairs"] > 300
        for batch_bytes in (1, 1000):
            other = flat(dedup, crowd, recipe=recipe, batch_bytes=batch_bytes, **OPTIONS)
            assert other.documents.equals(result.documents) and other.pairs.equals(result.pairs)
            assert other.report["counts"] == result.report["counts"]
            assert other.report["limits"] == result.report["limits"]
        shuffled = crowd.take(np.random.default_rng(1).permutation(len(crowd)))
        other = flat(dedup, shuffled, recipe=recipe, **OPTIONS)
        assert told(other) == told(result)
        assert other.report["limits"] == result.report["limits"]

    def test_rounds_of_other_sizes_change_nothing(self, monkeypatch, crowd, cluster, most):
        recipe = self.recipe(cluster, most)
        result = flat(dedup, crowd, recipe=recipe, **OPTIONS)
        for asked in (1, 7):
            rounds(monkeypatch, asked, 3 * asked)
            monkeypatch.setattr(partners, "TOGETHER", 50)
            other = flat(dedup, crowd, recipe=recipe, **OPTIONS)
            assert other.documents.equals(result.documents) and other.pairs.equals(result.pairs)

    def test_documents_added_behind(self, crowd, cluster, most):
        """Pairs among those before them stay as they were, and greedily so does who is kept."""
        recipe, half = self.recipe(cluster, most), len(crowd) // 2
        before, after = (
            told(flat(dedup, rows, recipe=recipe, **OPTIONS))
            for rows in (crowd.filter(pa.compute.less(crowd["rank"], half)), crowd)
        )
        assert {pair: r for pair, r in after[1].items() if set(pair) <= set(before[0])} == before[1]
        if cluster == "greedy":
            assert all(after[0][id_][0] == kept for id_, (kept, *_) in before[0].items())


class TestParts:
    @settings(deadline=None, max_examples=fewer(200))
    @given(st.data())
    def test_selected_of_all_pairs(self, data):
        """`selected` alone, of any pairs whatever."""
        num_rows = data.draw(st.integers(1, 12))
        num_pinned = data.draw(st.integers(0, num_rows))
        pinned = [row < num_pinned for row in range(num_rows)]
        possible = [(i, j) for i, j in itertools.combinations(range(num_rows), 2) if not pinned[j]]
        pairs = sorted(data.draw(st.sets(st.sampled_from(possible)))) if possible else []
        every = {pair: data.draw(st.sampled_from([0.5, 0.75, 1.0])) for pair in pairs}
        cluster = data.draw(st.sampled_from(["greedy", "components"]))
        most = data.draw(st.sampled_from([1, 2, 64, None]))
        directed = data.draw(st.booleans())
        left, right = np.array(pairs, np.int64).reshape(-1, 2).T
        known = partners.Known()
        order = data.draw(st.permutations(range(len(pairs))))
        for part in (order[::2], order[1::2], order[:3]):  # in any order, some twice
            part = np.array(sorted(part), np.int64)
            known.add(Verified(Pairs(left[part], right[part]), np.array([every[pairs[i]] for i in part], np.float64)))
        listed, deciding = partners.selected(known.all(), np.array(pinned, bool), cluster, most, directed)
        rule = decided(pinned, every, cluster, most, directed)
        as_pairs = list(zip(listed.pairs.left.tolist(), listed.pairs.right.tolist(), strict=True))
        assert as_pairs == sorted(rule.listed)
        assert listed.resemblance.tolist() == [every[pair] for pair in as_pairs]
        kept = partners.kept_rows(deciding.pairs, np.array(pinned, bool), cluster)
        assert kept.tolist() == rule.kept

    def test_known_pairs(self):
        known = partners.Known()
        assert len(known.packed()) == len(known.all().pairs) == 0
        assert not partners.contains(known.packed(), np.array([1], np.uint64)).any()
        known.add(Verified(Pairs(np.array([0, 2]), np.array([5, 2**31])), np.array([1.0, 0.5])))
        asked = partners.packed_pairs(np.array([0, 2, 2, 5]), np.array([5, 2**31, 2**31 - 1, 9]))
        assert partners.contains(known.packed(), asked).tolist() == [True, True, False, False]
        assert known.all().pairs.left.tolist() == [0, 2] and known.all().resemblance.tolist() == [1.0, 0.5]


class TestMaxComparisons:
    def test_too_many_end_the_job(self, crowd):
        with pytest.raises(ResourceError, match="more than 10 comparisons") as caught:
            flat(dedup, crowd, max_comparisons=10, **OPTIONS)
        assert "\n" not in str(caught.value)

    def test_enough_change_nothing(self, crowd):
        found, other = (flat(dedup, crowd, max_comparisons=most, **OPTIONS) for most in (None, 10**9))
        assert found.documents.equals(other.documents) and found.pairs.equals(other.pairs)

    @pytest.mark.parametrize(("value", "error"), [(0, ParameterError), (-5, ParameterError), ("x", NeardupError)])
    def test_what_cannot_be(self, crowd, value, error):
        with pytest.raises(error, match="max_comparisons"):
            flat(dedup, crowd, max_comparisons=value, **OPTIONS)
