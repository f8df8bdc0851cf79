"""A whole job in a process of its own: in memory, or cut into tasks over files.

python scaled_job.py SOURCE OUTPUT METHOD memory|local|ray [NAME=VALUE ...]

The settings are those of ScaleOut, as JSON. Nothing is checked against all pairs, by either.
"""

import json
import sys

import neardup_gpu
from neardup_gpu.tasks.job import dedup_in_tasks
from neardup_gpu.tasks.scale_out import ScaleOut

source, output, method, runner, *settings = sys.argv[1:]
recipe = neardup_gpu.Recipe(method=method)
given = {name: json.loads(value) for name, _, value in (setting.partition("=") for setting in settings)}
if runner == "memory":
    report = neardup_gpu.dedup(source, recipe=recipe, output=output, overwrite=True, check=0).report
else:
    scale_out = ScaleOut(runner=runner, **given)
    report = dedup_in_tasks(source, recipe=recipe, output=output, overwrite=True, check=0, scale_out=scale_out)
print(json.dumps({"counts": report["counts"], "timings": report["timings"]}))
