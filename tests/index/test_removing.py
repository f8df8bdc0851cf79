"""Removing documents: ids that are unknown, erasing, take-downs with their statements, and what is decided after."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from growing import Texts, table

import neardup_gpu as nd
from neardup_gpu.cli.app import run
from neardup_gpu.index import notes_of
from neardup_gpu.index.segments import DEAD, SEGMENT
from neardup_gpu.methods.finding.order import ORDER
from neardup_gpu.store.arrays import ArraysFile

SOLILOQUY = "to be or not to be that is the question whether it is nobler in the mind to suffer the slings and arrows"
NEAR = f"{SOLILOQUY} of outrageous fortune"
OTHER = "all else is silence for ever and ever my old friend of the days that are gone"
LIVE = {"a": SOLILOQUY, "b": NEAR, "c": OTHER, "d": f"{' '.join(f'x{i}' for i in range(300))} {SOLILOQUY}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An exact index of four documents: `b` resembles `a`, and `d` contains it."""
    with nd.Index.create(tmp_path / "x", method="exact", threshold=0.5, containment=1, columns=["source"]) as index:
        rows = table(list(LIVE), list(LIVE.values())) | {"source": [f"source-{id}" for id in LIVE]}
        index.add(rows, id_column="id")
    return tmp_path / "x"


def test_a_request_to_remove_can_be_repeated(folder: Path) -> None:
    with nd.Index.open(folder) as index:
        with pytest.raises(nd.errors.InputError, match="id 'y' is not in the index, nor 1 other id; nothing"):
            index.remove(["a", "y", "z"], missing="error")
        assert len(index) == 4
        assert index.remove(["y", "a", "z"]) == (1, ["y", "z"], False)
        assert index.remove(["y", "a", "z"]) == (0, ["y", "a", "z"], False)
        assert index.remove(["b"], dry_run=True) == (1, [], False) and len(index) == 3


def test_documents_are_removed_by_uuids(tmp_path: Path) -> None:
    ids = pa.array([bytes([number] * 16) for number in range(2)], pa.uuid())
    with nd.Index.create(tmp_path / "index", method="exact") as index:
        index.add(pa.table({"id": ids, "text": ["one text", "another one"]}), id_column="id")
        assert index.remove(ids.slice(1)).documents == 1 and len(index) == 1


def test_documents_are_removed_by_the_value_of_a_column(tmp_path: Path) -> None:
    columns = {
        "source": ["x", "y", None, "x"],
        "year": pa.array([2025, 2026, 2026, None]),
        "share": pa.array([0.1, 0.5, float("nan"), 0.5]),
        "draft": pa.array([True, False, None, True]),
        "day": pa.array(["2026-01-30", "2026-01-31", None, None]).cast(pa.date32()),
    }
    with nd.Index.create(tmp_path / "x", columns=list(columns)) as index:
        index.add(table(list(range(4)), [f"text {i}" for i in range(4)]) | columns, id_column="id")
        for name, value, expected in (
            *(("source", "x", 2), ("source", "z", 0), ("year", 2026, 2), ("year", "2026", 2), ("year", 2025.5, 0)),
            *(("share", 0.5, 2), ("share", "0.1", 1), ("draft", True, 2), ("draft", "false", 1)),
            *(("day", "2026-01-31", 1),),
        ):
            assert index.remove(column=name, equals=value, dry_run=True).documents == expected, (name, value)
        assert index.remove(column="draft", equals=True) == (2, [], False)
        assert index.decide().documents["id"].to_pylist() == [1, 2]


