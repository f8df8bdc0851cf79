"""CSV and TSV: what is a row, what is a column, and what is refused in one line."""

import contextlib
import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from hypothesis import given, settings, strategies as st

from neardup_gpu import Reading, open_documents
from neardup_gpu.documents.csv import Csv
from neardup_gpu.documents.slices import slices_of
from neardup_gpu.errors import InputError


def opened(folder, data, name="d.csv", **options):
    (folder / name).write_bytes(data)
    return flat(open_documents, folder / name, **options)


def read(documents, columns=()):
    """Ids and texts of all documents, and one extra column, if it is asked for."""
    found = []
    for batch in documents.batches(columns):
        texts = [batch.text[i].tobytes().decode() for i in range(batch.num_rows)]
        others = [batch.columns[name].to_pylist() for name in columns]
        found += list(zip(batch.ids.to_pylist(), texts, *others, strict=True))
    return found


def test_rows(tmp_path):
    data = b'id,text\r\n7,"a\r\nb, ""c"""\r\n\r\n8,5" pipe\r\n9,\r\n10,""'
    documents = opened(tmp_path, data, id_column="id")
    assert read(documents) == [(7, 'a\r\nb, "c"'), (8, '5" pipe'), (9, ""), (10, "")]
    assert sum(batch.num_null for batch in documents.batches()) == 1  # "" is a string, and nothing is null
    assert documents.places()["row"].to_pylist() == [1, 2, 3, 4]
    documents.write_kept(tmp_path / "kept", np.array([True, False, True, True]))
    assert (tmp_path / "kept/d.csv").read_bytes() == b'id,text\r\n7,"a\r\nb, ""c"""\r\n9,\r\n10,""'


def test_tabs_and_a_mark(tmp_path):
    documents = opened(tmp_path, b'\xef\xbb\xbftext\tid\na,b\tx\n"c\td"\ty\n', "d.tsv", id_column="id")
    assert read(documents) == [("x", "a,b"), ("y", "c\td")]
    documents.write_kept(tmp_path / "kept", np.ones(2, bool))
    assert (tmp_path / "kept/d.tsv").read_bytes() == b'\xef\xbb\xbftext\tid\na,b\tx\n"c\td"\ty\n'


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_nothing(data, tmp_path):
    assert read(opened(tmp_path, data)) == []


def test_a_header_alone(tmp_path):
    documents = opened(tmp_path, b"text,id", id_column="id")
    assert read(documents) == []
    documents.write_kept(tmp_path / "kept", np.zeros(0, bool))
    assert (tmp_path / "kept/d.csv").read_bytes() == b"text,id"


@pytest.mark.parametrize(
    "values, expected",
    {
        ("1", "-2", "0"): [1, -2, 0],
        ("9223372036854775808", "1"): [2**63, 1],
        ("007", "8"): ["007", "8"],
        ("1", "x"): ["1", "x"],
        ("1.5", "2"): ["1.5", "2"],
        ("-1", "9223372036854775808"): ["-1", "9223372036854775808"],
        ("18446744073709551616", "1"): ["18446744073709551616", "1"],
        ('"1"', "2"): [1, 2],
    }.items(),
)
def test_ids_are_integers_if_all_of_them_are(values, expected, tmp_path):
    data = "id,text\n" + "".join(f"{value},a\n" for value in values)
    assert [id for id, _ in read(opened(tmp_path, data.encode(), id_column="id"))] == expected


def test_types_of_what_decides(tmp_path):
    data = b"text,whole,part,word,none\na,10,1.5,x,\nb,,2,10,\nc,9,,9,\n"
    documents = opened(tmp_path, data)
    for name, expected in {
        "whole": [10, None, 9],
        "part": [1.5, 2.0, None],
        "word": ["x", "10", "9"],
        "none": [None] * 3,
    }.items():
        assert [row[2] for row in read(documents, [name])] == expected


