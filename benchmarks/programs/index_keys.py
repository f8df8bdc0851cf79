"""Candidates in an index by ready keys, as stored_keys.py asks other stores for them: no text, and nothing verified.

python index_keys.py FOLDER QUERIES.npy FOUND.json
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from neardup_gpu.engine.settings import Engine
from neardup_gpu.index.opened import Opened
from neardup_gpu.methods.finding.contract import WITHOUT_END, EntryRange, SketchedEntries
from neardup_gpu.stages import Ragged


def documents(keys: np.ndarray) -> tuple[SketchedEntries, EntryRange]:
    """What finders are asked: documents of which nothing is known but keys, and which entries may be found."""
    number = len(keys)
    nothing = Ragged(np.empty(0, np.uint64), np.zeros(number + 1, np.int64))
    asked = SketchedEntries(np.zeros((number, 2), np.uint64), np.ones(number, np.int64), keys, nothing)
    return asked, EntryRange(np.zeros(number, np.int64), np.full(number, WITHOUT_END), int(WITHOUT_END))


def main() -> None:
    """Ask one by one, then for all at a time; print JSON."""
    queries = np.load(sys.argv[2])
    opened = Opened(Path(sys.argv[1]), Engine(backend="cpu"))
    finder = opened.finder
    with opened.alone() as runtime:
        _, snapshot = opened.snapshot(runtime)
        each = [documents(queries[query : query + 1]) for query in range(len(queries))]
        for asked in each[: len(each) // 2]:
            finder.first(snapshot, *asked)
        found, seconds = [], 0.0
        for asked in each:
            begin = time.perf_counter()
            found.append(finder.first(snapshot, *asked).entries.tolist())
            seconds += time.perf_counter() - begin
    with opened.running():
        everything = documents(queries)
        finder.first(snapshot, *everything)
        begin = time.perf_counter()
        numbers, entries = finder.first(snapshot, *everything)
        all_together = time.perf_counter() - begin
    together = np.split(entries, np.searchsorted(numbers, np.arange(1, len(queries))))
    assert [some.tolist() for some in together] == found, "queries that are asked together find something else"
    Path(sys.argv[3]).write_text(json.dumps(found))
    times = {"ask_us": seconds / len(queries), "together_us": all_together / len(queries)}
    print(json.dumps({name: 1e6 * each for name, each in times.items()}))


if __name__ == "__main__":
    main()
