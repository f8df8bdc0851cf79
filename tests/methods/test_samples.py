"""How min-hash draws and stores samples: the sampler "fast", a few bits of each sample, and segments of these."""

import math
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from versions import decisions
from witnesses import jaccard, shingle_set

from neardup_gpu import MinHash, NeardupError, Recipe, dedup, papers, theory
from neardup_gpu.errors import DamagedError, ParameterError, RecipeMismatchError
from neardup_gpu.kernels import bbit
from neardup_gpu.methods import _bbit
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import Pairs, Ragged

VARIANTS = {
    "fast": MinHash(sampler="fast"),
    "one bit": MinHash(sample_bits=1),
    "two bits": MinHash(sample_bits=2, bits=64, supershingle_bits=16),
    "eight bits, fast": MinHash(sample_bits=8, sampler="fast"),
    "segments": MinHash(sample_bits=1, candidates="segments"),
    "segments of 19": MinHash(sample_bits=1, candidates="segments", filter=(30, 19, 1), sampler="fast"),
}
EACH = pytest.mark.parametrize("method", VARIANTS.values(), ids=VARIANTS)


def texts(seed=3, pages=50):
    """Pages, and copies of them in which a word in 40 is another."""
    draw = random.Random(seed)
    words = [f"w{i}" for i in range(3000)]
    found = []
    for _ in range(pages):
        page = draw.choices(words, k=draw.randrange(20, 300))
        found.append(" ".join(page))
        copy = [draw.choice(words) if draw.random() < draw.choice([0, 0.01, 0.05]) else word for word in page]
        found.append(" ".join(copy))
    return [*found, "", found[0]]


@EACH
def test_stored_whole(method):
    recipe = Recipe(method=method, threshold=0.7, seed=4)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert set(recipe.method.schema()) >= {"document_hash", "signature" if method.sample_bits is None else "packed"}


@EACH
def test_backends_decide_the_same(method):
    found = [
        dedup({"text": texts(pages=10)}, method=method, threshold=0.7, engine=name) for name in ("cpu", "reference")
    ]
    assert decisions(found[0]) == decisions(found[1])
    assert found[0].report["limits"] == found[1].report["limits"]
    label, sentence = found[0].report["candidates"]
    assert (label, str(found[0].recipe.method.filter) in sentence) == ("filter", True)
    assert ("unrelated" in sentence) == (method.candidates == "segments")
    assert repr(found[0]) and found[0]._repr_html_()


@EACH
def test_near_duplicates_are_found(method):
    """As the method `exact` decides, but for pairs that the filter misses: at most a tenth of these documents."""
    rows = texts()
    exact, found = (dedup({"text": rows}, method=each, threshold=0.7) for each in ("exact", method))
    assert exact.report["counts"]["removed_near"] > 20
    assert found.report["counts"]["removed_near"] >= 0.9 * exact.report["counts"]["removed_near"]


@EACH
def test_sketch_files(method, tmp_path):
    """Pairs of a file; intervals hold, each with 99%: that nine of at most 90 miss has a probability below 1e-6."""
    rows, path = texts(), tmp_path / "s.parquet"
    sketch({"text": rows}, output=path, recipe=Recipe(method=method, threshold=0.7))
    table = pq.read_table(path)
    assert set(table.column_names) == {
        "id",
        "num_tokens",
        "num_shingles",
        *Recipe(method=method, threshold=0.7).method.schema(),
    }
    assert (table["packed" if method.sample_bits else "signature"].null_count) == 1  # without tokens
    found = pairs(path).to_pylist()
    assert {"id_a": 0, "id_b": len(rows) - 1, "estimate": 1, "low": 1, "high": 1} in found
    sets = [shingle_set(text) for text in rows]
    missed = [not pair["low"] <= jaccard(sets[pair["id_a"]], sets[pair["id_b"]]) <= pair["high"] for pair in found]
    assert all(pair["low"] <= pair["estimate"] <= pair["high"] <= 1 for pair in found)
    assert len(missed) > 25 and math.comb(len(missed), 9) * 0.01**9 < 1e-6
    assert sum(missed) < 9


