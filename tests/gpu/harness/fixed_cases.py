"""Large fixed cases for each kernel.

They are drawn from `neardup_gpu.installation.kernel_inputs`, so that every option of it is taken once.

The answer is `reference`'s where that takes a second or less, else `cpu`'s, which agrees with `reference` in
tests/kernels/test_agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from neardup_gpu.installation.kernel_inputs import INPUTS, Draw, kernel_modules

SIZE, SIZES = 10_000, {"tokens": 60_000, "minhash": 100_000, "sequences": 200_000, "gather": 100_000, "hamming": 4000}
BY_REFERENCE = {"greedy", "components"}
HOST_ONLY = {"sequences": {2}}  # constants that `gpu` takes as NumPy arrays alone, by their place


class DrawInTurn(Draw):
    """A `Draw` for case `number`: of each list of options the one with that number, as if the list went on and on."""

    def __init__(self, number: int) -> None:
        super().__init__(np.random.default_rng([20, number]))
        self.number, self.most = number, 1

    def option(self, options):
        self.most = max(self.most, len(options))
        return options[self.number % len(options)]


@cache
def num_cases(kernel: str) -> int:
    """As many as the longest list of options has, in any case."""
    number = most = 0
    while number <= most:
        draw = DrawInTurn(number)
        INPUTS[kernel](draw, 300)
        number, most = number + 1, max(most, draw.most - 1)
    return most + 1


CASES = [(kernel, number) for kernel in kernel_modules("gpu") for number in range(num_cases(kernel))]


def fixed(kernel: str, number: int) -> tuple:
    """The arguments of a case."""
    return INPUTS[kernel](DrawInTurn(number), SIZES.get(kernel, SIZE))


@cache
def expected(kernel: str, number: int) -> Any:
    """The answer to a case."""
    module = kernel_modules()[kernel]
    return (module.reference if kernel in BY_REFERENCE else module.cpu)(*fixed(kernel, number))


def resident(kernel: str, arguments: tuple, put: Callable[[np.ndarray], Any]) -> list[Any]:
    """The arguments of a kernel, with the arrays that may lie on a device put there."""
    host_only = HOST_ONLY.get(kernel, ())
    return [put(a) if isinstance(a, np.ndarray) and i not in host_only else a for i, a in enumerate(arguments)]


def each_way(kernel: str, number: int) -> Iterator[tuple]:
    """Yield the arguments of a case. Where `gpu` sorts several tables together, yield them again, and it sorts one by
    one meanwhile: a kernel may be launched only then."""
    module = kernel_modules()[kernel]
    for most in {1, getattr(module, "_TOGETHER", 1)}:
        with mock.patch.object(module, "_TOGETHER", most, create=True):
            yield fixed(kernel, number)
