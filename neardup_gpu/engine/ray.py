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
from ..documents.uris import file_system, is_uri, masked
from ..errors import BackendUnavailableError, NeardupError, ParameterError, ResourceError
from ..log import log
from ..tasks.contract import ATTEMPTS, Task
from .attempts import Attempted, Attempts, Failure, attempt_apart, outcome_of
from .processors import thread_limits

PATIENCE = 10
"""Seconds in which an address has to answer."""

_QUEUED = 2  # tasks that Ray is given for each that it can run, so that none of its workers waits for the next one


class RayWorkers:
    """`Workers` of a Ray cluster.

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
    num_gpus : int
        GPUs to use, each by a process of its own, which has it as long as these workers are there.

    Raises
    ------
    BackendUnavailableError
        If Ray is not installed, or no cluster answers at the address.
    ParameterError
        If the address is not one.
    ResourceError
        If the cluster is too small for one task, if a node has another version of Python, Ray or this package, or if
        there are fewer GPUs.
    """

    def __init__(
        self, address: str | None = None, *, num_cpus_a_task: int = 1, threads: int | None = None, num_gpus: int = 0
    ) -> None:
        self._address = address
        self._num_cpus = checks.integer("num_cpus_a_task", num_cpus_a_task, 1)
        self._num_gpus = checks.integer("num_gpus", num_gpus, 0)
        limits = thread_limits(checks.optional(checks.integer, "threads", threads, 1) or self._num_cpus)
        self._environment = {"env_vars": limits}
        self._without_gpus = {"env_vars": {**limits, "CUDA_VISIBLE_DEVICES": ""}} if num_gpus else self._environment
        self._actors: list[Any] = []
        self.num_workers = 0  # until the cluster is known

    def __enter__(self) -> RayWorkers:
        self._ray = _library()
        self._own = not self._ray.is_initialized()
        if self._own:
            _connect(self._ray, self._address)
        try:
            if self._resources("CPU") < self._num_cpus:
                raise ResourceError(
                    f"the Ray cluster has {self._resources('CPU'):g} processors, fewer than the {self._num_cpus} that "
                    "num_cpus_a_task sets aside for each task"
                )
            if self._num_gpus > self._resources("GPU"):
                raise ResourceError(f"the Ray cluster has {self._resources('GPU'):g} GPUs, fewer than {self._num_gpus}")
            self._check_versions()
            self.num_workers = max(1, int(self._resources("CPU")) // self._num_cpus)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
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
        folder = folder if is_uri(folder) else str(Path(folder).absolute())
        name, word = f".seen-{secrets.token_hex(8)}", secrets.token_hex(16)
        system, path = _place(folder)
        with system.open_output_stream(f"{path}/{name}") as file:
            file.write(word.encode())
        try:
            for node, found in self._on_each_node(_read, folder, name):
                if found != word:
                    raise ResourceError(
                        f"{masked(folder)}: node {node} of the Ray cluster does not see what this machine writes "
                        "there; name a folder that all nodes share, or a URI such as s3://bucket/work"
                    )
        finally:
            system.delete_file(f"{path}/{name}")

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """See `Workers.run`; tasks that wait or run when the caller stops reading are cancelled."""
        attempts = Attempts(tasks, devices=self._num_gpus > 0)
        running: dict[Any, tuple[Attempted, Any]] = {}  # by reference: the task, and the actor that has it
        try:
            while attempts.num_open:
                self._begin(attempts, running)
                ended, _ = self._ray.wait(list(running))
                done = []
                for reference in ended:
                    attempted, actor = running.pop(reference)
                    try:
                        outcome = outcome_of(self._ray.get(reference))
                    except self._ray.exceptions.RayError as error:
                        if actor is not None:
                            self._dismiss(actor)
                        attempts.failed(attempted, Failure(_first_line(error), f"{type(error).__name__}: {error}"))
                    else:
                        done += attempts.done(attempted, outcome)
                self._begin(attempts, running)
                yield from done
            attempts.end()
        finally:
            for reference, (_, actor) in running.items():
                if actor is None:
                    self._ray.cancel(reference, force=True)
                else:
                    self._dismiss(actor)

    def _begin(self, attempts: Attempts, running: dict[Any, tuple[Attempted, Any]]) -> None:
        """Hand out tasks: one to each actor, and to Ray as many as keep its workers busy."""
        level = log.getEffectiveLevel()
        busy = [actor for _, actor in running.values() if actor is not None]
        while len(busy) < self._num_gpus and (attempted := attempts.take(True)) is not None:
            actor = self._idle_actor(busy)
            running[actor.attempt.remote(pickle.dumps(attempted.task), level)] = attempted, actor
            busy.append(actor)
        remote = self._ray.remote(attempt_apart).options(
            num_cpus=self._num_cpus, max_retries=0, scheduling_strategy="SPREAD", runtime_env=self._without_gpus
        )
        while len(running) - len(busy) < _QUEUED * self.num_workers and (attempted := attempts.take(False)) is not None:
            running[remote.remote(pickle.dumps(attempted.task), level)] = attempted, None

    def _idle_actor(self, busy: list[Any]) -> Any:
        for actor in self._actors:
            if actor not in busy:
                return actor
        if not self._actors and self._resources("GPU") < 1:
            raise ResourceError("no node with a GPU is left in the Ray cluster")
        options = {"num_gpus": 1, "num_cpus": 0, "max_restarts": 0, "runtime_env": self._environment}
        self._actors.append(self._ray.remote(**options)(_Device).remote())
        return self._actors[-1]

    def _dismiss(self, actor: Any) -> None:
        self._actors.remove(actor)
        self._ray.kill(actor)

    def _resources(self, kind: str) -> float:
        return self._ray.cluster_resources().get(kind, 0)

    def _check_versions(self) -> None:
        own = (__version__, DEFINITIONS)
        for node, found in self._on_each_node(_installed):
            if found != own:
                has = found if isinstance(found, str) else "it has neardup_gpu {} with definitions {}".format(*found)
                raise ResourceError(
                    f"node {node} of the Ray cluster: {has}; install neardup_gpu {__version__} with definitions "
                    f"{DEFINITIONS} there, as on this machine"
                )

    def _on_each_node(self, function: Callable[..., Any], *arguments: Any) -> list[tuple[str, Any]]:
        """What a function gives on each node that can run tasks, with the node's address."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        begun = []
        for node in self._nodes():
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            remote = self._ray.remote(function).options(
                num_cpus=0, max_retries=ATTEMPTS - 1, scheduling_strategy=here, runtime_env=self._without_gpus
            )
            begun.append((node, remote.remote(*arguments)))
        found = []
        for node, reference in begun:
            address = node["NodeManagerAddress"]
            try:
                found.append((address, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                if node["NodeID"] in [
                    each["NodeID"] for each in self._nodes()
                ]:  # Ray notices a loss only after a while
                    raise ResourceError(
                        f"node {address} of the Ray cluster runs no tasks: {_first_line(error)}"
                    ) from error
        return found

    def _nodes(self) -> list[dict[str, Any]]:
        """The nodes that can run tasks, as far as Ray knows."""
        return [
            node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= self._num_cpus
        ]


class _Device:
    """An actor, which has a GPU for its life."""

    def attempt(self, packed: bytes, level: int) -> bytes:
        return attempt_apart(packed, level)


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise BackendUnavailableError("Ray is not installed; install it: pip install 'neardup_gpu[ray]'") from None
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
            raise BackendUnavailableError(f"no Ray cluster was found ({_first_line(error)})") from None
        except RuntimeError as error:
            if "Version mismatch" not in str(error):
                raise
            raise ResourceError(
                f"the Ray cluster has another version of Ray or of Python: {' '.join(str(error).split())}; use the "
                "same on all machines"
            ) from None


def _let_print(ray: Any, whether: bool) -> None:
    """Let Ray print what it has to say of dead workers and nodes, on stdout whatever it is told; or not."""
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
    """What a file holds; None where it cannot be read."""
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
