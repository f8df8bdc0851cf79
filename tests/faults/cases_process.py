"""The process: signals, standard streams, memory and threads, forks, the cache of compiled kernels."""

import os
import signal

from .judge import case

# --------------------------------------------------------------------------------------------------------------- forks

PREPARE = """
import multiprocessing, os, signal, sys, threading
texts = [f"some words {i % 20} that are here " * 5 for i in range(40)]
table = pa.table({"id": [str(i) for i in range(40)], "text": texts})
def named(function):  # as pickle finds it
    function.__module__ = "__main__"
    setattr(sys.modules["__main__"], function.__name__, function)
    return function
@named
def kept(*_, threads=None, **options):
    engine = nd.Engine(backend="cpu", threads=threads)
    return sum(nd.dedup(table, engine=engine, **options).documents["kept"].to_pylist())
def in_a_fork(run):
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        try:
            os._exit(0 if run() == 20 else 3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert kept() == 20
"""


@case(status=0)
def a_fork_after_use(box):
    return PREPARE + "in_a_fork(kept)"


@case(status=0)
def a_fork_of_a_fork(box):
    return PREPARE + "in_a_fork(lambda: (in_a_fork(kept), kept())[1])"


@case(status=0)
def a_fork_that_asks_for_all_threads(box):
    return (
        PREPARE
        + "from neardup_gpu.engine.processors import most_threads\nin_a_fork(lambda: kept(threads=most_threads()))"
    )


@case(status=0)
def a_fork_that_asks_for_one_thread(box):
    return PREPARE + "in_a_fork(lambda: kept(threads=1))"


@case(status=0)
def a_fork_that_runs_its_job_in_a_thread(box):
    return PREPARE + (
        "def run():\n"
        "    found = []\n"
        "    thread = threading.Thread(target=lambda: found.append(kept()))\n"
        "    thread.start(); thread.join()\n"
        "    return found[0]\n"
        "in_a_fork(run)"
    )


@case(status=0)
def a_pool_of_forked_processes(box):
    return PREPARE + (
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    assert pool.map_async(kept, range(4)).get(15) == [20] * 4"
    )


@case(status=0)
def a_pool_whose_processes_are_replaced_after_each_job(box):
    return PREPARE + (
        "with multiprocessing.get_context('fork').Pool(2, maxtasksperchild=1) as pool:\n"
        "    assert pool.map_async(kept, range(4)).get(15) == [20] * 4"
    )


@case(status=0)
def an_executor_of_forked_processes(box):
    return PREPARE + (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:\n"
        "    assert list(pool.map(kept, range(3), timeout=15)) == [20] * 3"
    )


@case(status=0)
def workers_that_tokenize_for_the_parent(box):
    """As a loader of training data does: single stages in forked processes, then in the parent again."""
    return PREPARE + (
        "recipe = nd.Recipe(method=nd.MinHash(filter=(6, 4, 2)))\n"
        "@named\ndef work(texts):\n"
        "    shingles = nd.stages.shingle(nd.stages.tokenize(texts, recipe, backend='cpu'), recipe, backend='cpu')\n"
        "    return recipe.method.sketch(shingles, backend='cpu').sum()\n"
        "expected = work(texts)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    assert pool.map_async(work, [texts] * 4).get(15) == [expected] * 4\n"
        "assert work(texts) == expected"
    )


@case(status=0)
def a_fork_while_another_thread_has_a_job(box):
    return PREPARE + (
        "begun, stop = threading.Event(), threading.Event()\n"
        "job = threading.Thread(target=kept, kwargs={'progress': lambda *_: (begun.set(), stop.wait(15))})\n"
        "job.start(); begun.wait()\n"
        "in_a_fork(kept)\n"
        "stop.set(); job.join()"
    )


@case(status=0)
def a_fork_by_a_thread_while_another_has_a_job(box):
    return PREPARE + (
        "begun, stop = threading.Event(), threading.Event()\n"
        "job = threading.Thread(target=kept, kwargs={'progress': lambda *_: (begun.set(), stop.wait(15))})\n"
        "job.start(); begun.wait()\n"
        "forking = threading.Thread(target=in_a_fork, args=(kept,))\n"
        "forking.start(); forking.join(); stop.set(); job.join()"
    )


