"""Decisions about units: what is cut is repeated in what is kept, and equals the decisions about rows of units."""

import random
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from grids import fewer
from hypothesis import given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu import Recipe, Shingles, Unit
from neardup_gpu.documents.rewritten import with_cuts
from neardup_gpu.stages import as_documents, tokenize

dedup = partial(flat, nd.dedup)

UNITS = ["paragraph", "line", "sentence", "sentences:2", "sentences:3/2", "window:2", "window:4/1"]
PIECES = [
    *(" ", "\n", "\r\n", "\r", "\n\n", "\n \n", ". ", "! ", ".", "? B", "\0", "\f", "}", ", "),
    *("a b", "c", "A. b", "Who", "3.4", "the end. ", "漢", "字。", "ไทย", "كَتَبَ", "é", "\u0301", "½", "\u00ad"),
]
DOCUMENTS = st.lists(
    st.lists(st.sampled_from([piece.encode() for piece in PIECES] + [b"\xff", b"\xe6\xbc"]), max_size=14).map(b"".join),
    max_size=6,
)


def left_of(texts, result):
    """Return the bytes of the kept documents, without what is cut."""
    edits = result._edits()
    batch = pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.binary())})
    cut = with_cuts(batch, edits.cuts, "text", None)["text"].to_pylist()
    return [text for text, kept in zip(cut, edits.keep.tolist(), strict=True) if kept]


def words_of(texts):
    found = tokenize(as_documents([text.decode("utf-8", "surrogateescape") for text in texts], Recipe()), Recipe())
    return [tuple(found[i].tolist()) for i in range(len(found))]


def rows_of(texts, result):
    """Return the text of each unit."""
    return [texts[row["id"]][row["begin"] : row["end"]] for row in result.units.to_pylist()]


@settings(deadline=None, max_examples=fewer(120))
@given(DOCUMENTS, st.sampled_from(UNITS), st.booleans(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 4]))
def test_nothing_is_lost_and_a_second_run_removes_nothing(texts, unit, inside, min_words, keep_copies, drop_below):
    options = {"unit": Unit(unit, min_words, keep_copies, inside, drop_below)}
    result = nd.dedup({"text": pa.array(texts, pa.binary())}, recipe=Recipe(**options))
    rows, words = result.units.to_pylist(), words_of(rows_of(texts, result))
    number = {(row["id"], row["unit"]): i for i, row in enumerate(rows)}
    documents = result.documents.to_pylist()
    for row, own in zip(rows, words, strict=True):
        if row["source_id"] is not None:
            source = number[row["source_id"], row["source_unit"]]
            assert words[source] == own and len(own) >= min_words
            assert rows[source]["kept"] and documents[row["source_id"]]["kept"]
            assert inside or row["source_id"] != row["id"]
        else:
            assert row["kept"] or row["reason"] == "dropped"
        if row["reason"] == "dropped":
            assert documents[row["id"]]["words_left"] < drop_below and not documents[row["id"]]["kept"]
        assert row["kept"] <= documents[row["id"]]["kept"]
    left = left_of(texts, result)
    again = nd.dedup({"text": pa.array(left, pa.binary())}, recipe=Recipe(**options))
    assert again.report["counts"]["units_cut"] == again.report["counts"]["removed"] == 0
    assert left_of(left, again) == left
    if not Unit(unit).overlaps:
        kept = [own for row, own in zip(rows, words, strict=True) if row["kept"]]
        assert words_of(rows_of(left, again)) == kept


SENTENCES = ["a b. ", "A b! ", "C. ", "c. ", "d e! ", "A b. ", "B c! ", "x y. ", "Y! ", "a. ", "! ", "e f g. ", "3. "]
"""Sentences that grow together with the next one if it begins with a small letter, so that copies stay."""


def dated_documents(seed):
    """Draw documents of some sentences, with a date each: evenly, as long documents with few copies matter."""
    draw = random.Random(seed)
    return [
        ("".join(draw.choices(SENTENCES, k=draw.randint(1, 9))), draw.randrange(3)) for _ in range(draw.randint(2, 6))
    ]


DATED = st.integers(0, 2**32).map(dated_documents)
ONE_COPY = st.builds(Unit, st.sampled_from(["sentence", "sentence", "sentences:2"]), st.integers(1, 2), st.just(1))
UNIT = st.builds(
    lambda one, copies, inside, drop: Unit(one.unit, one.min_words, copies, inside, drop),
    *(ONE_COPY, st.integers(1, 3), st.booleans(), st.sampled_from([1, 4])),
)


