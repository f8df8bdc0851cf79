"""Folds and dropped words: by eye, beside a second definition on strings, and the text at the places of tokens."""

import re
import unicodedata

import numpy as np
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from strategies import PIECES
from witnesses import decoded, invisible, kind, token_strings

from neardup_gpu import Recipe, Shingles
from neardup_gpu.data import Ragged
from neardup_gpu.installation.kernel_inputs import FOLDED
from neardup_gpu.kernels import drop, fold, tokens
from neardup_gpu.stages import place_tokens

pytestmark = pytest.mark.quick

Q = np.uint64(0x1234_5678_9ABC_DEF1 | 1 << 63)
EVERY = ("marks", "hyphens", "digits")
TEXTS = st.lists(PIECES | st.sampled_from([piece.encode() for piece in FOLDED]), max_size=10).map(b"".join)
"""Bytes of any kind, among them what folds change."""

WRITTEN = "éǆÉBnß²½⑩٣7a_-\u0301\u0323\u0345\u200b\u00adйЖ\u0640\u064e\u0654\u05b4ب漢ๆ๑ \n"


def run(raw, folds=EVERY):
    found = fold.cpu(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]), folds, True)
    return found[0].tobytes(), found[2], found[3]


def folded(text, *folds):
    return run(text.encode(), folds)[0].decode()


def is_point(character):
    """Whether a character is a vowel sign of Arabic, a point of Hebrew, or the tatweel, by its name."""
    name = unicodedata.name(character, "")
    is_mark = unicodedata.category(character) == "Mn" and name.startswith(("ARABIC ", "HEBREW "))
    return character == "\u0640" or (is_mark and not "\u0653" <= character <= "\u0655")


def witness(text):
    """Remove marks and join numbers, a character of the decomposed text at a time."""
    found, is_latin, in_number = "", False, False
    for character in unicodedata.normalize("NFKD", text):
        is_accent = kind(character) == "mark" and re.match(
            "[\u0300-\u0344\u0346-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]", character
        )
        if is_point(character) or (is_accent and is_latin):
            is_latin = is_latin and character != "\u0640"
            continue
        is_digit = unicodedata.category(character) == "Nd"
        if not (is_digit and in_number):
            found += "0" if is_digit else character
        in_number = is_digit or (in_number and invisible(character))
        if kind(character) not in ("mark", "vanish") and character != "\u0345":
            is_latin = unicodedata.name(character.casefold()[-1], "").startswith("LATIN ")
    return found


@settings(max_examples=fewer(300), deadline=None)
@given(st.text(st.sampled_from(WRITTEN)) | st.text(st.characters(codec="utf-8"), max_size=20))
@example("1\u200b2\u064e3")
def test_folded_text_has_the_tokens_of_folded_characters(text):
    assert token_strings(run(text.encode(), ("marks", "digits"))[0].decode()) == token_strings(witness(text))


@settings(max_examples=fewer(300), deadline=None)
@given(st.text(st.sampled_from("aBé\u0301\u00ad\u2010- \t\r\n1_.\u200b")))
def test_words_are_joined_as_by_a_regular_expression(text):
    divided = "(?<=[aBé\u0301])[-\u00ad\u2010][ \t]*(?:\r\n|\r|\n)[ \t]*(?!B[\u0301\u00ad\u200b]*[aé])(?=[aBé])"
    assert folded(text, "hyphens") == re.sub(divided, "", text)


@settings(max_examples=fewer(200), deadline=None)
@given(TEXTS, st.sets(st.sampled_from(EVERY), min_size=1).map(sorted))
def test_invalid_bytes_and_borders_stay(raw, folds):
    found = run(raw, tuple(folds))[0]
    wrong = [[c for c in decoded(each) if "\udc00" <= c <= "\udcff"] for each in (raw, found)]
    assert wrong[0] == wrong[1]


@settings(max_examples=fewer(200), deadline=None)
@given(TEXTS)
def test_folding_again_changes_nothing(raw):
    """Without the tatweel: accents behind it are not those of a Latin letter before it, until it has vanished."""
    found = run(raw.replace("\u0640".encode(), b""), ("marks", "digits"))[0]
    assert run(found, ("marks", "digits"))[0] == found


@settings(max_examples=fewer(200), deadline=None)
@given(TEXTS, st.sampled_from(["words", "letters"]))
def test_the_text_at_the_place_of_a_token_has_it(raw, kind):
    recipe = Recipe(shingles=Shingles(24, tokens=kind, fold=EVERY))
    found = place_tokens(Ragged.from_rows([list(raw)], np.uint8), recipe, "cpu")
    values, begins, ends = found[0], found.begins, found.ends
    assert (begins >= 0).all() and (begins <= ends).all() and (ends <= len(raw)).all()
    if kind == "words":
        parts = [raw[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        for value, part in zip(values, parts, strict=True):
            again, _ = run(part)[:2]
            own = tokens.cpu(np.frombuffer(again, np.uint8), np.array([0, len(again)]), recipe.material.tokens)[0]
            assert value in own or set(decoded(part)) == {"\udc00"}, (part, again)


def test_marks_by_eye():
    assert folded("Éte\u0301 Ảǖ ǿ İ ŉ", "marks") == "ete au ø i ŉ"
    assert folded("été e\u0301te\u0301", "marks") == "ete ete"
    assert folded("العَرَبِيَّة عـــربي آأإؤئ", "marks") == "العربية عربي آأإؤئ"
    assert folded("עִבְרִית", "marks") == "עברית"
    assert folded("й и\u0306 हिन्दी ก\u0e33 が", "marks") == "й и\u0306 हिन्दी ก\u0e33 が"


def test_places_hold_the_marks_and_digits_that_vanish():
    raw = "e\u0301\u200b\u0323 infor-\r\n\tma 12\u200b3".encode()
    found, begins, ends = run(raw)
    assert found.decode() == "e\u200b informa 0\u200b"
    assert (begins[0], ends[0]) == (0, 8)
    at = found.index(b"informa")
    assert raw[begins[at] : ends[at + 6]] == b"infor-\r\n\tma" and raw[begins[at + 4] : ends[at + 4]] == b"r"
    assert raw[begins[at + 8] : ends[at + 8]].decode() == "12\u200b3"


def test_numbers_by_eye():
    assert folded("a12b 3½ ⑩9 ٣٤ v1.20 1,000 m² ๑๒", "digits") == "a0b 0 0 0 0 v0.0 0,0 m0 0"


@pytest.mark.parametrize("function", [drop.reference, drop.cpu])
def test_a_document_of_listed_words_keeps_them(function):
    words = np.array([9, 1, 5, 1, 2, 2, 7, 9], np.uint64)
    kept, offsets, alone = function(words, np.array([1, 1, 4, 6, 7]), np.array([1, 2], np.uint64))
    assert kept.tolist() == [False, False, True, False, True, True, True, False]
    assert (offsets.tolist(), alone) == ([0, 0, 1, 3, 4], 1)
