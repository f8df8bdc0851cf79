"""Adding documents: sketched batch by batch, committed some at a time, decided of as they come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..definitions import METADATA_KEY
from ..documents.skipped import SCHEMA as SKIPPED_COLUMNS
from ..errors import InputError
from ..log import log
from ..report import count
from ..sketch_jobs import skipped_path
from ..sketching import num_skipped, text_of
from ..store.artefacts import BY_ITSELF
from .columns import as_bytes, id_type_of, types_of
from .inputs import inputs_of, rows_done, with_progress
from .merging import Merges
from .opened import Opened
from .sketches import Sketched, joined, sketched
from .snapshot import Snapshot, on_host
from .writer import Death, Decided, Writer, buried, checked_ids, ids_there, kind_of, segment_of, table_of

if TYPE_CHECKING:
    from ..engine.clock import Clock
    from ..engine.contract import Runtime

COMMIT_SHINGLES = 1 << 25
"""Shingles of documents that wait for a commit, at most about: 256 MB."""


class Added(NamedTuple):
    """What `Index.add` did.

    Parameters
    ----------
    documents : int
        Documents that were added.
    kept : int
        Those of them that are kept.
    removed : int
        The others: copies, and near-duplicates of what is kept.
    replaced : int
        Documents that they took the place of.
    already : int
        Documents of the same files that were there already, and were not added again.
    skipped : int
        Rows that cannot be read and were left out; the log says the first of each input, and with `output` they are
        listed in a file beside it.

    Examples
    --------
    >>> Added(documents=3, kept=2, removed=1, replaced=0, already=0, skipped=0).kept
    2
    """

    documents: int
    kept: int
    removed: int
    replaced: int
    already: int
    skipped: int


def _repeated(id: pa.Scalar) -> InputError:
    return InputError(f"id {id.as_py()!r} stands for several documents; ids name one each")


class Adding:
    """One call of `Index.add`."""

    def __init__(
        self,
        opened: Opened,
        writer: Writer,
        runtime: Runtime,
        clock: Clock,
        commit_every: int,
        replace: bool,
        output: Path | None,
    ) -> None:
        self._opened, self._writer, self._runtime, self._clock = opened, writer, runtime, clock
        self._commit_every, self._replace, self._output = commit_every, replace, output
        self._tables: list[pa.Table] = []
        self._skipped: list[pa.Table] = []
        self._input_begins = 0  # the sequence number of the first document of the input that is being added
        self.counts = Added(0, 0, 0, 0, 0, 0)

    def add(self, source: Any, reading: dict[str, Any]) -> None:
        """Add all inputs, one after another."""
        anything, clock = False, self._clock
        beside = self._opened.engine.threads != 1
        reading = {**reading, "other_columns": list(self._writer.manifest.columns)}
        with clock.turns(), Merges(self._writer, self._take_merged, beside) as self._merges:
            for documents, files in inputs_of(source, reading, self._look):
                done, whole = rows_done(self._writer.manifest, files)
                if whole:
                    self.counts = self.counts._replace(already=self.counts.already + done)
                    anything = True
                    continue
                documents.check_ids_early("input")
                anything |= self._add(documents, files, done)
            if not anything:
                raise InputError("the input holds no documents; nothing was added")
            with clock.stage("merge"):
                self._merges.finish()
        self._say_outgrown()

    def _take_merged(self) -> None:
        self._opened.committed(self._writer)

    def _look(self, documents: Any) -> None:
        """Find out the types of the columns that the index keeps, before anything is added."""
        self._types = types_of(documents, self._writer.manifest.column_types)

    def _say_outgrown(self) -> None:
        expected, entries = self._writer.manifest.keeps.expected, self._writer.manifest.entries
        if expected is not None and entries > expected:
            log.warning(
                "%s in tables for %s: they miss nothing, and answer more slowly; expect more when an index is made",
                count(entries, "entry"),
                f"{expected:,}",
            )

    def _add(self, documents: Any, files: list[list[Any]] | None, done: int) -> bool:
        """Add an input of which the first `done` rows are there already; returns whether it has any."""
        self.counts = self.counts._replace(already=self.counts.already + done)
        self._input_begins = self._writer.manifest.next_sequence
        numbered = documents.id_column is None and documents.format != "text"
        ids: list[pa.Array] = []
        sketches: list[Sketched] = []
        columns: list[dict[str, pa.Array]] = []
        waiting, skip, rows = 0, done, done
        for batch in documents.batches(list(self._types)):
            start = min(skip, batch.num_rows)
            skip -= start
            while start < batch.num_rows:
                stop = min(batch.num_rows, start + self._commit_every - waiting)
                with self._clock.stage("sketch"):
                    text, keeps = text_of(batch.text, start, stop), self._writer.manifest.keeps
                    part = sketched(text, self._opened.recipe, keeps, self._runtime)
                    total = documents.num_rows
                    self._clock.report("sketch", stop - start, None if total is None else total - rows - waiting)
                ids.append(batch.ids[start:stop])
                sketches.append(part)
                columns.append({name: values[start:stop] for name, values in batch.columns.items()})
                waiting += stop - start
                start = stop
                if waiting == self._commit_every or sum(len(p.sets.values) for p in sketches) > COMMIT_SHINGLES:
                    rows += waiting
                    self._commit(ids, sketches, columns, numbered, files, rows, False)
                    ids, sketches, columns, waiting = [], [], [], 0
        rows += waiting
        if waiting or files is not None:
            self._commit(ids, sketches, columns, numbered, files, rows, True)
        self._note_skipped(documents.skipped)
        return rows > 0

    def _note_skipped(self, skipped: pa.Table | None) -> None:
        if skipped is None or not len(skipped):
            return
        self._skipped.append(skipped)
        number, first = num_skipped(skipped), skipped.slice(0, 1).to_pylist()[0]
        self.counts = self.counts._replace(skipped=self.counts.skipped + number)
        where = first["file"] if first["row"] is None else f"{first['file']}, row {first['row']}"
        listed = "" if self._output is None else f" ({skipped_path(self._output)} lists them)"
        log.warning("%s left out%s, the first in %s: %s", count(number, "row"), listed, where, first["reason"])

    def _commit(
        self,
        ids: list[pa.Array],
        sketches: list[Sketched],
        columns: list[dict[str, pa.Array]],
        numbered: bool,
        files: list[list[Any]] | None,
        rows: int,
        whole: bool,
    ) -> None:
        """Commit some documents, and how far their input has got."""
        writer, recipe, runtime = self._writer, self._opened.recipe, self._runtime
        manifest = writer.manifest
        inputs = with_progress(manifest, files, rows, whole)
        if not ids:
            writer.change(inputs=inputs)
            self._opened.committed(writer)
            return
        with self._clock.stage("collide"):
            part = joined(sketches)
            first = manifest.next_sequence
            if numbered:
                names = pa.array(np.arange(first, first + len(part.tokens)))
            else:
                names = pa.concat_arrays([checked_ids(each, manifest) for each in ids])
            names = checked_ids(names, manifest)
            kind = kind_of(names)
            death = self._in_the_way(names, kind)
            segments = writer.segments if death is None else death.segments
            snapshot = Snapshot(segments, on_host(runtime.backend))
            new, found = segment_of(snapshot, first, names, part, recipe, manifest.keeps, runtime)
            new.arrays |= as_bytes(columns, self._types)
            self._clock.report("collide", len(names), None)
        with self._clock.stage("write"):
            stop = first + len(names)
            writer.change(
                new,
                death,
                next_sequence=stop,
                id_kind=kind,
                id_as=str(id_type_of(ids, None if manifest.id_kind is None else str(manifest.id_type))),
                columns={name: str(kind) for name, kind in self._types.items()},
                inputs=inputs,
            )
            self._clock.report("write", len(names), None)
        replaced = 0 if death is None else death.documents
        self.counts = self.counts._replace(
            documents=self.counts.documents + len(names),
            kept=self.counts.kept + int(found.kept.sum()),
            removed=self.counts.removed + int((~found.kept).sum()),
            replaced=self.counts.replaced + replaced,
        )
        self._opened.committed(writer)
        if self._output is not None:
            self._tables.append(self._table_of(names, found))
        with self._clock.stage("merge"):
            self._merges.turn()

    def _table_of(self, names: pa.Array, found: Decided) -> pa.Table:
        snapshot = Snapshot(self._writer.segments, on_host(self._runtime.backend))
        return table_of(names, found, snapshot, self._opened.recipe)

    def _in_the_way(self, names: pa.Array, kind: str) -> Death | None:
        """What dies because documents of these ids are there already.

        Raises
        ------
        InputError
            If there are some, and they are not to be replaced; or if an id is repeated.
        """
        ascending = kind == "integer" and (np.diff(names.to_numpy()) > 0).all()
        if not ascending and len(names.unique()) < len(names):
            import pyarrow.compute as pc

            counts = names.value_counts()
            again = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"]
            raise _repeated(again)
        there, sequence = ids_there(Snapshot(self._writer.segments, on_host(self._runtime.backend)), names, kind)
        if not len(there):
            return None
        mine = there[sequence >= self._input_begins]  # of this input, committed a moment ago
        if len(mine):
            raise _repeated(names[int(mine.min())])
        if not self._replace:
            first = names[int(there.min())].as_py()
            raise InputError(
                f"id {first!r} is in the index already; pass replace=True to let new documents take the place of old "
                "ones, or give others ids"
            )
        return buried(self._writer.segments, sequence)

    def decisions(self) -> pa.Table:
        """What was decided of all documents that were added."""
        kind = self._opened.manifest.id_type
        nothing = np.empty(0, np.int64)
        empty = Decided(nothing.astype(bool), nothing, nothing.astype(float), nothing)
        return self._artefact(self._table_of(pa.array([], kind), empty).schema, self._tables)

    def skipped(self) -> pa.Table:
        """Rows that cannot be read and were left out."""
        return self._artefact(SKIPPED_COLUMNS, self._skipped)

    def _artefact(self, schema: pa.Schema, tables: list[pa.Table]) -> pa.Table:
        table = pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in tables)])
        return table.replace_schema_metadata({METADATA_KEY: self._opened.recipe.to_json().encode(), BY_ITSELF: b"1"})
