"""The manifest of an index: what there is, in one file that appears whole; and who holds it.

The manifest with the greatest number is the index. It is JSON with a checksum of its own. `locking.py` says how readers
and the writer agree.

No commit replaces a manifest: its name is taken by a link, or by a rename that never replaces. On file systems that
have neither, the name is first taken by an empty file, which is then replaced. An empty manifest is a commit that was
not made: readers use the one before it, and the next commit takes a greater number.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import DamagedError, InputError, OutputError
from ..methods.finding.keeps import Keeps
from ..records import dataclass
from ..store.checksums import changed, checksum
from ..store.disk import renamed
from ..store.folder import OF_AN_INDEX, Folder
from .columns import ID_TYPES, type_named
from .locking import Hold, remove_unread
from .validity import MOST_NUMBER, problems_of

FORMAT = 4
"""The version that is written; earlier ones, which lacked some fields, are read."""

MOST_BYTES = 1 << 28
"""Bytes of a manifest, at most; almost all of a large one are the paths of inputs."""

SEGMENTS, DELETED = "segments", "deleted"
_NEW = re.compile(rf"{OF_AN_INDEX.pattern}(\.\w+)?\.new")
_OURS = re.compile(r"[0-9]{8,15}")
_KIND = "neardup index"
_NO_LINKS = errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL


@dataclass(frozen=True)
class SegmentPlace:
    """A segment, as a manifest names it.

    file : int
        Its file in segments/.
    first, stop : int
        Sequence numbers of its documents are from the first on and before the second.
    documents, entries, pairs, num_bytes : int
        What the file holds, also of what is dead.
    dead_documents, dead_entries : int
    deleted : int or None
        The file in deleted/ that says which are dead.
    order : int or None
        The file in segments/ that holds the order in which its prefixes were taken.
    """

    file: int
    first: int
    stop: int
    documents: int
    entries: int
    pairs: int
    num_bytes: int
    dead_documents: int = 0
    dead_entries: int = 0
    deleted: int | None = None
    order: int | None = None


@dataclass(frozen=True)
class Progress:
    """How far an input was added.

    name : str
        The path of its file, or of the first of several.
    files : list of [path, size, time in nanoseconds]
    rows : int
        Rows of it that are in the index.
    whole : bool
        Whether these are all.
    first : int, default 0
        The sequence number that the first of its documents got; 0 if an earlier version has not noted it.
    """

    name: str
    files: list[list[Any]]
    rows: int
    whole: bool
    first: int = 0


@dataclass(frozen=True)
class Manifest:
    """The parts of an index.

    number : int
        Greater than those of earlier manifests.
    recipe : str
        As JSON, with the version of the definitions.
    id_kind : str or None
        What ids are: "integer", "string" or "binary"; None as long as there are none.
    id_as : str or None
        The Arrow type in which they were given.
    columns : dict of str to str
        The columns that are kept of documents, and their Arrow types; "null" as long as that is unknown.
    categories : dict of str to list of str
        For each column that has ordered categories, their order.
    next_sequence, next_file : int
        Neither was used yet.
    next_document : int or None
        The number of the next document, if parts of documents are compared; None if documents are numbered as units.
    disturbed : bool
        Whether an entry died, or lost its first member: then stored pairs may not suffice to decide.
    segments : list of SegmentPlace
        In order of sequence.
    inputs : list of Progress
    keeps : Keeps
        What is kept of documents; as long as an index lives.
    reading : dict or None
        How the documents were read, see `remembered.py`; None as long as none with columns were added.
    """

    number: int
    recipe: str
    id_kind: str | None = None
    id_as: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    next_sequence: int = 0
    next_file: int = 0
    disturbed: bool = False
    segments: list[SegmentPlace] = field(default_factory=list)
    inputs: list[Progress] = field(default_factory=list)
    keeps: Keeps = Keeps()
    next_document: int | None = None
    reading: dict[str, Any] | None = None

    @property
    def first_number(self) -> int:
        """The id of the next document, if the index gives ids."""
        return self.next_sequence if self.next_document is None else self.next_document

    @property
    def id_type(self) -> pa.DataType:
        """The type of ids in results: the one in which they were given."""
        return ID_TYPES[self.id_kind or "integer"] if self.id_as is None else type_named(self.id_as)

    @property
    def column_types(self) -> dict[str, pa.DataType]:
        """The columns that are kept of documents."""
        return {name: type_named(kind) for name, kind in self.columns.items()}

    @property
    def documents(self) -> int:
        """Live documents."""
        return sum(each.documents - each.dead_documents for each in self.segments)

    @property
    def entries(self) -> int:
        """Live entries."""
        return sum(each.entries - each.dead_entries for each in self.segments)

    def to_bytes(self) -> bytes:
        """As it is written: the checksum is of all that follows it."""
        text = json.dumps({"kind": _KIND, "format": FORMAT, **asdict(self)}).encode()
        return f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n"

    def files(self) -> set[str]:
        """Paths of its files, below the folder of the index."""
        found = {f"{SEGMENTS}/{each.file:08}" for each in self.segments}
        found |= {f"{SEGMENTS}/{each.order:08}" for each in self.segments if each.order is not None}
        return found | {f"{DELETED}/{each.deleted:08}" for each in self.segments if each.deleted is not None}


def _read(path: Path, data: bytes) -> Manifest:
    """Return the manifest that is in a file.

    Raises
    ------
    DamagedError
        If it is not as it was written, or this package does not write such files.
    InputError
        If a later version wrote it.
    """
    found = re.fullmatch(rb'\{"checksum": "([0-9a-f]{16})", "manifest": (.*)\}\n', data, re.DOTALL)
    if found is None or f"{checksum(found[2]):016x}".encode() != found[1]:
        raise changed(path)
    try:
        values = json.loads(found[2])
        kind, version = values.pop("kind"), values.pop("format")
        if kind != _KIND or type(version) is not int:
            raise ValueError("it is of another kind")
        if not 1 <= version <= FORMAT:
            age = "a later" if version > FORMAT else "an earlier"
            raise InputError(
                f"{path}: was written by {age} version, in format {version}; this version reads format {FORMAT}"
            )
        places = [SegmentPlace(**each) for each in values.pop("segments")]
        inputs = [Progress(**each) for each in values.pop("inputs")]
        keeps = Keeps(**values.pop("keeps", {}))
        manifest = Manifest(**values, segments=places, inputs=inputs, keeps=keeps)
        problem = next(problems_of(manifest), None)
        if problem is None and path.name != path_of(path.parent, manifest.number).name:
            problem = f"its number is {manifest.number}"
    except InputError:
        raise
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        raise DamagedError(f"{path}: is not a manifest that this package writes ({problem}); restore the index")
    return manifest


def numbers(folder: Path) -> list[int]:
    """Numbers of the manifests in a folder, ascending.

    Raises
    ------
    InputError
        If the folder is not an index, or cannot be read.
    """
    try:
        names = Folder(folder).names()
        found = sorted(int(name.rpartition(".")[2]) for name in names if OF_AN_INDEX.fullmatch(name))
        found = [number for number in found if number < MOST_NUMBER and path_of(folder, number).name in names]
    except FileNotFoundError:
        raise InputError(f"{folder}: there is no index; neardup index create makes one") from None
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; name the folder of an index") from None
    if not found:
        raise InputError(f"{folder}: is not an index: it has no manifest; neardup index create makes one")
    return found


def is_free(folder: Path) -> bool:
    """Whether there is nothing in a folder but what a killed `create` may have left."""
    names = {name for name in Folder(folder).names() if not _NEW.fullmatch(name)}
    inner = names & {SEGMENTS, DELETED}
    return names == inner and not any(Folder(folder, each).names() for each in inner)


def path_of(folder: Path, number: int) -> Path:
    """Return the path of a manifest."""
    return folder / f"manifest.{number:08}"


def newest(folder: Path) -> int:
    """Return the number of the newest manifest; empty ones are of commits that were not made.

    Raises
    ------
    InputError
        As `numbers` does.
    DamagedError
        If all manifests are empty.
    """
    while True:
        found = numbers(folder)
        made = next((number for number in reversed(found) if is_made(folder, number)), None)
        if made is not None:
            return made
        if found == numbers(folder):
            raise changed(path_of(folder, found[-1]))


def is_made(folder: Path, number: int) -> bool:
    """Return whether there is a manifest that is not empty: an empty one is of a commit that was not made."""
    try:
        return Folder(folder).size(path_of(folder, number).name) > 0
    except FileNotFoundError:
        return False
    except OSError:  # no file: what opens it says so
        return True


class Held(Hold):
    """A manifest that is held: none of its files vanishes until it is let go."""

    def __init__(self, folder: Path) -> None:
        while True:
            path = path_of(folder, newest(folder))
            try:
                super().__init__(path)
            except FileNotFoundError:  # a newer one has come
                continue
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}; restore the index") from None
            try:
                if not Folder(folder).has(path.name):  # it was removed before it was locked
                    self.close()
                    continue
                self.manifest = _read(path, self.read(MOST_BYTES))
            except OSError as error:
                self.close()
                raise InputError(f"{path}: {error.strerror}; restore the index") from None
            except BaseException:
                self.close()
                raise
            return

    def is_newest(self) -> bool:
        """Return whether there is no other manifest to read: a newer one, or one of a folder in this one's place."""
        return newest(self.path.parent) == self.manifest.number and self.is_in_place()


