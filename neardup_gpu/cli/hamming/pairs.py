"""The command `neardup hamming pairs`."""

from __future__ import annotations

from typing import Annotated

from ...engine.settings import Engine
from ...fingerprint_options import FingerprintColumns, Near
from ...printable import shell_path
from ..console import say_written, shown_progress
from ..options import EngineFlags, PairsFile, PairsFlags, given
from .options import FINGERPRINT_FILES, ColumnsFlags, NearFlags, bits, left_out, tables


def pairs(
    *fingerprints: Annotated[str, FINGERPRINT_FILES],
    columns: ColumnsFlags = None,
    near: NearFlags = None,
    written: PairsFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Find all pairs of a set that differ in few bits: id_a, id_b, distance."""
    from ...hamming import jobs

    shown = PairsFile(**given(written))
    with shown_progress(shown) as progress:
        found = jobs.pairs(
            list(fingerprints),
            shown.output,
            near=Near(**given(near)),
            columns=FingerprintColumns(**given(columns)),
            engine=Engine(**given(engine)),
            overwrite=shown.overwrite,
            progress=progress,
        )
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("identical", f"{found['identical']:,} to an earlier one, each one pair with the first"),
        ("tables", tables(found)),
        ("pairs", f"{found['pairs']:,} within {bits(found['radius'])}"),
        *left_out(found),
    ]
    say_written(found, rows, shown, f"neardup info {shell_path(shown.output)}")
