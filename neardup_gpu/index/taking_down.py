"""Take-down: documents that resemble or contain some texts are removed, and a statement says so.

A statement is a file of JSON with a checksum. It has a digest (SHA-256) of each text, the documents that were removed,
how they were searched, and what that promises. `prove` reads the texts again, compares their digests, and searches the
index once more: no document may be found.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..documents import open_described
from ..engine.settings import Engine
from ..errors import DamagedError, InputError, ParameterError
from ..report import count
from ..store.artefacts import MOST_REPORT, TAKE_DOWN, report_is_as_written, with_checksum
from ..store.checksums import changed
from ..store.folder import Folder
from .containment import RECALL, ContainmentQuery, containing_documents
from .opened import Opened
from .queries import QueryLimits, as_json, near_documents, queries_in
from .removing import Removed, take_away
from .sketches import EntryTools
from .writer import checked_ids, ids_there, kind_of

if TYPE_CHECKING:
    from ..documents import Documents
    from ..engine.contract import Runtime


def is_statement(path: Path) -> bool:
    """Return whether a file is the statement of a take-down, as it was written."""
    try:
        return report_is_as_written(path.parent, path.name) and json.loads(path.read_bytes())["kind"] == TAKE_DOWN
    except (KeyError, OSError, TypeError, ValueError):
        return False


def take_down(
    opened: Opened,
    documents: Documents,
    limits: QueryLimits,
    by_content: ContainmentQuery | None,
    statement: Path | None,
    erases: bool,
    dry_run: bool,
) -> Removed:
    """Remove what resembles one of the texts, or contains it by the second limits, as `Index.take_down` says."""
    if opened.recipe.unit.divides:
        raise ParameterError(
            f"unit '{opened.recipe.unit}': a take-down compares whole documents, and the index holds parts of them; "
            "query for the parts and remove by id"
        )
    with opened.running() as runtime:
        if not dry_run:
            opened.write()
        manifest, snapshot = opened.snapshot(runtime)
        texts, found = _search(opened, documents, limits, by_content, runtime)
        ids = checked_ids(found["id"].combine_chunks().cast(manifest.id_type), manifest).unique()
        sequence = ids_there(snapshot, ids, kind_of(ids))[1] if len(ids) else np.empty(0, np.int64)
        if statement is not None:
            removed = [_without_id(each) if erases else each for each in _listed(found)]
            facts = {
                "kind": TAKE_DOWN,
                "index": str(opened.folder.resolve()),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "counts": {"texts": len(texts), "removed": len(ids), "documents": manifest.documents - len(ids)},
                "promise": _promise(opened, limits, by_content),
                "limits": {**limits._asdict(), "by_content": None if by_content is None else vars(by_content)},
                "recipe": opened.recipe.describe(),
                "input": documents.describe(),
                "texts": texts,
                "removed": removed,
            }
            statement.write_bytes(with_checksum(json.dumps(facts, indent=1).encode()))
        return Removed(len(sequence), [], not dry_run and take_away(opened, sequence, erases))


def prove(path: Path) -> str:
    """Compare a statement with its texts and its index; returns what was compared, for people.

    Raises
    ------
    DamagedError
        If the statement or a text was changed, or a document of the index resembles or contains a text.
    InputError
        If the texts or the index cannot be read.
    """
    if not report_is_as_written(path.parent, path.name):
        raise changed(path)
    facts = json.loads(Folder(path.parent).read(path.name, MOST_REPORT))
    if facts["input"]["format"] == "memory":
        raise InputError(f"{path}: its texts were in memory, so it cannot be proved again; take down texts of a file")
    limits = facts["limits"]
    by_content = None if limits["by_content"] is None else ContainmentQuery(**limits["by_content"])
    near = QueryLimits(*(limits[name] for name in QueryLimits._fields))
    opened = Opened(Path(facts["index"]), Engine())
    try:
        with opened.running() as runtime:
            texts, found = _search(opened, open_described(facts["input"]), near, by_content, runtime)
    finally:
        opened.close()
    if texts != facts["texts"]:
        raise DamagedError(f"{path}: the texts are not those of the statement; restore the file that it names")
    if len(found):
        first, number = as_json(found["id"][0].as_py()), count(len(found["id"].unique()), "document")
        raise DamagedError(
            f"{path}: the index has {number} again that the texts find, the first is {first!r}; take them down again"
        )
    index = facts["index"]
    return f"{count(len(texts), 'text')} by digest, and {index}, in which no document resembles or contains one,"


def _search(
    opened: Opened, documents: Documents, limits: QueryLimits, by_content: ContainmentQuery | None, runtime: Runtime
) -> tuple[list[dict[str, Any]], pa.Table]:
    """Return the id and the digest of each text, and the documents that it finds, with one of its values."""
    manifest, snapshot = opened.snapshot(runtime)
    recipe, texts, tables = opened.recipe, list[dict[str, Any]](), list[pa.Table]()
    tools = EntryTools(recipe, manifest.keeps, runtime)
    for queries in queries_in(documents, recipe):
        given = manifest, snapshot, queries, tools
        tables.append(near_documents(*given, limits=limits)[0])
        if by_content is not None:
            tables.append(containing_documents(*given, limits=by_content)[0])
        for row, id in enumerate(queries.ids.to_pylist()):
            texts.append({"id": as_json(id), "sha256": hashlib.sha256(queries.text[row].tobytes()).hexdigest()})
    if not tables:
        raise InputError("the input holds no texts; there is nothing to take down")
    return texts, pa.concat_tables(tables, promote_options="permissive")


def _listed(found: pa.Table) -> list[dict[str, Any]]:
    """Return the matches as a statement lists them."""
    names = [name for name in ("resemblance", "cosine", "distance", "containment") if name in found.column_names]
    rows = found.select(["query_id", "id", *names]).to_pylist()
    return [{name: as_json(value) for name, value in row.items() if value is not None} for row in rows]


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    """Return a match with a digest in place of the id of the document."""
    return {"query_id": row["query_id"], "id_sha256": hashlib.sha256(str(row["id"]).encode()).hexdigest()} | {
        name: value for name, value in row.items() if name not in ("id", "query_id")
    }


def _promise(opened: Opened, limits: QueryLimits, by_content: ContainmentQuery | None) -> str:
    """Return the sentences that say what was surely found."""
    recipe, exact = opened.recipe, opened.manifest.keeps.sets
    recall = recipe.method.expected_recall(limits.least)
    if limits.least is None:
        first = f"Every document whose simhash differs from a text's in at most {opened.finder.radius} bits was found."
    elif recipe.method.name == "exact":
        first = f"Every document whose resemblance to a text is {limits.least:g} or more was found."
    elif recall is None:
        first = f"Documents whose resemblance to a text is {limits.least:g} or more were searched without a bound."
    else:
        first = (
            f"A document whose resemblance to a text is {limits.least:g} was found with probability {recall:.4f}, and "
            "one that resembles it more with a greater probability."
        )
    if not exact and limits.least is not None:
        first += " The resemblance was estimated."
    if by_content is None:
        return first
    ways = {"in": "contains a text", "of": "is contained in a text", "either": "contains a text or is contained in it"}
    return (
        f"{first} A document that {ways[by_content.direction]} by {by_content.least:g} or more was found with "
        f"probability {RECALL:g}, or less if few elements of the text or of the document are in the index's table. A "
        "text without elements finds nothing by containment."
    )
