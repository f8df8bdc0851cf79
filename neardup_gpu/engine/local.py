"""Tasks in processes of this machine.

A worker imports nothing of the program that started it, so that a script needs no `if __name__ == "__main__"`. It has
one pipe, and ends when that is closed: also when the process that started it is killed. It is killed without notice, as
temporary files have no names and results appear whole. This file is quick to import, so that workers start while the
process that starts them still imports.

A worker is not forked from the process that asks for it (`threads.py` says why). Where there are several, on Linux,
each is forked from one more process, the nursery, which has imported what tasks need and done what each would do first,
and has not started a thread. Elsewhere, or if something there has started one, a worker is a new interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, NamedTuple

from .. import checks
from ..errors import BackendUnavailableError, ParameterError, ResourceError
from ..log import log
from ..report import size
from .attempts import Attempted, Attempts, Failure, attempt_apart, outcome_of, warm_up
from .memory import machine_memory
from .processors import most_threads, thread_limits
from .tasks import ATTEMPTS, Task

_PROGRAM = """
import sys
from multiprocessing.connection import Connection
pipe = Connection(int(sys.argv[1]))
sys.path[:] = sys.argv[3:]
from neardup_gpu.engine import local
getattr(local, sys.argv[2])(pipe)
"""


FORKS = sys.platform == "linux"
"""Whether workers are forked; elsewhere libraries of the system start threads."""

EARLY = 4
"""Workers that are started before there are tasks: there may be fewer tasks than workers."""


class LocalWorkers:
    """A `Runner` of processes of this machine: a few are started at once, others when there are tasks for them.

    Parameters
    ----------
    num_workers : int
        How many processes.
    threads : int, default None
        Processors that each of them uses; an equal share of all unless given.
    devices : sequence of str or int
        GPUs, as CUDA_VISIBLE_DEVICES names them: the first worker has the first one for its life, and so on. The other
        workers see none. Without any, all workers see what this process sees.
    first : Task, optional
        What each worker does before its first task; nobody reads its result, and no task depends on it.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a number is out of its range, or if there are fewer workers than devices.
    BackendUnavailableError
        On Windows.
    """

    one_machine = True

    def __init__(
        self,
        num_workers: int,
        *,
        threads: int | None = None,
        devices: Sequence[str | int] = (),
        first: Task | None = None,
    ) -> None:
        if os.name == "nt":
            raise BackendUnavailableError("worker processes need Linux or macOS; use one worker, which is this process")
        self.num_workers = checks.integer("num_workers", num_workers, 1)
        most = most_threads()
        self._threads = checks.optional(checks.integer, "threads", threads, 1, most) or max(1, most // num_workers)
        self._devices = [str(device) for device in devices]
        if len(self._devices) > num_workers:
            raise ParameterError(
                f"num_workers must be at least the number of devices, {len(self._devices)}, got {num_workers}"
            )
        self._first = first or Task("first", 0, _nothing)
        self._workers: list[_Worker | None] = [None] * num_workers
        self._most = num_workers  # workers that may have tasks: fewer after some were killed
        self._unstarted = 0  # workers in a row that ended before they were ready
        self._killed = 0  # workers in a row that were killed by a signal
        self._nursery: _Nursery | None = None
        self._forks = FORKS and num_workers > 1

    def check_folder(self, folder: str) -> None:
        """True: all processes of this machine can read the files of this one."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """See `Runner.run`; tasks that wait when the caller stops reading are not begun."""
        attempts = Attempts(tasks, devices=bool(self._devices))
        try:
            while attempts.num_open:
                self._begin(attempts)
                done = self._receive(attempts)
                self._begin(attempts)  # workers go on while the caller deals with what is done
                yield from done
            attempts.end()
        finally:
            self._stop([worker for worker in self._workers if worker is not None and worker.attempted is not None])

    def _begin(self, attempts: Attempts) -> None:
        """Give tasks to workers without one; start workers that are missing, but no more than there are tasks."""
        self._stop([worker for worker in self._workers[self._most :] if worker is not None and not worker.attempted])
        for place, worker in enumerate(self._workers[: min(attempts.num_open, self._most)]):
            if worker is None:
                worker = self._start(place)
            if worker.ready and worker.attempted is None:
                kinds = (True, False) if place < len(self._devices) else (False,)
                if (attempted := attempts.take(*kinds)) is not None:
                    share = min(self._threads * attempts.share(attempted, self._most), most_threads())
                    worker.begin(attempted, max(self._threads, share))

    def _start(self, place: int) -> _Worker:
        environment = {**os.environ, **thread_limits(1 if self._forks else self._threads)}
        if not self._forks:
            worker = _Worker(environment | self._own_environment(place), self._first)
        else:
            if self._nursery is None or not self._nursery.lives:
                self._nursery = _Nursery(environment, self._first)
            shown = self._own_environment(place).get("CUDA_VISIBLE_DEVICES")
            worker = _Worker(environment, self._first, self._nursery, shown)
        self._workers[place] = worker
        return worker

    def _own_environment(self, place: int) -> dict[str, str]:
        """Variables of one worker's environment that other workers may not have."""
        if not self._devices:
            return {}
        return {"CUDA_VISIBLE_DEVICES": self._devices[place] if place < len(self._devices) else ""}

    def _receive(self, attempts: Attempts) -> list[tuple[Task, Any]]:
        """Wait until a worker is ready, done or dead; the tasks that are done."""
        done = []
        by_pipe: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers if worker is not None}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]
            try:
                message = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                self._mourn(worker, attempts)
                continue
            if not worker.ready:
                worker.welcome(message)
                self._unstarted = 0
            elif worker.attempted is not None:
                attempted, worker.attempted = worker.attempted, None
                done += attempts.done(attempted, outcome_of(message))
                self._killed = 0
        return done

    def _mourn(self, worker: _Worker, attempts: Attempts) -> None:
        """Take a dead worker away, and let its task wait again.

        After `ATTEMPTS` workers in a row, or at the last attempt of a task, that a signal killed, half as many workers
        go on, and the task has all its attempts again.

        Raises
        ------
        ResourceError
            If a single worker cannot be started either.
        """
        end = worker.end(has_ended=True)
        self._workers[self._workers.index(worker)] = None
        log.debug("a worker %s", end.how)
        attempted = worker.attempted
        self._killed += end.by_signal
        self._unstarted += not worker.ready
        is_last = attempted is not None and attempted.begun >= ATTEMPTS
        if end.by_signal and self._most > 1 and (self._killed >= ATTEMPTS or is_last):
            before, self._most = self._most, self._most // 2
            log.warning(
                "worker processes were killed again and again: the last one %s; %d of %d workers go on",
                end.how,
                self._most,
                before,
            )
            self._killed = self._unstarted = 0
            if attempted is not None:
                attempted.begun = 0
        if self._unstarted >= ATTEMPTS:
            raise ResourceError(
                f"worker processes cannot be started: {ATTEMPTS} in a row were lost before they were ready, the last "
                f"one {end.how}; {_LESS_MEMORY}"
            )
        if attempted is not None:
            advice = f"; {_LESS_MEMORY}" if end.by_signal else ""
            attempts.failed(attempted, Failure(f"its process {end.how}{advice}"))

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.end()
            self._workers[self._workers.index(worker)] = None

    def __enter__(self) -> LocalWorkers:
        try:
            for place in range(min(EARLY, self.num_workers)):
                self._start(place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop([worker for worker in self._workers if worker is not None])
        if self._nursery is not None:
            self._nursery.end()


class _Worker:
    """A process, its pipe, and the task that it has.

    Parameters
    ----------
    environment : dict
        Of a new interpreter.
    first : Task
        What it does before its first task.
    nursery : _Nursery, optional
        Where to fork it from instead.
    shown : str, optional
        Where it is forked, the devices that it sees, as CUDA_VISIBLE_DEVICES.
    """

    def __init__(
        self, environment: dict[str, str], first: Task, nursery: _Nursery | None = None, shown: str | None = None
    ) -> None:
        self.ready = False
        self.attempted: Attempted | None = None
        self.pipe, other = Pipe()
        with contextlib.closing(other):
            if nursery is None:
                self.process: subprocess.Popen[bytes] | _Forked = _interpreter("serve", other, environment)
                self._send(first)
            else:
                self.process = nursery.fork(other, shown)

    def welcome(self, message: bytes) -> None:
        """Take note that it is ready: it tells its process number. In its place a nursery tells why there is none.

        Raises
        ------
        ResourceError
            If it could not be forked.
        """
        if not message.isdigit():
            raise _none_left(message.decode())
        self.ready = True
        if isinstance(self.process, _Forked):
            self.process.pid = int(message)

    def begin(self, attempted: Attempted, threads: int) -> None:
        """Send a task to the worker, which runs it on this number of threads."""
        self.attempted = attempted
        self._send(attempted.task, threads)

    def _send(self, task: Task, *threads: int) -> None:
        with contextlib.suppress(OSError):  # the worker is dead, which is noticed where it is read from
            self.pipe.send((pickle.dumps(task), log.getEffectiveLevel(), *threads))

    def end(self, *, has_ended: bool = False) -> _End:
        """Close the pipe and wait for the process, which ends by that if it lives; how it ended.

        Parameters
        ----------
        has_ended : bool
            Whether it is known to have ended. A forked process that is not ready yet is not waited for otherwise.
        """
        self.pipe.close()
        if isinstance(self.process, _Forked):
            return _end_of(*(self.process.ended() if has_ended or self.ready else (None, 0)))
        return _end_of(*_waited(self.process))


class _End(NamedTuple):
    """How a process ended, in words, and whether a signal ended it."""

    how: str
    by_signal: bool


def _end_of(status: int | None, peak: int) -> _End:
    """Say how a process ended.

    Parameters
    ----------
    status : int or None
        Its exit status, negative if a signal ended it; None if it is not known.
    peak : int
        The most memory that it had in use, in bytes; 0 if it is not known.
    """
    if status is None:
        return _End("ended with the process that it was forked from", False)
    if status >= 0:
        return _End(f"ended with status {status}", False)
    try:
        name = signal.Signals(-status).name
    except ValueError:  # of the real-time signals only two have names
        name = f"signal {-status}"
    why = ", as systems do when memory runs out" if name == "SIGKILL" else ""
    return _End(f"was killed by {name}{why} ({_memory_in_use(peak)})", True)


def _memory_in_use(peak: int) -> str:
    """Say how much memory a worker had in use at most, and how much of the machine's memory is in use now."""
    said = [f"it had used up to {size(peak)} of memory"] if peak else []
    total, free, _ = machine_memory()
    if free is not None:
        said.append(f"{size(total - free)} of {size(total)} of this machine's memory are in use now")
    return "; ".join(said) or "memory in use unknown"


def _waited(process: subprocess.Popen[bytes]) -> tuple[int | None, int]:
    """Wait for a process; its status, and the most memory that it had in use, in bytes."""
    if process.returncode is None:
        with contextlib.suppress(ChildProcessError):
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, _peak(usage.ru_maxrss)
    return process.wait(), 0


def _peak(maxrss: int) -> int:
    """Convert the peak that the system reports to bytes: it counts bytes on macOS, and KiB elsewhere."""
    return maxrss if sys.platform == "darwin" else 1024 * maxrss


_LESS_MEMORY = "if memory ran out, ask for fewer workers (--workers), or bound it with --memory (memory)"
"""Advice for when workers were killed."""


def _interpreter(function: str, pipe: Connection, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A new process that calls a function of this file with its end of a pipe.

    Raises
    ------
    ResourceError
        If it cannot be started.
    """
    with _without_interrupts():
        try:
            return subprocess.Popen(
                _command(function, pipe.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[pipe.fileno()],
            )
        except OSError as error:
            raise _none_left(error.strerror) from error


def _none_left(why: str | None) -> ResourceError:
    return ResourceError(
        f"no more worker processes can be started ({why}); ask for fewer, or raise the limit of processes (ulimit -u)"
    )


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT, for a process that is started meanwhile for ever: at a terminal it goes to all processes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing() -> None:
    """The default first task of a worker: nothing."""


def _command(function: str, descriptor: int) -> list[str]:
    return [sys.executable, "-P", "-c", _PROGRAM, str(descriptor), function, *sys.path]


def serve(pipe: Connection, *, warm: bool = False) -> None:
    """Be a worker: run the tasks that come through a pipe until it is closed, the first one for nobody unless warm."""
    os.set_inheritable(pipe.fileno(), False)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    with contextlib.suppress(OSError):
        pipe.send_bytes(str(os.getpid()).encode())
        if not warm:
            warm_up(*tasks.get())
        while True:
            pipe.send_bytes(attempt_apart(*tasks.get()))
    os._exit(0)


def _listen(pipe: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    """Take tasks from a pipe, and end this process when the pipe is closed, whatever it is doing."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            tasks.put(pipe.recv())
    os._exit(0)


# ------------------------------------------------------------------------------------------------------ forked workers


class _Nursery:
    """The process that workers are forked from."""

    def __init__(self, environment: dict[str, str], first: Task) -> None:
        self._pipe, other = Pipe()
        with contextlib.closing(other):
            self._process = _interpreter("serve_nursery", other, environment)
        self._send((pickle.dumps(first), log.getEffectiveLevel()))
        self._num_forked = 0

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def fork(self, pipe: Connection, shown: str | None) -> _Forked:
        """A worker at that end of a pipe; it tells its number there when it is ready."""
        self._send(shown)
        with contextlib.suppress(OSError):
            send_handle(self._pipe, pipe.fileno(), self._process.pid)
        self._num_forked += 1
        return _Forked(self, self._num_forked - 1)

    def wait(self, number: int) -> tuple[int | None, int]:
        """Return the status of a worker, by its number among all forked ones, and its peak of memory in bytes.

        Where the nursery was killed its workers ended with it, and its own status is returned.
        """
        self._send(number)
        try:
            return self._pipe.recv()
        except (OSError, EOFError):
            return _waited(self._process)

    def end(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it is dead, and so will be its workers
            self._pipe.send(message)


class _Forked:
    """A forked worker's process: what is used of `Popen`."""

    def __init__(self, nursery: _Nursery, number: int) -> None:
        self._nursery, self._number, self.pid = nursery, number, 0  # until it is ready

    def kill(self) -> None:
        if self.pid and self._nursery.lives:  # which keeps the number from being another's
            os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> tuple[int | None, int]:
        """Wait for it; its status and its peak of memory, as `_Nursery.wait` returns them."""
        self.pid = 0
        return self._nursery.wait(self._number)


def serve_nursery(pipe: Connection) -> None:
    """Be a nursery: do first what each worker would do first, then fork one whenever a pipe for it comes."""
    _die_with_parent()
    os.set_inheritable(pipe.fileno(), False)
    with contextlib.suppress(OSError, EOFError):
        warm_up(*pipe.recv())
        gc.freeze()
        forked: list[int] = []
        while True:
            message = pipe.recv()
            if isinstance(message, int):
                _, status, usage = os.wait4(forked[message], 0)
                pipe.send((os.waitstatus_to_exitcode(status), _peak(usage.ru_maxrss)))
                continue
            shown = {} if message is None else {"CUDA_VISIBLE_DEVICES": message}
            with Connection(recv_handle(pipe)) as end:
                try:
                    born = _fork_or_spawn(end, shown)
                except OSError as error:
                    forked.append(-1)
                    end.send_bytes(str(error.strerror).encode())
                    continue
                forked.append(born)
                if born == 0:
                    pipe.close()
                    os.environ.update(shown)
                    serve(end, warm=True)
    os._exit(0)


def _fork_or_spawn(end: Connection, shown: dict[str, str]) -> int:
    """Start a worker; 0 in the worker itself, if it is a fork."""
    if _is_single():
        return os.fork()
    os.set_inheritable(end.fileno(), True)  # a fork has one thread, and what the others held for ever
    return os.posix_spawn(sys.executable, _command("serve_at_once", end.fileno()), {**os.environ, **shown})


def _die_with_parent() -> None:
    """Have the system kill this process when the one that started it ends, also while it is busy."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def serve_at_once(pipe: Connection) -> None:
    """Be a worker that does nothing before its first task."""
    serve(pipe, warm=True)


def _is_single() -> bool:
    """Whether this process has one thread, not counting that of Arrow's allocator, which repairs itself in a fork."""
    threads = []
    for each in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            threads.append(Path(f"/proc/self/task/{each}/comm").read_text())
    return sum(not name.startswith("jemalloc") for name in threads) == 1
