"""The options of the command that runs, for the folder that it writes."""

from __future__ import annotations

from contextvars import ContextVar

JOB = "job.toml"
"""The file of a folder that has the options of the command that made it, as `--config` reads them."""

job_options: ContextVar[str | None] = ContextVar("job_options", default=None)
"""The contents of `JOB` while a command runs; None if no command does."""
