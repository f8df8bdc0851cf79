"""Run the service as a process: it listens until a signal ends it, and answers what it has begun."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from ..engine.settings import Engine
from ..errors import OutputError
from .app import service
from .settings import Serving

log = logging.getLogger("uvicorn.error")

IDLE_SECONDS = 75
"""How long an idle connection stays open: longer than clients and proxies keep one, most of them up to 60 seconds. If
the service closed it first, a request could meet a closed connection; with uvicorn's 5 seconds some did, under load."""


class _Server(uvicorn.Server):
    """A server whose process ends with status 0 after a signal; uvicorn's raises the signal again."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(folder: Path, limits: Serving, engine: Engine, token: str | None) -> None:
    """Serve an index until the process gets SIGTERM or SIGINT; then answer what was begun, and return.

    Raises
    ------
    InputError
        If there is no index.
    OutputError
        If the address cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in limits.host else socket.AF_INET
    try:
        listening = socket.create_server((limits.host, limits.port), family=family)
    except OSError as error:
        raise OutputError(f"{limits.host}:{limits.port}: {error.strerror}; choose another host or port") from None
    with listening:
        app = service(folder, limits, engine, token)
        config = uvicorn.Config(app, access_log=False, lifespan="on", timeout_keep_alive=IDLE_SECONDS)
        log.info("Serving %s at http://%s:%d", folder, *listening.getsockname()[:2])
        _Server(config).run([listening])
