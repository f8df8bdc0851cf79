"""Results that may not change: SHA-256 of the rows of documents and pairs, counts and limits, by fifteen recipes.

A change of results raises `recipe.DEFINITIONS`, and
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
from flat import flat

from neardup_gpu import MinHash, Recipe, Shingles, SimHash, Sketch, dedup, pairs, sketch

TABLE = Path(__file__).with_name("frozen.json")

RECIPES = {
    "exact": Recipe(),
    "exact, bag of 3, one partner": Recipe(threshold=0.5, shingles=Shingles(3, "bag"), max_partners=1, keep="date"),
    "exact against, components": Recipe(threshold=0.6, shingles=Shingles(2), cluster="components", max_partners=3),
    "minhash": Recipe(method="minhash"),
    "bag of 3": Recipe(method="minhash", threshold=0.7, shingles=Shingles(3, "bag")),
    "circular": Recipe(method="minhash", threshold=0.6, shingles=Shingles(4, "circular"), seed=7),
    "components": Recipe(method="minhash", threshold=0.75, cluster="components", keep="longest"),
    "Bing": Recipe(method=MinHash(filter="bing"), threshold=0.9),
    "AltaVista, 64 bits": Recipe(method=MinHash(k=6, s=14, r=2, bits=64), threshold=0.85, keep="date:desc"),
    "small buckets": Recipe(method=MinHash(bucket_limit=4, bucket_probe=2), keep="date"),
    "against": Recipe(method="minhash", shingles=Shingles(3)),
    "simhash": Recipe(method="simhash"),
    "simhash of 128 bits, components": Recipe(
        method=SimHash(radius=8, bits=128, elements="shingles", weighting="tf"),
        shingles=Shingles(2),
        cluster="components",
        keep="longest",
    ),
    "simhash by tf-idf, verified": Recipe(
        method=SimHash(radius=6, weighting="tfidf"), threshold=0.5, shingles=Shingles(3), keep="date"
    ),
    "simhash against, small buckets": Recipe(method=SimHash(radius=4, bucket_limit=4, bucket_probe=2)),
}
SKETCHED = [name for name, recipe in RECIPES.items() if isinstance(recipe.method, Sketch)]
BACKENDS = [pytest.param("cpu", marks=pytest.mark.quick), "reference"]
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
    result = dedup(table, id_column="id", text_columns="text", against=against, recipe=recipe, engine=backend)
    sampled, counts = result.report["recall"]["sampled"], dict(result.report["counts"])
    limits = dict(result.report["limits"])
    if not limits.get("all_counted", True):
        del limits["unlisted_pairs"]  # a lower bound, which depends on how partners are looked for
    if recipe.verifies:  # these depend on the size of a table that is no part of the recipe
        del counts["candidate_pairs"], counts["comparisons"]
    # When the table was written there were no partners in the reference set; test_against.py says what they are.
    counts.pop("near_reference", None)
    del counts["replaced_text"], counts["garbled_text"]  # nor were these
    names = {"near_reference", "reference_resemblance", "reference_containment", "kind"}  # test_kinds.py checks kinds
    documents = result.documents.drop(sorted(names & set(result.documents.column_names)))
    return {
        "documents": digest(documents.to_pydict()),
        "pairs": digest(result.pairs.drop_columns("kind").to_pydict()),
        "counts": counts,
        "limits": limits,
        "recall": None if sampled is None else digest(sampled),
    }


def sketched(table, recipe_name, backend, folder):
    """Digests of a sketch file, and of the pairs that are found in it."""
    file = folder / "sketches.parquet"
    options = {"id_column": "id", "text_columns": "text", "engine": backend, "overwrite": True}
    flat(sketch, table, file, recipe=RECIPES[recipe_name], **options)
    columns = pq.read_table(file).to_pydict()
    columns.pop("num_shingles", None)  # which files lacked when the table was written; its own tests say what it holds
    found = {"sketches": digest(list(columns.values()))}
    if RECIPES[recipe_name].method.name == "minhash":
        found["pairs"] = digest(pairs(file, engine=backend).to_pydict())
    return found


def real(name, corpora):
    table = pq.read_table(Path(corpora) / f"{name}.parquet", columns=["id", "text"])
    table = table.append_column("date", pa.array([row % 100 for row in range(len(table))]))
    known = len(table) // 5
    return table.slice(known), table.slice(0, known)


@cache
def frozen():
    return json.loads(TABLE.read_text())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("corpus", ["edited", "template", "odd"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_made(recipe, corpus, backend):
    assert decided(*made(corpus), recipe, backend) == frozen()[corpus][recipe]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("recipe", SKETCHED)
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
    assert template["exact, bag of 3, one partner"]["limits"]["all_counted"] is False
    assert template["simhash against, small buckets"]["limits"]["uncompared_pairs"] > 0
    assert odd["minhash"]["counts"]["empty"] > 0 and odd["minhash"]["counts"]["removed_same_words"] > 0
    assert all(each["counts"]["removed_near"] > 0 for each in frozen()["edited"].values())


def main():
    import tempfile

    corpora = os.environ["NEARDUP_CORPORA"]
    table = {name: {r: decided(*made(name), r, "reference") for r in RECIPES} for name in ("edited", "template", "odd")}
    with tempfile.TemporaryDirectory() as folder:
        table["sketches"] = {r: sketched(made("edited")[0], r, "reference", Path(folder)) for r in SKETCHED}
    table |= {name: {r: decided(*real(name, corpora), r, "cpu") for r in RECIPES} for name in REAL}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
