"""Finding files: what a path, URI, folder or pattern names, and the format of each file.

Every file is read once, however many links lead to it, and whatever a folder holds that is not read is counted.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ..definitions import METADATA_KEY
from ..errors import InputError
from ..log import log
from ..records import dataclass
from ..report import some
from ..store.artefacts import DOCUMENTS, REPORT, REPORTS, beginnings_of
from ..store.uris import brief, file_system, is_folder, is_uri, masked, split_query, why_not_found
from .files import File, check_relative
from .formats import (
    FORMATS,
    TABLES,
    are_text,
    first_bytes,
    format_named,
    format_of,
    formats_of,
    has_extension,
    supported,
)
from .local_names import escaped, is_local, local_system, unescaped
from .packed import COMPRESSIONS, without_compression
from .patterns import Pattern, States, is_hidden
from .reading import reading
from .reading_options import SEVERAL
from .standard_input import NAME as STDIN, spooled

ABOUT = (  # text files of these names are about the data that they lie beside
    *("readme", "license", "licence", "copying", "copyright", "notice", "changelog", "changes", "history", "citation"),
    *("contributing", "authors", "contributors", "code_of_conduct", "security", "acknowledgements", "attribution"),
)

DATASET_INFO = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json")
"""Files that Hugging Face's library writes next to a dataset, and ``state.json`` next to the first of them."""


@dataclass
class FoundFiles:
    """Files to read, and the names of files and folders that are not read, by their reasons in `report.LEFT_OUT`.

    Names of folders end with a slash; nothing inside such a folder is named. `suggested` is a pattern that reads many
    files of other kinds, if these are more than the files that are read.
    """

    files: list[File] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    suggested: str | None = None

    def leave_out(self, reason: str, name: str) -> None:
        """Note a file, or a folder whose name ends with a slash."""
        self.left_out.setdefault(reason, []).append(escaped(name))

    def describe_left_out(self) -> dict[str, dict[str, Any]]:
        """Return, for each reason, the numbers of files and folders that are not read, and the first names."""
        described: dict[str, dict[str, Any]] = {}
        for reason, names in sorted(self.left_out.items()):
            folders = sum(name.endswith("/") for name in names)
            described[reason] = {"files": len(names) - folders, "folders": folders, "first": names[:10]}
        if self.suggested is not None:
            described["other_kinds"]["suggested_glob"] = self.suggested
        return described


class _Entry(NamedTuple):
    """A path below a folder that the pattern selects; where several lead to one file, the smallest entry counts."""

    by_link: bool
    inside: str  # its path from the folder
    real: str


def find_files(sources: list[str], glob: str | None, input_format: str | None = None) -> FoundFiles:
    """All files that some paths, URIs, folders or patterns name, each once, sorted by path.

    `input_format` says as which format all of them are read, whatever their names; see `open_documents`.

    Where several paths lead to one file, links count less than the file's own path, a path found in a higher folder
    counts more, and the smallest path decides: the order of `sources` changes nothing.
    """
    split = [_split_at_wildcard(source) for source in sources]
    for source, (base, pattern) in zip(sources, split, strict=True):
        if source != STDIN and not is_uri(source) and not os.path.exists(base):
            hint = _texts_hint(source, len(sources) > 1)
            raise InputError(f"{_shortened(source)}: no such file or folder{hint}.", path=_shortened(source))
        if pattern == "" and source != STDIN and not is_uri(source):
            _check_file(source)
    whole = FoundFiles()
    best: dict[tuple[int, str], File] = {}
    systems: list[Any] = []
    for source, (base, pattern) in zip(sources, split, strict=True):
        found = (
            FoundFiles([spooled(input_format)])
            if source == STDIN
            else _find(source, base, pattern, glob, input_format, len(sources) > 1)
        )
        for reason, names in found.left_out.items():
            whole.left_out.setdefault(reason, []).extend(names)
        whole.suggested = whole.suggested or found.suggested
        for file in found.files:
            number = next((i for i, system in enumerate(systems) if system == file.system), len(systems))
            if number == len(systems):
                systems.append(file.system)
            before = best.setdefault((number, file.real), file)
            best[number, file.real] = min(before, file, key=_preference)
    whole.files = sorted(best.values(), key=lambda file: (file.path, file.system.type_name, file.name))
    whole.left_out = {reason: sorted(set(names)) for reason, names in sorted(whole.left_out.items())}
    return whole


