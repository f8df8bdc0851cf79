"""The filters of the exact join change how much is compared, never what is found: by brute force on the hard shapes.

`rule.py` is the reference. Each job also runs with one of the filters turned off, and with all of them.
"""

import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from flat import flat
from grids import pairs_of
from rule import check, expected

from neardup_gpu import Containment, Recipe, Shingles, dedup
from neardup_gpu.kernels import bitmaps, prefixes
from neardup_gpu.methods.measures import ContainmentMeasure, Resemblance
from neardup_gpu.stages import partners
from neardup_gpu.stages.joining import FILTERS

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks import cliff_shapes, cliffs

CORPORA = 5
"""Random corpora of each shape and setting; 10,000 in all were run before filters were changed last."""


def sections(draw):
    """Documents of sections, each in one of 3 variants."""
    number, length = draw.choice([6, 12]), draw.choice([2, 5])
    return [
        " ".join(f"s{i}v{draw.randrange(3)}w{k}" for i in range(number) for k in range(length))
        for _ in range(draw.choice([10, 40]))
    ]


def sentences(draw):
    """Short texts whose words are few and of unequal frequency."""
    words = [f"w{i}" for i in range(draw.choice([5, 12, 40]))]
    weights = [1 / (i + 1) for i in range(len(words))]
    longest = draw.choice([6, 15, 30])
    return [" ".join(draw.choices(words, weights, k=draw.randint(1, longest))) for _ in range(draw.choice([10, 50]))]


def few_words(draw):
    """Texts of 1 to 5 words."""
    words = [f"w{i}" for i in range(draw.choice([3, 8, 20]))]
    longest = draw.choice([3, 5])
    return [" ".join(draw.sample(words, draw.randint(1, min(longest, 3)))) for _ in range(draw.choice([10, 60]))]


def windows(draw):
    """Windows of one text, in any order."""
    length, step = draw.choice([(20, 1), (40, 1), (40, 3)])
    words = [f"w{i}" for i in range(200)]
    texts = [" ".join(words[i * step : i * step + length]) for i in range(40)]
    if draw.random() < 0.5:
        draw.shuffle(texts)
    return texts


SHAPES = {shape.__name__: shape for shape in (sections, sentences, few_words, windows)}
THRESHOLDS = (0.3, 0.5, 2 / 3, 0.8, 0.9, 1.0)


def without_bits(patch):
    """No bitmap has a one."""
    zeros = lambda values, offsets, words, flip: np.zeros(int(words.sum()), np.uint64)  # noqa: E731
    patch.setattr(bitmaps, "cpu", zeros)


def without_places(patch):
    """All elements are in the first place."""
    make = prefixes.cpu

    def made(*arguments):
        shingles, entries, *others = make(*arguments)
        return shingles, entries & ~np.uint64((1 << prefixes.PLACE_BITS) - 1), *others

    patch.setattr(prefixes, "cpu", made)


def without_keys(patch):
    """Small sets have the posting of an element, too."""
    make = prefixes.cpu
    patch.setattr(prefixes, "cpu", lambda *arguments: make(*arguments[:-1], 0))


def without_any(patch):
    """No pair needs a common element, so that none is rejected by size, by place or by bits."""
    without_keys(patch)
    for measure in (Resemblance, ContainmentMeasure):
        needed = measure.needed
        patch.setattr(measure, "needed", lambda self, most, threshold, of=needed: 0 * of(self, most, threshold))


OFF = {"all on": lambda patch: None} | {
    f.__name__: f for f in (without_bits, without_places, without_keys, without_any)
}


def compare(seed, shape, off, patch, **options):
    """Run one job and hold it against the rule; return its report."""
    draw = random.Random(f"{shape} {seed}")
    texts = SHAPES[shape](draw)
    contained = draw.random() < 0.25
    recipe = Recipe(
        method=Containment() if contained else "exact",
        shingles=Shingles(draw.choice([1, 1, 2])),
        threshold=draw.choice(THRESHOLDS),
        max_partners=draw.choice([1, 3, 64, None]),
        cluster=draw.choice(["greedy", "components"]),
    )
    with patch.context() as patched:
        OFF[off](patched)
        rows = pa.table({"id": [f"m{i}" for i in range(len(texts))], "text": texts})
        found = flat(dedup, rows, recipe=recipe, engine="cpu", check=0, text_columns="text", id_column="id", **options)
    check(found, expected([(f"m{i}", text) for i, text in enumerate(texts)], recipe))
    return found.report


def job(texts, **options):
    return flat(dedup, pa.table({"text": texts}), recipe=Recipe(), engine="cpu", check=0, **options)


@pytest.mark.parametrize(
    ("seconds", "compared", "found", "is_said"),
    [(0, 100, 10, True), (60, 100, 10, False), (0, 10**7, 10, False), (0, 100, 10**7, False)],
)
def test_a_join_says_that_its_data_is_hard(seconds, compared, found, is_said, monkeypatch, caplog):
    """Once it has taken long enough, compared pairs enough, and found one in so many of them at most."""
    monkeypatch.setattr(partners, "SLOW_SECONDS", float(seconds))
    monkeypatch.setattr(partners, "SLOW_COMPARED", compared)
    monkeypatch.setattr(partners, "SLOW_FOUND", found)
    texts = [text for part in cliff_shapes.sections(300) for text in part]
    caplog.set_level("INFO", "neardup_gpu")
    report = job([*texts, *(f"{text} more" for text in texts[:2])]).report
    lines = [record.getMessage() for record in caplog.records if "half-similar" in record.getMessage()]
    assert bool(lines) == is_said
    if is_said:
        compared = report["filtered"]["bits"]
        assert lines[0].endswith(" candidates so far for 0 pairs; this data has many half-similar documents")
        assert 100 <= int(lines[0].split()[0].replace(",", "")) <= compared


@pytest.mark.parametrize(
    ("name", "mode"), pairs_of([name for name, shape in cliffs.SHAPES.items() if shape.small], cliffs.MODES)
)
def test_no_cliff(name, mode, tmp_path):
    """What a job of a hard shape counts grows no faster than the shape allows, in memory, bounded and as tasks.

    Tasks look at crowded documents twice, and a bounded job may be cut into tasks when there are more documents.
    """
    shape = cliffs.SHAPES[name]
    few, many = (cliffs.steps(name, factor * shape.small, tmp_path / str(factor), mode) for factor in (1, 4))
    for counted in (few, many):
        assert sum(counted[f"filtered_by_{each}"] for each in FILTERS) <= counted["comparisons"]
        most = shape.candidates * (counted["verified_pairs"] + counted["documents"])
        assert counted["candidate_pairs"] <= most
    times = shape.growth**2 * (1 if mode == "in memory" else 2)
    assert many["comparisons"] <= times * max(few["comparisons"], few["documents"])


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("shape", SHAPES)
def test_filters_change_no_result(shape, off, monkeypatch):
    rejected = {"size": 0, "place": 0, "bits": 0}
    for seed in range(CORPORA):
        report = compare(seed, shape, off, monkeypatch)
        filtered = report["filtered"]
        assert sum(filtered.values()) <= report["counts"]["comparisons"]
        rejected = {name: number + filtered[name] for name, number in rejected.items()}
    if off == "without_any":
        assert not any(rejected.values())
    elif off == "without_bits":
        assert rejected["bits"] == 0
    elif shape != "few_words":
        assert rejected["bits"] > 0
