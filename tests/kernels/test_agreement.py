"""Every backend of every kernel gives the reference's answer: same values, same types, same shapes.

Kernels are the files of kernels/, found by themselves; a new one fails until `kernel_inputs` can draw its arguments.
`gpu` runs on a device where there is one, else in Numba's simulator if asked: NUMBA_ENABLE_CUDASIM=1 pytest -k gpu.
"""

import os

import pytest
from agreement import KERNELS, assert_same, on_host
from grids import ALL
from hypothesis import HealthCheck, given, settings, strategies as st
from strategies import inputs

from neardup_gpu.installation.kernel_inputs import INPUTS
from neardup_gpu.kernels._launch import simulated

pytestmark = pytest.mark.quick


def cases(backend):
    """(kernel, backend) of each kernel that has the backend, with an id like "minhash-gpu"."""
    return [pytest.param(name, backend, id=f"{name}-{backend}") for name in KERNELS if hasattr(KERNELS[name], backend)]


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_file_is_one_kernel(name):
    functions = [function for function in vars(KERNELS[name]) if function.endswith(("_reference", "_cpu", "_gpu"))]
    assert not functions, f"{name}.py holds more than one kernel"
    assert hasattr(KERNELS[name], "reference"), f"{name}.py has no function `reference`"
    assert hasattr(KERNELS[name], "cpu"), f"{name}.py has no function `cpu`"


def test_every_kernel_has_inputs():
    assert list(INPUTS) == sorted(KERNELS), (
        "neardup_gpu/installation/kernel_inputs.py: a generator for each kernel, in their order"
    )


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
@examples(45)
@given(data=st.data())
def test_agreement(kernel, backend, data):
    check(kernel, backend, data.draw(inputs(kernel)))


FEWER = {"fast": 1, "code": 4}
"""Examples of kernels that take the simulator long: a block for each row, with a barrier in each of many rounds."""


@pytest.mark.launches
@pytest.mark.parametrize(("kernel", "backend"), cases("gpu"))
def test_agreement_of_kernels(kernel, backend):
    """By ten examples, three in the simulator: device code meets every fixed case as well, in tests/gpu."""

    @examples(min(FEWER.get(kernel, 10), 3 if simulated() and not ALL else 10))
    @given(data=st.data())
    def agree(data):
        check(kernel, backend, data.draw(inputs(kernel)))

    agree()