def _preference(file: File) -> tuple[bool, int, str, str]:
    return file.by_link, len(file.root), file.path, file.name


def _split_at_wildcard(source: str) -> tuple[str, str]:
    """The path before the first wildcard, and the pattern from there on; the whole path and "" without a wildcard."""
    if not is_uri(source) and os.path.exists(source):
        return source, ""
    path, query = split_query(source) if is_uri(source) else (source, "")
    head = path.rfind("://") + 3 if is_uri(source) else 0
    parts = path[head:].split("/")
    wild = r"[*\[]" if is_uri(source) else r"[*?\[]"
    first = next((i for i, part in enumerate(parts) if (i or not head) and re.search(wild, part)), None)
    if first is None:
        return source, ""
    base = "/".join(parts[:first]) or ("/" if first else "" if head else ".")
    return path[:head] + base + query, "/".join(parts[first:])


def _find(
    source: str, base: str, pattern: str, glob: str | None, input_format: str | None, several: bool
) -> FoundFiles:
    """The files of one source, and the names of other files in the folder that are not read."""
    uri = base if is_uri(source) else ""
    if uri:
        system, path = file_system(uri)
    else:
        path = escaped(Path(os.path.abspath(base)).as_posix())
        system = local_system(path)
    shown = masked(base)
    with reading(_shortened(source), uri=source):
        kind = system.get_file_info(path).type
        unknown = format_of(path) is None and input_format is None
        if kind == fs.FileType.File and uri and unknown and is_folder(system, path):
            kind = fs.FileType.Directory
    if kind == fs.FileType.NotFound:
        if uri and (why := why_not_found(system, path, uri)) is not None:
            raise InputError(f"{_shortened(source)}: cannot be read ({why}).")
        raise InputError(f"{_shortened(source)}: no such file or folder{_texts_hint(source, several)}.")
    if kind != fs.FileType.Directory and not pattern:
        real, by_link = path, False
        if is_local(system):
            place = unescaped(path)
            real = os.path.realpath(place)
            real, by_link = _identity(os.stat(place), real), real != place
        name, folder = escaped(masked(source)), path.rpartition("/")[0]
        known = {} if input_format is not None else formats_of(system, [path])
        return FoundFiles([File(system, path, name, folder, real, by_link, uri=uri, kind=known.get(path, ""))])
    found, root = FoundFiles(), path.rstrip("/")
    with reading(_shortened(source), uri=source):
        is_result = _is_result(system, root)
    if is_result:
        # The documents of a result are the rows that it kept.
        glob, root, shown = glob and glob.removeprefix("kept/"), f"{root}/kept", f"{shown.rstrip('/')}/kept"
        pattern = pattern.removeprefix("kept/")
        with reading(_shortened(source), uri=source):
            if system.get_file_info(root).type != fs.FileType.Directory:
                raise InputError(
                    f"{_shortened(source)}: a result of neardup without a folder kept/, which ids_only and some verbs "
                    "do not write; name the documents."
                )
    chosen_pattern = pattern or (None if glob is None else glob if "/" in glob else f"**/{glob}")
    rule = _Rule(Pattern("**/*" if chosen_pattern is None else chosen_pattern), by_user=chosen_pattern is not None)

    def name_of(inside: str) -> str:
        return inside if shown == "." else f"{shown.rstrip('/')}/{inside}"

    inner = FoundFiles()
    with reading(_shortened(source), uri=source):
        if is_local(system):
            entries = list(_Walk(unescaped(root) or "/", rule, inner).files.values())
        else:
            entries = _list(system, root, rule, inner)
    for reason, names in inner.left_out.items():
        found.left_out[reason] = [name_of(name) for name in names]
    is_link = is_local(system) and os.path.realpath(unescaped(root)) != unescaped(root)
    how = "pattern" if pattern else "folder"
    others: dict[str, list[str]] = {}  # names of files of other kinds, by their extension
    above = f"{root}/" if root or path.startswith("/") else ""
    kinds = _kinds([above + escaped(entry.inside) for entry in entries], system, input_format, chosen_pattern is None)
    for entry in entries:
        path = above + escaped(entry.inside)
        if chosen_pattern is None and path not in kinds:
            found.leave_out("other_kinds", name_of(entry.inside))
            others.setdefault(suffix_of(entry.inside), []).append(entry.inside)
            continue
        inside = escaped(entry.inside)
        name = escaped(name_of(entry.inside))
        if uri and inside != entry.inside:
            raise InputError(f"{name}: the object's name is not UTF-8; rename it.")
        check_relative(inside, name)
        own, kind = system if uri else local_system(path), kinds.get(path, "")
        found.files.append(File(own, path, name, root, entry.real, is_link or entry.by_link, how, uri, kind))
    if chosen_pattern is None and input_format is None:
        found = _without_about(found)
        if len(found.left_out.get("other_kinds", ())) > len(found.files):
            found.suggested = _suggested(system, root, others)
    if not found.files:
        why = _why_nothing(source, pattern, glob, is_result, found, several)
        raise InputError(f"{_shortened(source)}: {why}", path=_shortened(source))
    return found


