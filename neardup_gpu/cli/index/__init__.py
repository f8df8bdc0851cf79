"""The commands `neardup index create`, `add`, `query`, `remove`, `decide`, `compact`, `copy`, `check`, `info` and
`serve`."""

from __future__ import annotations

from cyclopts import App

app = App(
    name="index",
    help="An index that grows: add documents all day, ask which are there already, remove some, decide who is kept.",
    version_flags=(),
)
UPKEEP = "compact", "copy", "check", "info"
for name in ("create", "add", "query", "remove", "decide", *UPKEEP, "serve"):
    app.command(f"{__package__}.{'upkeep' if name in UPKEEP else name}:{name}", name=name)
