"""Completion in shells: installed by one line, and what bash then proposes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from neardup_gpu import cli

HOMES = {
    "bash": ".local/share/bash-completion/completions/neardup",
    "zsh": ".zsh/completions/_cyclopts_neardup",
    "fish": ".config/fish/completions/neardup.fish",
}

PROPOSED = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p neardup | sed -E 's/.*-F ([^ ]+).*/\1/')
"$function" neardup "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZSH_CUSTOM", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("shell", HOMES)
def test_one_line_installs_it(shell: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(1 if shell == "fish" else 2):  # the second time changes nothing, nor what the shell reads first
        assert cli.main(["--install-completion", "--shell", shell]) == 0
        assert str(home / HOMES[shell]) in capsys.readouterr().out
    text = (home / HOMES[shell]).read_text()
    for word in ("dedup", "demo", "hamming", "threshold"):
        assert word in text
    started = home / {"bash": ".bashrc", "zsh": ".zshrc"}.get(shell, "none")
    assert not started.exists() or started.read_text().count("# Load") <= 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_what_bash_proposes(home: Path) -> None:
    assert cli.main(["--install-completion", "--shell", "bash"]) == 0

    def proposed(*words: str) -> set[str]:
        asked = ["bash", "-c", PROPOSED, "bash", str(home / HOMES["bash"]), *words]
        return set(subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout.split())

    assert {"dedup", "demo", "doctor", "info"} <= proposed("neardup", "")
    assert proposed("neardup", "do") == {"doctor"}
    assert {"--threshold", "--output", "--log-json"} <= proposed("neardup", "dedup", "--")
    assert {"build", "join"} <= proposed("neardup", "hamming", "")


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--install-completion", "--shell", "ksh"]) == 2
    assert capsys.readouterr() == ("", "neardup: --shell 'ksh' is not one of bash, zsh, fish\n")


def test_a_home_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert cli.main(["--install-completion", "--shell", "fish"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "completion was not installed" in said.err
