"""Shingles that wait nowhere are made again from the text: the same decisions as with a spool, by every method."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from flat import flat
from versions import corpus, decisions, families

from neardup_gpu import BottomK, Engine, MinHash, ModM, Recipe, Shingles, SimHash, dedup
from neardup_gpu.documents import open_documents
from neardup_gpu.documents.sources import Sources
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.errors import InputError
from neardup_gpu.stages import Ragged
from neardup_gpu.stages.reread import TextRows, waiting_of
from neardup_gpu.store import spool as spool_module
from neardup_gpu.store.spool import DeviceSpool

TABLE = corpus(families(num=30, seed=6), seed=6)
KNOWN = corpus(families(num=9, seed=6), seed=7)
OPTIONS = {
    "exact": {},
    "exact, against": {"against": KNOWN, "keep": "date:desc"},
    "exact, bags": {"recipe": Recipe(shingles=Shingles(3, "bag"))},
    "exact, low threshold": {"threshold": 0.2},
    "containment": {"method": "containment", "threshold": 0.7, "against": KNOWN},
    "min-hash": {"method": "minhash"},
    "min-hash, large buckets": {"recipe": Recipe(method=MinHash(filter=(3, 1, 1), bucket_limit=2, bucket_probe=1))},
    "min-hash, tf-idf": {"method": MinHash(weighting="tfidf")},
    "bottom-k": {"method": BottomK(s=20)},
    "mod-m": {"method": ModM(m=4)},
    "simhash": {"recipe": Recipe(method=SimHash(), threshold=0.7)},
    "parts": {"unit": "window:20", "min_words": 3, "threshold": 0.6},
    "within dates": {"within": ["date"]},
    "common shingles left out": {"ignore_common": 6},
}


@pytest.fixture
def readings(monkeypatch):
    """Make every job in memory read the text again; holds an entry for each time that it did."""
    begun, batches = [], TextRows._batches

    def noted(self):
        begun.append(self)
        return batches(self)

    def chosen(self, folder, num_bytes=None, again=None, over=None):
        return spool_module.Spool(folder) if again is None else again

    monkeypatch.setattr(TextRows, "_batches", noted)
    monkeypatch.setattr(HostRuntime, "spool", chosen)
    return begun


def decided(path, backend="cpu", **options):
    engine = Engine(backend=backend, batch_bytes=3000)
    return decisions(flat(dedup, path, id_column="id", engine=engine, **options))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", OPTIONS)
def test_decisions_are_those_of_a_spool(readings, monkeypatch, tmp_path, name, backend):
    if backend == "reference" and name not in ("exact", "containment", "mod-m"):
        pytest.skip("the same but for kernels, which are compared one by one")
    pq.write_table(TABLE, tmp_path / "table.parquet", row_group_size=11)
    found = decided(tmp_path / "table.parquet", backend, check=20, **OPTIONS[name])
    assert bool(readings) == ("ignore_common" not in OPTIONS[name])
    monkeypatch.undo()
    assert found == decided(tmp_path / "table.parquet", backend, check=20, **OPTIONS[name])


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "common shingles left out"])
def test_rows_that_are_made_again_are_those_that_came(readings, monkeypatch, name):
    came, compared, append, gather = [], [], TextRows.append, TextRows.gather

    def appended(self, rows):
        came.extend(each.tolist() for each in rows)
        append(self, rows)

    def gathered(self, rows):
        found = gather(self, rows)
        compared.extend(zip(rows.tolist(), (each.tolist() for each in found), strict=True))
        return found

    monkeypatch.setattr(TextRows, "append", appended)
    monkeypatch.setattr(TextRows, "gather", gathered)
    decided(TABLE, **OPTIONS[name])
    assert compared
    assert all(came[row] == made for row, made in compared)


def test_shingles_are_counted_as_they_come_so_that_the_text_is_read_once_more(readings):
    decided(TABLE, check=0)
    assert len(readings) == 1
    readings.clear()
    decided(TABLE, check=0, method="minhash")
    assert len(readings) == 1


def test_a_stream_keeps_the_spool(readings):
    table = TABLE.select(["id", "text"])
    found = decided(table.to_reader(max_chunksize=9), check=0)
    assert not readings
    assert found == decided(table, check=0)


@pytest.fixture
def rows_of_text(tmp_path):
    """Rows of a file's text, and what they are."""
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE.select(["id", "text"]), path, row_group_size=7)
    recipe = Recipe()

    def opened():
        return Sources(open_documents(path, id_column="id"))

    (batch,) = opened().documents.batches()
    expected = waiting_of(batch.text, batch.ids, None, recipe, "cpu")
    with Engine(backend="cpu").start() as runtime:
        rows = TextRows(opened, recipe, runtime, 2000, tmp_path, lambda: 1000)
        rows.append(expected)
        with rows:
            yield rows, expected, path


