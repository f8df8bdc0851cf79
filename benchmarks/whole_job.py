"""The whole command beside pyarrow's reading and writing of the same file, and beside text-dedup: the part `dedup`.

The part `layouts` compares files of the same text: one row group against row groups of 1,000 rows, four times the text,
and temporary files in memory and on disk.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Recipe, open_documents
from neardup_gpu.kernels import components

from . import peers
from .measure import PROGRAMS, SLOW_ROUNDS, THRESHOLD, Bench, figure, launch, neardup, ratio, timed

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


def layouts(bench: Bench) -> list[dict]:
    """Reading, `sketch` and `dedup --dry-run` of one text in two layouts; memory of `sketch`; temporary files."""
    one, many, longer = (bench.scratch / f"{name}.parquet" for name in ("one", "many", "longer"))
    text = pq.read_table(bench.corpus("bills_116"), columns=["text"])
    table = pa.concat_tables([text] * max(1, bench.sized(TEXT_BYTES) // text.nbytes))
    pq.write_table(table, one, row_group_size=len(table))
    pq.write_table(table, many, row_group_size=1000)
    with pq.ParquetWriter(longer, table.schema) as file:
        for _ in range(4):
            file.write_table(table, row_group_size=1000)
    size, figures = table.nbytes, []
    del text, table
    reading: dict[str, list[float]] = {}
    for _ in range(bench.repeat):
        for name, path in (("one row group", one), ("1,000 rows per group", many)):
            for what, read in (("slabs", _read_into_slabs), ("read_table", _read_table)):
                reading.setdefault(f"{what}, {name}", []).extend(timed(1, read, path))
    figures += [figure(f"reading: {name}", seconds, "s", text_bytes=size) for name, seconds in reading.items()]
    over = [reading[f"{what}, 1,000 rows per group"] for what in ("slabs", "read_table")]
    figures.append(ratio("reading into slabs over read_table, 1,000 rows per group", *over))
    bench.target("reading into slabs, times read_table", figures[-1]["median"], 1, least=False)
    runs: dict[tuple[str, str], list[dict]] = {}
    shared = Path("/dev/shm")
    spools = {"disk": bench.scratch, "memory": shared} if shared.is_dir() else {}
    for _ in range(bench.repeat + 1):
        for verb, options in (
            ("sketch", ("-o", bench.scratch / "s.parquet", "--overwrite")),
            ("dedup", ("--dry-run",)),
        ):
            for name, path in (("one", one), ("many", many), *([("longer", longer)] if verb == "sketch" else [])):
                runs.setdefault((verb, name), []).append(_command(verb, path, *options))
        for name, folder in spools.items():
            run = _command("dedup", many, "--dry-run", "--temp-dir", folder)
            runs.setdefault(("dedup", name), []).append(run)
    for (verb, name), done in runs.items():
        figures.append(figure(f"neardup {verb}, {name}", [run["seconds"] for run in done[1:]], "s", text_bytes=size))
        figures.append(figure(f"neardup {verb}, {name}, peak memory", [run["peak_mb"] for run in done[1:]], "MB"))

    def compared(what: str, key: str, above: tuple[str, str], below: tuple[str, str], most: float) -> None:
        figures.append(ratio(what, *([run[key] for run in runs[each][1:]] for each in (above, below))))
        bench.target(what, figures[-1]["median"], most, least=False)

    for verb in ("sketch", "dedup"):
        compared(f"{verb}, one row group over 1,000 rows per group", "seconds", (verb, "one"), (verb, "many"), 1.2)
    compared("sketch, memory for four times the text", "peak_mb", ("sketch", "longer"), ("sketch", "many"), 1.2)
    if spools:
        compared("dedup, temporary files on disk over memory", "seconds", ("dedup", "disk"), ("dedup", "memory"), 1.3)
    return figures


def _command(verb: str, source: Path, *options: Any) -> dict[str, Any]:
    """Run a command in a process of its own."""
    return launch([sys.executable, "-m", "neardup_gpu", verb, source, "--quiet", *options])


def _read_into_slabs(path: Path) -> None:
    for _ in open_documents(path, text_columns="text").batches((), max_bytes=SLAB_BYTES):
        pass


def _read_table(path: Path) -> None:
    pq.read_table(path, columns=["text"])
