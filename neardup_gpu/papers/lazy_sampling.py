"""Count how few random bits min-hash samples can be made from: definitions and accounting, not kernels.

A sample of a set is its element of the least value, under a value that each element has for that sample: an endless
fraction of random bits. The first bits of two fractions usually decide which is less, so samplers look at no more bits
than they need. There are four samplers, each a generator that yields the samples of a set and counts in
`RandomBits.used` what it looks at:

    sampler       looks at, of each element and sample, in the limit of many elements
    naive         64 bits
    prefixes      8 bits, and 64 more where they tie with the least: 33/32 bytes
    runs          the run of zeros that a value begins with: 2 bits
    blocks        of 128 samples together, which begin with a zero at all, if few do: about a tenth of a bit

All are consistent: an element that is the sample of a set is that of each part that holds it, so two sets have the same
sample with the probability of their resemblance, and samples are independent of one another.

They are in no other use. Processors make random bits by the word, many words at a time, and what they cannot do fast is
to go where a random bit says. The best of the four, `blocks` with one mixing for 128 samples, was written with Numba
too, and took two to three times as long as the a x + b of `kernels.minhash`, for sets of 100 to 10,000 elements and 84
to 256 samples (medians of processor time, one thread, on a shared machine). So there is no `cpu` or `gpu` version.

Source: Manasse, On the efficient determination of most near neighbors, sections 3.2 and 4.1 to 4.3. Where the book is
misprinted this is what is right: `minprefix[n] =` in its code is `minprefix[index] =`, and `prefhash & 0xff <= ...`
lacks parentheses (3.2); 264/256 is 33/32, not 65/64 (3.2); the mask 0xCC... has 16 digits, not 20 (4.3).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate

from .. import checks
from ..definitions import draw, mix64
from ..errors import ArgumentTypeError

BUFFER = 16
"""Elements that a sample keeps while they tie; the book's BUFLEN."""

BLOCK = 128
"""Samples that are decided together; a value begins with a zero with probability 1/128, and then it is small."""


MASKS = (
    0xAAAAAAAAAAAAAAAA,
    0xCCCCCCCCCCCCCCCC,
    0xF0F0F0F0F0F0F0F0,
    0xFF00FF00FF00FF00,
    0xFFFF0000FFFF0000,
    0xFFFFFFFF00000000,
)
"""Powers of two below 2**64 whose logarithms have bit 0, 1, ..., 5."""


class RandomBits:
    """Random bits of elements, and how many were looked at.

    Parameters
    ----------
    seed : int in [0, 2**64), default 1
        What they are drawn from.

    Examples
    --------
    >>> bits = RandomBits()
    >>> stream = bits.of(7, 0, "leading")
    >>> stream.take(3) < 8, bits.used
    (True, Counter({'leading': 3}))
    """

    def __init__(self, seed: int = 1) -> None:
        self.seed = checks.seed(seed)
        self.used: Counter[str] = Counter()

    def of(self, element: int, number: int, purpose: str) -> BitStream:
        """The endless stream of bits that an element has under a number; `purpose` says under what they are counted.

        The first 64 bits of different elements differ, as mix64 is a permutation.
        """
        return BitStream(mix64(element ^ draw(self.seed, "lazy", number)), self.used, purpose)


class BitStream:
    """An endless stream of random bits, lowest bit of each word first. Each bit is counted when it is taken."""

    def __init__(self, word: int, used: Counter[str], purpose: str) -> None:
        self._key, self._word, self._left, self._number = word, word, 64, 0
        self._used, self._purpose = used, purpose

    def take(self, number: int) -> int:
        """The next bits as an integer, the first one lowest."""
        self._used[self._purpose] += number
        found = have = 0
        while have < number:
            part = min(number - have, self._left)
            found |= (self._word & (1 << part) - 1) << have
            have += part
            self._drop(part)
        return found

    def run(self) -> int:
        """Zeros before the next one, which is taken as well."""
        zeros = 0
        while not self._word:
            zeros += self._left
            self._drop(self._left)
        place = lowest_one(self._word)
        self._drop(place + 1)
        self._used[self._purpose] += zeros + place + 1
        return zeros + place

    def _drop(self, number: int) -> None:
        self._word, self._left = self._word >> number, self._left - number
        if self._left == 0:
            self._number += 1
            self._word, self._left = mix64((self._key + self._number * 0x9E3779B97F4A7C15) % 2**64), 64


def lowest_one(word: int) -> int:
    """The place of the lowest one of a word of 64 bits that has one: the logarithm of word & -word, by six masks.

    Bit j of it says whether that power of two is in mask j. Source: section 4.3, where the second mask has 20 digits.
    """
    power = word & -word
    return sum(1 << place for place, mask in enumerate(MASKS) if power & mask)


