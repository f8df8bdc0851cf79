"""Keep compiled kernels in a folder that nobody else can write, and never load a damaged file.

A kept kernel is a pickle of machine code: whoever can write one runs their code in every process that reads it. So the
folder is its owner's alone, and one that others can write is not used. A folder that belongs to root, or that lies on a
disk that cannot be written, is read, and nothing is kept there. Each file begins with a checksum, as a machine that
loses power leaves files cut or full of zeros; a file that is not whole is compiled anew and replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pickle
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, compile_result
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps

log = logging.getLogger("neardup_gpu")

AGAIN = "so every process compiles them again"
ELSEWHERE = "NEARDUP_CACHE_DIR=DIR keeps them in another folder"
ONCE = {"once": True}
"""Mark of records about this machine instead of a job: they are logged once per job's process, not by each worker."""

counts: Counter[str] = Counter()
"""How many functions this process has "loaded" from a folder, and compiled: those that are "kept", and "not kept"."""


def private_folder(name: str) -> tuple[Path | None, str]:
    """The folder of compiled kernels of that name, made where it is missing.

    Parameters
    ----------
    name : str
        What kernels depend on, as a hash: other sources or another Numba have a folder of their own.

    Returns
    -------
    path or None, str
        The folder, None if there is none to be trusted; and why nothing can be kept there, empty if it can be.
    """
    try:
        folder = Path(os.path.realpath(home() / name))
        _make(folder)
        problem = None if os.name == "nt" else _shared(folder)
    except OSError as error:
        if isinstance(error, (FileExistsError, NotADirectoryError)):
            return None, f"{error.filename} is in the way and is not a folder"
        return None, f"{error.filename}: {error.strerror}"
    except RuntimeError:
        return None, "there is no home folder"
    if problem is None and not os.access(folder, os.R_OK | os.X_OK):
        problem = f"{folder} cannot be read"
    if problem is not None:
        return None, problem
    return folder, ("" if os.access(folder, os.W_OK) else f"{folder} cannot be written")


