"""The spool gives back what it was given, and says what to do when it cannot take more."""

import os
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neardup_gpu.errors import OutputError, ResourceError
from neardup_gpu.stages import Ragged
from neardup_gpu.store import disk, spool as spool_module
from neardup_gpu.store.spool import DeviceSpool, Spool

ROWS = st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=5), max_size=8)


@pytest.fixture(params=["copied", "read to their places", "read without preadv"])
def way(request, monkeypatch):
    """The way in which rows with gaps between them are read."""
    if request.param != "copied":
        monkeypatch.setattr(spool_module, "RUN", 1)
    if request.param == "read without preadv":
        monkeypatch.delattr(os, "preadv", raising=False)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROWS, max_size=4), st.data())
def test_rows_come_back_in_any_order(way, parts, data):
    rows = [row for part in parts for row in part]
    with Spool() as spool:
        for part in parts:
            whole = Ragged.from_rows([[7], *part, [9]], np.uint64)
            spool.append(Ragged(whole.values, whole.offsets[1:-1]))  # a slice that begins after 0
        assert np.diff(spool.offsets).tolist() == [len(row) for row in rows]
        assert spool.num_values == sum(map(len, rows))
        wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12)) if rows else []
        found = spool.gather(np.array(wanted, np.int64))
        assert [found[i].tolist() for i in range(len(found))] == [rows[row] for row in wanted]
        spool.append(Ragged.from_rows([[1, 2]], np.uint64))  # after reading, the end is still the end
        assert spool.gather(np.array([len(rows)]))[0].tolist() == [1, 2]


def test_rows_are_written_over_others_that_were_read(way, tmp_path):
    rows = [[5, 3, 5], [], [9, 1, 2, 2], [7]]
    with Spool(tmp_path) as before:
        before.append(Ragged.from_rows(rows, np.uint64))
        with Spool(tmp_path, before) as after:
            for row in range(len(rows)):
                read = before.gather(np.array([row]))
                assert read[0].tolist() == rows[row]
                after.append(Ragged.from_rows([sorted(set(read[0].tolist()))], np.uint64))
            found = after.gather(np.arange(len(rows)))
            assert [found[i].tolist() for i in range(len(rows))] == [sorted(set(row)) for row in rows]
    assert list(tmp_path.iterdir()) == []


def test_rows_are_written_over_others_while_later_ones_are_read(way):
    number = 4000
    with Spool() as before:
        before.append(Ragged.from_rows([[row, row, row] for row in range(number)], np.uint64))
        with Spool(None, before) as after, ThreadPoolExecutor(1) as pool:
            read = pool.submit(lambda: [before.gather(np.array([row])) for row in range(number // 2, number)])
            for row in range(number // 2):
                after.append(Ragged.from_rows([[row]], np.uint64))
            assert [rows[0].tolist() for rows in read.result()] == [[row] * 3 for row in range(number // 2, number)]
            assert after.gather(np.arange(number // 2)).values.tolist() == list(range(number // 2))


def test_a_full_disk_has_room_for_rows_that_are_written_over_others(monkeypatch, tmp_path):
    with Spool(tmp_path) as before:
        before.append(Ragged.from_rows([[1, 2, 3]], np.uint64))
        monkeypatch.setattr(disk, "room", lambda folder: 0)
        with Spool(tmp_path, before) as after:
            after.append(Ragged.from_rows([[4, 5]], np.uint64))
            assert after.gather(np.array([0]))[0].tolist() == [4, 5]


def test_a_long_row_after_many_gaps(monkeypatch):
    """The system takes at most 1,024 parts in one call."""
    rows = [*([number] for number in range(3000)), range(10**5)]
    monkeypatch.setattr(spool_module, "RUN", 10)
    with Spool() as spool:
        spool.append(Ragged.from_rows(rows, np.uint64))
        wanted = np.append(np.arange(0, 3000, 2), 3000)
        assert [list(row) for row in spool.gather(wanted)] == [list(rows[row]) for row in wanted]


def test_the_file_vanishes(tmp_path):
    with Spool(tmp_path) as spool:
        spool.append(Ragged.from_rows([[1, 2, 3]], np.uint64))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OutputError, match=r"missing: No such file or directory; name another folder with temp_dir=..."):
        Spool(tmp_path / "missing")


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are POSIX's")
def test_a_full_disk(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Spool(tmp_path) as spool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            with pytest.raises(OutputError, match=r"File too large; name a larger disk with temp_dir=..."):
                spool.append(Ragged.from_rows([np.arange(1000)], np.uint64))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_disk_without_room_is_not_filled(tmp_path, monkeypatch):
    usage = type("Usage", (), {"total": 10**7, "used": 0, "free": 10**5 + 4000})
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage)
    with Spool(tmp_path) as spool:
        spool.append(Ragged.from_rows([np.arange(500)], np.uint64))
        says = (
            r"the disk is too small; for temporary files at least 8 bytes are missing \(4.0 kB can be used, 4.0 kB are "
            r"to come\); name a larger disk with temp_dir=...$"
        )
        with pytest.raises(OutputError, match=says):
            spool.append(Ragged.from_rows([np.arange(501)], np.uint64))
        assert spool.num_values == 500
        monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: (_ for _ in ()).throw(OSError(2, "no such file")))
        spool.append(Ragged.from_rows([np.arange(501)], np.uint64))  # what cannot be told stops nobody


def test_a_disk_that_fills_up_meanwhile(tmp_path, monkeypatch):
    with Spool(tmp_path) as spool:

        class Full:
            def write(self, _):
                raise OSError(28, "No space left on device")

            def close(self):
                pass

        spool._file.close()
        monkeypatch.setattr(spool, "_file", Full())
        says = r"No space left on device; for temporary files at least 80 bytes are to come; name a larger disk with"
        with pytest.raises(OutputError, match=says):
            spool.append(Ragged.from_rows([np.arange(10)], np.uint64))


def test_a_disk_that_fails_when_read(tmp_path, monkeypatch):
    with Spool(tmp_path) as spool:
        spool.append(Ragged.from_rows([[1, 2, 3]], np.uint64))

        def fail(*_):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(spool, "_read_some", fail)
        with pytest.raises(OutputError, match=r"Input/output error; name a larger disk with temp_dir=..."):
            spool.gather(np.array([0]))


@pytest.mark.skipif(os.name != "posix", reason="limits on open files are POSIX's")
def test_too_many_open_files(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(ResourceError, match=r"too many files are open; raise the limit \(ulimit -n\)"):
            Spool(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_spool_for_a_device_joins_nothing_while_it_grows(tmp_path, monkeypatch):
    """Each batch costs as much as the one before: what is stored already is not looked at."""
    monkeypatch.setattr(Spool, "offsets", property(lambda _: pytest.fail("all batches are joined")))
    monkeypatch.setattr(DeviceSpool, "offsets", property(lambda _: pytest.fail("all batches are joined")))
    with DeviceSpool(tmp_path, 100) as spool:
        for size in range(20):
            spool.append(Ragged(np.arange(size, dtype=np.uint64), np.array([0, size // 2, size])))
        assert (spool.num_rows, spool.num_values) == (40, 190)
        assert spool._file.num_rows > 20 and spool._first_there[-1] == spool._file.num_rows - 2
