"""Candidates in an index by ready keys, as stored_keys.py asks other stores for them: no text, and nothing verified.

python index_keys.py FOLDER QUERIES.npy FOUND.json
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from neardup_gpu import Ragged
from neardup_gpu.engine.settings import Engine
from neardup_gpu.index.finding import Finder, finder_of
from neardup_gpu.index.opened import Opened
from neardup_gpu.index.sketches import Sketched
from neardup_gpu.index.snapshot import WITHOUT_END, Snapshot


def ask(finder: Finder, snapshot: Snapshot, keys: np.ndarray) -> list[list[int]]:
    """Candidates of each row of keys."""
    number = len(keys)
    nothing = Ragged(np.empty(0, np.uint64), np.zeros(number + 1, np.int64))
    asked = Sketched(np.zeros((number, 2), np.uint64), np.ones(number, np.int64), keys, nothing)
    never, ever = np.zeros(number, np.int64), np.full(number, WITHOUT_END)
    found = finder.first(snapshot, asked, never, ever, int(WITHOUT_END))
    if number == 1:
        return [found.entries.tolist()]
    return [some.tolist() for some in np.split(found.entries, np.searchsorted(found.asked, np.arange(1, number)))]


def main() -> None:
    """Ask one by one, then for all at a time; print JSON."""
    queries = np.load(sys.argv[2])
    opened = Opened(Path(sys.argv[1]), Engine(backend="cpu"))
    finder = finder_of(opened.recipe, opened.manifest.keeps)
    with opened.alone() as runtime:
        _, snapshot = opened.snapshot(runtime)
        for query in range(len(queries) // 2):
            ask(finder, snapshot, queries[query : query + 1])
        found, seconds = [], []
        for query in range(len(queries)):
            begin = time.perf_counter()
            found += ask(finder, snapshot, queries[query : query + 1])
            seconds.append(time.perf_counter() - begin)
    with opened.running() as runtime:
        ask(finder, snapshot, queries)
        begin = time.perf_counter()
        together = ask(finder, snapshot, queries)
        all_together = time.perf_counter() - begin
    assert together == found, "queries that are asked together find something else"
    Path(sys.argv[3]).write_text(json.dumps(found))
    times = {"ask_us": float(np.median(seconds)), "together_us": all_together / len(queries)}
    print(json.dumps({name: 1e6 * each for name, each in times.items()}))


if __name__ == "__main__":
    main()
