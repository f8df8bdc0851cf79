"""What can go wrong, as one tree.

NeardupError
├── InputError                a document source cannot be used: a file, a column, a line, an id
│   └── DamagedError          a file that this project wrote no longer holds what was written
├── OutputError               the result cannot be written where it was asked for
├── ParameterError            a setting or an argument is impossible: a threshold of 1.5
├── ArgumentTypeError         an argument is of the wrong type: a list where an array is expected
├── RecipeMismatchError       artefacts made by different recipes were brought together
├── ResourceError             this machine lacks what the job needs: memory, threads, rows below 2**32
└── BackendUnavailableError   the backend that was asked for by name does not run here

Every message is one line: it names the file, column or value and says what to do next. The command line prints it and
exits with status 2. Each class is also the built-in error that fits, so that `except ValueError` works as expected.
"""

import errno
import re
from typing import ClassVar

from .printable import printable


class NeardupError(Exception):
    """Root of every error that this package raises on purpose.

    As text it is one printable line, whatever names and values it repeats. Its fields go with it to other processes.

    Parameters
    ----------
    message : str
    parameter : str, default None
        Name of the wrong argument, setting or environment variable. Unless given, of a ParameterError or an
        ArgumentTypeError the name that the message begins with.
    path : str, default None
        File, folder or URI that cannot be used, as the message names it. Unless given, what stands before the first
        colon of other errors that begin with it.
    row : int, default None
        Row that cannot be read, counted from 1. In JSON lines it is the line, in WARC the record.

    Examples
    --------
    >>> error = InputError("a.jsonl line 3: is not valid JSON; mend the line", path="a.jsonl", row=3)
    >>> error.path, error.row, error.parameter, error.hint
    ('a.jsonl', 3, None, 'mend the line')
    """

    _BEGINNING: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """What a message of this kind begins with: what it is about."""

    def __init__(
        self, message: str = "", *, parameter: str | None = None, path: str | None = None, row: int | None = None
    ) -> None:
        super().__init__(message)
        self.parameter, self.path, self.row = parameter, path, row
        if parameter is None and path is None and (named := self._BEGINNING.match(message)):
            self.parameter, self.path = named.groupdict().get("parameter"), named.groupdict().get("path")

    @property
    def hint(self) -> str | None:
        """What to do next: the end of the message, from its first semicolon on. None if the message does not say it."""
        return str(self).partition("; ")[2].removesuffix(".") or None

    def __str__(self) -> str:
        return printable(super().__str__())


_PARAMETER = re.compile(
    r"(?:--)?(?P<parameter>[A-Za-z_][\w-]*)(?:(?:,| and|,? or) \w+)*(?: [^:]{0,200})?(?::(?!//)| must )"
)
_PATH = re.compile(
    r"(?!column |id |ids |keep |threshold |backend |the |no |its |a |an )(?P<path>[^'\"]+?)(?: line [\d,]+)?: "
)


class InputError(NeardupError, ValueError):
    """A document source cannot be used as asked."""

    _BEGINNING = _PATH


class DamagedError(InputError):
    """A file that this package wrote has changed since: a checksum or a length is not what it was."""


class OutputError(NeardupError, OSError):
    """A result cannot be written where it was asked for."""

    _BEGINNING = _PATH


class ParameterError(NeardupError, ValueError):
    """A setting is outside its range or contradicts another."""

    _BEGINNING = _PARAMETER


class ArgumentTypeError(NeardupError, TypeError):
    """An argument is of a type that the function does not take."""

    _BEGINNING = _PARAMETER


class RecipeMismatchError(NeardupError, ValueError):
    """Artefacts of different recipes cannot be combined."""

    _BEGINNING = _PATH


class ResourceError(NeardupError, RuntimeError):
    """The machine, or a limit of this package, has too little of something: memory, threads, row numbers."""


class BackendUnavailableError(NeardupError, RuntimeError):
    """A backend that was asked for by name cannot run on this machine."""


def want(error: BaseException) -> str | None:
    """One line for an error for want of memory, threads or open files, or caused by one; None for all other errors."""
    lines = str(error).splitlines()
    loading = [line for line in lines if isinstance(error, (ImportError, OSError)) and _NO_MEMORY.search(line)]
    if isinstance(error, MemoryError) or loading:
        what = (loading or lines or [""])[0].strip()
        return (
            f"memory does not suffice{f' ({what})' if what else ''}; use a machine or a limit (ulimit -v) with more, "
            "or give fewer documents at a time"
        )
    if any(map(_NO_THREAD.search, lines)):
        return too_few_threads("no more")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open; raise the limit (ulimit -n)"
    before = error.__cause__ or error.__context__
    return None if before is None else want(before)


_NO_MEMORY = re.compile("annot allocate memory|failed to map segment")
_NO_THREAD = re.compile("can't start new thread|Failed to launch worker thread")  # Python's, Arrow's


def too_few_threads(number: str) -> str:
    """One line for the error that no more threads can be started."""
    return (
        f"{number} threads can be started; raise the limit of processes (ulimit -u) or of memory (ulimit -v), or ask "
        "for fewer with threads=... or the environment variable NUMBA_NUM_THREADS"
    )
