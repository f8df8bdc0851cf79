"""Sketches are written while documents are still being sketched; the file is the same whatever a row group holds."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Engine, MinHash, SimHash, sketch_writing
from neardup_gpu.engine import memory
from neardup_gpu.errors import InputError, OutputError
from neardup_gpu.sketches import sketch
from neardup_gpu.store.checksums import verify_pages

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
        assert verify_pages(path)
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
    def full(self, table):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sketch_writing.TableWriter, "write", full)
    with pytest.raises((OutputError, OSError), match="No space left"):
        written(500)
    assert not list(tmp_path.glob("*.parquet"))


def test_an_id_that_comes_twice(written, tmp_path):
    table = pa.concat_tables([TABLE, TABLE.slice(0, 1)])
    with pytest.raises(InputError, match="d0"):
        written(500, table)
    assert not list(tmp_path.glob("*.parquet"))
