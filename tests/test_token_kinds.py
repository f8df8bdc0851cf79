"""Kinds of tokens through the whole library: the papers' numbers, integers, a user's tokenizer, and errors."""

import json
import subprocess
import sys
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import Recipe, Shingles, cli, compare, dedup
from neardup_gpu.errors import ArgumentTypeError, InputError, NeardupError, ParameterError, RecipeMismatchError
from neardup_gpu.results.explanation import explain
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import Ragged, tokenize

LONDON = (
    "Jack London travelled to Oakland",
    "Jack London travelled to the city of Oakland",
    "Jack travelled from Oakland to London",
)
"""The documents of a lecture on shingles."""

LINES = "\n".join(f"option_{number} = {number * number}" for number in range(10))
"""Ten lines of a configuration."""

IDS = [[5, 7, 9, 11, 13, 15, 17], [5, 7, 9, 11, 13, 15, 17, 19], [-1, 2**62, 0], [5, None, 9], None, []]


def shared(a, b, shingles):
    found = compare(a, b, shingles=shingles)
    return found.shared, found.num_a + found.num_b - found.shared


def kept(source, shingles, **options):
    recipe = Recipe(shingles=shingles, **options)
    return dedup(source, recipe=recipe).documents["kept"].to_pylist()


# --------------------------------------------------------------------------------------------------------- the papers


@pytest.mark.parametrize(
    ("size", "other", "expected"), [(3, 1, (29, 43)), (3, 2, (26, 39)), (4, 1, (27, 43)), (4, 2, (21, 42))]
)
def test_letters_of_jack_london(size, other, expected):
    assert shared(LONDON[0], LONDON[other], Shingles(size, tokens="letters")) == expected
    assert shared(LONDON[0].upper(), LONDON[other] + "!", Shingles(size, tokens="letters")) == expected


def test_two_files_of_ten_lines_one_changed():
    changed = LINES.replace("option_4 = 16", "option_4 = 17").replace("\n", "\r\n\r\n")
    assert shared(LINES, changed, Shingles(tokens="lines")) == (9, 11)
    words = compare(LINES, changed, shingles=Shingles(tokens="lines")).words
    assert [text.strip() for op, text in words if op != "equal"] == ["option_4 = 16", "option_4 = 17"]


# ------------------------------------------------------------------------------------------------------ what they are


@pytest.mark.parametrize(
    ("tokens", "size"),
    [("words", 5), ("letters", 24), ("lines", 1), ("code", 5), ("ids", 5), ("chunks", 1), (str.split, 5)],
)
def test_each_kind_has_its_usual_size(tokens, size):
    assert Shingles(tokens=tokens).size == size
    assert Recipe().with_(tokens=tokens).shingles == Shingles(tokens=tokens)
    assert Recipe().with_(tokens=tokens, shingle_size=13).shingles == Shingles(13, tokens=tokens)


def test_recipes_of_words_are_as_before():
    assert Shingles().describe() == {"shingle_size": 5, "shingling": "set"}
    assert Recipe.from_json(json.dumps(Recipe().describe())) == Recipe()


@pytest.mark.parametrize("tokens", ["letters", "lines", "code", "ids", "chunks", json.dumps])
def test_recipes_are_read_again(tokens):
    recipe = Recipe(shingles=Shingles(tokens=tokens))
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe and again.to_json() == recipe.to_json()
    assert recipe.describe()["tokens"] == (tokens if isinstance(tokens, str) else str(recipe.shingles.tokens))


def test_short_shingles_of_letters_are_warned_of(caplog):
    Shingles(12, tokens="letters")
    assert not caplog.records
    Shingles(11, tokens="letters")
    assert "shingle_size 11: so few letters are in many texts by chance; give 12 or more" in caplog.text


def test_scans_with_divided_and_misread_words():
    scanned = "the quick brown fox jumps over the lazy dog while the other dogs watch it from behind the old fence"
    other = scanned.replace("jumps", "jum ps").replace("watch", "wa,tch").replace("lazy", "1azy")
    letters = compare(scanned, other, shingles=Shingles(12, tokens="letters"))
    assert letters.resemblance > 2 * compare(scanned, other).resemblance