def _kinds(paths: list[str], system: fs.FileSystem, input_format: str | None, of_folder: bool) -> dict[str, str]:
    """Return the formats of files that are read; for a folder, only formats that are read without a pattern."""
    if input_format is not None:
        wanted = format_named(input_format)
        return {path: wanted for path in paths if format_of(path) == wanted or not has_extension(path)}
    kinds = formats_of(system, paths)
    named = set(map(format_of, paths)) - {None}
    if of_folder and named:  # a file without an extension among others is only read if it is like them
        kinds = {path: kind for path, kind in kinds.items() if kind in named}
    return kinds


def _suggested(system: fs.FileSystem, root: str, others: dict[str, list[str]]) -> str | None:
    """Return a pattern that reads files of other kinds, by their most frequent extension that holds text; None if none
    of the three most frequent ones does."""
    for suffix in sorted(others, key=lambda suffix: (-len(others[suffix]), suffix))[:3]:
        path = escaped(f"{root}/{min(others[suffix])}" if root else min(others[suffix]))
        is_plain = suffix and suffix.isprintable() and not re.search(r"[*?\[\s']", suffix)
        if is_plain and _begins_as_text(local_system(path) if is_local(system) else system, path):
            return f"*{suffix}"
    return None


def _begins_as_text(system: fs.FileSystem, path: str) -> bool | None:
    """Return whether the first bytes of a file are text; None if the file cannot be read."""
    begins = first_bytes(system, path)
    return None if begins is None else are_text(begins)


def _why_nothing(source: str, pattern: str, glob: str | None, is_result: bool, found: FoundFiles, several: bool) -> str:
    """Why a folder has nothing to read, and what to do."""
    if pattern or glob is not None:
        inside = " among the rows that this result kept" if is_result else ""
        if hidden := found.left_out.get("hidden"):
            way = f"; names that begin with a dot ({some(hidden)}) match only if the pattern writes the dot"
        else:
            way = "" if is_uri(source) or not pattern else _texts_hint(source, several)
        return f"no file matches {pattern or glob!r}{inside}{way}."
    if "results" in found.left_out:
        results = some(found.left_out["results"])
        return f"no file to read in this folder but results of neardup ({results}); name one to read the rows it kept."
    skipped = [name for reason in ("hidden", "underscored") for name in found.left_out.get(reason, ())]
    if found.suggested is not None:
        way = f"To read others as text: glob='{found.suggested}'"
    elif skipped:
        way = f"Names that begin with _ or a dot ({some(skipped)}) are read with a pattern that writes them: glob=..."
    else:
        way = "Other files are read with glob=..."
    return f"no file to read in this folder; it may hold {supported()}. {way}"


