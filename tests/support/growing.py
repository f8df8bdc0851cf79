"""Documents for an index, and what `dedup` says of them."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import neardup_gpu as nd


class Texts:
    """Random documents: many near-duplicates, copies, crowds and empty ones."""

    def __init__(self, seed: int, words: int = 200) -> None:
        self.random = random.Random(seed)
        self.words = [f"w{i}" for i in range(words)]
        self.made: list[str] = []

    def one(self) -> str:
        random, kind = self.random, self.random.random()
        if self.made and kind < 0.6:
            among = self.made[-20:] if random.random() < 0.5 else self.made[:20]
            words = random.choice(among).split()
            for _ in range(random.choice([0, 0, 1, 1, 2])):
                if words:
                    words[random.randrange(len(words))] = random.choice(self.words)
            text = " ".join(words)
        elif kind < 0.64:
            text = random.choice(["", " ... "])
        else:
            text = " ".join(random.choice(self.words) for _ in range(random.randint(1, 30)))
        if text.strip(" ."):
            self.made.append(text)
        return text

    def some(self, number: int) -> list[str]:
        return [self.one() for _ in range(number)]


def recipe_of(max_partners: int | None = 64, threshold: float = 0.5, **method: object) -> nd.Recipe:
    kind = nd.MinHash(**method)  # type: ignore[arg-type]
    return nd.Recipe(method=kind, shingles=nd.Shingles(2), threshold=threshold, max_partners=max_partners)


def table(ids: Any, texts: list[str]) -> dict:
    return {"id": ids, "text": texts}


def valued(ids: list[str], texts: list[str]) -> dict:
    """Documents with a column `value`, which their ids determine."""
    return {**table(ids, texts), "value": pa.array([value_of(id) for id in ids], pa.int32())}


def value_of(id: str) -> int | None:
    number = int(id[1:]) * 7 % 5
    return number if number else None


def as_in_an_index(table: pa.Table) -> list[dict]:
    """Return the rows of a table of `dedup` as an index gives them.

    An index keeps no fingerprints of texts, so that what `dedup` calls identical has the same words there.
    """
    return [{**row, "kind": "same_words" if row["kind"] == "identical" else row["kind"]} for row in table.to_pylist()]


def same_as_dedup(index: nd.Index, live: dict, documents: Callable[..., dict] = table, **how: str) -> None:
    """Check that `decide` gives the very rows that `dedup` gives of the live documents; see `as_in_an_index`."""
    found = index.decide(**how)
    if not live:
        assert len(found.documents) == 0
        return
    recipe = index.recipe.with_(**how)
    expected = nd.dedup(
        documents(list(live), list(live.values())),
        id_column="id",
        engine="cpu",
        recipe=recipe,
        writing=nd.Writing(check=0),
    )
    for name in ("documents", "pairs"):
        mine, theirs = getattr(found, name).to_pylist(), as_in_an_index(getattr(expected, name))
        assert mine == theirs, (name, [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]][:3])
