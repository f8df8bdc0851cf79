"""The definitions a second time, in plain Python: text by `unicodedata`, polynomials over GF(2) by integers.

No table, no kernel and no NumPy is used here, so that an error has to be made twice to go unseen.
"""

from __future__ import annotations

import unicodedata
from functools import cache

WITHOUT_SPACES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "HIRAGANA",
    "KATAKANA",
    "HENTAIGANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "HANGZHOU NUMERAL",
    "CJK RADICAL",
    "KANGXI RADICAL",
    "IDEOGRAPHIC ITERATION MARK",
    "IDEOGRAPHIC CLOSING MARK",
    "IDEOGRAPHIC NUMBER ZERO",
    "VERTICAL IDEOGRAPHIC ITERATION MARK",
    "MASU MARK",
    "VERTICAL KANA REPEAT",
)
"""How the names of letters and numbers begin in the scripts of design.md that are written without spaces."""


INVISIBLE = (
    "COMBINING GRAPHEME JOINER",
    "HANGUL CHOSEONG FILLER",
    "HANGUL JUNGSEONG FILLER",
    "HANGUL FILLER",
    "HALFWIDTH HANGUL FILLER",
    "KHMER VOWEL INHERENT",
    "MONGOLIAN FREE VARIATION SELECTOR",
    "VARIATION SELECTOR-",
)
"""How the names of default-ignorable code points begin that are no format characters (category Cf)."""


def invisible(character: str) -> bool:
    """Whether a code point is default-ignorable or of category Cf; the unassigned ones are reserved by their block."""
    if unicodedata.category(character) == "Cn":
        return character == "\u2065" or "\ufff0" <= character <= "\ufff8" or 0xE0000 <= ord(character) <= 0xE0FFF
    return unicodedata.category(character) == "Cf" or unicodedata.name(character, "").startswith(INVISIBLE)


BORDER = "\udc00"
"""How `decoded` reads the bytes ED B0 80, a border between columns."""


def decoded(raw: bytes) -> str:
    """Bytes as `token_strings` takes them: an invalid byte is a surrogate, as is a border."""
    return BORDER.join(part.decode("utf-8", "surrogateescape") for part in raw.split(b"\xed\xb0\x80"))


@cache
def kind(character: str) -> str:
    """What one code point of folded text does: "word", "single", "mark", "vanish" or "divide"."""
    if character == BORDER or "\udc80" <= character <= "\udcff":
        return "single" if character == BORDER else "word"
    category = unicodedata.category(character)
    if invisible(character):
        return "vanish"
    if category[0] in "LN" or character == "_":
        name = unicodedata.name(character, "")
        return "single" if name.startswith(WITHOUT_SPACES) else "word"
    if category[0] == "M":
        return "mark"
    return "divide"


def fold(text: str) -> str:
    """t = NFKD(text), then each code point c of t becomes NFKD(casefold(c))."""
    return "".join(unicodedata.normalize("NFKD", c.casefold()) for c in unicodedata.normalize("NFKD", text))


def token_strings(text: str) -> list[str]:
    """Tokens of a text as design.md defines them."""
    tokens: list[str] = []
    before = "divide"  # what the last character that counts was
    for character in fold(text):
        this = kind(character)
        if this == "vanish":
            continue
        if (this == "mark" and before != "divide") or (this == "word" and before == "word"):
            tokens[-1] += character
        elif this in ("word", "single"):
            tokens.append(character)
            before = this
        else:
            before = "divide"
    return [] if all(token.startswith(BORDER) for token in tokens) else tokens


def token_places(raw: bytes) -> list[tuple[str, int, int]]:
    """Tokens of a document, each with the first and the last byte (exclusive) of its code points.

    Each character of NFKD(text) keeps the place of the code point that it comes from.
    """
    placed: list[tuple[str, int, int]] = []
    end = 0
    for character in decoded(raw):
        begin, end = (
            end,
            end + (1 if "\udc80" <= character <= "\udcff" else len(character.encode("utf8", "surrogatepass"))),
        )
        for part in unicodedata.normalize("NFKD", character):
            at = len(placed)  # canonical order: a mark goes before marks of higher classes
            while (
                unicodedata.combining(part)
                and at
                and unicodedata.combining(placed[at - 1][0]) > unicodedata.combining(part)
            ):
                at -= 1
            placed.insert(at, (part, begin, end))
    assert "".join(part for part, _, _ in placed) == unicodedata.normalize("NFKD", decoded(raw))
    tokens: list[tuple[str, int, int]] = []
    before = "divide"
    for part, begin, end in placed:
        for folded in unicodedata.normalize("NFKD", part.casefold()):
            this = kind(folded)
            if (this == "mark" and before != "divide") or (this == "word" and before == "word"):
                token, first, last = tokens[-1]
                tokens[-1] = token + folded, min(first, begin), max(last, end)
            elif this in ("word", "single"):
                tokens.append((folded, begin, end))
                before = this
            elif this == "divide":
                before = this
    return [] if all(token.startswith(BORDER) for token, _, _ in tokens) else tokens


