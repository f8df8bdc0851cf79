"""Documents of too unlike lengths are no pair: by brute force, in tasks, and by every method."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import given, settings
from rule import check, expected

from neardup_gpu import Recipe, Shingles, Workers, dedup
from neardup_gpu.errors import ParameterError

texts = st.lists(st.lists(st.sampled_from("abc"), max_size=12).map(" ".join), min_size=1, max_size=25)
ratios = st.sampled_from([0.25, 0.5, 0.6, 0.75, 0.9, 1.0])


@settings(max_examples=fewer(60), deadline=None)
@given(
    drawn=texts,
    known=texts,
    ratio=ratios,
    method=st.sampled_from(["exact", "containment"]),
    cluster=st.sampled_from(["greedy", "components"]),
    most=st.sampled_from([1, 2, None]),
)
def test_pairs_of_unlike_lengths_do_not_count(
    drawn: list[str], known: list[str], ratio: float, method: str, cluster: str, most: int | None
) -> None:
    recipe = Recipe(
        shingles=Shingles(1), method=method, threshold=0.5, length_ratio=ratio, cluster=cluster, max_partners=most
    )
    reference = {"id": [f"r{i}" for i in range(len(known))], "text": known}
    found = dedup({"id": range(len(drawn)), "text": drawn}, id_column="id", text_columns="text", recipe=recipe)
    check(found, expected([*enumerate(drawn)], recipe))
    ids = [f"d{i}" for i in range(len(drawn))]
    inputs: Any = {"against": reference, "id_column": "id", "text_columns": "text"}
    found = dedup({"id": ids, "text": drawn}, **inputs, recipe=recipe)
    pairs = zip(reference["id"], known, strict=True)
    check(found, expected([*zip(ids, drawn, strict=True)], recipe, pairs))


def repeating() -> pa.Table:
    """Texts of the same words, said once to nine times."""
    rng = np.random.default_rng(3)
    words = [" ".join(rng.choice(list("abcdefgh"), 8)) for _ in range(7)]
    said = [" ".join([words[row % 7]] * (1 + row % 9)) for row in range(180)]
    return pa.table({"id": np.arange(len(said)), "text": said})


@pytest.mark.parametrize("method", ["exact", "bottomk", "simhash"])
def test_tasks_decide_as_memory_does(method: str, tmp_path: Path) -> None:
    pq.write_table(repeating(), tmp_path / "a.parquet", row_group_size=40)
    threshold = None if method == "simhash" else 0.5
    recipe = Recipe(shingles=Shingles(2), method=method, threshold=threshold, length_ratio=0.7)
    workers = Workers(work_dir=tmp_path / "work", number=1, slice_bytes=4000, partitions=3)
    inputs: Any = {"id_column": "id", "text_columns": "text", "against": repeating().slice(0, 30)}
    found = dedup(tmp_path / "a.parquet", **inputs, output=tmp_path / "out", recipe=recipe, workers=workers)
    here = dedup(tmp_path / "a.parquet", **inputs, recipe=recipe)
    assert found.documents.equals(here.documents) and found.pairs.equals(here.pairs)
    loose = dedup(tmp_path / "a.parquet", **inputs, recipe=recipe.with_(length_ratio=None))
    assert len(found.removed) < len(loose.removed)
    lengths = {row["id"]: len(row["text"].split()) for row in repeating().to_pylist()}
    for row in found.pairs.to_pylist():
        sizes = lengths[row["id_a"]], lengths[row["id_b"]]
        assert min(sizes) / max(sizes) >= 0.7


def test_a_check_of_recall_compares_no_other_pairs() -> None:
    recipe = Recipe(shingles=Shingles(2), method="minhash", threshold=0.5, length_ratio=0.7)
    sampled = dedup(repeating(), id_column="id", text_columns="text", recipe=recipe).report["recall"]["sampled"]
    assert sampled["recall"] == 1.0 and sampled["one_removed"]["share"] == 1.0


@pytest.mark.parametrize("ratio", [0, -0.5, 1.5, float("nan"), True, "much"])
def test_a_ratio_is_a_share(ratio: Any) -> None:
    with pytest.raises((ParameterError, TypeError), match="length_ratio"):
        Recipe(length_ratio=ratio)
