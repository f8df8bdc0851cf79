"""Lines of progress, which are on stderr where that is no terminal."""

import re

from neardup_gpu.engine.stage_names import STAGES

LABELS = "|".join(label for label, _ in STAGES.values())
LINE = re.compile(rf"({LABELS}): (.*\d (s|min)\b.*|about [\d,]+ comparisons?)\n")


def messages(errors: str) -> str:
    """What else is on stderr."""
    return "".join(line for line in errors.splitlines(keepends=True) if not LINE.fullmatch(line))
