"""Where a job runs: a backend by name or not at all, its memory in shares, pieces that are halved where it runs out."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from grids import pairs_of
from progress import messages

from neardup_gpu import Engine, Recipe, dedup
from neardup_gpu.cli import main
from neardup_gpu.engine import choice, memory as engine_memory
from neardup_gpu.engine.choice import resolve
from neardup_gpu.engine.gpu import GpuRuntime
from neardup_gpu.engine.memory import batch_bytes, parse_size
from neardup_gpu.engine.pieces import Numbers, Span, runs_within, spans
from neardup_gpu.engine.settings import for_text
from neardup_gpu.errors import BackendUnavailableError, NeardupError, ParameterError, ResourceError
from neardup_gpu.kernels import _launch as launch, minhash as minhash_kernel
from neardup_gpu.sketches import sketch
from neardup_gpu.stages import tokenize

TEXTS = ["one two three four five six", "one two three four five six", "something else"]
TEXTS_TABLE = pa.table({"text": TEXTS})


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """What was found out before is forgotten, and after."""
    monkeypatch.delenv("NEARDUP_BACKEND", raising=False)

    def forget():
        for function in (choice._detected, choice._driver, choice._problem):
            function.cache_clear()

    forget()
    yield
    monkeypatch.undo()
    forget()


class CudaError(RuntimeError):
    """As CuPy's `CUDARuntimeError`."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def machine(
    monkeypatch,
    *,
    installed=("cupy", "numba_cuda"),
    driver=(13000, 1),
    devices=1,
    runtime=13020,
    capability="90",
    compiler=True,
    nvrtc=True,
    new_numpy=False,
    version="14.2.0",
    comes_compiled=False,
):
    """Make this a machine of that kind. `devices` may be the error that CUDA raises."""

    def count_of_devices():
        if isinstance(devices, Exception):
            raise devices
        return devices

    runtime_module = SimpleNamespace(
        getDeviceCount=count_of_devices,
        runtimeGetVersion=lambda: runtime,
        CUDARuntimeError=CudaError,
        free=lambda pointer: None,
    )

    def device(number=None):
        return SimpleNamespace(id=number or 0, compute_capability=capability)

    cupy, numba_cuda = ModuleType("cupy"), ModuleType("cuda")
    cupy.__version__ = version
    version_of_compiler = (lambda: (13, 0)) if nvrtc else (lambda: 1 / 0)
    nvrtc_module = SimpleNamespace(getVersion=version_of_compiler)
    cupy.cuda = SimpleNamespace(runtime=runtime_module, Device=device, nvrtc=nvrtc_module)
    numba_cuda.is_available = lambda: compiler
    if not new_numpy:  # for which numba-cuda's own import fails
        numba_cuda.cudaimpl = ModuleType("cudaimpl")
    monkeypatch.setattr(choice, "find_spec", lambda name: name if name in installed else None)
    monkeypatch.setattr(choice, "_simulated", lambda: False)
    monkeypatch.setattr(choice, "_comes_compiled", lambda: comes_compiled)
    monkeypatch.setitem(sys.modules, "cupy", cupy if "cupy" in installed else None)
    import numba

    monkeypatch.setattr(numba, "cuda", numba_cuda, raising=False)
    monkeypatch.setitem(sys.modules, "numba.cuda", numba_cuda)
    shown = driver if driver is not None else (0, 0)

    def drive():
        return shown

    drive.cache_clear = lambda: None
    monkeypatch.setattr(choice, "_driver", drive)


