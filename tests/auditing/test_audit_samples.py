"""Intervals cover the truth at their rate, and a sample of everything is the whole."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from grids import fewer
from hypothesis import given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu.auditing.intervals import exact_binomial


def hoeffding(trials: int, failure: float = 1e-9) -> float:
    """Return the deviation of a mean of `trials` values in [0, 1] that is exceeded with this chance at most."""
    return math.sqrt(math.log(2 / failure) / (2 * trials))


def chance(successes: int, trials: int, p: float) -> float:
    return math.comb(trials, successes) * p**successes * (1 - p) ** (trials - successes)


@given(st.integers(1, 40), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(max_examples=fewer(60), deadline=None)
def test_the_interval_covers_every_share_with_the_stated_confidence(trials, p, confidence):
    covered = [low <= p <= high for low, high in (exact_binomial(k, trials, confidence) for k in range(trials + 1))]
    assert math.fsum(chance(k, trials, p) for k in range(trials + 1) if covered[k]) >= confidence - 1e-9


@given(st.integers(1, 30), st.data())
@settings(deadline=None)
def test_beyond_an_end_the_number_is_rare(trials, data):
    k = data.draw(st.integers(0, trials))
    low, high = exact_binomial(k, trials, 0.9)
    assert 0 <= low <= k / trials <= high <= 1
    if k:
        assert math.fsum(chance(i, trials, low) for i in range(k, trials + 1)) == pytest.approx(0.05, abs=1e-9)
    if k < trials:
        assert math.fsum(chance(i, trials, high) for i in range(k + 1)) == pytest.approx(0.05, abs=1e-9)


def test_the_ends_of_no_trials_and_of_many():
    assert exact_binomial(0, 0) == (0.0, 1.0)
    low, high = exact_binomial(5_000, 1_000_000)
    assert 0.0048 < low < 0.005 < high < 0.0052
    for wrong in (0, 1, 1.5):
        with pytest.raises(nd.errors.ParameterError, match="confidence"):
            exact_binomial(1, 2, wrong)
    with pytest.raises(nd.errors.ParameterError, match="successes"):
        exact_binomial(3, 2)


def corpus() -> tuple[pa.Table, list[int], float, float]:
    """Return 60 documents, those that are kept, and the true shares of lost and of missed documents."""
    texts = [f"{' '.join(f'g{number // 2}w{place}' for place in range(12))}" for number in range(60)]
    # Pairs of copies: of 0 to 9 both are kept, of 10 to 19 one, of 20 to 29 none.
    kept = [*range(20), *range(20, 40, 2)]
    return pa.table({"id": list(range(60)), "text": texts}), kept, 20 / 30, 20 / 30


def test_a_sample_covers_the_truth_at_its_rate():
    """Draw many samples; the number of intervals that miss the truth is bounded by Hoeffding's inequality."""
    table, kept, lost, missed = corpus()
    seeds, covered = 40, 0
    for seed in range(seeds):
        recipe = nd.Recipe(seed=seed)
        found = nd.audit(table, kept={"id": kept}, id_column="id", sample=12, recipe=recipe, definitions=False).report
        sample = found["sample"]
        covered += sample["lost"]["low"] <= lost <= sample["lost"]["high"]
        covered += sample["missed"]["low"] <= missed <= sample["missed"]["high"]
        assert found["counts"]["judged_removed"] == found["counts"]["judged_kept"] == 12
    assert covered / (2 * seeds) >= 0.95 - hoeffding(seeds)


def test_a_sample_of_everything_counts_everything():
    table, kept, _, _ = corpus()
    whole = nd.audit(table, kept={"id": kept}, id_column="id", definitions=False)
    found = nd.audit(table, kept={"id": kept}, id_column="id", sample=1000, definitions=False)
    assert found.lost.equals(whole.lost)
    assert found.counts["missed_documents"] == whole.counts["missed_documents"] == 20
    assert np.isclose(found.report["sample"]["lost"]["high"], exact_binomial(20, 30).high)
