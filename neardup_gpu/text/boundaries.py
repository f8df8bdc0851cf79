r"""Boundaries of the parts of documents that can be compared: paragraphs, lines, sentences and words.

A function finds the boundaries of one kind; `unit_options.BOUNDARIES` names it.

Sentences end where Unicode Standard Annex 29 (revision 39, Unicode 14) ends them. Their characters have the classes of
the property Sentence_Break, which the table in sentence_breaks.npz holds; tests/support/sentence_data.py made it. The
rules SB3 to SB998 are the regular expression `_ENDS` over classes, a letter for each character. Combining marks and
format characters belong to the character before them (SB5).
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from ..data import read_only
from ..definitions import polynomial
from ..kernels import tokens

CLASSES = {
    "Other": b"x",
    "CR": b"\r",
    "LF": b"\n",
    "Sep": b"Z",
    "Sp": b"_",
    "Lower": b"l",
    "Upper": b"U",
    "OLetter": b"o",
    "Numeric": b"9",
    "ATerm": b".",
    "STerm": b"!",
    "SContinue": b",",
    "Close": b")",
    "Format": b"f",
    "Extend": b"e",
}
"""The values of Sentence_Break, in the order of their numbers in the table, and a letter for each."""

_SPELLED = b"".join(CLASSES.values())

_ENDS = re.compile(
    rb"""
    (?: \r\n | [\r\nZ] )                              # SB3, SB4: a line ends
    | [.!] \)*+ _*+ (?: \r\n | [\r\nZ] )              # SB9 to SB11: a sentence ends with its line
    | ! \)*+ _*+ (?! [.!,] )                          # SB8a
    | \. (?! 9 ) (?! (?<= [Ul]\. ) U )                # SB6, SB7: no end inside 3.4 and U.S.
      \)*+ _*+ (?! [.!,] ) (?! [^oUlZ\r\n.!]* l )     # SB8: none before a small letter
    """,
    re.VERBOSE,
)
"""Matches the end of a sentence, in the classes of characters. All other places lie inside sentences (SB998)."""

ALWAYS, NEVER = 12, 0
"""The marks of parts that stay apart from the next one whatever is cut between the two, and of parts that may not."""


class Spans(NamedTuple):
    """The parts of some documents, in order.

    begin, end : arrays of int64
        The bytes of each part. Parts overlap only if windows do.
    stop : array of int64
        The end of the white space, or of the words' separators, that a part is cut out with.
    marks : array of uint8
        4 * e + s. Part a and a later part b stay two parts, if all between them is cut, if e of a is 3, or 2 and s of b
        is at least 1, or 1 and s of b is 2.
    """

    begin: np.ndarray
    end: np.ndarray
    stop: np.ndarray
    marks: np.ndarray

    def some(self, chosen: np.ndarray) -> Spans:
        """Return the chosen parts."""
        return Spans(*(array[chosen] for array in self))


def stay_apart(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return whether parts with these marks stay two parts if all between them is cut."""
    end, start = left >> 2, right & 3
    return (end == 3) | ((end == 2) & (start >= 1)) | ((end == 1) & (start == 2))


# -------------------------------------------------------------------------------------------------------------- lines


def lines(values: np.ndarray, offsets: np.ndarray) -> Spans:
    r"""Divide documents at each ``\r\n``, ``\n`` and ``\r``. NUL and form feed do not end a line.

    Parameters
    ----------
    values : array of uint8
    offsets : array of int64, shape (documents + 1,)
        From 0 to the number of values.
    """
    is_stop = np.empty(len(values) + 1, bool)
    np.equal(values, ord("\r"), out=is_stop[1:])
    returns = np.flatnonzero(is_stop[1:]) if is_stop[1:].any() else np.empty(0, np.int64)
    np.equal(values, ord("\n"), out=is_stop[1:])
    is_stop[offsets[1:]] = True
    if len(returns):
        begins_document = np.zeros(len(values) + 1, bool)
        begins_document[offsets] = True
        paired = (np.append(values, 0)[returns + 1] == ord("\n")) & ~begins_document[returns + 1]
        is_stop[returns[~paired] + 1] = True
    is_stop[0] = False
    stop = np.flatnonzero(is_stop)
    begin = np.append(0, stop[:-1])[: len(stop)]
    last = values[stop - 1]
    after = (last == ord("\n")).astype(np.int64)
    if len(returns):
        is_pair = (after > 0) & (stop - begin > 1) & (values[stop - 2] == ord("\r"))
        after += (last == ord("\r")) | is_pair
    return Spans(begin, stop - after, stop, np.full(len(stop), ALWAYS, np.uint8))


