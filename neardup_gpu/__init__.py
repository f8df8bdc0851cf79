"""Find near-duplicate documents in bulk.

    >>> import neardup_gpu
    >>> result = neardup_gpu.dedup("bills.parquet", id_column="id", threshold=0.8)
    >>> result.documents          # a pyarrow.Table: id, kept, duplicate_of, resemblance, group

Each name below is loaded when it is first used, so importing the package is instant.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which is slow to import

__version__ = "0.1.0"

try:
    from . import kernels as kernels
except ImportError:
    # A source checkout, or an install that points at one: kernels/ lies beside this folder. Import that one name.
    import importlib.util
    import os
    import sys

    _folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "kernels")
    _spec = importlib.util.spec_from_file_location(
        "neardup_gpu.kernels", os.path.join(_folder, "__init__.py"), submodule_search_locations=[_folder]
    )
    if _spec is None or _spec.loader is None or not os.path.isdir(_folder):
        raise ImportError(f"neardup_gpu.kernels is neither installed nor at {_folder}") from None
    _kernels = importlib.util.module_from_spec(_spec)
    sys.modules["neardup_gpu.kernels"] = _kernels
    _spec.loader.exec_module(_kernels)

if TYPE_CHECKING:
    from typing import Any

    from . import hamming, papers, plot, theory
    from .comparison import Comparison, compare
    from .data import Pairs, Ragged
    from .documents import Documents, open_documents
    from .documents.reading_options import Reading
    from .documents.writing_options import Writing
    from .engine.settings import Engine
    from .errors import (
        ArgumentTypeError,
        BackendUnavailableError,
        DamagedError,
        InputError,
        NeardupError,
        OutputError,
        ParameterError,
        RecipeMismatchError,
        ResourceError,
    )
    from .explanation import Explanation
    from .greedy_clusters import Clusters, Joined, clusters
    from .hamming import HammingIndex, Matches, NearPairs, TableDesign
    from .index import Added, Index
    from .job import dedup
    from .merging import merge
    from .methods import METHODS
    from .methods.bottomk import BottomK
    from .methods.containment import Containment
    from .methods.contract import Candidates, Estimate, Join, Sketch
    from .methods.exact import Exact
    from .methods.frequencies import Frequencies
    from .methods.minhash import Filter, MinHash
    from .methods.modm import ModM
    from .methods.simhash import SimHash
    from .one_text import sketch_text
    from .recipe import Recipe, Shingles
    from .result import Result
    from .sketch_jobs import pairs, sketch
    from .stages import Verified, keep, shingle, tokenize, verify
    from .tasks.workers import Workers

__all__ = [
    "METHODS",
    "Added",
    "ArgumentTypeError",
    "BackendUnavailableError",
    "BottomK",
    "Candidates",
    "Clusters",
    "Comparison",
    "Containment",
    "DamagedError",
    "Documents",
    "Engine",
    "Estimate",
    "Exact",
    "Explanation",
    "Filter",
    "Frequencies",
    "HammingIndex",
    "Index",
    "InputError",
    "Join",
    "Joined",
    "Matches",
    "MinHash",
    "ModM",
    "NearPairs",
    "NeardupError",
    "OutputError",
    "Pairs",
    "ParameterError",
    "Ragged",
    "Reading",
    "Recipe",
    "RecipeMismatchError",
    "ResourceError",
    "Result",
    "Shingles",
    "SimHash",
    "Sketch",
    "TableDesign",
    "Verified",
    "Workers",
    "Writing",
    "clusters",
    "compare",
    "dedup",
    "hamming",
    "keep",
    "merge",
    "open_documents",
    "pairs",
    "papers",
    "plot",
    "shingle",
    "sketch",
    "sketch_text",
    "theory",
    "tokenize",
    "verify",
]

_HOMES = {
    "comparison": ("Comparison", "compare"),
    "data": (
        "Pairs",
        "Ragged",
    ),
    "documents": (
        "Documents",
        "open_documents",
    ),
    "documents.reading_options": ("Reading",),
    "documents.writing_options": ("Writing",),
    "engine.settings": ("Engine",),
    "errors": (
        "ArgumentTypeError",
        "BackendUnavailableError",
        "DamagedError",
        "InputError",
        "NeardupError",
        "OutputError",
        "ParameterError",
        "RecipeMismatchError",
        "ResourceError",
    ),
    "explanation": ("Explanation",),
    "greedy_clusters": ("Clusters", "Joined", "clusters"),
    "hamming": (
        "HammingIndex",
        "Matches",
        "NearPairs",
        "TableDesign",
    ),
    "index": ("Added", "Index"),
    "job": ("dedup",),
    "merging": ("merge",),
    "methods": ("METHODS",),
    "methods.bottomk": ("BottomK",),
    "methods.contract": (
        "Candidates",
        "Estimate",
        "Join",
        "Sketch",
    ),
    "methods.containment": ("Containment",),
    "methods.exact": ("Exact",),
    "methods.frequencies": ("Frequencies",),
    "methods.minhash": (
        "Filter",
        "MinHash",
    ),
    "methods.modm": ("ModM",),
    "methods.simhash": ("SimHash",),
    "one_text": ("sketch_text",),
    "recipe": (
        "Recipe",
        "Shingles",
    ),
    "result": ("Result",),
    "sketch_jobs": (
        "pairs",
        "sketch",
    ),
    "stages": (
        "Verified",
        "keep",
        "shingle",
        "tokenize",
        "verify",
    ),
    "tasks.workers": ("Workers",),
}


if not TYPE_CHECKING:  # a module with __getattr__ has any name, in the eyes of type checkers

    def __getattr__(name: str) -> Any:
        import importlib

        if name in ("hamming", "papers", "plot", "theory"):
            return importlib.import_module(f"neardup_gpu.{name}")
        for home, names in _HOMES.items():
            if name in names:
                if home != "errors":
                    importlib.import_module("neardup_gpu.engine.processors").check_environment()
                value = getattr(importlib.import_module(f"neardup_gpu.{home}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'neardup_gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
