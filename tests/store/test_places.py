"""A place holds whole files under their names, wherever it is, and says what to do when it cannot."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from stored_files import files_of

from neardup_gpu.errors import InputError, OutputError, ParameterError, ResourceError
from neardup_gpu.store import disk
from neardup_gpu.store.places import NoSuchFileError, Place

posix = pytest.mark.skipif(os.name != "posix", reason="limits and signals are POSIX's")


@pytest.fixture(params=["local", "fsspec"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "local":
        yield Place.of(tmp_path / "work")
        return
    pytest.importorskip("fsspec")
    place = Place.of(f"memory://{uuid.uuid4().hex}/work")
    yield place
    place.remove_all()


def test_files_come_back(place: Place) -> None:
    assert not place.exists("a") and files_of(place) == [] and files_of(place, "in") == []
    place.write_text("a", "ä")
    with place.write("in/b") as file:
        assert file.write(b"12") == 2
        file.write(memoryview(b"3456"))
        assert file.tell() == 6
    place.write_text("empty", "")
    assert place.read_text("a") == "ä" and place.read_text("in/b") == "123456" and place.read_text("empty") == ""
    assert files_of(place) == ["a", "empty"] and files_of(place, "in") == ["in/b"] and files_of(place, "in/b"[:1]) == []
    assert place.exists("a") and place.exists("in/b") and not place.exists("in")
    with place.open("in/b") as file:
        file.seek(2)
        assert file.read(3) == b"345" and file.size() == 6
    place.write_text("a", "again")
    assert place.read_text("a") == "again"
    place.remove("a")
    place.remove("a")
    assert files_of(place) == ["empty"]
    place.remove_all()
    place.remove_all()
    assert files_of(place) == [] and not place.exists("in/b")


def test_a_child_is_a_place_in_the_place(place: Place) -> None:
    place.child("x").write_text("b", "1")
    assert place.read_text("x/b") == "1"
    assert str(place.child("x")) == f"{place}/x"


def test_a_place_can_be_sent_to_another_process(place: Place) -> None:
    place.write_text("a", "1")
    sent = pickle.dumps(place)
    assert len(sent) < 300
    assert pickle.loads(sent) == place and pickle.loads(sent).read_text("a") == "1"


def test_what_is_written_is_there_as_a_whole_or_not_at_all(place: Place) -> None:
    with pytest.raises(KeyError), place.write("in/a") as file:
        file.write(b"half")
        raise KeyError
    assert files_of(place, "in") == [] and not place.exists("in/a")
    if place.folder is not None:
        assert os.listdir(place.folder / "in") == []


def test_an_error_leaves_the_earlier_file(tmp_path: Path) -> None:
    place = Place.of(tmp_path)
    place.write_text("a", "old")
    with pytest.raises(KeyError), place.write("a") as file:
        file.write(b"new")
        assert place.read_text("a") == "old" and files_of(place) == ["a"]
        raise KeyError
    assert place.read_text("a") == "old" and os.listdir(tmp_path) == ["a"]


@posix
def test_what_a_killed_process_leaves_is_no_file(tmp_path: Path) -> None:
    place = Place.of(tmp_path)
    pid = os.fork()
    if not pid:
        with place.write("in/a") as file:
            file.write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert len(os.listdir(tmp_path / "in")) == 1  # it does lie there
    assert files_of(place, "in") == [] and not place.exists("in/a")
    place.write_text("in/a", "whole")
    assert files_of(place, "in") == ["in/a"] and place.read_text("in/a") == "whole"
    place.remove_all()
    assert not tmp_path.exists()


def test_an_error_at_the_end_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place.of(tmp_path)
    place.write_text("a", "1")

    def fail(*names: object, **folders: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(
        OutputError, match=r"a: cannot be written \(Input/output error\); name another folder with work"
    ):
        place.write_text("a", "2")
    assert place.read_text("a") == "1" and os.listdir(tmp_path) == ["a"]


def test_a_file_that_is_not_there(place: Place) -> None:
    place.write_text("in/b", "1")
    for ask in (place.open, place.read_text):
        with pytest.raises(NoSuchFileError, match=r"work/in/a: no such file; run the job again$"):
            ask("in/a")


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/", "/a", "a/b/c", "a\\b", ".a.0.partial", "a/.b", "a\0"])
def test_names_lead_nowhere_else(place: Place, name: str) -> None:
    with pytest.raises(ParameterError, match="cannot name a file"):
        place.write_text(name, "1")
    with pytest.raises(ParameterError, match="cannot name a file"):
        place.open(name)
    with pytest.raises(ParameterError, match="cannot name a file"):
        place.child(name)


@posix
def test_a_full_disk(tmp_path: Path) -> None:
    place, limits = Place.of(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"in/a: cannot be written \(File too large\); name another folder with"):
            place.write_text("in/a", "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path / "in") == []


def test_a_disk_without_room_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"total": 10**7, "used": 0, "free": 10**5 + 4000})
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: usage)
    says = (
        r"at least 1.0 kB are missing \(4.0 kB can be used, 5.0 kB are to come\); name a larger disk with work_dir=..."
    )
    with pytest.raises(OutputError, match=says):
        Place.of(tmp_path).write_text("a", "x" * 5000)
    assert os.listdir(tmp_path) == []
    Place.of(tmp_path).write_text("a", "x" * 4000)


@posix
def test_too_many_open_files(tmp_path: Path) -> None:
    place, limits = Place.of(tmp_path), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(ResourceError, match=r"too many files are open; raise the limit \(ulimit -n\)"):
            place.write_text("a", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_place_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("thesis")
    place = Place.of(tmp_path / "thesis")
    with pytest.raises(OutputError, match=r"thesis/a: cannot be written \(.+\); name another folder with work_dir="):
        place.write_text("a", "1")
    with pytest.raises(InputError, match=r"thesis/a: .+; .*run the job again"):
        place.read_text("a")
    assert (tmp_path / "thesis").read_text() == "thesis"


def test_what_is_a_path_and_what_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Place.of("work").folder == tmp_path / "work" == Place.of(tmp_path.joinpath("work")).folder
    for uri in (f"file://{tmp_path}/work", f"local://{tmp_path}/work"):
        assert Place.of(uri) == Place.of("work")
    assert Place.of("memory://work").folder is None
    with pytest.raises(InputError, match="nowhere://"):
        Place.of("nowhere://work")


def test_no_message_shows_a_secret() -> None:
    place = Place("s3://key:secret@bucket/work?region=us-east-1&session_token=hidden")
    assert str(place.child("x")) == "s3://***@bucket/work/x?region=us-east-1&session_token=***"
    assert "secret" not in repr(place) and "hidden" not in repr(place)


class Failing(fs.FileSystemHandler):
    """A store whose every operation fails as an object store's may."""

    def _fail(self, *arguments: object, **options: object) -> None:
        raise RuntimeError("403 Forbidden for key:secret")

    def get_type_name(self) -> str:
        return "failing"

    def normalize_path(self, path: str) -> str:
        return path

    get_file_info = get_file_info_selector = create_dir = delete_dir = delete_dir_contents = delete_file = _fail
    delete_root_dir_contents = move = copy_file = open_input_stream = open_input_file = _fail
    open_output_stream = open_append_stream = _fail


def test_a_store_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    store = fs.PyFileSystem(Failing())
    monkeypatch.setattr("neardup_gpu.store.places.file_system", lambda uri: (store, "bucket/work"))
    place = Place("s3://key:secret@bucket/work")
    for ask in (place.read_text, place.exists):
        with pytest.raises(
            InputError, match=r"^s3://\*\*\*@bucket/work/a: cannot be read \(403 Forbidden for [^s]*\); "
        ):
            ask("a")
    for change in (lambda: place.write_text("a", "1"), lambda: place.remove("a"), place.remove_all):
        with pytest.raises((InputError, OutputError), match=r"\(403 Forbidden for [^s]*\)"):
            change()
