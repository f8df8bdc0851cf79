"""What benchmarks/gpu.py times, on a GPU that is stood for: it gives the CPU's bits, and no failure hides the rest."""

import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("cupy", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")
pytest.importorskip("numba_cuda", reason="needs the environment of tests/gpu/requirements.txt, which .ci/run makes")

import hostir
from cupy.cuda import driver
from cupy_calls import DeviceArray, Namespace
from versions import corpus, families

from neardup_gpu.data import Ragged
from neardup_gpu.installation import selftest
from neardup_gpu.kernels import minhash, shingles, simhash

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import gpu as benchmark, tracing
from benchmarks.gpu_inputs import Inputs, timed_kernels

TEXTS = corpus(families(num=8, seed=4), seed=4)["text"].to_pylist()
TEXT = Ragged.from_rows([np.frombuffer(text.encode(), np.uint8) for text in TEXTS if text], np.uint8)


@pytest.fixture
def device():
    with (
        hostir.device("lane"),
        mock.patch.object(benchmark, "namespace", Namespace),
        mock.patch.object(benchmark, "simulated", lambda: True),  # which has no events
    ):
        yield


INPUTS = Inputs(TEXT, random_rows=50, num_fingerprints=300, num_queries=60)


@pytest.mark.parametrize("name", timed_kernels(INPUTS))
def test_what_is_timed(device, name):
    timed = timed_kernels(INPUTS)[name]()
    line = benchmark.measure(name, timed, 1, INPUTS.text_bytes)
    assert line["what"] == name and line["median"] > 0 and line["gb_per_s"] >= 0
    assert line.get("agrees", True) is True and "problem" not in line
    assert ("agrees" in line) == (timed.expected is not None)
    assert timed.expected is not None or "hamming" in name or "compression" in name or "random" in name


def test_kernels_and_functions_of_cupy_are_traced(device, monkeypatch):
    monkeypatch.setattr(tracing, "namespace", Namespace)
    monkeypatch.setattr(tracing, "simulated", lambda: True)
    timed = timed_kernels(INPUTS)["pair tables 6,14,2"]()
    held = benchmark.on_device(timed.arguments)
    with tracing.tracing() as spans:
        result = timed.run(*held)
    assert selftest.same(INPUTS.pairs, result)
    rows = {row["name"]: row for row in tracing.by_name(spans)}
    assert rows["pairtables._row_keys"]["calls"] == rows["sort_words"]["calls"] == 15
    assert all(row["ms"] >= 0 for row in rows.values()) and rows["sort_words"]["ms"] > 0
    spans.clear()
    timed.run(*held)
    assert spans == []


def test_what_the_device_made_of_a_kernel(monkeypatch):
    chosen, asked = minhash._signature_kernel(32, 3), {0: 256, 1: 8192, 3: 8, 4: 50}
    monkeypatch.setattr(driver, "funcGetAttribute", lambda number, handle: asked[number])
    monkeypatch.setitem(chosen.__dict__, "handle", lambda: 1)
    monkeypatch.setattr(tracing, "simulated", lambda: False)
    assert tracing.usage(chosen, 1.5, tracing.expected_usage("sm_90")) == {
        "kernel": "minhash._signature_kernel(32, 3)",
        "compile_s": 1.5,
        "came_compiled": False,
        "registers": 50,
        "local_bytes": 8,
        "shared_bytes": 8192,
        "most_threads": 256,
        "expected_registers": 48,
        "expected_local_bytes": 0,
    }
    assert tracing.expected_usage("sm_75") == {}


def test_large_arrays_are_on_the_device_and_constants_are_not(device):
    values, constants = benchmark.on_device((np.zeros(1000, np.uint64), np.zeros(2, np.uint64)))
    assert isinstance(values, DeviceArray) and isinstance(constants, np.ndarray)


@pytest.fixture
def run(device, tmp_path, monkeypatch, capsys):
    pq.write_table(pa.table({"id": range(len(TEXTS)), "text": TEXTS}), tmp_path / "corpus.parquet")
    monkeypatch.setattr(benchmark, "resolve", lambda name: name)
    monkeypatch.setattr(benchmark, "AGREEMENT_VALUES", 400)
    monkeypatch.setattr(benchmark, "time_job", lambda corpus, repeat, name, **options: [{"what": name}])
    monkeypatch.setattr(benchmark, "machine", dict)
    copies = [benchmark.figure(name, [1e-3], "GB/s") for name in (benchmark.COPY, benchmark.PCIE)]
    monkeypatch.setattr(benchmark, "bandwidths", lambda *arguments: copies)
    written = tmp_path / "figures.json"

    def command():
        words = ["--corpus", tmp_path / "corpus.parquet", "--output", written, "--megabytes", 0.003, "--repeat", 1]
        words += ["--random-rows", 50, "--fingerprints", 300, "--queries", 60]
        monkeypatch.setattr(sys, "argv", ["gpu", *map(str, words)])
        with mock.patch.object(benchmark, "writes", lambda: True):
            status = benchmark.main()
        return status, {line["what"]: line for line in json.loads(written.read_text())["figures"]}, capsys.readouterr()

    return command


def test_everything_agrees(run):
    status, lines, printed = run()
    assert status == 0, printed
    assert not any("problem" in line for line in lines.values())
    assert printed.out.startswith("copy within the device ")
    assert {"of_copy", "of_pcie"} <= set(lines["minhash 84 L=32"])


def test_a_wrong_and_a_failing_kernel_hide_no_other(run, monkeypatch):
    right = minhash.gpu

    def wrong(*arguments):
        signature = right(*arguments)
        if len(signature):
            signature[0, 0] = 7
        return signature

    def fails(*arguments):
        raise RuntimeError("an illegal memory access was encountered\nand more")

    monkeypatch.setattr(minhash, "gpu", wrong)
    monkeypatch.setattr(shingles, "gpu", fails)
    status, lines, printed = run()
    assert status == 1
    problems = {name: line["problem"] for name, line in lines.items() if "problem" in line}
    failed = "RuntimeError: an illegal memory access was encountered"
    # Tokens of integers are shingles of one integer.
    assert {problems.pop(name) for name in ("shingles", "agreement: shingles", "agreement: ids")} == {failed}
    assert problems.pop("agreement: minhash").startswith("differs from cpu on input")
    assert problems and set(problems.values()) == {"differs from cpu"}
    assert all(name.startswith("minhash") for name in problems)
    assert f"lines have a problem: {', '.join(name for name in lines if 'problem' in lines[name])}" in printed.err
    assert lines["supershingles 6 of 14"]["agrees"] is True


def test_a_lost_device_is_said_and_the_rest_is_not_run(run, monkeypatch):
    monkeypatch.setattr(simhash, "gpu", mock.Mock(side_effect=RuntimeError("illegal")))
    monkeypatch.setattr(benchmark, "why_lost", lambda: "CUDARuntimeError: illegal")
    status, lines, _ = run()
    assert status == 1
    names = list(lines)
    after = names[names.index("agreement: simhash") + 1 :]
    assert after and all(
        "not run: the device takes no more calls since agreement" in lines[n]["problem"] for n in after
    )
    assert lines["agreement: resemblance"]["agrees"] is True
