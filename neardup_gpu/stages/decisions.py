"""From sketches to decisions, in ranks: rank 0 is the document of the best priority, a reference set before all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data import NO_PAIRS, Pairs
from ..engine.arrays import same_device, some_rows
from ..engine.choice import kernel
from ..engine.contract import Runtime
from ..engine.pieces import Numbers
from ..kernels import identical as identical_kernel
from ..kernels._cached import cached_property
from ..kernels._launch import array_module
from ..methods.contract import KINDS, Candidates, Join, Sketch, merged
from ..recipe import Recipe
from ..records import dataclass
from . import choose_keepers
from .conditions import alike_in_length
from .priority import units_by_priority
from .recall import random_order
from .sketching import Sketched, can_repeat, is_compared
from .verification import Verified, in_host_memory

# ----------------------------------------------------------------------------------------------------------- priority


@dataclass(frozen=True, eq=False)
class Ranked:
    """Documents in priority order.

    num_known : int
        Documents of the reference set, whose rows come before the input's.
    rows : array of int64, shape (documents,)
        Row of each rank.
    num_tokens : array of int64, shape (documents,)
        Of each rank.
    """

    num_known: int
    rows: np.ndarray
    num_tokens: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of each row."""
        ranks = np.empty(len(self), np.int64)
        ranks[self.rows] = np.arange(len(self))
        return ranks

    @property
    def of_input(self) -> np.ndarray:
        """Ranks of the input's documents, in input order."""
        return self.ranks[self.num_known :]


def by_priority(sketched: Sketched, rule: str, sizes: np.ndarray | None = None) -> Ranked:
    """Rank the units of a reference set and of the input, from the best priority to the worst.

    Units have the priority of their document, and those of one document keep their order. If sizes are given, of all
    rows, the input's are ranked by falling size, and by priority among equals.

    Raises
    ------
    InputError
        If a column of the rule has no order.
    """
    known = sketched.num_known
    num_tokens, places, first = sketched.num_tokens[known:], sketched.places, sketched.num_known_documents
    if places is not None:
        places = places.between(known, None, first)
    number = len(sketched.ids) - first
    order = units_by_priority(rule, num_tokens, sketched.columns, sketched.categories, places, number) + known
    if sizes is not None:
        order = order[np.argsort(-sizes[order], kind="stable")]
    rows = np.concatenate([np.arange(known), order])
    return Ranked(known, rows, some_rows(sketched.num_tokens, rows))


# ----------------------------------------------------------------------------------------------------- representatives


def kinds_of(same_words: np.ndarray, same_text: np.ndarray) -> np.ndarray:
    """Return how the documents of some pairs are alike: places in `KINDS`, int8."""
    return np.where(same_words, np.where(same_text, 0, 1), IS_NEAR).astype(np.int8)


IS_NEAR = KINDS.index("near")
"""The place of documents that are neither of the same text nor of the same words or key."""


