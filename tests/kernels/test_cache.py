"""The folder of compiled kernels: nobody else writes there, and a file that is not whole is compiled anew."""

import hashlib
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neardup_gpu.kernels import _cache, _cpu, _numba
from neardup_gpu.log import once

AGAIN = ", so every process compiles them again; NEARDUP_CACHE_DIR=DIR keeps them in another folder"
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
as_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to give files away")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder of caches of this test's own, and nothing said yet."""
    os.chmod(tmp_path, 0o700)
    monkeypatch.setenv("NEARDUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_cache, "_announced", False)
    monkeypatch.setattr(once, "lines", set())
    return tmp_path / "cache"


def compiled(monkeypatch, folder, reason=""):
    """A function compiled anew unless the folder holds it; and whether it did."""

    def add(a, b):
        return a + b

    monkeypatch.setattr(_numba, "CACHE", folder)
    monkeypatch.setattr(_numba, "WHY_NOT_KEPT", reason)
    function = _cpu.jit()(add)
    assert function(20, 22) == 42
    return bool(function.original.stats.cache_hits)


# ----------------------------------------------------------------------------------------------------- who writes there


@posix
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_the_folder_is_its_owners_alone(home, umask):
    before = os.umask(umask)
    try:
        folder, reason = _cache.private_folder("name")
    finally:
        os.umask(before)
    assert (folder, reason) == (home / "name", "")
    assert [os.stat(each).st_mode & 0o777 for each in (home, folder)] == [0o700, 0o700]


@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o770, 0o757, 0o722])
@pytest.mark.parametrize("which", ["cache", "cache/name"])
def test_a_folder_that_others_can_write_is_refused(home, mode, which):
    assert _cache.private_folder("name")[0] is not None
    os.chmod(home.parent / which, mode)
    folder, reason = _cache.private_folder("name")
    assert folder is None
    assert reason == f"{home.parent / which} can be written by other users (chmod go-w {home.parent / which} ends that)"


@posix
def test_so_is_one_below_such_a_folder(home):
    os.chmod(home.parent, 0o777)
    folder, reason = _cache.private_folder("name")
    assert folder is None
    assert reason.startswith(f"{home.parent} can be written by other users")
    os.chmod(home.parent, 0o1777)  # as /tmp
    assert _cache.private_folder("name") == (home / "name", "")


@as_root
def test_a_group_of_ones_own_is_nobody_else(home, monkeypatch):
    os.chmod(home.parent, 0o775)
    os.chown(home.parent, 0, 54321)  # a group that has no name
    assert _cache.private_folder("name")[0] is None
    os.chown(home.parent, 0, os.getgid())
    monkeypatch.setattr(_cache, "_has_others", lambda group: False)
    assert _cache.private_folder("name")[0] is not None


@as_root
@pytest.mark.parametrize("which", [".", "cache", "cache/name"])
def test_another_users_folder_is_refused(home, which):
    assert _cache.private_folder("name")[0] is not None
    place = Path(os.path.normpath(home.parent / which))
    os.chown(place, 12345, -1)
    try:
        assert _cache.private_folder("name") == (None, f"{place} belongs to another user")
    finally:
        os.chown(place, 0, -1)


@as_root
def test_also_where_a_link_leads_there(home, tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, -1)
    home.mkdir(mode=0o700)
    (home / "name").symlink_to(tmp_path / "theirs")
    assert _cache.private_folder("name") == (None, f"{tmp_path / 'theirs'} belongs to another user")


