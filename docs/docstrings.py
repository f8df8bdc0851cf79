"""Docstrings are plain text with sections, names in backquotes and examples; what else looks like markup is none."""

import re
from collections.abc import Iterator

from sphinx.addnodes import pending_xref

import neardup_gpu

QUOTED = re.compile(r"(``?[^`]+``?)")


SENTENCES: dict[str, list[str]] = {}
"""What is said of each attribute and property, before napoleon."""


def setup(app):
    app.connect("autodoc-process-docstring", plain, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", whole, priority=600)  # after it
    app.connect("doctree-read", unlink_words)


def unlink_words(app, doctree):
    """Leave a word alone that is no public name: "array" and "pairs" as types are no links to functions."""
    for reference in list(doctree.findall(pending_xref)):
        name = reference["reftarget"]
        words = reference["reftype"] == "class" and name.islower()
        if reference["refdomain"] == "py" and (words or name.split(".")[0] not in neardup_gpu.__all__):
            reference.replace_self(reference.children)


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
