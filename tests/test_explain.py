"""Explanations of results in memory, and of outputs that were made from what lay in memory."""

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from hypothesis import given, settings, strategies as st
from page_of import page_of

from neardup_gpu import Recipe, Shingles, Writing, dedup
from neardup_gpu.errors import InputError
from neardup_gpu.results.explanation import _place, explain, render

TEXT = " ".join(f"word{i}" for i in range(40))
TABLE = pa.table({"id": ["first", "near", "other"], "text": [TEXT, f"{TEXT} amended", "something else entirely"]})


def check_near(found):
    assert (found.kept, found.duplicate_of) == (False, "first")
    assert found.resemblance == found.shared / found.united == 36 / 37
    assert ("added", "amended") in [(op, words.strip()) for op, words in found.words]


def test_a_result_in_memory_explains_itself():
    result = dedup(TABLE, id_column="id", writing=Writing(check=0))
    check_near(result.explain("near"))
    kept = result.explain("first")
    assert (kept.kept, kept.members, kept.num_members) == (True, ["near"], 1)
    with pytest.raises(InputError, match="this result: no document 'nobody'; it has"):
        result.explain("nobody")


def test_against_a_reference_set():
    reference = TABLE.slice(0, 1).set_column(0, "id", pa.array(["known"]))
    found = dedup(TABLE.slice(1), id_column="id", against=reference, writing=Writing(check=0)).explain("near")
    assert (found.duplicate_of, found.in_reference) == ("known", True)
    assert found.resemblance == found.shared / found.united == 36 / 37


def test_numbers_are_text_beside_ids_of_a_reference_set_that_are_text():
    numbered = TABLE.set_column(0, "id", pa.array([7, 8, 9]))
    result = dedup(numbered, id_column="id", against=TABLE.slice(0, 1), writing=Writing(check=0))
    assert result.explain("8").resemblance == 36 / 37
    assert "Texts are not shown" not in page_of(result).html


def test_a_result_of_files_explains_itself(tmp_path):
    for row in TABLE.to_pylist():
        (tmp_path / f"{row['id']}.txt").write_text(row["text"])
    assert dedup(str(tmp_path), writing=Writing(check=0)).explain("near.txt").duplicate_of == "first.txt"


def test_a_stream_cannot_be_read_again():
    result = dedup(TABLE.to_reader(), id_column="id", writing=Writing(check=0))
    with pytest.raises(InputError, match="a stream, which cannot be read again"):
        result.explain("near")


def test_an_output_of_a_table_is_explained_when_the_table_is_passed(tmp_path):
    dedup(TABLE, id_column="id", output=tmp_path / "out", writing=Writing(check=0))
    check_near(explain(tmp_path / "out", "near", source=TABLE))
    with pytest.raises(InputError, match=r"given in memory; pass them again: explain\(folder, id, source=table\)"):
        explain(tmp_path / "out", "near")
    changed = TABLE.set_column(1, "text", pa.array([TEXT, f"{TEXT} another ending", "x"]))
    with pytest.raises(InputError, match="has changed since"):
        explain(tmp_path / "out", "near", source=changed)


WORDS = TEXT.split() + [f"word{i}" for i in range(40, 100)]
PART = " ".join([*WORDS[30:50], "other", *WORDS[51:70]])
EXCERPT = pa.table({"id": ["part", "whole"], "text": [PART, " ".join(WORDS)]})


class TestContainment:
    """Where the text lies in its container."""

    def test_the_words_of_the_container(self):
        result = dedup(EXCERPT, id_column="id", method="containment", threshold=0.8)
        found = result.explain("part")
        assert (found.measure, found.duplicate_of, found.resemblance) == ("containment", "whole", None)
        assert (found.shared, found.size, found.united) == (31, 36, 101)
        assert found.containment == 31 / 36
        assert (found.first_word, found.last_word, found.kept_words) == (31, 70, 100)
        assert found.to_dict()["containment"] == 31 / 36
        said = render(found).plain.splitlines()
        assert said[2] == "containment  0.8611 (31 of its 36 shingles are in the kept one)"
        assert said[3] == "where        words 31 to 70 of the kept one's 100 have all that both have"

    def test_no_place_of_circular_shingles(self):
        """What both have may lie at both ends of the container."""
        options = {"method": "containment", "threshold": 0.5, "shingling": "circular", "shingle_size": 2}
        found = flat(dedup, texts=["a b c d e f g h", "h a"], **options).explain(1)
        assert (found.containment, found.first_word, found.last_word) == (0.5, None, None)

    def test_a_chain(self):
        """The first of a component stands for one that it does not contain: what they share is told, unverified."""
        texts = [" ".join(WORDS[:60]), " ".join(WORDS[50:80]), " ".join(WORDS[54:64])]
        result = dedup(
            {"text": texts},
            recipe=Recipe(shingles=Shingles(1), method="containment", threshold=0.3, cluster="components"),
        )
        assert result.documents["containment"].to_pylist() == [None, 10 / 30, 0.6]
        low = dedup(
            {"text": texts},
            recipe=Recipe(shingles=Shingles(1), method="containment", threshold=0.5, cluster="components"),
        )
        assert low.removed.select(["id", "duplicate_of", "containment"]).to_pylist() == [
            {"id": 1, "duplicate_of": 0, "containment": None},
            {"id": 2, "duplicate_of": 0, "containment": 0.6},
        ]
        found = low.explain(1)
        assert "0.3333 (10 of its 30 shingles are in the kept one), not verified: a chain" in render(found).plain
        assert "1 removed by a chain of pairs, without a containment" in low._repr_html_()

    def test_a_container_that_changed(self, tmp_path):
        dedup(EXCERPT, id_column="id", method="containment", threshold=0.8, output=tmp_path / "out")
        changed = EXCERPT.set_column(1, "text", pa.array([PART, " ".join(WORDS[:60])]))
        with pytest.raises(InputError, match="has changed since"):
            explain(tmp_path / "out", "part", source=changed)

    @settings(deadline=None)
    @given(st.lists(st.integers(0, 6), max_size=25), st.sets(st.integers(0, 6)), st.integers(1, 4))
    def test_the_shortest_stretch(self, shingles, wanted, width):
        """Against all stretches."""
        common = sorted(wanted & set(shingles))
        number = len(shingles) + width - 1
        found = _place(np.array(shingles, np.uint64), np.array(common, np.uint64), number, width)
        stretches = [
            (last - first, first)
            for first in range(len(shingles))
            for last in range(first, len(shingles))
            if set(common) <= set(shingles[first : last + 1])
        ]
        if not common:
            assert found == {}
        else:
            length, first = min(stretches)
            assert found == {"first_word": first + 1, "last_word": first + length + width, "kept_words": number}
