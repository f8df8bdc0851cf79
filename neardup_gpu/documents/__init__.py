"""Documents in and out, a format a file.

A new format is a file here with a reader, whose form is `contract.Reader`, and a line in `formats.FORMATS`.

The names below are loaded when they are first used, so that the settings in `reading_options` are instant to import.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which is slow to import
if TYPE_CHECKING:
    from .source import Batch, Documents, open_described, open_documents

__all__ = ["Batch", "Documents", "open_described", "open_documents"]


if not TYPE_CHECKING:  # a module with __getattr__ has any name, in the eyes of type checkers

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import source

        return getattr(source, name)
