"""The contract of engines: where work runs.

`Engine` (settings.py) says which; `Engine.start` gives a `Runtime`, which applies pure functions to independent pieces
of work. A new place to run is a new file with a runtime, and a line in settings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

if TYPE_CHECKING:
    import numpy as np

    from ..data import Ragged
    from .memory import Shares

Backend = Literal["reference", "cpu", "gpu"]
BACKENDS = get_args(Backend)
"""The same kernels three times: by their definition, on all cores, on a GPU. None changes a result."""

Q = TypeVar("Q")
R = TypeVar("R")
P = TypeVar("P", bound="Piece")


class Piece(Protocol):
    """Something to be computed on, independently of other pieces."""

    @property
    def kind(self) -> str:
        """The plural name of the items, such as "documents"."""

    @property
    def num_bytes(self) -> int:
        """How large it is; pieces of one kind that are as large need as much memory."""

    def split(self) -> Sequence[Any]:
        """Smaller pieces that together are this one, in order; none if it cannot be divided."""

    def describe(self) -> str:
        """Name for the message that it does not fit; empty if there is no name."""


class Rows(Protocol):
    """An append-only spool of ragged uint64 rows; see `store.spool`."""

    folder: Any
    num_values: int
    table: Any
    """The counters of all shingles, as kernels/rarity.py has them, if they were counted as they came; else None."""

    @property
    def offsets(self) -> np.ndarray: ...
    def append(self, rows: Ragged) -> None: ...
    def gather(self, rows: np.ndarray) -> Ragged: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...


class Runtime(Protocol):
    """The device of a running job, and the memory that the job may use there."""

    backend: Backend
    shares: Shares

    def map(self, run: Callable[[P], R], pieces: Iterable[P], begin: Callable[[P], Any] | None = None) -> Iterator[R]:
        """Yield a function's results for pieces, in order; for smaller pieces, one after another, where memory runs
        out.

        The function has no effect but its result, as it may be called again. On a GPU, `begin` starts a piece before
        the host waits for the one before; what it returns is held until the piece has been run.

        Raises
        ------
        ResourceError
            If a piece that cannot be divided does not fit.
        """

    def fold(self, prepare: Callable[[P], Q], add: Callable[[Q, R], R], value: R, pieces: Iterable[P]) -> R:
        """`value = add(prepare(piece), value)` for pieces in order, as `map`: pieces are prepared side by side.

        Where memory runs out a piece is prepared and added again, in parts, to what may have it in part.
        """

    def run(self, function: Callable[..., R], *arguments: Any) -> R:
        """Return a function's result for something that cannot be divided."""

    def put(self, array: Any) -> Any:
        """An array in the memory of the backend."""

    def fetch(self, array: Any) -> np.ndarray:
        """An array in host memory, wherever it was."""

    def take(self, array: Any, rows: np.ndarray, *, last: bool = False) -> Any:
        """Some rows of an array, where it is; the `last` that is wanted of it may be written over it."""

    def keeps(self, num_bytes: int) -> bool:
        """Whether this number of additional bytes of keys may stay where they are; else they have to go to host
        memory."""

    def spool(self, folder: Any, num_bytes: int | None = None, again: Any = None, over: Any = None) -> Any:
        """Return an empty spool with at most `num_bytes` in the backend's memory, by default its whole share.

        `again` makes rows again from the text, where that takes less time than a file. On the host, rows are written
        over those of the spool `over`, if it is given.
        """

    def staged(self, batches: Iterator[Any]) -> Iterator[tuple[Any, Ragged]]:
        """Each batch of documents, and its text where the backend wants it."""

    def batch_bytes(self, shingling: str, bytes_a_document: int) -> int:
        """Text to read at a time."""

    def release(self) -> None:
        """Give memory that no array uses back, so that it can be divided anew."""

    def wait(self) -> None:
        """Wait until all is done that was begun."""

    def describe(self) -> dict[str, Any] | None:
        """The report's entry about the device; None on the host."""
