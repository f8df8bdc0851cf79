"""The arithmetic, written once: SplitMix64, Rabin fingerprints over GF(2), and their constants.

A polynomial of degree below 64 is a uint64 with the coefficient of x**63 in its lowest bit (Manasse 3.3), so that text
read as little-endian words is a polynomial as it lies in memory. A modulus p = x**64 + q is written as q alone.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ._cpu import Rare, intrinsic, ir, jit, types
from ._processor import carryless_products
from ._vectors import Vectors


@jit()
def mix64(z):
    """SplitMix64's finaliser: a permutation of the 64-bit integers (Steele, Lea and Flood 2014)."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit("uint64[::1]", "uint64[:]")
def mix64_all(values):
    """`mix64` of each element of an array of uint64."""
    mixed = np.empty_like(values)
    for i in range(len(values)):
        mixed[i] = mix64(values[i])
    return mixed


@jit()
def times_x(a, q):
    """a * x modulo x**64 + q."""
    return (a >> np.uint64(1)) ^ (q if a & np.uint64(1) else np.uint64(0))


@jit("uint64, uint64, uint64")
def multiply(a, b, q):
    """a * b modulo x**64 + q, one bit at a time: for constants, not for data (64 steps)."""
    product = np.uint64(0)
    for i in range(64):
        if (b << np.uint64(i)) & np.uint64(1 << 63):
            product ^= a
        a = times_x(a, q)
    return product


@jit("uint64, uint64")
def power_of_x(exponent, q):
    """x**exponent modulo x**64 + q, for a uint64 exponent."""
    result, square = np.uint64(1 << 63), np.uint64(1 << 62)
    for i in range(64):
        if (exponent >> np.uint64(i)) & np.uint64(1):
            result = multiply(result, square, q)
        square = multiply(square, square, q)
    return result


