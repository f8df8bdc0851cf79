"""Files of which bytes were changed are read or refused: never a crash, never memory of the process in an output."""

import subprocess
import sys
from pathlib import Path

import mutated
import pytest


@pytest.mark.parametrize("kind", mutated.KINDS)
def test_mutated_files(kind):
    script = Path(mutated.__file__)
    ended = subprocess.run([sys.executable, script, kind, "0", "60"], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
