"""How many parameters functions have: what belongs together travels in one object."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANY = 8
"""Functions with more parameters than this are counted."""

PLACES = {"self", "cls", "typingctx", "begin", "end", "begins", "ends", "lower", "upper"}
"""Parameters that are not counted: what Python or Numba gives, and the part of the arrays that a kernel works on."""


def crowded(paths: list[Path]) -> list[str]:
    """Return the names of all functions with many parameters, also of functions inside others."""
    found = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                given = node.args
                names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                if len([name for name in names if name not in PLACES]) > MANY:
                    found.append(f"{path.relative_to(ROOT)}: {node.name}")
    return sorted(found)


def test_few_functions_have_many_parameters() -> None:
    outside = [path for path in (ROOT / "neardup_gpu").rglob("*.py") if "kernels" not in path.parts]
    found = crowded(outside)
    # Verbs: dedup, sketch, contaminated, passages, substrings, and three of an index.
    assert len(outside) > 200 and len(found) <= 8, found
    inside = crowded([*(ROOT / "kernels").glob("*.py")])
    assert 0 < len(inside) <= 70, inside