def full(values: np.ndarray, spans: Spans) -> np.ndarray:
    """Return which of some adjacent spans hold more than white space and control characters of ASCII."""
    found = spans.begin < spans.end
    rest = np.flatnonzero(found)
    rest = rest[values[spans.end[rest] - 1] <= ord(" ")]  # of others the last byte tells it
    if len(rest):
        found[rest] = np.logical_or.reduceat(values > ord(" "), spans.begin)[rest]
    return found


def paragraphs(values: np.ndarray, offsets: np.ndarray) -> Spans:
    """Join lines to paragraphs, which blank lines divide.

    A paragraph is cut with the blank lines after it, and the last one of a document with those before it. The
    parameters are those of `lines`.
    """
    each = lines(values, offsets)
    is_full = full(values, each)
    first = np.zeros(len(values) + 1, bool)
    first[offsets] = True
    opens = first[each.begin]
    follows = np.append(False, is_full[:-1])[: len(is_full)] & ~opens  # in the paragraph of the line before it
    begins = np.flatnonzero(is_full & ~follows)
    lasts = np.flatnonzero(is_full & ~np.append(follows[1:] & is_full[1:], False)[: len(is_full)])
    begin, end = each.begin[begins], each.end[lasts]
    document = np.searchsorted(offsets, begin, side="right")
    is_last = np.append(document[1:] != document[:-1], True)[: len(begin)]
    stop = np.where(is_last, end, np.append(begin[1:], 0)[: len(begin)])
    return Spans(begin, end, stop, np.full(len(begin), ALWAYS, np.uint8))


# ---------------------------------------------------------------------------------------------------------- sentences


@cache
def _table() -> np.ndarray:
    """Return the letter of `CLASSES` of each code point: uint8."""
    with files(__package__).joinpath("sentence_breaks.npz").open("rb") as file, np.load(file) as stored:
        first, classes = stored["first"], stored["classes"]
    letters = np.frombuffer(_SPELLED, np.uint8)[classes]
    return np.repeat(letters, np.diff(np.append(first, 0x110000)))


_LENGTHS = np.array([1] * 12 + [2, 2, 3, 4])
"""The bytes of a character of UTF-8, by the first four bits of its first byte."""

_NO_CHARACTER = 0xFFFD
"""The code point that stands for bytes that are not UTF-8."""


