"""The same job in memory and in tasks, and what either wrote."""

import shutil
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from flat import flat

from neardup_gpu import dedup
from neardup_gpu.store.artefacts import DOCUMENTS, PAIRS, parts_of, read_report
from neardup_gpu.tasks.workers import Workers

TOLD = ("group_sizes", "group_kinds", "largest_groups", "input", "against")


def in_tasks(folder, source=None, *, slice_bytes=2500, partitions=2, **options):
    """Do a job in tasks; the result is in `folder`, and nothing is left of the work."""
    workers = Workers(work_dir=f"{folder}.work", number=1, slice_bytes=slice_bytes, partitions=partitions)
    try:
        return flat(dedup, source, output=folder, engine="cpu", workers=workers, **options).report
    finally:
        shutil.rmtree(f"{folder}.work", ignore_errors=True)


def both(folder, source=None, *, slice_bytes=2500, **options):
    """Do a job in memory and in tasks, compare what they wrote, and give the result in memory."""
    result = flat(dedup, source, output=folder / "memory", engine="cpu", check=0, **options)
    report = in_tasks(folder / "tasks", source, slice_bytes=slice_bytes, **options)
    compare(folder / "memory", folder / "tasks")
    assert report["tasks"]["slices"] > 1
    return result


def compare(memory, tasks, other_work=("comparisons",)):
    """See that two results are the same but for the files in which they are, and for counts of work."""
    for table in (DOCUMENTS, PAIRS):
        assert rows(tasks, table) == rows(memory, table)
    here, there = read_report(memory), read_report(tasks)
    for name in TOLD:
        assert there[name] == here[name], name
    counts = here["counts"] | {name: there["counts"][name] for name in other_work}
    assert there["counts"] == counts
    skipped = [folder / "skipped.parquet" for folder in (memory, tasks)]
    assert skipped[0].exists() == skipped[1].exists()
    if skipped[0].exists():
        assert pq.read_table(skipped[1]).equals(pq.read_table(skipped[0]))


def rows(folder, table):
    """The rows of all parts of a table, and the types of its columns."""
    tables = [pq.read_table(path) for path in parts_of(folder, read_report(folder)["files"], table)]
    whole = pa.concat_tables([each.replace_schema_metadata() for each in tables])
    return whole.schema, whole.to_pylist()


def errors(folder, source=None, *, slice_bytes=2500, **options):
    """What a job says that ends with an error: in memory, and in tasks."""
    said = []
    for do in (
        partial(flat, dedup, output=folder / "memory", check=0),
        partial(in_tasks, folder / "tasks", slice_bytes=slice_bytes),
    ):
        try:
            do(source, **options)
        except Exception as error:
            said.append((type(error), str(error)))
        assert not (folder / "memory").exists() and not (folder / "tasks").exists()
    return said
