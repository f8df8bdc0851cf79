"""How a removed document is like the kept one: the same text, the same words written differently, or other words."""

import json
import random
import unicodedata

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import pairs_of
from page_of import page_of

from neardup_gpu import Index, Recipe, Shingles, SimHash, Workers, Writing, cli, compare, dedup
from neardup_gpu.errors import InputError
from neardup_gpu.jobs.comparison import render as render_comparison
from neardup_gpu.report import facts
from neardup_gpu.results.explanation import render
from neardup_gpu.stages.decisions import KINDS

ISSUE = ["C++ is faster", "C# is faster", "-5", "+5", "C# is faster"]
EMOJI = ["👍👍👍"] * 5
BLANK = ["", "", " ", " \n", "\u3000", None]
METHODS = ["exact", "containment", "minhash", "bottomk", "modm", "simhash", SimHash(bits=128)]
TEXTS = {"text": pa.array([*ISSUE, *EMOJI, *BLANK, "!?", "one two three four five six"], pa.string())}


def removed(result):
    """(id, duplicate_of, kind) of each removed document."""
    table = result.removed.select(["id", "duplicate_of", "kind"])
    return [tuple(row.values()) for row in table.to_pylist()]


EXPECTED = [
    (1, 0, "same_words"),
    (3, 2, "same_words"),
    (4, 0, "same_words"),
    *((row, 5, "identical") for row in range(6, 10)),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_same_words_are_told_from_identical_texts(method):
    result = dedup(TEXTS, method=method)
    assert removed(result) == EXPECTED
    counts = result.report["counts"]
    assert [counts[f"removed_{kind}"] for kind in KINDS] == [4, 3, 0]
    assert counts["removed"] == 7 and "removed_exact" not in counts
    assert result.documents["kind"].null_count == result.report["counts"]["kept"]
    pairs = {(row["id_a"], row["id_b"]): row["kind"] for row in result.pairs.to_pylist()}
    assert pairs == {(kept, gone): kind for gone, kept, kind in EXPECTED}


def test_blank_documents_are_kept_and_counted():
    result = dedup({"text": BLANK}, writing=Writing(check=0))
    assert len(result.kept) == len(BLANK)
    counts = result.report["counts"]
    assert (counts["empty"], counts["null_text"]) == (len(BLANK), 1)


def test_a_kind_is_that_of_the_document_that_is_named():
    """The third document is identical to the second, which is removed for the first."""
    texts = ["a b c d e f g h", "a b c d e f g x", "a b c d e f g x", "A b c d e f g h", "a b c d e f g h"]
    result = dedup({"text": texts}, threshold=0.4)
    assert removed(result) == [(1, 0, "near"), (2, 0, "near"), (3, 0, "same_words"), (4, 0, "identical")]
    pairs = {(row["id_a"], row["id_b"]): row["kind"] for row in result.pairs.to_pylist()}
    assert pairs == {(0, 1): "near", (1, 2): "identical", (0, 3): "same_words", (0, 4): "identical"}
    higher = result.at(0.9)
    assert removed(higher) == [(2, 1, "identical"), (3, 0, "same_words"), (4, 0, "identical")]
    assert [higher.report["counts"][f"removed_{kind}"] for kind in KINDS] == [2, 1, 0]


def words_of(text):
    """The words of a text of ASCII letters and signs, by Python alone."""
    return tuple("".join(c if c.isalnum() else " " for c in text.lower()).split())


@pytest.mark.parametrize("keep", ["first", "longest"])
@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_of_random_texts(seed, keep):
    """Short texts of few letters and signs, many of them equal in words or altogether."""
    draw = random.Random(seed)
    texts = ["".join(draw.choices("aB .!\n-", k=draw.randrange(7))) for _ in range(400)]
    result = dedup({"text": texts}, recipe=Recipe(shingles=Shingles(1), keep=keep, threshold=1.0))
    for row in result.documents.to_pylist():
        text = texts[row["id"]]
        if row["kept"]:
            continue
        other = texts[row["duplicate_of"]]
        kind = "identical" if text == other else "same_words" if words_of(text) == words_of(other) else "near"
        assert row["kind"] == kind and text.strip()
    without = {texts[row["id"]] for row in result.kept.to_pylist() if not words_of(texts[row["id"]])}
    kept = [texts[id] for id in result.kept["id"].to_pylist()]
    assert all(kept.count(text) == 1 for text in without if text.strip())
    assert sum(not text.strip() for text in kept) == sum(not text.strip() for text in texts)


def test_every_byte_counts():
    long = "word " * 100
    others = [long + "!", long[:-1], "!" + long, long.replace("word", "Word", 1), long.replace("d w", "d.w", 1)]
    result = dedup({"text": [long, *others, long]})
    assert [kind for *_, kind in removed(result)] == ["same_words"] * 5 + ["identical"]


def test_canonically_equivalent_texts_are_not_identical():
    composed = "café à la carte"
    result = dedup({"text": [composed, unicodedata.normalize("NFD", composed), composed]})
    assert [kind for *_, kind in removed(result)] == ["same_words", "identical"]


@pytest.mark.parametrize("only_against", [False, True])
@pytest.mark.parametrize("method", ["exact", "simhash"])
def test_a_reference_set(method, only_against):
    known = {"text": ["👍👍👍", "c is faster", "", "?"]}
    texts, recipe = [*ISSUE[:2], *EMOJI[:2], "!!", "!!", *BLANK[:3]], Recipe(method=method, only_against=only_against)
    result = dedup({"text": texts}, against=known, recipe=recipe)
    expected = [(0, 1, "same_words"), (1, 1, "same_words"), (2, 0, "identical"), (3, 0, "identical")]
    expected += [] if only_against else [(5, 4, "identical")]
    assert removed(result) == expected
    assert result.documents["near_reference"].to_pylist() == [1, 1, 0, 0, None, None, None, None, None]
    assert result.documents["reference_resemblance"].to_pylist()[:4] == [1.0] * 4
    assert result.report["counts"]["near_reference"] == 4


@pytest.mark.parametrize(("method", "against"), pairs_of(METHODS, [True, False]))
def test_tasks_decide_the_same(method, against, tmp_path):
    draw = random.Random(3)
    texts = [*TEXTS["text"].to_pylist(), *("".join(draw.choices("ab .!", k=5)) for _ in range(200))]
    texts += ["a b c d e f g h i j k", "a b c d e f g h i j k!", "a b c d e f g h i j k l"]
    draw.shuffle(texts)
    table = pa.table({"id": list(range(len(texts))), "text": texts})
    for part, name in enumerate(("one", "two", "three")):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(table.slice(part * 75, 75), tmp_path / "in" / f"{name}.parquet")
    given = {"against": pa.table({"text": texts[:30]})} if against else {}
    recipe = Recipe(method=method, shingles=Shingles(2))
    expected = flat(dedup, tmp_path / "in", recipe=recipe, check=0, **given)
    settings = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=1500, partitions=3)
    report = flat(
        dedup, tmp_path / "in", recipe=recipe, check=0, output=tmp_path / "out", workers=settings, **given
    ).report
    assert report["tasks"]["slices"] > 2
    for name in ("documents", "pairs"):
        written = pq.read_table(tmp_path / "out" / name)
        assert written.schema == getattr(expected, name).schema
        assert written.to_pylist() == getattr(expected, name).to_pylist()
    assert report["counts"]["removed_identical"] > 5 and report["counts"]["removed_same_words"] > 20
    counts = {name: value for name, value in report["counts"].items() if name not in ("comparisons", "candidate_pairs")}
    assert counts.items() <= expected.report["counts"].items()


