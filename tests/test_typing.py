"""Type checkers see what every public name is: in typing/calls.py they refuse what is marked as wrong, and no more."""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import neardup_gpu

ROOT = Path(__file__).parent.parent
CALLS = ROOT / "tests" / "typing" / "calls.py"
WRONG = {number for number, line in enumerate(CALLS.read_text().splitlines(), 1) if line.endswith("# wrong")}


def run(*words):
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=480)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


def run_code(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_mypy():
    found = [json.loads(line) for line in run("mypy", "--output", "json", str(CALLS)).splitlines() if line[:1] == "{"]
    refused = {each["line"]: each["message"] for each in found if each["severity"] == "error"}
    assert {Path(each["file"]).name for each in found} == {CALLS.name}
    assert set(refused) == WRONG, {line: refused.get(line) for line in set(refused) ^ WRONG}


def test_pyright(tmp_path):
    """By basedpyright, which is pyright with its own Node, so that nothing has to be downloaded."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    settings = {"include": [str(CALLS)], "extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    settings |= {"reportMissingImports": False, "reportMissingModuleSource": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    words = "--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"
    found = json.loads(run("basedpyright", *words))["generalDiagnostics"]
    refused = {each["range"]["start"]["line"] + 1: each["message"] for each in found if each["severity"] == "error"}
    assert set(refused) == WRONG, {line: refused.get(line) for line in set(refused) ^ WRONG}


def test_what_checkers_see_is_what_there_is():
    tree = ast.parse(Path(neardup_gpu.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.level]
    seen = {name.name: node.module for node in imports for name in node.names}
    assert sorted(seen) == sorted(neardup_gpu.__all__)
    for name, module in seen.items():
        home = importlib.import_module(f"neardup_gpu.{module or name}")
        assert getattr(neardup_gpu, name) is (getattr(home, name) if module else home)


def test_every_error_is_public():
    classes = {name for name, value in vars(neardup_gpu.errors).items() if isinstance(value, type)}
    assert classes == set(neardup_gpu.errors.__all__)


def test_the_package_has_32_public_names_and_completion_shows_no_others():
    methods = "Exact Containment Identical MinHash BottomK ModM SimHash"
    options = "Recipe Reference Shingles Unit Engine Workers Reading Writing"
    modules = ["sketches", "stages", "errors", "hamming", "papers", "theory", "plot"]
    verbs = "dedup audit compare contaminated substrings passages open_documents"
    names = f"{verbs} Index Result NeardupError {methods} {options}".split() + modules
    assert len(names) == 32
    code = "import json, neardup_gpu as nd; print(json.dumps([dir(nd), nd.__all__]))"
    shown, public = json.loads(run_code(code))
    assert sorted(names) == sorted(public) == sorted(set(shown) - {"__version__"})
    for name in modules:
        module = getattr(neardup_gpu, name)
        assert dir(module) == sorted(module.__all__) and all(hasattr(module, each) for each in module.__all__)
