"""Compare `neardup substrings` with other tools for repeated substrings: time, memory, and what each of them loses.

    python -m benchmarks.substring_peers CORPUS.parquet [--column text] [--length 50] [--cache FOLDER] [--output FILE]

All tools look for passages of about `--length` words in one corpus, one after another:

- neardup: the command, a whole process, with one thread and with all.
- suffix array: programs/repeated_bytes.c, which has to be compiled with libdivsufsort (Debian: libdivsufsort-dev).
  It sorts all bytes, divided at documents, and strikes each passage that occurs twice. Only the search is timed.
- text-dedup, datatrove: their own steps, in environments of their own; see programs/peer_substrings.py. Both leave the
  search to google's deduplicate-text-datasets. The C program searches in its place, so this is faster than theirs.
- google's tool itself: it is in no package registry, so it is named and not run.

A judge that shares nothing with the tools compares the texts before and after, as words of `\\w+`, in lower case:

- removed: share of the words that are gone.
- lost: share of the words of which no copy is left: no 10 words of the document that have the word stand anywhere in
  the text that is left. Words next to a cut, in less than 10 words that are left, count too, so it is a little above 0
  for a tool that loses nothing.
- made: words that a document has after, and did not have before, or not so often. A cut made them from parts of words.
- across: ranges that were struck out with bytes of two documents.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .measure import PROGRAMS, launch
from .peers import NEEDS, WORDS, ensure_venv, requirement
from .run import machine

CONTEXT = 10
"""Words that have to be left together, to count as a copy of each."""
NOT_RUN = {
    "google's deduplicate-text-datasets": "not built: a Rust program in no package registry, whose crates cannot be "
    "fetched without one; its definition is that of the suffix array here"
}


def compile_search(folder: Path) -> Path:
    """Compile the suffix array and return the program."""
    program = folder / "repeated_bytes"
    command = ["cc", "-O2", "-o", str(program), str(PROGRAMS / "repeated_bytes.c"), "-ldivsufsort"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"repeated_bytes.c does not compile; install libdivsufsort-dev: {done.stderr.splitlines()[0]}")
    return program


def by_neardup(corpus: Path, column: str, length: int, threads: int, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the texts that `neardup substrings` leaves, and what it took."""
    table = pq.read_table(corpus, columns=[column])
    pq.write_table(table.append_column("row", pa.array(range(len(table)))), folder / "numbered.parquet")
    options = [
        "--id-column",
        "row",
        "--text-column",
        column,
        "--length",
        length,
        "--threads",
        threads,
        "--engine",
        "cpu",
    ]
    command = [sys.executable, "-m", "neardup_gpu", "substrings", folder / "numbered.parquet", "-o", folder / "out"]
    done = launch([*command, *options, "--json"])
    kept = pq.read_table(folder / "out" / "kept", columns=["row", column])
    left = dict(zip(kept["row"].to_pylist(), kept[column].to_pylist(), strict=True))
    counts = json.loads(done["stdout"])["counts"]
    took = _took(done)
    about = {"version": version("neardup_gpu"), "threads": threads, "length": f"{length} words", "across": 0}
    return [left.get(row) or "" for row in range(len(table))], {**about, **took, "ranges": counts["passages"]}


