"""Predict from machine code what an A100 and an H100 would do. A prediction, not a measurement: gpu.py measures.

    python benchmarks/gpu_model.py --corpus corpora/bills_116.parquet --output benchmarks/results/gpu-prediction.json

Needs the compiler wheels of tests/gpu/requirements.txt, and no GPU. Each kernel that sees every byte or token is
compiled for the chip and disassembled. Its instructions outside loops count once a thread; where code for other scripts
than ASCII follows, only those before the first loop. A loop counts as often as the algorithm has to go through it: the
one with most reads of shared memory, until all look-ups are done; one that fills shared memory, until it is full; one
that only reads global memory is a bisection of the documents' offsets. From these counts, of instructions by kind and
of bytes, and from what NVIDIA publishes of a chip, each resource gives a bound; the lowest is the prediction:

    issue     4 warp instructions a cycle and multiprocessor
    alu       2 of integer addition, comparison, logic, shift, minimum (64 lanes a cycle)
    imad      2 of integer multiplication with addition
    shared    one access of 128 bytes; look-ups of 8 bytes at random places are served 16 lanes at a time, as many
              turns as the fullest of 16 banks pairs has of 16 (its mean, simulated here with a fixed seed)
    memory    bytes of the arrays read and written once, at the memory's bandwidth
    pcie      the text itself

The sort of a pair table is CuPy's, not ours: of it only the bytes are counted, 8 passes that read and write keys of 8
and row numbers of 8 bytes, one that counts, and the gathering of both. Expansion and verification of pairs depend on
the documents more than on the text, and are left out; so are reading files, and CuPy's scans and copies in between.

What it leaves out makes real speeds lower: latency that too few warps hide, cache misses, clocks below boost, tails.
What it counts too much makes them higher: code outside loops counts whole, also where it is seldom run.
Sources: CUDA C++ Programming Guide 13.0, "Arithmetic Instructions" (throughput of native instructions); data sheets of
A100 80 GB SXM and H100 SXM: multiprocessors, memory and PCIe bandwidth (each way), and the clock as FP32 peak over
multiprocessors, lanes and 2.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "gpu"))

from compiled import compiled, disassembly, innermost_loops

from kernels import ALTAVISTA, WIDTH, load, shuffled
from neardup_gpu.kernels import minhash, sequences, shingles, tokens
from neardup_gpu.kernels.launch import TABLES
from neardup_gpu.recipe import material


@dataclass(frozen=True)
class Card:
    """Published figures of a card."""

    chip: str
    multiprocessors: int
    hertz: float
    memory: float  # bytes a second
    pcie: float  # bytes a second, one way


CARDS = {
    "A100": Card("sm_80", 108, 19.5e12 / (108 * 64 * 2), 2.039e12, 32e9),
    "H100": Card("sm_90", 132, 67e12 / (132 * 128 * 2), 3.35e12, 64e9),
}


@dataclass(frozen=True)
class Work:
    """What one thread of a kernel has to do, by the algorithm."""

    unit: str  # of which the kernel makes something
    units: float  # a thread
    bytes: float  # read and written, a unit
    lookups: float = 0  # reads of shared memory, a thread
    staged: float = 0  # writes to shared memory, a thread
    scattered: bool = False  # whether neighbours look up at random places, 8 bytes each
    bisections: float = 1  # a thread
    shifts: float = 0  # rounds of the longest other loop of look-ups, a thread
    ascii: bool = False  # whether code for other scripts follows the first loop


@dataclass(frozen=True)
class Profile:
    """A text: bytes of a token, tokens of a document, documents of a batch."""

    token_bytes: float
    document_tokens: float
    documents: int


def conflicts() -> float:
    """Mean turns in which 16 lanes read 8 bytes each at random from 16 pairs of banks.

    >>> 2.9 < conflicts() < 3.2
    True
    """
    banks = np.random.default_rng(0).integers(0, 16, (20_000, 16))
    fullest = (banks[:, :, None] == np.arange(16)).sum(axis=1).max(axis=1)
    return float(fullest.mean())


def kind(name: str) -> str:
    """The pipe of an instruction."""
    if name.startswith(("LDS", "STS", "ATOMS")):
        return "shared"
    if name.startswith(("LDG", "STG", "LD.", "ST.", "RED", "ATOMG", "LDC", "ULDC", "S2R", "CS2R", "BAR")):
        return "other"
    return "imad" if name.startswith("IMAD") else "alu" if re.match(r"[IVLSPF]", name) else "other"


def counts(name: str, chip: str, work: Work, profile: Profile) -> dict[str, float]:
    """Instructions of a thread, by pipe."""
    names, bounds_of_loops = innermost_loops(disassembly(compiled(name, chip)[1]))
    within = {at for start, stop in bounds_of_loops for at in range(start, stop)}
    outside = [(at, instruction) for at, instruction in enumerate(names) if at not in within]
    loops = [(start, names[start:stop]) for start, stop in bounds_of_loops]

    def reads(loop: list[str], what: str) -> int:
        return sum(instruction.startswith(what) for instruction in loop)

    staging = max((loop for _, loop in loops if reads(loop, "STS")), key=len, default=[])
    looking = sorted(
        (loop for _, loop in loops if reads(loop, "LDS")), key=lambda loop: (-reads(loop, "LDS"), len(loop))
    )
    others = [(at, loop) for at, loop in loops if not reads(loop, "STS") and not reads(loop, "LDS")]
    first = min((at for at, loop in loops if not reads(loop, "STS")), default=len(outside)) if work.ascii else math.inf
    trips = [([instruction for at, instruction in outside if at < first], 1.0)]
    if work.staged:
        trips.append((staging, work.staged / reads(staging, "STS")))
    if work.lookups:
        trips.append((looking[0], work.lookups / reads(looking[0], "LDS")))
    if work.shifts:
        trips.append((max(looking[1:], key=len), work.shifts))
    if others and not work.ascii:
        trips.append((min((loop for _, loop in others), key=len), work.bisections * math.log2(profile.documents)))
    total = {"alu": 0.0, "imad": 0.0, "shared": 0.0, "other": 0.0}
    for instructions, times in trips:
        for instruction in instructions:
            total[kind(instruction)] += times
    return total


def bounds(card: Card, work: Work, total: dict[str, float]) -> dict[str, float]:
    """Units a second that each resource allows."""
    warp_rate = card.multiprocessors * card.hertz * 32 * work.units  # units a second at one warp instruction a cycle
    turns = 2 * conflicts() if work.scattered else 1.0
    lookups = max(work.lookups, 1e-9)
    return {
        "issue": 4 * warp_rate / sum(total.values()),
        "alu": 2 * warp_rate / total["alu"],
        "imad": 2 * warp_rate / max(total["imad"], 1e-9),
        "shared": warp_rate / (max(total["shared"] - lookups, 0) + lookups * turns),
        "memory": card.memory / work.bytes,
    }


SORT = "sorts of the pair tables"


def works(profile: Profile) -> dict[str, Work]:
    """What the kernels have to do for such a text, by the names of tests/gpu/kernel_list.py."""
    k, s, r = ALTAVISTA
    samples, per_document = k * s, profile.document_tokens
    per_lane = -(-samples // 32)
    share = minhash._STAGED / (256 / 32)  # shingles of a warp
    per_row = 4 * samples / profile.document_tokens  # bytes of a signature, a shingle
    token = profile.token_bytes
    runs = sequences._RUN / profile.document_tokens  # documents that end in a thread's run
    jumps = min(shingles._EACH, 1 + (shingles._EACH - 1) * 256 / profile.document_tokens)
    return {
        "tokens._count_beginnings": Work("byte", 32, 1 + 1 / 32, ascii=True),
        "tokens._fill_beginnings": Work("byte", 32, 1 + 8 / 32 + 8 / token, ascii=True),
        "tokens._fingerprint_tokens": Work("token", 1, 16 + token, token, 1, True, ascii=True),
        "sequences._accumulate": Work(
            "token",
            sequences._RUN,
            8,
            8 * sequences._RUN,
            (TABLES + 1280) / 256,
            True,
            shifts=max(0.0, 1 - runs) * math.log(max(profile.document_tokens, 2), 256),
        ),
        "shingles._fingerprint": Work(
            "token", shingles._EACH, 16, 8 * WIDTH * shingles._EACH, TABLES / 256, True, bisections=jumps
        ),
        f"minhash._signature_kernel(32, {per_lane})": Work(
            "token", share / 32, 8 + per_row, share, minhash._STAGED / 256
        ),
        "supershingles._FEATURES[uint32]": Work(
            "token", per_document / k, per_row + 8 * k / per_document, 8 * (s + 1), TABLES / 256, True
        ),
        "pairtables._row_keys": Work(
            "token",
            per_document / ALTAVISTA.tables,
            ALTAVISTA.tables * (8 * r + 8) / per_document,
            8 * r,
            TABLES / 256,
            True,
        ),
    }


def predict(profile: Profile) -> list[dict[str, Any]]:
    """A line for each card and kernel, then one for all of them together."""
    lines = []
    for name, card in CARDS.items():
        seconds = {}
        for kernel, work in works(profile).items():
            total = counts(kernel, card.chip, work, profile)
            allowed = bounds(card, work, total)
            bound = min(allowed, key=lambda resource: allowed[resource])
            per_byte = 1 / allowed[bound] / (1 if work.unit == "byte" else profile.token_bytes)
            seconds[kernel] = per_byte * (2 if kernel.startswith("sequences") else 1)  # two fingerprints
            lines.append(
                {
                    "card": name,
                    "kernel": kernel,
                    "unit": work.unit,
                    "instructions_per_unit": round(sum(total.values()) / work.units, 2),
                    "bytes_per_unit": round(work.bytes, 2),
                    "giga_units_per_s": round(allowed[bound] / 1e9, 2),
                    "bound": bound,
                    "text_gb_per_s": round(1e-9 / seconds[kernel], 1),
                }
            )
        sorted_bytes = 8 * 2 * 16 + 8 + 2 * 16
        rows = card.memory / sorted_bytes
        seconds[SORT] = ALTAVISTA.tables / rows / (profile.document_tokens * profile.token_bytes)
        lines.append(
            {
                "card": name,
                "kernel": SORT,
                "unit": "row",
                "bytes_per_unit": sorted_bytes,
                "giga_units_per_s": round(rows / 1e9, 2),
                "bound": "memory",
                "text_gb_per_s": round(1e-9 / seconds[SORT], 1),
            }
        )
        together = 1e-9 / sum(seconds.values())
        lines.append(
            {
                "card": name,
                "kernel": "text to sorted pair tables, together",
                "unit": "byte",
                "text_gb_per_s": round(min(together, card.pcie / 1e9), 1),
                "without_pcie_gb_per_s": round(together, 1),
                "bound": "pcie" if card.pcie / 1e9 < together else max(seconds, key=lambda kernel: seconds[kernel]),
            }
        )
    return lines


def main() -> None:
    """Read the command line; print the table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    batch = load(shuffled(args.corpus, ["id", "text"]))[0]
    size = int(batch.offsets[-1] - batch.offsets[0])
    values, _, _ = tokens.cpu(batch.values, batch.offsets, material(1, 1, 32).tokens)
    profile = Profile(size / len(values), len(values) / len(batch), round(len(batch) * 256e6 / size))
    lines = predict(profile)
    print(f"PREDICTION from machine code, not a measurement; text like {args.corpus.stem}: {profile}")
    for line in lines:
        rate = f"{line['giga_units_per_s']:9.1f} G {line['unit']}s/s" if "giga_units_per_s" in line else ""
        print(
            f"{line['card']} {line['kernel']:56} {line.get('instructions_per_unit', ''):>8} {rate:22} "
            f"{line['text_gb_per_s']:8.1f} GB/s of text, bound by {line['bound']}"
        )
    if args.output:
        head = {"prediction": "from machine code and published rates; nothing here was measured on a device"}
        context = {"corpus": args.corpus.stem, "filter": str(ALTAVISTA), "width": WIDTH, "profile": vars(profile)}
        args.output.write_text(json.dumps({**head, **context, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