def removes_nothing_again(rows, recipe):
    """Deduplicate documents with dates, and then what is left of them; return the recipe's first result."""

    def run(texts, dates):
        return nd.dedup({"text": pa.array(texts, pa.binary()), "n": dates}, text_columns="text", recipe=recipe)

    texts, dates = [text.encode() for text, _ in rows], pa.array([date for _, date in rows])
    result = run(texts, dates)
    left = left_of(texts, result)
    again = run(left, dates.filter(result.documents["kept"].combine_chunks()))
    assert again.report["counts"]["units_cut"] == again.report["counts"]["removed"] == 0
    return result


@settings(deadline=None, max_examples=fewer(500))
@given(DATED, UNIT, st.sampled_from(["longest", "longest", "n,longest", "n:desc", "first"]))
def test_a_second_run_removes_nothing_by_any_rule(rows, unit, keep):
    result = removes_nothing_again(rows, Recipe(unit=unit, keep=keep))
    units = result.units.to_pylist()
    kept = {(row["id"], row["unit"]) for row in units if row["kept"]}
    assert all(
        row["kept"] or row["reason"] == "dropped" or (row["source_id"], row["source_unit"]) in kept for row in units
    )


@settings(deadline=None, max_examples=fewer(300))
@given(DATED, UNIT, st.sampled_from(["longest", "n,longest", "n", "first"]), st.data())
def test_a_second_run_removes_nothing_below_threshold_1(rows, unit, keep, data):
    """Not promised of a containment, and of several copies if lengths decide: copies and sources change places."""
    if "longest" in keep:
        unit = Unit(unit.unit, unit.min_words, 1, unit.inside, unit.drop_below)
    method = data.draw(st.sampled_from(["exact", "minhash", "bottomk", "modm", "simhash"]))
    own = {} if method == "simhash" else {"threshold": data.draw(st.sampled_from([0.3, 0.6]))}
    cluster = data.draw(st.sampled_from(["greedy", "components"]))
    removes_nothing_again(
        rows, Recipe(unit=unit, keep=keep, method=method, cluster=cluster, shingles=Shingles(1), **own)
    )


def test_a_sentence_that_cannot_be_cut_is_no_source_for_a_shorter_document():
    """The second sentence of the second document has to stay; without its first one, the first document is shorter."""
    texts = ["Common words are here. Menu! End.", "He left. Menu! and went.", f"{'More ' * 9}. Common words are here."]
    result = removes_nothing_again([(text, 0) for text in texts], Recipe(unit="sentence", keep="longest"))
    assert result.units["reason"].to_pylist() == ["identical", None, None, None, "seam", None, None, None]


def test_a_copy_that_both_its_neighbours_hold_stays():
    texts = ["C. z w k. Y! d e! a. ", "Y! C. ", "Q u! d e! Y! d e! d e! d e! "]
    removes_nothing_again([(text, 0) for text in texts], Recipe(unit=Unit("sentence", 1, 1, True), keep="longest"))


@settings(deadline=None, max_examples=fewer(40))
@given(DOCUMENTS, st.sampled_from(["paragraph", "line", "sentence"]), st.integers(1, 3), st.booleans())
def test_equal_units_are_those_of_a_set_of_strings(texts, unit, keep_copies, inside):
    result = nd.dedup({"text": pa.array(texts, pa.binary())}, recipe=Recipe(unit=Unit(unit, 1, keep_copies, inside)))
    rows, owners = result.units.to_pylist(), {}
    for i, (row, own) in enumerate(zip(rows, words_of(rows_of(texts, result)), strict=True)):
        if own:
            holders = owners.setdefault(own, {})
            holders.setdefault(i if inside else row["id"], len(holders))
    for i, (row, own) in enumerate(zip(rows, words_of(rows_of(texts, result)), strict=True)):
        if own:
            place = owners[own][i if inside else row["id"]]
            assert (row["source_id"] is None) == (place == 0)
            if row["reason"] not in ("seam", "identical", "same_words"):
                assert (row["reason"] == "copy") == (0 < place < keep_copies)
            elif row["reason"] != "seam" and result.documents["kept"][row["id"]].as_py():
                assert place >= keep_copies


