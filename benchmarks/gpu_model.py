"""Predict from machine code what an A100, an H100 and an H200 would do at best. Nothing is measured here: gpu.py does.

    python -m benchmarks.gpu_model --corpus corpora/bills_116.parquet --output benchmarks/results/gpu-prediction.json

Needs the compiler wheels of tests/gpu/requirements.txt, and no GPU. Each kernel that sees every byte or token is
compiled for the chip and disassembled. Its instructions outside loops count once a thread; where code for other scripts
than ASCII follows, only those before the first loop. A loop counts as often as the algorithm has to go through it: the
one with most reads of shared memory, until all look-ups are done; one that fills shared memory, until it is full; one
that only reads global memory is a bisection of the documents' offsets. From these counts, of instructions by kind and
of bytes, and from what NVIDIA publishes of a chip, each resource gives a bound; the lowest is the prediction:

    issue     4 warp instructions a cycle and multiprocessor
    alu       2 of integer addition, comparison, logic, shift, minimum (64 lanes a cycle)
    imad      2 of integer multiplication with addition
    popc      a half of one of counting bits (16 lanes a cycle)
    shared    one access of 128 bytes; look-ups of 8 bytes at random places are served 16 lanes at a time, as many
              turns as the fullest of 16 banks pairs has of 16 (its mean, simulated here with a fixed seed)
    memory    bytes of the arrays read and written once, at the memory's bandwidth
    pcie      the text itself

    cache     reads at random places that searches wait for, a sector of 32 bytes each, at 5,120 bytes a cycle

Sorts are CuPy's, not ours: of them only the bytes are counted, a pass for each byte of the key, which reads and writes
keys and row numbers of 8 bytes, one that counts, and the gathering of both. Of its searches only the sectors are.
Expansion and verification of pairs depend on the documents more than on the text, and are left out; so are reading
files, and CuPy's scans and copies in between.

Near pairs are those of random fingerprints, by designs of few tables and of many: of a table, permuting it, its sort,
searching for each row's bucket, and comparing all pairs of it, by the loop that has earlier masks; random fingerprints
have next to no near ones, which are to be written; CuPy's steps on each row between these (`BETWEEN`). What a table
costs the host, launches and waiting for the number of pairs, is left out.

Of the exact method, counting shingles and the first pass of the prefixes see every token; what follows sees the tokens
of those documents alone that may have a posting: none at best, all at worst, and both sums are given. How many
postings there are, and entries that are looked at, depends on the documents: a rate of each is given by itself.

Each figure is an upper bound of a kernel that never waits. Left out, and making real speeds lower: threads of a warp
that take different branches (a warp is as slow as its longest word or document), latency that too few warps hide, cache
misses, clocks below boost, tails; the host's waits for the device, of which each batch of text has 13 to 15; and the
copy of each batch into page-locked memory by the host, before it can cross PCIe at all. What it counts too much makes
them higher: code outside loops counts whole, also where it is seldom run. So a bound of "pcie" says that no kernel was
found to be slower than the bus, not that text would be taken at the bus's speed.

Sources: CUDA C++ Programming Guide 13.0, "Arithmetic Instructions" (throughput of native instructions); the data sheet
of each card (`CARDS`): multiprocessors, memory and PCIe bandwidth (each way), and the clock as FP32 peak over
multiprocessors, lanes and 2. NVIDIA A100 Tensor Core GPU Architecture (2020), "L2 cache", for its bytes a cycle; the
others are taken to have as many.
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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "gpu" / "harness"))

from compiled import all_loops, compiled, disassembly, innermost_loops

from neardup_gpu.definitions import material
from neardup_gpu.hamming import TableDesign
from neardup_gpu.kernels import minhash, sequences, shingles, simhash, tokens
from neardup_gpu.kernels._bits import plan
from neardup_gpu.kernels._launch import TABLES

from .measure import ALTAVISTA, SEED, WIDTH, load, shuffled


@dataclass(frozen=True)
class Card:
    """Published figures of a card."""

    chip: str
    multiprocessors: int
    hertz: float
    memory: float  # bytes a second
    pcie: float  # bytes a second, one way
    source: str


CARDS = {
    "A100": Card(
        "sm_80",
        108,
        19.5e12 / (108 * 64 * 2),
        2.039e12,
        32e9,
        "NVIDIA A100 Tensor Core GPU data sheet (2021), A100 80GB SXM: FP32 19.5 TFLOPS, 2,039 GB/s, PCIe Gen4 64 GB/s "
        "both ways together; 108 multiprocessors by the A100 architecture paper (2020)",
    ),
    "H100": Card(
        "sm_90",
        132,
        67e12 / (132 * 128 * 2),
        3.35e12,
        64e9,
        "NVIDIA H100 Tensor Core GPU data sheet (2023), H100 SXM: FP32 67 TFLOPS, 3.35 TB/s, PCIe Gen5 128 GB/s both "
        "ways together; 132 multiprocessors by the H100 architecture paper (2022)",
    ),
    "H200": Card(
        "sm_90",
        132,
        67e12 / (132 * 128 * 2),
        4.8e12,
        64e9,
        "NVIDIA H200 Tensor Core GPU data sheet (2024), H200 SXM: FP32 67 TFLOPS, 4.8 TB/s, PCIe Gen5 128 GB/s both "
        "ways together; multiprocessors as the H100's, whose processor it has",
    ),
}


LEFT_OUT = (
    "threads of a warp that take different branches, latency, cache misses, launches, the host's waits for the device "
    "(13 to 15 a batch) and its copies into page-locked memory: each rate is an upper bound"
)
"""What gpu-prediction.json says of itself."""


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
    loops: tuple[float, ...] = ()  # of each loop in the order of the code: reads of a thread; trips, if it reads none
    around: float = 0  # trips of a thread through the loop around the first of these
    kernel: str = ""  # its name in tests/gpu/harness/kernel_list.py, if it goes by another one here


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
    if name.startswith("POPC"):
        return "popc"
    return "imad" if name.startswith("IMAD") else "alu" if re.match(r"[IVLSPF]", name) else "other"


def counts(name: str, chip: str, work: Work, profile: Profile) -> dict[str, float]:
    """Instructions of a thread, by pipe."""
    assembly = disassembly(compiled(name, chip)[1])
    names, bounds_of_loops = innermost_loops(assembly)
    within = {at for start, stop in bounds_of_loops for at in range(start, stop)}
    outside = [(at, instruction) for at, instruction in enumerate(names) if at not in within]
    total = {"alu": 0.0, "imad": 0.0, "popc": 0.0, "shared": 0.0, "other": 0.0}
    if work.loops:
        inner = min(bounds_of_loops)
        holding = [loop for loop in all_loops(assembly)[1] if loop != inner and loop[0] <= inner[0] < loop[1]]
        around = min(holding, key=lambda loop: loop[1] - loop[0]) if work.around else (0, 0)
        for at, instruction in outside:
            total[kind(instruction)] += work.around if around[0] <= at < around[1] else 1
        for (start, stop), times in zip(sorted(bounds_of_loops), work.loops, strict=True):
            reads_of_trip = sum(instruction.startswith(("LDS", "LDG")) for instruction in names[start:stop])
            for instruction in names[start:stop]:
                total[kind(instruction)] += times / max(1, reads_of_trip)
        return total
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
        "popc": 0.5 * warp_rate / max(total["popc"], 1e-9),
        "shared": warp_rate / (max(total["shared"] - lookups, 0) + lookups * turns),
        "memory": card.memory / work.bytes,
    }


SECTOR = 32  # bytes that the cache gives for a read at a random place
CACHE = 5120  # bytes that it gives in a cycle
SORT = "sorts of the pair tables"
SORTED_BYTES = 8 * 2 * 16 + 8 + 2 * 16  # of a row: keys of 8 bytes


def line(name: str, label: str, work: Work, profile: Profile) -> tuple[dict[str, Any], float]:
    """What a card makes of a kernel, and the units a second."""
    card = CARDS[name]
    total = counts(work.kernel or label, card.chip, work, profile)
    allowed = bounds(card, work, total)
    bound = min(allowed, key=lambda resource: allowed[resource])
    described = {
        "card": name,
        "kernel": label,
        "unit": work.unit,
        "instructions_per_unit": round(sum(total.values()) / work.units, 2),
        "bytes_per_unit": round(work.bytes, 2),
        "giga_units_per_s": round(allowed[bound] / 1e9, 2),
        "bound": bound,
    }
    return described, allowed[bound]


def by_bytes(name: str, label: str, unit: str, num_bytes: float) -> tuple[dict[str, Any], float]:
    """The same of what only bytes are counted of."""
    rate = CARDS[name].memory / num_bytes
    described = {"bytes_per_unit": num_bytes, "giga_units_per_s": round(rate / 1e9, 2), "bound": "memory"}
    return {"card": name, "kernel": label, "unit": unit, **described}, rate


def by_sectors(name: str, label: str, unit: str, sectors: float) -> tuple[dict[str, Any], float]:
    """The same of a search."""
    rate = CACHE * CARDS[name].hertz / (SECTOR * sectors)
    described = {"sectors_per_unit": round(sectors, 1), "giga_units_per_s": round(rate / 1e9, 2), "bound": "cache"}
    return {"card": name, "kernel": label, "unit": unit, **described}, rate


def together(name: str, label: str, seconds: dict[str, float]) -> dict[str, Any]:
    """A line of several kernels, from their seconds a byte of text."""
    rate, pcie = 1e-9 / sum(seconds.values()), CARDS[name].pcie / 1e9
    return {
        "card": name,
        "kernel": label,
        "unit": "byte",
        "text_gb_per_s": round(min(rate, pcie), 1),
        "without_pcie_gb_per_s": round(rate, 1),
        "bound": "pcie" if pcie < rate else max(seconds, key=lambda kernel: seconds[kernel]),
    }


def works(profile: Profile) -> dict[str, Work]:
    """What the kernels have to do for such a text, by the names of tests/gpu/harness/kernel_list.py."""
    k, s, r = ALTAVISTA
    samples, per_document = k * s, profile.document_tokens
    per_lane = -(-samples // 32)
    share = minhash.STAGED / (256 / 32)  # shingles of a warp
    per_row = 4 * samples / profile.document_tokens  # bytes of a signature, a shingle
    token = profile.token_bytes
    runs = sequences.RUN / profile.document_tokens  # documents that end in a thread's run
    jumps = min(shingles.EACH, 1 + (shingles.EACH - 1) * 256 / profile.document_tokens)
    return {
        "_token_beginnings.count_beginnings": Work("byte", 32, 1 + 1 / 32, ascii=True),
        "_token_beginnings.fill_beginnings": Work("byte", 32, 1 + 8 / 32 + 8 / token, ascii=True),
        "tokens._fingerprint_tokens": Work("token", 1, 16 + token, token, 1, True, ascii=True),
        "sequences._accumulate": Work(
            "token",
            sequences.RUN,
            8,
            8 * sequences.RUN,
            (TABLES + 1280) / 256,
            True,
            shifts=max(0.0, 1 - runs) * math.log(max(profile.document_tokens, 2), 256),
        ),
        "shingles._fingerprint": Work(
            "token", shingles.EACH, 16, 8 * WIDTH * shingles.EACH, TABLES / 256, True, bisections=jumps
        ),
        f"minhash._signature_kernel(32, {per_lane})": Work(
            "token", share / 32, 8 + per_row, share, minhash.STAGED / 256
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


TABLE_TOKENS = 10_000_000  # of the document frequencies that TF-IDF looks tokens up in


def simhash_lines(name: str, profile: Profile, before: dict[str, float]) -> list[dict[str, Any]]:
    """Simhashes of tokens; `before` are the seconds a byte of text that it takes to have these."""
    lines, seconds = [], {}
    per_document = profile.document_tokens
    staged, search, added = simhash.STAGED / 256, math.log2(profile.documents), 2 * simhash.STAGED / (256 / 32)
    kernels = {
        "simhash._add, weights of 1": Work(
            "token", staged, 8 + 1024 / per_document, loops=(staged, 0, search, added), kernel="simhash._add"
        ),
        "simhash._add, weighted": Work(
            "token", staged, 16 + 1024 / per_document, loops=(0, 2 * staged, search, added), kernel="simhash._add"
        ),
        "simhash._take_signs": Work("token", per_document, 520 / per_document),
    }
    found = [line(name, label, work, profile) for label, work in kernels.items()]
    # By value, then by 4 bytes of the document's row, then what is distinct, which is all at most, by its place.
    found.append(by_bytes(name, "counts: sorts", "token", 2 * SORTED_BYTES + 4 * 2 * 12 + 4 + 2 * 16))
    found.append(by_sectors(name, "lookup: search", "token", math.log2(TABLE_TOKENS) + 2))
    for described, rate in found:
        seconds[described["kernel"]] = 1 / rate / profile.token_bytes
        lines.append(described | {"text_gb_per_s": round(1e-9 / seconds[described["kernel"]], 1)})
    plain, weighted, signs, counted, looked_up = seconds.items()
    lines.append(together(name, "text to simhashes, tf, together", before | dict([plain, signs])))
    log = dict([weighted, signs, counted])
    lines.append(together(name, "text to simhashes, log, together", before | log))
    tfidf = log | dict([looked_up])
    lines.append(together(name, "text to simhashes, tfidf, together", before | tfidf))
    return lines


SETS_BYTES = SORTED_BYTES + 4 * 2 * 12 + 4 + 2 * 16  # of a value: sorted by itself, then by 4 bytes of its row


def look_line(name: str) -> dict[str, Any]:
    """Entries that a row looks at, each at a random place of the sizes, and does not insert into its list."""
    kernel, card = "setjoin._probe_all", CARDS[name]
    assembly = disassembly(compiled(kernel, card.chip)[1])
    names, inner = innermost_loops(assembly)

    def held(loop: tuple[int, int]) -> list[tuple[int, int]]:
        return sorted(each for each in inner if loop[0] <= each[0] and each[1] <= loop[1])

    # The one that holds both loops of an insertion, and nothing but them.
    start, stop = min((loop for loop in all_loops(assembly)[1] if len(held(loop)) > 1), key=lambda l: l[1] - l[0])
    inserting = held((start, stop))
    total = {"alu": 0.0, "imad": 0.0, "popc": 0.0, "shared": 0.0, "other": 0.0}
    for instruction in names[start : inserting[0][0]] + names[inserting[-1][1] : stop]:
        total[kind(instruction)] += 1
    work = Work("entry", 1, 8 + SECTOR)
    allowed = bounds(card, work, total)
    bound = min(allowed, key=lambda resource: allowed[resource])
    described = {"instructions_per_unit": sum(total.values()), "bytes_per_unit": work.bytes}
    rate = {"giga_units_per_s": round(allowed[bound] / 1e9, 2), "bound": bound}
    return {"card": name, "kernel": kernel, "unit": work.unit, **described, **rate}


def exact_lines(name: str, profile: Profile, before: dict[str, float]) -> list[dict[str, Any]]:
    """Postings of the exact method; `before` are the seconds a byte of text that it takes to have shingles."""
    kernels = {
        "rarity._count_all": Work("token", 1, 8 + 2 * SECTOR, loops=(1,)),
        "prefixes._mark_singles": Work("token", 1, 8 + SECTOR + 1),
        "prefixes._write_keys": Work("token", 1, 16 + SECTOR),
        "prefixes._write_entries": Work("token", 1, 16),
    }
    found = [line(name, label, work, profile) for label, work in kernels.items()]
    found.append(by_bytes(name, "prefixes: sorts", "token", SETS_BYTES + SORTED_BYTES))
    lines, seconds = [], {}
    for described, rate in found:
        seconds[described["kernel"]] = 1 / rate / profile.token_bytes
        lines.append(described | {"text_gb_per_s": round(1e-9 / seconds[described["kernel"]], 1)})
    everyone = dict(list(seconds.items())[:2])
    lines.append(together(name, "text to postings, of which there are none, together", before | everyone))
    lines.append(together(name, "text to postings, all documents having some, together", before | seconds))
    lines.append(by_bytes(name, "runs: sorts", "posting", 3 * SORTED_BYTES)[0])  # by entry, shingle and row
    return [*lines, look_line(name)]


BETWEEN = {
    "leading bits": 16,
    "words and rows in the new order": 8 + SECTOR + 8 + 12,
    "what to search for, and places": 2 * (16 + 16),
    "large buckets, and what they leave out": 1 + 8,
    "which rows have near ones": 4 + 2 * 8 + 4,
}
"""Bytes that CuPy's steps on each row of a table read and write, beside the sort."""

