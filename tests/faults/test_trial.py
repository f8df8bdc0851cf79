"""Every case of every file cases_*.py, judged alike by `judge`."""

import importlib
from pathlib import Path

import pytest

from . import judge

for file in sorted(Path(__file__).parent.glob("cases_*.py")):
    importlib.import_module(f"faults.{file.stem}")


@pytest.mark.parametrize("case", judge.CASES, ids=lambda case: case.name)
def test_case(case, tmp_path):
    judge.judge(case, tmp_path)


def test_there_are_300_cases_of_different_names():
    names = [case.name for case in judge.CASES]
    assert len(set(names)) == len(names) >= 300
