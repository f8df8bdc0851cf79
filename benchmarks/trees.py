"""Compare two versions of the package that are installed in two environments, by turns, in one run.

    python -m benchmarks.trees BEFORE AFTER --corpora CORPORA --short 1000000.parquet ... --output FILE.json

BEFORE and AFTER are the Pythons of the environments. What is measured is whole processes: the first and the second job
of two documents with an empty folder of caches, the demo, the first and later commands of an index, the stages of jobs
of short documents (`exact.short_texts`) and of the bills, and one text by one thread and by two.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import launch
from .run import machine

ONE_TEXT = """
import json, sys, threading, time
from neardup_gpu import MinHash, Recipe
from neardup_gpu.sketches import sketch_text
text, recipe = " ".join(f"w{i * 7919 % 1000}" for i in range(1000)), Recipe(method=MinHash())
def some():
    for _ in range(2000):
        sketch_text(text, recipe)
def seconds(number):
    threads = [threading.Thread(target=some) for _ in range(number)]
    began = time.perf_counter()
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return time.perf_counter() - began
some()
one, two = seconds(1), seconds(2)
print(json.dumps({"microseconds of a text": one / 2000 * 1e6, "texts by two threads over one": 2 * one / two}))
"""


class Version:
    """An environment in which a version of the package is installed.

    Parameters
    ----------
    python : Path
    scratch : Path
        A folder for its caches and results.
    """

    def __init__(self, python: Path, scratch: Path) -> None:
        self.python, self.scratch = python, scratch

    def run(self, *command: Any, code: str = "") -> dict[str, Any]:
        """Run `neardup`, or code; return what `watched.py` says: seconds, cpu_seconds, peak_mb, stdout."""
        words = [self.python, "-c", code] if code else [self.python, "-m", "neardup_gpu", *command]
        return launch(words, self.scratch, NEARDUP_CACHE_DIR=str(self.scratch / "cache"), PYTHONPATH="")

    def dedup(self, source: Path, *options: Any) -> dict[str, Any]:
        """Run `neardup dedup`; also return the seconds of each stage."""
        output = self.scratch / "output"
        done = self.run("dedup", source, "-o", output, "--overwrite", "--quiet", *options)
        report = json.loads((output / "report.json").read_text())
        return done | {"stages": report["timings"]}


def first_steps(version: Version) -> dict[str, float]:
    """Return the seconds of the first commands of a user, with an empty folder of caches, and of later ones."""
    shutil.rmtree(version.scratch / "cache", ignore_errors=True)
    shutil.rmtree(version.scratch / "index", ignore_errors=True)
    two = version.scratch / "two.jsonl"
    two.write_text('{"id": "a", "text": "to be or not to be"}\n{"id": "b", "text": "to be, or not to be"}\n')
    index = version.scratch / "index"
    add = ("index", "add", index, two, "--id-column", "id", "--quiet")
    query = ("index", "query", index, "--text", "to be or not to be")
    steps: dict[str, Callable[[], dict]] = {
        "first dedup of two documents": lambda: version.dedup(two),
        "second dedup of two documents": lambda: version.dedup(two),
        "demo": lambda: version.run("demo"),
    }
    found = {name: step()["seconds"] for name, step in steps.items()}
    shutil.rmtree(version.scratch / "cache", ignore_errors=True)
    version.run("index", "create", index)
    for name, command in (("add", add), ("query", query)):
        first = version.run(*command)["seconds"]
        if name == "add":
            two.write_text(two.read_text().replace('"a"', '"c"').replace('"b"', '"d"'))
        found[f"first index {name} beyond a later one"] = first - version.run(*command)["seconds"]
    return found


def job(version: Version, source: Path, method: str) -> dict[str, float]:
    """Return the seconds of a job and of its stages, and how many processors were busy."""
    done = version.dedup(source, "--method", method)
    stages = {f"stage {name}": seconds for name, seconds in done["stages"].items()}
    busy = done["cpu_seconds"] / done["seconds"]
    return {"seconds": done["seconds"], "processors busy": busy, "peak_mb": done["peak_mb"], **stages}


def by_turns(
    measure: Callable[[Version], dict[str, float]], versions: dict[str, Version], rounds: int, part: str
) -> dict[str, dict[str, list[float]]]:
    """Measure versions by turns; return the values of each, by what was measured, and print their medians."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for name, version in versions.items():
            for what, value in measure(version).items():
                found.setdefault(what, {each: [] for each in versions})[name].append(value)
    for what, values in found.items():
        print(f"{part}: {what}: ", *(f"{statistics.median(each):.3f}" for each in values.values() if each), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--short", type=Path, nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    parts: dict[str, Callable[[Version], dict[str, float]]] = {
        "first steps": first_steps,
        "one text": lambda version: json.loads(version.run(code=ONE_TEXT)["stdout"]),
    }
    sources = [*given.short, *([given.corpora / "bills_116.parquet"] if given.corpora else [])]
    for source in sources:
        for method in ("exact", "minhash"):
            parts[f"{source.stem}, {method}"] = lambda version, s=source, m=method: job(version, s, m)
    with tempfile.TemporaryDirectory() as scratch:
        versions = {name: Version(getattr(given, name), Path(scratch, name)) for name in ("before", "after")}
        for version in versions.values():
            version.scratch.mkdir()
        results = {part: by_turns(measure, versions, given.rounds, part) for part, measure in parts.items()}
    given.output.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
