"""What every method of `METHODS` keeps to, whatever it is, and what those do that sketch; and methods of users.

A new one is tried without a line here.
"""

import itertools
import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from rule import contained
from versions import decisions
from witnesses import jaccard, shingle_set

from neardup_gpu import Index, MinHash, NeardupError, Recipe, Writing, dedup
from neardup_gpu.engine.pieces import Numbers
from neardup_gpu.errors import ArgumentTypeError, OutputError, ParameterError
from neardup_gpu.methods.contract import Buckets, Entries, merged
from neardup_gpu.sketches import clusters, merge, pairs, sketch
from neardup_gpu.stages import METHODS, Candidates, Join, Pairs, Ragged, RowEstimates, Sketch, shingle, tokenize

pytestmark = pytest.mark.quick

NAMES = list(METHODS)
SKETCHING = [name for name, method in METHODS.items() if issubclass(method, Sketch)]
OTHERS = [name for name in NAMES if name not in SKETCHING]
THRESHOLDS = {name: 0.7 if method().equal_by is None else None for name, method in METHODS.items()}
"""None for a method that takes no threshold, as it compares bytes or keys: it finds no pair of other texts."""
COMPARING = [name for name in NAMES if THRESHOLDS[name] is not None]


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
    recipe = Recipe(method=name, threshold=THRESHOLDS[name], seed=9, keep="longest", max_partners=5)
    recipe = recipe.with_(shingle_size=3) if name in COMPARING else recipe
    assert Recipe.from_json(recipe.to_json()) == recipe
    others = {"threshold", "keep", "cluster", "max_partners", "seed", "shingle_size", "shingling", "method"}
    assert recipe.method.describe().keys().isdisjoint(others)
    assert METHODS[name].from_settings(recipe.method.describe()) == recipe.method
    assert recipe.method.name == name


@pytest.mark.parametrize("name", NAMES)
def test_backends_decide_the_same(name):
    how = {"method": name, "threshold": THRESHOLDS[name]}
    found = [dedup({"text": texts()}, engine=backend, **how) for backend in ("cpu", "reference")]
    assert decisions(found[0]) == decisions(found[1])
    assert found[0].report["counts"] == found[1].report["counts"]
    assert found[0].report["limits"] == found[1].report["limits"]


@pytest.mark.parametrize("name", COMPARING)
def test_verified_pairs_are_true(name):
    """By brute force; none is missed where recall is expected to be 1."""
    rows = texts()[:-2]  # without the empty one and the copy
    sets = [shingle_set(text) for text in rows]
    found = dedup({"text": rows}, method=name, threshold=0.7)
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


@pytest.mark.parametrize("name", COMPARING)
def test_reports(name):
    found = dedup({"text": texts()}, method=name, threshold=0.7)
    label, sentence = found.report["candidates"]
    assert label and sentence
    assert found.report["recipe"]["method"] == name
    assert found.report["counts"]["removed_near"] > 0
    assert repr(found.report["recall"]["expected"]) and found._repr_html_()


@pytest.mark.parametrize("name", OTHERS)
def test_no_files_of_sketches_by_a_method_that_does_not_sketch(name, tmp_path):
    for given in ({"method": name}, {"recipe": Recipe(method=name)}):
        with pytest.raises(NeardupError, match=name) as error:
            flat(sketch, texts=texts(), output=tmp_path / "s.parquet", **given)
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
        counts = sketch({"text": texts()}, method=name, output=file, overwrite=True)
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
        sketch({"text": texts()}, method=name, output=file, overwrite=True)


# ---------------------------------------------------------------------------------------------------- methods of users


@dataclass(frozen=True, kw_only=True)
class Smallest(Sketch):
    """A user's method, by the contract alone: documents that have the same smallest shingle are candidates."""

    name: ClassVar[str] = "smallest"
    bucket_limit: int = 100
    bucket_probe: int = 10
    device_bytes: ClassVar[int] = 8

    def sketching(self):
        return {}

    def sketch(self, elements, *, seed=1, statistics=None, backend=None):
        return np.array([min(row, default=0) for row in elements], np.uint64)

    def keys(self, sketches, *, seed=1, backend=None):
        return sketches

    def collide(self, keys, *, seed=1, present=None, tasks=None, backend=None):
        left, right = np.nonzero(np.triu(keys[:, None] == keys, 1))
        return Candidates(Pairs(left, right), 0, 0, np.zeros(len(keys), bool))

    def buckets(self, num_rows):
        return Buckets(np.full(1, 2**64 - 1, np.uint64), 0, self.bucket_limit, self.bucket_probe)

    def entries(self, keys, num_rows, *, seed=1):
        yield Entries(0, keys, np.arange(len(keys)))

    def are_candidates(self, keys, left, right):
        return keys[left] == keys[right]

    def estimate_rows(self, sketches, left, right):
        same = (sketches[left] == sketches[right]).astype(float)
        return RowEstimates(same, np.zeros(len(same)), np.ones(len(same)))

    def expected_recall(self, threshold):
        return threshold

    def in_words(self, threshold):
        return "sketch", "the smallest shingle"

    def schema(self):
        return {"smallest": pa.uint64()}

    def to_columns(self, sketches, keys):
        return {"smallest": sketches}

    def from_columns(self, columns):
        return columns["smallest"], columns["smallest"]


def test_a_sketch_of_a_user(tmp_path, monkeypatch):
    """It does what the others do, in memory and in tasks, and what it cannot do is refused in one line."""
    monkeypatch.setitem(METHODS, "smallest", Smallest)  # by which recipes in files are read back
    true = dedup({"text": texts()}, threshold=0.7)
    found = dedup({"text": texts()}, method=Smallest(), threshold=0.7, writing=Writing(check=10))
    assert 0 < len(found.pairs) <= len(true.pairs)
    assert set(map(str, found.pairs.to_pylist())) <= set(map(str, true.pairs.to_pylist()))
    assert found.report["recipe"]["method"] == "smallest" and found.report["recall"]["expected"] == 0.7
    assert Recipe.of(found.documents.schema, "found") == found.recipe
    in_blocks = dedup({"text": texts()}, method=Smallest(), threshold=0.7, memory="2GB")
    assert decisions(in_blocks) == decisions(found)
    file = tmp_path / "s.parquet"
    sketch({"text": texts()}, method=Smallest(), output=file)
    assert (pairs(file)["estimate"].to_numpy() == 1).all()
    for refused in (
        lambda: pairs(file, containment=0.9),
        lambda: clusters(file),
        lambda: merge([np.zeros(1, np.uint64)], found.recipe),
        lambda: Index.create(tmp_path / "index", method=Smallest()),
    ):
        with pytest.raises(ParameterError, match=r"method smallest .*; choose ") as error:
            refused()
        assert "\n" not in str(error.value)


def test_a_method_that_lacks_a_member_is_refused_when_it_is_made():
    @dataclass(frozen=True)
    class Part(Join):
        name = "part"

    @dataclass(frozen=True)
    class Whole(Sketch):
        name = "whole"

    assert dedup({"text": ["to be or not to be"] * 2}, method=Part()).report["recipe"]["method"] == "part"
    with pytest.raises(TypeError, match="abstract"):
        Whole()
    with pytest.raises(ArgumentTypeError, match=r"method: .*; give a Join or a Sketch; Exact\(\) is one"):
        Recipe(method=Part)
