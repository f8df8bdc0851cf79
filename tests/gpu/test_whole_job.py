"""The whole job on a GPU that is stood for: kernels by their device code (`hostir`), CuPy by `cupy_calls`.

An array of the device that meets one of the host fails here as it would there.
"""

import logging
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
from cupy_calls import DeviceArray, on_device
from flat import flat
from grids import pairs_of, some
from versions import WORDS, corpus, decisions, families

from neardup_gpu import BottomK, Engine, MinHash, ModM, Recipe, Shingles, SimHash, dedup, passages, substrings
from neardup_gpu.errors import NeardupError
from neardup_gpu.hamming import HammingIndex, join, pairs as near_pairs
from neardup_gpu.installation import selftest
from neardup_gpu.kernels import (
    _launch as launch,
    counts,
    greedy,
    hamming,
    identical,
    lookup,
    occurrences,
    prefixes,
    rarity,
    runs,
    setjoin,
    shingles as shingles_kernel,
    simhash as simhash_kernel,
)
from neardup_gpu.report import facts
from neardup_gpu.results.sketch_writing import frequencies_path
from neardup_gpu.sketches import pairs, sketch
from neardup_gpu.stages import Pairs, Ragged, keep, partners, shingle, tokenize, verify
from neardup_gpu.store import spool as spool_module
from neardup_gpu.store.spool import DeviceSpool


@pytest.fixture
def gpu():
    with (
        hostir.device("random") as launched,
        mock.patch.object(launch, "simulated", lambda: True),  # whose staging needs no streams
        mock.patch.object(DeviceArray, "__cuda_array_interface__", {}, create=True),
    ):
        yield launched


TABLE = corpus(families(num=14, seed=4), seed=4)
FEW = corpus(families(num=6, seed=4), seed=4)
KNOWN = corpus(families(num=7, seed=4), seed=5)


def check(gpu, table=TABLE, memory=None, batch_bytes=None, divided=False, **options):
    """Both backends decide alike; the report of the one on the GPU."""
    expected = flat(dedup, table, id_column="id", engine="cpu", **options)
    found = flat(
        dedup,
        table,
        id_column="id",
        batch_bytes=batch_bytes,
        engine=Engine(backend="gpu", gpu_memory=memory),
        **options,
    )
    assert decisions(found) == decisions(expected)
    if divided:  # an index in parts fills a list of candidates in each, so more entries are looked at
        looks = [result.report["counts"].pop("comparisons") for result in (found, expected)]
        assert looks[0] >= looks[1]
    for part in ("counts", "limits", "recall", "group_sizes", "largest_groups", "recipe"):
        assert found.report[part] == expected.report[part]
    assert (found.report["backend"], expected.report["device"]) == ("gpu", None)
    return found.report


OPTIONS = {
    "greedy": {},
    "components": {"cluster": "components"},
    "against": {"against": KNOWN},
    "against, components": {"against": KNOWN, "cluster": "components"},
    "containment": {"method": "containment", "threshold": 0.6},
    "containment, components": {"method": "containment", "threshold": 0.6, "cluster": "components"},
    "containment, against": {"method": "containment", "against": KNOWN, "check": 50},
    "longest": {"keep": "longest"},
    "by date": {"keep": "date:desc"},
    "low threshold": {"threshold": 0.3, "method": MinHash(recall=0.9)},
    "bag": {"recipe": Recipe(shingles=Shingles(kind="bag"))},
    "circular": {"recipe": Recipe(shingles=Shingles(3, "circular"))},
    "spots": {"recipe": Recipe(shingles=Shingles(2, "spots", WORDS[:50]))},
    "64 bits": {"recipe": Recipe(method=MinHash(bits=64))},
    "bing": {"recipe": Recipe(method=MinHash(filter="bing", supershingle_bits=16))},
    "fast": {"recipe": Recipe(method=MinHash(sampler="fast"))},
    "segments": {"recipe": Recipe(method=MinHash(sample_bits=1, candidates="segments"))},
    "large buckets": {"recipe": Recipe(method=MinHash(filter=(3, 1, 1), bucket_limit=2, bucket_probe=1))},
    "no check": {"check": 0},
    "min-hash": {"recipe": Recipe(method=MinHash())},
    "min-hash, log": {"recipe": Recipe(method=MinHash(weighting="log"))},
    "min-hash, tf": {"recipe": Recipe(method=MinHash(weighting="tf"))},
    "min-hash, tfidf": {"recipe": Recipe(method=MinHash(weighting="tfidf")), "against": KNOWN},
    "simhash": {"recipe": Recipe(method=SimHash(weighting="tf"))},
    "simhash, large buckets": {
        "recipe": Recipe(method=SimHash(radius=9, bucket_limit=2, bucket_probe=1)),
        "against": KNOWN,
    },
    "simhash, tfidf": {"recipe": Recipe(method=SimHash(radius=6, weighting="tfidf")), "against": KNOWN},
    "simhash, verified": {
        "recipe": Recipe(method=SimHash(radius=8, weighting="tf"), threshold=0.7, cluster="components")
    },
    "simhash, verified, tfidf": {
        "recipe": Recipe(method=SimHash(radius=10, weighting="tfidf", bits=128), threshold=0.5)
    },
    "simhash of bags, log": {
        "recipe": Recipe(method=SimHash(elements="shingles", weighting="log"), shingles=Shingles(2, "bag"))
    },
}


