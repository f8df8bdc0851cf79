"""Recipes: what is drawn from a seed is published here; what changes results is checked, stored and compared."""

import json

import numpy as np
import pyarrow as pa
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

from neardup_gpu import MinHash, Recipe, Shingles, SimHash, definitions
from neardup_gpu.errors import ArgumentTypeError, InputError, NeardupError, ParameterError, RecipeMismatchError
from neardup_gpu.methods.minhash import Filter, permutations
from neardup_gpu.stages import Join, shingle, tokenize

MINHASH, SIMHASH = Recipe(method=MinHash(filter=(6, 14, 2))), Recipe(method=SimHash())

GOLDEN_TEXT = "The quick brown fox jumps over the lazy dog. Ünïcode, 漢字 and 3.14!"

GOLDEN_POLYNOMIALS = {
    "tokens": "0xa21b33b22041349e",
    "lines": "0xb057e0d99df34c2d",
    "shingles": "0xf49fb87d3cff2c7e",
    "bags": "0xa92e21936eda43cd",
    "supershingles": "0xa12f39aebe0289d3",
    "pair keys": "0x92285dad1c48e73a",
    "documents 0": "0xcd0693f3fb435e1e",
    "documents 1": "0xeb796f2e55134932",
}
GOLDEN_PERMUTATIONS = {
    32: [["0x7d4928c9", "0xee5b5227", "0x4ae8603d"], ["0x2ca48d3d", "0x8aa4a9b0", "0x2afab7fa"]],
    64: [
        ["0x7d4928c953d395a1", "0xee5b522614f93b13", "0x4ae8603c3af87339"],
        ["0x2ca48d3d23255434", "0x8aa4a9b09e3f523a", "0x2afab7fa0f892b92"],
    ],
}
GOLDEN_SKETCH = {
    "tokens": (15, "0xc291fe889176116a", "0xd330f680f3c811b9"),
    "shingles": (11, "0xb92fca634243d4ce"),
    "signature": ["0x3eee3e03", "0x3cfb1459", "0xa958c10", "0xf9235e4", "0xada7c3d", "0xe021783"],
    "features": ["0x6667bb004d90aca0", "0xbe900180d5a2d7eb"],
    "64": ["0x285519c450e5c29d", "0xdd35001f7668aae"],
    "bag": "0xd8d9b795a3aa649e",
}


