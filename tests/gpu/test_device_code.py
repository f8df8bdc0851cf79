"""Every `gpu` function gives the reference's answer by its own device code, run on the CPU (`hostir`).

Threads take their turns in lane, reversed and random order: a kernel with a race gives another answer in one of them.
"""

from contextlib import contextmanager
from functools import cache
from unittest import mock

import numpy as np
import pytest
from grids import fewer, some
from hypothesis import HealthCheck, given, settings, strategies as st

pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
import kernel_list
from agreement import KERNELS, assert_same, on_host
from cupy_calls import on_device
from fixed_cases import CASES, each_way, expected, fixed, resident
from strategies import SEEDS, inputs

from neardup_gpu.kernels import _matches, _near, _sort
from neardup_gpu.kernels._cpu import Function

GPU = [kernel for kernel, module in KERNELS.items() if hasattr(module, "gpu")]
IN_ORDERS = [
    (kernel, number, order)
    for kernel, number in CASES
    for turn, order in enumerate(hostir.ORDERS)
    if turn == 0 or number == 0 or turn == 1 + number % (len(hostir.ORDERS) - 1)
]
"""The first case of a kernel in all orders, others in lane and in one more."""


def leaves(value):
    """Yield the values of a tuple, and of the tuples in it."""
    if not isinstance(value, tuple):
        yield value
    else:
        for each in value:
            yield from leaves(each)


@contextmanager
def declared_calls_alone():
    """Let Python call compiled functions by their declared signatures only, which come compiled.

    For other arguments, a job would wait for a compiler.
    """

    def find(function, described):
        found = find_any(function, described)
        assert found is not function.original, f"{function.name} has no signature for {described}"
        return found

    find_any = Function._find
    with mock.patch.object(Function, "_find", find):
        yield


def run(kernel, arguments, order, seed=0, is_resident=False):
    """The answer of the `gpu` function, and the kernels that it launched; its arguments must be as they were."""
    before = [np.copy(a) if isinstance(a, np.ndarray) else a for a in leaves(arguments)]
    given = resident(kernel, arguments, on_device) if is_resident else arguments
    with hostir.device(order, seed) as launched, declared_calls_alone():
        result = on_host(KERNELS[kernel].gpu(*given))
    for one, other in zip(before, leaves(arguments), strict=True):
        assert np.array_equal(one, other), f"{kernel} changed its arguments"
    return result, launched


@cache
def run_fixed(kernel, number, order):
    """Run a fixed case and compare; return the kernels that it launched."""
    launched = set()
    for arguments in each_way(kernel, number):
        result, some = run(kernel, arguments, order, seed=number, is_resident=True)
        assert_same(expected(kernel, number), result)
        launched |= set(some)
    return launched


@pytest.mark.parametrize("order", hostir.ORDERS)
@pytest.mark.parametrize("kernel", GPU)
@settings(
    max_examples=fewer(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_agreement(kernel, order, data):
    arguments = data.draw(inputs(kernel))
    result, _ = run(kernel, arguments, order, data.draw(SEEDS), data.draw(st.booleans()))
    assert_same(KERNELS[kernel].reference(*arguments), result)


@pytest.mark.parametrize(("kernel", "number", "order"), IN_ORDERS)
def test_fixed_cases(kernel, number, order):
    run_fixed(kernel, number, order)


@pytest.mark.parametrize(
    "kernel", some(["hamming", "hamming_probe", "huffman_probe", "pairtables"], ["hamming", "pairtables"])
)
def test_pairs_that_do_not_fit_leave_the_device(kernel, monkeypatch):
    """Few pairs are written at a time, and what was found waits in host memory; both are as many as memory takes."""
    monkeypatch.setattr(_near, "most_rows", lambda row_bytes: 7)
    monkeypatch.setattr(_matches, "most_rows", lambda row_bytes: 7)
    left, leave = [], _matches.DistinctPairs._leave_device
    monkeypatch.setattr(_matches.DistinctPairs, "_leave_device", lambda found: (left.append(found), leave(found)))
    for number in range(2):
        result, _ = run(kernel, fixed(kernel, number), "lane")
        assert_same(expected(kernel, number), result)
    assert left


@pytest.mark.parametrize("num_bits", [0, 7, 52, 64])
@pytest.mark.parametrize("offsets", [None, [3, 3, 700, 701, 701, 3003, 3003]])
def test_keys_that_agree_in_what_there_is_room_for(num_bits, offsets):
    """Also those of which some are equal, within rows and in neighbouring ones; ties stay as they are."""
    random = np.random.default_rng(num_bits)
    keys = random.integers(0, 3, 3000, np.uint64) << np.uint64(60) | random.integers(0, 2000, 3000, np.uint64)
    keys[random.random(3000) < 0.3] <<= np.uint64(12)
    with hostir.device("random", num_bits):
        given = None if offsets is None else on_device(np.array(offsets))
        order, begins = map(on_host, _sort.order_of(on_device(keys), num_bits, given))
    rows = np.zeros(3000, np.int64) if offsets is None else np.repeat(np.arange(6), np.diff(offsets))
    kept = keys & np.uint64(2**64 - 2 ** (64 - num_bits))
    expected = np.lexsort((kept, rows))
    same = (rows[expected][1:] == rows[expected][:-1]) & (kept[expected][1:] == kept[expected][:-1])
    assert_same(expected.astype(np.uint32), order)
    assert_same(np.append(True, ~same), begins)


def test_fixed_cases_launch_every_kernel():
    launched = {name for kernel, number in CASES for name in run_fixed(kernel, number, "lane")}
    assert set(kernel_list.all_kernels()) == launched


def test_every_factory_of_kernels_is_listed():
    assert kernel_list.factories() == set(kernel_list.FACTORIES)
