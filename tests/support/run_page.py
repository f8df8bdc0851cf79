"""Run the blocks of a page, in the folder where the page's files lie.

Blocks of Python share one namespace. A block of the shell all of whose lines are plain calls of `neardup` runs in this
process, which saves a second each; any other runs in `sh -e`.
"""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator

NEEDS_A_SHELL = re.compile(r"[|&;<>$`*?~(){}#]")


def lines_of(code: str) -> list[str]:
    """The commands of a block of the shell, lines that go on after a backslash joined."""
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


@contextlib.contextmanager
def captured() -> Iterator[list[str]]:
    """What the process writes to its standard output meanwhile."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        found: list[str] = []
        try:
            yield found
        finally:
            sys.stdout.flush()
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode())


def run_python(code: str, name: str, namespace: dict) -> int:
    try:
        exec(compile(code, name, "exec"), namespace)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_shell(code: str) -> int:
    lines = lines_of(code)
    if any(NEEDS_A_SHELL.search(line) or not line.startswith("neardup ") for line in lines):
        return subprocess.run(["sh", "-e", "-c", code], check=False).returncode
    from neardup_gpu.cli.process import main

    for line in lines:
        status = main(shlex.split(line)[1:])
        if status:
            return status
    return 0


def run(blocks: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """The exit status and the standard output of each block, up to the first that fails."""
    namespace: dict = {"__name__": "__main__"}
    outcomes: list[tuple[int, str]] = []
    for number, (language, code) in enumerate(blocks):
        with captured() as output:
            status = run_shell(code) if language == "sh" else run_python(code, f"<block {number}>", namespace)
        outcomes.append((status, output[0]))
        if status:
            break
    return outcomes


def main(asked: str, answers: str) -> None:
    """Read the blocks from one file of JSON, and write their outcomes into another."""
    with open(asked) as file:
        made = run(json.load(file))
    with open(answers, "w") as file:
        json.dump(made, file)
