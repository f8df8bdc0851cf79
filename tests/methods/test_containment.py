"""`containment` against all that knows the answer: brute force, a dictionary of postings, the worst of inputs."""

import itertools
import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from gold import words
from hypothesis import HealthCheck, example, given, settings, strategies as st
from rule import check, expected, shingles_of, told
from versions import corpus

from neardup_gpu import Recipe, Shingles, dedup
from neardup_gpu.errors import NeardupError, ParameterError, ResourceError
from neardup_gpu.stages import joining, partners

OPTIONS = {"id_column": "id", "text_columns": "text", "engine": "cpu"}
TIES = (0.07, 0.28, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 6 / 7, 0.9, 10 / 11, 1.0)


def of(**settings):
    """A recipe of the method; of single words unless told."""
    return Recipe(
        method="containment", shingles=Shingles(settings.pop("size", 1), settings.pop("kind", "set")), **settings
    )


def table(texts, name="d", **columns):
    return pa.table({"id": [f"{name}{i}" for i in range(len(texts))], "text": pa.array(texts, pa.string()), **columns})


def compare(texts, recipe, known=None, order=None, columns=None, **options):
    """Run the job and hold it against brute force; `order` is rows by priority. Returns the result."""
    against = None if known is None else table(known, "k")
    result = flat(dedup, table(texts, **(columns or {})), recipe=recipe, against=against, **OPTIONS | options)
    rows = range(len(texts)) if order is None else order
    check(
        result, expected([(f"d{i}", texts[i]) for i in rows], recipe, [(f"k{i}", t) for i, t in enumerate(known or [])])
    )
    return result


@st.composite
def parts(draw):
    """Texts that are parts of one another with some words changed: ties, sizes 1 and 2, equal sets, copies."""
    generator = random.Random(draw(st.integers(0, 2**32)))
    vocabulary = [f"w{i}" for i in range(draw(st.sampled_from([2, 4, 9, 30, 300])))]
    texts = [generator.choices(vocabulary, k=generator.choice([1, 2, 10, 40])) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.sampled_from([3, 12, 40]))):
        source = generator.choice(texts)
        first, last = sorted(generator.choices(range(len(source) + 1), k=2))
        text = source[first:last] or source[:1]
        if generator.random() < 0.4:
            text = [generator.choice(vocabulary) if generator.random() < 0.1 else word for word in text]
        if generator.random() < 0.3:
            text = text + generator.choices(vocabulary, k=generator.randrange(1, 12))
        if generator.random() < 0.2:
            generator.shuffle(text)
        texts.append(text)
    generator.shuffle(texts)
    return [" ".join(text) for text in texts]


@st.composite
def few_words(draw):
    """Texts of few words out of few, some without any: every word is frequent."""
    vocabulary = [f"w{i}" for i in range(draw(st.sampled_from([2, 4, 7, 12])))]
    return draw(st.lists(st.lists(st.sampled_from(vocabulary), max_size=12).map(" ".join), min_size=1, max_size=25))


RECIPES = st.builds(
    of,
    threshold=st.sampled_from(TIES) | st.integers(1, 1000).map(lambda i: i / 1000),
    size=st.sampled_from([1, 1, 2, 3]),
    kind=st.sampled_from(["set", "set", "bag", "circular"]),
    max_partners=st.sampled_from([1, 2, 3, 64, None]),
    cluster=st.sampled_from(["greedy", "greedy", "components"]),
)
DRAWN = (
    parts() | few_words(),
    RECIPES,
    st.sampled_from([0, 0, 0.3, 0.6]),
    st.sampled_from(["first", "longest", "date:desc"]),
    st.sampled_from([1, 2, 64]),
)


def hypothesis_settings(examples):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(deadline=None, max_examples=examples, suppress_health_check=checks)


