"""Define the settings of a check for contamination, as flags and as keywords of `contaminated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from .. import checks
from ..records import dataclass
from ..settings import setting
from ..text.token_kinds import KINDS, TokensName, lengths

Action = Literal["list", "drop", "cut", "mark"]
ACTIONS = get_args(Action)
"""The actions on the training text; see `contaminated`."""

TOKENS = [name for name in KINDS if name != "chunks"]
"""The kinds of tokens that can be looked for. Items are not files of bytes."""

LEAST, USUAL = 5, 8
"""The fewest words of an item that can be looked for, and the `length` if none is given, in words."""

LONGEST = 64
"""The largest `length`."""


@dataclass(frozen=True, kw_only=True)
class ContaminationSettings:
    """Settings of a check for contamination.

    Its fields are parameters of `contaminated`, which describes them.
    """

    fields: str | Sequence[str] | None = setting(
        None, "Field of the evaluation sets to look for; may be repeated, or a,b,c.", metavar="NAME", shown="all text"
    )
    tokens: TokensName = setting("words", f"Kind of tokens: {', '.join(TOKENS)}.", metavar="KIND")
    length: int = setting(
        None, "The shortest run of tokens that counts.", metavar="N", shown=lengths(USUAL, but=("chunks",))
    )
    within: str | Sequence[str] = setting(
        (),
        "Compare documents only with items that have equal values in these columns.",
        metavar="COLUMN[,COLUMN]",
        shown="all are compared",
    )
    share: float = setting(
        0.5, "Share of an item from which Llama 3, Tulu 3 and the longest run call it contaminated.", metavar="X"
    )
    action: Action = setting(
        "list",
        "Only list hits, or also write kept/: drop documents with hits, cut hits out, or mark them.",
        metavar="WHAT",
    )

    def __post_init__(self) -> None:
        tokens = checks.one_of("tokens", self.tokens, TOKENS)
        kind = KINDS[tokens]
        length = kind.as_much_as(USUAL) if self.length is None else self.length
        plain = {
            "fields": checks.optional(checks.listed_columns, "fields", self.fields),
            "tokens": tokens,
            "length": checks.integer("length", length, kind.as_much_as(LEAST), LONGEST),
            "within": checks.listed_columns("within", self.within, none=True),
            "share": checks.fraction("share", self.share, zero=False, hint="0.5 is usual"),
            "action": checks.one_of("action", self.action, ACTIONS),
        }
        vars(self).update(plain)

    @property
    def least(self) -> int:
        """The fewest tokens of an item that can be looked for."""
        return KINDS[self.tokens].as_much_as(LEAST)
