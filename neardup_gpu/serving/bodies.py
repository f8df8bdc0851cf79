"""The form of requests, made for an index: its text columns and the columns that it keeps are fields of a document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, create_model

from ..documents.reading_options import Reading
from ..index import Index
from ..index.columns import type_named
from .settings import Serving

MAX_ID = 1024
"""Maximum number of characters of an id."""

Id = Annotated[StrictStr, Field(min_length=1, max_length=MAX_ID)] | Annotated[StrictInt, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """A body that has no other fields."""

    model_config = ConfigDict(extra="forbid")


class Bodies:
    """The bodies that the service of an index takes."""

    def __init__(self, index: Index, limits: Serving) -> None:
        info = index.info()
        reading = info["reading"] or {"text_columns": ["text"], "html": False}
        self.reading = Reading(html=reading["html"], text_columns=reading["text_columns"])
        self.texts: list[str] = reading["text_columns"]
        self._index, self._columns = index, list(info["columns"])
        text: Any = list[int] if index.recipe.shingles.token_kind.of_integers else str
        fields: dict[str, Any] = dict.fromkeys(self.texts, (text, ...))
        kept: dict[str, Any] = dict.fromkeys(self._columns, (Any, None))
        document = create_model("Document", __base__=Strict, id=(Id, ...), **fields, **kept)
        asked = create_model("AskedDocument", __base__=Strict, **fields, **kept)
        most: Any = Field(min_length=1, max_length=limits.max_documents)
        several: Any = Annotated[list[document], most]  # type: ignore[valid-type]
        questions: Any = Annotated[list[asked], most] | None  # type: ignore[valid-type]
        nearest: Any = Annotated[int, Field(ge=1, le=limits.max_documents)]
        direction: Any = Literal["in", "of", "either"] | None
        replace = Field(False, description="Let a document take the place of an earlier one with its id.")
        fields = {"documents": (several, ...), "replace": (bool, replace)}
        self.Additions: Any = create_model("Additions", __base__=Strict, **fields)
        fields = {"text": (text | None, None), "documents": (questions, None), "columns": (list[str], [])}
        fields |= dict.fromkeys(("threshold", "containment"), (float | None, None)) | {"radius": (int | None, None)}
        fields |= {"nearest": (nearest, min(100, limits.max_documents)), "direction": (direction, None)}
        self.Query: Any = create_model("Query", __base__=Strict, **fields)
        fields = {"text": (str | None, None), "documents": (questions, None), "date": (str | None, None)}
        fields |= {"within": (list[str] | None, None), "ignore_common": (int | float | None, None)}
        fields |= dict.fromkeys(("length", "gap", "max_partners"), (int | None, None))
        self.Passages: Any = create_model("Passages", __base__=Strict, **fields)

    def table(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return rows as columns: their ids, if any, the text, and the kept columns, in which strings become times."""
        types = self._index.refresh().info()["columns"]
        found: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0] if name not in types}
        for name in self._columns:
            values, kind = pa.array([row.get(name) for row in rows]), type_named(types[name])
            if pa.types.is_string(values.type) and pa.types.is_temporal(kind):
                values = values.cast(kind)
            found[name] = values
        return found
