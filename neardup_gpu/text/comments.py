"""Comments and strings of the languages of source code, so that comments can be left out.

A quote in a comment opens no string, and what looks like a comment in a string is not one; therefore both are
described. These rules do not know regular expressions in JavaScript
and Ruby, nor texts of shell and Ruby that begin with ``<<``: a quote or comment sign in them is taken for one. Strings
of one line end with their line, so that such an error seldom reaches further.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..data import Ragged
from ..kernels import code
from ..kernels.code import AFTER_NO_WORD, AFTER_SPACE, AT_LINE_START, COMMENT, ESCAPE, FIRST, LETTER, LINE, NESTED
from .languages import language_of
from .raw_text import BORDER_BYTES

Rule = tuple[str, str, int]
"""The opening and the closing bytes of a comment or string, and flags of `kernels/code.py`."""

SLASHES: Rule = ("//", "", COMMENT | LINE)
STARS: Rule = ("/*", "*/", COMMENT)
NESTED_STARS: Rule = ("/*", "*/", COMMENT | NESTED)
HASH: Rule = ("#", "", COMMENT | LINE)
DASHES: Rule = ("--", "", COMMENT | LINE)
CHARACTER: Rule = ("'", "'", ESCAPE | LETTER)


def _quoted(*quotes: str, flags: int = ESCAPE) -> list[Rule]:
    return [(quote, quote, flags) for quote in quotes]


_SCRIPT = [
    ("#!", "", COMMENT | LINE | AT_LINE_START),
    SLASHES,
    STARS,
    *_quoted('"', "'", flags=ESCAPE | LINE),
    *_quoted("`"),
]
_C = [("//", "", COMMENT | LINE | ESCAPE), STARS, *_quoted('"', flags=ESCAPE | LINE), CHARACTER]

RULES: dict[str, list[Rule]] = {
    "c": _C,
    "cpp": [('R"(', ')"', AFTER_NO_WORD), *_C],
    "csharp": [SLASHES, STARS, *_quoted('"""', flags=0), ('@"', '"', 0), *_quoted('"', flags=ESCAPE | LINE), CHARACTER],
    "css": [STARS, *_quoted('"', "'", flags=ESCAPE | LINE)],
    "dart": [SLASHES, NESTED_STARS, *_quoted("'''", '"""'), *_quoted('"', "'", flags=ESCAPE | LINE)],
    "go": [SLASHES, STARS, *_quoted('"', flags=ESCAPE | LINE), *_quoted("`", flags=0), CHARACTER],
    "java": [SLASHES, STARS, *_quoted('"""'), *_quoted('"', flags=ESCAPE | LINE), CHARACTER],
    "javascript": _SCRIPT,
    "kotlin": [
        *(SLASHES, NESTED_STARS, *_quoted('"""', flags=0), *_quoted('"', flags=ESCAPE | LINE), CHARACTER),
    ],
    "lua": [
        *(("--[[", "]]", COMMENT), ("--[=[", "]=]", COMMENT), ("--[==[", "]==]", COMMENT), DASHES),
        *(("[[", "]]", 0), ("[=[", "]=]", 0), ("[==[", "]==]", 0), *_quoted('"', "'", flags=ESCAPE | LINE)),
    ],
    "php": [("?>", "<?", FIRST), ("#[", "", 0), HASH, SLASHES, STARS, *_quoted('"', "'", "`")],
    "python": [HASH, *_quoted('"""', "'''"), *_quoted('"', "'", flags=ESCAPE | LINE)],
    "r": [HASH, *_quoted('"', "'", "`")],
    "ruby": [("=begin", "\n=end", COMMENT | AT_LINE_START), HASH, *_quoted('"', "'", "`")],
    "rust": [
        *(SLASHES, NESTED_STARS, ('r##"', '"##', AFTER_NO_WORD), ('r#"', '"#', AFTER_NO_WORD)),
        *(('r"', '"', AFTER_NO_WORD), *_quoted('"'), CHARACTER),
    ],
    "scala": [SLASHES, NESTED_STARS, *_quoted('"""', flags=0), *_quoted('"', flags=ESCAPE | LINE), CHARACTER],
    "shell": [
        *(("\\'", "", 0), ('\\"', "", 0), ("$'", "'", ESCAPE), *_quoted("'", flags=0), *_quoted('"')),
        ("#", "", COMMENT | LINE | AFTER_SPACE),
    ],
    "sql": [DASHES, NESTED_STARS, *_quoted("'", '"', flags=0)],
    "swift": [SLASHES, NESTED_STARS, *_quoted('"""'), *_quoted('"', flags=ESCAPE | LINE)],
    "typescript": _SCRIPT,
}
"""The rules of each language; the first that opens at a place is taken."""

