"""The words in which two texts differ, as they are shown: aligned by `alignment.py`, shortened, on a terminal."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..printable import printable, readable_id
from ..recipe import Recipe
from ..report import count
from ..text.raw_text import BORDER, to_bytes, to_readable, to_string
from ..text.token_kinds import OwnTokens
from .alignment import ALONE, align, tokens_of, words_of

if TYPE_CHECKING:
    from rich.text import Text

COMPARED = 20_000_000
"""Characters of each text that are compared."""

KEPT_ONLY = ("removed", "moved_from")
"""Ops of words of the kept text that are not aligned."""

CONTEXT = 10
"""Words shown on either side of a difference."""

LONGEST = 60
"""Words of one difference that are shown."""

DIFFERENCES = 40
"""Differences that are shown."""


def differences(
    kept: str, removed: str, recipe: Recipe, *, full: bool, names: tuple[Any, Any] = (None, None)
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the words in which the removed text differs from the kept one, and notes on the words.

    Parameters
    ----------
    kept, removed : str
        As `Documents._to_string` makes them of bytes. Invalid bytes are compared as bytes and shown as U+FFFD; a border
        between columns is compared as a word and shown as a line break.
    recipe : Recipe
        Words are compared as its decision compares them; its shingles say which words are common wherever they stand.
    full : bool
        Leave no words out.
    names : (name, name), default (None, None)
        What the documents are called; None if it is not known.

    Returns
    -------
    words : list of (op, text)
        In the order of both texts. "equal" are words of both texts, written as in the kept one; "removed" are only in
        the kept text, "added" only in the removed one; "moved_from" are words of the kept text that the removed one has
        elsewhere, "moved_to" are words of the removed text that the kept one has elsewhere; "cut" is a note in place of
        words. Each run of "equal", "moved_from" or "moved_to" is a run of equal words in both texts. How many words
        they are at least: `alignment.py`.
    notes : list of str
    """
    if kept == removed:
        return [], ["the texts are the same, character by character"]
    if kept.split() == removed.split():
        return [], ["the words are the same; only the white space between them differs"]
    notes = []
    if isinstance(recipe.shingles.tokens, OwnTokens):
        notes.append(f"words are shown; compared were the tokens of {recipe.shingles.tokens.name}")
        recipe = recipe.with_(tokens="words")
    noun = recipe.shingles.token_kind.noun
    if (longest := max(len(kept), len(removed))) > COMPARED:
        notes.append(f"compared: the first {COMPARED:,} characters of each text, of at most {longest:,}")
    a_text, b_text = kept[:COMPARED], removed[:COMPARED]
    a, b = words_of(a_text, recipe, names[0]), words_of(b_text, recipe, names[1])
    if not len(a.tokens) or not len(b.tokens):
        return _readable([(op, text) for op, text in (("removed", a_text), ("added", b_text)) if text]), notes
    found = align(a.tokens, b.tokens, recipe)
    in_a, in_b = ([text[i:j] for i, j in pairwise(words.starts.tolist())] for text, words in ((a_text, a), (b_text, b)))
    if recipe.shingles.token_kind.holds == "bytes":
        notes.append("chunks are shown by the places of their bytes, from 0, each in its own file")
        in_a, in_b = ([f"{i // 2}-{j // 2} " for i, j in pairwise(words.starts.tolist())] for words in (a, b))
    end_a, end_b = len(in_a), len(in_b)
    if found.blocks:  # a text that was cut says nothing after its last agreement
        last_a, last_b, length = found.blocks[-1]
        end_a = last_a + length if len(kept) > COMPARED else end_a
        end_b = last_b + length if len(removed) > COMPARED else end_b
    ops: list[tuple[str, list[str]]] = []
    respelled = at_a = at_b = 0
    for start_a, start_b, length in [*found.blocks, (end_a, end_b, 0)]:
        ops += _alone(in_a[at_a:start_a], found.first[at_a:start_a], "removed", "moved_from")
        ops += _alone(in_b[at_b:start_b], found.second[at_b:start_b], "added", "moved_to")
        at_a, at_b = start_a + length, start_b + length
        if length:
            ops.append(("equal", in_a[start_a:at_a]))
            both = zip(in_a[start_a:at_a], in_b[start_b:at_b], strict=True)
            respelled += sum(mine.strip() != other.strip() for mine, other in both)
    made_of = recipe.shingles
    named = {"dropped words": made_of.drop_words, "folded characters": made_of.fold, "endings": made_of.stem}
    changed = [name for name, value in named.items() if value is not None]
    if all(op == "equal" for op, _ in ops):
        *others, last = [*changed, *(["case", "punctuation", "white space"] if noun == "word" else ["the rest"])]
        differs = f"{', '.join(others)} and {last} differ" if others else "what is between them differs"
        return [], [*notes, f"the {noun}s are the same; only {differs}"]
    if respelled and recipe.shingles.token_kind.holds == "text":
        are = "is" if respelled == 1 else "are"
        how = "in another way" if changed else "with other case or punctuation"
        notes.append(f"{count(respelled, f'common {noun}')} {are} written {how} in the other text")
    if any(BORDER in word for op, words in ops if op != "equal" for word in words):
        notes.append("the texts are divided between columns in different ways: a line break stands where a column ends")
    if full:
        return _readable([(op, "".join(words)) for op, words in ops]), notes
    return _readable(_elided(ops, max(len(kept), len(removed)) > COMPARED, notes, noun)), notes


