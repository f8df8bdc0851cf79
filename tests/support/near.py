"""Fingerprints that are near one another, and what is near what of them by brute force."""

import itertools

import numpy as np


def of_integers(values, num_words):
    """Integers as fingerprints of so many words, the higher one first."""
    if num_words == 1:
        return np.array(values, np.uint64)
    return np.array([(value >> 64, value & 2**64 - 1) for value in values], np.uint64).reshape(-1, 2)


def random_words(generator, number, num_words):
    values = generator.integers(0, 2**64, (number, num_words), np.uint64)
    return values if num_words == 2 else values[:, 0].copy()


def planted(generator, radius, num_words=1, number=250):
    """Random fingerprints; near each of some of them one at every distance from 0 to beyond the radius."""
    values = [int.from_bytes(generator.bytes(8 * num_words)) for _ in range(number)]
    for centre in values[:12]:
        for distance in range(radius + 3):
            places = generator.choice(64 * num_words, distance, replace=False)
            values.append(centre ^ sum(1 << int(place) for place in places))
    return of_integers(values, num_words)


def adversarial(generator, radius, num_words=1):
    """Fingerprints that differ in one block only, all ones and zeros and what is next to them, and repeats."""
    bits = 64 * num_words
    block = int(generator.integers(0, bits // 16)) * 16
    values = [int(value) << block for value in generator.integers(0, 2**16, 120)]
    values += [0, 2**bits - 1, 1, 2 ** (bits - 1), 2**bits - 2, 2 ** (bits - 1) - 1]
    values += [2**distance - 1 for distance in range(radius + 2)]
    values += [(2**distance - 1) << bits - distance for distance in range(radius + 2)]
    return of_integers(values + [0] * 5 + [2**bits - 1] * 5, num_words)


def one_word_alike(generator, radius, num_words):
    """Crowds that one word divides and the other does not; of one word, one that half of the bits divide."""
    words = random_words(generator, 60, 2) & np.uint64(2**64 - 1 if num_words == 2 else 2**32 - 1)
    words[::2, 0], words[1::3, 1] = words[0, 0], words[1, 1]
    return words if num_words == 2 else words[:, 0] << np.uint64(32) | words[:, 1]


CASES = {
    "random": lambda generator, radius, num_words: random_words(generator, 200, num_words),
    "planted": planted,
    "adversarial": adversarial,
    "one word alike": one_word_alike,
    "all equal": lambda generator, radius, num_words: np.repeat(random_words(generator, 1, num_words), 50, axis=0),
    "all but equal": lambda generator, radius, num_words: of_integers(
        [1 << at for at in range(64 * num_words)], num_words
    ),
    "none": lambda generator, radius, num_words: random_words(generator, 0, num_words),
    "one": lambda generator, radius, num_words: of_integers([2 ** (64 * num_words) - 1], num_words),
}


def crowded(num_words):
    """A few fingerprints within 2 bits of one another, each many times, in turn and at random; and others."""
    generator = np.random.default_rng(11)
    near = of_integers([0, 1, 2, 3, 1 << 40], num_words)
    return np.concatenate([near, near[generator.integers(0, 5, 300)], planted(generator, 2, num_words, 40), near[:2]])


def brute(left, right, radius):
    """Every (row of left, row of right, distance) within the radius, in order."""
    distance = np.bitwise_count(left[:, None] ^ right[None, :])
    if left.ndim == 2:
        distance = distance.sum(axis=2, dtype=np.uint8)
    rows = np.argwhere(distance <= radius)
    return [(a, b, int(distance[a, b])) for a, b in rows.tolist()]


def brute_pairs(values, radius):
    """Every (row, later row, distance) within the radius, in order."""
    return [pair for pair in brute(values, values, radius) if pair[0] < pair[1]]


def rows_of(found):
    """All (left, right, distance) of a `NearPairs`, or (row, query, distance) of `Matches`."""
    return list(zip(found[0].tolist(), found[1].tolist(), found[2].tolist(), strict=True))


def expanded(found):
    """All pairs of rows that a `NearPairs` of collapsed fingerprints stands for."""
    members = {}
    for row, first in enumerate(found.first.tolist()):
        members.setdefault(first, []).append(row)
    every = {pair: 0 for rows in members.values() for pair in itertools.combinations(rows, 2)}
    for a, b, distance in rows_of(found):
        if distance:
            for pair in itertools.product(members[a], members[b]):
                every[tuple(sorted(pair))] = distance
    return [(a, b, every[a, b]) for a, b in sorted(every)]


def as_integers(values):
    return values.tolist() if values.ndim == 1 else [high << 64 | low for high, low in values.tolist()]


def answers(index, queries, radius):
    """Return (row, query, distance) of an index's answers to all queries; some queries are also asked one by one."""
    ids, distances = index.query(queries, radius)
    every = max(1, len(queries) // 5)
    for number, query in list(enumerate(as_integers(queries)))[::every]:
        one_ids, one_distances = index.query(query, radius)
        np.testing.assert_array_equal(one_ids, ids[number])
        np.testing.assert_array_equal(one_distances, distances[number])
    found = []
    for query in range(len(queries)):
        assert (np.diff(distances[query].astype(int)) >= 0).all()
        columns = zip(ids[query].tolist(), distances[query].tolist(), strict=True)
        found += [(row, query, distance) for row, distance in columns]
    return sorted(found)
