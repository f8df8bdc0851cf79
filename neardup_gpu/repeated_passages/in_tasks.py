"""A search for repeated passages as a job of tasks.

read     of a slice: the tokens of its documents, and what else is known of them; the rows that were skipped
seeds    of a slice: the seeds of its windows, by partitions of their hashes
repeat   of a partition: the seeds whose hash occurs twice
survive  of a slice: the tokens of all windows that chose such a seed
locate   of a slice: the bytes of tokens in repeated windows
write    of a slice: its part of kept/, if there is one

By theorem 1, each repeated window chooses a seed whose hash occurs twice. So the driver holds the tokens of such
windows alone, and searches in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cpu import held
from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels.repeats import seeds as find_seeds

from ..contamination.cutting import united
from ..data import Ragged, arrow, look_up, numpy_of, one_array, ranges
from ..documents.edits import Cuts, Edits
from ..documents.slices import Extent, Slice
from ..engine.arrays import apart
from ..records import dataclass
from ..store.exchange import read_arrays
from ..tasks.begin import hand_on
from ..tasks.columns import load, partition_of, save, tables_of
from ..tasks.driver import extent_in, how_written
from ..tasks.results import Written, write_kept_rows
from ..tasks.running import move_files
from ..tasks.work import Files, Stage, file_name
from .corpora_in_tasks import TOKENS, CorporaInTasks, load_corpus, reader_of
from .corpus import Stretches, TokenCorpus
from .places import Placed, PlacedTokens, TokenPieces, offset_type, place_again

PIECES, EDITS = "pieces", "edits"
"""The folders of the files that the driver hands on: the tokens to place, and what becomes of rows."""

SEEDS = pa.schema([("hash", pa.uint64()), ("seed", pa.int64())])
REPEATED = pa.schema([("seed", pa.int64())])
WINDOWS = pa.schema([("first", pa.int64()), ("windows", pa.int64())])
RUNS = pa.schema([("first", pa.int64()), ("size", pa.int64())])
PLACES = pa.schema([("begin", pa.int64()), ("end", pa.int64()), ("marks", pa.uint8())])
SIZES = pa.schema([("size", pa.int64())])


@dataclass(eq=False)
class SubstringsInTasks(CorporaInTasks):
    """The reading of documents, the placing of tokens, and the writing of kept/, by tasks.

    Parameters
    ----------
    length : int
        The tokens of a window.
    cut : str
        That of `SubstringSettings`.

    Attributes
    ----------
    reading : Stage
        The stage that read the slices, after `corpora`.
    """

    length: int = 0
    cut: str = "token"
    reading: Stage = field(init=False)

    def prepare(self, reading: Stage) -> None:
        """Find the tokens that the driver searches in."""
        self.reading, work, number = reading, self.job.work, len(self.job.slices)
        covers = [slice.covers for slice in self.job.slices]
        seeded = work.stage("seeds", seeds, [(self.length,)] * number, after=[reading], covers=covers)
        given = [(seeded.names("seeds"),)] * len(self.job.partitions)
        repeated = work.stage("repeat", repeat, given, after=[seeded])
        work.stage("survive", survive, [(self.length,)] * number, after=[reading, seeded, repeated], covers=covers)

    def load(self, number: int, facts: dict[str, Any]) -> TokenCorpus:
        """Return the documents of a slice, with the tokens of windows that may repeat."""
        place = self.job.work.place
        corpus = load_corpus(place, number, facts, with_tokens=False)
        runs = load(place, file_name("survive", number, "runs"), RUNS)
        tokens = held(load(place, file_name("survive", number, "tokens"), TOKENS)["token"])
        first, size, whole = runs["first"], runs["size"], corpus.tokens.offsets
        owner = np.searchsorted(whole, first, side="right") - 1
        sizes = np.bincount(owner, size, len(whole) - 1).astype(np.int64)
        return corpus._replace(
            tokens=Ragged._trusted(tokens, np.append(0, np.cumsum(sizes))),
            bars=np.cumsum(size) - size,
            stretches=Stretches(corpus.tokens.sizes, first - whole[owner]),
        )

    def place(self, number: int, pieces: TokenPieces, sizes: np.ndarray) -> Iterator[PlacedTokens]:
        """Place the tokens of an input's pieces; see `place_again`."""
        job, work = self.job, self.job.work
        mine = self.slices_of(number)
        bounds = np.cumsum([0, *(self.lengths[each] for each in mine)])
        cuts = np.searchsorted(pieces.documents, bounds).tolist()
        parts: list[list[pa.Table]] = [[] for _ in job.slices]
        for each, begin, end, low, high in zip(mine, bounds, bounds[1:], cuts, cuts[1:], strict=False):
            some = pieces.some(slice(low, high))
            some = some._replace(documents=some.documents - begin)
            table = pa.table({name: arrow(array) for name, array in some._asdict().items()})
            parts[each] = [table, pa.table({"size": arrow(sizes[begin:end])})]
        digest = hand_on(work, PIECES, number, parts)
        calls: list[Any] = [(job.slices[each], number, each, digest, self.cut) for each in mine]
        with work.told_as("locate"):
            stage = work.stage(f"locate-{number}", locate, calls)
            names = zip(stage.names("places"), stage.names("sizes"), strict=True)
            for places, counts in names:
                yield work.repairing(partial(self._placed, places, counts))

    def _placed(self, places: str, sizes: str) -> PlacedTokens:
        """Return the places of the tokens of a slice."""
        found = load(self.job.work.place, places, PLACES)
        size = load(self.job.work.place, sizes, SIZES)["size"]
        begins, ends = (found[name].astype(offset_type(size)) for name in ("begin", "end"))
        return PlacedTokens(begins, ends, size, found["marks"])

    def write(self, edits: Edits, folder: Path) -> None:
        """Write kept/ into the folder of the result."""
        job, work, mine = self.job, self.job.work, self.slices_of(-1)
        bounds = np.cumsum([0, *(self.lengths[each] for each in mine)]).tolist()
        parts = []
        for begin, end in zip(bounds, bounds[1:], strict=False):
            some = edits.of(begin, end)
            tables = [pa.table({"keep": arrow(some.keep.view(np.uint8))})]
            if some.cuts is not None:
                tables.append(pa.table({"number": arrow(np.diff(some.cuts.offsets))}))
                tables.append(pa.table({"begin": arrow(some.cuts.begins), "end": arrow(some.cuts.ends)}))
            if some.columns:
                tables.append(pa.table(some.columns))
            parts.append(tables)
        with work.told_as("write"):
            digest = hand_on(work, EDITS, 0, parts)
            extents = [extent_in(facts) for facts in self.reading.facts[mine.start :]]
            given = zip([job.slices[each] for each in mine], extents, how_written(job, extents), strict=True)
            calls: list[Any] = [(*each, edits.marks, digest) for each in given]
            written = work.stage("write", write, calls)
        move_files([written], Path(work.shared.result), folder)


