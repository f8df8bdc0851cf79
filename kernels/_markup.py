"""Whether a page of HTML can be parsed in time proportional to its length.

An HTML parser follows the HTML Standard, which lets a short page ask for a lot of work: elements that nest a hundred
thousand deep, formatting elements that are opened again in every paragraph, tags with a million attributes. One such
page stops a crawl. So a small automaton reads each page first and bounds this work from above, and a page beyond the
bounds never meets the parser.

The automaton divides a page into tags as the Standard's tokenizer does, and keeps a stack that holds at least the
elements that the parser has open: it takes one off only for an end tag of its name or a start tag that implies its end
(``<li>`` after ``<li>``), and only from the top, where the parser has either the same element or none of it. So a page
whose end tags are missing or out of order is taken to nest deeper than it does, never less deep. Where the parser may
read either tags or text (``<style>`` in ``<svg>``, ``<select>`` or ``<frameset>``), start tags count, end tags do not.

Source: HTML Standard, 13.2.5 (tokenization) and 13.2.6 (tree construction). Cost: one pass over the bytes.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit
from .visible_text import (
    _after,
    _after_attributes,
    _after_declaration,
    _begins_comment,
    _end,
    _is_letter,
    _is_space,
    _lower,
)

MAX_OPEN = 2048
"""Elements open at a time: a parser's time grows with the square of the depth, 20 ms for this one."""

MAX_ATTRIBUTES = 512
"""Maximum number of attributes of one tag, and of all <html> and <body> tags. Each is compared with all others."""

MAX_OPTIONS = 4096
"""Options of one <select>: a parser's time grows with the square of their number, 0.1 s for this one."""

FREE_COPIES = 1 << 16
"""Formatting elements that later paragraphs may open again, in addition to one for every two bytes of the page."""

VOID, RAW, FORMATTING, FOREIGN, SELECT, TABLE, OPTION, ROOT, FRAMESET = (1 << i for i in range(9))
P, CLOSES_P, ITEM, TERM, CELL, ROW, GROUP, BREAKS_OUT, INTEGRATES = (1 << i for i in range(9, 18))

_CLASSES = {
    VOID: "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr",
    RAW: "script style xmp iframe noembed noframes noscript title textarea plaintext",
    FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    FOREIGN: "svg math",
    SELECT: "select",
    TABLE: "table",
    OPTION: "option",
    ROOT: "html body",
    FRAMESET: "frameset",
    P: "p",
    CLOSES_P: "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer "
    "header hgroup main menu nav ol section summary ul h1 h2 h3 h4 h5 h6 pre listing p li dd dt",
    ITEM: "li",
    TERM: "dd dt",
    CELL: "td th",
    ROW: "tr",
    GROUP: "tbody thead tfoot",
    BREAKS_OUT: "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li "
    "listing menu meta nobr ol p pre ruby s small span strike strong sub sup table tt u ul var",
    INTEGRATES: "foreignobject desc title mi mo mn ms mtext annotation-xml",
}
_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def _hashed(name: str) -> int:
    """FNV-1a of 64 bits."""
    value = _FNV_BASIS
    for byte in name.encode():
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return value


_FOUND: dict[int, int] = {}
for _flag, _names in _CLASSES.items():
    for _each in _names.split():
        _FOUND[_hashed(_each)] = _FOUND.get(_hashed(_each), 0) | _flag
NAMES = np.array(sorted(_FOUND), np.uint64)
KINDS = np.array([_FOUND[each] for each in sorted(_FOUND)], np.int64)
_SCRIPT, _PLAINTEXT = np.uint64(_hashed("script")), np.uint64(_hashed("plaintext"))


def is_tame(page: bytes) -> bool:
    """Whether a parser needs time and memory in proportion to the page's length, by the bounds of this module.

    Parameters
    ----------
    page : bytes
        UTF-8.
    """
    return bool(_is_tame(np.frombuffer(page, np.uint8), NAMES, KINDS))


