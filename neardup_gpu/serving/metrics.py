"""Counters and gauges of a service, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ..index import Index
from ..index.manifest import path_of

BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper ends of the intervals in which latencies are counted, in seconds."""


class Metrics:
    """The metrics of one service; `waiting` returns the number of documents that wait, `most` is how many may."""

    def __init__(self, reader: Index, waiting: Callable[[], int], most: int) -> None:
        self.registry = CollectorRegistry()
        names = ["method", "path"]
        self.requests = self._of(Counter, "requests", "Requests by their status.", [*names, "status"])
        self.seconds = self._of(Histogram, "request_seconds", "Time to answer a request.", names, buckets=BOUNDS)
        self._follow("queue_documents", "Documents that wait for the writer.", waiting)
        self._follow("queue_limit_documents", "Documents that may wait for the writer.", lambda: most)
        self._follow("documents", "Documents of the index.", lambda: len(reader.refresh()))
        self._follow("segments", "Segments of the index.", lambda: len(reader.refresh()._opened.manifest.segments))
        self._follow("last_commit_age_seconds", "Time since the last commit.", lambda: age_of_last_commit(reader))

    def _of(self, kind: type, name: str, text: str, labels: list[str], **more: object) -> Any:
        return kind(f"neardup_{name}", text, labels, registry=self.registry, **more)

    def _follow(self, name: str, text: str, value: Callable[[], float]) -> None:
        self._of(Gauge, name, text, []).set_function(value)


def age_of_last_commit(reader: Index) -> float:
    """Return the seconds since the last commit of an index, by the clock of its files."""
    while True:
        number = reader.refresh()._opened.manifest.number
        try:
            return max(0.0, time.time() - path_of(reader.folder, number).stat().st_mtime)
        except FileNotFoundError:  # a newer commit has come
            continue
