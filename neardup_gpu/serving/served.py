"""The index of a service: what reads it, the queue of changes, and the form of what both are given."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..errors import InputError
from ..index import Index, notes_of
from .bodies import MAX_ID, Bodies
from .settings import Serving
from .warming import load_kernels
from .writing import Change, WriteQueue


class ServedIndex:
    """An index that is open to read, and the queue through which it is changed.

    `ready` is set once kernels are loaded. The parameters and errors are those of `app.service`.
    """

    def __init__(self, folder: Path, limits: Serving, engine: Engine) -> None:
        self.reader = reader = Index.open(folder, engine=engine)
        if reader.info()["ids"] == "binary":
            raise InputError(
                f"{folder}: its ids are bytes, which JSON cannot hold; make an index with ids that are text"
            )
        if reader.recipe.unit.divides:
            raise InputError(
                f"{folder}: it compares parts of documents, and a service answers with one decision per document; use "
                "neardup index add and neardup index query"
            )
        self.bodies = Bodies(reader, limits)
        self.ready = asyncio.Event()
        self._reading = Reading(html=self.bodies.html, text_columns=self.bodies.texts)
        self.queue = WriteQueue(folder, engine, limits.queue, self._table, self._reading)

    def _table(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return self.bodies.table(rows, self.reader.refresh().info()["columns"], ["id"])

    async def load(self) -> None:
        """Load all kernels that requests need."""
        await run_in_threadpool(load_kernels, self.reader, self.bodies.texts)
        self.ready.set()

    async def close(self) -> None:
        """Commit what waits, and close the index."""
        await run_in_threadpool(self.queue.close)
        self.reader.close()

    async def change(
        self, rows: list[dict[str, Any]], ids: list[Any], replace: bool = False, num_bytes: int = 0
    ) -> Any:
        """Add documents, or remove those with the ids if there are no rows; return the answer after the commit."""
        if len(ids) != len(set(ids)):
            again = next(id for place, id in enumerate(ids) if id in ids[:place])
            raise HTTPException(422, f"id {again!r} stands for several documents; ids name one each")
        if not self.ready.is_set():
            raise HTTPException(503, "kernels are being loaded; try again", {"Retry-After": "1"})
        return await asyncio.wrap_future(self.queue.put(Change(rows, set(ids), replace, num_bytes)))

    def query(self, body: Any) -> dict[str, Any]:
        """Return the matches and the notes for each text or document of a request."""
        given, reader = given_of(body), self.reader.refresh()
        if isinstance(body.text, str):
            found, number = reader.query(body.text, **given, reading=Reading(html=self.bodies.html)), 1
        else:
            rows = body.model_dump()["documents"] or [dict.fromkeys(self.bodies.texts, body.text)]
            number = len(rows)
            table = self.bodies.table(rows, reader.info()["columns"], [])
            found = reader.query(table, **given, reading=self._reading)
        answers: list[dict[str, Any]] = [{"matches": [], "notes": []} for _ in range(number)]
        for match in found.to_pylist():
            answers[match.pop("query_id")]["matches"].append(match)
        notes = notes_of(found)
        for note in [each for each in notes if "query_id" in each]:
            answers[note.pop("query_id")]["notes"].append(note)
        return {"answers": answers, "notes": [each for each in notes if "ids" in each]}

    def passages(self, body: Any) -> dict[str, Any]:
        """Return the passages that each text or document of a request shares with documents of the index."""
        given = {name: value for name, value in given_of(body).items() if value is not None}
        reader = self.reader.refresh()
        if body.text is not None:
            found = reader.passages(body.text, **given, reading=Reading(html=self.bodies.html))
        else:
            table = self.bodies.table(body.model_dump()["documents"], reader.info()["columns"], [])
            found = reader.passages(table, **given, reading=self._reading)
        names = ["tokens", "tokens_taken", "share", "tokens_common"]
        answers = [{**each, "passages": []} for each in found.documents.select(names).to_pylist()]
        for passage in found.passages.to_pylist():
            answers[passage.pop("id")]["passages"].append(passage)
        return {"answers": answers}

    def explanation(self, id: str) -> dict[str, Any]:
        """Return the decision about a document, and its columns."""
        found = self.reader.refresh().explain([self.id_of(id)]).to_pylist()
        if not found:
            raise HTTPException(404, f"id {id!r} is not in the index")
        return found[0]

    def id_of(self, text: str) -> Any:
        """Return an id of a path, of the type that ids of the index have."""
        if not 0 < len(text) <= MAX_ID:
            raise HTTPException(422, f"an id has at most {MAX_ID:,} characters")
        if self.reader.refresh().info()["ids"] != "integer":
            return text
        if not text.isdecimal() or int(text) >= 2**63:
            raise HTTPException(422, f"{text!r} is not an id of this index, whose ids are integers")
        return int(text)


def given_of(body: Any) -> dict[str, Any]:
    """Return the fields of a query besides its texts, which are given in one of two ways."""
    if (body.text is None) == (body.documents is None):
        raise HTTPException(422, "text and documents: give one of them")
    return dict(body.model_dump(exclude={"text", "documents"}))
