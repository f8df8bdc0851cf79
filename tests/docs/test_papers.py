"""The pages on the papers: every name on them exists, every measured number is the one in its file, every erratum has
its test.
"""

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "papers").glob("*.md"))
FOLDERS = ("benchmarks", "docs", "kernels", "neardup_gpu", "notebooks", "tests")


MEASURED = [*PAGES, ROOT / "docs" / "concepts" / "simhash.md"]
"""Pages with tables of measured numbers."""


def page_id(page):
    return page.stem


def codes(text):
    """What stands between single backticks, outside of fenced blocks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def paths(text):
    """Names of files of the repository, with the tests behind `::`."""
    return [code for code in codes(text) if code.split("/")[0] in FOLDERS and "/" in code]


@cache
def names_in(path):
    """Functions and classes of a file, and methods as Class::method."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def resolved(name):
    """The object of a dotted name: the longest module of it, and attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def measured(text):
    """Rows of tables of measured numbers: (file, value, the figure's name, conditions, field)."""
    rows, file = [], None
    for line in text.splitlines():
        if named := re.findall(r"`(benchmarks/results/[^`]+\.json)`", line):
            file = named[-1]
        elif line.startswith("|") and len(found := codes(line.split("|")[-2])) > 1:
            what, *conditions, field = found
            rows.append((file, line.split("|")[2].strip(), what, conditions, field))
    return rows


def shown_to(number):
    """The digits behind a number's point, and what it is multiplied by: a percentage is a share."""
    digits = re.match(r"-?[\d.]+", number).group()
    return float(digits), len(digits.partition(".")[2]), 100 if number[len(digits) :].startswith("%") else 1


@pytest.mark.parametrize("page", MEASURED, ids=page_id)
def test_what_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    for path in paths(text):
        file, _, test = path.partition("::")
        assert (ROOT / file).exists(), path
        assert not test or test in names_in(file), path
    for code in codes(text):
        if re.fullmatch(r"neardup_gpu(\.\w+)+", code):
            resolved(code)


@pytest.mark.parametrize("page", MEASURED, ids=page_id)
def test_measured_numbers_are_those_of_their_files(page):
    for file, value, what, conditions, field in measured(page.read_text(encoding="utf-8")):
        figures = [figure for part in json.loads((ROOT / file).read_text())["figures"].values() for figure in part]
        wanted = dict(condition.split("=", 1) for condition in conditions)
        found = [
            figure
            for figure in figures
            if figure["what"] == what and all(str(figure.get(name)) == given for name, given in wanted.items())
        ]
        assert len(found) == 1, (file, what, conditions, len(found))
        number, digits, scale = shown_to(value)
        assert abs(found[0][field] * scale - number) <= 0.5 * 10**-digits + 1e-9, (value, found[0][field])


def test_a_wrong_number_and_a_stale_name_would_be_seen():
    """Tables are read at all, on each page that has one, and what does not exist is not found."""
    texts = [page.read_text(encoding="utf-8") for page in MEASURED]
    rows = [row for text in texts for row in measured(text)]
    tables = sum(len(re.findall(r"\| Figure in th\w+ file \|$", text, re.M)) for text in texts)
    lines = sum(len(re.findall(r"^\|.*`, `[a-z_]+` \|$", text, re.M)) for text in texts)
    assert tables >= 10 and len(rows) >= 3 * tables // 2 and len(rows) == lines
    assert shown_to("80.49%") == (80.49, 2, 100) and shown_to("7.238 ns a token") == (7.238, 3, 1)
    with pytest.raises(AttributeError):
        resolved("neardup_gpu.theory.no_such_function")
    assert "test_no_such_test" not in names_in("tests/test_errata.py")


def test_every_erratum_is_on_a_page_with_its_test():
    on_papers = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.stem != "index")
    index = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    labels = [int(number) for number in re.findall(r"^\(e(\d+)\)=$", on_papers, re.M)]
    assert sorted(labels) == list(range(1, 31)), "each erratum has one label"
    named = {path.partition("::")[2] for path in paths(on_papers) if path.startswith("tests/test_errata.py")}
    errata = {name for name in names_in("tests/test_errata.py") if name.startswith("test_e")}
    assert named == errata
    tested = {int(re.match(r"test_e(\d+)_", name).group(1)) for name in errata}
    rows = {int(number): line for line in index.splitlines() for number in re.findall(r"^\| \[E(\d+)\]", line)}
    assert sorted(rows) == list(range(1, 31))
    for number, line in rows.items():
        assert f"(#e{number})" in line
        assert line.endswith("| yes |" if number in tested else "| no |")
    for number, section in re.findall(r"^\(e(\d+)\)=$(.*?)(?=^\(e\d+\)=$|\Z)", on_papers, re.M | re.S):
        assert f"### E{number}, section" in section
        assert [word for word in ("Printed", "Right", "Recomputed", "Test") if f"\n{word}\n: " in section] == [
            "Printed", "Right", "Recomputed", "Test"
        ]  # fmt: skip
        assert number not in map(str, tested) or f"test_e{number}_" in section


def test_links_among_the_pages_lead_somewhere():
    names = {page.name for page in PAGES}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if target.startswith("#"):
                assert any(f"({target[1:]})=" in other.read_text(encoding="utf-8") for other in PAGES), target
            elif not target.startswith("https://"):
                assert target in names, (page.name, target)
        if page.stem != "index":
            assert f"({page.name})" in (page.parent / "index.md").read_text(encoding="utf-8")
