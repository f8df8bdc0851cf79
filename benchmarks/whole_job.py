"""The whole command beside pyarrow's reading and writing of the same file, and beside text-dedup: the part `dedup`.

The part `layouts` compares files of the same text: one row group against row groups of 1,000 rows, four times the text,
and temporary files in memory and on disk.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe
from neardup_gpu.kernels import components

from . import peers
from .measure import PROGRAMS, SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, neardup, ratio

EXACT = "exact (default)"


def quality(output: Path, corpus: Path) -> dict[str, Any]:
    """How well a result folder did against the gold.

    kept; recall: share of gold pairs at or above the threshold that are among the pairs found, where documents of
    equal shingle sets stand for one another; settled: share of which not both documents were kept; unfounded: removed
    documents without any such pair. The last two are what peers are measured by. Differing: pairs found whose
    resemblance is not the gold's, as the token rules are not the same for every text.
    """
    documents, pairs = pq.read_table(output / "documents.parquet"), pq.read_table(output / "pairs.parquet")
    ids = documents["id"].to_pylist()
    gold = peers.gold_pairs(corpus.with_name(f"{corpus.stem}.gold.parquet"), ids)
    settled = peers.dedup_quality(documents.filter(documents["kept"])["id"].to_pylist(), ids, gold, THRESHOLD)
    settled["settled"] = settled.pop("recall")
    if not gold:
        return settled
    row = {name: i for i, name in enumerate(ids)}
    ends = np.array([[row[name] for name in pairs[column].to_pylist()] for column in ("id_a", "id_b")], np.int64)
    found = pairs["resemblance"].to_numpy()
    left, right = np.sort(ends[:, found == 1], axis=0)
    same_set = components.cpu(len(ids), left, right)

    def key(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = same_set[a], same_set[b]
        return np.minimum(a, b) * len(ids) + np.maximum(a, b)

    keys = key(*ends)
    keys, first = np.unique(keys, return_index=True)
    true = np.array([(a, b) for a, b, jaccard in gold if jaccard >= THRESHOLD], np.int64).T
    jaccard = np.array([jaccard for *_, jaccard in gold if jaccard >= THRESHOLD])
    wanted = key(*true)
    equal = same_set[true[0]] == same_set[true[1]]
    hit = equal | np.isin(wanted, keys)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    given = np.where(equal, 1.0, found[first][place])
    differing = int(np.count_nonzero(hit & (np.abs(given - jaccard) > 1e-12)))
    return {"recall": round(float(hit.mean()), 5), **settled, "gold_pairs": len(wanted), "differing": differing}


def part(bench: Bench) -> list[dict]:
    """The whole command on bills_116 beside pyarrow's reading and writing of the file, and text-dedup's."""
    figures = []
    for order, corpus in (("file order", bench.corpus("bills_116")), ("shuffled", bench.shuffled("bills_116"))):
        outputs, runs = _rounds(bench, corpus, with_peer=bench.peers and order == "file order")
        context = {"corpus": "bills_116", "rows": order}
        theirs = runs.pop("text-dedup")
        copied = [run["seconds"] for run in runs["pyarrow"]]
        inside = [float(run["stdout"]) for run in runs["pyarrow"]]
        figures.append(figure("pyarrow reads and writes, process", copied, "s", **context))
        figures.append(figure("pyarrow reads and writes, inside its process", inside, "s", **context))
        for name, output in outputs.items():
            figures += _of_runs(name, runs[name], output, corpus, context)
            walls = [run["seconds"] for run in runs[name]]
            whole = ratio(f"neardup dedup, {name}, over pyarrow's process", walls, copied, **context)
            figures += [whole, ratio(f"neardup dedup, {name}, over pyarrow inside", walls, inside, **context)]
            if order == "file order":
                bench.target(f"dedup of bills_116, {name}, times pyarrow", whole["median"], 4, least=False)
        exact, minhash = ([run["seconds"] for run in runs[name]] for name in [*outputs][:2])
        beside = ratio(f"neardup dedup, {EXACT}, over {[*outputs][1]} with its check", exact, minhash, **context)
        figures.append(beside)
        if order == "file order":
            bench.target("dedup of bills_116, exact over minhash with its check", beside["median"], 1, least=False)
        answers = [answer for answer in theirs if "failed" not in answer]
        if answers:
            ours = {name: [run["seconds"] for run in runs[name]] for name in outputs}
            figures += _beside_peer(bench, answers, ours, context)
        elif theirs:
            bench.skipped.append(f"dedup: text-dedup did not run: {theirs[0]['failed']}")
    return figures


def _rounds(bench: Bench, corpus: Path, with_peer: bool) -> tuple[dict[str, Path], dict[str, list[dict]]]:
    """Each command by turns, the first round dropped: ({ours: its output folder}, {command: its runs})."""
    minhash = "--method", "minhash"
    usual = Recipe(method="minhash", threshold=THRESHOLD).method.filter
    recipes = {EXACT: (), f"minhash {usual}": minhash, "minhash 6,14,2": (*minhash, "--filter", "6,14,2")}
    outputs = {name: bench.scratch / f"out{i}" for i, name in enumerate(recipes)}
    runs: dict[str, list[dict]] = {name: [] for name in (*recipes, "pyarrow", "text-dedup")}
    copy = [sys.executable, PROGRAMS / "read_and_write.py", corpus, bench.scratch / "copy.parquet"]
    for round_ in range(bench.repeat + 1):
        for name, options in recipes.items():
            runs[name].append(neardup(corpus, outputs[name], "--id-column", "id", *options))
        runs["pyarrow"].append(launch(copy))
        if with_peer and 0 < round_ <= SLOW_ROUNDS:
            runs["text-dedup"].append(peers.run_peer("text-dedup", corpus, cache=bench.cache, threshold=THRESHOLD))
    return outputs, {name: done if name == "text-dedup" else done[1:] for name, done in runs.items()}


def _of_runs(name: str, runs: list[dict], output: Path, corpus: Path, context: dict[str, Any]) -> list[dict]:
    """Time, quality and peak memory of one of our commands, and the stages of its last run."""
    peak = round(max(run["peak_mb"] for run in runs), 1)
    walls, cpu = ([run[key] for run in runs] for key in ("seconds", "cpu_seconds"))
    stages = json.loads((output / "report.json").read_text())["timings"]
    return [
        figure(f"neardup dedup, {name}", walls, "s", **context, **quality(output, corpus), peak_mb=peak),
        figure(f"neardup dedup, {name}, processor time", cpu, "s", **context),
        *(figure(f"  stage {stage}, {name}", [t], "s", **context) for stage, t in stages.items()),
    ]


def _beside_peer(
    bench: Bench, answers: list[dict], ours: dict[str, list[float]], context: dict[str, Any]
) -> list[dict]:
    """text-dedup's time and quality, and its time over ours, round by round."""
    known = {key: answers[0][key] for key in ("version", "kept", "unfounded")} | {"settled": answers[0]["recall"]}
    theirs = [answer["seconds"] for answer in answers]
    peak = max(answer["peak_rss_mb"] for answer in answers)
    figures = [figure("text-dedup, unverified", theirs, "s", **context, **known, peak_mb=peak)]
    for name, walls in ours.items():
        faster = ratio(f"text-dedup over neardup dedup, {name}", theirs, walls[: len(theirs)], **context)
        figures.append(faster)
        bench.target(f"dedup of bills_116, {name}, times text-dedup", faster["median"], 10, least=True)
    return figures


