"""WARC and WET: made by warcio, read here, kept records read again by FastWARC and warcio; broken files."""

import contextlib
import gzip
import io
import random
import re
import subprocess
import sys
import threading
import time
import zlib
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutated import mutated

from neardup_gpu import Workers, dedup
from neardup_gpu.cli.process import main
from neardup_gpu.documents import ahead, open_documents, warc, warc_records
from neardup_gpu.documents.skipped import Noted
from neardup_gpu.documents.warc_records import DamagedRecordError, Records
from neardup_gpu.errors import InputError, NeardupError
from neardup_gpu.jobs import info
from neardup_gpu.results.explanation import explain

pytest.importorskip("fastwarc")
pytest.importorskip("warcio")

from fastwarc.warc import ArchiveIterator
from flat import flat
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from neardup_gpu import Reading, Recipe, Shingles

SENTENCE = "the quick brown fox jumps over a lazy dog while seven wizards box with jolly farmers every other day"
WORDS = SENTENCE.split()
TEXTS = [" ".join(WORDS[i:] + WORDS[:i]) for i in (0, 5, 9)]
TEXTS += [f"{TEXTS[0]} twice", TEXTS[1].upper(), "something else altogether, in words of its own"]
HTML = [("Content-Type", "text/html; charset=utf-8")]


class Archive:
    """A WARC file that warcio writes into memory, and where each record ends."""

    def __init__(self, packed=True):
        self.bytes = io.BytesIO()
        self.writer = WARCWriter(self.bytes, gzip=packed)
        self.ends = [0]

    def add(self, payload, headers=None, kind="response", url="http://example.org/", status="200 OK", **warc):
        name = f"<urn:uuid:00000000-0000-4000-8000-{len(self.ends):012}>"
        more = {"WARC-Record-ID": name, "WARC-Date": "2024-05-31T00:00:00Z"}
        more |= {name.replace("_", "-"): value for name, value in warc.items()}
        http = None if headers is None else StatusAndHeaders(status, headers, protocol="HTTP/1.1")
        content_type = more.pop("Content-Type", "")
        record = self.writer.create_warc_record(
            url, kind, io.BytesIO(payload), http_headers=http, warc_headers_dict=more, warc_content_type=content_type
        )
        self.writer.write_record(record)
        self.ends.append(self.bytes.tell())
        return self

    def pages(self, texts=TEXTS):
        for number, text in enumerate(texts):
            page = f"<html><title>{number}</title><p>{text}</p></html>".encode()
            date = f"2024-05-{number + 1:02}T00:00:00Z"
            self.add(page, HTML, url=f"http://example.org/{number}", WARC_Date=date)
        return self

    @property
    def data(self):
        return self.bytes.getvalue()

    def parts(self):
        return [self.data[start:stop] for start, stop in zip(self.ends, self.ends[1:], strict=False)]


def documents_of(path, columns=("url", "date", "content_type"), **options):
    """id, text and columns of each document, and the opened documents."""
    documents, rows = flat(open_documents, path, **options), []
    for batch in documents.batches(columns):
        texts = [batch.text[i].tobytes().decode() for i in range(batch.num_rows)]
        extra = [batch.columns[name].to_pylist() for name in columns]
        rows += zip(batch.ids.to_pylist(), texts, *extra, strict=True)
    return rows, documents


def text_of(tmp_path, archive):
    """The only document's text."""
    path = tmp_path / "one.warc.gz"
    path.write_bytes(archive.data)
    ((_, text, *_),), _ = documents_of(path)
    return text


@pytest.mark.parametrize("case", [bytes.lower, bytes.upper, bytes.title])
def test_names_of_fields_in_any_case(tmp_path, case):
    (tmp_path / "usual.warc").write_bytes((archive := Archive(packed=False).pages()).data)
    parts = [part.partition(b"\r\n\r\n") for part in archive.parts()]
    changed = [
        re.sub(rb"(?m)^[\w-]+(?=: )", lambda name: case(name[0]), head) + end + rest for head, end, rest in parts
    ]
    (tmp_path / "changed.warc").write_bytes(b"".join(changed))
    assert documents_of(tmp_path / "changed.warc")[0] == documents_of(tmp_path / "usual.warc")[0]


