"""Peak memory of the whole command as the corpus grows: the part `memory`."""

from __future__ import annotations

import json
import statistics

from .measure import Bench, figure, neardup
from .whole_job import quality


def part(bench: Bench) -> list[dict]:
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
