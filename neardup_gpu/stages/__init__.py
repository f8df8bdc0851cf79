"""Call each stage of a job alone, or write a method of your own under the contracts `Join` and `Sketch`.

Arrays may be NumPy's or CuPy's whatever the backend, or objects that speak DLPack, the CUDA array interface or Arrow's
device interface (see `interchange.py`). Results are on the backend's device: CuPy's for "gpu", else NumPy's. Between
`shingle` and `verify` stand the stages of a method that sketches: `sketch`, `keys` and `collide`. `join` stands for
them and for `verify` by the methods `exact` and `containment`.

    >>> import neardup_gpu as nd
    >>> from neardup_gpu import stages
    >>> texts = ["to be or not to be that is the question", "to be or not to be that is a question", "something else"]
    >>> recipe = nd.Recipe(shingles=nd.Shingles(2), method="minhash", threshold=0.5)
    >>> shingles = stages.shingle(stages.tokenize(texts, recipe), recipe)
    >>> keys = recipe.method.keys(recipe.method.sketch(shingles, seed=recipe.seed), seed=recipe.seed)
    >>> candidates = recipe.method.collide(keys, seed=recipe.seed)
    >>> verified = stages.verify(shingles, candidates.pairs, recipe.threshold)
    >>> stages.keep(len(texts), verified, recipe)
    array([0, 0, 2])
"""

from __future__ import annotations

import contextlib
from itertools import accumulate
from typing import Any

import numpy as np

from .. import checks, interchange
from ..data import NO_PAIRS, Pairs, Ragged, Tokens, as_ragged, pairs_within
from ..documents import open_documents
from ..engine.arrays import same_device
from ..engine.choice import kernel, to_host
from ..engine.clock import Clock
from ..engine.contract import Backend
from ..engine.settings import Engine
from ..errors import ArgumentTypeError
from ..kernels import components, greedy, shingles as shingles_kernel, spots as spots_kernel
from ..kernels._gf2 import mix64_all
from ..kernels._launch import MOST_ROWS, array_module
from ..methods import METHODS, MethodName
from ..methods.contract import Buckets, Candidates, Entries, Estimate, Join, RowEstimates, Sketch
from ..methods.measures import RESEMBLANCE, Measure, MeasureName, shingle_sets, worth
from ..recipe import Recipe
from ..text import stop_words
from ..text.raw_text import TO_BYTES
from ..text.token_changes import TokenCounts, make_tokens
from .joining import SpooledRows
from .partners import JoinedRows, partners_of
from .verification import Verified, at_least

__all__ = [
    "METHODS",
    "Buckets",
    "Candidates",
    "Entries",
    "Estimate",
    "Join",
    "Pairs",
    "Ragged",
    "RowEstimates",
    "Sketch",
    "Verified",
    "join",
    "keep",
    "shingle",
    "tokenize",
    "verify",
]


JOINS: dict[MeasureName, MethodName] = {"resemblance": "exact", "containment": "containment"}
"""The method that joins by each measure."""


def __dir__() -> list[str]:
    return __all__


def tokenize(documents: Any, recipe: Recipe, *, backend: Backend | None = None) -> Ragged:
    """Divide documents into tokens, as Rabin fingerprints.

    Parameters
    ----------
    documents : Ragged of uint8, list of str, or column of strings of pyarrow, pandas, polars, cuDF or pylibcudf
        Text in UTF-8, in which each invalid byte is a letter that equals only itself; nulls are empty documents. For
        the tokens "ids", a Ragged of integers.
    recipe : Recipe
        Its seed decides the fingerprints.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    Ragged of uint64, a row for each document
        In text order. Cost: linear in the bytes. Source: see `kernels/tokens.py`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> tokenize(["to be or not to be", "to be"], Recipe()).sizes
    array([6, 2])
    """
    checks.instance("recipe", recipe, Recipe)
    text = _as_integers(documents) if recipe.shingles.token_kind.of_integers else _as_text(documents)
    return count_tokens(text, recipe, backend)[0]


