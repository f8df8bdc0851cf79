"""Find near-duplicate documents in bulk.

    >>> import neardup_gpu
    >>> result = neardup_gpu.dedup("bills.parquet", id_column="id", threshold=0.8)
    >>> result.documents          # a pyarrow.Table: id, kept, duplicate_of, resemblance, group

The names below are loaded when they are first used, so importing the package is instant.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

if importlib.util.find_spec("neardup_gpu.kernels") is None:
    # A source checkout, or an install that points at one: kernels/ lies beside this folder. Import that one name.
    _folder = Path(__file__).parent.parent / "kernels"
    _spec = importlib.util.spec_from_file_location(
        "neardup_gpu.kernels", _folder / "__init__.py", submodule_search_locations=[str(_folder)]
    )
    if _spec is None or _spec.loader is None:
        raise ImportError(f"neardup_gpu.kernels is neither installed nor at {_folder}")
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
        value = getattr(importlib.import_module(f"neardup_gpu.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'neardup_gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