def test_splitmix64_s_published_outputs():
    """Seed 0: Steele, Lea and Flood 2014, as in the vectors of Vigna's splitmix64.c."""
    step = 0x9E3779B97F4A7C15
    outputs = [definitions.mix64((i + 1) * step % 2**64) for i in range(3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_draws_are_splitmix64_outputs_from_one_key():
    """draw(seed, purpose, i) - the counter's step from one index to the next is SplitMix64's, whatever the key."""
    key = definitions.mix64(1)
    for byte in b"permutation a":
        key = definitions.mix64(key ^ byte)
    assert definitions.draw(1, "permutation a", 2) == definitions.mix64((key + 3 * 0x9E3779B97F4A7C15) % 2**64)
    drawn = {definitions.draw(s, p, i) for s in (0, 1, 2**64 - 1) for p in ("a", "b", "ab", "") for i in range(50)}
    assert len(drawn) == 600


class TestGolden:
    """The recipe of seed 1. These numbers are published: a change to any is a change of DEFINITIONS."""

    def test_polynomials(self):
        assert {use: hex(definitions.polynomial(1, use)) for use in GOLDEN_POLYNOMIALS} == GOLDEN_POLYNOMIALS
        assert {use: hex(definitions.draw_polynomial(1, use)) for use in definitions.DRAWN} == GOLDEN_POLYNOMIALS
        assert Recipe().seed == definitions.USUAL_SEED

    @pytest.mark.parametrize("bits", [32, 64])
    def test_permutations(self, bits):
        a, b = permutations(1, 84, bits)
        assert a.dtype == b.dtype == (np.uint32 if bits == 32 else np.uint64)
        assert len(a) == len(b) == 84
        assert (a % 2 == 1).all()
        assert [[hex(int(x)) for x in c[:3]] for c in (a, b)] == GOLDEN_PERMUTATIONS[bits]

    def test_permutations_of_fewer_samples_are_the_first(self):
        assert (permutations(1, 10, 32)[0] == permutations(1, 84, 32)[0][:10]).all()

    @pytest.mark.parametrize("backend", ["reference", "cpu"])
    def test_sketch_of_a_small_text(self, backend):
        recipe = Recipe(method=MinHash(filter=Filter(2, 3, 1)))
        tokens = tokenize([GOLDEN_TEXT], recipe, backend=backend)
        shingles = shingle(tokens, recipe, backend=backend)
        signature = recipe.method.sketch(shingles, seed=recipe.seed, backend=backend)
        features = recipe.method.keys(signature, seed=recipe.seed, backend=backend)
        found = {
            "tokens": (len(tokens.values), hex(tokens.values[0]), hex(tokens.values[-1])),
            "shingles": (len(shingles.values), hex(shingles.values[0])),
            "signature": [hex(x) for x in signature[0]],
            "features": [hex(x) for x in features[0]],
            "64": [hex(x) for x in recipe.with_(bits=64).method.sketch(shingles, seed=1, backend=backend)[0][:2]],
            "bag": hex(shingle(tokens, recipe.with_(shingling="bag"), backend=backend).values[0]),
        }
        assert found == GOLDEN_SKETCH


class TestStored:
    RECIPE = Recipe(
        threshold=0.75,
        seed=7,
        keep="x:desc",
        method=MinHash(bits=64, supershingle_bits=16, filter=Filter(6, 14, 2)),
        shingles=Shingles(4, "bag"),
    )

    def test_round_trip(self):
        assert Recipe.from_json(self.RECIPE.to_json()) == self.RECIPE
        assert Recipe.from_json(self.RECIPE.to_json().encode()) == self.RECIPE

    def test_json_says_everything(self):
        stored = json.loads(self.RECIPE.to_json())
        assert stored["filter"] == "6,14,2"
        assert {
            "threshold",
            "shingle_size",
            "seed",
            "definitions",
            "unicode_table",
            "cluster",
            "bucket_limit",
        } <= stored.keys()

    @pytest.mark.parametrize("name", ["definitions", "unicode_table"])
    def test_other_definitions_do_not_load(self, name):
        stored = json.loads(self.RECIPE.to_json()) | {name: "other"}
        with pytest.raises(RecipeMismatchError, match=f"made under {name} other, this version has .*; make it again"):
            Recipe.from_json(json.dumps(stored))

    def test_from_an_artefact_s_schema(self):
        schema = pa.schema([], metadata={definitions.METADATA_KEY: self.RECIPE.to_json().encode()})
        assert Recipe.of(schema, "x") == self.RECIPE
        with pytest.raises(InputError, match=r"x\.parquet: holds no recipe"):
            Recipe.of(pa.schema([]), "x.parquet")

    @pytest.mark.parametrize(
        "change",
        [
            {"shingle_size": 5},
            {"shingling": "set"},
            {"bits": 32},
            {"supershingle_bits": 64},
            {"seed": 8},
            {"filter": (7, 12, 2)},
        ],
    )
    def test_sketches_of_other_recipes_do_not_meet(self, change):
        with pytest.raises(RecipeMismatchError, match=r"b\.parquet: made with \w+ = .*, but .* is needed; sketch it"):
            self.RECIPE.check_sketches(self.RECIPE.with_(**change), "b.parquet")

    @pytest.mark.parametrize(
        "change", [{"threshold": 0.9}, {"filter": (6, 14, 3)}, {"keep": "first"}, {"cluster": "components"}]
    )
    def test_sketches_do_not_depend_on_the_decisions(self, change):
        self.RECIPE.check_sketches(self.RECIPE.with_(**change), "b.parquet")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.5}, r"threshold must be .*got 1.5"),
        ({"threshold": 0}, r"threshold must be .*got 0"),
        ({"threshold": float("nan")}, r"threshold must be .*got nan"),
        ({"shingle_size": 0}, "shingle_size must be between 1 and 64, got 0; shingles have 1 to 64 tokens"),
        ({"seed": -1}, r"seed must be between .* got -1"),
        ({"seed": 2**64}, r"seed must be between .* got 18446744073709551616"),
        ({"bits": 16}, "bits 16 is not one of 32, 64"),
        ({"supershingle_bits": 8}, "supershingle_bits 8 is not one of 64, 16"),
        ({"shingling": "sets"}, "shingling 'sets' is not one of set, bag, circular, spots"),
        ({"cluster": "kmeans"}, "cluster 'kmeans' is not one of greedy, components"),
        ({"max_partners": 0}, "max_partners must be .*got 0"),
        ({"bucket_limit": 1}, "bucket_limit"),
        ({"bucket_probe": 0}, "bucket_probe"),
        ({"filter": (3, 5, 4)}, "r|4"),
        ({"filter": (0, 5, 1)}, "k|0"),
        ({"filter": (40, 2, 20)}, "pair tables"),
        ({"filter": "x,y"}, "x,y"),
        ({"recall": 1.5}, "recall"),
        ({"recall": 0.0}, "recall"),
    ],
)
def test_impossible_parameters_get_one_line(settings, message):
    with pytest.raises(ParameterError, match=message) as error:
        Recipe(method="minhash").with_(**settings)
    assert isinstance(error.value, NeardupError)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("usual", "settings", "message"),
    [
        (MINHASH, {"threshold": "0.8"}, "threshold must be a number, got '0.8'"),
        (MINHASH, {"threshold": True}, "threshold must be a number, got True"),
        (MINHASH, {"threshold": 1 + 0j}, "threshold must be a number, got a complex"),
        (MINHASH, {"shingle_size": 5.0}, "shingle_size must be a whole number, got 5.0"),
        (MINHASH, {"shingle_size": True}, "shingle_size must be a whole number, got True"),
        (MINHASH, {"seed": np.bool_(True)}, "seed must be a whole number, got .*"),
        (MINHASH, {"seed": np.arange(9000)}, "seed must be a whole number, got an ndarray .*"),
        (MINHASH, {"max_partners": 64.0}, "max_partners must be a whole number, got 64.0"),
        (MINHASH, {"keep": b"first"}, "keep: b'first' is not a text"),
        (MINHASH, {"shingling": ["set"]}, "shingling a list is not one of set, bag, circular, spots"),
        (MINHASH, {"bits": "32"}, "bits '32' is not one of 32, 64"),
        (MINHASH, {"filter": (6, 14)}, r"filter: a tuple is not three integers"),
        (MINHASH, {"filter": 6}, "filter: 6 is not three integers"),
        (MINHASH, {"filter": (6, 14.0, 2)}, "filter s must be a whole number, got 14.0"),
        (MINHASH, {"filter": (6, 14, True)}, "filter r must be a whole number, got True"),
        (SIMHASH, {"radius": 3.0}, "radius must be a whole number, got 3.0"),
        (SIMHASH, {"threshold": "x"}, "threshold must be a number, got 'x'"),
        (SIMHASH, {"frequencies": 5}, "frequencies: 5; give a Frequencies; or the path"),
        (SIMHASH, {"bits": True}, "bits True is not one of 64, 128"),
    ],
)
def test_values_of_another_type_are_refused_in_one_line(usual, settings, message):
    with pytest.raises(ArgumentTypeError, match=message) as error:
        usual.with_(**settings)
    assert isinstance(error.value, TypeError) and "\n" not in str(error.value) and len(str(error.value)) < 200


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -float("inf"), 10**400, -1, 0, np.float64("nan")])
def test_thresholds_that_are_none(threshold):
    for method in ("exact", "minhash", MinHash(filter=(6, 14, 2)), SimHash()):
        with pytest.raises(ParameterError, match="threshold"):
            Recipe(method=method, threshold=threshold)


