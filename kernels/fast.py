"""Fast similarity sketching: t min-hash samples of a set in about n + t ln t steps, where permutations take n t.

Rounds r = 0, 1, 2, ... throw all elements x of a set into t slots, by a hash of 64 bits of each round's own:

    h_r(x) = mix64(x ^ salt_r)              salt_r = output r of SplitMix64 started from the salt
    slot   = (lower half of h_r(x)) t >> 32 in rounds r < t; all go into slot r - t in rounds r >= t
    value  = r << 47 | h_r(x) >> 17

A slot keeps its least value, and rounds end when all slots are full: by round 2 t - 1, as each slot has a round of its
own. So the value of a slot is the least of all rounds, whether the others are looked at or not, and the sketch of a
union is the least of the sketches, slot by slot.

A value has its round in its upper 17 bits, which hold the 131,072 rounds of 65,536 slots, and 47 bits of the hash. With
it a slot that filled late never equals one that filled early, however the hash falls out. Two different elements that
win a slot in the same round have equal values with probability 2**-47.

What wins a slot of A u B is any of its elements with the same probability, so two sets agree in a slot with the
probability J of their resemblance: the share of equal slots is an unbiased estimate. Slots that fill in one round have
different winners, and those of other rounds are independent of them: given how many slots m_r fill in each round, the
number of equal slots is a sum of independent hypergeometric variables, one a round, and its variance

    sum over r of m_r J (1 - J) (U - m_r) / (U - 1)        U = |A u B| > 1

is at most t J (1 - J), that of independent samples. Its bounds hold too, as the moments of draws without replacement
are at most those with it (Hoeffding 1963, section 6).

Source: Dahlgaard, Knudsen and Thorup 2017, section 2, whose value is the round plus a fraction.
Cost: n for each round. About 87 rounds for 9 elements and 140 slots, 9 for 90, 3 for 300, 1.2 for 900.
"""

from __future__ import annotations

import numpy as np

from ._cpu import jit, shares, types
from ._gf2 import mix64, mixed
from ._launch import Kernel, bounds_of, cuda, kernel, namespace, on_device
from ._ragged import by_rows

EMPTY = np.uint64(2**64 - 1)
"""Value of every slot of an empty set."""


