"""Documents added to an index, and decided of where asked for, after a small one for which kernels are compiled.

python index_added.py SOURCE.parquet FOLDER COMMIT_EVERY THRESHOLD [decide]
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

import pyarrow as pa

import neardup_gpu


def written() -> int | None:
    """Bytes that this process has sent to the disk, or will have, as Linux counts them; None elsewhere."""
    try:
        with open("/proc/self/io") as file:
            return int(dict(line.split(": ") for line in file.read().splitlines())["write_bytes"])
    except OSError:
        return None


def grown(source: Any, folder: str, commit_every: int, decide: bool) -> dict[str, Any]:
    """Seconds to add everything and to decide, and what there is then."""
    begin = time.perf_counter()
    with neardup_gpu.Index.create(folder, threshold=float(sys.argv[4])) as index:
        index.add(source, text_columns="text", commit_every=commit_every)
        added = time.perf_counter()
        kept = index.decide().report["counts"]["kept"] if decide else None
        seconds = {"add_seconds": added - begin, "seconds": time.perf_counter() - begin}
        counts = {name: index.info()[name] for name in ("documents", "entries", "segments", "bytes", "pairs")}
        return {**seconds, "kept": kept, **counts}


def main() -> None:
    """Add, decide, print JSON."""
    words = [" ".join(f"w{(page * 7919 + i) % 997}" for i in range(60)) for page in range(300)]
    decide = len(sys.argv) > 5
    with tempfile.TemporaryDirectory() as scratch:
        small = pa.table({"text": words + [f"{text} end" for text in words]})
        grown(small, os.path.join(scratch, "index"), 75, decide)
    before, busy = written(), time.process_time()
    found = grown(sys.argv[1], sys.argv[2], int(sys.argv[3]), decide)
    found["cpu_seconds"], after = time.process_time() - busy, written()
    print(json.dumps({**found, "written": None if before is None or after is None else after - before}))


if __name__ == "__main__":
    main()
