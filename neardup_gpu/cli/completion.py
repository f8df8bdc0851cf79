"""`neardup --install-completion`: what a shell needs to complete commands and flags."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

from .. import checks
from ..errors import OutputError, ParameterError
from ..records import dataclass
from ..settings import setting
from .console import say
from .options import OUTPUT, flags, given

Shell = Literal["bash", "zsh", "fish"]
SHELLS = get_args(Shell)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """For whom."""

    shell: str | None = setting(
        None, "Shell to complete in: bash, zsh or fish.", metavar="NAME", shown="the one this runs in"
    )


CompletedFlags: Any = flags(OUTPUT, Completed)


def install(*, completed: CompletedFlags = None) -> None:
    """Install the completion of commands and flags for your shell, which reads it when it starts."""
    from cyclopts.completion.detect import ShellDetectionError

    from .app import app

    shell = checks.optional(checks.one_of, "shell", given(completed).get("shell"), SHELLS)
    try:
        path = app.install_completion(shell=cast("Shell | None", shell))
    except ShellDetectionError:
        raise ParameterError(f"shell: cannot be detected here; give one of {', '.join(SHELLS)}") from None
    except OSError as error:
        raise OutputError(f"{error.filename}: {error.strerror}; completion was not installed") from None
    say(f"written    {path}", "next       start a new shell, and press Tab after neardup")
