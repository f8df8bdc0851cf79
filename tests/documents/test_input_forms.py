"""Every form in which documents come gives the same decisions: files, tables, servers, and what other tools write."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from flat import flat
from servers import Files, Hub, Whole, serving

from neardup_gpu import NeardupError, Reading, Recipe, Workers, dedup, open_documents
from neardup_gpu.documents.ahead import in_order
from neardup_gpu.documents.batches import size_of
from neardup_gpu.documents.contract import WHOLE
from neardup_gpu.errors import InputError
from neardup_gpu.store.uris import file_system, impatient

WORDS = ["the", "quick,", '"brown"', "fox\tjumps", "over\nthe", "lazy", "dog", "and", "then", "some", "more", "of it"]


def rows():
    """Documents in groups of near-duplicates, with all that CSV has to quote."""
    found = []
    for i in range(60):
        group, copy = divmod(i, 3)
        words = [f"{word}{group}" for word in WORDS] + ["é", "ü"] + [f"again{copy}" if copy == 2 else "again"]
        found.append({"id": f"d{i}", "text": " ".join(words), "stars": (i * 7) % 11, "date": f"2024-0{i % 9 + 1}-01"})
    found.append({"id": "empty", "text": "", "stars": 3, "date": "2024-01-01"})
    return found


ROWS = rows()
TABLE = pa.Table.from_pylist(ROWS)
NESTED = [
    {"id": row["id"], "text": row["text"], "source": "made", "added": "2024-05-01T00:00:00.000Z"}
    | {"created": row["date"], "metadata": {"stars": row["stars"], "url": f"https://example.org/{row['id']}"}}
    for row in ROWS
]


def lines(found):
    return "".join(json.dumps(row) + "\n" for row in found).encode()


def packed(data, compression):
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, compression) as packer:
        packer.write(data)
    return stream.getvalue().to_pybytes()


def delimited(delimiter):
    import csv
    import io

    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(ROWS[0])
    writer.writerows([row.values() for row in ROWS])
    return out.getvalue().encode()


def written(folder, name, data):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def datasets():
    return pytest.importorskip("datasets")


def in_files(folder, count, write):
    for i, part in enumerate(np.array_split(np.arange(len(ROWS)), count)):
        write(TABLE.take(part), folder / f"part-{i}")
    return folder


FORMS = {
    "arrow": lambda path: feather.write_feather(TABLE, path / "d.arrow") or path / "d.arrow",
    "jsonl": lambda path: written(path, "d.jsonl", lines(ROWS)),
    "jsonl.gz": lambda path: written(path, "d.jsonl.gz", gzip.compress(lines(ROWS))),
    "csv": lambda path: written(path, "d.csv", delimited(",")),
    "csv.gz": lambda path: written(path, "d.csv.gz", gzip.compress(delimited(","))),
    "csv.zst": lambda path: written(path, "d.csv.zst", packed(delimited(","), "zstd")),
    "tsv": lambda path: written(path, "d.tsv", b"\xef\xbb\xbf" + delimited("\t")),
    "parquet files": lambda path: in_files(path, 3, lambda table, name: pq.write_table(table, f"{name}.parquet")),
    "table": lambda path: TABLE,
    "pandas": lambda path: TABLE.to_pandas(),
    "stream": lambda path: TABLE.to_reader(max_chunksize=7),
    "Dataset": lambda path: datasets().Dataset.from_list(ROWS),
    "selected": lambda path: datasets().Dataset.from_list(ROWS[::-1]).select(range(len(ROWS) - 1, -1, -1)),
    "DatasetDict": lambda path: datasets().DatasetDict(
        {"train": datasets().Dataset.from_list(ROWS[:40]), "test": datasets().Dataset.from_list(ROWS[40:])}
    ),
    "IterableDataset": lambda path: datasets().Dataset.from_list(ROWS).to_iterable_dataset(),
    "generator": lambda path: datasets().IterableDataset.from_generator(rows),
    "saved Dataset": lambda path: datasets().Dataset.from_list(ROWS).save_to_disk(path / "saved") or path / "saved",
    "dolma": lambda path: written(path, "d.json.gz", gzip.compress(lines(NESTED))),
    "dolma zst": lambda path: written(path, "d.jsonl.zst", packed(lines(NESTED), "zstd")),
    "datatrove": lambda path: written(
        path,
        "00000.jsonl.gz",
        gzip.compress(lines([{name: row[name] for name in ("text", "id", "metadata")} for row in NESTED])),
    ),
    "datatrove parquet": lambda path: (
        pq.write_table(pa.Table.from_pylist(NESTED).select(["text", "id", "metadata"]), path / "000_00000.parquet")
        or path / "000_00000.parquet"
    ),
}


def decided(source, **options):
    result = flat(dedup, source, id_column="id", threshold=0.6, **options)
    return result.documents.select(["id", "kept", "duplicate_of", "resemblance", "group"]).to_pylist()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("inputs") / "d.parquet"
    pq.write_table(TABLE, path)
    found = decided(path, keep="stars:desc")
    assert 10 < sum(row["kept"] for row in found) < 45
    return found


NEED_PACKAGES = ("pandas", "Dataset", "selected", "DatasetDict", "IterableDataset", "generator", "saved Dataset")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_decisions(form, expected, tmp_path):
    source = FORMS[form](tmp_path)
    keep = "metadata.stars:desc" if form.startswith(("dolma", "datatrove")) else "stars:desc"
    if form in ("stream", "IterableDataset", "generator"):
        assert decided(source, keep=keep) == expected
        return
    assert decided(source, keep=keep, output=tmp_path / "out") == expected
    again = open_documents(tmp_path / "out", id_column="id")
    read = {id: again.texts([i])[i] for i, id in enumerate(_ids(again))}
    assert read == {row["id"]: row["text"] for row, is_of in zip(ROWS, expected, strict=True) if is_of["kept"]}


def _ids(documents):
    return [id for batch in documents.batches() for id in batch.ids.to_pylist()]


OF_FILES = ["csv.gz", "dolma", "datatrove parquet"]


@pytest.mark.parametrize("form", [*OF_FILES, "DatasetDict"])
def test_tasks_decide_alike(form, expected, tmp_path):
    keep = "stars:desc" if form in ("csv.gz", "DatasetDict") else "metadata.stars:desc"
    options = {"text_columns": "text", "id_column": "id"}
    recipe = Recipe(method="exact", keep=keep, threshold=0.6)
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=2000)
    flat(dedup, FORMS[form](tmp_path), output=tmp_path / "out", workers=workers, recipe=recipe, engine="cpu", **options)
    found = pq.read_table(tmp_path / "out/documents")
    assert found.select(list(expected[0])).to_pylist() == expected
    if form == "DatasetDict":
        assert found["file"].to_pylist() == ["train"] * 40 + ["test"] * 21
        assert found["row"].to_pylist() == [*range(1, 41), *range(1, 22)]


# Nested columns


def test_a_column_whose_name_has_a_dot_wins(tmp_path):
    both = [{"text": "a", "m.id": "own", "m": {"id": "inner"}}, {"text": "b", "m": {"id": "inner 2"}, "m.id": "own 2"}]
    pq.write_table(pa.Table.from_pylist(both), tmp_path / "d.parquet")
    feather.write_feather(pa.Table.from_pylist(both), tmp_path / "d.arrow")
    written(tmp_path, "d.jsonl", lines(both))
    for source in (tmp_path / "d.parquet", tmp_path / "d.arrow", tmp_path / "d.jsonl", pa.Table.from_pylist(both)):
        assert _ids(open_documents(source, id_column="m.id")) == ["own", "own 2"]
    mixed = [both[0], {"text": "b", "m": {"id": "inner"}}, {"m": {"id": "c"}, "text": "\ud800"}]  # the last by line
    written(tmp_path, "mixed.jsonl", lines(mixed))
    assert _ids(open_documents(tmp_path / "mixed.jsonl", id_column="m.id")) == ["own", "inner", "c"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_errors_name_the_members_of_a_struct(suffix, tmp_path):
    members = pa.struct([("id", pa.string()), ("text", pa.string()), ("deep", pa.struct([("x", pa.string())]))])
    schema = pa.schema([("n", pa.int64()), ("m", members)])
    table = pa.Table.from_pylist([{"n": 1, "m": {"id": "a", "text": "b", "deep": {"x": "c"}}}], schema)
    path = tmp_path / f"d.{suffix}"
    if suffix == "jsonl":
        path.write_bytes(lines(table.to_pylist()))
    else:
        (pq.write_table if suffix == "parquet" else feather.write_feather)(table, path)
    options = {"text_columns": "m.text", "id_column": "m.id", "other_columns": ["m.deep.x"]}
    documents = flat(open_documents, path, **options)
    (batch,) = documents.batches(["m.deep.x"])
    assert (batch.text[0].tobytes(), batch.ids.to_pylist()) == (b"b", ["a"])
    assert batch.columns["m.deep.x"].to_pylist() == ["c"]
    for name, there in {
        "m.txt": "'m' has id, text, deep",
        "m.deep.y": "'m.deep' has x",
        "q.text": "it has n, m",
        "m.text.x": "'m' has id, text, deep",
    }.items():
        with pytest.raises(InputError, match=f"no column '{name}'; {there}"):
            open_documents(path, text_columns=name)
    with pytest.raises(InputError, match=r"'m\.deep' holds .*, not text"):
        open_documents(path, text_columns="m.deep")


def test_a_struct_that_is_null_or_none(tmp_path):
    some = [{"text": "a", "m": {"id": "x"}}, {"text": "b", "m": None}, {"text": "c", "m": "no object"}, {"text": "d"}]
    written(tmp_path, "d.jsonl", lines(some))
    documents = open_documents(tmp_path / "d.jsonl", id_column="m.id", reading=Reading(on_error="skip"))
    assert _ids(documents) == ["x"]
    assert documents.skipped["row"].to_pylist() == [2, 3, 4]
    table = pa.Table.from_pylist([{"text": "a", "m": {"id": "x"}}, {"text": "b", "m": None}])
    with pytest.raises(InputError, match=r"column 'm\.id' is null in document 2"):
        _ids(open_documents(table, id_column="m.id"))


class Counting:
    """A store on this machine that counts the bytes that are read."""

    def __init__(self, path):
        import fsspec

        self.read, store = 0, fsspec.filesystem("file")
        outer, opened = self, store._open

        class Store(type(store)):
            protocol = "counting"

            def _open(self, path, mode="rb", **options):
                file = opened(path, mode, **options)
                read = file.read

                def counted(size=-1):
                    data = read(size)
                    outer.read += len(data)
                    return data

                file.read = counted
                return file

        self.store = Store(skip_instance_cache=True)


def test_of_a_struct_only_what_is_asked_for_is_read(tmp_path):
    pytest.importorskip("fsspec")
    from pyarrow import fs

    from neardup_gpu.documents.files import File
    from neardup_gpu.documents.parquet import Parquet

    noise = np.random.default_rng(1).bytes
    table = pa.Table.from_pylist(
        [{"text": f"text {i}", "m": {"id": i, "large": noise(2000), "text": f"inner {i}"}} for i in range(500)]
    )
    pq.write_table(table, tmp_path / "d.parquet")
    counting = Counting(tmp_path)
    system = fs.PyFileSystem(fs.FSSpecHandler(counting.store))
    reader = Parquet(File(system, str(tmp_path / "d.parquet"), "d.parquet", str(tmp_path)), Reading(), WHOLE)
    counting.read = 0
    schema = pa.schema([("m.id", pa.int64()), ("m.text", pa.string())])
    assert sum(found.batch.num_rows for found in in_order(reader.steps(schema, 16 << 20), size_of)) == 500
    assert 0 < counting.read < 100_000 < (tmp_path / "d.parquet").stat().st_size


# Hugging Face


def test_splits_have_names(tmp_path):
    splits = FORMS["DatasetDict"](tmp_path)
    result = dedup(splits, id_column="id", output=tmp_path / "out")
    assert result.documents["file"].to_pylist() == ["train"] * 40 + ["test"] * 21
    assert sorted(path.name for path in (tmp_path / "out/kept").iterdir()) == ["test.parquet", "train.parquet"]
    kept = result.kept_dataset()
    assert list(kept) == ["train", "test"]
    assert [*kept["train"]["id"], *kept["test"]["id"]] == result.kept["id"].to_pylist()
    lacking = datasets().DatasetDict(splits | {"test": splits["test"].select_columns(["id", "text"])})
    warning = dedup(lacking, keep="stars").warnings[0]
    assert warning == "test has no column 'stars', so that its rows have no value there"
    with pytest.raises(InputError, match=r"train: no column 'moons'; it has id, text"):
        dedup(lacking, keep="moons")
    with pytest.raises(InputError, match="no splits"):
        open_documents(datasets().DatasetDict())
    with pytest.raises(InputError, match=r"'\.\.'"):
        open_documents(datasets().DatasetDict({"../train": splits["train"]}))


def test_what_is_kept_keeps_its_features():
    library = datasets()
    features = {"id": library.Value("string"), "text": library.Value("string")}
    features = library.Features(features | {"label": library.ClassLabel(names=["good", "bad"])})
    made = [{"id": row["id"], "text": row["text"], "label": i % 2} for i, row in enumerate(ROWS)]
    result = dedup(library.Dataset.from_list(made, features=features), id_column="id")
    kept = result.kept_dataset()
    assert kept.features == features and kept["id"][:] == result.kept["id"].to_pylist()
    result.explain(result.removed["id"][0].as_py())  # reads only up to a row
    assert result.kept_dataset().num_rows == kept.num_rows


@pytest.mark.parametrize("form", ["table", "parquet files", "jsonl.gz", "csv", "tsv", "arrow", "texts"])
def test_what_is_kept_of_other_forms(form, tmp_path):
    datasets()
    if form == "texts":
        for i, row in enumerate(ROWS):
            written(tmp_path / "in", f"{i:02}.txt", row["text"].encode())
        result = dedup(tmp_path / "in")
        kept = result.kept_dataset()
        assert kept["path"][:] == result.kept["id"].to_pylist()
        return
    result = dedup(FORMS[form](tmp_path), id_column="id")
    kept = result.kept_dataset()
    assert (kept.column_names, kept["id"][:]) == (list(ROWS[0]), result.kept["id"].to_pylist())
    texts = {row["id"]: row["text"] for row in ROWS}
    assert [text or "" for text in kept["text"]] == [texts[id] for id in kept["id"]]


def test_what_is_kept_is_what_was_read(tmp_path):
    """Texts that pandas takes for missing, files of two separators, and crawls of several files."""
    datasets()
    written(tmp_path / "in", "a.csv", b"id,text\n1,NA\n2,null\n3,one two\n")
    written(tmp_path / "in", "b.tsv", b"id\ttext\n4\tthree, four\n")
    kept = dedup(tmp_path / "in", id_column="id").kept_dataset()
    assert kept.to_dict() == {"id": [1, 2, 3, 4], "text": ["NA", "null", "one two", "three, four"]}
    pytest.importorskip("fastwarc")
    for name in ("a", "b"):
        about = (
            f"WARC-Type: conversion\r\nWARC-Record-ID: <{name}>\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
        )
        written(tmp_path / "crawl", f"{name}.warc", f"WARC/1.0\r\n{about}\r\n{name} x\r\n\r\n".encode())
    assert dedup(tmp_path / "crawl").kept_dataset()["text"][:] == ["a x", "b x"]


def test_what_a_stream_cannot_do(tmp_path):
    stream = FORMS["IterableDataset"]
    result = dedup(stream(tmp_path), id_column="id")
    workers = Workers(work_dir=tmp_path / "work", number=1)
    for does, says in {
        lambda: result.kept_dataset(): "were a stream, which cannot be read again to give the kept rows",
        lambda: result.explain("d1"): "were a stream, which cannot be read again to explain",
        lambda: dedup(stream(tmp_path), output=tmp_path / "out"): "cannot be read again to write the kept rows",
        lambda: dedup(stream(tmp_path), output=tmp_path / "out", workers=workers).report: "gives its rows only",
    }.items():
        with pytest.raises(InputError, match=says):
            does()
    assert not (tmp_path / "out").exists()


def test_a_stream_that_breaks():
    library = datasets()

    def late():
        yield from ({"text": None if i < 1000 else "a"} for i in range(1001))

    with pytest.raises(InputError, match="'text' holds string, but null in the first 1,000 rows"):
        dedup(library.IterableDataset.from_generator(late))
    with pytest.raises(InputError, match=r"cannot be read .*ZeroDivisionError"):
        dedup(library.Dataset.from_list(ROWS).to_iterable_dataset().map(lambda row: {"n": 1 / 0}))


def test_without_the_library_the_extra_is_named(monkeypatch):
    result = dedup({"text": ["a b c", "a b c"]})
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'neardup-gpu\[hf\]'"):
        result.kept_dataset()


def test_a_clone_of_a_dataset(tmp_path, caplog):
    """A folder as git leaves it, with all that lies beside the data."""
    data = tmp_path / "clone/data"
    data.mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 30), data / "train-00000-of-00002.parquet")
    pq.write_table(TABLE.slice(30), data / "train-00001-of-00002.parquet")
    for name in ("README.md", "LICENSE.txt", "dataset_infos.json", ".gitattributes"):
        (tmp_path / "clone" / name).write_text("{}")
    documents = open_documents(tmp_path / "clone", id_column="id")
    assert documents.num_rows == len(ROWS)
    assert documents.describe()["left_out"]["about_the_data"]["files"] == 3
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    for name in ("p.parquet", "p.jsonl", "p.arrow", "p.csv"):
        (tmp_path / name).write_text(pointer)
        with pytest.raises(InputError, match=rf"{name}: is a pointer of Git LFS, not the data; .*git lfs pull"):
            open_documents(tmp_path / name)


# Servers


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    data = folder / "user/name/data"
    data.mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 30), data / "a.parquet")
    pq.write_table(TABLE.slice(30), data / "b.parquet")
    (folder / "user/name/README.md").write_text("# about")
    written(folder, "d.csv", delimited(","))
    written(folder, "d.jsonl.gz", gzip.compress(lines(ROWS)))
    return folder


def test_http(served, expected, tmp_path):
    pytest.importorskip("aiohttp")
    with serving(served, Files) as address:
        for name in ("d.csv", "d.jsonl.gz", "user/name/data", "user/name/", "user/name/**/*.parquet"):
            found = decided(f"{address}/{name}", keep="stars:desc", output=tmp_path / "out", overwrite=True)
            assert found == expected, name
        with pytest.raises(InputError, match="no such file"):
            open_documents(f"{address}/none.csv")
    with pytest.raises(InputError, match=r"cannot be read .*onnect"):
        open_documents(f"{address}/d.csv")
    with serving(served, Whole) as address:
        assert decided(f"{address}/d.csv", keep="stars:desc") == expected
        with pytest.raises(InputError, match=r"does ?n.t appear to support range requests"):
            open_documents(f"{address}/user/name/data/a.parquet")


HUB = """
import sys
from huggingface_hub import constants
import neardup_gpu as nd
def opened(path):
    try:
        documents = nd.open_documents(f"hf://datasets/user/{path}", id_column="id")
        ids = [id for batch in documents.batches() for id in batch.ids.to_pylist()]
        print(len(ids), ids[-1], *documents.describe()["left_out"])
    except nd.errors.InputError as error:
        print(error)
