"""Columns that Arrow does not write to Parquet as they are: converted where that is possible, else refused."""

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import open_documents
from neardup_gpu.documents.kept import parquet_columns, parquet_schema
from neardup_gpu.errors import InputError

TEXTS = ["some words here", "other words here", "some words here", "and more of them"]
HAS_NULL = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array(["z", None, "c"]))
ORDERED = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["z", None, "c"]), ordered=True)
VIEWS = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0], pa.uint32()), pa.array(["z", "c"], pa.string_view()))
NESTED = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), pa.array([["z"], None]))
UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=i).bytes for i in range(4)], pa.binary(16)))
COLUMNS = {
    "null": HAS_NULL,
    "ordered": ORDERED,
    "views": VIEWS,
    "nested": NESTED,
    "in a struct": pa.StructArray.from_arrays([HAS_NULL], ["d"]),
    "in a list": pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 4]), HAS_NULL),
    "in a map": pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4]), pa.array(list("abcd")), HAS_NULL),
    "uuid in a list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4]), UUIDS),
    "uuid in a struct": pa.StructArray.from_arrays([UUIDS], ["u"]),
}


@pytest.mark.parametrize("way", ["table", "arrow", "arrow stream"])
@pytest.mark.parametrize("case", COLUMNS)
def test_values_are_written(case, way, tmp_path):
    table = source = pa.table({"text": TEXTS, "more": COLUMNS[case]})
    if way != "table":
        source = tmp_path / "d.arrow"
        opener = pa.ipc.new_file if way == "arrow" else pa.ipc.new_stream
        with opener(str(source), table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    nd.dedup(source, text_columns="text", output=tmp_path / "out", writing=nd.Writing(output_format="parquet"))
    (file,) = (tmp_path / "out" / "kept").iterdir()
    written = pq.read_table(file)
    assert written["more"].to_pylist() == [table["more"].to_pylist()[i] for i in (0, 1, 3)]
    documents = open_documents(source, text_columns="text")
    assert sum(batch.num_rows for batch in documents.batches()) == 4
    documents.write_kept(tmp_path / "same", np.ones(4, bool))


class Coded(pa.ExtensionType):
    """Strings that are stored as a dictionary."""

    def __init__(self):
        super().__init__(pa.dictionary(pa.int8(), pa.string()), "test.coded")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, *_):
        return cls()


def test_dictionaries_of_extension_types_stay():
    """Arrow makes invalid arrays, or ends the process, if it casts columns that hold such columns."""
    kind = Coded()  # which has to live as long as the column
    column = pa.StructArray.from_arrays([pa.ExtensionArray.from_storage(kind, HAS_NULL)], ["c"])
    batch = pa.RecordBatch.from_arrays([column], ["more"])
    parquet_columns(batch, batch.schema).validate(full=True)


def test_the_order_of_categories_stays():
    batch = pa.record_batch({"c": ORDERED})
    (column,) = parquet_columns(batch, parquet_schema(batch.schema)).columns
    assert column.dictionary.to_pylist() == ["z", "c"]
    assert column.type == ORDERED.type
    assert column.to_pylist() == ORDERED.to_pylist()


@pytest.mark.parametrize(
    "kind",
    [pa.binary(0), pa.month_day_nano_interval(), pa.struct([]), pa.run_end_encoded(pa.int32(), pa.string())],
    ids=str,
)
def test_what_parquet_lacks_is_refused_in_one_line(kind, tmp_path):
    table = pa.table({"text": TEXTS, "more": pa.nulls(4, kind)})
    with pytest.raises(InputError, match=r"column 'more' of type .* cannot be written as Parquet"):
        nd.dedup(table, output=tmp_path / "out")