def test_equal_units_of_several_batches_are_those_of_one():
    texts = [f"one line {i % 3}\nanother {i}\nthe same\nthe same".encode() for i in range(40)]
    recipe = Recipe(unit=Unit("line", 1))
    several, one = (
        nd.dedup({"text": pa.array(texts)}, recipe=recipe, engine=nd.Engine(backend="cpu", batch_bytes=size))
        for size in (300, None)
    )
    assert several.units.equals(one.units) and several.documents.equals(one.documents)
    assert left_of(texts, several) == left_of(texts, one) != texts


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=7).map(" ".join)
SIMILAR = st.lists(st.lists(WORDS, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=5)
METHODS = ["exact", "containment", "minhash", "bottomk", "modm", "simhash"]


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=8)
@given(SIMILAR)
def test_near_units_are_the_near_rows_of_a_file_of_units(method, texts):
    own = {"method": method, "max_partners": None}
    if method != "simhash":
        own["threshold"] = 0.5
    recipe = Recipe(shingles=Shingles(2), unit=Unit("line", inside=True), **own)
    lines = [line for text in texts for line in text.split("\n")]
    units = nd.dedup({"text": texts}, recipe=recipe)
    rows = nd.dedup({"text": lines}, recipe=recipe.with_(unit="document"))
    table = units.units.to_pylist()
    number = {(row["id"], row["unit"]): i for i, row in enumerate(table)}
    of_units = [None if row["source_id"] is None else number[row["source_id"], row["source_unit"]] for row in table]
    assert of_units == rows.documents["duplicate_of"].to_pylist()
    measure = recipe.method.measure.name
    assert units.units[measure].to_pylist() == rows.documents[measure].to_pylist()
    pairs = [tuple(number[pair[f"id_{x}"], pair[f"unit_{x}"]] for x in "ab") for pair in units.pairs.to_pylist()]
    near = rows.pairs.to_pylist()
    assert pairs == [(pair["id_a"], pair["id_b"]) for pair in near if pair["kind"] == "near"]


@pytest.mark.parametrize("method", ["exact", "minhash"])
@settings(deadline=None, max_examples=15)
@given(SIMILAR)
def test_units_of_one_document_are_not_compared(method, texts):
    recipe = Recipe(shingles=Shingles(2), method=method, threshold=0.5, unit="line", max_partners=None)
    lines = [line for text in texts for line in text.split("\n")]
    owner = np.repeat(np.arange(len(texts)), [text.count("\n") + 1 for text in texts])
    rows = nd.dedup({"text": lines}, recipe=recipe.with_(unit="document"))
    first = {line: lines.index(line) for line in lines}
    near = {tuple(pair[name] for name in ("id_a", "id_b")) for pair in rows.pairs.to_pylist() if pair["kind"] == "near"}
    kept = set()
    for i, line in enumerate(lines):
        alike = any((other, i) in near and owner[other] != owner[i] for other in kept)
        if first[line] == i and not alike:
            kept.add(i)
    expected = [i in kept or (first[line] in kept and owner[first[line]] == owner[i]) for i, line in enumerate(lines)]
    found = nd.dedup({"text": texts}, recipe=recipe)
    assert found.units["source_id"].is_null().to_pylist() == expected
    assert len(found.pairs) == len(
        {(pair["id_a"], pair["begin_a"], pair["id_b"], pair["begin_b"]) for pair in found.pairs.to_pylist()}
    )
    assert all(pair["id_a"] != pair["id_b"] for pair in found.pairs.to_pylist())
    again = nd.dedup(
        {"text": [text.decode() for text in left_of([text.encode() for text in texts], found)]}, recipe=recipe
    )
    assert again.report["counts"]["units_cut"] == again.report["counts"]["removed"] == 0


def test_a_source_is_never_dropped():
    texts = [
        "The long story ends.\n\nIt is new.",
        "It is new.\n\nAlone here.\n\nThe long story ends.",
        "Alone here.\n\nIt is new.",
    ]
    result = dedup(texts=texts, unit="paragraph", drop_below=3)
    assert result.documents["kept"].to_pylist() == [True, True, False]
    assert result.documents["words_left"].to_pylist() == [7, 2, 0]
    assert result.report["counts"]["short_sources"] == 1
    assert result.documents["duplicate_of"].to_pylist() == [None, None, 1]
    result = dedup(texts=texts[:2], unit="paragraph", drop_below=3)
    assert result.documents["kept"].to_pylist() == [True, False]
    assert result.units["reason"].to_pylist() == [None, None, "identical", "dropped", "identical"]
    result = dedup(texts=texts[:2], unit="paragraph", drop_below=2)  # two words are left, which is enough
    assert result.documents["kept"].to_pylist() == [True, True]


