"""The counts of a job, and estimates for documents that nobody has counted yet."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

from ..records import dataclass
from ..tasks.cutting import counter_bits
from ..theory.prefix_filter import prefix_lengths

if TYPE_CHECKING:
    from .files import Shape
    from .settings import Workload

SHINGLE_SIZE = 5
"""Tokens in a shingle."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many things of each kind a job has.

    Parameters
    ----------
    known_documents : int, default 0
        Documents of a reference set.
    documents, text_bytes, shingles : int
        Of all documents; shingles are those of their sets. If parts of documents are compared, these are counted as
        documents, here and below.
    owners : int, default 0
        Documents that are divided into parts; 0 if they are not divided.
    spared : int, default 0
        Repeated parts that are kept, as several copies of a part are.
    present : int
        Documents with tokens.
    place_bytes : int
        Of all ids and, where documents come from files, of the name of the file and the row of each document.
    id_bytes : int
        Of one id.
    copies : int
        Documents with tokens for which a document of equal tokens stands.
    entries : int, default 0
        Of the tables of keys.
    counters : int
        Of shingles, in a table; 0 by methods that sketch, as there are postings.
    postings : int
    containers : int, default 0
        Further postings by a directed measure: those of documents as containing ones.
    found : int
        Candidate pairs, each as often as it is found.
    pairs : int
        Distinct candidate pairs.
    wanted, wanted_shingles : int
        Documents of the pairs, each once for each range of ranks, and their shingles.
    verified : int
    listed : int
        Verified pairs that are listed.
    listed_pairs : int
        The same with those of copies of the input.
    removed : int
    wanted_ids : int
        Ids that ranges and slices ask for.
    kept_ids : int
        Those of them that slices ask for.
    crowded : int, default 0
    near_known : int, default 0
        Documents of the input that resemble one of a reference set.
    checked : Checked
        What is counted in the check of the recall, if there is one.
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
    listed_pairs: int
    removed: int
    wanted_ids: int
    kept_ids: int
    crowded: int = 0
    near_known: int = 0
    known_documents: int = 0
    entries: int = 0
    containers: int = 0
    owners: int = 0
    spared: int = 0
    checked: Checked = field(default_factory=lambda: Checked())

    @property
    def representatives(self) -> int:
        return self.present - self.copies


@dataclass(frozen=True, kw_only=True)
class Checked:
    """How many things of each kind a check of the recall has.

    Parameters
    ----------
    drawn_of_slices, drawn : int
        Documents that slices draw, and that all of them draw together.
    drawn_shingles : int
    sampled, sampled_shingles : int
    near, nearest : int
        Possible partners that slices find, and pairs of all of them.
    wanted, wanted_shingles : int
        Documents of the pairs, and their shingles that wait.
    """

    drawn_of_slices: int = 0
    drawn: int = 0
    drawn_shingles: int = 0
    sampled: int = 0
    sampled_shingles: int = 0
    near: int = 0
    nearest: int = 0
    wanted: int = 0
    wanted_shingles: int = 0


def expected(work: Workload, shape: Shape, threshold: float) -> Counts:
    """Counts to plan with, from assumptions.

    Documents are of one size. A pair is found by half of the tables, or by half of the shingles of a prefix; half of
    the candidates reach the threshold; a pair asks for two documents. By exact, only documents of candidates have
    shingles in common; but where counters are fewer than shingles, others seem to have: a document then has a posting
    for each shingle of its prefix beyond those whose counter is theirs alone. Copies and pairs are of the input.

    Parameters
    ----------
    work : Workload
    shape : Shape
    threshold : float
    """
    (own, n), documents = work.compared, int(work.documents + work.against_documents)
    size = max(1, round(work.all_bytes * shape.overlap / work.token_bytes / n) - SHINGLE_SIZE + 1)
    copies = int(work.copies * own)
    verified = 0 if shape.only_equal else int(0.1 * own if work.pairs is None else work.pairs)
    pairs, representatives = 2 * verified, n - copies
    wanted, removed = 2 * pairs, copies + min(verified, representatives // 2)
    prefix = prefix_lengths(size, threshold).long
    counters = postings = 0
    if shape.posts:
        counters = 1 << counter_bits(work.all_bytes, shape.task_memory)
        alone = math.exp(-n * size / counters)
        related = min(wanted, representatives)
        others = max(0.0, prefix - alone * size)
        postings = int(related * prefix + (representatives - related) * others)
    kept_ids, more = removed, 0
    listed_pairs = verified if shape.divides else verified + copies  # units.parquet lists copies of parts
    if shape.directed:
        more = postings if work.containers is None else int(work.containers)
    entries = shape.tables * representatives * min(shape.entries, size)
    drawn = min(work.check, own - copies) if shape.checked else 0
    near = int(drawn * work.near)
    return Counts(
        documents=n,
        text_bytes=work.all_bytes,
        known_documents=n - own,
        shingles=n * size if shape.verifies else 0,
        entries=entries,
        containers=more,
        checked=Checked(
            drawn_of_slices=min(own - copies, drawn * (shape.slices - shape.known)),
            drawn=drawn,
            drawn_shingles=drawn * size,
            sampled=drawn,
            sampled_shingles=drawn * size,
            near=near,
            nearest=near,
            wanted=drawn + near,
            wanted_shingles=(drawn + near) * size,
        ),
        present=n,
        owners=documents if shape.divides else 0,
        spared=removed if shape.spares else 0,
        place_bytes=work.place_bytes * documents,
        id_bytes=work.id_bytes,
        copies=copies,
        counters=counters,
        postings=postings,
        found=pairs * -(-(shape.tables * shape.entries or prefix) // 2),
        pairs=pairs,
        wanted=wanted,
        wanted_shingles=wanted * size if shape.verifies else 0,
        verified=verified,
        listed=verified,
        listed_pairs=listed_pairs,
        removed=removed,
        wanted_ids=2 * listed_pairs + kept_ids,
        kept_ids=kept_ids,
    )
