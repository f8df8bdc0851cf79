"""Store sketches in files, compare and cluster them, merge them, and sketch single texts.

>>> from neardup_gpu import sketches
>>> sketches.sketch("bills.parquet", "sketches.parquet", id_column="id", method="minhash")  # doctest: +SKIP
>>> sketches.pairs("sketches.parquet", threshold=0.8)  # doctest: +SKIP
"""

from __future__ import annotations

from .jobs.greedy_clusters import Clusters, Joined, clusters
from .jobs.one_text import sketch_text
from .jobs.sketch_jobs import merge, pairs, sketch
from .methods.frequencies import Frequencies

__all__ = ["Clusters", "Frequencies", "Joined", "clusters", "merge", "pairs", "sketch", "sketch_text"]


def __dir__() -> list[str]:
    return __all__
