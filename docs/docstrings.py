"""Docstrings are plain text with sections, names in backquotes and examples; all else that looks like markup is none."""

import re
from collections.abc import Iterator

QUOTED = re.compile(r"(``?[^`]+``?)")


def escaped(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring as reStructuredText: |A n B| and x**s are said as they are, formulas set in stay lines.

    A formula is a paragraph that is set in by four columns more than the one before it, outside of lists of parameters.
    """
    example = formula = False
    before = ""  # the last line that is not blank
    section = False
    for number, line in enumerate(lines):
        stripped = line.lstrip()
        depth = len(line) - len(stripped)
        if not stripped:
            example = False
            yield line
            continue
        section |= set(stripped) == {"-"} and number > 0
        opens = number > 0 and not lines[number - 1].strip()
        if stripped.startswith(">>>"):
            example = True
        if formula and depth == 0:
            formula = False
        if not section and not formula and opens and depth >= 4 and not example:
            formula = True
            yield from ("::", "")
        yield line if example or formula else _plain(line)
        before = line


def _plain(line: str) -> str:
    parts = QUOTED.split(line)
    return "".join(part if at % 2 else re.sub(r"([|*\\]|_(?!\w))", r"\\\1", part) for at, part in enumerate(parts))