def _without_about(found: FoundFiles) -> FoundFiles:
    """Without README, LICENSE and the like where there are data files of other formats than text, and without the extra
    files of datasets that Hugging Face's library saved."""
    paths = {file.path for file in found.files}
    about = {file.path for file in found.files if _is_about(file.path, paths)}
    if all(file.kind == "text" for file in found.files) or about == paths:
        return found
    files, found.files = found.files, []
    for file in files:
        if file.path in about:
            found.leave_out("about_the_data", file.name)
        else:
            found.files.append(file)
    return found


def _is_about(path: str, paths: set[str]) -> bool:
    """Whether a file is about the data, by its name and the names of the files around it."""
    name = PurePosixPath(path).name
    if format_of(path) == "text":
        return name.partition(".")[0].lower() in ABOUT
    return name in DATASET_INFO or (name == "state.json" and f"{path[: -len(name)]}{DATASET_INFO[0]}" in paths)


def _check_file(path: str) -> None:
    """Refuse pipes, sockets and devices before they are opened, which may wait for ever; and files of neardup itself
    that are not documents: what a killed run left, and reports."""
    with reading(_shortened(path), uri=path):
        mode, whole = os.stat(path).st_mode, Path(os.path.abspath(path))
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise InputError(f"{_shortened(path)}: {kind}, not a file; write its output to a file, and name that file.")
    local = local_system(escaped(whole.parent.as_posix()))
    for folder in (whole, *whole.parents):
        if re.fullmatch(r"\..+\.partial", folder.name) and (folder / "lock").exists():
            raise InputError(f"{_shortened(path)}: belongs to a run that has not finished; name its input.")
    if whole.name in _TABLES and _is_result(local, escaped(whole.parent.as_posix())):
        raise InputError(f"{_shortened(path)}: the report of a result; name its folder to read the rows it kept.")


_TABLES = {REPORT: beginnings_of(DOCUMENTS), **{report: (table,) for report, table in REPORTS.items()}}
"""Each report of a result, and the files in which a table next to it may begin."""


def _is_result(system: fs.FileSystem, folder: str) -> bool:
    """Return whether a folder is a finished result of neardup: it has a report, and a table that carries its recipe."""
    names = [name for report, tables in _TABLES.items() for name in (report, *tables)]
    infos = dict(zip(names, system.get_file_info([f"{folder}/{name}" for name in names]), strict=True))
    there = {name for name, info in infos.items() if info.type == fs.FileType.File}
    found = next(
        (name for report, tables in _TABLES.items() if report in there for name in tables if name in there), None
    )
    if found is None:
        return False
    try:
        with system.open_input_file(infos[found].path) as file:
            return METADATA_KEY in (pq.read_schema(file).metadata or {})
    except MemoryError:
        raise
    except (OSError, pa.ArrowException):
        return False


class _Rule(NamedTuple):
    """Which names below a folder are read: those that a pattern selects.

    Names that begin with an underscore are skipped unless the user wrote the pattern. Names that begin with a dot are
    skipped unless the pattern writes a name that begins with a dot.
    """

    pattern: Pattern
    by_user: bool

    def step(self, states: States, name: str) -> tuple[bool, States, str | None]:
        """Return whether a path that ends with this name is selected, the states for what lies below, and the reason
        why the name is skipped that would otherwise be selected or lead to something."""
        selected, below = self.pattern.step(states, name)
        reason = None
        if is_hidden(name) and not (selected or below):
            selected, below = self.pattern.step(states, name, dots=True)
            reason = "hidden"
        elif name.startswith("_") and not self.by_user:
            reason = "underscored"
        return selected, below, reason


