"""The self-test tests every kernel, finds one that is wrong, and says what it found.

`kernels/test_agreement.py` compares kernels with their definitions on the same generators of inputs. So one test here
runs all kernels, and the others a few.
"""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from neardup_gpu import cli
from neardup_gpu.engine.host import HostRuntime
from neardup_gpu.errors import BackendUnavailableError
from neardup_gpu.installation import selftest
from neardup_gpu.installation.kernel_inputs import INPUTS, Draw, kernel_modules
from neardup_gpu.installation.selftest import LARGE, WHOLE, same
from neardup_gpu.kernels import minhash, sets, tokens

KERNELS = kernel_modules()
FEW = ["minhash", "overlap", "sequences", "sets", "tokens"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(selftest, "LARGE", 1 << 12)
    monkeypatch.setattr(selftest, "SMALL", (0, 1, 30, 300))
    monkeypatch.delenv("NEARDUP_BACKEND", raising=False)


@pytest.fixture
def few(monkeypatch):
    """Reduce the self-test to a few kernels, one of which calls others."""

    def some(backend="reference"):
        return {name: module for name, module in kernel_modules(backend).items() if name in FEW}

    monkeypatch.setattr(selftest, "kernel_modules", some)


@pytest.fixture
def run(capsys):
    def command(*arguments):
        status = cli.main(["selftest", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return command


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("size", [0, 1, 300, 10_000])
def test_inputs_are_what_kernels_take(name, size):
    arguments, again = (INPUTS[name](Draw(np.random.default_rng([1, size])), size) for _ in range(2))
    assert same(arguments, again)
    assert KERNELS[name].cpu(*arguments) is not None
    for values, offsets in zip(arguments, arguments[1:], strict=False):
        if isinstance(offsets, np.ndarray) and name in ("tokens", "minhash", "shingles"):
            assert 0 <= offsets[0] <= offsets[-1] <= len(values)
            break


def test_inputs_differ_by_seed_and_hold_what_they_should():
    for name, generator in INPUTS.items():
        one, other = (generator(Draw(np.random.default_rng(seed)), 300) for seed in (1, 2))
        assert not same(one, other), name
    text, offsets, *_ = INPUTS["tokens"](Draw(np.random.default_rng(1)), 100_000)
    assert b"\xed\xa0\x80" in text.tobytes() and "漢字".encode() in text.tobytes()
    assert (np.diff(offsets) == 0).any() and np.diff(offsets).max() >= 9_000
    assert LARGE * 8 == 64 << 20


def test_all_agree(run):
    status, out, err = run("--engine", "cpu", "--seed", 5)
    assert status == 0 and err in ("", "compiling kernels for this machine, once\n")
    lines = out.splitlines()
    assert lines[0].split() == ["kernel", "agrees", "input", "ms", "GB/s"]
    rows = [line.split() for line in lines[1:-2]]
    assert [row[0] for row in rows] == [*KERNELS, WHOLE]
    assert {row[1] for row in rows} == {"yes"}
    assert re.fullmatch(
        rf"All {len(KERNELS)} kernels of backend cpu and a whole run gave the reference's bits on \d+ random "
        r"inputs \(seed 5\) on this machine's processors\.",
        lines[-1],
    )


def test_as_json(run, few):
    status, out, _ = run("--engine", "cpu", "--json")
    found = json.loads(out)
    assert (status, found["agrees"], found["backend"], found["device"]) == (0, True, "cpu", None)
    assert isinstance(found["seed"], int)
    for row in found["kernels"]:
        assert row["agrees"] and row["milliseconds"] > 0 and row["gb_per_s"] >= 0 and row["input_bytes"] > 0


def test_the_seed_is_another_each_time(run, few):
    seeds = {json.loads(run("--engine", "cpu", "--json")[1])["seed"] for _ in range(2)}
    assert len(seeds) == 2


def wrong_bit(values, offsets, a, b, right=minhash.cpu):
    signature = right(values, offsets, a, b)
    if len(signature):
        signature[-1, -1] ^= 1
    return signature


def wrong_type(values, offsets, right=sets.cpu):
    """Without values only: a whole run by offsets of another type would compile the kernels that take them anew."""
    values, offsets = right(values, offsets)
    return values, offsets if len(values) else offsets.astype(np.int32)


def fails(*arguments):
    raise RuntimeError("an illegal memory access was encountered\nand more")


WRONG = {
    "minhash": (minhash, "cpu", wrong_bit, "NO", "differs from the reference on input", "gave other answers"),
    "sets": (sets, "cpu", wrong_type, "NO", "differs from the reference", "gave other"),
    "tokens": (tokens, "cpu", fails, "failed", "RuntimeError: an illegal memory access was encountered", "failed on"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_found(run, few, monkeypatch, name):
    module, function, replacement, word, says, concludes = WRONG[name]
    monkeypatch.setattr(module, function, replacement)
    status, out, _ = run("--engine", "cpu", "--seed", 3)
    assert status == 1
    rows = {line.split()[0]: line for line in out.splitlines()[1:-2]}
    assert rows[name].split()[1] == word
    assert says in rows[name]
    assert list(rows) == [*FEW, WHOLE]
    depends = {WHOLE, "overlap"}  # which call others on their way
    assert {row.split()[1] for other, row in rows.items() if other not in depends | {name}} == {"yes"}
    verdict = out.splitlines()[-1]
    assert name in verdict.split(" of backend")[0]
    assert "(seed 3)" in verdict and "Do not trust" in verdict and concludes in verdict
    found = json.loads(run("--engine", "cpu", "--seed", 3, "--json")[1])
    assert not found["agrees"]
    verdicts = {row["kernel"]: row["verdict"] for row in found["kernels"]}
    assert verdicts[name] == {"NO": "differs", "failed": "failed"}[word]
    assert verdicts["sequences"] == "agrees"


def test_several_wrong_kernels_are_all_found(run, few, monkeypatch):
    monkeypatch.setattr(minhash, "cpu", wrong_bit)
    monkeypatch.setattr(tokens, "cpu", fails)
    found = json.loads(run("--engine", "cpu", "--seed", 3, "--json")[1])
    assert [row["kernel"] for row in found["kernels"]] == [*FEW, WHOLE]
    verdicts = {row["kernel"]: row["verdict"] for row in found["kernels"]}
    assert (verdicts["minhash"], verdicts["tokens"]) == ("differs", "failed")
    assert sum(verdict == "agrees" for verdict in verdicts.values()) == len(FEW) - 2


def test_each_row_is_told_when_it_is_known(few):
    told = []
    begins, known = (lambda name: told.append(("begins", name))), (lambda row: told.append(row["kernel"]))
    selftest.run("cpu", seed=1, progress=begins, report=known)
    assert told == [event for name in [*FEW, WHOLE] for event in (("begins", name), name)]


def test_after_an_illegal_access_the_rest_is_not_run(run, few, monkeypatch):
    """A GPU whose context is lost refuses every call of the process: nothing is known of the kernels after it."""
    lost = []

    def poisons(*arguments):
        lost.append(True)
        fails()

    def refused(job):
        if lost:
            raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    monkeypatch.setattr(minhash, "cpu", poisons)
    monkeypatch.setattr(HostRuntime, "wait", refused)
    status, out, _ = run("--engine", "cpu", "--seed", 3)
    assert status == 1
    names = [*FEW, WHOLE]
    after = names[names.index("minhash") + 1 :]
    rows = out.splitlines()[1:-2]
    for name, row in zip(names, rows, strict=True):
        word = "not run" if name in after else "failed" if name == "minhash" else "yes"
        assert row.startswith(f"{name:22} {word} ")
        assert ("no more calls since minhash" in row) == (name in after)
    verdict = out.splitlines()[-1]
    assert verdict.startswith("minhash of backend cpu failed on")
    assert f"{', '.join(after)}: not run, so nothing is known of them." in verdict


CRASH = """
import os, signal, sys
from neardup_gpu import cli
from neardup_gpu.installation import selftest
from neardup_gpu.kernels import minhash
selftest.LARGE, selftest.SMALL = 1 << 12, (0, 30)
minhash.cpu = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
cli.main(["selftest", "--engine", "cpu"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_was_found_before_a_crash_is_shown():
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, timeout=300)
    assert done.returncode == -9
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["kernel", *list(KERNELS)[: list(KERNELS).index("minhash")]]
    assert len(names) > 3


def test_a_wrong_whole_is_found(run, few, monkeypatch):
    right = selftest.dedup

    def other(*arguments, backend, **options):
        options |= {"threshold": 0.3} if backend == "cpu" else {}
        options.pop("recipe" if backend == "cpu" else "nothing", None)
        return right(*arguments, backend=backend, **options)

    monkeypatch.setattr(selftest, "dedup", other)
    status, out, _ = run("--engine", "cpu")
    assert status == 1
    assert f"{WHOLE} of backend cpu" in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--engine", "abacus"], "'abacus' is not one of"),
        (["--engine", "reference"], "what others are compared with"),
        (["--engine", "cpu", "--device", 0], "--device 0 is for backend 'gpu'"),
        (["--engine", "cpu", "--seed", -1], "seed -1 is negative"),
    ],
)
def test_bad_settings_are_one_line(run, arguments, says):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert says in err and err.count("\n") == 1


def test_an_unusable_backend(run, monkeypatch):
    def refused(*arguments):
        raise BackendUnavailableError("backend 'gpu': there is no NVIDIA driver")

    monkeypatch.setattr("neardup_gpu.engine.choice.resolve", refused)
    status, out, err = run("--engine", "gpu")
    assert (status, out, err) == (2, "", "neardup: --engine 'gpu': there is no NVIDIA driver\n")


@pytest.mark.gpu
def test_on_a_device(run, monkeypatch):
    monkeypatch.setattr(selftest, "LARGE", 1 << 20)
    status, out, err = run("--engine", "gpu")
    assert (status, err) == (0, "")
    assert "device 0" in out.splitlines()[-1]


@pytest.mark.launches
def test_launched(run, monkeypatch):
    monkeypatch.setattr(selftest, "SMALL", (0, 20, 0))
    status, out, _ = run("--engine", "gpu", "--seed", 1)
    assert status == 0
    assert "of backend gpu and a whole run gave the reference's bits" in out.splitlines()[-1]
