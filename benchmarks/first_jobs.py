"""The steps of first_contact.py that run whole jobs: layouts of the same text, and jobs of 4 and 10 GB.

Files are written once, next to the records, and read again by a second run. Each job runs on the GPU and on the CPU;
without a device (`--cpu`) on the CPU alone.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
from pyarrow.dataset import dataset

import neardup_gpu as nd
from neardup_gpu import sketches
from neardup_gpu.data import Ragged
from neardup_gpu.documents import open_documents
from neardup_gpu.documents.reading_options import Reading
from neardup_gpu.engine.gpu import GpuRuntime
from neardup_gpu.engine.processors import most_threads
from neardup_gpu.engine.threads import on_threads
from neardup_gpu.installation import selftest
from neardup_gpu.kernels._launch import simulated, to_host

from .findings import Items, NotRun, Settings
from .first_device import TEXT_BYTES, generated, table_of

BATCH = 32 << 20  # bytes of text that a batch of a job on a GPU has
RECIPE = nd.Recipe(method=nd.MinHash(filter="altavista"))
METHODS: dict[str, dict[str, Any]] = {
    "minhash": {"method": nd.MinHash(filter="altavista")},
    "exact": {},
    "simhash": {"method": "simhash"},
}


def text_of(settings: Settings, num_bytes: float, seed: int = 1) -> Ragged:
    """Return text of about this size; next to nothing in the simulator."""
    if simulated():
        return generated(400, document_tokens=20, seed=seed)
    return generated(max(1000, int(num_bytes * settings.scale)), seed=seed)


def backends(settings: Settings) -> list[str]:
    """Return the backends that are compared: the GPU first, if there is one."""
    return ["cpu"] if settings.cpu else ["gpu", "cpu"]


def compared(settings: Settings, times: dict[str, list[float]], digits: int = 4) -> dict[str, Any]:
    """Return each backend's median seconds, and how many times as long the CPU takes."""
    found: dict[str, Any] = {f"{name}_s": round(statistics.median(each), digits) for name, each in times.items()}
    if not settings.cpu:
        found["cpu_over_gpu"] = round(statistics.median(times["cpu"]) / statistics.median(times["gpu"]), 3)
    found["says"] = ", ".join(f"{name} {statistics.median(each):.2f} s" for name, each in times.items())
    return found


# ------------------------------------------------------------------------------------------------------------ layouts

LAYOUTS = ("one row group", "1,000 rows per group", "16 files")


