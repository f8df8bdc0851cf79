"""How often the host waits for a GPU in a batch, and what it copies there: counted on one that is stood for.

CuPy's functions and conversions that wait are those that `cupy_calls` names. An earlier version waited 13 times a
batch, and copied 424 kB of tables there for each.
"""

import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
import kernel_list
from cupy_calls import DeviceArray, Namespace
from flat import flat
from versions import corpus, families

from neardup_gpu import BottomK, Engine, MinHash, ModM, Recipe, SimHash, dedup, stages
from neardup_gpu.data import Ragged
from neardup_gpu.engine import pieces
from neardup_gpu.engine.arrays import Fetching
from neardup_gpu.engine.gpu import GpuRuntime
from neardup_gpu.engine.pieces import spans
from neardup_gpu.jobs import sketch_jobs
from neardup_gpu.kernels import _constants, _launch as launch, tokens
from neardup_gpu.sketches import sketch
from neardup_gpu.stages.sketching import Sketcher
from neardup_gpu.store.postings import Postings

TABLE = corpus(families(num=12, seed=4), seed=4)
WORDLESS = sum(not any(map(str.isalnum, text or "")) for text in TABLE["text"].to_pylist())


@pytest.fixture
def gpu():
    with (
        hostir.device("lane") as launched,
        mock.patch.object(launch, "simulated", lambda: True),  # whose staging needs no streams
        mock.patch.object(DeviceArray, "__cuda_array_interface__", {}, create=True),
    ):
        yield launched


def deduplicated(**options):
    """Run the job of which a batch is counted."""
    flat(dedup, TABLE, id_column="id", batch_bytes=1500, check=0, engine=Engine(backend="gpu"), **options)


def batches(run_job=deduplicated, **options):
    """(waits by kind, bytes copied beside the text, launches) of each batch of a job."""
    found, staged = [], []
    add, copy, run = Sketcher._add, launch.Staging.copy, launch.Kernel._launch
    launches = []

    def noted(self, kept, part, *rest):
        add(self, kept, part, *rest)
        found.append((dict(Namespace.waits), list(Namespace.uploads), len(launches)))

    def copied(self, *arguments):
        staged.append(arguments[-1])
        return copy(self, *arguments)

    def launched(kernel, *arguments):
        launches.append(kernel)
        run(kernel, *arguments)

    with (
        mock.patch.object(Sketcher, "_add", noted),
        mock.patch.object(launch.Staging, "copy", copied),
        mock.patch.object(launch.Kernel, "_launch", launched),
    ):
        Namespace.waits.clear(), Namespace.uploads.clear()
        run_job(**options)
    assert len(found) >= 5
    for before, after in zip(
        found, found[1:-1], strict=False
    ):  # nothing is run before the last one's results are taken
        waits = {name: n - before[0].get(name, 0) for name, n in after[0].items() if n > before[0].get(name, 0)}
        uploads = [size for size in after[1][len(before[1]) :] if size not in staged]
        yield waits, uploads, after[2] - before[2]


METHODS = {
    "exact": ("exact", 1),
    "containment": ("containment", 2),
    "min-hash": (MinHash(filter=(6, 14, 2)), 1),
    "one bit": (MinHash(sample_bits=1, candidates="segments"), 1),
    "fast": (MinHash(sampler="fast"), 1),
    "weighted": (MinHash(weighting="tf"), 3),
    "weighted by frequencies": (MinHash(weighting="tfidf"), 4),
    "bottom-k": (BottomK(s=40), 3),
    "groups": (BottomK(s=40, candidates="groups"), 3),
    "mod-m": (ModM(m=8), 2),
    "mod-m, shortened": (ModM(m=2, s=9), 2),
    "adaptive": (ModM(adaptive=True), 3),
    "simhash": (SimHash(weighting="tf"), 1),
    "simhash by frequencies": (SimHash(weighting="tfidf"), 4),
}
"""Methods, and how often the host waits for a batch of a job: for where the tokens of documents begin, and at most once
for each array whose length depends on values. By bottom-k it waits once more if documents repeat themselves."""

