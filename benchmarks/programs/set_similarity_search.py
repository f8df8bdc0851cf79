"""All pairs of shingle sets by SetSimilaritySearch: sets are made first, and not timed.

python set_similarity_search.py SOURCE.parquet THRESHOLD
"""

import json
import re
import sys
import time

import pyarrow.parquet as pq
from SetSimilaritySearch import all_pairs

sets = []
for text in pq.read_table(sys.argv[1], columns=["text"]).column("text").to_pylist():
    words = re.findall(r"\w+", (text or "").lower())
    if words:
        sets.append({hash(tuple(words[i : i + 5])) for i in range(max(1, len(words) - 4))})
begin = time.perf_counter()
found = sum(1 for _ in all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=float(sys.argv[2])))
print(json.dumps({"seconds": round(time.perf_counter() - begin, 4), "documents": len(sets), "pairs": found}))
