"""Explanations of results in memory, and of outputs that were made from what lay in memory."""

import pyarrow as pa
import pytest

from neardup_gpu import InputError, dedup
from neardup_gpu.explanation import explain

TEXT = " ".join(f"word{i}" for i in range(40))
TABLE = pa.table({"id": ["first", "near", "other"], "text": [TEXT, f"{TEXT} amended", "something else entirely"]})


def check_near(found):
    assert (found.kept, found.duplicate_of) == (False, "first")
    assert found.resemblance == found.shared / found.united == 36 / 37
    assert ("added", "amended") in [(op, words.strip()) for op, words in found.words]


def test_a_result_in_memory_explains_itself():
    result = dedup(TABLE, id_column="id", check=0)
    check_near(result.explain("near"))
    kept = result.explain("first")
    assert (kept.kept, kept.members, kept.num_members) == (True, ["near"], 1)
    with pytest.raises(InputError, match="this result: no document 'nobody'; it has"):
        result.explain("nobody")


def test_against_a_reference_set():
    reference = TABLE.slice(0, 1).set_column(0, "id", pa.array(["known"]))
    found = dedup(TABLE.slice(1), id_column="id", against=reference, check=0).explain("near")
    assert (found.duplicate_of, found.in_reference) == ("known", True)
    assert found.resemblance == found.shared / found.united == 36 / 37


def test_a_result_of_files_explains_itself(tmp_path):
    for row in TABLE.to_pylist():
        (tmp_path / f"{row['id']}.txt").write_text(row["text"])
    assert dedup(str(tmp_path), check=0).explain("near.txt").duplicate_of == "first.txt"


def test_a_stream_cannot_be_read_again():
    result = dedup(TABLE.to_reader(), id_column="id", check=0)
    with pytest.raises(InputError, match="a stream, which cannot be read again"):
        result.explain("near")


def test_an_output_of_a_table_is_explained_when_the_table_is_passed(tmp_path):
    dedup(TABLE, id_column="id", output=tmp_path / "out", check=0)
    check_near(explain(tmp_path / "out", "near", source=TABLE))
    with pytest.raises(InputError, match=r"given in memory; pass them again: explain\(folder, id, source=table\)"):
        explain(tmp_path / "out", "near")
    changed = TABLE.set_column(1, "text", pa.array([TEXT, f"{TEXT} another ending", "x"]))
    with pytest.raises(InputError, match="has changed since"):
        explain(tmp_path / "out", "near", source=changed)
