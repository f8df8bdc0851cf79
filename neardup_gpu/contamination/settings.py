"""Define the settings of a check for contamination, as flags and as keywords of `contaminated`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from .. import checks
from ..records import dataclass
from ..settings import setting

Action = Literal["list", "drop", "cut", "mark"]
ACTIONS = get_args(Action)
"""The actions on the training text; see `contaminated`."""

TokensName = Literal["words", "code"]
TOKENS = get_args(TokensName)
"""The kinds of tokens that can be looked for."""

LEAST = 5
"""The fewest tokens of an item that can be looked for."""

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
    tokens: TokensName = setting("words", "Kind of tokens: words or code.", metavar="KIND")
    length: int = setting(8, "The shortest run of tokens that counts.", metavar="N")
    share: float = setting(
        0.5, "Share of an item from which Llama 3, Tulu 3 and the longest run call it contaminated.", metavar="X"
    )
    action: Action = setting(
        "list",
        "Only list hits, or also write kept/: drop documents with hits, cut hits out, or mark them.",
        metavar="WHAT",
    )

    def __post_init__(self) -> None:
        names = checks.optional(checks.columns, "fields", self.fields)
        plain = {
            "fields": None if names is None else tuple(part for name in names for part in name.split(",") if part),
            "tokens": checks.one_of("tokens", self.tokens, TOKENS),
            "length": checks.integer("length", self.length, LEAST, LONGEST),
            "share": checks.fraction("share", self.share, zero=False),
            "action": checks.one_of("action", self.action, ACTIONS),
        }
        vars(self).update(plain)
