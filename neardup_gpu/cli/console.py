"""Print results on stdout and everything else on stderr. Escape sequences in names or texts never reach the terminal.

Everything passes through `say`, `say_json` or `note`. rich takes 0.1 s to import, so it is imported where it is used.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from ..errors import ParameterError
from ..printable import encodable, printable, readable_id

if TYPE_CHECKING:
    from rich.console import Console, RenderableType, RenderResult

    from .options import Output


class Terminal(NamedTuple):
    """The abilities of stdout.

    Parameters
    ----------
    width : int
        Characters per line; 80 unless stdout is a terminal.
    colour : bool
    blocks : bool
        Whether block characters can be encoded.
    """

    width: int
    colour: bool
    blocks: bool


def _console(stream: TextIO | None) -> Console:
    from rich.console import Console

    width = None if _is_terminal(stream) else 80
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def stdout() -> Terminal:
    """Return the present abilities of stdout."""
    console = _console(sys.stdout)
    colour = console.color_system is not None and not console.no_color
    return Terminal(max(40, min(100, console.width)), colour, not console.options.ascii_only)


def help_width() -> int:
    """Return the number of characters per line of help: at least 40, so that words fit; 80 unless on a terminal."""
    if not _is_terminal(sys.stdout):
        return 80
    return max(40, min(100, shutil.get_terminal_size().columns))


class _UnfoldedLines:
    """Render parts with rich, but never cut or fold a line; strip trailing blanks and escape unprintable characters."""

    def __init__(self, *parts: RenderableType) -> None:
        self.parts = parts

    def __rich_console__(self, console: Console, options: Any) -> RenderResult:
        from rich.console import Group
        from rich.segment import Segment

        drawn = console.render(Group(*self.parts), options.update(no_wrap=True, overflow="ignore"))
        for line in Segment.split_lines(drawn):
            length = len("".join(segment.text for segment in line).rstrip())
            for text, style, _ in line:
                yield Segment(encodable(printable(text[: max(0, length)]), console.encoding), style)
                length -= len(text)
            yield Segment.line()


def say(*parts: RenderableType) -> None:
    """Print plain strings and rich's renderables on stdout, where they are seen at once, also through a pipe."""
    plain = [part for part in parts if isinstance(part, str)]
    if len(plain) == len(parts):
        text = "\n".join(line.rstrip(" ") for line in printable("\n".join(plain), lines=True).split("\n"))
        print(encodable(text, getattr(sys.stdout, "encoding", None)), flush=True)
        return
    from rich.text import Text

    console = _console(sys.stdout)
    drawable = [Text(printable(part, lines=True)) if isinstance(part, str) else part for part in parts]
    with console.capture() as drawn:
        console.print(_UnfoldedLines(*drawable), soft_wrap=True)
    print(drawn.get(), end="", flush=True)


def say_json(value: Any) -> None:
    """Print a line of JSON on stdout; characters that are not printable are escaped as in JSON."""
    text = printable(json.dumps(value, ensure_ascii=False, default=readable_id), lines=True, escape=_json)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, default=readable_id)
    print(text)


def _json(character: str) -> str:
    """Return a character as a JSON escape; `json` itself does not escape DEL."""
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else json.dumps(character)[1:-1]


def say_written(
    found: dict[str, Any],
    rows: list[tuple[str, str]] | None,
    shown: Output,
    following: str,
    broken: Sequence[str] | None = None,
) -> int:
    """Print on stdout what a command has written, and return its exit status.

    Parameters
    ----------
    found : dict
        Counts and timings.
    rows : list of (label, text), or None
        The lines to print; a line for each count if None.
    shown : Output
        The output, and the way to print.
    following : str
        The command to run next.
    broken : sequence of str, default None
        A sentence for each limit of `--fail-over` that was exceeded; None if the command has no limits.
    """
    from ..results.fail_over import FAILED

    output, limited = shown.output, {} if broken is None else {"exceeded": list(broken)}
    if shown.json:
        say_json({"status": "failed" if broken else "done", "output": output, **limited, **found})
    elif not shown.quiet:
        from ..report import row, size, times

        if rows is None:
            numbers = {name.replace("_", " "): value for name, value in found.items() if isinstance(value, int)}
            rows = [(name, size(value) if name == "text bytes" else f"{value:,}") for name, value in numbers.items()]
        timed = times(found["timings"], None, found.get("text_bytes")) if "timings" in found else []
        every = (*rows, *timed, ("written", str(output)), ("next", following))
        say(*(row(label, text, 12) for label, text in (*every, *(("failed", line) for line in broken or ()))))
    return FAILED if broken else 0


