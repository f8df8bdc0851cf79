"""Docstrings are plain text with sections, names in backquotes and examples; what else looks like markup is none."""

import re
from collections.abc import Iterator

from sphinx.addnodes import pending_xref

import neardup_gpu

QUOTED = re.compile(r"(``?[^`]+``?)")


PLACES = {
    name: f"{module.__name__}.{name}"
    for module in (neardup_gpu.hamming, neardup_gpu.errors, neardup_gpu.stages, neardup_gpu.sketches)
    for name in module.__all__
    if name != "NeardupError"
}
"""Full names of what docstrings name without its module."""

SENTENCES: dict[str, list[str]] = {}
"""What is said of each attribute and property, before napoleon."""


def setup(app):
    app.connect("autodoc-process-docstring", plain, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", whole, priority=600)  # after it
    app.connect("doctree-read", link_words)


def link_words(app, doctree):
    """Link public names to their modules, and no other words: "array" and "pairs" as types are not links."""
    for reference in list(doctree.findall(pending_xref)):
        name = reference["reftarget"]
        first, *rest = name.split(".")
        words = reference["reftype"] == "class" and name.islower()
        if reference["refdomain"] != "py":
            continue
        if words or not (first in neardup_gpu.__all__ or first in PLACES):
            reference.replace_self(reference.children)
        elif reference.get("py:module") == "neardup_gpu" and first in PLACES:
            reference["reftarget"] = ".".join([PLACES[first], *rest])


def plain(app, what, name, value, options, lines):
    """Take formulas for what they are: |A n B| and x**s are no markup, and formulas that are set in stay lines."""
    lines[:] = _escaped(lines)
    if what in ("attribute", "data", "property") and not any(set(line) == {"-"} for line in lines):
        SENTENCES[name] = lines[:]


def whole(app, what, name, value, options, lines):
    """Keep sentences about attributes whole: napoleon takes what stands before a colon for a type."""
    lines[:] = SENTENCES.pop(name, lines)


def _escaped(lines) -> Iterator[str]:
    """The lines of a docstring as reStructuredText.

    A formula is a paragraph that is set in by four columns or more, above all sections such as Parameters.
    """
    example = formula = section = False
    before = ""
    for line in lines:
        stripped = line.lstrip()
        depth = len(line) - len(stripped)
        section |= set(stripped) == {"-"}
        example = bool(stripped) and (example or stripped.startswith(">>>"))
        if stripped and not before.strip() and not section:
            if depth >= 4 and not formula:
                yield from ("::", "")
            formula = depth >= 4
        yield line if example or formula else _without_markup(line)
        before = line


def _without_markup(line: str) -> str:
    parts = QUOTED.split(line)
    return "".join(part if at % 2 else re.sub(r"([|*\\]|_(?!\w))", r"\\\1", part) for at, part in enumerate(parts))
