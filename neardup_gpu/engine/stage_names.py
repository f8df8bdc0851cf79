"""Names of the stages of jobs, and the form of their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with a stage's name, what is done and, where it is known, of how much: documents, rows, pairs,
fingerprints or comparisons. Where files do not say how many documents they hold, their number is estimated from the
bytes read so far; that of comparisons is estimated, too. One call at a time; while kept rows are written by several
threads, from any of them."""

STAGES = {
    "columns": ("finding columns", "document"),
    "sketch": ("sketching", "document"),
    "rank": ("ranking", "document"),
    "weigh": ("weighing", "document"),
    "build": ("building tables", "fingerprint"),
    "query": ("asking", "fingerprint"),
    "match": ("comparing", "fingerprint"),
    "read": ("reading", "row"),
    "search": ("searching", "document"),
    "collide": ("finding candidates", "document"),
    "cluster": ("clustering", "document"),
    "index": ("indexing", "document"),
    "join": ("joining", "comparison"),
    "estimate": ("estimating", "pair"),
    "verify": ("verifying", "pair"),
    "decide": ("deciding", "document"),
    "check": ("checking recall", "document"),
    "merge": ("merging", "segment"),
    "write": ("writing", "document"),
    "locate": ("locating passages", "document"),
    "place": ("placing the result", "file"),
}
"""Name of each stage, and the name of the items that it counts."""
