"""Markup -> the text that a reader of the page sees.

selectolax (its Lexbor parser) was chosen over resiliparse. Both were compared with the texts that come with two
corpora, by the resemblance of 5-shingles of lower-cased words, on one core:

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

import codecs
import contextlib
import html
import re
from typing import NamedTuple

INVISIBLE = ["script", "style", "noscript", "iframe", "noframes", "datalist"]
# Words end before and after these.
BLOCKS = (
    "address,article,aside,blockquote,button,caption,center,dd,details,dialog,dir,div,dl,dt,fieldset,figcaption,figure,"
    "footer,form,frameset,h1,h2,h3,h4,h5,h6,header,hgroup,legend,li,listing,main,marquee,menu,nav,ol,optgroup,p,pre,"
    "search,section,select,summary,table,textarea,title,ul,xmp"
)
# Before these is enough: nothing stands after them but another of them or the end of a block.
BREAKS = "br,hr,option,td,th,tr"

_BLOCK_NAMES = frozenset(f"{BLOCKS},{BREAKS}".split(","))

# What is taken out of a page that is not parsed. Each branch runs to the end of the page where nothing ends it, and no
# branch gives anything back, so nothing is looked at twice.
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<hidden>{'|'.join([*INVISIBLE, 'template', 'noembed'])})(?=[\s/>]).*?(?:</(?P=hidden)(?=[\s/>])[^>]*+>?|\Z)"
    r"""|</?(?P<name>[a-z][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?+)*+>?"""
    r"|<[!?/][^>]*+>?",
    re.DOTALL | re.IGNORECASE,
)
_CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_CODECS = ("ascii", "big5", "cp", "euc", "gb", "iso", "koi8", "mac", "shift", "tis")


class Page(NamedTuple):
    """The text that a reader sees of a page, and whether the page was parsed; else its tags were just taken out."""

    text: str
    parsed: bool


def visible_text(markup: bytes | str) -> str:
    """Text of a page, with its title; no scripts, styles, comments or tags: `read_page`, without the second answer.

    Examples
    --------
    >>> visible_text("<p>one</p>two<b>fold</b> &amp; more").split()
    ['one', 'twofold', '&', 'more']
    """
    return read_page(markup).text


def read_page(markup: bytes | str) -> Page:
    """What a reader sees of a page: its text, with its title; no scripts, styles, comments or tags.

    Parameters
    ----------
    markup : bytes or str
        A page or a part of one, however broken. Bytes are decoded as their byte order mark or ``<meta charset>`` says,
        else as UTF-8; what cannot be decoded becomes U+FFFD.

    Returns
    -------
    Page
        Entities decoded. Block elements, table cells and ``<br>`` divide words by a newline, inline elements do not.
        Text that only a style sheet or ``hidden`` hides is included. Empty for an empty page.

    Notes
    -----
    Linear time: a page that would take a parser longer (see `markup.is_tame`) is not parsed. Its words are the same
    unless its markup is so broken that a parser would move or drop text.
    """
    from selectolax.lexbor import LexborHTMLParser

    from .markup import is_tame

    if isinstance(markup, str) and _has_surrogates(markup):
        markup = markup.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(markup, bytes) and (b"\x1b" in markup or markup.startswith((b"\xff\xfe", b"\xfe\xff"))):
        markup = _decoded(markup)  # encodings in which bytes below 128 need not be ASCII
    if not is_tame(markup if isinstance(markup, bytes) else markup.encode()):
        return Page(_stripped(markup if isinstance(markup, str) else _decoded(markup)), False)
    page = LexborHTMLParser(markup, encoding=isinstance(markup, bytes), scripting=True)
    page.strip_tags(INVISIBLE)
    for node in page.css(BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    for node in page.css(BREAKS):
        node.insert_before("\n")
    return Page("" if page.root is None else page.root.text(), True)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _decoded(markup: bytes) -> str:
    """A page as its byte order mark or the first ``charset=`` in its first kilobyte says, else as UTF-8."""
    if markup.startswith((b"\xff\xfe", b"\xfe\xff")):
        return markup.decode("utf-16", "replace")
    with contextlib.suppress(LookupError, ValueError):
        name = codecs.lookup(declared_charset(markup) or "").name
        if name.startswith(_CODECS):  # Python has others, such as punycode, whose time is not linear
            return markup.decode(name, "replace")
    return markup.decode("utf-8-sig", "replace")


def declared_charset(markup: bytes) -> str | None:
    """The first ``charset=`` in the first kilobyte of a page."""
    declared = _CHARSET.search(markup[:1024])
    return declared.group(1).decode() if declared else None


def _stripped(markup: str) -> str:
    """The page without its markup: a newline for block elements, nothing for others, character references decoded."""

    def divider(match: re.Match[str]) -> str:
        return "\n" if (match["name"] or "").lower() in _BLOCK_NAMES else ""

    return html.unescape(_MARKUP.sub(divider, markup))
