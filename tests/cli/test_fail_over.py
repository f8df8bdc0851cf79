"""Test `--fail-over` on the commands that read documents: status 3 after the result was written, and the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neardup_gpu import cli

SAME = '{"n": %d, "text": "to be or not to be that is the question"}\n'


@pytest.mark.parametrize(
    ("command", "limits", "exceeded"),
    [
        (["dedup", "-o", "out"], ["removed=1", "skipped=0"], ["skipped: 1, more than 0"]),
        (["sketch", "-o", "out"], ["skipped=10%"], ["skipped: 1 of 3 (33.3%), more than 0.1"]),
        (["substrings", "-o", "out", "--length", "4"], ["removed=0.4"], ["removed: 10 of 20 (50.0%), more than 0.4"]),
        (["index", "add", "out"], ["removed=0"], ["removed: 1, more than 0"]),
        (
            ["audit", "-o", "out", "--kept", "kept.jsonl", "--id-column", "n"],
            ["skipped=0"],
            ["skipped: 1, more than 0"],
        ),
        (["passages", "-o", "out", "--length", "4"], ["skipped=0"], ["skipped: 1, more than 0"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_limits_of_rows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    limits: list[str],
    exceeded: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(f"{SAME % 0}{SAME % 1}{{bad\n")
    Path("kept.jsonl").write_text('{"n": 0}\n')
    if command[0] == "index":
        assert cli.main(["index", "create", "out"]) == 0
    capsys.readouterr()
    words = [word for limit in limits for word in ("--fail-over", limit)]
    assert cli.main([*command, "in.jsonl", "--on-error", "skip", "--json", *words]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "failed" and answer["exceeded"] == exceeded
    assert Path("out").exists()
    assert cli.main([*command, "in.jsonl", "--fail-over", "found=1"]) == 2
    assert "there is no count 'found'; it is one of " in capsys.readouterr().err