LIMIT_BYTES = 16 + 8 + 1 + 8
"""Of a row or query: both ends of its bucket, then of what is compared, whether it is large, what is left out."""

COUNT_BYTES = 8 + 16 + 4
"""Of a row or query: its word, where to compare, and how many are near; the words of its bucket come on top."""


def limit_line(name: str, tables: str, unit: str, profile: Profile) -> tuple[dict[str, Any], float]:
    return line(name, f"_near._limit, {tables}", Work(unit, 1, LIMIT_BYTES, kernel="_near._limit"), profile)


def compare_line(
    name: str, tables: str, unit: str, each: float, num_bytes: float, profile: Profile
) -> tuple[dict[str, Any], float]:
    """Of a thread that compares so many words, and reads and writes so many bytes."""
    work = Work(unit, each, num_bytes / each, loops=(0, 0, 0), around=each, kernel="_near._near_counts")
    return line(name, f"_near._near_counts, {tables}", work, profile)


def near_pairs_lines(name: str, num_rows: int, prefix: int) -> list[dict[str, Any]]:
    """All pairs within 3 bits of random fingerprints."""
    design = TableDesign(64, 3, prefix)
    pairs = num_rows * design.words_met(num_rows) / 2 / design.num_tables
    parts = plan(design.array).moves.shape[1]
    profile = Profile(8, 1, num_rows)
    tables = f"{num_rows:,} rows, {design.num_tables} tables"
    permute = Work("row", 1, 16, loops=(2 * parts,), kernel="_bits._permute")
    steps = [
        (line(name, f"_bits._permute, {tables}", permute, profile), num_rows),
        (by_bytes(name, f"sort of a Hamming table, {tables}", "row", SORTED_BYTES), num_rows),
        (by_bytes(name, f"CuPy's other steps on a Hamming table, {tables}", "row", sum(BETWEEN.values())), num_rows),
    ]
    steps.append((limit_line(name, tables, "row", profile), num_rows))
    # Sorted as they are, the 32 rows of a warp search alike, all but the last steps.
    search = f"search of both ends of each row's bucket, {tables}"
    steps.append((by_sectors(name, search, "row", 2 * (math.log2(num_rows) + 16) / 32), num_rows))
    steps.append((compare_line(name, tables, "pair", pairs / num_rows, COUNT_BYTES + 8, profile), pairs))
    return _sum_of_steps(name, f"all pairs within 3 bits, {tables} of {design.prefix} bits", steps, design.num_tables)


