"""What "the same bits" are: of two answers of a kernel, on whatever device they lie."""

import numpy as np

from neardup_gpu.installation.kernel_inputs import kernel_modules
from neardup_gpu.kernels._launch import to_host

KERNELS = kernel_modules()


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


def on_host(result):
    """A result with its device arrays as NumPy arrays."""
    if isinstance(result, tuple):
        return tuple(map(on_host, result))
    return result if isinstance(result, int) else to_host(result)
