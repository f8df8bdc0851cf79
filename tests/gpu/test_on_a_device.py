"""What only a device can show: agreement at scale, too little memory, streams, and the same answer every time."""

import gc
import logging
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreement import on_host
from flat import flat

from neardup_gpu import (
    Engine,
    Index,
    MinHash,
    Recipe,
    Shingles,
    SimHash,
    Workers,
    contaminated,
    dedup,
    passages,
    substrings,
)
from neardup_gpu.data import Ragged
from neardup_gpu.engine.gpu import DEFAULT_SHARE
from neardup_gpu.errors import NeardupError, ParameterError
from neardup_gpu.hamming import HammingIndex, TableDesign, join, pairs as near_pairs
from neardup_gpu.kernels import _launch as launch, hamming
from neardup_gpu.results.sketch_writing import frequencies_path
from neardup_gpu.sketches import pairs, sketch

pytestmark = pytest.mark.gpu


def words_of(seed):
    """50,000 random words, of which the first are the most frequent in `generated`."""
    return ["".join(map(chr, w)) for w in np.random.default_rng(seed).integers(97, 123, (50_000, 7))]


def generated(num_bytes, seed=1, length=400):
    """Documents of random words, Zipf-distributed, some not ASCII; of every ten, four are edited copies and one is a
    copy."""
    random = np.random.default_rng(seed)
    words = words_of(random)
    words[::50] = [f"{word}é漢字ß" for word in words[::50]]
    texts, held = [], 0
    while held < num_bytes:
        ids = np.minimum(random.zipf(1.3, length), len(words)) - 1
        family = [ids]
        for _ in range(random.integers(0, 3)):
            edited = family[0].copy()
            places = random.integers(0, length, random.integers(0, 12))
            edited[places] = random.integers(0, len(words), len(places))
            family.append(edited)
        texts += [" ".join([words[i] for i in member]) for member in family]
        held += sum(len(text) for text in texts[-len(family) :])
    order = random.permutation(len(texts))
    return pa.table({"text": [texts[i] for i in order]})


@pytest.fixture(scope="module")
def table():
    return generated(100_000_000)


@pytest.fixture(scope="module")
def small():
    return generated(4_000_000, seed=2)


def same(found, expected, *, little_memory=False):
    """Check that two jobs found the same. With little memory the index of shingles is in parts, and a document may meet
    another one in several."""
    assert found.documents.equals(expected.documents)
    assert found.pairs.equals(expected.pairs)
    counts = [{**each.report["counts"]} for each in (found, expected)]
    if little_memory:
        assert counts[0].pop("comparisons") >= counts[1].pop("comparisons")
    assert counts[0] == counts[1]
    for part in ("limits", "recall", "group_sizes"):
        assert found.report[part] == expected.report[part]


@pytest.fixture(scope="module")
def expected(table):
    return dedup(table, engine="cpu")


def test_agreement_at_scale(table, expected):
    found = dedup(table, engine="gpu")
    same(found, expected)
    assert found.report["counts"]["text_bytes"] > 90_000_000
    assert found.report["counts"]["removed_near"] > 1000
    assert found.report["device"]["halvings"] == 0


@pytest.mark.parametrize("batch_bytes", [1 << 18, 1 << 22, 1 << 26])
def test_batches_change_nothing(table, expected, batch_bytes):
    found = dedup(table, engine=Engine(backend="gpu", batch_bytes=batch_bytes))
    same(found, expected)
    assert found.report["device"]["batches"] > 90_000_000 // batch_bytes


@pytest.mark.parametrize(
    "options",
    [
        {"cluster": "components"},
        {"keep": "longest"},
        {"recipe": Recipe(shingles=Shingles(kind="bag"))},
        {"recipe": Recipe(shingles=Shingles(kind="circular"))},
        {"recipe": Recipe(shingles=Shingles(2, "spots", words_of(seed=2)[1:40]))},
        {"recipe": Recipe(method=MinHash())},
        {"recipe": Recipe(method=MinHash(bits=64))},
        {"max_partners": 1, "threshold": 0.5},
        {"max_partners": 1, "threshold": 0.3, "cluster": "components"},
        {"max_partners": None, "threshold": 0.3},
        {"against": generated(1_000_000, seed=2)},
    ],
    ids=str,
)
def test_options(small, options):
    same(flat(dedup, small, engine="gpu", **options), flat(dedup, small, engine="cpu", **options))


