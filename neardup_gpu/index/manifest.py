"""The manifest of an index: what there is, in one file that appears whole; and who holds it.

The manifest with the greatest number is the index. It is JSON with a checksum of its own. Readers and the writer meet
in locks of the system alone, which end with the process that has them:

    manifest.00000042    a reader holds a shared lock on the one that it reads
    writer.lock          the writer holds an exclusive lock; the file says who it is
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import DamagedError, InputError, OutputError
from ..store.artefacts import OF_AN_INDEX
from ..store.checksums import changed, checksum
from ..store.folder import Folder, read_all
from ..store.outputs import try_to_lock
from .columns import ID_TYPES, type_named
from .keeps import Keeps
from .validity import MOST_NUMBER, problem_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
"""What is written; earlier ones, which lacked some fields, are read."""

MOST_BYTES = 1 << 28
"""Bytes of a manifest, at most; almost all of a large one are the paths of inputs."""

SEGMENTS, DELETED, LOCK = "segments", "deleted", "writer.lock"
_NEW = re.compile(rf"{OF_AN_INDEX.pattern}(\.\w+)?\.new")
_OURS = re.compile(r"[0-9]{8,}")
_KIND = "neardup index"
_NO_LINKS = errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL


@dataclass(frozen=True)
class Place:
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
    """

    name: str
    files: list[list[Any]]
    rows: int
    whole: bool


@dataclass(frozen=True)
class Manifest:
    """What an index consists of.

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
    next_sequence, next_file : int
        Neither was used yet.
    disturbed : bool
        Whether an entry died, or lost its first member: then stored pairs may not suffice to decide.
    segments : list of Place
        In order of sequence.
    inputs : list of Progress
    keeps : Keeps
        What is kept of documents; as long as an index lives.
    """

    number: int
    recipe: str
    id_kind: str | None = None
    id_as: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    next_sequence: int = 0
    next_file: int = 0
    disturbed: bool = False
    segments: list[Place] = field(default_factory=list)
    inputs: list[Progress] = field(default_factory=list)
    keeps: Keeps = Keeps()

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
        If it is not as it was written, or is none that this package writes.
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
        places = [Place(**each) for each in values.pop("segments")]
        inputs = [Progress(**each) for each in values.pop("inputs")]
        keeps = Keeps(**values.pop("keeps", {}))
        manifest = Manifest(**values, segments=places, inputs=inputs, keeps=keeps)
        problem = problem_of(manifest)
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
        If the folder is no index, or cannot be read.
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
        raise InputError(f"{folder}: is no index: there is no manifest in it; neardup index create makes one")
    return found


def is_free(folder: Path) -> bool:
    """Whether there is nothing in a folder but what a killed `create` may have left."""
    names = {name for name in Folder(folder).names() if not _NEW.fullmatch(name)}
    inner = names & {SEGMENTS, DELETED}
    return names == inner and not any(Folder(folder, each).names() for each in inner)


def path_of(folder: Path, number: int) -> Path:
    """Where a manifest lies."""
    return folder / f"manifest.{number:08}"


class Held:
    """A manifest that is held: none of its files vanishes until it is let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        while True:
            path = path_of(folder, numbers(folder)[-1])
            try:
                self._file = Folder(folder).open(path.name)
            except FileNotFoundError:  # a newer one has come
                continue
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}; restore the index") from None
            try:
                if fcntl is not None:
                    with contextlib.suppress(OSError):  # a file system without locks
                        fcntl.flock(self._file.fileno(), fcntl.LOCK_SH)
                if not Folder(folder).has(path.name):  # it went before it was locked
                    self._file.close()
                    continue
                self.manifest = _read(path, read_all(self._file, MOST_BYTES))
            except OSError as error:
                self._file.close()
                raise InputError(f"{path}: {error.strerror}; restore the index") from None
            except BaseException:
                self._file.close()
                raise
            return

    def close(self) -> None:
        """Let it go."""
        self._file.close()


def commit(folder: Path, manifest: Manifest) -> None:
    """Make a manifest the index; all of its files are on disk already, and their names.

    Raises
    ------
    OSError
        If it cannot be written. The index is as before then, unless the manifest has its name already.
    OutputError
        If there is a manifest of this number, which another process wrote; it stays as it is.
    """
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
        place.link(new, name)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise _overtaken(folder) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        place.rename(new, name)
    else:
        with contextlib.suppress(OSError):  # `clean` removes it too
            place.remove(new)
    place.sync()


def check_newest(folder: Path, manifest: Manifest) -> None:
    """Raise OutputError if there is a later manifest: where locks are of no use, another process may have written."""
    if numbers(folder)[-1] > manifest.number:
        raise _overtaken(folder)


def _overtaken(folder: Path) -> OutputError:
    return OutputError(
        f"{folder}: another process has written to the index; open it again, and let one write at a time"
    )


def clean(folder: Path, newest: Manifest, unpublished: set[str]) -> None:
    """Remove older manifests that no reader holds, and all files that none names. Only the writer may.

    Files that it is still writing, given by their paths below the folder, stay.

    As long as a reader holds a manifest that cannot be read here, nobody knows which files it needs: all stay then.
    """
    named, known, place = newest.files() | unpublished, True, Folder(folder)
    for number in numbers(folder):
        if number >= newest.number:
            continue
        path = path_of(folder, number)
        try:
            file = place.open(path.name)
        except OSError:  # somebody else's
            known = False
            continue
        with file:
            if try_to_lock(file.fileno()):
                place.remove(path.name)
                continue
            try:
                named |= _read(path, read_all(file, MOST_BYTES)).files()
            except (InputError, OSError):  # damaged, or of another version
                known = False
    unnamed = [(place, name) for name in place.names() if _NEW.fullmatch(name)]
    for inner in (SEGMENTS, DELETED) if known else ():
        some = Folder(folder, inner)
        ours = (name for name in some.names() if _OURS.fullmatch(name))
        unnamed += [(some, name) for name in ours if f"{inner}/{name}" not in named]
    for some, name in unnamed:
        with contextlib.suppress(IsADirectoryError):  # somebody else's
            some.remove(name)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[bool]:
    """Be the one writer of an index in the block; False where that cannot be known, as locks are of no use.

    Raises
    ------
    OutputError
        If another process is, which the message names, or the folder cannot be written.
    """
    try:
        file = Folder(folder).open_own(LOCK)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}; an index is written by whoever may write its folder") from None
    try:
        locked = try_to_lock(file)
        if locked is False:
            who = os.read(file, 1000).decode("utf-8", "replace").strip() or "another process"
            raise OutputError(f"{folder}: is being written by {who}; wait until it has ended")
        command = " ".join(os.path.basename(word) if number == 0 else word for number, word in enumerate(sys.argv[:3]))
        name = f"process {os.getpid()} on {socket.gethostname()} ({command})".encode("utf-8", "replace")[:500]
        with contextlib.suppress(OSError):  # a full disk: others are refused all the same
            os.ftruncate(file, 0)
            os.write(file, name)
        make_folders(folder)
        yield locked is True
    finally:
        os.close(file)


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


def with_segments(manifest: Manifest, segments: list[Place], **changes: Any) -> Manifest:
    """The next manifest: with other segments, and what else has changed."""
    return replace(manifest, number=manifest.number + 1, segments=segments, **changes)
