"""Estimates of the counts of a job, for documents that nobody has counted yet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..tasks.cutting import counter_bits
from ..tasks.sizes import Checked, Counts, Shape
from ..theory.prefix_filter import prefix_lengths

if TYPE_CHECKING:
    from .settings import Workload

SHINGLE_SIZE = 5
"""Tokens in a shingle."""


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
