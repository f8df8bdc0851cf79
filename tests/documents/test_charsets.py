"""How the bytes of pages and of texts become UTF-8: the same in files, columns and crawls."""

import gzip
import io
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat

from neardup_gpu import Index, Reading, SimHash, Workers, dedup, open_documents
from neardup_gpu.cli.process import main
from neardup_gpu.documents import joined_text
from neardup_gpu.documents.charsets import page_as_utf8
from neardup_gpu.documents.joined_text import count_replaced
from neardup_gpu.errors import ParameterError
from neardup_gpu.sketches import pairs, sketch

RUSSIAN = "съешь же ещё этих мягких французских булок да выпей чаю"
LONG = "<p>" + "menu " * 1000


def texts_of(documents):
    return [
        batch.text[row].tobytes().decode("utf-8", "surrogateescape").strip()
        for batch in documents.batches()
        for row in range(batch.num_rows)
    ]


def from_file(folder, page, **options):
    (folder / "page.html").write_bytes(page)
    return texts_of(flat(open_documents, folder / "page.html", **options))


def from_column(folder, page, **options):
    return texts_of(flat(open_documents, {"text": pa.array([page], pa.binary())}, **{"html": True, **options}))


def from_crawl(folder, page, **options):
    pytest.importorskip("warcio")
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
    with open(folder / "crawl.warc.gz", "wb") as file:
        writer = WARCWriter(file, gzip=True)
        writer.write_record(writer.create_warc_record("http://x/", "response", io.BytesIO(page), http_headers=headers))
    return texts_of(flat(open_documents, folder / "crawl.warc.gz", **options))


ENTRANCES = pytest.mark.parametrize("entrance", [from_file, from_column, from_crawl])


def declared(text, codec, head="", label=None):
    return (head.format(label or codec) + f"<p>{text}").encode(codec)


@ENTRANCES
@pytest.mark.parametrize("tree", [True, "tree"])
@pytest.mark.parametrize(
    ("page", "text"),
    [
        (declared(RUSSIAN, "koi8-r", "<?xml version='1.0' encoding='{}'?>"), RUSSIAN),
        (declared(RUSSIAN, "koi8-r", '<?xml version="1.0"  encoding = "{}" standalone="yes"?>'), RUSSIAN),
        (declared(RUSSIAN, "cp866", "<?xml version='1.0' encoding='koi8-r'?><meta charset={}>"), RUSSIAN),
        (declared(RUSSIAN, "koi8-r", "<?xml version='1.0' encoding='{}'?><meta charset=nonsense>"), RUSSIAN),
        (declared(RUSSIAN, "utf-8", "<?xml version='1.0' encoding='utf-16'?>"), RUSSIAN),
        (declared(RUSSIAN, "utf-16-le", "<?xml version='1.0'?>"), RUSSIAN),
        (declared(RUSSIAN, "utf-16-be", "<?xml version='1.0'?>"), RUSSIAN),
        (declared(RUSSIAN, "cp1251", "<meta charset=nonsense><meta charset=x-cp1251>"), RUSSIAN),
        (
            declared(RUSSIAN, "cp1251", '<meta charset=nonsense http-equiv=content-type content="charset=cp1251">'),
            RUSSIAN,
        ),
        (declared("日本語①", "cp932", "<meta charset=windows-31j>"), "日本語①"),
        (declared("สวัสดี", "cp874", "<meta charset=windows-874>"), "สวัสดี"),
        (declared("שלום", "iso8859-8", "<meta charset=iso-8859-8-i>"), "שלום"),
        (declared(RUSSIAN, "utf-8", "<meta charset=utf-16>"), RUSSIAN),
        (declared(RUSSIAN, "utf-8"), RUSSIAN),
        (b"\xef\xbb\xbf" + declared(RUSSIAN, "utf-8", "<meta charset=koi8-r>"), RUSSIAN),
        (declared("naïve œuvre", "cp1252"), "naïve œuvre"),
        (b"<meta charset=euc-jp><p>\xad\xa1\xfc\xe2", "①髙"),
        (b"<meta charset=iso-2022-jp><p>\x1b(I1\x1b$B-!\x1b(B", "ｱ①"),
        (b"<meta charset=gbk><p>\x80", "€"),
    ],
)
def test_the_encoding_of_a_page(entrance, page, text, tree, tmp_path):
    assert entrance(tmp_path, page, html=tree) == [text]