@case(status=0)
def a_fork_amid_kernels(box):
    """The other thread is anywhere in them, ten times."""
    return PREPARE + (
        "stop = threading.Event()\n"
        "def busy():\n"
        "    while not stop.is_set(): kept()\n"
        "job = threading.Thread(target=busy); job.start()\n"
        "for _ in range(10): in_a_fork(kept)\n"
        "stop.set(); job.join()"
    )


@case(status=0)
def a_stream_that_asks_forked_processes(box):
    return PREPARE + (
        "def batches():\n"
        "    with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "        assert pool.map_async(kept, [0]).get(15) == [20]\n"
        "    yield from table.to_batches()\n"
        "nd.dedup(pa.RecordBatchReader.from_batches(table.schema, batches()), engine='cpu')"
    )


# ----------------------------------------------------------------------------------------------------- several threads


@case(says="a stream that a job is reading has started another job")
def a_stream_that_starts_a_job(box):
    return PREPARE + (
        "def batches():\n    kept()\n    yield from table.to_batches()\n"
        "nd.dedup(pa.RecordBatchReader.from_batches(table.schema, batches()), engine='cpu')"
    )


@case(says="a stream that a job is reading has started another job")
def a_stream_that_sketches_another(box):
    box.documents("d.jsonl")
    return PREPARE + (
        "def batches():\n    nd.sketches.sketch('d.jsonl', 's.parquet')\n    yield from table.to_batches()\n"
        "nd.dedup(pa.RecordBatchReader.from_batches(table.schema, batches()), engine='cpu')"
    )


@case(status=0)
def a_stream_that_catches_what_it_is_told(box):
    return PREPARE + (
        "def batches():\n"
        "    try: kept()\n"
        "    except nd.NeardupError: pass\n"
        "    yield from table.to_batches()\n"
        "nd.dedup(pa.RecordBatchReader.from_batches(table.schema, batches()), engine='cpu')"
    )


@case(status=0)
def a_job_in_the_progress_of_another(box):
    return PREPARE + "kept(progress=lambda *_: kept())"


@case(status=0)
def jobs_of_several_threads(box):
    return PREPARE + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(3) as pool: assert list(pool.map(kept, range(6))) == [20] * 6"
    )


STAGES = (
    "import threading\nrecipe = nd.Recipe(method=nd.MinHash(filter=(6, 4, 2)))\n"
    "tokens = nd.stages.tokenize(['some words that are here'] * 2000, recipe, backend='cpu')\n"
    "shingles = nd.stages.shingle(tokens, recipe, backend='cpu')\n"
    "def run():\n    for _ in range(20): recipe.method.sketch(shingles, backend='cpu')\n"
    "threads = [threading.Thread(target=run) for _ in range(3)]\n"
    "for thread in threads: thread.start()\n"
    "for thread in threads: thread.join()"
)


@case(status=0)
def stages_of_several_threads(box):
    return STAGES


@case(says="threads can be started")
def no_threads_at_all(box):
    """A limit that does not hold for root, so root becomes somebody else, who may be unable to import more."""
    return (
        "import resource, os, threading, neardup_gpu.engine.compiling, neardup_gpu.jobs.dedup\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "if os.geteuid() == 0: os.setuid(54321)\n"
        "nd.dedup(pa.table({'text': ['one two three', 'four five six']}), engine='cpu')"
    )


@case(says="ask for fewer with threads=...")
def fewer_threads_than_kernels_run_on(box):
    return (
        "import threading\nfrom unittest import mock\nstart, left = threading.Thread.start, [0, 0]\n"
        "def refused(thread):\n"
        '    if not left: raise RuntimeError("can\'t start new thread")\n'
        "    left.pop(); start(thread)\n"
        "with mock.patch.dict('os.environ', NUMBA_NUM_THREADS='64'), mock.patch('threading.Thread.start', refused):\n"
        "    nd.dedup(pa.table({'text': ['one two three', 'four five six']}), engine='cpu')"
    )