def reference(values, offsets, salt, t):
    """Sketches, straight from the definition.

    Parameters
    ----------
    values : array of uint64
        Elements of each set; repeats change nothing.
    offsets : array of int64, shape (documents + 1,)
    salt : uint64
    t : int from 1 to 65,536
        Slots.

    Returns
    -------
    array of uint64, shape (documents, t)
        Rows of sets without elements hold `EMPTY`; emptiness is read from the offsets, never from it.
    """
    sketches = np.full((len(offsets) - 1, t), EMPTY)
    for d, (start, stop) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        elements = {int(x) for x in values[start:stop]}
        filled: dict[int, int] = {}
        for r in range(2 * t if elements else 0):
            round_salt = mixed((int(salt) + (r + 1) * 0x9E3779B97F4A7C15) % 2**64)
            for x in elements:
                h = mixed(x ^ round_salt)
                slot = h % 2**32 * t // 2**32 if r < t else r - t
                filled[slot] = min(filled.get(slot, 2**64), r * 2**47 + h // 2**17)
            if len(filled) == t:
                break
        for slot, value in filled.items():
            sketches[d, slot] = value
    return sketches


@jit()
def salt_of(salt, r):
    """The salt of a round."""
    return mix64(np.uint64(salt) + (np.uint64(r) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@jit()
def slot_of(h, t):
    """The slot of an element in a round below t, from its hash."""
    return ((np.uint64(h) & np.uint64(0xFFFFFFFF)) * np.uint64(t)) >> np.uint64(32)


@jit()
def value_of(h, r):
    """The value of an element in a round, from its hash."""
    return (np.uint64(r) << np.uint64(47)) | (np.uint64(h) >> np.uint64(17))


_CHUNK = 1024  # hashes at a time: 8 kB, which stay in the first-level cache


@jit()
def _throw(x, salt, t, r, hashes, slots):
    """Throw some elements in a round below t. Minima without branches: that a slot changes is hard to foresee."""
    salt = salt_of(salt, r)
    for start in range(0, len(x), _CHUNK):
        count = min(_CHUNK, len(x) - start)
        for i in range(count):
            hashes[i] = mix64(x[start + i] ^ salt)
        for i in range(count):
            slot = slot_of(hashes[i], t)
            slots[slot] = min(slots[slot], value_of(hashes[i], r))


@jit()
def _least(x, salt, r):
    """The least value of some elements in a round."""
    salt, least = salt_of(salt, r), EMPTY
    for i in range(len(x)):
        least = min(least, value_of(mix64(x[i] ^ salt), r))
    return least


@by_rows("uint64[::1], int64[::1], uint64, int64, uint64[:, ::1]")
def _sketches(begin, end, values, offsets, salt, t, sketches):
    hashes = np.empty(_CHUNK, np.uint64)
    for d in range(begin, end):
        x, slots = values[offsets[d] : offsets[d + 1]], sketches[d]
        slots[:] = EMPTY
        if len(x) == 0:
            continue
        full, r = 0, 0  # slots that are full before the first that is not
        while full < t and r < t:
            _throw(x, salt, t, r, hashes, slots)
            while full < t and slots[full] != EMPTY:
                full += 1
            r += 1
        for slot in range(full, t):
            if slots[slot] == EMPTY:
                slots[slot] = _least(x, salt, t + slot)


def cpu(values, offsets, salt, t):
    """As `reference`; documents in parallel. Of rounds from t on only those of empty slots are looked at."""
    sketches = np.empty((len(offsets) - 1, t), np.uint64)
    _sketches(shares(offsets), values, offsets, np.uint64(salt), t, sketches)
    return sketches


SLOTS = {256: 2048, 32: 256}
"""Slots that a block keeps in its shared memory, 16 kB or 2 kB, by its number of threads."""

SHORT = 128
"""Most values of a document, on average, that one warp takes: a block of 256 threads would be half idle."""


def _fill_kernel(block: int, most: int) -> Kernel:
    def fill(values, offsets, salt, t, ranges, sketches):
        """One block a document and `most` of its slots: elements in strides, slots by atomic minima in shared memory.

        Slots of other ranges are others' business: a slot's value does not depend on them.
        """
        slots = cuda.shared.array(most, types.uint64)
        d, place = cuda.blockIdx.x // ranges, cuda.blockIdx.x % ranges
        first = np.uint64(place * most)
        count = np.uint64(min(t - place * most, most))
        start, stop = np.uint64(offsets[d]), np.uint64(offsets[d + 1])
        lane, step = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x)
        i = lane
        while i < count:
            slots[i] = EMPTY
            i += step
        cuda.syncthreads()
        r, rounds, empty = np.uint64(0), np.uint64(t), 1 if start < stop else 0
        while empty > 0 and r < rounds:
            round_salt = np.uint64(salt_of(salt, r))
            at = start + lane
            while at < stop:
                h = np.uint64(mix64(values[at] ^ round_salt))
                slot = np.uint64(slot_of(h, t)) - first  # of a range before this one it is beyond `count` by wrapping
                if slot < count:
                    value = np.uint64(value_of(h, r))
                    if value < slots[slot]:
                        cuda.atomic.min(slots, slot, value)
                at += step
            cuda.syncthreads()
            here, i = 0, lane
            while i < count:
                if slots[i] == EMPTY:
                    here = 1
                i += step
            empty = cuda.syncthreads_count(here)
            r += np.uint64(1)
        slot = np.uint64(0)
        while empty > 0 and slot < count:
            vacant = slots[slot] == EMPTY
            cuda.syncthreads()
            if vacant:
                r = rounds + first + slot
                round_salt = np.uint64(salt_of(salt, r))
                at = start + lane
                while at < stop:
                    h = np.uint64(mix64(values[at] ^ round_salt))
                    cuda.atomic.min(slots, slot, np.uint64(value_of(h, r)))
                    at += step
            slot += np.uint64(1)
        cuda.syncthreads()
        i = lane
        while i < count:
            sketches[d, first + i] = slots[i]
            i += step

    return kernel("void(uint64[::1], int64[::1], uint64, int64, int64, uint64[:,::1])", block)(fill)


_FILL = {block: _fill_kernel(block, most) for block, most in SLOTS.items()}


def gpu(values, offsets, salt, t):
    """As `reference`: a block for each document and some of its slots; a warp alone, if documents are short.

    A block of 256 threads reads a long document alone, and all of it again for each further range of slots.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    values, offsets = on_device(values), on_device(offsets)
    documents = len(offsets) - 1
    block = 32 if last - first <= SHORT * documents and t <= SLOTS[32] else 256
    ranges, sketches = -(-t // SLOTS[block]), xp.empty((documents, t), np.uint64)
    _FILL[block].blocks(documents * ranges, values, offsets, np.uint64(salt), t, ranges, sketches)
    return sketches
