"""Define `Unit`: what is compared in place of documents, as an argument of `Recipe` and as flags of the command."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from .. import checks
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting

BOUNDARIES = {
    "paragraph": "paragraphs",
    "line": "lines",
    "sentence": "sentences",
    "sentences:N": "sentences",
    "window:N": "words",
}
"""The kinds of units, and the functions of `boundaries` that divide documents. N parts are a unit together, and another
unit may begin after each STEP parts, as in sentences:N/STEP."""

FORMS = ["document", *(form for kind in BOUNDARIES for form in ([kind, f"{kind}/STEP"] if ":" in kind else [kind]))]
"""All units, as messages list them."""


@dataclass(frozen=True)
class Unit:
    r"""The parts of documents that are compared, and the parts that are cut.

    Parameters
    ----------
    unit : str, default "document"
        What is compared:

        - "document": whole documents.
        - "paragraph": lines between blank lines.
        - "line": a line, which ends with ``\n``, ``\r\n`` or ``\r``.
        - "sentence": a sentence, by Unicode Standard Annex 29.
        - "sentences:3": three sentences, and the next three. "sentences:3/1" begins with each sentence.
        - "window:200": 200 words, and the next 200. "window:200/50" begins after each 50 words.

        Parts that overlap, as those of "window:200/50" do, are listed and never cut.
    min_words : int, default 1
        Parts with fewer tokens are not compared, and are kept.
    keep_copies : int, default 1
        The number of copies to keep of each part. The copies of one document count once, unless `inside`.
    inside : bool, default False
        Compare the parts of one document with each other, too. If False, equal parts of the document that keeps them
        are all kept.
    drop_below : int, default 1
        Drop documents from which parts are cut if they have fewer tokens left. A document that keeps a part that was
        cut elsewhere is never dropped.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If there is no such unit, or a value is out of range or of another type.

    Examples
    --------
    >>> Unit("window:200/50").overlaps
    True
    >>> str(Unit("paragraph", min_words=8))
    'paragraph'
    """

    unit: str = setting("document", f"Compare documents or their parts: {', '.join(FORMS)}.", metavar="UNIT")
    min_words: int = setting(1, "Parts of documents with fewer tokens are not compared.", metavar="N")
    keep_copies: int = setting(1, "Number of copies to keep of each part of a document.", metavar="N")
    inside: bool = setting(False, "Also compare the parts of one document with each other.")
    drop_below: int = setting(1, "Drop cut documents with fewer tokens left.", metavar="N")

    def __post_init__(self) -> None:
        kind, size, step = _parsed(checks.text("unit", self.unit))
        if step > size:
            raise ParameterError(
                f"unit {self.unit!r}: the step is above the size, so some text would not be compared; give a step of "
                f"at most {size}"
            )
        if ":" in kind:
            object.__setattr__(self, "unit", f"{kind[:-1]}{size}" + (f"/{step}" if step < size else ""))
        for name in ("min_words", "keep_copies", "drop_below"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1, 2**31 - 1))
        object.__setattr__(self, "inside", checks.flag("inside", self.inside))
        if not self.divides and (unused := self.describe()):
            raise ParameterError(
                f"{next(iter(unused))}: says which parts of documents are cut; give a unit such as line as well, or "
                "leave it out"
            )

    @property
    def divides(self) -> bool:
        """Whether documents are divided into parts."""
        return self.unit != "document"

    @property
    def boundaries(self) -> str:
        """The function of `boundaries` that divides documents."""
        return BOUNDARIES[_parsed(self.unit)[0]]

    @property
    def grouped(self) -> tuple[int, int]:
        """The number of parts of a unit, and the number after which the next unit begins."""
        return _parsed(self.unit)[1:]

    @property
    def overlaps(self) -> bool:
        """Whether units share text."""
        size, step = self.grouped
        return step < size

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say which part of a document a sketch is of."""
        return ("unit", "begin", "end") if self.divides else ()

    def __str__(self) -> str:
        return self.unit

    def describe(self) -> dict[str, Any]:
        """Return the settings that differ from the default, by the names that files and flags use.

        Returns
        -------
        dict
            Empty if whole documents are compared.

        Examples
        --------
        >>> Unit("line", min_words=3).describe()
        {'unit': 'line', 'min_words': 3}
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {each.name: values[each.name] for each in fields(self) if values[each.name] != each.default}


UNIT_SETTINGS = tuple(each.name for each in fields(Unit))
"""The names of the settings of a unit."""


def _parsed(unit: str) -> tuple[str, int, int]:
    """Return the kind of a unit, a key of `BOUNDARIES` or "document", its size and its step; 1 where it has none."""
    found = re.fullmatch(r"([a-z]+)(?::([1-9]\d{0,8})(?:/([1-9]\d{0,8}))?)?", unit)
    if found is not None:
        name, size, step = found.groups()
        if size is None and (name in BOUNDARIES or name == "document"):
            return name, 1, 1
        if size is not None and f"{name}:N" in BOUNDARIES:
            return f"{name}:N", int(size), int(step or size)
    raise ParameterError(f"unit must be one of {', '.join(FORMS)}, not {unit!r}")
