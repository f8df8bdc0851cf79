"""The table of formats in docs/reference/inputs.md: every entry is tried, and every case here is an entry."""

from __future__ import annotations

import functools
import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from packing import PACK

import neardup_gpu as nd

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "inputs.md"
TEXTS = ["to be or not to be", "whether it is nobler", "the slings and arrows"]
HEADINGS = ["format", "names end in", "compression", "encoding", "text", "damage costs", "refused"]


def table():
    lines = PAGE.read_text().split("## Formats at a glance")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| ")]
    assert rows[0] == HEADINGS
    return [row + [""] * (len(HEADINGS) - len(row)) for row in rows[1:]]


ENTRIES = [
    (row[0], heading, entry)
    for row in table()
    for heading, cell in zip(HEADINGS[1:], row[1:], strict=True)
    for entry in re.findall("`([^`]+)`", cell)
]


def texts_of(source, **options):
    documents = flat(nd.open_documents, source, **options)
    found = [batch.text[row].tobytes().decode() for batch in documents.batches() for row in range(batch.num_rows)]
    return found, documents


# ------------------------------------------------------------------------------------------------ files of a format


def parquet(texts=TEXTS, **options):
    sink = pa.BufferOutputStream()
    column = texts if isinstance(texts, pa.Array) else pa.array(texts)
    pq.write_table(pa.table({"text": column}), sink, compression="none", **options)
    return sink.getvalue().to_pybytes()


def arrow(texts=TEXTS, opener=pa.ipc.new_stream):
    sink, column = pa.BufferOutputStream(), texts if isinstance(texts, pa.Array) else pa.array(texts)
    with opener(sink, pa.schema([("text", column.type)])) as writer:
        for row in range(len(column)):
            writer.write_batch(pa.record_batch({"text": pa.concat_arrays([column.slice(row, 1)])}))
    return sink.getvalue().to_pybytes()


def lines(texts=TEXTS):
    return "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode()


def fields(texts=TEXTS, delimiter=",", header=True):
    return "".join(f"{text}{delimiter}x\n" for text in [*["text"] * header, *texts]).encode()


def records(texts=TEXTS, kind="text/plain", record="conversion"):
    head = "WARC/1.0\r\nWARC-Type: {}\r\nWARC-Record-ID: <urn:x:{}>\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n"
    parts = [head.format(record, i, kind, len(text.encode())) + text for i, text in enumerate(texts)]
    return b"".join(part.encode() + b"\r\n\r\n" for part in parts)


def text(texts=TEXTS):
    return " ".join(texts).encode()


def page(texts=TEXTS):
    return f"<p>{' '.join(texts)}<script>hidden</script>".encode()


MAKE = {
    "Parquet": parquet,
    "Arrow": arrow,
    "JSON": lines,
    "CSV": fields,
    "TSV": functools.partial(fields, delimiter="\t"),
    "WARC": records,
    "text": text,
    "HTML": page,
}
FIRST = {name: re.search(f"^\\| {name} \\| `([^`]+)`", PAGE.read_text(), re.M)[1] for name in MAKE}


def write(folder, kind, data, extension=None):
    path = folder / f"d{extension or FIRST[kind]}"
    path.write_bytes(data)
    return path


def words(found):
    return " ".join(found).split()


# ------------------------------------------------------------------------------------------------------- each entry


def names_end_in(kind, extension, folder):
    data = arrow(opener=pa.ipc.new_file) if extension in (".arrow", ".ipc", ".feather") else MAKE[kind]()
    found, documents = texts_of(write(folder, kind, data, extension))
    assert words(found) == words(TEXTS)
    return documents


def compression(kind, extension, folder):
    found, _ = texts_of(write(folder, kind, PACK[extension](MAKE[kind]()), FIRST[kind] + extension))
    assert words(found) == words(TEXTS)


def encoding(kind, entry, folder):
    texts = ["Öl größer", "schön", "Ähre"]
    options = {}
    if kind in ("Parquet", "Arrow") and entry == "--encoding":
        data = MAKE[kind](pa.array([text.encode("latin-1") for text in texts], pa.binary()))
        options["encoding"] = "latin1"
    else:
        data = MAKE[kind](texts)
    if entry == "UTF-16":
        data = data.decode().encode("utf-16")
    elif entry == "--encoding" and not options:
        data, options = data.decode().encode("latin-1"), {"encoding": "latin1"}
    elif entry == "<meta>":
        data = b"<meta charset=koi8-r>" + MAKE[kind](texts := ["Привет мир"]).decode().encode("koi8-r")
    found, _ = texts_of(write(folder, kind, data), **options)
    assert words(found) == words(texts)


ARRAYS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}


