"""Kernels of the processor: which code takes which arguments, and how threads divide the work."""

import _thread
import math
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from numba.core.errors import NumbaError

from neardup_gpu.kernels import _ahead, _cpu, minhash
from neardup_gpu.kernels._cpu import alone, declared_kinds, jit, num_threads, on_threads, parallel

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


# ------------------------------------------------------------------------------------------ which code takes what


@jit("uint64[::1], uint64", "uint64[:, :], int64")
def weigh(values, weight):
    total = 0.0
    for value in values.flat:
        total += value
    return total * weight


@jit("(uint64[::1], int64), float64, boolean")
def nested(pair, factor, flag):
    return pair[0][0] * pair[1] * factor if flag else 0.0


ONES = np.ones(6, np.uint64)


def taken(function, *arguments):
    """The number of the declared signature whose code takes these arguments; None if Numba chooses."""
    described = _cpu._described(arguments)
    fitting = [i for i, s in enumerate(function.signatures) if _cpu._fits(declared_kinds(s), described)]
    return fitting[0] if fitting else None


def unaligned():
    return np.frombuffer(b"\0" + ONES.tobytes(), np.uint8)[1:].view(np.uint64)


def read_only():
    array = ONES.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("array", "weight", "number"),
    [
        (ONES, 1, 0),
        (ONES[:0], 1, 0),
        (read_only(), 1, 0),
        (ONES, np.uint64(1), 0),
        (ONES, np.int8(1), 0),
        (ONES.reshape(2, 3), 1, 1),
        (ONES.reshape(2, 3).T, 1, 1),
        (ONES[::2], 1, None),
        (unaligned(), 1, None),
        (ONES.astype(np.int64), 1, None),
        (ONES.astype(np.uint32), 1, None),
        (ONES.astype(bool), 1, None),
        (ONES.reshape(1, 2, 3), 1, None),
        (ONES, 1.0, None),
        (ONES, np.float32(1), None),
        (ONES, True, None),
        (ONES, np.True_, None),
    ],
)
def test_any_array_and_any_number_give_the_right_result(array, weight, number):
    assert taken(weigh, array, weight) == number
    assert weigh(array, weight) == array.astype(np.float64).sum() * float(weight)


@pytest.mark.parametrize("weight", [-1, np.int64(-1), 1 << 64, -(1 << 70)])
def test_numbers_that_do_not_fit_are_refused(weight):
    with pytest.raises(OverflowError):
        weigh(ONES, weight)


@pytest.mark.parametrize(
    "array",
    [ONES.astype(">u8"), ONES.astype(object), ONES.astype("datetime64[s]").astype(str), None, "text", object(), {1: 2}],
)
def test_what_no_kernel_takes_is_refused(array):
    with pytest.raises(NumbaError):
        weigh(array, 1)


@pytest.mark.parametrize("arguments", [(), (ONES,), (ONES, 1, 1)])
def test_another_number_of_arguments_is_refused(arguments):
    with pytest.raises(TypeError):
        weigh(*arguments)


def test_arrays_in_files_are_taken_as_others(tmp_path):
    ONES.tofile(tmp_path / "ones")
    mapped = np.memmap(tmp_path / "ones", np.uint64, "r")
    assert taken(weigh, mapped, 1) == 0 and weigh(mapped, 2) == 12


def test_masked_arrays_are_not_taken_for_their_values():
    masked = np.ma.array(ONES, mask=[1, 0, 0, 0, 0, 0])
    assert taken(weigh, masked, 1) is None
    with pytest.raises(Exception, match="MaskedArray"):
        weigh(masked, 1)


def test_tuples():
    assert taken(nested, (ONES, 2), 3, True) == taken(nested, (ONES, np.uint64(2)), 3.0, np.True_) == 0
    assert nested((ONES, 2), 3, True) == nested((ONES, 2), 3.0, np.True_) == 6
    for pair in ((ONES,), (ONES, 2, 3), (2, ONES), (), (ONES, (2,)), [ONES, 2], ONES, 7, ("u8", 1, True)):
        assert taken(nested, pair, 3.0, True) is None, pair
    assert taken(nested, (ONES, 2), 3.0, 1) is None
    assert nested((ONES, 2, 5), 3.0, True) == 6
    with pytest.raises(Exception, match=r"tuple|getitem|Tuple"):
        nested((ONES,), 3.0, True)
    with pytest.raises(Exception, match="getitem"):
        nested((2, ONES), 3.0, True)


