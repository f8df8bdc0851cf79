"""What lies in the folder of an index, and what does not: folders that were lost, outputs, numbers of files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from growing import recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.index import writer as writers
from neardup_gpu.store import locks

LIVE = {"a": "to be or not to be", "b": "or not to be that", "c": "all else is silence"}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An index called `x`, in the working folder."""
    monkeypatch.chdir(tmp_path)
    with nd.Index.create("x", recipe=recipe_of(), engine="cpu") as index:
        index.add(table(list(LIVE), list(LIVE.values())), id_column="id")
    return tmp_path / "x"


def test_empty_folders_that_a_copy_left_out(folder, tmp_path) -> None:
    nd.Index.create("empty", recipe=recipe_of(), engine="cpu").close()
    for name in ("segments", "deleted"):
        (tmp_path / "empty" / name).rmdir()
    (folder / "deleted").rmdir()
    with nd.Index.open("empty", engine="cpu") as index:
        assert index.check()["documents"] == len(index.query("to be")) == 0
        index.add(table(["a"], ["to be"]), id_column="id")
        assert index.remove(["a"]).documents == 1
    with nd.Index.open(folder, engine="cpu") as index:
        assert index.remove(["a"]).documents == 1
        same_as_dedup(index, {id: text for id, text in LIVE.items() if id != "a"})


def test_what_a_killed_create_left_is_no_hindrance(tmp_path) -> None:
    for name in ("segments", "deleted"):
        (tmp_path / "x" / name).mkdir(parents=True)
    (tmp_path / "x" / "manifest.00000001.0123abcd.new").write_text("half")
    with nd.Index.create(tmp_path / "x", engine="cpu") as index:
        index.add({"text": ["to be"]})
        assert not list((tmp_path / "x").glob("*.new"))
    (tmp_path / "y" / "segments").mkdir(parents=True)
    (tmp_path / "y" / "segments" / "mine").write_text("not an index's")
    with pytest.raises(nd.errors.OutputError, match="is not empty"):
        nd.Index.create(tmp_path / "y")


@pytest.mark.parametrize("place", ["x", "x/d.parquet", "x/segments/d.parquet", "x/new/d.parquet", "link/d.parquet"])
def test_no_output_goes_into_an_index(place, folder, tmp_path, monkeypatch) -> None:
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "a.jsonl").write_text('{"id": "d", "text": "to be"}\n')
    before = sorted(folder.rglob("*"))
    for words in (
        ["index", "add", "x", "a.jsonl", "--id-column", "id", "-o", place],
        ["index", "query", "x", "a.jsonl", "--id-column", "id", "-o", place],
        ["index", "decide", "x", "-o", place, "--overwrite"],
        ["dedup", "a.jsonl", "-o", place],
        ["sketch", "a.jsonl", "-o", place],
    ):
        with pytest.raises(nd.errors.OutputError, match=rf"^{place}: lies in the index x, .*; name another output$"):
            run(words)
    if place != "x":
        with pytest.raises(nd.errors.OutputError, match=f"^{place}: lies in the index x; name another folder$"):
            nd.Index.create(place)
    assert sorted(each for each in folder.rglob("*") if each.name != "writer.lock") == [
        each for each in before if each.name != "writer.lock"
    ]


def test_decisions_are_written_over(folder, tmp_path) -> None:
    for id in "de":
        (tmp_path / f"{id}.jsonl").write_text(f'{{"id": "{id}", "text": "to be {id}"}}\n')
        assert run(["index", "add", "x", f"{id}.jsonl", "--id-column", "id", "-o", "d.parquet", "--overwrite"]) == 0
        assert pq.read_table("d.parquet")["id"].to_pylist() == [id]
    with pytest.raises(nd.errors.OutputError, match=r"d.parquet: exists already"):
        run(["index", "add", "x", "d.jsonl", "--id-column", "id", "-o", "d.parquet"])
    assert run(["index", "decide", "x", "-o", "out", "-q"]) == 0
    with pytest.raises(
        nd.errors.OutputError, match=r"out/documents.parquet: was not written by neardup"
    ):  # it is the result's
        run(["index", "add", "x", "d.jsonl", "--id-column", "id", "-o", "out/documents.parquet", "--overwrite"])


