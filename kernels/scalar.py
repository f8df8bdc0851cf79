"""The arithmetic, written once: SplitMix64, Rabin fingerprints over GF(2), and their constants.

A polynomial of degree below 64 is a uint64 with the coefficient of x**63 in its lowest bit (Manasse 3.3), so that text
read as little-endian words is a polynomial as it lies in memory. A modulus p = x**64 + q is written as q alone.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .launch import CARRYLESS_MULTIPLY, jit

ONE = np.uint64(1 << 63)
"""The polynomial 1."""


@jit()
def mix64(z):
    """SplitMix64's finaliser: a permutation of the 64-bit integers (Steele, Lea and Flood 2014)."""
    z = np.uint64(z)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit()
def times_x(a, q):
    """a * x modulo x**64 + q."""
    return (a >> np.uint64(1)) ^ (q if a & np.uint64(1) else np.uint64(0))


@jit()
def multiply(a, b, q):
    """a * b modulo x**64 + q, one bit at a time: for constants, not for data (64 steps)."""
    product = np.uint64(0)
    for i in range(64):
        if (b << np.uint64(i)) & np.uint64(1 << 63):
            product ^= a
        a = times_x(a, q)
    return product


@jit()
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


@jit()
def _byte_tables(q):
    """t[256 * i + v] = v * x**(64 + 8 * i) modulo p, for byte i counted from the highest: 16 kB, eight look-ups a word."""
    tables = np.zeros(2048, np.uint64)
    power = q  # x**64
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


if CARRYLESS_MULTIPLY:

    @jit()
    def prepare(q):
        """What `advance` needs to know of the modulus x**64 + q."""
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

else:

    @jit()
    def prepare(q):
        """What `advance` needs to know of the modulus x**64 + q."""
        return _byte_tables(q)

    @jit()
    def advance(f, modulus):
        """f * x**64 modulo p: by eight look-ups."""
        result = np.uint64(0)
        for byte in range(8):
            shift = np.uint64(56 - 8 * byte)
            result ^= modulus[256 * byte + np.int64((f >> shift) & np.uint64(0xFF))]
        return result


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


@jit()
def first_primitive(candidates):
    """Index of the first q in `candidates` (uint64) whose x**64 + q is primitive; -1 if none is."""
    for i in range(len(candidates)):
        if is_primitive(candidates[i]):
            return i
    return -1
