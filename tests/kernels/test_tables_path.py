"""Fingerprints come from products of vectors or words, or from tables, as processors allow: the same bits each way.

A process takes one way. Those of narrower processors are tried by setting NEARDUP_CLMUL, as `.ci/run` does for other
versions of packages.
"""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("width", ["0", "128"])
def test_the_switch_switches(width):
    code = "import neardup_gpu; from neardup_gpu.kernels._launch import CARRYLESS_WIDTH; print(CARRYLESS_WIDTH)"
    environment = {**os.environ, "NEARDUP_CLMUL": width}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(run.stdout) <= int(width)
