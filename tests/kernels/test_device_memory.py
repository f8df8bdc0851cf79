"""Memory that jobs on a GPU take: a pool of the job's own, whatever allocator CuPy has; slabs kept between jobs.

CuPy is stood for, as its pools ask the device which one is current; tests/gpu/test_cupy_calls.py looks at the real one.
"""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from neardup_gpu.engine import gpu as engine
from neardup_gpu.errors import ParameterError
from neardup_gpu.kernels import _launch as launch


class Pool:
    """As CuPy's `MemoryPool`: keeps what is freed, never holds more than its limit."""

    def __init__(self, allocator=None):
        self.allocator, self.limit, self.held, self.kept = allocator or (lambda size: ("cuda", size)), 0, 0, []

    def set_limit(self, size):
        self.limit = size

    def get_limit(self):
        return self.limit

    def used_bytes(self):
        return self.held

    def free_bytes(self):
        return sum(size for _, size in self.kept)

    def total_bytes(self):
        return self.held + self.free_bytes()

    def free_all_blocks(self):
        self.kept.clear()

    def malloc(self, size):
        if self.limit and self.total_bytes() + size > self.limit:
            raise MemoryError(size)
        block = self.allocator(size)
        self.held += size
        return block

    def free(self, block):
        self.held -= block[1]
        self.kept.append(block)


@pytest.fixture
def cupy(monkeypatch):
    default, current = Pool(), []

    @contextlib.contextmanager
    def using(allocator):
        current.append(allocator)
        yield
        current.pop()

    runtime = SimpleNamespace(free=lambda pointer: None, memGetInfo=lambda: (1000, 4000))
    cuda = SimpleNamespace(
        MemoryPool=Pool,
        get_allocator=lambda: current[-1] if current else default.malloc,
        using_allocator=using,
        runtime=runtime,
    )
    module = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: default, use=current.append)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(launch, "simulated", lambda: False)
    monkeypatch.setattr("numba.cuda.get_current_device", lambda: SimpleNamespace(id=0))
    return module


def rmm(size):
    """An allocator of another library's, without a bound."""
    return "rmm", size


def test_a_job_has_a_bound_and_leaves_none(cupy):
    assert launch.memory_pool() is cupy.get_default_memory_pool()
    with launch.job_pool(100) as pool:
        assert launch.memory_pool() is pool is not cupy.get_default_memory_pool()
        assert cupy.cuda.get_allocator()(60) == ("cuda", 60)
        with pytest.raises(MemoryError):
            cupy.cuda.get_allocator()(60)
        assert launch.most_rows(4) == 5, "half of the 40 bytes that are left"
    assert launch.memory_pool() is cupy.get_default_memory_pool()
    assert cupy.get_default_memory_pool().limit == 0
    assert cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc


def test_the_bound_holds_whatever_allocator_cupy_has(cupy):
    cupy.use(rmm)
    with launch.job_pool(2000):
        allocate = cupy.cuda.get_allocator()
        assert allocate(1500) == ("rmm", 1500), "more than the device says it has free: RMM holds it"
        with pytest.raises(MemoryError):
            allocate(501)
        assert launch.most_rows(5) == 50
    assert cupy.cuda.get_allocator() is rmm


def test_what_the_pool_keeps_goes_back_where_theirs_has_no_memory(cupy):
    given = []

    def small(size):
        if size + sum(block for _, block in pool.kept) > 100:
            raise MemoryError(size)
        given.append(size)
        return "theirs", size

    cupy.use(small)
    with launch.job_pool(1000) as pool:
        pool.free(cupy.cuda.get_allocator()(80))
        assert cupy.cuda.get_allocator()(90) == ("theirs", 90)
        assert given == [80, 90]
        with pytest.raises(MemoryError):
            cupy.cuda.get_allocator()(101)


@pytest.mark.parametrize(
    ("wanted", "theirs", "limit", "found"),
    [
        (None, False, 0, 800),
        (700, False, 0, 700),
        (1500, False, 0, None),
        (None, False, 300, 300),
        (700, False, 300, 300),
        (None, True, 0, 800),
        (1500, True, 0, 1500),
        (5000, True, 0, None),
    ],
)
def test_memory_of_a_job(cupy, wanted, theirs, limit, found):
    cupy.get_default_memory_pool().set_limit(limit)
    if theirs:
        cupy.use(rmm)
    with contextlib.ExitStack() as stack:
        if found is None:
            stack.enter_context(pytest.raises(ParameterError, match="are free on device 0; ask for less"))
        with engine._limited(SimpleNamespace(id=0), wanted) as memory:
            assert memory == found
            with pytest.raises(MemoryError):
                cupy.cuda.get_allocator()(memory + 1)
            assert cupy.cuda.get_allocator()(memory)[0] == ("rmm" if theirs else "cuda")
    assert cupy.get_default_memory_pool().limit == limit


def test_slabs_are_kept_for_the_next_job(monkeypatch):
    made = []
    monkeypatch.setattr(launch, "simulated", lambda: True)
    monkeypatch.setattr(launch, "SLABS", launch._Slabs())
    monkeypatch.setattr(launch, "_page_locked", lambda size: made.append(size) or np.empty(size, np.uint8))
    values, offsets = np.arange(250, dtype=np.uint8), np.array([5, 90, 240])
    for _ in range(3):
        with launch.Staging(2) as staging:
            for _, (text, numbers) in staging.staged([([values], offsets)] * 5, lambda batch: batch):
                assert bytes(text[:235]) == bytes(values[5:240]) and numbers.tolist() == [0, 85, 235]
    assert len(made) == 2 and made == [made[0]] * 2


def test_few_slabs_are_kept(monkeypatch):
    slabs = launch._Slabs()
    monkeypatch.setattr(launch._Slabs, "MOST", 100)
    monkeypatch.setattr(launch, "simulated", lambda: True)  # CuPy has nothing to give back
    for size in (64, 16, 32):
        slabs.give(np.empty(size, np.uint8))
    assert [len(slab) for slab in slabs._free] == [16, 32], "64 more would be too many"
    assert len(slabs.take(20)) == 32
    assert len(slabs.take(20)) == 20, "one of 16 is too small"
    assert len(slabs.take(5)) == 5, "one of 16 is more than twice as large"
    assert [len(slab) for slab in slabs._free] == [16]