MOST_LAUNCHES = {1: 14, 2: 18, 3: 28, 4: 23}
"""Most launches for a batch, by the number of waits."""


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_waits_rarely_and_uploads_its_text_alone(gpu, name):
    method, most = METHODS[name]
    for waits, uploads, launches in batches(method=method):
        assert sum(waits.values()) <= most <= 4
        if most == 1:
            assert waits == {"get": 1}, "of where documents' tokens begin"
            assert sum(uploads) <= 8 * WORDLESS, "nothing but the rows of documents without words"
        assert launches <= MOST_LAUNCHES[most]


@pytest.mark.parametrize("name", METHODS.keys() - {"exact", "containment"})
def test_a_batch_of_sketches_waits_once_more_at_most(gpu, tmp_path, name):
    method, most = METHODS[name]

    def run(**options):
        engine = Engine(backend="gpu", batch_bytes=1500)
        sketch(TABLE, tmp_path / "s.parquet", id_column="id", engine=engine, **options)

    for waits, _, launches in batches(run, method=method):
        assert sum(waits.values()) <= min(most + 1, 4), "one of them of all that is written"
        assert launches <= MOST_LAUNCHES[most]


def test_two_batches_are_at_work(gpu, tmp_path, monkeypatch):
    """The next batch is begun before the host waits for one, and results are on their way while the next one runs."""
    done = []

    def noted(where, name, what):
        run = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *each, **more: (done.append(what), run(*each, **more))[1])

    noted(tokens.TokenCounting, "__init__", "begin")
    noted(tokens, "begun", "wait")
    noted(Fetching, "__init__", "send")
    noted(Fetching, "get", "take")
    sketch(TABLE, tmp_path / "s.parquet", id_column="id", engine=Engine(backend="gpu", batch_bytes=1500))
    number = done.count("begin")
    assert number > 4 and done.count("take") == number
    each = ["begin", "wait", "send", "take"] * (number - 2)
    assert done == ["begin", "begin", "wait", "send", *each, "wait", "send", "take", "take"]


SKETCHES = {
    "min-hash": {"method": "minhash"},
    "one bit": {"method": MinHash(sample_bits=1, candidates="segments")},
    "simhash": {"method": SimHash(weighting="tf")},
    "bottom-k": {"method": "bottomk"},
    "mod-m": {"method": "modm"},
    "adaptive": {"method": ModM(adaptive=True)},
}


@pytest.mark.parametrize("method", SKETCHES)
def test_a_block_of_estimates_waits_rarely(gpu, tmp_path, monkeypatch, method):
    sketch(TABLE, tmp_path / "s.parquet", id_column="id", engine="cpu", **SKETCHES[method])
    monkeypatch.setattr(sketch_jobs, "ESTIMATED", 2)
    waits, mapped = [], GpuRuntime.map

    def counted(self, function, pieces):
        for part in mapped(self, function, pieces):
            waits.append(sum(Namespace.waits.values()))
            yield part

    monkeypatch.setattr(GpuRuntime, "map", counted)
    Namespace.waits.clear()
    sketch_jobs.pairs(tmp_path / "s.parquet", engine="gpu")
    assert len(waits) > 3 and max(np.diff(waits)) <= 3


@pytest.mark.parametrize(("method", "most"), [("exact", 4), ("containment", 4)])
def test_a_part_of_the_index_waits_four_times(gpu, monkeypatch, method, most):
    """Three times for prefixes, and once for bitmaps. By containment a second pass over the parts looks at elements."""
    monkeypatch.setattr(pieces, "spans", lambda weights, _: spans(weights, 3000))
    waits, add = [], Postings.add

    def noted(self, *arrays):
        add(self, *arrays)
        waits.append(sum(Namespace.waits.values()))

    monkeypatch.setattr(Postings, "add", noted)
    Namespace.waits.clear()
    deduplicated(method=method)
    assert len(waits) > 5 and sorted(np.diff(waits))[-2] <= most


