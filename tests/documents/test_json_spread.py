"""JSON whose objects run over several lines: arrays, and objects one after another."""

from __future__ import annotations

import gzip
import io
import json
import random

import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu.documents.json_spread import Lines, as_array

ROWS = [{"id": 0, "text": "to be"}, {"id": 1, "text": 'whether "it"\n is'}, {"id": 2, "text": "to be"}]
FORMS = {
    "array": json.dumps(ROWS),
    "indented array": json.dumps(ROWS, indent=2),
    "array with lines": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "array after a mark": "\ufeff\n " + json.dumps(ROWS, indent="\t"),
    "objects over lines": "\n".join(json.dumps(row, indent=2) for row in ROWS),
}


def ids_of(source, **options):
    documents = flat(nd.open_documents, source, id_column="id", **options)
    return [id for batch in documents.batches() for id in batch.ids.to_pylist()], documents


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("name", ["d.json", "d.jsonl", "d.json.gz"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_its_objects(form, name, on_error, tmp_path):
    data = FORMS[form].encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found, documents = ids_of(tmp_path / name, on_error=on_error)
    assert found == [0, 1, 2] and documents.places()["row"].to_pylist() == [1, 2, 3]
    assert on_error == "stop" or documents.skipped.num_rows == 0
    (batch,) = documents.batches()
    assert batch.text[1].tobytes().decode() == ROWS[1]["text"]


@pytest.mark.parametrize("form", FORMS)
def test_kept_rows_are_an_array_if_the_file_was_one(form, tmp_path):
    (tmp_path / "d.json").write_text(FORMS[form])
    documents = nd.open_documents(tmp_path / "d.json", id_column="id")
    list(documents.batches())
    for number, keep in enumerate([[True, True, False], [False, True, False], [False] * 3]):
        documents.write_kept(tmp_path / str(number), keep)
        text = (tmp_path / str(number) / "d.json").read_text()
        expected = [row for row, kept in zip(ROWS, keep, strict=True) if kept]
        found = json.loads(text) if "array" in form else list(map(json.loads, text.splitlines()))
        assert found == expected
        assert ids_of(tmp_path / str(number))[0] == [row["id"] for row in expected] if expected else True


def test_one_bad_object_of_an_array_is_one_row(tmp_path):
    objects = [
        json.dumps(ROWS[0], indent=1),
        '{"id": 1, "text": 3}',
        "5",
        '{"id": oops}',
        json.dumps(ROWS[2], indent=1),
    ]
    (tmp_path / "d.json").write_text("[\n" + ",\n".join(objects) + "\n]")
    found, documents = ids_of(tmp_path / "d.json", on_error="skip")
    assert found == [0, 2] and documents.skipped["row"].to_pylist() == [2, 3, 4]
    with pytest.raises(nd.errors.InputError, match=r"line 3: not a JSON object"):
        ids_of(tmp_path / "d.json")


@pytest.mark.parametrize("form", ["array", "indented array", "objects over lines"])
def test_a_file_that_is_cut_off_is_said_to_be(form, tmp_path):
    text = FORMS[form]
    for cut in range(40, len(text.rstrip()) - 1):
        (tmp_path / "d.json").write_text(text[:cut])
        depth = text[:cut].count("{") - text[:cut].count("}")
        if form == "objects over lines" and not depth:
            continue  # what is there is whole
        with pytest.raises(nd.errors.InputError, match=r"is missing|not valid JSON"):
            ids_of(tmp_path / "d.json")
        found, documents = ids_of(tmp_path / "d.json", on_error="skip")
        assert found == [0, 1, 2][: text[:cut].count("}")] and documents.skipped.num_rows == 1


@pytest.mark.parametrize("text", ['[{"id": 1}]\n{"id": 2, "text": "b"}\n', '["a"]\n{"id": 2, "text": "b"}\n'])
def test_a_line_that_is_an_array_is_a_bad_line(text, tmp_path):
    (tmp_path / "d.jsonl").write_text(text)
    found, documents = ids_of(tmp_path / "d.jsonl", on_error="skip")
    assert found == [2] and documents.skipped["row"].to_pylist() == [1]


def test_what_begins_as_an_array_of_other_values_is_refused(tmp_path):
    (tmp_path / "d.json").write_text("[1, 2]")
    with pytest.raises(nd.errors.InputError, match="an array of a whole file has to hold objects"):
        ids_of(tmp_path / "d.json")


def test_an_array_is_read_by_one_task(tmp_path):
    (tmp_path / "d.json").write_text(FORMS["indented array"])
    assert len(nd.open_documents(tmp_path / "d.json")._readers[0].parts(10)) == 1


def values(depth=0):
    kind = random.randrange(7 if depth < 3 else 4)
    if kind == 0:
        return random.choice(['a"b', "\\", '\\"', '\\\\"', "[{,}]", '"', "", "\n", "é", "\t, ", "\\" * 30])
    if kind < 4:
        return [random.random(), None, True][kind - 1]
    some = range(random.randrange(4))
    if kind < 6:
        return {random.choice(["a", 'b"', "[", "{", "\\"]): values(depth + 1) for _ in some}
    return [values(depth + 1) for _ in some]


@pytest.mark.parametrize("seed", range(300))
def test_lines_are_the_objects_however_the_file_is_cut(seed):
    random.seed(seed)
    rows = [{f"k{number}": values() for number in range(random.randrange(1, 4))} for _ in range(random.randrange(1, 6))]
    text = json.dumps(rows, indent=random.choice([None, 0, 2, "\t"]), ensure_ascii=seed % 2 == 0)
    if seed % 3 == 0:
        text = "\n".join(json.dumps(row, indent=2) for row in rows)
    stream, size = Lines(io.BytesIO(text.encode())), random.choice([1, 2, 3, 7, 50, 10_000])
    found = stream.read(max(64, size))
    while part := stream.read(size):
        found += part
    assert stream.is_array == (seed % 3 > 0) and stream.is_spread
    assert [json.loads(line) for line in found.decode().splitlines() if line.strip()] == rows
    assert json.loads(b"".join(as_array([found]))) == rows
