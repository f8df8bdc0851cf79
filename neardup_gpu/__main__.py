"""``python -m neardup_gpu`` is the command ``neardup``."""

import sys

from .cli import main

sys.exit(main())