@pytest.mark.parametrize("name", ["crawl.warc.gz", "crawl.warc"])
def test_decides_as_of_the_same_pages_in_parquet(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(Archive(name.endswith(".gz")).pages().data)
    rows, _ = documents_of(path)
    pages = [f"<html><title>{number}</title><p>{text}</p></html>" for number, text in enumerate(TEXTS)]
    pq.write_table(pa.table({"id": [row[0] for row in rows], "text": pages}), tmp_path / "same.parquet")
    expected = dedup(
        tmp_path / "same.parquet", id_column="id", recipe=Recipe(shingles=Shingles(2)), reading=Reading(html=True)
    )
    found = dedup(path, output=tmp_path / "out", recipe=Recipe(shingles=Shingles(2)))
    names = ["id", "kept", "duplicate_of", "resemblance", "group"]
    assert found.documents.select(names).equals(expected.documents.select(names))
    assert found.pairs.equals(expected.pairs) and len(found.removed) == 4
    assert found.documents["row"].to_pylist() == [1, 2, 3, 4, 5, 6]

    workers = Workers(work_dir=tmp_path / "work", number=1)
    report = dedup(path, output=tmp_path / "tasks", workers=workers, recipe=found.recipe).report
    parts = pq.read_table(tmp_path / "tasks" / "documents")
    assert parts.select(names).to_pylist() == found.documents.select(names).to_pylist()
    assert report["counts"] == {**found.report["counts"], "comparisons": report["counts"]["comparisons"]}
    assert (tmp_path / "tasks" / "kept" / name).read_bytes() == (tmp_path / "out" / "kept" / name).read_bytes()
    removed = found.removed["id"][0].as_py()
    assert explain(tmp_path / "tasks", removed).resemblance == found.removed["resemblance"][0].as_py()
    info.check(tmp_path / "tasks")


def test_wet(tmp_path):
    archive = Archive().add(b"Software: x", kind="warcinfo", Content_Type="application/warc-fields")
    for text in ("<b>is no markup</b> here", "häuser"):
        archive.add(text.encode(), kind="conversion", Content_Type="text/plain", WARC_Date="2024-05-01T01:02:03Z")
    for name in ("a.warc.wet.gz", "b.wet.gz", "c.wet"):
        (tmp_path / name).write_bytes(archive.data)
        rows, documents = documents_of(tmp_path / name)
        assert [row[1] for row in rows] == ["<b>is no markup</b> here", "häuser"]
        assert rows[0][0].startswith("<urn:uuid:") and documents.left_out_records == {"warcinfo": 1}
        assert rows[0][2:] == ("http://example.org/", datetime(2024, 5, 1, 1, 2, 3, tzinfo=UTC), "text/plain")


@pytest.mark.parametrize("packed", [True, False])
def test_kept_records_are_the_bytes_they_were(tmp_path, packed):
    archive = Archive(packed).add(b"x: y", kind="warcinfo", Content_Type="application/warc-fields").pages()
    name = "crawl.warc.gz" if packed else "crawl.warc"
    (tmp_path / name).write_bytes(archive.data)
    found = dedup(
        tmp_path / name, id_column="url", output=tmp_path / "out", recipe=Recipe(shingles=Shingles(2), keep="date:desc")
    )
    kept = found.documents["kept"].to_pylist()
    assert kept == [False, False, False, True, True, True]  # the younger ones stay
    written = tmp_path / "out" / "kept" / name
    assert written.read_bytes() == b"".join(part for part, keep in zip(archive.parts()[1:], kept, strict=True) if keep)
    urls = found.kept["id"].to_pylist()
    read = []
    for record in ArchiveIterator(str(written), parse_http=False):
        of_block = record.verify_block_digest()
        record.parse_http()
        read.append((record.headers["WARC-Target-URI"], of_block, record.verify_payload_digest()))
    assert read == [(url, True, True) for url in urls]
    with open(written, "rb") as file:
        records = [each for each in WarcioIterator(file, check_digests="raise") if each.content_stream().read()]
    assert [each.rec_headers.get_header("WARC-Target-URI") for each in records] == urls
    assert dedup(tmp_path / "out", recipe=Recipe(shingles=Shingles(2))).report["counts"]["kept"] == len(urls)


def test_a_file_that_is_gone_is_no_fault_of_the_output(tmp_path):
    archive = Archive()
    archive.add(TEXTS[0].encode(), kind="conversion", Content_Type="text/plain")
    (tmp_path / "x.warc.gz").write_bytes(archive.bytes.getvalue())
    documents = open_documents(tmp_path / "x.warc.gz")
    number = sum(batch.num_rows for batch in documents.batches())
    (tmp_path / "x.warc.gz").unlink()
    with pytest.raises(InputError, match=r"x\.warc\.gz: no such file"):
        documents.write_kept(tmp_path / "kept", np.ones(number, bool))


def test_one_member_for_all_records(tmp_path):
    plain = Archive(packed=False).pages()
    (tmp_path / "whole.warc.gz").write_bytes(gzip.compress(plain.data))
    found = dedup(tmp_path / "whole.warc.gz", output=tmp_path / "out", recipe=Recipe(shingles=Shingles(2)))
    kept = (tmp_path / "out" / "kept" / "whole.warc.gz").read_bytes()
    stays = found.documents["kept"].to_pylist()
    records, members = [part for part, keep in zip(plain.parts(), stays, strict=True) if keep], []
    while kept:
        inflate = zlib.decompressobj(31)
        members.append(inflate.decompress(kept))
        kept = inflate.unused_data
    assert members == records


PAGE = "<html><p>Größe £5, être</p>"
SEEN = "Größe £5, être"
GZIPPED = gzip.compress(PAGE.encode())
RAW = zlib.compressobj(wbits=-15)
DEFLATED = RAW.compress(PAGE.encode()) + RAW.flush()


def chunks(data, extension=""):
    return b"".join(b"%x%s\r\n%s\r\n" % (len(p), extension.encode(), p) for p in (data[:7], data[7:])) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("headers", "payload"),
    [
        ({}, PAGE.encode()),
        ({"Content-Encoding": "gzip"}, GZIPPED),
        ({"Content-Encoding": "X-GZIP"}, GZIPPED),
        (
            {"Content-Encoding": "gzip"},
            GZIPPED[:0] + gzip.compress(PAGE[:9].encode()) + gzip.compress(PAGE[9:].encode()),
        ),
        ({"Content-Encoding": "gzip"}, PAGE.encode()),  # which the crawler took off
        ({"Content-Encoding": "deflate"}, zlib.compress(PAGE.encode())),
        ({"Content-Encoding": "deflate"}, DEFLATED),
        ({"Content-Encoding": "deflate"}, PAGE.encode()),
        ({"Content-Encoding": "gzip, gzip"}, gzip.compress(GZIPPED)),
        ({"Content-Encoding": "identity"}, PAGE.encode()),
        ({"Content-Encoding": "br"}, PAGE.encode()),
        ({"Transfer-Encoding": "chunked"}, chunks(PAGE.encode())),
        ({"Transfer-Encoding": "Chunked"}, chunks(PAGE.encode(), ";name=value")),
        ({"Transfer-Encoding": "chunked"}, PAGE.encode()),
        ({"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"}, chunks(GZIPPED)),
    ],
)
def test_encodings(tmp_path, headers, payload):
    archive = Archive().add(payload, [*HTML, *headers.items()])
    assert text_of(tmp_path, archive).strip() == SEEN


