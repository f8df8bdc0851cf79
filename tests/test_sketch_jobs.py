"""Sketch files and the pairs found in them: those of a whole job, estimated within the bounds of theory."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from versions import corpus

from neardup_gpu import MinHash, Recipe, SimHash, arrow_versions, dedup, papers
from neardup_gpu.errors import (
    DamagedError,
    InputError,
    ParameterError,
    RecipeMismatchError,
)
from neardup_gpu.hamming.files import open_fingerprints
from neardup_gpu.results.sketch_files import arrays_of, read_sketches
from neardup_gpu.sketches import pairs, sketch


@pytest.fixture(scope="module")
def table():
    return corpus()


@pytest.fixture(scope="module")
def result(table):
    return dedup(table, id_column="id", method="minhash")


class TestSketches:
    def test_round_trip(self, table, result, tmp_path):
        counts = sketch(table, tmp_path / "s.parquet", id_column="id")
        assert counts["documents"] == len(table)
        found = pairs(tmp_path / "s.parquet", tmp_path / "p.parquet")
        assert pq.read_table(tmp_path / "p.parquet").to_pylist() == found.to_pylist()
        assert (
            found.num_rows
            == result.report["counts"]["candidate_pairs"]
            + len(result.pairs)
            - result.report["counts"]["verified_pairs"]
        )
        estimates = {(p["id_a"], p["id_b"]): p for p in found.to_pylist()}
        for pair in result.pairs.to_pylist():
            estimate = estimates[pair["id_a"], pair["id_b"]]
            assert estimate["low"] <= estimate["estimate"] <= estimate["high"]
            if pair["resemblance"] == 1:
                assert estimate["estimate"] == 1
        # Each estimate is the mean of `samples` values; the union bound over the pairs makes the failure 1e-9 in all.
        bound = papers.hoeffding(result.recipe.method.filter.samples, 1e-9 / len(result.pairs))
        assert all(
            abs(estimates[p["id_a"], p["id_b"]]["estimate"] - p["resemblance"]) <= bound
            for p in result.pairs.to_pylist()
        )

    @pytest.mark.parametrize("method", ["minhash", "bottomk", SimHash(bits=128)], ids=str)
    def test_files_of_older_pyarrow(self, method, tmp_path, monkeypatch):
        """They hold lists of any length where a document has no words, and are read as others are."""
        texts, path = ["a b c d e f g", "", "a b c d e f g h", "x y z"], tmp_path / "old.parquet"
        with monkeypatch.context() as patch:
            patch.setattr(arrow_versions, "has_null_lists", lambda: False)
            sketch({"text": texts}, method=method, output=path)
        kinds = pq.read_schema(path).types
        assert any(map(pa.types.is_large_list, kinds))
        table, recipe = read_sketches([path])
        rows, _, _, columns = arrays_of(table, recipe, [path])
        assert rows.tolist() == [0, 2, 3]
        sketch({"text": [text for text in texts if text]}, method=method, output=tmp_path / "full.parquet")
        full = arrays_of(*read_sketches([tmp_path / "full.parquet"]), [tmp_path / "full.parquet"])[3]
        for name, values in columns.items():
            assert values.tolist() == full[name].tolist(), name
        if isinstance(method, SimHash):
            old, new = (open_fingerprints(tmp_path / f"{name}.parquet").read() for name in ("old", "full"))
            assert (old.fingerprints.tolist(), old.num_null) == (new.fingerprints.tolist(), 1)

    def test_lists_of_a_wrong_length(self, tmp_path):
        sketch({"text": ["a b c d e f g", "", "x y z"]}, method=SimHash(bits=128), output=tmp_path / "s.parquet")
        table = pq.read_table(tmp_path / "s.parquet")
        wrong = pa.array([[1, 2], None, [3]], pa.large_list(pa.uint64()))
        table = table.set_column(table.column_names.index("simhash"), "simhash", wrong)
        pq.write_table(table, tmp_path / "wrong.parquet")
        with pytest.raises(DamagedError, match=r"wrong\.parquet: is not as its recipe makes it .*; sketch it again"):
            read_sketches([tmp_path / "wrong.parquet"])
        with pytest.raises(InputError, match=r"wrong\.parquet: column 'simhash' has lists of other lengths than 2"):
            open_fingerprints(tmp_path / "wrong.parquet").read()

    def test_several_files_are_one(self, table, tmp_path):
        half = len(table) // 2
        sketch(table, tmp_path / "all.parquet", id_column="id")
        sketch(table.slice(0, half), tmp_path / "a.parquet", id_column="id")
        sketch(table.slice(half), tmp_path / "b.parquet", id_column="id")
        together = pairs([tmp_path / "a.parquet", tmp_path / "b.parquet"])
        assert together.to_pylist() == pairs(tmp_path / "all.parquet").to_pylist()

    def test_threshold_and_r(self, table, tmp_path):
        sketch(table, tmp_path / "s.parquet", id_column="id", method=MinHash(filter="6,5,2"))
        every = pairs(tmp_path / "s.parquet")
        high = pairs(tmp_path / "s.parquet", threshold=0.9)
        assert high.to_pylist() == [p for p in every.to_pylist() if p["estimate"] >= 0.9]
        strict = pairs(tmp_path / "s.parquet", r=5)
        assert 0 < len(strict) < len(every)
        assert {tuple(p.values()) for p in strict.to_pylist()} < {tuple(p.values()) for p in every.to_pylist()}

    @pytest.mark.parametrize("change", [{"seed": 2}, {"shingle_size": 4}, {"bits": 64}, {"filter": (3, 4, 1)}])
    def test_other_recipes(self, table, tmp_path, change):
        recipe = Recipe(method="minhash", threshold=0.8)
        sketch(table.slice(0, 20), tmp_path / "a.parquet", id_column="id", recipe=recipe)
        sketch(table.slice(20, 20), tmp_path / "b.parquet", id_column="id", recipe=recipe.with_(**change))
        with pytest.raises(RecipeMismatchError, match=r"b\.parquet: made with .*a\.parquet with .*; sketch them alike"):
            pairs([tmp_path / "a.parquet", tmp_path / "b.parquet"])

    def test_repeated_ids(self, table, tmp_path):
        for name in ("a.parquet", "b.parquet"):
            sketch(table, tmp_path / name, id_column="id")
        with pytest.raises(InputError, match="is there more than once"):
            pairs([tmp_path / "a.parquet", tmp_path / "b.parquet"])

    def test_what_is_no_sketch(self, table, tmp_path):
        pq.write_table(table, tmp_path / "t.parquet")
        (tmp_path / "x.parquet").write_bytes(b"PAR1")
        for name, message in (("t", "no column 'num_tokens'"), ("x", "cannot be read"), ("missing", "no such file")):
            with pytest.raises(InputError, match=message):
                pairs(tmp_path / f"{name}.parquet")
        with pytest.raises(ParameterError, match="sketches: none given"):
            pairs([])

    def test_only_empty_documents(self, tmp_path):
        sketch(pa.table({"text": ["", None]}), tmp_path / "s.parquet")
        assert len(pairs(tmp_path / "s.parquet")) == 0


def test_documents_of_one_simhash_are_not_sure_to_be_alike(tmp_path):
    """Unlike documents of one sequence of tokens, which min-hash sketches know by its hash."""
    options = {"texts": ["x", "x x x y"], "output": tmp_path / "s.parquet"}
    flat(sketch, **options, method=SimHash(weighting="tf", radius=0))
    (row,) = pairs(tmp_path / "s.parquet").to_pylist()
    assert row["distance"] == 0
    assert row["low"] < row["cosine"] == row["high"] == 1
