"""Markup -> the text that a reader of the page sees: by an automaton that drops the markup, or from a parser's tree.

The automaton (`kernels.visible_text`) is the usual way: many times as fast, many pages at once, and its time is linear
whatever the page. It agrees with the tree on pages without errors; its docstring lists where it does not. If it cannot
find the end of hidden text in a page, the page is read by the tree, unless `is_tame` says that a parser would need more
than linear time. A crawl in which every page needs the tree takes at most about 3 s per MB.

For the tree, selectolax (its Lexbor parser) was chosen over resiliparse. Both were compared with the texts that come
with two corpora, by the resemblance of 5-shingles of lower-cased words, on one core:

| | installguide_html, 1,500 pages | openjdk_html, 400 pages |
|---|---|---|
| selectolax, as below | 1.0000, all identical, 46 MB/s | 1.0000, all identical, 29 MB/s |
| resiliparse and its title | 1.0000, all identical, 53 MB/s | 0.9763, none identical, 63 MB/s |
| selectolax, its text() alone | 1.0000, all identical, 148 MB/s | 0.9048, none identical, 161 MB/s |

resiliparse 2.0.1 drops the text of <figure>, runs <summary>, <legend> and <option> into their neighbours, guesses
charsets, and crashed when its tree was changed. selectolax follows the HTML Standard here, has no dependencies, and
lacks two things, which are added: block elements divide words, and pages that would take it more than linear time
(100,000 nested <div>: 16 s; see `markup`) are not parsed: their tags are taken out as they stand.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..engine.processors import own_threads
from .charsets import page_as_utf8


class HtmlPage(NamedTuple):
    """The text that a reader sees of a page, and whether a tree was made: if that would take too long, tags are just
    taken out."""

    text: str
    parsed: bool


class Markup(bytes):
    """A page as UTF-8. `without_markup` extracts its text, together with other pages of its batch."""


def visible_pages(pages: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a reader sees of many pages, as text and offsets, on the threads that this code may use.

    `kernels.visible_text` reads the pages. The text of a page that it doubts is replaced by that of a parser's
    tree, if the page `is_tame`.
    """
    text, ends, doubtful = _read_by_kernel(pages, offsets)
    if not doubtful.any():
        return text, ends
    from neardup_gpu.kernels._markup import is_tame

    parts, lengths, copied = [], np.diff(ends), 0
    for row in np.flatnonzero(doubtful).tolist():
        page = pages[offsets[row] : offsets[row + 1]].tobytes()
        if not is_tame(page):
            continue
        seen = np.frombuffer(_tree_text(page).encode(), np.uint8)
        parts += [text[copied : ends[row]], seen]
        lengths[row], copied = len(seen), ends[row + 1]
    return np.concatenate([*parts, text[copied:]]), np.concatenate([[0], np.cumsum(lengths)])


def _read_by_kernel(pages: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from neardup_gpu.kernels import visible_text as kernel
    from neardup_gpu.kernels._cpu import num_threads, on_threads

    with on_threads(min(num_threads(), own_threads())):
        return kernel.cpu(pages, offsets)


def without_markup(texts: list[bytes]) -> list[bytes]:
    """The texts; for those that are `Markup`, what a reader sees."""
    pages = [text for text in texts if isinstance(text, Markup)]
    if not pages:
        return texts
    ends = np.cumsum([0, *map(len, pages)], dtype=np.int64)
    seen, offsets = visible_pages(np.frombuffer(b"".join(pages), np.uint8), ends)
    found = (seen[start:stop].tobytes() for start, stop in pairwise(offsets.tolist()))
    return [next(found) if isinstance(text, Markup) else text for text in texts]


def read_page(markup: bytes | str, tree: bool = False) -> HtmlPage:
    """Return the text of a page that a reader sees, with its title; no scripts, styles, comments or tags.

    Parameters
    ----------
    markup : bytes or str
        A page or a part of one, however broken. `charsets` decides how bytes are decoded; what cannot be decoded
        becomes U+FFFD.
    tree : bool
        Take the text from a parser's tree.

    Returns
    -------
    HtmlPage
        Entities decoded. Block elements are paragraphs, between blank lines; table cells and ``<br>`` divide words by
        a newline; inline elements do not divide words.
        Text that only a style sheet or ``hidden`` hides is included. Empty for an empty page.

    Notes
    -----
    Linear time: a page that would take a parser longer (see `is_tame`) is not parsed. Its words are the same
    unless its markup is so broken that a parser would move or drop text.
    """
    page = page_as_utf8(markup)
    if tree:
        text, parsed = read_tree(page)
        return HtmlPage(text.decode(), parsed)
    (text,) = without_markup([Markup(page)])
    return HtmlPage(text.decode(), True)


def read_tree(page: bytes) -> tuple[bytes, bool]:
    """Return what a reader sees of a page in UTF-8, by a parser's tree, and whether a tree was made; see `HtmlPage`."""
    from neardup_gpu.kernels._markup import is_tame

    return (_tree_text(page).encode(), True) if is_tame(page) else (_stripped(page.decode()).encode(), False)


def _tree_text(page: bytes) -> str:
    """Return what a reader sees of a page in UTF-8, by a parser's tree."""
    from selectolax.lexbor import LexborHTMLParser

    from neardup_gpu.kernels._html_names import BLOCKS, BREAKS, HIDDEN

    tree = LexborHTMLParser(page, scripting=True)
    tree.strip_tags(list(HIDDEN))
    for node in tree.css(",".join(BLOCKS)):
        node.insert_before(_PARAGRAPH)
        node.insert_after(_PARAGRAPH)
    for node in tree.css(",".join(BREAKS)):
        node.insert_before("\n")
    return "" if tree.root is None else _in_paragraphs(tree.root.text())


_PARAGRAPH = "\ufdd0\ufdd1"
"""It stands where the tag of a block was. Unicode keeps these two code points for such uses."""


def _in_paragraphs(text: str) -> str:
    """Return text with newlines in place of `_PARAGRAPH`: two if the text before it ends without one."""
    return re.sub(rf"(?<=[^\n\ufdd1]){_PARAGRAPH}", "\n\n", text).replace(_PARAGRAPH, "\n")


@cache
def _markup() -> re.Pattern[str]:
    """The parts that are taken out of a page that is not parsed.

    Each branch runs to the end of the page where nothing ends it, and no branch gives anything back, so nothing is
    looked at twice.
    """
    from neardup_gpu.kernels._html_names import HIDDEN

    hidden = "|".join([*HIDDEN, "template", "noembed"])
    return re.compile(
        r"<!--(?:-?>|.*?(?:--!?>|\Z))"
        rf"|<(?P<hidden>{hidden})(?=[\s/>]).*?(?:</(?P=hidden)(?=[\s/>])[^>]*+>?|\Z)"
        r"""|</?(?P<name>[a-z][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?+)*+>?"""
        r"|<[!?/][^>]*+>?",
        re.DOTALL | re.IGNORECASE,
    )


def _stripped(markup: str) -> str:
    """Return a page without its markup, its blocks as paragraphs, and character references decoded."""
    from html import unescape

    from neardup_gpu.kernels._html_names import BLOCKS, BREAKS

    dividers = dict.fromkeys(BLOCKS, _PARAGRAPH) | dict.fromkeys(BREAKS, "\n")
    text = _markup().sub(lambda match: dividers.get((match["name"] or "").lower(), ""), markup)
    return unescape(_in_paragraphs(text))
