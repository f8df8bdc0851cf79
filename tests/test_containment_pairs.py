"""Containment found in sketch files, and numbers of shingles in them."""

import json
import logging
import random
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from witnesses import shingle_set

import neardup_gpu as nd
from neardup_gpu import BottomK, MinHash, ModM, SimHash, cli
from neardup_gpu.errors import ArgumentTypeError, DamagedError, InputError, ParameterError, RecipeMismatchError
from neardup_gpu.methods.elements import may_reach, shares


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
            nd.sketch(texts=TEXTS, output=file, method=method)
        return file

    return path


METHODS = [ModM(m=4), ModM(m=1), ModM(adaptive=True), ModM(m=4, s=60), BottomK(s=100)]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_pairs_that_could_reach_the_threshold(sketched, method):
    """All pairs that contain 0.9, but those without a common element; each interval holds with 99%."""
    found = listed(nd.pairs(sketched(method), containment=0.9))
    true = contained(0.9)
    seen = {pair: row for pair, row in found.items() if row["containment"] is not None}
    assert all(row["low"] <= row["containment"] <= row["high"] and row["high"] >= 0.9 for row in seen.values())
    assert all(
        (row["num_shingles_a"], row["num_shingles_b"]) == tuple(len(SETS[i]) for i in pair)
        for pair, row in found.items()
    )
    # The copy of page 0 has a pair with that page alone.
    wanted = {pair for pair in true if 70 not in pair and min(len(SETS[i]) for i in pair) > 40} | {(70, 0)}
    assert len(wanted) >= 30
    # A pair is lost where its interval misses: 1% of 31, of which more than 5 with a probability below 1e-6.
    assert len(wanted - set(found)) <= 5
    missed = sum(not row["low"] <= len(SETS[a] & SETS[b]) / len(SETS[a]) <= row["high"] for (a, b), row in seen.items())
    assert missed <= 5
    if method == ModM(m=1):
        assert {pair for pair in true if 70 not in pair} | {(70, 0)} == set(found)
        assert all(row["containment"] == row["low"] == row["high"] == true[pair] for pair, row in found.items())
    assert (20, 40) not in found  # a page and an excerpt of another


def test_a_short_document_is_reported_with_its_interval(tmp_path):
    """Three shingles, of which a sketch by m = 2 has one or two: nothing is guessed."""
    page = [f"w{i}" for i in range(300)]
    texts = [" ".join(page), *(" ".join(page[i : i + 7]) for i in range(0, 200, 10))]
    nd.sketch(texts=texts, output=tmp_path / "s.parquet", method=ModM(m=2, bucket_limit=1000))
    found = listed(nd.pairs(tmp_path / "s.parquet", containment=0.9))
    short = [row for (a, b), row in found.items() if a > 0 and b == 0]
    assert 10 <= len(short) <= 20  # of 20, but for those without an element: each has none with 1/8
    assert all(row["containment"] == 1 and row["low"] < 0.6 and row["num_shingles_a"] == 3 for row in short)


def test_large_buckets_are_counted(tmp_path, caplog):
    texts = [f"the same ten words are in all of these texts number {i}" for i in range(30)]
    nd.sketch(texts=texts, output=tmp_path / "s.parquet", method=ModM(m=1, bucket_limit=5, bucket_probe=2))
    with caplog.at_level(logging.WARNING, "neardup_gpu"):
        found = listed(nd.pairs(tmp_path / "s.parquet", containment=0.5))
    # 7 shingles are in all of the 30 texts, whose pairs but C(5, 2) + 25 * 2 are left out.
    assert re.search(r"7 elements in more than 5 documents: 2,625 pairs of these were not compared there", caplog.text)
    assert len(found) == 2 * 60


def test_backends_agree(sketched):
    for method in (ModM(m=4), BottomK(s=100)):
        found = [nd.pairs(sketched(method), containment=0.5, engine=engine) for engine in ("cpu", "reference")]
        assert found[0].equals(found[1])