PROBLEMS = {
    "nothing": (
        {"installed": (), "driver": None},
        r"CuPy and numba-cuda are not installed; nor is there an NVIDIA driver; "
        r"install 'neardup-gpu\[cuda13-clone\]', or \[cuda12-clone\]",
    ),
    "no CuPy, new driver": ({"installed": ("numba_cuda",)}, r"CuPy is not installed; install .*cuda13-clone"),
    "no CuPy, older driver": (
        {"installed": ("numba_cuda",), "driver": (12020, 1)},
        r"CuPy is not installed; install 'neardup-gpu\[cuda12-clone\]'",
    ),
    "no numba-cuda": ({"installed": ("cupy",)}, r"numba-cuda is not installed; install 'neardup-gpu\[cuda13-clone\]'"),
    "a CuPy that sorts wrongly": ({"version": "14.0.1"}, r"CuPy 14\.0\.1 sorts wrongly .*; install 'neardup-gpu"),
    "no driver": ({"driver": None}, r"no NVIDIA driver .*install one"),
    "no device": (
        {"driver": (13000, 0), "devices": CudaError(100, "cudaErrorNoDevice: no CUDA-capable device is detected")},
        r"a driver, but no GPU; see nvidia-smi",
    ),
    "driver too old": (
        {"driver": (12040, 1), "devices": CudaError(35, "cudaErrorInsufficientDriver: ...")},
        r"driver is too old: it supports CUDA 12\.4, this CuPy is for CUDA 13; update .* 'neardup-gpu\[cuda12-clone\]'",
    ),
    "driver much too old": (
        {"driver": (11080, 1), "devices": CudaError(35, "cudaErrorInsufficientDriver: ...")},
        r"driver is too old: it supports CUDA 11\.8, .*update the driver; or use backend='cpu'$",
    ),
    "something else": (
        {"devices": CudaError(999, "cudaErrorUnknown: unknown error")},
        r"does not start \(cudaErrorUnknown: unknown error\)",
    ),
    "an old GPU": ({"capability": "75"}, r"compute capability 7\.5; 8\.0 .* or later"),
    "a NumPy that is too new": (
        {"new_numpy": True},
        r"cannot be imported \(.*cudaimpl.*; install .*cuda13-clone\]' anew",
    ),
    "no compiler of CuPy": ({"nvrtc": False}, r"CuPy lacks its compiler .*; install 'neardup-gpu\[cuda13-clone\]'"),
    "no compiler": ({"compiler": False}, r"lacks its compiler libraries; install 'neardup-gpu\[cuda13-clone\]'"),
}


