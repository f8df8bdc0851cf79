"""Dropped words and folds through the whole library: the papers' numbers, jobs of every kind, recipes and errors."""

import json
import random
import re
import sys
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from witnesses import token_strings

import neardup_gpu as nd
from neardup_gpu import MinHash, Recipe, Shingles, cli, compare, dedup
from neardup_gpu.errors import InputError, ParameterError, RecipeMismatchError
from neardup_gpu.jobs.one_text import sketch_text
from neardup_gpu.results.commonest import words_of
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import shingle, tokenize, utf8
from neardup_gpu.text import stop_words

LONDON = (
    "Jack London travelled to Oakland",
    "Jack London travelled to the city of Oakland",
    "Jack travelled from Oakland to London",
)
"""The documents of a lecture on shingles."""

PREPOSITIONS = ["the", "of", "to", "from"]

ALIKE = {
    "marks": [
        ("Les élèves étaient déjà rentrés à l'école", "Les eleves etaient deja rentres a l'ecole"),
        ("اللُّغَةُ العَرَبِيَّةُ لُغَةٌ جَمِيلَةٌ جِدًّا", "اللغة العربية لغة جميلة جـــدا"),
        ("בְּרֵאשִׁית בָּרָא אֱלֹהִים", "בראשית ברא אלהים"),
    ],
    "hyphens": [
        ("the informa-\ntion that every-\r\n  body needs", "the information that everybody needs"),
        ("in\u00adfor\u00ad\nma\u00adtion", "information"),
    ],
    "digits": [("code 482910 is valid until 12:30 for 10 minutes", "code 77 is valid until 9:05 for 5 minutes")],
}
"""Texts that a reader sees as the same, by the fold that makes them the same."""


def texts_with_common_words(number):
    """Make pairs of texts that differ in common words and in few others."""
    rng, common = random.Random(number), stop_words.languages()["en"]
    found = []
    for _ in range(number):
        words = [f"word{rng.randrange(500)}" for _ in range(30)]
        for _ in range(2):
            found.append(" ".join(w for word in words for w in (word, *rng.choices(common, k=rng.randrange(3)))))
            words[rng.randrange(30)] = "other"
    return found


def without(text, words):
    kept = [token for token in token_strings(text) if token not in words]
    return " ".join(kept)


# --------------------------------------------------------------------------------------------------------- definitions


@pytest.mark.parametrize(("other", "expected"), [(1, (2, 5)), (2, (1, 5))])
def test_jack_london_without_prepositions(other, expected):
    found = compare(LONDON[0], LONDON[other], shingles=Shingles(2, drop_words=PREPOSITIONS))
    assert (found.shared, found.num_a + found.num_b - found.shared) == expected


@pytest.mark.parametrize(("fold", "a", "b"), [(fold, *both) for fold, each in ALIKE.items() for both in each])
@pytest.mark.parametrize("tokens", ["words", "letters"])
def test_texts_that_a_reader_sees_as_the_same(fold, a, b, tokens):
    size = 2 if tokens == "words" else 12
    assert compare(a, b, shingles=Shingles(size, tokens=tokens)).resemblance < 0.5
    found = compare(a, b, shingles=Shingles(size, tokens=tokens, fold=fold))
    assert found.resemblance == 1 and found.words == []


def test_lines_are_folded_and_stay_lines():
    a, b = "prix 12\nété-\nhiver", "prix 7\nete-\nhiver"
    assert compare(a, b, shingles=Shingles(tokens="lines")).shared == 1
    assert compare(a, b, shingles=Shingles(tokens="lines", fold="marks,digits")).shared == 3


def test_listed_words_are_folded_like_the_text():
    shingles = Shingles(1, drop_words=["à", "été"], fold="marks")
    found = compare("a Paris", "ete à Rome", shingles=shingles)
    assert (found.num_a, found.num_b, found.shared) == (1, 1, 0)
    spots = Shingles(1, "spots", ["à"], fold="marks")
    assert compare("x a Paris", "y à Paris", shingles=spots).resemblance == 1