@ENTRANCES
@pytest.mark.parametrize(
    ("before", "codec"),
    [
        ("", "koi8-r"),
        ("<!-- <meta charset=windows-1251> -->", "koi8-r"),
        ("<script>var a = '<meta charset=windows-1251>'</script>", "koi8-r"),
        ("<style><meta charset=windows-1251></style><title><meta charset=windows-1251></title>", "koi8-r"),
        ("<meta charset=windows-1251>", "cp1251"),
        ("<p title='<meta charset=windows-1251>'>", "koi8-r"),
        ("<p>" * 10 + "<meta name='viewport' content='width=device-width'>", "koi8-r"),
    ],
)
def test_a_meta_may_stand_anywhere(entrance, before, codec, tmp_path):
    """Browsers change the encoding when their parser meets it."""
    page = f"<p>{'menu ' * 1000}{before}<meta charset=koi8-r><p>{RUSSIAN}".encode(codec)
    assert entrance(tmp_path, page)[0].endswith(RUSSIAN)


@ENTRANCES
def test_pages_that_differ_stay_apart(entrance, tmp_path):
    """Two pages with equal menus whose words were all U+FFFD were one."""
    head = "<?xml version='1.0' encoding='koi8-r'?><p>menu one two three</p>"
    texts = [entrance(tmp_path, f"{head}<p>{text}".encode("koi8-r"))[0] for text in (RUSSIAN, RUSSIAN.upper()[::-1])]
    assert len(dedup({"text": texts}, threshold=0.5).removed) == 0


@ENTRANCES
def test_the_encoding_of_the_user_is_the_fallback_of_pages(entrance, tmp_path):
    assert entrance(tmp_path, declared(RUSSIAN, "koi8-r"), encoding="KOI8-R") == [RUSSIAN]
    assert entrance(tmp_path, declared(RUSSIAN, "utf-8"), encoding="koi8-r") == [RUSSIAN]
    assert entrance(tmp_path, declared(RUSSIAN, "cp1251", "<meta charset=cp1251>"), encoding="koi8-r") == [RUSSIAN]


@pytest.mark.parametrize(
    "page",
    [
        b"<a " * 400_000 + b"<meta charset=koi8-r>\xff",
        b"<meta charset" * 100_000 + b"\xff",
        b"<meta x='" * 100_000 + b" charset \xff",
        b"<!--" * 300_000 + b"<meta charset \xff",
        b"<script " * 200_000 + b"<meta charset \xff",
        b"<?xml " + b"encoding='a' " * 100_000 + b"\xff",
        b"<meta charset=iso-2022-jp>" + b"\x1b$B\x1b" * 200_000,
        b"<meta charset=euc-jp>" + b"\xff\x8f\xa1" * 200_000,
        b"<meta charset=big5>" + b"\x87\x7a\xff" * 200_000,
    ],
    ids=["tags", "metas", "quotes", "comments", "scripts", "xml", "iso-2022-jp", "euc-jp", "big5"],
)
def test_linear_time(page):
    started = time.monotonic()
    page_as_utf8(page)
    assert time.monotonic() - started < 10


# ------------------------------------------------------------------------------------------- texts that are no pages

ROWS = [("один", RUSSIAN), ("два", "ещё один текст из слов"), ("три", RUSSIAN)]


def csv_file(folder, codec, name="d.csv"):
    text = "id,text\n" + "".join(f'{id},"{text}"\n' for id, text in ROWS)
    return write(folder / name, text.encode(codec))


def json_file(folder, codec, name="d.jsonl"):
    text = "".join(f'{{"id": "{id}", "text": "{text}"}}\n' for id, text in ROWS)
    return write(folder / name, text.encode(codec))


