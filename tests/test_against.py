"""What resembles a reference set: by brute force over all pairs with it, by all methods, in memory and in tasks."""

import os
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from hypothesis import HealthCheck, example, given, settings, strategies as st
from in_parts import both, in_tasks, rows
from page_of import page_of
from test_partner_blocks import in_blocks

from neardup_gpu import (
    BottomK,
    Containment,
    Exact,
    MinHash,
    ModM,
    Reading,
    Recipe,
    Shingles,
    SimHash,
    Workers,
    dedup,
    substrings,
)
from neardup_gpu.documents import open_documents
from neardup_gpu.documents.sources import Sources
from neardup_gpu.errors import ParameterError
from neardup_gpu.jobs import dedup as job
from neardup_gpu.report import facts
from neardup_gpu.results.explanation import render
from neardup_gpu.stages import partners, shingle, tokenize
from neardup_gpu.store.artefacts import DOCUMENTS, PAIRS

SETTINGS = {
    "exact": Exact(),
    "in": Containment(),
    "of": Containment(direction="of"),
    "either": Containment(direction="either"),
}
SKETCHED = {
    "minhash": MinHash(bucket_limit=3, bucket_probe=2),
    "weighted": MinHash(weighting="tf"),
    "bottomk": BottomK(s=20, bucket_limit=3),
    "modm": ModM(m=2, bucket_limit=3),
    "simhash": SimHash(radius=8, bucket_limit=4),
}


def hypothesis_settings(examples):
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(deadline=None, max_examples=examples, suppress_health_check=checks)


