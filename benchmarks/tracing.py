"""What a job does on a GPU and when: each kernel and each call of CuPy by CUDA events, and a job's stages by the clock.

These put functions of their own in the place of the project's while they last, so they are for benchmarks alone. In the
simulator, which has no events, the clock stands for them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from neardup_gpu import kernels
from neardup_gpu.documents import Documents
from neardup_gpu.installation.kernel_inputs import kernel_modules
from neardup_gpu.kernels import _compiled, _sort
from neardup_gpu.kernels._launch import Kernel, Staging, namespace, simulated

_HARNESS = Path(__file__).resolve().parent.parent / "tests" / "gpu" / "harness"


def all_kernels() -> dict[str, Kernel]:
    """Every kernel, by its name in tests/gpu/harness/kernel_list.py."""
    if str(_HARNESS) not in sys.path:
        sys.path.append(str(_HARNESS))
    from kernel_list import all_kernels

    return all_kernels()


def kernel_name(kernel: Kernel) -> str:
    """Its name as in tests/gpu/harness/kernel_list.py; its own where that lacks it."""
    if str(_HARNESS) not in sys.path:
        sys.path.append(str(_HARNESS))
    try:
        from kernel_list import name_of

        return name_of(kernel)
    except (ImportError, LookupError):
        return f"{kernel.function.__module__.rpartition('.')[2]}.{kernel.__name__}"


def modules() -> list[Any]:
    """The files of kernels."""
    return [
        value for name, value in sys.modules.items() if name.startswith(f"{kernels.__name__}.") and value is not None
    ]


# ------------------------------------------------------------------------------------------------------- compilation


def expected_usage(chip: str) -> dict[str, dict[str, int]]:
    """What ptxas made of each kernel, by tests/gpu/harness/compiled.json."""
    try:
        return json.loads((_HARNESS / "compiled.json").read_text()).get(chip, {})
    except OSError:
        return {}


ATTRIBUTES = {"most_threads": 0, "shared_bytes": 1, "local_bytes": 3, "registers": 4}
"""What `cuFuncGetAttribute` is asked for, by the driver's numbers."""


@contextmanager
def compiling() -> Iterator[dict[Kernel, float]]:
    """Seconds that each kernel took to be loaded or compiled, of those launched while this lasts."""
    seconds: dict[Kernel, float] = {}
    launch = Kernel.blocks

    def noted(kernel: Kernel, count: int, *arguments: Any) -> None:
        if kernel not in seconds and count > 0:
            start = time.perf_counter()
            if simulated():
                kernel.compiled  # noqa: B018 (compiles)
            else:
                kernel.handle()
            seconds[kernel] = time.perf_counter() - start
        launch(kernel, count, *arguments)

    with mock.patch.object(Kernel, "blocks", noted):
        yield seconds


def usage(kernel: Kernel, seconds: float, expected: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return what the driver says of a kernel that it loaded, and what ptxas had made of it, without numba-cuda."""
    name = kernel_name(kernel)
    found: dict[str, Any] = {"kernel": name, "compile_s": round(seconds, 3)}
    if simulated():
        return found
    from cupy.cuda import driver

    found["came_compiled"] = kernel.__name__ in _compiled.taken
    found |= {field: driver.funcGetAttribute(number, kernel.handle()) for field, number in ATTRIBUTES.items()}
    if name in expected:
        found["expected_registers"] = expected[name]["registers"]
        found["expected_local_bytes"] = expected[name]["stack"]
    return found


# ------------------------------------------------------------------------------------------------------------- events


def mark() -> Any:
    """A moment on the device's current stream."""
    if simulated():
        return time.perf_counter()
    event = namespace().cuda.Event()
    event.record()
    return event


def between(begin: Any, end: Any) -> float:
    """Milliseconds from one moment to another, once both are past."""
    return 1e3 * (end - begin) if simulated() else namespace().cuda.get_elapsed_time(begin, end)


def wait() -> None:
    """Until the device has done all that it was given."""
    if not simulated():
        namespace().cuda.runtime.deviceSynchronize()


class _Noted:
    """The module of array functions, each of whose calls is noted."""

    def __init__(self, note: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._note, self._module = note, namespace()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, type) or not callable(value):
            return value
        return lambda *arguments, **options: self._note(name, lambda: value(*arguments, **options))


@contextmanager
def tracing() -> Iterator[list[tuple[str, Any, Any]]]:
    """(name, begin, end) of each kernel and function of CuPy while this lasts, and of sorts by `_sort.sort_words`;
    other methods and indexing are not seen.

    Between two moments lies also what the host takes to launch, where the device waits for it.
    """
    spans: list[tuple[str, Any, Any]] = []
    launch = Kernel.blocks

    def note(name: str, call: Callable[[], Any]) -> Any:
        begin = mark()
        result = call()
        spans.append((name, begin, mark()))
        return result

    def noted(kernel: Kernel, count: int, *arguments: Any) -> None:
        if count > 0:
            note(kernel_name(kernel), lambda: launch(kernel, count, *arguments))

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Kernel, "blocks", noted))
        sort = _sort.sort_words
        sorting = mock.patch.object(_sort, "sort_words", lambda words: note("sort_words", lambda: sort(words)))
        stack.enter_context(sorting)
        for module in modules():
            if hasattr(module, "namespace") and not module.__name__.endswith("._launch"):
                stack.enter_context(mock.patch.object(module, "namespace", lambda: _Noted(note)))
        yield spans


