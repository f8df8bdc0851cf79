"""The service as a process of its own, and a client that talks HTTP to it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

import neardup_gpu as nd

WAIT = 30
"""Seconds for which a test waits for the service, at most."""


class Service:
    """A process that serves an index.

    Parameters
    ----------
    process : subprocess.Popen
    log : path
        What the process prints.
    token : str or None
        The token that the client shows.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, token: str | None = None) -> None:
        self.process, self.log = process, log
        address = self.waited(lambda: re.search(r"Serving .* at (http://\S+)", log.read_text()))[1]
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=address, timeout=WAIT, headers=headers)
        self.waited(lambda: self.client.get("/health").status_code == 200)

    def waited(self, found: Any) -> Any:
        """Wait until a function returns something true, and return that."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            with contextlib.suppress(httpx.TransportError):
                if value := found():
                    return value
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def add(self, texts: dict[Any, str], **more: Any) -> httpx.Response:
        """Add documents by their ids."""
        rows = [{"id": id, "text": text} for id, text in texts.items()]
        return self.client.post("/documents", json={"documents": rows, **more})


@contextlib.contextmanager
def serving(
    index: Path, *options: str, prefix: tuple[str, ...] = (), token: str | None = None, **environment: str
) -> Iterator[Service]:
    """Serve an index on a free port; the process is killed at the end, if it lives."""
    log = index.parent / f"{index.name}.{time.monotonic_ns()}.log"
    command = [*prefix, sys.executable, "-m", "neardup_gpu", "index", "serve", str(index), "--port", "0", *options]
    given = {"PYTHONPATH": str(Path(nd.__file__).parent.parent), **environment}
    given |= {} if token is None else {"NEARDUP_TOKEN": token}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **given})
    try:
        service = Service(process, log, token)
        with contextlib.closing(service.client):
            yield service
    finally:
        process.kill()
        process.wait()
