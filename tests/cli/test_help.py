"""Help: its width, its words, and how soon it is there."""

from __future__ import annotations

import re
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
    assert "None" not in said and "--no-" not in re.sub("--no-(header|spool)", "", said)


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize("columns", [1, 30, 70, 200])
def test_help_on_a_terminal(columns: int) -> None:
    from terminal import on_terminal

    status, said = on_terminal("hamming", "query", "--help", columns=columns)
    assert status == 0
    assert "\x1b[1mFingerprints\x1b[0m" in said
    assert max(map(len, said.splitlines())) <= min(100, max(40, columns)) + len("\x1b[1m\x1b[0m")


@pytest.mark.parametrize(
    ("command", "usual", "other"),
    [
        (["dedup"], "exact", "minhash"),
        (["sketch"], "minhash", "modm"),
        (["index", "create"], "minhash", "simhash"),
        (["plan"], "exact", "bottomk"),
    ],
)
def test_the_options_of_one_method_are_shown(
    command: list[str], usual: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {
        "exact": [],
        "minhash": ["--filter"],
        "modm": ["--adaptive"],
        "simhash": ["--radius"],
        "bottomk": ["--leading"],
    }
    helps = {}
    for method, words in ((usual, []), (usual, ["--method", usual]), (other, [f"--method={other}"])):
        assert cli.main([*command, *words, "--help"]) == 0
        helps[method, bool(words)] = capsys.readouterr().out
    assert helps[usual, False] == helps[usual, True]
    for (method, _), said in helps.items():
        for each in own[method]:
            assert f"\n  {each} " in said
        hidden = own[other if method == usual else usual]
        assert not any(f"\n  {each} " in said for each in hidden)
        line = " ".join(said.split()).rpartition(
            f"neardup {' '.join(command)} --method NAME --help shows the options of "
        )[2]
        assert (other if method == usual else usual) in line and method not in line.rstrip(".").split(", ")


def test_help_of_a_method_that_does_not_exist_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dedup", "--method", "md5", "--help"]) == 2
    said = capsys.readouterr()
    assert (
        said.out == ""
        and said.err.startswith("neardup: --method 'md5' is not one of exact")
        and said.err.count("\n") == 1
    )
