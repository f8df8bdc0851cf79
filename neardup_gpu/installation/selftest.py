"""`neardup selftest`: every kernel against its definition on this machine, with fresh random inputs; then its speed.

Kernels are found by themselves, and their inputs are drawn by `kernel_inputs`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..documents.writing_options import Writing
from ..engine.choice import to_host
from ..engine.contract import Backend, Runtime
from ..engine.settings import Engine
from ..errors import ParameterError
from ..jobs.dedup import dedup
from ..kernels import _compiled
from ..kernels._launch import simulated
from ..methods.minhash import MinHash
from ..recipe import Recipe
from ..report import beside, count, heading, in_one_line, shorten, size
from .kernel_inputs import INPUTS, PIECES, Draw, kernel_modules

if TYPE_CHECKING:
    from rich.text import Text

SMALL = (0, 1, 30, 300, 2000)
"""Sizes of the inputs on which a backend is compared with the reference, which is slow."""

LARGE = 1 << 23
"""Size of the input on which "gpu" is compared with "cpu", and either is timed: 64 MB, for most kernels."""

REPEATS = 3
"""Number of timings; the best one counts."""

WHOLE = "dedup"
"""Name of the last row: the whole job, on generated documents."""

AGREES, DIFFERS, FAILED, NOT_RUN = "agrees", "differs", "failed", "not run"
"""Verdicts: the same bits; other bits; an exception; nothing known, because a kernel before it broke the device."""


def documents(random: np.random.Generator, num_documents: int) -> pa.Table:
    """Texts of 5 to 200 words. Half of them are copies of an earlier text, with one word in fifty changed."""
    words = [bytes(w).decode() for w in random.integers(97, 123, (3000, 6), np.uint8)] + PIECES.split()
    texts: list[list[str]] = []
    for number in range(num_documents):
        if number % 2 and texts:
            text = list(texts[random.integers(0, len(texts))])
            for at in np.flatnonzero(random.random(len(text)) < 0.02).tolist():
                text[at] = words[random.integers(0, len(words))]
        else:
            text = [words[i] for i in random.integers(0, len(words), random.integers(5, 200))]
        texts.append(text)
    return pa.table({"text": [" ".join(text) for text in texts]})


# ------------------------------------------------------------------------------------------------------ comparison


def same(expected: Any, actual: Any) -> bool:
    """Whether two results agree to the last bit, in type and in shape."""
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if isinstance(expected, np.ndarray):
        actual = to_host(actual)
        return expected.dtype == actual.dtype and np.array_equal(expected, actual)
    return type(expected) is type(actual) and expected == actual


def _num_bytes(*values: Any) -> int:
    """Bytes of all arrays among some values."""
    return sum(_num_bytes(*v) if isinstance(v, tuple) else int(getattr(v, "nbytes", 0)) for v in values)


def _timed(run: Callable[[], Any], runtime: Runtime) -> tuple[float, Any]:
    """The shortest of several times in milliseconds, after a first call that compiles; and the result of the call."""
    times = []
    for _ in range(REPEATS + 1):
        result = None  # the next one needs the room
        runtime.wait()
        start = time.perf_counter()
        result = run()
        runtime.wait()
        times.append(1000 * (time.perf_counter() - start))
    return min(times[1:]), result


def _without(row: dict[str, Any], verdict: str, problem: str) -> dict[str, Any]:
    """The row of a kernel that does not agree, without times."""
    return {**row, "verdict": verdict, "agrees": False, "problem": problem}


def _with_times(row: dict[str, Any], input_bytes: int, moved: int, milliseconds: float) -> dict[str, Any]:
    """The row of a kernel, or of the whole job, that agrees; `moved` are the bytes for its speed."""
    speed = round(moved / milliseconds / 1e6, 2)
    return {**row, "input_bytes": input_bytes, "milliseconds": round(milliseconds, 3), "gb_per_s": speed}


def _kernel_row(name: str, module: ModuleType, seed: int, runtime: Runtime) -> dict[str, Any]:
    """The table's row for a kernel."""
    run, on_gpu = getattr(module, runtime.backend), runtime.backend == "gpu"
    row: dict[str, Any] = {"kernel": name, "verdict": AGREES, "agrees": True, "inputs": 0}
    for number, small in enumerate(SMALL[:-1] if simulated() and on_gpu else SMALL):
        arguments = INPUTS[name](Draw(np.random.default_rng([seed, number])), small)
        row["inputs"] += 1
        if not same(module.reference(*arguments), run(*arguments)):
            return _without(row, DIFFERS, f"differs from the reference on input {number}")
    if simulated() and on_gpu:
        return row
    draw = Draw(np.random.default_rng([seed, len(SMALL)]))
    arguments = INPUTS[name](draw, 8 * LARGE if name == "tokens" else LARGE)
    placed = [runtime.put(a) if isinstance(a, np.ndarray) and a.nbytes > 4096 else a for a in arguments]
    milliseconds, result = _timed(partial(run, *placed), runtime)
    row["inputs"] += on_gpu
    if on_gpu and not same(module.cpu(*arguments), result):
        return _without(row, DIFFERS, "differs from cpu on the large input")
    return _with_times(row, _num_bytes(*arguments), _num_bytes(*arguments, result), milliseconds)


