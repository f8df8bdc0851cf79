"""Shapes of data on which cost once grew faster than the words read and the pairs found: one generator each."""

from __future__ import annotations

import numpy as np

_SEED = 20000


def sections(number: int, *, num_sections: int = 40, variants: int = 3, words: int = 25) -> list[str]:
    """Return documents that are put together from shared sections: each section is one of a few variants.

    The mean resemblance of two documents is about .2, and no two are near-duplicates at .8.
    """
    random = np.random.default_rng(_SEED)
    shared = [
        [" ".join(f"s{section}v{variant}w{word}" for word in range(words)) for variant in range(variants)]
        for section in range(num_sections)
    ]
    chosen = random.integers(0, variants, (number, num_sections))
    return [" ".join(shared[section][variant] for section, variant in enumerate(row)) for row in chosen.tolist()]


def crowd(number: int, *, words: int = 100, first: int = 0) -> list[str]:
    """Return near-duplicates of one text, each with a number of its own in the middle, from `first` on."""
    text = [f"word{word}" for word in range(words)]
    return [" ".join([*text[: words // 2], str(first + each), *text[words // 2 + 1 :]]) for each in range(number)]


def chain(number: int, *, words: int = 100, step: int = 3, crowded: int = 200) -> list[str]:
    """Return a crowd, and versions of its text: each resembles the version before it, and few others."""
    later = [f"later{word}" for word in range(step * number)]
    text = [f"word{word}" for word in range(words)] + later
    versions = [" ".join(text[step * version : step * version + words]) for version in range(number)]
    return crowd(min(crowded, number), words=words) + versions


def nested_tags(length: int, *, depth: int = 1900, same: int = 4000) -> str:
    """Return HTML of about `length` characters: elements that nest deep, whose long tags differ at the end alone."""
    opened = [f'<a title="{"x" * same}{number}">' for number in range(depth)]
    page = "".join(opened) + "text" + "</a>" * depth
    return page * max(1, length // len(page))


def near_fingerprints(number: int, *, flips: int = 4) -> np.ndarray:
    """Return fingerprints of 64 bits that all lie within `2 * flips` bits of one another."""
    random = np.random.default_rng(_SEED)
    flipped = np.uint64(1) << random.integers(0, 64, (number, flips), np.uint64)
    return random.integers(0, 2**64, 1, np.uint64) ^ np.bitwise_xor.reduce(flipped, axis=1)
