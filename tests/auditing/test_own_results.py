"""Our own results on real corpora lose nothing. The exact method misses nothing, the others what brute force finds."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from grids import some

import neardup_gpu as nd
from neardup_gpu.auditing.verdict import Audit
from neardup_gpu.methods import METHODS

CORPORA = Path(os.environ.get("NEARDUP_CORPORA", ""))
SMALL = ("django_docs", "bills_116_small", "edinburgh_2500")
LARGE = ("bills_116", "manpages", "installguide_html", "winps_docs")

pytestmark = pytest.mark.skipif(
    "NEARDUP_CORPORA" not in os.environ, reason="NEARDUP_CORPORA names no folder of corpora"
)


def judged(name: str, **options) -> Audit:
    path = CORPORA / f"{name}.parquet"
    reading = {"id_column": "id", "text_columns": "text"}
    result = nd.dedup(path, **reading, **options)
    return nd.audit(path, kept=result, pairs=result.documents, **reading, definitions=False, nearest_from=0.79)


@pytest.mark.parametrize("name", some(SMALL + LARGE, ("edinburgh_2500", "winps_docs")))
def test_the_exact_method_loses_and_misses_nothing(name: str) -> None:
    counts = judged(name).counts
    assert (counts["lost"], counts["missed"]) == (0, 0)
    assert counts["reasons"] == counts["removed"] and counts["reasons_holding"] == counts["reasons"]


SKETCHES = [name for name in METHODS if name not in ("exact", "containment", "identical")]


@pytest.mark.parametrize("method", some(SKETCHES, SKETCHES[:2]))
def test_verified_methods_lose_nothing_and_miss_what_brute_force_finds(method: str) -> None:
    """The pairs of the corpus were found by exhaustive search, by another definition of a word than ours."""
    found = judged("bills_116_small", method=method, threshold=0.8)
    assert found.counts["lost"] == 0
    path = CORPORA / "bills_116_small.parquet"
    whole = nd.dedup(path, recipe=nd.Recipe(max_partners=None), id_column="id", text_columns="text")
    kept = set(nd.dedup(path, method=method, threshold=0.8, id_column="id", text_columns="text").kept["id"].to_pylist())
    both = {
        (row["id_a"], row["id_b"]) for row in whole.pairs.to_pylist() if row["id_a"] in kept and row["id_b"] in kept
    }
    assert {(row["id_a"], row["id_b"]) for row in found.missed.to_pylist()} == both


def test_the_gold_pairs_among_kept_documents_are_the_missed_ones() -> None:
    """Everything is kept, so that all pairs of the corpus are missed."""
    path = CORPORA / "bills_116_small.parquet"
    ids = pq.read_table(path, columns=["id"])
    found = nd.audit(path, kept=ids, id_column="id", text_columns="text", threshold=0.9, definitions=False)
    gold = pq.read_table(CORPORA / "bills_116_small.gold.parquet").to_pylist()
    ours = {frozenset((row["id_a"], row["id_b"])) for row in found.missed.to_pylist()}
    theirs = {frozenset((row["id_a"], row["id_b"])): row["jaccard"] for row in gold}
    assert found.counts["missed"] == sum(worth >= 0.9 for worth in theirs.values())
    assert all(theirs.get(pair, 0.0) >= 0.9 for pair in ours)
