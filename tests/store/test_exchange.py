"""What a task hands on comes back as it was, partition by partition, or its file is named as damaged."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import resource
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st
from stored_files import files_of, num_bytes

from neardup_gpu.errors import OutputError, ParameterError
from neardup_gpu.store import exchange
from neardup_gpu.store.exchange import (
    DamagedExchangeError,
    Exchanged,
    ExchangeWriter,
    num_rows,
    read_arrays,
    read_partition,
)
from neardup_gpu.store.places import Place
from neardup_gpu.tasks.sizes import Exchange

SCHEMA = pa.schema(
    [
        *(("word", pa.uint64()), ("rank", pa.int64()), ("size", pa.int32()), ("table", pa.uint16())),
        *(("share", pa.float64()), ("flag", pa.bool_()), ("hash", pa.list_(pa.uint64(), 2))),
        *(("id", pa.large_string()), ("raw", pa.large_binary()), ("set", pa.large_list(pa.uint64()))),
    ]
)
PAIRS = pa.schema([("word", pa.uint64()), ("row", pa.int64())])
WORDS = st.integers(0, 2**64 - 1)
ROW = st.tuples(
    *(WORDS, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**16 - 1)),
    *(st.floats(allow_nan=False), st.booleans(), st.lists(WORDS, min_size=2, max_size=2)),
    *(st.text(max_size=4), st.binary(max_size=4), st.lists(WORDS, max_size=3)),
)


@pytest.fixture(params=["local", "fsspec"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "local":
        yield Place.of(tmp_path / "work")
        return
    pytest.importorskip("fsspec")
    place = Place.of(f"memory://{uuid.uuid4().hex}/work")
    yield place
    place.remove_all()


def columns_of(rows: list[tuple[Any, ...]], as_arrow: bool = False) -> dict[str, Any]:
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    found: dict[str, Any] = {name: table[name].combine_chunks() for name in SCHEMA.names}
    if not as_arrow:
        for name in SCHEMA.names[:6]:
            found[name] = found[name].to_numpy(zero_copy_only=False)
        found["hash"] = np.array([row[6] for row in rows], np.uint64).reshape(-1, 2)
    return found


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def write(
    place: Place, name: str, parts: list[Any], num_partitions: int, most: int, as_arrow: bool = False
) -> Exchanged:
    """A file of parts, each a list of (partition, row)."""
    with ExchangeWriter(place, name, SCHEMA, num_partitions, most) as out:
        for part in parts:
            out.add(np.array([p for p, _ in part], np.int64), columns_of([row for _, row in part], as_arrow))
        return out.close()


@settings(deadline=None, max_examples=fewer(60))
@given(
    st.integers(1, 5).flatmap(
        lambda p: st.tuples(
            st.just(p),
            st.lists(st.lists(st.lists(st.tuples(st.integers(0, p - 1), ROW), max_size=6), max_size=4), max_size=3),
        )
    ),
    st.sampled_from([1, 150, 700, 10**6]),
    st.booleans(),
)
def test_rows_come_back_by_partition_in_their_order(drawn: tuple[int, list[Any]], most: int, as_arrow: bool) -> None:
    """Several tasks, each of which adds several times: read as batches, as arrays, and counted."""
    pytest.importorskip("fsspec")
    num_partitions, tasks = drawn
    place = Place.of(f"memory://{uuid.uuid4().hex}")
    names = [f"stage/{number}" for number in range(len(tasks))]
    try:
        for name, parts in zip(names, tasks, strict=True):
            check_round_trip(
                place, [name], [parts], num_partitions, write(place, name, parts, num_partitions, most, as_arrow)
            )
        for partition in range(num_partitions):
            check_partition(place, names, tasks, partition)
            check_partition(place, names[::-1], tasks[::-1], partition)
    finally:
        place.remove_all()


def check_round_trip(place: Place, names: list[str], tasks: list[Any], num_partitions: int, told: Exchanged) -> None:
    expected = [p for parts in tasks for part in parts for p, _ in part]
    rows = [num_rows(place, names, partition) for partition in range(num_partitions)]
    assert rows == np.bincount(np.array(expected, np.int64), minlength=num_partitions).tolist()
    assert (told.name, told.num_rows, told.num_bytes) == (names[0], len(expected), num_bytes(place, names[0]))
    with place.open(names[0]) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    assert table.schema == SCHEMA and table.num_rows == len(expected)


def check_partition(place: Place, names: list[str], tasks: list[Any], partition: int) -> None:
    expected = [row for parts in tasks for part in parts for p, row in part if p == partition]
    assert rows_of(read_partition(place, names, partition)) == expected
    assert num_rows(place, names, partition) == len(expected)
    arrays = read_arrays(place, names, partition, SCHEMA)
    for i, field in enumerate(SCHEMA):
        found = arrays[field.name]
        if i < 7:
            assert found.dtype == (np.uint64 if i == 6 else np.dtype(field.type.to_pandas_dtype()))
            assert found.shape == ((len(expected), 2) if i == 6 else (len(expected),))
            assert found.tolist() == [row[i] for row in expected]
        else:
            assert found.type == field.type and found.to_pylist() == [row[i] for row in expected]


def make_pairs(n: int, num_partitions: int, seed: int = 1) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 2**64, n, np.uint64)
    return generator.integers(0, num_partitions, n), {"word": words, "row": np.arange(n)}


def write_pairs(
    place: Place, name: str, n: int, num_partitions: int, most: int = 10**6, step: int = 10**9
) -> Exchanged:
    partition, columns = make_pairs(n, num_partitions)
    with ExchangeWriter(place, name, PAIRS, num_partitions, most) as out:
        for start in range(0, n, step):
            each = {key: values[start : start + step] for key, values in columns.items()}
            out.add(partition[start : start + step], each)
            for values in each.values():
                values[:] = 0  # whoever adds may go on with its arrays
    return out.close()


@pytest.mark.parametrize(("n", "most", "step"), [(50_000, 10**6, 10**9), (50_000, 10**5, 777), (300_000, 10**9, 10**9)])
@pytest.mark.parametrize("num_partitions", [1, 7, 300])
def test_many_rows(place: Place, n: int, most: int, step: int, num_partitions: int) -> None:
    check_pairs(place, n, most, step, num_partitions)


def test_many_partitions(place: Place) -> None:
    check_pairs(place, 5_000, 10**6, 777, 70_000)


def check_pairs(place: Place, n: int, most: int, step: int, num_partitions: int) -> None:
    told = write_pairs(place, "a/0", n, num_partitions, most, step)
    partition, columns = make_pairs(n, num_partitions)
    assert told.num_rows == n
    for wanted in {0, num_partitions // 2, num_partitions - 1}:
        found = read_arrays(place, ["a/0"], wanted, PAIRS)
        assert np.array_equal(found["word"], columns["word"][partition == wanted])
        assert np.array_equal(found["row"], columns["row"][partition == wanted])


def test_a_large_partition_comes_in_batches(place: Place) -> None:
    write_pairs(place, "a/0", 3_000_000, 1, 10**9)
    sizes = [batch.nbytes for batch in read_partition(place, ["a/0"], 0)]
    assert len(sizes) > 2 and max(sizes) < 20 << 20 and sum(sizes) == 48_000_000


def test_long_rows_of_one_partition_come_in_batches(place: Place) -> None:
    texts = pa.array(["x" * 1_000_000 if row % 100 == 0 else "" for row in range(4000)], pa.large_string())
    with ExchangeWriter(place, "a", pa.schema([("id", pa.large_string())]), 2, 10**9) as out:
        out.add((np.arange(4000) % 100 > 0).astype(np.int8), {"id": texts})
    sizes = [batch.nbytes for batch in read_partition(place, ["a"], 0)]
    assert len(sizes) == 2 and max(sizes) < 24_000_000 and sum(sizes) > 40_000_000


def test_no_tasks_and_no_rows(place: Place) -> None:
    assert list(read_partition(place, [], 3)) == [] and num_rows(place, [], 3) == 0
    told = write(place, "none", [], 3, 1000)
    assert told.num_rows == 0 and [num_rows(place, ["none"], part) for part in range(3)] == [0, 0, 0]
    for names in ([], ["none"]):
        check_partition(place, names, [], 2)
    assert list(read_partition(place, ["none"], 2)) == []


def test_some_columns(place: Place) -> None:
    write_pairs(place, "a", 1000, 3)
    partition, columns = make_pairs(1000, 3)
    (batch,) = read_partition(place, ["a"], 1, ["row"])
    assert batch.schema.names == ["row"] and batch["row"].to_pylist() == columns["row"][partition == 1].tolist()
    assert list(read_arrays(place, ["a"], 1, pa.schema([PAIRS.field("row")]))) == ["row"]


def test_a_record_can_be_kept_and_sent(place: Place) -> None:
    told = write_pairs(place, "a", 1000, 3)
    assert Exchanged(**json.loads(json.dumps(dataclasses.asdict(told)))) == told == pickle.loads(pickle.dumps(told))
    assert write_pairs(place, "b", 1000, 3).checksum == told.checksum  # the same rows are the same bits
    assert write_pairs(place, "b", 1000, 4).checksum != told.checksum


def test_only_the_bytes_of_a_partition_are_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    told = write_pairs(place, "a", 640_000, 64, 2 * 10**6)
    ranges, read = [], exchange._read

    def counted(place: Place, name: str, file: pa.NativeFile, start: int, num_bytes: int) -> pa.Buffer:
        ranges.append(num_bytes)
        return read(place, name, file, start, num_bytes)

    monkeypatch.setattr(exchange, "_read", counted)
    rows = len(read_arrays(place, ["a"], 5, PAIRS)["row"])
    num_read = sum(ranges)
    assert rows == np.count_nonzero(make_pairs(640_000, 64)[0] == 5)
    assert 16 * rows < num_read < 16 * rows + 2 * (1 << 16) + 6 * 600 < told.num_bytes / 20
    ranges.clear()
    num_rows(place, ["a"], 5)
    assert sum(ranges) == 1 << 16


def test_what_a_row_costs(tmp_path: Path) -> None:
    place = Place.of(tmp_path)
    told = [write_pairs(place, str(n), n, 8) for n in (1000, 2000)]
    assert told[1].num_bytes - told[0].num_bytes == pytest.approx(
        16 * 1000, abs=8 * 2 * 8
    )  # each array ends at 8 bytes
    sparse = [write_pairs(place, str(n), 8, n) for n in (10**6, 10**7)]
    assert sparse[0].num_bytes == sparse[1].num_bytes  # partitions without rows cost nothing


# ------------------------------------------------------------------------------------------------------------- damage


SMALL = pa.schema([SCHEMA.field(name) for name in ("word", "hash", "id")])


def outcome(place: Place, names: list[str]) -> list[Any] | None:
    """All that is read of three partitions; None if a file is damaged, which is named."""
    found: list[Any] = []
    try:
        for partition in range(3):
            found.append(rows_of(read_partition(place, names, partition)))
            arrays = read_arrays(place, names, partition, SMALL)
            assert len(arrays["word"]) == num_rows(place, names, partition) == len(found[-1])
    except DamagedExchangeError as error:
        assert error.name == names[1] and names[1] in str(error) and pickle.loads(pickle.dumps(error)).name == names[1]
        return None
    return found


@pytest.fixture
def sound(place: Place) -> tuple[list[str], bytes, list[Any]]:
    """Two small files; the bytes of the second and what is read of both."""
    names = ["a/0", "a/1"]
    words, ids = np.array([2**64 - 1, 2, 3], np.uint64), pa.array(["ä", "", "id"], pa.large_string())
    for name in names:
        with ExchangeWriter(place, name, SMALL, 3, 10**6) as out:
            out.add(
                np.array([0, 2, 0]), {"word": words, "hash": np.arange(6, dtype=np.uint64).reshape(3, 2), "id": ids}
            )
    with place.open(names[1]) as file:
        data = bytes(file.read())
    found = outcome(place, names)
    assert found is not None and [len(rows) for rows in found] == [4, 0, 2]
    return names, data, found


def put(place: Place, name: str, data: bytes) -> None:
    if place.folder is not None:
        (place.folder / name).write_bytes(data)
        return
    with place.write(name) as file:
        file.write(data)


def test_a_flipped_bit_anywhere(place: Place, sound: tuple[list[str], bytes, list[Any]]) -> None:
    """It changes nothing in the message of the schema and in the end of the stream, which are for other programs."""
    names, data, expected = sound
    unread = {*range(SMALL.serialize().size)} | {*range(start := data.index(exchange._END_OF_STREAM), start + 8)}
    generator = np.random.default_rng(3)
    for position, bit in enumerate(generator.integers(0, 8, len(data)).tolist()):
        flipped = bytearray(data)
        flipped[position] ^= 1 << bit
        put(place, names[1], bytes(flipped))
        found = outcome(place, names)
        assert found == expected if position in unread else found is None, position
    put(place, names[1], data)
    assert outcome(place, names) == expected


def test_a_file_cut_anywhere(place: Place, sound: tuple[list[str], bytes, list[Any]]) -> None:
    names, data, _ = sound
    for length in range(len(data)):
        put(place, names[1], data[:length])
        assert outcome(place, names) is None, length
    for other in (data + b"\0", b"\0" + data, data[:200] + data[208:], data[:-8] + data[-8:] * 2, bytes(len(data))):
        put(place, names[1], other)
        assert outcome(place, names) is None
    place.remove(names[1])
    assert outcome(place, names) is None


def test_a_large_index_is_compared(place: Place) -> None:
    told = write_pairs(place, "a", 10_000, 5_000)
    with place.open("a") as file:
        data = bytearray(file.read())
    partitions_end = len(data) - exchange._SEAL.size
    first_run = data.rindex(exchange._END_OF_STREAM) + 8
    for position in (partitions_end - 1, partitions_end - 70_000, first_run + 10):  # the tail has only the first
        damaged = data.copy()
        damaged[position] ^= 1
        put(place, "a", bytes(damaged))
        with pytest.raises(DamagedExchangeError, match="a: has changed since it was written"):
            num_rows(place, ["a"], 0)
    put(place, "a", bytes(data))
    assert sum(num_rows(place, ["a"], partition) for partition in range(0, 5_000, 100)) < told.num_rows


def test_a_reader_reads_its_own_part_of_the_index(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `neardup plan` counts it: the end of the file, and 40 bytes for each record batch of the partition."""
    rows, partitions = 100 * 200, 200
    with ExchangeWriter(place, "a", pa.schema([("row", pa.int64())]), partitions, 1600) as out:
        for first in range(0, rows, partitions):  # each time as many bytes as are held
            out.add(np.arange(partitions), {"row": np.arange(first, first + partitions)})
    sizes, read = [], exchange._read

    def counted(place: Place, name: str, file: Any, start: int, num_bytes: int) -> Any:
        sizes.append(num_bytes)
        return read(place, name, file, start, num_bytes)

    monkeypatch.setattr(exchange, "_read", counted)
    assert num_rows(place, ["a"], 0) == 100 and sizes == [exchange._TAIL_BYTES, 40 * 100]
    task_memory = 10 * 1600
    described = Exchange("stage", "what", rows, 8 * rows, 1, 1, partitions, share=10)
    assert sum(sizes) <= described.index_bytes(task_memory) <= sum(sizes) + 40