def home() -> Path:
    """Return the folder of compiled kernels: NEARDUP_CACHE_DIR, or else the user's folder of caches."""
    get = os.environ.get
    if named := get("NEARDUP_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        return Path(get("LOCALAPPDATA") or Path.home()) / "neardup_gpu" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "neardup_gpu"
    return Path(get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neardup_gpu"


def _make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner alone whatever the umask says."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _shared(folder: Path) -> str | None:
    """Who else could put files into a folder, or another folder in its place; None if nobody but root."""
    own, trusted = (folder, folder.parent), {0, os.geteuid()}
    for each in (folder, *folder.parents):
        found = os.lstat(each)
        if stat.S_ISLNK(found.st_mode):
            return f"{each} has become a link"
        if found.st_uid not in (trusted if each in own else trusted | _outside()):
            return f"{each} belongs to another user"
        if each != folder and found.st_mode & stat.S_ISVTX:
            continue  # as /tmp: what lies there is renamed and removed by its owner only
        by_group = found.st_mode & stat.S_IWGRP and (each in own or _has_others(found.st_gid))
        if found.st_mode & stat.S_IWOTH or by_group:
            return f"{each} can be written by other users (chmod go-w {each} ends that)"
    return None


def _outside() -> set[int]:
    """The number that stands for all users that this user namespace does not know, where root is one of them.

    In such a container every folder of the system belongs to it.
    """
    try:
        known = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if any(int(outside) == 0 for _, outside, _ in known):
            return set()
        return {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError):
        return set()


def _has_others(group: int) -> bool:
    """Whether users other than this one belong to a group: many systems give each user a group of their own."""
    import grp
    import pwd

    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
        named = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return True
    return not named | {user.pw_name for user in pwd.getpwall() if user.pw_gid == group} <= {own}


FORMAT = 4
"""The version of the cache's files, which is raised when `CachedFunction` changes."""


class CachedFunction(NamedTuple):
    """A compiled function as it is kept.

    Numba's own cache, before it loads anything, imports all that Numba can compile, compiles its runtime and looks for
    extensions among all installed packages (0.3 s), and reads the bitcode of each function (a millisecond or more).
    Machine code needs none of that: only the addresses of what it calls.

    Parameters
    ----------
    name : str
        Of the library.
    code : bytes
        Its machine code.
    bitcode : bytes
        The same for LLVM, which is read if another function is compiled that calls this one.
    defined : frozenset of str
        Symbols that the machine code defines.
    needed : tuple of str
        Symbols that it uses.
    rest : tuple
        What else Numba keeps of a compiled function.
    """

    name: str
    code: bytes
    bitcode: bytes
    defined: frozenset[str]
    needed: tuple[str, ...]
    rest: tuple[Any, ...]

    @classmethod
    def of(cls, compiled: CompileResult) -> CachedFunction:
        (name, _, (code, bitcode)), *rest = compiled._reduce()
        rest[-1] = tuple((each.env_name, each.globals["__name__"], each.consts) for each in rest[-1])
        module = compiled.library._final_module
        symbols = [*module.functions, *module.global_variables]
        defined = frozenset(symbol.name for symbol in symbols if not symbol.is_declaration)
        needed = [symbol.name for symbol in symbols if symbol.is_declaration]
        outside = tuple(each for each in needed if not each.startswith("llvm."))
        return cls(name, code, bitcode, defined, outside, tuple(rest))

    def _is_linkable(self) -> bool:
        return all(llvm.address_of_symbol(name) for name in self.needed)

    def linked(self, context: Any) -> CompileResult:
        """The function, ready to be called."""
        descriptor, environment, signature, objectmode, lifted, annotation, reload, others = self.rest
        _add_runtime()
        for prepare in reload:  # such as the start of threads, whose functions it uses
            prepare()
        if not self._is_linkable():
            context.refresh()
            if not self._is_linkable():  # or LLVM would end the process
                raise ValueError("it calls what is not here")
        library = _Library(context.codegen(), self.name)
        library.take(self)
        entry = context.get_executable(library, descriptor, environment)
        environments = tuple(_environment(*each) for each in others)
        for each in environments:
            library.codegen.set_env(each.env_name, each)
        return compile_result(
            target_context=context,
            typing_context=context.typing_context,
            library=library,
            environment=environment,
            entry_point=entry,
            fndesc=descriptor,
            type_annotation=annotation,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            reload_init=reload,
            referenced_envs=environments,
        )


def _environment(name: str, module: str, constants: list[Any]) -> Environment:
    """Hold the constants that a compiled function needs at run time, such as the errors that it raises.

    Numba would import its module as well, which kernels never look into: their names were resolved as they were
    compiled.
    """
    found = lookup_environment(name)
    if found is None:
        found = Environment(vars(sys.modules[module]) if module in sys.modules else {"__name__": module})
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found
    return found


class _Library(JITCodeLibrary):
    """A library of kept machine code."""

    _shared_module: Any

    def take(self, kept: CachedFunction) -> None:
        self._bitcode = kept.bitcode
        self.enable_object_caching()
        self._set_compiled_object(kept.code)
        self._finalize_final_module()
        self._codegen._engine._defined_symbols |= kept.defined

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
        return self._shared_module


@cache
def _add_runtime() -> None:
    """Let machine code find the functions that count references to arrays; Numba's own start compiles some as well."""
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class KernelCache(FunctionCache):
    """The compiled versions of one function, a file for each signature and CPU.

    Numba's own cache believes whatever it finds, and stops where a file cannot be read or written. Here every such file
    is one that is not there. What tells versions apart is Numba's (`_index_key`).

    Parameters
    ----------
    function : callable
    folder : path or None
        Where kept functions are read.
    reason : str
        Why nothing is kept there; empty if it is.
    """

    def __init__(self, function: Callable, folder: Path | None, reason: str) -> None:
        self._py_func = function  # what `_index_key` reads
        self._folder, self._reason = folder, reason

    @property
    def cache_path(self) -> str | None:
        return None if self._folder is None else str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        if self._folder is not None:
            path = self._path(sig, target_context.codegen())
            try:
                found = pickle.loads(_read(path)).linked(target_context)
            except FileNotFoundError:
                pass
            except Exception as error:  # whatever a strange file makes of a pickle
                log.info("%s: cannot be used (%s); it is compiled anew", path, error)
        if found is None:
            _announce(self._reason)
        else:
            counts["loaded"] += 1
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        is_kept = not (self._reason or data.library.has_dynamic_globals)
        if is_kept:
            try:
                _write(self._path(sig, data.codegen), dumps(CachedFunction.of(data)))
            except OSError as error:
                self._reason, is_kept = f"{self._folder}: {error.strerror}", False
                _warn(self._reason)
        counts["kept" if is_kept else "not kept"] += 1

    def flush(self) -> None:
        if self._folder is not None and not self._reason:
            for path in self._folder.glob(f"{self._name}-*"):
                path.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        function, code = self._py_func, self._py_func.__code__
        name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}"
        return name.replace("<", "").replace(">", "")

    def _path(self, sig: Any, codegen: Any) -> Path:
        assert self._folder is not None
        key = hashlib.sha256(repr(self._index_key(sig, codegen)).encode()).hexdigest()[:20]
        return self._folder / f"{self._name}-{key}"


_DIGEST = hashlib.sha256().digest_size


def _read(path: Path) -> bytes:
    """Read a file that `_write` wrote: a checksum, then the contents.

    Raises
    ------
    OSError, ValueError
        If the file is not there, is a link or another user's, or has changed since.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(file, "rb") as opened:
        found = os.fstat(file)
        if os.name != "nt" and not (stat.S_ISREG(found.st_mode) and found.st_uid in (0, os.geteuid())):
            raise ValueError("it is not a file of this user")
        data = opened.read()
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        raise ValueError("it is damaged")
    return data[_DIGEST:]


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; others that write it at the same time write the same."""
    file, partial = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with open(file, "wb") as opened:
            opened.write(hashlib.sha256(data).digest() + data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


_announced = False


def _announce(reason: str) -> None:
    """Say, once in a process, that it compiles now.

    Where nobody has set up logging, as in a notebook, Python shows warnings alone; so the line is one there.
    """
    global _announced
    if _announced:
        return
    _announced = True
    if reason:
        _warn(reason)
    else:
        level = logging.INFO if log.hasHandlers() else logging.WARNING
        log.log(level, "compiling kernels for this machine, once", extra=ONCE)


def _warn(reason: str) -> None:
    """Say why no kernel is kept. The filter of `neardup_gpu.log` lets the first such line of a process pass."""
    log.warning("compiled kernels cannot be kept: %s, %s; %s", reason, AGAIN, ELSEWHERE, extra=ONCE)
