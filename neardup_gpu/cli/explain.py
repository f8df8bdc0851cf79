"""The command `neardup explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ..settings import setting
from .console import notes, say, say_json, stdout
from .errors import in_flags, names_of
from .options import OUTPUT, Json, argument, flags, given


@dataclass(frozen=True, kw_only=True)
class Explained(Json):
    """How much to show."""

    full: bool = setting(False, "Show all words, including words that agree.")


ExplainedFlags: Any = flags(OUTPUT, Explained)


def explain(
    out: Annotated[str, argument("OUT", "A folder that `neardup dedup` wrote.")],
    id: Annotated[str, argument("ID", "The id of a document.")],
    /,
    *,
    written: ExplainedFlags = None,
) -> None:
    """Say why a document was removed: the kept one, their resemblance, and the words in which they differ."""
    from .. import explanation

    shown = Explained(**given(written))
    with notes():
        found = explanation.explain(out, id, full=shown.full)
    found.notes[:] = [in_flags(line, names_of(explain)) for line in found.notes]
    if shown.json:
        say_json(found.to_dict())
    else:
        place = stdout()
        say(explanation.render(found, width=place.width, colour=place.colour))