@jit()
def is_primitive(q):
    """Whether x generates all 2**64 - 1 non-zero residues modulo x**64 + q.

    It does when x**(2**64 - 1) = 1 and x**((2**64 - 1) / f) is not 1 for any prime factor f: 3, 5, 17, 257, 641, 65537
    and 6700417. An x of full order also makes the modulus irreducible.
    """
    every = np.uint64(0xFFFFFFFFFFFFFFFF)
    one = np.uint64(1 << 63)
    if not q & one:  # no constant term: x divides the modulus
        return False
    if power_of_x(every, q) != one:
        return False
    for factor in (3, 5, 17, 257, 641, 65537, 6700417):
        if power_of_x(every // np.uint64(factor), q) == one:
            return False
    return True


@intrinsic
def _clmul(typingctx, a, b):
    """(low, high) words of the carry-less product of two uint64."""
    pair = types.UniTuple(types.uint64, 2)

    def codegen(context, builder, signature, args):
        i64, i32 = ir.IntType(64), ir.IntType(32)
        vector = ir.VectorType(i64, 2)
        undefined = ir.Constant(vector, ir.Undefined)
        x = builder.insert_element(undefined, args[0], i32(0))
        y = builder.insert_element(undefined, args[1], i32(0))
        function = builder.module.declare_intrinsic(
            "llvm.x86.pclmulqdq", (), ir.FunctionType(vector, [vector, vector, ir.IntType(8)])
        )
        z = builder.call(function, [x, y, ir.IntType(8)(0)])
        words = [builder.extract_element(z, i32(0)), builder.extract_element(z, i32(1))]
        return context.make_tuple(builder, pair, words)

    return pair(types.uint64, types.uint64), codegen


@jit()
def barrett(q):
    """floor(x**128 / (x**64 + q)) without its leading term, which is x**64."""
    quotient, rest = np.uint64(0), q  # rest = x**64 mod p; long division of rest * x**64 by p
    for i in range(64):
        if rest & np.uint64(1):
            quotient |= np.uint64(1) << np.uint64(i)
        rest = times_x(rest, q)
    return quotient


@jit("uint64")
def byte_tables(q):
    """t[256 * i + v] = v * x**(64 + 8 * i) modulo p, for byte i counted from the highest: 16 kB, eight look-ups a
    word."""
    return tables_of_shift(np.uint64(1), q)


@jit("uint64, uint64")
def tables_of_shift(words, q):
    """The same for a word times x**(64 words): with them, `advance_by_tables` shifts by `words` words at once."""
    tables = np.zeros(2048, np.uint64)
    power = power_of_x(np.uint64(64) * words, q)
    for bit in range(64):
        # bit `bit` of a word, counted from its highest, is x**bit
        byte, within = bit // 8, 7 - bit % 8
        tables[256 * byte + (1 << within)] = power
        power = times_x(power, q)
    for byte in range(8):
        for v in range(256):
            low = v & -v
            if v != low:
                tables[256 * byte + v] = tables[256 * byte + low] ^ tables[256 * byte + (v ^ low)]
    return tables


@jit()
def advance_by_tables(f, tables):
    """Return f * x**64 modulo p by eight independent look-ups in `byte_tables`."""
    f, result = np.uint64(f), np.uint64(0)
    for byte in range(8):
        shift = np.uint64(56 - 8 * byte)
        result ^= tables[np.uint64(256 * byte) + ((f >> shift) & np.uint64(0xFF))]
    return result


@jit()
def append_byte(f, byte, tables):
    """The fingerprint f of some bytes, extended by one more: one look-up, in the first 256 of `byte_tables`."""
    f = np.uint64(f)
    return (f >> np.uint64(8)) ^ tables[(f ^ np.uint64(byte)) & np.uint64(0xFF)]


LANES = max(1, 2 * carryless_products())
"""Words that `advance_block`, `windows` and `columns` handle at once."""


class _CarrylessVectors(Vectors):
    """Vectors of `LANES` words. Carry-less products are made of even and of odd lanes."""

    def __init__(self, context, builder):
        super().__init__(context, builder, 64, LANES)
        suffix = "" if LANES == 2 else ".512"
        kind = ir.FunctionType(self.type, [self.type, self.type, ir.IntType(8)])
        self.multiply = builder.module.declare_intrinsic("llvm.x86.pclmulqdq" + suffix, (), kind)

    def products(self, a, b):
        """The products of even lanes, and those of odd lanes, two words each."""
        call, byte = self.builder.call, ir.IntType(8)
        return call(self.multiply, [a, b, byte(0x00)]), call(self.multiply, [a, b, byte(0x11)])

    def words(self, products):
        """Low words of all products, in lane order, and high words."""
        even, odd = products
        lows = [i + j for i in range(0, LANES, 2) for j in (0, LANES)]
        return self.shuffle(even, odd, lows), self.shuffle(even, odd, [i + 1 for i in lows])

    def advance(self, f, q, inverse):
        """`advance` in every lane."""
        b = self.builder
        low, _ = self.words(self.products(f, inverse))
        quotient = b.xor(f, b.shl(low, self.constant(1)))
        low, high = self.words(self.products(quotient, q))
        return b.or_(b.shl(high, self.constant(1)), b.lshr(low, self.constant(63)))


@intrinsic
def _advance_lanes(typingctx, words, index, q, inverse):
    """words[index:index + LANES] = each of them, advanced"""

    def codegen(context, builder, signature, args):
        lanes, kind = _CarrylessVectors(context, builder), signature.args[0]
        f = lanes.load(kind, args[0], args[1])
        lanes.store(lanes.advance(f, lanes.splat(args[2]), lanes.splat(args[3])), kind, args[0], args[1])
        return context.get_dummy_value()

    return types.void(words, types.int64, types.uint64, types.uint64), codegen


@intrinsic
def _window_lanes(typingctx, words, index, weights, q, inverse, out, place):
    """out[place + i] = fingerprint of the len(weights) - 1 words from index + i on, for LANES values of i."""

    def codegen(context, builder, signature, args):
        lanes, kind = _CarrylessVectors(context, builder), signature.args[0]
        even = odd = lanes.constant(0)
        last = signature.args[2].count - 1
        for j in range(last):
            at = builder.add(args[1], ir.Constant(args[1].type, j))
            weight = lanes.splat(builder.extract_value(args[2], j))
            a, b = lanes.products(lanes.load(kind, args[0], at), weight)
            even, odd = builder.xor(even, a), builder.xor(odd, b)
        low, high = lanes.words((even, odd))
        f = builder.xor(high, lanes.advance(low, lanes.splat(args[3]), lanes.splat(args[4])))
        f = builder.xor(f, lanes.splat(builder.extract_value(args[2], last)))
        lanes.store(f, signature.args[5], args[5], args[6])
        return context.get_dummy_value()

    return types.void(words, types.int64, weights, types.uint64, types.uint64, out, types.int64), codegen


@intrinsic
def _column_lanes(typingctx, words, index, width, count, weights, q, inverse, out):
    """out[index + i] = fingerprint of words[index + i + width * j], j < count, for LANES values of i; see `columns`."""

    def codegen(context, builder, signature, args):
        lanes, kind = _CarrylessVectors(context, builder), signature.args[0]
        factors = context.make_array(signature.args[4])(context, builder, args[4]).data
        before = builder.block
        loop, after = builder.append_basic_block("words"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        j, even, odd = builder.phi(args[3].type), builder.phi(lanes.type), builder.phi(lanes.type)
        at = builder.add(args[1], builder.mul(args[2], j))
        weight = lanes.splat(builder.load(builder.gep(factors, [j])))
        a, b = lanes.products(lanes.load(kind, args[0], at), weight)
        sums = builder.xor(even, a), builder.xor(odd, b)
        following = builder.add(j, ir.Constant(j.type, 1))
        for phi, value in ((j, following), (even, sums[0]), (odd, sums[1])):
            phi.add_incoming(ir.Constant(phi.type, None), before)  # 0
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, args[3]), loop, after)
        builder.position_at_end(after)
        low, high = lanes.words(sums)
        f = builder.xor(high, lanes.advance(low, lanes.splat(args[5]), lanes.splat(args[6])))
        lanes.store(f, signature.args[7], args[7], args[1])
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, types.int64, weights, types.uint64, types.uint64, out), codegen