def test_the_answer_says_which_documents_await_the_next_decision(folder: Path) -> None:
    with nd.Index.open(folder) as index:
        answer = index.query(NEAR)
        assert [(row["id"], row["kept"], row["awaits"]) for row in answer.to_pylist()] == [
            ("b", False, False),
            ("a", True, False),
        ]
        assert notes_of(answer) == []
        [explained] = index.explain(["b"]).to_pylist()
        assert explained.pop("resemblance") > 0.5
        expected = {"id": "b", "kept": False, "duplicate_of": "a", "group": "a", "awaits": False, "source": "source-b"}
        assert explained == expected
        assert "a" in index and "zz" not in index
        index.remove(["a"])
        assert "a" not in index and len(index) == 3
        with pytest.raises(nd.NeardupError, match="ids of type string, these are of type integer"):
            5 in index  # noqa: B015
        answer = index.query(NEAR)
        assert [(row["id"], row["kept"], row["awaits"]) for row in answer.to_pylist()] == [("b", False, True)]
        [note] = notes_of(answer)
        assert note["ids"] == ["b"] and "`kept` is of; `ids` await the next one" in note["note"]
        [explained] = index.explain(["zz", "b"]).to_pylist()
        assert (explained["kept"], explained["duplicate_of"], explained["awaits"]) == (False, None, True)
        assert index.decide().documents["kept"].to_pylist() == [True, True, True]
        index.compact(rebuild=True)
        assert index.explain(["b"])["kept"].to_pylist() == [True]