def test_several_files_are_one(sketched, tmp_path):
    table = pa.table({"id": [f"d{i:03}" for i in range(len(TEXTS))], "text": TEXTS})
    for name, part in (("all", table), ("a", table.slice(0, 31)), ("b", table.slice(31))):
        nd.sketch(part, tmp_path / f"{name}.parquet", id_column="id", method="modm")
    one = nd.pairs(tmp_path / "all.parquet", containment=0.8)
    other = nd.pairs([tmp_path / "b.parquet", tmp_path / "a.parquet"], containment=0.8)
    assert one.equals(other) and len(one) > 20


@pytest.mark.parametrize("method", ["minhash", "bottomk", "modm", SimHash(elements="shingles")], ids=str)
def test_numbers_of_shingles(sketched, method):
    assert pq.read_table(sketched(method))["num_shingles"].to_pylist() == [len(each) for each in SETS]


def test_numbers_of_shingles_of_bags_and_none_of_tokens(tmp_path):
    nd.sketch(texts=["a a a a", ""], output=tmp_path / "b.parquet", shingle_size=1, shingling="bag")
    assert pq.read_table(tmp_path / "b.parquet")["num_shingles"].to_pylist() == [4, 0]
    nd.sketch(texts=["a b"], output=tmp_path / "t.parquet", method="simhash")
    assert "num_shingles" not in pq.read_schema(tmp_path / "t.parquet").names


def test_null_and_empty_sketches(sketched):
    """A document without shingles has no sketch; one of which no shingle is an element has an empty one."""
    elements = pq.read_table(sketched(ModM(m=2**32)))["elements"].to_pylist()
    assert [row is None for row in elements] == [not each for each in SETS]
    assert [] in elements
    assert len(nd.pairs(sketched(ModM(m=2**32)), containment=0.5)) == 1  # the copy


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


