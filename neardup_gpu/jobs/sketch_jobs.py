"""Sketch files: documents summarised in a Parquet file, and pairs found among such files without the text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from .. import checks
from ..arguments import Arguments
from ..data import arrow, one_array, taken
from ..definitions import METADATA_KEY
from ..documents.reading_options import Reading, chosen_reading
from ..documents.writing_options import Writing
from ..engine.arrays import apart, take_rows
from ..engine.choice import kernel
from ..engine.clock import Clock, Progress, with_bars
from ..engine.contract import Runtime
from ..engine.pieces import Numbers
from ..engine.settings import Engine, EngineName, as_engine, for_text
from ..engine.threads import on_threads
from ..errors import ParameterError
from ..kernels import shared
from ..log import log
from ..methods import MethodName, check_able, check_sketches
from ..methods.contract import Sketch
from ..methods.elements import may_reach, shares
from ..recipe import Recipe, choose_recipe
from ..report import count
from ..results.sketch_files import NUM_SHINGLES, array_of, arrays_of, distinct_files, read_sketches
from ..results.sketch_writing import SketchFiles, SketchWriter, counted, new_places, reported
from ..stages.conditions import WITHIN
from ..stages.decisions import found_by, identical
from ..stages.sketching import Sketcher
from ..store.outputs import new_file
from ..store.parquet import write_table
from ..tasks.job import sketch_in_tasks
from ..tasks.workers import Workers
from .bounded import text_bytes

N = TypeVar("N", bound=tuple)

ESTIMATED = 1 << 16
"""Pairs whose sketches are compared at a time."""


@with_bars
def sketch(
    source: Any,
    output: str | Path,
    *,
    id_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    method: MethodName | Sketch = "minhash",
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
    reading: Reading | None = None,
    recipe: Recipe | None = None,
    shard_bytes: int | str | None = None,
    workers: Workers | None = None,
) -> dict[str, Any]:
    """Summarise documents in a Parquet file, in which `pairs` finds pairs without the text.

    Columns: id; num_tokens int64; num_shingles int64, distinct ones, by methods that sketch shingles; and the method's
    own columns, which its `schema` lists. Sketches of documents without tokens are null.

    If document frequencies had to be counted, they are written to ``s.frequencies.parquet`` next to ``s.parquet``,
    so that later documents can be weighed with them. With `on_error="skip"`, ``s.skipped.parquet`` gets the rows that
    cannot be read.

    The sketches are written while documents are read, in row groups of 16 MiB. Only the ids of all documents stay in
    memory, because they are compared with each other at the end.

    Parameters
    ----------
    source : path, URI, glob, list of them, a table, or an array or Series of strings
        The documents. `open_documents` describes every form.
    output : path
        The Parquet file to write; with `shard_bytes`, the folder.
    id_column : str, default None
        The column of ids. If None, ids are row numbers or relative paths.
    text_columns : str or sequence of str, default None
        The columns of text. If None, they are found by their names.
    method : Sketch, or a name in `METHODS`, default "minhash"
        How documents are summarised. The methods "exact" and "containment" keep no sketches.
    overwrite : bool, default False
        Replace the file or folder at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        What the job computes with. Changes no result.
    progress : bool or callable, default None
        True shows bars, on stderr or in a notebook. A function is called with a stage's name, the number of items done
        and their total, or None where the total is not known: documents, pairs or fingerprints. Where files do not say
        how many documents they hold, the number is estimated from the bytes read so far. The log has a line for each
        stage either way.
    reading : Reading, default None
        How the documents are read: format, encoding, HTML, rows that cannot be read.
    recipe : Recipe, default None
        All settings that change results: shingles, seed, and the threshold that a filter is chosen for. Excludes
        `method`, which a recipe holds as well.
    shard_bytes : int or str, default None
        Write the sketches into files of about this size, such as "1GB": ``sketches/part-00000.parquet`` and so on, in
        the folder `output`, with a report.json that lists them. In a job of tasks each task writes files of its own, at
        least one per slice. If None, `output` is one file.
    workers : Workers, default None
        If given, the job is cut into tasks over files in a work folder, which several processes or machines run. A job
        that was interrupted continues when it is started again with the same work folder. The sketches are the same
        and, in one file, so are its bytes.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    NeardupError
        If the input cannot be read, the output cannot be written, or the settings are impossible; see `errors`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sketch({"text": ["to be or not to be", "that is the question"]}, f"{folder}/s.parquet")["documents"]
    2
    """
    recipe = choose_recipe(recipe, "minhash", units=True, method=method)
    arguments = Arguments(
        source=source,
        against=None,
        reading=chosen_reading(reading, id_column, text_columns, holds=recipe.shingles.token_kind.holds),
        recipe=recipe,
        output=checks.path("output", output),
        writing=Writing(shard_bytes=shard_bytes, overwrite=overwrite),
        engine=as_engine(engine),
        progress=progress,
    )
    check_sketches(recipe.method)
    if workers is not None:
        return sketch_in_tasks(arguments, checks.instance("workers", workers, Workers))
    return _sketch_here(arguments)


def _sketch_here(arguments: Arguments) -> dict[str, Any]:
    """Sketch in this process."""
    clock, engine = Clock(arguments.progress), arguments.engine
    recipe, statistics = arguments.recipe.with_statistics(None)
    sources = arguments.opened()
    engine = for_text(engine, lambda: text_bytes(sources))
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_threads(engine.threads))
        counts_first = recipe.method.needs_statistics and statistics is None
        reads = arguments.files_read(sources)
        places = stack.enter_context(new_places(arguments, reads, counts_first=counts_first))
        sources.check_ids_early()
        runtime = stack.enter_context(engine.start())
        first_pass = None
        if counts_first:
            place = engine.temp_dir or places.frequencies.parent
            first_pass = stack.enter_context(contextlib.closing(recipe.method.first_pass(runtime, place)))
        hashed = "document_hash" in recipe.method.schema()
        with SketchFiles(places.sketches, arguments.writing.most_bytes) as files:
            store = SketchWriter(files)
            sketcher = Sketcher(
                recipe, runtime, clock, statistics, first_pass, store=store, hashed=hashed, max_bytes=engine.batch_bytes
            )
            sketched = sketcher.sketch_all(sources)
            with clock.stage("write"):
                store.write(sketcher.recipe)
        counts = {name: getattr(sketched.counts, name) for name in counted(recipe)}
        counts |= sources.documents._repeated_counts
        counts["empty"] = int(np.count_nonzero(sketched.num_tokens == 0))
        if recipe.unit.divides:
            counts["units"] = len(sketched.num_tokens)
        with clock.stage("write"):
            if counts_first and sketcher.statistics is not None:
                sketcher.statistics.write(places.frequencies)
        about = {"backend": runtime.backend, "device": runtime.describe(), "timings": clock.seconds}
        left_out = sketched.counts.left_out_records
        return reported(arguments, sketcher.recipe, places, counts, left_out, sources.skipped, about)


# -------------------------------------------------------------------------------------------------------------- pairs


class _StoredSketches(NamedTuple):
    """Sketches of all documents with tokens, of all files; `rows` are their rows in the files.

    Documents that agree in `identity` count as one: it is the hash of all words, or the simhash if files have no hash.
    `words` are those of their groups, if only documents of equal values are compared.
    """

    rows: np.ndarray
    sketches: Any
    keys: np.ndarray
    identity: np.ndarray
    num_shingles: np.ndarray
    words: np.ndarray | None


@with_bars
def pairs(
    sketches: str | Path | list[str | Path],
    output: str | Path | None = None,
    *,
    threshold: float | None = None,
    containment: float | None = None,
    r: int | None = None,
    overwrite: bool = False,
    engine: EngineName | Engine = "auto",
    progress: Progress | bool | None = None,
) -> pa.Table:
    """Find candidate pairs among sketched documents and estimate how alike they are, or how much one contains another.

    Parameters
    ----------
    sketches : path or list of paths
        What `sketch` wrote, files or folders of files, all under one recipe; their order does not matter.
    output : path, default None
        A Parquet file for the table.
    threshold : float from 0 to 1, default None
        Drop pairs whose estimate is lower: of resemblance or, by simhash, of the cosine. All candidates stay, unless
        given.
    containment : float in (0, 1], default None
        Look for documents whose shingles are contained in others at least by this share, instead of documents that
        resemble each other: for sketches by mod-m, and by other methods that have `postings`.
    r : int, default None
        By min-hash, supershingles that must agree; the recipe's, unless given.
    overwrite : bool, default False
        Replace the file or folder that is at `output`.
    engine : Engine, "auto", "cpu", "gpu" or "reference", default "auto"
        Where to run. Changes no result.
    progress : bool or callable, default None
        True shows bars, on stderr or in a notebook. A function is called with a stage's name, the number of items done
        and their total, or None where the total is not known: documents, pairs or fingerprints. The log has a line for
        each stage either way.

    Returns
    -------
    pyarrow.Table
        id_a, id_b, estimate, low, high: the estimated resemblance, by weights if the method has any, and its 99%
        interval, a pair's own. Documents with the same token sequence are one representative, and pairs of 1 to it.

        By simhash: id_a, id_b, cosine, low, high, distance. The cosine is that of the angle between the weights of both
        documents, which can be far from their resemblance. The pairs are chosen by their distance, so that fewer than
        99% of the intervals hold the cosine: docs/concepts/simhash.md has measured shares. Documents with the same
        simhash are one representative, and pairs of distance 0 to it; the log says how many of their pairs are not
        listed.

        With `containment`: id_a, the contained document; id_b, its container; containment, the estimate; low and high;
        num_shingles_a and num_shingles_b. All pairs stay that share an element of their sketches, so that there is an
        estimate, and whose containment could reach the threshold, by its 99% interval: of a document of few elements
        these are many, and the interval says so. Documents that share an element are compared by the rule of buckets;
        what it leaves out is counted in the log.

    Raises
    ------
    InputError, RecipeMismatchError
        If a file cannot be read, was made by another recipe than the first, or lacks what containment needs.
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = sketch({"text": ["to be or not to be"] * 2}, f"{folder}/s.parquet")
    ...     pairs(f"{folder}/s.parquet").select(["id_a", "id_b", "estimate"]).to_pylist()
    [{'id_a': 0, 'id_b': 1, 'estimate': 1.0}]
    """
    paths = checks.paths("sketches", sketches)
    output, overwrite = checks.optional(checks.path, "output", output), checks.flag("overwrite", overwrite)
    threshold, r = checks.optional(checks.fraction, "threshold", threshold), checks.optional(checks.integer, "r", r, 1)
    if containment is not None:
        containment = checks.fraction("containment", containment, zero=False, hint="0.9 is usual")
        for name, value in (("threshold", threshold), ("r", r)):
            if value is not None:
                raise ParameterError(f"{name} and containment: the one is for resemblance; leave one of them out")
    clock, engine = Clock(progress), as_engine(engine)
    with contextlib.ExitStack() as stack:
        runtime = stack.enter_context(engine.start())
        file = stack.enter_context(new_file(output, overwrite, distinct_files(paths))) if output is not None else None
        with clock.stage("read"):
            if containment is None:
                table, recipe = read_sketches(paths, r)
            else:
                table, recipe = read_sketches(paths, sized=True, settings=("bucket_limit", "bucket_probe"))
                check_able(recipe.method, "postings", "finds no containment", f"{paths[0]}: ")
            recipe = recipe if r is None else recipe.with_(r=r)
            stored = _stored(table, recipe, paths)
            clock.report("read", len(table), len(table))
        if containment is None:
            columns = _like(stored, recipe, threshold, clock, runtime)
        else:
            columns = _containing(stored, recipe, containment, clock, runtime)
        ids = one_array(table["id"])
        rows = {side: stored.rows[columns.pop(f"id_{side}")] for side in "ab"}
        if recipe.unit.divides and not recipe.unit.inside:
            codes = array_of(pa.chunked_array([ids.dictionary_encode().indices]))
            apart = codes[rows["a"]] != codes[rows["b"]]
            rows, columns = ({name: each[apart] for name, each in some.items()} for some in (rows, columns))
        named = {f"id_{side}": taken(ids, arrow(some)) for side, some in rows.items()}
        parts = {f"{name}_{side}": (name, some) for side, some in rows.items() for name in recipe.unit.columns}
        named |= {column: arrow(array_of(table[name])[some]) for column, (name, some) in parts.items()}
        values = {name: arrow(each) for name, each in columns.items()}
        found = pa.table({**named, **values}).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})
        if file is not None:
            with clock.stage("write"):
                write_table(found, file)
    return found


def _like(
    stored: _StoredSketches, recipe: Recipe, threshold: float | None, clock: Clock, runtime: Runtime
) -> dict[str, np.ndarray]:
    """The columns of pairs that may resemble each other; of ids, the rows among those stored."""
    with clock.stage("collide"):
        own, copies, stands_for = _copies(stored, runtime)
        candidates = found_by(_resident(stored.keys[own], runtime), recipe, runtime)
        if candidates.accidents > 1 and threshold is None:
            log.warning(
                "about %s of the pairs are expected to agree by accident of fingerprints alone; give a threshold",
                f"{candidates.accidents:,.0f}",
            )
        _warn_of_limits(candidates.large_buckets, "bucket", candidates.uncompared_pairs, recipe)
        left, right = own[runtime.fetch(candidates.pairs.left)], own[runtime.fetch(candidates.pairs.right)]
    with clock.stage("estimate"):
        a, b = np.concatenate([left, stands_for[copies]]), np.concatenate([right, copies])
        sure = len(copies) if stored.identity is not stored.keys else 0  # known to have the same tokens
        unsure = len(a) - sure
        estimate = _in_blocks(recipe.method.estimate_rows, stored.sketches, a[:unsure], b[:unsure], clock, runtime)
        values = [np.concatenate([each, np.ones(sure)]) for each in estimate]
        order = np.lexsort((b, a))
        if threshold is not None:
            order = order[values[0][order] >= threshold]
        a, b = a[order], b[order]
        if not sure and (more := _num_unlisted(a, b, stands_for)):
            log.warning(
                "%s not listed: documents with equal sketches are paired with the first of them alone",
                f"{more:,} further pairs are" if more > 1 else "1 further pair is",
            )
        name = "estimate" if recipe.method.estimates == "resemblance" else recipe.method.estimates
        columns = dict(zip((name, "low", "high"), (each[order] for each in values), strict=True))
        return {"id_a": a, "id_b": b, **columns, **recipe.method.pair_columns(stored.keys, a, b)}


def _containing(
    stored: _StoredSketches, recipe: Recipe, least: float, clock: Clock, runtime: Runtime
) -> dict[str, np.ndarray]:
    """The columns of pairs in which the right one may contain that share of the left one; rows as in `_like`."""
    method = recipe.method
    with clock.stage("collide"):
        own, copies, stands_for = _copies(stored, runtime)
        postings = method.postings(_resident(take_rows(stored.sketches, own), runtime))
        if stored.words is not None:
            postings = apart(postings, stored.words[own])
        run = partial(kernel(shared, runtime.backend), postings.values, postings.offsets, 1)
        left, right, _, large, uncompared, _ = runtime.run(run, method.bucket_limit, method.bucket_probe)
        _warn_of_limits(large, "element", uncompared, recipe)
        left, right = own[runtime.fetch(left)], own[runtime.fetch(right)]
    with clock.stage("estimate"):
        both, in_left, in_right, whole = _in_blocks(method.sampled, stored.sketches, left, right, clock, runtime)
        a, b = np.concatenate([left, right]), np.concatenate([right, left])
        both, number, whole = np.tile(both, 2), np.concatenate([in_left, in_right]), np.tile(whole, 2)
        near = may_reach(both, number, least)
        a, b = a[near], b[near]
        estimate = shares(both[near], number[near], whole[near])
        reaches = estimate.high >= least
        a, b = np.concatenate([a[reaches], copies]), np.concatenate([b[reaches], stands_for[copies]])
        values = [np.concatenate([each[reaches], np.ones(len(copies))]) for each in estimate]
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
        columns = dict(zip(("containment", "low", "high"), (each[order] for each in values), strict=True))
        sizes = {"num_shingles_a": stored.num_shingles[a], "num_shingles_b": stored.num_shingles[b]}
        return {"id_a": a, "id_b": b, **columns, **sizes}


def _num_unlisted(a: np.ndarray, b: np.ndarray, stands_for: np.ndarray) -> int:
    """Count the pairs that are not listed because the first of several identical rows stands for all of them."""
    sizes = np.bincount(stands_for, minlength=len(stands_for))
    between = int((sizes[a] * sizes[b]).sum())  # a row for which another one stands has size 0
    return between + int((sizes * (sizes - 1) // 2).sum()) - len(a)


def _warn_of_limits(number: int, what: str, uncompared: int, recipe: Recipe) -> None:
    """Log how many pairs were not compared in large buckets, if any."""
    if number:
        log.warning(
            "%s with more than %s: %s %s not compared there; sketch them with a larger bucket limit",
            count(number, what),
            count(recipe.method.bucket_limit, "document"),
            count(uncompared, "pair"),
            "was" if uncompared == 1 else "were",
        )


def _copies(stored: _StoredSketches, runtime: Runtime) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows that no earlier row is identical to, the others, and the first identical row of each row."""
    everyone = np.arange(len(stored.rows))
    stands_for = identical(stored.identity, everyone, runtime)
    return np.flatnonzero(stands_for == everyone), np.flatnonzero(stands_for != everyone), stands_for