def test_copies_are_explained(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "x") as index:
        index.add(table(["a", "b", "c"], [SOLILOQUY] * 3), id_column="id")
        found = index.explain(["c", "a"]).select(["id", "kept", "duplicate_of", "resemblance"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [("c", False, "a", 1.0), ("a", True, None, None)]
        index.remove(["a"])
        found = index.explain(["c", "b"]).select(["id", "kept", "duplicate_of", "awaits"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [("c", False, "b", False), ("b", True, None, False)]
        assert index.query(SOLILOQUY)["kept"].to_pylist() == [True, False]


def test_decisions_need_no_file(tmp_path: Path) -> None:
    texts = Texts(3, words=60)
    live = {f"d{i}": text for i, text in enumerate(texts.some(120))}
    with nd.Index.create(tmp_path / "x", threshold=0.4) as index:
        parts = []
        for start in range(0, 120, 40):
            some = list(live)[start : start + 40]
            rows = table(some, [live[id] for id in some])
            added = index.add(rows, id_column="id", commit_every=7, output=tmp_path / f"{start}.parquet")
            assert added.decisions.read_all().equals(pa.parquet.read_table(tmp_path / f"{start}.parquet"))
            parts.append(added)
        index.remove(["d0"])  # what was decided before stays readable as it was
        found = pa.concat_tables([each.decisions.read_all() for each in parts])
        assert found["id"].to_pylist() == list(live)
    with nd.Index.create(tmp_path / "y", threshold=0.4) as again:
        again.add(table(list(live), list(live.values())), id_column="id")
        assert found["kept"].to_pylist() == again.decide().documents["kept"].to_pylist()
    assert sum(found["kept"].to_pylist()) == sum(each.kept for each in parts) < 120
    with pytest.raises(nd.errors.ParameterError, match="were not made by Index"):
        _ = nd.index.Added(0, 0, 0, 0, 0, 0).decisions


def test_an_index_refuses_another_way_of_reading(tmp_path: Path) -> None:
    page = {"id": ["p"], "body": ["<p>To be or not to be</p>"], "title": ["A page"]}
    with nd.Index.create(tmp_path / "x") as index:
        how = {"id_column": "id", "text_columns": "body", "reading": nd.Reading(html=True)}
        index.add(page, **how)
        assert index.info()["reading"] == {"html": True, "text_columns": ["body"]}
        other = page | {"id": ["q"]}
        for changed, words in (
            ({"reading": None}, "filled with html=True, and this input is read with no HTML; give html=True"),
            ({"reading": nd.Reading(html="tree")}, "read with html='tree'; give html=True"),
            ({"text_columns": "title"}, "the text of 'body', .* the text of 'title'; give text_columns='body'"),
        ):
            with pytest.raises(nd.errors.InputError, match=words):
                index.add(other, **how | changed)
        (tmp_path / "r.txt").write_text("Texts have no columns.")
        index.add(tmp_path / "r.txt")
        index.add(other, **how)
        assert len(index) == 3


# -------------------------------------------------------------------------------------------------------------- erasing


def contents(folder: Path) -> bytes:
    """All that the files of an index hold: as they are, and their arrays decoded."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        found.append(path.read_bytes())
        for kind in (SEGMENT, DEAD, ORDER):
            if kind.matches(path):
                arrays = ArraysFile(path, kind, limits=lambda _: {}).arrays
                found += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
                if "columns" in arrays:
                    columns = pa.ipc.open_file(pa.py_buffer(arrays["columns"])).read_all()
                    found.append(json.dumps(columns.to_pylist(), default=str).encode())
    return b"\n".join(found)


@pytest.mark.parametrize("method", ["exact", "minhash", "simhash"])
@pytest.mark.parametrize("commit_every", [1, 100])
def test_nothing_of_an_erased_document_is_left(method: str, commit_every: int, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    ids = {id: f"the-id-of-{id}" for id in LIVE}
    recipe = nd.Recipe(method=method, threshold=0.5)
    with nd.Index.create(folder, recipe=recipe, containment=2, columns=["source"]) as index:
        rows = table(list(ids.values()), list(LIVE.values())) | {"source": [f"the-source-of-{id}" for id in LIVE]}
        index.add(rows, id_column="id", commit_every=commit_every)
        texts = [*LIVE.values()]
        shingles = nd.stages.shingle_sets(nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe), "cpu")
        sets = {id: np.sort(shingles[row]) for row, id in enumerate(ids)}
        own = np.setdiff1d(sets["c"], np.concatenate([sets["a"], sets["b"], sets["d"]]))
        words = [own[place : place + 2].tobytes() for place in range(0, len(own), 2)]
        before = contents(folder)
        assert all(each in before for each in (ids["c"].encode(), b"the-source-of-c", sets["c"].tobytes()))
        index.remove([ids["c"]])
        assert ids["c"].encode() in contents(folder)
        assert index.remove([ids["c"]], erase=True) == (0, [ids["c"]], True)  # it is removed already, and erased now
        index.check(all=True)
        after = contents(folder)
        left = {each for each in (ids["c"].encode(), b"the-source-of-c", *words) if each in after}
        assert left == set() and ids["a"].encode() in after and b"the-source-of-b" in after
        assert index.query(LIVE["a"])["id"].to_pylist()[0] == ids["a"] and len(index.query(LIVE["c"])) == 0
        assert len(index.decide().documents) == 3


def test_the_name_of_an_erased_text_file_is_left_nowhere(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "in").mkdir(parents=True)
    for name in ("secret.txt", "other.txt", "in/third.txt"):
        (texts / name).write_text(f"the text of {name}")
    with nd.Index.create(tmp_path / "x") as index:
        index.add(texts)
        assert index.remove(["secret.txt", "in/third.txt"], erase=True).erased
        assert b"secret.txt" not in contents(tmp_path / "x") and b"other.txt" in contents(tmp_path / "x")


def test_a_reader_that_uses_older_files_is_named(folder: Path, caplog) -> None:
    with nd.Index.open(folder) as index:
        with nd.Index.open(folder) as reader:
            assert not index.remove(["c"], erase=True).erased
            assert "a reader still uses 1 older state with removed documents" in caplog.text
            assert reader.query(OTHER)["id"].to_pylist() == ["c"]
            reader.refresh()
            assert index.remove(["c"], erase=True) == (0, ["c"], True)
        assert b"source-c" not in contents(folder)


# ------------------------------------------------------------------------------------------------------------ take-down


def test_a_take_down_removes_what_resembles_or_contains(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """The rest is decided as a batch without what was taken down, and the statement is proved until it is untrue."""
    monkeypatch.chdir(tmp_path)
    Path("take.jsonl").write_text(json.dumps({"id": "t", "text": SOLILOQUY}) + "\n")
    command = ["index", "remove", "x", "--texts", "take.jsonl", "--id-column", "id"]
    assert run([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out.strip() == "3 documents of 4 would be removed"
    assert run([*command, "--statement", "s.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["removed"], said["documents"]) == (3, 1)
    facts = json.loads(Path("s.json").read_text())
    assert facts["texts"] == [{"id": "t", "sha256": hashlib.sha256(SOLILOQUY.encode()).hexdigest()}]
    assert {each["id"] for each in facts["removed"]} == {"a", "b", "d"}
    assert facts["counts"] == {"texts": 1, "removed": 3, "documents": 1} and SOLILOQUY not in Path("s.json").read_text()
    assert facts["promise"].startswith("Every document whose resemblance to a text is 0.5 or more was found.")
    assert run(["info", "s.json"]) == run(["info", "s.json", "--check"]) == 0
    assert "in which no document resembles or contains one, are as written" in capsys.readouterr().out

    Path("take.jsonl").write_text(json.dumps({"id": "t", "text": OTHER}) + "\n")
    with pytest.raises(nd.errors.DamagedError, match="the texts are not those of the statement"):
        run(["info", "s.json", "--check"])
    Path("take.jsonl").write_text(json.dumps({"id": "t", "text": SOLILOQUY}) + "\n")
    with nd.Index.open("x") as index:
        index.add({"id": ["again"], "text": [NEAR], "source": ["s"]}, id_column="id")
    with pytest.raises(nd.errors.DamagedError, match="has 1 document again that the texts find, the first is 'again'"):
        run(["info", "s.json", "--check"])
    with pytest.raises(nd.errors.OutputError, match="exists already"):
        run([*command, "--statement", "s.json"])
    assert run([*command, "--statement", "s.json", "--overwrite", "--erase"]) == 0
    removed = json.loads(Path("s.json").read_text())["removed"]
    assert {each["id_sha256"] for each in removed} == {hashlib.sha256(b"again").hexdigest()}
    assert {name for each in removed for name in each} == {"query_id", "id_sha256", "resemblance", "containment"}
    Path("s.json").write_text(Path("s.json").read_text().replace('"removed": 1', '"removed": 0'))
    with pytest.raises(nd.errors.DamagedError, match="has changed since it was written"):
        run(["info", "s.json", "--check"])


@pytest.mark.parametrize("method", ["exact", "minhash"])
def test_the_rest_is_decided_as_a_batch_without_what_was_taken_down(method: str, tmp_path: Path) -> None:
    texts = Texts(5, words=60)
    live = {f"d{i}": text for i, text in enumerate(texts.some(150))}
    with nd.Index.create(tmp_path / "x", recipe=nd.Recipe(method=method, threshold=0.4)) as index:
        index.add(table(list(live), list(live.values())), id_column="id")
        groups = index.decide().documents.to_pylist()
        group = max((row["group"] for row in groups), key=[row["group"] for row in groups].count)
        found = index.query(live[group])["id"].to_pylist()
        assert len(found) > 1
        assert index.take_down({"text": [live[group]]}).documents == len(found)
        rest = {id: text for id, text in live.items() if id not in found}
        decided = index.decide().documents.select(["id", "kept", "duplicate_of"])
        recipe = index.recipe
    again = nd.dedup(table(list(rest), list(rest.values())), id_column="id", recipe=recipe)
    assert decided.to_pylist() == again.documents.select(["id", "kept", "duplicate_of"]).to_pylist()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ([], "--ids, --before, --equals and --texts: give one of them"),
        (["--texts", "t", "--ids", "i"], "give one of them"),
        (["--ids", "i", "--statement", "s"], "--texts: the options of texts and statements belong to it"),
        (["--texts", "t", "--column", "source"], "leave out --column and --missing"),
        (["--texts", "t", "--direction", "up"], "--direction 'up' is not one of in, of, either"),
        (["--texts", "t", "--threshold", "0.1"], "--threshold 0.1: this index finds pairs at 0.5 or above"),
    ],
)
def test_what_the_command_refuses(how: list[str], words: str, folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t", "i"):
        Path(name).write_text("a\n")
    with pytest.raises(nd.errors.ParameterError, match=words):
        run(["index", "remove", "x", *how])
    assert not os.path.exists("s") and len(nd.Index.open("x")) == 4
