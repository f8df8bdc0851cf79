"""What each kernel should take on a GPU, written down before it is seen there, so that the first run can refute it.

    python -m benchmarks.gpu_model                                      # predictions, for 256 MB like bills
    python -m benchmarks.gpu_model --results benchmarks/results/h100.json    # beside what an H100 took

A kernel takes as long as the slowest of three things, each at its full rate:

    memory         bytes to and from the device's memory, at 0.9 of the data sheet, as a copy reached; sorts at 0.68
    wavefronts     of shared memory and the first-level cache, one a cycle and multiprocessor
    instructions   of warps, four a cycle and multiprocessor; threads of a warp that diverge take turns, so they count

Counts of instructions are those that ncu gave for 64 MB on an H100. Wavefronts are by arithmetic: 16 lanes that look up
8 bytes at random places of 16 pairs of banks meet 3.07 deep on average, so 32 take 6.14 (ncu counted 6.1); a load whose
lanes lie 64 bytes apart takes 16, one of 512 bytes apart 32.

`share` is how much of that rate the kernel should reach. For kernels that are as they were, it is what an H100 reached.
For one that changed since (`before` is what it did then) it is the share that the earlier one reached, as it has the
same bound: there the prediction is new, and no device has seen it. A run refutes a prediction where a kernel reaches
less than `REFUTED` of its share.

Where the rates alone are wrong, by the H100: sorts reach 0.58 of the memory's data sheet and not 0.68; beginnings of
tokens are written at a third of the memory's speed, as each thread writes a few words in a row; the two passes of
document fingerprints were not bound by look-ups alone but also by loads 512 bytes apart, so that to read once saves a
fifth and not a half; and calls of CuPy, not kernels, bound whatever has few rows (pair tables of 40,000 documents took
25 ms, of which kernels took 3).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY_SHARE, SORT_SHARE = 0.9, 0.68
LOOK_UP = 6.14 / 32  # wavefronts of a random look-up of 8 bytes, for each lane
REFUTED = 0.8


@dataclass(frozen=True)
class Machine:
    """A GPU by its data sheet (NVIDIA's for each; B200's clock by third parties): terabytes a second, gigahertz."""

    multiprocessors: int
    clock: float
    memory: float


MACHINES = {
    "A100": Machine(108, 1.41, 2.04),
    "H100": Machine(132, 1.98, 3.35),
    "H200": Machine(132, 1.98, 4.8),
    "B200": Machine(148, 1.98, 8.0),
}
BUSES = {"PCIe 4": 25.0, "PCIe 5": 55.0}
"""Copies of pinned memory to the device, GB/s: 55 was measured by one program and 37 by another, which waits longer."""

LAUNCH_US = {"kernel": 13.1, "call of CuPy": 8.3, "wait": 13.8}
"""What the host takes, as measured on an H100's; kernels since then are launched faster (tests/gpu/harness/driver.py
gives a third to two thirds of what it gave for the same launches before)."""

BATCH_LAUNCHES = {"kernel": 11, "call of CuPy": 13, "wait": 1}
"""Of a batch by min-hash, as tests/gpu/test_waits.py counts them."""


@dataclass(frozen=True)
class Text:
    """What a kernel's work depends on."""

    num_bytes: float
    tokens: float
    shingles: float
    documents: float
    decoded: float  # groups of 32 bytes that hold more than ASCII

    @classmethod
    def like_bills(cls, num_bytes: float) -> Text:
        """Generated text of first_contact.py: 1.3% of the words have a letter beyond ASCII."""
        tokens = num_bytes / 6.807
        return cls(num_bytes, tokens, 0.9958 * tokens, tokens / 948.5, 0.0133 * tokens)


