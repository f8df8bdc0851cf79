"""Commit during lookups: while a thread writes and syncs the files of one, the next documents are looked up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from ..log import log


class Commits(contextlib.AbstractContextManager["Commits"]):
    """Commits of an index that documents are added to in the block: one at a time.

    Whoever looks at the index or changes it waits for `end` before. What goes on when the block ends is ended by then.

    Parameters
    ----------
    beside : bool
        Whether a second thread may make them; else each is made where it is begun.
    """

    def __init__(self, beside: bool) -> None:
        self._pool = ThreadPoolExecutor(1, "neardup-commit") if beside else None
        self._under_way: tuple[Future[None], Callable[[], None]] | None = None

    @property
    def under_way(self) -> bool:
        """Whether one was begun, and not ended."""
        return self._under_way is not None

    def begin(self, commit: Callable[[], None], then: Callable[[], None]) -> None:
        """Begin a commit, after the one before was ended; once it is made, `end` calls `then`."""
        assert self._under_way is None
        if self._pool is None:
            made = Future[None]()
            commit()
            made.set_result(None)
        else:
            made = self._pool.submit(copy_context().run, commit)
        self._under_way = made, then

    def end(self) -> None:
        """Wait until the commit that was begun is made, if one was; raises what it raises."""
        if self._under_way is not None:
            made, then = self._under_way
            wait([made])  # an interrupt leaves it under way
            self._under_way = None
            made.result()
            then()

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if self._under_way is not None and (error := self._under_way[0].exception()) is not None:
            log.warning("%s", error)  # beside what ended the block
