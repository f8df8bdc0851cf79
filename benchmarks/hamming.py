"""Time the Hamming-distance problem: all pairs, a scan of existing fingerprints, an index, and faiss beside them.

    python -m benchmarks.hamming --peers

Fingerprints are random, but for PLANTED rows, each a copy of another row with up to 6 bits changed, so that there is
something to find. Answers are compared before anything is timed: with faiss, with one another, or with all pairs of a
sample. Prints a JSON list of figures.

    cpu_seconds      of all threads together, beside the seconds that passed
    peak memory      of a process for it alone, less that of one that makes the same fingerprints and stops
    warm             an index mapped from its file, whose pages the queries before have read
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.hamming import HammingIndex, join, pairs, read_chunks, scan
from neardup_gpu.kernels._cpu import num_threads, set_num_threads

from . import peers
from .measure import PROGRAMS, Bench, figure, figures_of, launch

RADIUS = 3
PLANTED = 10_000
SEED = 0
SIZES = {1_000_000: 0.3, 10_000_000: 5}  # fingerprints of all pairs: seconds that were asked for
INDEXED = 10_000_000
SCANNED = 4 << 23  # fingerprints: four chunks of 64 MB
QUERIES = 1_000_000  # of the scan, the paper's
BATCH = 1000
SINGLE = 2000
SAMPLE = 20_000  # fingerprints compared all with all
FLAT_QUERIES = 200  # that faiss's flat index answers one by one
MOST_QUERIES = 1_000_000  # of all pairs by faiss: of larger sets it is asked for the pairs of so many rows only, once
WIDE, WIDE_RADIUS, TINY = 1_000_000, 12, 1000
MULTIHASH = ("multihash,4,16,0", "multihash,2,32,1")  # both exact for radius 3


def fingerprints(n: int, seed: int = SEED) -> np.ndarray:
    """Random fingerprints, of which some are copies of others with up to 6 bits changed."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, n, np.uint64)
    copies = min(PLANTED, n // 10)
    places = rng.permutation(n)[: 2 * copies]
    words[places[copies:]] = changed(words[places[:copies]], rng)
    return words


def changed(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each word with up to 6 random bits changed."""
    words = words.copy()
    for number in range(1, 7):
        some = rng.integers(0, 7, len(words)) >= number
        words[some] ^= np.uint64(1) << rng.integers(0, 64, some.sum(), np.uint64)
    return words


def timed(repeat: int, run: Callable[[], Any]) -> tuple[list[float], list[float]]:
    """Seconds and processor seconds of some calls, after one that is dropped."""
    seconds, cpu = [], []
    for _ in range(repeat + 1):
        start, busy = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    return seconds[1:], cpu[1:]


def seconds(what: str, taken: tuple[list[float], list[float]], unit: str = "s", **context: Any) -> dict[str, Any]:
    """A figure of wall time, with the median processor time beside it."""
    scale = {"s": 1, "us": 1e6, "ms": 1e3}[unit]
    cpu = float(f"{np.median(taken[1]) * scale:.4g}")
    return figure(what, [t * scale for t in taken[0]], unit, cpu=cpu, threads=num_threads(), **context)


def every_pair(words: np.ndarray) -> np.ndarray:
    """left, right and distance of all pairs, those of identical fingerprints too."""
    found = pairs(words, RADIUS, collapse=False)
    assert found.num_uncompared == 0
    return np.stack([found.left, found.right, found.distance], axis=1)


def check_sample(words: np.ndarray) -> None:
    """All pairs of a sample, found by tables, are those found by comparing all."""
    expected = [row for i in range(len(words)) for row in _near(words, i)]
    assert np.array_equal(every_pair(words), expected), "pairs"


def _near(words: np.ndarray, i: int) -> list[tuple[int, int, int]]:
    distance = np.bitwise_count(words[i] ^ words[i + 1 :])
    return [(i, int(j) + i + 1, int(distance[j])) for j in np.flatnonzero(distance <= RADIUS)]


def faiss_run(
    words: np.ndarray, asked: np.ndarray, radius: int, kind: str, single: int, cache: Path
) -> tuple[dict, Any]:
    """What faiss measured, and its answer: query, row and distance, in lexicographic order."""
    python = peers.ensure_venv("faiss-cpu", [peers.requirement("faiss-cpu")], cache)
    with tempfile.TemporaryDirectory() as scratch:
        paths = [Path(scratch, name) for name in ("words.npy", "asked.npy", "answer.npz")]
        np.save(paths[0], words)
        np.save(paths[1], asked)
        command = [python, PROGRAMS / "faiss_hamming.py", *paths, radius, single, kind]
        done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
        answer = np.load(paths[2])
        return json.loads(done.stdout), np.stack([answer["query"], answer["row"], answer["distance"]], axis=1)


def faiss_figure(what: str, runs: list[dict], key: str, unit: str = "s", divide: int = 1, **context: Any) -> dict:
    """One of the times that faiss measured."""
    scale = {"s": 1, "us": 1e6}[unit] / divide
    if f"{key}_cpu" in runs[0]:
        context["cpu"] = float(f"{np.median([run[f'{key}_cpu'] for run in runs]) * scale:.4g}")
    known = {"threads": runs[0]["threads"] if key == "all" else 1, "version": runs[0]["version"]}
    return figure(what, [run[key] * scale for run in runs], unit, **known, **context)


def matches_of(index: HammingIndex, asked: np.ndarray) -> np.ndarray:
    """query, row and distance of what an index without ids answers, in lexicographic order."""
    rows, distances = index.query(asked)
    found = np.stack([np.repeat(np.arange(len(asked)), rows.sizes), rows.values, distances.values], axis=1)
    return found[np.lexsort((found[:, 1], found[:, 0]))]


# ------------------------------------------------------------------------------------------------------ the parts


def all_pairs(n: int, repeat: int, cache: Path | None) -> list[dict]:
    """All pairs of a set, and of the same set by faiss."""
    words = fingerprints(n)
    found = pairs(words, RADIUS)
    context = {"fingerprints": n, "radius": RADIUS}
    known = {"pairs": len(found.left), "design": str(found.design), "uncompared": found.num_uncompared}
    figures = [seconds("all pairs", timed(repeat, lambda: pairs(words, RADIUS)), **context, **known)]
    alone = PROGRAMS / "pairs_alone.py"
    peak = {what: launch([sys.executable, alone, n, what])["peak_mb"] for what in ("nothing", "pairs")}
    tables, more = found.design.memory(n) / 1e6, peak["pairs"] - peak["nothing"]
    known = {
        "over_all_tables": round(more / tables, 3),
        "over_one_table": round(more * found.design.num_tables / tables, 3),
    }
    figures.append(figure("all pairs, peak memory", [more], "MB", tables_mb=round(tables, 1), **known, **context))
    if cache is None:
        return figures
    ours = every_pair(words)
    asked = words[:MOST_QUERIES]
    ours = ours[ours[:, 0] < len(asked)]
    context["queries"] = len(asked)
    for kind in MULTIHASH[: None if n == len(asked) else 1]:
        runs = []
        for _ in range(min(repeat, 3) if n == len(asked) else 1):
            known, answer = faiss_run(words, asked, RADIUS, kind, 0, cache)
            runs.append(known)
            assert np.array_equal(answer[answer[:, 0] < answer[:, 1]], ours), f"faiss {kind}: other pairs"
        figures.append(faiss_figure(f"all pairs, faiss {kind}", runs, "all", **context))
        figures.append(faiss_figure(f"all pairs, faiss {kind}: build", runs, "build", **context))
    return figures


def scanning(scanned: int, num_queries: int, repeat: int) -> list[dict]:
    """Existing fingerprints from memory and from a file against queries, on one thread and on all."""
    queries, existing = fingerprints(num_queries), fingerprints(scanned, SEED + 1)
    rng, planted = np.random.default_rng(SEED), min(PLANTED, num_queries)
    existing[rng.permutation(scanned)[:planted]] = changed(queries[:planted], rng)
    chunks = np.split(existing, 4)
    found = [np.stack([m.row, m.query], axis=1) for m in scan(chunks, queries, RADIUS)]
    index = HammingIndex(queries, RADIUS)
    some = np.unique(np.concatenate(found)[:2000, 0])
    answer = matches_of(index, existing[some])
    expected = np.concatenate(found)
    expected = expected[np.isin(expected[:, 0], some)]
    assert np.array_equal(np.stack([some[answer[:, 0]], answer[:, 1]], axis=1), expected), "scan and index"
    figures, context = [], {"queries": num_queries, "fingerprints": scanned, "radius": RADIUS}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "existing.npy")
        np.save(path, existing)
        sources: dict[str, Callable[[], Any]] = {"memory": lambda: chunks, "a file": lambda: read_chunks(path)}
        most = num_threads()
        for threads in sorted({1, most}):
            set_num_threads(threads)
            build = timed(repeat, lambda: next(scan([existing[:1]], queries, RADIUS)))
            figures.append(seconds("tables of the queries", build, **context))
            for name, source in sources.items():
                taken = timed(repeat, lambda source=source: sum(len(m.row) for m in scan(source(), queries, RADIUS)))
                start = np.median(build[0])
                rates = [scanned / (t - start) / 1e6 for t in taken[0]]
                known = {"threads": threads, "from": name, "matches": sum(map(len, found))}
                known["million_a_cpu_second"] = float(
                    f"{scanned / (np.median(taken[1]) - np.median(build[1])) / 1e6:.4g}"
                )
                figures.append(figure("scan", rates, "million/s", **known, **context))
        set_num_threads(most)
    return figures


def online(n: int, repeat: int, cache: Path | None) -> list[dict]:
    """An index mapped from its file: one query at a time, a batch, and faiss on the same."""
    words, rng = fingerprints(n), np.random.default_rng(SEED + 2)
    asked = changed(words[rng.integers(0, n, SINGLE)], rng)
    asked[1::2] = rng.integers(0, 2**64, SINGLE // 2, np.uint64)
    batch, context = asked[:BATCH], {"fingerprints": n, "radius": RADIUS}
    figures = [seconds("index: build", timed(min(repeat, 2), lambda: HammingIndex(words, RADIUS)), **context)]
    index = HammingIndex(words, RADIUS)
    known = {"design": str(index.design), "mb": round(index.num_bytes / 1e6, 1)}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "index")
        index.save(path)
        loading = timed(repeat, lambda: HammingIndex.load(path))
        figures.append(seconds("index: open", loading, "ms", **context, **known))
        index = HammingIndex.load(path)
        every = matches_of(index, asked)
        answer = join(words, asked, RADIUS)
        order = np.lexsort((answer.row, answer.query))
        assert np.array_equal(every[:, :2], np.stack([answer.query, answer.row], axis=1)[order]), "index and join"
        one = [index.query(int(word))[0] for word in asked]
        assert np.array_equal(np.sort(np.concatenate(one)), np.sort(every[:, 1])), "one by one and together"
        singles = []
        for _ in range(repeat):
            for word in asked.tolist():
                start = time.perf_counter()
                index.query(word)
                singles.append(time.perf_counter() - start)
        row = figure("index: one query, warm, from Python", [t * 1e6 for t in singles], "us", **context, **known)
        row |= {"percentile_99": float(f"{np.percentile(singles, 99) * 1e6:.4g}")}
        figures.append(row)
        wall, cpu = timed(10 * repeat, lambda: index.query(batch))
        taken = [t / BATCH for t in wall], [t / BATCH for t in cpu]
        figures.append(seconds(f"index: a query of a batch of {BATCH}, warm", taken, "us", **context, **known))
    if cache is None:
        return figures
    for kind in ("flat", *MULTIHASH):
        single = FLAT_QUERIES if kind == "flat" else BATCH
        known, answer = faiss_run(words, batch, RADIUS, kind, single, cache)
        assert np.array_equal(answer, every[every[:, 0] < BATCH]), f"faiss {kind}: other answers"
        figures += [
            faiss_figure(f"faiss {kind}: build", [known], "build", **context),
            faiss_figure(f"faiss {kind}: one query, from Python", [known], "one", "us", queries=single, **context),
            faiss_figure(f"faiss {kind}: a query of a batch of {BATCH}", [known], "all", "us", BATCH, **context),
        ]
    return figures


def losses(wide: int, repeat: int, cache: Path) -> list[dict]:
    """Where comparing with everything is faster: a large radius, and a handful of fingerprints."""
    figures = []
    for n, radius in ((wide, WIDE_RADIUS), (TINY, RADIUS)):
        words, rng = fingerprints(n), np.random.default_rng(SEED + 3)
        asked = changed(words[rng.integers(0, n, BATCH)], rng)
        index, context = HammingIndex(words, radius, num_queries=BATCH), {"fingerprints": n, "radius": radius}
        ours = matches_of(index, asked)
        taken = timed(repeat, lambda index=index, asked=asked: index.query(asked))
        taken = [t / BATCH for t in taken[0]], [t / BATCH for t in taken[1]]
        figures.append(seconds(f"a query of a batch of {BATCH}", taken, "us", design=str(index.design), **context))
        runs = []
        for _ in range(min(repeat, 3)):
            known, answer = faiss_run(words, asked, radius, "flat", FLAT_QUERIES, cache)
            assert np.array_equal(answer, ours), "faiss flat: other answers"
            runs.append(known)
        figures.append(faiss_figure(f"faiss flat: a query of a batch of {BATCH}", runs, "all", "us", BATCH, **context))
        figures.append(faiss_figure("faiss flat: one query, from Python", runs, "one", "us", **context))
        one = int(asked[0])
        singles = timed(SINGLE, lambda index=index, one=one: index.query(one))
        figures.append(seconds("one query, from Python", singles, "us", **context))
    return figures


def part(bench: Bench) -> list[dict]:
    """All pairs, a scan, an index; faiss beside them."""
    made = {"--sizes": ",".join(str(bench.sized(n)) for n in SIZES)}
    made |= {name: bench.sized(n) for name, n in (("--index", INDEXED), ("--scanned", SCANNED), ("--queries", QUERIES))}
    options = [word for option in made.items() for word in option]
    options += ["--peers", "--cache", bench.cache] if bench.peers else []
    figures = figures_of("hamming", "--repeat", bench.repeat, *options)
    for row in figures:
        what, size = row["what"], row.get("fingerprints")
        if what == "all pairs" and size in SIZES:
            bench.target(
                f"all pairs within 3 bits of {size:,} fingerprints, s", row["median"], SIZES[size], least=False
            )
        elif what == "all pairs, peak memory":
            bench.target(f"all pairs of {size:,}, peak over all tables", row["over_all_tables"], 3, least=False)
        elif what == "scan" and row["threads"] == 1:
            bench.target(f"scan from {row['from']}, million/s on one core", row["median"], 4, least=True)
        elif what == "index: one query, warm, from Python":
            bench.target("one query of 10 million, warm, us", row["median"], 50, least=False)
        elif what.startswith("index: a query of a batch"):
            bench.target("a query of a batch of 1,000, warm, us", row["median"], 5, least=False)
    return figures


def main() -> None:
    """Read the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="fingerprints of all pairs, divided by commas"
    )
    parser.add_argument("--index", type=int, default=INDEXED, help="fingerprints of the index")
    parser.add_argument("--scanned", type=int, default=SCANNED, help="existing fingerprints of the scan")
    parser.add_argument("--queries", type=int, default=QUERIES, help="of the scan")
    parser.add_argument("--repeat", type=int, default=5, help="runs, after one that is dropped")
    parser.add_argument("--peers", action="store_true", help="run faiss too; the first time installs it")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "neardup-peers", help="folder for its environment"
    )
    args = parser.parse_args()
    cache = args.cache if args.peers else None
    check_sample(fingerprints(SAMPLE))
    figures = []
    for n in map(int, args.sizes.split(",")):
        figures += all_pairs(n, args.repeat, cache)
    figures += scanning(args.scanned, args.queries, args.repeat)
    figures += online(args.index, args.repeat, cache)
    if cache is not None:
        figures += losses(min(WIDE, args.index), args.repeat, cache)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
