"""The host as a place to run: pieces side by side, in order, and arrays that grow and shrink where they lie."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from neardup_gpu.engine import threads
from neardup_gpu.engine.arrays import MOVED, Stack, some_rows
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.engine.threads import SIDE_BY_SIDE, on_threads
from neardup_gpu.kernels._cpu import most_threads, num_threads
from neardup_gpu.kernels._turn import turn

RUNTIME = HostRuntime("cpu")


@pytest.fixture
def two_threads():
    if most_threads() < 2:
        pytest.skip("one processor")
    with on_threads(2):
        yield


def test_results_come_in_the_order_of_pieces(two_threads):
    def late(piece: int) -> tuple[int, int]:
        time.sleep(0.02 if piece % 3 == 0 else 0)
        return piece, num_threads()

    found = list(RUNTIME.map(late, range(10)))
    assert [piece for piece, _ in found] == list(range(10))
    assert {threads for _, threads in found} == {1}  # each has its share


def test_pieces_are_computed_side_by_side(two_threads):
    both = threading.Barrier(2, timeout=20)
    assert list(RUNTIME.map(lambda piece: both.wait() >= 0, range(4))) == [True] * 4


def test_a_thread_without_a_piece_has_no_turn_to_take_the_lock(two_threads):
    """Others would wait for it, and it may sleep for long."""

    def takes_the_turn(piece: int) -> None:
        time.sleep(0.02)  # the caller waits already
        turn[0] = 12345

    list(RUNTIME.map(takes_the_turn, range(6)))
    assert turn[0] == 0


def test_few_pieces_share_all_threads_and_many_have_one_each(monkeypatch):
    """No more threads are taken together than there are."""
    monkeypatch.setattr(threads, "most_threads", lambda: 16)
    lock, running, most, shares = threading.Lock(), 0, 0, []

    def count(piece: int) -> None:
        nonlocal running, most
        with lock:
            running += num_threads()
            most = max(most, running)
            shares.append(num_threads())
        time.sleep(0.02)
        with lock:
            running -= num_threads()

    with on_threads(16):
        list(RUNTIME.map(count, range(3)))
        assert sorted(shares) == [2, 4, 8] and most == 14
        shares.clear()
        list(RUNTIME.map(count, range(100)))
    assert most == 16 and shares[:5] == [8, 4, 2, 1, 1] and shares[20:80] == [1] * 60


def test_one_piece_has_all_threads(two_threads):
    assert list(RUNTIME.map(lambda piece: num_threads(), [0])) == [2]


def test_one_thread_takes_one_piece_after_another():
    with on_threads(1):
        here = threading.get_ident()
        assert list(RUNTIME.map(lambda piece: threading.get_ident(), range(5))) == [here] * 5


def test_few_pieces_are_taken_ahead_of_those_that_are_wanted(two_threads):
    taken: list[int] = []
    results = RUNTIME.map(lambda piece: piece, (taken.append(piece) or piece for piece in range(100)))
    next(results)
    results.close()
    assert len(taken) <= SIDE_BY_SIDE + 1


@pytest.mark.parametrize("where", ["pieces", "function"])
def test_an_error_ends_the_work(two_threads, where):
    def pieces():
        yield from range(5)
        if where == "pieces":
            raise KeyError("a piece")
        yield from range(5, 100)

    done: list[int] = []

    def run(piece: int) -> int:
        if where == "function" and piece == 5:
            raise KeyError("a piece")
        done.append(piece)
        return piece

    with pytest.raises(KeyError, match="a piece"):
        list(RUNTIME.map(run, pieces()))
    assert set(range(5)) - set(done) == set() or where == "pieces"
    assert max(done) < 20


@pytest.mark.parametrize("expected", [None, 0, 7, 1000, 1 << 58])
@pytest.mark.parametrize("width", [0, 3])
def test_a_stack_has_all_rows(expected, width):
    parts = [np.arange(n * max(1, width), dtype=np.uint64).reshape(-1, *[width] * bool(width)) for n in (5, 0, 1, 200)]
    stack = Stack()
    for part in parts:
        stack.append(part, expected)
    assert len(stack) == 206
    rows = stack.take(np.uint64, width)
    np.testing.assert_array_equal(rows, np.concatenate(parts))
    assert rows.base is None and len(stack) == 0 and stack.take(np.uint64, width).shape == (0, width)[: 1 + bool(width)]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("chosen", ["all", "most", "none", "backwards", "repeated"])
def test_some_rows_of_an_array(chosen, last):
    number = 3 * MOVED + 5
    array = np.arange(2 * number).reshape(-1, 2)
    rows = {
        "all": np.arange(number),
        "most": np.flatnonzero(np.arange(number) % 7),
        "none": np.arange(0),
        "backwards": np.arange(number)[::-1],
        "repeated": np.zeros(number, np.int64),
    }[chosen]
    expected, before = array[rows], array.copy()
    found = some_rows(array, rows, last=last)
    np.testing.assert_array_equal(found, expected)
    assert np.shares_memory(found, array) == (chosen == "all" or (last and chosen == "most"))
    if not last:
        np.testing.assert_array_equal(array, before)
