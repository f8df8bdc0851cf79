"""The job cut into tasks over files, which any number of processes and machines can run, and go on with after a fault.

`contract.py` says what a task is, `work.py` keeps what tasks made, `driver.py` is the order of the stages, which are in
the other files, and `job.py` is what is called.
"""
