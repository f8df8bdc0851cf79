"""The stages, in order: tokens, shingles, signatures, features, candidates, verified pairs, decisions.

Each stage is a function that can be called alone; `dedup` is all of them over documents of any size. Arrays may be
NumPy's or CuPy's whatever the backend; results are on the backend's device: CuPy's for "gpu", else NumPy's.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup_gpu.kernels import (
    components,
    counts as counts_kernel,
    greedy,
    identical,
    log_weights,
    minhash as minhash_kernel,
    occurrences as occurrences_kernel,
    overlap,
    pairtables,
    resemblance as resemblance_kernel,
    sequences,
    sets as sets_kernel,
    shingles as shingles_kernel,
    simhash as simhash_kernel,
    supershingles as supershingles_kernel,
    tokens as tokens_kernel,
)
from neardup_gpu.kernels._gf2 import mix64_all
from neardup_gpu.kernels._launch import array_module, check_rows, namespace, out_of_memory

from . import __version__, checks, theory
from .data import Pairs, Ragged, arrow
from .documents import Documents, open_documents
from .documents.batches import alike
from .documents.skipped import MAX_DOCUMENT_BYTES
from .engine.backend import Job, home, kernel, resolve, running
from .engine.clock import Clock, Progress, with_bars
from .engine.threads import on_threads
from .errors import ArgumentTypeError, InputError, ParameterError, RecipeMismatchError
from .hamming import index as hamming
from .methods.frequencies import Counter, Frequencies
from .recipe import CLUSTERINGS, METADATA_KEY, AnyRecipe, Recipe, SimhashRecipe, choose_recipe
from .store.artefacts import write_report, write_result
from .store.outputs import new_file, new_files, new_folder
from .store.parquet import write_table
from .store.sketches import read_sketches
from .store.spool import DeviceSpool, Spool

if TYPE_CHECKING:
    from .explanation import Explanation

VERIFY_BYTES = 16 << 20
"""Shingles held at a time while candidates are verified on the host; on a GPU its memory decides."""


# ---------------------------------------------------------------------------------------------------- the stages


def tokenize(documents: Any, recipe: AnyRecipe, *, backend: str | None = None) -> Ragged:
    """Divide documents into tokens, as Rabin fingerprints.

    Parameters
    ----------
    documents : Ragged of uint8, list of str, or pyarrow array or pandas or polars column of strings
        UTF-8; nulls are empty documents.
    recipe : Recipe or SimhashRecipe
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    Ragged of uint64, a row for each document
        In text order. Cost: linear in the bytes. Source: see `kernels/tokens.py`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    checks.recipe_of_kind(recipe)
    return _tokenize(_as_text(documents), recipe, backend)[0]


def _tokenize(text: Ragged, recipe: AnyRecipe, backend: str | None) -> tuple[Ragged, int]:
    run = kernel(tokens_kernel, backend)
    values, offsets, invalid = run(text.values, text.offsets, recipe.material.tokens)
    return Ragged(values, offsets), invalid


def _as_text(documents: Any) -> Ragged:
    if isinstance(documents, Ragged):
        return checks.ragged("documents", documents, np.uint8, "UTF-8 text, or give a list of str")
    if isinstance(documents, str):
        raise ArgumentTypeError("documents: one string given; put it into a list")
    column = checks.texts("documents", documents)
    batches = list(open_documents(pa.table({"text": column})).batches(max_bytes=1 << 62))
    return batches[0].text if batches else Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64))


def shingle(tokens: Ragged, recipe: AnyRecipe, *, backend: str | None = None) -> Ragged:
    """Fingerprint every `recipe.w` consecutive tokens.

    Parameters
    ----------
    tokens : Ragged of uint64
    recipe : Recipe or SimhashRecipe
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    Ragged of uint64, a row for each document
        In text order with repeats. A document of fewer than w tokens has one shingle, one without tokens none.
        Cost: linear. Source: Broder 2000, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    tokens, recipe = checks.ragged("tokens", tokens, np.uint64), checks.recipe_of_kind(recipe)
    run, drawn = kernel(shingles_kernel, backend), recipe.material
    return Ragged(*run(tokens.values, tokens.offsets, recipe.w, recipe.shingling, drawn.shingles, drawn.bags))


def minhash(shingles: Ragged, recipe: Recipe, *, backend: str | None = None) -> np.ndarray:
    """Summarise each shingle set by `recipe.filter.samples` minima.

    The share of equal positions in two rows estimates the resemblance r with standard error sqrt(r (1 - r) / samples).

    Parameters
    ----------
    shingles : Ragged of uint64
    recipe : Recipe
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    array of uint32 or uint64, shape (documents, samples)
        Rows of documents without shingles hold the greatest value. Cost: shingles times samples.
        Source: Broder 2000, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    shingles, recipe = checks.ragged("shingles", shingles, np.uint64), checks.recipe_of_kind(recipe, Recipe)
    run, drawn = kernel(minhash_kernel, backend), recipe.material
    return run(shingles.values, shingles.offsets, drawn.a, drawn.b)


def supershingles(signatures: np.ndarray, recipe: Recipe, *, backend: str | None = None) -> np.ndarray:
    """Fingerprint each signature's k groups of s samples into k features.

    Parameters
    ----------
    signatures : array of uint32 or uint64, shape (documents, samples)
    recipe : Recipe
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    array of uint64, shape (documents, k)
        Two documents of resemblance x share a feature with probability x**s. Source: Broder 2000, section 3.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    recipe = checks.recipe_of_kind(recipe, Recipe)
    shape, hint = (None, recipe.filter.samples), "as minhash makes by the recipe"
    signatures = checks.array("signatures", signatures, f"uint{recipe.bits}", shape, hint=hint)
    run, (k, s, _) = kernel(supershingles_kernel, backend), recipe.filter
    return run(signatures, k, s, recipe.feature_bits, recipe.material.supershingles)


def simhash(
    features: Ragged, recipe: SimhashRecipe, *, frequencies: Frequencies | None = None, backend: str | None = None
) -> np.ndarray:
    """Summarise each document's weighted features by `recipe.bits` bits, which are alike where documents are alike.

    Two documents whose weights are vectors at an angle a differ in each bit with probability close to a / pi.

    Parameters
    ----------
    features : Ragged of uint64
        Tokens or shingles, as `recipe.features` says, with repeats.
    recipe : SimhashRecipe
    frequencies : Frequencies, optional
        For the weighting "tfidf".
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    array of uint64, shape (documents,) for 64 bits, (documents, 2) for 128
        0 for documents without features, as for others by chance. Cost: linear. Source: Manku, Jain and Das Sarma
        2007, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError, RecipeMismatchError
        If an argument is not what is said above, if the weighting needs frequencies that are not given, the recipe
        names others, or it has no use for them.
    """
    features = checks.ragged("features", features, np.uint64)
    recipe = checks.recipe_of_kind(recipe, SimhashRecipe)
    _, frequencies = _with_frequencies(recipe, frequencies)
    if recipe.weighting == "tf":
        return kernel(simhash_kernel, backend)(features.values, features.offsets, None, recipe.bits)
    return _weighted(_counted(features, backend), recipe, frequencies, backend)


class _Counted(NamedTuple):
    """Each document's distinct features, and how often it has each: int64, shape (features,)."""

    distinct: Ragged
    counts: Any


def _counted(features: Ragged, backend: str | None) -> _Counted:
    values, offsets, counts = kernel(counts_kernel, backend)(features.values, features.offsets)
    return _Counted(Ragged(values, offsets), counts)


def _weighted(features: _Counted, recipe: SimhashRecipe, frequencies: Frequencies | None, backend: str | None) -> Any:
    """`simhash` of features that are counted."""
    distinct, counts = features
    if recipe.weighting == "log":
        weights = kernel(log_weights, backend)(counts)
    elif frequencies is None:
        raise ParameterError("frequencies: the weighting 'tfidf' needs them; see Frequencies")
    else:
        weights = counts * frequencies.weigh(distinct.values, backend=backend)
    return kernel(simhash_kernel, backend)(distinct.values, distinct.offsets, weights, recipe.bits)


class Candidates(NamedTuple):
    """Pairs that share r features or whose simhashes are near, and what the bucket limit left out.

    pairs : Pairs
    large_buckets : int
        Buckets of more than `recipe.bucket_limit` documents, over all tables.
    uncompared_pairs : int
        Pairs inside them that the limit left out, counted table by table.
    """

    pairs: Pairs
    large_buckets: int
    uncompared_pairs: int


