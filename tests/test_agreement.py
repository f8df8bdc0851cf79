"""Every backend of every kernel gives the reference's answer: same values, same types, same shapes.

Kernels are the files of kernels/, found by themselves; a new one fails until `kernel_inputs` can draw its arguments.
`gpu` runs on a device where there is one, else in Numba's simulator if asked: NUMBA_ENABLE_CUDASIM=1 pytest -k gpu.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from strategies import inputs

from neardup_gpu.kernel_inputs import INPUTS, kernel_modules
from neardup_gpu.kernels._launch import to_host

KERNELS = kernel_modules()


def cases(backend):
    """(kernel, backend) of each kernel that has the backend, with an id like "minhash-gpu"."""
    return [pytest.param(name, backend, id=f"{name}-{backend}") for name in KERNELS if hasattr(KERNELS[name], backend)]


def assert_same(expected, actual):
    """Equal to the last bit, and alike in type and shape."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple) and len(actual) == len(expected)
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert isinstance(actual, np.ndarray)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(actual, expected)
    else:
        assert type(actual) is type(expected)
        assert actual == expected


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_file_is_one_kernel(name):
    functions = [function for function in vars(KERNELS[name]) if function.endswith(("_reference", "_cpu", "_gpu"))]
    assert not functions, f"{name}.py holds more than one kernel"
    assert hasattr(KERNELS[name], "reference"), f"{name}.py has no function `reference`"
    assert hasattr(KERNELS[name], "cpu"), f"{name}.py has no function `cpu`"


def test_every_kernel_has_inputs():
    assert list(INPUTS) == sorted(KERNELS), "neardup_gpu/kernel_inputs.py: a generator for each kernel, in their order"


def on_host(result):
    """A result with its device arrays as NumPy arrays."""
    if isinstance(result, tuple):
        return tuple(map(on_host, result))
    return result if isinstance(result, int) else to_host(result)


def check(kernel, backend, arguments):
    expected = KERNELS[kernel].reference(*arguments)
    assert_same(expected, on_host(getattr(KERNELS[kernel], backend)(*arguments)))


def examples(number):
    return settings(
        max_examples=number,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.mark.parametrize(("kernel", "backend"), cases("cpu"))
@examples(60)
@given(data=st.data())
def test_agreement(kernel, backend, data):
    check(kernel, backend, data.draw(inputs(kernel)))


@pytest.mark.launches
@pytest.mark.parametrize(("kernel", "backend"), cases("gpu"))
@examples(20)
@given(data=st.data())
def test_agreement_of_kernels(kernel, backend, data):
    check(kernel, backend, data.draw(inputs(kernel)))
