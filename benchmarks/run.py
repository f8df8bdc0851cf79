"""Measure everything that the project promises about speed, memory and recall, in one run, into one JSON file.

    python -m benchmarks.run --corpora CORPORA --peers --output benchmarks/results/NAME.json

Parts (see README.md beside this file): kernels, peers, dedup, memory, verification, giant, losses, simhash, hamming,
compression. A part whose corpus is missing is skipped and says so. What is compared is interleaved, A B A B, in the
same run; everything runs once before it is timed, so that compilation and cold files are left out; recall stands beside
time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neardup_gpu
from neardup_gpu import pipeline
from neardup_gpu.data import Ragged
from neardup_gpu.documents import open_documents
from neardup_gpu.engine.backend import Job
from neardup_gpu.kernels import components
from neardup_gpu.kernels._launch import CARRYLESS_WIDTH
from neardup_gpu.recipe import Filter, Recipe
from neardup_gpu.store.spool import Spool

from . import peers
from .kernels import SHUFFLE_SEED, figure, load, num_bytes, shuffled, signatures_seconds

THRESHOLD = 0.8
CPU = Job("cpu")
GIANT = (25_000, 50_000, 100_000)
TEMPLATE_WORDS, TEMPLATE_EDITS = 300, 3
SHORT_DOCUMENTS, SHORT_WORDS = 200_000, 8
TINY_DOCUMENTS, TINY_WORDS = 20, 50
PASSES = 3  # over a corpus for one figure of text -> signatures
SLOW_ROUNDS = 3  # at most, of what takes longest

# A process of its own starts the measured one: the peak of a child counts that of the process it was started from.
LAUNCH = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
print(json.dumps({"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_mb": peak,
                  "status": done.returncode, "stdout": done.stdout, "stderr": done.stderr[-2000:]}))
"""

READ_AND_WRITE = """
import sys, time
import pyarrow.parquet as pq
start = time.perf_counter()
pq.write_table(pq.read_table(sys.argv[1]), sys.argv[2], compression="zstd")
print(time.perf_counter() - start)
"""

ALL_PAIRS = """
import itertools, json, re, sys
sets = []
for line in open(sys.argv[1], encoding="utf-8"):
    words = re.findall(r"\\w+", json.loads(line)["text"].lower())
    sets.append({tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))})
pairs = [(i, j) for i, j in itertools.combinations(range(len(sets)), 2)
         if len(sets[i] & sets[j]) >= 0.8 * len(sets[i] | sets[j])]
"""

DATASKETCH = """
import json, re, sys
from datasketch import MinHash, MinHashLSH
index = MinHashLSH(threshold=0.8, num_perm=128)
for row, line in enumerate(open(sys.argv[1], encoding="utf-8")):
    words = re.findall(r"\\w+", json.loads(line)["text"].lower())
    sketch = MinHash(num_perm=128)
    sketch.update_batch([" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))])
    index.query(sketch)
    index.insert(row, sketch)
"""


@dataclass
class Bench:
    """Settings of a run, and what it has found."""

    corpora: Path
    repeat: int
    peers: bool
    cache: Path
    scratch: Path
    figures: dict[str, list[dict]] = field(default_factory=dict)
    targets: list[dict] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def corpus(self, name: str) -> Path:
        """Path of a corpus.

        Raises
        ------
        Skip
            If it is not there.
        """
        path = self.corpora / f"{name}.parquet"
        if not path.exists():
            raise Skip(f"no corpus {name}; name the folder of the corpora with --corpora or NEARDUP_CORPORA")
        return path

    def shuffled(self, name: str) -> Path:
        """A copy of a corpus with its rows in random order, and of its gold, in the run's temporary folder."""
        path, folder = self.corpus(name), self.scratch / "shuffled"
        if not (folder / path.name).exists():
            folder.mkdir(exist_ok=True)
            rows = pq.ParquetFile(path).metadata.row_group(0).num_rows
            pq.write_table(shuffled(path), folder / path.name, compression="zstd", row_group_size=rows)
            gold = path.with_name(f"{name}.gold.parquet")
            if gold.exists():
                (folder / gold.name).write_bytes(gold.read_bytes())
        return folder / path.name

    def target(self, what: str, value: float, wanted: float, *, least: bool) -> None:
        """Compare a figure with what was asked for: at least (`least`) or at most `wanted`."""
        met = value >= wanted if least else value <= wanted
        sign = ">=" if least else "<="
        self.targets.append({"target": what, "wanted": f"{sign} {wanted}", "value": float(f"{value:.4g}"), "met": met})


