"""What a job of tasks exchanges, by formulas, and what it costs, by rates that `benchmarks/rates.py` measured.

Every file of the stages in `neardup_gpu/tasks` is an `Exchange` here. Its payload, the bytes of its values, is exact
for given counts; what the format of exchanges adds is bounded by `overhead`. Nothing else is certain: `expected` makes
counts from a few assumptions, and seconds are predictions.

Planned are jobs without a reference set, an id column and a check of the recall, that keep the first document of a
group by greedy clustering; documents that are crowded are not planned.
"""

from .choices import METHODS, SMALL_BLOCK, Plan, plan, small_blocks
from .costs import Machines, Stage, items, load_rates, stage_names, stages, tasks_of
from .counts import Counts, Workload, expected
from .files import Exchange, Shape, exchanges

__all__ = [
    "METHODS",
    "SMALL_BLOCK",
    "Counts",
    "Exchange",
    "Machines",
    "Plan",
    "Shape",
    "Stage",
    "Workload",
    "exchanges",
    "expected",
    "items",
    "load_rates",
    "plan",
    "small_blocks",
    "stage_names",
    "stages",
    "tasks_of",
]
