"""The way in which the documents of an index were read: a later input that is read in another way is refused.

Two ways of reading give other words for the same document, so nothing would be found between them. Texts, pages and
records of crawls have no columns, and their format says what is HTML: they are not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import InputError

ReadingOfIndex = dict[str, Any]
"""`html` as in `Reading`, and `text_columns`, a list of names."""


def checked_reading(described: dict[str, Any], known: ReadingOfIndex | None) -> ReadingOfIndex | None:
    """Return how the documents of an index are read once others have been added, which `Documents.describe` describes.

    `known` is how they were read until now.

    Raises
    ------
    InputError
        If the others are read in another way.
    """
    if described["text_columns"] is None:
        return known
    given: ReadingOfIndex = {"html": described["html"], "text_columns": list(described["text_columns"])}
    if known is None or known == given:
        return given
    name = next(each for each in known if known[each] != given[each])
    if name == "html":
        before, now = ("no HTML" if not each["html"] else f"html={each['html']!r}" for each in (known, given))
        advice = "leave html out" if not known["html"] else f"give {before}"
    else:
        before, now = (f"the text of {', '.join(map(repr, each[name]))}" for each in (known, given))
        listed = known[name] if len(known[name]) > 1 else known[name][0]
        advice = f"give text_columns={listed!r}"
    raise InputError(f"the index was filled with {before}, and this input is read with {now}; {advice}")


def problems_of_reading(reading: Any) -> Iterator[str]:
    """Yield what is wrong with this part of a manifest."""
    if reading is None:
        return
    sound = isinstance(reading, dict) and reading.keys() == {"html", "text_columns"}
    sound = sound and (type(reading["html"]) is bool or reading["html"] == "tree")
    names = reading["text_columns"] if sound else None
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        yield f"reading is {reading!r:.60}"
