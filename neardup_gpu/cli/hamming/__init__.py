"""The commands `neardup hamming build`, `query`, `join` and `pairs`."""

from __future__ import annotations

from cyclopts import App

app = App(
    name="hamming",
    help="Find fingerprints that differ in few bits: an index to query, joins of large sets, pairs of one.",
    version_flags=(),
)
for name in ("build", "query", "join", "pairs"):
    app.command(f"{__package__}.{name}:{name}", name=name)