def seeds(files: Files, length: int) -> dict[str, Any]:
    """Save the seeds of a slice, and spread their hashes. Memory: its tokens, and 24 bytes per seed."""
    corpus = load_corpus(files.place, files.number, {"categories": {}, "counts": {}})
    if corpus.words is not None:
        apart(corpus.tokens, corpus.words)
    tokens, rows = corpus.tokens, np.unique(np.concatenate([corpus.tokens.offsets, corpus.bars]))
    first, hashes, windows = find_seeds(tokens.values, rows, length, max(1, length // 2))
    partitions = files.shared.partitions
    with files.exchange("seeds", SEEDS, partitions) as out:
        out.add(partition_of(mix64_all(hashes), partitions), {"hash": hashes, "seed": np.arange(len(first))})
    save(files, "windows", {"first": first, "windows": windows})
    return {}


def repeat(files: Files, names: list[str]) -> dict[str, Any]:
    """Return to each slice its seeds whose hash occurs twice in a partition. Memory: 24 bytes per seed."""
    every = np.sort(read_arrays(files.place, names, files.number, SEEDS)["hash"])
    several = np.unique(every[1:][every[1:] == every[:-1]])
    with files.exchange("repeated", REPEATED, len(names)) as out:
        for number, name in enumerate(names):
            found = read_arrays(files.place, [name], files.number, SEEDS)
            out.add_to(number, {"seed": found["seed"][look_up(several, found["hash"])[1]]})
    return {}


def survive(files: Files, length: int) -> dict[str, Any]:
    """Save the tokens of the windows of a slice that chose repeated seeds, and the places of their runs."""
    place, number = files.place, files.number
    names = [file_name("repeat", part, "repeated") for part in range(files.shared.partitions)]
    chosen = np.sort(read_arrays(place, names, number, REPEATED)["seed"])
    windows = load(place, file_name("seeds", number, "windows"), WINDOWS)
    corpus = load_corpus(place, number, {"categories": {}, "counts": {}})
    rows = np.unique(np.concatenate([corpus.tokens.offsets, corpus.bars]))
    first = windows["first"][chosen]
    owner = np.searchsorted(rows, first, side="right") - 1
    _, first, last = united(owner, first, first + windows["windows"][chosen] + length - 1)
    save(files, "runs", {"first": first, "size": last - first})
    save(files, "tokens", {"token": corpus.tokens.values[ranges(first, last - first)]})
    return {}


def locate(files: Files, slice: Slice, number: int, partition: int, digest: str, cut: str) -> dict[str, Any]:
    """Place the tokens of a slice's pieces. Memory: a batch, and 17 bytes per token.

    Parameters
    ----------
    slice : Slice
    number : int
        The input.
    partition : int
        The number of the slice.
    digest : str
        A checksum of all pieces.
    cut : str
        That of `SubstringSettings`.
    """
    table, sizes = tables_of(files.place, [file_name(PIECES, number, PIECES)], partition)
    pieces = TokenPieces(*(numpy_of(table[name]) for name in TokenPieces._fields))
    with files.shared.start() as runtime:
        given = slice.open(), pieces, numpy_of(sizes["size"]), reader_of(files, runtime), cut
        placed = Placed.of(pieces, place_again(*given))
    places = {"begin": placed.begins.astype(np.int64), "end": placed.ends.astype(np.int64)}
    save(files, "places", {**places, "marks": placed.marks})
    save(files, "sizes", {"size": placed.text})
    return {}


def write(files: Files, slice: Slice, extent: Extent, how: Written, marks: str | None, digest: str) -> dict[str, Any]:
    """Write the kept rows of a slice."""
    keep, *others = tables_of(files.place, [file_name(EDITS, 0, EDITS)], files.number)
    cuts, columns = None, {}
    if others and "number" in others[0].column_names:
        number, spans, *others = others
        offsets = np.append(0, np.cumsum(numpy_of(number["number"])))
        cuts = Cuts(offsets, numpy_of(spans["begin"]), numpy_of(spans["end"]))
    for table in others:
        columns = {name: one_array(table[name]) for name in table.column_names}
    edits = Edits(numpy_of(keep["keep"]).astype(bool), cuts, marks, columns)
    return {"files": write_kept_rows(files, slice, extent, edits, how)}
