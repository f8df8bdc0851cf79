"""The command `neardup selftest`."""

from __future__ import annotations

from typing import Any

from ..engine.contract import Backend
from ..records import dataclass
from ..settings import setting
from .console import notes, say, say_json
from .options import RUNNING, Json, JsonFlags, flags, given


@dataclass(frozen=True, kw_only=True)
class Testing:
    """The backend and the inputs to test."""

    backend: Backend | None = setting(
        None,
        "Backend to test: gpu, cpu or reference.",
        metavar="NAME",
        flag="--engine",
        shown="gpu if there is one",
    )
    device: int | None = setting(None, "Number of the GPU to use.", metavar="N", shown="0")
    seed: int | None = setting(None, "Seed of the random inputs.", metavar="N", shown="a new one each time")


TestingFlags: Any = flags(RUNNING, Testing)


def selftest(*, testing: TestingFlags = None, written: JsonFlags = None) -> int:
    """Check every kernel against its definition on this machine, and time it. Exit status 1 on any difference."""
    from rich.console import Console

    from ..installation.selftest import conclusion, header, kernel_modules, render_row, run

    chosen, as_json = Testing(**given(testing)), Json(**given(written)).json
    with notes(stages=False), Console(stderr=True).status("") as status:

        def show(row: dict[str, Any]) -> None:
            status.stop()  # which gives back stdout
            if row["kernel"] == first:
                say(header())
            say(render_row(row))
            status.start()

        first = next(iter(kernel_modules()))
        found = run(
            chosen.backend,
            device=chosen.device,
            seed=chosen.seed,
            progress=lambda name: status.update(f"testing {name}"),
            report=None if as_json else show,
        )
    if as_json:
        say_json(found)
    else:
        say("", conclusion(found))
    return 0 if found["agrees"] else 1