@st.composite
def corpora(draw):
    """(texts of the reference set, texts of the input): of few words, often copies or parts of others."""
    generator = random.Random(draw(st.integers(0, 2**32)))
    words = [f"w{i}" for i in range(draw(st.sampled_from([3, 6, 12, 60])))]
    texts = []
    for _ in range(draw(st.sampled_from([4, 15, 60]))):
        text = generator.choices(words, k=generator.choice([0, 1, 3, 8, 20]))
        if texts and generator.random() < 0.7:
            text = list(generator.choice(texts))
            for _ in range(generator.choice([0, 0, 1, 2])):
                text[generator.randrange(len(text)) if text else 0 :][:1] = [generator.choice(words)]
            begin = generator.choice([0, 0, 1, len(text) // 3])
            text = text[begin:] + generator.choices(words, k=generator.choice([0, 0, 2, 9]))
        texts.append(text)
    generator.shuffle(texts)
    texts = [" ".join(text) for text in texts]
    cut = draw(st.integers(1, len(texts) - 1))
    return texts[:cut], texts[cut:]


def table(texts, name):
    return pa.table({"id": [f"{name}{i}" for i in range(len(texts))], "text": pa.array(texts, pa.string())})


def run(known, mine, recipe, **options):
    options = {"engine": "cpu", "check": 0, "text_columns": "text", "id_column": "id"} | options
    return flat(dedup, table(mine, "m"), against=table(known, "k"), recipe=recipe, **options)


def best_partners(known, mine, recipe):
    """(number of the partner or None, what the pair is worth) of each text of the input, from the definition."""
    texts = [*known, *mine]
    tokens = [tuple(text.split()) for text in texts]
    rows = shingle(tokenize(texts, recipe, backend="cpu"), recipe, backend="cpu")
    sets = [set(row.tolist()) for row in rows]
    direction = recipe.method.direction if recipe.method.measure.directed else None
    found = []
    for number in range(len(known), len(texts)):
        if not tokens[number]:
            found.append((None, None))
            continue
        if tokens[number] in tokens[: len(known)]:
            found.append((tokens.index(tokens[number]), 1.0))
            continue
        best = None, None
        for other in range(len(known)):
            common, a, b = len(sets[other] & sets[number]), len(sets[other]), len(sets[number])
            whole = {None: a + b - common, "in": b, "of": a, "either": min(a, b)}[direction]
            worth = common / whole if common else 0.0
            if worth >= recipe.threshold and (best[0] is None or worth > best[1]):
                best = other, worth
        found.append(best)
    return found


def near_of(result):
    """The same, as a result has it."""
    name = f"reference_{result.recipe.method.measure.name}"
    documents = result.documents.select(["near_reference", name]).to_pydict()
    ids = [None if each is None else int(each[1:]) for each in documents["near_reference"]]
    return list(zip(ids, documents[name], strict=True))


def check(result, known, mine, recipe):
    """Hold a result by all pairs against the definition."""
    expected = best_partners(known, mine, recipe)
    assert near_of(result) == expected
    leaks = [number is not None for number, _ in expected]
    assert result.report["counts"]["near_reference"] == sum(leaks)
    kept = result.documents["kept"].to_pylist()
    assert not any(stays and leak for stays, leak in zip(kept, leaks, strict=True))
    if recipe.only_against:
        assert kept == [not leak for leak in leaks]
        names = [None if number is None else f"k{number}" for number, _ in expected]
        assert result.documents["duplicate_of"].to_pylist() == names
        assert result.documents[recipe.method.measure.name].to_pylist() == [worth for _, worth in expected]
        assert all(result.pairs["a_in_reference"].to_pylist())


RECIPES = st.builds(
    lambda method, shingles, threshold, partners, cluster, only: Recipe(
        method=SETTINGS[method],
        shingles=shingles,
        threshold=threshold,
        max_partners=partners,
        cluster="greedy" if only else cluster,
        only_against=only,
    ),
    st.sampled_from(list(SETTINGS)),
    st.builds(Shingles, st.sampled_from([1, 1, 2, 3]), st.sampled_from(["set", "set", "bag"])),
    st.sampled_from([0.2, 1 / 3, 0.5, 2 / 3, 0.8, 0.9, 1.0]),
    st.sampled_from([1, 1, 2, 64, None]),
    st.sampled_from(["greedy", "greedy", "components"]),
    st.booleans(),
)


class TestBruteForce:
    @hypothesis_settings(150)
    @given(corpora(), RECIPES, st.sampled_from([1, 2, 64]))
    @example((["a b", "a b c"], ["a b c", "", "a"]), Recipe(shingles=Shingles(1), threshold=0.5, max_partners=1), 1)
    def test_all_pairs(self, monkeypatch, texts, recipe, asked):
        with monkeypatch.context() as patch:
            patch.setattr(partners, "ASKED", asked)
            patch.setattr(partners, "MOST_ASKED", max(2, asked))
            patch.setattr(partners, "TOGETHER", 8)
            check(run(*texts, recipe), *texts, recipe)

    def test_a_later_partner_does_not_hide_an_equal_earlier_one(self, monkeypatch):
        """The later one was found from the side of the reference set, before the search came to the earlier one."""
        monkeypatch.setattr(partners, "ASKED", 1)
        monkeypatch.setattr(partners, "MOST_ASKED", 2)
        known = ["w2 w2 w3 w3 w0 w0 w2", "w3 w3 w5 w3 w4 w3 w1 w5", "w3 w3 w0 w2 w2 w0 w3 w2 w3"]
        known.append("w0 w0 w3 w1 w5 w3 w3 w4 w3 w0 w2 w3 w5 w2 w2 w1")
        mine = ["w2 w2 w1 w4 w3 w0 w0 w2", "w0 w3 w4", "w0 w3 w3", "w3 w5", "w0 w0 w4 w3 w5 w2 w1"]
        method = SETTINGS["either"]
        recipe = Recipe(method=method, shingles=Shingles(2), threshold=1 / 3, max_partners=1)
        check(run(known, mine, recipe), known, mine, recipe)

    @hypothesis_settings(60)
    @given(corpora(), RECIPES, st.sampled_from([1, 5, 100]))
    def test_blocks(self, monkeypatch, texts, recipe, most_pairs):
        """Partners that are found block by block, as where crowds do not fit in memory."""
        with monkeypatch.context() as patch:
            patch.setattr(partners, "ASKED", 1)
            patch.setattr(partners, "MOST_ASKED", 2)
            before = run(*texts, recipe)
            patch.setattr(job, "partners_of", in_blocks(most_pairs))
            result = run(*texts, recipe)
            check(result, *texts, recipe)
            assert result.documents.equals(before.documents) and result.pairs.equals(before.pairs)

    @hypothesis_settings(5)
    @given(corpora(), RECIPES)
    def test_tasks(self, tmp_path_factory, texts, recipe):
        known, mine = texts
        folder = tmp_path_factory.mktemp("job")
        options = {"text_columns": "text", "id_column": "id", "against": table(known, "k"), "recipe": recipe}
        result = flat(dedup, table(mine, "m"), output=folder / "memory", engine="cpu", check=0, **options)
        check(result, known, mine, recipe)
        report = in_tasks(folder / "tasks", table(mine, "m"), slice_bytes=200, **options)
        for name in (DOCUMENTS, PAIRS):
            assert rows(folder / "tasks", name) == rows(folder / "memory", name)
        others = ("comparisons", "candidate_pairs")  # which are not the same work
        counts = ({n: v for n, v in each["counts"].items() if n not in others} for each in (report, result.report))
        assert next(counts) == next(counts)

    @hypothesis_settings(40)
    @given(corpora(), st.sampled_from(list(SKETCHED)), st.booleans(), st.sampled_from([1, 64]))
    def test_pairs_of_sketches(self, monkeypatch, texts, method, only, asked):
        """Of a method that sketches, all pairs are those that it lists without a bound."""
        known, mine = texts
        recipe = Recipe(
            method=SKETCHED[method],
            shingles=Shingles(2),
            threshold=0.4,
            max_partners=None,
            only_against=only,
        )
        unbounded = run(known, mine, recipe)
        tokens = [tuple(text.split()) for text in [*known, *mine]]
        listed = {}
        for pair in unbounded.pairs.to_pylist():
            if pair["a_in_reference"]:
                partner, worth = int(pair["id_a"][1:]), pair["resemblance"]
                best = listed.setdefault(pair["id_b"], (partner, worth))
                if (-worth, partner) < (-best[1], best[0]):
                    listed[pair["id_b"]] = partner, worth
        expected = []
        for words in tokens[len(known) :]:
            if words in tokens[: len(known)] and words:
                expected.append((tokens.index(words), 1.0))
            else:
                first = tokens.index(words, len(known)) - len(known)
                expected.append(listed.get(f"m{first}", (None, None)) if words else (None, None))
        assert near_of(unbounded) == expected
        with monkeypatch.context() as patch:
            patch.setattr(partners, "ASKED", asked)
            patch.setattr(partners, "MOST_ASKED", max(2, asked))
            assert near_of(run(known, mine, recipe.with_(max_partners=1))) == expected

    @hypothesis_settings(20)
    @given(corpora())
    def test_unverified_simhashes(self, texts):
        """Nothing is verified: the partner is the first of those whose simhashes differ in the fewest bits."""
        known, mine = texts
        result = run(known, mine, Recipe(method=SimHash(radius=6)))
        assert result.recipe.threshold is None
        distance = {}
        for pair in result.pairs.to_pylist():
            if pair["a_in_reference"]:
                distance.setdefault(pair["id_b"], []).append((pair["distance"], int(pair["id_a"][1:])))
        for row in result.documents.to_pylist():
            if row["near_reference"] is not None and row["id"] in distance:
                assert int(row["near_reference"][1:]) == min(distance[row["id"]])[1]
            assert (row["near_reference"] is None) <= (row["id"] not in distance)
            worth = row["reference_resemblance"]
            if worth is not None:
                assert mine[int(row["id"][1:])].split() == known[int(row["near_reference"][1:])].split()


def edited(words, *places):
    return " ".join(f"x{number}" if number in places else word for number, word in enumerate(words))


class TestLeaks:
    def test_a_leak_that_is_removed_for_another_document(self):
        """It resembles the reference document less than it resembles a kept one, for which it is removed."""
        words = [f"w{i}" for i in range(200)]
        kept, leak, test = edited(words, 20, 60, 100), edited(words, 20, 60), " ".join(words)
        result = run([test], [kept, leak], Recipe(threshold=0.87))
        row = result.documents.to_pylist()[1]
        assert (row["kept"], row["duplicate_of"], row["in_reference"]) == (False, "m0", False)
        assert row["near_reference"] == "k0" and 0.87 <= row["reference_resemblance"] < row["resemblance"]
        assert result.report["counts"]["near_reference"] == 1

    @pytest.mark.parametrize("options", [{}, {"memory": "1GB"}])
    def test_planted_items(self, options):
        """50 items of 25 words in documents of 825: containment finds each of them, by its exact share."""
        generator = random.Random(27)
        words = [f"w{i}" for i in range(20_000)]
        items = [generator.choices(words, k=25) for _ in range(50)]
        documents = [generator.choices(words, k=800) for _ in range(200)]
        for item, document in zip(items, documents, strict=False):
            document[400:400] = item
        known, mine = ([" ".join(text) for text in texts] for texts in (items, documents))
        for direction, found in (("in", 0), ("of", 50), ("either", 50)):
            recipe = Recipe(method=Containment(direction=direction))
            result = run(known, mine, recipe, **options)
            assert result.report["counts"]["near_reference"] == result.report["counts"]["removed"] == found
            check(result, known, mine, recipe)

    def test_an_item_inside_a_document_is_explained(self):
        """The contained text is the kept one, and lies at some words of the removed one."""
        item, page = [f"w{i}" for i in range(12)], [f"x{i}" for i in range(30)]
        known, mine = [" ".join(item)], [" ".join([*page, *item, *page])]
        for direction in ("of", "either"):
            result = run(known, mine, Recipe(method=Containment(direction=direction)))
            found = result.explain("m0")
            assert (found.in_reference, found.of_kept, found.containment, found.size) == (True, True, 1.0, 8)
            assert (found.first_word, found.last_word, found.kept_words) == (31, 42, 72)
            assert "8 of the kept one's 8 shingles are in it" in render(found).plain
            assert "words 31 to 42 of its 72" in render(found).plain
        found = run(mine, known, Recipe(method=Containment(direction="either"))).explain("m0")
        assert (found.of_kept, found.containment, found.first_word) == (False, 1.0, 31)

    def test_the_summary_and_the_page_count_leaks(self):
        words = [f"w{i}" for i in range(200)]
        kept, leak, test = edited(words, 20, 60, 100), edited(words, 20, 60), " ".join(words)
        result = run([test], [kept, leak], Recipe(threshold=0.87))
        assert ("leaks", "1 (50.0%) match a reference document and are removed; near_reference names it") in facts(
            result.report
        )
        assert "1 document of the input matches one of them and is removed." in page_of(result).html
        part = run([" ".join(words[:30])], [test], Recipe(method=Containment(direction="of")))
        assert "1 document of the input matches one of them" in page_of(part).html

    def test_copies_inside_the_input_are_kept(self):
        texts = ["to be or not to be that is the question", "whether it is nobler in the mind to suffer"]
        result = run(texts[:1], [texts[1], texts[1], texts[0], texts[0]], Recipe(only_against=True))
        assert result.documents["kept"].to_pylist() == [True, True, False, False]
        assert result.documents["duplicate_of"].to_pylist() == [None, None, "k0", "k0"]
        counts = result.report["counts"]
        assert (counts["removed"], counts["removed_identical"], counts["near_reference"]) == (2, 2, 2)

    def test_a_higher_threshold(self):
        known, mine = ["a b c d"], ["a b c d", "a b c", "a b"]
        for only in (False, True):
            settings = {"shingles": Shingles(1), "only_against": only}
            low = run(known, mine, Recipe(threshold=0.5, **settings))
            for threshold in (0.6, 0.75, 1.0):
                high = run(known, mine, Recipe(threshold=threshold, **settings))
                assert low.at(threshold).documents.equals(high.documents)
                assert low.at(threshold).report["counts"]["near_reference"] == len(
                    [each for each, _ in near_of(high) if each]
                ) + sum(each == 0 for each, _ in near_of(high))

    def test_an_empty_reference_set(self, tmp_path):
        for only in (False, True):
            result = run([], ["a b", "a b"], Recipe(only_against=only))
            assert result.documents["near_reference"].to_pylist() == [None, None]
            assert result.documents["kept"].to_pylist() == [True, only]
            assert result.report["counts"]["near_reference"] == 0
        both(
            tmp_path,
            table(["a b c"] * 300, "m"),
            against=table([], "k"),
            recipe=Recipe(),
            text_columns="text",
            id_column="id",
        )

    def test_without_a_reference_set(self):
        result = dedup({"text": ["a b", "a b"]})
        assert not {"near_reference", "reference_resemblance"} & set(result.documents.column_names)
        assert "near_reference" not in result.report["counts"]


class TestRefused:
    @pytest.mark.parametrize(
        "options, message",
        [
            ({"method": Containment(direction="of")}, "direction of: says how to compare with a reference set; give"),
            ({"only_against": True}, "only_against: removes what resembles a reference set; give against"),
            ({"recipe": Recipe(only_against=True)}, "only_against: removes what"),
        ],
    )
    def test_without_a_reference_set(self, options, message):
        with pytest.raises(ParameterError) as error:
            flat(dedup, texts=["a b"], **options)
        assert str(error.value).startswith(message)

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"direction": "up", "method": "containment"}, "direction 'up' is not one of in, of, either"),
            ({"only_against": True, "cluster": "components"}, "only_against and cluster 'components': components join"),
        ],
    )
    def test_with_one(self, options, message):
        with pytest.raises(ParameterError) as error:
            flat(dedup, texts=["a b"], against=pa.table({"text": ["a b"]}), **options)
        assert str(error.value).startswith(message), str(error.value)

    def test_recipes_are_read_again(self):
        for recipe in (Recipe(only_against=True), Recipe(method=Containment(direction="either"))):
            assert Recipe.from_json(recipe.to_json()) == recipe
        assert not {"only_against", "direction"} & set(Recipe(method="containment").describe())


