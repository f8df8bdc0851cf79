"""Measure everything that the project promises about speed, memory and recall, in one run, into one JSON file.

    python -m benchmarks.run --corpora CORPORA --peers --output benchmarks/results/NAME.json

Parts (see README.md beside this file): kernels, peers, dedup, layouts, methods, memory, verification, exact,
containment, giant, losses, start_up, one_text, simhash, hamming, html, token_kinds, units, conditions, compression,
samples, deciding, scale, beside, short, index. A part whose corpus is missing is skipped and says so. What is compared
runs by turns in one run. Everything runs once before it is timed, so that compilation and cold files are left out.
Recall stands beside time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from neardup_gpu import Recipe, __version__
from neardup_gpu.kernels._processor import carryless_products

from . import (
    beside,
    compression,
    conditions,
    containment,
    deciding,
    exact,
    giant,
    hamming,
    html,
    index,
    kernel_times,
    losses,
    memory,
    methods,
    samples,
    scale,
    short,
    signatures,
    simhash,
    small,
    token_kinds,
    units,
    verification,
    whole_job,
)
from .measure import SHUFFLE_SEED, THRESHOLD, Bench, Skip

PARTS: dict[str, Callable[[Bench], list[dict]]] = {
    "kernels": kernel_times.part,
    "peers": signatures.part,
    "dedup": whole_job.part,
    "layouts": whole_job.layouts,
    "methods": methods.part,
    "memory": memory.part,
    "verification": verification.part,
    "exact": exact.part,
    "containment": containment.part,
    "giant": giant.part,
    "losses": losses.part,
    "start_up": small.start_up,
    "one_text": small.one_text,
    "simhash": simhash.part,
    "hamming": hamming.part,
    "html": html.part,
    "token_kinds": token_kinds.part,
    "units": units.part,
    "conditions": conditions.part,
    "compression": compression.part,
    "samples": samples.part,
    "deciding": deciding.part,
    "scale": scale.part,
    "beside": beside.part,
    "short": short.part,
    "index": index.part,
}


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
        "carryless_product": carryless_products(),
        "load_at_start": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY"),
        "packages": {
            "neardup_gpu": __version__,
            **{name: version(name) for name in ("numpy", "numba", "llvmlite", "pyarrow")},
        },
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


def options() -> argparse.ArgumentParser:
    """The command line."""
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
        "--small", action="store_true", help="make a hundredth of what is made, to see that all runs; measures nothing"
    )
    parser.add_argument(
        "--largest",
        type=int,
        default=3_000_000,
        metavar="N",
        help="documents of the largest job of the part scale, up to 30 million; 3 million unless given",
    )
    parser.add_argument(
        "--entries",
        type=int,
        default=1_000_000,
        metavar="N",
        help="entries of the index that the part index asks; a million unless given",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "neardup-peers",
        help="folder for the peers' environments",
    )
    return parser


def main() -> None:
    """Read the command line, run the parts, print and write what they found."""
    parser = options()
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"--only {', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    start = time.perf_counter()
    parameters = {"repeat": args.repeat, "threshold": THRESHOLD, "recipe": Recipe(threshold=THRESHOLD).describe()}
    parameters |= {
        "shuffle_seed": SHUFFLE_SEED,
        "peers": args.peers,
        "small": args.small,
        "largest": args.largest,
        "entries": args.entries,
        "parts": chosen,
    }
    results: dict[str, Any] = {"machine": machine(), "parameters": parameters}
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as scratch:
        bench = Bench(
            args.corpora.resolve(),
            args.repeat,
            args.peers,
            args.cache,
            Path(scratch),
            args.small,
            args.largest,
            args.entries,
        )
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
