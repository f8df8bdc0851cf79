"""Whether tests of jobs as tasks try all that they can, or some of it, which is enough for a change elsewhere."""

import os

ALL = os.environ.get("NEARDUP_TASKS") == "all"


def some(everything, few):
    """All values of a parameter, or a few of them."""
    return list(everything) if ALL else list(few)
