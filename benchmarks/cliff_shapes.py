"""Shapes of data on which cost once grew faster than the words read and the pairs found: a generator for each.

A generator that returns an iterator yields the texts of at most 50,000 documents at a time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from .measure import SHUFFLE_SEED

PART = 50_000  # documents that are made at a time


def _in_parts(size: int, make: Callable[[np.random.Generator, int], list[str]]) -> Iterator[list[str]]:
    random = np.random.default_rng(SHUFFLE_SEED)
    for first in range(0, size, PART):
        yield make(random, min(PART, size - first))


def sections(size: int) -> Iterator[list[str]]:
    """Documents of 40 sections, each in one of 3 variants of 25 words: contracts, licences, generated pages."""
    variants = [[" ".join(f"s{i}v{j}w{k}" for k in range(25)) for j in range(3)] for i in range(40)]

    def make(random: np.random.Generator, number: int) -> list[str]:
        drawn = random.integers(0, 3, (number, 40))
        return [" ".join(variants[i][j] for i, j in enumerate(row)) for row in drawn.tolist()]

    return _in_parts(size, make)


def sentences(size: int) -> Iterator[list[str]]:
    """Sentences of 4 to 40 words, whose frequencies are those of a natural language (Zipf's law)."""

    def make(random: np.random.Generator, number: int) -> list[str]:
        lengths = random.integers(4, 41, number)
        words = np.minimum(random.zipf(1.3, int(lengths.sum())), 20_000).astype(str).tolist()
        ends = np.cumsum(lengths).tolist()
        return [" ".join(words[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]

    return _in_parts(size, make)


def man_page_sentences(size: int) -> Iterator[list[str]]:
    """Sentences of the corpus manpages, which the variable NEARDUP_CORPORA leads to."""
    table = pq.read_table(Path(os.environ.get("NEARDUP_CORPORA", "corpora"), "manpages.parquet"), columns=["text"])
    texts = [each for text in table["text"].to_pylist() for each in re.split(r"(?<=[.!?])\s+", text)]
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(texts))[:size].tolist()
    for first in range(0, len(order), PART):
        yield [texts[row] for row in order[first : first + PART]]


def few_words(size: int) -> Iterator[list[str]]:
    """Texts of 1 to 3 words out of 3,000: names, titles, keys of records."""

    def make(random: np.random.Generator, number: int) -> list[str]:
        lengths = random.integers(1, 4, number).tolist()
        drawn = random.integers(0, 3_000, (number, 3)).tolist()
        return [" ".join(f"w{word}" for word in row[:length]) for row, length in zip(drawn, lengths, strict=True)]

    return _in_parts(size, make)


def windows(size: int, length: int = 2_000) -> Iterator[list[str]]:
    """Yield windows of `length` words of one text; each window begins one word after the window before it."""
    words = [f"w{i}" for i in range(size + length)]
    for first in range(0, size, 1_000):
        yield [" ".join(words[i : i + length]) for i in range(first, min(size, first + 1_000))]


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


def growing_files(size: int, *, words: int = 20) -> Iterator[list[str]]:
    """Yield the states of files that grow by a word at a time, 50 files in turn: each state contains earlier ones."""
    for first in range(0, size, 1_000):
        states = (divmod(each, 50) for each in range(first, min(size, first + 1_000)))
        yield [" ".join(f"f{file}w{word}" for word in range(words + age)) for age, file in states]


def short_texts(size: int) -> Iterator[list[str]]:
    """Yield texts of 30 words that are unlike one another, except that every tenth text is a copy with another word."""

    def make(random: np.random.Generator, number: int) -> list[str]:
        drawn = random.integers(0, 100_000, (number, 30))
        drawn[9::10, :-1] = drawn[8::10, :-1][: len(drawn[9::10])]
        return [" ".join(map("w{}".format, row)) for row in drawn.tolist()]

    return _in_parts(size, make)


def nested_tags(length: int, *, depth: int = 1900, same: int = 4000) -> str:
    """Return HTML of about `length` characters: elements that nest deep, whose long tags differ at the end alone."""
    opened = [f'<a title="{"x" * same}{number}">' for number in range(depth)]
    page = "".join(opened) + "text" + "</a>" * depth
    return page * max(1, length // len(page))


def nested_pages(number: int) -> list[str]:
    """Return pages of `nested_tags`, about 8 MB each."""
    return [nested_tags(0)] * number


def near_fingerprints(number: int, *, flips: int = 4) -> np.ndarray:
    """Return fingerprints of 64 bits that all lie within `2 * flips` bits of one another."""
    random = np.random.default_rng(SHUFFLE_SEED)
    flipped = np.uint64(1) << random.integers(0, 64, (number, flips), np.uint64)
    return random.integers(0, 2**64, 1, np.uint64) ^ np.bitwise_xor.reduce(flipped, axis=1)