# -------------------------------------------------------------------------------------------------------------- memory

# Kernels are loaded, a file is written, then there are so many megabytes more.
LIMIT = """
import os, resource
pa.set_memory_pool(pa.system_memory_pool())  # others reserve what they do not use yet
nd.dedup(pa.table({"text": ["one two three four five six", "seven"]}), engine="cpu")
def limit(megabytes):
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (megabytes << 20),) * 2)
def large():
    return pa.table({"text": ["a" * 70_000_000]})
"""


@case(says=("memory does not suffice", "ulimit -v"), hides="Parquet file", writes="d.parquet")
def a_parquet_file_of_more_than_memory(box):
    return LIMIT + "pq.write_table(large(), 'd.parquet', compression='zstd')\nlimit(60)\nnd.dedup('d.parquet')"


@case(says="memory does not suffice", hides="Parquet file", writes="d.parquet")
def a_command_with_more_than_memory(box):
    return LIMIT + (
        "pq.write_table(large(), 'd.parquet', compression='zstd')\nfrom neardup_gpu.cli import main\nlimit(60)\n"
        "os._exit(main(['dedup', 'd.parquet', '--dry-run']))"
    )


@case(says="memory does not suffice", hides="Arrow IPC", writes="d.arrow")
def an_arrow_file_of_more_than_memory(box):
    return LIMIT + (
        "table = large()\n"
        "with pa.ipc.new_file('d.arrow', table.schema, options=pa.ipc.IpcWriteOptions(compression='zstd')) as file:\n"
        "    file.write_table(table)\n"
        "del table; limit(60); nd.dedup('d.arrow')"
    )


@case(says="memory does not suffice", writes="d.jsonl")
def json_lines_of_more_than_memory(box):
    return LIMIT + (
        "with open('d.jsonl', 'wb') as file:\n"
        "    file.write(b'{\"text\": \"' + b'a' * 60_000_000 + b'\"}')\n"
        "limit(100); nd.dedup('d.jsonl')"
    )


@case(says="memory does not suffice")
def a_table_whose_work_needs_more_than_memory(box):
    return LIMIT + "table = pa.table({'text': ['word ' * 8_000_000]}); limit(60); nd.dedup(table, engine='cpu')"


@case(says="memory does not suffice (malloc of size 8 failed)", hides="Parquet")
def sketches_of_more_than_memory(box):
    box.sketches("s.parquet")
    return (
        "from unittest import mock\n"
        "with mock.patch('pyarrow.parquet.ParquetFile', side_effect=pa.ArrowMemoryError('malloc of size 8 failed')):\n"
        "    nd.sketches.pairs('s.parquet')"
    )


@case(says="memory does not suffice (malloc of size 8 failed)", hides="choose another output")
def too_little_memory_for_what_is_kept(box):
    box.documents("d.parquet")
    return (
        "from unittest import mock\nimport neardup_gpu.documents.kept\n"
        "error = pa.ArrowMemoryError('malloc of size 8 failed')\n"
        "with mock.patch('pyarrow.parquet.ParquetWriter.write_table', side_effect=error):\n"
        "    nd.dedup('d.parquet', id_column='id', output='out')"
    )


@case(says="memory does not suffice (libarrow.so: failed to map segment from shared object)", fresh=True)
def too_little_memory_for_the_libraries(box):
    return (
        "import os, sys\nfrom neardup_gpu.cli.process import main\n"
        "class Fails:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'neardup_gpu.jobs.dedup':\n"
        "            raise ImportError('libarrow.so: failed to map segment from shared object')\n"
        "sys.meta_path.insert(0, Fails())\n"
        "sys.exit(main(['dedup', 'd', '--dry-run']))"
    )


