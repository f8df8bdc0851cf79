"""Define the settings of a search for shared passages, as flags and as keywords of `passages`."""

from __future__ import annotations

from collections.abc import Sequence

from .. import checks
from ..records import dataclass
from ..repeated_passages.settings import LONGEST, number_or_share, tokens_and_length
from ..settings import setting
from ..text.token_kinds import KINDS, TokensName, lengths

USUAL = 20
"""The `length` if none is given, in words."""


@dataclass(frozen=True, kw_only=True)
class PassageSettings:
    """Settings of a search for shared passages.

    Parameters
    ----------
    tokens : str, default "words"
        What a token is: "words", "letters", "lines", "code", "ids" or "chunks"; see `Shingles`. Places of "ids" count
        integers of the list, in place of bytes.
    length : int, default None
        The shortest run of equal tokens that counts. If None, it is 100 letters, 2 lines, 2 chunks, or 20 tokens of
        another kind.
    gap : int, default 10
        Runs that two documents share are joined to one passage if at most this number of tokens lies between them in
        each document. 0 joins only runs that touch.
    within : str or sequence of str, default ()
        Columns. Only documents with equal values are compared; null equals nothing.
    date : str, default None
        A column of dates, numbers, or text such as "2026-11-26". Of two documents, the earlier one is the source.
    max_partners : int, default 64
        The number of sources whose passages are listed per document: those that share the most tokens with it.
        Coverage and the table of `by` count all sources.
    ignore_common : int or float, default 1000
        A run of `length` tokens that stands at more than this number of places is common; below 1, it is a share of
        all documents. Passages that consist of common runs alone are not listed; their tokens are counted.
    """

    tokens: TokensName = setting("words", f"Kind of tokens: {', '.join(KINDS)}.", metavar="KIND")
    length: int = setting(None, "Number of tokens of the shortest run that counts.", metavar="N", shown=lengths(USUAL))
    gap: int = setting(10, "Join runs with at most N tokens between them, in both documents.", metavar="N")
    within: str | Sequence[str] = setting(
        (),
        "Compare only documents that have equal values in these columns.",
        metavar="COLUMN[,COLUMN]",
        shown="all are compared",
    )
    date: str | None = setting(
        None, "Column of dates: the earlier one of two documents is the source.", metavar="COLUMN"
    )
    max_partners: int = setting(64, "Number of sources to list per document.", metavar="N")
    ignore_common: int | float = setting(
        1000, "Do not list passages whose runs all stand at more than N places, or a share.", metavar="N|SHARE"
    )

    def __post_init__(self) -> None:
        plain = {
            **tokens_and_length(self.tokens, self.length, USUAL),
            "gap": checks.integer("gap", self.gap, 0, LONGEST),
            "within": checks.listed_columns("within", self.within, none=True),
            "date": checks.optional(checks.text, "date", self.date),
            "max_partners": checks.integer("max_partners", self.max_partners, 1, 2**31 - 1),
            "ignore_common": number_or_share("ignore_common", self.ignore_common, "places"),
        }
        vars(self).update(plain)

    def most_places(self, num_documents: int) -> int:
        """Return the most places of a run of `length` tokens that is not common, at least 2.

        >>> PassageSettings(ignore_common=0.01).most_places(500)
        5
        """
        most = self.ignore_common
        return max(2, int(most if isinstance(most, int) else most * num_documents))
