"""A service over HTTP for one index: one thread writes what a bounded queue holds, any number of requests read.

    settings.py   the flags
    bodies.py     the form of requests, made for the columns of the index
    writing.py    the queue, and the thread that commits batches
    gate.py       what every request passes: token, limits, counters for Prometheus
    served.py     the index, and what requests ask of it
    app.py        the routes, and the process

A request that changes the index is answered after its commit, so what was acknowledged outlives the process.
"""
