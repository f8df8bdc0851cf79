"""Memory that was freed stays with a job, and goes back within a bound."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import contextlib, sys
from neardup_gpu.engine import heap

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def freed():
    before = resident()
    array = bytearray(100_000_000)
    used = resident() - before
    del array
    return used, resident() - before

with contextlib.ExitStack() as stack:
    for name in sys.argv[1:]:
        stack.enter_context(getattr(heap, name)())
    print(*freed())
print(0, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
@pytest.mark.parametrize(
    ("blocks", "stays"), [(["kept"], True), (["freed_at_once"], False), (["kept", "freed_at_once"], False), ([], False)]
)
def test_freed_memory(blocks: list[str], stays: bool) -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *blocks], capture_output=True, text=True, check=True)
    (used, left), (_, afterwards) = (map(int, line.split()) for line in ran.stdout.splitlines())
    most = 99_000_000  # of 100 million bytes: the end of the heap may be resident before
    assert used >= most
    assert (left >= most) == stays and (stays or left < 10_000_000)
    assert afterwards < 95_000_000  # with all that was imported


HEAPS = """
import ctypes, threading
from neardup_gpu.engine import heap

heap.share(2)
wait = threading.Barrier(7)

def allocate():
    held = ctypes.create_string_buffer(5000)
    wait.wait()

threads = [threading.Thread(target=allocate) for _ in range(wait.parties - 1)]
for thread in threads:
    thread.start()
wait.wait()
for thread in threads:
    thread.join()
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
file = library.fdopen(1, b"w")
library.malloc_info(0, ctypes.c_void_p(file))
library.fflush(ctypes.c_void_p(file))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
@pytest.mark.parametrize("others", [{}, {"MALLOC_ARENA_MAX": "100"}])
def test_number_of_heaps(others: dict[str, str]) -> None:
    of_own = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    command = [sys.executable, "-c", HEAPS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=of_own | others)
    assert (ran.stdout.count("<heap nr=") <= 2) == (not others)


FORK = """
import os, signal, threading
from neardup_gpu.engine import heap

held = threading.Event()

def change():
    with heap._changing:
        held.set()
        threading.Event().wait(0.2)

threading.Thread(target=change).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    with heap.kept():
        os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_changes_what_is_kept() -> None:
    ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "0\n"