def _sum_of_steps(name: str, label: str, steps: list[Any], num_tables: int) -> list[dict[str, Any]]:
    """The lines of some steps, each done so often for each table, and one of all."""
    seconds = {described["kernel"]: num_tables * times / rate for (described, rate), times in steps}
    lines = [d | {"milliseconds": round(1e3 * seconds[d["kernel"]], 3)} for (d, _), _ in steps]
    whole = {"card": name, "kernel": label, "milliseconds": round(1e3 * sum(seconds.values()), 2)}
    return [*lines, whole | {"bound": max(seconds, key=lambda kernel: seconds[kernel])}]


def probe_lines(name: str, num_rows: int, num_queries: int, prefix: int) -> list[dict[str, Any]]:
    """An index of random fingerprints asked by many, its tables on the device."""
    design = TableDesign(64, 3, prefix)
    met = num_queries * design.words_met(num_rows) / design.num_tables
    parts = plan(design.array).moves.shape[1]
    profile = Profile(8, 1, num_queries)
    tables = f"{num_queries:,} queries of {num_rows:,} rows, {design.num_tables} tables"
    permute = Work("row", 1, 16, loops=(2 * parts,), kernel="_bits._permute")
    each = met / num_queries
    steps = [
        (line(name, f"_bits._permute, {tables}", permute, profile), num_queries),
        (by_sectors(name, f"search of both ends of a bucket, {tables}", "query", 2 * math.log2(num_rows)), num_queries),
        (limit_line(name, tables, "query", profile), num_queries),
        (compare_line(name, tables, "word", each, COUNT_BYTES + SECTOR + 8 * each, profile), met),
    ]
    return _sum_of_steps(name, f"probe, {tables} of {design.prefix} bits", steps, design.num_tables)


