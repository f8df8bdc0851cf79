"""The words in which two texts differ.

What both texts begin and end with is cut off first; then runs of words that occur once in each text anchor the
alignment (the patience diff of Bram Cohen), longer runs before shorter ones; only short stretches between anchors go to
difflib, whose time grows with the square of their length. So time is near-linear, whatever the texts.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .printable import printable
from .report import count

if TYPE_CHECKING:
    from rich.text import Text

COMPARED = 1_000_000
"""Characters of each text that are compared, from the first difference on."""

CONTEXT = 10
"""Words shown on either side of a difference."""

LONGEST = 60
"""Words of one difference that are shown."""

DIFFERENCES = 40
"""Differences that are shown."""

# Scripts that are written without spaces: each character is a word.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_DIVIDES = re.compile(rf"[\s{_DENSE}]")
WORD = re.compile(rf"[{_DENSE}]\s*|[^\s{_DENSE}]+\s*")


def differences(kept: str, removed: str, full: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """The words in which the removed text differs from the kept one, and notes on words that are left out.

    Words are (op, text): "equal", "removed", "added", or "cut", a note in place of words. `full` leaves none out.
    """
    if kept == removed:
        return [], ["the texts are the same, character by character"]
    notes = []
    begin = _common_prefix(kept, removed)
    end = _common_suffix(kept[begin:], removed[begin:])
    a_text, b_text = kept[begin : len(kept) - end], removed[begin : len(removed) - end]
    is_cut = max(len(a_text), len(b_text)) > COMPARED
    if is_cut:
        whole = max(len(a_text), len(b_text))
        notes.append(f"compared: the first {COMPARED:,} characters from the first difference on, of {whole:,}")
        a_text, b_text, end = a_text[:COMPARED], b_text[:COMPARED], 0
    a, b = WORD.findall(a_text), WORD.findall(b_text)
    blocks = list(_blocks([w.strip() for w in a], [w.strip() for w in b]))
    if is_cut and blocks:  # the texts are cut at different places, so what follows the last agreement says nothing
        a, b = a[: blocks[-1][0] + blocks[-1][2]], b[: blocks[-1][1] + blocks[-1][2]]
    before = WORD.findall(kept[:begin] if full else kept[max(0, begin - 40 * CONTEXT) : begin])
    after = WORD.findall(kept[len(kept) - end :][: None if full else 40 * CONTEXT]) if end else []
    ops: list[tuple[str, list[str]]] = [("equal", before)]
    at_a = at_b = 0
    for start_a, start_b, length in [*blocks, (len(a), len(b), 0)]:
        ops.append(("removed", a[at_a:start_a]))
        ops.append(("added", b[at_b:start_b]))
        ops.append(("equal", a[start_a : start_a + length]))
        at_a, at_b = start_a + length, start_b + length
    ops[-1] = ("equal", [*ops[-1][1], *after])
    ops = _merged(ops)
    if all(op == "equal" for op, _ in ops):
        return [], [*notes, "the words are the same; only the white space between them differs"]
    if full:
        return [(op, "".join(words)) for op, words in ops], notes
    hidden_before = begin > 40 * CONTEXT
    hidden_after = end > 40 * CONTEXT or is_cut
    return _elided(ops, hidden_before, hidden_after, notes), notes


def _merged(ops: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Drop empty runs and join neighbours of the same kind."""
    merged: list[tuple[str, list[str]]] = []
    for op, words in ops:
        if words and merged and merged[-1][0] == op:
            merged[-1][1].extend(words)
        elif words:
            merged.append((op, list(words)))
    return merged


def _elided(
    ops: list[tuple[str, list[str]]], hidden_before: bool, hidden_after: bool, notes: list[str]
) -> list[tuple[str, str]]:
    """Shorten long runs of equal words and leave out differences far into the text."""
    shown: list[tuple[str, str]] = []
    differences = 0
    for i, (op, words) in enumerate(ops):
        if op != "equal":
            differences += op == "removed" or ops[i - 1][0] != "removed"
            if differences > DIFFERENCES:
                continue
            half = LONGEST // 2
            shown += [(op, "".join(words))] if len(words) <= LONGEST else _middle_cut(op, words, half, half)
        elif differences <= DIFFERENCES:
            first, last = i == 0, i == len(ops) - 1
            head, tail = 0 if first else CONTEXT, 0 if last else CONTEXT
            if len(words) > head + tail + 5:
                shown += _middle_cut(op, words, head, tail)
            else:
                shown += [("cut", "...")] if first and hidden_before else []
                shown.append((op, "".join(words)))
                shown += [("cut", "...")] if last and hidden_after else []
    if differences > DIFFERENCES:
        notes.append(f"shown: {DIFFERENCES} of {differences:,} differences; full=True shows all")
    return shown


def _middle_cut(op: str, words: list[str], head: int, tail: int) -> list[tuple[str, str]]:
    left_out = len(words) - head - tail
    parts = [(op, "".join(words[:head])), ("cut", f"... {count(left_out, 'word')} ..." if head and tail else "...")]
    parts.append((op, "".join(words[len(words) - tail :])))
    return [part for part in parts if part[1]]