def padded_lines(rows: list[list[str]], widths: list[int] | None = None) -> str:
    """Return rows of cells as lines in which the cells of a column begin below one another.

    Parameters
    ----------
    rows : list of list of str
    widths : list of int, default None
        The width of each column. If None, it is that of the widest cell.
    """
    from rich.cells import cell_len

    widths = widths_of(rows) if widths is None else widths
    lines = ([cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join(map("  ".join, lines))


def widths_of(rows: list[list[str]]) -> list[int]:
    """Return the width of each column of some rows, at least one."""
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


_as_json = False
"""Whether lines on stderr are JSON, one object per line."""


def log_as_json(whether: bool) -> None:
    """Write lines on stderr as JSON from now on, or as text."""
    global _as_json
    _as_json = whether


def note(message: str, level: str = "error", **facts: Any) -> None:
    """Print one line on stderr. A closed or full stderr is ignored."""
    if sys.stderr is not None:
        line = _as_object(message, level, facts) if _as_json else encodable(_line(message), sys.stderr.encoding)
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


def note_bug(error: Exception) -> None:
    """Print the traceback of an unexpected error on stderr."""
    import traceback

    mistake = "neardup: this is a mistake in neardup itself, not in what it was given; please report"
    if _as_json:
        note(f"{mistake} this traceback", traceback="".join(traceback.format_exception(error)))
    else:
        traceback.print_exception(error)
        note(f"{mistake} the lines above")


def _line(message: str) -> str:
    return printable(" ".join(message.split()))


def _as_object(message: str, level: str, facts: dict[str, Any]) -> str:
    from datetime import UTC, datetime

    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    usual = dict.fromkeys(("stage", "done", "total", "rate"))
    return json.dumps({"time": now, "level": level, **usual, **facts, "message": _line(message)}, default=readable_id)


@contextlib.contextmanager
def notes(*, quiet: bool = False, stages: bool = True) -> Iterator[None]:
    """Print the library's log on stderr, one line per record. Progress is left out unless `stages` is true.

    With `quiet`, only warnings marked `once` are printed: that this machine would make every run slow, and that a first
    document was taken for a header.
    """
    import logging

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if quiet:
                is_shown = getattr(record, "once", False) and record.levelno >= logging.WARNING
            else:
                is_shown = stages or not record.name.endswith(".progress")
            if is_shown:
                note(record.getMessage(), record.levelname.lower(), **getattr(record, "progress", {}))

    log, handler = logging.getLogger("neardup_gpu"), Notes()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextlib.contextmanager
def shown_progress(shown: Output) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """Show progress and the library's log. Yield a callback that draws bars on a terminal, else None.

    Without a terminal, the log has one line or JSON object per stage.
    """
    log_as_json(shown.log_json)
    if shown.quiet:
        if shown.log_json:
            raise ParameterError("quiet and log_json: one asks for no progress, the other for all of it; leave one out")
        with notes(quiet=True):
            yield None
        return
    console = None if shown.log_json or not _is_terminal(sys.stderr) else _console(sys.stderr)
    with contextlib.ExitStack() as stack:
        draw = None
        if console is not None and console.is_interactive:
            from ..engine.bars import bars

            stack.enter_context(notes(stages=False))
            draw = stack.enter_context(bars(console, transient=True))
        else:
            stack.enter_context(notes())
        yield draw