def are_identical(kept: str, removed: str) -> bool:
    """Tell whether two texts count as the same one: the same characters, or no text at all, as `empty` has it."""
    return kept == removed or not (to_readable(kept).strip() or to_readable(removed).strip())


def _readable(words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(op, to_readable(text)) for op, text in words]


def _alone(words: list[str], marks: np.ndarray, alone: str, elsewhere: str) -> Iterator[tuple[str, list[str]]]:
    """Divide words that are not aligned into those of this text alone and runs that stand elsewhere in the other."""
    ends = np.flatnonzero(np.diff(marks)) + 1
    for start, end in pairwise([0, *ends.tolist(), len(words)]):
        if start < end:
            yield alone if marks[start] == ALONE else elsewhere, words[start:end]


def _elided(ops: list[tuple[str, list[str]]], is_cut: bool, notes: list[str], noun: str) -> list[tuple[str, str]]:
    """Shorten long runs of equal words and leave out differences far into the text."""
    shown: list[tuple[str, str]] = []
    differences = 0
    for i, (op, words) in enumerate(ops):
        if op != "equal":
            differences += op in KEPT_ONLY or i == 0 or ops[i - 1][0] not in KEPT_ONLY
            if differences > DIFFERENCES:
                continue
            half = LONGEST // 2
            shown += [(op, "".join(words))] if len(words) <= LONGEST else _middle_cut(op, words, half, half, noun)
        elif differences <= DIFFERENCES:
            first, last = i == 0, i == len(ops) - 1
            head, tail = 0 if first else CONTEXT, 0 if last else CONTEXT
            if len(words) > head + tail + 5:
                shown += _middle_cut(op, words, head, tail, noun)
            else:
                shown.append((op, "".join(words)))
                shown += [("cut", "...")] if last and is_cut else []
    if differences > DIFFERENCES:
        notes.append(f"shown: {DIFFERENCES} of {differences:,} differences; full=True shows all")
    return shown


def _middle_cut(op: str, words: list[str], head: int, tail: int, noun: str) -> list[tuple[str, str]]:
    left_out = len(words) - head - tail
    parts = [(op, "".join(words[:head])), ("cut", f"... {count(left_out, noun)} ..." if head and tail else "...")]
    parts.append((op, "".join(words[len(words) - tail :])))
    return [part for part in parts if part[1]]


# ------------------------------------------------------------------------------------------------ parts that were cut


LISTED = 20
"""Copies that are listed in notes."""


