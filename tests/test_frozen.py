"""Results that may not change: SHA-256 of the rows of documents and pairs, counts and limits, by twelve recipes.

The table `frozen.json` was written before the house was rebuilt. A change of results raises `recipe.DEFINITIONS`, and
then `python tests/test_frozen.py` writes the table anew.
"""

import hashlib
import json
import os
import random
import sys
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Filter, Recipe, SimhashRecipe, dedup, find_pairs, sketch

TABLE = Path(__file__).with_name("frozen.json")

RECIPES = {
    "minhash": Recipe.choose(),
    "bag of 3": Recipe.choose(0.7, w=3, shingling="bag"),
    "circular": Recipe.choose(0.6, w=4, shingling="circular", seed=7),
    "components": Recipe.choose(0.75, cluster="components", keep="longest"),
    "Bing": Recipe(Filter(6, 5, 4), feature_bits=16, threshold=0.9),
    "AltaVista, 64 bits": Recipe(Filter(6, 14, 2), bits=64, threshold=0.85, keep="date:desc"),
    "small buckets": Recipe.choose(0.8, bucket_limit=4, bucket_probe=2, keep="date"),
    "against": Recipe.choose(0.8, w=3),
    "simhash": SimhashRecipe(),
    "simhash of 128 bits, components": SimhashRecipe(
        radius=8, bits=128, features="shingles", w=2, weighting="tf", cluster="components", keep="longest"
    ),
    "simhash by tf-idf, verified": SimhashRecipe(threshold=0.5, radius=6, weighting="tfidf", w=3, keep="date"),
    "simhash against, small buckets": SimhashRecipe(radius=4, bucket_limit=4, bucket_probe=2),
}
REAL = ("bills_116_small", "manpages", "winps_docs")


def letters(number):
    return "".join(chr(97 + int(digit)) for digit in str(number))


@cache
def made(name):
    """A corpus and a reference set: of edited copies, of pages of one template, or of odd texts."""
    draw = random.Random(name)
    words = ["w" + letters(draw.randrange(3000)) for _ in range(4000)]
    texts = []
    if name == "edited":
        for _ in range(60):
            page = draw.choices(words, k=draw.randrange(8, 160))
            texts.append(page)
            for _ in range(draw.randrange(4)):
                copy = list(page)
                for _ in range(draw.randrange(1 + len(page) // 16)):
                    copy[draw.randrange(len(copy))] = draw.choice(words)
                texts.append(copy)
    elif name == "template":
        frame = draw.choices(words, k=60)
        texts = [frame + draw.choices(words, k=draw.randrange(0, 24)) for _ in range(90)]
    else:
        odd = [
            "",
            " . ",
            "one",
            "one two",
            "ﬁne Straße",
            "fine STRASSE",
            "日本語の文章です。",
            "日本語の文章です",
            "a\u0301 b c d e",
        ]
        texts = [
            [draw.choice(odd)] * draw.randrange(1, 4) + draw.choices(words[:6], k=draw.randrange(7)) for _ in range(120)
        ]
    draw.shuffle(texts)
    rows = {
        "id": [f"{name} {i}" for i in range(len(texts))],
        "text": [None if draw.random() < 0.02 else " ".join(text) for text in texts],
        "date": [draw.choice([None, draw.randrange(20)]) for _ in texts],
    }
    table, known = pa.table(rows), len(texts) // 5
    return table.slice(known), table.slice(0, known)


def digest(value):
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()


def decided(table, known, recipe_name, backend):
    recipe = RECIPES[recipe_name]
    against = known if "against" in recipe_name else None
    result = dedup(table, id_column="id", text_columns="text", against=against, recipe=recipe, backend=backend)
    sampled = result.report["recall"]["sampled"]
    return {
        "documents": digest(result.documents.to_pydict()),
        "pairs": digest(result.pairs.to_pydict()),
        "counts": result.report["counts"],
        "limits": result.report["limits"],
        "recall": None if sampled is None else digest(sampled),
    }


def sketched(table, recipe_name, backend, folder):
    """Digests of a sketch file, and of the pairs that are found in it."""
    file = folder / "sketches.parquet"
    options = {"id_column": "id", "text_columns": "text", "backend": backend, "overwrite": True}
    sketch(table, file, recipe=RECIPES[recipe_name], **options)
    found = {"sketches": digest(list(pq.read_table(file).to_pydict().values()))}
    if isinstance(RECIPES[recipe_name], Recipe):
        found["pairs"] = digest(find_pairs(file, backend=backend).to_pydict())
    return found


def real(name, corpora):
    table = pq.read_table(Path(corpora) / f"{name}.parquet", columns=["id", "text"])
    table = table.append_column("date", pa.array([row % 100 for row in range(len(table))]))
    known = len(table) // 5
    return table.slice(known), table.slice(0, known)


@cache
def frozen():
    return json.loads(TABLE.read_text())


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("corpus", ["edited", "template", "odd"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_made(recipe, corpus, backend):
    assert decided(*made(corpus), recipe, backend) == frozen()[corpus][recipe]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_sketches(recipe, backend, tmp_path):
    assert sketched(made("edited")[0], recipe, backend, tmp_path) == frozen()["sketches"][recipe]


@pytest.mark.corpus
@pytest.mark.parametrize("corpus", REAL)
@pytest.mark.parametrize("recipe", RECIPES)
def test_real(recipe, corpus, corpora):
    assert decided(*real(corpus, corpora), recipe, "cpu") == frozen()[corpus][recipe]


def test_limits_and_edges_are_reached():
    """The table shows what it is to guard: large buckets, exact and near duplicates, and empty documents."""
    template, odd = frozen()["template"], frozen()["odd"]
    assert template["small buckets"]["limits"]["uncompared_pairs"] > 0
    assert template["simhash against, small buckets"]["limits"]["uncompared_pairs"] > 0
    assert odd["minhash"]["counts"]["empty"] > 0 and odd["minhash"]["counts"]["removed_exact"] > 0
    assert all(each["counts"]["removed_near"] > 0 for each in frozen()["edited"].values())


def main():
    import tempfile

    corpora = os.environ["NEARDUP_CORPORA"]
    table = {name: {r: decided(*made(name), r, "reference") for r in RECIPES} for name in ("edited", "template", "odd")}
    with tempfile.TemporaryDirectory() as folder:
        table["sketches"] = {r: sketched(made("edited")[0], r, "reference", Path(folder)) for r in RECIPES}
    table |= {name: {r: decided(*real(name, corpora), r, "cpu") for r in RECIPES} for name in REAL}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
