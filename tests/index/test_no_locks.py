"""An index where files cannot be locked or linked, in forked processes, and whose files are cut short meanwhile."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from growing import recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import locking, writer as writers
from neardup_gpu.index.manifest import commit, newest, numbers
from neardup_gpu.store import locks
from neardup_gpu.store.locks import FolderLease

SUPPORT = Path(__file__).parent.parent / "support"
LIVE = {f"d{number}": f"text of number {number} and no other" for number in range(6)}

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def folder(tmp_path) -> Path:
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        index.add(table(list(LIVE), list(LIVE.values())), id_column="id")
    return tmp_path / "x"


def opened(folder: Path) -> nd.Index:
    return nd.Index.open(folder, engine=nd.Engine(backend="cpu", threads=1))


def add(index: nd.Index, id: str) -> None:
    index.add(table([id], [f"text of {id}"]), id_column="id")


def refused(folder: Path, says: str) -> None:
    with opened(folder) as index, pytest.raises(nd.errors.OutputError, match=says) as caught:
        add(index, "late")
    assert "\n" not in str(caught.value)


# --------------------------------------------------------------------------------------------------- where fcntl fails


@pytest.fixture
def without(monkeypatch):
    """This process has no locks, as on Windows."""
    monkeypatch.setattr(locks, "fcntl", None)


def test_a_second_writer_is_refused_at_its_start(folder, without) -> None:
    with opened(folder) as index:
        add(index, "a")
        refused(folder, r"is being written by process \d+ on .*; wait until it has ended; if that was killed")
        add(index, "b")
    with opened(folder) as index:
        add(index, "c")
        same_as_dedup(index, LIVE | {id: f"text of {id}" for id in "abc"})
    assert not list(folder.glob("writer.lease*"))


def test_who_lost_the_lease_is_refused_and_removes_nothing(folder, without) -> None:
    with opened(folder) as late, opened(folder) as other:
        add(late, "a")
        (folder / "writer.lease").unlink()  # as when it was found stale
        add(other, "b")
        there = sorted(folder.rglob("*"))
        for act in (lambda: add(late, "c"), late.compact, lambda: late.remove(["d0"])):
            with pytest.raises(nd.errors.OutputError, match=r"lost the right to write|has written to the index"):
                act()
        assert sorted(folder.rglob("*")) == there
        late.close()
        add(other, "c")
        same_as_dedup(other, LIVE | {id: f"text of {id}" for id in "abc"})


@pytest.mark.parametrize("how", ["at the commit", "after the other's second commit"])
def test_a_writer_that_stops_just_before_its_commit(how, folder, without, monkeypatch) -> None:
    """It has looked at its lease, and is held up; another one takes over meanwhile, and removes what is not named."""
    monkeypatch.setattr(locking, "KEPT", -1.0)
    monkeypatch.setattr(writers, "CLEANED_EVERY", 0.0)

    def held_up(*arguments: object) -> None:
        monkeypatch.setattr(writers, "commit", commit)
        (folder / "writer.lease").unlink()
        with opened(folder) as other:
            add(other, "b")
            if how != "at the commit":
                other.compact()
        commit(*arguments)

    with opened(folder) as late:
        add(late, "a")
        monkeypatch.setattr(writers, "commit", held_up)
        with pytest.raises(nd.errors.OutputError, match="another process has written to the index"):
            add(late, "c")
    with opened(folder) as index:
        index.check()
        same_as_dedup(index, LIVE | {id: f"text of {id}" for id in "ab"})


def test_a_machine_without_locks_and_one_with_them(folder, monkeypatch) -> None:
    with opened(folder) as locked, monkeypatch.context() as patch:
        add(locked, "a")
        patch.setattr(locks, "fcntl", None)
        with opened(folder) as leased:
            add(leased, "b")
            patch.undo()
            for act in (lambda: add(locked, "c"), locked.compact):
                with pytest.raises(nd.errors.OutputError, match=r"cannot lock files here|has written to the index"):
                    act()
            locked.close()
            refused(folder, "is being written by process")
            add(leased, "c")
            same_as_dedup(leased, LIVE | {id: f"text of {id}" for id in "abc"})


def test_old_files_are_removed_after_a_while(folder, without, monkeypatch) -> None:
    monkeypatch.setattr(writers, "CLEANED_EVERY", 0.0)
    with opened(folder) as reader, opened(folder) as index:
        for id in "abc":
            add(index, id)
        index.compact()
        assert len(reader) == len(LIVE) and reader.check()["documents"] == len(LIVE)
        same_as_dedup(reader, LIVE)
        monkeypatch.setattr(locking, "KEPT", -1.0)
        index.remove(["a"])
        assert numbers(folder) == [newest(folder)]
        files = {path.relative_to(folder).as_posix() for path in folder.glob("*s/*")}
        assert files | {path.relative_to(folder).as_posix() for path in folder.glob("deleted/*")} == (
            index._opened.manifest.files()
        )
        with pytest.raises(nd.errors.InputError, match="its files may have been removed; refresh it"):
            reader.query("text")
        assert len(reader.refresh()) == len(LIVE) + 2


def test_a_folder_in_which_no_lease_can_be_made(folder, without, monkeypatch) -> None:
    opens = os.open

    def no_new_ones(path, flags, *arguments, **options):
        if flags & os.O_EXCL and Path(path).name == "writer.lease":
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opens(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", no_new_ones)
    refused(folder, r"files cannot be locked here, and writer.lease cannot be made \(Operation not supported\)")


# -------------------------------------------------------------------------------------------------------------- leases


def test_one_of_two_that_find_a_stale_lease_gets_it(tmp_path, monkeypatch) -> None:
    """The second one looked before the first one took it, and removes it after that: it has to put it back."""
    path = tmp_path / "lease"
    path.write_text("half written")
    os.utime(path, (time.time() - 1000,) * 2)
    stale, first, second = locks._read_lease(path), FolderLease(path), FolderLease(path)
    assert first.take() is None
    assert second._is_stale(stale)
    locks._remove(path, stale, second._aside)
    assert first.holds() and "process" in second.take()
    first.give_back()
    assert second.take() is None and not first.holds()
    second.give_back()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ended", [True, False])
def test_a_lease_that_a_killed_process_left_aside_is_removed(ended, tmp_path) -> None:
    """It was killed between renaming the lease and removing it. The lease of a living owner is not removed."""
    path, owner, other = tmp_path / "lease", FolderLease(tmp_path / "lease"), FolderLease(tmp_path / "lease")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    fields = json.loads(owner._content) | ({"process": child.pid} if ended else {})
    aside = tmp_path / "lease.0123456789abcdef"
    aside.write_text(json.dumps(fields))
    assert other.take() is None
    assert aside.exists() is not ended and path.exists()
    other.give_back()
    assert os.listdir(tmp_path) == ([] if ended else [aside.name])


def test_a_lease_is_renewed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "LEASE", 0.4)
    lease, other = FolderLease(tmp_path / "lease"), FolderLease(tmp_path / "lease")
    assert lease.take() is None
    for _ in range(10):
        time.sleep(0.1)
        assert other.take() is not None
    lease.give_back()
    assert other.take() is None
    other.give_back()


# -------------------------------------------------------------------------------------------------- without hard links


def test_a_commit_that_was_begun_and_not_made(folder, monkeypatch) -> None:
    """Where there are neither links nor renames that do not replace, its name is first taken by an empty file."""
    number = newest(folder) + 1
    (folder / f"manifest.{number:08}").touch()
    with opened(folder) as index:
        same_as_dedup(index, LIVE)
        add(index, "a")
        assert newest(folder) == number + 1 and numbers(folder) == [number + 1]
        index.check()
        (folder / f"manifest.{number + 1:08}").write_bytes(b"")
    with pytest.raises(nd.errors.DamagedError):
        opened(folder)


# ------------------------------------------------------------------------------------- processes, and what they preload


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    """A library that makes flock and link fail."""
    if shutil.which("gcc") is None or not sys.platform.startswith("linux"):
        pytest.skip("needs gcc and Linux")
    made = tmp_path_factory.mktemp("library") / "no_locks.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, SUPPORT / "no_locks.c", "-ldl"], check=True)
    return made


WRITE = """
import sys, time, neardup_gpu as nd
folder, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = 0
until = time.time() + 120
while done < number and time.time() < until:
    try:
        with nd.Index.open(folder, engine=nd.Engine(backend="cpu", threads=1)) as index:
            for _ in range(2):
                if done < number:
                    index.add({"id": [f"{name}{done}"], "text": [f"text {done} of {name}"]}, id_column="id")
                    print(f"{name}{done}", flush=True)
                    done += 1
            if done % 6 == 0:
                index.compact()
    except nd.errors.OutputError as error:
        assert chr(10) not in str(error)
        time.sleep(0.02)
