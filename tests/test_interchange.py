"""Arrays and columns of other libraries, given by the protocols that they speak, in host memory."""

import numpy as np
import pyarrow as pa
import pytest
from speakers import Column, Tensor

from neardup_gpu import Recipe, Shingles, stages
from neardup_gpu.errors import ArgumentTypeError, NeardupError, ParameterError
from neardup_gpu.stages import Pairs, Ragged

pytestmark = pytest.mark.quick

RECIPE = Recipe(shingles=Shingles(2))
TEXTS = ["to be or not", None, "", "漢字 and ünïcode", "be"]


def same(found, expected):
    assert found.values.tolist() == expected.values.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()])
def test_text_is_taken_from_a_column(kind):
    given = pa.array(TEXTS, kind)
    same(stages.tokenize(Column(given), RECIPE), stages.tokenize(TEXTS, RECIPE))
    same(stages.tokenize(Column(given.slice(2)), RECIPE), stages.tokenize(TEXTS[2:], RECIPE))


TOKENS = [[1, 2, 3], None, [], [2**64 - 1], [5, 6]]


@pytest.mark.parametrize("kind", [pa.list_(pa.uint64()), pa.large_list(pa.uint64())])
@pytest.mark.parametrize("slices", [slice(0, None), slice(1, None), slice(2, 4), slice(1, 1)])
def test_rows_are_taken_from_a_column_of_lists(kind, slices):
    given = pa.array(TOKENS, kind)[slices]
    expected = Ragged.from_rows([tokens or [] for tokens in TOKENS[slices]], np.uint64)
    same(stages.shingle(given, RECIPE), stages.shingle(expected, RECIPE))


@pytest.mark.parametrize("first", [0, 1, 9])
def test_null_rows_with_values_are_empty(first):
    """Arrow allows values beneath a null; no library is obliged to leave them out."""
    valid = np.array([True] * 9 + [True, False, True, False, False, True])
    offsets = pa.py_buffer(np.arange(0, 2 * len(valid) + 1, 2, dtype=np.int32))
    values = pa.array(np.arange(2 * len(valid), dtype=np.uint64))
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    given = pa.Array.from_buffers(pa.list_(pa.uint64()), len(valid), [bits, offsets], children=[values])[first:]
    assert given.null_count == 3
    rows = [row or [] for row in given.to_pylist()]
    same(stages.shingle(Column(given), RECIPE), stages.shingle(Ragged.from_rows(rows, np.uint64), RECIPE))
    unknown = Column(given, changes={"null_count": -1})
    same(stages.shingle(unknown, RECIPE), stages.shingle(Ragged.from_rows(rows, np.uint64), RECIPE))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int64, np.float64])
def test_rows_are_given_without_a_copy(dtype):
    rows = Ragged(np.arange(9, dtype=dtype), np.array([2, 4, 4, 9]))
    given = pa.array(rows)
    assert given.to_pylist() == [[2, 3], [], [4, 5, 6, 7, 8]]
    assert given.values.buffers()[1].address == rows.values.ctypes.data
    assert given.buffers()[1].address == rows.offsets.ctypes.data
    del rows
    assert given.to_pylist() == [[2, 3], [], [4, 5, 6, 7, 8]]
    back = stages.as_ragged("rows", Column(given), dtype)
    assert [back[i].tolist() for i in range(3)] == given.to_pylist()


def test_rows_are_given_as_another_type_where_that_is_asked_for():
    rows = Ragged.from_rows([[1], [2, 3]], np.uint64)
    assert pa.array(rows, pa.list_(pa.int32())).to_pylist() == [[1], [2, 3]]
    assert pa.array(Ragged.from_rows([], np.uint64)).to_pylist() == []


