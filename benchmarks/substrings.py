"""Measure repeated passages of corpora: covered, removed, left with no copy, and what the naive rule would cut.

    python -m benchmarks.substrings CORPUS.parquet ... [--length 50] [--threads N] [--output FILE]

Each corpus is any Parquet file with a column of text: your own, too. `neardup substrings` writes it without the
repeated passages and runs again over what it wrote, which has to remove nothing. The shares are of all tokens:

- covered: in passages that occur more than once.
- removed: by the rule, under which each removed passage stands whole in kept text.
- no copy left: covered and not removed. A tool that removes every repeat loses these tokens.

Times are in nanoseconds per token, by stage and from the beginning of the job to its end, with the writing of kept/.
The second run gives those of clean text, where nothing repeats.
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

STAGES = ("read", "search", "locate", "decide", "write")


def run(corpus: Path, length: int, threads: int) -> dict[str, Any]:
    """Return the shares and times of one corpus, from the command line."""
    with tempfile.TemporaryDirectory() as folder:
        found = _command(corpus, Path(folder) / "once", length, threads)
        again = _command(Path(folder) / "once" / "kept", Path(folder) / "again", length, threads)
    counts = found["counts"]
    tokens = max(1, counts["tokens"])
    covered, removed = counts["tokens_covered"], counts["tokens_removed"]
    return {
        "corpus": corpus.stem,
        "documents": counts["documents"],
        "tokens": counts["tokens"],
        "text_bytes": counts["text_bytes"],
        "covered": round(covered / tokens, 4),
        "removed": round(removed / tokens, 4),
        "no_copy_left": round((covered - removed) / tokens, 4),
        "passages": counts["passages"],
        "dropped": counts["dropped"],
        "removed_by_a_second_run": again["counts"]["tokens_removed"],
        "ns_per_token": _times(found),
        "ns_per_clean_token": _times(again),
    }


def _times(report: dict[str, Any]) -> dict[str, float]:
    """Return nanoseconds per token of each stage, and of all."""
    seconds = {stage: report["timings"][stage] for stage in STAGES} | {"all": report["seconds"]}
    return {name: round(1e9 * each / max(1, report["counts"]["tokens"]), 1) for name, each in seconds.items()}


def _command(source: Path, output: Path, length: int, threads: int) -> dict[str, Any]:
    """Run `neardup substrings` and return its report."""
    settings = ["--length", str(length), "--threads", str(threads), "--engine", "cpu"]
    command = [sys.executable, "-m", "neardup_gpu", "substrings", str(source), "-o", str(output), *settings, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = []
    for corpus in options.corpus:
        row = run(corpus, options.length, options.threads)
        rows.append(row)
        print(json.dumps(row), flush=True)
    found = {
        "neardup_gpu": version("neardup_gpu"),
        "python": platform.python_version(),
        "length": options.length,
        "threads": options.threads,
        "corpora": rows,
    }
    if options.output is not None:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    if any(row["removed_by_a_second_run"] for row in rows):
        sys.exit("a second run removed something")


if __name__ == "__main__":
    main()