TEXT_BYTES = 500_000_000
SLAB_BYTES = 32 << 20


READING = """
import json, sys, time
import pyarrow.parquet as pq
from neardup_gpu import open_documents
def slabs(path):
    for _ in open_documents(path, text_columns="text").batches((), max_bytes=int(sys.argv[1])):
        pass
def read_table(path):
    pq.read_table(path, columns=["text"])
def seconds(read, path):
    began = time.perf_counter()
    read(path)
    return time.perf_counter() - began
reads = [(f"{read.__name__}, {name}", read, path) for name, path in zip(("one", "many"), sys.argv[2:])
         for read in (slabs, read_table)]
rounds = [[seconds(read, path) for _, read, path in reads] for _ in range(6)]
print(json.dumps(dict(zip([what for what, *_ in reads], zip(*rounds[1:])))))
"""


def layouts(bench: Bench) -> list[dict]:
    """Reading, `sketch` and `dedup --dry-run` of one text in two layouts; memory of `sketch`; temporary files.

    NEARDUP_BEFORE names a checkout of an earlier version, which does the same by turns.
    """
    one, many, longer = (bench.scratch / f"{name}.parquet" for name in ("one", "many", "longer"))
    text = pq.read_table(bench.corpus("bills_116"), columns=["text"])
    table = pa.concat_tables([text] * max(1, bench.sized(TEXT_BYTES) // text.nbytes))
    pq.write_table(table, one, row_group_size=len(table))
    pq.write_table(table, many, row_group_size=1000)
    with pq.ParquetWriter(longer, table.schema) as file:
        for _ in range(4):
            file.write_table(table, row_group_size=1000)
    size = table.nbytes
    del text, table
    sketch = ("sketch", "-o", bench.scratch / "s.parquet", "--overwrite")
    dedup = ("dedup", "--dry-run")
    shared = Path("/dev/shm")
    commands = {f"{words[0]}, {path.stem}": (words, path) for words in (sketch, dedup) for path in (one, many)}
    commands["sketch, longer"] = (sketch, longer)
    if shared.is_dir():
        for name, folder in (("disk", bench.scratch), ("memory", shared)):
            commands[f"dedup, {name}"] = ((*dedup, "--temp-dir", folder), many)
    trees = {"": Path(__file__).parents[1]}
    if earlier := os.environ.get("NEARDUP_BEFORE"):
        trees["before: "] = Path(earlier)
    runs: dict[str, list[dict]] = {}
    reading: dict[str, list[float]] = {}
    for _ in range(bench.repeat + 1):
        for tree, folder in trees.items():
            code = [sys.executable, "-c", READING, SLAB_BYTES, one, many]
            for what, seconds in json.loads(launch(code, PYTHONPATH=str(folder))["stdout"]).items():
                reading.setdefault(f"{tree}reading: {what}", []).extend(seconds)
            for name, (words, path) in commands.items():
                command = [sys.executable, "-m", "neardup_gpu", words[0], path, "--quiet", *words[1:]]
                runs.setdefault(tree + name, []).append(launch(command, PYTHONPATH=str(folder)))
    kinds = {"seconds": "s", "cpu_seconds": "processor s", "peak_mb": "MB"}
    found = {(name, key): [run[key] for run in done[1:]] for name, done in runs.items() for key in kinds}
    found |= {(name, "seconds"): seconds for name, seconds in reading.items()}
    figures = [figure(name, values, kinds[key], text_bytes=size) for (name, key), values in found.items()]

    def compared(what: str, key: str, above: str, below: str, most: float) -> None:
        for tree in trees:
            figures.append(ratio(tree + what, found[tree + above, key], found[tree + below, key]))
            if not tree:
                bench.target(what, figures[-1]["median"], most, least=False)

    what = "reading into slabs over read_table, 1,000 rows per group"
    compared(what, "seconds", "reading: slabs, many", "reading: read_table, many", 1)
    for verb in ("sketch", "dedup"):
        compared(f"{verb}, one row group over 1,000 rows per group", "seconds", f"{verb}, one", f"{verb}, many", 1.2)
    compared("sketch, memory for four times the text", "peak_mb", "sketch, longer", "sketch, many", 1.2)
    if shared.is_dir():
        compared("dedup, temporary files on disk over memory", "seconds", "dedup, disk", "dedup, memory", 1.3)
    for name, key in [each for each in found if earlier and f"before: {each[0]}" in runs | reading]:
        over = found[f"before: {name}", key]
        figures.append(ratio(f"{name}, {kinds[key]}, over the earlier version", found[name, key], over))
    return figures