def test_comments_are_left_out_by_the_names_of_files(tmp_path):
    for name, comment in (("a.py", "# one two three four five six"), ("b.py", "# seven"), ("c.txt", "# seven")):
        (tmp_path / name).write_text(f"def f(x): {comment}\n    return x + 1\n")
    out = tmp_path / "out"
    arguments = ["dedup", str(tmp_path), "--glob", "*", "--tokens", "code", "--threshold", "1", "-o", str(out), "-q"]
    assert cli.main(arguments) == 0
    table = pq.read_table(out / "documents.parquet")
    assert table["id"].to_pylist() == ["a.py", "b.py", "c.txt"] and table["kept"].to_pylist() == [True, False, True]
    found = explain(out, "b.py")
    assert (found.kind, found.tokens, found.words) == ("same_words", "code", [])
    assert json.loads((out / "report.json").read_text())["recipe"]["tokens"] == "code"


def test_the_language_of_all_documents():
    table = {"text": ["f(x) -- one two three", "f(x) -- four"]}
    assert kept(table, Shingles(2, tokens="code", language="lua"), threshold=1.0) == [True, False]
    assert kept(table, Shingles(2, tokens="code"), threshold=1.0) == [True, True]


def test_the_files_of_compare_say_the_language(tmp_path, capsys):
    (tmp_path / "a.c").write_text("int a; // one")
    (tmp_path / "b.c").write_text("int a; /* two */")
    assert cli.main(["compare", str(tmp_path / "a.c"), str(tmp_path / "b.c"), "--tokens", "code"]) == 0
    assert "resemblance  1 (" in capsys.readouterr().out.replace("1.0000", "1")


# ----------------------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("form", ["dict", "parquet", "jsonl", "large", "views"])
def test_lists_of_integers(form, tmp_path):
    source = {"id": list("abcdef"), "input_ids": IDS}
    if form == "parquet":
        pq.write_table(pa.table(source), source := tmp_path / "t.parquet")
    elif form == "jsonl":
        lines = [json.dumps({"id": id, "input_ids": ids}) for id, ids in zip("abcdef", IDS, strict=True)]
        (source := tmp_path / "t.jsonl").write_text("\n".join(lines))
    elif form == "large":
        source["input_ids"] = pa.array([[-9], *IDS], pa.large_list(pa.int64()))[1:]
    elif form == "views":
        source["input_ids"] = pa.array(IDS, pa.list_view(pa.int64()))
    recipe = Recipe(shingles=Shingles(2, tokens="ids"))
    result = dedup(source, id_column="id", recipe=recipe)
    assert result.documents["kept"].to_pylist() == [True, False, True, True, True, True]
    assert {name: result.report["counts"][name] for name in ("tokens", "null_text", "empty")} == {
        "tokens": 18,
        "null_text": 2,
        "empty": 3,
    }
    found = result.explain("b")
    assert (found.shared, found.united, found.tokens) == (6, 7, "ids")
    assert [(op, text.strip()) for op, text in found.words] == [("equal", "5 7 9 11 13 15 17"), ("added", "19")]


def test_a_ragged_of_integers():
    rows = Ragged.from_rows([[1, 2, 3], [4], [], [1, 2, 3]], np.int32)
    assert kept(rows, Shingles(tokens="ids")) == [True, True, True, False]
    wide = Ragged.from_rows([[1, 2, 3], [4], [], [1, 2, 3]], np.int64)
    assert tokenize(wide, Recipe(shingles=Shingles(tokens="ids"))).sizes.tolist() == [3, 1, 0, 3]
    assert compare([1, 2, 3], [1, 2, 4], shingles=Shingles(1, tokens="ids")).shared == 2


def test_token_ids_are_the_same_in_tasks_sketches_and_an_index(tmp_path):
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 50_000, 60).tolist() for _ in range(20)]
    rows += [[*row[:-3], 1, 2, 3] for row in rows[:5]]
    pq.write_table(pa.table({"id": range(25), "input_ids": rows}), path := tmp_path / "t.parquet")
    shingles = Shingles(tokens="ids")
    here = dedup(path, id_column="id", recipe=Recipe(shingles=shingles))
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    recipe = Recipe(shingles=shingles)
    there = dedup(path, id_column="id", recipe=recipe, output=tmp_path / "out", workers=workers)
    assert there.documents.drop(["file", "row"]).equals(here.documents.drop(["file", "row"]))
    sketched = Recipe(shingles=shingles, method="minhash")
    sketch(path, tmp_path / "s.parquet", id_column="id", recipe=sketched)
    assert pairs(tmp_path / "s.parquet").num_rows == 5
    with nd.Index.create(tmp_path / "index", recipe=sketched) as index:
        assert index.add(path, id_column="id")[:3] == (25, 20, 5)
        asked = index.query({"id": [99], "input_ids": [rows[0]]}, id_column="id")
        assert asked["id"].to_pylist() == [0, 20]
        with pytest.raises(ParameterError, match=r"^tokens .ids.: one text is given"):
            index.query("1 2 3")


