"""What the files of first contact share: how a step says what it finds out, and that it cannot."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOST = 75
"""Exit status of a process whose device takes no more calls."""

Items = dict[str, Callable[[], dict[str, Any]]]


class NotRun(Exception):
    """It cannot be found out here; the message says why."""


@dataclass(frozen=True)
class Settings:
    """The settings of a step.

    Parameters
    ----------
    out : Path
        Where files go.
    only : tuple of str
        The only items to do; all if it is empty.
    profiled : bool
        Whether a profiler or a sanitizer watches, which wants little.
    cpu : bool
        Whether jobs run on the CPU alone, as there is no device.
    scale : float
        Share of the usual text of `layouts` and `jobs`.
    """

    out: Path
    only: tuple[str, ...] = ()
    profiled: bool = False
    cpu: bool = False
    scale: float = 1.0


def brief(error: BaseException) -> str:
    """An exception as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}"[:400] if lines else type(error).__name__


def said_by(words: list[str], seconds: float = 20) -> str:
    """What a command prints.

    Raises
    ------
    NotRun
        If it is not there, fails or takes too long.
    """
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds)
    except OSError as error:
        raise NotRun(f"{words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NotRun(f"{words[0]} gave no answer within {seconds:.0f} s") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotRun(f"{words[0]}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return done.stdout
