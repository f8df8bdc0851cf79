"""Candidates among the documents in JSON lines by datasketch's MinHashLSH, in an environment that has it.

python datasketch_lsh.py FILE.jsonl
"""

import json
import re
import sys

from datasketch import MinHash, MinHashLSH

index = MinHashLSH(threshold=0.8, num_perm=128)
with open(sys.argv[1], encoding="utf-8") as file:
    for row, line in enumerate(file):
        words = re.findall(r"\w+", json.loads(line)["text"].lower())
        sketch = MinHash(num_perm=128)
        sketch.update_batch([" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))])
        index.query(sketch)
        index.insert(row, sketch)