def resemblance_of_equal(kinds: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Return the resemblance of pairs if nothing is verified: 1 for equal texts; NaN if it is not known.

    Documents that share a key may have other texts, so that only those of the same text are known to resemble.
    """
    return np.where(kinds <= (0 if recipe.method.equal_by else 1), 1.0, np.nan)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of documents of the same words, which count as one. Their representative is the first one by priority.

    representative : array of int64, shape (documents,)
        First rank with the same sequence of words; for documents without words, first rank with the same text; itself
        for blank documents.
    texts : array of uint64, shape (documents,), or None
        A fingerprint of the text of each rank; None where it is not known, as in an index.
    all_keys : array
        Keys of each rank, in host memory, where tables of results tell something of them; else empty.
    ranks : array of int64, shape (representatives,)
        Representatives with tokens, ascending.
    keys : array, a row for each representative
    order : array of uint64, shape (representatives,)
        Words that put them in a random order, see `random_order`.
    pinned : array of bool, shape (representatives,)
        Whether each is of the reference set.
    num_tokens : array of int64, shape (representatives,)
    owner : array of int64, shape (representatives,), or None
        If parts of the same document are not compared, the document of each.
    """

    representative: np.ndarray
    texts: np.ndarray | None
    all_keys: np.ndarray | None
    ranks: np.ndarray
    keys: Any
    order: np.ndarray | None
    pinned: np.ndarray
    num_tokens: np.ndarray
    owner: np.ndarray | None = None

    def apart(self, pairs: Pairs) -> Pairs:
        """Return the pairs of representatives that count, as they are of two documents."""
        if self.owner is None:
            return pairs
        (owner,) = same_device(pairs.left, self.owner)
        return pairs.where(owner[pairs.left] != owner[pairs.right])

    def kinds(self, ranks: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return for each pair of ranks how the two documents are alike: places in `KINDS`, int8."""
        same_text = np.zeros(len(ranks), bool) if self.texts is None else self.texts[ranks] == self.texts[others]
        return kinds_of(self.representative[ranks] == self.representative[others], same_text)


def identical(words: Any, rows: np.ndarray, runtime: Runtime) -> np.ndarray:
    """For each row, the first row with the same words; in host memory."""
    run = kernel(identical_kernel, runtime.backend)
    return runtime.fetch(runtime.run(lambda: run(runtime.put(runtime.take(words, rows)))))


def representatives(
    ranked: Ranked, sketched: Sketched, recipe: Recipe, runtime: Runtime, *, ordered: bool = True
) -> Groups:
    """Group documents of the same words; `ordered` if they are needed in a random order, to draw some of them.

    The sketches are used up: what is of representatives may be written over what is of all.
    """
    representative, present = np.arange(len(ranked)), np.flatnonzero(is_compared(recipe, ranked.num_tokens))
    hashes, keys = sketched.document_hashes, sketched.keys
    texts = some_rows(runtime.fetch(sketched.text_hashes), ranked.rows)
    written = np.flatnonzero(can_repeat(recipe, ranked.num_tokens, texts, sketched.places is not None))
    representative[written] = written[identical(hashes, ranked.rows[written], runtime)]
    hashes = runtime.fetch(hashes)  # the keys need the room
    ranks = present[representative[present] == present]
    rows = ranked.rows[ranks]
    told = isinstance(recipe.method, Sketch) and (recipe.method.tells_pairs or not recipe.verifies)
    all_keys = runtime.fetch(keys)[ranked.rows] if told else None
    return Groups(
        representative,
        texts,
        all_keys,
        ranks,
        runtime.take(keys, rows, last=True) if isinstance(recipe.method, Sketch) else None,
        random_order(some_rows(hashes, rows, last=True)) if ordered else None,
        ranks < ranked.num_known,
        ranked.num_tokens[ranks],
        None if sketched.places is None or recipe.unit.inside else sketched.places.owner[rows],
    )


def _pairs_that_count(groups: Groups, pairs: Pairs, recipe: Recipe, runtime: Runtime) -> Pairs:
    """Leave out the pairs of two documents of the reference set, and those that the recipe does not compare."""
    pairs = runtime.run(groups.apart, pairs)
    if recipe.length_ratio is not None:
        pairs = pairs.where(
            alike_in_length(runtime.put(groups.num_tokens), pairs.left, pairs.right, recipe.length_ratio)
        )
    only_against = recipe.only_against
    if not groups.pinned.any() and not only_against:
        return pairs
    pinned, left, right = map(runtime.put, (groups.pinned, pairs.left, pairs.right))
    if only_against:
        return runtime.run(lambda: Pairs(left, right).where(pinned[left] & ~pinned[right]))
    return runtime.run(lambda: Pairs(left, right).where(~(pinned[left] & pinned[right])))


def unverified(groups: Groups, pairs: Pairs, recipe: Recipe, runtime: Runtime) -> Verified:
    """Return the candidates as verified pairs, if nothing is verified: their likeness stands for resemblance."""
    if len(pairs) == 0:
        return Verified(pairs, runtime.put(np.empty(0)))
    assert groups.all_keys is not None
    return Verified(pairs, runtime.put(recipe.method.likeness(groups.all_keys[groups.ranks], pairs.left, pairs.right)))


# ---------------------------------------------------------------------------------------------------------- decisions


class Nearest(NamedTuple):
    """The best partner in the reference set of each rank.

    partner : array of int64, shape (documents,)
        The rank of the partner, or -1. For a document that has the same words as a reference document, that one.
    resemblance : array of float64, shape (documents,)
        Resemblance to the partner; NaN without one, or where it was not verified.
    """

    partner: np.ndarray
    resemblance: np.ndarray

    def at_least(self, threshold: float) -> Nearest:
        """Return only the partners at a higher threshold."""
        there = self.resemblance >= threshold
        return Nearest(np.where(there, self.partner, -1), np.where(there, self.resemblance, np.nan))


def nearest_partners(ranked: Ranked, groups: Groups, near: Verified, recipe: Recipe) -> Nearest | None:
    """Find the best partner in the reference set of each rank of the input; None without a reference set.

    Parameters
    ----------
    near : Verified
        The best pair of each representative with one of the reference set, in host memory.
    """
    if ranked.num_known == 0:
        return None
    partner, resemblance = np.full(len(ranked), -1, np.int64), np.full(len(ranked), np.nan)
    known = np.arange(ranked.num_known)
    partner[known], resemblance[known] = known, 1.0  # for their copies
    rows = groups.ranks[near.pairs.right]
    partner[rows], resemblance[rows] = groups.ranks[near.pairs.left], near.resemblance
    partner, resemblance = partner[groups.representative], resemblance[groups.representative]
    partner[: ranked.num_known], resemblance[: ranked.num_known] = -1, np.nan
    if not recipe.verifies:
        kinds = np.where(partner >= 0, groups.kinds(np.arange(len(ranked)), partner), IS_NEAR)
        resemblance = resemblance_of_equal(kinds, recipe)
    return Nearest(partner, resemblance)


class Decisions(NamedTuple):
    """The decision for each rank.

    keeper : array of int64, shape (documents,)
        Itself for a document that stays, else the kept one that stands for it.
    resemblance : array of float64, shape (documents,)
        Resemblance to the keeper; NaN where it was not verified.
    removed : array of bool, shape (representatives,)
    verified : Verified
        The listed pairs of representatives, in host memory.
    nearest : Nearest or None
    """

    keeper: np.ndarray
    resemblance: np.ndarray
    removed: np.ndarray
    verified: Verified
    nearest: Nearest | None


def decide(
    ranked: Ranked,
    groups: Groups,
    deciding: Verified,
    listed: Verified,
    nearest: Nearest | None,
    recipe: Recipe,
    runtime: Runtime,
) -> Decisions:
    """Decide who is kept. A copy is removed for its representative or, if that is removed, for its keeper.

    By `only_against` a document is removed for its nearest partner in the reference set, if it has one.

    Parameters
    ----------
    deciding, listed : Verified
        The pairs that decide, and those that the result lists.
    nearest : Nearest or None
    """
    host = in_host_memory(listed, runtime)
    if recipe.only_against:
        keeper, resemblance = np.arange(len(ranked)), np.ones(len(ranked))
        if nearest is not None:
            leaks = nearest.partner >= 0
            keeper[leaks], resemblance[leaks] = nearest.partner[leaks], nearest.resemblance[leaks]
        return Decisions(keeper, resemblance, keeper[groups.ranks] != groups.ranks, host, nearest)
    number = len(groups.ranks)
    verified = Verified(
        Pairs(runtime.put(deciding.pairs.left), runtime.put(deciding.pairs.right)), runtime.put(deciding.resemblance)
    )
    how = recipe.cluster, recipe.method.measure, groups.pinned, runtime.backend
    chosen = runtime.run(choose_keepers, number, verified, *how)
    agreement = runtime.fetch(runtime.run(resemblance_to, chosen, verified))
    chosen = runtime.fetch(chosen)
    keeper, resemblance = np.arange(len(ranked)), np.ones(len(ranked))
    keeper[groups.ranks], resemblance[groups.ranks] = groups.ranks[chosen], agreement
    del chosen, agreement
    keeper = keeper[groups.representative]
    resemblance = resemblance[groups.representative]
    keeper[: ranked.num_known] = np.arange(ranked.num_known)
    if not recipe.verifies:
        resemblance = resemblance_of_equal(groups.kinds(np.arange(len(ranked)), keeper), recipe)
    return Decisions(keeper, resemblance, keeper[groups.ranks] != groups.ranks, host, nearest)


def resemblance_to(chosen: Any, verified: Verified) -> Any:
    """Resemblance of each row to the row chosen for it: 1 to itself, NaN if that pair was not verified."""
    xp = array_module(chosen)
    found = xp.where(chosen == xp.arange(len(chosen)), 1.0, np.nan)
    left, right = verified.pairs.left, verified.pairs.right
    for row, other in ((left, right), (right, left)):
        named = chosen[row] == other
        found[row[named]] = verified.resemblance[named]
    return found


def proposed(groups: Groups, recipe: Recipe, runtime: Runtime) -> Candidates:
    """Find the candidates of representatives that can decide: see `_pairs_that_count`.

    A method that does not sketch proposes none; all rows are joined by their shingles then, as crowded ones are.
    """
    if isinstance(recipe.method, Join):
        return Candidates(NO_PAIRS, 0, 0, np.full(len(groups.ranks), recipe.verifies))
    candidates = found_by(groups.keys, recipe, runtime)
    return candidates._replace(pairs=_pairs_that_count(groups, candidates.pairs, recipe, runtime))


def found_by(keys: Any, recipe: Recipe, runtime: Runtime) -> Candidates:
    """Find all candidates; task by task, if memory does not suffice for all tasks at once."""
    method, backend = recipe.method, runtime.backend

    def collide(tasks: Numbers) -> Candidates:
        return method.collide(keys, seed=recipe.seed, tasks=tasks.numbers, backend=backend)

    return merged(list(runtime.map(collide, [Numbers(method.tasks(), "tables")])))
