"""How long Numba compiles, and how often."""

from __future__ import annotations

import time
from typing import Any

from numba.core.event import TimingListener


class Compiling(TimingListener):
    """Seconds in which Numba compiles, and the kernels that it has compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self._since = 0, 0.0

    @property
    def active(self) -> bool:
        """Whether a kernel is being compiled now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """All of them, to this moment."""
        before = self.duration if self.done else 0.0
        return before + (time.perf_counter() - self._since if self.active else 0.0)

    def on_start(self, event: Any) -> None:
        if not self.active:
            self._since = time.perf_counter()
        super().on_start(event)

    def on_end(self, event: Any) -> None:
        if not self.active:  # it was begun by another thread, before this one listened
            return
        super().on_end(event)
        self.number += not self.active
