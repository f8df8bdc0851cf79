"""Hold HTML's names as tables: elements that divide or hide text, and character references.

Elements: HTML Standard, 13.2.6 (which elements hold raw text, and how foreign content begins and ends). Character
references: Python's `html.entities`, which is the Standard's table (13.5), and windows-1252 for the numbers 128 to 159
(13.2.5.80).
"""

from __future__ import annotations

import html.entities
from functools import cache

import numpy as np

from ._cpu import jit

HIDDEN = ("script", "style", "noscript", "iframe", "noframes", "datalist")
"""Elements that a reader does not see, in addition to the content of <template>."""

BLOCKS = (
    *("address", "article", "aside", "blockquote", "button", "caption", "center", "dd", "details", "dialog", "dir"),
    *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4"),
    *("h5", "h6", "header", "hgroup", "legend", "li", "listing", "main", "marquee", "menu", "nav", "ol", "optgroup"),
    *("p", "pre", "search", "section", "select", "summary", "table", "textarea", "title", "ul", "xmp"),
)
"""Words and paragraphs end before and after these."""

BREAKS = ("br", "hr", "option", "td", "th", "tr")
"""Words end before these; nothing stands after them but another of them or the end of a block."""

# What a tag does: bits of its class, beside which the class has the element's number, where one is needed.
STARTS, ENDS = 1, 2  # the start tag divides words, the end tag does
IN_TABLE = 4  # a parser leaves this tag out where no table is open
BREAKS_OUT = 8  # ends foreign content
RAW, RCDATA, SCRIPT, PLAINTEXT = 16, 32, 64, 128  # what the element holds is no markup
HIDES = 256
FOREIGN, INTEGRATES, TABLE = 512, 1024, 2048  # <svg> and <math>; what holds HTML within them; <table>
ENDS_FOREIGN = 4096  # its end tag ends foreign content
UNCERTAIN = 8192  # its start tag needs a parser's tree in foreign content
NEEDS_TREE = 16384  # its start tag needs a parser's tree anywhere
PARAGRAPH = 32768  # begins a paragraph and ends one
OWN = RAW | RCDATA | SCRIPT | PLAINTEXT | HIDES | FOREIGN | INTEGRATES | TABLE | IN_TABLE | ENDS_FOREIGN
NUMBER = 16  # bits below the element's number

SVG, MATH = 1, 2
_NUMBERED = (
    *("svg", "math", "foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext"),
    *("script", "style", "noscript", "iframe", "noframes", "datalist", "template", "option"),
)
FOREIGN_OBJECT = 3
IN_SVG = 5  # the numbers 3 to 5 hold HTML in <svg>, those from 6 on in <math>
LAST_FOREIGN = 10  # the numbers up to this one are those of elements on the stack
DATALIST, TEMPLATE, OPTION = (_NUMBERED.index(each) + 1 for each in ("datalist", "template", "option"))

_CLASSES = {
    STARTS: (*BLOCKS, *BREAKS),
    ENDS: (*BLOCKS, "br"),
    IN_TABLE: ("caption", "td", "th", "tr"),
    BREAKS_OUT: (
        *("b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2"),
        *("h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre"),
        *("ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "table", "tt", "u", "ul", "var"),
    ),
    RAW: ("style", "xmp", "iframe", "noembed", "noframes", "noscript"),
    RCDATA: ("title", "textarea"),
    SCRIPT: ("script",),
    PLAINTEXT: ("plaintext",),
    HIDES: (*HIDDEN, "template"),
    FOREIGN: ("svg", "math"),
    INTEGRATES: ("foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext"),
    TABLE: ("table",),
    ENDS_FOREIGN: ("p", "br", "template"),
    UNCERTAIN: (
        *("font", "annotation-xml", "noscript", "iframe", "noframes", "noembed", "datalist", "template", "textarea"),
        *("xmp", "plaintext"),
    ),
    NEEDS_TREE: ("frameset",),
    PARAGRAPH: BLOCKS,
}

CLASS_OF: dict[str, int] = {}
"""The class of each element that has one."""

for _flag, _names in _CLASSES.items():
    for _name in _names:
        CLASS_OF[_name] = CLASS_OF.get(_name, 0) | _flag
for _number, _name in enumerate(_NUMBERED, 1):
    CLASS_OF[_name] |= _number << NUMBER

SLOTS = 512
REFERENCE_SLOTS = 8192
LONGEST = 32
"""Letters and digits of the longest character reference."""

LONGEST_OPEN = 6
"""Length of the longest name that needs no semicolon."""


@jit("uint64, uint64")
def element_slot(low, high):
    """Return where the search for a name of 16 bytes begins. No product is used, because it would wrap."""
    x = low ^ (high >> np.uint64(3)) ^ (high << np.uint64(9))
    x ^= x >> np.uint64(29)
    x ^= x >> np.uint64(13)
    x ^= x >> np.uint64(7)
    return np.int64(x & np.uint64(SLOTS - 1))


@jit("int64, int64")
def hash_on(value, byte):
    """The hash of a name and one more byte; 0 for nothing."""
    return (np.int64(value) * 33 + np.int64(byte)) & 0x3FFFFFFF


@cache
def tables() -> tuple[np.ndarray, ...]:
    """(names, classes, references, bytes, windows): what `CLASS_OF` and the character references say, for look-ups.

    Returns
    -------
    names : array of uint64, shape (2 * SLOTS,)
        Name of the element at each slot, 16 bytes; zeros where there is none.
    classes : array of int64, shape (SLOTS,)
    references : array of int64, shape (REFERENCE_SLOTS,)
        At each slot a character reference: the place in `bytes` of its name, from bit 0, and the length of that, from
        bit 20; the length of what it stands for, which follows there, from bit 28; 0 where there is none.
    bytes : array of uint8
    windows : array of int64, shape (32,)
        Code points that the numbers 128 to 159 stand for.
    """
    names, classes = np.zeros(2 * SLOTS, np.uint64), np.zeros(SLOTS, np.int64)
    for name, found in CLASS_OF.items():
        low, high = (int.from_bytes(name[first : first + 8].encode(), "little") for first in (0, 8))
        slot = int(element_slot(np.uint64(low), np.uint64(high)))
        while classes[slot]:
            slot = (slot + 1) % SLOTS
        names[2 * slot : 2 * slot + 2], classes[slot] = (low, high), found
    references, spelled = np.zeros(REFERENCE_SLOTS, np.int64), bytearray(1)
    for name, text in html.entities.html5.items():
        slot = 0
        for byte in name.encode():
            slot = int(hash_on(slot, byte))
        slot %= REFERENCE_SLOTS
        while references[slot]:
            slot = (slot + 1) % REFERENCE_SLOTS
        references[slot] = len(spelled) | len(name) << 20 | len(text.encode()) << 28
        spelled += name.encode() + text.encode()
    windows = [ord(bytes([code]).decode("cp1252", "replace")) for code in range(128, 160)]
    windows = [128 + i if code == 0xFFFD else code for i, code in enumerate(windows)]
    return names, classes, references, np.frombuffer(bytes(spelled), np.uint8), np.array(windows, np.int64)
