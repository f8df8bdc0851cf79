"""`contaminated`: what is found against Python sets of tuples, where it stands, and what becomes of the texts."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer, some
from hypothesis import example, given, settings, strategies as st
from spelled import KINDS as SPELLED, spelled

import neardup_gpu as nd
from neardup_gpu.contamination.checking import check_again
from neardup_gpu.contamination.cutting import cut_spans
from neardup_gpu.data import ranges
from neardup_gpu.errors import InputError, OutputError, ParameterError
from neardup_gpu.recipe import token_recipe
from neardup_gpu.stages import count_tokens, placed_text, utf8

LETTERS = st.lists(st.sampled_from("abc"), max_size=30)
ITEM = "When in the course of human events it becomes necessary for one people to dissolve the political bands"
"""An item of 18 words."""


def words(text):
    """The tokens of ASCII text, by another way than the kernel's."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in text.lower()).split()


def grams(tokens, n):
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


def runs(text, item, width):
    """All maximal common runs of two lists, by comparing each place with each."""
    found = []
    for i in range(len(text)):
        for j in range(len(item)):
            if i and j and text[i - 1] == item[j - 1]:
                continue
            n = 0
            while i + n < len(text) and j + n < len(item) and text[i + n] == item[j + n]:
                n += 1
            if n >= width:
                found.append((i, j, n))
    return found


def check(texts, items, **options):
    """Return what is found of items with a question each."""
    return nd.contaminated({"text": texts}, {"set": {"question": items}}, engine="cpu", **options)


@settings(max_examples=fewer(60), deadline=None)
@given(
    texts=st.lists(LETTERS, min_size=1, max_size=4),
    items=st.lists(LETTERS, min_size=1, max_size=4),
    kind=st.sampled_from(SPELLED),
)
def test_theorem_6(texts, items, kind):
    """A (document, item) pair is listed exactly when the two share n consecutive tokens."""
    least = 2 if kind == "lines" else 5
    sought = spelled(items, kind, "question")
    found = nd.contaminated(spelled(texts, kind), {"set": sought}, engine="cpu", length=6, tokens=kind)
    listed = {(row["id"], int(row["eval_id"])) for row in found.hits.to_pylist()}
    expected = {
        (d, e)
        for d, text in enumerate(texts)
        for e, item in enumerate(items)
        if len(item) >= least and grams(text, min(6, len(item))) & grams(item, min(6, len(item)))
    }
    assert listed == expected
    every = [
        (d, e, n)
        for d, text in enumerate(texts)
        for e, item in enumerate(items)
        if len(item) >= least
        for _, _, n in runs(text, item, min(6, len(item)))
    ]
    assert sorted((row["id"], int(row["eval_id"]), row["run"]) for row in found.hits.to_pylist()) == sorted(every)


@settings(max_examples=fewer(40), deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from("ab"), max_size=60), min_size=1, max_size=4),
    item=st.lists(st.sampled_from("ab"), min_size=0, max_size=30),
)
def test_numbers_of_an_item(texts, item):
    """The columns of evals follow from their definitions, document by document."""
    (row,) = check([" ".join(text) for text in texts], [" ".join(item)]).evals.to_pylist()
    size = len(item)
    assert (row["tokens"], row["too_short"]) == (size, size < 5)
    if size < 5:
        assert [row[name] for name in ("longest_run", "share_8", "share_13", "documents", "gpt3", "tulu3")] == [
            None
        ] * 6
        return
    width = min(8, size)
    each = [runs(text, item, width) for text in texts]

    def covered(found, n):
        return len({j + k for _, j, m in found if m >= n for k in range(m)})

    every = [run for found in each for run in found]
    longest = max((n for *_, n in every), default=0)
    short, long = min(8, size), min(13, size)
    assert row["longest_run"] == longest
    assert row["share_8"] == covered(every, short) / size and row["share_13"] == covered(every, long) / size
    assert row["documents"] == sum(map(bool, each))
    frequency = [sum(tuple(item[j : j + long]) in grams(text, long) for text in texts) for j in range(size - long + 1)]
    assert row["frequency_13"] == min(filter(None, frequency), default=None)
    assert row["gpt3"] == (longest >= long) and row["datatrove"] == (longest >= min(12, size))
    assert row["llama3"] == (covered(every, short) >= size / 2)
    assert row["tulu3"] == any(covered(found, short) > size / 2 for found in each)
    assert row["longest"] == (longest >= size / 2)