def by_name(spans: list[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """Calls and milliseconds by name, the longest first. Waits for the device."""
    wait()
    rows: dict[str, dict[str, Any]] = {}
    for name, begin, end in spans:
        row = rows.setdefault(name, {"name": name, "calls": 0, "ms": 0.0})
        row["calls"] += 1
        row["ms"] += between(begin, end)
    for row in rows.values():
        row["ms"] = round(row["ms"], 4)
    return sorted(rows.values(), key=lambda row: -row["ms"])


# ------------------------------------------------------------------------------------------------------------ timeline


class Timeline:
    """When a job read, filled slabs, copied, waited for text, and computed.

    `spans` are (what, first second, last second) by the host's clock; `device` are (what, begin, end) on the device:
    the functions of kernel files on the stream that computes, and "copy" on the one that copies, which begins when its
    slab is full and thus includes waiting until the slab's twin is free.
    """

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.spans: list[tuple[str, float, float]] = []
        self.device: list[tuple[str, Any, Any]] = []
        self.origin: Any = None

    @contextmanager
    def span(self, what: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.spans.append((what, begin - self.start, time.perf_counter() - self.start))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While this lasts, a job is recorded."""
        self.start, self.origin = time.perf_counter(), mark()
        with ExitStack() as stack:
            for name, module in kernel_modules("gpu").items():
                stack.enter_context(mock.patch.object(module, "gpu", self._kernel(name, module.gpu)))
            stack.enter_context(mock.patch.object(Documents, "batches", self._reading(Documents.batches)))
            for method, make in (("use", self._using), ("fill", self._filling), ("copy", self._copying)):
                stack.enter_context(mock.patch.object(Staging, method, make(getattr(Staging, method))))
            yield
        wait()

    def _kernel(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            begin = mark()
            with self.span(name):
                result = run(*arguments, **options)
            self.device.append((name, begin, mark()))
            return result

        return noted

    def _reading(self, batches: Callable[..., Any]) -> Callable[..., Any]:
        def noted(documents: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            items = iter(batches(documents, *arguments, **options))
            while True:
                with self.span("read"):
                    item = next(items, None)
                if item is None:
                    return
                yield item

        return noted

    def _using(self, use: Callable[..., Any]) -> Callable[..., Any]:
        def noted(staging: Staging, item: Any, slot: Any, staged: Any) -> Iterator[Any]:
            with self.span("wait for the slab"):
                if staged is not None:
                    staged.exception()  # `use` raises it
            yield from use(staging, item, slot, staged)

        return noted

    def _filling(self, fill: Callable[..., Any]) -> Callable[..., Any]:
        def noted(staging: Staging, *arguments: Any) -> None:
            with self.span("fill the slab"):
                fill(staging, *arguments)
            staging.full = self._on(staging)  # type: ignore[attr-defined]

        return noted

    def _copying(self, copy: Callable[..., Any]) -> Callable[..., Any]:
        def noted(staging: Staging, *arguments: Any) -> Any:
            with self.span("stage"):
                result = copy(staging, *arguments)
            self.device.append(("copy", staging.full, self._on(staging)))  # type: ignore[attr-defined]
            return result

        return noted

    def _on(self, staging: Staging) -> Any:
        """A moment on the stream that copies."""
        if simulated():
            return time.perf_counter()
        event = namespace().cuda.Event()
        event.record(staging.copying)
        return event

    def intervals(self) -> list[tuple[str, float, float]]:
        """(what, begin, end) on the device, in milliseconds since the recording began."""
        return [(what, between(self.origin, a), between(self.origin, b)) for what, a, b in self.device]

    def described(self) -> dict[str, Any]:
        """Sums by stage, and how much of the copies' time was spent computing as well."""
        intervals = self.intervals()
        computed = merged([(a, b) for what, a, b in intervals if what != "copy"])
        copied = merged([(a, b) for what, a, b in intervals if what == "copy"])
        host: dict[str, float] = {}
        for what, begin, end in self.spans:
            host[what] = host.get(what, 0.0) + end - begin
        device: dict[str, float] = {}
        for what, begin, end in intervals:
            device[what] = device.get(what, 0.0) + end - begin
        both = overlap(computed, copied)
        return {
            "host_s": {what: round(seconds, 4) for what, seconds in sorted(host.items(), key=lambda row: -row[1])},
            "device_ms": {what: round(ms, 3) for what, ms in sorted(device.items(), key=lambda row: -row[1])},
            "computing_ms": round(length(computed), 3),
            "copying_ms": round(length(copied), 3),
            "overlap": None if not copied else round(both / max(1e-9, length(copied)), 3),
            "timeline": [[what, round(a, 3), round(b, 3)] for what, a, b in intervals][:400],
            "host_timeline": [[what, round(a, 4), round(b, 4)] for what, a, b in self.spans][:400],
        }


def merged(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of intervals, in order and apart.

    >>> merged([(3, 4), (0, 1), (1, 2), (3.5, 5)])
    [(0, 2), (3, 5)]
    """
    union: list[tuple[float, float]] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], end)
        else:
            union.append((begin, end))
    return union


def length(union: list[tuple[float, float]]) -> float:
    """What a union of intervals covers."""
    return sum(end - begin for begin, end in union)


def overlap(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> float:
    """What two unions of intervals both cover.

    >>> overlap([(0, 2), (3, 5)], [(1, 4)])
    2
    """
    return length(one) + length(other) - length(merged(one + other))
