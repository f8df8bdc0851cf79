"""Merges beside the thread that adds: what dies meanwhile, what fails, and how many segments there are."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import merging
from neardup_gpu.index.writer import Writer

BASE = {f"d{i}": text for i, text in enumerate(Texts(31).some(21))}


@pytest.fixture
def index(tmp_path) -> Iterator[nd.Index]:
    """An index of seven segments: after the next commit, a merge is due."""
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(max_partners=2), engine="cpu") as made:
        made.add(table(list(BASE), list(BASE.values())), id_column="id", commit_every=3)
        assert made.info()["segments"] == 7
        yield made


@pytest.fixture
def held(monkeypatch) -> tuple[threading.Event, list[str]]:
    """Lets merges beside the thread that adds wait until they are told to go on; and the threads that merged."""
    goes, threads, merged = threading.Event(), list[str](), merging.merged

    def waiting(*arguments):
        threads.append(threading.current_thread().name)
        while threads[-1] != "MainThread" and not goes.wait(0.01):
            arguments[-1]()  # ends it if it is given up
        return merged(*arguments)

    monkeypatch.setattr(merging, "merged", waiting)
    return goes, threads


def at_commit(monkeypatch, number: int, act) -> None:
    """Do something after so many commits of what is added."""
    change, done = Writer.change, list[int]()

    def counted(*arguments, **options):
        change(*arguments, **options)
        done.append(0)
        if len(done) == number:
            act()

    monkeypatch.setattr(Writer, "change", counted)


def replaced(ids: list[str]) -> dict[str, str]:
    """What is added: three documents of no id that is there, and others in the place of these."""
    return {f"e{i}": text for i, text in enumerate(Texts(32).some(3))} | {id: f"now {id} is another" for id in ids}


@pytest.mark.parametrize("ids", [list(BASE)[1::3], list(BASE)], ids=["some", "all"])
@pytest.mark.parametrize("last", [True, False], ids=["at the end", "meanwhile"])
def test_what_dies_while_it_is_merged_is_dead(ids, last, index, held, monkeypatch) -> None:
    goes, threads = held
    new = replaced(ids)
    at_commit(monkeypatch, -(-len(new) // 3) if last else 2, goes.set)
    added = index.add(table(list(new), list(new.values())), id_column="id", commit_every=3, replace=True)
    assert added.replaced == len(ids) and threads[0].startswith("neardup-merge")
    index.check()
    live = {id: text for id, text in BASE.items() if id not in new} | new
    assert len(index) == len(live)
    same_as_dedup(index, live)
    index.compact()
    assert index.info()["dead_documents"] == 0
    same_as_dedup(index, live)


def test_there_are_never_many_segments_of_a_tier(index, held, monkeypatch) -> None:
    goes, threads = held
    most: Counter[int] = Counter()
    publish = Writer.publish

    def noting(writer, *arguments, **options):
        publish(writer, *arguments, **options)
        for tier, number in Counter(merging.tier(each.documents) for each in writer.manifest.segments).items():
            most[tier] = max(most[tier], number)

    monkeypatch.setattr(Writer, "publish", noting)
    new = {f"e{i}": text for i, text in enumerate(Texts(33).some(120))}
    at_commit(monkeypatch, 40, goes.set)
    index.add(table(list(new), list(new.values())), id_column="id", commit_every=3)
    assert "MainThread" in threads  # merged what was due behind the merge that went on
    assert most[0] <= 8 + 8 and most[1] <= 8  # eight of the merge that went on, and up to eight behind it
    assert max(Counter(merging.tier(each.documents) for each in index._opened.manifest.segments).values()) < 8
    same_as_dedup(index, BASE | new)


def test_one_thread_merges_by_itself(index, held) -> None:
    _, threads = held
    index.close()
    with nd.Index.open(index.folder, engine=nd.Engine(backend="cpu", threads=1)) as alone:
        alone.add(table(["e"], ["else"]), id_column="id")
        assert threads == ["MainThread"] and alone.info()["segments"] == 1


@pytest.mark.parametrize("fault", ["full", "damaged"])
def test_an_error_of_a_merge_is_raised(fault, index, monkeypatch) -> None:
    if fault == "damaged":
        path = next((index.folder / "segments").iterdir())
        with open(path, "r+b") as file:
            file.seek(-100, os.SEEK_END)  # of an array that adding does not look at
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        error, words = nd.errors.DamagedError, path.name
    else:

        def full(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
        error, words = nd.errors.OutputError, "No space left on device; the index is as it was committed last"
    with pytest.raises(error, match=words):
        index.add(table(["e"], ["else"]), id_column="id")
    assert len(index) == 22  # what was committed is there
    monkeypatch.undo()
    if fault == "full":
        index.add(table(["f"], ["else"]), id_column="id")
        assert index.info()["segments"] == 1
        same_as_dedup(index, BASE | {"e": "else", "f": "else"})


def test_a_merge_is_given_up_where_adding_fails(index, held, monkeypatch) -> None:
    goes, threads = held
    folder, texts = index.folder, [f"text {i}" for i in range(9)]

    def wait_for_merge() -> None:
        for _ in range(1000):
            if threads:
                return
            goes.wait(0.01)

    at_commit(monkeypatch, 2, wait_for_merge)
    with pytest.raises(nd.errors.InputError, match="'d0' is in the index already"):
        index.add(table([*(f"e{i}" for i in range(8)), "d0"], texts), id_column="id", commit_every=3)
    assert threads and len(index) == 27 and not any(each.name.startswith("neardup-m") for each in threading.enumerate())
    goes.set()
    index.add(table(["f"], ["else"]), id_column="id")
    assert index.info()["segments"] == 1 == len(os.listdir(folder / "segments"))
    same_as_dedup(index, BASE | {f"e{i}": text for i, text in enumerate(texts[:6])} | {"f": "else"})


def test_each_stage_of_adding_has_a_line(index, caplog) -> None:
    seen = []
    with caplog.at_level(logging.INFO, "neardup_gpu"):
        texts = [f"text {i}" for i in range(40)]
        index.add(
            table([f"e{i}" for i in range(40)], texts),
            id_column="id",
            commit_every=3,
            progress=lambda *told: seen.append(told),
        )
    stages = [record.progress["stage"] for record in caplog.records if hasattr(record, "progress")]
    assert stages == ["sketch", "collide", "write", "merge"]
    for line in ("sketching: 40 documents in", "finding candidates: 40 documents in", "writing: 40 documents in"):
        assert line in caplog.text
    assert max(told[1] for told in seen if told[0] == "sketch") == 40
    assert {told[2] for told in seen if told[0] == "sketch"} <= {40, None}