def _stored(table: pa.Table, recipe: Recipe, paths: list[str]) -> _StoredSketches:
    """Take the arrays out of a table of sketches."""
    rows, sketches, keys, columns = arrays_of(table, recipe, paths)
    sizes = np.zeros(len(table), np.int64)
    if NUM_SHINGLES in table.column_names:
        sizes = array_of(table[NUM_SHINGLES])
    identity = columns.get("document_hash", keys)
    return _StoredSketches(rows, sketches, keys, identity, sizes[rows], columns.get(WITHIN))


def _resident(array: Any, runtime: Runtime) -> Any:
    """Move an array or a Ragged to where it will be read, if there is room."""
    return runtime.put(array) if runtime.keeps(array.nbytes) else array


def _in_blocks(
    function: Callable[..., N], sketches: Any, left: np.ndarray, right: np.ndarray, clock: Clock, runtime: Runtime
) -> N:
    """Yield a method's values for pairs of sketches, a tuple of arrays, block by block."""
    held = _resident(sketches, runtime)

    def told(block: Numbers) -> N:
        some = np.asarray(block.numbers)
        rows, at = np.unique(np.concatenate([left[some], right[some]]), return_inverse=True)
        return function(take_rows(held, rows), at[: len(some)], at[len(some) :])

    starts = range(0, len(left), ESTIMATED)
    blocks = (Numbers(range(first, min(first + ESTIMATED, len(left))), "estimates") for first in starts)
    parts, done = [], 0
    for part in runtime.map(told, blocks):
        parts.append(part)
        done += len(part[0])
        clock.report("estimate", done, len(left))
    empty = function(take_rows(sketches, left[:0]), left[:0], right[:0])
    return type(empty)(*(np.concatenate(each) for each in zip(empty, *parts, strict=True)))


