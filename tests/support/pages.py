"""The pages of the documentation, as tests read them.

Every block fenced as sh or python is run, in order, in a folder where `bills.parquet` lies (made_bills.py). Behind it a
block fenced as text is what it prints on standard output. Two outputs are the same if they are equal after

- each time, rate, size in bytes and number of threads is taken out of both, and
- a line `...` in the page stands for any lines, also none.

What cannot be run, as it needs a cluster, a GPU or somebody's files, is fenced as console.

After a change of outputs `python tests/support/pages.py docs/how_to/ci.md ...` runs pages, and puts what is printed
into the blocks of text that do not agree with it.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from neardup_gpu.demo.made_bills import write_bills

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
GENERATED = ("reference/api/", "reference/commands/")

MEASURED = re.compile(r"\b\d[\d,.]*(e[-+]\d+)? ?(s|ms|µs|us|min|h|[kMG]?B/s)\b|\b\d[\d,]* bytes\b|\b\d+ threads?\b")


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
    text = re.sub(r"^time +.*$", "time", text, flags=re.MULTILINE)  # short ones have no rate
    return re.sub(r"[ ]+$", "", MEASURED.sub("#", text), flags=re.MULTILINE).strip("\n")


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts = re.split(r"^\.\.\.$\n?", unmeasured(shown) + "\n", flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(map(re.escape, parts))
    return re.fullmatch(pattern, unmeasured(printed) + "\n") is not None


def without_fences(text: str) -> str:
    return re.sub(r"^(```+).*?^\1[ ]*$", "", text, flags=re.DOTALL | re.MULTILINE)


_RUN = """
import os, sys
sys.path.insert(0, "{}")
for name in ("COLUMNS", "FORCE_COLOR"):
    os.environ.pop(name, None)
import run_page
run_page.main(*{})
"""


@cache
def _server() -> Any:
    """Return the process that each page's process is forked from, which saves its imports."""
    from faults import judge  # not on Windows

    return judge._ForkServer()


def run_blocks(asked: list[Block], scratch: Path) -> list[tuple[Block, tuple[int, str, str]]]:
    """Run the blocks of a page; of each the exit status, the standard output, and the errors of the whole page."""
    folder = scratch / "page"
    folder.mkdir()
    write_bills(folder / "bills.parquet")
    for name, module in (("neardup", "-m neardup_gpu"), ("python", ""), ("python3", "")):
        (scratch / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (scratch / name).chmod(0o755)
    (scratch / "blocks.json").write_text(json.dumps([(block.language, block.code) for block in asked]))
    environment = {
        "PATH": f"{scratch}{os.pathsep}{os.environ['PATH']}",
        "NEARDUP_BACKEND": "cpu",
        "MPLBACKEND": "agg",
    }
    files = [str(scratch / "blocks.json"), str(scratch / "outcomes.json")]
    done = _server().run(folder, _RUN.format(Path(__file__).parent, files), {"environment": environment})
    if done.status:
        raise RuntimeError(done.errors)
    outcomes = json.loads((scratch / "outcomes.json").read_text())
    return [(block, (*outcome, done.errors)) for block, outcome in zip(asked, outcomes, strict=False)]


def update(page: Path) -> None:
    """Put what is printed into the blocks of text of a page that show something else."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as scratch:
        for block, (status, printed, complaints) in run_blocks(blocks(text), Path(scratch)):
            if status:
                print(f"{page}:{block.line} ends with {status}\n{printed}{complaints}", file=sys.stderr)
                break
            if block.output is not None and not agrees(block.output, printed):
                start = text.index(block.code) + len(block.code)
                at = text.index("```text\n", start) + len("```text\n")
                text = text[:at] + printed.rstrip("\n") + "\n" + text[at + len(block.output) :]
    page.write_text(text)


if __name__ == "__main__":
    sys.path.append(str(REPOSITORY / "tests"))
    for name in sys.argv[1:]:
        update(Path(name))