def _characters(values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the code points of text, and the byte at which each begins."""
    if values.max(initial=0) < 0x80:
        return values, np.arange(len(values))
    begins = values & 0xC0 != 0x80
    begins[offsets[:-1][offsets[:-1] < len(values)]] = True
    place = np.flatnonzero(begins)
    size = np.diff(np.append(place, len(values)))
    length = _LENGTHS[values[place] >> 4]
    if (size > length).any():  # bytes that continue no character are characters of their own
        within = np.arange(len(values)) - np.repeat(place, size)
        place = np.flatnonzero((within == 0) | (within >= np.repeat(length, size)))
        size = np.diff(np.append(place, len(values)))
    lead = values[place].astype(np.int32)
    codes = np.where(lead < 0x80, lead, _NO_CHARACTER)
    for length, low, high in ((2, 0xC2, 0xE0), (3, 0xE0, 0xF0), (4, 0xF0, 0xF5)):
        those = np.flatnonzero((lead >= low) & (lead < high) & (size >= length))
        code = lead[those] & (0x7F >> length)
        for i in range(1, length):
            code = code << 6 | (values[place[those] + i] & 0x3F)
        codes[those] = np.where(code < 0x110000, code, _NO_CHARACTER)
    return codes, place


def sentences(values: np.ndarray, offsets: np.ndarray) -> Spans:
    """Divide documents into sentences; see the head of this file. The parameters are those of `lines`."""
    codes, place = _characters(values, offsets)
    number = np.searchsorted(place, offsets[1:])  # characters before the end of each document, where a line ends
    letters = np.insert(_table()[codes], number, ord("Z"))
    place = np.append(np.insert(place, number, offsets[1:]), len(values))
    belongs = (letters == ord("e")) | (letters == ord("f"))
    if belongs.any():
        belongs &= ~np.isin(np.append(ord("Z"), letters[:-1]), [ord("Z"), ord("\r"), ord("\n")])
        letters, place = letters[~belongs], place[np.append(~belongs, True)]
    ends = np.fromiter((found.end() for found in _ENDS.finditer(letters.tobytes())), np.int64)
    begins = np.append(0, ends[:-1])[: len(ends)]
    last = letters[ends - 1]
    only = np.isin(letters[begins], np.frombuffer(b"lUo9", np.uint8)).astype(np.uint8)
    start = only + np.isin(letters[begins], np.frombuffer(b"Uo", np.uint8))
    end = np.full(len(ends), 3, np.uint8)
    open_ended = ~np.isin(last, np.frombuffer(b"\r\nZ", np.uint8))
    end[open_ended] = _strength(letters, ends[open_ended])
    begin, stop = place[begins], place[ends]
    spans = Spans(begin, _trimmed(values, begin, stop), stop, 4 * end + start)
    return spans.some(stop > begin)


def _strength(letters: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the marks of ends inside a line: 2 after a sign such as "!", 1 after ". ", and 0 after "." alone."""
    at = ends - 1
    for some in (b"_", b")"):
        while (more := letters[at] == some[0]).any():
            at = at - more
    return np.where(letters[at] == ord("!"), 2, (at < ends - 1).astype(np.int64)).astype(np.uint8)


def _trimmed(values: np.ndarray, begin: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return the ends of spans without white space of ASCII before them."""
    end, rest = stop.copy(), np.flatnonzero(stop > begin)
    while len(rest := rest[values[end[rest] - 1] <= ord(" ")]):
        end[rest] -= 1
        rest = rest[end[rest] > begin[rest]]
    return end


# -------------------------------------------------------------------------------------------------------------- words


def words(values: np.ndarray, offsets: np.ndarray) -> Spans:
    """Return the places of words, as `kernels/tokens.py` defines them. The parameters are those of `lines`.

    Words that one character makes, such as those of U+00BD (one half), are one part. A word is cut out with what
    divides it from the next one. White space of ASCII after a word keeps it apart.
    """
    values, offsets = read_only(values), read_only(offsets)
    _, counts, _, begin, end = tokens.cpu(values, offsets, polynomial(1, "tokens"), True)
    furthest = np.maximum.accumulate(end)
    first = np.flatnonzero(begin >= np.append(0, furthest[:-1])[: len(end)])  # others share a character with one before
    document = np.repeat(np.arange(len(counts) - 1), np.diff(counts))[first]
    begin, end = begin[first], furthest[np.append(first[1:], len(end))[: len(first)] - 1]
    is_last = np.append(document[1:] != document[:-1], True)[: len(document)]
    stop = np.where(is_last, end, np.append(begin[1:], 0)[: len(begin)])
    spaces = np.append(0, np.cumsum(values <= ord(" ")))
    marks = np.where(spaces[stop] > spaces[end], ALWAYS, NEVER)
    return Spans(begin, end, stop, marks.astype(np.uint8))


# ------------------------------------------------------------------------------------------------------------- groups


def grouped(spans: Spans, counts: np.ndarray, size: int, step: int) -> tuple[Spans, np.ndarray]:
    """Join each `size` parts of a document, and return the number of the first part of each group as well.

    A further group begins `step` parts after the one before it. The last group of a document ends with its last
    part, and may be shorter.

    Parameters
    ----------
    spans : Spans
    counts : array of int64, shape (documents,)
        Parts of each document.
    size, step : int
        At least 1, and `step` at most `size`.
    """
    groups = np.where(counts > 0, 1 + np.maximum(0, -((size - counts) // step)), 0)
    begins = np.cumsum(counts) - counts
    within = np.arange(groups.sum()) - np.repeat(np.cumsum(groups) - groups, groups)
    first = np.repeat(begins, groups) + step * within
    last = np.minimum(first + size, np.repeat(begins + counts, groups)) - 1
    marks = (spans.marks[last] & 12) | (spans.marks[first] & 3)
    return Spans(spans.begin[first], spans.end[last], spans.stop[last], marks), first
