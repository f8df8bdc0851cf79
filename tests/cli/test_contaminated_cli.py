"""`neardup contaminated` as users type it: the table, the gate, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from neardup_gpu import cli

ITEM = "When in the course of human events it becomes necessary for one people to dissolve the political bands"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    lines = [{"text": "nothing of that kind"}, {"text": f"He read: {ITEM}!"}]
    Path("train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("evals").mkdir()
    items = [{"id": "q1", "question": ITEM}, {"id": "q2", "question": "What?"}, {"id": "q3", "question": ITEM[::-1]}]
    Path("evals", "history.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(["contaminated", *arguments, "--engine", "cpu"])
        return status, *capsys.readouterr()

    return call


def test_table(run: Run) -> None:
    status, out, _ = run("train.jsonl", "--evals", "evals", "-o", "out")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == ("looked     22 n-grams of 3 items in 24 tokens of 2 documents; a run counts from 8 tokens on")
    assert lines[1:3] == [
        "           1 item of fewer than 5 tokens: too short to tell",
        "found      1 of 3 items (33.3%) in 1 document (50.0%), by 1 hit",
    ]
    (row,) = [line.split() for line in lines if line.startswith("  history")]
    assert row == ["history", "3", "1", "1", "1", "1", "1", "1", "1", "18", "q1"]
    assert lines[-1] == "written    out: hits.parquet, evals.parquet, contaminated.html, certificate.json"


def test_a_run_that_finds_nothing_says_what_was_looked_for(run: Run) -> None:
    Path("other.jsonl").write_text('{"text": "to be or not to be"}\n')
    _, out, _ = run("other.jsonl", "--evals", "evals")
    assert "22 n-grams of 3 items in 6 tokens of 1 document" in out
    assert "found      nothing: no document shares a run of tokens with an item" in out


@pytest.mark.parametrize(
    ("limit", "status", "says"),
    [
        ("items=1", 0, ""),
        ("items=0", 3, "failed     items: 1, more than 0"),
        ("gpt3=0", 3, "failed     gpt3: 1, more than 0"),
        ("documents=10%", 3, "failed     documents: 1 of 2 (50.0%), more than 0.1"),
        ("hits=0", 2, "there is no count 'hits'; it is one of items, documents, gpt3"),
    ],
)
def test_a_gate(run: Run, limit: str, status: int, says: str) -> None:
    found, out, errors = run("train.jsonl", "--evals", "evals", "-o", "out", "--fail-over", limit)
    assert found == status and says in (errors if status == 2 else out)
    assert Path("out").exists() == (status != 2)


def test_json(run: Run) -> None:
    status, out, _ = run("train.jsonl", "--evals", "evals", "--json", "--fail-over", "items=0")
    told = json.loads(out)
    assert status == 3 and told["status"] == "failed" and told["exceeded"] == ["items: 1, more than 0"]
    assert told["counts"]["items_hit"] == 1 and told["sets"][0]["examples"] == ["q1"]


def test_counts_by_value(run: Run) -> None:
    lines = [{"text": text, "site": site} for text, site in ((ITEM, "a"), (f"{ITEM} {ITEM}", "a"), ("nothing", "b"))]
    Path("sites.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, out, _ = run("sites.jsonl", "--evals", "evals", "--by", "site")
    table = out[out.index("by site") :].splitlines()
    assert [line.split() for line in table[1:4]] == [
        ["documents", "documents", "hit", "items", "hits"],
        ["a", "2", "2", "1", "3"],
        ["b", "1", "0", "0", "0"],
    ]


def test_runs_across_seams(run: Run) -> None:
    words = ITEM.split()
    text = " ".join([*words[:9], ITEM, *words[9:]])
    Path("twice.jsonl").write_text(json.dumps({"text": text}) + "\n")
    _, out, _ = run("twice.jsonl", "--evals", "evals", "-o", "out", "--action", "cut", "--length", "10")
    lines = out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("kept"))
    assert (
        lines[place + 1] == "           1 run of tokens is new, across the seams of cuts; no check of kept/ counts it"
    )
    status, out, _ = run("out/kept", "--evals", "evals", "--length", "10", "--fail-over", "items=0")
    assert status == 0 and "found      nothing" in out
    Path("bad.jsonl").write_text(json.dumps({"text": text, "seams": "zigzag"}) + "\n")
    status, _, errors = run("bad.jsonl", "--evals", "evals")
    assert status == 2 and errors.splitlines()[-1].startswith("neardup: column 'seams': holds something else")


def test_workers(run: Run) -> None:
    _, here, _ = run("train.jsonl", "--evals", "evals", "-o", "here")
    words = ["--work-dir", "work", "--workers", "1", "--slice-bytes", "40"]
    status, there, _ = run("train.jsonl", "--evals", "evals", "-o", "there", *words)
    assert status == 0 and there.splitlines()[:6] == here.splitlines()[:6]
    for name in ("hits.parquet", "evals.parquet", "contaminated.html"):
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()
    assert json.loads(Path("there", "certificate.json").read_text())["tasks"]["slices"] > 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("train.jsonl --evals evals --work-dir work", "--output: tasks write their result into a folder; name one"),
        ("train.jsonl --evals evals -o out --workers 2", "--work-dir: tasks need a folder to work in"),
        ("train.jsonl --evals evals --by site", "no column 'site'"),
        ("train.jsonl --evals evals --within site", "no column 'site'"),
        ("train.jsonl --evals evals --against other", "other: no such file or folder"),
        ("train.jsonl --against train.jsonl", "train.jsonl: is an evaluation set and a file of the training text"),
        (
            "train.jsonl --evals evals --tokens chunks",
            "'chunks' is not one of words, letters, lines, code, ids",
        ),
        ("train.jsonl", "--evals: none given; name files of evaluation sets"),
        (". --evals evals", "evals/history.jsonl: is an evaluation set and a file of the training text"),
        (
            "train.jsonl --evals evals --fields answer",
            "history: none of the fields answer with text; it has id, question",
        ),
        ("train.jsonl --evals evals --action cut", "--action 'cut': writes kept/, so name an output folder"),
        ("train.jsonl --evals evals --length 3", "--length must be"),
        ("train.jsonl --evals nowhere", "nowhere: no such file or folder"),
    ],
)
def test_mistakes_are_one_line(run: Run, arguments: str, says: str) -> None:
    status, _, errors = run(*arguments.split())
    assert status == 2 and says in errors.splitlines()[-1]
    assert not Path("out").exists()
