"""Imports go one way, inside functions as well, and an import inside a function has a reason."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

HOUSE = Path(__file__).parents[1]

HEAVY = {
    *("numpy", "pyarrow", "numba", "llvmlite", "selectolax"),  # needed, and slow to import
    *("rich", "cyclopts", "jinja2", "markupsafe", "vl_convert", "matplotlib", "IPython", "ipywidgets"),  # for people
    *("cupy", "cupyx", "ray", "datasets", "fsspec", "fastwarc", "tokenizers", "Stemmer"),  # optional
    *("asyncio", "html", "importlib", "logging", "subprocess", "textwrap", "tomllib", "traceback"),
    *("datetime", "fractions", "grp", "pwd", "shutil", "time"),  # of the standard library
}
"""Packages that may be imported inside a function, because they are heavy, optional, or missing on some systems."""

COMMANDS = "neardup_gpu.cli."
"""A command imports what it runs when it runs: `neardup --help` and the completion of a shell need none of it."""


LAZY = {"neardup_gpu.documents": "neardup_gpu.documents.source"}
"""Packages whose names are loaded on first use, and the module that has these names."""

NOT_AT_THE_TOP = {
    "neardup_gpu.installation.doctor",  # it has to work where something cannot be imported
    "neardup_gpu.tasks.warming",  # its imports are its work, and a driver that names it needs none of them
    "neardup_gpu.methods._modules",  # modules that are imported when they are used, by their full names
    "neardup_gpu.engine.ray",  # a function that is sent to nodes on which the package may be missing
    "neardup_gpu.results.result",  # the result of a folder runs its job again, and a job imports results
}
"""Modules whose functions may import anything."""


class Import(NamedTuple):
    """One name that a file imports: the module that has it, the line, and whether the line is inside a function."""

    module: str
    line: int
    inside: bool


@cache
def modules() -> dict[str, Path]:
    """Return all modules of the package with their files."""
    found = {}
    for path in [*HOUSE.glob("neardup_gpu/**/*.py"), *HOUSE.glob("kernels/*.py")]:
        parts = path.relative_to(HOUSE).with_suffix("").parts
        if parts[:2] == ("neardup_gpu", "kernels"):  # a link to the folder beside it
            continue
        parts = ("neardup_gpu", *parts) if parts[0] == "kernels" else parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def names_of(node: ast.Import | ast.ImportFrom, module: str, path: Path) -> Iterator[str]:
    """Yield the modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
        return
    base = node.module or ""
    if node.level:
        above = module.split(".")[: -node.level + (path.stem == "__init__") or None]
        base = ".".join([*above, *filter(None, [node.module])])
    for each in node.names:
        if f"{base}.{each.name}" in modules():
            yield f"{base}.{each.name}"
        else:
            yield LAZY.get(base, base)


@cache
def imports() -> dict[str, list[Import]]:
    """Return what each module imports when it runs: what only type checkers read is left out."""
    found: dict[str, list[Import]] = {}

    def lazy(path: Path) -> Iterator[Import]:
        """Yield the modules that `LazyModule` imports when a function uses them."""
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "LazyModule":
                (name,) = node.args
                assert isinstance(name, ast.Constant)
                inside = [each for each in modules() if each.startswith(f"{name.value}.")]
                yield from (Import(each, node.lineno, True) for each in [str(name.value), *inside])

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, inside
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            else:
                yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    for module, path in modules().items():
        found[module] = [
            Import(name, node.lineno, inside)
            for node, inside in walk(ast.parse(path.read_text()), False)
            for name in names_of(node, module, path)
        ]
        found[module] += lazy(path)
    return found


@cache
def heavy(module: str) -> frozenset[str]:
    """Return the heavy packages that are loaded when a module of the package is imported."""
    waiting, seen, found = [module], {module}, set()
    while waiting:
        for each in imports()[waiting.pop()]:
            if not each.inside and each.module in modules() and each.module not in seen:
                seen.add(each.module)
                waiting.append(each.module)
            elif not each.inside and each.module.split(".")[0] in HEAVY:
                found.add(each.module.split(".")[0])
    return frozenset(found)


