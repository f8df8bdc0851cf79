"""What the parts of the benchmarks share: figures, text to measure, processes that are watched, a run's settings."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import open_documents
from neardup_gpu.definitions import material
from neardup_gpu.kernels import minhash, shingles, tokens
from neardup_gpu.methods.minhash import Filter, permutations
from neardup_gpu.stages import Ragged

BATCH_BYTES = 8 << 20
SHUFFLE_SEED = 0
SEED = 1  # of the random constants
WIDTH = 5
THRESHOLD = 0.8
ALTAVISTA = Filter(6, 14, 2)
SLOW_ROUNDS = 3  # at most, of what takes longest
SHRINK = 100  # of made inputs, where a run is only to show that everything works
PROGRAMS = Path(__file__).resolve().with_name("programs")
"""What is run as processes of their own, some by another Python."""


# ------------------------------------------------------------------------------------------------------------- figures


def figure(what: str, values: list[float], unit: str, **context: Any) -> dict[str, Any]:
    """One measured quantity: smallest, median and greatest of its runs, four digits each, and what it was taken on."""
    low, middle, high = (float(f"{x:.4g}") for x in (min(values), statistics.median(values), max(values)))
    spread = {"min": low, "median": middle, "max": high, "runs": len(values)}
    return {"what": what, "unit": unit, **spread, **{key: value for key, value in context.items() if value is not None}}


def ratio(what: str, above: list[float], below: list[float], **context: Any) -> dict[str, Any]:
    """Ratios of two quantities, round by round."""
    return figure(what, [a / b for a, b in zip(above, below, strict=True)], "ratio", **context)


def timed(repeat: int, call: Callable[..., Any], *args: Any) -> list[float]:
    """Seconds of some calls, after one that is dropped."""
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call(*args)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


# ---------------------------------------------------------------------------------------------------------------- text


def shuffled(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows of a Parquet file in a random order, the same each time."""
    table = pq.read_table(path, columns=columns)
    return table.take(pa.array(np.random.default_rng(SHUFFLE_SEED).permutation(len(table))))


def load(table: pa.Table) -> list[Ragged]:
    """Column `text` in batches of `BATCH_BYTES`."""
    return [batch.text for batch in open_documents(table.select(["text"])).batches(max_bytes=BATCH_BYTES)]


def num_bytes(batches: list[Ragged]) -> int:
    """Bytes of text."""
    return sum(int(batch.offsets[-1] - batch.offsets[0]) for batch in batches)


def signatures_seconds(batches: list[Ragged], samples: int, bits: int = 32) -> float:
    """Seconds from text to signatures."""
    drawn, permuted = material(SEED), permutations(SEED, samples, bits)
    start = time.perf_counter()
    for batch in batches:
        values, offsets, _ = tokens.cpu(batch.values, batch.offsets, drawn.tokens)
        values, offsets = shingles.cpu(values, offsets, WIDTH, "set", drawn.shingles, drawn.bags)
        minhash.cpu(values, offsets, *permuted)
    return time.perf_counter() - start


# ----------------------------------------------------------------------------------------------------------- processes


def launch(command: list[Any], folder: Path | None = None, **variables: str) -> dict[str, Any]:
    """Run a command in a process; return its wall seconds, processor seconds, peak resident MB and standard output.

    Python keeps what it compiles, as it does for installed packages, whatever the environment says. The command runs in
    the folder, if one is given, with the variables added to the environment.

    Raises
    ------
    RuntimeError
        If it fails, with what it complained of.
    """
    starter = [sys.executable, "-I", "-S", PROGRAMS / "watched.py", *command]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    words = [str(word) for word in starter]
    run = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment, cwd=folder)
    done = json.loads(run.stdout)
    if done["status"]:
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} ...: {done['stderr'].strip() or done['status']}")
    return done


def neardup(source: Path, output: Path, *options: Any) -> dict[str, Any]:
    """Run `neardup dedup` as a process."""
    command = [sys.executable, "-m", "neardup_gpu", "dedup", source, "--output", output, "--overwrite", "--quiet"]
    return launch([*command, *options])


def figures_of(module: str, *options: Any, **environment: str) -> list[dict[str, Any]]:
    """Run a module beside this one in a process of its own; its figures."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *options]
    done = subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, env={**os.environ, **environment}
    )
    return json.loads(done.stdout)


# --------------------------------------------------------------------------------------------------------------- a run


class Skip(Exception):
    """A part that cannot run here, and why."""


@dataclass
class Bench:
    """Settings of a run, and what it has found."""

    corpora: Path
    repeat: int
    peers: bool
    cache: Path
    scratch: Path
    small: bool = False
    largest: int = 3_000_000
    entries: int = 1_000_000
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

    def sized(self, number: int) -> int:
        """How many of something to make, where it would be `number` in a run that measures."""
        return number // SHRINK if self.small else number

    def target(self, what: str, value: float, wanted: float, *, least: bool) -> None:
        """Compare a figure with what was asked for, at least or at most `wanted`; small runs have no targets."""
        if self.small:
            return
        met = value >= wanted if least else value <= wanted
        sign = ">=" if least else "<="
        self.targets.append({"target": what, "wanted": f"{sign} {wanted}", "value": float(f"{value:.4g}"), "met": met})