@pytest.mark.parametrize(
    ("kind", "length", "text", "left"),
    [
        ("letters", 25, f"So misread{ITEM.upper()}s, x", "So, x"),  # of the words at both ends, a part is hit
        ("letters", 25, f"{ITEM[3:]}", None),
        ("lines", None, "x\n  - When.\n\t- in.\n\ny", "x\n\ny"),
        ("ids", None, [7, 1, 2, 3, 4, 5, 6, 7, 8, 9], [7, 9]),
    ],
)
def test_hits_of_other_tokens_are_cut(tmp_path, kind, length, text, left):
    """Whole words, lines and integers go; the certificate of the cut text is clean."""
    item = {"letters": ITEM, "lines": "when\nIn", "ids": list(range(1, 9))}[kind]
    column = "input_ids" if kind == "ids" else "text"
    options = {"tokens": kind, "length": length, "engine": "cpu"}
    found = nd.contaminated({column: [text]}, {"s": {"q": [item]}}, action="cut", output=tmp_path / "out", **options)
    assert found.counts["items_hit"] == 1 and found.counts["across_seams"] == 0
    assert pq.read_table(tmp_path / "out/kept")[column].to_pylist() == ([] if left is None else [left])
    assert found.evals["gpt3"].to_pylist()[0] == (None if kind == "letters" else found.evals["longest"][0].as_py())


@settings(max_examples=30, deadline=None)
@given(words=st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6), data=st.data())
def test_letters_that_stay_are_those_of_the_text_that_is_left(words, data):
    recipe = token_recipe("letters", 25)
    text, letters = placed_text(utf8([" ".join(words).encode()]), recipe, "cpu")
    first, last = sorted(data.draw(st.lists(st.integers(0, len(letters.values)), min_size=2, max_size=2, unique=True)))
    one = tuple(np.array([each]) for each in (0, first, last))
    _, begins, ends, stays = cut_spans(text, letters, recipe, one)
    left = text[0].tobytes()
    for begin, end in zip(begins[::-1], ends[::-1], strict=True):
        left = left[:begin] + left[end:]
    assert letters.values[stays].tolist() == count_tokens(utf8([left]), recipe, "cpu")[0].values.tolist()


DENSE = st.lists(st.sampled_from("ab"), min_size=8, max_size=16)


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(DENSE, min_size=1, max_size=3),
    items=st.lists(DENSE, min_size=1, max_size=3),
    values=st.lists(st.sampled_from(["x", "y", None]), min_size=6, max_size=6),
)
@example(texts=["abaabbab"], items=["abaabbab"], values=["x"] * 6)
def test_within_is_the_union_of_a_check_per_value(texts, items, values):
    """Documents are compared with items of equal values only; null equals nothing."""
    own, theirs = values[: len(texts)], values[3 : 3 + len(items)]
    table = pa.table({"text": [" ".join(text) for text in texts], "site": pa.array(own, pa.string())})
    sought = pa.table({"question": [" ".join(item) for item in items], "site": pa.array(theirs, pa.string())})
    found = nd.contaminated(table, {"set": sought}, within="site", length=6, engine="cpu")
    usual = check(table["text"].to_pylist(), sought["question"].to_pylist(), length=6)
    rows = [row for row in usual.hits.to_pylist() if own[row["id"]] == theirs[int(row["eval_id"])] is not None]
    assert found.hits.to_pylist() == rows and found.counts["without_value"] == own.count(None)


def test_against_looks_for_documents(tmp_path):
    """Each document of a reference set is an item; its hits are cut, and the certificate is checked with it."""
    (tmp_path / "held").mkdir()
    (tmp_path / "held/a.txt").write_text(f"Mr. X: {ITEM}")
    (tmp_path / "held/b.txt").write_text("something else that nobody wrote")
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"text": f"so {ITEM.lower()} x"}) + "\n")
    found = nd.contaminated(path, against=tmp_path / "held", action="cut", output=tmp_path / "out", engine="cpu")
    (hit,) = found.hits.to_pylist()
    assert (hit["eval_set"], hit["eval_id"], hit["begin"], hit["run"]) == ("against", "a.txt", 3, 18)
    assert json.loads((tmp_path / "out/kept/train.jsonl").read_text())["text"] == "so x"
    assert "by another scan" in check_again(tmp_path / "out", False)
    with pytest.raises(ParameterError, match="evals: none given; name files of evaluation sets"):
        nd.contaminated(path)


