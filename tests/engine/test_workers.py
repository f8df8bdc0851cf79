"""What holds for tasks whoever runs them, and what holds for processes of this machine; test_ray.py has clusters."""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import chores
import pytest
from chores import wait_for

from neardup_gpu.engine import local as local_workers
from neardup_gpu.engine.attempts import Attempts, InlineWorkers
from neardup_gpu.engine.local import LocalWorkers
from neardup_gpu.engine.processors import most_threads
from neardup_gpu.engine.settings import Engine
from neardup_gpu.engine.tasks import ATTEMPTS, Task, TaskFailedError
from neardup_gpu.errors import ArgumentTypeError, InputError, NeardupError, ParameterError, ResourceError
from neardup_gpu.kernels import _launch
from neardup_gpu.tasks.workers import Workers


@pytest.fixture(scope="module")
def inline():
    with InlineWorkers() as started:
        yield started


@pytest.fixture(scope="module")
def local():
    with LocalWorkers(2) as started:
        yield started


@pytest.fixture(scope="module")
def ray():
    """Workers of a Ray instance with two processors, which is there before them and after them."""
    library = pytest.importorskip("ray")
    from neardup_gpu.engine.ray import RayWorkers

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
        library.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        try:
            with RayWorkers() as started:
                yield started
            assert library.is_initialized()
        finally:
            library.shutdown()


@pytest.fixture(scope="module", params=["inline", "local", "ray"])
def workers(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["local", "ray"])
def apart(request):
    """Workers in other processes."""
    return request.getfixturevalue(request.param)


def tasks_of(function, *arguments):
    return [Task("test", number, function, each, covers=f"part {number}") for number, each in enumerate(arguments)]


def results(workers, tasks):
    """The result of each task, by its number."""
    found = {task.number: result for task, result in workers.run(tasks)}
    assert len(found) == len(tasks)
    return found


@pytest.mark.parametrize("number", [1, 3])
def test_that_workers_keep_no_kernel_is_said_once(caplog, number):
    """They compile before their first task, of which nobody reads the result."""
    reason = f"/{number} cannot be written"
    with LocalWorkers(number, first=Task("first", 0, chores.compile_unkept, (reason,))) as started:
        assert results(started, tasks_of(chores.square, *((number,) for number in range(6))))[5] == 25
    (line,) = [line for line in caplog.messages if "compiled kernels" in line]
    assert line.startswith(f"compiled kernels cannot be kept: {reason}, so every process compiles them again")


class TestAnyWorkers:
    def test_each_task_is_given_with_its_result(self, workers):
        tasks = tasks_of(chores.square, *((number,) for number in range(20)))
        assert results(workers, tasks) == {number: number**2 for number in range(20)}
        assert results(workers, []) == {}

    def test_a_folder_is_seen(self, workers, tmp_path):
        workers.check_folder(str(tmp_path))
        assert list(tmp_path.iterdir()) == []

    def test_what_fails_once_is_done_again(self, workers, tmp_path):
        assert results(workers, tasks_of(chores.fail_once, (tmp_path / "mark", 5))) == {0: 5}

    def test_what_always_fails_ends_the_run_after_all_others(self, workers, tmp_path, caplog):
        tasks = [
            *tasks_of(chores.fail, (tmp_path / "log",)),
            *(Task("test", number, chores.write, (tmp_path / str(number),)) for number in range(1, 5)),
        ]
        caplog.set_level(logging.DEBUG, "neardup_gpu")
        with pytest.raises(TaskFailedError) as caught:
            results(workers, tasks)
        assert str(caught.value) == (
            "task 0 of stage test (part 0) failed 3 times, at last with: ValueError: all the time. What other tasks "
            "made is kept for the next run"
        )
        assert ATTEMPTS == 3 and (tmp_path / "log").read_text() == "begun\n" * 3
        assert all((tmp_path / str(number)).exists() for number in range(1, 5))
        traced = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
        assert sum("Traceback" in line and "chores.py" in line for line in traced) == 3

    def test_several_that_always_fail_are_counted(self, workers, tmp_path):
        tasks = tasks_of(chores.fail, *([(tmp_path / "log",)] * 3))
        with pytest.raises(TaskFailedError, match=r"^task 0 of .*; so did 2 other tasks\. "):
            results(workers, tasks)

    def test_an_error_of_the_user_is_raised_at_once(self, workers, tmp_path):
        tasks = tasks_of(chores.refuse, *([(tmp_path / "log",)] * 20))
        with pytest.raises(InputError, match=r"^crawl\.parquet: no column 'text'$"):
            results(workers, tasks)
        assert len((tmp_path / "log").read_text().splitlines()) < 20
        assert results(workers, tasks_of(chores.square, (3,))) == {0: 9}

    def test_an_error_of_the_user_that_cannot_be_sent_keeps_its_words(self, workers):
        with pytest.raises(NeardupError, match=r"^threshold must not be 7$"):
            results(workers, tasks_of(chores.refuse_stubbornly, ()))

    def test_an_error_that_cannot_be_sent(self, workers):
        with pytest.raises(TaskFailedError, match="at last with: Unsendable: out of words"):
            results(workers, tasks_of(chores.fail_unsendably, ()))

    def test_a_reader_that_stops(self, workers):
        for _ in workers.run(tasks_of(chores.square, *((number,) for number in range(20)))):
            break
        assert results(workers, tasks_of(chores.square, (3,))) == {0: 9}


