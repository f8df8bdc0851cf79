"""Types of columns: what is written stays what it was, what decides is compared as what it is, and what nobody asked
for is not in the way."""

import json

import pyarrow as pa
import pytest

from neardup_gpu import dedup
from neardup_gpu.errors import InputError
from neardup_gpu.printable import readable_id

PNG = b"\x89PNG"

# -------------------------------------------------------------------------------------------------------- written rows


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"bytes": PNG, "path": "a"}] * 2),
        pa.array([[PNG]] * 2),
        pa.array([[{"image": PNG}]] * 2),
        pa.array([[PNG]] * 2, pa.list_(pa.dictionary(pa.int32(), pa.binary()))),
    ],
    ids=["struct", "list", "list of structs", "list of dictionaries"],
)
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz"])
def test_bytes_within_others_are_refused_as_json_before_all_work(tmp_path, column, kind):
    table = pa.table({"text": ["one", "two"], "image": column})
    with pytest.raises(InputError, match=r"column 'image' of type .* cannot be written as JSON lines"):
        dedup(table, output=tmp_path / "out", output_format=kind)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_written_as_json_if_they_are_utf8_and_never_replaced(tmp_path, kind):
    table = pa.table({"text": ["one", "two"], "raw": pa.array(["caf\xe9".encode(), None], kind)})
    dedup(table, output=tmp_path / "out", output_format="jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out/kept/part-00000.jsonl").read_text().splitlines()]
    assert lines == [{"text": "one", "raw": "caf\xe9"}, {"text": "two", "raw": None}]
    table = pa.table({"text": ["one", "two"], "raw": pa.array([b"caf\xe9", PNG], kind)})
    with pytest.raises(InputError, match=r"column 'raw' holds bytes that are not UTF-8 \(b'caf\\xe9'\).*write Parquet"):
        dedup(table, output=tmp_path / "bad", output_format="jsonl")
    assert not (tmp_path / "bad").exists()


def test_two_ids_of_bytes_stay_two_in_a_report(tmp_path):
    ids = [b"\x89PNG", b"\x88PNG", b"\x87PNG", b"\x86PNG"]
    table = pa.table({"id": ids, "text": ["one two", "one two", "three", "three"]})
    result = dedup(table, id_column="id", output=tmp_path / "out")
    shown = [group["id"] for group in json.loads((tmp_path / "out/report.json").read_text())["largest_groups"]]
    assert (
        shown == ["\\x89PNG", "\\x87PNG"] == [readable_id(id) for id in result.documents["group"].unique().to_pylist()]
    )


@pytest.mark.parametrize(
    "line", [b'{"text": "caf\xe9"}', b'{"text": "a \\ud800"}', b'{"text": "a", "b": {"c": ["\xff"]}}']
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_json_that_is_not_unicode_becomes_no_other_format(tmp_path, line, on_error):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=r"in.jsonl line 3: holds what is not Unicode"):
        dedup(tmp_path / "in.jsonl", output=tmp_path / "out", output_format="parquet", on_error=on_error)
    dedup(tmp_path / "in.jsonl", output=tmp_path / "out", output_format="jsonl", on_error=on_error)
    assert line in (tmp_path / "out/kept/in.jsonl").read_bytes()


def test_a_text_file_that_is_not_utf8_becomes_no_other_format(tmp_path):
    for name, text in (("a", b"fine"), ("b", b"caf\xe9 noir")):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{name}.txt").write_bytes(text)
    with pytest.raises(InputError, match=r"in/b.txt: is not UTF-8 at byte 4, .* leave output_format out"):
        dedup(tmp_path / "in", output=tmp_path / "out", output_format="jsonl")
    dedup(tmp_path / "in", output=tmp_path / "out")
    assert (tmp_path / "out/kept/b.txt").read_bytes() == b"caf\xe9 noir"


@pytest.mark.parametrize("id", [b"\\ud800", b"\xff"])
def test_an_id_of_json_that_is_not_unicode_is_refused(tmp_path, id):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine", "id": "a"}\n{"text": "b", "id": "' + id + b'"}\n')
    with pytest.raises(InputError, match="line 2: column 'id' is not valid UTF-8; correct the id"):
        dedup(tmp_path / "in.jsonl", id_column="id")
    skipped = dedup(tmp_path / "in.jsonl", id_column="id", on_error="skip").skipped
    assert skipped["row"].to_pylist() == [2]
