"""Where kernels run: reference | cpu, chosen by argument, else NEARDUP_BACKEND, else cpu."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import BackendUnavailableError, ParameterError

BACKENDS = ("reference", "cpu", "gpu")


def resolve(backend: str | None) -> str:
    """Name of the backend to use.

    Raises
    ------
    ParameterError
        If there is no backend of that name.
    BackendUnavailableError
        If it cannot run here.
    """
    asked = backend or os.environ.get("NEARDUP_BACKEND") or "cpu"
    if asked not in BACKENDS:
        raise ParameterError(f"backend {asked!r} is not one of {', '.join(BACKENDS)}")
    if asked == "gpu":
        raise BackendUnavailableError("backend 'gpu': this version has no GPU kernels yet; use --backend cpu")
    return asked


def kernel(module: ModuleType, backend: str | None, prefix: str = "") -> Callable[..., Any]:
    """The function of a kernel file for a backend: `cpu`, or `unique_cpu` with prefix "unique_"."""
    return getattr(module, prefix + resolve(backend))
