"""Notebooks run from the first cell to the last, their own checks hold, and what is committed can be read.

A notebook reads the package's texts and writes nothing. It runs outside the clone: measured figures stand in a cell.
"""

import ast
import base64
import json
import re
import struct
from pathlib import Path

import pytest
from grids import some

nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"

# Behind the notebook with a slider: it moves, then the cell runs again as where there is no ipywidgets.
BEHIND = {
    "02_choosing_a_threshold": [
        "slider.value = 0.5\nassert slider.value == 0.5",
        "import sys\nsys.modules['ipywidgets'] = None",
    ]
}


LONG = ("03_which_sketch", "04_on_a_gpu", "07_what_is_a_document", "09_which_text_from_where")
"""Notebooks that take most of the time; they run once a week and before a release."""


@pytest.mark.parametrize(
    "path", some(NOTEBOOKS, [path for path in NOTEBOOKS if path.stem not in LONG]), ids=lambda path: path.stem
)
def test_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    behind = [nbformat.v4.new_code_cell(source) for source in BEHIND.get(path.stem, [])]
    with_slider = [cell for cell in notebook.cells if cell.cell_type == "code" and "FloatSlider" in cell.source]
    again = [nbformat.v4.new_code_cell(cell.source) for cell in with_slider]
    notebook.cells += [*behind, *again]
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            noise = [output for output in cell.outputs if output.output_type == "stream" and output.name == "stderr"]
            assert not noise, noise
    assert len(with_slider) == len(behind) // 2
    for cell, without in zip(with_slider, again, strict=True):
        assert "threshold 0.50" in cell.outputs[-1].data["text/html"]  # what stands below the slider has changed
        assert len(cell.outputs) == 2 and len(without.outputs) == 1  # no slider
        assert "threshold 0.80" in without.outputs[0].data["text/html"]


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_progress_without_ipywidgets_is_text(tmp_path: Path) -> None:
    """Bars are one text that is replaced in its place; a cell whose output is captured runs as well."""
    run = "nd.dedup({'text': ['to be or not to be', 'that is the question']}, progress=True)"
    hidden = f"import sys\nsys.modules['ipywidgets'] = None\nimport neardup_gpu as nd\n{run};"
    cells = [nbformat.v4.new_code_cell(source) for source in (hidden, f"%%capture\n{run}", run)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources=folder).execute()
    first, captured, again = (cell.outputs for cell in cells)
    (text,) = [each.data["text/plain"] for each in first if each.output_type == "display_data"]
    assert re.search(r"^sketching +━+ 2 / 2", text) and "deciding" in text and "\x1b" not in text
    assert captured == [] and again[-1].data["text/plain"].startswith("Result(2 documents")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_as_executed(path: Path) -> None:
    code = code_cells(path)
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    shown = str([cell.outputs for cell in code])
    assert not re.search(r"/(home|root|tmp|work|Users|site-packages)/|Traceback", shown)


def objects_in(value: object) -> list[dict[str, object]]:
    """Return all objects of a JSON document."""
    values = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    inner = [found for each in values for found in objects_in(each)]
    return [value, *inner] if isinstance(value, dict) else inner


def test_measured_figures_are_those_of_benchmarks() -> None:
    compared = 0
    for cell in [cell for path in NOTEBOOKS for cell in code_cells(path) if "MEASURED = {" in cell.source]:
        tree = ast.parse(re.sub(r"^%.*$", "", cell.source, flags=re.MULTILINE))
        (given,) = [
            ast.literal_eval(each.value)
            for each in tree.body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "MEASURED"
        ]
        for name, lines in given.items():
            known = objects_in(json.loads((RESULTS / name).read_text()))
            assert not [line for line in lines if not any(line.items() <= each.items() for each in known)]
            compared += len(lines)
    assert compared > 30


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_asks_one_question_and_answers_it_first(path: Path) -> None:
    first = nbformat.read(path, as_version=4).cells[0].source
    question, _, answer = first.partition("\n\n")
    assert question.startswith("# ") and question.endswith("?") and answer.startswith("**Answer.**")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_figures_are_legible(path: Path) -> None:
    """Figures are at most 7 inches wide at 100 dots an inch, so that they are shown as large as they are drawn."""
    figures = 0
    for cell in code_cells(path):
        sizes = re.findall(r"(?:fontsize|labelsize)\W{1,3}(\d+)", cell.source)
        assert all(int(size) >= 9 for size in sizes)
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                width, height = struct.unpack(">II", base64.b64decode(output.data["image/png"])[16:24])
                assert 500 <= width <= 700 and height <= 700
                figures += 1
    assert figures >= 2
