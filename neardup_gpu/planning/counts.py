"""What is counted of a job, and what is expected of documents that nobody has counted yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import checks
from ..errors import ParameterError
from ..prefix_filter import prefix_lengths
from ..tasks.cutting import counter_bits

if TYPE_CHECKING:
    from .files import Shape

SHINGLE_SIZE = 5
"""Tokens in a shingle."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many things of each kind a job has.

    Parameters
    ----------
    documents, text_bytes, shingles : int
        Of all documents; shingles are those of their sets.
    present : int
        Documents with tokens.
    place_bytes : int
        Of all ids and, where documents come from files, of the name of the file and the row of each document.
    id_bytes : int
        Of one id.
    copies : int
        Documents with tokens for which an equal one stands.
    counters : int
        Of shingles, in a table; 0 by methods that sketch, as there are postings.
    postings : int
    found : int
        Candidate pairs, each as often as it is found.
    pairs : int
        Distinct candidate pairs.
    wanted, wanted_shingles : int
        Documents of these pairs, each once for each range of ranks, and their shingles.
    verified : int
    listed : int
        Verified pairs that are listed.
    removed : int
    wanted_ids : int
        Ids that ranges and slices ask for.
    kept_ids : int
        Those of them that slices ask for.
    crowded : int, default 0
    """

    documents: int
    text_bytes: int
    shingles: int
    present: int
    place_bytes: int
    id_bytes: int
    copies: int
    counters: int
    postings: int
    found: int
    pairs: int
    wanted: int
    wanted_shingles: int
    verified: int
    listed: int
    removed: int
    wanted_ids: int
    kept_ids: int
    crowded: int = 0

    @property
    def representatives(self) -> int:
        return self.present - self.copies


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The documents of a job, and what is assumed of them.

    Parameters
    ----------
    documents : float
        A whole number, at least 1.
    text_bytes : int
    copies : float, default 0.2
        Share of the documents that are exact copies of others.
    pairs : float, optional
        Pairs of near-duplicates that are no copies; a tenth of the documents unless given.
    token_bytes : float, default 6
        Of text for each token.
    id_bytes : int, default 8
    place_bytes : int, default 48
        What ids, names of files and rows take of each document.
    """

    documents: float
    text_bytes: int
    copies: float = 0.2
    pairs: float | None = None
    token_bytes: float = 6.0
    id_bytes: int = 8
    place_bytes: int = 48

    def __post_init__(self) -> None:
        most = 2.0**48
        if checks.number("documents", self.documents, 1, most) != int(self.documents):
            raise ParameterError(f"documents must be a whole number, got {self.documents}")
        checks.integer("text", self.text_bytes, 1)
        checks.fraction("copies", self.copies, one=False, hint="0.2 is a fifth")
        checks.optional(checks.number, "pairs", self.pairs, 0, most)
        checks.number("token_bytes", self.token_bytes, 1, 1000)
        checks.integer("id_bytes", self.id_bytes, 1, 1000)
        checks.integer("place_bytes", self.place_bytes, 1, 10_000)


def expected(work: Workload, shape: Shape, threshold: float) -> Counts:
    """Counts to plan with, from assumptions.

    Documents are of one size. A pair is found by half of the tables, or by half of the shingles of a prefix; half of
    the candidates reach the threshold; a pair asks for two documents. By exact, only documents of candidates have
    shingles in common; but where counters are fewer than shingles, others seem to have: a document then has a posting
    for each shingle of its prefix beyond those whose counter is theirs alone.

    Parameters
    ----------
    work : Workload
    shape : Shape
    threshold : float
    """
    n = int(work.documents)
    size = max(1, round(work.text_bytes / work.token_bytes / n) - SHINGLE_SIZE + 1)
    copies = int(work.copies * n)
    verified = int(0.1 * n if work.pairs is None else work.pairs)
    pairs, representatives = 2 * verified, n - copies
    wanted, removed = 2 * pairs, copies + min(verified, representatives // 2)
    prefix = prefix_lengths(size, threshold).long
    counters = postings = 0
    if not shape.tables:
        counters = 1 << counter_bits(work.text_bytes, shape.task_memory)
        alone = math.exp(-n * size / counters)
        related = min(wanted, representatives)
        others = max(0.0, prefix - alone * size)
        postings = int(related * prefix + (representatives - related) * others)
    kept_ids = removed
    return Counts(
        documents=n,
        text_bytes=work.text_bytes,
        shingles=n * size,
        present=n,
        place_bytes=work.place_bytes * n,
        id_bytes=work.id_bytes,
        copies=copies,
        counters=counters,
        postings=postings,
        found=pairs * -(-(shape.tables or prefix) // 2),
        pairs=pairs,
        wanted=wanted,
        wanted_shingles=wanted * size,
        verified=verified,
        listed=verified,
        removed=removed,
        wanted_ids=2 * (verified + copies) + kept_ids,
        kept_ids=kept_ids,
    )
