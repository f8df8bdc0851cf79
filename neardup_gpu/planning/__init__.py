"""What a job of tasks exchanges, by formulas, and what it costs, by rates that `benchmarks/rates.py` measured.

Every file of the stages in `neardup_gpu/tasks` is an `Exchange` here. Its payload, the bytes of its values, is exact
for given counts; what the format of exchanges adds is bounded by `overhead`. Nothing else is certain: `expected` makes
counts from a few assumptions, and seconds are predictions.

Planned are jobs by any method, with a reference set and a check of the recall or without, that keep the first document
of a group by greedy clustering. Not planned are an id column, document frequencies that a job counts itself, other
rules of who is kept, and the joining of documents that are crowded.

`counts` has what is counted, `files` what is exchanged, `costs` what stages read, hold and take, `choices` the plan.
"""

from .choices import COMPARED, SMALL_BLOCK, Plan, plan, small_blocks
from .costs import Machines, StageCost, items, load_rates, stage_names, stages, tasks_of
from .counts import Checked, Counts, Workload, expected
from .files import Exchange, Shape, exchanges, shape_of

__all__ = [
    "COMPARED",
    "SMALL_BLOCK",
    "Checked",
    "Counts",
    "Exchange",
    "Machines",
    "Plan",
    "Shape",
    "StageCost",
    "Workload",
    "exchanges",
    "expected",
    "items",
    "load_rates",
    "plan",
    "shape_of",
    "small_blocks",
    "stage_names",
    "stages",
    "tasks_of",
]
