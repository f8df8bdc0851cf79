"""Find near-duplicate documents in bulk.

    >>> import neardup_gpu
    >>> result = neardup_gpu.dedup("bills.parquet", id_column="id", threshold=0.8)
    >>> result.documents          # a pyarrow.Table: id, kept, duplicate_of, resemblance, group

The names below are loaded when they are first used, so importing the package is instant.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which is slow to import
if TYPE_CHECKING:
    from typing import Any

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

_HOMES = {
    "dedup": "pipeline",
    "sketch": "pipeline",
    "find_pairs": "pipeline",
    "tokenize": "pipeline",
    "shingle": "pipeline",
    "minhash": "pipeline",
    "supershingles": "pipeline",
    "simhash": "pipeline",
    "collide": "pipeline",
    "verify": "pipeline",
    "keep": "pipeline",
    "Result": "pipeline",
    "open_documents": "documents",
    "Recipe": "recipe",
    "SimhashRecipe": "recipe",
    "Frequencies": "frequencies",
    "HammingIndex": "hamming",
    "Filter": "recipe",
    "Ragged": "data",
    "Pairs": "data",
    "NeardupError": "errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(f"neardup_gpu.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'neardup_gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
