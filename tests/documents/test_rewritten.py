"""Kept rows in another format, in files of another size, or as ids alone: in memory and by tasks, from every input."""

import datetime
import decimal
import gzip
import io
import json
import sys

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from flat import flat

from neardup_gpu import Reading, Workers, Writing, dedup
from neardup_gpu.cli.process import main
from neardup_gpu.documents import open_documents
from neardup_gpu.documents.rewritten import new_names
from neardup_gpu.errors import ArgumentTypeError, InputError, ParameterError
from neardup_gpu.jobs import info
from neardup_gpu.results.explanation import explain

KINDS = ["parquet", "jsonl", "jsonl.gz", "jsonl.zst", "arrow"]
WORDS = "the quick brown fox jumps over lazy dogs while seven wizards box with jolly farmers".split()  # noqa: SIM905


def rows(start, stop):
    """Documents, each with a copy beside it, and columns of several types."""
    made = []
    for i in range(start, stop):
        text = " ".join(WORDS[(i // 2 * j + j) % 15] for j in range(40)) + f" {i // 2} {i // 20}"
        row = {"id": f"r{i:03}", "text": text, "n": i, "share": i / 4, "date": "2024-05-01T00:00:00Z", "none": None}
        row["tags"] = [] if i % 3 else ["a", "ü"]
        row["meta"] = {"source": "x", "deep": {"k": i}} if i % 2 else {"length": 1.5}
        if i == stop - 1:
            row["late"] = True  # a column that the last line alone has
        made.append(row)
    return made


def read_all(folder):
    """All rows below a folder, by file."""
    found = {}
    for path in sorted(folder.rglob("*.*")):
        name = path.relative_to(folder).as_posix()
        if name.endswith(".parquet"):
            found[name] = pq.read_table(path).to_pylist()
        elif name.endswith(".arrow"):
            found[name] = pa.ipc.open_file(path).read_all().to_pylist()
        else:
            packing = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
            with pa.input_stream(str(path), compression=packing) as stream:
                found[name] = [json.loads(line) for line in stream.read().splitlines()]
    return found


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Two files of JSON lines, one compressed and below a folder; the last line of each lacks its line feed."""
    folder = tmp_path_factory.mktemp("lines")
    for name, made in (("a.jsonl", rows(0, 60)), ("sub/b.jsonl.gz", rows(60, 100))):
        (folder / name).parent.mkdir(exist_ok=True)
        text = "\n".join(json.dumps(row) for row in made).encode()
        (folder / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    return folder


@pytest.fixture(scope="module")
def expected(lines):
    found = dedup(lines, id_column="id")
    kept = set(found.kept["id"].to_pylist())
    assert 10 < len(kept) < 70
    return [row for row in rows(0, 60) + rows(60, 100) if row["id"] in kept]


def filled(row, names):
    """The row with all columns, and all members of `meta`."""
    row = {name: row.get(name) for name in names}
    return row | {"meta": {"length": None, "source": None, "deep": None} | row["meta"]}


@pytest.mark.quick
@pytest.mark.parametrize("by_tasks", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_lines_in_every_format(lines, expected, tmp_path, kind, by_tasks):
    out, options = tmp_path / "out", {"id_column": "id", "output_format": kind}
    if by_tasks:
        workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=8000, partitions=2)
        flat(dedup, lines, output=out, workers=workers, **options)
    else:
        flat(dedup, lines, output=out, **options)
    found = read_all(out / "kept")
    parts = ["a.part-00000", "a.part-00001", "a.part-00002"] if by_tasks else ["a"]
    assert [name for name in found if name.startswith("a.")][:3] == [f"{name}.{kind}" for name in parts]
    assert f"sub/b.{kind}" in found
    written = [row for each in found.values() for row in each]
    if kind.startswith("jsonl"):
        assert written == expected
    else:
        names = ["id", "text", "n", "share", "date", "none", "tags", "meta", "late"]
        assert [filled(row, names) for row in expected] == [row | {"meta": {**row["meta"]}} for row in written]
        schemas = {str(pq.read_schema(path)) for path in out.rglob("kept/**/*.parquet")}
        assert len(schemas) <= 1  # one for all files
    info.check(out)
    assert info.describe(out)["report"]["written"] == {"output_format": kind}
    assert open_documents(out, id_column="id").num_files == len(found)
    removed = pq.read_table(
        out / ("documents" if by_tasks else "documents.parquet"), columns=["id", "kept"]
    ).to_pylist()
    assert not explain(out, next(row["id"] for row in removed if not row["kept"])).kept
    dedup(lines, id_column="id", output=out, writing=Writing(overwrite=True))  # nothing there is foreign
    assert sorted(read_all(out / "kept")) == ["a.jsonl", "sub/b.jsonl.gz"]


@pytest.mark.quick
@pytest.mark.parametrize("by_tasks", [False, True])
@pytest.mark.parametrize("kind", [None, "parquet", "jsonl", "arrow"])
def test_files_of_about_one_size(lines, expected, tmp_path, kind, by_tasks):
    out, options = tmp_path / "out", {"id_column": "id", "output_format": kind, "shard_bytes": "3kB"}
    if by_tasks:
        workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=8000, partitions=2)
        flat(dedup, lines, output=out, workers=workers, **options)
    else:
        flat(dedup, lines, output=out, **options)
    found = read_all(out / "kept")
    assert [row["id"] for each in found.values() for row in each] == [row["id"] for row in expected]
    first, second = ("part-00000-00000", "part-00000-00001") if by_tasks else ("part-00000", "part-00001")
    assert next(iter(found)) == f"{first}.{kind or 'jsonl'}"
    if kind != "parquet":  # small row groups are packed too well
        assert list(found)[1] == f"{second}.{kind or 'jsonl'}"
        sizes = [path.stat().st_size for path in sorted((out / "kept").iterdir())]
        assert all(3000 <= size < 12000 for size in sizes[:1]) and max(sizes) < 12000
    info.check(out)


@pytest.mark.quick
@pytest.mark.parametrize("by_tasks", [False, True])
def test_ids_only(lines, expected, tmp_path, by_tasks):
    out = tmp_path / "out"
    if by_tasks:
        workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=8000, partitions=2)
        dedup(lines, id_column="id", output=out, workers=workers, writing=Writing(ids_only=True))
        ids = pq.read_table(out / "kept_ids")
    else:
        dedup(lines, id_column="id", output=out, writing=Writing(ids_only=True))
        ids = pq.read_table(out / "kept_ids.parquet")
    assert ids.column_names == ["id"] and ids["id"].to_pylist() == [row["id"] for row in expected]
    assert not (out / "kept").exists()
    info.check(out)
    with pytest.raises(InputError, match="without a folder kept/, which ids_only and some verbs"):
        open_documents(out)
    assert explain(out, expected[0]["id"]).kept
    dedup(lines, id_column="id", output=out, writing=Writing(overwrite=True))


def test_a_stream_has_ids_at_least(tmp_path):
    table = pa.table({"id": [7, 8, 9], "text": ["one two three", "one two three", "four"]})
    with pytest.raises(InputError, match=r"a stream cannot be read again .* or ids_only=True"):
        dedup(table.to_reader(), output=tmp_path / "out", id_column="id")
    dedup(table.to_reader(), output=tmp_path / "out", id_column="id", writing=Writing(ids_only=True))
    assert pq.read_table(tmp_path / "out" / "kept_ids.parquet").to_pydict() == {"id": [7, 9]}


TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": pa.array(["one ü two", "one ü two", "else\n\ud7ff"], pa.large_string()),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "view": pa.array(["x", "y", None], pa.string_view()),
        "when": pa.array([datetime.datetime(2024, 5, 1, 2, 3, 4, 5)] * 3, pa.timestamp("us", "UTC")),
        "day": pa.array([datetime.date(2024, 5, 1)] * 3),
        "x": pa.array([0.1, float("inf"), float("nan")]),
        "deep": pa.array([[{"y": [float("nan"), 1.5]}]] * 3),
    }
)
AS_JSON = [
    {
        "id": i,
        "text": text,
        "kind": "a",
        "view": view,
        "when": "2024-05-01T02:03:04.000005+00:00",
        "day": "2024-05-01",
        "x": x,
        "deep": [{"y": [None, 1.5]}],
    }
    for i, text, view, x in ((1, "one ü two", "x", 0.1), (3, "else\n\ud7ff", None, None))
]


@pytest.mark.quick
@pytest.mark.parametrize("source", ["memory", "parquet", "arrow"])
def test_types_of_arrow(tmp_path, source):
    given = TABLE
    if source == "parquet":
        pq.write_table(TABLE.set_column(3, "view", TABLE["view"].cast(pa.string())), tmp_path / "in.parquet")
        given = tmp_path / "in.parquet"
    elif source == "arrow":
        with pa.ipc.new_file(str(tmp_path / "in.arrow"), TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=2)
        given = tmp_path / "in.arrow"
    for kind in KINDS:
        dedup(given, id_column="id", output=tmp_path / kind, writing=Writing(output_format=kind))
        (found,) = read_all(tmp_path / kind / "kept").values()
        if kind.startswith("jsonl"):
            assert found == AS_JSON
        else:
            columns = ["id", "text", "kind", "view", "when", "day"]
            stays = TABLE.select(columns).to_pylist()[::2]
            assert [{name: row[name] for name in columns} for row in found] == stays


def test_what_a_format_cannot_hold_is_said_before_all_work(tmp_path):
    raw = pa.table({"text": ["a", "b"], "price": pa.array([decimal.Decimal("1.50")] * 2)})
    pq.write_table(raw, tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"column 'price' of type decimal128\(3, 2\) cannot be written as JSON lines"):
        dedup(tmp_path / "in.parquet", output=tmp_path / "out", writing=Writing(output_format="jsonl"))
    gap = pa.table({"text": ["a", "b"], "gap": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval())})
    with pytest.raises(InputError, match="column 'gap' of type month_day_nano_interval cannot be written as Parquet"):
        dedup(gap, output=tmp_path / "out", writing=Writing(output_format="parquet"))
    for name, kind in (("one", pa.int64()), ("two", pa.string())):
        pq.write_table(pa.table({"text": ["a"], "n": pa.array([1]).cast(kind)}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="column 'n' holds int64 in some rows and string in others"):
        dedup(
            [tmp_path / "one.parquet", tmp_path / "two.parquet"],
            output=tmp_path / "out",
            writing=Writing(shard_bytes="1MB"),
        )
    (tmp_path / "mixed.jsonl").write_text('{"text": "a", "n": 1}\n{"text": "b", "n": "x"}\n')
    with pytest.raises(InputError, match="lines 1 to 2 cannot become a table"):
        dedup(tmp_path / "mixed.jsonl", output=tmp_path / "out", writing=Writing(output_format="parquet"))
    assert not (tmp_path / "out").exists()


def test_what_lines_cannot_hold_together_is_said_before_all_work(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a b", "n": 1}\n{"text": "c d", "n": "x"}\n')
    stages = []
    with pytest.raises(InputError, match="cannot become a table"):
        dedup(
            tmp_path / "x.jsonl",
            output=tmp_path / "out",
            progress=lambda stage, done, total: stages.append(stage),
            writing=Writing(output_format="parquet"),
        )
    assert {*stages} == {"columns"}


def test_times_that_python_lacks(tmp_path, monkeypatch):
    zone = pa.timestamp("ns", "Europe/Berlin")
    table = pa.table(
        {
            "text": ["one", "two"],
            "day": pa.array([4_000_000, None], pa.date32()),
            "when": pa.array([1_700_000_000_123_456_789, None], zone),
            "utc": pa.array([1, None], pa.timestamp("ns", "UTC")),
            "late": pa.array([2**55, None], pa.timestamp("us")),
        }
    )
    monkeypatch.setitem(sys.modules, "pandas", None)  # of which they would be objects
    dedup(table, output=tmp_path / "out", writing=Writing(output_format="jsonl"))
    first, second = (json.loads(line) for line in (tmp_path / "out/kept/part-00000.jsonl").read_text().splitlines())
    assert first == {
        "text": "one",
        "day": "12921-08-18",
        "when": "2023-11-14T23:13:20.123456789+01:00",
        "utc": "1970-01-01T00:00:00.000000001+00:00",
        "late": "3111-09-16T23:10:18.963968",
    }
    assert second == dict.fromkeys(table.column_names) | {"text": "two"}
    nested = pa.table({"text": ["one"], "days": pa.array([[4_000_000]], pa.list_(pa.date32()))})
    dedup(nested, output=tmp_path / "nested", writing=Writing(output_format="jsonl"))
    (line,) = (tmp_path / "nested/kept/part-00000.jsonl").read_text().splitlines()
    assert json.loads(line)["days"] == ["12921-08-18"]


def test_lines_that_only_the_slower_parser_reads(tmp_path):
    text = b'{"text": "one \\u0001\ttwo", "a": 1, "a": 2}\n\n{"text": "three", "b": [1, 2.5]}\nno json\n'
    (tmp_path / "odd.jsonl").write_bytes(text)
    dedup(
        tmp_path / "odd.jsonl",
        output=tmp_path / "out",
        reading=Reading(on_error="skip"),
        writing=Writing(output_format="parquet"),
    )
    assert pq.read_table(tmp_path / "out" / "kept").to_pylist() == [
        {"text": "one \x01\ttwo", "a": 2, "b": None},
        {"text": "three", "a": None, "b": [1.0, 2.5]},
    ]


NOT_UTF8 = pa.array([b"a \xff b"]).view(pa.string())


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ({"text": NOT_UTF8}, r"'text' holds bytes that are not UTF-8 \(b'a \\xff b'\)"),
        ({"text": ["a"], "raw": [b"\xff"]}, r"'raw' holds bytes that are not UTF-8 \(b'\\xff'\)"),
        ({"text": ["a"], "more": pa.ListArray.from_arrays([0, 1], NOT_UTF8)}, "'more' holds bytes that are not UTF-8"),
    ],
)
def test_what_is_not_utf8_cannot_become_json(columns, shown, tmp_path):
    with pytest.raises(InputError, match=f"column {shown}, which JSON lines cannot hold"):
        dedup(pa.table(columns), output=tmp_path / "out", writing=Writing(output_format="jsonl"))


def test_csv_that_is_not_utf8_cannot_become_json(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text,more\none,\xff\n")
    with pytest.raises(InputError, match=r"a\.csv: column 'more' holds bytes that are not UTF-8"):
        dedup(tmp_path / "a.csv", output=tmp_path / "out", writing=Writing(output_format="jsonl"))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_csv_with_two_columns_of_one_name(kind, tmp_path):
    """They have no place in rows by names, and no column is left out in silence."""
    (tmp_path / "a.csv").write_text("id,text,id\n1,one two,3\n")
    dedup(tmp_path / "a.csv", output=tmp_path / "own")
    assert (tmp_path / "own/kept/a.csv").read_text() == "id,text,id\n1,one two,3\n"
    with pytest.raises(InputError, match=r"a\.csv: several columns are called 'id'"):
        dedup(tmp_path / "a.csv", output=tmp_path / "out", writing=Writing(output_format=kind))


LONG = "123456789012345678901234567890"


@pytest.mark.quick
def test_csv(tmp_path):
    (tmp_path / "a.csv").write_text('id,text,n,zip,empty\n1,"one, two",5,01234,\n2,"one, two",-6,99,\n')
    (tmp_path / "b.csv").write_text("id,text,n,long,extra\n3,other,2.5,123456789012345678901234567890,x\n")
    for kind in ("parquet", "jsonl"):
        dedup(
            tmp_path,
            id_column="id",
            output=tmp_path / f"{kind}.out",
            reading=Reading(glob="*.csv"),
            writing=Writing(output_format=kind),
        )
        found = read_all(tmp_path / f"{kind}.out" / "kept")
        assert found == {
            f"a.{kind}": [
                {"id": 1, "text": "one, two", "n": 5.0, "zip": "01234", "empty": None, "long": None, "extra": None}
            ],
            f"b.{kind}": [{"id": 3, "text": "other", "n": 2.5, "zip": None, "empty": None, "long": LONG, "extra": "x"}],
        }


@pytest.mark.parametrize("by_tasks", [False, True])
def test_csv_of_several_files(tmp_path, by_tasks):
    """What are numbers in one file and none in another are strings, as they stand."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,text,n\n1,one two,5\n")
    (tmp_path / "in" / "b.csv").write_text("id,text,n\nx2,three four,7\n")
    options = {"id_column": "id", "output": tmp_path / "out", "output_format": "jsonl"}
    if by_tasks:
        workers = Workers(work_dir=str(tmp_path / "work"), number=1, slice_bytes=1)
        flat(dedup, tmp_path / "in", **options, workers=workers)
    else:
        flat(dedup, tmp_path / "in", **options)
    kept = [json.loads(path.read_text()) for path in sorted((tmp_path / "out/kept").iterdir())]
    assert kept == [{"id": "1", "text": "one two", "n": 5}, {"id": "x2", "text": "three four", "n": 7}]


@pytest.mark.quick
@pytest.mark.parametrize("by_tasks", [False, True])
def test_text_files(tmp_path, by_tasks):
    (tmp_path / "in").mkdir()
    for name, text in (("a.txt", "one two é"), ("b.html", "<p>other &amp; text"), ("c.txt", "one two é")):
        (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    if by_tasks:
        workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=1)
        dedup(tmp_path / "in", output=out, workers=workers, writing=Writing(output_format="jsonl"))
    else:
        dedup(tmp_path / "in", output=out, writing=Writing(output_format="jsonl"))
    found = [row for each in read_all(out / "kept").values() for row in each]
    assert [row | {"text": row["text"].strip()} for row in found] == [
        {"path": "a.txt", "text": "one two é"},
        {"path": "b.html", "text": "other & text"},
    ]
    with pytest.raises(ParameterError, match="shard_bytes: text is written file by file; name a format"):
        dedup(tmp_path / "in", output=tmp_path / "more", writing=Writing(shard_bytes=10**6))


def test_pages_of_a_crawl(tmp_path):
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    with open(tmp_path / "crawl.warc.gz", "wb") as file:
        writer = WARCWriter(file, gzip=True)
        for number, page in enumerate((b"<p>one", b"<p>one", b"<p>two")):
            headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            url, date = f"http://example.org/{number}", {"WARC-Date": "2024-05-01T00:00:00Z"}
            record = writer.create_warc_record(
                url, "response", io.BytesIO(page), http_headers=headers, warc_headers_dict=date
            )
            writer.write_record(record)
    dedup(
        tmp_path / "crawl.warc.gz", id_column="url", output=tmp_path / "out", writing=Writing(output_format="parquet")
    )
    table = pq.read_table(tmp_path / "out" / "kept" / "crawl.parquet")
    assert table.column_names == ["id", "url", "date", "content_type", "text"]
    assert [text.strip() for text in table["text"].to_pylist()] == ["one", "two"]
    assert table["url"].to_pylist() == ["http://example.org/0", "http://example.org/2"]


def test_what_only_names_of_files_tell_stays_apart(tmp_path):
    for name in ("lang=de", "lang=en"):
        (tmp_path / "in" / name).mkdir(parents=True)
        pq.write_table(pa.table({"text": [name]}), tmp_path / "in" / name / "x.parquet")
    for workers in (None, Workers(work_dir=str(tmp_path / "work"), number=1)):
        with pytest.raises(ParameterError, match="shard_bytes: would put the rows of different lang= together"):
            dedup(tmp_path / "in", output=tmp_path / "out", workers=workers, writing=Writing(shard_bytes="1MB"))
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict({name: datasets.Dataset.from_dict({"text": [name]}) for name in ("train", "test")})
    with pytest.raises(ParameterError, match="the rows of the splits train, test together"):
        dedup(splits, output=tmp_path / "out", writing=Writing(shard_bytes="1MB"))
    dedup(splits, output=tmp_path / "out", writing=Writing(output_format="jsonl"))
    assert sorted(path.name for path in (tmp_path / "out/kept").iterdir()) == ["test.jsonl", "train.jsonl"]


def test_names():
    names = ["a.jsonl", "a.ndjson", "a.jsonl.json"]
    assert new_names(names, "parquet") == [f"{name}.parquet" for name in names]
    names = ["a.jsonl", "a.jsonl.gz", "k=1/b.json.zst", "c.d.parquet", "e.warc.wet.gz", "f.warc.gz"]
    assert new_names(names, "parquet") == [
        *("a.jsonl.parquet", "a.jsonl.gz.parquet", "k=1/b.parquet", "c.d.parquet", "e.parquet", "f.parquet")
    ]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"output_format": "csv"}, ParameterError, "output_format 'csv' is not one of parquet, jsonl, jsonl.gz"),
        ({"output_format": 3}, ArgumentTypeError, "output_format 3 is not one of"),
        ({"shard_bytes": "big"}, ParameterError, "shard_bytes 'big' is not a size"),
        ({"ids_only": 1}, ArgumentTypeError, "ids_only: 1; give True or False"),
        ({"ids_only": True, "shard_bytes": 5}, ParameterError, "shard_bytes: no rows are written with ids_only"),
    ],
)
def test_wrong_options(tmp_path, options, kind, message):
    with pytest.raises(kind, match=message):
        flat(dedup, texts=["a"], output=tmp_path / "out", **options)


def test_a_line_of_json_for_pipelines(lines, tmp_path, monkeypatch, capsys):
    def run(*words):
        status = main(["dedup", str(lines), "--id-column", "id", "-o", "out", "--json", *words])
        said, complaints = capsys.readouterr()
        (line,) = said.splitlines()
        return status, json.loads(line), complaints

    monkeypatch.chdir(tmp_path)
    status, said, _ = run("--output-format", "parquet", "--shard-bytes", "1MB")
    assert status == 0 and list(said)[:5] == ["status", "output", "seconds", "counts", "recall"]
    assert said["status"] == "done" and said["output"] == "out" and said["seconds"] > 0
    assert said["written"] == {"output_format": "parquet", "shard_bytes": 10**6}
    assert said["counts"]["documents"] == 100 and (tmp_path / "out" / "kept" / "part-00000.parquet").exists()

    status, said, complaints = run()
    last = complaints.strip().splitlines()[-1].removeprefix("neardup: ")
    assert status == 2 and said == {"status": "failed", "error": last} and "--overwrite" in last
