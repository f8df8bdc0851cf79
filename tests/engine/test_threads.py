"""Jobs of several threads, of streams that start jobs, and of processes that were forked."""

import logging
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu.engine import choice, threads
from neardup_gpu.engine.compiling import Compiling
from neardup_gpu.engine.processors import most_threads
from neardup_gpu.errors import BackendUnavailableError, ResourceError
from neardup_gpu.kernels._cpu import num_threads

TABLE = pa.table({"text": [f"some words that are here {i % 40} and there" * 5 for i in range(80)]})
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def num_kept(threads=None, **options):
    engine = nd.Engine(backend="cpu", threads=threads)
    return sum(flat(nd.dedup, TABLE, engine=engine, **options).documents["kept"].to_pylist())


def in_a_fork(run):
    """What a forked process finds, as text; it is killed after 30 seconds."""
    import signal

    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        try:
            os.write(writer, repr(run()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        found = answer.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return found


@forks
class TestForked:
    def test_after_use(self):
        assert num_kept() == 40
        assert in_a_fork(num_kept) == "40"
        assert in_a_fork(lambda: in_a_fork(num_kept)) == "'40'"

    def test_more_threads_than_one_are_asked_for(self):
        assert num_kept(threads=most_threads()) == 40
        assert in_a_fork(lambda: num_kept(threads=most_threads())) == "40"

    def test_a_thread_of_the_new_process_has_all_threads(self):
        num_kept()

        def in_a_thread():
            found = []
            thread = threading.Thread(target=lambda: found.append((num_kept(), num_threads())))
            thread.start()
            thread.join()
            return found

        assert in_a_fork(in_a_thread) == f"[(40, {num_threads()})]"

    @pytest.mark.parametrize("from_thread", [False, True])
    def test_while_another_thread_has_a_job(self, from_thread):
        num_kept()
        begun, stop = threading.Event(), threading.Event()

        def progress(*_):
            begun.set()
            stop.wait(60)

        job = threading.Thread(target=num_kept, kwargs={"progress": progress})
        job.start()
        begun.wait(60)
        found = []
        forking = threading.Thread(target=lambda: found.append(in_a_fork(num_kept)))
        if from_thread:
            forking.start()
            forking.join()
        else:
            forking.run()
        stop.set()
        job.join()
        assert found == ["40"]

    def test_a_fork_waits_until_another_thread_has_compiled(self):
        from numba.core.compiler_lock import global_compiler_lock

        from neardup_gpu.kernels import _numba  # noqa: F401 (whoever compiles has imported it)

        compiling, found = threading.Event(), []

        def compile_for_long():
            with global_compiler_lock:
                compiling.set()
                threading.Event().wait(0.5)
                found.append("compiled")

        thread = threading.Thread(target=compile_for_long)
        thread.start()
        compiling.wait()
        assert in_a_fork(lambda: (list(found), num_kept())) == "(['compiled'], 40)"
        thread.join()

    def test_cuda_is_not_started_again(self, monkeypatch):
        def as_in_a_child(devices):
            monkeypatch.setattr(choice, "_forked", False)
            monkeypatch.setattr(choice, "_driver", choice.cache(lambda: (13000, devices)))
            choice._driver()
            choice._in_child()

        as_in_a_child(devices=0)
        assert not choice._forked
        as_in_a_child(devices=1)
        with pytest.raises(BackendUnavailableError, match=r"forked from one that had used CUDA; .* 'spawn'"):
            choice.resolve("gpu")
        monkeypatch.undo()
        choice._in_child()


def test_a_pool_of_forked_processes():
    """In an interpreter of its own."""
    code = """
import multiprocessing, sys
import pyarrow as pa
import neardup_gpu as nd
table = pa.table({"text": [f"some words that are here {i % 40} and there" * 5 for i in range(80)]})
def job(_=None):
    return sum(nd.dedup(table, engine="cpu").documents["kept"].to_pylist())
if __name__ == "__main__":
    job()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map_async(job, range(4)).get(60))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[40, 40, 40, 40]\n", "", 0)


def test_two_hundred_threads_call_stages_at_once():
    code = """
import threading
import neardup_gpu as nd
recipe = nd.Recipe(method=nd.MinHash(k=6, s=4, r=2))
texts = [f"some words that are here {i}" for i in range(2000)]
together, found = threading.Barrier(200), []
def stages():
    shingles = nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe)
    return shingles.values.tobytes(), recipe.method.sketch(shingles).tobytes()
def call():
    together.wait()
    found.append(stages())
calls = [threading.Thread(target=call) for _ in range(200)]
for each in calls:
    each.start()
for each in calls:
    each.join()
print(found == [stages()] * 200)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NEARDUP_BACKEND": "cpu"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_a_stream_that_starts_a_job_is_refused():
    def batches():
        nd.dedup(TABLE, engine="cpu")
        yield from TABLE.to_batches()

    stream = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(ResourceError, match="has started another job, which would wait for the first one for ever"):
        nd.dedup(stream, engine="cpu")
    assert num_kept() == 40


def test_a_job_that_waits_for_another_says_so(caplog):
    caplog.set_level(logging.INFO, "neardup_gpu")
    found = []
    with threads.on_threads(None):
        waiting = threading.Thread(target=lambda: found.append(num_kept()))
        waiting.start()
        waiting.join(0.3)
        assert found == []
        assert "waiting until another job of this process has ended" in caplog.messages
    waiting.join()
    assert found == [40]


def test_a_job_within_a_job_of_the_same_thread():
    found = []
    assert num_kept(progress=lambda *_: found or found.append(num_kept())) == 40
    assert found == [40]


@pytest.mark.parametrize(
    "error", [MemoryError(), MemoryError("of 8 GB"), pa.ArrowMemoryError("malloc of size 8 failed")]
)
def test_too_little_memory_is_one_line(error):
    with (
        pytest.raises(ResourceError, match=r"memory does not suffice.*; use a machine or a limit") as raised,
        threads.on_threads(None),
    ):
        raise error
    assert str(error) in str(raised.value)


def test_too_few_threads_are_one_line(monkeypatch):
    start = threading.Thread.start
    left = [1]

    def refused(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(threads, "_startable", 1)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "4")
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(ResourceError, match=r"^only 2 of 4 threads can be started; raise the limit of processes"):
        num_kept()
    with pytest.raises(ResourceError, match=r"^no more threads can be started"):
        num_kept(threads=1)  # the thread that reads
    monkeypatch.undo()
    assert num_kept() == 40


def test_other_errors_are_what_they_were():
    with pytest.raises(RuntimeError, match="another"), threads.on_threads(None):
        raise RuntimeError("another")


def test_what_others_began_to_compile_before_is_not_counted():
    """Of a stage that begins while another thread compiles."""
    compiling = Compiling()
    compiling.hear(False)
    assert (compiling.number, compiling.seconds, compiling.active) == (0, 0.0, False)
    compiling.hear(True)
    assert compiling.active
    compiling.hear(False)
    assert compiling.number == 1 and not compiling.active