def test_arrays_are_taken_from_tensors():
    left = np.array([0, 1])
    left.flags.writeable = False
    pairs = Pairs(Tensor(left), Tensor(np.array([2, 2], np.int32)))
    assert pairs.left.tolist() == [0, 1] and pairs.right.tolist() == [2, 2]
    verified = stages.Verified(pairs, Tensor(np.array([0.8, 0.9])))
    assert stages.keep(3, verified, RECIPE, pinned=Tensor(np.array([True, False, False]))).tolist() == [0, 1, 1]


WRONG_COLUMNS = {
    "numbers": (Column(pa.array([1, 2])), "an array of format 'l' of Arrow; give an array of strings or"),
    "a dictionary": (Column(pa.array(["a"]).dictionary_encode()), "a dictionary of Arrow; give"),
    "other numbers": (pa.array([[1.5]]), "a Ragged of float64; of uint64 is needed"),
    "nulls in lists": (pa.array([[1, None]], pa.list_(pa.uint64())), "lists with nulls among their values"),
    "lists of texts": (pa.array([["a"]]), "lists of other things; give lists of numbers"),
    "freed": (Column(pa.array(["a"]), changes={1: None}), "a buffer is missing; has the column been freed?"),
    "another maker": (Column(pa.array(["a"]), device=10), "a column on a device of type 10 of Arrow; give one of NV"),
}


@pytest.mark.parametrize("name", WRONG_COLUMNS)
def test_other_columns_are_refused(name):
    column, message = WRONG_COLUMNS[name]
    with pytest.raises(NeardupError, match=f"^tokens: .*{message.replace('?', '.')}") as caught:
        stages.shingle(column, RECIPE)
    assert caught.value.parameter == "tokens" and len(str(caught.value).splitlines()) == 1


def test_text_of_another_maker_is_refused():
    with pytest.raises(ParameterError, match=r"^documents: a column on a device of type 10 of Arrow"):
        stages.tokenize(Column(pa.array(["a"]), device=10), RECIPE)


def test_lists_that_end_after_their_values_are_refused():
    values = pa.array([1, 2, 3], pa.uint64())
    offsets = pa.py_buffer(np.array([0, 2, 3], np.int32))
    given = pa.Array.from_buffers(pa.list_(pa.uint64()), 2, [None, offsets], children=[values])
    longer = np.array([0, 2, 30], np.int32)
    with pytest.raises(ParameterError, match="tokens: the offsets end at 30, but there are 3 values"):
        stages.shingle(Column(given, changes={1: longer.ctypes.data}), RECIPE)
    falling = np.array([0, 3, 2], np.int32)
    with pytest.raises(ParameterError, match="Ragged offsets must not decrease"):
        stages.shingle(Column(given, changes={1: falling.ctypes.data}), RECIPE)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor(np.zeros(1, np.int64), error=RuntimeError("Array has been\ndeleted")), "(Array has been deleted)"),
        (Tensor(np.zeros(1, np.int64), error=BufferError("requires grad")), "(requires grad)"),
        (Tensor(np.zeros(1, np.int64), device=(10, 0)), "an array on a device of type 10 of DLPack"),
        (Tensor(np.zeros(1, np.int64), device=("x",)), "cannot be read as an array"),
        (Tensor(np.zeros(1)), "float64 of shape (1,)"),
        (Tensor(np.zeros((1, 1), np.int64)), "int64 of shape (1, 1)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_tensors_are_refused(tensor, message):
    with pytest.raises(NeardupError) as caught:
        Pairs(tensor, [1])
    assert message in str(caught.value) and str(caught.value).startswith("Pairs left: ")
    assert len(str(caught.value).splitlines()) == 1


def test_a_column_that_cannot_be_exported_is_refused():
    class Broken:
        def __arrow_c_device_array__(self, requested_schema=None):
            raise ValueError("no\nmemory")

    for call in (lambda: stages.shingle(Broken(), RECIPE), lambda: stages.tokenize(Broken(), RECIPE)):
        with pytest.raises(ArgumentTypeError, match=r": Broken cannot be read as an array \(no memory\)"):
            call()
