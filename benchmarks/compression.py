"""Size and speed of compressed tables beside raw ones and the information bound; and 8 billion words from both.

    python -m benchmarks.compression --repeat 3 --corpora corpora

Compressed answers are checked against raw ones, and decoded words against what was encoded, before anything is timed.
Prints a JSON list of figures. Of random words each size has

    expected    what `compressed_tables.expected_bits` derives for as many random words; `deviation` is measured less
                expected
    bound       log2 of the number of such sets, over their size: what no code beats on average

and the last figure is `expected` at 8 billion words, as in the paper, where nothing can be measured here. Of a corpus
the table is of the simhashes of its documents, so the bound for random words is none for them: near-duplicates make
them cheaper.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neardup_gpu.definitions import material
from neardup_gpu.hamming import TableDesign
from neardup_gpu.kernels import (
    _huffman,
    hamming_probe,
    hamming_table,
    huffman_decode,
    huffman_encode,
    huffman_probe,
    simhash,
    tokens,
)
from neardup_gpu.kernels._cpu import num_threads, set_num_threads
from neardup_gpu.papers import compressed_tables

from .measure import SEED, Bench, figure, figures_of, load, shuffled, timed

SIZES = tuple(1 << bits for bits in range(10, 25, 2))
PROBED = 1 << 22
QUERIES = (1, 1000, 100_000)
LIMITS = 512, 32  # of buckets, as a recipe has them
PAPER = 8_000_000_000
CORPORA = ("bills_116", "manpages")


def num_bits(tables: _huffman.HuffmanTables) -> int:
    """Bits of blocks, keys and numbers of first words."""
    return 8 * (tables.blocks.nbytes + tables.keys.nbytes + tables.firsts.nbytes)


def decode(tables: _huffman.HuffmanTables) -> np.ndarray:
    """All words."""
    numbers = np.arange(len(tables.blocks))
    return huffman_decode.cpu(tables.lengths, tables.offsets, tables.blocks, tables.firsts, numbers)


def sizes(words: np.ndarray, random: bool, **context: Any) -> tuple[dict[str, Any], _huffman.HuffmanTables]:
    """The figure of a table's size, and the table."""
    tables, n = huffman_encode.cpu(words[None]), len(words)
    assert np.array_equal(decode(tables), words)
    measured = num_bits(tables) / n
    more = {"words": n, "raw": 64, "share_of_raw": round(measured / 64, 4), "blocks": len(tables.blocks)}
    if random:
        expected = compressed_tables.expected_bits(n) / n
        more["expected"], more["deviation"] = round(expected, 4), round(measured - expected, 4)
        more["bound"] = round(_huffman.information_bits(n) / n, 4)
    return figure("compressed table", [measured], "bits/word", **more, **context), tables


def time_coding(words: np.ndarray, tables: _huffman.HuffmanTables, repeat: int) -> Iterator[dict[str, Any]]:
    """Figures of the speed of encoding and decoding, on one thread and on all."""
    for threads in sorted({1, num_threads()}):
        set_num_threads(threads)
        for name, seconds in (
            ("compress a table", timed(repeat, huffman_encode.cpu, words[None])),
            ("decode a table", timed(repeat, decode, tables)),
        ):
            rates = [len(words) / t / 1e6 for t in seconds]
            yield figure(name, rates, "M words/s", words=len(words), threads=threads)


def time_probing(num_words: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Figures of raw and compressed tables with the same queries: half of them near a word, half anywhere."""
    random = np.random.default_rng(1)
    fingerprints = random.integers(0, 2**64, num_words, np.uint64)
    masks = np.array(TableDesign(64, 3, 16).masks, np.uint64)
    made = [hamming_table.cpu(fingerprints, mask, True) for mask in masks]
    words, rows = (np.stack([table[part] for table in made]) for part in (0, 1))
    tables = huffman_encode.cpu(words)
    near = random.choice(fingerprints, max(QUERIES)) ^ np.uint64(1) << random.integers(0, 64, max(QUERIES), np.uint64)
    near[1::2] = random.integers(0, 2**64, len(near[1::2]), np.uint64)
    set_num_threads(1)
    for number in QUERIES:
        asked = masks, near[:number], 3, *LIMITS
        expected = hamming_probe.cpu(words, rows, *asked)
        found = huffman_probe.cpu(*tables, rows, *asked)
        assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))
        for name, seconds, size in (
            ("probe raw tables", timed(repeat, hamming_probe.cpu, words, rows, *asked), words.nbytes),
            (
                "probe compressed tables",
                timed(repeat, huffman_probe.cpu, *tables, rows, *asked),
                num_bits(tables) / 8,
            ),
        ):
            context = {"tables": len(masks), "words": num_words, "table_bytes": int(size), "found": len(found[0])}
            values = [t / number * 1e6 for t in seconds]
            yield figure(name, values, "us/query", queries=number, threads=1, **context)


def simhashes(path: Path) -> np.ndarray:
    """Of the documents of a corpus that have tokens: 64 bits, each token once for each time it occurs."""
    drawn, found = material(SEED), []
    for batch in load(shuffled(path, ["text"])):
        values, offsets, _ = tokens.cpu(batch.values, batch.offsets, drawn.tokens)
        found.append(simhash.cpu(values, offsets, None, 64)[np.diff(offsets) > 0])
    return np.concatenate(found)


def part(bench: Bench) -> list[dict]:
    """Compressed tables: their size, measured and derived, and what asking them costs."""
    for name in CORPORA:
        bench.corpus(name)
    return figures_of("compression", "--corpora", bench.corpora, "--repeat", bench.repeat, *["--small"] * bench.small)


def main() -> None:
    """Read the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs of what is timed, after one that is dropped")
    parser.add_argument("--corpora", type=Path, help=f"folder of {', '.join(CORPORA)}: their simhashes too")
    parser.add_argument("--small", action="store_true", help="tables of few words, to see that all runs")
    args = parser.parse_args()
    every, figures = np.uint64(2**64 - 1), []
    for n in SIZES[:2] if args.small else SIZES:
        random = np.random.default_rng(n).integers(0, 2**64, n, np.uint64)
        words, _ = hamming_table.cpu(random, every, True)
        one, tables = sizes(words, True, of="random words")
        figures.append(one)
    figures += time_coding(words, tables, args.repeat)
    figures += time_probing(SIZES[1] if args.small else PROBED, args.repeat)
    for path in [args.corpora / f"{name}.parquet" for name in CORPORA] if args.corpora else []:
        fingerprints = simhashes(path)
        for mask in TableDesign(64, 3, 16).masks:
            words, _ = hamming_table.cpu(fingerprints, np.uint64(mask), True)
            distinct = len(np.unique(words))
            figures.append(
                sizes(words, False, of=f"simhashes of {path.stem}", mask=f"{mask:016x}", distinct=distinct)[0]
            )
    paper = compressed_tables.expected_bits(PAPER) / PAPER
    context = {"words": PAPER, "raw": 64, "share_of_raw": round(paper / 64, 4)}
    bound = round(_huffman.information_bits(PAPER) / PAPER, 4)
    figures.append(figure("compressed table, derived", [paper], "bits/word", bound=bound, of="random words", **context))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
