"""Names say what things are, and no two classes have the same name."""

import ast
from collections import Counter
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]


@pytest.mark.quick
def test_each_class_has_a_name_of_its_own() -> None:
    """A leading underscore does not tell two names apart: people who search for one find the other."""
    paths = [*HOUSE.glob("kernels/*.py")]
    paths += [path for path in HOUSE.glob("neardup_gpu/**/*.py") if "kernels" not in path.relative_to(HOUSE).parts]
    found = Counter(
        node.name.lstrip("_")
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(found) > 300 and [name for name, number in found.items() if number > 1] == []
