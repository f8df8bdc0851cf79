"""What README shows is what happens."""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from pages import REPOSITORY, Block, agrees, run_blocks

pytestmark = pytest.mark.quick

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_it_is_short() -> None:
    assert README.count("\n") <= 90


def test_python(tmp_path: Path) -> None:
    ((code, after),) = [(code, after) for (kind, code), after in pairwise(BLOCKS) if kind == "python"]
    ((_, (status, printed, complaints)),) = run_blocks([Block("python", code, None, 0)], tmp_path)
    assert (status, complaints, ("text", printed)) == (0, "", after)


def test_two_commands_of_one_line() -> None:
    main, tests = [code for language, code in BLOCKS if language == "sh"]
    for command in (main, tests):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && . .venv/bin/activate && pip install -q ")
    assert "neardup demo" in main
    assert tests.endswith("&& pytest\n")
    # .ci/run takes the line from README by this pattern.
    assert [line for line in README.splitlines() if re.search(r"^python3 -m venv .* && pytest$", line)] == [
        tests.strip()
    ]
    assert "grep '^python3 -m venv .* && pytest$' README.md" in (REPOSITORY / ".ci" / "run").read_text()


@pytest.mark.skipif(os.name == "nt", reason="README's commands are for a POSIX shell")
def test_main_command(tmp_path: Path) -> None:
    """The main command from its installation on, with this environment in place of a new one."""
    (main, shown), *_ = [(code, after[1]) for (kind, code), after in pairwise(BLOCKS) if kind == "sh"]
    (outcome,) = run_blocks([Block("sh", main.partition("pip install -q . && ")[2], shown, 0)], tmp_path)
    _, (status, printed, complaints) = outcome
    assert status == 0, complaints
    assert agrees(shown, printed), f"README shows\n{shown}\nand this prints\n{printed}"
    for name in ("documents.parquet", "kept", "report.json"):
        assert (tmp_path / "page" / "neardup-demo" / name).exists()