@dataclass(frozen=True)
class Work:
    """Work of a kernel or call: bytes, bytes of a sort's passes, wavefronts, instructions of warps."""

    memory: float = 0
    sorting: float = 0
    wavefronts: float = 0
    instructions: float = 0

    def bounds(self, machine: Machine) -> dict[str, float]:
        """Milliseconds by each bound."""
        cycles = machine.multiprocessors * machine.clock * 1e6
        return {
            "memory": self.memory / (MEMORY_SHARE * machine.memory * 1e9),
            "sort": self.sorting / (SORT_SHARE * machine.memory * 1e9),
            "wavefronts": self.wavefronts / cycles,
            "instructions": self.instructions / (4 * cycles),
        }

    def ms(self, machine: Machine) -> float:
        """The slowest bound's."""
        return max(self.bounds(machine).values())

    def bound(self, machine: Machine) -> str:
        """The slowest bound."""
        bounds = self.bounds(machine)
        return max(bounds, key=bounds.__getitem__)


@dataclass(frozen=True)
class Predicted:
    """A kernel's work, the share of its bound that it should reach, and its work when an H100 measured it, if other.

    `where` is its step and name in results of first_contact.py, `was` its name there before, if other; `batch` says
    whether each batch of text has it.
    """

    work: Work
    share: float
    where: tuple[str, str]
    before: Work | None = None
    was: str = ""
    batch: bool = True


def predictions(text: Text) -> dict[str, Predicted]:
    """Every kernel that is worth its line."""
    n, tokens, shingles, documents = text.num_bytes, text.tokens, text.shingles, text.documents
    tables = 2 * 2048 * 8 / 128  # wavefronts to copy 16 kB into shared memory
    features = 6 * documents
    return {
        "beginnings counted": Predicted(
            Work(memory=n * (1 + 5 / 32)), 0.22, ("tokens", "_token_beginnings.count_in_ascii")
        ),
        "groups decoded": Predicted(
            Work(instructions=540 * text.decoded), 0.38, ("tokens", "_token_beginnings.count_decoded")
        ),
        "beginnings written": Predicted(
            Work(memory=n * (1 + 12 / 32) + 8 * tokens), 0.36, ("tokens", "_token_beginnings.fill_in_ascii")
        ),
        "tokens": Predicted(
            # Of 32 threads with 8 tokens each: 12.4 steps of 237 instructions, then the tokens beyond ASCII, of which
            # one by itself took 2,300, side by side: three times one warp's share. See PROFILE.md.
            Work(instructions=(12.4 * 237 / 256 + 3 * 2300 / 2048) * tokens),
            0.75,
            ("tokens", "tokens._fingerprint_tokens"),
            before=Work(instructions=39.2 * tokens),
        ),
        "shingles": Predicted(
            # Of eight in a row the first takes 5 reductions, and each other 2; loads and stores lie 64 bytes apart.
            Work(wavefronts=shingles * ((40 + 7 * 16) / 8 * LOOK_UP + (5 + 14 + 8) / 8 * 16 / 32)),
            0.81,
            ("shingles", "shingles._fingerprint"),
            before=Work(wavefronts=shingles * (40 * LOOK_UP + 12 / 32)),
        ),
        "document fingerprints": Predicted(
            Work(wavefronts=tokens * (16 * LOOK_UP + 1)),
            0.65,
            ("sequences", "sequences._accumulate"),
            before=Work(wavefronts=tokens * 2 * (8 * LOOK_UP + 1)),
        ),
        "min-hash, 84 samples": Predicted(
            Work(instructions=11.8 * shingles), 0.68, ("minhash 84 L=32", "minhash._signature_kernel(32, 3)")
        ),
        "supershingles": Predicted(
            Work(wavefronts=features * 15 * 8 * LOOK_UP + features / 256 * tables),
            0.19,
            ("supershingles 6 of 14", "supershingles._FEATURES[uint32]"),
        ),
        "simhash, 64 bits": Predicted(
            Work(instructions=22.6 * tokens), 0.62, ("simhash tf, 64 bits", "simhash._add"), batch=False
        ),
        # Words of a row, a key and a place, as `_sort.order_of` packs them: a pass for each byte moves 8 bytes twice.
        # By keys of 8 bytes with places of 8 it was twice as much, and sets were then sorted by rows of 4 with places.
        "sets: a sort": Predicted(
            Work(sorting=shingles * (8 * 16 + 8)),
            0.86,
            ("unique", "sort_words"),
            before=Work(sorting=shingles * (8 * 32 + 8 + 4 * 24 + 4)),
            was="argsort",
            batch=False,
        ),
        "pair tables: 15 sorts of 10 million rows": Predicted(
            Work(sorting=15 * 1e7 * (8 * 16 + 8)),
            0.84,
            ("pair tables 6,14,2, random rows", "sort_words"),
            before=Work(sorting=15 * 1e7 * (8 * 32 + 8)),
            was="argsort",
            batch=False,
        ),
    }


