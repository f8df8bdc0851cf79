"""The stages of a job, each called alone."""

import numpy as np
import pyarrow as pa
import pytest
from versions import families
from witnesses import token_strings

import neardup_gpu
from neardup_gpu import MinHash, Recipe, dedup
from neardup_gpu.errors import (
    NeardupError,
)
from neardup_gpu.stages import Pairs

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_the_stages_alone_give_the_pairs_of_the_whole(backend):
    """On documents without exact copies, which `dedup` collapses first."""
    texts = list({" ".join(token_strings(text)): text for text in families(9, seed=4, lengths=(3, 50, 90))}.values())
    table = pa.table({"text": texts})
    whole = dedup(table, threshold=0.6, method=MinHash(filter="4,3,1"), engine=backend)
    recipe = whole.recipe
    options = {"backend": backend}
    shingles = neardup_gpu.stages.shingle(neardup_gpu.stages.tokenize(texts, recipe, **options), recipe, **options)
    signatures = recipe.method.sketch(shingles, seed=recipe.seed, **options)
    features = recipe.method.keys(signatures, seed=recipe.seed, **options)
    present = shingles.sizes > 0
    candidates = recipe.method.collide(features, seed=recipe.seed, present=present, **options)
    verified = neardup_gpu.stages.verify(shingles, candidates.pairs, recipe.threshold, **options)
    keeper = neardup_gpu.stages.keep(len(texts), verified, recipe, **options)
    assert isinstance(verified.pairs, Pairs) and len(verified.pairs)
    rows = zip(verified.pairs.left.tolist(), verified.pairs.right.tolist(), verified.resemblance.tolist(), strict=True)
    listed = whole.pairs.drop("kind").to_pylist()
    assert [tuple(pair.values()) for pair in listed] == list(rows)
    assert whole.documents["group"].to_pylist() == keeper.tolist()


@pytest.mark.parametrize("cluster", ["greedy", "components"])
def test_pinned_documents_stay_though_others_join_them(cluster):
    pairs = Pairs(np.array([0, 1]), np.array([2, 2]))
    verified = neardup_gpu.stages.Verified(pairs, np.array([0.9, 0.9]))
    recipe = Recipe(cluster=cluster)
    assert neardup_gpu.stages.keep(3, verified, recipe, pinned=np.array([True, True, False])).tolist() == [0, 1, 0]


def test_tokenize_takes_lists_arrays_and_chunks():
    recipe = Recipe()
    texts = ["one two", None, "three"]
    chunked = pa.chunked_array([pa.array(texts[:1]), pa.array(texts[1:])])
    for documents in (texts, pa.array(texts), chunked, pa.array(texts).dictionary_encode()):
        assert neardup_gpu.stages.tokenize(documents, recipe).sizes.tolist() == [2, 0, 1]
    assert len(neardup_gpu.stages.tokenize([], recipe)) == 0
    with pytest.raises(NeardupError, match="one string given; put it into a list"):
        neardup_gpu.stages.tokenize("one two", recipe)


def test_keepers_by_containment_are_better_rows():
    """1 goes for 0, which contains less of it than it does of 2: but 2 is a part of it, and stands for nobody."""
    verified = neardup_gpu.stages.Verified(Pairs([0, 1], [1, 2]), np.array([0.9, 1.0]))
    assert neardup_gpu.stages.keep(3, verified, Recipe()).tolist() == [0, 2, 2]
    assert neardup_gpu.stages.keep(3, verified, Recipe(method="containment")).tolist() == [0, 0, 2]
