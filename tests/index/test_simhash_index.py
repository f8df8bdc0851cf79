"""An index by simhash decides as the job does, finds what is within the radius, and works on when it is outgrown."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
import pytest
from flat import flat
from growing import Texts, same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.stages import partners

RECIPES = {
    "near": nd.Recipe(method=nd.SimHash(radius=6)),
    "exact": nd.Recipe(method=nd.SimHash(radius=0)),
    "long": nd.Recipe(method=nd.SimHash(radius=12, bits=128, weighting="tf")),
    "crowded": nd.Recipe(method=nd.SimHash(radius=9, bucket_limit=4, bucket_probe=2)),
    "shingles": nd.Recipe(method=nd.SimHash(radius=10, elements="shingles"), shingles=nd.Shingles(2)),
    "verified": nd.Recipe(method=nd.SimHash(radius=10), threshold=0.6, shingles=nd.Shingles(2), max_partners=2),
    "verified long": nd.Recipe(method=nd.SimHash(radius=20, bits=128), threshold=0.5, shingles=nd.Shingles(2)),
}


def grown(index: nd.Index, texts: Texts, number: int) -> dict[str, str]:
    """Add documents in batches, with compactions between; what was added."""
    live: dict[str, str] = {}
    while len(live) < number:
        some = texts.some(min(number - len(live), texts.random.choice([1, 2, 5, 20, 100])))
        ids = [f"d{len(live) + i}" for i in range(len(some))]
        index.add(table(ids, some), id_column="id", commit_every=texts.random.choice([4, 30, 1000]))
        live |= dict(zip(ids, some, strict=True))
        if texts.random.random() < 0.2:
            index.compact()
    return live


@pytest.mark.parametrize("name", RECIPES)
def test_batches_decide_as_all_at_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partners, "ASKED", 2)  # so that lists are full in small crowds
    monkeypatch.setattr(partners, "MOST_ASKED", 4)
    texts = Texts(sorted(RECIPES).index(name))
    with nd.Index.create(tmp_path / "x", recipe=RECIPES[name], expected=200, engine="cpu") as index:
        live = grown(index, texts, 200)
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            same_as_dedup(index, live, **how)
        assert index.decide().report["counts"]["removed"] > 20
        gone = texts.random.sample(sorted(live), 40)
        index.remove(gone)
        live = {id: text for id, text in live.items() if id not in gone}
        same_as_dedup(index, live)
        index.add(table(["new", "other"], [live["d1" if "d1" in live else next(iter(live))], ""]), id_column="id")
        live |= {"new": live["d1" if "d1" in live else next(iter(live))], "other": ""}
        index.compact()
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            same_as_dedup(index, live, **how)
        index.check()


def distances(texts: list[str], recipe: nd.Recipe) -> tuple[np.ndarray, np.ndarray]:
    """(bits in which the simhashes of each two texts differ, whether each text has words)."""
    tokens = nd.stages.tokenize(texts, recipe)
    made = recipe.method.sketch(tokens, seed=recipe.seed)
    return np.bitwise_count(made[:, None] ^ made[None, :]).astype(int), tokens.sizes > 0


def test_queries_are_all_within_the_radius(tmp_path: Path) -> None:
    texts, recipe = Texts(20), nd.Recipe(method=nd.SimHash(radius=12))
    made = texts.some(150)
    with nd.Index.create(tmp_path / "x", recipe=recipe, expected=100, engine="cpu") as index:
        index.add(table(list(range(150)), made), id_column="id", commit_every=40)
        index.remove(list(range(0, 150, 7)))
        asked = [*made[::9], *texts.some(20), ""]
        apart, present = distances([*made, *asked], recipe)
        live = [row for row in range(150) if row % 7 and present[row]]
        met = 0
        for radius in (12, 5, 0):
            found = index.query(table(list(range(len(asked))), asked), id_column="id", radius=radius).to_pylist()
            for number in range(len(asked)):
                mine = [(each["id"], each["distance"]) for each in found if each["query_id"] == number]
                bits = apart[150 + number]
                near = [row for row in live if bits[row] <= radius and present[150 + number]]
                assert mine == [(row, bits[row]) for row in sorted(near, key=lambda row: (bits[row], row))]
                met += len(mine)
        assert met > 150
        of_one = index.query(made[1], nearest=1).to_pylist()[0]
        assert of_one == {
            "query_id": 0,
            "id": 1,
            "cosine": 1.0,
            "low": of_one["low"],
            "high": 1.0,
            "exact": False,
            "kept": of_one["kept"],
            "awaits": of_one["awaits"],
            "distance": 0,
        }
        assert 0.9 < of_one["low"] < 1


def test_what_is_asked_has_to_be_told(tmp_path: Path) -> None:
    with nd.Index.create(tmp_path / "x", method=nd.SimHash(radius=4), engine="cpu") as index:
        index.add({"text": ["to be or not to be"]})
        with pytest.raises(
            nd.errors.ParameterError, match="radius 5: the index was made with radius 4 and finds no farther"
        ):
            index.query("to be", radius=5)
        with pytest.raises(nd.errors.ParameterError, match=r"threshold 0.5: the index verifies nothing"):
            index.query("to be", threshold=0.5)
        assert index.query("to be or not to be", radius=4)["distance"].to_pylist() == [0]
    refused = pytest.raises(nd.errors.ParameterError, match="radius 3: the index finds by minhash; ask for a threshold")
    with nd.Index.create(tmp_path / "y", engine="cpu") as index, refused:
        index.query("to be", radius=3)
    with pytest.raises(nd.errors.ParameterError, match="an index cannot count all documents first"):
        nd.Index.create(tmp_path / "z", method=nd.SimHash(weighting="tfidf"))
    with pytest.raises(nd.errors.ParameterError, match="sets: "):
        nd.Index.create(tmp_path / "z", method="simhash", sets=True)
    with pytest.raises(nd.errors.ParameterError, match="expected must be between 1"):
        nd.Index.create(tmp_path / "z", method="simhash", expected=0)
    assert not (tmp_path / "z").exists()


def test_verified_queries_tell_resemblance_and_distance(tmp_path: Path) -> None:
    near = "to be or not to be that is the question"
    how = {"method": nd.SimHash(radius=32), "threshold": 0.5, "shingle_size": 2}
    with flat(nd.Index.create, tmp_path / "x", **how, engine="cpu") as index:
        index.add(table(["a", "b", "c"], [near, f"{near} indeed", "to be"]), id_column="id")
        found = index.query(near).to_pylist()
        assert [(each["id"], each["resemblance"], each["exact"]) for each in found] == [
            ("a", 1.0, True),
            ("b", 8 / 9, True),
        ]
        assert found[0]["distance"] == 0 < found[1]["distance"] <= 32
        assert index.query(near, threshold=0.9)["id"].to_pylist() == index.query(near, radius=0)["id"].to_pylist()


def test_one_crowd_in_an_index_that_is_outgrown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Texts of the same words have one simhash: each is met by the next in every table, of which there is one."""
    random, words = Random(22), [f"w{i}" for i in range(30)]
    texts = [" ".join(random.sample(words, 30)) + " w0" * (i % 4 == 3 and i % 29) for i in range(500)]
    live = {f"d{i}": text for i, text in enumerate(texts)}
    recipe = nd.Recipe(method=nd.SimHash(radius=2, weighting="tf", bucket_limit=3, bucket_probe=1), max_partners=2)
    with nd.Index.create(tmp_path / "x", recipe=recipe, expected=1, engine="cpu") as index:
        index.add(table(list(live), list(live.values())), id_column="id", commit_every=300)
        assert index.info()["segments"] > 1
        assert index.info()["expected"] == 1 < index.info()["entries"]
        assert "entries in tables for 1: they miss nothing" in caplog.text
        same_as_dedup(index, live)
        same_as_dedup(index, live, keep="longest", cluster="components")
        apart, _ = distances(texts, recipe)
        found = index.query(texts[0])["id"].to_pylist()
        assert sorted(found) == sorted(f"d{row}" for row in np.flatnonzero(apart[0] <= 2))
        assert len(found) > 256  # more than are looked at together


