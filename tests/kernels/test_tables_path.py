"""Fingerprints come from products of vectors or words, or from tables, as processors allow: the same bits each way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neardup_gpu.kernels._launch import CARRYLESS_WIDTH


@pytest.mark.thorough
@pytest.mark.parametrize("width", [0, 128])  # 256 is 128 and 512 with another number of lanes
def test_kernels_agree_with_narrower_products(width):
    if width >= CARRYLESS_WIDTH:
        pytest.skip(f"this whole run uses carry-less products of {CARRYLESS_WIDTH} bits")
    kernels = "tokens or shingles or sequences or supershingles"
    tests = ["test_agreement.py", "test_rabin.py", "-k", f"test_rabin or (test_agreement and ({kernels}))"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *tests],
        env={**os.environ, "NEARDUP_CLMUL": str(width)},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]


def test_the_switch_switches():
    code = "import neardup_gpu; from neardup_gpu.kernels._launch import CARRYLESS_WIDTH; print(CARRYLESS_WIDTH)"
    environment = {**os.environ, "NEARDUP_CLMUL": "0"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"
