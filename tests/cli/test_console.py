"""What commands print, and where: progress, colours, encodings; and that nothing from outside steers the terminal."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiling import compile_a_function
from flat import flat
from progress import LINE, messages
from rich.console import Console

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.cli import console
from neardup_gpu.engine import bars, clock
from neardup_gpu.engine.clock import Clock
from neardup_gpu.errors import ArgumentTypeError
from neardup_gpu.kernels import _cache
from neardup_gpu.results import explanation as explain

Run = Callable[..., tuple[int, str, str]]


def rows(num: int = 30) -> list[dict[str, str]]:
    texts = [" ".join(f"word{i:04}x{j}" for j in range(40)) for i in range(num)]
    texts[-1] = f"{texts[0]} amended"
    return [{"id": f"a{i}", "text": text} for i, text in enumerate(texts)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "docs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if kernels had been compiled before: no notice of it."""
    from neardup_gpu.kernels import _cache

    monkeypatch.setattr(_cache, "_announced", True)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


# Progress


SHORT = "short texts"


def test_a_line_a_stage_without_a_terminal(run: Run, corpus: Path, tmp_path: Path) -> None:
    status, _, errors = run("dedup", corpus, "-o", tmp_path / "out")
    assert status == 0
    assert [line.partition(" of ")[0] for line in messages(errors).splitlines()] == [f"{SHORT}: 30"]
    found = ["indexing", "joining", "joining", "verifying", "deciding"]
    stages = ["sketching", "finding candidates", *found, "deciding", "writing"]
    assert [each for line in errors.splitlines() if (each := line.partition(":")[0]) != SHORT] == stages
    assert re.match(r"sketching: 30 documents in \d+\.\d\d s\n", errors)
    assert re.search(r"^joining: about [\d,]+ comparisons?$", errors, re.M)
    assert re.search(r"^joining: [\d,]+ comparisons? in \d+\.\d\d s$", errors, re.M)
    errors = run("dedup", corpus, "--dry-run", "--method", "minhash")[2]
    stages = ["sketching", "finding candidates", "verifying", "deciding", "checking recall", "deciding"]
    assert [each for line in errors.splitlines() if (each := line.partition(":")[0]) != SHORT] == stages
    assert run("dedup", corpus, "--dry-run", "--quiet") == (0, "", "")


