"""The column `shared`: the number of shingles that the documents of a pair have in common, here and by tasks."""

import numpy as np
import pyarrow as pa
import pytest

import neardup_gpu as nd
from neardup_gpu import Recipe, Shingles, errors
from neardup_gpu.cli import main
from neardup_gpu.stages import shingle, tokenize


def documents(seed):
    """Near-duplicates of a few texts, some equal, some parts of others."""
    random, words = np.random.default_rng(seed), list("abcdefghijklmnopqr")
    texts = [" ".join(random.choice(words, 40)) for _ in range(4)]
    made = []
    for _ in range(30):
        text = texts[random.integers(4)].split()
        cut = int(random.integers(0, 12))
        text = text[cut:] if random.random() < 0.3 else text
        text[random.integers(len(text))] = str(random.choice(words))
        made.append(" ".join(text))
    return {"id": [f"{seed}-{number}" for number in range(32)], "text": [*made, made[0].upper(), ""]}


@pytest.mark.parametrize("method", ["exact", "containment", nd.Containment(direction="of"), "minhash"], ids=str)
def test_numbers_are_those_of_the_sets(method, tmp_path):
    recipe = Recipe(shingles=Shingles(2), method=method, threshold=0.4)
    mine, known = (pa.table(documents(seed)) for seed in (1, 2))
    how = {"against": known, "id_column": "id", "recipe": recipe, "writing": nd.Writing(shared=True)}
    result = nd.dedup(mine, **how)
    whole = pa.concat_tables([mine, known])
    sets = shingle(tokenize(whole["text"].to_pylist(), recipe), recipe)
    of = dict(zip(whole["id"].to_pylist(), ({*sets[row].tolist()} for row in range(len(sets))), strict=True))
    pairs = result.pairs
    expected = [len(of[row["id_a"]] & of[row["id_b"]]) for row in pairs.to_pylist()]
    assert len(pairs) > 50 and len(set(expected)) > 10 and pairs["shared"].to_pylist() == expected
    plain = nd.dedup(mine, **(how | {"writing": None}))
    assert pairs.drop(["shared"]).equals(plain.pairs) and "shared" not in plain.pairs.column_names
    workers = nd.Workers(work_dir=tmp_path / "work", number=1, partitions=2)
    there = nd.dedup(mine, **how, output=tmp_path / "out", workers=workers)
    assert there.pairs.equals(pairs)


def test_where_no_number_decides(tmp_path, capsys):
    for recipe, why in (
        (Recipe(method="minhash").with_(weighting="tf"), "pairs are compared by weights"),
        (Recipe(method="simhash", threshold=None), "nothing is verified by shingles"),
        (Recipe(ignore_common=5), "common shingles are left out"),
    ):
        with pytest.raises(errors.ParameterError, match=f"^shared: {why}"):
            nd.dedup({"text": ["a"]}, recipe=recipe, writing=nd.Writing(shared=True))
    (tmp_path / "a.txt").write_text("to be or not to be")
    arguments = [str(tmp_path), "--shared", "--unit", "line", "--threshold", "1", "-o", str(tmp_path / "out")]
    assert main(["dedup", *arguments]) == 2
    assert capsys.readouterr().err.count("--shared: nothing is verified by shingles") == 1
