"""A job that is cut into tasks gives the bits of the job in memory: the same documents, pairs, kept rows and counts.

However it is cut, and whoever runs it. What a report says of how much was looked at may differ: `comparisons`, and
where shingles are joined `candidate_pairs`; and the number of pairs that are not listed, where not all were counted.
"""

import datetime
import itertools
import logging
import math
import os
import random
import sys
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from flat import flat
from grids import ALL, pairs_of, some

from neardup_gpu import BottomK, MinHash, ModM, Recipe, Shingles, SimHash, dedup
from neardup_gpu.documents import open_documents
from neardup_gpu.documents.slices import slices_of
from neardup_gpu.errors import ParameterError
from neardup_gpu.stages import Join
from neardup_gpu.tasks import colliding, crowds, frequencies, naming, pairs
from neardup_gpu.tasks.workers import Workers

METHODS = {
    "exact": "exact",
    "containment": "containment",
    "min-hash": MinHash(),
    "min-hash, tf": MinHash(weighting="tf"),
    "min-hash, tf-idf": MinHash(weighting="tfidf"),
    "min-hash, log, small buckets": MinHash(weighting="log", bucket_limit=4, bucket_probe=2),
    "min-hash, bing": MinHash(filter="bing"),
    "min-hash, fast": MinHash(sampler="fast"),
    "min-hash, small buckets": MinHash(bucket_limit=5, bucket_probe=2),
    "segments": MinHash(sample_bits=1, candidates="segments"),
    "bottom-k": BottomK(),
    "bottom-k, groups": BottomK(s=60, candidates="groups"),
    "bottom-k, three groups, small buckets": BottomK(s=60, candidates="groups", shared_groups=3, bucket_limit=5),
    "mod-m": ModM(),
    "mod-m, adaptive": ModM(adaptive=True),
    "mod-m, the 20 smallest": ModM(m=2, s=20, bucket_limit=6, bucket_probe=1),
    "simhash": SimHash(),
    "simhash, 128 bits": SimHash(bits=128, radius=8),
    "simhash, tf-idf": SimHash(weighting="tfidf"),
    "simhash, small buckets": SimHash(radius=6, bucket_limit=4, bucket_probe=2),
    "simhash, 128 bits of shingles": SimHash(bits=128, radius=12, elements="shingles", weighting="tf"),
}
SHINGLINGS = {
    "sets": Shingles(),
    "sets of 1": Shingles(1),
    "bags": Shingles(3, "bag"),
    "circular": Shingles(4, "circular"),
    "spots": Shingles(2, "spots", ["stop", "w7", "w11", "w13"]),
}
KEEP = ("first", "longest", "date", "date:desc", "number:asc", "number:desc", "ratio", "ratio:desc", "time:desc")

# ------------------------------------------------------------------------------------------------------------- corpora


def edited(page, draw, edits):
    page = list(page)
    for _ in range(edits if page else 0):
        page[draw.randrange(len(page))] = f"w{draw.randrange(2000)}"
    return page


def template(words, number, draw, at=20):
    """Pages that are alike but for a word. Of 49 words with another one at 20, 40 shingles of 5 in 50
    are the same: these pages are at the threshold of 0.8 exactly.
    """
    frame = [f"t{draw.randrange(10**6)}" for _ in range(words)]
    return [[*frame[:at], f"date{i}", *frame[at + 1 :]] for i in range(number)]


