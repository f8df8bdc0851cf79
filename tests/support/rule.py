"""The rule of `neardup_gpu.stages.partners` a second time, in plain Python.

V is found by brute force, and the rest follows from all of V.

Nothing here knows of prefixes, rounds or batches, and no NumPy is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from witnesses import greedy, jaccard, token_strings

Pair = tuple[int, int]


class Decided(NamedTuple):
    """What the rule makes of all pairs: of rows by priority, who stays, who stands for each, and the pairs listed."""

    kept: list[bool]
    keeper: list[int]
    listed: set[Pair]


class Expected(NamedTuple):
    """A result by ids: {id: (kept, duplicate_of, resemblance, group)}, {(id_a, id_b): resemblance}, and all of V."""

    documents: dict
    pairs: dict
    every: dict


def shingles_of(tokens: list[str], size: int = 5, kind: str = "set") -> set:
    """The set that a text is compared by; of a bag, the second of two equal shingles is another element."""
    if kind == "circular":
        return {tuple(tokens[(i + j) % len(tokens)] for j in range(size)) for i in range(len(tokens))}
    windows = [tuple(tokens[i : i + size]) for i in range(max(1, len(tokens) - size + 1))]
    if kind == "set":
        return set(windows)
    seen: Counter = Counter()
    elements = set()
    for window in windows:
        seen[window] += 1
        elements.add((window, seen[window]))
    return elements


def contained(a: set, b: set) -> float:
    """The share of the worse of two rows, b, that is in the better one."""
    return len(a & b) / len(b)


def all_pairs(sets: list[set], pinned: list[bool], threshold: float, worth=jaccard) -> dict[Pair, float]:
    """V: every pair (better row, row) at the threshold, but those of two pinned rows."""
    found = {}
    for j, b in enumerate(sets):
        for i, a in enumerate(sets[:j]):
            if not (pinned[i] and pinned[j]) and worth(a, b) >= threshold:
                found[i, j] = worth(a, b)
    return found


def _first_of_components(num_rows: int, pairs: Iterable[Pair]) -> list[int]:
    """The first row of each row's connected component."""
    neighbours: list[list[int]] = [[] for _ in range(num_rows)]
    for i, j in pairs:
        neighbours[i].append(j)
        neighbours[j].append(i)
    first: list[int | None] = [None] * num_rows
    for row in range(num_rows):
        if first[row] is None:
            first[row], reached = row, [row]
            while reached:
                for other in neighbours[reached.pop()]:
                    if first[other] is None:
                        first[other] = row
                        reached.append(other)
    return first


def decided(
    pinned: list[bool], every: dict[Pair, float], cluster: str, most: int | None, directed: bool = False
) -> Decided:
    """Who stays and what is listed, from all of V; `directed`: a row can stand for worse ones alone."""
    num_rows = len(pinned)
    most = num_rows if most is None else most
    partners: list[list[int]] = [[] for _ in range(num_rows)]
    for i, j in sorted(every):
        partners[i].append(j)
        partners[j].append(i)
    for mine in partners:
        mine.sort()
    first = list(range(num_rows))
    if cluster == "components":
        first = _first_of_components(num_rows, every)
        kept = [pinned[row] or first[row] == row for row in range(num_rows)]
    else:  # no pair of two pinned rows is in V, and they come first
        kept = greedy(num_rows, list(every))
    keeper, listed = list(range(num_rows)), set()
    for j in range(num_rows):
        listed |= {(i, j) for i in [i for i in partners[j] if i < j][:most]}
        if not kept[j]:
            stay = [i for i in partners[j] if kept[i] and (i < j or not directed)][:most]
            listed |= {(min(i, j), max(i, j)) for i in stay}
            if cluster == "components":
                keeper[j] = first[j]
            else:
                keeper[j] = max(stay, key=lambda i: (every[min(i, j), max(i, j)], -i))
    return Decided(kept, keeper, listed)


