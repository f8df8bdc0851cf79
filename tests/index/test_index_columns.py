"""Columns that an index keeps of documents: decided by as `dedup` decides, removed by, shown; in files of any kind."""

import datetime as dt
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from growing import Texts, as_in_an_index, recipe_of

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.errors import DamagedError
from neardup_gpu.index import columns

DAY = dt.date(2026, 1, 31)
NOON = dt.datetime(2026, 1, 31, 12)


def value_of(draw: random.Random, kind: pa.DataType) -> object:
    if draw.random() < 0.1:
        return None
    number = draw.randrange(-3, 4)
    if pa.types.is_floating(kind):
        return draw.choice([float("nan"), float("inf"), number / 2])
    if pa.types.is_date(kind):
        return DAY + dt.timedelta(days=number)
    if pa.types.is_timestamp(kind):
        return NOON + dt.timedelta(hours=number)
    return {"string": f"s{number}é", "bool": number > 0}.get(str(kind), number)


KINDS = {
    "whole": pa.int16(),
    "share": pa.float32(),
    "source": pa.string(),
    "draft": pa.bool_(),
    "date": pa.date32(),
    "time": pa.timestamp("ms"),
    "zoned": pa.timestamp("us", "Europe/Berlin"),
}


def without(table: pa.Table, ids: pa.Array) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table["id"], value_set=ids)))


@pytest.fixture(scope="module")
def documents() -> pa.Table:
    """Many near-duplicates, with a column of each kind."""
    made, draw = Texts(5), random.Random(5)
    columns = {"id": pa.array([f"d{i}" for i in range(150)]), "text": pa.array(made.some(150))}
    columns |= {name: pa.array([value_of(draw, kind) for _ in range(150)], kind) for name, kind in KINDS.items()}
    return pa.table(columns)


@pytest.fixture(scope="module")
def grown(documents: pa.Table, tmp_path_factory) -> tuple[Path, pa.Table]:
    """An index of them, added in pieces with removals and replacements between, and what lives in it."""
    folder = tmp_path_factory.mktemp("grown") / "index"
    live = documents
    with nd.Index.create(folder, recipe=recipe_of(4), columns=list(KINDS), engine="cpu") as index:
        for start in range(0, 100, 16):
            index.add(documents.slice(start, min(16, 100 - start)), id_column="id")
        gone = [f"d{i}" for i in range(0, 60, 9)]
        index.remove(gone)
        index.add(documents.slice(100), id_column="id", commit_every=20)
        again = documents.slice(10, 3).set_column(3, "share", pa.array([0.25, None, -9.0], pa.float32()))
        assert index.add(again, id_column="id", replace=True).replaced == 3
        live = pa.concat_tables([without(live, again["id"]), again])
        live = without(live, pa.array(gone))
    return folder, live


@pytest.mark.parametrize("name", KINDS)
def test_decides_as_dedup_by_a_column(grown, name: str) -> None:
    folder, live = grown
    with nd.Index.open(folder, engine="cpu") as index:
        for keep in (name, f"{name}:desc"):
            expected = nd.dedup(
                live, id_column="id", engine="cpu", recipe=index.recipe.with_(keep=keep), writing=nd.Writing(check=0)
            )
            found = index.decide(keep=keep)
            assert found.documents.to_pylist() == as_in_an_index(expected.documents)
            assert found.pairs.to_pylist() == as_in_an_index(expected.pairs)
            assert not found.documents.equals(index.decide().documents)


BOUNDS = {
    "whole": [1, -1.5, "2", np.int64(0), 2.0, "0.5"],
    "share": [0.5, "0.25", np.float32(-1.0), 1],
    "source": ["s1", "s-2é", ""],
    "date": [DAY, "2026-02-01", np.datetime64("2026-01-30"), dt.datetime(2026, 1, 31)],
    "time": [NOON, "2026-01-31", "2026-01-31T13:00", np.datetime64("2026-01-31T11:00"), DAY],
    "zoned": [dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T13:00+01:00", "2026-01-31T12:00Z"],
}


def plain(value: object, name: str) -> object:
    """What a bound means, to be compared by Python."""
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if name in ("whole", "share"):
        return float(value)
    if name == "date":
        return dt.date.fromisoformat(value) if isinstance(value, str) else dt.date(value.year, value.month, value.day)
    if name in ("time", "zoned"):
        value = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return value.encode()


@pytest.mark.parametrize("name", BOUNDS)
def test_removes_what_is_before(grown, name: str) -> None:
    folder, live = grown
    values = [value.encode() if isinstance(value, str) else value for value in live[name].to_pylist()]
    with nd.Index.open(folder, engine="cpu") as index:
        number = len(index)
        for bound in BOUNDS[name]:
            expected = sum(value is not None and value < plain(bound, name) for value in values)
            assert index.remove(before=bound, column=name, dry_run=True).documents == expected, bound
        assert len(index.refresh()) == number == len(live)


def test_a_time_without_a_zone_is_one_of_the_columns(tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2026, 7, 1, hour, tzinfo=dt.UTC) for hour in (21, 23)])
    kind = pa.timestamp("s", "Europe/Berlin")  # two hours ahead of UTC: 23:00, and 1:00 on the next day
    with nd.Index.create(tmp_path / "index", columns="at") as index:
        index.add(pa.table({"text": ["to be", "or not"], "at": times.cast(kind)}))
        assert index.remove(before="2026-07-02", column="at").documents == 1
        assert index.remove(before="2026-07-02T01:00", column="at").documents == 0
        assert index.remove(before="2026-07-02T00:00+00:00", column="at").documents == 1


