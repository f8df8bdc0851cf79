"""Places: folders of named files on this machine or in a store that a URI names, open to the tasks of a job.

    place = Place.of("s3://bucket/work")
    with place.write("sketch/0") as file:
        file.write(b"...")
    place.entries()
    ['sketch']

A file has its name as a whole or not at all. On this machine it is written under a hidden name, which ends in
``.partial``, synced and renamed; what a killed process leaves has such a name, and is never taken for a file. In a
store an object has its name from when it is closed, as far as the store keeps to that; after an error it is deleted.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from neardup_gpu.kernels._cached import cached_property

from .. import checks
from ..errors import InputError, NeardupError, OutputError, ParameterError, raise_want
from ..records import dataclass
from .disk import Room
from .folder import Folder, for_arrow
from .spool import write_all
from .uris import brief, file_system, is_uri, masked, of_fsspec, split_query

MOST_TEXT = 1 << 28
"""Bytes of a file that is read as text, at most."""


class NoSuchFileError(InputError):
    """A place has no file of this name."""


@dataclass(frozen=True, repr=False)
class Place:
    """A folder of named files, on this machine or in a store; pickled as its URI and opened where it is needed.

    The name of a file is one part, ``"records.json"``, or a folder and a part, ``"sketch/12"``. Parts do not begin with
    a dot. The folder comes into being with the first file. Errors show no secret of the URI.

    Parameters
    ----------
    uri : str
        An absolute path or a URI; `of` makes a place of what a user gives.
    """

    uri: str

    @classmethod
    def of(cls, source: str | Path) -> Place:
        """The place that a path or a URI of pyarrow.fs or fsspec names.

        Raises
        ------
        InputError
            If no file system is found for the URI; the message says what to install, where that may help.
        """
        source = checks.path("place", source)
        if not is_uri(source):
            return cls(os.path.abspath(source))
        place = cls(source)
        system, path = place._opened
        return cls(path) if isinstance(system, fs.LocalFileSystem) else place

    def __str__(self) -> str:
        return masked(self.uri)

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"

    def __reduce__(self) -> tuple[type[Place], tuple[str]]:
        return Place, (self.uri,)

    @property
    def folder(self) -> Path | None:
        """The folder on this machine; None for a store."""
        return None if is_uri(self.uri) else Path(self.uri)

    def child(self, name: str) -> Place:
        """The place in this place that has a name of one part."""
        base, query = split_query(self.uri) if is_uri(self.uri) else (self.uri, "")
        return Place(f"{base.rstrip('/')}/{_checked(name)}{query}")

    @contextlib.contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        """A binary file to write into, that takes its name as a whole when the block ends well.

        On this machine it replaces an earlier file of the name in one step, and an error leaves that file. Nobody waits
        until it is on disk: after a loss of power it may be empty or cut, which checksums tell. In a store the earlier
        object may be lost when an error comes between.

        Raises
        ------
        OutputError
            If it cannot be written, also by `write` of the file; for a full disk the message says how much is missing.
        ResourceError
            If too many files are open, or memory does not suffice.
        """
        kind = _NewObject if self.folder is None else _NewFile
        with self._failing(name, OutputError):
            try:
                file = kind(self, name)
            except FileNotFoundError:
                system, path = self._opened
                if self.folder is None:
                    system.create_dir(f"{path}/{name}".rpartition("/")[0], recursive=True)
                else:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    self._on_this_machine(name)[0].make()
                file = kind(self, name)
        try:
            yield cast(BinaryIO, file)
            with self._failing(name, OutputError):
                file.commit()
        except BaseException:
            file.discard()
            raise

    def open(self, name: str) -> pa.NativeFile:
        """A file to read from at any position.

        It is not mapped into memory: what was read of a map counts as the process's memory until all of it is closed,
        a map of a file that is cut short ends the process, and bytes may change after they were compared.

        Raises
        ------
        NoSuchFileError
            If there is none.
        InputError
            If it cannot be opened. What is read later may raise OSError; `reading` turns that into an InputError.
        """
        system, _ = self._opened
        with self.reading(name):
            if self.folder is not None:
                folder, last = self._on_this_machine(name)
                return for_arrow(folder.open(last))
            return system.open_input_file(self._path(name))

    def reading(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Turn what a file system raises in the block into an InputError that names a file of this place."""
        return self._failing(name, InputError)

    def read_text(self, name: str) -> str:
        """The text of a file in UTF-8; raises what `open` raises."""
        with self.open(name) as file, self.reading(name):
            if file.size() > MOST_TEXT:
                raise OSError(errno.EFBIG, f"is larger than {MOST_TEXT:,} bytes")
            return file.read().decode()

    def write_text(self, name: str, text: str) -> None:
        """Write a file that holds a text in UTF-8; raises what `write` raises."""
        with self.write(name) as file:
            file.write(text.encode())

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name; raises InputError if that is unknown."""
        if self.folder is not None:
            with self.reading(name):
                folder, last = self._on_this_machine(name)
                return folder.is_file(last)
        with self.reading(name):
            self._forget_listings()
            return self._opened[0].get_file_info(self._path(name)).type == fs.FileType.File

    def entries(self) -> list[str]:
        """Return the names of the files and folders in the place, sorted, but hidden ones; none if there is no place.

        Raises
        ------
        InputError
            If the place cannot be listed.
        """
        system, path = self._opened
        with self.reading(""):
            self._forget_listings()
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found if not info.base_name.startswith("."))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; raises OutputError if that fails."""
        system, _ = self._opened
        with self._failing(name, OutputError), contextlib.suppress(FileNotFoundError):
            if self.folder is not None:
                folder, last = self._on_this_machine(name)
                folder.remove(last)
            elif self.exists(name):
                system.delete_file(self._path(name))

    def remove_all(self) -> None:
        """Remove the place with all that it holds, also what killed processes left; raises OutputError if that fails.

        Nothing happens where there is none.
        """
        system, path = self._opened
        with self._failing("", OutputError), contextlib.suppress(FileNotFoundError):
            if self.folder is not None:
                shutil.rmtree(self.folder)
                return
            self._forget_listings()
            if system.get_file_info(path).type == fs.FileType.Directory:
                system.delete_dir(path)

    def clear(self, folder: str, ours: re.Pattern[str]) -> None:
        """Remove the files of a folder of the place whose names match a pattern, and the folder if nothing is left.

        In a store all of the folder is removed. Raises OutputError if a file cannot be removed.
        """
        if self.folder is None:
            self.child(folder).remove_all()
            return
        some = Folder(self.folder, _checked(folder))
        with self._failing(folder, OutputError), contextlib.suppress(FileNotFoundError):
            names = some.names()
            for name in filter(ours.fullmatch, names):
                some.remove(name)
            if all(map(ours.fullmatch, names)):
                os.rmdir(some.path_of("."))

    # ------------------------------------------------------------------------------------------------------ private

    @cached_property
    def _opened(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the path within it."""
        if not is_uri(self.uri):
            return fs.LocalFileSystem(), self.uri
        system, path = file_system(self.uri)
        return system, path.rstrip("/")

    def _on_this_machine(self, name: str) -> tuple[Folder, str]:
        """The folder that holds a file, and the file's name in it."""
        assert self.folder is not None
        folder, slash, last = name.rpartition("/")
        return Folder(self.folder, _checked(folder) if slash else ""), _checked(last)

    def _path(self, name: str) -> str:
        """The path of a file within the file system."""
        folder, slash, last = name.rpartition("/")
        return f"{self._opened[1]}/{_checked(folder) + slash if slash else ''}{_checked(last)}"

    def _forget_listings(self) -> None:
        """Let a store be listed again: file systems of fsspec may remember what they listed."""
        if (store := of_fsspec(self._opened[0])) is not None:
            store.invalidate_cache()

    def _shown(self, name: str) -> str:
        base, query = split_query(str(self)) if is_uri(self.uri) else (self.uri, "")
        return f"{base.rstrip('/')}/{name}{query}" if name else str(self)

    @contextlib.contextmanager
    def _failing(self, name: str, kind: type[NeardupError]) -> Iterator[None]:
        """Turn what a file system raises into one line that names the file and what to do."""
        try:
            yield
        except NeardupError:
            raise
        except Exception as error:  # a file system of fsspec may raise any exception
            raise_want(error)
            if isinstance(error, FileNotFoundError) and kind is InputError:
                raise NoSuchFileError(f"{self._shown(name)}: no such file; run the job again") from None
            if self.folder is not None and not isinstance(error, (OSError, pa.ArrowException, UnicodeDecodeError)):
                raise
            verb, advice = "read", "see that it can be, and run the job again"
            if kind is OutputError:
                verb, advice = "written", "name another folder with work_dir=..."
            why = (error.strerror if isinstance(error, OSError) else None) or brief(error, self.uri)
            raise kind(f"{self._shown(name)}: cannot be {verb} ({why}); {advice}") from error


def _checked(part: str) -> str:
    """One part of a name, if it names a file of the folder and no other."""
    if not part or part.startswith(".") or any(mark in part for mark in "/\\\0"):
        raise ParameterError(f"name: {part!r} cannot name a file; give one or two parts that do not begin with a dot")
    return part


class _NewObject(io.RawIOBase):
    """An object of a store as it is being written: it appears when it is closed."""

    def __init__(self, place: Place, name: str) -> None:
        super().__init__()
        self._place, self._name, self._position = place, name, 0
        self._file = self._create()

    def _create(self) -> Any:
        return self._place._opened[0].open_output_stream(self._place._path(self._name))

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        """Write all of the data; raises as `Place.write` does."""
        with self._place._failing(self._name, OutputError):
            self._write(memoryview(data).cast("B"))
        self._position += (num_bytes := memoryview(data).nbytes)
        return num_bytes

    def _write(self, data: memoryview) -> None:
        self._file.write(data)

    def commit(self) -> None:
        """Let it appear under its name."""
        self._file.close()

    def discard(self) -> None:
        """Leave nothing of it."""
        with contextlib.suppress(Exception):  # the error that led here counts
            self._file.close()
        with contextlib.suppress(Exception):
            self._place._opened[0].delete_file(self._place._path(self._name))


class _NewFile(_NewObject):
    """A file on this machine as it is being written, under a hidden name of its own."""

    def _create(self) -> Any:
        self._folder, self._last = self._place._on_this_machine(self._name)
        self._disk = Room(self._folder.path_of("."))
        self._partial = f".{self._last}.{uuid.uuid4().hex}.partial"
        return os.fdopen(self._folder.create(self._partial), "wb", buffering=0)

    def _write(self, data: memoryview) -> None:
        write_all(self._file, data, self._folder.path_of("."), self._disk, parameter="work_dir")

    def commit(self) -> None:
        self._file.close()
        self._folder.rename(self._partial, self._last)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._folder.remove(self._partial)
