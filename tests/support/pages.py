"""The pages of the documentation, as tests read them.

Every block fenced as sh or python is run, in order, in a folder where `bills.parquet` lies (made_bills.py). Behind it a
block fenced as text is what it prints on standard output. Two outputs are the same if they are equal after

- each time, rate, size of memory and number of threads is taken out of both, and
- a line `...` in the page stands for any lines, also none.

What cannot be run, as it needs a cluster, a GPU or somebody's files, is fenced as console.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
GENERATED = ("reference/api/", "reference/commands/")

MEASURED = re.compile(
    r"\b\d[\d,.]*(e[-+]\d+)? ?(s|ms|µs|us|min|h|[kMG]?B/s)\b(?! of text)|\b\d+ threads?\b|(?<=seconds': )[\d.]+"
)


class Block(NamedTuple):
    """A fenced block of a page, and the text behind it that shows its output."""

    language: str
    code: str
    output: str | None
    line: int


def pages() -> list[str]:
    """The pages that people write, as paths below docs/."""
    found = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    return [name for name in found if not name.startswith(GENERATED)]


def fences(text: str) -> Iterator[tuple[str, str, int]]:
    """The language, contents and line of each fenced block."""
    for match in re.finditer(r"^(```+)([^\n]*)\n(.*?)^\1[ ]*$", text, re.DOTALL | re.MULTILINE):
        yield match[2].strip(), match[3], text.count("\n", 0, match.start()) + 1


def blocks(text: str) -> list[Block]:
    """The blocks that are run."""
    found = [*fences(text), ("", "", 0)]
    return [
        Block(language, code, after[1] if after[0] == "text" else None, line)
        for (language, code, line), after in zip(found, found[1:], strict=False)
        if language in ("sh", "python")
    ]


def unmeasured(text: str) -> str:
    """A text without what differs between two runs of the same command."""
    text = re.sub(r"^compiling +.*\n", "", text, flags=re.MULTILINE)  # in the first run of a kernel
    return re.sub(r"[ ]+$", "", MEASURED.sub("#", text), flags=re.MULTILINE).strip("\n")


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts = re.split(r"^\.\.\.$\n?", unmeasured(shown) + "\n", flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(map(re.escape, parts))
    return re.fullmatch(pattern, unmeasured(printed) + "\n") is not None
