"""Define `Workers`: how a job is divided into tasks and who runs them, as an argument of `dedup` and as flags."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from .. import checks
from ..engine.memory import parse_size
from ..engine.tasks import Runner, Task
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from .warming import warm_up

if TYPE_CHECKING:
    from ..engine.settings import Engine
    from ..recipe import Recipe

RunnerName = Literal["local", "ray"]
RUNNERS = get_args(RunnerName)


@dataclass(frozen=True, kw_only=True)
class Workers:
    """The division of a job into tasks over files, and the workers that run them. Changes no result.

    Parameters
    ----------
    work_dir : path or URI, default None
        A folder that all workers can read and write. If it is given, the job runs as tasks. An interrupted job
        continues when it is started again with the same folder.
    runner : "local" or "ray", default "local"
        Who runs the tasks:

        - "local": processes of this machine.
        - "ray": a Ray cluster.
    number : int, default None
        Number of tasks that run at once. If None, it is the number of processors.
    ray_address : str, default None
        Address of the Ray cluster. If None, it is the value of RAY_ADDRESS. If that is not set, a cluster is started on
        this machine.
    slice_bytes : int or str, default None
        Amount of text of a slice, the part of the input that one task sketches, such as "1GB". If None, the
        size gives each worker two slices, but it is at least 32 MiB and at most 1 GB.
    partitions : int, default None
        Number of parts into which intermediate results are divided. If None, it is the number of slices, or one per
        128 MB of text if that is less. But there are two per worker if there are enough slices, and at least one
        per worker.
    task_memory : int or str, default "2GB"
        Maximum memory per task, not counting the interpreter and its libraries.
    spool : bool, default None
        Keep shingles in files, 8 bytes each, instead of making them again from the text. If None, they are kept if
        all tasks run on this machine, in a local folder, and all shingles together take at most half of its free memory
        and a quarter of the free disk space.
    keep_work : bool, default False
        Leave the files in the work folder when the job is done.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of range or has another type.

    Examples
    --------
    >>> Workers(work_dir="work", number=2).task_memory
    '2GB'
    """

    work_dir: str | None = setting(
        None,
        "Run as tasks over files in this folder, and continue an interrupted run.",
        metavar="DIR",
    )
    runner: RunnerName = setting("local", "Who runs tasks: local or ray.", metavar="NAME")
    number: int | None = setting(
        None, "Number of tasks that run at once.", metavar="N", flag="--workers", shown="one per processor"
    )
    ray_address: str | None = setting(
        None, "Address of the Ray cluster.", metavar="ADDRESS", shown="RAY_ADDRESS, else one on this machine"
    )
    slice_bytes: int | str | None = setting(
        None, "Amount of text that one task sketches.", metavar="SIZE", shown="two slices per worker, at most 1GB"
    )
    partitions: int | None = setting(
        None,
        "Number of parts into which intermediate results are divided.",
        metavar="N",
        shown="the number of slices, or one per 128 MB of text",
    )
    task_memory: int | str = setting("2GB", "Maximum memory per task.", metavar="SIZE")
    spool: bool | None = setting(
        None,
        "Keep shingles in files, 8 bytes each, instead of making them again from the text.",
        shown="on one machine, if they fit in half of its free memory",
    )
    keep_work: bool = setting(False, "Leave the files in the work folder when the job is done.")

    def __post_init__(self) -> None:
        checks.optional(checks.folder, "work_dir", self.work_dir)
        checks.one_of("runner", self.runner, RUNNERS)
        checks.optional(checks.integer, "number", self.number, 1)
        checks.optional(checks.text, "ray_address", self.ray_address)
        if self.slice_bytes is not None:
            parse_size(self.slice_bytes, "slice_bytes")
        checks.optional(checks.integer, "partitions", self.partitions, 1, 1 << 16)
        if parse_size(self.task_memory, "task_memory") < 16 << 20:
            raise ParameterError(f"task_memory {self.task_memory}: give at least 16MiB")
        checks.optional(checks.flag, "spool", self.spool)
        checks.flag("keep_work", self.keep_work)
        if self.ray_address is not None and self.runner != "ray":
            raise ParameterError("ray_address: is for runner='ray'; give that as well, or leave it out")

    def num_workers(self) -> int:
        """Return the number of tasks that local processes run at once.

        Returns
        -------
        int
            `number`, or the number of processors.

        Examples
        --------
        >>> Workers(number=2).num_workers()
        2
        """
        from ..engine.processors import most_threads

        return self.number or most_threads()

    def start(self, engine: Engine, recipe: Recipe | None = None) -> tuple[Runner, Engine]:
        """Return what runs tasks, and the engine for them. Each process gets its share of the processors and GPUs.

        Parameters
        ----------
        engine : Engine
            An engine whose `backend` is not None.
        recipe : Recipe, default None
            The recipe of the job, for which CPU workers load kernels in advance. If None, the default recipe.

        Returns
        -------
        runner, engine
            The runner, a context manager, and the engine for tasks.

        Raises
        ------
        NeardupError
            If the workers cannot be started.

        Examples
        --------
        >>> from neardup_gpu import Engine
        >>> Workers(number=1).start(Engine(backend="cpu", threads=1))[0].num_workers
        1
        """
        from ..engine.processors import most_threads

        if self.runner == "ray":
            from ..engine.ray import RayWorkers

            num_gpus = None if engine.backend == "gpu" else 0
            ray = RayWorkers(self.ray_address, threads=engine.threads, num_gpus=num_gpus)
            return ray, replace(engine, threads=None)
        number = self.num_workers()
        threads = engine.threads or max(1, most_threads() // number)
        if number == 1:
            from ..engine.attempts import InlineWorkers

            return InlineWorkers(), replace(engine, threads=threads)
        from ..engine.local import LocalWorkers

        first = Task("first", 0, warm_up, (recipe,)) if engine.backend == "cpu" else None
        devices = _devices(number, engine.device) if engine.backend == "gpu" else []
        local = LocalWorkers(number, threads=threads, devices=devices, first=first)
        return local, replace(engine, threads=None, device=None)

    def resolved(self, engine: Engine) -> Engine:
        """Return the engine with its backend decided. With a Ray cluster, the backend gpu needs no GPU here.

        Parameters
        ----------
        engine : Engine

        Returns
        -------
        Engine
            With a `backend`.

        Raises
        ------
        ParameterError, BackendUnavailableError
            As raised by `Engine.resolve`, or if a device of a Ray cluster is named.

        Examples
        --------
        >>> from neardup_gpu import Engine
        >>> Workers(runner="ray").resolved(Engine(backend="gpu")).backend
        'gpu'
        """
        if self.runner != "ray":
            return replace(engine, backend=engine.resolve())
        if engine.device is not None:
            raise ParameterError(f"device {engine.device}: a Ray cluster gives a GPU to each process; leave it out")
        named = engine.backend or os.environ.get("NEARDUP_BACKEND")
        return replace(engine, backend="gpu" if named == "gpu" else engine.resolve())


def _devices(most: int, device: int | None = None) -> list[str]:
    """Return the GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them: `device` alone, or at most `most`."""
    from neardup_gpu.kernels._launch import namespace, simulated

    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    named = [name.strip() for name in shown.split(",") if name.strip()]
    number = (len(named) or 1) if simulated() else namespace().cuda.runtime.getDeviceCount()
    named = named[:number] or [str(each) for each in range(number)]
    return named[:most] if device is None else named[device : device + 1]
