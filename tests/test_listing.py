"""How many pairs are listed is a setting; a method that keeps no sketches is asked for none."""

import json
import re

import pytest

import neardup_gpu as nd


@pytest.mark.parametrize("most", [1, 64, 2**31 - 1, None])
def test_a_recipe_keeps_it(most):
    recipe = nd.Recipe(max_partners=most)
    assert json.loads(recipe.to_json())["max_partners"] == most
    assert nd.Recipe.from_json(recipe.to_json()) == recipe


@pytest.mark.parametrize("most", [0, 2**31, "all", 1.5, True])
def test_what_is_no_number_is_refused(most):
    with pytest.raises((nd.errors.ParameterError, nd.errors.ArgumentTypeError), match=r"^max_partners must be "):
        nd.dedup({"text": ["to be"]}, recipe=nd.Recipe(max_partners=most))


def test_a_recipe_from_before_is_refused():
    stored = json.loads(nd.Recipe(method="minhash").to_json())
    del stored["max_partners"]
    with pytest.raises(nd.errors.RecipeMismatchError, match="its recipe cannot be read; make it again"):
        nd.Recipe.from_json(json.dumps(stored))
    with pytest.raises(nd.errors.RecipeMismatchError, match="made under definitions 2"):
        nd.Recipe.from_json(json.dumps({**stored, "definitions": 2}))


def test_it_has_no_effect_where_nothing_is_verified():
    texts = [" ".join([*(f"t{i}" for i in range(100)), f"page{i}"]) for i in range(20)]
    few, all_of = (
        nd.dedup({"text": texts}, recipe=nd.Recipe(method="simhash", max_partners=most)) for most in (1, None)
    )
    assert few.pairs.num_rows == all_of.pairs.num_rows > 0
    assert few.report["limits"] == all_of.report["limits"]
    assert "max_partners" not in few.report["limits"]


@pytest.mark.parametrize("most", [1, 3, None])
def test_who_is_kept_does_not_depend_on_it(most):
    texts = [" ".join([*(f"t{i}" for i in range(100)), f"page{i}"]) for i in range(20)]
    usual, other = nd.dedup({"text": texts}), nd.dedup({"text": texts}, recipe=nd.Recipe(max_partners=most))
    assert other.documents["kept"].equals(usual.documents["kept"])
    assert other.pairs.num_rows == {1: 19, 3: 3 * 17 + 2 + 1, None: 190}[most]


@pytest.mark.parametrize(
    "ask",
    [
        lambda out: nd.sketches.sketch({"text": ["to be"]}, method="exact", output=out),
        lambda out: nd.sketches.sketch({"text": ["to be"]}, method=nd.Exact(), output=out),
        lambda out: nd.sketches.sketch({"text": ["to be"]}, output=out, recipe=nd.Recipe()),
        lambda out: nd.Recipe().sketching(),
        lambda out: nd.Recipe(method="minhash").check_sketches(nd.Recipe(), "s.parquet"),
    ],
)
def test_exact_keeps_no_sketches(ask, tmp_path):
    says = "method exact keeps no sketches; choose minhash, bottomk, modm or simhash"
    with pytest.raises(nd.errors.ParameterError, match=f"^{re.escape(says)}$"):
        ask(tmp_path / "s.parquet")
    assert list(tmp_path.iterdir()) == []
