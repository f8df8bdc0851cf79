"""Simhashes: documents whose weighted features are alike have sketches that differ in few bits.

    V[d, i] = sum over features f of document d of  +weight if bit i of h(f) is 1, -weight if it is 0
    bit i of simhash[d] = 1 if V[d, i] > 0, 0 if V[d, i] < 0, and bit i of tie[d] if V[d, i] = 0
    tie[d] = mix64(min over features f of document d of mix64(h(f) + g))

h(f) = mix64(f), as Rabin fingerprints are linear over GF(2) and their bits depend on one another; of 128 bits the
second word is that of h(f) = mix64(f + g), SplitMix64's next output (g is its increment). Two documents whose weights
are vectors at an angle a, one dimension a feature, differ in a bit with probability close to a / pi.

Ties are frequent in short documents: two words of equal weight tie in half of all bits. A fixed bit for ties would make
unrelated short documents alike. So each tied bit is drawn, with probability 1/2, from one feature that similar
documents usually share: the feature whose hash, mixed once more, is least. The bits of h(f) itself are not used: the
simhash of two words would then be the hash of one of them, and a third of all pairs of two-word documents that share
one word would have equal simhashes.

Weights are integers, one an occurrence, so the order of addition changes nothing. Without weights every occurrence
counts 1, which weighs each feature by its term frequency; for other weights see `log_weights`.

Source: Manku, Jain and Das Sarma 2007, section 2, after Charikar 2002 (Similarity estimation techniques from rounding
algorithms, section 3), whose sign of a random projection this is, with coordinates of +1 and -1.

Cost: without weights, a mixing and about one vector instruction per feature: positional population counts by carry-save
adders (Klarqvist, Mula and Lemire 2021); with weights, 64 additions per feature. Where bits are tied, two mixings more.
"""

import numpy as np

from ._cpu import intrinsic, ir, jit, shares, types
from ._gf2 import mix64, mixed
from ._launch import bounds_of, cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows
from ._vectors import Vectors

_STEP = 0x9E3779B97F4A7C15  # SplitMix64's increment


