"""Make the table of the Sentence_Break property of each Unicode code point, from Perl's copy of Unicode's data.

    python tests/support/sentence_data.py neardup_gpu/text/sentence_breaks.npz

Perl 5.34 to 5.36, whose Unicode is 14, writes the file anew. `neardup_gpu/text/boundaries.py` describes the table.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from neardup_gpu.text.boundaries import CLASSES

UNICODE_VERSION = "14.0.0"

PROGRAM = """
use Unicode::UCD;
print Unicode::UCD::UnicodeVersion(), "\\n";
my ($first, $class) = Unicode::UCD::prop_invmap("Sentence_Break");
print "$first->[$_] $class->[$_]\\n" for 0 .. $#$first;
"""


def sentence_breaks() -> tuple[np.ndarray, np.ndarray]:
    """Return the first code point of each range, and the number in `CLASSES` of its class."""
    version, *lines = subprocess.check_output(["perl", "-e", PROGRAM], text=True).splitlines()
    if version != UNICODE_VERSION:
        raise SystemExit(f"this Perl has Unicode {version}; the table is of {UNICODE_VERSION}")
    first, names = zip(*(line.split() for line in lines), strict=True)
    return np.array(first, np.uint32), np.array([list(CLASSES).index(name) for name in names], np.uint8)


if __name__ == "__main__":
    first, classes = sentence_breaks()
    np.savez_compressed(sys.argv[1], first=first, classes=classes)