class TestBadInput:
    @pytest.mark.parametrize("wrong", [0, -0.1, 1.5, float("nan")])
    def test_thresholds(self, sketched, wrong):
        with pytest.raises(ParameterError, match="containment must be > 0 and <= 1"):
            nd.pairs(sketched(ModM(m=4)), containment=wrong)

    def test_types_and_two_thresholds(self, sketched):
        with pytest.raises(ArgumentTypeError, match="containment must be a number"):
            nd.pairs(sketched(ModM(m=4)), containment="much")
        for name, value in (("threshold", 0.5), ("r", 1)):
            with pytest.raises(ParameterError, match=f"{name} and containment"):
                nd.pairs(sketched(ModM(m=4)), containment=0.9, **{name: value})

    @pytest.mark.parametrize(
        ("method", "message"),
        [("minhash", "min-hash sketches do not find it"), ("simhash", "simhashes do not tell it")],
    )
    def test_sketches_that_do_not_tell_it(self, sketched, method, message):
        with pytest.raises(ParameterError, match=message) as error:
            nd.pairs(sketched(method), containment=0.9)
        assert "\n" not in str(error.value)

    def test_files_without_numbers_of_shingles(self, sketched, tmp_path):
        """As earlier versions wrote them: they are read as before, alone or beside later ones."""
        old = rewrite(sketched("bottomk"), tmp_path / "old.parquet", num_shingles=None)
        assert nd.pairs(old).equals(nd.pairs(sketched("bottomk")))
        with pytest.raises(InputError, match=r"old\.parquet: no column 'num_shingles', which containment needs"):
            nd.pairs(old, containment=0.9)
        table = pa.table({"id": pa.array([900, 901]), "text": TEXTS[:2]})
        nd.sketch(table, tmp_path / "new.parquet", id_column="id", method="bottomk")
        assert (900, 0) in listed(nd.pairs([old, tmp_path / "new.parquet"]))

    def test_damage(self, sketched, tmp_path):
        file = sketched(ModM(m=4))
        elements = pq.read_table(file)["elements"].to_pylist()
        sizes = pq.read_table(file)["num_shingles"].to_pylist()
        first, rest = elements[0], elements[1:]
        for wrong in (first[::-1], [*first, 2**63], [first[0], *first]):
            with pytest.raises(DamagedError, match="column 'elements' holds no mod-m sketches"):
                nd.pairs(rewrite(file, tmp_path / "x.parquet", elements=[wrong, *rest]))
        for wrong in ([None, *first], None):
            with pytest.raises(DamagedError, match=r"x\.parquet: column 'elements' has"):
                nd.pairs(rewrite(file, tmp_path / "x.parquet", elements=[wrong, *rest]))
        for wrong in (0, -3):
            with pytest.raises(DamagedError, match="'num_shingles' has to be 0 where there are no tokens"):
                nd.pairs(rewrite(file, tmp_path / "x.parquet", num_shingles=[wrong, *sizes[1:]]))
        with pytest.raises(DamagedError, match="'num_shingles' has nulls"):
            nd.pairs(rewrite(file, tmp_path / "x.parquet", num_shingles=[None, *sizes[1:]]))
        adaptive = sketched(ModM(adaptive=True))
        elements = pq.read_table(adaptive)["elements"].to_pylist()
        for wrong in ([], [0, *elements[0][1:]], [2**60, *elements[0][1:]]):
            with pytest.raises(DamagedError, match="column 'elements' holds no mod-m sketches"):
                nd.pairs(rewrite(adaptive, tmp_path / "x.parquet", elements=[wrong, *elements[1:]]))
        smallest = pq.read_table(sketched("bottomk"))["smallest"].to_pylist()
        with pytest.raises(DamagedError, match="column 'smallest' holds no bottom-k sketches"):
            nd.pairs(rewrite(sketched("bottomk"), tmp_path / "x.parquet", smallest=[smallest[0][::-1], *smallest[1:]]))

    def test_another_recipe(self, sketched):
        with pytest.raises(RecipeMismatchError, match="made with m = "):
            nd.pairs([sketched(ModM(m=4)), sketched(ModM(m=1))], containment=0.9)

    def test_a_file_that_another_program_rewrote_is_read(self, sketched, tmp_path):
        """With lists of 32-bit offsets."""
        file = sketched(ModM(m=4))
        table = pq.read_table(file)
        place = table.column_names.index("elements")
        other = table.set_column(place, "elements", table["elements"].cast(pa.list_(pa.uint64())))
        pq.write_table(other, tmp_path / "x.parquet")
        assert nd.pairs(tmp_path / "x.parquet", containment=0.9).equals(nd.pairs(file, containment=0.9))


def test_what_surely_ends_below_the_threshold_needs_no_interval():
    number = np.repeat(np.arange(1, 60), 61)
    of_them = np.minimum(np.tile(np.arange(61), 59), number)
    high = shares(of_them, number, np.zeros(len(number), bool)).high
    for least in (0.05, 0.5, 0.9, 1.0):
        assert np.array_equal(may_reach(of_them, number, least), high >= least)


@pytest.mark.parametrize("method", [MinHash(k=40, s=3), BottomK(s=100)], ids=repr)
def test_containment_of_known_pairs_by_their_resemblance(sketched, method):
    """The function of resemblance that theory has, of intervals: it rises, so its interval holds as theirs do."""
    table = nd.pairs(sketched(method)).to_pylist()
    assert len(table) > 5
    for row in table:
        a, b = SETS[row["id_a"]], SETS[row["id_b"]]
        low, high = (nd.theory.containment_from_resemblance(row[end], len(a), len(b)) for end in ("low", "high"))
        assert low <= len(a & b) / len(a) <= high


def test_the_command(sketched, tmp_path, capsys):
    file, output = str(sketched(ModM(m=4))), tmp_path / "p.parquet"
    assert cli.main(["pairs", file, "--containment", "0.9", "-o", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == pq.read_metadata(output).num_rows > 20
    assert pq.read_table(output).equals(nd.pairs(file, containment=0.9))