def test_none_is_no_number():
    assert taken(nested, (ONES, 2), None, True) is None


def test_code_is_looked_for_once(monkeypatch):
    looked = []
    monkeypatch.setattr(_ahead, "entry", lambda *names: looked.append(names) or sum)

    @jit("uint64[::1]")
    def total(values):
        return values.sum()

    assert total(ONES) == total(ONES.copy()) == 6
    assert looked == [("test_cpu.test_code_is_looked_for_once.<locals>.total", "uint64[::1]")]


@pytest.mark.parametrize("wrong", ["uint63[::1]", "uint64[::1", "a b", "uint64[::1] int64"])
def test_a_wrong_signature_is_an_error(wrong):
    with pytest.raises((NameError, SyntaxError)):
        declared_kinds(wrong)


def test_a_free_threaded_python_is_refused():
    code = "import sys; sys._is_gil_enabled = lambda: False; import neardup_gpu.kernels._cpu"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ImportError: neardup_gpu needs Python's global lock; on a free-threaded Python, set PYTHON_GIL=1\n"
    )


# --------------------------------------------------------------------------------------------------------- threads


class Slow:
    """Stands for the compiled code of a parallel function: notes shares and threads, and waits, or fails."""

    def __init__(self, item_seconds=0.0, fails=()):
        self.item_seconds, self.fails = item_seconds, fails
        self.done, self.threads, self.now, self.most, self.lock = [], set(), 0, 0, threading.Lock()

    def __call__(self, begin, end, *arguments):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.threads.add(threading.get_ident())
        time.sleep(self.item_seconds * (end - begin))
        with self.lock:
            self.now -= 1
        for item in range(begin, end):
            if item in self.fails:
                raise self.fails[item]
        with self.lock:
            self.done += range(begin, end)


def function_of(code, least=1):
    """A parallel function whose compiled code is `code`."""

    def function(begin, end): ...

    made = parallel("", least=least)(function)
    made.entry = lambda arguments: code
    return made


@pytest.fixture
def helpers(monkeypatch):
    """As if no helper had been started yet, and this machine had four processors."""
    monkeypatch.setattr(_cpu, "_idle", [])
    monkeypatch.setattr(_cpu, "_started", 0)
    monkeypatch.setattr(_cpu, "most_threads", lambda: 4)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("least", [1, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 100, 1001])
def test_every_item_is_computed_once(helpers, threads, least, count):
    function = function_of(code := Slow(1e-6), least)
    with on_threads(threads):
        for _ in range(2):  # the second call knows how long an item takes
            function(np.int64(count))
            assert sorted(code.done) == list(range(count))
            code.done.clear()


def test_fewer_than_no_items_are_none():
    function_of(code := Slow())(-3)
    assert code.done == []


