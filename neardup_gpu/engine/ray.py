"""Tasks on a Ray cluster: Ray Core's tasks, and an actor a GPU.

Nothing goes through Ray's object store but tasks and their small results, so no object has to be restored when a node
is lost: its tasks are begun again elsewhere.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyarrow import fs

from .. import __version__, checks
from ..definitions import DEFINITIONS
from ..errors import BackendUnavailableError, NeardupError, ParameterError, ResourceError
from ..log import log
from ..store.uris import file_system, is_uri, masked
from .attempts import Attempted, Attempts, Failure, attempt_apart, outcome_of
from .processors import thread_limits
from .tasks import ATTEMPTS, Task

PATIENCE = 10
"""Seconds in which an address has to answer."""

SETTLED = 0.5
"""Seconds that tasks have to end before they are cancelled. Ray 2.60 ended the process of a test that cancelled a task
at the moment when it began or ended: "Tried to complete task that was not pending". See issue 54846 of Ray."""

_QUEUED = 2  # tasks that Ray is given for each that it can run, so that none of its workers waits for the next one


class RayWorkers:
    """A `Runner` of a Ray cluster.

    Where Ray is initialised in this process already, that cluster is used and left as it is.

    Parameters
    ----------
    address : str, default None
        The cluster, as "host:port"; "auto" for the one that this machine is part of, "local" for a new one of this
        machine alone. Unless given, as `ray.init` has it: RAY_ADDRESS, else the one that this machine is part of, else
        a new one.
    num_cpus_a_task : int
        Processors that Ray sets aside for each task.
    threads : int, default None
        Processors that each task uses; `num_cpus_a_task` unless given.
    num_gpus : int, default 0
        GPUs to use, each by a process of its own, which has it as long as these workers are there; None for all of the
        cluster. One that is in use by others is waited for, while the others work.

    Raises
    ------
    BackendUnavailableError
        If Ray is not installed, or no cluster answers at the address.
    ParameterError
        If the address is not one.
    ResourceError
        If the cluster is too small for one task, if it has another version of Python or Ray, or if there are fewer
        GPUs, or none; when it is first used, if a node has another version of this package.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus_a_task: int = 1,
        threads: int | None = None,
        num_gpus: int | None = 0,
    ) -> None:
        self._address = address
        self._num_cpus = checks.integer("num_cpus_a_task", num_cpus_a_task, 1)
        self._wanted_gpus = checks.optional(checks.integer, "num_gpus", num_gpus, 0)
        limits = thread_limits(checks.optional(checks.integer, "threads", threads, 1) or self._num_cpus)
        self._environment = {"env_vars": limits}
        hidden = {"env_vars": {**limits, "CUDA_VISIBLE_DEVICES": ""}}
        self._without_gpus = self._environment if num_gpus == 0 else hidden
        self._actors: list[Any] = []
        self._starting: dict[Any, Any] = {}  # actors that are not there yet, by a reference to a call that tells it
        self._unstarted = 0  # actors in a row that ended before they were there
        # Nodes that have not said yet which version they have, with references to that.
        self._version_requests: list[Any] = []
        self.num_workers, self.one_machine = 0, False  # until the cluster is known

    def __enter__(self) -> RayWorkers:
        self._ray = _library()
        self._own = not self._ray.is_initialized()
        if self._own:
            _connect(self._ray, self._address)
        try:
            if self._resources("CPU") < self._num_cpus:
                raise ResourceError(
                    f"the Ray cluster has fewer processors ({self._resources('CPU'):g}) than the {self._num_cpus} that "
                    "num_cpus_a_task sets aside for each task"
                )
            number = int(self._resources("GPU"))
            self._num_gpus = max(1, number) if self._wanted_gpus is None else self._wanted_gpus
            if self._num_gpus > number:
                raise ResourceError(f"the Ray cluster has {number} GPUs, fewer than {self._num_gpus}")
            self.num_workers = max(1, int(self._resources("CPU")) // self._num_cpus)
            self.one_machine = len(self._nodes()) == 1
            self._version_requests = self._begin_on_each_node(_installed)  # while the caller prepares something
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for actor in [*self._actors, *self._starting.values()]:
            self._ray.kill(actor)
        self._actors, self._starting = [], {}
        if self._own:
            self._ray.shutdown()
            _let_print(self._ray, True)

    def check_folder(self, folder: str) -> None:
        """See whether all nodes read what this process writes into a folder, a path or a URI.

        Raises
        ------
        ResourceError
            If one does not.
        """
        self._check_versions()
        folder = folder if is_uri(folder) else str(Path(folder).absolute())
        name, word = f".seen-{secrets.token_hex(8)}", secrets.token_hex(16)
        system, path = _place(folder)
        with system.open_output_stream(f"{path}/{name}") as file:
            file.write(word.encode())
        try:
            for node, found in self._answers(self._begin_on_each_node(_read, folder, name)):
                if found != word:
                    raise ResourceError(
                        f"{masked(folder)}: node {node} of the Ray cluster does not see what this machine writes "
                        "there; name a folder that all nodes share, or a URI such as s3://bucket/work"
                    )
        finally:
            system.delete_file(f"{path}/{name}")

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """See `Runner.run`; tasks that wait or run when the caller stops reading are cancelled."""
        self._check_versions()
        attempts = Attempts(tasks, devices=self._num_gpus > 0)
        running: dict[Any, tuple[Attempted, Any]] = {}  # by reference: the task, and the actor that has it
        try:
            while attempts.num_open:
                self._begin(attempts, running)
                ended, _ = self._ray.wait([*running, *self._starting])
                done = []
                for reference in ended:
                    if reference in self._starting:
                        self._welcome(reference)
                        continue
                    attempted, actor = running.pop(reference)
                    try:
                        outcome = outcome_of(self._ray.get(reference))
                    except self._ray.exceptions.RayError as error:
                        if actor is not None:  # if a node was lost, idle ones may be dead, too
                            busy = [other for _, other in running.values()]
                            for other in [other for other in self._actors if other not in busy]:
                                self._dismiss(other)
                        attempts.failed(attempted, Failure(_first_line(error), f"{type(error).__name__}: {error}"))
                    else:
                        done += attempts.done(attempted, outcome)
                self._begin(attempts, running)
                yield from done
            attempts.end()
        finally:
            mine = [reference for reference, (_, actor) in running.items() if actor is None]
            if mine:
                _, mine = self._ray.wait(mine, num_returns=len(mine), timeout=SETTLED)
            for reference in mine:
                self._ray.cancel(reference, force=True)
            for _, actor in running.values():
                if actor is not None:
                    self._dismiss(actor)

    def _begin(self, attempts: Attempts, running: dict[Any, tuple[Attempted, Any]]) -> None:
        """Hand out tasks: one to each actor, and to Ray enough to keep its workers busy."""
        level = log.getEffectiveLevel()
        busy = [actor for _, actor in running.values() if actor is not None]
        for actor in [actor for actor in self._actors if actor not in busy]:
            if (attempted := attempts.take(True)) is None:
                break
            running[actor.attempt.remote(pickle.dumps(attempted.task), level)] = attempted, actor
            busy.append(actor)
        if attempts.num_waiting(True) > len(self._starting):
            self._start_actors(attempts.num_waiting(True) - len(self._starting))
        remote = self._ray.remote(attempt_apart).options(
            num_cpus=self._num_cpus, max_retries=0, scheduling_strategy="SPREAD", runtime_env=self._without_gpus
        )
        while len(running) - len(busy) < _QUEUED * self.num_workers and (attempted := attempts.take(False)) is not None:
            running[remote.remote(pickle.dumps(attempted.task), level)] = attempted, None

    def _start_actors(self, most: int) -> None:
        """Start some of the actors that are missing, as far as the cluster has a GPU for each now."""
        there = len(self._actors) + len(self._starting)
        if there == self._num_gpus:
            return
        number = min(self._num_gpus, int(self._resources("GPU")))
        if there == number == 0:
            raise ResourceError("no node with a GPU is left in the Ray cluster")
        options = {"num_gpus": 1, "num_cpus": 0, "max_restarts": 0, "runtime_env": self._environment}
        for _ in range(min(most, number - there)):
            actor = self._ray.remote(**options)(_GpuActor).remote()
            self._starting[actor.is_there.remote()] = actor

    def _welcome(self, reference: Any) -> None:
        """Take an actor among those that get tasks, if it is there; another one is started in place of a dead one."""
        actor = self._starting.pop(reference)
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(actor)
            self._unstarted += 1
            if self._unstarted == ATTEMPTS:
                raise ResourceError(
                    f"processes with a GPU cannot be started in the Ray cluster: {ATTEMPTS} in a row ended before they "
                    f"were there, the last with {_first_line(error)}"
                ) from error
        else:
            self._unstarted = 0
            self._actors.append(actor)

    def _dismiss(self, actor: Any) -> None:
        self._actors.remove(actor)
        self._ray.kill(actor)

    def _resources(self, kind: str) -> float:
        return self._ray.cluster_resources().get(kind, 0)

    def _check_versions(self) -> None:
        requests, self._version_requests = self._version_requests, []
        own = (__version__, DEFINITIONS)
        for node, found in self._answers(requests):
            if found != own:
                has = found if isinstance(found, str) else "it has neardup_gpu {} with definitions {}".format(*found)
                raise ResourceError(
                    f"node {node} of the Ray cluster: {has}; install neardup_gpu {__version__} with definitions "
                    f"{DEFINITIONS} there, as on this machine"
                )

    def _begin_on_each_node(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function on each node that can run tasks; the nodes, with references to what it gives."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        begun = []
        for node in self._nodes():
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            remote = self._ray.remote(function).options(
                num_cpus=0, max_retries=ATTEMPTS - 1, scheduling_strategy=here, runtime_env=self._without_gpus
            )
            begun.append((node, remote.remote(*arguments)))
        return begun

    def _answers(self, begun: list[Any]) -> list[tuple[str, Any]]:
        """Return a function's result on each node, with the node's address; lost nodes give nothing."""
        found = []
        for node, reference in begun:
            address = node["NodeManagerAddress"]
            try:
                found.append((address, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                # Ray notices a loss only after a while.
                if node["NodeID"] in [each["NodeID"] for each in self._nodes()]:
                    raise ResourceError(
                        f"node {address} of the Ray cluster runs no tasks: {_first_line(error)}"
                    ) from error
        return found

    def _nodes(self) -> list[dict[str, Any]]:
        """The nodes that can run tasks, as far as Ray knows."""
        return [
            node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= self._num_cpus
        ]


class _GpuActor:
    """An actor, which has a GPU for its life."""

    def is_there(self) -> None:
        return None

    def attempt(self, packed: bytes, level: int) -> bytes:
        return attempt_apart(packed, level)


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise BackendUnavailableError("Ray is not installed; install it: pip install 'neardup-gpu[ray]'") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    """Initialise Ray, without its dashboard and without what it would print."""
    address = os.environ.get("RAY_ADDRESS") or address if address in (None, "auto") else address
    if address not in (None, "auto", "local"):
        _check_address(str(address))
    with _own_sigterm():
        try:
            _let_print(ray, False)
            ray.init(address, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        except ConnectionError as error:
            raise BackendUnavailableError(
                f"no Ray cluster was found ({_first_line(error)}); if the cluster asks for a token, as Ray 2.60 does, "
                "set RAY_AUTH_MODE=token for this command as well"
            ) from None
        except RuntimeError as error:
            if "Version mismatch" not in str(error):
                raise
            raise ResourceError(
                f"the Ray cluster has another version of Ray or of Python: {' '.join(str(error).split())}; use the "
                "same on all machines"
            ) from None


def _let_print(ray: Any, whether: bool) -> None:
    """Let Ray print its messages about dead workers and nodes, always on stdout; or not."""
    ray._private.worker._worker_logs_enabled = whether  # as Ray's own debugger does


def _check_address(address: str) -> None:
    """See whether a gRPC server, as Ray's is, answers there; Ray itself would try for ever.

    gRPC is HTTP/2, whose servers answer a client's preface with a frame of settings (RFC 9113, 3.4).
    """
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ParameterError(f"the address of a Ray cluster is host:port, auto or local, got {address}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.settimeout(PATIENCE)
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            answer = connection.recv(9)
    except OSError as error:
        raise BackendUnavailableError(
            f"no Ray cluster answers at {address} ({error}); start one there (ray start --head) or name another address"
        ) from None
    if answer[3:4] != b"\4":
        raise BackendUnavailableError(f"what answers at {address} is not a Ray cluster; its port is 6379 unless chosen")


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep the handler of SIGTERM, which `ray.init` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _first_line(error: BaseException) -> str:
    line = next(iter(str(error).splitlines()), "").rstrip(". ")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _place(folder: str) -> tuple[fs.FileSystem, str]:
    return file_system(folder) if is_uri(folder) else (fs.LocalFileSystem(), folder)


# ----------------------------------------------------------------------------------------------------------- on nodes


def _read(folder: str, name: str) -> str | None:
    """Return the content of a file; None if it cannot be read."""
    try:
        system, path = _place(folder)
        with system.open_input_stream(f"{path}/{name}") as file:
            return file.read().decode()
    except (OSError, NeardupError):
        return None


def _installed() -> tuple[str, int] | str:
    """The version of this package and of its definitions; where it cannot be imported, why."""
    try:
        import neardup_gpu.engine.ray
    except ImportError as error:
        return f"neardup_gpu cannot be imported ({error})"
    return neardup_gpu.__version__, neardup_gpu.definitions.DEFINITIONS


_installed.__module__ = "__main__"  # sent as it is, not by a name that a node may lack
