"""Arrays and columns of other libraries that lie on a GPU.

The first tests compute: memory of the host stands for the device's, kernels run by their device code (`hostir`). The
last ones, in a process of their own, give CuPy itself what it would be given there, on a device that computes nothing
(`stub_device`): which memory is read, what is waited for, what is refused.
"""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
import stub_device
from cupy_calls import DeviceArray, Namespace
from speakers import Column, Series

from neardup_gpu import MinHash, Recipe, Shingles, stages
from neardup_gpu.engine.choice import to_host
from neardup_gpu.kernels import _launch as launch

HERE = Path(__file__).parent
RECIPE = Recipe(shingles=Shingles(2), method=MinHash(filter="altavista"))
TEXTS = ["to be or not to be", None, "", "漢字 and ünïcode", "to be or not to be", "be"]


@pytest.fixture
def gpu():
    with (
        hostir.device("random"),
        mock.patch.object(launch, "simulated", lambda: True),  # whose staging needs no streams
        mock.patch.object(DeviceArray, "__cuda_array_interface__", {}, create=True),
    ):
        yield


def with_values_beneath_nulls(kind, texts):
    """The texts as an array whose nulls have text of their own, which Arrow allows."""
    whole = pa.array(["hidden words" if text is None else text for text in texts], kind)
    valid = pa.array([text is not None for text in texts])
    return pa.Array.from_buffers(kind, len(texts), [valid.buffers()[1], *whole.buffers()[1:]])


def chain(documents):
    """Keys, the verified pairs and the kept documents, through all stages on the GPU; where each result lies."""
    tokens = stages.tokenize(documents, RECIPE, backend="gpu")
    shingles = stages.shingle(tokens, RECIPE, backend="gpu")
    sketch = RECIPE.method.sketch(shingles, seed=RECIPE.seed, backend="gpu")
    keys = RECIPE.method.keys(sketch, seed=RECIPE.seed, backend="gpu")
    candidates = RECIPE.method.collide(keys, seed=RECIPE.seed, present=shingles.sizes > 0, backend="gpu")
    verified = stages.verify(shingles, candidates.pairs, 0.5, backend="gpu")
    return tokens, keys, stages.keep(len(tokens), verified, RECIPE, backend="gpu")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("shape", ["series", "column", "nulls with values", "slice"])
def test_a_column_on_a_device_stays_there_through_all_stages(gpu, kind, shape):
    array = with_values_beneath_nulls(kind, TEXTS) if shape == "nulls with values" else pa.array(TEXTS, kind)
    given, texts = Series(array), TEXTS
    if shape == "column":
        given = Column(array, device=13, number=0)  # managed memory
    elif shape == "slice":
        given, texts = Series(array[3:]), TEXTS[3:]
    Namespace.uploads.clear()
    tokens, keys, kept = chain(given)
    assert all(isinstance(found, DeviceArray) for found in (tokens.values, tokens.offsets, keys, kept))
    assert array.nbytes not in Namespace.uploads
    expected = stages.tokenize(texts, RECIPE, backend="cpu")
    assert to_host(tokens).values.tolist() == expected.values.tolist()
    assert to_host(tokens).offsets.tolist() == expected.offsets.tolist()
    assert to_host(kept).tolist() == ([0, 1, 2, 3, 0, 5] if shape != "slice" else [0, 1, 2])


def test_host_text_gives_the_same_on_a_device(gpu):
    found, expected = (chain(given) for given in (Series(pa.array(TEXTS)), TEXTS))
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert to_host(one).tolist() == to_host(other).tolist()


def test_rows_on_a_device_go_from_stage_to_stage_by_arrow(gpu):
    """What another library is given, and gives back, is the same memory."""
    tokens = stages.tokenize(TEXTS, RECIPE, backend="gpu")

    class Other:
        def __arrow_c_device_array__(self, requested_schema=None):
            return tokens.__arrow_c_device_array__(requested_schema)

    back = stages.as_ragged("tokens", Other(), np.uint64)
    assert launch.address_of(back.values) == launch.address_of(tokens.values)
    assert launch.address_of(back.offsets) == launch.address_of(tokens.offsets)
    found, expected = (stages.shingle(each, RECIPE, backend="gpu") for each in (Other(), tokens))
    assert to_host(found).values.tolist() == to_host(expected).values.tolist()


