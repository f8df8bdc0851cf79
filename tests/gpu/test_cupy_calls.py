"""Every call of CuPy that `gpu` functions make is one that CuPy has, with arguments that it takes (`cupy_calls`).

The checks run wherever `gpu` functions do, in test_device_code.py too; here it is seen that no call escapes them.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import cupy
from cupy_calls import DeviceArray, Namespace
from fixed_cases import CASES
from kernel_list import modules
from test_device_code import run_fixed


def named_in_source():
    """{NAME} of every ``xp.NAME(...)`` in the kernels, with the files that it is in."""
    found = {}
    for name, module in modules().items():
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if isinstance(of, ast.Name) and of.id == "xp":
                    found.setdefault(node.func.attr, set()).add(name)
    return found


def test_every_function_that_the_kernels_name_is_called():
    """By the cases of the kernels whose files name it, else by some other, which comes to it by what kernels share."""
    named = named_in_source()

    def missing():
        return {name: where for name, where in named.items() if not Namespace.calls[name]}

    for any_kernel in (False, True):
        for kernel, number in CASES:
            if any(any_kernel or kernel in where for where in missing().values()):
                run_fixed(kernel, number, "lane")
    assert not missing(), "no fixed case comes here"


xp = Namespace()
NUMBERS = np.arange(6, dtype=np.uint64)


REFUSED = {
    "a function that CuPy lacks": (lambda a: xp.errstate(over="ignore"), AttributeError),
    "an argument that CuPy lacks": (lambda a: xp.cumsum(a, where=True), TypeError),
    "a method that CuPy lacks": (lambda a: a.byteswapped(), AttributeError),
    "an argument of a method": (lambda a: a.sum(where=True), TypeError),
    "an argument of a ufunc": (lambda a: xp.maximum(a, a, where=a > 1), TypeError),
    "a ufunc's method": (lambda a: xp.maximum.accumulate(a), AttributeError),
    "repeat by an array": (lambda a: xp.repeat(a, a), TypeError),
    "repeat by an array, as a method": (lambda a: a.repeat(a), TypeError),
    "lexsort of a tuple": (lambda a: xp.lexsort((a, a)), TypeError),
    "unique rows": (lambda a: xp.unique(a.reshape(2, 3), axis=0), TypeError),
    "quicksort": (lambda a: xp.argsort(a, kind="quicksort"), ValueError),
    "an operator with a NumPy array": (lambda a: a + NUMBERS, TypeError),
    "a NumPy array first": (lambda a: NUMBERS + a, TypeError),
    "a NumPy array as an argument": (lambda a: xp.searchsorted(a, NUMBERS), TypeError),
    "a NumPy array as an index": (lambda a: a[NUMBERS.astype(int)], TypeError),
    "a NumPy array assigned": (lambda a: a.__setitem__(slice(None), NUMBERS), TypeError),
    "a NumPy array to be put in order": (lambda a: xp.ascontiguousarray(NUMBERS), TypeError),
    "a search for NumPy's number": (lambda a: xp.searchsorted(a, np.uint64(3)), NotImplementedError),
    "a list for an array": (lambda a: xp.cumsum([1, 2]), TypeError),
    "NumPy's function": (lambda a: np.cumsum(a), TypeError),
    "NumPy's asarray": (lambda a: np.asarray(a), TypeError),
    "range of a device's number": (lambda a: range(a[2]), TypeError),
    "uint64 and int64": (lambda a: a + xp.arange(6), TypeError),
    "where of uint64 and int64": (lambda a: xp.where(a > 1, a, xp.arange(6)), TypeError),
    "assignment by repeats": (lambda a: a.__setitem__(a.astype(np.int64) // 2, a), ValueError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_device_would_refuse(case):
    call, error = REFUSED[case]
    with pytest.raises(error):
        call(xp.asarray(NUMBERS))


def test_what_a_device_does():
    a = xp.asarray(NUMBERS)
    a += np.uint64(1)
    assert isinstance(a, DeviceArray)
    np.testing.assert_array_equal(a.get(), NUMBERS + np.uint64(1))
    np.testing.assert_array_equal(NUMBERS, np.arange(6))  # a device's memory is its own
    assert isinstance(a[-1], DeviceArray) and int(a[-1]) == 6
    assert isinstance(a.sum(), DeviceArray) and int(a.sum()) == 21
    np.testing.assert_array_equal((np.uint64(2) * a).get(), 2 * NUMBERS + np.uint64(2))
    np.testing.assert_array_equal(xp.where(a > np.uint64(3), a, np.uint64(0)).get(), [0, 0, 0, 4, 5, 6])
    assert xp.searchsorted(a, a, side="right").dtype == np.int64
    assert (xp.empty(3, np.uint8).get() == 0xA5).all()


def test_a_pool_takes_its_blocks_from_any_allocator():
    """As far as this can be seen without a device: `job_pool` gives CuPy what it takes, and finds it again."""
    before = cupy.cuda.get_allocator()
    assert before == cupy.get_default_memory_pool().malloc
    pool = cupy.cuda.MemoryPool(lambda num_bytes: cupy.cuda.MemoryPointer(None, 0))
    with cupy.cuda.using_allocator(pool.malloc):
        assert cupy.cuda.get_allocator() == pool.malloc != before
    assert cupy.cuda.get_allocator() == before
    assert {"set_limit", "get_limit", "used_bytes", "free_bytes", "total_bytes", "free_all_blocks"} <= set(dir(pool))
    assert cupy.ndarray.__weakrefoffset__ > 0, "what is known of an array lasts as long as it"