def test_the_best_of_a_crowd():
    """A page of the input resembles 300 of the reference set, and the last one most."""
    template = [f"w{i}" for i in range(60)]
    known = [" ".join([*template, f"page{i}"]) for i in range(300)]
    mine = [" ".join([*template, f"page{i}", "more"]) for i in range(299, 200, -1)]
    for method in ("exact", "in", "either"):
        recipe = Recipe(method=SETTINGS[method], threshold=0.9, max_partners=5)
        result = run(known, mine, recipe)
        assert [each for each, _ in near_of(result)] == list(range(299, 200, -1))
        assert np.isfinite([worth for _, worth in near_of(result)]).all()


@pytest.mark.parametrize("tasks", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_files_that_are_input_and_reference_set_are_named(tmp_path, caplog, tasks, linked):
    """A folder of training text that holds the held-out documents, or a link to them: all of them are removed."""
    for name in ("train", "held_out"):
        texts = [f"{name} {place} one two three {place} four {place}" for place in "abc"]
        pq.write_table(pa.table({"text": texts}), tmp_path / f"{name}.parquet")
    if linked:
        (tmp_path / "sets").mkdir()
        (tmp_path / "held_out.parquet").rename(tmp_path / "sets" / "set.parquet")
        (tmp_path / "held_out.parquet").symlink_to(tmp_path / "sets" / "set.parquet")
    workers = Workers(work_dir=str(tmp_path / "work")) if tasks else None
    found = dedup(
        tmp_path / "*.parquet",
        against=(tmp_path / "held_out.parquet").resolve(),
        reading=Reading(text_columns=["text"]),
        output=tmp_path / "out",
        workers=workers,
    )
    file = tmp_path / "held_out.parquet"
    said = f"against: is read as input as well, so its documents match themselves: {file}"
    assert said in found.report["warnings"] and said in caplog.messages
    caplog.clear()
    substrings(file, against=file, reading=Reading(text_columns=["text"]), length=3)
    assert said in caplog.messages
    assert found.report["counts"]["removed"] == 3


def test_names_of_files_are_not_resolved_without_a_reference_set(tmp_path, monkeypatch):
    """That takes several calls of the system for each file, and a crawl may have a million of them."""
    (tmp_path / "a.txt").write_text("to be or not to be")
    documents, resolved, resolve = open_documents(tmp_path), [], os.path.realpath
    monkeypatch.setattr("os.path.realpath", lambda path, **how: resolved.append(path) or resolve(path, **how))
    assert Sources(documents).remarks() == [] and str(tmp_path / "a.txt") not in resolved
