"""Faults of a job of tasks: each ends in the same bits as a run that nothing disturbs, or in one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import troubled
from faults import judge
from troubled import STAGES, bits, documents, run

from neardup_gpu import Recipe
from neardup_gpu.errors import DamagedError, InputError, NeardupError, OutputError
from neardup_gpu.tasks.contract import TaskFailedError


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
    def test_killed_twice_in_every_stage(self, calm, box, monkeypatch):
        troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
        run(box, workers=2)
        same(calm, box / "out")
        assert len(list((box / "marks").iterdir())) == 2 * len(STAGES)

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


def drive(folder, trouble, limit=""):
    """Run the job in a process of its own; returns how it ended."""
    support = str(Path(troubled.__file__).parent)
    return judge._fork_server().run(folder, limit + DRIVER.format(support=support, trouble=trouble), {})


class TestDriver:
    def test_killed_in_every_stage(self, calm, box):
        for dead in range(len(STAGES)):
            ended = drive(box, "dead_after")
            assert ended.status == -signal.SIGKILL, ended.errors
            assert len(list((box / "marks").glob("*-dead"))) == dead + 1
            assert not (box / "out").exists()
        ended = drive(box, "dead_after")
        assert ended.status == 0, ended.errors
        same(calm, box / "out")
        begun = (box / "marks" / "log").read_text().splitlines()
        assert len(begun) == len(set(begun))
        assert not (box / "work").exists()
        assert json.loads((box / "out" / "report.json").read_text())["tasks"]["resumed"] > 0
