"""The same job in memory and cut into tasks, by processes of one machine and on Ray: the part `scale` of run.py.

Documents are of 40 words, 1% of them like another but for a word; the time is that of whole processes, which write
their results. Slices and partitions grow with the documents, so that what a task holds should not. What several
machines do is not measured here.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .exact import short_texts, write_texts
from .measure import PROGRAMS, SLOW_ROUNDS, Bench, figure, launch, ratio

DOCUMENTS = 1_000_000
GROWTH = (300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)
METHODS = ("exact", "minhash")
WORKERS = 2
SLICE_BYTES = 32_000_000
SMALL_SLICES = 1_500_000
SORTED_ROWS, SORTED_FILES = 20_000_000, 20
ROWS = 25_000  # of a row group, the least that a slice can be

Run = dict[str, Any]
Settings = dict[str, Any]


def part(bench: Bench) -> list[dict]:
    """Tasks beside the job in memory, on Ray, killed and resumed; growth, bytes exchanged, and sorting."""
    jobs = Jobs(bench)
    source = jobs.source(DOCUMENTS)
    few = jobs.source(ROWS)
    for method in METHODS:
        check_agreement(jobs, few, method)
    return [
        *_beside_memory(bench, jobs, source),
        *_on_ray(bench, jobs, source),
        *_exchanged(bench, jobs, source),
        *_resumed(bench, jobs, source),
        *_growth(bench, jobs),
        *_sorting(bench),
    ]


class Jobs:
    """Makes inputs and runs jobs, in a folder of a run of the benchmarks."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._folder = bench, bench.scratch / "scale"
        self.work, self.output = self._folder / "work", self._folder / "output"
        self._slice_bytes = SMALL_SLICES if bench.small else SLICE_BYTES
        self._folder.mkdir(exist_ok=True)

    def source(self, documents: int) -> Path:
        """A file of so many documents, made unless it is there."""
        path = self._folder / f"{documents}.parquet"
        if not path.exists():
            write_texts(path, cut(short_texts(self._bench.sized(documents)), self._bench.sized(ROWS)))
        return path

    def command(self, source: Path, method: str, runner: str, **settings: Any) -> list[Any]:
        """The command of a job; in memory, or as tasks in an empty work folder."""
        shutil.rmtree(self.work, ignore_errors=True)
        command = [sys.executable, PROGRAMS / "scaled_job.py", source, self.output, method, runner]
        if runner == "memory":
            return command
        given = {"work_dir": str(self.work), "number": WORKERS, "slice_bytes": self._slice_bytes, **settings}
        return [*command, *(f"{name}={json.dumps(value)}" for name, value in given.items())]

    def run(self, source: Path, method: str, runner: str, **settings: Any) -> Run:
        """Run a job: seconds, processor seconds, peak memory in MB of its largest process, counts and stages."""
        return run(self.command(source, method, runner, **settings))

    def by_turns(self, source: Path, method: str, variants: dict[str, tuple[str, Settings]]) -> dict[str, list[Run]]:
        """Runs of each variant, a runner and its settings, in turns."""
        done: dict[str, list[Run]] = {name: [] for name in variants}
        for _ in range(rounds(self._bench)):
            for name, (runner, settings) in variants.items():
                done[name].append(self.run(source, method, runner, **settings))
        return done


def run(command: list[Any]) -> Run:
    done = launch(command)
    return {**done, **json.loads(done["stdout"])}


def cut(parts: Iterator[list[str]], rows: int) -> Iterator[list[str]]:
    """Lists of at most so many rows."""
    for texts in parts:
        for first in range(0, len(texts), rows):
            yield texts[first : first + rows]


def seconds_of(runs: list[Run]) -> list[float]:
    return [run["seconds"] for run in runs]


