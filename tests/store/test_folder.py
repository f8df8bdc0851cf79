"""Folders that somebody else prepared: links, pipes and devices in the place of files, and names that are not ours."""

import json
import os
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tampering
from growing import recipe_of, table
from hypothesis import given, strategies as st

import neardup_gpu as nd
from neardup_gpu import dedup
from neardup_gpu.index.manifest import Manifest, SegmentPlace, commit
from neardup_gpu.jobs.info import check, describe
from neardup_gpu.results.explanation import explain
from neardup_gpu.store.arrays import Limits
from neardup_gpu.store.artefacts import read_report
from neardup_gpu.store.folder import Folder, open_named, read_all
from neardup_gpu.tasks.workers import Workers

posix = pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
pytestmark = posix

MADE = {
    "a link to a file": lambda path: path.symlink_to(path.parent / "target"),
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
}


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------------------------------------------- the module


@pytest.mark.parametrize("inner", ["", "inner"])
@pytest.mark.parametrize("kind", MADE)
def test_only_regular_files_are_opened(kind: str, inner: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    Path("x", inner).mkdir(parents=True)
    folder, there = Folder(Path("x"), inner), Path("x", inner, "f")
    (there.parent / "target").write_text("foreign")
    MADE[kind](there)
    for use in (folder.open, folder.open_own, folder.size, folder.create):
        with within(5), pytest.raises(OSError) as error:
            use("f")
        assert "f" in str(error.value) and error.value.strerror
    assert folder.has("f") and not folder.has("g")
    assert (there.parent / "target").read_text() == "foreign"


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    assert Folder(tmp_path).read("f", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        Folder(tmp_path).read("f", 4)
    with open_named(tmp_path / "f") as file:
        assert read_all(file, 9) == b"12345"


def test_an_inner_folder_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f").write_text("foreign")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "inner").symlink_to(tmp_path / "elsewhere")
    folder = Folder(tmp_path / "x", "inner")
    uses: list[Callable[[], object]] = [folder.names, folder.make, folder.sync, lambda: folder.remove("f")]
    uses += [
        lambda: folder.open("f"),
        lambda: folder.create("g"),
        lambda: folder.rename("f", "g"),
        lambda: folder.has("f"),
    ]
    for use in uses:
        with pytest.raises(NotADirectoryError, match="is a symbolic link, not a folder"):
            use()
    assert os.listdir(tmp_path / "elsewhere") == ["f"]
    (tmp_path / "link").symlink_to(tmp_path / "x")  # the folder itself is the user's to name
    assert Folder(tmp_path / "link").names() == ["inner"]


def test_a_file_with_a_second_name_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("foreign")
    (tmp_path / "x").mkdir()
    os.link(tmp_path / "mine", tmp_path / "x" / "lock")
    with pytest.raises(OSError, match="has another name elsewhere"):
        Folder(tmp_path / "x").open_own("lock")
    os.close(Folder(tmp_path / "x").open_own("other"))
    assert (tmp_path / "mine").read_text() == "foreign"


@given(
    values=st.lists(st.integers(-2, 6), max_size=12),
    run=st.integers(0, 5),
    strictly=st.booleans(),
    whole=st.booleans(),
    cut=st.integers(0, 12),
)
def test_limits_admit_what_their_definition_admits(values, run, strictly, whole, cut) -> None:
    limits, size = Limits(0, 4, run, strictly, whole), len(values)
    sound = all(0 <= value <= 4 for value in values)
    if run:
        pairs = [(values[i - 1], values[i]) for i in range(1, size) if i % run]
        sound &= all(one < other if strictly else one <= other for one, other in pairs)
    if whole:
        sound &= size > 0 and values[0] == 0 and values[-1] == 4
    array, cut = np.array(values, np.int64), min(cut, size)
    parts = [(array[:cut], None, 0), (array[cut:], array[cut - 1] if cut else None, cut)] if 0 < cut < size else []
    parts = parts or [(array, None, 0)]
    assert all(limits.admit(some, before, place, size) for some, before, place in parts) == sound


# ---------------------------------------------------------------------------------------------------------- an index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as made:
        made.add(table(list("abc"), tampering.texts(3)), id_column="id")
        made.remove(["a"])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "00000099").write_text("foreign")
    (tmp_path / "elsewhere" / "precious").write_text("foreign")
    return tmp_path / "x"


def foreign(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in (folder / "elsewhere").iterdir()}


@pytest.mark.parametrize("inner", ["segments", "deleted"])
def test_inner_folders_that_are_links(inner: str, index: Path, tmp_path: Path) -> None:
    before = foreign(tmp_path)
    for each in (index / inner).iterdir():
        (tmp_path / "elsewhere" / each.name).write_bytes(each.read_bytes())
    there = sorted(os.listdir(tmp_path / "elsewhere"))
    for each in (index / inner).iterdir():
        each.unlink()
    (index / inner).rmdir()
    (index / inner).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(nd.NeardupError, match=f"{inner}.*is a symbolic link, not a folder"),
        nd.Index.open(index) as opened,
    ):
        opened.add(table(["d"], ["to be"]), id_column="id")
    assert sorted(os.listdir(tmp_path / "elsewhere")) == there
    assert before == {name: (tmp_path / "elsewhere" / name).read_text() for name in before}