@posix
def test_folders_that_cannot_be_made(home, tmp_path, monkeypatch):
    home.write_text("a file")
    assert _cache.private_folder("name") == (None, f"{home} is in the way and is not a folder")
    monkeypatch.setenv("NEARDUP_CACHE_DIR", "/proc/nowhere")
    assert _cache.private_folder("name")[0] is None
    monkeypatch.delenv("NEARDUP_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert _cache.private_folder("name") == (None, "there is no home folder")


@as_root
def test_a_user_namespace_shows_roots_folders_as_nobodys(home, monkeypatch):
    os.chown(home.parent, 65534, -1)
    try:
        assert _cache.private_folder("name") == (None, f"{home.parent} belongs to another user")
        monkeypatch.setattr(_cache, "_outside", lambda: {65534})
        assert _cache.private_folder("name")[0] == home / "name"
        os.chown(home, 65534, -1)  # but its own folders belong to no stranger
        assert _cache.private_folder("name") == (None, f"{home} belongs to another user")
    finally:
        os.chown(home.parent, 0, -1)


# --------------------------------------------------------------------------------------------------- what is kept there


def test_what_was_compiled_is_found_again(home, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "neardup_gpu")
    folder, _ = _cache.private_folder("name")
    assert not compiled(monkeypatch, folder)
    assert caplog.messages == ["compiling kernels for this machine, once"]
    caplog.clear()
    monkeypatch.setattr(_cache, "_announced", False)
    once.lines.clear()
    assert compiled(monkeypatch, folder)
    assert caplog.messages == []
    assert len(list(folder.iterdir())) == 1


def test_other_code_is_another_version(home, monkeypatch):
    folder, _ = _cache.private_folder("name")
    monkeypatch.setattr(_numba, "CACHE", folder)

    def adding(constant):
        def add(a):
            return a + constant

        return _cpu.jit()(add)

    assert [adding(c)(1) for c in (1, 2, 1)] == [2, 3, 2]
    assert len(list(folder.iterdir())) == 2
    assert adding(2)(1.5) == 3.5
    assert len(list(folder.iterdir())) == 3


def test_what_was_loaded_can_be_compiled_into_other_functions(home, monkeypatch):
    """Its bitcode is read then, and not before."""
    folder, _ = _cache.private_folder("name")
    monkeypatch.setattr(_numba, "CACHE", folder)

    def add(a, b):
        return a + b

    assert _cpu.jit()(add)(20, 22) == 42
    loaded = _cpu.jit()(add)
    assert loaded(20, 22) == 42 and loaded.original.stats.cache_hits
    (result,) = loaded.original.overloads.values()
    assert result.library._shared_module is None

    def twice(a):
        return loaded(a, a)

    assert _cpu.jit()(twice)(21) == 42
    assert result.library._shared_module is not None


LOADED = """
import sys
import numpy as np
from neardup_gpu.kernels._cpu import jit, parallel

@jit()
def checked(a):
    if a.sum() > 5:
        raise ValueError("too many", len(a))
    return np.concatenate((a, a))

@parallel()
def square(begin, end, a, found):
    for i in range(begin, end):
        found[i] = a[i] * a[i]

found = np.empty(3, np.int64)
square(3, np.arange(3), found)
print(checked(np.ones(2)), found, bool(checked.original.stats.cache_hits))
try:
    checked(np.ones(7))
except ValueError as error:
    print(error.args)
print("numba.np.arrayobj" in sys.modules)

@jit()
def later(a):
    return checked(a[:1])

print(later(np.ones(3)))
"""


def test_a_process_that_only_loads_imports_nothing_of_what_compiles(home, tmp_path):
    """Errors are raised there all the same, and what is compiled later finds what it needs."""
    script = tmp_path / "loaded.py"
    script.write_text(LOADED)

    def said():
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    values, error = "[1. 1. 1. 1.] [0 1 4]", "('too many', 7)"
    assert said() == [f"{values} False", error, "True", "[1. 1.]"]
    assert said() == [f"{values} True", error, "False", "[1. 1.]"]


def damages(path, data):
    """Each a way in which the file of a compiled function is lost or was never one."""

    def wrong_pickle():
        content = pickle.dumps(("not", "a", "kernel"))
        path.write_bytes(hashlib.sha256(content).digest() + content)

    def folder_in_place():
        path.unlink()
        path.mkdir()

    def link():
        other = path.with_name("other")
        path.rename(other)
        path.symlink_to(other)

    def fifo():
        path.unlink()
        os.mkfifo(path)

    return {
        "empty": lambda: path.write_bytes(b""),
        "cut in the checksum": lambda: path.write_bytes(data[:20]),
        "cut": lambda: path.write_bytes(data[:-1000]),
        "zeros": lambda: path.write_bytes(bytes(len(data))),
        "zeros in the machine code": lambda: path.write_bytes(data[:4096] + bytes(512) + data[4608:]),
        "one bit": lambda: path.write_bytes(data[:5000] + bytes([data[5000] ^ 4]) + data[5001:]),
        "longer": lambda: path.write_bytes(data + b"\0"),
        "no kernel": wrong_pickle,
        "a folder": folder_in_place,
        "a link": link,
        "a FIFO": fifo,
    }


@posix
@pytest.mark.parametrize("damage", damages(None, b"") if os.name != "nt" else [])
def test_a_damaged_file_is_compiled_anew(home, monkeypatch, damage):
    folder, _ = _cache.private_folder("name")
    compiled(monkeypatch, folder)
    (path,) = folder.iterdir()
    damages(path, path.read_bytes())[damage]()
    assert not compiled(monkeypatch, folder)
    assert compiled(monkeypatch, folder) == (damage != "a folder")


@as_root
def test_another_users_file_is_not_read(home, monkeypatch, caplog):
    folder, _ = _cache.private_folder("name")
    compiled(monkeypatch, folder)
    (path,) = folder.iterdir()
    os.chown(path, 12345, -1)
    caplog.set_level(logging.INFO, "neardup_gpu")
    assert not compiled(monkeypatch, folder)
    assert "it is not a file of this user" in caplog.messages[0]
    assert compiled(monkeypatch, folder)


@pytest.mark.parametrize("lost", ["gone", "full"])
def test_what_cannot_be_written_is_not_kept(home, monkeypatch, caplog, lost):
    folder, _ = _cache.private_folder("name")
    if lost == "gone":
        folder.rmdir()
    else:
        monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert not compiled(monkeypatch, folder)
    assert not compiled(monkeypatch, folder)  # said once, not for each kernel
    (said,) = caplog.messages
    assert said.startswith(f"compiled kernels cannot be kept: {folder}: No ") and said.endswith(AGAIN)
    assert lost == "gone" or not any(folder.iterdir())


def test_without_a_folder_it_is_said_why(home, monkeypatch, caplog):
    assert not compiled(monkeypatch, None, "/x belongs to another user")
    assert not compiled(monkeypatch, None, "/x belongs to another user")
    assert caplog.messages == [f"compiled kernels cannot be kept: /x belongs to another user{AGAIN}"]


LIMITED = """
import logging, os
import neardup_gpu.log
from neardup_gpu.kernels import _cache, _cpu, _numba
logging.basicConfig(format="%(message)s", level="WARNING")
_numba.CACHE, _numba.WHY_NOT_KEPT = _cache.private_folder("name")
def compiled(constant):
    def add(a): return a + constant
    assert _cpu.jit()(add)(20) == 20 + constant
"""


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="takes a right from root")
@pytest.mark.parametrize("which", ["read only", "without entry", "parent", "later"])
def test_a_folder_that_this_user_cannot_write_is_named_once(home, which):
    """Without the right to pass over permissions, root is a user as others are."""
    place = home / "name"
    home.mkdir(mode=0o500 if which == "parent" else 0o700)
    if which != "parent":
        place.mkdir(mode={"read only": 0o500, "without entry": 0o600, "later": 0o700}[which])
    later = f"os.chmod({str(place)!r}, 0o500)\n" if which == "later" else ""
    code = f"{LIMITED}{later}compiled(1)\ncompiled(2)\ncompiled(3)\n"
    unprivileged = ["setpriv", "--bounding-set", "-dac_override", sys.executable, "-c", code]
    done = subprocess.run(unprivileged, capture_output=True, text=True, check=True)
    (said,) = done.stderr.splitlines()
    assert said.startswith("compiled kernels cannot be kept: ") and said.endswith(AGAIN) and str(home) in said


