"""Repeated windows on a GPU, also those whose hashes clash, and removed ones, whatever rounds decide and the host."""

import numpy as np
import pytest
from agreement import assert_same, on_host

from neardup_gpu.kernels import removals, repeats

pytestmark = pytest.mark.launches


@pytest.mark.parametrize("factor", [0, 1])
@pytest.mark.parametrize("length", [1, 3, 17])
def test_hashes_that_clash(length, factor, monkeypatch):
    """By factor 0 a hash is that of the last token alone, by 1 that of the tokens in any order."""
    monkeypatch.setattr(repeats, "FACTOR", factor)
    tokens = np.random.default_rng(length).integers(0, 2, 250, np.uint64)
    tokens[150:200] = tokens[20:70]
    given = tokens, np.array([3, 3, 60, 80, 82, 250]), length, 1
    assert repeats.reference(*given)[2].sum() > 20
    assert_same(repeats.reference(*given), on_host(repeats.gpu(*given)))


def check(windows, copies=1):
    """Compare the sources of windows of two tokens, each a place and a class, with those of the definition."""
    places, classes = np.array(sorted(windows)).T.copy()
    given = (places, classes, np.ones(len(places), np.int64)), 2, copies, 0
    assert_same(removals.reference(*given), on_host(removals.gpu(*given)))


def chain(number):
    """Return windows of which each decides about the next: the second of a class overlaps the first of the next one."""
    return [(3 * i + second, i) for i in range(number) for second in (0, 2)]


def test_the_first_source_counts_though_a_later_one_is_known_before():
    """The window at 6 is whole, which shows when that at 5 is kept; the windows at 7 and 9 are decided before."""
    check([*chain(2), (6, 2), (7, 2), (9, 2)])


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("length", [removals._ROUNDS - 2, removals._ROUNDS + 9])
def test_a_long_chain_is_finished_on_the_host(length, copies, monkeypatch):
    finished, on_the_host = [], removals.cpu
    monkeypatch.setattr(removals, "cpu", lambda *given: finished.append(given) or on_the_host(*given))
    check(chain(length), copies)
    assert len(finished) == (copies == 1 and length > removals._ROUNDS)
