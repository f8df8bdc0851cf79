"""Run a command, and print as JSON how long it took and how much memory.

    python -I -S watched.py COMMAND ...

This is a process of its own that imports nothing large: the peak of a child counts that of the process it was started
from.
"""

import json
import resource
import subprocess
import sys
import time

start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds = time.perf_counter() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
found = {
    "seconds": seconds,
    "cpu_seconds": usage.ru_utime + usage.ru_stime,
    "peak_mb": usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3 / 1.024),
    "status": done.returncode,
    "stdout": done.stdout,
    "stderr": done.stderr[-2000:],
}
print(json.dumps(found))
