"""Watching a job: lines as JSON, what is counted of every stage, and the time in which kernels are compiled."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from compiling import compile_a_function
from flat import flat
from rich.console import Console

import neardup_gpu as nd
from neardup_gpu import cli, demo
from neardup_gpu.engine import bars, clock
from neardup_gpu.engine.clock import Clock
from neardup_gpu.engine.stage_names import STAGES

LIBRARY, MIRROR, _ = demo.FILES
READING = {"text_columns": "text", "id_column": "id"}

Lines = Callable[..., tuple[int, str, list[dict]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Status, stdout, and each line of stderr read as JSON."""

    def call(*arguments: object) -> tuple[int, str, list[dict]]:
        capsys.readouterr()
        status = cli.main([str(each) for each in arguments])
        said = capsys.readouterr()
        return status, said.out, [json.loads(line) for line in said.err.splitlines()]

    return call


def test_lines_as_json(lines: Lines, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said, told = lines("dedup", LIBRARY, MIRROR, "--id-column", "id", "-o", out, "--json", "--log-json")
    assert status == 0 and json.loads(said)["counts"]["documents"] == 359
    for line in told:
        assert {"time", "level", "stage", "done", "total", "rate", "message"} <= set(line)
        assert datetime.fromisoformat(line["time"]).tzinfo is not None
    ended = {line["stage"]: line for line in told if line.get("finished")}
    assert {"sketch", "collide", "index", "join", "verify", "decide", "write"} <= set(ended) <= set(STAGES)
    assert (ended["sketch"]["done"], ended["sketch"]["total"], ended["sketch"]["unit"]) == (359, 359, "document")
    assert ended["sketch"]["rate"] == pytest.approx(359 / ended["sketch"]["seconds"], rel=0.2)
    assert ended["sketch"]["message"].startswith("sketching: 359 documents in")
    for stage in ("sketch", "collide", "index", "write"):
        assert ended[stage]["done"] == ended[stage]["total"] == 359 - (28 - 4) * (stage == "index")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dedup", "nosuch.parquet", "--dry-run", "--log-json"], "no such file"),
        (["dedup", "nosuch.parquet", "--log-json"], "--output OUT"),
        (["dedup", "--log-json", "--colour"], "no option --colour"),
        (["sketch", LIBRARY, "--log-json", "--quiet"], "--quiet and --log-json"),
    ],
)
def test_errors_are_json_as_well(lines: Lines, arguments: list[str], says: str) -> None:
    status, said, (line,) = lines(*arguments)
    assert (status, said) == (2, "")
    assert line["level"] == "error" and says in line["message"] and line["stage"] is None


def test_a_mistake_of_ours_is_one_line_of_json(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("our mistake")

    monkeypatch.setattr("neardup_gpu.jobs.dedup.dedup", fails)
    status, said, (line,) = lines("dedup", LIBRARY, "--dry-run", "--log-json")
    assert (status, said) == (70, "")
    assert "ZeroDivisionError: our mistake" in line["traceback"] and "please report" in line["message"]


def test_text_comes_back_after_json(lines: Lines, capsys: pytest.CaptureFixture[str]) -> None:
    lines("dedup", "nosuch.parquet", "--dry-run", "--log-json")
    assert cli.main(["dedup", "nosuch.parquet", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("neardup: nosuch.parquet")


def test_commands_count_what_they_do(lines: Lines, tmp_path: Path) -> None:
    sketches, index = tmp_path / "s.parquet", tmp_path / "i.index"
    found: dict[str, dict] = {}
    for command in (
        ["sketch", LIBRARY, MIRROR, "--id-column", "id", "--method", "simhash", "-o", sketches],
        ["hamming", "build", sketches, "-o", index],
        ["hamming", "query", index, sketches, "-o", tmp_path / "m.parquet"],
        ["hamming", "pairs", sketches, "-o", tmp_path / "p.parquet"],
        ["hamming", "join", sketches, sketches, "-o", tmp_path / "j.parquet"],
    ):
        status, _, told = lines(*command, "--log-json")
        assert status == 0
        ended = {line["stage"]: line for line in told if line.get("finished")}
        assert ended, command
        found |= ended
    for stage in ("sketch", "read", "query", "match"):
        assert found[stage]["done"] == found[stage]["total"] == 359, stage


def test_estimates_are_counted(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    flat(nd.sketches.sketch, [LIBRARY, MIRROR], tmp_path / "s.parquet", **READING, method="bottomk")
    pairs = nd.sketches.pairs(tmp_path / "s.parquet", progress=lambda *told: seen.append(told))
    last = [told for told in seen if told[0] == "estimate"][-1]
    assert last[1] == last[2] and 0 < last[1] <= pairs.num_rows


def test_the_log_of_the_library_has_the_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        flat(nd.dedup, LIBRARY, **READING)
    facts = [record.progress for record in caplog.records if hasattr(record, "progress")]
    assert [each["stage"] for each in facts if each["finished"]].count("sketch") == 1
    assert facts[0]["done"] == 239 and facts[0]["compiling"] >= 0


def test_compiling_has_a_bar_of_its_own() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    with bars.bars(screen) as report:
        report("sketch", 10, 100)
        compile_a_function()
        compile_a_function()
        report("sketch", 100, 100)
    drawn = screen.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"compiling kernels +━+ 2 kernels +\d\d:\d\d", drawn)
    assert re.search(r"sketching +━+ 100 / 100", drawn)


def test_no_bar_where_nothing_is_compiled() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    with bars.bars(screen) as report:
        report("sketch", 100, 100)
    assert "compiling" not in screen.file.getvalue()  # type: ignore[attr-defined]


def test_a_long_stage_says_that_it_compiles(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    import time

    monkeypatch.setattr(clock, "SILENCE", 0.05)
    timer = Clock(None)
    with caplog.at_level(logging.INFO, "neardup_gpu"), timer.stage("sketch"):
        timer.report("sketch", 50, 100)
        time.sleep(0.02)
        timer._compiling.hear(True)
        time.sleep(0.3)
        timer._compiling.hear(False)
    compiling = [record for record in caplog.records if "a kernel is being compiled" in record.getMessage()]
    assert compiling[-1].getMessage().startswith("sketching: 50 of 100 documents (50.0%)")
    during, last = compiling[-1].progress, caplog.records[-1].progress  # type: ignore[attr-defined]
    assert during["compiling"] > 0 and during["left"] is not None and not during["finished"]
    assert last["compiling"] >= 0.25 and last["finished"]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_json_on_a_terminal_is_no_bar() -> None:
    from terminal import on_terminal

    status, said = on_terminal("dedup", LIBRARY, "--dry-run", "--json", "--log-json", columns=200)
    assert status == 0 and "\x1b" not in said
    assert json.loads(said.splitlines()[0])["level"] == "info"