@case(says="threads can be started", hides="cannot be written")
def too_few_threads_for_arrow(box):
    box.documents("d.parquet")
    return (
        "from unittest import mock\n"
        "error = pa.ArrowException('Failed to launch worker thread: Resource temporarily unavailable')\n"
        "with mock.patch('pyarrow.parquet.ParquetWriter.write_table', side_effect=error):\n"
        "    nd.dedup('d.parquet', id_column='id', output='out')"
    )


# ------------------------------------------------------------------------------------------------------------- signals


def _asleep(seconds):
    """Sleeps in naps: a signal that comes between a statement and the sleep after it waits for the end of one nap."""
    return f"[time.sleep(0.1) for _ in range({10 * seconds})]"


def _signalled(*signals):
    """All is written but the final name when the process is sent these, one at once after the other."""
    kills = "; ".join(f"kill -{number:d} $PPID" for number in signals)
    return (
        "import subprocess, sys, time\nfrom neardup_gpu import cli\n"
        "from neardup_gpu.jobs import dedup as job\nwrite = job.write_result\n"
        "def slowly(*arguments):\n"
        "    write(*arguments)\n"
        f"    subprocess.Popen(['sh', '-c', '{kills}'])\n"
        f"    {_asleep(20)}\n"
        "job.write_result = slowly\n"
        "sys.exit(cli.main(['dedup', 'd.jsonl', '--id-column', 'id', '-o', 'out', '-q']))"
    )


@case(status=130, says="interrupted; nothing was written")
def an_interrupt_when_all_is_written_but_the_name(box):
    box.documents("d.jsonl")
    return _signalled(signal.SIGINT)


@case(status=130, says="interrupted; nothing was written")
def a_termination(box):
    box.documents("d.jsonl")
    return _signalled(signal.SIGTERM)


@case(status=130, says="interrupted; nothing was written")
def a_terminal_that_is_closed(box):
    box.documents("d.jsonl")
    return _signalled(signal.SIGHUP)


@case(status=130, says="interrupted; nothing was written")
def a_signal_that_comes_twice_at_once(box):
    """As `timeout` sends it: to the process, and to its group."""
    box.documents("d.jsonl")
    return _signalled(signal.SIGTERM, signal.SIGTERM)


