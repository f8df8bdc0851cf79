"""The command `neardup explain`."""

from __future__ import annotations

from typing import Annotated, Any

from ..records import dataclass
from ..settings import setting
from .compare import Told, say_found
from .console import notes
from .options import OUTPUT, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class Shown(Told):
    """How the difference is shown."""

    vocabulary: str | None = setting(None, "A tokenizer.json: show its words in place of token ids.", metavar="FILE")


ShownFlags: Any = flags(OUTPUT, Shown)


def explain(
    out: Annotated[str, argument("OUT", "A folder that `neardup dedup` wrote.")],
    id: Annotated[str, argument("ID", "The id of a document.")],
    /,
    *,
    told: ShownFlags = None,
) -> None:
    """Say why a document was removed: the kept one, their resemblance, and the words in which they differ."""
    from ..results import explanation

    shown = Shown(**given(told))
    with notes():
        found = explanation.explain(out, id, full=shown.full, vocabulary=shown.vocabulary)
    say_found(found, explanation.render, explain, shown)
