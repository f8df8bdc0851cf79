"""Sketches of units: files, pairs and clusters name the parts, and agree with sketches of rows of units."""

import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import Recipe, Unit, errors
from neardup_gpu.cli import main
from neardup_gpu.sketches import clusters, pairs, sketch

TEXTS = [
    "the quick brown fox jumps over the lazy dog\nnothing like it\n\n}",
    "",
    "a line of its own here\nthe quick brown fox jumps over the lazy dog again\n"
    "THE quick brown fox jumps over the lazy dog",
    "the quick brown fox jumps over the lazy dog\nthe quick brown fox jumps over the lazy dog",
]


@pytest.mark.parametrize("method", ["minhash", "bottomk", "modm", "simhash"])
def test_pairs_of_units_are_those_of_rows(tmp_path, method):
    recipe = Recipe(method=method, unit=Unit("line", inside=True))
    counts = sketch({"text": TEXTS}, tmp_path / "units.parquet", recipe=recipe)
    assert (counts["documents"], counts["units"], counts["empty"]) == (4, 8, 1)
    stored = pq.read_table(tmp_path / "units.parquet")
    assert stored.column_names[:5] == ["id", "unit", "begin", "end", "num_tokens"]
    places = [tuple(row.values()) for row in stored.select(["id", "unit", "begin", "end"]).to_pylist()]
    lines = [TEXTS[id][begin:end] for id, _, begin, end in places]
    sketch({"text": lines}, tmp_path / "rows.parquet", recipe=recipe.with_(unit="document"))
    assert stored.drop_columns(["id", "unit", "begin", "end"]).equals(
        pq.read_table(tmp_path / "rows.parquet").drop_columns(["id"])
    )
    found, rows = pairs(tmp_path / "units.parquet"), pairs(tmp_path / "rows.parquet")
    assert found.num_rows == rows.num_rows > 3
    for side in "ab":
        named = zip(*(found[f"{name}_{side}"].to_pylist() for name in ("id", "unit", "begin", "end")), strict=True)
        assert list(named) == [places[row] for row in rows[f"id_{side}"].to_pylist()]
    apart = sketch({"text": TEXTS}, tmp_path / "apart.parquet", recipe=recipe.with_(unit="line"))
    assert apart["units"] == 8
    others = pairs(tmp_path / "apart.parquet")
    kept = [row for row in found.to_pylist() if row["id_a"] != row["id_b"]]
    assert others.to_pylist() == kept
    with pytest.raises(errors.RecipeMismatchError, match="unit"):
        pairs([tmp_path / "rows.parquet", tmp_path / "units.parquet"])


def test_clusters_name_the_parts(tmp_path):
    recipe = Recipe(method="bottomk", unit=Unit("line", min_words=4))
    sketch({"text": TEXTS, "id": list("abcd")}, tmp_path / "u.parquet", id_column="id", recipe=recipe)
    found = clusters(tmp_path / "u.parquet").to_pylist()
    assert [row["cluster"] is None for row in found] == [False, True, True, False, False, False, False, False]
    assert {(row["founder"], row["founder_unit"]) for row in found if row["founder"] == "a"} == {("a", 0)}
    assert all(row["founder_unit"] == row["unit"] for row in found if row["founder"] == row["id"])


def test_parts_are_clustered_within_values(tmp_path):
    line = "the quick brown fox jumps over the lazy dog"
    table = {"text": [f"none of it\n{line}", line, line, line], "site": ["x", "y", "x", "y"], "id": list("abcd")}
    recipe = Recipe(method="bottomk", unit="line", within="site")
    sketch(table, tmp_path / "u.parquet", id_column="id", text_columns="text", recipe=recipe)
    found = [(row["founder"], row["founder_unit"]) for row in clusters(tmp_path / "u.parquet").to_pylist()]
    assert found == [("a", 0), ("a", 1), ("b", 0), ("a", 1), ("b", 0)]
    named = pairs(tmp_path / "u.parquet").select(["id_a", "unit_a", "id_b", "unit_b"]).to_pylist()
    assert [tuple(row.values()) for row in named] == [("a", 1, "c", 0), ("b", 0, "d", 0)]


def test_command_line(tmp_path):
    pq.write_table(nd.open_documents({"text": TEXTS})._readers[0].source, tmp_path / "a.parquet")
    flags = ["--unit", "window:5/2", "--method", "minhash", "-o", str(tmp_path / "s.parquet")]
    assert main(["sketch", str(tmp_path / "a.parquet"), *flags, "-q"]) == 0
    assert main(["pairs", str(tmp_path / "s.parquet"), "-o", str(tmp_path / "p.parquet"), "-q"]) == 0
    assert "unit_a" in pq.read_table(tmp_path / "p.parquet").column_names
    tasks = ["--work-dir", str(tmp_path / "w"), "--workers", "1", "-o", str(tmp_path / "t.parquet")]
    assert main(["sketch", str(tmp_path / "a.parquet"), *flags[:-2], *tasks, "-q"]) == 0
    assert (tmp_path / "t.parquet").read_bytes() == (tmp_path / "s.parquet").read_bytes()