def test_without_words_texts_are_as_if_these_had_never_been_there():
    texts, words = texts_with_common_words(20), set(stop_words.languages()["en"])
    plain = [without(text, words) for text in texts]
    for method, threshold in (("exact", 0.7), ("containment", 0.7), ("minhash", 0.7), ("simhash", None)):
        of_words, of_plain = (
            Recipe(shingles=Shingles(3, drop_words=drop), method=method, threshold=threshold) for drop in ("en", None)
        )
        here, there = dedup({"text": texts}, recipe=of_words), dedup({"text": plain}, recipe=of_plain)
        assert here.pairs.num_rows > 5
        assert here.pairs.to_pylist() == there.pairs.to_pylist()
        assert here.documents["kept"].equals(there.documents["kept"])


# ---------------------------------------------------------------------------------------------------------------- jobs


ALONE = ["the of", "of the", "the dog of the house", "dog house", ""]


def test_documents_of_listed_words_alone_keep_them_and_are_counted(tmp_path, caplog):
    recipe = Recipe(shingles=Shingles(2, drop_words=PREPOSITIONS))
    line = (
        "drop_words: 2 documents with only words of the list, so that these documents are compared by all their words"
    )
    pq.write_table(pa.table({"text": ALONE}), path := tmp_path / "t.parquet")
    here = dedup(path, recipe=recipe)
    assert here.documents["kept"].to_pylist() == [True, True, True, False, True]
    assert here.report["counts"]["only_dropped_words"] == 2 and here.report["warnings"][0] == line
    assert here.removed["kind"].to_pylist() == ["same_words"]
    assert line in caplog.text
    caplog.clear()
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    there = dedup(path, recipe=recipe, output=tmp_path / "out", workers=workers)
    assert there.report["counts"] == here.report["counts"] and there.report["warnings"][0] == line
    assert line in caplog.text
    caplog.clear()
    counts = sketch(path, tmp_path / "s.parquet", recipe=recipe.with_(method="minhash"))
    assert counts["only_dropped_words"] == 2 and line in caplog.text
    caplog.clear()
    with nd.Index.create(tmp_path / "index", recipe=recipe) as index:
        index.add(path)
    assert line in caplog.text
    assert "only_dropped_words" not in dedup(path).report["counts"]


def test_a_list_that_leaves_nothing_is_one_warning():
    result = dedup({"text": ALONE[:2]}, recipe=Recipe(shingles=Shingles(1, drop_words=PREPOSITIONS)))
    assert result.documents["kept"].to_pylist() == [True, False]
    assert result.report["warnings"][0] == (
        "drop_words: all documents have only words of the list, so that these documents are compared by all their words"
    )


CHANGED = [Shingles(3, drop_words="en"), Shingles(3, drop_words=["the", "a"]), Shingles(3, fold="marks,digits")]
CHANGED.append(Shingles(3, drop_words="fr", fold=["hyphens"]))


@pytest.mark.parametrize("shingles", CHANGED)
def test_tasks_sketches_and_an_index_agree(shingles, tmp_path):
    texts = [f"{text} {end}" for text in texts_with_common_words(12)[::2] for end in ("été 12", "the ete 7")]
    pq.write_table(pa.table({"id": range(24), "text": texts}), path := tmp_path / "t.parquet")
    recipe = Recipe(shingles=shingles, threshold=0.5)
    here = dedup(path, id_column="id", recipe=recipe)
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    there = dedup(path, id_column="id", recipe=recipe, output=tmp_path / "out", workers=workers)
    assert there.documents.drop(["file", "row"]).equals(here.documents.drop(["file", "row"]))
    sketched = recipe.with_(method="minhash")
    sketch(path, tmp_path / "s.parquet", id_column="id", recipe=sketched)
    rows = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [sketch_text(text, sketched)["document_hash"].tolist() for text in texts] == [
        [row["document_hash"][0], row["document_hash"][1]] for row in rows
    ]
    with nd.Index.create(tmp_path / "index", recipe=sketched) as index:
        index.add(path, id_column="id")
        assert index.recipe.shingles == shingles
        asked = index.query({"id": [99], "text": [texts[0]]}, id_column="id")
        assert 0 in asked["id"].to_pylist()
    removed = there.removed["id"].to_pylist()
    assert removed
    found = explain(tmp_path / "out", removed[0])
    assert found.shared / found.united == found.resemblance
    assert "word" in "".join(text for _, text in found.words) + "".join(found.notes)