SIMHASHES = [
    Recipe(method=SimHash(weighting="tf")),
    Recipe(method=SimHash(weighting="tfidf")),
    Recipe(method=SimHash(radius=8, weighting="tf"), threshold=0.7),
    Recipe(method=SimHash(radius=12, weighting="tfidf", bits=128), threshold=0.7),
    Recipe(method=SimHash(elements="shingles", weighting="log"), shingles=Shingles(kind="bag")),
]


@pytest.mark.parametrize("recipe", SIMHASHES, ids=str)
def test_simhash_at_scale(table, recipe):
    found = dedup(table, recipe=recipe, engine="gpu")
    same(found, dedup(table, recipe=recipe, engine="cpu"))
    assert found.report["counts"]["removed_near"] > 1000
    assert found.report["device"]["halvings"] == 0


@pytest.mark.parametrize(
    ("recipe", "memory"),
    [(SIMHASHES[1], "16MB"), (SIMHASHES[1], "64MB"), (SIMHASHES[3], "64MB"), (SIMHASHES[3], "256MB")],
    ids=["few pairs, 16MB", "few pairs, 64MB", "800,000 pairs, 64MB", "800,000 pairs, 256MB"],
)
def test_simhash_with_little_memory(recipe, memory):
    """What waits for document frequencies goes to the file, and pairs that do not fit wait in host memory."""
    table = generated(20_000_000, seed=3)
    same(
        dedup(table, recipe=recipe, engine=Engine(backend="gpu", gpu_memory=memory)),
        dedup(table, recipe=recipe, engine="cpu"),
        little_memory=True,
    )


@pytest.mark.parametrize("weighting", ["tf", "tfidf"])
def test_simhashes(small, tmp_path, weighting):
    files = []
    for backend in ("cpu", "gpu"):
        path = tmp_path / f"{backend}.parquet"
        sketch(small, path, recipe=Recipe(method=SimHash(weighting=weighting)), engine=backend)
        paths = [path, *([frequencies_path(path)] if weighting == "tfidf" else [])]
        files.append([each.read_bytes() for each in paths])
    assert files[0] == files[1]