PLANTED = {
    "exact": ITEM,
    "case and punctuation": ITEM.upper().replace(" ", "... "),
    "broken into lines": ITEM.replace(" ", "\r\n\t"),
    "inside other text": f"It is said that {ITEM} and so on, and on.",
    "cut at both ends": " ".join(ITEM.split()[5:13]),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_items_are_found_in_their_places(kind):
    text = f"Ünïcode before — {PLANTED[kind]}. After."
    (row,) = check(["another text", text], [ITEM]).hits.to_pylist()
    raw = text.encode()
    stands = raw[row["begin"] : row["end"]].decode()
    assert (row["eval_set"], row["eval_id"], row["field"], row["id"]) == ("set", "0", None, 1)
    assert words(stands) == (words(ITEM) if kind != "cut at both ends" else words(ITEM)[5:13])
    assert row["run"] == len(words(stands)) and row["share_of_item"] == row["run"] / 18


def test_items_whose_ids_are_bytes():
    items = pa.table({"id": [b"\xff", b"b"], "text": [ITEM, "other"]})
    found = nd.contaminated({"id": [1], "text": [ITEM]}, {"set": items}, id_column="id", fields="text")
    assert found.evals["eval_id"].to_pylist() == ["\\xff", "b"]


def test_half_of_an_item():
    """Tulu 3 alone asks for more than half of the tokens."""
    item = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    (row,) = check([" ".join(item.split()[4:12])], [item]).evals.to_pylist()
    assert [row[name] for name in ("gpt3", "datatrove", "llama3", "tulu3", "longest")] == [
        False,
        False,
        True,
        False,
        True,
    ]


def test_seven_tokens_of_an_item_are_not_listed():
    found = check([" ".join(ITEM.split()[5:12])], [ITEM])
    assert found.hits.num_rows == 0
    assert [found.counts[name] for name in ("items", "items_hit", "grams", "tokens")] == [1, 0, 11, 7]


def test_a_document_that_is_an_item_and_equal_documents():
    found = check([ITEM] * 1000, [ITEM, ITEM, "Other words that nobody has written down anywhere at all"])
    assert found.hits.num_rows == 2000 and found.counts["documents_hit"] == 1000
    assert found.evals["documents"].to_pylist() == [1000, 1000, 0]
    assert found.evals["frequency_13"].to_pylist() == [1000, 1000, None]


def test_a_stock_phrase_has_a_high_frequency():
    """Common options are listed for each item, and the frequency tells them from a leak."""
    phrase = "choose the one best answer from the list of options that is given below now"
    items = [f"{phrase} x{n} is a question that is unlike all of the other ones" for n in range(50)]
    found = check([f"{phrase}. Something else {n}." for n in range(40)] + [items[7]], items)
    rows = found.evals.to_pylist()
    assert {row["frequency_13"] for row in rows} == {41, 1} and [row["frequency_13"] for row in rows].index(1) == 7
    assert [row["eval_id"] for row in rows if row["longest"] and row["longest_run"] == row["tokens"]] == ["7"]


def test_fields_alone_and_together():
    """A run over two fields is found in the item, and a short field by all of it."""
    sets = {
        "set": {"question": [ITEM, "Which?"], "choices": [["to dissolve", "the earth"], ["laws of nature and god"]]}
    }
    texts = [f"{ITEM} to dissolve", "the laws of nature and God entitle them", "nature and god"]
    found = nd.contaminated({"text": texts}, sets, engine="cpu")
    rows = [(row["eval_id"], row["field"], row["id"], row["run"]) for row in found.hits.to_pylist()]
    assert rows == [("0", None, 0, 20), ("0", "question", 0, 18), ("1", "choices", 1, 5)]
    by = {(row["eval_id"], row["field"]): row for row in found.evals.to_pylist()}
    assert by["0", "choices"]["too_short"] and by["1", "question"]["too_short"] and not by["1", None]["too_short"]
    assert found.counts["items_hit"] == 2
    alone = nd.contaminated({"text": texts}, sets, fields="question", engine="cpu")
    assert [(row["eval_id"], row["field"]) for row in alone.hits.to_pylist()] == [("0", None)]
    assert alone.counts["too_short"] == 1


def test_a_field_on_its_own_is_what_the_item_would_be_without_the_others():
    random = np.random.default_rng(3)
    letters = [[" ".join(random.choice(list("ab"), n)) for n in random.integers(0, 25, 12)] for _ in range(3)]
    texts = letters[0] + [" ".join(random.choice(list("ab"), 40)) for _ in range(5)]
    several = nd.contaminated({"text": texts}, {"set": {"x": letters[1], "y": letters[2]}}, engine="cpu")
    for name, column in (("x", letters[1]), ("y", letters[2])):
        alone = nd.contaminated({"text": texts}, {"set": {name: column}}, engine="cpu")
        for table in ("hits", "evals"):
            rows = [row for row in getattr(several, table).to_pylist() if row["field"] == name]
            wanted = [row for row in getattr(alone, table).to_pylist() if table == "hits" or row["tokens"]]
            assert rows == [{**row, "field": name} for row in wanted]


def test_lengths():
    """Verdicts that need shorter runs than those that count are null."""
    (row,) = check([ITEM], [ITEM], length=13).evals.to_pylist()
    assert [row[name] for name in ("share_8", "share_13", "gpt3", "datatrove", "llama3", "tulu3", "longest")] == [
        *(None, 1.0, True, None, None, None, True)
    ]
    (row,) = check([ITEM], [ITEM], length=14).evals.to_pylist()
    assert (row["share_13"], row["gpt3"], row["longest_run"]) == (None, None, 18)


# ----------------------------------------------------------------------------------------- slices, threads, backends


def test_nothing_depends_on_slices_threads_and_backends():
    random = np.random.default_rng(5)
    texts = [" ".join(random.choice(list("abc"), n)) for n in random.integers(0, 80, 200)]
    items = [" ".join(random.choice(list("abc"), n)) for n in random.integers(0, 40, 30)]
    whole = check(texts, items, action="list")
    for engine in (nd.Engine(backend="cpu", batch_bytes=300), nd.Engine(backend="cpu", threads=1), "reference"):
        found = nd.contaminated({"text": texts}, {"set": {"question": items}}, engine=engine)
        assert found.hits.equals(whole.hits) and found.evals.equals(whole.evals)
        assert found.report["input"]["digest"] == whole.report["input"]["digest"]
    assert check([*texts[1:], texts[0]], items).report["input"]["digest"] != whole.report["input"]["digest"]


# ------------------------------------------------------------------------------------------------------ evaluation sets


@pytest.fixture
def training(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in (ITEM, "another text", f"(a) {ITEM} (b)")))
    return path


