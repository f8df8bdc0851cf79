"""Min-hash signatures.

    signature[d, i] = min over shingles f of document d of (a[i] x + b[i]) mod 2**L, a[i] odd,
                      x = mix64(f) for L = 64, its upper half for L = 32

Each i is a linear permutation of the L-bit integers; two documents of resemblance r agree in a sample with probability
close to r. L = 32 adds an error by collisions below |A u B| / 2**21 with probability 99.9% (Broder 1997, 4.1, l = 32).

Source: Broder 2000, section 2; Broder, Charikar, Frieze and Mitzenmacher 1998 (linear permutations); mix64 comes first
because Rabin fingerprints are linear over GF(2) and a linear permutation would keep some of that.

Cost: one multiplication, addition and minimum for each shingle and sample. AltaVista's trick (Manasse 3.2: compare
8-bit prefixes first, settle ties later) does not pay here: the upper half of a x + b takes three 16-bit multiplications
where the whole takes one of 32 bits, in vectors with only twice the lanes, and the ties would come on top.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ._constants import constant
from ._cpu import intrinsic, ir, shares, types
from ._gf2 import mix64, mixed
from ._launch import Kernel, bounds_of, cuda, kernel, namespace, on_device, row_of
from ._ragged import by_rows
from ._vectors import Vectors


def reference(shingles, offsets, a, b):
    """Signatures, straight from the definition.

    Parameters
    ----------
    shingles : array of uint64
        Shingle fingerprints; repeats change nothing.
    offsets : array of int64, shape (documents + 1,)
    a, b : arrays of uint32 or of uint64, shape (samples,)
        The permutations; their type is L.

    Returns
    -------
    array of a's dtype, shape (documents, samples)
        Rows of documents without shingles hold the greatest value; emptiness is read from the offsets, never from it.
    """
    modulus = 2 ** (8 * a.itemsize)
    signature = np.full((len(offsets) - 1, len(a)), modulus - 1, a.dtype)
    for d, (start, stop) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        images = {mixed(int(f)) >> 64 - 8 * a.itemsize for f in shingles[start:stop]}
        for i in range(len(a)):
            signature[d, i] = min(((int(a[i]) * x + int(b[i])) % modulus for x in images), default=modulus - 1)
    return signature


def _minima(lanes, vectors):
    """An intrinsic: minima[at + i] = min(itself, a[at + i] x[j] + b[at + i]) over j < count, for lanes * vectors
    samples.

    The minima, a and b stay in registers while x is read once.
    """

    @intrinsic
    def update(typingctx, x, count, a, b, minima, at):
        def codegen(context, builder, signature, args):
            some = Vectors(context, builder, x.dtype.bitwidth, lanes)
            shingles = context.make_array(x)(context, builder, args[0]).data
            places = [builder.add(args[5], ir.Constant(args[5].type, v * lanes)) for v in range(vectors)]
            first, factors, terms = (
                [some.load(kind, array, place) for place in places]
                for kind, array in ((minima, args[4]), (a, args[2]), (b, args[3]))
            )
            before = builder.block
            loop = builder.append_basic_block("shingles")
            after = builder.append_basic_block("done")
            builder.cbranch(builder.icmp_signed(">", args[1], ir.Constant(args[1].type, 0)), loop, after)
            builder.position_at_end(loop)
            j = builder.phi(args[1].type)
            j.add_incoming(ir.Constant(args[1].type, 0), before)
            running = [builder.phi(some.type) for _ in range(vectors)]
            broadcast = some.splat(builder.load(builder.gep(shingles, [j])))
            smaller = []
            for v in range(vectors):
                image = builder.add(builder.mul(factors[v], broadcast), terms[v])
                smaller.append(builder.select(builder.icmp_unsigned("<", image, running[v]), image, running[v]))
            following = builder.add(j, ir.Constant(args[1].type, 1))
            j.add_incoming(following, loop)
            for v in range(vectors):
                running[v].add_incoming(first[v], before)
                running[v].add_incoming(smaller[v], loop)
            builder.cbranch(builder.icmp_signed("<", following, args[1]), loop, after)
            builder.position_at_end(after)
            for v in range(vectors):
                final = builder.phi(some.type)
                final.add_incoming(first[v], before)
                final.add_incoming(smaller[v], loop)
                smaller[v] = final
            for v in range(vectors):
                some.store(smaller[v], minima, args[4], places[v])
            return context.get_dummy_value()

        return types.void(x, types.int64, a, b, minima, types.int64), codegen

    return update


_minima_32 = _minima(16, 2)
_minima_16 = _minima(16, 1)
_minima_64 = _minima(16, 4)
_CHUNK = 2048  # shingles at a time: 8 or 16 kB, which stay in the first-level cache


@by_rows(
    "uint64[::1], int64[::1], uint32[::1], uint32[::1], int64, uint64, uint32[:, ::1]",
    "uint64[::1], int64[::1], uint64[::1], uint64[::1], int64, uint64, uint64[:, ::1]",
    is_wide=True,
)
def _signatures(begin, end, shingles, offsets, a, b, samples, shift, signature):
    padded = len(a)
    greatest = ~a.dtype.type(0)
    x = np.empty(_CHUNK, a.dtype)
    minima = np.empty(padded, a.dtype)
    for d in range(begin, end):
        minima[:] = greatest
        for start in range(offsets[d], offsets[d + 1], _CHUNK):
            count = min(_CHUNK, offsets[d + 1] - start)
            for j in range(count):
                x[j] = mix64(shingles[start + j]) >> shift
            at = 0
            while at + 64 <= padded:
                _minima_64(x, count, a, b, minima, at)
                at += 64
            if at + 32 <= padded:
                _minima_32(x, count, a, b, minima, at)
                at += 32
            if at < padded:
                _minima_16(x, count, a, b, minima, at)
        for i in range(samples):
            signature[d, i] = minima[i]


def cpu(shingles, offsets, a, b):
    """As `reference`; documents in parallel, 64 samples at a time in vector registers."""
    samples = len(a)
    signature = np.empty((len(offsets) - 1, samples), a.dtype)
    shift = np.uint64(64 - 8 * a.itemsize)
    _signatures(shares(offsets), shingles, offsets, *padded(a, b), samples, shift, signature)
    return signature


def padded(a, b):
    """Return the permutations with zeros up to a multiple of 16, as vectors take them."""
    longer = np.zeros((2, -(-len(a) // 16) * 16), a.dtype)
    longer[0, : len(a)], longer[1, : len(a)] = a, b
    return longer[0], longer[1]


STAGED = 2048  # shingles that a block mixes at a time and keeps in shared memory: 8 or 16 kB
_MOST = {32: 5, 64: 2}  # samples a lane, for L: with more, their a, b and minima leave registers for too few warps


@cache
def _signature_kernel(bits: int, per_lane: int) -> Kernel:
    """The kernel for L = `bits` and up to 32 * `per_lane` samples, which the compiler unrolls."""
    word, kind = (np.uint32, types.uint32) if bits == 32 else (np.uint64, types.uint64)
    shift = np.uint64(64 - bits)
    greatest = word(2**bits - 1)
    unrolled = np.uint64(8)

    def signatures(shingles, offsets, a, b, first_sample, signature):
        """Every block takes `STAGED` shingles, every warp an equal share of them, whatever documents they are of.

        Each lane keeps `per_lane` samples in registers; a shingle is read once for the whole warp, by broadcast. So
        a long document has many warps, and a warp many short documents. Those that lie within a share are stored; of
        others the minima are merged by atomics.
        """
        staged = cuda.shared.array(STAGED, kind)
        base = np.int64(cuda.blockIdx.x) * STAGED + offsets[0]
        count = min(offsets[-1] - base, STAGED)
        for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
            staged[i] = word(mix64(shingles[base + i]) >> shift)
        cuda.syncthreads()
        lane, share = cuda.threadIdx.x & 31, STAGED // (cuda.blockDim.x >> 5)
        begin = (cuda.threadIdx.x >> 5) * share
        stop = min(begin + share, count)
        if begin >= stop:
            return
        factors = cuda.local.array(per_lane, kind)
        terms = cuda.local.array(per_lane, kind)
        minima = cuda.local.array(per_lane, kind)
        for s in range(per_lane):
            i = first_sample + 32 * s + lane
            factors[s] = a[i] if i < len(a) else word(0)
            terms[s] = b[i] if i < len(a) else word(0)
        d = row_of(offsets, base + begin)
        while begin < stop:
            end = min(offsets[d + 1] - base, stop)
            for s in range(per_lane):
                minima[s] = greatest
            j, last = np.uint64(begin), np.uint64(end)
            while j + unrolled <= last:
                for ahead in range(unrolled):
                    x = staged[j + np.uint64(ahead)]
                    for s in range(per_lane):
                        image = word(factors[s] * x + terms[s])
                        minima[s] = image if image < minima[s] else minima[s]
                j += unrolled
            while j < last:
                x = staged[j]
                for s in range(per_lane):
                    image = word(factors[s] * x + terms[s])
                    minima[s] = image if image < minima[s] else minima[s]
                j += np.uint64(1)
            whole = base + begin == offsets[d] and base + end == offsets[d + 1]
            for s in range(per_lane):
                i = first_sample + 32 * s + lane
                if i < len(a):
                    if whole:
                        signature[d, i] = minima[s]
                    else:
                        cuda.atomic.min(signature, (d, i), minima[s])
            begin = end
            d += 1

    return kernel(f"void(uint64[::1], int64[::1], {kind}[::1], {kind}[::1], int64, {kind}[:,::1])")(signatures)


def gpu(shingles, offsets, a, b):
    """As `reference`; equal runs of shingles in parallel, whatever their documents, 32 lanes to a shingle.

    The inner loop is a multiplication with addition and a minimum for each shingle and sample, and one shared load for
    all of a lane's samples of a shingle.
    """
    xp = namespace()
    first_shingle, last = bounds_of(offsets)
    shingles, offsets, a, b = on_device(shingles), on_device(offsets), constant(a), constant(b)
    samples, bits = len(a), 8 * a.dtype.itemsize
    signature = xp.full((len(offsets) - 1, samples), np.iinfo(a.dtype).max, a.dtype)
    columns = -(-samples // (32 * _MOST[bits]))
    per_lane = -(-samples // (32 * columns))
    for first in range(0, samples, 32 * per_lane):
        blocks = -(-(last - first_shingle) // STAGED)
        _signature_kernel(bits, per_lane).blocks(blocks, shingles, offsets, a, b, first, signature)
    return signature
