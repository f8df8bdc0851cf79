"""Writers and readers of an index where locks work, where they fail, in forked processes, and when files are cut."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import lone_writer
import numpy as np
import pytest
from growing import recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import locking, manifest as manifests, writer as writers
from neardup_gpu.store import locks

posix = pytest.mark.skipif(os.name == "nt", reason="processes and locks of POSIX")
LIVE = {"a": "to be or not to be", "b": "or not to be that", "c": "all else is silence"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        index.add(table(list(LIVE), list(LIVE.values())), id_column="id")
    return tmp_path / "x"


# ---------------------------------------------------------------------------------------------- file systems without


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A library that makes locks and links fail."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs gcc, on Linux")
    made = tmp_path_factory.mktemp("library") / "no_locks.so"
    source = Path(lone_writer.__file__).with_name("no_locks.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def environment(library: Path, *names: str) -> dict[str, str]:
    paths = [Path(nd.__file__).parent.parent, Path(lone_writer.__file__).parent]
    return {
        **os.environ,
        "LD_PRELOAD": f"{library}",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        **dict.fromkeys(names, "1"),
    }


WITHOUT = [("NO_LOCKS",), ("NO_LOCKS", "NO_LINKS"), ("NO_LINKS",)]


@posix
@pytest.mark.parametrize("names", WITHOUT, ids="+".join)
def test_two_writers_lose_nothing_that_was_acknowledged(names, library, folder) -> None:
    command = [sys.executable, lone_writer.__file__, folder]
    how = {"env": environment(library, *names), "stdout": -1, "stderr": -1, "text": True}
    writers_ = [subprocess.Popen([*command, name, "12"], **how) for name in "pq"]
    said = [each.communicate(timeout=240) for each in writers_]
    assert [each.returncode for each in writers_] == [0, 0], said
    added = [line.split()[1] for out, _ in said for line in out.splitlines() if line.startswith("added")]
    assert sorted(added) == sorted(f"{name}{i}" for name in "pq" for i in range(12))
    with nd.Index.open(folder, engine="cpu") as index:
        index.check()
        live = {**LIVE, **{each: f"{each[0]} {each[1:]} to be or not" for each in added}}
        same_as_dedup_in_any_order(index, live)
    assert not list(folder.glob("writer.lease*"))


def same_as_dedup_in_any_order(index: nd.Index, live: dict[str, str]) -> None:
    ids = index.decide().documents["id"].to_pylist()
    assert set(ids) == set(live)
    same_as_dedup(index, {id: live[id] for id in ids})


@posix
def test_a_killed_writer_with_a_lease_is_followed(library, folder) -> None:
    command = [sys.executable, lone_writer.__file__, folder]
    how = {"env": environment(library, "NO_LOCKS"), "stdout": -1, "text": True}
    with subprocess.Popen([*command, "k", "9", "60"], **how) as killed:
        assert killed.stdout is not None and killed.stdout.readline() == "added k0\n"
        killed.kill()
    assert (folder / "writer.lease").exists()
    ended = subprocess.run([*command, "n", "2"], check=True, timeout=120, **how)
    assert "added n1" in ended.stdout
    with nd.Index.open(folder, engine="cpu") as index:
        assert index.check()["documents"] == 6


@pytest.fixture
def no_locks(monkeypatch):
    """No locks in this process, as on Windows."""
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "LEASE", 2.0)


def test_a_second_writer_is_refused_at_its_start(no_locks, folder) -> None:
    with nd.Index.open(folder, engine="cpu") as first, nd.Index.open(folder, engine="cpu") as second:
        first.remove(["a"])
        before = sorted(folder.rglob("*"))
        with pytest.raises(nd.OutputError, match=r"is being written by process \d+ on .*; wait until it has ended"):
            second.add(table(["d"], ["the rest"]), id_column="id")
        assert sorted(folder.rglob("*")) == before
        first.close()
        second.refresh()
        assert second.remove(["b"]) == 1


def test_a_writer_that_lost_its_lease_commits_nothing(no_locks, folder) -> None:
    with nd.Index.open(folder, engine="cpu") as first, nd.Index.open(folder, engine="cpu") as second:
        first.remove(["a"])
        (folder / "writer.lease").unlink()  # as if it had been held up for longer than the lease
        second.remove(["b"])
        with pytest.raises(nd.OutputError, match="lost the right to write"):
            first.remove(["c"])
        with pytest.raises(nd.OutputError, match="another process has written to the index"):
            first.compact()
        assert len(second) == 1
        second.check()
        same_as_dedup(second, {"c": LIVE["c"]})


def test_a_lease_that_nobody_renews_is_taken_over(no_locks, folder) -> None:
    (folder / "writer.lease").write_text('{"who": "process 1 on another machine", "machine": ["other"]}')
    with nd.Index.open(folder, engine="cpu") as index:
        with pytest.raises(nd.OutputError, match=r"written by process 1 on another machine; .* try again after 2 s"):
            index.remove(["a"])
        old = time.time() - 3
        os.utime(folder / "writer.lease", (old, old))
        assert index.remove(["a"]) == 1
    assert not (folder / "writer.lease").exists()


def test_where_no_file_can_be_made_alone_nothing_is_written(no_locks, folder, monkeypatch) -> None:
    monkeypatch.setattr(locks.FolderLease, "_create", _refused)
    with nd.Index.open(folder, engine="cpu") as index:
        with pytest.raises(nd.OutputError, match=r"cannot be locked here, and writer.lease cannot be made"):
            index.remove(["a"])
        assert len(index) == 3


def _refused(*_: object) -> bool:
    raise PermissionError(1, "Operation not permitted")


def test_old_files_go_in_time_where_nobody_knows_what_is_read(no_locks, folder, monkeypatch) -> None:
    monkeypatch.setattr(writers, "CLEANED_EVERY", 0.0)
    with nd.Index.open(folder, engine="cpu") as writer, nd.Index.open(folder, engine="cpu") as reader:
        writer.compact()
        writer.remove(["a"])
        assert len(list(folder.glob("manifest.*"))) > 1
        assert reader.query(LIVE["a"])["id"].to_pylist()[0] == "a"
        monkeypatch.setattr(locking, "KEPT", -1.0)
        writer.remove(["b"])
        assert [each.name for each in folder.glob("manifest.*")] == [f"manifest.{manifests.newest(folder):08}"]
        with pytest.raises(nd.InputError, match="may have been removed; refresh it"):
            reader.query(LIVE["a"])
        assert reader.refresh().query(LIVE["c"])["id"].to_pylist() == ["c"]


def test_an_empty_manifest_is_a_commit_that_was_not_made(folder) -> None:
    number = manifests.newest(folder)
    (folder / f"manifest.{number + 1:08}").touch()
    with nd.Index.open(folder, engine="cpu") as index:
        assert len(index) == 3 and index.info()["commit"] == number
        index.remove(["a"])
        assert index.info()["commit"] == number + 2
    assert not (folder / f"manifest.{number + 1:08}").exists()
    (folder / f"manifest.{number + 2:08}").write_bytes(b"")
    with pytest.raises(nd.DamagedError, match="has changed since it was written"):
        nd.Index.open(folder)


# -------------------------------------------------------------------------------------------------------- forks


def in_a_child(act) -> str:
    """What a forked process raises, or "nothing"."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            os.write(theirs, b"nothing")
        except BaseException as error:
            os.write(theirs, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        said = answer.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


@posix
def test_a_forked_process_opens_the_index_again(folder) -> None:
    with nd.Index.open(folder, engine="cpu") as index:
        index.remove(["a"])
        uses = [
            lambda: index.query("to be"),
            lambda: index.add(table(["d"], ["x"]), id_column="id"),
            lambda: index.remove(["b"]),
            lambda: index.decide(),
            lambda: index.compact(),
            lambda: index.check(),
            lambda: index.info(),
            lambda: index.refresh(),
        ]
        for use in uses:
            assert "ParameterError" in (said := in_a_child(use)) and "open it again" in said, said
        assert in_a_child(index.close) == "nothing"  # it gives back nothing of the parent's
        with nd.Index.open(folder, engine="cpu") as other, pytest.raises(nd.OutputError, match="is being written by"):
            other.remove(["b"])
        assert index.remove(["b"]) == 1


@posix
def test_a_child_keeps_no_lock_of_its_parent(folder) -> None:
    index = nd.Index.open(folder, engine="cpu")
    index.remove(["a"])
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        index.close()
        with nd.Index.open(folder, engine="cpu") as other:
            assert other.remove(["b"]) == 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ------------------------------------------------------------------------------------------------- files that are cut


@posix
@pytest.mark.parametrize("method", ["minhash", "exact"])
def test_a_file_that_is_cut_while_it_is_open(method, tmp_path) -> None:
    with nd.Index.create(tmp_path / "x", method=method, threshold=0.5, shingle_size=2, engine="cpu") as index:
        index.add(table(list(LIVE), list(LIVE.values())), id_column="id")
        uses = [lambda: index.query("to be or not"), lambda: index.remove(["a"]), index.decide, index.compact]
        for path in sorted((tmp_path / "x" / "segments").iterdir()):
            size = path.stat().st_size
            whole = path.read_bytes()
            os.truncate(path, size // 2)
            for use in uses:
                with pytest.raises(nd.DamagedError, match="was cut short"):
                    use()
            with open(path, "r+b") as file:
                file.write(whole)
        assert index.query("to be or not")["id"].to_pylist()


@posix
def test_fingerprints_that_are_cut_while_they_are_open(tmp_path) -> None:
    values = np.random.default_rng(1).integers(0, 2**64, 1000, np.uint64)
    nd.HammingIndex(values, 3).save(tmp_path / "x.index")
    index = nd.HammingIndex.load(tmp_path / "x.index")
    os.truncate(tmp_path / "x.index", 4096)
    with pytest.raises(nd.DamagedError, match="was cut short"):
        index.query(values)
