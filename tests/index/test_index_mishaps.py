"""Mishaps of an index: wrong ids, failed commits and openings, forgotten readers, another version's, other threads."""

import errno
import gc
import json
import os
import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from growing import recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.index import manifest as manifests, queries
from neardup_gpu.index.opened import Opened
from neardup_gpu.store import locks
from neardup_gpu.store.checksums import checksum
from neardup_gpu.store.folder import Folder


@pytest.fixture
def make(tmp_path):
    """Makes an index of texts, by id, at `tmp_path / "x"`; it is closed at the end."""
    made = []

    def of(live: dict, **how: object) -> nd.Index:
        index = nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu")
        made.append(index)
        if live:
            flat(index.add, table(list(live), list(live.values())), id_column="id", **how)
        return index

    yield of
    for index in made:
        index.close()


@pytest.mark.parametrize(
    ("ids", "error", "words"),
    [
        ("12", nd.errors.ParameterError, "ids: one str given; put it into a list"),
        (b"12", nd.errors.ParameterError, "ids: one bytes given; put it into a list"),
        (["1", None], nd.errors.InputError, "ids: an id is null"),
        ([None], nd.errors.InputError, "ids: an id is null"),
        (["1", 2], nd.errors.ParameterError, "ids: expected integers, strings or bytes"),
        (["1", "\udc80"], nd.errors.ParameterError, "ids: expected integers, strings or bytes"),
        ([2**64], nd.errors.InputError, "below 2..63"),
        (12, nd.errors.ParameterError, "ids: expected integers, strings or bytes"),
        ([1], nd.errors.InputError, "ids of type string, these are of type integer"),
    ],
)
def test_ids_that_cannot_be_removed(ids, error, words, make) -> None:
    index = make({"1": "to be", "2": "or not", "3": "to be or not"})
    with pytest.raises(error, match=words):
        index.remove(ids)
    assert len(index) == 3


@pytest.mark.parametrize(
    ("ids", "words"), [([0, None], "an id is null"), ([2**63], "below 2..63"), ([0.5], "integers, strings or bytes")]
)
def test_integers_that_cannot_be_removed(ids, words, make) -> None:
    index = make({0: "to be", 1: "or not"})
    with pytest.raises(nd.errors.InputError, match=words):
        index.remove(ids)
    assert len(index) == 2


def test_ids_of_every_container_are_removed(make) -> None:
    index = make({f"d{i}": f"text {i}" for i in range(8)})
    ids = pa.chunked_array([["d0"], ["d1"]]), pa.array(["d2"]), np.array(["d3"]), ("d4",), pa.chunked_array([["d5"]])
    assert [index.remove(each).documents for each in ids] == [2, 1, 1, 1, 1]
    assert index.remove([]).documents == 0 and index.decide().documents["id"].to_pylist() == ["d6", "d7"]


def test_a_copy_of_what_lost_its_keeper(make, tmp_path) -> None:
    near = "to be or not to be that is the question"
    index = make({"a": near, "b": f"{near} indeed"})
    index.remove(["a"])
    added = index.add(table(["c"], [f"{near} indeed"]), id_column="id", output=tmp_path / "c.parquet")
    assert added == (1, 0, 1, 0, 0, 0) and len(index) == 2
    expected = {"id": "c", "kept": False, "duplicate_of": "b", "resemblance": 1.0, "group": "b"}
    assert pq.read_table(tmp_path / "c.parquet").to_pylist() == [expected]


def test_after_a_failed_commit_segments_can_be_merged(make, monkeypatch) -> None:
    live = {f"d{i}": f"text number {i}" for i in range(6)}
    index = make(live, commit_every=2)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("neardup_gpu.index.writer.commit", full)
        with pytest.raises(nd.errors.OutputError, match="the index is as it was committed last"):
            index.compact()
    index.compact()
    assert index.info()["segments"] == 1
    index.check()
    same_as_dedup(index, live)