@case(max_seconds=90, status=130, says="interrupted; nothing was written")
def three_signals_at_once(box):
    box.documents("d.jsonl")
    return _signalled(signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


STUBBORN = (
    "import signal, subprocess, sys\n"
    "code = '''import time, sys\n"
    "from neardup_gpu import cli\n"
    "from neardup_gpu.jobs import dedup as job\n"
    "def never(*_, **__):\n"
    f'    try:\n        print("ready", flush=True); {_asleep(30)}\n'
    '    finally:\n        print("cleaning", flush=True); {stuck}\n'
    "job.dedup = never\n"
    'sys.exit(cli.main(["dedup", "d.jsonl", "--dry-run"]))\'\'\'\n'
    "process = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True)\n"
    "assert process.stdout.readline() == 'ready\\n'\n"
    "process.send_signal(signal.{first})\n"
    "assert process.stdout.readline() == 'cleaning\\n'\n"
    "process.send_signal(signal.{second})\n"
    "assert process.wait(5) == -signal.{second}"
)


@case(status=0)
def a_second_signal_while_the_first_is_obeyed(box):
    return STUBBORN.format(stuck=_asleep(30), first="SIGINT", second="SIGINT")


@case(status=0)
def a_second_signal_while_c_code_runs(box):
    """A power of integers of a minute, which no handler interrupts."""
    return STUBBORN.format(stuck="3 ** (3 ** 17)", first="SIGTERM", second="SIGINT")


@case(status=0)
def a_terminal_closed_after_an_interrupt(box):
    return STUBBORN.format(stuck=_asleep(30), first="SIGINT", second="SIGHUP")


@case(status=0)
def handlers_are_the_callers_again(box):
    return (
        "import signal\nfrom neardup_gpu.cli import main\n"
        "def own(*_): pass\n"
        "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, own)\n"
        "for words, status in ((['--version'], 0), (['dedup', 'missing', '-o', 'out'], 2), (['frob'], 2)):\n"
        "    from unittest import mock\n"
        "    with mock.patch('sys.stderr', None): assert main(words) == status\n"
        "    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): assert signal.getsignal(number) is own"
    )


@case(status=0)
def a_hangup_that_is_ignored_stays_so(box):
    """As by nohup."""
    box.documents("d.jsonl")
    return (
        "import os, signal\nfrom unittest import mock\nfrom neardup_gpu import cli\n"
        "from neardup_gpu.jobs import dedup as job\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "decide = job.decide\n"
        "def hung_up(*a, **k):\n    os.kill(os.getpid(), signal.SIGHUP)\n    return decide(*a, **k)\n"
        "with mock.patch.object(job, 'decide', hung_up):\n"
        "    assert cli.main(['dedup', 'd.jsonl', '--dry-run', '-q']) == 0"
    )


@case(status=0)
def the_command_in_a_thread(box):
    """Where no signal can be handled."""
    box.documents("d.jsonl")
    return (
        "import threading\nfrom neardup_gpu.cli import main\nfound = []\n"
        "thread = threading.Thread(target=lambda: found.append(main(['dedup', 'd.jsonl', '--dry-run', '-q'])))\n"
        "thread.start(); thread.join(); assert found == [0]"
    )


@case(status=0, max_seconds=40)
def interrupts_from_the_start(box):
    """From when the handler is in place, which the process tells by its first import after it."""
    return (
        "import os, signal, subprocess, sys, time\n"
        "for after in (0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3):\n"
        '    code = \'import os, sys; os.write(1, b"."); sys.argv = ["neardup", "dedup", "d", "--dry-run"]; \' \\\n'
        "        'from neardup_gpu.cli import process; begin = process._run; ' \\\n"
        "        'process._run = lambda a: (os.write(1, b\"!\"), begin(a))[1]; process.run()'\n"
        "    child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "    while child.stdout.read(1) != b'!': pass\n"
        "    time.sleep(after)\n"
        "    child.send_signal(signal.SIGINT)\n"
        "    said = child.communicate(timeout=20)[1]\n"
        "    ends = {130: b'neardup: interrupted; nothing was written\\n'}\n"
        "    ends[2] = b'neardup: d: no such file or folder.\\n'\n"
        "    assert said == ends.get(child.returncode), (after, child.returncode, said)"
    )


# ----------------------------------------------------------------------------------------------------- standard streams


@case(says="standard output cannot be written (No space left on device)", stdout="full")
def a_full_disk_behind_standard_output(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "--dry-run"]


@case(says="standard output cannot be written", stdout="full")
def help_on_a_full_disk(box):
    return ["--help"]


@case(says="standard output cannot be written", stdout="full", fresh=True)
def a_table_of_figures_on_a_full_disk(box):
    return ["curve", "--json"]


@case(status=0, writes="out", stdout="closed")
def a_closed_standard_output(box):
    box.documents("d.parquet")
    return ["dedup", "d.parquet", "--id-column", "id", "-o", "out"]


@case(status=0, stdout="closed", fresh=True)
def a_closed_standard_output_from_the_start(box):
    return ["curve"]


@case(says="no such file", stdout="closed")
def a_mistake_with_a_closed_standard_output(box):
    return ["dedup", "missing", "--dry-run"]


@case(status=1, stdout="pipe")
def nobody_reads_a_summary(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "--dry-run"]


@case(status=1, stdout="pipe")
def nobody_reads_help(box):
    return ["dedup", "--help"]


RUN = "import os, sys\nfrom neardup_gpu.cli import main\n"
JOB = "main(['dedup', 'd.jsonl', '--id-column', 'id', '-o', 'out'])"


@case(status=0, writes="out")
def a_closed_standard_error(box):
    box.documents("d.jsonl")
    return (
        RUN
        + f"saved = os.dup(2); os.close(2); sys.stderr = None\nstatus = {JOB}\nos.dup2(saved, 2)\nassert status == 0"
    )


@case(status=0, writes="out")
def a_full_disk_behind_standard_error(box):
    box.documents("d.jsonl")
    return RUN + (
        "import logging\nfrom neardup_gpu.jobs import dedup as job\n"
        "decide = job.decide\n"
        "def noting(*a, **k):\n"
        "    logging.getLogger('neardup_gpu').warning('words ' * 2000)\n    return decide(*a, **k)\n"
        "job.decide = noting\n"
        "saved = os.dup(2); os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n"
        f"status = {JOB}\nos.dup2(saved, 2)\nassert status == 0"
    )


@case(status=0)
def a_mistake_with_nobody_to_tell(box):
    """Its status is all that is left."""
    return RUN + (
        "saved = os.dup(2); os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n"
        "status = main(['dedup', 'missing', '--dry-run'])\nos.dup2(saved, 2)\nassert status == 2"
    )


@case(status=0, writes="out")
def all_standard_streams_are_closed(box):
    """No file of the result may take their numbers, and with it what is printed."""
    box.documents("d.jsonl")
    return RUN + (
        "saved = os.dup(2)\nfor number in range(3): os.close(number)\n"
        "sys.stdin = sys.stdout = sys.stderr = None\n"
        f"status = {JOB}\nos.dup2(saved, 2); assert status == 0\n"
        "assert pq.read_table('out/documents.parquet').num_rows == 6"
    )


NAMES = ["naïve", "日本", "🐟", "\u2028line"]


def _names(box):
    box.lines("d.jsonl", *({"id": name, "text": f"{name} the same words for all of them"} for name in NAMES))


def _valid_json(box, ended):
    import json

    assert "größe.jsonl" in json.dumps(json.loads(ended.output), ensure_ascii=False)


@case(status=0, fresh=True, environment={"PYTHONIOENCODING": "ascii"}, then=_valid_json)
def json_for_a_terminal_of_ascii(box):
    box.lines("d.jsonl", *({"id": name, "text": f"{i} a few words"} for i, name in enumerate(NAMES)))
    os.rename(box / "d.jsonl", box / "größe.jsonl")
    return ["dedup", "größe.jsonl", "--id-column", "id", "--dry-run", "--json"]


@case(status=0, writes="out", fresh=True, environment={"PYTHONIOENCODING": "ascii"})
def a_summary_for_a_terminal_of_ascii(box):
    _names(box)
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, fresh=True, environment={"PYTHONIOENCODING": "latin-1"})
def an_explanation_for_a_terminal_of_latin_1(box):
    _names(box)
    box.run("dedup", "d.jsonl", "--id-column", "id", "--threshold", "0.3", "-o", "out", "-q")
    return ["explain", "out", "日本"]