SETS = (1_000_000, 10_000_000)
PREFIXES = (16, 25)


def predict(profile: Profile) -> list[dict[str, Any]]:
    """A line for each card and kernel, and lines for several of them together."""
    lines = []
    for name in CARDS:
        seconds = {}
        for kernel, work in works(profile).items():
            described, rate = line(name, kernel, work, profile)
            per_byte = 1 / rate / (1 if work.unit == "byte" else profile.token_bytes)
            seconds[kernel] = per_byte * (2 if kernel.startswith("sequences") else 1)  # two fingerprints
            lines.append(described | {"text_gb_per_s": round(1e-9 / seconds[kernel], 1)})
        described, rate = by_bytes(name, SORT, "row", SORTED_BYTES)
        seconds[SORT] = ALTAVISTA.tables / rate / (profile.document_tokens * profile.token_bytes)
        lines.append(described | {"text_gb_per_s": round(1e-9 / seconds[SORT], 1)})
        lines.append(together(name, "text to sorted pair tables, together", seconds))
        of_tokens = {kernel: taken for kernel, taken in seconds.items() if "token" in kernel}
        lines += simhash_lines(name, profile, of_tokens)
        to_shingles = of_tokens | {kernel: seconds[kernel] for kernel in works(profile) if kernel[:2] in ("se", "sh")}
        lines += exact_lines(name, profile, to_shingles)
        for num_rows in SETS:
            for prefix in PREFIXES:
                lines += near_pairs_lines(name, num_rows, prefix)
        for prefix in PREFIXES:
            lines += probe_lines(name, SETS[-1], SETS[0], prefix)
    return lines