def refused(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_an_opening_that_failed_does_not_keep_the_lock(make, tmp_path, monkeypatch) -> None:
    make({"a": "to be"}).close()
    with nd.Index.open(tmp_path / "x", engine="cpu") as index:
        (tmp_path / "x" / "segments" / "00000099").write_text("what a killed writer left")
        with monkeypatch.context() as patch, pytest.raises(nd.errors.OutputError, match="permitted"):
            patch.setattr(Folder, "remove", refused)
            index.remove(["a"])
        with nd.Index.open(tmp_path / "x", engine="cpu") as other:
            other.add(table(["b"], ["or not"]), id_column="id")
        assert index.remove(["a", "b"]).documents == 2


def test_a_commit_replaces_no_manifest(make, tmp_path, monkeypatch) -> None:
    index = make({"a": "to be"})
    folder, theirs = tmp_path / "x", (tmp_path / "x" / "manifest.00000002").read_bytes()
    other = replace(index._opened.manifest, id_kind="integer")
    with pytest.raises(nd.errors.OutputError, match="another process has written to the index"):
        manifests.commit(folder, other)
    assert (folder / "manifest.00000002").read_bytes() == theirs

    monkeypatch.setattr(os, "link", refused)
    index.add(table(["b"], ["or not"]), id_column="id")
    assert sorted(path.name for path in folder.glob("manifest.*")) == ["manifest.00000003"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_readers_that_nobody_closed(make, tmp_path) -> None:
    index = make({"a": "to be"})
    for _ in range(5):
        nd.Index.open(tmp_path / "x", engine="cpu")
    gc.collect()
    index.add(table(["b"], ["or not"]), id_column="id")
    assert [path.name for path in (tmp_path / "x").glob("manifest.*")] == ["manifest.00000003"]


@pytest.mark.parametrize("commit_every", [1, 2, 100])
@pytest.mark.parametrize("replace", [False, True])
def test_a_repeated_id_is_refused_in_one_commit_or_several(commit_every, replace, make, tmp_path) -> None:
    rows = [{"id": id, "text": f"text of {id}"} for id in ("x", "y", "x")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    index = make({"x": "an older one"})
    if not replace:
        index.remove(["x"])
    with pytest.raises(nd.errors.InputError, match="id 'x' stands for several documents; ids name one each"):
        index.add(tmp_path / "a.jsonl", id_column="id", commit_every=commit_every, replace=replace)


def test_of_two_inputs_the_later_one_replaces(make, tmp_path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "x", "text": f"text of {name}"}) + "\n")
    index = make({})
    for name in "ab":
        index.add(tmp_path / f"{name}.jsonl", id_column="id", replace=True)
    assert index.query("text of b")["id"].to_pylist() == ["x"] and len(index) == 1


def test_a_refresh_while_others_wait(make, tmp_path, monkeypatch) -> None:
    """An empty index, which has no type of ids yet, gets strings between the start of a question and its turn."""
    writer = make({})
    with nd.Index.open(tmp_path / "x", engine="cpu") as reader:
        for name, ask in (("alone", lambda: reader.query("to be")), ("running", lambda: reader.decide().documents)):
            begin = getattr(Opened, name)

            def late(self, *arguments: object, begin=begin):
                if self is reader._opened and threading.current_thread() is threading.main_thread():
                    if not len(writer):
                        writer.add(table(["a"], ["to be"]), id_column="id")
                    thread = threading.Thread(target=reader.refresh)
                    thread.start()
                    thread.join()
                return begin(self, *arguments)

            monkeypatch.setattr(Opened, name, late)
            assert ask()["id"].to_pylist() == ["a"]


def test_a_snapshot_is_of_one_commit(make, tmp_path) -> None:
    writer = make({"a": "to be"})
    with nd.Index.open(tmp_path / "x", engine="cpu") as reader:
        manifest, segments = reader._opened.state
        writer.add(table(["b"], ["or not"]), id_column="id")
        reader.refresh()
        assert reader._opened.manifest is not manifest and reader._opened.state[1] is not segments
        assert (len(manifest.segments), len(segments)) == (1, 1)
        assert len(reader._opened.manifest.segments) == len(reader._opened.state[1]) == 2


def test_queries_are_answered_batch_by_batch(make, monkeypatch) -> None:
    """The shingles of a batch are let go before those of the next but one are made."""
    index = make({"a": "to be or not to be"})
    order = []

    def noting(name, call):
        return lambda *given, **named: (order.append(name), call(*given, **named))[1]

    for name in ("sketched", "matches_of"):
        call = getattr(queries, name)
        monkeypatch.setattr(queries, name, noting(name, call))
    monkeypatch.setattr(queries, "AT_ONCE", 1 << 12)
    long = "to be or not to be " + "question " * 400  # a batch of its own
    found = index.query(table(list(range(4)), [long, "to be or not to be"] * 2), id_column="id")
    assert found["query_id"].to_pylist() == [0, 1, 2, 3]
    assert len(order) >= 4 and order == ["sketched", "matches_of"] * (len(order) // 2)


def test_a_manifest_of_another_format_that_is_held(make, tmp_path) -> None:
    if locks.fcntl is None:
        pytest.skip("needs locks")
    index = make({"a": "to be"})
    path = tmp_path / "x" / "manifest.00000001"
    text = json.dumps({"kind": "neardup index", "format": 0}).encode()
    path.write_bytes(f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n")
    theirs = tmp_path / "x" / "segments" / "00000099"
    theirs.write_text("theirs")
    with open(path, "rb") as held:
        locks.fcntl.flock(held.fileno(), locks.fcntl.LOCK_SH)
        index.add(table(["b"], ["or not"]), id_column="id")
        assert path.exists() and theirs.exists() and len(index) == 2
    index.add(table(["c"], ["else"]), id_column="id")
    assert not path.exists() and not theirs.exists()
    same_as_dedup(index, {"a": "to be", "b": "or not", "c": "else"})
