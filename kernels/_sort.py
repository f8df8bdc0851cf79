"""Sorting that several kernels share: radix sorts of words with their rows, of packed pairs, and within rows."""

from __future__ import annotations

import numba
import numpy as np
from numba import prange

from ._launch import cuda, jit, kernel, namespace, row_of


@jit(parallel=True)
def _sort_digit(words, rows, shift, bits, counts, sorted_words, sorted_rows):
    """One pass of a radix sort: by `bits` bits from `shift` on, ties in the order given; runs of words in parallel."""
    runs, digits, n = len(counts), 1 << bits, len(words)
    below = np.uint64(digits - 1)
    for run in prange(runs):
        counts[run] = 0
        for i in range(run * n // runs, (run + 1) * n // runs):
            counts[run, (words[i] >> shift) & below] += 1
    place = 0
    for digit in range(digits):
        for run in range(runs):
            count = counts[run, digit]
            counts[run, digit] = place
            place += count
    for run in prange(runs):
        for i in range(run * n // runs, (run + 1) * n // runs):
            word = words[i]
            digit = (word >> shift) & below
            at = counts[run, digit]
            counts[run, digit] = at + 1
            sorted_words[at], sorted_rows[at] = word, rows[i]


_DIGIT_BITS = 11  # bits of most passes: 2048 places to write to, as many pages as a core remembers


def radix_sort(words, num_bits):
    """Sort words by their `num_bits` highest bits, ties in the order given; `words` is written over.

    Returns
    -------
    words : array of uint64
    rows : array of uint32
        The place that each word came from.
    """
    rows = np.arange(len(words), dtype=np.uint32)
    passes = -(-num_bits // _DIGIT_BITS)
    if passes:
        other_words, other_rows = np.empty_like(words), np.empty_like(rows)
        counts = np.empty((numba.get_num_threads(), 1 << -(-num_bits // passes)), np.int64)
    for number in range(passes):
        low, high = (64 - num_bits + num_bits * i // passes for i in (number, number + 1))
        _sort_digit(words, rows, np.uint64(low), high - low, counts, other_words, other_rows)
        words, rows, other_words, other_rows = other_words, other_rows, words, rows
    return words, rows


_PART = 14  # 2**14 words in a part, about: with companions, and room to sort them, they fit a core's cache
_MOST_PARTS = 11
_MOST_MOVES = 16  # of a word, on average, while a part is sorted by insertion


def in_parts(words, companions):
    """Bring words, each with its companion, together by some of their highest bits, ties in the order given.

    Returns
    -------
    words, companions : arrays like those given
    ends : array of int64, shape (parts + 1,)
        Where the words that agree in these bits begin, in the order of the bits.
    shift : uint64
    bits : int
        The next bits, as many as `sort_part` should take: they begin at bit `shift`.
    """
    part_bits = min(max(len(words).bit_length() - _PART, 1), _MOST_PARTS)
    bits = max(len(words).bit_length() + 2 - part_bits, 1)
    found, theirs = np.empty_like(words), np.empty_like(companions)
    counts = np.empty((numba.get_num_threads(), 1 << part_bits), np.int64)
    _sort_digit(words, companions, np.uint64(64 - part_bits), part_bits, counts, found, theirs)
    ends = np.concatenate([np.zeros(1, np.int64), counts[-1]])
    return found, theirs, ends, np.uint64(64 - part_bits - bits), bits


@jit()
def sort_part(words, companions, shift, room):
    """Sort words that agree in their highest bits, with their companions: by the next bits, and then by insertion.

    Ties stay in the order given. `room` are arrays to work in: a counter for each value of the next bits and one more,
    words and companions. The next bits begin at bit `shift`; few words should agree in them that are not equal.
    """
    starts, other_words, theirs = room
    size, below = len(words), np.uint64(len(starts) - 2)
    starts[:] = 0
    for word in words:
        starts[np.int64((word >> shift) & below) + 1] += 1
    for digit in range(1, len(starts)):
        starts[digit] += starts[digit - 1]
    for i in range(size):
        digit = np.int64((words[i] >> shift) & below)
        other_words[starts[digit]], theirs[starts[digit]] = words[i], companions[i]
        starts[digit] += 1
    moves = 0
    for i in range(size):  # few are out of place
        word, companion, place = other_words[i], theirs[i], i
        while place > 0 and words[place - 1] > word:
            words[place], companions[place] = words[place - 1], companions[place - 1]
            place -= 1
        words[place], companions[place] = word, companion
        moves += i - place
        if moves > _MOST_MOVES * size:  # many words agree in the next bits
            order = np.argsort(other_words[:size], kind="mergesort")
            for j in range(size):
                words[j], companions[j] = other_words[order[j]], theirs[order[j]]
            return


def in_order(words):
    """(words in order, where each was before), equal ones in the order given; by the bits in which they differ.

    Up to 2**32 words.
    """
    if len(words) < 1 << 12:  # which NumPy sorts faster
        order = np.argsort(words, kind="stable")
        return words[order], order
    lowest = words.min()
    bits = max(1, int(words.max() - lowest).bit_length())
    _, order = radix_sort((words - lowest) << np.uint64(64 - bits), bits)
    return words[order], order


@jit()
def sort_unique(packed, bits):
    """The distinct values below 2**bits, sorted: radix sort by 11 bits at a time, the lowest first."""
    other = np.empty_like(packed)
    for shift in range(0, bits, 11):
        starts = np.zeros(2049, np.int64)
        for x in packed:
            starts[((x >> np.uint64(shift)) & np.uint64(2047)) + np.uint64(1)] += 1
        for digit in range(1, 2048):
            starts[digit] += starts[digit - 1]
        for x in packed:
            lowest = (x >> np.uint64(shift)) & np.uint64(2047)
            other[starts[lowest]] = x
            starts[lowest] += 1
        packed, other = other, packed
    size = 0
    for x in packed:
        if size == 0 or packed[size - 1] != x:
            packed[size] = x
            size += 1
    return packed[:size].copy()


@kernel("void(int64[::1], uint32[::1])")
def _write_row_numbers(offsets, rows):
    """One thread a value: the row that it is of."""
    at = cuda.grid(1)
    if at < len(rows):
        rows[at] = row_of(offsets, offsets[0] + at)


def order_in_rows(values, offsets):
    """Sort values within their rows, for `gpu`: by two stable radix sorts, by value and then by row.

    Returns
    -------
    order : array of int64, shape (n,)
        ``values[offsets[0]:][order]`` is row by row, ascending.
    begins : array of bool, shape (n,)
        Where, in that order, a value differs from the one before it or begins a row.
    """
    xp = namespace()
    values = values[int(offsets[0]) : int(offsets[-1])]
    rows = xp.empty(len(values), np.uint32)
    _write_row_numbers.threads(len(rows), offsets, rows)
    order = xp.argsort(values, kind="stable")
    order = order[xp.argsort(rows[order], kind="stable")]
    begins = xp.ones(len(values), bool)
    begins[1:] = (values[order[1:]] != values[order[:-1]]) | (rows[1:] != rows[:-1])  # rows ascend already
    return order, begins