def count_tokens(text: Ragged, recipe: Recipe, backend: str | None, names: Any = None) -> tuple[Ragged, TokenCounts]:
    """Tokenize text, and count what is odd in it.

    `names` are what the documents are called, an array or sequence, or None: see `Shingles`.
    """
    values, offsets, counts = make_tokens(text, recipe, backend, names, False)
    return Ragged._trusted(values, offsets), counts


def place_tokens(text: Ragged, recipe: Recipe, backend: str | None, names: Any = None) -> Tokens:
    """Tokenize text like `count_tokens`, and return where each token lies in it."""
    values, offsets, _, begins, ends = make_tokens(text, recipe, backend, names, True)
    return Tokens(values, offsets, begins, ends)


def placed_text(text: Ragged, recipe: Recipe, backend: str | None, names: Any = None) -> tuple[Ragged, Tokens]:
    """Return a text and where each token lies in it. Where documents are lists of integers, places count integers."""
    tokens = place_tokens(text, recipe, backend, names)
    if not recipe.shingles.token_kind.of_integers:
        return text, tokens
    integers = Ragged._trusted(text.values[: text.offsets[-1]].view(np.int64), text.offsets >> 3)
    return integers, Tokens(tokens.values, tokens.offsets, tokens.begins >> 3, tokens.ends >> 3)


def as_documents(texts: list[str], recipe: Recipe) -> Ragged:
    """Return the documents that strings were made of, as `Documents._to_string` makes them."""
    return utf8([*map(TO_BYTES[recipe.shingles.token_kind.holds], texts)])


def _as_integers(documents: Any) -> Ragged:
    """Return rows of integers as documents of 8 bytes per integer."""
    rows = checks.instance("documents", documents, Ragged, "of integers")
    values = checks.array("documents", rows.values, np.int64, convert=True, hint="token ids")
    return Ragged._trusted(values.view(np.uint8), 8 * rows.offsets)


def _as_text(documents: Any) -> Ragged:
    if isinstance(documents, Ragged) or interchange.on_gpu(documents):
        return as_ragged("documents", documents, np.uint8, "UTF-8 text, or give a list of str")
    if isinstance(documents, str):
        raise ArgumentTypeError("documents: one string given; put it into a list")
    if type(documents) is list and all(type(text) is str for text in documents):
        with contextlib.suppress(UnicodeEncodeError):  # which `checks.texts` explains
            return utf8(documents)
    import pyarrow as pa

    column = checks.texts("documents", documents)
    batches = list(open_documents(pa.table({"text": column})).batches(max_bytes=1 << 62))
    return batches[0].text if batches else Ragged(np.empty(0, np.uint8), np.zeros(1, np.int64))


def utf8(documents: list[str] | list[bytes]) -> Ragged:
    """Texts in UTF-8 as a Ragged, like one of Arrow's, whose arrays cannot be written to."""
    texts = [text.encode() if isinstance(text, str) else text for text in documents]
    offsets = np.zeros(len(texts) + 1, np.int64)
    offsets[1:] = [*accumulate(map(len, texts))]
    offsets.flags.writeable = False
    return Ragged._trusted(np.frombuffer(b"".join(texts), np.uint8), offsets)


def shingle(tokens: Ragged, recipe: Recipe, *, backend: Backend | None = None) -> Ragged:
    """Fingerprint what a document is a set of: every `recipe.shingles.size` consecutive tokens, or its spots.

    Parameters
    ----------
    tokens : Ragged of uint64
        Tokens of each document, as `tokenize` gives.
    recipe : Recipe
        Its shingles and its seed count.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    Ragged of uint64, a row for each document
        In text order with repeats. A document of fewer tokens has one shingle, one without tokens none; one that has
        tokens and no spots has shingles. Cost: linear. Source: Broder 2000, section 2; of spots, `kernels/spots.py`.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> from neardup_gpu import Shingles
    >>> recipe = Recipe(shingles=Shingles(2))
    >>> shingle(tokenize(["to be or not to be", "to be"], recipe), recipe).sizes
    array([5, 1])
    """
    tokens, recipe = as_ragged("tokens", tokens, np.uint64), checks.instance("recipe", recipe, Recipe)
    return count_shingles(tokens, recipe, backend)[0]


