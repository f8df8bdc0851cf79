"""`Index`: documents are added, asked for, removed and decided of; what was acknowledged stays."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace as changed_settings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from .. import checks
from ..documents.skipped import MAX_DOCUMENT_BYTES
from ..engine.clock import Clock, Progress
from ..engine.settings import Engine, as_engine
from ..engine.threads import on_threads
from ..errors import DamagedError, InputError, OutputError, ParameterError
from ..log import log
from ..recipe import Recipe, choose_recipe
from ..report import count
from ..sketching import num_skipped
from ..store.outputs import new_file, new_folder
from . import manifest as manifests
from .deciding import decide
from .inputs import inputs_of, rows_done, with_progress
from .manifest import DELETED, SEGMENTS, Held, Manifest
from .merging import due, merge_due, merge_last
from .queries import answered
from .segments import DEAD, SEGMENT, Segment
from .sketches import Sketched, joined, sketched
from .snapshot import Snapshot, on_host
from .writer import TOO_LARGE, Death, Writer, buried, checked_ids, ids_there, kind_of, segment_of, table_of

if TYPE_CHECKING:
    from ..engine.contract import Runtime
    from ..result import Result

COMMIT_SHINGLES = 1 << 25
"""Shingles of documents that wait for a commit, at most about: 256 MB."""

TYPES = {"integer": pa.int64(), "string": pa.large_string(), "binary": pa.large_binary()}


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
        Rows that cannot be read and were left out; the log says the first of each input.

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


class Index:
    """An index that grows: an open folder, of which this object has a snapshot.

    `Index.create` makes one, `Index.open` opens one. Any number of processes may read; the first call that writes
    makes this process the one that writes, until `close`. Readers see what was committed when they opened the index,
    until `refresh`.

    Parameters
    ----------
    folder : Path
        Of an index.
    engine : Engine
        Where to run.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/news"
    >>> with Index.create(folder, shingle_size=2, threshold=0.5) as index:
    ...     index.add({"id": ["a"], "text": ["to be or not to be"]}, id_column="id").kept
    ...     index.query("to be or not to go").to_pylist()[0]["id"]
    1
    'a'
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self._engine = folder, engine
        self._stack = contextlib.ExitStack()
        self._refreshing = threading.Lock()
        self._writer: Writer | None = None
        self._held: Held | None = None
        self._state: tuple[Manifest, list[Segment]] = Manifest(0, ""), []
        self._closed = False
        self._load()

    # ---------------------------------------------------------------------------------------- making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        method: Any = "minhash",
        threshold: float | None = None,
        shingle_size: int = 5,
        shingling: str = "set",
        stop_words: Any = None,
        seed: int = 1,
        max_partners: int | None = 64,
        recipe: Recipe | None = None,
        engine: str | Engine = "auto",
    ) -> Self:
        """Make an empty index.

        Parameters
        ----------
        path : path
            A folder, which is made; there is nothing yet, or an empty folder.
        method : MinHash or "minhash", default "minhash"
            How candidates are found.
        threshold : float in (0, 1], default None
            Least resemblance of two near-duplicates; 0.8 unless given.
        shingle_size : int from 1 to 64, default 5
            Tokens in a shingle.
        shingling : "set", "bag", "circular" or "spots", default "set"
            As in `dedup`.
        stop_words : str, path or list of str, default None
            Of spots alone.
        seed : int in [0, 2**64), default 1
            All random constants are drawn from it.
        max_partners : int, default 64
            How many better and how many kept near-duplicates of a document are listed, as in `dedup`.
        recipe : Recipe, default None
            A complete recipe, whose `keep` is "first"; excludes the settings before.
        engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
            Where to run. Changes no result.

        Returns
        -------
        Index
            Open; close it, or use it as a context manager.

        Raises
        ------
        OutputError
            If there is something at the path, or it cannot be written.
        ParameterError, ArgumentTypeError
            If the settings are impossible, or of a method that indexes do not keep.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", threshold=0.9) as index:
        ...     index.info()["documents"]
        0
        """
        folder = Path(checks.path("path", path))
        chosen = choose_recipe(
            recipe,
            usual="minhash",
            method=method,
            threshold=threshold,
            shingle_size=shingle_size,
            shingling=shingling,
            stop_words=stop_words,
            seed=seed,
            max_partners=max_partners,
        )
        _check_recipe(chosen)
        place = as_engine(engine)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not manifests.is_free(folder):
                what = "is an index already" if manifests.is_index(folder) else "is not empty"
                raise OutputError(f"{folder}: {what}; name another folder")
            (folder / SEGMENTS).mkdir(exist_ok=True)
            (folder / DELETED).mkdir(exist_ok=True)
            manifests.commit(folder, Manifest(1, chosen.to_json()))
            manifests.synced(folder.parent)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror}; name another folder") from None
        return cls(folder, place)

    @classmethod
    def open(cls, path: str | Path, *, recipe: Recipe | None = None, engine: str | Engine = "auto") -> Self:
        """Open an index.

        Parameters
        ----------
        path : path
            What `create` made.
        recipe : Recipe, default None
            The recipe that it has to have, if one is expected.
        engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
            Where to run. Changes no result.

        Returns
        -------
        Index
            A snapshot of what was committed last. Files are mapped: to open takes no longer for a larger index but for
            its deaths, and a damaged part is found when it is first used, or by `check`.

        Raises
        ------
        InputError
            If there is no index, or one of another version.
        DamagedError
            If its manifest, or a header of its files, is not as it was written.
        RecipeMismatchError
            If it was made by another recipe, or under other definitions.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp() + "/news"
        >>> Index.create(folder).close()
        >>> with Index.open(folder) as index:
        ...     index.recipe.threshold
        0.8
        """
        folder = Path(checks.path("path", path))
        found = cls(folder, as_engine(engine))
        if recipe is not None and checks.instance("recipe", recipe, Recipe) != found.recipe:
            mine, theirs = recipe.describe(), found.recipe.describe()
            name = next((key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)), "recipe")
            found.close()
            from ..errors import RecipeMismatchError

            raise RecipeMismatchError(f"{folder}: made with {name} = {theirs.get(name)}, asked for {mine.get(name)}")
        return found

    def _load(self) -> None:
        """Take the newest snapshot; segments that are as they were stay mapped."""
        held = Held(self.folder)
        try:
            manifest = held.manifest
            recipe = Recipe.from_json(manifest.recipe, f"{self.folder}")
            known = {each.place: each for each in self._segments}
            kind = manifest.id_kind or "integer"
            segments = [known.get(each) or Segment.load(self.folder, each, kind) for each in manifest.segments]
        except BaseException:
            held.close()
            raise
        if self._held is not None:
            self._held.close()
        self._held, self.recipe, self._state = held, recipe, (manifest, segments)

    @property
    def manifest(self) -> Manifest:
        """Of the snapshot."""
        return self._state[0]

    @property
    def _segments(self) -> list[Segment]:
        return self._state[1]

    def refresh(self) -> Self:
        """Take the newest snapshot.

        Returns
        -------
        Index
            This one.

        Raises
        ------
        InputError, DamagedError
            As in `open`.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp() + "/news"
        >>> with Index.create(folder) as writer, Index.open(folder) as reader:
        ...     _ = writer.add(texts=["to be or not to be"])
        ...     len(reader), len(reader.refresh())
        (0, 1)
        """
        self._check_open()
        with self._refreshing:  # of several threads, one after another
            if self._writer is None and manifests.numbers(self.folder)[-1] != self.manifest.number:
                self._load()
        return self

    def close(self) -> None:
        """Let go of the index; a writer lets others write.

        Examples
        --------
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/news")
        >>> index.close()
        """
        self._closed = True
        self._state, self._writer = (self.manifest, []), None
        if self._held is not None:
            self._held.close()
            self._held = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of live documents."""
        return self.manifest.documents

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {len(self):,} documents)"

    def _check_open(self) -> None:
        if self._closed:
            raise ParameterError(f"{self.folder}: the index is closed; open it again")

    def _snapshot(self, runtime: Runtime) -> tuple[Manifest, Snapshot]:
        """The manifest and its segments, which belong together whatever another thread refreshes meanwhile."""
        manifest, segments = self._state
        return manifest, Snapshot(segments, on_host(runtime.backend))

    @contextlib.contextmanager
    def _running(self, threads: int | None = None) -> Iterator[Runtime]:
        self._check_open()
        with on_threads(self._engine.threads if threads is None else threads), self._engine.start() as runtime:
            yield runtime

    def _write(self) -> Writer:
        """The writer; this process becomes the one that writes."""
        self._check_open()
        if self._writer is None:
            with contextlib.ExitStack() as stack:  # lets go of the lock if the rest fails
                stack.enter_context(manifests.writing(self.folder))
                self._load()
                try:
                    manifests.clean(self.folder, self.manifest)
                except OSError as error:
                    raise OutputError(f"{self.folder}: {error.strerror}") from None
                self._writer = Writer(self.folder, self.manifest, self._segments)
                self._stack.push(stack.pop_all())
        return self._writer

    def _committed(self, writer: Writer) -> None:
        """Go on with what the writer has committed, and remove what it has made superfluous."""
        self._state = writer.manifest, writer.segments
        if self._held is not None:
            self._held.close()
            self._held = None
        try:
            manifests.clean(self.folder, self.manifest)
        except OSError as error:
            raise OutputError(f"{self.folder}: {error.strerror}; what was committed is safe") from None

    # ------------------------------------------------------------------------------------------------------ adding

    def add(
        self,
        source: Any = None,
        *,
        texts: Any = None,
        text_columns: str | list[str] | None = None,
        id_column: str | None = None,
        html: bool = False,
        glob: str | None = None,
        on_error: str = "stop",
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        output: str | Path | None = None,
        overwrite: bool = False,
        commit_every: int = 10_000,
        replace: bool = False,
        progress: Progress | bool | None = None,
    ) -> Added:
        """Add documents, and decide at once of each whether it is kept: whether it has no near-duplicate that is.

        Parameters
        ----------
        source : path, URI, glob, list of them, or a table, default None
            The documents; `open_documents` describes every form.
        texts : list of str, array or Series of strings, default None
            The texts themselves, instead of `source`.
        text_columns : str or list of str, default None
            The columns of text; found by their names unless given.
        id_column : str, default None
            The column of ids; without one, ids are sequence numbers or relative paths.
        html : bool, default False
            The text is HTML, of which the visible text is taken.
        glob : str, default None
            Which files of a folder to read, such as "*.py".
        on_error : "stop" or "skip", default "stop"
            Whether a row that cannot be read is an error, or left out.
        max_document_bytes : int, default 1 GiB
            A longer document counts as one that cannot be read.
        output : path, default None
            A file to write: what was decided of each document that was added now, with the columns of
            documents.parquet. Who is kept is final until something is removed; `duplicate_of` is the kept document
            that a document resembled most when it was added.
        overwrite : bool, default False
            Replace the file at `output`.
        commit_every : int, default 10000
            Documents of a commit. What was committed stays, whatever happens. Changes no result.
        replace : bool, default False
            A document whose id is there takes the place of the earlier one, instead of being an error.
        progress : bool or callable, default None
            As in `dedup`.

        Returns
        -------
        Added
            How many were added, kept and removed.

        Raises
        ------
        NeardupError
            If the input cannot be read, an id is there already, the index is being written by another process or cannot
            be written; what was committed before is there.

        Notes
        -----
        Files are known by path, size and time: those that are in the index already are not added again, and one that
        was half added before a crash is gone on with.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", shingle_size=2) as index:
        ...     index.add(texts=["to be or not to be", "to be or not to be"])
        Added(documents=2, kept=1, removed=1, replaced=0, already=0, skipped=0)
        """
        self._check_open()
        commit_every = checks.integer("commit_every", commit_every, 1)
        replace, overwrite = checks.flag("replace", replace), checks.flag("overwrite", overwrite)
        output = checks.optional(checks.path, "output", output)
        reading: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "html": html, "glob": glob}
        reading |= {"on_error": on_error, "max_document_bytes": max_document_bytes}
        if texts is not None:
            from ..documents.memory import as_texts

            if source is not None or any(each is not None for each in (text_columns, id_column, glob)):
                raise ParameterError("texts: are given alone; leave out source, text_columns, id_column and glob")
            source = as_texts(texts)
        elif source is None:
            raise ParameterError("source and texts: give one of them, paths or a table, or the texts themselves")
        with contextlib.ExitStack() as stack:
            file = None if output is None else stack.enter_context(new_file(output, overwrite))
            runtime = stack.enter_context(self._running())
            writer = self._write()
            adding = _Adding(self, writer, runtime, Clock(progress), commit_every, replace, file is not None)
            adding.add(source, reading)
            if file is not None:
                from ..store.parquet import write_table

                write_table(adding.decisions(), file)
        return adding.counts

    # ----------------------------------------------------------------------------------------------------- removing

    def remove(self, ids: Any) -> int:
        """Take documents away. What was removed because of them may be kept by the next `decide`.

        Parameters
        ----------
        ids : array or list of integers, strings or bytes
            Of the type that the index's ids have.

        Returns
        -------
        int
            How many documents were taken away.

        Raises
        ------
        ParameterError
            If the ids are not an array or a list of them.
        InputError
            If an id is not there, or is null; nothing was taken away then.
        OutputError
            If the index is being written by another process, or cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", shingle_size=2) as index:
        ...     _ = index.add({"id": ["a", "b"], "text": ["to be or not to be", "to be or not"]}, id_column="id")
        ...     index.remove(["a"]), len(index)
        (1, 1)
        """
        self._check_open()
        if isinstance(ids, str | bytes):
            raise ParameterError(f"ids: one {type(ids).__name__} given; put it into a list")
        try:
            given = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
            given = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
        except OverflowError:
            raise InputError(TOO_LARGE) from None
        except (pa.ArrowException, TypeError, ValueError):
            raise ParameterError(
                f"ids: expected integers, strings or bytes, all of one type, got {checks.shown(ids)}"
            ) from None
        if len(given) == 0:
            return 0
        if given.null_count:
            raise InputError("ids: null is no id; nothing was removed")
        with self._running() as runtime:
            writer = self._write()
            manifest, snapshot = self._snapshot(runtime)
            asked = checked_ids(given, manifest).unique()
            found, sequence = ids_there(snapshot, asked, kind_of(asked))
            missing = np.setdiff1d(np.arange(len(asked)), found)
            if len(missing):
                more = f", nor are {len(missing) - 1:,} others" if len(missing) > 1 else ""
                raise InputError(
                    f"id {asked[int(missing[0])].as_py()!r} is not in the index{more}; nothing was removed"
                )
            writer.change(death=buried(writer.segments, sequence))
            self._committed(writer)
        return len(sequence)

    # ------------------------------------------------------------------------------------------------------- asking

    def query(
        self,
        source: Any,
        *,
        text_columns: str | list[str] | None = None,
        id_column: str | None = None,
        html: bool = False,
        glob: str | None = None,
        threshold: float | None = None,
        nearest: int | None = None,
    ) -> pa.Table:
        """Find the live documents that resemble a text, or each of many.

        Parameters
        ----------
        source : str, or documents as in `dedup`
            A str is one text; to name a file, give a Path, or a list of paths.
        text_columns : str or list of str, default None
            The columns of text; found by their names unless given.
        id_column : str, default None
            The column of ids, which `query_id` repeats; row numbers unless given.
        html : bool, default False
            The text is HTML, of which the visible text is taken.
        glob : str, default None
            Which files of a folder to read, such as "*.py".
        threshold : float, default None
            Least resemblance; the index's unless given. Its filter is made for the index's: of pairs that resemble each
            other less, fewer become candidates.
        nearest : int, default None
            At most so many documents for each query.

        Returns
        -------
        pyarrow.Table
            query_id, id, resemblance, low, high, exact, kept: best first, ties in order of sequence, one query
            after the other. `query_id` is 0 for a single text. Resemblance is exact.
            `kept` says whether the document was kept when it was added.

        Raises
        ------
        InputError
            If the queries cannot be read.
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        DamagedError
            If what decides the answer is not as it was written.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", shingle_size=2, threshold=0.5) as index:
        ...     _ = index.add(texts=["to be or not to be", "that is the question"])
        ...     index.query("to be or not to go")["resemblance"].to_pylist()
        [0.8]
        """
        self._check_open()
        assert self.recipe.threshold is not None
        least = self.recipe.threshold if threshold is None else checks.fraction("threshold", threshold, zero=False)
        nearest = checks.optional(checks.integer, "nearest", nearest, 1)
        one = isinstance(source, str)
        read_as = checks.flag_or("html", html, "tree")
        if one:
            for name, value in (("text_columns", text_columns), ("id_column", id_column), ("glob", glob)):
                if value is not None:
                    raise ParameterError(f"{name}: one text is given, which has none; leave it out")
            if read_as:
                from ..documents.html import read_page

                source = read_page(source, tree=read_as == "tree").text
        with self._running(1 if one else None) as runtime:
            manifest, snapshot = self._snapshot(runtime)
            how = TYPES[manifest.id_kind or "integer"], least, nearest, self.recipe, runtime
            if one:
                from ..data import Ragged

                text = np.frombuffer(source.encode("utf-8", "replace"), np.uint8)
                offsets = np.array([0, len(text)], np.int64)
                offsets.flags.writeable = False
                sketches = sketched(Ragged(text, offsets), self.recipe, runtime)
                tables = [answered(snapshot, pa.array([0]), sketches, *how)]
            else:
                from ..documents import open_documents

                reading: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column}
                documents = open_documents(source, html=html, glob=glob, **reading)
                tables = [
                    answered(snapshot, batch.ids, sketched(batch.text, self.recipe, runtime), *how)
                    for batch in documents.batches(max_bytes=1 << 22)
                ]
        if not tables:
            raise InputError("the input holds no documents; there is nothing to ask")
        return pa.concat_tables(tables, promote_options="permissive")

    # ----------------------------------------------------------------------------------------------------- deciding

    def decide(
        self,
        *,
        keep: str = "first",
        cluster: str = "greedy",
        output: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress | bool | None = None,
    ) -> Result:
        """Decide of all live documents which to keep: as `dedup` of them would, in order of their sequence.

        Parameters
        ----------
        keep : "first" or "longest", default "first"
            Which document of a group stays.
        cluster : "greedy" or "components", default "greedy"
            As in `dedup`.
        output : path, default None
            A folder to write: documents.parquet, pairs.parquet and report.json.
        overwrite : bool, default False
            Replace an earlier result at `output`.
        progress : bool or callable, default None
            As in `dedup`.

        Returns
        -------
        Result
            The decisions, the pairs and the report.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        OutputError
            If the output cannot be written.
        DamagedError
            If the index is not as it was written.

        Notes
        -----
        The index does not change. The pairs that it stores suffice as long as nothing was removed and what came first
        is kept; else those of documents with more than `max_partners` near-duplicates are found anew among stored sets.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", shingle_size=2, threshold=0.5) as index:
        ...     _ = index.add(texts=["to be or not to be", "to be or not to go", "that is the question"])
        ...     index.decide().documents["kept"].to_pylist()
        [True, False, True]
        """
        self._check_open()
        if checks.text("keep", keep) not in ("first", "longest"):
            raise ParameterError(f"keep {keep!r}: an index stores no columns; 'first' and 'longest' can be decided by")
        recipe = changed_settings(self.recipe, keep=keep, cluster=cluster)
        output = checks.optional(checks.path, "output", output)
        overwrite = checks.flag("overwrite", overwrite)
        clock = Clock(progress)
        with contextlib.ExitStack() as stack:
            folder = None if output is None else stack.enter_context(new_folder(output, overwrite))
            runtime = stack.enter_context(self._running())
            manifest, snapshot = self._snapshot(runtime)
            kind = TYPES[manifest.id_kind or "integer"]
            place = folder or Path(tempfile.gettempdir())
            result = decide(snapshot, kind, manifest.disturbed, recipe, clock, runtime, place)
            if folder is not None:
                from ..store.artefacts import DOCUMENTS, PAIRS, write_report
                from ..store.parquet import write_table

                write_table(result.documents, folder / f"{DOCUMENTS}.parquet")
                write_table(result.pairs, folder / f"{PAIRS}.parquet")
                write_report(folder, {**result.report, "seconds": clock.elapsed})
        return result

    # ------------------------------------------------------------------------------------------ looking after it

    def compact(self) -> int:
        """Merge all segments into one, in which nothing is dead. It is never needed: adding merges by itself.

        Returns
        -------
        int
            Bytes that the index has afterwards.

        Raises
        ------
        OutputError
            If the index is being written by another process, or cannot be written.
        DamagedError
            If it is not as it was written.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     _ = index.add(texts=["to be", "or not to be"], commit_every=1)
        ...     _ = index.compact()
        ...     index.info()["segments"]
        1
        """
        with self._running():
            writer = self._write()
            some = self.manifest.segments
            if len(some) > 1 or any(each.deleted is not None for each in some):
                merge_last(writer, len(some))
                self._committed(writer)
        return sum(each.num_bytes for each in self.manifest.segments)

    def check(self) -> dict[str, Any]:
        """Compare every file of the index with its checksums.

        Returns
        -------
        dict
            What was looked at: files, bytes, documents, entries, pairs.

        Raises
        ------
        DamagedError
            If a file is not as it was written; the message names it.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     index.check()["files"]
        1
        """
        from ..store.arrays import ArraysFile

        self._check_open()
        num_bytes = os.path.getsize(manifests.path_of(self.folder, self.manifest.number))
        for place in self.manifest.segments:
            files = [(self.folder / SEGMENTS / f"{place.file:08}", SEGMENT)]
            if place.deleted is not None:
                files.append((self.folder / DELETED / f"{place.deleted:08}", DEAD))
            for path, kind in files:
                found = ArraysFile(path, kind)
                found.verify_all()
                num_bytes += os.path.getsize(path)
                if kind is SEGMENT and len(found.arrays["sequence"]) != place.documents:
                    raise DamagedError(f"{path}: is not the file that the manifest names; {SEGMENT.again}")
        info = self.info()
        return {
            "files": 1 + len(self.manifest.files()),
            "bytes": num_bytes,
            **{name: info[name] for name in ("documents", "entries", "pairs")},
        }

    def info(self) -> dict[str, Any]:
        """What the index holds.

        Returns
        -------
        dict
            Counts, bytes, the recipe and the inputs; ready for JSON.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     _ = index.add(texts=["to be", "to be"])
        ...     info = index.info()
        ...     info["documents"], info["entries"]
        (2, 1)
        """
        self._check_open()
        manifest = self.manifest
        return {
            "documents": manifest.documents,
            "entries": manifest.entries,
            "pairs": sum(each.pairs for each in manifest.segments),
            "dead_documents": sum(each.dead_documents for each in manifest.segments),
            "segments": len(manifest.segments),
            "bytes": sum(each.num_bytes for each in manifest.segments),
            "next_sequence": manifest.next_sequence,
            "ids": manifest.id_kind,
            "commit": manifest.number,
            "inputs": [{"path": each.name, "rows": each.rows, "whole": each.whole} for each in manifest.inputs],
            "recipe": self.recipe.describe(),
        }


def _check_recipe(recipe: Recipe) -> None:
    """Refuse what an index does not keep."""
    if recipe.method.name != "minhash":
        raise ParameterError(f"method {recipe.method.name}: an index keeps the features of minhash; leave method out")
    if recipe.method.measure.weighted:
        raise ParameterError(
            f"weighting {recipe.method.weighting!r}: an index compares sets without weights; leave it out"
        )
    if recipe.keep != "first" or recipe.cluster != "greedy":
        raise ParameterError("keep and cluster: documents are decided of as they come; give them to decide")


def _repeated(id: pa.Scalar) -> InputError:
    return InputError(f"id {id.as_py()!r} stands for several documents; ids name one each")


class _Adding:
    """One call of `Index.add`."""

    def __init__(
        self,
        index: Index,
        writer: Writer,
        runtime: Runtime,
        clock: Clock,
        commit_every: int,
        replace: bool,
        with_decisions: bool,
    ) -> None:
        self._index, self._writer, self._runtime, self._clock = index, writer, runtime, clock
        self._commit_every, self._replace, self._with_decisions = commit_every, replace, with_decisions
        self._tables: list[pa.Table] = []
        self._input_begins = 0  # the sequence number of the first document of the input that is being added
        self.counts = Added(0, 0, 0, 0, 0, 0)

    def add(self, source: Any, reading: dict[str, Any]) -> None:
        """Add all inputs, one after another."""
        anything = False
        for documents, files in inputs_of(source, reading):
            done, whole = rows_done(self._writer.manifest, files)
            if whole:
                self.counts = self.counts._replace(already=self.counts.already + done)
                anything = True
                continue
            documents.check_ids_early("input")
            anything |= self._add(documents, files, done)
        if not anything:
            raise InputError("the input holds no documents; nothing was added")
        with self._clock.stage("merge"):
            if merge_due(self._writer):
                self._index._committed(self._writer)

    def _add(self, documents: Any, files: list[list[Any]] | None, done: int) -> bool:
        """Add an input of which the first `done` rows are there already; returns whether it has any."""
        self.counts = self.counts._replace(already=self.counts.already + done)
        self._input_begins = self._writer.manifest.next_sequence
        numbered = documents.id_column is None and documents.format != "text"
        ids: list[pa.Array] = []
        sketches: list[Sketched] = []
        waiting, skip, rows = 0, done, done
        for batch in documents.batches():
            start = min(skip, batch.num_rows)
            skip -= start
            while start < batch.num_rows:
                stop = min(batch.num_rows, start + self._commit_every - waiting)
                with self._clock.stage("sketch"):
                    from ..sketching import text_of

                    part = sketched(text_of(batch.text, start, stop), self._index.recipe, self._runtime)
                ids.append(batch.ids[start:stop])
                sketches.append(part)
                waiting += stop - start
                start = stop
                if waiting == self._commit_every or sum(len(p.sets.values) for p in sketches) > COMMIT_SHINGLES:
                    rows += waiting
                    self._commit(ids, sketches, numbered, files, rows, False)
                    ids, sketches, waiting = [], [], 0
                    self._clock.report("sketch", rows, documents.num_rows)
        rows += waiting
        if waiting or files is not None:
            self._commit(ids, sketches, numbered, files, rows, True)
        self._say_skipped(documents.skipped)
        return rows > 0

    def _say_skipped(self, skipped: pa.Table | None) -> None:
        if skipped is None or not len(skipped):
            return
        number, first = num_skipped(skipped), skipped.slice(0, 1).to_pylist()[0]
        self.counts = self.counts._replace(skipped=self.counts.skipped + number)
        where = first["file"] if first["row"] is None else f"{first['file']}, row {first['row']}"
        log.warning("%s left out, the first in %s: %s", count(number, "row"), where, first["reason"])

    def _commit(
        self,
        ids: list[pa.Array],
        sketches: list[Sketched],
        numbered: bool,
        files: list[list[Any]] | None,
        rows: int,
        whole: bool,
    ) -> None:
        """Commit some documents, and how far their input has got."""
        writer, recipe, runtime = self._writer, self._index.recipe, self._runtime
        manifest = writer.manifest
        inputs = with_progress(manifest, files, rows, whole)
        if not ids:
            writer.change(inputs=inputs)
            self._index._committed(writer)
            return
        with self._clock.stage("collide"):
            part = joined(sketches, recipe)
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
            new, found = segment_of(snapshot, first, names, part, recipe, runtime)
        with self._clock.stage("write"):
            stop = first + len(names)
            writer.change(new, death, next_sequence=stop, id_kind=kind, inputs=inputs)
        replaced = 0 if death is None else death.documents
        self.counts = self.counts._replace(
            documents=self.counts.documents + len(names),
            kept=self.counts.kept + int(found.kept.sum()),
            removed=self.counts.removed + int((~found.kept).sum()),
            replaced=self.counts.replaced + replaced,
        )
        self._index._committed(writer)
        if self._with_decisions:
            self._tables.append(table_of(names, found, Snapshot(writer.segments, on_host(runtime.backend))))
        if due(writer.manifest.segments):
            with self._clock.stage("merge"):
                merge_due(writer)
                self._index._committed(writer)

    def _in_the_way(self, names: pa.Array, kind: str) -> Death | None:
        """What dies because documents of these ids are there already.

        Raises
        ------
        InputError
            If there are some, and they are not to be replaced; or if an id is repeated.
        """
        unique = names.unique()
        if len(unique) < len(names):
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
        from ..definitions import METADATA_KEY

        kind = TYPES[self._index.manifest.id_kind or "integer"]
        names = {"id": kind, "kept": pa.bool_(), "duplicate_of": kind, "resemblance": pa.float64(), "group": kind}
        empty = pa.schema(list(names.items())).empty_table()
        table = pa.concat_tables([empty, *self._tables])
        return table.replace_schema_metadata({METADATA_KEY: self._index.recipe.to_json().encode()})