def collide(
    features: np.ndarray, recipe: AnyRecipe, *, present: np.ndarray | None = None, backend: str | None = None
) -> Candidates:
    """Find all pairs of documents that share at least r of their k features, by sorted pair tables; of simhashes, all
    pairs within the radius, by tables of permuted bits.

    Parameters
    ----------
    features : array of uint64, shape (documents, k), or what `simhash` gives
        Rows in priority order, the best first: a large bucket is compared with its first rows.
    recipe : Recipe or SimhashRecipe
    present : array of bool, shape (documents,), optional
        False for documents without shingles, which are nobody's candidates. All, unless given.
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    Candidates
        Cost: C(k, r) sorts of (key, row). Source: Manasse 3.1, 6.1; Broder 2000, 3; for simhashes see `hamming`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    ResourceError
        If there are more rows than tables can hold.
    """
    if hasattr(features, "shape"):
        check_rows(max(features.shape[:1], default=0), "documents")  # first, as what follows may copy them
    recipe, width = checks.recipe_of_kind(recipe), _width(recipe)
    made_by = "as supershingles makes by the recipe" if isinstance(recipe, Recipe) else "as simhash makes by the recipe"
    shape = (None, width) if width else (None,)
    features = checks.array("features", features, np.uint64, shape, hint=made_by)
    if present is None:
        present = np.ones(len(features), bool)
    present = checks.array("present", present, bool, (len(features),), hint="one for each document")
    if isinstance(recipe, SimhashRecipe):
        rows = np.flatnonzero(home(present))
        limits: Any = {"bucket_limit": recipe.bucket_limit, "bucket_probe": recipe.bucket_probe}
        near = hamming.pairs(home(features)[rows], recipe.radius, collapse=False, backend=backend, **limits)
        left, right = rows[near.left], rows[near.right]
        if resolve(backend) == "gpu":
            left, right = map(namespace().asarray, (left, right))
        return Candidates(Pairs(left, right), near.num_large, near.num_uncompared)
    run = kernel(pairtables, backend)
    left, right, large, uncompared = run(
        features, present, recipe.filter.r, recipe.material.keys, recipe.bucket_limit, recipe.bucket_probe
    )
    return Candidates(Pairs(left, right), int(large), int(uncompared))


class Verified(NamedTuple):
    """Pairs at or above the threshold, and their exact resemblance: float64, shape (pairs,)."""

    pairs: Pairs
    resemblance: np.ndarray


def verify(shingles: Ragged, candidates: Pairs, threshold: float, *, backend: str | None = None) -> Verified:
    """Compute candidates' exact resemblance and drop those below the threshold.

    Parameters
    ----------
    shingles : Ragged of uint64
        Shingles of each document, in any order, repeats allowed.
    candidates : Pairs
    threshold : float
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    Verified
        Cost: a sort of each set, a merge for each pair. Source: Broder 1997, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    shingles = checks.ragged("shingles", shingles, np.uint64)
    candidates = checks.pairs_within("candidates", candidates, len(shingles))
    threshold = checks.fraction("threshold", threshold)
    sets = Ragged(*kernel(sets_kernel, backend)(shingles.values, shingles.offsets))
    left, right = _beside(sets.values, candidates.left, candidates.right)
    return _at_least(threshold, left, right, _resemblances(sets, left, right, threshold, backend))


def _resemblances(sets: Ragged, left: np.ndarray, right: np.ndarray, threshold: float, backend: str | None) -> Any:
    """Exact resemblance of pairs of sets; -1 where sizes alone put it below the threshold."""
    possible = _possible(sets.sizes, left, right, threshold)
    found = array_module(left).full(len(left), -1.0)
    run = kernel(resemblance_kernel, backend)
    found[possible] = resemblance_kernel.resemblance(*run(sets.values, sets.offsets, left[possible], right[possible]))
    return found


def _at_least(threshold: float, left: np.ndarray, right: np.ndarray, found: np.ndarray) -> Verified:
    passed = found >= threshold
    return Verified(Pairs(left[passed], right[passed]), found[passed])


def _beside(array: Any, *others: Any) -> tuple[Any, ...]:
    """Other arrays where the first one is: in host memory, or on the GPU."""
    if isinstance(array, np.ndarray):
        return tuple(home(other) for other in others)
    return tuple(array_module(array).asarray(other) for other in others)


def _take(array: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, where it is."""
    return array[_beside(array, rows)[0]]


def _possible(sizes: np.ndarray, left: np.ndarray, right: np.ndarray, threshold: float) -> np.ndarray:
    """Numbers of the pairs whose sizes allow a resemblance of `threshold`.

    |A n B| / |A u B| <= min(|A|, |B|) / max(|A|, |B|), also after rounding, which is monotone.
    """
    xp = array_module(left)
    smaller, larger = xp.minimum(sizes[left], sizes[right]), xp.maximum(sizes[left], sizes[right])
    return xp.flatnonzero(resemblance_kernel.resemblance(smaller, larger) >= threshold)


def keep(
    num_documents: int,
    verified: Verified,
    recipe: AnyRecipe,
    *,
    pinned: np.ndarray | None = None,
    backend: str | None = None,
) -> np.ndarray:
    """Decide which documents stay.

    Parameters
    ----------
    num_documents : int
    verified : Verified
        Rows in priority order.
    recipe : Recipe or SimhashRecipe
        "greedy": a document goes exactly when it has a pair with one already kept. "components": each connected
        component keeps its first document.
    pinned : array of bool, shape (documents,), optional
        Documents that stay whatever happens: the reference set of `--against`.
    backend : "reference", "cpu" or "gpu", optional

    Returns
    -------
    array of int64, shape (documents,)
        For each document itself if it stays, else the kept one that stands for it: under "greedy" the one it
        resembles most, ties to the better priority. Source: Broder 1997, 4.4; Broder 2000, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    num_documents = checks.integer("num_documents", num_documents, 0, checks.MOST_ROWS)
    checks.instance("verified", verified, Verified, "verify makes one")
    pairs = checks.pairs_within("verified.pairs", verified.pairs, num_documents)
    resemblance = checks.array(
        "verified.resemblance", verified.resemblance, np.float64, (len(pairs),), convert=True, hint="one for each pair"
    )
    checks.within("verified.resemblance", resemblance, 0, 1)
    recipe = checks.recipe_of_kind(recipe)
    if pinned is None:
        pinned = np.zeros(num_documents, bool)
    pinned = checks.array("pinned", pinned, bool, (num_documents,), hint="one for each document")
    return _keep(num_documents, Verified(pairs, resemblance), recipe, pinned, backend)


def _keep(num_documents: int, verified: Verified, recipe: AnyRecipe, pinned: np.ndarray, backend: str | None) -> Any:
    left, right = verified.pairs.left, verified.pairs.right
    if recipe.cluster == "greedy":
        return kernel(greedy, backend)(num_documents, left, right, verified.resemblance, pinned)
    keeper = kernel(components, backend)(num_documents, left, right)
    xp = array_module(keeper)
    return xp.where(*_beside(keeper, pinned), xp.arange(num_documents), keeper)


# ---------------------------------------------------------------------------------------------- all of it, streaming


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run decided.

    documents : pyarrow.Table
        id, kept, duplicate_of, resemblance, group; in input order. `duplicate_of` and `resemblance` are null for kept
        documents; `group` is the id of the document that was kept. Of files also file, the path below the folder that
        all of them share, and row in it, from 1 (of JSON lines the line).
    pairs : pyarrow.Table
        id_a, id_b, resemblance: the verified pairs between representatives, and one pair with resemblance 1 from each
        exact duplicate to its representative. id_a has the better priority.
    report : dict
        Recipe, counts, timings, recall, what limits left out: what report.json holds.
    recipe : Recipe or SimhashRecipe
    frequencies : Frequencies, optional
        What tokens were weighed by.
    skipped : pyarrow.Table, optional
        file, row, rows, reason: what could not be read, with `on_error="skip"`; see `Documents.skipped`.
    sources : tuple of (Documents, Documents or None), optional
        The documents and the reference set, which `explain` reads again.

    Where a reference set was given, `in_reference` and `a_in_reference` say which ids are of that set. By simhash, both
    tables have a column `distance` (uint8), the bits in which simhashes differ. Where nothing was verified, documents
    of one simhash have one representative, and resemblance is null but for exact duplicates.
    """

    documents: pa.Table
    pairs: pa.Table
    report: dict[str, Any]
    recipe: AnyRecipe
    frequencies: Frequencies | None = None
    skipped: pa.Table | None = None
    sources: tuple[Documents, Documents | None] | None = None

    def explain(self, id: Any, *, full: bool = False) -> Explanation:
        """Say why a document stays or goes: the kept one, their resemblance, and the words in which they differ.

        Parameters
        ----------
        id : int or str
            Read as the ids' own type.
        full : bool
            Leave no words out of the diff.

        Returns
        -------
        Explanation
            It reads the documents again, up to the two that are compared.

        Raises
        ------
        InputError
            If there is no such document, or the documents were a stream, which cannot be read again, or have changed.
        ArgumentTypeError
            If `id` is of another type, or `full` neither True nor False.
        """
        full = checks.flag("full", full)
        id = checks.instance("id", id.item() if isinstance(id, np.generic) else id, (int, str, bytes))
        from .explanation import explained

        if self.sources is None or not all(source.rewindable for source in self.sources if source is not None):
            raise InputError(
                "the documents were a stream, which cannot be read again to explain; pass a table to dedup"
            )
        documents, reference = self.sources
        return explained(
            self.documents,
            self.recipe,
            id,
            lambda: documents,
            lambda: reference or documents,
            name="this result",
            full=full,
        )

    @property
    def kept(self) -> pa.ChunkedArray:
        """Ids of the documents that stay, in input order."""
        return self.documents.filter(self.documents["kept"])["id"]

    @property
    def removed(self) -> pa.Table:
        """Rows of `documents` that go, in input order."""
        return self.documents.filter(pc.invert(self.documents["kept"]))

    def __repr__(self) -> str:
        counts = self.report["counts"]
        return f"Result({counts['documents']:,} documents: {counts['kept']:,} kept, {counts['removed']:,} removed)"

    def _repr_html_(self) -> str:
        from .report import html

        return html(self.report)


