"""`Index`: documents are added, searched, removed and decided about; an acknowledged change stays."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import fields, replace as changed_settings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from .. import checks
from ..documents import open_documents
from ..documents.reading_options import Reading, chosen_reading
from ..engine.clock import Clock, Progress
from ..engine.settings import Engine, EngineName, as_engine
from ..errors import InputError, OutputError, ParameterError, RecipeMismatchError
from ..keep_rule import checked_rule, keep_columns
from ..methods import check_able
from ..methods.containment import DIRECTIONS, Direction
from ..methods.contract import Join, Sketch
from ..methods.finding.keeps import KeptTables
from ..recipe import Clustering, Recipe, choose_recipe
from ..report import count
from ..results.sketch_writing import skipped_path
from ..settings import settings_of
from ..shared_passages.settings import PassageSettings
from ..store.artefacts import index_around, is_index
from ..store.folder import Folder
from ..store.outputs import new_file, new_files
from ..store.parquet import write_table
from ..store.uris import refuse_uri
from . import containment as by_elements, manifest as manifests, upkeep
from .adding import Added, Adding
from .columns import checked_names, kept_of
from .deciding import decide
from .explaining import explain, holds
from .keeps import chosen as chosen_keeps
from .manifest import Manifest
from .opened import Opened
from .passages import shared_passages
from .queries import Answer, limits_of, near_documents, query_documents, query_text
from .removing import Removed, remove, remove_by_column
from .taking_down import is_statement, take_down
from .uncommon import check_decides

if TYPE_CHECKING:
    from ..results.result import Result
    from ..shared_passages.result import SharedText


class Index:
    """An index that grows: an open folder. This object has a snapshot of it.

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
    >>> from neardup_gpu import Shingles
    >>> folder = tempfile.mkdtemp() + "/news"
    >>> recipe = Recipe(shingles=Shingles(2), method="minhash", threshold=0.5)
    >>> with Index.create(folder, recipe=recipe) as index:
    ...     index.add({"id": ["a"], "text": ["to be or not to be"]}, id_column="id").kept
    ...     index.query("to be or not to go").to_pylist()[0]["id"]
    ...     len(index), "a" in index, "b" in index
    1
    'a'
    (1, True, False)
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._opened = Opened(folder, engine)

    # ---------------------------------------------------------------------------------------- making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        method: Literal["minhash", "exact", "simhash"] | Join | Sketch = "minhash",
        threshold: float | None = None,
        columns: str | Sequence[str] = (),
        engine: EngineName | Engine = "auto",
        recipe: Recipe | None = None,
        **kept: Any,
    ) -> Self:
        """Make an empty index.

        Parameters
        ----------
        path : path
            A folder, which is made; there is nothing yet, or an empty folder.
        method : MinHash, SimHash, "minhash", "exact" or "simhash", default "minhash"
            How candidates are found. "exact" finds every pair at the threshold.
        threshold : float in (0, 1], default None
            Least resemblance of two near-duplicates; by min-hash 0.8 unless given. By simhash, where none is given,
            all documents within the radius are near-duplicates, and nothing is verified.
        columns : str or list of str, default ()
            Columns to keep of each document, such as its date: documents are removed by them, kept by them, and shown
            with them. They hold integers, floats, strings, bools, dates or timestamps. Each input has to have them.
        engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
            Where to run. Changes no result.
        recipe : Recipe, default None
            All settings that change results: shingles, seed, listed pairs, and the unit that is compared. Its `keep` is
            "first". Excludes `method` and `threshold`, which a recipe holds as well. With `ignore_common`, for method
            "exact", the documents of each shingle are counted anew by each `decide`, and by the first query after a
            change. Then `add` decides nothing, and `containment` is refused.
        **kept : keywords
            The fields of `KeptTables`, which say what is stored besides.

            - containment : int from 1 to 2**32, default None
              A modulus m, 16 is usual: keep about every m-th shingle in a table, 12 bytes each, so that `query` can
              find the documents that contain a text, and those that it contains. The smaller, the shorter the texts
              that are found.
            - sets : bool, default None
              Whether the shingles of documents are stored, 8 bytes each, so that pairs are verified. If None, they are
              if there is a threshold. Without them min-hash stores its samples, and the share of equal samples stands
              for resemblance; simhash takes no threshold then.
            - expected : int, default None
              By simhash, how many documents are expected: tables are chosen for them, which can hold any number, and
              are slower for more. If None, 1,000,000.
            - keep_tokens : bool, default False
              Keep the text of each document as it was read, and 4 bytes for each token, so that `passages` can find
              what a text shares with documents. Tokens are words, or of code if the recipe's are.

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
        folder, names = _folder_at(path), checked_names(columns)
        chosen = choose_recipe(recipe, "minhash", units=True, method=method, threshold=threshold)
        check_able(chosen.method, "finder", "cannot find candidates in an index")
        keeps = chosen_keeps(chosen, settings_of(KeptTables, "create", kept))
        if chosen.keep != "first" or chosen.cluster != "greedy":
            raise ParameterError(
                "keep and cluster: documents are decided about when they are added, the first one first; give these "
                "settings to decide"
            )
        if chosen.only_against:
            raise ParameterError("only_against: an index has no reference set; leave it out")
        if chosen.ignore_common is not None and keeps.containment is not None:
            raise ParameterError(
                "ignore_common and containment: a search by containment has a limit of its own, `common`; leave one out"
            )
        if chosen.empty != "kept":
            raise ParameterError(f"empty {chosen.empty!r}: an index keeps documents without words; leave it out")
        names |= {name: "null" for name in chosen.within if name not in names}
        place = as_engine(engine)
        if (around := index_around(Path(os.path.realpath(folder)).parent)) is not None:
            raise OutputError(f"{folder}: lies in the index {around.name}; name another folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not manifests.is_free(folder):
                what = "is an index already" if is_index(folder) else "is not empty"
                raise OutputError(f"{folder}: {what}; name another folder")
            manifests.make_folders(folder)
            manifests.commit(folder, Manifest(1, chosen.to_json(), keeps=keeps, columns=names))
            Folder(folder.parent).sync()
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror}; name another folder") from None
        return cls(folder, place)

    @classmethod
    def open(cls, path: str | Path, *, recipe: Recipe | None = None, engine: EngineName | Engine = "auto") -> Self:
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
        folder = _folder_at(path)
        found = cls(folder, as_engine(engine))
        if recipe is not None and checks.instance("recipe", recipe, Recipe) != found.recipe:
            mine, theirs = recipe.describe(), found.recipe.describe()
            name = next((key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)), "recipe")
            found.close()
            needed = mine.get(name)
            raise RecipeMismatchError(f"{folder}: made with {name} = {theirs.get(name)}, but {needed} is needed")
        return found

    @property
    def folder(self) -> Path:
        """The folder of the index."""
        return self._opened.folder

    @property
    def recipe(self) -> Recipe:
        """How documents are compared."""
        return self._opened.recipe

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
        ...     _ = writer.add({"text": ["to be or not to be"]})
        ...     len(reader), len(reader.refresh())
        (0, 1)
        """
        self._opened.refresh()
        return self

    def close(self) -> None:
        """Let go of the index; a writer lets others write.

        Examples
        --------
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/news")
        >>> index.close()
        """
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of live documents."""
        self._opened.check_process()
        return self._opened.manifest.documents

    def __contains__(self, id: Any) -> bool:
        """Whether a live document has an id. An id that cannot be one of the index's is refused as in `explain`."""
        return holds(self._opened, id)

    def __reduce__(self) -> Any:
        raise ParameterError(
            f"{self.folder}: an open index cannot be pickled; pass its folder, and call Index.open there"
        )

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {count(self._opened.manifest.documents, 'document')})"

    def _repr_html_(self) -> str:
        return upkeep.as_html(self._opened)

    # ------------------------------------------------------------------------------------------------------ adding

    def add(
        self,
        source: Any,
        *,
        id_column: str | None = None,
        text_columns: str | Sequence[str] | None = None,
        output: str | Path | None = None,
        overwrite: bool = False,
        commit_every: int = 10_000,
        replace: bool = False,
        progress: Progress | bool | None = None,
        reading: Reading | None = None,
    ) -> Added:
        """Add documents, and decide at once of each whether it is kept: whether it has no near-duplicate that is.

        Parameters
        ----------
        source : path, URI, glob, list of them, a table, or an array or Series of strings
            The documents. `open_documents` describes every form.
        id_column : str, default None
            The column of ids. If None, ids are sequence numbers or relative paths.
        text_columns : str or sequence of str, default None
            The columns of text. If None, they are found by their names.
        output : path, default None
            A file to write: what was decided of each document that was added now, with the columns of
            documents.parquet. Who is kept is final until something is removed; `duplicate_of` is the kept document
            that a document resembled most when it was added. If parts of documents are compared, the file has a row
            per part: id, unit, begin, end, kept, source_id, source_unit and resemblance. Rows that were left out are
            listed in a file next to it, d.skipped.parquet next to d.parquet.
        overwrite : bool, default False
            Replace the files that an earlier call wrote there.
        commit_every : int, default 10000
            Documents of a commit, at most: about 6 million shingles end one, too. What was committed stays, whatever
            happens. Changes no result.
        replace : bool, default False
            A document whose id is there takes the place of the earlier one, instead of being an error.
        progress : bool or callable, default None
            As in `dedup`.
        reading : Reading, default None
            How the documents are read: format, encoding, HTML, rows that cannot be read. on_duplicate_id="first" also
            leaves out documents whose id the index has.

        Returns
        -------
        Added
            How many were added, kept and removed. With `ignore_common` all count as kept until `decide`.

        Raises
        ------
        NeardupError
            If the input cannot be read or lacks a column that the index keeps, an id is there already, the index is
            being written by another process or cannot be written; what was committed before is there.

        Notes
        -----
        Files are known by path, size and time: those that are in the index already are not added again, and one that
        was half added before a crash is gone on with.

        While a commit is written, the next documents are looked up, and those after them are sketched; segments are
        merged by one more thread. So memory holds the documents of about three commits, and 2 to 4 bytes for each
        feature, entry and document of the index, as far as it was looked into: at most 1.5 GB.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     index.add({"text": ["to be or not to be", "to be or not to be"]})
        Added(documents=2, kept=1, removed=1, replaced=0, already=0, skipped=0)
        """
        self._opened.check_open()
        commit_every = checks.integer("commit_every", commit_every, 1)
        replace, overwrite = checks.flag("replace", replace), checks.flag("overwrite", overwrite)
        output = checks.optional(checks.path, "output", output)
        reading = chosen_reading(reading, id_column, text_columns, holds=self.recipe.shingles.token_kind.holds)
        with contextlib.ExitStack() as stack:
            where, files = None if output is None else Path(output), list[Path]()
            if where is not None:
                check_decides(self.recipe, "output")
                beside = [skipped_path(where)] if reading.leaves_out else []
                files = stack.enter_context(new_files([where, *beside], overwrite))
            if reading.on_duplicate_id == "suffix":
                raise ParameterError(
                    "on_duplicate_id 'suffix': an id of an index names the same document in every call; use first, "
                    "or give documents ids of their own"
                )
            if reading.on_duplicate_id == "first" and replace:
                raise ParameterError("on_duplicate_id 'first' and replace exclude each other; leave one of them out")
            runtime = stack.enter_context(self._opened.running())
            writer = self._opened.write()
            adding = Adding(self._opened, writer, runtime, Clock(progress), commit_every, replace, where)
            adding.add(source, reading)
            for table, file in zip((adding.decisions, adding.skipped), files, strict=False):
                write_table(table(), file)
            return adding.added()

    # ----------------------------------------------------------------------------------------------------- removing

    def remove(
        self,
        ids: Any = None,
        *,
        column: str | None = None,
        before: Any = None,
        equals: Any = None,
        missing: Literal["return", "error"] = "return",
        erase: bool = False,
        dry_run: bool = False,
    ) -> Removed:
        """Remove documents. What was removed because of them may be kept by the next `decide`.

        Parameters
        ----------
        ids : array or list of integers, strings or bytes, default None
            Ids of the documents, of the type that the index's ids have.
        column : str, default None
            Instead of ids: one of the columns that the index keeps.
        before : date, datetime, number or str, default None
            Remove the documents whose `column` is less than this; never those where it is null or NaN. Dates and times
            may be strings such as "2026-01-31"; a time without a time zone is one of the column's.
        equals : date, datetime, number, bool or str, default None
            Remove the documents whose `column` has this value.
        missing : "return" or "error", default "return"
            What to do with ids that no document has:

            - "return": remove the others, and return these. So a request may be repeated.
            - "error": raise InputError, and remove nothing.
        erase : bool, default False
            Write the files again that hold removed documents, also documents that were removed earlier. Afterwards no
            file of the index holds an id, a column value or a set of shingles of a removed document, unless another
            document has the same words.
        dry_run : bool, default False
            Remove nothing, and only count the documents to remove.

        Returns
        -------
        Removed
            The number of documents, and the ids that are unknown.

        Raises
        ------
        ParameterError, ArgumentTypeError
            If an argument is not as described above, or the index does not keep the column.
        InputError
            If an id is null, or is unknown and `missing` is "error"; nothing was removed then.
        OutputError
            If the index is being written by another process, or cannot be written.

        Notes
        -----
        Without `erase`, what is stored of a removed document vanishes when its segment is merged. With it, each segment
        that has a removed document is written again, which takes as long as copying its file.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     _ = index.add({"id": ["a", "b"], "text": ["to be or not to be", "to be or not"]}, id_column="id")
        ...     index.remove(["a", "c"]), len(index)
        (Removed(documents=1, unknown=['c'], erased=False), 1)
        """
        self._opened.check_open()
        dry_run, erase = checks.flag("dry_run", dry_run), checks.flag("erase", erase)
        missing = checks.one_of("missing", missing, ("return", "error"))
        given = [name for name, value in (("ids", ids), ("before", before), ("equals", equals)) if value is not None]
        if len(given) != 1:
            raise ParameterError("ids, before and equals: give one of them, to remove documents by ids or by a column")
        if (ids is None) != (column is not None):
            raise ParameterError("column: belongs to before or equals, as in before='2026-01-31', column='date'")
        if column is None:
            return remove(self._opened, ids, missing, dry_run, erase)
        value = before if equals is None else equals
        return remove_by_column(self._opened, checks.text("column", column), given[0], value, dry_run, erase)

    def take_down(
        self,
        source: Any,
        *,
        text_columns: str | Sequence[str] | None = None,
        id_column: str | None = None,
        threshold: float | None = None,
        containment: float | None = None,
        direction: Direction = "in",
        statement: str | Path | None = None,
        overwrite: bool = False,
        erase: bool = False,
        dry_run: bool = False,
        reading: Reading | None = None,
    ) -> Removed:
        """Remove the documents that resemble one of some texts or contain it, and write a statement about that.

        Parameters
        ----------
        source : documents as in `dedup`
            The texts. They need not be in the index.
        text_columns : str or sequence of str, default None
            The columns of text. If None, they are found by their names.
        id_column : str, default None
            The column of ids, which the statement repeats. If None, it is the row number.
        threshold : float in (0, 1], default None
            Least resemblance. If None, the index's.
        containment : float in (0, 1], default None
            Least containment, 0.9 if None. An index that was made without `containment` is searched by resemblance
            alone.
        direction : "in", "of" or "either", default "in"
            By containment, which documents to remove:

            - "in": the documents that contain a text.
            - "of": the documents that a text contains.
            - "either": both.
        statement : path, default None
            A file of JSON to write: digests of the texts, the documents that were removed, and what was promised.
            `neardup info --check` proves it again.
        overwrite : bool, default False
            Replace a statement that an earlier call wrote.
        erase : bool, default False
            As in `remove`. The statement then holds digests of the removed ids, and no ids.
        dry_run : bool, default False
            Remove nothing and write nothing, and only count the documents to remove.
        reading : Reading, default None
            How the texts are read.

        Returns
        -------
        Removed
            The number of documents.

        Raises
        ------
        InputError
            If the texts cannot be read.
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        OutputError
            If the index is being written by another process, or the index or the statement cannot be written.

        Notes
        -----
        By method "exact" and resemblance every document at the threshold is found. Other methods, and containment, find
        a document with a probability, which the statement names as `promise`.

        Examples
        --------
        >>> import tempfile
        >>> texts = ["to be or not to be that is the question", "to be or not to be that is a question", "all else"]
        >>> with Index.create(tempfile.mkdtemp() + "/news", method="exact", threshold=0.4) as index:
        ...     _ = index.add({"id": ["a", "b", "c"], "text": texts}, id_column="id")
        ...     index.take_down({"text": texts[:1]}).documents, len(index)
        (2, 1)
        """
        self._opened.check_open()
        reading = chosen_reading(reading, id_column, text_columns, holds=self.recipe.shingles.token_kind.holds)
        limits = limits_of(self.recipe, self._opened.finder, threshold, None, None)
        share = 0.9 if containment is None else containment
        by_content: by_elements.ContainmentQuery | None = self._containment(share, direction, None, None)
        if self._opened.manifest.keeps.containment is None:
            if containment is not None or direction != "in":
                raise InputError(f"{self.folder}: cannot search by containment; make an index with containment=16")
            by_content = None
        flags = checks.flag("erase", erase), checks.flag("dry_run", dry_run)
        place = None if statement is None else Path(checks.path("statement", statement))
        with contextlib.ExitStack() as stack:
            file = None
            if place is not None and not flags[1]:
                file = stack.enter_context(new_file(place, checks.flag("overwrite", overwrite), is_ours=is_statement))
            documents = open_documents(source, reading=reading, other_columns=self.recipe.within)
            return take_down(self._opened, documents, limits, by_content, file, *flags)

    def explain(self, ids: Any) -> pa.Table:
        """Return the decisions about documents, from when they were added, with the columns that the index keeps.

        Parameters
        ----------
        ids : array or list of integers, strings or bytes
            Of the type that the index's ids have. Ids that no document has are left out.

        Returns
        -------
        pyarrow.Table
            The columns of documents.parquet, then `awaits` and the columns of the index; a row for each id, in the
            given order. `awaits` is true for a document that was removed because of one that is gone: the next `decide`
            may keep it, and `duplicate_of` is null if it has no other copy.

        Raises
        ------
        ParameterError, InputError
            If the ids are not an array or a list of the index's type, or one is null.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     _ = index.add({"id": ["a", "b"], "text": ["to be or not to be"] * 2}, id_column="id")
        ...     index.explain(["b"]).select(["id", "kept", "duplicate_of"]).to_pylist()
        [{'id': 'b', 'kept': False, 'duplicate_of': 'a'}]
        """
        return explain(self._opened, ids)

    # ------------------------------------------------------------------------------------------------------- asking

    def query(
        self,
        source: Any,
        *,
        id_column: str | None = None,
        text_columns: str | Sequence[str] | None = None,
        threshold: float | None = None,
        radius: int | None = None,
        nearest: int | None = None,
        containment: float | None = None,
        direction: Direction | None = None,
        common: int | None = None,
        columns: str | Sequence[str] = (),
        reading: Reading | None = None,
    ) -> pa.Table:
        """Find the live documents that resemble a text, or each of many; or that contain it, or are contained in it.

        If the index compares parts of documents, each part of a text is looked up, and parts are found.

        Parameters
        ----------
        source : str, or documents as in `dedup`
            A str is one text; to name a file, give a Path, or a list of paths.
        id_column : str, default None
            The column of ids, which `query_id` repeats. If None, it is the row number.
        text_columns : str or sequence of str, default None
            The columns of text. If None, they are found by their names.
        threshold : float, default None
            Least resemblance; the index's unless given. Its filter is made for the index's: of pairs that resemble each
            other less, fewer become candidates. An index by the exact method takes its threshold or above.
        radius : int, default None
            By simhash, bits in which simhashes may differ: at most the index's, which is usual.
        nearest : int, default None
            The most documents for each query.
        containment : float in (0, 1], default None
            Ask for containment, |A n B| / |A|, instead of resemblance, and for so much at least; of an index that was
            made with `containment`. Excludes `threshold`.
        direction : "in", "of" or "either", default None
            By containment, which documents to find; "in" unless given.

            - "in": the documents that the query is contained in.
            - "of": the documents that are contained in the query.
            - "either": both; the containment is the larger one of the two, |A n B| divided by the smaller size.
        common : int, default None
            Shingles that more documents have (copies count once) are not followed; 10,000 unless given.
        columns : str or list of str, default ()
            Columns that the index keeps, to give with each document.
        reading : Reading, default None
            How the queries are read: format, encoding, HTML. For one text only `html` is allowed. Rows that cannot be
            read are always an error.

        Returns
        -------
        pyarrow.Table
            query_id, id, resemblance, low, high, exact, kept, awaits: best first, ties in order of sequence, one query
            after the other. `query_id` is 0 for a single text. Resemblance is exact; in an index without sets it is
            the share of equal samples, an estimate between `low` and `high` with 99% confidence, and `exact` is false.
            In an index of simhashes without sets, `cosine` takes its place: the estimated cosine of the angle between
            the weights of both documents. `pairs` names the pairs whose interval is too narrow. `kept` says whether
            the document was kept when it was added, and `awaits` whether it was removed because of a document that is
            gone, so that the next `decide` may keep it; by simhash, `distance` is the number of bits in which the
            simhashes differ. If parts of documents are compared, query_unit, query_begin and query_end say which part
            of the query was looked up, and unit, begin and end which part of the document was found, in bytes of the
            texts.

            With `containment`: that in place of resemblance, exact too, and num_elements and num_not_followed. A query
            is looked up by its elements, about every m-th of its shingles. Of s elements, a document that has the share
            c or more is found with probability 0.99 (0.98995 where all of them are needed), or 1 - (1 - c)**s if that
            is less: index/containment.py says why.

            `neardup_gpu.index.notes_of` gives the notes of an answer: queries that were too short to be looked up,
            queries with elements that were not followed, and, after a removal, the documents that await the next
            decision.

        Raises
        ------
        InputError
            If the queries cannot be read, or the index was made without what containment needs.
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        DamagedError
            If what decides the answer is not as it was written.

        Examples
        --------
        >>> import tempfile
        >>> from neardup_gpu import Shingles
        >>> recipe = Recipe(shingles=Shingles(2), method="minhash", threshold=0.5)
        >>> with Index.create(tempfile.mkdtemp() + "/news", recipe=recipe) as index:
        ...     _ = index.add({"text": ["to be or not to be", "that is the question"]})
        ...     index.query("to be or not to go")["resemblance"].to_pylist()
        [0.8]
        """
        self._opened.check_open()
        reading = chosen_reading(reading, id_column, text_columns, holds=self.recipe.shingles.token_kind.holds)
        _check_answers_all(reading)
        answer: Answer = partial(
            near_documents, limits=limits_of(self.recipe, self._opened.finder, threshold, radius, nearest)
        )
        if containment is not None:
            if threshold is not None or radius is not None:
                other = "threshold" if radius is None else "radius"
                raise ParameterError(f"{other} and containment: both say what is near; leave one of them out")
            if self._opened.manifest.keeps.containment is None:
                raise InputError(f"{self.folder}: cannot search by containment; make an index with containment=16")
            limits = self._containment(containment, direction, common, nearest)
            answer = partial(by_elements.containing_documents, limits=limits)
        elif direction is not None or common is not None:
            raise ParameterError("direction and common: are for containment; give that too, or leave them out")
        kept = self._opened.manifest.column_types
        names = list(kept_of(checks.columns("columns", columns, none=True), kept, "columns"))
        if isinstance(source, str):
            if self.recipe.shingles.token_kind.of_integers:
                raise ParameterError("tokens 'ids': one text is given, and no integers; give a table or a Ragged")
            _check_no_file(reading)
            return query_text(self._opened, source, reading.html, answer, names)
        return query_documents(
            self._opened, open_documents(source, reading=reading, other_columns=list(kept)), answer, names
        )

    def passages(
        self,
        source: Any,
        *,
        id_column: str | None = None,
        text_columns: str | Sequence[str] | None = None,
        reading: Reading | None = None,
        **settings: Any,
    ) -> SharedText:
        """Find the passages that a text, or each of many, shares with the live documents of the index.

        The index was made with `keep_tokens`. The answer is that of `neardup_gpu.passages` for the same texts and
        documents, with the documents in the order in which they were added.

        Parameters
        ----------
        source : str, or documents as in `dedup`
            A str is one text, whose id is 0; to name a file, give a Path, or a list of paths. They are read twice.
        id_column : str, default None
            The column of ids. If None, it is the row number.
        text_columns : str or sequence of str, default None
            The columns of text. If None, they are found by their names.
        reading : Reading, default None
            How the texts are read. For one text only `html` is allowed. Rows that cannot be read are always an error.
        **settings : keywords
            The fields of `PassageSettings` but `tokens`, which the index says: length, gap, within, date, max_partners
            and ignore_common. Columns of `within` and `date` are those that the index keeps.

        Returns
        -------
        SharedText
            Tables of passages, of texts and of the documents that share a passage, and the report. Places are bytes of
            the texts as they were read.

        Raises
        ------
        InputError
            If the texts cannot be read twice, or the index was made without `keep_tokens`.
        ParameterError, ArgumentTypeError
            If an argument is not as described above.
        DamagedError
            If what decides the answer is not as it was written.

        Notes
        -----
        All tokens of the index are searched, then the documents that may share a passage are compared. Memory holds
        these documents and their tokens, not the index.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news", keep_tokens=True) as index:
        ...     _ = index.add({"text": ["He said: to be, or not to be!", "All else is silence."]})
        ...     found = index.passages("To be or not to be, that is the question", length=4)
        >>> found.passages.select(["begin", "end", "source_id", "source_begin", "source_end"]).to_pylist()
        [{'begin': 0, 'end': 18, 'source_id': 0, 'source_begin': 9, 'source_end': 28}]
        """
        self._opened.check_open()
        kind = self._opened.manifest.keeps.tokens
        if kind is None:
            raise InputError(
                f"{self.folder}: keeps no tokens to find passages by; make a new index by `neardup index create "
                "--keep-tokens`, or by Index.create with keep_tokens"
            )
        if "tokens" in settings:
            raise ParameterError(f"tokens: those that the index keeps are {kind}; leave it out")
        how = settings_of(PassageSettings, "passages", settings | {"tokens": kind})
        reading = chosen_reading(reading, id_column, text_columns)
        _check_answers_all(reading)
        if isinstance(source, str):
            _check_no_file(reading)
            source = {"text": [source]}
        names = [*how.within, *([] if how.date is None else [how.date])]
        for name in names:
            kept_of([name], self._opened.manifest.column_types, "date" if name == how.date else "within")
        return shared_passages(self._opened, open_documents(source, reading=reading, other_columns=names), how)

    @staticmethod
    def _containment(share: Any, direction: Any, common: Any, nearest: Any) -> by_elements.ContainmentQuery:
        least = checks.fraction("containment", share, zero=False, hint="0.9 is usual")
        way = checks.one_of("direction", "in" if direction is None else direction, DIRECTIONS)
        most = checks.integer("common", by_elements.COMMON if common is None else common, 1)
        return by_elements.ContainmentQuery(least, way, most, checks.optional(checks.integer, "nearest", nearest, 1))

    # ----------------------------------------------------------------------------------------------------- deciding

    def decide(
        self,
        *,
        keep: str = "first",
        cluster: Clustering = "greedy",
        counts: bool = False,
        output: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress | bool | None = None,
    ) -> Result:
        """Decide of all live documents which to keep: as `dedup` of them would, in order of their sequence.

        Parameters
        ----------
        keep : str, default "first"
            Which document of a group is kept: "first", "longest", or by a column that the index keeps, "date" or
            "date:desc"; several keys have commas between them, as in `dedup`.
        cluster : "greedy" or "components", default "greedy"
            As in `dedup`.
        counts : bool, default False
            Add the columns `copies` and `near`, which count the documents that each kept one stands for: see `Writing`.
        output : path, default None
            A folder to write: documents.parquet, pairs.parquet, units.parquet if parts of documents are compared, and
            report.json.
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
        The index does not change. It keeps no fingerprints of texts: `kind` is "same_words" where `dedup` says
        "identical". The pairs that it stores suffice as long as nothing was removed and what came first
        is kept; else those of documents with more than `max_partners` near-duplicates are found anew among stored sets.

        Examples
        --------
        >>> import tempfile
        >>> from neardup_gpu import Shingles
        >>> recipe = Recipe(shingles=Shingles(2), method="minhash", threshold=0.5)
        >>> with Index.create(tempfile.mkdtemp() + "/news", recipe=recipe) as index:
        ...     _ = index.add({"text": ["to be or not to be", "to be or not to go", "that is the question"]})
        ...     index.decide().documents["kept"].to_pylist()
        [True, False, True]
        """
        self._opened.check_open()
        keep = checked_rule(checks.text("keep", keep))
        kept_of(keep_columns(keep), self._opened.manifest.column_types, f"keep {keep!r}")
        recipe = changed_settings(self.recipe, keep=keep, cluster=cluster)
        output = checks.optional(checks.path, "output", output)
        if (counts := checks.flag("counts", counts)) and recipe.unit.divides:
            raise ParameterError(f"counts and unit '{recipe.unit}': parts are counted in units.parquet; leave one out")
        return decide(self._opened, recipe, output, checks.flag("overwrite", overwrite), Clock(progress), counts)

    # ------------------------------------------------------------------------------------------ looking after it

    def compact(self, *, rebuild: bool = False) -> int:
        """Merge all segments into one, in which nothing is dead. It is never needed: adding merges by itself.

        Parameters
        ----------
        rebuild : bool, default False
            Also make the index's tables, pairs and decisions again from what it stores of its documents, as if they
            were added anew. It repairs an index if `check` says that a table is wrong.

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
        ...     _ = index.add({"text": ["to be", "or not to be"]}, commit_every=1)
        ...     _ = index.compact()
        ...     index.info()["segments"]
        1
        """
        return upkeep.compact(self._opened, checks.flag("rebuild", rebuild))

    def copy(self, output: str | Path) -> int:
        """Copy the newest commit into a new folder, which is an index of its own. Another process may write meanwhile.

        Parameters
        ----------
        output : path
            A folder that does not exist, or is empty. It appears when the copy is complete.

        Returns
        -------
        int
            Bytes that were copied.

        Raises
        ------
        OutputError
            If `output` is taken, or cannot be written.
        InputError, DamagedError
            If a file of the index is missing or has another form. `check` of the copy compares it with its checksums.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with Index.create(folder + "/news") as index:
        ...     _ = index.add({"text": ["to be", "or not to be"]})
        ...     num_bytes = index.copy(folder + "/backup")
        >>> with Index.open(folder + "/backup") as backup:
        ...     len(backup), backup.check()["bytes"] <= num_bytes
        (2, True)
        """
        self._opened.check_open()
        return upkeep.copy(self._opened.folder, checks.path("output", output))

    def check(self, *, all: bool = False) -> dict[str, Any]:
        """Compare every file of the index with its checksums, and its tables with the sets that it stores.

        Parameters
        ----------
        all : bool, default False
            Compare the tables of all documents. Otherwise a sample of each segment is compared, which finds a table
            with 2% wrong rows with probability 0.999.

        Returns
        -------
        dict
            What was looked at: files, bytes, documents, entries, pairs, and how many entries were compared.

        Raises
        ------
        DamagedError
            If a file is not as it was written, or a table is not that of the sets; the message names the file.

        Notes
        -----
        The tables by which candidates are found are made again from sets, or from stored simhashes or min-hash samples.
        They cannot be made again in a min-hash index without sets that stores only some bits of each sample, unless
        candidates share segments. Tables of ids and of equal texts are not compared.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     index.check()["files"]
        1
        """
        return upkeep.check(self._opened, checks.flag("all", all))

    def info(self) -> dict[str, Any]:
        """Return the counts and sizes of the index.

        Returns
        -------
        dict
            Counts, bytes, the recipe and the inputs; ready for JSON.

        Examples
        --------
        >>> import tempfile
        >>> with Index.create(tempfile.mkdtemp() + "/news") as index:
        ...     _ = index.add({"text": ["to be", "to be"]})
        ...     info = index.info()
        ...     info["documents"], info["entries"]
        (2, 1)
        """
        return upkeep.info(self._opened)


def _check_answers_all(reading: Reading) -> None:
    """Raise ParameterError if a query may be left out when it is read."""
    if reading.leaves_out:
        name = "on_error" if reading.skips else "on_duplicate_id"
        raise ParameterError(
            f"{name} {getattr(reading, name)!r}: a query without an answer would be missing; leave it out"
        )


def _check_no_file(reading: Reading) -> None:
    """Raise ParameterError if a text that is given is to be read like a file."""
    for each in fields(Reading):
        if each.name != "html" and getattr(reading, each.name) != each.default:
            raise ParameterError(f"{each.name}: one text is given, and no file to read; leave it out")


def _folder_at(path: str | Path) -> Path:
    """Return the folder of an index; a URI is refused, because files of an index are mapped."""
    given_path = checks.path("path", path)
    refuse_uri(given_path, "the files of an index are mapped into memory; name a folder")
    return Path(given_path)