def struck(rows: list[dict[str, Any]], text: str, *, full: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Return a text in which the parts that were cut are marked as removed, and notes on the copies that were not cut.

    Parameters
    ----------
    rows : list of dict
        The rows of `Result.units` of the document.
    text : str
        As `Documents._to_string` makes it of bytes.
    full : bool
        If False, long runs of words are shortened, and a document without cuts is not shown.

    Returns
    -------
    words : list of (op, text)
        In order: "equal" is kept, "removed" was cut, and "cut" is a note on what is before it.
    notes : list of str
    """
    data, at, ops = to_bytes(text), 0, []
    listed = [row for row in rows if row["kept"] and row["source_id"] is not None]
    for row in rows:
        if row["kept"]:
            continue
        ops.append(("equal", _words(data[at : row["begin"]])))
        ops.append(("removed", _words(data[row["begin"] : row["end"]])))
        ops.append(("cut", [f"[{_why(row)}]"]))
        at = row["end"]
    ops.append(("equal", _words(data[at:])))
    notes = [f"bytes {row['begin']:,} to {row['end']:,} were not cut: {_why(row)}" for row in listed[:LISTED]]
    if len(listed) > LISTED:
        notes.append(f"{len(listed) - LISTED:,} more copies were not cut; the table of units lists them")
    if at == 0 and not full:
        return [], notes
    shown = [(op, words) for op, words in ops if words]
    return [(op, "".join(words)) for op, words in shown] if full else _elided(shown, False, notes, "word"), notes


def _words(data: bytes) -> list[str]:
    """Divide bytes after each run of white space."""
    return re.findall(r"\s*\S+\s*|\s+", to_readable(to_string(data)))


def _why(row: dict[str, Any]) -> str:
    """Say what a part repeats."""
    if row["source_id"] is None:
        return "dropped: too little of the document was left"
    where = " of the reference set" if row.get("in_reference") else ""
    source = f"part {row['source_unit']:,} of {readable_id(row['source_id'])}{where}"
    listed = {"copy": ", one of several copies", "seam": ", without which its neighbours become one", "overlaps": ""}
    if row["reason"] in listed:
        return f"repeats {source}{listed[row['reason']]}"
    return f"{'like' if row['reason'] == 'near' else 'same as'} {source}"


# ------------------------------------------------------------------------------------------------------ in a notebook

_TAGS = {"equal": "span", "removed": "del", "added": "ins", "cut": "em", "moved_from": "span", "moved_to": "span"}

_STYLES = {
    "removed": " style='background:#f8b4a866'",
    "added": " style='background:#7fd08c66'",
    "moved_from": " style='border:1px dashed #d2691e' title='only here in the first text; the second has it elsewhere'",
    "moved_to": " style='border:1px dashed #2e8b57' title='only here in the second text; the first has it elsewhere'",
}


def in_html(words: Sequence[tuple[str, str]]) -> str:
    """Return the words of a difference as HTML, with everything from documents escaped."""
    return " ".join(f"<{_TAGS[op]}{_STYLES.get(op, '')}>{html.escape(text)}</{_TAGS[op]}>" for op, text in words)


# ------------------------------------------------------------------------------------------------------ on a terminal


MARKS = {
    "removed": ("red", "[-", "-]"),
    "added": ("green", "{+", "+}"),
    "moved_from": ("yellow", "[~", "~]"),
    "moved_to": ("cyan", "{~", "~}"),
}
"""The colour of each op, and how its words begin and end without colour."""


def legend(words: list[tuple[str, str]], kept: str, removed: str, colour: bool) -> Text:
    """Return what the marks of a diff mean, by what the two texts are called; moved words are explained if shown."""
    from rich.text import Text

    shown = {op for op, _ in words}
    meanings = {
        "removed": f"only in {kept}",
        "added": f"only in {removed}",
        "moved_from": f"in {kept}, elsewhere in {removed}",
        "moved_to": f"in {removed}, elsewhere in {kept}",
    }
    marks = [
        _mark_word(op, meaning, True, True, colour)
        for op, meaning in meanings.items()
        if op in ("removed", "added") or op in shown
    ]
    return Text(" ").join(Text(word, style) for word, style in marks)


def _mark_word(op: str, word: str, first: bool, last: bool, colour: bool) -> tuple[str, str]:
    """Return a printable word and its style; without colour, runs of words are marked at their beginning and end."""
    style, left, right = MARKS.get(op, ("", "", ""))
    word = printable(word)
    if not colour:
        word = (left if first else "") + word + (right if last else "")
    return word, style or ("dim" if op == "cut" else "")


def _pieces(text: str) -> list[str]:
    """Divide a text where a line may end: after white space, and between tokens that touch, as in Chinese."""
    tokens = tokens_of(text, Recipe())
    touching = tokens.begins[1:][tokens.begins[1:] == tokens.ends[:-1]]
    spaces = (match.end() for match in re.finditer(r"\s+", text))
    bounds = sorted({0, len(text), *touching.tolist(), *spaces})
    return [text[start:end] for start, end in pairwise(bounds) if not text[start:end].isspace()]


def wrapped(words: list[tuple[str, str]], width: int, colour: bool) -> Iterator[Text]:
    """Break the words into lines of at most `width` characters, where the words allow it."""
    from rich.cells import cell_len
    from rich.text import Text

    line, used = Text(), 0
    gap = False
    for op, text in words:
        pieces = _pieces(text)
        for i, piece in enumerate(pieces):
            word, style = _mark_word(op, piece.strip(), i == 0, i == len(pieces) - 1, colour)
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


def in_lines(words: list[tuple[str, str]], width: int, colour: bool) -> Iterator[Text]:
    """Break words into lines where the text has line breaks, and lines into lines of at most `width` characters."""
    from rich.text import Text

    line: list[tuple[str, str]] = []
    is_blank = True
    for op, text in [*words, ("", "\n")]:
        first, *rest = text.split("\n")
        for more in [None, *rest]:
            if more is not None:
                shown = [*wrapped(line, width, colour)]
                yield from shown or ([] if is_blank else [Text()])
                is_blank, line, first = not shown, [], more
            if first.strip():
                line.append((op, first))
