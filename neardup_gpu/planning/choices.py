"""A plan: how a job is divided so that blocks of files are not small, and its description."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from neardup_gpu.kernels._cached import cached_property

from .. import checks
from ..errors import ParameterError
from ..methods import MethodName
from ..methods.contract import Sketch
from ..recipe import Recipe
from ..records import dataclass
from ..report import count, duration, size
from ..tasks.cutting import usual_partitions
from ..tasks.sizes import Counts, Exchange, Shape
from .costs import StageCost, load_rates, measured_as, memory_of, of_units, stage_names, stages, undivided
from .counts import expected
from .files import exchanges, shape_of
from .settings import Machines, Workload

COMPARED: tuple[MethodName, ...] = ("exact", "minhash")
"""The methods that are compared with the planned one; their rates were measured."""

SMALL_BLOCK = 100_000
"""Bytes of a file's partition below which reading it costs more than its bytes."""

FEW_BLOCKS = 1000
"""Blocks for each core that do no harm, whatever their size."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job as it is planned.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    slice_bytes : int
    stages : list of StageCost
    exchanged_by : list of Exchange
    notes : list of str
        What was chosen, and what may go wrong.
    """

    counts: Counts
    shape: Shape
    slice_bytes: int
    stages: list[StageCost]
    exchanged_by: list[Exchange]
    notes: list[str]

    @cached_property
    def totals(self) -> dict[str, float]:
        """Sums over all stages, and the memory of the largest task."""
        names = ("tasks", "core_seconds", "read", "exchanged", "written", "files", "seconds")
        sums = {name: sum(getattr(each, name) for each in self.stages) for name in names}
        return {**sums, "memory": max(each.memory for each in self.stages)}

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; bytes and seconds."""
        exchanged = []
        for each in self.exchanged_by:
            sizes = {"block_bytes": round(each.block_bytes), "overhead_at_most": each.overhead(self.shape.task_memory)}
            exchanged.append({**each._asdict(), **sizes})
        return {
            "method": self.shape.method,
            "slices": self.shape.slices,
            "slice_bytes": self.slice_bytes,
            "partitions": self.shape.partitions,
            "task_memory": self.shape.task_memory,
            "spool": self.shape.spool,
            "counts": asdict(self.counts),
            "stages": [each._asdict() for each in self.stages],
            "exchanged": exchanged,
            "totals": self.totals,
            "notes": self.notes,
        }


def plan(
    work: Workload,
    recipe: Recipe | None = None,
    *,
    machines: Machines | None = None,
    slice_bytes: int | None = None,
    partitions: int | None = None,
    task_memory: int = 2 * 10**9,
    spool: bool = False,
    rates: dict[str, Any] | None = None,
) -> Plan:
    """Plan a job of tasks.

    Parameters
    ----------
    work : Workload
    recipe : Recipe, default None
        As for `dedup`. Weights by document frequencies are not planned, because their counting is not.
    machines : Machines, optional
    slice_bytes : int, optional
        Text of a slice. Unless given it is 1 GB, or more where blocks of files would be small.
    partitions : int, optional
        Unless given as a job has them, or fewer where blocks would be small.
    task_memory : int, default 2 GB
    spool : bool, default False
    rates : dict, optional
        Those of this package unless given.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> made = plan(Workload(documents=1e6, text_bytes=10**9), Recipe(method="minhash"))
    >>> [each.payload // each.rows for each in made.exchanged_by if each.what in ("entries", "hashes")]
    [24, 14]
    """
    checks.optional(checks.integer, "slice_bytes", slice_bytes, 1)
    checks.optional(checks.integer, "partitions", partitions, 1, 1 << 16)
    checks.integer("task_memory", task_memory, 16 << 20)
    checks.flag("spool", spool)
    machines = Machines() if machines is None else machines
    recipe = Recipe() if recipe is None else checks.instance("recipe", recipe, Recipe)
    if recipe.unit.divides != (work.units is not None):
        if work.units is None:
            raise ParameterError(f"units must be given for unit '{recipe.unit}': the number of parts of all documents")
        raise ParameterError(f"units {work.units:,.0f}: documents are not divided; give a unit such as line as well")
    if recipe.ignore_common is not None:
        raise ParameterError("ignore_common: how shingles are counted is not planned; leave it out")
    if recipe.method.needs_statistics:
        raise ParameterError(
            "weighting 'tfidf': how document frequencies are counted is not planned; plan weighting 'tf', which "
            "exchanges about the same"
        )
    if work.check and not recipe.verifies:
        raise ParameterError(
            f"check {work.check}: by {recipe.method.name} nothing is verified without a threshold; give one, or leave "
            "check out"
        )
    cores = machines.nodes * machines.cores
    given = slice_bytes is not None, partitions is not None
    usual_bytes = slice_bytes or 10**9
    slices, known = -(-work.text_bytes // usual_bytes), -(-work.against_bytes // usual_bytes)
    for number, documents, text in (
        (slices, work.documents, work.text_bytes),
        (known, work.against_documents, work.against_bytes),
    ):
        if number > documents:
            each = text / documents
            raise ParameterError(f"slice_bytes {usual_bytes}: a document has {each:,.0f} bytes of text; give more")
    slices += known
    shape = shape_of(
        recipe,
        int(work.compared[1] - work.copies * work.compared[0]),
        slices=slices,
        partitions=min(1 << 16, partitions or usual_partitions(slices, work.all_bytes, cores)),
        task_memory=task_memory,
        spool=spool,
        known=known,
        checked=work.check > 0,
    )
    least = 0.8 if recipe.threshold is None else recipe.threshold
    first = shape
    while (small := small_blocks(expected(work, shape, least), shape, cores)) is not None:
        smaller = _fewer(work, shape, least, small, cores, given)
        if smaller is None:
            break
        shape = smaller
    counts = expected(work, shape, least)
    found = stages(counts, shape, machines, load_rates() if rates is None else rates)
    used = -(-work.all_bytes // shape.slices) if shape.slices != slices else usual_bytes
    notes = [
        *_borrowed(recipe),
        *_chosen(first, shape, used, usual_bytes),
        *_warnings(counts, shape, small, found, machines),
    ]
    return Plan(
        counts=counts,
        shape=shape,
        slice_bytes=used,
        stages=found,
        exchanged_by=exchanges(counts, shape),
        notes=notes,
    )


def small_blocks(counts: Counts, shape: Shape, cores: int) -> Exchange | None:
    """The files with the smallest blocks, if these are small, many, and hold a hundredth of all bytes; None if not.

    Parameters
    ----------
    counts : Counts
    shape : Shape
    cores : int
        Of all machines.
    """
    made = exchanges(counts, shape)
    total = sum(each.payload for each in made)
    small = [
        each
        for each in made
        if each.block_bytes < SMALL_BLOCK
        and each.files * each.partitions > FEW_BLOCKS * cores
        and 100 * each.payload >= total
    ]
    return min(small, key=lambda each: each.block_bytes, default=None)


def _fewer(
    work: Workload, shape: Shape, threshold: float, small: Exchange, cores: int, given: tuple[bool, bool]
) -> Shape | None:
    """The same job with fewer slices or partitions, by the larger number of both; None if neither can be."""
    slices, partitions = (max(cores, 2, -(-number * 4 // 5)) for number in (shape.slices, shape.partitions))
    by_memory = small.stage == "keys" and shape.partitions <= small.partitions * 4 // 5
    choices = []
    if not given[0] and slices < shape.slices:
        known = -(-shape.known * slices // shape.slices)
        choices.append((shape.slices, replace(shape, slices=slices, known=known)))
    if not given[1] and not by_memory and partitions < shape.partitions:
        choices.append((shape.partitions, replace(shape, partitions=partitions)))
    most = max(shape.task_memory, _largest(work, shape, threshold))
    fits = [each for each in choices if _largest(work, each[1], threshold) <= most]
    return max(fits, key=lambda each: each[0], default=(0, None))[1]


def _largest(work: Workload, shape: Shape, threshold: float) -> float:
    """Return the memory of the largest task, without what no division of the job makes smaller."""
    counts = expected(work, shape, threshold)
    fixed = undivided(counts)
    return max(memory_of(name, counts, shape) - fixed.get(name, 0) for name in stage_names(shape))


def _borrowed(recipe: Recipe) -> list[str]:
    """Rates that were measured of another method."""
    name, rates = recipe.method.name, load_rates()
    measured = measured_as(name, isinstance(recipe.method, Sketch), rates)
    if measured != name:
        return [f"rates: those of {measured}, as those of {name} were not measured; times tell little"]
    if recipe.unit.divides and of_units(measured, True, recipe.only_equal, rates) == measured:
        return [f"rates: those of whole documents, as those of parts by {name} were not measured; times tell little"]
    return []


def _chosen(first: Shape, shape: Shape, used: int, usual: int) -> list[str]:
    """The choices that differ from the usual ones."""
    said = []
    if shape.slices != first.slices:
        said.append(f"slices of {size(used)} in place of {size(usual)}: {shape.slices:,} in place of {first.slices:,}")
    if shape.partitions != first.partitions:
        said.append(f"{count(shape.partitions, 'partition')} in place of {first.partitions:,}")
    return [f"chosen for larger blocks: {', and '.join(said)}"] if said else []


def _warnings(
    counts: Counts, shape: Shape, small: Exchange | None, found: list[StageCost], machines: Machines
) -> list[str]:
    """Warnings of problems that may come."""
    said = []
    if small is not None:
        blocks = count(small.files * small.partitions, "block")
        advice = "larger slices, fewer partitions"
        if shape.tables and small.stage in ("keys", "collide"):  # what fits a task divides tables, too
            advice += f" or a larger task_memory than {size(shape.task_memory)}"
        said.append(
            f"small blocks: {small.stage} writes {blocks} of {size(small.block_bytes)}, below {size(SMALL_BLOCK)}; "
            f"give {advice}"
        )
    worst = max(found, key=lambda each: each.memory)
    if worst.memory > shape.task_memory:
        divisible = undivided(counts).get(worst.name, 0) < shape.task_memory
        said.append(
            f"memory: a task of {worst.name} takes about {size(worst.memory)}, more than {size(shape.task_memory)}; "
            f"give {'more partitions, smaller slices or ' if divisible else ''}a larger task_memory"
        )
    cores = machines.nodes * machines.cores
    opening = sum(each.opens * machines.open_seconds / min(each.tasks, cores) for each in found)
    if 2 * opening > (seconds := sum(each.seconds for each in found)):
        opens = sum(each.opens for each in found)
        said.append(
            f"opening: files are opened {opens:,.0f} times, which takes {duration(opening)} of {duration(seconds)}; "
            "give larger slices or fewer partitions"
        )
    return said
