"""The model of kernels on a GPU says what an H100 measured, and refutes what it should."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks import gpu_model as model

ROOT = Path(__file__).parent.parent
TEXT, H100 = model.Text.like_bills(255.66e6), model.MACHINES["H100"]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "h100.json").read_text())


def test_shares_are_those_that_an_h100_reached():
    rows = model.compared(TEXT, model.measured(RESULTS), H100, before=True)
    assert {row["kernel"] for row in rows} == set(model.predictions(TEXT))
    for row in rows:
        assert row["reached"] == pytest.approx(row["share"], rel=0.08), row["kernel"]
        assert not row["refuted"]


def test_a_kernel_as_slow_as_before_refutes_what_is_predicted_of_its_next_form():
    rows = {row["kernel"]: row for row in model.compared(TEXT, model.measured(RESULTS), H100, before=False)}
    assert [name for name, row in rows.items() if row["refuted"]] == ["tokens", "shingles"]
    assert rows["document fingerprints"]["reached"] < rows["document fingerprints"]["share"]


def test_the_text_is_that_of_first_contact():
    by_item = {record["item"]: record for record in RESULTS["first_contact"] if record["step"] == "scale"}
    assert by_item["shingles"]["tokens"] == pytest.approx(TEXT.tokens, rel=1e-3)
    assert by_item["minhash 84 L=32"]["shingles"] == pytest.approx(TEXT.shingles, rel=1e-3)


def test_a_batch_computes_for_longer_than_it_is_launched():
    """As engine/memory.py says of its size; a quarter of it would not on a B200."""
    for machine in model.MACHINES.values():
        found = model.batch(machine, 55)
        assert found["computing"] > 1.5 * found["launching"]
        assert found["launching"] < 1
    assert model.batch(model.MACHINES["B200"], 55, 2**23)["computing"] < found["launching"]


@pytest.mark.parametrize("words", [[], ["--results", "benchmarks/results/h100.json", "--before"]])
def test_the_command(words, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["gpu_model", *words])
    assert model.main() == 0
    said = capsys.readouterr().out
    assert "min-hash, 84 samples" in said and ("H200" in said) == (not words)
