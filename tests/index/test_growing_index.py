"""What is public of an index: queries against brute force, what is refused, snapshots, files that were added before."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from flat import flat
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.index.locking import IndexHeldError
from neardup_gpu.index.segments import SEGMENT
from neardup_gpu.store.arrays import ArraysFile


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """An index of 120 documents in several segments, some of which were removed; and those that live, by id."""
    folder = tmp_path_factory.mktemp("grown") / "index"
    texts = Texts(7, words=60)
    live = dict(zip(range(120), texts.some(120), strict=True))
    with nd.Index.create(folder, recipe=recipe_of(threshold=0.4), engine="cpu") as index:
        for start in range(0, 120, 30):
            some = range(start, start + 30)
            index.add(table(list(some), [live[id] for id in some]), id_column="id")
        gone = list(range(3, 120, 10))
        index.remove(gone)
    return folder, {id: text for id, text in live.items() if id not in gone}


def brute_force(live: dict, text: str, recipe: nd.Recipe) -> list[tuple]:
    """(id, resemblance), best first, of the documents that share enough features and resemble the text enough."""
    ids = list(live)
    texts = [text, *live.values()]
    shingles = nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe)
    keys = recipe.method.keys(recipe.method.sketch(shingles, seed=recipe.seed), seed=recipe.seed)
    if not shingles.sizes[0]:
        return []
    found = []
    for row, id in enumerate(ids, 1):
        if not shingles.sizes[row]:
            continue
        one, other = (set(shingles.values[shingles.offsets[i] : shingles.offsets[i + 1]].tolist()) for i in (0, row))
        value = len(one & other) / len(one | other)
        shared = int((keys[0] == keys[row]).sum())
        if value >= recipe.threshold and shared >= recipe.method.filter.r:
            found.append((-value, row, id))
    return [(id, -value) for value, _, id in sorted(found)]


def test_queries_are_brute_force(grown) -> None:
    folder, live = grown
    texts = Texts(8, words=60)
    texts.made = list(live.values())
    queries = [*texts.some(25), *list(live.values())[:10], "", "nothing of it"]
    with nd.Index.open(folder, engine="cpu") as index:
        together = index.query(table([f"q{i}" for i in range(len(queries))], queries), id_column="id")
        kept = set(index.decide().documents.filter(pc.field("kept"))["id"].to_pylist())
        assert kept <= set(live)
        found: dict[str, list] = {}
        for match in together.to_pylist():
            found.setdefault(match["query_id"], []).append((match["id"], match["resemblance"]))
            assert match["low"] == match["high"] == match["resemblance"] and match["exact"]
        for number, text in enumerate(queries):
            expected = brute_force(live, text, index.recipe)
            assert found.get(f"q{number}", []) == expected
            assert index.query(text, nearest=2)["id"].to_pylist() == [id for id, _ in expected[:2]]
        assert sum(map(len, found.values())) > 40


def test_what_is_refused_changes_nothing(grown, tmp_path) -> None:
    folder, live = grown
    there = next(iter(live))
    with nd.Index.open(folder, engine="cpu") as index:
        before = index.info()
        for source, words in (
            (table([there], ["to be"]), "is in the index already; pass replace=True"),
            (table(["a"], ["to be"]), "ids of type integer, these are of type string"),
            (table([1000, 1000], ["to be", "or not"]), "1000"),
            (table(pa.array([2**63], pa.uint64()), ["to be"]), "below 2..63"),
        ):
            with pytest.raises(nd.errors.InputError, match=words):
                index.add(source, id_column="id")
        with pytest.raises(nd.errors.InputError, match="100000 is not in the index; nothing was removed"):
            index.remove([there, 100000], missing="error")
        with pytest.raises(nd.errors.ParameterError, match="keeps no column 'date'; it keeps none"):
            index.decide(keep="date")
        with pytest.raises(
            nd.errors.ParameterError,
            match="method bottomk cannot find candidates in an index; choose exact, ",
        ):
            nd.Index.create(tmp_path / "x", method="bottomk")
        with pytest.raises(nd.errors.OutputError, match="is an index already"):
            nd.Index.create(folder)
        with pytest.raises(nd.errors.RecipeMismatchError, match="made with filter = "):
            nd.Index.open(folder, recipe=nd.Recipe(method="minhash"))
        with pytest.raises(nd.errors.InputError, match="there is no index"):
            nd.Index.open(tmp_path / "nowhere")
        (tmp_path / "empty").mkdir()
        with pytest.raises(nd.errors.InputError, match="is not an index"):
            nd.Index.open(tmp_path / "empty")
        after = index.info()
        assert {**after, "commit": 0} == {**before, "commit": 0}
    with pytest.raises(nd.errors.ParameterError, match="closed"):
        index.query("to be")


def test_one_writes_and_names_itself(grown) -> None:
    folder, live = grown
    with nd.Index.open(folder, engine="cpu") as writer, nd.Index.open(folder, engine="cpu") as other:
        writer.add(table([500], ["all else is silence"]), id_column="id")
        with pytest.raises(nd.errors.OutputError, match=f"is being written by process {os.getpid()} on") as caught:
            other.remove([500])
        assert isinstance(caught.value, IndexHeldError) and caught.value.process == os.getpid()
        assert len(other) == len(live)
        assert len(other.refresh()) == len(live) + 1
        writer.remove([500])
    with nd.Index.open(folder, engine="cpu") as index:
        assert len(index) == len(live)


def test_replaced_documents(tmp_path) -> None:
    texts = Texts(9)
    live = {f"d{i}": text for i, text in enumerate(texts.some(40))}
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(max_partners=2), engine="cpu") as index:
        index.add(table(list(live), list(live.values())), id_column="id")
        for _ in range(3):
            some = texts.random.sample(sorted(live), 9)
            new = {id: live[id] if texts.random.random() < 0.4 else texts.one() for id in some}
            added = index.add(table(list(new), list(new.values())), id_column="id", replace=True)
            assert (added.documents, added.replaced) == (9, 9)
            live = {id: text for id, text in live.items() if id not in new} | new
            same_as_dedup(index, live)


def test_a_reader_keeps_its_snapshot_through_merges(tmp_path) -> None:
    texts = Texts(10)
    live = {f"d{i}": text for i, text in enumerate(texts.some(30))}
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        index.add(table(list(live), list(live.values())), id_column="id", commit_every=7)
        with nd.Index.open(tmp_path / "x", engine="cpu") as reader:
            expected = reader.decide().documents.to_pylist()
            for turn in range(10):
                index.add(table([f"e{turn}"], texts.some(1)), id_column="id")
                index.compact()
            index.remove(["d0", "e3"])
            assert len(reader) == 30 and reader.decide().documents.to_pylist() == expected
            manifests = list((tmp_path / "x").glob("manifest.*"))
            assert len(manifests) == 2
            assert len(reader.refresh()) == 38
        index.add(table(["last"], ["the rest"]), id_column="id")
        assert len(list((tmp_path / "x").glob("manifest.*"))) == 1
        assert len(os.listdir(tmp_path / "x" / "segments")) == index.info()["segments"]
        index.compact()
        assert os.listdir(tmp_path / "x" / "deleted") == []


def test_files_are_added_once(tmp_path) -> None:
    texts = Texts(11).some(50)
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table(table([f"a{i}" for i in range(30)], texts[:30])), file)
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        how = {"id_column": "id", "commit_every": 8}
        assert flat(index.add, file, **how)[:1] == (30,)
        assert flat(index.add, [file], **how) == (0, 0, 0, 0, 30, 0)
        pq.write_table(pa.table(table([f"b{i}" for i in range(20)], texts[30:])), tmp_path / "b.parquet")
        assert flat(index.add, str(tmp_path / "*.parquet"), **how).already == 30
        same_as_dedup(
            index, dict(zip([*(f"a{i}" for i in range(30)), *(f"b{i}" for i in range(20))], texts, strict=True))
        )


def test_an_input_that_failed_is_gone_on_with(tmp_path) -> None:
    good = [json.dumps({"id": f"a{i}", "text": text}) for i, text in enumerate(Texts(12).some(30))]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([*good[:25], "{", *good[25:]]) + "\n")
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        how = {"id_column": "id", "commit_every": 10}
        with pytest.raises(nd.errors.InputError):
            flat(index.add, file, **how)
        done = len(index)
        if done:
            with pytest.raises(nd.errors.InputError, match="has changed since"):
                file.write_text("\n".join(good) + "\n")
                flat(index.add, file, **how)


def test_without_ids_documents_are_numbered(tmp_path) -> None:
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        index.add({"text": ["to be or not to be", "that is the question"]})
        index.add({"text": ["to be or not to go"]})
        assert index.decide().documents["id"].to_pylist() == [0, 1, 2]
        assert index.query("that is the question")["id"].to_pylist() == [1]
        assert len(index.query("Ophelia")) == 0


def test_decisions_of_what_was_added(tmp_path) -> None:
    texts = Texts(13).some(80)
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        ids = [f"d{i}" for i in range(80)]
        kept = []
        for start in (0, 50):
            some = slice(start, start + 50)
            index.add(table(ids[some], texts[some]), id_column="id", output=tmp_path / f"{start}.parquet")
            found = pq.read_table(tmp_path / f"{start}.parquet")
            assert found.column_names == ["id", "kept", "duplicate_of", "resemblance", "group"]
            kept += found["kept"].to_pylist()
            assert (found["kept"].to_numpy(zero_copy_only=False) == found["duplicate_of"].is_null().to_numpy()).all()
        decided = index.decide()
        assert kept == decided.documents["kept"].to_pylist()


def test_a_copy_of_what_was_removed_for_the_sake_of_one_that_is_gone(tmp_path) -> None:
    """What is left of the same words stands for it."""
    words = "to be or not to be that is the question whether tis nobler"
    with nd.Index.create(tmp_path / "x", recipe=recipe_of(), engine="cpu") as index:
        index.add(table(["kept", "removed"], [words, f"{words} in"]), id_column="id")
        index.remove(["kept"])
        index.add(table(["copy"], [f"{words} in"]), id_column="id", output=tmp_path / "d.parquet")
    assert pq.read_table(tmp_path / "d.parquet").to_pylist() == [
        {"id": "copy", "kept": False, "duplicate_of": "removed", "resemblance": 1.0, "group": "removed"}
    ]


def test_every_byte_of_a_file_counts(tmp_path) -> None:
    folder = tmp_path / "x"
    with nd.Index.create(folder, recipe=recipe_of(), engine="cpu") as index:
        ids = [f"d{i}" for i in range(40)]
        index.add(table(ids, Texts(14).some(40)), id_column="id")
        index.remove(["d3"])
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "writer.lock"]
    assert len(files) == 3
    for path in files:
        data = path.read_bytes()
        for place in range(0, len(data), max(1, len(data) // 40)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
            with pytest.raises(nd.NeardupError) as caught, nd.Index.open(folder, engine="cpu") as index:
                index.check()
            assert path.name in str(caught.value)
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(nd.errors.DamagedError), nd.Index.open(folder, engine="cpu") as index:
            index.check()
        path.unlink()
        with pytest.raises(nd.errors.InputError), nd.Index.open(folder, engine="cpu") as index:
            index.check()
        path.write_bytes(data)
    with nd.Index.open(folder, engine="cpu") as index:
        assert index.check()["files"] == 3


@pytest.mark.parametrize(
    ("method", "name"), [("minhash", "feature_keys"), ("exact", "posting_keys"), ("simhash", "simhash_keys")]
)
def test_damage_that_hides_what_is_there_is_an_error(method, name, tmp_path) -> None:
    """Of tables that hold zeros nothing would be found, and nothing of what is there compared."""
    asked = " ".join(f"w{i}" for i in range(200))
    with nd.Index.create(tmp_path / "x", method=method, engine="cpu") as index:
        index.add(table(["a", "b"], [asked, "to be or not to be that is the question"]), id_column="id")
        index.add(table(["c"], ["whether it is nobler in the mind to suffer"]), id_column="id")
        assert index.query(asked)["id"].to_pylist() == ["a"]
    segment = sorted((tmp_path / "x" / "segments").iterdir())[method == "exact"]  # which has a file of its order first
    data, keys = segment.read_bytes(), ArraysFile(segment, SEGMENT).arrays[name].tobytes()
    assert data.count(keys) == 1
    segment.write_bytes(data.replace(keys, bytes(len(keys))))
    for question in ({"source": asked}, {"texts": [asked, "nothing like that"]}):
        with (
            nd.Index.open(tmp_path / "x", engine="cpu") as index,
            pytest.raises(nd.errors.DamagedError, match=re.escape(segment.name)),
        ):
            flat(index.query, **question)


def test_the_commands(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(table(["a", "b", "c"], ["to be or not to be", "to be or not to be", "else"])), "a.parquet")
    Path("gone.txt").write_text("b\n")
    assert run(["index", "create", "x", "--shingle-size", "2", "--threshold", "0.5"]) == 0
    assert run(["index", "add", "x", "a.parquet", "--id-column", "id", "-o", "d.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["removed"] == 1
    assert run(["index", "query", "x", "--text", "to be or not to go", "--json"]) == 0
    *matches, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [match["id"] for match in matches] == ["a", "b"]
    assert last == {"status": "done", "output": None, "matches": 2, "notes": []}
    assert run(["index", "query", "x", "a.parquet", "-o", "m.parquet", "--id-column", "id"]) == 0
    assert pq.read_table("m.parquet").num_rows == 5
    assert run(["index", "remove", "x", "--ids", "gone.txt"]) == 0
    assert run(["index", "decide", "x", "-o", "out"]) == 0
    assert sorted(os.listdir("out")) == ["documents.parquet", "job.toml", "pairs.parquet", "report.json"]
    assert run(["index", "compact", "x"]) == run(["index", "check", "x"]) == run(["index", "info", "x"]) == 0
    for words, message in (
        (["query", "x"], "--text and INPUT"),
        (["remove", "x", "--ids", "gone.txt", "--missing", "error"], "'b' is not in the index"),
        (["create", "x"], "is an index already"),
        (["create", "y", "--method", "bottomk"], "--method bottomk"),
        (["add", "nowhere", "a.parquet"], "there is no index"),
        (["add", "x", "a.parquet", "--commit-every", "0"], "--commit-every"),
    ):
        with pytest.raises(nd.NeardupError, match=message):
            run(["index", *words])


READER = """
import sys, neardup_gpu as nd
folder, text = sys.argv[1:]
with nd.Index.open(folder, engine="cpu") as index:
    while True:
        found = index.refresh().query(text)
        print(len(index), sorted(found["id"].to_pylist()), flush=True)
        if len(index) >= 64:
            break
"""


def test_readers_in_processes_see_committed_states_alone(tmp_path) -> None:
    folder, text = tmp_path / "x", "to be or not to be that is the question"
    with nd.Index.create(folder, recipe=recipe_of(), engine="cpu") as index:
        index.add(table(["d0"], [text]), id_column="id")
        command = [sys.executable, "-c", READER, str(folder), text]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        states = {1: ["d0"]}
        for number in range(1, 64):  # every third is a copy
            states[number + 1] = sorted([*states[number], *([f"d{number}"] if number % 3 == 0 else [])])
        for number in range(1, 64):
            index.add(table([f"d{number}"], [text if number % 3 == 0 else f"other {number}"]), id_column="id")
    for reader in readers:
        out, _ = reader.communicate(timeout=120)
        assert reader.returncode == 0
        for line in out.splitlines():
            number, _, ids = line.partition(" ")
            assert ids == str(states[int(number)])
