"""What every method of `METHODS` keeps to, whatever it is: a new one is tried without a line here."""

import random

import numpy as np
import pyarrow.parquet as pq
import pytest

from neardup_gpu import METHODS, MinHash, OutputError, Recipe, dedup, pairs, shingle, sketch, tokenize
from neardup_gpu.engine.pieces import Numbers
from neardup_gpu.methods.contract import merged

NAMES = list(METHODS)


def texts(seed=5):
    draw = random.Random(seed)
    words = [f"w{i}" for i in range(400)]
    found = []
    for _ in range(40):
        page = draw.choices(words, k=draw.randrange(6, 80))
        found += [" ".join(page), " ".join([*page[:-1], "other"])][: draw.randrange(1, 3)]
    return [*found, "", found[0]]


def elements(recipe, backend=None):
    tokens = tokenize(texts(), recipe, backend=backend)
    return tokens if recipe.method.elements == "tokens" else shingle(tokens, recipe, backend=backend)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_stored_whole(name):
    recipe = Recipe(method=name, threshold=0.7, seed=9, keep="longest").with_(shingle_size=3, bucket_limit=99)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert (
        recipe.method.describe().keys().isdisjoint({"threshold", "keep", "cluster", "seed", "shingle_size", "method"})
    )
    assert set(recipe.method.sketching()) <= set(recipe.method.describe()) | {"k", "s"}


@pytest.mark.parametrize("name", NAMES)
def test_backends_agree(name):
    recipe = Recipe(method=name, threshold=0.7)
    rows = elements(recipe)
    made = [recipe.method.sketch(rows, seed=recipe.seed, backend=backend) for backend in ("cpu", "reference")]
    assert np.array_equal(*made) and len(made[0]) == len(rows)
    keys = [recipe.method.keys(each, seed=recipe.seed, backend="cpu") for each in made]
    assert np.array_equal(*keys)
    assert keys[0].shape[1:] == ((recipe.method.key_columns,) if recipe.method.key_columns else ())
    present = np.asarray(rows.sizes) > 0
    found = [recipe.method.collide(keys[0], present=present, backend=backend) for backend in ("cpu", "reference")]
    assert len(found[0].pairs) > 0
    assert np.array_equal(found[0].pairs.left, found[1].pairs.left)
    assert np.array_equal(found[0].pairs.right, found[1].pairs.right)
    assert found[0][1:3] == found[1][1:3]
    assert np.array_equal(found[0].crowded, found[1].crowded)
    assert recipe.method.are_candidates(keys[0], found[0].pairs.left, found[0].pairs.right).all()


@pytest.mark.parametrize("method", [*NAMES, MinHash(k=5, s=3, r=2, bucket_limit=5, bucket_probe=2)])
def test_tasks_together_are_the_whole(method):
    """However the tasks are divided; where a large bucket is cut as well."""
    method = Recipe(method=method, threshold=0.7).method
    shape = (400, method.key_columns) if method.key_columns else (400,)
    keys = np.random.default_rng(1).integers(0, 12, shape, np.uint64)
    whole = method.collide(keys)
    pieces = [Numbers(method.tasks())]
    while any(piece.split() for piece in pieces):
        pieces = [part for piece in pieces for part in (piece.split() or [piece])]
        found = merged([method.collide(keys, tasks=piece.numbers) for piece in pieces])
        assert np.array_equal(whole.pairs.left, found.pairs.left)
        assert np.array_equal(whole.pairs.right, found.pairs.right)
        assert whole[1:3] == found[1:3]
        assert whole.crowded.shape == (400,) and np.array_equal(whole.crowded, found.crowded)


@pytest.mark.parametrize("name", NAMES)
def test_sketch_files(name, tmp_path):
    file = tmp_path / "s.parquet"
    for _ in range(2):  # the second one replaces what the first one wrote
        counts = sketch(texts=texts(), output=file, method=name, overwrite=True)
    assert (counts["documents"], counts["empty"]) == (len(texts()), 1)
    schema = pq.read_schema(file)
    assert set(schema.names) == {"id", "num_tokens", *Recipe(method=name).method.schema()}
    found = pairs(file, tmp_path / "p.parquet")
    last = (0, len(texts()) - 1)
    assert last in zip(found["id_a"].to_pylist(), found["id_b"].to_pylist(), strict=True)
    estimate, low, high = (found[column].to_numpy() for column in ("estimate", "low", "high"))
    assert (low <= estimate).all() and (estimate <= high).all()
    pq.write_table(pq.read_table(file), file)  # by another program, which may have added something
    with pytest.raises(OutputError, match="was not written by neardup"):
        sketch(texts=texts(), output=file, method=name, overwrite=True)


@pytest.mark.parametrize("name", NAMES)
def test_reports(name):
    found = dedup(texts=texts(), method=name, threshold=0.7)
    label, sentence = found.report["candidates"]
    assert label and sentence
    assert found.report["recipe"]["method"] == name
    assert found.report["counts"]["removed_near"] > 0
    assert repr(found.report["recall"]["expected"]) and found._repr_html_()