class TestOtherProcesses:
    def test_a_task_whose_process_is_killed_is_done_again(self, apart, tmp_path):
        tasks = tasks_of(chores.die_once, *((tmp_path / str(number), number) for number in range(3)))
        assert results(apart, tasks) == {0: 0, 1: 1, 2: 2}

    def test_a_task_that_always_kills_its_process(self, apart, tmp_path):
        tasks = [
            Task("test", 0, chores.die, covers="rows 0 to 9"),
            *(Task("test", number, chores.write, (tmp_path / str(number),)) for number in range(1, 5)),
        ]
        with pytest.raises(TaskFailedError) as caught:
            results(apart, tasks)
        assert "task 0 of stage test (rows 0 to 9) failed 3 times" in str(caught.value)
        assert re.search("killed by SIGKILL, as systems do when memory runs out|WorkerCrashedError", str(caught.value))
        assert all((tmp_path / str(number)).exists() for number in range(1, 5))

    def test_a_result_that_cannot_be_sent(self, apart):
        with pytest.raises(TaskFailedError, match=r"what it returned \(function\) cannot be sent between processes"):
            results(apart, tasks_of(chores.return_a_function, ()))

    def test_what_is_logged_arrives_without_progress(self, apart, caplog):
        caplog.set_level(logging.INFO, "neardup_gpu")
        results(apart, tasks_of(chores.say, (7,)))
        assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
            ("WARNING", r"skipped 7\x1b rows")
        ]
        assert caplog.records[0].process != os.getpid()
        caplog.clear()
        caplog.set_level(logging.DEBUG, "neardup_gpu")
        results(apart, tasks_of(chores.say, (7,)))
        assert [record.getMessage() for record in caplog.records] == [r"skipped 7\x1b rows", "details"]