@pytest.mark.parametrize("how", [os.symlink, os.link])
def test_a_lock_that_is_another_file(how: Callable, index: Path, tmp_path: Path) -> None:
    before = foreign(tmp_path)
    (index / "writer.lock").unlink(missing_ok=True)
    how(tmp_path / "elsewhere" / "precious", index / "writer.lock")
    with pytest.raises(nd.errors.OutputError, match="link"), nd.Index.open(index, engine="cpu") as opened:
        opened.remove(["b"])
    assert foreign(tmp_path) == before


def test_files_of_others_stay(index: Path) -> None:
    names = ["mine.txt", "0000001", "00000001.bak", "notes"]
    for name in names:
        (index / "segments" / name).write_text("mine")
    (index / "segments" / "00000077").mkdir()
    (index / "manifest.00000001.0123abcd.new").mkdir()
    (index / "segments" / "00000078").write_text("what a killed writer left")
    with nd.Index.open(index, engine="cpu") as opened:
        opened.add(table(["d"], ["to be"]), id_column="id")
        assert opened.check()["documents"] == 3
    assert {*names, "00000077"} <= set(os.listdir(index / "segments"))
    assert "00000078" not in os.listdir(index / "segments")


@pytest.mark.parametrize("kind", MADE)
def test_a_manifest_that_is_no_file(kind: str, index: Path, monkeypatch) -> None:
    monkeypatch.chdir(index)
    MADE[kind](Path("manifest.00000099"))
    with within(5), pytest.raises(nd.errors.InputError, match=r"manifest.00000099: is (a|an) .*, not a regular file"):
        nd.Index.open(index)


@pytest.mark.parametrize("name", ["manifest.000000099", "manifest.٠٠٠٠٠٠٩٩", "manifest." + "9" * 200])
def test_names_that_no_index_writes_are_no_manifests(name: str, index: Path) -> None:
    (index / name).write_text("x")
    with within(5), nd.Index.open(index) as opened:
        assert len(opened) == 2


PLACE = SegmentPlace(0, 0, 1, 1, 1, 0, 10_000)
WRONG = {
    "next_sequence": -1,
    "next_file": "1",
    "number": 0.5,
    "disturbed": 1,
    "id_kind": "float",
    "id_as": "../x",
    "columns": {"a": "list<int>"},
    "recipe": None,
    "segments": [PLACE] * 5_000,
    "inputs": [{"name": 1, "files": [], "rows": 1, "whole": True}],
}


@pytest.mark.parametrize("name", WRONG)
def test_fields_of_manifests_that_no_index_has(name: str, tmp_path: Path) -> None:
    from dataclasses import asdict, replace

    with nd.Index.create(tmp_path / "x", engine="cpu") as made:
        manifest = made._opened.manifest
    fields = {**asdict(replace(manifest, number=2)), name: WRONG[name]}
    if name == "segments":
        fields |= {"segments": [asdict(PLACE)] * 5_000, "id_kind": "integer"}
    _write_manifest(tmp_path / "x", fields)
    with within(5), pytest.raises(nd.errors.DamagedError, match=r"is not a manifest that this package writes \(.*\)"):
        nd.Index.open(tmp_path / "x")


def _write_manifest(folder: Path, fields: dict) -> None:
    from neardup_gpu.store.checksums import checksum

    text = json.dumps({"kind": "neardup index", "format": 2, **fields}).encode()
    data = f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n"
    (folder / "manifest.00000002").write_bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../../elsewhere/precious"},
        {"file": 2**60},
        {"documents": 10**12},
        {"entries": 2, "documents": 1},
        {"stop": 10**9},
        {"first": 3},
        {"dead_documents": 4},
        {"deleted": -1},
        {"order": True},
        {"pairs": 10**6},
        {"num_bytes": 1},
    ],
    ids=str,
)
def test_segments_that_contradict_themselves(change: dict, index: Path) -> None:
    from dataclasses import asdict, replace

    with nd.Index.open(index) as opened:
        manifest = opened._opened.manifest
    fields = asdict(replace(manifest, number=2))
    for name in os.listdir(index):
        if name.startswith("manifest."):
            (index / name).unlink()
    fields["segments"][0] |= change
    _write_manifest(index, fields)
    with within(5), pytest.raises(nd.errors.DamagedError, match="is not a manifest that this package writes"):
        nd.Index.open(index)


def test_a_manifest_is_bounded(tmp_path: Path, monkeypatch) -> None:
    from neardup_gpu.index import manifest as manifests

    nd.Index.create(tmp_path / "x", engine="cpu").close()
    monkeypatch.setattr(manifests, "MOST_BYTES", 100)
    with pytest.raises(nd.errors.InputError, match="larger than 100 bytes"):
        nd.Index.open(tmp_path / "x")
    with pytest.raises(nd.errors.OutputError, match="the list of inputs takes"):
        commit(tmp_path / "x", Manifest(2, "x" * 100))