def test_the_shingle_that_is_commonest_is_shown_with_the_words_in_between():
    recipe = Recipe(shingles=Shingles(2, drop_words=PREPOSITIONS, fold="marks"))
    (value, *_) = shingle(tokenize([text := "House of Cárds"], recipe), recipe)[0]
    assert words_of(value, text, recipe) == "House of Cárds"


# ------------------------------------------------------------------------------------------------------------- recipes


@pytest.mark.parametrize("shingles", CHANGED)
def test_recipes_are_read_again(shingles):
    recipe = Recipe(shingles=shingles)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert all(not isinstance(value, (list, dict)) for value in recipe.describe().values())
    assert Recipe().with_(drop_words=shingles.drop_words, fold=shingles.fold, shingle_size=3) == recipe
    assert recipe.with_(tokens="letters").shingles == Shingles(tokens="letters")


def test_settings_that_are_not_used_are_not_stored():
    assert not {"drop_words", "drop_word_list", "fold"} & set(Recipe().describe())
    assert Shingles(fold="digits,marks,digits").fold == ("marks", "digits")
    listed = Shingles(drop_words=["The", "a"]).describe_tokens()
    assert listed["drop_word_list"] == "a the" and re.fullmatch(r"own:\w{12}", listed["drop_words"])


@pytest.mark.parametrize("method", ["minhash", "simhash"])
@pytest.mark.parametrize(
    "change", [{"drop_words": "de"}, {"drop_words": None}, {"drop_words": ["the"]}, {"fold": "marks"}]
)
def test_sketches_of_other_settings_do_not_meet(method, change, tmp_path):
    recipe = Recipe(shingles=Shingles(drop_words=["the", "of"]), method=method)
    for name, each in (("a", recipe), ("b", recipe.with_(**change))):
        sketch({"id": [name], "text": ["the quick brown fox"]}, tmp_path / name, id_column="id", recipe=each)
    with pytest.raises(RecipeMismatchError, match=r"b: made with (drop_words|fold) = .*a with .*; sketch them alike"):
        pairs([tmp_path / "a", tmp_path / "b"])


def test_frequencies_of_other_settings_are_refused(tmp_path):
    tfidf = MinHash(weighting="tfidf")
    english, folded = (
        Recipe(shingles=each, method=tfidf) for each in (Shingles(2, drop_words="en"), Shingles(2, fold="marks"))
    )
    counted = dedup({"text": ["one two three", "one two four"]}, recipe=english).frequencies
    with pytest.raises(
        RecipeMismatchError, match=r"counts set shingles of 2 tokens without en:\w+, but .* with fold marks"
    ):
        sketch({"text": ["a"]}, tmp_path / "s", recipe=folded.with_(frequencies=counted))


@pytest.mark.parametrize(
    "change",
    [
        {"drop_words": 5},
        {"drop_words": "xx:1"},
        {"drop_words": "en:000000000000", "drop_word_list": None},
        {"drop_word_list": "the"},
        {"fold": "none"},
        {"fold": 3},
        {"fold": "digits,marks"},
        {"fold": ""},
    ],
)
def test_a_changed_recipe_is_refused(change):
    stored = {**Recipe(shingles=Shingles(drop_words=["of", "the"], fold="marks")).describe(), **change}
    with pytest.raises(RecipeMismatchError, match=r"^x: "):
        Recipe.from_json(json.dumps({name: value for name, value in stored.items() if value is not None}), "x")


# --------------------------------------------------------------------------------------------------------------- stems


@pytest.fixture
def stemmer(monkeypatch):
    """Stand in for PyStemmer by a module that cuts words to three letters, and counts those that it was given."""

    class Stemmer:
        given = 0
        version = staticmethod(lambda: "3.0")

        def __init__(self, algorithm):
            assert algorithm in ("english", "french")

        def stemWords(self, words):
            Stemmer.given += len(words)
            assert all(word == word.lower() for word in words)
            return [word[:3] for word in words]

    monkeypatch.setitem(sys.modules, "Stemmer", types.SimpleNamespace(Stemmer=Stemmer, version=Stemmer.version))
    return Stemmer