def reference(features, offsets, weights, bits):
    """Simhashes, straight from the definition.

    Parameters
    ----------
    features : array of uint64
        Token or shingle fingerprints, with repeats, in any order.
    offsets : array of int64, shape (documents + 1,)
    weights : array of int64, of features' shape, or None
        At least 0, and in each document less than 2**63 together, so that no counter overflows. None: 1 each.
    bits : 64 or 128

    Returns
    -------
    array of uint64, shape (documents,) for 64 bits, (documents, 2) for 128
        Documents without features hold 0, as others may: emptiness is read from the offsets, never from it.
    """
    simhash = np.zeros((len(offsets) - 1, bits // 64), np.uint64)
    for d, (start, stop) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        for word in range(bits // 64 if stop > start else 0):
            counters, least = [0] * 64, 2**64
            for at in range(start, stop):
                h = mixed(int(features[at]) + word * _STEP)
                weight = 1 if weights is None else int(weights[at])
                for i in range(64):
                    counters[i] += weight if h >> i & 1 else -weight
                least = min(least, mixed(h + _STEP))
            tie = mixed(least)
            ones = (tie >> i & 1 if counters[i] == 0 else counters[i] > 0 for i in range(64))
            simhash[d, word] = sum(bit << i for i, bit in enumerate(ones))
    return simhash[:, 0] if bits == 64 else simhash


_LANES = 8  # words in a vector: one register of 512 bits, two of 256 or four of 128, as the processor has them
_BLOCK = 15 * _LANES  # what 15 vectors hold, whose sums take four planes
_CHUNK = 16 * _BLOCK  # features at a time: 15 kB, which stay in the first-level cache


def _planes(builder, vectors):
    """Add 2**n - 1 vectors position by position: plane p holds bit p of every sum, by carry-save adders."""
    planes = []
    while vectors:
        carries = []
        while len(vectors) > 1:
            a, b, c = vectors.pop(), vectors.pop(), vectors.pop()
            differ = builder.xor(a, b)
            carries.append(builder.or_(builder.and_(differ, c), builder.and_(builder.not_(differ), a)))
            vectors.append(builder.xor(differ, c))
        planes += vectors
        vectors = carries
    return planes


@intrinsic
def _add_bits(typingctx, x, at, counters):
    """counters[i] += how many of the `_BLOCK` words from x[at] on have bit i."""

    def codegen(context, builder, signature, args):
        words, counts = Vectors(context, builder, 64, _LANES), Vectors(context, builder, 8, 64)
        totals, zero = Vectors(context, builder, 64, 64), ir.IntType(64)(0)
        places = [builder.add(args[1], ir.Constant(args[1].type, at)) for at in range(0, _BLOCK, _LANES)]
        planes = _planes(builder, [words.load(x, args[0], place) for place in places])
        ones = counts.constant(0)  # of a block at most 120 each
        for p, plane in enumerate(planes):
            for lane in range(_LANES):
                bits = builder.extract_element(plane, ir.IntType(32)(lane))
                has = builder.bitcast(bits, ir.VectorType(ir.IntType(1), 64))
                ones = builder.add(ones, builder.select(has, counts.constant(1 << p), counts.constant(0)))
        before = totals.load(counters, args[2], zero)
        totals.store(builder.add(before, builder.zext(ones, totals.type)), counters, args[2], zero)
        return context.get_dummy_value()

    return types.void(x, types.int64, counters), codegen


@jit()
def _add_weights(x, weights, counters):
    """counters[i] += the weights of the words of x that have bit i; returns the sum of all weights."""
    total = np.uint64(0)
    for j in range(len(weights)):
        word, weight = x[j], weights[j]
        total += weight
        for i in range(64):
            counters[i] += weight * ((word >> np.uint64(i)) & np.uint64(1))
    return total


@jit()
def _tie(features, salt):
    """Return the word that decides tied bits, of one document with features."""
    least = np.uint64(2**64 - 1)
    for j in range(len(features)):
        least = min(least, mix64(mix64(features[j] + salt) + np.uint64(_STEP)))
    return mix64(least)


@by_rows(
    "uint64[::1], int64[::1], none, uint64, uint64[::1]",
    "uint64[::1], int64[::1], uint64[::1], uint64, uint64[::1]",
    is_wide=True,
)
def _simhashes(begin, end, features, offsets, weights, salt, simhash):
    x = np.empty(_CHUNK, np.uint64)
    counters = np.empty(64, np.uint64)  # weight of the features that have the bit
    for d in range(begin, end):
        counters[:] = 0
        total = np.uint64(0)
        for start in range(offsets[d], offsets[d + 1], _CHUNK):
            chunk = features[start : min(start + _CHUNK, offsets[d + 1])]  # by itself: a vector is one load then
            count = len(chunk)
            for j in range(count):
                x[j] = mix64(chunk[j] + salt)
            if weights is not None:
                total += _add_weights(x, weights[start : start + count], counters)
                continue
            total += np.uint64(count)
            padded = -(-count // _BLOCK) * _BLOCK
            x[count:padded] = 0
            for at in range(0, padded, _BLOCK):
                _add_bits(x, at, counters)
        result, tied = np.uint64(0), np.uint64(0)
        for i in range(64):
            result |= np.uint64(counters[i] > total - counters[i]) << np.uint64(i)
            tied |= np.uint64(counters[i] == total - counters[i]) << np.uint64(i)
        if tied != np.uint64(0) and offsets[d + 1] > offsets[d]:
            result |= tied & _tie(features[offsets[d] : offsets[d + 1]], salt)
        simhash[d] = result


def cpu(features, offsets, weights, bits):
    """Return what `reference` returns; documents in parallel.

    Only the weight of the bits that are 1 is counted, and compared with the rest. Without weights 120 features are
    added at a time, 8 in a vector. A document that has tied bits is read once more.
    """
    simhash = np.empty((bits // 64, len(offsets) - 1), np.uint64)
    weights = None if weights is None else weights.view(np.uint64)
    for word in range(len(simhash)):
        salt = np.uint64(word * _STEP % 2**64)
        _simhashes(shares(offsets), features, offsets, weights, salt, simhash[word])
    return simhash[0] if bits == 64 else np.ascontiguousarray(simhash.T)


STAGED = 1024  # features that a block mixes at a time and keeps in shared memory, with their weights: 16 kB


@kernel("void(uint64[::1], int64[::1], int64[::1], uint64, int64[:,::1], uint64[::1])")
def _add(features, offsets, weights, salt, counters, least):
    """Every block takes `STAGED` features, every warp an equal share of them, whatever documents they are of.

    Each lane keeps two counters in registers; a feature is read once for the whole warp, by broadcast. Counters of
    documents that lie within a share are stored; of others they are merged by atomics. For ties each lane mixes every
    32nd feature once more, and the least word of a document is merged by atomics.
    """
    words = cuda.shared.array(STAGED, types.uint64)
    terms = cuda.shared.array(STAGED, types.int64)
    base = np.int64(cuda.blockIdx.x) * STAGED + offsets[0]
    count = min(offsets[-1] - base, STAGED)
    i, first = np.uint64(cuda.threadIdx.x), np.uint64(base)
    while i < np.uint64(count):
        words[i] = mix64(features[first + i] + salt)
        terms[i] = weights[first + i] if len(weights) > 0 else np.int64(1)
        i += np.uint64(cuda.blockDim.x)
    cuda.syncthreads()
    lane, share = cuda.threadIdx.x & 31, STAGED // (cuda.blockDim.x >> 5)
    begin = (cuda.threadIdx.x >> 5) * share
    stop = min(begin + share, count)
    if begin >= stop:
        return
    low_bit = np.uint64(1) << np.uint64(lane)
    high_bit = low_bit << np.uint64(32)
    d = row_of(offsets, base + begin)
    while begin < stop:
        end = min(offsets[d + 1] - base, stop)
        low, high = np.int64(0), np.int64(0)
        j, last = np.uint64(begin), np.uint64(end)
        while j < last:
            word, term = words[j], terms[j]
            low += term if word & low_bit else -term
            high += term if word & high_bit else -term
            j += np.uint64(1)
        j, key = np.uint64(begin) + np.uint64(lane), np.uint64(2**64 - 1)
        while j < last:
            key = min(key, mix64(words[j] + np.uint64(_STEP)))
            j += np.uint64(32)
        if begin + lane < end:
            cuda.atomic.min(least, d, key)
        if base + begin == offsets[d] and base + end == offsets[d + 1]:
            counters[d, lane] = low
            counters[d, lane + 32] = high
        else:
            cuda.atomic.add(counters, (d, lane), low)
            cuda.atomic.add(counters, (d, lane + 32), high)
        begin = end
        d += 1


@kernel("void(int64[:,::1], uint64[::1], int64[::1], uint64[::1])")
def _take_signs(counters, least, offsets, simhash):
    """One thread per document."""
    d = cuda.grid(1)
    if d >= len(simhash):
        return
    result, tie, i = np.uint64(0), np.uint64(0), np.uint64(0)
    if offsets[d + 1] > offsets[d]:
        tie = mix64(least[d])
    while i < np.uint64(64):
        if counters[d, i] > 0:
            result |= np.uint64(1) << i
        elif counters[d, i] == 0:
            result |= tie & np.uint64(1) << i
        i += np.uint64(1)
    simhash[d] = result


def gpu(features, offsets, weights, bits):
    """Return what `reference` returns; equal runs of features in parallel, with 32 lanes per feature.

    The counters take 520 bytes per document until their signs are taken.
    """
    xp = namespace()
    first, last = bounds_of(offsets)
    features, offsets, blocks = on_device(features), on_device(offsets), -(-(last - first) // STAGED)
    weights = xp.empty(0, np.int64) if weights is None else on_device(weights)
    simhash = xp.empty((bits // 64, len(offsets) - 1), np.uint64)
    for word in range(len(simhash)):
        counters = xp.zeros((len(offsets) - 1, 64), np.int64)
        least = xp.full(len(counters), np.uint64(2**64 - 1))
        _add.blocks(blocks, features, offsets, weights, np.uint64(word * _STEP % 2**64), counters, least)
        _take_signs.threads(len(counters), counters, least, offsets, simhash[word])
    return simhash[0] if bits == 64 else on_device(simhash.T)
