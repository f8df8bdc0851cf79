"""Check the token and the limits of every request, and count it for Prometheus."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..index import Index
from ..index.manifest import path_of
from .settings import TOKEN, Serving

OPEN = {"/health", "/docs", "/openapi.json"}
"""Paths that need no token, and that are answered however many requests there are."""


class Metrics:
    """The metrics of one service; `waiting` returns the number of documents that wait, `most` is how many may."""

    def __init__(self, reader: Index, waiting: Callable[[], int], most: int) -> None:
        self.registry = registry = CollectorRegistry()
        names = ["method", "path"]
        self.requests = Counter("neardup_requests", "Requests by their status.", [*names, "status"], registry=registry)
        self.seconds = Histogram("neardup_request_seconds", "Time to answer a request.", names, registry=registry)
        for name, text, value in (
            ("queue_documents", "Documents that wait for the writer.", waiting),
            ("queue_limit_documents", "Documents that may wait for the writer.", lambda: most),
            ("documents", "Documents of the index.", lambda: len(reader.refresh())),
            ("segments", "Segments of the index.", lambda: len(reader.refresh()._opened.manifest.segments)),
            ("last_commit_age_seconds", "Time since the last commit.", lambda: age_of_last_commit(reader)),
        ):
            Gauge(f"neardup_{name}", text, registry=registry).set_function(value)


def age_of_last_commit(reader: Index) -> float:
    """Return the seconds since the last commit of an index, by the clock of its files."""
    while True:
        number = reader.refresh()._opened.manifest.number
        try:
            return max(0.0, time.time() - path_of(reader.folder, number).stat().st_mtime)
        except FileNotFoundError:  # a newer commit has come
            continue


class Gate:
    """Refuse requests without the token, too many requests and too large ones; count all."""

    def __init__(self, app: ASGIApp, limits: Serving, metrics: Metrics, token: str | None) -> None:
        self._app, self._limits, self._metrics, self._token = app, limits, metrics, token
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, status, size = time.perf_counter(), 500, 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._limits.max_body:
                raise HTTPException(413, f"the body is larger than {self._limits.max_body:,} bytes")
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._running += 1
        try:
            refusal = None if scope["path"] in OPEN else self._refusal(dict(scope["headers"]))
            await (refusal or self._app)(scope, counted, noted)
        finally:
            self._running -= 1
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(scope["method"], path, status).inc()
            self._metrics.seconds.labels(scope["method"], path).observe(time.perf_counter() - started)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        given = headers.get(b"authorization", b"")
        if self._token is not None and not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            message = f"send the token of {TOKEN}: Authorization: Bearer TOKEN"
            return refused(401, message, {"WWW-Authenticate": "Bearer"})
        if self._running > self._limits.max_requests:
            return refused(503, "too many requests at a time; try again", {"Retry-After": "1"})
        return None


def refused(status: int, error: str, headers: Mapping[str, str] | None = None, **more: Any) -> JSONResponse:
    """Return an answer that says in one line what is wrong."""
    return JSONResponse({"error": error, **more}, status, headers)
