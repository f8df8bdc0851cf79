"""Stop words: lists, files, recipes that hold them, and spots of texts through whole jobs."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from witnesses import jaccard, token_strings

from neardup_gpu import MinHash, Recipe, Shingles, compare, dedup
from neardup_gpu.errors import InputError, ParameterError, RecipeMismatchError
from neardup_gpu.report import facts
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import shingle, tokenize
from neardup_gpu.text import stop_words

OBAMA = (
    "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama tried to set the record straight "
    "from an attack circulating widely on the Internet that is designed to play into prejudices against Muslims and "
    "fears of terrorism."
)
"""The sentence of SpotSigs, section 3."""

SPOTS = {
    "a:rally:kick",
    "a:weeklong:campaign",
    "the:south:carolina",
    "the:record:straight",
    "an:attack:circulating",
    "the:internet:designed",
    "is:designed:play",
}
"""Its spots by the antecedents a, an, the and is, as printed there."""


def chains(text, words, c):
    """The spots of a text as strings, from the definition, or its shingles; by the witness's tokens."""
    tokens, stops = token_strings(text), {token for word in words for token in token_strings(word)}
    found = set()
    for at, token in enumerate(tokens):
        following = [other for other in tokens[at + 1 :] if other not in stops][:c]
        if token in stops and len(following) == c:
            found.add(":".join([token, *following]))
    if not found and tokens:
        return {" ".join(tokens[i : i + c]) for i in range(max(1, len(tokens) - c + 1))}
    return found


def test_the_sentence_of_the_paper():
    found = chains(OBAMA, stop_words.languages()["en"], 2)
    assert {spot for spot in found if spot.split(":")[0] in ("a", "an", "the", "is")} == SPOTS
    recipe = Recipe(shingles=Shingles(2, "spots"))
    features = shingle(tokenize([OBAMA], recipe), recipe)[0].tolist()
    assert len(set(features)) == len(found)
    one = Recipe(shingles=Shingles(2, "spots", ["a"]))  # then all other words belong to chains
    features = shingle(tokenize(["a rally to kick off", "of a rally to"], one), one)
    assert [len(features[0]), len(features[1])] == [1, 1] and features[0][0] == features[1][0]


def test_a_sentence_by_hand():
    text = "The cat sat on the mat, and THE dog slept."
    words = ["the", "on", "and"]
    wanted = {"the:cat:sat", "on:mat:dog", "the:mat:dog", "and:dog:slept", "the:dog:slept"}
    assert chains(text, words, 2) == wanted
    found = compare(text, text + " It rained.", shingles=Shingles(2, "spots", words))
    assert (found.shared, found.num_a, found.num_b) == (5, 5, 5)


class TestLists:
    def test_the_package_s_own(self):
        lists = stop_words.languages()
        assert {"en", "de", "fr", "es"} <= set(lists)
        for language, words in lists.items():
            assert 70 <= len(words) <= 200, language
            assert list(words) == sorted(set(words))
            assert all(len(token_strings(word)) == 1 for word in words), language

    def test_they_know_their_languages(self):
        texts = {
            "da": "og det er ikke noget som vi har set på før",
            "de": "und das ist nicht etwas, das wir auf der Straße gesehen haben",
            "en": "and this is not something that we have seen on the street",
            "es": "y esto no es algo que hemos visto en la calle",
            "fr": "et ce n'est pas quelque chose que nous avons vu dans la rue",
            "it": "e questo non è qualcosa che abbiamo visto nella strada",
            "nl": "en dit is niet iets dat we op de straat hebben gezien",
            "pt": "e isto não é uma coisa que vimos na rua",
            "ru": "и это не то, что мы видели на улице",
            "sv": "och det är inte något som vi har sett på gatan",
        }
        assert set(texts) == set(stop_words.languages())
        for language, text in texts.items():
            tokens = token_strings(text)
            share = {
                other: sum(token in {t for word in words for t in token_strings(word)} for token in tokens)
                for other, words in stop_words.languages().items()
            }
            assert share[language] == max(share.values()) and share[language] >= len(tokens) / 2, (language, share)

    def test_fingerprints_are_those_of_tokens(self):
        recipe = Recipe(seed=5)
        found = stop_words.fingerprints(("don't", "straße", "the"), int(recipe.material.tokens)).tolist()
        assert found == sorted(set(tokenize(["don t strasse THE"], recipe).values.tolist()))

    def test_a_file_of_one_s_own(self, tmp_path):
        path = tmp_path / "own.txt"
        path.write_text("# comments\nThe  a\n\nof -- the\n", "utf-8")
        assert stop_words.chosen(path) == stop_words.chosen(str(path)) == ("a", "of", "the")
        assert Shingles(2, "spots", path) == Shingles(2, "spots", ["of", "The", "a"])

    @pytest.mark.parametrize(
        ("value", "kind", "message"),
        [
            ("xx", InputError, "xx: no such file, nor a list of words; give da, de, en, .*, or a file or list"),
            ([], ParameterError, "stop_words: '' is not a word"),
            (["two words"], ParameterError, "stop_words: 'two words' is not a word"),
            (["..."], ParameterError, r"stop_words: '\.\.\.' is not a word"),
            (["\ud800x"], ParameterError, r"stop_words: '\\ud800x' is not Unicode text; give da, de"),
            (["the", "x\udcff"], ParameterError, r"stop_words: 'x\\udcff' is not Unicode text"),
            ("\ud800x", InputError, r"stop_words: '\\ud800x' cannot name a file, nor a list"),
            (["a" * (1 << 20)], ParameterError, "more than 1,048,576 bytes"),
        ],
    )
    def test_what_is_no_list(self, value, kind, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(kind, match=message) as error:
            Shingles(2, "spots", value)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "holds no words"),
            (b"# none\n--\n", "holds no words"),
            (b"\xff\xfe", "not UTF-8"),
            (b"a " * (1 << 20), "larger"),
        ],
    )
    def test_what_is_no_file(self, content, message, tmp_path):
        (tmp_path / "own.txt").write_bytes(content)
        with pytest.raises(InputError, match=message):
            Shingles(2, "spots", tmp_path / "own.txt")

    @pytest.mark.parametrize("kind", ["set", "bag", "circular"])
    def test_only_spots_have_them(self, kind):
        with pytest.raises(ParameterError, match="stop_words: only spots have them"):
            Shingles(5, kind, "en")


