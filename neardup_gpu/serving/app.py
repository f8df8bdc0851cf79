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
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from .. import __version__
from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..errors import InputError, NeardupError
from ..index import Index, notes_of
from .bodies import MAX_ID, Bodies
from .gate import Gate, refused
from .metrics import Metrics
from .settings import Serving
from .warming import load_kernels
from .writing import Change, QueueFullError, WriteQueue, status_of


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
    reader = Index.open(folder, engine=engine)
    if reader.info()["ids"] == "binary":
        raise InputError(f"{folder}: its ids are bytes, which JSON cannot hold; make an index with ids that are text")
    if reader.recipe.unit.divides:
        raise InputError(
            f"{folder}: it compares parts of documents, and a service answers with one decision per document; use "
            "neardup index add and neardup index query"
        )
    bodies = Bodies(reader, limits)
    reading = Reading(html=bodies.html, text_columns=bodies.texts)
    ready = asyncio.Event()

    def as_table(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return bodies.table(rows, reader.refresh().info()["columns"], ["id"])

    queue = WriteQueue(folder, engine, limits.queue, as_table, reading)
    metrics = Metrics(reader, lambda: queue.documents, limits.queue)

    async def load() -> None:
        await run_in_threadpool(load_kernels, reader, bodies.texts)
        ready.set()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(load())
        yield
        loading.cancel()
        await run_in_threadpool(queue.close)
        reader.close()

    app = FastAPI(title="neardup index serve", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Gate, limits=limits, metrics=metrics, token=token)

    @app.exception_handler(NeardupError)
    async def _failed(_: Request, error: NeardupError) -> JSONResponse:
        status, more = status_of(error)
        return refused(status, str(error), {"Retry-After": "5"} if status == 503 else None, **more)

    @app.exception_handler(QueueFullError)
    async def _full(_: Request, __: QueueFullError) -> JSONResponse:
        waiting = f"{queue.documents:,} documents wait for the writer; try again"
        return refused(503, waiting, {"Retry-After": "1"})

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        return refused(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return refused(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    async def change(rows: list[dict[str, Any]], ids: list[Any], replace: bool, num_bytes: int) -> Any:
        if len(ids) != len(set(ids)):
            again = next(id for place, id in enumerate(ids) if id in ids[:place])
            raise HTTPException(422, f"id {again!r} stands for several documents; ids name one each")
        if not ready.is_set():
            raise HTTPException(503, "kernels are being loaded; try again", {"Retry-After": "1"})
        return await asyncio.wrap_future(queue.put(Change(rows, set(ids), replace, num_bytes)))

    @app.post("/documents", summary="Add documents, and decide of each whether it is kept")
    async def add(request: Request, body: bodies.Additions) -> Response:  # type: ignore[name-defined]
        rows = [row.model_dump() for row in body.documents]
        size = int(request.headers.get("content-length", limits.max_body))
        return answered({"decisions": await change(rows, [row["id"] for row in rows], body.replace, size)})

    @app.post("/query", summary="Find documents that resemble texts, or contain them")
    def query(body: bodies.Query) -> Response:  # type: ignore[name-defined]
        given = given_of(body)
        reader.refresh()
        if isinstance(body.text, str):
            found, number = reader.query(body.text, **given, reading=Reading(html=bodies.html)), 1
        else:
            rows = body.model_dump()["documents"] or [dict.fromkeys(bodies.texts, body.text)]
            number = len(rows)
            found = reader.query(bodies.table(rows, reader.info()["columns"], []), **given, reading=reading)
        answers: list[dict[str, Any]] = [{"matches": [], "notes": []} for _ in range(number)]
        for match in found.to_pylist():
            answers[match.pop("query_id")]["matches"].append(match)
        notes = notes_of(found)
        for note in [each for each in notes if "query_id" in each]:
            answers[note.pop("query_id")]["notes"].append(note)
        return answered({"answers": answers, "notes": [each for each in notes if "ids" in each]})

    @app.post("/passages", summary="Find the passages that texts share with documents")
    def passages(body: bodies.Passages) -> Response:  # type: ignore[name-defined]
        given = {name: value for name, value in given_of(body).items() if value is not None}
        reader.refresh()
        if body.text is not None:
            found = reader.passages(body.text, **given, reading=Reading(html=bodies.html))
        else:
            rows = body.model_dump()["documents"]
            found = reader.passages(bodies.table(rows, reader.info()["columns"], []), **given, reading=reading)
        names = ["tokens", "tokens_taken", "share", "tokens_common"]
        answers = [{**each, "passages": []} for each in found.documents.select(names).to_pylist()]
        for passage in found.passages.to_pylist():
            answers[passage.pop("id")]["passages"].append(passage)
        return answered({"answers": answers})

    @app.delete("/documents", summary="Remove documents")
    async def remove_some(id: Annotated[list[str], Query(max_length=limits.max_documents)]) -> Response:
        return answered(await change([], [id_of(each) for each in id], False, 0))

    @app.delete("/documents/{id:path}", summary="Remove a document")
    async def remove(id: str) -> Response:
        return answered(await change([], [id_of(id)], False, 0))

    @app.get("/documents/{id:path}/explanation", summary="The decision about a document, and its columns")
    def explanation(id: str) -> Response:
        found = reader.refresh().explain([id_of(id)]).to_pylist()
        if not found:
            raise HTTPException(404, f"id {id!r} is not in the index")
        return answered(found[0])

    def id_of(text: str) -> Any:
        """Return an id of a path, of the type that ids of the index have."""
        if not 0 < len(text) <= MAX_ID:
            raise HTTPException(422, f"an id has at most {MAX_ID:,} characters")
        if reader.refresh().info()["ids"] != "integer":
            return text
        if not text.isdecimal() or int(text) >= 2**63:
            raise HTTPException(422, f"{text!r} is not an id of this index, whose ids are integers")
        return int(text)

    @app.get("/health", summary="Whether the service is ready: 503 until kernels are loaded")
    async def health() -> Response:
        status = "ready" if ready.is_set() else "loading"
        return JSONResponse({"status": status, "writes": queue.writes}, 200 if ready.is_set() else 503)

    @app.get("/metrics", summary="Metrics for Prometheus")
    def measured() -> Response:
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def described() -> Response:
        return HTMLResponse(page_of(app.openapi()))

    return app


def given_of(body: Any) -> dict[str, Any]:
    """Return the fields of a query besides its texts, which are given in one of two ways."""
    if (body.text is None) == (body.documents is None):
        raise HTTPException(422, "text and documents: give one of them")
    return dict(body.model_dump(exclude={"text", "documents"}))


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
