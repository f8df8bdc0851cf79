"""The work folder: what tasks wrote, with a record for each, by which a job goes on where it was interrupted.

    WORK/job.json           what the job is: recipe, input, version, how it is divided
    WORK/lock               locked by the driver as long as it lives; in a store a lease, which it renews
    WORK/STAGE/NUMBER-WHAT  files of a task
    WORK/STAGE/NUMBER.json  its record, which appears after its files: the task is done

A record holds a digest of all that its task depends on: the job, the stage, the task's arguments, and the digests of
the stages before. A task is done if its record has the digest that is expected and its files have the sizes, and those
of the work folder the checksums, that are recorded.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from neardup_gpu.kernels._cached import cached_property

from ..documents.slices import Slice
from ..engine.clock import Clock
from ..engine.contract import Runtime
from ..engine.settings import Engine
from ..engine.tasks import ATTEMPTS, Runner, Task
from ..errors import DamagedError, NeardupError, OutputError
from ..log import log
from ..methods.frequencies import Frequencies
from ..recipe import Recipe
from ..records import dataclass
from ..store.exchange import DamagedExchangeError, ExchangeWriter, read_arrays, sealed
from ..store.places import Place

Result = TypeVar("Result")

COUNTS = pa.schema([("element", pa.uint64()), ("documents", pa.int64())])
"""Columns of the files of the stages "count" and "sum"."""

FILES = re.compile(r"\.?[0-9]{6,}[-.].*")
"""Names of the files of tasks in the folder of a stage, hidden ones that killed tasks left included."""

WAITING = 8
"""A task that writes one file has an eighth of its memory for rows that wait; to write them takes twice as much."""

WAITING_BESIDE = 16
"""The same for a task that also holds something else, or that writes two files at once."""


@dataclass(frozen=True)
class Shared:
    """Hold what all tasks of a job share.

    Parameters
    ----------
    work : str
        The work folder: a path or a URI.
    result : str
        The folder for files of the result, which all workers see.
    recipe : Recipe
    engine : Engine
        What a task computes with.
    task_memory : int
        Bytes that a task may hold, without the interpreter and its libraries.
    partitions : int
        Parts into which keys and ranks are divided.
    temp_dir : str, optional
        Where a task's own temporary files go; the system's folder unless given.
    spool : bool
        Whether shingles wait in files, 8 bytes each; else they are made again from the text.
    frequencies : str, optional
        A file of document frequencies.
    num_counted : int, optional
        Documents in which the job counted the frequencies itself, once it has.
    sized : bool
        Whether tables tell how many shingles two documents share.
    """

    work: str
    result: str
    recipe: Recipe
    engine: Engine
    task_memory: int
    partitions: int
    temp_dir: str | None = None
    spool: bool = False
    frequencies: str | None = None
    num_counted: int | None = None
    sized: bool = False

    def files(self, stage: str, number: int) -> Files:
        """The files of a task."""
        return Files(self, stage, number)

    @contextlib.contextmanager
    def start(self) -> Iterator[Runtime]:
        """Start the runtime of a task for a block. It holds less host memory at a time than the task may."""
        with self.engine.start() as runtime:
            if runtime.backend != "gpu":
                runtime.shares = runtime.shares.bounded_by(self.task_memory)
            yield runtime

    def settled(self) -> tuple[Recipe, Any]:
        """The recipe and what its method weighs by, if it weighs, or the common shingles that are left out."""
        if self.num_counted is None:
            return self.recipe.with_statistics(self.frequencies)
        counted = counted_frequencies(self, self.num_counted)
        return (self.recipe, counted) if self.recipe.ignored else self.recipe.with_statistics(counted)

    @property
    def temporary(self) -> Path:
        """Return the folder for temporary files of a task."""
        return Path(self.temp_dir or tempfile.gettempdir())

    def without_device(self) -> Shared:
        """The same for tasks that may run where no GPU is: by the CPU, unless by definitions."""
        if self.engine.backend != "gpu":
            return self
        return replace(self, engine=replace(self.engine, backend="cpu", device=None, gpu_memory=None))


def counted_frequencies(shared: Shared, num_documents: int) -> Frequencies:
    """Return the document frequencies that the tasks of a job counted."""
    names = [file_name("sum", part, "sums") for part in range(shared.partitions)]
    found = read_arrays(shared.files("sum", 0).place, names, 0, COUNTS)
    return Frequencies(found["element"], found["documents"], num_documents, shared.recipe.seed, shared.recipe.elements)


@dataclass
class Files:
    """Name the files that a task writes, and find those that others wrote."""

    shared: Shared
    stage: str
    number: int
    written: list[ExchangeWriter] = field(default_factory=list)

    @cached_property
    def place(self) -> Place:
        """The work folder."""
        return Place.of(self.shared.work)

    def exchange(self, what: str, schema: pa.Schema, num_partitions: int, share: int = WAITING) -> ExchangeWriter:
        """A file of rows by partition, which this task writes; a `share`-th of its memory is for rows that wait."""
        name, most = file_name(self.stage, self.number, what), self.shared.task_memory // share
        self.written.append(ExchangeWriter(self.place, name, schema, num_partitions, most))
        return self.written[-1]


def file_name(stage: str, number: int, what: str) -> str:
    """The name of a task's file, below the work folder."""
    return f"{stage}/{number:06}-{what}"


