"""``python -m neardup_gpu`` is the command ``neardup``."""

import sys

from .cli.process import run

if __name__ == "__main__":
    sys.exit(run())