def test_words_with_equal_stems_are_equal(stemmer):
    texts = ["Walking DOGS sleep, sleep, sleep", "walked dogged sle", "été", "étés e\u0301te\u0301", "wal", ""]
    recipe = Recipe(shingles=Shingles(stem="en"), method="simhash")
    tokens = tokenize(texts, recipe)
    assert stemmer.given == len({word for text in texts for word in token_strings(text)})
    assert tokens[0].tolist()[:3] == tokens[1].tolist() and tokens.sizes.tolist() == [5, 3, 1, 2, 1, 0]
    assert tokens[2][0] == tokens[3][0] == tokens[3][1]
    words = recipe.with_(stem=None)
    assert tokens[1].tolist() == tokenize(["wal dog sle"], words)[0].tolist()
    invalid = utf8([b"wal\xff walled"])
    assert tokenize(invalid, recipe)[0].tolist() == tokenize(utf8([b"wal\xff wal"]), words)[0].tolist()
    listed = Recipe(shingles=Shingles(stem="en", drop_words=["dogs"], fold="marks"), method="simhash")
    assert tokenize(["Dogs doggéd wal"], listed)[0].tolist() == tokenize(["dog wal"], words)[0].tolist()


def test_stems_in_jobs_of_every_kind(stemmer, tmp_path):
    texts = ["comparing stemmed words quickly", "compares stemming word quick", "other things altogether"]
    pq.write_table(pa.table({"id": [1, 2, 3], "text": texts}), path := tmp_path / "t.parquet")
    recipe = Recipe(shingles=Shingles(stem="en"), method="simhash")
    result = dedup(path, id_column="id", recipe=recipe, output=tmp_path / "out")
    assert result.documents["kept"].to_pylist() == [True, False, True]
    assert dedup(path, id_column="id", recipe=recipe.with_(stem=None)).documents["kept"].to_pylist() == [True] * 3
    assert result.removed["kind"].to_pylist() == ["same_words"]
    found = explain(tmp_path / "out", 2)
    assert found.notes == ["the words are the same; only endings, case, punctuation and white space differ"]
    sketch(path, tmp_path / "s.parquet", id_column="id", recipe=recipe)
    rows = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [sketch_text(text, recipe)["simhash"] for text in texts] == [row["simhash"] for row in rows]
    with nd.Index.create(tmp_path / "index", recipe=recipe) as index:
        index.add(path, id_column="id")
    with nd.Index.open(tmp_path / "index") as index:
        assert index.recipe == recipe and recipe.shingles.stem == "en:3.0"


def test_another_version_of_the_stemmer_is_refused(stemmer, monkeypatch, tmp_path):
    recipe = Recipe(shingles=Shingles(stem="fr"), method="simhash")
    monkeypatch.setattr(sys.modules["Stemmer"], "version", lambda: "3.1")
    assert Recipe.from_json(recipe.to_json()) == recipe
    with pytest.raises(RecipeMismatchError, match=r"stem: made with PyStemmer 3\.0, but 3\.1 is installed"):
        tokenize(["un mot"], recipe)
    for name, each in (("a", "en"), ("b", "fr")):
        made = Recipe(shingles=Shingles(stem=each), method="simhash")
        sketch({"id": [name], "text": ["the quick fox"]}, tmp_path / name, id_column="id", recipe=made)
    with pytest.raises(RecipeMismatchError, match=r"made with stem = fr:3\.1"):
        pairs([tmp_path / "a", tmp_path / "b"])


def test_a_stemmer_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ParameterError, match=r"^stem: needs PyStemmer, .*; pip install '.*\[stem\]'$"):
        Shingles(stem="en")


# -------------------------------------------------------------------------------------------------------- command line


