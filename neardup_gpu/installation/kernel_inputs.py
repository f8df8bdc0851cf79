"""Which kernels there are, and how the inputs of each are drawn.

A kernel is a file of kernels/ whose name has no leading underscore; it is found by itself. `INPUTS` has a generator for
each: a function of a `Draw` and of a size, which is about the number of values (tokens: bytes; pair tables and
clusterings: rows; tables of fingerprints: words) that go in. The self-test, the tests of agreement and the fixed cases
of the GPU's tests all draw from it, each by a `Draw` of its own: a new kernel needs one generator, and no other list.

Inputs hold what breaks ragged code: no rows, empty first and last rows, one giant row, values before the first row and
after the last, repeated and extreme fingerprints.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from ..data import Ragged
from ..engine.host import HostRuntime
from ..kernels._bounds import least_overlaps, least_shares
from ..kernels.bottomk import EMPTY
from ..methods._modules import kernels
from ..stages.joining import PostingsIndex, SetCollector
from ..text import comments

T = TypeVar("T")

EXTREMES = (0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
"""Words at which arithmetic goes wrong first."""

FEW = 1 << 14
"""Values up to which inputs are as odd as they can be; larger ones are as in use, for their time to mean something."""

CHARACTERS = (
    "aZ09_ -.'\n\0\x7f"
    "ßſİıŉΣςΐǰﬁﬃ½²ªµÅÅ"  # case folding and compatibility
    "éé̂̀\u0301\u0300\u0323\u0327\u0345\u0315\u05b0\u05bc\u0651\u064b"  # marks, in and out of canonical order
    "각힣\u1100\u1161\u11a8ㄱﾡ"  # Hangul: syllables, letters, compatibility letters
    "漢字仮名かなカナｶﾞ々〆㍿豈"  # Han, Hiragana, Katakana
    "ไทยที่กำລາວຳខ្មែរမြန်မာ"  # Thai, Lao, Khmer, Myanmar
    "हिन्दीالعَرَبِيَّةﷺעִבְרִית"
    "\u00ad\u200b\u200c\u200d\u2060\ufeff\U000e0041"  # format characters
    "😀👩‍👩‍👧🇫🇷\ufe0f\U0001d400\U00010400\U0002f800\ufffd\uffff\U0010ffff"
)
"""Characters that fold, decompose, reorder, join, vanish or stand alone."""

ILL_FORMED = (b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80")
"""Bytes that are not UTF-8, and how they may be cut or overlong."""

BORDERS = (
    b"one\xed\xb0\x80\ntwo\xed\xb0\x80three \xed\xb0\x80\xcc\x81 \xed\xc2\xad\xb0\x80 \xc3\xc2\xad\xa9 \xed\xb0 \xd6l "
)
"""Borders between columns, one with a mark; bytes that a soft hyphen divides; half a border; a word in Latin-1."""

PIECES = (
    "Straße ΣΊΣΥΦΟΣ été ﬁn ½ x² e\u0301 o\u0323\u0302 漢字かなカナ ไทย हिन्दी العَرَبِيَّة 한국어 ﷺ \u00ad \u200b 😀 a_b "
)
"""Words of many scripts."""


ELEMENTS = (
    *("div", "p", "b", "a", "font", "table", "tr", "td", "th", "caption", "li", "ul", "select", "option", "svg"),
    *("math", "desc", "title", "foreignObject", "mi", "path", "style", "script", "textarea", "xmp", "noembed"),
    *("noscript", "iframe", "noframes", "template", "datalist", "plaintext", "br", "hr", "form", "x"),
    *("annotation-xml", "x-long-name-y"),
)
"""Elements that a page may do something with, and some that it does not."""

MARKUP = (
    *("<!--", "-->", "--!>", "--", "<!-->", "<!--->", "<!doctype html>", "<![CDATA[", "]]>", "<?x", "</", "<", ">"),
    *("/>", " a='>'", ' b="<p>"', " c=d/", " =", "=", " ", "\t", "\n", "\r", "\f", "'", '"', "/", "\0", "</ >", "</>"),
    *("<!>", "&amp;", "&lt", "&notit;", "&notin;", "&nGt;", "&CounterClockwiseContourIntegral;", "&#65;", "&#x1F600"),
    *("&#0;", "&#128;", "&#xD800;", "&#99999999999999999999;", "&", "&#", "&#x;", "&a", "&hellip;", "é", "漢字", "😀"),
    "word ",
)
"""Pieces of markup, whole and broken."""


def _names() -> list[str]:
    """Return the names of all kernels."""
    found = pkgutil.iter_modules(importlib.import_module("neardup_gpu.kernels").__path__)
    return sorted(info.name for info in found if not info.name.startswith("_"))


@cache
def kernel_modules(backend: str = "reference") -> dict[str, ModuleType]:
    """{kernel: its module}, of every kernel that has the backend; all have "reference" and "cpu"."""
    modules = {name: importlib.import_module(f"neardup_gpu.kernels.{name}") for name in _names()}
    return {name: module for name, module in modules.items() if backend == "reference" or hasattr(module, backend)}


class Draw:
    """The source of a generator's choices: here, a random generator of NumPy.

    Tests draw otherwise, by methods of the same names: by Hypothesis, which looks for the smallest input that fails, or
    so that each option is taken once.

    Parameters
    ----------
    random : numpy.random.Generator
        What arrays are filled from.
    """

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def option(self, options: Sequence[T]) -> T:
        """One of the settings that a kernel may run with."""
        return options[int(self.random.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.random.integers(low, high, endpoint=True))

    def chance(self) -> bool:
        """True half of the time."""
        return bool(self.random.integers(2))

    def modulus(self) -> np.uint64:
        """A polynomial for Rabin fingerprints."""
        return self.random.integers(1 << 63, 2**64, dtype=np.uint64)

    def salt(self) -> np.uint64:
        """A word that changes what elements are mixed to."""
        return self.random.integers(0, 2**64 - 1, dtype=np.uint64)

    def words(self, num_values: int) -> np.ndarray:
        """Fingerprints, a third of them more than once, some of them extreme. A few of them may be nearly alike."""
        random = self.random
        values = random.integers(0, 2**64, num_values, np.uint64)
        again = random.random(num_values) < 1 / 3
        values[again] = values[random.integers(0, max(1, num_values), int(again.sum()))]
        if num_values <= FEW:
            crowded = random.random(num_values) < random.choice([0.0, 0.5, 1.0])
            values[crowded] &= np.uint64(random.choice(np.array([7, 2**32 - 1, 15 << 60], np.uint64)))
        some = random.integers(0, max(1, num_values), min(num_values, len(EXTREMES)))
        values[some] = np.array(EXTREMES, np.uint64)[: len(some)]
        return values

    def offsets(self, num_values: int, mean: int) -> np.ndarray:
        """Rows of about `mean` values, some empty, also at both ends, one with a tenth of all values; or no rows."""
        random = self.random
        cuts = random.integers(0, num_values + 1, max(1, num_values // mean))
        tenth = random.integers(0, num_values - num_values // 10 + 1)
        cuts = np.sort(cuts[(cuts <= tenth) | (cuts >= tenth + num_values // 10)])
        return np.concatenate([cuts[:1], cuts, cuts[-1:]]).astype(np.int64) if len(cuts) else np.zeros(1, np.int64)

    def text(self, num_bytes: int) -> np.ndarray:
        """UTF-8 text of about `num_bytes` bytes, mostly ASCII words, with a few bytes that are not UTF-8."""
        random = self.random
        letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_", np.uint8)
        text = letters[random.integers(0, len(letters), min(num_bytes, 1 << 20))]
        text[random.random(len(text)) < 0.17] = ord(" ")
        characters = [*map(str.encode, CHARACTERS), *ILL_FORMED]
        shuffled = b"".join(characters[i] for i in random.permutation(len(characters)))
        odd = np.frombuffer(PIECES.encode() + b"\xc3 \xed\xa0\x80 \xf0\x9f " + BORDERS + shuffled, np.uint8)
        apart = int(random.choice([60, 1000])) if num_bytes <= FEW else 1000
        text = _strewn(random, text, len(text) // apart + 1, odd, len(odd))
        return np.resize(text, num_bytes)


def _strewn(random: np.random.Generator, values: np.ndarray, number: int, pieces: np.ndarray, most: int) -> np.ndarray:
    """Return a copy in which a number of stretches of `pieces` lie anywhere, all shorter than `most`."""
    values = values.copy()
    for at in random.integers(0, len(values) + 1, number).tolist():
        piece = pieces[random.integers(0, len(pieces)) :][: random.integers(1, most)]
        values[at : at + len(piece)] = piece[: len(values) - at]
    return values


# ------------------------------------------------------------------------------------------------------ ragged values


def _ragged(draw: Draw, size: int, mean: int = 100) -> tuple[np.ndarray, np.ndarray]:
    values = draw.words(size)
    return values, draw.offsets(len(values), mean)


def _zipf_words(draw: Draw, num_values: int) -> np.ndarray:
    """Fingerprints of 100,000 words; the n-th is drawn in proportion to 1 / n."""
    numbers = np.exp(draw.random.random(num_values) * np.log(100_000)).astype(np.uint64)
    return numbers * np.uint64(0x9E3779B97F4A7C15)


def _ragged_words_of_text(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray]:
    if size <= FEW and draw.chance():
        return _ragged(draw, size)
    return _zipf_words(draw, size), draw.offsets(size, 500)


def _within_more(draw: Draw, values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rows, in an array that holds more values before the first row and after the last."""
    before, after = draw.integer(0, 3), draw.integer(0, 3)
    return np.concatenate([np.full(before, 7, np.uint64), values, np.full(after, 9, np.uint64)]), offsets + before