def test_decisions_of_what_was_added(tmp_path: Path) -> None:
    texts = Texts(21).some(90)
    with nd.Index.create(tmp_path / "x", method=nd.SimHash(radius=6), engine="cpu") as index:
        kept = []
        for start in (0, 50):
            some = slice(start, start + 50)
            ids = [f"d{i}" for i in range(90)][some]
            index.add(table(ids, texts[some]), id_column="id", output=tmp_path / f"{start}.parquet")
            found = pq.read_table(tmp_path / f"{start}.parquet")
            assert found.column_names == ["id", "kept", "duplicate_of", "resemblance", "group", "distance"]
            for row in found.to_pylist():
                kept.append(row["kept"])
                assert row["kept"] == (row["duplicate_of"] is None) == (row["distance"] is None)
                assert row["resemblance"] is None or (row["resemblance"] == 1 and row["distance"] == 0)
                assert row["kept"] or row["distance"] <= 6
        assert kept == index.decide().documents["kept"].to_pylist()


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("a", "to be or not to be that is the question"), ("b", "that is the question to be or not to be")]
    Path("d.jsonl").write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in rows))
    assert cli.main(["index", "create", "x", "--method", "simhash", "--radius", "4", "--expected", "1000"]) == 0
    assert cli.main(["index", "add", "x", "d.jsonl", "--id-column", "id"]) == 0
    assert cli.main(["index", "info", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["expected"] == 1000
    assert cli.main(["index", "query", "x", "--text", rows[0][1], "--radius", "0"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["query_id", "id", "cosine", "kept", "distance"]
    assert cli.main(["index", "decide", "x", "-o", "out"]) == 0 and cli.main(["info", "out"]) == 0
    assert "1 removed by their simhash alone, without a resemblance" in capsys.readouterr().out
    before = sorted(path.name for path in Path("x").rglob("*"))
    for words, message in (
        (["--radius", "5"], "--radius 5: the index was made with radius 4"),
        (["--threshold", "0.5"], "--threshold 0.5: the index verifies nothing"),
    ):
        assert cli.main(["index", "query", "x", "--text", "to be", *words]) == 2
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
    assert sorted(path.name for path in Path("x").rglob("*")) == before
