"""`neardup substrings` as users type it: the summary, files, a second run, and mistakes."""

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
        {"text": f"He read: {PASSAGE}!", "host": "a"},
        {"text": f"Once more, {PASSAGE.upper()}.", "host": "a"},
        {"text": PASSAGE, "host": "b"},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["substrings", *arguments, "--engine", "cpu"])
        return status, *capsys.readouterr()

    return call


def test_summary(run: Run) -> None:
    status, out, _ = run("in.jsonl", "-o", "out", "--length", "10")
    assert status == 0
    assert [line for line in out.splitlines() if not line.startswith("time")] == [
        "looked     passages of 10 tokens or more in 43 tokens of 3 documents",
        "found      39 tokens (90.7%) in passages that occur more than once",
        "removed    26 tokens (60.5%) in 2 passages of 2 documents; each stands whole in kept text",
        "           13 tokens (30.2%) would have no copy left if all that repeats were removed",
        "longest    13 tokens in 3 places: bytes 11 to 81 of 1",
        "frequent   13 tokens in 3 places: bytes 11 to 81 of 1",
        "kept       17 tokens of 2 documents; 1 document dropped with no tokens left",
        "written    out: spans.parquet, documents.parquet, kept/, substrings.html, substrings.json",
    ]
    assert sorted(path.name for path in Path("out").iterdir()) == [
        *("documents.parquet", "job.toml", "kept", "spans.parquet", "substrings.html", "substrings.json")
    ]


def test_a_second_run_and_overwriting(run: Run) -> None:
    run("in.jsonl", "-o", "out", "--length", "10")
    status, out, _ = run("out/kept", "-o", "again", "--length", "10")
    assert status == 0 and "nothing: no passage of this length occurs more than once" in out
    assert Path("again/kept/in.jsonl").read_bytes() == Path("out/kept/in.jsonl").read_bytes()
    assert run("in.jsonl", "-o", "out", "--length", "10")[0] == 2
    assert run("in.jsonl", "-o", "out", "--length", "10", "--overwrite")[0] == 0


def test_templates_within_a_host(run: Run) -> None:
    """A template is removed without a source, by the share of the documents of its host, and the table says so."""
    arguments = "in.jsonl -o out --length 10 --in-documents 0.6 --within host --keep none --json"
    status, out, _ = run(*arguments.split())
    counts = json.loads(out)["counts"]
    assert status == 0 and counts["templates"] == counts["passages"] == 2
    assert pq.read_table("out/spans.parquet").select(["id", "source_id", "reason"]).to_pylist() == [
        {"id": number, "source_id": None, "reason": "template"} for number in (0, 1)
    ]


def test_explain_and_the_page(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Each lost passage is shown beside its source, here the reference set, and the kept one names who lost it."""
    run("in.jsonl", "-o", "out", "--length", "10", "--by", "host")
    page = Path("out/substrings.html").read_text()
    assert f"<del>{PASSAGE.upper()}</del>" in page and f"He read: <ins>{PASSAGE}</ins>" in page and "By host" in page
    assert cli.main(["explain", "out", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "document   1: 15 words, 2 left",
        "removed    bytes 11 to 81, 13 tokens in 3 places; kept by 0, from byte 9",
        f"           {PASSAGE.upper()}",
    ]
    assert cli.main(["explain", "out", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["passages"], found["tokens_given"], found["takers"]) == ([], 26, 2)
    Path("known.jsonl").write_text(json.dumps({"text": f"Known: {PASSAGE}"}) + "\n")
    run("in.jsonl", "-o", "apart", "--length", "10", "--against", "known.jsonl")
    assert cli.main(["explain", "apart", "2"]) == 0
    assert "dropped" in (out := capsys.readouterr().out) and "kept by 0 of the reference set, from byte 7" in out
    for words, says in (("explain out 9", "no document '9'"), ("explain out 0 --vocabulary x", "--vocabulary")):
        assert cli.main(words.split()) == 2 and says in capsys.readouterr().err


def test_a_length_above_all_documents(run: Run) -> None:
    status, out, _ = run("in.jsonl", "--length", "1000")
    assert status == 0 and "found      nothing can repeat: no document has 1,000 tokens" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("nowhere.jsonl", "nowhere.jsonl: no such file or folder"),
        ("in.jsonl --length 1", "--length must be"),
        ("in.jsonl --in-documents 1", "--in-documents must be"),
        ("in.jsonl --in-documents 30%", "'30%' is not a number"),
        ("in.jsonl --keep date", "no column 'date'"),
        ("in.jsonl --within site", "Name one with --within"),
        ("in.jsonl --keep none --keep-copies 2", "no copy is kept; leave one out"),
        ("in.jsonl --action drop", "--action 'drop' is not one of cut, mark, list"),
        ("in.jsonl --tokens sounds", "--tokens 'sounds' is not one of words, letters, lines, code, ids, chunks"),
        ("in.jsonl --memory 100MB", "100.0 MB of memory is not enough for a search; give at least 434MB"),
        ("in.jsonl --work-dir work", "--output: tasks write their result into a folder"),
        ("in.jsonl --against nowhere.jsonl", "nowhere.jsonl: no such file or folder"),
        ("in.jsonl --by site", "no column 'site'"),
        ("in.jsonl -o .", "is where you are"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: str, says: str) -> None:
    status, _, errors = run(*arguments.split())
    assert status == 2 and says in errors.splitlines()[-1]
    assert not Path("out").exists()