@pytest.mark.parametrize(
    ("declared", "payload", "seen"),
    [
        ("text/html; charset=ISO-8859-1", "<p>être</p>".encode("latin-1"), "être"),
        ("text/html;charset='latin1'", b"<p>\x93quoted\x94 \x80</p>", "“quoted” €"),
        ('TEXT/HTML; Charset="Shift_JIS"', "<p>日本語①</p>".encode("cp932"), "日本語①"),
        ("text/html", '<meta charset="shift_jis"><p>日本語</p>'.encode("cp932"), "日本語"),
        ("text/html", '<meta charset="utf-8"><p>日本語</p>'.encode(), "日本語"),
        ("text/html; charset=no-such", "<p>日本語</p>".encode(), "日本語"),
        ("text/html", "<p>日本語</p>".encode(), "日本語"),
        ("text/html", "<p>être</p>".encode("latin-1"), "être"),
        ("text/html; charset=utf-8", "<p>être</p>".encode("utf-16"), "être"),  # its byte order mark says so
        ("text/plain; charset=shift_jis", "日本語 <p>".encode("cp932"), "日本語 <p>"),
        ("text/plain", b"\xef\xbb\xbfone", "one"),
        ("text/plain", b"caf\xe9", "café"),
        ("text/markdown; charset=utf-8", b"# caf\xe9", "# caf\ufffd"),
        ("application/xhtml+xml", b"<html><p>x &amp; y</p></html>", "x & y"),
    ],
)
def test_charsets(tmp_path, declared, payload, seen):
    assert text_of(tmp_path, Archive().add(payload, [("Content-Type", declared)])).strip() == seen