def pages(kind, draw):
    """Lists of words."""
    if kind == "none":
        return []
    if kind == "empty":
        return [[]] * 5
    found = []
    for _ in range(110):
        page = [f"w{draw.randrange(2000)}" for _ in range(draw.randrange(1, 60))] + ["stop"] * draw.randrange(3)
        found += [page, *(edited(page, draw, draw.randrange(4)) for _ in range(draw.randrange(3)))]
        if draw.random() < 0.2:
            found += [page] * draw.randrange(1, 4)
        if draw.random() < 0.1:
            found.append(page[: 3 * len(page) // 4])
    found += [[]] * 7 + [["one"]] * 3 + [["one", "two"]]
    if kind == "crowds":
        found += template(49, 170, draw) + template(80, 150, draw, at=79) + template(12, 140, draw, at=5)
        crowd = template(60, 140, draw, at=0)
        found += [edited(page, draw, draw.randrange(3)) for page in crowd]
    if kind == "long":
        long = [f"l{draw.randrange(10**5)}" for _ in range(9000)]
        found += [long, edited(long, draw, 40), long, long[:6000], [*long, *long[:100]], ["again"] * 3000]
    return found


def columns_of(number, draw):
    ratios = [0.5, -1.0, math.nan, math.inf, 0.0, None]
    times = [datetime.datetime(2020, 1, 1, 0, 0, second) for second in range(5)] + [None]
    return {
        "date": pa.array([draw.choice(["2020", "2021", "2021-05", None]) for _ in range(number)], pa.string()),
        "number": pa.array([draw.choice([None, *range(-3, 30)]) for _ in range(number)], pa.int32()),
        "ratio": pa.array([draw.choice(ratios) for _ in range(number)], pa.float64()),
        "time": pa.array([draw.choice(times) for _ in range(number)], pa.timestamp("us")),
    }


@cache
def made(kind, seed=1):
    """(documents, a small reference set, a large one) of a kind, shuffled: tables of id, text and columns."""
    draw = random.Random(f"{kind} {seed}")
    texts = [" ".join(page) for page in pages(kind, draw)]
    draw.shuffle(texts)
    table = pa.table(
        {
            "id": pa.array([f"d{i}" for i in range(len(texts))], pa.string()),
            "text": pa.array([None if draw.random() < 0.01 else text for text in texts], pa.string()),
            **columns_of(len(texts), draw),
        }
    )
    few = [draw.choice(texts or ["none"]) for _ in range(40)] + [""]
    many = [" ".join(edited(text.split(), draw, draw.randrange(3))) for text in texts + texts] + few
    references = [
        pa.table(
            {"id": pa.array([f"r{i}" for i in range(len(part))], pa.string()), "text": pa.array(part, pa.string())}
        )
        for part in (few, many)
    ]
    return table, *references


class Corpora:
    """Made corpora as files, and what the job in memory makes of them, each made once."""

    def __init__(self, folder):
        self.folder, self._results = folder, {}

    def files(self, kind, number=3, rows=7):
        """The folders of the documents and of two reference sets."""
        found = []
        for what, table in zip(("documents", "few", "many"), made(kind), strict=True):
            folder = self.folder / f"{kind}-{number}-{rows}" / what
            if not folder.exists():
                folder.mkdir(parents=True)
                for part in range(number):
                    cut = [len(table) * bound // number for bound in (part, part + 1)]
                    some = table.slice(cut[0], cut[1] - cut[0])
                    pq.write_table(some, folder / f"{part}.parquet", row_group_size=rows)
            found.append(folder)
        return found

    def in_memory(self, source, recipe, **options):
        key = str(source), recipe.to_json(), str(sorted(options.items()))
        if key not in self._results:
            output = self.folder / f"memory-{len(self._results)}"
            self._results[key] = (
                flat(dedup, source, recipe=recipe, output=output, engine="cpu", check=20, **options),
                output,
            )
        return self._results[key]


@pytest.fixture(scope="module")
def corpora_made(tmp_path_factory):
    return Corpora(tmp_path_factory.mktemp("corpora"))


# ---------------------------------------------------------------------------------------------------------- comparison


def rows_of(folder):
    """The rows of all Parquet files of a folder, in the order of names; NaN is equal to itself as text."""
    files = sorted(folder.rglob("*.parquet"))
    return [str(row) for path in files for row in pq.read_table(path).to_pylist()]


def types_of(table):
    return [(field.name, field.type) for field in table.schema]


def compare(corpora, folder, source, recipe, *, engine="cpu", workers=None, **options):
    """Run a job of tasks and compare all that it made with the job in memory; returns the reports of both."""
    expected, there = corpora.in_memory(source, recipe, **options)
    cut = {"number": 1, "slice_bytes": "40kB", "partitions": 3, **(workers or {})}
    output = folder / "out"
    workers = Workers(work_dir=str(folder / "work"), **cut)
    report = flat(
        dedup,
        source,
        recipe=recipe,
        output=output,
        overwrite=True,
        engine=engine,
        workers=workers,
        check=20,
        **options,
    ).report
    for name, table in (("documents", expected.documents), ("pairs", expected.pairs)):
        parts = sorted((output / name).glob("*.parquet"))
        assert [str(row) for row in table.to_pylist()] == rows_of(output / name), name
        for part in parts:
            assert types_of(pq.read_table(part)) == types_of(pq.read_table(there / f"{name}.parquet")), name
    assert rows_of(output / "kept") == rows_of(there / "kept")
    counted = [folder / "frequencies.parquet" for folder in (there, output)]
    assert (
        counted[0].exists()
        == counted[1].exists()
        == (recipe.method.needs_statistics or recipe.ignore_common is not None)
    )
    assert not counted[0].exists() or counted[0].read_bytes() == counted[1].read_bytes()
    same_report(expected.report, report, recipe)
    return expected.report, report


def same_report(expected, found, recipe):
    own = {"timings", "seconds", "tasks", "backend", "device", "threads", "filtered"}
    assert set(found) - {"tasks"} == set(expected)
    expected, found = ({name: report[name] for name in expected if name not in own} for report in (expected, found))
    for report in (expected, found):
        report["counts"], report["limits"] = dict(report["counts"]), dict(report["limits"])
        del report["counts"]["comparisons"]
        if isinstance(recipe.method, Join):
            del report["counts"]["candidate_pairs"]
    if expected["limits"].get("all_counted") is False or found["limits"].get("all_counted") is False:
        for report in (expected, found):
            del report["limits"]["unlisted_pairs"], report["limits"]["all_counted"]
            report["counts"].pop("candidate_pairs", None)  # of a crowd that is joined block by block, they are others
    assert expected == found


def slice_bytes_for(source, number):
    """The size of which an input has so many slices, or a few more."""
    documents = open_documents(source, other_columns=[])
    sizes = (int(2**24 / 1.25**step) for step in range(70))
    return next(size for size in sizes if len(slices_of(documents, size)) >= number)


# --------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("method", some(["exact", "containment", "min-hash", "simhash"], ["containment", "simhash"]))
def test_crowds(corpora_made, tmp_path, method):
    """`test_two_processes` has those of the other two."""
    source, few, _ = corpora_made.files("crowds")
    recipe = Recipe(method=METHODS[method])
    expected, report = compare(corpora_made, tmp_path, source, recipe, id_column="id", against=few)
    assert expected["counts"]["removed_near"] > 100
    assert report["tasks"]["slices"] > 3


CUTS = list(itertools.product(some((1, 2, 7, 40), (1, 2, 7, 20)), (1, 3, 16)))


@pytest.mark.parametrize("method", some(METHODS, ["bottom-k, groups"]))
def test_any_cut(corpora_made, tmp_path, method):
    """All cuts by exact; by each other method every fourth of them, other ones. Else one cut by one method."""
    source, few, many = corpora_made.files("crowds")
    recipe, begin = Recipe(method=METHODS[method]), list(METHODS).index(method)
    for number, (slices, partitions) in list(enumerate(CUTS))[begin % 4 if ALL else 8 :: 4 if begin else 1]:
        cut = {"slice_bytes": slice_bytes_for(source, slices), "partitions": partitions, "spool": number % 2 == 0}
        against = (None, few, many)[number % 3]
        options = {} if against is None else {"against": against}
        _, report = compare(corpora_made, tmp_path, source, recipe, id_column="id", workers=cut, **options)
        assert slices <= report["tasks"]["slices"]
        assert report["tasks"]["partitions"] == partitions


@pytest.mark.parametrize("slices, partitions", some([(1, 1), (2, 16), (40, 3)], [(1, 1), (2, 16), (9, 3)]))
def test_some_cuts(corpora_made, tmp_path, slices, partitions):
    source, *_ = corpora_made.files("mixed")
    cut = {"slice_bytes": slice_bytes_for(source, slices), "partitions": partitions, "spool": slices == 2}
    _, report = compare(corpora_made, tmp_path, source, Recipe(), workers=cut)
    assert slices <= report["tasks"]["slices"]


@pytest.mark.parametrize(
    ("method", "cluster"),
    some(
        itertools.product(["exact", "min-hash, small buckets"], ["greedy", "components"]),
        [("exact", "components"), ("min-hash, small buckets", "greedy")],
    ),
)
def test_tasks_that_hold_little(corpora_made, tmp_path, monkeypatch, method, cluster):
    """Where rows are said to take much memory, a few of them are what a task holds: all is divided."""
    for module, name in (
        (colliding, "ENTRY_BYTES"),
        (pairs, "FOUND_BYTES"),
        (pairs, "TOGETHER_BYTES"),
        (naming, "SORTED_BYTES"),
        (naming, "KEEPER_BYTES"),
        (crowds, "FOUND_BYTES"),
        (crowds, "CANDIDATE_BYTES"),
    ):
        monkeypatch.setattr(module, name, 1 << 14)
    source, few, _ = corpora_made.files("crowds")
    recipe, cut = Recipe(method=METHODS[method], cluster=cluster), {"task_memory": "16MiB", "partitions": 2}
    expected, _ = compare(corpora_made, tmp_path, source, recipe, id_column="id", against=few, workers=cut)
    assert expected["counts"]["removed_near"] > 100


@pytest.mark.parametrize("method, held, partitions", [("min-hash, tf-idf", 1 << 16, 1), ("simhash, tf-idf", 96, 5)])
def test_frequencies_are_counted(corpora_made, tmp_path, monkeypatch, method, held, partitions):
    """Also where few of them are held, so that an element is written several times by a slice, and ranges are divided;
    with copies, empty documents and a reference set."""
    monkeypatch.setattr(frequencies, "COUNTED_BYTES", held)
    source, _, many = corpora_made.files("mixed")
    recipe = Recipe(method=METHODS[method], threshold=0.7 if "min-hash" in method else None)
    cut = {"partitions": partitions, "task_memory": "16MiB"}
    expected, _ = compare(corpora_made, tmp_path, source, recipe, id_column="id", against=many, workers=cut)
    counts = expected["counts"]
    assert counts["removed_near"] > 10 and counts["removed_identical"] > 0 and counts["empty"] > 0


def test_no_documents(corpora_made, tmp_path):
    source, *_ = corpora_made.files("none")
    expected, found = compare(corpora_made, tmp_path, source, Recipe(), id_column="id")
    assert expected["counts"]["documents"] == found["counts"]["documents"] == 0
    assert expected["warnings"] == found["warnings"] != []


@pytest.mark.parametrize(
    ("method", "kind"), pairs_of(["exact", "min-hash", "simhash", "containment"], ["empty", "long"])
)
def test_odd_corpora(corpora_made, tmp_path, kind, method):
    source, few, _ = corpora_made.files(kind)
    for options in ({}, {"against": few})[kind == "long" and not ALL :]:
        compare(corpora_made, tmp_path, source, Recipe(method=METHODS[method]), id_column="id", **options)


QUICK = ("date:desc", "ratio")


@pytest.mark.parametrize("keep", some(KEEP, QUICK))
def test_keep(corpora_made, tmp_path, keep):
    source, few, _ = corpora_made.files("mixed")
    recipe = Recipe(keep=keep, threshold=0.6)
    expected, _ = compare(corpora_made, tmp_path, source, recipe, id_column="id", against=few)
    assert expected["counts"]["removed_near"] > 20


@pytest.mark.parametrize("cluster", some(["greedy", "components"], ["greedy"]))
@pytest.mark.parametrize("most", some([1, 2, 64, None], [2]))
def test_partners(corpora_made, tmp_path, cluster, most):
    source, *_ = corpora_made.files("crowds")
    recipe = Recipe(cluster=cluster, max_partners=most, threshold=0.7, keep="number")
    compare(corpora_made, tmp_path, source, recipe, id_column="id")


def drawn(number, seed):
    """Recipes and cuts at random, that can be."""
    draw = random.Random(seed)
    found = []
    while len(found) < number:
        method = draw.choice(list(METHODS))
        threshold = draw.choice([None, 0.5, 0.8, 0.9, 1.0] if "simhash" in method else [None, 0.5, 0.7, 0.8, 0.95, 1.0])
        shingling, keep, cluster = (
            draw.choice(list(SHINGLINGS)),
            draw.choice(KEEP),
            draw.choice(["greedy", "components"]),
        )
        settings = {
            "threshold": threshold,
            "keep": keep,
            "cluster": cluster,
            "max_partners": draw.choice([1, 2, 64, None]),
        }
        kind, against, ids = (
            draw.choice(["mixed", "crowds", "long"]),
            draw.choice([None, "few", "many"]),
            draw.random() < 0.7,
        )
        cut = {
            "slice_bytes": draw.choice([9000, 30000, 10**6]),
            "partitions": draw.choice([1, 2, 3, 5, 16]),
            "spool": draw.random() < 0.4,
            "task_memory": draw.choice(["16MiB", "2GB"]),
        }
        seed = draw.randrange(1 << 30)
        try:
            Recipe(method=METHODS[method], shingles=SHINGLINGS[shingling], **settings)
        except ParameterError:
            continue
        found.append((method, shingling, {**settings, "seed": seed}, kind, against, ids, cut))
    return found


def check_drawn(corpora, folder, method, shingling, settings, kind, against, ids, cut):
    source, few, many = corpora.files(kind)
    recipe = Recipe(method=METHODS[method], shingles=SHINGLINGS[shingling], **settings)
    options = {"id_column": "id"} if ids else {}
    if against:
        options["against"] = {"few": few, "many": many}[against]
    compare(corpora, folder, source, recipe, workers=cut, **options)


@pytest.mark.parametrize("number", some(range(40), [1, 2]))
def test_any_of_all(corpora_made, tmp_path, number):
    check_drawn(corpora_made, tmp_path, *drawn(40, 2)[number])


@pytest.mark.parametrize("method", some(["exact", "min-hash"], ["min-hash"]))
def test_two_processes(corpora_made, tmp_path, method):
    source, few, _ = corpora_made.files("crowds")
    recipe = Recipe(method=METHODS[method], keep="number")
    compare(corpora_made, tmp_path, source, recipe, id_column="id", against=few, workers={"number": 2})


def test_ray(corpora_made, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    source, few, _ = corpora_made.files("crowds")
    try:
        cut = {"number": 2, "runner": "ray", "slice_bytes": "60kB"}
        recipe = Recipe(ignore_common=100)
        report, _ = compare(corpora_made, tmp_path, source, recipe, id_column="id", against=few, workers=cut)
        assert report["counts"]["common_shingles"] > 0
        assert not ray.is_initialized()
    finally:
        ray.shutdown()


def test_ray_with_devices(corpora_made, tmp_path, monkeypatch):
    """Two processes that have what Ray takes for a GPU compute in the simulator, another one on the CPU; this process
    needs no GPU."""
    ray = pytest.importorskip("ray")
    from neardup_gpu.engine.ray import RayWorkers

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    enter = RayWorkers.__enter__

    def simulating(self):
        self._environment = {"env_vars": {**self._environment["env_vars"], "NUMBA_ENABLE_CUDASIM": "1"}}
        return enter(self)

    monkeypatch.setattr(RayWorkers, "__enter__", simulating)
    texts = [f"{number % 7} of the pages that are alike but for {number % 3} words" for number in range(24)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet", row_group_size=8)
    ray.init("local", num_cpus=1, num_gpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    try:
        troubled.trouble(monkeypatch.setattr, troubled.mixed, tmp_path / "marks")
        cut = {"number": None, "runner": "ray", "slice_bytes": 400}
        compare(corpora_made, tmp_path, tmp_path / "in.parquet", Recipe(), engine="gpu", workers=cut)
    finally:
        ray.shutdown()
    done = set((tmp_path / "marks" / "log").read_text().splitlines())
    assert {"sketch gpu", "sketch cpu", "collide gpu", "verify gpu", "copies no GPU"} <= done


@pytest.mark.corpus
@pytest.mark.parametrize("name", some(["bills_116_small", "django_docs", "winps_docs"], ["winps_docs"]))
@pytest.mark.parametrize("method", some(["exact", "containment", "min-hash"], ["exact"]))
def test_real_documents(corpora, corpora_made, tmp_path, name, method):
    source, recipe = corpora / f"{name}.parquet", Recipe(method=METHODS[method], keep="longest")
    compare(corpora_made, tmp_path, source, recipe, workers={"slice_bytes": "500kB", "partitions": 5})
