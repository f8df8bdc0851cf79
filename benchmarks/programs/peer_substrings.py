"""Remove repeated substrings as a peer does, in its own environment, and print what that took as a line of JSON.

    python peer_substrings.py PEER CORPUS COLUMN REPEATED_BYTES LENGTH FOLDER

Both peers leave the search to google's deduplicate-text-datasets. Here the program REPEATED_BYTES searches in its place
(see repeated_bytes.c). Everything else is the code of the peer. FOLDER gets the texts that are left, in left.parquet.
`across` counts ranges that the peer was given with bytes of two documents.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def text_dedup(texts: list[str], program: list[str], length: int, folder: Path) -> dict[str, Any]:
    """Do the steps of `text_dedup.suffix_array`: join texts, find ranges of bytes, divide them, cut."""
    from text_dedup.suffix_array import clean_up, restore_and_merge

    start, bounds = clock(), [slice(0, 0)]
    with open(folder / "texts", "wb") as file:
        for text in texts:
            begin = bounds[-1].stop
            bounds.append(slice(begin, begin + file.write(text.encode())))
    bounds = bounds[1:]
    search([*program, str(folder / "texts"), str(length)], folder / "ranges")
    found, _ = restore_and_merge(bounds, folder / "ranges", length)
    left = [clean_up(text, cuts) for text, cuts in zip(texts, found, strict=True)]
    pq.write_table(pa.table({"text": left}), folder / "left.parquet")
    return {**since(start), "length": f"{length} bytes", **ranges(folder / "ranges", [each.stop for each in bounds])}


def datatrove(texts: list[str], program: list[str], length: int, folder: Path) -> dict[str, Any]:
    """Do the steps of `datatrove.pipeline.dedup.exact_substrings`, a task for each processor.

    Its tokens are those of a byte-level BPE of 32,000 tokens. One is trained on the texts, before the clock starts.
    """
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import ESDatasetToSequence, ESMergeSequences, ESRangeRemover
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter
    from tokenizers import ByteLevelBPETokenizer

    trained, tasks = ByteLevelBPETokenizer(), os.cpu_count() or 1
    trained.train_from_iterator(texts[::10], 32_000, show_progress=False)
    trained.save(str(folder / "tokenizer"))
    (folder / "input").mkdir()
    for task in range(tasks):
        first, last = (len(texts) * end // tasks for end in (task, task + 1))
        table = pa.table({"id": [f"{row:09d}" for row in range(first, last)], "text": texts[first:last]})
        pq.write_table(table, folder / "input" / f"{task}.parquet")
    words, sequences, tokenizer = (
        sum(len(text.split()) for text in texts),
        str(folder / "found"),
        str(folder / "tokenizer"),
    )
    reader = ParquetReader(str(folder / "input"))

    def step(name: str, number: int, *steps: Any) -> None:
        logs = str(folder / "logs" / name)
        LocalPipelineExecutor([*steps], number, number, logging_dir=logs, start_method="spawn").run()

    start = clock()
    step("sequence", tasks, reader, ESDatasetToSequence(sequences, tokenizer))
    step("merge", 1, ESMergeSequences(sequences, tasks))
    joined = next((folder / "found").glob("*.big_sequence"))
    least = 2 * round(length * joined.stat().st_size / 2 / words)
    search([*program, str(joined), str(least)], folder / "found" / "dataset.bytearange")
    step("remove", tasks, reader, ESRangeRemover(sequences, tokenizer, 1), ParquetWriter(str(folder / "kept")))
    taken = since(start)
    kept = pq.read_table(folder / "kept", columns=["id", "text"]).sort_by("id")
    left = dict(zip(*kept.to_pydict().values(), strict=True))
    pq.write_table(
        pa.table({"text": [left.get(f"{row:09d}", "") for row in range(len(texts))]}), folder / "left.parquet"
    )
    sizes = [np.fromfile(path, np.int64) for path in sorted((folder / "found").glob("*.es_sequence.size"))]
    ends = np.cumsum(np.concatenate(sizes))
    return {
        **taken,
        "length": f"{least // 2} tokens of BPE",
        **ranges(folder / "found" / "dataset.bytearange", ends, 12),
    }


def clock() -> tuple[float, float]:
    """Return the time, and the CPU seconds that this process and its ended children have taken."""
    return time.perf_counter(), sum(os.times()[:4])


def since(start: tuple[float, float]) -> dict[str, float]:
    """Return the seconds since a time."""
    seconds, cpu = (now - then for now, then in zip(clock(), start, strict=True))
    return {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2)}


def search(command: list[str], output: Path) -> None:
    """Run the search and save what it prints."""
    with open(output, "wb") as file:
        subprocess.run(command, check=True, stdout=file)


def ranges(path: Path, ends: Any, divider: int = 0) -> dict[str, int]:
    """Count the ranges in a file, and those with bytes of two documents, which end at `ends`.

    The first `divider` bytes of a document are none of its text.
    """
    lines = path.read_text().split("\n")[1:-1]
    begin, end = np.array([line.split() for line in lines], np.int64).reshape(-1, 2).T
    first = np.searchsorted(ends, begin, side="right")
    last = np.searchsorted(np.asarray(ends) + divider, end - 1, side="right")
    return {"ranges": len(begin), "across": int((first < last).sum())}


PEERS = {"text-dedup": text_dedup, "datatrove": datatrove}


def main() -> None:
    peer, corpus, column, program, length, folder = sys.argv[1:]
    texts = [text or "" for text in pq.read_table(corpus, columns=[column])[column].to_pylist()]
    found = PEERS[peer](texts, [program], int(length), Path(folder))
    processes = [resource.RUSAGE_CHILDREN] + [resource.RUSAGE_SELF] * (peer == "text-dedup")  # which works in this one
    peak = max(resource.getrusage(who).ru_maxrss for who in processes)
    print(json.dumps({"version": importlib.metadata.version(peer), "peak_bytes": 1024 * peak, **found}))


if __name__ == "__main__":
    main()