def test_rows_come_in_any_order_and_the_reading_goes_on_where_it_ended(rows_of_text, monkeypatch):
    rows, expected, _ = rows_of_text
    begun, batches = [], rows._batches
    monkeypatch.setattr(rows, "_batches", lambda: begun.append(1) or batches())
    number, random = len(expected), np.random.default_rng(3)
    for first in range(0, number, 5):
        wanted = np.arange(first, min(first + 5, number))
        found = rows.gather(wanted)
        assert [found[i].tolist() for i in range(len(found))] == [expected[row].tolist() for row in wanted]
    assert len(begun) == 1
    wanted = random.integers(0, number, 30)
    found = rows.gather(wanted)
    assert [found[i].tolist() for i in range(30)] == [expected[row].tolist() for row in wanted]
    assert len(rows.gather(np.empty(0, np.int64))) == 0
    assert len(begun) == 2


def test_text_that_changed_is_an_error(rows_of_text):
    rows, expected, path = rows_of_text
    for change in (TABLE.slice(0, 20), TABLE.take(list(range(len(TABLE)))[::-1])):
        pq.write_table(change.select(["id", "text"]), path)
        rows._reading = None
        with pytest.raises(InputError, match="changed while it was read; run again"):
            rows.gather(np.arange(len(expected)))


@pytest.mark.parametrize("rate", [0, 2**62])
def test_a_spool_for_a_device_reads_again_what_came_faster_than_a_file_takes_it(rows_of_text, monkeypatch, rate):
    monkeypatch.setattr(spool_module, "SPOOL_RATE", rate)
    rows, expected, path = rows_of_text
    again = TextRows(rows._opened, rows._recipe, rows._runtime, 2000, path.parent, lambda: 1000)
    cut = len(expected) // 2
    parts = [Ragged(expected.values, expected.offsets[some]) for some in (slice(cut + 1), slice(cut, None))]
    with DeviceSpool(path.parent, 8 * int(expected.offsets[cut]), again) as spool:
        spool.append(parts[0])
        assert spool.table is None and spool._file.num_rows == 0
        spool.append(parts[1])
        assert spool._file.num_rows == (0 if rate == 0 else len(parts[1]))
        if rate:
            assert spool.table is None
        else:
            for found, wanted in zip(spool.table, rows.table, strict=True):
                np.testing.assert_array_equal(found, wanted)
        spool.spill()
        assert spool._held == [None, None]
        assert spool._file.num_rows == (0 if rate == 0 else len(expected))
        assert spool.num_rows == len(expected) and spool.num_values == len(expected.values)


def test_what_is_dropped_for_lack_of_memory_is_not_counted(rows_of_text, monkeypatch):
    monkeypatch.setattr(spool_module, "SPOOL_RATE", 0)
    rows, expected, path = rows_of_text
    again = TextRows(rows._opened, rows._recipe, rows._runtime, 2000, path.parent, lambda: 1000)
    with DeviceSpool(path.parent, expected.nbytes, again) as spool:
        spool.append(expected)
        spool.spill()
        spool.append(expected)
        assert spool.table is None and spool._held == [None, None]
