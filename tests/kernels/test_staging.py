"""Text reaches the device whole, whatever the order in which the device does what it was asked to do.

The device here is one that does as little as it may, as late as it may: copies and kernels wait in their streams until
something is waited for, and then streams take their turns at random. Memory that is given back is given out again.
"""

import ctypes
import random
import sys
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from neardup_gpu.kernels import _launch as launch


class Device:
    """Streams of tasks, done in order within a stream and in any order between them, if events allow."""

    def __init__(self, seed, eager):
        self.random, self.eager, self.lock = random.Random(seed), eager, threading.RLock()
        self.streams, self.free, self.pinned = [], [], []

    def step(self):
        """Do one task that may be done; False if there is none."""
        with self.lock:
            able = [stream for stream in self.streams if stream.tasks and stream.tasks[0][0]()]
            if able:
                self.random.choice(able).tasks.pop(0)[1]()
            return bool(able)

    def asked(self):
        """After anything was asked of it: do something, or not yet."""
        while self.random.random() < self.eager and self.step():
            pass

    def until(self, done):
        while not done():
            if not self.step() and not done():
                raise AssertionError("the device waits for ever")

    def allocate(self, size):
        with self.lock:
            for i, memory in enumerate(self.free):
                if len(memory) >= size:
                    return Array(self, self.free.pop(i), 0, size)
            return Array(self, np.full(size, 0xA5, np.uint8), 0, size)


class Stream:
    def __init__(self, device):
        self.device, self.tasks = device, []
        device.streams.append(self)

    def add(self, task, able=lambda: True):
        with self.device.lock:
            self.tasks.append((able, task))
        self.device.asked()

    def wait_event(self, event):
        mark = event.mark
        self.add(lambda: None, lambda: mark is None or mark["done"])

    def synchronize(self):
        self.device.until(lambda: not self.tasks)


class Event:
    def __init__(self, device):
        self.device, self.mark = device, None

    def record(self, stream):
        mark = self.mark = {"done": False}
        stream.add(lambda: mark.update(done=True))

    def synchronize(self):
        if (mark := self.mark) is not None:
            self.device.until(lambda: mark["done"])


class Array:
    """Device memory: its contents are for tasks alone."""

    def __init__(self, device, memory, start, stop, owner=None):
        self.device, self.memory, self.start, self.stop, self.owner = device, memory, start, stop, owner
        if owner is None:
            weakref.finalize(self, device.free.append, memory)

    @property
    def data(self):
        return self

    def __len__(self):
        return self.stop - self.start

    def __getitem__(self, part):
        start, stop, _ = part.indices(len(self))
        return Array(self.device, self.memory, self.start + start, self.start + stop, self)

    def values(self):
        return self.memory[self.start : self.stop]

    def view(self, dtype):
        assert dtype is np.int64 and self.start % 8 == 0
        return self

    def copy_from_host_async(self, pointer, size, stream):
        self._copy(self.memory[self.start : self.start + size], (ctypes.c_uint8 * size).from_address(pointer), stream)

    def copy_to_host_async(self, pointer, size, stream):
        target = np.frombuffer((ctypes.c_uint8 * size).from_address(pointer), np.uint8)
        self._copy(target, self.memory[self.start : self.start + size], stream)

    def _copy(self, target, source, stream):
        def task():
            target[:] = source

        stream.add(task)

    @property
    def nbytes(self):
        return len(self)

    dtype = np.dtype(np.uint8)

    @property
    def shape(self):
        return (len(self),)


@pytest.fixture
def device(request, monkeypatch):
    seed, eager = request.param
    device = Device(seed, eager)
    compute = Stream(device)

    def pinned(size, dtype):
        device.pinned.append(np.full(size, 0x5A, dtype))
        return device.pinned[-1]

    cuda = SimpleNamespace(
        get_current_stream=lambda: compute,
        Stream=lambda non_blocking: Stream(device),
        Event=lambda disable_timing, block=False: Event(device),
        Device=lambda: SimpleNamespace(use=lambda: None),
        runtime=SimpleNamespace(getDevice=lambda: 0),
    )
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    cupy = SimpleNamespace(cuda=cuda, get_default_pinned_memory_pool=lambda: pool, ascontiguousarray=lambda x: x)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(launch, "SLABS", launch._Slabs())
    returning = Stream(device)
    monkeypatch.setattr(launch, "_returning", lambda number: returning)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=pinned))
    monkeypatch.setattr(launch, "simulated", lambda: False)
    monkeypatch.setattr(launch, "namespace", lambda: SimpleNamespace(empty=lambda size, dtype: device.allocate(size)))
    device.compute = compute
    return device