def run_against_the_rule(monkeypatch, texts, recipe, share, keep, asked):
    """One draw: a share of the texts as the reference set, priorities by input order, length or a column."""
    with monkeypatch.context() as patch:
        patch.setattr(partners, "ASKED", asked)
        patch.setattr(partners, "MOST_ASKED", max(asked, 2))
        cut = min(int(share * len(texts)), len(texts) - 1)
        known, mine = (texts[:cut], texts[cut:]) if share else (None, texts)
        order, columns = None, None
        if keep == "longest":  # all are of words without marks
            order = sorted(range(len(mine)), key=lambda row: -len(mine[row].split()))
        elif keep == "date:desc":
            dates = [None if i % 7 == 3 else i * 5 % 11 for i in range(len(mine))]
            order = sorted(range(len(mine)), key=lambda row: (dates[row] is None, -(dates[row] or 0)))
            columns = {"date": pa.array(dates, pa.int64())}
        compare(mine, recipe.with_(keep=keep), known, order, columns)


class TestRule:
    """Who is kept, for what the others go, and which pairs are listed."""

    @hypothesis_settings(150)
    @given(*DRAWN)
    @example(["a", "a b", "a b", "b a"], of(threshold=0.5), 0, "first", 1)
    @example(["", "", "a"], of(), 0.6, "first", 1)
    def test_against_brute_force(self, monkeypatch, texts, recipe, share, keep, asked):
        run_against_the_rule(monkeypatch, texts, recipe, share, keep, asked)

    @pytest.mark.parametrize("tenths", range(1, 11))
    def test_ties(self, tenths):
        """Sets of 10 words of which some are in a larger one: a tie is in V, and above it none is."""
        words_of = [f"w{i}" for i in range(10)]
        texts = [" ".join(words_of), " ".join([*words_of[:tenths], *(f"x{i}" for i in range(20))])]
        for threshold, num_pairs in ((tenths / 10, 1), (float(np.nextafter(tenths / 10, 2)), 0)):
            if threshold <= 1:
                assert compare(texts, of(threshold=threshold)).report["counts"]["verified_pairs"] == num_pairs

    def test_the_larger_stays_and_priority_decides_among_equals(self):
        texts = ["a b c", "a b c d e", "e d c b a", "c b a"]
        result = compare(texts, of())
        assert result.kept["id"].to_pylist() == ["d1"]
        assert result.removed["duplicate_of"].to_pylist() == ["d1"] * 3
        dates = pa.array([1, 2, 3, 4])
        result = compare(texts, of(keep="date:desc"), order=[3, 2, 1, 0], columns={"date": dates})
        assert result.kept["id"].to_pylist() == ["d2"]

    def test_no_document_goes_for_what_it_contains(self):
        """b is contained in a by 0.9, and c in b alone: b goes for a, though c stays and is all in b."""
        a = [f"w{i}" for i in range(50)]
        b = [*a[:18], "x0", "x1"]
        c = [*a[15:18], "x0", "x1"]
        result = compare([" ".join(each) for each in (c, b, a)], of())
        assert result.kept["id"].to_pylist() == ["d0", "d2"]
        assert result.removed.select(["id", "duplicate_of", "containment"]).to_pylist() == [
            {"id": "d1", "duplicate_of": "d2", "containment": 0.9}
        ]
        assert told(result)[1] == {("d2", "d1"): 0.9, ("d1", "d0"): 1.0}

    def test_a_reference_set_counts_whatever_its_size(self):
        """19 of 20 words are in a document of 19: it goes where that is of the reference set, and stays where not."""
        small, large = (" ".join(f"w{i}" for i in range(size)) for size in (19, 20))
        assert compare([large], of(), known=[small]).removed["containment"].to_pylist() == [0.95]
        assert compare([large, small], of()).removed["id"].to_pylist() == ["d1"]
        assert compare([large], of(threshold=0.96), known=[small]).removed.num_rows == 0

    @pytest.mark.parametrize("shingling", ["set", "bag", "circular"])
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_families_of_texts(self, shingling, cluster):
        """Texts in several scripts, of 1 to 400 words, in families of edits; and the first third of each."""
        texts = corpus()["text"].to_pylist()
        texts += [text[: len(text) // 3] for text in texts]
        for threshold, most in ((0.5, 2), (0.9, None)):
            compare(texts, of(size=3, kind=shingling, threshold=threshold, max_partners=most, cluster=cluster))
        compare(texts[60:], of(size=3), known=texts[:60])

    def test_postings_in_several_parts(self, monkeypatch):
        """Of ranges of shingles, in files; and sets taken a few at a time."""
        from neardup_gpu.store import postings

        texts = corpus()["text"].to_pylist()
        texts += [text[len(text) // 2 :] for text in texts]
        whole = compare(texts, of(size=2, threshold=0.6, cluster="components", max_partners=2))
        monkeypatch.setattr(postings, "SORTED_BYTES", 1 << 22)
        parts = []
        monkeypatch.setattr(joining, "stored", lambda made, *rest: parts.append(stored(made, *rest)) or parts[-1])
        result = compare(texts, of(size=2, threshold=0.6, cluster="components", max_partners=2))
        assert max(map(len, parts)) > 2
        assert result.documents.equals(whole.documents) and result.pairs.equals(whole.pairs)

    def test_a_higher_threshold_afterwards(self):
        texts = corpus()["text"].to_pylist()
        texts += [text[: len(text) // 2] for text in texts]
        result = compare(texts, of(size=2, threshold=0.3, max_partners=None))
        higher = result.at(0.9)
        again = flat(dedup, table(texts), recipe=of(size=2, threshold=0.9, max_partners=None), **OPTIONS)
        assert higher.documents.equals(again.documents) and higher.pairs.equals(again.pairs)
        assert result.removed.num_rows > higher.removed.num_rows > 0

    def test_engines_agree(self):
        """The definition, from `reference` kernels alone, and the CPU's."""
        texts = corpus()["text"].to_pylist()[:60]
        texts += [text[: len(text) // 2] for text in texts]
        for most, cluster in ((2, "greedy"), (1, "components")):
            recipe = of(size=2, threshold=0.6, max_partners=most, cluster=cluster)
            found = [
                flat(dedup, table(texts), recipe=recipe, **OPTIONS | {"engine": name}) for name in ("reference", "cpu")
            ]
            assert found[0].documents.equals(found[1].documents) and found[0].pairs.equals(found[1].pairs)
            assert found[0].report["limits"] == found[1].report["limits"]


stored = joining.stored


class TestWorst:
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_crowds(self, cluster, monkeypatch):
        """Parts of one page, of which each has more containers than are asked for, and not all are pairs."""
        monkeypatch.setattr(partners, "ASKED", 1)
        monkeypatch.setattr(partners, "MOST_ASKED", 2)
        generator = random.Random(5)
        page = [f"w{i}" for i in range(40)]
        texts = []
        for _ in range(150):
            part = generator.sample(page, generator.choice([12, 13, 20, 20, 36]))
            for place in generator.sample(range(len(part)), generator.choice([0, 1, 3])):
                part[place] = f"x{generator.randrange(9)}"
            texts.append(" ".join(part))
        result = compare(texts, of(threshold=0.75, max_partners=2, cluster=cluster))
        assert not result.report["limits"]["all_counted"]
        compare(texts[20:], of(threshold=0.75, max_partners=2, cluster=cluster), known=texts[:20])

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    def test_documents_of_one_and_two_shingles(self, cluster):
        """One is in any that has it: of 300 the largest that has each stays."""
        generator = random.Random(2)
        texts = [
            " ".join(generator.choices([f"w{i}" for i in range(20)], k=generator.choice([1, 2, 3]))) for _ in range(300)
        ]
        for threshold in (0.5, 0.9):
            compare(texts, of(threshold=threshold, max_partners=3, cluster=cluster))
        assert compare(["a", "a b c", "d"], of()).removed["id"].to_pylist() == ["d0"]

    def test_all_documents_alike(self):
        """Of the same words, but none a copy: every set is the same, and contained in the first by 1."""
        words_of = [f"w{i}" for i in range(12)]
        texts = [" ".join(words_of[i % 12 :] + words_of[: i % 12] + [words_of[i % 7]] * (i // 12)) for i in range(300)]
        for most, cluster in ((64, "greedy"), (2, "components"), (None, "greedy")):
            assert compare(texts, of(cluster=cluster, max_partners=most)).kept["id"].to_pylist() == ["d0"]

    def test_one_document_and_no_words(self):
        for texts in (["a b c"], ["", ""], ["", "a"], ["..."]):
            assert compare(texts, of()).removed.num_rows == 0

    def test_too_many_comparisons(self):
        generator = random.Random(1)
        texts = [" ".join(generator.sample([f"w{i}" for i in range(60)], 30)) for _ in range(400)]
        with pytest.raises(ResourceError, match='more than 1,000 comparisons; most are for the shingles "w') as caught:
            flat(dedup, table(texts), recipe=of(), max_comparisons=1000, **OPTIONS)
        assert "\n" not in str(caught.value)
        compare(texts, of(threshold=0.7))


def test_the_check_of_recall_finds_nothing_missing():
    texts = corpus()["text"].to_pylist()
    texts += [text[: len(text) // 2] for text in texts]
    result = flat(dedup, table(texts), recipe=of(size=2, threshold=0.8), check=200, **OPTIONS)
    sampled = result.report["recall"]["sampled"]
    assert sampled["with_duplicates"] > 50
    assert sampled["recall"] == sampled["one_removed"]["share"] == 1
    ids = set(told(result)[1])
    assert 0 < sampled["pairs"] <= len(ids)


def test_what_the_command_line_says(tmp_path, capsys):
    """The column, the report, the example and its explanation."""
    import json

    from neardup_gpu import cli

    source, out = tmp_path / "texts.parquet", tmp_path / "out"
    whole = [f"word{i}" for i in range(60)]
    import pyarrow.parquet as pq

    pq.write_table(table([" ".join(whole[20:40]), " ".join(whole)]), source)
    assert cli.main(["dedup", str(source), "--id-column", "id", "--method", "containment", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "100% (exact): every pair at containment 0.9 or above counts" in said
    report = json.loads((out / "report.json").read_text())
    assert (report["measure"], report["recipe"]["threshold"], report["recipe"]["method"]) == (
        "containment",
        0.9,
        "containment",
    )
    assert pq.read_table(out / "pairs.parquet").to_pylist() == [
        {"id_a": "d1", "id_b": "d0", "kind": "near", "containment": 1.0}
    ]
    assert f"neardup explain {out} d0" in said
    assert cli.main(["explain", str(out), "d0"]) == 0
    assert "words 21 to 40 of the kept one's 60" in capsys.readouterr().out
    for bad in (["--threshold", "0"], ["--threshold", "1.1"], ["--bucket-limit", "5"]):
        assert cli.main(["dedup", str(source), "--method", "containment", "--dry-run", *bad]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and said.startswith("neardup: ")


class TestRefusals:
    @pytest.mark.parametrize("threshold", [0, -0.1, 1.5, float("nan"), "0.9"])
    def test_thresholds(self, threshold):
        with pytest.raises(NeardupError, match=r"^threshold"):
            dedup({"text": ["a"]}, method="containment", threshold=threshold)

    def test_it_keeps_no_sketches(self):
        from neardup_gpu.sketches import sketch

        with pytest.raises(ParameterError, match="method containment keeps no sketches; choose "):
            sketch({"text": ["a"]}, method="containment", output="x.parquet")
        with pytest.raises(
            ParameterError, match="bucket_limit is not a setting of a recipe whose method is containment"
        ):
            Recipe(method="containment").with_(bucket_limit=5)


def by_postings(sets, threshold):
    """{(container, contained): containment} of all pairs by a dictionary of postings; the smaller is contained."""
    postings = defaultdict(list)
    for row, each in enumerate(sets):
        for shingle in each:
            postings[shingle].append(row)
    found = {}
    for row, each in enumerate(sets):
        common = Counter(itertools.chain.from_iterable(postings[shingle] for shingle in each))
        for other, shared in common.items():
            if other != row and len(sets[other]) >= len(each) and shared / len(each) >= threshold:
                found[other, row] = shared / len(each)
    return found


@pytest.mark.corpus
def test_excerpts_among_bills(corpora):
    """197 pairs of bills have a containment of 0.9 and resemble each other by less than 0.8, 39 by less than 0.5.

    They were counted over all documents, copies too, without shingles of more than 200; by all shingles they are as
    many. A pair of representatives stands for as many as they have copies.
    """
    import pyarrow.parquet as pq

    documents = pq.read_table(corpora / "bills_116_small.parquet", columns=["id", "text"])
    tokens = {row["id"]: tuple(words(row["text"])) for row in documents.to_pylist()}
    copies = Counter(tokens.values())
    listed = told(flat(dedup, documents, method="containment", max_partners=None, **OPTIONS))[1]
    sets, below = {}, Counter()
    for pair, containment in listed.items():
        a, b = (sets.setdefault(id_, shingles_of(list(tokens[id_]))) for id_ in pair)
        shared = len(a & b)
        assert containment == shared / len(b) >= 0.9 and len(a) >= len(b)
        if tokens[pair[0]] != tokens[pair[1]]:
            for bound in (0.5, 0.8):
                if shared / len(a | b) < bound:
                    below[bound] += copies[tokens[pair[0]]] * copies[tokens[pair[1]]]
    assert below == {0.8: 197, 0.5: 39}
    (bill,) = (id_ for id_ in tokens if id_.startswith("116/s-850/2019-03-14/"))
    (later,) = (id_ for id_ in tokens if id_.startswith("116/s-850/2020-07-30/"))
    assert listed[later, bill] == 102 / 107
    assert round(len(sets[bill] & sets[later]) / len(sets[bill] | sets[later]), 3) == 0.126


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "number"), [("edinburgh_2500", 2500), ("django_docs", 900)])
def test_all_pairs_of_a_corpus(corpora, name, number):
    """No pair is missed and none is false, by a dictionary of postings over all documents; and who stays."""
    import pyarrow.parquet as pq

    documents = pq.read_table(corpora / f"{name}.parquet", columns=["id", "text"]).slice(0, number)
    first = {}
    for id_, text in zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True):
        first.setdefault(tuple(words(text)), id_)
    first.pop((), None)
    ids, sets = list(first.values()), [shingles_of(list(tokens)) for tokens in first]
    pairs = by_postings(sets, 0.8)
    result = flat(dedup, documents, recipe=of(size=5, threshold=0.8, max_partners=None), **OPTIONS)
    representatives = set(ids)
    listed = told(result)[1]
    mine = {pair: value for pair, value in listed.items() if pair[1] in representatives}
    place = {id_: row for row, id_ in enumerate(ids)}
    larger = {pair for pair in pairs if (-len(sets[pair[0]]), pair[0]) < (-len(sets[pair[1]]), pair[1])}
    assert mine == {(ids[a], ids[b]): pairs[a, b] for a, b in larger}
    assert len(mine) > 15
    kept = set()
    for row in sorted(range(len(ids)), key=lambda row: (-len(sets[row]), row)):
        if not any((other, row) in larger for other in kept):
            kept.add(row)
    assert {place[id_] for id_ in result.kept["id"].to_pylist() if id_ in place} == kept