class Skip(Exception):
    """A part that cannot run here, and why."""


def launch(command: list[Any]) -> dict[str, Any]:
    """Run a command in a process; its wall seconds, processor seconds, peak resident MB and standard output.

    Raises
    ------
    RuntimeError
        If it fails, with what it complained of.
    """
    starter = [sys.executable, "-I", "-S", "-c", LAUNCH, *map(str, command)]
    done = json.loads(subprocess.run(starter, check=True, capture_output=True, text=True).stdout)
    if done["status"]:
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} ...: {done['stderr'].strip() or done['status']}")
    return done


def neardup(source: Path, output: Path, *options: Any) -> dict[str, Any]:
    """Run `neardup dedup` as a process."""
    command = [sys.executable, "-m", "neardup_gpu", "dedup", source, "--output", output, "--overwrite", "--quiet"]
    return launch([*command, *options])


def middle(figure_: dict) -> float:
    """A figure's median."""
    return figure_["median"]


def ratio(what: str, above: list[float], below: list[float], **context: Any) -> dict:
    """Ratios of two quantities, round by round."""
    return figure(what, [a / b for a, b in zip(above, below, strict=True)], "ratio", **context)


# ------------------------------------------------------------------------------------------------------ the parts


def kernels_part(bench: Bench) -> list[dict]:
    """Each kernel by itself: 1 thread and all, with and without carry-less multiplication."""
    corpus, figures = bench.corpus("bills_116"), []
    for setting in ({}, {"NEARDUP_CLMUL": "0"}):
        command = [sys.executable, "-m", "benchmarks.kernels", "--corpus", str(corpus), "--repeat", str(bench.repeat)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | setting)
        figures += json.loads(done.stdout)
    best = [f for f in figures if f["what"] == "text to signatures, minhash 84 L=32" and f["clmul_bits"]]
    if best:
        rate = max(best, key=lambda f: f["threads"])
        bench.target("text to signatures of bills_116, 84 samples, L = 32, MB/s", middle(rate), 500, least=True)
    return figures


def signature_rates(bench: Bench, path: Path, rounds: int, names: tuple[str, ...]) -> list[dict]:
    """Text in memory -> signatures, MB/s: ours and the peers' by turns, and ours over theirs."""
    corpus = path.stem
    table = pq.read_table(path, columns=["id", "text"])
    batches = load(table)
    size = num_bytes(batches)
    gold = peers.gold_pairs(path.with_name(f"{path.stem}.gold.parquet"), table["id"].to_pylist())
    ours: dict[int, list[float]] = {84: [], 128: []}
    theirs: dict[str, list[dict]] = {name: [] for name in names}
    for samples in ours:
        signatures_seconds(batches, samples)
    for _ in range(rounds):
        for name in names:
            for samples, rates in ours.items():
                rates.append(size / sum(signatures_seconds(batches, samples) for _ in range(PASSES)) * PASSES / 1e6)
            answer = peers.run_peer(name, path, cache=bench.cache)
            if "failed" in answer:
                raise Skip(f"{name} did not run: {answer['failed']}")
            theirs[name].append(answer)
    threads = numba.get_num_threads()
    figures = []
    for samples, rates in ours.items():
        known = {
            "corpus": corpus,
            "threads": threads,
            "text_bytes": size,
            "error": estimate_error(batches, samples, gold),
        }
        figures.append(figure(f"neardup_gpu, {samples} samples", rates, "MB/s", **known))
    for place, name in enumerate(names):
        answers = theirs[name]
        rates = [answer["mb_per_second"] for answer in answers]
        known = {key: answers[0][key] for key in ("threads", "version", "error", "peak_rss_mb") if key in answers[0]}
        figures.append(figure(f"{name}, {peers.SAMPLES} samples", rates, "MB/s", corpus=corpus, **known))
        for samples, own in ours.items():  # of each round the run just before the peer's
            what = f"neardup_gpu with {samples} samples over {name}"
            figures.append(ratio(what, own[place :: len(names)], rates, corpus=corpus))
    return figures


