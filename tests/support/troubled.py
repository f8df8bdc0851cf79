"""A small job of tasks that has all stages, ways to trouble it, and what its result is by."""

import hashlib
import json
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from chores import no_mark, wait_for

from neardup_gpu import Recipe, dedup
from neardup_gpu.store.places import Place
from neardup_gpu.tasks.workers import Workers

FILES = 3
STAGES = [
    *(
        "sketch",
        "unique",
        "sample",
        "choose",
        "spread",
        "order",
        "rows",
        "rank",
        "copies",
        "merge",
        "postings",
        "collide",
    ),
    *("pairs", "sets", "verify", "members", "crowd-sets", "crowd", "decide", "name"),
    *("listed", "fates", "ids", "tables", "write"),
]
"""Stages of the job, in their order."""


def documents(folder):
    """Three files of documents with copies, near-duplicates, empty ones, and one with so many that it is a crowd."""
    choose = random.Random(7)
    words = [f"word{number}" for number in range(2000)]
    page = choose.choices(words, k=40)
    texts = []
    for number in range(360):
        text = list(page) if number % 2 else choose.choices(words, k=30)
        if number % 2:
            text[choose.randrange(3)] = choose.choice(words)
        elif number % 3 == 0 and number:
            text = texts[choose.randrange(number)].split()[: 30 - number % 2]
        texts.append(" ".join(text))
    texts[10] = texts[20] = ""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        rows = range(number * 120, number * 120 + 120)
        table = pa.table({"id": [f"d{row}" for row in rows], "text": [texts[row] for row in rows]})
        pq.write_table(table, folder / "in" / f"{number}.parquet")
    return folder


def run(folder, *, output="out", recipe=None, source="in", **settings):
    """Run the job in a folder; returns its report."""
    settings = {"work_dir": str(folder / "work"), "number": 1, "partitions": 2, "slice_bytes": 4000, **settings}
    return dedup(
        source if not isinstance(source, str) else folder / source,
        output=folder / output,
        workers=Workers(**settings),
        text_columns="text",
        id_column="id",
        recipe=Recipe(method="exact", keep="longest", threshold=0.7) if recipe is None else recipe,
    ).report


def bits(folder):
    """Digests of all files of a result, by name, with what its report says of it."""
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "report.json"
    }
    report = json.loads((folder / "report.json").read_text())
    report["input"].pop("paths")
    return {**found, "report": {name: report[name] for name in ("recipe", "input", "counts", "group_sizes", "limits")}}


class Troubled:
    """Workers whose tasks are called by `trouble(folder, function, *arguments)`."""

    def __init__(self, workers, trouble, folder):
        self._workers, self._trouble, self._folder = workers, trouble, folder
        self.num_workers, self.one_machine = workers.num_workers, workers.one_machine
        self.check_folder = workers.check_folder

    def run(self, tasks):
        changed = {
            task.number: replace(task, function=self._trouble, arguments=(self._folder, task.function, *task.arguments))
            for task in tasks
        }
        given = {task.number: task for task in tasks}
        for task, result in self._workers.run(list(changed.values())):
            yield given[task.number], result

    def __enter__(self):
        self._workers.__enter__()
        return self

    def __exit__(self, *error):
        self._workers.__exit__(*error)


def trouble(patch, trouble, folder):
    """Trouble all jobs that begin from now on, by a function of `patch`, such as `MonkeyPatch.setattr`."""
    start = Workers.start
    folder.mkdir(exist_ok=True)

    def troubled(self, engine, recipe=None):
        workers, engine = start(self, engine, recipe)
        return Troubled(workers, trouble, folder), engine

    patch(Workers, "start", troubled)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


# ------------------------------------------------------------------------------- what befalls tasks, in their processes


def killed_twice(folder, perform, shared, stage, number, *others):
    """The first task of each stage dies before it does anything, and again between its files and its record."""
    if number == 0 and no_mark(folder / f"{stage}-first"):
        die()
    if number == 0 and no_mark(folder / f"{stage}-second"):
        Place.write_text = die
    return perform(shared, stage, number, *others)


def noted(folder, perform, shared, stage, number, *others):
    """What is done is written down."""
    record = perform(shared, stage, number, *others)
    with open(folder / "log", "a") as log:
        log.write(f"{stage} {number}\n")
    return record


def dead_after(folder, perform, shared, stage, number, *others):
    """The driver, which does the tasks itself, dies in each stage, when its first task is done."""
    record = noted(folder, perform, shared, stage, number, *others)
    if no_mark(folder / f"{stage}-dead"):
        die()
    return record


def failing(folder, perform, shared, stage, number, *others):
    """One task fails as long as a file is there."""
    if (folder / f"{stage}-{number}").exists():
        raise ValueError("this\nalways fails")
    return perform(shared, stage, number, *others)


def late(folder, perform, shared, stage, number, *others):
    """Each task is done, and once more later: when the next but one has been done."""
    LATE.append((perform, shared, stage, number, *others))
    if len(LATE) > 2:
        again, *arguments = LATE.pop(0)
        again(*arguments)
    return perform(shared, stage, number, *others)


LATE = []


def on_lost_nodes(folder, perform, shared, stage, number, *others):
    """In some stages, tasks on a node that is named in a file wait to die with it, and those elsewhere until it is."""
    lost = folder / f"{stage}-lost"
    if (folder / f"{stage}-node").exists() and not lost.exists():
        import ray

        if ray.get_runtime_context().get_node_id() == (folder / f"{stage}-node").read_text():
            (folder / f"{stage}-begun").touch()
            time.sleep(600)
        wait_for(lost.exists)
    return perform(shared, stage, number, *others)


def mixed(folder, perform, shared, stage, number, *others):
    """Of the tasks in a process with a simulated GPU, each other one computes on the CPU; what did is written down."""
    from neardup_gpu.kernels._launch import simulated

    if simulated() and number % 2:
        shared = replace(shared, engine=replace(shared.engine, backend="cpu"))
    record = perform(shared, stage, number, *others)
    with open(folder / "log", "a") as log:
        log.write(f"{stage} {shared.engine.backend if simulated() else 'no GPU'}\n")
    return record


def damaging(folder, perform, shared, stage, number, *others):
    """A file of each task is damaged once, after its record is written."""
    record = perform(shared, stage, number, *others)
    for name in record.files:
        if no_mark(folder / name.replace("/", "-")):
            damage(Path(shared.work, name), name)
            break
    return record


def damage(path, kind):
    """Cut a file, turn one of its bits over, or remove it: which, depends on a name."""
    data = bytearray(path.read_bytes())
    match hashlib.sha256(kind.encode()).digest()[0] % 3:
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(data[: len(data) // 2])
        case 2:
            data[len(data) - 20] ^= 4
            path.write_bytes(data)
