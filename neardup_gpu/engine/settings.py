"""`Engine`: where a job runs, as a setting; `Engine.start` makes it a `Runtime`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import checks
from ..settings import setting
from .contract import BACKENDS

if TYPE_CHECKING:
    from .contract import Runtime


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Where a job runs. Changes no result.

    Parameters
    ----------
    backend : "reference", "cpu" or "gpu", default None
        Where to run. Unless given, what NEARDUP_BACKEND says, else "gpu" if there is a usable one, else "cpu".
    device : int, default None
        Number of the GPU, among the GPUs that CUDA_VISIBLE_DEVICES shows; CuPy's current one unless given.
    memory : int or str, default None
        Bytes of GPU memory to use, or a size such as "20GB"; four fifths of the free memory unless given.
    threads : int, default None
        Processors to use; all unless given.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> Engine(backend="cpu", threads=4)
    Engine(backend='cpu', device=None, memory=None, threads=4)
    """

    backend: str | None = setting(
        None, "Where to run: reference, cpu or gpu.", metavar="NAME", shown="gpu if there is one"
    )
    device: int | None = setting(None, "Number of the GPU, counted from 0.", metavar="N", shown="the current one")
    memory: int | str | None = setting(
        None, "GPU memory to use, such as 20GB.", metavar="SIZE", flag="--gpu-memory", shown="80% of the free memory"
    )
    threads: int | None = setting(None, "Processors to use.", metavar="N", shown="all")

    def __post_init__(self) -> None:
        checks.optional(checks.one_of, "backend", self.backend, BACKENDS)
        device = checks.optional(checks.integer, "device", self.device, 0, hint="devices are counted from 0")
        threads = checks.optional(checks.integer, "threads", self.threads, 1)
        if self.memory is not None:
            from .memory import parse_size

            parse_size(self.memory)
        object.__setattr__(self, "device", device)
        object.__setattr__(self, "threads", threads)

    def resolve(self) -> str:
        """Name of the backend that it runs on.

        Returns
        -------
        str
            "reference", "cpu" or "gpu".

        Raises
        ------
        ParameterError
            If the other settings are not for that backend.
        BackendUnavailableError
            If it was asked for by name and cannot run here.

        Examples
        --------
        >>> Engine(backend="cpu").resolve()
        'cpu'
        """
        from .choice import resolve

        return resolve(self.backend, self.device, self.memory)

    @contextlib.contextmanager
    def start(self) -> Iterator[Runtime]:
        """Run a job in the block, alone in this process, on the threads that were asked for.

        Yields
        ------
        Runtime
            What runs the work of the block.

        Raises
        ------
        ParameterError, BackendUnavailableError
            If the settings are not for the backend, if it cannot run here, or if the GPU has less memory than was asked
            for.
        ResourceError
            If the work in the block needs more memory than there is.

        Examples
        --------
        >>> with Engine(backend="cpu", threads=1).start() as runtime:
        ...     runtime.backend
        'cpu'
        """
        from .heap import kept
        from .memory import parse_size
        from .threads import on_threads

        name = self.resolve()
        with kept(), on_threads(self.threads):
            if name == "gpu":
                from .gpu import on_gpu

                wanted = None if self.memory is None else parse_size(self.memory)
                with on_gpu(self.device, wanted) as runtime:
                    yield runtime
            else:
                from .host import HostRuntime

                yield HostRuntime(name)


def as_engine(value: Any) -> Engine:
    """An engine, which may be given as "auto" or by the name of a backend.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is neither.
    """
    if isinstance(value, str):
        return Engine(backend=None if checks.one_of("engine", value, ("auto", *BACKENDS)) == "auto" else value)
    return checks.instance("engine", value, Engine)
