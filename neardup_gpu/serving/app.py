"""The routes of the service, and the process: it listens until a signal ends it, and answers what it has begun."""

import asyncio
import errno
import html
import json
import logging
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import generate_latest
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from .. import __version__
from ..engine.settings import Engine
from ..errors import InputError, NeardupError, OutputError, ParameterError
from ..index.locking import IndexHeldError
from .gate import Gate, Metrics, refused
from .served import ServedIndex
from .settings import Serving

log = logging.getLogger("uvicorn.error")


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
        # Clients and proxies keep an idle connection for up to 60 seconds, most of them. If the service closed it
        # first, a request could meet a closed connection: with uvicorn's 5 seconds some did, under load.
        config = uvicorn.Config(app, access_log=False, lifespan="on", timeout_keep_alive=75)
        log.info("Serving %s at http://%s:%d", folder, *listening.getsockname()[:2])
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has ended
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run([listening])


def service(folder: Path, limits: Serving, engine: Engine, token: str | None) -> FastAPI:
    """Return the application that serves an index.

    Parameters
    ----------
    folder : Path
        Of the index.
    limits : Serving
    engine : Engine
    token : str or None
        What requests have to show in `Authorization: Bearer ...`; None if they need not.

    Raises
    ------
    InputError
        If there is no index, its ids are bytes, or it compares parts of documents.
    """
    served = ServedIndex(folder, limits, engine)
    metrics = Metrics(served.reader, lambda: served.queue.documents, limits.queue)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(served.load())
        yield
        loading.cancel()
        await served.close()

    app = FastAPI(title="neardup index serve", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Gate, limits=limits, metrics=metrics, token=token)
    _answer_errors(app)
    _add_documents(app, served, limits)
    _add_status(app, served, metrics)
    return app


def _answer_errors(app: FastAPI) -> None:
    """Answer each error with its status and one line."""

    @app.exception_handler(NeardupError)
    async def _failed(_: Request, error: NeardupError) -> JSONResponse:
        if isinstance(error, IndexHeldError):
            return refused(409, str(error), process=error.process, host=error.host)
        if isinstance(error, OutputError):
            return refused(507, str(error)) if _is_full(error) else refused(503, str(error), {"Retry-After": "5"})
        return refused(400 if isinstance(error, InputError | ParameterError | TypeError) else 500, str(error))

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        detail: Any = error.detail
        return refused(
            error.status_code, headers=error.headers, **(detail if isinstance(detail, dict) else {"error": detail})
        )

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return refused(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _is_full(error: BaseException | None) -> bool:
    """Return whether an error came of a disk or a quota that is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def _add_documents(app: FastAPI, served: ServedIndex, limits: Serving) -> None:
    """Add the routes that change the index, and those that read it."""
    bodies = served.bodies

    @app.post("/documents", summary="Add documents, and decide of each whether it is kept")
    async def add(request: Request, body: bodies.Additions) -> Response:  # type: ignore[name-defined]
        rows = [row.model_dump() for row in body.documents]
        size = int(request.headers.get("content-length", limits.max_body))
        return answered({"decisions": await served.change(rows, [row["id"] for row in rows], body.replace, size)})

    @app.delete("/documents", summary="Remove documents")
    async def remove_some(id: Annotated[list[str], Query(max_length=limits.max_documents)]) -> Response:
        return answered(await served.change([], [served.id_of(each) for each in id]))

    @app.delete("/documents/{id:path}", summary="Remove a document")
    async def remove(id: str) -> Response:
        return answered(await served.change([], [served.id_of(id)]))

    @app.post("/query", summary="Find documents that resemble texts, or contain them")
    def query(body: bodies.Query) -> Response:  # type: ignore[name-defined]
        return answered(served.query(body))

    @app.post("/passages", summary="Find the passages that texts share with documents")
    def passages(body: bodies.Passages) -> Response:  # type: ignore[name-defined]
        return answered(served.passages(body))

    @app.get("/documents/{id:path}/explanation", summary="The decision about a document, and its columns")
    def explanation(id: str) -> Response:
        return answered(served.explanation(id))


def _add_status(app: FastAPI, served: ServedIndex, metrics: Metrics) -> None:
    """Add the routes that say how the service is, and what it takes."""

    @app.get("/health", summary="Whether the service is ready: 503 until kernels are loaded")
    async def health() -> Response:
        ready = served.ready.is_set()
        status = {"status": "ready" if ready else "loading", "writes": served.queue.writes}
        return JSONResponse(status, 200 if ready else 503)

    @app.get("/metrics", summary="Metrics for Prometheus")
    def measured() -> Response:
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def described() -> Response:
        return HTMLResponse(page_of(app.openapi()))


def answered(value: Any) -> Response:
    """Return a value as JSON; dates become text, and NaN becomes null."""
    return Response(to_json(value, inf_nan_mode="null"), media_type="application/json")


def page_of(schema: dict[str, Any]) -> str:
    """Return the OpenAPI description as a page that loads nothing from elsewhere."""
    parts = [f"<!doctype html><title>{schema['info']['title']}</title><h1>{schema['info']['title']}</h1>"]
    parts.append('<p>The same for programs: <a href="openapi.json">openapi.json</a></p>')
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(operation['summary'])}</p>")
    for name, model in schema.get("components", {}).get("schemas", {}).items():
        parts.append(f"<h2>{html.escape(name)}</h2><pre>{html.escape(json.dumps(model, indent=1))}</pre>")
    return "\n".join(parts)
