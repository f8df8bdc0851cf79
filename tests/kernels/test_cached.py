"""Cached properties: a process that is forked while a thread computes one does not wait for that thread."""

import re
import subprocess
import sys
from pathlib import Path

from neardup_gpu.kernels._cached import cached_property

REPOSITORY = Path(__file__).parents[2]

FORKED = """
import os, signal, threading
from neardup_gpu.kernels._cached import cached_property

class Slow:
    def __init__(self, first):
        self.first = first

    @cached_property
    def value(self):
        if self.first:
            begun.set()
            go_on.wait()
        return 7

begun, go_on = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: Slow(True).value)
thread.start()
begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(10)
    os._exit(0 if Slow(False).value == 7 else 1)
go_on.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


class Counted:
    calls = 0

    @cached_property
    def value(self):
        """Count the calls."""
        self.calls += 1
        return self.calls


def test_it_is_computed_once_for_each_object():
    first, second = Counted(), Counted()
    assert (first.value, first.value, second.value) == (1, 1, 1)
    del first.value
    assert first.value == 2 and Counted.value.__doc__ == "Count the calls."


def test_a_fork_amid_one():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_no_other_is_used():
    """Python 3.11's holds a lock, which a process that is forked meanwhile never gets."""
    files = [path for room in ("neardup_gpu", "kernels") for path in (REPOSITORY / room).rglob("*.py")]
    used = [path.name for path in files if re.search(r"functools.*\bcached_property", path.read_text())]
    assert len(files) > 100 and set(used) == {"_cached.py"}