@dataclass
class _Sketches:
    """What stays in memory of documents that went by: a few hundred bytes each.

    Features and fingerprints may lie on a GPU, everything else in host memory.
    """

    ids: list[pa.Array] = field(default_factory=list)
    features: list[Any] = field(default_factory=list)
    signatures: list[np.ndarray] = field(default_factory=list)
    fingerprints: list[Any] = field(default_factory=list)
    num_tokens: list[np.ndarray] = field(default_factory=list)
    column: list[pa.Array] = field(default_factory=list)
    documents: int = 0
    text_bytes: int = 0
    tokens: int = 0
    shingles: int = 0
    null_text: int = 0
    invalid_utf8: int = 0
    stripped_pages: int = 0


def _keep_column(recipe: AnyRecipe) -> tuple[str | None, bool]:
    """(column, descending?) of the keep rule; no column for "first" and "longest"."""
    if recipe.keep in ("first", "longest"):
        return None, False
    name, colon, direction = recipe.keep.rpartition(":")
    if colon and direction in ("asc", "desc"):
        return name, direction == "desc"
    return recipe.keep, False


class _Sketched(NamedTuple):
    """What the first stages make of some documents; None for what the recipe does without, or has to wait for."""

    waits: tuple[_Counted, tuple[np.ndarray, np.ndarray]] | None
    shingles: Ragged | None
    signature: Any
    features: Any
    fingerprints: Any
    num_tokens: np.ndarray
    invalid: int


def _sketch_rows(
    text: Ragged,
    recipe: AnyRecipe,
    frequencies: Frequencies | None,
    whole: bool,
    backend: str | None,
    first: int,
    last: int,
) -> _Sketched:
    """The first stages of rows `first` to `last`; `whole`: fingerprints of whole token sequences as well."""
    tokens, invalid = _tokenize(_rows(text, first, last), recipe, backend)
    waits = shingles = signature = features = None
    if isinstance(recipe, Recipe):
        shingles = shingle(tokens, recipe, backend=backend)
        signature = minhash(shingles, recipe, backend=backend)
        features = supershingles(signature, recipe, backend=backend)
    else:
        if recipe.features == "shingles" or recipe.threshold is not None:
            shingles = shingle(tokens, recipe, backend=backend)
        if recipe.weighting == "tfidf" and frequencies is None:
            counted = _counted(tokens, backend)
            held = kernel(occurrences_kernel, backend)(counted.distinct.values)
            waits = counted, (home(held[0]), home(held[1]))
        else:
            weighted = shingles if shingles is not None and recipe.features == "shingles" else tokens
            features = simhash(weighted, recipe, frequencies=frequencies, backend=backend)
    fingerprints = None
    if whole:
        fingerprints = kernel(sequences, backend)(tokens.values, tokens.offsets, recipe.material.documents)
    return _Sketched(waits, shingles, signature, features, fingerprints, home(tokens.sizes), invalid)