if carryless_products():

    @jit()
    def prepare(q):
        """Return the constants of the modulus x**64 + q for `advance`."""
        return q, barrett(q)

    @jit()
    def advance(f, modulus):
        """f * x**64 modulo p: by Barrett, two carry-less products.

        floor(f * x**64 / p) = f + floor(f * (barrett - x**64) / x**64) exactly, as no carries disturb it.
        """
        q, inverse = modulus
        low, _ = _clmul(f, inverse)
        quotient = f ^ (low << np.uint64(1))
        low, high = _clmul(quotient, q)
        return (high << np.uint64(1)) | (low >> np.uint64(63))

    @jit()
    def advance_block(words, count, modulus):
        """`advance` each of words[:count], in place; up to LANES - 1 words after them are changed too."""
        q, inverse = modulus
        for i in range(0, count, LANES):
            _advance_lanes(words, i, q, inverse)

    @jit("int64, uint64")
    def window_weights(w, q):
        """Return the factors of `window`: x**(64 (w - j) - 1) modulo p for word j, and the fingerprint of w zeros.

        The -1 makes up for the place that a product of two reversed words is off by.
        """
        weights = np.empty(w + 1, np.uint64)
        power = np.uint64(1)  # x**63
        for j in range(w - 1, -1, -1):
            weights[j] = power
            power = multiply(power, q, q)
        weights[w] = times_x(power, q)
        return weights

    @jit()
    def extend(f, words, start, weights, modulus):
        """Extend the fingerprint f by the len(weights) - 1 words from start on, with one reduction."""
        low, high = _clmul(f ^ words[start], weights[0])
        for j in range(1, len(weights) - 1):
            a, b = _clmul(words[start + j], weights[j])
            low ^= a
            high ^= b
        return high ^ advance(low, modulus)

    @jit()
    def window(words, start, weights, modulus):
        """Fingerprint of the len(weights) - 1 words from start on: all products are added, then reduced once.

        The length of `weights`, a tuple, is known to the compiler, which unrolls the loop.
        """
        low, high = np.uint64(0), weights[len(weights) - 1]
        for j in range(len(weights) - 1):
            a, b = _clmul(words[start + j], weights[j])
            low ^= a
            high ^= b
        return high ^ advance(low, modulus)

    @jit()
    def windows(words, start, count, weights, modulus, out, place):
        """out[place + i] = `window` from start + i on, for i < count; LANES windows at once."""
        q, inverse = modulus
        i = 0
        while i + LANES <= count:
            _window_lanes(words, start + i, weights, q, inverse, out, place + i)
            i += LANES
        while i < count:
            out[place + i] = window(words, start + i, weights, modulus)
            i += 1

    @jit()
    def columns(words, width, weights, modulus, out):
        """out[i] = fingerprint of words[i + width * j], j < len(weights) - 1, without a leading 1, for i < width.

        `weights` is that of `window_weights`, an array, and the width a multiple of LANES, which are handled at once.
        """
        q, inverse = modulus
        for i in range(0, width, LANES):
            _column_lanes(words, i, width, len(weights) - 1, weights, q, inverse, out)

