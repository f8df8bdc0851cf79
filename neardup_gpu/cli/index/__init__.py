"""The commands `neardup index create`, `add`, `query`, `remove`, `decide`, `compact`, `copy`, `check` and `info`."""

from __future__ import annotations

from cyclopts import App

app = App(
    name="index",
    help="An index that grows: add documents all day, ask which are there already, remove some, decide who is kept.",
    version_flags=(),
)
for name in ("create", "add", "query", "remove", "decide", "compact", "copy", "check", "info"):
    app.command(f"{__package__}.{name}:{name}", name=name)
