"""The sizes that compressed tables of random words have on average: the format is that of `kernels/_huffman.py`.

Source: Manku, Jain and Das Sarma 2007, section 3.2, whose tables take about half of what words take.
"""

from __future__ import annotations

import math

from neardup_gpu.kernels._huffman import BLOCK_BITS, CODE_BITS, code_lengths


def expected_counts(n: int, bits: int = 64) -> list[float]:
    """How often n random words of some bits, in order, have each symbol: its expectation, exactly.

    Words split at position h wherever, of the words that agree above, some have a 0 there and some a 1. With x = n
    words, d = bits - 1 - h bits above and q = 2**-d, this is so for each of 2**d beginnings with probability 1 - 2 (1 -
    q / 2)**n + (1 - q)**n. Equal to the word before are all others.

    Parameters
    ----------
    n : int
        1 or more.

    Returns
    -------
    list of bits + 1 floats, which add up to n - 1
    """
    splits = []
    for depth in range(bits - 1, -1, -1):
        q = 2.0**-depth
        none = math.exp(n * math.log1p(-q / 2))  # no word with this beginning goes on with a 0: probability
        # 1 - 2 none + (1 - q)**n is (1 - none)**2 + (1 - q)**n - none**2, in which nothing is lost where n q is small
        ratio = -n * math.log1p(q * q / (4 * (1 - q))) if depth else -math.inf  # log of (1 - q)**n / none**2
        both = none**2 * math.expm1(ratio)
        splits.append(2.0**depth * max(0.0, (1 - none) ** 2 + both))
    return [max(0.0, n - 1 - sum(splits)), *splits]


def expected_bits(n: int, bits: int = 64) -> float:
    """Return the mean number of bits of `HuffmanTables` of n random words: blocks, keys and numbers of first words.

    The codes are those of `expected_counts`, without symbols that a table is as likely to lack. Blocks end as in a
    renewal process, as if what successive words take were independent: the word at which a block ends takes E X^2 / E X
    bits, by which it is the likelier to be met, and leaves E X^2 / (2 E X) - 1/2 of them unused.
    """
    counts = expected_counts(n, bits)
    lengths = code_lengths([count if count >= 0.5 else 0 for count in counts]).tolist()
    taken = [length + max(symbol - 1, 0) for symbol, length in enumerate(lengths)]
    total, squares = (sum(c * bits**power for c, bits in zip(counts, taken, strict=True)) for power in (1, 2))
    blocks = 1.0
    if total > CODE_BITS:
        met = squares / total
        more = met - (met / 2 - 0.5)  # a block takes so much less than its room out of the total, and the last one half
        blocks = (total + more) / (CODE_BITS + more) + 0.5
    return blocks * (BLOCK_BITS + 128) + 64