@pytest.mark.parametrize("number", [5, 6, 1000])
def test_a_payload_has_at_most_five_encodings(tmp_path, number):
    packed = PAGE.encode()
    for _ in range(number):
        packed = gzip.compress(packed)
    encodings = ("Content-Encoding", ", ".join(["gzip", "identity"] * number))
    path = tmp_path / "a.warc.gz"
    path.write_bytes(Archive().add(packed, [*HTML, encodings]).add(b"<p>seen", HTML).data)
    rows, documents = documents_of(path)
    assert len(rows) == (2 if number == 5 else 1)
    assert documents.left_out_records == ({} if number == 5 else {"undecodable": 1})


def test_many_members_of_gzip_take_linear_time(tmp_path):
    """zlib copies all bytes behind a member, which took a time that grew with the square of the payload."""
    member, started = gzip.compress(b"<p>word "), time.monotonic()
    path = tmp_path / "a.warc.gz"
    path.write_bytes(Archive().add(member * 200_000, [*HTML, ("Content-Encoding", "gzip")]).data)
    ((_, text, *_),), _ = documents_of(path)
    assert text.count("word") == 200_000 and time.monotonic() - started < 30


def test_a_reading_that_is_stopped_ends_before_the_file(tmp_path, monkeypatch):
    """The one who stops waits for the thread that reads, which may find no document in all of a large file."""
    archive = Archive().add(b"<p>seen", HTML)
    for _ in range(50):
        archive.add(b"", [("Host", "x")], kind="request", status="GET / HTTP/1.1")
    path, parsed, stop = tmp_path / "a.warc.gz", [], threading.Event()
    path.write_bytes(archive.data)
    found = warc._parsed

    def waits(header, content):
        parsed.append(header)
        if len(parsed) == 10:
            stop.wait(10)
        return found(header, content)

    monkeypatch.setattr(warc, "_parsed", waits)
    work = ahead._StepQueue(iter([]), 1, lambda _: 1)
    reader = open_documents(path)._readers[0]

    def read():
        ahead._work.set(work)
        with contextlib.suppress(ahead.StoppedError):
            list(reader._rows(Noted(False)))

    thread = threading.Thread(target=read)
    thread.start()
    while thread.is_alive() and len(parsed) < 10:
        time.sleep(0.01)
    work.stop()
    stop.set()
    thread.join(10)
    assert not thread.is_alive() and len(parsed) < 15


