"""The passages that a document lost: each in its place, and in the document that keeps it."""

from __future__ import annotations

from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from ..documents.rereading import raw_texts
from ..printable import readable_id
from ..records import dataclass
from ..report import count, row, shorten
from ..results.explanation import opened_again, row_of
from ..store.artefacts import SUBSTRINGS, read_report, using_report
from ..store.parquet import read_table
from ..text.raw_text import readable_part
from ..text.token_kinds import KINDS, noun_of

if TYPE_CHECKING:
    from rich.text import Text

SHOWN = 200
"""Characters of a passage that are shown, unless all are."""


@dataclass(frozen=True)
class LostPassage:
    """A passage that a document lost.

    Parameters
    ----------
    begin, end : int
        Its bytes in the text of the document.
    tokens, copies : int
        As in spans.parquet.
    source_id : int or str, default None
        The document that keeps it; None if no document does, by choice.
    source_begin : int, default None
        The byte of that document's text with which it begins.
    source_in_reference : bool, default False
    reason : str, default None
        Why it was removed without a source.
    text : str, default ""
    """

    begin: int
    end: int
    tokens: int
    copies: int
    source_id: Any = None
    source_begin: int | None = None
    source_in_reference: bool = False
    reason: str | None = None
    text: str = ""


@dataclass(frozen=True)
class LostText:
    """The passages that a document lost, and what it keeps for others.

    Parameters
    ----------
    id : int or str
    kept : bool
        Whether the document is in kept/.
    words, words_left : int
        Its tokens before and after.
    passages : list of LostPassage
    tokens_given, takers : int
        Tokens in passages that it keeps for others, and the number of documents that lost them.
    kind : str, default "words"
        The kind of tokens.
    """

    id: Any
    kept: bool
    words: int
    words_left: int
    passages: list[LostPassage]
    tokens_given: int
    takers: int
    kind: str = "words"
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON holds them."""
        return asdict(self)


def explain_passages(folder: str | Path, id: Any, *, full: bool = False, source: Any = None) -> LostText:
    """Say which passages a document of a finished search lost, and where each stands now.

    Parameters
    ----------
    folder : path
        A folder that `substrings` wrote; the input must still be where it was.
    id : int or str
        The document's id; a number may be given as text.
    full : bool, default False
        Return the whole text of each passage.
    source : table, default None
        The documents, if `substrings` was given them in memory.

    Raises
    ------
    OutputError
        If the folder is not a finished result.
    InputError
        If it has no such document, or the input is gone.
    """
    with using_report(folder):
        report = read_report(folder, SUBSTRINGS)
        documents = read_table(Path(folder) / "documents.parquet")
        _, entry = row_of(lambda: [documents], id, str(folder))
        (found,) = entry.to_pylist()
        spans = read_table(Path(folder) / "spans.parquet")
        rows = spans.filter(pc.equal(spans["id"], entry["id"][0])).to_pylist()
        given = pc.equal(spans["source_id"], entry["id"][0])
        if "source_in_reference" in spans.column_names:
            given = pc.and_(given, pc.invert(spans["source_in_reference"]))
        given = spans.filter(pc.fill_null(given, False))
        kind = report["settings"]["tokens"]
        text, holds = b"", KINDS[kind].holds
        if rows:
            opened = opened_again(report["input"], source, "source", folder)
            text = raw_texts(opened, {found["id"]}).get(found["id"], b"")
        passages = []
        for each in rows:
            words = readable_part(text, each["begin"], each["end"], holds)
            names = {name: each[name] for name in LostPassage.__dataclass_fields__ if each.get(name) is not None}
            passages.append(LostPassage(**names, text=words if full else shorten(words, SHOWN)))
        tokens, takers = pc.sum(given["tokens"]).as_py() or 0, len(pc.unique(given["id"]))
    return LostText(found["id"], found["kept"], found["words"], found["words_left"], passages, tokens, takers, kind)


def render(found: LostText, *, width: int, colour: bool) -> Text:
    """Return what is known of a document, line by line."""
    from rich.text import Text

    noun, unit = noun_of(found.kind), KINDS[found.kind].place
    size = count(found.words, KINDS[found.kind].noun)
    what = f"{size}, {found.words_left:,} left{'' if found.kept else '; the document is dropped'}"
    lines = [row("document", f"{readable_id(found.id)}: {what}")]
    if found.takers:
        lines.append(row("keeps", f"{count(found.tokens_given, noun)} for {count(found.takers, 'other document')}"))
    if not found.passages:
        lines.append(row("removed", "nothing"))
    for each in found.passages:
        where = f"{unit}s {each.begin:,} to {each.end:,}, {count(each.tokens, noun)} in {count(each.copies, 'place')}"
        if each.source_id is None:
            kept = f"no document keeps it, by choice ({each.reason})"
        else:
            which = " of the reference set" if each.source_in_reference else ""
            kept = f"kept by {readable_id(each.source_id)}{which}, from {unit} {each.source_begin or 0:,}"
        lines += [row("removed", f"{where}; {kept}"), row("", each.text)]
    return Text("\n").join(lines)