def commit(folder: Path, manifest: Manifest, before: int | None = None) -> None:
    """Make a manifest the index; all of its files are on disk already, and their names.

    Parameters
    ----------
    folder : Path
    manifest : Manifest
    before : int, optional
        The number of the manifest that it follows; the number before its own unless given. Those between are empty.

    Raises
    ------
    OSError
        If it cannot be written. The index is as before then, unless the manifest has its name already.
    OutputError
        If another process has written a manifest, which stays as it is.
    """
    before = manifest.number - 1 if before is None else before
    data, place = manifest.to_bytes(), Folder(folder)
    if len(data) > MOST_BYTES:
        raise OutputError(
            f"{folder}: the list of inputs takes {len(data):,} bytes, and may take {MOST_BYTES:,}; add fewer and "
            "larger files"
        )
    name = path_of(folder, manifest.number).name
    new = f"{name}.{secrets.token_hex(4)}.new"  # no other process's, where locks are of no use
    with os.fdopen(place.create(new), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        if manifest.number > before + 1 or not _take_name(place, new, name):
            _claim(folder, new, name, before)
    except FileExistsError:
        raise _overtaken(folder) from None
    place.sync()
    # A process that was held up before it took the name may find the name free again, as its manifest was removed.
    if numbers(folder)[-1] > manifest.number:
        raise _overtaken(folder)


def _take_name(place: Folder, new: str, name: str) -> bool:
    """Give a new manifest its name if nothing has it; return False where the file system has no such operation."""
    try:
        place.link(new, name)  # unlike a rename it replaces nothing
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return renamed(place.path_of(new), place.path_of(name), exchange=False)
    with contextlib.suppress(OSError):  # `clean` removes it too
        place.remove(new)
    return True


def _claim(folder: Path, new: str, name: str, before: int) -> None:
    """Take the name by an empty file, see that no earlier empty one was filled meanwhile, and replace it.

    Of two processes at once, one looks after the other has taken its name: so it is refused here, or by the last look
    of `commit`.
    """
    place, number = Folder(folder), int(name.rpartition(".")[2])
    os.close(place.create(name))
    if any(before < each < number and is_made(folder, each) for each in numbers(folder)):
        raise _overtaken(folder)
    place.rename(new, name)


def next_number(folder: Path, manifest: Manifest) -> int:
    """Return the number of the manifest that follows one, after those that are empty.

    Raises
    ------
    OutputError
        If a later one is there: where locks are of no use, another process may have written it.
    """
    check_newest(folder, manifest)
    return numbers(folder)[-1] + 1


def check_newest(folder: Path, manifest: Manifest) -> None:
    """Raise OutputError if there is a later manifest: where locks are of no use, another process may have written."""
    if newest(folder) > manifest.number:
        raise _overtaken(folder)


def _overtaken(folder: Path) -> OutputError:
    return OutputError(
        f"{folder}: another process has written to the index; open it again, and let one write at a time"
    )


def clean(folder: Path, last: Manifest, unpublished: set[str], below: int) -> None:
    """Remove older manifests that no reader holds, and files that none names. Only the writer may.

    Files that it is still writing, given by their paths below the folder, stay; and those whose number is not below the
    given one, which may be of another writer where locks are of no use.

    As long as a reader holds a manifest that cannot be read here, nobody knows which files it needs: all stay then.
    """
    named, known, place = last.files() | unpublished, True, Folder(folder)
    now = since = place.status(path_of(folder, last.number).name).st_mtime
    for number in reversed(numbers(folder)):
        if number >= last.number:
            continue
        path = path_of(folder, number)
        written = place.status(path.name)
        if not is_made(folder, number):  # a commit that was not made
            place.remove(path.name)
        else:
            try:
                if not remove_unread(place, path.name, since, now):
                    named |= _read(path, place.read(path.name, MOST_BYTES)).files()
            except (InputError, OSError):  # damaged, of another version, or no file of ours
                known = False
        since = written.st_mtime
    unnamed = [(place, name) for name in place.names() if _NEW.fullmatch(name)]
    for inner in (SEGMENTS, DELETED) if known else ():
        some = Folder(folder, inner)
        ours = (name for name in some.names() if _OURS.fullmatch(name) and int(name) < below)
        unnamed += [(some, name) for name in ours if f"{inner}/{name}" not in named]
    for some, name in unnamed:
        with contextlib.suppress(IsADirectoryError):  # somebody else's
            some.remove(name)


def first_free_file(folder: Path) -> int:
    """Return a number that is greater than those of all files in the folders of an index."""
    names = [name for inner in (SEGMENTS, DELETED) for name in Folder(folder, inner).names()]
    return 1 + max((int(name) for name in names if _OURS.fullmatch(name)), default=-1)


def make_folders(folder: Path) -> None:
    """Make the folders of an index that are not there: who copies one may leave out what is empty.

    Raises
    ------
    OutputError
        If they cannot be made.
    """
    try:
        for inner in (SEGMENTS, DELETED):
            Folder(folder, inner).make()
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: {error.strerror}; name another folder") from None