def test_formats_of_evaluation_sets(tmp_path, training):
    folder = tmp_path / "evals"
    (folder / "inner").mkdir(parents=True)
    row = {"id": "q1", "question": ITEM, "n": 4, "choices": {"text": ["Yes", "No"], "label": ["A", "B"]}}
    (folder / "lines.jsonl").write_text(json.dumps(row) + "\n")
    pq.write_table(pa.Table.from_pylist([row]), folder / "inner" / "table.parquet")
    (folder / "sheet.csv").write_text(f"id,question,n\nq1,{ITEM},4\n")
    (folder / "README.md").write_text("about the sets")
    found = nd.contaminated(training, folder, engine="cpu")
    assert [each["name"] for each in found.report["sets"]] == ["inner/table", "lines", "sheet"]
    assert [each["items_hit"] for each in found.report["sets"]] == [1, 1, 1]
    assert {row["eval_id"] for row in found.hits.to_pylist()} == {"q1"}
    fields = {row["field"] for row in found.evals.to_pylist()}
    assert fields == {None, "question", "choices.text", "choices.label", "n"}  # CSV holds strings
    (alone,) = nd.contaminated(training, folder / "lines.jsonl", fields=["question,choices"], engine="cpu").report[
        "sets"
    ]
    assert alone["name"] == "lines" and alone["items_hit"] == 1


def test_bad_input(tmp_path, training):
    evals = tmp_path / "evals.jsonl"
    evals.write_text(json.dumps({"question": ITEM, "n": 3}) + "\n")
    with pytest.raises(InputError, match="evaluation set and a file of the training text"):
        nd.contaminated(tmp_path, evals)
    with pytest.raises(InputError, match="none of the fields n with text; it has question, n"):
        nd.contaminated(training, evals, fields="n")
    assert nd.contaminated(training, evals, fields=["question", "n"]).evals["too_short"].to_pylist() == [False]
    with pytest.raises(InputError, match="fields: no evaluation set has answer"):
        nd.contaminated(training, evals, fields=["question", "answer"])
    with pytest.raises(InputError, match="no such file or folder"):
        nd.contaminated(training, tmp_path / "nowhere")
    (tmp_path / "text.txt").write_text(ITEM)
    with pytest.raises(InputError, match="an evaluation set is JSON lines, Parquet, CSV or Arrow"):
        nd.contaminated(training, tmp_path / "text.txt")
    with pytest.raises(InputError, match="hold no items"):
        nd.contaminated(training, {"set": pa.table({"question": pa.array([], pa.string())})})
    with pytest.raises(InputError, match="give paths, or tables by the names"):
        nd.contaminated(training, {"set": str(evals)})
    with pytest.raises(OutputError, match="name an output folder"):
        nd.contaminated(training, evals, action="cut")
    with pytest.raises(ParameterError, match="length must be"):
        nd.contaminated(training, evals, length=4)
    with pytest.raises(ParameterError, match="action"):
        nd.contaminated(training, evals, action="remove")
    with pytest.raises(TypeError, match="threshold"):
        nd.contaminated(training, evals, threshold=0.8)