def test_what_is_no_document_is_counted(tmp_path, capsys):
    cut = GZIPPED[:-12]
    archive = (
        Archive()
        .add(b"x: y", kind="warcinfo", Content_Type="application/warc-fields")
        .add(b"", [("Host", "x")], kind="request", status="GET / HTTP/1.1")
        .add(b"a: b", kind="metadata", Content_Type="application/warc-fields")
        .add(b"", HTML, kind="revisit")
        .add(b"<p>gone", HTML, status="404 Not Found")
        .add(b"<p>moved", HTML, status="301 Moved")
        .add(b"\x89PNG", [("Content-Type", "image/png")])
        .add(b"body {}", [("Content-Type", "text/css")])
        .add(b"<p>of no type", [])
        .add(b"127.0.0.1", kind="response", url="dns:example.org", Content_Type="text/dns")
        .add(b"part two", kind="continuation", Content_Type="application/http")
        .add(b"part one", HTML, WARC_Segment_Number="1")
        .add(b"what", kind="unheard-of", Content_Type="text/plain")
        .add(cut, [*HTML, ("Content-Encoding", "gzip")])
        .add(PAGE.encode(), [*HTML, ("Content-Encoding", "rot13")])
        .add(chunks(PAGE.encode())[:20], [*HTML, ("Transfer-Encoding", "chunked")])
        .add(b"\xff\xd8", kind="resource", Content_Type="image/jpeg")
        .add(b"<p>found to be HTML", [], WARC_Identified_Payload_Type="text/html")
        .add(cut, [*HTML, ("Content-Encoding", "gzip")], WARC_Truncated="length")
        .add(b"<p>of a disk", kind="resource", url="file:///x", Content_Type="text/html")
        .add(b"", HTML)
    )
    path = tmp_path / "all.warc.gz"
    path.write_bytes(archive.data)
    rows, documents = documents_of(path)
    assert [row[1].strip() for row in rows] == ["found to be HTML", "Größe £5, être<", "of a disk", ""]
    expected = {
        "warcinfo": 1,
        "request": 1,
        "metadata": 1,
        "revisit": 1,
        "http_status": 2,
        "not_text": 4,
        "no_http": 1,
        "segment": 2,
        "other": 1,
        "undecodable": 3,
    }
    assert documents.left_out_records == expected
    report = dedup(path, output=tmp_path / "out").report
    assert report["left_out_records"] == expected and list(report["left_out_records"]) == sorted(expected)
    assert main(["dedup", str(path), "--dry-run"]) == 0
    (line,) = re.findall(r"^left out +(.*)", capsys.readouterr().out, re.M)
    assert line.startswith("2 non-2xx responses, 1 metadata record, ") and "4 non-text payloads" in line


def damaged(archive, packed):
    """Ways to break the third of several records: name, bytes, and what is said of it."""
    data, (start, stop) = archive.data, archive.ends[2:4]
    flipped = bytearray(data)
    flipped[stop - 30] ^= 255
    yield "bytes", bytes(flipped), "gzip member" if packed else "WARC-Block-Digest"
    yield "shorter", data[: stop - 60] + data[stop - 20 :], "gzip member" if packed else "longer or shorter"
    yield "zeros", data[:start] + bytes(stop - start) + data[stop:], "zeros" if packed else "not a WARC record"
    yield "foreign", data[:start] + b"what is this" * 9 + data[stop:], "gzip member" if packed else "not a WARC record"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("number", range(4))
def test_a_damaged_record(tmp_path, packed, number):
    archive = Archive(packed).pages()
    _, data, words = list(damaged(archive, packed))[number]
    path = tmp_path / ("broken.warc.gz" if packed else "broken.warc")
    path.write_bytes(data)
    with pytest.raises(InputError) as found:
        dedup(path, output=tmp_path / "out", recipe=Recipe(shingles=Shingles(2)))
    message = str(found.value)
    assert f"{path}: the record at byte {archive.ends[2]:,} " in message and words in message and "\n" not in message
    assert not (tmp_path / "out").exists()

    result = dedup(
        path,
        id_column="url",
        output=tmp_path / "out",
        recipe=Recipe(shingles=Shingles(2)),
        reading=Reading(on_error="skip"),
    )
    urls = [f"http://example.org/{i}" for i in range(6)]
    urls.pop(2)
    assert result.documents["id"].to_pylist() == urls
    (entry,) = result.skipped.to_pylist()
    assert entry["row"] == 3 and entry["rows"] is None and f"byte {archive.ends[2]:,}" in entry["reason"]
    assert result.report["counts"]["skipped"] == 1
    urls_kept = [r.headers["WARC-Target-URI"] for r in ArchiveIterator(str(tmp_path / "out" / "kept" / path.name))]
    assert urls_kept == result.kept["id"].to_pylist()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("beyond", [1, 60, -3])
