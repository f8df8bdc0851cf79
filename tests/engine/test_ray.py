"""Workers of a Ray cluster, here two raylets of one machine; what holds for all workers is in test_workers.py."""

import os
import signal
import socket
import subprocess
import sys
import threading

import chores
import pytest
from chores import wait_for
from test_workers import lives, results, tasks_of

from neardup_gpu.engine.tasks import Task
from neardup_gpu.errors import BackendUnavailableError, ParameterError, ResourceError

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

from neardup_gpu.engine import ray as engine  # noqa: E402
from neardup_gpu.engine.ray import RayWorkers  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one raylet with a processor and two things that Ray takes for GPUs."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
        head = {"num_cpus": 1, "num_gpus": 2, "_system_config": chores.QUICK}
        whole = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield whole
        finally:
            ray.shutdown()
            whole.shutdown()


def started(*arguments, **options):
    """Start workers, let them do nothing, and stop them."""
    with RayWorkers(*arguments, **options) as workers:
        assert list(workers.run([])) == []


class TestCluster:
    def test_tasks_for_devices_go_to_one_process_that_has_one(self, cluster, tmp_path):
        with RayWorkers(cluster.address, num_gpus=1) as workers:
            on_device = [Task("test", number, chores.visible, on_device=True) for number in range(3)]
            assert results(workers, [*on_device, Task("test", 3, chores.visible)]) == {0: "0", 1: "0", 2: "0", 3: ""}
            on_device = [Task("test", number, os.getpid, on_device=True) for number in range(3)]
            assert len(set(results(workers, on_device).values())) == 1
            dying = Task("test", 0, chores.die_once, (tmp_path / "mark", 5), on_device=True)
            assert results(workers, [dying]) == {0: 5}

    def test_each_device_has_a_process_for_its_life(self, cluster, tmp_path):
        """All devices of the cluster; what needs none sees none. A process that dies, or cannot have its device yet,
        keeps nobody else waiting."""
        here, there = tmp_path / "here", tmp_path / "there"
        with RayWorkers(cluster.address, num_gpus=None) as workers:
            given = (here, there), (there, here)
            both = [Task("test", at, chores.where, (each,), on_device=True) for at, each in enumerate(given)]
            assert sorted(results(workers, both).values()) == ["0", "1"]
            on_device = [Task("test", number, os.getpid, on_device=True) for number in range(6)]
            assert len(set(results(workers, on_device).values())) == 2
            assert results(workers, [Task("test", 0, chores.visible)]) == {0: ""}
            with RayWorkers(num_gpus=None) as others:
                waiting = results(others, [Task("test", 0, chores.square, (3,))])
                assert waiting == {0: 9}
            dying = Task("test", 0, chores.die_once, (tmp_path / "mark", 5), on_device=True)
            assert results(workers, [dying, *on_device[1:3]])[0] == 5

    def test_a_device_that_is_lost(self, cluster, tmp_path):
        """Its tasks, and those of processes that were idle there, are done where devices are left."""
        node = cluster.add_node(num_cpus=0, num_gpus=1)
        with RayWorkers(cluster.address, num_gpus=None) as workers:
            marks = [tmp_path / str(number) for number in range(3)]
            given = zip(marks, [*marks[1:], marks[0]], strict=True)
            all_at_once = [Task("test", at, chores.where, (each,), on_device=True) for at, each in enumerate(given)]
            assert len(results(workers, all_at_once)) == 3
            pids = set(results(workers, [Task("test", at, os.getpid, on_device=True) for at in range(9)]).values())
            cluster.remove_node(node, allow_graceful=False)
            wait_for(lambda: sum(map(lives, pids)) <= 2)
            for _ in range(2):
                assert results(workers, [Task("test", 0, chores.square, (4,), on_device=True)]) == {0: 16}
            wait_for(lambda: ray.cluster_resources()["GPU"] == 2)  # which the tests below count on

    def test_a_folder_that_is_seen_and_one_that_is_not(self, cluster, tmp_path, monkeypatch):
        with RayWorkers(cluster.address, threads=1) as workers:
            workers.check_folder(str(tmp_path))
            workers.check_folder(tmp_path.as_uri())
            monkeypatch.chdir(tmp_path)
            workers.check_folder(".")
            if sys.platform == "linux":  # where each process sees a folder of its own under one name
                with pytest.raises(ResourceError, match=r"/proc/self/cwd: node .* does not see what this machine"):
                    workers.check_folder("/proc/self/cwd")
            assert list(tmp_path.iterdir()) == []
            found = results(workers, tasks_of(chores.surroundings, ("NEARDUP_TEST",)))
        assert found == {0: (b"", 1, 1, None)}

    def test_a_cluster_that_is_too_small(self, cluster):
        with pytest.raises(ResourceError, match=r"has fewer processors \(1\) than the 2 that num_cpus_a_task"):
            started(cluster.address, num_cpus_a_task=2)
        with pytest.raises(ResourceError, match="has 2 GPUs, fewer than 3"):
            started(cluster.address, num_gpus=3)
        assert not ray.is_initialized()

    def test_another_version_of_ray(self, cluster, monkeypatch):
        monkeypatch.setattr(ray, "__version__", "1.0.0")
        with pytest.raises(ResourceError, match=r"another version of Ray or of Python: .*Ray: 1\.0\.0"):
            started(cluster.address)

    def test_the_handler_of_sigterm_stays(self, cluster):
        before = signal.getsignal(signal.SIGTERM)
        with RayWorkers(cluster.address):
            assert signal.getsignal(signal.SIGTERM) is before

    def test_tasks_of_a_node_that_is_lost_are_done_elsewhere(self, cluster, tmp_path, capfd):
        second, log, gone = cluster.add_node(num_cpus=1), tmp_path / "log", tmp_path / "gone"

        def begun():
            return [int(pid) for pid in log.read_text().split()] if log.exists() else []

        def lose():
            wait_for(lambda: len(begun()) == 2)
            cluster.remove_node(second, allow_graceful=False)
            wait_for(lambda: not all(map(lives, begun())))
            gone.touch()

        with RayWorkers(cluster.address) as workers:
            assert workers.num_workers == 2
            losing = threading.Thread(target=lose)
            losing.start()
            try:
                found = results(workers, tasks_of(chores.stay, (log, gone), (log, gone)))
            finally:
                losing.join()
        assert found == {0: "stayed", 1: "stayed"}
        assert len(begun()) == 3
        assert not ray.is_initialized()
        assert "raylet" not in capfd.readouterr().out

    def test_another_version_of_this_package_on_a_node(self, cluster, tmp_path, monkeypatch):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")  # a folder that Ray's workers look into first
        package = tmp_path / "neardup_gpu"
        (package / "engine").mkdir(parents=True)
        (package / "__init__.py").write_text("__version__ = '0.0.1'")
        (package / "definitions.py").write_text("DEFINITIONS = 1")
        for path in ("engine/__init__.py", "engine/ray.py"):
            (package / path).write_text("from neardup_gpu import definitions\n")
        node = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)})
        try:
            with pytest.raises(ResourceError, match=r"it has neardup_gpu 0\.0\.1 with definitions 1; install"):
                started(cluster.address)
            (package / "engine" / "ray.py").unlink()
            with pytest.raises(ResourceError, match=r"cannot be imported \(No module named 'neardup_gpu\.engine\.ray'"):
                started(cluster.address)
        finally:
            cluster.remove_node(node, allow_graceful=False)


