"""What README shows is what happens."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)

PYTHON = [
    (code, output)
    for (language, code), (following, output) in pairwise(BLOCKS)
    if language == "python" and following == "text"
]


def test_every_python_block_has_its_output() -> None:
    assert len(PYTHON) == sum(language == "python" for language, _ in BLOCKS) == 5


@pytest.mark.parametrize(("code", "output"), PYTHON, ids=["dedup", "others", "simhash", "result", "stages"])
def test_python(code: str, output: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_two_commands_of_one_line() -> None:
    main, tests = [code for language, code in BLOCKS if language == "sh"]
    for command in (main, tests):
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && . .venv/bin/activate && pip install -q ")
    assert "neardup dedup" in main
    assert tests.endswith("&& pytest\n")
    # .ci/run takes the line from README by this pattern.
    assert [line for line in README.splitlines() if re.search(r"^python3 -m venv .* && pytest$", line)] == [
        tests.strip()
    ]
    assert "grep '^python3 -m venv .* && pytest$' README.md" in (REPOSITORY / ".ci" / "run").read_text()


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="README's commands are for a POSIX shell")
def test_main_command(tmp_path: Path) -> None:
    """The main command from its installation on, with this environment in place of a new one."""
    main = next(code for language, code in BLOCKS if language == "sh")
    after = main.partition("pip install -q . && ")[2]
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "lib").symlink_to(Path(sysconfig.get_path("purelib")).parent.parent)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", after], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    shown = next(code for language, code in BLOCKS if language == "text")
    for output in (shown, done.stdout):
        for label in ("documents", "kept", "removed", "groups", "recall", "time", "groups by size", "largest groups"):
            assert re.search(rf"^{label}\b", output, re.MULTILINE), label
    for line in ("stdlib/encodings/cp1140.py was removed", "kept         stdlib/encodings/cp037.py"):
        assert line in shown.splitlines()
        assert line in done.stdout.splitlines()
    assert all(
        path.exists() for path in (tmp_path / "out" / name for name in ("documents.parquet", "kept", "report.json"))
    )


@pytest.mark.thorough
def test_every_option_exists() -> None:
    hamming = ("hamming build", "hamming query", "hamming join", "hamming pairs")
    commands = ("dedup", "sketch", "pairs", "clusters", *hamming, "explain", "compare", "curve", "plan", "info")
    known = set()
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "neardup_gpu", *command.split(), "--help"],
            env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        known |= set(re.findall(r"--[a-z][a-z-]*", done.stdout))
    ours = re.sub(r"^    ray start .*$", "", README, flags=re.MULTILINE)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours)) <= known


@pytest.mark.thorough
@pytest.mark.corpus
def test_commands_on_bills(corpora: Path, tmp_path: Path) -> None:
    """The commands about bills.parquet, one after the other, each with its output in nobody's way."""
    (tmp_path / "bills.parquet").symlink_to(corpora / "bills_116_small.parquet")
    commands = [line.strip() for line in README.splitlines() if line.startswith("    neardup ")]
    assert len(commands) > 12
    for line in commands:
        words = shlex.split(line)[1:]
        if words[0] == "selftest" or "--work-dir" in words:
            continue
        outputs = [tmp_path / words[at + 1] for at, word in enumerate(words) if word in ("-o", "--output")]
        for output in outputs:
            shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "neardup_gpu", *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, all(output.exists() for output in outputs)) == (0, True), f"{line}\n{done.stderr}"
        if "simhashes.parquet" in line and words[0] == "sketch":  # also what is asked, and what is joined with it
            (tmp_path / "new.parquet").symlink_to(outputs[0])
            (tmp_path / "crawl").mkdir()
            (tmp_path / "crawl" / "a.parquet").symlink_to(outputs[0])


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.skipif(os.name == "nt", reason="README's commands are for a POSIX shell")
def test_a_job_of_tasks_is_killed_and_gone_on_with(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "bills.parquet").symlink_to(corpora / "bills_116.parquet")
    (tmp_path / "neardup").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m neardup_gpu "$@"\n')
    (tmp_path / "neardup").chmod(0o755)
    begun, killed, again = re.findall(r"^    ((?:neardup .* --work-dir work .*|sleep .*))$", README, re.MULTILINE)
    assert begun == f"{again} &"
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = f"{begun}\n{killed}\ntest ! -e scaled || exit 9\n{again}\n"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scaled" / "report.json").exists() and not (tmp_path / "work" / "job.json").exists()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in target or (REPOSITORY / target).exists(), target
