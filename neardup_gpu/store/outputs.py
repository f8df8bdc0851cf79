"""Places for the output of a run: it takes them whole or not at all, and never replaces a file of somebody else.

While a run works, its files lie in a hidden folder next to its output:

    .OUT.partial/lock       locked as long as the run lives; who it is, for messages
    .OUT.partial/new/OUT    the output as it is being written
    .OUT.partial/placing    the names that are about to be taken, and the inodes that take them
    .OUT.partial/old/OUT    the earlier result, on file systems that cannot exchange two names

At the end `new/OUT` takes its name by an operation that fails when something is there; an earlier result is exchanged
with it in one step, looked at once more, and goes back if it holds what this package did not write. Whatever a killed
run left is found by the next run to the same output, which holds the lock then: what was half placed goes back, and the
rest is removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from neardup_gpu.kernels._cached import cached_property

from .. import checks
from ..errors import OutputError
from ..log import log
from ..records import dataclass
from ..report import some
from .artefacts import foreign_files, index_around, is_table
from .disk import exchange, rename_new, renamed, sync, sync_folder
from .locks import HAS_LOCKS, try_to_lock
from .uris import refuse_uri


@contextlib.contextmanager
def new_folder(path: str | Path, overwrite: bool = False, reads: Iterable[str | Path] = ()) -> Iterator[Path]:
    """A folder to write into, that takes the name `path` when the block ends well, and vanishes when it does not.

    Parameters
    ----------
    path : path
        Links are followed. Nothing is there yet, or an empty folder.
    overwrite : bool
        Replace an earlier result, and nothing else.
    reads : iterable of path
        Files that the run reads: none of them may be lost.

    Raises
    ------
    OutputError
        If `path` is taken, is being written by another run, holds an input, or cannot be written. Where the block ended
        well and the name was taken meanwhile, the result lies next to it, and the message says where.
    """
    target = _OutputTarget.of(path, "folder")
    if target.path.is_dir():
        _check_place(target)
    inputs = _Inputs(reads)

    def check(there: Path, overwrite: bool) -> None:
        if not there.is_dir() or any(there.iterdir()):
            _check_result(target, there, inputs, overwrite)

    with _placed_at_the_end([target], check, overwrite) as (folder,):
        folder.mkdir()
        yield folder


@contextlib.contextmanager
def new_file(
    path: str | Path,
    overwrite: bool = False,
    reads: Iterable[str | Path] = (),
    is_ours: Callable[[Path], bool] = is_table,
) -> Iterator[Path]:
    """Like `new_folder`, for one file; with `overwrite`, one that `is_ours` takes for this package's is replaced."""
    with new_files([path], overwrite, reads, is_ours) as (file,):
        yield file


@contextlib.contextmanager
def new_files(
    paths: Iterable[str | Path],
    overwrite: bool = False,
    reads: Iterable[str | Path] = (),
    is_ours: Callable[[Path], bool] = is_table,
) -> Iterator[list[Path]]:
    """Several files in one folder. Either all take their places or none; the first one does so last."""
    targets = [_OutputTarget.of(path, "file") for path in paths]
    for target in targets[1:]:
        if target.path.parent != targets[0].path.parent:
            raise OutputError(f"{target}: is a link out of its folder; name another output")
    inputs, by_name = _Inputs(reads), {target.path.name: target for target in targets}

    def check(there: Path, overwrite: bool) -> None:
        target = by_name.get(there.name, targets[0])
        if _identity(there) in inputs.identities:
            raise OutputError(f"{target}: is read as input, which would be lost; name another output")
        if not overwrite:
            raise OutputError(f"{target}: exists already; name another output or pass overwrite=True")
        if not stat.S_ISREG(os.lstat(there).st_mode) or not is_ours(there):
            raise OutputError(f"{target}: was not written by neardup; overwrite=True replaces only what was")

    with _placed_at_the_end(targets, check, overwrite) as files:
        yield files


# ------------------------------------------------------------------------------------------------ what was asked for


