"""The page of a result, as tests read it."""

from __future__ import annotations

from typing import Any

from neardup_gpu import Result
from neardup_gpu.report_page.page import Page, make


def page_of(result: Result, **options: Any) -> Page:
    """Return the page of a result without writing it."""
    return make(result._run(), **options)
