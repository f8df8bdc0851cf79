"""An index of parts of documents decides as the job does, and adds, replaces and removes documents as a whole."""

import random
import tempfile
from typing import Any

import pyarrow.parquet as pq
import pytest
from grids import some
from growing import same_as_dedup, valued

import neardup_gpu as nd
from neardup_gpu import Index, MinHash, Recipe, Shingles, SimHash, Unit

WORDS = [f"w{i}" for i in range(6)]


def text(chance: random.Random) -> str:
    """A text of a few short lines, paragraphs and sentences; many of its parts are parts of other texts, too."""
    ends = ["\n", "\r\n", "\n\n", ". ", "\r"]
    lines = (" ".join(chance.choices(WORDS, k=chance.randint(0, 6))) for _ in range(chance.randint(0, 6)))
    return "".join(line + chance.choice(ends) for line in lines)


def recipe_of(unit: Unit, method: Any, threshold: float | None, **settings: Any) -> Recipe:
    shingles = Shingles() if threshold == 1 and method == "exact" else Shingles(2)
    return Recipe(shingles=shingles, method=method, threshold=threshold, unit=unit, **settings)


CASES: dict[str, tuple[Recipe, dict[str, Any]]] = {
    "equal lines": (recipe_of(Unit("line"), "exact", 1.0), {}),
    "equal lines, inside": (recipe_of(Unit("line", min_words=2, inside=True), "exact", 1.0), {}),
    "paragraphs": (recipe_of(Unit("paragraph"), "exact", 0.5), {}),
    "paragraphs, few partners": (recipe_of(Unit("paragraph", min_words=2), "exact", 0.4, max_partners=1), {}),
    "sentences": (recipe_of(Unit("sentence", keep_copies=2), MinHash(filter=(4, 1, 1)), 0.5), {"containment": 1}),
    "lines, inside": (recipe_of(Unit("line", inside=True, drop_below=4), MinHash(filter=(4, 1, 2)), 0.5), {}),
    "windows": (recipe_of(Unit("window:4/2"), MinHash(filter=(6, 1, 1)), 0.5, max_partners=2), {}),
    "without sets": (recipe_of(Unit("line", min_words=2), MinHash(filter=(8, 2, 1)), 0.5), {"sets": False}),
    "within": (recipe_of(Unit("line"), "exact", 0.5, within=("value",)), {}),
    "simhash": (recipe_of(Unit("line", min_words=2), SimHash(radius=9, bucket_limit=1000), None), {"expected": 99}),
}
SOME = ("equal lines, inside", "paragraphs, few partners", "sentences", "windows", "without sets", "within")


def same_units(index: Index, live: dict[str, str], **how: str) -> None:
    """Check that `decide` gives the rows of all tables that `dedup` gives of the live documents."""
    if not index.info()["sets"] and index.recipe.verifies:  # resemblance is estimated
        with (
            tempfile.TemporaryDirectory() as folder,
            Index.create(f"{folder}/x", recipe=index.recipe, columns="value", engine="cpu", sets=False) as at_once,
        ):
            at_once.add(valued(list(live), list(live.values())), id_column="id")
            mine, expected = index.decide(**how), at_once.decide(**how)
        for name in ("documents", "pairs", "units"):
            assert getattr(mine, name).equals(getattr(expected, name))
        return
    same_as_dedup(index, live, valued, **how)
    if live:
        recipe = index.recipe.with_(**how)
        expected = nd.dedup(valued(list(live), list(live.values())), id_column="id", engine="cpu", recipe=recipe)
        units = [
            {**row, "reason": "same_words" if row["reason"] == "identical" else row["reason"]}
            for row in expected.units.to_pylist()
        ]
        assert index.decide(**how).units.to_pylist() == units


@pytest.mark.parametrize("case", some(CASES, SOME))
def test_units_are_decided_as_the_job_decides(case: str, tmp_path) -> None:
    recipe, keeps = CASES[case]
    chance, live = random.Random(case), dict[str, str]()
    with Index.create(tmp_path / "x", recipe=recipe, columns="value", engine="cpu", **keeps) as index:
        for turn in range(8):
            new = {f"d{100 * turn + i}": text(chance) for i in range(chance.choice([1, 3, 12]))}
            again = {id: text(chance) for id in chance.sample(sorted(live), min(len(live), chance.choice([0, 0, 2])))}
            several = {**new, **again}
            added = index.add(
                valued(list(several), list(several.values())),
                id_column="id",
                replace=True,
                commit_every=chance.choice([1, 2, 100]),
                output=tmp_path / f"{turn}.parquet",
            )
            assert (added.documents, added.replaced) == (len(several), len(again))
            listed = pq.read_table(tmp_path / f"{turn}.parquet")
            assert len(listed) == added.kept + added.removed
            assert sum(listed["kept"].to_pylist()) == added.kept
            live = {id: each for id, each in live.items() if id not in again} | several
            if turn % 3 == 2:
                gone = chance.sample(sorted(live), len(live) // 4)
                assert index.remove(gone).documents == len(gone)
                live = {id: each for id, each in live.items() if id not in gone}
            if turn % 4 == 3:
                index.compact(rebuild=chance.random() < 0.5)
            assert len(index) == len(live)
            same_units(index, live)
        same_units(index, live, keep="longest")
        same_units(index, live, keep="value:desc")
        if recipe.threshold != 1:
            same_units(index, live, cluster="components")
        assert index.check(all=True)["documents"] == len(live)
    with Index.open(tmp_path / "x", engine="cpu") as index:
        same_units(index, live)
        assert index.info()["units"] == len(index.decide().units)


def test_a_sentence_that_cannot_be_cut_is_no_source_for_a_shorter_document(tmp_path) -> None:
    """By the longest document, a sentence that keeps its neighbours apart comes after those of all documents."""
    texts = ["Menu! End.", "He left. Menu! and went."]
    for threshold in (1.0, 0.9):
        folder, recipe = tmp_path / str(threshold), recipe_of(Unit("sentence"), "exact", threshold)
        with Index.create(folder, recipe=recipe, columns="value", engine="cpu") as index:
            index.add(valued(["d0", "d1"], texts), id_column="id")
            same_units(index, {f"d{row}": text for row, text in enumerate(texts)}, keep="longest")
            units = index.decide(keep="longest").units
            assert units["source_id"].to_pylist() == [None, None, None, "d0", None]
            assert units["reason"].to_pylist() == [None, None, None, "seam", None]