def layout(settings: Settings, name: str) -> Path:
    """Return the file, or the folder of files, with the text in one of the layouts. It is written if it is missing."""
    path = settings.out / f"{settings.scale:g} {name}{'' if name == '16 files' else '.parquet'}"
    if not path.exists():
        table, made = table_of(text_of(settings, TEXT_BYTES)), path.with_name(f"{os.getpid()} {path.name}")
        if name == "16 files":
            made.mkdir()
            step = -(-table.num_rows // 16)
            for number in range(-(-table.num_rows // step)):
                pq.write_table(table.slice(number * step, step), made / f"{number:02}.parquet")
        else:
            pq.write_table(table, made, row_group_size=table.num_rows if name == "one row group" else 1000)
        made.rename(path)
    return path


def layouts(settings: Settings) -> Items:
    """Reading and jobs of the CPU by number of threads, jobs on three layouts of a text, and text that is in memory."""
    threads = [n for n in (1, 2, 4, 8, 16) if n <= most_threads()]
    items: Items = {"text in memory": partial(_in_memory, settings)}
    items |= {f"dedup of {name}": partial(_deduplicated, settings, name) for name in LAYOUTS}
    items |= {f"dedup by {n} thread{'s' * (n > 1)} of the CPU": partial(_on_threads, settings, n) for n in threads}
    items |= {f"reading by {n} thread{'s' * (n > 1)}": partial(_reading, settings, n) for n in threads}
    return items | {f"reading of {name}": partial(_read_as_pyarrow, settings, name) for name in LAYOUTS}


@cache
def _median_on_threads(path: Path, threads: int) -> float:
    times = []
    for _ in range(4):
        start = time.perf_counter()
        nd.dedup(path, text_columns="text", engine=nd.Engine(backend="cpu", threads=threads), **METHODS["exact"])
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _on_threads(settings: Settings, threads: int) -> dict[str, Any]:
    """Return the seconds of a job by exact on this number of threads."""
    path = layout(settings, "1,000 rows per group")
    seconds = _median_on_threads(path, threads)
    times = _median_on_threads(path, 1) / seconds
    says = f"{seconds:.2f} s, {times:.1f} times as fast as one thread"
    return {"cpu_s": round(seconds, 4), "times_one_thread": round(times, 2), "says": says}


def _seconds_to_read(path: Path, threads: int | None) -> tuple[float, int]:
    """Return the seconds that reading takes, without any work on the text, and the bytes of text."""
    start, num_bytes = time.perf_counter(), 0
    with on_threads(threads):
        for batch in open_documents(path, reading=Reading(text_columns="text")).batches(max_bytes=BATCH):
            num_bytes += int(batch.text.offsets[-1] - batch.text.offsets[0])
    return time.perf_counter() - start, num_bytes


@cache
def _median_reading(path: Path, threads: int | None) -> tuple[float, int]:
    found = [_seconds_to_read(path, threads) for _ in range(4)][1:]
    return statistics.median(seconds for seconds, _ in found), found[0][1]


def _reading(settings: Settings, threads: int) -> dict[str, Any]:
    path = layout(settings, "1,000 rows per group")
    seconds, num_bytes = _median_reading(path, threads)
    times = _median_reading(path, 1)[0] / seconds
    rate = num_bytes / seconds / 1e9
    found = {"ms": round(1e3 * seconds, 2), "gb_per_s": round(rate, 3), "times_one_thread": round(times, 2)}
    return {**found, "says": f"{rate:.2f} GB/s, {times:.1f} times one thread"}


def _read_as_pyarrow(settings: Settings, name: str) -> dict[str, Any]:
    """Return the time to read a layout with all threads, and pyarrow's own."""
    path = layout(settings, name)
    seconds, num_bytes = _median_reading(path, None)
    whole = []
    for _ in range(4):
        start = time.perf_counter()
        table = pq.read_table(path, columns=["text"])
        whole.append(time.perf_counter() - start)
    theirs = statistics.median(whole[1:])
    found = {"ms": round(1e3 * seconds, 2), "pyarrow_ms": round(1e3 * theirs, 2), "gb_per_s": num_bytes / seconds / 1e9}
    expected = sum(chunk.buffers()[-1].size for chunk in table["text"].chunks)
    if num_bytes > expected:
        found |= {"verdict": "wrong", "reason": f"{num_bytes:,} bytes of text were read; pyarrow reads {expected:,}"}
    return {
        **found,
        "says": f"{num_bytes / seconds / 1e9:.2f} GB/s; pyarrow's read_table {num_bytes / theirs / 1e9:.2f}",
    }


def _deduplicated(settings: Settings, name: str) -> dict[str, Any]:
    return _job(settings, layout(settings, name), METHODS["minhash"], 3)


def _job(settings: Settings, path: Path, options: dict[str, Any], repeat: int, output: bool = False) -> dict[str, Any]:
    """Return the seconds of `dedup` by each backend, and whether they decide alike."""
    times: dict[str, list[float]] = {}
    results, folder = {}, settings.out / f"output.{os.getpid()}"
    for backend in backends(settings):
        for number in range(repeat + (repeat > 1)):  # the first run loads what later runs find loaded
            shutil.rmtree(folder, ignore_errors=True)
            start = time.perf_counter()
            results[backend] = nd.dedup(
                path, text_columns="text", engine=backend, output=folder if output else None, **options
            )
            seconds = time.perf_counter() - start
            times[backend] = [*times.get(backend, []), seconds] if number or repeat == 1 else []
    shutil.rmtree(folder, ignore_errors=True)
    found = compared(settings, times)
    found["text_bytes"] = results["cpu"].report["counts"]["text_bytes"]
    if not settings.cpu:
        found["device"], found["timings"] = results["gpu"].report["device"], results["gpu"].report["timings"]
        if results["gpu"].documents != results["cpu"].documents:
            found |= {"verdict": "wrong", "reason": "decisions of gpu and cpu differ"}
    return found


def _in_memory(settings: Settings) -> dict[str, Any]:
    """Return the time from text in the host's memory to supershingles."""
    text, times, keys = text_of(settings, TEXT_BYTES), {}, {}
    for backend in backends(settings):
        each = []
        for _ in range(1 if simulated() else 6):
            start = time.perf_counter()
            shingles = nd.stages.shingle(nd.stages.tokenize(text, RECIPE, backend=backend), RECIPE, backend=backend)
            signatures = RECIPE.method.sketch(shingles, seed=RECIPE.seed, backend=backend)
            keys[backend] = to_host(RECIPE.method.keys(signatures, seed=RECIPE.seed, backend=backend))
            each.append(time.perf_counter() - start)
        times[backend] = each[-5:]
    found = compared(settings, times, 6)
    found |= {f"{name}_ms": round(1e3 * found[f"{name}_s"], 3) for name in times}
    if not settings.cpu and not selftest.same(keys["cpu"], keys["gpu"]):
        found |= {"verdict": "wrong", "reason": "supershingles of gpu and cpu differ"}
    return found


# --------------------------------------------------------------------------------------------------------------- jobs

PART = 250_000_000  # bytes of text of a file


def corpus(settings: Settings, gigabytes: float) -> Path:
    """Return a folder of files with this much text. Each file is drawn anew: only its own documents are alike."""
    path = settings.out / f"{settings.scale:g} {gigabytes:g} GB"
    if not path.exists():
        made = path.with_name(f"{os.getpid()} {path.name}")
        made.mkdir()

        def written(number: int) -> None:
            table = table_of(text_of(settings, PART, seed=number + 1))
            pq.write_table(table, made / f"{number:02}.parquet", row_group_size=1000, compression="snappy")

        with ThreadPoolExecutor(min(4, most_threads())) as pool:
            list(pool.map(written, range(max(1, round(gigabytes * 1e9 / PART)))))
        made.rename(path)
    return path


def jobs(settings: Settings) -> Items:
    """Jobs of 4 and 10 GB by each method, with output, and with one thing changed; sketches; processes of their own."""
    items: Items = {}
    for gigabytes in (4, 10):
        for name, options in METHODS.items():
            items[f"{gigabytes} GB, {name}"] = lambda g=gigabytes, o=options: _job(settings, corpus(settings, g), o, 1)
        items[f"{gigabytes} GB, sketch"] = partial(_sketched, settings, gigabytes)
        if gigabytes == 4:
            for size in (0.5, 1, 2, 4):
                items[f"cold, {size:g} GB"] = partial(_cold, settings, size)
            items["4 GB, exact, spilled to the host"] = partial(_varied, settings, "exact", gpu_memory="4GB")
            stream = partial(_varied, settings, "exact", stream=True, gpu_memory="4GB")
            items["4 GB, exact, a stream that is spilled to a file"] = stream
            for name in ("minhash", "sketch"):
                items[f"4 GB, {name}, one batch at a time"] = partial(_varied, settings, name, alone=True)
            items["4 GB, minhash, batches of 12 MiB"] = partial(_varied, settings, "minhash", batch_bytes=12 << 20)
        for name, options in METHODS.items():
            items[f"{gigabytes} GB, {name}, with output"] = lambda g=gigabytes, o=options: _job(
                settings, corpus(settings, g), o, 1, True
            )
    return items


def _sketched(settings: Settings, gigabytes: float) -> dict[str, Any]:
    path, times, files = corpus(settings, gigabytes), {}, {}
    for backend in backends(settings):
        files[backend] = settings.out / f"sketches.{backend}.parquet"
        start = time.perf_counter()
        sketches.sketch(path, files[backend], text_columns="text", engine=backend, overwrite=True, **METHODS["minhash"])
        times[backend] = [time.perf_counter() - start]
    found = compared(settings, times)
    found["sketch_bytes"] = files["cpu"].stat().st_size
    if not settings.cpu and files["gpu"].read_bytes() != files["cpu"].read_bytes():
        found |= {"verdict": "wrong", "reason": "sketches of gpu and cpu differ"}
    for file in files.values():
        file.unlink()
    return found


def _varied(settings: Settings, name: str, alone: bool = False, stream: bool = False, **engine: Any) -> dict[str, Any]:
    """Return how many times as long 4 GB take with one thing changed.

    Parameters
    ----------
    alone : bool
        Compute one batch at a time.
    stream : bool
        Give the documents as a stream, which cannot be read twice.
    engine : dict
        Options of the engine.
    """
    if settings.cpu:
        raise NotRun("only a GPU does otherwise")
    path, seconds, file = corpus(settings, 4), [], settings.out / "varied.parquet"
    for changed in (False, True):
        source: Any = iter(dataset(path).to_batches()) if changed and stream else path
        options = {"text_columns": "text", "engine": nd.Engine(backend="gpu", **(engine if changed else {}))}
        with ExitStack() as stack:
            if changed and alone:
                one = lambda runtime, run, pieces, begin: runtime.map(run, pieces)  # noqa: E731
                stack.enter_context(mock.patch.object(GpuRuntime, "_two_at_a_time", one))
            start = time.perf_counter()
            if name == "sketch":
                sketches.sketch(source, file, overwrite=True, **options, **METHODS["minhash"])
            else:
                nd.dedup(source, **options, **METHODS[name])
            seconds.append(time.perf_counter() - start)
    file.unlink(missing_ok=True)
    found = {"usual_s": round(seconds[0], 3), "changed_s": round(seconds[1], 3)}
    ratio = seconds[1] / seconds[0]
    return {**found, "times_usual": round(ratio, 3), "says": f"{seconds[1]:.2f} s, {ratio:.2f} times as long as usual"}


COLD = """
import json, sys, time
import neardup_gpu as nd
nd.dedup(sys.argv[1], text_columns="text", engine=sys.argv[2], method=nd.MinHash(filter="altavista"))
"""


def _cold(settings: Settings, gigabytes: float) -> dict[str, Any]:
    """Return the seconds of a job in a process of its own, from its start to its end."""
    path, times = corpus(settings, gigabytes), {}
    for backend in backends(settings):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", COLD, str(path), backend], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        times[backend] = [time.perf_counter() - start]
    return compared(settings, times)


STEPS: dict[str, Callable[[Settings], Items]] = {"layouts": layouts, "jobs": jobs}