class TestLocalWorkers:
    def test_impossible_numbers(self):
        with pytest.raises(ParameterError, match="num_workers must be >= 1, got 0"):
            LocalWorkers(0)
        with pytest.raises(ArgumentTypeError, match="num_workers"):
            LocalWorkers("two")
        with pytest.raises(ParameterError, match="threads must be between 1 and"):
            LocalWorkers(1, threads=100_000)
        with pytest.raises(ParameterError, match="number of devices, 2, got 1"):
            LocalWorkers(1, devices=[0, 1])

    def test_an_interrupt_is_for_the_process_that_started_them(self, local):
        assert results(local, tasks_of(chores.interrupt, (5,))) == {0: 5}

    def test_workers_that_die_idle_are_replaced_and_cost_no_attempt(self, local):
        first = results(local, tasks_of(os.getpid, (), ()))
        for pid in set(first.values()):
            os.kill(pid, signal.SIGKILL)
        second = results(local, tasks_of(os.getpid, (), ()))
        assert not set(first.values()) & set(second.values())

    def test_surroundings(self, monkeypatch):
        monkeypatch.setenv("NEARDUP_TEST", "seen")
        with LocalWorkers(1, threads=1) as workers:
            found = results(workers, tasks_of(chores.surroundings, ("NEARDUP_TEST",)))
        assert found == {0: (b"", 1, 1, "seen")}

    def test_tasks_for_devices_go_where_devices_are(self, tmp_path):
        with LocalWorkers(2, devices=["GPU-7"]) as workers:
            on_device = [Task("test", number, chores.visible, on_device=True) for number in range(5)]
            assert set(results(workers, on_device).values()) == {"GPU-7"}
            here, there = tmp_path / "here", tmp_path / "there"
            both = tasks_of(chores.where, ((here, there),), ((there, here),))
            assert sorted(results(workers, both).values()) == ["", "GPU-7"]

    def test_devices_are_those_that_this_process_sees(self, monkeypatch):
        monkeypatch.setattr(_launch, "simulated", lambda: True)
        for shown, device, expected in (("3, 5,7", None, ["3", "5"]), ("3,5", 1, ["5"]), ("", None, ["0"])):
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
            workers, engine = Workers(number=2).start(Engine(backend="gpu", device=device))
            assert workers._devices == expected and engine.device is None

    def test_devices_of_a_cluster(self, monkeypatch):
        """This machine needs none where a cluster's are named; one of these cannot be."""
        monkeypatch.delenv("NEARDUP_BACKEND", raising=False)
        of_ray = Workers(runner="ray")
        assert of_ray.resolved(Engine(backend="gpu", gpu_memory="2GB")).backend == "gpu"
        assert of_ray.resolved(Engine(backend="cpu")).backend == "cpu"
        with pytest.raises(ParameterError, match="device 1: a Ray cluster gives a GPU to each process; leave it out"):
            of_ray.resolved(Engine(device=1))

    @pytest.mark.parametrize("threads", [1, 2])
    def test_what_each_does_first(self, tmp_path, threads):
        """Before there is a task, and again where a process died; it has no result, and its failure does no harm.

        On Linux workers are forked from a process that has done it.
        """
        if threads > most_threads():
            pytest.skip("this machine has one processor")
        log = tmp_path / "log"
        times = 1 if local_workers.FORKS else 2
        with LocalWorkers(2, threads=threads, first=Task("first", 0, chores.fail, (log,))) as workers:
            wait_for(lambda: log.exists() and log.read_text() == "begun\n" * times)
            pids = results(workers, tasks_of(os.getpid, (), ()))
            for pid in set(pids.values()):
                os.kill(pid, signal.SIGKILL)
            assert results(workers, tasks_of(chores.square, (2,), (3,))) == {0: 4, 1: 9}
            assert (len(log.read_text().splitlines()) == 1) == (times == 1)

    @pytest.mark.skipif(not local_workers.FORKS, reason="workers are not forked here")
    def test_the_last_tasks_use_the_processors_of_idle_workers(self):
        """Of five tasks for four workers, the fifth has all processors; of six, the last two have half of them each."""

        def shares(number, workers):
            attempts = Attempts([Task("chore", place, os.getpid) for place in range(number)])
            begun = iter(lambda: attempts.take(False), None)
            return [attempts.share(each, workers) for each in begun]

        assert shares(5, 4) == [1, 1, 1, 1, 4] and shares(6, 4) == [1, 1, 1, 1, 2, 2]
        assert shares(7, 4) == [1] * 7 and shares(8, 4) == [1] * 8 and shares(1, 3) == [3]

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_a_task_finds_its_share_of_processors(self, number):
        with LocalWorkers(2, threads=1) as workers:
            found = results(workers, tasks_of(most_threads, *[()] * number))
            assert found == dict.fromkeys(range(number), 1) | ({number - 1: most_threads()} if number % 2 else {})

    def test_the_process_that_workers_are_forked_from_may_die(self, tmp_path):
        here, there = tmp_path / "here", tmp_path / "there"
        with LocalWorkers(2, threads=1) as workers:
            results(workers, tasks_of(chores.where, ((here, there),), ((there, here),)))  # so that both are there
            before = {worker.process.pid for worker in workers._workers}
            workers._nursery._process.kill()
            workers._nursery._process.wait()
            assert set(results(workers, tasks_of(os.getpid, (), ())).values()) <= before  # they live on
            marks = [(tmp_path / str(number), number) for number in range(3)]
            assert results(workers, tasks_of(chores.die_once, *marks)) == {0: 0, 1: 1, 2: 2}
            after = set(results(workers, tasks_of(os.getpid, (), (), (), ())).values())
        wait_for(lambda: not any(map(lives, before | after)))

    @pytest.mark.skipif(not local_workers.FORKS, reason="workers are not forked here")
    @pytest.mark.parametrize("chore", [chores.refuse_to_fork, chores.refuse_to_fork_beside_a_thread])
    def test_where_the_system_has_no_room_for_another_process(self, chore):
        said = r"^no more worker processes can be started \(Resource temporarily unavailable\); ask for fewer, or raise"
        with pytest.raises(ResourceError, match=said), LocalWorkers(2, threads=1, first=Task("first", 0, chore)) as two:
            results(two, tasks_of(chores.square, (2,)))

    @pytest.mark.skipif(not local_workers.FORKS, reason="workers are not forked here")
    def test_where_something_has_started_a_thread_nothing_is_forked(self):
        with LocalWorkers(2, threads=1, first=Task("first", 0, chores.leave_a_thread)) as workers:
            assert results(workers, tasks_of(chores.num_threads_left, (), ())) == {0: 0, 1: 0}
            pids = set(results(workers, tasks_of(os.getpid, (), (), ())).values())
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            assert results(workers, tasks_of(chores.square, (2,))) == {0: 4}

    @pytest.mark.parametrize("threads", [1, 2])
    def test_after_workers_were_killed_again_and_again_fewer_go_on(self, threads, tmp_path, caplog):
        """Six are killed in a row; then a single worker does all tasks."""
        if threads > most_threads():
            pytest.skip("this machine has one processor")
        with LocalWorkers(4, threads=threads) as workers:
            tasks = tasks_of(chores.die_at_first, *[(tmp_path / "calls", 6, number) for number in range(6)])
            assert results(workers, tasks) == {number: number for number in range(6)}
            assert sum(worker is not None for worker in workers._workers) == 1
        said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert [line.rpartition("; ")[2] for line in said] == ["2 of 4 workers go on", "1 of 2 workers go on"]
        for line in said:
            assert re.search(
                r"was killed by SIGKILL, as systems do when memory runs out \(it had used up to \S+ .B", line
            )

    @pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
    def test_a_single_worker_that_is_killed_again_and_again(self, name):
        with LocalWorkers(2, threads=1) as workers, pytest.raises(TaskFailedError) as caught:
            results(workers, tasks_of(chores.die_by, (name,)))
        assert re.search(
            rf"failed 3 times, at last with: its process was killed by {name}.* of memory", str(caught.value)
        )
        assert "ask for fewer workers (--workers), or bound it with --memory" in str(caught.value)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_workers_that_are_killed_before_they_are_ready(self, threads, monkeypatch, caplog):
        """Fewer are started, and in the end one line names the signal, the memory and what to do."""
        if threads > most_threads():
            pytest.skip("this machine has one processor")
        kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        monkeypatch.setattr(local_workers, "_PROGRAM", kill)
        with pytest.raises(ResourceError) as caught, LocalWorkers(4, threads=threads) as workers:
            results(workers, tasks_of(chores.square, *[(number,) for number in range(4)]))
        assert re.match(
            r"worker processes cannot be started: 3 in a row were lost before they were ready, the last one was killed "
            r"by SIGKILL, as systems do when memory runs out \(.* of this machine's memory are in use now\); if memory",
            str(caught.value),
        )
        assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == [
            "2 of 4 workers go on",
            "1 of 2 workers go on",
        ]

    def test_no_process_is_left(self):
        with LocalWorkers(2) as workers:
            pids = set(results(workers, tasks_of(os.getpid, (), (), (), ())).values())
        assert pids and not any(map(lives, pids))


