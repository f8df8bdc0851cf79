"""Rows of (key, row) in Parquet files sorted by key, by two processes: with our exchange, or by Ray Data.

python sorted_rows.py FOLDER WORK exchange|ray

Ours lie in files of WORK at the end, Ray Data's in its object store. The order is checked, outside of the time.
"""

import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("key", pa.uint64()), ("row", pa.int64())])
BITS = 4
BATCH_ROWS, WAITING_BYTES = 1 << 20, 1 << 27
WORKERS = 2


def ready() -> None:
    """Import what the others need, which is not timed."""
    import neardup_gpu.store.exchange  # noqa: F401


def spread(work: str, path: str, name: str) -> None:
    """Divide the rows of a file by the upper bits of their keys."""
    from neardup_gpu.store.exchange import ExchangeWriter
    from neardup_gpu.store.places import Place

    with ExchangeWriter(Place.of(work), name, SCHEMA, 1 << BITS, WAITING_BYTES) as writer:
        for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS):
            key, row = (batch[name].to_numpy() for name in SCHEMA.names)
            writer.add((key >> np.uint64(64 - BITS)).astype(np.int64), {"key": key, "row": row})


def order(work: str, names: list[str], part: int) -> str:
    """Sort the rows of a part; the file that they are in."""
    from neardup_gpu.store.exchange import read_arrays
    from neardup_gpu.store.places import Place

    found = read_arrays(Place.of(work), names, part, SCHEMA)
    places = np.argsort(found["key"], kind="stable")
    table = pa.table({name: found[name][places] for name in SCHEMA.names})
    path = f"{work}/{part:03}.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


def by_exchange(files: list[str], work: str) -> tuple[float, list[np.ndarray]]:
    """Seconds, and the sorted keys in parts."""
    import sorted_rows  # so that workers find the functions

    from neardup_gpu.engine.local import LocalWorkers
    from neardup_gpu.engine.tasks import Task

    def run(function, *arguments):
        tasks = [Task(function.__name__, number, function, each) for number, each in enumerate(arguments)]
        return {task.number: result for task, result in workers.run(tasks)}

    with LocalWorkers(WORKERS) as workers:
        run(sorted_rows.ready, *[()] * WORKERS)
        begin = time.perf_counter()
        names = [f"spread/{number}" for number in range(len(files))]
        run(sorted_rows.spread, *((work, file, name) for file, name in zip(files, names, strict=True)))
        parts = run(sorted_rows.order, *((work, names, part) for part in range(1 << BITS)))
        seconds = time.perf_counter() - begin
    return seconds, [pa.ipc.open_file(parts[part]).read_all()["key"].to_numpy() for part in sorted(parts)]


def by_ray(files: list[str]) -> tuple[float, list[np.ndarray]]:
    """Seconds, and the sorted keys in parts."""
    import ray
    import ray.data

    def read(batch):
        return pq.ParquetFile(batch["path"][0].as_py()).read()

    ray.init("local", num_cpus=WORKERS, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.range(1000).sort("id").materialize()  # in which processes are started
    begin = time.perf_counter()
    paths = ray.data.from_items([{"path": file} for file in files], override_num_blocks=len(files))
    rows = paths.map_batches(read, batch_format="pyarrow", batch_size=None).sort("key").materialize()
    seconds = time.perf_counter() - begin
    return seconds, [batch["key"] for batch in rows.iter_batches(batch_format="numpy", batch_size=None)]


if __name__ == "__main__":
    folder, work, which = sys.argv[1:]
    files = sorted(str(path) for path in Path(folder).glob("*.parquet"))
    seconds, parts = by_exchange(files, work) if which == "exchange" else by_ray(files)
    keys = np.concatenate(parts)
    assert len(keys) == sum(pq.read_metadata(file).num_rows for file in files) and (keys[1:] >= keys[:-1]).all()
    print(json.dumps({"sorted_in": seconds}))
