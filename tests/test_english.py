"""Find sentences that are hard to read.

The test reads docstrings, string literals that a user may see (messages, flag help) and the prose of Markdown pages. It
splits them into sentences and matches each sentence with the patterns below. They find about half of the bad sentences;
the other half is found by reading.

    python tests/test_english.py [FILE ...]

prints all matches, or those in the given files.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parent.parent

OPENING = r"(What|Of|Where|That|Those|So many)\b|As `+[^`]+`+, but\b"
"""Words that must not open a docstring or the help of a flag."""

UNIT = (
    r"(band|block|byte|column|copy|copie|comparison|core|day|document|element|entry|entrie|file|group|hash|hashe|hour|id"
    r"|line|machine|minute|number|object|pair|position|process|processor|query|request|row|run|sample|second|shingle"
    r"|stage|task|thread|time|token|word)"
)
NUMBER = r"(\d\S*|an|one|two|three|four|five|six|seven|eight|nine|ten)"
COMPARED = r"longer|more|less|fewer|\w+er than"
PATTERNS = {
    "name the thing again": r"\b([Oo]f (which|these|those)|[Ss]o many)\b",
    "name the number": r"(?<!wice )(?<!alf )(?<!times )(?<!tenth )\b[Aa]s many\b(?! (?!as )\w+( \w+){0,3} as\b)",
    "write 'is not a' or 'there is no'": rf"(?<![Tt]here )\b(is|are|was|were) (none\b|no (?!{COMPARED}))",
    "use the usual word": r"\b(told|said|asked|[Bb]eside|[Bb]ehind)\b",
    "write 'per'": rf"\b(bytes|bits|[kKMGT]?i?B|{NUMBER} {UNIT}s?) an? {UNIT}\b(?! time)",
}
ANY = re.compile("|".join([OPENING, *PATTERNS.values()]))

END = re.compile(r"((?<=[.!?])[\"')*_]*\s+|\n\s*\n|\n(?= *(?:[-*#]|\d+\.) )|\|)")
"""Matches the end of a sentence, paragraph, heading, list item or table cell."""

Text = tuple[int, str, bool]
"""The line number where a text begins, the text, and whether `OPENING` applies to it."""


def strings(source: str) -> Iterator[Text]:
    """Yield the docstrings, the help of flags, and all other strings of at least four words."""
    docstrings, helps, inner = set(), set(), set()
    for node in ast.walk(ast.parse(source)):  # a parent comes before its children, so the sets are filled in time
        if isinstance(node, ast.Expr):
            docstrings.add(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setting", "argument"):
            helps.update(node.args[1:2])
        elif isinstance(node, ast.JoinedStr):
            inner.update(node.values)
            parts = (str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
            yield node.lineno, "".join(parts), node in helps
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            if node in docstrings:
                examples_and_types = r"^ *>>> (.+\n?)+|^ *[\w*, ]+ : .*$|^ *-+$"
                yield node.lineno, re.sub(examples_and_types, line_breaks, node.value, flags=re.MULTILINE), True
            elif node.value.count(" ") >= 3:
                yield node.lineno, node.value, node in helps


def line_breaks(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def prose(page: str) -> Iterator[Text]:
    """Yield the page without its code blocks."""
    yield 1, re.sub(r"^( *)(```+).*?^\1\2 *$|^ *:::+.*?$", line_breaks, page, flags=re.MULTILINE | re.DOTALL), False


def matches(texts: Iterator[Text]) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the rule and the sentence for each sentence that breaks a rule."""
    for line, text, opens in texts:
        if not ANY.search(" ".join(text.split())):
            continue
        text = re.sub(r"(`+)[^`]+\1", lambda code: "`x`" + line_breaks(code), text)
        for i, part in enumerate(END.split(text)):
            sentence = " ".join(part.split())
            broken = [rule for rule, pattern in PATTERNS.items() if re.search(pattern, sentence)]
            if i == 0 and opens and re.match(OPENING, sentence):
                broken.insert(0, "begin with a verb")
            if broken:
                yield line + len(part) - len(part.lstrip("\n")), broken[0], sentence
            line += part.count("\n")


@cache
def found() -> dict[str, list[str]]:
    """Return the matches of each file that has some, each as a line of text."""
    paths = [HOUSE / "README.md", *HOUSE.glob("docs/**/*.md")]
    paths += [*HOUSE.glob("kernels/**/*.py"), *HOUSE.glob("neardup_gpu/**/*.py")]
    lines = {}
    for path in sorted(path for path in paths if "neardup_gpu/kernels/" not in str(path)):
        name, texts = str(path.relative_to(HOUSE)), strings if path.suffix == ".py" else prose
        lines[name] = [f"{name}:{line}: {rule}: {text}" for line, rule, text in matches(texts(path.read_text()))]
    return {name: each for name, each in lines.items() if each}


@pytest.mark.quick
def test_sentences_are_read_once() -> None:
    wrong = [line for lines in found().values() for line in lines]
    assert not wrong, "rewrite these sentences:\n" + "\n".join(wrong)


if __name__ == "__main__":
    print(*(line for name in sys.argv[1:] or found() for line in found().get(name, [])), sep="\n")
