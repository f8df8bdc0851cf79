"""Twelve lines of Python that compare all pairs of the documents in JSON lines: what a handful needs.

python all_pairs.py FILE.jsonl
"""

import itertools
import json
import re
import sys

sets = []
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        words = re.findall(r"\w+", json.loads(line)["text"].lower())
        sets.append({tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))})
pairs = [
    (i, j)
    for i, j in itertools.combinations(range(len(sets)), 2)
    if len(sets[i] & sets[j]) >= 0.8 * len(sets[i] | sets[j])
]