class _Walk:
    """Files below a local folder that the rule selects.

    Links to folders are followed after everything that is there itself, in the order of their names, and never to a
    folder that was read already or that the link lies in. So the walk ends, and nothing depends on the order in which
    a folder lists its entries.
    """

    def __init__(self, root: str, rule: _Rule, found: FoundFiles) -> None:
        self.rule, self.found = rule, found
        self.files: dict[str, _Entry] = {}
        self.links: list[tuple[str, str, States]] = []  # path from the folder, real path, and states of the pattern
        seen: set[tuple[str, States]] = set()
        pending = [("", os.path.realpath(root), rule.pattern.start)]
        while pending:
            for link in pending:
                folders = [link]
                while folders:
                    inside, real, states = folders.pop()
                    if (real, states) in seen:
                        found.leave_out("again", f"{inside}/")
                        continue
                    seen.add((real, states))
                    folders += self._folders(inside, real, states)
            pending, self.links = sorted(self.links, key=lambda link: link[:2]), []

    def _folders(self, inside: str, real: str, states: States) -> Iterator[tuple[str, str, States]]:
        """The folders of one folder, whose files and links are noted."""
        with os.scandir(real) as listed:
            entries = list(listed)
        only_kept, names = False, {entry.name for entry in entries}
        if inside and not names.isdisjoint(_TABLES):
            only_kept = _is_result(local_system(escaped(real)), escaped(real))
            if only_kept and "kept" not in self.rule.pattern.names:
                self.found.leave_out("results", f"{inside}/")
                return
        for entry in entries:
            selected, below, skipped = self.rule.step(states, entry.name)
            if not (selected or below) or (only_kept and entry.name != "kept"):
                continue
            path = f"{inside}/{entry.name}" if inside else entry.name
            if skipped is not None:
                if below and entry.is_dir():
                    self.found.leave_out(skipped, f"{path}/")
                elif selected and not entry.is_dir():
                    self.found.leave_out(skipped, path)
            elif entry.is_symlink():
                self._link(path, entry, real, selected, below)
            elif entry.is_dir():
                if below:
                    yield path, f"{real.rstrip('/')}/{entry.name}", below
            elif selected:
                self._file(path, entry.stat(), f"{real.rstrip('/')}/{entry.name}", by_link=False)

    def _link(self, path: str, entry: os.DirEntry[str], folder: str, selected: bool, below: States) -> None:
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            if selected:
                self.found.leave_out("dangling", path)
            return
        target = os.path.realpath(entry.path)
        if not stat.S_ISDIR(status.st_mode):
            if selected:
                self._file(path, status, target, by_link=True)
        elif below and f"{folder}/".startswith(f"{target.rstrip('/')}/"):
            self.found.leave_out("again", f"{path}/")
        elif below:
            self.links.append((path, target, below))

    def _file(self, path: str, status: os.stat_result, real: str, by_link: bool) -> None:
        if not stat.S_ISREG(status.st_mode):
            self.found.leave_out("special", path)
            return
        entry = _Entry(by_link, path, _identity(status, real))
        before = self.files.setdefault(entry.real, entry)
        if before is not entry:
            better, worse = sorted((before, entry))
            self.files[entry.real] = better
            self.found.leave_out("again", worse.inside)


def _identity(status: os.stat_result, real: str) -> str:
    """Return a key that is equal for two paths to one file: its real path or, if it has several names, its number."""
    return real if status.st_nlink == 1 else f"{status.st_dev}:{status.st_ino}"


def _list(system: fs.FileSystem, root: str, rule: _Rule, found: FoundFiles) -> list[_Entry]:
    """List the files in an object store below a prefix that the rule selects."""
    infos = system.get_file_info(fs.FileSelector(root, recursive=rule.pattern.is_deep))
    paths = {_path(info)[len(root) + 1 :]: info for info in infos if info.type == fs.FileType.File}
    folders = dict.fromkeys(folder for folder, _, name in (path.rpartition("/") for path in paths) if name in _TABLES)
    results = [folder for folder in folders if _is_result(system, f"{root}/{folder}")]
    entries = []
    for inside in sorted(paths):
        selected, skipped, reached = _follow(inside, rule)
        if not selected:
            continue
        result = next((folder for folder in results if inside.startswith(f"{folder}/")), None)
        is_kept = "kept" in rule.pattern.names and inside.startswith(f"{result}/kept/")
        if result is not None and not is_kept and not (skipped and f"{result}/".startswith(reached)):
            found.leave_out("results", f"{result}/")
        elif skipped is not None:
            found.leave_out(skipped, reached)
        else:
            entries.append(_Entry(False, inside, f"{root}/{inside}"))
    return entries


