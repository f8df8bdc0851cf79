"""The host as a place to run: a loop, on the backends "cpu" and "reference"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..store.spool import Spool
from .choice import to_host
from .contract import P, R
from .memory import Shares


class HostRuntime:
    """A `Runtime` in this process; kernels use the threads that Numba has.

    Parameters
    ----------
    backend : "cpu" or "reference"
    """

    def __init__(self, backend: str) -> None:
        self.backend, self.shares = backend, Shares.of_host()

    def map(self, run: Callable[[P], R], pieces: Iterable[P]) -> Iterator[R]:
        return map(run, pieces)

    def run(self, function: Callable[..., R], *arguments: Any) -> R:
        return function(*arguments)

    def put(self, array: Any) -> Any:
        return to_host(array)

    def fetch(self, array: Any) -> Any:
        return to_host(array)

    def take(self, array: Any, rows: Any) -> Any:
        return array[rows]

    def keeps(self, num_bytes: int) -> bool:
        return True

    def spool(self, folder: Any, num_bytes: int | None = None) -> Spool:
        return Spool(folder)

    def staged(self, batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        return ((batch, batch.text) for batch in batches)

    def batch_bytes(self, shingling: str, bytes_a_document: int) -> int:
        return self.shares.batch

    def release(self) -> None:
        return None

    def wait(self) -> None:
        return None

    def describe(self) -> None:
        return None
