"""Every backend of every kernel gives the reference's answer: same values, same types, same shapes.

Kernels are the files of kernels/, found here by themselves; a new one fails until `strategies` has arguments for it.
`gpu` runs on a device where there is one, else in Numba's simulator if asked: NUMBA_ENABLE_CUDASIM=1 pytest -k gpu.
"""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from strategies import STRATEGIES

from neardup_gpu import kernels
from neardup_gpu.kernels._launch import to_host

NOT_KERNELS = ("__init__", "_cache", "_launch", "_gf2", "_unicode_table")


def kernel_modules():
    """Modules of all kernel files, by name."""
    names = sorted(path.stem for path in Path(kernels.__path__[0]).glob("*.py"))
    return {name: importlib.import_module(f"neardup_gpu.kernels.{name}") for name in names if name not in NOT_KERNELS}


def definitions():
    """{kernel: (module, prefix of its functions)}, for each function named `reference` or `*_reference`."""
    found = {}
    for name, module in kernel_modules().items():
        for function in vars(module):
            if function == "reference":
                found[name] = module, ""
            elif function.endswith("_reference"):
                prefix = function.removesuffix("reference")
                found[f"{name}.{prefix[:-1]}"] = module, prefix
    return found


DEFINITIONS = definitions()


def cases(backend):
    """(kernel, backend) of each kernel that has the backend, with an id like "minhash-gpu"."""
    return [
        pytest.param(kernel, backend, id=f"{kernel}-{backend}")
        for kernel, (module, prefix) in DEFINITIONS.items()
        if hasattr(module, prefix + backend)
    ]


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


@pytest.mark.parametrize("name", kernel_modules())
def test_every_kernel_file_has_a_definition(name):
    assert any(kernel.split(".")[0] == name for kernel in DEFINITIONS), f"{name}.py has no function `reference`"


@pytest.mark.parametrize("kernel", DEFINITIONS)
def test_every_definition_has_a_cpu_twin_and_a_strategy(kernel):
    module, prefix = DEFINITIONS[kernel]
    assert hasattr(module, f"{prefix}cpu"), f"{kernel} has no {prefix}cpu"
    assert kernel in STRATEGIES, f"tests/strategies.py has no strategy for {kernel}"


def on_host(result):
    """A result with its device arrays as NumPy arrays."""
    if isinstance(result, tuple):
        return tuple(map(on_host, result))
    return result if isinstance(result, int) else to_host(result)


def check(kernel, backend, arguments):
    module, prefix = DEFINITIONS[kernel]
    expected = getattr(module, f"{prefix}reference")(*arguments)
    assert_same(expected, on_host(getattr(module, prefix + backend)(*arguments)))


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
    check(kernel, backend, data.draw(STRATEGIES[kernel]))


@pytest.mark.launches
@pytest.mark.parametrize(("kernel", "backend"), cases("gpu"))
@examples(20)
@given(data=st.data())
def test_agreement_of_kernels(kernel, backend, data):
    check(kernel, backend, data.draw(STRATEGIES[kernel]))
