"""The whole job in Numba's simulator: real launches, on real documents. NUMBA_ENABLE_CUDASIM=1 pytest tests/gpu

The simulator takes 0.1 ms a thread, so most of these texts are short; test_whole_job.py has more of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from flat import flat
from grids import some
from in_parts import compare

from neardup_gpu import (
    Engine,
    MinHash,
    Recipe,
    Shingles,
    SimHash,
    Workers,
    Writing,
    contaminated,
    dedup,
    passages,
    substrings,
)
from neardup_gpu.engine import local
from neardup_gpu.engine.local import LocalWorkers
from neardup_gpu.hamming import HammingIndex, pairs as near_pairs
from neardup_gpu.installation.kernel_inputs import kernel_modules
from neardup_gpu.sketches import pairs, sketch

pytestmark = pytest.mark.skipif(not numba.config.ENABLE_CUDASIM, reason="needs NUMBA_ENABLE_CUDASIM=1")

FOREIGN = [
    "Der schnelle braune Fuchs springt über den faulen Hund, und die Straße ist naß. ΟΔΥΣΣΕΥΣ Ὀδυσσεύς.",
    "素早い茶色の狐は怠け者の犬を飛び越える。ﾊﾝｶｸ ハンカク ㌖ ﷺ ไทยแลนด์ हिन्दी में लिखा हुआ العَرَبِيَّة",
    "e\u0301te\u0301 o\u0323\u0302 q\u0307\u0323 ﬁnance ½ x² soft\u00adhyphen zero\u200bwidth 😀 done",
]


def paragraphs():
    """Prose of the standard library's docstrings, the same wherever its version is: as far as this matters here."""
    import argparse
    import difflib
    import doctest
    import logging
    import pickletools
    import typing

    for module in (argparse, difflib, doctest, logging, pickletools, typing):
        for paragraph in (Path(module.__file__).read_text(encoding="utf-8")).split("\n\n"):
            if len(paragraph.split()) > 12:
                yield " ".join(paragraph.split())


