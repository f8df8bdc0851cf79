"""The growing index beside `dedup`, and beside other stores of the same keys: the part `index` of run.py.

Documents are of 40 words, 1% of them like another but for a word. Those that are asked for are of 1,000 words: half of
them are near one of 1,000 such documents in the index, the others are new, and as many others are asked before. The
other stores are given ready keys and verify nothing. Ours is given text, of which it makes keys and sets, and verifies
what it adds; it is asked for the candidates of ready keys, as they are, and for answers to texts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe
from neardup_gpu.index.segments import SEGMENT
from neardup_gpu.stages import shingle, tokenize
from neardup_gpu.store.arrays import ArraysFile
from neardup_gpu.store.ids import NAMES

from .exact import job, short_texts, write_texts
from .measure import PROGRAMS, SEED, SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, ratio
from .peers import ensure_venv, requirement
from .small import WORDS, made

ADDED, BATCH, BESIDE, LONG = 1_000_000, 10_000, 100_000, 1000
QUERIES = 1000
TREE = Path(__file__).parents[1]
OF_IDS = ("id_keys", "id_rows", *NAMES)
OF_SETS = ("set_offsets", "set_values")
STORES = ("sqlite", "lmdb", "datasketch")

NEEDS = {"lmdb": ("numpy",), "datasketch": ("pyarrow",)}
"""What else is in the environment of a store, as `peers.py` makes it for datasketch."""

LASTING = ("sqlite", "lmdb")


def part(bench: Bench) -> list[dict]:
    """Adding, asking, and other stores; what compiles kernels is dropped."""
    source, folder = bench.scratch / "first.parquet", bench.scratch / "first"
    write_texts(source, short_texts(bench.sized(9 * BATCH)))
    program("index_added", source, folder, bench.sized(BATCH), THRESHOLD, "decide")
    _remove(folder)
    return [*_adding(bench), *_asking(bench), *(_beside(bench) if bench.peers else [])]


def _rounds(bench: Bench) -> int:
    return min(bench.repeat, SLOW_ROUNDS)


def _values(runs: list[dict], name: str) -> list[float]:
    return [run[name] for run in runs]


def program(name: str, *arguments: Any) -> dict[str, Any]:
    """Run a program with this library in a process of its own; what it says, and its peak of memory."""
    done = launch(["env", f"PYTHONPATH={TREE}", sys.executable, PROGRAMS / f"{name}.py", *arguments])
    return {**json.loads(done["stdout"]), "peak_mb": round(done["peak_mb"])}


# -------------------------------------------------------------------------------------------------------------- adding


def _adding(bench: Bench) -> list[dict]:
    """`dedup`, one commit, and many, by turns."""
    source, folder = bench.scratch / "added.parquet", bench.scratch / "added"
    number = bench.sized(ADDED)
    write_texts(source, short_texts(number))
    commits = {"in one go": number, f"in batches of {bench.sized(BATCH):,}": bench.sized(BATCH)}
    whole: list[dict] = []
    grown: dict[str, list[dict]] = {name: [] for name in commits}
    for _ in range(bench.repeat):  # `dedup` differs by a fifth from round to round
        whole.append(job(source, "minhash", THRESHOLD, TREE))
        for name, every in commits.items():
            _remove(folder)
            grown[name].append(program("index_added", source, folder, every, THRESHOLD, "decide"))
            assert grown[name][-1]["kept"] == whole[-1]["kept"], "the index and dedup keep different documents"
    source.unlink()
    what = f"{number:,} documents of 40 words"
    known = {name: whole[0][name] for name in ("documents", "kept")}
    figures = [figure(f"{what}: dedup --dry-run, minhash", _values(whole, "seconds"), "s", **known)]
    for (name, runs), wanted in zip(grown.items(), (1.5, 3.0), strict=True):
        known = {key: runs[0][key] for key in ("segments", "pairs", "peak_mb")}
        known["cpu_seconds"] = float(np.median(_values(runs, "cpu_seconds")))
        figures.append(figure(f"{what}: added {name} and decided", _values(runs, "seconds"), "s", **known))
        figures.append(figure(f"{what}: added {name}", [number / run["add_seconds"] for run in runs], "documents/s"))
        for key, of_what in (("seconds", "time"), ("cpu_seconds", "processor time")):
            figures.append(
                ratio(
                    f"{what}: added {name} and decided, over dedup, {of_what}", _values(runs, key), _values(whole, key)
                )
            )
        bench.target(f"{what}, {name}, times dedup", figures[-2]["median"], wanted, least=False)
        figures += _written(f"{what}, {name}", runs)
    return figures + _stored(bench, what, folder)


def _written(what: str, runs: list[dict]) -> list[dict]:
    """Bytes that went to the disk, of those that are kept."""
    if runs[0]["written"] is None:
        return []
    return [ratio(f"{what}: bytes written over bytes kept", _values(runs, "written"), _values(runs, "bytes"))]


def _stored(bench: Bench, what: str, folder: Path) -> list[dict]:
    """Bytes an entry, of ids, of sets, and of all else."""
    totals, entries = {"ids": 0, "sets": 0, "all else": 0}, 0
    for path in sorted((folder / "segments").iterdir()):
        arrays = ArraysFile(path, SEGMENT, at_once=0).arrays
        entries += len(arrays["founders"])
        for name, array in arrays.items():
            totals["ids" if name in OF_IDS else "sets" if name in OF_SETS else "all else"] += array.nbytes
    figures = [figure(f"{what}: {name}", [size / entries], "bytes/entry") for name, size in totals.items()]
    bench.target("bytes an entry without ids and sets", totals["all else"] / entries, 300, least=False)
    _remove(folder)
    return figures


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if folder.exists():
        folder.rmdir()


# -------------------------------------------------------------------------------------------------------------- asking


def _asking(bench: Bench) -> list[dict]:
    """Queries of an index as it comes, when it is quiet, and while it is merged; opening it, also after a kill."""
    number, long = bench.sized(bench.entries), bench.sized(LONG)
    folder, source, queries = (bench.scratch / name for name in ("index", "entries.parquet", "queries.parquet"))
    texts = made(long + bench.sized(2 * QUERIES))
    write_texts(source, chain([texts[:long]], short_texts(number)))
    write_queries(queries, texts[:long], texts[long:], bench.sized(2 * QUERIES), range(WORDS))
    built = program("index_added", source, folder, bench.sized(BATCH), THRESHOLD)
    source.unlink()
    what = f"{built['entries']:,} entries in {built['segments']} segments"
    figures = _written(what, [built])
    if figures:
        bench.target(f"{what}: bytes written, times those kept", figures[0]["median"], 6, least=False)
    asked = [program("index_asked", folder, queries) for _ in range(_rounds(bench))]
    figures += _answered(f"{what}, one text of {WORDS:,} words", asked)
    together = _values(asked, "together_us")
    figures.append(figure(f"{what}, {asked[0]['queries']:,} such texts at a time", together, "us a text"))
    bench.target(f"{what}: one text, p50, ms", figures_of(figures, "p50"), 1, least=False)
    bench.target(f"{what}: one text, p99, ms", figures_of(figures, "p99"), 5, least=False)
    bench.target(f"{what}: many texts, us each", figures[-1]["median"], 50, least=False)
    figures += _merging(bench, what, folder, queries, asked)
    return figures + _opening(bench, what, folder)


def figures_of(figures: list[dict], name: str) -> float:
    """The median of the first figure whose name ends so."""
    return next(each["median"] for each in figures if each["what"].endswith(name))


def _answered(what: str, asked: list[dict]) -> list[dict]:
    figures = []
    for name in ("p50", "p99", "mean"):
        recall = float(np.median(_values(asked, "recall"))) if "recall" in asked[0] else None
        values = _values(asked, name)
        figures.append(figure(f"{what}, {name}", values, "ms", queries=asked[0]["queries"], recall=recall))
    if "cpu_ms" in asked[0]:
        figures.append(figure(f"{what}, processor time", _values(asked, "cpu_ms"), "ms"))
    return figures


def write_queries(path: Path, there: list[str], new: list[str], number: int, places: range) -> None:
    """Texts by turns: like one that is there but for the word at one of some places, and new; and of which row."""
    random = np.random.default_rng(SEED)
    texts, near = [], []
    for query in range(number // 2):
        row = query * len(there) // max(1, number // 2)
        words = there[row].split()
        words[random.choice(places)] = "otherwise"
        texts += [" ".join(words), new[query]]
        near += [row, -1]
    pq.write_table(pa.table({"text": pa.array(texts, pa.large_string()), "near": near}), path)


def linked(folder: Path, other: Path) -> Path:
    """A copy of an index in the same files, which are never written to again."""
    for path in sorted(folder.rglob("*")):
        target = other / path.relative_to(folder)
        if path.is_dir():
            target.mkdir(parents=True)
        elif path.name != "writer.lock":
            os.link(path, target)
    return other


def _merging(bench: Bench, what: str, folder: Path, queries: Path, quiet: list[dict]) -> list[dict]:
    """The same queries while another process merges all segments."""
    asked = []
    for _ in range(_rounds(bench)):
        copy = linked(folder, bench.scratch / "merged")
        asked.append(program("index_asked", copy, queries, "merge"))
        _remove(copy)
    figures = _answered(f"{what}, while they are merged", asked)
    slower = ratio(f"{what}, while they are merged, p99 over quiet", _values(asked, "p99"), _values(quiet, "p99"))
    bench.target(f"{what}: p99 while they are merged, times quiet", slower["median"], 2, least=False)
    return [*figures, slower]


def _opening(bench: Bench, what: str, folder: Path) -> list[dict]:
    """Opening, in processes of their own; then the same after a writer was killed."""
    figures = []
    for name in ("", " after a kill"):
        if name:
            _kill_a_writer(bench, folder)
        opened = [program("index_asked", folder) for _ in range(bench.repeat)]
        figures.append(figure(f"{what}: opened{name}", _values(opened, "open_ms"), "ms"))
        bench.target(f"{what}: opened{name}, ms", figures[-1]["median"], 50, least=False)
        if not np.isnan(opened[0]["resident_mb"]):
            figures.append(
                figure(f"{what}: opened{name}, memory beside mapped files", _values(opened, "resident_mb"), "MB")
            )
            bench.target(f"{what}: opened{name}, MB", figures[-1]["median"], 100, least=False)
    return figures


def _kill_a_writer(bench: Bench, folder: Path) -> None:
    """Kill a process that adds documents, after some commits."""
    source, every = bench.scratch / "more.parquet", bench.sized(BATCH)
    write_texts(source, ([f"{text} more" for text in texts] for texts in short_texts(bench.sized(20 * BATCH))))
    command = [sys.executable, "-m", "neardup_gpu", "index", "add", folder, source, "--commit-every", every, "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    before = _newest(folder)
    with subprocess.Popen([str(word) for word in command], env=environment) as writer:
        while writer.poll() is None and _newest(folder) < before + 5:
            time.sleep(0.001)
        writer.send_signal(signal.SIGKILL)


def _newest(folder: Path) -> int:
    return max(int(path.suffix[1:]) for path in folder.glob("manifest.*[0-9]"))


# -------------------------------------------------------------------------------------------------------------- beside


def _beside(bench: Bench) -> list[dict]:
    """Ours, from text to verified pairs, and other stores of ready keys, by turns."""
    number, asked = bench.sized(BESIDE), bench.sized(2 * QUERIES)
    source, queries = bench.scratch / "beside.parquet", bench.scratch / "beside-queries.parquet"
    texts = [text for some in short_texts(number + asked // 2) for text in some]
    there, new = texts[:number], texts[number:]
    write_texts(source, iter([there]))
    write_queries(queries, there, new, asked, range(36, 40))
    near = pq.read_table(queries)["near"].to_pylist()
    for name, some in (("keys", there), ("queries", pq.read_table(queries)["text"].to_pylist())):
        samples, keys = _sketches(some)
        np.save(bench.scratch / f"{name}.npy", keys)
        np.save(bench.scratch / f"{name}-datasketch.npy", samples)
    runs: dict[str, list[dict]] = {name: [] for name in ("ours", *STORES)}
    for _ in range(_rounds(bench)):
        folder = bench.scratch / "store"
        built = program("index_added", source, folder, bench.sized(BATCH), THRESHOLD)
        whole = program("index_asked", folder, queries)
        answers = bench.scratch / "found.json"
        found = program("index_keys", folder, bench.scratch / "queries.npy", answers)
        runs["ours"].append({**whole, **built, **found, **_recall(answers, near), "whole_us": whole["together_us"]})
        _remove(folder)
        for name in STORES:
            folder.mkdir()
            runs[name].append(_store(bench, name, folder, near))
            _remove(folder)
    return _compared(bench, f"{number:,} documents of 40 words", number, runs)


def _compared(bench: Bench, what: str, number: int, runs: dict[str, list[dict]]) -> list[dict]:
    figures = []
    for name, some in runs.items():
        known = {key: some[0].get(key) for key in ("version", "recall", "candidates")}
        rates = [number / each for each in _values(some, "add_seconds")]
        about = "text to verified pairs" if name == "ours" else "ready keys"
        figures.append(figure(f"{what}: {name}, added, {about}", rates, "documents/s"))
        figures.append(
            figure(f"{what}: {name}, candidates by ready keys", _values(some, "ask_us"), "us a query", **known)
        )
        if name != "datasketch":
            sizes = [size / number for size in _values(some, "bytes")]
            figures.append(figure(f"{what}: {name}, on disk", sizes, "bytes/document"))
        if name == "ours":
            for key, about in (("together_us", "candidates by ready keys"), ("whole_us", "from text, verified")):
                asked = f"{what}: ours, {about}, all queries at a time"
                figures.append(figure(asked, _values(some, key), "us a query"))
            figures.append(figure(f"{what}: ours, one text, verified", _values(some, "p50"), "ms"))
            continue
        for key, doing in (("add_seconds", "adding"), ("ask_us", "asking")):
            figures.append(ratio(f"{what}: {name} over ours, {doing}", _values(some, key), _values(runs["ours"], key)))
            if name in LASTING:
                bench.target(f"{doing}, times faster than {name}", figures[-1]["median"], 1, least=True)
    return figures


def _sketches(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Samples and keys of texts, as an index makes them."""
    recipe = Recipe(method="minhash", threshold=THRESHOLD)
    method, seed = recipe.method, recipe.seed
    samples = method.sketch(shingle(tokenize(texts, recipe), recipe), seed=seed)
    return samples, method.keys(samples, seed=seed)


def _store(bench: Bench, name: str, folder: Path, near: list[int]) -> dict[str, Any]:
    """Add to another store and ask it, in an environment that has it."""
    python: Any = sys.executable  # which has SQLite
    if name != "sqlite":
        python = ensure_venv(name, [requirement(package) for package in (name, *NEEDS[name])], bench.cache)
    inputs = [bench.scratch / f"{each}{'-datasketch' * (name == 'datasketch')}.npy" for each in ("keys", "queries")]
    done = launch([python, PROGRAMS / "stored_keys.py", name, *inputs, bench.sized(BATCH), folder])
    return {**json.loads(done["stdout"]), **_recall(folder / "found.json", near)}


def _recall(answers: Path, near: list[int]) -> dict[str, Any]:
    """Which share of the documents that queries are near was found, and how many candidates there were."""
    found = json.loads(answers.read_text())
    there = [row in some for row, some in zip(near, found, strict=True) if row >= 0]
    return {"recall": sum(there) / len(there), "candidates": sum(map(len, found))}
