"""Containers of shingle sets by datasketch's LSH Ensemble: sets are made first, and not timed.

python lsh_ensemble.py SOURCE.parquet THRESHOLD PAIRS.parquet

PAIRS has true pairs, id_a a container of id_b, of which the share is told that the index finds.
"""

import json
import re
import sys
import time

import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSHEnsemble

SAMPLES = 128  # of a document
PARTS = 32  # of the documents, by their sizes

table = pq.read_table(sys.argv[1], columns=["id", "text"])
sets = {}
for id_, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True):
    words = re.findall(r"\w+", (text or "").lower())
    if words:
        sets[id_] = {" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))}
begin = time.perf_counter()
sketches = {}
for id_, shingles in sets.items():
    sketches[id_] = MinHash(num_perm=SAMPLES)
    sketches[id_].update_batch(shingles)
sketched = time.perf_counter()
index = MinHashLSHEnsemble(threshold=float(sys.argv[2]), num_perm=SAMPLES, num_part=PARTS)
index.index((id_, sketch, len(sets[id_])) for id_, sketch in sketches.items())
found = {id_: set(index.query(sketch, len(sets[id_]))) for id_, sketch in sketches.items()}
end = time.perf_counter()
pairs = pq.read_table(sys.argv[3], columns=["id_a", "id_b"]).to_pylist()
candidates = {tuple(sorted((id_, other))) for id_, others in found.items() for other in others if other != id_}
print(
    json.dumps(
        {
            "seconds": round(end - begin, 4),
            "from_sketches": round(end - sketched, 4),
            "documents": len(sets),
            "candidates": len(candidates),
            "recall": sum(pair["id_a"] in found[pair["id_b"]] for pair in pairs) / max(1, len(pairs)),
        }
    )
)
