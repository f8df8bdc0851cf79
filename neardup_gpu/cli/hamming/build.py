"""The command `neardup hamming build`."""

from __future__ import annotations

from typing import Annotated, Any

from ...engine.settings import Engine
from ...fingerprint_options import FingerprintColumns, TableOptions
from ...printable import shell_path
from ...records import dataclass
from ...report import size
from ...settings import setting
from ..console import say_written, shown_progress
from ..options import OUTPUT, TABLES, EngineFlags, Output, flags, given
from .options import FINGERPRINT_FILES, ColumnsFlags, RadiusFlags, left_out, tables


@dataclass(frozen=True, kw_only=True)
class IndexFile(Output):
    """The index file to write."""

    output: str = setting("index.hamming", "File to write the index to.", metavar="FILE", flag="--output -o")


DesignFlags: Any = flags(TABLES, TableOptions)
IndexFlags: Any = flags(OUTPUT, IndexFile)


def build(
    *fingerprints: Annotated[str, FINGERPRINT_FILES],
    columns: ColumnsFlags = None,
    radius: RadiusFlags = None,
    design: DesignFlags = None,
    written: IndexFlags = None,
    engine: EngineFlags = None,
) -> None:
    """Build an index of fingerprints, for `neardup hamming query`."""
    from ...hamming import jobs

    shown = IndexFile(**given(written))
    with shown_progress(shown) as progress:
        found = jobs.build(
            list(fingerprints),
            shown.output,
            **given(radius),
            tables=TableOptions(**given(design)),
            columns=FingerprintColumns(**given(columns)),
            engine=Engine(**given(engine)),
            overwrite=shown.overwrite,
            progress=progress,
        )
    words = found["words_met"]
    met = f"{words:,.1f} fingerprints" if words >= 0.05 else "next to none"
    rows = [
        ("fingerprints", f"{found['fingerprints']:,} of {found['bits']} bits"),
        ("tables", f"{tables(found)}, radius {found['radius']}"),
        ("a query", f"compares {met}, if they are random"),
        ("file", size(found["file_bytes"])),
    ]
    if given(design).get("compress"):
        least = f"no code takes fewer than {found['least_bits_a_word']:.1f} if they are random"
        rows.append(("compressed", f"{found['bits_a_word']:.1f} of 64 bits per word of a table; {least}"))
    following = f"neardup hamming query {shell_path(shown.output)} --fingerprint {found['example'] or 'HEX'}"
    say_written(found, [*rows, *left_out(found)], shown, following)