def test_a_file_that_breaks_off(tmp_path, packed, beyond):
    """In the middle of a header, of a record, and of the line ends behind the last one."""
    archive = Archive(packed).pages()
    start = archive.ends[-2] if beyond < 0 else archive.ends[3]
    path = tmp_path / "cut.warc.gz"
    path.write_bytes(archive.data[: start + beyond if beyond > 0 else beyond])
    with pytest.raises(InputError, match=f"cut.warc.gz: the record at byte {start:,} is cut off"):
        documents_of(path)
    rows, documents = documents_of(path, on_error="skip")
    assert len(rows) == (5 if beyond < 0 else 3) and documents.skipped.num_rows == 1
    workers = Workers(work_dir=tmp_path / "work", number=1)
    report = dedup(path, output=tmp_path / "out", workers=workers, reading=Reading(on_error="skip")).report
    assert report["counts"]["skipped"] == 1
    assert pq.read_table(tmp_path / "out" / "skipped.parquet").to_pylist() == documents.skipped.to_pylist()


def test_bytes_that_were_changed(tmp_path):
    """Any file ends in documents or in one line, and what is kept of it is read again."""
    draw, read = random.Random(7), 0
    for number in range(120):
        packed = number % 3 == 0
        archive = Archive(packed).pages(TEXTS[:2]).add(GZIPPED, [*HTML, ("Content-Encoding", "gzip")])
        archive.add(chunks(PAGE.encode()), [*HTML, ("Transfer-Encoding", "chunked")])
        path = tmp_path / ("x.warc.gz" if packed else "x.warc")
        path.write_bytes(mutated(archive.data, draw))
        for on_error in ("stop", "skip"):
            try:
                rows, documents = documents_of(path, on_error=on_error)
            except NeardupError as error:
                assert on_error == "stop" and "\n" not in str(error)
                continue
            read += 1
            kept = tmp_path / f"{number}-{on_error}"
            documents.write_kept(kept, np.ones(len(rows), bool))
            assert [row[1] for row in documents_of(kept)[0]] == [row[1] for row in rows]
    assert read > 120


def walked(data):
    """All records of some bytes, and what is wrong with them."""
    records, found = Records(io.BytesIO(data)), []
    while True:
        try:
            framed = records.next(lambda header, length: length % 2)
        except DamagedRecordError as error:
            found.append(error.place)
            if not records.resume():
                return found
            continue
        if framed is None:
            return found
        found.append((framed.start, framed.stop, framed.header, framed.content))


@pytest.mark.parametrize("size", [7, 64, 1000])
def test_records_do_not_depend_on_how_much_is_read_at_a_time(monkeypatch, size):
    for packed in (True, False):
        archive = Archive(packed).pages()
        plain = Archive(packed=False).pages().data
        broken = [data for _, data, _ in damaged(archive, packed)]
        odd = b"".join(gzip.compress(plain[i : i + 700]) for i in range(0, len(plain), 700))
        for data in (archive.data, *broken, gzip.compress(plain), odd, archive.data[:-9], b"", b"WAR", b"no\r\n\r\n"):
            expected = walked(data)
            with monkeypatch.context() as patched:
                patched.setattr(warc_records, "CHUNK", size)
                assert walked(data) == expected