def measured(results: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Milliseconds of each (item, name) that first_contact.py traced on 256 MB."""
    return {
        (record["item"], row["name"]): row["ms"]
        for record in results["first_contact"]
        if record["step"] == "scale"
        for row in record.get("traced", [])
    }


def batch(machine: Machine, bus: float, num_bytes: float = 2**25) -> dict[str, float]:
    """Milliseconds that a batch of min-hash takes the device, the bus and the host's launches: they overlap."""
    kernels = [one for one in predictions(Text.like_bills(num_bytes)).values() if one.batch]
    host = sum(LAUNCH_US[kind] * number for kind, number in BATCH_LAUNCHES.items()) / 1e3
    computed = sum(one.work.ms(machine) / one.share for one in kernels)
    return {"computing": computed, "copying": num_bytes / bus / 1e6, "launching": host}


def compared(text: Text, found: dict[tuple[str, str], float], machine: Machine, before: bool) -> list[dict[str, Any]]:
    """For each kernel that was measured: its prediction, the share that it reached, and whether that refutes it."""
    rows = []
    for name, one in predictions(text).items():
        where = (one.where[0], one.was) if before and one.was else one.where
        if where in found:
            work = one.before if before and one.before else one.work
            reached = work.ms(machine) / found[where]
            row = {"kernel": name, "ms": found[where], "bound": work.bound(machine), "reached": round(reached, 2)}
            rows.append({**row, "share": one.share, "refuted": reached < REFUTED * one.share})
    return rows


def main() -> int:
    """Read the command line; print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=255.66, help="text")
    parser.add_argument("--results", type=Path, help="JSON of first_contact.py's records, to compare with")
    parser.add_argument("--machine", choices=MACHINES, default="H100", help="that the results are of")
    parser.add_argument("--before", action="store_true", help="compare with the work of kernels in h100.json's time")
    args = parser.parse_args()
    text = Text.like_bills(args.megabytes * 1e6)
    if args.results:
        rows = compared(text, measured(json.loads(args.results.read_text())), MACHINES[args.machine], args.before)
        for row in rows:
            reached = f"{row['reached']:6.2f} of {row['share']:.2f}  {row['bound']:13}"
            print(f"{row['kernel']:42}{row['ms']:9.3f} ms{reached}{'REFUTED' if row['refuted'] else ''}")
        return int(any(row["refuted"] for row in rows))
    print(f"{'milliseconds, of ' + format(args.megabytes, '.0f') + ' MB':42}" + "".join(f"{m:>9}" for m in MACHINES))
    for name, one in predictions(text).items():
        times = "".join(f"{one.work.ms(machine) / one.share:9.3f}" for machine in MACHINES.values())
        print(f"{name:42}{times}   {one.share:.2f} of {one.work.bound(MACHINES['H100'])}")
    for bus, rate in BUSES.items():
        for what in ("computing", "copying", "launching"):
            times = "".join(f"{batch(machine, rate)[what]:9.3f}" for machine in MACHINES.values())
            print(f"{f'a batch of 32 MiB, {bus}: {what}':42}{times}")
        rates = (2**25 / max(batch(machine, rate).values()) / 1e6 for machine in MACHINES.values())
        print(f"{f'GB/s of text, {bus}, as fast as it is read':42}" + "".join(f"{rate:9.1f}" for rate in rates))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
