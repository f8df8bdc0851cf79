"""Adding documents: sketched batch by batch, committed some at a time, and decided about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup_gpu.kernels._cpu import num_threads, set_num_threads

from ..arrow_versions import bytes_of
from ..data import arrow, numpy_of
from ..definitions import METADATA_KEY
from ..documents import open_documents
from ..documents.ahead import ahead, closing
from ..documents.compared import one_order
from ..documents.row_ids import IdsGiven
from ..documents.skipped import SCHEMA as SKIPPED_COLUMNS, check_skipped, summary_of
from ..documents.units import placed_after, units_in
from ..engine.pieces import OfBatch, Span
from ..errors import InputError, ParameterError
from ..log import log
from ..methods.finding.contract import SketchedEntries
from ..records import dataclass
from ..report import count, skipped_in_words
from ..results.nothing_removed import NO_DOCUMENTS
from ..results.sketch_writing import skipped_path
from ..stages.conditions import group_words
from ..store.artefacts import BY_ITSELF
from ..text.token_changes import remarks_on
from .columns import as_bytes, id_type_of, types_of
from .committing import Commits
from .inputs import first_of, inputs_of, rows_done, with_progress
from .marks import Marks
from .opened import Opened
from .sketches import EntryTools, KeptTexts, arrays_of_texts, joined, sketched_span
from .snapshot import Snapshot, on_host, order_of
from .writer import (
    Death,
    Decided,
    Writer,
    buried,
    checked_ids,
    decisions_of,
    following,
    ids_there,
    kind_of,
    numbered as numbered_from,
    segment_of,
)

if TYPE_CHECKING:
    from ..documents import Documents
    from ..documents.reading_options import Reading
    from ..documents.units import Places
    from ..engine.clock import Clock
    from ..engine.contract import Runtime
    from .manifest import Manifest
    from .segments import Segment

COMMIT_SHINGLES = 6 << 20
"""Shingles of documents that wait for a commit, at most about: 48 MB."""

BATCH_BYTES = 16 << 20
"""Bytes of text that are read at a time, at most about."""


class _CountsOfAdded(NamedTuple):
    documents: int
    kept: int
    removed: int
    replaced: int
    already: int
    skipped: int


class Added(_CountsOfAdded):
    """Report the work of `Index.add`: six counts, and the decisions.

    Parameters
    ----------
    documents : int
        Documents that were added.
    kept : int
        Those of them that are kept; all of them if the recipe has `ignore_common`, as `decide` decides then. If parts
        of documents are compared, the number of parts that repeat no kept part.
    removed : int
        The others: copies, and near-duplicates of what is kept.
    replaced : int
        Documents that they took the place of.
    already : int
        Documents of the same files that were there already, and were not added again.
    skipped : int
        Rows that were left out: those that cannot be read and, with on_duplicate_id="first", those whose id an earlier
        document has. The log names the first of each input, and with `output` they are listed in a file next to it.

    Examples
    --------
    >>> Added(documents=3, kept=2, removed=1, replaced=0, already=0, skipped=0).kept
    2
    """

    _decided: Callable[[], pa.RecordBatchReader] | None = None

    @property
    def decisions(self) -> pa.RecordBatchReader:
        """The decision about each added document, in the order of the input, with the columns of documents.parquet.

        The decisions are read from the index a batch at a time, as they were when `Index.add` returned. Documents that
        the same call replaced are left out.

        Examples
        --------
        >>> import tempfile
        >>> from neardup_gpu.index import Index
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     added = index.add({"text": ["to be or not to be", "to be or not to be"]})
        >>> added.decisions.read_all()["kept"].to_pylist()
        [True, False]
        """
        if self._decided is None:
            raise ParameterError("decisions: these counts were not made by Index.add; use what it returns")
        return self._decided()

    def __getstate__(self) -> None:
        """Pickle the counts alone: decisions are read from the files of the index."""


def _repeated(id: pa.Scalar) -> InputError:
    return InputError(f"id {id.as_py()!r} stands for several documents; ids name one each")


@dataclass(frozen=True, eq=False)
class _AddedPiece(OfBatch):
    """Some documents of a batch, which is given by its units; `ends` is whether a commit ends after them.

    `rows` is all units of the batch, and `first_unit` says where those of each document begin.
    """

    rows: Span
    first_unit: np.ndarray
    ends: bool

    def split(self) -> list[_AddedPiece]:
        parts = super().split()
        return [replace(each, ends=self.ends and each is parts[-1]) for each in parts]


class _SketchedPart(NamedTuple):
    """Documents that were sketched: their ids, what is stored besides their texts, and `ends` as in `_AddedPiece`.

    `places` are those of their units, if these are parts of documents; `texts` are kept if passages are to be found.
    """

    ids: pa.Array
    columns: dict[str, pa.Array]
    texts: KeptTexts | None
    sketched: SketchedEntries
    places: Places | None
    ends: bool

    @property
    def num_bytes(self) -> int:
        texts = 0 if self.texts is None else self.texts.num_bytes
        return texts + self.sketched.num_bytes + sum(map(bytes_of, [self.ids, *self.columns.values()]))


def checked_reading(described: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return how the documents of an index are read once others have been added, which `Documents.describe` describes.

    `known` is how they were read until now: `html` as in `Reading`, and `text_columns`, a list of names. Two ways of
    reading give other words for the same document, so nothing would be found between them. Texts, pages and records of
    crawls have no columns, and their format says what is HTML: they are not looked at here.

    Raises
    ------
    InputError
        If the others are read in another way.
    """
    if described["text_columns"] is None:
        return known
    given: dict[str, Any] = {"html": described["html"], "text_columns": list(described["text_columns"])}
    if known is None or known == given:
        return given
    name = next(each for each in known if known[each] != given[each])
    if name == "html":
        before, now = ("no HTML" if not each["html"] else f"html={each['html']!r}" for each in (known, given))
        advice = "leave html out" if not known["html"] else f"give {before}"
    else:
        before, now = (f"the text of {', '.join(map(repr, each[name]))}" for each in (known, given))
        listed = known[name] if len(known[name]) > 1 else known[name][0]
        advice = f"give text_columns={listed!r}"
    raise InputError(f"the index was filled with {before}, and this input is read with {now}; {advice}")


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
        self._skipped: list[pa.Table] = []
        self._begins = writer.manifest.next_sequence  # the sequence number of the first document of this call
        self._input_begins = 0  # the sequence number of the first document of the input that is being added
        self._next_sequence = 0  # and of the next unit, behind a commit that is being made
        self._next_document = 0  # the id of the next document, if ids are numbers that the index gives
        self._segments = writer.segments  # those that documents are compared with: of such a commit, too
        self._marks = Marks()
        self.counts = _CountsOfAdded(0, 0, 0, 0, 0, 0)

    def add(self, source: Any, reading: Reading) -> None:
        """Add all inputs, one after another."""
        anything, clock = False, self._clock
        beside = self._opened.engine.threads != 1
        kept = list(self._writer.manifest.columns)
        with (
            clock.turns(),
            self._opened.merging(self._writer, beside) as self._merges,
            Commits(beside) as self._commits,
        ):
            for documents, files in inputs_of(
                open_documents(source, reading=reading, other_columns=kept), self._check_columns
            ):
                done, whole = rows_done(self._writer.manifest, files)
                if whole:
                    self.counts = self.counts._replace(already=self.counts.already + done)
                    anything = True
                    continue
                documents.check_ids_early("input")
                leaves_out = reading.on_duplicate_id == "first"
                if leaves_out:
                    documents._ids_given = IdsGiven("first", self._known_ids(files))
                # Documents that an interrupted call has added are left out by their ids, if ids may be left out.
                anything |= self._add(documents, files, done, 0 if leaves_out else done)
            if not anything:
                check_skipped(pa.concat_tables(self._skipped) if self._skipped else None)
                log.warning(NO_DOCUMENTS)
            with clock.stage("merge"):
                self._merges.finish()
        self._say_outgrown()

    def _known_ids(self, files: list[list[Any]] | None) -> Callable[[pa.Array], tuple[np.ndarray, np.ndarray]]:
        """Return what `IdsGiven` asks: the ids of documents that were in the index before an input, or are of it."""
        manifest, snapshot = self._writer.manifest, Snapshot(self._writer.segments, on_host(self._runtime.backend))
        begins = first_of(manifest, files)

        def known(ids: pa.Array) -> tuple[np.ndarray, np.ndarray]:
            names, (before, done) = checked_ids(ids, manifest), np.zeros((2, len(ids)), bool)
            if len(names):
                there, number = ids_there(snapshot, names, kind_of(names))
                before[there], done[there] = number < begins, number >= begins
            return before, done

        return known

    def _categories(self, manifest: Manifest) -> dict[str, list[str]]:
        """Return the order of the categories of each column that has ordered ones, in the index and in the input."""
        found = {}
        for name, orders in self._orders.items():
            several = [*orders, *([manifest.categories[name]] if name in manifest.categories else [])]
            if several:
                found[name] = one_order(several, name)
        return {**manifest.categories, **found}

    def _check_columns(self, documents: Any) -> None:
        """Find out the types of the columns that the index keeps, before anything is added."""
        self._types = types_of(documents, self._writer.manifest.column_types)
        self._reading = checked_reading(documents.describe(), self._writer.manifest.reading)
        for name in self._opened.recipe.within:
            documents._check_plain(name, "within")

    def _say_outgrown(self) -> None:
        expected, entries = self._writer.manifest.keeps.expected, self._writer.manifest.entries
        if expected is not None and entries > expected:
            log.warning(
                "%s in tables for %s: they miss nothing, and answer more slowly; expect more when an index is made",
                count(entries, "entry"),
                f"{expected:,}",
            )

    def _add(self, documents: Documents, files: list[list[Any]] | None, done: int, skip: int) -> bool:
        """Add an input without its first `skip` documents, after `done` rows of it; return whether it has rows."""
        self._input_begins = self._next_sequence = self._writer.manifest.next_sequence
        self._next_document = self._writer.manifest.first_number
        self._segments = self._writer.segments
        self._orders = documents._orders
        self._marks.expected = self._writer.manifest.entries + max(0, (documents.num_rows or 0) - done)
        numbered = documents.id_column is None and documents.format != "text"
        waiting: list[_SketchedPart] = []
        rows, total, only_dropped = done, documents.num_rows, 0
        with closing(self._sketches(documents, skip)) as parts:
            while True:
                with self._clock.stage("sketch"):
                    part = next(parts, None)
                    if part is None:
                        break
                    self._clock.report("sketch", len(part.ids), None if total is None else total - rows)
                rows += len(part.ids)
                only_dropped += part.sketched.only_dropped_words
                waiting.append(part)
                if part.ends or sum(len(each.sketched.sets.values) for each in waiting) > COMMIT_SHINGLES:
                    self._commit(waiting, numbered, files, rows, False)
                    waiting = []
        if waiting or files is not None:
            self._commit(waiting, numbered, files, rows, True)
        self._end_commit()
        already = skip if documents._ids_given is None else documents._ids_given.num_done
        self.counts = self.counts._replace(already=self.counts.already + already)
        self._note_skipped(documents.skipped)
        dropped = remarks_on({"documents": rows - done, "only_dropped_words": only_dropped})
        for remark in (*documents._remarks(self._types), *dropped):
            log.warning(remark)
        return rows > 0

    def _sketches(self, documents: Documents, done: int) -> Iterator[_SketchedPart]:
        """All documents but the first ones; at most the documents of one commit are sketched ahead."""
        tools = EntryTools(self._opened.recipe, self._writer.manifest.keeps, self._runtime)
        recipe, keeps, runtime = tools
        threads, most = num_threads(), 8 * COMMIT_SHINGLES
        errors: list[Exception] = []

        def sketch(piece: _AddedPiece) -> _SketchedPart:
            units, some = piece.batch, slice(piece.span.first, piece.span.last)
            batch, places, words = units.batch, units.places, None
            first, last = piece.first_unit[[some.start, some.stop]].tolist()
            if recipe.within:
                named = [batch.columns[name] for name in recipe.within]
                words, _ = group_words(named, 0, self._input_begins - done + batch.first_row)
                words = words if places is None else words[places.owner]
            span = replace(piece.rows, first=first, last=last)
            found = sketched_span(units.text, tools, span, words=words)
            columns = {name: values[some] for name, values in batch.columns.items()}
            places = None if places is None else places.between(first, last, some.start)
            texts = None
            if keeps.tokens is not None:
                texts = KeptTexts.of(batch.text, some.start, some.stop, keeps.tokens, on_host(runtime.backend))
            return _SketchedPart(batch.ids[some], columns, texts, found, places, piece.ends)

        def pieces() -> Iterator[_AddedPiece]:
            try:
                yield from self._pieces(documents, done)
            except Exception as error:
                errors.append(error)  # raised once all that comes before has been given

        def sketches() -> Iterator[_SketchedPart]:
            set_num_threads(threads)  # of the thread that runs this
            yield from runtime.map(sketch, pieces())
            if errors:
                raise errors[0]

        def share(part: _SketchedPart) -> int:
            return max(part.num_bytes, most * len(part.ids) // self._commit_every)

        at_once = documents.num_rows is not None and documents.num_rows <= done + self._commit_every
        if at_once or threads == 1 or runtime.backend == "gpu":
            return sketches()
        return ahead(sketches(), most, share)

    def _pieces(self, documents: Documents, done: int) -> Iterator[_AddedPiece]:
        """The same before they are sketched; none reaches beyond the documents of a commit."""
        skip, room = done, self._commit_every
        with closing(units_in(documents, self._opened.recipe, list(self._types), BATCH_BYTES)) as batches:
            for units in batches:
                batch, rows = units.batch, Span.of_documents(units.text.offsets, units.ids)
                start = min(skip, batch.num_rows)
                skip -= start
                whole = rows if units.places is None else Span.of_documents(batch.text.offsets, batch.ids)
                while start < batch.num_rows:
                    stop = min(batch.num_rows, start + room)
                    room = room - (stop - start) or self._commit_every
                    some = replace(whole, first=start, last=stop)
                    yield _AddedPiece(units, some, rows, units.first_unit, room == self._commit_every)
                    start = stop

    def _note_skipped(self, skipped: pa.Table | None) -> None:
        if skipped is None or not len(skipped):
            return
        self._skipped.append(skipped)
        summary, first = summary_of(skipped), skipped.slice(0, 1).to_pylist()[0]
        self.counts = self.counts._replace(skipped=self.counts.skipped + summary["rows"])
        where = first["file"] if first["row"] is None else f"{first['file']}, row {first['row']}"
        listed = "" if self._output is None else f" ({skipped_path(self._output)} lists them)"
        log.warning("%s left out%s, the first in %s: %s", skipped_in_words(summary), listed, where, first["reason"])

    def _commit(
        self, waiting: list[_SketchedPart], numbered: bool, files: list[list[Any]] | None, rows: int, whole: bool
    ) -> None:
        """Begin to commit some documents, and how far their input has got."""
        runtime, manifest = self._runtime, self._writer.manifest
        tools = EntryTools(self._opened.recipe, manifest.keeps, runtime)
        if not waiting:
            self._end_commit()
            self._writer.change(inputs=with_progress(self._writer.manifest, files, rows, whole))
            self._opened.committed(self._writer)
            return
        with self._clock.stage("collide"):
            part = joined([each.sketched for each in waiting])
            sizes = [len(each.ids) for each in waiting]
            places = placed_after(sizes, [each.places for each in waiting])
            ids = [arrow(self._next_document + np.arange(sum(sizes)))] if numbered else [each.ids for each in waiting]
            names = pa.concat_arrays([checked_ids(each, manifest) for each in ids])
            kind = kind_of(names)
            in_the_way = self._in_the_way(names, kind)
        death = None
        if len(in_the_way):
            self._end_commit()  # deaths are written for the segments of a manifest
            death = buried(self._segments, in_the_way)
        with self._clock.stage("collide"):
            segments = self._segments if death is None else death.segments
            snapshot = Snapshot(segments, on_host(runtime.backend), marks=self._marks)
            units = numbered_from(self._next_sequence, len(names), places)
            new, found = segment_of(snapshot, names, units, part, tools)
            new.arrays |= as_bytes([each.columns for each in waiting], self._types)
            if manifest.keeps.tokens is not None:
                new.arrays |= arrays_of_texts([each.texts for each in waiting if each.texts is not None])
            self._clock.report("collide", len(names), None)
        self._end_commit()
        manifest = self._writer.manifest
        changes = {
            "next_sequence": units.stop,
            "next_document": None if places is None else self._next_document + len(names),
            "id_kind": kind,
            "id_as": str(id_type_of(ids, None if manifest.id_kind is None else str(manifest.id_type))),
            "columns": {name: str(kind) for name, kind in self._types.items()},
            "categories": self._categories(manifest),
            "inputs": with_progress(manifest, files, rows, whole),
            "reading": self._reading,
        }
        self._next_sequence, self._next_document = units.stop, self._next_document + len(names)
        segments = self._writer.segments if death is None else death.segments
        new = following(new, order_of(segments), tools.finder)  # a merge may have chosen another one
        self._segments = [*segments, new]
        replaced = 0 if death is None else death.documents
        self._commits.begin(
            partial(self._write, new, death, changes), partial(self._note_written, len(names), found, replaced)
        )

    def _write(self, new: Segment, death: Death | None, changes: dict[str, Any]) -> None:
        self._writer.change(new, death, **changes)
        self._opened.committed(self._writer)

    def _end_commit(self) -> None:
        """Wait until the commit that was begun is made, if one was, and merge what is due then."""
        if not self._commits.under_way:
            return
        with self._clock.stage("write"):
            self._commits.end()
        with self._clock.stage("merge"):
            self._merges.turn()
        self._segments = self._writer.segments

    def _note_written(self, number: int, found: Decided, replaced: int) -> None:
        """Count the documents of a commit that was made."""
        self._clock.report("write", number, None)
        decides = self._opened.recipe.ignore_common is None
        kept = found.kept if decides else np.ones(len(found.kept), bool)
        self.counts = self.counts._replace(
            documents=self.counts.documents + number,
            kept=self.counts.kept + int(kept.sum()),
            removed=self.counts.removed + int((~kept).sum()),
            replaced=self.counts.replaced + replaced,
        )

    def _in_the_way(self, names: pa.Array, kind: str) -> np.ndarray:
        """Numbers of the documents that have one of the ids, and die.

        Raises
        ------
        InputError
            If there are some, and they are not to be replaced; or if an id is repeated.
        """
        ascending = kind == "integer" and (np.diff(numpy_of(names)) > 0).all()
        if not ascending and len(names.unique()) < len(names):
            import pyarrow.compute as pc

            counts = names.value_counts()
            again = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"]
            raise _repeated(again)
        snapshot = Snapshot(self._segments, on_host(self._runtime.backend), marks=self._marks)
        there, sequence = ids_there(snapshot, names, kind)
        if not len(there):
            return sequence
        mine = there[sequence >= self._input_begins]  # of this input, committed a moment ago
        if len(mine):
            raise _repeated(names[int(mine.min())])
        if not self._replace:
            first = names[int(there.min())].as_py()
            raise InputError(
                f"id {first!r} is in the index already; pass replace=True to let new documents take the place of old "
                "ones, or give others ids"
            )
        return sequence

    def added(self) -> Added:
        """The counts of this call, with the decisions about the documents that it added."""
        found = Added(*self.counts)
        manifest, snapshot = self._writer.manifest, Snapshot(self._writer.segments, on_host(self._runtime.backend))
        found._decided = partial(
            decisions_of, snapshot, self._begins, manifest.next_sequence, manifest.id_type, self._opened.recipe
        )
        return found

    def decisions(self) -> pa.Table:
        """The decisions about all documents that were added, or about their parts, as they are written to a file."""
        found = self.added().decisions
        return self._artefact(found.schema, [found.read_all()])

    def skipped(self) -> pa.Table:
        """Rows that cannot be read and were left out."""
        return self._artefact(SKIPPED_COLUMNS, self._skipped)

    def _artefact(self, schema: pa.Schema, tables: list[pa.Table]) -> pa.Table:
        table = pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in tables)])
        return table.replace_schema_metadata({METADATA_KEY: self._opened.recipe.to_json().encode(), BY_ITSELF: b"1"})