def test_a_filter_of_too_many_samples_is_refused_at_once():
    with pytest.raises(ParameterError, match="needs 600,000,000 samples"):
        Recipe(method=MinHash(filter=Filter(600, 10**6, 2)))


def test_numpy_s_scalars_become_plain():
    recipe = Recipe(
        threshold=np.float32(0.5),
        seed=np.uint64(2**63),
        keep=np.str_("longest"),
        method=MinHash(filter=np.array([6, 14, 2])),
        shingles=Shingles(np.uint8(4)),
    )
    assert recipe == Recipe(
        threshold=0.5, seed=2**63, keep="longest", method=MinHash(filter=(6, 14, 2)), shingles=Shingles(4)
    )
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert [type(value) for value in recipe.method.filter] == [int] * 3
    assert type(recipe.threshold) is float and type(recipe.seed) is int and type(recipe.keep) is str
    assert Recipe(threshold=1, method=MinHash(filter=(6, 14, 2))) == Recipe(
        threshold=1.0, method=MinHash(filter=(6, 14, 2))
    )


STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, 2, 16, 32, 64, 65, 128, 2**31, 2**63, 2**64, 10**400, 1.0, 0.8, 32.0, "0.8", "32", ""]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["minhash", "simhash", "set", "bag", "tokens", "tf", "6,14,2", "6,14", "6,9999999999,2", "-1,2,1"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=fewer(1000), deadline=None)
@given(data=st.data())
def test_mutated_recipes_are_refused_in_one_line_or_are_the_same(data):
    """What is read is a recipe that describes itself just so, whatever was changed; else there is one line."""
    recipe = data.draw(
        st.sampled_from(
            [
                TestStored.RECIPE,
                Recipe(),
                Recipe(method="minhash"),
                Recipe(method=SimHash()),
                Recipe(method=SimHash(weighting="tfidf", frequencies="a" * 32, bits=128), threshold=0.8),
            ]
        )
    )
    stored = recipe.describe()
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from([*stored, "other"]))
        if data.draw(st.booleans()):
            stored[name] = data.draw(STRANGE)
        else:
            stored.pop(name, None)
    text = json.dumps(stored)
    try:
        found = Recipe.from_json(text, "a file")
    except RecipeMismatchError as error:
        assert "\n" not in str(error) and str(error).startswith("a file: ") and len(str(error)) < 500
    else:
        assert found.describe() == stored
        assert found.to_json()
        assert isinstance(found.method, Join) or found.sketching()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        '"minhash"',
        "[" * 100_000,
        "9" * 5000,
        b"\xff\xfe{}",
        b"\x00",
        '{"definitions": [1]}',
    ],
)
def test_what_is_no_recipe_is_refused(text):
    with pytest.raises(RecipeMismatchError, match="its recipe cannot be read") as error:
        Recipe.from_json(text, "a file")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.75", "1e400"), ("0.75", "NaN"), ("0.75", "1e-400"), ('"shingle_size": 4', '"shingle_size": 4.0')],
)
def test_numbers_that_json_allows(old, new):
    text = TestStored.RECIPE.to_json()
    assert old in text
    with pytest.raises(RecipeMismatchError, match="its recipe cannot be read"):
        Recipe.from_json(text.replace(old, new), "a file")


def test_the_chosen_filter_finds_what_was_asked():
    for threshold in (0.5, 0.8, 0.95):
        for recall in (0.9, 0.99):
            assert Recipe(threshold=threshold, method=MinHash(recall=recall)).expected_recall >= recall
    assert Recipe(method=MinHash(filter="altavista")).method.filter == (6, 14, 2)
    assert Recipe(method=MinHash(filter="6,5,4")).method.filter == Filter(6, 5, 4)


def test_a_recipe_is_a_value():
    recipe = Recipe()
    assert recipe == Recipe() and hash(recipe) == hash(Recipe())
    assert recipe.with_(seed=2) != recipe
    with pytest.raises(AttributeError):
        recipe.seed = 3
