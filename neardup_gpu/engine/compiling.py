"""Measures how long Numba compiles kernels, and counts them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from neardup_gpu.kernels import _cpu


class Compiling:
    """Measures how long Numba compiles, and counts the kernels that it has compiled, in the block of `listens`."""

    def __init__(self) -> None:
        self.number, self._depth = 0, 0
        self._before, self._since = 0.0, 0.0

    @contextlib.contextmanager
    def listens(self) -> Iterator[None]:
        """Count what is compiled in the block."""
        _cpu.listeners.append(self.hear)
        try:
            yield
        finally:
            _cpu.listeners.remove(self.hear)

    @property
    def active(self) -> bool:
        """Whether a kernel is being compiled now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """How long Numba has compiled until now."""
        return self._before + (time.perf_counter() - self._since if self.active else 0.0)

    def hear(self, begins: bool) -> None:
        """Note that Numba begins to compile a function, maybe one that another function calls, or has ended."""
        if begins:
            if not self.active:
                self._since = time.perf_counter()
            self._depth += 1
        elif self.active:  # else it was begun by another thread, before this one listened
            if self._depth == 1:
                self._before, self.number = self.seconds, self.number + 1
            self._depth -= 1
