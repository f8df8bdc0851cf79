"""Kernels take the arrays of their signature, and no others."""

import threading

import numpy as np
import pytest
from numba import types

from neardup_gpu.kernels import _launch as launch
from neardup_gpu.kernels._launch import cuda, kernel


@kernel("void(uint32[:,::1], int64)")
def _increase(matrix, step):
    """One thread a row."""
    row = cuda.grid(1)
    if row < len(matrix):
        for column in range(matrix.shape[1]):
            matrix[row, column] += np.uint32(step)


@pytest.mark.launches
def test_a_launch_covers_all_threads_and_none():
    xp = launch.namespace()
    matrix = xp.zeros((300, 2), np.uint32)
    _increase.threads(300, matrix, 3)
    _increase.threads(0, matrix, 3)
    assert (launch.to_host(matrix) == 3).all()


@kernel("void(int64[::1])", block=32)
def _neighbours(values):
    """One thread a value: the number of the next thread in its block, by memory that the block shares."""
    numbers = cuda.shared.array(32, types.int64)
    at = np.int64(cuda.grid(1))
    numbers[cuda.threadIdx.x] = at
    cuda.syncthreads()
    values[at] = numbers[(cuda.threadIdx.x + 1) % 32]


def by_neighbours():
    values = launch.namespace().zeros(32 * 3, np.int64)
    _neighbours.threads(len(values), values)
    return launch.to_host(values).reshape(-1, 32)


@pytest.mark.launches
def test_threads_of_a_block_share_an_array(monkeypatch):
    """Also in the simulator when two threads ask at the same time, to each of which Numba would give its own."""
    expected = np.roll(np.arange(96).reshape(-1, 32), -1, axis=1)
    assert np.array_equal(by_neighbours(), expected)
    if launch.simulated():
        asked, empty = threading.Barrier(32), np.empty
        monkeypatch.setattr(np, "empty", lambda *arguments: (asked.wait(60), empty(*arguments))[1])
        assert np.array_equal(by_neighbours(), expected)


@pytest.mark.launches
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda matrix: matrix.astype(np.int32), "argument 0 is int32, 2 dimensions"),
        (lambda matrix: matrix.T, "argument 0 is uint32, 2 dimensions, not in C order"),
        (lambda matrix: matrix[:, ::2], "not in C order"),
        (lambda matrix: matrix[0], "argument 0 is uint32, 1 dimensions"),
        (lambda matrix: [[1]], "argument 0 is a list, no device array"),
    ],
)
def test_another_array_is_refused(change, said):
    with pytest.raises(TypeError, match=said):
        _increase.threads(4, change(launch.namespace().zeros((4, 4), np.uint32)), 1)


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (MemoryError("CuPy's allocator"), True),
        (RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: cuda.core, by which Numba launches"), True),
        (RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS"), False),
        (ValueError("2"), False),
    ],
)
def test_what_out_of_memory_looks_like(error, is_it):
    assert launch.out_of_memory(error) == is_it


def test_device_functions_are_not_called_by_the_host():
    with pytest.raises(TypeError, match="row_of is for kernels"):
        launch.row_of(np.zeros(2, np.int64), 0)
