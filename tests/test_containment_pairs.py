"""Containment found in sketch files, and numbers of shingles in them."""

import json
import logging
import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import some
from witnesses import shingle_set

import neardup_gpu as nd
from neardup_gpu import BottomK, MinHash, ModM, SimHash, cli
from neardup_gpu.errors import (
    ArgumentTypeError,
    DamagedError,
    InputError,
    OutputError,
    ParameterError,
    RecipeMismatchError,
)
from neardup_gpu.kernels import resemblance
from neardup_gpu.methods.elements import may_reach, shares
from neardup_gpu.stages import shingle_sets


def corpus():
    """Pages, excerpts of pages, pages with something added, a copy, two short texts and two without words."""
    draw = random.Random(11)
    words = [f"w{i}" for i in range(4000)]
    pages = [draw.choices(words, k=draw.randrange(150, 900)) for _ in range(40)]
    texts = list(pages)
    for page in pages[:20]:
        first = draw.randrange(len(page) // 2)
        texts.append(page[first : first + len(page) // 3])
    for page in pages[20:30]:
        texts.append(page + draw.choices(words, k=len(page) // 2))
    texts += [pages[0], pages[1][:7], ["lonely", "words"], [], []]
    return [" ".join(text) for text in texts]


TEXTS = corpus()
SETS = [shingle_set(text) for text in TEXTS]


def contained(least):
    """All (a, b), a != b, of which b holds that share of a."""
    return {
        (a, b): len(one & other) / len(one)
        for a, one in enumerate(SETS)
        for b, other in enumerate(SETS)
        if a != b and one and len(one & other) / len(one) >= least
    }


def listed(table):
    return {(row["id_a"], row["id_b"]): row for row in table.to_pylist()}


@pytest.fixture(scope="module")
def sketched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sketches")

    def path(method):
        file = folder / f"{re.sub('[^a-z0-9]', '', repr(method).lower())}.parquet"
        if not file.exists():
            nd.sketches.sketch({"text": TEXTS}, method=method, output=file)
        return file

    return path


METHODS = [ModM(m=4), ModM(m=1), ModM(adaptive=True), ModM(m=4, s=60), BottomK(s=100)]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_pairs_that_could_reach_the_threshold(sketched, method):
    """All pairs that contain 0.9, but those without a common element; each interval holds with 99%."""
    found = listed(nd.sketches.pairs(sketched(method), containment=0.9))
    true = contained(0.9)
    assert all(row["low"] <= row["containment"] <= row["high"] and row["high"] >= 0.9 for row in found.values())
    assert all(
        (row["num_shingles_a"], row["num_shingles_b"]) == tuple(len(SETS[i]) for i in pair)
        for pair, row in found.items()
    )
    # The copy of page 0 has a pair with that page alone.
    wanted = {pair for pair in true if 70 not in pair and min(len(SETS[i]) for i in pair) > 40} | {(70, 0)}
    assert len(wanted) >= 30
    # A pair is lost where its interval misses: 1% of 31, of which more than 5 with a probability below 1e-6.
    assert len(wanted - set(found)) <= 5
    missed = sum(
        not row["low"] <= len(SETS[a] & SETS[b]) / len(SETS[a]) <= row["high"] for (a, b), row in found.items()
    )
    assert missed <= 5
    if method == ModM(m=1):
        assert {pair for pair in true if 70 not in pair} | {(70, 0)} == set(found)
        assert all(row["containment"] == row["low"] == row["high"] == true[pair] for pair, row in found.items())
    assert (20, 40) not in found  # a page and an excerpt of another


def test_a_short_document_is_reported_with_its_interval(tmp_path):
    """Three shingles, of which a sketch by m = 2 has one or two: nothing is guessed."""
    page = [f"w{i}" for i in range(300)]
    texts = [" ".join(page), *(" ".join(page[i : i + 7]) for i in range(0, 200, 10))]
    nd.sketches.sketch({"text": texts}, method=ModM(m=2, bucket_limit=1000), output=tmp_path / "s.parquet")
    found = listed(nd.sketches.pairs(tmp_path / "s.parquet", containment=0.9))
    short = [row for (a, b), row in found.items() if a > 0 and b == 0]
    assert 10 <= len(short) <= 20  # of 20, but for those without an element: each has none with 1/8
    assert all(row["containment"] == 1 and row["low"] < 0.6 and row["num_shingles_a"] == 3 for row in short)


def test_large_buckets_are_counted(tmp_path, caplog):
    texts = [f"the same ten words are in all of these texts number {i}" for i in range(30)]
    nd.sketches.sketch({"text": texts}, method=ModM(m=1, bucket_limit=5, bucket_probe=2), output=tmp_path / "s.parquet")
    with caplog.at_level(logging.WARNING, "neardup_gpu"):
        found = listed(nd.sketches.pairs(tmp_path / "s.parquet", containment=0.5))
    # 7 shingles are in all of the 30 texts, whose pairs but C(5, 2) + 25 * 2 are left out.
    says = "7 elements with more than 5 documents: 2,625 pairs were not compared there"
    assert f"{says}; sketch them with a larger bucket limit" in caplog.text
    assert len(found) == 2 * 60


def test_backends_agree(sketched):
    for method in (ModM(m=4), BottomK(s=100)):
        found = [nd.sketches.pairs(sketched(method), containment=0.5, engine=engine) for engine in ("cpu", "reference")]
        assert found[0].equals(found[1])


def test_several_files_are_one(sketched, tmp_path):
    table = pa.table({"id": [f"d{i:03}" for i in range(len(TEXTS))], "text": TEXTS})
    for name, part in (("all", table), ("a", table.slice(0, 31)), ("b", table.slice(31))):
        nd.sketches.sketch(part, tmp_path / f"{name}.parquet", id_column="id", method="modm")
    one = nd.sketches.pairs(tmp_path / "all.parquet", containment=0.8)
    other = nd.sketches.pairs([tmp_path / "b.parquet", tmp_path / "a.parquet"], containment=0.8)
    assert one.equals(other) and len(one) > 20


@pytest.mark.parametrize("method", ["minhash", "bottomk", "modm", SimHash(elements="shingles")], ids=str)
def test_numbers_of_shingles(sketched, method):
    assert pq.read_table(sketched(method))["num_shingles"].to_pylist() == [len(each) for each in SETS]


def test_numbers_of_shingles_of_bags_and_none_of_tokens(tmp_path):
    nd.sketches.sketch(
        {"text": ["a a a a", ""]},
        output=tmp_path / "b.parquet",
        recipe=nd.Recipe(shingles=nd.Shingles(1, kind="bag"), method="minhash"),
    )
    assert pq.read_table(tmp_path / "b.parquet")["num_shingles"].to_pylist() == [4, 0]
    nd.sketches.sketch({"text": ["a b"]}, method="simhash", output=tmp_path / "t.parquet")
    assert "num_shingles" not in pq.read_schema(tmp_path / "t.parquet").names


def test_null_and_empty_sketches(sketched):
    """A document without shingles has no sketch; one of which no shingle is an element has an empty one."""
    elements = pq.read_table(sketched(ModM(m=2**32)))["elements"].to_pylist()
    assert [row is None for row in elements] == [not each for each in SETS]
    assert [] in elements
    assert len(nd.sketches.pairs(sketched(ModM(m=2**32)), containment=0.5)) == 1  # the copy


def rewrite(source, target, **columns):
    """The file with other columns, as another program writes it; None leaves one out."""
    table = pq.read_table(source)
    for name, values in columns.items():
        place, kind = table.column_names.index(name), table.schema.field(name).type
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, pa.array(values, kind))
    pq.write_table(table, target)
    return target


def test_pairs_are_replaced_where_that_is_asked_for(sketched, tmp_path):
    """Also those with a column that a result's table has too; that one is left alone."""
    file, out = sketched(ModM(m=4)), tmp_path / "q.parquet"
    found = nd.sketches.pairs(file, out, containment=0.9)
    assert nd.sketches.pairs(file, out, containment=0.9, overwrite=True).equals(found)
    nd.dedup({"text": TEXTS}, method="containment", output=tmp_path / "result")
    with pytest.raises(OutputError, match=r"pairs\.parquet: was not written by neardup"):
        nd.sketches.pairs(file, tmp_path / "result" / "pairs.parquet", containment=0.9, overwrite=True)


def halves(folder, one, other):
    """The same texts, in two files that were made by two recipes."""
    table = pa.table({"id": pa.array(range(len(TEXTS))), "text": TEXTS})
    for name, recipe, part in (("a", one, table[:35]), ("b", other, table[35:])):
        nd.sketches.sketch(part, folder / f"{name}.parquet", id_column="id", recipe=recipe)
    return [folder / "a.parquet", folder / "b.parquet"]


@pytest.mark.parametrize(
    ("method", "one", "other"),
    [
        (ModM, {"threshold": 0.8}, {"threshold": 0.5}),
        (BottomK, {"recall": 0.9}, {"recall": 0.99}),
        (BottomK, {}, {"candidates": "groups"}),
    ],
)
def test_files_may_differ_in_what_containment_does_not_use(tmp_path, sketched, method, one, other):
    recipes = [
        nd.Recipe(
            threshold=given.get("threshold"), method=method(**{k: v for k, v in given.items() if k != "threshold"})
        )
        for given in (one, other)
    ]
    files = halves(tmp_path, *recipes)
    assert nd.sketches.pairs(files, containment=0.9).equals(nd.sketches.pairs(sketched(method()), containment=0.9))
    with pytest.raises(RecipeMismatchError, match=r"b\.parquet: made with (leading|candidates) = "):
        nd.sketches.pairs(files)


def test_files_of_other_bucket_limits_do_not_meet(tmp_path):
    files = halves(tmp_path, *(nd.Recipe(method=ModM(bucket_limit=limit)) for limit in (64, 65)))
    with pytest.raises(RecipeMismatchError, match=r"b\.parquet: made with bucket_limit = 65, .*a\.parquet with 64"):
        nd.sketches.pairs(files, containment=0.9)


class TestBadInput:
    @pytest.mark.parametrize("wrong", [0, -0.1, 1.5, float("nan")])
    def test_thresholds(self, sketched, wrong):
        with pytest.raises(ParameterError, match="containment must be > 0 and <= 1"):
            nd.sketches.pairs(sketched(ModM(m=4)), containment=wrong)

    def test_types_and_two_thresholds(self, sketched):
        with pytest.raises(ArgumentTypeError, match="containment must be a number"):
            nd.sketches.pairs(sketched(ModM(m=4)), containment="much")
        for name, value in (("threshold", 0.5), ("r", 1)):
            with pytest.raises(ParameterError, match=f"{name} and containment"):
                nd.sketches.pairs(sketched(ModM(m=4)), containment=0.9, **{name: value})

    @pytest.mark.parametrize("method", ["minhash", "simhash"])
    def test_sketches_that_do_not_tell_it(self, sketched, method):
        with pytest.raises(ParameterError, match=f"method {method} finds no containment; choose bottomk") as error:
            nd.sketches.pairs(sketched(method), containment=0.9)
        assert "\n" not in str(error.value)

    def test_files_without_numbers_of_shingles(self, sketched, tmp_path):
        """As earlier versions wrote them: they are read as before, alone or beside later ones."""
        old = rewrite(sketched("bottomk"), tmp_path / "old.parquet", num_shingles=None)
        assert nd.sketches.pairs(old).equals(nd.sketches.pairs(sketched("bottomk")))
        with pytest.raises(InputError, match=r"old\.parquet: no column 'num_shingles', which containment needs"):
            nd.sketches.pairs(old, containment=0.9)
        table = pa.table({"id": pa.array([900, 901]), "text": TEXTS[:2]})
        nd.sketches.sketch(table, tmp_path / "new.parquet", id_column="id", method="bottomk")
        assert (900, 0) in listed(nd.sketches.pairs([old, tmp_path / "new.parquet"]))

    def test_damage(self, sketched, tmp_path):
        file = sketched(ModM(m=4))
        elements = pq.read_table(file)["elements"].to_pylist()
        sizes = pq.read_table(file)["num_shingles"].to_pylist()
        first, rest = elements[0], elements[1:]
        for wrong in (first[::-1], [*first, 2**63], [first[0], *first]):
            with pytest.raises(DamagedError, match="column 'elements' holds no mod-m sketches"):
                nd.sketches.pairs(rewrite(file, tmp_path / "x.parquet", elements=[wrong, *rest]))
        for wrong in ([None, *first], None):
            with pytest.raises(DamagedError, match=r"x\.parquet: column 'elements' has"):
                nd.sketches.pairs(rewrite(file, tmp_path / "x.parquet", elements=[wrong, *rest]))
        for wrong in (0, -3):
            with pytest.raises(DamagedError, match="'num_shingles' has to be 0 where there are no tokens"):
                nd.sketches.pairs(rewrite(file, tmp_path / "x.parquet", num_shingles=[wrong, *sizes[1:]]))
        with pytest.raises(DamagedError, match="'num_shingles' has nulls"):
            nd.sketches.pairs(rewrite(file, tmp_path / "x.parquet", num_shingles=[None, *sizes[1:]]))
        adaptive = sketched(ModM(adaptive=True))
        elements = pq.read_table(adaptive)["elements"].to_pylist()
        for wrong in ([], [0, *elements[0][1:]], [2**60, *elements[0][1:]]):
            with pytest.raises(DamagedError, match="column 'elements' holds no mod-m sketches"):
                nd.sketches.pairs(rewrite(adaptive, tmp_path / "x.parquet", elements=[wrong, *elements[1:]]))
        short = sketched(ModM(m=4, s=60))
        elements = pq.read_table(short)["elements"].to_pylist()
        assert len(elements[0]) == 60
        longer = [[0, *elements[0]], *elements[1:]]
        with pytest.raises(DamagedError, match="column 'elements' holds no mod-m sketches"):
            nd.sketches.pairs(rewrite(short, tmp_path / "x.parquet", elements=longer))
        smallest = pq.read_table(sketched("bottomk"))["smallest"].to_pylist()
        for wrong in (smallest[0][::-1], [smallest[0][0], *smallest[0][:-1]]):
            file = rewrite(sketched("bottomk"), tmp_path / "x.parquet", smallest=[wrong, *smallest[1:]])
            for find in (nd.sketches.pairs, nd.sketches.clusters):
                with pytest.raises(DamagedError, match=r"x\.parquet: column 'smallest' holds no bottom-k sketches"):
                    find(file)

    def test_the_damaged_one_of_several_files_is_named(self, tmp_path):
        files = halves(tmp_path, *[nd.Recipe(method="bottomk")] * 2)
        smallest = pq.read_table(files[1])["smallest"].to_pylist()
        rewrite(files[1], files[1], smallest=[smallest[0][::-1], *smallest[1:]])
        for find in (nd.sketches.pairs, nd.sketches.clusters):
            with pytest.raises(DamagedError, match=r"b\.parquet: column 'smallest' holds no bottom-k sketches"):
                find(files)

    def test_a_modulus_and_an_adaptive_one(self, tmp_path):
        files = halves(tmp_path, nd.Recipe(method="modm"), nd.Recipe(method=ModM(adaptive=True)))
        for options in ({}, {"containment": 0.9}):
            with pytest.raises(RecipeMismatchError) as error:
                nd.sketches.pairs(files, **options)
            says = f"{files[1]}: made with adaptive = True, {files[0]} with False; sketch them alike"
            assert str(error.value) == says

    def test_another_recipe(self, sketched):
        with pytest.raises(RecipeMismatchError, match="made with m = "):
            nd.sketches.pairs([sketched(ModM(m=4)), sketched(ModM(m=1))], containment=0.9)

    def test_a_file_that_another_program_rewrote_is_read(self, sketched, tmp_path):
        """With lists of 32-bit offsets."""
        file = sketched(ModM(m=4))
        table = pq.read_table(file)
        place = table.column_names.index("elements")
        other = table.set_column(place, "elements", table["elements"].cast(pa.list_(pa.uint64())))
        pq.write_table(other, tmp_path / "x.parquet")
        assert nd.sketches.pairs(tmp_path / "x.parquet", containment=0.9).equals(
            nd.sketches.pairs(file, containment=0.9)
        )


@pytest.mark.corpus
@pytest.mark.parametrize("method", some([ModM(m=8), ModM(m=16), BottomK()], [ModM(m=16), BottomK()]))
def test_bills_in_later_bills(corpora, tmp_path, method):
    """169 pairs of unlike texts have c >= 0.9 and r < 0.8, 33 of these r < 0.5: `dedup` finds none of them.

    So many are found with modulus 1, by shingles that up to 200 bills hold. (With copies of a text counted apart they
    are 197 and 39.) An interval of 99% misses two of 169 on average, and more than 12 with a probability below 1e-6.
    """
    bills = pq.read_table(corpora / "bills_116_small.parquet", columns=["id", "text"])
    nd.sketches.sketch(bills, tmp_path / "s.parquet", id_column="id", method=method)
    found = nd.sketches.pairs(tmp_path / "s.parquet", containment=0.9)
    recipe = nd.Recipe()
    sets = shingle_sets(nd.stages.shingle(nd.stages.tokenize(bills["text"], recipe), recipe), "cpu")
    row = {name: i for i, name in enumerate(bills["id"].to_pylist())}
    a, b = (np.array([row[each] for each in found[name].to_pylist()]) for name in ("id_a", "id_b"))
    both = resemblance.cpu(sets.values, sets.offsets, a, b, np.zeros(len(a), np.int64))
    either = sets.sizes[a] + sets.sizes[b] - both
    assert found["num_shingles_a"].to_pylist() == sets.sizes[a].tolist()
    true = both / sets.sizes[a] >= 0.9
    assert 169 - 12 <= (true & (both / either < 0.8)).sum() <= 169
    assert 33 - 8 <= (true & (both / either < 0.5)).sum() <= 33


def test_what_surely_ends_below_the_threshold_needs_no_interval():
    number = np.repeat(np.arange(1, 60), 61)
    of_them = np.minimum(np.tile(np.arange(61), 59), number)
    high = shares(of_them, number, np.zeros(len(number), bool)).high
    for least in (0.05, 0.5, 0.9, 1.0):
        assert np.array_equal(may_reach(of_them, number, least), high >= least)


@pytest.mark.parametrize("method", [MinHash(k=40, s=3), BottomK(s=100)], ids=repr)
def test_containment_of_known_pairs_by_their_resemblance(sketched, method):
    """The function of resemblance that theory has, of intervals: it rises, so its interval holds as theirs do."""
    table = nd.sketches.pairs(sketched(method)).to_pylist()
    assert len(table) > 5
    for row in table:
        a, b = SETS[row["id_a"]], SETS[row["id_b"]]
        low, high = (nd.papers.containment_from_resemblance(row[end], len(a), len(b)) for end in ("low", "high"))
        assert low <= len(a & b) / len(a) <= high


def test_the_command(sketched, tmp_path, capsys):
    file, output = str(sketched(ModM(m=4))), tmp_path / "p.parquet"
    assert cli.main(["pairs", file, "--containment", "0.9", "-o", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == pq.read_metadata(output).num_rows > 20
    assert pq.read_table(output).equals(nd.sketches.pairs(file, containment=0.9))


@pytest.mark.parametrize("method", ["bottomk", "modm"])
def test_a_filter_is_refused_with_the_reason(method, capsys):
    assert cli.main(["sketch", "x", "--method", method, "--filter", "6,14,2"]) == 2
    said = capsys.readouterr().err
    assert "--filter is for --method minhash; leave it out: a filter [k,s,r] needs independent samples" in said
    assert said.count("\n") == 1