def test_a_vocabulary_shows_words(tmp_path, monkeypatch, capsys):
    class Tokenizer:
        @classmethod
        def from_file(cls, path):
            return cls(json.loads(open(path).read()))

        def __init__(self, words):
            self.words = words

        def id_to_token(self, id):
            return self.words[id] if id < len(self.words) else None

        def decode(self, ids, skip_special_tokens):
            return " ".join(self.words[id] for id in ids)

    monkeypatch.setitem(sys.modules, "tokenizers", types.SimpleNamespace(Tokenizer=Tokenizer))
    (vocabulary := tmp_path / "tokenizer.json").write_text(json.dumps(["to", "be", "or", "not"]))
    pq.write_table(pa.table({"id": [0, 1], "ids": [[0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 0, 2]]}), tmp_path / "t.parquet")
    options = ["--tokens", "ids", "--shingle-size", "1", "--id-column", "id", "-o", str(tmp_path / "out"), "-q"]
    assert cli.main(["dedup", str(tmp_path / "t.parquet"), "--text-column", "ids", *options]) == 0
    assert cli.main(["explain", str(tmp_path / "out"), "1"]) == 0
    assert "integers     [-" in (told := capsys.readouterr().out) and "0 1 2 3 0" in told
    assert cli.main(["explain", str(tmp_path / "out"), "1", "--vocabulary", str(vocabulary)]) == 0
    assert "to be or not to" in capsys.readouterr().out
    vocabulary.write_text(json.dumps(["to", "be", "or"]))
    for path, message in (
        (vocabulary, "has no token 3; give the vocabulary that made the ids"),
        (tmp_path, "not a vocab"),
    ):
        assert cli.main(["explain", str(tmp_path / "out"), "1", "--vocabulary", str(path)]) == 2
        assert message in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------- a user's tokenizer


def halves(texts):
    """Divide each word into two."""
    return [[part for word in text.split() for part in (word[:2], word[2:])] for text in texts]


def numbers(texts):
    return [[len(word) for word in text.split()] for text in texts]


TEXTS = {"id": ["x", "y", "z"], "text": ["one three seven", "one three seven eight", "a forty-two"]}


@pytest.mark.parametrize("function", [halves, numbers])
def test_a_function_makes_tokens(function):
    recipe = Recipe(shingles=Shingles(1, tokens=function), threshold=0.6)
    result = dedup(TEXTS, id_column="id", recipe=recipe)
    assert result.documents["kept"].to_pylist() == [True, False, True]
    sets = [set(row) for row in function(TEXTS["text"])]
    found = result.explain("y")
    assert found.resemblance == len(sets[0] & sets[1]) / len(sets[0] | sets[1])
    assert found.notes == [f"words are shown; compared were the tokens of {__name__}:{function.__name__}"]


def test_a_function_that_no_module_names_explains_its_result():
    """A function inside of another one, as a method of a tokenizer, is not found again by its name."""
    recipe = Recipe(shingles=Shingles(1, tokens=lambda texts: halves(texts)), threshold=0.6)
    found = dedup(TEXTS, id_column="id", recipe=recipe).explain("y")
    assert (found.kept, found.duplicate_of) == (False, "x")