def batches(seed, number=30, largest=5000):
    """(values, offsets): some empty, some that begin after 0, growing and shrinking."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        values = generator.integers(0, 256, generator.integers(0, largest), np.uint8)
        cuts = np.sort(generator.integers(0, len(values) + 1, generator.integers(1, 20)))
        found.append((values, cuts.astype(np.int64)))
    return found


CASES = [(seed, eager) for seed in range(6) for eager in (0.0, 0.3, 0.9)]


def in_parts(batch):
    """The text in three arrays, one of them empty; offsets may begin after 0."""
    values, offsets = batch
    return [values[: len(values) // 3], values[:0], values[len(values) // 3 :]], offsets


@pytest.mark.parametrize("device", CASES, indirect=True, ids=str)
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_kernels_read_what_was_staged(device, slots, monkeypatch):
    read = []

    # Kernels know addresses: that they wait keeps no memory from being given back.
    def kernel(text, numbers):
        def run():
            offsets = numbers.view(np.int64).tolist()
            assert len(text) >= offsets[-1] + launch.SLACK
            read.append((bytes(text[: offsets[-1]]), offsets))

        return run

    def other_kernel(size):
        """With memory of its own, which is given back while the kernel waits."""
        memory = device.allocate(size).memory
        device.compute.add(lambda: memory.fill(0xEE))

    stage = launch.Staging._stage
    is_short = lambda: device.random.random() < 0.2  # of memory  # noqa: E731
    monkeypatch.setattr(launch.Staging, "_stage", lambda *each: None if is_short() else stage(*each))
    given = batches(device.random.randrange(1000))
    for _ in range(slots):
        other_kernel(1 << 13)
    with launch.Staging(slots) as staging:
        late = []  # with three slots kernels of a batch may come after those of the next one, but no later
        for (values, cuts), staged in staging.staged(given, in_parts):
            other_kernel(device.random.choice([1 << 8, 1 << 12, 1 << 14]))
            text, offsets = staged or (None, None)
            of_host = bytes(values[cuts[0] : cuts[-1]]), (cuts - cuts[0]).tolist()
            run = partial(read.append, of_host) if staged is None else kernel(text.values(), offsets.values())
            late.append(run)
            for run in late[: len(late) - (slots > 2)]:
                device.compute.add(run)
            del late[: len(late) - (slots > 2)]
            if device.random.random() < 0.3:
                device.compute.synchronize()
            del text, offsets, staged
        for run in late:
            device.compute.add(run)
    assert not any(stream.tasks for stream in device.streams)
    expected = [(bytes(values[cuts[0] : cuts[-1]]), (cuts - cuts[0]).tolist()) for values, cuts in given]
    assert read == expected


@pytest.mark.parametrize("device", [(1, 0.3)], indirect=True)
def test_without_memory_the_text_stays_on_the_host(device, monkeypatch):
    allocate = device.allocate

    def limited(size):
        if size > 4096:
            raise MemoryError(size)
        return allocate(size)

    monkeypatch.setattr(device, "allocate", limited)
    given = batches(5)
    with launch.Staging() as staging:
        staged = [(batch, text is None) for batch, text in staging.staged(given, in_parts)]
    assert [batch for batch, _ in staged] == given
    needed = [-(-int(cuts[-1] - cuts[0]) // 256) * 256 + launch.SLACK + 8 * len(cuts) for _, cuts in given]
    assert [on_host for _, on_host in staged] == [size > 4096 for size in needed]
    assert {on_host for _, on_host in staged} == {True, False}


@pytest.mark.parametrize("device", [(1, 0.3)], indirect=True)
def test_what_goes_wrong_in_the_other_thread_is_raised_here(device, monkeypatch):
    monkeypatch.setattr(launch.Staging, "fill", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError), launch.Staging() as staging:
        list(staging.staged(batches(1), in_parts))


@pytest.mark.parametrize("device", CASES, indirect=True, ids=str)
def test_values_come_back_as_they_were(device):
    """Though their memory and their slab are used again, and some are wanted by nobody."""
    waiting, number, taken, slabs = [], 40, [], []
    for size in np.random.default_rng(device.random.randrange(1000)).integers(1, 3000, number).tolist():
        array, value = device.allocate(size), len(taken) + len(waiting) + 1
        memory = array.values()
        device.compute.add(lambda memory=memory, value=value: memory.fill(value))
        waiting.append((value, size, launch.Sent(array)))
        del array
        other = device.allocate(size).values()
        device.compute.add(lambda other=other: other.fill(0xEE))
        if device.random.random() < 0.2:
            del waiting[-1]
            slabs.append(launch.SLABS.take(launch._slab_size(size)))
            slabs[-1].fill(7)
        while len(waiting) > 2:
            value, size, sent = waiting.pop(0)
            taken.append(np.array_equal(sent.get(), np.full(size, value, np.uint8)))
            del sent
    device.streams[1].synchronize()
    assert all(taken) and len(taken) > number // 2
    assert all((slab == 7).all() for slab in slabs), "who takes a slab has it alone"
    assert len(device.pinned) < 20, "slabs are used again"


def test_large_batches_are_filled_by_several_threads():
    text = np.random.default_rng(1).integers(0, 256, 3 * launch._PART + 7, np.uint8)
    with Filling() as staging:
        target = np.zeros_like(text)
        staging.fill(target, [text[:5], text[5:]], 0)
        np.testing.assert_array_equal(target, text)
        staging.fill(target[:-9], [text[:2], text[2 : launch._PART], text[launch._PART :]], 9)
    np.testing.assert_array_equal(target[:-9], text[9:])


class Filling(launch.Staging):
    """Only what `fill` needs."""

    def __init__(self):
        self._filling = launch.ThreadPoolExecutor(2)

    def __exit__(self, *_):
        self._filling.shutdown()
