"""Public docstrings: their examples run, and they list every parameter with its default."""

import doctest
import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import neardup_gpu
from neardup_gpu.auditing.verdict import Audit
from neardup_gpu.contamination.verdicts import Contamination
from neardup_gpu.documents import Documents
from neardup_gpu.index import Added
from neardup_gpu.jobs.comparison import Comparison
from neardup_gpu.methods.minhash import Filter
from neardup_gpu.repeated_passages.result import Substrings
from neardup_gpu.results.explanation import Explanation
from neardup_gpu.shared_passages.result import SharedText

MODULES = [
    *neardup_gpu._MODULES.values(),
    *("data", "errors", "plot", "stages", "theory", "theory.error_bounds", "theory.prefix_filter"),
    *("jobs.greedy_clusters", "jobs.one_text", "jobs.sketch_jobs"),
    *("results.explanation", "results.fail_over", "results.by_value", "documents.source", "documents.stream"),
    *("auditing.intervals", "auditing.verdict", "contamination.verdicts", "repeated_passages.result"),
    "shared_passages.result",
    *(f"methods.{name}" for name in ("contract", "elements", "frequencies", "table_design")),
    *(f"hamming.{name}" for name in ("index", "joins", "near_pairs")),
    *("papers.estimates", "papers.filter_curves", "papers.lazy_sampling", "papers.prefix_costs"),
    *("papers.set_sizes", "papers.suppression"),
]

METHOD_CLASSES = set(neardup_gpu.stages.METHODS.values())
RETURNED = [Audit, Comparison, Contamination, Documents, Explanation, Added, Filter, SharedText, Substrings]
"""Public classes that users get from functions and do not make."""


def modules() -> Iterator[types.ModuleType]:
    for name in dict.fromkeys(MODULES):
        yield importlib.import_module(f"neardup_gpu.{name}")


def examples() -> list[doctest.DocTest]:
    found = {}
    for module in modules():
        for case in doctest.DocTestFinder(exclude_empty=True).find(module):
            if case.examples:
                found[case.name] = case
    return list(found.values())


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and class, and the methods of these classes, by name."""
    places = [neardup_gpu, *filter(inspect.ismodule, (getattr(neardup_gpu, name) for name in neardup_gpu.__all__))]
    found = {f"{place.__name__}.{name}": getattr(place, name) for place in places for name in place.__all__}
    found |= {f"{each.__module__}.{each.__name__}": each for each in RETURNED}
    for name, value in found.items():
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        yield name, value
        if inspect.isclass(value):
            yield from methods(name, value)


def methods(name: str, owner: type) -> Iterator[tuple[str, Any]]:
    for attribute, value in vars(owner).items():
        if not attribute.startswith("_") and isinstance(value, (types.FunctionType, classmethod, staticmethod)):
            yield f"{name}.{attribute}", getattr(owner, attribute)


CALLABLES = dict(public())
PROPERTIES = {
    f"{name}.{attribute}": value
    for name, owner in CALLABLES.items()
    if inspect.isclass(owner)
    for attribute, value in vars(owner).items()
    if isinstance(value, (property, functools.cached_property)) and not attribute.startswith("_")
}
CONTRACTS = {neardup_gpu.stages.Join, neardup_gpu.stages.Sketch}
OF_THE_CONTRACT = {name for name in dir(neardup_gpu.stages.Sketch) if not name.startswith("_")}
"""What is said once, in the contract."""


def said_in_the_contract(name: str) -> bool:
    owner, _, attribute = name.rpartition(".")
    if CALLABLES.get(owner) in CONTRACTS:
        return True
    return CALLABLES.get(owner) in METHOD_CLASSES and attribute in OF_THE_CONTRACT - {"sketch", "keys", "collide"}


def section(doc: str, title: str) -> str | None:
    """The text under a heading of a docstring in NumPy style."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.MULTILINE | re.DOTALL)
    return None if match is None else match[1]


def bullets(doc: str) -> dict[str, str]:
    """Name and type of each parameter; `AS_FOR_DEDUP` where that is all that is said of several."""
    lines = (section(doc, "Parameters") or "").splitlines()
    found = {}
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found |= dict.fromkeys(
                (name.strip("*") for name in names.split(", ")), kind or (after == f"    {AS_FOR_DEDUP}") * AS_FOR_DEDUP
            )
    return found


def parameters(value: Callable[..., Any]) -> list[inspect.Parameter]:
    return [each for name, each in inspect.signature(value).parameters.items() if name not in ("self", "cls")]


AS_FOR_DEDUP = "As for `dedup`."
CHOICES = re.compile(r'("\S+"(, )?)+ or "\S+"')
"""Matches the type of a parameter that takes some words, as a docstring writes it."""


def says(kind: str, default: Any) -> bool:
    """Whether a bullet gives a default as Python writes it, or the constant, size or call that it is."""
    match = re.search(r"default (.+)$", kind)
    if match is None:
        return False
    given = match[1].replace("GiB", "* 2**30").replace("MiB", "* 2**20").replace("infinity", "float('inf')")
    names = {**vars(neardup_gpu.hamming), **{name: getattr(neardup_gpu, name) for name in neardup_gpu.__all__}}
    return bool(eval(given, names) == default)


@pytest.mark.parametrize("case", examples(), ids=lambda case: case.name)
def test_examples(case: doctest.DocTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_BACKEND", "cpu")
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(case, out=out.append).failed == 0, "".join(out)


@pytest.mark.parametrize("name", CALLABLES)
def test_sections(name: str) -> None:
    value = CALLABLES[name]
    doc = inspect.getdoc(value) or ""
    assert doc, "no docstring"
    if said_in_the_contract(name):
        return
    problems = []
    if section(doc, "Examples") is None:
        problems.append("no section Examples")
    listed = bullets(doc)
    for each in [] if value is Documents else parameters(value):  # `open_documents` makes them
        if each.name not in listed:
            problems.append(f"{each.name} is not listed")
            continue
        if listed[each.name] == AS_FOR_DEDUP:
            if each.default != inspect.signature(neardup_gpu.dedup).parameters[each.name].default:
                problems.append(f"{each.name} has another default than `dedup` gives it")
            continue
        if (
            value not in RETURNED
            and CHOICES.match(listed[each.name])
            and "str" in re.findall(r"\w+", str(each.annotation))
        ):
            problems.append(f"{each.name} takes some words alone, and its type is {each.annotation}")
        if each.default is each.empty:
            if "default" in listed[each.name]:
                problems.append(f"{each.name} has no default")
        elif not says(listed[each.name], [] if repr(each.default) == "<factory>" else each.default):
            problems.append(f"{each.name} : {listed[each.name]} (the signature's default is {each.default!r})")
    problems += [f"{other} is no parameter" for other in set(listed) - {each.name for each in parameters(value)}]
    assert not problems, "; ".join(problems)


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name: str) -> None:
    assert PROPERTIES[name].__doc__, "no docstring"


def test_sections_find_gaps() -> None:
    """A list that leaves out a parameter, or gives it another default, is noticed."""

    def documented(a: int, b: int = 2) -> None:
        """Do nothing.

        Parameters
        ----------
        a : int
            A number.
        b : int, default 3
            Another.
        """

    listed = bullets(inspect.getdoc(documented) or "")
    assert listed == {"a": "int", "b": "int, default 3"}
    assert not says(listed["b"], 2) and says(listed["b"], 3)
    assert not says(listed["a"], 2)
