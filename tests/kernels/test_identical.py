"""Rows whose hashes agree by accident: made so, as none would be met otherwise."""

import numpy as np

from neardup_gpu.kernels import identical
from neardup_gpu.kernels._gf2 import mix64_all


def test_rows_of_one_hash_are_compared():
    """The hash of a row of two words is mix64(mix64(first) ^ second), so a second word can make it any other's."""
    first = np.array([5, 7, 9, 7, 5, 9, 11], np.uint64)
    second = mix64_all(first) ^ np.uint64(1234)
    second[6] ^= np.uint64(1)  # of another hash
    words = np.stack([first, second], axis=1)
    assert len(np.unique(mix64_all(mix64_all(first) ^ second))) == 2
    assert identical.cpu(words).tolist() == identical.reference(words).tolist() == [0, 1, 2, 1, 0, 2, 6]