def of_runs(what: str, runs: list[Run]) -> dict[str, Any]:
    """Time of whole processes, and what belongs to it."""
    known = {key: runs[0]["counts"][key] for key in ("documents", "kept", "candidate_pairs", "verified_pairs")}
    known["cpu_seconds"] = round(statistics.median(run["cpu_seconds"] for run in runs), 2)
    known["peak_mb"] = round(max(run["peak_mb"] for run in runs), 1)
    return figure(what, seconds_of(runs), "s", **known, stages=runs[len(runs) // 2]["timings"])


def check_agreement(jobs: Jobs, source: Path, method: str) -> None:
    """Run a job on few documents, by all who are compared, for which kernels are compiled.

    Raises
    ------
    AssertionError
        If tasks find another result than the job in memory.
    """
    found = []
    for runner, spool in (("memory", False), ("local", False), ("local", True)):
        jobs.run(source, method, runner, spool=spool)
        ending = "" if runner == "local" else ".parquet"
        tables = (pq.read_table(jobs.output / f"{name}{ending}") for name in ("documents", "pairs"))
        found.append([str(table.to_pylist()) for table in tables])
    assert found[0] == found[1] == found[2]


def rounds(bench: Bench) -> int:
    return 1 if bench.small else min(bench.repeat, SLOW_ROUNDS)


def _beside_memory(bench: Bench, jobs: Jobs, source: Path) -> list[dict]:
    """Two processes beside the job in memory, with and without a spool."""
    figures = []
    for method in METHODS:
        again = "local, shingles made again"
        variants = {"in memory": ("memory", {}), "local": ("local", {}), again: ("local", {"spool": False})}
        runs = jobs.by_turns(source, method, variants)
        figures += [of_runs(f"{method}, {name}", done) for name, done in runs.items()]
        local = seconds_of(runs["local"])
        over = ratio(f"{method}, local over in memory", local, seconds_of(runs["in memory"]))
        figures += [over, ratio(f"{method}, {again}, over kept ones", seconds_of(runs[again]), local)]
        bench.target(f"{method}: two processes over the job in memory", over["median"], 1, least=False)
    return figures


def _on_ray(bench: Bench, jobs: Jobs, source: Path) -> list[dict]:
    """A cluster of this machine with two processors beside two processes."""
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        bench.skipped.append("scale: ray is not installed")
        return []
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": WORKERS})
    try:
        on = {"number": None, "ray_address": cluster.address}
        jobs.run(source, "minhash", "ray", **on)  # in which the cluster starts its processes
        figures = []
        for method in METHODS:
            runs = jobs.by_turns(source, method, {"local": ("local", {}), "ray": ("ray", on)})
            what = f"{method}, ray over local"
            over = ratio(what, seconds_of(runs["ray"]), seconds_of(runs["local"]), stages=runs["ray"][0]["timings"])
            figures.append(over)
            bench.target(f"{method}: Ray with two processors over two processes", over["median"], 1.1, least=False)
    finally:
        cluster.shutdown()
    return figures


def _exchanged(bench: Bench, jobs: Jobs, source: Path) -> list[dict]:
    """Bytes a document of the files by which tasks hand on what they found."""
    figures = []
    kinds = {
        "minhash": {"keys, 20 features": "keys/*-entries", "copies": "sketch/*-hashes"},
        "exact": {"slots": "sketch/*-slots", "postings": "postings/*-postings"},
    }
    for method, patterns in kinds.items():
        documents = jobs.run(source, method, "local", keep_work=True)["counts"]["documents"]
        for name, pattern in {**patterns, "all files": "*/*"}.items():
            size = sum(path.stat().st_size for path in jobs.work.glob(pattern) if path.is_file())
            figures.append(figure(f"{method}, exchanged: {name}", [size / documents], "bytes/document"))
    by_name = {each["what"]: each["median"] for each in figures}
    for name, wanted in (("keys, 20 features", 280), ("copies", 24)):
        value = by_name[f"minhash, exchanged: {name}"]
        what = f"exchanged bytes a document, {name}: {wanted} and 1% for footers"
        bench.target(what, value, round(1.01 * wanted, 2), least=False)
    return figures


def _resumed(bench: Bench, jobs: Jobs, source: Path) -> list[dict]:
    """A driver that is killed when half of the tasks are done, and the same command again."""
    figures = []
    for method in METHODS:
        jobs.run(source, method, "local", keep_work=True)
        records = _num_records(jobs.work)
        whole, parts, share = [], [], []
        for _ in range(rounds(bench)):
            whole.append(jobs.run(source, method, "local")["seconds"])
            command = jobs.command(source, method, "local")
            first = _killed(command, jobs.work, records // 2)
            parts.append(first + run(command)["seconds"])
            share.append(first / parts[-1])
        known = {"tasks": records, "killed_after": round(statistics.median(share), 2)}
        over = ratio(f"{method}, killed half way and resumed, both parts over undisturbed", parts, whole, **known)
        figures.append(over)
        bench.target(f"{method}: killed half way and resumed over undisturbed", over["median"], 1.1, least=False)
    return figures


def _num_records(work: Path) -> int:
    return sum(1 for _ in work.glob("*/*.json"))


def _killed(command: list[Any], work: Path, records: int) -> float:
    """Start a command and kill it once so many tasks are done; how many seconds it had."""
    start = time.perf_counter()
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and _num_records(work) < records:
            time.sleep(0.01)
        process.kill()
    return time.perf_counter() - start


def _growth(bench: Bench, jobs: Jobs) -> list[dict]:
    """Time and memory of more and more documents, two processes."""
    figures = []
    sizes = [size for size in GROWTH if size <= max(bench.largest, DOCUMENTS)]
    runs: dict[tuple[str, int], list[Run]] = {}
    for size in sizes:
        source = jobs.source(size)
        for _ in range(rounds(bench) if size <= DOCUMENTS else 1):
            for method in METHODS:
                runs.setdefault((method, size), []).append(jobs.run(source, method, "local"))
        if size != DOCUMENTS:
            source.unlink()
    for method in METHODS:
        of = {size: runs[method, size] for size in sizes}
        made = [f"{bench.sized(size):,}" for size in sizes]
        figures += [of_runs(f"{method}, local, {n} documents", done) for n, done in zip(made, of.values(), strict=True)]
        seconds = [statistics.median(seconds_of(done)) for done in of.values()]
        peaks = [statistics.median(run["peak_mb"] for run in done) for done in of.values()]
        for first in sorted({0, len(sizes) - 2}):
            growth = float(np.log(seconds[-1] / seconds[first]) / np.log(sizes[-1] / sizes[first]))
            what = f"{method}, {made[first]} to {made[-1]} documents: time grows as"
            figures.append(figure(what, [growth], "exponent"))
        bench.target(f"{method}: exponent of time, from the second largest to the largest", growth, 1.05, least=False)
        what = f"{method}, peak memory, {made[-1]} over {made[0]} documents"
        more = figure(what, [peaks[-1] / peaks[0]], "ratio")
        figures.append(more)
        bench.target(f"{method}: peak memory of the most documents over the fewest", more["median"], 1.1, least=False)
    return figures


def _sorting(bench: Bench) -> list[dict]:
    """The sort of Ray Data beside one by our exchange, on two processors."""
    if importlib.util.find_spec("ray") is None:
        return []  # as `_on_ray` says
    folder, work = bench.scratch / "sorting", bench.scratch / "sorted"
    folder.mkdir()
    random, rows = np.random.default_rng(1), bench.sized(SORTED_ROWS) // SORTED_FILES
    for number in range(SORTED_FILES):
        keys = random.integers(0, 2**64, rows, np.uint64)
        table = pa.table({"key": keys, "row": np.arange(number * rows, (number + 1) * rows)})
        pq.write_table(table, folder / f"{number:02}.parquet", compression="none", use_dictionary=False)
    seconds: dict[str, list[float]] = {"exchange": [], "ray": []}
    for _ in range(rounds(bench)):
        for which, found in seconds.items():
            work.mkdir()
            found.append(run([sys.executable, PROGRAMS / "sorted_rows.py", folder, work, which])["sorted_in"])
            shutil.rmtree(work)
    sizes = {"rows": rows * SORTED_FILES}
    return [
        figure("sorting (key, row), our exchange", seconds["exchange"], "s", **sizes),
        figure("sorting (key, row), Ray Data", seconds["ray"], "s", **sizes),
        ratio("sorting (key, row), Ray Data over our exchange", seconds["ray"], seconds["exchange"], **sizes),
    ]
