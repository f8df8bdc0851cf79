"""The first minutes on a GPU: what is there, what is right, how fast it is; most telling first.

    python -m benchmarks.first_contact --profile 1 --out FOLDER
    python -m benchmarks.first_contact --profile 2 --out FOLDER
    python -m benchmarks.first_contact --profile 3 --out FOLDER
    python -m benchmarks.first_contact --out FOLDER --only kernels,ceilings

A profile takes nine minutes at most. The first is packages, launches, kernels and 256 MB of text, the second jobs of 4
and 10 GB, the third profilers, sanitizers and tests. Neither numba-cuda nor a late pyarrow is needed where kernels came
compiled. Each line has `expected`, which expectations.py knew beforehand, and `as_expected` where that is a number.
`--cpu` runs what needs no device, and `--scale 0.001` takes that share of the text of `layouts` and `jobs`.

FOLDER/first_contact.jsonl gets a line of JSON for each thing found out, synced to disk at once: whatever happens next,
what was known is kept. Lines have `step`, `item`, `verdict`, `seconds` and what was measured; `says` is for a person. A
second run adds its lines. What the steps print goes to FOLDER/STEP.log. The steps, in their order:

    environment  machine, packages, driver, PCIe, libnvvm and where it was looked for, variables
    launch       one launch through Numba and through CuPy; whether kernels that came compiled can be loaded; what
                 launches and waiting cost
    kernels      every kernel on small inputs against `cpu`; time to load or compile, registers, local bytes
    scale        every kernel and step of CuPy on 256 MB of text
    layouts      three layouts of the same text: jobs, and reading alone by number of threads; text in memory
    ceilings     copies on the device and over the bus, filling a slab, page-locking
    job          whole jobs with a timeline, against `cpu`
    batches      GPU against CPU by size of the text
    pages        pages of 64 kB to 12 MB by zstd and snappy, decompressed by nvCOMP on the device, if it is installed
    jobs         4 and 10 GB by each method, with and without output, or one thing changed; sketches; cold starts
    profiler     ncu on eight kernels, nsys, compute-sanitizer, as far as they are installed
    tests        pytest -m gpu

Verdicts: `ok`; `wrong` (other bits than the CPU's, or a sanitizer's error); `failed` (an exception); `crashed`; `timed
out`; `not run`, with the reason. Each step is a process of its own. If it crashes, hangs or loses the device, another
one goes on with what is left of the step. A step gets at most its share of the budget; what does not fit is `not run`.

Exit status: 0 if nothing is wrong, 1 if something is, 2 if no GPU can be used here (or the command is not right), 130
if interrupted. In the simulator (NUMBA_ENABLE_CUDASIM=1) everything is small, and figures mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .expectations import described, judged
from .findings import LOST

ROOT = Path(__file__).resolve().parent.parent

BUDGET = 540.0
"""Seconds, unless given; the shares of steps are of this."""

SHARE = 15.0
"""Least seconds of a step, however small the budget: to import what it needs takes some."""

BAD = ("wrong", "failed", "crashed", "timed out")


@dataclass(frozen=True)
class Step:
    """Seconds that a step may take, without a sign of life, and that must be left to begin it; of `BUDGET`."""

    most: float
    silent: float
    least: float


STEPS = {
    "environment": Step(40, 40, 0),
    "launch": Step(60, 45, 8),
    "kernels": Step(170, 60, 15),
    "scale": Step(110, 60, 25),
    "layouts": Step(120, 90, 20),
    "ceilings": Step(45, 30, 10),
    "job": Step(120, 60, 20),
    "batches": Step(50, 40, 15),
    "pages": Step(60, 40, 20),
    "jobs": Step(BUDGET, 240, 60),
    "profiler": Step(300, 100, 30),
    "tests": Step(260, 180, 30),
}

PROFILES = {
    1: ["environment", "launch", "kernels", "scale", "layouts", "ceilings", "job", "batches"],
    2: ["environment", "pages", "jobs"],
    3: ["environment", "profiler", "tests"],
}
"""The steps of each profile."""

ON_CPU = ("environment", "layouts", "pages", "jobs")
"""Steps that have something to find out without a device."""


class Journal:
    """Records, each on disk before the next begins, and a line of each for whoever watches."""

    def __init__(self, path: Path, judges: bool = False) -> None:
        self.judges = judges
        self.records: list[dict[str, Any]] = []
        self.start = time.monotonic()
        self._file = open(path, "ab+")  # noqa: SIM115 (open as long as the process)
        self._file.seek(0, os.SEEK_END)
        if self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":  # an earlier run was cut short in the middle of a line
                self._file.write(b"\n")

    def write(self, step: str, item: str | None, verdict: str, **found: Any) -> None:
        elapsed = round(time.monotonic() - self.start, 2)
        record = {"step": step, "item": item, "verdict": verdict, "elapsed": elapsed, **found}
        if item is not None:
            record |= judged(step, record) if self.judges else {"expected": described(step, item)}
        self.records.append(record)
        line = json.dumps(record)
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:  # then at least whoever watches sees it
            show(f"cannot be written ({error.strerror}): {line}")
        if item is not None or verdict != "ok":
            text = " ".join(str(found.get("reason") or found.get("says") or "").split())
            if record.get("as_expected") is False:
                text += f" EXPECTED {record['expected']}"
            show(f"{elapsed:7.1f} s  {step:11} {item or '':32} {verdict:9} {text[:240]}".rstrip())


def show(text: str) -> None:
    """Print a line at once, whatever the terminal can show; nobody need be reading."""
    with contextlib.suppress(OSError, ValueError):
        encoding = sys.stdout.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


class NoDevice(Exception):
    """No step can be run here; the message says why."""


class Process:
    """A step's process, and what it tells, line by line."""

    def __init__(self, command: list[str], log: Path) -> None:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log, self._before = log, log.stat().st_size if log.exists() else 0
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )
        self._told: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                if isinstance(told, dict):
                    self._told.put(told)
        self._told.put(None)

    def told(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None once there is no more.

        Raises
        ------
        queue.Empty
            If none comes in time.
        """
        return self._told.get(timeout=max(0.0, seconds))

    def end(self) -> int | None:
        """Stop it and all that it began; its exit status (negative: killed by that signal), if it ended by itself."""
        if not self._reader.is_alive():  # its output has ended, so it is about to
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
        status = self._process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)  # one that hangs in the driver cannot even be killed
        return status

    def last_words(self) -> str:
        """The last line that it printed."""
        with open(self._log, "rb") as file:
            file.seek(self._before)
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


def conduct(name: str, step: Step, command: list[str], journal: Journal, log: Path, deadline: float) -> None:
    """Find out all items of a step, by as many processes as it takes.

    Parameters
    ----------
    step : Step
        In seconds, not of `BUDGET`.
    command : list of str
        The process, to which "--done" and a JSON list are added.
    deadline : float
        When the whole budget is over, by `time.monotonic`.

    Raises
    ------
    NoDevice
        If the process says so.
    """
    items: list[str] = []
    done: list[str] = []
    ends = min(deadline, time.monotonic() + step.most)
    while True:
        process = Process([*command, "--done", json.dumps(done)], log)
        begun, why, before = None, None, len(done)
        try:
            while why is None:
                try:
                    told = process.told(min(step.silent, ends - time.monotonic()))
                except queue.Empty:
                    why = "time" if time.monotonic() >= ends else "silence"
                    break
                if told is None:
                    break
                if "no_device" in told:
                    raise NoDevice(told["no_device"])
                if "items" in told:
                    items = told["items"]
                elif "begin" in told:
                    begun = told["begin"]
                elif "verdict" in told:
                    journal.write(name, told.pop("item", None), told.pop("verdict"), **told)
                    done.append(journal.records[-1]["item"])
                    begun = None if begun == done[-1] else begun
        finally:
            status = process.end()
        if why == "time":
            reason = "budget" if ends >= deadline else f"the step's {step.most:.0f} s were over"
            for item in [item for item in items if item not in done] or [None]:
                rest = ", and it had begun" if item is not None and item == begun else ""
                journal.write(name, item, "not run", reason=f"{reason}{rest}")
            return
        if begun is not None:
            done.append(begun)
            if why == "silence":
                journal.write(name, begun, "timed out", reason=f"no sign of life for {step.silent:.0f} s")
            else:
                journal.write(name, begun, "crashed", reason=how_ended(status, process.last_words()))
        rest = [item for item in items if item not in done]
        if begun is None and (why == "silence" or status not in (0, LOST) or (rest and len(done) == before)):
            reason = "no sign of life" if why == "silence" else how_ended(status, process.last_words())
            journal.write(name, None, "failed", reason=reason)
            for item in rest:
                journal.write(name, item, "not run", reason="the step's process did not come so far")
            return
        if not rest:
            return


def how_ended(status: int | None, words: str) -> str:
    """A process's end, in words."""
    if status is None:
        how = "the process closed its output and went on"
    elif status < 0:
        with contextlib.suppress(ValueError):
            words = f"{signal.Signals(-status).name}: {words}".rstrip(": ")
        how = f"killed by signal {-status}"
    else:
        how = f"exit status {status}"
    return f"{how}: {words}" if words else how


def run(names: list[str], budget: float, out: Path, journal: Journal, options: Sequence[str] = ()) -> int:
    """Do all steps within the budget; return the exit status. `options` are for the steps' processes."""
    deadline = journal.start + budget
    reason = None
    for name in names:
        share = STEPS[name]
        most = max(SHARE, share.most * budget / BUDGET)
        scaled = Step(most, share.silent, share.least * budget / BUDGET)
        if reason is not None and name != "environment":
            journal.write(name, None, "not run", reason=reason)
        elif deadline - time.monotonic() < scaled.least:
            journal.write(name, None, "not run", reason="budget")
        else:
            command = [sys.executable, "-m", "benchmarks.first_steps", name, "--out", str(out), *options]
            try:
                conduct(name, scaled, command, journal, out / f"{name}.log", deadline)
            except NoDevice as error:
                reason = str(error)
                journal.write(name, None, "not run", reason=reason)
    return conclude(names, reason, journal)


def conclude(names: list[str], reason: str | None, journal: Journal) -> int:
    """Say what was found, as the last line; the exit status."""
    records = journal.records
    bad = [record for record in records if record["verdict"] in BAD]
    by_step = {name: Counter(r["verdict"] for r in records if r["step"] == name) for name in names}
    status = 1 if bad else 2 if reason is not None else 0
    if reason is not None:
        verdict = f"Nothing was run on a GPU: {reason}"
    elif bad:
        verdict = f"{len(bad)} of {len(records)} findings are bad; the first: {in_words(bad[0])}"
    else:
        verdict = "Nothing is wrong."
        left = sum(record["verdict"] == "not run" for record in records)
        verdict += f" {left} were not run." if left else ""
    numbers = [record for record in records if "as_expected" in record]
    if refuted := [record for record in numbers if not record["as_expected"]]:
        where = f"{refuted[0]['step']}, {refuted[0]['item']}"
        verdict += f" {len(refuted)} of {len(numbers)} numbers are not as expected; the first: {where}."
    journal.write("summary", None, "ok", status=status, says=verdict, verdicts={n: dict(c) for n, c in by_step.items()})
    show("")
    for name, verdicts in by_step.items():
        show(f"{name:11} {', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items())) or 'nothing'}")
    for record in bad[:20]:
        show(f"  {in_words(record)}")
    show(f"\n{verdict}")
    return status


def in_words(record: dict[str, Any]) -> str:
    """A finding as a clause."""
    where = f"{record['step']}, {record['item']}" if record["item"] else record["step"]
    return f"{where}: {record['verdict']}, {record.get('reason', '')}".rstrip(", ")


def chosen(text: str) -> list[str]:
    """The steps that `--only` names, in their order."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in STEPS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) or 'nothing'} is no step; there are {', '.join(STEPS)}")
    return [name for name in STEPS if name in names]


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def interrupted(*_: object) -> None:
    """End as Ctrl-C does."""
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Read the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=seconds, default=BUDGET, help="seconds for all steps together")
    parser.add_argument("--out", type=Path, required=True, help="folder for records and logs; made if need be")
    parser.add_argument("--profile", type=int, choices=PROFILES, default=1, help="which steps (default 1)")
    parser.add_argument("--only", type=chosen, metavar="STEP[,STEP]", help="these steps only, of all profiles")
    parser.add_argument("--cpu", action="store_true", help="only what can be found out without a device")
    parser.add_argument("--scale", type=seconds, default=1.0, help="share of the text of layouts and jobs")
    args = parser.parse_args(arguments)
    names = [name for name in args.only or PROFILES[args.profile] if not args.cpu or name in ON_CPU]
    options = ["--scale", str(args.scale), *(["--cpu"] if args.cpu else [])]
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
    out = args.out.absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
        journal = Journal(out / "first_contact.jsonl", judges=not (args.cpu or simulated or args.scale != 1))
    except OSError as error:
        parser.error(f"--out {args.out}: {error.strerror}")
    journal.write("run", None, "ok", time=time.strftime("%Y-%m-%dT%H:%M:%S%z"), budget=args.budget, steps=names)
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, interrupted)
    try:
        return run(names, args.budget, out, journal, options)
    except KeyboardInterrupt:
        journal.write("summary", None, "not run", status=130, reason="interrupted; what is above holds")
        return 130


if __name__ == "__main__":
    sys.exit(main())