def by_suffix_array(texts: list[str], program: Path, length: int, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the texts without the bytes that repeat, and what the search took."""
    coded = [text.encode().replace(b"\0", b" ") for text in texts]
    (folder / "texts").write_bytes(b"\0".join(coded))
    done = launch([program, folder / "texts", length, 0])
    ranges = np.array([line.split() for line in done["stdout"].split("\n")[1:-1]], np.int64).reshape(-1, 2)
    begins = np.append(0, np.cumsum([len(text) + 1 for text in coded]))
    owner = np.searchsorted(begins, ranges[:, 0], side="right") - 1
    for (begin, end), row in zip(ranges[::-1], owner[::-1], strict=True):
        coded[row] = coded[row][: begin - begins[row]] + coded[row][end - begins[row] :]
    took = _took(done)
    about = {"version": "libdivsufsort 2", "threads": 1, "length": f"{length} bytes", "across": 0}
    return [text.decode(errors="ignore") for text in coded], {**about, **took, "ranges": len(ranges)}


def _took(done: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds and the memory of a process that has ended."""
    seconds = {name: round(done[name], 2) for name in ("seconds", "cpu_seconds")}
    return {**seconds, "peak_mb": round(done["peak_mb"])}


def by_peer(
    peer: str, corpus: Path, column: str, program: Path, length: int, cache: Path, folder: Path
) -> tuple[list[str], dict[str, Any]]:
    """Return the texts that a peer leaves, and what it took."""
    needs = [requirement(package) for package in (peer, "pyarrow", *NEEDS.get(peer, ()))]
    command = [ensure_venv(peer, needs, cache), PROGRAMS / "peer_substrings.py", peer, corpus, column, program]
    found = json.loads(launch([*command, length, folder])["stdout"].splitlines()[-1])
    found["peak_mb"] = round(found.pop("peak_bytes") / 1e6)
    return pq.read_table(folder / "left.parquet")["text"].to_pylist(), found


class Judge:
    """Compares the texts of a corpus with what is left of them.

    Parameters
    ----------
    texts : list of str
    """

    def __init__(self, texts: list[str]) -> None:
        self.numbers: dict[str, int] = {}
        self.words, self.rows = self.read(texts)

    def read(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each word, and that of its document."""
        numbers = self.numbers
        found = [[numbers.setdefault(word, len(numbers)) for word in WORDS.findall(text.lower())] for text in texts]
        sizes = [len(row) for row in found]
        return np.array([word for row in found for word in row], np.int64), np.repeat(np.arange(len(found)), sizes)

    def judge(self, left: list[str]) -> dict[str, float | int]:
        """Return the shares of words that are removed and lost, and the number of words that are made."""
        words, rows = self.read(left)
        windows, begins = windows_of(self.words, self.rows)
        stands = begins[np.isin(windows, windows_of(words, rows)[0])]
        changes = np.zeros(len(self.words) + 1, np.int64)
        changes[stands] += 1
        changes[stands + CONTEXT] -= 1
        number = len(self.numbers)
        known, had = np.unique(self.rows * number + self.words, return_counts=True)
        keys, has = np.unique(rows * number + words, return_counts=True)
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return {
            "removed": round(1 - len(words) / len(self.words), 4),
            "lost": round(float((np.cumsum(changes[:-1]) == 0).mean()), 4),
            "made": int(np.maximum(has - np.where(known[place] == keys, had[place], 0), 0).sum()),
        }


def windows_of(words: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a fingerprint of each CONTEXT words that follow one another in a document, and the first of them.

    >>> windows_of(np.arange(12) % 3, np.zeros(12, np.int64))[1].tolist()
    [0, 1, 2]
    """
    last = len(words) - CONTEXT + 1
    begins = np.flatnonzero(rows[: max(0, last)] == rows[CONTEXT - 1 :])
    found = np.zeros(len(begins), np.uint64)
    for place in range(CONTEXT):
        found = found * np.uint64(0x9E3779B97F4A7C15) + words[begins + place].astype(np.uint64)
    return found ^ found >> np.uint64(29), begins


def run(corpus: Path, column: str, length: int, cache: Path, peers: list[str]) -> dict[str, Any]:
    """Return what each tool took and lost."""
    texts = [text or "" for text in pq.read_table(corpus, columns=[column])[column].to_pylist()]
    judge = Judge(texts)
    size = sum(len(text.encode()) for text in texts)
    in_bytes = round(length * size / len(judge.words))
    tools: dict[str, Callable[[Path], tuple[list[str], dict[str, Any]]]] = {
        "neardup": lambda folder: by_neardup(corpus, column, length, os.cpu_count() or 1, folder),
        "neardup, one thread": lambda folder: by_neardup(corpus, column, length, 1, folder),
    }
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        if peers:
            program = compile_search(Path(scratch))
            tools["suffix array"] = lambda folder: by_suffix_array(texts, program, in_bytes, folder)
        for peer in peers:
            least = in_bytes if peer == "text-dedup" else length
            tools[peer] = partial(by_peer, peer, corpus, column, program, least, cache)
        for name, tool in tools.items():
            folder = Path(scratch) / name
            folder.mkdir()
            left, about = tool(folder)
            rows.append({"tool": name, **about, **judge.judge(left)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return {
        "machine": machine(),
        "corpus": corpus.stem,
        "documents": len(texts),
        "words": len(judge.words),
        "text_bytes": size,
        "tools": rows,
        "not_run": NOT_RUN,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--column", default="text")
    parser.add_argument("--length", type=int, default=50, help="in words")
    parser.add_argument("--peers", default="text-dedup,datatrove", help="names divided by commas")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "neardup-peers")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    peers = [name for name in options.peers.split(",") if name]
    found = json.dumps(run(options.corpus.resolve(), options.column, options.length, options.cache, peers), indent=1)
    if options.output is None:
        print(found)
    else:
        options.output.write_text(found + "\n")


if __name__ == "__main__":
    main()
