"""The reasons for which a job removed nothing: in memory, as tasks, on the page, on the command line."""

import json
import logging

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from page_of import page_of

import neardup_gpu as nd
from neardup_gpu import Recipe, Shingles, Workers, Writing, cli, compare, dedup
from neardup_gpu.results.nothing_removed import NO_DOCUMENTS, merged, sizes_of


def words(number, start=0):
    return " ".join(f"word{start + place}" for place in range(number))


LONG = [words(800, 1000 * number) for number in range(10)]
ITEMS = [words(25, 1000 * number + 100) for number in range(10)]

CASES = {
    "no words": ({"texts": ["...", "!", ""]}, "have no words"),
    "short": ({"texts": [f"one two {number}" for number in range(20)]}, "shorter than a shingle of 5 words"),
    "fragile": (
        {"texts": [words(48, 1000 * number) for number in range(10)]},
        "at most 48 words, where one changed word leaves a resemblance below 0.8; docs/how_to/choose.md has settings",
    ),
    "sizes": ({"texts": LONG, "against": {"text": ITEMS}}, "medians: 800 words in the input and 25 in the reference"),
    "contained": (
        {"texts": LONG, "against": {"text": ITEMS}, "method": "containment"},
        "try --direction either",
    ),
    "empty reference": ({"texts": LONG, "against": pa.table({"text": pa.array([], pa.string())})}, "set is empty"),
    "URLs": ({"texts": [f"https://example.org/{number}/a/b/c/d/e" for number in range(30)]}, "holds URLs, not texts"),
    "numbers": ({"texts": [str(number) for number in range(30)]}, "holds numbers, not texts"),
    "html": ({"texts": LONG, "html": True}, "have no tags"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_reason(case, caplog, tmp_path):
    """One line in the result, the log and the page; the same of tasks."""
    given, expected = CASES[case]
    with caplog.at_level(logging.WARNING, "neardup_gpu"):
        result = flat(dedup, **given, check=0)
    (line,) = [line for line in result.warnings if expected in line]
    assert [record.getMessage() for record in caplog.records].count(f"nothing was removed: {line}") == 1
    assert result.report["warnings"] == list(result.warnings)
    given = dict(given)
    report = flat(
        dedup,
        **{name: value for name, value in given.items() if name != "method"},
        recipe=Recipe(method=given.get("method", "exact")),
        output=tmp_path / "out",
        check=0,
        workers=Workers(work_dir=tmp_path / "work", number=1),
    ).report
    assert report["warnings"] == list(result.warnings)


def test_the_page_and_the_notebook_show_them():
    result = dedup({"text": ["...", "!"]}, writing=Writing(check=0))
    assert "have no words" in result._repr_html_()
    pytest.importorskip("vl_convert")
    assert "Why nothing was removed" in page_of(result).html


def test_the_command_prints_each_as_a_line(tmp_path, capsys):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"text": f"https://example.org/{number}"}) + "\n" for number in range(30)))
    assert cli.main(["dedup", str(path), "--dry-run"]) == 0
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "holds URLs" in line]
    assert len(lines) == 1


def test_short_texts_alone_are_named_where_something_is_removed(caplog):
    with caplog.at_level(logging.WARNING, "neardup_gpu"):
        result = dedup({"text": ["https://example.org/1"] * 2}, writing=Writing(check=0))
    (line,) = result.warnings
    assert line.endswith("docs/how_to/choose.md has settings for short texts") and not caplog.records
    pytest.importorskip("vl_convert")
    page = page_of(result).html
    assert line in page and ">Warnings<" in page and "Why nothing was removed" not in page


def test_nothing_is_said_of_ordinary_texts():
    assert dedup({"text": LONG}, writing=Writing(check=0)).warnings == ()
    assert dedup({"text": LONG}, against={"text": [words(700, 50_000)]}, writing=Writing(check=0)).warnings == ()


@pytest.mark.parametrize(("size", "threshold", "most"), [(5, 0.8, 48), (1, 0.6, 3), (2, 0.5, 6), (5, 0.9, 98)])
def test_one_changed_word_takes_a_text_of_so_few_words_below_the_threshold(size, threshold, most):
    recipe = Recipe(shingles=Shingles(size), threshold=threshold)
    for number, is_fragile in ((most, True), (most + 1, False)):
        changed = words(number).replace(f"word{number // 2}", "other", 1)
        assert (compare(words(number), changed, shingles=recipe.shingles).resemblance < threshold) == is_fragile
    assert any(f"has at most {most} words" in line for line in dedup({"text": [words(most)]}, recipe=recipe).warnings)


def test_another_threshold_has_its_own():
    texts = [words(60), words(59), words(60, 500)]
    result = dedup({"text": texts}, threshold=0.8, writing=Writing(check=0))
    assert result.warnings == () and result.at(1.0).warnings == ()


def test_sizes_are_counted_alike_in_parts():
    sizes = np.random.default_rng(1).integers(0, 100_000, 5_000)
    assert merged([sizes_of(sizes[:1_000]), sizes_of(sizes[1_000:])]) == sizes_of(sizes)
    assert sizes_of(np.arange(128)) == [[size, 1] for size in range(128)]
    assert all(size <= 2**40 <= size * (1 + 1 / 64) for size, _ in sizes_of(np.array([2**40])))
    assert sizes_of(np.empty(0, np.int64)) == []


@pytest.mark.parametrize("verb", ["contaminated", "substrings", "passages"])
def test_an_input_without_documents_is_told_of(verb, caplog):
    found = getattr(nd, verb)(
        {"text": []}, **({"evals": {"a": {"text": [words(20)]}}} if verb == "contaminated" else {})
    )
    assert found.report["counts"]["documents"] == 0
    assert [each.getMessage() for each in caplog.records] == [NO_DOCUMENTS]