READ = """
import neardup_gpu.log
from neardup_gpu.kernels import _cache, _cpu, _numba
_numba.CACHE, _numba.WHY_NOT_KEPT = _cache.private_folder("name")
def compiled(constant):
    def add(a): return a + constant
    assert _cpu.jit()(add)(20) == 20 + constant
"""


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="takes a right from root")
def test_a_folder_that_cannot_be_written_is_read(home):
    """Nobody has set up logging, so Python prints warnings alone."""

    def said(code, *before):
        command = [*before, sys.executable, "-c", f"{READ}{code}\nprint(sorted(_cache.counts.items()))"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip(), done.stderr

    announced = "compiling kernels for this machine, once\n"
    assert said("compiled(1); compiled(2)") == ("[('kept', 2)]", announced)
    os.chmod(home / "name", 0o500)
    held = sorted((home / "name").iterdir())
    unprivileged = ("setpriv", "--bounding-set", "-dac_override")
    assert said("compiled(1); compiled(2)", *unprivileged) == ("[('loaded', 2)]", "")
    line = f"compiled kernels cannot be kept: {home / 'name'} cannot be written{AGAIN}\n"
    assert said("compiled(1); compiled(3); compiled(4)", *unprivileged) == ("[('loaded', 1), ('not kept', 2)]", line)
    assert sorted((home / "name").iterdir()) == held


def test_another_cpu_is_announced_too(home):
    """The folder is there and not empty, but what is there is of no use."""
    code = """
import logging
logging.basicConfig(level=logging.INFO)
from neardup_gpu.log import once
from neardup_gpu.kernels import _cpu
def add(a, b):
    return a + b
assert _cpu.jit()(add)(20, 22) == 42
"""

    def said(**environment):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
        return done.stderr

    first, again, other, other_again = said(), said(), said(NUMBA_CPU_NAME="generic"), said(NUMBA_CPU_NAME="generic")
    assert (first, other) == ("INFO:neardup_gpu:compiling kernels for this machine, once\n",) * 2
    assert (again, other_again) == ("", "")


WATCHED = """
import numba.core.event as events
import neardup_gpu

class Compiled(events.Listener):
    def on_start(self, event): ...
    def on_end(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("neardup_gpu"):
            print(function.__module__, function.__name__)

neardup_gpu.dedup({"text": ["a rose is a rose is a rose"]}, engine="cpu", method="minhash")  # imports all
events.register("numba:compile", Compiled())
texts = [" ".join(f"w{page // 3 * 7 + i}" for i in range(30)) + f" {page}" for page in range(300)]
for method in ("exact", "minhash", "bottomk", "simhash"):
    for cluster in ("greedy", "components"):
        options = {} if method == "simhash" else {"threshold": 0.5, "max_partners": 1}
        recipe = neardup_gpu.Recipe(method=method, cluster=cluster, **options)
        neardup_gpu.dedup({"text": texts}, recipe=recipe, engine="cpu")
"""


def test_a_second_process_compiles_nothing():
    """A kernel that Numba cannot keep, as one that asks for the number of threads, would be compiled in each."""
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", WATCHED], check=True, capture_output=True, text=True).stdout
    assert said == ""