for path in sys.argv[1:]:
    opened(path)
constants.HF_HUB_OFFLINE = True
opened("other/a.parquet")
"""


def test_the_hub_of_hugging_face(served):
    """The file system of huggingface_hub, on a server that answers as much of its API as reading needs."""
    pytest.importorskip("huggingface_hub")
    paths = ["name", "name/data/*.parquet", "name@main/data/a.parquet", "name/none.parquet", "none/x.parquet"]
    with serving(served, Hub) as address:
        environment = os.environ | {"HF_ENDPOINT": address, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "0"}
        ended = subprocess.run([sys.executable, "-c", HUB, *paths], env=environment, capture_output=True, text=True)
    whole, pattern, revision, no_file, no_dataset, offline = ended.stdout.splitlines()
    assert (whole, pattern, revision) == ("61 empty about_the_data", "61 empty", "30 d29")
    assert no_file == "hf://datasets/user/name/none.parquet: no such file or folder."
    assert no_dataset.startswith("hf://datasets/user/none/x.parquet: cannot be read (404 ")
    assert offline.startswith("hf://datasets/user/other/a.parquet: cannot be read (") and "HF_HUB_OFFLINE" in offline


def test_schemes():
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match=r"nowhere:// names no file system that pyarrow or fsspec knows; .*s3, gs"):
        open_documents("nowhere://bucket/x.parquet")
    for missing, uri, install in (
        ("adlfs", "az://container/x.parquet", r"'neardup-gpu\[azure\]'"),
        ("gcsfs", "gcs://bucket/x.parquet", None),
        ("paramiko", "sftp://host/x.parquet", r"'fsspec\[sftp\]'"),
        ("ossfs", "oss://bucket/x.parquet", "ossfs"),
    ):
        try:
            __import__(missing)
        except ImportError:
            if install is not None:
                with pytest.raises(InputError, match=f"pip install {install}$"):
                    file_system(uri)


@pytest.mark.parametrize(
    "uri, asked",
    [
        ("gs://bucket/x", "gs://bucket/x?retry_limit_seconds=60"),
        ("gs://bucket/x?scheme=http", "gs://bucket/x?scheme=http&retry_limit_seconds=60"),
        ("gs://bucket/x?retry_limit_seconds=5", "gs://bucket/x?retry_limit_seconds=5"),
        ("s3://bucket/x", "s3://bucket/x"),
    ],
)
def test_google_gives_up_after_a_minute(uri, asked):
    assert impatient(uri) == asked
    if uri.startswith("gs"):
        assert file_system(uri)[1] == "bucket/x"


@pytest.mark.parametrize("module, uri", [("aiohttp", "https://host/x"), ("huggingface_hub", "hf://datasets/u/n/x")])
def test_an_extra_that_is_not_installed(module, uri):
    pytest.importorskip("fsspec")
    code = (
        "import sys\nclass Without:\n    def find_spec(self, name, *_):\n"
        f"        if name.partition('.')[0] == {module!r}: raise ImportError('No module named ' + name)\n"
        "sys.meta_path.insert(0, Without())\nimport neardup_gpu as nd\n"
        f"try:\n    nd.open_documents('{uri}.parquet')\nexcept nd.errors.InputError as error:\n    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    (line,) = ended.stdout.splitlines()
    extra = "hf" if module == "huggingface_hub" else "http"
    assert line.startswith(uri) and line.endswith(f"pip install 'neardup-gpu[{extra}]'"), (line, ended.stderr)


def test_formats_in_a_store():
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7)
    parquet = pa.BufferOutputStream()
    pq.write_table(TABLE, parquet)
    data = {"d.arrows": stream.getvalue(), "d.parquet": parquet.getvalue(), "d.csv.gz": gzip.compress(delimited(","))}
    store.pipe({f"/formats/{name}": bytes(value) for name, value in data.items()})
    try:
        for name in data:
            assert _ids(open_documents(f"memory://formats/{name}", id_column="id")) == [row["id"] for row in ROWS]
    finally:
        store.rm("/formats", recursive=True)


def test_a_store_that_raises_anything(monkeypatch):
    """File systems of fsspec raise whatever they like while a file is read, which is one line, too."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe({"/odd/x.jsonl": lines(ROWS)})
    try:
        documents = open_documents("memory://odd/x.jsonl")

        def fail(self, *args, **options):
            raise RuntimeError("the token is stale")

        monkeypatch.setattr(type(store), "_open", fail)
        with pytest.raises(NeardupError, match=r"memory://odd/x\.jsonl: cannot be read \(the token is stale\)"):
            list(documents.batches())
    finally:
        monkeypatch.undo()
        store.rm("/odd", recursive=True)


def test_a_frame_with_two_columns_of_one_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(InputError, match=r"input: 2 columns named 'text'; it has text, text\."):
        dedup(frame)
