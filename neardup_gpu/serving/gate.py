"""Check the token and the limits of every request, and count it."""

from __future__ import annotations

import hmac
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Metrics
from .settings import TOKEN, Serving

OPEN = {"/health", "/docs", "/openapi.json"}
"""Paths that need no token, and that are answered however many requests there are."""


class Gate:
    """Refuse requests without the token, too many requests and too large ones; count all."""

    def __init__(self, app: ASGIApp, limits: Serving, metrics: Metrics, token: str | None) -> None:
        self._app, self._limits, self._metrics, self._token = app, limits, metrics, token
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, size = time.perf_counter(), 500, 0
        headers = dict(scope["headers"])

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
            refusal = None if scope["path"] in OPEN else self._refusal(headers)
            await (refusal or self._app)(scope, counted, noted)
        finally:
            self._running -= 1
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(scope["method"], path, status).inc()
            self._metrics.seconds.labels(scope["method"], path).observe(time.perf_counter() - started)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        given = headers.get(b"authorization", b"")
        if self._token is not None and not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            wanted = {"WWW-Authenticate": "Bearer"}
            return refused(401, f"send the token of {TOKEN}: Authorization: Bearer TOKEN", headers=wanted)
        if self._running > self._limits.max_requests:
            return refused(503, "too many requests at a time; try again", headers={"Retry-After": "1"})
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limits.max_body:
            return refused(413, f"the body is larger than {self._limits.max_body:,} bytes")
        return None


def refused(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    """Return an answer that says in one line what is wrong."""
    return JSONResponse({"error": message, **more}, status, headers)