def test_a_number_of_items_is_whole():
    with pytest.raises(TypeError):
        function_of(Slow())(2.5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_more_threads_than_asked_compute_at_once(helpers, threads):
    function = function_of(code := Slow(1e-3))
    with on_threads(threads):
        function(60)
    assert code.most == len(code.threads) == threads


def test_many_callers_share_the_helpers(helpers):
    codes = [Slow(1e-4) for _ in range(20)]
    threads = [threading.Thread(target=function_of(code), args=(100,)) for code in codes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(sorted(code.done) == list(range(100)) for code in codes)
    assert len(_cpu._idle) == _cpu._started <= 4


def test_one_huge_item_leaves_the_others_to_other_threads(helpers):
    class Uneven(Slow):
        def __call__(self, begin, end):
            if begin == 0:
                time.sleep(0.2)
            super().__call__(begin, end)

    function = function_of(code := Uneven(1e-3))
    with on_threads(2):
        begun = time.perf_counter()
        function(100)
    assert sorted(code.done) == list(range(100))
    assert time.perf_counter() - begun < 0.29


def test_little_work_wakes_nobody(helpers, monkeypatch):
    """On a busy machine, a call that the system interrupts takes long enough to wake a helper; few are interrupted."""
    invite, woken = _cpu._invite, []
    monkeypatch.setattr(_cpu, "_invite", lambda work: woken.append(work) or invite(work))
    function = function_of(code := Slow())
    code.__class__ = type("Quick", (Slow,), {"__call__": lambda self, begin, end: self.done.extend(range(begin, end))})
    with on_threads(2):
        for _ in range(20):
            function(16)
    assert len(code.done) == 20 * 16 and len(woken) < 10


def test_work_that_seemed_to_take_long_is_found_to_be_little(helpers, monkeypatch):
    """A call that had waited for other threads would otherwise let every later call wake helpers."""
    woken = []
    monkeypatch.setattr(_cpu, "_invite", lambda work: woken.append(work))
    function = function_of(code := Slow())
    code.__class__ = type("Quick", (Slow,), {"__call__": lambda self, begin, end: self.done.extend(range(begin, end))})
    function._pace, function._trusted = 1.0, 12
    with on_threads(4):
        for _ in range(20):
            function(16)
        assert len(woken) >= 10
        woken.clear()
        for _ in range(20):
            function(16)
    assert len(woken) < 10 and len(code.done) == 40 * 16


@pytest.mark.parametrize(
    ("pace", "count", "expected"),
    [(1e-6, 99, 0), (1e-6, 150, 1), (1e-6, 399, 3), (1e-6, 10_000, 7), (math.inf, 100, 7), (0.0, 100, 0), (1.0, 0, 0)],
)
def test_each_thread_has_work_for_a_tenth_of_a_millisecond(pace, count, expected):
    assert _cpu._SharedItems(print, (), count, 1, 8).helpers(pace) == expected


def test_calls_within_helpers_do_not_wait_for_each_other(helpers):
    inner = Slow(1e-4)

    def outer(begin, end):
        for _ in range(begin, end):
            function_of(inner)(20)

    with on_threads(4):
        function_of(outer)(30)
    assert sorted(inner.done) == sorted(list(range(20)) * 30)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_error_ends_all_threads(helpers, threads):
    function = function_of(code := Slow(1e-3, fails={20: ValueError("item 20")}))
    with on_threads(threads), pytest.raises(ValueError, match="item 20"):
        function(1000)
    assert code.now == 0 and len(code.done) < 500
    done = len(code.done)
    time.sleep(0.05)
    assert len(code.done) == done  # nobody computes any more
    code.fails, code.done = {}, []
    with on_threads(threads):
        function(50)
    assert sorted(code.done) == list(range(50)) and _cpu._started == threads - 1


def test_of_two_errors_the_first_is_raised(helpers):
    class Both(Slow):
        def __call__(self, begin, end):
            both.wait()
            if threading.current_thread() is threading.main_thread():
                raise ValueError("first")
            time.sleep(0.1)
            raise ValueError("second")

    both = threading.Barrier(2)
    with on_threads(2), pytest.raises(ValueError, match="first"):
        function_of(Both())(100)


def test_an_error_of_a_helper_is_raised_in_the_caller(helpers):
    class Helpers(Slow):
        def __call__(self, begin, end):
            if threading.current_thread() is not threading.main_thread():
                raise MemoryError("too large")
            super().__call__(begin, end)

    with on_threads(2), pytest.raises(MemoryError, match="too large"):
        function_of(Helpers(1e-3))(1000)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_heard_within_a_second(helpers, threads):
    function = function_of(code := Slow(1e-3))  # 20 s of work
    stopping = threading.Timer(0.3, _thread.interrupt_main)
    stopping.start()
    begun = time.perf_counter()
    with on_threads(threads), pytest.raises(KeyboardInterrupt):
        function(20_000)
    assert time.perf_counter() - begun < 1.3
    done = len(code.done)
    time.sleep(0.3)
    assert len(code.done) == done


def test_interrupts_while_helpers_are_awaited(helpers):
    """Nobody gives up an array that a helper still writes."""

    class Helpers(Slow):
        def __call__(self, begin, end):
            if threading.current_thread() is threading.main_thread():
                begun.wait()
                time.sleep(0.01)
            else:
                begun.set()
                time.sleep(0.5)
            super().__call__(begin, end)

    begun = threading.Event()
    timers = [threading.Timer(after, _thread.interrupt_main) for after in (0.2, 0.3)]
    for each in timers:
        each.start()
    code = Helpers()
    with on_threads(2), pytest.raises(KeyboardInterrupt):
        function_of(code)(2)
    assert code.now == 0
    for each in timers:
        each.join()


def test_without_threads_that_can_be_started(helpers, monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    function = function_of(code := Slow(1e-4))
    with on_threads(3):
        monkeypatch.setattr(threading.Thread, "start", start)
        function(100)
        assert sorted(code.done) == list(range(100)) and len(code.threads) == 1
        monkeypatch.undo()
        monkeypatch.setattr(_cpu, "most_threads", lambda: 4)
        function(100)
    assert len(code.threads) == 3


def test_the_number_of_threads_is_the_calling_threads_own():
    found = []
    with on_threads(3):
        thread = threading.Thread(target=lambda: found.append(num_threads()))
        thread.start()
        thread.join()
        with alone():
            found.append(num_threads())
        found.append(num_threads())
        with pytest.raises(ValueError, match="x"), on_threads(2):
            raise ValueError("x")
        found.append(num_threads())
    assert found == [_cpu.most_threads(), 1, 3, 3]


# ----------------------------------------------------------------------------------- processes that end or are forked

PROGRAM = """
import os, sys, threading, time
import numpy as np
from neardup_gpu.kernels._cpu import on_threads, parallel

class Code:
    def __call__(self, begin, end, found):
        time.sleep(1e-3 * (end - begin))
        found[begin:end] = 1

def fill(begin, end, found): ...
fill = parallel("uint8[::1]")(fill)
fill.entry = lambda arguments: Code()

def works(count=60):
    found = np.zeros(count, np.uint8)
    with on_threads(2):
        fill(count, found)
    return bool(found.all())
"""


def run(code):
    return subprocess.run([sys.executable, "-c", PROGRAM + code], capture_output=True, text=True, timeout=60)


@forks
def test_forks_of_forks():
    code = """
assert works()
def in_child(body):
    child = os.fork()
    if not child:
        sys.exit(0 if works() and body() else 1)  # with all that an interpreter does at its end
    return os.waitpid(child, 0)[1] == 0
print(in_child(lambda: in_child(lambda: True)), works())
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("True True\n", "")


@forks
def test_a_fork_while_another_thread_is_in_a_kernel():
    code = """
assert works()
thread = threading.Thread(target=works, args=(500,))
thread.start()
time.sleep(0.05)
child = os.fork()
if not child:
    os._exit(0 if works() else 1)
print(os.waitpid(child, 0)[1], thread.is_alive())
thread.join()
print(works())
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("0 True\nTrue\n", "")


def weigh_in_another_process(size):
    from neardup_gpu.kernels import gather

    values = np.arange(size, dtype=np.uint64)
    with on_threads(2):
        found, _ = gather.cpu(values, np.arange(size + 1), np.arange(size)[::-1].copy())
    return bool((found == values[::-1]).all())


@forks
def test_a_pool_of_forked_processes():
    assert weigh_in_another_process(200_000)
    with ProcessPoolExecutor(3, get_context("fork")) as pool:
        assert all(pool.map(weigh_in_another_process, [200_000] * 12))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_ends_a_process_that_computes(threads):
    code = f"""
print("begun", flush=True)
with on_threads({threads}):
    fill(60_000, np.zeros(60_000, np.uint8))
"""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    sent = time.perf_counter()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert time.perf_counter() - sent < 2  # of which the interpreter's end takes a part
    assert said.endswith(b"KeyboardInterrupt\n")


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_in_compiled_code_is_heard_within_a_second(threads):
    shingles, multipliers = np.zeros(1 << 25, np.uint64), np.arange(1, 1 << 14, 2, dtype=np.uint32)
    everything = shingles, np.arange(0, len(shingles) + 1, 1 << 14), multipliers, multipliers  # ten seconds of work
    minhash.cpu(shingles[:1], np.arange(2), multipliers, multipliers)  # has the code loaded or compiled
    stopping = threading.Timer(0.3, _thread.interrupt_main)
    stopping.start()
    begun = time.perf_counter()
    with on_threads(threads), pytest.raises(KeyboardInterrupt):
        minhash.cpu(*everything)
    assert time.perf_counter() - begun < 1.3


@pytest.mark.parametrize("before", [True, False])
def test_calls_at_the_interpreters_exit(before):
    done = run(f"import atexit\nassert not {before} or works()\natexit.register(lambda: print(works()))\n")
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_a_daemon_thread_computes_as_the_interpreter_exits():
    code = """
threading.Thread(target=works, args=(5000,), daemon=True).start()
time.sleep(0.1)
print("end")
"""
    done = run(code)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)
