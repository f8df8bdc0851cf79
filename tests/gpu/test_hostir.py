"""What is wrong with a kernel is noticed: one small kernel for each mistake, and one for each thing done right."""

import re

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
from hostir import DeviceCodeError, host_kernel
from numba import types

from neardup_gpu.kernels._launch import cuda, kernel

ORDERS = pytest.mark.parametrize("order", hostir.ORDERS)


@kernel("void(uint64[::1], uint64[::1])", block=64)
def sums(values, total):
    """By shared memory, a barrier and an atomic."""
    shared = cuda.shared.array(64, types.uint64)
    shared[cuda.threadIdx.x] = values[cuda.grid(1)]
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        found = np.uint64(0)
        for i in range(64):
            found += shared[i]
        cuda.atomic.add(total, 0, found)


@kernel("void(uint64[::1], uint64[::1])", block=64)
def sums_without_barrier(values, total):
    shared = cuda.shared.array(64, types.uint64)
    shared[cuda.threadIdx.x] = values[cuda.grid(1)]
    if cuda.threadIdx.x == 0:
        found = np.uint64(0)
        for i in range(64):
            found += shared[i]
        cuda.atomic.add(total, 0, found)


@kernel("void(uint64[::1], uint64[::1])", block=64)
def sums_without_atomic(values, total):
    total[0] += values[cuda.grid(1)]


@kernel("void(uint64[::1], uint64[::1])", block=64)
def reads_beyond(values, total):
    total[0] = values[cuda.grid(1) + 1]


@kernel("void(uint64[::1], uint64[::1])", block=64)
def writes_before(values, total):
    values[np.int64(cuda.grid(1)) - np.int64(128 + 1)] = total[0]


@kernel("void(uint64[::1], uint64[::1])", block=64)
def returns_before_barrier(values, total):
    if values[cuda.grid(1)] == np.uint64(5):
        return
    cuda.syncthreads()


@kernel("void(uint64[::1], uint64[::1])", block=64)
def waits_at_two_barriers(values, total):
    if values[cuda.grid(1)] == np.uint64(5):
        cuda.syncthreads()
    else:
        cuda.syncthreads()


@kernel("void(uint64[::1], uint64[::1])", block=64)
def counts(values, total):
    """By a barrier that counts, in each block."""
    found = cuda.syncthreads_count(values[cuda.grid(1)] & np.uint64(1))
    every, any_ = cuda.syncthreads_and(found), cuda.syncthreads_or(np.int32(cuda.threadIdx.x == 3))
    if every and any_ and cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, np.uint64(found))


@kernel("void(uint64[::1], uint64[::1])", block=64)
def atomics(values, total):
    value = values[cuda.grid(1)]
    cuda.atomic.min(total, 1, value)
    cuda.atomic.max(total, 2, value)
    cuda.atomic.xor(total, 3, value)
    cuda.atomic.or_(total, 4, value)
    cuda.atomic.and_(total, 5, value)
    cuda.atomic.cas(total, 6, np.uint64(0), value + np.uint64(1))
    cuda.atomic.exch(total, 7, np.uint64(9))


@kernel("void(uint64[::1], uint64[::1])", block=64)
def becomes_float(values, total):
    total[0] = min(values[0], 1)


VALUES = np.random.default_rng(1).integers(2**62, 2**63, 128, np.uint64)


def run(wanted, order, values=VALUES, num_blocks=2):
    total = np.zeros(8, np.uint64)
    total[[1, 5]] = 2**64 - 1
    host_kernel(wanted)(num_blocks, 64, values.copy(), total, order=order, seed=7)
    return total


@ORDERS
@pytest.mark.parametrize("wanted", [sums, counts, atomics], ids=lambda k: k.__name__)
def test_right(wanted, order):
    total = run(wanted, order)
    if wanted is sums:
        assert total[0] == VALUES.sum(dtype=np.uint64)
    elif wanted is counts:
        assert total[0] == (VALUES & np.uint64(1)).sum()
    else:
        reduced = [f.reduce(VALUES) for f in (np.minimum, np.maximum, np.bitwise_xor, np.bitwise_or, np.bitwise_and)]
        assert total[1:6].tolist() == reduced
        assert total[6] - np.uint64(1) in VALUES and total[7] == 9


@ORDERS
def test_without_a_barrier(order):
    total = run(sums_without_barrier, order)[0]
    assert total != VALUES.sum(dtype=np.uint64) or order == "reversed"  # the reader is the last of its block


def test_without_an_atomic():
    assert run(sums_without_atomic, "lane")[0] == VALUES.sum(dtype=np.uint64)
    assert run(sums_without_atomic, "random")[0] != VALUES.sum(dtype=np.uint64)


@ORDERS
@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (reads_beyond, "thread 63 of block 1 reads 8 bytes outside the arrays"),
        (writes_before, r"thread \d+ of block \d writes 8 bytes outside the arrays"),
        (returns_before_barrier, "thread 9 of block 1 ended, while others wait for it at a barrier"),
        (waits_at_two_barriers, r"thread \d+ of block 1 waits at another barrier than thread \d+"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_wrong(wanted, message, order):
    values = VALUES.copy()
    values[64 + 9] = 5
    with pytest.raises(DeviceCodeError, match=message):
        run(wanted, order, values)


def test_a_float_shows_in_the_ir():
    assert re.search(r"\bdouble\b", "".join(hostir.code_library(becomes_float).llvm_strs))


@pytest.mark.parametrize(
    ("values", "total", "error"),
    [
        (VALUES.view(np.int64), VALUES, "is to be uint64, 1 dimensions"),
        (VALUES[::2], VALUES, "its strides are"),
        (VALUES, VALUES.reshape(8, -1), "2 dimensions"),
        (VALUES, 3, "not int"),
    ],
)
def test_arguments_of_other_types(values, total, error):
    with pytest.raises(TypeError, match=error):
        host_kernel(sums)(1, 64, values, total)
