"""Help: its width, its words, and how soon it is there."""

from __future__ import annotations

import sys

import pytest

from neardup_gpu import cli
from neardup_gpu.cli import help as cli_help

NAMES = ("dedup", "sketch", "pairs", "explain", "curve", "plan", "info", "demo", "doctor", "selftest", "hamming")
COMMANDS = [
    *([name] for name in NAMES),
    *(["hamming", name] for name in ("build", "query", "join", "pairs")),
    [],
]


@pytest.mark.parametrize("width", [40, 57, 80, 100])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    words: list[str], width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_help, "help_width", lambda: width)
    assert cli.main([*words, "--help"]) == 0
    said = capsys.readouterr().out
    assert all(len(line) <= width for line in said.splitlines())
    assert "None" not in said and "--no-" not in said.replace("--no-header", "")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize("columns", [1, 30, 70, 200])
def test_help_on_a_terminal(columns: int) -> None:
    from terminal import on_terminal

    status, said = on_terminal("hamming", "query", "--help", columns=columns)
    assert status == 0
    assert "\x1b[1mFingerprints\x1b[0m" in said
    assert max(map(len, said.splitlines())) <= min(100, max(40, columns)) + len("\x1b[1m\x1b[0m")