def test_columns_outlive_merges_and_deaths(grown, tmp_path: Path) -> None:
    folder, live = grown
    shutil.copytree(folder, tmp_path / "index")
    with nd.Index.open(tmp_path / "index", engine="cpu") as index:
        earlier = index.remove(before=DAY, column="date").documents
        index.compact()
        assert index.info()["segments"] == 1 and index.check()["documents"] == len(live) - earlier
        left = [row for row in live.to_pylist() if row["date"] is None or row["date"] >= DAY]
        assert len(left) == len(live) - earlier > 0
        found = index.query(live.select(["id", "text"]), id_column="id", columns=list(KINDS))
        known = {row["id"]: row for row in left}
        assert {row["id"] for row in found.to_pylist()} == {row["id"] for row in left if row["text"].strip(" .")}
        for row in found.to_pylist():
            for name in KINDS:
                mine, theirs = row[name], known[row["id"]][name]
                assert mine == theirs or (mine != mine and theirs != theirs), (row, name)
        assert index.decide(keep="date").documents["id"].to_pylist() == [row["id"] for row in left]
        assert found["zoned"].type == KINDS["zoned"] and found["whole"].type == pa.int64()
        assert (
            index.query("nothing that is there", columns="date").schema
            == index.query(live["text"][1].as_py(), columns="date").schema
        )


