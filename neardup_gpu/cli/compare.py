"""The command `neardup compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from ..documents.reading_options import Reading, chosen_reading
from ..errors import InputError
from ..records import dataclass
from ..settings import setting
from ..text.languages import language_of
from .console import notes, say, say_json, stdout
from .errors import in_flags, names_of
from .methods import ShingleSettings, chosen_shingles
from .options import DOCUMENTS, MATCHING, OUTPUT, Json, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class TextReading:
    """How texts are read."""

    html: bool | str = setting(
        False,
        "The texts are HTML: compare what a reader sees of them. As --html tree, by the trees that a parser builds.",
        metavar="[tree]",
    )
    encoding: str | None = setting(None, "Encoding of texts that are not UTF-8.", metavar="LABEL")


@dataclass(frozen=True, kw_only=True)
class Told(Json):
    """How much to show."""

    full: bool = setting(False, "Show all words, including words that agree.")


ComparedFlags: Any = flags(DOCUMENTS, TextReading)
CutFlags: Any = flags(MATCHING, ShingleSettings, without=("seed",))
ToldFlags: Any = flags(OUTPUT, Told)


def compare(
    a: Annotated[str, argument("A", "A file of text or HTML.")],
    b: Annotated[str, argument("B", "Another file.")],
    /,
    *,
    compared: ComparedFlags = None,
    cut: CutFlags = None,
    told: ToldFlags = None,
) -> None:
    """Compare two texts: their resemblance, how much of each the other contains, and the words in which they differ."""
    from ..jobs import comparison

    shown, reading = Told(**given(told)), Reading(**given(compared))
    shingles = chosen_shingles(given(cut))
    if shingles.tokens == "code" and shingles.language is None and language_of(a) == language_of(b):
        shingles = replace(shingles, language=language_of(a))
    with notes():
        reading = chosen_reading(reading, holds=shingles.token_kind.holds)
        texts = [_text_of(path, reading) for path in (a, b)]
        found = comparison.compare(*texts, shingles=shingles, full=shown.full)
    say_found(found, comparison.render, compare, shown)


def say_found(found: Any, render: Callable[..., Any], command: Callable[..., Any], shown: Told) -> None:
    """Print what a command found about two texts, as JSON or as they are rendered; notes name its flags."""
    found.notes[:] = [in_flags(line, names_of(command)) for line in found.notes]
    if shown.json:
        say_json(found.to_dict())
    else:
        place = stdout()
        say(render(found, width=place.width, colour=place.colour))


def _text_of(path: str, reading: Reading) -> bytes:
    """Read the text of a file.

    Raises
    ------
    InputError
        If it is not a single text.
    """
    from ..documents import open_documents

    documents = open_documents(path, reading=reading)
    if documents.format != "text" or documents.num_rows != 1:
        raise InputError(f"{path}: not a file of text or HTML; documents of a result are compared by neardup explain")
    return b"".join(bytes(batch.text.values) for batch in documents.batches())
