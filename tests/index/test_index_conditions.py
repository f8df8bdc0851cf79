"""An index whose documents are compared only with some others: it decides as `dedup` does, and finds no others."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu import Index, MinHash, Recipe, Shingles, SimHash, dedup
from neardup_gpu.errors import InputError, ParameterError

SETTINGS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "exact": ("exact", 0.5, {"containment": 1}),
    "minhash": (MinHash(k=6, s=2), 0.5, {}),
    "minhash without sets": (MinHash(k=6, s=2), 0.5, {"sets": False}),
    "simhash": (SimHash(radius=4), None, {}),
}


def documents() -> pa.Table:
    """Documents of which many are alike, also with other values, and some have no value."""
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(list("abcdef"), 10)) for _ in range(12)]
    rows = [(text, site) for text in texts for site in ("x", "y", None) for _ in range(3)]
    rows = [rows[row] for row in rng.permutation(len(rows)).tolist()]
    changed = [" ".join([*text.split()[:-1], "z"]) if row % 3 == 0 else text for row, (text, _) in enumerate(rows)]
    sites = pa.array([site for _, site in rows], pa.string())
    return pa.table({"id": np.arange(len(rows)), "text": changed, "site": sites})


def rows(found: pa.Table) -> Counter[str]:
    """The rows of a table; an index does not know which texts of the same words are identical."""
    return Counter(repr(row) for row in found.drop([name for name in found.column_names if name == "kind"]).to_pylist())


@pytest.mark.parametrize("name", SETTINGS)
def test_documents_of_other_values_are_never_found(name: str, tmp_path: Path) -> None:
    method, threshold, keeps = SETTINGS[name]
    recipe = Recipe(shingles=Shingles(2), method=method, threshold=threshold, within="site")
    whole, inputs = documents(), {"id_column": "id", "text_columns": "text"}
    with Index.create(tmp_path / "index", recipe=recipe, **keeps) as index:
        for first in (0, 40, 80):
            index.add(whole.slice(first, 40), **inputs)
        index.check()
        found = index.query(whole, **inputs)
        site = dict(zip(whole["id"].to_pylist(), whole["site"].to_pylist(), strict=True))
        pairs = [(row["query_id"], row["id"]) for row in found.to_pylist()]
        assert pairs and all(site[a] == site[b] is not None for a, b in pairs)
        decided, expected = index.decide(), dedup(whole, **inputs, recipe=recipe)
        if "sets" not in keeps:  # without them, resemblance is estimated
            assert rows(decided.documents) == rows(expected.documents)
            assert rows(decided.pairs) == rows(expected.pairs)
        assert decided.report["counts"]["without_value"] == expected.report["counts"]["without_value"] > 0
        assert "without a value" in decided._repr_html_()
        index.compact(rebuild=True)
        again = index.query(whole, **inputs)
        assert rows(again) == rows(found)
        assert rows(index.decide().documents) == rows(decided.documents)
        if "containment" in keeps:
            inside = index.query(whole, containment=0.9, **inputs)
            assert all(site[row["query_id"]] == site[row["id"]] for row in inside.to_pylist() if row["id"] is not None)
        with pytest.raises(ParameterError, match="within site: one text has no value"):
            index.query("a b c")
        with pytest.raises(InputError, match="no column 'site'"):
            index.query({"id": [1], "text": ["a b c"]}, **inputs)
        with pytest.raises(InputError, match="no column 'site'"):
            index.add({"id": [1000], "text": ["a b c"]}, **inputs)
        with pytest.raises(InputError, match=r"no column 'site'.*within="):
            index.take_down({"id": [1], "text": ["a b c"]}, **inputs)


@pytest.mark.parametrize("name", SETTINGS)
def test_documents_of_unlike_lengths_are_never_found(name: str, tmp_path: Path) -> None:
    method, threshold, keeps = SETTINGS[name]
    recipe = Recipe(shingles=Shingles(2), method=method, threshold=threshold, length_ratio=0.7)
    said = [" ".join(["to be or not to be that is the question"] * (1 + row % 7)) for row in range(40)]
    whole, inputs = {"id": range(40), "text": said}, {"id_column": "id", "text_columns": "text"}
    with Index.create(tmp_path / "index", recipe=recipe, **keeps) as index:
        index.add({"id": range(20), "text": said[:20]}, **inputs)
        index.add({"id": range(20, 40), "text": said[20:]}, **inputs)
        lengths = [len(text.split()) for text in said]
        found = [(row["query_id"], row["id"]) for row in index.query(whole, **inputs).to_pylist()]
        ratios = [min(lengths[a], lengths[b]) / max(lengths[a], lengths[b]) for a, b in found]
        assert min(ratios) >= 0.7 and len(set(ratios)) > 2
        decided, expected = index.decide(keep="longest"), dedup(whole, **inputs, recipe=recipe.with_(keep="longest"))
        if "sets" not in keeps:
            assert rows(decided.documents) == rows(expected.documents)
            assert rows(decided.pairs) == rows(expected.pairs)