def test_workers_start_before_anything_slow_is_imported():
    code = (
        "import sys, neardup_gpu.engine.local\n"
        "from neardup_gpu.engine.processors import most_threads\n"
        "slow = [name for name in ('numba', 'pyarrow', 'numpy') if name in sys.modules]\n"
        "before = most_threads()\n"
        "import numba\n"
        "print(slow, before == numba.config.NUMBA_NUM_THREADS)"
    )
    for threads in ({}, {"NUMBA_NUM_THREADS": "1"}):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **threads}
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"[] True\n"


# ------------------------------------------------------------------------------------------------------ ends of parents

PARENT = """
import sys
import chores
from neardup_gpu.engine.local import LocalWorkers
from neardup_gpu.engine.tasks import Task
with LocalWorkers(2) as workers:
    for _ in workers.run([Task("test", number, chores.sleep, (path,)) for number, path in enumerate(sys.argv[1:])]):
        pass
"""  # a script without a guard for __main__


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return sys.platform != "linux"


@pytest.fixture
def parent(tmp_path):
    """A process with two workers, each with a task that never ends; and the numbers of the workers."""
    script, marks = tmp_path / "script.py", [tmp_path / "first", tmp_path / "second"]
    script.write_text(PARENT)
    process = subprocess.Popen(
        [sys.executable, script, *marks],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(lambda: all(mark.exists() for mark in marks) or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        yield process, [int(mark.read_text()) for mark in marks]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


class TestEnds:
    def test_an_interrupt_of_all_processes_as_at_a_terminal(self, parent):
        process, pids = parent
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1 and errors.endswith("KeyboardInterrupt\n")
        assert not any(map(lives, pids))

    def test_workers_end_with_a_killed_parent(self, parent):
        process, pids = parent
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(lives, pids)))
        assert process.stderr.read() == ""