def _follow(inside: str, rule: _Rule) -> tuple[bool, str | None, str]:
    """Follow a path name by name: return whether it is selected, the reason why the first skipped name is skipped, and
    the path as far as that name."""
    parts, states, selected = inside.split("/"), rule.pattern.start, False
    for number, name in enumerate(parts, 1):
        selected, states, skipped = rule.step(states, name)
        if skipped is not None:
            is_file = number == len(parts)
            return selected if is_file else bool(states), skipped, "/".join(parts[:number]) + ("" if is_file else "/")
    return selected, None, inside


def _path(info: fs.FileInfo) -> str:
    try:
        return info.path
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def _shortened(source: str) -> str:
    """The source as messages name it: on one line, without secrets, and not a whole text taken for a path."""
    return brief(escaped(masked(source)))


def _texts_hint(source: str, several: bool) -> str:
    """How to pass texts, where the source is hardly meant as a path."""
    is_word = re.search(r"\s", source) is None
    is_path = format_of(source) is not None or (is_word and re.search(r"/|\.\w{1,8}$", source) is not None)
    if is_path or (is_word and not several):
        return ""
    return "; to pass texts instead of paths in Python, write {'text': texts}"


def with_kinds(files: list[File], sources: list[str], input_format: str | None = None) -> tuple[list[File], str]:
    """Return files with their formats, and the format that all share, or are read as; `SEVERAL` for tables of several.

    Files of unknown format that the user named or picked by a pattern are text. A named file of other contents is
    refused, and text or WARC together with another format.
    """
    if input_format is not None:
        given = format_named(input_format)
        return [replace(file, kind=given) for file in files], given
    known: list[File] = []
    kinds: dict[str, list[File]] = {}
    unknown: list[str] = []
    for file in files:
        kind = file.kind or format_of(file.path)
        if kind is None and (own := format_of(without_compression(file.path))) is not None:
            suffix, taken = PurePosixPath(file.path).suffix, " or ".join(FORMATS[own].compressions)
            way = f"compress it as {taken}, or unpack it" if taken else "unpack it"
            raise InputError(f"{file.name}: files of this format are not read compressed as {suffix}; {way}.")
        if kind is None and file.how == "name":
            if _begins_as_text(file.system, file.path) is False:  # what cannot be read is said when it is read
                why = f"unknown kind of file, not text; supported are {supported()}."
                raise InputError(f"{file.name}: {why}", path=file.name)
            unknown.append(file.name)
        known.append(replace(file, kind=kind or "text"))
        kinds.setdefault(kind or "text", []).append(file)
    several = len(kinds) > 1
    if several and not kinds.keys() <= {*TABLES}:
        # Data rather than text, then the format of most files.
        a, b = sorted(kinds, key=lambda kind: (kind == "text", -len(kinds[kind]), kinds[kind][0].path))[:2]
        first, other = kinds[a][0], kinds[b][0]
        if len(sources) == 1 and first.how == "folder":
            way = f"pick one kind, such as with glob='*{suffix_of(first.path)}'"
        else:
            way = "name files of one kind and read the others in a run of their own"
        raise InputError(f"{first.name} and {other.name} are of different kinds; {way}.")
    if unknown:
        log.warning("%s: no known kind of file; each is read as one text", some(unknown))
    return known, SEVERAL if several else next(iter(kinds))


def suffix_of(path: str) -> str:
    """The extension, with that of its compression."""
    suffixes = PurePosixPath(path).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] and suffixes[-1].lower() in COMPRESSIONS else suffixes[-1:])