class TestNoCluster:
    def test_without_ray(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(BackendUnavailableError, match=r"pip install 'neardup-gpu\[ray\]'"):
            started()

    @pytest.mark.parametrize("address", ["nonsense", "ray://head:10001", "head:0", "head:port", ":6379"])
    def test_what_is_no_address(self, address):
        with pytest.raises(ParameterError, match="is host:port, auto or local"):
            started(address)

    def test_nothing_answers(self, monkeypatch):
        with pytest.raises(BackendUnavailableError, match=r"^no Ray cluster answers at 127\.0\.0\.1:1 \("):
            started("127.0.0.1:1")
        monkeypatch.setattr(engine, "PATIENCE", 0.1)
        timed_out = pytest.raises(BackendUnavailableError, match=r"no Ray cluster answers at .*timed out")
        with socket.create_server(("127.0.0.1", 0)) as mute, timed_out:
            started(f"127.0.0.1:{mute.getsockname()[1]}")

    def test_something_else_answers(self):
        def answer():
            with other.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with socket.create_server(("127.0.0.1", 0)) as other:
            answering = threading.Thread(target=answer)
            answering.start()
            with pytest.raises(BackendUnavailableError, match="is not a Ray cluster"):
                started(f"127.0.0.1:{other.getsockname()[1]}")
            answering.join()


INTERRUPTED = """
import sys
import chores
from neardup_gpu.engine.ray import RayWorkers
from neardup_gpu.engine.tasks import Task
with RayWorkers("local") as workers:
    for _ in workers.run([Task("test", 0, chores.sleep, (sys.argv[1],))]):
        pass
"""


def test_an_interrupt_of_all_processes_as_at_a_terminal(tmp_path):
    script, mark = tmp_path / "script.py", tmp_path / "mark"
    script.write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, script, mark],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(lambda: mark.exists() or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGINT
        assert errors.endswith("KeyboardInterrupt\n")
        wait_for(lambda: not lives(int(mark.read_text())))
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
