"""The command `neardup hamming join`."""

from __future__ import annotations

from typing import Annotated

from ...engine.settings import Engine
from ...fingerprint_options import FingerprintColumns, NearQueries
from ...printable import shell_path
from ..console import say_written, shown_progress
from ..options import EngineFlags, PairsFile, PairsFlags, argument, given
from .options import FILES, ColumnsFlags, NearQueriesFlags, bits, left_out


def join(
    existing: Annotated[str, argument("EXISTING", f"The large set. {FILES}")],
    queries: Annotated[str, argument("QUERIES", "The smaller set, which is held in memory.")],
    /,
    *,
    columns: ColumnsFlags = None,
    near: NearQueriesFlags = None,
    written: PairsFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find the fingerprints of a large set that are near some queries: id_a (existing), id_b (query), distance."""
    from ...hamming import jobs

    shown = PairsFile(**given(written))
    with shown_progress(shown) as progress:
        found = jobs.join(
            existing,
            queries,
            shown.output,
            near=NearQueries(**given(near)),
            columns=FingerprintColumns(**given(columns)),
            engine=Engine(**given(engine)),
            overwrite=shown.overwrite,
            progress=progress,
        )
    rows = [
        ("existing", f"{found['existing']:,}"),
        ("queries", f"{found['queries']:,}, {found['matched']:,} of them near some"),
        ("pairs", f"{found['pairs']:,} within {bits(found['radius'])}"),
        *left_out(found),
    ]
    say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")
