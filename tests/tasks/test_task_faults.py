"""Faults of a job of tasks: each ends in the same bits as a run that nothing disturbs, or in one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from chores import QUICK, wait_for
from faults import judge
from faults.cases_output import DISKS, needs_mounts
from grids import some
from troubled import STAGES, bits, documents, run

from neardup_gpu import Recipe, SimHash
from neardup_gpu.engine.tasks import TaskFailedError
from neardup_gpu.errors import DamagedError, InputError, OutputError, ResourceError
from neardup_gpu.store import leases, locks
from neardup_gpu.store.places import Place

FEW = ["sketch", "collide", "write"]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A folder with documents, the work of a whole job, and its result, which nothing disturbed."""
    folder = documents(tmp_path_factory.mktemp("calm"))
    run(folder, keep_work=True)
    return folder


@pytest.fixture
def box(calm, tmp_path):
    """A folder with the documents."""
    shutil.copytree(calm / "in", tmp_path / "in", copy_function=shutil.copy2)
    return tmp_path


@pytest.fixture
def done(calm, box):
    """A folder with the documents and the work of a whole job of them, but for what is in the result."""
    run(box, keep_work=True)
    shutil.rmtree(box / "out")
    return box


def same(calm, folder):
    assert bits(folder) == bits(calm / "out")


def test_the_job_has_all_stages(calm):
    assert {path.name for path in (calm / "work").iterdir() if path.is_dir()} == set(STAGES)
    assert all(len(list((calm / "work" / stage).glob("*.json"))) >= 1 for stage in STAGES)


class TestWorkers:
    @pytest.mark.parametrize("stages", some([STAGES], [FEW]), ids=["stages"])
    def test_killed_twice(self, calm, box, monkeypatch, stages):
        troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
        marks = [box / "marks" / f"{stage}-{which}" for stage in STAGES for which in ("first", "second")]
        for mark in marks:
            if mark.name.rpartition("-")[0] not in stages:
                mark.touch()
        run(box, number=2)
        same(calm, box / "out")
        assert all(mark.exists() for mark in marks)

    def test_stragglers_that_finish_after_their_replacements(self, calm, box, monkeypatch):
        troubled.trouble(monkeypatch.setattr, troubled.late, box / "marks")
        run(box)
        same(calm, box / "out")

    @pytest.mark.parametrize("stage, covers", [("sketch", r"1\.parquet.*"), ("verify", "part 2 of 2")])
    def test_a_task_that_fails_thrice(self, calm, box, monkeypatch, stage, covers):
        troubled.trouble(monkeypatch.setattr, troubled.failing, box / "marks")
        (box / "marks" / f"{stage}-1").touch()
        with pytest.raises(TaskFailedError, match=rf"^task 1 of stage {stage} \(.*{covers}\) failed 3 times, .*kept"):
            run(box)
        assert not (box / "out").exists() and not list(box.glob(".out*"))
        recorded = {path.name for path in (box / "work" / stage).glob("*.json")}
        assert recorded == {f"{number:06}.json" for number in range(3 if stage == "sketch" else 2) if number != 1}
        (box / "marks" / f"{stage}-1").unlink()
        assert run(box)["tasks"]["resumed"] >= len(recorded)
        same(calm, box / "out")


DRIVER = """
import os, sys
from pathlib import Path
sys.path.insert(0, {support!r})
import troubled
troubled.trouble(setattr, troubled.{trouble}, Path("marks"))
troubled.run(Path.cwd())
"""

FULL = """
import os, sys
from pathlib import Path
sys.path.insert(0, {support!r})
import troubled
from neardup_gpu.errors import NeardupError
own_mounts()
mount("work", "160k")
for size in ("160k", "400k", "800k", "4m"):
    assert libc.mount(b"tmpfs", b"work", b"tmpfs", 32, b"size=" + size.encode()) == 0
    try:
        line = troubled.run(Path.cwd())["tasks"]["resumed"]
    except NeardupError as error:
        assert not Path("out").exists()
        line = error
    with open("lines", "a") as lines:
        print(line, file=lines)
"""

INTERRUPTED = """
from pathlib import Path
import troubled
troubled.run(Path.cwd(), number=2)
"""

SUPPORT = str(Path(troubled.__file__).parent)


def drive(folder, trouble, before=""):
    """Run the job in a process of its own, which runs some statements first; returns how it ended."""
    return judge._fork_server().run(folder, before + DRIVER.format(support=SUPPORT, trouble=trouble), {})