def _common_prefix(a: str, b: str) -> int:
    """Length of the common beginning of both texts, cut back to the beginning of a word."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # compares only what is not yet known to agree, so the whole search is linear
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return next((cut for cut in range(low, max(0, low - 1000), -1) if _DIVIDES.match(a[cut - 1])), max(0, low - 1000))


def _common_suffix(a: str, b: str) -> int:
    """Length of the common end of both texts, cut back to the beginning of a word."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    start = len(a) - low
    for cut in range(start + 1, min(len(a), start + 1000)):
        if _DIVIDES.match(a[cut - 1]) and not a[cut].isspace():
            return len(a) - cut
    return max(0, low - 1000)


def _blocks(
    a: list[str], b: list[str], run: int = 5, first_a: int = 0, first_b: int = 0
) -> Iterator[tuple[int, int, int]]:
    """Stretches of equal words as (start in a, start in b, length), in order; outside them no words were aligned.

    Parameters
    ----------
    a, b : list of str
    run : int
        Words in an anchor: 5, then 2, then 1 in the stretches between.
    first_a, first_b : int
        Added to every start.
    """
    if not a or not b:
        return
    if len(a) * len(b) <= 40_000:
        matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
        yield from ((first_a + m.a, first_b + m.b, m.size) for m in matcher.get_matching_blocks() if m.size)
        return
    if run == 0:
        return
    shorter = {5: 2, 2: 1, 1: 0}[run]
    at_a = at_b = 0
    for start_a, start_b in [*_anchors(a, b, run), (len(a), len(b))]:
        if start_a < at_a or start_b < at_b:  # inside the stretch that grew from an earlier anchor
            continue
        yield from _blocks(a[at_a:start_a], b[at_b:start_b], shorter, first_a + at_a, first_b + at_b)
        length = 0
        while start_a + length < len(a) and start_b + length < len(b) and a[start_a + length] == b[start_b + length]:
            length += 1
        if length:
            yield first_a + start_a, first_b + start_b, length
        at_a, at_b = start_a + length, start_b + length


def _anchors(a: list[str], b: list[str], run: int) -> list[tuple[int, int]]:
    """Places of runs of words that occur once in each list: the longest chain that rises in both."""
    once_a, once_b = _once(a, run), _once(b, run)
    common = [(place, once_b[words]) for words, place in once_a.items() if words in once_b]
    common.sort()
    tops: list[int] = []  # smallest end in b of a chain of each length
    ends: list[int] = []
    previous = [-1] * len(common)
    for i, (_, place) in enumerate(common):
        length = bisect_left(tops, place)
        if length:
            previous[i] = ends[length - 1]
        if length == len(tops):
            tops.append(place)
            ends.append(i)
        else:
            tops[length], ends[length] = place, i
    chain = []
    i = ends[-1] if ends else -1
    while i >= 0:
        chain.append(common[i])
        i = previous[i]
    return chain[::-1]


def _once(words: list[str], run: int) -> dict[tuple[str, ...], int]:
    """Place of each run of words that occurs once."""
    places: dict[tuple[str, ...], int] = {}
    for place, key in enumerate(zip(*(words[i:] for i in range(run)), strict=False)):
        places[key] = -1 if key in places else place
    return {key: place for key, place in places.items() if place >= 0}


# ------------------------------------------------------------------------------------------------------ on a terminal


def legend(removed: str, added: str, colour: bool) -> Text:
    """What the marks of a diff mean."""
    from rich.text import Text

    marks = [_marked(op, word, True, True, colour) for op, word in (("removed", removed), ("added", added))]
    return Text(" ").join(Text(word, style) for word, style in marks)


def _marked(op: str, word: str, first: bool, last: bool, colour: bool) -> tuple[str, str]:
    """A printable word and its style; without colour, differing words are marked at their beginning and end."""
    style, left, right = {"removed": ("red", "[-", "-]"), "added": ("green", "{+", "+}")}.get(op, ("", "", ""))
    word = printable(word)
    if not colour:
        word = (left if first else "") + word + (right if last else "")
    return word, style or ("dim" if op == "cut" else "")


def wrapped(words: list[tuple[str, str]], width: int, colour: bool) -> Iterator[Text]:
    """Break the words into lines of at most `width` characters, where the words allow it."""
    from rich.cells import cell_len
    from rich.text import Text

    line, used = Text(), 0
    gap = False
    for op, text in words:
        pieces = WORD.findall(text)
        for i, piece in enumerate(pieces):
            word, style = _marked(op, piece.strip(), i == 0, i == len(pieces) - 1, colour)
            gap = gap or (op == "cut" and i == 0)
            cells = cell_len(word)
            if used and used + gap + cells > width:
                yield line
                line, used, gap = Text(), 0, False
            space = " " if gap and used else ""
            line.append(space).append(word, style)
            used += len(space) + cells
            gap = piece[-1].isspace() or op == "cut"
    if line:
        yield line
