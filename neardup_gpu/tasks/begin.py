"""Begin a job of tasks of a command that keeps no shingles, such as `neardup contaminated`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from neardup_gpu.kernels._cpu import large_arrays_by

from .. import checks
from ..arguments import Arguments
from ..documents.sources import Sources
from ..engine.clock import Clock
from ..engine.large_arrays import MappedArrays, large_arrays_within
from ..errors import OutputError, ParameterError
from ..settings import refuse_unused
from ..store.outputs import new_folder
from .columns import TABLE, add_table
from .driver import Job
from .job import started
from .running import columns_of, working
from .work import FILES, Work
from .workers import Workers


@contextlib.contextmanager
def begun(
    verb: str,
    arguments: Arguments,
    workers: Workers | None,
    sources: Sources,
    clock: Clock,
    folders: Sequence[str],
    reads: Sequence[str] = (),
    unused: Sequence[str] = (),
) -> Iterator[tuple[Job | None, Path | None]]:
    """Begin a job, or continue it; yield it, and the folder of the output, which appears after the block.

    Without workers there is no job, and then there may be no output. Arrays of this process that grow with the text go
    to temporary files where the memory of the arguments, or that of a task, leaves no room.

    Parameters
    ----------
    verb : str
        The command. A work folder of another command is refused.
    arguments : Arguments
    workers : Workers or None
    sources : Sources
    clock : Clock
    folders : sequence of str
        The folders of files that the driver hands on to tasks, which are removed with those of the tasks.
    reads : sequence of str, default ()
        Further files on this machine that the job reads.
    unused : sequence of str, default ()
        Fields of `Workers` that the command does not use.

    Raises
    ------
    NeardupError
        As raised by `run_in_tasks`.
    """
    path, overwrite, reads = arguments.output, arguments.writing.overwrite, [*sources.local_files, *reads]
    if workers is None:
        with contextlib.ExitStack() as stack:
            place = None if path is None else stack.enter_context(new_folder(path, overwrite, reads))
            stack.enter_context(large_arrays_within(arguments.memory, arguments.engine.temp_dir or place))
            yield None, place
        return
    workers = checks.instance("workers", workers, Workers)
    refuse_unused(workers, verb, unused)
    if workers.spool:
        raise ParameterError(f"spool: `neardup {verb}` keeps no shingles; leave it out")
    if path is None:
        raise OutputError("output: tasks write their result into a folder; name one", parameter="output")
    with started(arguments, workers) as (runner, settled):
        output = new_folder(path, overwrite, reads)
        given = runner, settled, workers, clock, sources, arguments.recipe, output, verb
        with working(*given) as (work, slices, known, place):
            arrays = MappedArrays.within(work.shared.task_memory, arguments.engine.temp_dir or place)
            rewritten = columns_of(sources.documents, arguments.writing)
            with large_arrays_by(arrays):
                yield Job(work, slices, sum(known.values()), None, 0, *rewritten), place
            if not workers.keep_work:
                for folder in folders:
                    work.place.clear(folder, FILES)


def hand_on(work: Work, folder: str, number: int, parts: Sequence[Sequence[pa.Table]]) -> str:
    """Write tables for tasks into a file, which `tables_of` reads; return a checksum of them.

    Parameters
    ----------
    work : Work
    folder : str
        The folder of the file; it is the last part of its name, too.
    number : int
        The number in the name of the file.
    parts : sequence of sequences of pyarrow.Table
        The tables of each partition.
    """
    with work.shared.files(folder, number).exchange(folder, TABLE, len(parts)) as out:
        for part, tables in enumerate(parts):
            for table in tables:
                add_table(out, part, table)
    return out.close().checksum