def test_one_type_in_all_files(tmp_path):
    (tmp_path / "in").mkdir()
    opened(tmp_path / "in", b"id,text\n1,a\n", "a.csv")
    opened(tmp_path / "in", b"text,id\nb,x\n", "b.csv")
    assert [row[0] for row in read(open_documents(tmp_path / "in", id_column="id"))] == ["1", "x"]
    opened(tmp_path / "in", b"text,id\nb,-7\n", "b.csv")
    assert [row[0] for row in read(open_documents(tmp_path / "in", id_column="id"))] == [1, -7]
    opened(tmp_path / "in", b"text,id\nb,9223372036854775808\n", "b.csv")
    assert [row[0] for row in read(open_documents(tmp_path / "in", id_column="id"))] == [1, 2**63]
    opened(tmp_path / "in", b"text,id\nb,\n", "b.csv")
    with pytest.raises(InputError, match=r"b\.csv: column 'id' is null in document 1"):
        read(open_documents(tmp_path / "in", id_column="id"))


WRONG = {
    "too many": (b"id,text\n1,a\n2,b,c\n", r"row 2 \(line 3\): has 3 fields, not 2 as the header; quote .* comma"),
    "old line endings": (b"id,text\r1,a\r2,b,c\r", r"row 2 \(line 3\): has 3 fields"),
    "too few": (b'id,text\n1,"a\nb"\n2\n', r"row 2 \(line 4\): has 1 field, not 2"),
    "open": (b'id,text\n1,a\n2,"b\n3,c\n', r"row 2 \(line 3\): a field begins with a quote that nothing closes"),
    "semicolons": (b"id;text\n1;a\n", "its only column would be 'id;text'; if a semicolon"),
    "latin header": (
        "id,text,ü\n1,a,b\n".encode("latin-1"),
        "the header is not UTF-8; .*encoding='windows-1252'",
    ),
    "utf-16": ("id,text\n1,a\n".encode("utf-16"), "is UTF-16; read it with encoding='utf-16'"),
    "packed": (gzip.compress(b"id,text\n1,a\n"), r"compressed by gzip; let its name end in \.gz"),
    "twice": (b"text,text\na,b\n", "2 columns named 'text'; it has text, text in the header"),
    "no column": (b"id,body\n1,a\n", "several columns of text and none named 'text'; it has id, body"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case, tmp_path):
    data, says = WRONG[case]
    with pytest.raises(InputError, match=says):
        read(opened(tmp_path, data))


@pytest.mark.parametrize(
    "case, ids, rows",
    [("too many", [1], [(2, 1)]), ("too few", [1], [(2, 1)]), ("open", [1], [(2, None)])],
)
def test_what_is_skipped(case, ids, rows, tmp_path):
    data, says = WRONG[case]
    documents = opened(tmp_path, data, id_column="id", on_error="skip")
    assert [id for id, _ in read(documents)] == ids
    skipped = documents.skipped.to_pylist()
    assert [(row["row"], row["rows"]) for row in skipped] == rows
    with pytest.raises(InputError, match=says):
        raise InputError(skipped[0]["reason"])
    documents.write_kept(tmp_path / "kept", np.ones(1, bool))
    first = data.split(b"2,")[0] if case != "too few" else data[:-2]
    assert (tmp_path / "kept/d.csv").read_bytes() == first


def rows_and_losses(documents):
    """Texts that were read, and the rows and numbers of rows that were skipped."""
    texts = [text for _, text in read(documents)]
    return texts, [(row["row"], row["rows"], row["bytes"]) for row in documents.skipped.to_pylist()]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n", b'""', b'""\n', b"\n3,c\n"])
def test_a_quote_that_nothing_closes(end, tmp_path):
    data = b'id,text\n1,a\n2,"this text was cut' + end
    with pytest.raises(InputError, match=r"row 2 \(line 3\): a field begins with a quote that nothing closes"):
        read(opened(tmp_path, data))
    documents = opened(tmp_path, data, on_error="skip")
    assert rows_and_losses(documents) == (["a"], [(2, None, len(data) - 12)])
    documents.write_kept(tmp_path / "kept", np.ones(1, bool))
    assert (tmp_path / "kept/d.csv").read_bytes() == data[:12]


@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("row", ['5,"open text', '5,"a"b', '5,"a" ', '5," ""x"y', '"5"x,a', '5,"" x'])
def test_text_after_a_closing_quote(row, delimiter, tmp_path):
    data = f'id,text\n4,"d"\n{row}\n6,"text"\n7,g'.replace(",", delimiter).encode()
    name = "d.csv" if delimiter == "," else "d.tsv"
    with pytest.raises(InputError, match=r"row 2 \(line 3\): text follows the quote that closes a field"):
        read(opened(tmp_path, data, name))
    documents = opened(tmp_path, data, name, on_error="skip")
    assert rows_and_losses(documents) == (["d", "text", "g"], [(2, 1, None)])


@pytest.mark.parametrize("header", [b'id,"text', b'id,"text"x\n1,a'])
def test_the_quotes_of_the_header(header, tmp_path):
    with pytest.raises(InputError, match=r"d\.csv: .*quote"):
        read(opened(tmp_path, header + b"\n2,b\n"))
    documents = opened(tmp_path, header + b"\n2,b\n", on_error="skip")
    assert rows_and_losses(documents) == ([], [(1, None, len(header) + 5)])


@settings(deadline=None)
@given(st.text('ab",\n\r ', max_size=30), st.sampled_from([1, 3, 17, 1 << 20]))
def test_rows_that_can_be_read_are_those_of_python_in_strict_mode(tmp_path_factory, text, size):
    folder = tmp_path_factory.getbasetemp()
    documents = opened(folder, b"id,text\n" + text.encode(), on_error="skip")
    (reader,) = documents._readers
    blocks = reader._blocks
    reader._blocks = lambda _=None, noted=None: blocks(size, noted)
    found, expected = read(documents), []
    skipped = [row["row"] for row in documents.skipped.to_pylist()]
    with contextlib.suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                expected.append(row)
    first_broken = [row["row"] for row in documents.skipped.to_pylist() if "field;" in row["reason"] or not row["rows"]]
    until = first_broken[0] - 1 if first_broken else len(expected)
    assert [(i, row[1]) for i, row in enumerate(expected[:until]) if len(row) == 2] == [
        each for each in found if each[0] < until
    ]
    assert len(expected) == until
    assert sorted([i + 1 for i, _ in found] + skipped) == list(range(1, len(found) + len(skipped) + 1))


def test_rows_behind_skipped_ones_have_their_numbers(tmp_path):
    data = b"id,text\n1,a\n2\n3,c\n4,d,e\n" + b"5,e,\xff\n6,f\n"
    documents = opened(tmp_path, data, on_error="skip")
    assert read(documents) == [(0, "a"), (2, "c"), (5, "f")]
    assert documents.places()["row"].to_pylist() == [1, 3, 6]
    assert documents.skipped["row"].to_pylist() == [2, 4, 5]
    documents.write_kept(tmp_path / "kept", np.array([True, False, True]))
    assert (tmp_path / "kept/d.csv").read_bytes() == b"id,text\n1,a\n6,f\n"


def test_a_long_row(tmp_path):
    long = b"x" * 5_000_000
    documents = opened(tmp_path, b'id,text\n1,"' + long + b'"\n2,b\n')
    assert [len(text) for _, text in read(documents)] == [5_000_000, 1]
    documents = opened(tmp_path, b"id,text\n1," + b"x" * 900 + b"\n2,b\n", max_document_bytes=100, on_error="skip")
    assert [text for _, text in read(documents)] == ["b"]
    with pytest.raises(InputError, match=r"row 1 \(line 2\): longer than 100 bytes"):
        read(opened(tmp_path, b"id,text\n1," + b"x" * 900 + b"\n2,b\n", max_document_bytes=100))
    with pytest.raises(InputError, match=r"row 1 \(line 2\): longer than 100,000 bytes, perhaps as nothing closes"):
        read(opened(tmp_path, b'id,text\n1,"' + long + long, max_document_bytes=100_000))


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_packed_file_that_was_cut(suffix, tmp_path):
    lines = b"".join(b"%d,%s\n" % (i, np.random.default_rng(i).bytes(20).hex().encode()) for i in range(20_000))
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, {"gz": "gzip", "zst": "zstd"}[suffix]) as packer:
        packer.write(b"id,text\n" + lines)
    data = stream.getvalue().to_pybytes()
    name = f"d.csv.{suffix}"
    assert len(read(opened(tmp_path, data, name, id_column="id"))) == 20_000
    cut = data[: len(data) // 2]
    with pytest.raises(InputError, match=rf"d\.csv\.{suffix}: cannot be read \(.*(cut off|Truncated)"):
        read(opened(tmp_path, cut, name))
    documents = opened(tmp_path, cut, name, on_error="skip")
    found = read(documents)
    assert 1000 < len(found) < 20_000
    (row,) = documents.skipped.to_pylist()
    assert (row["row"], row["rows"]) == (len(found) + 1, None)
    documents.write_kept(tmp_path / "kept", np.ones(len(found), bool))
    assert len(read(open_documents(tmp_path / "kept" / name))) == len(found)


def test_members_of_gzip(tmp_path):
    members = [gzip.compress(b"id,text\n1,a\n"), gzip.compress(b'2,"b\nc"\n'), gzip.compress(b"3,d\n")]
    assert len(read(opened(tmp_path, b"".join(members), "d.csv.gz"))) == 3
    with pytest.raises(InputError, match="cannot be read"):
        read(opened(tmp_path, b"".join(members)[:-9], "d.csv.gz"))


def test_a_slice_is_a_file(tmp_path):
    for name in "abc":
        opened(tmp_path, b'id,text\n1,"a\nb"\n' + b"2,c\n" * 50, f"{name}.csv")
    whole = open_documents(tmp_path, text_columns="text")
    slices = slices_of(whole, 10)
    assert [each.covers for each in slices] == [str(tmp_path / f"{name}.csv") for name in "abc"]
    assert [text for each in slices for _, text in read(each.open())] == [text for _, text in read(whole)]


@settings(deadline=None)
@given(
    st.lists(st.text('ab",\n\r\té ', max_size=12), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", "\t"]),
    st.sampled_from([1, 3, 17, 1 << 20]),
    st.integers(0, 2**12 - 1),
)
def test_rows_are_those_of_pythons_reader(tmp_path_factory, texts, ending, delimiter, size, mask):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "text"])
    writer.writerows(enumerate(texts))
    folder = tmp_path_factory.getbasetemp()
    name = "d.tsv" if delimiter == "\t" else "d.csv"
    documents = opened(folder, out.getvalue().encode(), name)
    (reader,) = documents._readers
    assert isinstance(reader, Csv)
    blocks = reader._blocks
    reader._blocks = lambda _=None, noted=None: blocks(size, noted)
    assert [text for _, text in read(documents)] == texts
    keep = np.array([bool(mask >> i & 1) for i in range(len(texts))], bool)
    documents.write_kept(folder / "kept", keep)
    with open(folder / "kept" / name, newline="", encoding="utf-8") as file:
        kept = [row[1] for row in csv.reader(file, delimiter=delimiter)][1:]
    assert kept == [text for text, stays in zip(texts, keep, strict=True) if stays]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(
    "data, says", [(b"id,body\n1,a b\n", "no column 'text'; it has id, body"), (b"text,text\na,b\n", "2 columns named")]
)
def test_without_the_text_column(data, says, on_error, tmp_path):
    with pytest.raises(InputError, match=says):
        opened(tmp_path, data, text_columns="text", on_error=on_error)
    (tmp_path / "in").mkdir()
    opened(tmp_path / "in", b"id,text\n1,a b\n", "a.csv")
    (tmp_path / "in" / "b.csv").write_bytes(data)
    with pytest.raises(InputError, match=rf"b\.csv: {says}"):
        open_documents(tmp_path / "in", text_columns="text", reading=Reading(on_error=on_error))