def test_a_record_that_is_too_long(tmp_path):
    archive = Archive().pages(TEXTS[:2]).add(b"<p>" + b"long " * 1000, HTML).pages(TEXTS[2:3])
    packed = gzip.compress(b"<p>" + b"long " * 1000)
    archive.add(packed, [*HTML, ("Content-Encoding", "gzip")])
    path = tmp_path / "long.warc.gz"
    path.write_bytes(archive.data)
    with pytest.raises(InputError, match=f"at byte {archive.ends[2]:,} is longer than 2,000 bytes"):
        dedup(path, reading=Reading(max_document_bytes=2000))
    result = dedup(path, output=tmp_path / "out", reading=Reading(max_document_bytes=2000, on_error="skip"))
    assert [(e["row"], e["rows"]) for e in result.skipped.to_pylist()] == [(3, 1), (5, 1)]
    assert result.documents["row"].to_pylist() == [1, 2, 4]
    parts = archive.parts()
    assert (tmp_path / "out" / "kept" / "long.warc.gz").read_bytes() == parts[0] + parts[1] + parts[3]


def test_dates(tmp_path):
    given = ["2024", "2024-06", "2024-05-01T00:00:00.5Z", "2024-05-01T00:00:00Z", "soon", "2024-05-01T02:00:00+01:00"]
    given += ["0001-01-01T00:00:00+01:00"]  # before all years that there are
    archive = Archive()
    for date in given:
        archive.add(b"<p>x", HTML, WARC_Date=date)
    (tmp_path / "dates.warc.gz").write_bytes(archive.data)
    rows, _ = documents_of(tmp_path / "dates.warc.gz")
    found = [row[3] and row[3].isoformat() for row in rows]
    assert found == [
        *("2024-01-01T00:00:00+00:00", "2024-06-01T00:00:00+00:00", "2024-05-01T00:00:00.500000+00:00"),
        *("2024-05-01T00:00:00+00:00", None, "2024-05-01T01:00:00+00:00", None),
    ]


def test_urls_that_come_again(tmp_path):
    path = tmp_path / "again.warc.gz"
    path.write_bytes(Archive().pages(TEXTS[:1]).pages(TEXTS[1:2]).data)
    with pytest.raises(InputError, match=r"'http://example.org/0' stands for 2 documents .*record 1.*record 2"):
        dedup(path, id_column="url")
    with pytest.raises(InputError, match=r"no column 'uri'; it has id, url, date, content_type, text"):
        dedup(path, id_column="uri")


def test_html_of_a_reference_set_in_warc(tmp_path):
    (tmp_path / "known.warc.gz").write_bytes(Archive().pages(TEXTS[:1]).data)
    table = {"id": ["a", "b"], "text": [f"<title>0</title><p>{TEXTS[0]}", "<p>another one"]}
    found = dedup(table, id_column="id", against=str(tmp_path / "known.warc.gz"), reading=Reading(html=True))
    assert found.removed["id"].to_pylist() == ["a"]


def test_without_fastwarc(tmp_path):
    (tmp_path / "x.warc").write_bytes(Archive(packed=False).pages().data)
    code = "import sys; sys.modules['fastwarc'] = None; import neardup_gpu; neardup_gpu.dedup('x.warc')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert "InputError" in last and "pip install 'neardup-gpu[warc]'" in last


@pytest.mark.parametrize("encoding", ["none", "UTF-8"])
def test_what_servers_call_an_encoding_and_is_none(tmp_path, encoding):
    archive = Archive().add(b"<p>seen", [*HTML, ("Content-Encoding", encoding)])
    assert text_of(tmp_path, archive).strip() == "seen"


def test_a_cut_payload_without_the_header_of_zlib(tmp_path):
    body = zlib.compress(b"<p>" + b" ".join(b"%d" % (i * i) for i in range(2000)))[2:600]
    archive = Archive().add(body, [*HTML, ("Content-Encoding", "deflate")], WARC_Truncated="length")
    assert text_of(tmp_path, archive).strip().startswith("0 1 4 9 16 25 ")