def test_items_without_text_are_too_short():
    found = check([ITEM], ["", None, "...", "four words are few", ITEM])
    assert found.counts["too_short"] == 4 and found.counts["items_hit"] == 1


# --------------------------------------------------------------------------------------------------- what becomes of it


def kept(path):
    return [json.loads(line) for line in (path / "kept" / "train.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("action", ["list", "drop", "cut", "mark"])
def test_actions(tmp_path, training, action):
    evals = {"set": {"question": [ITEM]}}
    found = nd.contaminated(training, evals, output=tmp_path / "out", action=action, engine="cpu")
    assert found.counts["documents_hit"] == 2
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"hits.parquet", "evals.parquet", "contaminated.html", "certificate.json"} | (
        {"kept"} if action != "list" else set()
    )
    assert pq.read_table(tmp_path / "out" / "hits.parquet").to_pylist() == found.hits.to_pylist()
    if action == "drop":
        assert kept(tmp_path / "out") == [{"text": "another text"}]
    if action == "cut":
        assert kept(tmp_path / "out") == [{"text": "another text", "seams": ""}, {"text": "(a) b)", "seams": "4"}]
        assert found.counts["emptied"] == 1
        again = nd.contaminated(tmp_path / "out" / "kept", evals, engine="cpu")
        assert again.hits.num_rows == 0
    if action == "mark":
        spans = [[], [{"begin": 4, "end": 4 + len(ITEM)}]]
        assert [row["contaminated"] for row in kept(tmp_path / "out")] == [[{"begin": 0, "end": len(ITEM)}], *spans]
        with pytest.raises(InputError, match="has a column 'contaminated' already"):
            nd.contaminated(tmp_path / "out" / "kept", evals, output=tmp_path / "more", action="mark", engine="cpu")


def test_an_output_is_replaced_only_if_nothing_else_is_in_it(tmp_path, training):
    evals, out = {"set": {"question": [ITEM]}}, tmp_path / "out"
    nd.contaminated(training, evals, output=out, engine="cpu")
    with pytest.raises(OutputError, match="exists already"):
        nd.contaminated(training, evals, output=out, engine="cpu")
    nd.contaminated(training, evals, output=out, writing=nd.Writing(overwrite=True), engine="cpu")
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"also holds mine\.txt"):
        nd.contaminated(training, evals, output=out, writing=nd.Writing(overwrite=True), engine="cpu")


def test_parquet_keeps_its_other_columns(tmp_path):
    table = pa.table({"key": ["x", "y"], "text": ["nothing", f"One. {ITEM}. Two."], "number": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    for action in ("cut", "mark", "drop"):
        out = tmp_path / action
        nd.contaminated(
            tmp_path / "t.parquet", {"s": {"q": [ITEM]}}, output=out, action=action, id_column="key", engine="cpu"
        )
        rows = pq.read_table(out / "kept" / "t.parquet").to_pylist()
        assert [row["number"] for row in rows] == ([1] if action == "drop" else [1, 2])
        if action == "cut":
            assert rows[1] == {"key": "y", "text": "One. Two.", "number": 2, "seams": "5"}
        if action == "mark":
            assert rows[1]["contaminated"] == [{"begin": 5, "end": 5 + len(ITEM)}]


TEXTS = st.lists(
    st.sampled_from(["a", "b", "漢", "½", " ", ", ", "\u200b", "é", "ำ", "กำ", "\u0301", "、", "\n"]), max_size=60
)


@settings(max_examples=fewer(60), deadline=None)
@example(texts=[["½", "กำ", "a", "กำ", "a"]], item=["กำ", "a", "กำ"])  # the cut may not join 2, of ½, and the last a
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), item=TEXTS)
def test_a_cut_takes_whole_tokens_and_joins_no_words(tmp_path_factory, texts, item):
    """The tokens of a text that was cut are those of the text without one or more runs of whole tokens."""
    texts, item = ["".join(text) for text in texts], "".join(item)
    folder = tmp_path_factory.mktemp("cut")
    found = nd.contaminated(
        {"id": list(range(len(texts))), "text": texts},
        {"s": {"q": [item]}},
        output=folder / "out",
        action="cut",
        length=5,
        id_column="id",
        engine="cpu",
    )
    after = {row["id"]: row["text"] for row in pq.read_table(folder / "out" / "kept").to_pylist()}
    recipe = nd.Recipe()
    for row, text in enumerate(texts):
        before = list(nd.stages.tokenize([text], recipe, backend="cpu").values)
        left = list(nd.stages.tokenize([after.get(row, "")], recipe, backend="cpu").values)
        hits = [hit for hit in found.hits.to_pylist() if hit["id"] == row]
        if not hits:
            assert after[row] == text
            continue
        assert _is_subsequence(left, before) and len(left) <= len(before) - max(hit["run"] for hit in hits)
        kept_bytes = text.encode()
        for hit in hits:
            assert kept_bytes[hit["begin"] : hit["end"]].decode()
    again = nd.contaminated(folder / "out" / "kept", {"s": {"q": [item]}}, length=5, id_column="id", engine="cpu")
    assert again.hits.num_rows == 0, "the hits across seams are no hits, whatever the script"


