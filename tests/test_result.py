"""What a result offers: both tables, groups, decisions at a higher threshold, a plot."""

import random

import pyarrow as pa
import pytest

from neardup_gpu import ParameterError, Recipe, SimHash, dedup

COUNTS = ("kept", "removed", "removed_exact", "removed_near", "verified_pairs", "groups")


def table(seed=3):
    """Pages with copies of which up to four words of a hundred are changed, and exact copies."""
    draw = random.Random(seed)
    texts = []
    for _ in range(40):
        page = draw.choices([f"w{i}" for i in range(900)], k=100)
        for changes in range(draw.randrange(1, 6)):
            copy = list(page)
            for _ in range(changes):
                copy[draw.randrange(100)] = draw.choice("xyz")
            texts += [" ".join(copy)] * draw.choice([1, 1, 2])
    draw.shuffle(texts)
    return pa.table({"id": [f"d{i}" for i in range(len(texts))], "text": texts})


OPTIONS = {"id_column": "id", "text_columns": "text", "engine": "cpu"}


def test_kept_and_removed_are_tables():
    found = dedup(table(), **OPTIONS)
    assert found.kept.schema == found.removed.schema == found.documents.schema
    assert found.kept.num_rows + found.removed.num_rows == found.documents.num_rows
    assert all(found.kept["kept"].to_pylist()) and not any(found.removed["kept"].to_pylist())


@pytest.mark.parametrize("cluster", ["greedy", "components"])
@pytest.mark.parametrize("against", [False, True])
@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.85, 1.0])
def test_decisions_at_a_higher_threshold_are_those_of_a_run(threshold, against, cluster):
    whole = table()
    known, mine = whole.slice(0, 30), whole.slice(30)
    options = {**OPTIONS, "against": known if against else None}
    run = dedup(mine if against else whole, threshold=0.5, cluster=cluster, keep="longest", **options)
    found = run.at(threshold)
    other = dedup(mine if against else whole, recipe=run.recipe.with_(threshold=threshold), **options)
    assert found.documents.equals(other.documents)
    assert found.pairs.equals(other.pairs)
    assert {name: found.report["counts"][name] for name in COUNTS} == {
        name: other.report["counts"][name] for name in COUNTS
    }
    assert found.report["group_sizes"] == other.report["group_sizes"]
    assert found.at(1.0).documents.equals(run.at(1.0).documents)


def test_a_lower_threshold_needs_a_run():
    found = dedup(table(), threshold=0.8, **OPTIONS)
    with pytest.raises(ParameterError, match=r"threshold 0\.7 is below 0\.8"):
        found.at(0.7)
    unverified = dedup(table(), recipe=Recipe(method=SimHash()), **OPTIONS)
    with pytest.raises(ParameterError, match="holds no verified pairs"):
        unverified.at(0.9)


@pytest.mark.parametrize("against", [False, True])
def test_groups(against):
    whole = table()
    options = {**OPTIONS, "against": whole.slice(0, 30) if against else None}
    found = dedup(whole.slice(30) if against else whole, threshold=0.6, **options)
    groups = found.groups()
    assert groups.column_names == ["group", "members", "size"]
    sizes = groups["size"].to_pylist()
    assert sizes == sorted(sizes, reverse=True)
    assert sum(size - 1 for size in sizes) == found.removed.num_rows
    assert len(groups) == found.report["counts"]["groups"]
    kept = set(found.kept["id"].to_pylist())
    stands_for = dict(zip(found.documents["id"].to_pylist(), found.documents["group"].to_pylist(), strict=True))
    for row in groups.to_pylist():
        assert all(stands_for[member] == row["group"] for member in row["members"])
        assert len(row["members"]) == row["size"] - (row["group"] not in row["members"])
        assert against or (row["members"][0] == row["group"] and row["group"] in kept)


def test_no_groups():
    assert dedup(texts=["a b c", "d e f"]).groups().num_rows == 0


def test_plot(tmp_path):
    figure = dedup(table(), threshold=0.6, **OPTIONS).plot()
    figure.savefig(tmp_path / "plot.png")
    left, right = figure.axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("resemblance", "documents in a group")