def producer_of(name: str) -> tuple[str, int]:
    """The stage and the number of the task that wrote a file."""
    stage, _, rest = name.rpartition("/")
    return stage, int(rest.partition("-")[0].partition(".")[0])


@dataclass(frozen=True)
class Record:
    """Record what a task did.

    Parameters
    ----------
    digest : str
        Of all that it depends on.
    files : dict of str to (int, str)
        Its files in the work folder, by name: their sizes and checksums.
    result : dict of str to int
        Its files of the result, by name, and their sizes.
    facts : dict
        What it found out: plain values. `files` are the names of its files of the result, if it writes any.
    seconds : float
        How long it took.
    """

    digest: str
    files: dict[str, tuple[int, str]]
    result: dict[str, int]
    facts: dict[str, Any]
    seconds: float

    def to_json(self) -> str:
        """The record and a checksum of it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({**found, "checksum": _digest(found)})

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The reverse of `to_json`; raises ValueError, TypeError, KeyError or AttributeError for anything else."""
        found = json.loads(text)
        if found.pop("checksum") != _digest(found):
            raise ValueError("a record that has changed")
        files = {name: (size, checksum) for name, (size, checksum) in found.pop("files").items()}
        record = cls(**found, files=files)
        sizes = [*record.result.values(), *(size for size, _ in files.values())]
        sound = isinstance(record.digest, str) and isinstance(record.facts, dict)
        sound &= type(record.seconds) in (int, float) and all(type(size) is int and size >= 0 for size in sizes)
        sound &= all(isinstance(checksum, str) for _, checksum in files.values())
        if not sound or sorted(record.facts.get("files", [])) != sorted(record.result):
            raise ValueError("a record that no task wrote")
        if any({"", ".", ".."} & set(name.split("/")) or "\0" in name for name in (*record.result, *files)):
            raise ValueError("a name that leads out of the folder")
        return record


def perform(
    shared: Shared, stage: str, number: int, digest: str, function: Callable[..., Any], arguments: Any
) -> Record:
    """Do a task: call the function with its files and arguments, then write the record of it."""
    begin = time.perf_counter()
    files = shared.files(stage, number)
    try:
        facts = plain(function(files, *arguments) or {})
    except OSError as error:
        if isinstance(error, NeardupError) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        why = f"{os.strerror(error.errno)}, task {number} of stage {stage}"
        raise OutputError(
            f"{files.place}: no room for all that is written ({why}); make room there, in the temporary folder and at "
            "the output, and run the same again"
        ) from error
    written = [writer.close() for writer in files.written]
    seals = {each.name: (each.num_bytes, each.checksum) for each in written}
    result = {name: Path(shared.result, name).stat().st_size for name in facts.get("files", [])}
    record = Record(digest, seals, result, facts, round(time.perf_counter() - begin, 3))
    files.place.write_text(_record_name(stage, number), record.to_json())
    return record