def circles() -> list[set[str]]:
    """Return the sets of modules that import each other, directly or through others."""
    inner = {module: {each.module for each in some} & modules().keys() for module, some in imports().items()}

    @cache
    def reached(module: str) -> frozenset[str]:
        waiting: list[str] = [module]
        seen: set[str] = set()
        while waiting:
            new = inner[waiting.pop()] - seen
            seen |= new
            waiting += new
        return frozenset(seen)

    found = []
    for module in modules():
        circle = {other for other in reached(module) if other != module and module in reached(other)} | {module}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


@pytest.mark.quick
def test_files_do_not_import_each_other_in_a_circle() -> None:
    assert circles() == []


@pytest.mark.quick
def test_an_import_inside_a_function_loads_something_heavy() -> None:
    """It has to load a package that its own module does not load: otherwise it belongs to the top of the file."""
    wrong = []
    for module, some in imports().items():
        for each in some:
            if not each.inside or module.startswith(COMMANDS) or module in NOT_AT_THE_TOP:
                continue
            outer = each.module.split(".")[0]
            loads = heavy(each.module) if each.module in modules() else {outer} & HEAVY
            if not loads - (heavy(module) if each.module in modules() else set()):
                wrong.append(f"{modules()[module].relative_to(HOUSE)}:{each.line}: {each.module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.quick
def test_the_ground_floor_does_not_call_the_roof() -> None:
    """Kernels know no files and no settings; the store knows no documents and no pages; engines know no tasks.

    Methods know no index: it asks `method.finder()`. Documents know no stages, stages no tables of results, and neither
    tables nor tasks know jobs.
    """
    ground = {
        "arrow_versions",
        "checks",
        "data",
        "definitions",
        "errors",
        "log",
        "printable",
        "records",
        "report",
        "settings",
    }
    allowed = {
        "kernels": {"kernels", "errors"},
        "store": {"kernels", "store", *ground},
        "engine": {"kernels", "store", "engine", *ground},
        "text": {"kernels", "engine", "text", *ground},
        "theory": {"theory", *ground},
        "methods": {"kernels", "store", "engine", "theory", "methods", *ground},
    }
    below = {
        "kernels",
        "store",
        "engine",
        "text",
        "theory",
        "methods",
        "documents",
        "interchange",
        "recipe",
        "keep_rule",
        *ground,
    }
    allowed["documents"] = below
    allowed["stages"] = {"stages", *below}
    allowed["results"] = {"results", "stages", "report_page", "plot", *below}
    allowed["tasks"] = {"tasks", "arguments", *allowed["results"]}
    wrong = []
    for module, some in imports().items():
        for each in some:
            _, room, *_ = [*module.split("."), ""]
            _, other, *_ = [*each.module.split("."), "", ""]
            if room in allowed and each.module in modules() and other and other not in allowed[room]:
                wrong.append(f"{modules()[module].relative_to(HOUSE)}:{each.line}: {each.module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.quick
def test_few_files_know_documents() -> None:
    """The stages from sketching to deciding know units and numbers; other files read, write or look at documents.

    An audit reads a corpus, and what a tool has written of it; a check for contamination, evaluation sets. Repeated
    and shared passages are placed by a second reading.
    """
    jobs = {"jobs.dedup", "jobs.sketch_jobs", "results.explanation", "index.adding"}
    jobs |= {"index.queries", "index.taking_down", "index.passages"}
    drivers = {"jobs.bounded", "tasks.job", "tasks.running"}
    rooms = {"documents", "auditing", "contamination", "repeated_passages", "shared_passages"}
    found = set()
    for module, path in modules().items():
        room = module.removeprefix("neardup_gpu.")
        if room.split(".")[0] in rooms or room in jobs | drivers:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.id] if isinstance(node, ast.Name) else []
            if {"Documents", "Batch"} & set(names):
                found.add(room)
    assert found <= {"index.columns", "index.inputs", "planning.forecast", "report_page.run"}
