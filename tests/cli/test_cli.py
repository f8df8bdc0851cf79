"""The command line: what it prints, what it leaves behind, and one line for everything that can be wrong."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from progress import messages

import neardup_gpu
from neardup_gpu import Recipe, cli, theory
from neardup_gpu.results import diff

WORDS = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in "aeiou" for c in ("", "n", "r", "st")]


def texts() -> list[tuple[str, str]]:
    """(id, text): twelve unlike documents of 120 words, a near-duplicate of each of a0 to a2, and two copies of a3."""
    chance = random.Random(7)
    rows = [(f"a{i}", " ".join(chance.choices(WORDS, k=120))) for i in range(12)]
    for i in range(3):
        changed = rows[i][1].split()
        changed[60] = "CHANGED"
        rows.append((f"near-{i}", " ".join(changed)))
    return [*rows, ("copy-1", rows[3][1]), ("copy-2", rows[3][1].upper() + "!")]


def write_lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    return write_lines(folder / "docs.jsonl", [{"id": name, "text": text} for name, text in texts()])


@pytest.fixture(scope="module")
def result(corpus: Path) -> Path:
    out = corpus.parent / "out"
    assert cli.main(["dedup", str(corpus), "--id-column", "id", "-o", str(out), "--quiet"]) == 0
    return out


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if kernels had been compiled before, so that the notice of it comes only where a test asks for it."""
    from neardup_gpu.kernels import _cache

    monkeypatch.setattr(_cache, "_announced", True)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, messages(said.err)

    return call


def python(code: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]


# Help and usage


def test_help_imports_nothing_slow() -> None:
    code = """
import sys
from neardup_gpu.cli import main
assert main(["--help"]) == main(["dedup", "--help"]) == 0
assert not {"numpy", "numba", "pyarrow", "neardup_gpu.pipeline"} & set(sys.modules)
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("dedup", "explain", "curve", "--threshold", "--against", "--dry-run"):
        assert word in done.stdout


def test_the_process_ends_without_taking_its_objects_apart() -> None:
    code = """
import atexit, sys
from neardup_gpu.cli.process import run
class Left:
    def __del__(self):
        print("taken apart")
left, sys.argv = Left(), ["neardup", "--version"]
status = run()
atexit.register(print, "called")
sys.exit(status)
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"neardup {neardup_gpu.__version__}\ncalled\n"


