"""What tests have workers do: functions of a module, so that other processes find them by name; how tests wait."""

import errno
import logging
import os
import signal
import threading
import time
from pathlib import Path

import neardup_gpu.errors
from neardup_gpu.log import progress_log

QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300}
"""Settings by which a Ray cluster notices within two seconds that a node was lost, not after fifteen."""


def square(number):
    return number * number


def no_mark(path):
    """Whether this is the first call with this path, in whichever process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def refuse_to_fork():
    """Let this process find that the system has no room for another."""

    def full(*_):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    os.fork = os.posix_spawn = full


def leave_a_thread():
    threading.Thread(target=time.sleep, args=(1000,), name="left", daemon=True).start()


def refuse_to_fork_beside_a_thread():
    leave_a_thread()
    refuse_to_fork()


def num_threads_left():
    return sum(thread.name == "left" for thread in threading.enumerate())


def die_once(path, value):
    if no_mark(path):
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_by(name):
    os.kill(os.getpid(), signal.Signals[name])


def die_at_first(path, number, value):
    """Be killed, as the first `number` calls with this path are."""
    with open(path, "ab", buffering=0) as file:
        file.write(b".")
        if file.tell() <= number:
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    return value


def interrupt(value):
    os.kill(os.getpid(), signal.SIGINT)
    return value


def fail_once(path, value):
    if no_mark(path):
        raise ValueError("the first time")
    return value


def fail(log):
    with open(log, "a") as file:
        file.write("begun\n")
    raise ValueError("all\nthe time")


def write(path):
    Path(path).write_text("done")


def refuse(log):
    with open(log, "a") as file:
        file.write("begun\n")
    raise neardup_gpu.errors.InputError("crawl.parquet: no column 'text'")


class Stubborn(neardup_gpu.errors.ParameterError):
    """An error of the user's that cannot be unpickled."""

    def __init__(self, name, value):
        super().__init__(f"{name} must not be {value}")


def refuse_stubbornly():
    raise Stubborn("threshold", 7)


class Unsendable(Exception):
    def __reduce__(self):
        raise TypeError("never pickled")


def fail_unsendably():
    raise Unsendable("out of words")


def return_a_function():
    return lambda: None


def say(number):
    logging.getLogger("neardup_gpu").warning("skipped %d\x1b rows", number)
    logging.getLogger("neardup_gpu").debug("details")
    progress_log.warning("half done")


def sleep(path):
    """Leave the number of this process in a file and stay."""
    Path(f"{path}.new").write_text(str(os.getpid()))
    os.replace(f"{path}.new", path)
    time.sleep(600)


def stay(log, gone):
    """Leave the number of this process in a file, and stay until another is there."""
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")
    while not Path(gone).exists():
        time.sleep(0.01)
    return "stayed"


def surroundings(name):
    """What a worker has: standard input, threads, a variable."""
    import pyarrow

    from neardup_gpu.engine.processors import most_threads

    return os.read(0, 1), most_threads(), pyarrow.cpu_count(), os.environ.get(name)


def compile_unkept(reason):
    """Compile a kernel where none can be kept."""
    from neardup_gpu.kernels import _cpu, _numba

    _numba.CACHE, _numba.WHY_NOT_KEPT = None, reason

    def double(a):
        return 2 * a

    return _cpu.jit()(double)(21)


def where(path):
    """The GPUs that the process of this task sees; it waits until another task has begun, so that both run at once."""
    own, other = path
    Path(own).touch()
    while not Path(other).exists():
        time.sleep(0.01)
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def visible():
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def wait_for(condition):
    """Wait until something holds, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "nothing came of it within a minute"
        time.sleep(0.02)
