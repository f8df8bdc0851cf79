"""Define the settings of a search for repeated passages, as flags and as keywords of `substrings`."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, get_args

from .. import checks
from ..errors import ParameterError
from ..keep_rule import checked_rule
from ..records import dataclass
from ..settings import setting
from ..text.token_kinds import KINDS, TokensName, lengths

Action = Literal["cut", "mark", "list"]
ACTIONS = get_args(Action)
"""The actions on removed passages; see `SubstringSettings`."""

Cut = Literal["token", "line", "sentence"]
CUTS = get_args(Cut)
"""The parts at whose ends passages are cut; see `SubstringSettings`."""

LEAST, LONGEST = 2, 1 << 20
"""The smallest and the largest `length`."""

USUAL = 50
"""The `length` if none is given, in words."""

NOTHING = "none"
"""The rule that keeps no passage."""


@dataclass(frozen=True, kw_only=True)
class SubstringSettings:
    """Settings of a search for repeated passages.

    Parameters
    ----------
    tokens : str, default "words"
        What a token is: "words", "letters", "lines", "code", "ids" or "chunks"; see `Shingles`. Passages of letters
        are cut at whole words, and those of lines at whole lines. Chunks are not cut. Places of "ids" count integers
        of the list, in place of bytes.
    length : int, default None
        The tokens of the shortest passage that counts. If None, it is 250 letters, 5 lines, 2 chunks, or 50 tokens of
        another kind.
    keep : str, default "first"
        Which document keeps a passage:

        - "first": the first one, in input order.
        - "longest": the one with the most tokens.
        - the name of a column: the one with the smallest value, or with the largest one if ``:desc`` follows.
        - "none": no document keeps it; all copies are removed.
    keep_copies : int, default 1
        The number of copies of each passage to keep.
    within : str or sequence of str, default ()
        Columns. Only documents with equal values are compared, counted and cut; null equals nothing.
    in_documents : int or float, default None
        Only passages count that occur in at least this number of documents, or in this share of them if it is below 1.
        With `within`, the share is that of the documents with equal values.
    action : str, default "cut"
        What is done with the passages:

        - "cut": write kept/ without the removed passages.
        - "mark": write kept/ with a column `repeated`: the removed passages, in bytes of the text.
        - "list": only list them.
    cut : str, default "token"
        What a passage is cut at:

        - "token": at the first and the last token that repeat.
        - "line", "sentence": only whole lines, or sentences, are removed, listed and marked, of each passage that
          would be. A second run may find a little more then.
    drop_below : int, default 1
        A document that lost text and has fewer tokens left is dropped, unless it keeps a passage for another one.
    """

    tokens: TokensName = setting("words", f"Kind of tokens: {', '.join(KINDS)}.", metavar="KIND")
    length: int = setting(
        None, "Number of tokens of the shortest passage that counts.", metavar="N", shown=lengths(USUAL)
    )
    keep: str = setting(
        "first", "Document that keeps a passage: first, longest, COLUMN[:desc], or none of them.", metavar="RULE"
    )
    keep_copies: int = setting(1, "Number of copies to keep of each passage.", metavar="N")
    within: str | Sequence[str] = setting(
        (),
        "Compare only documents that have equal values in these columns.",
        metavar="COLUMN[,COLUMN]",
        shown="all are compared",
    )
    in_documents: int | float | None = setting(
        None,
        "Only passages that occur in at least N documents, or in a share of all documents, such as 0.3.",
        metavar="N|SHARE",
        shown="any number",
    )
    action: Action = setting(
        "cut", "Write kept/ without the repeated passages, or mark them there, or only list them.", metavar="WHAT"
    )
    cut: Cut = setting("token", "Cut passages at any token, or only whole lines or sentences.", metavar="PART")
    drop_below: int = setting(1, "Drop documents that lost text and have fewer tokens left.", metavar="N")

    def __post_init__(self) -> None:
        plain = {
            **tokens_and_length(self.tokens, self.length, USUAL),
            "keep": checked_rule(checks.text("keep", self.keep)),
            "keep_copies": checks.integer("keep_copies", self.keep_copies, 1, 2**31 - 1),
            "within": checks.listed_columns("within", self.within, none=True),
            "in_documents": checks.optional(number_or_share, "in_documents", self.in_documents, "documents"),
            "action": checks.one_of("action", self.action, ACTIONS),
            "cut": checks.one_of("cut", self.cut, CUTS),
            "drop_below": checks.integer("drop_below", self.drop_below, 1, 2**31 - 1),
        }
        vars(self).update(plain)
        if self.keep == NOTHING and self.keep_copies > 1:
            raise ParameterError("keep none and keep_copies: no copy is kept; leave one out")
        if self.tokens == "chunks" and self.action == "cut":
            raise ParameterError(
                "action 'cut' and tokens 'chunks': bytes cut out of a file leave no file that can be used; give action "
                "'list', or 'mark'"
            )
        if self.cut not in ("token", *_PARTS.get(self.tokens, CUTS)):
            raise ParameterError(f"cut {self.cut!r} and tokens {self.tokens!r}: passages end at tokens; leave cut out")


_PARTS = {"ids": (), "chunks": (), "lines": ("line",)}
"""The parts that passages can be cut at, of kinds of tokens that cannot be cut at all of them."""


def tokens_and_length(tokens: Any, length: Any, usual: int) -> dict[str, Any]:
    """Check the kind of tokens and the length of passages; if that is None, it is as much text as `usual` words."""
    tokens = checks.one_of("tokens", tokens, KINDS)
    length = KINDS[tokens].as_much_as(usual) if length is None else length
    return {"tokens": tokens, "length": checks.integer("length", length, LEAST, LONGEST)}


def number_or_share(name: str, value: Any, noun: str) -> int | float:
    """Return a number of documents or places, at least 2, or a share of all documents below 1."""
    if isinstance(value, numbers.Real) and 0 < value < 1:  # type: ignore[operator]
        return float(value)
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return checks.integer(name, whole, 2, 2**62, f"give a number of {noun}, or a share below 1")
