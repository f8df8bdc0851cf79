"""The queue of changes, and the one thread that commits them, in batches."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from ..engine.settings import Engine
from ..errors import InputError, NeardupError, ParameterError
from ..index import Index
from ..index.uncommon import check_decides
from ..log import log
from ..records import dataclass
from .bodies import Bodies

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


class WriteQueue:
    """Changes that wait, and the thread that commits them in their order.

    The thread takes the right to write when it starts. If another process has it, each change tries again. `most` is
    the number of documents that may wait.
    """

    def __init__(self, folder: Path, engine: Engine, most: int, bodies: Bodies) -> None:
        self._folder, self._engine, self._most, self._bodies = folder, engine, most, bodies
        self._waiting: deque[Change] = deque()
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._writer = ThreadPoolExecutor(1, "neardup-writer")
        self._writer.submit(self._begin)

    def put(self, change: Change) -> Future[Any]:
        """Let a change wait; its future has the answer.

        Raises
        ------
        HTTPException
            If too many documents wait already.
        """
        waiting = self.documents
        if waiting and waiting + len(change.ids) > self._most:
            message = f"{waiting:,} documents wait for the writer; try again"
            raise HTTPException(503, message, {"Retry-After": "1"})
        with self._lock:
            self._waiting.append(change)
        self._writer.submit(self._commit_batch)
        return change.answer

    @property
    def documents(self) -> int:
        """The number of documents that wait."""
        with self._lock:
            return sum(len(each.ids) for each in self._waiting)

    @property
    def writes(self) -> bool:
        """Whether this process has the right to write."""
        return self._index is not None

    def close(self) -> None:
        """Commit what waits, and give back the right to write."""
        self._writer.submit(self._close_index)
        self._writer.shutdown()

    # --------------------------------------------------------------------------------------------------- the thread

    def _begin(self) -> None:
        try:
            self._opened()
        except NeardupError as error:
            log.warning("%s", error)

    def _commit_batch(self) -> None:
        """Commit the next changes, if an earlier call did not take them all."""
        if batch := self._next_batch():
            self._commit(batch)

    def _next_batch(self) -> list[Change]:
        """Take changes that can be one commit: additions of different ids, or removals."""
        batch: list[Change] = []
        ids: set[Any] = set()
        num_bytes = 0
        with self._lock:
            while self._waiting:
                change = self._waiting[0]
                num_bytes += change.num_bytes
                if batch and (
                    bool(change.rows) != bool(batch[0].rows)
                    or (change.rows and not ids.isdisjoint(change.ids))
                    or len(ids) + len(change.ids) > BATCH_DOCUMENTS
                    or num_bytes > BATCH_BYTES
                ):
                    break
                batch.append(self._waiting.popleft())
                ids |= change.ids
        return batch

    def _commit(self, batch: list[Change]) -> None:
        """Commit changes together; where that is refused because of one of them, each by itself."""
        try:
            answers = self._added(batch) if batch[0].rows else self._removed(batch)
        except (InputError, ParameterError, HTTPException) as error:
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
            more = f" and {len(known) - 1} others are" if len(known) > 1 else " is"
            message = f"id {known[0]!r}{more} in the index already; send replace=true, or give others ids"
            raise HTTPException(409, {"error": message, "ids": known})
        rows = [row for each in batch for row in each.rows]
        how: dict[str, Any] = {"id_column": "id", "replace": True, "commit_every": len(rows)}
        added = index.add(self._bodies.table(rows), **how, reading=self._bodies.reading)
        decided = iter(added.decisions.read_all().to_pylist())
        return [[next(decided) for _ in each.rows] for each in batch]

    def _removed(self, batch: list[Change]) -> list[Any]:
        """Remove documents in one commit; returns for each change how many, and the ids that are unknown."""
        found = self._opened().remove(list({id for each in batch for id in each.ids}))
        unknown = set(found.unknown)
        return [{"removed": len(each.ids - unknown), "unknown": sorted(each.ids & unknown)} for each in batch]
