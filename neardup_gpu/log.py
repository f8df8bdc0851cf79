"""The loggers of the package."""

from __future__ import annotations

import logging

from .printable import printable


class _Printable(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), None
        return True


class _Once(logging.Filter):
    """Drop a record that is marked ``once``, as `kernels._cache` does, if this process has logged its line before.

    Records of workers are logged by the process that started them, so each worker may say the line.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(record, "once", False):
            return True
        line = record.getMessage()
        is_first = line not in self.lines
        self.lines.add(line)
        return is_first


log = logging.getLogger("neardup_gpu")
"""Each record is one line of printable text, whatever names and values it repeats."""

once = _Once()
log.addFilter(_Printable())
log.addFilter(once)

progress_log = logging.getLogger("neardup_gpu.progress")
"""One line for each stage, and one every half minute while it runs."""
