"""What every method of `METHODS` keeps to, whatever it is, and what those do that sketch.

A new one is tried without a line here.
"""

import itertools
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from rule import contained
from versions import decisions
from witnesses import jaccard, shingle_set

from neardup_gpu import (
    METHODS,
    MinHash,
    NeardupError,
    OutputError,
    Ragged,
    Recipe,
    dedup,
    pairs,
    shingle,
    sketch,
    tokenize,
)
from neardup_gpu.engine.pieces import Numbers
from neardup_gpu.methods.contract import merged

pytestmark = pytest.mark.quick

NAMES = list(METHODS)
SKETCHING = [name for name, method in METHODS.items() if method.sketches]
OTHERS = [name for name in NAMES if name not in SKETCHING]


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


# ----------------------------------------------------------------------------------------------- what every method does


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_stored_whole(name):
    recipe = Recipe(method=name, threshold=0.7, seed=9, keep="longest", max_partners=5).with_(shingle_size=3)
    assert Recipe.from_json(recipe.to_json()) == recipe
    others = {"threshold", "keep", "cluster", "max_partners", "seed", "shingle_size", "shingling", "method"}
    assert recipe.method.describe().keys().isdisjoint(others)
    assert METHODS[name].from_settings(recipe.method.describe()) == recipe.method
    assert recipe.method.name == name


@pytest.mark.parametrize("name", NAMES)
def test_backends_decide_the_same(name):
    found = [dedup(texts=texts(), method=name, threshold=0.7, engine=backend) for backend in ("cpu", "reference")]
    assert decisions(found[0]) == decisions(found[1])
    assert found[0].report["counts"] == found[1].report["counts"]
    assert found[0].report["limits"] == found[1].report["limits"]


@pytest.mark.parametrize("name", NAMES)
def test_verified_pairs_are_true(name):
    """By brute force; none is missed where recall is expected to be 1."""
    rows = texts()[:-2]  # without the empty one and the copy
    sets = [shingle_set(text) for text in rows]
    found = dedup(texts=rows, method=name, threshold=0.7)
    measure = found.recipe.method.measure
    worth = {"resemblance": jaccard, "containment": contained}[measure.name]
    order = sorted(range(len(sets)), key=lambda row: -len(sets[row])) if measure.directed else range(len(sets))
    true = {(a, b) for a, b in itertools.combinations(order, 2) if worth(sets[a], sets[b]) >= 0.7}
    listed = {(pair["id_a"], pair["id_b"]): pair[measure.name] for pair in found.pairs.to_pylist()}
    assert listed.keys() <= true and listed
    assert all(value == worth(sets[a], sets[b]) for (a, b), value in listed.items())
    if found.recipe.expected_recall == 1:
        assert listed.keys() == true
    assert found.report["limits"] == {"max_partners": 64, "unlisted_pairs": 0, "all_counted": True}


@pytest.mark.parametrize("name", NAMES)
def test_reports(name):
    found = dedup(texts=texts(), method=name, threshold=0.7)
    label, sentence = found.report["candidates"]
    assert label and sentence
    assert found.report["recipe"]["method"] == name
    assert found.report["counts"]["removed_near"] > 0
    assert repr(found.report["recall"]["expected"]) and found._repr_html_()


@pytest.mark.parametrize("name", OTHERS)
def test_no_files_of_sketches_by_a_method_that_does_not_sketch(name, tmp_path):
    for given in ({"method": name}, {"recipe": Recipe(method=name)}):
        with pytest.raises(NeardupError, match=name) as error:
            sketch(texts=texts(), output=tmp_path / "s.parquet", **given)
        assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ what methods do that sketch


@pytest.mark.parametrize("name", SKETCHING)
def test_a_recipe_of_sketches_is_stored_whole(name):
    recipe = Recipe(method=name, threshold=0.7).with_(bucket_limit=99)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.method.bucket_limit == 99
    assert set(recipe.method.sketching()) <= set(recipe.method.describe()) | {"k", "s"}


@pytest.mark.parametrize("name", SKETCHING)
def test_backends_agree(name):
    recipe = Recipe(method=name, threshold=0.7)
    rows = elements(recipe)
    made = [recipe.method.sketch(rows, seed=recipe.seed, backend=backend) for backend in ("cpu", "reference")]
    assert len(made[0]) == len(rows)
    if isinstance(made[0], Ragged):
        assert np.array_equal(made[0].values, made[1].values) and np.array_equal(made[0].offsets, made[1].offsets)
    else:
        assert np.array_equal(*made)
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


@pytest.mark.parametrize("method", [*SKETCHING, MinHash(k=5, s=3, r=2, bucket_limit=5, bucket_probe=2)])
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


@pytest.mark.parametrize("name", SKETCHING)
def test_sketch_files(name, tmp_path):
    file = tmp_path / "s.parquet"
    for _ in range(2):  # the second one replaces what the first one wrote
        counts = sketch(texts=texts(), output=file, method=name, overwrite=True)
    assert (counts["documents"], counts["empty"]) == (len(texts()), 1)
    schema = pq.read_schema(file)
    method = Recipe(method=name).method
    sizes = {"num_shingles"} if method.elements == "shingles" else set()
    assert set(schema.names) == {"id", "num_tokens", *sizes, *method.schema()}
    found = pairs(file, tmp_path / "p.parquet")
    last = (0, len(texts()) - 1)
    assert last in zip(found["id_a"].to_pylist(), found["id_b"].to_pylist(), strict=True)
    column = "cosine" if method.estimates == "cosine" else "estimate"
    estimate, low, high = (found[each].to_numpy() for each in (column, "low", "high"))
    assert (low <= estimate).all() and (estimate <= high).all()
    pq.write_table(pq.read_table(file), file)  # by another program, which may have added something
    with pytest.raises(OutputError, match="was not written by neardup"):
        sketch(texts=texts(), output=file, method=name, overwrite=True)
