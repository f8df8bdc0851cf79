"""An index without common shingles decides as `dedup` of the same documents, and answers as a dictionary of counts."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rule import jaccard
from witnesses import token_strings

from neardup_gpu import Recipe, Shingles, dedup
from neardup_gpu.cli.app import app
from neardup_gpu.errors import ParameterError
from neardup_gpu.index import Index
from neardup_gpu.sketches import Frequencies

INPUT: Any = {"id_column": "id", "text_columns": "text"}


def table_of(number: int, name: str, seed: int) -> pa.Table:
    """Short texts of few words, so that many are copies, near-duplicates, or have common words alone."""
    random = np.random.default_rng(seed)
    weights = np.array([8, 6, 3, 2, 1, 1, 1, 1]) / 23
    words = [random.choice(list("abcdefgh"), random.integers(0, 7), p=weights) for _ in range(number)]
    sites = pa.array(random.choice(["x", "y", None], number), pa.string())
    return pa.table(
        {"id": [f"{name}{row}" for row in range(number)], "text": list(map(" ".join, words)), "site": sites}
    )


def words_of(text: str) -> set[str]:
    return set(token_strings(text))


def same_decisions(index: Index, table: pa.Table, recipe: Recipe, **how: Any) -> None:
    """Compare what an index decides with `dedup` of its live documents."""
    found, expected = index.decide(**how), dedup(table, recipe=recipe.with_(**how), **INPUT)
    assert found.recipe == expected.recipe and found.frequencies.digest == expected.frequencies.digest
    names = ["id", "kept", "duplicate_of", "resemblance"]
    assert found.documents.select(names).to_pylist() == expected.documents.select(names).to_pylist()
    names = ["id_a", "id_b", "resemblance"]
    assert found.pairs.select(names).to_pylist() == expected.pairs.select(names).to_pylist()
    for name in ("common_shingles", "only_common", "kept", "removed", "verified_pairs"):
        assert found.report["counts"][name] == expected.report["counts"][name] > 0


@pytest.mark.parametrize(("bound", "kind", "within"), [(0.2, "set", ()), (6, "bag", ("site",))])
def test_decisions_are_those_of_dedup_as_the_index_grows(tmp_path: Path, bound: float, kind: str, within: Any) -> None:
    recipe = Recipe(shingles=Shingles(1, kind), threshold=0.5, ignore_common=bound, within=within)
    one, two = table_of(90, "a", 1), table_of(110, "b", 2)
    with Index.create(tmp_path / "index", recipe=recipe) as index:
        added = index.add(one, **INPUT, commit_every=7)
        assert (added.kept, added.removed) == (90, 0)
        same_decisions(index, one, recipe)
        index.add(two, **INPUT, commit_every=30)
        both = pa.concat_tables([one, two])
        same_decisions(index, both, recipe, keep="longest")
        gone = [f"a{row}" for row in range(0, 90, 4)]
        index.remove(gone)
        live = both.filter(pc.invert(pc.is_in(both["id"], pa.array(gone))))
        same_decisions(index, live, recipe, cluster="components")
        index.compact()
        index.copy(tmp_path / "copy")
        index.check(all=True)
    with Index.open(tmp_path / "copy") as copy:
        assert copy.recipe == recipe
        same_decisions(copy, live, recipe)
        found = copy.decide(output=tmp_path / "out")
    assert Frequencies.load(tmp_path / "out" / "frequencies.parquet").digest == found.recipe.ignored


def test_queries_leave_out_the_common_shingles_of_the_index(tmp_path: Path) -> None:
    recipe = Recipe(shingles=Shingles(1), threshold=0.5, ignore_common=40)
    table, queries = table_of(150, "d", 3), table_of(20, "q", 4)
    with Index.create(tmp_path / "index", recipe=recipe) as index:
        for number in (0, 1):  # what was asked before the index grew is not what is common now
            index.add(table.slice(75 * number, 75), **INPUT)
            answer = index.query(queries.select(["id", "text"]), **INPUT)
            live = table.slice(0, 75 * (number + 1))
            sets = {row["id"]: words_of(row["text"]) for row in live.to_pylist()}
            counted = Counter(shingle for each in sets.values() for shingle in each)
            common = {shingle for shingle, documents in counted.items() if documents > 40}
            expected = {}
            for row in queries.to_pylist():
                mine = words_of(row["text"]) - common
                for id, each in sets.items():
                    if mine and (value := jaccard(mine, each - common)) >= 0.5:
                        expected[row["id"], id] = value
            found = {(row["query_id"], row["id"]): row["resemblance"] for row in answer.to_pylist()}
            assert found == expected and len(found) > 20 and len(common) > number
            assert answer["kept"].null_count == len(answer)


def test_what_an_index_cannot_do_without_common_shingles_is_refused(tmp_path: Path, capsys: Any) -> None:
    words = ["index", "create", str(tmp_path / "index"), "--method", "exact", "--ignore-common", "0.5"]
    app(words, result_action="return_value")
    with Index.open(tmp_path / "index") as index:
        assert index.recipe.ignore_common == 0.5
        added = index.add({"id": ["a"], "text": ["to be or not to be"]}, **INPUT)
        refused = (lambda: added.decisions, lambda: index.explain(["a"]))
        for call in (*refused, lambda: index.add({"id": ["b"], "text": ["to be"]}, **INPUT, output=tmp_path / "out")):
            with pytest.raises(ParameterError, match="call decide"):
                call()
        assert len(index) == 1 and not (tmp_path / "out").exists()
    recipe = Recipe(method="exact", ignore_common=10)
    with pytest.raises(ParameterError, match="ignore_common and containment"):
        Index.create(tmp_path / "other", recipe=recipe, containment=16)
    assert not (tmp_path / "other").exists()