@dataclass(frozen=True)
class Stage:
    """A stage that is done: the records of its tasks, in order."""

    name: str
    records: list[Record]

    @cached_property
    def digest(self) -> str:
        """Return the digest of everything on which the files of the stage depend."""
        return _digest([self.name, *(record.digest for record in self.records)])

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Return the facts that each task found."""
        return [record.facts for record in self.records]

    def total(self, fact: str) -> int:
        """The sum of a number that each task found out."""
        return sum(each[fact] for each in self.facts)

    def names(self, what: str) -> list[str]:
        """The file of that kind that each task wrote."""
        return [file_name(self.name, number, what) for number in range(len(self.records))]


class Work:
    """The driver's side of a work folder.

    Parameters
    ----------
    shared : Shared
    workers : Runner
    clock : Clock
    identity : str
        A digest of what the job is.
    still_claimed : callable, optional
        Called each time that a task is done; raises an error if another driver has taken the folder.
    """

    def __init__(
        self,
        shared: Shared,
        workers: Runner,
        clock: Clock,
        identity: str,
        still_claimed: Callable[[], None] = lambda: None,
    ) -> None:
        self.shared, self.workers, self.clock, self.identity = shared, workers, clock, identity
        self.place, self._still_claimed = Place.of(shared.work), still_claimed
        self.resumed = 0
        self._tasks: dict[tuple[str, int], Task] = {}
        self._label, self._done = "", 0

    def stage(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        *,
        after: Sequence[Stage] = (),
        covers: Sequence[str] | None = None,
        on_device: bool = False,
    ) -> Stage:
        """Do a stage: `function(files, *arguments[i])` for each i, by the workers, but what is done already.

        Parameters
        ----------
        name : str
        function : callable
            Of a module; takes `Files` and the arguments, returns facts.
        arguments : list of tuples
            For each task; plain values, or dataclasses of them.
        after : list of Stage
            The stages whose files it reads.
        covers : list of str, optional
            What each task covers, for messages. By default, the slice among its arguments, else its part of the stage.
        on_device : bool
            Whether tasks should run where a GPU is, if there are any; the others compute on the CPU.
        """
        shared = self.shared if on_device else self.shared.without_device()
        before = [stage.digest for stage in after]
        digests = [_digest([self.identity, name, number, plain(each), before]) for number, each in enumerate(arguments)]
        for number, each in enumerate(arguments):
            call = shared, name, number, digests[number], function, each
            known = (one.covers for one in each if isinstance(one, Slice)) if covers is None else iter([covers[number]])
            covered = next(known, f"part {number + 1} of {len(arguments)}")
            self._tasks[name, number] = Task(name, number, perform, call, covered, on_device)
        records = [self._found(name, number, digest) for number, digest in enumerate(digests)]
        self.resumed += sum(record is not None for record in records)
        self._do([self._tasks[name, number] for number, found in enumerate(records) if found is None], records)
        self._done += len(records)
        return Stage(name, [record for record in records if record is not None])

    @contextlib.contextmanager
    def told_as(self, label: str) -> Iterator[None]:
        """Tell the time and the progress of the stages in the block together, under a name of `STAGES`."""
        self._label, self._done = label, 0
        with self.clock.stage(label):
            yield

    def _do(self, tasks: list[Task], records: list[Record | None]) -> None:
        """Run tasks; where one finds a file damaged, that file is made again first."""
        repairs: dict[str, int] = {}
        while tasks:
            done = set()
            try:
                for task, record in self.workers.run(tasks):
                    records[task.number] = record
                    done.add(task.number)
                    self._still_claimed()
                    number = sum(each is not None for each in records)
                    self.clock.report(self._label, self._done + number, self._done + len(records))
                return
            except DamagedExchangeError as error:
                self._repair(error, repairs)
            tasks = [task for task in tasks if task.number not in done]

    def _repair(self, error: DamagedExchangeError, repairs: dict[str, int]) -> None:
        """Do the task again that wrote a damaged file, but not for ever."""
        repairs[error.name] = repairs.get(error.name, 0) + 1
        task = self._tasks.get(producer_of(error.name))
        if task is None or repairs[error.name] > ATTEMPTS:
            raise DamagedError(
                f"{self.place}: {error.name} is damaged however often it is made; check the disk, or name another "
                "work_dir"
            ) from error
        log.warning("%s: is missing or damaged; its task is done again", error.name)
        self.place.remove(_record_name(task.stage, task.number))
        self._do([task], [None] * (task.number + 1))

    def repairing(self, read: Callable[[], Result]) -> Result:
        """Return what `read` returns, which reads files of tasks. Damaged files are made again first."""
        repairs: dict[str, int] = {}
        while True:
            try:
                return read()
            except DamagedExchangeError as error:
                self._repair(error, repairs)

    def remove(self) -> None:
        """Remove the files of all stages, and nothing else from the work folder."""
        for stage in dict.fromkeys(stage for stage, _ in self._tasks):
            self.place.clear(stage, FILES)

    def _found(self, stage: str, number: int, digest: str) -> Record | None:
        """The record of a task that is done already."""
        name = _record_name(stage, number)
        try:
            if not self.place.exists(name):
                return None
            record = Record.from_json(self.place.read_text(name))
            return record if record.digest == digest and self._is_whole(record) else None
        except (NeardupError, OSError, AttributeError, KeyError, TypeError, ValueError):
            return None

    def _is_whole(self, record: Record) -> bool:
        """Whether all files of a task are there and, as far as sizes and ends show, as they were written."""
        return all(sealed(self.place, name) == seal for name, seal in record.files.items()) and all(
            Path(self.shared.result, name).stat().st_size == size for name, size in record.result.items()
        )


def _record_name(stage: str, number: int) -> str:
    return f"{stage}/{number:06}.json"


def plain(value: Any) -> Any:
    """A value as JSON holds it, for digests and for records."""
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if isinstance(value, pa.DataType):
        return plain(pa.schema([("", value)]))
    if isinstance(value, pa.Schema):
        return base64.b64encode(value.serialize()).decode()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
