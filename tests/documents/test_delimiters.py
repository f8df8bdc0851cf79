"""CSV whose fields are divided by other characters than commas, and CSV without a header."""

from __future__ import annotations

import csv
import io

import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu import cli

ROWS = [
    ["1", "to be, or not; to be | that\tis the question"],
    ["2", 'whether "it" is\nnobler in the mind'],
    ["3", "to be, or not; to be | that\tis the question"],
    ["4", ""],
]


def written(delimiter, header=("id", "text")):
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([header] * bool(header) + ROWS)
    return file.getvalue().encode()


def rows_of(source, **options):
    documents = flat(nd.open_documents, source, **options)
    return [
        [str(id), batch.text[row].tobytes().decode()]
        for batch in documents.batches()
        for row, id in enumerate(batch.ids.to_pylist())
    ]


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.csv.gz"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", ":", "^", "\x01", "\\"])
def test_every_delimiter(name, delimiter, tmp_path):
    path = tmp_path / name
    data = written(delimiter)
    if name.endswith(".gz"):
        import gzip

        data = gzip.compress(data)
    path.write_bytes(data)
    assert rows_of(path, delimiter=delimiter, id_column="id") == ROWS
    if delimiter in ",\t;|":
        assert rows_of(path, delimiter="auto", id_column="id") == ROWS
    if delimiter == "\t":
        assert rows_of(path, delimiter="tab", id_column="id") == ROWS


def test_what_was_found_out_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "d.csv").write_bytes(written(";"))
    assert cli.main(["dedup", str(tmp_path / "d.csv"), "--delimiter", "auto", "--dry-run"]) == 0
    assert "d.csv: fields are divided by a semicolon\n" in capsys.readouterr().err


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_another_delimiter_is_suggested(delimiter, tmp_path, capsys):
    (tmp_path / "d.csv").write_bytes(written(delimiter))
    assert cli.main(["dedup", str(tmp_path / "d.csv"), "--dry-run"]) == 2
    shown = "tab" if delimiter == "\t" else f"'{delimiter}'"
    assert f"give --delimiter {shown}, and if there is only one column" in capsys.readouterr().err


def test_a_column_whose_name_has_a_delimiter_is_read_when_asked(tmp_path):
    (tmp_path / "d.csv").write_text("who;what\nto be\n")
    assert rows_of(tmp_path / "d.csv", delimiter=",") == [["0", "to be"]]


@pytest.mark.parametrize("value", ["\0", "", "ab", '"', "\n", "é", "a", "1", "\0\0"])
def test_what_divides_no_fields(value):
    with pytest.raises(nd.errors.ParameterError, match=r"^delimiter: "):
        nd.open_documents("nowhere.csv", reading=nd.Reading(delimiter=value))


def test_without_a_header_no_row_is_lost(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(written(";", header=None))
    options = {"delimiter": ";", "header": False, "text_columns": "f1", "id_column": "f0"}
    assert rows_of(path, **options) == ROWS
    result = flat(nd.dedup, path, **options, output=tmp_path / "out")
    assert result.removed["id"].to_pylist() == [3]
    kept = tmp_path / "out" / "kept" / "d.csv"
    with kept.open(newline="") as file:
        assert list(csv.reader(file, delimiter=";")) == [ROWS[0], ROWS[1], ROWS[3]]
    assert rows_of(tmp_path / "out", **options) == [ROWS[0], ROWS[1], ROWS[3]]
    tables = flat(nd.dedup, path, **options, output=tmp_path / "again", output_format="parquet")
    assert tables.removed["id"].to_pylist() == [3]


def test_without_a_header_places_count_from_the_first_row(tmp_path):
    (tmp_path / "d.csv").write_text("1,a\n2,b,c\n3,d\n")
    documents = nd.open_documents(
        tmp_path / "d.csv", text_columns="f1", reading=nd.Reading(header=False, on_error="skip")
    )
    assert [batch.ids.to_pylist() for batch in documents.batches()] == [[0, 2]]
    assert documents.places()["row"].to_pylist() == [1, 3]
    assert documents.skipped["row"].to_pylist() == [2]


@pytest.mark.parametrize("first", ["To be, or not to be.", "17", "2024-05-01 10:00", "https://example.org/a", "a " * 9])
@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_a_first_document_that_is_taken_for_a_header_is_said(first, quiet, tmp_path, capsys):
    (tmp_path / "d.csv").write_text(f'"{first}"\n"whether it is nobler"\n')
    assert cli.main(["dedup", str(tmp_path / "d.csv"), "--dry-run", *quiet]) == 0
    said = capsys.readouterr().err
    assert "the first row is taken for the header" in said and "--no-header" in said
    assert cli.main(["dedup", str(tmp_path / "d.csv"), "--dry-run", "--no-header", *quiet]) == 0
    assert "the first row is taken for the header" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["text", "body", "Full text of the bill", "content_2024"])
def test_usual_headers_are_not_doubted(name, tmp_path, capsys):
    (tmp_path / "d.csv").write_text(f"{name}\nto be\n")
    assert cli.main(["dedup", str(tmp_path / "d.csv"), "--dry-run"]) == 0
    assert "the first row is taken for the header" not in capsys.readouterr().err


def test_columns_of_a_doubtful_header_are_said_with_advice(tmp_path, capsys):
    (tmp_path / "d.csv").write_bytes(written(",", header=None))
    for flags in ([], ["--text-column", "text"]):
        assert cli.main(["dedup", str(tmp_path / "d.csv"), "--dry-run", *flags]) == 2
        assert "if the first row is data, give --no-header.\n" in capsys.readouterr().err


def test_jobs_take_them_alike(tmp_path):
    """Tasks, a reference set, sketches, an index, and a result that is opened again."""
    path = tmp_path / "d.csv"
    path.write_bytes(written("|", header=None))
    options = {"delimiter": "|", "header": False, "text_columns": "f1", "id_column": "f0"}
    workers = nd.Workers(work_dir=tmp_path / "work", number=1)
    report = flat(nd.dedup, path, **options, output=tmp_path / "tasks", workers=workers).report
    assert report["counts"]["removed"] == 1
    left = flat(nd.dedup, path, **options, against=path, only_against=True)
    assert left.removed["id"].to_pylist() == [1, 2, 3]
    assert flat(nd.sketches.sketch, path, tmp_path / "s.parquet", **options)["documents"] == 4
    with nd.Index.create(tmp_path / "index") as index:
        assert flat(index.add, path, **options).documents == 4
        assert 3 in flat(index.query, [path], **options)["id"].to_pylist()
    flat(nd.dedup, path, **options, output=tmp_path / "out")
    assert cli.main(["explain", str(tmp_path / "out"), "3"]) == 0
    assert cli.main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html"), "-q"]) == 0
