"""Make the table of what each Unicode code point contributes to tokens, from this Python's unicodedata.

    python tests/support/unicode_data.py kernels/_unicode_table.npz

Python 3.11, whose Unicode is 14, writes the file anew. `_unicode_table` of the kernels describes the table.
"""

from __future__ import annotations

import hashlib
import sys
import unicodedata

import numpy as np

from neardup_gpu.kernels._unicode_table import (
    BORDER,
    DIVIDE,
    INVALID,
    MARK,
    OWN_MARK,
    OWN_SINGLE,
    OWN_WORD,
    SINGLE,
    VANISH,
    WORD,
    Table,
)

UNICODE_VERSION = "14.0.0"

SINGLE_RANGES = (
    (0x0E00, 0x0EFF, "Thai and Lao"),
    (0x1000, 0x109F, "Myanmar"),
    (0x1780, 0x17FF, "Khmer"),
    (0x2E80, 0x2FDF, "Han radicals"),
    (0x3005, 0x3007, "Han iteration mark, closing mark and zero"),
    (0x3021, 0x3029, "Hangzhou numerals"),
    (0x3031, 0x3035, "vertical kana repeat marks"),
    (0x3038, 0x303C, "Hangzhou numerals, vertical iteration mark, masu mark"),
    (0x3040, 0x30FF, "Hiragana and Katakana"),
    (0x31F0, 0x31FF, "Katakana phonetic extensions"),
    (0x3400, 0x4DBF, "Han extension A"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA9E0, 0xA9FF, "Myanmar extended B"),
    (0xAA60, 0xAA7F, "Myanmar extended A"),
    (0xF900, 0xFAFF, "Han compatibility"),
    (0x1AFF0, 0x1B16F, "Kana extensions and supplement"),
    (0x20000, 0x323AF, "Han extensions B to H"),
)
"""Scripts written without spaces: each letter or number there, with its marks, is a token."""

IGNORABLE_RANGES = (
    (0x034F, 0x034F, "combining grapheme joiner"),
    (0x115F, 0x1160, "Hangul fillers"),
    (0x17B4, 0x17B5, "Khmer inherent vowels"),
    (0x180B, 0x180F, "Mongolian variation selectors and vowel separator"),
    (0x2060, 0x206F, "invisible operators, reserved"),
    (0x3164, 0x3164, "Hangul filler"),
    (0xFE00, 0xFE0F, "variation selectors"),
    (0xFFA0, 0xFFA0, "halfwidth Hangul filler"),
    (0xFFF0, 0xFFF8, "reserved"),
    (0xE0000, 0xE0FFF, "tags, variation selectors, reserved"),
)
"""Code points that are not shown unless a font knows better: Default_Ignorable_Code_Point of Unicode 14 (Unicode
Standard Annex 44, 5.2), without those of category Cf, which vanish anyway."""


def classify(character: str) -> int:
    """Class of one code point of folded text, by its category and script; invisible characters vanish."""
    category, code = unicodedata.category(character), ord(character)
    if category == "Cf" or any(first <= code <= last for first, last, _ in IGNORABLE_RANGES):
        return VANISH
    if category[0] in "LN" or character == "_":
        return SINGLE if any(first <= code <= last for first, last, _ in SINGLE_RANGES) else WORD
    if category[0] == "M":
        return MARK
    return DIVIDE


def _items(character: str) -> list[tuple[int, int, bytes]]:
    """(combining class, class, folded UTF-8) of what one code point becomes, neighbours that always stand together
    joined."""
    items: list[tuple[int, int, bytes]] = []
    for part in unicodedata.normalize("NFKD", character):
        combining = unicodedata.combining(part)
        for folded in unicodedata.normalize("NFKD", part.casefold()):
            kind = classify(folded)
            spelling = folded.encode() if kind in (WORD, SINGLE, MARK) else b""
            if items and combining == 0 == items[-1][0] and kind in (WORD, MARK) and items[-1][1] == WORD:
                items[-1] = (0, WORD, items[-1][2] + spelling)
            else:
                items.append((combining, kind, spelling))
    return items


def build() -> Table:
    """Derive the table from this Python's unicodedata, which must be of `UNICODE_VERSION`."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise RuntimeError(
            f"the table is made from Unicode {UNICODE_VERSION}, this Python has {unicodedata.unidata_version}"
        )
    numbers: dict[tuple, int] = {((0, DIVIDE, b""),): 0, ((0, VANISH, b""),): 1}
    spelled_out: list[tuple] = [((0, DIVIDE, b""),), ((0, VANISH, b""),), (), (), ()]
    sequence = np.zeros(0x110000, np.uint16)
    widest = np.zeros(0x110000 >> 6, np.uint8)
    for code in range(0x110000):
        character = chr(code)
        own = character.encode("utf-8", "surrogatepass")
        if 0xD800 <= code < 0xE000:
            if code != BORDER and not INVALID + 0x80 <= code <= INVALID + 0xFF:
                continue
            items: tuple = ((0, SINGLE if code == BORDER else WORD, own),)
        else:
            items = tuple(_items(character))
        stands_for_itself = not INVALID + 0x80 <= code <= INVALID + 0xFF  # an invalid byte is one byte in the text
        if stands_for_itself and len(items) == 1 and items[0][0] == 0 and items[0][2] == own:
            sequence[code] = {WORD: OWN_WORD, SINGLE: OWN_SINGLE, MARK: OWN_MARK}[items[0][1]]
            widest[code >> 6] = max(widest[code >> 6], len(own) + 2)
            continue
        if items not in numbers:
            numbers[items] = len(spelled_out)
            spelled_out.append(items)
        sequence[code] = numbers[items]
        widest[code >> 6] = max(widest[code >> 6], sum(len(spelling) + 1 for _, _, spelling in items) + 1)
    assert len(spelled_out) < 2**16
    flat = [item for items in spelled_out for item in items]
    blocks, page = np.unique(sequence.reshape(-1, 256), axis=0, return_inverse=True)
    return Table(
        widest=widest,
        page=page.reshape(-1).astype(np.uint16),
        sequence=blocks,
        starts=np.cumsum([0, *(len(items) for items in spelled_out)]).astype(np.uint32),
        combining=np.array([item[0] for item in flat], np.uint8),
        kinds=np.array([item[1] for item in flat], np.uint8),
        spelled=np.cumsum([0, *(len(item[2]) for item in flat)]).astype(np.uint32),
        spelling=np.frombuffer(b"".join(item[2] for item in flat), np.uint8),
    )


def digest(table: Table) -> str:
    """Hash of the table's contents: part of every recipe."""
    state = hashlib.sha256()
    for array in table:
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:16]


if __name__ == "__main__":
    table = build()
    np.savez_compressed(sys.argv[1], **table._asdict())
    print(f"{len(table.starts) - 1} sequences, DIGEST = {digest(table)!r}")