def _checked(elements: Iterable[int], num_samples: int, bits: RandomBits) -> tuple[list[int], int]:
    """(the elements, each once, the number of samples)"""
    checks.instance("bits", bits, RandomBits)
    num_samples = checks.integer("num_samples", num_samples)
    if not isinstance(elements, Iterable):
        raise ArgumentTypeError(f"elements: {checks.shown(elements)}; give integers from 0 to 2**64 - 1")
    found = (checks.integer(f"elements[{place}]", each, 0, 2**64 - 1) for place, each in enumerate(elements))
    return list(dict.fromkeys(found)), num_samples


def naive(elements: Iterable[int], num_samples: int, bits: RandomBits) -> Iterator[int]:
    """Samples by 64 bits of each element for each: the element of the least (section 3.2).

    Parameters
    ----------
    elements : iterable of int in [0, 2**64)
        A set; repeats do not matter.
    num_samples : int
        Samples to draw, with replacement, 0 or more.
    bits : RandomBits
        Where random bits come from and are counted.

    Yields
    ------
    int
        An element for each sample; nothing for an empty set.

    Raises
    ------
    ParameterError, ArgumentTypeError
        With the first sample, if an argument is not as described above.

    Examples
    --------
    >>> bits = RandomBits()
    >>> len(list(naive([1, 2, 3], 5, bits))), bits.used.total()
    (5, 960)
    """
    every, num_samples = _checked(elements, num_samples, bits)
    for number in range(num_samples if every else 0):
        yield min(every, key=lambda element: bits.of(element, number + 1, "whole").take(64))


def prefixes(elements: Iterable[int], num_samples: int, bits: RandomBits, buffer: int = BUFFER) -> Iterator[int]:
    """Yield samples by one byte per element and sample, and 64 more bits where bytes tie for the least (section 3.2).

    The bytes of all samples are one stream of the element. Elements that tie wait in a buffer for each sample, and are
    decided when it is full or when all have been seen.

    Parameters
    ----------
    elements, num_samples, bits
        As in `naive`.
    buffer : int, default 16
        Elements that wait, at least 2. It changes no sample.

    Yields
    ------
    int
        An element for each sample; nothing for an empty set.

    Raises
    ------
    ParameterError, ArgumentTypeError
        With the first sample, if an argument is not as described above.

    Examples
    --------
    >>> bits = RandomBits()
    >>> len(list(prefixes(range(1000), 128, bits))), 8 < bits.used.total() / 128_000 < 8.5
    (128, True)
    """
    every, num_samples = _checked(elements, num_samples, bits)
    buffer = checks.integer("buffer", buffer, 2)
    waiting: list[list[int]] = [[] for _ in range(num_samples)]
    least, tails = [256] * num_samples, [{} for _ in range(num_samples)]  # type: list[int], list[dict[int, int]]

    def decide(number: int) -> None:
        known = tails[number]
        for element in waiting[number]:
            if element not in known:
                known[element] = bits.of(element, number + 1, "tails").take(64)
        waiting[number] = [min(waiting[number], key=lambda element: known[element])]
        tails[number] = {element: known[element] for element in waiting[number]}

    for element in every:
        stream = bits.of(element, 0, "leading")
        for number in range(num_samples):
            byte = stream.take(8)
            if byte < least[number]:
                least[number], waiting[number], tails[number] = byte, [], {}
            if byte == least[number]:
                if len(waiting[number]) == buffer:
                    decide(number)
                waiting[number].append(element)
    for number in range(num_samples):
        if len(waiting[number]) > 1:
            decide(number)
        yield from waiting[number]


def runs(elements: Iterable[int], num_samples: int, bits: RandomBits) -> Iterator[int]:
    """Yield samples by the longest run of zeros; all samples of an element share one stream (section 4.1).

    Parameters
    ----------
    elements, num_samples, bits
        As in `naive`.

    Yields
    ------
    int
        An element for each sample; nothing for an empty set.

    Raises
    ------
    ParameterError, ArgumentTypeError
        With the first sample, if an argument is not as described above.

    Examples
    --------
    >>> bits = RandomBits()
    >>> len(list(runs(range(1000), 128, bits))), 1.9 < bits.used.total() / 128_000 < 2.1
    (128, True)
    """
    every, num_samples = _checked(elements, num_samples, bits)
    waiting: list[list[int]] = [[] for _ in range(num_samples)]
    longest = [-1] * num_samples
    for element in every:
        stream = bits.of(element, 0, "leading")
        for number in range(num_samples):
            _keep_longest(element, stream.run(), number, longest, waiting)
    for number in range(num_samples if any(waiting) else 0):
        yield _least(waiting[number], number, bits, "ties")