class TestByName:
    @pytest.mark.parametrize("case", PROBLEMS)
    @pytest.mark.parametrize("way", ["argument", "variable"])
    def test_refused_with_the_reason(self, monkeypatch, case, way):
        kind, says = PROBLEMS[case]
        machine(monkeypatch, **kind)
        if way == "variable":
            monkeypatch.setenv("NEARDUP_BACKEND", "gpu")
        with pytest.raises(BackendUnavailableError, match=says) as raised:
            resolve("gpu" if way == "argument" else None)
        message = str(raised.value)
        assert message.startswith("backend 'gpu': ")
        assert message.endswith("; or use backend='cpu'")
        assert "\n" not in message

    @pytest.mark.parametrize("capability", ["80", "86", "90", "100", "120"])
    def test_taken_if_usable(self, monkeypatch, capability):
        machine(monkeypatch, capability=capability)
        assert resolve("gpu") == "gpu"

    def test_what_came_compiled_needs_no_compiler(self, monkeypatch):
        machine(monkeypatch, installed=("cupy",), compiler=False, new_numpy=True, comes_compiled=True)
        assert resolve("gpu") == "gpu"

    @pytest.mark.parametrize("number", [2, 17, -1])
    def test_no_such_device(self, monkeypatch, number):
        machine(monkeypatch, devices=2)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
        assert resolve("gpu", 1) == "gpu"
        says = "counted from 0" if number < 0 else r"there are 2 GPUs.*CUDA_VISIBLE_DEVICES=3,5"
        with pytest.raises(BackendUnavailableError, match=rf"device {number}.*{says}"):
            resolve("gpu", number)

    def test_all_hidden(self, monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        machine(monkeypatch, devices=CudaError(100, "cudaErrorNoDevice"))
        with pytest.raises(BackendUnavailableError, match="no GPU that CUDA_VISIBLE_DEVICES= shows"):
            resolve("gpu")

    def test_no_such_backend(self, monkeypatch):
        with pytest.raises(ParameterError, match=r"'abacus' is not one of reference, cpu, gpu"):
            resolve("abacus")
        monkeypatch.setenv("NEARDUP_BACKEND", "abacus")
        with pytest.raises(ParameterError, match="'abacus'"):
            resolve(None)

    def test_a_cpu_never_asks_for_a_gpu(self, monkeypatch):
        for name in ("_problem", "_detected", "_driver"):
            monkeypatch.setattr(choice, name, lambda *arguments: 1 / 0)
            getattr(choice, name).cache_clear = lambda: None
        assert resolve("cpu") == "cpu"
        assert resolve("reference") == "reference"

    @pytest.mark.parametrize("options", [{"device": 0}, {"gpu_memory": "1GB"}])
    @pytest.mark.parametrize("name", ["cpu", "reference"])
    def test_options_of_a_gpu_are_refused_elsewhere(self, monkeypatch, options, name):
        with pytest.raises(ParameterError, match=rf"(device 0|gpu_memory 1GB) is for backend 'gpu', not '{name}'"):
            dedup(TEXTS_TABLE, engine=Engine(backend=name, **options))
        monkeypatch.setenv("NEARDUP_BACKEND", name)
        with pytest.raises(ParameterError, match="is for backend 'gpu'"):
            dedup(TEXTS_TABLE, engine=Engine(**options))

    @pytest.mark.parametrize("options", [{"device": 0}, {"gpu_memory": "1GB"}])
    def test_options_of_a_gpu_ask_for_one(self, monkeypatch, options):
        machine(monkeypatch)
        assert resolve(None, **options) == "gpu"
        machine(monkeypatch, driver=None)
        choice._problem.cache_clear()
        with pytest.raises(BackendUnavailableError, match="driver"):
            resolve(None, **options)


class TestFoundByItself:
    def test_precedence(self, monkeypatch):
        machine(monkeypatch)
        assert resolve(None) == "gpu"
        monkeypatch.setenv("NEARDUP_BACKEND", "reference")
        assert resolve(None) == "reference"
        assert resolve("cpu") == "cpu"
        monkeypatch.setenv("NEARDUP_BACKEND", "")
        assert resolve(None) == "gpu"

    @pytest.mark.parametrize("case", PROBLEMS)
    def test_falls_back_with_one_line_where_there_is_a_sign_of_one(self, monkeypatch, caplog, case):
        kind, _ = PROBLEMS[case]
        machine(monkeypatch, **kind)
        with caplog.at_level(logging.INFO, "neardup_gpu"):
            assert [resolve(None), resolve(None)] == ["cpu", "cpu"]
        if case == "nothing":
            assert not caplog.records
        else:
            (record,) = caplog.records
            assert (record.name, record.levelname) == ("neardup_gpu", "WARNING")
            assert record.getMessage().startswith("running on the CPU: ")

    @pytest.mark.parametrize("compiled", [True, False])
    def test_what_is_missing_is_named_as_it_is_installed(self, monkeypatch, compiled):
        machine(monkeypatch, installed=(), comes_compiled=compiled)
        with pytest.raises(BackendUnavailableError) as raised:
            resolve("gpu")
        assert f"install 'neardup-gpu[cuda13{'' if compiled else '-clone'}]'" in str(raised.value)

    def test_little_text_is_left_to_the_cpu(self, monkeypatch, caplog, tmp_path):
        machine(monkeypatch)
        with caplog.at_level(logging.INFO, "neardup_gpu"):
            result = dedup(TEXTS_TABLE)
            sketch(TEXTS_TABLE, tmp_path / "sketches.parquet")
        assert result.report["backend"] == "cpu"
        lines = [each.getMessage() for each in caplog.records if "running on the CPU" in each.getMessage()]
        assert lines[0].startswith("running on the CPU: a GPU is used by itself from 1.0 GB of text on, and there are ")

    @pytest.mark.parametrize("found", [None, 10**9])
    def test_much_text_and_text_of_unknown_size_is_not(self, monkeypatch, found):
        machine(monkeypatch)
        assert for_text(Engine(), lambda: found).resolve() == "gpu"
        assert for_text(Engine(), lambda: 10**9 - 1).resolve() == "cpu"

    @pytest.mark.parametrize("options", [{"backend": "gpu"}, {"device": 0}, {"gpu_memory": "1GB"}, {}])
    def test_what_is_asked_for_is_heeded_however_little_there_is(self, monkeypatch, options):
        machine(monkeypatch)
        if not options:
            monkeypatch.setenv("NEARDUP_BACKEND", "gpu")
        assert for_text(Engine(**options), lambda: 1 / 0).resolve() == "gpu"

    def test_nobody_counts_text_where_there_is_no_gpu(self, monkeypatch):
        machine(monkeypatch, driver=(0, 0), installed=())
        assert for_text(Engine(), lambda: 1 / 0).resolve() == "cpu"

    def test_a_driver_without_devices_is_no_sign(self, monkeypatch, caplog):
        machine(monkeypatch, installed=(), driver=(13000, 0))
        assert resolve(None) == "cpu"
        assert not caplog.records

    def test_not_in_the_simulator(self, monkeypatch, caplog):
        machine(monkeypatch)
        monkeypatch.setattr(choice, "_simulated", lambda: True)
        assert resolve(None) == "cpu"
        assert resolve("gpu") == resolve("gpu", 0) == "gpu"
        assert not caplog.records
        with pytest.raises(BackendUnavailableError, match="device 1: the simulator has one device, 0"):
            resolve("gpu", 1)

    def test_nothing_is_imported_for_it(self):
        """Where neither is installed, or no GPU is asked for."""
        code = """
import sys
from neardup_gpu import Recipe
from neardup_gpu.sketches import sketch
from neardup_gpu.stages import tokenize
from neardup_gpu.engine import choice
choice.find_spec = lambda name: None
tokenize(["a"], Recipe(), backend=sys.argv[1] if len(sys.argv) > 1 else None)
print({"cupy", "numba.cuda", "numba_cuda"} & set(sys.modules))
"""
        for arguments in ([], ["cpu"]):
            done = python(code, *arguments)
            assert (done.stdout, done.stderr, done.returncode) == ("set()\n", "", 0)


def python(code, *arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("NEARDUP_BACKEND", "NUMBA_ENABLE_CUDASIM")}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**clean, **environment},
    )


