"""The command `neardup explain`."""

from __future__ import annotations

from typing import Annotated

from .compare import Told, ToldFlags, say_found
from .console import notes
from .options import argument, given


def explain(
    out: Annotated[str, argument("OUT", "A folder that `neardup dedup` wrote.")],
    id: Annotated[str, argument("ID", "The id of a document.")],
    /,
    *,
    told: ToldFlags = None,
) -> None:
    """Say why a document was removed: the kept one, their resemblance, and the words in which they differ."""
    from .. import explanation

    shown = Told(**given(told))
    with notes():
        found = explanation.explain(out, id, full=shown.full)
    say_found(found, explanation.render, explain, shown)