def test_a_sentence_stays_if_its_neighbours_would_become_one_without_it():
    texts = ["Common words here!", "He left. Common words here! and went."]
    assert dedup(texts=texts, unit="sentence").units["reason"].to_pylist() == [None, None, "seam", None]


def test_a_higher_threshold_is_decided_from_the_pairs():
    texts = ["a b c d\n\na b c d e", "a b c d f\n\na b c d"]
    recipe = Recipe(unit="paragraph", threshold=0.4, shingles=Shingles(2), max_partners=None)
    result = nd.dedup({"text": texts}, recipe=recipe)
    usual = nd.dedup({"text": texts}, recipe=Recipe(unit="paragraph", threshold=0.1))
    cases = [(result, recipe, 0.6), (result, recipe, 0.75), (usual, usual.recipe, 1.0)]
    for first, made, threshold in cases:
        found, again = first.at(threshold), nd.dedup({"text": texts}, recipe=made.with_(threshold=threshold))
        assert found.units.equals(again.units)
        assert found.documents.equals(again.documents)


@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_a_reference_set_is_left_untouched(tmp_path, threshold):
    texts = ["We agree to the terms.\nIt is new.", "It is new.\nBut this is not."]
    known = {"text": ["Nothing to see.\nwe agree to the terms", "But this is not."], "id": ["x", "y"]}
    recipe = Recipe(unit="line", threshold=threshold)
    options = {"against": {"text": known["text"]}, "recipe": recipe, "output": tmp_path / "out"}
    result = nd.dedup({"text": texts}, **options)
    table = result.units.select(["id", "unit", "kept", "source_id", "source_unit", "in_reference"]).to_pylist()
    assert [tuple(row.values()) for row in table] == [
        (0, 0, False, 0, 1, True),
        (0, 1, True, None, None, False),
        (1, 0, False, 0, 1, False),
        (1, 1, False, 1, 0, True),
    ]
    assert result.documents["in_reference"].to_pylist() == [False, False]
    assert result.documents["duplicate_of"].to_pylist() == [None, 0]
    assert result.report["counts"]["reference_documents"] == 2
    assert left_of([text.encode() for text in texts], result) == [b"It is new."]
    only = nd.dedup({"text": texts}, **options | {"recipe": recipe.with_(only_against=True), "output": None})
    assert only.units["kept"].to_pylist() == [False, True, True, False]
    assert nd.dedup({"text": []}, against={"text": ["a\nb"]}, recipe=recipe).units.num_rows == 0
    assert nd.dedup({"text": texts}, against={"text": []}, recipe=recipe).units["kept"].to_pylist() == [
        True,
        True,
        False,
        True,
    ]


def test_comments_and_strings_of_several_lines_stay_whole():
    head = "/* Licence:\n   you may copy it.\n */\n"
    texts = [f"{head}int one = '/';\nint two; // 2\n", f"{head}int two; // zwei\nint three;\n"]
    pages = ["<p># 1</p>\n<?php\n# 2\n$a = 1;\n", "<p># 1</p>\n<?php\n$a = 1; # 3\n$b = 2;\n"]
    whole = ["int c; /* begins\nhere */\nint d;\n", "int c; /* begins\nand here */\n"]  # lines that end in a comment
    whole += ["<b>b <?php $c = 1;\n$d = 2;\n", "<b>b <?php $c = 1;\n$e = 3;\n"]  # and that begin outside of code
    documents = {
        "id": ["a.c", "b.c", "a.php", "b.php", "c.c", "d.c", "c.php", "d.php"],
        "text": texts + pages + whole,
    }
    recipe = Recipe(unit="line", shingles=Shingles(tokens="code"))
    result = nd.dedup(documents, id_column="id", recipe=recipe)
    left = left_of([text.encode() for text in documents["text"]], result)
    expected = [texts[0], f"{head}int three;\n", pages[0], "<p># 1</p>\n<?php\n$b = 2;\n", *whole]
    assert left == [text.encode() for text in expected]
    again = nd.dedup({"id": documents["id"], "text": left}, id_column="id", recipe=recipe)
    assert again.report["counts"]["units_cut"] == 0
