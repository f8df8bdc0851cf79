"""The contract of tasks: functions from named files to named files, and of workers, who run them.

No task knows who runs it; workers know nothing of stages. A new place to run is a file with a `Runner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

from ..errors import ResourceError
from ..records import dataclass

ATTEMPTS = 3
"""How often a task is begun before the job gives up on it."""


class TaskFailedError(ResourceError):
    """A task failed, or its worker died, as often as it may; what other tasks made is kept for the next run."""


@dataclass(frozen=True)
class Task:
    """Some work that any worker can do, and do again.

    Parameters
    ----------
    stage : str
        Name of the stage, such as "sketch".
    number : int
        Number of the task in its stage, from 0.
    function : callable
        A function of a module, so that it can be sent to other processes by name.
    arguments : tuple
        What it is called with: plain values and dataclasses that can be pickled, small ones.
    covers : str
        What the task is of, for messages: "rows 0 to 99,999 of crawl.parquet".
    on_device : bool
        Whether it should run where a GPU is, if the workers have any.
    """

    stage: str
    number: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(default=())
    covers: str = ""
    on_device: bool = False

    def run(self) -> Any:
        """Do the work; returns what the function returns, which is small and can be pickled."""
        return self.function(*self.arguments)

    def describe(self) -> str:
        """The task as messages name it."""
        return f"task {self.number} of stage {self.stage}" + (f" ({self.covers})" if self.covers else "")


class Runner(Protocol):
    """Who runs tasks: processes of this machine, a cluster.

    A context manager; all processes are gone when it ends, also after Ctrl-C.
    """

    num_workers: int
    """How many tasks run at once."""
    one_machine: bool
    """Whether all tasks run on this machine."""

    def check_folder(self, folder: str) -> None:
        """See whether all workers read what this process writes into a folder, a path or a URI.

        Raises
        ------
        ResourceError
            If one does not: it is named.
        """

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """Run tasks that do not depend on one another; gives each with its result as it is done, in any order.

        A `NeardupError` that a task raises is the user's to mend: it is raised here at once, and no further task is
        begun. After any other error, and after the death of its worker, a task is begun again, up to `ATTEMPTS` times
        in all; where that does not help, all other tasks are finished first.

        Raises
        ------
        NeardupError
            Whatever a task raises of this kind.
        TaskFailedError
            If a task failed `ATTEMPTS` times: it names the first such task and the last error.
        """

    def __enter__(self) -> Runner: ...

    def __exit__(self, *error: object) -> None: ...
