"""Hold the numbers that first_contact.py is expected to find on an H100 with 16 cores, stated before the measurement.

A number outside its range refutes the arithmetic, or the goal, that the range came from. That is not an error, so the
verdict of the line stays as it is. The line says `as_expected: false`, and the summary counts such lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

EARLIER = Path(__file__).with_name("results") / "h100.json"
"""The figures of an H100 on 2026-11-23. Readers and kernels have changed since then."""

NO_WORSE = 1.15
"""How much worse a figure may be than the earlier one."""


@dataclass(frozen=True)
class Expected:
    """A range for one number of a line.

    Parameters
    ----------
    field : str
        Name of the number in the record; names within it follow after dots.
    low, high : float, optional
        The range; None where there is no bound.
    unit, source : str
        Unit of the number, and where the range comes from.
    """

    field: str
    low: float | None
    high: float | None
    unit: str
    source: str

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            bounds = f"{self.low:g} to {self.high:g}"
        else:
            bounds = f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"
        return f"{self.field} {bounds} {self.unit}".rstrip() + f" ({self.source})"

    def met(self, record: dict[str, Any]) -> bool | None:
        """Return whether the record's number is in the range; None if the record has no such number."""
        value: Any = record
        for name in self.field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


GOALS = {"exact": 3.5, "minhash": 7.0, "simhash": 7.0, "sketch": 7.0}
"""How many times as fast as the 16 cores a GPU is to be, without output."""

TWO = "else two batches in computation gain nothing"

NAMED = {
    ("launch", "costs"): Expected("costs.kernel of the project.done_us", None, 8, "us", "driver.py's share of 13.1"),
    ("launch", "came compiled"): Expected("load_ms", None, 400, "ms", "4 ms a kernel"),
    ("scale", "tokens"): Expected("median", None, 3.6, "ms", "paper, PROFILE.md"),
    ("scale", "exact: prefixes"): Expected("median", None, 6.5, "ms", "paper, PROFILE.md"),
    ("scale", "unique"): Expected("median", None, 9.5, "ms", "paper, PROFILE.md"),
    ("scale", "simhash tf, 64 bits"): Expected("median", None, 1.95, "ms", "as on an H200: tied bits are drawn"),
    ("scale", "simhash tf, 128 bits"): Expected("median", None, 3.75, "ms", "as on an H200: tied bits are drawn"),
    ("scale", "simhash weighted, 64 bits"): Expected("median", None, 1.2, "ms", "as on an H200: tied bits are drawn"),
    ("layouts", "dedup of one row group"): Expected("gpu_s", 0.15, 0.30, "s", "an H200 took 0.23"),
    ("layouts", "dedup of 1,000 rows per group"): Expected("gpu_s", 0.15, 0.25, "s", "all cores decode"),
    ("layouts", "dedup by 16 threads of the CPU"): Expected("times_one_thread", 2.5, None, "", "as by an H200's cores"),
    ("layouts", "dedup of 16 files"): Expected("gpu_s", 0.15, 0.25, "s", "all cores decode"),
    ("layouts", "reading by 16 threads"): Expected("times_one_thread", 5, None, "", "an H200's cores reached 6.1"),
    ("layouts", "text in memory"): Expected("gpu_ms", None, 12, "ms", "bus 5, chain 7; an H200 took 21"),
    ("pages", "zstd, 3 MB"): Expected(
        "device_gb_per_s", None, 25, "GB/s", "else a device decompressor is worth building"
    ),
    ("jobs", "4 GB, exact, spilled to the host"): Expected("times_usual", None, 1.3, "", "goal"),
    ("jobs", "4 GB, exact, a stream that is spilled to a file"): Expected("times_usual", None, 4, "", "1.2 GB/s"),
    ("jobs", "4 GB, minhash, one batch at a time"): Expected("times_usual", 1, None, "", TWO),
    ("jobs", "4 GB, sketch, one batch at a time"): Expected("times_usual", 1, None, "", TWO),
    ("jobs", "4 GB, minhash, batches of 12 MiB"): Expected("times_usual", 1, None, "", "half as many launches"),
    ("jobs", "cold, 1 GB"): Expected("cpu_over_gpu", 1, None, "", "the least text for a GPU, docs/decisions/gpu.md"),
    ("jobs", "cold, 0.5 GB"): Expected("cpu_over_gpu", None, 1, "", "the least text for a GPU, docs/decisions/gpu.md"),
}

BY_STEP = {
    "environment": "described",
    "launch": "right",
    "kernels": "the bits of cpu; registers as in compiled.json, no local bytes",
    "ceilings": "as on an earlier H100",
    "scale": "right",
    "job": "decisions as by cpu",
    "batches": "supershingles as by cpu; a GPU ahead from 64 MB on",
    "layouts": "read as by pyarrow, decided as by cpu",
    "pages": "the bytes that were compressed",
    "jobs": "decided as by cpu",
    "tests": "passed",
    "profiler": "no errors of the sanitizers",
}
"""What is expected of a line without a number of its own."""


@cache
def _earlier() -> dict[tuple[str, str], dict[str, Any]]:
    if not EARLIER.exists():
        return {}
    records = json.loads(EARLIER.read_text())["first_contact"]
    return {(record["step"], record["item"]): record for record in records if record["item"]}


def expected_of(step: str, item: str) -> Expected | None:
    """Return the range for a line's number, or None if the line has no number that was foretold."""
    if (step, item) in NAMED:
        return NAMED[step, item]
    if step == "jobs":
        goal = next((goal for name, goal in GOALS.items() if f" {name}," in f"{item},"), None)
        return Expected("cpu_over_gpu", goal, None, "", "goal") if goal and "output" not in item else None
    before = _earlier().get((step, item), {})
    fields: dict[str, Callable[[float], Expected]] = {
        "median": lambda n: Expected("median", None, round(NO_WORSE * n, 3), "ms", "as on 2026-11-23"),
        "gb_per_s": lambda n: Expected("gb_per_s", round(n / NO_WORSE, 2), None, "GB/s", "as on 2026-11-23"),
    }
    return next((make(before[field]) for field, make in fields.items() if isinstance(before.get(field), float)), None)


def described(step: str, item: str) -> str:
    """Return what is expected of a line, in words."""
    found = expected_of(step, item)
    return BY_STEP.get(step, "known") if found is None else str(found)


def judged(step: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields `expected` and, if the record has the number, `as_expected`."""
    found, words = expected_of(step, record["item"]), described(step, record["item"])
    met = None if found is None else found.met(record)
    return {"expected": words} if met is None else {"expected": words, "as_expected": met}