class TestRecipes:
    ENGLISH = Recipe(shingles=Shingles(2, "spots"), method="minhash")
    OWN = Recipe(shingles=Shingles(2, "spots", ["The", "of"]), method="minhash")

    @pytest.mark.parametrize("recipe", [ENGLISH, OWN])
    def test_round_trip(self, recipe):
        assert Recipe.from_json(recipe.to_json()) == recipe

    def test_shinglings_without_stop_words_have_no_settings_of_them(self):
        assert not {"stop_words", "stop_word_list"} & set(Recipe().describe())
        assert self.ENGLISH.with_(shingling="set").shingles == Shingles(2)
        assert self.ENGLISH.with_(shingle_size=3).shingles == Shingles(3, "spots", "en")
        assert self.OWN.with_(stop_words="de").shingles.stop_words == "de"

    @pytest.mark.parametrize("change", [{"stop_words": "de"}, {"stop_words": ["the"]}, {"shingling": "set"}])
    def test_sketches_of_other_lists_do_not_meet(self, change):
        with pytest.raises(RecipeMismatchError, match=r"x: made with (stop_words|shingling) = .*, but .* is needed"):
            self.OWN.check_sketches(self.OWN.with_(**change), "x")

    def test_a_list_that_has_changed_since_is_refused(self):
        stored = self.ENGLISH.describe()
        stored["stop_words"] = "en:000000000000"
        with pytest.raises(
            RecipeMismatchError, match="x: made with stop_words 'en:000000000000', this version has en:"
        ):
            Recipe.from_json(json.dumps(stored), "x")

    @pytest.mark.parametrize(
        "change",
        [
            {"stop_words": 5},
            {"stop_words": "xx:1"},
            {"stop_word_list": ""},
            {"stop_word_list": "the of"},
            {"shingling": "set"},
        ],
    )
    def test_a_changed_recipe_is_refused(self, change):
        with pytest.raises(RecipeMismatchError, match=r"^x: "):
            Recipe.from_json(json.dumps({**self.OWN.describe(), **change}), "x")

    def test_sketch_files_of_other_lists_are_refused(self, tmp_path):
        texts = [OBAMA, f"Photo: {OBAMA}", "no spots here"]
        for name, words in (("en", "en"), ("own", ["the", "a", "of"])):
            counts = sketch(
                pa.table({"id": [f"{name}{i}" for i in range(3)], "text": texts}),
                tmp_path / name,
                id_column="id",
                recipe=Recipe(shingles=Shingles(kind="spots", size=2, stop_words=words), method="minhash"),
            )
            assert counts["without_spots"] == 1
        found = pairs(tmp_path / "en")
        assert found.select(["id_a", "id_b"]).to_pylist() == [{"id_a": "en0", "id_b": "en1"}]
        with pytest.raises(RecipeMismatchError, match="made with stop_words = "):
            pairs([tmp_path / "en", tmp_path / "own"])

    def test_frequencies_of_other_lists_are_refused(self, tmp_path):
        tfidf = MinHash(weighting="tfidf")
        english, german = (Recipe(shingles=Shingles(2, "spots", words), method=tfidf) for words in ("en", "de"))
        counted = dedup({"text": [OBAMA, f"Photo: {OBAMA}"]}, recipe=english).frequencies
        assert counted.elements.startswith("spots shingles of 2 tokens by stop words en:")
        for given in (counted, tmp_path / "f.parquet"):
            counted.write(tmp_path / "f.parquet")
            with pytest.raises(
                RecipeMismatchError, match=r"counts spots .* en:.*, but spots .* de:.* are needed"
            ) as error:
                sketch({"text": [OBAMA]}, output=tmp_path / "s", recipe=german.with_(frequencies=given))
            assert "\n" not in str(error.value)
            assert sketch(
                {"text": [OBAMA]}, output=tmp_path / "s", overwrite=True, recipe=english.with_(frequencies=given)
            )


