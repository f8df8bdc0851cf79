"""Copies of an index: made while a writer is at work, and put in place of the index while others have it open."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from growing import recipe_of, table

import neardup_gpu as nd
from neardup_gpu.cli.process import main
from neardup_gpu.store.folder import Folder

WORDS = [f"word{number}" for number in range(12)]


def texts_of(name: str, number: int) -> dict:
    """Documents of different words, whose ids begin with `name`."""
    ids = [f"{name}{each}" for each in range(number)]
    return table(ids, [" ".join(f"{word}-{each}" for word in WORDS) for each in ids])


def found(index: nd.Index, id: str) -> list[str]:
    return index.query(" ".join(f"{word}-{id}" for word in WORDS))["id"].to_pylist()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An index called `x` with five documents, in the working folder."""
    monkeypatch.chdir(tmp_path)
    with nd.Index.create("x", recipe=recipe_of(), engine="cpu") as index:
        index.add(texts_of("a", 5), id_column="id")
    return tmp_path / "x"


def test_a_copy_answers_as_the_index_and_grows_alone(folder) -> None:
    with nd.Index.open(folder, engine="cpu") as index:
        index.remove(["a4"])
        num_bytes = index.copy("y")
        index.add(texts_of("b", 1), id_column="id")
    with nd.Index.open("y", engine="cpu") as copy:
        assert copy.check(all=True)["documents"] == 4
        assert (len(copy), found(copy, "a0"), found(copy, "b0")) == (4, ["a0"], [])
        assert num_bytes == sum(each.stat().st_size for each in Path("y").rglob("*") if each.is_file())
        copy.add(texts_of("c", 2), id_column="id")
    with nd.Index.open(folder, engine="cpu") as index:
        assert (len(index), found(index, "c0")) == (5, [])


def test_a_copy_is_whole_while_another_process_writes(folder) -> None:
    code = (
        "import neardup_gpu as nd\n"
        "with nd.Index.open('x', engine='cpu') as index:\n"
        "    for number in range(40):\n"
        "        index.add({'id': [f'w{number}'], 'text': [f'word{number} and some others']}, id_column='id')\n"
        "        print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        sizes = []
        for number, _ in enumerate(writer.stdout):
            if number % 4 == 0:
                with nd.Index.open(folder, engine="cpu") as index:
                    index.copy(f"copy{number}")
                with nd.Index.open(f"copy{number}", engine="cpu") as copy:
                    assert copy.check()["documents"] == len(copy) >= 5 + number
                    sizes.append(len(copy))
    assert writer.returncode == 0
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 1


def test_a_copy_that_cannot_be_written_leaves_nothing(folder, monkeypatch, capsys) -> None:
    made = Folder.create

    def full(self: Folder, name: str) -> int:
        if self.inner == "segments" and self.path.name != "x":
            raise OSError(28, "No space left on device")
        return made(self, name)

    monkeypatch.setattr(Folder, "create", full)
    before = sorted(Path().rglob("*"))
    assert main(["index", "copy", "x", "y"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("target", "message"),
    [("x/y", "lies in the index x"), ("full", "full: exists already; name another folder")],
)
def test_a_copy_replaces_nothing(folder, target, message, capsys) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    assert main(["index", "copy", "x", target]) == 2
    assert message in capsys.readouterr().err
    assert Path("full/file").read_text() == "mine"


@pytest.mark.parametrize("words", [["create"], ["info"], ["add"], ["check"], ["copy", "x"]], ids=" ".join)
def test_an_index_is_not_in_an_object_store(folder, words, capsys) -> None:
    more = ["x.parquet"] if words == ["add"] else []
    assert main(["index", *words, "s3://key:secret@bucket/y", *more]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("neardup: s3://***@bucket/y: is a URI, and ")
    assert printed.count("\n") == 1
    assert not Path("s3:").exists()


def test_the_command_says_what_it_copied(folder, capsys) -> None:
    assert main(["index", "copy", "x", "y"]) == 0
    printed = capsys.readouterr().out
    assert "documents    5\n" in printed
    assert "neardup index check y" in printed


def test_an_open_index_cannot_be_pickled(folder) -> None:
    with (
        nd.Index.open(folder, engine="cpu") as index,
        pytest.raises(nd.NeardupError, match=r"an open index cannot be pickled; pass its folder, and call Index\.open"),
    ):
        pickle.dumps(index)


# ------------------------------------------------------------------------------------ a backup that is put in its place


@pytest.fixture
def restore(folder):
    """A function that puts a backup of five documents in the place of the index."""
    with nd.Index.open(folder, engine="cpu") as index:
        index.copy("backup")

    def put() -> None:
        folder.rename(folder.with_name("lost"))
        shutil.copytree("backup", folder)

    return put


def test_a_writer_is_refused_after_the_folder_was_replaced(folder, restore) -> None:
    with nd.Index.open(folder, engine="cpu") as index:
        index.add(texts_of("b", 3), id_column="id")
        restore()
        with pytest.raises(nd.errors.OutputError, match="moved or replaced while this process wrote to it"):
            index.add(texts_of("c", 1), id_column="id")
    with nd.Index.open(folder, engine="cpu") as index:
        assert index.check(all=True)["documents"] == 5
        index.add(texts_of("c", 1), id_column="id")
        assert (found(index, "c0"), found(index, "b0")) == (["c0"], [])


@pytest.mark.parametrize("more", [0, 3, 5], ids=["an older commit", "the same number", "a newer commit"])
def test_a_reader_follows_a_folder_that_was_replaced(folder, restore, more) -> None:
    """Numbers of commits and of segments may be the same in both folders, and their documents others."""
    with nd.Index.open(folder, engine="cpu") as index:
        for number in range(3):
            index.add(texts_of(f"b{number}-", 1), id_column="id")
    with nd.Index.open(folder, engine="cpu") as reader:
        assert found(reader, "b0-0") == ["b0-0"]
        restore()
        with nd.Index.open(folder, engine="cpu") as index:
            for number in range(more):
                index.add(texts_of(f"c{number}-", 1), id_column="id")
        reader.refresh()
        assert (len(reader), found(reader, "b0-0")) == (5 + more, [])
        if more:
            assert found(reader, "c0-0") == ["c0-0"]