class TestHere:
    """As this machine is: see also the tests marked gpu."""

    def why(self):
        machine_has = choice._problem(None)
        if machine_has is None:
            pytest.skip("this machine has a GPU")
        return machine_has

    @pytest.mark.parametrize("command", ["dedup", "sketch", "pairs", "selftest"])
    @pytest.mark.parametrize("way", ["option", "variable"])
    def test_the_command_says_why_in_one_line(self, tmp_path, command, way, monkeypatch, capsys):
        reason = self.why()
        source, sketches = str(tmp_path / "in.jsonl"), str(tmp_path / "sketches.parquet")
        Path(source).write_text('{"text": "one two"}\n')
        monkeypatch.delenv("NEARDUP_BACKEND", raising=False)
        if command == "pairs":
            assert main(["sketch", source, "-o", sketches, "-q"]) == 0
        where = {"dedup": [source, "--dry-run"], "sketch": [source, "-o", sketches], "pairs": [sketches]}
        arguments = [command, *where.get(command, [])]
        if way == "option":
            arguments += ["--engine", "gpu"]
        else:
            monkeypatch.setenv("NEARDUP_BACKEND", "gpu")
        capsys.readouterr()
        assert main(arguments) == 2
        assert capsys.readouterr() == ("", f"neardup: --engine 'gpu': {reason}; or use --engine cpu\n")

    def test_found_or_not_it_runs(self, tmp_path):
        reason = self.why()
        source = tmp_path / "in.jsonl"
        source.write_text('{"text": "one two three four five"}\n' * 2)  # one is removed: else a line says why not
        code = "import sys; from neardup_gpu.cli import main; sys.exit(main(sys.argv[1:]))"
        done = python(code, "dedup", source, "--dry-run")
        assert done.returncode == 0, done.stderr
        notes = [line for line in messages(done.stderr).splitlines() if not re.match("short texts|.*compiling", line)]
        assert notes in ([], [f"running on the CPU: {reason}"])
        done = python(code, "dedup", source, "--dry-run", "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestArrays:
    def test_a_cpu_takes_arrays_of_a_device(self):
        class Array:
            """As CuPy's."""

            def __init__(self, host):
                self.host, self.__cuda_array_interface__ = host, {}

            def get(self):
                return self.host

        values, offsets = np.arange(6, dtype=np.uint64), np.array([0, 6])
        a, b = np.array([3, 5], np.uint32), np.array([1, 2], np.uint32)
        run = choice.kernel(minhash_kernel, "cpu")
        assert run(Array(values), Array(offsets), a, b).tolist() == run(values, offsets, a, b).tolist()

    def test_stages_by_variable(self, monkeypatch):
        recipe = Recipe(method="minhash")
        monkeypatch.setenv("NEARDUP_BACKEND", "reference")
        found = recipe.method.sketch(tokenize(TEXTS, recipe), seed=recipe.seed)
        assert (
            found.tolist()
            == recipe.method.sketch(tokenize(TEXTS, recipe, backend="cpu"), seed=recipe.seed, backend="cpu").tolist()
        )


SIZES = {
    "1": 1,
    "1000": 1000,
    1 << 30: 1 << 30,
    "8GB": 8 * 10**9,
    "8 GB": 8 * 10**9,
    "8gb": 8 * 10**9,
    "8G": 8 * 10**9,
    "8GiB": 8 << 30,
    "8Gi": 8 << 30,
    "1.5 GiB": 3 << 29,
    "20kB": 20_000,
    "3MiB": 3 << 20,
    "1TB": 10**12,
    "12 bytes": 12,
    "12B": 12,
}


class TestMemory:
    @pytest.mark.parametrize("text", SIZES)
    def test_sizes(self, text):
        assert parse_size(text) == SIZES[text]

    @pytest.mark.parametrize("text", ["", "GB", "many", "-1", "1e9", "8XB", "0", "0.1", True, "1 2 GB", "8GBs"])
    def test_not_sizes(self, text):
        for refused in (lambda: parse_size(text), lambda: Engine(gpu_memory=text)):
            with pytest.raises(NeardupError, match=r"memory.* write 20GB, 20GiB"):
                refused()

    @pytest.mark.parametrize("memory", [10**5, 8 * 10**9, 64 * 10**9])
    @pytest.mark.parametrize("shingling", ["set", "bag", "spots"])
    def test_what_a_job_holds_fits_together(self, memory, shingling):
        runtime = GpuRuntime(memory, None, {})
        shares = runtime.shares
        slots, per_byte = 3 * 2, engine_memory.BESIDE_BYTES + engine_memory.TEXT_BYTES[shingling]
        batch = runtime.batch_bytes(shingling, 0)
        assert batch == batch_bytes(memory, shingling, 0) <= engine_memory.BATCH_BYTES
        streaming = batch * (slots + per_byte) + shares.keys + shares.spool
        assert streaming <= memory
        assert shares.keys * 2 + shares.spool <= memory  # while keys are joined
        verifying = shares.keys + shares.spool + 2 * shares.sets + 8 * shares.sorted
        assert verifying <= memory

    def test_keys_stay_until_their_share_is_full(self):
        runtime = GpuRuntime(1000, None, {})
        assert [runtime.keeps(each) for each in (200, 51, 50, 1, 0)] == [True, False, True, False, True]

    def test_many_small_documents_need_smaller_batches(self):
        assert batch_bytes(10**9, "set", 10_000) < batch_bytes(10**9, "set", 100) / 4

    def test_the_host_reads_small_batches(self):
        with Engine(backend="cpu").start() as runtime:
            assert (runtime.backend, runtime.batch_bytes("set", 100), runtime.describe()) == ("cpu", 4 << 20, None)
            assert runtime.keeps(10**15)

    def test_on_the_host_memory_errors_are_not_ours(self):
        """They are said in one line by whoever starts a runtime; no piece is halved."""
        calls = []

        def run(span):
            calls.append(span)
            raise MemoryError

        with pytest.raises(ResourceError, match="memory does not suffice"), Engine(backend="cpu").start() as runtime:
            list(runtime.map(run, [Span.of_documents(np.array([0, 3, 6]), pa.array(["a", "b"]))]))
        assert len(calls) == 1


def halving(sizes, limit):
    """Runs of rows that a runtime with room for `limit` bytes of text at once computes; and the runtime."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    runtime, ids = GpuRuntime(1000, None, {}), pa.array([f"id {i}" for i in range(len(sizes))])

    def run(span):
        if offsets[span.last] - offsets[span.first] > limit:
            raise MemoryError
        return span.first, span.last

    # A second batch of the same rows.
    return [list(runtime.map(run, [Span.of_documents(offsets, ids)])) for _ in range(2)], runtime


@pytest.fixture
def no_device(monkeypatch):
    """A runtime of a GPU that has no memory to give back."""
    monkeypatch.setattr(GpuRuntime, "release", lambda self: None)


@pytest.mark.usefixtures("no_device")
class TestHalving:
    @pytest.mark.parametrize(("seed", "limit"), pairs_of(range(5), [2000, 600, 300, 100]))
    def test_of_documents(self, limit, seed):
        """In order, each once, and few more times than needed."""
        sizes = np.random.default_rng(seed).integers(0, 100, 40)
        done, runtime = halving(sizes, limit)
        for parts in done:
            assert [row for first, last in parts for row in range(first, last)] == list(
                range(40)
            )  # in order, each once
        halvings = runtime._halvings
        assert (halvings == 0) == (sizes.sum() <= limit)
        assert len(done[1]) <= 2 * 40 * (100 + engine_memory.ROW_BYTES) // limit + 2

    def test_a_document_that_does_not_fit_is_named(self):
        with pytest.raises(
            NeardupError, match=r"document 'id 2': 5\.0 kB of text.*1\.0 kB of GPU memory.*memory=\.\.\."
        ):
            halving([10, 20, 5000, 10], 100)

    @pytest.mark.parametrize("limit", [1, 3, 10, 1000])
    def test_of_numbers(self, limit):
        def run(piece):
            if len(piece.numbers) > limit:
                raise MemoryError
            return list(piece.numbers)

        runtime = GpuRuntime(1000, None, {})
        parts = list(runtime.map(run, [Numbers(range(37)), Numbers(np.arange(37, 50))]))
        assert [number for part in parts for number in part] == list(range(50))
        assert all(0 < len(part) <= limit for part in parts)

    def test_pieces_of_one_kind_do_not_shorten_another_kind(self):
        def run(piece):
            if isinstance(piece, Numbers) and len(piece.numbers) > 1:
                raise MemoryError
            return piece

        runtime = GpuRuntime(1000, None, {})
        assert len(list(runtime.map(run, [Numbers(range(8))]))) == 8
        whole = Span.of_sizes(np.full(8, 1000))
        assert list(runtime.map(run, [whole])) == [whole]

    def test_what_cannot_be_divided_is_tried_again_once(self):
        runtime, calls = GpuRuntime(1000, None, {}), []

        def run(needed):
            calls.append(needed)
            if len(calls) < needed:
                raise MemoryError
            return "done"

        assert runtime.run(run, 2) == "done"
        calls.clear()
        with pytest.raises(
            ResourceError, match=r"^1\.0 kB of GPU memory do not suffice; use backend='cpu', or allow more"
        ):
            runtime.run(run, 3)

    def test_none_is_an_answer(self):
        assert GpuRuntime(1000, None, {}).run(lambda: None) is None

    def test_other_errors_are_not_taken_for_it(self):
        with pytest.raises(ZeroDivisionError):
            list(GpuRuntime(1000, None, {}).map(lambda piece: 1 / 0, [Numbers(range(3))]))


class TestPieces:
    @pytest.mark.parametrize("seed", range(5))
    def test_halves_are_the_whole(self, seed):
        sizes = np.random.default_rng(seed).integers(0, 9, 30) ** 3
        whole = Span.of_sizes(sizes)
        waiting, rows = [whole], []
        while waiting:
            piece = waiting.pop()
            assert piece.num_bytes == sizes[piece.rows].sum()
            halves = piece.split()
            assert (len(halves) == 0) == (piece.last - piece.first <= 1)
            waiting += reversed(halves)
            rows += [] if halves else [piece.first]
        assert rows == list(range(30))

    @pytest.mark.parametrize("most", [0, 1, 50, 10**6])
    def test_spans_cover_all_rows(self, most):
        weights = np.random.default_rng(most).integers(0, 30, 100)
        runs = spans(weights, most)
        assert [row for first, last in runs for row in range(first, last)] == list(range(100))
        assert all(weights[first:last].sum() < most + 30 for first, last in runs)
        assert spans(weights[:0], most) == []


def test_out_of_memory_is_told_from_other_errors():
    assert launch.out_of_memory(MemoryError())
    assert launch.out_of_memory(CudaError(2, "cudaErrorMemoryAllocation"))
    numba_error = RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")
    numba_error.code = 2
    assert launch.out_of_memory(numba_error)
    assert not launch.out_of_memory(CudaError(700, "cudaErrorIllegalAddress"))
    assert not launch.out_of_memory(ValueError())


def test_runs_hold_at_most_what_they_may():
    """A run ends where the next row would not fit; a row that is too large is a run."""
    sizes = [3, 2, 0, 5, 9, 1, 1]
    assert list(runs_within(np.cumsum([0, *sizes]), 5)) == [(0, 3), (3, 4), (4, 5), (5, 7)]
    assert list(runs_within(np.zeros(1, np.int64), 5)) == []