# -------------------------------------------------------------------------------------------------------------- merge


def merge(sketches: Sequence[Any], recipe: Recipe) -> Any:
    """Sketch unions of shingle sets, row by row, from sketches of their parts, if the method has `merge`.

    The result is, bit for bit, the sketch of the union. If the parts are those of one text, the union lacks the
    shingles across each seam, w - 1 of w tokens each, so the sketch of the whole text may differ a little. Of bags, the
    union holds each shingle as often as the part that has it most often.

    Parameters
    ----------
    sketches : list of arrays, or of Ragged
        What the method of the recipe gives by `sketch`: of each part of the unions, all with the same number of rows.
    recipe : Recipe
        What they were made by.

    Returns
    -------
    array or Ragged
        A sketch for each row, in host memory. Cost: a sort of what it is made of.
        Source: Broder 1997, section 3: u = MIN_s(M(A) u M(B)).

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above, or the method cannot merge sketches with these settings.

    Examples
    --------
    >>> import numpy as np
    >>> from neardup_gpu.stages import Ragged
    >>> recipe = Recipe(method="modm")
    >>> parts = [Ragged.from_rows([row], np.uint64) for row in (range(1000), range(500, 1500), range(1500))]
    >>> one, other, both = (recipe.method.sketch(part, seed=recipe.seed) for part in parts)
    >>> bool((merge([one, other], recipe).values == both.values).all())
    True
    """
    check_able(checks.instance("recipe", recipe, Recipe).method, "merge", "cannot merge sketches")
    if not isinstance(sketches, (list, tuple)):
        sketches = [sketches]
    if not sketches:
        raise ParameterError("sketches: none given; give those of each part of the unions")
    parts = [each if hasattr(each, "offsets") else checks.as_array("sketches", each)[0] for each in sketches]
    lengths = {len(part) for part in parts if getattr(part, "ndim", 1)}
    if len(lengths) > 1:
        raise ParameterError(
            f"sketches: of {min(lengths):,} and of {max(lengths):,} rows; give the same number of each part"
        )
    return recipe.method.merge(parts)