def write(path, data):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("codec", ["cp1251", "koi8-r", "utf-16", "utf-16-le", "iso8859-5"])
@pytest.mark.parametrize("make", [csv_file, json_file])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_csv_and_json_in_an_encoding(make, codec, packed, tmp_path):
    label = {"utf-16-le": "utf-16le"}.get(codec, codec)
    path = make(tmp_path, codec, f"d.{'csv' if make is csv_file else 'jsonl'}{packed}")
    documents = open_documents(path, id_column="id", reading=Reading(encoding=label))
    assert texts_of(documents) == [text for _, text in ROWS]
    result = dedup(path, id_column="id", output=tmp_path / "out", reading=Reading(encoding=label))
    assert result.documents["id"].to_pylist() == [id for id, _ in ROWS]
    assert result.documents["kept"].to_pylist() == [True, True, False]
    kept = open_documents(tmp_path / "out", id_column="id")  # UTF-8
    assert texts_of(kept) == [text for _, text in ROWS[:2]]


@pytest.mark.parametrize("make", [csv_file, json_file])
def test_a_mark_counts_more(make, tmp_path):
    documents = open_documents(make(tmp_path, "utf-8-sig"), id_column="id", reading=Reading(encoding="koi8-r"))
    assert texts_of(documents) == [text for _, text in ROWS]


def test_text_files_and_columns_of_bytes_in_an_encoding(tmp_path):
    write(tmp_path / "in" / "a.txt", RUSSIAN.encode("cp1251"))
    write(tmp_path / "in" / "b.txt", RUSSIAN.encode("utf-16"))
    assert texts_of(open_documents(tmp_path / "in", reading=Reading(encoding="windows-1251"))) == [RUSSIAN, RUSSIAN]
    column = {"text": pa.array([RUSSIAN.encode("cp1251"), None], pa.binary())}
    assert texts_of(open_documents(column, reading=Reading(encoding="windows-1251"))) == [RUSSIAN, ""]
    pq.write_table(pa.table(column), tmp_path / "d.parquet")
    assert texts_of(open_documents(tmp_path / "d.parquet", reading=Reading(encoding="windows-1251"))) == [RUSSIAN, ""]


def test_strings_are_utf8_whatever_the_encoding(tmp_path, caplog):
    pq.write_table(pa.table({"text": [RUSSIAN]}), tmp_path / "d.parquet")
    assert texts_of(open_documents(tmp_path / "d.parquet", reading=Reading(encoding="windows-1251"))) == [RUSSIAN]
    assert "d.parquet: its text is strings, which are UTF-8; encoding changes nothing here" in caplog.text
    caplog.clear()
    assert texts_of(open_documents(csv_file(tmp_path, "utf-8"), reading=Reading(encoding="utf-8")))
    assert texts_of(open_documents({"text": pa.array([b"a"], pa.binary())}, reading=Reading(encoding="utf-8"))) == ["a"]
    assert not caplog.text


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_without_an_encoding_the_bytes_are_given_as_they_are(name, tmp_path):
    """Nothing on the way replaces them, as the kernel of tokens takes them for letters."""
    rows = [RUSSIAN, "plain", "Öl und Ül"]
    lines = [f'{i},"{row}"' if name == "d.csv" else f'{{"id": {i}, "text": "{row}"}}' for i, row in enumerate(rows)]
    head = ["id,text"] if name == "d.csv" else []
    path = write(tmp_path / name, "\n".join([*head, *lines, ""]).encode("cp1251", "xmlcharrefreplace"))
    expected = [row.encode("cp1251", "xmlcharrefreplace").decode("utf-8", "surrogateescape") for row in rows]
    assert texts_of(open_documents(path, id_column="id")) == expected
    dedup(path, id_column="id", output=tmp_path / "out")
    assert (tmp_path / "out" / "kept" / name).read_bytes() == path.read_bytes()


def test_text_files_without_an_encoding_are_given_as_they_are(tmp_path):
    write(tmp_path / "a.txt", b"\xd6l \xdcl \xff")
    assert texts_of(open_documents(tmp_path / "a.txt")) == ["\udcd6l \udcdcl \udcff"]


def test_an_unknown_label(tmp_path, capsys):
    with pytest.raises(ParameterError, match="encoding: unknown label 'latin-1'"):
        open_documents({"text": ["a"]}, reading=Reading(encoding="latin-1"))
    assert main(["dedup", str(csv_file(tmp_path, "utf-8")), "--dry-run", "--encoding", "klingon"]) == 2
    assert "--encoding: unknown label 'klingon'" in capsys.readouterr().err


