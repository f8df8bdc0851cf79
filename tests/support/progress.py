"""Lines of progress, which are on stderr where that is no terminal."""

import re

from neardup_gpu.engine.stage_names import STAGES

LINE = re.compile(rf"({'|'.join(label for label, _ in STAGES.values())}): .*\d (s|min)\b.*\n")


def messages(errors: str) -> str:
    """What else is on stderr."""
    return "".join(line for line in errors.splitlines(keepends=True) if not LINE.fullmatch(line))