def test_a_function_in_tasks_and_in_an_explanation_of_another_program(tmp_path):
    (tmp_path / "cutter.py").write_text("def cut(texts):\n    return [list(text) for text in texts]\n")
    pq.write_table(pa.table(TEXTS), tmp_path / "t.parquet")
    program = """
import sys; sys.path.insert(0, "."); import cutter, neardup_gpu as nd
recipe = nd.Recipe(shingles=nd.Shingles(2, tokens=cutter.cut), threshold=0.6)
workers = nd.Workers(work_dir="work", number=1)
result = nd.dedup("t.parquet", id_column="id", recipe=recipe, output="out", workers=workers)
print(result.documents["kept"].to_pylist(), recipe.describe()["tokens"])
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("[True, False, True] cutter:cut:")
    with pytest.raises(RecipeMismatchError, match=r"^tokens: made by cutter:cut, which is not loaded here"):
        explain(tmp_path / "out", "y")


def test_a_function_that_has_changed_is_not_taken():
    text = Recipe(shingles=Shingles(tokens=halves)).to_json()
    assert Recipe.from_json(text).shingles.tokens.function is halves
    digest = Shingles(tokens=halves).tokens.digest
    assert Recipe.from_json(text.replace(digest, "0" * 12)).shingles.tokens.function is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda texts: [["a"]], "returned 1 lists for 3 texts"),
        (lambda texts: texts, "returned a string in place of a list of tokens"),
        (lambda texts: [[1 / 0] for _ in texts], "raised ZeroDivisionError: division by zero"),
        (lambda texts: None, "raised TypeError: 'NoneType' object is not iterable"),
        (lambda texts: [[1.5] for _ in texts], "gives tokens that are neither all strings nor all 64-bit integers"),
        (lambda texts: [[2**63] for _ in texts], "gives tokens that are neither all strings nor all 64-bit integers"),
        (lambda texts: [["a", 1] for _ in texts], "gives tokens that are neither all strings nor all 64-bit integers"),
    ],
)
def test_a_function_that_fails(function, message):
    with pytest.raises(InputError) as caught:
        dedup(TEXTS, id_column="id", recipe=Recipe(shingles=Shingles(tokens=function)))
    line = str(caught.value)
    assert line.endswith(f"<lambda> {message} in the batch that begins with document 'x'") and "\n" not in line


def test_tasks_need_a_function_that_can_be_pickled(tmp_path):
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    recipe = Recipe(shingles=Shingles(tokens=lambda texts: [text.split() for text in texts]))
    pq.write_table(pa.table(TEXTS), tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match=r"<lambda> cannot be pickled for tasks .*; define it in a module$"):
        dedup(tmp_path / "t.parquet", recipe=recipe, output=tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------------------------------------------- errors

IDS_RECIPE = Recipe(shingles=Shingles(tokens="ids"))

WRONG = {
    "no such kind": (
        lambda: Shingles(tokens="syllables"),
        ParameterError,
        "tokens 'syllables' is not one of words, letters,",
    ),
    "of another type": (lambda: Shingles(tokens=3), ArgumentTypeError, "tokens 3 is not one of words, letters,"),
    "no such language": (lambda: Shingles(tokens="code", language="cobol"), ParameterError, "language 'cobol' is not"),
    "a language of words": (lambda: Shingles(language="go"), ParameterError, "language: only tokens='code' has one"),
    "spots of code": (
        lambda: Shingles(2, "spots", tokens="code"),
        ParameterError,
        "shingling 'spots' and tokens 'code'",
    ),
    "simhash of letters": (
        lambda: Recipe(shingles=Shingles(tokens="letters"), method="simhash"),
        ParameterError,
        "tokens 'letters' and elements 'tokens': all texts have the same letters",
    ),
    "lines of integers": (
        lambda: Recipe(shingles=Shingles(tokens="ids"), unit="window:5/2"),
        ParameterError,
        "unit 'window:5/2' and tokens 'ids': integers have no words; leave one out",
    ),
    "texts as ids": (lambda: compare("1", "2", shingles=Shingles(tokens="ids")), ArgumentTypeError, "a: '1' is text;"),
    "no column of integers": (
        lambda: dedup({"text": ["a"]}, recipe=IDS_RECIPE),
        InputError,
        "input: no column of lists of integers; name one with text_columns=...",
    ),
    "several columns of integers": (
        lambda: dedup({"a": [[1]], "b": [[1]]}, recipe=IDS_RECIPE),
        InputError,
        "input: several columns of lists of integers, a, b; name one with text_columns=...",
    ),
    "two columns of integers": (
        lambda: dedup({"a": [[1]], "b": [[1]]}, recipe=IDS_RECIPE, text_columns=["a", "b"]),
        InputError,
        "input: several columns of integers cannot be joined; name one.",
    ),
    "a column of text": (
        lambda: dedup({"a": ["b"]}, recipe=IDS_RECIPE, text_columns="a"),
        InputError,
        "input: column 'a' holds string, not lists of integers.",
    ),
    "fractions": (
        lambda: dedup({"a": [[1.5]]}, recipe=IDS_RECIPE, text_columns="a"),
        InputError,
        "input: column 'a' holds lists of double, not lists of integers.",
    ),
    "integers as words": (
        lambda: dedup({"a": [[1]]}, text_columns="a"),
        InputError,
        "input: column 'a' holds lists of int64, not text.",
    ),
    "an integer beyond int64": (
        lambda: dedup(pa.table({"a": pa.array([[1, 2], [3, 2**63]], pa.list_(pa.uint64()))}), recipe=IDS_RECIPE),
        InputError,
        "input: row 2: column 'a' holds the number 9223372036854775808, not a 64-bit integer with a sign; correct it",
    ),
    "HTML": (
        lambda: dedup({"a": [[1]]}, recipe=IDS_RECIPE, text_columns="a", reading=nd.Reading(html=True)),
        ParameterError,
        "html and tokens 'ids': integers are not text; leave it out",
    ),
    "an encoding, of a table": (
        lambda: dedup({"a": [[1]]}, recipe=IDS_RECIPE, text_columns="a", reading=nd.Reading(encoding="cp1251")),
        ParameterError,
        "encoding: no text is read; leave it out",
    ),
    "a Ragged of fractions": (
        lambda: dedup(Ragged.from_rows([[1.5]], np.float64), recipe=IDS_RECIPE),
        ArgumentTypeError,
        "documents: rows of float64; give a Ragged of integers",
    ),
    "sketches of other tokens": (
        lambda: Recipe(method="minhash").check_sketches(
            Recipe(method="minhash", shingles=Shingles(tokens="letters")), "s.parquet"
        ),
        RecipeMismatchError,
        "s.parquet: made with tokens = letters, but words is needed; sketch it again",
    ),
    "simhashes of other tokens": (
        lambda: Recipe(method="simhash").check_sketches(
            Recipe(method="simhash", shingles=Shingles(tokens="code")), "s.parquet"
        ),
        RecipeMismatchError,
        "s.parquet: made with tokens = code, but words is needed; sketch it again",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case):
    call, kind, message = WRONG[case]
    with pytest.raises(NeardupError) as caught:
        call()
    assert type(caught.value) is kind and str(caught.value).startswith(message) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": [1, "b"]}', "line 1: column 'a' holds a string, not a 64-bit integer"),
        ('{"a": [1, 2.5]}', "line 1: column 'a' holds the number 2.5, not a 64-bit integer"),
        ('{"a": [9223372036854775808]}', "line 1: column 'a' holds the number 9223372036854775808, not a 64-bit"),
        ('{"a": "b"}', "line 1: column 'a' holds text, not lists of integers."),
    ],
)
def test_json_that_holds_other_values(line, message, tmp_path):
    (path := tmp_path / "t.jsonl").write_text(line)
    with pytest.raises(InputError) as caught:
        dedup(path, recipe=IDS_RECIPE, text_columns="a")
    assert message in str(caught.value)


def test_lines_of_json_with_integers_may_have_an_encoding(tmp_path):
    (tmp_path / "t.jsonl").write_bytes('{"id": "\u0416", "a": [1]}\n'.encode("cp1251"))
    result = dedup(
        tmp_path / "t.jsonl", recipe=IDS_RECIPE, text_columns="a", id_column="id", reading=nd.Reading(encoding="cp1251")
    )
    assert result.documents["id"].to_pylist() == ["\u0416"]
    pq.write_table(pa.table({"a": [[1]]}), tmp_path / "t.parquet")
    with pytest.raises(ParameterError, match="encoding: no text is read; leave it out"):
        dedup(tmp_path / "t.parquet", recipe=IDS_RECIPE, text_columns="a", reading=nd.Reading(encoding="cp1251"))


def test_files_of_text_hold_no_integers(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("1 2 3")
    assert cli.main(["dedup", str(tmp_path / "a.txt"), "--tokens", "ids", "--dry-run"]) == 2
    assert "files of text hold no lists of integers" in capsys.readouterr().err