def estimate_error(batches: list[Ragged], samples: int, gold: list[tuple[int, int, float]]) -> float | None:
    """Mean absolute error of the resemblance that signatures estimate, on the gold pairs that peers are checked on."""
    if not gold:
        return None
    recipe = Recipe(Filter(samples, 1, 1))
    rows = [pipeline.minhash(pipeline.shingle(pipeline.tokenize(b, recipe), recipe), recipe) for b in batches]
    signatures, some = np.concatenate(rows), gold[:: max(1, len(gold) // peers.ERROR_PAIRS)]
    left, right, true = (np.array(column) for column in zip(*some, strict=True))
    return round(float(np.abs((signatures[left] == signatures[right]).mean(axis=1) - true).mean()), 5)


def peers_part(bench: Bench) -> list[dict]:
    """Text to signatures beside rensa and datasketch."""
    if not bench.peers:
        raise Skip("peers were not asked for; add --peers")
    figures = signature_rates(bench, bench.shuffled("bills_116_small"), bench.repeat, ("rensa", "datasketch"))
    by_name = {f["what"]: f for f in figures}
    for name, wanted in (("rensa", 20), ("datasketch", 80)):
        value = middle(by_name[f"neardup_gpu with 84 samples over {name}"])
        bench.target(f"text to signatures, times {name}", value, wanted, least=True)
    return figures


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


def dedup_part(bench: Bench) -> list[dict]:
    """The whole command on bills_116 beside pyarrow's reading and writing of the file, and text-dedup's."""
    figures = []
    recipes = {"--filter 6,14,2": ("--filter", "6,14,2"), f"default ({Recipe.choose(THRESHOLD).filter})": ()}
    for order, corpus in (("file order", bench.corpus("bills_116")), ("shuffled", bench.shuffled("bills_116"))):
        context = {"corpus": "bills_116", "rows": order}
        runs: dict[str, list[dict]] = {name: [] for name in (*recipes, "pyarrow", "text-dedup")}
        outputs = {name: bench.scratch / f"out{i}" for i, name in enumerate(recipes)}
        for round_ in range(bench.repeat + 1):  # the first is dropped
            for name, options in recipes.items():
                runs[name].append(neardup(corpus, outputs[name], "--id-column", "id", *options))
            copy = [sys.executable, "-c", READ_AND_WRITE, corpus, bench.scratch / "copy.parquet"]
            runs["pyarrow"].append(launch(copy))
            if bench.peers and order == "file order" and 0 < round_ <= SLOW_ROUNDS:
                runs["text-dedup"].append(peers.run_peer("text-dedup", corpus, cache=bench.cache, threshold=THRESHOLD))
        walls = {name: [run["seconds"] for run in done[1:]] for name, done in runs.items() if name != "text-dedup"}
        inside = [float(run["stdout"]) for run in runs["pyarrow"][1:]]
        figures.append(figure("pyarrow reads and writes, process", walls["pyarrow"], "s", **context))
        figures.append(figure("pyarrow reads and writes, inside its process", inside, "s", **context))
        for name in recipes:
            known = quality(outputs[name], corpus)
            peak = round(max(run["peak_mb"] for run in runs[name][1:]), 1)
            figures.append(figure(f"neardup dedup, {name}", walls[name], "s", **context, **known, peak_mb=peak))
            cpu = [run["cpu_seconds"] for run in runs[name][1:]]
            figures.append(figure(f"neardup dedup, {name}, processor time", cpu, "s", **context))
            stages = json.loads((outputs[name] / "report.json").read_text())["timings"]
            figures += [figure(f"  stage {stage}, {name}", [t], "s", **context) for stage, t in stages.items()]
            whole = ratio(f"neardup dedup, {name}, over pyarrow's process", walls[name], walls["pyarrow"], **context)
            figures += [whole, ratio(f"neardup dedup, {name}, over pyarrow inside", walls[name], inside, **context)]
            if order == "file order":
                bench.target(f"dedup of bills_116, {name}, times pyarrow", middle(whole), 4, least=False)
        answers = [answer for answer in runs["text-dedup"] if "failed" not in answer]
        if answers:
            answer = dict(answers[0])
            known = {key: answer[key] for key in ("version", "kept", "unfounded")} | {"settled": answer["recall"]}
            theirs = [answer["seconds"] for answer in answers]
            peak = max(answer["peak_rss_mb"] for answer in answers)
            figures.append(figure("text-dedup, unverified", theirs, "s", **context, **known, peak_mb=peak))
            for name in recipes:
                faster = ratio(f"text-dedup over neardup dedup, {name}", theirs, walls[name][: len(theirs)], **context)
                figures.append(faster)
                bench.target(f"dedup of bills_116, {name}, times text-dedup", middle(faster), 10, least=True)
        elif runs["text-dedup"]:
            bench.skipped.append(f"dedup: text-dedup did not run: {runs['text-dedup'][0]['failed']}")
    return figures


def memory_part(bench: Bench) -> list[dict]:
    """Peak memory of the whole command as the corpus grows twelvefold."""
    names = ("bills_116_small", "bills_116", "bills_big")
    paths = {name: bench.corpus(name) for name in names}
    runs: dict[str, list[dict]] = {name: [] for name in names}
    figures = []
    for _ in range(bench.repeat + 1):  # the first is dropped
        for name, path in paths.items():
            runs[name].append(neardup(path, bench.scratch / name, "--id-column", "id"))
    peaks = {name: [run["peak_mb"] for run in done[1:]] for name, done in runs.items()}
    for name, done in runs.items():
        counts = json.loads((bench.scratch / name / "report.json").read_text())["counts"]
        size = counts["text_bytes"]
        spool = round(8 * counts["shingles"] / 1e6, 1)
        figures.append(figure("peak memory", peaks[name], "MB", corpus=name, text_bytes=size, spool_mb=spool))
        known = quality(bench.scratch / name, paths[name])
        figures.append(figure("neardup dedup", [run["seconds"] for run in done[1:]], "s", corpus=name, **known))
    growth = statistics.median(peaks["bills_big"]) - statistics.median(peaks["bills_116_small"])
    bench.target("peak memory on bills_big above that on bills_116_small, MB", growth, 200, least=False)
    return figures


def verification_part(bench: Bench) -> list[dict]:
    """Two ways to get candidates' shingles: a spool of everybody's, or a second pass over the input for theirs."""
    names = [name for name in ("bills_116", "winps_docs") if (bench.corpora / f"{name}.parquet").exists()]
    if not names:
        raise Skip("no corpus bills_116 or winps_docs; name the folder of the corpora with --corpora")
    return [row for name in names for row in _verification(bench, name, bench.shuffled(name))]


def _verification(bench: Bench, name: str, path: Path) -> list[dict]:
    recipe = Recipe.choose(THRESHOLD)
    designs: dict[str, Callable[[Path, Recipe], tuple]] = {"spool": _by_spool, "second pass": _by_second_pass}
    runs: dict[str, list[dict]] = {design: [] for design in designs}
    answers = {}
    for _ in range(bench.repeat + 1):  # the first is dropped
        for design, run in designs.items():
            seconds, answers[design], known = run(path, recipe)
            runs[design].append({"seconds": seconds, **known})
    one, other = answers.values()
    assert np.array_equal(one.pairs.left, other.pairs.left) and np.array_equal(one.resemblance, other.resemblance)
    figures = []
    for design, done in runs.items():
        last = done[-1]
        context = {"corpus": name, "rows": "shuffled", "disk_mb": round(last["disk"] / 1e6, 1)}
        context["rows_in_candidates"] = round(last["share"], 4)
        parts = {part: [run["seconds"][part] for run in done[1:]] for part in last["seconds"]}
        figures += [figure(f"{design}: {part}", seconds, "s", **context) for part, seconds in parts.items()]
    totals = [[sum(run["seconds"].values()) for run in done[1:]] for done in runs.values()]
    for design, total in zip(runs, totals, strict=True):
        figures.append(figure(f"{design}: in all", total, "s", corpus=name, rows="shuffled"))
    figures.append(ratio("second pass over spool", totals[1], totals[0], corpus=name, rows="shuffled"))
    return figures


def _candidates(sketches: Any, recipe: Recipe) -> tuple[np.ndarray, Any]:
    """Rows of one document of each token sequence, and candidate pairs of their places."""
    num_tokens = np.concatenate(sketches.num_tokens)
    rows = np.flatnonzero(num_tokens > 0)
    first = pipeline._first_by_fingerprint(np.concatenate(sketches.fingerprints)[rows])
    own = rows[first == np.arange(len(rows))]
    return own, pipeline.collide(np.concatenate(sketches.features)[own], recipe).pairs


def _by_spool(path: Path, recipe: Recipe) -> tuple[dict[str, float], Any, dict]:
    """All shingles go to a temporary file as the text streams by; candidates are gathered from it."""
    clock = pipeline.Clock(None)
    with Spool() as spool:
        with clock.stage("sketch and spool"):
            sketches = pipeline._sketch_documents(open_documents(path), recipe, clock, CPU, spool=spool)
        with clock.stage("collide"):
            own, pairs = _candidates(sketches, recipe)
        with clock.stage("gather and verify"):
            verified = pipeline._verify_spooled(spool, own, pairs, recipe.threshold, clock, CPU)
        share = len(np.unique([pairs.left, pairs.right])) / sketches.documents
        return clock.seconds, verified, {"disk": 8 * spool.num_values, "share": share}


def _by_second_pass(path: Path, recipe: Recipe) -> tuple[dict[str, float], Any, dict]:
    """The text is read again and candidates' documents are shingled again; theirs alone go to the temporary file, so
    that memory is as bounded as with the other design."""
    clock = pipeline.Clock(None)
    with clock.stage("sketch"):
        sketches = pipeline._sketch_documents(open_documents(path), recipe, clock, CPU)
    with clock.stage("collide"):
        own, pairs = _candidates(sketches, recipe)
    with Spool() as spool:
        with clock.stage("read and shingle again"):
            wanted = np.unique(np.concatenate([pairs.left, pairs.right]))
            rows = own[wanted]
            for batch in open_documents(path).batches():
                here = rows[
                    np.searchsorted(rows, batch.first_row) : np.searchsorted(rows, batch.first_row + batch.num_rows)
                ]
                if len(here):
                    chosen = _select(batch.text, here - batch.first_row)
                    spool.append(pipeline.shingle(pipeline.tokenize(chosen, recipe), recipe))
        with clock.stage("gather and verify"):
            place = np.zeros(len(own), np.int64)
            place[wanted] = np.arange(len(wanted))
            verified = pipeline._verify_spooled(spool, place, pairs, recipe.threshold, clock, CPU)
        return clock.seconds, verified, {"disk": 8 * spool.num_values, "share": len(rows) / sketches.documents}


def _select(text: Ragged, rows: np.ndarray) -> Ragged:
    """Some rows, copied."""
    return Ragged.from_rows([text[int(row)] for row in rows], np.uint8)


def giant_part(bench: Bench) -> list[dict]:
    """Buckets as large as the corpus: identical pages, and pages of one template."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    words = [f"w{i}" for i in rng.integers(0, 20_000, TEMPLATE_WORDS)]
    pages = []
    for page in range(max(GIANT)):
        edited = words.copy()
        for edit, place in enumerate(rng.integers(0, TEMPLATE_WORDS, TEMPLATE_EDITS)):
            edited[place] = f"edit{page}x{edit}"
        pages.append(" ".join(edited))
    inputs = {"identical pages": [" ".join(words)] * max(GIANT)}
    inputs |= {f"pages of one template, {TEMPLATE_EDITS} edits of {TEMPLATE_WORDS} words": pages}
    runs: dict[tuple[str, int], list[tuple[float, dict]]] = {}
    neardup_gpu.dedup(pa.table({"text": pages[:1000]}), threshold=THRESHOLD)
    for _ in range(min(bench.repeat, SLOW_ROUNDS)):
        for name, texts in inputs.items():
            for size in (max(GIANT),) if name == "identical pages" else GIANT:
                table = pa.table({"text": pa.array(texts[:size], pa.large_string())})
                start = time.perf_counter()
                result = neardup_gpu.dedup(table, threshold=THRESHOLD)
                runs.setdefault((name, size), []).append((time.perf_counter() - start, result.report))
    figures, medians = [], {}
    for (name, size), done in runs.items():
        seconds, report = [run[0] for run in done], done[0][1]
        known = {key: report["counts"][key] for key in ("kept", "candidate_pairs", "verified_pairs")}
        known["uncompared_pairs"] = report["limits"]["uncompared_pairs"]
        figures.append(figure(f"{size:,} {name}", seconds, "s", documents=size, **known, stages=report["timings"]))
        medians[size] = statistics.median(seconds)
    growth = np.log(medians[GIANT[-1]] / medians[GIANT[0]]) / np.log(GIANT[-1] / GIANT[0])
    figures.append(figure("pages of one template: time grows as documents to the power", [float(growth)], "exponent"))
    return figures


def losses_part(bench: Bench) -> list[dict]:
    """Where others are faster: a handful of documents, where starting up is all; and what short documents cost."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    tiny = bench.scratch / "tiny.jsonl"
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 5000, TINY_WORDS)) for _ in range(TINY_DOCUMENTS)]
    tiny.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    commands: dict[str, Callable[[], dict]] = {
        "neardup dedup": lambda: neardup(tiny, bench.scratch / "tiny"),
        "twelve lines of Python, all pairs": lambda: launch([sys.executable, "-c", ALL_PAIRS, tiny]),
    }
    if bench.peers:
        python = peers.ensure_venv(
            "datasketch", [peers.requirement("datasketch"), peers.requirement("pyarrow")], bench.cache
        )
        commands["datasketch, MinHashLSH"] = lambda: launch([python, "-c", DATASKETCH, tiny])
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(bench.repeat + 1):  # the first is dropped
        for name, command in commands.items():
            seconds[name].append(command()["seconds"])
    context = {"documents": TINY_DOCUMENTS}
    figures = [
        figure(f"{name}, {TINY_DOCUMENTS} documents, process", s[1:], "s", **context) for name, s in seconds.items()
    ]
    short = bench.scratch / "short.parquet"
    rows = rng.integers(0, 50_000, (SHORT_DOCUMENTS, SHORT_WORDS))
    text = [" ".join(f"w{i}" for i in row) for row in rows.tolist()]
    pq.write_table(pa.table({"id": range(SHORT_DOCUMENTS), "text": text}), short)
    if bench.peers:
        figures += signature_rates(bench, short, min(bench.repeat, SLOW_ROUNDS), ("rensa",))
    return figures