@case(
    says="gr\\xf6\\xdfe.jsonl", fresh=True, environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
)
def a_name_that_the_locale_does_not_have(box):
    return ["dedup", "größe.jsonl", "--dry-run"]


@case(status=0, fresh=True, environment={"COLUMNS": "1", "TERM": "dumb", "NO_COLOR": "1"})
def a_terminal_of_one_column(box):
    return ["dedup", "--help"]


@case(status=0, environment={"COLUMNS": "0", "LINES": "-1"})
def a_terminal_of_no_columns(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "--dry-run"]


# --------------------------------------------------------------------------------------------------- the working folder


@case(says="the working folder was removed")
def the_working_folder_is_gone(box):
    return (
        RUN
        + "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\nos._exit(main(['dedup', 'd.jsonl', '-o', 'out']))"
    )


@case(says="no such file")
def the_working_folder_is_gone_in_python(box):
    return "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\nnd.dedup('d.jsonl', output='out')"


# ---------------------------------------------------------------------------------------- the cache of compiled kernels

# A small function stands for the kernels, so that nothing takes a minute.
CACHE = """
import logging, os, sys
from neardup_gpu.kernels import _cache, _cpu, _numba
logging.basicConfig(format="%(message)s", level="INFO")
def compiled():
    def add(a, b): return a + b
    _numba.CACHE, _numba.WHY_NOT_KEPT = _cache.private_folder("name")
    function = _cpu.jit()(add)
    assert function(20, 22) == 42
    return bool(function.original.stats.cache_hits)
os.environ["NEARDUP_CACHE_DIR"] = os.path.abspath("cache")
"""
THEIRS = "class Evil:\n    def __reduce__(self): return os.mkdir, ('hacked',)\n"