def test_a_file_that_is_replaced_while_it_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pairs(place, "a", 1000, 2)
    write_pairs(place, "b", 2000, 2)
    with place.open("b") as file:
        other = bytes(file.read())
    opened, times = exchange._file, []

    def replaced(*arguments: Any) -> Any:
        times.append(1)
        if len(times) == 2:
            put(place, "a", other)
        return opened(*arguments)

    monkeypatch.setattr(exchange, "_HELD_BYTES", 0)
    monkeypatch.setattr(exchange, "_file", replaced)
    with pytest.raises(DamagedExchangeError, match="a: has changed since it was written"):
        read_arrays(place, ["a"], 0, PAIRS)


def test_a_file_is_opened_once_unless_much_comes_before_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number}" for number in range(4)]
    for number, name in enumerate(names):
        write_pairs(place, name, 1000 * (number + 1), 2)
    opened, open_file = [], exchange._file

    def counted(place: Place, name: str) -> Any:
        opened.append(name)
        return open_file(place, name)

    monkeypatch.setattr(exchange, "_file", counted)
    expected = read_arrays(place, names, 1, PAIRS)
    assert opened == names
    monkeypatch.setattr(exchange, "_HELD_BYTES", 30_000)  # of 8, 16, 24 and 32 kB
    opened.clear()
    found = read_arrays(place, names, 1, PAIRS)
    assert opened == [*names, *names[2:]]
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column)


