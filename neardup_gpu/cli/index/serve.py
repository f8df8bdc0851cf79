"""The command `neardup index serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...engine.settings import Engine
from ...errors import ParameterError
from ...serving.settings import TOKEN, Serving
from ..console import note
from ..options import RUNNING, EngineFlags, flags, given
from .options import IndexFolder

ServingFlags: Any = flags(RUNNING, Serving)


def serve(index: IndexFolder, /, *, serving: ServingFlags = None, engine: EngineFlags = None) -> None:
    """Serve an index over HTTP: documents are added, decided about, queried, explained and removed."""
    try:
        from ...serving.app import run
    except ImportError as error:
        raise ParameterError(f"neardup index serve needs {error.name}; install neardup_gpu[serve]") from None
    limits, token = Serving(**given(serving)), os.environ.get(TOKEN) or None
    if token is None and limits.host not in ("127.0.0.1", "localhost", "::1"):
        note(f"neardup: {TOKEN} is not set: everybody who reaches {limits.host} may change the index", "warning")
    run(Path(index), limits, Engine(**given(engine)), token)