def expected(documents: list[tuple], recipe, known: Iterable[tuple] = ()) -> Expected:
    """What `dedup` gives for (id, text) by priority, and for those of a reference set, by brute force."""
    known, directed = list(known), recipe.method.name == "containment"
    if directed:
        documents = sorted(documents, key=lambda each: -_size(each[1], recipe))
    ids = [id_ for id_, _ in (*known, *documents)]
    tokens = [words_or_text(token_strings(text), text) for _, text in (*known, *documents)]

    def find(ranks: list[int]) -> dict[Pair, float]:
        sets = [shingles_of(list(tokens[rank]), recipe.shingles.size, recipe.shingles.kind) for rank in ranks]
        found = all_pairs(
            sets, [rank < len(known) for rank in ranks], recipe.threshold, contained if directed else jaccard
        )
        sizes = [len(tokens[rank]) for rank in ranks]
        ratios = {pair: min(sizes[i] for i in pair) / max(sizes[i] for i in pair) for pair in found}
        return {pair: worth for pair, worth in found.items() if ratios[pair] >= (recipe.length_ratio or 0)}

    return stated(ids, tokens, len(known), recipe, find)


def words_or_text(words: list[str], text: str) -> tuple[str, ...] | str:
    """What makes a document equal to another one: its words; without words, its text; nothing, if that is blank."""
    return tuple(words) or (text if text.strip() else "")


def _size(text: str, recipe) -> int:
    tokens = token_strings(text)
    return len(shingles_of(tokens, recipe.shingles.size, recipe.shingles.kind)) if tokens else 0


def stated(ids: list, tokens: list, num_known: int, recipe, find: Callable[[list[int]], dict[Pair, float]]) -> Expected:
    """What `dedup` gives for documents by priority, those of a reference set first.

    `tokens` holds what `words_or_text` gives of each document; `find` gives V, in row numbers, of the documents that
    are the first with their words.
    """
    first: dict = {}
    for rank, mine in enumerate(tokens):
        if mine:
            first.setdefault(mine, rank)
    ranks = sorted(rank for mine, rank in first.items() if not isinstance(mine, str))
    every = find(ranks)
    rule = decided(
        [rank < num_known for rank in ranks],
        every,
        recipe.cluster,
        recipe.max_partners,
        recipe.method.name == "containment",
    )
    row_of = {rank: row for row, rank in enumerate(ranks)}
    pairs = {(ids[ranks[i]], ids[ranks[j]]): every[i, j] for i, j in rule.listed}
    told = {}
    for rank in range(num_known, len(ids)):
        id_ = ids[rank]
        if not tokens[rank]:
            told[id_] = (True, None, None, id_)
            continue
        representative = first[tokens[rank]]
        if representative != rank:
            pairs[ids[representative], id_] = 1.0
        if isinstance(tokens[rank], str):
            mine = ids[representative]
            told[id_] = (True, None, None, id_) if representative == rank else (False, mine, 1.0, mine)
            continue
        row = row_of[representative]
        keeper = ids[ranks[rule.keeper[row]]]
        if rule.kept[row]:
            told[id_] = (True, None, None, id_) if representative == rank else (False, keeper, 1.0, keeper)
        else:
            told[id_] = (False, keeper, every.get(tuple(sorted((rule.keeper[row], row)))), keeper)
    return Expected(told, pairs, {(ids[ranks[i]], ids[ranks[j]]): value for (i, j), value in every.items()})


def told(result) -> tuple[dict, dict]:
    """(documents, pairs) of a result in the form of `Expected`; no id or pair comes twice."""
    rows, listed = result.documents.to_pylist(), result.pairs.to_pylist()
    measure = result.recipe.method.measure.name
    documents = {row["id"]: tuple(row[name] for name in ("kept", "duplicate_of", measure, "group")) for row in rows}
    pairs = {(row["id_a"], row["id_b"]): row[measure] for row in listed}
    assert (len(documents), len(pairs)) == (len(rows), len(listed))
    return documents, pairs


def check(result, expected: Expected) -> None:
    """Assert that a result is what the rule makes of all pairs, and that its report counts them."""
    documents, pairs = told(result)
    assert documents == expected.documents
    assert pairs == expected.pairs
    listed = sum(pair in expected.every for pair in pairs)
    assert result.report["counts"]["verified_pairs"] == listed
    limits = result.report["limits"]
    unlisted = len(expected.every) - listed
    assert limits["max_partners"] == result.recipe.max_partners
    if limits["all_counted"]:
        assert limits["unlisted_pairs"] == unlisted
    else:
        assert 0 <= limits["unlisted_pairs"] <= unlisted
    most = result.recipe.max_partners
    better = Counter(b for _, b in expected.every)
    if most is None or not better or max(better.values()) < most:
        assert limits["all_counted"]
