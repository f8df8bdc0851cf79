"""An index without sets: pairs are estimated from samples, decided of by the same rule, and never called verified."""

from pathlib import Path

import numpy as np
import pytest
from growing import Texts, recipe_of, table
from rule import Pair, stated, told, words_or_text

import neardup_gpu as nd
from neardup_gpu.cli import main
from neardup_gpu.stages import partners

RECIPES = [
    recipe_of(),
    recipe_of(max_partners=2, filter=(6, 2, 2)),
    recipe_of(max_partners=1, filter=(16, 4, 1), sample_bits=4),
    recipe_of(max_partners=None, filter=(8, 3, 1)),
]


class Samples:
    """What the sketches of some texts say of each two of them."""

    def __init__(self, texts: list[str], recipe: nd.Recipe) -> None:
        shingles = nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe)
        made = recipe.method.sketch(shingles, seed=recipe.seed)
        self.keys = recipe.method.keys(made, seed=recipe.seed)
        self.stored = recipe.method.stored(made, seed=recipe.seed)
        self.recipe = recipe

    def near(self, one: int, others: list[int]) -> dict[int, tuple[float, float, float]]:
        """(estimate, low, high) of the texts that share r features with one and are estimated at the threshold."""
        some = np.array(others, np.int64)
        shared = (self.keys[some] == self.keys[one]).sum(axis=1)
        estimates = np.array(self.recipe.method.estimate_rows(self.stored, np.full(len(some), one), some)).T
        least = self.recipe.method.filter.r
        return {
            other: tuple(estimate)
            for other, count, estimate in zip(others, shared, estimates.tolist(), strict=True)
            if count >= least and estimate[0] >= self.recipe.threshold
        }


def expected(live: dict[str, str], recipe: nd.Recipe) -> tuple[dict, dict]:
    """What the rule makes of all estimated pairs of texts without punctuation: (documents, pairs)."""
    ids = list(live)
    if recipe.keep == "longest":
        ids.sort(key=lambda id: -len(live[id].replace(".", "").split()))
    texts = [live[id] for id in ids]
    samples = Samples(texts, recipe)

    def find(ranks: list[int]) -> dict[Pair, float]:
        every = {}
        for row, rank in enumerate(ranks[1:], 1):
            every |= {(ranks.index(i), row): value[0] for i, value in samples.near(rank, ranks[:row]).items()}
        return every

    found = stated(ids, [words_or_text(text.replace(".", "").split(), text) for text in texts], 0, recipe, find)
    return found.documents, found.pairs


def check(index: nd.Index, live: dict[str, str], **how: str) -> None:
    """`decide` is the rule over all pairs."""
    result = index.decide(**how)
    assert told(result) == expected(live, index.recipe.with_(**how))
    assert result.documents["id"].to_pylist() == list(live)
    assert result.report["counts"]["verified_pairs"] == 0
    assert "nothing verified" in result.report["candidates"][1]


@pytest.mark.parametrize("case", range(len(RECIPES)))
def test_decisions_are_the_rule_over_estimates(case: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partners, "ASKED", 2)  # so that lists are full in small crowds
    monkeypatch.setattr(partners, "MOST_ASKED", 4)
    texts, live = Texts(case, words=60), {}
    with nd.Index.create(tmp_path / "x", recipe=RECIPES[case], sets=False, engine="cpu") as index:
        for number in (40, 1, 7, 80):
            some = {f"d{len(live) + i}": text for i, text in enumerate(texts.some(number))}
            index.add(table(list(some), list(some.values())), id_column="id", commit_every=30)
            live |= some
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            check(index, live, **how)
        gone = texts.random.sample(sorted(live), 25)
        index.remove(gone)
        live = {id: text for id, text in live.items() if id not in gone}
        check(index, live)
        index.compact()
        index.add(table(["last"], [live[next(iter(live))] + " w1"]), id_column="id")
        live["last"] = live[next(iter(live))] + " w1"
        for how in ({}, {"keep": "longest"}, {"cluster": "components"}):
            check(index, live, **how)
        index.check()


def test_components_are_joined_by_pairs_that_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partners, "ASKED", 2)
    one, other = (" ".join(f"{letter}{i}" for i in range(20)) for letter in "ab")
    texts = [one, f"{one} more", f"{one} again", other, f"{one} {other}"]
    live = {f"d{i}": text for i, text in enumerate(texts)}
    recipe = recipe_of(max_partners=1, threshold=0.3, filter=(128, 1, 1))
    with nd.Index.create(tmp_path / "x", recipe=recipe, sets=False, engine="cpu") as index:
        index.add(table(list(live), texts), id_column="id")
        check(index, live)
        assert index.decide().report["counts"]["kept"] == 2
        check(index, live, cluster="components")
        assert index.decide(cluster="components").report["counts"]["kept"] == 1


def test_queries_are_estimates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, recipe = Texts(9, words=60), recipe_of(filter=(16, 3, 1))
    live = texts.some(60)
    with nd.Index.create(tmp_path / "x", recipe=recipe, sets=False, engine="cpu") as index:
        index.add(table(list(range(60)), live), id_column="id", commit_every=25)
        asked = [*live[::4], *texts.some(20), "nothing of it"]
        samples = Samples([*live, *asked], recipe)
        some = [row for row, text in enumerate(live) if text.replace(".", "").split()]
        met = 0
        for number, text in enumerate(asked):
            found = index.query(text).to_pylist()
            near = samples.near(60 + number, some) if text.replace(".", "").split() else {}
            order = sorted(near, key=lambda row: (-near[row][0], row))
            assert [(each["id"], (each["resemblance"], each["low"], each["high"])) for each in found] == [
                (row, near[row]) for row in order
            ]
            assert not any(each["exact"] for each in found)
            met += len(found)
        assert met > 30
        assert index.query(live[some[0]], threshold=1.0)["resemblance"].to_pylist()[0] == 1
        assert not index.info()["sets"]
        segments = index.info()["segments"]
    with nd.Index.create(tmp_path / "y", recipe=recipe, engine="cpu") as index:
        index.add(table(list(range(60)), live), id_column="id", commit_every=25)
        assert index.info()["sets"] and all(index.query(live[some[0]])["exact"].to_pylist())
        assert index.info()["segments"] == segments
    assert main(["index", "info", str(tmp_path / "x")]) == 0
    assert "nothing is verified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--method", "simhash", "--threshold", "0.8"], "--no-sets: without them method simhash tells no resemblance"),
        (["--method", "simhash", "--verify"], "--no-sets: without them method simhash tells no resemblance"),
        (["--expected", "100"], "--expected: chooses tables of simhashes"),
    ],
)
def test_what_needs_sets_is_refused(flags: list[str], words: str, tmp_path: Path, capsys) -> None:
    assert main(["index", "create", str(tmp_path / "x"), "--no-sets", *flags]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and not (tmp_path / "x").exists()