def count_shingles(tokens: Ragged, recipe: Recipe, backend: str | None) -> tuple[Ragged, int]:
    """Like `shingle`; also counts the documents that have tokens and no spots, where spots were requested."""
    drawn, made_of = recipe.material, recipe.shingles
    if made_of.kind == "spots":
        run = kernel(spots_kernel, backend)
        stops = stop_words.fingerprints(made_of.stop_words, int(drawn.tokens), made_of.fold)
        *found, without = run(tokens.values, tokens.offsets, stops, made_of.size, drawn.shingles)
        return Ragged._trusted(*found), without
    run = kernel(shingles_kernel, backend)
    found = run(tokens.values, tokens.offsets, made_of.size, made_of.kind, drawn.shingles, drawn.bags)
    return Ragged._trusted(*found), 0


def verify(shingles: Ragged, candidates: Pairs, threshold: float, *, backend: Backend | None = None) -> Verified:
    """Compute candidates' exact resemblance and drop those below the threshold.

    Parameters
    ----------
    shingles : Ragged of uint64
        Shingles of each document, in any order, repeats allowed.
    candidates : Pairs
        Pairs of rows to compare.
    threshold : float from 0 to 1
        Least resemblance of a pair that stays.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    Verified
        Cost: a sort of each set, a merge for each pair. Source: Broder 1997, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> shingles = Ragged.from_rows([[1, 2, 3], [1, 2, 3, 4], [9]], np.uint64)
    >>> verify(shingles, Pairs([0, 0], [1, 2]), 0.5).resemblance
    array([0.75])
    """
    shingles = as_ragged("shingles", shingles, np.uint64)
    candidates = pairs_within("candidates", candidates, len(shingles))
    threshold = checks.fraction("threshold", threshold)
    sets = shingle_sets(shingles, backend)
    left, right = same_device(sets.values, candidates.left, candidates.right)
    return at_least(threshold, left, right, worth(RESEMBLANCE, sets, left, right, threshold, backend))


def join(
    shingles: Ragged, threshold: float, *, measure: MeasureName = "resemblance", backend: Backend | None = None
) -> Verified:
    """Find all pairs of rows at or above the threshold, exactly: the join of the methods "exact" and "containment".

    Parameters
    ----------
    shingles : Ragged of uint64
        Each row is a set: shingles, or elements of any other kind, in any order, repeats allowed. A row without
        elements is in no pair.
    threshold : float, above 0 and at most 1
        Least value of a pair.
    measure : "resemblance" or "containment", default "resemblance"
        The value of a pair:

        - "resemblance": the common elements over all elements of both rows.
        - "containment": the share of the smaller set that the larger one has.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    Verified
        Every pair at the threshold. Cost: see `prefix_filter`; if every element is in many rows, it is the square of
        the number of rows.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> shingles = Ragged.from_rows([[1, 2, 3], [1, 2, 3, 4], [9]], np.uint64)
    >>> join(shingles, 0.5)
    Verified(pairs=Pairs(1), resemblance=array([0.75]))
    >>> join(shingles, 0.9, measure="containment").resemblance
    array([1.])
    """
    shingles = as_ragged("shingles", shingles, np.uint64)
    threshold = checks.fraction("threshold", threshold, zero=False)
    method = JOINS[checks.one_of("measure", measure, tuple(JOINS))]
    recipe = Recipe(method=method, threshold=threshold, max_partners=None)
    by = recipe.measure_by(None)
    with Engine(backend=backend).start() as runtime, runtime.spool(None) as spool:
        # Elements are counted by their upper bits, in which numbers of a user may all be equal.
        values, offsets = mix64_all(to_host(shingles.values)), to_host(shingles.offsets)
        waiting = by.waiting(Ragged(runtime.put(values), runtime.put(offsets)), runtime.backend)
        spool.append(waiting)
        sizes = np.diff(spool.offsets)
        order = np.argsort(-sizes, kind="stable") if by.directed else np.arange(len(sizes))
        candidates = Candidates(NO_PAIRS, 0, 0, sizes[order] > 0)
        joined = JoinedRows(None, np.zeros(len(order), bool), SpooledRows(spool, order))
        found = partners_of(joined, candidates, recipe, by, Clock(None), runtime).listed
    one, other = order[found.pairs.left], order[found.pairs.right]
    left, right = np.minimum(one, other), np.maximum(one, other)
    listed = np.lexsort((right, left))
    return Verified(Pairs(left[listed], right[listed]), found.resemblance[listed])