REAL = """
import ctypes, gc, logging, sys
import stub_device
stub = stub_device.start(fill=1)
import cupy, numpy as np, pyarrow as pa
from speakers import Column, Tensor
from neardup_gpu import checks, interchange
from neardup_gpu.data import Ragged, as_ragged
from neardup_gpu.errors import NeardupError
from neardup_gpu.kernels import _launch
from neardup_gpu.store.spool import DeviceSpool

number = lambda name, *value: stub_device.number(stub, name, *value)
event = lambda: ctypes.c_void_p.in_dll(stub, "stub_awaited").value

def array(values):
    made = cupy.empty(len(values), values.dtype)
    made.set(values)
    return made

def refused(call):
    try:
        call()
    except NeardupError as error:
        assert len(str(error).splitlines()) == 1, error
        return str(error)
    raise AssertionError("it was taken")

class Interface:
    def __init__(self, **changes):
        self.__cuda_array_interface__ = {**values.__cuda_array_interface__, **changes}

values, offsets = array(np.arange(5, dtype=np.uint64)), array(np.array([0, 2, 5]))
address = values.data.ptr

# Each protocol gives the memory itself, also where it says that nobody may write to it.
class Streams(Tensor):
    def __dlpack__(self, **options):
        assert options["stream"] == cupy.cuda.get_current_stream().ptr or options["stream"] == 1, options
        return super().__dlpack__(**options)
for given in (values, Streams(values), Interface(), Interface(data=(address, True))):
    assert checks.array("values", given, np.uint64).data.ptr == address, given

# Rows, as another library would take them and give them back; they wait for one another by events.
rows = Ragged(values, offsets)
class Other:
    def __arrow_c_device_array__(self, requested_schema=None):
        return rows.__arrow_c_device_array__()
assert event() is None
held = sys.getrefcount(values)
back = as_ragged("rows", Other(), np.uint64)
assert event() is not None
assert (back.values.data.ptr, back.offsets.data.ptr) == (address, offsets.data.ptr)
assert sys.getrefcount(values) > held
del back
gc.collect()
assert sys.getrefcount(values) == held, "the memory is never freed"
as_ragged("documents", Column(pa.array(["a b"]), device=2, number=0, event=77), np.uint8)
assert event() == 77

# Refused in one line: wrong type, another device, memory that was freed.
assert "uint64 of shape (5,); int64" in refused(lambda: checks.array("left", Interface(), np.int64))
assert "a Ragged of uint64; of uint8" in refused(lambda: as_ragged("documents", Other(), np.uint8))
number("stub_owner", 1)
for given in (values, Tensor(values), Interface()):
    said = refused(lambda: checks.array("values", given, np.uint64))
    assert said.startswith("values: the array is on device 1, but device 0 is the current one; copy it"), said
assert "rows: the array is on device 1" in refused(lambda: as_ragged("rows", Other(), np.uint64))
number("stub_owner", 0)
number("stub_memory", 0)
for given in (values, Interface(), Tensor(values)):
    said = refused(lambda: checks.array("values", given, np.uint64))
    assert said == "values: the array's memory is not a GPU's; has it been freed?", said
number("stub_memory", 2)
assert "cannot be read as an array" in refused(lambda: checks.array("values", Interface(data=(0, False)), np.uint64))
assert "cannot be read as an array (gone)" in refused(
    lambda: checks.array("values", Tensor(values, error=RuntimeError("gone")), np.uint64)
)

# Values that are sent come by page-locked slabs, which are given back; so do rows on their way to a file.
sent = _launch.Sent(values[1:].reshape(2, 2))
assert sent._slab is not None and sent.get().tolist() == [[1, 2], [3, 4]]
del sent
assert len(_launch.SLABS._free) == 1
with DeviceSpool(None, 0) as spool:
    for _ in range(5):
        spool.append(rows)
        assert len(spool._writing) <= 2
    assert spool.gather(np.array([4, 5])).values.get().tolist() == [0, 1, 2, 3, 4]
assert 2 <= len(_launch.SLABS._free) <= 4  # that one, two for what is on its way, one that the thread still holds
_launch.SLABS._free.clear()

# A large array of the host's goes there through page-locked slabs; through ordinary ones where none are granted.
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("neardup_gpu").addHandler(handler)
large = np.random.default_rng(1).integers(0, 256, (1 << 26) + 12345, np.uint8)
assert (_launch.on_device(large).get() == large).all() and said == []
assert sum(map(len, _launch.SLABS._free)) == 2 << 25
_launch.SLABS._free.clear()
gc.collect()
cupy.get_default_pinned_memory_pool().free_all_blocks()
number("stub_pages", 2)
for _ in range(2):
    _launch.SLABS._free.clear()
    assert (_launch.on_device(large[::-1]).get() == large[::-1]).all()
assert len(said) == 1 and said[0].startswith("text is copied to the GPU from pageable memory, which is slower"), said
print("done")
"""


@pytest.mark.skipif(not stub_device.POSSIBLE, reason="the stub of a device is for x86-64")
def test_cupy_takes_and_gives_the_memory_itself():
    paths = [str(HERE / "harness"), str(HERE.parent / "support"), *sys.path]
    words = [sys.executable, "-c", REAL]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("done\n"), done.stderr