# ----------------------------------------------------------------------------------------------------- while it writes


def test_an_error_leaves_nothing_under_the_name(place: Place) -> None:
    partition, columns = make_pairs(10_000, 3)
    with pytest.raises(KeyError), ExchangeWriter(place, "a/0", PAIRS, 3, 1000) as out:
        out.add(partition, columns)
        raise KeyError
    assert files_of(place, "a") == []
    with pytest.raises(DamagedExchangeError, match="a/0: no such file; run the job again") as caught:
        list(read_partition(place, ["a/0"], 0))
    assert caught.value.name == "a/0"


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed")
def test_a_killed_writer_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    place = Place.of(tmp_path)
    pid = os.fork()
    if not pid:
        with ExchangeWriter(place, "a/0", PAIRS, 3, 1000) as out:
            out.add(*make_pairs(10_000, 3))
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (left,) = (tmp_path / "a").iterdir()
    assert left.stat().st_size > 100_000 and files_of(place, "a") == []
    told = write_pairs(place, "a/0", 10_000, 3)
    assert files_of(place, "a") == ["a/0"] and sum(num_rows(place, ["a/0"], p) for p in range(3)) == told.num_rows


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are POSIX's")
@pytest.mark.parametrize("most", [1000, 10**7])
def test_a_full_disk(tmp_path: Path, most: int) -> None:
    """While rows are added, and when the rest is written."""
    place, limits = Place.of(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"a/0: cannot be written \(File too large\); name another folder with"):
            write_pairs(place, "a/0", 10_000, 3, most)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path / "a") == []