PUBLIC = {
    "exact": (Recipe(), 0),
    "min-hash": (Recipe(method="minhash"), 4),
    "fast": (Recipe(method=MinHash(sampler="fast")), 4),
    "weighted": (Recipe(method=MinHash(weighting="tf")), 4),
    "bottom-k": (Recipe(method=BottomK(s=40)), 4),
    "groups": (Recipe(method=BottomK(s=40, candidates="groups")), 4),
    "mod-m": (Recipe(method=ModM(m=8)), 4),
    "adaptive": (Recipe(method=ModM(adaptive=True)), 4),
    "simhash": (Recipe(method=SimHash(weighting="tf")), 3),
}
"""Recipes, and how often the host waits in `collide`, which runs once per job."""


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_stage_waits_three_times(gpu, name):
    """Whatever it is given is on the device already."""
    recipe, in_collide = PUBLIC[name]
    method, seed, found = recipe.method, {"seed": recipe.seed}, {}

    def waits_of(stage, *arguments, **options):
        Namespace.waits.clear()
        result = stage(*arguments, backend="gpu", **options)
        found[stage.__name__] = sum(Namespace.waits.values())
        return result

    text = stages.utf8([text or "" for text in TABLE["text"].to_pylist()])
    text = Ragged(Namespace().asarray(text.values), Namespace().asarray(text.offsets))
    shingles = waits_of(stages.shingle, waits_of(stages.tokenize, text, recipe), recipe)
    if in_collide:
        keys = waits_of(method.keys, waits_of(method.sketch, shingles, **seed), **seed)
        waits_of(method.collide, keys, present=shingles.sizes > 0, **seed)
    verified = waits_of(stages.verify, shingles, stages.Pairs([0, 0, 1], [1, 2, 3]), 0.5)
    waits_of(stages.keep, len(text), verified, recipe)
    assert found.pop("collide", 0) <= in_collide
    assert max(found.values()) <= 3


def test_what_is_known_dies_with_its_array(gpu):
    offsets = Namespace().asarray(np.array([0, 3, 9]))
    assert launch.known(offsets) is None and launch.bounds_of(offsets) == (0, 9)
    launch.know(offsets, np.array([0, 3, 9]))
    Namespace.waits.clear()
    assert launch.bounds_of(offsets) == (0, 9) and launch.to_host(offsets).tolist() == [0, 3, 9]
    assert launch.known(offsets[:2]) is None, "another array"
    assert not Namespace.waits
    number = id(offsets)
    del offsets
    assert number not in launch._KNOWN


def test_constants_are_made_and_copied_once_and_the_oldest_leave(gpu, monkeypatch):
    monkeypatch.setattr(_constants, "_HELD", type(_constants._HELD)())
    monkeypatch.setattr(_constants, "MOST", 2)
    made = []

    def make(number):
        made.append(number)
        return np.full(3, number)

    for number in (1, 2, 1, 3, 1, 2):
        assert _constants.constants(make, number)[0].get().tolist() == [number] * 3
    assert made == [1, 2, 3, 2]
    a = _constants.constant(np.arange(3, dtype=np.uint32))
    assert _constants.constant(np.arange(3, dtype=np.uint32)) is a and a.dtype == np.uint32
    assert _constants.constant(np.arange(3, dtype=np.uint64)) is not a


@pytest.mark.parametrize("shift", [0, 8, 3])
def test_text_that_lies_as_staged_is_not_copied(gpu, shift):
    """And what follows it, which could be letters or half of a character, changes nothing."""
    said = "naïve words, once and again; the end is a word".encode()
    for tail in (b"", b"more letters" * 40, b"\xe2\x82" * 200):
        text = np.frombuffer(b"x" * shift + said + tail, np.uint8)
        offsets = np.array([shift, shift + 13, shift + 13, shift + len(said)])
        Namespace.calls.clear()
        held = Namespace().asarray(text)
        values, new_offsets, invalid = tokens.gpu(held, Namespace().asarray(offsets), 0x9B)
        expected = tokens.cpu(text, offsets, 0x9B)
        np.testing.assert_array_equal(values.get(), expected[0])
        np.testing.assert_array_equal(new_offsets.get(), expected[1])
        assert invalid == expected[2] == 0
        copied = Namespace.calls["zeros"] > 2
        assert copied == (len(tail) < 100 or (held.data.ptr + shift) % 8 != 0)


def test_a_launch_gives_the_driver_its_arguments_in_little_time():
    """By a driver that says success and records, in a process of its own; every kernel, and those of a batch add up."""
    script = Path(hostir.__file__).with_name("driver.py")
    done = subprocess.run([sys.executable, script, "100"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == set(kernel_list.all_kernels())
    assert [name for name, row in found.items() if not row["right"]] == []
    files = "_token_beginnings", "tokens", "shingles", "sequences", "supershingles"
    batch = [row["us"] for name, row in found.items() if name.split(".")[0] in files]
    assert sum(batch) + found["minhash._signature_kernel(32, 3)"]["us"] < 1000
