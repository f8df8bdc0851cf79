"""The loggers of the package."""

from __future__ import annotations

import logging

from .printable import printable


class _Printable(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), None
        return True


log = logging.getLogger("neardup_gpu")
"""Each record is one line of printable text, whatever names and values it repeats."""

log.addFilter(_Printable())

progress_log = logging.getLogger("neardup_gpu.progress")
"""One line for each stage, and one every half minute while it runs."""
