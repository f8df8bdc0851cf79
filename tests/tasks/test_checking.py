"""The sampled check of recall as tasks: the same numbers as in memory, however the input is cut."""

import random
from itertools import count
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import pairs_of, some
from versions import corpus, families

from neardup_gpu import BottomK, Containment, Exact, MinHash, ModM, Recipe, Shingles, SimHash, Writing, dedup
from neardup_gpu.errors import ParameterError
from neardup_gpu.stages import recall
from neardup_gpu.tasks.workers import Workers

CUTS = {"whole": ("1GB", 1), "slices": (30_000, 3), "many": (8_000, 7)}
"""Bytes of a slice, and partitions."""


def crowd(pages, words, name):
    """Pages of one template, each of two with most of the same shingles."""
    template = [f"{name}{i}" for i in range(words)]
    return [" ".join([*template[: words // 2], f"page{i}", *template[words // 2 :]]) for i in range(pages)]


def write(folder, texts, files):
    """Files of texts with ids, dates and scores, a row group for 97 of them."""
    folder.mkdir()
    table = corpus(texts)
    for number in range(files):
        part = table.take(pa.array(np.arange(number, len(texts), files)))
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=97)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Families with copies and empty documents, more pages of a crowd than a document is compared with, pages that
    share few shingles, of which each is often there, and two long documents that resemble each other, one of which is
    too long for a sample."""
    folder = tmp_path_factory.mktemp("checked")
    generator = random.Random(2)
    long = [f"l{i}" for i in range(recall.LONGEST + 10)]
    often = "over and over and again " * 80
    often = [often + " ".join(f"o{page}w{i}" for i in range(25)) for page in range(12)]
    texts = [*families(70), *often, *crowd(230, 70, "t"), *crowd(30, 90, "u"), "", " ", "\n"]
    write(folder / "known", generator.choices(texts, k=60) + crowd(2, 70, "t"), 1)
    texts += [" ".join(long), " ".join([*long[:-9], "end"])]
    generator.shuffle(texts)
    write(folder / "in", texts, 3)
    return folder


@pytest.fixture
def compare(tmp_path):
    """Checks that both jobs report the same recall, and gives what they report of the sample."""
    numbers = count()

    def compare(source, recipe, check, cut="slices", *, workers=None, **more):
        slice_bytes, partitions = CUTS[cut]
        given = {"recipe": recipe, "check": check, "engine": "cpu", "id_column": "id", **more}
        expected = flat(dedup, source, **given).report["recall"]
        number = next(numbers)
        out = Workers(
            work_dir=str(tmp_path / f"work{number}"),
            slice_bytes=slice_bytes,
            partitions=partitions,
            **{"number": 1, **(workers or {})},
        )
        found = flat(dedup, source, output=tmp_path / f"out{number}", workers=out, **given).report
        assert found["recall"] == expected
        return SimpleNamespace(**found["recall"]["sampled"] or {}), found

    return compare


METHODS = {
    "minhash": Recipe(method=MinHash()),
    "weak": Recipe(method=MinHash(filter="1,20,1"), cluster="components"),
    "weighted": Recipe(method=MinHash(weighting="tf", bucket_limit=6, bucket_probe=2), max_partners=None),
    "segments": Recipe(method=MinHash(sample_bits=1, candidates="segments"), keep="longest"),
    "bottomk": Recipe(method=BottomK(s=20, leading=2), keep="date:desc"),
    "modm": Recipe(method=ModM(m=64, leading=1), max_partners=None),
    "simhash": Recipe(method=SimHash(radius=3), threshold=0.8, shingles=Shingles(3, "bag")),
    "exact": Recipe(max_partners=2),
    "exact, all listed": Recipe(method=Exact(), max_partners=None),
    "containment": Recipe(method=Containment()),
}


@pytest.mark.parametrize(
    ("method", "cut"), pairs_of(some(METHODS, ["weighted", "bottomk", "simhash", "containment"]), ["slices", "many"])
)
def test_the_same_as_in_memory(compare, folder, method, cut):
    recipe = METHODS[method]
    sampled, _ = compare(
        folder / "in",
        recipe,
        200,
        cut,
        against=folder / "known" if cut == "slices" else None,
        workers={"spool": cut == "many"},
    )
    assert sampled.documents == 200 and sampled.pairs > 1000
    assert sampled.recall < 1 or method not in ("weak", "weighted", "bottomk", "modm", "simhash")
    assert sampled.recall == 1 or "exact" not in method


@pytest.mark.parametrize(("check", "documents"), [(None, 200), (10, 10), (1, 1), (10_000, None)])
def test_any_number_of_documents(compare, folder, check, documents):
    sampled, report = compare(folder / "in", METHODS["weak"], check, "whole", against=folder / "known")
    # Of all representatives that are of the input, one is too long.
    known = dedup(folder / "known", method="minhash", id_column="id", engine="cpu", writing=Writing(check=0)).report[
        "counts"
    ]
    representatives = report["counts"]["representatives"] - known["representatives"] - 1
    assert sampled.documents == (representatives if documents is None else documents)


def test_processes(compare, folder):
    compare(folder / "in", METHODS["minhash"], 20, against=folder / "known", workers={"number": 2})


def test_weights_by_frequencies(compare, folder, tmp_path):
    recipe = Recipe(method=MinHash(weighting="tfidf"))
    dedup(folder / "in", engine="cpu", recipe=recipe, writing=Writing(check=0)).frequencies.save(
        tmp_path / "frequencies"
    )
    sampled, _ = compare(folder / "in", recipe, 100, frequencies=tmp_path / "frequencies")
    assert sampled.pairs > 0


def test_a_sample_that_shares_too_much_is_cut(compare, tmp_path):
    """60 pages share 796 shingles: 48,000 a document."""
    write(tmp_path / "in", crowd(60, 800, "t"), 2)
    sampled, _ = compare(tmp_path / "in", METHODS["minhash"], 60)
    assert 10 < sampled.documents < 60


def test_nothing_to_sample(compare, tmp_path, folder):
    write(tmp_path / "in", ["", " "], 1)
    sampled, _ = compare(tmp_path / "in", METHODS["minhash"], 5, against=folder / "known")
    assert (sampled.documents, sampled.pairs, sampled.recall) == (0, 0, None)


def test_documents_of_which_no_two_are_alike(compare, tmp_path):
    write(tmp_path / "in", [" ".join(f"{name}{i}" for i in range(20)) for name in "abcdefgh"], 2)
    sampled, _ = compare(tmp_path / "in", METHODS["minhash"], 5)
    assert (sampled.documents, sampled.pairs, sampled.recall) == (5, 0, None)


@pytest.mark.parametrize("more", [{"check": 0}, {"check": 50, "unverified": True}, {"check": None, "exact": True}])
def test_no_check(folder, tmp_path, more):
    method = SimHash() if "unverified" in more else Exact() if "exact" in more else MinHash()
    out = Workers(work_dir=str(tmp_path / "work"), number=1, keep_work=True)
    report = dedup(
        folder / "in",
        output=tmp_path / "out",
        workers=out,
        id_column="id",
        engine="cpu",
        recipe=Recipe(method=method),
        writing=Writing(check=more["check"]),
    ).report
    assert report["recall"]["sampled"] is None
    assert not list((tmp_path / "work").glob("*/*-order")) and not (tmp_path / "work" / "check").exists()


def test_a_wrong_number_is_refused_at_once(folder, tmp_path):
    with pytest.raises(ParameterError, match="check"):
        dedup(
            folder / "in",
            output=tmp_path / "out",
            workers=Workers(work_dir=str(tmp_path / "work")),
            writing=Writing(check=-1),
        )
    assert not (tmp_path / "work").exists()


def test_equal_words_are_drawn_by_rank_and_taken_as_they_come():
    """Words that put documents in random order may be equal: then those of the better rank come first."""
    rows, order = np.array([3, 5, 7, 9]), np.array([4, 1, 4, 1], np.uint64)
    long = np.array([1, 1, 1, recall.LONGEST + 1])
    assert recall.draw(rows, long, order, 3).tolist() == [5, 3, 7]
    nearest = recall.SampledPartners(2)
    per_slice = recall.PARTNERS // 2 + 1
    for first in (0, per_slice):
        rows = np.arange(first, first + per_slice)
        nearest.add(np.ones(per_slice, np.int64), rows, np.full(per_slice, 5, np.uint64))
    assert nearest.rows.tolist() == list(range(recall.PARTNERS)) and set(nearest.sampled) == {1}
    assert nearest.latest.tolist() == [2**64 - 1, 5]
    nearest.add(np.array([1, 0]), np.array([998, 999]), np.array([4, 9], np.uint64))
    assert nearest.rows.tolist() == [999, 998, *range(recall.PARTNERS - 1)]


@pytest.mark.parametrize("method", ["weak", "containment"])
def test_documents_that_are_looked_at_a_few_at_a_time(compare, folder, monkeypatch, method):
    expected = dedup(
        folder / "in", id_column="id", engine="cpu", recipe=METHODS[method], writing=Writing(check=50)
    ).report["recall"]
    monkeypatch.setattr("neardup_gpu.engine.memory.HOST_BYTES", 20_000)
    _, report = compare(folder / "in", METHODS[method], 50, "whole")
    assert report["recall"] == expected


def test_another_check_of_the_same_job_goes_on_from_what_is_there(folder, tmp_path):
    out = Workers(work_dir=str(tmp_path / "work"), number=1, slice_bytes=30_000, keep_work=True)
    given = {"recipe": METHODS["weak"], "engine": "cpu", "id_column": "id"}
    resumed = []
    for number, check in enumerate((10, 20, 20)):
        found = flat(dedup, folder / "in", output=tmp_path / f"{number}", workers=out, check=check, **given).report
        assert found["recall"] == flat(dedup, folder / "in", check=check, **given).report["recall"]
        resumed.append(found["tasks"]["resumed"])
    assert 0 == resumed[0] < resumed[1] < resumed[2]