def test_a_file_of_segments_is_small():
    """Beside ids, counts and hashes: 20 supershingles and 140 samples are 720 bytes, 170 bits are 24."""
    schemas = [
        Recipe(method=each).method.schema() for each in ("minhash", MinHash(sample_bits=1, candidates="segments"))
    ]
    sizes = [sum(kind.list_size * kind.value_type.bit_width // 8 for kind in schema.values()) for schema in schemas]
    assert sizes == [16 + 720, 16 + 24]


@pytest.mark.parametrize("length", [10, 19, 64, 1, 33])
def test_segments_are_runs_of_bits(length):
    signatures = np.random.default_rng(3).integers(0, 2**32, (40, 5 * length), np.uint32)
    method = MinHash(k=5, s=length, sample_bits=1, candidates="segments")
    words = bbit.reference(signatures, _bbit.salts(1, 5 * length), 1)
    whole = [sum(word << 64 * i for i, word in enumerate(row)) for row in words.tolist()]
    expected = [[each >> j * length & 2**length - 1 for j in range(5)] for each in whole]
    assert method.keys(signatures).tolist() == expected
    assert method.from_columns({"packed": words})[1].tolist() == expected


@pytest.mark.parametrize(("shared", "own"), [(80, 10), (50, 25), (0, 50)])
@pytest.mark.parametrize("r", [1, 2])
def test_segments_pass_as_theory_says(shared, own, r):
    """Of 4,000 pairs of random sets: within 0.0518, by Hoeffding at 1e-9. Unrelated ones pass by accident."""
    values = np.random.default_rng(shared).integers(0, 2**64, (4000, shared + 2 * own), np.uint64)
    method = MinHash(filter=(20, 10, r), sample_bits=1, candidates="segments")
    sides = values[:, : shared + own], np.delete(values, np.s_[shared : shared + own], axis=1)
    keys = [method.keys(method.sketch(Ragged(rows.ravel(), np.arange(4001) * rows.shape[1]))) for rows in sides]
    found = method.are_candidates(np.concatenate(keys), np.arange(4000), np.arange(4000, 8000)).mean()
    expected = method.expected_recall(shared / (shared + 2 * own) or 0.0)
    assert abs(found - expected) <= papers.hoeffding(4000)


def test_segments_are_chosen_for_the_threshold():
    method = MinHash(sample_bits=1, candidates="segments")
    for threshold in (0.6, 0.8, 0.9, 0.95, 1.0):
        chosen = Recipe(method=method, threshold=threshold)
        k, s, r = chosen.method.filter
        assert (s, r) == (10, 2)
        assert chosen.expected_recall >= 0.99
        assert k == 2 or theory.pass_probability((1 + threshold) / 2, k - 1, 10, 2) < 0.99
    with pytest.raises(ParameterError, match="no 100 segments"):
        Recipe(method=method, threshold=0.3)


def test_negative_estimates_stay_negative():
    """Of 200 documents with nothing in common about half have fewer equal bits than by accident."""
    rows = [np.random.default_rng(i).integers(0, 2**64, 30, np.uint64) for i in range(200)]
    method = MinHash(k=20, s=7, sample_bits=1)
    stored = method.stored(method.sketch(Ragged.from_rows(rows, np.uint64)))
    found = method.estimate(stored, Pairs(np.arange(100), np.arange(100, 200)))
    assert 20 < (found.estimate < 0).sum() < 80  # a binomial of 100: outside with a probability below 2e-9
    assert ((found.low <= found.estimate) & (found.estimate <= found.high)).all()
    assert (found.low < 0).all()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"sample_bits": 1}, {"sample_bits": 2}, "made with sample_bits = 2, .* with 1; sketch them alike"),
        ({"sample_bits": 1}, {}, "made with sample_bits = None, .* with 1; sketch them alike"),
        ({"sampler": "fast"}, {"bits": 64}, "made with sampler = permutations, .* with fast; sketch them alike"),
        ({}, {"sampler": "fast"}, "made with sampler = fast, .* with permutations; sketch them alike"),
        ({"sample_bits": 1, "candidates": "segments"}, {"sample_bits": 1}, "made with candidates = supershingles"),
    ],
)
def test_files_of_other_samples_do_not_meet(first, second, message, tmp_path):
    for name, settings in (("a", first), ("b", second)):
        sketch({"text": ["a b c d e f"]}, method=MinHash(k=17, s=10, r=2, **settings), output=tmp_path / name)
    with pytest.raises(RecipeMismatchError, match=message) as error:
        pairs([tmp_path / "a", tmp_path / "b"])
    assert "\n" not in str(error.value)


def test_a_file_whose_words_are_of_another_number(tmp_path):
    path = tmp_path / "s.parquet"
    sketch({"text": ["a b c d e f"]}, method=MinHash(k=20, s=7, sample_bits=1), output=path)
    table = pq.read_table(path)
    words = pa.array([[1, 2]], pa.list_(pa.uint64(), 2))
    wrong = table.set_column(table.column_names.index("packed"), "packed", words)
    pq.write_table(wrong, path)
    with pytest.raises(DamagedError, match=r"column 'packed' is .*, its recipe makes"):
        pairs(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample_bits": 3}, "sample_bits 3 is not one of 1, 2, 4, 8"),
        ({"sample_bits": 0}, "sample_bits 0 is not one of"),
        ({"sampler": "slow"}, "sampler 'slow' is not one of permutations, fast"),
        ({"sampler": "fast", "bits": 32}, "bits 32: samples of the sampler 'fast' have 64 bits"),
        ({"sampler": "fast", "filter": (700, 100, 1)}, "needs 70,000 samples; .* at most 65,536"),
        ({"sampler": "fast", "filter": (0, 7, 1)}, "0"),
        ({"candidates": "bits"}, "candidates 'bits' is not one of supershingles, segments"),
        ({"candidates": "segments"}, "give sample_bits=1 as well"),
        ({"candidates": "segments", "sample_bits": 2}, "give sample_bits=1 as well"),
        ({"candidates": "segments", "sample_bits": 1, "filter": (2, 65, 1)}, "at most 64 samples"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(NeardupError, match=message) as error:
        MinHash(**settings)
    assert "\n" not in str(error.value)


def test_the_sampler_brings_its_bits():
    recipe = Recipe(method="minhash")
    assert (recipe.method.bits, recipe.with_(sampler="fast").method.bits) == (32, 64)
    assert recipe.with_(sampler="fast").with_(sampler="permutations").method.bits == 32


def test_what_segments_and_named_filters_say_of_supershingles():
    """Segments have none; a filter that is given by its name brings its length along."""
    with pytest.raises(ParameterError, match="candidates by segments have no supershingles"):
        MinHash(sample_bits=1, candidates="segments", supershingle_bits=16)
    assert MinHash(sample_bits=1, candidates="segments", filter="bing").supershingle_bits == 64
    named = MinHash(filter="20,7,1").with_(filter="bing")
    assert (named.supershingle_bits, named.with_(filter="20,7,1").supershingle_bits) == (16, 64)
    assert named.with_(bucket_limit=100).supershingle_bits == 16
