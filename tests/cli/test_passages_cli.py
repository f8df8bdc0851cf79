"""`neardup passages` as users type it: the summary, files, limits, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from neardup_gpu import cli

PASSAGE = "When in the course of human events it becomes necessary for one people"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"text": f"He read: {PASSAGE}!", "host": "a", "day": 2},
        {"text": f"Once more, {PASSAGE.upper().replace('EVENTS', 'AFFAIRS')}.", "host": "a", "day": 1},
        {"text": "Nothing here.", "host": "b", "day": 3},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("other.jsonl").write_text(json.dumps({"text": PASSAGE, "host": "b", "day": 1}) + "\n")

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["passages", *arguments, "--engine", "cpu"])
        return status, *capsys.readouterr()

    return call


def test_summary(run: Run) -> None:
    status, out, errors = run("in.jsonl", "-o", "out", "--length", "6", "--date", "day", "--by", "host")
    assert status == 0, errors
    assert [line for line in out.splitlines() if line and not line.startswith("time")] == [
        "looked     runs of 6 tokens or more that 3 documents of 32 tokens share with one another",
        "found      12 tokens (37.5%) of 1 document stand in another one: 1 passage of 1 pair of documents",
        "longest    6 tokens of 0, which stand in 1",
        "by host",
        f"  {'':24}{'documents':>16}{'tokens':>16}{'tokens taken':>16}{'tokens given':>16}",
        f"  {'a':24}{2:>16}{30:>16}{12:>16}{12:>16}",
        f"  {'b':24}{1:>16}{2:>16}{0:>16}{0:>16}",
        f"  {'tokens of':24}{'stand in':24}{'tokens':>16}",
        f"  {'a':24}{'a':24}{12:>16}",
        "written    out: passages.parquet, documents.parquet, passages.html, passages.json",
    ]
    (row,) = pq.read_table("out/passages.parquet").to_pylist()
    assert (row["id"], row["source_id"], row["earlier"]) == (0, 1, "source")
    assert [(change["words"], change["source_words"]) for change in row["changes"]] == [("events", "AFFAIRS")]


def test_two_inputs_and_overwriting(run: Run) -> None:
    status, out, _ = run("in.jsonl", "other.jsonl", "-o", "out", "--length", "6")
    assert status == 0
    assert "that 3 documents of 32 tokens share with 1 source of 13 tokens" in out
    assert pq.read_table("out/sources.parquet").to_pylist() == [
        {"id": 0, "tokens": 13, "tokens_given": 13, "takers": 2}
    ]
    assert run("in.jsonl", "other.jsonl", "-o", "out", "--length", "6")[0] == 2
    assert run("in.jsonl", "other.jsonl", "-o", "out", "--length", "6", "--overwrite")[0] == 0
    assert cli.main(["info", "out", "--check"]) == 0


@pytest.mark.parametrize(
    ("limit", "status"),
    [("passages=1", 0), ("passages=0", 3), ("passages=30%", 3), ("documents=34%", 0), ("documents=0.1", 3)],
)
def test_limits(run: Run, limit: str, status: int) -> None:
    found, out, _ = run("in.jsonl", "--length", "6", "--fail-over", limit, "--json")
    answer = json.loads(out)
    assert found == status and bool(answer["exceeded"]) == (status == 3)
    assert answer["status"] == ("failed" if status else "done")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("in.jsonl --length 1000", "nothing can be shared: no document has 1,000 tokens"),
        ("in.jsonl other.jsonl --length 14", "nothing can be shared: no source has 14 tokens"),
        ("in.jsonl --length 14", "nothing: no two documents share a passage of this length"),
    ],
)
def test_nothing_is_found(run: Run, arguments: str, says: str) -> None:
    status, out, _ = run(*arguments.split())
    assert status == 0 and f"found      {says}" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "A is missing"),
        ("nowhere.jsonl", "nowhere.jsonl: no such file or folder"),
        ("in.jsonl nowhere.jsonl", "nowhere.jsonl: no such file or folder"),
        ("in.jsonl other.jsonl in.jsonl", "in.jsonl"),
        ("in.jsonl --length 1", "--length must be"),
        ("in.jsonl --gap -1", "--gap must be"),
        ("in.jsonl --ignore-common 1", "--ignore-common must be"),
        ("in.jsonl --ignore-common 1%", "'1%' is not a number"),
        ("in.jsonl --max-partners 0", "--max-partners must be"),
        ("in.jsonl --date when", "Name one with --date"),
        ("in.jsonl --within site", "Name one with --within"),
        ("in.jsonl --by site", "no column 'site'"),
        ("in.jsonl --tokens sounds", "--tokens 'sounds' is not one of words, letters, lines, code, ids, chunks"),
        ("in.jsonl --fail-over found=1", "there is no count 'found'; it is one of passages, documents"),
        ("in.jsonl --memory 100MB", "100.0 MB of memory is not enough for a search; give at least 434MB"),
        ("in.jsonl --action cut", "--action"),
        ("in.jsonl -o .", "is where you are"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: str, says: str) -> None:
    status, _, errors = run(*arguments.split())
    assert status == 2 and says in errors.splitlines()[-1]
    assert not Path("out").exists()
