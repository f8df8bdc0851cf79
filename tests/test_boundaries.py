"""Boundaries of units: each kind against a slow definition on single characters."""

import itertools
import re
import unicodedata

import numpy as np
import pytest
from grids import fewer
from hypothesis import assume, given, settings, strategies as st

from neardup_gpu.recipe import Recipe
from neardup_gpu.stages import as_documents, place_tokens
from neardup_gpu.text import boundaries
from neardup_gpu.text.boundaries import CLASSES, Spans, grouped, stay_apart

PIECES = [
    *"aB1 .!?\n\r,)'-:\0\f\t\u0085\u2029\u00a0",
    *("\r\n", "\n\n", "U.S.", "3.4", "e.g. ", "? ", "...", "é", "É", "ß", "\u0301", "\u00ad", "\u200d"),
    *("漢", "字。", "ไทย", "กำ", "كَتَبَ", "؟ ", "א", "\u3000", "½", "ͅ", "𝒳", "\U0001f600"),
]
TEXTS = st.lists(
    st.lists(st.sampled_from([piece.encode() for piece in PIECES] + [b"\xff", b"\xe6\xbc", b"\x80"])).map(b"".join),
    max_size=5,
)


PARTS = st.sampled_from([b"a", b"A", b"1", "漢".encode(), "½".encode(), "\u0301".encode(), b"(", b"-", b"\xff"])
BETWEEN = st.sampled_from(
    [b". ", b".", b"! ", b"?", b"\n", b" ", b".) ", "。".encode(), b".\r\n", b"\r\n\n", "\u00ad".encode()]
)
JOINED = st.lists(st.tuples(PARTS, PARTS, BETWEEN), min_size=3).map(lambda parts: b"".join(map(b"".join, parts)))

NAMES = {letter[0]: name for name, letter in CLASSES.items()}


def divided(function, texts):
    """Return the (begin, end, stop) of all parts of each text, by a function of `boundaries`; and all the marks."""
    sizes = [len(text) for text in texts]
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    spans = function(np.frombuffer(b"".join(texts), np.uint8), offsets)
    found = [[] for _ in texts]
    for begin, *rest in zip(*(array.tolist() for array in spans[:3]), strict=True):
        text = int(np.searchsorted(offsets, begin, side="right")) - 1
        found[text].append((begin - int(offsets[text]), *(place - int(offsets[text]) for place in rest)))
    return found, spans.marks


def lines(text):
    ends = [match.end() for match in re.finditer(rb"\r\n|\r|\n", text)]
    ends += [len(text)] if ends[-1:] != [len(text)] and text else []
    begins = [0, *ends]
    return [
        (begin, begin + len(text[begin:stop].rstrip(b"\r\n")), stop) for begin, stop in zip(begins, ends, strict=False)
    ]


def paragraphs(text):
    found, is_open = [], False
    for begin, end, _ in lines(text):
        is_full = any(byte > 32 for byte in text[begin:end])
        if is_full and is_open:
            found[-1][1] = end
        elif is_full:
            found.append([begin, end])
        is_open = is_full
    stops = [*(begin for begin, _ in found[1:]), *(end for _, end in found[-1:])]
    return [(begin, end, stop) for (begin, end), stop in zip(found, stops, strict=True)]


def class_of(character):
    code = min(ord(character), 0x10FFFF)
    if 0xD800 <= code < 0xE000:  # what is not UTF-8
        return "Other"
    return NAMES[int(boundaries._table()[code])]


def sentences(text):
    """Return the ends of sentences of a str, by the rules of UAX #29 in their order."""
    classes = [class_of(character) for character in text]
    line_end, marks = ("CR", "LF", "Sep"), ("Format", "Extend")
    kept = [i for i, each in enumerate(classes) if each not in marks or i == 0 or classes[i - 1] in line_end]

    def is_end(place):
        before, after = [classes[i] for i in kept if i < place], [classes[i] for i in kept if i >= place]
        if place == len(text) or not after:
            return place == len(text)
        if before[-1] == "CR" and after[0] == "LF":  # SB3
            return False
        if before[-1] in line_end:  # SB4
            return True
        if classes[place] in marks:  # SB5
            return False
        left = before
        if left[-1] == "ATerm" and (
            after[0] == "Numeric" or (left[-2:-1] in (["Upper"], ["Lower"]) and after[0] == "Upper")
        ):
            return False  # SB6, SB7
        spaces = len(left) - next((i for i, each in enumerate(left[::-1]) if each != "Sp"), len(left))
        closes = next((i for i in range(spaces, 0, -1) if left[i - 1] != "Close"), 0)
        mark = left[closes - 1] if closes else None
        if mark not in ("ATerm", "STerm"):
            return False  # SB998
        if mark == "ATerm":  # SB8
            stop = {"OLetter", "Upper", "Lower", "ATerm", "STerm", *line_end}
            if next((each for each in after if each in stop), None) == "Lower":
                return False
        if after[0] in ("SContinue", "ATerm", "STerm"):  # SB8a
            return False
        is_inside = after[0] == "Sp" or after[0] in line_end or (after[0] == "Close" and spaces == len(left))
        return not is_inside  # SB9 to SB11

    return [place for place in range(1, len(text) + 1) if is_end(place)]


@settings(deadline=None, max_examples=fewer(150))
@given(TEXTS)
def test_lines_and_paragraphs(texts):
    assert divided(boundaries.lines, texts)[0] == [lines(text) for text in texts]
    assert divided(boundaries.paragraphs, texts)[0] == [paragraphs(text) for text in texts]


