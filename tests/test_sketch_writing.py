"""Sketches are written while documents are still being sketched; the file is the same whatever a row group holds."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Engine, MinHash, Reading, SimHash, dedup
from neardup_gpu.engine import memory
from neardup_gpu.errors import DamagedError, InputError, OutputError, ParameterError
from neardup_gpu.jobs import info
from neardup_gpu.results import sketch_writing
from neardup_gpu.sketches import clusters, pairs, sketch
from neardup_gpu.store.checksums import verify

TEXTS = [f"the {i % 7} words of number {i} are {'very ' * (i % 5)}short" if i % 11 else "" for i in range(300)]
TABLE = pa.table({"id": [f"d{i}" for i in range(300)], "text": TEXTS})


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Sketch a table in small batches into row groups of some bytes of sketches; return the report and the file."""
    monkeypatch.setattr(memory, "HOST_SORTED", 2_000)  # weights of few documents are computed at once

    def run(num_bytes, source=TABLE, **options):
        monkeypatch.setattr(sketch_writing, "ROW_GROUP_BYTES", num_bytes)
        path = tmp_path / f"{num_bytes}.parquet"
        report = sketch(source, path, id_column="id", engine=Engine(batch_bytes=2_000), **options)
        assert verify(path, whole=True)
        return report, pq.ParquetFile(path)

    return run


@pytest.mark.parametrize(
    "method",
    ["minhash", "bottomk", "modm", "simhash", MinHash(weighting="tfidf"), SimHash(weighting="tfidf")],
    ids=str,
)
def test_row_groups(method, written):
    """Methods that weigh by document frequencies wait for the last document, and write their sketches after it."""
    whole_report, whole = written(1 << 30, method=method)
    report, parts = written(500, method=method)
    assert whole.num_row_groups == 1
    assert parts.num_row_groups >= 4
    assert parts.read().equals(whole.read())
    assert parts.schema_arrow.equals(whole.schema_arrow, check_metadata=True)
    assert report["empty"] == whole_report["empty"] == TEXTS.count("")


def test_no_documents(written):
    _, file = written(500, TABLE.slice(0, 0))
    assert file.metadata.num_rows == 0


def test_ids_that_become_larger_than_int64(written, tmp_path):
    source = tmp_path / "in.jsonl"
    rows = [{"id": i, "text": "some words of a document"} for i in range(200)]
    source.write_text("\n".join(map(json.dumps, [*rows, {"id": 2**63, "text": "other words"}])))
    _, file = written(1 << 30, source)
    assert file.schema_arrow.field("id").type == pa.uint64()
    with pytest.raises(InputError, match="ids are int64 at first and uint64 later; make them one type"):
        written(500, source)
    assert not (tmp_path / "500.parquet").exists()


def test_an_error_while_a_row_group_is_written(written, tmp_path, monkeypatch):
    def full(self, group):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sketch_writing.RowGroupWriter, "add", full)
    with pytest.raises((OutputError, OSError), match="No space left"):
        written(500)
    assert not list(tmp_path.glob("*.parquet"))


def test_an_id_that_comes_twice(written, tmp_path):
    table = pa.concat_tables([TABLE, TABLE.slice(0, 1)])
    with pytest.raises(InputError, match="d0"):
        written(500, table)
    assert not list(tmp_path.glob("*.parquet"))


def test_the_bytes_do_not_depend_on_batches(written, tmp_path):
    written(5_000)
    before = (tmp_path / "5000.parquet").read_bytes()
    sketch(TABLE, tmp_path / "other.parquet", id_column="id", engine=Engine(batch_bytes=700, threads=1))
    assert (tmp_path / "other.parquet").read_bytes() == before


