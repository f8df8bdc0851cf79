"""The passages that texts share with documents of an index: `shared_passages`, among documents that may share one.

The index keeps the lower half of each token's fingerprint. All of them are searched for the windows of the queries:
runs of `length` tokens, or of 64 if `length` is larger. Each document that shares a run with a query has such a window.
These documents are then compared with the queries, by their texts. No other document has a window of a query, so a
window is common in the index if and only if it is common among these documents.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import common_runs, repeats

from ..data import Ragged, arrow, ranges
from ..documents import open_documents
from ..documents.reading_options import Reading
from ..documents.seams import find_seams
from ..documents.sources import Sources
from ..documents.stream import Documents
from ..engine.choice import kernel, to_host
from ..engine.clock import Clock
from ..engine.pieces import runs_within
from ..errors import InputError
from ..recipe import token_recipe
from ..records import dataclass
from ..repeated_passages.corpus import CorpusColumns, TokenCorpus, TokenReader, read_corpus
from ..shared_passages.placing import ReadHere
from ..shared_passages.result import SharedText
from ..shared_passages.search import PassageSearch
from ..shared_passages.settings import PassageSettings
from .columns import Types, as_given, cast_column, kept_of, of_documents, types_of
from .manifest import Manifest
from .opened import Opened
from .segments import Segment
from .sketches import lower_halves
from .snapshot import Snapshot, on_host

AT_ONCE = 1 << 22
"""Tokens of the index that are searched at once, unless one document has more."""

LONGEST = 64
"""The most tokens of a window that documents are searched for."""

ID, TEXT = "\x00id", "\x00text"
"""Names of columns that no column of the index has."""


def shared_passages(opened: Opened, documents: Documents, settings: PassageSettings) -> SharedText:
    """Return the passages that documents share with those of an index; see `Index.passages`."""
    kept = opened.manifest.column_types
    columns = CorpusColumns(() if settings.date is None else (settings.date,), tuple(settings.within))
    if not documents.rewindable:
        raise InputError("the texts are a stream and passages are placed by a second reading; pass a table or files")
    types = types_of(documents, kept_of(dict.fromkeys(columns.names), kept, "within and date"))
    find_seams(documents)
    with opened.running() as runtime:
        manifest, snapshot = opened.snapshot(runtime)
        clock = Clock(None)
        recipe, sources = token_recipe(settings.tokens, settings.length), Sources(documents)
        reader = TokenReader.of(recipe, opened.engine, runtime, clock)
        read = _ReadInIndex(sources, [columns], reader, manifest, snapshot, types, settings.length)
        found = PassageSearch(sources, settings, None, read, runtime.backend, clock).run()
    assert found.sources is not None
    found.report["sources"] = {"index": str(opened.folder)}
    found.report["counts"]["longest_source"] = read.longest
    found.report["timings"], found.report["seconds"] = clock.seconds, clock.elapsed
    return replace(found, sources=found.sources.filter(pc.greater(found.sources["takers"], 0)))


@dataclass(eq=False)
class _ReadInIndex(ReadHere):
    """The reading of queries, and of the documents of an index that may share a passage.

    After `corpora`, these documents are the reference set of `sources`.

    Parameters
    ----------
    manifest : Manifest
    snapshot : Snapshot
    types : dict of str to pyarrow.DataType
        The columns of the index that are read.
    length : int

    Attributes
    ----------
    longest : int
        The tokens of the longest document of the index, after `corpora`.
    """

    manifest: Manifest
    snapshot: Snapshot
    types: Types
    length: int
    longest: int = 0

    def corpora(self) -> list[TokenCorpus]:
        """Read all queries, and the documents that may share a passage with one."""
        (read,), documents = self.columns, self.sources.documents
        own = read_corpus(documents, read, self.reader, 1)
        columns = {name: cast_column(name, column, self.types[name]) for name, column in own.columns.items()}
        own = own._replace(columns=columns)
        backend = on_host(self.reader.runtime.backend)
        wanted = wanted_windows(own.tokens, min(self.length, LONGEST), backend)
        counts, rows = dict.fromkeys(("documents", "tokens", "text_bytes"), 0), []
        with self.reader.clock.stage("search"):
            for segment in self.snapshot.segments:
                live = segment.live_documents != 0
                sizes = {name: np.diff(segment[f"{name}_offsets"])[live] for name in ("word", "text")}
                counts["documents"] += int(live.sum())
                counts["tokens"] += int(sizes["word"].sum())
                counts["text_bytes"] += int(sizes["text"].sum())
                self.longest = max(self.longest, int(sizes["word"].max(initial=0)))
                rows.append(np.flatnonzero(live & having(segment, wanted, backend)))
            found = self._documents(rows)
        self.sources = Sources(documents, found)
        categories = {name: order for name, order in self.manifest.categories.items() if name in read.order}
        return [read_corpus(found, read, self.reader, 0)._replace(counts=counts, categories=categories), own]

    def _documents(self, rows: list[np.ndarray]) -> Documents:
        """Return documents of the index, given by their rows in each segment, as they were read."""
        kind, texts = self.manifest.id_type, list[pa.Array]()
        ids = [pa.nulls(0, kind)]
        for segment, some in zip(self.snapshot.segments, rows, strict=True):
            ids.append(as_given(segment.ids.arrow(some), kind))
            offsets, values = segment["text_offsets"], segment["text_values"]
            sizes = offsets[some + 1] - offsets[some]
            bounds = arrow(np.append(0, np.cumsum(sizes)))
            own = pa.py_buffer(values[ranges(offsets[some], sizes)])
            texts.append(pa.Array.from_buffers(pa.large_binary(), len(some), [None, bounds.buffers()[1], own]))
        number = np.repeat(np.arange(len(rows)), [len(some) for some in rows])
        place = np.concatenate([np.empty(0, np.int64), *rows])
        columns = {ID: pa.chunked_array(ids), TEXT: pa.chunked_array(texts, pa.large_binary())}
        if self.types:
            kept = of_documents(self.snapshot, number, place, self.types)
            columns |= {name: kept[name] for name in self.types}
        table = pa.table(columns)
        reading = Reading(id_column=ID, text_columns=(TEXT,))
        return open_documents(table, reading=reading, other_columns=list(self.types))


def wanted_windows(tokens: Ragged, width: int, backend: str) -> common_runs.Listed:
    """List each distinct window of the lower halves of tokens once, as `common_runs` takes it."""
    values = lower_halves(tokens.values).astype(np.uint64)
    begins = np.ones(len(values), bool)
    for i in range(1, width):
        last = tokens.offsets[1:] - i
        begins[last[last >= tokens.offsets[:-1]]] = False
    stretches = kernel(repeats, backend)(values, tokens.offsets, width, max(1, width // 2))
    places, classes = map(to_host, repeats.windows_of(stretches))
    is_first = np.diff(np.maximum.accumulate(classes), prepend=-1) > 0  # classes are numbered by their first windows
    begins[places[~is_first]] = False
    changes = np.diff(begins.astype(np.int8), prepend=0, append=0)
    first = np.flatnonzero(changes == 1)
    sizes = np.flatnonzero(changes == -1) - first + width - 1
    offsets = np.append(0, np.cumsum(sizes))
    return common_runs.prepare(values[ranges(first, sizes)], offsets, np.full(len(sizes), width))


def having(segment: Segment, wanted: common_runs.Listed, backend: str) -> np.ndarray:
    """Return which documents of a segment have a window, dead ones too."""
    values, offsets = segment["word_values"], segment["word_offsets"]
    found = np.zeros(segment.num_documents, bool)
    for first, last in runs_within(offsets, AT_ONCE):
        begin, end = offsets[[first, last]].tolist()
        some = values[begin:end].astype(np.uint64), offsets[first : last + 1] - begin
        places = to_host(kernel(common_runs, backend)(*some, wanted)[0])
        found[first + np.searchsorted(some[1], places, side="right") - 1] = True
    return found
