"""Nothing is lost: whatever is there, whoever else writes, and wherever a run is killed."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Recipe, SimHash, dedup
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.errors import OutputError
from neardup_gpu.sketches import Frequencies, sketch
from neardup_gpu.store import disk, locks, outputs
from neardup_gpu.store.artefacts import REPORT
from neardup_gpu.store.outputs import new_file, new_files, new_folder
from neardup_gpu.store.parquet import write_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed")

RENAMES = ["exchange", "plain"]


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk, where processes are killed but no machine."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(params=RENAMES)
def renames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """File systems that can exchange two names, and those that only know rename, mkdir and link."""
    if request.param == "plain":
        monkeypatch.setattr(disk, "_SYSTEM_RENAME", None)
    elif disk._SYSTEM_RENAME is None:
        pytest.skip("this system exchanges no names")
    return request.param


def put_result(folder: Path, text: str) -> None:
    """What is recognised as a result, and says `text`."""
    (folder / "kept").mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": [text]}).replace_schema_metadata({METADATA_KEY: b"{}"})
    pq.write_table(table, folder / "documents.parquet")
    (folder / "kept" / "part.txt").write_text(text)
    files = ["documents.parquet", "kept/part.txt"]
    report = {"text": text, "files": {name: (folder / name).stat().st_size for name in files}}
    (folder / REPORT).write_text(json.dumps(report))


def put_table(file: Path, text: str) -> None:
    columns = pa.table({"id_a": [text], "id_b": [text], "distance": [1]})
    write_table(columns.replace_schema_metadata({METADATA_KEY: b"{}"}), file)


def text_of(path: Path) -> str | None:
    if path.is_dir():
        return json.loads((path / REPORT).read_text())["text"]
    return pq.read_table(path)["id_a"][0].as_py() if path.exists() else None


def make_folder(path: Path, text: str, overwrite: bool = True) -> None:
    with new_folder(path, overwrite) as folder:
        put_result(folder, text)


def make_files(paths: list[Path], text: str, overwrite: bool = True) -> None:
    with new_files(paths, overwrite) as files:
        for file in files:
            put_table(file, text)


def forked(run: Callable[[], object]) -> int:
    """Run in a process of its own; its id. Status 0 when it ends well, 2 after an OutputError, 70 else."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        run()
        status = 0
    except OutputError as error:
        os.write(2, f"{error}\n".encode())
        status = 2
    finally:
        os._exit(status)


def attempted(run: Callable[[], object]) -> int:
    """Run here; the status that `forked` would end with."""
    try:
        run()
    except OutputError:
        return 2
    return 0


def status_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ------------------------------------------------------------------------------------------------------ while it runs