def fingerprints(num_rows, num_words=1, seed=1):
    """Random ones; of every ten one within 5 bits of another, and a crowd that differs in 16 bits only."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 2**64, (num_rows, num_words), np.uint64)
    copies = random.integers(0, num_rows, num_rows // 10)
    values[: len(copies)] = values[copies]
    for _ in range(5):
        rows = np.flatnonzero(random.random(len(copies)) < 0.5)
        bits = np.uint64(1) << random.integers(0, 64, len(rows), np.uint64)
        values[rows, random.integers(0, num_words, len(rows))] ^= bits
    values[-(num_rows // 100) :] = random.integers(0, 1 << 16, (num_rows // 100, num_words), np.uint64)
    return values if num_words == 2 else values[:, 0].copy()


def same_arrays(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("num_rows", "num_words"), [(10_000_000, 1), (3_000_000, 2)])
def test_near_pairs_at_scale(num_rows, num_words):
    values = fingerprints(num_rows, num_words)
    found = near_pairs(values, 3, backend="gpu")
    assert len(found.left) > num_rows // 100
    same_arrays(found[:-1], near_pairs(values, 3, backend="cpu")[:-1])


@pytest.mark.parametrize("max_rows", [None, 1_000_000, 100_000])
def test_tables_in_passes(max_rows):
    values, masks = fingerprints(2_000_000), TableDesign(64, 3, 16).array
    found = on_host(hamming.gpu(values, masks, 3, 512, 32, max_rows=max_rows))
    same_arrays(found, hamming.cpu(values, masks, 3, 512, 32))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("num_words", [1, 2])
def test_an_index_of_ten_million(tmp_path, num_words, compress):
    values = fingerprints(10_000_000 // num_words, num_words)
    asked = fingerprints(1_000_000, num_words, seed=2)
    asked[::2] = values[: len(asked[::2])]
    expected = HammingIndex(values, 3, compress=compress, backend="cpu")
    index = HammingIndex(values, 3, compress=compress, backend="gpu")
    for name, array in expected.tables.arrays.items():
        np.testing.assert_array_equal(index.tables.arrays[name], array)
    index.save(tmp_path / "index")
    mapped = HammingIndex.load(tmp_path / "index", backend="gpu")
    for queries in (asked[:1], asked[:1000], asked):
        wanted = expected.query(queries)
        for some in (index, mapped):
            for found, right in zip(some.query(queries), wanted, strict=True):
                same_arrays((found.values, found.offsets), (right.values, right.offsets))
    assert len(wanted[0].values) >= 500_000
    same_arrays(join(values, asked, 3, backend="gpu"), join(values, asked, 3, backend="cpu"))


def test_batches_that_do_not_fit_are_halved(small, caplog):
    """All text in one batch, with less and less memory, down to what is too little for anything."""
    wanted, halvings = dedup(small, engine="cpu"), []
    for megabytes in (96, 64, 48, 32, 24, 16, 12, 8):
        caplog.clear()
        try:
            with caplog.at_level(logging.INFO, "neardup_gpu"):
                found = dedup(small, engine=Engine(backend="gpu", gpu_memory=f"{megabytes}MB", batch_bytes=1 << 30))
        except NeardupError:
            break
        same(found, wanted, little_memory=True)
        halvings.append(found.report["device"]["halvings"])
        assert sum("halved" in record.getMessage() for record in caplog.records) == (halvings[-1] > 0)
    assert halvings[0] == 0
    assert halvings[-1] > 0


@pytest.mark.parametrize("memory", ["16MB", "64MB", "256MB"])
def test_little_memory(memory):
    """Sketches go to host memory and shingles to the file."""
    table = generated(20_000_000, seed=3)
    found = dedup(table, engine=Engine(backend="gpu", gpu_memory=memory))
    same(found, dedup(table, engine="cpu"), little_memory=True)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("method", ["exact", "minhash", "simhash"])
def test_a_job_in_tasks(tmp_path, small, method, workers):
    """One worker has the device, another one beside it has none."""
    pq.write_table(small, tmp_path / "small.parquet", row_group_size=300)
    recipe = Recipe(method=method, threshold=None if method == "simhash" else 0.8)
    expected = dedup(tmp_path / "small.parquet", recipe=recipe, engine="cpu")
    workers_of_the_job = Workers(work_dir=str(tmp_path / "work"), number=workers, slice_bytes="1MB", partitions=3)
    dedup(tmp_path / "small.parquet", output=tmp_path / "out", workers=workers_of_the_job, engine="gpu", recipe=recipe)
    assert pq.read_table(tmp_path / "out" / "documents").to_pylist() == expected.documents.to_pylist()
    assert pq.read_table(tmp_path / "out" / "pairs").to_pylist() == expected.pairs.to_pylist()


@pytest.mark.parametrize("method", ["minhash", "exact", "simhash"])
def test_a_growing_index(tmp_path, small, method):
    answers = []
    for backend in ("cpu", "gpu"):
        with Index.create(tmp_path / backend, method=method, engine=backend) as index:
            index.add(small, commit_every=1000)
            asked = index.query(small.slice(0, 200)), index.query(small["text"][3].as_py())
            index.remove(list(range(0, 500, 3)))
            answers.append((*asked, index.decide().documents, index.decide().pairs))
    for one, other in zip(*answers, strict=True):
        assert one.equals(other)


def test_a_document_that_does_not_fit():
    table = pa.table({"text": ["a b c d e f g h " * 4_000_000, "short"]})
    with pytest.raises(NeardupError, match=r"document 0: .*backend='cpu'"):
        dedup(table, engine=Engine(backend="gpu", gpu_memory="64MB"))


def test_more_memory_than_there_is():
    with pytest.raises(ParameterError, match=r"are free on device"):
        dedup(pa.table({"text": ["a"]}), engine=Engine(backend="gpu", gpu_memory="100TB"))


def test_the_bound_is_kept_and_lifted(small):
    import cupy

    pool = cupy.get_default_memory_pool()
    before, held = pool.get_limit(), pool.used_bytes()
    with Engine(backend="gpu", gpu_memory="300MB").start() as runtime:
        assert runtime.memory == 300_000_000
        with pytest.raises(MemoryError):
            cupy.empty(400_000_000, np.uint8)
    with Engine(backend="gpu").start() as runtime:
        free, total = cupy.cuda.runtime.memGetInfo()
        assert 0.5 * DEFAULT_SHARE * free < runtime.memory < total
    dedup(small, engine=Engine(backend="gpu", gpu_memory="1GB"))
    gc.collect()
    assert (pool.get_limit(), pool.used_bytes()) == (before, held)


def test_the_bound_is_kept_where_cupy_has_another_allocator(small):
    """CUDA's own asynchronous one; RMM's is another function of the same kind."""
    import cupy

    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    try:
        theirs = cupy.cuda.get_allocator()
        with Engine(backend="gpu", gpu_memory="300MB").start() as runtime:
            assert runtime.memory == 300_000_000
            with pytest.raises(MemoryError):
                cupy.empty(400_000_000, np.uint8)
        same(dedup(small, engine=Engine(backend="gpu", gpu_memory="100MB")), dedup(small, engine="cpu"))
        assert cupy.cuda.get_allocator() == theirs
    finally:
        cupy.cuda.set_allocator(before)


def test_constants_are_read_on_other_streams_and_after_their_job(small):
    """Those that a job copied to the device, by a later one on a stream of its own, whose memory is bound anew."""
    from neardup_gpu.kernels import _constants

    _constants._HELD.clear()
    expected = dedup(small, engine="cpu")
    same(dedup(small, engine=Engine(backend="gpu", gpu_memory="100MB")), expected)
    held = dict(_constants._HELD)
    assert held
    same(dedup(small, engine=Engine(backend="gpu", gpu_memory="300MB")), expected)
    assert dict(_constants._HELD) == held


def test_the_same_every_time(small):
    first = dedup(small, engine="gpu")
    for _ in range(9):
        same(dedup(small, engine="gpu"), first)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_tiny_slabs_used_many_times(slots):
    """Kernels that take longer than the copies read what was staged for them, not what came after."""
    import cupy

    random = np.random.default_rng(slots)
    rows = [random.integers(0, 256, random.integers(0, 30_000), np.uint8) for _ in range(2000)]
    batches = [Ragged.from_rows(rows[i : i + 4], np.uint8) for i in range(0, len(rows), 4)]
    busy = cupy.ones(1 << 22, np.float32)
    found = []
    with cupy.cuda.Stream(non_blocking=True), launch.Staging(slots) as staging:
        for _, (text, offsets) in staging.staged(batches, lambda batch: ([batch.values], batch.offsets)):
            for _ in range(10):
                busy = cupy.sin(busy)  # what follows waits for it, and the host does not
            text = text[: launch.bounds_of(offsets)[1]]  # which is known
            found.append((text.astype(np.uint64).sum(), text.copy(), offsets.copy()))
    for batch, (total, text, offsets) in zip(batches, found, strict=True):
        assert int(total) == int(batch.values.sum(dtype=np.uint64))
        np.testing.assert_array_equal(text.get(), batch.values)
        np.testing.assert_array_equal(offsets.get(), batch.offsets)


def test_sketch_and_pairs(small, tmp_path):
    tables = []
    for backend in ("cpu", "gpu"):
        path = tmp_path / f"{backend}.parquet"
        sketch(small, path, engine=backend)
        tables.append((path.read_bytes(), pairs(path, engine=backend)))
    assert tables[0][0] == tables[1][0]
    assert tables[0][1].equals(tables[1][1])


def test_a_gpu_is_found(monkeypatch):
    """For little text it is not started without a request."""
    monkeypatch.delenv("NEARDUP_BACKEND", raising=False)
    assert dedup(pa.table({"text": ["a b", "a b"]})).report["backend"] == "cpu"
    monkeypatch.setattr("neardup_gpu.engine.choice.WORTH_A_GPU", 0)
    assert dedup(pa.table({"text": ["a b", "a b"]})).report["backend"] == "gpu"


def test_every_device_by_number(small):
    import cupy

    wanted = dedup(small, engine="cpu")
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        found = dedup(small, engine=Engine(backend="gpu", device=number))
        same(found, wanted)
        assert found.report["device"]["number"] == number
        assert cupy.cuda.Device().id == 0


def test_a_check_for_contamination(small):
    """Items that stand in many documents, in part and whole, give the hits of the CPU."""
    texts = [text.split() for text in small["text"].to_pylist()]
    random = np.random.default_rng(4)
    begins = random.integers(0, 350, 2000)
    items = [" ".join(texts[i % len(texts)][b : b + 5 + i % 40]) for i, b in enumerate(begins.tolist())]
    found = [contaminated(small, {"set": {"question": items}}, engine=backend) for backend in ("cpu", "gpu")]
    assert found[0].hits.num_rows > 2000
    assert found[1].hits.equals(found[0].hits) and found[1].evals.equals(found[0].evals)


@pytest.mark.parametrize("options", [{}, {"length": 8, "gap": 30, "max_partners": 3}], ids=str)
def test_shared_passages(small, options):
    """Edited copies share passages with one another; all of them are the CPU's."""
    found = [passages(small, engine=backend, **options) for backend in ("cpu", "gpu")]
    assert found[0].passages.num_rows > 1000
    assert found[1].passages.equals(found[0].passages) and found[1].documents.equals(found[0].documents)
    assert found[1].counts == found[0].counts