def _is_subsequence(some, every):
    rest = iter(every)
    return all(token in rest for token in some)


def test_a_cut_between_words_without_a_separator_takes_the_word_before():
    texts, item = ["zero one漢字仮名漢two three", "漢字仮名漢"], "漢字仮名漢"
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        nd.contaminated({"text": texts}, {"s": {"q": [item]}}, output=out, action="cut", engine="cpu")
        assert pq.read_table(out / "kept")["text"].to_pylist() == ["zero two three"]


def test_runs_across_the_seams_of_cuts_are_counted(tmp_path):
    """A cut can bring the parts of an item together: this check counts it, and the next one does not."""
    item = "one two three four five six seven eight nine ten"
    texts = [f"one two three four five ({item}) six seven eight nine ten", item, "nothing"]
    evals = {"s": {"q": [item]}}
    found = nd.contaminated({"text": texts}, evals, output=tmp_path / "out", action="cut", engine="cpu")
    assert (found.counts["hits"], found.counts["across_seams"], found.counts["emptied"]) == (2, 1, 1)
    again = nd.contaminated(tmp_path / "out" / "kept", evals, output=tmp_path / "again", action="cut", engine="cpu")
    assert (again.counts["hits"], again.counts["across_seams"]) == (0, 0)
    first, second = (pq.read_table(tmp_path / name / "kept") for name in ("out", "again"))
    assert first["seams"].to_pylist() == ["25", ""] and second.equals(first)
    for action in ("drop", "mark"):
        found = nd.contaminated({"text": texts}, evals, output=tmp_path / action, action=action, engine="cpu")
        assert found.counts["across_seams"] == 0
        assert "seams" not in pq.read_table(tmp_path / action / "kept").column_names


@settings(max_examples=fewer(40), deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from("ab"), max_size=40), min_size=1, max_size=4),
    items=st.lists(st.lists(st.sampled_from("ab"), min_size=5, max_size=12), min_size=1, max_size=3),
)
def test_runs_across_seams_are_the_hits_of_the_text_that_is_left(texts, items):
    import tempfile
    from pathlib import Path

    evals = {"s": {"q": [" ".join(item) for item in items]}}
    with tempfile.TemporaryDirectory() as folder:
        table, out = {"text": [" ".join(text) for text in texts]}, Path(folder, "out")
        found = nd.contaminated(table, evals, output=out, action="cut", length=6, engine="cpu")
        left = pq.read_table(out / "kept")
        again = nd.contaminated(left, evals, output=Path(folder, "two"), action="cut", length=6, engine="cpu")
        assert again.hits.num_rows == again.counts["across_seams"] == 0
        assert pq.read_table(Path(folder, "two", "kept")).equals(left)
    without = {"text": left["text"].to_pylist()}
    unmarked = nd.contaminated(without, evals, length=6, engine="cpu") if without["text"] else None
    assert found.counts["across_seams"] == (0 if unmarked is None else unmarked.hits.num_rows)