def test_the_library_logs_a_line_a_stage_and_prints_nothing(
    corpus: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        nd.dedup(corpus, writing=nd.Writing(check=0))
    assert capsys.readouterr() == ("", "")
    assert all(record.levelno == logging.INFO for record in caplog.records)
    assert [message.partition(":")[0] for message in caplog.messages][:2] == ["sketching", "finding candidates"]
    assert not logging.getLogger("neardup_gpu").handlers


def test_a_long_stage_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(clock, "SILENCE", 0.05)
    timer = Clock(None)
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        with timer.stage("collide"):
            time.sleep(0.2)
        with timer.stage("verify"):
            timer.report("verify", 1200, 5000)
            time.sleep(0.2)
            timer.report("verify", 5000, 5000)
    said = "".join(f"{message}\n" for message in caplog.messages)
    assert re.search(r"^finding candidates: 0\.\d\d s so far$", said, re.M)
    assert re.search(r"^verifying: 1,200 of 5,000 pairs \(24\.0%\), [\d,]+ a second, 0\.\d\d s left$", said, re.M)
    assert re.search(r"^verifying: 5,000 pairs in 0\.\d\d s$", said, re.M)
    assert messages(said) == ""


def test_stages_that_take_turns_have_a_line_each(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clock, "SILENCE", 0.05)
    seen: list[tuple[str, int, int | None]] = []
    timer = Clock(lambda *step: seen.append(step))
    with caplog.at_level(logging.INFO, "neardup_gpu"), timer.turns():
        time.sleep(0.1)
        assert caplog.messages == []  # no stage has begun
        for part in (10, 20):
            with timer.stage("join"):
                timer.report("join", part, 40)
            with timer.stage("verify"):
                timer.report("verify", 2 * part, None)
                time.sleep(0.1)
    said = [line for line in caplog.messages if " a second" not in line and not line.endswith(" so far")]
    assert [re.sub(r"\d\.\d\d s", "T", line) for line in said] == [
        "joining: 30 comparisons in T",
        "verifying: 60 pairs in T",
    ]
    assert any(re.fullmatch(r"verifying: (2|6)0 pairs, [\d,]+ a second", line) for line in caplog.messages)
    assert seen == [
        ("join", 0, None), ("join", 10, 40), ("verify", 0, None), ("verify", 20, None),
        ("join", 10, None), ("join", 30, 50), ("verify", 20, None), ("verify", 60, None),
    ]  # fmt: skip
    assert timer.seconds["verify"] >= 0.2 > timer.seconds["join"]


def test_what_kernels_take_to_compile_is_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    timer = Clock(None)
    with caplog.at_level(logging.INFO, "neardup_gpu"), timer.stage("sketch"):
        compile_a_function()
    assert timer.seconds["compile"] > timer.seconds["sketch"]
    assert timer.elapsed >= timer.seconds["compile"] + timer.seconds["sketch"] - 0.001
    assert re.fullmatch(r"sketching: 0\.\d\d s, and \d+\.\d+ s of compiling", caplog.messages[0])
    with timer.stage("sketch"):
        pass
    assert set(timer.seconds) == {"sketch", "compile"}


def test_a_stage_that_fails_ends_its_thread() -> None:
    import threading

    timer = Clock(None)
    with pytest.raises(ZeroDivisionError), timer.stage("sketch"):
        raise ZeroDivisionError
    assert not [thread for thread in threading.enumerate() if thread.name == "neardup-progress"]
    assert timer.seconds == {}


def totals(source: object, **options: object) -> list[tuple[int, int | None]]:
    seen: list[tuple[int, int | None]] = []

    def record(stage: str, done: int, total: int | None) -> None:
        if stage == "sketch" and done:
            seen.append((done, total))

    flat(nd.dedup, source, check=0, batch_bytes=20_000, progress=record, **options)
    return seen


@pytest.mark.parametrize("kind", ["parquet", "txt", "memory", "two tables"])
def test_files_that_know_their_rows_give_the_total(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(rows(500))
    if kind == "parquet":
        for part in range(2):
            pq.write_table(table.slice(250 * part, 250), tmp_path / f"{part}.parquet", row_group_size=50)
        seen = totals(tmp_path)
    elif kind == "txt":
        for row in rows(500):
            (tmp_path / f"{row['id']}.txt").write_text(row["text"])
        seen = totals(tmp_path)
    elif kind == "memory":
        seen = totals(table)
    else:
        seen = totals(table.slice(200), against=table.slice(0, 200))
    assert len(seen) > 3
    assert {total for _, total in seen} == {500}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (500, 500)


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.jsonl.zst", "d.arrow"])
def test_else_the_total_is_estimated_from_the_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup_gpu.documents import jsonlines

    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", 30_000)
    table, path = pa.Table.from_pylist(rows(3000)), tmp_path / name
    if name.endswith(".arrow"):
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    else:
        lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
        with pa.output_stream(str(path), compression="detect") as stream:
            stream.write(lines)
    seen = totals(path)
    assert seen[-1] == (3000, 3000)
    assert len(seen) > 10
    assert all(total is not None and total >= done for done, total in seen)
    # A gzip or zstd reader is ahead by its buffers, which are most of so small a file.
    if name in ("d.jsonl", "d.arrow"):
        assert all(abs(total - 3000) < 300 for _, total in seen if total is not None)


def test_a_stream_has_no_total() -> None:
    table = pa.Table.from_pylist(rows())
    assert totals(table.to_reader()) == [(30, None)]


def test_bars_from_python(corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    nd.dedup(corpus, progress=True, writing=nd.Writing(check=0))
    said = capsys.readouterr()
    assert said.out == ""
    assert "sketching" in said.err
    assert "30 / 30" in said.err
    nd.dedup(corpus, progress=False, writing=nd.Writing(check=0))
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ArgumentTypeError, match="progress: int given; pass True"):
        nd.dedup(corpus, progress=3)  # type: ignore[arg-type]


def test_bars_end_with_what_was_done() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    with bars.bars(screen) as report:
        for done in (0, 10, 40):
            report("sketch", done, None if done == 0 else 100)
        report("collide", 0, None)
        report("sketch", 0, None)
        report("another\x1b", 1_234_567, None)
    lines = [line.rstrip() for line in screen.file.getvalue().split("\r")[-1].split("\n")]  # type: ignore[attr-defined]
    last = "\n".join(lines)
    assert re.search(r"sketching +━+ 40 / 100 +", last)
    assert re.search(r"finding candidates ━+ +\d", last)
    assert "1,234,567" in last


# On a terminal

pseudo_terminals = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")


@pseudo_terminals
def test_bars_and_colour_on_a_terminal(corpus: Path) -> None:
    from terminal import on_terminal

    status, said = on_terminal("dedup", corpus, "--dry-run")
    assert status == 0
    assert "sketching" in said
    assert "30 / 30" in said
    assert "\x1b[1mkept      \x1b[0m 29 (96.7%)" in said
    assert not any(LINE.fullmatch(f"{line}\n") for line in said.splitlines())
    assert said.rindex("sketching") < said.index("\x1b[1mdocuments")


@pseudo_terminals
@pytest.mark.parametrize("columns", [1, 12, 30])
def test_tiny_terminals(corpus: Path, columns: int) -> None:
    from terminal import on_terminal

    status, said = on_terminal("dedup", corpus, "--dry-run", columns=columns)
    assert status == 0
    assert "29 (96.7%)" in said


@pseudo_terminals
def test_terminals_without_styles(corpus: Path) -> None:
    from terminal import on_terminal

    status, said = on_terminal("dedup", corpus, "--dry-run", TERM="dumb")
    assert status == 0
    assert "\x1b" not in said
    assert said.startswith("sketching: 30 documents in ")
    status, said = on_terminal("dedup", corpus, "--dry-run", NO_COLOR="1")
    assert status == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", said)
    status, said = on_terminal("dedup", corpus, "--dry-run", PYTHONIOENCODING="ascii")
    assert status == 0
    assert said.isascii()
    assert "\n  2  1  \x1b[36m------------------------------------\x1b[0m\n" in said


@pseudo_terminals
def test_an_explanation_is_coloured_where_colours_are(corpus: Path, tmp_path: Path) -> None:
    from terminal import on_terminal

    out = tmp_path / "out"
    assert on_terminal("dedup", corpus, "--id-column", "id", "-o", out, "-q")[0] == 0
    said = on_terminal("explain", out, "a29")[1]
    assert "\x1b[32mamended\x1b[0m" in said
    assert "{+" not in said
    assert "{+amended+}" in on_terminal("explain", out, "a29", NO_COLOR="1")[1]


# Elsewhere


def test_a_pipe_gets_80_columns_whatever_the_terminal_has(
    run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = run("dedup", corpus, "--dry-run")[1]
    monkeypatch.setenv("COLUMNS", "20")
    narrow = run("dedup", corpus, "--dry-run")[1]
    parts = [re.sub(r"(?m)^time.*\n", "", text) for text in (wide, narrow)]
    assert parts[0] == parts[1]
    assert all(line == line.rstrip() and len(line) <= 80 for line in wide.splitlines())
    assert "\x1b" not in wide


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_encodings(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", out)
    console.say("漢 é \x1b", explain.render(explain.Explanation("漢\x1b", True)))
    console.say("漢")
    console.say_json({"漢": "é\x9b\U0001f600\udcff"})
    out.flush()
    said = out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    first = {"ascii": "\\u6f22 \\xe9", "utf-8": "漢 é"}.get(encoding, "\\u6f22 é")
    assert said.startswith(f"{first} \\x1b\n")
    assert json.loads(said[said.index("{") :]) == {"漢": "é\x9b\U0001f600\udcff"}


def test_json_is_escaped_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x1b[2J": ["\x7f\x9b\u202e\n\t", "\U000e0001", {"b": "漢"}], "c": b"\xff"}
    console.say_json(value)
    said = capsys.readouterr().out
    assert json.loads(said) == {**value, "c": "\\xff"}
    assert said.replace("\n", "").isprintable()
    assert "漢" in said


def test_nothing_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console.say(explain.render(explain.Explanation("[red]x[/red] :smile: [/]", True)))
    console.say("[bold]y[/]")
    assert capsys.readouterr().out == "[red]x[/red] :smile: [/] was kept; nothing was removed for it\n[bold]y[/]\n"


def test_notes_survive_a_closed_or_full_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    console.note("nobody hears this")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    console.note("nor this")


def test_what_the_library_logs_is_shown(monkeypatch: pytest.MonkeyPatch, run: Run, corpus: Path) -> None:
    from neardup_gpu.jobs import dedup as job

    decide = job.decide

    def noting(*arguments: object, **options: object) -> object:
        logging.getLogger("neardup_gpu").info("GPU memory\nran out\x1b[2J")
        return decide(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(job, "decide", noting)
    errors = run("dedup", corpus, "--dry-run", "--engine", "cpu")[2]
    told, short = messages(errors).splitlines()
    assert told == "GPU memory\\nran out\\x1b[2J" and short.startswith(SHORT)
    assert run("dedup", corpus, "--dry-run", "--engine", "cpu", "--quiet") == (0, "", "")
    assert not logging.getLogger("neardup_gpu").handlers


def test_nothing_in_a_document_steers_the_terminal() -> None:
    found = explain.Explanation("evil\x1b[2J", False, duplicate_of="b\n", words=[("added", "\x1b]0;title\x07 word")])
    said = explain.render(found)
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\\x1b[2J" in said


def test_matches_line_up_whatever_their_ids_are(capsys: pytest.CaptureFixture[str]) -> None:
    from neardup_gpu.cli.hamming import _MatchTable

    _MatchTable()(pa.table({"query_id": ["漢字", "a\nb"], "id": ["x", "longer"], "distance": [0, 12]}))
    assert capsys.readouterr().out == (
        "query_id  id      distance\n漢字      x              0\na\\nb      longer        12\n"
    )


def test_help_needs_no_terminal_library_until_it_draws() -> None:
    code = "import neardup_gpu.cli, sys; assert not {m.partition('.')[0] for m in sys.modules} & {'rich', 'logging'}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("quiet", [False, True])
def test_that_no_kernel_is_kept_is_said_once_also_quietly(
    capsys: pytest.CaptureFixture[str], quiet: bool, tmp_path: Path
) -> None:
    with console.notes(quiet=quiet):
        for _ in range(3):
            logging.getLogger("neardup_gpu").warning("%s cannot be written", tmp_path, extra=_cache.ONCE)
        logging.getLogger("neardup_gpu").warning("of the job")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{tmp_path} cannot be written", *([] if quiet else ["of the job"])]


class Broken(io.StringIO):
    """A stream that cannot be written, as that of a notebook may be whose cell captures what is printed."""

    def write(self, text: str) -> int:
        raise OSError("the cell captures it")


@pytest.mark.parametrize("closed", [False, True])
def test_bars_that_cannot_be_drawn_stop_no_job(closed, monkeypatch, caplog) -> None:
    stream = Broken()
    if closed:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    result = nd.dedup({"text": ["to be or not to be"] * 2}, progress=True)
    assert result.removed.num_rows == 1
    warned = [record for record in caplog.records if "bars of progress cannot be drawn" in record.getMessage()]
    assert len(warned) == 1