UNKNOWN = 0
"""The number of an unknown language. The others are numbered from 1, in the order of `RULES`."""


def numbers_of(names: Sequence[Any] | None, language: str | None, count: int) -> np.ndarray:
    """Return the number of the language of each document.

    Parameters
    ----------
    names : sequence of str or other values, or None
        What the documents are called; not known if None.
    language : str or None
        The language of all documents; None if their names say it.
    count : int
        Number of documents.

    Returns
    -------
    array of uint8, shape (count,)
    """
    numbers = {each: number for number, each in enumerate(RULES, 1)}
    if language is not None or names is None:
        return np.full(count, numbers.get(language or "", UNKNOWN), np.uint8)
    found = (language_of(name) if isinstance(name, str) else None for name in names)
    return np.fromiter((numbers.get(each or "", UNKNOWN) for each in found), np.uint8, count)


class PackedRules(NamedTuple):
    """The rules of all languages, as `kernels/code.py` takes them."""

    rules: np.ndarray
    firsts: np.ndarray
    openings: np.ndarray


@cache
def table(of_parts: bool = False) -> PackedRules:
    """Pack the rules of all languages; each also has one for borders between columns.

    If `of_parts`, texts are parts of documents, and begin outside of comments and strings; see `are_open`.
    """
    rules, firsts, openings = [], [0], []
    for of_language in ([], *RULES.values()):
        packed = [(BORDER_BYTES, b"", COMMENT)]
        packed += [(opening.encode(), closing.encode(), flags) for opening, closing, flags in of_language]
        packed = [(opening, closing, flags & ~(FIRST * of_parts)) for opening, closing, flags in packed]
        rules += [
            (int.from_bytes(opening, "little"), int.from_bytes(closing, "little"), len(closing) << 8 | len(opening), f)
            for opening, closing, f in packed
        ]
        firsts.append(len(rules))
        bits = sum(1 << byte for byte in {opening[0] for opening, _, _ in packed})
        openings.append([(bits >> 64 * word) % 2**64 for word in range(4)])
    return PackedRules(np.array(rules, np.uint64), np.array(firsts, np.int64), np.array(openings, np.uint64))


def are_open(text: Ragged, languages: np.ndarray) -> np.ndarray:
    """Return for each byte whether a comment or a string of the document has begun before it and goes on there.

    Parameters
    ----------
    text : Ragged of uint8
    languages : array of uint8, shape (documents,)
        See `numbers_of`.

    Returns
    -------
    array of bool, shape (bytes,)
    """
    values, offsets, (rules, firsts, openings) = text.values, text.offsets, table()
    found = np.zeros(len(values), np.uint8)
    every = rules | np.array([0, 0, 0, COMMENT], np.uint64)  # strings are looked for as well
    code.clear_comments(values, offsets, languages, (every, firsts, openings), found)
    begins_open = np.zeros(len(values), bool)
    for number, of_language in enumerate(RULES.values(), 1):
        for end in (closing.encode() for _, closing, flags in of_language if flags & FIRST):
            for d in np.flatnonzero(languages == number).tolist():
                before = values[offsets[d] : offsets[d + 1]].tobytes().partition(end)
                found[offsets[d] :][: len(before[0] + before[1])] = 1
                begins_open[offsets[d] :][:1] = offsets[d] < offsets[d + 1]
    result = found != 0
    result[1:] &= found[:-1] != 0
    result[offsets[:-1][np.diff(offsets) > 0]] = False
    return result | begins_open