def test_the_command_line(tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("The élèves of the school read 12 books in the lib-\nrary")
    (folder / "b.txt").write_text("Eleves of school read 7 books in library")
    (folder / "c.txt").write_text("quite another text with other words in it")
    (words := tmp_path / "own.list").write_text("# articles\nthe\n")
    flags = ["--drop-words", str(words), "--fold", "marks,hyphens,digits"]
    out, name = str(tmp_path / "out"), str(tmp_path / "index")
    assert cli.main(["dedup", str(folder), "--glob", "*.txt", *flags, "-o", out, "-q"]) == 0
    assert pq.read_table(tmp_path / "out/documents.parquet")["kept"].to_pylist() == [True, False, True]
    capsys.readouterr()
    assert cli.main(["explain", out, "b.txt"]) == 0
    assert "the words are the same; only dropped words, folded characters, case," in capsys.readouterr().out
    assert cli.main(["compare", str(folder / "a.txt"), str(folder / "b.txt"), *flags]) == 0
    assert re.search(r"resemblance +1\.0000", capsys.readouterr().out)
    assert cli.main(["sketch", str(folder), "--glob", "*.txt", *flags, "-o", str(tmp_path / "s.parquet"), "-q"]) == 0
    capsys.readouterr()
    assert cli.main(["info", str(tmp_path / "s.parquet")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"fold +marks,hyphens,digits\n +drop_words +own:\w{12}\n +drop_word_list +the\n", said), said
    assert cli.main(["index", "create", name, *flags]) == 0
    assert cli.main(["index", "add", name, str(folder), "--glob", "*.txt"]) == 0
    assert "1" in capsys.readouterr().out


BAD = {
    "no such list": (["--drop-words", "xx"], "xx: no such file, nor a list of words; give da, de, en, es"),
    "an empty file": (["--drop-words", "{empty}"], "empty: holds no words"),
    "words of letters": (["--tokens", "letters", "--drop-words", "en"], "only words are dropped"),
    "no such fold": (["--fold", "case"], "'case' is not one of marks, hyphens, digits"),
    "an empty fold": (["--fold", ""], "'' is not one of marks, hyphens, digits"),
    "a fold of code": (["--tokens", "code", "--fold", "marks"], "fold 'marks' and tokens 'code': they have none"),
    "a fold of ids": (["--tokens", "ids", "--fold", "digits"], "fold 'digits' and tokens 'ids': they have none"),
    "joined lines": (["--tokens", "lines", "--fold", "hyphens"], "tokens 'lines': they have marks and digits"),
    "no such language": (["--method", "simhash", "--stem", "xx"], "'xx' is not one of ar, ca, da"),
    "stems of a join": (["--stem", "en"], "only words of simhash are stemmed; leave one out"),
    "stems of code": (["--method", "simhash", "--tokens", "code", "--stem", "en"], "only plain words have stems"),
    "lines cut": (["--unit", "line", "--shingle-size", "3", "--drop-words", "en"], "unit 'line'"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("stemmer")
def test_bad_input_is_one_line(case, tmp_path, capsys):
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "a.txt").write_text("a text")
    flags, message = BAD[case]
    flags = [flag.replace("{empty}", str(tmp_path / "empty")) for flag in flags]
    assert cli.main(["dedup", str(tmp_path), "--glob", "*.txt", *flags, "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"fold": 3}, TypeError, "fold: 3; give some of marks, hyphens, digits"),
        ({"fold": []}, TypeError, "fold: a list; give some of marks"),
        ({"fold": ["marks", 3]}, TypeError, "fold 3 is not one of"),
        ({"fold": "marks", "tokens": str.split}, ParameterError, "they have none"),
        ({"drop_words": []}, ParameterError, "drop_words: '' is not a word"),
        ({"drop_words": ["two words"]}, ParameterError, "drop_words: 'two words' is not a word"),
        ({"drop_words": 5}, TypeError, "drop_words: 5; give da, de"),
        ({"drop_words": "nowhere.txt"}, InputError, "nowhere.txt: no such file"),
    ],
)
def test_bad_values(wrong, kind, message):
    with pytest.raises(kind, match=re.escape(message)) as caught:
        Shingles(**wrong)
    assert "\n" not in str(caught.value)