def _whole_row(seed: int, runtime: Runtime, engine: Engine) -> dict[str, Any]:
    """The table's row for the whole job: a few documents by reference, then more by cpu."""
    on_gpu = runtime.backend == "gpu"
    on_simulator = simulated() and on_gpu
    row: dict[str, Any] = {"kernel": WHOLE, "verdict": AGREES, "agrees": True, "inputs": 1}
    recipe = Recipe(method=MinHash(filter="altavista"))

    def decisions(result: Any) -> tuple:
        return result.documents, result.pairs, result.report["counts"], result.report["limits"]

    few = documents(np.random.default_rng([seed, 0]), 8 if on_simulator else 60)
    expected = dedup(few, recipe=recipe, engine="reference", writing=Writing(check=5))
    if decisions(expected) != decisions(dedup(few, recipe=recipe, engine=engine, writing=Writing(check=5))):
        return _without(row, DIFFERS, "differs from the reference on a few documents")
    if on_simulator:
        return row
    many = documents(np.random.default_rng([seed, 1]), max(100, LARGE // 400))
    milliseconds, result = _timed(partial(dedup, many, recipe=recipe, engine=engine), runtime)
    row["inputs"] += on_gpu
    if on_gpu and decisions(dedup(many, recipe=recipe, engine="cpu")) != decisions(result):
        return _without(row, DIFFERS, "differs from cpu on many documents")
    text = result.report["counts"]["text_bytes"]
    return _with_times(row, text, text, milliseconds)


def run(
    backend: Backend | None = None,
    *,
    device: int | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Check and time every kernel of a backend, and the whole job.

    Kernels are tested even after one of them gave other bits or raised an exception; only after a kernel that left a
    GPU unusable are the rest not run.

    Parameters
    ----------
    backend : "cpu" or "gpu", default None
        Backend to test; "gpu" if there is one, unless given.
    device : int, default None
        Number of the GPU; CuPy's current one unless given.
    seed : int, default None
        Seed of the random inputs; drawn unless given.
    progress : callable, default None
        Called with a kernel's name before it is checked.
    report : callable, default None
        Called with each entry of `kernels` as soon as it is known.

    Returns
    -------
    dict
        backend, device, seed, agrees (whether all do); kernels: a list of dicts of kernel, verdict ("agrees",
        "differs", "failed" or "not run"), agrees, inputs (how many were compared), problem (where it does not agree),
        and, of one large input, input_bytes, milliseconds and gb_per_s (bytes of the arrays that go in and come out; of
        the whole job bytes of text). The large one is left out in the simulator. route: where the code of the GPU's
        kernels came from, in words; None if no kernel was launched on a device.

    Raises
    ------
    NeardupError
        If the backend is not usable, or is the reference itself.
    """
    seed = secrets.randbits(32) if seed is None else seed
    if seed < 0:
        raise ParameterError(f"seed {seed} is negative")
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"backend": backend, "device": None, "seed": seed, "agrees": False, "kernels": rows}
    found["route"] = None

    def known(row: dict[str, Any]) -> None:
        rows.append(row)
        if report is not None:
            report(row)

    try:
        with Engine(backend=backend, device=device).start() as runtime:
            if runtime.backend == "reference":
                raise ParameterError("backend 'reference' is what others are compared with; test cpu or gpu")
            found |= {"backend": runtime.backend, "device": runtime.describe()}
            for row in _rows(seed, runtime, Engine(backend=runtime.backend, device=device), progress):
                known(row)
            found["route"] = _route()
    except Exception:
        if all(row["agrees"] for row in rows):
            raise  # else what was found matters more than that the device could not be closed
    found["agrees"] = all(row["agrees"] for row in rows)
    return found


def _route() -> str | None:
    """Say where the code of the GPU's kernels came from; None if no kernel was launched on a device."""
    numbers = {"came compiled": len(_compiled.taken), "compiled by numba-cuda": len(_compiled.refused)}
    return ", ".join(f"{number} {how}" for how, number in numbers.items() if number) or None


def _rows(
    seed: int, runtime: Runtime, engine: Engine, progress: Callable[[str], None] | None
) -> Iterator[dict[str, Any]]:
    """The table's rows: one for each kernel, and one for the whole job."""
    broken = None
    for number, (name, module) in enumerate([*kernel_modules(runtime.backend).items(), (WHOLE, None)]):
        if broken is not None:
            yield _without({"kernel": name}, NOT_RUN, broken)
            continue
        if progress is not None:
            progress(name)
        own = seed * 1000 + number
        try:
            yield _whole_row(own, runtime, engine) if module is None else _kernel_row(name, module, own, runtime)
        except Exception as error:  # the test looks for kernels that do not run
            yield _without({"kernel": name}, FAILED, shorten(in_one_line(error), 160))
        broken = _broken(runtime, name)


def _broken(runtime: Runtime, name: str) -> str | None:
    """Explain why no more kernels can run after one, or return None if they can.

    After an illegal access a GPU refuses every call of the process.
    """
    try:
        runtime.wait()
        runtime.release()
    except Exception as error:
        why = shorten(in_one_line(error), 160)
        return f"the GPU takes no more calls since {name} ({why}); test it in a new process"
    return None


def header() -> Text:
    """The heading above the lines of `render_row`."""
    return heading(f"{'kernel':22} {'agrees':8} {'input':>10} {'ms':>10} {'GB/s':>8}")


def render_row(row: dict[str, Any]) -> Text:
    """The result of one kernel, as a line."""
    word = {AGREES: "yes", DIFFERS: "NO", FAILED: "failed", NOT_RUN: "not run"}[row["verdict"]]
    colour = {AGREES: "green", NOT_RUN: "yellow"}.get(row["verdict"], "red")
    rest = row.get("problem", "")
    if "milliseconds" in row:
        rest = f"{size(row['input_bytes']):>10} {row['milliseconds']:>10,.2f} {row['gb_per_s']:>8.2f}"
    return beside(f"{row['kernel']:22} ", (f"{word:8}", colour), f" {rest}".rstrip())


def conclusion(found: dict[str, Any]) -> str:
    """The result of `run`, in words."""
    where = "this machine's processors"
    if found["device"] is not None:
        where = found["device"]["name"]
        if "number" in found["device"]:
            where += f", device {found['device']['number']}"
    names: dict[str, list[str]] = {}
    for row in found["kernels"]:
        names.setdefault(row["verdict"], []).append(row["kernel"])
    seed, of_backend = f"(seed {found['seed']})", f"of backend {found['backend']}"
    sentences = []
    if DIFFERS in names:
        sentences.append(
            f"{', '.join(names[DIFFERS])} {of_backend} gave other answers than the reference on {where} {seed}."
        )
    if FAILED in names:
        sentences.append(f"{', '.join(names[FAILED])} {of_backend} failed on {where} {seed}.")
    if sentences:
        sentences.append("Do not trust its results here, and report this.")
        if NOT_RUN in names:
            sentences.append(f"{', '.join(names[NOT_RUN])}: not run, so nothing is known of them.")
        return " ".join(sentences)
    kernels_only = [row for row in found["kernels"] if row["kernel"] != WHOLE]
    checked = sum(row["inputs"] for row in found["kernels"])
    return (
        f"All {len(kernels_only)} kernels {of_backend} and a whole run gave the reference's bits "
        f"on {count(checked, 'random input')} {seed} on {where}."
        + (f" Kernels of the GPU: {found['route']}." if found.get("route") else "")
    )
