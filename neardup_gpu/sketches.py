"""Store sketches in files, compare and cluster them, merge them, and sketch single texts.

>>> from neardup_gpu import sketches
>>> sketches.sketch("bills.parquet", "sketches.parquet", id_column="id", method="minhash")  # doctest: +SKIP
>>> sketches.pairs("sketches.parquet", threshold=0.8)  # doctest: +SKIP
"""

from __future__ import annotations

from .greedy_clusters import Clusters, Joined, clusters
from .merging import merge
from .methods.frequencies import Frequencies
from .one_text import sketch_text
from .sketch_jobs import pairs, sketch

__all__ = ["Clusters", "Frequencies", "Joined", "clusters", "merge", "pairs", "sketch", "sketch_text"]


def __dir__() -> list[str]:
    return __all__
