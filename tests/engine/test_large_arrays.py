"""Arrays within a bound of memory: which lie in files, what becomes free again, and a disk that is too small."""

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import neardup_gpu as nd
from neardup_gpu.engine import large_arrays
from neardup_gpu.engine.large_arrays import SMALL, MappedArrays, large_arrays_within
from neardup_gpu.errors import OutputError, ParameterError
from neardup_gpu.kernels._cpu import LargeArrays, held, large, large_arrays_by

NUMBER = SMALL // 8 + 1  # of values that are more than a small array


def in_file(array):
    """Whether an array lies in a file that is mapped."""
    return not array.flags.owndata


def test_arrays_beyond_the_bound_are_in_files_until_others_are_free(tmp_path):
    arrays = MappedArrays(8 * NUMBER, tmp_path)
    first = arrays.empty(NUMBER, np.uint64)
    second = arrays.empty(NUMBER, np.uint64)
    assert not in_file(first) and in_file(second)
    second[:] = np.arange(NUMBER)
    assert second.sum() == NUMBER * (NUMBER - 1) // 2 and second.flags.writeable
    part = first[:3]
    del first
    assert in_file(arrays.empty(NUMBER, np.uint64))  # `part` still keeps the first one
    del part
    assert not in_file(arrays.empty(NUMBER, np.uint64))
    assert not in_file(MappedArrays(0, tmp_path).empty(8, np.uint64))  # a small one is in memory, bound or not
    assert not list(tmp_path.iterdir())


def test_arrays_share_files(tmp_path):
    """As many as a process may open would not do: each batch of text has an array."""

    def opened():
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    before, arrays = opened(), MappedArrays(0, tmp_path)
    made = [arrays.empty(NUMBER, np.uint64) for _ in range(3000)]
    for number, array in enumerate(made):
        array[:] = number
    assert opened() - before <= 1
    assert all((array == number).all() for number, array in enumerate(made))
    del made, array, arrays
    assert opened() == before


def test_a_process_leaves_half_of_what_is_not_its_own_to_arrays(tmp_path):
    arrays = MappedArrays.within(large_arrays.LEAST + 16 * NUMBER, tmp_path)
    first = arrays.empty(NUMBER, np.uint64)
    assert not in_file(first) and in_file(arrays.empty(NUMBER, np.uint64))


def test_what_is_held_is_copied_only_if_there_is_no_room(tmp_path):
    arrays, given = MappedArrays(8 * NUMBER, tmp_path), np.arange(NUMBER)
    assert arrays.held(given) is given
    copy = arrays.held(given.copy())
    assert in_file(copy) and np.array_equal(copy, given)


def test_the_rows_of_a_block_are_held_together(tmp_path):
    """A view that is held keeps its whole block in memory, so that it would have to be counted with it."""
    block = np.arange(3 * NUMBER).reshape(3, NUMBER)
    copy = MappedArrays(16 * NUMBER, tmp_path).held(block)
    assert in_file(copy) and np.array_equal(copy, block)

    class Whole(LargeArrays):
        def held(self, array):
            assert array.base is None or array.base.nbytes == array.nbytes
            return array

    texts = {"text": ["to be or not to be that is the question"] * 3}
    with large_arrays_by(Whole()):
        assert nd.substrings(texts, length=6, action="list").counts["passages"] == 2


def test_threads_make_files_one_after_another(tmp_path, monkeypatch):
    arrays, inside, most, make = MappedArrays(0, tmp_path), [], [], MappedArrays._file_for

    def slowly(self, num_bytes):
        inside.append(num_bytes)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()
        return make(self, num_bytes)

    monkeypatch.setattr(MappedArrays, "_file_for", slowly)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: arrays.empty(NUMBER, np.uint64), range(4)))
    assert most == [1]
    for number, array in enumerate(made):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(made))


def test_without_a_bound_arrays_are_those_of_numpy():
    given = np.arange(NUMBER)
    with large_arrays_within(None, None):
        assert held(given) is given and not in_file(large(NUMBER, np.int64))


def test_the_bound_ends_with_the_block(tmp_path):
    least = large_arrays.LEAST
    with large_arrays_within(least, tmp_path):
        assert in_file(large(NUMBER, np.int64))
    assert not in_file(large(NUMBER, np.int64))
    with (
        pytest.raises(ParameterError, match="is not enough for a search; give at least"),
        large_arrays_within(least - 1, tmp_path),
    ):
        pass


def test_a_disk_that_is_too_small_and_a_folder_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(OutputError, match="No such file or directory; name another folder with"):
        MappedArrays(0, tmp_path / "none")
    with monkeypatch.context() as patch:
        patch.setattr(large_arrays, "room", lambda folder: 10)
        with pytest.raises(OutputError, match="the disk is too small; for temporary files at least"):
            MappedArrays(0, tmp_path).empty(NUMBER, np.int64)
        patch.setattr(large_arrays, "room", lambda folder: 8 * NUMBER)  # for this array, and for no other
        assert in_file(MappedArrays(0, tmp_path).empty(NUMBER, np.int64))

    def fails(number):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)

    fails(errno.EOPNOTSUPP)
    assert in_file(MappedArrays(0, tmp_path).empty(NUMBER, np.int64))
    fails(errno.ENOSPC)
    with pytest.raises(OutputError, match="No space left on device; for temporary files"):
        MappedArrays(0, tmp_path).empty(NUMBER, np.int64)
    assert not list(tmp_path.iterdir())
