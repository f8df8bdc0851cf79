"""Inputs of every kind, cut into slices: the same result as in memory, and the same errors."""

import gzip
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_parts import both, errors, in_tasks

from neardup_gpu import MinHash, Recipe, SimHash, Workers, Writing, dedup
from neardup_gpu.engine.memory import MachineMemory
from neardup_gpu.errors import InputError
from neardup_gpu.store.artefacts import read_report
from neardup_gpu.store.places import Place
from neardup_gpu.tasks import running


def made(number, seed=1):
    """Texts of which some are near others, some the same, and some empty."""
    choose = random.Random(seed)
    words, texts = [f"word{i}" for i in range(500)], ["", ""]
    while len(texts) < number:
        text = choose.choices(words, k=choose.randint(1, 40))
        texts.append(" ".join(text))
        for _ in range(choose.randint(0, 2)):
            text = list(text)
            if choose.random() < 0.7:
                text[choose.randrange(len(text))] = "another"
            texts.append(" ".join(text))
    choose.shuffle(texts)
    return texts[:number]


TEXTS = made(70)
IDS = [f"d{i}" for i in range(len(TEXTS))]
DATES = [f"20{i * 7 % 31:02}" for i in range(len(TEXTS))]
TABLE = pa.table({"id": IDS, "text": TEXTS, "date": DATES})
REFERENCE = pa.table({"id": IDS[:20], "text": [*TEXTS[30:40], *made(10, 2)]})


def with_ids(ids, table=TABLE):
    return table.set_column(0, "id", ids if isinstance(ids, pa.Array) else pa.array(ids))


def as_parquet(folder, table=TABLE):
    for name, rows in (("a", table.slice(0, 30)), ("b", table.slice(0, 0)), ("c", table.slice(30))):
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=13)


def lines(table):
    return [json.dumps(row).encode() + b"\n" for row in table.to_pylist()]


def as_lines(folder, table=TABLE):
    (folder / "a.jsonl").write_bytes(b"\n".join(lines(table[:25])))
    (folder / "b.jsonl").write_bytes(b"")
    (folder / "c.jsonl").write_bytes(b"".join(lines(table[25:])))


def as_gzip(folder, table=TABLE):
    for name, rows in (("a", table[:25]), ("c", table[25:])):
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b"".join(lines(rows))))


def as_arrow(folder, table=TABLE):
    for name, opener, rows in (("a.arrow", pa.ipc.new_file, table[:25]), ("b.arrows", pa.ipc.new_stream, table[25:])):
        with opener(folder / name, table.schema) as writer:
            writer.write_table(rows, max_chunksize=11)


def as_texts(folder, wrap="{}", extension="txt"):
    for id, text in zip(IDS, TEXTS, strict=True):
        place = folder / id[:2]
        place.mkdir(exist_ok=True)
        (place / f"{id}.{extension}").write_text(wrap.format(text))


def as_pages(folder):
    as_texts(folder, "<title>no</title><p>{}<script>var no</script>", "html")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("write", [as_parquet, as_lines, as_gzip, as_arrow], ids=lambda write: write.__name__)
@pytest.mark.parametrize(
    "options", [{"id_column": "id"}, {"recipe": Recipe(keep="date:desc"), "text_columns": "text"}], ids=["", "rows"]
)
def test_tables_in_files(write, options, folder, tmp_path):
    write(folder)
    result = both(tmp_path, folder, **options)
    assert len(result.removed) > 3


@pytest.mark.parametrize("write", [as_texts, as_pages], ids=lambda write: write.__name__)
def test_folders_of_texts(write, folder, tmp_path):
    write(folder)
    assert len(both(tmp_path, folder).removed) > 3


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "dict", "dicts"])
def test_tables_in_memory(kind, tmp_path):
    makers = {"arrow": lambda: TABLE, "pandas": TABLE.to_pandas, "dict": TABLE.to_pydict, "dicts": TABLE.to_pylist}
    makers["polars"] = lambda: pytest.importorskip("polars").from_arrow(TABLE)
    both(tmp_path, makers[kind](), id_column="id", text_columns="text", recipe=Recipe(keep="date"))
    assert not (tmp_path / "tasks.work").exists()