def documents(size, passage=60):
    """Documents of about `passage` words, `size` bytes together: of every three one is edited and one is a copy."""
    words = " ".join(paragraphs()).split()
    texts, held, at = [], 0, 0
    while held < size:
        text = words[at : at + passage]
        at += passage
        if at % (3 * passage) == 0:
            text = text[: passage // 2] + FOREIGN[at // passage // 3 % 3].split()
        texts += [text, [*text[: passage // 3], "edited", *text[passage // 3 + 1 :]]]
        if len(texts) % 3 == 0:
            texts.append(texts[-2])
        held = sum(len(" ".join(text).encode()) for text in texts)
    joined = [" ".join(text) for text in texts] + ["", " ,. ", "one", "ONE!"]
    ids = [f"d{i}" for i in range(len(joined))]
    return pa.table({"id": ids, "text": joined})


def corpus(size):
    """Real documents: the corpora's, where they are, else the standard library's."""
    folder = os.environ.get("NEARDUP_CORPORA")
    if not folder:
        return documents(size)
    table = pq.read_table(Path(folder) / "bills_116_small.parquet").select(["id", "text"])
    lengths = [len(text) for text in table["text"].to_pylist()]
    rows, held = [], 0
    for row in sorted(range(len(table)), key=lambda row: (lengths[row], table["id"][row].as_py())):
        if lengths[row] > 400 and held + lengths[row] <= size:
            rows.append(row)
            held += lengths[row]
    return table.take(rows)


def same(found, expected):
    assert found.documents.equals(expected.documents)
    assert found.pairs.equals(expected.pairs)
    for part in ("counts", "limits", "recall", "group_sizes"):
        assert found.report[part] == expected.report[part]


def check(table, memory=None, batch_bytes=None, **options):
    """Both backends give the same bits; the result of the simulator's."""
    found = flat(
        dedup,
        table,
        id_column="id",
        batch_bytes=batch_bytes,
        engine=Engine(backend="gpu", gpu_memory=memory),
        **options,
    )
    same(found, flat(dedup, table, id_column="id", engine="cpu", **options))
    return found


def test_kilobytes_of_documents():
    found = check(corpus(6000), recipe=Recipe(method=MinHash(filter=(12, 5, 1))), check=30)
    counts = found.report["counts"]
    assert counts["text_bytes"] > 5000
    assert counts["removed_near"] > 1
    assert found.report["backend"] == "gpu"
    assert found.report["device"]["name"] == "Numba's simulator"


SMALL = documents(1600, passage=25)

OPTIONS = {
    "exact": {},
    "components": {"cluster": "components", "max_partners": 1, "threshold": 0.4},
    "min-hash, tfidf": {"recipe": Recipe(method=MinHash(weighting="tfidf"))},
    "against": {"against": documents(700, passage=25), "keep": "longest"},
    "bag": {"recipe": Recipe(shingles=Shingles(kind="bag"))},
    "spots": {"recipe": Recipe(shingles=Shingles(2, "spots"))},
    "64 bits": {"recipe": Recipe(method=MinHash(bits=64, filter="altavista"))},
    "little memory": {"memory": "60kB", "check": 0},
    "simhash, verified, tfidf": {
        "recipe": Recipe(method=SimHash(radius=12, bits=128, weighting="tfidf"), threshold=0.6)
    },
    "simhash, tfidf, little memory": {
        "recipe": Recipe(method=SimHash(radius=6, weighting="tfidf")),
        "memory": "60kB",
    },
}


FEW = ("components", "min-hash, tfidf", "against", "little memory", "simhash, verified, tfidf")


@pytest.mark.parametrize("case", some(OPTIONS, FEW))
def test_same_bits_as_cpu(case):
    assert check(SMALL, **OPTIONS[case]).report["counts"]["removed"] >= 3


def test_simhashes_their_pairs_and_an_index(tmp_path):
    found = {}
    for backend in ("cpu", "gpu"):
        path = tmp_path / f"{backend}.parquet"
        sketch(
            SMALL,
            path,
            id_column="id",
            recipe=Recipe(method=SimHash(elements="shingles", weighting="tf")),
            engine=backend,
        )
        table = pq.read_table(path)
        simhashes = table["simhash"].drop_null()
        near = near_pairs(simhashes, 6, backend=backend)
        index = HammingIndex(simhashes, 6, backend=backend)
        answer = [array.tolist() for array in index.query(simhashes[0].as_py())]
        found[backend] = table, [near.left.tolist(), near.right.tolist(), near.distance.tolist()], answer
    assert found["gpu"] == found["cpu"]
    assert len(found["cpu"][1][0]) >= 3


@pytest.mark.parametrize("method", ["minhash", "modm"])
def test_sketch_and_pairs(tmp_path, method):
    tables = []
    for backend in ("cpu", "gpu"):
        path = tmp_path / f"{backend}.parquet"
        sketch(SMALL, path, id_column="id", method=method, engine=backend)
        asked = [{}] if method == "minhash" else [{}, {"containment": 0.5}]
        tables.append((path.read_bytes(), [pairs(path, **each, engine=backend).to_pylist() for each in asked]))
    assert tables[0] == tables[1] and all(tables[0][1])


def test_the_simulator_is_taken_by_name_only():
    assert dedup(SMALL, id_column="id", writing=Writing(check=0)).report["backend"] == "cpu"


def test_the_command(tmp_path):
    pq.write_table(documents(600, passage=20), tmp_path / "in.parquet")

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "neardup_gpu", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
        )

    shared = ["dedup", tmp_path / "in.parquet", "--id-column", "id", "--json"]
    done = run(*shared, "-o", tmp_path / "out", "--engine", "gpu", "--device", 0, "--gpu-memory", "1GB", "--check", 0)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["device"]["gpu_memory"] == 10**9
    assert report["backend"] == "gpu"
    assert run("info", tmp_path / "out").returncode == 0
    done = run(*shared, "--dry-run", "--engine", "gpu", "--device", 1)
    assert done.returncode == 2
    assert json.loads(done.stdout)["status"] == "failed"
    assert "one device" in done.stderr


def test_first_contact(tmp_path):
    """In half a minute of budget each step is there, and nothing is wrong."""
    steps = ["environment", "launch", "kernels", "scale", "layouts", "ceilings", "job", "batches", "profiler", "tests"]
    words = ["--budget", "30", "--out", str(tmp_path), "--only", ",".join(steps)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.first_contact", *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = (tmp_path / "first_contact.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("Nothing is wrong.")
    assert list(dict.fromkeys(record["step"] for record in records)) == ["run", *steps, "summary"]
    assert {record["verdict"] for record in records} == {"ok", "not run"}
    assert all(record["reason"] for record in records if record["verdict"] == "not run")
    found = {(record["step"], record["item"]): record for record in records}
    assert found["launch", "kernel"]["verdict"] == found["launch", "cupy"]["verdict"] == "ok"
    for step, item in (("ceilings", "page-locking"), ("profiler", "ncu: tokens")):
        assert (found.get((step, item)) or found[step, None])["reason"] in ("simulator", "budget")
    kernels = {item: record for (step, item), record in found.items() if step == "kernels"}
    assert set(kernel_modules("gpu")) <= set(kernels)
    ran = [record for record in kernels.values() if record["verdict"] == "ok"]
    assert ran and all(record["inputs"] == 2 for record in ran)
    assert any(record["kernels"] for record in ran)
    scaled = [record for (step, _), record in found.items() if step == "scale"]
    ran = [record for record in scaled if record["verdict"] == "ok"]
    assert all(record["traced"] and record["median"] > 0 for record in ran)
    assert ran or all(record["reason"].startswith("budget") for record in scaled)  # on a busy machine
    assert all(
        record["computing_ms"] > 0 and {"read", "fill the slab"} <= set(record["host_s"])
        for (step, _), record in found.items()
        if step == "job" and record["verdict"] == "ok"
    )


TASKS = [pytest.param("exact", False, id="exact"), pytest.param(MinHash(filter=(12, 5, 1)), True, id="minhash, spool")]


@pytest.mark.parametrize(("method", "spool"), some(TASKS, TASKS[1:]))
def test_tasks_of_which_some_run_on_a_gpu(method, spool, tmp_path, monkeypatch):
    """One process sees a GPU, on which it does each other task that is for one; another process sees none."""
    own_environment = LocalWorkers._own_environment

    def with_simulator(self, place):
        found = own_environment(self, place)
        return found if found["CUDA_VISIBLE_DEVICES"] else {**found, "NUMBA_ENABLE_CUDASIM": "0"}

    monkeypatch.setattr(LocalWorkers, "_own_environment", with_simulator)
    monkeypatch.setattr(local, "FORKS", False)  # a simulator is chosen when Numba is imported
    troubled.trouble(monkeypatch.setattr, troubled.mixed, tmp_path / "marks")
    options = {"id_column": "id", "recipe": Recipe(method=method), "check": 20}
    flat(dedup, SMALL, output=tmp_path / "memory", engine="cpu", **options)
    cut = Workers(work_dir=str(tmp_path / "work"), number=2, slice_bytes=900, partitions=3, spool=spool)
    flat(dedup, SMALL, output=tmp_path / "tasks", engine="gpu", workers=cut, **options)
    compare(tmp_path / "memory", tmp_path / "tasks")
    done = set((tmp_path / "marks" / "log").read_text().splitlines())
    assert {f"{stage} {backend}" for stage in ("sketch", "collide", "verify") for backend in ("gpu", "cpu")} <= done
    assert "copies no GPU" in done


@pytest.mark.parametrize("action", ["list", "cut"])
def test_a_check_for_contamination(tmp_path, action):
    texts = [*paragraphs()][:6]
    words = texts[2].split()
    evals = {"set": {"question": [" ".join(words[1:12]).upper(), " ".join(words[:6]), "nothing of it"]}}
    found = [
        contaminated({"text": texts}, evals, output=tmp_path / backend, action=action, engine=backend)
        for backend in ("cpu", "gpu")
    ]
    assert found[0].hits.num_rows >= 2
    assert found[1].hits.equals(found[0].hits) and found[1].evals.equals(found[0].evals)
    assert found[1].counts == found[0].counts


@pytest.mark.parametrize("two", [False, True])
def test_shared_passages(two):
    """The passages that documents share with one another, or with others, are those of the CPU."""
    texts = [" ".join(text.split()[:30]) for text in [*paragraphs()][:3]]
    texts = [*texts, f"{texts[1]} {texts[0]}", "of " * 9 + texts[2].replace(" the ", " a ")]
    other = {"text": [f"{texts[3]} of", texts[2]]} if two else None
    found = [passages({"text": texts}, other, length=4, engine=backend) for backend in ("cpu", "gpu")]
    assert found[0].counts["passages"] >= 3
    assert found[1].passages.equals(found[0].passages) and found[1].documents.equals(found[0].documents)
    assert found[1].counts == found[0].counts


@pytest.mark.parametrize("options", [{}, {"keep": "longest", "keep_copies": 2, "in_documents": 2}], ids=str)
def test_repeated_passages(tmp_path, options):
    """Passages are removed, some of which overlap others, and the corpus is that of the CPU, byte by byte."""
    texts = [" ".join(text.split()[:40]) for text in [*paragraphs()][:4]]
    texts = [*texts, f"{texts[1]} {texts[0]}", "of " * 30 + texts[2], f"{texts[1]} of of of of of of {texts[3]}"]
    found = [
        substrings({"text": texts}, length=6, output=tmp_path / backend, engine=backend, **options)
        for backend in ("cpu", "gpu")
    ]
    assert found[0].report["counts"]["passages"] >= 2
    assert found[1].spans.equals(found[0].spans) and found[1].documents.equals(found[0].documents)
    assert found[1].report["counts"] == found[0].report["counts"]
    (kept,) = (tmp_path / "cpu" / "kept").iterdir()
    assert kept.read_bytes() == (tmp_path / "gpu" / "kept" / kept.name).read_bytes()
