"""Forecast the files that a job of tasks exchanges, by formulas, and its costs, by rates that `benchmarks/rates.py`
measured.

Every file of the stages in `neardup_gpu/tasks` is an `Exchange` here. Its payload, the bytes of its values, is exact
for given counts; what the format of exchanges adds is bounded by `overhead`. Nothing else is certain: `expected` makes
counts from a few assumptions, and seconds are predictions.

Planned are jobs by any method, with a reference set and a check of the recall or without, that keep the first document
of a group by greedy clustering. Not planned are an id column, document frequencies that a job counts itself, other
rules of who is kept, and the joining of documents that are crowded.

`counts` has what is counted, `files` what is exchanged, `costs` what stages read, hold and take, `choices` the plan.
"""
