"""Where others are faster: the part `losses`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import peers
from .measure import PROGRAMS, SHUFFLE_SEED, SLOW_ROUNDS, Bench, figure, launch, neardup
from .signatures import signature_rates

SHORT_DOCUMENTS, SHORT_WORDS = 200_000, 8
TINY_DOCUMENTS, TINY_WORDS = 20, 50


def part(bench: Bench) -> list[dict]:
    """Where others are faster: a handful of documents, where starting up is all; and what short documents cost."""
    rng = np.random.default_rng(SHUFFLE_SEED)
    tiny = bench.scratch / "tiny.jsonl"
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 5000, TINY_WORDS)) for _ in range(TINY_DOCUMENTS)]
    tiny.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    commands: dict[str, Callable[[], dict]] = {
        "neardup dedup": lambda: neardup(tiny, bench.scratch / "tiny"),
        "twelve lines of Python, all pairs": lambda: launch([sys.executable, PROGRAMS / "all_pairs.py", tiny]),
    }
    if bench.peers:
        python = peers.ensure_venv(
            "datasketch", [peers.requirement("datasketch"), peers.requirement("pyarrow")], bench.cache
        )
        commands["datasketch, MinHashLSH"] = lambda: launch([python, PROGRAMS / "datasketch_lsh.py", tiny])
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(bench.repeat + 1):  # the first is dropped
        for name, command in commands.items():
            seconds[name].append(command()["seconds"])
    context = {"documents": TINY_DOCUMENTS}
    figures = [
        figure(f"{name}, {TINY_DOCUMENTS} documents, process", s[1:], "s", **context) for name, s in seconds.items()
    ]
    short = bench.scratch / "short.parquet"
    number = bench.sized(SHORT_DOCUMENTS)
    rows = rng.integers(0, 50_000, (number, SHORT_WORDS))
    text = [" ".join(f"w{i}" for i in row) for row in rows.tolist()]
    pq.write_table(pa.table({"id": range(number), "text": text}), short)
    if bench.peers:
        figures += signature_rates(bench, short, min(bench.repeat, SLOW_ROUNDS), ("rensa",))
    return figures