if name == "k":
    time.sleep(600)
"""
NO_LOCKS = {"NO_FLOCK": str(errno.ENOLCK)}
FILE_SYSTEMS = {
    "no locks": NO_LOCKS,
    "no locks or links": {"NO_FLOCK": str(errno.EOPNOTSUPP), "NO_LINK": str(errno.EPERM)},
    "no locks, links or renames": {
        **NO_LOCKS,
        "NO_LINK": str(errno.EPERM),
        "NO_RENAME": str(errno.EINVAL),
    },
}


@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_writers_at_once_one_of_which_is_killed(system, folder, library) -> None:
    """All that was acknowledged is there, and the index is whole, while it is read all the time."""
    environment = {
        **os.environ,
        **FILE_SYSTEMS[system],
        "LD_PRELOAD": str(library),
        "PYTHONPATH": str(Path(nd.__file__).parent.parent),
    }

    def start(name: str, number: int) -> subprocess.Popen:
        command = [sys.executable, "-c", WRITE, folder, name, str(number)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    killed = start("k", 3)
    said = [killed.stdout.readline().strip() for _ in range(3)]
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    both = [start("a", 12), start("b", 12)]
    while any(each.poll() is None for each in both):
        with opened(folder) as reader:
            reader.query("text 0 of a")
            reader.check()
        time.sleep(0.1)
    for each in both:
        out, err = each.communicate()
        assert each.returncode == 0, err
        said += out.split()
    assert len(said) == 27
    with opened(folder) as index:
        index.check()
        texts = LIVE | {id: f"text {id[1:]} of {id[0]}" for id in said}
        order = index.decide().documents["id"].to_pylist()  # the writers took turns
        assert sorted(order) == sorted(texts)
        same_as_dedup(index, {id: texts[id] for id in order})
    assert not list(folder.glob("writer.lease*"))


# --------------------------------------------------------------------------------------------------------------- forks


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("fcntl", [True, False])
def test_a_forked_child(fcntl, folder, monkeypatch) -> None:
    if not fcntl:
        monkeypatch.setattr(locks, "fcntl", None)
    index = opened(folder)
    add(index, "a")
    ends, asks = os.pipe()
    says, tells = os.pipe()
    child = os.fork()
    if child == 0:
        found = []
        try:
            os.close(asks)
            for act in (len, nd.Index.refresh, nd.Index.check, nd.Index.info, nd.Index.compact, nd.Index.decide):
                try:
                    act(index)
                    found.append(f"{act} was not refused")
                except nd.errors.ParameterError as error:
                    found += [] if "open the index again in this process" in str(error) else [str(error)]
            try:
                index.query("text")
                found.append("a query was not refused")
            except nd.errors.ParameterError:
                pass
            index.close()
            os.write(tells, "; ".join(found).encode() or b"fine")
            os.read(ends, 1)
        finally:
            os._exit(0)
    assert os.read(says, 10_000) == b"fine"
    refused(folder, "is being written by process")  # the child's `close` took nothing away
    add(index, "b")
    index.close()
    with opened(folder) as other:
        add(other, "c")
        same_as_dedup(other, LIVE | {id: f"text of {id}" for id in "abc"})
        assert fcntl is False or numbers(folder) == [newest(folder)]
    os.close(asks)
    os.waitpid(child, 0)


# --------------------------------------------------------------------------------------------- files that are cut short

CUT = """
import sys, os, glob, neardup_gpu as nd
from neardup_gpu import Index
folder, act = sys.argv[1], sys.argv[2]
if act == "hamming":
    index = nd.hamming.HammingIndex.load(folder, check=True)
    files = [folder]
else:
    index = Index.open(folder, engine="cpu")
    index.query("text of number 1 and no other"); index.decide()
    files = glob.glob(folder + "/segments/*")
if act == "writes":
    index.remove(["d0"])
for file in files:
    os.truncate(file, 4096)
try:
    if act == "query": index.query("text of number 1 and no other")
    if act == "decide": index.decide()
    if act == "writes": index.add({"id": ["new"], "text": ["text of number 1 and no other"]}, id_column="id")
    if act == "compact": index.compact(); index.remove(["d1"]); index.compact()
    if act == "hamming": index.query(7)
except nd.errors.DamagedError as error:
    print(error)
"""


@pytest.mark.parametrize("act", ["query", "decide", "writes", "compact", "hamming"])
def test_a_file_that_is_cut_short_while_it_is_open(act, folder, tmp_path) -> None:
    if act == "hamming":
        folder = tmp_path / "h"
        nd.hamming.HammingIndex(list(range(5000)), 1).save(folder)
    else:
        with opened(folder) as index:
            add(index, "more")
    environment = {**os.environ, "PYTHONPATH": str(Path(nd.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", CUT, folder, act], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "was cut short; " in done.stdout and done.stdout.count("\n") == 1
