"""An index by simhash decides as the job does, finds what is within the radius, and works on when it is outgrown."""

from pathlib import Path

import pytest
from growing import Texts, same_as_dedup, table

import neardup_gpu as nd

RECIPES = {
    "near": nd.Recipe(method=nd.SimHash(radius=6)),
    "exact": nd.Recipe(method=nd.SimHash(radius=0)),
    "long": nd.Recipe(method=nd.SimHash(radius=12, bits=128, weighting="tf")),
    "crowded": nd.Recipe(method=nd.SimHash(radius=9, bucket_limit=4, bucket_probe=2)),
    "shingles": nd.Recipe(method=nd.SimHash(radius=10, elements="shingles"), shingles=nd.Shingles(2)),
    "verified": nd.Recipe(method=nd.SimHash(radius=10), threshold=0.6, shingles=nd.Shingles(2), max_partners=2),
    "verified long": nd.Recipe(method=nd.SimHash(radius=20, bits=128), threshold=0.5, shingles=nd.Shingles(2)),
}


def grown(index: nd.Index, texts: Texts, number: int) -> dict[str, str]:
    """Add documents in batches, with compactions between; what was added."""
    live: dict[str, str] = {}
    while len(live) < number:
        some = texts.some(min(number - len(live), texts.random.choice([1, 2, 5, 20, 100])))
        ids = [f"d{len(live) + i}" for i in range(len(some))]
        index.add(table(ids, some), id_column="id", commit_every=texts.random.choice([1, 7, 1000]))
        live |= dict(zip(ids, some, strict=True))
        if texts.random.random() < 0.2:
            index.compact()
    return live


@pytest.mark.parametrize("name", RECIPES)
def test_batches_decide_as_all_at_once(name: str, tmp_path: Path) -> None:
    texts = Texts(sorted(RECIPES).index(name))
    with nd.Index.create(tmp_path / "x", recipe=RECIPES[name], expected=200, engine="cpu") as index:
        live = grown(index, texts, 200)
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            same_as_dedup(index, live, **how)
        assert index.decide().report["counts"]["removed"] > 20
        gone = texts.random.sample(sorted(live), 40)
        index.remove(gone)
        live = {id: text for id, text in live.items() if id not in gone}
        same_as_dedup(index, live)
        index.add(table(["new", "other"], [live["d1" if "d1" in live else next(iter(live))], ""]), id_column="id")
        live |= {"new": live["d1" if "d1" in live else next(iter(live))], "other": ""}
        index.compact()
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            same_as_dedup(index, live, **how)
        index.check()