@pytest.mark.parametrize("what", ["file", "folder", "empty folder", "link"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_during_a_run_is_untouched(tmp_path: Path, renames: str, what: str, overwrite: bool) -> None:
    out = tmp_path / "out"
    with pytest.raises(OutputError, match=r"out: .*; the result is in .*out-1$"), new_folder(out, overwrite) as folder:
        put_result(folder, "new")
        if what == "file":
            out.write_text("thesis")
        elif what == "link":
            out.symlink_to("elsewhere")
        else:
            out.mkdir()
            if what == "folder" or overwrite:
                (out / "thesis.txt").write_text("thesis")
    assert sorted(os.listdir(tmp_path)) == ["out", "out-1"]
    assert text_of(tmp_path / "out-1") == "new"
    if out.is_symlink():
        assert os.readlink(out) == "elsewhere"
    elif out.is_file():
        assert out.read_text() == "thesis"
    elif what == "folder" or overwrite:
        assert (out / "thesis.txt").read_text() == "thesis"
    else:
        assert os.listdir(out) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_appears_during_a_run_is_untouched(tmp_path: Path, renames: str, overwrite: bool) -> None:
    path = tmp_path / "s.parquet"
    (tmp_path / "s-1.parquet").write_text("taken as well")
    with pytest.raises(OutputError, match=r"s\.parquet: .*s-2\.parquet$"), new_file(path, overwrite) as file:
        put_table(file, "new")
        path.write_text("thesis")
    assert path.read_text() == "thesis"
    assert (tmp_path / "s-1.parquet").read_text() == "taken as well"
    assert text_of(tmp_path / "s-2.parquet") == "new"
    assert len(os.listdir(tmp_path)) == 3


def test_what_is_put_into_an_earlier_result_during_a_run_is_untouched(tmp_path: Path, renames: str) -> None:
    out = tmp_path / "out"
    put_result(out, "old")
    with pytest.raises(OutputError, match=r"thesis\.txt.*; the result is in .*out-1"), new_folder(out, True) as folder:
        put_result(folder, "new")
        (out / "kept" / "thesis.txt").write_text("thesis")
    assert text_of(out) == "old" and text_of(tmp_path / "out-1") == "new"
    assert (out / "kept" / "thesis.txt").read_text() == "thesis"
    assert sorted(os.listdir(tmp_path)) == ["out", "out-1"]


def test_an_empty_folder_that_was_there_is_taken(tmp_path: Path, renames: str) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    make_folder(out, "new", overwrite=False)
    assert text_of(out) == "new" and os.listdir(tmp_path) == ["out"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_a_private_file_stays_private(tmp_path: Path, renames: str) -> None:
    path = tmp_path / "p.parquet"
    make_files([path], "old")
    path.chmod(0o600)
    make_files([path], "new")
    assert text_of(path) == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600


# -------------------------------------------------------------------------------------------------------- two processes


@pytest.mark.parametrize("kind", ["folder", "files"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_runs_to_one_name_one_wins(
    tmp_path: Path, kind: str, overwrite: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both begin at once, fifteen times: one result is there, the other run says why it is not its."""
    for number in range(15):
        paths = [tmp_path / f"out{number}.parquet", tmp_path / f"out{number}.frequencies.parquet"]
        begin = time.monotonic() + 0.02

        def run(text: str) -> None:
            while time.monotonic() < begin:  # noqa: B023 (called before the loop goes on)
                pass
            if kind == "folder":
                make_folder(paths[0], text, overwrite)  # noqa: B023
            else:
                make_files(paths, text, overwrite)  # noqa: B023

        pids = {text: forked(lambda text=text: run(text)) for text in ("a", "b")}  # type: ignore[misc]
        statuses = {text: status_of(pid) for text, pid in pids.items()}
        said = capfd.readouterr().err.splitlines()
        winners = [text for text, status in statuses.items() if status == 0]
        assert set(statuses.values()) <= {0, 2} and winners
        assert len(said) == 2 - len(winners)
        if not overwrite:
            assert len(winners) == 1
        assert text_of(paths[0]) in winners
        if kind == "files":
            assert text_of(paths[1]) == text_of(paths[0])
    assert len(os.listdir(tmp_path)) == (15 if kind == "folder" else 30)


def test_the_second_run_knows_before_it_works(tmp_path: Path) -> None:
    ready, done = os.pipe(), os.pipe()

    def first() -> None:
        with new_folder(tmp_path / "out") as folder:
            put_result(folder, "first")
            os.write(ready[1], b"x")
            os.read(done[0], 1)

    pid = forked(first)
    os.read(ready[0], 1)
    try:
        with (
            pytest.raises(OutputError, match=rf"out: is being written by process {pid} on "),
            new_folder(tmp_path / "out"),
        ):
            pytest.fail("two runs work for one name")
        make_folder(tmp_path / "other", "second")
    finally:
        os.write(done[1], b"x")
    assert status_of(pid) == 0
    assert text_of(tmp_path / "out") == "first"
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]


# --------------------------------------------------------------------------------------------------------------- killed

STEPS = ("mkdir", "rename", "link", "unlink", "rmdir", "replace", "open")


def kill_at(step: int) -> None:
    """From now on the system calls that change names are counted, and before the one of this number the process
    dies."""
    counted = [0]

    def counting(call: Callable[..., object]) -> Callable[..., object]:
        def counted_call(*arguments: object, **options: object) -> object:
            if counted[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            counted[0] += 1
            return call(*arguments, **options)

        return counted_call

    for name in STEPS:
        setattr(os, name, counting(getattr(os, name)))
    if disk._SYSTEM_RENAME is not None:
        disk._SYSTEM_RENAME = counting(disk._SYSTEM_RENAME)  # type: ignore[assignment]


def killed_homes(tmp_path: Path, prepare: Callable[[Path], None], run: Callable[[Path], None]) -> Iterator[Path]:
    """Folders in which a run was killed before its first step, its second, ... until one lives to its end."""
    for step in range(500):
        home = tmp_path / str(step)
        home.mkdir()
        prepare(home)

        def dies(home: Path = home, step: int = step) -> None:
            kill_at(step)
            run(home)

        status = status_of(forked(dies))
        if status == 0:
            assert step > 10
            return
        assert status == -signal.SIGKILL
        yield home
    pytest.fail("the run never ends")


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("earlier", [None, "old"])
def test_a_run_may_be_killed_anywhere(tmp_path: Path, renames: str, earlier: str | None) -> None:
    """A name leads to a whole result, old or new; the next run finds nothing in its way, and leaves nothing."""
    seen = set()
    prepare = (lambda home: put_result(home / "out", "old")) if earlier else lambda home: None
    for home in killed_homes(tmp_path, prepare, lambda home: make_folder(home / "out", "new", earlier is not None)):
        out = home / "out"
        seen.add(text_of(out) if out.exists() and os.listdir(out) else None)
        if earlier and renames == "exchange":
            assert text_of(out) in ("old", "new")
        status = attempted(lambda out=out: make_folder(out, "again", overwrite=False))  # type: ignore[misc]
        if earlier is None and status == 0:
            assert text_of(out) == "again"
        else:
            assert status == 2 and text_of(out) in (earlier, "new")
        make_folder(out, "last")
        assert text_of(out) == "last" and os.listdir(home) == ["out"]
    assert {earlier, "new"} <= seen <= {None, earlier, "new"}


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("earlier", [None, "old"])
def test_two_files_come_together_wherever_the_run_is_killed(tmp_path: Path, renames: str, earlier: str | None) -> None:
    names = ("s.parquet", "s.frequencies.parquet")
    seen = set()

    def prepare(home: Path) -> None:
        if earlier:
            make_files([home / name for name in names], "old")

    for home in killed_homes(tmp_path, prepare, lambda home: make_files([home / name for name in names], "new")):
        files = [home / name for name in names]
        seen.add(tuple(map(text_of, files)))
        status = attempted(lambda files=files: make_files(files, "again", overwrite=False))  # type: ignore[misc]
        assert text_of(files[0]) == text_of(files[1])
        assert text_of(files[0]) in (["again", "new"] if earlier is None else ["old", "new"])
        assert status == (0 if text_of(files[0]) == "again" else 2)
        make_files(files, "last")
        assert list(map(text_of, files)) == ["last", "last"] and len(os.listdir(home)) == 2
    assert {(earlier, earlier), (earlier, "new"), ("new", "new")} <= seen  # it was killed between the two as well
    assert ("new", earlier) not in seen


def test_a_run_may_be_killed_before_it_looks_at_what_it_took_out(tmp_path: Path, renames: str) -> None:
    """Somebody's file is in the earlier result, which is out of its place by then: it comes back with the file."""
    out = tmp_path / "out"
    put_result(out, "old")

    def dies() -> None:
        with new_folder(out, True) as folder:
            put_result(folder, "new")
            (out / "thesis.txt").write_text("thesis")
            outputs.foreign_files = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]

    assert status_of(forked(dies)) == -signal.SIGKILL
    assert text_of(out) == "new"
    with pytest.raises(OutputError, match=r"also holds thesis\.txt"):
        make_folder(out, "again")
    assert text_of(out) == "old" and (out / "thesis.txt").read_text() == "thesis"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("unsynced")
def test_a_recovery_may_be_killed_as_well(tmp_path: Path, renames: str) -> None:
    """Killed between two files; then killed anywhere while that is put right."""
    names = ("s.parquet", "s.frequencies.parquet")

    def prepare(home: Path) -> None:
        files = [home / name for name in names]
        make_files(files, "old")

        def dies() -> None:
            placed = []

            def place(*arguments: object) -> None:
                if placed:
                    os.kill(os.getpid(), signal.SIGKILL)
                placed.append(1)
                _place(*arguments)

            _place, outputs._place = outputs._place, place  # type: ignore[assignment]
            make_files(files, "new")

        assert status_of(forked(dies)) == -signal.SIGKILL
        assert list(map(text_of, files)) == ["old", "new"]

    for home in killed_homes(tmp_path, prepare, lambda home: make_files([home / name for name in names], "again")):
        files = [home / name for name in names]
        assert attempted(lambda files=files: make_files(files, "x", overwrite=False)) == 2  # type: ignore[misc]
        assert text_of(files[0]) == text_of(files[1]) and text_of(files[0]) in ("old", "again")


def test_a_second_file_that_cannot_take_its_place_takes_the_first_one_back(tmp_path: Path, renames: str) -> None:
    files = [tmp_path / "s.parquet", tmp_path / "s.frequencies.parquet"]
    says = r"s\.parquet: appeared .*s-1\.parquet, .*s\.frequencies-1\.parquet"
    with pytest.raises(OutputError, match=says), new_files(files) as new:
        for file in new:
            put_table(file, "new")
        files[0].write_text("thesis")
    assert files[0].read_text() == "thesis" and not files[1].exists()
    assert sorted(os.listdir(tmp_path)) == ["s-1.parquet", "s.frequencies-1.parquet", "s.parquet"]


def test_what_is_left_of_a_killed_run_is_said_and_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def dies() -> None:
        with new_folder(tmp_path / "out") as folder:
            put_result(folder, "new")
            os.kill(os.getpid(), signal.SIGKILL)

    assert status_of(forked(dies)) == -signal.SIGKILL
    assert os.listdir(tmp_path) == [".out.partial"]
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        make_folder(tmp_path / "out", "new")
    (record,) = caplog.records
    assert record.getMessage() == f"{tmp_path}/out: removing what a killed run left in .out.partial"
    assert os.listdir(tmp_path) == ["out"]


def test_a_lock_in_a_folder_that_was_just_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before ends between two steps of this one."""
    calls = []
    lock = outputs.try_to_lock

    def too_late(handle: int) -> bool | None:
        if not calls:
            shutil.rmtree(tmp_path / ".out.partial")
        calls.append(handle)
        return lock(handle)

    monkeypatch.setattr(outputs, "try_to_lock", too_late)
    with new_folder(tmp_path / "out") as folder:
        assert (tmp_path / ".out.partial" / "lock").exists()
        put_result(folder, "new")
    assert len(calls) == 2 and os.listdir(tmp_path) == ["out"]


def test_where_there_are_no_locks_what_a_killed_run_left_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "HAS_LOCKS", False)
    monkeypatch.setattr(locks, "fcntl", None)
    make_folder(tmp_path / "out", "new")
    make_folder(tmp_path / "out", "newer")
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "lock").write_text("process 1 on elsewhere")
    with pytest.raises(OutputError, match=r"\.out\.partial belongs to process 1 on elsewhere; remove it if"):
        make_folder(tmp_path / "out", "newest")
    assert text_of(tmp_path / "out") == "newer"


@pytest.mark.parametrize("what", ["link", "file", "folder", "foreign"])
def test_a_hidden_folder_that_is_not_ours_is_refused(tmp_path: Path, what: str) -> None:
    hidden, other = tmp_path / ".out.partial", tmp_path / "other"
    (other / "new").mkdir(parents=True)
    (other / "lock").touch()
    (other / "new" / "thesis.txt").write_text("thesis")
    if what == "link":
        hidden.symlink_to(other)
    elif what == "file":
        hidden.write_text("thesis")
    elif what == "folder":
        hidden.mkdir()
        (hidden / "thesis.txt").write_text("thesis")
    else:
        if os.geteuid() != 0:
            pytest.skip("only root makes folders of others")
        other.rename(hidden)
        os.chown(hidden, 1234, 1234)
        other = hidden
    with pytest.raises(OutputError, match="is in the way; remove it, or name another output"):
        make_folder(tmp_path / "out", "new")
    assert (other / "new" / "thesis.txt").read_text() == "thesis"
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------------------ the disk


def test_an_earlier_result_stays_when_the_disk_fails_at_the_end(
    tmp_path: Path, renames: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can take its place, and nothing is lost: neither the earlier result nor the finished one."""
    out = tmp_path / "out"
    put_result(out, "old")
    monkeypatch.setattr(outputs, "exchange", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OutputError, match=r"out: Input/output error; the result is in .*out-1"):
        make_folder(out, "new")
    assert text_of(out) == "old" and text_of(tmp_path / "out-1") == "new"
    assert sorted(os.listdir(tmp_path)) == ["out", "out-1"]


def test_nothing_takes_its_place_that_is_not_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_result(tmp_path / "out", "old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OutputError, match=r"out: No space left on device; nothing was written; name an output on a larger disk$"
    ):
        make_folder(tmp_path / "out", "new")
    assert text_of(tmp_path / "out") == "old" and os.listdir(tmp_path) == ["out"]


def test_everything_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = set()
    fsync = os.fsync

    def watch(handle: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    if not Path("/proc/self/fd").exists():
        pytest.skip("which file a handle is of cannot be seen here")
    monkeypatch.setattr(os, "fsync", watch)
    make_folder(tmp_path / "out", "new")
    assert {"documents.parquet", "part.txt", REPORT, "kept", "out", tmp_path.name} <= synced


def test_many_files_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    whole = disk._sync_file_system
    monkeypatch.setattr(disk, "_sync_file_system", lambda folder: calls.append(folder) or whole(folder))
    with new_folder(tmp_path / "out") as folder:
        for number in range(disk.SYNCED_ONE_BY_ONE + 1):
            (folder / str(number)).touch()
    assert len(calls) == 1


# ---------------------------------------------------------------------------------------------------- what may be named


def test_names_of_every_length(tmp_path: Path) -> None:
    for length in (190, 210, 255):
        make_folder(tmp_path / ("n" * length), "new")
        make_folder(tmp_path / ("n" * length), "newer")
        assert text_of(tmp_path / ("n" * length)) == "newer"
    with pytest.raises(OutputError, match="File name too long; name another output"):
        make_folder(tmp_path / ("n" * 256), "new")
    assert sorted(map(len, os.listdir(tmp_path))) == [190, 210, 255]


def test_folders_around_an_output_vanish_with_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), new_folder(tmp_path / "a" / "b" / "out"):
        raise RuntimeError
    assert os.listdir(tmp_path) == []
    make_folder(tmp_path / "a" / "b" / "out", "new")
    assert text_of(tmp_path / "a" / "b" / "out") == "new"


def test_frequencies_have_a_name_for_each_name_of_simhashes(tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b"], "text": ["one two three", "four five six"]})
    for name in ("s.parquet", "s.pq", "s", "s.b.pq"):
        found = sketch(table, tmp_path / name, id_column="id", recipe=Recipe(method=SimHash(weighting="tfidf")))
        assert Frequencies.load(found["frequencies"]).digest == found["recipe"]["frequencies"]
    assert len(os.listdir(tmp_path)) == 8
    assert (tmp_path / "s.frequencies.parquet").exists() and (tmp_path / "s.frequencies.pq").exists()


def test_the_report_lists_all_files(tmp_path: Path) -> None:
    dedup(pa.table({"text": ["one two three", "four five six"]}), output=tmp_path / "out")
    files = json.loads((tmp_path / "out" / REPORT).read_text())["files"]
    there = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert set(files) == there - {REPORT}
    assert all((tmp_path / "out" / name).stat().st_size == size for name, size in files.items())