# -------------------------------------------------------------------------------------------- work folders and results


def _in_tasks(folder: Path, output: str, keep: bool = False) -> dict:
    how = Workers(work_dir=str(folder / "work"), number=1, keep_work=keep)
    return dedup({"text": tampering.texts(9)}, output=folder / output, workers=how, engine="cpu").report


def test_a_work_folder_is_emptied_of_what_tasks_wrote(tmp_path: Path) -> None:
    _in_tasks(tmp_path, "kept", keep=True)
    stages = [each for each in (tmp_path / "work").iterdir() if each.is_dir()]
    for stage in stages:
        (stage / "mine.txt").write_text("mine")
    _in_tasks(tmp_path, "again")
    assert {each for each in (tmp_path / "work").rglob("*") if each.is_file()} >= {each / "mine.txt" for each in stages}
    left = {each.name for each in (tmp_path / "work").rglob("*") if each.is_file()}
    assert left == {"mine.txt", "lock"} or left == {"mine.txt"}


@pytest.mark.parametrize("name", ["lock", "job.json", "input", "sketch"])
def test_a_work_folder_with_links(name: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "part-00000.arrows").write_text("foreign")
    target = tmp_path / "elsewhere"
    (tmp_path / "work" / name).symlink_to(target if name in ("input", "sketch") else target / "part-00000.arrows")
    with within(60), pytest.raises(nd.NeardupError) as error:
        _in_tasks(tmp_path, "out")
    assert "\n" not in str(error.value)
    assert foreign(tmp_path) == {"part-00000.arrows": "foreign"} and not (tmp_path / "out").exists()


def test_a_record_that_names_files_elsewhere_is_not_followed(tmp_path: Path) -> None:
    from neardup_gpu.tasks.work import Record

    sound = Record("d", {"sketch/000000-rows": (1, "c")}, {"kept/part": 3}, {"files": ["kept/part"]}, 0.1)
    assert Record.from_json(sound.to_json()) == sound
    for result in ("../precious", "/etc/passwd", "kept/../../x"):
        with pytest.raises(ValueError, match="leads out"):
            Record.from_json(Record("d", {}, {result: 3}, {"files": [result]}, 0.1).to_json())
    for wrong in ({"seconds": ""}, {"facts": []}, {"digest": 1}, {"result": {"a": "b"}}, {"result": {"a": 1}}):
        fields = {"digest": "d", "files": {}, "result": {}, "facts": {}, "seconds": 0.1, **wrong}
        with pytest.raises((ValueError, AttributeError)):
            Record.from_json(Record(**fields).to_json())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("result")
    tampering.make_result(folder)
    return folder


@pytest.mark.parametrize("kind", [each for each in MADE if each != "a socket"])
@pytest.mark.parametrize("name", ["report.json", "documents.parquet"])
def test_a_result_whose_files_are_no_files(name: str, kind: str, made: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "x"
    shutil.copytree(made / "x", folder)
    (folder / name).unlink()
    (folder / "target").write_text("foreign")
    MADE[kind](folder / name)
    uses = [lambda: explain(folder, "d7"), lambda: check(folder)]
    if name == "report.json":
        uses += [lambda: describe(folder), lambda: read_report(folder)]
    for use in uses:
        with within(5), pytest.raises(nd.NeardupError):
            use()


def test_a_report_that_names_files_elsewhere(made: Path, tmp_path: Path) -> None:
    import shutil

    from neardup_gpu.store.artefacts import write_report

    shutil.copytree(made / "x", tmp_path / "x")
    report = read_report(tmp_path / "x")
    (tmp_path / "x" / "report.json").unlink()
    write_report(
        tmp_path / "x", {name: report[name] for name in report if name not in ("files", "checksums", "checksum")}
    )
    path = tmp_path / "x" / "report.json"
    tampering.change_report(path, lambda found: found["checksums"].update({"../precious": "0" * 16}))
    with pytest.raises(nd.errors.DamagedError, match="is not the name of a file of a result"):
        check(tmp_path / "x")


def test_fingerprints_that_are_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.index")
    for use in (nd.hamming.HammingIndex.load, describe, check, lambda path: nd.sketches.pairs([path])):
        with (
            within(5),
            pytest.raises(nd.errors.InputError, match=r"a pipe, not a regular file|not an artefact"),
        ):
            use(tmp_path / "x.index")


# ------------------------------------------------------------------------------------------------------ mutations

MUTATIONS = int(os.environ.get("NEARDUP_MUTATIONS", "10"))
"""For each victim; 20,000 of all were tried once, see benchmarks/results/mutations.json."""


@pytest.mark.parametrize("victim", tampering.VICTIMS)
def test_mutations(victim: str) -> None:
    failures: list[str] = []
    counts = tampering.trial(victim, random.Random(victim).randrange(1000), MUTATIONS, failures)
    assert not failures, "\n".join(failures)
    assert sum(counts.values()) == MUTATIONS and counts["refused"] > MUTATIONS // 4
