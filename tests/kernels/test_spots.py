"""Spots: what they are by eye, by a second definition in words, and what becomes of documents without any."""

import numpy as np
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st
from witnesses import fingerprint

from neardup_gpu.kernels import shingles, spots
from neardup_gpu.stages import Ragged

Q = np.uint64(0x1234_5678_9ABC_DEF1 | 1 << 63)
BOTH = pytest.mark.parametrize("function", [spots.reference, spots.cpu], ids=["reference", "cpu"])
THE, OF, A, B, C, D = range(101, 107)


def of(words):
    """Fingerprint of a chain of tokens, by the witness."""
    return fingerprint(b"".join(word.to_bytes(8, "little") for word in words), Q)


def run(function, rows, c, stops=(THE, OF)):
    tokens = Ragged.from_rows(rows, np.uint64)
    values, offsets, without = function(tokens.values, tokens.offsets, np.array(stops, np.uint64), c, Q)
    found = Ragged(values, offsets)
    return [found[row].tolist() for row in range(len(found))], without


@BOTH
class TestByEye:
    def test_a_stop_word_with_the_next_words_that_are_none(self, function):
        rows = [[A, THE, B, OF, THE, C, D]]
        assert run(function, rows, 2) == ([[of([THE, B, C]), of([OF, C, D]), of([THE, C, D])]], 0)

    def test_a_chain_that_the_document_cuts_off_is_none(self, function):
        assert run(function, [[THE, A, B, OF, C]], 2) == ([[of([THE, A, B])]], 0)

    def test_chains_end_with_their_document(self, function):
        assert run(function, [[THE, A], [B, THE, C], [OF, D, A]], 2)[0][2] == [of([OF, D, A])]
        assert run(function, [[THE, A], [B, THE, C], [OF, D, A]], 2)[1] == 2

    def test_a_document_without_spots_has_shingles(self, function):
        rows = [[A, B, C], [THE, OF, THE], [A], [], [THE, A, B]]
        shingled = [[of([A, B]), of([B, C])], [of([THE, OF]), of([OF, THE])], [of([A])], [], [of([THE, A, B])]]
        assert run(function, rows, 2) == (shingled, 3)

    def test_without_any_stop_words_all_documents_have_shingles(self, function):
        rows = [[THE, A, B], [], [C]]
        assert run(function, rows, 2, ()) == ([[of([THE, A]), of([A, B])], [], [of([C])]], 2)

    def test_repeats_stay_in_text_order(self, function):
        assert run(function, [[THE, A, OF, A, THE, A]], 1) == ([[of([THE, A]), of([OF, A]), of([THE, A])]], 0)


@settings(max_examples=fewer(100), deadline=None)
@given(st.lists(st.sampled_from([THE, OF, A, B, C]), max_size=30), st.integers(1, 4))
def test_what_is_put_before_and_after_a_text_adds_no_spot_unless_it_has_stop_words(words, c):
    """Headlines and captions: spots of the text stay, and only chains at its end may be completed."""
    (alone,), _ = run(spots.cpu, [words], c)
    (within,), _ = run(spots.cpu, [[D, C, D, *words, D, A, D, B]], c)
    stops = sum(word in (THE, OF) for word in words)
    if stops:
        assert len(within) == stops  # four words follow, so that no chain is cut off
        if len(alone) and not run(spots.cpu, [words], c)[1]:
            assert within[: len(alone)] == alone


@settings(max_examples=fewer(100), deadline=None)
@given(st.lists(st.lists(st.sampled_from([A, B, C]), max_size=12), max_size=6), st.integers(1, 4))
def test_shingles_of_documents_without_spots_are_those_of_the_kernel_of_shingles(rows, w):
    tokens = Ragged.from_rows(rows, np.uint64)
    values, offsets = shingles.reference(tokens.values, tokens.offsets, w, "set", Q, Q)
    found, found_offsets, without = spots.cpu(tokens.values, tokens.offsets, np.array([THE, OF], np.uint64), w, Q)
    assert (found.tolist(), found_offsets.tolist()) == (values.tolist(), offsets.tolist())
    assert without == sum(map(bool, rows))


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 300])
def test_stop_words_of_equal_low_bits_are_all_found(number):
    """The table of stop words is by their lowest bits: here all have the same."""
    stops = (np.arange(number, dtype=np.uint64) << np.uint64(32)) + np.uint64(7)
    tokens = np.concatenate([stops, stops + np.uint64(1 << 24), stops + np.uint64(1)])
    row = np.append(tokens, np.uint64(5))
    for function in (spots.reference, spots.cpu):
        values, _, without = function(row, np.array([0, len(row)]), stops, 1, Q)
        assert (len(values), without) == (number, 0)