def test_texts_in_memory(tmp_path):
    both(tmp_path, texts=pytest.importorskip("pandas").Series(TEXTS))


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_reference_set(in_memory, folder, tmp_path):
    as_parquet(folder)
    against = REFERENCE
    if not in_memory:
        against = tmp_path / "known.parquet"
        pq.write_table(REFERENCE, against, row_group_size=7)
    result = both(tmp_path, folder, id_column="id", text_columns="text", recipe=Recipe(keep="date"), against=against)
    assert result.documents["in_reference"].to_pylist().count(True) > 3


def test_a_reference_set_of_texts(folder, tmp_path):
    (tmp_path / "known").mkdir()
    as_texts(tmp_path / "known")
    as_parquet(folder)
    result = both(tmp_path, folder, id_column="id", text_columns="text", against=tmp_path / "known")
    assert result.documents["in_reference"].to_pylist().count(True) == len(TEXTS) - TEXTS.count("")


@pytest.mark.parametrize("method", [MinHash(), SimHash()], ids=["minhash", "simhash"])
def test_sketches_of_memory(method, tmp_path):
    threshold = None if isinstance(method, SimHash) else 0.8
    both(tmp_path, TABLE, id_column="id", text_columns="text", recipe=Recipe(method=method, threshold=threshold))


