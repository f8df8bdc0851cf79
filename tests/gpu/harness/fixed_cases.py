"""Large fixed cases for each kernel.

They are drawn from `neardup_gpu.installation.kernel_inputs`, so that every option of it is taken once.

The answer is `reference`'s where that takes a second or less, else `cpu`'s, which agrees with `reference` in
tests/kernels/test_agreement.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from neardup_gpu.installation.kernel_inputs import INPUTS, Draw, kernel_modules

SIZE, SIZES = 10_000, {"tokens": 60_000, "minhash": 100_000, "sequences": 200_000, "gather": 100_000, "hamming": 4000}
BY_REFERENCE = {"greedy", "components"}


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
