"""Find near-duplicate documents in bulk.

    >>> import neardup_gpu
    >>> result = neardup_gpu.dedup("bills.parquet", id_column="id", threshold=0.8)
    >>> result.documents          # a pyarrow.Table: id, kept, duplicate_of, resemblance, group

The names of `__all__` are public, and so are those of the modules among them. Each is loaded when it is first used, so
importing the package is instant.
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

    from . import errors, hamming, papers, plot, sketches, stages, theory
    from .auditing.audit import audit
    from .contamination.contaminated import contaminated
    from .documents import open_documents
    from .documents.reading_options import Reading
    from .documents.references import Reference
    from .documents.writing_options import Writing
    from .engine.settings import Engine
    from .errors import NeardupError
    from .index import Index
    from .jobs.comparison import compare
    from .jobs.dedup import dedup
    from .methods.bottomk import BottomK
    from .methods.containment import Containment
    from .methods.exact import Exact
    from .methods.identical import Identical
    from .methods.minhash import MinHash
    from .methods.modm import ModM
    from .methods.simhash import SimHash
    from .recipe import Recipe, Shingles
    from .repeated_passages.substrings import substrings
    from .results.result import Result
    from .shared_passages.search import passages
    from .tasks.workers import Workers
    from .text.unit_options import Unit

__all__ = [
    "BottomK",
    "Containment",
    "Engine",
    "Exact",
    "Identical",
    "Index",
    "MinHash",
    "ModM",
    "NeardupError",
    "Reading",
    "Recipe",
    "Reference",
    "Result",
    "Shingles",
    "SimHash",
    "Unit",
    "Workers",
    "Writing",
    "audit",
    "compare",
    "contaminated",
    "dedup",
    "errors",
    "hamming",
    "open_documents",
    "papers",
    "passages",
    "plot",
    "sketches",
    "stages",
    "substrings",
    "theory",
]

_MODULES = {
    "BottomK": "methods.bottomk",
    "Containment": "methods.containment",
    "Engine": "engine.settings",
    "Exact": "methods.exact",
    "Identical": "methods.identical",
    "Index": "index",
    "MinHash": "methods.minhash",
    "ModM": "methods.modm",
    "NeardupError": "errors",
    "Reading": "documents.reading_options",
    "Recipe": "recipe",
    "Reference": "documents.references",
    "Result": "results.result",
    "Shingles": "recipe",
    "SimHash": "methods.simhash",
    "Unit": "text.unit_options",
    "Workers": "tasks.workers",
    "Writing": "documents.writing_options",
    "audit": "auditing.audit",
    "compare": "jobs.comparison",
    "contaminated": "contamination.contaminated",
    "dedup": "jobs.dedup",
    "open_documents": "documents",
    "passages": "shared_passages.search",
    "substrings": "repeated_passages.substrings",
}
"""The modules that define the functions and classes of `__all__`; its other names are modules."""


if not TYPE_CHECKING:  # a module with __getattr__ has any name, in the eyes of type checkers

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in __all__:
            raise AttributeError(f"module 'neardup_gpu' has no attribute {name!r}")
        home = _MODULES.get(name, name)
        if home != "errors":
            importlib.import_module("neardup_gpu.engine.processors").check_environment()
        module = importlib.import_module(f"neardup_gpu.{home}")
        globals()[name] = value = getattr(module, name) if name in _MODULES else module
        return value


def __dir__() -> list[str]:
    """Return what the completion of a shell offers."""
    return [*__all__, "__version__"]