def test_the_summary_and_the_page():
    result = dedup(TEXTS)
    assert ("removed", "7 (38.9%): 4 identical, 3 same words, 0 near") in facts(result.report)
    page = page_of(result).html
    assert "4 are identical to the kept document, 3 have the same words, and 0 are nearly the same." in page


def test_the_command_line(tmp_path, capsys):
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS["text"].to_pylist()))
    assert cli.main(["dedup", str(file), "--output", str(tmp_path / "out")]) == 0
    assert "4 identical, 3 same words, 0 near" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "out" / "documents.parquet")
    assert table.filter(pc.equal(table["kind"], "identical"))["id"].to_pylist() == [6, 7, 8, 9]


@pytest.mark.parametrize("method", ["exact", "containment", "simhash"])
def test_an_explanation_says_it(method):
    result = dedup(TEXTS, method=method)
    assert [result.explain(id).kind for id in (0, 4, 9)] == [None, "same_words", "identical"]
    same_words, identical = (render(result.explain(id)).plain.splitlines() for id in (4, 9))
    assert "text         the same words, with other punctuation, spaces or letter case" in same_words
    assert "text         identical to that of the kept one" in identical
    assert not any("shingle" in line for line in identical)


def test_an_explanation_sees_that_a_text_has_changed(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "?!"}\n{"text": "?!"}\n')
    result = dedup(file)
    file.write_text('{"text": "?!"}\n{"text": "!?"}\n')
    with pytest.raises(InputError, match="has changed"):
        result.explain(1)


def test_a_comparison_says_it():
    texts = [("a b", "a b"), ("a b", "A, b"), ("a b", "b a"), ("?", "?"), ("?", "!")]
    compared = [compare(a, b) for a, b in texts]
    assert [(found.identical, found.same_words) for found in compared] == [
        (True, True),
        (False, True),
        (False, False),
        (True, True),
        (False, False),
    ]
    lines = [render_comparison(found).plain.splitlines() for found in compared]
    assert "texts        identical" in lines[0] and "texts        identical" in lines[3]
    assert "texts        the same words, with other punctuation, spaces or letter case" in lines[1]
    assert not any(line.startswith("texts") for line in lines[2])


@pytest.mark.parametrize("method", ["exact", "minhash", "simhash"])
def test_an_index(method, tmp_path):
    """An index keeps no fingerprints of texts: all documents of the same words count as that, and none as identical."""
    with Index.create(tmp_path / "index", method=method) as index:
        texts = TEXTS["text"].to_pylist()
        for first in range(0, len(texts), 4):
            some = texts[first : first + 4]
            index.add({"id": list(range(first, first + len(some))), "text": some}, id_column="id")
        result = index.decide()
    assert removed(result) == [(gone, kept, "same_words") for gone, kept, _ in EXPECTED]
    assert [result.report["counts"][f"removed_{kind}"] for kind in KINDS] == [0, 7, 0]
