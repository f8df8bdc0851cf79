"""What a result offers: both tables, groups, decisions at a higher threshold, a plot."""

import random

import pyarrow as pa
import pytest
from flat import flat
from rule import check, expected, told

from neardup_gpu import Recipe, Shingles, SimHash, dedup
from neardup_gpu.errors import ParameterError
from neardup_gpu.report import facts
from neardup_gpu.results.tables import REMOVED_COUNTS

COUNTS = ("kept", "removed", *REMOVED_COUNTS, "verified_pairs", "groups")


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
    found = flat(dedup, table(), **OPTIONS)
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
    run = flat(dedup, mine if against else whole, threshold=0.5, cluster=cluster, keep="longest", **options)
    found = run.at(threshold)
    other = flat(dedup, mine if against else whole, recipe=run.recipe.with_(threshold=threshold), **options)
    assert found.documents.equals(other.documents)
    assert found.pairs.equals(other.pairs)
    assert {name: found.report["counts"][name] for name in COUNTS} == {
        name: other.report["counts"][name] for name in COUNTS
    }
    for name in ("group_sizes", "group_kinds"):
        assert found.report[name] == other.report[name]
    assert found.at(1.0).documents.equals(run.at(1.0).documents)


def test_a_lower_threshold_needs_a_run():
    found = flat(dedup, table(), threshold=0.8, **OPTIONS)
    with pytest.raises(ParameterError, match=r"threshold 0\.7 is below 0\.8"):
        found.at(0.7)
    unverified = flat(dedup, table(), recipe=Recipe(method=SimHash()), **OPTIONS)
    with pytest.raises(ParameterError, match="holds no verified pairs"):
        unverified.at(0.9)


@pytest.mark.parametrize("against", [False, True])
def test_groups(against):
    whole = table()
    options = {**OPTIONS, "against": whole.slice(0, 30) if against else None}
    found = flat(dedup, whole.slice(30) if against else whole, threshold=0.6, **options)
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
    assert dedup({"text": ["a b c", "d e f"]}).groups().num_rows == 0


def test_plot(tmp_path):
    figure = flat(dedup, table(), threshold=0.6, **OPTIONS).plot()
    figure.savefig(tmp_path / "plot.png")
    left, right = figure.axes
    assert left.get_xlabel().startswith("resemblance") and right.get_xlabel() == "documents in a group"


# The same runs of `exact`, whose default lists some of the pairs: `at` is right where all pairs are known.


def crowd(seed=6, num=60):
    """Pages of twelve words of which up to four are others: crowds that fall apart as the threshold rises."""
    draw = random.Random(seed)
    texts = []
    for _ in range(num):
        page = [f"w{i}" for i in range(12)]
        for place in draw.sample(range(12), draw.choice([1, 2, 3, 4])):
            page[place] = f"x{draw.randrange(6)}"
        texts.append(" ".join(page))
    return [(f"m{i}", text) for i, text in enumerate(texts)]


def run_of(documents, **settings):
    """A run over (id, text), by sets of words."""
    ids, texts = zip(*documents, strict=True)
    recipe = Recipe(shingles=Shingles(1), **settings)
    return flat(dedup, pa.table({"id": ids, "text": texts}), recipe=recipe, **OPTIONS)