else:
    prepare, advance = byte_tables, advance_by_tables

    @jit()
    def advance_block(words, count, modulus):
        """`advance` each of words[:count], in place."""
        for i in range(count):
            words[i] = advance(words[i], modulus)

    @jit("int64, uint64")
    def window_weights(w, q):
        """q, w + 1 times: only their number is used here."""
        return np.full(w + 1, q, np.uint64)

    @jit()
    def extend(f, words, start, weights, modulus):
        """Extend the fingerprint f by the len(weights) - 1 words from start on."""
        for j in range(len(weights) - 1):
            f = advance(f ^ words[start + j], modulus)
        return f

    @jit()
    def window(words, start, weights, modulus):
        """Fingerprint of the len(weights) - 1 words from start on, one reduction each."""
        return extend(weights[0], words, start, weights, modulus)

    @jit()
    def windows(words, start, count, weights, modulus, out, place):
        """out[place + i] = `window` from start + i on, for i < count."""
        for i in range(count):
            out[place + i] = window(words, start + i, weights, modulus)

    @jit()
    def columns(words, width, weights, modulus, out):
        """out[i] = fingerprint of words[i + width * j], j < len(weights) - 1, without a leading 1, for i < width."""
        for i in range(width):
            f = np.uint64(0)
            for j in range(len(weights) - 1):
                f = advance(f ^ words[i + width * j], modulus)
            out[i] = f


def for_widths(signature):
    """Return the signature for windows of 5 words, the default, of 1 to 8 words, and of 12 and 24 letters.

    The word WEIGHTS in it stands for the type of their weights.
    """
    usual, *rare = (signature.replace("WEIGHTS", f"(uint64,) * {w + 1}") for w in (5, 1, 2, 3, 4, 6, 7, 8, 12, 24))
    return usual, *map(Rare, rare)


@cache
def kept_weights(w, q):
    """`window_weights` as the tuple that kernels take, computed once. Kernels are compiled for each number of words."""
    return tuple(window_weights(w, q))


def mixed(z: int) -> int:
    """Return `mix64` of a Python integer modulo 2**64: the definition that `reference` functions share."""
    z %= 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def rabin(data: bytes, q: int) -> int:
    """Rabin fingerprint of `data` modulo x**64 + q, in Python integers: the definition that `reference` functions use.

    A leading 1, then the bytes, then 64 zeros, modulo p (Manasse 2.2 and 3.3). One bit at a time: 8 len(data) steps.
    """
    f = q
    for byte in data:
        f ^= byte
        for _ in range(8):
            f = (f >> 1) ^ (q if f & 1 else 0)
    return f


def rabin_words(words, q: int) -> int:
    """Rabin fingerprint of integers, each taken as 8 little-endian bytes."""
    return rabin(b"".join(int(word).to_bytes(8, "little") for word in words), q)


@jit("uint64[::1]")
def first_primitive(candidates):
    """Index of the first q in `candidates` (uint64) whose x**64 + q is primitive; -1 if none is."""
    for i in range(len(candidates)):
        if is_primitive(candidates[i]):
            return i
    return -1