def test_rows_that_were_left_out_are_listed(folder, tmp_path, caplog) -> None:
    lines = ['{"id": "d", "text": "to be"}', "{", '{"id": "e", "text": "or not"}', "}"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    command = ["index", "add", "x", "a.jsonl", "--id-column", "id", "--on-error", "skip", "-o", "d.parquet"]
    assert run(command) == 0
    found = pq.read_table("d.skipped.parquet")
    assert found.select(["row", "rows"]).to_pylist() == [{"row": 2, "rows": 1}, {"row": 4, "rows": 1}]
    assert pq.read_table("d.parquet")["id"].to_pylist() == ["d", "e"]
    assert "2 rows left out (d.skipped.parquet lists them), the first in a.jsonl, row 2: " in caplog.text
    assert run([*command, "--overwrite"]) == 0
    assert pq.read_table("d.skipped.parquet").num_rows == pq.read_table("d.parquet").num_rows == 0


def test_info_says_what_describes_an_index(folder) -> None:
    for path, what in (("x", "is an index that grows"), ("x/manifest.00000002", "is part of an index that grows")):
        with pytest.raises(nd.errors.InputError, match=f"^{path}: {what}; try neardup index info x$"):
            run(["info", path])


def test_no_file_is_written_over(folder, monkeypatch) -> None:
    """Another writer, which this one does not know of as locks are of no use, has written files of the next numbers."""
    monkeypatch.setattr(locks, "try_to_lock", lambda _: None)
    with nd.Index.open(folder, engine="cpu") as index:
        index.add(table(["d"], ["the rest"]), id_column="id")
        next_file = index._opened.manifest.next_file
        for name in ("segments", "deleted"):
            (folder / name / f"{next_file:08}").write_text("another's")
        monkeypatch.setattr(writers, "clean", lambda *_: None)  # which cannot know whose they are
        index.add(table(["e"], ["silence"]), id_column="id")
        index.remove(["a"])
        index.compact()
        for name in ("segments", "deleted"):
            assert (folder / name / f"{next_file:08}").read_text() == "another's"
        same_as_dedup(index, {"b": LIVE["b"], "c": LIVE["c"], "d": "the rest", "e": "silence"})
        index.check()


def test_who_begins_to_write_removes_nothing_of_another_writer(folder, monkeypatch) -> None:
    monkeypatch.setattr(locks, "try_to_lock", lambda _: None)
    commit = writers.commit

    def late(*arguments: object) -> None:  # another one opens the index to write
        with (
            nd.Index.open(folder, engine="cpu") as other,
            pytest.raises(nd.errors.OutputError, match="is being written by"),
        ):
            other.remove(["nowhere"])
        commit(*arguments)

    with nd.Index.open(folder, engine=nd.Engine(backend="cpu", threads=1)) as index:  # which commits in this thread
        monkeypatch.setattr(writers, "commit", late)
        index.add(table(["d"], ["the rest"]), id_column="id")
        index.check()
        same_as_dedup(index, LIVE | {"d": "the rest"})


def mounted(mount: str, folder: Path, program: str) -> list[str]:
    """The lines that a program prints of a folder on which something was mounted for it alone, as anybody may on Linux.

    Skips where that cannot be done.
    """
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    script = f'{mount} && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", folder, sys.executable, program]
    environment = {**os.environ, "PYTHONPATH": str(Path(nd.__file__).parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0 and "Traceback" not in done.stderr:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


READ = """
import sys, neardup_gpu as nd
with nd.Index.open(sys.argv[1], engine="cpu") as index:
    print(index.check()["documents"], len(index.query("to be or not to be")))
    try:
        index.remove(["a"])
    except nd.errors.OutputError as error:
        print(error)
"""


def test_an_index_on_a_disk_that_is_mounted_to_be_read(folder) -> None:
    counts, message = mounted('mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"', folder, READ)
    assert counts == "3 2"
    assert message == f"{folder}: Read-only file system; an index is written by whoever may write its folder"


FILL = """
import sys, neardup_gpu as nd
with nd.Index.create(sys.argv[1] + "/x", engine="cpu") as index:
    said = ""
    while not said:
        ids = [f"d{len(index) + i}" for i in range(4)]
        try:
            index.add({"id": ids, "text": [f"text of {id}" for id in ids]}, id_column="id")
        except nd.errors.OutputError as error:
            said = str(error)
    index.check()
    number = len(index)
with nd.Index.open(sys.argv[1] + "/x", engine="cpu") as index:
    print(said)
    print(number == len(index) == len(index.decide().documents), number > 40, number % 4)
    print(index.query(f"text of d{number - 1}")["id"].to_pylist() == [f"d{number - 1}"])
"""


def test_a_disk_that_is_full(tmp_path) -> None:
    said, *rest = mounted('mount -t tmpfs -o size=1m none "$1"', tmp_path, FILL)
    assert said.startswith(f"{tmp_path / 'x'}") and "No space left on device; the index is as it was" in said
    assert rest == ["True True 0", "True"]