def test_what_was_half_added_goes_on(tmp_path: Path) -> None:
    rows = pa.table({"id": range(20), "text": [f"text number {i}" for i in range(20)], "n": range(100, 120)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=6)

    def interrupted(stage: str, done: int, total: int | None) -> None:
        if len(index):
            raise KeyboardInterrupt

    with nd.Index.create(tmp_path / "index", columns="n") as index:
        with pytest.raises(KeyboardInterrupt):
            index.add(tmp_path / "a.parquet", id_column="id", commit_every=7, progress=interrupted)
        assert 0 < len(index) < 20
        half = len(index)
        assert index.add(tmp_path / "a.parquet", id_column="id", commit_every=4).documents == 20 - half
        found = index.query(rows.select(["id", "text"]), id_column="id", columns="n")
        assert sorted(found["n"].to_pylist()) == list(range(100, 120))
        assert index.decide(keep="n:desc").documents["id"].to_pylist() == list(range(20))


def test_rows_of_many_batches(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(columns, "BATCH", 4)  # which files have so many rows otherwise that a test takes long
    rows = pa.table(
        {"text": [f"text number {i}" for i in range(50)], "n": range(50), "s": [f"s{i}" for i in range(50)]}
    )
    with nd.Index.create(tmp_path / "index", columns=["n", "s"]) as index:
        for start in range(0, 50, 10):
            index.add(rows.slice(start, 10))
        gone = list(range(0, 50, 3))
        index.remove(gone)
        for _ in range(2):
            found = index.query(rows.select(["text"]), columns=["n", "s"])
            left = [i for i in range(50) if i not in gone]
            assert sorted(found["n"].to_pylist()) == left == sorted(int(each[1:]) for each in found["s"].to_pylist())
            assert found["n"].to_pylist() == found["id"].to_pylist()
            assert index.remove(before=20, column="n", dry_run=True).documents == sum(i < 20 for i in left)
            index.compact()


def test_files_of_all_kinds_and_types(tmp_path: Path) -> None:
    rows = [
        {"text": "to be or not to be", "year": year, "who": who}
        for year, who in ((1599, "a"), (None, None), (1603, "c"))
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[1:2]))  # nothing but nulls
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.csv.write_csv(pa.Table.from_pylist(rows), tmp_path / "c.csv")
    table = pa.Table.from_pylist(rows)
    wide = table.set_column(1, "year", pa.array([1599.0, None, 1603.0]))
    with nd.Index.create(tmp_path / "index", columns=["year", "who"]) as index:
        index.add(table.slice(1, 1).set_column(1, "year", pa.nulls(1)).set_column(2, "who", pa.nulls(1)))
        assert index.info()["columns"] == {"year": "null", "who": "null"}
        assert index.remove(before=9999, column="year").documents == 0
        index.add(tmp_path / "b.jsonl")
        index.add(tmp_path / "c.csv")
        index.add(wide)
        index.add(table.set_column(2, "who", table["who"].dictionary_encode()))
        assert index.info()["columns"] == {"year": "int64", "who": "large_string"}
        index.compact()
        kept = index.decide(keep="year:desc").documents
        assert kept.filter(kept["kept"])["id"].to_pylist() == [3]
        assert index.remove(before=1600, column="year").documents == 4
        assert index.remove(before="b", column="who").documents == 0 and len(index) == 9


def test_a_file_that_lacks_a_column_adds_nothing(tmp_path: Path, capsys) -> None:
    first = pa.table({"id": ["a", "b"], "text": ["to be", "or not"], "date": pa.array([DAY, None])})
    pq.write_table(first, tmp_path / "a.parquet")
    pq.write_table(first.drop_columns(["date"]), tmp_path / "b.parquet")
    pq.write_table(first.set_column(2, "date", pa.array([[1], [2]])), tmp_path / "c.parquet")
    pq.write_table(first.set_column(2, "date", pa.array(["2026-01-31", "x"])), tmp_path / "d.parquet")
    index = str(tmp_path / "index")
    assert run(["index", "create", index, "--columns", "date", "--quiet"]) == 0
    with nd.Index.open(index) as opened:
        for names, words in (
            ("b", r"b\.parquet: no column 'date'; it has id, text\. The index keeps 'date' of each document"),
            ("c", r"column 'date' holds list<.*>; an index keeps integers, floats, strings, bools, dates and"),
            ("ad", "column 'date' holds"),
        ):
            with pytest.raises(nd.errors.InputError, match=words):
                opened.add([tmp_path / f"{name}.parquet" for name in names], id_column="id")
            assert len(opened) == 0 and opened.info()["inputs"] == []
        with pytest.raises(nd.errors.InputError, match="no column 'date'"):
            opened.add({"text": ["to be"]})
        opened.add(tmp_path / "a.parquet", id_column="id")
        with pytest.raises(
            nd.errors.InputError, match=r"column 'date' holds large_string, but date32\[day\] in the index"
        ):
            opened.add(tmp_path / "d.parquet", id_column="id")
        with pytest.raises(nd.errors.InputError, match=r"column 'date' holds .*timestamp.*, but date32"):
            opened.add(
                {"id": ["x"], "text": ["y"], "date": np.array(["2026-01-31T12"], "datetime64[ms]")}, id_column="id"
            )
        assert opened.info()["documents"] == 2
    capsys.readouterr()


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "index", columns=["n", "who"]) as index:
        index.add({"text": ["to be"], "n": [1], "who": ["a"]})
        for n, who, words in (
            (pa.array([1.5]), ["a"], "column 'n' holds what the index cannot keep as int64"),
            (pa.array([2**63], pa.uint64()), ["a"], "column 'n' holds what the index cannot keep as int64"),
            ([2], pa.array([b"\xff"]).view(pa.string()), "column 'who' .*UTF"),
        ):
            with pytest.raises(nd.errors.InputError, match=words):
                index.add({"text": ["or not"], "n": n, "who": who})
        assert len(index) == 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "ids, before and equals: give one of them"),
        ({"ids": ["d1"], "before": 1, "column": "whole"}, "ids, before and equals: give one of them"),
        ({"before": 1}, "column: belongs to before or equals"),
        ({"ids": ["d1"], "column": "whole"}, "column: belongs to before or equals"),
        ({"equals": "yes", "column": "draft"}, "equals: 'yes'; column 'draft' holds bool, give true or false"),
        ({"equals": 5, "column": "source"}, "equals: 5; column 'source' holds large_string, give a string"),
        ({"before": 1, "column": "when"}, "column: the index keeps no column 'when'; it keeps whole, share, source"),
        ({"before": 1, "column": "draft"}, "column 'draft' holds bools"),
        ({"before": "soon", "column": "date"}, "before: 'soon'; column 'date' holds date32.day., give a date such as"),
        ({"before": NOON, "column": "date"}, "give a date such as"),
        ({"before": 2026, "column": "date"}, "give a date such as"),
        ({"before": "31.1.2026", "column": "time"}, "give a time such as"),
        ({"before": "2026-01-31T12:00Z", "column": "time"}, "without a time zone"),
        ({"before": 5, "column": "source"}, "give a string"),
        ({"before": True, "column": "whole"}, "give a number"),
        ({"before": float("nan"), "column": "share"}, "give a number"),
        ({"before": "1e999", "column": "share"}, "give a number"),
        ({"before": 2**64, "column": "whole"}, "give a number"),
    ],
)
def test_what_remove_refuses(grown, how: dict, words: str) -> None:
    with nd.Index.open(grown[0]) as index, pytest.raises(nd.errors.ParameterError, match=words):
        index.remove(**how)


