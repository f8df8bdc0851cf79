"""File patterns: ``*`` and ``?`` stay within a name, ``**`` is any number of folders.

As in a shell, a name that begins with a dot matches only where the pattern itself writes a name that begins with one.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

States = frozenset[int]


def is_hidden(name: str) -> bool:
    """Return whether a name begins with a dot. ``.`` and ``..``, which keys of a store may hold, are not hidden."""
    return name.startswith(".") and name not in (".", "..")


class Pattern:
    """A pattern, read from left to right along a path, name by name.

    What has been read is a set of places in the pattern: each name moves all of them on at once, so that a path is
    matched in time proportional to its length times the pattern's, however many ``**`` and ``*`` there are. (`fnmatch`
    makes expressions that never go back.) The set also says whether anything below a folder can match at all.

    Parameters
    ----------
    text : str
        Such as ``docs/**/*.md``. A last ``**`` takes everything below.
    """

    def __init__(self, text: str) -> None:
        names = [name for name in text.split("/") if name not in ("", ".")]
        if names and names[-1] == "**":
            names.append("*")
        self._steps: list[Callable[[str], object] | None] = []  # None for any number of folders
        self._writes_dot: list[bool] = []
        for name in names:
            if name == "**" and self._steps[-1:] == [None]:
                continue
            self._steps.append(None if name == "**" else re.compile(fnmatch.translate(name)).match)
            self._writes_dot.append(is_hidden(name))
        self.names = frozenset(names)
        self._end = len(self._steps)
        self.start = self._closed({0}) - {self._end}

    @property
    def is_deep(self) -> bool:
        """Whether it may match below the folder itself."""
        return self._end > 1

    def _closed(self, places: set[int]) -> States:
        """With the places after each ``**``, which may be no folder."""
        return frozenset(places | {i + 1 for i in places if i < self._end and self._steps[i] is None})

    def step(self, states: States, name: str, *, dots: bool = False) -> tuple[bool, States]:
        """Whether a path that ends with this name matches, and the states for what lies below.

        With `dots`, a name that begins with a dot is a name like any other.
        """
        moved: set[int] = set()
        only_written = is_hidden(name) and not dots
        for i in states:
            match = self._steps[i]
            if only_written and not self._writes_dot[i]:
                continue
            if match is None:
                moved.add(i)
            elif match(name):
                moved.add(i + 1)
        after = self._closed(moved)
        return self._end in after, after - {self._end}
