"""Plant the items of an evaluation set in a corpus, and see whether `neardup contaminated` finds each in its place.

    python -m benchmarks.planted CORPUS.parquet [--text-column text] [--items N] [--length N] [--output FILE]

CORPUS is any Parquet file with a column of text: your own, too. Items of made words, which no corpus holds, are written
into random documents in each of five ways:

- exact: as they are;
- changed: in capitals, with punctuation between the words;
- lines: a word on each line;
- inside: in the middle of a sentence;
- cut: only `--length` words from the middle of the item.

Then the corpus is checked with and without them. A planted item is found if a hit of the item covers the bytes that
were written. Every other hit is false. The rate compares the whole check with reading and tokenizing alone, by turns,
in seconds of all processors.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import neardup_gpu as nd

from .run import machine

WAYS: dict[str, Callable[[list[str], int], str]] = {
    "exact": lambda words, length: " ".join(words),
    "changed": lambda words, length: "; ".join(word.upper() for word in words),
    "lines": lambda words, length: "\n".join(words),
    "inside": lambda words, length: " ".join(words),
    "cut": lambda words, length: " ".join(words[(len(words) - length) // 2 :][:length]),
}
"""How the words of an item are written, by the name of the way."""

AROUND = {"inside": (" so they asked, ", ", and nobody knew; ")}
"""The text before and after an item. All other items stand between line breaks."""


def made_items(number: int, random: np.random.Generator) -> list[list[str]]:
    """Return items of 20 to 80 made words, all different."""
    sizes = random.integers(20, 81, number)
    first = np.cumsum(sizes) - sizes
    return [[f"q{place}x" for place in range(begin, begin + size)] for begin, size in zip(first, sizes, strict=True)]


def planted(
    texts: list[str], items: list[list[str]], length: int, random: np.random.Generator
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts with each item planted in each way, and where: item, way, document, begin and end in bytes."""
    where: list[dict[str, Any]] = []
    plan = [(item, way) for item in range(len(items)) for way in WAYS]
    # At most one item per document, so that no place moves.
    documents = random.permutation(len(texts))[: len(plan)].tolist()
    if len(documents) < len(plan):
        raise SystemExit(f"{len(texts):,} documents are too few for {len(plan):,} planted items; give fewer --items")
    texts = list(texts)
    for (item, way), document in zip(plan, documents, strict=True):
        written = WAYS[way](items[item], length)
        before, after = AROUND.get(way, ("\n", "\n"))
        breaks = [match.start() for match in re.finditer(r"\s", texts[document])]
        at = breaks[int(random.integers(len(breaks)))] if breaks else len(texts[document])
        head = texts[document][:at] + before
        begin = len(head.encode())
        texts[document] = head + written + after + texts[document][at:]
        place = {"begin": begin, "end": begin + len(written.encode())}
        where.append({"item": item, "way": way, "document": document, **place})
    return texts, where


def missed(hits: list[dict[str, Any]], where: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the planted items that no hit covers, and the number of hits that belong to no planted item."""
    by: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for hit in hits:
        by.setdefault((hit["eval_id"], hit["id"]), []).append(hit)
    lost = []
    for each in where:
        found = by.pop((str(each["item"]), each["document"]), [])
        if not any(hit["begin"] <= each["begin"] and hit["end"] >= each["end"] for hit in found):
            lost.append(each)
    return lost, sum(map(len, by.values()))


def rates(path: Path, items: pa.Table, length: int, repeat: int) -> dict[str, float]:
    """Return MB per second of processor time: of reading and tokenizing, and of the search, and their ratio."""
    recipe, engine = nd.Recipe(), nd.Engine(backend="cpu")
    documents = nd.open_documents(path, text_columns="text")
    alone, search, megabytes = [], [], 0.0
    for _ in range(repeat):
        start, megabytes = time.process_time(), 0.0
        for batch in documents.batches(max_bytes=4 << 20):
            nd.stages.tokenize(batch.text, recipe, backend="cpu")
            megabytes += len(batch.text.values) / 1e6
        alone.append(time.process_time() - start)
        start = time.process_time()
        nd.contaminated(path, {"planted": items}, text_columns="text", length=length, engine=engine)
        search.append(time.process_time() - start)
    ratio = statistics.median(a / b for a, b in zip(alone, search, strict=True))
    return {
        "tokenizing": megabytes / statistics.median(alone),
        "search": megabytes / statistics.median(search),
        "ratio": ratio,
    }


def run(corpus: Path, column: str, number: int, length: int, seed: int, repeat: int) -> dict[str, Any]:
    """Plant, look, and count."""
    random = np.random.default_rng(seed)
    texts = [text or "" for text in pq.read_table(corpus, columns=[column])[column].to_pylist()]
    items = made_items(number, random)
    table = pa.table({"question": [" ".join(words) for words in items]})
    together, where = planted(texts, items, length, random)
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder, f"{name}.parquet") for name in ("with", "without")}
        pq.write_table(pa.table({"text": together}), places["with"])
        pq.write_table(pa.table({"text": texts}), places["without"])
        found = {
            name: nd.contaminated(path, {"planted": table}, text_columns="text", length=length)
            for name, path in places.items()
        }
        measured = rates(places["without"], table, length, repeat) if repeat else {}
    lost, wrong = missed(found["with"].hits.to_pylist(), where)
    ways = {way: {"planted": number, "found": number - sum(each["way"] == way for each in lost)} for way in WAYS}
    counts = found["with"].counts
    return {
        "megabytes": counts["text_bytes"] / 1e6,
        "documents": counts["documents"],
        "grams": counts["grams"],
        "ways": ways,
        "false": wrong,
        "without": found["without"].counts["hits"],
        "rates": measured,
    }


def main() -> int:
    """Print the table; the status is 1 if an item was missed, or something was found that was not planted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="rounds of the rate; 0 leaves it out")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = run(given.corpus, given.text_column, given.items, given.length, given.seed, given.repeat)
    print(f"{found['megabytes']:,.0f} MB in {found['documents']:,} documents, {found['grams']:,} n-grams of items")
    for way, counts in found["ways"].items():
        print(f"{way:10} planted {counts['planted']:6,}  found in place {counts['found']:6,}")
    print(f"false hits {found['false']:,}; without planted items {found['without']:,}")
    for name, value in found["rates"].items():
        print(f"{name:10} {value:,.2f}{'' if name == 'ratio' else ' MB per second of a processor'}")
    if given.output is not None:
        about = {"machine": machine(), "corpus": given.corpus.stem}
        given.output.write_text(json.dumps({**about, **found}, indent=1) + "\n")
    complete = all(counts["found"] == counts["planted"] for counts in found["ways"].values())
    return 0 if complete and found["false"] == 0 and found["without"] == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