class TestDriver:
    @pytest.mark.parametrize("stages", some([STAGES], [FEW]), ids=["stages"])
    def test_killed_and_started_again(self, calm, box, stages):
        (box / "marks").mkdir()
        for stage in set(STAGES) - set(stages):
            (box / "marks" / f"{stage}-dead").touch()
        for stage in stages:
            ended = drive(box, "dead_after")
            assert ended.status == -signal.SIGKILL, ended.errors
            assert (box / "marks" / f"{stage}-dead").exists()
            assert not (box / "out").exists()
        ended = drive(box, "dead_after")
        assert ended.status == 0, ended.errors
        same(calm, box / "out")
        begun = (box / "marks" / "log").read_text().splitlines()
        assert len(begun) == len(set(begun))
        assert not (box / "work").exists()
        assert json.loads((box / "out" / "report.json").read_text())["tasks"]["resumed"] > 0

    def test_a_full_disk(self, calm, box):
        """What was written before is kept, and the same command goes on when there is room."""
        needs_mounts()
        ended = judge._fork_server().run(box, DISKS + FULL.format(support=SUPPORT), {})
        assert ended.status == 0, ended.errors
        same(calm, box / "out")
        *lines, resumed = (box / "lines").read_text().splitlines()
        assert len(lines) == 3 and int(resumed) > 10
        assert all("/work" in line and ("disk" in line or "room" in line) for line in lines)

    def test_files_that_may_not_grow(self, calm, box):
        """The same where the system refuses a write."""
        limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({0}, -1))\n"
        for most in (3_000, 7_000):
            ended = drive(box, "noted", limit.format(most))
            (line,) = [line for line in ended.errors.splitlines() if line.startswith("neardup: ")]
            assert ended.status == 2 and "arge" in line
            assert not (box / "out").exists() and not list(box.glob(".out*"))
        ended = drive(box, "noted")
        assert ended.status == 0, ended.errors
        same(calm, box / "out")
        begun = (box / "marks" / "log").read_text().splitlines()
        assert len(begun) == len(set(begun))

    def test_an_interrupt_of_all_processes_as_at_a_terminal(self, calm, box):
        script = box / "script.py"
        script.write_text(INTERRUPTED)
        process = subprocess.Popen(
            [sys.executable, script],
            cwd=box,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            interrupt_after(process, box / "work" / "copies")
            _, errors = process.communicate(timeout=30)
            assert process.returncode == -signal.SIGINT
            assert errors.endswith("KeyboardInterrupt\n")
            with pytest.raises(ProcessLookupError):
                os.killpg(process.pid, 0)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        assert not (box / "out").exists() and not list(box.glob(".out*"))
        script.unlink()
        assert run(box)["tasks"]["resumed"] >= 3
        same(calm, box / "out")

    def test_an_interrupt_of_the_command(self, calm, box):
        command = [sys.executable, "-m", "neardup_gpu", "dedup", "in", "--output", "out", "--work-dir", "work"]
        command += ["--workers", "2", "--partitions", "2", "--slice-bytes", "4000", "--keep", "longest"]
        command += ["--threshold", "0.7", "--text-column", "text", "--id-column", "id", "--check", "0", "--json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            command, cwd=box, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            interrupt_after(process, box / "work" / "copies")
            _, errors = process.communicate(timeout=30)
            assert process.returncode == 130, errors
            said = [line for line in errors.splitlines() if line.startswith("neardup: ")]
            assert said == ["neardup: interrupted; the same command goes on with what is in work"]
            assert "Traceback" not in errors and not (box / "out").exists() and not list(box.glob(".out*"))
            with pytest.raises(ProcessLookupError):
                os.killpg(process.pid, 0)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        again = subprocess.run(command, cwd=box, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(again.stdout)["tasks"]["resumed"] >= 3
        (box / "out" / "job.toml").unlink()  # the options of the command, which a call in Python does not write
        same(calm, box / "out")
        assert not (box / "work").exists()


def interrupt_after(process, path):
    """Send SIGINT to a process and its children, as a terminal does, once a path is there."""
    wait_for(lambda: path.exists() or process.poll() is not None)
    assert process.poll() is None, process.stderr.read()
    os.killpg(process.pid, signal.SIGINT)


class TestFiles:
    def test_damaged_while_the_job_runs(self, calm, box, monkeypatch):
        troubled.trouble(monkeypatch.setattr, troubled.damaging, box / "marks")
        run(box)
        same(calm, box / "out")
        assert len(list((box / "marks").iterdir())) > 20

    @pytest.mark.parametrize(
        "kind",
        some(
            ["cut", "flipped", "empty", "missing", "of another task", "of no exchange"],
            ["cut", "flipped", "missing", "of another task"],
        ),
    )
    def test_exchanges_between_two_runs(self, calm, done, kind):
        named = [path for path in sorted((done / "work").glob("*/*")) if path.suffix != ".json"]
        for path in named[:: 1 if kind == "missing" else 3]:
            data = bytearray(path.read_bytes())
            if kind == "cut":
                path.write_bytes(data[:-7])
            elif kind == "flipped":
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
            elif kind == "empty":
                path.write_bytes(b"")
            elif kind == "missing":
                path.unlink()
            elif kind == "of another task":
                other = path.with_name(path.name.replace("000000", "000001"))
                if other.exists():
                    path.write_bytes(other.read_bytes())
            else:
                path.write_bytes(bytes(len(data)))
        run(done)
        same(calm, done / "out")

    @pytest.mark.parametrize(
        "kind",
        some(
            ["cut", "flipped", "empty", "list", "null", "of another task", "folder"],
            ["cut", "flipped", "list", "of another task", "folder"],
        ),
    )
    def test_records_between_two_runs(self, calm, done, kind):
        records = sorted((done / "work").glob("*/*.json"))
        for path in records[::2]:
            data = bytearray(path.read_bytes())
            if kind == "cut":
                path.write_bytes(data[: len(data) // 2])
            elif kind == "flipped":  # a digit of a count, which is JSON as well
                place = max(i for i, byte in enumerate(data[: data.index(b"seconds")]) if chr(byte).isdigit())
                data[place] ^= 1
                path.write_bytes(data)
            elif kind == "empty":
                path.write_bytes(b"")
            elif kind in ("list", "null"):
                path.write_text("[]" if kind == "list" else "null")
            elif kind == "of another task":
                path.write_bytes(records[0].read_bytes())
            elif path.parent.name == "write":
                path.write_bytes(b"\xff\xfe")
        report = run(done)
        same(calm, done / "out")
        assert report["tasks"]["resumed"] > 0

    def test_files_of_the_result(self, calm, box, monkeypatch):
        """A run that fails when all is written, and one whose files of the result are changed meanwhile."""
        with monkeypatch.context() as patch:
            patch.setattr("neardup_gpu.tasks.running.report_of", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(box)
        written = sorted(path for path in (box / "work" / "result").rglob("*") if path.is_file())
        assert len(written) > 6
        for number, path in enumerate(written):
            if number % 3 == 0:
                path.unlink()
            elif number % 3 == 1:
                path.write_bytes(path.read_bytes()[:-1])
        (box / "work" / "result" / "documents" / ".part-left").mkdir()
        run(box)
        same(calm, box / "out")
        assert not list(box.rglob(".part*")) and not (box / "work").exists()

    def test_what_is_damaged_for_ever(self, box, monkeypatch):
        def damaged(folder, perform, shared, stage, *others):
            record = perform(shared, stage, *others)
            if stage == "copies":
                for name in record.files:
                    Path(shared.work, name).write_bytes(b"")
            return record

        troubled.trouble(monkeypatch.setattr, damaged, box / "marks")
        with pytest.raises(DamagedError, match=r"work: copies/00000\d-\w+ is damaged however often it is made; check"):
            run(box)
        assert not (box / "out").exists()

    def test_frequencies_that_are_counted(self, box, monkeypatch):
        """Files of the stages before "sketch" that are damaged meanwhile, and then between two runs."""
        recipe = Recipe(method=SimHash(weighting="tfidf", radius=6))
        run(box, recipe=recipe, output="calm")
        with monkeypatch.context() as patch:
            troubled.trouble(patch.setattr, troubled.damaging, box / "marks")
            patch.setattr("neardup_gpu.tasks.running.report_of", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(box, recipe=recipe)
        assert {"count-000000-counts", "sum-000000-sums"} <= set(os.listdir(box / "marks"))
        (box / "work" / "result" / "frequencies.parquet").unlink()
        troubled.damage(box / "work" / "sum" / "000001-sums", "sum")
        run(box, recipe=recipe)
        assert bits(box / "out") == bits(box / "calm")

    def test_more_frequencies_than_fit(self, box, monkeypatch):
        monkeypatch.setattr("neardup_gpu.tasks.frequencies.WEIGHED_BYTES", 1 << 20)
        with pytest.raises(
            ResourceError, match=r"^task_memory 2.0 GB: .* have 1,\d{3} distinct tokens, whose .* fewer"
        ):
            run(box, recipe=Recipe(method=SimHash(weighting="tfidf")))
        assert not (box / "out").exists()


def _interrupted(*_):
    raise KeyboardInterrupt


class TestFolders:
    def refused(self, says, kind, *arguments, **settings):
        with pytest.raises(kind, match=says) as caught:
            run(*arguments, **settings)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_another_driver(self, box):
        (box / "work").mkdir()
        held = "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, 2); print(flush=True); input()"
        other = subprocess.Popen(
            [sys.executable, "-c", held, box / "work" / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            other.stdout.readline()
            self.refused(
                r"work: another run works in this folder; wait for it, or name another work_dir$", OutputError, box
            )
        finally:
            other.communicate(b"\n")
        assert os.listdir(box / "work") == ["lock"]
        run(box)
        assert not (box / "work").exists()

    def test_another_driver_where_there_are_no_locks(self, box, monkeypatch):
        monkeypatch.setattr(leases, "MOMENT", 0.01)
        monkeypatch.setattr(locks, "fcntl", None)
        (box / "work").mkdir()
        place = Place.of(str(box / "work"))
        other = {"owner": "other", "where": "process 7 of elsewhere", "renewed": time.time()}
        place.write_text("lease", json.dumps(other))
        self.refused(r"work: another run works in this folder \(process 7 of elsewhere, \d s ago\)", OutputError, box)
        place.write_text("lease", json.dumps({**other, "renewed": time.time() - leases.LEASE}))
        run(box)
        assert not (box / "work").exists()

    def test_another_driver_in_a_store(self, calm, box, monkeypatch):
        """One that is there, one that is killed, and one that takes the folder in the middle of the job."""
        pytest.importorskip("fsspec")
        monkeypatch.setattr(leases, "MOMENT", 0.01)
        work = f"memory://{box.name}/work"
        place = Place.of(work)
        other = {"owner": "other", "where": "process 7 of elsewhere", "renewed": time.time()}
        place.write_text("lock", json.dumps(other))
        says = r"work: another run works in this folder \(process 7 of elsewhere, \d s ago\); wait for it, or .* s$"
        self.refused(says, OutputError, box, work_dir=work)
        place.write_text("lock", json.dumps({**other, "renewed": time.time() - leases.LEASE}))
        with monkeypatch.context() as patch:
            patch.setattr(leases, "LEASE", 0.2)

            def overtaken(folder, perform, shared, stage, *others):
                if stage == "copies":
                    for _ in range(10):
                        place.write_text("lock", json.dumps({**other, "renewed": time.time()}))
                        time.sleep(0.03)
                return perform(shared, stage, *others)

            troubled.trouble(patch.setattr, overtaken, box / "marks")
            self.refused("another run works in this folder by now .process 7", OutputError, box, work_dir=work)
        assert not (box / "out").exists() and place.exists("job.json")
        place.remove("lock")
        assert run(box, work_dir=work)["tasks"]["resumed"] >= 3
        same(calm, box / "out")
        assert place.entries() == []

    @pytest.mark.parametrize(
        "others, says",
        [
            ({"partitions": 3}, r"partitions \(2\); give"),
            ({"slice_bytes": 3000}, r"slice_bytes \(4000\); give"),
            ({"task_memory": "64MB"}, r"task_memory \(2000000000\)"),
            ({"spool": False}, r"spool \(True\)"),
            ({"recipe": Recipe(method="exact", threshold=0.5), "partitions": 3}, "partitions .2. and another recipe;"),
        ],
    )
    def test_another_job(self, done, others, says):
        before = sorted((done / "work").rglob("*"))
        self.refused(rf"work: holds the work of a job with another {says}", OutputError, done, **others)
        assert sorted((done / "work").rglob("*")) == before and not (done / "out").exists()

    def test_other_workers_go_on(self, calm, done):
        whole = sum(1 for _ in (done / "work").glob("*/*.json"))
        assert run(done, number=3, partitions=None, output="out")["tasks"]["resumed"] == whole - 5
        same(calm, done / "out")

    def test_a_changed_input(self, done):
        os.utime(done / "in" / "1.parquet", ns=(1, 1))
        self.refused("work of a job with another input; give", OutputError, done)

    def test_another_version(self, done, monkeypatch):
        monkeypatch.setattr("neardup_gpu.tasks.running.__version__", "9.0")
        self.refused(r"was begun by another version of neardup_gpu \(0\.", OutputError, done)

    @pytest.mark.parametrize("text", ["", "[]", "{}", "\xff", "null"])
    def test_a_damaged_description(self, done, text):
        (done / "work" / "job.json").write_text(text, "latin-1")
        self.refused(r"its job\.json is damaged; remove the folder", OutputError, done)

    def test_a_folder_of_somebody_else(self, box):
        (box / "work" / "sketch").mkdir(parents=True)
        (box / "work" / "sketch" / "mine").write_text("mine")
        self.refused("work: holds sketch, which is of no job; name a folder", OutputError, box)
        assert (box / "work" / "sketch" / "mine").read_text() == "mine"
        assert not (box / "work" / "job.json").exists() and not (box / "out").exists()

    def test_what_somebody_else_put_there_stays(self, calm, done):
        (done / "work" / "notes").write_text("mine")
        (done / "work" / ".hidden").write_text("mine")
        run(done)
        same(calm, done / "out")
        assert sorted(os.listdir(done / "work")) == [".hidden", "notes"]

    def test_no_folder(self, box):
        (box / "file").touch()
        for name in ("file", "file/below"):
            self.refused(
                rf"{name}: is a file, or lies below one; name another folder",
                OutputError,
                box,
                work_dir=str(box / name),
            )
        if sys.platform == "linux":
            self.refused("/proc/work: .*; name another folder", OutputError, box, work_dir="/proc/work")
        assert sorted(path.name for path in box.iterdir()) == ["file", "in"]

    @pytest.mark.parametrize("output, work", [("out", "out"), ("out", "out/work"), ("work/out", "work")])
    def test_output_and_work_in_one_another(self, box, output, work):
        self.refused("is not apart from the work folder", OutputError, box, output=output, work_dir=str(box / work))
        assert [path.name for path in box.iterdir()] == ["in"]

    def test_work_in_the_input(self, calm, box):
        self.refused(
            "is in the input folder .*, whose files are read", OutputError, box, work_dir=str(box / "in" / "work")
        )
        run(box, work_dir=str(box / "in" / ".work"))
        same(calm, box / "out")

    def test_a_relative_folder(self, calm, box, monkeypatch):
        monkeypatch.chdir(box)
        run(box, work_dir="work")
        same(calm, box / "out")


class TestInputs:
    def test_a_stream(self, box):
        table = pa.table({"id": ["a"], "text": ["to be"]})
        with pytest.raises(InputError, match=r"^input: is a stream, .*; write it to files first\.$"):
            run(box, source=pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
        assert sorted(path.name for path in box.iterdir()) == ["in"]

    def test_a_document_larger_than_a_task(self, box):
        most = 16 << 20
        longer = pa.table({"id": ["short", "long"], "text": ["to be", "a " * (most // 8 + 1)]})
        pq.write_table(longer, box / "in" / "1.parquet")
        with pytest.raises(InputError, match=r"1\.parquet.*: document 'long' has 2,097,153 words, .* allow more, or"):
            run(box, task_memory=most)
        assert not (box / "out").exists()
        run(box, task_memory=most + 8, output="other", work_dir=str(box / "other-work"))
        assert pq.read_table(box / "other" / "documents").num_rows == 242

    def test_a_file_that_changes_while_the_job_runs(self, box, monkeypatch):
        def touched(folder, perform, shared, stage, number, *others):
            if stage == "verify":
                os.utime(box / "in" / "1.parquet", ns=(1, 1))
            return perform(shared, stage, number, *others)

        troubled.trouble(monkeypatch.setattr, touched, box / "marks")
        with pytest.raises(InputError, match=r"1\.parquet: .*chang"):
            run(box)
        assert not (box / "out").exists()


def test_ray_workers_that_are_killed(calm, box, monkeypatch, ray_here):
    troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
    for stage in set(STAGES) - {"sketch", "verify"}:
        for which in ("first", "second"):
            (box / "marks" / f"{stage}-{which}").touch()
    run(box, runner="ray", number=None)
    same(calm, box / "out")
    assert (box / "marks" / "verify-second").exists()


def test_ray_nodes_that_are_lost(calm, box, monkeypatch):
    """Three raylets of this machine: one is lost in the middle of a stage, and another one in a later stage."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    marks = box / "marks"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
    troubled.trouble(monkeypatch.setattr, troubled.on_lost_nodes, marks)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": QUICK})
    lost = []

    def lose():
        for stage, node in nodes.items():
            wait_for((marks / f"{stage}-begun").exists)
            cluster.remove_node(node, allow_graceful=False)
            lost.append(stage)
            (marks / f"{stage}-lost").touch()

    try:
        nodes = {stage: cluster.add_node(num_cpus=1) for stage in ("sketch", "verify")}
        for stage, node in nodes.items():
            (marks / f"{stage}-node").write_text(node.node_id)
        losing = threading.Thread(target=lose)
        losing.start()
        run(box, runner="ray", number=None, ray_address=cluster.address)
        losing.join()
    finally:
        ray.shutdown()
        cluster.shutdown()
    same(calm, box / "out")
    assert lost == ["sketch", "verify"]