@pytest.mark.parametrize("options", [{}, {"length": 8, "keep": "longest", "keep_copies": 2}], ids=str)
def test_repeated_passages(small, options):
    """Edited copies share passages of every length; those that are removed are the CPU's."""
    found = [substrings(small, engine=backend, **options) for backend in ("cpu", "gpu")]
    assert found[0].spans.num_rows > 1000
    assert found[1].spans.equals(found[0].spans) and found[1].documents.equals(found[0].documents)
    assert found[1].report["counts"] == found[0].report["counts"]


def test_a_sort_does_not_wait():
    """CuPy 14 runs Thrust with `par_nosync`: counts of waits in test_waits.py rest on it."""
    import cupy

    words = cupy.random.randint(0, 2**62, 200_000_000, dtype=cupy.int64).view(cupy.uint64)
    done = cupy.cuda.Event()
    cupy.cuda.get_current_stream().synchronize()
    words.sort()
    done.record()
    assert not done.done
    done.synchronize()
    assert bool((words[1:] >= words[:-1]).all())


@pytest.mark.parametrize("rate", [0, 2**62])
def test_shingles_that_do_not_fit_are_made_again_or_spilled(small, tmp_path, monkeypatch, rate):
    """And the decisions are those of a job whose shingles fit."""
    from neardup_gpu.engine.memory import Shares
    from neardup_gpu.store import spool

    of_gpu = Shares.of_gpu
    expected = dedup(small, engine="gpu", method="exact")
    monkeypatch.setattr(spool, "SPOOL_RATE", rate)
    monkeypatch.setattr(Shares, "of_gpu", classmethod(lambda cls, memory: replace(of_gpu(memory), spool=1 << 20)))
    pq.write_table(small, tmp_path / "small.parquet", row_group_size=500)
    engine = Engine(backend="gpu", batch_bytes=300_000)
    assert dedup(tmp_path / "small.parquet", engine=engine).documents == expected.documents