class TestShards:
    @pytest.fixture
    def shards(self, tmp_path):
        """Sketches in a folder of several files, the folder, and the same sketches in one file."""
        sketch(TABLE, tmp_path / "s.parquet", id_column="id")
        report = sketch(TABLE, tmp_path / "out", id_column="id", shard_bytes=50_000)
        names = [f"part-{number:05}.parquet" for number in range(report["shards"])]
        assert sorted(path.name for path in (tmp_path / "out" / "sketches").iterdir()) == names
        return tmp_path / "out"

    def test_files_of_about_one_size(self, shards):
        files = sorted((shards / "sketches").iterdir())
        sizes = [path.stat().st_size for path in files]
        assert len(sizes) > 3 and all(50_000 <= size < 70_000 for size in sizes[:-1]), sizes
        assert all(verify(path, whole=True) for path in files)
        tables = [pq.read_table(path) for path in files]
        whole = pq.read_table(shards.parent / "s.parquet")
        assert pa.concat_tables(tables).equals(whole)
        assert tables[1].schema.equals(whole.schema, check_metadata=True)

    def test_all_who_read_sketches(self, shards):
        one = shards.parent / "s.parquet"
        for folder in (shards, shards / "sketches"):
            assert pairs(folder).equals(pairs(one))
        with pytest.raises(InputError, match=r"(?s)s\.parquet.* there more than once"):
            pairs([shards, one])
        sketch(TABLE, shards, id_column="id", shard_bytes=20_000, method="bottomk", overwrite=True)
        sketch(TABLE, one, id_column="id", method="bottomk", overwrite=True)
        assert clusters(shards).equals(clusters(one))
        found = info.describe(shards)
        assert found["kind"] == "sketches" and found["counts"]["rows"] == 300 and found["counts"]["files"] > 1
        assert info.check(shards).startswith("all ")

    def test_no_documents(self, tmp_path):
        report = sketch(TABLE.slice(0, 0), tmp_path / "out", id_column="id", shard_bytes="1MB")
        assert report["shards"] == 1 and pairs(tmp_path / "out").num_rows == 0

    def test_frequencies_and_skipped_rows(self, tmp_path):
        (tmp_path / "in.jsonl").write_text("\n".join([*map(json.dumps, TABLE.to_pylist()), "{not json"]))
        method, reading = MinHash(weighting="tfidf"), Reading(on_error="skip")
        options = {"id_column": "id", "method": method, "reading": reading}
        report = sketch(tmp_path / "in.jsonl", tmp_path / "out", shard_bytes=50_000, **options)
        assert report["frequencies"] == str(tmp_path / "out" / "frequencies.parquet") and report["skipped"] == 1
        assert pq.read_table(tmp_path / "out" / "skipped.parquet").num_rows == 1
        assert info.describe(tmp_path / "out" / "frequencies.parquet")["kind"] == "frequencies"
        sketch(tmp_path / "in.jsonl", tmp_path / "s.parquet", **options)
        assert pairs(tmp_path / "out").equals(pairs(tmp_path / "s.parquet"))

    def test_a_damaged_or_missing_shard(self, shards):
        shard = shards / "sketches" / "part-00001.parquet"
        data = bytearray(shard.read_bytes())
        data[1000] ^= 1
        shard.write_bytes(data)
        for read in (pairs, info.check):
            with pytest.raises(DamagedError, match=r"part-00001\.parquet: has changed since it was written"):
                read(shards)
        shard.unlink()
        with pytest.raises(InputError, match=r"part-00001\.parquet: no such file"):
            pairs(shards)
        with pytest.raises(DamagedError, match=r"part-00001\.parquet: is missing, .*; make the folder again"):
            info.check(shards)

    def test_folders_without_sketches(self, tmp_path):
        (tmp_path / "empty").mkdir()
        dedup(TABLE, id_column="id", output=tmp_path / "result")
        for folder in ("empty", "result"):
            with pytest.raises(InputError, match=rf"{folder}: this folder holds no sketches; name files or folders"):
                pairs(tmp_path / folder)
        with pytest.raises(InputError, match="no such file"):
            pairs(tmp_path / "nothing")
        with pytest.raises(InputError, match=r"documents\.parquet: .*it was not written by `neardup sketch`"):
            shutil.copy(tmp_path / "result" / "documents.parquet", tmp_path / "empty")
            pairs(tmp_path / "empty")

    def test_what_is_in_the_way(self, shards):
        with pytest.raises(OutputError, match="out: exists already; name another output or pass overwrite=True"):
            sketch(TABLE, shards, id_column="id", shard_bytes=50_000)
        with pytest.raises(OutputError, match="out: is a folder; name a file"):
            sketch(TABLE, shards, id_column="id", overwrite=True)
        with pytest.raises(OutputError, match=r"s\.parquet: is a file; name a folder"):
            sketch(TABLE, shards.parent / "s.parquet", id_column="id", shard_bytes=50_000, overwrite=True)
        (shards / "sketches" / "mine.parquet").touch()
        with pytest.raises(OutputError, match=r"also holds sketches/mine\.parquet, new or changed"):
            sketch(TABLE, shards, id_column="id", shard_bytes=50_000, overwrite=True)
        with pytest.raises(OutputError, match=r"part-00000\.parquet: is read as input, which would be lost"):
            pairs(shards, shards / "sketches" / "part-00000.parquet", overwrite=True)

    @pytest.mark.parametrize("size, says", [("big", "'big' is not a size"), (0, "must be"), (-1, "is not a size")])
    def test_sizes(self, tmp_path, size, says):
        with pytest.raises(ParameterError, match=f"shard_bytes.*{says}"):
            sketch(TABLE, tmp_path / "out", shard_bytes=size)

    def test_an_id_that_comes_twice(self, tmp_path):
        with pytest.raises(InputError, match="d0"):
            sketch(pa.concat_tables([TABLE, TABLE.slice(0, 1)]), tmp_path / "out", id_column="id", shard_bytes=9_000)
        assert not list(tmp_path.iterdir())
