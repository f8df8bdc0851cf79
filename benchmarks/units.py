"""Compare equal lines and paragraphs with a Python set, DuckDB and datatrove: the part `units` of run.py.

Each job is a process of its own that reads a file, cuts the units that repeat an earlier one, inside a document as
well, and writes what is left; jobs take turns. Counts differ by less than 1%: neardup reads a word with soft hyphens as
the word without them, and datatrove, which has lines alone, has rules of its own for letters.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from .measure import PROGRAMS, SLOW_ROUNDS, Bench, figure, launch, neardup, ratio
from .peers import NEEDS, ensure_venv, requirement

CORPORA = ("bills_116", "manpages", "django_docs")
UNITS = ("line", "paragraph")
MOST_TIME = 1.5
"""Largest accepted ratio of the time for units to the time for whole documents."""


def part(bench: Bench) -> list[dict]:
    """Return the figures of every corpus and unit."""
    programs = {"a Python set": (Path(sys.executable), "set")}
    if bench.peers:
        arrow, needed = requirement("pyarrow"), [requirement(name) for name in NEEDS["datatrove"]]
        duckdb = ensure_venv("duckdb", [requirement("duckdb")], bench.cache)
        datatrove = ensure_venv("datatrove", [requirement("datatrove"), arrow, *needed], bench.cache)
        programs |= {"DuckDB": (duckdb, "duckdb"), "datatrove": (datatrove, "datatrove")}
    return [each for name in CORPORA for unit in UNITS for each in _figures(bench, bench.corpus(name), unit, programs)]


def _figures(bench: Bench, source: Path, unit: str, programs: dict[str, tuple[Path, str]]) -> list[dict]:
    """Return seconds, memory and counts of each tool for one corpus and unit, and ratios of seconds."""
    tools = {name: command for name, command in programs.items() if unit == "line" or name != "datatrove"}
    runs: dict[str, list[dict]] = {"neardup": [], "neardup, documents": [], **{name: [] for name in tools}}
    for _ in range(min(bench.repeat, SLOW_ROUNDS) + 1):
        for name, done in runs.items():
            with tempfile.TemporaryDirectory(dir=bench.scratch) as folder:
                done.append(_run(tools.get(name), name, unit, source, Path(folder)))
    seconds = {name: [run["seconds"] for run in done[1:]] for name, done in runs.items()}
    about, of = {"corpus": source.stem}, f"equal {unit}s"
    figures = []
    for name, done in runs.items():
        known = {"cpu_seconds": _median(done, "cpu_seconds"), "peak_mb": round(_median(done, "peak_mb"))}
        figures.append(figure(f"{of}: {name}", seconds[name], "s", **about, removed=done[0].get("removed"), **known))
    figures += [ratio(f"{of}: {name} over neardup", seconds[name], seconds["neardup"], **about) for name in tools]
    whole = ratio(f"{of} over documents", seconds["neardup"], seconds["neardup, documents"], **about)
    bench.target(f"{source.stem}: {of} over documents", whole["median"], MOST_TIME, least=False)
    return [*figures, whole]


def _run(command: tuple[Path, str] | None, name: str, unit: str, source: Path, folder: Path) -> dict:
    """Run one job; return its time and memory, and the number of units that it removed."""
    if command is not None:
        python, tool = command
        done = launch([python, PROGRAMS / "equal_units.py", tool, unit, source, folder])
        return {**done, **json.loads(done["stdout"])}
    if name == "neardup, documents":
        return neardup(source, folder / "out", "--id-column", "id")
    done = neardup(source, folder / "out", "--id-column", "id", "--unit", unit, "--threshold", 1, "--inside")
    counts = json.loads((folder / "out" / "report.json").read_text())["counts"]
    return {**done, "removed": counts["units_cut"]}


def _median(runs: list[dict], name: str) -> float:
    return float(f"{statistics.median(run[name] for run in runs[1:]):.4g}")