def keep(
    num_documents: int,
    verified: Verified,
    recipe: Recipe,
    *,
    pinned: np.ndarray | None = None,
    backend: Backend | None = None,
) -> np.ndarray:
    """Decide which documents stay.

    Parameters
    ----------
    num_documents : int
        Number of documents.
    verified : Verified
        Pairs of near-duplicates; rows in priority order.
    recipe : Recipe
        Its `cluster` decides. "greedy": a document goes exactly when it has a pair with one already kept. "components":
        each connected component keeps its first document.
    pinned : array of bool, shape (documents,), default None
        Documents that stay whatever happens: the reference set of `against`.
    backend : "reference", "cpu" or "gpu", default None
        Where to run; on a GPU if there is one, unless given.

    Returns
    -------
    array of int64, shape (documents,)
        For each document itself if it stays, else the kept one that stands for it: under "greedy" the one it
        resembles most, ties to the better priority; by containment the better one that contains it most. Source: Broder
        1997, 4.4; Broder 2000, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> verified = Verified(Pairs([0, 1], [1, 2]), np.array([0.9, 0.8]))
    >>> keep(3, verified, Recipe())  # 1 goes for 0; so 2 has no pair with a kept document
    array([0, 0, 2])
    >>> keep(3, verified, Recipe(cluster="components"))
    array([0, 0, 0])
    """
    num_documents = checks.integer("num_documents", num_documents, 0, MOST_ROWS)
    checks.instance("verified", verified, Verified, "verify makes one")
    pairs = pairs_within("verified.pairs", verified.pairs, num_documents)
    resemblance = checks.array(
        "verified.resemblance", verified.resemblance, np.float64, (len(pairs),), convert=True, hint="one for each pair"
    )
    checks.numbers_between("verified.resemblance", resemblance, 0, 1)
    checks.instance("recipe", recipe, Recipe)
    if pinned is None:
        pinned = np.zeros(num_documents, bool)
    pinned = checks.array("pinned", pinned, bool, (num_documents,), hint="one for each document")
    return choose_keepers(
        num_documents, Verified(pairs, resemblance), recipe.cluster, recipe.method.measure, pinned, backend
    )


def choose_keepers(
    num_rows: int, verified: Verified, cluster: str, measure: Measure, pinned: Any, backend: Backend | None
) -> Any:
    """Like `keep`, for arguments that have been checked."""
    left, right, values = verified.pairs.left, verified.pairs.right, verified.resemblance
    if cluster == "greedy":
        choose = kernel(greedy, backend)
        keeper = choose(num_rows, left, right, values, pinned)
        if measure.directed:  # who is kept is decided by these pairs alone, too
            kept = keeper[left] == same_device(keeper, left)[0]
            keeper = choose(num_rows, left[kept], right[kept], values[kept], pinned)
        return keeper
    keeper = kernel(components, backend)(num_rows, left, right)
    xp = array_module(keeper)
    return xp.where(*same_device(keeper, pinned), xp.arange(num_rows), keeper)
