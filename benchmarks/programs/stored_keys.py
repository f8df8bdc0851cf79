"""Keys of documents in another store, added so many at a time and asked for one by one.

python stored_keys.py sqlite|lmdb|datasketch KEYS.npy QUERIES.npy COMMIT_EVERY FOLDER

KEYS and QUERIES have a row for each document and a column for each table; for datasketch, samples, a row for each
document. A candidate shares a key. SQLite and LMDB sync at each commit; what datasketch holds ends with the process.
Standard output: JSON. FOLDER/found.json: the rows that were found of each query.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

BANDS, WIDTH = 20, 7


class SQLite:
    """A table in the order of (number of the table, key, row)."""

    def __init__(self, folder: Path) -> None:
        self.version = sqlite3.sqlite_version
        self.open = sqlite3.connect(folder / "keys.sqlite", isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -1000000"):
            self.open.execute(f"PRAGMA {setting}")
        columns = "place INTEGER, key INTEGER, row INTEGER, PRIMARY KEY (place, key, row)"
        self.open.execute(f"CREATE TABLE keys ({columns}) WITHOUT ROWID")

    def add(self, first: int, keys: np.ndarray) -> None:
        """Sorted, as that is faster."""
        self.open.execute("BEGIN")
        for place, column in enumerate(keys.view(np.int64).T):
            order = np.argsort(column)
            some = zip(column[order].tolist(), (first + order).tolist(), strict=True)
            self.open.executemany(f"INSERT INTO keys VALUES ({place}, ?, ?)", some)
        self.open.execute("COMMIT")

    def ask(self, keys: np.ndarray) -> set[int]:
        """One statement for each key."""
        found: set[int] = set()
        for pair in enumerate(keys.view(np.int64).tolist()):
            found.update(row for (row,) in self.open.execute("SELECT row FROM keys WHERE place = ? AND key = ?", pair))
        return found


class LMDB:
    """A tree of (number of the table, key), which has rows."""

    def __init__(self, folder: Path) -> None:
        import lmdb

        self.version = version("lmdb")
        self.open = lmdb.open(str(folder / "lmdb"), map_size=1 << 38, max_dbs=1)
        self.keys = self.open.open_db(b"keys", dupsort=True, dupfixed=True)

    def add(self, first: int, keys: np.ndarray) -> None:
        """Sorted, as that is faster."""

        def items() -> Iterator[tuple[bytes, bytes]]:
            for place, column in enumerate(keys.T):
                order = np.argsort(column)
                for key, row in zip(column[order].tolist(), (first + order).tolist(), strict=True):
                    yield bytes([place]) + key.to_bytes(8, "big"), row.to_bytes(4, "big")

        with self.open.begin(write=True, db=self.keys) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(items(), dupdata=True)

    def ask(self, keys: np.ndarray) -> set[int]:
        """All keys in one call."""
        names = [bytes([place]) + key.to_bytes(8, "big") for place, key in enumerate(keys.tolist())]
        with self.open.begin(db=self.keys) as transaction, transaction.cursor() as cursor:
            return {int.from_bytes(row, "big") for _, row in cursor.getmulti(names, dupdata=True)}


class DataSketch:
    """Its tables in memory, of as many bands of samples."""

    def __init__(self, folder: Path) -> None:
        from datasketch import MinHashLSH

        del folder
        self.version = version("datasketch")
        self.open = MinHashLSH(num_perm=BANDS * WIDTH, params=(BANDS, WIDTH))

    def add(self, first: int, samples: np.ndarray) -> None:
        """One by one."""
        for row, some in enumerate(samples, first):
            self.open.insert(row, sketch(some), check_duplication=False)

    def ask(self, samples: np.ndarray) -> set[int]:
        """Of one."""
        return set(self.open.query(sketch(samples)))


def sketch(samples: np.ndarray) -> Any:
    """Samples as datasketch takes them."""
    from datasketch import LeanMinHash

    return LeanMinHash(seed=1, hashvalues=samples, scheme="legacy")


def main() -> None:
    """Add, ask, print JSON."""
    keys, queries, every, folder = np.load(sys.argv[2]), np.load(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])
    store = {"sqlite": SQLite, "lmdb": LMDB, "datasketch": DataSketch}[sys.argv[1]](folder)
    begin = time.perf_counter()
    for first in range(0, len(keys), every):
        store.add(first, keys[first : first + every])
    added = time.perf_counter()
    for query in queries[: len(queries) // 2]:
        store.ask(query)
    found, seconds = [], 0.0
    for query in queries:
        asking = time.perf_counter()
        found.append(store.ask(query))
        seconds += time.perf_counter() - asking
    (folder / "found.json").write_text(json.dumps([sorted(some) for some in found]))
    size = sum(os.path.getsize(path) for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    times = {"add_seconds": added - begin, "ask_us": 1e6 * seconds / len(queries)}
    print(json.dumps({"version": store.version, "bytes": size, **times}))


main()
