"""Tables of a result have the same types however they were made: in memory, as tasks, or decided by an index.

So what one of them wrote joins with what another wrote, and with the documents.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from growing import as_in_an_index

import neardup_gpu as nd
from neardup_gpu.store.parquet import read_table

RECIPE = nd.Recipe(method="minhash", shingles=nd.Shingles(2), threshold=0.5)
TEXTS = ["to be or not to be", "to be or not to go", "that is the question", "that is the question"]

IDS = {
    "int16": pa.array([3, 1, 2, 7], pa.int16()),
    "uint64": pa.array([3, 1, 2, 7], pa.uint64()),
    "string": pa.array(["a", "b", "c", "d"]),
    "large_string": pa.array(["a", "b", "c", "d"], pa.large_string()),
    "string_view": pa.array(["a", "b", "c", "d"], pa.string_view()),
    "dictionary": pa.array(["a", "b", "c", "d"]).dictionary_encode(),
    "binary": pa.array([b"a", b"b", b"c", b"d"]),
    "fixed": pa.array([b"aa", b"bb", b"cc", b"dd"], pa.binary(2)),
}


def types_in(*paths: Path) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for path in paths for field in read_table(path).schema]


@pytest.mark.parametrize("kind", IDS)
def test_tables_have_one_type(kind: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": IDS[kind], "text": TEXTS}), tmp_path / "in.parquet")
    how = {"id_column": "id", "recipe": RECIPE, "engine": "cpu", "check": 0}
    result = flat(nd.dedup, tmp_path / "in.parquet", **how, output=tmp_path / "memory")
    place = nd.Workers(work_dir=str(tmp_path / "work"), number=1)
    flat(nd.dedup, str(tmp_path / "in.parquet"), **how, output=str(tmp_path / "tasks"), workers=place)
    with nd.Index.create(tmp_path / "index", recipe=RECIPE, engine="cpu") as index:
        index.add(tmp_path / "in.parquet", id_column="id", output=tmp_path / "decisions.parquet")
        decided = index.decide(output=tmp_path / "decided")
        asked = index.query(TEXTS[0])
    for name in ("documents", "pairs"):
        table, theirs = getattr(result, name), getattr(decided, name)
        own = [(field.name, field.type) for field in table.schema]
        assert types_in(tmp_path / "memory" / f"{name}.parquet") == own
        assert types_in(*(tmp_path / "tasks" / name).iterdir()) == own
        assert types_in(tmp_path / "decided" / f"{name}.parquet") == [(f.name, f.type) for f in theirs.schema]
        usual = theirs.schema.names
        assert types_in(tmp_path / "decided" / f"{name}.parquet") == [each for each in own if each[0] in usual]
        assert theirs.to_pylist() == as_in_an_index(table.select(usual))
    decisions = [each for each in types_in(tmp_path / "decided" / "documents.parquet") if each[0] != "kind"]
    assert types_in(tmp_path / "decisions.parquet") == decisions
    assert asked.schema.field("id").type == result.documents.schema.field("id").type


def test_ids_of_several_types_have_one_that_holds_all(tmp_path: Path) -> None:
    tables = []
    for number, kind in enumerate((pa.int8(), pa.int32(), pa.uint16())):
        ids = pa.array(np.arange(4) + 4 * number).cast(kind)
        tables.append(pa.table({"id": ids, "text": TEXTS}))
        pq.write_table(tables[-1], tmp_path / f"{number}.parquet")
    expected = nd.dedup(sorted(tmp_path.glob("*.parquet")), id_column="id", recipe=RECIPE)
    with nd.Index.create(tmp_path / "index", recipe=RECIPE) as index:
        found = []
        for table in tables:
            index.add(table, id_column="id")
            found.append(index.decide().documents.schema.field("id").type)
        assert found == [pa.int8(), pa.int64(), pa.int64()]
        assert index.decide().documents["id"].type == expected.documents["id"].type == pa.int64()


def test_decisions_of_yesterday_are_replaced_and_those_of_a_result_are_not(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "index", recipe=RECIPE) as index:
        index.add({"text": TEXTS[:2]}, output=tmp_path / "today.parquet")
        index.add({"text": TEXTS[2:]}, output=tmp_path / "today.parquet", overwrite=True)
        assert read_table(tmp_path / "today.parquet")["id"].to_pylist() == [2, 3]
        index.decide(output=tmp_path / "decided")
        with pytest.raises(nd.errors.OutputError):
            index.add({"text": ["more"]}, output=tmp_path / "decided" / "documents.parquet", overwrite=True)