class TestJobs:
    def test_documents_without_spots_are_compared_by_shingles_and_counted(self):
        texts = [OBAMA, f"Photo: {OBAMA}", "lorem ipsum dolor", "lorem ipsum dolor sit", "quite unlike things", ""]
        result = dedup({"text": texts}, recipe=Recipe(shingles=Shingles(kind="spots", size=2), threshold=0.6))
        assert result.report["counts"]["without_spots"] == 3
        assert result.removed["id"].to_pylist() == [1, 3]
        assert result.removed["resemblance"].to_pylist() == [1.0, 2 / 3]
        said = dict(facts(result.report))
        assert said["spots"] == "none in 3 documents of too few stop words, compared by shingles instead"
        assert "without_spots" not in dedup({"text": texts}).report["counts"]

    @pytest.mark.parametrize("method", ["exact", "minhash", "bottomk"])
    def test_pairs_are_verified_by_spots(self, method):
        rng, sentences = random.Random(3), [s.strip() for s in LINES.split(".") if s.strip()]
        texts = []
        for _ in range(25):
            some = rng.sample(sentences, 6)
            texts += [". ".join(some), "Photo Gallery. " + ". ".join(some[:5])]
        result = dedup(
            {"text": texts}, recipe=Recipe(shingles=Shingles(kind="spots", size=2), method=method, threshold=0.6)
        )
        sets = [chains(text, stop_words.languages()["en"], 2) for text in texts]
        assert len(result.pairs) >= 15
        for pair in result.pairs.to_pylist():
            assert pair["resemblance"] == jaccard(sets[pair["id_a"]], sets[pair["id_b"]])
        wanted = {(a, b) for b in range(len(texts)) for a in range(b) if jaccard(sets[a], sets[b]) >= 0.6}
        found = set(zip(result.pairs["id_a"].to_pylist(), result.pairs["id_b"].to_pylist(), strict=True))
        assert found <= wanted and (method != "exact" or found == wanted)
        explained = result.explain(result.removed["id"][0].as_py())
        assert explained.shared / explained.united == explained.resemblance


LINES = """The committee said on Monday that it would look at the plan again. A spokesman for the company was not at his
desk. Prices of oil have risen in the last week of the month. It is the first time that the team has won the cup. The
storm was moving to the coast and people were told to leave. An inquiry into the crash will be held in the spring. They
had been waiting for the train for an hour when it came. The bank has cut its rate by a quarter of a point. No one was
hurt in the fire at the school. The film is about a boy who can see the future. She has been a member of the board for
ten years. It was not clear who had sent the letter to the minister."""


@pytest.mark.corpus
def test_news_with_other_headlines(corpora):
    """All 20 truths of edinburgh_2500 are found, also where each text is given headlines and captions of its own.

    The witness: words that no stop word is among, 30 before a text and 30 behind it, other ones for each text.
    """
    table = pq.read_table(corpora / "edinburgh_2500.parquet").select(["id", "text"])
    truth = pq.read_table(corpora / "edinburgh_2500.truth.parquet").to_pylist()
    truth = {tuple(sorted((row["id_a"], row["id_b"]))) for row in truth}
    assert len(truth) == 20
    rng, ids, texts = random.Random(1), table["id"].to_pylist(), table["text"].to_pylist()
    decorated = []
    for text in texts:
        head, tail = (" ".join(f"{rng.choice('bcdfg')}{rng.randrange(10**6)}" for _ in range(30)) for _ in range(2))
        decorated.append(f"{head} {text} {tail}")

    def found(some, **settings):
        result = flat(dedup, pa.table({"id": ids, "text": some}), id_column="id", threshold=0.8, **settings)
        rows = zip(result.pairs["id_a"].to_pylist(), result.pairs["id_b"].to_pylist(), strict=True)
        return {tuple(sorted(row)) for row in rows}, result.report["counts"].get("without_spots")

    spots = {"shingling": "spots", "shingle_size": 2}
    assert found(texts, **spots) == (truth, 0)
    assert found(decorated, **spots) == (truth, 0)
    assert found(texts, shingle_size=3)[0] == truth
    assert found(decorated, shingle_size=3)[0] < truth