@settings(max_examples=fewer(60), deadline=None)
@given(data=st.data())
def test_runs_are_those_of_the_parts_between_seams(tmp_path_factory, data):
    """A text with seams has the hits, the cuts and the new runs of its parts, whatever wrote the seams."""
    texts = data.draw(st.lists(LETTERS, min_size=1, max_size=4))
    items = data.draw(st.lists(LETTERS, min_size=1, max_size=3))
    places = [sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=3))) for text in texts]
    table = pa.table(
        {"text": [" ".join(text) for text in texts], "seams": [" ".join(str(2 * i) for i in each) for each in places]}
    )
    evals, out = {"s": {"q": [" ".join(item) for item in items]}}, tmp_path_factory.mktemp("parts")
    found = nd.contaminated(table, evals, output=out / "one", action="cut", length=5, engine="cpu")
    expected, left = [], []
    for d, (text, seams) in enumerate(zip(texts, places, strict=True)):
        gone = set()
        for begin, end in zip([0, *seams], [*seams, len(text)], strict=True):
            for e, item in enumerate(items):
                for i, _, n in runs(text[begin:end], item, 5) if len(item) >= 5 else ():
                    expected.append((d, str(e), 2 * (begin + i), n))
                    gone |= set(range(begin + i, begin + i + n))
        left.append([letter for i, letter in enumerate(text) if i not in gone])
    rows = [(row["id"], row["eval_id"], row["begin"], row["run"]) for row in found.hits.to_pylist()]
    assert sorted(rows) == sorted(expected)
    kept = pq.read_table(out / "one" / "kept")
    emptied = {d for d, *_ in expected if not left[d]}
    assert [words(text) for text in kept["text"].to_pylist()] == [
        letters for d, letters in enumerate(left) if d not in emptied
    ]
    for engine in (nd.Engine(backend="cpu", batch_bytes=1), "reference"):
        other = nd.contaminated(table, evals, length=5, engine=engine)
        assert other.hits.equals(found.hits)
    assert nd.contaminated(kept, evals, length=5, engine="cpu").hits.num_rows == 0


def test_seams_of_other_text(tmp_path):
    """A column of seams that holds something else is refused, and so are seams beside text that is extracted."""
    evals = {"s": {"q": [ITEM]}}
    for wrong in ("zigzag", "3 ", "-1", 1.5, [3]):
        with pytest.raises(InputError, match=r"^column 'seams': holds something else [^\n]*; rename it$"):
            nd.contaminated(pa.table({"text": [ITEM], "seams": [wrong]}), evals, engine="cpu")
    page = {"text": [f"<p>One.</p> <p>{ITEM}</p>"]}
    reading = nd.Reading(html=True, text_columns="text")
    nd.contaminated(page, evals, output=tmp_path / "out", action="cut", reading=reading, engine="cpu")
    with pytest.raises(InputError, match="belongs to text that was cut; name that text, usually extracted_text"):
        nd.contaminated(tmp_path / "out" / "kept", evals, reading=reading, engine="cpu")
    again = nd.contaminated(tmp_path / "out" / "kept", evals, text_columns="extracted_text", engine="cpu")
    assert again.counts["hits"] == 0


def test_seams_of_substrings_are_seams_of_a_check(tmp_path):
    """Each of the two commands reads what the other one wrote, and adds its own seams."""
    item = "one two three four five six seven eight nine ten"
    passage = "x1 x2 x3 x4 x5 x6 x7 x8 x9"
    texts = [passage, f"one two three four five {passage} six seven eight nine ten", f"a {item} b"]
    nd.substrings({"text": texts}, length=9, output=tmp_path / "one", engine="cpu")
    options = {"output": tmp_path / "two", "action": "cut", "engine": "cpu"}
    found = nd.contaminated(tmp_path / "one" / "kept", {"s": {"q": [item]}}, **options)
    assert found.hits["id"].to_pylist() == [2]
    rows = pq.read_table(tmp_path / "two" / "kept").to_pylist()
    assert [row["seams"] for row in rows] == ["", "24", "2"] and rows[2]["text"] == "a b"
    assert nd.substrings(tmp_path / "two" / "kept", length=9, action="list", engine="cpu").counts["passages"] == 0


@pytest.mark.parametrize("action", ["cut", "mark"])
def test_html_and_joined_columns_become_a_column(tmp_path, action):
    """Hits are cut out of the extracted text, or marked in it; markup is never edited."""
    evals, table = {"s": {"q": [ITEM]}}, {"text": [f"<p>One.</p> <p>{ITEM}</p>"], "more": [f"{ITEM} two"]}
    sources = {"html": {"reading": nd.Reading(html=True, text_columns="text")}, "joined": {"text_columns": list(table)}}
    for name, options in sources.items():
        nd.contaminated(table, evals, output=tmp_path / name, action=action, engine="cpu", **options)
        (row,) = pq.read_table(tmp_path / name / "kept").to_pylist()
        text = row["extracted_text"]
        assert (row["text"], row["more"]) == (table["text"][0], table["more"][0]) and "One." in text
        assert (ITEM in text) == (action == "mark")
        for span in row["contaminated"] if action == "mark" else ():
            assert text.encode()[span["begin"] : span["end"]].decode() == ITEM
    with pytest.raises(
        ParameterError, match=f"action '{action}': needs columns of text that are not inside another one"
    ):
        nested = {"inner": [{"text": ITEM}]}
        nd.contaminated(nested, evals, output=tmp_path / "no", action=action, text_columns="inner.text")
    assert not (tmp_path / "no").exists()