class TestWherePairsAreNotListed:
    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    @pytest.mark.parametrize("most", [1, 5, 30])
    def test_it_refuses(self, most, cluster):
        """Rather than decide from some of the pairs."""
        found = run_of(crowd(), threshold=0.5, max_partners=most, cluster=cluster)
        check(found, expected(crowd(), found.recipe))
        assert found.report["limits"]["unlisted_pairs"] > 0
        with pytest.raises(ParameterError, match=r"did not list all pairs that may decide.*=None") as caught:
            found.at(0.6)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("cluster", ["greedy", "components"])
    @pytest.mark.parametrize("most", [64, None])
    def test_it_is_right_where_all_are(self, most, cluster):
        """60 pages have at most 59 partners each; at any higher threshold the decisions are brute force's."""
        found = run_of(crowd(), threshold=0.4, max_partners=most, cluster=cluster)
        assert found.report["limits"] == {"max_partners": most, "unlisted_pairs": 0, "all_counted": True}
        kept = set()
        for threshold in (0.4, 0.5, 7 / 9, 0.8, 1.0):
            later = found.at(threshold)
            check(later, expected(crowd(), found.recipe.with_(threshold=threshold)))
            kept.add(len(later.kept))
        assert len(kept) >= 3

    def test_against_a_reference_set(self):
        known, mine = crowd()[:20], crowd()[20:]
        tables = [pa.table(dict(zip(("id", "text"), zip(*part, strict=True), strict=True))) for part in (mine, known)]
        recipe = Recipe(shingles=Shingles(1), threshold=0.5)
        found = flat(dedup, tables[0], against=tables[1], recipe=recipe, **OPTIONS)
        for threshold in (0.5, 0.7):
            check(found.at(threshold), expected(mine, recipe.with_(threshold=threshold), known))

    @pytest.fixture
    def fading(self):
        """Four documents, and a run that lists all their pairs: z-a (0.6), a-j (76/124) and i-j (74/102).

        At 0.58 z and i stay, so i-j is listed as i is the first kept partner of j. Above 0.6 a stays as well, and i is
        the second one: i-j is listed no more. Above 76/124 it alone decides.
        """
        common, own = [f"w{i}" for i in range(100)], [f"j{i}" for i in range(24)]
        words = {"z": common[:60], "a": common, "i": [*common[50:], *own, "i0", "i1"], "j": [*common[24:], *own]}
        documents = [(name, " ".join(mine)) for name, mine in words.items()]
        return documents, run_of(documents, threshold=0.58, max_partners=1)

    def test_a_pair_that_a_higher_threshold_does_not_list(self, fading):
        documents, found = fading
        check(found, expected(documents, found.recipe))
        assert told(found)[1].keys() == {("z", "a"), ("a", "j"), ("i", "j")}
        assert found.report["limits"]["unlisted_pairs"] == 0
        for threshold, pairs in ((0.605, {("a", "j")}), (0.7, {("i", "j")})):
            stated = expected(documents, found.recipe.with_(threshold=threshold))
            assert stated.pairs.keys() == pairs
            assert told(found.at(threshold)) == (stated.documents, stated.pairs)

    def test_what_a_report_at_a_higher_threshold_counts(self, fading):
        documents, found = fading
        check(found.at(0.605), expected(documents, found.recipe.with_(threshold=0.605)))

    def test_at_once_more(self, fading):
        """It refuses, or decides as brute force does."""
        documents, found = fading
        stated = expected(documents, found.recipe.with_(threshold=0.7))
        try:
            again = found.at(0.605).at(0.7)
        except ParameterError:
            return
        assert told(again) == (stated.documents, stated.pairs)


@pytest.mark.parametrize("cluster", ["greedy", "components"])
@pytest.mark.parametrize("num", [2, 64, 65, 66, 200])
def test_what_a_report_counts_of_a_crowd(num, cluster):
    """Pages that all resemble one another: n (n - 1) / 2 pairs, of which a page's first 64 better ones are listed."""
    documents = [(f"m{i}", " ".join([*(f"w{j}" for j in range(40)), f"page{i}"])) for i in range(num)]
    found = run_of(documents, threshold=0.8, cluster=cluster)
    check(found, expected(documents, found.recipe))
    listed, pairs = sum(min(i, 64) for i in range(num)), num * (num - 1) // 2
    counts, limits = found.report["counts"], found.report["limits"]
    assert (counts["verified_pairs"], counts["removed_near"], counts["groups"]) == (listed, num - 1, 1)
    assert limits["max_partners"] == 64
    assert limits["all_counted"] or num > 64
    assert limits["unlisted_pairs"] <= pairs - listed <= (limits["unlisted_pairs"] if limits["all_counted"] else pairs)
    shown = [text for label, text in facts(found.report) if label == "pairs"]
    if limits["all_counted"] and not limits["unlisted_pairs"]:
        assert shown == []
    else:
        more = f"at least {limits['unlisted_pairs']:,} more are not" if limits["unlisted_pairs"] else "perhaps not all"
        assert shown == [f"{listed:,} are listed, {more}: a document lists its first 64 partners"]