def test_version_and_bare_command(run: Run) -> None:
    assert run("--version") == (0, f"neardup {neardup_gpu.__version__}\n", "")
    status, out, _ = run()
    assert status == 0
    assert "Usage" in out


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["nosuch"], "nosuch"),
        (["dedup"], "INPUT"),
        (["dedup", "x.parquet", "--treshold", "1"], "--treshold"),
        (["dedup", "x.parquet", "--threshold", "high"], "--threshold"),
        (["explain", "out"], "ID"),
    ],
)
def test_usage_errors_are_one_line(run: Run, arguments: list[str], says: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("neardup: ")
    assert err.count("\n") == 1
    assert says in err


# dedup


def test_dedup_prints_a_summary_and_writes_a_result(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said, err = run("dedup", corpus, "--id-column", "id", "-o", out)
    assert (status, err) == (0, "")
    assert re.search(r"^documents +17, ", said, re.M)
    assert re.search(r"^kept +12 \(70\.6%\)$", said, re.M)
    assert re.search(r"^removed +5 \(29\.4%\): 1 identical, 1 same words, 3 near$", said, re.M)
    assert re.search(r"^ +2 +3 +█", said, re.M)
    assert re.search(r"^ +3 +1 +█", said, re.M)
    assert "\nrecall     100% (exact): every pair at resemblance 0.8 or above counts\n" in said
    assert "\x1b" not in said
    assert all(len(line) <= 80 for line in said.splitlines() if str(tmp_path) not in line)
    assert f"next       neardup explain {out} near-" in said
    assert {p.name for p in out.iterdir()} == {"documents.parquet", "job.toml", "pairs.parquet", "kept", "report.json"}
    table = {row["id"]: row for row in pq.read_table(out / "documents.parquet").to_pylist()}
    assert table["near-1"]["duplicate_of"] == "a1"
    assert table["near-1"]["resemblance"] == 111 / 121  # 116 shingles each, 5 of them with the changed word
    assert table["copy-2"]["resemblance"] == 1
    assert table["a3"]["kept"]
    kept = b"".join(path.read_bytes() for path in (out / "kept").iterdir())
    assert kept == b"".join(corpus.read_bytes().splitlines(keepends=True)[:12])


def test_dedup_by_min_hash_prints_the_recall_of_a_sample(run: Run, corpus: Path) -> None:
    _, said, _ = run("dedup", corpus, "--dry-run", "--method", "minhash")
    assert "recall     100.0% of near-duplicate pairs found, by a sample of 15 documents" in said
    assert "with 99% confidence, from the 6 that have any" in said
    assert "filter     20,7,1: 99.1% of pairs at resemblance 0.8 pass, by theory" in said


def test_the_exact_method_is_checked_when_asked(run: Run, corpus: Path) -> None:
    _, said, _ = run("dedup", corpus, "--dry-run", "--check", 10)
    assert re.search(
        r"^recall +100% \(exact\): .*\n +100\.0% of near-duplicate pairs found, by a sample of 10", said, re.M
    )


def test_how_many_pairs_are_listed(run: Run, tmp_path: Path) -> None:
    template = " ".join(f"t{i}" for i in range(100))
    path = parquet(tmp_path / "crowd.parquet", text=[f"{template} page{i}" for i in range(30)])
    _, said, _ = run("dedup", path, "--dry-run", "--max-partners", 2, "--verbose")
    assert re.search(r"^pairs +\d+ are listed, .*: a document lists its first 2 partners$", said, re.M)
    assert "--max-partners all (max_partners=None) lists every pair; who is kept is the same" in said
    _, said, _ = run("dedup", path, "--dry-run", "--max-partners", "all", "--verbose")
    assert "are listed" not in said
    assert re.search(r"^ +verified pairs +435$", said, re.M)
    assert re.search(r"^ +max_partners +all$", said, re.M)
    found = json.loads(run("dedup", path, "--dry-run", "--max-partners", "all", "--json")[1])
    assert found["recipe"]["max_partners"] is None
    assert found["limits"] == {"max_partners": None, "unlisted_pairs": 0, "all_counted": True}


def test_too_many_comparisons_name_the_commonest_shingles(run: Run, tmp_path: Path) -> None:
    """Texts of few sentences, so that all shingles are frequent."""
    sentences = [" ".join(f"word{i}x{j}" for j in range(6)) for i in range(12)]
    sentences[0] = "This page -- was LAST updated, by Dr. O'Neill"
    texts = [". ".join(sentences[i] for i in sorted({0, *divmod(k, 12), k % 7})) for k in range(144)]
    path = parquet(tmp_path / "frequent.parquet", text=texts)
    out = tmp_path / "out"
    status, said, err = run("dedup", path, "-o", out, "--threshold", 0.3, "--max-comparisons", 50)
    assert (status, said) == (2, "")
    shingles = r'"[\w .,\'-]+" \(among the rarest of \d+ documents\)'
    assert re.fullmatch(
        rf"neardup: more than 50 comparisons; most are for the shingles {shingles}, {shingles}, {shingles}; "
        r"allow more with --max-comparisons, or use --method minhash\n",
        err,
    )
    assert not out.exists()
    assert run("dedup", path, "-o", out, "--threshold", 0.3, "--max-comparisons", 10**9)[0] == 0


def test_dedup_json(run: Run, corpus: Path, tmp_path: Path) -> None:
    status, said, _ = run("dedup", corpus, "--id-column", "id", "-o", tmp_path / "out", "--json")
    assert status == 0
    stored = json.loads((tmp_path / "out" / "report.json").read_text())
    printed = json.loads(said)
    assert printed.pop("output") == str(tmp_path / "out")
    assert printed["counts"] == stored["counts"]
    assert printed["recipe"] == stored["recipe"]
    assert stored["counts"]["removed"] == 5


def test_dry_run_writes_nothing(run: Run, corpus: Path, tmp_path: Path) -> None:
    before = sorted(corpus.parent.iterdir())
    status, said, _ = run("dedup", corpus, "--dry-run", "--verbose", "--output", tmp_path / "out")
    assert status == 0
    assert "dry run" in said
    assert "verified pairs" in said
    assert sorted(corpus.parent.iterdir()) == before
    assert not any(tmp_path.iterdir())


def test_quiet(run: Run, corpus: Path) -> None:
    assert run("dedup", corpus, "--dry-run", "--quiet") == (0, "", "")


def test_several_inputs_and_columns(run: Run, tmp_path: Path) -> None:
    rows = [{"title": text[:40], "body": text[40:], "n": i} for i, (_, text) in enumerate(texts())]
    half = write_lines(tmp_path / "a.jsonl", rows[:9]), write_lines(tmp_path / "b.jsonl", rows[9:])
    columns = ("--text-column", "title", "--text-column", "body", "--id-column", "n")
    status, said, _ = run("dedup", *half, *columns, "--dry-run", "--json")
    assert status == 0
    assert json.loads(said)["counts"]["kept"] == 12


def test_settings_reach_the_recipe(run: Run, corpus: Path) -> None:
    options = "--threshold 0.7 --filter 6,5,1 --shingle-size 3 --shingling bag --bits 64 --seed 9 --keep longest"
    options += " --method minhash --max-partners 9"
    status, said, _ = run("dedup", corpus, "--dry-run", "--json", *options.split(), "--cluster", "components")
    assert status == 0
    recipe = json.loads(said)["recipe"]
    assert recipe["max_partners"] == 9
    wanted = {"threshold": 0.7, "filter": "6,5,1", "shingle_size": 3, "shingling": "bag", "bits": 64, "seed": 9}
    assert {name: recipe[name] for name in wanted} == wanted
    assert (recipe["keep"], recipe["cluster"]) == ("longest", "components")


def test_text_that_is_odd_is_counted(run: Run, tmp_path: Path) -> None:
    text = pa.array([b"plain words here", b"caf\xe9 au lait", None, b"", b"one"], pa.binary())
    pq.write_table(pa.table({"text": text.cast(pa.binary())}), tmp_path / "odd.parquet")
    status, said, _ = run("dedup", tmp_path / "odd.parquet", "--dry-run")
    assert status == 0
    assert re.search(r"^odd text +2 without words, 1 null, 1 invalid UTF-8 byte$", said, re.M)


def test_no_documents(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "none.parquet")
    status, said, err = run("dedup", tmp_path / "none.parquet", "-o", tmp_path / "out")
    assert status == 0 and re.search(r"^documents +0, ", said, re.M)
    assert "the input holds no documents: check the path or the filter that it comes from" in err
    assert len(pq.read_table(tmp_path / "out/kept")) == 0


# Bad input


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def truncated(folder: Path) -> Path:
    path = parquet(folder / "cut.parquet", text=["some words"] * 1000)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def broken_line(folder: Path, compressed: bool = False) -> Path:
    lines = b'{"text": "one"}\n{"text": "two"}\n{"text": "three\n{"text": "four"}\n'
    path = folder / ("broken.jsonl.gz" if compressed else "broken.jsonl")
    path.write_bytes(gzip.compress(lines) if compressed else lines)
    return path


MINHASH = "--method", "minhash"


def good(folder: Path) -> Path:
    return parquet(folder / "good.parquet", text=["a few words", "other words"], id=["a", "b"], n=[1, 2])


def filled(folder: Path) -> list[object]:
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("precious")
    return [good(folder), "--output", folder / "full"]


BAD: dict[str, tuple[Callable[[Path], list[object]], str]] = {
    "missing file": (lambda f: [f / "nosuch.parquet"], r"nosuch\.parquet"),
    "empty folder": (lambda f: [(f / "bare").mkdir() or f / "bare"], "bare"),
    "no such column": (lambda f: [good(f), "--text-column", "body"], r"good\.parquet.*'body'.*text.*--text-column"),
    "not text": (lambda f: [good(f), "--text-column", "n"], r"good\.parquet.*'n'.*int64"),
    "which column?": (lambda f: [parquet(f / "two.parquet", a=["x"], b=["y"])], r"two\.parquet.*a, b.*--text-column"),
    "no id column": (lambda f: [good(f), "--id-column", "key"], r"good\.parquet.*'key'.*--id-column"),
    "duplicate ids": (
        lambda f: [parquet(f / "d.parquet", text=["x", "y"], id=[7, 7]), "--id-column", "id"],
        r"id 7 .*2",
    ),
    "null id": (
        lambda f: [parquet(f / "n.parquet", text=["x", "y"], id=[7, None]), "--id-column", "id"],
        r"n\.parquet.*'id'",
    ),
    "truncated": (lambda f: [truncated(f)], r"cut\.parquet"),
    "broken line": (lambda f: [broken_line(f)], r"broken\.jsonl.*\b3\b"),
    "broken line, compressed": (lambda f: [broken_line(f, True)], r"broken\.jsonl\.gz.*\b3\b"),
    "output taken": (filled, "full.*--overwrite"),
    "output inside a file": (lambda f: [good(f), "--output", f / "good.parquet" / "out"], "out"),
    "overwriting something else": (lambda f: [*filled(f), "--overwrite"], "full"),
    "threshold": (lambda f: [good(f), "--threshold", 1.5], r"threshold.*1\.5"),
    "threshold with filter": (lambda f: [good(f), *MINHASH, "--threshold", 0, "--filter", "bands"], "threshold"),
    "recall": (lambda f: [good(f), *MINHASH, "--recall", 2], "recall.*2"),
    "filter": (lambda f: [good(f), *MINHASH, "--filter", "6,14"], "6,14.*altavista"),
    "filter order": (lambda f: [good(f), *MINHASH, "--filter", "2,14,6"], "2,14,6"),
    "filter and recall": (lambda f: [good(f), *MINHASH, "--filter", "bands", "--recall", 0.9], "--filter and --recall"),
    "shingle size": (lambda f: [good(f), "--shingle-size", 0], "shingles have 1 to 64 tokens"),
    "shingling": (lambda f: [good(f), "--shingling", "heap"], "heap.*set, bag, circular"),
    "stop words": (lambda f: [good(f), "--stop-words", "en"], "--stop-words: only spots .*--shingling spots"),
    "no stop words": (lambda f: [good(f), "--shingling", "spots", "--stop-words", "xx"], "^neardup: xx: no such file"),
    "bits": (lambda f: [good(f), *MINHASH, "--bits", 16], "bits 16"),
    "seed": (lambda f: [good(f), "--seed", -1], "--seed must be .* got -1"),
    "keep": (lambda f: [good(f), "--keep", "date:desc"], "'date'"),
    "cluster": (lambda f: [good(f), "--cluster", "all"], "all.*greedy"),
    "backend": (lambda f: [good(f), "--engine", "abacus"], "abacus.*cpu"),
    "device of a cpu": (lambda f: [good(f), "--engine", "cpu", "--device", 0], "--device 0 is for backend 'gpu'"),
    "device": (lambda f: [good(f), "--device", -1], "device must be >= 0, got -1"),
    "memory of a cpu": (lambda f: [good(f), "--engine", "cpu", "--gpu-memory", "1GB"], "--gpu-memory 1GB is for"),
    "threads": (lambda f: [good(f), "--threads", 100_000], "--threads must be .* got 100000"),
    "check": (lambda f: [good(f), "--check", -1], "--check must be .* got -1"),
    "temporary folder": (lambda f: [good(f), "--temp-dir", f / "nowhere"], "nowhere.*--temp-dir"),
    "reference": (lambda f: [good(f), "--against", f / "nosuch.parquet"], r"nosuch\.parquet"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(run: Run, tmp_path: Path, case: str) -> None:
    build, says = BAD[case]
    arguments = build(tmp_path)
    if "--output" not in arguments:
        arguments += ["--output", tmp_path / "out"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    status, out, err = run("dedup", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("neardup: ")
    assert err.count("\n") == 1
    assert re.search(says, err), err
    left = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert left == before


def test_dedup_needs_an_output(run: Run, tmp_path: Path) -> None:
    status, _, err = run("dedup", good(tmp_path))
    assert status == 2
    assert "--output" in err
    assert "--dry-run" in err


def test_a_free_threaded_python_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert cli.main(["demo"]) == 2
    said = "neardup: this Python is free-threaded, and kernels need its global lock; set PYTHON_GIL=1\n"
    assert capsys.readouterr() == ("", said)


# Being stopped


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("becomes", ["KeyboardInterrupt", "RuntimeError('no compiled object yet')"])
def test_interrupt_leaves_nothing(corpus: Path, tmp_path: Path, becomes: str) -> None:
    """Also where what was interrupted raises something else, as Numba does while it compiles."""
    code = """
import os, signal, sys, time
from neardup_gpu import cli
from neardup_gpu.jobs import dedup as job
write = job.write_result
def interrupted(*arguments):
    write(*arguments)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        raise BECOMES from None
job.write_result = interrupted
sys.exit(cli.main(["dedup", sys.argv[1], "-o", sys.argv[2]]))
""".replace("BECOMES", becomes)
    done = python(code, corpus, tmp_path / "out")
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1:] == ["neardup: interrupted; nothing was written"]
    assert "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())


def record_of_many_members(path: Path) -> None:
    """A WARC file whose only record is divided into a million small members of gzip."""
    content, number = b"a rose is a rose is a ros\n", 1_000_000
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a.example/\r\n"
        "WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(body) + len(content) * number}\r\n\r\n"
    )
    start, end = gzip.compress(head.encode() + body), gzip.compress(b"\r\n\r\n")
    path.write_bytes(start + gzip.compress(content) * number + end)


def many_lines(path: Path) -> None:
    lines = [json.dumps({"text": " ".join(f"w{i * j % 997}" for j in range(100))}) for i in range(2000)]
    path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 1) * 500)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("name", "write"), [("a.warc.gz", record_of_many_members), ("a.jsonl.gz", many_lines)])
def test_sigterm_ends_a_long_read_soon(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    if "warc" in name:
        pytest.importorskip("fastwarc")
    path = tmp_path / name
    write(path)
    command = [sys.executable, "-m", "neardup_gpu", "dedup", str(path), "--output", str(tmp_path / "out"), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    opened, most = Path(f"/proc/{process.pid}/fd"), time.monotonic() + 60

    def is_read() -> bool:
        with contextlib.suppress(OSError):
            return any(os.readlink(each) == str(path) for each in opened.iterdir())
        return False

    while not is_read() and time.monotonic() < most:
        time.sleep(0.05)
    time.sleep(1.5)
    assert process.poll() is None
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    said, complaint = process.communicate(timeout=60)
    assert time.monotonic() - begin < 2
    assert (process.returncode, said, complaint) == (130, "", "neardup: interrupted; nothing was written\n")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_nobody_reads_stdout(result: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "neardup_gpu", "info", str(result)], stdout=write, stderr=subprocess.PIPE, timeout=60
    )
    os.close(write)
    assert process.stderr == b""
    assert process.returncode == 1


def test_a_bug_is_a_traceback(monkeypatch: pytest.MonkeyPatch, run: Run, corpus: Path) -> None:
    from neardup_gpu.jobs import dedup as job

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(job, "dedup", broken)
    status, _, err = run("dedup", corpus, "--dry-run")
    assert status == 70
    assert "in broken" in err
    assert err.splitlines()[-1] == (
        "neardup: this is a mistake in neardup itself, not in what it was given; please report the lines above"
    )


def test_compilation_is_announced(monkeypatch: pytest.MonkeyPatch, run: Run, corpus: Path) -> None:
    from neardup_gpu.jobs import dedup as job
    from neardup_gpu.kernels import _cache

    decide = job.decide

    def compiling(*arguments: object, **options: object) -> object:
        _cache._announce("")
        return decide(*arguments, **options)

    monkeypatch.setattr(job, "decide", compiling)
    monkeypatch.setattr(_cache, "_announced", False)
    for said in ("compiling kernels for this machine, once\n", ""):
        assert run("dedup", corpus, "--dry-run")[::2] == (0, said)


def test_a_temporary_disk_that_is_too_small(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    """What is missing is estimated from what was read and the number of rows; a line says so before."""
    from neardup_gpu.documents import Documents
    from neardup_gpu.store import disk
    from neardup_gpu.store.spool import Spool

    append, batches, taken = Spool.append, Documents.batches, []

    def noted(self: Spool, rows: Any) -> None:
        append(self, rows)
        taken.append(8 * len(rows.values))

    monkeypatch.setattr(Spool, "append", noted)
    monkeypatch.setattr(
        disk.shutil,
        "disk_usage",
        lambda _: type("Usage", (), {"total": 10**7, "free": 10**5 + 300_000 - sum(taken)}),
    )
    monkeypatch.setattr(Documents, "batches", lambda self, **options: batches(self, **{**options, "max_bytes": 10**5}))
    texts = [" ".join(f"w{i:03}x{j:03}" for j in range(100)) for i in range(1000)]
    path, out = parquet(tmp_path / "d.parquet", text=texts), tmp_path / "out"
    status, said, err = run("dedup", path, "-o", out, "--temp-dir", tmp_path)
    assert (status, said) == (2, "")
    early, late = err.splitlines()
    to_come, can_be_used = 8 * 96 * 1000 - sum(taken), 300_000 - sum(taken)
    assert re.fullmatch(
        rf"{tmp_path}: temporary files will take about \d+\.\d kB more, and \d+\.\d kB are free; .*", early
    )
    assert late == (
        f"neardup: {tmp_path}: the disk is too small; for temporary files about 468.0 kB are missing "
        f"({can_be_used / 1000:.1f} kB can be used, {to_come / 1000:.1f} kB are to come); name a larger disk with "
        "--temp-dir"
    )
    assert not out.exists()
    taken.clear()
    early, late = run("dedup", path, "-o", out)[2].splitlines()  # temporary files are beside the output
    for line, of in ((early, f"{tmp_path}"), (late, f"neardup: {tmp_path}")):
        assert line.startswith(f"{of}: ")
        assert line.endswith("name an output on a larger disk, or another disk for temporary files with --temp-dir")


# explain


def test_explain_removed(run: Run, result: Path) -> None:
    status, said, err = run("explain", result, "near-1")
    assert (status, err) == (0, "")
    assert "near-1 was removed" in said
    assert re.search(r"^kept +a1$", said, re.M)
    assert re.search(r"^resemblance +0\.9174 \(111 of 121 shingles shared\)$", said, re.M)
    old = texts()[1][1].split()[60]
    assert f"[-{old}-] {{+CHANGED+}}" in " ".join(said.split())
    assert "..." in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_explain_exact_duplicates(run: Run, result: Path) -> None:
    assert "the same, character by character" in run("explain", result, "copy-1")[1]
    assert "(116 of 116 shingles shared)" in run("explain", result, "copy-2")[1]


def test_explain_kept(run: Run, result: Path) -> None:
    status, said, _ = run("explain", result, "a3")
    assert status == 0
    assert said.split("\n") == ["a3 was kept, and stands for 2 documents:", "  copy-1", "  copy-2", ""]
    assert run("explain", result, "a9")[1] == "a9 was kept; nothing was removed for it\n"


def test_explain_json_and_full(run: Run, result: Path) -> None:
    found = json.loads(run("explain", result, "near-0", "--json", "--full")[1])
    assert (found["duplicate_of"], found["kept"], found["resemblance"]) == ("a0", False, 111 / 121)
    both = dict(texts())
    for name, op in (("a0", "removed"), ("near-0", "added")):
        assert "".join(text for kind, text in found["words"] if kind in ("equal", op)).split() == both[name].split()


def test_explain_unknown_id(run: Run, result: Path) -> None:
    status, _, err = run("explain", result, "nera-1")
    assert status == 2
    assert str(result) in err
    assert "'nera-1'" in err
    assert "near-1" in err


def test_explain_integer_ids(run: Run, tmp_path: Path) -> None:
    rows = texts()
    path = parquet(tmp_path / "n.parquet", text=[text for _, text in rows], key=list(range(-1, len(rows) - 1)))
    assert run("dedup", path, "--id-column", "key", "-o", tmp_path / "out")[0] == 0
    assert re.search(r"^kept +0$", run("explain", tmp_path / "out", "12")[1], re.M)
    assert "-1 was kept" in run("explain", "--", tmp_path / "out", "-1")[1]
    for wrong in ("99", "a1", "1" * 40):
        status, _, err = run("explain", tmp_path / "out", wrong)
        assert status == 2
        assert "integers from -1 to 15" in err


def test_explain_notices_that_the_input_changed(run: Run, tmp_path: Path) -> None:
    rows = [{"id": name, "text": text} for name, text in texts()]
    path = write_lines(tmp_path / "docs.jsonl", rows)
    assert run("dedup", path, "--id-column", "id", "-o", tmp_path / "out")[0] == 0
    write_lines(path, [{**row, "text": row["text"] + " and more than there was"} for row in rows[:12]] + rows[12:])
    status, _, err = run("explain", tmp_path / "out", "near-1")
    assert status == 2
    assert "docs.jsonl" in err
    assert "changed" in err
    write_lines(path, rows[5:])
    assert run("explain", tmp_path / "out", "near-1")[0] == 2
    path.unlink()
    assert run("explain", tmp_path / "out", "near-1")[0] == 2


def test_against_a_reference(run: Run, tmp_path: Path) -> None:
    rows = [{"id": name, "text": text} for name, text in texts()]
    reference = write_lines(tmp_path / "reference.jsonl", rows[:3])
    path = write_lines(tmp_path / "docs.jsonl", [{**row, "id": f"new-{row['id']}"} for row in rows[3:]])
    out = tmp_path / "out"
    status, said, _ = run("dedup", path, "--against", reference, "--id-column", "id", "-o", out)
    assert status == 0
    assert re.search(r"^reference +3 documents", said, re.M)
    assert re.search(r"^kept +9 ", said, re.M)
    said = run("explain", out, "new-near-2")[1]
    assert re.search(r"^kept +a2 of the reference set$", said, re.M)
    assert "{+CHANGED+}" in said
    assert "stands for 2 documents" in run("explain", out, "new-a3")[1]


def test_explain_folder_of_files(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "pages"
    (source / "deep").mkdir(parents=True)
    for name, text in texts():
        (source / "deep" / f"{name}.txt").write_text(text)
    assert run("dedup", source, "-o", tmp_path / "out")[0] == 0
    said = run("explain", tmp_path / "out", "deep/near-1.txt")[1]
    assert re.search(r"^kept +deep/a1\.txt$", said, re.M)


def test_diff_of_huge_texts_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "COMPARED", 100_000)
    many = "".join(f"w{i} " for i in range(40_000))
    words, notes = diff.differences(f"p {many}x y", f"q {many}y", Recipe(), full=False)
    assert words[:2] == [("removed", "p "), ("added", "q ")] and words[-1] == ("cut", "...")
    assert notes == ["compared: the first 100,000 characters of each text, of at most 268,895"]
    words, notes = diff.differences(f"{many}x y", "x y", Recipe(), full=False)
    assert [op for op, _ in words] == ["removed", "cut", "removed", "added"]


def test_the_end_of_a_text_is_compared_wherever_it_lies() -> None:
    many = "".join(f"w{i} " for i in range(400_000))
    words, notes = diff.differences(f"{many}x y", f"{many}y", Recipe(), full=False)
    assert [part for part in words if part[0] not in ("equal", "cut")] == [("removed", "x ")]
    assert notes == []


# spots


def test_spots(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    text = "At a rally to kick off a campaign for the primary, Obama tried to set the record straight."
    (folder / "a.txt").write_text(text)
    (folder / "b.txt").write_text(f"Photo Gallery Reuters. {text} Related Stories")
    (folder / "c.txt").write_text("lorem ipsum dolor")
    (folder / "own.list").write_text("the\na\nfor\n")
    spots = "--shingling", "spots", "--shingle-size", 2
    status, said, _ = run("dedup", folder, "--glob", "*.txt", *spots, "-o", tmp_path / "out")
    assert status == 0 and "removed    1 (33.3%): 0 identical, 0 same words, 1 near" in said
    assert "spots      none in 1 document of too few stop words, compared by shingles instead" in said
    status, said, _ = run("explain", tmp_path / "out", "b.txt")
    assert "resemblance  1.0000" in said and "{+Photo Gallery Reuters.+}" in said
    own = *spots, "--stop-words", folder / "own.list"
    status, said, _ = run("compare", folder / "a.txt", folder / "b.txt", *own)
    assert status == 0 and "resemblance  1.0000 (5 of 5 shingles shared)" in said
    status, said, _ = run("sketch", folder, "--glob", "*.txt", *own, "-o", tmp_path / "s.parquet")
    assert status == 0 and "without spots 1" in said
    assert re.search(r"stop_words +own:\w{12}\n +stop_word_list a for the\n", run("info", tmp_path / "s.parquet")[1])


# curve


def test_curve(run: Run) -> None:
    status, said, _ = run("curve", "--filter", "6,14,2")
    assert status == 0
    assert "2 of 6 supershingles agree, each of 14 samples; half at 0.909" in said
    assert re.search(r"^ +0\.5 +\S+%", said, re.M)
    assert all(len(line) <= 80 for line in said.splitlines())
    found = json.loads(run("curve", "--filter", "altavista", "--json")[1])
    assert found["filter"] == "6,14,2"
    for point in found["points"]:
        assert point["pass"] == theory.pass_probability(point["resemblance"], 6, 14, 2)
        assert point["exact"] is None
    assert "exact" not in said


def test_curve_beside_exact(run: Run) -> None:
    status, said, _ = run("curve", "--filter", "6,14,2", "--threshold", "0.77")
    assert status == 0
    assert "exact lists every pair from 0.77 on, and none below" in said
    listed = dict(re.findall(r"^ +([01]\.\d+) .* (\S+)%$", said, re.M))
    assert listed["0.75"] == "0.0" and listed["0.77"] == listed["0.8"] == listed["1.0"] == "100.0"
    step = re.search(r"^exact +(\S+)$", said, re.M)
    assert step and set(step[1]) in ({"┌", "─"}, {"+", "-"})
    assert all(len(line) <= 80 for line in said.splitlines())
    found = json.loads(run("curve", "--filter", "6,14,2", "--threshold", "0.77", "--json")[1])
    assert all(point["exact"] == (point["resemblance"] >= 0.77) for point in found["points"])


def test_curve_on_a_logarithmic_scale(run: Run, tmp_path: Path) -> None:
    """Broder 2000, figure 2: a line of the picture is a factor of ten."""
    status, said, _ = run("curve", "--filter", "altavista", "--log")
    assert status == 0
    lines = said.splitlines()[2:14]
    assert [line[:5].strip() for line in lines] == ["1", "", "", "", "1e-4", "", "", "", "1e-8", "", "", "1e-12"]
    columns = max(map(len, lines)) - 6
    for power, line in enumerate(lines):
        filled = [i for i, cell in enumerate(line[6:]) if cell not in " |"]
        first = (filled[0] + 0.5) / columns
        assert 10 ** -(power + 1.01) <= theory.pass_probability(first, 6, 14, 2) < 10**-power, line
    assert said.splitlines()[15:] == run("curve", "--filter", "altavista")[1].splitlines()[15:]
    if importlib.util.find_spec("matplotlib") is not None:
        paths = [tmp_path / "log.svg", tmp_path / "linear.svg"]
        assert run("curve", "--filter", "altavista", "--threshold", 0.9, "--log", "-o", paths[0])[0] == 0
        assert run("curve", "--filter", "altavista", "--threshold", 0.9, "-o", paths[1])[0] == 0
        assert paths[0].read_text() != paths[1].read_text() and "<svg" in paths[0].read_text()


def test_curve_chooses_a_filter(run: Run) -> None:
    found = json.loads(run("curve", "--threshold", "0.7", "--recall", "0.95", "--json")[1])
    assert tuple(map(int, found["filter"].split(","))) == theory.choose_filter(0.7, 0.95)
    at = {point["resemblance"]: point["pass"] for point in found["points"]}
    assert at[0.7] >= 0.95


@pytest.mark.parametrize(
    "arguments", [("--threshold", 1.5), ("--filter", "1,2"), ("--filter", "bands", "--recall", 0.9), ("-o", "x.doc")]
)
def test_curve_with_impossible_parameters(run: Run, arguments: tuple) -> None:
    status, out, err = run("curve", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_curve_drawn(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    status, _, err = run("curve", "--filter", "bands", "-o", path)
    if importlib.util.find_spec("matplotlib") is None:
        assert status == 2
        assert "neardup-gpu[plot]" in err
        assert not path.exists()
    else:
        assert (status, err) == (0, "")
        assert "<svg" in path.read_text()
        assert run("curve", "--filter", "bands", "-o", path)[0] == 2
        assert run("curve", "--threshold", 0.5, "-o", path, "--overwrite")[0] == 0
        assert "exact: every pair from 0.5 on" in path.read_text()  # matplotlib writes each text as a comment


# sketch, pairs, info


def test_sketch_then_pairs(run: Run, corpus: Path, tmp_path: Path) -> None:
    sketches, pairs = tmp_path / "sketches.parquet", tmp_path / "pairs.parquet"
    status, said, _ = run("sketch", corpus, "--id-column", "id", "-o", sketches)
    assert status == 0
    assert re.search(r"^documents +17$", said, re.M)
    assert f"neardup pairs {sketches}" in said
    assert run("sketch", corpus, "-o", sketches)[0] == 2
    status, said, _ = run("pairs", sketches, "-o", pairs, "--json")
    assert status == 0
    table = pq.read_table(pairs)
    assert json.loads(said) == {"status": "done", "output": str(pairs), "pairs": table.num_rows}
    found = {(row["id_a"], row["id_b"]) for row in table.to_pylist()}
    assert {("a0", "near-0"), ("a1", "near-1"), ("a2", "near-2"), ("a3", "copy-1")} <= found

    for path, kind, rows in ((sketches, "sketches", 17), (pairs, "pairs", table.num_rows)):
        status, said, _ = run("info", path)
        assert status == 0
        assert said.startswith(kind)
        assert re.search(rf"^ +rows +{rows}$", said, re.M)
        stored = json.loads(run("info", path, "--json")[1])
        assert stored["recipe"]["threshold"] == 0.8
        assert stored["counts"]["rows"] == rows


def test_sketches_in_shards_and_as_tasks(run: Run, corpus: Path, tmp_path: Path) -> None:
    one, shards, own = tmp_path / "s.parquet", tmp_path / "shards", ("--id-column", "id")
    assert run("sketch", corpus, *own, "-o", one)[0] == 0
    status, said, _ = run("sketch", corpus, *own, "-o", shards, "--shard-bytes", "5kB")
    assert status == 0 and f"neardup pairs {shards}" in said
    number = len(list((shards / "sketches").iterdir()))
    assert number > 1 and re.search(rf"^shards +{number}$", said, re.M)
    status, said, _ = run("info", "--check", shards)
    assert status == 0 and re.search(rf"^ +files +{number}$", said, re.M) and "are as written" in said
    found = [run("pairs", path, "-o", tmp_path / "pairs.parquet", "--overwrite", "--json")[1] for path in (one, shards)]
    assert found[0] == found[1]
    tasks = ("--work-dir", tmp_path / "work", "--workers", "1", "--slice-bytes", "1kB")
    status, said, _ = run("sketch", corpus, *own, "-o", tmp_path / "t.parquet", *tasks, "--json")
    assert status == 0 and json.loads(said)["tasks"]["workers"] == 1
    assert (tmp_path / "t.parquet").read_bytes() == one.read_bytes()
    for flags, says in ((("--workers", "2"), "--work-dir: tasks need a folder"), (("--spool",), "no option --spool")):
        status, _, err = run("sketch", corpus, *own, "-o", tmp_path / "u.parquet", *flags)
        assert (status, err.count("\n")) == (2, 1) and says in err


def test_sketches_of_different_recipes_refuse_to_meet(run: Run, corpus: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        assert run("sketch", corpus, "--id-column", "id", "-o", tmp_path / f"{seed}.parquet", "--seed", seed)[0] == 0
    status, _, err = run("pairs", tmp_path / "1.parquet", tmp_path / "2.parquet", "-o", tmp_path / "pairs.parquet")
    assert status == 2
    assert re.search(r"2\.parquet.*seed", err)
    assert err.count("\n") == 1
    assert not (tmp_path / "pairs.parquet").exists()


def test_pairs_of_what_is_no_sketch(run: Run, result: Path, tmp_path: Path) -> None:
    for path in (result / "pairs.parquet", tmp_path / "nosuch.parquet", good(tmp_path), truncated(tmp_path)):
        status, _, err = run("pairs", path, "-o", tmp_path / "pairs.parquet")
        assert (status, err.count("\n")) == (2, 1)
        assert path.name in err


def test_info(run: Run, result: Path) -> None:
    for path in (result, result / "report.json"):
        status, said, _ = run("info", path)
        assert status == 0
        assert re.search(r"^kept +12 ", said, re.M)
        assert re.search(r"^ +threshold +0\.8$", said, re.M)
    assert json.loads(run("info", result, "--json")[1])["report"]["counts"]["documents"] == 17
    assert run("info", result / "documents.parquet")[1].startswith("documents")


def test_info_of_other_files(run: Run, result: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    cases = {
        tmp_path / "nosuch": "no such file",
        tmp_path / "bare": "not a finished result",
        good(tmp_path): "no recipe",
        next((result / "kept").iterdir()): "kept rows",
        Path(__file__): "not an artefact",
    }
    for path, says in cases.items():
        status, out, err = run("info", path)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert says in err
