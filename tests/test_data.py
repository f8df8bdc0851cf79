"""The two containers are valid once made, and only then."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from neardup_gpu.data import rows_of, values_of
from neardup_gpu.errors import ArgumentTypeError, ParameterError
from neardup_gpu.stages import Pairs, Ragged


def int64(*values):
    return np.array(values, np.int64)


class TestRagged:
    def test_rows(self):
        rows = Ragged(np.arange(10), int64(2, 4, 4, 9))
        assert [rows[i].tolist() for i in range(len(rows))] == [[2, 3], [], [4, 5, 6, 7, 8]]
        assert rows.sizes.tolist() == [2, 0, 5]
        assert "3 rows, 7 int64 values" in repr(rows)

    def test_rows_are_views(self):
        rows = Ragged(np.arange(4), int64(0, 2, 4))
        assert rows[1].base is rows.values

    @pytest.mark.parametrize("row", [-1, 2])
    def test_rows_out_of_range(self, row):
        with pytest.raises(IndexError, match="of 2"):
            Ragged(np.arange(4), int64(0, 2, 4))[row]

    def test_no_rows(self):
        assert len(Ragged(np.empty(0), int64(0))) == 0
        assert len(Ragged.from_rows([], np.uint64)) == 0
        assert Ragged.from_rows([[], [1]], np.uint64).sizes.tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("values", "offsets"),
        [
            (np.arange(4), int64()),
            (np.arange(4), int64(0, 5)),
            (np.arange(4), int64(-1, 2)),
            (np.arange(4), int64(0, 3, 2)),
            (np.arange(4), np.array([0.0, 4.0])),
            (np.arange(4), [0, 4.5]),
            (np.arange(4), np.array([0, 2**63], np.uint64)),
            (np.arange(4), [[0, 4]]),
            (np.arange(4), [False, True]),
            (np.arange(4).reshape(2, 2), int64(0, 2)),
        ],
    )
    def test_invalid(self, values, offsets):
        with pytest.raises(ValueError, match="Ragged") as raised:
            Ragged(values, offsets)
        assert isinstance(raised.value, ParameterError)

    @pytest.mark.parametrize("kind", [np.int32, np.uint64, ">i8", object])
    def test_offsets_of_other_integers_become_int64(self, kind):
        offsets = np.array([0, 1, 4], kind)
        rows = Ragged(np.arange(4), offsets)
        assert (rows.offsets.dtype, rows.offsets.tolist()) == (np.int64, [0, 1, 4])

    def test_lists(self):
        assert Ragged([7, 8, 9], [0, 1, 3])[1].tolist() == [8, 9]

    def test_values_become_contiguous_and_of_this_byte_order(self):
        for values in (np.arange(8, dtype=np.uint64)[::2], np.array([0, 2, 4, 6], ">u8")):
            rows = Ragged(values, [0, 4])
            assert rows.values.flags.c_contiguous and rows.values.dtype.isnative and rows[0].tolist() == [0, 2, 4, 6]

    @pytest.mark.parametrize("value", [None, "abc", b"abc", 3, {1: 2}, {1}, object(), [[1], [2, 3]], iter([1])])
    def test_not_an_array(self, value):
        for make in (lambda: Ragged(value, [0]), lambda: Ragged([], value), lambda: Pairs(value, [1])):
            with pytest.raises(ArgumentTypeError):
                make()

    @pytest.mark.parametrize("row", [[1.5], [-1], [2**64], ["a"], [None], [[1]], np.array([-1]), np.array([0.5])])
    def test_rows_are_not_rounded_or_wrapped(self, row):
        with pytest.raises(ParameterError, match=r"^rows\[1\]"):
            Ragged.from_rows([[1], row], np.uint64)

    def test_rows_of_great_integers(self):
        assert Ragged.from_rows([[1, 2**64 - 1]], np.uint64).values.tolist() == [1, 2**64 - 1]

    def test_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Ragged(np.arange(4), int64(0, 4)).values = np.arange(5)


class TestPairs:
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
    def test_from_unsorted(self, given_pairs):
        pairs = Pairs.from_unsorted([a for a, _ in given_pairs], [b for _, b in given_pairs])
        expected = sorted({(min(p), max(p)) for p in given_pairs if p[0] != p[1]})
        assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == expected
        assert len(pairs) == len(expected)

    def test_lists(self):
        pairs = Pairs([0, 0], [1, 2])
        assert (pairs.left.dtype, pairs.left.tolist(), pairs.right.tolist()) == (np.int64, [0, 0], [1, 2])
        assert Pairs(np.array([0], np.int32), np.array([1], np.uint8)).right.dtype == np.int64
        assert len(Pairs([], [])) == 0

    @pytest.mark.parametrize(("left", "right"), [([0, 1], [1]), ([0.5], [1]), ([0], [2**63]), ([-(2**70)], [1])])
    def test_unsorted_are_not_stretched_rounded_or_wrapped(self, left, right):
        with pytest.raises(ParameterError):
            Pairs.from_unsorted(left, right)

    @pytest.mark.parametrize("mask", [[True], [1, 0, 1], np.zeros(4, bool), np.arange(3), [True, None, False]])
    def test_where_takes_a_bool_for_each(self, mask):
        with pytest.raises(ParameterError, match="mask"):
            Pairs([0, 0, 1], [1, 2, 2]).where(mask)

    def test_where(self):
        pairs = Pairs(int64(0, 0, 1), int64(1, 2, 2)).where(np.array([True, False, True]))
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 1], [1, 2])

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (int64(1), int64(1)),
            (int64(2), int64(1)),
            (int64(-1), int64(1)),
            (int64(0, 0), int64(1, 1)),
            (int64(0, 0), int64(2, 1)),
            (int64(1, 0), int64(2, 1)),
            (int64(0), int64(1, 2)),
            (np.array([0.0]), np.array([1])),
            (np.array([0]), np.array([1], bool)),
            (np.array([0]), np.array([2**63], np.uint64)),
            (np.array([[0]]), np.array([[1]])),
        ],
    )
    def test_invalid(self, left, right):
        with pytest.raises(ValueError, match="Pairs"):
            Pairs(left, right)


@pytest.mark.parametrize(
    "calls",
    [
        "nd.dedup('d.jsonl', output='out')",
        "nd.dedup('d.parquet', id_column='id', output='out')",
        "from neardup_gpu.cli import main; main(['demo'])",
        "index = nd.Index.create('i'); index.add('d.jsonl'); index.query(['d.jsonl']); index.query('one two')",
    ],
)
def test_a_job_does_without_pandas(calls, tmp_path):
    """pa.array imports it wherever it is installed, which costs a fifth of a second."""
    (tmp_path / "d.jsonl").write_text('{"text": "one two"}\n')
    pq.write_table(pa.table({"id": ["a"], "text": ["one two"]}), tmp_path / "d.parquet")
    code = f"import neardup_gpu as nd, sys; {calls}; assert 'pandas' not in sys.modules"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    "command",
    ["dedup d.jsonl --text-column text --keep key -o out", "contaminated d.jsonl --evals d.parquet -o out"],
)
def test_a_command_does_without_pandas(command, tmp_path):
    """The installed command hides it from pyarrow, which asks for it in many of its functions."""
    (tmp_path / "d.jsonl").write_text('{"text": "one two", "key": "a"}\n{"text": "three four", "key": "b"}\n')
    pq.write_table(pa.table({"text": ["five six seven eight nine"]}), tmp_path / "d.parquet")
    run = [sys.executable, "-X", "importtime", "-m", "neardup_gpu", *command.split()]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "pyarrow" in imported and not any(name.startswith("pandas.") for name in imported)


NANOSECONDS = [None, 0, 1_000_000_000, 1_700_000_000_123_456_000, 1_700_000_000_123_456_789, -1]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (pa.timestamp("ns"), ["2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999"]),
        (pa.timestamp("ns", "+01:00"), ["2023-11-14T23:13:20.123456789+01:00", "1970-01-01T00:59:59.999999999+01:00"]),
        (pa.duration("ns"), ["1700000000123456789 ns", "-1 ns"]),
    ],
)
def test_times_with_nanoseconds_are_text(kind, texts):
    """Whole microseconds are objects of Python, at any depth."""
    column = pa.array(NANOSECONDS, pa.int64()).cast(kind)
    coarse = pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us", kind.tz)
    expected = [*column[:4].cast(coarse).to_pylist(), *texts]
    assert values_of(column) == values_of(pa.chunked_array([column])) == expected
    assert values_of(column.dictionary_encode()) == expected
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 6], pa.int32()), column, mask=pa.array([False, True, False]))
    assert values_of(lists) == [expected[:2], None, expected[2:]]
    struct = pa.StructArray.from_arrays([column, pa.array(range(6))], ["a", "b"], mask=pa.array([False] * 5 + [True]))
    assert values_of(struct[1:]) == [*({"a": expected[i], "b": i} for i in range(1, 5)), None]
    assert list(rows_of(pa.table({"t": column, "s": struct})))[4] == {"t": texts[0], "s": {"a": texts[0], "b": 4}}


def test_few_nanoseconds_have_nine_digits():
    assert values_of(pa.array([1_000_000_005], pa.int64()).cast(pa.time64("ns"))) == ["00:00:01.000000005"]


def test_values_are_those_of_arrow():
    """Other values are what Arrow makes of them; times of years beyond 9999 are text."""
    times = pa.array([0, None, 1_700_000_000_123_456], pa.int64())
    columns = [pa.array([1, None]), pa.array([[1], None, []]), pa.array([{"a": [{"b": "c"}]}, None, {"a": None}])]
    columns += [pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.array([b"a"]), pa.array(["a"]).dictionary_encode()]
    columns += [times.cast(kind) for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"))]
    columns += [
        pa.array([3, None], pa.int64()).cast(pa.time64("us")),
        pa.array([5, None], pa.int32()).cast(pa.date32()),
    ]
    for column in columns:
        assert values_of(column) == column.to_pylist()
        assert values_of(column[1:]) == column[1:].to_pylist()
    late = pa.array([2**38, None], pa.int64()).cast(pa.timestamp("s", "UTC"))
    assert values_of(late) == ["10680-07-14T06:09:04+00:00", None]


def test_commands_write_nanoseconds_without_pandas(tmp_path):
    """A query shows them, and lines of JSON hold them, in lists and structs as well."""
    when = pa.array(NANOSECONDS[-2:], pa.int64()).cast(pa.timestamp("ns"))
    inner = pa.StructArray.from_arrays([when], ["at"])
    table = pa.table({"id": ["a", "b"], "text": ["a b c d e", "f g h i j"], "when": when, "in": inner})
    pq.write_table(table, tmp_path / "d.parquet")

    def run(command):
        code = [sys.executable, "-m", "neardup_gpu", *command.split()]
        return subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    run("dedup d.parquet --id-column id --text-column text --output-format jsonl -o out")
    first = json.loads((tmp_path / "out/kept/d.jsonl").read_text().splitlines()[0])
    assert first["when"] == first["in"]["at"] == "2023-11-14T22:13:20.123456789"
    run("index create ix --columns when")
    run("index add ix d.parquet --id-column id --text-column text")
    found = [json.loads(line) for line in run("index query ix --columns when --json --text a.b.c.d.e").splitlines()]
    assert found[0]["when"] == "2023-11-14T22:13:20.123456789"
    assert "20.123456789" in run("index query ix --columns when --text a.b.c.d.e")
