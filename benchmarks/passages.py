"""Measure shared passages of corpora: how much of each stands in another document, and what finding it costs.

    python -m benchmarks.passages CORPUS.parquet ... [--length 20] [--threads N] [--sample N] [--output FILE]

Each corpus is any Parquet file with a column of text: your own, too. `neardup passages` compares all of its documents
with one another. Then the first `--sample` documents are compared by an independent program, which matches all pairs of
documents by a dictionary of their runs of `--length` tokens and lengthens each match token by token. Both have to give
the same runs and the same tokens.

- taken: share of all tokens that stand in a document that was read before.
- common: share of all tokens in runs that stand at more than `ignore_common` places.

Times are in nanoseconds per token, by stage, without compilation. `peak_bytes` is the memory of the process.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

import neardup_gpu as nd

STAGES = ("read", "search", "locate", "write")

WITH_PEAK = (
    "import resource, sys; from neardup_gpu import cli; status = cli.main(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(status)"
)
"""A program that runs the command and then prints its peak memory, in kilobytes."""


def run(corpus: Path, length: int, threads: int, sample: int) -> dict[str, Any]:
    """Return the shares and times of one corpus, from the command line, and the check of its first documents."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ["--length", str(length), "--threads", str(threads), "--engine", "cpu", "--json"]
        command = [sys.executable, "-c", WITH_PEAK, "passages", str(corpus), "-o", f"{folder}/out", *settings]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, peak = json.loads(done.stdout), 1024 * int(done.stderr.split()[-1])
    counts, seconds = found["counts"], found["timings"]
    tokens = max(1, counts["tokens"])
    return {
        "corpus": corpus.stem,
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "text_bytes": counts["text_bytes"],
        "taken": round(counts["tokens_taken"] / tokens, 4),
        "common": round(counts["tokens_common"] / tokens, 4),
        "passages": counts["passages"],
        "pairs": counts["pairs"],
        "pairs_listed": counts["pairs_listed"],
        "runs": counts["runs"],
        "ns_per_token": {stage: round(1e9 * seconds[stage] / tokens, 1) for stage in STAGES},
        "peak_bytes": peak,
        "sample": checked(corpus, length, sample),
    }


def checked(corpus: Path, length: int, sample: int) -> dict[str, Any]:
    """Compare the first documents of a corpus with what the independent program finds in them."""
    documents = nd.open_documents(corpus)
    texts = list(documents.texts(range(min(sample, documents.num_rows or 0))).values())
    found = nd.passages({"text": texts}, length=length, ignore_common=2**40, engine="cpu")
    tokens = nd.stages.tokenize(texts, nd.Recipe())
    runs = matched([tokens[row].tolist() for row in range(len(texts))], length)
    covered = {(document, place + k) for document, place, _, _, size in runs for k in range(size)}
    return {
        "documents": len(texts),
        "runs": len(runs),
        "same_runs": found.counts["runs"] == len(runs),
        "same_tokens": sum(found.documents["tokens_taken"].to_pylist()) == len(covered),
    }


def matched(texts: list[list[int]], length: int) -> set[tuple[int, int, int, int, int]]:
    """Return all maximal runs of at least `length` tokens that a text shares with an earlier one.

    A run is a text, its first token, the earlier text, the first token there, and the number of tokens.
    """
    places: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    found = set()
    for document, text in enumerate(texts):
        for place in range(len(text) - length + 1):
            for other, start in places.get(tuple(text[place : place + length]), ()):
                earlier = texts[other]
                if place and start and text[place - 1] == earlier[start - 1]:
                    continue
                size = length
                while place + size < len(text) and start + size < len(earlier):
                    if text[place + size] != earlier[start + size]:
                        break
                    size += 1
                found.add((document, place, other, start, size))
        for place in range(len(text) - length + 1):
            places.setdefault(tuple(text[place : place + length]), []).append((document, place))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    nd.passages(pa.table({"text": ["one two three four", "one two three"]}), length=3, engine="cpu")  # compiles
    rows = []
    for corpus in options.corpus:
        rows.append(run(corpus, options.length, options.threads, options.sample))
        print(json.dumps(rows[-1]), flush=True)
    found = {
        "neardup_gpu": version("neardup_gpu"),
        "python": platform.python_version(),
        "length": options.length,
        "threads": options.threads,
        "corpora": rows,
    }
    if options.output is not None:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    if not all(row["sample"]["same_runs"] and row["sample"]["same_tokens"] for row in rows):
        sys.exit("the independent program finds something else")


if __name__ == "__main__":
    main()