@jit("uint8[::1], uint64[::1], int64[::1]")
def _is_tame(page, names, kinds):
    stack, hashes = np.zeros((7, MAX_OPEN), np.int64), np.empty(MAX_OPEN, np.uint64)
    names_at, lengths, classes, places = stack[0], stack[1], stack[2], stack[3]  # places among distinct formatting tags
    tags_at, tag_lengths, opened = stack[4], stack[5], stack[6]
    depth = tables = foreign = selects = framesets = 0  # open, or possibly open
    options = root_attributes = num_tags = active = copies = 0
    outside = 0  # within <svg> or <math>: 0 in it, the depth of an element of HTML that it holds, or -1: it has ended
    doubtful_at = doubtful_length = 0  # name of an element of which nobody knows whether it holds tags or text
    most_copies = FREE_COPIES + len(page) // 2
    i = 0
    while True:
        start, closing = _next_tag(page, i, doubtful_length > 0, foreign > 0)
        if start == len(page):
            return True
        at = _end(page, start, len(page), ord("/"), ord("/"))
        kind = _kind(page, start, at, names, kinds)
        end, closes_itself, attributes = _after_attributes(page, at, len(page))
        end = min(end, len(page))
        if doubtful_length:
            end = at  # what follows may be no attributes, and hide tags
            if closing:
                doubtful_length *= not _same(page, start, at - start, doubtful_at, doubtful_length)
                i = end
                continue
        copies += active
        if attributes > MAX_ATTRIBUTES or copies > most_copies:
            return False
        i = end
        if kind & SELECT:
            options = 0
        if closing:
            if depth and _same(page, start, at - start, names_at[depth - 1], lengths[depth - 1]):
                depth -= 1
                selects -= (kind & SELECT) != 0
                tables -= (kind & TABLE) != 0
                if kind & FOREIGN:
                    foreign -= 1
                    outside = -1 if foreign else 0
                elif outside > depth:
                    outside = 0
                if kind & FORMATTING:
                    opened[places[depth]] -= 1
                    active -= opened[places[depth]] < 3
            elif foreign and outside == 0 and kind & BREAKS_OUT and kind & (P | VOID):
                outside = -1  # </p> and </br> stand for <p></p> and <br>
            continue
        if kind & ROOT:
            root_attributes += attributes
        options += (kind & OPTION) != 0
        if root_attributes > MAX_ATTRIBUTES or options > MAX_OPTIONS:
            return False
        if kind & RAW and doubtful_length == 0:
            if foreign == 0 and selects == 0 and framesets == 0:
                i = _after_raw(page, end, start, at - start, _hash(page, start, at))
                continue
            doubtful_at, doubtful_length = start, at - start
        in_foreign = foreign > 0 and outside == 0
        closes_itself &= (in_foreign and not kind & BREAKS_OUT) or kind & FOREIGN != 0  # elsewhere a slash says nothing
        if closes_itself or (kind & (ROOT | VOID) and foreign == 0):
            continue
        while foreign == 0 and depth and _implies_end(kind, classes[depth - 1]):
            depth -= 1
        if depth + 3 * tables >= MAX_OPEN:  # <table> opens <tbody> and <tr> by itself
            return False
        names_at[depth], lengths[depth], classes[depth] = start, at - start, kind
        if kind & FORMATTING:
            place = _place(page, start, end - start, tags_at, tag_lengths, hashes, opened, num_tags)
            num_tags = max(num_tags, place + 1)
            active += opened[place] < 3  # of equal ones the parser keeps three
            opened[place], places[depth] = opened[place] + 1, place
        depth += 1
        selects += (kind & SELECT) != 0
        tables += (kind & TABLE) != 0
        framesets += (kind & FRAMESET) != 0
        if kind & FOREIGN:
            foreign += 1
            outside = 0
        elif in_foreign and kind & BREAKS_OUT:
            outside = -1
        elif in_foreign and kind & INTEGRATES:
            outside = depth


