"""Limits by which a command fails: `--fail-over NAME=N` or `NAME=SHARE`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import ParameterError
from ..report import percent

FAILED = 3
"""The exit status of a command that ended well and found more than `--fail-over` allows."""


class CountedShare(NamedTuple):
    """A number, and the share that goes with it: `part` of `of`."""

    number: int
    part: int
    of: int


class WithCounts:
    """A result that has a report, as `report`."""

    report: dict[str, Any]

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(f"<p>{escape(line)}</p>" for line in self._sentences())

    def _sentences(self) -> list[str]:
        """Return what notebooks show of the result."""
        return [repr(self)]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the report by their names: of documents, and of what was looked for in them."""
        return self.report["counts"]


class Limit(NamedTuple):
    """The largest number, or the largest share, that does not fail."""

    name: str
    number: int | None
    share: float | None

    def exceeded_by(self, found: CountedShare) -> str | None:
        """Return a sentence if the limit is exceeded, else None."""
        share = found.part / found.of if found.of else 0.0
        if self.number is not None and found.number > self.number:
            return f"{self.name}: {found.number:,}, more than {self.number:,}"
        if self.share is not None and share > self.share:
            return f"{self.name}: {found.part:,} of {found.of:,} ({percent(share)}), more than {self.share:.6g}"
        return None


def limits_of(words: Iterable[str], names: Iterable[str]) -> list[Limit]:
    """Return the limits that words such as "lost=0", "lost=0.01" or "missed=1%" give.

    A whole number is a number. A number with a decimal point or a percent sign is a share.

    >>> limits_of(["lost=3", "missed=0.5%"], ["lost", "missed"])
    [Limit(name='lost', number=3, share=None), Limit(name='missed', number=None, share=0.005)]

    Raises
    ------
    ParameterError
        If a word is not a limit, or names nothing that is counted.
    """
    known, found = tuple(names), []
    for word in words:
        name, _, value = word.partition("=")
        if name not in known:
            raise ParameterError(f"fail_over {word!r}: there is no count {name!r}; it is one of {', '.join(known)}")
        if re.fullmatch(r"\d+", value):
            found.append(Limit(name, int(value), None))
            continue
        plain = re.fullmatch(r"(\d*\.\d+|\d+\.?|\d+(?:\.\d*)?(?=%))(%?)", value)
        share = float(plain[1]) / (100 if plain[2] else 1) if plain else 2.0
        if share > 1:
            raise ParameterError(
                f"fail_over {word!r}: give a whole number, or a share from 0.0 to 1.0, such as {name}=0 or {name}=0.5%"
            )
        found.append(Limit(name, None, share))
    return found


def of_rows(counts: Mapping[str, int]) -> dict[str, CountedShare]:
    """Return what can be limited among the counts of a report: skipped rows and, if documents are removed, those.

    >>> of_rows({"documents": 8, "kept": 6, "removed": 2, "skipped": 2})
    {'skipped': CountedShare(number=2, part=2, of=10), 'removed': CountedShare(number=2, part=2, of=8)}
    """
    skipped = counts.get("skipped", 0)
    found = {"skipped": CountedShare(skipped, skipped, counts["documents"] + skipped)}
    if "removed" in counts:
        removed = counts["removed"]
        found["removed"] = CountedShare(removed, removed, counts["kept"] + removed)
    return found


def exceeded(limits: Iterable[Limit], counts: Mapping[str, CountedShare]) -> list[str]:
    """Return a sentence for each limit that the counts exceed."""
    return [line for limit in limits if (line := limit.exceeded_by(counts[limit.name])) is not None]