def shingle_set(text: str, w: int = 5) -> set[tuple[str, ...]]:
    """Shingles of a text, as tuples of strings."""
    tokens = token_strings(text)
    return {tuple(tokens[i : i + w]) for i in range(max(1, len(tokens) - w + 1))} if tokens else set()


def jaccard(a: set, b: set) -> float:
    """|A n B| / |A u B|, by which the expected resemblance of every test is computed."""
    return len(a & b) / len(a | b)


def greedy(num_rows: int, pairs: list[tuple[int, int]]) -> list[bool]:
    """Which rows stay, in order: a row goes exactly when it has a pair with an earlier one that stayed."""
    neighbours: dict[int, set[int]] = {}
    for a, b in pairs:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    kept: list[bool] = []
    for row in range(num_rows):
        kept.append(not any(other < row and kept[other] for other in neighbours.get(row, ())))
    return kept


# Polynomials over GF(2): bit i of an integer is the coefficient of x**i.


def remainder(a: int, p: int) -> int:
    """a modulo p."""
    degree = p.bit_length()
    while a.bit_length() >= degree:
        a ^= p << (a.bit_length() - degree)
    return a


def product(a: int, b: int, p: int) -> int:
    """a b modulo p."""
    total = 0
    while b:
        total ^= a if b & 1 else 0
        a = remainder(a << 1, p)
        b >>= 1
    return total


def power(a: int, exponent: int, p: int) -> int:
    """a**exponent modulo p."""
    total = 1
    while exponent:
        total = product(total, a, p) if exponent & 1 else total
        a = product(a, a, p)
        exponent >>= 1
    return total


def rabin(bits: str, p: int) -> int:
    """Rabin fingerprint of bits, highest power first: a leading 1, the bits, as many zeros as p's degree."""
    return remainder(int("1" + bits, 2) << (p.bit_length() - 1), p)


def bits_of(data: bytes) -> str:
    """Bytes as bits, each byte's lowest first (its lowest bit is its highest power)."""
    return "".join(f"{byte:08b}"[::-1] for byte in data)


def reverse(word: int, width: int = 64) -> int:
    """A polynomial of degree below 64 as `scalar` stores it, and back: x**63 in the lowest bit."""
    return int(f"{word:0{width}b}"[::-1], 2)


def modulus(q: int) -> int:
    """The polynomial x**64 + q for a q as `scalar` stores it."""
    return 1 << 64 | reverse(int(q))


def fingerprint(data: bytes, q: int) -> int:
    """Rabin fingerprint of bytes modulo x**64 + q, as `scalar` stores it."""
    return reverse(rabin(bits_of(data), modulus(q)))


def minimal_polynomial(beta: int, p: int) -> int:
    """The polynomial of smallest degree with the root beta in GF(2)[x] / p: the product of (X + beta**(2**i))."""
    conjugates = [beta]
    while (following := product(conjugates[-1], conjugates[-1], p)) != beta:
        conjugates.append(following)
    coefficients = [1]  # of X**0 and up, each in GF(2)[x] / p
    for root in conjugates:
        shifted = [0, *coefficients]
        scaled = [*(product(root, c, p) for c in coefficients), 0]
        coefficients = [a ^ b for a, b in zip(shifted, scaled, strict=True)]
    assert set(coefficients) <= {0, 1}
    return sum(c << i for i, c in enumerate(coefficients))


def rabin_hasher(q: int):
    """A function from bytes to `fingerprint(data, q)`, by a table of 256: for many short strings."""
    table = []
    for f in range(256):
        for _ in range(8):
            f = f >> 1 ^ (int(q) if f & 1 else 0)
        table.append(f)

    @cache
    def hasher(data: bytes) -> int:
        f = int(q)
        for byte in data:
            f = f >> 8 ^ table[(f ^ byte) & 255]
        return f

    return hasher