def test_other_refusals(grown, tmp_path: Path) -> None:
    with nd.Index.open(grown[0]) as index:
        with pytest.raises(nd.errors.ParameterError, match="keep 'when:desc': the index keeps no column 'when'"):
            index.decide(keep="when:desc")
        with pytest.raises(nd.errors.ParameterError, match="columns: the index keeps no column 'when'"):
            index.query("to be", columns=["date", "when"])
    for names, words in ((["a", "a"], "'a' is named twice"), ("", "'' is no name"), ([""], "'' is no name")):
        with pytest.raises(nd.errors.ParameterError, match=words):
            nd.Index.create(tmp_path / "index", columns=names)
    assert not (tmp_path / "index").exists()
    with nd.Index.create(tmp_path / "index", columns="kept") as index:
        index.add({"text": ["to be"], "kept": [True]})
        with pytest.raises(nd.errors.ParameterError, match="the answer has a column 'kept' of its own"):
            index.query("to be", columns="kept")
        assert index.decide(keep="kept").documents["kept"].to_pylist() == [True]


def test_a_flipped_bit_is_no_answer(grown, tmp_path: Path) -> None:
    shutil.copytree(grown[0], tmp_path / "index")
    for path in (tmp_path / "index" / "segments").iterdir():
        data = bytearray(path.read_bytes())
        place = data.index(b"ARROW1")  # of the file of Arrow that the array holds
        data[place + 4096 if place + 4096 < data.index(b"ARROW1", place + 6) else place + 600] ^= 1
        path.write_bytes(data)
    with nd.Index.open(tmp_path / "index") as index:
        with pytest.raises(DamagedError, match="has changed since it was written"):
            index.remove(before=1, column="whole")
        with pytest.raises(DamagedError, match="has changed since it was written"):
            index.decide(keep="date")


def test_commands(tmp_path: Path, capsys) -> None:
    table = {"id": ["a", "b", "c"], "text": ["to be or not to be", "to be or not to be", "that is the question"]}
    dates = [DAY - dt.timedelta(days=1), DAY, None]
    pq.write_table(pa.table({**table, "date": dates, "source": ["x", "y", "z"]}), tmp_path / "a.parquet")
    index, out = str(tmp_path / "index"), str(tmp_path / "out")

    def said(*words: str) -> str:
        assert run(["index", *words]) == 0
        return capsys.readouterr().out

    said("create", index, "--columns", "date,source", "--quiet")
    said("add", index, str(tmp_path / "a.parquet"), "--id-column", "id", "--quiet")
    shown = said("query", index, "--text", table["text"][0], "--columns", "date,source", "--quiet", "--json")
    rows = [json.loads(line) for line in shown.splitlines()]
    assert [(row["id"], row["date"], row["source"]) for row in rows[:-1]] == [
        ("a", "2026-01-30", "x"),
        ("b", "2026-01-31", "y"),
    ]
    assert "date (date32[day]), source (large_string)" in said("info", index)
    said("decide", index, "--keep", "date:desc", "--output", out, "--quiet")
    assert pq.read_table(f"{out}/documents.parquet")["kept"].to_pylist() == [False, True, True]
    equal = said("remove", index, "--column", "source", "--equals", "z", "--dry-run", "--json")
    assert json.loads(equal)["removed"] == 1
    before = "--before", "2026-01-31", "--column", "date"
    assert said("remove", index, *before, "--dry-run").strip() == "1 document of 3 would be removed"
    assert json.loads(said("remove", index, *before, "--dry-run", "--json"))["removed"] == 1
    assert json.loads(said("remove", index, *before, "--json"))["documents"] == 2
    assert json.loads(said("remove", index, *before, "--json"))["removed"] == 0
