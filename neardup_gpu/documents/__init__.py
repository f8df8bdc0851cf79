"""Documents in and out, a format a file.

A reader has name, schema, num_files, rewindable, read(schema, max_bytes) and write(folder, part, rows). A new format is
a file here, its extensions in `find.EXTENSIONS` and its reader in `source.READERS`.
"""

from .source import Batch, Documents, open_described, open_documents

__all__ = ["Batch", "Documents", "open_described", "open_documents"]
