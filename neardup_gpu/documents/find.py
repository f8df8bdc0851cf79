"""Finding files: what a path, URI, folder or pattern names, and of which format each file is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pyarrow import fs

from ..errors import InputError
from .reading import reading

EXTENSIONS = {
    "parquet": (".parquet", ".pq"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "ipc": (".arrow", ".arrows", ".ipc", ".feather"),
    "text": (".txt", ".md", ".rst", ".html", ".htm", ".xhtml"),
}
HTML_EXTENSIONS = (".html", ".htm", ".xhtml")
COMPRESSIONS = (".gz", ".zst")
SUPPORTED = (
    ".parquet, .pq, .jsonl, .ndjson, .json (these three also .gz, .zst), .arrow, .arrows, .ipc, .feather; "
    "folders of .txt, .md, .rst, .html, .htm, .xhtml"
)


@dataclass(frozen=True)
class File:
    system: fs.FileSystem
    path: str  # as the file system names it
    name: str  # as messages name it
    root: str  # the folder that the user named, or that holds the file


def find_files(source: str, glob: str | None) -> list[File]:
    """Files that a path, URI, folder or pattern names."""
    is_uri = "://" in source
    base, pattern = source, ""
    if not is_uri and os.path.exists(source):
        pass
    elif re.search(r"[*\[]" if is_uri else r"[*?\[]", source):
        parts = source.split("/")
        first = next(i for i, part in enumerate(parts) if re.search(r"[*?\[]", part))
        base, pattern = "/".join(parts[:first]) or ("/" if first else "."), "/".join(parts[first:])
    with reading(source):
        if is_uri:
            system, path = fs.FileSystem.from_uri(base)
        else:
            system, path = fs.LocalFileSystem(), Path(os.path.abspath(base)).as_posix()
        info = system.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise InputError(f"{source}: no such file or folder.")
        if info.type != fs.FileType.Directory:
            return [File(system, path, source, path.rpartition("/")[0])]
        recursive = not pattern or "/" in pattern
        infos = system.get_file_info(fs.FileSelector(path, recursive=recursive))
    root = path.rstrip("/")
    found = {_path(info)[len(root) + 1 :]: _path(info) for info in infos if info.type == fs.FileType.File}
    results = _results(found)
    files = []
    for inside, path in found.items():
        if inside.startswith(results):
            continue
        if any(part.startswith((".", "_")) for part in inside.split("/")):
            continue
        if pattern and not _matches(pattern, inside):
            continue
        if not pattern and glob is not None and not _matches(glob if "/" in glob else f"**/{glob}", inside):
            continue
        if not pattern and glob is None and _kind(inside) is None:
            continue
        shown = inside if base == "." else f"{base.rstrip('/')}/{inside}"
        if escaped_name(shown) != shown:
            raise InputError(f"{escaped_name(shown)}: the file's name is not UTF-8; rename it.")
        files.append(File(system, path, shown, root))
    if not files:
        if pattern or glob is not None:
            raise InputError(f"{source}: no file matches {pattern or glob!r}.")
        raise InputError(f"{source}: no file to read in this folder; it may hold {SUPPORTED}. Other files: --glob.")
    return files


def _path(info: fs.FileInfo) -> str:
    try:
        return info.path
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def escaped_name(name: str) -> str:
    """The name as it can be printed: bytes that are not UTF-8 as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _results(paths: dict[str, str]) -> tuple[str, ...]:
    """Sub-folders that hold a finished result of dedup; they are not input."""
    folders = [path.removesuffix("report.json") for path in paths if path.endswith("/report.json")]
    return tuple(folder for folder in folders if f"{folder}documents.parquet" in paths)


def partition_of(path: str) -> str:
    """The ``key=value`` folders that the file lies in, as ``key=value/.../``; else nothing."""
    partition = ""
    for folder in reversed(path.split("/")[:-1]):
        if not re.fullmatch("[^=]+=.*", folder, re.DOTALL):
            break
        partition = f"{folder}/{partition}"
    return partition


def _matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits: ``*`` and ``?`` stay within a name, ``**/`` is any number of folders."""
    expression = ""
    for part in re.findall(r"\*\*/|\*|\?|\[!?[^\]]+\]|.", pattern, re.DOTALL):
        if part == "**/":
            expression += "(?:[^/]+/)*"
        elif part in "*?":
            expression += "[^/]*" if part == "*" else "[^/]"
        elif len(part) > 1:
            expression += part.replace("\\", "\\\\").replace("[!", "[^")
        else:
            expression += re.escape(part)
    try:
        return re.fullmatch(expression, path) is not None
    except re.error:
        raise InputError(f"{pattern!r} is not a file pattern.") from None


def _kind(path: str) -> str | None:
    """Format of a file, by its extension."""
    name = PurePosixPath(path)
    packed = name.suffix.lower() in COMPRESSIONS
    extension = PurePosixPath(name.stem).suffix.lower() if packed else name.suffix.lower()
    for kind, extensions in EXTENSIONS.items():
        if extension in extensions and (kind == "jsonl" or not packed):
            return kind
    return None


def one_kind(files: list[File], sources: list[str]) -> str:
    """The format that all files share. Files of unknown extension are text where a pattern picked them."""
    kinds: dict[str, File] = {}
    for file in files:
        kind = _kind(file.path)
        if kind is None:
            if file.name in sources:
                raise InputError(f"{file.name}: unknown kind of file; supported are {SUPPORTED}.")
            kind = "text"
        kinds.setdefault(kind, file)
    if len(kinds) > 1:
        (a, b) = list(kinds.values())[:2]
        raise InputError(
            f"{a.name} and {b.name} are of different kinds; pick one with --glob, such as '*{suffix_of(a)}'."
        )
    return next(iter(kinds))


def suffix_of(file: File) -> str:
    """The extension, with that of its compression."""
    suffixes = PurePosixPath(file.path).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] and suffixes[-1].lower() in COMPRESSIONS else suffixes[-1:])
