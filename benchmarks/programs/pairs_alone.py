"""All pairs of made fingerprints and nothing else, or only the fingerprints, so that memory can be compared.

python pairs_alone.py NUMBER pairs|nothing
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hamming import RADIUS, fingerprints
from neardup_gpu.hamming import pairs

pairs(fingerprints(1000), RADIUS)
words = fingerprints(int(sys.argv[1]))
if sys.argv[2] == "pairs":
    pairs(words, RADIUS)