KINDS = {
    "int8": pa.array(range(-30, 40), pa.int8()),
    "int64": pa.array([-(2**63), *range(69)], pa.int64()),
    "uint64": pa.array([2**64 - 1, *range(69)], pa.uint64()),
    "large_string": pa.array(IDS, pa.large_string()),
    "dictionary": pa.array(IDS).dictionary_encode(),
    "binary": pa.array([bytes([255, i]) for i in range(70)]),
    "fixed": pa.array([bytes([255, i]) for i in range(70)], pa.binary(2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_every_type(kind, folder, tmp_path):
    as_parquet(folder, with_ids(KINDS[kind]))
    both(tmp_path, folder, id_column="id", text_columns="text")


@pytest.mark.parametrize(
    ("own", "known"),
    [("int8", "uint64"), ("int64", "uint64"), ("uint64", "int8"), ("binary", "int8"), ("int8", "text")],
)
def test_types_of_two_sets(own, known, folder, tmp_path):
    as_parquet(folder, with_ids(KINDS[own]))
    ids = pa.array([str(i) for i in range(20)]) if known == "text" else KINDS[known][45:65]
    options = {"id_column": "id", "text_columns": "text", "against": with_ids(ids, REFERENCE)}
    if "binary" in (own, known):
        here, there = errors(tmp_path, folder, **options)
        assert here == there and here[0] is InputError and "make them one type" in here[1]
    else:
        both(tmp_path, folder, **options)


class TestUnique:
    """An id that comes again is named as in memory."""

    @pytest.mark.parametrize("write", [as_parquet, as_lines, as_gzip, as_arrow])
    def test_of_files(self, write, folder, tmp_path):
        ids = [*IDS]
        ids[10] = ids[37] = ids[64]
        ids[26] = ids[25]
        write(folder, with_ids(ids))
        here, there = errors(tmp_path, folder, id_column="id", text_columns="text")
        assert here == there and here[0] is InputError
        assert "id 'd64' stands for 3 documents" in here[1]

    @pytest.mark.parametrize("kind", ["int8", "int64", "uint64", "binary", "fixed"])
    def test_of_every_type(self, kind, folder, tmp_path):
        rows = np.arange(70)
        rows[69], rows[40] = 3, 0
        as_parquet(folder, with_ids(KINDS[kind].take(pa.array(rows))))
        here, there = errors(tmp_path, folder, id_column="id", text_columns="text")
        assert here == there and "stands for 2 documents" in here[1]

    def test_of_memory_and_of_a_reference_set(self, tmp_path):
        twice = with_ids([*IDS[:-1], IDS[7]])
        for source, against in ((twice, TABLE), (TABLE, twice), (twice, twice)):
            here, there = errors(tmp_path, source, id_column="id", text_columns="text", against=against)
            assert here == there and "id 'd7' stands for 2 documents (input row 8, input row 70)" in here[1]
            assert here[1].startswith("input" if source is twice else "reference set")
        both(tmp_path, TABLE, id_column="id", text_columns="text", against=TABLE)  # one id in both is no repetition

    def test_everything_is_one_id(self, folder, tmp_path):
        as_parquet(folder, with_ids(["same"] * len(TEXTS)))
        here, there = errors(tmp_path, folder, id_column="id", text_columns="text")
        assert here == there and f"stands for {len(TEXTS)} documents" in here[1]

    def test_before_anything_else_is_computed(self, folder, tmp_path):
        as_parquet(folder, with_ids([*IDS[:-1], IDS[7]]))
        errors(tmp_path, folder, id_column="id", text_columns="text")
        done = []
        with pytest.raises(InputError, match="stands for 2"):
            in_tasks(
                tmp_path / "out",
                folder,
                id_column="id",
                text_columns="text",
                progress=lambda *told: done.append(told[0]),
            )
        assert set(done) == {"sketch"}


class TestSkipped:
    """Rows that cannot be read."""

    def test_lines(self, folder, tmp_path):
        broken = lines(TABLE)
        broken[3] = broken[50] = b"{not json\n"
        broken[40] = json.dumps({"text": "no id"}).encode() + b"\n"
        (folder / "a.jsonl").write_bytes(b"".join(broken[:25]))
        (folder / "b.jsonl").write_bytes(b"".join(broken[25:]))
        options = {"id_column": "id", "text_columns": "text", "against": folder / "a.jsonl"}
        for each in (options, {"text_columns": "text"}):
            both(tmp_path / str(len(each)), folder, on_error="skip", **each)
            assert read_report(tmp_path / str(len(each)) / "tasks")["counts"]["skipped"] >= 2
        here, there = errors(tmp_path, folder, **options)
        assert here == there

    def test_ids_that_are_null(self, folder, tmp_path):
        ids = [None if i in (0, 40, 69) else id for i, id in enumerate(IDS)]
        as_parquet(folder, with_ids(ids))
        for name, source in (("files", folder), ("table", with_ids(ids))):
            both(tmp_path / name, source, id_column="id", text_columns="text", on_error="skip")
            assert read_report(tmp_path / name / "tasks")["counts"]["skipped"] == 3
            here, there = errors(tmp_path, source, id_column="id", text_columns="text")
            assert here == there and "is null" in here[1]

    def test_ids_that_come_again_among_rows_that_are_skipped(self, folder, tmp_path):
        rows = lines(TABLE)
        rows[3] = b"{not json\n"
        rows[60] = rows[20]
        (folder / "a.jsonl").write_bytes(b"".join(rows))
        here, there = errors(tmp_path, folder, id_column="id", text_columns="text", on_error="skip")
        assert here == there and "a.jsonl line 21" in here[1] and "a.jsonl line 61" in here[1]
        both(tmp_path, folder, text_columns="text", on_error="skip")

    def test_damaged_groups_and_files(self, folder, tmp_path):
        as_parquet(folder)
        data = bytearray((folder / "c.parquet").read_bytes())
        data[len(data) // 3] ^= 0xFF
        (folder / "c.parquet").write_bytes(data)
        (folder / "d.parquet").write_bytes(b"PAR1 is not enough")
        result = both(tmp_path, folder, id_column="id", text_columns="text", on_error="skip")
        assert result.skipped.num_rows > 1

    def test_texts(self, folder, tmp_path):
        as_texts(folder)
        (folder / "d1" / "long.txt").write_text("word " * 500)
        both(tmp_path, folder, on_error="skip", max_document_bytes=2000)
        assert read_report(tmp_path / "tasks")["counts"]["skipped"] == 1

    def test_all_rows(self, folder, tmp_path):
        (folder / "a.jsonl").write_bytes(b"{\n" * 300)
        (folder / "b.jsonl").write_bytes(b"{\n" * 300)
        here, there = errors(tmp_path, folder, text_columns="text", on_error="skip", slice_bytes=300)
        assert here == there and "no documents that can be read: 600 rows left out" in here[1]


class TestEmpty:
    """Inputs and slices without documents."""

    @pytest.mark.parametrize("source", ["table", "files", "lines"])
    def test_inputs(self, source, folder, tmp_path):
        if source == "files":
            pq.write_table(TABLE[:0], folder / "a.parquet")
        elif source == "lines":
            (folder / "a.jsonl").write_bytes(b"")
        given = TABLE[:0] if source == "table" else folder
        result = both(tmp_path, given, text_columns="text", against=REFERENCE)
        assert len(result.documents) == 0 and "the input holds no documents" in result.warnings[0]

    def test_reference_sets(self, tmp_path):
        both(tmp_path, TABLE, id_column="id", text_columns="text", against=REFERENCE[:0])

    @pytest.mark.parametrize("extension", ["parquet", "jsonl"])
    def test_slices(self, extension, folder, tmp_path):
        for number in range(6):
            name = folder / f"{number}.{extension}"
            rows = TABLE.slice(23 * (number // 2), 23) if number % 2 else TABLE[:0]
            name.write_bytes(b"".join(lines(rows))) if extension == "jsonl" else pq.write_table(rows, name)
        both(tmp_path, folder, id_column="id", text_columns="text", slice_bytes=1000)

    def test_documents_without_words(self, folder, tmp_path):
        pq.write_table(pa.table({"text": ["", " ", None, "..."] * 20}), folder / "a.parquet", row_group_size=10)
        both(tmp_path, folder, slice_bytes=10)


def test_columns_of_nulls_in_lines_of_json_become_strings(tmp_path):
    """Of one slice alone and of all of them together, as in memory."""
    (tmp_path / "in").mkdir()
    for name in "ab":
        rows = pa.table({"text": ["to be", f"or not {name}"], "none": [None, None], "nones": [[None], None]})
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(b"".join(lines(rows)))
    workers = Workers(work_dir=str(tmp_path / "work"), number=1, partitions=1, slice_bytes=50)
    for name, how in (("here", None), ("tasks", workers)):
        writing = Writing(output_format="parquet")
        dedup(tmp_path / "in", output=tmp_path / name, writing=writing, workers=how, engine="cpu")
        for path in (tmp_path / name / "kept").iterdir():
            types = pq.read_schema(path)
            assert types.field("none").type == pa.string() and types.field("nones").type == pa.list_(pa.string())


def test_streams_are_refused(tmp_path):
    for options in ({"source": TABLE.to_reader()}, {"source": TABLE, "against": TABLE.to_reader()}):
        with pytest.raises(InputError, match=r"^input: is a stream, which gives its rows only once, [^\n]*$"):
            in_tasks(tmp_path / "out", id_column="id", text_columns="text", **options)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "memory, disk, one_machine, spool, found",
    [
        (16, 32, True, None, True),
        (15, 32, True, None, False),
        (16, 31, True, None, False),
        (None, 32, True, None, False),
        (16, 32, False, None, False),
        (16, 32, True, False, False),
        (None, None, False, True, True),
    ],
)
def test_shingles_are_kept_where_they_fit(tmp_path, monkeypatch, memory, disk, one_machine, spool, found):
    """Of 6 MB of text there are about a million shingles of 8 bytes: half of 16 MB of memory, a quarter of the disk."""
    monkeypatch.setattr(running, "machine_memory", lambda: MachineMemory(64, memory and memory * 10**6, None))
    monkeypatch.setattr(running, "room", lambda folder: disk and disk * 10**6)
    options, place = Workers(work_dir=str(tmp_path), spool=spool), Place.of(str(tmp_path))

    def keeps(begun, recipe):
        return running._keeps_shingles(options, begun, recipe, place, 6_000_000, one_machine)

    assert keeps({}, Recipe()) is found
    assert keeps({}, Recipe(method="simhash")) is bool(spool)  # nothing is verified
    if spool is None:
        assert keeps({"spool": not found}, Recipe()) is not found  # as the earlier run that is gone on with
