"""Forecast the files that a job of tasks exchanges, by formulas, and its costs, by rates that `benchmarks/rates.py`
measured.

Every stage in `neardup_gpu/tasks` states the files that it writes, each kind as an `Exchange`. Its payload, the bytes
of its values, is exact for given counts; what the format of exchanges adds is bounded by `overhead`. Nothing else is
certain: `expected` makes counts from a few assumptions, and seconds are predictions.

Planned are jobs by any method, with a reference set and a check of the recall or without, that keep the first document
of a group by greedy clustering. Not planned are an id column, document frequencies that a job counts itself, other
rules of who is kept, and the joining of documents that are crowded.

`counts` has estimates of what is counted, `files` how a job is divided and what it exchanges, `costs` what stages read,
hold and take, `choices` the plan.
"""
