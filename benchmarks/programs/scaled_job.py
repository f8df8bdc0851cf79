"""A whole job in a process of its own: in memory, or cut into tasks over files.

python scaled_job.py SOURCE OUTPUT METHOD memory|local|ray [NAME=VALUE ...]

The settings are those of Workers, as JSON. Nothing is checked against all pairs, by either.
"""

import json
import sys

from neardup_gpu import Recipe, Workers, Writing, dedup

source, output, method, runner, *settings = sys.argv[1:]
recipe, writing = Recipe(method=method), Writing(overwrite=True, check=0)
given = {name: json.loads(value) for name, _, value in (setting.partition("=") for setting in settings)}
workers = None if runner == "memory" else Workers(runner=runner, **given)
report = dedup(source, output=output, recipe=recipe, writing=writing, workers=workers).report
print(json.dumps({"counts": report["counts"], "timings": report["timings"]}))
