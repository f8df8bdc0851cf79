"""Containment: which live documents contain a text, or are contained in one.

    c(A, B) = |A n B| / |A|     the containment of A in B, of sets of shingles

An index that was made with a modulus m keeps the elements of its entries as well, L(A): those of a mod-m sketch
(`methods/modm.py`), the images under one permutation of about every m-th shingle. `contained_keys` has those of all
entries, ascending, and `contained_rows` the entries. L(A n B) = L(A) n L(B), as a shingle is chosen or not whatever
document it is in. A query follows its own elements to the entries that have them (kernel `tally`); entries that have
enough of them are candidates, and these are compared by their stored sets: what is answered is exact.

How many are enough
-------------------
Let c be the least containment of the query, and R = `RECALL`. What is improbable here is improbable over the draw
of the permutation.

Where A is the query, it is known to have s elements. An entry B is a candidate if it has t of them, the greatest t with
P(Bin(s, c) >= t) >= R, and at least 1. The s elements are drawn from the |A| shingles without replacement. So the
number H of elements in B is hypergeometric. Its mean is s |A n B| / |A|, which is at least s c if B is to be found.

- Its generating function has real zeros alone, so H is distributed as the successes in s independent trials of unequal
  probabilities (Vatutin and Mikhailov 1982; Pitman 1997). Of all such numbers of one mean, that of equal probabilities
  has the heaviest tail below it (Hoeffding 1956, theorem 4: for k <= mean - 1). So if t <= s c, or t = 1,
  P(H >= t) >= P(Bin(s, |A n B| / |A|) >= t) >= P(Bin(s, c) >= t).
- That is at least R, unless t had to be raised to 1: then it is 1 - (1 - c)**s.
- If t > s c > 1, then t = s: otherwise s (1 - c) >= 1, and the tail below t, to which s c and all below it belong,
  would be above 1/4 (Greenberg and Mohri 2014). So c**s >= R, and H = s unless one of the (1 - c) |A| shingles, at
  most, that B lacks was drawn: P(H = s) >= 1 - s (1 - c) >= 1 + s ln c >= 1 + ln R, which is 0.98995 for R = 0.99.

Where A is the entry, of n shingles, the number of elements of A n B is distributed as Bin(|A n B|, 1 / m), and |A n B|
is at least k, the least integer with k / n >= c. An entry is a candidate if it has t of the query's elements, the
greatest t with P(Bin(k, 1 / m) >= t) >= R, and at least 1: where it was raised to 1, P is 1 - (1 - 1 / m)**k. So no
number of elements has to be stored with an entry.

Elements that more than `common` live entries have are not followed. If these are u of the query's, a candidate has
max(1, t - u) of the others. While t > u nothing is lost by that, as whoever has t elements has t - u of the others.

Where either may be contained in the other, an entry is a candidate if it is one by either rule.

A query without elements has no candidates, whoever contains it: the answer says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels import tally
from neardup_gpu.kernels._bounds import least_shares_of, surely_reached

from ..data import Ragged, arrow
from ..engine.choice import kernel, to_host
from ..methods.measures import ContainmentMeasure
from ..records import dataclass
from ..stages.conditions import of_like_lengths
from .comparing import compared
from .queries import Note, Queries, as_json, matches_of
from .segments import Segment
from .sketches import EntryTools, elements_of, sketched

if TYPE_CHECKING:
    from .manifest import Manifest
    from .snapshot import Snapshot

RECALL = 0.99
"""Least probability with which what contains a query, or is contained in it, is a candidate."""

COMMON = 10_000
"""Elements of more entries are not followed by default."""

TOGETHER = 1 << 24
"""Entries of lists that are looked at together, about."""


@dataclass(frozen=True)
class ContainmentQuery:
    """The options of a query.

    Parameters
    ----------
    least : float
        The least containment.
    direction : "in", "of" or "either"
        Whether to find documents that contain the query, that are parts of the query, or both.
    common : int
        See above.
    nearest : int or None
        The most documents for each query.
    """

    least: float
    direction: str
    common: int
    nearest: int | None


def containing_documents(
    manifest: Manifest, snapshot: Snapshot, queries: Queries, tools: EntryTools, *, limits: ContainmentQuery
) -> tuple[pa.Table, list[Note]]:
    """Answer queries, as `Index.query` says."""
    recipe, modulus = tools.recipe, tools.keeps.containment
    assert modulus is not None
    sketches = sketched(queries.text, queries.ids, tools, features=False, words=queries.words)
    elements = elements_of(sketches.sets, modulus, recipe, snapshot.backend)
    lists = Lists(snapshot, elements, limits.common)
    query, entry = candidates(snapshot, sketches.sets, lists, limits, modulus)
    if recipe.length_ratio is not None:
        near = of_like_lengths(sketches.tokens[query], snapshot.tokens(entry), recipe.length_ratio)
        query, entry = query[near], entry[near]
    measure = ContainmentMeasure(limits.direction).with_reference  # as if the entries were a reference set
    value = compared(snapshot, sketches, query, entry, measure, limits.least, tools.runtime, entry_first=True)
    some = np.flatnonzero(value >= limits.least)
    value = value[some]
    numbered = queries._replace(ids=arrow(np.arange(len(elements))))
    columns = {"containment": value, "low": value, "high": value, "exact": np.ones(len(value), bool)}
    found = matches_of(snapshot, numbered, query[some], entry[some], columns, {}, manifest.id_type, limits.nearest)
    return _with_sizes(found, queries, elements.sizes, lists.not_followed, modulus, limits.common)


class Lists:
    """The places of the entries of each element of some queries, in each segment; without elements that too many have.

    Parameters
    ----------
    snapshot : Snapshot
    elements : Ragged of uint64
        Of each query.
    common : int
        Elements of more live entries are not followed.
    """

    def __init__(self, snapshot: Snapshot, elements: Ragged, common: int) -> None:
        self.offsets = elements.offsets - elements.offsets[0]
        values = elements.values[elements.offsets[0] : elements.offsets[-1]]
        self.starts, self.stops = [], []
        for segment in snapshot.segments:
            starts, stops = _places(segment, values)
            self.starts.append(starts)
            self.stops.append(stops)
        followed = self._number_of_live(snapshot.segments, common) <= common
        for segment, starts, stops in zip(snapshot.segments, self.starts, self.stops, strict=True):
            stops[~followed] = starts[~followed]
            _rows(segment, starts, stops)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(~followed)])
        self.not_followed = before[self.offsets[1:]] - before[self.offsets[:-1]]

    def _number_of_live(self, segments: list[Segment], common: int) -> np.ndarray:
        """Live entries that have each element; if more do even without all dead ones, any number above
        `common`."""
        number = np.zeros(int(self.offsets[-1]), np.int64)
        for starts, stops in zip(self.starts, self.stops, strict=True):
            number += stops - starts
        if not (number > common).any():
            return number
        dead = sum(int(np.count_nonzero(each.live_entries == 0)) for each in segments)
        doubtful = np.flatnonzero((number > common) & (number - dead <= common))
        number[doubtful] = 0
        for segment, starts, stops in zip(segments, self.starts, self.stops, strict=True):
            rows = _rows(segment, starts[doubtful], stops[doubtful])
            for at in doubtful.tolist():
                number[at] += np.count_nonzero(segment.live_entries[rows[starts[at] : stops[at]]])
        return number


def _places(segment: Segment, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the entries of each element begin and end in a segment's table.

    The search saw the rows next to them, and these are compared with their checksums: in an ascending table they show
    that the places are right, whatever else was seen on the way.
    """
    keys = segment.arrays["contained_keys"]
    starts, stops = np.searchsorted(keys, elements), np.searchsorted(keys, elements, side="right")
    if segment.file is not None:
        low, high = np.minimum(starts, stops), np.maximum(starts, stops)  # in a damaged table the two may cross
        segment.file.verify("contained_keys", np.maximum(low - 1, 0), np.minimum(high + 1, len(keys)))
    return starts, stops


