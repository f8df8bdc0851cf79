"""Languages of source code, and how the names of their files end."""

from __future__ import annotations

FILES = {
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx cu cuh",
    "csharp": "cs",
    "css": "css",
    "dart": "dart",
    "go": "go",
    "java": "java",
    "javascript": "js mjs cjs jsx",
    "kotlin": "kt kts",
    "lua": "lua",
    "php": "php",
    "python": "py pyi pyw",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala sc",
    "shell": "sh bash zsh ksh",
    "sql": "sql",
    "swift": "swift",
    "typescript": "ts tsx mts cts",
}
"""How the names of a language's files end, after the last dot."""

LANGUAGES = tuple(FILES)
"""The names of all languages."""

_BY_ENDING = {ending: language for language, endings in FILES.items() for ending in endings.split()}
_PACKED = (".gz", ".zst", ".bz2", ".xz")


def language_of(name: str) -> str | None:
    """Return the language of a file by its name, in upper or lower case; None if it is not known.

    Examples
    --------
    >>> language_of("src/main.rs"), language_of("Makefile"), language_of("old/a.PY.gz")
    ('rust', None, 'python')
    """
    name = name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return _BY_ENDING.get(name.rpartition(".")[2]) if "." in name else None