def tokens(draw: Draw, size: int) -> tuple:
    """Draw a batch of text, or of tiny documents, some with borders alone.

    Half of the draws ask for places, but no large draw does, so that all timings are of the same work.
    """
    places = size <= 4 * FEW and draw.option([False, True])
    if size <= FEW and draw.chance():
        border, rest = b"\xed\xb0\x80", (b"\xed", b"\xb0\x80", b"\xcc\x81", b"\xc2\xad", b"\xcd\x85", b"\xe6\xbc\xa2")
        pieces = [border, border, border + b"\n", *rest, b"\xc2\xbd", b".", b"a"]
        mixed = b"".join(pieces[i] for i in draw.random.integers(0, len(pieces), size // 2))
        return np.frombuffer(mixed, np.uint8), draw.offsets(len(mixed), 6), draw.modulus(), places
    text = draw.text(size)
    return text, draw.offsets(len(text), 2000), draw.modulus(), places


FOLDED = (
    *("-\n", "\u00ad\r\n ", "-\r", "- \t\n\t", "\u2010\n"),
    *"É7½⑩㏠٣๑²й_ \u0301\u0130\u01c4\u0345\u0640\u064e\u05b4\u200b\ufe70\ufe71",
    *("ab", "Cd", "42", "e\u0301"),
)
"""Pieces that folds change, or leave as they are."""


def fold(draw: Draw, size: int) -> tuple:
    """Draw text with numbers, accents, vowel signs and words divided at the ends of lines, and some folds."""
    text, offsets, _, places = tokens(draw, size)
    pieces = [*(piece.encode() for piece in FOLDED), b"\xc3", b"\xa9", b"\xed\xb0\x80"]
    if size <= FEW and draw.option([False, True]):
        mixed = b"".join(pieces[i] for i in draw.random.integers(0, len(pieces), size))
        text, offsets = np.frombuffer(mixed, np.uint8), draw.offsets(len(mixed), draw.option([30, 2]))
    else:
        text = text.copy()
        for at in draw.random.integers(0, len(text) + 1, len(text) // 20).tolist():
            piece = np.frombuffer(pieces[draw.random.integers(0, len(pieces))], np.uint8)[: len(text) - at]
            text[at : at + len(piece)] = piece
    every = ("marks", "hyphens", "digits")
    return text, offsets, draw.option([every, *((each,) for each in every), every[::2]]), places


letters = tokens


def lines(draw: Draw, size: int) -> tuple:
    """Draw text with line ends of every kind, and the moduli of words and of lines."""
    text, offsets, poly, places = tokens(draw, size)
    text = _strewn(draw.random, text, len(text) // 40 + 1, np.frombuffer(b"\r\n\n\f\0", np.uint8), 6)
    return text, offsets, poly, draw.modulus(), places


def chunks(draw: Draw, size: int) -> tuple:
    """Draw bytes with stretches of one byte and stretches that are repeated, and how they are cut."""
    values = draw.random.integers(0, draw.option([256, 2]), size, np.uint8)
    for _ in range(min(20, size // 40)):
        start, other, length = (int(draw.random.integers(0, size - size // 10)) for _ in range(3))
        length = min(length, size // 10)
        values[start : start + length] = draw.option([0, values[other : other + length]])
    offsets = draw.offsets(size, draw.option([5000, 30]))
    run, window = draw.option([(32, 256), (4, 16), (2, 5), (1, 1)])
    return values, offsets, draw.modulus(), run, window, size <= 4 * FEW and draw.option([False, True])


def ids(draw: Draw, size: int) -> tuple:
    """Draw integers of 8 bytes."""
    values, offsets = _ragged(draw, -(-size // 8), draw.option([100, 3]))
    return values.view(np.uint8), 8 * offsets, draw.modulus(), size <= 4 * FEW and draw.option([False, True])


def _mixed(draw: Draw, pieces: list[bytes], size: int) -> np.ndarray:
    """Draw bytes of some pieces in any order; in half of the cases, and in large ones, most are plain text."""
    random = draw.random
    if size > FEW or draw.option([False, True]):
        pieces += [bytes(draw.text(int(length))) for length in random.integers(1, 200, len(pieces))]
    few = [pieces[i] for i in random.choice(len(pieces), draw.option([len(pieces), 12, 3]))]
    mixed = b"".join(few[i] for i in random.integers(0, len(few), min(size, FEW) // 4))
    return np.resize(np.frombuffer(mixed, np.uint8), size) if mixed else np.empty(0, np.uint8)


def code(draw: Draw, size: int) -> tuple:
    """Draw text with the comments and strings of each language, and the numbers of languages."""
    random, table = draw.random, comments.table()
    some = [piece.encode() for rules in comments.RULES.values() for rule in rules for piece in rule[:2] if piece]
    pieces = [
        *some,
        *(b"\\", b"\n", b"\r", b"'", b"'x'", b" ", b"a", b"\xc3\xa9", b"'\xc3\xa9'", *ILL_FORMED, BORDERS[3:6]),
    ]
    text = _mixed(draw, pieces, size)
    offsets = draw.offsets(len(text), draw.option([2000, 40]))
    numbers = random.integers(0, len(table.firsts) - 1, len(offsets) - 1, np.uint8)
    return text, offsets, draw.modulus(), numbers, *table, size <= 4 * FEW and draw.option([False, True])


def texts(draw: Draw, size: int) -> tuple:
    """A batch of text: documents of any length, and short ones."""
    text = draw.text(size)
    return text, draw.offsets(len(text), draw.option([2000, 12])), draw.modulus()


def visible_text(draw: Draw, size: int) -> tuple:
    """Pages of tags, comments, character references and text, in and out of order, cut anywhere."""
    tags = [f"{begin}{name}{end}" for name in ELEMENTS for begin, end in (("<", ">"), ("</", ">"), ("<", " a=b>"))]
    tags += [f"<{name.upper()}" for name in ELEMENTS] + [f"</{name}" for name in ELEMENTS]
    pieces = [piece.encode() for piece in (*tags, *MARKUP, *MARKUP, *MARKUP)] + [*ILL_FORMED]
    text = _mixed(draw, pieces, size)
    return text, draw.offsets(len(text), draw.option([300, 40, 5000]))


def shingles(draw: Draw, size: int) -> tuple:
    """Tokens, and one of the kinds of shingling."""
    mode = draw.option(["set", "bag", "circular"])
    return *_ragged(draw, size), draw.option([5, 1, 2, 17]), mode, draw.modulus(), draw.modulus()


def spots(draw: Draw, size: int) -> tuple:
    """Tokens, and stop words: none, some of the tokens with other words, or hundreds of tokens."""
    values, offsets = _ragged_words_of_text(draw, size)
    number = draw.option([150, 0, 1, 400])
    stops = draw.random.choice(values, number) if len(values) else np.empty(0, np.uint64)
    if draw.chance() and number:
        stops = np.append(stops, draw.words(20))
    return values, offsets, np.unique(stops), draw.option([2, 1, 5, 17]), draw.modulus()


def common_runs(draw: Draw, size: int) -> tuple:
    """Draw documents, and rows to look for: their tokens come from the documents, with changes, or are few."""
    random, few = draw.random, draw.option([0, 1, 2])
    values, offsets = _ragged(draw, size, draw.option([100, 10]))
    if few and size <= FEW:
        values = random.integers(0, few, min(len(values), 200), np.uint64)
        offsets = draw.offsets(len(values), 50)
    wanted = np.resize(values[random.integers(0, len(values)) :] if len(values) else values, size // 4).copy()
    changed = random.random(len(wanted)) < 0.02
    wanted[changed] = random.integers(0, 2**64, int(changed.sum()), np.uint64)
    rows = draw.offsets(len(wanted), draw.option([20, 6]))
    sizes = np.diff(rows)
    widths = np.where(sizes >= 2, np.minimum(sizes, random.integers(2, draw.option([9, 4]), len(sizes))), 0)
    return values, offsets, kernels.common_runs.prepare(wanted, rows, widths)


def repeats(draw: Draw, size: int) -> tuple:
    """Draw rows with few different tokens, or with long passages that occur again, the length of a window, and k."""
    few = draw.option([0, 1, 2, 3])
    values, offsets = _ragged(draw, size, draw.option([100, 10]))
    if few and size <= FEW:
        values = draw.random.integers(0, few, min(len(values), 300), np.uint64)
        offsets = draw.offsets(len(values), 50)
    else:
        values = _strewn(draw.random, values, len(values) // 100, values, 60)
    length = draw.option([2, 1, 5, 50])
    return values, offsets, length, draw.integer(1, length)


def removals(draw: Draw, size: int) -> tuple:
    """Draw the repeated windows of what `repeats` draws, how many copies are kept, and which windows always stay."""
    values, offsets, length, k = repeats(draw, min(size, 2000))
    found = kernels.repeats.cpu(values, offsets, length, k)
    return found, length, draw.option([1, 2]), draw.option([0, len(values) // 2])


def common_chains(draw: Draw, size: int) -> tuple:
    """Draw the repeated windows of what `repeats` draws, compared with those of rows before theirs or of a part."""
    values, offsets, length, k = repeats(draw, min(size, 2000))
    length = max(length, 2)  # windows of one token follow one another across rows, whose limits differ
    pieces = kernels.common_chains.cut(kernels.repeats.cpu(values, offsets, length, k))
    places, _, sizes = pieces
    begins = offsets[np.searchsorted(offsets, places, side="right") - 1] if len(offsets) > 1 else places
    divided = begins[draw.integer(0, len(begins) - 1)] if len(begins) else 0
    limits = draw.option([begins, np.where(begins < divided, 0, divided)])
    linked = kernels.common_chains.prepare(pieces, limits, draw.option([100, 2, 3]))
    heads = [0, *(np.flatnonzero((places + sizes)[:-1] != places[1:]) + 1).tolist(), len(places)]
    last = len(heads) - 1
    least = min(last, draw.option([1, 0]))  # of the parts between heads
    first = draw.integer(0, last - least)
    return linked, heads[first], heads[draw.integer(first + least, last)]


def joined_runs(draw: Draw, size: int) -> tuple:
    """Draw runs of pairs of documents, near one another or not, and how many tokens may lie between."""
    number, far = size // 8, draw.option([40, 400])
    runs = draw.random.integers(0, far, (2, number)), draw.random.integers(1, draw.option([20, 3]), number)
    offsets = draw.offsets(number, draw.option([30, 4]))
    pair = np.searchsorted(offsets, np.arange(number), side="right")
    order = np.lexsort((runs[0][1], runs[0][0], pair))
    return runs[0][0][order], runs[0][1][order], runs[1][order], offsets, draw.option([5, 0, 30])


def drop(draw: Draw, size: int) -> tuple:
    """Draw tokens and the words that are dropped: none, some, or nearly all of them."""
    values, offsets, listed, *_ = spots(draw, size)
    if len(values) and draw.option([False, True]):
        values = listed[draw.random.integers(0, len(listed), len(values))] if len(listed) else values
        values[draw.random.random(len(values)) < draw.option([0.01, 0.0])] ^= np.uint64(1)
    return values, offsets, listed


def sequences(draw: Draw, size: int) -> tuple:
    """Tokens."""
    return *_ragged(draw, size), np.array([draw.modulus(), draw.modulus()])


GROUPS: list[tuple[Any, int, int]] = [(np.uint32, 6, 14), (np.uint64, 2, 5), (np.uint32, 0, 1)]
"""Types of permutations, and the groups of samples that become supershingles; none for texts without a signature."""


def one_text(draw: Draw, size: int) -> tuple:
    """A text, and one of the kinds of shingling."""
    text, offsets, poly, _ = tokens(draw, size)
    mode = draw.option(["set", "bag", "circular", "none"])
    moduli = np.array([draw.modulus(), draw.modulus()])
    kind, k, s = draw.option(GROUPS)
    a, b = draw.random.integers(0, np.iinfo(kind).max, (2, k * s), kind, endpoint=True)
    others = draw.option([5, 1, 3]), mode, draw.modulus(), draw.modulus(), moduli
    return text[: offsets[-1]], poly, *others, a | kind(1), b, k, s, draw.option([64, 16]), draw.modulus()


PERMUTATIONS: list[tuple[Any, int]] = [
    *((np.uint32, samples) for samples in (84, 1, 17, 52, 116, 148)),
    *((np.uint64, samples) for samples in (130, 15, 52)),
]
"""Types and numbers of permutations; on a GPU, each number of samples that a lane may take."""


def minhash(draw: Draw, size: int) -> tuple:
    """Shingles, and some permutations of 32 or 64 bits."""
    kind, samples = draw.option(PERMUTATIONS)
    a, b = draw.random.integers(0, np.iinfo(kind).max, (2, samples), kind, endpoint=True)
    return *_ragged(draw, size), a | kind(1), b


def bottomk(draw: Draw, size: int) -> tuple:
    """Shingles with repeats, a salt, and sketches of few elements or of more than most rows have."""
    return *_ragged(draw, size), draw.salt(), draw.option([1, 5, 200])


def cluster_stream(draw: Draw, size: int) -> tuple:
    """Sketches of few elements and of more, many of them near one of a few, some empty or not full."""
    random, s = draw.random, draw.option([8, 1, 3, 50])
    num_rows, threshold = -(-size // (4 * s)), draw.option([0.5, 0.01, 1 / 3, 0.8, 1.0])
    centres = draw.words(s * max(1, num_rows // draw.option([5, 20, 2]))).reshape(-1, s)
    sketches = centres[random.integers(0, len(centres), num_rows)]
    other = random.random(sketches.shape) < random.choice([0.0, 0.1, 0.5], (num_rows, 1))
    sketches[other] = draw.words(int(other.sum()))
    sketches[random.random(sketches.shape) < random.choice([0.0, 0.3, 1.0], (num_rows, 1), p=[0.7, 0.2, 0.1])] = EMPTY
    sketches.sort(axis=1)
    sketches[:, 1:][sketches[:, 1:] == sketches[:, :-1]] = EMPTY
    return np.sort(sketches, axis=1), threshold, draw.chance()


def fast(draw: Draw, size: int) -> tuple:
    """Shingles with repeats, a salt, and slots of few rounds or many; on a GPU, also of two ranges."""
    salt, t = draw.salt(), draw.option([84, 1, 7, 140])
    if size > FEW // 2 and draw.option([False, True, False, False]):
        t = 2100
    return *_ragged(draw, size), salt, t


def _samples(draw: Draw, size: int) -> tuple:
    """Signatures of some length, a length of their groups of bits, and how many groups a row has."""
    kinds: list[Any] = [np.uint32, np.uint64]
    kind, samples = draw.option(kinds), draw.option([140, 1, 64, 7, 200])
    rows = -(-size // samples)
    signatures = draw.random.integers(0, np.iinfo(kind).max, (rows, samples), kind, endpoint=True)
    alike = draw.random.random(signatures.shape) < draw.option([0.5, 0.0, 1.0])
    signatures[alike] = draw.option([0, 7, np.iinfo(kind).max])
    return signatures, draw.option([1, 2, 4, 8])


def bbit(draw: Draw, size: int) -> tuple:
    """Signatures with some extreme samples, and a salt for each sample."""
    signatures, bits = _samples(draw, size)
    return signatures, draw.random.integers(0, 2**64 - 1, signatures.shape[1], np.uint64, endpoint=True), bits


def bbit_equal(draw: Draw, size: int) -> tuple:
    """Packed rows, with or without stray bits after the last group, and pairs of any two of them."""
    signatures, bits = _samples(draw, size)
    samples = signatures.shape[1]
    words = kernels.bbit.cpu(signatures, np.zeros(samples, np.uint64), bits)
    if draw.chance():
        words[draw.random.random(len(words)) < 0.3, -1] ^= np.uint64(1 << 63)
    left, right = draw.random.integers(0, max(1, len(words)), (2, size if len(words) else 0))
    return words, left, right, bits, samples


def below(draw: Draw, size: int) -> tuple:
    """Shingles with repeats, a salt, and for each row a bound by a modulus, or the least and the greatest bound."""
    values, offsets = _ragged(draw, size)
    moduli = draw.random.choice(np.array([1, 2, 16, 1000], np.uint64), len(offsets) - 1)
    most = np.uint64(2**64 - 1) // moduli
    if size <= FEW and draw.chance():
        most[draw.random.random(len(most)) < 0.3] = draw.option([np.uint64(0), np.uint64(1)])
    return values, offsets, draw.salt(), most


def groups(draw: Draw, size: int) -> tuple:
    """Sketches, some of them not full, a salt, and room for few groups or for all."""
    s = draw.option([100, 1, 7])
    sketches = np.sort(draw.random.integers(0, 2**64 - 1, (size // s, s), np.uint64), axis=1)
    sketches[np.arange(s) >= draw.random.integers(0, 2 * s + 1, (len(sketches), 1))] = 2**64 - 1
    return sketches, draw.salt(), draw.option([28, 1, 100])


def unions(draw: Draw, size: int) -> tuple:
    """Sets and their halves, in pairs as of `resemblance`; bounds, and sizes of sketches that cut some or none."""
    *sets_of, left, right, _ = resemblance(draw, size)
    bounds = np.append(draw.words(5), np.array([0, 2**63, 2**64 - 1], np.uint64))
    return *sets_of, left, right, draw.random.choice(bounds, len(left)), draw.option([5, 1, 2**62])


def supershingles(draw: Draw, size: int) -> tuple:
    """Signatures, some of more samples than are used."""
    kinds: list[Any] = [np.uint32, np.uint64]
    kind, (k, s) = draw.option(kinds), draw.option([(6, 14), (1, 1), (6, 1), (4, 5)])
    rows, columns = -(-size // (k * s)), k * s + draw.integer(0, 2)
    greatest = draw.option([np.iinfo(kind).max, 1])
    signatures = draw.random.integers(0, greatest, (rows, columns), kind, endpoint=True)
    return signatures, k, s, draw.option([64, 16, 6]), draw.modulus()


LIMITS = [(64, 16), (0, 3), (1, 0), (5, 6), (3, 9), (12, 4), (1000, 2), (10**6, 8)]
"""How many rows of a bucket are compared all with all, and with how many later ones are."""


def pairtables(draw: Draw, size: int) -> tuple:
    """Keys of some rows, where half of the rows share some, and one large bucket. Of a few rows, keys may take few
    values."""
    random, (k, r) = draw.random, draw.option([(6, 2), (1, 1), (3, 1), (3, 3), (4, 2), (5, 3), (6, 5), (64, 1)])
    num_rows = size // (64 if k == 64 else 8)
    keys = random.integers(0, 2**64, (num_rows, k), np.uint64)
    copied = random.random(keys.shape) < 0.3
    keys[copied] = np.roll(keys, 1, axis=0)[copied]
    keys[: num_rows // 50, 0] = 7
    limit, probe = draw.option(LIMITS[:-1])
    if size <= FEW // 8 and draw.chance():
        keys = random.choice(np.append(draw.words(draw.integer(0, 40)), np.uint64(3)), (num_rows, k))
    present = random.random(num_rows) < draw.option([0.95, 0.0, 1.0])
    return keys, present, r, draw.modulus(), limit, probe


def probe(draw: Draw, size: int) -> tuple:
    """Draw sorted tables of rows that often share keys, and queries that equal rows or nearly do."""
    random, (k, r) = draw.random, draw.option([(20, 1), (6, 2), (1, 1), (4, 4)])
    num_rows = size // k
    keys = random.choice(np.append(draw.words(max(1, num_rows)), np.uint64(3)), (num_rows, k))
    keys[random.random(keys.shape) < draw.option([0.01, 0.5, 0.0])] = 7
    orders = np.argsort(keys, axis=0, kind="stable")
    sorted_keys = np.ascontiguousarray(np.take_along_axis(keys, orders, 0).T)
    num_queries = min(size, num_rows // 4 + draw.integer(0, 3))
    queries = draw.words(num_queries * k).reshape(num_queries, k)
    if num_rows:
        alike = random.random(queries.shape) < draw.option([0.5, 0.9, 0.0])
        queries[alike] = keys[random.integers(0, num_rows, num_queries)][alike]
    limits = _limits(draw, num_rows, num_queries)
    return sorted_keys, np.ascontiguousarray(orders.T.astype(np.uint32)), queries, r, *limits


def _limits(draw: Draw, num_rows: int, num_queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each query, the first row it may find, the one it stops at and how many it may find; rows to be found."""
    first = draw.random.integers(0, num_rows + 1, num_queries) * draw.integer(0, 1)
    stop = first + draw.random.integers(0, num_rows + 2, num_queries)
    most = draw.random.integers(0, draw.option([64, 3]), num_queries)
    return first, stop, most, (draw.random.random(num_rows) < draw.option([0.9, 1.0, 0.0, 0.1])).astype(np.uint8)


def bloom(draw: Draw, size: int) -> tuple:
    """Filters with some marks, keys to add, and queries; many queries are keys, and some places have no query."""
    random, tables = draw.random, draw.option([6, 1, 20])
    number = size // (2 * tables)
    marks = random.integers(0, 2**64, (tables, draw.option([2, 64, 1024])), np.uint64)
    marks &= random.integers(0, 2**64, marks.shape, np.uint64) * np.uint64(draw.integer(0, 1))
    keys = draw.words(tables * number).reshape(tables, number)
    queries = draw.words(tables * number).reshape(tables, number)
    again = random.random(queries.shape) < draw.option([0.3, 0.0, 1.0])
    queries[again] = keys[again]
    numbers = np.broadcast_to(np.arange(number, dtype=np.uint32), queries.shape).copy()
    return marks, keys, queries, numbers, random.integers(0, number + 1, tables)


def tally(draw: Draw, size: int) -> tuple:
    """Lists of a sorted table, where a query has some, many or no lists; lists that are empty, long or met again."""
    random, num_rows = draw.random, max(1, size // 8)
    pairs = np.unique(random.zipf(1.5, size).astype(np.uint64) % 97 << np.uint64(32) | draw.words(size) % num_rows)
    keys, rows = pairs >> np.uint64(32), (pairs & np.uint64(2**32 - 1)).astype(np.uint32)
    offsets = draw.offsets(min(size, 400), 8)
    chosen = random.integers(0, 100, int(offsets[-1]), np.uint64)
    starts, stops = np.searchsorted(keys, chosen), np.searchsorted(keys, chosen, side="right")
    unasked = random.random(len(chosen)) < draw.option([0.2, 0.0, 1.0])
    stops[unasked] = starts[unasked]
    least = random.integers(1, draw.option([4, 2]), max(0, len(offsets) - 1))
    allowed = (random.random(num_rows) < draw.option([0.9, 1.0, 0.0, 0.1])).astype(np.uint8)
    return rows, starts, stops, offsets, least, allowed


def merge(draw: Draw, size: int) -> tuple:
    """Runs of sorted keys, some of them in several runs, or one key in all."""
    offsets = np.append(0, np.sort(draw.random.integers(0, size + 1, draw.option([8, 0, 1, 3])))).astype(np.int64)
    offsets[-1] = size if len(offsets) > 1 else 0
    keys = draw.words(int(offsets[-1]))
    if draw.chance():
        keys[draw.random.random(len(keys)) < 0.3] = 5
    for start, stop in zip(offsets[:-1], offsets[1:], strict=True):
        keys[start:stop].sort()
    return keys, np.arange(len(keys), dtype=np.uint32), offsets


def shared(draw: Draw, size: int) -> tuple:
    """Sets where some hold the same few elements, within more; and how many elements a pair has to share."""
    values, offsets = kernels.sets.cpu(*_ragged(draw, size, 10 if size <= FEW else 60))
    few = draw.words(draw.integer(1, 40))
    some = draw.random.random(len(values)) < draw.option([0.1, 0.0, 0.5])
    values[some] = draw.random.choice(few, int(some.sum()))
    values, offsets = kernels.sets.cpu(values, offsets)
    return *_within_more(draw, values, offsets), draw.option([1, 2, 5]), *draw.option(LIMITS[:-2])


def sets(draw: Draw, size: int) -> tuple:
    """Shingles with repeats."""
    return _ragged(draw, size)


distinct = sets


def resemblance(draw: Draw, size: int) -> tuple:
    """Sets, and the same sets thinned out; pairs of one with itself, with its half and with any."""
    random, (values, offsets) = draw.random, kernels.sets.cpu(*_ragged(draw, size))
    kept = random.random(len(values)) < 0.5
    halves = len(values) + np.append(np.zeros(1, np.int64), np.cumsum(kept))[offsets]
    num_rows = len(offsets) - 1
    values, offsets = np.append(values, values[kept]), np.append(offsets, halves[1:])
    left, right = _pairs_with_halves(draw, num_rows, size)
    smaller = np.minimum(np.diff(offsets)[left], np.diff(offsets)[right])
    return *_within_more(draw, values, offsets), left, right, random.integers(0, smaller + 2)


def _pairs_with_halves(draw: Draw, num_rows: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows, whose halves follow them: of a row with itself, with its half and with any, in either order."""
    left = draw.random.integers(0, max(1, num_rows), size // 50 + 3 if num_rows else 0)
    right = draw.random.integers(0, max(1, 2 * num_rows), len(left))
    right[::3], right[1::3] = left[::3], left[1::3] + num_rows
    swapped = draw.random.random(len(left)) < 0.5
    return np.where(swapped, right, left), np.where(swapped, left, right)


def overlap(draw: Draw, size: int) -> tuple:
    """Shingles, up to 200 of the documents as a sample, with some shingles that no document has, and bounds."""
    values, offsets = _ragged(draw, size)
    rows = np.flatnonzero(np.diff(offsets) < 1000)[: draw.option([200, 4, 0])]
    some, some_offsets = kernels.gather.cpu(values, offsets, rows)
    other = draw.words(draw.integer(0, 6))
    sampled = kernels.sets.cpu(np.append(some, other), np.append(some_offsets, len(some) + len(other)))
    least, bounds = (draw.random.integers(0, 40, number) for number in (len(rows) + 1, len(offsets) - 1))
    return values, offsets, *kernels.overlap.invert(*_within_more(draw, *sampled)), least, bounds


def gather(draw: Draw, size: int) -> tuple:
    """Row numbers in any order, some of them twice; half the number of rows."""
    values, offsets = _ragged(draw, size)
    num_rows = len(offsets) - 1
    return values, offsets, draw.random.integers(0, max(1, num_rows), (num_rows + 1) // 2)


def length_prefixed(draw: Draw, size: int) -> tuple:
    """Values after their lengths, after other bytes and before more of them."""
    values, offsets = _ragged(draw, size)
    rows = [values[start:stop].tobytes() for start, stop in zip(offsets[:-1], offsets[1:], strict=True)]
    place = int(draw.random.integers(0, 9))
    data = bytes(place) + b"".join(len(row).to_bytes(4, "little") + row for row in rows) + b"more"
    return np.frombuffer(data, np.uint8), place, len(rows)


def _varint(number: int) -> bytes:
    """Return a number with 7 bits in each byte, from the lowest on."""
    return bytes([number & 127 | 128]) + _varint(number >> 7) if number >= 128 else bytes([number])


def packed_runs(draw: Draw, size: int) -> tuple:
    """Runs of both kinds, some of them empty, from a place within one of them on, and not up to the last one."""
    random = draw.random
    width, data, states, total = int(random.integers(0, 33)), b"", [], 0
    while total < size:
        length, packed = int(random.integers(0, 40) ** random.integers(1, 3)), int(random.integers(0, 2))
        states += [(len(data), 0, total), (len(data), length - length // 3, total + length - length // 3)][: 1 + length]
        header, length = length << 1 | packed, length * (8 if packed else 1)
        data += _varint(header) + random.bytes(length * width // 8 if packed else -(-width // 8))
        total += length
    place, taken, before = states[random.integers(0, len(states))] if states else (0, 0, 0)
    count = int(random.integers(0, total - before + 1))
    return np.frombuffer(data, np.uint8), width, np.array([place, taken]), count


# ----------------------------------------------------------------------------------------------------------- prefixes

TIMES = [1, 1, 1, 2, 3, 253, 254, 255, 256, 300]
"""How often a shingle is counted: until its counter stops, and beyond."""

THRESHOLDS = [0.8, 1.0, 0.5, 0.05, 0.95]
"""The threshold of resemblance."""


def _alike(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Shingles of some rows, and of three copies of them that lack some or none."""
    values, offsets = _ragged(draw, size // 4, 20 if size <= FEW else 100)
    rows, ends = [values], [offsets]
    for share in (1.0, 0.9, 0.5):
        kept = draw.random.random(len(values)) < share
        rows.append(values[kept])
        ends.append(sum(map(len, rows[:-1])) + np.append(np.zeros(1, np.int64), np.cumsum(kept))[offsets])
    ends = [ends[0], *(some[1:] for some in ends[1:])]
    # What is before a copy's first row and after its last goes to the rows beside it.
    return np.concatenate(rows), np.concatenate(ends)


def _table(draw: Draw, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A table of counters in which values are counted; of a few, some of them so often that counters stop."""
    bits = max(kernels.rarity.FEWEST_BITS, (len(values) - 1).bit_length())
    if len(values) <= FEW and draw.chance():
        values = np.repeat(values, draw.random.choice(TIMES, len(values)))
    return kernels.rarity.cpu(values, bits)


def rarity(draw: Draw, size: int) -> tuple:
    """Shingles; of a few, some so often that counters stop, or come near it."""
    bits = max(kernels.rarity.FEWEST_BITS + draw.option([0, 1]), (size - 1).bit_length())
    values = draw.words(size)
    if size <= FEW:
        often = draw.words(draw.integer(0, 4))
        values = np.append(values, np.repeat(often, draw.random.choice(TIMES, len(often))))
        draw.random.shuffle(values)
    return values, bits


def prefixes(draw: Draw, size: int) -> tuple:
    """Shingles of rows, by any numbers, and the table in which they are counted."""
    values, offsets = _within_more(draw, *_alike(draw, size))
    num_rows = len(offsets) - 1
    rows = draw.random.permutation(num_rows) + draw.option([0, 2**32 - num_rows])
    table = _table(draw, values[offsets[0] : offsets[-1]])
    return values, offsets, rows, *table, draw.option(THRESHOLDS), draw.option([1, 0])


def prefix_probe(draw: Draw, size: int) -> tuple:
    """A table of the prefixes of rows that are often alike, and the prefixes of their sets."""
    values, offsets = _alike(draw, size)
    table, threshold = _table(draw, values[offsets[0] : offsets[-1]]), draw.option(THRESHOLDS)
    table = np.maximum(table[0], np.uint8(2)), table[1]  # none is skipped
    num_rows = len(offsets) - 1
    shingles, entries, sizes, _ = kernels.prefixes.cpu(values, offsets, np.arange(num_rows), *table, threshold, 0)
    row = ((entries & ~kernels.prefixes.LONG) >> np.uint64(kernels.prefixes.PLACE_BITS)).astype(np.int64)
    keys, places = kernels.prefix_probe.keys_of(shingles, entries)
    if len(keys) <= FEW and draw.chance():  # of several shingles
        keys &= np.uint64((15 << 60) + 1)
    order = np.argsort(keys, kind="stable")
    ends = np.append(0, np.cumsum(sizes, dtype=np.int64))
    begins = np.searchsorted(row, np.arange(num_rows + 1))
    prefix, limits = (keys, places, begins, sizes), _limits(draw, num_rows, num_rows)
    return keys[order], row[order].astype(np.uint32), ends, *prefix, threshold, *limits


def containers(draw: Draw, size: int) -> tuple:
    """Sets, by any numbers, the table in which they are counted, and marks of some of their shingles."""
    values, offsets = _alike(draw, size)
    table = _table(draw, values)
    sets, ends = kernels.sets.cpu(values, offsets)
    marks = np.zeros(1 << draw.integer(8, 13), np.uint8)
    share = draw.option([0.1, 0.9]) if size <= FEW else 0.1
    marks[(sets[draw.random.random(len(sets)) < share] >> kernels.rarity.shift_of(marks)).astype(np.int64)] = 1
    num_rows = len(ends) - 1
    rows = draw.random.permutation(num_rows) + draw.option([0, 2**32 - num_rows])
    return *_within_more(draw, sets, ends), rows, *table, marks, draw.option(THRESHOLDS)


def bitmaps(draw: Draw, size: int) -> tuple:
    """Sets, and bitmaps of any sizes, or of none, for each of them."""
    sets, ends = kernels.sets.cpu(*_alike(draw, size))
    words = 1 << draw.random.integers(0, 4 if size > FEW else 11, len(ends) - 1)
    words[draw.random.random(len(words)) < draw.option([0.0, 0.3])] = 0
    return *_within_more(draw, sets, ends), words, draw.option([1, 0])


def _postings(draw: Draw, size: int, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple]:
    """Return (shingles, entries) in any order, where some rows have none, the size of each row's set, and the
    sets: (rows, elements, offsets)."""
    values, offsets = _alike(draw, size)
    num_rows = len(offsets) - 1
    rows = draw.random.permutation(num_rows + draw.integer(0, 3))[:num_rows]
    table = _table(draw, values[offsets[0] : offsets[-1]])
    shingles, entries, distinct, elements = kernels.prefixes.cpu(
        values, offsets, rows, *table, threshold, draw.option([1, 0])
    )
    sizes = np.zeros(max(len(rows), int(rows.max(initial=-1)) + 1), np.int32)
    sizes[rows] = distinct
    if len(entries) <= FEW and draw.chance():
        entries[draw.random.random(len(entries)) < draw.option([0.5, 1.0])] |= kernels.prefixes.LONG
    order = draw.random.permutation(len(entries))
    return shingles[order], entries[order], sizes, (rows, elements, np.cumsum([0, *distinct]))


def runs(draw: Draw, size: int) -> tuple:
    """Postings of the prefixes of documents, in any order."""
    shingles, entries, sizes, _ = _postings(draw, size, draw.option(THRESHOLDS))
    return shingles, entries, len(sizes)


def setjoin(draw: Draw, size: int) -> tuple:
    """Runs, some of whose entries may be gone, and rows that ask them; some for nothing at all."""
    threshold, random = draw.option(THRESHOLDS), draw.random
    shingles, entries, sizes, (of, elements, ends) = _postings(draw, size, threshold)
    largest, larger = int(sizes.max(initial=0)), draw.option([1, 0])
    needed = least_overlaps(2 * largest, threshold) if larger else least_shares(largest, threshold)
    sets = SetCollector(len(sizes), threshold, larger)
    sets.add(of, Ragged(elements, ends), HostRuntime("cpu"))
    made = kernels.runs.cpu(shingles, entries, len(sizes))
    index = PostingsIndex.of(made, sets.known(), needed, larger)
    if size <= FEW and draw.chance():
        index = index.only(random.random(len(sizes)) < 0.7)
    rows = np.flatnonzero(random.random(len(sizes)) < draw.option([1.0, 0.5]))
    first, stop = np.zeros(len(rows), np.int64), rows.copy()
    if size <= FEW and draw.chance():
        random.shuffle(rows)
        first, stop = random.integers(0, len(sizes) + 1, (2, len(rows)))
        first[: len(rows) // 2] = 0
    return *index, rows, first, stop, draw.option([64, 1, 3, 1024])


# ------------------------------------------------------------------------------------------------------------ weights


def counts(draw: Draw, size: int) -> tuple:
    """Tokens with repeats."""
    return _ragged_words_of_text(draw, size)


def occurrences(draw: Draw, size: int) -> tuple:
    """Tokens with repeats, of no rows."""
    return (_ragged_words_of_text(draw, size)[0],)


def log_weights(draw: Draw, size: int) -> tuple:
    """Counts, most of them small; a third on either side of where a logarithm's 256th begins."""
    random, most = draw.random, 2**40 - 1
    found = np.exp2(40 * random.random(size) ** 4).astype(np.int64)
    near = np.exp2(random.integers(0, 40 * 256, size) / 256).astype(np.int64) + random.integers(-1, 2, size)
    found = np.where(random.random(size) < 1 / 3, near, found)
    return (np.clip(np.where(random.random(size) < 0.05, random.integers(1, most, size), found), 1, most),)


def lookup(draw: Draw, size: int) -> tuple:
    """Tokens, and a table that lacks some."""
    values, _ = _ragged_words_of_text(draw, size)
    table = np.unique(
        np.append(values[draw.random.random(len(values)) < draw.option([0.9, 0.0])], draw.words(size // 9))
    )
    if draw.option([False, True]):
        table = table[:0]
    return values, table, draw.random.integers(0, 2**63, len(table)), draw.option([256, 0, 2**63 - 1])


def simhash(draw: Draw, size: int) -> tuple:
    """Tokens: without weights, with random weights, or with a weight as large as a counter can hold."""
    values, offsets = _ragged_words_of_text(draw, size)
    most = draw.option([None, 2**12, 3, 1, (2**63 - 1) // max(1, len(values))])  # few different ones: ties
    weights = None if most is None else draw.random.integers(0, most, len(values), endpoint=True)
    if weights is not None and len(values) and draw.integer(0, 3) == 0:
        weights[:] = 0
        weights[draw.random.integers(len(values))] = 2**63 - 1
    return values, offsets, weights, draw.option([64, 128])


WEIGHTS = (1, 3, 256, 1 << 12, 1 << 20, 1 << 40)
"""Greatest weights of features; a row's are at most 2**48 together."""


def _weighted(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sets, and a weight of each feature, some of them 0."""
    most = draw.option(WEIGHTS)
    values, offsets = _within_more(draw, *kernels.sets.cpu(*_ragged(draw, size)))
    weights = draw.random.integers(0, min(most, 2**48 // max(1, len(values))), len(values), np.int64, endpoint=True)
    return values, offsets, weights


def dart(draw: Draw, size: int) -> tuple:
    """Weighted sets, a salt, and a number of samples."""
    sets, salt = _weighted(draw, size), draw.salt()
    return *sets, salt, draw.option([3, 1, 20] if size <= FEW else [20])


def weighted_resemblance(draw: Draw, size: int) -> tuple:
    """Weighted sets, each with another of half of its features and of other weights; pairs as for `resemblance`."""
    random, (values, offsets, weights) = draw.random, _weighted(draw, size)
    values, weights, offsets = values[offsets[0] : offsets[-1]], weights[offsets[0] : offsets[-1]], offsets - offsets[0]
    kept = random.random(len(values)) < 0.5
    halves = np.append(np.zeros(1, np.int64), np.cumsum(kept))[offsets]
    words, ends = _features_and_weights(values, offsets, weights)
    more, more_ends = _features_and_weights(values[kept], halves, random.permutation(weights)[kept])
    num_rows = len(offsets) - 1
    left, right = _pairs_with_halves(draw, num_rows, size)
    joined = np.append(words, more), np.append(ends, len(words) + more_ends[1:])
    return *_within_more(draw, *joined), left, right


def _features_and_weights(values: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> tuple:
    """Rows of features, each followed by the weights of the same row."""
    words, places = np.empty(2 * len(values), np.uint64), np.arange(len(values))
    words[places + np.repeat(offsets[:-1], np.diff(offsets))] = values
    words[places + np.repeat(offsets[1:], np.diff(offsets))] = weights.view(np.uint64)
    return words, 2 * offsets


# --------------------------------------------------------------------------------------------------- clusters of pairs


def _sorted_pairs(draw: Draw, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """About two pairs for three rows, left < right, in lexicographic order: near rows, any rows, or one path."""
    if num_rows < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    random, shape = draw.random, draw.option(["near", "any", "path"])
    if shape == "path":  # takes most rounds on a GPU
        return np.arange(num_rows - 1), np.arange(1, num_rows)
    left = random.integers(0, num_rows - 1, 2 * num_rows // 3)
    apart = random.geometric(0.2, len(left)) if shape == "near" else random.integers(1, num_rows, len(left))
    right = np.minimum(num_rows - 1, left + apart)
    packed = np.unique(left[left < right] * num_rows + right[left < right])
    return packed // num_rows, packed % num_rows


def greedy(draw: Draw, size: int) -> tuple:
    """Verified pairs, many of equal weight, and some rows that stay."""
    left, right = _sorted_pairs(draw, size)
    weight = draw.random.choice([0.8, 0.9, 1.0], len(left))
    return size, left, right, weight, draw.random.random(size) < draw.option([0.05, 0.0, 0.3])


def greedy_stream(draw: Draw, size: int) -> tuple:
    """Pairs, bits of rows that were removed before, and pinned rows."""
    left, right = _sorted_pairs(draw, size)
    bits = draw.random.integers(0, 2**64, -(-size // 64), np.uint64)
    if draw.chance():
        bits[:] = 0
    return bits, left, right, draw.option([0, size // 10, size])


def components(draw: Draw, size: int) -> tuple:
    """Pairs."""
    return size, *_sorted_pairs(draw, size)


def standing(draw: Draw, size: int) -> tuple:
    """Verified pairs, rows that stay, and rows that may have further pairs."""
    pinned, is_open = (draw.random.random(size) < draw.option(shares) for shares in ([0.05, 0.0, 0.3], [0.1, 0.0, 0.5]))
    return size, *_sorted_pairs(draw, size), pinned, is_open


# -------------------------------------------------------------------------------------------------------- fingerprints


def near_fingerprints(draw: Draw, num_rows: int, num_words: int) -> np.ndarray:
    """Fingerprints: a third within 8 bits of another, some repeats, some that differ in one block only."""
    random = draw.random
    values = random.integers(0, 2**64, (num_rows, num_words), np.uint64)
    if num_rows <= FEW:  # of a few centres
        centres = draw.words(num_words * draw.integer(1, 6)).reshape(-1, num_words)
        of_centre = random.random(num_rows) < draw.option([0.5, 1.0])
        values[of_centre] = random.choice(centres, int(of_centre.sum()))
    copied = random.random(num_rows) < 1 / 3
    values[copied] = values[random.integers(0, max(1, num_rows), int(copied.sum()))]
    highest = draw.option([64, 3, 16])
    for _ in range(8):
        flipped = copied & (random.random(num_rows) < 0.3)
        column = random.integers(0, num_words, int(flipped.sum()))
        values[flipped, column] ^= np.uint64(1) << random.integers(0, highest, len(column), np.uint64)
    crowd = random.integers(0, max(1, num_rows), num_rows // 100)
    values[crowd] = random.integers(0, 1 << 16, (len(crowd), num_words), np.uint64)
    return values if num_words > 1 else values[:, 0].copy()


def _quarters(num_words: int) -> np.ndarray:
    """Masks of a quarter of the bits each; whatever three bits differ, one mask has none of them."""
    if num_words == 1:
        return np.uint64(0xFFFF << 48) >> np.arange(0, 64, 16, dtype=np.uint64)
    halves = 0xFFFFFFFF << 32, 0xFFFFFFFF
    return np.array([[halves[0], 0], [halves[1], 0], [0, halves[0]], [0, halves[1]]], np.uint64)


def _masks(draw: Draw, num_words: int) -> np.ndarray:
    """Quarters, or up to four masks of any bits, at most 64 each."""
    if draw.option([True, False]):
        return _quarters(num_words)
    masks = np.empty((draw.integer(0, 4), num_words), np.uint64)
    for number in range(len(masks)):
        prefix = draw.option([8, 0, 4, 16, 40, 64])
        mask = (1 << prefix) - 1 << 64 - prefix if draw.chance() else int(draw.words(1)[0])
        lower = int(draw.words(1)[0]) if num_words == 2 else 0  # the bits that are taken from the lower word
        masks[number] = [mask & ~lower, mask & lower][:num_words]
    return masks if num_words == 2 else masks[:, 0].copy()


def identical(draw: Draw, size: int) -> tuple:
    """Fingerprints of one column, two or three, many of them more than once."""
    columns = draw.option([2, 1, 3])
    values = near_fingerprints(draw, size // columns, columns)
    again = draw.random.random(len(values)) < draw.option([0.3, 0.9])
    values[again] = values[draw.random.integers(0, max(1, len(values)), int(again.sum()))]
    if columns > 1 and len(values) <= FEW:  # equal in one column alone
        values[draw.random.random(values.shape) < 0.2] = 5
    return (values.reshape(-1, 1) if columns == 1 and draw.chance() else values,)


def hamming(draw: Draw, size: int) -> tuple:
    """Fingerprints of 64 or 128 bits, and masks; of many fingerprints, the masks of the cheapest design for 3 bits."""
    from ..hamming import choose

    num_words = draw.option([1, 2])
    if size > FEW:
        masks, radius = choose(size, 3, num_queries=size / 2, probe=0, bits=64 * num_words).array, 3
        return near_fingerprints(draw, size // num_words, num_words), masks, radius, *draw.option(LIMITS[:1])
    values = near_fingerprints(draw, size // 4, num_words)
    return values, _masks(draw, num_words), draw.option([3, draw.integer(0, 8)]), *draw.option(LIMITS)


def hamming_table(draw: Draw, size: int) -> tuple:
    """Fingerprints of 64 or 128 bits, and a mask."""
    num_words = draw.option([1, 2])
    masks = _masks(draw, num_words) if size <= FEW else _quarters(num_words)
    masks = masks if len(masks) else _quarters(num_words)
    return near_fingerprints(draw, size // num_words, num_words), masks[-1], draw.option([False, True])


def _near_queries(draw: Draw, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Masks, fingerprints, queries that are half of them near a fingerprint, and a radius."""
    num_words, few = draw.option([1, 2]), size <= FEW
    masks = _masks(draw, num_words) if few else _quarters(num_words)
    values = near_fingerprints(draw, size // 8, num_words)
    num_queries = draw.integer(0, size // 8) if few else size // 8
    queries = np.concatenate([values[:num_queries], near_fingerprints(draw, num_queries, num_words)])
    return masks, values, queries, draw.option([3, draw.integer(0, 8)]) if few else 3


def hamming_probe(draw: Draw, size: int) -> tuple:
    """Tables, and queries: half are near a fingerprint in the tables."""
    masks, values, queries, radius = _near_queries(draw, size)
    whole = size > FEW or draw.chance()
    tables = [kernels.hamming_table.cpu(values, mask, whole) for mask in masks]
    shape = len(masks), len(values)
    words = np.array([words for words, _ in tables], np.uint64).reshape(shape)
    rows = np.array([rows for _, rows in tables], np.uint32).reshape(shape)
    limits = draw.option(LIMITS) if size <= FEW else LIMITS[0]
    return words, rows, masks, queries, radius, *limits, None if values.ndim == 1 else values


def bucket_probe(draw: Draw, size: int) -> tuple:
    """Tables of the buckets of some rows, and queries: half are near one of the rows."""
    masks, values, queries, radius = _near_queries(draw, size)
    present = np.flatnonzero(draw.random.random(len(values)) < draw.option([1.0, 0.8])).astype(np.uint32)
    keys = kernels.bucket_probe.buckets(values[present], masks)
    order = np.argsort(keys, axis=1, kind="stable")
    limits = _limits(draw, len(values), len(queries))
    tables = np.take_along_axis(keys, order, 1), present[order].reshape(keys.shape)
    return *tables, masks, values, queries, radius, *limits


def huffman_encode(draw: Draw, size: int) -> tuple:
    """Tables of sorted words: near one another, random, or all equal."""
    tables, length = [], size // 2
    for _ in range(draw.option([2, 0, 1] if size < 1000 else [2, 1])):
        kind = draw.option(["random", "near", "equal"])
        if kind == "random":
            table = draw.random.integers(0, 2**64, length, np.uint64) >> np.uint64(draw.option([0, 40, 63]))
        else:
            table = near_fingerprints(draw, length, 1) if kind == "near" else np.full(length, draw.words(1)[0])
        tables.append(np.sort(table))
    return (np.array(tables, np.uint64).reshape(len(tables), length),)


def huffman_decode(draw: Draw, size: int) -> tuple:
    """Blocks of some tables, in any order."""
    tables = kernels.huffman_encode.cpu(*huffman_encode(draw, size))
    numbers = draw.random.permutation(len(tables.blocks))
    if len(numbers) and size <= FEW and draw.chance():
        numbers = numbers[draw.random.integers(0, len(numbers), draw.integer(0, 8))]
    return tables.lengths, tables.offsets, tables.blocks, tables.firsts, numbers


def huffman_probe(draw: Draw, size: int) -> tuple:
    """Like `hamming_probe`, with compressed tables."""
    words, *rest = hamming_probe(draw, 4 * size if size <= FEW // 8 else size)
    return *kernels.huffman_encode.cpu(words), *rest


INPUTS: dict[str, Callable[[Any, int], tuple]] = {name: globals()[name] for name in _names() if name in globals()}
"""The generator of the inputs of each kernel: the function of its name."""
