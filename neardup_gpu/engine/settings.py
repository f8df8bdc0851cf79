"""Define `Engine`: what a job computes with, as an argument of jobs and as flags. `Engine.start` gives a `Runtime`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, get_args

from .. import checks
from ..log import log
from ..records import dataclass
from ..report import size
from ..settings import setting
from .contract import BACKENDS, Backend, Runtime
from .heap import kept
from .memory import parse_size

EngineName = Literal["auto", "reference", "cpu", "gpu"]
"""The names that jobs take for an `Engine`."""

ENGINES = get_args(EngineName)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The backend, device, threads and limits of a job. They change no result.

    Parameters
    ----------
    backend : "reference", "cpu" or "gpu", default None
        The backend to run on. If None, it is the value of NEARDUP_BACKEND. If that is not set, it is "gpu" if there is
        a usable GPU, else "cpu"; `dedup` and `sketch` then use the GPU for at least 1 GB of text.
    device : int, default None
        Number of the GPU, among the GPUs that CUDA_VISIBLE_DEVICES shows. If None, it is CuPy's current one.
    gpu_memory : int or str, default None
        Bytes of GPU memory to use, or a size such as "20GB". If None, it is four fifths of the free memory.
    threads : int, default None
        Number of processors to use; for a job of tasks, by each task. If None, all are used, or each task gets an equal
        share.
    temp_dir : path, default None
        Folder for temporary files: shingles that wait for verification, 8 bytes each, in `dedup`, tokens or shingles
        that wait for document frequencies in `sketch`, and arrays beyond a bound of memory in `substrings` and
        `passages`. If None, it is next to the output, or the system's temporary folder if there is no output. With a
        GPU they wait in its memory, as far as they fit there. Jobs that write no temporary files do not use it.
    batch_bytes : int, default None
        Bytes of text that `dedup` reads at a time. If None, it is 4 MiB; with a GPU, the most that fits its memory, up
        to 256 MiB.
    max_comparisons : int, default None
        End `dedup` with an error after this number of comparisons of two documents that share a shingle. None sets no
        limit. It has no effect if nothing is verified, nor on weighted shingles, which are not joined. Excludes a bound
        of memory.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of range or has another type.

    Examples
    --------
    >>> Engine(backend="cpu", threads=4).threads
    4
    """

    backend: Backend | None = setting(
        None,
        "Backend to run on: reference, cpu or gpu.",
        metavar="NAME",
        flag="--engine",
        shown="gpu if there is one",
    )
    device: int | None = setting(None, "Number of the GPU, counted from 0.", metavar="N", shown="the current one")
    gpu_memory: int | str | None = setting(
        None, "GPU memory to use, such as 20GB.", metavar="SIZE", shown="80% of the free memory"
    )
    threads: int | None = setting(None, "Number of processors to use.", metavar="N", shown="all")
    temp_dir: str | None = setting(None, "Folder for temporary files.", metavar="DIR", shown="next to the output")
    batch_bytes: int | None = setting(None, "Bytes of text to read at a time.", flag="")
    max_comparisons: int | None = setting(
        None, "End with an error after N comparisons of documents that share a shingle.", metavar="N"
    )

    def __post_init__(self) -> None:
        checks.optional(checks.one_of, "backend", self.backend, BACKENDS)
        device = checks.optional(checks.integer, "device", self.device, 0, hint="devices are counted from 0")
        threads = checks.optional(checks.integer, "threads", self.threads, 1)
        if self.gpu_memory is not None:
            parse_size(self.gpu_memory, "gpu_memory")
        plain = {
            "device": device,
            "threads": threads,
            "temp_dir": checks.optional(checks.folder, "temp_dir", self.temp_dir),
            "batch_bytes": checks.optional(checks.integer, "batch_bytes", self.batch_bytes, 1),
            "max_comparisons": checks.optional(checks.integer, "max_comparisons", self.max_comparisons, 1),
        }
        vars(self).update(plain)

    def resolve(self) -> Backend:
        """Return the name of the backend that jobs run on.

        Returns
        -------
        str
            "reference", "cpu" or "gpu".

        Raises
        ------
        ParameterError
            If the other settings are not for that backend.
        BackendUnavailableError
            If the requested backend cannot run on this machine.

        Examples
        --------
        >>> Engine(backend="cpu").resolve()
        'cpu'
        """
        from .choice import resolve

        return resolve(self.backend, self.device, self.gpu_memory)

    @contextlib.contextmanager
    def start(self) -> Iterator[Runtime]:
        """Run a job in the block, alone in this process, on the given number of threads.

        Yields
        ------
        Runtime
            The object that runs the work of the block.

        Raises
        ------
        ParameterError, BackendUnavailableError
            If the settings are not for the backend, if it cannot run on this machine, or if the GPU has less than the
            given memory.
        ResourceError
            If the work in the block needs more memory than there is.

        Examples
        --------
        >>> with Engine(backend="cpu", threads=1).start() as runtime:
        ...     runtime.backend
        'cpu'
        """
        from .threads import on_threads

        name = self.resolve()
        with kept(), on_threads(self.threads):
            if name == "gpu":
                from .gpu import on_gpu

                wanted = None if self.gpu_memory is None else parse_size(self.gpu_memory)
                with on_gpu(self.device, wanted) as runtime:
                    yield runtime
            else:
                from .host import HostRuntime

                yield HostRuntime(name)


def for_text(engine: Engine, text_bytes: Callable[[], int | None]) -> Engine:
    """Return the engine of a job: with the CPU in the place of a GPU that was not requested, if there is little text.

    Parameters
    ----------
    engine : Engine
    text_bytes : callable
        Returns about how many bytes of text the job reads, or None if nothing says it; then the GPU is used.
    """
    from .choice import WORTH_A_GPU, is_requested

    if is_requested(engine.backend, engine.device, engine.gpu_memory) or engine.resolve() != "gpu":
        return engine
    found = text_bytes()
    if found is None or found >= WORTH_A_GPU:
        return engine
    log.info(
        "running on the CPU: a GPU is used by itself from %s of text on, and there are about %s; --engine gpu uses it",
        size(WORTH_A_GPU),
        size(found),
    )
    return replace(engine, backend="cpu")


def as_engine(value: Any) -> Engine:
    """Return an engine from an `Engine`, "auto" or the name of a backend.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the value is something else.
    """
    if isinstance(value, str):
        name = checks.one_of("engine", value, ENGINES)
        return Engine(backend=None if name == "auto" else name)
    return checks.instance("engine", value, Engine)