@settings(deadline=None, max_examples=fewer(250))
@given(TEXTS)
def test_sentences(texts):
    found, _ = divided(boundaries.sentences, texts)
    for text, spans in zip(texts, found, strict=True):
        characters = text.decode("utf-8", "surrogateescape")
        ends = [len(characters[:end].encode("utf-8", "surrogateescape")) for end in sentences(characters)]
        assert [stop for *_, stop in spans] == ends
        assert [begin for begin, *_ in spans] == [0, *ends][: len(ends)]
        for begin, end, stop in spans:
            assert text[end:stop].strip(bytes(range(33))) == b""
            assert end == begin or text[end - 1] > 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He said it. Then he left.", ["He said it. ", "Then he left."]),
        (
            "It is 3.4 m. long, by U.S. law. (So he says.) No?!  Yes",
            ["It is 3.4 m. long, by U.S. law. ", "(So he says.) ", "No?!  ", "Yes"],
        ),
        ("他说。好！再见", ["他说。", "好！", "再见"]),
        ("ไปไหน มาไหน", ["ไปไหน มาไหน"]),
        ("كيف؟ بخير.", ["كيف؟ ", "بخير."]),
        ("one\r\ntwo\0three\fA", ["one\r\n", "two\0three\fA"]),
        ("e\u0301.\u0301 B", ["e\u0301.\u0301 ", "B"]),
    ],
)
def test_sentences_of_some_languages(text, expected):
    (found,), _ = divided(boundaries.sentences, [text.encode()])
    assert [text.encode()[begin:stop].decode() for begin, _, stop in found] == expected


def test_classes_agree_with_the_categories_of_python():
    table = boundaries._table()
    assert len(table) == 0x110000
    for code in range(0x3000):
        category, name = unicodedata.category(chr(code)), NAMES[int(table[code])]
        if category in ("Lu", "Lt"):
            assert name == ("OLetter" if 0x1C90 <= code < 0x1CC0 else "Upper")  # Mtavruli is not used for names
        elif category == "Nd":
            assert name == "Numeric"
        elif category in ("Mn", "Me", "Mc"):
            assert name in ("Extend", "Lower"), hex(code)
        elif category in ("Lo",):
            assert name in ("OLetter", "Lower")
        elif category in ("Ps", "Pe", "Pi", "Pf"):
            assert name == "Close"


@settings(deadline=None, max_examples=fewer(100))
@given(TEXTS)
def test_words_and_groups(texts):
    found, _ = divided(boundaries.words, texts)
    documents = as_documents([text.decode("utf-8", "surrogateescape") for text in texts], Recipe())
    placed = place_tokens(documents, Recipe(), "cpu")
    offsets = documents.offsets[:-1].repeat(placed.sizes)
    places = [*zip((placed.begins - offsets).tolist(), (placed.ends - offsets).tolist(), strict=True)]
    for spans, first, last in zip(found, placed.offsets[:-1].tolist(), placed.offsets[1:].tolist(), strict=True):
        assert {end for _, end, _ in spans} <= {end for _, end in places[first:last]}
        if all(a[1] <= b[0] for a, b in itertools.pairwise(places[first:last])):
            assert [span[:2] for span in spans] == places[first:last]
    for text, spans in zip(texts, found, strict=True):
        assert spans == sorted(spans)
        assert [stop for *_, stop in spans] == [*(begin for begin, *_ in spans[1:]), *(end for _, end, _ in spans[-1:])]
        assert all(0 <= begin < end <= len(text) for begin, end, _ in spans)


@given(st.lists(st.integers(0, 7)), st.integers(1, 4), st.integers(1, 4))
def test_groups_hold_each_part(counts, size, step):
    step = min(size, step)
    number = np.arange(sum(counts))
    spans = Spans(number, number + 1, number + 1, (number % 13).astype(np.uint8))
    found, first = grouped(spans, np.array(counts, np.int64), size, step)
    expected, begin = [], 0
    for count in counts:
        starts = [start for start in range(0, count, step) if start == 0 or start - step + size < count]
        expected += [(begin + start, min(begin + start + size, begin + count)) for start in starts]
        begin += count
    assert list(zip(found.begin.tolist(), found.end.tolist(), strict=True)) == expected
    assert first.tolist() == [begin for begin, _ in expected]


@settings(deadline=None, max_examples=fewer(300))
@given(JOINED, st.sampled_from(["sentences", "words"]), st.data())
def test_parts_that_stay_apart_are_the_same_parts_without_what_is_between(text, name, data):
    function = getattr(boundaries, name)
    (spans,), marks = divided(function, [text])
    assume(len(spans) >= 3)
    first = data.draw(st.integers(1, len(spans) - 2))
    stop = data.draw(st.integers(first + 1, len(spans) - 1))
    assume(stay_apart(marks[first - 1 : first], marks[stop : stop + 1])[0])
    assume(all(text[slice(*spans[i][:2])].strip(bytes(range(33))) for i in (first - 1, stop)))  # or they are not units
    size = spans[stop][0] - spans[first][0]
    ((left,), _) = divided(function, [text[: spans[first][0]] + text[spans[stop][0] :]])
    moved = [tuple(place - size for place in span) for span in spans[stop:]]
    assert [span[:2] for span in left] == [span[:2] for span in spans[:first] + moved]