def types_of_text(kind, entry, folder):
    options = {}
    if kind in ("Parquet", "Arrow") and entry in ARRAYS:
        plain = pa.array([text.encode() for text in TEXTS] if entry == "binary" else TEXTS)
        data = MAKE[kind](plain.dictionary_encode() if entry == "dictionary" else plain.cast(ARRAYS[entry]))
    elif entry in ("struct", "list"):
        values = [{"body": text} if entry == "struct" else [text, None] for text in TEXTS]
        options["text_columns"] = "text.body" if entry == "struct" else "text[]"
        data = MAKE[kind](values if kind == "JSON" else pa.array(values))
    elif entry in ("array of objects", "objects over lines"):
        rows = [{"text": text} for text in TEXTS]
        whole = json.dumps(rows, indent=2) if entry[0] == "a" else "\n".join(json.dumps(row, indent=2) for row in rows)
        data = whole.encode()
    elif entry == "other delimiters":
        data, options["delimiter"] = fields(delimiter=";"), ";"
    elif entry == "no header":
        delimiter = "\t" if kind == "TSV" else ","
        data, options = fields(delimiter=delimiter, header=False), {"header": False, "text_columns": "f0"}
    elif entry == "pages":
        pages = [f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}" for text in TEXTS]
        data = records(pages, "application/http; msgtype=response", "response")
    else:
        assert entry in ("string", "plain text", "the file", "what is visible")
        data = MAKE[kind]()
    found, _ = texts_of(write(folder, kind, data), **options)
    assert words(found) == words(TEXTS)


def damage_costs(kind, entry, folder):
    path, expected = folder / "none", [TEXTS[0], TEXTS[2]]
    if entry == "a row group":
        data = bytearray(
            parquet(row_group_size=1, use_dictionary=False, write_page_checksum=True, write_statistics=False)
        )
        data[data.index(TEXTS[1].encode())] ^= 1
        path = write(folder, kind, bytes(data))
    elif entry == "the rest" and kind == "Arrow":
        data = arrow()
        path, expected = write(folder, kind, data[: data.index(TEXTS[1].encode())], ".arrows"), TEXTS[:1]
    elif entry == "the rest":
        some = [f"{number} {TEXTS[0]}" for number in range(20_000)]
        packed = gzip.compress(MAKE[kind](some))
        path = write(folder, kind, packed[: len(packed) // 2], FIRST[kind] + ".gz")
        found, documents = texts_of(path, on_error="skip")
        assert 0 < len(found) < len(some) and found == some[: len(found)]
        assert documents.skipped["rows"].to_pylist() == [None]
        return
    elif entry == "a line":
        path = write(folder, kind, lines().replace(b'{"text": "whether', b'{"text" "whether'))
    elif entry == "a row":
        path = write(folder, kind, MAKE[kind]().replace(b"nobler", b"nobler\t,"))
    elif entry == "a record":
        path = write(folder, kind, records().replace(b"Content-Length: 20", b"Content-Length: x"))
    elif entry == "a file":
        for name, data in zip("abc", [MAKE[kind](TEXTS[:1]), b"x" * 999, MAKE[kind](TEXTS[2:])], strict=True):
            (folder / f"{name}{FIRST[kind]}").write_bytes(data)
        path = folder
    limit = {"max_document_bytes": 500} if entry == "a file" else {}
    found, documents = texts_of(path, on_error="skip", **limit)
    assert words(found) == words(expected) and documents.skipped.num_rows == 1
    with pytest.raises(nd.errors.InputError):
        texts_of(path, **limit)


def refused(kind, entry, folder):
    data, extension = MAKE[kind](), FIRST[kind]
    if entry == "a cut file":
        data = data[:-20]
    elif entry == "numbers as text":
        data = MAKE[kind]([1, 2])
    elif entry == "two keys of one name":
        data = data.replace(b"}", b', "text": "again"}', 1)
    elif entry == "Feather 1":
        data = b"FEA1" + bytes(100)
    elif entry == "UTF-16":
        data = data.decode().encode("utf-16")
    elif entry == "other compressions":
        data, extension = PACK[".xz"](data), f"{extension}.xz"
    else:
        assert entry == "a file that is not text"
        data, extension = bytes(range(256)), ".data"
    with pytest.raises(nd.errors.InputError) as caught:
        texts_of(write(folder, kind, data, extension))
    assert "\n" not in str(caught.value)


TRY = {
    "names end in": names_end_in,
    "compression": compression,
    "encoding": encoding,
    "text": types_of_text,
    "damage costs": damage_costs,
    "refused": refused,
}


@pytest.mark.parametrize(
    ("kind", "heading", "entry"),
    ENTRIES,
)
def test_every_entry_is_true(kind, heading, entry, tmp_path):
    if kind == "WARC":
        pytest.importorskip("fastwarc")
    TRY[heading](kind, entry, tmp_path)


def test_the_table_lists_all_that_is_read():
    from neardup_gpu.documents.formats import FORMATS

    listed = {entry for _, heading, entry in ENTRIES if heading == "names end in"}
    assert listed == {extension for each in FORMATS.values() for extension in each.extensions}
    packed = {(kind, entry) for kind, heading, entry in ENTRIES if heading == "compression"}
    by_extension = {entry: kind for kind, heading, entry in ENTRIES if heading == "names end in"}
    assert packed == {
        (by_extension[extension], suffix)
        for each in FORMATS.values()
        for extension in each.extensions
        for suffix in each.compressions
    }


def test_where_json_is_read_leniently(tmp_path):
    """What the page says about RFC 8259."""
    path = tmp_path / "d.jsonl"
    numbers = "".join(f'{{"a": {value}, "text": "x"}}\n' for value in ("Infinity", "-Infinity", "Inf", "NaN"))
    path.write_text(f'{numbers}{{"text": "a\tb\x01"}}\n')
    assert texts_of(path)[0] == ["x"] * 4 + ["a\tb\x01"]
    (tmp_path / "e.json").write_text('[{"text": "a"} {"text": "b"},, {"text": "c"},]')
    assert texts_of(tmp_path / "e.json")[0] == ["a", "b", "c"]