def test_ranges():
    assert ranges(np.array([3, 7, 1]), np.array([2, 0, 1])).tolist() == [3, 4, 1]
    assert ranges(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


def test_the_page_shows_items_beside_passages(tmp_path, training):
    """Markup in texts and names is escaped, and the page does not depend on slices."""
    evals = {"set": {"id": ["<b>"], "question": [f"{ITEM} <i>"], "choices": [["yes", "no"]]}}
    pages = []
    for number, size in enumerate((1, 1 << 20)):
        engine = nd.Engine(backend="cpu", batch_bytes=size)
        nd.contaminated(training, evals, output=tmp_path / f"out{number}", engine=engine)
        pages.append((tmp_path / f"out{number}" / "contaminated.html").read_text())
    assert pages[0] == pages[1]
    assert f"<ins>{ITEM}</ins>" in pages[0] and "question: When in the course" in pages[0]
    assert "&lt;i&gt;" in pages[0] and "set: &lt;b&gt;" in pages[0] and "<i>" not in pages[0]
    assert "choices: yes\nno" in pages[0] and "18 tokens" in pages[0]
    nd.contaminated({"text": ["nothing"]}, evals, output=tmp_path / "none", engine="cpu")
    assert "<ins>" not in (tmp_path / "none" / "contaminated.html").read_text()


def test_rows_that_cannot_be_read_are_skipped_and_listed(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(f'{{"text": "nothing"}}\n{{"text": broken\n{{"text": "{ITEM}"}}\n')
    evals, reading = {"set": {"question": [ITEM]}}, nd.Reading(on_error="skip")
    with pytest.raises(InputError, match="line 2"):
        nd.contaminated(path, evals, engine="cpu")
    found = nd.contaminated(path, evals, output=tmp_path / "out", action="cut", reading=reading, engine="cpu")
    assert found.counts["documents"] == 2 and found.counts["documents_hit"] == 1
    assert pq.read_table(tmp_path / "out" / "skipped.parquet")["row"].to_pylist() == [2]
    assert kept(tmp_path / "out") == [{"text": "nothing", "seams": ""}]


def test_evaluation_sets_behind_uris_and_links(tmp_path, training):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://sets/inner/a.jsonl", "w") as file:
        file.write(json.dumps({"question": ITEM}) + "\n")
    for uri in ("memory://sets", "memory://sets/inner/a.jsonl"):
        found = nd.contaminated(training, uri, engine="cpu")
        assert found.counts["items_hit"] == 1 and found.report["sets"][0]["name"].endswith("a")
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "set.jsonl").symlink_to(training)
    with pytest.raises(InputError, match="is an evaluation set and a file of the training text"):
        nd.contaminated(training, tmp_path / "evals")


CORPORA = ("bills_116_small", "manpages", "winps_docs", "django_docs", "edinburgh_2500")


@pytest.mark.parametrize("name", some(CORPORA, CORPORA[::3]))
def test_theorem_6_on_corpora(corpora, name):
    """Items of real text, against Python sets of tuples of tokens."""
    table = pq.read_table(corpora / f"{name}.parquet", columns=["text"])
    random = np.random.default_rng(7)
    texts = [text or "" for text in table["text"].take(random.permutation(len(table))[:150]).to_pylist()]
    items = []
    for text in texts[:60]:
        words_of = text.split()
        begin = int(random.integers(0, max(1, len(words_of) - 30)))
        items.append(" ".join(words_of[begin : begin + int(random.integers(3, 60))]))
    rows = [nd.stages.tokenize(some, nd.Recipe(), backend="cpu") for some in (texts, items)]
    documents, wanted = ([tuple(each[i].tolist()) for i in range(len(each))] for each in rows)
    having: dict[tuple, set] = {}
    widths = sorted({min(8, len(item)) for item in wanted if len(item) >= 5})
    for d, tokens in enumerate(documents):
        for n in widths:
            for gram in grams(tokens, n):
                having.setdefault(gram, set()).add(d)
    expected = {
        (d, e)
        for e, item in enumerate(wanted)
        if len(item) >= 5
        for gram in grams(item, min(8, len(item)))
        for d in having.get(gram, ())
    }
    found = check(texts, items)
    assert {(row["id"], int(row["eval_id"])) for row in found.hits.to_pylist()} == expected
    assert len(expected) >= 40
