"""Rabin fingerprints and their arithmetic against polynomials as Python integers.

Numbers in brackets are sections of Manasse's book.
"""

import numpy as np
import pytest
import witnesses
from grids import fewer
from hypothesis import given, settings, strategies as st
from witnesses import bits_of, fingerprint, minimal_polynomial, modulus, power, product, remainder, reverse

from neardup_gpu import definitions
from neardup_gpu.kernels import _gf2 as scalar

KNOWN_PRIMITIVE = 1 << 64 | 0b11011  # x**64 + x**4 + x**3 + x + 1 (Zierler and Brillhart's tables)
Q = reverse(KNOWN_PRIMITIVE ^ 1 << 64)
PRIMES = (3, 5, 17, 257, 641, 65537, 6700417)
EVERY = 2**64 - 1

WORDS = st.one_of(st.sampled_from([0, 1, 2, 2**63, EVERY]), st.integers(0, EVERY))
MODULI = st.one_of(st.just(Q), st.integers(0, EVERY).map(lambda q: q | 1 << 63))
BYTES = st.binary(max_size=24)


def test_the_book_s_vector():
    """2.2: "A" under x**8 + x**4 + x**3 + x**2 + 1 is x**6 + x."""
    assert witnesses.rabin(f"{ord('A'):08b}", 0b100011101) == 1 << 6 | 1 << 1


@settings(deadline=None)
@given(BYTES, MODULI)
def test_the_definition_is_that_of_the_book(data, q):
    assert scalar.rabin(data, q) == fingerprint(data, q) == witnesses.rabin_hasher(q)(data)


def test_degree_64_by_hand():
    """Nothing: x**64 mod p. One byte 0x80, which is the polynomial 1: x**72 + x**64 mod p."""
    assert scalar.rabin(b"", Q) == Q
    assert scalar.rabin(b"\x80", Q) == reverse(0b11011 << 8 ^ 0b11011)
    assert scalar.rabin(b"\x00", Q) == reverse(0b11011 << 8)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=6), MODULI)
def test_words_are_eight_little_endian_bytes(words, q):
    assert scalar.rabin_words(words, q) == fingerprint(np.array(words, "<u8").tobytes(), q)


@settings(deadline=None)
@given(BYTES, BYTES, MODULI)
def test_extension(start, end, q):
    """3.3: a fingerprint is extended from itself alone: f(AB) = (f(A) x**|B| + B x**64) mod p."""
    p, shift = modulus(q), 8 * len(end)
    before = reverse(scalar.rabin(start, q))
    after = remainder(before << shift, p) ^ remainder(int(bits_of(end) or "0", 2) << 64, p)
    assert reverse(scalar.rabin(start + end, q)) == after


@settings(deadline=None)
@given(BYTES, BYTES, MODULI)
def test_concatenation(start, end, q):
    """2.2: f(AB) from f(A), f(B) and |B|: (f(A) + x**64) x**|B| + f(B), as both begin with a 1."""
    p, shift = modulus(q), power(2, 8 * len(end), modulus(q))
    a, b, empty = (reverse(scalar.rabin(data, q)) for data in (start, end, b""))
    assert reverse(scalar.rabin(start + end, q)) == product(a ^ empty, shift, p) ^ b


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=30), st.integers(1, 8), MODULI)
def test_sliding(data, width, q):
    """2.2: a window moves by one byte in constant time: the old byte's term is taken off, the new one extends."""
    p = modulus(q)
    width = min(width, len(data))
    byte = {v: remainder(int(bits_of(bytes([v])), 2) << 64, p) for v in range(256)}
    out = power(2, 8 * width, p)  # what the leaving byte has been multiplied by after the new one came in
    lead, next_lead = (remainder(1 << 64 + 8 * n, p) for n in (width, width + 1))
    f = reverse(scalar.rabin(data[:width], q))
    for i in range(width, len(data)):
        f = remainder(f << 8, p) ^ byte[data[i]] ^ product(byte[data[i - width]], out, p) ^ next_lead ^ lead
        assert reverse(scalar.rabin(data[i - width + 1 : i + 1], q)) == f