def script(name: str, *options: Any) -> list[dict]:
    """Run a module beside this one in a process of its own; its figures."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def simhash_part(bench: Bench) -> list[dict]:
    """Precision and recall of simhashes on real documents, beside supershingles; text to simhashes."""
    for name in ("bills_116", "django_docs", "manpages"):
        bench.corpus(name)
    figures = script("simhash", "--corpora", bench.corpora, "--repeat", bench.repeat)
    for row in figures:
        if row["what"].startswith("speed over that of signatures") and "64 bits" in row["what"]:
            bench.target(f"simhash, {row['what']}", middle(row), 0.5, least=True)
    return figures


def hamming_part(bench: Bench) -> list[dict]:
    """All pairs, a scan, an index; faiss beside them."""
    figures = script("hamming", "--repeat", bench.repeat, *(["--peers", "--cache", bench.cache] * bench.peers))
    for row in figures:
        what, size = row["what"], row.get("fingerprints")
        if what == "all pairs":
            wanted = {1_000_000: 0.3, 10_000_000: 5}[size]
            bench.target(f"all pairs within 3 bits of {size:,} fingerprints, s", middle(row), wanted, least=False)
        elif what == "all pairs, peak memory":
            bench.target(f"all pairs of {size:,}, peak over all tables", row["over_all_tables"], 3, least=False)
        elif what == "scan" and row["threads"] == 1:
            bench.target(f"scan from {row['from']}, million/s on one core", middle(row), 4, least=True)
        elif what == "index: one query, warm, from Python":
            bench.target("one query of 10 million, warm, us", middle(row), 50, least=False)
        elif what.startswith("index: a query of a batch"):
            bench.target("a query of a batch of 1,000, warm, us", middle(row), 5, least=False)
    return figures


def compression_part(bench: Bench) -> list[dict]:
    """Compressed tables: their size, measured and derived, and what asking them costs."""
    for name in ("bills_116", "manpages"):
        bench.corpus(name)
    return script("compression", "--corpora", bench.corpora, "--repeat", bench.repeat)


PARTS: dict[str, Callable[[Bench], list[dict]]] = {
    "kernels": kernels_part,
    "peers": peers_part,
    "dedup": dedup_part,
    "memory": memory_part,
    "verification": verification_part,
    "giant": giant_part,
    "losses": losses_part,
    "simhash": simhash_part,
    "hamming": hamming_part,
    "compression": compression_part,
}


# ------------------------------------------------------------------------------------------------ the run as a whole


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "date": datetime.date.today().isoformat(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "carryless_multiplication_bits": CARRYLESS_WIDTH,
        "load_at_start": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY"),
        "packages": {name: version(name) for name in ("neardup_gpu", "numpy", "numba", "llvmlite", "pyarrow")},
    }


SHOWN = ("what", "unit", "min", "median", "max", "runs")


def print_part(name: str, figures: list[dict]) -> None:
    """One line for each figure: median (least to greatest) unit, what, and the rest."""
    print(f"\n{name}")
    for row in figures:
        shown = {key: value for key, value in row.items() if key not in SHOWN and not isinstance(value, list)}
        rest = ", ".join(f"{key} {value}" for key, value in shown.items())
        spread = f"{row['median']:g} ({row['min']:g} to {row['max']:g})"
        print(f"  {row['what']:<62} {spread:>30} {row['unit']:<16} {rest}")
    sys.stdout.flush()


def main() -> None:
    """Read the command line, run the parts, print and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpora",
        type=Path,
        default=Path(os.environ.get("NEARDUP_CORPORA", "corpora")),
        help="folder of NAME.parquet and NAME.gold.parquet; NEARDUP_CORPORA unless given",
    )
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts divided by commas: {', '.join(PARTS)}")
    parser.add_argument("--repeat", type=int, default=5, help="rounds, after one that is dropped")
    parser.add_argument("--peers", action="store_true", help="run the peers too; the first time installs them")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "neardup-peers",
        help="folder for the peers' environments",
    )
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"--only {', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    start = time.perf_counter()
    parameters = {"repeat": args.repeat, "threshold": THRESHOLD, "recipe": Recipe.choose(THRESHOLD).describe()}
    parameters |= {"shuffle_seed": SHUFFLE_SEED, "peers": args.peers, "parts": chosen}
    results: dict[str, Any] = {"machine": machine(), "parameters": parameters}
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as scratch:
        bench = Bench(args.corpora.resolve(), args.repeat, args.peers, args.cache, Path(scratch))
        for name in chosen:
            try:
                bench.figures[name] = PARTS[name](bench)
            except Skip as reason:
                bench.skipped.append(f"{name}: {reason}")
                print(f"\n{name}: skipped, {reason}", flush=True)
            else:
                print_part(name, bench.figures[name])
    print("\ntargets")
    for row in bench.targets:
        print(f"  {'met   ' if row['met'] else 'missed'} {row['target']}: {row['value']:g} {row['wanted']}")
    results |= {"targets": bench.targets, "skipped": bench.skipped, "figures": bench.figures}
    results["machine"]["load_at_end"] = round(os.getloadavg()[0], 2)
    results["seconds"] = round(time.perf_counter() - start)
    print(f"\n{results['seconds']} s in all")
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results, indent=1)
        text = re.sub(r"\[([^][{}\"]+)\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text)  # on one line
        args.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
