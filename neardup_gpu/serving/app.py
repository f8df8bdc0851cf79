"""The routes of the service."""

import asyncio
import html
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from .. import __version__
from ..engine.settings import Engine
from ..errors import NeardupError
from .gate import Gate, refused
from .metrics import Metrics
from .served import ServedIndex
from .settings import Serving
from .writing import QueueFullError, status_of


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
    _answer_errors(app, served)
    _add_changes(app, served, limits)
    _add_questions(app, served)
    _add_status(app, served, metrics)
    return app


def _answer_errors(app: FastAPI, served: ServedIndex) -> None:
    """Answer each error with its status and one line."""

    @app.exception_handler(NeardupError)
    async def _failed(_: Request, error: NeardupError) -> JSONResponse:
        status, more = status_of(error)
        return refused(status, str(error), {"Retry-After": "5"} if status == 503 else None, **more)

    @app.exception_handler(QueueFullError)
    async def _full(_: Request, __: QueueFullError) -> JSONResponse:
        waiting = f"{served.queue.documents:,} documents wait for the writer; try again"
        return refused(503, waiting, {"Retry-After": "1"})

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return refused(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return refused(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _add_changes(app: FastAPI, served: ServedIndex, limits: Serving) -> None:
    """Add the routes that change the index."""
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


def _add_questions(app: FastAPI, served: ServedIndex) -> None:
    """Add the routes that read the index."""
    bodies = served.bodies

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


def answered(value: Any) -> JSONResponse:
    """Return a value as JSON; dates become text, and NaN becomes null."""
    return JSONResponse(jsonable_encoder(_without_nan(value)))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