@settings(deadline=None)
@given(st.integers(0, 20).flatmap(lambda n: st.tuples(*[st.binary(min_size=n, max_size=n)] * 3)), MODULI)
def test_linearity(texts, q):
    """2.2: over texts of one length, f(A + B + C) = f(A) + f(B) + f(C)."""
    a, b, c = texts
    together = bytes(x ^ y ^ z for x, y, z in zip(a, b, c, strict=True))
    f = [scalar.rabin(text, q) for text in (together, a, b, c)]
    assert f[0] == f[1] ^ f[2] ^ f[3]


@settings(max_examples=fewer(300), deadline=None)
@given(WORDS, MODULI)
def test_advance_multiplies_by_x_to_the_64(f, q):
    """By carry-less products or by tables, as NEARDUP_CLMUL says."""
    advanced = scalar.advance(np.uint64(f), scalar.prepare(np.uint64(q)))
    assert reverse(int(advanced)) == remainder(reverse(f) << 64, modulus(q))


@settings(max_examples=fewer(300), deadline=None)
@given(WORDS, WORDS, MODULI)
def test_products_and_powers(a, b, q):
    p = modulus(q)
    assert reverse(int(scalar.multiply(np.uint64(a), np.uint64(b), np.uint64(q)))) == product(reverse(a), reverse(b), p)
    assert reverse(int(scalar.times_x(np.uint64(a), np.uint64(q)))) == remainder(reverse(a) << 1, p)
    assert reverse(int(scalar.power_of_x(np.uint64(a), np.uint64(q)))) == power(2, a, p)


def is_primitive(p):
    """Whether x has order 2**64 - 1 modulo p, by its definition."""
    return power(2, EVERY, p) == 1 and all(power(2, EVERY // f, p) != 1 for f in PRIMES)


def test_the_order_s_prime_factors():
    assert np.prod([int(f) for f in PRIMES], dtype=object) == EVERY
    assert all(f % d for f in PRIMES for d in range(2, int(f**0.5) + 1))


def test_primitivity():
    assert is_primitive(KNOWN_PRIMITIVE)
    assert scalar.is_primitive(np.uint64(Q))


@pytest.mark.parametrize("factor", PRIMES)
def test_irreducible_polynomials_of_smaller_order_are_not_primitive(factor):
    """x**factor has order (2**64 - 1) / factor, and so has x modulo its minimal polynomial."""
    p = minimal_polynomial(power(2, factor, KNOWN_PRIMITIVE), KNOWN_PRIMITIVE)
    assert p.bit_length() == 65  # in no smaller field
    assert power(2, EVERY // factor, p) == 1
    assert not scalar.is_primitive(np.uint64(reverse(p ^ 1 << 64)))


def test_the_minimal_polynomial_of_another_generator_is_primitive():
    p = minimal_polynomial(power(2, 7, KNOWN_PRIMITIVE), KNOWN_PRIMITIVE)
    assert p != KNOWN_PRIMITIVE
    assert scalar.is_primitive(np.uint64(reverse(p ^ 1 << 64)))


@pytest.mark.parametrize(
    "p",
    [
        1 << 64,  # x**64
        1 << 64 | 1,  # (x + 1)**64
        1 << 64 | 0b11010,  # divisible by x
        1 << 64 | 0b1111,  # an even number of terms: divisible by x + 1
        KNOWN_PRIMITIVE ^ 1,
        (1 << 65) - 1,  # 1 + x + ... + x**64, divides x**65 - 1
    ],
)
def test_reducible_polynomials_are_not_primitive(p):
    assert not scalar.is_primitive(np.uint64(reverse(p & EVERY)))


@settings(max_examples=fewer(60), deadline=None)
@given(st.integers(0, EVERY))
def test_primitivity_as_the_witness_says(q):
    assert scalar.is_primitive(np.uint64(q)) == is_primitive(modulus(q))


@pytest.mark.parametrize(
    "use", ["tokens", "shingles", "bags", "supershingles", "pair keys", "documents 0", "documents 1"]
)
def test_drawn_polynomials_are_primitive(use):
    assert is_primitive(modulus(definitions.polynomial(1, use)))
