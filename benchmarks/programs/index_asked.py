"""Queries of an index, one by one and together, in a process of its own.

python index_asked.py FOLDER [QUERIES.parquet [merge]]

QUERIES has columns text, and near: the id of the document that a text is near, or -1. Its first half warms up, the
second half is timed. Without queries the index is opened only; with "merge" texts are asked one by one for as long as
another process merges all segments of the index.
"""

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neardup_gpu

MERGE = """
import sys, neardup_gpu
index = neardup_gpu.Index.open(sys.argv[1])
print("begins", flush=True)
index.compact()
"""


def resident() -> float:
    """Megabytes of memory that hold no mapped files; NaN where the system does not say."""
    try:
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file.read().splitlines())
        return int(lines["RssAnon"].split()[0]) * 1024 / 1e6
    except (OSError, KeyError):
        return float("nan")


def one_by_one(index: neardup_gpu.Index, texts: list[str]) -> tuple[list[float], list[list[Any]]]:
    """Milliseconds of each query, and the ids that were found."""
    wall, ids = [], []
    for text in texts:
        begin = time.perf_counter()
        found = index.query(text)
        wall.append(1e3 * (time.perf_counter() - begin))
        ids.append(found["id"].to_pylist())
    return wall, ids


def of_all(wall: list[float]) -> dict[str, float]:
    """Quantiles and the mean."""
    low, high = np.percentile(wall, [50, 99]).tolist()
    return {"p50": low, "p99": high, "mean": float(np.mean(wall)), "queries": len(wall)}


def asked_alone(index: neardup_gpu.Index, timed: pa.Table) -> tuple[dict[str, float], list[list[Any]]]:
    """One by one, and what share of the documents that texts are near was found."""
    busy = time.process_time()
    wall, ids = one_by_one(index, timed["text"].to_pylist())
    cpu_ms = 1e3 * (time.process_time() - busy) / len(wall)
    there = [row in some for some, row in zip(ids, timed["near"].to_pylist(), strict=True) if row >= 0]
    return {**of_all(wall), "cpu_ms": cpu_ms, "recall": sum(there) / len(there)}, ids


def asked_together(index: neardup_gpu.Index, timed: pa.Table, ids: list[list[Any]]) -> dict[str, float]:
    """All in one call, which has to find the same."""
    begin, busy = time.perf_counter(), time.process_time()
    found = index.query(timed.select(["text"]))
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - busy
    together: list[list[Any]] = [[] for _ in ids]
    for query, id in zip(found["query_id"].to_pylist(), found["id"].to_pylist(), strict=True):
        together[query].append(id)
    assert together == ids, "texts that are asked together find something else"
    return {"together_us": 1e6 * seconds / len(timed), "together_cpu_us": 1e6 * cpu_seconds / len(timed)}


def asked_while_merging(index: neardup_gpu.Index, folder: str, timed: pa.Table) -> dict[str, float]:
    """One by one, some at a time, until the other process has ended."""
    texts, wall = timed["text"].to_pylist(), []
    with subprocess.Popen([sys.executable, "-c", MERGE, folder], stdout=subprocess.PIPE) as merging:
        assert merging.stdout is not None
        merging.stdout.readline()
        while merging.poll() is None:
            wall += one_by_one(index, texts[:20])[0]
            texts = texts[20:] + texts[:20]
    if merging.returncode:
        raise SystemExit("merging failed")
    return of_all(wall)


def main() -> None:
    """Open, ask, print JSON."""
    before, begin = resident(), time.perf_counter()
    index = neardup_gpu.Index.open(sys.argv[1])
    said: dict[str, float] = {"open_ms": 1e3 * (time.perf_counter() - begin), "resident_mb": resident() - before}
    if len(sys.argv) > 2:
        table = pq.read_table(sys.argv[2])
        warm, timed = table.slice(0, len(table) // 2), table.slice(len(table) // 2)
        one_by_one(index, warm["text"].to_pylist())
        if len(sys.argv) > 3:
            said |= asked_while_merging(index, sys.argv[1], timed)
        else:
            found, ids = asked_alone(index, timed)
            index.query(warm.select(["text"]))
            said |= found | asked_together(index, timed, ids)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
