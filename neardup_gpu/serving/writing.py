"""The queue of changes, and the one thread that commits them, in batches."""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import field
from pathlib import Path
from typing import Any

from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..errors import InputError, NeardupError, OutputError, ParameterError
from ..index import Index
from ..index.locking import IndexHeldError
from ..index.uncommon import check_decides
from ..log import log
from ..records import dataclass

BATCH_DOCUMENTS, BATCH_BYTES = 5_000, 8 << 20
"""Documents and bytes of requests that are committed together, at most."""


@dataclass(eq=False)
class Change:
    """A request that waits: rows to add and their ids, or ids to remove. It is answered after a commit."""

    rows: list[dict[str, Any]]
    ids: set[Any]
    replace: bool = False
    num_bytes: int = 0
    answer: Future[Any] = field(default_factory=Future)


class KnownIdsError(InputError):
    """The index has documents with these ids already, and the request replaces none."""

    def __init__(self, ids: list[Any]) -> None:
        more = f" and {len(ids) - 1} others are" if len(ids) > 1 else " is"
        super().__init__(f"id {ids[0]!r}{more} in the index already; send replace=true, or give others ids")
        self.ids = ids


class QueueFullError(Exception):
    """The queue holds as many documents as it may."""


class WriteQueue:
    """Changes that wait, and the thread that commits them in their order.

    The thread takes the right to write when it starts. If another process has it, each change tries again. `most` is
    the number of documents that may wait, `as_table` returns rows as a table, and `reading` says how that is read.
    """

    def __init__(
        self, folder: Path, engine: Engine, most: int, as_table: Callable[[list[dict[str, Any]]], Any], reading: Reading
    ) -> None:
        self._folder, self._engine, self._most = folder, engine, most
        self._as_table, self._reading = as_table, reading
        self._waiting: deque[Change] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._index: Index | None = None
        self.documents = 0
        self._thread = threading.Thread(target=self._run, name="neardup-writer")
        self._thread.start()

    def put(self, change: Change) -> Future[Any]:
        """Let a change wait; its future has the answer.

        Raises
        ------
        QueueFullError
            If too many documents wait already.
        """
        with self._changed:
            if self._closing or (self._waiting and self.documents + len(change.ids) > self._most):
                raise QueueFullError
            self.documents += len(change.ids)
            self._waiting.append(change)
            self._changed.notify()
        return change.answer

    @property
    def writes(self) -> bool:
        """Whether this process has the right to write."""
        return self._index is not None

    def close(self) -> None:
        """Commit what waits, and give back the right to write."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    # --------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            self._opened()
        except NeardupError as error:
            log.warning("%s", error)
        for batch in self._batches():
            self._commit(batch)
        self._close_index()

    def _batches(self) -> Iterator[list[Change]]:
        """Yield changes that can be one commit: additions of different ids, or removals."""
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting:
                    return
                batch = [self._waiting.popleft()]
                ids, num_bytes = set(batch[0].ids), batch[0].num_bytes
                while self._waiting and bool(self._waiting[0].rows) == bool(batch[0].rows):
                    following = self._waiting[0]
                    num_bytes += following.num_bytes
                    if len(ids) + len(following.ids) > BATCH_DOCUMENTS or num_bytes > BATCH_BYTES:
                        break
                    if following.rows and not ids.isdisjoint(following.ids):
                        break
                    batch.append(self._waiting.popleft())
                    ids |= following.ids
                self.documents -= sum(len(each.ids) for each in batch)
            yield batch

    def _commit(self, batch: list[Change]) -> None:
        """Commit changes together; where that is refused because of one of them, each by itself."""
        try:
            answers = self._added(batch) if batch[0].rows else self._removed(batch)
        except (InputError, ParameterError) as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
            else:
                for each in batch:
                    self._commit([each])
        except BaseException as error:
            self._close_index()  # which is opened again as it was committed last
            for each in batch:
                each.answer.set_exception(error)
        else:
            for each, answer in zip(batch, answers, strict=True):
                each.answer.set_result(answer)

    def _opened(self) -> Index:
        """Return the index, which this process may write.

        Raises
        ------
        IndexHeldError
            If another process writes to it.
        """
        if self._index is None:
            index = Index.open(self._folder, engine=self._engine)
            try:
                index._opened.go_on_merging()
            except BaseException:
                index.close()
                raise
            self._index = index
        return self._index

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def _added(self, batch: list[Change]) -> list[Any]:
        """Add the documents of some changes in one commit; returns the decisions about those of each."""
        index = self._opened()
        check_decides(index.recipe, "documents")
        new = [id for each in batch if not each.replace for id in each.ids]
        if new and (known := index.explain(new)["id"].to_pylist()):
            raise KnownIdsError(known)
        rows = [row for each in batch for row in each.rows]
        how: dict[str, Any] = {"id_column": "id", "replace": True, "commit_every": len(rows)}
        added = index.add(self._as_table(rows), **how, reading=self._reading)
        decided, start, answers = added.decisions.read_all().to_pylist(), 0, []
        for each in batch:
            answers.append(decided[start : start + len(each.rows)])
            start += len(each.rows)
        return answers

    def _removed(self, batch: list[Change]) -> list[Any]:
        """Remove documents in one commit; returns for each change how many, and the ids that are unknown."""
        found = self._opened().remove(list({id for each in batch for id in each.ids}))
        unknown = set(found.unknown)
        return [{"removed": len(each.ids - unknown), "unknown": sorted(each.ids & unknown)} for each in batch]


def status_of(error: BaseException) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status of an error, and the entries of the answer besides the message."""
    if isinstance(error, IndexHeldError):
        return 409, {"process": error.process, "host": error.host}
    if isinstance(error, KnownIdsError):
        return 409, {"ids": error.ids}
    if isinstance(error, OutputError):
        return 507 if _is_full(error) else 503, {}
    return (400 if isinstance(error, InputError | ParameterError | TypeError) else 500), {}


def _is_full(error: BaseException | None) -> bool:
    """Return whether an error came of a disk or a quota that is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False