def blocks(elements: Iterable[int], num_samples: int, bits: RandomBits) -> Iterator[int]:
    """Samples by blocks of 128, of whose values each begins with a zero with probability 1/128 (section 4.2).

    Which values of a block begin with a zero, its winners, is drawn at once: first how many, then which ones, each by
    taking bits of a fraction until they decide. Winners are compared by the run of zeros that follows. A sample for
    which no element wins is decided by bits of all of them, which is rare where there are many more elements than 128.

    This is a dart thrower for sets without weights: an element throws about one dart at 128 samples.

    Parameters
    ----------
    elements, num_samples, bits
        As in `naive`. A last block of fewer samples takes the bits of a whole one.

    Yields
    ------
    int
        An element for each sample; nothing for an empty set.

    Raises
    ------
    ParameterError, ArgumentTypeError
        With the first sample, if an argument is not as described above.

    Examples
    --------
    >>> bits = RandomBits()
    >>> len(list(blocks(range(2000), 128, bits))), bits.used["leading"] / 256_000 < 18 / 128
    (128, True)
    """
    every, num_samples = _checked(elements, num_samples, bits)
    waiting: list[list[int]] = [[] for _ in range(-(-num_samples // BLOCK) * BLOCK)]
    longest = [-1] * len(waiting)
    for element in every:
        for first in range(0, len(waiting), BLOCK):
            stream = bits.of(element, -1 - first, "leading")
            for place in winners(stream):
                _keep_longest(element, stream.run(), first + place, longest, waiting)
    for number in range(num_samples if every else 0):
        if waiting[number]:
            yield _least(waiting[number], number, bits, "ties")
        else:
            yield _least(every, number, bits, "without winners")


SAMPLERS: dict[str, Callable[[Iterable[int], int, RandomBits], Iterator[int]]] = {
    "naive": naive,
    "prefixes": prefixes,
    "runs": runs,
    "blocks": blocks,
}
"""All four, by name."""


def _keep_longest(element: int, run: int, number: int, longest: list[int], waiting: list[list[int]]) -> None:
    if run > longest[number]:
        longest[number], waiting[number] = run, []
    if run == longest[number]:
        waiting[number].append(element)


def _least(elements: list[int], number: int, bits: RandomBits, purpose: str) -> int:
    """The element whose bits for a sample are the least fraction, one bit of each at a time."""
    if len(elements) == 1:
        return elements[0]
    streams = {element: bits.of(element, number + 1, purpose) for element in elements}
    while len(streams) > 1:
        taken = {element: stream.take(1) for element, stream in streams.items()}
        least = min(taken.values())
        streams = {element: stream for element, stream in streams.items() if taken[element] == least}
    return next(iter(streams))


# --------------------------------------------------------------------------------------------------------- the winners


def winners(stream: BitStream) -> tuple[int, ...]:
    """Which values of a block begin with a zero: each does with probability 1/128, independently, exactly.

    Parameters
    ----------
    stream : BitStream
        Where bits are taken: of a fraction that says how many, then of one that says which.

    Returns
    -------
    tuple of int
        Places in the block, ascending.

    Examples
    --------
    >>> all(0 <= place < 128 for place in winners(RandomBits().of(5, -1, "leading")))
    True
    """
    number = _fall(stream, _bounds())
    return _combination(_uniform(stream, math.comb(BLOCK, number)), number)


_ONE = 7 * BLOCK
"""Bits of the denominator of probabilities: 128**128 = 2**896."""


@cache
def _bounds() -> tuple[int, ...]:
    """Probability of at most k winners times 2**896: for k = -1, 0, ..., 128."""
    each = (math.comb(BLOCK, number) * (BLOCK - 1) ** (BLOCK - number) for number in range(BLOCK + 1))
    return (0, *accumulate(each))


def _fall(stream: BitStream, bounds: tuple[int, ...]) -> int:
    """Between which of ascending bounds a random fraction falls, by as few of its bits as decide it."""
    low, left, place = 0, _ONE, 0
    while True:
        while low >= bounds[place + 1]:
            place += 1
        if low + (1 << left) <= bounds[place + 1]:
            return place
        left -= 1
        low += stream.take(1) << left


def _uniform(stream: BitStream, number: int) -> int:
    """In which of some equal parts of the unit a random fraction falls, by as few of its bits as decide it."""
    numerator, size = 0, 1
    while (numerator * number) // size != -(-(numerator + 1) * number // size) - 1:
        numerator, size = 2 * numerator + stream.take(1), 2 * size
    return numerator * number // size


def _combination(rank: int, number: int) -> tuple[int, ...]:
    """The set of `number` places of that rank in the combinatorial number system."""
    places = []
    for left in range(number, 0, -1):
        place = left - 1
        while math.comb(place + 1, left) <= rank:
            place += 1
        rank -= math.comb(place, left)
        places.append(place)
    return tuple(reversed(places))


# ---------------------------------------------------------------------------------------------------------- accounting


def prefix_bytes(prefix_bits: int = 8) -> float:
    """Random bytes of `prefixes` for an element and a sample, in the limit of many elements.

    Parameters
    ----------
    prefix_bits : int, default 8
        Bits that are always taken; eight bytes more are taken of one element in 2**prefix_bits.

    Returns
    -------
    float
        prefix_bits / 8 + 8 / 2**prefix_bits. For 8 bits this is 264/256 = 33/32; section 3.2 has 65/64, by mistake.

    Examples
    --------
    >>> prefix_bytes(8) == 33 / 32, prefix_bytes(4)
    (True, 1.0)
    """
    prefix_bits = checks.integer("prefix_bits", prefix_bits, 1, 64)
    return prefix_bits / 8 + 8 / 2**prefix_bits


def least_prefixes(num_elements: int, prefix_bits: int = 8) -> tuple[float, float]:
    """How many elements have the least prefix, and how probable it is that more than one has.

    Parameters
    ----------
    num_elements : int
        Elements of a set.
    prefix_bits : int, default 8
        Bits of a prefix.

    Returns
    -------
    tuple of float
        (expected number, probability of a tie).

    Examples
    --------
    >>> number, tie = least_prefixes(1000)
    >>> round(number, 2), round(tie, 3)
    (3.99, 0.92)
    """
    num_elements = checks.integer("num_elements", num_elements, 1)
    values = 2 ** checks.integer("prefix_bits", prefix_bits, 1, 16)
    others = [(left / values) ** (num_elements - 1) for left in range(values + 1)]
    share = num_elements / values  # of any one prefix, if each has one element there
    return share * math.fsum(others[1:]), 1 - share * math.fsum(others[:-1])


def winner_probability(number: int, block: int = BLOCK) -> float:
    """Return the probability that `number` values of a block begin with a zero.

    Parameters
    ----------
    number : int
        Winners.
    block : int, default 128
        Values of a block; each begins with a zero with probability 1/block.

    Returns
    -------
    float
        Binomial. More than three of 128 win with 1.85%; section 4.2 has "under 1/2 of a percent", by mistake.

    Examples
    --------
    >>> round(1 - sum(map(winner_probability, range(4))), 4)
    0.0185
    """
    block = checks.integer("block", block, 1)
    number = checks.integer("number", number, 0, block)
    return math.comb(block, number) * (block - 1) ** (block - number) / block**block


def block_bits() -> float:
    """Random bits of `blocks` that an element is expected to take for 128 samples, ties and losers left out.

    Returns
    -------
    float
        For how many winners, for which, and 2 for the run of each. Section 4.2 bounds it by 18. No scheme can
        use fewer than 8.44 bits, the entropy of the choice of values that begin with a zero.

    Examples
    --------
    >>> round(block_bits(), 2), round(block_bits() / 128, 3)
    (12.74, 0.1)
    """
    return math.fsum(chance * length for length, chance in block_distribution().items())


@cache
def block_distribution() -> dict[int, float]:
    """The probability of each number of bits that `blocks` takes of an element for 128 samples, up to 200 bits."""
    bounds, found = _bounds(), Counter[int]()
    for number in range(20):  # more winners have a probability below 1e-19
        how_many = _lengths(bounds[number], bounds[number + 1])
        parts = math.comb(BLOCK, number)
        which = {length: chance for length, chance in enumerate(_uniform_lengths(parts)) if chance}
        lengths = _sums(how_many, which)
        for _ in range(number):
            lengths = _sums(lengths, {length: 0.5**length for length in range(1, 60)})
        found.update(lengths)
    return dict(found)


def _lengths(low: int, high: int) -> dict[int, float]:
    """Return, for each number of bits, the probability that it decides that a fraction falls between two bounds."""
    found, before = {}, 0.0
    for length in range(60):
        left = _ONE - length
        decided = max(0, (high >> left) + (-low >> left)) / 2**length
        found[length] = decided - before
        before = decided
    return found


def _uniform_lengths(parts: int) -> list[float]:
    """Return, for each number of bits, the probability that it decides which of the equal parts has a fraction."""
    found, open_before = [], 1.0
    for length in range(parts.bit_length() + 60):
        size = 2**length
        undecided = 1.0 if size < parts else (parts - math.gcd(parts, size)) / size
        found.append(open_before - undecided)
        open_before = undecided
    return found


def _sums(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    """The distribution of the sum of two independent numbers, less what is below 1e-30."""
    found: Counter[int] = Counter()
    for a, p in one.items():
        for b, q in other.items():
            if p * q > 1e-30:
                found[a + b] += p * q  # type: ignore[assignment]
    return dict(found)
