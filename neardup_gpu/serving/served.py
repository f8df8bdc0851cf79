"""The index of a service: what reads it, the queue of changes, and the form of what both are given."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from ..data import rows_of
from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..errors import InputError
from ..index import Index, notes_of
from .bodies import MAX_ID, Bodies
from .settings import Serving
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
        self.queue = WriteQueue(folder, engine, limits.queue, self.bodies)

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
        [(id, times)] = Counter(ids).most_common(1)
        if times > 1:
            raise HTTPException(422, f"id {id!r} stands for several documents; ids name one each")
        if not self.ready.is_set():
            raise HTTPException(503, "kernels are being loaded; try again", {"Retry-After": "1"})
        return await asyncio.wrap_future(self.queue.put(Change(rows, set(ids), replace, num_bytes)))

    def query(self, body: Any) -> dict[str, Any]:
        """Return the matches and the notes for each text or document of a request."""
        texts, options = self._asked(body)
        found = self.reader.refresh().query(texts, **options)
        answers: list[dict[str, Any]] = [{"matches": [], "notes": []} for _ in body.documents or [body.text]]
        for match in rows_of(found):
            answers[match.pop("query_id")]["matches"].append(match)
        notes: list[dict[str, Any]] = []
        for note in notes_of(found):
            (answers[note.pop("query_id")]["notes"] if "query_id" in note else notes).append(note)
        return {"answers": answers, "notes": notes}

    def passages(self, body: Any) -> dict[str, Any]:
        """Return the passages that each text or document of a request shares with documents of the index."""
        texts, options = self._asked(body)
        found = self.reader.refresh().passages(texts, **options)
        names = ["tokens", "tokens_taken", "share", "tokens_common"]
        answers = [{**each, "passages": []} for each in found.documents.select(names).to_pylist()]
        for passage in found.passages.to_pylist():
            answers[passage.pop("id")]["passages"].append(passage)
        return {"answers": answers}

    def _asked(self, body: Any) -> tuple[Any, dict[str, Any]]:
        """Return the text or the documents of a request, and the options with which they are looked up."""
        if (body.text is None) == (body.documents is None):
            raise HTTPException(422, "text and documents: give one of them")
        given = body.model_dump(exclude_none=True)
        text, rows = given.pop("text", None), given.pop("documents", None)
        if isinstance(text, str):
            return text, {**given, "reading": Reading(html=self.bodies.reading.html)}
        table = self.bodies.table(rows or [dict.fromkeys(self.bodies.texts, text)])
        return table, {**given, "reading": self.bodies.reading}

    def explanation(self, id: str) -> dict[str, Any]:
        """Return the decision about a document, and its columns."""
        found = list(rows_of(self.reader.refresh().explain([self.id_of(id)])))
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


def load_kernels(index: Index, texts: list[str]) -> None:
    """Add, query and remove in a small index of the same kind, with these columns of text, in a temporary folder."""
    info = index.info()
    keeps = {name: info[name] for name in ("containment", "sets", "expected")}
    keeps["keep_tokens"] = info["tokens"] is not None
    of_integers = index.recipe.shingles.token_kind.of_integers
    words = [list(range(8)), list(range(1, 9))] if of_integers else ["to be or not to be", "or not to be that"]
    rows = dict.fromkeys(texts, words) | {name: ["", ""] for name in index.recipe.within}
    with (
        tempfile.TemporaryDirectory(prefix="neardup-") as folder,
        Index.create(Path(folder, "small"), recipe=index.recipe, **keeps) as small,
    ):
        for number in range(2):  # the second one is looked up in files
            small.add({"id": [f"{number}a", f"{number}b"], **rows}, id_column="id", text_columns=texts)
        for each in [rows] if of_integers or index.recipe.within else [rows, words[0]]:
            how: dict[str, Any] = {} if isinstance(each, str) else {"text_columns": texts}
            small.query(each, **how)
            if keeps["containment"] is not None:
                small.query(each, containment=0.5, **how)
            if keeps["keep_tokens"]:
                small.passages(each, length=2, **how)
        small.explain(["0a"])
        small.remove(["0a"])
        small.compact()
