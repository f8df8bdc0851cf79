"""The whole command beside pyarrow's reading and writing of the same file, and beside text-dedup: the part `dedup`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
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
