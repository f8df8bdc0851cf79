"""The command `neardup doctor`."""

from __future__ import annotations

from .console import help_width, say, say_json
from .options import Json, JsonFlags, given


def doctor(*, written: JsonFlags = None) -> None:
    """Show what there is to know of this machine, on one screen to paste into a report of a problem.

    It never fails: what cannot be found out is said.
    """
    import textwrap

    from ..doctor import examine, in_words

    found = examine()
    if Json(**given(written)).json:
        say_json(found)
        return
    lines = []
    for label, words in in_words(found):
        shown = textwrap.wrap(words, max(40, help_width() - 12), break_long_words=False, break_on_hyphens=False)
        lines += [f"{label if i == 0 else '':12}{line}" for i, line in enumerate(shown or [""])]
    say(*lines)
