"""Work done ahead: order, errors, bounds, and that nothing is left running or open."""

import threading
import time
from functools import partial

import pytest

from neardup_gpu.documents.ahead import AHEAD_BYTES, Step, StoppedError, ahead, check_stopped, closing, in_order
from neardup_gpu.engine.processors import own_threads, with_threads

MIB = 1 << 20


def steps(number, results=3, size=0, make=None):
    """So many steps, each of some results: (step, result)."""
    for i in range(number):
        yield Step(partial(make or plain, i, results), size)


def plain(i, results):
    for j in range(results):
        time.sleep((i * 7 + j * 3) % 5 / 2000)  # so that later steps are ready before earlier ones
        yield i, j


@pytest.fixture(autouse=True)
def no_threads_left():
    yield
    assert "neardup-ahead" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@pytest.mark.parametrize("size", [0, MIB, 20 * MIB, 1000 * MIB])
def test_results_come_in_order(threads, size):
    found = list(in_order(steps(20, size=size), lambda _: size, threads))
    assert found == [(i, j) for i in range(20) for j in range(3)]


@pytest.mark.parametrize("threads", [1, 4])
def test_no_steps_and_steps_without_results(threads):
    assert list(in_order(iter(()), len, threads)) == []
    assert list(in_order([Step(tuple)] * 5, len, threads)) == []
    assert list(in_order([Step(tuple), Step(lambda: [b"x"]), Step(tuple)], len, threads)) == [b"x"]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("where", ["at once", "in a step", "between steps"])
def test_all_that_comes_before_an_error_is_given_first(threads, where):
    def failing(i, results):
        if i == 7 and where == "at once":
            raise ValueError("step 7")
        yield from plain(i, results)
        if i == 7 and where == "in a step":
            raise ValueError("step 7")
        if i == 9:
            raise ValueError("step 9, which is never seen")

    def cut():
        for i, step in enumerate(steps(20, make=failing)):
            if i == 8 and where == "between steps":
                raise ValueError("step 7")
            yield step

    found = []
    with pytest.raises(ValueError, match=r"^step 7$"):
        for each in in_order(cut(), lambda _: 1, threads):
            found.append(each)
    assert found == [(i, j) for i in range(7 if where == "at once" else 8) for j in range(3)]


@pytest.mark.parametrize("threads", [1, 3])
def test_stopping_early_closes_all_that_was_begun(threads):
    opened, closed = [], []

    def watched(i, results):
        opened.append(i)
        try:
            yield from plain(i, results)
        finally:
            closed.append(i)

    def cut():
        try:
            yield from steps(100, make=watched)
        finally:
            closed.append("steps")

    with closing(in_order(cut(), lambda _: AHEAD_BYTES, threads)) as items:
        assert next(items) == (0, 0)
    assert sorted(map(str, closed)) == sorted(map(str, [*opened, "steps"]))
    assert len(opened) < 10


def test_an_interrupt_of_who_takes_results_ends_all_threads():
    with pytest.raises(KeyboardInterrupt):
        for i, _ in in_order(steps(1000), lambda _: 1, 4):
            if i == 3:
                raise KeyboardInterrupt


@pytest.mark.parametrize("threads", [2, 4])
def test_who_is_slow_is_not_run_ahead_of(threads):
    made = []

    def large(i, results):
        for j in range(results):
            made.append((i, j))
            yield bytearray(MIB)

    taken = 0
    most = AHEAD_BYTES // MIB * threads + 1 + threads  # what waits, one of the first step, and what each thread holds
    for _ in in_order(steps(40, 5, make=large), len, threads):
        taken += 1
        if taken % 50 == 1:
            time.sleep(0.05)
        assert len(made) - taken <= most
    assert taken == 200
    assert len(made) == 200


def test_a_result_beyond_the_bound_waits_for_its_turn():
    made = []

    def huge(i, results):
        made.append(i)
        yield i

    items = in_order(steps(10, make=huge), lambda _: 10 * AHEAD_BYTES, 4)
    with closing(items):
        assert next(items) == 0
        time.sleep(0.05)
        assert len(made) <= 1 + 4
        assert list(items) == list(range(1, 10))


def test_a_large_step_is_made_alone():
    at_once, most = [], []

    def counted(i, results):
        at_once.append(i)
        most.append(len(at_once))
        time.sleep(0.002)
        yield i
        at_once.remove(i)

    assert list(in_order(steps(20, size=10 * AHEAD_BYTES, make=counted), lambda _: 0, 4)) == list(range(20))
    assert max(most) == 1
    most.clear()
    assert list(in_order(steps(20, size=1, make=counted), lambda _: 0, 4)) == list(range(20))
    assert max(most) > 1


def test_one_item_is_made_ahead():
    made = []

    def items():
        for i in range(10):
            made.append(i)
            yield i

    following = ahead(items())
    with closing(following):
        assert next(following) == 0
        time.sleep(0.05)
        assert made == [0, 1, 2]  # one waits, and one is being handed over
        assert list(following) == list(range(1, 10))


def test_one_thread_works_in_that_of_the_caller():
    def who(i, results):
        yield threading.current_thread()

    assert set(in_order(steps(5, make=who), lambda _: 0, 1)) == {threading.current_thread()}
    with with_threads(1):
        assert set(in_order(steps(5, make=who), lambda _: 0)) == {threading.current_thread()}


def test_threads_share_those_of_the_job():
    def inner(i, results):
        yield own_threads()
        time.sleep(0.01)

    with with_threads(6):
        assert set(in_order(steps(8, make=inner), lambda _: 0, 3)) == {2}
        assert set(in_order(steps(8, make=inner), lambda _: 0)) == {1}
        assert own_threads() == 6


def test_fewer_threads_than_were_asked_for(monkeypatch):
    start, left = threading.Thread.start, [1]

    def refused(thread):
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(in_order(steps(5, 1), lambda _: 0, 4)) == [(i, 0) for i in range(5)]
    with pytest.raises(RuntimeError, match="can't start"):
        list(in_order(steps(5, 1), lambda _: 0, 4))


def test_items_are_made_ahead_as_far_as_there_is_room():
    made, goes = [], threading.Event()

    def items():
        for size in (3, 4, 5, 1):
            made.append(size)
            if size == 5:
                goes.set()
            yield size

    with closing(ahead(items(), 8, lambda size: size)) as found:
        assert next(found) == 3
        assert goes.wait(60) and made == [3, 4, 5]  # the last of them waits for room
        assert list(found) == [4, 5, 1]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_long_step_ends_when_the_outermost_caller_stops(depth):
    """It asks by `check_stopped`, and gives nothing that anybody waits for."""
    is_begun, is_ended = threading.Event(), threading.Event()

    def long():
        yield 0
        is_begun.set()
        try:
            for _ in range(2000):
                check_stopped()
                time.sleep(0.01)
        except StoppedError:
            is_ended.set()
            raise

    items = long()
    for _ in range(depth):
        items = ahead(items)
    assert next(items) == 0 and is_begun.wait(10)
    begin = time.monotonic()
    items.close()
    assert is_ended.is_set() and time.monotonic() - begin < 5