@pytest.mark.parametrize("case", OPTIONS)
def test_same_as_cpu(gpu, case):
    assert check(gpu, **OPTIONS[case])["device"]["batches"] >= 1


SITES = TABLE.append_column("site", pa.array([["x", "y", "x", None][row % 4] for row in range(len(TABLE))]))

CONDITIONS = {
    "within": {"within": "site"},
    "within, containment": {"within": "site", "method": "containment", "threshold": 0.6},
    "within, min-hash": {"within": "site", "method": MinHash()},
    "within, bottom-k": {"within": "site", "method": BottomK(candidates="groups")},
    "within, mod-m": {"within": "site", "method": ModM(m=1)},
    "within, simhash": {"within": "site", "method": SimHash(bits=128, radius=9)},
    "within, simhash, tfidf": {"within": "site", "method": SimHash(radius=9, weighting="tfidf"), "threshold": 0.5},
    "length ratio": {"length_ratio": 0.9, "threshold": 0.4},
    "length ratio, min-hash": {"length_ratio": 0.9, "method": MinHash()},
    "ignore common": {"ignore_common": 3, "threshold": 0.4},
    "ignore common, containment": {"ignore_common": 0.05, "method": "containment", "threshold": 0.4},
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions(gpu, case):
    check(gpu, table=SITES, recipe=Recipe(**CONDITIONS[case]))


PARTNERS = {
    "greedy": {"max_partners": 2, "threshold": 0.4},
    "components": {"max_partners": 1, "threshold": 0.4, "cluster": "components"},
    "against": {"max_partners": 1, "threshold": 0.4, "against": KNOWN},
    "all": {"max_partners": None, "threshold": 0.2},
}


@pytest.mark.parametrize(("case", "memory"), pairs_of(PARTNERS, [None, 20_000]))
def test_partners_in_several_rounds(gpu, case, memory):
    """With lists so short that decisions need further candidates, among some of the rows, and by other numbers."""
    with mock.patch.object(partners, "ASKED", 1), mock.patch.object(partners, "MOST_ASKED", 2):
        check(gpu, memory=memory, divided=memory is not None, **PARTNERS[case])


def test_the_report_names_the_device(gpu):
    assert any("(gpu, Numba's simulator)" in text for _, text in facts(check(gpu)))


def test_the_self_test(gpu, monkeypatch):
    """With arrays on the device, as its large inputs are."""
    monkeypatch.setattr(selftest, "LARGE", 1 << 10)
    monkeypatch.setattr(selftest, "SMALL", (0, 30))
    found = selftest.run("gpu", seed=1)
    assert [row for row in found["kernels"] if not row["agrees"]] == []
    assert all(row["inputs"] >= 2 and row["milliseconds"] > 0 for row in found["kernels"])
    assert "on Numba's simulator." in selftest.conclusion(found)


def test_every_document_empty(gpu):
    check(gpu, corpus(["", " ", "..."]))


@pytest.mark.parametrize("batch_bytes", [1, 500, 10_000])
def test_batches_change_nothing(gpu, batch_bytes):
    assert check(gpu, batch_bytes=batch_bytes)["device"]["halvings"] == 0


@pytest.mark.parametrize(
    ("case", "memory"),
    pairs_of(
        some(
            ["greedy", "bag", "against", "simhash, tfidf", "simhash, verified, tfidf"],
            ["against", "simhash, verified, tfidf"],
        ),
        [20_000, "100kB"],
    ),
)
def test_what_outgrows_the_memory_goes_to_the_host(gpu, case, memory):
    check(gpu, memory=memory, divided=True, **OPTIONS[case])


def short_of_memory(most, kernel=shingles_kernel, name="gpu"):
    """A kernel's function that cannot take more than `most` values."""
    run = getattr(kernel, name)

    def limited(values, offsets, *rest):
        if int(offsets[-1] - offsets[0]) > most:
            raise MemoryError("out of memory")
        return run(values, offsets, *rest)

    return mock.patch.object(kernel, name, limited)


def test_batches_that_do_not_fit_are_halved(gpu, caplog):
    with short_of_memory(500), caplog.at_level(logging.INFO, "neardup_gpu"):
        report = check(gpu)
    assert report["device"]["halvings"] >= 3
    assert sum("they are halved" in message for message in caplog.messages) == 1


def test_later_batches_are_smaller(gpu):
    sizes = []
    run = shingles_kernel.gpu

    def limited(values, offsets, *rest):
        sizes.append(int(offsets[-1] - offsets[0]))
        if sizes[-1] > 500:
            raise MemoryError("out of memory")
        return run(values, offsets, *rest)

    with mock.patch.object(shingles_kernel, "gpu", limited):
        report = check(gpu, batch_bytes=8_000)
    assert report["device"]["batches"] > 2
    assert sum(size > 500 for size in sizes) == report["device"]["halvings"] + 1, "the first one is tried again alone"
    assert max(sizes[len(sizes) // 2 :]) <= 500


HALVED = [
    ("simhash of bags, log", simhash_kernel, "gpu"),
    ("simhash, tfidf", counts, "gpu"),
    ("simhash, verified, tfidf", counts, "gpu"),
]


@pytest.mark.parametrize(
    ("case", "kernel", "name"),
    some(HALVED, HALVED[:2]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_batches_of_simhashes_are_halved(gpu, case, kernel, name):
    with short_of_memory(500, kernel, name):
        assert check(gpu, **OPTIONS[case])["device"]["halvings"] >= 2


def test_batches_whose_tokens_are_counted_are_halved(gpu):
    run = occurrences.gpu

    def limited(values):
        if len(values) > 300:
            raise MemoryError("out of memory")
        return run(values)

    with mock.patch.object(occurrences, "gpu", limited):
        assert check(gpu, **OPTIONS["simhash, tfidf"])["device"]["halvings"] >= 2


def short_of_memory_at_first(times, module, name, given):
    """A function that cannot do its work the first so many times; `given` gets a number each time it is asked."""
    run = getattr(module, name)

    def limited(*arguments, **options):
        given.append(len(given))
        if len(given) <= times:
            raise MemoryError("out of memory")
        return run(*arguments, **options)

    return mock.patch.object(module, name, limited)


NO_MEMORY = [
    ("simhash, verified, tfidf", simhash_kernel, "gpu"),
    ("simhash, verified", hamming, "gpu"),
    ("simhash, tfidf", lookup, "gpu"),
    ("simhash, tfidf", hamming, "gpu"),
    ("simhash", identical, "gpu"),
]


@pytest.mark.parametrize(
    ("case", "module", "name"),
    some(NO_MEMORY, NO_MEMORY[:1]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_no_memory_for_simhashes(gpu, case, module, name):
    """What waits, or is to be verified, goes to the file, and then it is tried again; in the end it is said."""
    given = []
    with short_of_memory_at_first(1, module, name, given):
        check(gpu, FEW, **OPTIONS[case])
    assert len(given) > 1
    with short_of_memory_at_first(100, module, name, []), pytest.raises(NeardupError, match=r"use backend='cpu'"):
        flat(dedup, FEW, id_column="id", engine="gpu", **OPTIONS[case])


@pytest.mark.parametrize("case", ["simhash, tfidf", "simhash, verified, tfidf"])
def test_what_waited_does_not_take_the_room_of_pairs(gpu, case):
    run, make, spools = hamming.gpu, DeviceSpool.__init__, []

    def noted(self, *arguments):
        spools.append(self)
        make(self, *arguments)

    def limited(*arguments, **options):
        if any(held is not None for spool in spools for held in spool._held):
            raise MemoryError("out of memory")
        return run(*arguments, **options)

    with mock.patch.object(DeviceSpool, "__init__", noted), mock.patch.object(hamming, "gpu", limited):
        check(gpu, **OPTIONS[case])
    assert len(spools) == (6 if OPTIONS[case]["recipe"].verifies else 2)


def test_a_document_that_does_not_fit(gpu):
    with short_of_memory(50), pytest.raises(NeardupError, match=r"document 'doc-\d+': .*backend='cpu'.*memory="):
        dedup(TABLE, id_column="id", engine="gpu")


def test_a_document_that_fits_when_shingles_have_gone_to_the_file(gpu):
    run, spill, spilled = shingles_kernel.gpu, DeviceSpool.spill, []

    def limited(values, offsets, *rest):
        if int(offsets[-1] - offsets[0]) > 100 and not spilled:
            raise MemoryError("out of memory")
        return run(values, offsets, *rest)

    def noted(self):
        spilled.append(self.num_values)
        spill(self)

    with mock.patch.object(shingles_kernel, "gpu", limited), mock.patch.object(DeviceSpool, "spill", noted):
        check(gpu)
    assert len(spilled) == 1


def test_no_memory_to_stage(gpu):
    with mock.patch.object(launch.Staging, "_stage", lambda *arguments: None):
        check(gpu)


@pytest.mark.parametrize(("kernel", "place", "most"), [(rarity, 0, 500), (prefixes, 0, 500), (setjoin, 12, 3)])
def test_pieces_of_the_set_join_are_halved(gpu, kernel, place, most):
    run = kernel.gpu

    def limited(*arguments):
        if len(arguments[place]) > most:
            raise MemoryError("out of memory")
        return run(*arguments)

    with mock.patch.object(kernel, "gpu", limited):
        assert check(gpu)["device"]["halvings"] >= 1


@pytest.mark.parametrize("kernel", some([rarity, prefixes, runs, setjoin], [setjoin]))
def test_no_memory_for_the_set_join(gpu, kernel):
    """Pieces are halved, or shingles go to the file; in the end it is said."""
    given = []
    with short_of_memory_at_first(1, kernel, "gpu", given):
        check(gpu, FEW)
    assert len(given) > 1
    with (
        mock.patch.object(kernel, "gpu", mock.Mock(side_effect=MemoryError)),
        pytest.raises(NeardupError, match=r"use backend='cpu'.*memory="),
    ):
        dedup(FEW, id_column="id", engine="gpu")


def test_no_memory_for_candidates(gpu):
    """Fewer tables are looked into at a time; for one alone shingles go to the file; in the end it is said."""
    from neardup_gpu.kernels import pairtables

    run, calls = pairtables.gpu, []

    def limited(*arguments):
        calls.append(len(calls))
        if len(calls) % 2:
            raise MemoryError("out of memory")
        return run(*arguments)

    with mock.patch.object(pairtables, "gpu", limited):
        check(gpu, FEW, **OPTIONS["min-hash"])
    assert len(calls) > 2
    with (
        mock.patch.object(pairtables, "gpu", mock.Mock(side_effect=MemoryError)),
        pytest.raises(NeardupError, match=r"use backend='cpu'.*memory="),
    ):
        flat(dedup, FEW, id_column="id", engine="gpu", **OPTIONS["min-hash"])


def test_no_memory_to_decide(gpu):
    with (
        mock.patch.object(greedy, "gpu", mock.Mock(side_effect=MemoryError)),
        pytest.raises(NeardupError, match=r"do not suffice; use backend='cpu', .*memory="),
    ):
        dedup(TABLE, id_column="id", engine="gpu")


def test_other_errors_are_not_taken_for_it(gpu):
    with (
        mock.patch.object(shingles_kernel, "gpu", mock.Mock(side_effect=ZeroDivisionError)),
        pytest.raises(ZeroDivisionError),
    ):
        dedup(TABLE, id_column="id", engine="gpu")


SKETCHED = [
    MinHash(),
    MinHash(sampler="fast", sample_bits=4),
    MinHash(sample_bits=1),
    MinHash(sample_bits=1, candidates="segments"),
    BottomK(s=30),
    BottomK(candidates="groups"),
    ModM(m=4),
    ModM(adaptive=True),
    ModM(m=2, s=30),
]


@pytest.mark.parametrize(("method", "memory"), pairs_of(SKETCHED, [None, 20_000]))
def test_sketches_and_their_pairs(gpu, memory, method, tmp_path):
    found = {}
    for backend in ("cpu", "gpu"):
        engine = Engine(backend=backend, gpu_memory=memory if backend == "gpu" else None)
        path = tmp_path / f"{backend}.parquet"
        counts = sketch(TABLE, path, id_column="id", method=method, engine=engine)
        assert counts["backend"] == backend
        tells = not isinstance(method, MinHash)
        contained = pairs(path, containment=0.5, engine=engine).to_pylist() if tells else None
        found[backend] = path.read_bytes(), pairs(path, engine=engine), contained
    assert found["cpu"][0] == found["gpu"][0]
    assert found["cpu"][1].equals(found["gpu"][1])
    assert found["cpu"][2] == found["gpu"][2] != []
    assert found["cpu"][1].num_rows > 10


@pytest.mark.parametrize("memory", [None, 20_000])
@pytest.mark.parametrize("weighting", ["tf", "tfidf"])
def test_simhashes(gpu, memory, weighting, tmp_path):
    found = {}
    for backend in ("cpu", "gpu"):
        engine = Engine(backend=backend, gpu_memory=memory if backend == "gpu" else None)
        path = tmp_path / f"{backend}.parquet"
        recipe = Recipe(method=SimHash(weighting=weighting, bits=128))
        counts = sketch(TABLE, path, id_column="id", recipe=recipe, engine=engine)
        assert counts["backend"] == backend
        files = [path, *([frequencies_path(path)] if weighting == "tfidf" else [])]
        found[backend] = counts["recipe"], *(file.read_bytes() for file in files)
    assert found["cpu"] == found["gpu"]


def fingerprints(num_words, num_rows=300, seed=1):
    """Some within a few bits of one another, some repeated."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 2**64, (num_rows // 4, num_words), np.uint64)[
        random.integers(0, num_rows // 4, num_rows)
    ]
    for _ in range(4):
        rows = np.flatnonzero(random.random(num_rows) < 0.4)
        values[rows, random.integers(0, num_words, len(rows))] ^= np.uint64(1) << random.integers(
            0, 64, len(rows), np.uint64
        )
    return values if num_words == 2 else values[:, 0].copy()


def as_lists(found):
    return [array.tolist() if hasattr(array, "tolist") else array for array in found]


@pytest.mark.parametrize("options", [{}, {"collapse": False}, {"bucket_limit": 3, "bucket_probe": 2}], ids=str)
@pytest.mark.parametrize("num_words", [1, 2])
def test_near_pairs(gpu, num_words, options):
    values = fingerprints(num_words)
    expected = near_pairs(values, 3, backend="cpu", **options)
    assert len(expected.left) > 50
    assert as_lists(near_pairs(values, 3, backend="gpu", **options)) == as_lists(expected)
    assert as_lists(near_pairs(on_device(values), 3, backend="gpu", **options)) == as_lists(expected)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index(gpu, num_words, compress, tmp_path):
    values, asked = fingerprints(num_words), fingerprints(num_words)[::3] ^ np.uint64(1 << 40)
    answers = {}
    for backend in ("cpu", "gpu"):
        path = tmp_path / backend
        HammingIndex(values, 4, compress=compress, backend=backend).save(path)
        index = HammingIndex.load(path, backend=backend)
        many, near = index.query(asked), index.nearest(asked, 2)
        one = index.query(int(asked[0]) if num_words == 1 else asked[:1])
        answers[backend] = (
            path.read_bytes(),
            *((ragged.values.tolist(), ragged.offsets.tolist()) for ragged in (*many, *near)),
            *(as_lists(one) if num_words == 1 else [ragged.values.tolist() for ragged in one]),
            as_lists(join(values, asked, 4, backend=backend)),
        )
    assert answers["gpu"] == answers["cpu"]
    assert len(answers["cpu"][1][0]) > 100


class TestStages:
    """Each stage alone takes arrays of either kind, and gives the backend's."""

    def on(self, backend, value):
        return value if backend == "cpu" else on_device(value)

    def kind(self, backend):
        return np.ndarray if backend == "cpu" else DeviceArray

    @pytest.mark.parametrize("given", ["cpu", "gpu"])
    @pytest.mark.parametrize("backend", ["cpu", "gpu", "reference"])
    def test_all(self, gpu, backend, given):
        recipe = Recipe(method=MinHash())
        kind = self.kind("cpu" if backend == "reference" else backend)
        place = lambda value: on_device(value) if given == "gpu" else launch.to_host(value)  # noqa: E731
        found = []
        texts = tokenize(TABLE["text"].slice(0, 30), recipe, backend="cpu")
        tokens = Ragged(place(texts.values), place(texts.offsets))
        shingles = shingle(tokens, recipe, backend=backend)
        assert isinstance(shingles.values, kind)
        assert "30 rows" in repr(shingles)
        assert isinstance(shingles[3], kind) and isinstance(shingles.sizes, kind)
        shingles = Ragged(place(launch.to_host(shingles.values)), place(launch.to_host(shingles.offsets)))
        signatures = recipe.method.sketch(shingles, seed=recipe.seed, backend=backend)
        assert isinstance(signatures, kind)
        features = recipe.method.keys(place(launch.to_host(signatures)), seed=recipe.seed, backend=backend)
        assert isinstance(features, kind)
        candidates = recipe.method.collide(place(launch.to_host(features)), seed=recipe.seed, backend=backend).pairs
        assert isinstance(candidates.left, kind)
        assert repr(candidates) == f"Pairs({len(candidates)})"
        candidates = Pairs(place(launch.to_host(candidates.left)), place(launch.to_host(candidates.right)))
        verified = verify(shingles, candidates, 0.8, backend=backend)
        assert isinstance(verified.resemblance, kind)
        pinned = place(np.arange(30) == 7)
        for cluster in ("greedy", "components"):
            kept = keep(30, verified, recipe.with_(cluster=cluster), pinned=pinned, backend=backend)
            assert isinstance(kept, kind)
            found.append(launch.to_host(kept).tolist())
        found += [launch.to_host(a).tolist() for a in (signatures, features, verified.resemblance, verified.pairs.left)]
        assert found == self.expected()

    def expected(self):
        recipe = Recipe(method=MinHash())
        shingles = shingle(tokenize(TABLE["text"].slice(0, 30), recipe, backend="cpu"), recipe, backend="cpu")
        signatures = recipe.method.sketch(shingles, seed=recipe.seed, backend="cpu")
        features = recipe.method.keys(signatures, seed=recipe.seed, backend="cpu")
        verified = verify(
            shingles, recipe.method.collide(features, seed=recipe.seed, backend="cpu").pairs, 0.8, backend="cpu"
        )
        pinned = np.arange(30) == 7
        kept = [
            keep(30, verified, recipe.with_(cluster=cluster), pinned=pinned, backend="cpu").tolist()
            for cluster in ("greedy", "components")
        ]
        return [*kept, *(a.tolist() for a in (signatures, features, verified.resemblance, verified.pairs.left))]

    @pytest.mark.parametrize("given", ["cpu", "gpu"])
    @pytest.mark.parametrize("weighting", ["tf", "log"])
    def test_simhash(self, gpu, weighting, given):
        recipe = Recipe(method=SimHash(radius=9, weighting=weighting))
        tokens = tokenize(TABLE["text"].slice(0, 30), recipe, backend="cpu")
        expected = recipe.method.sketch(tokens, seed=recipe.seed, backend="cpu")
        found = recipe.method.sketch(
            Ragged(self.on(given, tokens.values), self.on(given, tokens.offsets)), seed=recipe.seed, backend="gpu"
        )
        assert isinstance(found, DeviceArray)
        assert found.get().tolist() == expected.tolist()
        near, wanted = (
            recipe.method.collide(found, seed=recipe.seed, backend="gpu"),
            recipe.method.collide(expected, seed=recipe.seed, backend="cpu"),
        )
        assert launch.to_host(near.pairs.left).tolist() == wanted.pairs.left.tolist() != []
        assert launch.to_host(near.pairs.right).tolist() == wanted.pairs.right.tolist()

    def test_pairs_on_the_device(self, gpu):
        left, right = on_device(np.array([3, 1, 1, 2, 3])), on_device(np.array([1, 3, 2, 2, 0]))
        pairs = Pairs.from_unsorted(left, right)
        assert isinstance(pairs.left, DeviceArray)
        assert (pairs.left.get().tolist(), pairs.right.get().tolist()) == ([0, 1, 1], [3, 2, 3])
        assert len(pairs.where(pairs.left > 0)) == 2
        with pytest.raises(ValueError, match="Pairs"):
            Pairs(left, right)

    def test_rows_on_the_device(self, gpu):
        with pytest.raises(ValueError, match="Ragged"):
            Ragged(on_device(np.arange(4)), on_device(np.array([0, 3, 2])))


@pytest.mark.parametrize(
    ("case", "rate"), [("greedy", 0), ("greedy", 2**62), ("containment, against", 0), ("min-hash", 0), ("bag", 0)]
)
def test_rows_that_do_not_fit_are_in_the_text_or_in_a_file(gpu, monkeypatch, case, rate):
    """Few fit; the others are made again from the text, or are in the file: the decisions are the same."""
    make, spools = DeviceSpool.__init__, []

    def small(self, folder, num_bytes, again=None):
        spools.append(self)
        make(self, folder, 20_000, again)

    monkeypatch.setattr(DeviceSpool, "__init__", small)
    monkeypatch.setattr(spool_module, "SPOOL_RATE", rate)
    check(gpu, batch_bytes=3000, **OPTIONS[case])
    assert (spools[0]._again is not None) == (rate == 0)
    assert spools[0]._file.num_rows == 0 or rate


@pytest.mark.parametrize("num_bytes", [0, 100, 400, 10_000])
def test_the_spool_of_a_device(gpu, num_bytes, tmp_path):
    generator = np.random.default_rng(3)
    rows = [generator.integers(0, 2**64, n, np.uint64) for n in generator.integers(0, 6, 40)]
    with DeviceSpool(tmp_path, num_bytes) as spool:
        for first in range(0, 40, 8):
            whole = Ragged.from_rows([[7], *rows[first : first + 8], [9]], np.uint64)
            spool.append(Ragged(on_device(whole.values), on_device(whole.offsets[1:-1])))
        assert np.diff(spool.offsets).tolist() == [len(row) for row in rows]
        assert spool.num_values == sum(map(len, rows))

        def check():
            for wanted in ([], [0], [39], range(40), range(5, 21), [3, 1, 39, 8, 8, 7], generator.permutation(40)):
                found = spool.gather(np.array(list(wanted), np.int64))
                assert isinstance(found.values, DeviceArray)
                assert [found[i].get().tolist() for i in range(len(found))] == [rows[row].tolist() for row in wanted]

        assert len(spool._writing) <= spool_module.WRITING
        check()
        spool.spill()
        check()
        whole = Ragged.from_rows([[1, 2]], np.uint64)
        spool.append(Ragged(on_device(whole.values), on_device(whole.offsets)))
        assert spool.gather(np.array([40]))[0].get().tolist() == [1, 2]
    assert list(tmp_path.iterdir()) == []


def test_shared_passages(gpu):
    found = [passages(TABLE, id_column="id", length=6, engine=backend) for backend in ("cpu", "gpu")]
    assert found[0].passages.num_rows > 10
    assert found[1].passages.equals(found[0].passages) and found[1].documents.equals(found[0].documents)
    assert {"repeats._hash_pieces", "common_chains._find_runs", "joined_runs._join_pair"} <= set(gpu)


@pytest.mark.parametrize("options", [{}, {"keep": "longest", "keep_copies": 2, "in_documents": 2}], ids=str)
def test_repeated_passages(gpu, options):
    found = [
        substrings(TABLE, id_column="id", length=6, action="list", engine=backend, **options)
        for backend in ("cpu", "gpu")
    ]
    assert found[0].spans.num_rows > 10
    assert found[1].spans.equals(found[0].spans) and found[1].documents.equals(found[0].documents)
    assert {"repeats._hash_pieces", "repeats._compare_pieces", "removals._count_ended"} <= set(gpu)