@dataclass(frozen=True)
class _OutputTarget:
    """The place of an output: as the user named it, and the path that this leads to."""

    given_path: str
    path: Path

    def __str__(self) -> str:
        return self.given_path

    @classmethod
    def of(cls, path: str | Path, kind: str) -> _OutputTarget:
        """The place of a "folder" or a "file"; what cannot be one is refused."""
        given_path = checks.path("output", path)
        refuse_uri(given_path, f"results are written to local disks; name a {kind}")
        if kind == "file" and given_path.endswith(("/", os.sep)):
            raise OutputError(f"{given_path}: ends as a folder's name does; name a file")
        target = cls(given_path, _resolved(given_path))
        with _naming_output(given_path):
            _check_kind(target, kind)
        return target


def _resolved(given_path: str) -> Path:
    try:
        path = os.path.realpath(given_path)
    except FileNotFoundError:
        raise OutputError(f"{given_path}: the working folder has been deleted; change to another") from None
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = given_path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise OutputError(
            f"{shown}: the name, or that of a folder around it, is not UTF-8; name another output"
        ) from None
    return Path(path)


def _check_kind(target: _OutputTarget, kind: str) -> None:
    """Refuse a target that exists and is of another kind, or lies below a file or in an index."""
    path = target.path
    index = index_around(path)
    if index is not None:
        raise OutputError(f"{target}: lies in the index {index.name}, which clears its folders; name another output")
    for folder in path.parents:
        if os.path.lexists(folder):
            if not folder.is_dir():
                raise OutputError(f"{target}: {folder.name} is a file, not a folder; name another output")
            break
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise OutputError(f"{target}: is a link that leads back to itself; name another output")
    if kind == "folder" and not stat.S_ISDIR(mode):
        raise OutputError(f"{target}: is a file; name a folder")
    if kind == "file" and stat.S_ISDIR(mode):
        raise OutputError(f"{target}: is a folder; name a file")


def _check_place(target: _OutputTarget) -> None:
    """Refuse folders whose name cannot be given to another one."""
    with contextlib.suppress(FileNotFoundError):  # then the working folder has been deleted, and nobody is there
        if Path.cwd().is_relative_to(target.path):
            raise OutputError(f"{target}: is where you are; name a folder of its own")
    if os.path.ismount(target.path):
        raise OutputError(f"{target}: is a mount point, which cannot be replaced; name a folder inside it")


def _check_result(target: _OutputTarget, folder: Path, inputs: _Inputs, overwrite: bool) -> None:
    """Refuse to replace a folder that holds an input or anything that no run wrote."""
    for place, _, names in os.walk(folder):
        for name in names:
            if _identity(Path(place, name)) in inputs.identities:
                shown = Path(target.given_path, Path(place, name).relative_to(folder))
                raise OutputError(f"{target}: holds the input {shown}, which would be lost; name another output")
    if not overwrite:
        raise OutputError(f"{target}: exists already; name another output or pass overwrite=True")
    foreign = foreign_files(folder)
    if foreign is None:
        raise OutputError(f"{target}: holds other files than a result; overwrite=True replaces only earlier results")
    if foreign:
        found = some(foreign)
        raise OutputError(f"{target}: also holds {found}, new or changed since the result was written; move that away")