def main() -> None:
    """Read the command line; print the table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    args = parser.parse_args()
    batch = load(shuffled(args.corpus, ["id", "text"]))[0]
    size = int(batch.offsets[-1] - batch.offsets[0])
    values, _, _ = tokens.cpu(batch.values, batch.offsets, material(SEED).tokens)
    profile = Profile(size / len(values), len(values) / len(batch), round(len(batch) * 256e6 / size))
    lines = predict(profile)
    print(f"PREDICTION from machine code, not a measurement; text like {args.corpus.stem}: {profile}")
    for found in lines:
        rate = f"{found['giga_units_per_s']:9.1f} G {found['unit']}/s" if "giga_units_per_s" in found else ""
        speed = f"{found['text_gb_per_s']:8.1f} GB/s of text" if "text_gb_per_s" in found else ""
        speed = f"{found['milliseconds']:8.2f} ms" if "milliseconds" in found else speed
        print(
            f"{found['card']} {found['kernel']:75} {found.get('instructions_per_unit', ''):>8} {rate:20} {speed:21} "
            f"bound by {found['bound']}"
        )
    if args.output:
        head = {"prediction": "from machine code and published rates; nothing here was measured on a device"}
        head["left_out"] = LEFT_OUT
        head["sources"] = {name: card.source for name, card in CARDS.items()}  # type: ignore[assignment]
        context = {"corpus": args.corpus.stem, "filter": str(ALTAVISTA), "width": WIDTH, "profile": vars(profile)}
        args.output.write_text(json.dumps({**head, **context, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
