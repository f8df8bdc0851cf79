"""Define the errors of this package, as one tree.

NeardupError
├── InputError                a document source cannot be used: a file, a column, a line, an id
│   └── DamagedError          a file that this project wrote no longer holds what was written
├── OutputError               the result cannot be written to the given place
├── ParameterError            a setting or an argument is impossible: a threshold of 1.5
├── ArgumentTypeError         an argument is of the wrong type: a list where an array is expected
├── RecipeMismatchError       artefacts made by different recipes were combined
├── ResourceError             this machine lacks what the job needs: memory, threads, rows below 2**32
└── BackendUnavailableError   the requested backend cannot run on this machine

Every message is one line. It names the file, column or value and says what to do next. The command line prints it and
exits with status 2. Each class also inherits from the built-in error that fits, so that `except ValueError` works.
"""

import errno
import re
from typing import ClassVar

from .printable import printable

__all__ = [
    "ArgumentTypeError",
    "BackendUnavailableError",
    "DamagedError",
    "InputError",
    "NeardupError",
    "OutputError",
    "ParameterError",
    "RecipeMismatchError",
    "ResourceError",
]


def __dir__() -> list[str]:
    return __all__


class NeardupError(Exception):
    """Root of every error that this package raises on purpose.

    As text it is one printable line, whatever names and values it repeats. It keeps its fields when it is pickled.

    Parameters
    ----------
    message : str
    parameter : str, default None
        Name of the wrong argument, setting or environment variable. If None, a ParameterError or an ArgumentTypeError
        takes the name at the beginning of its message.
    path : str, default None
        File, folder or URI that cannot be used, as the message names it. If None, other errors take the words before
        the first colon, if the message begins with a path.
    row : int, default None
        Row that cannot be read, counted from 1. In JSON lines it is the line, in WARC the record.

    Examples
    --------
    >>> error = InputError("a.jsonl line 3: is not valid JSON; mend the line", path="a.jsonl", row=3)
    >>> error.path, error.row, error.parameter, error.hint
    ('a.jsonl', 3, None, 'mend the line')
    """

    _BEGINNING: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Matches the beginning of a message of this class: the parameter or the path that it is about."""

    def __init__(
        self, message: str = "", *, parameter: str | None = None, path: str | None = None, row: int | None = None
    ) -> None:
        super().__init__(message)
        self.parameter, self.path, self.row = parameter, path, row
        if parameter is None and path is None and (named := self._BEGINNING.match(message)):
            self.parameter, self.path = named.groupdict().get("parameter"), named.groupdict().get("path")

    @property
    def hint(self) -> str | None:
        """Advice on what to do next: the message after its first semicolon, or None if it has none."""
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
    """A document source cannot be used as the arguments require."""

    _BEGINNING = _PATH


class DamagedError(InputError):
    """A file that this package wrote has changed since: its checksum or its length differs."""


class OutputError(NeardupError, OSError):
    """A result cannot be written to the given place."""

    _BEGINNING = _PATH


class ParameterError(NeardupError, ValueError):
    """A setting is outside its range or contradicts another setting."""

    _BEGINNING = _PARAMETER


class ArgumentTypeError(NeardupError, TypeError):
    """An argument is of a type that the function does not take."""

    _BEGINNING = _PARAMETER


class RecipeMismatchError(NeardupError, ValueError):
    """Artefacts of different recipes cannot be combined."""

    _BEGINNING = _PATH


class ResourceError(NeardupError, RuntimeError):
    """The machine, or a limit of this package, has too little memory, or too few threads or row numbers."""


class BackendUnavailableError(NeardupError, RuntimeError):
    """The requested backend cannot run on this machine."""


def want(error: BaseException) -> str | None:
    """Return a message of one line if an error means a lack of memory, threads or open files; None for other errors.

    The cause of the error counts as well.
    """
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


def raise_want(error: BaseException, path: str | None = None) -> None:
    """Raise ResourceError if an error means a lack of memory, threads or open files."""
    if wanting := want(error):
        raise ResourceError(wanting, path=path) from error


_NO_MEMORY = re.compile("annot allocate memory|failed to map segment")
_NO_THREAD = re.compile("can't start new thread|Failed to launch worker thread")  # Python's, Arrow's


def too_few_threads(number: str) -> str:
    """Return the message of one line for the error that no more threads can be started."""
    return (
        f"{number} threads can be started; raise the limit of processes (ulimit -u) or of memory (ulimit -v), or ask "
        "for fewer with threads=... or the environment variable NUMBA_NUM_THREADS"
    )
