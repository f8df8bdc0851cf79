"""Letters and lines: by eye, beside a second definition in plain Python, and the text at their places."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from strategies import PIECES
from witnesses import decoded, fingerprint, token_strings

from neardup_gpu.kernels import letters, lines, tokens

pytestmark = pytest.mark.quick

Q, LINES = np.uint64(0x1234_5678_9ABC_DEF1 | 1 << 63), np.uint64(0xFEDC_BA98_7654_3211)
TEXTS = st.lists(PIECES, max_size=6).map(b"".join)


def of(kernel, raw, *moduli):
    return kernel.cpu(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]), Q, *moduli, True)


def spelled(words):
    """Return the bytes of words in the order of their letters."""
    return [word.encode("utf-8", "surrogatepass") for word in words]


@settings(max_examples=fewer(150), deadline=None)
@given(TEXTS)
def test_letters_are_the_code_points_of_words_that_a_space_divides(raw):
    text = " ".join(token_strings(decoded(raw)))
    assert of(letters, raw)[0].tolist() == [fingerprint(letter, Q) for letter in spelled(text)]


@settings(max_examples=fewer(150), deadline=None)
@given(TEXTS)
def test_each_letter_is_at_its_place(raw):
    """The text of a word's letters, from the first to the last of them, has this word."""
    values, _, _, begins, ends = of(letters, raw)
    assert (begins <= ends).all() and (begins >= 0).all() and (ends <= len(raw)).all()
    spaces = np.flatnonzero(values == np.uint64(fingerprint(b" ", Q)))
    words, _, _, word_begins, word_ends = of(tokens, raw)
    assert len(words) == (len(spaces) + 1 if len(values) else 0)
    for number, own in enumerate(np.split(np.arange(len(values)), spaces)):
        own = own[1:] if number else own
        if len(own):
            assert begins[own].min() == word_begins[number] and ends[own].max() == word_ends[number]


def test_letters_by_eye():
    values, offsets, invalid, begins, ends = of(letters, "Äb, C".encode() + b"\xff")
    assert (len(values), offsets.tolist(), invalid) == (6, [0, 6], 1)
    assert list(zip(begins.tolist(), ends.tolist(), strict=True)) == [(0, 2), (0, 2), (2, 3), (3, 5), (5, 6), (6, 7)]


@settings(max_examples=fewer(150), deadline=None)
@given(st.lists(st.one_of(PIECES, st.sampled_from([b"\r", b"\n", b"\r\n", b"\0", b"\f"])), max_size=8).map(b"".join))
@example("々\u0345\u0300".encode())  # a mark of the first word stands behind the second one
def test_lines_have_the_words_between_line_ends(raw):
    found = [token_strings(decoded(line)) for line in raw.replace(b"\r", b"\n").split(b"\n")]
    expected = [
        fingerprint(b"".join(fingerprint(word, Q).to_bytes(8, "little") for word in spelled(line)), LINES)
        for line in found
        if line
    ]
    values, _, _, begins, ends = of(lines, raw, LINES)
    assert values.tolist() == expected
    for value, begin, end in zip(values, begins, ends, strict=True):
        assert not {10, 13} & set(raw[begin:end]) and (value == of(lines, raw[begin:end], LINES)[0]).all()