@case(status=0, says="can be written by other users", writes="cache")
def a_cache_that_all_can_write(box):
    return CACHE + "os.mkdir('cache'); os.chmod('cache', 0o777)\nassert not compiled()"


@case(status=0, says="can be written by other users", writes="cache")
def a_cache_that_a_group_can_write(box):
    return CACHE + "os.mkdir('cache'); os.chmod('cache', 0o770)\nassert not compiled() and not compiled()"


@case(status=0, says="can be written by other users", writes="cache")
def a_planted_file_in_a_cache_that_all_can_write(box):
    """It would run if it were read: the name and the checksum are right."""
    return (
        CACHE
        + THEIRS
        + "assert not compiled()\n(path,) = _numba.CACHE.iterdir()\nimport pickle\n"
        + "_cache._write(path, pickle.dumps(Evil())); os.chmod('cache/name', 0o777)\n"
        + "_cache._announced = False\nassert not compiled() and not os.path.exists('hacked')"
    )


@case(status=0, says="belongs to another user" if os.geteuid() == 0 else (), writes="cache")
def a_cache_of_another_user(box):
    return CACHE + "os.mkdir('cache')\nif os.geteuid() == 0: os.chown('cache', 54321, -1)\nassert not compiled()"


@case(status=0, writes="cache")
def a_file_of_another_user_in_the_cache(box):
    return (
        CACHE
        + THEIRS
        + "assert not compiled()\n(path,) = _numba.CACHE.iterdir()\nimport pickle\n"
        + "if os.geteuid() == 0:\n    _cache._write(path, pickle.dumps(Evil())); os.chown(path, 54321, -1)\n"
        + "    assert not compiled() and not os.path.exists('hacked')\nassert compiled()"
    )


@case(status=0, says="can be written by other users", writes=("cache", "shared"))
def a_cache_that_is_a_link(box):
    return CACHE + "os.mkdir('shared'); os.chmod('shared', 0o777); os.symlink('shared', 'cache')\nassert not compiled()"


@case(status=0, writes="cache")
def a_cache_made_without_a_umask(box):
    return CACHE + "os.umask(0); assert not compiled(); assert os.stat('cache/name').st_mode & 0o777 == 0o700"


@case(status=0, writes="cache")
def a_cache_that_lost_power(box):
    return CACHE + (
        "assert not compiled()\n(path,) = _numba.CACHE.iterdir()\nsize = path.stat().st_size\n"
        "for left in (b'', bytes(size), path.read_bytes()[:size // 2]):\n"
        "    path.write_bytes(left); assert not compiled(); assert compiled()"
    )


@case(status=0, says=("it is damaged", "compiling kernels"), writes="cache")
def a_flipped_bit_in_machine_code(box):
    return CACHE + (
        "assert not compiled()\n(path,) = _numba.CACHE.iterdir()\ndata = bytearray(path.read_bytes())\n"
        "data[len(data) // 2] ^= 16; path.write_bytes(data)\n_cache._announced = False\n"
        "assert not compiled(); assert compiled()"
    )


@case(status=0, says="cannot be kept", writes="cache")
def a_full_disk_under_the_cache(box):
    return CACHE + (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))\nassert not compiled()\n"
        "assert os.listdir('cache/name') == []"
    )


@case(status=0, writes="cache")
def a_cache_removed_amid_the_run(box):
    return CACHE + (
        "import shutil\nprivate = _cache.private_folder\n"
        "def lost(name):\n    found = private(name); shutil.rmtree('cache'); return found\n"
        "_cache.private_folder = lost; assert not compiled()"
    )


@case(status=0, says="cannot be kept", writes="cache")
def a_cache_that_is_a_file(box):
    box.write("cache", "a file")
    return CACHE + "assert not compiled()"
