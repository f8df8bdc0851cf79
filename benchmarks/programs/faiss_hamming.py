"""What faiss-cpu does with 64-bit fingerprints, for benchmarks/hamming.py: run in an environment of its own.

    python benchmarks/programs/faiss_hamming.py FINGERPRINTS.npy QUERIES.npy ANSWER.npz RADIUS SINGLE INDEX

INDEX is flat, or multihash,NHASH,BITS,FLIPS: NHASH hash tables, each of BITS other bits of the fingerprint; a query
looks up its own BITS bits in each, and all that differ from them in up to FLIPS bits. Whatever d bits differ, some
table has at most d // NHASH of them, so all within the radius are found when FLIPS >= RADIUS // NHASH.

Prints a line of JSON: version, threads, seconds to build the index and to answer all queries at once, with the
processor's seconds, and the median of the first SINGLE queries answered one by one. 1,000 are answered before, untimed.
ANSWER.npz holds query, row and distance of all that is within the radius.
"""

import importlib.metadata
import json
import statistics
import sys
import time

import faiss
import numpy as np


def main() -> None:
    """Read the command line, measure, write the answer."""
    fingerprints, queries, answer, radius, single, kind = sys.argv[1:]
    words, asked = (np.load(path).view(np.uint8).reshape(-1, 8) for path in (fingerprints, queries))
    within = int(radius) + 1  # faiss takes what is nearer than its radius
    start, cpu = time.perf_counter(), time.process_time()
    if kind == "flat":
        index = faiss.IndexBinaryFlat(64)
    else:
        num_tables, bits, flips = map(int, kind.split(",")[1:])
        index = faiss.IndexBinaryMultiHash(64, num_tables, bits)
        index.nflip = flips
    index.add(words)
    result = {"version": importlib.metadata.version("faiss-cpu"), "threads": faiss.omp_get_max_threads()}
    result |= {"build": time.perf_counter() - start, "build_cpu": time.process_time() - cpu}
    index.range_search(asked[:1000], within)
    start, cpu = time.perf_counter(), time.process_time()
    ends, distance, row = index.range_search(asked, within)
    result |= {"all": time.perf_counter() - start, "all_cpu": time.process_time() - cpu}
    seconds = []
    for i in range(int(single)):
        start = time.perf_counter()
        index.range_search(asked[i : i + 1], within)
        seconds.append(time.perf_counter() - start)
    result["one"] = statistics.median(seconds) if seconds else None
    query = np.repeat(np.arange(len(asked)), np.diff(ends.astype(np.int64)))
    order = np.lexsort((row, query))
    np.savez(answer, query=query[order], row=row[order], distance=distance[order].astype(np.uint8))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
