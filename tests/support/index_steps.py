"""Random steps of an index, each compared with brute force over a dictionary of texts; every step is counted.

    python tests/support/index_steps.py 100000 0 1    # steps, the first run, and the step to the next run

A run is determined by its number: `Run(number, folder, counts).steps(n)` repeats one that failed.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from flat import flat
from growing import same_as_dedup, value_of, valued
from postings import assert_tables_are_those_of_the_entries

import neardup_gpu as nd
from neardup_gpu.index import merging
from neardup_gpu.stages import utf8

STEPS_OF_A_RUN = 40
MOST_DOCUMENTS = 400

KINDS: dict[str, tuple[nd.Recipe, dict[str, Any]]] = {
    "exact": (nd.Recipe(method="exact", threshold=0.6), {}),
    "exact, one partner": (nd.Recipe(method="exact", threshold=0.4, max_partners=1), {}),
    "exact, containment": (nd.Recipe(method="exact", threshold=0.7, max_partners=2), {"containment": 1}),
    "minhash": (nd.Recipe(method=nd.MinHash(filter=(4, 1, 2)), threshold=0.5, max_partners=2), {}),
    "minhash, fast": (nd.Recipe(method=nd.MinHash(filter=(4, 1, 1), sampler="fast"), threshold=0.5), {}),
    "minhash, containment": (nd.Recipe(method=nd.MinHash(filter=(4, 1, 1)), threshold=0.5), {"containment": 3}),
    "minhash without sets": (nd.Recipe(method=nd.MinHash(filter=(8, 2, 1)), threshold=0.5), {"sets": False}),
    "minhash by segments": (
        nd.Recipe(method=nd.MinHash(filter=(4, 8, 1), sample_bits=1, candidates="segments"), threshold=0.5),
        {"sets": False},
    ),
    "simhash": (nd.Recipe(method=nd.SimHash(radius=9, bucket_limit=3)), {"expected": 200}),
    "simhash, verified": (nd.Recipe(method=nd.SimHash(radius=16), threshold=0.5, max_partners=2), {"expected": 200}),
    "simhash, containment": (
        nd.Recipe(method=nd.SimHash(radius=20, bits=128), threshold=0.4),
        {"expected": 200, "containment": 1},
    ),
}
"""Kinds of indexes: a recipe, and what the index keeps."""

STEPS = {
    "query by own texts": 24,
    "query by a new text": 18,
    "query by containment": 12,
    "refresh a second reader": 8,
    "add": 10,
    "add in 9 commits": 2.5,
    "add in 17 commits": 1.2,
    "add in 65 commits": 0.3,
    "replace": 5,
    "remove": 5,
    "remove before": 1,
    "compact": 2,
    "rebuild": 1.5,
    "reopen": 3,
    "decide": 4,
    "check": 3,
}
"""How often each kind of step is taken, in proportion."""


class Run:
    """One index, and what it should hold.

    Parameters
    ----------
    number : int
        Determines all of the run.
    folder : path
        Where the index is made.
    counts : Counter
        What was done is counted there.
    """

    def __init__(self, number: int, folder: Path, counts: Counter[str]) -> None:
        self.random, self.counts = Random(number), counts
        self.kind = list(KINDS)[number % len(KINDS)]
        recipe, keeps = KINDS[self.kind]
        self.recipe = recipe.with_(shingle_size=2)
        self.by_containment, self.sets = keeps.get("containment"), keeps.get("sets", recipe.threshold is not None)
        self.folder, self.threads = folder / f"x{number}", self.random.choice([1, 2, 2])
        self.live: dict[str, str] = {}
        self.added, self.seen = 0, [""]
        self.words = [f"w{i}" for i in range(self.random.choice([6, 30, 400]))]
        self._known: dict[str, np.ndarray] = {}
        self.index = flat(
            nd.Index.create, self.folder, recipe=self.recipe, columns="value", engine=self._engine(), **keeps
        )
        self.reader = nd.Index.open(self.folder, engine=self._engine())

    def _engine(self) -> nd.Engine:
        return nd.Engine(backend="cpu", threads=self.threads)

    def steps(self, number: int) -> None:
        """Take some steps; every one is compared with brute force."""
        names, weights = list(STEPS), list(STEPS.values())
        for _ in range(number):
            name = self.random.choices(names, weights)[0]
            if name == "query by containment" and self.by_containment is None:
                name = "query by own texts"
            if name.startswith("add") and len(self.live) > MOST_DOCUMENTS:
                name = "remove"
            getattr(self, name.replace(" ", "_"))()
            self.counts[name] += 1
            if self.random.random() < 0.2 or name not in ("query by own texts", "query by a new text"):
                assert_tables_are_those_of_the_entries(self.index)
        self.close()

    def close(self) -> None:
        """Close the index and its second reader."""
        self.index.close()
        self.reader.close()

    # ------------------------------------------------------------------------------------------------- documents

    def text(self) -> str:
        """Return a text: a new one, a near-duplicate of an earlier one, a part of it, a copy, or an empty one."""
        random, kind = self.random, self.random.random()
        words = random.choice(self.seen[-50:] if random.random() < 0.5 else self.seen).split()
        if kind < 0.35 or not words:
            words = [random.choice(self.words) for _ in range(random.choice([1, 2, 4, 8, 16]))]
        elif kind < 0.8:
            for _ in range(random.choice([0, 1, 1, 2])):
                words[random.randrange(len(words))] = random.choice(self.words)
        elif kind < 0.95:
            start = random.randrange(len(words))
            words = words[start : start + random.randint(1, 8)]
        else:
            words = []
        found = " ".join(words)
        self.seen.append(found)
        if random.random() < 0.02:  # words that the first documents do not have
            self.words[random.randrange(len(self.words))] = f"v{random.randrange(10**6)}"
        return found

    def _add(self, ids: list[str], commits: int, replace: bool = False) -> None:
        texts = [self.text() for _ in ids]
        every = max(1, -(-len(ids) // commits))
        before = Counter(MERGES)
        file = self.folder.with_suffix(f".{self.added}.parquet") if self.random.random() < 0.1 else None
        self.index.add(valued(ids, texts), id_column="id", commit_every=every, replace=replace, output=file)
        if -(-len(ids) // every) >= 9:
            self.counts["adds of 9 or more commits"] += 1
            self.counts["orders chosen while such an add went on"] += MERGES["orders"] - before["orders"]
        self.counts["documents"] += len(ids)
        self.live = {id: text for id, text in self.live.items() if id not in ids} | dict(zip(ids, texts, strict=True))
        if file is not None:
            for each in pq.read_table(file).to_pylist():
                assert each["kept"] == (each["duplicate_of"] is None) and each["group"] in self.live
                assert each["duplicate_of"] in (None, each["group"])
            file.unlink()

    def _new_ids(self, number: int) -> list[str]:
        self.added += number
        return [f"d{self.added - number + i}" for i in range(number)]

    def _some_ids(self, most: int) -> list[str]:
        return self.random.sample(list(self.live), min(len(self.live), self.random.randint(1, most)))

    # ----------------------------------------------------------------------------------------------------- steps

    def add(self) -> None:
        number = self.random.choice([1, 2, 5, 12])
        self._add(self._new_ids(number), self.random.choice([1, number]))

    def add_in_9_commits(self) -> None:
        self._add(self._new_ids(9 * self.random.choice([1, 3])), 9)

    def add_in_17_commits(self) -> None:
        self._add(self._new_ids(17 * self.random.choice([1, 2])), 17)

    def add_in_65_commits(self) -> None:
        self._add(self._new_ids(65), 65)

    def replace(self) -> None:
        ids = self._some_ids(20) + self._new_ids(self.random.choice([0, 3]))
        if ids:
            self._add(ids, self.random.choice([1, 9, 17]), replace=True)

    def remove(self) -> None:
        ids = self._some_ids(200 if len(self.live) > MOST_DOCUMENTS else self.random.choice([3, 30]))
        assert self.index.remove(ids).documents == len(ids)
        for id in ids:
            del self.live[id]

    def remove_before(self) -> None:
        before = self.random.randint(0, 2)
        gone = [id for id in self.live if (value_of(id) or before) < before]
        assert self.index.remove(before=before, column="value").documents == len(gone)
        for id in gone:
            del self.live[id]

    def compact(self) -> None:
        self.index.compact()

    def rebuild(self) -> None:
        self.index.compact(rebuild=True)
        assert self.index.info()["segments"] == bool(self.live)

    def reopen(self) -> None:
        self.index.close()
        self.index = nd.Index.open(self.folder, engine=self._engine())
        assert len(self.index) == len(self.live)

    def refresh_a_second_reader(self) -> None:
        self.reader.refresh()
        self._compare(self.reader, [self.text()])

    def decide(self) -> None:
        if not self.sets and self.recipe.verifies:  # `dedup` verifies what such an index estimates
            kept: dict[str, str] = {}
            found = self.index.decide().documents
            for id, text in self.live.items():
                if not text.split() or not any(other in kept for other, _ in self.expected(text)):
                    kept[id] = text
            assert found.filter(found["kept"])["id"].to_pylist() == list(kept)
            return
        how = self.random.choice([{}, {}, {"keep": "longest"}, {"cluster": "components"}, {"keep": "value:desc"}])
        same_as_dedup(self.index, self.live, valued, **how)

    def check(self) -> None:
        self.index.check(all=self.random.random() < 0.5)

    def query_by_own_texts(self) -> None:
        self._compare(self.index, [self.live[id] for id in self._some_ids(8)])

    def query_by_a_new_text(self) -> None:
        self._compare(self.index, [self.text()])

    def query_by_containment(self) -> None:
        least, direction = self.random.choice([0.3, 0.8, 1.0]), self.random.choice(["in", "of"])
        text = self.random.choice([self.text(), *list(self.live.values())[-3:]])
        found = self.index.query(text, containment=least, direction=direction).to_pylist()
        expected, one = {}, shingles_of(text)
        for id, each in self.live.items():
            other = shingles_of(each)
            if one and other and (value := len(one & other) / len(one if direction == "in" else other)) >= least:
                expected[id] = value
        answer = {match["id"]: match["containment"] for match in found if match["id"] is not None}
        if self.by_containment == 1:  # each shingle is an element, so that none is missed
            assert answer == expected
        else:
            assert answer.items() <= expected.items()

    # ---------------------------------------------------------------------------------------------- brute force

    def _compare(self, index: nd.Index, texts: list[str]) -> None:
        """Compare the answers to texts with those of brute force over all live documents."""
        if len(texts) == 1:
            answers = {0: index.query(texts[0]).to_pylist()}
        elif texts:
            answers = {i: list[dict[str, Any]]() for i in range(len(texts))}
            for match in index.query({"text": texts}).to_pylist():
                answers[match["query_id"]].append(match)
        else:
            return
        for number, text in enumerate(texts):
            mine = [(match["id"], match["resemblance"] if self.sets else None) for match in answers[number]]
            assert mine == self.expected(text), (text, mine, self.expected(text))
            assert all(match["value"] == value_of(match["id"]) for match in answers[number] if "value" in match)

    def expected(self, text: str) -> list[tuple[str, float | None]]:
        """Return (id, resemblance) of the live documents that a query by a text should find, best first."""
        if not text.split():
            return []
        ids = [id for id, each in self.live.items() if each.split()]
        if not ids:
            return []
        features = self.features([text, *(self.live[id] for id in ids)])
        like = self._candidates(features)
        found = []
        one = shingles_of(text)
        for place in np.flatnonzero(like).tolist():
            other = shingles_of(self.live[ids[place]])
            found.append((ids[place], len(one & other) / len(one | other)))
        if self.recipe.threshold is not None and self.sets:
            found = [each for each in found if each[1] >= self.recipe.threshold]
            return sorted(found, key=lambda each: -each[1])
        return self._estimated(features, np.flatnonzero(like), ids)

    def features(self, texts: list[str]) -> np.ndarray | None:
        """Return what the method compares of texts, a row for each; None where it compares shingles."""
        method = self.recipe.method
        if method.name == "exact":
            return None
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            elements = nd.stages.tokenize(utf8(new), self.recipe, backend="cpu")
            if method.elements == "shingles":
                elements = nd.stages.shingle(elements, self.recipe, backend="cpu")
            made = method.sketch(elements, seed=self.recipe.seed, backend="cpu")
            self._known |= dict(zip(new, made, strict=True))
        return np.array([self._known[text] for text in texts])

    def _candidates(self, features: np.ndarray | None) -> np.ndarray:
        """Return which documents are candidates of the text whose features come first."""
        method = self.recipe.method
        if features is None:
            return np.ones(len(self.live), bool)[: sum(bool(each.split()) for each in self.live.values())]
        if method.name == "simhash":
            apart = (features[1:] ^ features[:1]).reshape(len(features) - 1, -1)
            return np.array([sum(int(word).bit_count() for word in row) for row in apart]) <= method.radius
        keys = method.keys(features, seed=self.recipe.seed, backend="cpu")
        return (keys[1:] == keys[:1]).sum(1) >= method.filter.r

    def _estimated(self, features: np.ndarray, places: np.ndarray, ids: list[str]) -> list[tuple[str, None]]:
        """Return the ids of candidates in an index that stores no sets, by what the method estimates."""
        if not len(places):
            return []
        method = self.recipe.method
        stored = method.stored(features, seed=self.recipe.seed, backend="cpu")
        like = method.estimate_rows(stored, np.zeros(len(places), np.int64), places + 1).estimate
        found = [(ids[place], value) for place, value in zip(places.tolist(), like, strict=True)]
        if self.recipe.threshold is not None:
            found = [each for each in found if each[1] >= self.recipe.threshold]
        return [(id, None) for id, _ in sorted(found, key=lambda each: -each[1])]


def shingles_of(text: str) -> set[tuple[str, ...]]:
    """Return the set of shingles of two words of a text."""
    words = text.split()
    return {tuple(words[i : i + 2]) for i in range(max(1, len(words) - 1))} if words else set()


MERGES: Counter[str] = Counter()
"""Merges that were published, and orders of shingles that they chose."""


def counted(publish: Callable[..., None]) -> Callable[..., None]:
    """Return `Merge.publish`, which also counts in `MERGES`."""

    def publish_and_count(merge: merging.Merge, **changes: Any) -> None:
        publish(merge, **changes)
        MERGES["merges"] += 1
        MERGES["orders"] += merge._order is not None

    return publish_and_count


def take_steps(number: int, folder: Path, first: int = 0, stride: int = 1) -> Counter[str]:
    """Take at least `number` steps in runs `first`, `first + stride`, ...; returns how many of each kind."""
    counts: Counter[str] = Counter()
    run = first
    while sum(counts[name] for name in STEPS) < number:
        try:
            Run(run, folder, counts).steps(min(STEPS_OF_A_RUN, number))
        except Exception as error:
            raise AssertionError(f"run {run}, {list(KINDS)[run % len(KINDS)]}") from error
        counts["indexes"] += 1
        run += stride
    return counts


if __name__ == "__main__":
    merging.Merge.publish = counted(merging.Merge.publish)
    with tempfile.TemporaryDirectory() as name:
        number, first, stride = (int(word) for word in sys.argv[1:4])
        print(json.dumps(dict(take_steps(number, Path(name), first, stride) + MERGES)))
