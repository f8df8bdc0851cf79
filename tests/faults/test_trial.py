"""Every case of every file cases_*.py, judged alike by `judge`.

By default one case of each file: the first that needs no interpreter, time or act of its own. The rest are thorough.
"""

import importlib
from collections import Counter
from pathlib import Path

import pytest

from . import judge

for file in sorted(Path(__file__).parent.glob("cases_*.py")):
    importlib.import_module(f"faults.{file.stem}")


def cases():
    plain = Counter()
    for case in judge.CASES:
        file = case.make.__module__
        is_plain = not case.fresh and case.during is None and case.max_seconds <= judge.Case.max_seconds
        plain[file] += is_plain
        marks = [] if is_plain and plain[file] <= 1 else [pytest.mark.thorough]
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(cases()))
def test_case(case, tmp_path):
    judge.judge(case, tmp_path)


def test_there_are_300_cases_of_different_names():
    names = [case.name for case in judge.CASES]
    assert len(set(names)) == len(names) >= 300
