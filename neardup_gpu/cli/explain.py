"""The command `neardup explain`."""

from __future__ import annotations

from pathlib import Path
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
    out: Annotated[str, argument("OUT", "A folder that `neardup dedup` or `neardup substrings` wrote.")],
    id: Annotated[str, argument("ID", "The id of a document.")],
    /,
    *,
    told: ShownFlags = None,
) -> None:
    """Say why a document was removed: the kept one, their resemblance, and the words in which they differ.

    Of repeated passages: which ones a document lost, and where each stands now.
    """
    from ..errors import ParameterError
    from ..store.artefacts import SUBSTRINGS, report_name

    shown = Shown(**given(told))
    if report_name(Path(out)) == SUBSTRINGS:
        from ..repeated_passages import explaining

        if shown.vocabulary is not None:
            raise ParameterError(f"vocabulary: the tokens of {out} are not integers; leave it out")
        lost = explaining.explain_passages(out, id, full=shown.full)
        say_found(lost, explaining.render, explain, shown)
        return
    from ..results import explanation

    with notes():
        found = explanation.explain(out, id, full=shown.full, vocabulary=shown.vocabulary)
    say_found(found, explanation.render, explain, shown)