@jit()
def _next_tag(page, i, is_doubtful, is_foreign):
    """(where the next tag's name begins, whether it is an end tag); (the page's length, False) if there is none."""
    while i + 1 < len(page):
        if page[i] != ord("<"):
            i += 1
            continue
        if page[i + 1] == ord("!") or page[i + 1] == ord("?"):
            i = i + 2 if is_doubtful or is_foreign else _after_declaration(page, i, len(page))
            continue
        closing = page[i + 1] == ord("/")
        start = i + 1 + closing
        if start < len(page) and _is_letter(page[start]):
            return start, closing
        i = _after(page, start, len(page), ord(">")) if closing and not is_doubtful else start
    return len(page), False


@jit()
def _implies_end(start, top):
    """Whether a start tag of some classes ends the element on top of the stack."""
    wanted = 0
    if top & P:
        wanted = CLOSES_P
    elif top & (ITEM | TERM | OPTION):
        wanted = top & (ITEM | TERM | OPTION)
    elif top & CELL:
        wanted = CELL | ROW | GROUP
    elif top & ROW:
        wanted = ROW | GROUP
    elif top & GROUP:
        wanted = GROUP
    return (start & wanted) != 0


@jit()
def _place(page, at, length, tags_at, tag_lengths, hashes, opened, num_tags):
    """Return the place of a formatting tag among the distinct ones; if it is new, it is put into the first free place.

    Only tags with the same hash are compared as text, as a page may have thousands that differ at their ends alone.
    """
    free, value = num_tags, _hash(page, at, at + length)
    for place in range(num_tags):
        if hashes[place] == value and _same(page, at, length, tags_at[place], tag_lengths[place]):
            return place
        if opened[place] == 0 and free == num_tags:
            free = place
    tags_at[free], tag_lengths[free], hashes[free] = at, length, value
    return free


@jit()
def _same(page, a, length_a, b, length_b):
    """Whether two ranges of the page are alike but for case."""
    if length_a != length_b:
        return False
    for i in range(length_a):
        if _lower(page[a + i]) != _lower(page[b + i]):
            return False
    return True


@jit()
def _hash(page, start, stop):
    value = np.uint64(_FNV_BASIS)
    for i in range(start, stop):
        value = (value ^ np.uint64(_lower(page[i]))) * np.uint64(_FNV_PRIME)
    return value


@jit()
def _kind(page, start, stop, names, kinds):
    """Classes of the element of a name; 0 where none matters."""
    if stop - start > 14:
        return 0
    name = _hash(page, start, stop)
    place = np.searchsorted(names, name)
    return kinds[place] if place < len(names) and names[place] == name else 0


@jit()
def _after_raw(page, i, name_at, length, name):
    """Return the place after the end tag of an element of text. A script may hide its end tag in a comment."""
    if name == _PLAINTEXT:
        return len(page)
    escaped = hidden = False
    while i + 1 < len(page):
        if name == _SCRIPT and page[i] == ord(">") and escaped and page[i - 1] == ord("-") and page[i - 2] == ord("-"):
            escaped = hidden = False
        if page[i] != ord("<"):
            i += 1
            continue
        if name == _SCRIPT and _begins_comment(page, i, len(page)) and not escaped:
            escaped = True
            i += 4
            continue
        closing = page[i + 1] == ord("/")
        start = i + 1 + closing
        at = _word_end(page, start)
        ends = at < len(page) and (_is_space(page[at]) or page[at] == ord("/") or page[at] == ord(">"))
        if ends and _same(page, start, at - start, name_at, length):
            if closing and not hidden:
                return _after_attributes(page, at, len(page))[0]
            hidden = escaped and not closing
        i = start
    return len(page)


@jit()
def _word_end(page, i):
    while i < len(page) and _is_letter(page[i]):
        i += 1
    return i