def test_every_entrance_takes_the_encoding(tmp_path):
    path = csv_file(tmp_path, "koi8-r")
    options = {"id_column": "id", "encoding": "koi8-r"}
    ids = [id for id, _ in ROWS]
    work = Workers(work_dir=tmp_path / "work", number=1)
    flat(dedup, path, output=tmp_path / "tasks", workers=work, **options)
    found = pq.read_table(tmp_path / "tasks" / "documents")
    assert found["id"].to_pylist() == ids and found["kept"].to_pylist() == [True, True, False]
    assert (
        len(dedup({"text": [RUSSIAN]}, against=path, text_columns=None, reading=Reading(encoding="koi8-r")).removed)
        == 1
    )
    flat(sketch, path, tmp_path / "s.parquet", method=SimHash(), **options)
    assert len(pairs(tmp_path / "s.parquet")) == 1
    with Index.create(tmp_path / "index") as index:
        assert flat(index.add, path, **options).removed == 1
        assert flat(index.query, [path], **options)["resemblance"].to_pylist().count(1.0) >= 3


def test_documents_with_replaced_characters_are_counted(tmp_path, capsys):
    """A page that names a wrong encoding has U+FFFD, which its own bytes do not show."""
    pages = [
        b"<meta charset=utf-8><p>" + b"word " * 100 + b"\xff",
        b"<meta charset=utf-8><p>" + RUSSIAN.encode("koi8-r"),
        b"<meta charset=utf-8><p>one \xff two three four five six",
        b"<p>" + RUSSIAN.encode(),
    ]
    for number, page in enumerate(pages):
        write(tmp_path / "in" / f"{number}.html", page)
    asked = {"replaced_text": 3, "garbled_text": 1}
    result = dedup(tmp_path / "in")
    assert {name: result.report["counts"][name] for name in asked} == asked
    column = {"text": pa.array(pages, pa.binary())}
    for html in (True, "tree"):
        counts = dedup(column, reading=Reading(html=html)).report["counts"]
        assert {name: counts[name] for name in asked} == asked
    counts = sketch(tmp_path / "in", tmp_path / "s.parquet")
    assert {name: counts[name] for name in asked} == asked
    work = Workers(work_dir=tmp_path / "work", number=1)
    counts = dedup(tmp_path / "in", output=tmp_path / "tasks", workers=work).report["counts"]
    assert {name: counts[name] for name in asked} == asked
    assert main(["dedup", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 0
    shown = "".join(capsys.readouterr())
    assert "3 documents with U+FFFD for bytes that cannot be decoded (1 of them more than 5%)" in " ".join(
        shown.split()
    )


@pytest.mark.parametrize(("number", "is_garbled"), [(1, False), (2, True)])
def test_more_than_five_per_cent_is_garbled(number, is_garbled):
    texts = ["", "é" * (20 - number) + "\ufffd" * number]
    counts = dedup({"text": texts}).report["counts"]
    assert (counts["replaced_text"], counts["garbled_text"]) == (1, int(is_garbled))


@pytest.mark.parametrize("start", range(joined_text._BLOCK - 4, joined_text._BLOCK + 2))
@pytest.mark.parametrize("before", ["x", "\uff0c"])
def test_a_replaced_character_across_blocks(start, before):
    """The comma begins with the same byte."""
    text = (before * start).encode()[:start] + "\ufffd".encode()
    column = pa.array([b"x" * 5, text, b"\xef", b"\xbf\xbd"], pa.large_binary())
    assert count_replaced(column)[0] == count_replaced(column.slice(1, 1))[0] == 1
    assert count_replaced(column.slice(2)) == count_replaced(column[:1]) == (0, 0)


@pytest.mark.parametrize("start", range(1000, 1030))
def test_a_meta_across_the_first_1024_bytes(start):
    head = "<!--" + "x" * (start - 7) + "-->"
    page = head + '<meta http-equiv="Content-Type" content="text/html; charset=koi8-u"><p>ўї'
    table = str.maketrans({"ў": "\udcae", "ї": "\udca7"})
    raw = page.translate(table).encode("utf-8", "surrogateescape")
    assert page_as_utf8(raw).decode() == page