def _rows(segment: Segment, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """The rows of a segment's table, after some runs are compared with their checksums."""
    if segment.file is not None:
        segment.file.verify("contained_rows", starts, stops)
    return segment.arrays["contained_rows"]


def candidates(
    snapshot: Snapshot, sets: Ragged, lists: Lists, limits: ContainmentQuery, modulus: int
) -> tuple[np.ndarray, np.ndarray]:
    """(number of the query, entry) of all candidates, by query and then by entry."""
    least = np.ones(len(sets), np.int64)
    sizes = lists.offsets[1:] - lists.offsets[:-1]
    inside = np.maximum(1, surely_reached(sizes, limits.least, RECALL) - lists.not_followed)
    if limits.direction == "in":
        least = inside
    run = kernel(tally, snapshot.backend)
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for segment, starts, stops in zip(snapshot.segments, lists.starts, lists.stops, strict=True):
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])[lists.offsets]
        first = 0
        while first < len(sets):
            last = max(first + 1, int(np.searchsorted(before, before[first] + TOGETHER, side="right")) - 1)
            some = lists.offsets[first : last + 1]
            rows, shared, offsets = map(
                to_host,
                run(segment.arrays["contained_rows"], starts, stops, some, least[first:last], segment.live_entries),
            )
            query = np.repeat(np.arange(first, last), np.diff(offsets))
            if limits.direction != "in":
                common = least_shares_of(segment.set_sizes(rows), limits.least)
                needed = surely_reached(common, 1 / modulus, RECALL) - lists.not_followed[query]
                if limits.direction == "either":
                    needed = np.minimum(needed, inside[query])
                query, rows = query[shared >= needed], rows[shared >= needed]
            parts.append((query, segment["founders"][rows]))
            first = last
    query, entry = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(query, kind="stable")  # segments are in the order of their entries
    return query[order], entry[order]


def _with_sizes(
    found: pa.Table, queries: Queries, sizes: np.ndarray, not_followed: np.ndarray, modulus: int, common: int
) -> tuple[pa.Table, list[Note]]:
    """Return matches with the sizes of their queries, and the notes; `query_id` is the number of a query until now."""
    number = found["query_id"].to_numpy()
    some = np.flatnonzero((sizes == 0) | (not_followed > 0))
    notes: list[Note] = []
    for query, id in zip(some.tolist(), queries.ids.take(arrow(some)).to_pylist(), strict=True):
        text = f"too short for modulus {modulus}"
        if sizes[query]:
            text = (
                f"{not_followed[query]:,} of {sizes[query]:,} elements are in more than {common:,} entries and were "
                "not followed"
            )
        counts = {"num_elements": int(sizes[query]), "num_not_followed": int(not_followed[query])}
        place = {name: int(values[query]) for name, values in queries.columns.items()}
        notes.append({"query_id": as_json(id), **place, "note": text, **counts})
    table = pa.table(
        {
            "query_id": queries.ids.take(arrow(number)),
            **{name: arrow(values[number]) for name, values in queries.columns.items()},
            **{name: found[name] for name in found.column_names if name not in ("query_id", *queries.columns)},
            "num_elements": arrow(sizes[number]),
            "num_not_followed": arrow(not_followed[number]),
        }
    )
    return table, notes