# ---------------------------------------------------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("partition", "columns", "says"),
    [
        ([0, 3], {}, r"partition\[1\] must be between 0 and 2, got 3"),
        ([-1, 0], {}, r"partition\[0\] must be between 0 and 2, got -1"),
        ([0.0, 1.0], {}, "partition: 1 dimensions of float64"),
        ([[0, 1]], {}, "partition: 2 dimensions"),
        ([0, 1, 2], {}, "word"),
        ([0, 1], {"row": np.array([1, 2], np.int32)}, "row: int32"),
        ([0, 1], {"row": pa.nulls(2, pa.int64())}, "row: 2 values of int64, 2 of them null"),
        ([0, 1], {"row": pa.nulls(2, pa.int8())}, "row: 2 values of int8"),
        ([0, 1], {"more": np.zeros(2)}, "columns: word, row, more given; word, row are needed"),
    ],
)
def test_rows_that_do_not_fit(tmp_path: Path, partition: list[Any], columns: dict[str, Any], says: str) -> None:
    good = {"word": np.zeros(2, np.uint64), "row": np.zeros(2, np.int64)}
    with pytest.raises(ParameterError, match=says), ExchangeWriter(Place.of(tmp_path), "a", PAIRS, 3, 1000) as out:
        out.add(np.array(partition), {**good, **columns})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.int64()), pa.timestamp("s"), pa.list_(pa.bool_(), 2)])
def test_types_that_do_not_fit(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(ParameterError, match=r"schema: a is .*; a number, bool, fixed-size list or large list"):
        ExchangeWriter(Place.of(tmp_path), "a", pa.schema([("a", kind)]), 3, 1000)


def test_what_is_asked_for_and_not_there(place: Place) -> None:
    write_pairs(place, "a", 10, 3)
    with pytest.raises(ParameterError, match="partition: 3 is not one of the 3 partitions of a"):
        num_rows(place, ["a"], 3)
    with pytest.raises(ParameterError, match="columns: no id in a of "):
        list(read_partition(place, ["a"], 0, ["id"]))
    for kind, there in (("id", "missing"), ("row", "int64")):
        with pytest.raises(ParameterError, match=f"schema: {kind} is {there} in a of .*, not uint8"):
            read_arrays(place, ["a"], 0, pa.schema([(kind, pa.uint8())]))