class _Waiting:
    """Tokens of documents that go by, waiting until it is known how many documents hold each: 16 bytes for each that is
    distinct in its document."""

    def __init__(self, folder: Path | str | None, job: Job, num_bytes: int) -> None:
        self.spools = [job.spool(folder, num_bytes // 2) for _ in range(2)]
        self._counter = Counter()

    def __enter__(self) -> _Waiting:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the tokens: nothing waits any longer."""
        for spool in self.spools:
            spool.__exit__()

    def add(self, counted: _Counted, occurrences: tuple[np.ndarray, np.ndarray]) -> None:
        distinct, counts = counted
        self._counter.add(occurrences, int((distinct.sizes > 0).sum()))
        for spool, values in zip(self.spools, (distinct.values, counts.view(np.uint64)), strict=True):
            spool.append(Ragged(values, distinct.offsets))

    def spill(self) -> None:
        """Free GPU memory."""
        for spool in self.spools:
            spool.spill()

    def simhashes(self, recipe: SimhashRecipe, clock: Clock, job: Job) -> tuple[Frequencies, np.ndarray]:
        """How many documents hold each token, and what `simhash` gives for all documents, in host memory."""
        frequencies = self._counter.result(recipe.seed)
        offsets = self.spools[0].offsets
        found = []
        for first, last in _runs(offsets[1:] // ((job.sorted_bytes or VERIFY_BYTES) // 8)):
            distinct, counts = (spool.gather(np.arange(first, last)) for spool in self.spools)
            counted = _Counted(distinct, counts.values.view(np.int64))
            found.append(home(_weighted(counted, recipe, frequencies, job.backend)))
            clock.report("weigh", last, len(offsets) - 1)
        return frequencies, _joined(found, np.uint64, _width(recipe))


def _width(recipe: AnyRecipe) -> int:
    """Columns of features; 0 where they are one-dimensional."""
    if isinstance(recipe, Recipe):
        return recipe.filter.k
    return 0 if recipe.bits == 64 else 2


def _distances(simhashes: np.ndarray, left: Any, right: Any) -> np.ndarray:
    """In how many bits some rows differ: uint8, shape (pairs,)."""
    bits = np.bitwise_count(simhashes[home(left)] ^ simhashes[home(right)])
    return bits if bits.ndim == 1 else bits.sum(axis=1, dtype=np.uint8)


def _rows(text: Ragged, first: int, last: int) -> Ragged:
    """Rows `first` to `last`; in host memory, from which they may have to be copied, no more values than theirs."""
    offsets = text.offsets[first : last + 1]
    if not isinstance(offsets, np.ndarray) or (offsets[0] == 0 and offsets[-1] == len(text.values)):
        return Ragged(text.values, offsets)
    values, offsets = text.values[offsets[0] : offsets[-1]], offsets - offsets[0]
    offsets.flags.writeable = False  # as those of a whole batch are: kernels are compiled for one kind of array
    return Ragged(values, offsets)


def _sketch_documents(
    documents: Documents,
    recipe: AnyRecipe,
    clock: Clock,
    job: Job,
    *,
    frequencies: Frequencies | None = None,
    waiting: _Waiting | None = None,
    column: str | None = None,
    spool: Spool | DeviceSpool | None = None,
    signatures: bool = False,
    whole: bool = True,
    max_bytes: int | None = None,
    sources: list[Documents] | None = None,
    before: int = 0,
) -> _Sketches:
    """Stream documents through the first stages; they are one of several `sources`, of which so many came before."""
    kept = _Sketches()
    check_rows(before + (documents.num_rows or 0), "documents")  # which files say, or nobody yet
    if max_bytes is None:
        max_bytes = _batch_bytes(recipe, job)
    spools = ([] if spool is None else [spool]) + ([] if waiting is None else waiting.spools)

    def spill() -> None:
        for each in spools:
            each.spill()

    options = {} if max_bytes is None else {"max_bytes": max_bytes}
    for batch, text in job.staged(documents.batches(columns=() if column is None else (column,), **options)):
        run = partial(_sketch_rows, text, recipe, frequencies, whole, job.backend)
        for part in job.compute(run, batch.text.offsets, batch.ids, spill if spools else None):
            made = [(part.features, kept.features), (part.fingerprints, kept.fingerprints)]
            resident = not signatures and job.holds(sum(array.nbytes for array, _ in made if array is not None))
            for array, those in made:
                if array is not None:
                    those.append(array if resident else home(array))
            if waiting is not None and part.waits is not None:
                waiting.add(*part.waits)
            if spool is not None and part.shingles is not None:
                spool.append(part.shingles)
            if signatures and part.signature is not None:
                kept.signatures.append(home(part.signature))
            kept.num_tokens.append(part.num_tokens)
            kept.tokens += int(part.num_tokens.sum())
            kept.shingles += 0 if part.shingles is None else len(part.shingles.values)
            kept.invalid_utf8 += part.invalid
            del part, made, array  # the next one needs the room
        if column is not None:
            kept.column.append(batch.columns[column])
        kept.ids.append(batch.ids)
        kept.documents += batch.num_rows
        check_rows(before + kept.documents, "documents")
        kept.text_bytes += int(batch.text.offsets[-1] - batch.text.offsets[0])
        kept.null_text += batch.num_null
        clock.report("sketch", before + kept.documents, _num_rows(sources or [documents]))
    kept.stripped_pages = documents.stripped_pages
    return kept


def _num_rows(sources: list[Documents]) -> int | None:
    """Documents of all sources, as far as it is known."""
    numbers = [source.num_rows for source in sources]
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _batch_bytes(recipe: AnyRecipe, job: Job) -> int | None:
    """Text to read at a time, unless told."""
    if isinstance(recipe, Recipe):
        return job.batch_bytes(recipe.shingling, recipe.material.a.nbytes + 8 * recipe.filter.k + 16)
    sorted_tokens = recipe.weighting != "tf"  # by document, which takes as much as bags take
    return job.batch_bytes("bag" if sorted_tokens else recipe.shingling, 8 * recipe.bits + 32)


def _joined(arrays: list[Any], dtype: Any, width: int = 0) -> Any:
    """One array of several, which are then forgotten; on the GPU if they all are."""
    if not arrays:
        return np.empty((0, width) if width else 0, dtype)
    if any(isinstance(array, np.ndarray) for array in arrays):
        arrays[:] = map(home, arrays)
    try:
        joined = array_module(arrays[0]).concatenate(arrays)
    except Exception as error:
        if not out_of_memory(error):
            raise
        joined = np.concatenate(list(map(home, arrays)))
    arrays.clear()
    return joined


def _ids(sketches: _Sketches, documents: Documents, what: str) -> pa.Array:
    """All ids as one array.

    Raises
    ------
    InputError
        If two documents have the same id.
    """
    if not sketches.ids:
        return pa.nulls(0, pa.int64())
    chunks = pa.chunked_array(alike(sketches.ids))
    if chunks.nbytes >= 2**31 and pa.types.is_string(chunks.type):  # too long for one array of 32-bit offsets
        chunks = chunks.cast(pa.large_string())
    ids = chunks.combine_chunks()
    documents.check_unique(ids, what)
    return ids


def _one_type(ids: pa.Array, known: pa.Array, *, rows_only: bool) -> tuple[pa.Array, pa.Array]:
    """Ids of the input and of the reference set as one type; a reference's row numbers may become strings.

    Raises
    ------
    InputError
        If one has integers and the other strings.
    """
    families = (
        (pa.int64(), pa.types.is_integer),
        (pa.large_string(), lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
        (pa.large_binary(), lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind)),
    )
    if len(known) == 0 or ids.type == known.type:
        return ids, known if len(known) else pa.nulls(0, ids.type)
    for common, belongs in families:
        if belongs(ids.type) and belongs(known.type):
            for kind in (common, pa.uint64()):
                with contextlib.suppress(pa.ArrowInvalid):  # a value that it cannot hold
                    return ids.cast(kind), known.cast(kind)
    if rows_only and pa.types.is_integer(known.type) and families[1][1](ids.type):
        return ids, known.cast(ids.type)
    raise InputError(f"ids of the input are {ids.type}, those of the reference set {known.type}; make them one type")


def _priority(recipe: AnyRecipe, num_tokens: np.ndarray, column: pa.ChunkedArray | None) -> np.ndarray:
    """Rows from the best to the worst: int64, shape (documents,). Ties fall to input order; nulls and NaN come last."""
    rows = np.arange(len(num_tokens), dtype=np.int64)
    if recipe.keep == "first":
        return rows
    if recipe.keep == "longest":
        return np.argsort(-num_tokens, kind="stable")
    assert column is not None
    name, descending = _keep_column(recipe)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):  # NaN becomes null, so that both come last in either direction
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        order = pc.sort_indices(
            pa.table({"value": column, "row": arrow(rows)}),
            sort_keys=[("value", "descending" if descending else "ascending"), ("row", "ascending")],
        )
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        raise InputError(f"--keep {recipe.keep}: column {name!r} of type {column.type} has no order") from None
    return order.to_numpy().astype(np.int64)


def _first_by_fingerprint(fingerprints: Any) -> Any:
    """For each row the first row with the same pair of fingerprints: int64, shape (rows,)."""
    xp = array_module(fingerprints)
    order = xp.argsort(fingerprints[:, 1], kind="stable")  # stable: rows ascend within equal fingerprints
    order = order[xp.argsort(fingerprints[order, 0], kind="stable")]
    ordered = fingerprints[order]
    begins = xp.ones(len(order), bool)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = xp.empty(len(order), np.int64)
    first[order] = order[xp.flatnonzero(begins)[xp.cumsum(begins) - 1]]
    return first


def _verify_spooled(
    spool: Spool | DeviceSpool, spool_rows: np.ndarray, candidates: Pairs, threshold: float, clock: Clock, job: Job
) -> Verified:
    """`verify` for shingles in a spool, holding at most `VERIFY_BYTES` of them at a time (or one pair's, if larger).

    The sets of all candidates are sorted once, into a spool of their own; then pairs are compared a connected component
    at a time, so that most sets are read back once.
    """
    left, right = job.put(candidates.left), job.put(candidates.right)
    xp = array_module(left)
    rows = home(xp.unique(xp.concatenate([left, right])))
    rows = rows[np.argsort(spool_rows[rows])]
    place = np.empty(len(spool_rows), np.int64)
    place[rows] = np.arange(len(rows))
    with job.spool(spool.folder, job.sets_bytes) as sets:
        unique = kernel(sets_kernel, job.backend)
        sizes = np.diff(spool.offsets)[spool_rows[rows]]
        for first, last in _runs(np.cumsum(sizes) // ((job.sorted_bytes or VERIFY_BYTES) // 8)):
            shingles = spool.gather(spool_rows[rows[first:last]])
            sets.append(Ragged(*unique(shingles.values, shingles.offsets)))
        there = job.put(place)
        found = _compare_spooled(sets, there[left], there[right], threshold, clock, job)
    return _at_least(threshold, left, right, found)


def _compare_spooled(sets: Spool | DeviceSpool, left: Any, right: Any, threshold: float, clock: Clock, job: Job) -> Any:
    """`_resemblances` of sets in a spool."""
    held_bytes = job.sets_bytes or VERIFY_BYTES
    if 8 * sets.num_values <= held_bytes:
        return _resemblances(sets.gather(np.arange(len(sets.offsets) - 1)), left, right, threshold, job.backend)
    left, right = home(left), home(right)
    found = np.full(len(left), -1.0)
    sizes = np.diff(sets.offsets)
    pairs = _possible(sizes, left, right, threshold)
    component = home(kernel(components, job.backend)(len(sizes), left[pairs], right[pairs]))
    # Inside a giant component: all pairs of one tile of right rows, in the order of their left rows, which are then
    # read one after another.
    tile = np.cumsum(sizes) // (held_bytes // 16)
    pairs = pairs[np.lexsort((right[pairs], left[pairs], tile[right[pairs]], component[right[pairs]]))]
    bounds = resemblance_kernel.blocks_of_pairs(left[pairs], right[pairs], sizes, held_bytes // 8)
    run = kernel(resemblance_kernel, job.backend)
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        block = pairs[first:last]
        rows, at = np.unique(np.concatenate([left[block], right[block]]), return_inverse=True)
        held = sets.gather(rows)
        shared, united = run(held.values, held.offsets, at[: len(block)], at[len(block) :])
        found[block] = home(resemblance_kernel.resemblance(shared, united))
        clock.report("verify", int(last), len(pairs))
    return job.put(found)


@with_bars
def dedup(
    source: Any = None,
    *,
    texts: Any = None,
    text_columns: str | list[str] | None = None,
    id_column: str | None = None,
    html: bool = False,
    glob: str | None = None,
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    against: Any = None,
    recipe: AnyRecipe | None = None,
    method: str = "minhash",
    threshold: float | None = None,
    recall: float | None = None,
    filter: str | tuple[int, int, int] | None = None,
    radius: int | None = None,
    keep: str = "first",
    cluster: str = "greedy",
    frequencies: Frequencies | str | Path | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    temp_dir: str | Path | None = None,
    batch_bytes: int | None = None,
    check: int = 200,
    progress: Progress | bool | None = None,
) -> Result:
    """Find the near-duplicates among documents and decide which to keep.

    Parameters
    ----------
    source : path, URI, glob, list of them, or a table
        See `open_documents`.
    texts : list of str, array or Series of strings, optional
        The texts themselves, instead of `source`; their ids are row numbers.
    text_columns, id_column, html, glob, on_error, max_document_bytes
        How to read it; see `open_documents`. Without an id column, ids are row numbers or relative paths.
    against : like `source`, optional
        A reference set: what resembles it is removed, it is left untouched.
    recipe : Recipe or SimhashRecipe, optional
        Instead of the next seven.
    method : "minhash" or "simhash"
    threshold : float, optional
        Least resemblance of a removed document to the kept one. 0.8 unless given; by simhash, without it nothing is
        verified: the distance decides.
    recall, filter
        See `Recipe.choose`; 0.99 and the filter chosen for it, unless given.
    radius : int, optional
        For simhashes: bits in which they may differ; 3 unless given.
    keep, cluster
        See `Recipe`.
    frequencies : Frequencies or path of such, optional
        For simhashes weighted by "tfidf"; those of the documents (of `against` too) unless given.
    output : path, optional
        A folder to write: documents.parquet, pairs.parquet, kept/ and report.json. It appears whole or not at all.
    overwrite : bool
        Replace what is at `output`.
    backend : "reference", "cpu" or "gpu", optional
        Unless given, what NEARDUP_BACKEND says, else "gpu" if there is a usable one, else "cpu". Changes no result.
    device : int, optional
        Number of the GPU, among those that CUDA_VISIBLE_DEVICES shows; CuPy's current one unless given.
    gpu_memory : int or str, optional
        Bytes of GPU memory to use, or a size such as "20GB"; four fifths of what is free unless given.
    threads : int, optional
        All processors unless given.
    temp_dir : path, optional
        Where shingles wait for verification, 8 bytes each; beside `output`, else the system's temporary folder. With a
        GPU they wait in its memory, as far as they fit there.
    batch_bytes : int, optional
        Text read at a time. Changes no result. Unless given, 16 MiB; with a GPU what its memory allows, up to 256 MiB.
    check : int
        Documents sampled for the check of recall; 0 for none.
    progress : bool or callable, optional
        True shows bars, on stderr or in a notebook. A function is called with a stage's name, what is done and of how
        much, or None where that is not known: documents, pairs or fingerprints. Where files do not say how many
        documents they hold, the number is estimated from the bytes read so far. The log says a line a stage either way.

    Returns
    -------
    Result

    Raises
    ------
    NeardupError
        See `errors`: input that cannot be read, output that cannot be written, impossible settings.

    Notes
    -----
    Memory: a few hundred bytes a document and some batches, whatever the length of the text. Time: two passes over
    the input when `output` is given, else one. On a GPU a batch that does not fit in its memory is halved.
    """
    checks.job(device, threads)
    output, overwrite = checks.optional(checks.path, "output", output), checks.flag("overwrite", overwrite)
    temp_dir = checks.optional(checks.path, "temp_dir", temp_dir)
    batch_bytes = checks.optional(checks.integer, "batch_bytes", batch_bytes, 1)
    check = checks.integer("check", check, hint="0 turns the check of recall off")
    settings = {"threshold": threshold, "recall": recall, "filter": filter, "radius": radius}
    settings |= {"method": method, "keep": checks.text("keep", keep)}
    settings["cluster"] = checks.one_of("cluster", cluster, CLUSTERINGS)
    recipe = _recipe_or(recipe, settings, {"method": "minhash", "keep": "first", "cluster": "greedy"})
    clock = Clock(progress)
    recipe, known = _with_frequencies(recipe, frequencies)
    resolve(backend, device, gpu_memory)  # before anything is opened
    column, _ = _keep_column(recipe)
    reading: dict[str, Any] = {"text_columns": text_columns, "id_column": id_column, "html": html, "glob": glob}
    reading |= {"on_error": on_error, "max_document_bytes": max_document_bytes}
    reading["other_columns"] = [column] if column else []
    documents = open_documents(source, texts=texts, **reading)
    reference = None if against is None else _open_reference(against, reading)
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_threads(threads))
        folder = None
        if output is not None:
            reads = _files_read(documents, reference, frequencies)
            folder = stack.enter_context(new_folder(output, overwrite, reads))
        if folder is not None and not documents.rewindable:
            raise InputError("a stream cannot be read again to write the kept rows; pass a table, or no output")
        documents.check_ids_early("input")
        if reference is not None:
            reference.check_ids_early("reference set")
        job = stack.enter_context(running(backend, device, gpu_memory))
        waiting, spool_bytes = None, job.spool_bytes
        if _has_to_count(recipe, known):
            spool_bytes //= 2
            waiting = stack.enter_context(_Waiting(temp_dir or folder, job, spool_bytes))
        spool = job.spool(temp_dir or folder, spool_bytes)
        stack.enter_context(spool)
        weighing: dict[str, Any] = {"frequencies": known, "waiting": waiting}
        result = _decide(documents, reference, recipe, clock, job, spool, batch_bytes, check, **weighing)
        if folder is not None:
            with clock.stage("write"):
                write_result(folder, result, documents)
        result.report["seconds"] = clock.elapsed
        if folder is not None:
            write_report(folder, result.report)
    return result


def _recipe_or(recipe: AnyRecipe | None, settings: dict[str, Any], usual: dict[str, str]) -> AnyRecipe:
    """The recipe that was given, or else that of the settings; `usual` are values of settings that were not given.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If both were given, or either is impossible.
    """
    if recipe is None:
        return choose_recipe(**settings)
    for name, value in settings.items():
        if value is not None and not (isinstance(value, str) and value == usual.get(name)):
            raise ParameterError(f"recipe and {name}: the recipe holds that; leave one out, or give recipe.with_(...)")
    return checks.recipe_of_kind(recipe)


def _with_frequencies(
    recipe: AnyRecipe, frequencies: Frequencies | str | Path | None
) -> tuple[AnyRecipe, Frequencies | None]:
    """The recipe with the digest of the frequencies that were given, and these.

    Raises
    ------
    ParameterError, RecipeMismatchError
        If the recipe has no use for them, needs others, or names some that were not given.
    """
    if frequencies is None:
        if isinstance(recipe, SimhashRecipe) and recipe.frequencies is not None:
            raise ParameterError(f"frequencies: the recipe is of those of digest {recipe.frequencies}; give them")
        return recipe, None
    name = "frequencies" if isinstance(frequencies, Frequencies) else checks.path("frequencies", frequencies)
    if not isinstance(recipe, SimhashRecipe) or recipe.weighting != "tfidf":
        raise ParameterError("frequencies: only simhashes weighted by 'tfidf' take them; leave them out")
    if not isinstance(frequencies, Frequencies):
        frequencies = Frequencies.load(name)
    frequencies.check(recipe, name)
    if recipe.frequencies not in (None, frequencies.digest):
        raise RecipeMismatchError(f"{name}: of digest {frequencies.digest}, the recipe's have {recipe.frequencies}")
    return recipe.with_(frequencies=frequencies.digest), frequencies


def _has_to_count(recipe: AnyRecipe, frequencies: Frequencies | None) -> bool:
    """Whether documents have to be counted by token before they can be weighed."""
    return isinstance(recipe, SimhashRecipe) and recipe.weighting == "tfidf" and frequencies is None


def _files_read(
    documents: Documents, reference: Documents | None, frequencies: Frequencies | str | Path | None
) -> list[str]:
    """All files on this machine that a run reads."""
    files = documents.local_files + ([] if reference is None else reference.local_files)
    return files if frequencies is None or isinstance(frequencies, Frequencies) else [*files, str(frequencies)]


def _open_reference(against: Any, reading: dict[str, Any]) -> Documents:
    """A reference set, read like the input; where it is text files, which have no columns, those are left out."""
    try:
        return open_documents(against, **reading)
    except InputError:
        with contextlib.suppress(InputError):
            files = open_documents(against, **reading | {"text_columns": None, "id_column": None})
            if files.format == "text":
                return files
        raise


def _decide(
    documents: Documents,
    reference: Documents | None,
    recipe: AnyRecipe,
    clock: Clock,
    job: Job,
    spool: Spool | DeviceSpool,
    batch_bytes: int | None,
    check: int,
    *,
    frequencies: Frequencies | None,
    waiting: _Waiting | None,
) -> Result:
    """Everything but writing. Rows here are those of the reference set, if there is one, then those of the input."""
    column, _ = _keep_column(recipe)
    verifies = recipe.threshold is not None
    options: dict[str, Any] = {"max_bytes": batch_bytes, "frequencies": frequencies, "waiting": waiting}
    options["sources"] = [documents] if reference is None else [reference, documents]
    if verifies:
        options["spool"] = spool
    with clock.stage("sketch"):
        known = _Sketches()
        if reference is not None:
            known = _sketch_documents(reference, recipe, clock, job, **options)
        sketches = _sketch_documents(documents, recipe, clock, job, column=column, before=known.documents, **options)

    if sketches.documents == 0:
        raise _no_documents(documents)
    if waiting is not None and isinstance(recipe, SimhashRecipe):
        with clock.stage("weigh"):
            frequencies, found = job.with_room(partial(waiting.simhashes, recipe, clock, job), waiting.spill)
            recipe = recipe.with_(frequencies=frequencies.digest)
            waiting.close()
            sketches.features.append(found)  # of the reference set too, whose features come first
    with clock.stage("collide"):
        num_known, num = known.documents, known.documents + sketches.documents
        ids = _ids(sketches, documents, "input")
        known_ids = _ids(known, reference or documents, "reference set")
        if reference is not None:
            ids, known_ids = _one_type(ids, known_ids, rows_only=reference.id_column is None)
        num_tokens = _joined(sketches.num_tokens, np.int64)
        by_priority = _priority(recipe, num_tokens, pa.chunked_array(sketches.column) if sketches.column else None)
        ranked = np.concatenate([np.arange(num_known), num_known + by_priority])  # rows from the best to the worst
        present = np.concatenate([_joined(known.num_tokens, np.int64), num_tokens])[ranked] > 0
        # From here on rows are ranks, 0 the document of the best priority; `ranked` leads back.
        same_tokens, some = np.arange(num), np.flatnonzero(present)
        fingerprints = _joined(_both(known.fingerprints, sketches.fingerprints), np.uint64, 2)
        same_tokens[some] = some[job.with_room(partial(_first_here, fingerprints, ranked[some], job), spool.spill)]
        features = _joined(_both(known.features, sketches.features), np.uint64, _width(recipe))
        stands_for, simhashes = same_tokens, None
        if isinstance(recipe, SimhashRecipe):
            simhashes = home(features)[ranked]
            if not verifies:
                stands_for = np.arange(num)
                first = partial(kernel(identical, job.backend), simhashes[some])
                stands_for[some] = some[home(job.with_room(first, spool.spill))]
        representatives = np.flatnonzero(present & (stands_for == np.arange(num)))
        rows = ranked[representatives]  # of the representatives, in the order of documents
        fingerprints = home(job.with_room(partial(_take, fingerprints, rows), spool.spill))
        features = job.with_room(partial(_take, features, rows), spool.spill)
        job.release()
        candidates = job.with_room(partial(collide, features, recipe, backend=job.backend), spool.spill)
        pinned = representatives < num_known
        pairs = candidates.pairs
        if num_known:
            pairs = job.with_room(partial(_not_both, job.put(pinned), pairs), spool.spill)

    if recipe.threshold is not None:
        with clock.stage("verify"):
            verifying = partial(_verify_spooled, spool, rows, pairs, recipe.threshold, clock, job)
            there = job.with_room(verifying, spool.spill)
    else:  # the nearer of two simhashes is the one that resembles a document more
        assert simhashes is not None
        nearness = 1 - _distances(simhashes[representatives], pairs.left, pairs.right) / recipe.bits
        there = Verified(pairs, job.put(nearness))

    with clock.stage("decide"):
        keeper, agreement = np.arange(num), np.ones(num)
        keeping = partial(_keep, len(representatives), there, recipe, pinned, job.backend)
        chosen = job.with_room(keeping, spool.spill)
        keeper[representatives] = representatives[home(chosen)]
        agreement[representatives] = home(job.with_room(partial(_resemblance_to, chosen, there), spool.spill))
        verified = Verified(Pairs(home(there.pairs.left), home(there.pairs.right)), home(there.resemblance))
        # Exact duplicates: to their representative if it stays, else where it goes, with its resemblance.
        agreement, keeper = agreement[stands_for], keeper[stands_for]
        keeper[:num_known] = np.arange(num_known)
        if not verifies:
            agreement = np.where(same_tokens == same_tokens[keeper], 1.0, np.nan)

    sampled = None
    if check and recipe.threshold is not None:
        with clock.stage("check"):
            removed = keeper[representatives] != representatives
            run = partial(_check_recall, spool, rows, fingerprints, features, pinned, removed)
            sampled = job.with_room(partial(run, candidates, verified, recipe, check, clock, job), spool.spill)

    with clock.stage("decide"):
        all_ids = pa.concat_arrays([known_ids, ids]) if num_known else ids
        rank_of = np.empty(num, np.int64)
        rank_of[ranked] = np.arange(num)
        mine = rank_of[num_known:]  # ranks of the input's documents, in input order
        kept = keeper[mine] == mine
        keeper_rows = ranked[keeper[mine]]
        table = {
            "id": ids,
            "kept": arrow(kept),
            "duplicate_of": all_ids.take(arrow(keeper_rows, kept)),
            "resemblance": arrow(agreement[mine], kept | np.isnan(agreement[mine])),
            "group": all_ids.take(arrow(keeper_rows)),
        }
        table |= documents.places()
        if simhashes is not None:
            table["distance"] = arrow(_distances(simhashes, mine, keeper[mine]), kept)
        exact = np.flatnonzero((stands_for != np.arange(num)) & (np.arange(num) >= num_known))
        a = np.concatenate([representatives[verified.pairs.left], stands_for[exact]])
        b = np.concatenate([representatives[verified.pairs.right], exact])
        found = np.concatenate([verified.resemblance, np.ones(len(exact))])
        if not verifies:
            found = np.where(same_tokens[a] == same_tokens[b], 1.0, np.nan)
        order = np.lexsort((b, a))
        a, b, found = a[order], b[order], found[order]
        paired = {
            "id_a": all_ids.take(arrow(ranked[a])),
            "id_b": all_ids.take(arrow(ranked[b])),
            "resemblance": arrow(found, np.isnan(found)),
        }
        if simhashes is not None:
            paired["distance"] = arrow(_distances(simhashes, a, b))
        if reference is not None:
            table["in_reference"] = arrow(keeper_rows < num_known)
            paired["a_in_reference"] = arrow(a < num_known)
        sizes = np.bincount(keeper[mine][~kept], minlength=num)
        sizes[sizes > 0] += 1
        groups = np.flatnonzero(sizes)
        largest = groups[np.argsort(-sizes[groups], kind="stable")[:5]]
        group_sizes, how_many = np.unique(sizes[groups], return_counts=True)
        exact_here = int(np.count_nonzero(~kept & (same_tokens[mine] != mine)))

    report: dict[str, Any] = {
        "version": __version__,
        "recipe": recipe.describe(),
        "input": documents.describe(),
        "against": None if reference is None else reference.describe(),
        "backend": job.backend,
        "device": job.describe(),
        "threads": numba.get_num_threads(),
        "counts": {
            "documents": sketches.documents,
            "kept": int(kept.sum()),
            "removed": int((~kept).sum()),
            "removed_exact": exact_here,
            "removed_near": int((~kept).sum()) - exact_here,
            "removed_unverified": int(np.count_nonzero(~kept & np.isnan(agreement[mine]))),
            "reference_documents": num_known,
            "empty": int(np.count_nonzero(num_tokens == 0)),
            "null_text": sketches.null_text,
            "invalid_utf8": sketches.invalid_utf8,
            "stripped_pages": sketches.stripped_pages,
            "text_bytes": sketches.text_bytes,
            "tokens": sketches.tokens,
            "shingles": sketches.shingles,
            "representatives": len(representatives),
            "candidate_pairs": len(pairs),
            "verified_pairs": len(verified.pairs) if verifies else 0,
            "groups": len(groups),
        },
        "group_sizes": [[int(size), int(count)] for size, count in zip(group_sizes, how_many, strict=True)],
        "largest_groups": [{"id": _shown(all_ids[int(ranked[g])]), "size": int(sizes[g])} for g in largest],
        "recall": {"expected": recipe.expected_recall if isinstance(recipe, Recipe) else None, "sampled": sampled},
        "limits": {
            "bucket_limit": recipe.bucket_limit,
            "bucket_probe": recipe.bucket_probe,
            "large_buckets": candidates.large_buckets,
            "uncompared_pairs": candidates.uncompared_pairs,
        },
        "timings": clock.seconds,
    }
    skipped = documents.skipped
    if skipped is not None:
        if reference is not None:
            skipped = pa.concat_tables([skipped, reference.skipped])
        report["counts"]["skipped"] = num_skipped(skipped)
    metadata = {METADATA_KEY: recipe.to_json().encode()}
    return Result(
        documents=pa.table(table).replace_schema_metadata(metadata),
        pairs=pa.table(paired).replace_schema_metadata(metadata),
        report=report,
        recipe=recipe,
        frequencies=frequencies,
        skipped=skipped,
        sources=(documents, reference),
    )


def num_skipped(skipped: pa.Table) -> int:
    """How many rows were skipped at least: where that cannot be known, one."""
    return int(pc.sum(pc.fill_null(skipped["rows"], 1)).as_py() or 0)


def _no_documents(documents: Documents) -> InputError:
    skipped = documents.skipped
    if skipped is None or len(skipped) == 0:
        return InputError("the input holds no documents; nothing was written")
    first = skipped.slice(0, 1).to_pylist()[0]
    return InputError(
        f"the input holds no documents that can be read: {num_skipped(skipped):,} rows were skipped, the first in "
        f"{first['file']} ({first['reason']})"
    )


def _both(some: list[Any], others: list[Any]) -> list[Any]:
    """The items of two lists as one, and the two emptied."""
    together = some + others
    some.clear()
    others.clear()
    return together


def _not_both(some: Any, pairs: Pairs) -> Pairs:
    """The pairs of which not both rows are among some."""
    return pairs.where(~(some[pairs.left] & some[pairs.right]))


def _first_here(fingerprints: Any, rows: np.ndarray, job: Job) -> np.ndarray:
    """`_first_by_fingerprint` of some rows, in host memory."""
    return home(_first_by_fingerprint(job.put(_take(fingerprints, rows))))


def _shown(id: pa.Scalar) -> int | str:
    """An id as JSON can hold it."""
    value = id.as_py()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _resemblance_to(chosen: np.ndarray, verified: Verified) -> np.ndarray:
    """Resemblance of each row to the row chosen for it: 1 to itself, NaN where that pair was not verified."""
    xp = array_module(chosen)
    found = xp.where(chosen == xp.arange(len(chosen)), 1.0, np.nan)
    left, right = verified.pairs.left, verified.pairs.right
    for row, other in ((left, right), (right, left)):
        named = chosen[row] == other
        found[row[named]] = verified.resemblance[named]
    return found


CHECK_PARTNERS = 200
"""Documents that one sampled document is compared with, at most, in the check of recall."""

CHECK_ADDITIONS = 20_000
"""Shingles that a document may share with all sampled ones together, on average; beyond it, fewer are sampled."""

CHECK_SHINGLES = 1 << 15
"""Longest document that the check of recall samples, so that its sample fits in 50 MB."""


def _check_recall(
    spool: Spool | DeviceSpool,
    spool_rows: np.ndarray,
    fingerprints: np.ndarray,
    features: Any,
    pinned: np.ndarray,
    removed: np.ndarray,
    candidates: Candidates,
    verified: Verified,
    recipe: AnyRecipe,
    check: int,
    clock: Clock,
    job: Job,
) -> dict[str, Any]:
    """Compare some documents with all others, without any filter, and see which of their pairs were found.

    The sample is the `check` documents of smallest mixed fingerprint, so it depends on their contents alone; of a
    document's possible near-duplicates, `CHECK_PARTNERS` are taken in the same way, and fewer documents are sampled
    where they share too much (`CHECK_ADDITIONS`).

    For each sampled document that has near-duplicates, the share of them that this run found: that it lists as verified
    pairs, or of which it removed one of the two documents, so that not both are kept. The mean of these shares is the
    recall. "listed" is the same for listed pairs alone. "filter" counts what the bucket limit left out as if it had
    been listed: what the filter could do without limits. Each interval holds for the mean of values in [0, 1] sampled
    without replacement, with the confidence given.
    """
    assert recipe.threshold is not None
    confidence = 0.99
    luck = mix64_all(fingerprints[:, 0])
    sizes = np.diff(spool.offsets)[spool_rows]
    mine = np.flatnonzero(~pinned & (sizes <= CHECK_SHINGLES))
    sample = mine[np.argsort(luck[mine], kind="stable")[:check]]
    sampled, inverted = _sampled_sets(spool, spool_rows[sample], job)
    # What the sample shares with itself says what one document costs: too much where all pages are of one template.
    additions = float(np.square(np.diff(inverted[1])).sum()) / max(1, len(sample))
    if additions > CHECK_ADDITIONS:
        sample = sample[: max(10, int(len(sample) * CHECK_ADDITIONS / additions))]
        sampled, inverted = _sampled_sets(spool, spool_rows[sample], job)
    # Resemblance t needs t |A| shared shingles; one fewer makes up for rounding and is sorted out by `verify`.
    need = np.maximum(1, np.ceil(recipe.threshold * sampled.sizes).astype(np.int64) - 1)
    in_file = np.argsort(spool_rows)
    which = partner = np.empty(0, np.int64)
    bar = np.full(len(sample), np.iinfo(np.uint64).max)  # only luckier partners are still wanted
    # A document counts its shingles and a row of `shared`.
    inverted = tuple(map(job.put, inverted))
    for first, last in _runs(np.cumsum(sizes[in_file] + len(sample)) // ((job.sets_bytes or VERIFY_BYTES) // 8)):
        rows = in_file[first:last]
        shingles = spool.gather(spool_rows[rows])
        shared = kernel(overlap, job.backend)(shingles.values, shingles.offsets, *inverted, len(sample))
        least, chance, most, row, self = _beside(shared, need, luck[rows], bar, rows, sample)
        wanted = (shared >= least) & (chance[:, None] <= most) & (row[:, None] != self)
        near, of = map(home, array_module(shared).nonzero(wanted))
        which, partner = _luckiest(np.append(which, of), np.append(partner, rows[near]), luck)
        full = np.flatnonzero(np.bincount(which, minlength=len(sample)) == CHECK_PARTNERS)
        bar[full] = luck[partner[np.searchsorted(which, full, side="right") - 1]]
        clock.report("check", last, len(in_file))
    possible = Pairs.from_unsorted(sample[which], partner)
    there = _verify_spooled(spool, spool_rows, possible, recipe.threshold, clock, job).pairs
    true = Pairs(home(there.left), home(there.right))
    found = _contains(verified.pairs, true, len(spool_rows))
    left_out = ~found
    if candidates.large_buckets and isinstance(recipe, Recipe):
        agreeing = (_take(features, true.left) == _take(features, true.right)).sum(axis=1)
        left_out &= home(agreeing) >= recipe.filter.r
    elif candidates.large_buckets and isinstance(recipe, SimhashRecipe):
        left_out &= _distances(home(features), true.left, true.right) <= recipe.radius
    else:
        left_out[:] = False
    settled = found | removed[true.left] | removed[true.right]
    shares = {
        name: _mean_share(true, those, sample, len(spool_rows), confidence)
        for name, those in (("found", settled), ("listed", found), ("filter", found | left_out))
    }
    return {
        "documents": len(sample),
        "with_duplicates": len(np.intersect1d(sample, np.concatenate([true.left, true.right]))),
        "pairs": len(true),
        "left_out_by_limit": int(np.count_nonzero(left_out)),
        **shares.pop("found"),
        **shares,
        "confidence": confidence,
    }


def _mean_share(
    true: Pairs, found: np.ndarray, sample: np.ndarray, num_rows: int, confidence: float
) -> dict[str, float | None]:
    """Of each sampled row that has pairs the share that was found: the mean of these shares, and its interval."""
    ends = np.concatenate([true.left, true.right])
    pairs_of = np.bincount(ends, minlength=num_rows)[sample]
    found_of = np.bincount(ends, np.tile(found, 2).astype(np.float64), minlength=num_rows)[sample]
    shares = found_of[pairs_of > 0] / pairs_of[pairs_of > 0]
    if len(shares) == 0:
        return {"recall": None, "low": 0.0, "high": 1.0}
    mean = float(shares.mean())
    low, high = theory.mean_interval(mean, len(shares), 1 - confidence)
    return {"recall": mean, "low": low, "high": high}


def _contains(pairs: Pairs, wanted: Pairs, num_rows: int) -> np.ndarray:
    """Which of the wanted pairs are among `pairs`: bool, shape (wanted,)."""
    # Sorted, as pairs are; of fewer than 2**32 rows, so a pair fits into 64 bits without a sign.
    packed, asked = (p.left.view(np.uint64) * np.uint64(num_rows) + p.right.view(np.uint64) for p in (pairs, wanted))
    place = np.searchsorted(packed, asked)
    found = place < len(packed)
    found[found] = packed[place[found]] == asked[found]
    return found


def _runs(values: np.ndarray) -> list[tuple[int, int]]:
    """(first, last + 1) of each run of equal values."""
    breaks = np.flatnonzero(values[1:] != values[:-1]) + 1
    return list(zip([0, *breaks.tolist()], [*breaks.tolist(), len(values)], strict=True)) if len(values) else []


def _sampled_sets(
    spool: Spool | DeviceSpool, rows: np.ndarray, job: Job
) -> tuple[Ragged, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Shingle sets of some rows of a spool, and the same inside out; in host memory."""
    read = spool.gather(rows)
    sets = Ragged(*map(home, kernel(sets_kernel, job.backend)(read.values, read.offsets)))
    return sets, overlap.invert(sets.values, sets.offsets)


def _luckiest(left: np.ndarray, right: np.ndarray, luck: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each left row's right rows the `CHECK_PARTNERS` of smallest `luck`, sorted by it within each left row."""
    order = np.lexsort((luck[right], left))
    left, right = left[order], right[order]
    rank = np.arange(len(left)) - np.searchsorted(left, left)
    return left[rank < CHECK_PARTNERS], right[rank < CHECK_PARTNERS]


@with_bars
def sketch(
    source: Any = None,
    output: str | Path | None = None,
    *,
    texts: Any = None,
    text_columns: str | list[str] | None = None,
    id_column: str | None = None,
    html: bool = False,
    glob: str | None = None,
    on_error: str = "stop",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    recipe: AnyRecipe | None = None,
    method: str = "minhash",
    threshold: float | None = None,
    recall: float | None = None,
    filter: str | tuple[int, int, int] | None = None,
    frequencies: Frequencies | str | Path | None = None,
    temp_dir: str | Path | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Summarise documents in a Parquet file, from which pairs are found without the text.

    By min-hash, for `find_pairs`: columns id; num_tokens int64; fingerprint, two uint64 of the whole token sequence;
    signature, `samples` uint32 or uint64; features, k uint64. The last two are null for documents without tokens.

    By simhash, for `hamming`: id; num_tokens; simhash, uint64 or two of them, null for documents without tokens. Where
    document frequencies had to be counted, a second file gets them (`frequencies_path`), so that documents to come can
    be weighed alike. With `on_error="skip"` another file gets the rows that cannot be read (`skipped_path`).

    Other parameters as in `dedup`.

    Returns
    -------
    dict
        Counts and timings.

    Raises
    ------
    NeardupError
        As `dedup`.
    """
    checks.job(device, threads)
    if output is None:
        raise ParameterError("output: say where the sketches go, such as 'sketches.parquet'")
    output, overwrite = checks.path("output", output), checks.flag("overwrite", overwrite)
    temp_dir = checks.optional(checks.path, "temp_dir", temp_dir)
    settings = {"method": method, "threshold": threshold, "recall": recall, "filter": filter}
    recipe = _recipe_or(recipe, settings, {"method": "minhash"})
    clock = Clock(progress)
    recipe, known = _with_frequencies(recipe, frequencies)
    documents = open_documents(
        source,
        texts=texts,
        text_columns=text_columns,
        id_column=id_column,
        html=html,
        glob=glob,
        on_error=on_error,
        max_document_bytes=max_document_bytes,
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_threads(threads))
        outputs: dict[str, str | Path] = {"sketches": output}
        if _has_to_count(recipe, known):
            outputs["frequencies"] = frequencies_path(output)
        if on_error != "stop":
            outputs["skipped"] = skipped_path(output)
        reads = _files_read(documents, None, frequencies)
        files = dict(zip(outputs, stack.enter_context(new_files([*outputs.values()], overwrite, reads)), strict=True))
        file, counted, left_out = files["sketches"], files.get("frequencies"), files.get("skipped")
        documents.check_ids_early()
        waiting = None
        job = stack.enter_context(running(backend, device, gpu_memory))
        if counted is not None:
            waiting = stack.enter_context(_Waiting(temp_dir or file.parent, job, job.spool_bytes))
        with clock.stage("sketch"):
            options: dict[str, Any] = {"frequencies": known, "waiting": waiting, "signatures": True}
            options["whole"] = isinstance(recipe, Recipe)
            sketches = _sketch_documents(documents, recipe, clock, job, **options)
            if sketches.documents == 0:
                raise _no_documents(documents)
            ids = _ids(sketches, documents, "input")
        if waiting is not None and counted is not None and isinstance(recipe, SimhashRecipe):
            with clock.stage("weigh"):
                counts, found = job.with_room(partial(waiting.simhashes, recipe, clock, job), waiting.spill)
                recipe = recipe.with_(frequencies=counts.digest)
                counts.write(counted)
                sketches.features.append(found)
        with clock.stage("write"):
            num_tokens = _joined(sketches.num_tokens, np.int64)
            rows = {"features": _joined(sketches.features, np.uint64, _width(recipe))}
            if isinstance(recipe, Recipe):
                rows = {
                    "fingerprint": _joined(sketches.fingerprints, np.uint64, 2),
                    "signature": _joined(sketches.signatures, recipe.material.a.dtype, recipe.filter.samples),
                    **rows,
                }
            else:
                rows = {"simhash": rows["features"]}
            columns: dict[str, Any] = {"id": ids, "num_tokens": arrow(num_tokens)}
            for name, array in rows.items():
                null = np.zeros(len(array), bool) if name == "fingerprint" else num_tokens == 0
                columns[name] = _column(array, null)
            table = pa.table(columns).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})
            write_table(table, file)
            skipped = documents.skipped
            if left_out is not None and skipped is not None:
                write_table(skipped.replace_schema_metadata(table.schema.metadata), left_out)
    return {
        "documents": sketches.documents,
        **({} if skipped is None else {"skipped": num_skipped(skipped)}),
        "empty": int(np.count_nonzero(num_tokens == 0)),
        "null_text": sketches.null_text,
        "invalid_utf8": sketches.invalid_utf8,
        "stripped_pages": sketches.stripped_pages,
        "text_bytes": sketches.text_bytes,
        "tokens": sketches.tokens,
        "backend": job.backend,
        "device": job.describe(),
        "timings": clock.seconds,
        "recipe": recipe.describe(),
        **({} if counted is None else {"frequencies": str(frequencies_path(output))}),
    }


def frequencies_path(output: str | Path) -> Path:
    """Where the document frequencies go that were counted for some simhashes: beside them."""
    return _path_beside(output, "frequencies")


def skipped_path(output: str | Path) -> Path:
    """Where the rows are listed that could not be read for some sketches: beside them."""
    return _path_beside(output, "skipped")


def _path_beside(output: str | Path, what: str) -> Path:
    """Another name for each name: s.frequencies.parquet for s.parquet, s.frequencies.pq for s.pq."""
    path, suffix = os.path.splitext(os.path.realpath(output) if os.path.islink(output) else output)
    return Path(f"{path}.{what}{suffix}")


def _column(array: np.ndarray, null: np.ndarray) -> pa.Array:
    """An array as an Arrow column, of lists of one length where it has two dimensions; `null` marks missing rows."""
    if array.ndim == 1:
        return arrow(array, null)
    return pa.FixedSizeListArray.from_arrays(arrow(array.ravel()), array.shape[1], mask=arrow(null))


@with_bars
def find_pairs(
    sketches: str | Path | list[str | Path],
    output: str | Path | None = None,
    *,
    threshold: float | None = None,
    r: int | None = None,
    overwrite: bool = False,
    backend: str | None = None,
    device: int | None = None,
    gpu_memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> pa.Table:
    """Find candidate pairs among sketched documents and estimate their resemblance.

    Parameters
    ----------
    sketches : path or list of paths
        What `sketch` wrote, all under one recipe; their order does not matter.
    output : path, optional
        A Parquet file for the table.
    threshold : float, optional
        Drop pairs whose estimate is lower. All candidates, unless given.
    r : int, optional
        Features that must agree; the recipe's, unless given.
    overwrite, backend, device, gpu_memory, threads, progress
        As in `dedup`.

    Returns
    -------
    pyarrow.Table
        id_a, id_b, estimate, low, high: the share of equal samples and its 99% interval (a pair's own, by
        `theory.mean_interval`). Documents with the same token sequence are one representative and pairs of 1 to it.

    Raises
    ------
    InputError, RecipeMismatchError
        If a file cannot be read, or was made by another recipe than the first.
    ParameterError, ArgumentTypeError
        If an argument is not what is said above.
    """
    checks.job(device, threads)
    paths = checks.paths("sketches", sketches)
    output, overwrite = checks.optional(checks.path, "output", output), checks.flag("overwrite", overwrite)
    threshold, r = checks.optional(checks.fraction, "threshold", threshold), checks.optional(checks.integer, "r", r, 1)
    clock = Clock(progress)
    with on_threads(threads), contextlib.ExitStack() as stack:
        file = stack.enter_context(new_file(output, overwrite, paths)) if output is not None else None
        job = stack.enter_context(running(backend, device, gpu_memory))
        with clock.stage("read"):
            table, recipe = read_sketches(paths, r)
        if r is not None:
            recipe = recipe.with_(filter=(recipe.filter.k, recipe.filter.s, r))
        with clock.stage("collide"):
            present = table["num_tokens"].to_numpy() > 0
            rows = np.flatnonzero(present)
            fingerprints = _matrix(table["fingerprint"])[rows]
            stands_for = job.with_room(partial(_first_here, fingerprints, np.arange(len(rows)), job))
            own = np.flatnonzero(stands_for == np.arange(len(rows)))
            copies = np.flatnonzero(stands_for != np.arange(len(rows)))
            # Nulls of a fixed-size list are in its values too, so rows without tokens stay in place until here.
            features, signatures = _matrix(table["features"])[rows], _matrix(table["signature"])[rows]
            features = features[own]
            if features.nbytes <= job.sketch_bytes:
                features = job.put(features)
            candidates = job.with_room(partial(collide, features, recipe, backend=job.backend))
            del features
            left, right = own[home(candidates.pairs.left)], own[home(candidates.pairs.right)]
        with clock.stage("estimate"):
            equal = np.empty(len(left), np.int64)
            if signatures.nbytes <= job.sketch_bytes:
                signatures = job.put(signatures)
            for first in range(0, len(left), 1 << 16):
                part = slice(first, first + (1 << 16))
                agree = _take(signatures, left[part]) == _take(signatures, right[part])
                equal[part] = home(array_module(agree).count_nonzero(agree, axis=1))
            samples = recipe.filter.samples
            bounds = np.array([theory.mean_interval(m / samples, samples, 0.01) for m in range(samples + 1)])
            a = np.concatenate([left, stands_for[copies]])
            b = np.concatenate([right, copies])
            estimate = np.concatenate([equal / samples, np.ones(len(copies))])
            low = np.concatenate([bounds[equal, 0], np.ones(len(copies))])
            high = np.concatenate([bounds[equal, 1], np.ones(len(copies))])
            order = np.lexsort((b, a))
            if threshold is not None:
                order = order[estimate[order] >= threshold]
            ids = table["id"].combine_chunks()
            found = pa.table(
                {
                    "id_a": ids.take(arrow(rows[a[order]])),
                    "id_b": ids.take(arrow(rows[b[order]])),
                    "estimate": arrow(estimate[order]),
                    "low": arrow(low[order]),
                    "high": arrow(high[order]),
                }
            ).replace_schema_metadata({METADATA_KEY: recipe.to_json().encode()})
        if file is not None:
            with clock.stage("write"):
                write_table(found, file)
    return found


def _matrix(column: pa.ChunkedArray) -> np.ndarray:
    """A column of fixed-size lists of unsigned integers as a two-dimensional array; null lists become zeros."""
    joined = column.combine_chunks()
    width = joined.type.list_size
    values = joined.values.slice(joined.offset * width, len(joined) * width)
    if values.null_count:  # Parquet gives a null list null values, which NumPy would turn into floats
        values = pc.fill_null(values, 0)
    return values.to_numpy(zero_copy_only=False).reshape(-1, width)