class _Inputs:
    """The files that a run reads, however they are named."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._paths = paths

    @cached_property
    def identities(self) -> Collection[tuple[int, int]]:
        return {found for path in self._paths if (found := _identity(path, follow=True)) is not None}


def _identity(path: str | Path, follow: bool = False) -> tuple[int, int] | None:
    """Device and inode: the same for all names of a file. None where there is none."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _naming_output(given_path: str) -> Iterator[None]:
    """Turn errors of the system into one line that names the output."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{given_path}: {error.strerror}; name another output") from None


# -------------------------------------------------------------------------------------------------- from claim to place

Check = Callable[[Path, bool], None]
"""Raises OutputError unless what lies at a path may be replaced; the second argument is `overwrite`."""


@contextlib.contextmanager
def _placed_at_the_end(targets: list[_OutputTarget], check: Check, overwrite: bool) -> Iterator[list[Path]]:
    """Paths to write to, one for each target; all of them take their places when the block ends well."""
    first = targets[0]
    hidden = _hidden_folder(first.path)

    def look_at(there: Path) -> None:
        check(there, overwrite)

    def look() -> None:
        for target in targets:
            with _naming_output(target.given_path):
                if os.path.lexists(target.path):
                    look_at(target.path)

    # What a killed run left may put an earlier result back into its place first.
    wait = os.path.lexists(hidden)
    if not wait:
        look()
    with _claimed_folder(hidden, first, check) as partial:
        if wait:
            look()
        may_replace = {target: overwrite or target.path.exists() for target in targets}
        try:
            new = partial / "new"
            new.mkdir()
            files = [new / target.path.name for target in targets]
            yield files
            _record(partial, files)
        except OSError as error:
            if isinstance(error, (OutputError, BrokenPipeError)):
                raise
            # Not `strerror`: pyarrow's names the temporary file.
            why = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
            advice = "; name an output on a larger disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            raise OutputError(f"{first}: {why}; nothing was written{advice}") from error
        try:
            for target, file in reversed(list(zip(targets, files, strict=True))):
                _place(file, target, look_at if may_replace[target] else None)
            sync_folder(first.path.parent)
            (partial / "placing").unlink()
        except BaseException as error:
            _put_back(partial, first)
            if not isinstance(error, OSError):
                raise
            why = str(error) if isinstance(error, OutputError) else f"{first}: {error.strerror}"
            kept = ", ".join(_to_free_name(file, target) for target, file in zip(targets, files, strict=True))
            raise OutputError(f"{why}; the result is in {kept}") from error


def _place(file: Path, target: _OutputTarget, check: Callable[[Path], None] | None) -> None:
    """Give a file or folder its name. Whatever has that name is taken out of its place if there is a `check`,
    which may refuse that by an error."""
    for _ in range(10):  # others may take the name and leave it at the same time
        try:
            rename_new(file, target.path)
            return
        except FileExistsError:
            if check is None:
                raise OutputError(f"{target}: appeared while this ran, and is untouched") from None
        try:
            mode = stat.S_IMODE(os.lstat(target.path).st_mode)
            file.chmod(mode | 0o700 if file.is_dir() else mode)  # whoever could not read the earlier one still cannot
            earlier = exchange(file, target.path)
        except FileNotFoundError:
            continue
        check(earlier)
        return
    raise OutputError(f"{target}: keeps appearing and vanishing; name another output")


def _put_back(partial: Path, target: _OutputTarget) -> None:
    """Undo what `_place` did: new ones go back into `new`, and what was in their places comes back."""
    try:
        for name, inode in _placing(partial).items():
            path, new, old = partial.parent / name, partial / "new" / name, partial / "old" / name
            if _inode(path) == inode:
                if _inode(new) not in (None, inode):
                    renamed(new, path, exchange=True)
                    continue
                path.unlink() if _inode(new) == inode else os.rename(path, new)  # two names of one are a half rename
            if os.path.lexists(old):
                _remove_empty([path])  # of a half rename as well
                try:
                    rename_new(old, path)
                except FileExistsError:  # somebody else has the name now
                    log.warning(
                        "%s: the earlier one is in %s", path, _to_free_name(old, _OutputTarget(str(path), path))
                    )
        (partial / "placing").unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror}; what was there before is in {partial}") from error


def _record(partial: Path, files: list[Path]) -> None:
    """See that the files that will be placed are on disk, and record their inodes."""
    placing = partial / "placing"
    placing.write_text(json.dumps({file.name: _inode(file) for file in files}))
    try:
        sync(partial)
    except BaseException:
        placing.unlink()
        raise


def _placing(partial: Path) -> dict[str, int]:
    """Names that are about to be taken, and the inodes of what takes them."""
    try:
        return json.loads((partial / "placing").read_text())
    except (OSError, ValueError):
        return {}


def _inode(path: Path) -> int | None:
    return os.lstat(path).st_ino if os.path.lexists(path) else None


def _to_free_name(file: Path, target: _OutputTarget) -> str:
    """Move something next to its target, under the target's name and a number; return that name, as the user would
    write it."""
    path = target.path
    stem, suffix = (path.name, "") if file.is_dir() else (path.stem, path.suffix)
    for number in range(1, 10_000):
        free = path.with_name(f"{stem}-{number}{suffix}")
        with contextlib.suppress(FileExistsError):
            rename_new(file, free)
            shown = Path(target.given_path).with_name(free.name)
            return str(shown if os.path.realpath(shown) == str(free) else free)
    raise OutputError(f"{target}: this name and those like it are taken; name another output")


# ---------------------------------------------------------------------------------------------------- the hidden folder


def _hidden_folder(path: Path) -> Path:
    name = path.name
    if len(os.fsencode(name)) > 200:  # a name has up to 255 bytes
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    return path.with_name(f".{name}.partial")


@contextlib.contextmanager
def _claimed_folder(partial: Path, target: _OutputTarget, check: Check) -> Iterator[Path]:
    """The hidden folder, empty, and for one run at a time."""
    made = [folder for folder in partial.parents if not os.path.lexists(folder)]
    try:
        lock = _lock_on(partial, target)
    except OSError as error:
        _remove_empty(made)
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{target}: {error.strerror}; name an output that can be written") from None
    try:
        _recover(partial, target, check)
        yield partial
    finally:
        if not (partial / "placing").exists():  # else something could not be put back, and the next run tries again
            _clear(partial)
            if not HAS_LOCKS:  # Windows removes no open files
                os.close(lock)
            with contextlib.suppress(OSError):
                (partial / "lock").unlink()
            _remove_empty([partial, *made])
        if HAS_LOCKS:
            os.close(lock)


def _lock_on(partial: Path, target: _OutputTarget) -> int:
    """Descriptor of a lock on the hidden folder, which is made if it is not there."""
    for _ in range(100):  # whoever had it may be removing it now
        made = True
        try:
            partial.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.mkdir(0o700)
            except FileExistsError:
                made = False
                _check_hidden(partial, target)
            lock = os.open(partial / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:
            continue
        try:
            owner = os.read(lock, 1000).decode("utf-8", "replace")
            held = try_to_lock(lock)
            if held is False:
                raise OutputError(f"{target}: is being written by {owner or 'another run'}; name another output")
            if held is None and not made:
                raise OutputError(
                    f"{target}: {partial} belongs to {owner or 'another run'}; remove it if that has ended"
                )
            if _identity(partial / "lock") == (os.fstat(lock).st_dev, os.fstat(lock).st_ino):
                os.ftruncate(lock, 0)
                os.lseek(lock, 0, os.SEEK_SET)
                os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
    raise OutputError(f"{target}: {partial} cannot be made, or is removed each time; name another output")


def _check_hidden(partial: Path, target: _OutputTarget) -> None:
    """Refuse a folder that has our name but is not ours: somebody might want us to write or remove elsewhere."""
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(partial)
        ours = stat.S_ISDIR(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
        if ours:
            names = os.listdir(partial)
            ours = not names or "lock" in names
        if not ours:
            raise OutputError(f"{target}: {partial} is in the way; remove it, or name another output")


def _recover(partial: Path, target: _OutputTarget, check: Check) -> None:
    """Put back what a killed run had placed only in part, then remove what it left."""
    if os.listdir(partial) == ["lock"]:
        return
    log.warning("%s: removing what a killed run left in %s", target, partial.name)
    if _all_placed(partial, check):
        (partial / "placing").unlink(missing_ok=True)
    else:
        _put_back(partial, target)
    _clear(partial)


def _all_placed(partial: Path, check: Check) -> bool:
    """Whether the killed run had placed all its files, so that at most the earlier ones, all of them ours, are left."""
    placing = _placing(partial)
    if any(_inode(partial.parent / name) != inode for name, inode in placing.items()):
        return False
    # The run was killed while it removed the earlier files, if not before they were looked at.
    left = [partial / folder / name for folder in ("new", "old") for name in placing]
    try:
        for path in filter(os.path.lexists, left):
            check(path, True)
    except OutputError:
        return False
    return True


def _clear(partial: Path) -> None:
    """Remove what the hidden folder holds. Its record is gone by then, on disk too: nothing half removed comes back."""
    sync_folder(partial)
    for name in ("new", "old"):
        shutil.rmtree(partial / name, ignore_errors=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that were made but remained empty, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
